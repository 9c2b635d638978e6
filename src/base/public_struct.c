/* public_struct.c - compares the size that a caller gives with the size that the library knows. */
#include "base/public_struct.h"

#include <stddef.h>
#include <string.h>

#include <stoker/supervise.h>

#include "base/error.h"

/* stk_public_begin reads the size as the first field, without knowing the struct. */
#define BEGINS_WITH_SIZE(type) \
    _Static_assert(offsetof(type, size) == 0, #type " begins with its size")
BEGINS_WITH_SIZE(stk_outcome);
BEGINS_WITH_SIZE(stk_staged);
BEGINS_WITH_SIZE(stk_found_lr);
BEGINS_WITH_SIZE(stk_estimate);
BEGINS_WITH_SIZE(stk_diagnosis);
BEGINS_WITH_SIZE(stk_supervised);

stk_status stk_public_check(const char *name, size_t size, size_t own, stk_error *err) {
    if (size == own) {
        return STK_OK;
    }
    if (size == 0) {
        return STK_FAIL(err, STK_ERR_USAGE,
                        "the size of a %s is not set; begin it with {.size = sizeof(%s)}", name,
                        name);
    }
    return STK_FAIL(err, STK_ERR_USAGE,
                    "a %s of %zu bytes was given, but this library (%s) knows one of %zu; compile "
                    "the program again with the headers of this library",
                    name, size, stk_version(), own);
}

stk_status stk_public_check_run(const stk_run *run, stk_error *err) {
    stk_status status = STK_PUBLIC_CHECK(stk_run, run, err);
    if (status == STK_OK && run != NULL) {
        status = STK_PUBLIC_CHECK(stk_observer, run->observer, err);
    }
    return status;
}

stk_status stk_public_begin(const char *name, void *result, size_t own, const stk_run *run,
                            stk_error *err) {
    size_t *size = result; /* the first field */
    stk_status status = stk_public_check_run(run, err);
    if (status == STK_OK && size != NULL) {
        status = stk_public_check(name, *size, own, err);
    }
    if (status == STK_OK && size != NULL) {
        memset(result, 0, own);
        *size = own;
    }
    return status;
}
