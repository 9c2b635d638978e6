/*
 * kernels.h - inside the CUDA backend: kernels from source text to functions.
 *
 * Every kernel that a program launches is compiled by NVRTC for the GPU at hand, in parallel, and
 * its machine code kept on disk under a name that holds the GPU, the versions of driver and NVRTC
 * and the text itself: the next start loads it. Of a GPU that NVRTC does not know yet it is PTX
 * that is kept, which the driver compiles.
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
    cuda_store *store;         /* borrowed; NULL: nothing is kept */
    int major, minor;          /* compute capability */
    int threads;               /* that compile */
    const cuda_text *texts;    /* borrowed; NULL: the files of kernels that are in the program */
    /* As in stk_device_config, asked between two kernels; NULL: never. */
    bool (*halted)(void *user, double next_s);
    void *user;
} cuda_kernels_config;

STK_CHECKED stk_status stk_cuda_kernels_open(cuda_kernels **kernels,
                                             const cuda_kernels_config *config, stk_error *err);

/*
 * Compiling cannot be interrupted: threads that still do when it is halted are left behind. All of
 * the kernels is theirs from then on, with store and libraries: what was made before can be
 * launched, make() ends with STK_ERR_STOPPED where more is needed, and close() frees nothing.
 */
bool stk_cuda_kernels_are_left(const cuda_kernels *kernels); /* NULL is fine */
void stk_cuda_kernels_close(cuda_kernels *kernels);

/* Makes every function that the programs launch; those that are there already cost nothing. */
STK_CHECKED stk_status stk_cuda_kernels_make(cuda_kernels *kernels,
                                             const cuda_program *const *programs, int count,
                                             stk_error *err);

/* The function of a launch, after make(). */
cuda_function stk_cuda_kernels_find(const cuda_kernels *kernels, const cuda_launch *launch,
                                    cuda_type type);

/* Where a place of a program lies on the device; 0: it is nothing. */
typedef cuda_pointer (*cuda_find_place)(const void *context, cuda_ref ref);

/* Puts a launch on the stream, after make(); `find` is asked with `context` for its places. */
STK_CHECKED stk_status stk_cuda_kernels_launch(const cuda_kernels *kernels,
                                               const cuda_launch *launch, cuda_type type,
                                               cuda_stream stream, cuda_find_place find,
                                               const void *context, stk_error *err);

/*
 * Where NVRTC is older than the GPU: the newest architecture before it that NVRTC knows,
 * "compute_90", for which kernels are compiled instead. NULL: they are compiled for the GPU itself.
 * Lives as the kernels do.
 */
const char *stk_cuda_kernels_stand_in(const cuda_kernels *kernels);

/* How many were compiled, and how many came from disk, since open. */
void stk_cuda_kernels_counts(const cuda_kernels *kernels, int *compiled, int *loaded);

#endif
