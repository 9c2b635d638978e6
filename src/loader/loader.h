/*
 * loader.h - samples to batches.
 *
 * stk_loader_open() starts worker threads that read, decode and transform samples into a ring of
 * batch slots; stk_loader_next() hands out the batches in order and stk_loader_release() gives a
 * slot back. Order and augmentation derive from (seed, epoch, index): the batches are the same for
 * any number of workers. With `epochs` 0 batches go on for ever, the next epoch's being prepared
 * while this one ends. One thread consumes; memory is bounded by the ring.
 *
 * A picture that cannot be used never ends the stream. In training its place is taken by the next
 * good sample in order; otherwise it is marked in batch.bad and its pixels are zero. Each is
 * remembered with its reason and told once by stk_loader_take_bad().
 */
#ifndef STK_LOADER_LOADER_H
#define STK_LOADER_LOADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <stoker/loader.h>

#include "dataset/dataset.h"
#include "image/image.h"
#include "options/options.h"

typedef enum stk_sampling {
    STK_SAMPLING_NATURAL,  /* every sample once per epoch */
    STK_SAMPLING_BALANCED, /* every class equally often */
    STK_SAMPLING_SQRT      /* classes by the square root of their size */
} stk_sampling;

typedef struct stk_loader_options {
    int64_t workers;        /* STK_AUTO_INT, or the number; 0 means 1 */
    int64_t prefetch;       /* batches per worker; STK_AUTO_INT */
    uint64_t loader_memory; /* bytes for batch slots; STK_AUTO_BYTES: an eighth of the memory */
    int sampling;           /* stk_sampling */
    double max_bad;         /* percent of the samples that may be bad */
} stk_loader_options;

extern const stk_option_table stk_loader_option_table;

/* What the options come to on this machine. */
typedef struct stk_loader_plan {
    int workers;
    int prefetch;
    int slots; /* workers x prefetch, cut to the memory; at least 2 */
    bool cut;  /* the memory allowed fewer slots than were asked for */
} stk_loader_plan;

stk_loader_plan stk_loader_plan_make(const stk_loader_options *options, size_t batch, int img_size,
                                     int cores, uint64_t memory);

typedef struct stk_loader_config {
    const char *root;          /* what sample paths are below; borrowed */
    const stk_sample *samples; /* borrowed, must outlive the loader */
    const size_t *indices;     /* which of them, borrowed; NULL: the first `count` */
    size_t count;              /* at least 1 */
    stk_transform transform;
    size_t batch;
    int workers;
    int slots;
    uint64_t seed;
    bool shuffle;
    bool drop_last;   /* leave out the last batch of an epoch when it is not full */
    bool replace_bad; /* training: the next good sample takes a bad one's place */
    uint64_t epochs;  /* 0: for ever */
} stk_loader_config;

/* Starts the threads on a list of samples; the rest is in stoker/loader.h. */
STK_CHECKED stk_status stk_loader_start(stk_loader **loader, const stk_loader_config *config,
                                        stk_error *err);

#endif
