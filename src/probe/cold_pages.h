/*
 * cold_pages.h - makes this machine forget files that it keeps in memory, so that reading them
 * shows the storage.
 */
#ifndef STK_PROBE_COLD_PAGES_H
#define STK_PROBE_COLD_PAGES_H

#include <stddef.h>

#include <stoker/status.h>
#include <stoker/stop.h>

#include "storage/storage.h"

/*
 * Asks the kernel to drop what it holds of these objects, in their order and for `seconds` at most;
 * *count becomes how many of them it was asked for. Objects far away, and members of shards far
 * away, are nobody's here to forget: then all count. A file system may keep them all the same.
 */
STK_CHECKED stk_status stk_cold_pages_drop(stk_store *store, const char *const *paths,
                                           size_t *count, double seconds, const stk_stop *stop,
                                           stk_error *err);

#endif
