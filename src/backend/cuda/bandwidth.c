/*
 * bandwidth.c - how fast memory is copied: on the device, which bounds a step, and from the host to
 * the device.
 */
#include "backend/cuda/exec.h"

#include <math.h>

#define MOST_BYTES ((size_t)1 << 30)
#define ROUNDS 5

/* A copy of so many bytes: from `host`, or from one half of the device's memory to the other. */
typedef struct copying {
    stk_device *device;
    void *host; /* NULL: on the device */
    cuda_pointer memory;
    size_t bytes;
} copying;

static int begin_copy(const copying *c) {
    const cuda_driver *d = c->device->driver;
    return c->host != NULL ? d->copy_in(c->memory, c->host, c->bytes, c->device->compute)
                           : d->copy(c->memory + c->bytes, c->memory, c->bytes, c->device->compute);
}

/* Milliseconds of the fastest copy; NaN: it failed. */
static double fastest_ms(const copying *c, const cuda_event events[2]) {
    const cuda_driver *d = c->device->driver;
    double best = NAN;
    for (int i = 0; i < ROUNDS; i++) {
        float ms = 0;
        if (d->event_record(events[0], c->device->compute) != CUDA_GOOD ||
            begin_copy(c) != CUDA_GOOD ||
            d->event_record(events[1], c->device->compute) != CUDA_GOOD ||
            d->event_wait(events[1]) != CUDA_GOOD ||
            d->event_elapsed_ms(&ms, events[0], events[1]) != CUDA_GOOD) {
            return NAN;
        }
        best = i == 0 || ms < best ? ms : best;
    }
    return best;
}

/* Bytes per second, one way; NaN: the copy failed. */
static double measure(copying *c) {
    const cuda_driver *d = c->device->driver;
    cuda_event events[2] = {NULL, NULL};
    size_t room = c->host != NULL ? c->bytes : 2 * c->bytes;
    double ms = NAN;
    if (stk_cuda_take(c->device, &c->memory, room) == CUDA_GOOD &&
        d->event_new(&events[0], 0) == CUDA_GOOD && d->event_new(&events[1], 0) == CUDA_GOOD) {
        ms = fastest_ms(c, events);
    }
    for (int i = 0; i < 2; i++) {
        if (events[i] != NULL) {
            d->event_free(events[i]);
        }
    }
    if (c->memory != 0) {
        stk_cuda_give(c->device, c->memory, room);
    }
    return ms > 0 ? (double)c->bytes / (ms * 1e-3) : NAN;
}

double stk_cuda_bandwidth(stk_device *device) {
    stk_device_memory have;
    if (stk_cuda_device_memory(device, &have, NULL) != STK_OK) {
        return NAN;
    }
    size_t part = (size_t)have.free_bytes / 8;
    copying c = {.device = device, .bytes = part < MOST_BYTES ? part : MOST_BYTES};
    return 2 * measure(&c); /* each byte is read and written */
}

double stk_cuda_copy_bandwidth(stk_device *device, size_t bytes) {
    copying c = {
        .device = device, .host = stk_cuda_device_host_take(device, bytes), .bytes = bytes};
    double rate = c.host != NULL && bytes > 0 ? measure(&c) : NAN;
    stk_cuda_device_host_free(device, c.host);
    return rate;
}
