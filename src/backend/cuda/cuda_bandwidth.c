/* cuda_bandwidth.c - how fast the device's memory copies: what a step can be measured against. */
#include "backend/cuda/cuda_exec.h"

#include <math.h>

#define MOST_BYTES ((size_t)1 << 30)
#define ROUNDS 5

/* Milliseconds of the fastest copy; NaN when it cannot be told. */
static double fastest_ms(const stk_device *device, cuda_pointer memory, size_t bytes,
                         const cuda_event events[2]) {
    const cuda_driver *d = device->driver;
    double best = NAN;
    for (int i = 0; i < ROUNDS; i++) {
        float ms = 0;
        if (d->event_record(events[0], device->compute) != CUDA_GOOD ||
            d->copy(memory + bytes, memory, bytes, device->compute) != CUDA_GOOD ||
            d->event_record(events[1], device->compute) != CUDA_GOOD ||
            d->event_wait(events[1]) != CUDA_GOOD ||
            d->event_elapsed_ms(&ms, events[0], events[1]) != CUDA_GOOD) {
            return NAN;
        }
        best = i == 0 || ms < best ? ms : best;
    }
    return best;
}

double stk_cuda_bandwidth(stk_device *device) {
    const cuda_driver *d = device->driver;
    cuda_event events[2] = {NULL, NULL};
    cuda_pointer memory = 0;
    stk_device_memory have;
    double ms = NAN;
    if (stk_cuda_device_memory(device, &have, NULL) != STK_OK) {
        return NAN;
    }
    size_t part = (size_t)have.free_bytes / 8;
    size_t bytes = part < MOST_BYTES ? part : MOST_BYTES;
    if (stk_cuda_take(device, &memory, 2 * bytes) == CUDA_GOOD &&
        d->event_new(&events[0], 0) == CUDA_GOOD && d->event_new(&events[1], 0) == CUDA_GOOD) {
        ms = fastest_ms(device, memory, bytes, events);
    }
    for (int i = 0; i < 2; i++) {
        if (events[i] != NULL) {
            d->event_free(events[i]);
        }
    }
    if (memory != 0) {
        stk_cuda_give(device, memory, 2 * bytes);
    }
    return ms > 0 ? 2 * (double)bytes / (ms * 1e-3) : NAN; /* each byte is read and written */
}
