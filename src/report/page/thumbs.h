/*
 * thumbs.h - thumbnails of the pictures that a validation got most wrong.
 *
 * They are read from the location of the data set, which may be slow: making them ends at a given
 * time, and pictures that have not arrived by then are left out. Nothing here fails: a picture that
 * cannot be shown has a reason instead. Threads: one at a time.
 */
#ifndef STK_REPORT_PAGE_THUMBS_H
#define STK_REPORT_PAGE_THUMBS_H

#include <stdint.h>

#include "report/page/confusion.h"
#include "storage/storage.h"

/* Most px of the longer side of a thumbnail. */
#define STK_THUMB_SIDE 128

typedef struct stk_thumb {
    uint8_t *jpeg; /* owned; NULL: the thumbnail is missing */
    size_t size;   /* bytes */
    char why[240]; /* why the thumbnail is missing: a part of a sentence; "" when it exists */
} stk_thumb;

typedef struct stk_thumbs {
    stk_thumb items[STK_CONFUSION_WORST]; /* in the order of confusion.worst */
    int count;
} stk_thumbs; /* starts zeroed */

/* Makes thumbnails of confusion->worst until `end_ns` by stk_clock_ns. */
void stk_thumbs_make(stk_thumbs *thumbs, const stk_confusion *confusion, stk_store *store,
                     int64_t end_ns);

/*
 * The same for a data set that is not open: `data` is the value of option data. If it cannot be
 * opened, `why` of every thumbnail says so.
 */
void stk_thumbs_make_from(stk_thumbs *thumbs, const stk_confusion *confusion, const char *data,
                          const stk_storage_options *storage, int64_t end_ns);
void stk_thumbs_free(stk_thumbs *thumbs);

#endif
