/* backends.h - the list of backends, and which one a device name means. */
#ifndef STK_BACKEND_BACKENDS_H
#define STK_BACKEND_BACKENDS_H

#include "engine/backend.h"

typedef struct stk_backend_choice {
    const stk_backend *backend;
    int index;     /* number of the device, for stk_device_config */
    char why[256]; /* why this backend, in a few words */
} stk_backend_choice;

/*
 * Finds the backend for "auto", "cpu" or "cuda[:N]". An unknown name is STK_ERR_USAGE, a device
 * that does not exist STK_ERR_DEVICE.
 */
STK_CHECKED stk_status stk_backend_find(const char *device, stk_backend_choice *choice,
                                        stk_error *err);

/* Whether devices of this backend compute in the host's memory, on the host's cores. */
bool stk_backend_is_cpu(const stk_backend *backend);

#endif
