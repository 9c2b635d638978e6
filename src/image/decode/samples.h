/*
 * samples.h - only for this room: pictures whose values lie in memory as numbers of any type, and
 * the window through which they become 8-bit rows.
 *
 * Arrays, TIFF and DICOM come down to such numbers. A decoder describes where they lie;
 * stk_samples_give() asks the receiver for its part, finds a window if none was given, and writes
 * the rows. Threads: safe, but a meter belongs to one thread at a time.
 */
#ifndef STK_IMAGE_DECODE_SAMPLES_H
#define STK_IMAGE_DECODE_SAMPLES_H

#include "image/decode/decoders.h"

typedef enum stk_sample_type {
    STK_SAMPLE_U8,
    STK_SAMPLE_I8,
    STK_SAMPLE_U16,
    STK_SAMPLE_I16,
    STK_SAMPLE_U32,
    STK_SAMPLE_I32,
    STK_SAMPLE_U64,
    STK_SAMPLE_I64,
    STK_SAMPLE_F16,
    STK_SAMPLE_F32,
    STK_SAMPLE_F64,
    STK_SAMPLE_BOOL /* a byte; what is not 0 is white */
} stk_sample_type;

size_t stk_sample_bytes(stk_sample_type type);

/* What the last of four channels, or of two, is. */
typedef enum stk_alpha {
    STK_ALPHA_NONE,     /* a channel like the others */
    STK_ALPHA_STRAIGHT, /* colours are to be mixed with white */
    STK_ALPHA_DONE,     /* colours are mixed with black already */
    STK_ALPHA_IGNORED   /* to be left out */
} stk_alpha;

typedef struct stk_samples {
    const char *format;   /* "TIFF", for errors */
    const uint8_t *bytes; /* borrowed: the first value; all that follow are there */
    stk_sample_type type;
    bool swapped; /* the bytes of a value are in the other order than this machine's */
    int width, height;
    int channels;                                  /* with alpha */
    size_t row_bytes, column_bytes, channel_bytes; /* from one value to the next */
    stk_alpha alpha;
    /* The rest is 0 for most formats. */
    int orientation;      /* 0: 1 */
    uint64_t whole_bytes; /* memory that the decoder took for the values */
    bool inverted;        /* small values are white */
    bool padded;          /* `padding` marks pixels without a value, which do not count */
    float padding;
    bool divides;          /* the decoder can give 1/2, 1/4 and 1/8 of the size */
    bool spread;           /* a window is found by percentiles whatever the type */
    const stk_window *own; /* the file's own window; it goes before all others */
} stk_samples;

/* The header for the receiver. */
stk_image_info stk_samples_info(const stk_samples *samples);

/*
 * Asks the receiver for the part. Fails for a number of channels that it does not take. `bytes` is
 * not looked at yet.
 */
STK_CHECKED stk_status stk_samples_ask(const stk_samples *samples,
                                       const stk_image_receiver *receiver, stk_image_watch *watch,
                                       stk_image_part *part, stk_error *err);

/* Asks the receiver for the part and gives it. */
STK_CHECKED stk_status stk_samples_give(const stk_samples *samples,
                                        const stk_image_receiver *receiver, stk_image_watch *watch,
                                        stk_error *err);

/* Gives the part that was asked for. A receiver with a meter gets no rows, but STK_ERR_STOPPED. */
STK_CHECKED stk_status stk_samples_give_part(const stk_samples *samples, const stk_image_part *part,
                                             const stk_image_receiver *receiver,
                                             stk_image_watch *watch, stk_error *err);

/* `count` values of one channel in a row, from column x on. */
void stk_samples_read(const stk_samples *samples, int channel, int x, int y, int count, float *out);

/* ---- windows ---- */

/*
 * The window that a picture gets when nobody gave one. Whole numbers without sign of up to 16 bits:
 * from 0 to the largest number with as many bits as the picture uses, so that 12 bits in 16 are not
 * black and a picture that uses all 16 is scaled as ever. Others: a thousandth of the values lies
 * below and above, so that a few broken pixels do not decide.
 */
STK_CHECKED stk_status stk_window_find(const stk_samples *samples, stk_image_watch *watch,
                                       stk_window *window, stk_error *err);

STK_CHECKED stk_status stk_window_meter_take(stk_window_meter *meter, const stk_samples *samples,
                                             stk_image_watch *watch, stk_error *err);

#endif
