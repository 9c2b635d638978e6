/*
 * search.h - inside the CUDA backend: the folders in which NVIDIA's libraries may lie.
 *
 * Without a toolkit on the system's path they are still there more often than not: in a folder of
 * CUDA, or in Python's packages, which bring their own. No program is run to find out.
 */
#ifndef STK_BACKEND_CUDA_DRIVER_SEARCH_H
#define STK_BACKEND_CUDA_DRIVER_SEARCH_H

#include <stdbool.h>
#include <stddef.h>

typedef struct cuda_folders {
    char **paths; /* owned, in the order in which they are asked; they exist, each stands once */
    size_t count;
    size_t capacity;
    bool given; /* they are those of STOKER_CUDA_LIBS, and no others are asked */
} cuda_folders;

/* Where there is no memory, what was found until then; where a disk does not answer within some
 * seconds, the system's own folders, from then on. */
void stk_cuda_folders_find(cuda_folders *folders);
void stk_cuda_folders_free(cuda_folders *folders);

/*
 * Opens a library with dlopen(3): the system's own, or the first that lies in one of the folders.
 * Where folders were given, the system's comes after them, and only if it belongs to the driver.
 * NULL: there is none; then `trouble` is what the loader said of one that is there, or "".
 */
void *stk_cuda_folders_open(const cuda_folders *folders, const char *soname, int flags,
                            bool of_driver, char *trouble, size_t room);

/* Opens one that lies there; `trouble`, unless something stands in it already, as above. */
void *stk_cuda_path_open(const char *path, int flags, char *trouble, size_t room);

#endif
