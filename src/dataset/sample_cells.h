/*
 * sample_cells.h - only for this room: what the cells of a sample submission hold.
 *
 * They are placeholders, but of the kind that is wanted: "0.5" asks for a probability, "a b c" for
 * a list. Threads: any.
 */
#ifndef STK_DATASET_SAMPLE_CELLS_H
#define STK_DATASET_SAMPLE_CELLS_H

#include "base/map.h"
#include "base/text/csv.h"

typedef struct stk_sample_cells {
    size_t cells;
    size_t numbers;
    size_t fractions;
    size_t lists;  /* cells of two words or more */
    size_t words;  /* the most words of a cell */
    bool constant; /* all cells are the same */
    bool spread;   /* the numbers are not only 0 and 1 */
    char first[40];
} stk_sample_cells;

/* Looks at all columns but `id` and `kept`. `known` are the texts of the label column: a cell that
 * is one of them is no list. Nothing where `csv` is NULL. */
stk_sample_cells stk_sample_cells_read(const stk_csv *csv, size_t id, size_t kept,
                                       const stk_map *known);

#endif
