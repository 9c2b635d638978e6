/*
 * tar_write.h - writes a tar of small files.
 *
 * The format is ustar, with a PAX header before paths that ustar has no room for or that are not
 * ASCII. Times and owners are 0, so the same files in the same order give the same tar. The tar
 * appears under its name only when it is complete. Threads: one at a time.
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
 * Adds a file; *offset (NULL is fine) is where in the tar its bytes begin. The path must have the
 * form that stk_tar_reader returns: parts separated by single slashes, none of them "." or "..".
 * Adding a path twice is not detected.
 */
STK_CHECKED stk_status stk_tar_writer_add(stk_tar_writer *writer, const char *path,
                                          const void *bytes, size_t size, uint64_t *offset,
                                          stk_error *err);

/* Ends the tar, syncs it and renames it to its name; *size (NULL is fine) is its size. Frees the
 * writer. */
STK_CHECKED stk_status stk_tar_writer_commit(stk_tar_writer *writer, uint64_t *size,
                                             stk_error *err);

/* Removes the unfinished file and frees the writer; NULL is fine. */
void stk_tar_writer_discard(stk_tar_writer *writer);

#endif
