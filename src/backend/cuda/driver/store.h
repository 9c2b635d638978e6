/*
 * store.h - inside the CUDA backend: what is kept on disk between starts.
 *
 * Small blobs under keys (texts of any length), in one folder per GPU and versions of driver and
 * libraries. Written atomically, so that several processes may share it. A blob that is damaged
 * counts as one that is not there. Where nothing can be written, nothing is kept. Threads: safe.
 */
#ifndef STK_BACKEND_CUDA_DRIVER_STORE_H
#define STK_BACKEND_CUDA_DRIVER_STORE_H

#include <stddef.h>
#include <stdint.h>

#include <stoker/status.h>

typedef struct cuda_store cuda_store;

/*
 * `folder`: where all of it lies, NULL for ~/.cache/stoker/cuda (XDG_CACHE_HOME is heeded);
 * `machine` names GPU, driver and versions. Never fails for want of a folder: such a store is
 * empty.
 */
STK_CHECKED stk_status stk_cuda_store_open(cuda_store **store, const char *folder,
                                           const char *machine, stk_error *err);
void stk_cuda_store_close(cuda_store *store);

/* *blob (freed with stk_mem_free) or NULL when there is none. */
void stk_cuda_store_get(cuda_store *store, const char *key, void **blob, size_t *bytes);
void stk_cuda_store_put(cuda_store *store, const char *key, const void *blob, size_t bytes);

/* Why nothing can be kept any more, in one sentence; NULL: it can. Not while others put. */
const char *stk_cuda_store_trouble(const cuda_store *store);

/*
 * Removes the blobs of all machines below a folder, those first that were used longest ago, until
 * the rest has at most so many bytes. A store that was written to does this when it is closed.
 */
#define CUDA_STORE_MOST_BYTES ((uint64_t)256 << 20)
void stk_cuda_store_trim(const char *folder, uint64_t most_bytes);

#endif
