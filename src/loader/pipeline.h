/*
 * pipeline.h - inside the loader room: one loader, and the steps of a sample's way.
 *
 * The way of a sample: a place of a batch becomes a task (issue), its bytes are read (storage's
 * reader), a worker decodes them into the batch's slot (workers.c), the last one completes the
 * batch, the consumer takes it (loader.c) and gives the slot back. Everything marked `lock` is
 * guarded by the one lock of the loader, which is never held while reading or decoding.
 */
#ifndef STK_LOADER_PIPELINE_H
#define STK_LOADER_PIPELINE_H

#include <pthread.h>
#include <stdatomic.h>

#include "loader/folder_samples.h"
#include "loader/loader.h"
#include "loader/sampler.h"
#include "loader/tuner.h"
#include "storage/reading/read_ahead.h"

typedef enum slot_state { SLOT_FREE, SLOT_FILLING, SLOT_READY, SLOT_HELD } slot_state;

/* One batch's memory. It has one owner at a time: workers, queue, consumer. */
typedef struct slot {
    stk_batch batch;  /* what the consumer sees; its arrays are the ones below */
    uint64_t number;  /* of the batch, counted over all epochs; lock */
    slot_state state; /* lock */
    size_t missing;   /* samples not there yet; lock */
    int64_t ready_ns; /* when it became complete; lock */
    uint8_t *images;  /* from config.memory; NULL until the slot is first used */
    int *labels;      /* owned, as the next three */
    size_t *samples;
    size_t *positions; /* of the samples in the loader's list */
    bool *bad;
} slot;

/* A sample on its way into a slot. */
typedef struct loader_task {
    stk_ahead_read ahead;     /* first, so that a read leads to its task */
    uint64_t batch;           /* counted over all epochs */
    size_t place;             /* in the batch */
    size_t position;          /* of the sample in the loader's list */
    struct loader_task *next; /* among the free tasks; lock */
} loader_task;

/*
 * Whether a worker is in a library that may take long. While it is there the loader may be closed
 * without it: the worker finds that out when it comes back, and touches nothing but the loader.
 */
typedef enum worker_place { WORKER_OUT, WORKER_INSIDE, WORKER_LEFT } worker_place;

typedef struct worker {
    stk_loader *loader;
    pthread_t thread;
    int index;
    atomic_int place;           /* a worker_place */
    bool is_left;               /* the loader was closed without this worker; lock */
    int64_t patience_ns;        /* for the picture in work; 0: all that a picture may have */
    stk_image_scratch *scratch; /* owned */
    uint8_t *square;      /* owned: where a picture is made when slots are not the loader's own
                             memory; otherwise NULL, and pictures are made in their slots */
    stk_ahead_read extra; /* reads a sample that takes a bad one's place */
    stk_bytes raw;        /* owned: a picture decoded as a whole */
} worker;

typedef struct bad_sample {
    size_t position;
    char *reason;        /* owned */
    int64_t patience_ns; /* of one that is only slow: that was not enough; otherwise 0 */
} bad_sample;

/* Positions in the loader's list. */
typedef struct position_list {
    size_t *items; /* owned */
    size_t count, capacity;
} position_list;

struct stk_loader {
    stk_loader_config config;
    stk_folder_samples folder; /* owned; zeros unless opened on a folder */
    stk_sampler *sampler;
    stk_read_ahead ahead; /* the reads in front of the workers; lock */
    size_t places;        /* samples of an epoch */
    size_t per_epoch;     /* batches of an epoch */
    size_t image_bytes;   /* of one sample in a batch */
    pthread_mutex_t lock;
    pthread_cond_t work;   /* for workers: a task is ready, or the loader ends */
    pthread_cond_t parked; /* for workers that are not wanted now */
    pthread_cond_t ready;  /* for the consumer and for seek */
    atomic_bool cancelled; /* what is being decoded is not wanted any more */
    int references;        /* whoever comes last frees the loader: its user, and workers that were
                              left inside a library; lock */
    bool quit;             /* lock */
    bool paused;           /* nothing is issued or taken: seek is at work; lock */
    stk_error failure;     /* what ended the loader; lock */

    slot *slots; /* owned; sizing.room_slots of them */
    slot **ring; /* owned: (room_slots); batch b is in the slot at b mod room_slots; lock */
    uint64_t issue_batch; /* the next place to become a task; lock */
    size_t issue_place;   /* lock */
    uint64_t next_batch;  /* for the consumer; lock */

    loader_task *tasks;      /* owned; sizing.most_reads of them */
    loader_task *free_tasks; /* lock */

    worker *workers;           /* owned; sizing.room_workers of them */
    int started;               /* threads that were started; lock */
    int running;               /* of them: that have not come to their end; lock */
    bool heavy;                /* a picture that needs much memory is being decoded; lock */
    pthread_cond_t heavy_ends; /* for workers that have another such */

    position_list late; /* samples that were put aside; lock */
    size_t late_bad;    /* of `bad`: samples that are only slow; lock */

    bad_sample *bad;                          /* owned; lock */
    size_t bad_count, bad_capacity, bad_told; /* lock */
    uint8_t *is_bad; /* owned: (count), 1 once a position is in `bad`; lock */

    stk_tuner tuner; /* consumer only, as are the next two */
    int64_t sampled_ns;
    stk_loader_counters sampled;

    /* Counters: written by their owners, read by anybody. */
    atomic_int wanted;     /* workers with an index below this work, the others are parked */
    atomic_int slot_count; /* slots that may be filled; those behind them are only emptied */
    atomic_ullong images, batches, bads, read_bytes, read_ns, decode_ns, augment_ns, source_px;
    atomic_ullong good_ns; /* CPU time that those in `images` took */
    atomic_ullong lates;   /* pictures that took longer than the loader's patience */
    atomic_ullong read_wait_ns, slot_wait_ns, wait_ns, hand_over_ns;
    atomic_ullong batches_ready;
};

/* pipeline.c */

const stk_sample *stk_loader_sample(const stk_loader *l, size_t position);
bool stk_loader_is_past_end(const stk_loader *l, uint64_t batch);

/* Remembers what ends the loader, and wakes everybody; lock. */
void stk_loader_fail(stk_loader *l, const stk_error *why);

/* Frees what a slot has, or all of them have. */
void stk_loader_free_slot(const stk_loader *l, slot *s);
void stk_loader_free_slots(stk_loader *l);

/* Frees the loader when nobody else has it; takes the lock. */
void stk_loader_let_go(stk_loader *l);

/* workers.c */

/* Ends a task, whatever became of it; lock. */
void stk_workers_drop(stk_loader *l, loader_task *t);

/* Starts threads until `wanted` run, or makes do with those that the system gives; lock. */
STK_CHECKED stk_status stk_workers_start(stk_loader *l, stk_error *err);

/* Makes tasks of as many places as slots, window and memory allow, and has them read; lock. */
void stk_workers_issue(void *loader);

/* A read has ended; lock. */
void stk_workers_read_done(void *loader, stk_ahead_read *item);

/* decoding.c */

/*
 * Decodes the bytes of a sample into `out`; *good tells whether they were a picture. Memory running
 * out is not the picture's fault and an error, as is one bad picture too many, and as is the end of
 * the loader. `why` tells what became of reading the bytes.
 */
STK_CHECKED stk_status stk_worker_decode(worker *w, const loader_task *t, size_t position,
                                         const stk_bytes *bytes, stk_error *why, uint8_t *out,
                                         bool *good, stk_error *err);

/* slow_pictures.c */

/* CPU time that the next picture may take before it is put aside; 0: all that a picture may have.
 */
int64_t stk_loader_patience_ns(const stk_loader *l);

/* Whether the sample was too slow for this patience before; takes the lock. */
bool stk_loader_is_slow(stk_loader *l, size_t position, int64_t patience_ns);

/* Puts a sample aside; takes the lock. */
STK_CHECKED stk_status stk_loader_put_aside(stk_loader *l, size_t position, stk_error *err);

/* The gate for pictures that need much memory, one for each worker. */
stk_heavy_gate stk_loader_heavy_gate(worker *w);

#endif
