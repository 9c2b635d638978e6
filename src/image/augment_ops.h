/*
 * augment_ops.h - the operations of augmentation on pixels.
 *
 * Each function changes a square RGB picture `pixels` (size, size, 3) of 1 px or more in place,
 * with whole numbers only: every machine gives the same bytes. Those that need a second picture
 * take `spare` (size, size, 3) and overwrite it. Results are torchvision's on 8-bit pictures,
 * within a level, except where a comment says otherwise. Threads: safe.
 */
#ifndef STK_IMAGE_AUGMENT_OPS_H
#define STK_IMAGE_AUGMENT_OPS_H

#include <stdint.h>

/* Factors of colour are whole numbers of 1/16384, below 2. */
#define STK_FACTOR_ONE 16384
#define STK_FACTOR_MAX (2 * STK_FACTOR_ONE - 1)

/* A hue turns by whole numbers of 1/8192 of a sixth of the circle, half a circle at most. */
#define STK_HUE_SIXTH 8192
#define STK_HUE_MAX (3 * STK_HUE_SIXTH)

/* A shear is a whole number of 1/65536 px per px. */
#define STK_SHEAR_ONE 65536

/* The fill colour of erased pixels and of pixels from outside of the picture: ImageNet's mean. */
#define STK_FILL_RED 124
#define STK_FILL_GREEN 116
#define STK_FILL_BLUE 104

/*
 * A blend of the picture with another one, in which a factor of one keeps the picture, less goes
 * towards the other and more goes away from it. The other one is black (brightness), the picture's
 * mean grey (contrast), the picture in grey (saturation) or the picture blurred by 3x3 pixels,
 * whose border is the picture's (sharpness). Fractions are cut off.
 */
void stk_augment_brightness(int size, uint8_t *pixels, int factor);
void stk_augment_contrast(int size, uint8_t *pixels, int factor);
void stk_augment_saturation(int size, uint8_t *pixels, int factor);
void stk_augment_sharpness(int size, uint8_t *pixels, uint8_t *spare, int factor);

/*
 * Turns the hue and keeps saturation and value as in HSV; turn is -STK_HUE_MAX .. STK_HUE_MAX. This
 * is torchvision's for tensors; Pillow rounds hues to 8 bits.
 */
void stk_augment_hue(int size, uint8_t *pixels, int turn);

/* Clears the lowest bits of each value; 0 .. 8. */
void stk_augment_posterize(int size, uint8_t *pixels, int bits);

/* Inverts the values from the threshold up; 0 .. 256. */
void stk_augment_solarize(int size, uint8_t *pixels, int threshold);

/* Stretches each channel so that its least value is 0 and its greatest 255. */
void stk_augment_autocontrast(int size, uint8_t *pixels);

/* Makes all values of a channel about equally frequent, by Pillow's rule. */
void stk_augment_equalize(int size, uint8_t *pixels);

/*
 * Moves of the picture. Between pixels the four nearest are blended, positions being rounded to
 * 1/256 px; pixels outside of the picture have the fill colour. Torchvision's default is the
 * nearest pixel and black. Rotation is about the centre, counter-clockwise; shears keep the top row
 * (x) or the left column (y) and move the far end left or up; translations are to the right and
 * down. Each amount may be negative.
 */
void stk_augment_rotate(int size, uint8_t *pixels, uint8_t *spare, int millidegrees);
void stk_augment_shear_x(int size, uint8_t *pixels, uint8_t *spare, int shear);
void stk_augment_shear_y(int size, uint8_t *pixels, uint8_t *spare, int shear);
void stk_augment_translate_x(int size, uint8_t *pixels, int shift_px);
void stk_augment_translate_y(int size, uint8_t *pixels, int shift_px);

/* Paints a rectangle, which must lie inside of the picture, with the fill colour. */
void stk_augment_erase(int size, uint8_t *pixels, int x, int y, int width, int height);

#endif
