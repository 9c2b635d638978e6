/*
 * zip_directory.h - where the members of a zip are, from the directory at its end.
 *
 * A caller reads the last STK_ZIP_TAIL_BYTES of the file, finds the directory's place in them with
 * stk_zip_find_directory(), reads it as a whole and has it parsed by stk_zip_directory_read(). The
 * members' own headers are not read: how long they are is known only when a member's bytes are
 * there (zip_member.h), so each member has a span, which ends before the next member begins.
 *
 * Knows zip64, sizes behind the data, names in UTF-8, and bytes in front of the zip. Damage, and
 * what only an attacker would write (members that overlap, sizes that cannot be), is STK_ERR_DATA;
 * the message names the zip. Threads: one at a time.
 */
#ifndef STK_STORAGE_ZIP_ZIP_DIRECTORY_H
#define STK_STORAGE_ZIP_ZIP_DIRECTORY_H

#include <stddef.h>
#include <stdint.h>

#include <stoker/status.h>

#include "base/text/text_blocks.h"

/* The record at the end, a comment, and the records of zip64 in front. */
#define STK_ZIP_TAIL_BYTES ((size_t)22 + 65535 + 20 + 56)

/* Larger directories are refused: they would have some 20 million members. */
#define STK_ZIP_DIRECTORY_MAX ((uint64_t)2 << 30)

#define STK_ZIP_STORED 0
#define STK_ZIP_DEFLATED 8

typedef struct stk_zip_place {
    uint64_t offset;  /* of the directory in the file */
    uint64_t size;    /* its bytes */
    uint64_t before;  /* bytes in front of the zip, which its own offsets do not count */
    uint64_t entries; /* how many it says that it has, modulo 65536 */
} stk_zip_place;

/* A file in a zip. */
typedef struct stk_zip_member {
    const char *path; /* owned by the directory; harmless (member_path.h) */
    uint64_t offset;  /* of its header in the file */
    uint64_t span;    /* bytes from `offset` on that hold its header and its data */
    uint64_t size;    /* bytes when unpacked */
    uint32_t crc32;   /* of these */
    uint16_t method;  /* STK_ZIP_STORED, STK_ZIP_DEFLATED, or one that is not known here */
} stk_zip_member;

typedef struct stk_zip_directory {
    stk_zip_member *members; /* owned; by offset; no folders and no hidden members */
    size_t count;
    size_t capacity;
    stk_text_blocks texts; /* the paths */
    /* Members that are left out. */
    uint64_t links;     /* symbolic links */
    uint64_t outside;   /* paths that lead out of the zip */
    uint64_t encrypted; /* members that need a password */
    uint64_t foreign;   /* not left out: members of a method that is not known here */
} stk_zip_directory;    /* starts zeroed */

/*
 * Finds the directory of a zip of `file_size` bytes, whose last `size` bytes are `tail`: all of it,
 * or STK_ZIP_TAIL_BYTES.
 */
STK_CHECKED stk_status stk_zip_find_directory(const char *name, const uint8_t *tail, size_t size,
                                              uint64_t file_size, stk_zip_place *place,
                                              stk_error *err);

/* Reads the place->size bytes of a directory. */
STK_CHECKED stk_status stk_zip_directory_read(stk_zip_directory *directory, const char *name,
                                              const stk_zip_place *place, const uint8_t *bytes,
                                              stk_error *err);

void stk_zip_directory_free(stk_zip_directory *directory);

#endif
