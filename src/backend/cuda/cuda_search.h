/*
 * cuda_search.h - inside the CUDA backend: the folders in which NVIDIA's libraries may lie.
 *
 * Without a toolkit on the system's path they are still there more often than not: in a folder of
 * CUDA, or in Python's packages, which bring their own. No program is run to find out.
 */
#ifndef STK_BACKEND_CUDA_SEARCH_H
#define STK_BACKEND_CUDA_SEARCH_H

#include <stdbool.h>
#include <stddef.h>

typedef struct cuda_folders {
    char **paths; /* owned, in the order in which they are asked; they exist, each stands once */
    size_t count;
    size_t capacity;
    bool given; /* they are those of STOKER_CUDA_LIBS, and no others are asked */
} cuda_folders;

/* Where there is no memory, what was found until then. */
void stk_cuda_folders_find(cuda_folders *folders);
void stk_cuda_folders_free(cuda_folders *folders);

#endif
