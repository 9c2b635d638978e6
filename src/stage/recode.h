/*
 * recode.h - what is kept of one picture: its bytes as they are, or smaller ones.
 *
 * Threads: every thread brings its own scratch.
 */
#ifndef STK_STAGE_RECODE_H
#define STK_STAGE_RECODE_H

#include "image/image.h"

/* The quality of JPEGs that are made because of their size alone. */
#define STK_RECODE_QUALITY 90

typedef struct stk_recode {
    int max_side; /* px of the longer side; 0: any */
    int quality;  /* of the JPEG that every picture becomes; 0: only those that must change */
} stk_recode;     /* all zero: nothing is changed */

typedef struct stk_recoded {
    uint8_t *bytes; /* owned, stk_mem_free; NULL: the picture stays as it is */
    size_t size;
    const char *extension; /* by its content: "jpg"; NULL: it is no picture that is known */
} stk_recoded;

/*
 * Makes the bytes that are kept. A picture that has to be decoded and cannot be is STK_ERR_DATA;
 * one that stays as it is is not looked into.
 */
STK_CHECKED stk_status stk_recode_picture(stk_image_scratch *scratch, const stk_recode *how,
                                          const uint8_t *bytes, size_t size, stk_recoded *recoded,
                                          stk_error *err);

#endif
