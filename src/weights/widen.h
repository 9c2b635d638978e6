/* widen.h - only for this room: converts numbers of a file to float32. Threads: safe. */
#ifndef STK_WEIGHTS_WIDEN_H
#define STK_WEIGHTS_WIDEN_H

#include <stdbool.h>
#include <stddef.h>

/*
 * `count` numbers of the type "F16", "BF16", "F64" or "F32", little-endian and on any boundary.
 * Every F16 and BF16 has an exact float; an F64 becomes the nearest one. False for another type.
 */
bool stk_widen(const char *dtype, const void *from, size_t count, float *to);

#endif
