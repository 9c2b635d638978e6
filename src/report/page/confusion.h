/*
 * confusion.h - which classes are taken for which, and the pictures that are furthest off: what
 * validation.csv of a run folder comes to. Any number of classes; a matrix of all of them may be
 * large, so only the cells that are not 0 are kept. Read-only once it is made: threads may share
 * it.
 */
#ifndef STK_REPORT_PAGE_CONFUSION_H
#define STK_REPORT_PAGE_CONFUSION_H

#include <stddef.h>

#include <stoker/status.h>

#include "base/text/csv.h"

/* So many pictures at most are named. */
#define STK_CONFUSION_WORST 12

typedef struct stk_confusion_cell {
    int label; /* place in classes, as predicted is */
    int predicted;
    size_t count; /* pictures of the one that were taken for the other */
} stk_confusion_cell;

/* A picture that was taken for another class than it has. */
typedef struct stk_confusion_miss {
    const char *path; /* below the data set's root */
    int label;
    int predicted;
    double probability; /* of the label, 0 to 1 */
    int fold;
} stk_confusion_miss;

typedef struct stk_confusion {
    const char **classes; /* owned: those that occur, sorted as a data set sorts them */
    int class_count;
    size_t pictures;
    size_t right;              /* of these, whose label was predicted */
    stk_confusion_cell *cells; /* owned: by label, then by predicted */
    size_t cell_count;
    stk_confusion_miss worst[STK_CONFUSION_WORST]; /* whose label was thought least likely first */
    int worst_count;
    stk_csv table; /* owned: all texts are in it */
} stk_confusion;

/*
 * From a table that was read, which it takes over; `name` is for errors. STK_ERR_DATA where it is
 * not a validation.csv. After a failure *confusion is empty and may be freed or not.
 */
STK_CHECKED stk_status stk_confusion_make(stk_confusion *confusion, stk_csv *table,
                                          const char *name, stk_error *err);

/* The same from the file. */
STK_CHECKED stk_status stk_confusion_read(stk_confusion *confusion, const char *path,
                                          stk_error *err);
void stk_confusion_free(stk_confusion *confusion);

/* Pictures of class `label` that were taken for class `predicted`. */
size_t stk_confusion_count(const stk_confusion *confusion, int label, int predicted);

/*
 * The pairs of different classes that are mixed up most often, most often first, at most `most` of
 * them; returns how many there are.
 */
size_t stk_confusion_pairs(const stk_confusion *confusion, stk_confusion_cell *pairs, size_t most);

#endif
