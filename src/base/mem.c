/* mem.c - memory with overflow checks and a switch that makes requests fail. */
#include "base/mem.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Requests left before they fail; negative: never. Relaxed: only tests set it, between calls. */
static atomic_llong requests_left = -1;

static bool must_fail(void) {
    long long left = atomic_load_explicit(&requests_left, memory_order_relaxed);
    while (left > 0) {
        if (atomic_compare_exchange_weak_explicit(&requests_left, &left, left - 1,
                                                  memory_order_relaxed, memory_order_relaxed)) {
            return false;
        }
    }
    return left == 0;
}

static bool product(size_t count, size_t size, size_t *bytes) {
    if (__builtin_mul_overflow(count, size, bytes) || *bytes > PTRDIFF_MAX) {
        return false;
    }
    *bytes = *bytes > 0 ? *bytes : 1;
    return true;
}

void *stk_mem_new(size_t count, size_t size) {
    size_t bytes;
    return !product(count, size, &bytes) || must_fail() ? NULL : calloc(1, bytes);
}

void *stk_mem_raw(size_t count, size_t size) {
    size_t bytes;
    return !product(count, size, &bytes) || must_fail() ? NULL : malloc(bytes);
}

void *stk_mem_zlib_new(void *user, unsigned count, unsigned size) {
    (void)user;
    return stk_mem_raw(count, size);
}

void stk_mem_zlib_free(void *user, void *block) {
    (void)user;
    stk_mem_free(block);
}

void *stk_mem_aligned(size_t bytes) {
    if (bytes > PTRDIFF_MAX - 63 || must_fail()) {
        return NULL;
    }
    size_t rounded = (bytes + 63) / 64 * 64;
    return aligned_alloc(64, rounded > 0 ? rounded : 64);
}

void *stk_mem_resize(void *old, size_t count, size_t size) {
    size_t bytes;
    return !product(count, size, &bytes) || must_fail() ? NULL : realloc(old, bytes);
}

char *stk_mem_strndup(const char *text, size_t length) {
    char *copy = length < SIZE_MAX ? stk_mem_raw(length + 1, 1) : NULL;
    if (copy != NULL) {
        if (length > 0) {
            memcpy(copy, text, length);
        }
        copy[length] = '\0';
    }
    return copy;
}

char *stk_mem_strdup(const char *text) {
    return stk_mem_strndup(text, strlen(text));
}

void stk_mem_free(void *block) {
    free(block);
}

void stk_mem_free_secret(char *text) {
    if (text != NULL) {
        explicit_bzero(text, strlen(text));
        free(text);
    }
}

bool stk_mem_reserve(void *array, size_t *capacity, size_t need, size_t size) {
    void *block; /* copied, since the caller's pointer has a type of its own */
    memcpy(&block, array, sizeof block);
    if (need <= *capacity && block != NULL) {
        return true;
    }
    size_t wanted = *capacity > 0 ? *capacity : 16;
    while (wanted < need) {
        if (wanted > SIZE_MAX / 2) {
            return false;
        }
        wanted *= 2;
    }
    block = stk_mem_resize(block, wanted, size);
    if (block != NULL) {
        memcpy(array, &block, sizeof block);
        *capacity = wanted;
    }
    return block != NULL;
}

void stk_mem_fail_after(int64_t requests) {
    atomic_store(&requests_left, requests);
}
