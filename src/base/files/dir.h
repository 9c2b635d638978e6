/*
 * dir.h - making and listing folders, and asking what lies at a path.
 *
 * Errors and time-outs are those of file.h. Threads: safe.
 */
#ifndef STK_BASE_FILES_DIR_H
#define STK_BASE_FILES_DIR_H

#include <stdbool.h>
#include <stddef.h>

#include <stoker/status.h>

/* Makes a folder and its parents; one that exists is fine. */
STK_CHECKED stk_status stk_dir_make(const char *path, stk_error *err);

/* Makes one folder. *made is false, without an error, when the name was taken already. */
STK_CHECKED stk_status stk_dir_claim(const char *path, bool *made, stk_error *err);

typedef struct stk_dir_entry {
    char *name;  /* owned by the list */
    bool is_dir; /* links are followed */
} stk_dir_entry;

/* Starts zeroed; ends with stk_dir_list_free. */
typedef struct stk_dir_list {
    stk_dir_entry *entries; /* by the bytes of the name; hidden entries are left out */
    size_t count;
} stk_dir_list;

STK_CHECKED stk_status stk_dir_read(const char *path, stk_dir_list *list, stk_error *err);

/*
 * Lists a folder on the calling thread and calls each(user) after every entry, for callers that
 * watch a slow mount themselves. No time-out of disk.h applies. `each` may be NULL.
 */
STK_CHECKED stk_status stk_dir_read_watched(const char *path, stk_dir_list *list,
                                            void (*each)(void *user), void *user, stk_error *err);

/* For lists that come from elsewhere: adds an entry, whose name is copied; false without memory. */
bool stk_dir_list_add(stk_dir_list *list, size_t *capacity, const char *name, size_t length,
                      bool is_dir);
void stk_dir_list_sort(stk_dir_list *list);
void stk_dir_list_free(stk_dir_list *list);

/* Links are followed. False also where the disk does not answer. */
bool stk_path_is_dir(const char *path);
bool stk_path_is_file(const char *path);
bool stk_path_has_file(const char *folder, const char *name); /* false also without memory */

/*
 * For a caller that found nothing at `path`: STK_ERR_STORAGE where a call below that path hangs
 * (disk.h), since the file may well exist. Does not ask the disk.
 */
STK_CHECKED stk_status stk_path_check_answer(const char *path, stk_error *err);

#endif
