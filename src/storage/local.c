/* local.c - files below a folder. */
#include "storage/storage.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"

/* Whatever does not look like an address is a folder. */
static bool matches(const char *root) {
    return strstr(root, "://") == NULL;
}

static stk_status read_file(const char *root, const char *path, stk_bytes *bytes, stk_error *err) {
    char *whole = stk_path_join(root, path);
    if (whole == NULL) {
        return STK_FAIL_MEMORY(err, path);
    }
    stk_status status = stk_file_read_into(whole, STK_STORAGE_MAX_BYTES, bytes, err);
    stk_mem_free(whole);
    return status;
}

const stk_storage_source stk_storage_local = {
    .name = "local",
    .matches = matches,
    .read = read_file,
};
