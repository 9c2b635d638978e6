/*
 * convolutions.h - inside the CUDA backend: convolutions by shape, through cuDNN and cuBLASLt.
 *
 * The first time a shape is used, its candidates are timed on the device: plans of the libraries
 * that fit the workspace, and kernels of our own for few channels. The fastest candidate whose
 * result another one confirms is taken and stored in memory and on disk; the next start builds it
 * at once. Where no library has a plan, or none is right, a kernel of our own
 * (kernels/conv_plain.cu) computes the shape. One thread at a time.
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
    cuda_store *store;               /* borrowed; NULL: nothing is stored */
    cuda_stream stream;              /* all convolutions run on it */
    cuda_context context;            /* made current in threads that build plans */
    int threads;                     /* how many build plans, at least 1 */
    int multiprocessors;             /* of the device */
    int major;                       /* of its compute capability */
    bool deterministic; /* only plans that always give the same bits, and no timing: the first
                           candidate whose result is confirmed, in the order of the offers, so that
                           every run takes the same plan */
    /* As in stk_device_config: called between two shapes; NULL: never stopped. */
    bool (*halted)(void *user, double next_s);
    void *user;
} cuda_convs_config;

STK_CHECKED stk_status stk_cuda_convs_open(cuda_convs **convs, const cuda_convs_config *config,
                                           stk_error *err);

/* Whether threads were abandoned while they built plans: as stk_cuda_kernels_are_abandoned(). */
bool stk_cuda_convs_are_abandoned(const cuda_convs *convs);
void stk_cuda_convs_close(cuda_convs *convs);

/* Device addresses for one convolution, as cuda_conv_op names them; with shape.in_norm x is its
 * `raw`. */
typedef struct cuda_conv_call {
    const cuda_conv_shape *shape;
    cuda_pointer x, w, y, bias, added, stats, in_norm; /* 0: not there */
    cuda_pointer workspace;                            /* CUDA_WORKSPACE_BYTES */
} cuda_conv_call;

/*
 * Finds the plans of all calls and runs each once, so that libraries have loaded all code before a
 * capture. Runs use the calls' addresses and overwrite what a call writes. What a call reads should
 * be finite numbers of common size, such as noise: results are compared, and zeros or NaNs compare
 * nothing. Before the plans of a call run, write_noise_for() gets the call's number and writes
 * noise where the call reads, since earlier calls may have overwritten that. write_noise_for NULL:
 * the memory holds noise already. A shape with statistics or with a norm in front may have no plan,
 * which is no error: see stk_cuda_convs_has().
 */
typedef stk_status cuda_convs_write_noise(void *user, int call, stk_error *err);
STK_CHECKED stk_status stk_cuda_convs_make(cuda_convs *convs, const cuda_conv_call *calls,
                                           int count, cuda_convs_write_noise *write_noise_for,
                                           void *user, stk_error *err);

/* Whether make() had this shape and found a plan for it. */
bool stk_cuda_convs_has(const cuda_convs *convs, const cuda_conv_shape *shape);

/* Runs a convolution on the stream. make() had its shape. */
STK_CHECKED stk_status stk_cuda_convs_run(cuda_convs *convs, const cuda_conv_call *call,
                                          stk_error *err);

/* How many candidates were timed, and for how many convolutions one came from disk, since open. */
void stk_cuda_convs_counts(const cuda_convs *convs, int *timed, int *loaded);

#endif
