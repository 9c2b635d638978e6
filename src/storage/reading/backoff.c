/* backoff.c - a map from paths to the time when they may be asked for again. */
#include "storage/reading/backoff.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"

#define REST_TIMEOUTS 20

void stk_shunned_open(stk_shunned *s) {
    pthread_mutex_init(&s->lock, NULL);
}

void stk_shunned_close(stk_shunned *s) {
    for (size_t i = 0; i < atomic_load(&s->count); i++) {
        stk_mem_free(s->objects[i].path);
        stk_mem_free(s->objects[i].reason);
    }
    stk_mem_free(s->objects);
    stk_map_free(&s->places);
    pthread_mutex_destroy(&s->lock);
}

/* Under the lock: an object that is new here; NULL without memory. */
static stk_shunned_object *add_new(stk_shunned *s, const char *path, const char *reason) {
    size_t count = atomic_load(&s->count);
    stk_shunned_object *grown =
        stk_mem_grow(s->objects, &s->capacity, count + 1, sizeof *s->objects);
    s->objects = grown != NULL ? grown : s->objects;
    char *path_copy = stk_mem_strdup(path);
    char *reason_copy = stk_mem_strdup(reason);
    bool added = false;
    if (grown == NULL || path_copy == NULL || reason_copy == NULL ||
        !stk_map_add(&s->places, path_copy, count, &added)) {
        stk_mem_free(path_copy);
        stk_mem_free(reason_copy);
        return NULL;
    }
    grown[count] = (stk_shunned_object){.path = path_copy, .reason = reason_copy};
    atomic_store(&s->count, count + 1);
    return &grown[count];
}

void stk_shunned_add(stk_shunned *s, const char *path, const char *reason, int64_t now_ns,
                     int64_t timeout_ns) {
    size_t index;
    pthread_mutex_lock(&s->lock);
    stk_shunned_object *object =
        stk_map_find(&s->places, path, &index) ? &s->objects[index] : add_new(s, path, reason);
    if (object != NULL) {
        object->rest_ns = object->rest_ns > 0 ? 2 * object->rest_ns : REST_TIMEOUTS * timeout_ns;
        object->until_ns = now_ns + object->rest_ns;
    }
    pthread_mutex_unlock(&s->lock);
}

bool stk_shunned_has(stk_shunned *s, const char *path, int64_t now_ns, stk_error *why) {
    size_t index;
    if (atomic_load_explicit(&s->count, memory_order_relaxed) == 0) {
        return false; /* the usual case costs nothing */
    }
    pthread_mutex_lock(&s->lock);
    bool has = stk_map_find(&s->places, path, &index) && now_ns < s->objects[index].until_ns;
    if (has) {
        why->status = STK_OK;
        (void)STK_FAIL(why, STK_ERR_STORAGE, "%s", s->objects[index].reason);
    }
    pthread_mutex_unlock(&s->lock);
    return has;
}
