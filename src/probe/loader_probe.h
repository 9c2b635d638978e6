/*
 * loader_probe.h - measures a loader, and beside it the decode-only upper bound, in one run.
 *
 * The loader is opened through the public interface (stoker/loader.h). The consumer releases every
 * batch at once. Threads: measure one thing at a time in a process, since memory and processor time
 * are the process's.
 */
#ifndef STK_PROBE_LOADER_PROBE_H
#define STK_PROBE_LOADER_PROBE_H

#include <stdint.h>

#include <stoker/loader.h>
#include <stoker/stop.h>

#include "events/events.h"

/* Rates are the loader's unless their names say decode_only. */
typedef struct stk_loader_figures {
    double images_per_second;
    double images_per_second_per_core;
    double decode_only_per_second_per_core; /* whole pictures out of memory, on as many threads */
    double ceiling_share;                   /* the loader's rate per core over decode only's */
    double first_batch_ms;                  /* from opening the loader to the first batch */
    int64_t rss_bytes;                      /* peak resident memory before decode-only began */
    int64_t workers;                        /* threads that decode, at the end */
    int64_t readers;                        /* threads that read, at the end */
    int64_t slots;                          /* batches that the ring holds, at the end */
    int64_t cores;                          /* cores that the workers can use */
    double cores_busy; /* processor seconds per second; less than `cores` when others use them */
    /* The same rates by processor time: a neighbour on the machine disturbs these little. */
    double images_per_cpu_second;
    double decode_only_per_cpu_second;
    int64_t samples;              /* of the loader's data */
    int64_t batch;                /* pictures of a full batch */
    int64_t img_size;             /* px */
    int64_t images;               /* images in the measured batches */
    double seconds;               /* in which these images were made */
    int64_t decode_images;        /* images of decode only */
    double decode_seconds;        /* summed over threads */
    double read_us;               /* per picture, as the loader counts: storage */
    double decode_us;             /* decoding and scaling */
    double augment_us;            /* augmentation */
    double read_wait_us;          /* time in which a worker had no bytes */
    double cpu_seconds_per_image; /* processor time of the process */
    double device_share;          /* of the pictures: decoded on the device; NaN: it decodes none */
    int jpeg_engines;    /* of the device; 0: its processors decode, -1: it does not decode */
    char device[16];     /* that decodes: "cuda:0"; "": none */
    int64_t bad;         /* pictures that could not be used */
    char first_bad[512]; /* a bad picture and the reason; "": none is bad */
} stk_loader_figures;

/*
 * Opens a loader from the options and measures it until its slices last `seconds` together, which
 * must be above 0. A request to stop gives STK_ERR_STOPPED. `events`, which may be NULL, receive
 * what was found in the data set.
 */
STK_CHECKED stk_status stk_probe_loader(stk_options *options, double seconds, const stk_stop *stop,
                                        const stk_events *events, stk_loader_figures *figures,
                                        stk_error *err);

/* Fills in the threads, slots, sizes and bad pictures of an open loader. */
void stk_loader_figures_describe(stk_loader *loader, stk_loader_figures *figures);

#endif
