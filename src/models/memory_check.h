/*
 * memory_check.h - whether a device has the memory for a batch, before anything is allocated.
 */
#ifndef STK_MODELS_MEMORY_CHECK_H
#define STK_MODELS_MEMORY_CHECK_H

#include "engine/backend.h"

/* What will lie in the device's memory at the same time. */
typedef struct stk_memory_ask {
    const stk_backend *backend;
    stk_device *device;
    const stk_graph *graph;
    const char *model;               /* for people */
    const stk_state_config *state;   /* of the parameters */
    const stk_compile_config *batch; /* what the batch is chosen for */
    const stk_compile_config *other; /* compiled beside it; NULL: nothing */
    /* What else takes its memory, per picture of a batch: batches that are prepared, where the
     * device computes in the host's memory. */
    uint64_t picture_bytes;
} stk_memory_ask;

/* The bytes that all of it needs with this many pictures in a batch; UINT64_MAX: beyond counting.
 */
STK_CHECKED stk_status stk_memory_total(const stk_memory_ask *ask, size_t batch, uint64_t *bytes,
                                        stk_error *err);

/*
 * STK_ERR_DEVICE, with the largest batch that would fit, when there is too little. Nothing is
 * allocated, and it takes milliseconds.
 */
STK_CHECKED stk_status stk_memory_check(const stk_memory_ask *ask, stk_error *err);

#endif
