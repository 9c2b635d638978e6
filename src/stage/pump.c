/*
 * pump.c - a ring of pictures between the reader, the threads that recode, and the caller.
 *
 * Picture i has place i modulo the ring's size. A place goes from FREE to COMING (the reader has
 * it), ARRIVED, IN_WORK (a thread has it), DONE and, once the caller has released it, to FREE. So
 * whatever happens first, pictures leave in order.
 */
#include "stage/pump.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/numbers/checksum.h"
#include "base/threads/thread.h"
#include "storage/reading/reader.h"

#define NS_PER_S 1000000000

/* Reads in flight and pictures that wait; object stores want hundreds. */
#define PLACES 512

/* How many may be under way before anybody knows how large pictures are. */
#define FIRST_READS 8

/* A thread that has had no bytes for so long, while reads wait, asks for more reads at a time. */
#define PATIENCE_NS 2000000

typedef enum place_state { FREE, COMING, ARRIVED, IN_WORK, DONE } place_state;

typedef struct place {
    stk_read read; /* first, so that a read leads to it */
    place_state state;
    size_t held;     /* bytes that count against the limit, once it has arrived */
    size_t expected; /* the same while it is coming */
    stk_recoded recoded;
    stk_pumped pumped;
    stk_error error; /* why it cannot be used */
} place;

struct stk_pump {
    stk_pump_config config;
    stk_reader *reader;
    place *places; /* owned: PLACES of them */
    pthread_mutex_t lock;
    pthread_cond_t work;   /* something has arrived */
    pthread_cond_t ready;  /* something is done */
    pthread_mutex_t heavy; /* held while a picture is decoded that needs much memory */
    pthread_t *threads;    /* owned */
    int started;
    atomic_bool cancelled; /* what is being decoded is not wanted any more */
    bool quit;             /* lock, as all below */
    size_t head;           /* the next one to hand over */
    size_t tail;           /* the next one to read */
    size_t coming;         /* reads in flight */
    size_t bytes;          /* held and expected */
    size_t unsized;        /* reads in flight of which nobody knows what to expect */
    double mean;           /* bytes of a picture that was read; 0: none has come */
    stk_error failure;     /* one that ends everything; status OK: none */
};

static place *place_of(stk_pump *p, size_t item) {
    return &p->places[item % PLACES];
}

static void fail(stk_pump *p, const stk_error *why) {
    if (p->failure.status == STK_OK) {
        p->failure = *why;
        pthread_cond_broadcast(&p->work);
        pthread_cond_broadcast(&p->ready);
    }
}

/* ---- reading ---- */

static bool has_room(const stk_pump *p) {
    size_t under_way = p->tail - p->head;
    if (p->tail == p->config.count || under_way == PLACES) {
        return false;
    }
    double bytes = (double)p->bytes + (double)(p->unsized + 1) * p->mean;
    return under_way == 0 ||
           (p->mean > 0 ? bytes < (double)STK_PUMP_BYTES : under_way < FIRST_READS);
}

/* Begins as many reads as there is room for. Lock held. */
static void issue(stk_pump *p) {
    while (!p->quit && p->failure.status == STK_OK && has_room(p)) {
        place *at = place_of(p, p->tail);
        const char *path = p->config.paths[p->tail];
        size_t known = (size_t)stk_store_size(p->config.store, path);
        at->read.path = path;
        at->state = COMING;
        at->expected = known > 0 ? known : (size_t)p->mean;
        p->bytes += at->expected;
        p->unsized += at->expected == 0;
        p->coming++;
        p->tail++;
        if (!stk_reader_submit(p->reader, &at->read)) {
            stk_error err = {0};
            (void)STK_FAIL_MEMORY(&err, path);
            p->coming--;
            fail(p, &err);
        }
    }
}

/* Lock held. The picture cannot be used, which is no reason to stop. */
static void give_up(stk_pump *p, place *at, const stk_error *why) {
    at->error = *why;
    at->pumped.reason = at->error.message;
    at->state = DONE;
    pthread_cond_signal(&p->ready);
}

/* Whether an error is about one picture, and not about memory or the place. */
static bool is_about_picture(const stk_error *err) {
    return err->status == STK_ERR_DATA || err->status == STK_ERR_STORAGE;
}

/* The reader's callback, on any thread. */
static void read_done(void *user, stk_read *read) {
    stk_pump *p = user;
    place *at = (place *)(void *)read;
    size_t size = read->error.status == STK_OK ? read->bytes.size : 0;
    pthread_mutex_lock(&p->lock);
    p->coming--;
    p->unsized -= at->expected == 0;
    p->bytes = p->bytes - at->expected + size;
    at->held = size;
    if (read->error.status == STK_OK) {
        p->mean += p->mean == 0 ? (double)size + 1 : ((double)size - p->mean) * 0.05;
        at->state = ARRIVED;
        pthread_cond_signal(&p->work);
    } else if (read->lost || !is_about_picture(&read->error)) {
        fail(p, &read->error);
    } else {
        give_up(p, at, &read->error);
    }
    pthread_mutex_unlock(&p->lock);
}

/* ---- recoding ---- */

static stk_status enter_heavy(void *user, uint64_t bytes, stk_error *err) {
    stk_pump *p = user;
    (void)bytes;
    (void)err;
    pthread_mutex_lock(&p->heavy);
    return STK_OK;
}

static void leave_heavy(void *user) {
    stk_pump *p = user;
    pthread_mutex_unlock(&p->heavy);
}

/* The first picture in order that has arrived, or NULL. Lock held. */
static place *find_work(stk_pump *p) {
    for (size_t item = p->head; item < p->tail; item++) {
        if (place_of(p, item)->state == ARRIVED) {
            return place_of(p, item);
        }
    }
    return NULL;
}

/* Lock held; it is left meanwhile. */
static void wait_for_work(stk_pump *p) {
    int64_t end = stk_clock_ns() + PATIENCE_NS;
    struct timespec at = {.tv_sec = end / NS_PER_S, .tv_nsec = end % NS_PER_S};
    if (p->coming == 0) {
        pthread_cond_wait(&p->work, &p->lock);
    } else if (pthread_cond_timedwait(&p->work, &p->lock, &at) == ETIMEDOUT && p->coming > 0) {
        stk_reader_hurry(p->reader);
    }
}

/* Without the lock: the place belongs to this thread. */
static stk_status recode(const stk_pump *p, place *at, stk_image_scratch *scratch, stk_error *err) {
    const stk_bytes *bytes = &at->read.bytes;
    stk_status status =
        stk_recode_picture(scratch, &p->config.recode, bytes->data, bytes->size, &at->recoded, err);
    bool recoded = at->recoded.bytes != NULL;
    at->pumped = (stk_pumped){.bytes = recoded ? at->recoded.bytes : bytes->data,
                              .size = recoded ? at->recoded.size : bytes->size,
                              .extension = at->recoded.extension,
                              .source_bytes = bytes->size,
                              .recoded = recoded};
    if (status == STK_OK) {
        at->pumped.checksum = stk_checksum(at->pumped.bytes, at->pumped.size);
    }
    if (recoded) {
        stk_bytes_free(&at->read.bytes);
    }
    return status;
}

/* Lock held; it is left while the picture is in work. */
static void work_on(stk_pump *p, place *at, stk_image_scratch *scratch) {
    stk_error err = {0};
    at->state = IN_WORK;
    pthread_mutex_unlock(&p->lock);
    stk_status status = recode(p, at, scratch, &err);
    pthread_mutex_lock(&p->lock);
    p->bytes = p->bytes - at->held + at->pumped.size;
    at->held = at->pumped.size;
    if (status == STK_OK) {
        at->state = DONE;
        pthread_cond_signal(&p->ready);
    } else if (is_about_picture(&err)) {
        give_up(p, at, &err);
    } else {
        fail(p, &err);
    }
}

static void *work(void *argument) {
    stk_pump *p = argument;
    stk_heavy_gate gate = {.user = p, .enter = enter_heavy, .leave = leave_heavy};
    stk_image_scratch *scratch = NULL;
    stk_error err = {0};
    stk_status status = stk_image_scratch_new(&scratch, &gate, &err);
    if (status == STK_OK) {
        stk_image_scratch_limit(scratch, &(stk_image_limit){.cancelled = &p->cancelled});
    }
    pthread_mutex_lock(&p->lock);
    if (status != STK_OK) {
        fail(p, &err);
    }
    while (!p->quit && p->failure.status == STK_OK) {
        place *at = find_work(p);
        if (at != NULL) {
            work_on(p, at, scratch);
        } else {
            wait_for_work(p);
        }
    }
    pthread_mutex_unlock(&p->lock);
    stk_image_scratch_free(scratch);
    return NULL;
}

/* ---- the caller ---- */

static stk_status start_threads(stk_pump *p, stk_error *err) {
    while (p->started < p->config.workers) {
        const stk_thread_config config = {.what = "decodes pictures"};
        stk_error why = {0};
        stk_status status = stk_thread_start(&p->threads[p->started], &config, work, p, &why);
        if (status != STK_OK && p->started == 0) {
            return STK_FAIL(err, status, "%s", why.message);
        }
        if (status != STK_OK) {
            break; /* fewer will do */
        }
        p->started++;
    }
    return STK_OK;
}

stk_status stk_pump_open(stk_pump **out, const stk_pump_config *config, stk_error *err) {
    stk_pump *p = stk_mem_new(1, sizeof *p);
    if (p == NULL) {
        return STK_FAIL_MEMORY(err, "staging");
    }
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_mutex_init(&p->lock, NULL);
    pthread_mutex_init(&p->heavy, NULL);
    pthread_cond_init(&p->work, &attributes);
    pthread_cond_init(&p->ready, &attributes);
    pthread_condattr_destroy(&attributes);
    p->config = *config;
    p->places = stk_mem_new(PLACES, sizeof *p->places);
    p->threads = stk_mem_new((size_t)config->workers, sizeof *p->threads);
    stk_reader_config reading = {.store = config->store, .done = read_done, .user = p};
    stk_status status = p->places != NULL && p->threads != NULL
                            ? stk_reader_open(&p->reader, &reading, err)
                            : STK_FAIL_MEMORY(err, "staging");
    status = status == STK_OK ? start_threads(p, err) : status;
    if (status != STK_OK) {
        stk_pump_close(p);
        return status;
    }
    pthread_mutex_lock(&p->lock);
    issue(p);
    pthread_mutex_unlock(&p->lock);
    *out = p;
    return STK_OK;
}

void stk_pump_close(stk_pump *p) {
    if (p == NULL) {
        return;
    }
    pthread_mutex_lock(&p->lock);
    p->quit = true;
    atomic_store(&p->cancelled, true);
    pthread_cond_broadcast(&p->work);
    pthread_mutex_unlock(&p->lock);
    for (int i = 0; i < p->started; i++) {
        pthread_join(p->threads[i], NULL);
    }
    stk_reader_close(p->reader);
    for (size_t i = 0; p->places != NULL && i < PLACES; i++) {
        stk_bytes_free(&p->places[i].read.bytes);
        stk_mem_free(p->places[i].recoded.bytes);
    }
    pthread_cond_destroy(&p->ready);
    pthread_cond_destroy(&p->work);
    pthread_mutex_destroy(&p->heavy);
    pthread_mutex_destroy(&p->lock);
    stk_mem_free(p->places);
    stk_mem_free(p->threads);
    stk_mem_free(p);
}

stk_status stk_pump_next(stk_pump *p, int64_t wait_ns, const stk_pumped **pumped, stk_error *err) {
    int64_t end = stk_clock_ns() + wait_ns;
    struct timespec until = {.tv_sec = end / NS_PER_S, .tv_nsec = end % NS_PER_S};
    stk_status status = STK_OK;
    *pumped = NULL;
    pthread_mutex_lock(&p->lock);
    issue(p);
    place *at = place_of(p, p->head);
    bool waiting = true;
    while (p->head < p->config.count && at->state != DONE && p->failure.status == STK_OK &&
           waiting) {
        waiting = pthread_cond_timedwait(&p->ready, &p->lock, &until) != ETIMEDOUT;
    }
    if (p->failure.status != STK_OK) {
        status = STK_FAIL(err, p->failure.status, "%s", p->failure.message);
    } else if (p->head < p->config.count && at->state == DONE) {
        at->pumped.item = p->head;
        *pumped = &at->pumped;
    }
    pthread_mutex_unlock(&p->lock);
    return status;
}

void stk_pump_release(stk_pump *p) {
    pthread_mutex_lock(&p->lock);
    place *at = place_of(p, p->head);
    p->bytes -= at->held;
    stk_bytes_free(&at->read.bytes);
    stk_mem_free(at->recoded.bytes);
    memset(at, 0, sizeof *at);
    p->head++;
    issue(p);
    pthread_mutex_unlock(&p->lock);
}
