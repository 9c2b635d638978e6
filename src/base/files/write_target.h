/*
 * write_target.h - what a path that is to be written stands for: a name that a new file takes, or
 * something that bytes go into as it is.
 *
 * There are two kinds of paths. A user chooses one (`--out`, `--plot`): links are followed, and
 * pipes, terminals, character devices and open descriptors are written to. Others are names of
 * Stoker's own, in run folders and caches: there only a regular file or nothing may lie, so that a
 * link which somebody has planted leads nowhere. Threads: safe.
 */
#ifndef STK_BASE_FILES_WRITE_TARGET_H
#define STK_BASE_FILES_WRITE_TARGET_H

#include <stdbool.h>
#include <sys/stat.h>

#include <stoker/status.h>

typedef struct stk_write_target {
    char *path;       /* owned: where the links of the path lead to */
    bool stream;      /* bytes are written into what is there; nothing is replaced */
    int descriptor;   /* of this process, which the path means (/dev/stdout, /dev/fd/N); or -1 */
    bool is_there;    /* there is something, and this is what the system says of it: */
    struct stat info; /* zeros where there is nothing */
} stk_write_target;

/* Finds out; stk_write_target_free ends it after a success. Nothing is opened or changed. */
STK_CHECKED stk_status stk_write_target_find(stk_write_target *place, const char *path, bool chosen,
                                             stk_error *err);
void stk_write_target_free(stk_write_target *place);

/* The error of a path of Stoker's own that is no regular file; `mode` says what it is. */
STK_CHECKED stk_status stk_write_target_refuse(const char *path, mode_t mode, stk_error *err);

#endif
