/*
 * transform.c - which part of a picture the network sees.
 *
 * Training crops are RandomResizedCrop's (Szegedy et al., 2015, as torchvision does it): a share of
 * the area between crop_scale and 1, an aspect between 3/4 and 4/3 uniform in its logarithm, whole
 * pixels, ten tries, then the largest part with an allowed aspect. Evaluation takes the centre, or
 * another view near it: the mean over several views predicts better than one.
 *
 * Scaling wipes out faint changes of single pixels. Native windows are copied instead: they are as
 * large as the output, and a scale of one copies.
 */
#include "image/image.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"
#include "image/decode/decoders.h"
#include "image/crop/scratch.h"

#define ASPECT_MIN (3.0 / 4.0)
#define ASPECT_MAX (4.0 / 3.0)
#define TRIES 10

/* Side of the further views for evaluation, as a share of the centre's. */
#define VIEW_SHARE 0.9

/* Windows begin at multiples of so many pixels: all show JPEG's blocks at the same places. */
#define WINDOW_STEP 8

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
    stk_crop crop = centre(width, height, w, h);
    crop.x = floor(crop.x);
    crop.y = floor(crop.y);
    return crop;
}

/* An odd view is the mirror image of the view before it. */
static stk_crop view_of(stk_crop centre_part, int view) {
    static const double shifts[STK_TRANSFORM_VIEWS / 2] = {0, 0.5, 0, 1};
    double share = view / 2 > 0 ? VIEW_SHARE : 1;
    double at = shifts[view / 2 % (STK_TRANSFORM_VIEWS / 2)];
    double side = share * centre_part.width;
    double shift = at * (centre_part.width - side);
    return (stk_crop){
        .x = centre_part.x + shift, .y = centre_part.y + shift, .width = side, .height = side};
}

/* Where a window begins that is `part` of `side` px long; `at` is its place between 0 and 1. */
static double window_start(int side, int part, double at) {
    return floor(at * (side - part) / WINDOW_STEP) * WINDOW_STEP;
}

static stk_crop window_of(const stk_transform *transform, int width, int height, stk_rng *rng) {
    static const double places[STK_TRANSFORM_VIEWS / 2][2] = {{0.5, 0.5}, {0, 0}, {1, 1}, {1, 0}};
    int w = transform->size < width ? transform->size : width;
    int h = transform->size < height ? transform->size : height;
    stk_crop crop = {.width = w, .height = h};
    if (transform->train) {
        crop.x = WINDOW_STEP * (double)stk_rng_below(rng, (uint64_t)(width - w) / WINDOW_STEP + 1);
        crop.y = WINDOW_STEP * (double)stk_rng_below(rng, (uint64_t)(height - h) / WINDOW_STEP + 1);
    } else {
        const double *at = places[transform->view / 2 % (STK_TRANSFORM_VIEWS / 2)];
        crop.x = window_start(width, w, at[0]);
        crop.y = window_start(height, h, at[1]);
    }
    return crop;
}

stk_crop stk_transform_draw(const stk_transform *transform, int width, int height, stk_rng *rng,
                            bool *flip) {
    if (transform->native) {
        stk_crop window = window_of(transform, width, height, rng);
        *flip = transform->train ? transform->augment.flip && stk_rng_below(rng, 2) == 1
                                 : transform->view % 2 == 1;
        return window;
    }
    *flip = false;
    if (!transform->train) {
        double fraction = transform->crop_fraction;
        double side = width < height ? width : height;
        side *= fraction > 0 && fraction <= 1 ? fraction : 1;
        *flip = transform->view % 2 == 1;
        return view_of(centre(width, height, side, side), transform->view);
    }
    stk_crop crop = draw_crop(transform->augment.crop_scale, width, height, rng);
    *flip = transform->augment.flip && stk_rng_below(rng, 2) == 1;
    return crop;
}

/* Where a part of the upright picture lies in the stored one, which may have rows and columns
 * swapped and be mirrored. */
static stk_crop in_stored(stk_crop crop, stk_turn turn, double width, double height) {
    if (turn.swapped) {
        crop = (stk_crop){.x = crop.y, .y = crop.x, .width = crop.height, .height = crop.width};
    }
    crop.x = turn.mirror_x ? width - crop.x - crop.width : crop.x;
    crop.y = turn.mirror_y ? height - crop.y - crop.height : crop.y;
    return crop;
}

/* The largest divisor that leaves the part at least as many pixels as the square. */
static int choose_divisor(stk_crop crop, int size) {
    double least = crop.width < crop.height ? crop.width : crop.height;
    int divisor = 8;
    while (divisor > 1 && least / divisor < size) {
        divisor /= 2;
    }
    return divisor;
}

/*
 * Whether the picture has more pixels than the limit has nanoseconds: no format decodes that fast.
 * Not for training, which decodes only a part.
 */
static bool is_hopeless(const stk_image_scratch *scratch) {
    return !scratch->transform->train && scratch->limit.cpu_ns > 0 &&
           scratch->source_px > (uint64_t)scratch->limit.cpu_ns;
}

/*
 * Draws the part of a picture, decoded at 1/divisor of its size, that becomes the square, and
 * begins to scale it. A divisor of 0 stands for the one that saves most: it is returned in
 * *divisor.
 */
static stk_status begin_square(stk_image_scratch *scratch, const stk_image_info *info, int *divisor,
                               stk_error *err) {
    stk_turn turn = stk_image_turn(info->orientation);
    bool flip;
    stk_crop crop =
        stk_transform_draw(scratch->transform, turn.swapped ? info->height : info->width,
                           turn.swapped ? info->width : info->height, &scratch->rng, &flip);
    crop = in_stored(crop, turn, info->width, info->height);
    const bool native = scratch->transform->native;
    if (*divisor == 0) {
        *divisor = info->divides && !native ? choose_divisor(crop, scratch->transform->size) : 1;
    }
    stk_resample_task task = {.width = (info->width + *divisor - 1) / *divisor,
                              .height = (info->height + *divisor - 1) / *divisor,
                              .channels = stk_transform_channels(scratch->transform),
                              .crop = {crop.x / *divisor, crop.y / *divisor, crop.width / *divisor,
                                       crop.height / *divisor},
                              .size = native ? (int)crop.width : scratch->transform->size,
                              .size_down = native ? (int)crop.height : scratch->transform->size,
                              .mirror_x = turn.mirror_x != (flip && !turn.swapped),
                              .mirror_y = turn.mirror_y != (flip && turn.swapped),
                              .filter = scratch->transform->train || native
                                            ? STK_BILINEAR
                                            : scratch->transform->interpolation};
    scratch->swapped = turn.swapped;
    return stk_resampler_begin(&scratch->resampler, &task, scratch->out, err);
}

static stk_status begin_part(void *user, const stk_image_info *info, stk_image_part *part,
                             stk_error *err) {
    stk_image_scratch *scratch = user;
    scratch->source_px = (uint64_t)info->width * (uint64_t)info->height;
    if (is_hopeless(scratch)) {
        return STK_FAIL(err, STK_ERR_STOPPED, "there was no time to decode %d x %d pixels",
                        info->width, info->height);
    }
    int divisor = 0;
    stk_status status = stk_image_scratch_enter(scratch, info->whole_bytes, err);
    STK_THEN(status, begin_square(scratch, info, &divisor, err));
    const stk_resample_axis *across = &scratch->resampler.across;
    const stk_resample_axis *down = &scratch->resampler.down;
    *part = (stk_image_part){.divisor = divisor,
                             .x = across->from,
                             .y = down->from,
                             .width = across->to - across->from,
                             .height = down->to - down->from};
    return status;
}

static stk_status expect_rows(void *user, int x, int width, stk_error *err) {
    stk_image_scratch *scratch = user;
    size_t bytes = stk_resampler_window_bytes(&scratch->resampler, width);
    stk_status status = stk_image_scratch_enter(scratch, bytes, err);
    return status == STK_OK ? stk_resampler_rows(&scratch->resampler, x, width, err) : status;
}

static uint8_t *room_for_rows(void *user, int count) {
    stk_image_scratch *scratch = user;
    return stk_resampler_room(&scratch->resampler, count);
}

static void take_rows(void *user, int count) {
    stk_image_scratch *scratch = user;
    stk_resampler_take(&scratch->resampler, count);
}

/* The pixel of `count` that stands at a place beyond them, in endless mirror images. */
static size_t mirrored(size_t place, size_t count) {
    place %= 2 * count;
    return place < count ? place : 2 * count - 1 - place;
}

/* Makes a square of (height, width, each) bytes in the same memory: mirror images continue it. */
static void continue_to_square(uint8_t *pixels, size_t width, size_t height, size_t size,
                               size_t each) {
    for (size_t y = height; width < size && y-- > 0;) { /* from the last: rows move down */
        uint8_t *row = pixels + y * size * each;
        memmove(row, pixels + y * width * each, width * each);
        for (size_t x = width; x < size; x++) {
            memcpy(row + x * each, row + mirrored(x, width) * each, each);
        }
    }
    for (size_t y = height; y < size; y++) {
        memcpy(pixels + y * size * each, pixels + mirrored(y, height) * size * each, size * each);
    }
}

/* Exchanges rows and columns of a square. */
static void transpose(uint8_t *pixels, int size, int channels) {
    size_t each = (size_t)channels;
    size_t row = each * (size_t)size;
    for (size_t y = 0; y < (size_t)size; y++) {
        for (size_t x = y + 1; x < (size_t)size; x++) {
            uint8_t pixel[STK_IMAGE_MAX_CHANNELS];
            uint8_t *a = pixels + y * row + each * x;
            uint8_t *b = pixels + x * row + each * y;
            memcpy(pixel, a, each);
            memcpy(a, b, each);
            memcpy(b, pixel, each);
        }
    }
}

static stk_status augment(stk_image_scratch *scratch, stk_error *err) {
    const stk_transform *transform = scratch->transform;
    int channels = stk_transform_channels(transform);
    size_t bytes = (size_t)channels * (size_t)transform->size * (size_t)transform->size;
    if (scratch->spare_bytes < bytes) {
        stk_mem_free(scratch->spare);
        scratch->spare = stk_mem_raw(bytes, 1);
        scratch->spare_bytes = scratch->spare != NULL ? bytes : 0;
    }
    if (scratch->spare == NULL) {
        return STK_FAIL_MEMORY(err, "augmenting a picture");
    }
    stk_augment_apply(&transform->augment, transform->size, channels, scratch->out, scratch->spare,
                      &scratch->rng);
    return STK_OK;
}

int stk_transform_channels(const stk_transform *transform) {
    return transform->channels > 0 ? transform->channels : 3;
}

stk_status stk_transform_apply(stk_image_scratch *scratch, const stk_transform *transform,
                               const uint8_t *bytes, size_t size, stk_rng rng, uint8_t *out,
                               int64_t *augment_ns, stk_error *err) {
    stk_image_receiver receiver = {.user = scratch,
                                   .max_cpu_ns = STK_IMAGE_MAX_CPU_NS,
                                   .limit = scratch->limit,
                                   .channels = stk_transform_channels(transform),
                                   .window = &transform->window,
                                   .begin = begin_part,
                                   .rows = expect_rows,
                                   .room = room_for_rows,
                                   .take = take_rows};
    if (receiver.channels > STK_IMAGE_MAX_CHANNELS) {
        return STK_FAIL(err, STK_ERR_USAGE, "pictures of %d channels are not possible: at most %d",
                        receiver.channels, STK_IMAGE_MAX_CHANNELS);
    }
    scratch->transform = transform;
    scratch->rng = rng;
    scratch->out = out;
    scratch->source_px = 0;
    stk_status status = stk_image_receive(bytes, size, &receiver, err);
    stk_image_scratch_leave(scratch);
    if (status == STK_OK && transform->native) {
        continue_to_square(out, (size_t)scratch->resampler.size,
                           (size_t)scratch->resampler.size_down, (size_t)transform->size,
                           (size_t)receiver.channels);
    }
    if (status == STK_OK && scratch->swapped) {
        transpose(out, transform->size, receiver.channels);
    }
    if (status == STK_OK && transform->train && stk_augment_is_needed(&transform->augment)) {
        int64_t start = stk_clock_ns();
        status = augment(scratch, err);
        if (augment_ns != NULL) {
            *augment_ns += stk_clock_ns() - start;
        }
    }
    return status;
}

/* Takes the header alone; STK_ERR_STOPPED ends the decoding without a failure. */
typedef struct plan_request {
    stk_image_scratch *scratch;
    stk_picture_plan *plan;
    bool able;
} plan_request;

static stk_status begin_plan(void *user, const stk_image_info *info, stk_image_part *part,
                             stk_error *err) {
    plan_request *request = user;
    stk_image_scratch *scratch = request->scratch;
    int divisor = 1; /* a device decodes in full size */
    (void)part;
    if (info->planes == STK_PLANES_OTHER) {
        return STK_ERR_STOPPED;
    }
    scratch->source_px = (uint64_t)info->width * (uint64_t)info->height;
    stk_status status = begin_square(scratch, info, &divisor, err);
    if (status != STK_OK) {
        return status;
    }
    request->able = true;
    *request->plan = (stk_picture_plan){.width = info->width,
                                        .height = info->height,
                                        .planes = info->planes,
                                        .size = scratch->transform->size,
                                        .across = &scratch->resampler.across,
                                        .down = &scratch->resampler.down,
                                        .mirror_y = scratch->resampler.mirror_y,
                                        .swapped = scratch->swapped};
    return STK_ERR_STOPPED;
}

stk_status stk_transform_plan(stk_image_scratch *scratch, const stk_transform *transform,
                              const uint8_t *bytes, size_t size, stk_rng rng,
                              stk_picture_plan *plan, bool *able, stk_error *err) {
    plan_request request = {.scratch = scratch, .plan = plan};
    stk_image_receiver receiver = {.user = &request,
                                   .max_cpu_ns = STK_IMAGE_MAX_CPU_NS,
                                   .limit = scratch->limit,
                                   .asks_planes = true,
                                   .begin = begin_plan};
    *able = false;
    if (transform->native || stk_transform_channels(transform) != 3 ||
        !stk_image_jpeg.recognises(bytes, size)) {
        return STK_OK;
    }
    scratch->transform = transform;
    scratch->rng = rng;
    scratch->out = NULL; /* nothing is scaled here */
    stk_error why = {0};
    stk_status status = stk_image_receive(bytes, size, &receiver, &why);
    if (status == STK_ERR_MEMORY) {
        return STK_FAIL(err, status, "%s", why.message);
    }
    *able = request.able;
    if (*able && transform->train && stk_augment_is_needed(&transform->augment)) {
        stk_augment_choose(&transform->augment, transform->size, &scratch->rng, &plan->changes);
    }
    return STK_OK;
}
