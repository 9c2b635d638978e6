/*
 * confusion.h - the confusion matrix of validation.csv, and the pictures that are furthest off.
 *
 * A matrix of many classes may be large, so only its cells above 0 are stored. Threads: it is
 * read-only once it is made, and may be shared.
 */
#ifndef STK_REPORT_PAGE_CONFUSION_H
#define STK_REPORT_PAGE_CONFUSION_H

#include <stddef.h>

#include <stoker/status.h>

#include "base/text/csv.h"

/* Most pictures in `worst`. */
#define STK_CONFUSION_WORST 12

typedef struct stk_confusion_cell {
    int label;     /* index in classes */
    int predicted; /* index in classes */
    size_t count;  /* pictures of class `label` for which `predicted` was predicted */
} stk_confusion_cell;

/* A picture whose prediction is wrong. */
typedef struct stk_confusion_miss {
    const char *path; /* below the data set's root */
    int label;
    int predicted;
    double probability; /* of the label, 0 to 1 */
    int fold;
} stk_confusion_miss;

typedef struct stk_confusion {
    const char **classes; /* owned: the classes that occur, sorted as in a data set */
    int class_count;
    size_t pictures;
    size_t right;              /* pictures whose label was predicted */
    stk_confusion_cell *cells; /* owned: by label, then by predicted */
    size_t cell_count;
    stk_confusion_miss worst[STK_CONFUSION_WORST]; /* the least likely label first */
    int worst_count;
    stk_csv table; /* owned: all texts are in it */
} stk_confusion;

/*
 * Makes the matrix from a table and takes the table over. `name` is for errors. STK_ERR_DATA: the
 * table is no validation.csv. After a failure *confusion is empty; freeing it is harmless.
 */
STK_CHECKED stk_status stk_confusion_make(stk_confusion *confusion, stk_csv *table,
                                          const char *name, stk_error *err);

void stk_confusion_free(stk_confusion *confusion);

/*
 * Writes the pairs of different classes that are confused most often, the most frequent first,
 * `most` at most. Returns how many.
 */
size_t stk_confusion_pairs(const stk_confusion *confusion, stk_confusion_cell *pairs, size_t most);

#endif
