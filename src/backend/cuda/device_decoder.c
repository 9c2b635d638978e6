/* device_decoder.c - opens and closes the decoder of a device: the decoder_ functions of
 * stk_backend. */
#include "backend/cuda/device.h"

#include "base/error.h"
#include "base/mem.h"

static size_t memory_of(const stk_device *device) {
    return device->limit_bytes < device->total_bytes ? device->limit_bytes : device->total_bytes;
}

uint64_t stk_cuda_device_decoder_bytes(stk_device *device) {
    return stk_cuda_decoder_bytes(memory_of(device));
}

stk_status stk_cuda_device_decoder_open(stk_device_decoder *decoder, stk_device *device,
                                        stk_error *err) {
    cuda_pointer memory = 0;
    size_t bytes = stk_cuda_decoder_own_bytes(memory_of(device));
    stk_status status = stk_cuda_enter(device, err);
    STK_THEN(status, stk_cuda_check(device->driver, stk_cuda_take(device, &memory, bytes),
                                    "opening the decoder of the GPU", err));
    if (status != STK_OK) {
        return status;
    }
    const cuda_decoder_config config = {.driver = device->driver,
                                        .libraries = &device->libraries,
                                        .kernels = device->kernels,
                                        .context = device->context,
                                        .memory = memory,
                                        .memory_bytes = bytes};
    status = stk_cuda_decoder_open(&device->decoder, &config, err);
    if (status != STK_OK) {
        stk_cuda_give(device, memory, bytes);
        return status;
    }
    device->decoder_memory = memory;
    device->decoder_bytes = bytes;
    *decoder = stk_cuda_decoder_for_loaders(device->decoder);
    return STK_OK;
}

void stk_cuda_device_decoder_close(stk_device *device) {
    if (device->decoder == NULL || device->decoder_is_abandoned) {
        return;
    }
    stk_error ignored = {0};
    if (stk_cuda_enter(device, &ignored) != STK_OK) {
        device->decoder_is_abandoned = true;
        return;
    }
    device->decoder_is_abandoned = !stk_cuda_decoder_close(device->decoder);
    if (!device->decoder_is_abandoned) {
        stk_cuda_give(device, device->decoder_memory, device->decoder_bytes);
        device->decoder = NULL;
    }
}
