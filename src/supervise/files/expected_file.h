/*
 * expected_file.h - checks the file of --expect: it must exist, be new, and have rows.
 *
 * The state from before the run is compared with the file at the end. The _within variants are for
 * disks that may hang. Threads: one at a time.
 */
#ifndef STK_SUPERVISE_FILES_EXPECTED_FILE_H
#define STK_SUPERVISE_FILES_EXPECTED_FILE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include <stoker/status.h>

/* The file before the first command. */
typedef struct stk_expected_file {
    const char *path; /* borrowed; NULL: nothing is expected */
    bool there;       /* it existed; all fields below are valid */
    uint64_t device, inode;
    int64_t changed_ns; /* time of its last change, by the file system's clock */
    int64_t size;       /* bytes */
    char digest[65];    /* SHA-256 of both ends of the file: independent of wrong clocks */
} stk_expected_file;

/* Notes the file before the run. */
STK_CHECKED stk_status stk_expected_file_begin(stk_expected_file *expect, const char *path,
                                               stk_error *err);

/* The same; STK_ERR_STORAGE: no answer of the disk within within_s. */
STK_CHECKED stk_status stk_expected_file_begin_within(stk_expected_file *expect, const char *path,
                                                      double within_s, stk_error *err);

/* Checks the file after the run. STK_ERR_DATA: it is missing, unchanged, empty, or has only a
 * header. STK_ERR_MEMORY: unknown. */
STK_CHECKED stk_status stk_expected_file_check(const stk_expected_file *expect, int64_t *rows,
                                               stk_error *err);

/* The same; STK_ERR_DATA also if the disk did not answer. `full_path` is set if all is well. */
STK_CHECKED stk_status stk_expected_file_check_within(const stk_expected_file *expect,
                                                      double within_s, int64_t *rows,
                                                      char full_path[PATH_MAX], stk_error *err);

#endif
