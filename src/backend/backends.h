/* backends.h - the list of backends, and which one a device name means. */
#ifndef STK_BACKEND_BACKENDS_H
#define STK_BACKEND_BACKENDS_H

#include "engine/backend.h"

/*
 * "auto", "cpu" or "cuda[:N]" to a backend. *why says in a few words why it was this one (static
 * text). A name that means nothing is STK_ERR_USAGE; one whose device is not there STK_ERR_DEVICE.
 */
STK_CHECKED stk_status stk_backend_find(const char *device, const stk_backend **backend,
                                        const char **why, stk_error *err);

#endif
