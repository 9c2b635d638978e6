/*
 * kernels.h - inside the CUDA backend: kernels from source text to functions.
 *
 * NVRTC compiles every kernel that a program launches for the GPU at hand, on several threads. The
 * machine code is stored on disk under a key of GPU, versions of driver and NVRTC, and the text
 * itself: the next start loads it. For a GPU that NVRTC does not know yet PTX is stored instead,
 * which the driver compiles. One thread at a time calls these functions.
 */
#ifndef STK_BACKEND_CUDA_PROGRAM_KERNELS_H
#define STK_BACKEND_CUDA_PROGRAM_KERNELS_H

#include "backend/cuda/driver/api.h"
#include "backend/cuda/program/program.h"
#include "backend/cuda/program/kernel_texts.h"

typedef struct cuda_kernels cuda_kernels;
typedef struct cuda_store cuda_store;

typedef struct cuda_kernels_config {
    const cuda_driver *driver; /* borrowed; its context is current */
    const cuda_nvrtc *nvrtc;   /* borrowed */
    cuda_store *store;         /* borrowed; NULL: nothing is stored */
    int major, minor;          /* compute capability */
    int threads;               /* how many compile */
    const cuda_text *texts;    /* borrowed; NULL: those in the library */
    /* As in stk_device_config: called between two kernels; NULL: never stopped. */
    bool (*halted)(void *user, double next_s);
    void *user;
} cuda_kernels_config;

STK_CHECKED stk_status stk_cuda_kernels_open(cuda_kernels **kernels,
                                             const cuda_kernels_config *config, stk_error *err);

/*
 * Whether threads were abandoned: compiling cannot be interrupted, so a stop leaves threads that
 * still compile. They use the kernels, the store and the libraries until the process ends.
 * Functions made before can still be launched, make() returns STK_ERR_STOPPED where more are
 * needed, and close() frees nothing. `kernels` may be NULL.
 */
bool stk_cuda_kernels_are_abandoned(const cuda_kernels *kernels);
void stk_cuda_kernels_close(cuda_kernels *kernels);

/* Makes every function that the programs launch and that does not exist yet. */
STK_CHECKED stk_status stk_cuda_kernels_make(cuda_kernels *kernels,
                                             const cuda_program *const *programs, int count,
                                             stk_error *err);

/* The function of a launch, after make(). */
cuda_function stk_cuda_kernels_find(const cuda_kernels *kernels, const cuda_launch *launch,
                                    cuda_type type);

/* The address of a buffer reference; 0: there is none. */
typedef cuda_pointer (*cuda_find_place)(const void *context, cuda_ref ref);

/* Puts a launch on the stream, after make(). `find(context, ref)` returns addresses. */
STK_CHECKED stk_status stk_cuda_kernels_launch(const cuda_kernels *kernels,
                                               const cuda_launch *launch, cuda_type type,
                                               cuda_stream stream, cuda_find_place find,
                                               const void *context, stk_error *err);

/*
 * The architecture that kernels are compiled for where NVRTC does not know the GPU: the newest one
 * before it, such as "compute_90". NULL: they are compiled for the GPU itself. Lives as long as the
 * kernels.
 */
const char *stk_cuda_kernels_stand_in(const cuda_kernels *kernels);

/* How many kernels were compiled, and how many came from disk, since open. */
void stk_cuda_kernels_counts(const cuda_kernels *kernels, int *compiled, int *loaded);

#endif
