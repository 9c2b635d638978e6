/*
 * recode.h - decides for one picture whether its bytes stay or become a smaller JPEG.
 *
 * Threads: each thread needs its own scratch.
 */
#ifndef STK_STAGE_RECODE_H
#define STK_STAGE_RECODE_H

#include "image/image.h"

/* JPEG quality of pictures that are recoded because of max_side alone. */
#define STK_RECODE_QUALITY 90

typedef struct stk_recode {
    int max_side; /* px of the longer side; 0: any */
    int quality;  /* JPEG quality, all pictures are recoded; 0: only those above max_side and, if
                     that is set, those that are no JPEG */
} stk_recode;     /* all zero: every picture stays as it is */

typedef struct stk_recoded {
    uint8_t *bytes; /* owned, stk_mem_free; NULL: the picture stays as it is */
    size_t size;
    const char *extension; /* by content: "jpg"; NULL: unknown format */
} stk_recoded;

/*
 * Makes the new bytes. STK_ERR_DATA: the picture must be decoded and cannot be. A picture that
 * stays is not decoded.
 */
STK_CHECKED stk_status stk_recode_picture(stk_image_scratch *scratch, const stk_recode *how,
                                          const uint8_t *bytes, size_t size, stk_recoded *recoded,
                                          stk_error *err);

#endif
