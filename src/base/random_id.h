/*
 * random_id.h - numbers by chance, which nobody can know before: for ids, and for names of files
 * that others must not guess. What a computation depends on comes from rng.h instead. Threads:
 * safe.
 */
#ifndef STK_BASE_RANDOM_ID_H
#define STK_BASE_RANDOM_ID_H

#include <stdint.h>

#define STK_RANDOM_ID_TEXT 17 /* 16 hexadecimal digits and the NUL */

uint64_t stk_random_id(void);

/* The same as 16 digits in small letters. */
void stk_random_id_text(char text[STK_RANDOM_ID_TEXT]);

#endif
