/*
 * archive_names.h - inside storage: which objects are archives, by their names and first bytes.
 *
 * A name only makes an object a candidate; its first bytes say what it is, since `.tar.gz` is often
 * a plain tar. Threads: any, it keeps no state.
 */
#ifndef STK_STORAGE_ARCHIVES_ARCHIVE_NAMES_H
#define STK_STORAGE_ARCHIVES_ARCHIVE_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes at the start of an object that stk_archive_kind_of() wants, if it has so many. */
#define STK_ARCHIVE_HEAD_BYTES ((size_t)512)

typedef enum stk_archive_kind {
    STK_ARCHIVE_NONE,
    STK_ARCHIVE_ZIP,   /* read in place */
    STK_ARCHIVE_TAR,   /* read in place */
    STK_ARCHIVE_BSON,  /* documents with pictures, which are read in place */
    STK_ARCHIVE_PACKED /* its members cannot be read one by one: it is unpacked once */
} stk_archive_kind;

/* Length of an archive's name without the ending that says what it is; 0: no archive's name. */
size_t stk_archive_stem(const char *name);

/* Whether a name is that of an archive, other than a tar, that may hold a whole location. */
bool stk_archive_is_whole(const char *name);

/*
 * Whether a name is that of a BSON file, and of one that is the beginning of another: where `whole`
 * is not NULL, *whole is the length of the other's name without its ending, or 0.
 */
bool stk_archive_is_bson(const char *name, size_t *whole);

/* The kind, and the format's name for people, by the object's first bytes. */
stk_archive_kind stk_archive_kind_of(const uint8_t *head, size_t size, const char **format);

/* Whether a file of this name is a table or a description and no picture. */
bool stk_archive_is_table(const char *name);

/* Whether a name begins with a word for a part of a data set: train, test, val. */
bool stk_archive_is_part(const char *name);

#endif
