/* backends.c - choosing a backend by name. */
#include "backend/backends.h"

#include <string.h>

#include "backend/cpu/cpu_device.h"
#include "base/error.h"

stk_status stk_backend_find(const char *device, const stk_backend **backend, const char **why,
                            stk_error *err) {
    if (strcmp(device, "auto") == 0) {
        *backend = &stk_cpu_backend;
        *why = "auto: this version trains on the CPU";
        return STK_OK;
    }
    if (strcmp(device, stk_cpu_backend.name) == 0) {
        *backend = &stk_cpu_backend;
        *why = "given";
        return STK_OK;
    }
    if (strncmp(device, "cuda", 4) == 0 && (device[4] == '\0' || device[4] == ':')) {
        return STK_FAIL(
            err, STK_ERR_DEVICE,
            "--device %s: this version trains on the CPU only; use --device cpu or auto", device);
    }
    return STK_FAIL(err, STK_ERR_USAGE, "--device %s: give auto, cpu or cuda[:N]", device);
}
