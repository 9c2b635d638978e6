/*
 * epoch_probe.h - measures whole epochs of a loader with a consumer of a given rate.
 *
 * It shows what a training run gets: the time of each epoch and the share spent waiting for
 * batches. The first epoch, which may be read from remote storage, stands beside the later ones.
 * Threads: measure one thing at a time in a process.
 */
#ifndef STK_PROBE_EPOCH_PROBE_H
#define STK_PROBE_EPOCH_PROBE_H

#include "probe/loader_probe.h"

/*
 * A loader reads ahead across the end of an epoch. Bytes and cache counts are those of the time
 * during which the epoch was consumed.
 */
typedef struct stk_epoch_figures {
    int64_t epoch;  /* from 0 */
    double seconds; /* epoch 0 includes opening the loader */
    double images_per_second;
    double wait_fraction; /* share of the time without a batch, opening included */
    int64_t images;
    int64_t read_bytes; /* encoded bytes, from storage or cache */
    int64_t cache_hits;
    int64_t cache_misses;
} stk_epoch_figures;

typedef struct stk_epoch_list {
    stk_epoch_figures *items; /* owned */
    size_t count;
    size_t capacity;
} stk_epoch_list;

/*
 * Opens a loader from the options and consumes its epochs (option epochs; 0: those that begin
 * within `seconds`). The consumer holds each batch for as long as work at `rate` images per second
 * takes; 0: for no time. It does not catch up on time that it waited. In `figures`, memory is the
 * peak, and the figures of decode only are NaN. The caller frees the list with stk_epoch_list_free,
 * after an error too.
 */
STK_CHECKED stk_status stk_probe_epochs(stk_options *options, double rate, double seconds,
                                        const stk_stop *stop, const stk_events *events,
                                        stk_loader_figures *figures, stk_epoch_list *list,
                                        stk_error *err);
void stk_epoch_list_free(stk_epoch_list *list);

#endif
