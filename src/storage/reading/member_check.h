/*
 * member_check.h - inside storage's reader: whether the bytes of a member are those that its index
 * or directory describes. Threads: any, it keeps no state.
 */
#ifndef STK_STORAGE_READING_MEMBER_CHECK_H
#define STK_STORAGE_READING_MEMBER_CHECK_H

#include <stdbool.h>

#include "storage/fetch.h"
#include "storage/tar/members.h"

/* How checking the bytes of a member went. */
typedef struct stk_member_check {
    const char *why; /* NULL: they are what was described */
    bool no_memory;  /* memory was short for unpacking them */
    size_t came;     /* bytes that the location brought */
} stk_member_check;

/* Compares the bytes with what is described; those of a zip's member are unpacked first. */
stk_member_check stk_member_check_bytes(const stk_extent *extent, stk_bytes *bytes);

/* Makes a check that failed the result of the attempt; `path` is the member's. */
void stk_member_blame(const stk_extent *extent, const stk_member_check *check, const char *path,
                      stk_fetch_result *result);

#endif
