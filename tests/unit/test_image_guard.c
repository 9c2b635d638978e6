/*
 * test_image_guard.c - pictures that need much memory or time, and files that end too early.
 */
#include "check.h"
#include "image_kinds.h"

#include "base/error.h"

#define SIZE 32

/* A plain picture in the least of bytes: all rows are one row. */
static blob make_flat_jpeg(int width, int height, bool progressive) {
    stk_image image = quarters(width, height);
    memset(image.pixels, 120, (size_t)width * (size_t)height * 3);
    blob jpeg = make_rgb_jpeg(&image, progressive);
    stk_image_free(&image);
    return jpeg;
}

/* ---- the gate ---- */

typedef struct gate_log {
    int entered;
    int left;
    uint64_t bytes; /* of the last one that entered */
    bool refuses;
} gate_log;

static stk_status enter(void *user, uint64_t bytes, stk_error *err) {
    gate_log *log = user;
    if (log->refuses) {
        return STK_FAIL(err, STK_ERR_DATA, "the gate is closed");
    }
    log->entered++;
    log->bytes = bytes;
    return STK_OK;
}

static void leave(void *user) {
    gate_log *log = user;
    log->left++;
}

static stk_status apply(stk_image_scratch *scratch, blob file, stk_error *err) {
    uint8_t out[SIZE * SIZE * 3];
    stk_transform transform = {
        .size = SIZE, .train = true, .augment = {.crop_scale = 0.2, .flip = true}};
    stk_rng rng = stk_rng_make(1, STK_RNG_AUGMENT, 0, 0);
    return stk_transform_apply(scratch, &transform, file.bytes, file.size, rng, out, NULL, err);
}

/*
 * 4800 x 4672 px of 4:2:0 are 525,600 blocks of 128 bytes, which is just above the limit; 16 rows
 * less are not.
 */
static void only_heavy_pictures_pass_the_gate(void) {
    stk_error err = {0};
    gate_log log = {0};
    stk_heavy_gate gate = {&log, enter, leave};
    stk_image_scratch *scratch = NULL;
    blob heavy[2] = {make_flat_jpeg(4800, 4672, true),
                     make_flat_png(4800, 4800, PNG_INTERLACE_ADAM7)};
    blob light[3] = {make_flat_jpeg(4800, 4672, false), make_flat_jpeg(4800, 4656, true),
                     make_flat_png(4800, 4800, PNG_INTERLACE_NONE)};
    REQUIRE_OK(stk_image_scratch_new(&scratch, &gate, &err), &err);
    for (int i = 0; i < 3; i++) {
        REQUIRE_OK(apply(scratch, light[i], &err), &err);
        CHECK_INT(log.entered, 0);
        free_blob(&light[i]);
    }
    static const uint64_t needed[2] = {(uint64_t)525600 * 128, (uint64_t)4800 * 4800 * 3};
    for (int i = 0; i < 2; i++) {
        REQUIRE_OK(apply(scratch, heavy[i], &err), &err);
        CHECK_INT(log.entered, i + 1);
        CHECK_INT(log.left, i + 1);
        CHECK_INT(log.bytes, needed[i]);
        CHECK(needed[i] >= STK_IMAGE_HEAVY_BYTES);
    }
    log.refuses = true;
    for (int i = 0; i < 2; i++) {
        stk_error_clear(&err);
        CHECK_INT(apply(scratch, heavy[i], &err), STK_ERR_DATA);
        CHECK_STR(err.message, "the gate is closed");
        free_blob(&heavy[i]);
    }
    CHECK_INT(log.entered, 2);
    CHECK_INT(log.left, 2);
    stk_image_scratch_free(scratch);
}

/* Cut off at many places, then without memory: who came in goes out, once. */
static void the_gate_is_left_after_failures(void) {
    stk_error err = {0};
    gate_log log = {0};
    stk_heavy_gate gate = {&log, enter, leave};
    stk_image_scratch *scratch = NULL;
    blob jpeg = make_flat_jpeg(4800, 4672, true);
    REQUIRE_OK(stk_image_scratch_new(&scratch, &gate, &err), &err);
    int failures = 0;
    for (size_t part = 0; part < 8; part++) {
        int before = log.entered;
        stk_error_clear(&err);
        blob cut = {jpeg.bytes, 700 + part * (jpeg.size / 30)};
        failures += apply(scratch, cut, &err) != STK_OK && log.entered > before;
        CHECK_INT(log.left, log.entered);
    }
    CHECK(failures >= 1);
    for (int64_t requests = 0; requests < 6; requests++) {
        stk_image_scratch_free(scratch);
        stk_error_clear(&err);
        REQUIRE_OK(stk_image_scratch_new(&scratch, &gate, &err), &err);
        int before = log.entered;
        stk_mem_fail_after(requests);
        stk_status status = apply(scratch, jpeg, &err);
        stk_mem_fail_after(-1);
        CHECK_INT(status, STK_ERR_MEMORY);
        CHECK_INT(log.entered, before + 1);
        CHECK_INT(log.left, log.entered);
    }
    free_blob(&jpeg);
    stk_image_scratch_free(scratch);
}

/* How often memory must be asked for until the file can be decoded. */
static int64_t requests_for(const blob *file) {
    for (int64_t requests = 0; requests < 1000; requests++) {
        stk_image image = {0};
        stk_error err = {0};
        stk_mem_fail_after(requests);
        stk_status status = stk_image_decode(file->bytes, file->size, &image, &err);
        stk_mem_fail_after(-1);
        stk_image_free(&image);
        if (status == STK_OK) {
            return requests;
        }
    }
    return -1;
}

/* Some thousand such texts in a file of a few megabytes would be gigabytes in memory. */
static void texts_in_a_png_take_no_memory(void) {
#ifdef PNG_HANDLE_AS_UNKNOWN_SUPPORTED
    const uint8_t rows[8 * 8 * 3] = {0};
    png_kind kind = {.depth = 8, .colour = PNG_COLOR_TYPE_RGB};
    blob plain = make_png(rows, 24, 8, 8, kind);
    kind.texts = 50;
    blob wordy = make_png(rows, 24, 8, 8, kind);
    CHECK(wordy.size > plain.size + 50 * 20);
    CHECK(requests_for(&plain) > 0);
    CHECK_INT(requests_for(&wordy), requests_for(&plain));
    free_blob(&plain);
    free_blob(&wordy);
#else
    CHECK_SKIP("this libpng cannot pass over chunks");
#endif
}

/* ---- time ---- */

/* One nanosecond is over as soon as the clock is looked at; without a limit all of them pass. */
static void slow_pictures_are_refused(void) {
    blob files[4] = {make_flat_jpeg(1000, 1600, true), make_flat_jpeg(600, 1600, false),
                     make_flat_png(500, 900, PNG_INTERLACE_NONE),
                     make_flat_png(500, 900, PNG_INTERLACE_ADAM7)};
    for (int i = 0; i < 4; i++) {
        stk_error err = {0};
        catcher in_time = {.part.divisor = 1};
        REQUIRE_OK(catch_part(&in_time, &files[i], 0, &err), &err);
        catcher overdue = {.part.divisor = 1};
        CHECK_INT(catch_part(&overdue, &files[i], 1, &err), STK_ERR_DATA);
        CHECK_CONTAINS(err.message, i < 2 ? "the JPEG takes too long" : "the PNG takes too long");
        stk_image_free(&in_time.rows);
        stk_image_free(&overdue.rows);
        free_blob(&files[i]);
    }
}

/* All colours' means in one scan, then one coefficient of one colour in each. */
static blob make_jpeg_of_scans(const stk_image *image, int count) {
    jpeg_scan_info scans[1 + 3 * 63] = {{.comps_in_scan = 3, .component_index = {0, 1, 2}}};
    for (int i = 1; i < count; i++) {
        scans[i] = (jpeg_scan_info){.comps_in_scan = 1,
                                    .component_index = {(i - 1) / 63},
                                    .Ss = 1 + (i - 1) % 63,
                                    .Se = 1 + (i - 1) % 63};
    }
    jpeg_kind kind = {.in = JCS_RGB, .out = JCS_YCbCr, .scans = scans, .scan_count = count};
    return make_jpeg(image->pixels, image->width, image->height, 3, kind);
}

static void more_scans_than_any_camera_writes_are_refused(void) {
    static const int counts[] = {2, 64, 100, 101, 190};
    stk_image scene = noise(40, 24, 1);
    stk_image_scratch *scratch = NULL;
    stk_error err = {0};
    REQUIRE_OK(stk_image_scratch_new(&scratch, NULL, &err), &err);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        blob jpeg = make_jpeg_of_scans(&scene, counts[i]);
        stk_image image = {0};
        stk_status expected = counts[i] > 100 ? STK_ERR_DATA : STK_OK;
        CHECK_INT(stk_image_decode(jpeg.bytes, jpeg.size, &image, &err), expected);
        CHECK_INT(apply(scratch, jpeg, &err), expected);
        if (expected != STK_OK) {
            CHECK_CONTAINS(err.message, "more than 100 scans");
        }
        stk_image_free(&image);
        free_blob(&jpeg);
    }
    stk_image_scratch_free(scratch);
    stk_image_free(&scene);
}

/* ---- files that were cut off ---- */

/* Up to which row the cut file's rows are those of the whole file, and nothing else is known. */
static int good_rows(const catcher *whole, const blob *cut) {
    stk_error err = {0};
    int rows = 0;
    for (; rows < whole->part.height; rows++) {
        catcher one = {.part = {1, 0, rows, whole->part.width, 1}};
        bool same = catch_part(&one, cut, 0, &err) == STK_OK &&
                    memcmp(one.rows.pixels, pixel(&whole->rows, 0, rows),
                           3 * (size_t)whole->part.width) == 0;
        stk_image_free(&one.rows);
        if (!same) {
            break;
        }
    }
    return rows;
}

/* Any part of the cut file: right above the cut, and below it a picture or a reason by half. */
static void check_cut_parts(const catcher *whole, const blob *cut, bool enough, stk_rng *rng) {
    int height = whole->part.height;
    int good = good_rows(whole, cut);
    CHECK(good > 0 && good < height);
    for (int i = 0; i < check_tries(40); i++) {
        stk_error err = {0};
        int y = (int)stk_rng_below(rng, (uint64_t)height);
        int rows = 1 + (int)stk_rng_below(rng, (uint64_t)(height - y));
        catcher part = {.part = {1, 0, y, whole->part.width, rows}};
        stk_status status = catch_part(&part, cut, 0, &err);
        if (y + rows <= good || enough) {
            int right = y + rows <= good ? rows : good > y ? good - y : 0;
            REQUIRE(status == STK_OK && part.count == rows);
            CHECK_INT(memcmp(part.rows.pixels, pixel(&whole->rows, 0, y),
                             3 * (size_t)whole->part.width * (size_t)right),
                      0);
        } else {
            CHECK_INT(status, STK_ERR_DATA);
            CHECK_CONTAINS(err.message, "cut off");
        }
        stk_image_free(&part.rows);
    }
}

static void what_lies_above_a_cut_is_used(void) {
    static const struct {
        const char *kind;
        int percent; /* of the file that is there */
        bool enough; /* half of the rows is */
    } cases[] = {
        {"JPEG 4:4:4", 30, false}, {"JPEG 4:4:4", 70, true},      {"JPEG 4:2:0", 30, false},
        {"JPEG 4:2:0", 70, true},  {"JPEG 4:2:2", 45, false},     {"grey JPEG", 40, false},
        {"CMYK JPEG", 40, false},  {"CMYK JPEG", 80, true},       {"RGB PNG", 30, false},
        {"RGB PNG", 80, false},    {"PNG with alpha", 60, false},
    };
    stk_rng rng = stk_rng_make(2, STK_RNG_TEST, 0, 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        stk_error err = {0};
        const file_kind *kind = file_kinds;
        while (strcmp(kind->name, cases[i].kind) != 0) {
            kind++;
        }
        blob file = make_file(kind, 90, 128, 0, i);
        blob cut = {file.bytes, file.size * (size_t)cases[i].percent / 100};
        catcher whole = {.part.divisor = 1};
        REQUIRE_OK(catch_part(&whole, &file, 0, &err), &err);
        check_cut_parts(&whole, &cut, cases[i].enough, &rng);
        stk_image_free(&whole.rows);
        free_blob(&file);
    }
}

/* The same bytes or the same words, whatever the workbench did before. */
static void cut_files_give_the_same_every_time(void) {
    static uint8_t out[2][SIZE * SIZE * 3];
    stk_image_scratch *scratch[2] = {NULL, NULL};
    stk_error err = {0};
    REQUIRE_OK(stk_image_scratch_new(&scratch[0], NULL, &err), &err);
    REQUIRE_OK(stk_image_scratch_new(&scratch[1], NULL, &err), &err);
    for (size_t k = 0; k < FILE_KINDS; k++) {
        blob file = make_file(&file_kinds[k], 200, 150, 0, k);
        for (uint64_t i = 0; i < (uint64_t)check_tries(30); i++) {
            stk_rng rng = stk_rng_make(3, STK_RNG_AUGMENT, k, i);
            size_t size = (size_t)stk_rng_below(&rng, file.size);
            stk_transform transform = {.size = 5 + (int)stk_rng_below(&rng, SIZE - 4),
                                       .train = true,
                                       .augment = {.crop_scale = 0.05, .flip = true}};
            stk_status status[2];
            stk_error errors[2] = {{0}, {0}};
            for (int j = 0; j < 2; j++) {
                memset(out[j], j, sizeof out[j]);
                status[j] = stk_transform_apply(scratch[j], &transform, file.bytes, size, rng,
                                                out[j], NULL, &errors[j]);
                (void)apply(scratch[1], file, &err);
                stk_error_clear(&err);
            }
            CHECK_INT(status[0], status[1]);
            CHECK_STR(errors[0].message, errors[1].message);
            size_t bytes = 3 * (size_t)transform.size * (size_t)transform.size;
            if (status[0] == STK_OK && memcmp(out[0], out[1], bytes) != 0) {
                CHECK_FAIL("%s: two results from %zu bytes", file_kinds[k].name, size);
            }
        }
        free_blob(&file);
    }
    stk_image_scratch_free(scratch[0]);
    stk_image_scratch_free(scratch[1]);
}

static const check_test tests[] = {
    TEST(only_heavy_pictures_pass_the_gate),
    TEST(the_gate_is_left_after_failures),
    TEST(texts_in_a_png_take_no_memory),
    TEST(slow_pictures_are_refused),
    TEST(more_scans_than_any_camera_writes_are_refused),
    TEST(what_lies_above_a_cut_is_used),
    TEST(cut_files_give_the_same_every_time),
};

CHECK_MAIN(tests)
