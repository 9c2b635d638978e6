/* test_thumbs.c - small pictures of the worst ones, from places that are there, slow, or gone. */
#include "check.h"

#include "base/clock.h"
#include "image_files.h"
#include "report/page/thumbs.h"
#include "scripted_place.h"
#include "small_pictures.h"

#define HOUR_NS (3600 * 1000000000LL)

/* The worst pictures are those of these paths, in this order. */
static stk_confusion worst_of(const char *const *paths, int count) {
    stk_confusion confusion = {.worst_count = count};
    for (int i = 0; i < count; i++) {
        confusion.worst[i] = (stk_confusion_miss){.path = paths[i]};
    }
    return confusion;
}

static void thumbs_of_a_folder(void) {
    const char *folder = check_folder();
    static const char *const paths[] = {"large.png", "p0.jpg", "gone.jpg", "damaged.jpg"};
    stk_confusion confusion = worst_of(paths, 4);
    stk_thumbs thumbs = {0};
    stk_error err = {0};
    stk_image image = {0};
    uint8_t *png = NULL;
    size_t size = 0;
    char path[300];
    picture_set set = make_pictures(folder, 1);
    write_text(folder, "damaged.jpg", "\xFF\xD8\xFF\xE0 and no picture");
    must(stk_image_new(&image, 600, 300, &err), &err);
    memset(image.pixels, 99, (size_t)600 * 300 * 3);
    must(stk_image_encode_png(&image, &png, &size, &err), &err);
    snprintf(path, sizeof path, "%s/large.png", folder);
    must(stk_file_write(path, png, size, &err), &err);
    stk_image_free(&image);
    stk_mem_free(png);

    stk_thumbs_make(&thumbs, &confusion, set.store, stk_clock_ns() + HOUR_NS);
    CHECK_INT(thumbs.count, 4);
    REQUIRE(thumbs.items[0].jpeg != NULL && thumbs.items[1].jpeg != NULL);
    CHECK_STR(thumbs.items[0].why, "");
    REQUIRE_OK(stk_image_decode(thumbs.items[0].jpeg, thumbs.items[0].size, &image, &err), &err);
    CHECK_INT(image.width, STK_THUMB_SIDE);
    CHECK_INT(image.height, STK_THUMB_SIDE / 2);
    stk_image_free(&image);
    CHECK(thumbs.items[2].jpeg == NULL && thumbs.items[3].jpeg == NULL);
    CHECK_CONTAINS(thumbs.items[2].why, "gone.jpg");
    CHECK(thumbs.items[3].why[0] != '\0');
    stk_thumbs_free(&thumbs);
    CHECK_INT(thumbs.count, 0);
    free_pictures(&set);
}

static void thumbs_by_the_path_of_the_data(void) {
    const char *folder = check_folder();
    static const char *const paths[] = {"p1.jpg"};
    stk_confusion confusion = worst_of(paths, 1);
    stk_storage_options storage = {0};
    stk_thumbs thumbs = {0};
    picture_set set = make_pictures(folder, 2);
    stk_thumbs_make_from(&thumbs, &confusion, folder, &storage, stk_clock_ns() + HOUR_NS);
    CHECK(thumbs.count == 1 && thumbs.items[0].jpeg != NULL);
    stk_thumbs_free(&thumbs);
    stk_thumbs_make_from(&thumbs, &confusion, "/there/is/no/such/folder", &storage,
                         stk_clock_ns() + HOUR_NS);
    CHECK(thumbs.count == 1 && thumbs.items[0].jpeg == NULL);
    CHECK_CONTAINS(thumbs.items[0].why, "/there/is/no/such/folder");
    stk_thumbs_free(&thumbs);
    free_pictures(&set);
}

/* Objects that hang do not hold anybody up, and those beside them are looked at all the same. */
static void thumbs_of_a_slow_place(void) {
    static const char *const paths[] = {"hangs?h", "comes?o1", "never?n"};
    stk_confusion confusion = worst_of(paths, 3);
    stk_storage_options options = {.cache = "off", .read_timeout_s = 3600};
    stk_thumbs thumbs = {0};
    stk_store *store = NULL;
    stk_error err = {0};
    REQUIRE_OK(stk_store_open_on(&store, &scripted_source, scripted_new(), &options, &err), &err);
    stk_thumbs_make(&thumbs, &confusion, store, stk_clock_ns() + 500 * SCRIPTED_MS);
    CHECK_STR(thumbs.items[0].why, "there was no time to read it");
    CHECK(thumbs.items[1].jpeg == NULL && thumbs.items[1].why[0] != '\0'); /* no picture */
    CHECK_CONTAINS(thumbs.items[2].why, "never failed with 'n'");
    stk_thumbs_free(&thumbs);
    stk_store_close(store);
}

static void thumbs_without_time(void) {
    const char *folder = check_folder();
    static const char *const paths[] = {"p0.jpg"};
    stk_confusion confusion = worst_of(paths, 1);
    stk_thumbs thumbs = {0};
    picture_set set = make_pictures(folder, 1);
    stk_thumbs_make(&thumbs, &confusion, set.store, stk_clock_ns() - 1);
    CHECK_INT(thumbs.count, 1);
    CHECK_STR(thumbs.items[0].why, "there was no time to read it");
    stk_thumbs_free(&thumbs);
    confusion.worst_count = 0;
    stk_thumbs_make(&thumbs, &confusion, set.store, stk_clock_ns() + HOUR_NS);
    CHECK_INT(thumbs.count, 0);
    stk_thumbs_free(&thumbs);
    free_pictures(&set);
}

static void thumbs_without_memory(void) {
    const char *folder = check_folder();
    static const char *const paths[] = {"p0.jpg", "p1.jpg"};
    stk_confusion confusion = worst_of(paths, 2);
    picture_set set = make_pictures(folder, 2);
    bool all = false;
    for (int64_t n = 0; n < 200 && !all; n++) {
        stk_thumbs thumbs = {0};
        stk_mem_fail_after(n);
        stk_thumbs_make(&thumbs, &confusion, set.store, stk_clock_ns() + HOUR_NS);
        stk_mem_fail_after(-1);
        all = true;
        for (int i = 0; i < thumbs.count; i++) {
            bool has = thumbs.items[i].jpeg != NULL;
            CHECK(has == (thumbs.items[i].why[0] == '\0'));
            all = all && has;
        }
        stk_thumbs_free(&thumbs);
    }
    CHECK(all);
    free_pictures(&set);
}

/* A picture that takes long to decode is given up when the time is over. */
static void thumbs_of_slow_pictures(void) {
    const char *folder = check_folder();
    static const char *const paths[] = {"slow.png"};
    stk_confusion confusion = worst_of(paths, 1);
    stk_thumbs thumbs = {0};
    stk_error err = {0};
    char path[300];
    picture_set set = make_pictures(folder, 1);
    blob png = make_slow_png();
    snprintf(path, sizeof path, "%s/slow.png", folder);
    must(stk_file_write(path, png.bytes, png.size, &err), &err);
    free_blob(&png);
    stk_thumbs_make(&thumbs, &confusion, set.store, stk_clock_ns() + HOUR_NS / 36000);
    REQUIRE(thumbs.count == 1);
    CHECK(thumbs.items[0].jpeg == NULL);
    CHECK_CONTAINS(thumbs.items[0].why, "there was no time");
    stk_thumbs_free(&thumbs);
    free_pictures(&set);
}

static const check_test tests[] = {
    TEST(thumbs_of_a_folder),     TEST(thumbs_by_the_path_of_the_data),
    TEST(thumbs_of_a_slow_place), TEST(thumbs_of_slow_pictures),
    TEST(thumbs_without_time),    TEST(thumbs_without_memory),
};

CHECK_MAIN(tests)
