/*
 * pipeline.h - inside the loader room: one loader, and the way of a sample through it.
 *
 * A row of a batch becomes a task (stk_tasks_issue), the read-ahead reads its bytes, a worker
 * decodes them into the batch's slot (workers.c) or hands them to a device (offload.c), the last
 * row completes the batch, the consumer takes it (loader.c) and releases the slot. One lock guards
 * every field marked `lock`; nobody holds it while reading or decoding. Requests are made under the
 * lock, though: stk_tasks_issue() submits reads with the lock held, and submitting a read of S3
 * computes the request's signature.
 *
 * Three indices: an *entry* is a sample in the loader's list (config.indices, or the first
 * config.count samples), a *position* is its index in an epoch, a *row* is its index in its batch.
 * position = batch of the epoch * config.batch + row; the sampler turns positions into entries.
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

/* The memory of one batch. It has one owner at a time: workers, queue, consumer. */
typedef struct batch_slot {
    stk_batch batch;  /* first: the consumer's pointer leads back to the slot */
    uint64_t number;  /* of the batch, counted over all epochs; lock */
    slot_state state; /* lock */
    size_t missing;   /* rows that are not filled yet; lock */
    int64_t ready_ns; /* when it became complete; lock */
    uint8_t *images;  /* from config.memory; NULL until the slot is first used */
    int *labels;      /* owned */
    size_t *samples;  /* owned */
    size_t *entries;  /* owned */
    bool *bad;        /* owned */
    float *targets;   /* owned; NULL: samples have none */
    float *features;  /* owned; NULL: samples have none */
} batch_slot;

/* A sample on its way into a slot. */
typedef struct loader_task {
    stk_read_ahead_item item; /* first: stk_tasks_of() gets from it to the task */
    uint64_t batch;           /* counted over all epochs */
    size_t row;               /* of the batch */
    size_t entry;             /* the sample that belongs there */
    bool is_for_cpu;          /* the device did not decode it */
    uint64_t source_px;       /* of the picture, while the device has it */
    stk_loader *loader;       /* for offload.c's `done` */
    struct loader_task *next; /* among the free tasks; lock */
} loader_task;

/*
 * Whether a worker is in a library that may take long. The loader may be closed meanwhile and
 * abandon the worker, which learns of it when the library returns, and then touches nothing but the
 * loader.
 */
typedef enum worker_whereabouts {
    WORKER_OUTSIDE,
    WORKER_IN_LIBRARY,
    WORKER_ABANDONED
} worker_whereabouts;

typedef struct decode_worker {
    stk_loader *loader;
    pthread_t thread;
    int index;
    atomic_int whereabouts;     /* worker_whereabouts */
    bool is_abandoned;          /* the loader was closed without this worker; lock */
    bool has_core;              /* it decodes a picture that the device had no room for */
    int64_t limit_ns;           /* of the picture in work: stk_loader_picture_limit_ns() */
    stk_image_scratch *scratch; /* owned */
    uint8_t *square; /* owned: with config.memory, pictures are made here and then copied into their
                        slots, since an abandoned worker must not touch borrowed memory; NULL:
                        pictures are made in the slots */
    stk_read_ahead_item extra; /* reads a sample that replaces a bad one */
    stk_bytes raw;             /* owned: a picture decoded as a whole */
} decode_worker;

typedef struct bad_sample {
    size_t entry;
    char *reason;     /* owned */
    int64_t limit_ns; /* of a slow picture: the limit that it exceeded; 0: the picture is bad */
} bad_sample;

typedef struct entry_list {
    size_t *items; /* owned */
    size_t count, capacity;
} entry_list;

struct stk_loader {
    stk_loader_config config;
    stk_folder_samples folder; /* owned; zeros unless opened on a folder */
    stk_sampler *sampler;
    stk_read_ahead ahead; /* the reads in front of the workers; lock */
    size_t epoch_samples; /* of this machine */
    size_t epoch_batches;
    size_t image_bytes; /* of one sample in a batch */
    pthread_mutex_t lock;
    pthread_cond_t work;   /* for workers: a task is ready, or the loader ends */
    pthread_cond_t parked; /* for workers that are not wanted now */
    pthread_cond_t ready;  /* for the consumer and for seek */
    atomic_bool cancelled; /* what is being decoded is not wanted any more */
    int references;        /* of the user and of abandoned workers; the last one frees; lock */
    bool quit;             /* lock */
    bool paused;           /* nothing is issued or taken: seek is at work; lock */
    stk_error failure;     /* what ended the loader; lock */

    batch_slot *slots; /* owned; sizing.room_slots of them */
    batch_slot **ring; /* owned: (room_slots); batch b is in the slot at b mod room_slots; lock */
    uint64_t issue_batch; /* with issue_row: what becomes a task next; lock */
    size_t issue_row;     /* lock */
    uint64_t next_batch;  /* for the consumer; lock */

    loader_task *tasks;      /* owned; sizing.most_reads of them */
    loader_task *free_tasks; /* lock */

    decode_worker *workers;    /* owned; sizing.room_workers of them */
    int started;               /* threads that were started; lock */
    int running;               /* threads that have not ended; lock */
    bool heavy;                /* a picture that needs much memory is being decoded; lock */
    pthread_cond_t heavy_ends; /* for workers that have another such picture */

    int on_cores;           /* workers that decode what the device had no room for; lock */
    stk_core_share beside;  /* how many may; consumer's thread writes it under the lock; lock */
    uint64_t idle_ns;       /* of the device at the last judgement; consumer's thread */
    uint64_t judged_images; /* `images` at the last judgement; consumer's thread */

    entry_list put_aside; /* slow samples outside of training; lock */
    size_t slow_bad;      /* entries of `bad` that are only slow; lock */

    bad_sample *bad;                          /* owned; lock */
    size_t bad_count, bad_capacity, bad_told; /* lock */
    uint8_t *is_bad; /* owned: (count), 1 once an entry is in `bad`; lock */

    stk_tuner tuner;    /* consumer's thread only */
    int64_t read_at_ns; /* when the counters were last read for the tuner; consumer's thread only */
    stk_loader_counters last_reading; /* the counters at read_at_ns; consumer's thread only */
    uint64_t last_full_ns;            /* full_wait_ns at read_at_ns; consumer's thread only */

    /* Counters: written by their owners, read by anybody. */
    atomic_int wanted;     /* workers with an index below this work, the others are parked */
    atomic_int slot_count; /* slots that may be filled; those after them are only emptied */
    atomic_ullong images, batches, bads, read_bytes, read_ns, decode_ns, augment_ns, source_px;
    atomic_ullong device_images, device_failed;
    atomic_ullong good_ns;    /* CPU time of the pictures in `images` that the CPU decoded */
    atomic_ullong slow_total; /* pictures that were slow, in training or elsewhere */
    atomic_ullong read_wait_ns, slot_wait_ns, wait_ns, hand_over_ns;
    atomic_ullong full_wait_ns; /* waits of workers that began when no slot was free: with more
                                   slots there would have been something to read; for the tuner */
    atomic_ullong batches_ready;
};

/* pipeline.c */

const stk_sample *stk_loader_sample(const stk_loader *l, size_t entry);
bool stk_loader_is_past_end(const stk_loader *l, uint64_t batch);

/* The consumer's next batch if it is complete, otherwise NULL; lock. Batches behind it may be
 * complete earlier. */
batch_slot *stk_loader_ready_batch(const stk_loader *l);

/* Stores the error that ends the loader, and wakes all threads; lock. */
void stk_loader_fail(stk_loader *l, const stk_error *why);

/* Frees the memory of one slot, or of all. */
void stk_loader_free_slot(const stk_loader *l, batch_slot *s);
void stk_loader_free_slots(stk_loader *l);

/* Gives up a reference; the last one frees the loader. Takes the lock. */
void stk_loader_unref(stk_loader *l);

/* tasks.c */

/* Ends a task, whatever became of it; lock. */
void stk_tasks_drop(stk_loader *l, loader_task *t);

/* Makes tasks of as many rows as slots, window and memory allow, and submits their reads; lock. */
void stk_tasks_issue(void *loader);

/* The task that a read belongs to; NULL for NULL. Not for a worker's `extra`. */
loader_task *stk_tasks_of(stk_read_ahead_item *item);

/* For the read-ahead's `arrived`: a read has ended; lock. */
void stk_tasks_read_arrived(void *loader, stk_read_ahead_item *item);

/* Ends a task whose row is filled, or that failed; lock. */
void stk_tasks_finish(stk_loader *l, loader_task *t, batch_slot *s, stk_status status,
                      const stk_error *err);

/* Everything of a row but its picture: label or targets, features, numbers of the sample. */
void stk_tasks_fill_beside(const stk_loader *l, batch_slot *s, size_t row, size_t entry);

/* Fails if the sample is not the picture that the run was begun with. */
STK_CHECKED stk_status stk_tasks_check_fingerprint(const stk_loader *l, const stk_sample *sample,
                                                   const stk_bytes *bytes, stk_error *err);

/* workers.c */

/* Starts threads until `wanted` run, or makes do with those that the system gives; lock. */
STK_CHECKED stk_status stk_workers_start(stk_loader *l, stk_error *err);

/* offload.c */

/*
 * Offers a task to the device. *taken: the device has it and ends it; otherwise the worker decodes
 * the picture. Errors are what ends the loader.
 */
STK_CHECKED stk_status stk_worker_offload(decode_worker *w, loader_task *t, batch_slot *s,
                                          bool *taken, stk_error *err);

/* Waits a moment if the next picture is left to the device, which has no room now; false: it is
 * not. lock. */
bool stk_loader_leave_to_device(stk_loader *l);

/* Gives back the core that a worker took because the device had no room, if it did; lock. */
void stk_loader_leave_core(decode_worker *w);

/* Before the threads start: how many workers may decode beside the device at first. */
void stk_loader_begin_sharing(stk_loader *l);

/* Judges how many workers may decode beside the device: `seconds` have passed since the last time,
 * in which the consumer waited `wait_s`. On the consumer's thread, without the lock. */
void stk_loader_share_cores(stk_loader *l, double seconds, double wait_s);

/* Gives the device up if it hangs; without the lock. Whoever waits for pictures calls it. */
void stk_loader_check_device(const stk_loader *l);

/* decoding.c */

/* The random numbers of a task's picture. */
stk_rng stk_worker_rng(const stk_loader *l, const loader_task *t);

/*
 * Decodes the bytes of a sample into `out`, unless reading them failed (`why`). A picture that
 * cannot be used makes *good false. Errors are what ends the loader: lack of memory, one bad
 * picture too many, closing.
 */
STK_CHECKED stk_status stk_worker_decode(decode_worker *w, const loader_task *t, size_t entry,
                                         const stk_bytes *bytes, stk_error *why, uint8_t *out,
                                         bool *good, stk_error *err);

/* slow_pictures.c */

/* CPU time after which the next picture is slow; 0: only the limit of src/image holds. The
 * same limit holds for wall time once an eighth of it was used as CPU time. */
int64_t stk_loader_picture_limit_ns(const stk_loader *l);

/* Whether the sample exceeded such a limit before; takes the lock. */
bool stk_loader_is_slow(stk_loader *l, size_t entry, int64_t limit_ns);

/* Puts a slow sample aside, outside of training; takes the lock. */
STK_CHECKED stk_status stk_loader_put_aside(stk_loader *l, size_t entry, stk_error *err);

/* The gate through which a worker passes with pictures that need much memory. */
stk_heavy_gate stk_loader_heavy_gate(decode_worker *w);

#endif
