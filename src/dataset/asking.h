/*
 * asking.h - only for this room: what is known while task and answer are decided.
 *
 * Threads: one.
 */
#ifndef STK_DATASET_ASKING_H
#define STK_DATASET_ASKING_H

#include "dataset/ask.h"
#include "dataset/label_lists.h"
#include "dataset/sample_cells.h"

/* Rows for each text of a column; with fewer the texts hardly repeat. */
#define STK_HARDLY_REPEATED 2

/* What may be taken for something else; told where the decision stands. */
typedef struct stk_doubts {
    char texts[4][600];
    size_t count;
} stk_doubts;

/* What is known while it is decided. */
typedef struct stk_asking {
    stk_ask *ask;
    stk_doubts *doubts;
    const stk_listing *listing;
    const stk_ask_tables *tables;
    const stk_hints *hints;
    stk_task wanted; /* --task */
    stk_sample_cells sample;
    bool has_sample;
    size_t asked;              /* columns of the sample that are answers */
    stk_column_profile labels; /* owned: of the only label column */
    stk_label_lists lists;
    const char *name; /* of that column */
} stk_asking;

/* The reason for the task, for people. */
void stk_ask_say(stk_ask *ask, const char *format, ...) STK_PRINTF(2, 3);

/* A warning, told once the decision stands. */
void stk_ask_doubt(stk_asking *asking, const char *format, ...) STK_PRINTF(2, 3);

/* Whether the only column's numbers are amounts. Where it is in doubt, a warning says what was
 * taken. */
bool stk_ask_is_regression(stk_asking *asking);

/* Whether they are whole numbers that are steps of a scale. */
bool stk_ask_is_ordinal(stk_asking *asking);

#endif
