/*
 * exec_cache.h - executables of one state that wait for the next use.
 *
 * The folds of a run compile the same few networks, and so do validation and prediction. A GPU
 * takes a tenth of a second for each, and seconds where other programs need the GPU or the cores.
 * So an executable that is not needed any more goes into the cache instead of being freed, and who
 * needs the same network takes it from there. When memory runs out, the cache is emptied and
 * compiling is tried once more. A backend that compiles nothing (no counts()) makes an executable
 * in a moment: the cache keeps none of its, and their memory is free at once.
 *
 * An executable has one owner at a time: whoever took it, or the cache. Threads: the device's.
 */
#ifndef STK_ENGINE_EXEC_CACHE_H
#define STK_ENGINE_EXEC_CACHE_H

#include "engine/backend.h"

/* The head alone, all layers, and validation, the last two for one more size of pictures. */
#define STK_EXEC_CACHE_MOST 5

typedef struct stk_cached_exec {
    stk_compile_config config; /* what it was compiled with */
    stk_exec *exec;            /* owned */
} stk_cached_exec;

/* Zeros but for `backend` and `state` are an empty cache. */
typedef struct stk_exec_cache {
    const stk_backend *backend;                /* borrowed */
    stk_state *state;                          /* borrowed: what all executables compute with */
    stk_cached_exec kept[STK_EXEC_CACHE_MOST]; /* the oldest first */
    int count;
} stk_exec_cache;

/* Hands out the executable for `config`: one that was kept, or a new one. STK_ERR_STOPPED: the
 * device was halted while it compiled. */
STK_CHECKED stk_status stk_exec_cache_take(stk_exec_cache *cache, const stk_compile_config *config,
                                           stk_exec **exec, stk_error *err);

/* Takes `exec` back, which was taken for `config`; NULL is fine. All its results must have been
 * collected or fetched. Where the cache is full the oldest one is freed. */
void stk_exec_cache_keep(stk_exec_cache *cache, const stk_compile_config *config, stk_exec *exec);

/* Frees what is kept: before the state or a graph is freed. */
void stk_exec_cache_clear(stk_exec_cache *cache);

#endif
