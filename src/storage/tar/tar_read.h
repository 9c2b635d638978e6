/*
 * tar_read.h - what stands in a tar and where.
 *
 * A stk_tar_reader is fed with pieces of a tar and tells its files, one by one. It needs the
 * headers and not what lies between them: stk_tar_reader_at() says where it goes on, so that
 * whoever reads a near file hops from header to header, while a far one is better read from front
 * to back. It knows the old V7 format, ustar, GNU's long names and PAX. Damage is STK_ERR_DATA and
 * names the tar, the member and the byte. One thread at a time.
 */
#ifndef STK_STORAGE_TAR_TAR_READ_H
#define STK_STORAGE_TAR_TAR_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <stoker/status.h>

#define STK_TAR_BLOCK 512

/* Members with more bytes than this have no text. */
#define STK_TAR_TEXT_BYTES 4096

typedef struct stk_tar_reader stk_tar_reader;

/* A file in a tar. */
typedef struct stk_tar_member {
    const char *path; /* the reader's until the next call; no slash, "./" or ".." in it in front */
    uint64_t offset;  /* of its first byte in the tar */
    uint64_t size;    /* bytes */
    const char *text; /* the reader's until the next call: its bytes and a NUL, if it is a text */
} stk_tar_member;

typedef enum stk_tar_found {
    STK_TAR_MORE,  /* bytes from stk_tar_reader_at() on are needed, if there are any */
    STK_TAR_MEMBER /* a member was found */
} stk_tar_found;

/* What was passed over. */
typedef struct stk_tar_counts {
    uint64_t links;   /* hard and symbolic ones */
    uint64_t unknown; /* devices, pipes, kinds that are not known, names that lead out of the tar */
} stk_tar_counts;

/*
 * `name` is how errors call the tar, and is kept. `is_text` (or NULL) says by the path of which
 * members the bytes are wanted with them.
 */
STK_CHECKED stk_status stk_tar_reader_open(stk_tar_reader **reader, const char *name,
                                           bool (*is_text)(const char *path), stk_error *err);
void stk_tar_reader_close(stk_tar_reader *reader);

/* The byte of the tar at which it goes on: none before it will be needed. */
uint64_t stk_tar_reader_at(const stk_tar_reader *reader);

/* How many bytes the tar must have, by what was read of it. */
uint64_t stk_tar_reader_needs(const stk_tar_reader *reader);

/*
 * Looks for the next member in `size` bytes that stand at `offset` of the tar. It may be called
 * again with the same bytes until it asks for more.
 */
STK_CHECKED stk_status stk_tar_reader_next(stk_tar_reader *reader, uint64_t offset,
                                           const void *bytes, size_t size, stk_tar_found *found,
                                           stk_tar_member *member, stk_error *err);

/* To be called when there are no more bytes: whether the tar, of so many bytes, is whole. */
STK_CHECKED stk_status stk_tar_reader_finish(const stk_tar_reader *reader, uint64_t size,
                                             stk_error *err);

stk_tar_counts stk_tar_reader_counts(const stk_tar_reader *reader);

#endif
