/* test_storage.c - reading objects below a root. */
#include "check.h"

#include <sys/stat.h>

#include "base/error.h"
#include "base/file.h"
#include "base/mem.h"
#include "storage/storage.h"

static void reads_what_was_written(void) {
    stk_error err = {0};
    const char *root = check_folder();
    char *path = stk_path_join(root, "a.bin");
    const uint8_t contents[] = {1, 0, 2, 255};
    REQUIRE_OK(stk_file_write(path, contents, sizeof contents, &err), &err);
    stk_bytes bytes = {0};
    REQUIRE_OK(stk_storage_read(root, "a.bin", &bytes, &err), &err);
    REQUIRE(bytes.size == sizeof contents);
    CHECK_INT(memcmp(bytes.data, contents, bytes.size), 0);
    stk_bytes_free(&bytes);
    REQUIRE_OK(stk_storage_read("/nowhere", path, &bytes, &err), &err);
    CHECK_INT(bytes.size, sizeof contents);
    stk_bytes_free(&bytes);
    for (int64_t failed = 0;; failed++) {
        stk_error_clear(&err);
        stk_bytes_free(&bytes);
        stk_mem_fail_after(failed);
        stk_status status = stk_storage_read(root, "a.bin", &bytes, &err);
        stk_mem_fail_after(-1);
        if (status == STK_OK) {
            CHECK(failed >= 2);
            break;
        }
        CHECK_INT(status, STK_ERR_MEMORY);
    }
    stk_bytes_free(&bytes);
    stk_mem_free(path);
}

static void errors_name_the_object(void) {
    const char *root = check_folder();
    stk_bytes bytes = {0};
    stk_error err = {0};
    CHECK_INT(stk_storage_read(root, "missing.jpg", &bytes, &err), STK_ERR_STORAGE);
    CHECK_CONTAINS(err.message, "missing.jpg");
    stk_error_clear(&err);
    CHECK_INT(stk_storage_read(root, "", &bytes, &err), STK_ERR_STORAGE);
    CHECK_CONTAINS(err.message, "folder");
    stk_error_clear(&err);
    CHECK_INT(stk_storage_read("gopher://there", "a.jpg", &bytes, &err), STK_ERR_USAGE);
    CHECK_CONTAINS(err.message, "gopher://there");
}

static void objects_over_the_limit_are_refused(void) {
    stk_error err = {0};
    const char *root = check_folder();
    char *path = stk_path_join(root, "huge");
    REQUIRE_OK(stk_file_write(path, "", 0, &err), &err);
    /* A hole takes no room on the disk. */
    REQUIRE(truncate(path, (off_t)STK_STORAGE_MAX_BYTES + 10) == 0);
    stk_bytes bytes = {0};
    CHECK_INT(stk_storage_read(root, "huge", &bytes, &err), STK_ERR_STORAGE);
    CHECK_CONTAINS(err.message, "larger than");
    stk_mem_free(path);
}

static const check_test tests[] = {
    TEST(reads_what_was_written),
    TEST(errors_name_the_object),
    TEST(objects_over_the_limit_are_refused),
};

CHECK_MAIN(tests)
