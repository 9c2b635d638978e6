/*
 * ops.h - the operations of augmentation on pixels.
 *
 * Each function changes a square RGB picture `pixels` (size, size, 3), size 1 or more, in place;
 * the geometric ones take any number of channels, (size, size, channels). It
 * uses integers only: every machine gives the same bytes. Functions that need a second picture take
 * `spare`, as large as `pixels`, and overwrite it. Results are torchvision's on 8-bit pictures,
 * within one level, except where a comment says otherwise. Threads: safe.
 */
#ifndef STK_IMAGE_AUGMENT_OPS_H
#define STK_IMAGE_AUGMENT_OPS_H

#include <stdint.h>

/* Colour factors are integers in units of 1/16384, below 2. */
#define STK_FACTOR_ONE 16384
#define STK_FACTOR_MAX (2 * STK_FACTOR_ONE - 1)

/* Hue turns are integers in units of 1/8192 of a sixth of the circle, at most half a circle. */
#define STK_HUE_SIXTH 8192
#define STK_HUE_MAX (3 * STK_HUE_SIXTH)

/* Shears are integers in units of 1/65536 px per px. */
#define STK_SHEAR_ONE 65536

/* Grey of red, green and blue, in units of 1/65536: Rec. 601. */
#define STK_GREY_RED 19595
#define STK_GREY_GREEN 38470
#define STK_GREY_BLUE 7471

/* Fill colour of erased pixels and of pixels from outside the picture: ImageNet's mean. */
#define STK_FILL_RED 124
#define STK_FILL_GREEN 116
#define STK_FILL_BLUE 104
#define STK_FILL_OTHER 116 /* pictures that are not RGB: about the mean of the three */

/*
 * Blend the picture with another one: a factor of one keeps the picture, a smaller factor moves
 * towards the other one, a larger factor away from it. The other picture is black (brightness), the
 * mean grey (contrast), the picture in grey (saturation), or the picture blurred by 3x3 pixels
 * except at its border (sharpness). Fractions are truncated.
 */
void stk_augment_brightness(int size, uint8_t *pixels, int factor);
void stk_augment_contrast(int size, uint8_t *pixels, int factor);
void stk_augment_saturation(int size, uint8_t *pixels, int factor);
void stk_augment_sharpness(int size, uint8_t *pixels, uint8_t *spare, int factor);

/*
 * Turns the hue and keeps HSV saturation and value; turn is -STK_HUE_MAX .. STK_HUE_MAX. Equals
 * torchvision on tensors; Pillow rounds hues to 8 bits.
 */
void stk_augment_hue(int size, uint8_t *pixels, int turn);

/* Clears the lowest `bits` bits of each value; 0 .. 8. */
void stk_augment_posterize(int size, uint8_t *pixels, int bits);

/* Inverts the values from the threshold up; 0 .. 256. */
void stk_augment_solarize(int size, uint8_t *pixels, int threshold);

/* Stretches each channel to the range 0 to 255. */
void stk_augment_autocontrast(int size, uint8_t *pixels);

/* Makes all values of a channel about equally frequent, by Pillow's rule. */
void stk_augment_equalize(int size, uint8_t *pixels);

/*
 * Geometric changes. The four nearest pixels are blended at positions rounded to 1/256 px; pixels
 * outside the picture have the fill colour. (Torchvision's default is the nearest pixel and black.)
 * Rotation is about the centre, counter-clockwise. Shears keep the top row (x) or the left column
 * (y) and move the far end left or up. Translations are to the right and down. Amounts may be
 * negative.
 */
void stk_augment_rotate(int size, int channels, uint8_t *pixels, uint8_t *spare, int millidegrees);
void stk_augment_shear_x(int size, int channels, uint8_t *pixels, uint8_t *spare, int shear);
void stk_augment_shear_y(int size, int channels, uint8_t *pixels, uint8_t *spare, int shear);
void stk_augment_translate_x(int size, int channels, uint8_t *pixels, int shift_px);
void stk_augment_translate_y(int size, int channels, uint8_t *pixels, int shift_px);

/*
 * The affine map of a rotation or a shear: output pixel (x, y) comes from column x_x * x + x_y * y
 * + x_at and row y_x * x + y_y * y + y_at, in 1/65536 px. Before blending, positions are rounded to
 * 1/256 px: a half of that is added, lower bits are dropped.
 */
typedef struct stk_augment_map {
    int64_t x_x, x_y, x_at;
    int64_t y_x, y_y, y_at;
} stk_augment_map;

stk_augment_map stk_augment_rotate_map(int size, int millidegrees);
stk_augment_map stk_augment_shear_x_map(int shear);
stk_augment_map stk_augment_shear_y_map(int shear);

/* Fills a rectangle, which must lie inside the picture, with the fill colour. */
void stk_augment_erase(int size, int channels, uint8_t *pixels, int x, int y, int width,
                       int height);

#endif
