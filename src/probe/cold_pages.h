/*
 * cold_pages.h - drops files from the page cache, so that reading them measures the storage.
 * Threads: safe.
 */
#ifndef STK_PROBE_COLD_PAGES_H
#define STK_PROBE_COLD_PAGES_H

#include <stddef.h>

#include <stoker/status.h>
#include <stoker/stop.h>

#include "storage/storage.h"

/*
 * Asks the kernel to drop these objects from the page cache, in order and for `seconds` at most,
 * but the first sixteen in any case. *count becomes the number of objects that the kernel was asked
 * to drop. Remote objects are not in the page cache, so all of them count. A file system may keep
 * pages all the same.
 */
STK_CHECKED stk_status stk_cold_pages_drop(stk_store *store, const char *const *paths,
                                           size_t *count, double seconds, const stk_stop *stop,
                                           stk_error *err);

#endif
