/*
 * slow_pictures.c - pictures that take far longer than others, and those that need much memory.
 *
 * The consumer takes batches in order, so one slow picture holds up all batches after it. Where
 * config.slow_after_ns is set, a picture that takes longer is slow. In training the next sample
 * replaces it, and it is listed as bad. Elsewhere it is put aside: its row is marked bad, and
 * evaluation comes back to it at the end. The limit follows the other pictures: where all are
 * large, none is slow.
 */
#include "loader/pipeline.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/threads/thread.h"

/* A picture is slow only beyond so many times the mean CPU time of the pictures so far. */
#define USUAL_TIMES 16

/* Once there are more than half as many slow pictures as good ones, the limit doubles with every so
 * many more slow pictures. */
#define SLOW_PER_DOUBLING 16
#define MOST_DOUBLINGS 7

int64_t stk_loader_picture_limit_ns(const stk_loader *l) {
    int64_t limit = l->config.slow_after_ns;
    if (limit <= 0) {
        return 0;
    }
    /* Those that the CPU decoded; the two counters are not read at the same moment. */
    uint64_t on_device = atomic_load(&l->device_images);
    uint64_t all = atomic_load(&l->images);
    uint64_t images = all > on_device ? all - on_device : 0;
    uint64_t slow = atomic_load(&l->slow_total);
    if (images > 0) {
        int64_t usual = USUAL_TIMES * (int64_t)(atomic_load(&l->good_ns) / images);
        limit = usual > limit ? usual : limit;
    }
    if (slow > images / 2) {
        uint64_t doublings = (slow - images / 2) / SLOW_PER_DOUBLING;
        limit <<= doublings < MOST_DOUBLINGS ? doublings : MOST_DOUBLINGS;
    }
    return limit < STK_IMAGE_MAX_CPU_NS ? limit : 0;
}

bool stk_loader_is_slow(stk_loader *l, size_t entry, int64_t limit_ns) {
    bool slow = false;
    pthread_mutex_lock(&l->lock);
    for (size_t i = 0; i < l->bad_count && l->is_bad[entry] != 0 && !slow; i++) {
        slow = l->bad[i].entry == entry && l->bad[i].limit_ns >= limit_ns;
    }
    pthread_mutex_unlock(&l->lock);
    return slow;
}

stk_status stk_loader_put_aside(stk_loader *l, size_t entry, stk_error *err) {
    pthread_mutex_lock(&l->lock);
    bool room = STK_RESERVE(l->put_aside.items, l->put_aside.capacity, l->put_aside.count + 1);
    if (room) {
        l->put_aside.items[l->put_aside.count++] = entry;
    }
    pthread_mutex_unlock(&l->lock);
    atomic_fetch_add(&l->slow_total, 1);
    return room ? STK_OK : STK_FAIL_MEMORY(err, "the list of slow images");
}

size_t stk_loader_take_put_aside(stk_loader *l, size_t *entries, size_t room) {
    pthread_mutex_lock(&l->lock);
    size_t count = l->put_aside.count < room ? l->put_aside.count : room;
    for (size_t i = 0; i < count; i++) {
        entries[i] = l->put_aside.items[--l->put_aside.count];
    }
    pthread_mutex_unlock(&l->lock);
    return count;
}

size_t stk_loader_put_aside_count(stk_loader *l) {
    pthread_mutex_lock(&l->lock);
    size_t count = l->put_aside.count;
    pthread_mutex_unlock(&l->lock);
    return count;
}

/* ---- the gate ---- */

/* Under the lock: waits until no other picture is inside; false when that takes too long. */
static bool wait_for_gate(decode_worker *w) {
    stk_loader *l = w->loader;
    int64_t end = stk_clock_ns() + w->limit_ns;
    while (l->heavy && !atomic_load(&l->cancelled)) {
        if (w->limit_ns == 0) {
            pthread_cond_wait(&l->heavy_ends, &l->lock);
        } else if (!stk_cond_wait_until(&l->heavy_ends, &l->lock, end)) {
            break;
        }
    }
    return !l->heavy && !atomic_load(&l->cancelled);
}

/* Lets one picture in at a time, and none that needs more than is allowed. */
static stk_status enter_heavy(void *user, uint64_t bytes, stk_error *err) {
    decode_worker *w = user;
    stk_loader *l = w->loader;
    uint64_t most = l->config.sizing.picture_memory;
    if (bytes > most && most > 0) {
        return STK_FAIL(err, STK_ERR_DATA,
                        "decoding it takes %llu MB of memory, more than the %llu MB that are "
                        "allowed; scale the picture down, or raise --loader-memory",
                        (unsigned long long)(bytes >> 20), (unsigned long long)(most >> 20));
    }
    pthread_mutex_lock(&l->lock);
    bool entered = wait_for_gate(w);
    l->heavy = l->heavy || entered;
    pthread_mutex_unlock(&l->lock);
    return entered ? STK_OK
                   : STK_FAIL(err, STK_ERR_STOPPED,
                              "other pictures that need much memory were decoded before it");
}

static void leave_heavy(void *user) {
    stk_loader *l = ((decode_worker *)user)->loader;
    pthread_mutex_lock(&l->lock);
    l->heavy = false;
    pthread_cond_signal(&l->heavy_ends);
    pthread_mutex_unlock(&l->lock);
}

stk_heavy_gate stk_loader_heavy_gate(decode_worker *w) {
    return (stk_heavy_gate){.user = w, .enter = enter_heavy, .leave = leave_heavy};
}
