/*
 * member_path.h - the paths of members of tars and archives, which strangers wrote.
 *
 * No member is ever written to its path, but paths are shown, compared with tables and joined to
 * folders, so none may lead anywhere else. Threads: any, it keeps no state.
 */
#ifndef STK_STORAGE_TAR_MEMBER_PATH_H
#define STK_STORAGE_TAR_MEMBER_PATH_H

#include <stdbool.h>

#include "base/str.h"

/*
 * Writes the path without slashes in front, empty parts and dots. False: nothing is left, or it has
 * a part "..". *path may lack memory: ask stk_str_ok().
 */
bool stk_member_path_clean(const char *raw, stk_str *path);

/* Whether a part of the path begins with a dot; such members are not shown. */
bool stk_member_path_is_hidden(const char *path);

#endif
