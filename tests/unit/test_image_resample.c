/*
 * test_image_resample.c - the inner loops of scaling agree byte for byte, and the resampler gives
 * the same square however the rows come.
 */
#include "check.h"
#include "image_files.h"
#include "resize_picture.h"

#include "base/error.h"
#include "image/resample/resample.h"

#define GUARD 64     /* values on each side of an output that must stay as they are */
#define MOST_TAPS 20 /* of the common sizes; one larger number is tried beside them */
#define MANY_TAPS 400
#define MIDDLE_MOST (255 << STK_MIDDLE_BITS) /* the largest value that `down` makes, and */
#define MIDDLE_OVER (MIDDLE_MOST / 4)        /* how far negative weights bring it beyond */

typedef enum filling { RANDOM, LEAST, MOST, FILLINGS } filling;

/* Weights that add up to one as those of resample.c do; some are zero, some perhaps negative. */
static void draw_weights(stk_rng *rng, int16_t *weights, int taps) {
    uint64_t sums[MANY_TAPS];
    uint64_t sum = 0;
    for (int k = 0; k < taps; k++) {
        sum += stk_rng_below(rng, 4) == 0 ? 0 : stk_rng_below(rng, 1000);
        sums[k] = sum;
    }
    int before = 0;
    for (int k = 0; k < taps; k++) {
        int rounded =
            sum == 0 || k == taps - 1 ? STK_WEIGHT_ONE : (int)(sums[k] * STK_WEIGHT_ONE / sum);
        weights[k] = (int16_t)(rounded - before);
        before = rounded;
    }
    for (uint64_t moves = stk_rng_below(rng, 3); moves > 0; moves--) {
        int moved = (int)stk_rng_below(rng, STK_WEIGHT_ONE / 8);
        int from = (int)stk_rng_below(rng, (uint64_t)taps);
        int to = (int)stk_rng_below(rng, (uint64_t)taps);
        weights[from] = (int16_t)(weights[from] - moved);
        weights[to] = (int16_t)(weights[to] + moved);
    }
}

/* ---- down the columns ---- */

/* As its header says it, with nothing done for speed. */
static int16_t expected_down(const uint8_t *rows, size_t stride, const int16_t *weights, int taps,
                             size_t j) {
    int64_t sum = 1 << (STK_DOWN_SHIFT - 1);
    for (int k = 0; k < taps; k++) {
        sum += rows[(size_t)k * stride + j] * (int64_t)weights[k];
    }
    return (int16_t)(sum >> STK_DOWN_SHIFT);
}

static void check_down(const stk_resample_kernels *kernels, stk_rng *rng, int taps, size_t values,
                       filling fill) {
    size_t stride = values + (size_t)stk_rng_below(rng, 8);
    size_t bytes = (size_t)taps * stride + STK_KERNEL_SLACK;
    uint8_t *rows = stk_mem_raw(bytes, 1);
    int16_t weights[MANY_TAPS];
    int16_t out[GUARD + 200 + STK_KERNEL_SLACK + GUARD];
    draw_weights(rng, weights, taps);
    for (size_t i = 0; i < bytes; i++) {
        rows[i] = (uint8_t)(fill == RANDOM ? stk_rng_below(rng, 256) : fill == LEAST ? 0 : 255);
    }
    memset(out, 0x5A, sizeof out);
    kernels->down(rows, stride, weights, taps, values, out + GUARD);
    for (size_t j = 0; j < values; j++) {
        if (out[GUARD + j] != expected_down(rows, stride, weights, taps, j)) {
            CHECK_FAIL("%s: value %zu of %zu with %d taps is wrong", kernels->name, j, values,
                       taps);
            break;
        }
    }
    for (size_t j = 0; j < GUARD; j++) {
        if (out[j] != 0x5A5A || out[GUARD + values + STK_KERNEL_SLACK + j] != 0x5A5A) {
            CHECK_FAIL("%s writes outside of %zu values", kernels->name, values);
            break;
        }
    }
    stk_mem_free(rows);
}

static void every_kernel_weighs_down_the_same(void) {
    stk_rng rng = stk_rng_make(1, STK_RNG_TEST, 0, 0);
    for (int n = 0; stk_resample_kernel_list[n] != NULL; n++) {
        const stk_resample_kernels *kernels = stk_resample_kernel_list[n];
        if (!kernels->is_here()) {
            continue;
        }
        for (size_t values = 1; values <= 200; values++) {
            for (int taps = 2; taps <= MOST_TAPS; taps += 2) {
                check_down(kernels, &rng, taps, values, (filling)(values % FILLINGS));
                check_down(kernels, &rng, taps, values, RANDOM);
            }
        }
        for (size_t values = 1; values <= 200; values += 19) {
            for (int fill = 0; fill < FILLINGS; fill++) {
                check_down(kernels, &rng, MANY_TAPS, values, (filling)fill);
            }
        }
    }
}

/* ---- along the rows ---- */

typedef struct across_case {
    int size, taps, stride;
    int16_t *middle[2]; /* owned */
    int *first;         /* owned */
    int16_t *weights;   /* owned: (size, stride) */
} across_case;

/* Whatever lies behind the pixels that count is as large as it can be: it must not show. */
static across_case make_across(stk_rng *rng, int size, int taps, filling fill) {
    int pixels = 1 + (int)stk_rng_below(rng, 60);
    size_t values = 3 * (size_t)(pixels + taps);
    across_case c = {.size = size,
                     .taps = taps,
                     .stride = taps + 2 * (int)stk_rng_below(rng, 3),
                     .first = stk_mem_raw((size_t)size, sizeof *c.first)};
    c.weights = stk_mem_raw((size_t)size * (size_t)c.stride, sizeof *c.weights);
    for (int m = 0; m < 2; m++) {
        c.middle[m] = stk_mem_raw(values + STK_KERNEL_SLACK, sizeof *c.middle[m]);
        for (size_t i = 0; i < values + STK_KERNEL_SLACK; i++) {
            int random = (int)stk_rng_below(rng, MIDDLE_MOST + 2 * MIDDLE_OVER) - MIDDLE_OVER;
            int end = fill == LEAST ? -MIDDLE_OVER : MIDDLE_MOST + MIDDLE_OVER;
            int value = fill == RANDOM ? random : end;
            c.middle[m][i] = (int16_t)(i < values ? value : INT16_MAX);
        }
    }
    for (int i = 0; i < size; i++) {
        int16_t *weights = c.weights + (size_t)i * (size_t)c.stride;
        c.first[i] = (int)stk_rng_below(rng, (uint64_t)pixels);
        for (int k = taps; k < c.stride; k++) {
            weights[k] = INT16_MAX;
        }
        draw_weights(rng, weights, taps);
    }
    return c;
}

static void free_across(across_case *c) {
    stk_mem_free(c->middle[0]);
    stk_mem_free(c->middle[1]);
    stk_mem_free(c->first);
    stk_mem_free(c->weights);
}

static uint8_t expected_across(const across_case *c, int row, int value) {
    int i = value / 3;
    const int16_t *weights = c->weights + (size_t)i * (size_t)c->stride;
    int64_t sum = 1 << (STK_ACROSS_SHIFT - 1);
    for (int k = 0; k < c->taps; k++) {
        sum += c->middle[row][3 * (c->first[i] + k) + value % 3] * (int64_t)weights[k];
    }
    int64_t level = sum >> STK_ACROSS_SHIFT;
    return (uint8_t)(level < 0 ? 0 : level > 255 ? 255 : level);
}

static void check_across(const stk_resample_kernels *kernels, stk_rng *rng, int size, int taps,
                         filling fill) {
    across_case c = make_across(rng, size, taps, fill);
    size_t bytes = 3 * (size_t)size;
    uint8_t out[2][GUARD + 3 * 224 + GUARD];
    memset(out, 0x5A, sizeof out);
    kernels->across(c.middle[0], c.middle[1], c.first, c.weights, c.stride, taps, size,
                    out[0] + GUARD, out[1] + GUARD);
    for (int row = 0; row < 2; row++) {
        for (int i = 0; i < 3 * size; i++) {
            if (out[row][GUARD + i] != expected_across(&c, row, i)) {
                CHECK_FAIL("%s: value %d of row %d with %d pixels and %d taps is wrong",
                           kernels->name, i, row, size, taps);
                break;
            }
        }
        for (size_t i = 0; i < GUARD; i++) {
            if (out[row][i] != 0x5A || out[row][GUARD + bytes + i] != 0x5A) {
                CHECK_FAIL("%s writes outside of %d pixels", kernels->name, size);
                break;
            }
        }
    }
    free_across(&c);
}

static void every_kernel_weighs_across_the_same(void) {
    stk_rng rng = stk_rng_make(2, STK_RNG_TEST, 0, 0);
    for (int n = 0; stk_resample_kernel_list[n] != NULL; n++) {
        const stk_resample_kernels *kernels = stk_resample_kernel_list[n];
        if (!kernels->is_here()) {
            continue;
        }
        for (int size = 1; size <= 41; size++) {
            int pixels = size <= 40 ? size : 224;
            for (int taps = 2; taps <= MOST_TAPS; taps += 2) {
                for (int fill = 0; fill < FILLINGS; fill++) {
                    check_across(kernels, &rng, pixels, taps, (filling)fill);
                }
            }
            check_across(kernels, &rng, pixels, MANY_TAPS, (filling)(size % FILLINGS));
        }
    }
}

/* ---- rows as they come ---- */

#define MIXED 0 /* rows at a time: any number, another one each time */

static int rows_at_once(stk_rng *rng, int pattern, int left) {
    int count = pattern == MIXED ? 1 + (int)stk_rng_below(rng, STK_RESAMPLE_ROWS) : pattern;
    return count < left ? count : left;
}

/* Runs one picture through the resampler; rows begin `spare` columns before what is needed. */
static stk_status feed(stk_resampler *r, const stk_image *image, const stk_resample_task *job,
                       int pattern, int spare, uint8_t *out, stk_error *err) {
    stk_rng rng = stk_rng_make(3, STK_RNG_TEST, 0, (uint64_t)image->width);
    stk_status status = stk_resampler_begin(r, job, out, err);
    if (status != STK_OK) {
        return status;
    }
    int left = r->across.from > spare ? r->across.from - spare : 0;
    int right = r->across.to + spare < image->width ? r->across.to + spare : image->width;
    status = stk_resampler_rows(r, left, right - left, err);
    size_t row_bytes = 3 * (size_t)(right - left);
    for (int y = r->down.from; status == STK_OK && y < r->down.to;) {
        int count = rows_at_once(&rng, pattern, r->down.to - y);
        uint8_t *to = stk_resampler_room(r, count);
        for (int i = 0; i < count; i++, y++) {
            memcpy(to + (size_t)i * row_bytes, pixel(image, left, y), row_bytes);
        }
        stk_resampler_take(r, count);
    }
    return status;
}

static stk_resample_task draw_job(stk_rng *rng, const stk_image *image, int size) {
    stk_resample_task job = {.width = image->width,
                             .height = image->height,
                             .crop = {0, 0, image->width, image->height},
                             .size = size,
                             .mirror_x = stk_rng_below(rng, 2) == 1,
                             .mirror_y = stk_rng_below(rng, 2) == 1,
                             .filter = stk_rng_below(rng, 2) == 1 ? STK_BICUBIC : STK_BILINEAR};
    if (stk_rng_below(rng, 4) > 0) {
        job.crop.x = stk_rng_range(rng, 0, image->width - 1);
        job.crop.y = stk_rng_range(rng, 0, image->height - 1);
        job.crop.width = stk_rng_range(rng, 0, image->width - job.crop.x);
        job.crop.height = stk_rng_range(rng, 0, image->height - job.crop.y);
    }
    return job;
}

/* What resize_picture() makes of it, which holds the whole picture and gives row after row. */
static stk_status expect(const stk_image *image, const stk_resample_task *job, uint8_t *out,
                         stk_error *err) {
    stk_status status =
        resize_picture(image, job->crop, job->size, job->filter, job->mirror_x, out, err);
    size_t row = 3 * (size_t)job->size;
    for (int y = 0; job->mirror_y && y < job->size / 2; y++) {
        uint8_t *a = out + (size_t)y * row;
        uint8_t *b = out + (size_t)(job->size - 1 - y) * row;
        for (size_t i = 0; i < row; i++) {
            uint8_t kept = a[i];
            a[i] = b[i];
            b[i] = kept;
        }
    }
    return status;
}

static const int shapes[][2] = {{1, 1},   {2, 1},     {5, 9},     {16, 16},
                                {64, 48}, {333, 251}, {40, 1500}, {1500, 40}};
static const int sizes[] = {1, 2, 3, 8, 33, 64};
#define SHAPES (sizeof shapes / sizeof *shapes)
#define SIZES (sizeof sizes / sizeof *sizes)
#define MOST_SIZE 64

static void check_patterns(stk_resampler *r, const stk_image *image, const stk_resample_task *job) {
    static const int patterns[] = {1, 4, STK_RESAMPLE_ROWS, MIXED};
    static uint8_t expected[MOST_SIZE * MOST_SIZE * 3];
    static uint8_t out[MOST_SIZE * MOST_SIZE * 3 + GUARD];
    stk_error err = {0};
    size_t bytes = 3 * (size_t)job->size * (size_t)job->size;
    REQUIRE_OK(expect(image, job, expected, &err), &err);
    for (size_t p = 0; p < sizeof patterns / sizeof *patterns; p++) {
        memset(out, 0x5A, sizeof out);
        REQUIRE_OK(feed(r, image, job, patterns[p], (int)p, out, &err), &err);
        if (memcmp(out, expected, bytes) != 0) {
            CHECK_FAIL("%s: %d x %d to %d, %d rows at a time, gives other bytes", r->kernels->name,
                       image->width, image->height, job->size, patterns[p]);
        }
        for (size_t i = 0; i < GUARD; i++) {
            REQUIRE(out[bytes + i] == 0x5A);
        }
    }
}

static void rows_may_come_in_any_number(void) {
    stk_rng rng = stk_rng_make(4, STK_RNG_TEST, 0, 0);
    for (int n = 0; stk_resample_kernel_list[n] != NULL; n++) {
        if (!stk_resample_kernel_list[n]->is_here()) {
            continue;
        }
        stk_resampler r = {.kernels = stk_resample_kernel_list[n]};
        for (size_t s = 0; s < SHAPES; s++) {
            stk_image image = noise(shapes[s][0], shapes[s][1], s);
            for (size_t i = 0; i < 4 * SIZES; i++) {
                stk_resample_task job = draw_job(&rng, &image, sizes[i % SIZES]);
                check_patterns(&r, &image, &job);
            }
            stk_image_free(&image);
        }
        stk_resampler_free(&r);
    }
}

/* ---- weights ---- */

/* A triangle has no negative weights; a cubic has as few as the kernels can do with. */
static void check_axis(const stk_resample_axis *a, int size, int pixels, stk_interpolation filter) {
    REQUIRE(a->from >= 0 && a->from < a->to && a->to <= pixels);
    REQUIRE(a->taps % 2 == 0 && a->used % 2 == 0 && a->used <= a->taps);
    for (int i = 0; i < size; i++) {
        const int16_t *weights = a->weights + (size_t)i * (size_t)a->taps;
        int sum = 0;
        int unsigned_sum = 0;
        REQUIRE(a->count[i] >= 1 && a->count[i] <= a->used);
        REQUIRE(a->first[i] >= 0 && a->first[i] + a->count[i] <= a->to - a->from);
        for (int k = 0; k < a->taps; k++) {
            REQUIRE(k < a->count[i] || weights[k] == 0);
            sum += weights[k];
            unsigned_sum += abs(weights[k]);
        }
        REQUIRE(sum == STK_WEIGHT_ONE);
        REQUIRE(unsigned_sum == sum || (filter == STK_BICUBIC && unsigned_sum < 2 * sum));
    }
}

static void weights_are_shares_of_one(void) {
    stk_rng rng = stk_rng_make(5, STK_RNG_TEST, 0, 0);
    stk_resampler r = {0};
    stk_error err = {0};
    uint8_t out[MOST_SIZE * MOST_SIZE * 3];
    for (int i = 0; i < 3000; i++) {
        stk_image size_only = {.width = 1 + (int)stk_rng_below(&rng, 3000),
                               .height = 1 + (int)stk_rng_below(&rng, 3000)};
        stk_resample_task job = draw_job(&rng, &size_only, 1 + (int)stk_rng_below(&rng, MOST_SIZE));
        REQUIRE_OK(stk_resampler_begin(&r, &job, out, &err), &err);
        check_axis(&r.across, job.size, job.width, job.filter);
        check_axis(&r.down, job.size, job.height, job.filter);
        REQUIRE(check_failures == 0);
    }
    stk_resampler_free(&r);
}

/* ---- memory ---- */

static void memory_is_kept_between_pictures(void) {
    stk_resampler r = {0};
    stk_error err = {0};
    static uint8_t out[MOST_SIZE * MOST_SIZE * 3];
    stk_image large = noise(333, 251, 6);
    stk_image small = noise(61, 47, 7);
    stk_resample_task first = {.width = 333, .height = 251, .crop = {0, 0, 333, 251}, .size = 33};
    stk_resample_task then = {.width = 61, .height = 47, .crop = {1.5, 2, 50, 44}, .size = 20};
    REQUIRE_OK(feed(&r, &large, &first, 4, 0, out, &err), &err);
    stk_mem_fail_after(0);
    stk_status again = feed(&r, &large, &first, MIXED, 0, out, &err);
    stk_status smaller = feed(&r, &small, &then, MIXED, 0, out, &err);
    stk_mem_fail_after(-1);
    CHECK_INT(again, STK_OK);
    CHECK_INT(smaller, STK_OK);
    stk_resampler_free(&r);
    CHECK(r.window == NULL && r.middle == NULL && r.across.weights == NULL);
    stk_image_free(&large);
    stk_image_free(&small);
}

/* Neither more rows than the picture has, nor the memory of the largest picture for ever. */
static void memory_follows_the_picture(void) {
    stk_resampler r = {0};
    stk_error err = {0};
    static uint8_t out[MOST_SIZE * MOST_SIZE * 3];
    stk_image tall = noise(1000, 3000, 8);
    stk_image small = noise(64, 64, 9);
    stk_resample_task one = {.width = 1000, .height = 3000, .crop = {0, 0, 1000, 3000}, .size = 1};
    stk_resample_task then = {.width = 64, .height = 64, .crop = {0, 0, 64, 64}, .size = 32};
    REQUIRE_OK(feed(&r, &tall, &one, 16, 0, out, &err), &err);
    CHECK(r.window_bytes <= (size_t)3001 * 1000 * 3 + STK_KERNEL_SLACK);
    REQUIRE_OK(feed(&r, &small, &then, 16, 0, out, &err), &err);
    CHECK(r.window_bytes <= (size_t)65 * 64 * 3 + STK_KERNEL_SLACK);
    stk_resampler_free(&r);
    stk_image_free(&tall);
    stk_image_free(&small);
}

/*
 * The first request fails, then the second and so on; in between the resampler must work. With
 * `keep` it goes on with what the failed call left.
 */
static void check_lack_of_memory(const stk_image *image, const stk_resample_task *job, bool keep) {
    stk_resampler r = {0};
    static uint8_t expected[MOST_SIZE * MOST_SIZE * 3];
    static uint8_t out[MOST_SIZE * MOST_SIZE * 3];
    size_t bytes = 3 * (size_t)job->size * (size_t)job->size;
    stk_image tiny = noise(9, 7, 10);
    stk_resample_task small = {.width = 9, .height = 7, .crop = {0, 0, 9, 7}, .size = 5};
    stk_error err = {0};
    int64_t failed = 0;
    REQUIRE_OK(expect(image, job, expected, &err), &err);
    for (;; failed++) {
        stk_mem_fail_after(failed);
        stk_status status = feed(&r, image, job, 4, 0, out, &err);
        stk_mem_fail_after(-1);
        if (status == STK_OK) {
            break;
        }
        CHECK_INT(status, STK_ERR_MEMORY);
        CHECK(err.message[0] != '\0');
        stk_error_clear(&err);
        REQUIRE_OK(feed(&r, &tiny, &small, 4, 0, out, &err), &err);
        if (!keep) {
            stk_resampler_free(&r);
        }
        REQUIRE(failed < 100);
    }
    CHECK(failed >= (keep ? 1 : 8)); /* two axes of three blocks, the middle and the window */
    CHECK_INT(memcmp(out, expected, bytes), 0);
    stk_resampler_free(&r);
    stk_image_free(&tiny);
}

static void lack_of_memory_leaves_it_usable(void) {
    stk_rng rng = stk_rng_make(11, STK_RNG_TEST, 0, 0);
    stk_image image = noise(333, 251, 12);
    for (size_t i = 0; i < SIZES; i++) {
        stk_resample_task job = draw_job(&rng, &image, sizes[i]);
        check_lack_of_memory(&image, &job, false);
        check_lack_of_memory(&image, &job, true);
    }
    stk_image_free(&image);
}

static const check_test tests[] = {
    TEST(every_kernel_weighs_down_the_same), TEST(every_kernel_weighs_across_the_same),
    TEST(rows_may_come_in_any_number),       TEST(weights_are_shares_of_one),
    TEST(memory_is_kept_between_pictures),   TEST(memory_follows_the_picture),
    TEST(lack_of_memory_leaves_it_usable),
};

CHECK_MAIN(tests)
