/*
 * store.h - inside storage: opening the cache of a store, and a store on a test's own source.
 *
 * stk_store_open() (storage.h) chooses the source, opens the cache and looks for shards. The parts
 * that other files or tests call are here. Threads: one, as for opening.
 */
#ifndef STK_STORAGE_STORE_STORE_H
#define STK_STORAGE_STORE_STORE_H

#include "storage/reading/store_state.h"

/*
 * A store on a source's location that is open already, for tests: no shards and no cache. It takes
 * the location and closes it, also when it fails.
 */
STK_CHECKED stk_status stk_store_open_on(stk_store **store, const stk_storage_source *source,
                                         void *location, const stk_storage_options *options,
                                         stk_error *err);

/*
 * Opens the cache that the options ask for, if any. `kept` is the folder for files that outlive a
 * run, or NULL. Closing does not wait for reads of the cache that hang.
 */
STK_CHECKED stk_status stk_store_open_cache(stk_store *store, const char *kept,
                                            const stk_events *events, stk_error *err);
void stk_store_close_cache(stk_store *store);

#endif
