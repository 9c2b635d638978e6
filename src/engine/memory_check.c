/*
 * memory_check.c - adds up state, executables and batches, and compares the sum with the free
 * memory.
 */
#include "engine/memory_check.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"

/* No machine has more, and sums of larger numbers could overflow in a layout. */
#define MOST_BYTES ((uint64_t)1 << 56)

/* An upper bound of the bytes that a layout multiplies with the batch: all values, their gradients,
 * and as much again. */
static uint64_t picture_most(const stk_graph *graph) {
    uint64_t numbers = 0;
    for (int v = 0; v < graph->value_count; v++) {
        numbers += stk_shape_count(graph->values[v].shape);
    }
    return 4 * numbers * sizeof(float);
}

stk_status stk_memory_total(const stk_memory_ask *ask, size_t batch, uint64_t *bytes,
                            stk_error *err) {
    stk_compile_config config = *ask->compile;
    uint64_t execs[2] = {0};
    *bytes = UINT64_MAX;
    if (batch > MOST_BYTES / (picture_most(ask->graph) + ask->picture_bytes)) {
        return STK_OK;
    }
    config.batch = batch;
    stk_status status =
        ask->backend->exec_need(ask->device, ask->graph, &config, &execs[0], NULL, err);
    if (status == STK_OK && ask->other != NULL) {
        status = ask->backend->exec_need(ask->device, ask->graph, ask->other, &execs[1], NULL, err);
    }
    if (status == STK_OK) {
        *bytes = execs[0] + execs[1] + ask->backend->state_bytes(ask->graph, ask->state) +
                 batch * ask->picture_bytes;
    }
    return status;
}

/* 0: not even one picture fits. */
static size_t largest_that_fits(const stk_memory_ask *ask, uint64_t free_bytes) {
    size_t low = 0;
    size_t high = ask->compile->batch;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        uint64_t bytes;
        stk_error ignored = {0};
        bool fits =
            stk_memory_total(ask, middle, &bytes, &ignored) == STK_OK && bytes <= free_bytes;
        low = fits ? middle : low;
        high = fits ? high : middle;
    }
    return low;
}

static const char *format(char *text, size_t room, uint64_t bytes) {
    double mib = (double)bytes / 1048576;
    if (bytes == UINT64_MAX) {
        snprintf(text, room, "more than can be counted");
    } else {
        snprintf(text, room, mib < 1024 ? "%.0f MiB" : "%.1f GiB", mib < 1024 ? mib : mib / 1024);
    }
    return text;
}

stk_status stk_memory_check(const stk_memory_ask *ask, stk_error *err) {
    stk_device_memory memory = {0};
    uint64_t bytes = 0;
    stk_status status = ask->backend->memory(ask->device, &memory, err);
    memory.free_bytes -= ask->kept_bytes < memory.free_bytes ? ask->kept_bytes : memory.free_bytes;
    STK_THEN(status, stk_memory_total(ask, ask->compile->batch, &bytes, err));
    if (status != STK_OK || bytes <= memory.free_bytes) {
        return status;
    }
    bool host = strcmp(ask->backend->name, "cpu") == 0;
    size_t fits = largest_that_fits(ask, memory.free_bytes);
    char need[32];
    char have[32];
    char largest[64];
    snprintf(largest, sizeof largest, "the largest that fits is %zu", fits);
    return STK_FAIL(err, STK_ERR_MEMORY,
                    "batch %zu of %s at %d px needs %s of %s memory and %s %s; %s: use %s "
                    "--img-size",
                    ask->compile->batch, ask->model, ask->graph->img_size,
                    format(need, sizeof need, bytes), host ? "this machine's" : "the GPU's",
                    format(have, sizeof have, memory.free_bytes), host ? "can be used" : "are free",
                    fits > 0 ? largest : "not even one picture fits",
                    fits > 0 ? "a smaller --batch (with --accumulate) or" : "a smaller");
}
