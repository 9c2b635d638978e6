/*
 * tar_read.h - finds the files in a tar and their positions.
 *
 * The caller feeds pieces of a tar to a stk_tar_reader and gets its files one by one. The reader
 * needs only the headers: stk_tar_reader_at() says where the next one begins. So a caller can hop
 * from header to header of a near file; a far file is better read from front to back. Reads the old
 * V7 format, ustar, GNU's long names and PAX. Damage is STK_ERR_DATA; the message names the tar,
 * the member and the byte. Threads: one at a time.
 */
#ifndef STK_STORAGE_TAR_TAR_READ_H
#define STK_STORAGE_TAR_TAR_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <stoker/status.h>

#define STK_TAR_BLOCK 512

/* Larger members have no text. */
#define STK_TAR_TEXT_BYTES 4096

typedef struct stk_tar_reader stk_tar_reader;

/* A file in a tar. */
typedef struct stk_tar_member {
    const char *path; /* valid until the next call; no leading slash and no "." or ".." parts */
    uint64_t offset;  /* of its first byte in the tar */
    uint64_t size;    /* bytes */
    const char *text; /* contents and a NUL if it is a text; valid until the next call */
} stk_tar_member;

typedef enum stk_tar_found {
    STK_TAR_MORE,  /* needs bytes from stk_tar_reader_at() on, if the tar has any */
    STK_TAR_MEMBER /* a member was found */
} stk_tar_found;

/* Entries that were skipped. */
typedef struct stk_tar_counts {
    uint64_t links;   /* hard and symbolic links */
    uint64_t unknown; /* devices, pipes, unknown types, paths that lead out of the tar */
} stk_tar_counts;

/*
 * `name` is the tar's name in errors; it is copied. `is_text` decides by its path whether a
 * member's contents are returned with it; NULL: never.
 */
STK_CHECKED stk_status stk_tar_reader_open(stk_tar_reader **reader, const char *name,
                                           bool (*is_text)(const char *path), stk_error *err);
void stk_tar_reader_close(stk_tar_reader *reader);

/* Position in the tar where reading continues: no earlier byte will be needed. */
uint64_t stk_tar_reader_at(const stk_tar_reader *reader);

/* Least size of the tar, by the headers read so far. */
uint64_t stk_tar_reader_needs(const stk_tar_reader *reader);

/*
 * Looks for the next member in `size` bytes from `offset` of the tar. Call it again with the same
 * bytes until it returns STK_TAR_MORE.
 */
STK_CHECKED stk_status stk_tar_reader_next(stk_tar_reader *reader, uint64_t offset,
                                           const void *bytes, size_t size, stk_tar_found *found,
                                           stk_tar_member *member, stk_error *err);

/* Call it at the end of the tar: fails if a tar of `size` bytes is incomplete. */
STK_CHECKED stk_status stk_tar_reader_finish(const stk_tar_reader *reader, uint64_t size,
                                             stk_error *err);

stk_tar_counts stk_tar_reader_counts(const stk_tar_reader *reader);

#endif
