/* test_probe.c - measuring a loader, the decode-only ceiling, the contact sheet and its PNG. */
#include "check.h"
#include "image_files.h"
#include "small_pictures.h"

#include <stdint.h>

#include "base/error.h"
#include "image/image.h"
#include "probe/decode_probe.h"
#include "probe/loader_probe.h"
#include "probe/probe_options.h"
#include "probe/sheet.h"

#define CLASSES 3
#define PER_CLASS 10
#define SIDE 16

/* A data set of class folders, c0/p0.jpg and so on. */
static void make_classes(char *root, size_t size) {
    stk_error err = {0};
    snprintf(root, size, "%s", check_folder());
    for (int i = 0; i < CLASSES * PER_CLASS; i++) {
        char path[320];
        snprintf(path, sizeof path, "%s/c%d", root, i % CLASSES);
        must(stk_dir_make(path, &err), &err);
        snprintf(path, sizeof path, "%s/c%d/p%d.jpg", root, i % CLASSES, i / CLASSES);
        write_picture(path, i % CLASSES, i / CLASSES);
    }
}

static const char *shared_classes(void) {
    static char root[256];
    if (root[0] == '\0') {
        make_classes(root, sizeof root);
    }
    return root;
}

static stk_options *options_for(const char *root) {
    static const char *const given[][2] = {{"batch", "8"}, {"img-size", "16"}, {"workers", "2"}};
    stk_error err = {0};
    stk_options *options = NULL;
    must(stk_options_for_bench_loader(&options, &err), &err);
    must(stk_options_set(options, "data", root, &err), &err);
    for (size_t i = 0; i < sizeof given / sizeof *given; i++) {
        must(stk_options_set(options, given[i][0], given[i][1], &err), &err);
    }
    return options;
}

/* ---- PNG ---- */

static void check_round_trip(int width, int height) {
    stk_error err = {0};
    stk_image image = noise(width, height, (uint64_t)width);
    stk_image again = {0};
    blob png = {0};
    for (int drawing = 0; drawing < 2; drawing++) {
        REQUIRE_OK((drawing ? stk_image_encode_drawing : stk_image_encode_png)(&image, &png.bytes,
                                                                               &png.size, &err),
                   &err);
        REQUIRE_OK(stk_image_decode(png.bytes, png.size, &again, &err), &err);
        CHECK_INT(again.width, width);
        CHECK_INT(again.height, height);
        CHECK(memcmp(image.pixels, again.pixels, (size_t)width * (size_t)height * 3) == 0);
        free_blob(&png);
        stk_image_free(&again);
    }
    stk_image_free(&image);
}

static void png_keeps_every_pixel(void) {
    check_round_trip(1, 1);
    check_round_trip(37, 21);
    check_round_trip(1, 300);
    check_round_trip(640, 3);
}

/* libpng refuses rows of more than a million pixels, by longjmp. */
static void png_tells_what_libpng_refuses(void) {
    stk_error err = {0};
    stk_image wide = noise(1000001, 1, 1);
    blob png = {0};
    CHECK_INT(stk_image_encode_png(&wide, &png.bytes, &png.size, &err), STK_ERR_DATA);
    CHECK_CONTAINS(err.message, "cannot encode a PNG");
    CHECK(png.bytes == NULL);
    stk_image_free(&wide);
}

static void png_survives_lack_of_memory(void) {
    stk_image image = noise(50, 40, 1);
    stk_status status = STK_ERR_MEMORY;
    int64_t requests = 0;
    for (; status != STK_OK && requests < 1000; requests++) {
        stk_error err = {0};
        blob png = {0};
        stk_mem_fail_after(requests);
        status = stk_image_encode_png(&image, &png.bytes, &png.size, &err);
        stk_mem_fail_after(-1);
        if (status != STK_OK) {
            CHECK_INT(status, STK_ERR_MEMORY);
            CHECK_CONTAINS(err.message, "memory");
        }
        free_blob(&png);
    }
    CHECK_INT(status, STK_OK);
    CHECK(requests > 3);
    stk_image_free(&image);
}

/* ---- decode only ---- */

static const char *const some_paths[] = {"c0/p0.jpg", "c1/p1.jpg", "c2/gone.jpg", "c2/p3.jpg"};

static stk_store *store_of(const char *folder) {
    stk_error err = {0};
    stk_store *store = NULL;
    must(stk_store_open(&store, folder, NULL, NULL, &err), &err);
    return store;
}

static void decodes_what_can_be_read(void) {
    stk_error err = {0};
    stk_store *store = store_of(shared_classes());
    stk_decode_probe *probe = NULL;
    stk_decode_tally tally = {0};
    REQUIRE_OK(stk_decode_probe_open(&probe, store, some_paths, 4, 2, NULL, &err), &err);
    REQUIRE_OK(stk_decode_probe_run(probe, 2, 0.01, NULL, &tally, &err), &err);
    CHECK(tally.images >= 2); /* each thread has decoded one at least */
    CHECK(tally.thread_seconds > 0);
    stk_decode_tally before = tally;
    REQUIRE_OK(stk_decode_probe_run(probe, 1, 0, NULL, &tally, &err), &err);
    CHECK_INT(tally.images, before.images + 1);
    CHECK(tally.thread_seconds > before.thread_seconds);
    stk_decode_probe_close(probe);
    stk_decode_probe_close(NULL);
    stk_store_close(store);
}

/* Every picture becomes the same large one. */
static stk_status make_large(void *user, stk_image_scratch *scratch, const stk_bytes *from,
                             stk_bytes *to, stk_error *err) {
    stk_image image = {0};
    (void)user;
    (void)scratch;
    (void)from;
    stk_status status = stk_image_new(&image, 200, 100, err);
    if (status == STK_OK) {
        memset(image.pixels, 128, (size_t)200 * 100 * 3);
        status = stk_image_encode_raw(&image, to, err);
    }
    stk_image_free(&image);
    return status;
}

static stk_status refuse(void *user, stk_image_scratch *scratch, const stk_bytes *from,
                         stk_bytes *to, stk_error *err) {
    (void)user;
    (void)scratch;
    (void)from;
    (void)to;
    return STK_FAIL(err, STK_ERR_DATA, "no");
}

/* Memory that nobody touches; counts the calls. */
static stk_status make_huge(void *user, stk_image_scratch *scratch, const stk_bytes *from,
                            stk_bytes *to, stk_error *err) {
    const size_t size = (size_t)160 << 20;
    (void)scratch;
    (void)from;
    ++*(int *)user;
    *to = (stk_bytes){stk_mem_raw(size, 1), size, size};
    return to->data != NULL ? STK_OK : STK_FAIL_MEMORY(err, "a test");
}

static void what_is_made_of_large_pictures_does_not_fill_the_memory(void) {
    stk_error err = {0};
    stk_store *store = store_of(shared_classes());
    stk_decode_probe *probe = NULL;
    double bytes = 0;
    int made = 0;
    REQUIRE_OK(stk_decode_probe_open(&probe, store, some_paths, 4, 1, NULL, &err), &err);
    REQUIRE_OK(stk_decode_probe_remake(probe, make_huge, &made, NULL, &bytes, &err), &err);
    CHECK_INT(made, 2); /* of 3 */
    CHECK_NEAR(bytes, (double)((size_t)160 << 20), 1);
    REQUIRE_OK(stk_decode_probe_remake(probe, NULL, NULL, NULL, &bytes, &err), &err);
    CHECK_NEAR(bytes, stk_decode_probe_mean(probe).bytes, 1e-6);
    stk_decode_probe_close(probe);
    stk_store_close(store);
}

static void decodes_what_training_sees_and_what_others_keep(void) {
    stk_error err = {0};
    stk_store *store = store_of(shared_classes());
    stk_decode_probe *probe = NULL;
    stk_decode_tally tally = {0};
    stk_transform view = {.size = SIDE, .train = true, .augment = {.crop_scale = 0.5}};
    double bytes = 0;
    REQUIRE_OK(stk_decode_probe_open(&probe, store, some_paths, 4, 2, NULL, &err), &err);
    stk_decode_mean mean = stk_decode_probe_mean(probe);
    CHECK_INT(mean.count, 3);
    CHECK(mean.bytes > 100);
    CHECK(mean.pixels >= 20 * 24 && mean.pixels < 28 * 24);
    REQUIRE_OK(stk_decode_probe_view(probe, &view, &err), &err);
    REQUIRE_OK(stk_decode_probe_run(probe, 2, 0.01, NULL, &tally, &err), &err);
    CHECK(tally.images >= 2);
    REQUIRE_OK(stk_decode_probe_remake(probe, make_large, NULL, NULL, &bytes, &err), &err);
    CHECK(bytes >= 200 * 100 * 3); /* all of them */
    tally = (stk_decode_tally){0};
    REQUIRE_OK(stk_decode_probe_run(probe, 1, 0, NULL, &tally, &err), &err);
    CHECK_INT(tally.images, 1);
    REQUIRE_OK(stk_decode_probe_remake(probe, NULL, NULL, NULL, &bytes, &err), &err);
    CHECK_NEAR(bytes, mean.bytes, 1e-6);
    REQUIRE_OK(stk_decode_probe_view(probe, NULL, &err), &err);
    REQUIRE_OK(stk_decode_probe_remake(probe, refuse, NULL, NULL, &bytes, &err), &err);
    tally = (stk_decode_tally){0};
    REQUIRE_OK(stk_decode_probe_run(probe, 1, 3600, NULL, &tally, &err), &err); /* ends at once */
    CHECK_INT(tally.images, 0);
    stk_stop stop = {0};
    stk_stop_request(&stop, STK_STOP_SOON, 0);
    CHECK_INT(stk_decode_probe_remake(probe, make_large, NULL, &stop, &bytes, &err),
              STK_ERR_STOPPED);
    stk_decode_probe_close(probe);
    stk_store_close(store);
}

/* Bytes of a JPEG up to its first scan's data. */
static size_t head_bytes(const char *path) {
    stk_error err = {0};
    char *data = NULL;
    size_t size = 0;
    must(stk_file_read(path, 0, &data, &size, &err), &err);
    size_t at = 2;
    while (at + 4 < size && (uint8_t)data[at + 1] != 0xda) { /* start of scan */
        at += 2 + 256 * (size_t)(uint8_t)data[at + 2] + (size_t)(uint8_t)data[at + 3];
    }
    stk_mem_free(data);
    return at + 16;
}

static void does_not_count_bad_pictures(void) {
    stk_error err = {0};
    stk_decode_probe *probe = NULL;
    stk_decode_tally tally = {0};
    const char *root = check_folder();
    const char *const paths[] = {"a.jpg", "b.jpg", "c.jpg"};
    for (int i = 0; i < 2; i++) { /* their headers are whole, and nothing else */
        char path[300];
        snprintf(path, sizeof path, "%s/%s", root, paths[i]);
        write_picture(path, 0, i);
        REQUIRE(truncate(path, (off_t)head_bytes(path)) == 0);
    }
    write_text(root, "c.jpg", "no picture");
    stk_store *store = store_of(root);
    REQUIRE_OK(stk_decode_probe_open(&probe, store, paths, 3, 1, NULL, &err), &err);
    REQUIRE_OK(stk_decode_probe_run(probe, 1, 3600, NULL, &tally, &err), &err); /* ends at once */
    CHECK_INT(tally.images, 0);
    stk_decode_probe_close(probe);
    probe = NULL;
    stk_store_close(store);
    store = store_of(shared_classes());
    CHECK_INT(stk_decode_probe_open(&probe, store, some_paths + 2, 1, 1, NULL, &err), STK_ERR_DATA);
    CHECK_CONTAINS(err.message, "gone.jpg");
    stk_store_close(store);
}

static void decoding_survives_lack_of_memory(void) {
    stk_status status = STK_ERR_MEMORY;
    for (int64_t requests = 0; status != STK_OK && requests < 1000; requests++) {
        stk_error err = {0};
        stk_decode_probe *probe = NULL;
        stk_decode_tally tally = {0};
        stk_store *store = store_of(shared_classes());
        stk_mem_fail_after(requests);
        status = stk_decode_probe_open(&probe, store, some_paths, 4, 2, NULL, &err);
        status = status == STK_OK ? stk_decode_probe_run(probe, 2, 0, NULL, &tally, &err) : status;
        stk_mem_fail_after(-1);
        stk_decode_probe_close(probe);
        stk_store_close(store);
        if (status != STK_OK) {
            CHECK_INT(status, STK_ERR_MEMORY);
            CHECK_CONTAINS(err.message, "memory");
        }
    }
    CHECK_INT(status, STK_OK);
}

/* ---- the loader ---- */

static bool is_rate(double value) {
    return isfinite(value) && value > 0;
}

static bool is_time(double value) {
    return isfinite(value) && value >= 0;
}

static void check_figures(const stk_loader_figures *f, int64_t samples) {
    CHECK(is_rate(f->images_per_second));
    CHECK(is_rate(f->images_per_second_per_core));
    CHECK(is_rate(f->decode_only_per_second_per_core));
    CHECK(is_rate(f->ceiling_share));
    CHECK(is_rate(f->first_batch_ms));
    CHECK(is_rate(f->seconds));
    CHECK(is_rate(f->decode_seconds));
    CHECK(is_rate(f->cores_busy));
    CHECK(is_rate(f->images_per_cpu_second));
    CHECK(is_rate(f->decode_only_per_cpu_second));
    CHECK(is_time(f->read_us));
    CHECK(is_time(f->decode_us));
    CHECK(is_time(f->augment_us));
    CHECK(is_time(f->read_wait_us));
    CHECK(f->rss_bytes > 100000);
    CHECK(f->images > 0);
    CHECK(f->decode_images > 0);
    CHECK_INT(f->workers, 2);
    CHECK(f->readers >= 0);
    CHECK(f->slots >= 2);
    CHECK(f->cores >= 1 && f->cores <= 2);
    CHECK_INT(f->samples, samples);
    CHECK_INT(f->batch, 8);
    CHECK_INT(f->img_size, SIDE);
    CHECK_NEAR(f->images_per_second * f->seconds, f->images, 1e-6 * (double)f->images);
    CHECK_NEAR(f->ceiling_share * f->decode_only_per_second_per_core, f->images_per_second_per_core,
               1e-6 * f->images_per_second_per_core);
}

static void measures_a_loader(void) {
    stk_error err = {0};
    stk_loader_figures figures = {0};
    stk_options *options = options_for(shared_classes());
    REQUIRE_OK(stk_probe_loader(options, 0.2, NULL, NULL, &figures, &err), &err);
    check_figures(&figures, CLASSES * PER_CLASS);
    CHECK(figures.seconds >= 0.2);
    CHECK_INT(figures.bad, 0);
    stk_options_free(options);
}

static void measures_a_stream_that_ends(void) {
    stk_error err = {0};
    stk_loader_figures figures = {0};
    stk_options *options = options_for(shared_classes());
    must(stk_options_set(options, "epochs", "1", &err), &err);
    REQUIRE_OK(stk_probe_loader(options, 0.01, NULL, NULL, &figures, &err), &err);
    check_figures(&figures, CLASSES * PER_CLASS);
    stk_options_free(options);
}

static void measures_around_a_bad_picture(void) {
    char root[256];
    char path[320];
    stk_error err = {0};
    stk_loader_figures figures = {0};
    make_classes(root, sizeof root);
    snprintf(path, sizeof path, "%s/c1", root);
    write_text(path, "text.jpg", "this is no picture");
    stk_options *options = options_for(root);
    REQUIRE_OK(stk_probe_loader(options, 0.01, NULL, NULL, &figures, &err), &err);
    check_figures(&figures, CLASSES * PER_CLASS + 1);
    CHECK_INT(figures.bad, 1);
    stk_options_free(options);
}

static void refuses_what_cannot_be_measured(void) {
    stk_error err = {0};
    stk_loader_figures figures = {0};
    stk_options *options = options_for("/nonexistent");
    CHECK_INT(stk_probe_loader(options, 0.1, NULL, NULL, &figures, &err), STK_ERR_DATA);
    CHECK_CONTAINS(err.message, "/nonexistent");
    stk_options_free(options);

    char root[256];
    char path[320];
    stk_error bad = {0};
    snprintf(root, sizeof root, "%s", check_folder());
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/c%d", root, i);
        must(stk_dir_make(path, &err), &err);
        write_text(path, "a.jpg", "no picture");
        write_text(path, "b.jpg", "no picture");
    }
    options = options_for(root);
    CHECK_INT(stk_probe_loader(options, 0.1, NULL, NULL, &figures, &bad), STK_ERR_DATA);
    CHECK(bad.message[0] != '\0');
    stk_options_free(options);
}

static void ends_when_asked(void) {
    stk_error err = {0};
    stk_loader_figures figures = {0};
    stk_stop stop = {0};
    stk_options *options = options_for(shared_classes());
    stk_image sheet = {0};
    stk_stop_request(&stop, STK_STOP_SOON, 0);
    CHECK_INT(stk_probe_loader(options, 3600, &stop, NULL, &figures, &err), STK_ERR_STOPPED);
    stk_error_clear(&err);
    CHECK_INT(stk_sheet_draw(options, &stop, NULL, &sheet, &err), STK_ERR_STOPPED);
    CHECK(sheet.pixels == NULL);
    stk_options_free(options);
}

static void measuring_survives_lack_of_memory(void) {
    static const int64_t requests[] = {0, 1, 3, 10, 30, 100};
    stk_options *options = options_for(shared_classes());
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        stk_error err = {0};
        stk_loader_figures figures = {0};
        stk_mem_fail_after(requests[i]);
        stk_status status = stk_probe_loader(options, 0.01, NULL, NULL, &figures, &err);
        stk_mem_fail_after(-1);
        CHECK_INT(status, STK_ERR_MEMORY);
    }
    stk_options_free(options);
}

/* ---- the sheet ---- */

static const uint8_t *sheet_pixel(const stk_image *sheet, int row, int column, int x, int y) {
    int cell = SIDE + STK_SHEET_GAP_PX;
    return pixel(sheet, STK_SHEET_GAP_PX + column * cell + x, STK_SHEET_GAP_PX + row * cell + y);
}

static bool same_views(const stk_image *a, int row_a, int column_a, const stk_image *b, int row_b,
                       int column_b) {
    for (int y = 0; y < SIDE; y++) {
        if (memcmp(sheet_pixel(a, row_a, column_a, 0, y), sheet_pixel(b, row_b, column_b, 0, y),
                   (size_t)SIDE * 3) != 0) {
            return false;
        }
    }
    return true;
}

static bool is_white_between(const stk_image *sheet) {
    int cell = SIDE + STK_SHEET_GAP_PX;
    for (int y = 0; y < sheet->height; y++) {
        for (int x = 0; x < sheet->width; x++) {
            const uint8_t *p = pixel(sheet, x, y);
            bool gap = x % cell < STK_SHEET_GAP_PX || y % cell < STK_SHEET_GAP_PX;
            if (gap && (p[0] != 255 || p[1] != 255 || p[2] != 255)) {
                return false;
            }
        }
    }
    return true;
}

static void check_sheet_size(const stk_image *sheet, int rows) {
    int cell = SIDE + STK_SHEET_GAP_PX;
    CHECK_INT(sheet->width, (STK_SHEET_VIEWS + 1) * cell + STK_SHEET_GAP_PX);
    CHECK_INT(sheet->height, rows * cell + STK_SHEET_GAP_PX);
}

static void draws_rows_of_views(void) {
    stk_error err = {0};
    stk_image sheet = {0};
    stk_image again = {0};
    stk_options *options = options_for(shared_classes());
    REQUIRE_OK(stk_sheet_draw(options, NULL, NULL, &sheet, &err), &err);
    REQUIRE_OK(stk_sheet_draw(options, NULL, NULL, &again, &err), &err);
    check_sheet_size(&sheet, STK_SHEET_ROWS);
    check_sheet_size(&again, STK_SHEET_ROWS);
    CHECK(is_white_between(&sheet));
    CHECK(memcmp(sheet.pixels, again.pixels, (size_t)sheet.width * (size_t)sheet.height * 3) == 0);
    for (int row = 0; row < STK_SHEET_ROWS; row++) {
        /* Classes come in turn: each has a colour that leads. */
        const uint8_t *middle = sheet_pixel(&sheet, row, 0, SIDE / 2, SIDE / 2);
        int lead = middle[0] > middle[1] ? (middle[0] > middle[2] ? 0 : 2)
                                         : (middle[1] > middle[2] ? 1 : 2);
        CHECK_INT(lead, row % CLASSES);
        for (int column = 1; column <= STK_SHEET_VIEWS; column++) {
            CHECK(!same_views(&sheet, row, column - 1, &sheet, row, column));
        }
        CHECK(row < CLASSES || !same_views(&sheet, row, 0, &sheet, row - CLASSES, 0));
    }
    stk_image_free(&again);
    must(stk_options_set(options, "seed", "5", &err), &err);
    REQUIRE_OK(stk_sheet_draw(options, NULL, NULL, &again, &err), &err);
    CHECK(same_views(&sheet, 0, 0, &again, 0, 0));
    CHECK(!same_views(&sheet, 0, 1, &again, 0, 1));
    stk_image_free(&sheet);
    stk_image_free(&again);
    stk_options_free(options);
}

static void writes_a_sheet_that_reads_again(void) {
    stk_error err = {0};
    stk_image sheet = {0};
    stk_image again = {0};
    char *bytes = NULL;
    size_t size = 0;
    char path[320];
    stk_options *options = options_for(shared_classes());
    snprintf(path, sizeof path, "%s/sheet.png", check_folder());
    REQUIRE_OK(stk_sheet_draw(options, NULL, NULL, &sheet, &err), &err);
    REQUIRE_OK(stk_sheet_write(options, NULL, NULL, path, &err), &err);
    REQUIRE_OK(stk_file_read(path, 0, &bytes, &size, &err), &err);
    REQUIRE_OK(stk_image_decode((const uint8_t *)bytes, size, &again, &err), &err);
    check_sheet_size(&again, STK_SHEET_ROWS);
    CHECK(memcmp(sheet.pixels, again.pixels, (size_t)sheet.width * (size_t)sheet.height * 3) == 0);
    stk_mem_free(bytes);
    stk_image_free(&sheet);
    stk_image_free(&again);
    CHECK_INT(stk_sheet_write(options, NULL, NULL, "/nonexistent/sheet.png", &err),
              STK_ERR_STORAGE);
    stk_options_free(options);
}

/* A folder of two pictures and no classes, one of them bad; then a folder of none at all. */
static void draws_what_there_is(void) {
    char root[256];
    char path[320];
    stk_error err = {0};
    stk_image sheet = {0};
    snprintf(root, sizeof root, "%s", check_folder());
    stk_options *options = options_for(root);
    write_text(root, "a.jpg", "no picture");
    CHECK_INT(stk_sheet_draw(options, NULL, NULL, &sheet, &err), STK_ERR_DATA);
    CHECK_CONTAINS(err.message, "none of the 1 pictures");
    stk_error_clear(&err);
    snprintf(path, sizeof path, "%s/b.jpg", root);
    write_picture(path, 1, 1);
    REQUIRE_OK(stk_sheet_draw(options, NULL, NULL, &sheet, &err), &err);
    check_sheet_size(&sheet, 2);
    CHECK(same_views(&sheet, 0, 0, &sheet, 1, 0)); /* the good one stands in both rows */
    stk_image_free(&sheet);
    must(stk_options_set(options, "data", "/nonexistent", &err), &err);
    CHECK_INT(stk_sheet_draw(options, NULL, NULL, &sheet, &err), STK_ERR_DATA);
    CHECK_CONTAINS(err.message, "/nonexistent");
    stk_error_clear(&err);
    must(stk_options_set(options, "data", shared_classes(), &err), &err);
    must(stk_options_set(options, "img-size", "4096", &err), &err);
    CHECK_INT(stk_sheet_draw(options, NULL, NULL, &sheet, &err), STK_ERR_USAGE);
    CHECK_CONTAINS(err.message, "--img-size");
    stk_options_free(options);
}

static void drawing_survives_lack_of_memory(void) {
    char path[320];
    stk_status status = STK_ERR_MEMORY;
    stk_options *options = options_for(shared_classes());
    snprintf(path, sizeof path, "%s/sheet.png", check_folder());
    for (int64_t requests = 0; status != STK_OK && requests < 5000; requests += 3) {
        stk_error err = {0};
        stk_mem_fail_after(requests);
        status = stk_sheet_write(options, NULL, NULL, path, &err);
        stk_mem_fail_after(-1);
        if (status != STK_OK) {
            CHECK_INT(status, STK_ERR_MEMORY);
            CHECK(!stk_path_is_file(path));
        }
    }
    CHECK_INT(status, STK_OK);
    CHECK(stk_path_is_file(path));
    stk_options_free(options);
}

static const check_test tests[] = {
    TEST(png_keeps_every_pixel),
    TEST(png_tells_what_libpng_refuses),
    TEST(png_survives_lack_of_memory),
    TEST(decodes_what_can_be_read),
    TEST(decodes_what_training_sees_and_what_others_keep),
    TEST(what_is_made_of_large_pictures_does_not_fill_the_memory),
    TEST(does_not_count_bad_pictures),
    TEST(decoding_survives_lack_of_memory),
    TEST(measures_a_loader),
    TEST(measures_a_stream_that_ends),
    TEST(measures_around_a_bad_picture),
    TEST(refuses_what_cannot_be_measured),
    TEST(ends_when_asked),
    TEST(measuring_survives_lack_of_memory),
    TEST(draws_rows_of_views),
    TEST(writes_a_sheet_that_reads_again),
    TEST(draws_what_there_is),
    TEST(drawing_survives_lack_of_memory),
};

CHECK_MAIN(tests)
