/* expected_file.h - whether a file that was expected of a command is there, new, and has rows. */
#ifndef STK_SUPERVISE_FILES_EXPECTED_FILE_H
#define STK_SUPERVISE_FILES_EXPECTED_FILE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include <stoker/status.h>

/* How the file was before anything ran. */
typedef struct stk_expected_file {
    const char *path; /* borrowed; NULL: nothing is expected */
    bool there;
    uint64_t device, inode;
    int64_t changed_ns; /* wall clock, of the file system */
    int64_t size;
    char digest[65]; /* of its contents: a clock that is wrong must not matter */
} stk_expected_file;

STK_CHECKED stk_status stk_expected_file_begin(stk_expected_file *expect, const char *path,
                                               stk_error *err);

/* The same for a disk that may hang: STK_ERR_STORAGE where it does not answer within a time. */
STK_CHECKED stk_status stk_expected_file_begin_within(stk_expected_file *expect, const char *path,
                                                      double within_s, stk_error *err);

/* STK_ERR_DATA with a sentence: it is missing, as it was before, empty, or has a header alone.
 * STK_ERR_MEMORY: nobody knows. */
STK_CHECKED stk_status stk_expected_file_check(const stk_expected_file *expect, int64_t *rows,
                                               stk_error *err);

/* The same for a disk that may hang. `full_path` is that of a file that is as it should be. */
STK_CHECKED stk_status stk_expected_file_check_within(const stk_expected_file *expect,
                                                      double within_s, int64_t *rows,
                                                      char full_path[PATH_MAX], stk_error *err);

#endif
