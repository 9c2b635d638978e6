/* quarantine.c - a map from paths to the time when they may be asked for again. */
#include "storage/reading/quarantine.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"

#define REST_TIMEOUTS 20

void stk_quarantine_open(stk_quarantine *b) {
    pthread_mutex_init(&b->lock, NULL);
}

void stk_quarantine_close(stk_quarantine *b) {
    for (size_t i = 0; i < atomic_load(&b->count); i++) {
        stk_mem_free(b->objects[i].path);
        stk_mem_free(b->objects[i].reason);
    }
    stk_mem_free(b->objects);
    stk_map_free(&b->indexes);
    pthread_mutex_destroy(&b->lock);
}

/* Under the lock: an object that is new here; NULL without memory. */
static stk_quarantined *add_new(stk_quarantine *b, const char *path, const char *reason) {
    size_t count = atomic_load(&b->count);
    stk_quarantined *grown = stk_mem_grow(b->objects, &b->capacity, count + 1, sizeof *b->objects);
    b->objects = grown != NULL ? grown : b->objects;
    char *path_copy = stk_mem_strdup(path);
    char *reason_copy = stk_mem_strdup(reason);
    bool added = false;
    if (grown == NULL || path_copy == NULL || reason_copy == NULL ||
        !stk_map_add(&b->indexes, path_copy, count, &added)) {
        stk_mem_free(path_copy);
        stk_mem_free(reason_copy);
        return NULL;
    }
    grown[count] = (stk_quarantined){.path = path_copy, .reason = reason_copy};
    atomic_store(&b->count, count + 1);
    return &grown[count];
}

void stk_quarantine_add(stk_quarantine *b, const char *path, const char *reason, int64_t now_ns,
                        int64_t timeout_ns) {
    size_t index;
    pthread_mutex_lock(&b->lock);
    stk_quarantined *object =
        stk_map_find(&b->indexes, path, &index) ? &b->objects[index] : add_new(b, path, reason);
    if (object != NULL) {
        object->rest_ns = object->rest_ns > 0 ? 2 * object->rest_ns : REST_TIMEOUTS * timeout_ns;
        object->until_ns = now_ns + object->rest_ns;
    }
    pthread_mutex_unlock(&b->lock);
}

bool stk_quarantine_has(stk_quarantine *b, const char *path, int64_t now_ns, stk_error *why) {
    size_t index;
    if (atomic_load_explicit(&b->count, memory_order_relaxed) == 0) {
        return false; /* the usual case costs nothing */
    }
    pthread_mutex_lock(&b->lock);
    bool has = stk_map_find(&b->indexes, path, &index) && now_ns < b->objects[index].until_ns;
    if (has) {
        why->status = STK_OK;
        (void)STK_FAIL(why, STK_ERR_STORAGE, "%s", b->objects[index].reason);
    }
    pthread_mutex_unlock(&b->lock);
    return has;
}
