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

#include "base/text/text_blocks.h"
#include "storage/storage.h"

/*
 * Lists the pictures in and below the location, at most `most` of them, by their paths below it. A
 * location without any is STK_ERR_DATA. The caller frees the paths, after an error too. `events`,
 * which may be NULL, receive a warning about skipped folders.
 */
STK_CHECKED stk_status stk_picture_walk(stk_store *store, size_t most, const stk_events *events,
                                        stk_texts *paths, stk_error *err);

#endif
