/*
 * scratch.h - the memory that one thread makes pictures with, for those files of this room that
 * decode and scale in one go. Not for other rooms.
 */
#ifndef STK_IMAGE_SCRATCH_H
#define STK_IMAGE_SCRATCH_H

#include "image/image.h"
#include "image/resample.h"

struct stk_image_scratch {
    stk_resampler resampler;
    stk_heavy_gate gate;
    stk_image_limit limit;
    bool heavy;     /* the gate was entered for the picture in work */
    uint8_t *spare; /* owned: (size, size, 3) for augmentation; NULL until it is needed */
    size_t spare_bytes;
    /* of the picture in work, for transforms */
    const stk_transform *transform;
    stk_rng rng;
    uint8_t *out;
    bool swapped;       /* rows and columns of the square are to be exchanged */
    uint64_t source_px; /* width times height as it is stored; 0: not known yet */
};

/* Asks the gate for a picture that needs much memory, once. */
STK_CHECKED stk_status stk_image_scratch_enter(stk_image_scratch *scratch, uint64_t bytes,
                                               stk_error *err);

/* To be called behind every picture. */
void stk_image_scratch_leave(stk_image_scratch *scratch);

#endif
