/* symbols.c - function pointers from an open library, all or none. */
#include "backend/cuda/driver/symbols.h"

#include <dlfcn.h>
#include <string.h>

#include "base/error.h"

stk_status stk_cuda_symbols(void *library, const char *what, const cuda_symbol *symbols,
                            size_t count, stk_error *err) {
    for (size_t i = 0; i < count; i++) {
        void *found = dlsym(library, symbols[i].name);
        if (found == NULL) {
            return STK_FAIL(err, STK_ERR_DEVICE,
                            "%s has no function %s: its version is not supported; update it", what,
                            symbols[i].name);
        }
        memcpy(symbols[i].place, &found, sizeof found);
    }
    return STK_OK;
}
