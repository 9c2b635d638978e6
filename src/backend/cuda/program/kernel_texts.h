/*
 * kernel_texts.h - inside the CUDA backend: the sources of kernels, as texts in the program.
 *
 * The build makes them (cmake/embed_texts.cmake) from kernels/ and from kernel_constants.h: a file
 * put there is part of the library. A text may include another one of them by its bare name, each
 * once: kernels.c puts them together.
 */
#ifndef STK_BACKEND_CUDA_PROGRAM_KERNEL_TEXTS_H
#define STK_BACKEND_CUDA_PROGRAM_KERNEL_TEXTS_H

#include <stddef.h>

typedef struct cuda_text {
    const char *name; /* "norm.cu" */
    const char *text;
} cuda_text;

extern const cuda_text stk_cuda_texts[]; /* the last has no name */

#endif
