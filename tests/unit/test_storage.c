/* test_storage.c - reading objects below a root. */
#include "check.h"

#include <sys/stat.h>

#include "base/error.h"
#include "base/files/file.h"
#include "base/mem.h"
#include "storage/data_folders.h"
#include "storage/fetch.h"
#include "storage/storage.h"

static void reads_what_was_written(void) {
    stk_error err = {0};
    const char *root = check_folder();
    char *path = stk_path_join(root, "a.bin");
    const uint8_t contents[] = {1, 0, 2, 255};
    REQUIRE_OK(stk_file_write(path, contents, sizeof contents, &err), &err);
    stk_bytes bytes = {0};
    stk_store *store = NULL;
    REQUIRE_OK(stk_store_open(&store, root, NULL, NULL, &err), &err);
    REQUIRE_OK(stk_store_read(store, "a.bin", &bytes, &err), &err);
    REQUIRE(bytes.size == sizeof contents);
    CHECK_INT(memcmp(bytes.data, contents, bytes.size), 0);
    stk_bytes_free(&bytes);
    REQUIRE_OK(stk_store_read(store, path, &bytes, &err), &err); /* an absolute path */
    CHECK_INT(bytes.size, sizeof contents);
    REQUIRE_OK(stk_store_read_part(store, "a.bin", 1, 2, &bytes, &err), &err);
    REQUIRE(bytes.size == 2);
    CHECK_INT(memcmp(bytes.data, contents + 1, 2), 0);
    REQUIRE_OK(stk_store_read_part(store, "a.bin", 3, 100, &bytes, &err), &err);
    CHECK_INT(bytes.size, 1); /* no more is there */
    stk_store_close(store);
    stk_bytes_free(&bytes);
    stk_mem_free(path);
}

static void errors_name_the_object(void) {
    const char *root = check_folder();
    stk_bytes bytes = {0};
    stk_error err = {0};
    stk_store *store = NULL;
    REQUIRE_OK(stk_store_open(&store, root, NULL, NULL, &err), &err);
    CHECK_INT(stk_store_read(store, "missing.jpg", &bytes, &err), STK_ERR_STORAGE);
    CHECK_CONTAINS(err.message, "missing.jpg");
    stk_error_clear(&err);
    CHECK_INT(stk_store_read(store, "", &bytes, &err), STK_ERR_STORAGE);
    CHECK_CONTAINS(err.message, "folder");
    stk_error_clear(&err);
    stk_store_close(store);
    stk_error_clear(&err);
    CHECK_INT(stk_store_open(&store, "gopher://there", NULL, NULL, &err), STK_ERR_USAGE);
    CHECK_CONTAINS(err.message, "gopher://there");
    stk_error_clear(&err);
    CHECK_INT(stk_store_open(&store, "/no/such/folder", NULL, NULL, &err), STK_ERR_DATA);
    CHECK_CONTAINS(err.message, "/no/such/folder");
}

static void objects_over_the_limit_are_refused(void) {
    stk_error err = {0};
    const char *root = check_folder();
    char *path = stk_path_join(root, "huge");
    REQUIRE_OK(stk_file_write(path, "", 0, &err), &err);
    /* A hole takes no room on the disk. */
    REQUIRE(truncate(path, (off_t)STK_STORAGE_MAX_BYTES + 10) == 0);
    stk_bytes bytes = {0};
    stk_store *store = NULL;
    REQUIRE_OK(stk_store_open(&store, root, NULL, NULL, &err), &err);
    CHECK_INT(stk_store_read(store, "huge", &bytes, &err), STK_ERR_STORAGE);
    CHECK_CONTAINS(err.message, "larger than");
    stk_store_close(store);
    stk_mem_free(path);
}

/* The sentence that people read names the object once. */
static void failures_are_explained(void) {
    stk_fetch_result why = {0};
    stk_error err = {0};
    CHECK_INT(stk_fetch_fail(&why, STK_FETCH_NEVER, STK_ERR_STORAGE, "it is %s", "gone"),
              STK_FETCH_NEVER);
    stk_fetch_explain(&why, "s3://bucket/set", "a/1.jpg", &err);
    CHECK_STR(err.message, "cannot read s3://bucket/set/a/1.jpg: it is gone");
    stk_fetch_explain(&why, "/data", "", &err); /* an earlier error is replaced */
    CHECK_STR(err.message, "cannot read /data: it is gone");
    stk_fetch_explain(&why, "/", "a.jpg", &err);
    CHECK_STR(err.message, "cannot read /a.jpg: it is gone");
    why.is_sentence = true;
    stk_fetch_explain(&why, "/data", "a.jpg", &err);
    CHECK_STR(err.message, "it is gone");
    (void)stk_fetch_fail(&why, STK_FETCH_NO_MEMORY, STK_ERR_MEMORY, "out of memory");
    stk_fetch_explain(&why, "/data", "a.jpg", &err);
    CHECK_INT(err.status, STK_ERR_MEMORY);
    CHECK_CONTAINS(err.message, "out of memory for a.jpg");
}

static void a_cache_is_kept_for_its_owner(void) {
    const char *root = check_folder();
    char *kept = stk_path_join(root, "new/cache");
    char *packs = stk_path_join(kept, "packs");
    stk_storage_options options = {.cache = kept, .cache_size = 1 << 20, .read_timeout_s = 30};
    stk_error err = {0};
    stk_store *store = NULL;
    struct stat info;
    mode_t mask = umask(022);
    stk_status status = stk_store_open(&store, root, &options, NULL, &err);
    umask(mask);
    REQUIRE_OK(status, &err);
    stk_store_close(store);
    CHECK(stat(kept, &info) == 0 && (info.st_mode & 0777) == 0755);
    CHECK(stat(packs, &info) == 0 && (info.st_mode & 0777) == 0700);
    stk_mem_free(kept);
    stk_mem_free(packs);
}

static void pictures_are_told_by_their_names(void) {
    CHECK_STR(stk_picture_extension("a.jpg"), ".jpg");
    CHECK_STR(stk_picture_extension("a.JPEG"), ".jpeg");
    CHECK_STR(stk_picture_extension("a.gif.Png"), ".png");
    CHECK_STR(stk_picture_extension("b/a.webp"), ".webp");
    CHECK_STR(stk_picture_extension("1.2.840.DCM"), ".dcm");
    CHECK_STR(stk_picture_extension("a.TIFF"), ".tiff");
    CHECK(stk_picture_extension("a.npz") == NULL);
    static const char *const others[] = {"a.svg", "a.jpg.txt", "jpg", ".jpg", "b/.jpg", ""};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        CHECK(stk_picture_extension(others[i]) == NULL);
    }
}

static const check_test tests[] = {
    TEST(failures_are_explained),        TEST(reads_what_was_written),
    TEST(errors_name_the_object),        TEST(objects_over_the_limit_are_refused),
    TEST(a_cache_is_kept_for_its_owner), TEST(pictures_are_told_by_their_names),
};

CHECK_MAIN(tests)
