/*
 * decode_probe.h - how fast this machine decodes pictures that lie in memory, and nothing else.
 *
 * This is the ceiling that a loader is held against: whole pictures, no reading, no crop, no
 * scaling, threads that share nothing. Threads: one at a time.
 */
#ifndef STK_PROBE_DECODE_PROBE_H
#define STK_PROBE_DECODE_PROBE_H

#include <stddef.h>
#include <stdint.h>

#include <stoker/status.h>
#include <stoker/stop.h>

#include "storage/storage.h"

typedef struct stk_decode_probe stk_decode_probe;

/* What slices came to; each run adds to it. */
typedef struct stk_decode_tally {
    uint64_t images;       /* decoded in full */
    double thread_seconds; /* that decoding took, summed over threads */
} stk_decode_tally;

/*
 * Reads files below root into memory until the list or the memory kept for them ends; a file that
 * cannot be read is left out, and none at all is an error; so is a request to stop. At most
 * `threads` will decode.
 */
STK_CHECKED stk_status stk_decode_probe_open(stk_decode_probe **probe, stk_store *store,
                                             const char *const *paths, size_t count, int threads,
                                             const stk_stop *stop, stk_error *err);
void stk_decode_probe_close(stk_decode_probe *probe);

/* Decodes on this many threads (1 .. those of open) for a time, or until stop is asked for. */
STK_CHECKED stk_status stk_decode_probe_run(stk_decode_probe *probe, int threads, double seconds,
                                            const stk_stop *stop, stk_decode_tally *tally,
                                            stk_error *err);

#endif
