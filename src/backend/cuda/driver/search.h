/*
 * search.h - inside the CUDA backend: the folders in which NVIDIA's libraries may lie.
 *
 * Without a toolkit on the loader's path the libraries are often still there: in a folder of CUDA,
 * or in Python's packages, which bring their own. The search runs no program. Threads: safe, each
 * with a cuda_folders of its own.
 */
#ifndef STK_BACKEND_CUDA_DRIVER_SEARCH_H
#define STK_BACKEND_CUDA_DRIVER_SEARCH_H

#include <stdbool.h>
#include <stddef.h>

#include <stoker/status.h>

#include "base/text/text_blocks.h"

typedef struct cuda_folders {
    stk_texts paths; /* in the order of the search; existing folders, each once */
    bool given;      /* STOKER_CUDA_LIBS names them; no others are searched */
} cuda_folders;

/* Finds the folders. Out of memory: those found so far. Where a disk does not answer within some
 * seconds, the system's own folders, also in later calls. */
void stk_cuda_folders_find(cuda_folders *folders);
void stk_cuda_folders_free(cuda_folders *folders);

/*
 * Opens a library with dlopen(3): the loader's own, or the first that lies in one of the folders.
 * Where folders were given, the loader's own comes last, and only for a library of the driver.
 * Returns NULL where none can be opened; `trouble` is then the loader's message about a file that
 * exists, or "".
 */
void *stk_cuda_folders_open(const cuda_folders *folders, const char *soname, int flags,
                            bool of_driver, char *trouble, size_t room);

/* Opens the library at a path. Sets `trouble` as above, unless it is set already. */
void *stk_cuda_path_open(const char *path, int flags, char *trouble, size_t room);

/* The path that an open library was found under. */
void stk_cuda_path_of(void *library, char *path, size_t room);

/* The error where stk_cuda_folders_open() returned NULL: STK_ERR_DEVICE, with `trouble` or else
 * with where it was looked for and the package of pip to install. */
STK_CHECKED stk_status stk_cuda_folders_missing(const cuda_folders *folders, const char *soname,
                                                const char *trouble, const char *package,
                                                stk_error *err);

#endif
