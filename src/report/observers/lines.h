/*
 * lines.h - whole lines appended to a file, so that a reader who follows it sees no half line.
 *
 * Each line is one write(2). When a write fails midway (a full disk), the file is cut back; where
 * that is impossible, the next write begins with a line break. Threads: one at a time.
 */
#ifndef STK_REPORT_OBSERVERS_LINES_H
#define STK_REPORT_OBSERVERS_LINES_H

#include <stdbool.h>
#include <stddef.h>

#include <stoker/status.h>

typedef struct stk_lines {
    int fd;           /* borrowed; -1: nothing can be written */
    const char *name; /* borrowed: what errors call the file */
    bool torn;        /* the file ends inside a line */
} stk_lines;

/* Opens a file of Stoker's own for appending, as stk_file_open_own; it is made when it is missing.
 */
STK_CHECKED stk_status stk_lines_open(const char *path, int *fd, stk_error *err);

/* The same for a file that only its owner may read. */
STK_CHECKED stk_status stk_lines_open_private(const char *path, int *fd, stk_error *err);

/*
 * Appends text, which ends with a line break. A caller that stops once `torn` is set may also
 * append bytes that are no lines.
 */
STK_CHECKED stk_status stk_lines_write(stk_lines *lines, const char *text, size_t length,
                                       stk_error *err);

#endif
