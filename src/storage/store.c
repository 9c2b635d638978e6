/* storage.c - hands a request to the source that serves its root. */
#include "storage/storage.h"

#include "base/error.h"

static const stk_storage_source *const sources[] = {
    &stk_storage_local,
};

stk_status stk_storage_read(const char *root, const char *path, stk_bytes *bytes, stk_error *err) {
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
        if (sources[i]->matches(root)) {
            return sources[i]->read(root, path, bytes, err);
        }
    }
    return STK_FAIL(err, STK_ERR_USAGE,
                    "cannot read %s from %s: this build of Stoker reads local folders only; copy "
                    "the data to one",
                    path, root);
}
