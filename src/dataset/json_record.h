/*
 * json_record.h - only for this room: records of JSON as rows of a table.
 *
 * A record is an object whose members are fields. Plain values become cells: numbers as they are
 * written, strings decoded, null empty. The members of an object in a record become columns
 * "outer.inner", one level deep. A list of strings becomes one cell with blanks between. Lists of
 * numbers stay in the file and are only noted, with their places. All else is left out. Threads:
 * one.
 */
#ifndef STK_DATASET_JSON_RECORD_H
#define STK_DATASET_JSON_RECORD_H

#include "base/text/csv_rows.h"
#include "base/text/json_stream.h"
#include "dataset/json_table.h"

typedef struct stk_json_records {
    stk_csv_rows rows;
    stk_json_array *arrays; /* owned; only with `notes_arrays` */
    size_t array_count;
    size_t array_capacity;
    bool notes_arrays;
    bool has_boxes; /* some record has a bbox, or a list of boxes, that is not empty */
    bool has_masks; /* some record has a segmentation that is not empty */
    stk_str key;    /* of the member that is being read */
} stk_json_records; /* starts zeroed, but for rows.name */

/* Frees all but the name of the table, which `rows` keeps. */
void stk_json_records_free(stk_json_records *records);
void stk_json_arrays_free(stk_json_array *arrays, size_t count);

/*
 * Reads the rest of a record as the next row. *token is the first token inside of the record, and
 * the record's end afterwards. `id`, unless NULL, is the value of a column "id" for records that
 * have no such field. A field that stands twice is STK_ERR_DATA.
 */
STK_CHECKED stk_status stk_json_record_read(stk_json_records *records, stk_json_stream *stream,
                                            const char *id, stk_json_token *token, stk_error *err);

/* A row of an id and its label, columns "id" and "label". */
STK_CHECKED stk_status stk_json_record_pair(stk_json_records *records, stk_json_stream *stream,
                                            const char *id, const stk_json_token *value,
                                            stk_error *err);

/* Whether a token is a value without parts. */
bool stk_json_token_is_plain(const stk_json_token *token);

/* Makes the table, and moves the arrays, each with a place for every row, to info. */
STK_CHECKED stk_status stk_json_records_finish(stk_json_records *records, stk_csv *csv,
                                               stk_json_table_info *info, stk_error *err);

/*
 * json_coco.c: the table of images with their annotations, both of which it empties. `images` or
 * `annotations` may have no rows: then the rows of the other are the table.
 */
STK_CHECKED stk_status stk_json_coco_join(const char *name, stk_json_records *images,
                                          stk_json_records *annotations, stk_csv *csv,
                                          stk_json_table_info *info, stk_error *err);

/* json_coco.c: moves the ids and names of categories to info. */
STK_CHECKED stk_status stk_json_coco_categories(stk_json_records *categories,
                                                stk_json_table_info *info, stk_error *err);

#endif
