/*
 * scripted_place.h - a place whose objects do what their names say, for tests of reading.
 *
 * An object is called "name?step,step": its first attempt does the first step, the second one the
 * next, and so on; the last step is repeated. A step is a letter and, with some, milliseconds:
 *
 *     o30  answers after 30 ms        h    hangs until it is cancelled
 *     a30  AGAIN after 30 ms          u    the same, and never begins: it waits for its turn
 *     d    DAMAGED                    f30  does not hear that it is cancelled for 30 ms more, and
 *     n    NEVER                           then answers as if nothing was
 *     l    LOST                       s300 answers after 300 ms, with signs of life until then
 *     w30  AGAIN, and asks not to     c    ends as if it had been cancelled, which it was not
 *          be tried again for 30 ms m    NO_MEMORY
 *
 * The bytes of an object are its name or, where the place has a folder, those of the file of that
 * name there. One thread answers everything.
 */
#ifndef STK_TESTS_SCRIPTED_PLACE_H
#define STK_TESTS_SCRIPTED_PLACE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"
#include "storage/store/store.h"

#define SCRIPTED_OBJECTS 256
#define SCRIPTED_MS 1000000LL
#define SCRIPTED_TICK_NS (20 * SCRIPTED_MS)

/* What was seen of an object. */
typedef struct scripted_object {
    char path[80];
    int attempts;
    int now;  /* attempts that have not ended */
    int most; /* of these at a time */
    int cancelled;
} scripted_object;

/* An attempt that has not been answered. */
typedef struct scripted_attempt {
    stk_fetch *fetch;
    scripted_object *object;
    char step;
    int64_t ms;
    int64_t due_ns; /* when it is answered; INT64_MAX: never */
    bool cancelled;
    struct scripted_attempt *next;
} scripted_attempt;

typedef struct scripted_place {
    const char *folder; /* borrowed, or NULL */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t thread;
    bool quit;
    scripted_attempt *first;
    scripted_object objects[SCRIPTED_OBJECTS];
    int object_count;
    bool away;    /* all attempts that are begun end with AGAIN; lock */
    int attempts; /* begun, ever */
    int cancels;
} scripted_place;

/* Under the lock. */
static inline scripted_object *scripted_find(scripted_place *p, const char *path) {
    for (int i = 0; i < p->object_count; i++) {
        if (strcmp(p->objects[i].path, path) == 0) {
            return &p->objects[i];
        }
    }
    size_t length = strlen(path);
    if (p->object_count == SCRIPTED_OBJECTS || length >= sizeof p->objects[0].path) {
        abort();
    }
    scripted_object *object = &p->objects[p->object_count++];
    memcpy(object->path, path, length + 1);
    return object;
}

static inline void scripted_read_step(const scripted_object *object, scripted_attempt *a) {
    const char *step = strchr(object->path, '?');
    step = step != NULL ? step + 1 : "o";
    for (int i = 0; i < object->attempts && strchr(step, ',') != NULL; i++) {
        step = strchr(step, ',') + 1;
    }
    a->step = step[0];
    a->ms = strtol(step + 1, NULL, 10);
    a->due_ns = stk_clock_ns() + a->ms * SCRIPTED_MS;
    if (strchr("huf", a->step) != NULL) {
        a->due_ns = INT64_MAX;
    }
}

/* Nobody gets an answer from now on, or everybody does again. */
static inline void scripted_set_away(scripted_place *p, bool away) {
    pthread_mutex_lock(&p->lock);
    p->away = away;
    pthread_mutex_unlock(&p->lock);
}

static inline bool scripted_begin(void *place, stk_fetch *fetch) {
    scripted_place *p = place;
    scripted_attempt *a = stk_mem_new(1, sizeof *a);
    if (a == NULL) {
        return false;
    }
    pthread_mutex_lock(&p->lock);
    a->fetch = fetch;
    a->object = scripted_find(p, fetch->path);
    scripted_read_step(a->object, a);
    if (p->away) {
        a->step = 'a';
        a->due_ns = stk_clock_ns() + SCRIPTED_MS;
    }
    p->attempts++;
    a->object->attempts++;
    a->object->now++;
    a->object->most = a->object->now > a->object->most ? a->object->now : a->object->most;
    if (a->step != 'u') {
        atomic_store(&fetch->started_ns, stk_clock_ns());
    }
    fetch->serving = a;
    a->next = p->first;
    p->first = a;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
    return true;
}

static inline void scripted_cancel(void *place, stk_fetch *fetch) {
    scripted_place *p = place;
    pthread_mutex_lock(&p->lock);
    scripted_attempt *a = fetch->serving;
    if (a != NULL) {
        p->cancels++;
        a->object->cancelled++;
        a->cancelled = a->step != 'f';
        a->due_ns = stk_clock_ns() + (a->cancelled ? 0 : a->ms * SCRIPTED_MS);
        pthread_cond_broadcast(&p->changed);
    }
    pthread_mutex_unlock(&p->lock);
}

/* The bytes of the file that is meant; false: there is none. */
static inline bool scripted_read_file(const char *folder, const char *path, stk_bytes *bytes) {
    char name[512];
    snprintf(name, sizeof name, "%s/%.*s", folder, (int)strcspn(path, "?"), path);
    return stk_file_read_into(name, 0, bytes, NULL) == STK_OK;
}

/* Fills in what an attempt comes to; it is nobody else's any more. */
static inline void scripted_answer(const scripted_place *p, const scripted_attempt *a) {
    stk_fetch *fetch = a->fetch;
    size_t length = strcspn(a->object->path, "?");
    switch (a->cancelled ? 'c' : a->step) {
    case 'c':
        fetch->result.verdict = STK_FETCH_CANCELLED;
        return;
    case 'a':
    case 'w':
        fetch->result.verdict = STK_FETCH_AGAIN;
        fetch->result.wait_s = a->step == 'w' ? (double)a->ms * 1e-3 : 0;
        break;
    case 'm':
        fetch->result.verdict = STK_FETCH_NO_MEMORY;
        break;
    case 'd':
        fetch->result.verdict = STK_FETCH_DAMAGED;
        break;
    case 'n':
        fetch->result.verdict = STK_FETCH_NEVER;
        break;
    case 'l':
        fetch->result.verdict = STK_FETCH_LOST;
        break;
    default:
        if (p->folder != NULL) {
            bool read = scripted_read_file(p->folder, a->object->path, &fetch->bytes);
            (void)stk_fetch_fail(&fetch->result, read ? STK_FETCH_OK : STK_FETCH_NEVER,
                                 STK_ERR_STORAGE, "it is not there");
            return;
        }
        if (stk_bytes_reserve(&fetch->bytes, length + 1)) {
            memcpy(fetch->bytes.data, a->object->path, length);
            fetch->bytes.data[length] = '\0';
            fetch->bytes.size = length;
            fetch->result.verdict = STK_FETCH_OK;
            return;
        }
        (void)stk_fetch_fail(&fetch->result, STK_FETCH_NEVER, STK_ERR_MEMORY, "out of memory");
        return;
    }
    (void)stk_fetch_fail(&fetch->result, fetch->result.verdict, STK_ERR_STORAGE,
                         "%.*s failed with '%c'", (int)length, a->object->path, a->step);
}

/* Under the lock: an attempt that is due, taken out of the list; NULL: none is. */
static inline scripted_attempt *scripted_take(scripted_place *p) {
    int64_t now = stk_clock_ns();
    for (scripted_attempt **at = &p->first; *at != NULL; at = &(*at)->next) {
        scripted_attempt *a = *at;
        if (a->due_ns <= now) {
            *at = a->next;
            a->fetch->serving = NULL;
            a->object->now--;
            return a;
        }
        if (a->step == 's') {
            atomic_store(&a->fetch->heard_ns, now);
        }
    }
    return NULL;
}

static inline void *scripted_loop(void *argument) {
    scripted_place *p = argument;
    pthread_mutex_lock(&p->lock);
    while (!p->quit) {
        scripted_attempt *a = scripted_take(p);
        if (a != NULL) {
            pthread_mutex_unlock(&p->lock);
            scripted_answer(p, a);
            a->fetch->done(a->fetch);
            stk_mem_free(a);
            pthread_mutex_lock(&p->lock);
            continue;
        }
        int64_t until = stk_clock_ns() + SCRIPTED_TICK_NS;
        for (a = p->first; a != NULL; a = a->next) {
            until = a->due_ns < until ? a->due_ns : until;
        }
        struct timespec at = {.tv_sec = until / 1000000000, .tv_nsec = until % 1000000000};
        pthread_cond_timedwait(&p->changed, &p->lock, &at);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

static inline scripted_place *scripted_new(void) {
    scripted_place *p = calloc(1, sizeof *p);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    if (p == NULL) {
        abort();
    }
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    if (pthread_create(&p->thread, NULL, scripted_loop, p) != 0) {
        abort();
    }
    return p;
}

/* The store's. Whatever was begun must have ended. */
static inline void scripted_close(void *place) {
    scripted_place *p = place;
    pthread_mutex_lock(&p->lock);
    p->quit = true;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
    pthread_join(p->thread, NULL);
    if (p->first != NULL) {
        printf("  the place was closed while %s was under way\n", p->first->object->path);
        abort();
    }
    pthread_cond_destroy(&p->changed);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

static inline int scripted_threads(const void *place) {
    (void)place;
    return 1;
}

static const stk_storage_source scripted_source __attribute__((unused)) = {
    .name = "scripted",
    .close = scripted_close,
    .begin = scripted_begin,
    .cancel = scripted_cancel,
    .threads = scripted_threads,
};

/* What was seen of an object so far. */
static inline scripted_object scripted_seen(scripted_place *p, const char *path) {
    pthread_mutex_lock(&p->lock);
    scripted_object object = *scripted_find(p, path);
    pthread_mutex_unlock(&p->lock);
    return object;
}

#endif
