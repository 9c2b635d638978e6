/*
 * store.h - inside the CUDA backend: compiled kernels, plans and tuning results on disk.
 *
 * A store holds small blobs under keys (texts of any length), in one folder for each GPU and set of
 * versions of driver and libraries. Files are written atomically, so several processes may share
 * it. A damaged blob counts as missing. Where nothing can be written, nothing is stored, which is
 * no error. Threads: safe.
 */
#ifndef STK_BACKEND_CUDA_DRIVER_STORE_H
#define STK_BACKEND_CUDA_DRIVER_STORE_H

#include <stddef.h>
#include <stdint.h>

#include <stoker/status.h>

typedef struct cuda_store cuda_store;

/*
 * `folder`: parent of all machines' folders; NULL: stoker/cuda in XDG_CACHE_HOME or ~/.cache.
 * `machine` names GPU, driver and versions. Without a folder the store opens and stays empty.
 */
STK_CHECKED stk_status stk_cuda_store_open(cuda_store **store, const char *folder,
                                           const char *machine, stk_error *err);
void stk_cuda_store_close(cuda_store *store);

/* *blob (the caller frees it with stk_mem_free) or NULL where there is none. */
void stk_cuda_store_get(cuda_store *store, const char *key, void **blob, size_t *bytes);
void stk_cuda_store_put(cuda_store *store, const char *key, const void *blob, size_t bytes);

/* Why nothing can be stored any more, in one sentence; NULL: it can. Not while threads put. */
const char *stk_cuda_store_trouble(const cuda_store *store);

/*
 * Removes blobs of all machines below a folder, the least recently used first, until the rest has
 * at most `most_bytes`. Closing a store that was written to does this.
 */
#define CUDA_STORE_MOST_BYTES ((uint64_t)256 << 20)
void stk_cuda_store_trim(const char *folder, uint64_t most_bytes);

#endif
