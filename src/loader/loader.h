/*
 * loader.h - starts a loader on a list of samples, for the other rooms.
 *
 * stoker/loader.h describes what a loader does, and opens one on a folder. This header adds the
 * start on a list of samples, the loader's options, and the sizing that follows from them.
 */
#ifndef STK_LOADER_LOADER_H
#define STK_LOADER_LOADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <stoker/loader.h>
#include <stoker/stop.h>

#include "dataset/dataset.h"
#include "events/events.h"
#include "image/device_decoder.h"
#include "image/image.h"
#include "loader/sampler.h"
#include "options/options.h"

/* Who decodes pictures; in the order of the option's choices. */
typedef enum stk_decode {
    STK_DECODE_AUTO, /* as STK_DECODE_BOTH where a device can decode, otherwise the CPU */
    STK_DECODE_CPU,
    STK_DECODE_GPU, /* all that the device can decode; the rest is the CPU's */
    STK_DECODE_BOTH /* whoever has time */
} stk_decode;

/* Choices and help of an option whose value is a stk_decode. */
#define STK_DECODE_CHOICES "auto cpu gpu both"
#define STK_DECODE_HELP                                                                           \
    "who decodes pictures: the CPU's cores, the GPU all that it can, or both, whoever has time; " \
    "auto: both on a GPU that decodes, otherwise the CPU"

typedef struct stk_loader_options {
    int decode;             /* stk_decode */
    int64_t workers;        /* STK_AUTO_INT, or the number; 0 means 1 */
    int64_t prefetch;       /* batches per worker; STK_AUTO_INT */
    uint64_t loader_memory; /* bytes for batches and reads; STK_AUTO_BYTES: an eighth of memory */
    int sampling;           /* stk_sampling */
    double max_bad;         /* percent of the samples that may be bad; STK_AUTO_DOUBLE */
} stk_loader_options;

extern const stk_option_table stk_loader_option_table;

/* Batches without which a loader cannot go on: one is used while the other is filled. */
#define STK_LOADER_LEAST_SLOTS 2

/* The options resolved on this machine. */
typedef struct stk_loader_sizing {
    bool tune_workers; /* the number of workers was left to Stoker */
    bool tune_slots;
    int workers;      /* to start with */
    int most_workers; /* that the tuner may go to */
    int prefetch;     /* as given, or slots / workers, rounded up */
    int slots;        /* to start with */
    int most_slots;   /* that the tuner may go to */
    int room_workers; /* the most that stk_loader_resize may set; at least most_workers */
    int room_slots;
    uint64_t slot_bytes;     /* of the pictures of one batch */
    size_t most_reads;       /* pictures on their way from storage to slots, at most */
    uint64_t read_memory;    /* bytes for pictures that were read and not decoded yet */
    uint64_t picture_memory; /* bytes that decoding one picture may take; 0: no limit */
    bool cut;                /* the memory allowed fewer slots than were asked for */
} stk_loader_sizing;

stk_loader_sizing stk_loader_sizing_make(const stk_loader_options *options, size_t batch,
                                         int img_size, int cores, uint64_t memory);

/* The same for pictures that take so many bytes each in a batch, whatever their channels. */
stk_loader_sizing stk_loader_sizing_for(const stk_loader_options *given, size_t batch,
                                        uint64_t image_bytes, int cores, uint64_t memory);

/* How many bad samples of `count` stop a run, for stk_loader_config.stop_after_bad. */
size_t stk_loader_bad_limit(const stk_loader_options *options, size_t count);

/*
 * Where batch memory comes from, for example pinned memory. All zero: the heap. `take` is called
 * when a slot is first used, from any thread of the loader and with its lock held, so it must not
 * call the loader; `give` is called by stk_loader_close. When `take` returns NULL from the third
 * block on, the loader goes on with the slots it has; earlier it fails.
 */
typedef struct stk_loader_memory {
    void *user;
    void *(*take)(void *user, size_t bytes); /* NULL when there is none */
    void (*give)(void *user, void *block);
} stk_loader_memory;

/*
 * Fingerprints tell whether a picture was replaced: a checksum of its size and of parts of its
 * bytes, never 0. Both arrays have one per sample of the config; 0: not known.
 */
typedef struct stk_fingerprints {
    const uint64_t *before; /* pictures must have these; NULL: any. Counts only with `now` */
    _Atomic uint64_t *now;  /* receives the fingerprints that were seen; NULL: not wanted */
} stk_fingerprints;

/* `asked` is called between batches and while none comes; true ends the work early. NULL: never. */
typedef struct stk_halt {
    bool (*asked)(void *user);
    void *user;
} stk_halt;

/*
 * The order of a loader's samples, and where in it to begin. Whoever starts the loader decides
 * this: training and evaluation take a stk_loader_config from their caller and set its order
 * themselves.
 */
typedef struct stk_loader_order {
    bool shuffle;
    /* Leave out the last batch of an epoch when it is not full, unless it is the only one; machines
     * (config.world) then have equal shares. */
    bool drop_last;
    bool replace_bad;     /* training: the next good sample replaces a bad one */
    uint64_t epochs;      /* 0: for ever */
    uint64_t first_epoch; /* where to begin */
    size_t first_batch;
} stk_loader_order;

/* Every epoch in another order, whole batches of good pictures, for ever. */
#define STK_LOADER_TRAINING \
    ((stk_loader_order){.shuffle = true, .drop_last = true, .replace_bad = true})

typedef struct stk_loader_config {
    stk_store *store;             /* borrowed; sample paths are below its root */
    const stk_sample *samples;    /* borrowed, must outlive the loader */
    const size_t *indices;        /* which of them, borrowed; NULL: the first `count` */
    size_t count;                 /* at least 1 */
    const stk_targets *targets;   /* borrowed: of the samples' records; NULL: samples have labels */
    const stk_features *features; /* borrowed: of the samples' records; NULL: there are none */
    stk_transform transform;
    size_t batch;
    stk_loader_sizing sizing; /* a sizing of zeros: one worker, two slots */
    stk_loader_memory memory;
    /* Takes JPEGs, if it has a state; `memory` must then be the device's. Borrowed. */
    stk_device_decoder decoder;
    /* The device decodes every picture that it can, so that it depends on the picture alone who
     * decodes it; otherwise whoever has time does. */
    bool device_first;
    stk_halt halt; /* stk_loader_next then stops waiting and answers STK_ERR_STOPPED */
    /* After a stop request, stk_loader_next gives up once nothing has arrived for
     * STK_STORAGE_STOP_S. Borrowed, or NULL. */
    const stk_stop *stop;
    stk_loader_order order;
    uint64_t seed;
    /*
     * CPU time after which a picture is slow, unless the others take as long (0: never). With
     * order.replace_bad the next sample replaces it; otherwise it is put aside: its row is marked
     * bad, and stk_loader_take_put_aside returns it. The same limit holds for wall time once an
     * eighth of it was used as CPU time.
     */
    int64_t slow_after_ns;
    size_t stop_after_bad;         /* fail when this many samples are bad; 0: never */
    stk_fingerprints fingerprints; /* a picture with another fingerprint is STK_ERR_DATA */
    stk_sampling sampling;
    const double *weights; /* (count), for the call only; weighted sampling */
    size_t rank, world;    /* machines that share the samples; world 0 means 1 */
} stk_loader_config;

/* What a loader on a folder works with. All is borrowed and may be zeros. */
typedef struct stk_loader_place {
    const stk_stop *stop;       /* ends waits for storage; must outlive the loader */
    const stk_events *events;   /* observers of what is found while the loader opens */
    stk_loader_memory memory;   /* of stk_loader_config, as are the next two */
    stk_device_decoder decoder; /* without one, --decode gpu and both are refused */
    bool device_first;
} stk_loader_place;

/* stk_loader_open at a place. */
STK_CHECKED stk_status stk_loader_open_at(stk_loader **loader, stk_options *options,
                                          const stk_loader_place *place, stk_error *err);

/* Starts the threads on a list of samples; the rest is in stoker/loader.h. */
STK_CHECKED stk_status stk_loader_start(stk_loader **loader, const stk_loader_config *config,
                                        stk_error *err);

/*
 * Sets the numbers of workers and slots, within the sizing's room; 0 leaves a number as it is. Both
 * return the numbers in force. The tuner no longer changes a number that was set. Only for the
 * consumer's thread. Fewer slots keep their memory.
 */
void stk_loader_resize(stk_loader *loader, int *workers, int *slots);

/* The entries of a batch's samples: (count) indices into config.indices, or into the samples. */
const size_t *stk_loader_entries(const stk_batch *batch);

/* Takes up to `room` entries that were put aside, and returns their number;
 * stk_loader_put_aside_count says how many wait. */
size_t stk_loader_take_put_aside(stk_loader *loader, size_t *entries, size_t room);
size_t stk_loader_put_aside_count(stk_loader *loader);

/* stk_loader_describe and stk_loader_stats for code that was compiled with the library. */
stk_loader_info stk_loader_info_of(const stk_loader *loader);
stk_loader_counters stk_loader_counters_of(const stk_loader *loader);

/* The store that a loader reads from. */
stk_store *stk_loader_store(const stk_loader *loader);

#endif
