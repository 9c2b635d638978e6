/* host_memory.h - batches in memory from which the device takes them fastest. */
#ifndef STK_TRAIN_HOST_MEMORY_H
#define STK_TRAIN_HOST_MEMORY_H

#include "engine/backend.h"
#include "loader/loader.h"

/* Outlives every loader that has its memory; the device is closed after them. */
typedef struct stk_host_memory {
    const stk_backend *backend;
    stk_device *device;
} stk_host_memory;

/* For stk_loader_config.memory. */
stk_loader_memory stk_host_memory_for_loader(stk_host_memory *host);

#endif
