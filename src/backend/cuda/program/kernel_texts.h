/*
 * kernel_texts.h - inside the CUDA backend: the sources of kernels, as texts in the library.
 *
 * The build makes them (cmake/embed_texts.cmake) of all files in kernels/ and of
 * kernel_constants.h. A text may include another one by its bare name; kernels.c puts them
 * together.
 */
#ifndef STK_BACKEND_CUDA_PROGRAM_KERNEL_TEXTS_H
#define STK_BACKEND_CUDA_PROGRAM_KERNEL_TEXTS_H

#include <stddef.h>

typedef struct cuda_text {
    const char *name; /* "norm.cu" */
    const char *text;
} cuda_text;

extern const cuda_text stk_cuda_texts[]; /* ends with an entry whose name is NULL */

#endif
