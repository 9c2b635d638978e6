/*
 * tar_write.h - writes a tar of small files.
 *
 * The format is ustar, with a PAX header only before names that ustar has no room for or that are
 * not ASCII. Nothing but names and bytes goes into it (times and owners are 0), so that the same
 * files in the same order give the same tar. The tar appears under its name when it is whole, and
 * not before. One thread at a time.
 */
#ifndef STK_STORAGE_TAR_TAR_WRITE_H
#define STK_STORAGE_TAR_TAR_WRITE_H

#include <stddef.h>
#include <stdint.h>

#include <stoker/status.h>

typedef struct stk_tar_writer stk_tar_writer;

STK_CHECKED stk_status stk_tar_writer_open(stk_tar_writer **writer, const char *file,
                                           stk_error *err);

/*
 * Adds a file; *offset (NULL is fine) is where in the tar its bytes begin. The path must be one
 * that stk_tar_reader shows: parts divided by single slashes, none of them "." or "..". The same
 * path twice is the caller's business.
 */
STK_CHECKED stk_status stk_tar_writer_add(stk_tar_writer *writer, const char *path,
                                          const void *bytes, size_t size, uint64_t *offset,
                                          stk_error *err);

/* Ends the tar, syncs it and gives it its name; *size (NULL is fine) is its bytes. Frees. */
STK_CHECKED stk_status stk_tar_writer_commit(stk_tar_writer *writer, uint64_t *size,
                                             stk_error *err);

/* Leaves nothing behind, and frees; NULL is fine. */
void stk_tar_writer_discard(stk_tar_writer *writer);

#endif
