/* test_image_shrink.c - whole pictures, made smaller while they are decoded. */
#include "check.h"

#include "base/error.h"
#include "image_kinds.h"

static stk_image_scratch *bench_of(const stk_heavy_gate *gate) {
    stk_image_scratch *scratch = NULL;
    stk_error err = {0};
    if (stk_image_scratch_new(&scratch, gate, &err) != STK_OK) {
        printf("%s\n", err.message);
        exit(1);
    }
    return scratch;
}

static bool same_image(const stk_image *a, const stk_image *b) {
    return a->width == b->width && a->height == b->height &&
           memcmp(a->pixels, b->pixels, 3 * (size_t)a->width * (size_t)a->height) == 0;
}

static void what_fits_is_decoded_as_ever(void) {
    stk_error err = {0};
    stk_image_scratch *scratch = bench_of(NULL);
    for (size_t k = 0; k < FILE_KINDS; k++) {
        for (int orientation = 0; orientation <= 8; orientation += 3) {
            blob file = make_file(&file_kinds[k], 53, 38, orientation, k);
            stk_image whole = {0};
            REQUIRE_OK(stk_image_decode(file.bytes, file.size, &whole, &err), &err);
            static const int sides[] = {0, 53, 1000};
            for (int i = 0; i < 3; i++) {
                stk_image image = {0};
                REQUIRE_OK(stk_image_shrink(scratch, file.bytes, file.size, sides[i], &image, &err),
                           &err);
                if (!same_image(&whole, &image)) {
                    CHECK_FAIL("%s, orientation %d, at most %d px, gives other pixels",
                               file_kinds[k].name, orientation, sides[i]);
                }
                stk_image_free(&image);
            }
            stk_image_free(&whole);
            free_blob(&file);
        }
    }
    stk_image_scratch_free(scratch);
}

static void proportions_are_kept(void) {
    static const int cases[][5] = {/* width, height, most, and what comes out */
                                   {500, 375, 500, 500, 375},  {1000, 750, 500, 500, 375},
                                   {750, 1000, 500, 375, 500}, {501, 500, 500, 500, 499},
                                   {4000, 3, 500, 500, 1},     {3, 4000, 10, 1, 10},
                                   {64, 64, 1, 1, 1},          {7, 5, 6, 6, 4},
                                   {1600, 1066, 500, 500, 333}};
    stk_error err = {0};
    stk_image_scratch *scratch = bench_of(NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int *c = cases[i];
        stk_image scene = quarters(c[0], c[1]);
        blob files[2] = {make_rgb_jpeg(&scene, false), make_rgb_png(&scene, 0)};
        for (int f = 0; f < 2; f++) {
            stk_image image = {0};
            REQUIRE_OK(stk_image_shrink(scratch, files[f].bytes, files[f].size, c[2], &image, &err),
                       &err);
            CHECK_INT(image.width, c[3]);
            CHECK_INT(image.height, c[4]);
            stk_image_free(&image);
            free_blob(&files[f]);
        }
        stk_image_free(&scene);
    }
    stk_image_scratch_free(scratch);
}

/* The filter in floating point, from its definition; x and y have scales of their own. */
static double reference(const stk_image *image, const stk_image *small, int i, int j, int channel) {
    double scale_x = (double)image->width / small->width;
    double scale_y = (double)image->height / small->height;
    double sum = 0;
    double total = 0;
    for (int y = 0; y < image->height; y++) {
        for (int x = 0; x < image->width; x++) {
            double w = fmax(0, 1 - fabs(x + 0.5 - (i + 0.5) * scale_x) / fmax(1, scale_x)) *
                       fmax(0, 1 - fabs(y + 0.5 - (j + 0.5) * scale_y) / fmax(1, scale_y));
            sum += w * pixel(image, x, y)[channel];
            total += w;
        }
    }
    return sum / total;
}

static void scaling_is_a_weighted_mean(void) {
    static const int shapes[][3] = {{37, 22, 19}, {20, 61, 13}, {40, 40, 39}, {64, 3, 9}};
    stk_error err = {0};
    stk_image_scratch *scratch = bench_of(NULL);
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        stk_image image = noise(shapes[s][0], shapes[s][1], s);
        blob file = make_rgb_png(&image, (int)s % 2);
        stk_image small = {0};
        REQUIRE_OK(stk_image_shrink(scratch, file.bytes, file.size, shapes[s][2], &small, &err),
                   &err);
        for (int j = 0; j < small.height; j++) {
            for (int i = 0; i < small.width; i++) {
                for (int c = 0; c < 3; c++) {
                    CHECK_NEAR(pixel(&small, i, j)[c], reference(&image, &small, i, j, c), 1.0);
                }
            }
        }
        stk_image_free(&small);
        free_blob(&file);
        stk_image_free(&image);
    }
    stk_image_scratch_free(scratch);
}

static void pictures_of_every_orientation_stand_upright(void) {
    stk_error err = {0};
    stk_image_scratch *scratch = bench_of(NULL);
    stk_image scene = quarters(640, 400);
    stk_image expected = quarters(100, 63); /* 62.5, rounded up */
    for (int orientation = 1; orientation <= 8; orientation++) {
        stk_image stored = store(&scene, orientation);
        blob plain = make_rgb_jpeg(&stored, false);
        blob tagged = with_exif(plain, orientation, orientation % 2 == 0);
        stk_image image = {0};
        REQUIRE_OK(stk_image_shrink(scratch, tagged.bytes, tagged.size, 100, &image, &err), &err);
        if (!near_image(&image, &expected, 8)) {
            CHECK_FAIL("orientation %d gives %d x %d px that do not stand upright", orientation,
                       image.width, image.height);
        }
        stk_image_free(&image);
        stk_image_free(&stored);
        free_blob(&plain);
        free_blob(&tagged);
    }
    stk_image_free(&expected);
    stk_image_free(&scene);
    stk_image_scratch_free(scratch);
}

static void every_kind_can_be_made_smaller(void) {
    stk_error err = {0};
    stk_image_scratch *scratch = bench_of(NULL);
    for (size_t k = 0; k < FILE_KINDS; k++) {
        blob file = make_file(&file_kinds[k], 203, 155, 0, k);
        stk_image image = {0};
        stk_image whole = {0};
        REQUIRE_OK(stk_image_shrink(scratch, file.bytes, file.size, 20, &image, &err), &err);
        REQUIRE_OK(stk_image_decode(file.bytes, file.size, &whole, &err), &err);
        CHECK_INT(image.width, 20);
        CHECK_INT(image.height, 15);
        /* The mean of all pixels stays. */
        double means[2] = {0, 0};
        for (int i = 0; i < 203 * 155 * 3; i++) {
            means[0] += whole.pixels[i] / (203.0 * 155 * 3);
        }
        for (int i = 0; i < 20 * 15 * 3; i++) {
            means[1] += image.pixels[i] / (20.0 * 15 * 3);
        }
        CHECK_NEAR(means[1], means[0], 3.0);
        stk_image_free(&whole);
        stk_image_free(&image);
        free_blob(&file);
    }
    stk_image_scratch_free(scratch);
}

typedef struct gate_log {
    int entered;
    int left;
    bool refuse;
} gate_log;

static stk_status note_enter(void *user, uint64_t bytes, stk_error *err) {
    gate_log *log = user;
    log->entered++;
    CHECK(bytes >= STK_IMAGE_HEAVY_BYTES);
    return log->refuse ? STK_FAIL(err, STK_ERR_STOPPED, "closed") : STK_OK;
}

static void note_leave(void *user) {
    gate_log *log = user;
    log->left++;
}

static void large_pictures_pass_the_gate(void) {
    gate_log log = {0};
    stk_error err = {0};
    stk_heavy_gate gate = {.user = &log, .enter = note_enter, .leave = note_leave};
    stk_image_scratch *scratch = bench_of(&gate);
    stk_image scene = quarters(5000, 4600); /* 69 MB */
    blob file = make_rgb_jpeg(&scene, false);
    stk_image image = {0};
    REQUIRE_OK(stk_image_shrink(scratch, file.bytes, file.size, 500, &image, &err), &err);
    CHECK_INT(log.entered, 0); /* it is never there as a whole */
    stk_image_free(&image);
    REQUIRE_OK(stk_image_shrink(scratch, file.bytes, file.size, 0, &image, &err), &err);
    CHECK_INT(log.entered, 1);
    CHECK_INT(log.left, 1);
    stk_image_free(&image);
    log.refuse = true;
    CHECK_INT(stk_image_shrink(scratch, file.bytes, file.size, 0, &image, &err), STK_ERR_STOPPED);
    CHECK_INT(log.left, 1);
    CHECK(image.pixels == NULL);
    free_blob(&file);
    stk_image_free(&scene);
    stk_image_scratch_free(scratch);
}

static void damage_and_lack_of_memory(void) {
    stk_image scene = quarters(200, 150);
    blob jpeg = make_rgb_jpeg(&scene, false);
    blob turned = with_exif(jpeg, 6, true);
    stk_image image = {0};
    stk_error err = {0};
    stk_image_scratch *scratch = bench_of(NULL);
    CHECK_INT(stk_image_shrink(scratch, jpeg.bytes, jpeg.size / 5, 50, &image, &err), STK_ERR_DATA);
    CHECK(image.pixels == NULL);
    stk_error_clear(&err);
    CHECK_INT(stk_image_shrink(scratch, (const uint8_t *)"words", 5, 50, &image, &err),
              STK_ERR_DATA);
    int64_t failed = 0;
    for (;; failed++) {
        stk_error_clear(&err);
        stk_image_scratch_free(scratch);
        scratch = bench_of(NULL);
        stk_mem_fail_after(failed);
        stk_status status = stk_image_shrink(scratch, turned.bytes, turned.size, 50, &image, &err);
        stk_mem_fail_after(-1);
        if (status == STK_OK) {
            stk_image_free(&image);
            break;
        }
        CHECK_INT(status, STK_ERR_MEMORY);
        CHECK(image.pixels == NULL);
        REQUIRE(failed < 100);
    }
    CHECK(failed >= 5);
    free_blob(&jpeg);
    free_blob(&turned);
    stk_image_free(&scene);
    stk_image_scratch_free(scratch);
}

static void extensions_follow_the_bytes(void) {
    for (size_t k = 0; k < FILE_KINDS; k++) {
        static const char *const extensions[] = {"jpg", "png", "webp"};
        blob file = make_file(&file_kinds[k], 20, 16, 0, k);
        CHECK_STR(stk_image_extension(file.bytes, file.size), extensions[file_kinds[k].format]);
        free_blob(&file);
    }
    CHECK(stk_image_extension((const uint8_t *)"GIFTS...", 8) == NULL);
    CHECK(stk_image_extension((const uint8_t *)"", 0) == NULL);
}

static const check_test tests[] = {
    TEST(what_fits_is_decoded_as_ever),   TEST(proportions_are_kept),
    TEST(scaling_is_a_weighted_mean),     TEST(pictures_of_every_orientation_stand_upright),
    TEST(every_kind_can_be_made_smaller), TEST(large_pictures_pass_the_gate),
    TEST(damage_and_lack_of_memory),      TEST(extensions_follow_the_bytes),
};

CHECK_MAIN(tests)
