/*
 * decode_probe.h - measures how fast this machine decodes pictures from memory.
 *
 * Without a view the rate is the upper bound of a loader: whole pictures, no reading, no crop, no
 * scaling, threads that share nothing. With a view pictures are transformed as in training.
 * Pictures may also be re-encoded first, as staging or a cache would do. Threads: one at a time.
 */
#ifndef STK_PROBE_DECODE_PROBE_H
#define STK_PROBE_DECODE_PROBE_H

#include <stddef.h>
#include <stdint.h>

#include <stoker/status.h>
#include <stoker/stop.h>

#include "image/image.h"
#include "storage/storage.h"

typedef struct stk_decode_probe stk_decode_probe;

/* The sum of all runs. */
typedef struct stk_decode_tally {
    uint64_t images;       /* decoded without an error */
    double thread_seconds; /* of decoding, summed over threads */
} stk_decode_tally;

/*
 * Reads files of the store into memory until the list or the memory for them ends. A file that
 * cannot be read is left out. If no file can be read, or after a request to stop, it fails. Later
 * runs decode on at most `threads` threads.
 */
STK_CHECKED stk_status stk_decode_probe_open(stk_decode_probe **probe, stk_store *store,
                                             const char *const *paths, size_t count, int threads,
                                             const stk_stop *stop, stk_error *err);
void stk_decode_probe_close(stk_decode_probe *probe);

/* The mean of the pictures that were read: bytes, and pixels as their headers have them. */
typedef struct stk_decode_mean {
    size_t count;
    double bytes;
    double pixels;
} stk_decode_mean;

stk_decode_mean stk_decode_probe_mean(const stk_decode_probe *probe);

/* Later runs apply this transform, which is copied; NULL: they decode whole pictures. */
STK_CHECKED stk_status stk_decode_probe_view(stk_decode_probe *probe,
                                             const stk_transform *transform, stk_error *err);

/* Re-encodes a picture; leaves `to` empty where the picture stays as it is. */
typedef stk_status (*stk_remake)(void *user, stk_image_scratch *scratch, const stk_bytes *from,
                                 stk_bytes *to, stk_error *err);

/*
 * Re-encodes the pictures on all threads, each from the bytes that were read. With `remake` NULL,
 * later runs decode these bytes again.
 * A picture that fails is not used any more; pictures beyond 256 MiB are left out until the next
 * call. *bytes is the mean size of the pictures that later runs decode.
 */
STK_CHECKED stk_status stk_decode_probe_remake(stk_decode_probe *probe, stk_remake remake,
                                               void *user, const stk_stop *stop, double *bytes,
                                               stk_error *err);

/* Decodes for `seconds`, or until a request to stop, on 1 to as many threads as open was given. */
STK_CHECKED stk_status stk_decode_probe_run(stk_decode_probe *probe, int threads, double seconds,
                                            const stk_stop *stop, stk_decode_tally *tally,
                                            stk_error *err);

#endif
