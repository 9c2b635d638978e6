/*
 * picture_queue.c - a ring of pictures between the read-ahead, the threads that recode, and the
 * caller.
 *
 * Picture i is in cell i modulo the ring's size. A cell is FREE, then UNDER_WAY (the picture is
 * read, waits for a thread or is recoded), then DONE, and FREE again once the caller has released
 * it. The caller takes the cells in order, so pictures leave in order, whichever is recoded first.
 */
#include "stage/picture_queue.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/numbers/checksum.h"
#include "base/threads/thread.h"
#include "storage/reading/read_ahead.h"

/* Most pictures between reading and release; object stores need hundreds of reads in flight. */
#define CELLS 512

/* Most reads in flight before the size of pictures is known. */
#define FIRST_READS 8

typedef enum cell_state { FREE, UNDER_WAY, DONE } cell_state;

typedef struct picture_cell {
    stk_read_ahead_item item; /* first: stk_read_ahead_item * is cast to the cell */
    cell_state state;
    stk_recoded recoded;       /* owned: new bytes, if the picture was recoded */
    stk_queued_picture queued; /* what the caller sees */
    stk_error error;           /* why the picture cannot be used */
} picture_cell;

struct stk_picture_queue {
    stk_picture_queue_config config;
    stk_read_ahead ahead; /* lock */
    picture_cell *cells;  /* owned: CELLS of them */
    pthread_mutex_t lock;
    pthread_cond_t work;   /* for the threads: a picture was read, or the queue ends */
    pthread_cond_t ready;  /* for the caller: a picture is done */
    pthread_mutex_t heavy; /* held while a picture that needs much memory is decoded */
    pthread_t *threads;    /* owned */
    int started;
    atomic_bool cancelled; /* threads shall stop decoding */
    bool quit;             /* lock, as all below */
    size_t head;           /* the next picture to hand to the caller */
    size_t tail;           /* the next picture to read */
    stk_error failure;     /* first failure that ends everything; STK_OK: none */
};

static picture_cell *cell_of(stk_picture_queue *q, size_t item) {
    return &q->cells[item % CELLS];
}

static void fail(stk_picture_queue *q, const stk_error *why) {
    if (q->failure.status == STK_OK) {
        q->failure = *why;
        pthread_cond_broadcast(&q->work);
        pthread_cond_broadcast(&q->ready);
    }
}

/* ---- reading ---- */

/* Starts as many reads as there is room for. Lock held. */
static void issue(void *queue) {
    stk_picture_queue *q = queue;
    size_t least = q->ahead.mean_bytes > 0 ? 1 : FIRST_READS;
    while (!q->quit && q->failure.status == STK_OK && q->tail < q->config.count &&
           stk_read_ahead_has_room(&q->ahead, least)) {
        picture_cell *cell = cell_of(q, q->tail);
        cell->item.read.path = q->config.paths[q->tail++];
        cell->state = UNDER_WAY;
        if (!stk_read_ahead_submit(&q->ahead, &cell->item)) {
            stk_error err = {0};
            (void)STK_FAIL_MEMORY(&err, cell->item.read.path);
            fail(q, &err);
        }
    }
}

/* Marks a picture as unusable; staging continues. Lock held. */
static void give_up(stk_picture_queue *q, picture_cell *cell, const stk_error *why) {
    cell->error = *why;
    cell->queued.reason = cell->error.message;
    cell->state = DONE;
    pthread_cond_signal(&q->ready);
}

/* Whether an error concerns one picture, not memory or the location. */
static bool is_about_picture(const stk_error *err) {
    return err->status == STK_ERR_DATA || err->status == STK_ERR_STORAGE;
}

/* Called when a read has ended. Lock held. */
static void take_read(void *queue, stk_read_ahead_item *item) {
    stk_picture_queue *q = queue;
    const stk_read *read = &item->read;
    if (read->error.status == STK_OK) {
        stk_read_ahead_make_ready(&q->ahead, item);
    } else if (read->lost || !is_about_picture(&read->error)) {
        fail(q, &read->error);
    } else {
        give_up(q, (picture_cell *)(void *)item, &read->error);
    }
}

/* ---- recoding ---- */

static stk_status enter_heavy(void *user, uint64_t bytes, stk_error *err) {
    stk_picture_queue *q = user;
    (void)bytes;
    (void)err;
    pthread_mutex_lock(&q->heavy);
    return STK_OK;
}

static void leave_heavy(void *user) {
    stk_picture_queue *q = user;
    pthread_mutex_unlock(&q->heavy);
}

/* Called without the lock: the cell belongs to this thread. */
static stk_status recode(const stk_picture_queue *q, picture_cell *cell, stk_image_scratch *scratch,
                         stk_error *err) {
    const stk_bytes *bytes = &cell->item.read.bytes;
    stk_status status = stk_recode_picture(scratch, &q->config.recode, bytes->data, bytes->size,
                                           &cell->recoded, err);
    bool recoded = cell->recoded.bytes != NULL;
    cell->queued = (stk_queued_picture){.bytes = recoded ? cell->recoded.bytes : bytes->data,
                                        .size = recoded ? cell->recoded.size : bytes->size,
                                        .extension = cell->recoded.extension,
                                        .source_bytes = bytes->size,
                                        .recoded = recoded};
    if (status == STK_OK) {
        cell->queued.checksum = stk_checksum(cell->queued.bytes, cell->queued.size);
    }
    if (recoded) {
        stk_bytes_free(&cell->item.read.bytes);
    }
    return status;
}

/* Called with the lock, which is released while the picture is recoded. */
static void work_on(stk_picture_queue *q, picture_cell *cell, stk_image_scratch *scratch) {
    stk_error err = {0};
    pthread_mutex_unlock(&q->lock);
    stk_status status = recode(q, cell, scratch, &err);
    pthread_mutex_lock(&q->lock);
    stk_read_ahead_hold(&q->ahead, &cell->item, cell->queued.size);
    if (status == STK_OK) {
        cell->state = DONE;
        pthread_cond_signal(&q->ready);
    } else if (is_about_picture(&err)) {
        give_up(q, cell, &err);
    } else {
        fail(q, &err);
    }
}

static void *work(void *argument) {
    stk_picture_queue *q = argument;
    stk_heavy_gate gate = {.user = q, .enter = enter_heavy, .leave = leave_heavy};
    stk_image_scratch *scratch = NULL;
    stk_error err = {0};
    stk_status status = stk_image_scratch_new(&scratch, &gate, &err);
    if (status == STK_OK) {
        stk_image_scratch_limit(scratch, &(stk_image_limit){.cancelled = &q->cancelled});
    }
    pthread_mutex_lock(&q->lock);
    if (status != STK_OK) {
        fail(q, &err);
    }
    while (!q->quit && q->failure.status == STK_OK) {
        stk_read_ahead_item *item = stk_read_ahead_take(&q->ahead);
        if (item != NULL) {
            work_on(q, (picture_cell *)(void *)item, scratch);
        } else {
            stk_read_ahead_wait(&q->ahead);
        }
    }
    pthread_mutex_unlock(&q->lock);
    stk_image_scratch_free(scratch);
    return NULL;
}

/* ---- the caller ---- */

static stk_status start_threads(stk_picture_queue *q, stk_error *err) {
    while (q->started < q->config.workers) {
        const stk_thread_config config = {.what = "decodes pictures"};
        stk_error why = {0};
        stk_status status = stk_thread_start(&q->threads[q->started], &config, work, q, &why);
        if (status != STK_OK && q->started == 0) {
            return STK_FAIL(err, status, "%s", why.message);
        }
        if (status != STK_OK) {
            break; /* fewer threads are enough */
        }
        q->started++;
    }
    return STK_OK;
}

stk_status stk_picture_queue_open(stk_picture_queue **out, const stk_picture_queue_config *config,
                                  stk_error *err) {
    stk_picture_queue *q = stk_mem_new(1, sizeof *q);
    if (q == NULL) {
        return STK_FAIL_MEMORY(err, "staging");
    }
    pthread_mutex_init(&q->lock, NULL);
    pthread_mutex_init(&q->heavy, NULL);
    stk_cond_init(&q->work);
    stk_cond_init(&q->ready);
    q->config = *config;
    q->cells = stk_mem_new(CELLS, sizeof *q->cells);
    q->threads = stk_mem_new((size_t)config->workers, sizeof *q->threads);
    stk_read_ahead_config reading = {.store = config->store,
                                     .lock = &q->lock,
                                     .work = &q->work,
                                     .window = CELLS,
                                     .most_window = CELLS,
                                     .memory = STK_PICTURE_QUEUE_BYTES,
                                     .arrived = take_read,
                                     .issue = issue,
                                     .user = q};
    stk_status status = q->cells != NULL && q->threads != NULL
                            ? stk_read_ahead_open(&q->ahead, &reading, 0, err)
                            : STK_FAIL_MEMORY(err, "staging");
    stk_store_bound(config->store, STK_PICTURE_QUEUE_BYTES);
    STK_THEN(status, start_threads(q, err));
    if (status != STK_OK) {
        stk_picture_queue_close(q);
        return status;
    }
    pthread_mutex_lock(&q->lock);
    issue(q);
    pthread_mutex_unlock(&q->lock);
    *out = q;
    return STK_OK;
}

void stk_picture_queue_close(stk_picture_queue *q) {
    if (q == NULL) {
        return;
    }
    pthread_mutex_lock(&q->lock);
    q->quit = true;
    atomic_store(&q->cancelled, true);
    pthread_cond_broadcast(&q->work);
    pthread_mutex_unlock(&q->lock);
    for (int i = 0; i < q->started; i++) {
        pthread_join(q->threads[i], NULL);
    }
    stk_read_ahead_close(&q->ahead);
    for (size_t i = 0; q->cells != NULL && i < CELLS; i++) {
        stk_bytes_free(&q->cells[i].item.read.bytes);
        stk_mem_free(q->cells[i].recoded.bytes);
    }
    pthread_cond_destroy(&q->ready);
    pthread_cond_destroy(&q->work);
    pthread_mutex_destroy(&q->heavy);
    pthread_mutex_destroy(&q->lock);
    stk_mem_free(q->cells);
    stk_mem_free(q->threads);
    stk_mem_free(q);
}

stk_status stk_picture_queue_next(stk_picture_queue *q, int64_t wait_ns,
                                  const stk_queued_picture **queued, stk_error *err) {
    int64_t end = stk_clock_ns() + wait_ns;
    stk_status status = STK_OK;
    *queued = NULL;
    pthread_mutex_lock(&q->lock);
    issue(q);
    picture_cell *cell = cell_of(q, q->head);
    bool waiting = true;
    while (q->head < q->config.count && cell->state != DONE && q->failure.status == STK_OK &&
           waiting) {
        waiting = stk_cond_wait_until(&q->ready, &q->lock, end);
    }
    if (q->failure.status != STK_OK) {
        status = STK_FAIL(err, q->failure.status, "%s", q->failure.message);
    } else if (q->head < q->config.count && cell->state == DONE) {
        *queued = &cell->queued;
    }
    pthread_mutex_unlock(&q->lock);
    return status;
}

void stk_picture_queue_release(stk_picture_queue *q) {
    pthread_mutex_lock(&q->lock);
    picture_cell *cell = cell_of(q, q->head);
    stk_bytes_free(&cell->item.read.bytes);
    stk_mem_free(cell->recoded.bytes);
    stk_read_ahead_release(&q->ahead, &cell->item);
    memset(cell, 0, sizeof *cell);
    q->head++;
    issue(q);
    pthread_mutex_unlock(&q->lock);
}
