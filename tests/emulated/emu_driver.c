/*
 * emu_driver.c - the emulated driver: start, errors, one device, its context.
 *
 * It plays libcuda.so.1, as far as src/backend/cuda/driver/api.h names it. README.md tells what can
 * be set through the environment.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emu_inside.h"

static pthread_mutex_t lock;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool started;
static bool lost;
static int retained; /* how often the context is */
static int context_mark;
static _Thread_local void *current;

static void make_lock(void) {
    pthread_mutexattr_t kind;
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&lock, &kind);
    pthread_mutexattr_destroy(&kind);
}

bool emu_checking(void) {
    const char *text = getenv("STK_EMU_CHECK");
    return text != NULL && strcmp(text, "1") == 0;
}

static void say(const char *format, va_list list) {
    fflush(stdout);
    fprintf(stderr, "emulated GPU: ");
    vfprintf(stderr, format, list);
    fprintf(stderr, "\n");
}

void emu_complain(const char *format, ...) {
    va_list list;
    va_start(list, format);
    say(format, list);
    va_end(list);
    if (emu_checking()) {
        abort();
    }
}

void emu_die(const char *format, ...) {
    va_list list;
    va_start(list, format);
    say(format, list);
    va_end(list);
    abort();
}

int emu_enter(void) {
    pthread_once(&once, make_lock);
    pthread_mutex_lock(&lock);
    return !started ? EMU_NOT_INITIALIZED : lost ? EMU_LAUNCH_FAILED : EMU_GOOD;
}

int emu_enter_context(void) {
    int result = emu_enter();
    if (result == EMU_GOOD && (current == NULL || retained == 0)) {
        result = EMU_INVALID_CONTEXT;
    }
    return result;
}

int emu_leave(int result) {
    pthread_mutex_unlock(&lock);
    return result;
}

void emu_lose(void) {
    lost = true;
}

/* ---- what the library exports ---- */

EMU_EXPORT int cuInit(unsigned flags);
EMU_EXPORT int cuDriverGetVersion(int *version);
EMU_EXPORT int cuGetExportTable(const void **table, const void *name);
EMU_EXPORT int cuGetErrorName(int error, const char **text);
EMU_EXPORT int cuGetErrorString(int error, const char **text);
EMU_EXPORT int cuDeviceGetCount(int *count);
EMU_EXPORT int cuDeviceGet(int *device, int ordinal);
EMU_EXPORT int cuDeviceGetName(char *name, int room, int device);
EMU_EXPORT int cuDeviceGetPCIBusId(char *text, int room, int device);
EMU_EXPORT int cuDeviceGetAttribute(int *value, int attribute, int device);
EMU_EXPORT int cuDevicePrimaryCtxRetain(void **context, int device);
EMU_EXPORT int cuDevicePrimaryCtxRelease_v2(int device);
EMU_EXPORT int cuCtxSetCurrent(void *context);

int cuInit(unsigned flags) {
    (void)emu_enter();
    started = flags == 0 || started;
    return emu_leave(flags == 0 ? EMU_GOOD : EMU_INVALID_VALUE);
}

int cuDriverGetVersion(int *version) {
    *version = 13000;
    return EMU_GOOD;
}

/* The real NVRTC asks for tables of the driver's when both are in one process, and does without. */
int cuGetExportTable(const void **table, const void *name) {
    (void)name;
    *table = NULL;
    return EMU_NOT_FOUND;
}

typedef struct error_text {
    int number;
    const char *name, *text;
} error_text;

static const error_text errors[] = {
    {EMU_GOOD, "CUDA_SUCCESS", "no error"},
    {EMU_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {EMU_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {EMU_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {EMU_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {EMU_INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {EMU_NO_BINARY, "CUDA_ERROR_NO_BINARY_FOR_GPU",
     "no kernel image is available for execution on the device"},
    {EMU_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {EMU_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {EMU_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {EMU_NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready"},
    {EMU_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {EMU_CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
     "operation not permitted when stream is capturing"},
    {EMU_CAPTURE_INVALIDATED, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
     "operation failed due to a previous error during capture"},
    {EMU_CAPTURE_UNMATCHED, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED",
     "capture was not ended in the same stream as it began"},
    {EMU_CAPTURE_WRONG_THREAD, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD",
     "attempt to terminate a thread-local capture sequence from another thread"},
};

static const error_text *find_error(int error) {
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        if (errors[i].number == error) {
            return &errors[i];
        }
    }
    return NULL;
}

int cuGetErrorName(int error, const char **text) {
    const error_text *found = find_error(error);
    *text = found != NULL ? found->name : NULL;
    return found != NULL ? EMU_GOOD : EMU_INVALID_VALUE;
}

int cuGetErrorString(int error, const char **text) {
    const error_text *found = find_error(error);
    *text = found != NULL ? found->text : NULL;
    return found != NULL ? EMU_GOOD : EMU_INVALID_VALUE;
}

int cuDeviceGetCount(int *count) {
    int result = emu_enter();
    *count = result == EMU_GOOD ? 1 : 0;
    return emu_leave(result);
}

int cuDeviceGet(int *device, int ordinal) {
    int result = emu_enter();
    if (result == EMU_GOOD) {
        result = ordinal == 0 ? EMU_GOOD : EMU_INVALID_DEVICE;
        *device = 0;
    }
    return emu_leave(result);
}

/* A text that is told of the device. */
static int tell_text(char *text, int room, int device, const char *what) {
    int result = emu_enter();
    if (result == EMU_GOOD) {
        result = device == 0 && room > 0 ? EMU_GOOD : EMU_INVALID_DEVICE;
        snprintf(text, (size_t)(room > 0 ? room : 0), "%s", what);
    }
    return emu_leave(result);
}

int cuDeviceGetName(char *name, int room, int device) {
    return tell_text(name, room, device, "Emulated GPU");
}

/* The one that the stand-in for NVML has, too. */
int cuDeviceGetPCIBusId(char *text, int room, int device) {
    return tell_text(text, room, device, "0000:19:00.0");
}

int emu_capability(void) {
    const char *text = getenv("STK_EMU_CAPABILITY");
    return text != NULL ? atoi(text) : 90;
}

int cuDeviceGetAttribute(int *value, int attribute, int device) {
    const struct {
        int attribute, value;
    } known[] = {{1, EMU_MOST_THREADS},       /* MAX_THREADS_PER_BLOCK */
                 {8, EMU_USUAL_SHARED},       /* MAX_SHARED_MEMORY_PER_BLOCK */
                 {10, EMU_WARP},              /* WARP_SIZE */
                 {13, 1000000},               /* CLOCK_RATE in kHz */
                 {16, 4},                     /* MULTIPROCESSOR_COUNT */
                 {36, 1000000},               /* MEMORY_CLOCK_RATE in kHz */
                 {37, 64},                    /* GLOBAL_MEMORY_BUS_WIDTH */
                 {38, 1 << 20},               /* L2_CACHE_SIZE */
                 {75, emu_capability() / 10}, /* COMPUTE_CAPABILITY_MAJOR */
                 {76, emu_capability() % 10}, /* COMPUTE_CAPABILITY_MINOR */
                 {97, EMU_MOST_SHARED}};      /* MAX_SHARED_MEMORY_PER_BLOCK_OPTIN */
    int result = emu_enter();
    if (result == EMU_GOOD) {
        result = device == 0 ? EMU_INVALID_VALUE : EMU_INVALID_DEVICE;
        for (size_t i = 0; i < sizeof known / sizeof *known && device == 0; i++) {
            if (known[i].attribute == attribute) {
                *value = known[i].value;
                result = EMU_GOOD;
            }
        }
    }
    return emu_leave(result);
}

int cuDevicePrimaryCtxRetain(void **context, int device) {
    int result = emu_enter();
    if (result == EMU_GOOD) {
        result = device == 0 ? EMU_GOOD : EMU_INVALID_DEVICE;
    }
    if (result == EMU_GOOD) {
        retained++;
        *context = &context_mark;
    }
    return emu_leave(result);
}

/* A device that was lost comes back with the next context. */
int cuDevicePrimaryCtxRelease_v2(int device) {
    int result = emu_enter();
    if (result == EMU_GOOD || result == EMU_LAUNCH_FAILED) {
        result = device != 0 ? EMU_INVALID_DEVICE : retained == 0 ? EMU_INVALID_CONTEXT : EMU_GOOD;
    }
    if (result == EMU_GOOD && --retained == 0) {
        emu_stream_end();
        emu_handles_end(lost);
        emu_memory_end(lost);
        lost = false;
    }
    return emu_leave(result);
}

int cuCtxSetCurrent(void *context) {
    int result = emu_enter();
    if (result == EMU_GOOD) {
        bool good = context == NULL || (context == &context_mark && retained > 0);
        current = good ? context : current;
        result = good ? EMU_GOOD : EMU_INVALID_CONTEXT;
    }
    return emu_leave(result);
}
