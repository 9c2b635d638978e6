/*
 * stoker/loader.h - pictures to batches: the feed of a training loop, usable without the rest.
 *
 * The simplest use:
 *
 *     stk_error err = {0};
 *     stk_options *options = NULL;
 *     stk_loader *loader = NULL;
 *     const stk_batch *batch = NULL;
 *     if (stk_options_for_loader(&options, &err) == STK_OK &&
 *         stk_options_set(options, "data", "pictures", &err) == STK_OK &&
 *         stk_options_set(options, "batch", "64", &err) == STK_OK &&
 *         stk_loader_open(&loader, options, &err) == STK_OK) {
 *         while (stk_loader_next(loader, &batch, &err) == STK_OK && batch != NULL) {
 *             train_on(batch->images, batch->labels, batch->count);
 *             stk_loader_release(loader, batch);
 *         }
 *     }
 *     stk_loader_close(loader);
 *     stk_options_free(options);
 *
 * Threads read, decode and augment ahead of the consumer into a ring of batch slots; the next
 * epoch is prepared while this one ends. Order and augmentation derive from (seed, epoch,
 * position): the bytes are the same for any number of threads, and starting anywhere costs nothing.
 * One thread consumes; stk_loader_stats may be called from any thread at any time.
 *
 * An unusable picture does not end the stream. In training the next good picture replaces it;
 * otherwise it is marked in batch->bad and its pixels are zero. When more pictures are bad than the
 * option max-bad allows, stk_loader_next fails.
 *
 * For other languages: every struct here is plain data without bit fields or unions, `bool` is one
 * byte, and the library keeps owning all memory that it hands out.
 */
#ifndef STOKER_LOADER_H
#define STOKER_LOADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <stoker/options.h>
#include <stoker/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct stk_loader stk_loader;

/* One batch. It belongs to the consumer from next to release; the loader keeps the memory. */
typedef struct stk_batch {
    const uint8_t *images; /* (count, img_size, img_size, channels); three channels are RGB */
    const int *labels;     /* (count); -1 where the label is not known */
    const size_t *samples; /* (count); the number of each sample in the data set */
    const bool *bad;       /* (count); true: the picture could not be used, its pixels are 0 */
    size_t count;          /* the last batch of an epoch may have fewer than the others */
    uint64_t epoch;        /* from 0 */
    size_t index;          /* of the batch in the epoch, from 0 */
    /* Where the data set has several labels or numbers instead of one class: (count, outputs), as a
     * network learns them: 0 and 1, or numbers of mean 0 and deviation 1; NaN where not known.
     * Otherwise NULL. */
    const float *targets;
    const float
        *features; /* (count, features): numbers beside the pictures; NULL: there are none */
} stk_batch;

/* The properties of an open loader; they do not change. */
typedef struct stk_loader_info {
    size_t size;              /* sizeof this struct; set by the caller */
    size_t samples;           /* in this loader's share of the split */
    size_t batches_per_epoch; /* of this loader */
    size_t batch;             /* samples of a full batch */
    int img_size;             /* px; side of the square pictures */
    int classes;              /* 0 when labels are not known */
    int channels;             /* of the pictures */
} stk_loader_info;

/* Where the time went, summed since the loader was opened. */
typedef struct stk_loader_counters {
    size_t size;              /* sizeof this struct; set by the caller */
    uint64_t images;          /* that went into batches */
    uint64_t batches;         /* handed out */
    uint64_t bad;             /* samples that could not be used, each counted once */
    uint64_t read_bytes;      /* of encoded pictures */
    uint64_t read_ns;         /* storage, summed over reads */
    uint64_t decode_ns;       /* decoding and scaling, summed over workers */
    uint64_t augment_ns;      /* augmentation, summed over workers */
    uint64_t read_wait_ns;    /* workers had no bytes, summed over workers: storage is slow */
    uint64_t slot_wait_ns;    /* workers had no slot, summed over workers: the consumer is slow */
    uint64_t wait_ns;         /* the consumer had no batch: the loader is slow */
    uint64_t hand_over_ns;    /* part of wait_ns in which the batch was complete already */
    uint64_t source_px;       /* of the pictures decoded, as they are stored: width times height */
    uint64_t reads_in_flight; /* now */
    uint64_t reads_ready;     /* now: read and not decoded yet */
    uint64_t batches_ready;   /* now: complete and not handed out yet */
    int workers;              /* now: threads that decode */
    int readers;              /* now: threads that read */
    int slots;                /* now: batches that fit into the ring */
    uint64_t device_images;   /* part of `images`: decoded on the device */
    uint64_t device_failed;   /* pictures that the device gave back to the CPU */
} stk_loader_counters;

/*
 * The options of a loader at their defaults; docs/options.md has them under `bench loader`. The
 * options are read by stk_loader_open and not needed afterwards.
 */
STK_API STK_CHECKED stk_status stk_options_for_loader(stk_options **options, stk_error *err);

STK_API STK_CHECKED stk_status stk_loader_open(stk_loader **loader, stk_options *options,
                                               stk_error *err);

/*
 * Ends the threads and frees everything, batches that were not released too; NULL is fine. What is
 * being decoded is cancelled. A thread that a library holds for more than a tenth of a second is
 * abandoned: it frees what it uses when it returns.
 */
STK_API void stk_loader_close(stk_loader *loader);

/*
 * Waits for the next batch and hands it out; *batch is NULL after the last one. The consumer may
 * hold at least two batches at a time. Asking for another while it holds all slots is
 * STK_ERR_USAGE.
 */
STK_API STK_CHECKED stk_status stk_loader_next(stk_loader *loader, const stk_batch **batch,
                                               stk_error *err);
STK_API void stk_loader_release(stk_loader *loader, const stk_batch *batch);

/*
 * Goes to a batch of an epoch, both from 0; what is being prepared is dropped and batches that are
 * held become invalid. The stream continues as if the loader had got there by itself.
 */
STK_API STK_CHECKED stk_status stk_loader_seek(stk_loader *loader, uint64_t epoch, size_t batch,
                                               stk_error *err);

/*
 * From now on the loader draws samples, with repetitions, in proportion to their weights.
 * weights[n] is the weight of sample number n (as in stk_batch.samples), 0 or more; `count` is
 * above every such number. The stream begins again with epoch 0, which is as long as before;
 * stk_loader_seek works as before.
 */
STK_API STK_CHECKED stk_status stk_loader_weigh(stk_loader *loader, const double *weights,
                                                size_t count, stk_error *err);

/* Both fill a struct whose `size` is set. stk_loader_stats never waits for other threads. */
STK_API STK_CHECKED stk_status stk_loader_describe(const stk_loader *loader, stk_loader_info *info,
                                                   stk_error *err);
STK_API STK_CHECKED stk_status stk_loader_stats(const stk_loader *loader,
                                                stk_loader_counters *counters, stk_error *err);

/* The path of a sample below the data set's folder; NULL: there is no such sample. */
STK_API const char *stk_loader_path(const stk_loader *loader, size_t sample);

/* The name of a class, 0 .. classes-1; NULL for any other number. */
STK_API const char *stk_loader_class(const stk_loader *loader, int label);

/*
 * Calls `tell` for each bad sample that was not told before. The texts live as long as the loader.
 */
STK_API void stk_loader_take_bad(stk_loader *loader,
                                 void (*tell)(void *user, const char *path, const char *reason),
                                 void *user);

#ifdef __cplusplus
}
#endif

#endif
