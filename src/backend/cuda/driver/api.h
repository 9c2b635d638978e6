/*
 * api.h - inside the CUDA backend: the functions of NVIDIA's libraries that Stoker calls.
 *
 * Building Stoker needs no header of CUDA: this file declares the binary interface of the driver
 * (libcuda.so.1) and of NVRTC, which both keep stable. library.c opens the libraries at run time;
 * each table holds pointers under the functions' names without their prefix.
 * tests/unit/test_cuda_api.c compares the numbers with NVIDIA's headers where these are installed.
 * jpeg_api.h does the same for nvJPEG.
 */
#ifndef STK_BACKEND_CUDA_DRIVER_API_H
#define STK_BACKEND_CUDA_DRIVER_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <stoker/status.h>

typedef uint64_t cuda_pointer; /* CUdeviceptr */
typedef struct CUctx_st *cuda_context;
typedef struct CUstream_st *cuda_stream;
typedef struct CUevent_st *cuda_event;
typedef struct CUmod_st *cuda_module;
typedef struct CUfunc_st *cuda_function;
typedef struct CUgraph_st *cuda_graph;
typedef struct CUgraphExec_st *cuda_graph_exec;

/* CUresult, as far as the code distinguishes it. */
enum {
    CUDA_GOOD = 0,
    CUDA_ERROR_OUT_OF_MEMORY_ = 2,
    CUDA_ERROR_NO_DEVICE_ = 100,
    CUDA_ERROR_NOT_READY_ = 600
};

/* CUdevice_attribute */
enum { CUDA_ATTRIBUTE_MULTIPROCESSORS = 16, CUDA_ATTRIBUTE_MAJOR = 75, CUDA_ATTRIBUTE_MINOR = 76 };

enum {
    CUDA_FUNCTION_SHARED_BYTES = 8, /* CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES */
    CUDA_EVENT_BLOCKING = 1,        /* a thread that waits for it sleeps */
    CUDA_EVENT_NO_TIMING = 2,
    CUDA_STREAM_NON_BLOCKING = 1,
    CUDA_HOST_PORTABLE = 1,   /* CU_MEMHOSTALLOC_PORTABLE: any thread may use the memory */
    CUDA_STREAM_FIRST = -100, /* the highest priority: numbers below the lowest stand for it */
    CUDA_CAPTURE_THREAD_LOCAL = 1
};

/* X(name in the table, exported name, parameters); all return a CUresult, an int. */
#define CUDA_DRIVER_FUNCTIONS(X)                                                              \
    X(init, "cuInit", (unsigned flags))                                                       \
    X(driver_version, "cuDriverGetVersion", (int *version))                                   \
    X(error_name, "cuGetErrorName", (int error, const char **text))                           \
    X(error_string, "cuGetErrorString", (int error, const char **text))                       \
    X(device_count, "cuDeviceGetCount", (int *count))                                         \
    X(device_get, "cuDeviceGet", (int *device, int ordinal))                                  \
    X(device_name, "cuDeviceGetName", (char *name, int room, int device))                     \
    X(device_bus_id, "cuDeviceGetPCIBusId", (char *text, int room, int device))               \
    X(device_memory, "cuDeviceTotalMem_v2", (size_t * bytes, int device))                     \
    X(device_attribute, "cuDeviceGetAttribute", (int *value, int attribute, int device))      \
    X(context_retain, "cuDevicePrimaryCtxRetain", (cuda_context * context, int device))       \
    X(context_release, "cuDevicePrimaryCtxRelease_v2", (int device))                          \
    X(context_use, "cuCtxSetCurrent", (cuda_context context))                                 \
    X(memory_info, "cuMemGetInfo_v2", (size_t * free, size_t * total))                        \
    X(memory_take, "cuMemAlloc_v2", (cuda_pointer * pointer, size_t bytes))                   \
    X(memory_free, "cuMemFree_v2", (cuda_pointer pointer))                                    \
    X(host_take, "cuMemHostAlloc", (void **pointer, size_t bytes, unsigned flags))            \
    X(host_free, "cuMemFreeHost", (void *pointer))                                            \
    X(copy_in, "cuMemcpyHtoDAsync_v2",                                                        \
      (cuda_pointer to, const void *from, size_t bytes, cuda_stream stream))                  \
    X(copy_out, "cuMemcpyDtoHAsync_v2",                                                       \
      (void *to, cuda_pointer from, size_t bytes, cuda_stream stream))                        \
    X(copy, "cuMemcpyDtoDAsync_v2",                                                           \
      (cuda_pointer to, cuda_pointer from, size_t bytes, cuda_stream stream))                 \
    X(fill, "cuMemsetD8Async",                                                                \
      (cuda_pointer to, unsigned char value, size_t bytes, cuda_stream stream))               \
    X(stream_new, "cuStreamCreate", (cuda_stream * stream, unsigned flags))                   \
    X(stream_new_first, "cuStreamCreateWithPriority",                                         \
      (cuda_stream * stream, unsigned flags, int priority))                                   \
    X(stream_free, "cuStreamDestroy_v2", (cuda_stream stream))                                \
    X(stream_wait, "cuStreamSynchronize", (cuda_stream stream))                               \
    X(stream_wait_event, "cuStreamWaitEvent",                                                 \
      (cuda_stream stream, cuda_event event, unsigned flags))                                 \
    X(event_new, "cuEventCreate", (cuda_event * event, unsigned flags))                       \
    X(event_free, "cuEventDestroy_v2", (cuda_event event))                                    \
    X(event_record, "cuEventRecord", (cuda_event event, cuda_stream stream))                  \
    X(event_wait, "cuEventSynchronize", (cuda_event event))                                   \
    X(event_query, "cuEventQuery", (cuda_event event))                                        \
    X(event_elapsed_ms, "cuEventElapsedTime", (float *ms, cuda_event begin, cuda_event end))  \
    X(module_load, "cuModuleLoadData", (cuda_module * module, const void *image))             \
    X(module_free, "cuModuleUnload", (cuda_module module))                                    \
    X(module_function, "cuModuleGetFunction",                                                 \
      (cuda_function * function, cuda_module module, const char *name))                       \
    X(function_set, "cuFuncSetAttribute", (cuda_function function, int attribute, int value)) \
    X(launch, "cuLaunchKernel",                                                               \
      (cuda_function function, unsigned grid_x, unsigned grid_y, unsigned grid_z,             \
       unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,           \
       cuda_stream stream, void **arguments, void **extra))                                   \
    X(capture_begin, "cuStreamBeginCapture_v2", (cuda_stream stream, int mode))               \
    X(capture_end, "cuStreamEndCapture", (cuda_stream stream, cuda_graph * graph))            \
    X(graph_make, "cuGraphInstantiateWithFlags",                                              \
      (cuda_graph_exec * exec, cuda_graph graph, unsigned long long flags))                   \
    X(graph_launch, "cuGraphLaunch", (cuda_graph_exec exec, cuda_stream stream))              \
    X(graph_exec_free, "cuGraphExecDestroy", (cuda_graph_exec exec))                          \
    X(graph_free, "cuGraphDestroy", (cuda_graph graph))

typedef struct cuda_driver {
/* A list of parameters takes no further brackets: NOLINTNEXTLINE(bugprone-macro-parentheses) */
#define X(name, symbol, parameters) int(*name) parameters;
    CUDA_DRIVER_FUNCTIONS(X)
#undef X
} cuda_driver;

typedef struct cuda_nvrtc_text *cuda_nvrtc_program; /* nvrtcProgram */

#define CUDA_NVRTC_FUNCTIONS(X)                                                              \
    X(version, "nvrtcVersion", (int *major, int *minor))                                     \
    X(arch_count, "nvrtcGetNumSupportedArchs", (int *count))                                 \
    X(archs, "nvrtcGetSupportedArchs", (int *archs))                                         \
    X(create, "nvrtcCreateProgram",                                                          \
      (cuda_nvrtc_program * program, const char *source, const char *name, int header_count, \
       const char *const *headers, const char *const *header_names))                         \
    X(compile, "nvrtcCompileProgram",                                                        \
      (cuda_nvrtc_program program, int option_count, const char *const *options))            \
    X(code_bytes, "nvrtcGetCUBINSize", (cuda_nvrtc_program program, size_t * bytes))         \
    X(code, "nvrtcGetCUBIN", (cuda_nvrtc_program program, char *code))                       \
    X(ptx_bytes, "nvrtcGetPTXSize", (cuda_nvrtc_program program, size_t * bytes))            \
    X(ptx, "nvrtcGetPTX", (cuda_nvrtc_program program, char *text))                          \
    X(log_bytes, "nvrtcGetProgramLogSize", (cuda_nvrtc_program program, size_t * bytes))     \
    X(log, "nvrtcGetProgramLog", (cuda_nvrtc_program program, char *log))                    \
    X(destroy, "nvrtcDestroyProgram", (cuda_nvrtc_program * program))

typedef struct cuda_nvrtc {
/* A list of parameters takes no further brackets: NOLINTNEXTLINE(bugprone-macro-parentheses) */
#define X(name, symbol, parameters) int(*name) parameters;
    CUDA_NVRTC_FUNCTIONS(X)
#undef X
} cuda_nvrtc;

/* All libraries, opened. */
typedef struct cuda_libraries {
    cuda_driver driver;
    cuda_nvrtc nvrtc;
    void *handles[4];   /* libcuda, libnvrtc, libcudnn, libcublasLt: from dlopen */
    int driver_version; /* 13000: of CUDA, that the driver can do */
    int cuda_major;     /* 13: what the toolkit's libraries are for; 0: they are not open */
    int nvrtc_version;  /* 1300 */
    int cudnn_version;  /* 91900 */
    size_t cublaslt_version;
    char found[4][256]; /* where each was found */
} cuda_libraries;

enum { CUDA_LIBRARY_DRIVER, CUDA_LIBRARY_NVRTC, CUDA_LIBRARY_CUDNN, CUDA_LIBRARY_CUBLASLT };

/*
 * stk_cuda_driver_open() sets all of `libraries` and opens the driver, stk_cuda_toolkit_open()
 * opens the other three. These are two calls, so that a context can be made while the toolkit is
 * opened. `most_major` is the newest CUDA that the toolkit may be for; 0: the driver's. With
 * `only_look` large libraries are only looked for.
 *
 * Libraries are opened from the folders in STOKER_CUDA_LIBS (divided by colons) when that is set,
 * else where the system looks, in the usual folders of CUDA, and in nvidia/<anything>/lib of
 * Python's packages; the driver is looked for where the system looks in any case. cuDNN says which
 * major version of CUDA the others must have. Failing is STK_ERR_DEVICE and a sentence that says
 * which library is missing and where it was looked for. Libraries stay in the process once they are
 * open: opening them again costs nothing.
 */
STK_CHECKED stk_status stk_cuda_driver_open(cuda_libraries *libraries, stk_error *err);
STK_CHECKED stk_status stk_cuda_toolkit_open(cuda_libraries *libraries, int most_major,
                                             bool only_look, stk_error *err);

/* Both in one call, for tests. */
STK_CHECKED stk_status stk_cuda_libraries_open(cuda_libraries *libraries, stk_error *err);

void stk_cuda_libraries_close(cuda_libraries *libraries);

/* A function to find in an open library. */
typedef struct cuda_symbol {
    const char *name;
    void *place; /* address of the function pointer to fill */
} cuda_symbol;

/* Fills all pointers. `what` names the library in the error where a function is missing. */
STK_CHECKED stk_status stk_cuda_symbols(void *library, const char *what, const cuda_symbol *symbols,
                                        size_t count, stk_error *err);

/* Whether a result means that the device, or what it held, is gone: nothing works any more. */
bool stk_cuda_is_lost(int result);

/* Turns a result of the driver into an error: `what` is what was done ("copying pictures to the
 * GPU"). */
STK_CHECKED stk_status stk_cuda_check(const cuda_driver *driver, int result, const char *what,
                                      stk_error *err);

#endif
