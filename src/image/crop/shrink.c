/*
 * shrink.c - decodes a whole picture, scaled down to a given side.
 *
 * The stored picture is scaled first and made upright when it is small. A picture that is already
 * small enough is copied row by row.
 */
#include "image/image.h"

#include <string.h>

#include "base/error.h"
#include "image/decode/decoders.h"
#include "image/crop/scratch.h"

typedef struct shrinking {
    stk_image_scratch *scratch;
    int max_side; /* px; 0: no limit */
    stk_image *image;
    int orientation;
    bool scaled; /* false: rows are copied */
    int rows;    /* rows copied so far */
} shrinking;

/* The size of the result in whole pixels, with the proportions kept. */
static void fit(int max_side, int *width, int *height) {
    int longer = *width > *height ? *width : *height;
    int *sides[2] = {width, height};
    for (int i = 0; i < 2 && max_side > 0 && longer > max_side; i++) {
        int64_t side = ((int64_t)*sides[i] * max_side * 2 + longer) / (2 * (int64_t)longer);
        *sides[i] = side > 1 ? (int)side : 1;
    }
}

/* The largest divisor that leaves at least the wanted pixels. */
static int choose_divisor(const stk_image_info *info, const stk_image *image) {
    int divisor = info->divides ? 8 : 1;
    while (divisor > 1 &&
           (info->width / divisor < image->width || info->height / divisor < image->height)) {
        divisor /= 2;
    }
    return divisor;
}

static stk_status begin_shrinking(void *user, const stk_image_info *info, stk_image_part *part,
                                  stk_error *err) {
    shrinking *s = user;
    int width = info->width;
    int height = info->height;
    fit(s->max_side, &width, &height);
    uint64_t bytes = 3 * (uint64_t)width * (uint64_t)height + info->whole_bytes;
    stk_status status = stk_image_scratch_enter(s->scratch, bytes, err);
    STK_THEN(status, stk_image_new(s->image, width, height, err));
    if (status != STK_OK) {
        return status;
    }
    s->orientation = info->orientation;
    s->scaled = width != info->width || height != info->height;
    int divisor = choose_divisor(info, s->image);
    *part = (stk_image_part){.divisor = divisor,
                             .width = (info->width + divisor - 1) / divisor,
                             .height = (info->height + divisor - 1) / divisor};
    if (s->scaled) {
        stk_resample_task task = {.width = part->width,
                                  .height = part->height,
                                  .crop = {.width = (double)info->width / divisor,
                                           .height = (double)info->height / divisor},
                                  .size = width,
                                  .size_down = height};
        status = stk_resampler_begin(&s->scratch->resampler, &task, s->image->pixels, err);
    }
    return status;
}

static stk_status expect_rows(void *user, int x, int width, stk_error *err) {
    shrinking *s = user;
    if (!s->scaled) {
        return x == 0 && width == s->image->width
                   ? STK_OK
                   : STK_FAIL(err, STK_ERR_INTERNAL, "a decoder gave part of a row");
    }
    size_t bytes = stk_resampler_window_bytes(&s->scratch->resampler, width);
    stk_status status = stk_image_scratch_enter(s->scratch, bytes, err);
    return status == STK_OK ? stk_resampler_rows(&s->scratch->resampler, x, width, err) : status;
}

static uint8_t *room_for_rows(void *user, int count) {
    shrinking *s = user;
    return s->scaled ? stk_resampler_room(&s->scratch->resampler, count)
                     : s->image->pixels + 3 * (size_t)s->image->width * (size_t)s->rows;
}

static void take_rows(void *user, int count) {
    shrinking *s = user;
    if (s->scaled) {
        stk_resampler_take(&s->scratch->resampler, count);
    }
    s->rows += count;
}

stk_status stk_image_shrink(stk_image_scratch *scratch, const uint8_t *bytes, size_t size,
                            int max_side, stk_image *image, stk_error *err) {
    memset(image, 0, sizeof *image);
    shrinking s = {.scratch = scratch, .max_side = max_side, .image = image};
    stk_image_receiver receiver = {.user = &s,
                                   .max_cpu_ns = STK_IMAGE_MAX_CPU_NS,
                                   .limit = scratch->limit,
                                   .begin = begin_shrinking,
                                   .rows = expect_rows,
                                   .room = room_for_rows,
                                   .take = take_rows};
    stk_status status = stk_image_receive(bytes, size, &receiver, err);
    STK_THEN(status, stk_image_orient(image, s.orientation, &receiver, err));
    stk_image_scratch_leave(scratch);
    if (status != STK_OK) {
        stk_image_free(image);
    }
    return status;
}
