/*
 * no_memory.c - preloaded, requests for much memory are refused: with STK_NO_MEMORY=5 the fifth,
 * with 5-9 those from the fifth to the ninth. On a CPU those are the weights, gradients and what an
 * optimiser keeps, then what each compiled network computes in.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>

#define MUCH ((size_t)64 << 10)

static long requests;

static int is_refused(void) {
    const char *text = getenv("STK_NO_MEMORY");
    char *end = NULL;
    long first = text != NULL ? strtol(text, &end, 10) : 0;
    long number = __atomic_add_fetch(&requests, 1, __ATOMIC_SEQ_CST);
    long last = first > 0 && *end == '-' ? strtol(end + 1, NULL, 10) : first;
    return first > 0 && number >= first && number <= last;
}

void *aligned_alloc(size_t alignment, size_t bytes) {
    static void *(*next)(size_t alignment, size_t bytes);
    if (next == NULL) {
        *(void **)&next = dlsym(RTLD_NEXT, "aligned_alloc");
    }
    if (bytes >= MUCH && is_refused()) {
        errno = ENOMEM;
        return NULL;
    }
    return next(alignment, bytes);
}
