/*
 * device.c - a GPU: its libraries, its context and streams, and its store on disk.
 *
 * Making a context and opening the large libraries take some tenths of a second each, and more
 * after a boot: a second thread opens the libraries meanwhile.
 */
#include "backend/cuda/device.h"

#include <pthread.h>
#include <stdio.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/threads/thread.h"

/* CUDA 13 has neither compiler nor convolutions for older GPUs. */
enum { OLDEST_FOR_CUDA_13 = 75 };

/* The driver needs memory later: one RESERVE_PARTth of all, but not more than the bytes below. */
#define RESERVE_PART 256
#define MOST_RESERVE_BYTES ((size_t)512 << 20)

/* No context with its libraries takes more: other processes use the rest. */
#define MOST_CONTEXT_BYTES ((size_t)1 << 30)

stk_status stk_cuda_enter(stk_device *device, stk_error *err) {
    return stk_cuda_check(device->driver, device->driver->context_use(device->context),
                          "entering the GPU's context", err);
}

/* The newest CUDA whose libraries can work with a GPU; 0: any. */
static int most_major_for(const stk_device *d) {
    return 10 * d->major + d->minor < OLDEST_FOR_CUDA_13 ? 12 : 0;
}

static stk_status count_devices(const cuda_driver *driver, int *count, stk_error *err) {
    int result = driver->init(0);
    if (result == CUDA_GOOD) {
        result = driver->device_count(count);
    }
    if (result == CUDA_ERROR_NO_DEVICE_ || (result == CUDA_GOOD && *count == 0)) {
        return STK_FAIL(err, STK_ERR_DEVICE,
                        "the NVIDIA driver sees no GPU (CUDA_VISIBLE_DEVICES hides those that it "
                        "does not name)");
    }
    return stk_cuda_check(driver, result, "starting the NVIDIA driver", err);
}

/* What is known of a GPU without touching it. Its driver is open. */
static stk_status ask_device(stk_device *d, stk_error *err) {
    const cuda_driver *driver = d->driver;
    int count = 0;
    stk_status status = count_devices(driver, &count, err);
    if (status != STK_OK) {
        return status;
    }
    if (d->config.index < 0 || d->config.index >= count) {
        return count == 1
                   ? STK_FAIL(err, STK_ERR_DEVICE,
                              "there is no GPU number %d: there is one, number 0", d->config.index)
                   : STK_FAIL(err, STK_ERR_DEVICE,
                              "there is no GPU number %d: there are %d, from number 0",
                              d->config.index, count);
    }
    int result = driver->device_get(&d->ordinal, d->config.index);
    if (result == CUDA_GOOD) {
        result = driver->device_name(d->name, (int)sizeof d->name, d->ordinal);
    }
    if (result == CUDA_GOOD) {
        result = driver->device_memory(&d->total_bytes, d->ordinal);
    }
    const struct {
        int attribute;
        int *value;
    } wanted[] = {{CUDA_ATTRIBUTE_MULTIPROCESSORS, &d->multiprocessors},
                  {CUDA_ATTRIBUTE_MAJOR, &d->major},
                  {CUDA_ATTRIBUTE_MINOR, &d->minor}};
    for (size_t i = 0; i < STK_COUNT(wanted) && result == CUDA_GOOD; i++) {
        result = driver->device_attribute(wanted[i].value, wanted[i].attribute, d->ordinal);
    }
    d->name[sizeof d->name - 1] = '\0';
    if (driver->device_bus_id(d->bus_id, (int)sizeof d->bus_id, d->ordinal) != CUDA_GOOD) {
        d->bus_id[0] = '\0';
    }
    return stk_cuda_check(driver, result, "asking the GPU what it is", err);
}

bool stk_cuda_usable(int index, char *why, size_t room) {
    stk_error err = {0};
    stk_device d = {.config = {.index = index}, .driver = &d.libraries.driver};
    stk_status status = stk_cuda_driver_open(&d.libraries, &err);
    STK_THEN(status, ask_device(&d, &err));
    bool seen = status == STK_OK;
    STK_THEN(status, stk_cuda_toolkit_open(&d.libraries, most_major_for(&d), true, &err));
    if (status == STK_OK) {
        snprintf(why, room, "%s, driver for CUDA %d.%d, cuDNN %d.%d", d.name,
                 d.libraries.driver_version / 1000, d.libraries.driver_version % 1000 / 10,
                 d.libraries.cudnn_version / 10000, d.libraries.cudnn_version % 10000 / 100);
    } else if (seen) {
        snprintf(why, room, "there is %s, but %s", d.name, err.message);
    } else {
        snprintf(why, room, "%s", err.message);
    }
    stk_cuda_libraries_close(&d.libraries);
    return status == STK_OK;
}

typedef struct toolkit_opening {
    stk_device *device;
    stk_status status;
    stk_error err;
} toolkit_opening;

static void *open_toolkit(void *context) {
    toolkit_opening *o = context;
    o->status =
        stk_cuda_toolkit_open(&o->device->libraries, most_major_for(o->device), false, &o->err);
    return NULL;
}

static stk_status make_context(stk_device *d, stk_error *err) {
    stk_status status =
        stk_cuda_check(d->driver, d->driver->context_retain(&d->context, d->ordinal),
                       "making a context on the GPU", err);
    STK_THEN(status, stk_cuda_enter(d, err));
    STK_THEN(status,
             stk_cuda_check(d->driver, d->driver->stream_new(&d->compute, CUDA_STREAM_NON_BLOCKING),
                            "making a stream on the GPU", err));
    STK_THEN(status,
             stk_cuda_check(d->driver, d->driver->stream_new(&d->copy, CUDA_STREAM_NON_BLOCKING),
                            "making a stream on the GPU", err));
    return status;
}

/* The context and the libraries, at the same time where there can be a second thread. */
static stk_status open_both(stk_device *d, stk_error *err) {
    toolkit_opening toolkit = {.device = d};
    pthread_t thread;
    const stk_thread_config config = {.what = "opens NVIDIA's libraries"};
    bool apart = stk_thread_start(&thread, &config, open_toolkit, &toolkit, NULL) == STK_OK;
    stk_status status = make_context(d, err);
    if (apart) {
        pthread_join(thread, NULL);
    } else {
        open_toolkit(&toolkit);
    }
    if (status == STK_OK && toolkit.status != STK_OK) {
        status = toolkit.status;
        if (err != NULL) {
            *err = toolkit.err;
        }
    }
    return status;
}

static void describe(stk_device *d) {
    const cuda_libraries *l = &d->libraries;
    const char *stand_in = stk_cuda_kernels_stand_in(d->kernels);
    char kernels[96] = "";
    char held[64] = "";
    double gib = (double)d->config.memory_bytes / (double)(1 << 30);
    if (d->config.memory_bytes > 0) {
        snprintf(held, sizeof held,
                 d->config.memory_bytes < d->total_bytes ? ", held to %.3g GiB"
                                                         : ", less than the assumed %.3g GiB",
                 gib);
    }
    if (stand_in != NULL) {
        snprintf(kernels, sizeof kernels, ", kernels for %s: NVRTC %d.%d does not know sm_%d%d",
                 stand_in, l->nvrtc_version / 100, l->nvrtc_version % 100, d->major, d->minor);
    }
    snprintf(d->description, sizeof d->description, "%s, %.1f GiB%s, CUDA %d.%d, cuDNN %d.%d.%d%s",
             d->name, (double)d->total_bytes / (double)(1 << 30), held, l->driver_version / 1000,
             l->driver_version % 1000 / 10, l->cudnn_version / 10000,
             l->cudnn_version % 10000 / 100, l->cudnn_version % 100, kernels);
}

/* The store for this GPU, driver and set of libraries. */
static stk_status open_store(stk_device *d, stk_error *err) {
    const cuda_libraries *l = &d->libraries;
    char *machine =
        stk_str_format("%s, compute %d.%d, %d multiprocessors, driver %d, nvrtc %d, cudnn %d, "
                       "cublaslt %zu, stoker %s",
                       d->name, d->major, d->minor, d->multiprocessors, l->driver_version,
                       l->nvrtc_version, l->cudnn_version, l->cublaslt_version, stk_version());
    stk_status status = machine != NULL ? stk_cuda_store_open(&d->store, NULL, machine, err)
                                        : STK_FAIL_MEMORY(err, "the name of the GPU");
    stk_mem_free(machine);
    return status;
}

static stk_status open_makers(stk_device *d, stk_error *err) {
    cuda_kernels_config kernels = {.driver = d->driver,
                                   .nvrtc = &d->libraries.nvrtc,
                                   .store = d->store,
                                   .major = d->major,
                                   .minor = d->minor,
                                   .threads = d->config.threads,
                                   .halted = d->config.halted,
                                   .user = d->config.user};
    stk_status status = stk_cuda_kernels_open(&d->kernels, &kernels, err);
    cuda_convs_config convs = {.driver = d->driver,
                               .libraries = &d->libraries,
                               .kernels = d->kernels,
                               .store = d->store,
                               .stream = d->compute,
                               .context = d->context,
                               .threads = d->config.threads,
                               .multiprocessors = d->multiprocessors,
                               .major = d->major,
                               .deterministic = d->config.deterministic,
                               .halted = d->config.halted,
                               .user = d->config.user};
    STK_THEN(status, stk_cuda_convs_open(&d->convs, &convs, err));
    return status == STK_OK && !d->config.deterministic
               ? stk_cuda_tuning_results_open(&d->tuning_results, d->store, err)
               : status;
}

/* Sets the limit of memory. A smaller GPU would hold a context as well, so that is subtracted. */
static stk_status hold_memory(stk_device *d, stk_error *err) {
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    size_t assumed = (size_t)d->config.memory_bytes;
    d->limit_bytes = SIZE_MAX;
    if (assumed == 0 || assumed >= d->total_bytes) {
        return STK_OK;
    }
    stk_status status = stk_cuda_check(d->driver, d->driver->memory_info(&free_bytes, &total_bytes),
                                       "asking the GPU for its free memory", err);
    size_t used = total_bytes - free_bytes;
    size_t context = used < MOST_CONTEXT_BYTES ? used : MOST_CONTEXT_BYTES;
    d->limit_bytes = assumed > context ? assumed - context : 0;
    return status;
}

stk_status stk_cuda_device_open(stk_device **device, const stk_device_config *config,
                                stk_error *err) {
    stk_device *d = stk_mem_new(1, sizeof *d);
    if (d == NULL) {
        return STK_FAIL_MEMORY(err, "a device");
    }
    d->config = *config;
    d->driver = &d->libraries.driver;
    stk_status status = stk_cuda_driver_open(&d->libraries, err);
    STK_THEN(status, ask_device(d, err));
    STK_THEN(status, open_both(d, err));
    STK_THEN(status, hold_memory(d, err));
    STK_THEN(status, open_store(d, err));
    STK_THEN(status, open_makers(d, err));
    if (status != STK_OK) {
        stk_cuda_device_close(d);
        return status;
    }
    describe(d);
    *device = d;
    return STK_OK;
}

void stk_cuda_device_close(stk_device *device) {
    if (device == NULL || device->decoder_is_abandoned ||
        stk_cuda_kernels_are_abandoned(device->kernels) ||
        stk_cuda_convs_are_abandoned(device->convs)) {
        return; /* abandoned threads use all of it until the process ends */
    }
    if (device->context != NULL) {
        (void)device->driver->context_use(device->context);
        stk_cuda_convs_close(device->convs);
        stk_cuda_kernels_close(device->kernels);
        if (device->compute != NULL) {
            (void)device->driver->stream_free(device->compute);
        }
        if (device->copy != NULL) {
            (void)device->driver->stream_free(device->copy);
        }
        (void)device->driver->context_use(NULL);
        (void)device->driver->context_release(device->ordinal);
    }
    stk_cuda_tuning_results_close(device->tuning_results);
    stk_cuda_store_close(device->store);
    stk_cuda_libraries_close(&device->libraries);
    stk_mem_free(device);
}

const char *stk_cuda_device_describe(const stk_device *device) {
    return device->description;
}

const char *stk_cuda_device_bus_id(const stk_device *device) {
    return device->bus_id[0] != '\0' ? device->bus_id : NULL;
}

/* Bytes that the driver will take later for code, graphs and stacks; they do not count as free. */
static size_t reserve_of(size_t total_bytes) {
    size_t part = total_bytes / RESERVE_PART;
    return part < MOST_RESERVE_BYTES ? part : MOST_RESERVE_BYTES;
}

stk_status stk_cuda_device_memory(stk_device *device, stk_device_memory *memory, stk_error *err) {
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    stk_status status = stk_cuda_enter(device, err);
    STK_THEN(status,
             stk_cuda_check(device->driver, device->driver->memory_info(&free_bytes, &total_bytes),
                            "asking the GPU for its free memory", err));
    if (device->limit_bytes != SIZE_MAX) {
        size_t left = device->limit_bytes - device->taken_bytes;
        total_bytes = (size_t)device->config.memory_bytes;
        free_bytes = left < free_bytes ? left : free_bytes;
    }
    size_t reserve = reserve_of(total_bytes);
    *memory = (stk_device_memory){.total_bytes = total_bytes,
                                  .free_bytes = free_bytes > reserve ? free_bytes - reserve : 0};
    return status;
}

int stk_cuda_take(stk_device *device, cuda_pointer *pointer, size_t bytes) {
    if (bytes > device->limit_bytes - device->taken_bytes) {
        return CUDA_ERROR_OUT_OF_MEMORY_;
    }
    int result = device->driver->memory_take(pointer, bytes);
    device->taken_bytes += result == CUDA_GOOD ? bytes : 0;
    return result;
}

void stk_cuda_give(stk_device *device, cuda_pointer pointer, size_t bytes) {
    (void)device->driver->memory_free(pointer);
    device->taken_bytes -= bytes;
}

void stk_cuda_device_counts(const stk_device *device, stk_device_counts *counts) {
    stk_cuda_kernels_counts(device->kernels, &counts->kernels_compiled, &counts->kernels_loaded);
    stk_cuda_convs_counts(device->convs, &counts->plans_timed, &counts->plans_loaded);
    counts->unkept = stk_cuda_store_trouble(device->store);
}

stk_precision stk_cuda_device_precision(const stk_device *device, stk_precision asked) {
    if (asked == STK_PRECISION_AUTO) {
        return device->major >= 7 ? STK_PRECISION_FP16 : STK_PRECISION_FP32;
    }
    return asked == STK_PRECISION_BF16 && device->major < 8 ? STK_PRECISION_FP16 : asked;
}

stk_status stk_cuda_finish(const stk_device *device, int result, const char *what, stk_error *err) {
    const cuda_driver *d = device->driver;
    result = result == CUDA_GOOD ? d->stream_wait(device->compute) : result;
    return stk_cuda_check(d, result, what, err);
}

void *stk_cuda_device_host_take(stk_device *device, size_t bytes) {
    void *memory = NULL;
    if (stk_cuda_enter(device, NULL) != STK_OK ||
        device->driver->host_take(&memory, bytes, CUDA_HOST_PORTABLE) != CUDA_GOOD) {
        return NULL;
    }
    return memory;
}

void stk_cuda_device_host_free(stk_device *device, void *memory) {
    if (memory != NULL && stk_cuda_enter(device, NULL) == STK_OK) {
        (void)device->driver->host_free(memory);
    }
}
