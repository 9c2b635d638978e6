/*
 * bson_scan.h - BSON files of products with pictures in them: a table, and where the pictures are.
 *
 * Such a file is documents one after the other, as mongodump writes them: `_id`, other plain
 * fields, and pictures as binary fields, mostly `imgs: [{picture: ...}, ...]`. No picture is
 * copied: it is read later as a range of the file, like a member of a tar. Nothing in the file is
 * trusted: every length is checked against the document around it, nesting is not followed.
 *
 * A picture takes 16 bytes here. As a member of an index it takes 48 and its path, and in an opened
 * store 72 and its path. Threads: one, which starts some of its own while it reads.
 */
#ifndef STK_STORAGE_TAR_BSON_SCAN_H
#define STK_STORAGE_TAR_BSON_SCAN_H

#include "base/files/range_source.h"
#include "base/text/csv.h"
#include "storage/tar/shard_index.h"

typedef struct stk_bson_picture {
    uint64_t offset; /* of its first byte in the file */
    uint32_t bytes;
    uint32_t row; /* of the table; the pictures of a row follow each other */
} stk_bson_picture;

typedef struct stk_bson_scan {
    stk_csv csv;                /* owned: a row for each document, a column for each plain field */
    stk_bson_picture *pictures; /* owned; in the order of the file */
    size_t picture_count;
    size_t picture_capacity;
    uint64_t bytes; /* of the file, as far as it was read */
    bool is_whole;  /* the file was read up to its end */
} stk_bson_scan;    /* freed with stk_bson_scan_free */

typedef struct stk_bson_how {
    int at_a_time; /* reads in flight; 0: one */
    /* Asked now and then. True: the documents up to byte `at` are enough. NULL: all are read. */
    bool (*enough)(void *user, uint64_t at);
    void *user;
} stk_bson_how;

/*
 * Reads a whole file. Numbers become cells without rounding, texts as they are, an ObjectId as 24
 * hexadecimal digits, a date as milliseconds since 1970; lists, documents and code are no cells.
 * `how` NULL: the defaults. Damage is STK_ERR_DATA and names the byte; *scan is empty then.
 */
STK_CHECKED stk_status stk_bson_read(const stk_range_source *source, const stk_bson_how *how,
                                     stk_bson_scan *scan, stk_error *err);
void stk_bson_scan_free(stk_bson_scan *scan);

/*
 * Adds the file `object` and its pictures to an index, with the paths FOLDER/ID/K.jpg: ID is the
 * cell of the column "_id" and K counts the pictures of a document from 0. `folder` "": ID/K.jpg.
 * An id that is missing, stands twice, or is no name of a folder is STK_ERR_DATA.
 */
STK_CHECKED stk_status stk_bson_index(const stk_bson_scan *scan, const char *object,
                                      const char *folder, stk_shard_index *index, stk_error *err);

#endif
