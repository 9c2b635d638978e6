/* exec_cache.c - finding, keeping and freeing executables. */
#include "engine/exec_cache.h"

#include <string.h>

#include "base/error.h"

static bool is_same(const stk_compile_config *a, const stk_compile_config *b) {
    return a->graph == b->graph && a->batch == b->batch && a->precision == b->precision &&
           a->train == b->train && a->frozen == b->frozen && a->kept_stats == b->kept_stats &&
           a->ema == b->ema && a->plain == b->plain;
}

static stk_exec *remove_at(stk_exec_cache *cache, int index) {
    stk_exec *exec = cache->kept[index].exec;
    cache->count--;
    memmove(&cache->kept[index], &cache->kept[index + 1],
            (size_t)(cache->count - index) * sizeof cache->kept[0]);
    return exec;
}

stk_status stk_exec_cache_take(stk_exec_cache *cache, const stk_compile_config *config,
                               stk_exec **exec, stk_error *err) {
    for (int i = 0; i < cache->count; i++) {
        if (is_same(&cache->kept[i].config, config)) {
            *exec = remove_at(cache, i);
            return STK_OK;
        }
    }
    stk_status status = cache->backend->compile(exec, cache->state, config, err);
    if (status == STK_ERR_MEMORY && cache->count > 0) {
        stk_exec_cache_clear(cache);
        stk_error_clear(err);
        status = cache->backend->compile(exec, cache->state, config, err);
    }
    return status;
}

void stk_exec_cache_keep(stk_exec_cache *cache, const stk_compile_config *config, stk_exec *exec) {
    if (exec == NULL || cache->backend->counts == NULL) {
        cache->backend->exec_free(exec);
        return;
    }
    if (cache->count == STK_EXEC_CACHE_MOST) {
        cache->backend->exec_free(remove_at(cache, 0));
    }
    cache->kept[cache->count++] = (stk_cached_exec){*config, exec};
}

void stk_exec_cache_clear(stk_exec_cache *cache) {
    while (cache->count > 0) {
        cache->backend->exec_free(remove_at(cache, 0));
    }
}
