/* backends.c - choosing a backend by name. */
#include "backend/backends.h"

#include <stdio.h>
#include <string.h>

#include "backend/cpu/device.h"
#include "backend/cuda/device.h"
#include "base/error.h"
#include "base/str.h"

/* More than any machine has. */
enum { MOST_DEVICES = 1024 };

/* The number in "cuda:N", 0 in "cuda"; false when it is neither. */
static bool parse_cuda(const char *device, int *index) {
    int64_t number = 0;
    if (strncmp(device, "cuda", 4) != 0 || (device[4] != '\0' && device[4] != ':')) {
        return false;
    }
    if (device[4] == ':' && (device[5] < '0' || device[5] > '9' ||
                             !stk_parse_int(device + 5, &number) || number >= MOST_DEVICES)) {
        return false;
    }
    *index = (int)number;
    return true;
}

stk_status stk_backend_find(const char *device, stk_backend_choice *choice, stk_error *err) {
    *choice = (stk_backend_choice){.backend = &stk_cpu_backend, .why = "given"};
    char found[512];
    if (strcmp(device, "auto") == 0) {
        bool usable = stk_cuda_usable(0, found, sizeof found);
        choice->backend = usable ? &stk_cuda_backend : &stk_cpu_backend;
        snprintf(choice->why, sizeof choice->why, "auto: %.*s", (int)sizeof choice->why - 8, found);
        return STK_OK;
    }
    if (strcmp(device, stk_cpu_backend.name) == 0) {
        return STK_OK;
    }
    if (parse_cuda(device, &choice->index)) {
        choice->backend = &stk_cuda_backend;
        return stk_cuda_usable(choice->index, found, sizeof found)
                   ? STK_OK
                   : STK_FAIL(err, STK_ERR_DEVICE, "--device %s: %s; use --device cpu or auto",
                              device, found);
    }
    return STK_FAIL(err, STK_ERR_USAGE, "--device %s: give auto, cpu or cuda[:N]", device);
}

bool stk_backend_is_cpu(const stk_backend *backend) {
    return strcmp(backend->name, stk_cpu_backend.name) == 0;
}
