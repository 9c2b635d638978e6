/*
 * lines.h - whole lines at the end of a file, so that a reader who follows it sees no half line.
 *
 * Each line is one write(2). A write that fails midway (a full disk) is taken back where the file
 * allows it; where it does not, the next line starts on a line of its own. Threads: one at a time.
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
 * Appends text, which ends with a line break. Bytes that are no lines can be appended too, by
 * whoever writes nothing more to a file that is torn.
 */
STK_CHECKED stk_status stk_lines_write(stk_lines *lines, const char *text, size_t length,
                                       stk_error *err);

#endif
