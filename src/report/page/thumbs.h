/*
 * thumbs.h - the pictures that a validation got most wrong, small enough for a page.
 *
 * They are read where the data set lies, which may be far away and slow: making them ends when it
 * was said, and what has not come by then is left out. Nothing here fails: a picture that cannot
 * be shown has a reason instead.
 */
#ifndef STK_REPORT_PAGE_THUMBS_H
#define STK_REPORT_PAGE_THUMBS_H

#include <stdint.h>

#include "report/page/confusion.h"
#include "storage/storage.h"

/* px of the longer side, at most. */
#define STK_THUMB_SIDE 128

typedef struct stk_thumb {
    uint8_t *jpeg; /* owned; NULL: there is none */
    size_t size;   /* bytes */
    char why[240]; /* why there is none: a part of a sentence; "" where there is one */
} stk_thumb;

typedef struct stk_thumbs {
    stk_thumb items[STK_CONFUSION_WORST]; /* as confusion.worst */
    int count;
} stk_thumbs; /* starts zeroed */

/* Of the worst pictures; `end_ns` by stk_clock_ns. */
void stk_thumbs_make(stk_thumbs *thumbs, const stk_confusion *confusion, stk_store *store,
                     int64_t end_ns);

/*
 * The same with a data set that is not open: `data` is what option data was. Where it cannot be
 * opened every picture says why.
 */
void stk_thumbs_make_from(stk_thumbs *thumbs, const stk_confusion *confusion, const char *data,
                          const stk_storage_options *storage, int64_t end_ns);
void stk_thumbs_free(stk_thumbs *thumbs);

#endif
