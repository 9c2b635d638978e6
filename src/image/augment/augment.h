/*
 * augment.h - random changes of a picture that is already cropped and scaled.
 *
 * Works in place on 8-bit squares, RGB or of any number of channels. The caller's generator decides
 * everything: pixels are computed with integers, so the same generator gives the same pixels on
 * every machine. Threads: safe.
 */
#ifndef STK_IMAGE_AUGMENT_AUGMENT_H
#define STK_IMAGE_AUGMENT_AUGMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/numbers/rng.h"
#include "options/options.h"

/* Most operations of RandAugment on one picture. */
#define STK_AUGMENT_MAX_OPS 14

typedef enum stk_policy {
    STK_POLICY_NONE,
    STK_POLICY_RANDAUGMENT,   /* Cubuk et al., 2019: a number of operations of one strength */
    STK_POLICY_TRIVIALAUGMENT /* Mueller and Hutter, 2021: one operation of any strength */
} stk_policy;

/* How a picture comes to the size of the square. */
typedef enum stk_resize {
    STK_RESIZE_AUTO,
    STK_RESIZE_SCALE, /* a part of it is scaled */
    STK_RESIZE_NONE   /* a window of its own pixels is taken: stk_transform.native */
} stk_resize;

/* The options of augmentation. stk_transform_draw() uses crop_scale and flip, stk_augment_apply()
 * the others except for `resize`: who makes a transform from the options uses that. */
typedef struct stk_augment_options {
    int resize;          /* stk_resize */
    double crop_scale;   /* least share of the picture's area that a training crop keeps; never
                            STK_AUTO_DOUBLE here */
    bool flip;           /* mirror a training picture with probability 1/2 */
    double color_jitter; /* brightness, contrast and saturation change by a factor 1-x .. 1+x */
    double hue;          /* hue turns by up to this share of the circle, 0 .. 0.5 */
    double rotate;       /* degrees; turns by -x .. x */
    int augment;         /* stk_policy */
    int64_t augment_ops; /* RandAugment: operations per picture */
    int64_t augment_magnitude; /* RandAugment: strength, 0 .. 30 */
    double erasing;            /* probability of random erasing */
} stk_augment_options;

extern const stk_option_table stk_augment_option_table;

/* Whether stk_augment_apply would do anything; crop_scale and flip do not count. */
bool stk_augment_is_needed(const stk_augment_options *options);

/*
 * Augments the picture `pixels` (size, size, channels), size 1 or more, in place: rotation, colour
 * jitter (its parts in random order), policy, erasing. Where channels are not 3, changes of colour
 * are drawn and left out. Strengths and their distributions are
 * torchvision's. Two things differ: moved pictures are sampled bilinearly, and erased pixels and
 * pixels from outside get ImageNet's mean colour (124, 116, 104), which is about zero after
 * normalising. transform.c crops and flips while it scales. `spare` (size, size, channels) is
 * overwritten. The options must be within the limits of their table.
 */
void stk_augment_apply(const stk_augment_options *options, int size, int channels, uint8_t *pixels,
                       uint8_t *spare, stk_rng *rng);

#endif
