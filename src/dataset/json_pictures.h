/*
 * json_pictures.h - JSON files whose records have the numbers of pictures in them.
 *
 * Each record has one or more lists of equally many numbers (band_1, band_2): one list for each
 * channel. The numbers of a list are a square, row by row, unless the list consists of lists, which
 * are the rows then. Such a file is read once and kept as files that a loader can read:
 *
 *     FOLDER/pictures/STEM/ID.npy    a picture: float32 (H, W, C)
 *     FOLDER/pictures/STEM.csv       the other fields of the records
 *     FOLDER/pictures/STEM.kept      what the two were made of, and the shape; written last
 *
 * The .kept file names the JSON file and its version (stk_store_version: size and time of change).
 * While both are the same, a later run takes what is there. Threads: one, which starts some of its
 * own; a lock keeps two processes apart.
 */
#ifndef STK_DATASET_JSON_PICTURES_H
#define STK_DATASET_JSON_PICTURES_H

#include "dataset/json_table.h"
#include "events/events.h"

typedef struct stk_json_pictures {
    stk_csv csv;      /* owned: a row for each picture, with the fields that are no lists */
    size_t id_column; /* the picture of a row is ID.npy */
    char *folder;     /* owned: where the pictures are */
    size_t height;
    size_t width;
    size_t channels;
    bool is_recalled; /* an earlier run has made them */
    bool none;        /* after a failure: the file is no table, or has no pictures */
} stk_json_pictures;  /* freed with stk_json_pictures_free */

/* Whether the records of a table have lists of numbers that can be pictures. */
bool stk_json_pictures_are_in(const stk_json_table_info *info);

/*
 * Makes the pictures of a file, or finds those of an earlier run. `version` changes whenever the
 * file does. `stem` names the results, "train" for train.json. `events` are told before a long
 * conversion; they may be NULL. STK_ERR_DATA: no table, no pictures in it, numbers that are no
 * rectangle, or an id that is missing, stands twice or cannot name a file.
 */
STK_CHECKED stk_status stk_json_pictures_convert(const stk_range_source *source,
                                                 const char *version, const char *folder,
                                                 const char *stem, const stk_events *events,
                                                 stk_json_pictures *pictures, stk_error *err);
void stk_json_pictures_free(stk_json_pictures *pictures);

/* ---- json_pixels.c: from lists of numbers to files ---- */

/* The lists that are the channels of a picture. */
typedef struct stk_json_shape {
    size_t arrays[STK_JSON_ARRAYS_MAX]; /* numbers of the arrays in the info */
    size_t channels;
    size_t height;
    size_t width;
} stk_json_shape;

/*
 * Writes the picture of each row to FOLDER/ID.npy. Every row must have all channels; ids are
 * checked by the caller.
 */
STK_CHECKED stk_status stk_json_pixels_write(const stk_range_source *source, const stk_csv *csv,
                                             size_t id_column, const stk_json_table_info *info,
                                             const stk_json_shape *shape, const char *folder,
                                             stk_error *err);

/*
 * Reads `count` numbers of a list as JSON has it into every `step`th float of `out`. False: the
 * text has other things or another count, or a number is no finite float. A NUL must follow the
 * text.
 */
bool stk_json_pixels_parse(const char *text, size_t count, float *out, size_t step);

/* Bytes of a file with a picture of that shape. */
uint64_t stk_json_pixels_file_bytes(const stk_json_shape *shape);

#endif
