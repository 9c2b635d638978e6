/*
 * storage_probe.c - keeps a fixed number of reads in flight and counts them.
 *
 * The callback of a finished read begins the next one, so that the number in flight stays constant
 * and no thread has to wake up for it. One step follows another without a pause: its clock starts
 * once as many reads have come as are to be in flight, which is when those that were begun before
 * it are about gone. Where every read takes equally long they come in bursts of that number, so the
 * clock also stops after a whole burst if it can.
 */
#include "probe/storage_probe.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/machine.h"
#include "base/mem.h"
#include "base/numbers/rng.h"
#include "base/str.h"
#include "base/threads/thread.h"
#include "probe/picture_walk.h"
#include "storage/reading/reader.h"

/* Pictures that are listed at most: more would not change what is measured. */
#define MOST_OBJECTS 200000

/* Least reads of a step, unless they take MOST_LENGTHS times as long as the step should. */
#define LEAST_READS 48
#define MOST_LENGTHS 5.0

/* How much longer a step may become for the sake of a whole burst. */
#define BURST_LENGTHS 1.5

/* Most latencies kept of a step, for percentiles; of more reads a random sample is kept. */
#define MOST_TIMES 65536

/* The measurement ends after this many failed reads, if they are also this share of all reads. */
#define LEAST_FAILED 4
#define MOST_FAILED_SHARE 0.05

/* Bytes in flight may be this part of memory. */
#define MEMORY_SHARE 4

/* How often the waiting thread checks whether more I/O threads are needed and whether to stop. */
#define TICK_NS 5000000

typedef struct read_slot {
    stk_read read; /* the first member: read_done() casts a read to its slot */
    struct read_slot *next;
} read_slot;

/* What was counted of the step that runs. */
typedef struct tally {
    int64_t length_ns; /* planned length of the step */
    int64_t begun_ns;  /* the number in flight began to change */
    int64_t start_ns;  /* the clock started; 0: not yet */
    int64_t end_ns;    /* of the latest read */
    uint64_t early;    /* reads before the clock started */
    uint64_t reads;
    uint64_t failed;
    uint64_t bytes;
    int64_t most_ns;
    bool over;
} tally;

typedef struct storage_probe {
    stk_store *store;
    stk_reader *reader;
    const stk_stop *stop;     /* borrowed */
    bool own_store;           /* opened here */
    stk_texts found;          /* pictures found by listing, if the caller gave none */
    const char *const *paths; /* (path_count) */
    size_t path_count;
    bool once;
    int64_t *times;   /* owned: (MOST_TIMES), ns of reads of the step; lock */
    read_slot *slots; /* owned */
    pthread_mutex_t lock;
    pthread_cond_t change; /* the step is over, or everything is */
    read_slot *free_slots; /* lock, as all below */
    uint64_t next;         /* number of the next read: with the order it says which picture */
    uint64_t order;        /* random in every run, so that no cache on the way knows it */
    size_t in_flight;
    size_t target; /* wanted reads in flight */
    tally now;
    uint64_t reads; /* of all steps */
    uint64_t failed;
    uint64_t bytes;
    stk_error first_failure;
    stk_error failure; /* what ends the measurement */
    bool quit;
    stk_rng rng;
} storage_probe;

/* ---- counting: all under the lock ---- */

static bool is_over(const tally *t, size_t in_flight) {
    uint64_t count = t->reads + t->failed;
    double lengths = (double)(t->end_ns - t->start_ns) / (double)t->length_ns;
    bool enough = count >= LEAST_READS && lengths >= 1;
    return (enough && (count % in_flight == 0 || lengths >= BURST_LENGTHS)) ||
           lengths >= MOST_LENGTHS;
}

/* Keeps the latency of a read. When there is no room for all, each has the same chance to stay. */
static void keep_time(storage_probe *p, int64_t ns) {
    uint64_t count = p->now.reads;
    uint64_t index = count < MOST_TIMES ? count : stk_rng_below(&p->rng, count + 1);
    if (index < MOST_TIMES) {
        p->times[index] = ns;
    }
    p->now.most_ns = ns > p->now.most_ns ? ns : p->now.most_ns;
}

static void count_read(storage_probe *p, const stk_read *read) {
    tally *t = &p->now;
    bool good = read->error.status == STK_OK;
    int64_t now = stk_clock_ns();
    if (t->over) {
        return;
    }
    if (t->start_ns == 0) {
        t->early++;
        t->start_ns = t->early >= p->target || now - t->begun_ns > t->length_ns ? now : 0;
        return;
    }
    if (good) {
        keep_time(p, read->ns);
        t->reads++;
        t->bytes += read->bytes.size;
    } else {
        t->failed++;
    }
    t->end_ns = now;
    t->over = is_over(t, p->target);
}

/* Ends the measurement when the location is lost, or when too many reads fail. */
static void judge_failure(storage_probe *p, const stk_read *read) {
    double all = (double)(p->reads + p->failed);
    if (p->first_failure.status == STK_OK) {
        p->first_failure = read->error;
    }
    if (read->lost || read->error.status == STK_ERR_MEMORY) {
        p->failure = read->error;
        p->quit = true;
    } else if (p->failed >= LEAST_FAILED && (double)p->failed > MOST_FAILED_SHARE * all) {
        (void)STK_FAIL(&p->failure, p->first_failure.status, "%llu of %llu reads failed; first: %s",
                       (unsigned long long)p->failed, (unsigned long long)(p->reads + p->failed),
                       p->first_failure.message);
        p->quit = true;
    }
}

static void note_read(storage_probe *p, const stk_read *read) {
    if (p->quit || read->error.status == STK_ERR_STOPPED) {
        return;
    }
    if (read->error.status == STK_OK) {
        p->reads++;
        p->bytes += read->bytes.size;
    } else {
        p->failed++;
        judge_failure(p, read);
    }
    count_read(p, read);
}

static void give_back(storage_probe *p, read_slot *s) {
    p->in_flight--;
    s->next = p->free_slots;
    p->free_slots = s;
}

/* The next picture: all once, then all again in another order. NULL: with `once`, all were read. */
static const char *next_path(storage_probe *p) {
    uint64_t count = p->path_count;
    uint64_t number = p->next;
    if (p->once && number >= count) {
        return NULL;
    }
    p->next++;
    return p->paths[p->once ? number
                            : stk_rng_permute(p->order + number / count, count, number % count)];
}

/* Whether with `once` all pictures were read and no read is in flight. */
static bool is_exhausted(const storage_probe *p) {
    return p->once && p->next >= p->path_count && p->in_flight == 0;
}

/* ---- reading ---- */

/* Without the lock. */
static void submit(storage_probe *p, read_slot *s) {
    if (!stk_reader_submit(p->reader, &s->read)) {
        pthread_mutex_lock(&p->lock);
        (void)STK_FAIL_MEMORY(&p->failure, s->read.path);
        p->quit = true;
        give_back(p, s);
        pthread_cond_signal(&p->change);
        pthread_mutex_unlock(&p->lock);
    }
}

/* The reader's callback, from any thread of the storage's. */
static void read_done(void *user, stk_read *read) {
    storage_probe *p = user;
    read_slot *s = (read_slot *)(void *)read;
    pthread_mutex_lock(&p->lock);
    note_read(p, read);
    bool again = !p->quit && p->in_flight <= p->target && read->error.status != STK_ERR_STOPPED;
    const char *path = again ? next_path(p) : NULL;
    again = path != NULL;
    if (again) {
        s->read.path = path;
    } else {
        give_back(p, s);
        p->now.over = p->now.over || is_exhausted(p);
    }
    if (p->quit || p->now.over) {
        pthread_cond_signal(&p->change);
    }
    pthread_mutex_unlock(&p->lock);
    if (again) {
        submit(p, s);
    }
}

/* Begins reads until `target` reads are in flight. */
static void top_up(storage_probe *p) {
    for (;;) {
        pthread_mutex_lock(&p->lock);
        read_slot *s = !p->quit && p->in_flight < p->target ? p->free_slots : NULL;
        const char *path = s != NULL ? next_path(p) : NULL;
        s = path != NULL ? s : NULL;
        if (s != NULL) {
            p->free_slots = s->next;
            p->in_flight++;
            s->read.path = path;
        }
        pthread_mutex_unlock(&p->lock);
        if (s == NULL) {
            return;
        }
        submit(p, s);
    }
}

/* Gives a location that reads on threads one thread for each read in flight, if possible. */
static void raise_threads(storage_probe *p, int64_t in_flight) {
    int before;
    int after = stk_store_threads(p->store);
    do {
        before = after;
        if (before < in_flight) {
            stk_reader_hurry(p->reader);
        }
        after = stk_store_threads(p->store);
    } while (after > before);
}

/* ---- steps ---- */

static int compare_times(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Under the lock. */
static void sum_up(storage_probe *p, stk_storage_step *step) {
    const tally *t = &p->now;
    size_t kept = t->reads < MOST_TIMES ? (size_t)t->reads : MOST_TIMES;
    if (kept > 0) {
        qsort(p->times, kept, sizeof *p->times, compare_times);
    }
    step->in_flight = (int64_t)p->target;
    step->seconds = (double)(t->end_ns - t->start_ns) / STK_NS_PER_S;
    step->reads = (int64_t)t->reads;
    step->failed = (int64_t)t->failed;
    step->objects_per_second = step->seconds > 0 ? (double)t->reads / step->seconds : 0;
    step->bytes_per_second = step->seconds > 0 ? (double)t->bytes / step->seconds : 0;
    step->p50_ms = stk_percentile(p->times, kept, 0.5) * 1e-6;
    step->p90_ms = stk_percentile(p->times, kept, 0.9) * 1e-6;
    step->p99_ms = stk_percentile(p->times, kept, 0.99) * 1e-6;
    step->max_ms = kept > 0 ? (double)t->most_ns * 1e-6 : NAN;
}

static void wait_a_tick(storage_probe *p) {
    (void)stk_cond_wait_until(&p->change, &p->lock, stk_clock_ns() + TICK_NS);
}

static stk_status run_step(storage_probe *p, int64_t in_flight, double seconds,
                           stk_storage_step *step, stk_error *err) {
    stk_status status = STK_OK;
    pthread_mutex_lock(&p->lock);
    p->target = (size_t)in_flight;
    p->now =
        (tally){.begun_ns = stk_clock_ns(), .length_ns = (int64_t)(seconds * STK_NS_PER_S) + 1};
    pthread_mutex_unlock(&p->lock);
    top_up(p);
    pthread_mutex_lock(&p->lock);
    while (!p->now.over && !p->quit && status == STK_OK) {
        pthread_mutex_unlock(&p->lock);
        raise_threads(p, in_flight);
        if (stk_stop_asked(p->stop) != STK_STOP_NONE) {
            status = STK_FAIL(err, STK_ERR_STOPPED, "stopped before the measurement was complete");
        }
        pthread_mutex_lock(&p->lock);
        if (!p->now.over && !p->quit && status == STK_OK) {
            wait_a_tick(p);
        }
    }
    if (status == STK_OK && p->quit) {
        status = STK_FAIL(err, p->failure.status, "%s", p->failure.message);
    } else if (status == STK_OK) {
        sum_up(p, step);
    }
    pthread_mutex_unlock(&p->lock);
    return status;
}

/* Whether this many objects in flight would take too much memory. */
static bool is_too_much(storage_probe *p, int64_t in_flight) {
    pthread_mutex_lock(&p->lock);
    double mean = p->reads > 0 ? (double)p->bytes / (double)p->reads : 0;
    pthread_mutex_unlock(&p->lock);
    return mean * (double)in_flight > (double)stk_machine_memory() / MEMORY_SHARE;
}

static stk_status run_steps(storage_probe *p, const stk_storage_question *q,
                            stk_storage_findings *f, stk_error *err) {
    stk_status status = STK_OK;
    double seconds = q->seconds / (double)q->in_flight.count;
    for (size_t i = 0; status == STK_OK && i < q->in_flight.count; i++) {
        int64_t in_flight = q->in_flight.numbers[i];
        bool enough = q->stop_when_flat &&
                      (stk_storage_is_flat(f->steps, f->step_count) || is_too_much(p, in_flight));
        if (i > 0 && (enough || (q->once && p->next >= p->path_count))) {
            break;
        }
        status = run_step(p, in_flight, seconds, &f->steps[f->step_count], err);
        f->step_count += status == STK_OK ? 1 : 0;
    }
    return status;
}

/* ---- the whole ---- */

static stk_status prepare(storage_probe *p, const stk_in_flight_list *list, stk_error *err) {
    size_t most = (size_t)list->numbers[list->count - 1];
    stk_reader_config config = {.store = p->store, .done = read_done, .user = p};
    p->times = stk_mem_raw(MOST_TIMES, sizeof *p->times);
    p->slots = stk_mem_new(most, sizeof *p->slots);
    if (p->times == NULL || p->slots == NULL) {
        return STK_FAIL_MEMORY(err, "the measurement");
    }
    for (size_t i = 0; i < most; i++) {
        p->slots[i].next = p->free_slots;
        p->free_slots = &p->slots[i];
    }
    return stk_reader_open(&p->reader, &config, err);
}

static void tell(storage_probe *p, stk_storage_findings *f, double wanted) {
    pthread_mutex_lock(&p->lock);
    f->choice = stk_storage_choose(f->steps, f->step_count, wanted);
    f->objects = (int64_t)p->path_count;
    f->begun = (int64_t)p->next;
    f->reads = (int64_t)p->reads;
    f->failed = (int64_t)p->failed;
    f->mean_bytes = p->reads > 0 ? (double)p->bytes / (double)p->reads : NAN;
    f->threads = stk_store_threads(p->store);
    f->first_failure = p->first_failure;
    stk_store_stats(p->store, &f->counters);
    pthread_mutex_unlock(&p->lock);
}

static void close_probe(storage_probe *p, size_t slots) {
    pthread_mutex_lock(&p->lock);
    p->quit = true;
    pthread_mutex_unlock(&p->lock);
    stk_reader_close(p->reader);
    if (p->own_store) {
        stk_store_close(p->store);
    }
    for (size_t i = 0; p->slots != NULL && i < slots; i++) {
        stk_bytes_free(&p->slots[i].read.bytes);
    }
    stk_mem_free(p->slots);
    stk_mem_free(p->times);
    stk_texts_free(&p->found);
    pthread_cond_destroy(&p->change);
    pthread_mutex_destroy(&p->lock);
}

/* Opens the location and lists its pictures, unless the caller gave them. */
static stk_status open_location(storage_probe *p, const stk_storage_question *q, stk_error *err) {
    stk_storage_options storage = q->storage;
    stk_status status = STK_OK;
    p->store = q->store;
    p->own_store = q->store == NULL;
    p->paths = q->paths;
    p->path_count = q->path_count;
    p->once = q->once;
    if (p->own_store) {
        storage.cache = storage.cache != NULL ? storage.cache : "off";
        status = stk_store_open(&p->store, q->data, &storage, NULL, err);
    }
    if (status == STK_OK && q->paths == NULL) {
        status = stk_picture_walk(p->store, MOST_OBJECTS, q->events, &p->found, err);
        p->paths = (const char *const *)p->found.items;
        p->path_count = p->found.count;
    }
    return status;
}

stk_status stk_probe_storage(const stk_storage_question *q, const stk_stop *stop,
                             stk_storage_findings *f, stk_error *err) {
    int64_t start = stk_clock_ns();
    storage_probe p = {.stop = stop, .rng = stk_rng_make((uint64_t)start, STK_RNG_ORDER, 0, 0)};
    pthread_mutex_init(&p.lock, NULL);
    stk_cond_init(&p.change);
    *f = (stk_storage_findings){0};
    p.order = stk_rng_u64(&p.rng);
    stk_status status = open_location(&p, q, err);
    f->list_s = stk_clock_since_s(start);
    STK_THEN(status, prepare(&p, &q->in_flight, err));
    STK_THEN(status, run_steps(&p, q, f, err));
    if (status == STK_OK) {
        tell(&p, f, q->wanted);
    }
    close_probe(&p, (size_t)q->in_flight.numbers[q->in_flight.count - 1]);
    return status;
}
