/*
 * json_columns.h - only for this room: lists of plain values by name, which are the columns of a
 * table or lists of labels. Threads: one.
 */
#ifndef STK_DATASET_JSON_COLUMNS_H
#define STK_DATASET_JSON_COLUMNS_H

#include "base/text/csv_rows.h"
#include "base/text/json_stream.h"

/* One list. Its texts stand behind each other, each with a NUL after it. */
typedef struct stk_json_column {
    size_t name;  /* where in the texts its name begins */
    size_t cells; /* where its values begin */
    size_t count; /* values */
    uint64_t line;
} stk_json_column;

typedef struct stk_json_columns {
    stk_json_column *items; /* owned */
    size_t count;
    size_t capacity;
    char *texts; /* owned */
    size_t used;
    size_t texts_capacity;
} stk_json_columns; /* starts zeroed */

void stk_json_columns_free(stk_json_columns *columns);

/*
 * Reads a list whose [ was read, from its first token on; *token is its end afterwards. *mixed: it
 * holds lists or objects, too, which were passed over.
 */
STK_CHECKED stk_status stk_json_columns_list(stk_json_columns *columns, stk_json_stream *stream,
                                             const char *name, stk_json_token *token, bool *mixed,
                                             stk_error *err);

/* Reads an object {"0": ..., "1": ...} in the same way. *token is the value of its first key. */
STK_CHECKED stk_status stk_json_columns_numbered(stk_json_columns *columns, stk_json_stream *stream,
                                                 const char *name, stk_json_token *token,
                                                 stk_error *err);

/* Whether the lists are columns: all of one length, and not rather lists of labels by id. */
bool stk_json_columns_are_even(const stk_json_columns *columns);

/* The table of columns, or of ids with their lists in one cell; `columns` is empty afterwards. */
STK_CHECKED stk_status stk_json_columns_finish(stk_json_columns *columns, const char *name,
                                               stk_csv *csv, stk_error *err);

#endif
