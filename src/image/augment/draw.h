/*
 * draw.h - inside the library: the random choices for one picture, as a list of changes.
 *
 * Drawing uses a generator and floating point. The list holds integers only, so applying it gives
 * the same pixels on every machine and on a GPU (src/backend/cuda/kernels/changes.cu).
 */
#ifndef STK_IMAGE_AUGMENT_DRAW_H
#define STK_IMAGE_AUGMENT_DRAW_H

#include "image/augment/augment.h"
#include "image/augment/ops.h"

/* Units are those of the functions of ops.h. */
typedef enum stk_change_kind {
    STK_CHANGE_IDENTITY,
    STK_CHANGE_SHEAR_X,     /* amount: 1/STK_SHEAR_ONE px per px */
    STK_CHANGE_SHEAR_Y,     /* amount: 1/STK_SHEAR_ONE px per px */
    STK_CHANGE_TRANSLATE_X, /* amount: px */
    STK_CHANGE_TRANSLATE_Y, /* amount: px */
    STK_CHANGE_ROTATE,      /* amount: millidegrees */
    STK_CHANGE_BRIGHTNESS,  /* amount: factor in 1/STK_FACTOR_ONE */
    STK_CHANGE_SATURATION,  /* amount: factor in 1/STK_FACTOR_ONE */
    STK_CHANGE_CONTRAST,    /* amount: factor in 1/STK_FACTOR_ONE */
    STK_CHANGE_SHARPNESS,   /* amount: factor in 1/STK_FACTOR_ONE */
    STK_CHANGE_POSTERIZE,   /* amount: bits that are cleared */
    STK_CHANGE_SOLARIZE,    /* amount: threshold */
    STK_CHANGE_AUTOCONTRAST,
    STK_CHANGE_EQUALIZE,
    STK_CHANGE_HUE,  /* amount: 1/STK_HUE_SIXTH of a sixth of the circle */
    STK_CHANGE_ERASE /* x, y, width, height: px */
} stk_change_kind;

typedef struct stk_change {
    stk_change_kind kind;
    int amount; /* 0 for kinds without an amount */
    int x, y, width, height;
} stk_change;

/* Rotation, four parts of jitter, a policy's operations, erasing. */
#define STK_DRAW_CHANGES (1 + 4 + STK_AUGMENT_MAX_OPS + 1)

typedef struct stk_augment_draw {
    int count;
    stk_change changes[STK_DRAW_CHANGES]; /* in the order of application */
} stk_augment_draw;

/* Draws the changes for a picture of `size` px. */
void stk_augment_choose(const stk_augment_options *options, int size, stk_rng *rng,
                        stk_augment_draw *draw);

/* Applies one change; pixels and spare are (size, size, channels). Changes of colour need 3
 * channels and otherwise do nothing. */
void stk_augment_make(const stk_change *change, int size, int channels, uint8_t *pixels,
                      uint8_t *spare);

/* The map of a rotation or a shear of a picture of `size` px; false: the change is of another kind.
 */
bool stk_augment_map_of(const stk_change *change, int size, stk_augment_map *map);

#endif
