/* host_memory.h - lets a loader allocate its slots where the device reads them fastest (pinned). */
#ifndef STK_TRAIN_HOST_MEMORY_H
#define STK_TRAIN_HOST_MEMORY_H

#include "engine/backend.h"
#include "loader/loader.h"

/* Must outlive every loader that uses it; the device is closed after the loaders. */
typedef struct stk_host_memory {
    const stk_backend *backend;
    stk_device *device;
} stk_host_memory;

/* For stk_loader_config.memory. */
stk_loader_memory stk_host_memory_for_loader(stk_host_memory *host);

#endif
