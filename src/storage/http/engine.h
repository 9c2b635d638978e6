/*
 * engine.h - many HTTP transfers in flight on one thread, over libcurl.
 *
 * A stk_http_engine is a thread with connections that stay open between transfers.
 * stk_http_begin() hands a transfer over and never waits; the transfer's `done` callback runs on
 * the engine's thread. Transfers start in the order in which they were handed over. They wait while
 * as many are active as connections are allowed, or while the shared memory has no space for their
 * expected bytes. When to try again is the caller's decision.
 *
 * Built with STK_HAVE_S3 only. Threads: safe.
 */
#ifndef STK_STORAGE_HTTP_ENGINE_H
#define STK_STORAGE_HTTP_ENGINE_H

#include "storage/http/transfer.h"

typedef struct stk_http_engine stk_http_engine;

typedef struct stk_http_engine_config {
    stk_http_connect connect; /* copied; the same for all transfers of the engine */
    int max_connections;      /* the engine uses fewer where the process may open few files */
    int engines;              /* engines of the process that share those files; 0 means 1 */
    stk_http_memory *memory;  /* borrowed; several engines may share one; NULL: no limit */
} stk_http_engine_config;

STK_CHECKED stk_status stk_http_engine_open(stk_http_engine **engine,
                                            const stk_http_engine_config *config, stk_error *err);

/* No transfer may be in flight. NULL is fine. */
void stk_http_engine_close(stk_http_engine *engine);

/* Hands over a transfer, which belongs to the engine until its `done`. */
void stk_http_begin(stk_http_engine *engine, stk_http_transfer *transfer);

/*
 * Makes a transfer end soon, with STK_HTTP_CANCELLED unless it has ended already. The caller must
 * know that the transfer is still in use: that its `done` has not given it to another request.
 */
void stk_http_cancel(stk_http_transfer *transfer);

#endif
