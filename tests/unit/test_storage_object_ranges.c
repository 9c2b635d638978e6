/* test_storage_object_ranges.c - objects of a folder, and members of tars, read in ranges. */
#include "check.h"

#include "base/error.h"
#include "base/mem.h"
#include "storage/object_ranges.h"
#include "storage/tar/tar_write.h"

static char folder[256]; /* of the running test */

static void begin(void) {
    snprintf(folder, sizeof folder, "%s", check_folder());
}

static char *in_folder(const char *name) {
    return stk_path_join(folder, name);
}

static void check_ranges(const stk_range_source *source) {
    char got[16];
    size_t count = 7;
    stk_error err = {0};
    REQUIRE_OK(source->read(source->user, 2, got, 3, &count, &err), &err);
    CHECK(count == 3 && memcmp(got, "cde", 3) == 0);
    REQUIRE_OK(source->read(source->user, 4, got, sizeof got, &count, &err), &err);
    CHECK(count == 2 && memcmp(got, "ef", 2) == 0);
    REQUIRE_OK(source->read(source->user, 99, got, 1, &count, &err), &err);
    CHECK_INT(count, 0);
    REQUIRE_OK(source->read(source->user, 0, got, 0, &count, &err), &err);
    CHECK_INT(count, 0);
}

static void objects_are_read_in_ranges(void) {
    begin();
    stk_store *store = NULL;
    stk_object_ranges ranges;
    stk_range_source source;
    stk_error err = {0};
    char *path = in_folder("table.json");
    REQUIRE_OK(stk_file_write(path, "abcdef", 6, &err), &err);
    REQUIRE_OK(stk_store_open(&store, folder, NULL, NULL, &err), &err);
    REQUIRE_OK(stk_object_ranges_open(&ranges, store, "table.json", &source, &err), &err);
    CHECK_CONTAINS(source.name, "/table.json");
    check_ranges(&source);
    stk_object_ranges_close(&ranges);
    CHECK(stk_object_ranges_open(&ranges, store, "none.json", &source, &err) != STK_OK);
    CHECK_CONTAINS(err.message, "none.json");
    stk_store_close(store);
    stk_mem_free(path);
}

static void members_are_read_whole(void) {
    begin();
    stk_store *store = NULL;
    stk_tar_writer *tar = NULL;
    stk_object_ranges ranges;
    stk_range_source source;
    stk_error err = {0};
    char *path = in_folder("train-000.tar");
    char *kept = in_folder(".kept");
    setenv("XDG_CACHE_HOME", kept, 1);
    REQUIRE_OK(stk_tar_writer_open(&tar, path, &err), &err);
    REQUIRE_OK(stk_tar_writer_add(tar, "a/table.json", "abcdef", 6, NULL, &err), &err);
    REQUIRE_OK(stk_tar_writer_add(tar, "b/1.jpg", "x", 1, NULL, &err), &err);
    REQUIRE_OK(stk_tar_writer_commit(tar, NULL, &err), &err);
    REQUIRE_OK(stk_store_open(&store, folder, NULL, NULL, &err), &err);
    REQUIRE(stk_store_has_shards(store));
    REQUIRE_OK(stk_object_ranges_open(&ranges, store, "a/table.json", &source, &err), &err);
    CHECK(ranges.is_member);
    check_ranges(&source);
    stk_object_ranges_close(&ranges);
    CHECK(stk_object_ranges_open(&ranges, store, "a/none.json", &source, &err) != STK_OK);
    stk_store_close(store);
    stk_mem_free(kept);
    stk_mem_free(path);
}

static void lack_of_memory_is_told(void) {
    begin();
    stk_store *store = NULL;
    stk_object_ranges ranges;
    stk_range_source source;
    stk_error err = {0};
    char *path = in_folder("table.json");
    REQUIRE_OK(stk_file_write(path, "abcdef", 6, &err), &err);
    REQUIRE_OK(stk_store_open(&store, folder, NULL, NULL, &err), &err);
    for (int64_t n = 0; n < 2; n++) {
        stk_error_clear(&err);
        stk_mem_fail_after(n);
        stk_status status = stk_object_ranges_open(&ranges, store, "table.json", &source, &err);
        stk_mem_fail_after(-1);
        CHECK_INT(status, STK_ERR_MEMORY);
    }
    stk_store_close(store);
    stk_mem_free(path);
}

static const check_test tests[] = {
    TEST(objects_are_read_in_ranges),
    TEST(members_are_read_whole),
    TEST(lack_of_memory_is_told),
};

CHECK_MAIN(tests)
