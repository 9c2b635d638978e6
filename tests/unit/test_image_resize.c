/* test_image_resize.c - scaling and the choice of the part: exactness, bounds, determinism. */
#include "check.h"
#include "resize_picture.h"

#include "base/error.h"
#include "base/mem.h"
#include "base/numbers/rng.h"
#include "image/image.h"

static stk_image noise(int width, int height, uint64_t seed) {
    stk_image image = {0};
    if (stk_image_new(&image, width, height, NULL) != STK_OK) {
        exit(1);
    }
    stk_rng rng = stk_rng_make(seed, STK_RNG_TEST, 0, 0);
    for (int i = 0; i < width * height * 3; i++) {
        image.pixels[i] = (uint8_t)stk_rng_below(&rng, 256);
    }
    return image;
}

static stk_crop whole(const stk_image *image) {
    return (stk_crop){0, 0, image->width, image->height};
}

static const stk_interpolation filters[] = {STK_BILINEAR, STK_BICUBIC};
#define FILTERS 2

/* A filter's height at the distance t from its middle: the triangle, or Keys' cubic, a = -0.5. */
static double height_at(stk_interpolation filter, double t) {
    t = fabs(t);
    if (filter == STK_BILINEAR) {
        return fmax(0, 1 - t);
    }
    double far = t < 2 ? ((-0.5 * t + 2.5) * t - 4) * t + 2 : 0;
    return t < 1 ? (1.5 * t - 2.5) * t * t + 1 : far;
}

/* The same filter in floating point, straight from its definition; it stays inside the crop. */
static double reference(const stk_image *image, stk_crop crop, int size, stk_interpolation filter,
                        int i, int j, int channel) {
    double scale_x = crop.width / size;
    double scale_y = crop.height / size;
    double centre_x = crop.x + (i + 0.5) * scale_x;
    double centre_y = crop.y + (j + 0.5) * scale_y;
    double wide = fmax(1, scale_x);
    double high = fmax(1, scale_y);
    double sum = 0;
    double total = 0;
    for (int y = (int)crop.y; y < crop.y + crop.height; y++) {
        for (int x = (int)crop.x; x < crop.x + crop.width; x++) {
            double w = height_at(filter, (x + 0.5 - centre_x) / wide) *
                       height_at(filter, (y + 0.5 - centre_y) / high);
            sum += w * image->pixels[3 * (y * image->width + x) + channel];
            total += w;
        }
    }
    return fmin(fmax(sum / total, 0), 255);
}

static void scale_of_one_copies(void) {
    stk_error err = {0};
    for (int size = 1; size <= 33; size += 2) {
        stk_image image = noise(size, size, 1);
        uint8_t out[33 * 33 * 3];
        stk_interpolation filter = filters[size / 2 % FILTERS];
        REQUIRE_OK(resize_picture(&image, whole(&image), size, filter, false, out, &err), &err);
        CHECK_INT(memcmp(out, image.pixels, (size_t)(size * size * 3)), 0);
        stk_image_free(&image);
    }
}

static void whole_pixel_crop_copies(void) {
    stk_error err = {0};
    stk_image image = noise(40, 30, 2);
    uint8_t out[8 * 8 * 3];
    REQUIRE_OK(resize_picture(&image, (stk_crop){31, 21, 8, 8}, 8, STK_BILINEAR, false, out, &err),
               &err);
    for (int y = 0; y < 8; y++) {
        CHECK_INT(memcmp(out + y * 24, image.pixels + 3 * ((y + 21) * 40 + 31), 24), 0);
    }
    stk_image_free(&image);
}

static void constant_stays_constant(void) {
    stk_error err = {0};
    static const int sides[][2] = {{1, 1}, {3, 200}, {500, 2}, {97, 61}, {640, 480}};
    static const int sizes[] = {1, 5, 64, 130};
    uint8_t out[130 * 130 * 3];
    for (size_t i = 0; i < sizeof sides / sizeof *sides; i++) {
        stk_image image = noise(sides[i][0], sides[i][1], 3);
        for (int value = 0; value <= 255; value += 51) {
            memset(image.pixels, value, (size_t)image.width * (size_t)image.height * 3);
            for (size_t j = 0; j < 4 * FILTERS; j++) {
                int size = sizes[j % 4];
                REQUIRE_OK(
                    resize_picture(&image, whole(&image), size, filters[j / 4], false, out, &err),
                    &err);
                for (int k = 0; k < size * size * 3; k++) {
                    REQUIRE(out[k] == value);
                }
            }
        }
        stk_image_free(&image);
    }
}

static void check_definition(stk_interpolation filter) {
    stk_error err = {0};
    stk_image image = noise(61, 47, 4);
    static const stk_crop crops[] = {
        {0, 0, 61, 47}, {3.25, 10.5, 40.75, 20.125}, {20, 20, 5, 7}, {0.4, 0.6, 60.1, 46.2}};
    uint8_t out[24 * 24 * 3];
    for (size_t k = 0; k < sizeof crops / sizeof *crops; k++) {
        REQUIRE_OK(resize_picture(&image, crops[k], 24, filter, false, out, &err), &err);
        double worst = 0;
        for (int i = 0; i < 24 * 24 * 3; i++) {
            double expected = reference(&image, crops[k], 24, filter, i / 3 % 24, i / 72, i % 3);
            worst = fmax(worst, fabs(out[i] - expected));
        }
        CHECK(worst < 0.7); /* half a step is the rounding of the result */
    }
    stk_image_free(&image);
}

static void agrees_with_the_definition(void) {
    for (int f = 0; f < FILTERS; f++) {
        check_definition(filters[f]);
    }
}

static void flip_mirrors(void) {
    stk_error err = {0};
    stk_image image = noise(51, 39, 5);
    uint8_t plain[20 * 20 * 3];
    uint8_t mirrored[20 * 20 * 3];
    stk_crop crop = {2.5, 1.25, 41, 30};
    REQUIRE_OK(resize_picture(&image, crop, 20, STK_BILINEAR, false, plain, &err), &err);
    REQUIRE_OK(resize_picture(&image, crop, 20, STK_BILINEAR, true, mirrored, &err), &err);
    for (int y = 0; y < 20; y++) {
        for (int x = 0; x < 20; x++) {
            CHECK_INT(memcmp(plain + 3 * (20 * y + x), mirrored + 3 * (20 * y + 19 - x), 3), 0);
        }
    }
    stk_image_free(&image);
}

static void crop_outside_is_clamped(void) {
    stk_error err = {0};
    stk_image image = noise(30, 20, 6);
    uint8_t out[16 * 16 * 3];
    uint8_t expected[16 * 16 * 3];
    REQUIRE_OK(resize_picture(&image, whole(&image), 16, STK_BILINEAR, false, expected, &err),
               &err);
    REQUIRE_OK(
        resize_picture(&image, (stk_crop){-7, -9, 1000, 1e300}, 16, STK_BILINEAR, false, out, &err),
        &err);
    CHECK_INT(memcmp(out, expected, sizeof out), 0);
    static const stk_crop odd[] = {
        {500, 500, 10, 10},     {-50, -50, 10, 10},    {5, 5, 0, 0},    {5, 5, -3, -3},
        {29.999, 19.999, 1, 1}, {0, 0, NAN, INFINITY}, {NAN, NAN, 5, 5}};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        REQUIRE_OK(resize_picture(&image, odd[i], 16, STK_BILINEAR, i % 2 == 0, out, &err), &err);
    }
    /* A crop right of and below the picture is its last pixel. */
    REQUIRE_OK(resize_picture(&image, odd[0], 16, STK_BILINEAR, false, out, &err), &err);
    CHECK_INT(memcmp(out, image.pixels + 3 * (30 * 20 - 1), 3), 0);
    stk_image_free(&image);
}

static void sizes_out_of_range_are_refused(void) {
    stk_error err = {0};
    stk_image image = noise(4, 4, 7);
    uint8_t out[3];
    CHECK_INT(resize_picture(&image, whole(&image), 0, STK_BILINEAR, false, out, &err),
              STK_ERR_USAGE);
    CHECK_CONTAINS(err.message, "0 px");
    CHECK_INT(resize_picture(&image, whole(&image), 1 << 20, STK_BILINEAR, false, out, NULL),
              STK_ERR_USAGE);
    stk_image_free(&image);
}

/* A line of pixels as long as allowed must not overflow the sums of weights. */
static void extreme_shapes_scale(void) {
    stk_error err = {0};
    stk_image image = {0};
    REQUIRE_OK(stk_image_new(&image, 20000000, 1, &err), &err);
    memset(image.pixels, 90, (size_t)image.width * 3);
    memset(image.pixels, 10, (size_t)image.width * 3 / 2);
    uint8_t out[2 * 2 * 3];
    REQUIRE_OK(resize_picture(&image, whole(&image), 2, STK_BILINEAR, false, out, &err), &err);
    CHECK_NEAR(out[0], 20, 8); /* the triangle reaches into the other half */
    CHECK_NEAR(out[3], 80, 8);
    CHECK_INT(out[0] + out[3], 100);
    stk_image_free(&image);
}

static bool inside(stk_crop crop, int width, int height) {
    return crop.x >= 0 && crop.y >= 0 && crop.width > 0 && crop.height > 0 &&
           crop.x + crop.width <= width + 1e-9 && crop.y + crop.height <= height + 1e-9;
}

static void draws_stay_inside(void) {
    static const int sides[][2] = {{1, 1}, {1, 300}, {300, 1}, {17, 900}, {512, 384}, {2, 3}};
    for (size_t i = 0; i < sizeof sides / sizeof *sides; i++) {
        for (uint64_t j = 0; j < 2000; j++) {
            stk_transform transform = {
                .size = 32,
                .train = j % 10 != 0,
                .augment = {.crop_scale = j % 3 == 0 ? 0.05 : 0.35, .flip = true},
                .crop_fraction = 0.875,
                .view = (int)(j / 10) % STK_TRANSFORM_VIEWS};
            stk_rng rng = stk_rng_make(9, STK_RNG_AUGMENT, i, j);
            bool flip;
            stk_crop crop = stk_transform_draw(&transform, sides[i][0], sides[i][1], &rng, &flip);
            REQUIRE(inside(crop, sides[i][0], sides[i][1]));
        }
    }
}

static void draws_follow_their_limits(void) {
    stk_transform transform = {
        .size = 32, .train = true, .augment = {.crop_scale = 0.35, .flip = true}};
    int flips = 0;
    double least = 1;
    double most = 0;
    double least_aspect = 9;
    double most_aspect = 0;
    for (uint64_t j = 0; j < 4000; j++) {
        stk_rng rng = stk_rng_make(10, STK_RNG_AUGMENT, 0, j);
        bool flip;
        stk_crop crop = stk_transform_draw(&transform, 500, 500, &rng, &flip);
        flips += flip;
        double share = crop.width * crop.height / 250000;
        least = fmin(least, share);
        most = fmax(most, share);
        least_aspect = fmin(least_aspect, crop.width / crop.height);
        most_aspect = fmax(most_aspect, crop.width / crop.height);
    }
    CHECK(flips > 1800 && flips < 2200);
    CHECK_NEAR(least, 0.35, 0.01);
    CHECK(most > 0.95 && most <= 1);
    CHECK_NEAR(least_aspect, 0.75, 0.02);
    CHECK_NEAR(most_aspect, 1.3333, 0.02);

    transform.augment.flip = false;
    transform.train = true;
    for (uint64_t j = 0; j < 50; j++) {
        stk_rng rng = stk_rng_make(11, STK_RNG_AUGMENT, 0, j);
        bool flip;
        (void)stk_transform_draw(&transform, 50, 50, &rng, &flip);
        CHECK(!flip);
    }
}

static void evaluation_takes_the_centre(void) {
    stk_transform transform = {.size = 32, .crop_fraction = 0.5, .augment = {.flip = true}};
    stk_rng rng = stk_rng_make(1, STK_RNG_AUGMENT, 0, 0);
    bool flip = true;
    stk_crop crop = stk_transform_draw(&transform, 200, 100, &rng, &flip);
    CHECK(!flip);
    CHECK_NEAR(crop.width, 50, 0);
    CHECK_NEAR(crop.height, 50, 0);
    CHECK_NEAR(crop.x, 75, 0);
    CHECK_NEAR(crop.y, 25, 0);
    CHECK_INT(rng.counter, 0);
}

static void evaluation_has_further_views(void) {
    static const double expected[STK_TRANSFORM_VIEWS / 2][3] = {
        {75, 25, 50}, {77.5, 27.5, 45}, {75, 25, 45}, {80, 30, 45}}; /* x, y, side */
    for (int view = 0; view < STK_TRANSFORM_VIEWS; view++) {
        stk_transform transform = {.size = 32, .crop_fraction = 0.5, .view = view};
        stk_rng rng = stk_rng_make(1, STK_RNG_AUGMENT, 0, 0);
        bool flip = false;
        stk_crop crop = stk_transform_draw(&transform, 200, 100, &rng, &flip);
        CHECK_INT(flip, view % 2);
        CHECK_NEAR(crop.x, expected[view / 2][0], 1e-12);
        CHECK_NEAR(crop.y, expected[view / 2][1], 1e-12);
        CHECK_NEAR(crop.width, expected[view / 2][2], 1e-12);
        CHECK_NEAR(crop.height, expected[view / 2][2], 1e-12);
        CHECK_INT(rng.counter, 0);
    }
}

static void apply_depends_on_the_generator_alone(void) {
    stk_error err = {0};
    stk_image image = noise(90, 70, 12);
    uint8_t *jpeg = NULL;
    size_t size = 0;
    REQUIRE_OK(stk_image_encode_jpeg(&image, 90, &jpeg, &size, &err), &err);
    stk_transform transform = {
        .size = 32, .train = true, .augment = {.crop_scale = 0.2, .flip = true}};
    uint8_t a[32 * 32 * 3];
    uint8_t b[32 * 32 * 3];
    stk_rng rng = stk_rng_make(13, STK_RNG_AUGMENT, 2, 7);
    stk_image_scratch *scratch = NULL;
    REQUIRE_OK(stk_image_scratch_new(&scratch, NULL, &err), &err);
    REQUIRE_OK(stk_transform_apply(scratch, &transform, jpeg, size, rng, a, NULL, &err), &err);
    REQUIRE_OK(stk_transform_apply(scratch, &transform, jpeg, size, rng, b, NULL, &err), &err);
    CHECK_INT(memcmp(a, b, sizeof a), 0);
    rng = stk_rng_make(13, STK_RNG_AUGMENT, 3, 7);
    REQUIRE_OK(stk_transform_apply(scratch, &transform, jpeg, size, rng, b, NULL, &err), &err);
    CHECK(memcmp(a, b, sizeof a) != 0);
    CHECK_INT(stk_transform_apply(scratch, &transform, jpeg, 10, rng, b, NULL, &err), STK_ERR_DATA);

    int64_t failed = 0;
    for (;; failed++) {
        stk_error_clear(&err);
        stk_image_scratch_free(scratch);
        REQUIRE_OK(stk_image_scratch_new(&scratch, NULL, &err), &err);
        stk_mem_fail_after(failed);
        stk_status status =
            stk_transform_apply(scratch, &transform, jpeg, size, rng, a, NULL, &err);
        stk_mem_fail_after(-1);
        if (status == STK_OK) {
            break;
        }
        CHECK_INT(status, STK_ERR_MEMORY);
    }
    CHECK(failed >= 5);
    CHECK_INT(memcmp(a, b, sizeof a), 0);
    stk_image_scratch_free(scratch);
    stk_mem_free(jpeg);
    stk_image_free(&image);
}

static const check_test tests[] = {
    TEST(scale_of_one_copies),
    TEST(whole_pixel_crop_copies),
    TEST(constant_stays_constant),
    TEST(agrees_with_the_definition),
    TEST(flip_mirrors),
    TEST(crop_outside_is_clamped),
    TEST(sizes_out_of_range_are_refused),
    TEST(extreme_shapes_scale),
    TEST(draws_stay_inside),
    TEST(draws_follow_their_limits),
    TEST(evaluation_takes_the_centre),
    TEST(evaluation_has_further_views),
    TEST(apply_depends_on_the_generator_alone),
};

CHECK_MAIN(tests)
