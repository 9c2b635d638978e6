/*
 * convolutions.h - inside the CUDA backend: convolutions through cuDNN's graph API and cuBLASLt.
 *
 * A convolution is known by its shape. The first time a shape is met, every plan that the libraries
 * offer and that fits the workspace is timed on the device and the fastest whose result another one
 * confirms is kept, in memory and in the store; the next start builds it at once. Where no library
 * has a plan, or none is right, a kernel of our own (kernels/conv_plain.cu) does the work. One
 * thread at a time.
 */
#ifndef STK_BACKEND_CUDA_CONVOLUTION_CONVOLUTIONS_H
#define STK_BACKEND_CUDA_CONVOLUTION_CONVOLUTIONS_H

#include "backend/cuda/driver/api.h"
#include "backend/cuda/program/kernels.h"
#include "backend/cuda/program/program.h"
#include "backend/cuda/driver/store.h"

typedef struct cuda_convs cuda_convs;

typedef struct cuda_convs_config {
    const cuda_driver *driver;       /* borrowed; its context is current */
    const cuda_libraries *libraries; /* borrowed */
    cuda_kernels *kernels;           /* borrowed */
    cuda_store *store;               /* borrowed; NULL: nothing is kept */
    cuda_stream stream;              /* that all of them run on */
    cuda_context context;            /* made current in threads that build plans */
    int threads;                     /* that build plans, at least 1 */
    int multiprocessors;             /* of the device */
    int major;                       /* of its compute capability */
    bool deterministic; /* only plans that give the same bits always, and no timing: the library's
                           own first choice, so that every run takes the same */
    /* As in stk_device_config, asked between two shapes; NULL: never. */
    bool (*halted)(void *user, double next_s);
    void *user;
} cuda_convs_config;

STK_CHECKED stk_status stk_cuda_convs_open(cuda_convs **convs, const cuda_convs_config *config,
                                           stk_error *err);

/* As of kernels: threads that were left behind own all of it, and close() frees nothing. */
bool stk_cuda_convs_are_left(const cuda_convs *convs); /* NULL is fine */
void stk_cuda_convs_close(cuda_convs *convs);

/* Pointers on the device for one convolution; see cuda_conv_op. With shape.in_norm x is `raw`. */
typedef struct cuda_conv_call {
    const cuda_conv_shape *shape;
    cuda_pointer x, w, y, bias, added, stats, in_norm; /* 0: not there */
    cuda_pointer workspace;                            /* CUDA_WORKSPACE_BYTES */
} cuda_conv_call;

/*
 * Makes the plans of all these calls and runs each once, so that everything a library loads late is
 * there before a capture. Runs use these pointers, and overwrite what a call writes. What a call
 * reads should be numbers of common size, like noise: results are compared, and of zeros or NaNs
 * nothing can be learned. That a shape with statistics or with a norm in front has no plan is no
 * error: see stk_cuda_convs_has().
 */
STK_CHECKED stk_status stk_cuda_convs_make(cuda_convs *convs, const cuda_conv_call *calls,
                                           int count, stk_error *err);

/*
 * The same; `refresh` is called before the plans of a call are run and compared, with its number
 * among the calls: what it reads may have been overwritten by those before it.
 */
typedef stk_status cuda_convs_refresh(void *user, int call, stk_error *err);
STK_CHECKED stk_status stk_cuda_convs_make_on(cuda_convs *convs, const cuda_conv_call *calls,
                                              int count, cuda_convs_refresh *refresh, void *user,
                                              stk_error *err);

/* Whether make() had this shape and found a plan for it. */
bool stk_cuda_convs_has(const cuda_convs *convs, const cuda_conv_shape *shape);

/* Runs one on the stream, after make() had its shape. */
STK_CHECKED stk_status stk_cuda_convs_run(cuda_convs *convs, const cuda_conv_call *call,
                                          stk_error *err);

/* How many plans were timed, and how many came from disk, since open. */
void stk_cuda_convs_counts(const cuda_convs *convs, int *timed, int *loaded);

#endif
