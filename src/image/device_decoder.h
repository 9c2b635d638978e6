/*
 * device_decoder.h - pictures decoded on a device: what a GPU must know, and how it is asked.
 *
 * stk_transform_plan() reads the header of a JPEG and makes all choices that stk_transform_apply()
 * would make: which part is taken, how it is scaled, mirrored and changed. With this plan a device
 * makes the same square of the same bytes. A device decodes whole pictures in full size, so squares
 * are those of the CPU, byte for byte, wherever the CPU decodes in full size too.
 *
 * stk_device_decoder is the interface of such a device. A backend implements it
 * (src/backend/cuda/decode), a loader is handed one and knows no more of the device.
 */
#ifndef STK_IMAGE_DEVICE_DECODER_H
#define STK_IMAGE_DEVICE_DECODER_H

#include "image/augment/draw.h"
#include "image/image.h"

typedef struct stk_resample_axis stk_resample_axis; /* image/resample/resample.h */

/* How the planes of a JPEG lie that a device can decode: baseline, one scan, 8 bits, YCbCr or grey,
 * complete up to its end marker. */
typedef enum stk_jpeg_planes {
    STK_PLANES_OTHER, /* any other picture */
    STK_PLANES_GREY,
    STK_PLANES_444, /* colour planes as large as that of brightness */
    STK_PLANES_422, /* of half the width, rounded up */
    STK_PLANES_420  /* of half the width and half the height, rounded up */
} stk_jpeg_planes;

/* What becomes of one picture. */
typedef struct stk_picture_plan {
    int width, height; /* px, as stored */
    stk_jpeg_planes planes;
    int size; /* px, side of the square, which is RGB */
    /* Weights of the stored picture's columns and rows; borrowed from the scratch, until its next
     * picture. The square's column i comes from column i of `across`. */
    const stk_resample_axis *across, *down;
    bool mirror_y;            /* the square's row i comes from row size - 1 - i of `down` */
    bool swapped;             /* after that, rows and columns of the square are exchanged */
    stk_augment_draw changes; /* of the upright square, in this order */
} stk_picture_plan;

/*
 * Plans what stk_transform_apply() would do with these arguments. *able is false for pictures that
 * a device cannot decode and for transforms that it cannot make (other channels than RGB, native
 * windows); the CPU then decodes them and finds what is wrong with them. Errors are lack of memory.
 */
STK_CHECKED stk_status stk_transform_plan(stk_image_scratch *scratch,
                                          const stk_transform *transform, const uint8_t *bytes,
                                          size_t size, stk_rng rng, stk_picture_plan *plan,
                                          bool *able, stk_error *err);

/* A picture that is offered to a device. */
typedef struct stk_device_picture {
    const uint8_t *bytes; /* encoded; borrowed for the call */
    size_t size;
    const stk_picture_plan *plan; /* borrowed for the call */
    uint8_t *out; /* (size, size, 3) in memory of the backend's host_take; the device's until done
                     is called */
    const void *block; /* the block of host_take that `out` lies in */
    /* Called once if the picture was taken, on a thread of the decoder, without locks: the square
     * is complete, or (good is false) the device could not decode the picture. */
    void (*done)(void *user, bool good);
    void *user;
    const void *owner; /* whose picture it is: see `withdraw` */
} stk_device_picture;

typedef enum stk_offer {
    STK_OFFER_TAKEN,
    STK_OFFER_FULL,   /* not now: the device has enough to do */
    STK_OFFER_REFUSED /* never: too large, or the device decodes no more */
} stk_offer;

/* Since the decoder was opened. */
typedef struct stk_device_decoder_counts {
    uint64_t images;       /* decoded */
    uint64_t failed;       /* taken and not decoded: the CPU decoded them */
    uint64_t idle_ns;      /* in which it had nothing to decode */
    uint64_t device_bytes; /* of the device's memory that the decoder holds */
    int engines;           /* hardware engines for JPEG; 0: the device's processors decode */
    bool lost;             /* it hung or failed and refuses all pictures */
} stk_device_decoder_counts;

/* Any thread may call these at any time between opening and closing the decoder. */
typedef struct stk_device_decoder {
    void *state; /* the backend's; NULL: there is no decoder */
    /* What it decodes with is what the network computes with: it is for times in which that has
     * nothing to do. */
    bool is_sparing;
    size_t most_bytes; /* larger files are not worth planning: they are refused */
    stk_offer (*offer)(void *state, const stk_device_picture *picture);
    /* Whether a picture might be taken now: cheap, to be asked before planning. */
    stk_offer (*mood)(void *state);
    /* Gives back all pictures as not decoded when the oldest has been under way for far too long,
     * and refuses pictures from then on. Whoever waits for pictures calls it now and then. */
    void (*check)(void *state);
    /* Returns when no picture of the owner is under way: its memory may be freed then, and `done`
     * is not called any more. Waits shortly; then it gives up on the device as `check` does. */
    void (*withdraw)(void *state, const void *owner);
    void (*counts)(void *state, stk_device_decoder_counts *counts);
} stk_device_decoder;

#endif
