/*
 * random_id.h - numbers that nobody can predict, from the system: for ids, and for file names that
 * others must not guess. Random numbers of a computation come from rng.h instead. Threads: safe.
 */
#ifndef STK_BASE_RANDOM_ID_H
#define STK_BASE_RANDOM_ID_H

#include <stdint.h>

#define STK_RANDOM_ID_TEXT 17 /* 16 hexadecimal digits and the NUL */

uint64_t stk_random_id(void);

/* The same as 16 lower-case digits. */
void stk_random_id_text(char text[STK_RANDOM_ID_TEXT]);

#endif
