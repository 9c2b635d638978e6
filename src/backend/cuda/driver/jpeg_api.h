/*
 * jpeg_api.h - inside the CUDA backend: the functions of nvJPEG that Stoker calls.
 *
 * As in api.h, building needs no header of NVIDIA: this file declares the binary interface of
 * libnvjpeg.so, which is opened at run time. nvJPEG is optional: without it the CPU decodes all
 * pictures. tests/unit/test_cuda_api.c compares the numbers with NVIDIA's header where this is
 * installed.
 *
 * Threads: a handle may be shared; a cuda_jpeg_decoder is used by one thread at a time.
 */
#ifndef STK_BACKEND_CUDA_DRIVER_JPEG_API_H
#define STK_BACKEND_CUDA_DRIVER_JPEG_API_H

#include "backend/cuda/driver/api.h"

typedef struct nvjpegHandle *cuda_jpeg_handle;     /* nvjpegHandle_t */
typedef struct nvjpegJpegState *cuda_jpeg_decoder; /* nvjpegJpegState_t */

/* nvjpegStatus_t, as far as the code distinguishes it. */
enum {
    CUDA_JPEG_GOOD = 0,
    CUDA_JPEG_BAD = 3,         /* it is no JPEG, or its header is damaged */
    CUDA_JPEG_UNSUPPORTED = 4, /* a JPEG that this decoder cannot decode */
    CUDA_JPEG_NO_MEMORY = 5,   /* of the device or pinned memory */
    CUDA_JPEG_WRONG_ARCH = 7,  /* the GPU has no such engines */
    CUDA_JPEG_NO_SUCH_WAY = 9  /* this library or GPU cannot do what was asked for */
};

/* nvjpegBackend_t: what decodes. */
enum {
    CUDA_JPEG_BY_PROCESSORS = 2, /* the GPU's multiprocessors */
    CUDA_JPEG_BY_ENGINES = 3     /* engines that do nothing else: baseline, one scan */
};

enum {
    CUDA_JPEG_PLANES = 1,  /* nvjpegOutputFormat_t: a plane for each component, as stored */
    CUDA_JPEG_CHANNELS = 4 /* of a cuda_jpeg_image */
};

/* libraryPropertyType */
enum { CUDA_JPEG_VERSION_MAJOR, CUDA_JPEG_VERSION_MINOR };

/* Where the planes of one picture go: nvjpegImage_t. */
typedef struct cuda_jpeg_image {
    unsigned char *channel[CUDA_JPEG_CHANNELS]; /* uint8 (height, pitch), in the device's memory */
    size_t pitch[CUDA_JPEG_CHANNELS];           /* bytes between the rows of a plane */
} cuda_jpeg_image;

/*
 * X(name in the table, exported name, parameters); all return a status, an int.
 *
 * A batch is decoded in two calls: `begin` tells how many pictures, once for all batches of that
 * size; `decode` reads arrays of that length. Allocators may be NULL. A status of `decode` is for
 * all pictures together. Damage behind a picture's header is not reported.
 */
#define CUDA_JPEG_FUNCTIONS(X)                                                                    \
    X(property, "nvjpegGetProperty", (int property, int *value))                                  \
    X(create, "nvjpegCreateEx",                                                                   \
      (int by, void *device_allocator, void *pinned_allocator, unsigned flags,                    \
       cuda_jpeg_handle *handle))                                                                 \
    X(destroy, "nvjpegDestroy", (cuda_jpeg_handle handle))                                        \
    X(state_new, "nvjpegJpegStateCreate", (cuda_jpeg_handle handle, cuda_jpeg_decoder * decoder)) \
    X(state_free, "nvjpegJpegStateDestroy", (cuda_jpeg_decoder decoder))                          \
    X(begin, "nvjpegDecodeBatchedInitialize",                                                     \
      (cuda_jpeg_handle handle, cuda_jpeg_decoder decoder, int count, int cpu_threads,            \
       int output))                                                                               \
    X(decode, "nvjpegDecodeBatched",                                                              \
      (cuda_jpeg_handle handle, cuda_jpeg_decoder decoder, const unsigned char *const *files,     \
       const size_t *sizes, cuda_jpeg_image *images, cuda_stream stream))

/* The same of functions that older versions lack. */
#define CUDA_JPEG_NEWER_FUNCTIONS(X)           \
    X(engines, "nvjpegGetHardwareDecoderInfo", \
      (cuda_jpeg_handle handle, unsigned *engines, unsigned *cores_each))

/* The library, opened. */
typedef struct cuda_jpeg {
/* A list of parameters takes no further brackets: NOLINTNEXTLINE(bugprone-macro-parentheses) */
#define X(name, symbol, parameters) int(*name) parameters;
    CUDA_JPEG_FUNCTIONS(X)
    CUDA_JPEG_NEWER_FUNCTIONS(X) /* NULL: this version lacks it */
#undef X
    void *library;   /* from dlopen */
    int version;     /* 13020 */
    char found[256]; /* where it was found */
} cuda_jpeg;

/*
 * Sets all of `jpeg` and opens the nvJPEG of the CUDA version that the open toolkit in `libraries`
 * is for; it is looked for where stk_cuda_toolkit_open() looks. STK_ERR_DEVICE: it is missing or
 * too old, and a sentence says what was looked for and what to install. The library stays in the
 * process. The caller closes it, also after an error.
 */
STK_CHECKED stk_status stk_cuda_jpeg_open(cuda_jpeg *jpeg, const cuda_libraries *libraries,
                                          stk_error *err);
void stk_cuda_jpeg_close(cuda_jpeg *jpeg);

/* What a status of nvJPEG means, in words that continue "decoding failed: ". */
const char *stk_cuda_jpeg_words(int status);

/* Turns a status into an error: `what` is what was done ("opening the decoder of the GPU"). */
STK_CHECKED stk_status stk_cuda_jpeg_check(int status, const char *what, stk_error *err);

#endif
