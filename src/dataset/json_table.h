/*
 * json_table.h - JSON files as tables: what a stk_csv would hold, had the file been a CSV file.
 *
 * The file is read once from front to back, in pieces; only its cells stay in memory. Shapes that
 * are tables:
 *
 *     [{"id": 1, "label": "cat"}, ...]              a list of records
 *     {"id": 1, "label": "cat"}\n{...}              JSON Lines
 *     {"data": [{...}, ...], "version": 1}          an object with one list of records in it
 *     {"id": [1, 2], "label": ["cat", "dog"]}       columns; also as pandas writes them, with row
 *                                                   numbers: {"id": {"0": 1, "1": 2}, ...}
 *     {"1": {"label": "cat"}, ...}                  records by id, which becomes the column "id"
 *     {"1": "cat", "2": "dog"}                      labels by id: columns "id" and "label"
 *     {"1": ["cat", "dog"], ...}                    lists of labels by id, with blanks between
 *     {"images": [...], "annotations": [...], "categories": [...]}     COCO, in any order
 *
 * json_record.h says which values become cells. In COCO files the rows are the images. Their
 * annotations are found by image_id and give the columns that the images do not have, among them
 * category_id. Of several annotations of one image the categories are a list with blanks between,
 * each once; other columns keep a value that all of them share. Where the list of annotations or
 * that of images is missing, the rows are those of the other one.
 *
 * Threads: one. The table's lines are those of the file, so all are 1 where it has one line.
 */
#ifndef STK_DATASET_JSON_TABLE_H
#define STK_DATASET_JSON_TABLE_H

#include "base/files/range_source.h"
#include "base/text/csv.h"

/* Fields with lists of numbers, for each of which there is a place per row, have this limit. */
#define STK_JSON_ARRAYS_MAX 64

/* Where a list of numbers is in the file. */
typedef struct stk_json_place {
    uint64_t offset; /* of its [ */
    uint64_t bytes;  /* up to and with its ]; 0: the row has none */
} stk_json_place;

/* A field whose values are lists of numbers, or lists of such lists. */
typedef struct stk_json_array {
    char *name;             /* owned */
    size_t length;          /* numbers in each list; 0: the rows differ in that */
    size_t lists;           /* lists of length / lists numbers in each; 0: the numbers are direct */
    stk_json_place *places; /* owned; one for each row of the table */
    size_t place_count;
    size_t capacity;
} stk_json_array;

/* What the file holds besides cells. Freed with stk_json_table_info_free. */
typedef struct stk_json_table_info {
    stk_json_array *arrays; /* owned */
    size_t array_count;
    stk_csv categories;          /* owned: the categories of a COCO file as a table; or empty */
    const char **category_ids;   /* owned array; points into `categories` */
    const char **category_names; /* owned array; the id where a category has no name */
    size_t category_count;
    size_t strays;  /* annotations of images that the file does not list; they are left out */
    bool is_coco;   /* the rows are images, with or without annotations */
    bool has_boxes; /* some row or annotation has a bounding box: it is left out */
    bool has_masks; /* some row or annotation has a segmentation: it is left out */
} stk_json_table_info;

/*
 * Reads a whole file. `source->name` is what errors call it. STK_ERR_DATA says what is wrong and
 * where: no valid JSON, a field that stands twice in a record, no records, no table, or a table
 * beyond the limits of csv.h. After a failure *csv and *info are empty.
 */
STK_CHECKED stk_status stk_json_table_read(const stk_range_source *source, stk_csv *csv,
                                           stk_json_table_info *info, stk_error *err);

void stk_json_table_info_free(stk_json_table_info *info);

#endif
