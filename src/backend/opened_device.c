/* opened_device.c - finds the backend, opens the device, resolves the precision. */
#include "backend/opened_device.h"

#include <stdio.h>
#include <string.h>

#include "backend/backends.h"

/* Seconds; a quarter of a second and more was seen with an H200. */
#define GPU_END_S 0.5

stk_status stk_opened_device_open(stk_opened_device *opened, const char *name, stk_precision asked,
                                  const stk_device_config *config, stk_error *err) {
    stk_backend_choice found;
    stk_device_config own = *config;
    memset(opened, 0, sizeof *opened);
    stk_status status = stk_backend_find(name != NULL ? name : "auto", &found, err);
    if (status == STK_OK) {
        own.index = found.index;
        status = found.backend->device_open(&opened->device, &own, err);
    }
    if (status != STK_OK) {
        return status;
    }
    const stk_backend *backend = found.backend;
    opened->backend = backend;
    snprintf(opened->why, sizeof opened->why, "%s", found.why);
    bool single = stk_opened_device_is_cpu(opened);
    snprintf(opened->name, sizeof opened->name, single ? "%s" : "%s:%d", backend->name, own.index);
    opened->precision = backend->precision(opened->device, asked);
    return STK_OK;
}

void stk_opened_device_close(stk_opened_device *opened) {
    if (opened->backend != NULL) {
        opened->backend->device_close(opened->device);
    }
    memset(opened, 0, sizeof *opened);
}

bool stk_opened_device_is_cpu(const stk_opened_device *opened) {
    return stk_backend_is_cpu(opened->backend);
}

double stk_opened_device_end_s(const stk_opened_device *opened) {
    return opened->backend == NULL || stk_opened_device_is_cpu(opened) ? 0 : GPU_END_S;
}

const char *stk_opened_device_describe(const stk_opened_device *opened, char *text, size_t room) {
    snprintf(text, room, "%s (%s)", opened->backend->describe(opened->device), opened->why);
    return text;
}

const char *stk_opened_device_explain_precision(const stk_opened_device *opened, char *why,
                                                size_t room) {
    snprintf(why, room, "the %s computes in %s", stk_opened_device_is_cpu(opened) ? "CPU" : "GPU",
             stk_precision_name(opened->precision));
    return why;
}

const char *stk_precision_name(stk_precision precision) {
    static const char *const names[] = {[STK_PRECISION_AUTO] = "auto",
                                        [STK_PRECISION_FP16] = "fp16",
                                        [STK_PRECISION_BF16] = "bf16",
                                        [STK_PRECISION_FP32] = "fp32",
                                        [STK_PRECISION_FP32_STRICT] = "fp32-strict"};
    return names[precision];
}
