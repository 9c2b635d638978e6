/* expect.h - whether a file that was expected of a command is there, new, and has rows. */
#ifndef STK_SUPERVISE_EXPECT_H
#define STK_SUPERVISE_EXPECT_H

#include <stdbool.h>
#include <stdint.h>

#include <stoker/status.h>

/* How the file was before anything ran. */
typedef struct stk_expect {
    const char *path; /* borrowed; NULL: nothing is expected */
    bool there;
    uint64_t device, inode;
    int64_t changed_ns; /* wall clock, of the file system */
    int64_t size;
    char digest[65]; /* of its contents: a clock that is wrong must not matter */
} stk_expect;

void stk_expect_begin(stk_expect *expect, const char *path);

/* STK_ERR_DATA with a sentence: it is missing, as it was before, empty, or has a header alone. */
STK_CHECKED stk_status stk_expect_check(const stk_expect *expect, int64_t *rows, stk_error *err);

#endif
