/*
 * mem.h - all memory of the library comes from here, so that a test can make the Nth request fail.
 *
 * Every request returns NULL when there is no memory; callers turn that into STK_ERR_MEMORY.
 * stk_mem_free frees every block. Threads: safe.
 */
#ifndef STK_BASE_MEM_H
#define STK_BASE_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The number of elements of an array (not of a pointer). */
#define STK_COUNT(array) (sizeof(array) / sizeof *(array))

/* `count` elements of `size` bytes, zeroed. A product that overflows is a failure. */
void *stk_mem_new(size_t count, size_t size);

/* The same, not zeroed, for buffers that are filled at once. */
void *stk_mem_raw(size_t count, size_t size);

/* Not zeroed, on a 64-byte boundary, for what vector instructions read. */
void *stk_mem_aligned(size_t bytes);

/* Changes the element count; keeps contents; leaves the old block alone on failure. */
void *stk_mem_resize(void *old, size_t count, size_t size);

char *stk_mem_strdup(const char *text);
char *stk_mem_strndup(const char *text, size_t length); /* text may be NULL when length is 0 */

void stk_mem_free(void *block);

/* Requests in the form in which zlib makes them; `user` is not used. */
void *stk_mem_zlib_new(void *user, unsigned count, unsigned size);
void stk_mem_zlib_free(void *user, void *block);

/* Overwrites a secret text and frees it; NULL is fine. */
void stk_mem_free_secret(char *text);

/*
 * Makes room for `need` elements of `size` bytes in a growing array: doubles *capacity as often as
 * it takes. `array` is the address of the pointer to the array, which may move. Without memory the
 * answer is false, and the array and *capacity stay as they are.
 */
bool stk_mem_reserve(void *array, size_t *capacity, size_t need, size_t size);

/*
 * The same for a pointer and a capacity: STK_RESERVE(list->items, list->capacity, count + 1). The
 * comparison tells analysers, which do not look into mem.c, that the array is there.
 */
#define STK_RESERVE(array, capacity, need) \
    (stk_mem_reserve(&(array), &(capacity), (need), sizeof *(array)) && (array) != NULL)

/*
 * For tests: the request with this number (0 is the next) and all later ones fail; a negative
 * number ends that. This is state of the whole process.
 */
void stk_mem_fail_after(int64_t requests);

#endif
