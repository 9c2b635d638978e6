/*
 * stream.h - bytes into a pipe, a terminal, a device or a descriptor that is open already.
 *
 * Whoever is to read them may be slow or never come. So nothing here waits in the system: a request
 * to stop and a deadline end every wait. Threads: one at a time for each descriptor.
 */
#ifndef STK_BASE_FILES_STREAM_H
#define STK_BASE_FILES_STREAM_H

#include "base/files/file.h"
#include "base/files/write_target.h"

/* Opens what lies at the place; for a named pipe it waits for a reader. `path` is for errors. */
STK_CHECKED stk_status stk_file_stream_open(int *fd, const stk_write_target *place,
                                            const char *path, const stk_file_how *how,
                                            stk_error *err);

/* Writes all of it. */
STK_CHECKED stk_status stk_file_stream_write(int fd, const void *data, size_t size,
                                             const char *path, const stk_file_how *how,
                                             stk_error *err);

#endif
