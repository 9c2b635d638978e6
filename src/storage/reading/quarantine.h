/*
 * quarantine.h - inside storage: objects that are not asked for again for a while.
 *
 * An object that gives no answer costs its reader minutes, and would do so in every epoch. Once
 * such an object was given up, reads of it fail at once: for twenty time-outs the first time, and
 * twice as long each further time. An object that was unreachable for a moment comes back, and one
 * that hangs for good costs little. Threads: all calls are safe from any thread.
 */
#ifndef STK_STORAGE_READING_QUARANTINE_H
#define STK_STORAGE_READING_QUARANTINE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <stoker/status.h>

#include "base/map.h"

/* One object of the list. */
typedef struct stk_quarantined {
    int64_t until_ns; /* reads fail until then, by stk_clock_ns() */
    int64_t rest_ns;  /* duration of the latest quarantine */
    char *path;       /* owned: the map's key */
    char *reason;     /* owned: the error of reads meanwhile */
} stk_quarantined;

typedef struct stk_quarantine {
    pthread_mutex_t lock;
    stk_map indexes;          /* path to index in `objects`; lock */
    stk_quarantined *objects; /* owned; lock */
    size_t capacity;          /* lock */
    atomic_size_t count;      /* of the objects; written under the lock */
} stk_quarantine;

void stk_quarantine_open(stk_quarantine *quarantine);
void stk_quarantine_close(stk_quarantine *quarantine);

/* Adds an object that was given up, or doubles its time. Without memory nothing is added. */
void stk_quarantine_add(stk_quarantine *quarantine, const char *path, const char *reason,
                        int64_t now_ns, int64_t timeout_ns);

/* Whether reads of an object are to fail now; *why is then their error. */
bool stk_quarantine_has(stk_quarantine *quarantine, const char *path, int64_t now_ns,
                        stk_error *why);

#endif
