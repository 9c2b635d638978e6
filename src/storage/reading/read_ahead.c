/*
 * read_ahead.c - room for reads, the list of those that have arrived, and waiting for them.
 *
 * How many reads are needed depends on latency times rate, which nobody knows beforehand. So the
 * window begins small and doubles whenever a thread has been without bytes for some milliseconds.
 */
#include "storage/reading/read_ahead.h"

#include "base/clock.h"
#include "base/threads/thread.h"

/* A thread that has had no bytes for so long, while reads are in flight, asks for more reads. */
#define STARVED_NS 2000000

/* How much one read moves the mean size. */
#define SIZE_WEIGHT 0.05

/* Blocks up to so many mean sizes and so many bytes are kept for the next object. */
#define KEEP_MEANS 2
#define KEEP_BYTES ((size_t)64 << 10)

static void begin_flight(stk_read_ahead *a, const stk_read_ahead_item *item) {
    if (atomic_fetch_add(&a->in_flight, 1) == 0) {
        a->took_off_ns = stk_clock_ns();
    }
    a->coming_bytes += item->expected;
    a->unsized += item->is_unsized;
}

/* An item that was in flight is not any more. */
static void end_flight(stk_read_ahead *a, const stk_read_ahead_item *item) {
    if (atomic_fetch_sub(&a->in_flight, 1) == 1) {
        a->flight_ns += stk_clock_ns() - a->took_off_ns;
    }
    a->coming_bytes -= item->expected;
    a->unsized -= item->is_unsized;
}

static void note_size(stk_read_ahead *a, size_t bytes) {
    double size = (double)bytes + 1;
    a->mean_bytes += (a->mean_bytes > 0 ? SIZE_WEIGHT : 1) * (size - a->mean_bytes);
}

/* The reader's callback, on any thread. */
static void note_arrival(void *user, stk_read *read) {
    stk_read_ahead *a = user;
    stk_read_ahead_item *item = (stk_read_ahead_item *)(void *)read;
    bool good = read->error.status == STK_OK;
    read->bytes.size = good ? read->bytes.size : 0;
    pthread_mutex_lock(a->config.lock);
    bool first = !item->is_alone && !(a->mean_bytes > 0);
    if (!item->is_alone) {
        end_flight(a, item);
        stk_read_ahead_hold(a, item, read->bytes.size);
        if (good) {
            note_size(a, read->bytes.size);
        }
    }
    a->config.arrived(a->config.user, item);
    if (item->is_alone) {
        item->is_read = true;
        pthread_cond_broadcast(&a->alone);
    }
    if (first) { /* now a size is known: there may be room for more */
        a->config.issue(a->config.user);
    }
    pthread_mutex_unlock(a->config.lock);
}

stk_status stk_read_ahead_open(stk_read_ahead *a, const stk_read_ahead_config *config,
                               double mean_bytes, stk_error *err) {
    stk_reader_config reading = {.store = config->store, .done = note_arrival, .user = a};
    *a = (stk_read_ahead){.config = *config,
                          .window = config->window < config->most_window ? config->window
                                                                         : config->most_window,
                          .mean_bytes = mean_bytes};
    stk_status status = stk_reader_open(&a->reader, &reading, err);
    if (status == STK_OK) {
        pthread_cond_init(&a->alone, NULL);
    }
    return status;
}

void stk_read_ahead_close(stk_read_ahead *a) {
    if (a->reader != NULL) {
        stk_reader_close(a->reader);
        pthread_cond_destroy(&a->alone);
        a->reader = NULL;
    }
}

bool stk_read_ahead_has_room(const stk_read_ahead *a, size_t least) {
    double bytes =
        (double)a->held_bytes + a->coming_bytes + (double)(a->unsized + 1) * a->mean_bytes;
    return a->under_way < a->window &&
           (a->under_way < least || (a->mean_bytes > 0 && bytes < (double)a->config.memory));
}

bool stk_read_ahead_submit(stk_read_ahead *a, stk_read_ahead_item *item) {
    uint64_t size = stk_store_size(a->config.store, item->read.path);
    item->is_unsized = size == 0 && !(a->mean_bytes > 0);
    item->expected = (size > 0 ? (double)size : a->mean_bytes) + a->config.request_bytes;
    item->order = a->issued++;
    a->under_way++;
    begin_flight(a, item);
    bool begun = stk_reader_submit(a->reader, &item->read);
    if (!begun) {
        end_flight(a, item);
        a->under_way--;
    }
    return begun;
}

void stk_read_ahead_skip(stk_read_ahead *a, stk_read_ahead_item *item) {
    item->order = a->issued++;
    item->read.bytes.size = 0;
    a->under_way++;
    stk_read_ahead_make_ready(a, item);
}

void stk_read_ahead_make_ready(stk_read_ahead *a, stk_read_ahead_item *item) {
    stk_read_ahead_item **at = &a->ready;
    while (*at != NULL && (*at)->order < item->order) {
        at = &(*at)->next;
    }
    item->next = *at;
    *at = item;
    atomic_fetch_add(&a->ready_count, 1);
    pthread_cond_signal(a->config.work);
}

stk_read_ahead_item *stk_read_ahead_take(stk_read_ahead *a) {
    stk_read_ahead_item *item = a->ready;
    if (item != NULL) {
        a->ready = item->next;
        atomic_fetch_sub(&a->ready_count, 1);
    }
    return item;
}

void stk_read_ahead_wait(stk_read_ahead *a) {
    if (atomic_load(&a->in_flight) == 0) {
        pthread_cond_wait(a->config.work, a->config.lock);
        return;
    }
    if (!stk_cond_wait_until(a->config.work, a->config.lock, stk_clock_ns() + STARVED_NS) &&
        a->ready == NULL && atomic_load(&a->in_flight) > 0) {
        a->window = 2 * a->window < a->config.most_window ? 2 * a->window : a->config.most_window;
        a->config.issue(a->config.user);
        stk_reader_hurry(a->reader);
    }
}

int64_t stk_read_ahead_flight_ns(const stk_read_ahead *a) {
    bool flying = atomic_load(&a->in_flight) > 0;
    return a->flight_ns + (flying ? stk_clock_ns() - a->took_off_ns : 0);
}

void stk_read_ahead_hold(stk_read_ahead *a, stk_read_ahead_item *item, size_t bytes) {
    a->held_bytes = a->held_bytes - item->held + bytes;
    item->held = bytes;
}

void stk_read_ahead_release(stk_read_ahead *a, stk_read_ahead_item *item) {
    stk_read_ahead_hold(a, item, 0);
    stk_read_ahead_trim(a, &item->read.bytes);
    a->under_way--;
}

void stk_read_ahead_trim(const stk_read_ahead *a, stk_bytes *bytes) {
    if ((double)bytes->capacity > KEEP_MEANS * a->mean_bytes + (double)KEEP_BYTES) {
        stk_bytes_free(bytes);
    }
}

bool stk_read_ahead_read_alone(stk_read_ahead *a, stk_read_ahead_item *item) {
    item->is_alone = true;
    item->is_read = false;
    bool begun = stk_reader_submit(a->reader, &item->read);
    while (begun && !item->is_read) {
        pthread_cond_wait(&a->alone, a->config.lock);
    }
    return begun;
}

void stk_read_ahead_cancel(stk_read_ahead *a) {
    stk_reader_cancel(a->reader);
}
