/* backends.h - the list of backends, and which one a device name means. */
#ifndef STK_BACKEND_BACKENDS_H
#define STK_BACKEND_BACKENDS_H

#include "engine/backend.h"

typedef struct stk_backend_choice {
    const stk_backend *backend;
    int index;     /* for stk_device_config: which one of several */
    char why[256]; /* in a few words, why it was this one */
} stk_backend_choice;

/*
 * "auto", "cpu" or "cuda[:N]" to a backend. A name that means nothing is STK_ERR_USAGE; one whose
 * device is not there STK_ERR_DEVICE.
 */
STK_CHECKED stk_status stk_backend_find(const char *device, stk_backend_choice *choice,
                                        stk_error *err);

#endif
