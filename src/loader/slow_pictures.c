/*
 * slow_pictures.c - pictures that take far longer than others, and those that need much memory.
 *
 * A consumer takes batches in order, so that one slow picture holds up all that come behind it.
 * Where config.patience_ns is set, a picture that takes longer is put aside: its place is marked
 * bad (or taken by another sample in training) and whoever evaluates comes back to it. What "long"
 * means depends on the other pictures: a data set of large ones is not slow, it is large.
 */
#include "loader/pipeline.h"

#include <errno.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"

#define NS_PER_S 1000000000

/* So many times the mean of the pictures so far is not unusual. */
#define USUAL_TIMES 16

/* Where more than half of the pictures are put aside, patience doubles with each further so many.
 */
#define LATE_PER_DOUBLING 16
#define MOST_DOUBLINGS 7

int64_t stk_loader_patience_ns(const stk_loader *l) {
    int64_t patience = l->config.patience_ns;
    if (patience <= 0) {
        return 0;
    }
    uint64_t images = atomic_load(&l->images);
    uint64_t lates = atomic_load(&l->lates);
    if (images > 0) {
        int64_t usual = USUAL_TIMES * (int64_t)(atomic_load(&l->good_ns) / images);
        patience = usual > patience ? usual : patience;
    }
    if (lates > images / 2) {
        uint64_t doublings = (lates - images / 2) / LATE_PER_DOUBLING;
        patience <<= doublings < MOST_DOUBLINGS ? doublings : MOST_DOUBLINGS;
    }
    return patience < STK_IMAGE_MAX_CPU_NS ? patience : 0;
}

bool stk_loader_is_slow(stk_loader *l, size_t position, int64_t patience_ns) {
    bool slow = false;
    pthread_mutex_lock(&l->lock);
    for (size_t i = 0; i < l->bad_count && l->is_bad[position] != 0 && !slow; i++) {
        slow = l->bad[i].position == position && l->bad[i].patience_ns >= patience_ns;
    }
    pthread_mutex_unlock(&l->lock);
    return slow;
}

stk_status stk_loader_put_aside(stk_loader *l, size_t position, stk_error *err) {
    pthread_mutex_lock(&l->lock);
    size_t *grown =
        stk_mem_grow(l->late.items, &l->late.capacity, l->late.count + 1, sizeof *l->late.items);
    l->late.items = grown != NULL ? grown : l->late.items;
    if (grown != NULL) {
        l->late.items[l->late.count++] = position;
    }
    pthread_mutex_unlock(&l->lock);
    atomic_fetch_add(&l->lates, 1);
    return grown != NULL ? STK_OK : STK_FAIL_MEMORY(err, "the list of slow images");
}

size_t stk_loader_take_late(stk_loader *l, size_t *positions, size_t room) {
    pthread_mutex_lock(&l->lock);
    size_t count = l->late.count < room ? l->late.count : room;
    for (size_t i = 0; i < count; i++) {
        positions[i] = l->late.items[--l->late.count];
    }
    pthread_mutex_unlock(&l->lock);
    return count;
}

size_t stk_loader_lates(stk_loader *l) {
    pthread_mutex_lock(&l->lock);
    size_t count = l->late.count;
    pthread_mutex_unlock(&l->lock);
    return count;
}

/* ---- the gate ---- */

/* Under the lock: waits for the picture before; false when it takes too long. */
static bool wait_for_gate(worker *w) {
    stk_loader *l = w->loader;
    int64_t end = stk_clock_ns() + w->patience_ns;
    struct timespec at = {.tv_sec = end / NS_PER_S, .tv_nsec = end % NS_PER_S};
    while (l->heavy && !atomic_load(&l->cancelled)) {
        if (w->patience_ns == 0) {
            pthread_cond_wait(&l->heavy_ends, &l->lock);
        } else if (pthread_cond_timedwait(&l->heavy_ends, &l->lock, &at) == ETIMEDOUT) {
            break;
        }
    }
    return !l->heavy && !atomic_load(&l->cancelled);
}

/* One picture that needs much memory at a time; one that needs more than allowed never. */
static stk_status enter_heavy(void *user, uint64_t bytes, stk_error *err) {
    worker *w = user;
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
    stk_loader *l = ((worker *)user)->loader;
    pthread_mutex_lock(&l->lock);
    l->heavy = false;
    pthread_cond_signal(&l->heavy_ends);
    pthread_mutex_unlock(&l->lock);
}

stk_heavy_gate stk_loader_heavy_gate(worker *w) {
    return (stk_heavy_gate){.user = w, .enter = enter_heavy, .leave = leave_heavy};
}
