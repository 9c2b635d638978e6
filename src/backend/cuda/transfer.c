/* transfer.c - pinned memory between the parameters on the GPU and who reads or writes them. */
#include "backend/cuda/transfer.h"

#include <string.h>

#include "backend/cuda/device.h"

/* Bytes of each of the two pieces of pinned memory: copied in half a millisecond. */
#define STAGE_BYTES ((size_t)8 << 20)

static void take_memory(cuda_transfer *t, stk_device *device) {
    if (t->bytes == 0) {
        t->bytes = STAGE_BYTES;
        t->ahead = stk_cuda_device_host_take(device, t->bytes);
        t->sent = stk_cuda_device_host_take(device, t->bytes);
    }
}

/* Whether the memory read last holds the tensor. */
static bool is_ahead(const cuda_transfer *t, const cuda_tensor_place *place) {
    return place->start >= t->ahead_from &&
           place->start + place->bytes <= t->ahead_from + t->ahead_bytes;
}

static bool overlaps(const cuda_transfer *t, const cuda_tensor_place *place) {
    return place->start < t->ahead_from + t->ahead_bytes &&
           t->ahead_from < place->start + place->bytes;
}

stk_status stk_cuda_transfer_read(cuda_transfer *t, stk_device *device,
                                  const cuda_tensor_place *place, uint64_t version, float *values,
                                  stk_error *err) {
    const cuda_driver *d = device->driver;
    take_memory(t, device);
    if (t->ahead == NULL || place->bytes > t->bytes) {
        return stk_cuda_finish(device,
                               d->copy_out(values, place->start, place->bytes, device->compute),
                               "reading a parameter", err);
    }
    if (t->version != version || !is_ahead(t, place)) {
        size_t rest = (size_t)(place->block_end - place->start);
        size_t bytes = rest < t->bytes ? rest : t->bytes;
        t->ahead_bytes = 0;
        stk_status status =
            stk_cuda_finish(device, d->copy_out(t->ahead, place->start, bytes, device->compute),
                            "reading a parameter", err);
        if (status != STK_OK) {
            return status;
        }
        t->ahead_from = place->start;
        t->ahead_bytes = bytes;
        t->version = version;
    }
    memcpy(values, t->ahead + (place->start - t->ahead_from), place->bytes);
    return STK_OK;
}

stk_status stk_cuda_transfer_write(cuda_transfer *t, stk_device *device,
                                   const cuda_tensor_place *place, uint64_t version,
                                   const float *values, stk_error *err) {
    const cuda_driver *d = device->driver;
    take_memory(t, device);
    if (t->version + 1 == version && !overlaps(t, place)) {
        t->version = version; /* what was read is still so */
    }
    if (t->sent == NULL || place->bytes > t->bytes) {
        return stk_cuda_finish(device,
                               d->copy_in(place->start, values, place->bytes, device->compute),
                               "writing a parameter", err);
    }
    if (t->sent_bytes + place->bytes > t->bytes) {
        stk_status status = stk_cuda_finish(device, CUDA_GOOD, "writing a parameter", err);
        if (status != STK_OK) {
            return status;
        }
        t->sent_bytes = 0;
    }
    unsigned char *numbers = t->sent + t->sent_bytes;
    memcpy(numbers, values, place->bytes);
    t->sent_bytes += place->bytes;
    return stk_cuda_check(d, d->copy_in(place->start, numbers, place->bytes, device->compute),
                          "writing a parameter", err);
}

void stk_cuda_transfer_free(cuda_transfer *t, stk_device *device) {
    if (t->sent_bytes > 0 && stk_cuda_enter(device, NULL) == STK_OK) {
        (void)device->driver->stream_wait(device->compute);
    }
    stk_cuda_device_host_free(device, t->ahead);
    stk_cuda_device_host_free(device, t->sent);
    *t = (cuda_transfer){0};
}
