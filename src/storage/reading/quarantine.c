/* quarantine.c - a map from paths to the time when they may be asked for again. */
#include "storage/reading/quarantine.h"

#include "base/error.h"
#include "base/mem.h"

#define REST_TIMEOUTS 20

void stk_quarantine_open(stk_quarantine *q) {
    pthread_mutex_init(&q->lock, NULL);
}

void stk_quarantine_close(stk_quarantine *q) {
    for (size_t i = 0; i < atomic_load(&q->count); i++) {
        stk_mem_free(q->objects[i].path);
        stk_mem_free(q->objects[i].reason);
    }
    stk_mem_free(q->objects);
    stk_map_free(&q->indexes);
    pthread_mutex_destroy(&q->lock);
}

/* Under the lock: an object that is new here; NULL without memory. */
static stk_quarantined *add_new(stk_quarantine *q, const char *path, const char *reason) {
    size_t count = atomic_load(&q->count);
    char *path_copy = stk_mem_strdup(path);
    char *reason_copy = stk_mem_strdup(reason);
    bool added = false;
    if (path_copy == NULL || reason_copy == NULL ||
        !STK_RESERVE(q->objects, q->capacity, count + 1) ||
        !stk_map_add(&q->indexes, path_copy, count, &added)) {
        stk_mem_free(path_copy);
        stk_mem_free(reason_copy);
        return NULL;
    }
    q->objects[count] = (stk_quarantined){.path = path_copy, .reason = reason_copy};
    atomic_store(&q->count, count + 1);
    return &q->objects[count];
}

void stk_quarantine_add(stk_quarantine *q, const char *path, const char *reason, int64_t now_ns,
                        int64_t timeout_ns) {
    size_t index;
    pthread_mutex_lock(&q->lock);
    stk_quarantined *object =
        stk_map_find(&q->indexes, path, &index) ? &q->objects[index] : add_new(q, path, reason);
    if (object != NULL) {
        object->rest_ns = object->rest_ns > 0 ? 2 * object->rest_ns : REST_TIMEOUTS * timeout_ns;
        object->until_ns = now_ns + object->rest_ns;
    }
    pthread_mutex_unlock(&q->lock);
}

bool stk_quarantine_has(stk_quarantine *q, const char *path, int64_t now_ns, stk_error *why) {
    size_t index;
    if (atomic_load_explicit(&q->count, memory_order_relaxed) == 0) {
        return false; /* the usual case costs nothing */
    }
    pthread_mutex_lock(&q->lock);
    bool has = stk_map_find(&q->indexes, path, &index) && now_ns < q->objects[index].until_ns;
    if (has) {
        why->status = STK_OK;
        (void)STK_FAIL(why, STK_ERR_STORAGE, "%s", q->objects[index].reason);
    }
    pthread_mutex_unlock(&q->lock);
    return has;
}
