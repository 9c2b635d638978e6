/*
 * test_image_golden.c - decoding and scaling against what Pillow makes of the same files. The
 * pictures, the expected squares and the script that made both are in tests/golden.
 */
#include "check.h"

#include "base/csv.h"
#include "base/error.h"
#include "base/file.h"
#include "base/mem.h"
#include "image/image.h"

#define LIMIT 1.5 /* levels of 255, the mean over a square */

typedef struct golden_case {
    const char *file;
    stk_crop crop;
    int size; /* px */
    const char *expected;
} golden_case;

static stk_status read_picture(const char *name, stk_image *image, stk_error *err) {
    char *path = stk_path_join(STK_GOLDEN_FOLDER, name);
    char *bytes = NULL;
    size_t size = 0;
    stk_status status =
        path != NULL ? stk_file_read(path, 0, &bytes, &size, err) : STK_FAIL_MEMORY(err, "a path");
    if (status == STK_OK) {
        status = stk_image_decode((const uint8_t *)bytes, size, image, err);
    }
    stk_mem_free(bytes);
    stk_mem_free(path);
    return status;
}

static golden_case row_of(const stk_csv *csv, size_t row) {
    double values[5];
    for (size_t i = 0; i < 5; i++) {
        values[i] = atof(stk_csv_cell(csv, row, i + 1));
    }
    return (golden_case){.file = stk_csv_cell(csv, row, 0),
                         .crop = {values[0], values[1], values[2], values[3]},
                         .size = (int)values[4],
                         .expected = stk_csv_cell(csv, row, 6)};
}

/* The mean difference of a scaled picture to the expected one; negative when they do not compare.
 */
static double mean_difference(const stk_image *picture, const stk_image *expected,
                              const golden_case *c, stk_error *err) {
    if (expected->width != c->size || expected->height != c->size) {
        return -1;
    }
    size_t count = (size_t)c->size * (size_t)c->size * 3;
    uint8_t *out = stk_mem_raw(count, 1);
    double sum = -1;
    if (out != NULL && stk_image_resize(picture, c->crop, c->size, false, out, err) == STK_OK) {
        sum = 0;
        for (size_t i = 0; i < count; i++) {
            sum += abs(out[i] - expected->pixels[i]);
        }
    }
    stk_mem_free(out);
    return sum / (double)count;
}

/* One case; gives its mean difference, or a negative number when it failed and was reported. */
static double check_case(const golden_case *c) {
    stk_error err = {0};
    stk_image picture = {0};
    stk_image expected = {0};
    double mean = -1;
    if (read_picture(c->file, &picture, &err) == STK_OK &&
        read_picture(c->expected, &expected, &err) == STK_OK) {
        mean = mean_difference(&picture, &expected, c, &err);
    }
    if (mean < 0) {
        CHECK_FAIL("%s cannot be compared with %s: %s", c->file, c->expected, err.message);
    } else if (mean >= LIMIT) {
        CHECK_FAIL("%s differs from %s by %.3f levels", c->file, c->expected, mean);
    }
    stk_image_free(&expected);
    stk_image_free(&picture);
    return mean;
}

static void squares_agree_with_pillow(void) {
    stk_error err = {0};
    stk_csv csv;
    REQUIRE_OK(stk_csv_read(STK_GOLDEN_FOLDER "/cases.csv", &csv, &err), &err);
    double largest = -1;
    const char *where = "";
    for (size_t row = 0; csv.columns == 7 && row < csv.rows; row++) {
        golden_case c = row_of(&csv, row);
        double mean = check_case(&c);
        if (getenv("STK_TEST_SHOW") != NULL) {
            printf("  %.3f %s\n", mean, c.expected);
        }
        if (mean > largest) {
            largest = mean;
            where = c.expected;
        }
    }
    printf("  the largest mean difference is %.3f levels: %s\n", largest, where);
    CHECK(csv.rows >= 40);
    CHECK(largest >= 0);
    stk_csv_free(&csv);
}

/* PNG decodes exactly, so only the filter's rounding is left. */
static void squares_of_png_agree_closely(void) {
    stk_error err = {0};
    stk_csv csv;
    REQUIRE_OK(stk_csv_read(STK_GOLDEN_FOLDER "/cases.csv", &csv, &err), &err);
    int compared = 0;
    for (size_t row = 0; csv.columns == 7 && row < csv.rows; row++) {
        golden_case c = row_of(&csv, row);
        if (strstr(c.file, ".png") != NULL) {
            CHECK(check_case(&c) < 0.5);
            compared++;
        }
    }
    CHECK(compared > 0);
    stk_csv_free(&csv);
}

static const check_test tests[] = {
    TEST(squares_agree_with_pillow),
    TEST(squares_of_png_agree_closely),
};

CHECK_MAIN(tests)
