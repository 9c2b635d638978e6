/*
 * transform.c - which part of a picture the network sees.
 *
 * Training crops are RandomResizedCrop's (Szegedy et al., 2015, as torchvision does it): a share of
 * the area between min_scale and 1, an aspect between 3/4 and 4/3 uniform in its logarithm, whole
 * pixels, ten tries, then the largest part with an allowed aspect. Evaluation takes the centre.
 */
#include "image/image.h"

#include <math.h>

#include "base/error.h"

#define ASPECT_MIN (3.0 / 4.0)
#define ASPECT_MAX (4.0 / 3.0)
#define TRIES 10

static stk_crop centre(int width, int height, double part_width, double part_height) {
    return (stk_crop){
        .x = (width - part_width) / 2,
        .y = (height - part_height) / 2,
        .width = part_width,
        .height = part_height,
    };
}

static stk_crop draw_crop(double min_scale, int width, int height, stk_rng *rng) {
    double least = min_scale >= 0 && min_scale <= 1 ? min_scale : 1;
    for (int i = 0; i < TRIES; i++) {
        double area = (double)width * height * stk_rng_range(rng, least, 1);
        double aspect = exp(stk_rng_range(rng, log(ASPECT_MIN), log(ASPECT_MAX)));
        double w = round(sqrt(area * aspect));
        double h = round(sqrt(area / aspect));
        if (w >= 1 && h >= 1 && w <= width && h <= height) {
            double x = (double)stk_rng_below(rng, (uint64_t)(width - (int)w) + 1);
            double y = (double)stk_rng_below(rng, (uint64_t)(height - (int)h) + 1);
            return (stk_crop){.x = x, .y = y, .width = w, .height = h};
        }
    }
    double w = fmin(width, round(height * ASPECT_MAX));
    double h = fmin(height, round(width / ASPECT_MIN));
    return centre(width, height, w, h);
}

stk_crop stk_transform_draw(const stk_transform *transform, int width, int height, stk_rng *rng,
                            bool *flip) {
    *flip = false;
    if (!transform->train) {
        double fraction = transform->crop_fraction;
        double side = width < height ? width : height;
        side *= fraction > 0 && fraction <= 1 ? fraction : 1;
        return centre(width, height, side, side);
    }
    stk_crop crop = draw_crop(transform->augment.crop_scale, width, height, rng);
    *flip = transform->augment.flip && stk_rng_below(rng, 2) == 1;
    return crop;
}

stk_status stk_transform_apply(const stk_transform *transform, const uint8_t *bytes, size_t size,
                               stk_rng rng, uint8_t *out, stk_error *err) {
    stk_image image;
    stk_status status = stk_image_decode(bytes, size, &image, err);
    if (status != STK_OK) {
        return status;
    }
    bool flip;
    stk_crop crop = stk_transform_draw(transform, image.width, image.height, &rng, &flip);
    status = stk_image_resize(&image, crop, transform->size, flip, out, err);
    stk_image_free(&image);
    return status;
}
