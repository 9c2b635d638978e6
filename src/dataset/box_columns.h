/*
 * box_columns.h - only for this room: columns and cells that hold boxes in pictures.
 *
 * Threads: any.
 */
#ifndef STK_DATASET_BOX_COLUMNS_H
#define STK_DATASET_BOX_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text/csv.h"

/* The columns of a table that together are a box: four numbers, or one column of boxes. */
typedef struct stk_box_columns {
    size_t columns[4];
    size_t count; /* 0, 1 or 4 */
} stk_box_columns;

void stk_box_columns_find(stk_box_columns *boxes, const stk_csv *csv);

bool stk_box_columns_have(const stk_box_columns *boxes, size_t column);

/* Whether nearly all cells are boxes: records with width and height, four numbers where the column
 * is called like boxes, or a name and four whole numbers each time. */
bool stk_cells_are_boxes(const stk_csv *csv, size_t column);

/* Whether the cells of a sample submission are boxes: a name, a share or both, and four numbers.
 * `known`: the training table has boxes. */
bool stk_cells_ask_for_boxes(const stk_csv *sample, size_t column, bool known);

#endif
