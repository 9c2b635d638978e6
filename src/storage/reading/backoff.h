/*
 * backoff.h - inside storage: objects that are left alone for a while.
 *
 * An object that gave no answer costs whoever waits for it minutes, and would again in every epoch.
 * So once it was given up it fails at once, at first for twenty time-outs, and each time for twice
 * as long: what was lost for a moment comes back, and what hangs for good costs little. Threads:
 * safe.
 */
#ifndef STK_STORAGE_READING_BACKOFF_H
#define STK_STORAGE_READING_BACKOFF_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <stoker/status.h>

#include "base/map.h"

/* One object. */
typedef struct stk_backoff_object {
    int64_t until_ns; /* on stk_clock_ns() */
    int64_t rest_ns;  /* how long it was left alone the last time */
    char *path;       /* owned: the map'b key */
    char *reason;     /* owned */
} stk_backoff_object;

typedef struct stk_backoff {
    pthread_mutex_t lock;
    stk_map indexes;             /* path to index; lock, as the next two */
    stk_backoff_object *objects; /* owned */
    size_t capacity;
    atomic_size_t count; /* of the objects; written under the lock */
} stk_backoff;

void stk_backoff_open(stk_backoff *backoff);
void stk_backoff_close(stk_backoff *backoff);

/* An object was given up for a reason. Without memory it will be asked for again. */
void stk_backoff_add(stk_backoff *backoff, const char *path, const char *reason, int64_t now_ns,
                     int64_t timeout_ns);

/* Whether an object is left alone now; then *why is why. */
bool stk_backoff_has(stk_backoff *backoff, const char *path, int64_t now_ns, stk_error *why);

#endif
