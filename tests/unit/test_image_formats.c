/*
 * test_image_formats.c - arrays, TIFF, BMP, GIF, DICOM and 16-bit PNG against what their peers make
 * of the same files; cut-off and damaged ones. tests/golden/make_pictures.py made the files of
 * tests/golden/pictures.
 */
#include "check.h"
#include "image_kinds.h"

#include "base/error.h"
#include "base/files/file.h"
#include "base/mem.h"
#include "base/text/csv.h"

#define FOLDER STK_GOLDEN_FOLDER "/pictures/"

static blob read_picture(const char *name) {
    char *path = stk_path_join(FOLDER, name);
    char *bytes = NULL;
    size_t size = 0;
    stk_error err = {0};
    if (path == NULL || stk_file_read(path, 0, &bytes, &size, &err) != STK_OK) {
        CHECK_FAIL("%s: %s", name, err.message);
    }
    stk_mem_free(path);
    return (blob){(uint8_t *)bytes, size};
}

/* Whether this build lacks the optional part that a file needs. */
static bool is_left_out(const char *part) {
#ifndef STK_HAVE_TIFF
    if (strcmp(part, "TIFF") == 0) {
        return true;
    }
#endif
#ifndef STK_HAVE_JPEG2000
    if (strcmp(part, "JPEG2000") == 0) {
        return true;
    }
#endif
    (void)part;
    return false;
}

/* The largest difference of a level; -1: the sizes differ. */
static int largest_difference(const stk_image *a, const stk_image *b) {
    int most = 0;
    if (a->width != b->width || a->height != b->height) {
        return -1;
    }
    for (int i = 0; i < 3 * a->width * a->height; i++) {
        int by = abs(a->pixels[i] - b->pixels[i]);
        most = by > most ? by : most;
    }
    return most;
}

static void compare(const char *name, const char *expected_name, int tolerance) {
    stk_error err = {0};
    stk_image image = {0};
    stk_image expected = {0};
    blob file = read_picture(name);
    blob expected_file = read_picture(expected_name);
    if (stk_image_decode(expected_file.bytes, expected_file.size, &expected, &err) != STK_OK ||
        stk_image_decode(file.bytes, file.size, &image, &err) != STK_OK) {
        CHECK_FAIL("%s: %s", name, err.message);
    } else {
        int most = largest_difference(&image, &expected);
        if (most < 0 || most > tolerance) {
            CHECK_FAIL("%s (%d x %d) differs from %s by up to %d levels", name, image.width,
                       image.height, expected_name, most);
        }
    }
    stk_image_free(&image);
    stk_image_free(&expected);
    free_blob(&file);
    free_blob(&expected_file);
}

/* Calls `each` for every file of the list; the number of files. */
static int for_each_picture(void (*each)(const char *name, const char *expected, int tolerance)) {
    stk_error err = {0};
    stk_csv csv;
    int count = 0;
    if (stk_csv_read(FOLDER "pictures.csv", &csv, &err) != STK_OK) {
        CHECK_FAIL("the list of pictures cannot be read: %s", err.message);
        return 0;
    }
    for (size_t row = 0; row < csv.rows; row++) {
        const char *name = stk_csv_cell(&csv, row, 0);
        if (!is_left_out(stk_csv_cell(&csv, row, 3))) {
            each(name, stk_csv_cell(&csv, row, 1), atoi(stk_csv_cell(&csv, row, 2)));
            count++;
        }
    }
    stk_csv_free(&csv);
    return count;
}

static void pictures_agree_with_their_peers(void) {
    CHECK(for_each_picture(compare) >= 20);
}

/* The same rows come when only a part is asked for. */
static void check_a_part(const char *name, const char *expected, int tolerance) {
    stk_error err = {0};
    blob file = read_picture(name);
    catcher whole = {.part.divisor = 1};
    (void)expected;
    (void)tolerance;
    if (catch_part(&whole, &file, 0, &err) != STK_OK) {
        CHECK_FAIL("%s: %s", name, err.message);
    } else {
        int width = whole.part.width;
        int height = whole.part.height;
        catcher part = {.part = {.divisor = 1,
                                 .x = width / 3,
                                 .y = height / 4,
                                 .width = width - width / 2,
                                 .height = height - height / 2}};
        REQUIRE_OK(catch_part(&part, &file, 0, &err), &err);
        CHECK_INT(part.count, part.part.height);
        for (int y = 0; y < part.part.height; y++) {
            if (memcmp(pixel(&part.rows, part.part.x - part.x, y),
                       pixel(&whole.rows, part.part.x - whole.x, part.part.y + y),
                       3 * (size_t)part.part.width) != 0) {
                CHECK_FAIL("%s: row %d of a part differs", name, y);
            }
        }
        stk_image_free(&part.rows);
    }
    stk_image_free(&whole.rows);
    free_blob(&file);
}

static void parts_agree_with_the_whole(void) {
    CHECK(for_each_picture(check_a_part) >= 20);
}

/* Every beginning is a picture or a reason, read from memory that ends where the bytes end. */
static void check_beginnings(const char *name, const char *expected, int tolerance) {
    blob file = read_picture(name);
    size_t step = file.size > 4000 ? 37 : 1;
    int refused = 0;
    (void)expected;
    (void)tolerance;
    for (size_t size = 0; size < file.size; size += step) {
        stk_error err = {0};
        stk_image image;
        uint8_t *exact = stk_mem_raw(size, 1);
        memcpy(exact, file.bytes, size);
        stk_status status = stk_image_decode(exact, size, &image, &err);
        if (status != STK_OK) {
            refused++;
            CHECK_INT(status, STK_ERR_DATA);
            CHECK(err.message[0] != '\0' && image.pixels == NULL);
        }
        stk_image_free(&image);
        stk_mem_free(exact);
    }
    CHECK(refused > 0);
    free_blob(&file);
}

static void beginnings_are_pictures_or_reasons(void) {
    CHECK(for_each_picture(check_beginnings) >= 20);
}

/* Fails the first request for memory, the second and so on until decoding gets through. */
static void check_lack_of_memory(const char *name, const char *expected, int tolerance) {
    blob file = read_picture(name);
    (void)expected;
    (void)tolerance;
    for (int64_t failed = 0;; failed++) {
        stk_error err = {0};
        stk_image image;
        stk_mem_fail_after(failed);
        stk_status status = stk_image_decode(file.bytes, file.size, &image, &err);
        stk_mem_fail_after(-1);
        stk_image_free(&image);
        if (status == STK_OK) {
            break;
        }
        if (status != STK_ERR_MEMORY || failed > 200) {
            CHECK_FAIL("%s: request %d failed: %s", name, (int)failed, err.message);
            break;
        }
    }
    free_blob(&file);
}

static void lack_of_memory_is_an_error(void) {
    CHECK(for_each_picture(check_lack_of_memory) >= 20);
}

/* ---- arrays ---- */

typedef struct array_text {
    const char *header;
    size_t values; /* bytes behind the header */
    const char *reason;
} array_text;

static blob make_array(const char *header, size_t values) {
    size_t length = strlen(header);
    blob out = {stk_mem_new(10 + length + values, 1), 10 + length + values};
    memcpy(out.bytes, "\x93NUMPY\x01\0", 8);
    out.bytes[8] = (uint8_t)length;
    out.bytes[9] = (uint8_t)(length >> 8);
    memcpy(out.bytes + 10, header, length);
    return out;
}

static void arrays_that_are_no_pictures_get_a_reason(void) {
    static const array_text cases[] = {
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (5,), }", 20, "1 dimensions"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 5, 5), }", 100, "4 dimensions"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (), }", 4, "0 dimensions"},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (20, 20, 20), }", 8000, "each of them"},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (0, 7), }", 0, "no pixels"},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (7, 7, 0), }", 0, "no channels"},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (7, 7, 5), }", 245, "5 channels"},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (7, 7), }", 48, "cut off"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4294967297, 4294967297), }", 64,
         "pixels"},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (16000, 16000, 16), }", 64, "cut off"},
        {"{'descr': '|O', 'fortran_order': False, 'shape': (2, 2), }", 32, "plain numbers"},
        {"{'descr': '<c8', 'fortran_order': False, 'shape': (2, 2), }", 32, "plain numbers"},
        {"{'descr': '<f3', 'fortran_order': False, 'shape': (2, 2), }", 32, "type f3"},
        {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2, 2), }", 32, "plain"},
        {"{'descr': '<f4', 'shape': (2, 2), }", 32, "plain numbers"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2)", 32, "plain numbers"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        stk_error err = {0};
        stk_image image;
        blob file = make_array(cases[i].header, cases[i].values);
        CHECK_INT(stk_image_decode(file.bytes, file.size, &image, &err), STK_ERR_DATA);
        CHECK_CONTAINS(err.message, cases[i].reason);
        free_blob(&file);
    }
}

/* ---- other numbers of channels ---- */

#define SIDE 11 /* px */

static stk_status apply(const stk_transform *transform, const blob *file, uint8_t *out,
                        stk_error *err) {
    stk_image_scratch *scratch = NULL;
    stk_rng rng = stk_rng_make(5, STK_RNG_AUGMENT, 0, 0);
    stk_status status = stk_image_scratch_new(&scratch, NULL, err);
    STK_THEN(status,
             stk_transform_apply(scratch, transform, file->bytes, file->size, rng, out, NULL, err));
    stk_image_scratch_free(scratch);
    return status;
}

/* An array (6, 20, 30) whose channel c is c * 10 everywhere but for column 3, and one of RGB. */
static blob make_six(void) {
    blob file =
        make_array("{'descr': '|u1', 'fortran_order': False, 'shape': (6, 20, 30), }", 3600);
    for (size_t i = 0; i < 3600; i++) {
        file.bytes[file.size - 3600 + i] = (uint8_t)(i / 600 * 10 + (i % 30 == 3 ? 100 : 0));
    }
    return file;
}

static void six_channels_stay_apart(void) {
    static uint8_t out[SIDE * SIDE * 6];
    stk_error err = {0};
    blob file = make_six();
    stk_transform transform = {.size = SIDE, .crop_fraction = 0.5, .channels = 6};
    int channels = 0;
    REQUIRE_OK(stk_image_channels(file.bytes, file.size, &channels, &err), &err);
    CHECK_INT(channels, 6);
    REQUIRE_OK(apply(&transform, &file, out, &err), &err);
    for (int i = 0; i < SIDE * SIDE * 6; i++) {
        CHECK_INT(out[i], i % 6 * 10);
    }
    transform.channels = 5;
    CHECK_INT(apply(&transform, &file, out, &err), STK_ERR_DATA);
    CHECK_CONTAINS(err.message, "6 channels, and pictures of 5 are wanted");
    stk_error_clear(&err);
    transform.channels = STK_IMAGE_MAX_CHANNELS + 1;
    CHECK_INT(apply(&transform, &file, out, &err), STK_ERR_USAGE);
    free_blob(&file);
}

/* What is done to one of three equal channels is done to a single one. */
static void grey_is_one_channel_of_rgb(void) {
    static uint8_t rgb[SIDE * SIDE * 3];
    static uint8_t grey[SIDE * SIDE];
    blob files[] = {read_picture("grey8.dcm"),     read_picture("u8_v2.npy"),
                    read_picture("grey.tif"),      read_picture("grey.bmp"),
                    read_picture("u16_12bit.png"), {0}};
    stk_image scene = quarters(40, 30);
    for (size_t i = 0; i < 1200; i++) {
        memset(scene.pixels + 3 * i, scene.pixels[3 * i], 3);
    }
    files[5] = make_rgb_jpeg(&scene, false);
    for (size_t f = 0; f < sizeof files / sizeof *files; f++) {
        for (int train = 0; train < 2; train++) {
            stk_error err = {0};
            stk_transform transform = {.size = SIDE,
                                       .crop_fraction = 0.9,
                                       .train = train == 1,
                                       .augment = {.crop_scale = 0.5, .flip = true}};
            REQUIRE_OK(apply(&transform, &files[f], rgb, &err), &err);
            transform.channels = 1;
            REQUIRE_OK(apply(&transform, &files[f], grey, &err), &err);
            for (int i = 0; i < SIDE * SIDE; i++) {
                CHECK(abs(grey[i] - rgb[3 * i]) <= (f == 5 ? 1 : 0));
            }
        }
        free_blob(&files[f]);
    }
    stk_image_free(&scene);
}

/* Moves are the same for each channel; pixels from outside differ, and colours stay. */
static void only_moves_change_other_channels(void) {
    static uint8_t before[SIDE * SIDE * 6];
    static uint8_t after[SIDE * SIDE * 6];
    stk_error err = {0};
    blob file = make_six();
    stk_transform transform = {
        .size = SIDE, .train = true, .channels = 6, .augment = {.crop_scale = 1}};
    REQUIRE_OK(apply(&transform, &file, before, &err), &err);
    transform.augment.color_jitter = 0.4;
    transform.augment.hue = 0.2;
    REQUIRE_OK(apply(&transform, &file, after, &err), &err);
    CHECK_INT(memcmp(before, after, sizeof after), 0);
    transform.augment.rotate = 40;
    REQUIRE_OK(apply(&transform, &file, after, &err), &err);
    CHECK(memcmp(before, after, sizeof after) != 0);
    CHECK_INT(after[0], 116);
    int middle = (SIDE / 2 * SIDE + SIDE / 2) * 6;
    for (int c = 0; c < 6; c++) {
        CHECK_INT(after[middle + c], c * 10);
    }
    transform.augment = (stk_augment_options){.crop_scale = 1, .erasing = 1};
    REQUIRE_OK(apply(&transform, &file, after, &err), &err);
    CHECK(memchr(after, 116, sizeof after) != NULL);
    free_blob(&file);
}

/* Of JPEG 2000, a small square comes from a smaller picture, which looks about like the large one.
 */
static void jpeg2000_is_decoded_smaller(void) {
#ifdef STK_HAVE_JPEG2000
    static uint8_t small[8 * 8 * 3];
    static uint8_t expected[8 * 8 * 3];
    stk_error err = {0};
    stk_transform transform = {.size = 8, .crop_fraction = 1};
    blob coded = read_picture("j2k_large.dcm");
    blob plain = read_picture("large8.dcm");
    catcher eighth = {.part.divisor = 8};
    REQUIRE_OK(catch_part(&eighth, &coded, 0, &err), &err);
    CHECK(eighth.info.divides && eighth.rows.width == 12 && eighth.count == 9);
    REQUIRE_OK(apply(&transform, &coded, small, &err), &err);
    REQUIRE_OK(apply(&transform, &plain, expected, &err), &err);
    for (int i = 0; i < 8 * 8 * 3; i++) {
        CHECK(abs(small[i] - expected[i]) <= 24);
    }
    stk_image_free(&eighth.rows);
    free_blob(&coded);
    free_blob(&plain);
#else
    CHECK_SKIP("this build has no libopenjp2");
#endif
}

/* ---- one window for many pictures ---- */

static blob make_floats(float from, float step) {
    blob file =
        make_array("{'descr': '=f4', 'fortran_order': False, 'shape': (2, 50, 40), }", 16000);
    for (int i = 0; i < 4000; i++) {
        float value = from + step * (float)(i % 2000) * (i < 2000 ? 1 : 10);
        memcpy(file.bytes + file.size - 16000 + 4 * (size_t)i, &value, sizeof value);
    }
    return file;
}

static void a_meter_finds_one_window(void) {
    stk_error err = {0};
    stk_window_meter *meter = NULL;
    stk_window window;
    blob files[2] = {make_floats(0, 0.001f), make_floats(-1, 0.001f)};
    blob other = read_picture("six.npy");
    blob bytes = read_picture("rgb.tif");
    REQUIRE_OK(stk_window_meter_new(&meter, &err), &err);
    stk_window_meter_end(meter, &window);
    CHECK_INT(window.channels, 0);
    REQUIRE_OK(stk_window_meter_add(meter, bytes.bytes, bytes.size, &err), &err);
    stk_window_meter_end(meter, &window);
    CHECK_INT(window.channels, 0);
    for (int i = 0; i < 200; i++) { /* more values than the meter keeps */
        REQUIRE_OK(stk_window_meter_add(meter, files[i % 2].bytes, files[i % 2].size, &err), &err);
    }
    CHECK_INT(stk_window_meter_add(meter, other.bytes, other.size, &err), STK_ERR_DATA);
    CHECK_CONTAINS(err.message, "6 channels, and others have 2");
    stk_error_clear(&err);
    stk_window_meter_end(meter, &window);
    CHECK_INT(window.channels, 2);
    CHECK(window.lo[0] > -1.01f && window.lo[0] < -0.98f);
    CHECK(window.hi[0] > 1.98f && window.hi[0] < 2.01f);
    CHECK(window.hi[1] > 19.8f && window.hi[1] < 20.01f);
    uint8_t out[2 * 2 * 2];
    stk_transform transform = {.size = 2, .crop_fraction = 1, .channels = 2, .window = window};
    transform.window.hi[0] = transform.window.lo[0] + 0.001f;
    REQUIRE_OK(apply(&transform, &files[0], out, &err), &err);
    CHECK_INT(out[0], 255); /* all values of the first channel lie above */
    CHECK(out[1] > 20 && out[1] < 235);
    stk_window_meter_free(meter);
    stk_window_meter_free(NULL);
    free_blob(&files[0]);
    free_blob(&files[1]);
    free_blob(&other);
    free_blob(&bytes);
}

static void a_meter_reports_lack_of_memory(void) {
    blob file = make_floats(0, 1);
    for (int64_t failed = 0; failed < 50; failed++) {
        stk_error err = {0};
        stk_window_meter *meter = NULL;
        stk_mem_fail_after(failed);
        stk_status status = stk_window_meter_new(&meter, &err);
        STK_THEN(status, stk_window_meter_add(meter, file.bytes, file.size, &err));
        stk_mem_fail_after(-1);
        stk_window_meter_free(meter);
        if (status == STK_OK) {
            CHECK(failed >= 3);
            break;
        }
        CHECK_INT(status, STK_ERR_MEMORY);
    }
    free_blob(&file);
}

/* A refusal names the library, or what to convert the file to. */
static void what_cannot_be_read_gets_a_reason(void) {
    stk_error err = {0};
    stk_image image;
    blob file = read_picture("jpegls_refused.dcm");
    CHECK_INT(stk_image_decode(file.bytes, file.size, &image, &err), STK_ERR_DATA);
    CHECK_CONTAINS(err.message, "JPEG-LS");
    free_blob(&file);
    stk_error_clear(&err);
#ifndef STK_HAVE_TIFF
    file = read_picture("rgb_lzw.tif");
    CHECK_INT(stk_image_decode(file.bytes, file.size, &image, &err), STK_ERR_DATA);
    CHECK_CONTAINS(err.message, "STK_TIFF");
    free_blob(&file);
    stk_error_clear(&err);
#endif
#ifndef STK_HAVE_JPEG2000
    file = read_picture("j2k12.dcm");
    CHECK_INT(stk_image_decode(file.bytes, file.size, &image, &err), STK_ERR_DATA);
    CHECK_CONTAINS(err.message, "STK_JPEG2000");
    free_blob(&file);
#endif
}

static const check_test tests[] = {
    TEST(pictures_agree_with_their_peers),
    TEST(parts_agree_with_the_whole),
    TEST(beginnings_are_pictures_or_reasons),
    TEST(lack_of_memory_is_an_error),
    TEST(arrays_that_are_no_pictures_get_a_reason),
    TEST(six_channels_stay_apart),
    TEST(grey_is_one_channel_of_rgb),
    TEST(only_moves_change_other_channels),
    TEST(jpeg2000_is_decoded_smaller),
    TEST(a_meter_finds_one_window),
    TEST(a_meter_reports_lack_of_memory),
    TEST(what_cannot_be_read_gets_a_reason),
};

CHECK_MAIN(tests)
