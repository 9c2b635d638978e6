/*
 * scratch.h - only for this room: the fields of stk_image_scratch, the memory that a thread keeps
 * between pictures, for the files that decode and scale in one pass.
 */
#ifndef STK_IMAGE_CROP_SCRATCH_H
#define STK_IMAGE_CROP_SCRATCH_H

#include "image/image.h"
#include "image/resample/resample.h"

struct stk_image_scratch {
    stk_resampler resampler;
    stk_heavy_gate gate;
    stk_image_limit limit;
    bool heavy;     /* the gate was entered for the current picture */
    uint8_t *spare; /* owned: (size, size, channels) for augmentation; NULL until it is needed */
    size_t spare_bytes;
    /* Of the current picture, for transforms: */
    const stk_transform *transform;
    stk_rng rng;
    uint8_t *out;
    bool swapped;       /* rows and columns of the square must be exchanged */
    uint64_t source_px; /* stored width times height; 0: not known yet */
};

/* Enters the gate for a picture that needs much memory; once per picture. */
STK_CHECKED stk_status stk_image_scratch_enter(stk_image_scratch *scratch, uint64_t bytes,
                                               stk_error *err);

/* Leaves the gate; call it after every picture. */
void stk_image_scratch_leave(stk_image_scratch *scratch);

#endif
