/*
 * memory_check.h - checks that a device has the memory for a batch, before anything is allocated.
 * Threads: the one that has the device.
 */
#ifndef STK_ENGINE_MEMORY_CHECK_H
#define STK_ENGINE_MEMORY_CHECK_H

#include "engine/backend.h"

/* All that will be in the device's memory at the same time. All pointers are borrowed. */
typedef struct stk_memory_ask {
    const stk_backend *backend;
    stk_device *device;
    const stk_graph *graph;
    const char *model;                 /* its name, for messages */
    const stk_state_config *state;     /* of the parameters */
    const stk_compile_config *compile; /* the executable whose batch is in question */
    const stk_compile_config *other;   /* a second executable beside it; NULL: none */
    /* Further bytes per picture of a batch: the loader's batches, where the device computes in the
     * host's memory. */
    uint64_t picture_bytes;
    uint64_t kept_bytes; /* of the free memory: others will take them */
} stk_memory_ask;

/* The bytes that all of it needs at this batch size; UINT64_MAX on overflow. */
STK_CHECKED stk_status stk_memory_total(const stk_memory_ask *ask, size_t batch, uint64_t *bytes,
                                        stk_error *err);

/*
 * Fails with STK_ERR_MEMORY where memory is short; the message has the largest batch that would
 * fit. Allocates nothing and takes milliseconds.
 */
STK_CHECKED stk_status stk_memory_check(const stk_memory_ask *ask, stk_error *err);

#endif
