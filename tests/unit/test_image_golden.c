/*
 * test_image_golden.c - decoding and scaling against what Pillow makes of the same files, once
 * from the whole picture and once from the part alone, as the loader decodes it. The pictures, the
 * expected squares and the script that made both are in tests/golden.
 */
#include "check.h"
#include "resize_picture.h"

#include "base/error.h"
#include "base/files/file.h"
#include "base/mem.h"
#include "base/text/csv.h"
#include "image/decode/decoders.h"
#include "image/image.h"

#define LIMIT 1.5 /* levels of 255, the mean over a square */

typedef struct golden_case {
    const char *file;
    stk_crop crop;
    int size; /* px */
    const char *expected;
    stk_interpolation filter;
} golden_case;

static stk_status read_bytes(const char *name, char **bytes, size_t *size, stk_error *err) {
    char *path = stk_path_join(STK_GOLDEN_FOLDER, name);
    stk_status status =
        path != NULL ? stk_file_read(path, 0, bytes, size, err) : STK_FAIL_MEMORY(err, "a path");
    stk_mem_free(path);
    return status;
}

static stk_status read_whole(const char *name, stk_image *image, stk_error *err) {
    char *bytes = NULL;
    size_t size = 0;
    stk_status status = read_bytes(name, &bytes, &size, err);
    if (status == STK_OK) {
        status = stk_image_decode((const uint8_t *)bytes, size, image, err);
    }
    stk_mem_free(bytes);
    return status;
}

/* Collects the rows of the part that a case is about. */
typedef struct collector {
    stk_crop crop;   /* in: of the picture; out: of the image below */
    stk_image image; /* owned by the caller: what the decoder gave */
    int rows;        /* of the part */
    int done;        /* rows that are there */
    bool turned;     /* the picture does not lie in the file as it stands */
} collector;

static stk_status begin_part(void *user, const stk_image_info *info, stk_image_part *part,
                             stk_error *err) {
    collector *c = user;
    c->turned = info->orientation != 1;
    *part = (stk_image_part){.divisor = 1,
                             .x = (int)c->crop.x,
                             .y = (int)c->crop.y,
                             .width = (int)c->crop.width,
                             .height = (int)c->crop.height};
    c->rows = part->height;
    c->crop.y = 0;
    return c->turned ? STK_FAIL(err, STK_ERR_DATA, "it is turned") : STK_OK;
}

static stk_status expect_rows(void *user, int x, int width, stk_error *err) {
    collector *c = user;
    c->crop.x -= x;
    return stk_image_new(&c->image, width, c->rows + STK_RECEIVER_ROWS, err);
}

static uint8_t *room_for_rows(void *user, int count) {
    collector *c = user;
    (void)count;
    return c->image.pixels + 3 * (size_t)c->image.width * (size_t)c->done;
}

static void take_rows(void *user, int count) {
    collector *c = user;
    c->done += count;
}

/* The picture becomes the part, and the case's crop moves with it. */
static stk_status read_part(golden_case *c, stk_image *image, bool *turned, stk_error *err) {
    collector collected = {.crop = c->crop};
    stk_image_receiver receiver = {.user = &collected,
                                   .begin = begin_part,
                                   .rows = expect_rows,
                                   .room = room_for_rows,
                                   .take = take_rows};
    char *bytes = NULL;
    size_t size = 0;
    stk_status status = read_bytes(c->file, &bytes, &size, err);
    if (status == STK_OK) {
        status = stk_image_receive((const uint8_t *)bytes, size, &receiver, err);
    }
    if (status == STK_OK && collected.done != collected.rows) {
        status = STK_FAIL(err, STK_ERR_DATA, "%d of %d rows came", collected.done, collected.rows);
    }
    stk_mem_free(bytes);
    *turned = collected.turned;
    *image = collected.image;
    image->height = collected.rows;
    c->crop = collected.crop;
    return status;
}

static golden_case row_of(const stk_csv *csv, size_t row) {
    double values[5];
    for (size_t i = 0; i < 5; i++) {
        values[i] = atof(stk_csv_cell(csv, row, i + 1));
    }
    return (golden_case){
        .file = stk_csv_cell(csv, row, 0),
        .crop = {values[0], values[1], values[2], values[3]},
        .size = (int)values[4],
        .expected = stk_csv_cell(csv, row, 6),
        .filter = strcmp(stk_csv_cell(csv, row, 7), "bicubic") == 0 ? STK_BICUBIC : STK_BILINEAR};
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
    if (out != NULL &&
        resize_picture(picture, c->crop, c->size, c->filter, false, out, err) == STK_OK) {
        sum = 0;
        for (size_t i = 0; i < count; i++) {
            sum += abs(out[i] - expected->pixels[i]);
        }
    }
    stk_mem_free(out);
    return sum / (double)count;
}

/* Compares; reports and gives a negative number when that is not possible. */
static double compare(const stk_image *picture, const golden_case *c, stk_error *err) {
    stk_image expected = {0};
    double mean = -1;
    if (read_whole(c->expected, &expected, err) == STK_OK) {
        mean = mean_difference(picture, &expected, c, err);
    }
    if (mean < 0) {
        CHECK_FAIL("%s cannot be compared with %s: %s", c->file, c->expected, err->message);
    } else if (mean >= LIMIT) {
        CHECK_FAIL("%s differs from %s by %.3f levels", c->file, c->expected, mean);
    }
    stk_image_free(&expected);
    return mean;
}

static double compare_whole(golden_case c) {
    stk_error err = {0};
    stk_image picture = {0};
    double mean = -1;
    if (read_whole(c.file, &picture, &err) == STK_OK) {
        mean = compare(&picture, &c, &err);
    } else {
        CHECK_FAIL("%s: %s", c.file, err.message);
    }
    stk_image_free(&picture);
    return mean;
}

/* A picture that is turned has its part elsewhere in the file: -1, and nothing is compared. */
static double compare_part(golden_case c) {
    stk_error err = {0};
    stk_image picture = {0};
    bool turned = false;
    double mean = -1;
    if (read_part(&c, &picture, &turned, &err) == STK_OK) {
        mean = compare(&picture, &c, &err);
    } else if (!turned) {
        CHECK_FAIL("%s: %s", c.file, err.message);
    }
    stk_image_free(&picture);
    return mean;
}

/* Runs a filter's cases whose file's name contains `kind`; says which differs most, how much. */
static double run_cases(const char *kind, stk_interpolation filter, double (*run)(golden_case c),
                        int least) {
    stk_error err = {0};
    stk_csv csv;
    double largest = -1;
    if (stk_csv_read(STK_GOLDEN_FOLDER "/cases.csv", &csv, &err) != STK_OK || csv.columns != 8) {
        CHECK_FAIL("the list of cases cannot be used: %s", err.message);
        return largest;
    }
    const char *where = "";
    int compared = 0;
    for (size_t row = 0; row < csv.rows; row++) {
        golden_case c = row_of(&csv, row);
        double mean = c.filter == filter && strstr(c.file, kind) != NULL ? run(c) : -1;
        compared += mean >= 0;
        if (mean > largest) {
            largest = mean;
            where = c.expected;
        }
    }
    printf("  largest mean difference of %d: %.3f levels, %s\n", compared, largest, where);
    CHECK(compared >= least);
    stk_csv_free(&csv);
    return largest;
}

static void whole_pictures_agree_with_pillow(void) {
    CHECK(run_cases("", STK_BILINEAR, compare_whole, 50) < LIMIT);
}

static void parts_agree_with_pillow(void) {
    CHECK(run_cases("", STK_BILINEAR, compare_part, 40) < LIMIT);
}

/* PNG decodes exactly, so only the filter's rounding is left. */
static void exact_pictures_agree_closely(void) {
    CHECK(run_cases(".png", STK_BILINEAR, compare_whole, 5) < 0.5);
    CHECK(run_cases(".png", STK_BILINEAR, compare_part, 5) < 0.5);
}

/* The same with the cubic, whose weights below zero leave the range of pixels on the way. */
static void the_cubic_agrees_with_pillow(void) {
    CHECK(run_cases("", STK_BICUBIC, compare_whole, 25) < LIMIT);
    CHECK(run_cases("", STK_BICUBIC, compare_part, 25) < LIMIT);
    CHECK(run_cases(".png", STK_BICUBIC, compare_whole, 5) < 0.5);
}

static const check_test tests[] = {
    TEST(whole_pictures_agree_with_pillow),
    TEST(parts_agree_with_pillow),
    TEST(exact_pictures_agree_closely),
    TEST(the_cubic_agrees_with_pillow),
};

CHECK_MAIN(tests)
