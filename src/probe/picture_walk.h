/*
 * picture_walk.h - lists the pictures of any location, without labels.
 *
 * A measurement of storage needs objects that are like those of training and nothing else: no
 * labels, no layout. Folders that Stoker itself wrote are skipped. Threads: one at a time.
 */
#ifndef STK_PROBE_PICTURE_WALK_H
#define STK_PROBE_PICTURE_WALK_H

#include <stddef.h>

#include <stoker/status.h>

#include "storage/storage.h"

typedef struct stk_picture_paths {
    char **items; /* owned array of owned texts: paths below the location */
    size_t count;
    size_t capacity;
} stk_picture_paths;

/*
 * Lists the pictures in and below the location, at most `most` of them. A location without any is
 * STK_ERR_DATA. What was listed is freed with stk_picture_paths_free, after an error too. `events`,
 * which may be NULL, receive a warning about skipped folders.
 */
STK_CHECKED stk_status stk_picture_walk(stk_store *store, size_t most, const stk_events *events,
                                        stk_picture_paths *paths, stk_error *err);
void stk_picture_paths_free(stk_picture_paths *paths);

#endif
