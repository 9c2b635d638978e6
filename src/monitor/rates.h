/*
 * rates.h - predicts the speed of training from the speed of each stage alone.
 *
 * Stages are storage, decoding, copying to the device and the training step. To predict the effect
 * of a change, take the rates after it (stk_rates_with_...) and ask stk_rates_together() again.
 *
 * Rates are images per second. INFINITY: the stage does not exist or never limits. NaN: unknown;
 * the stage is left out. Pure arithmetic. Threads: safe.
 */
#ifndef STK_MONITOR_RATES_H
#define STK_MONITOR_RATES_H

#include <stdbool.h>
#include <stdint.h>

typedef struct stk_rates {
    double storage;   /* reading, with the loader's number of reads in flight */
    double decode;    /* decoding, scaling and augmenting: one worker with a core to itself,
                         pictures that the device decodes left out */
    int workers;      /* decode workers */
    int cores;        /* for decode workers and a step on the host together */
    double copy;      /* from host to device */
    double step;      /* the bare training step, its input already in memory */
    bool on_host;     /* the step runs on the cores that decode */
    int64_t batch;    /* images per step */
    double fixed_s;   /* seconds of a step that do not grow with the batch */
    double source_px; /* mean pixels (width times height) of a stored picture */
    bool native;      /* pictures are not scaled: staged smaller they would be others */
    int img_size;     /* px, side of the square that training sees */
    int64_t images;   /* per epoch */
    /* Decoding on the device, beside the workers. All zero: it decodes nothing; so it is with a
     * step on the host. */
    double device_decode; /* on the device alone */
    double device_share;  /* of the pictures, 0 to 1: the device decodes as many at most */
    bool device_first;    /* the device decodes exactly this share, however long that takes */
} stk_rates;

typedef enum stk_stage_kind {
    STK_STAGE_STORAGE,
    STK_STAGE_DECODE,
    STK_STAGE_COPY,
    STK_STAGE_STEP,
    STK_STAGE_COUNT
} stk_stage_kind;

/* "storage", "decoding", "copying", "training step". */
const char *stk_stage_name(stk_stage_kind stage);

/* A rate as text: "7,700"; "3.4" below ten; "?" if unknown. */
typedef struct stk_rate_text {
    char text[32];
} stk_rate_text;

stk_rate_text stk_rates_text(double rate);

/* Images per second of one stage, with all its workers and the device. */
double stk_rates_of(const stk_rates *rates, stk_stage_kind stage);

/* Images per second of all stages together. *narrowest (may be NULL): the stage that limits. */
double stk_rates_together(const stk_rates *rates, stk_stage_kind *narrowest);

/* Whether staging at this shorter side makes pictures smaller, and may; false if their size is
 * unknown. */
bool stk_rates_shrinks(const stk_rates *rates, int short_side_px);

/* Shorter side, px, that staged pictures should have for training at img_size. */
int stk_rates_stage_side(int img_size);

/* What was decoded in an interval. */
typedef struct stk_decoded {
    double images;        /* that went into batches */
    double device_images; /* part of them: decoded on the device */
    double cores_s;       /* seconds of all workers: decoding, scaling and augmenting the others */
    double seconds;       /* length of the interval */
    double jpeg_util;     /* percent, mean: the device's engines for JPEG; NaN: not known */
} stk_decoded;

/*
 * Sets decode, device_decode and device_share. The device's rate follows from how busy its engines
 * were; pictures of a validation in the same interval make it lower than it is.
 */
void stk_rates_take_decoded(stk_rates *rates, const stk_decoded *decoded);

/* Images per second that so many hardware engines for JPEG decode; NaN: not known. */
double stk_rates_of_engines(const stk_rates *rates, int engines);

/* The matching --max-side of `stoker stage`: the longer side of a 4:3 picture. */
int stk_rates_max_side(int short_side_px);

/*
 * The rates after one change. More cores get as many workers. Another batch changes only how
 * fixed_s spreads over images. Staged pictures are smaller and near. A cache in memory holds
 * encoded pictures (_cached) or decoded ones (_decoded), which the device has no part in. With a
 * device beside the workers (_with_device), whoever has time decodes; one that decoded a share of
 * the pictures decodes no more of them.
 */
stk_rates stk_rates_with_workers(const stk_rates *rates, int workers);
stk_rates stk_rates_with_cores(const stk_rates *rates, int cores);
stk_rates stk_rates_with_device(const stk_rates *rates, double device_decode);
stk_rates stk_rates_with_batch(const stk_rates *rates, int64_t batch);
stk_rates stk_rates_staged(const stk_rates *rates, int short_side_px);
stk_rates stk_rates_with_img_size(const stk_rates *rates, int img_size);
stk_rates stk_rates_cached(const stk_rates *rates);
stk_rates stk_rates_decoded(const stk_rates *rates);

#endif
