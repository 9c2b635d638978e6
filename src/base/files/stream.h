/*
 * stream.h - writing to a pipe, a terminal, a device or an open descriptor.
 *
 * The reader may be slow or never come. So no call here blocks in the system: a request to stop and
 * a deadline end every wait. Threads: one at a time for each descriptor.
 */
#ifndef STK_BASE_FILES_STREAM_H
#define STK_BASE_FILES_STREAM_H

#include "base/files/file.h"
#include "base/files/write_target.h"

/* Opens the target; for a named pipe it waits for a reader. `path` is for errors. */
STK_CHECKED stk_status stk_file_stream_open(int *fd, const stk_write_target *target,
                                            const char *path, const stk_file_how *how,
                                            stk_error *err);

/* Writes all of the data. */
STK_CHECKED stk_status stk_file_stream_write(int fd, const void *data, size_t size,
                                             const char *path, const stk_file_how *how,
                                             stk_error *err);

#endif
