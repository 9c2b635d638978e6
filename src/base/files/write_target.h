/*
 * write_target.h - what a path that is to be written stands for: a file that is replaced as a
 * whole, or a stream (a pipe, a terminal, an open descriptor) that bytes are written into.
 *
 * Paths come in two kinds. A path is `chosen` when a user gave it (`--out`, `--plot`): links are
 * followed, and pipes, terminals, character devices and open descriptors are written to. All other
 * paths are Stoker's own, in run folders and caches: there only a regular file or nothing may lie,
 * so that a link which somebody planted leads nowhere. Nothing here opens or changes a file.
 * Threads: safe.
 */
#ifndef STK_BASE_FILES_WRITE_TARGET_H
#define STK_BASE_FILES_WRITE_TARGET_H

#include <stdbool.h>
#include <sys/stat.h>

#include <stoker/status.h>

typedef struct stk_write_target {
    char *path;       /* owned: where the links of the given path end */
    bool stream;      /* bytes are written into what exists; nothing is replaced */
    int descriptor;   /* of this process, for /dev/stdout and /dev/fd/N; otherwise -1 */
    bool is_there;    /* something exists at the path */
    struct stat info; /* of what exists; zeros otherwise */
} stk_write_target;

/* Finds out what the path stands for. After a success stk_write_target_free frees the target. */
STK_CHECKED stk_status stk_write_target_find(stk_write_target *target, const char *path,
                                             bool chosen, stk_error *err);
void stk_write_target_free(stk_write_target *target);

/* The error for a path of Stoker's own that is no regular file; `mode` says what it is. */
STK_CHECKED stk_status stk_write_target_refuse(const char *path, mode_t mode, stk_error *err);

/* Whether a chosen path means this descriptor of the process: /dev/stdout is 1. */
bool stk_write_target_is_descriptor(const char *path, int descriptor);

/*
 * Checks before any work that a file can be written to a chosen path later. Either the path is a
 * stream that may be written to, or the folder of the target exists and takes files. Otherwise
 * fails with STK_ERR_USAGE, or STK_ERR_STORAGE where the disk does not answer; the message names
 * `option`, the flag that gave the path.
 */
STK_CHECKED stk_status stk_write_target_check(const char *option, const char *path, stk_error *err);

#endif
