/* local.c - files below a folder. */
#include "storage/storage.h"

#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/mem.h"

/* Whatever does not look like an address is a folder. */
static bool matches(const char *root) {
    return strstr(root, "://") == NULL;
}

static stk_status read_file(const char *root, const char *path, uint8_t **bytes, size_t *size,
                            stk_error *err) {
    char *whole = stk_path_join(root, path);
    if (whole == NULL) {
        return STK_FAIL_MEMORY(err, path);
    }
    char *data = NULL;
    stk_status status = stk_file_read(whole, STK_STORAGE_MAX_BYTES, &data, size, err);
    if (status == STK_OK) {
        *bytes = (uint8_t *)data;
    }
    stk_mem_free(whole);
    return status;
}

const stk_storage_source stk_storage_local = {
    .name = "local",
    .matches = matches,
    .read = read_file,
};
