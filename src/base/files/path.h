/*
 * path.h - paths as text. Nothing here asks the file system. Threads: safe.
 */
#ifndef STK_BASE_FILES_PATH_H
#define STK_BASE_FILES_PATH_H

#include <stdbool.h>

/* "a/b" from "a" and "b"; an absolute b stands alone. NULL without memory; stk_mem_free. */
char *stk_path_join(const char *a, const char *b);

/* A copy without slashes at its end; "/" stays. NULL without memory; stk_mem_free. */
char *stk_path_trim(const char *path);

/* The file name: what follows the last slash. Points into `path`. */
const char *stk_path_base(const char *path);

/*
 * Whether a text that somebody else has written, such as an id, can name a file or a folder: it is
 * not empty or hidden, has no slash, backslash or control character, and 200 bytes at most.
 */
bool stk_path_is_name(const char *text);

/*
 * The user's cache folder for Stoker: $XDG_CACHE_HOME/stoker or ~/.cache/stoker. It need not exist.
 * NULL where neither variable holds an absolute path, and without memory; stk_mem_free.
 */
char *stk_path_user_cache(void);

#endif
