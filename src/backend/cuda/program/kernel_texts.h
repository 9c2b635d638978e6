/*
 * kernel_texts.h - inside the CUDA backend: the sources of kernels, as texts in the library.
 *
 * The build makes them (cmake/embed_texts.cmake) of all files in kernels/ and of
 * kernel_constants.h. A text may include another one by its bare name.
 */
#ifndef STK_BACKEND_CUDA_PROGRAM_KERNEL_TEXTS_H
#define STK_BACKEND_CUDA_PROGRAM_KERNEL_TEXTS_H

#include "base/str.h"

typedef struct cuda_text {
    const char *name; /* "norm.cu" */
    const char *text;
} cuda_text;

extern const cuda_text stk_cuda_texts[]; /* ends with an entry whose name is NULL */

/* All that NVRTC compiles for one file: constants, prelude, and the file, with their includes. The
 * caller frees it. */
stk_str stk_cuda_text_whole(const cuda_text *file);

#endif
