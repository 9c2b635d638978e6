/*
 * hang.h - decides whether a command hangs. Pure.
 *
 * A command hangs when neither output nor progress has appeared for `limit_s` and
 *   - its GPU idles,
 *   - or its GPU spins: fully busy at constant power and memory and without input, as in a
 *     collective operation whose other side is gone,
 *   - or, without a GPU, its processes use no CPU or only spin.
 * Once progress has been seen, output without progress counts as silence.
 *
 * Only the last `limit_s` seconds of the silence are judged, without the highest and the lowest
 * twentieth of CPU and GPU use. So neither the end of the work before the silence nor a thread that
 * wakes up now and then hides a hang.
 *
 * Some commands work in silence: they prepare data, or print nothing during an epoch. So where only
 * the CPU is busy, or something spins, the silence must also be three times as long as the longest
 * silence between two steps of progress; before any progress, a busy CPU is never a hang.
 */
#ifndef STK_SUPERVISE_DECIDE_HANG_H
#define STK_SUPERVISE_DECIDE_HANG_H

#include <stdbool.h>
#include <stddef.h>

#include <stoker/events.h>

/* Length of the ring of spans. */
#define STK_HANG_SPANS 256

/* Ranges of the samples in a short part of a silence. NaN: unknown. */
typedef struct stk_hang_span {
    double from_s;                    /* time of the first sample, in the run */
    double util_least, util_most;     /* percent */
    double memory_least, memory_most; /* bytes */
    double power_least, power_most;   /* watts */
    double input_most;                /* bytes per second to the GPU */
    double cpu_least, cpu_most;       /* percent of the cores, used by the command */
} stk_hang_span;

/* State of the present silence. Times are seconds since the start of the run. */
typedef struct stk_hang {
    double limit_s;     /* silence that may be a hang; INFINITY: never */
    double began_s;     /* when the command started */
    double quiet_s;     /* when the silence began */
    double quiet_bytes; /* of output when the silence began; NaN: no sample yet */
    double last_bytes;  /* of output at the last sample; NaN: no sample yet */
    double progress_s;  /* last progress; NaN: never */
    double gap_s;       /* longest time between two steps of progress, or before the first */
    int cores;          /* 0: unknown */
    stk_hang_span spans[STK_HANG_SPANS]; /* of the silence; ring */
    int span_count;                      /* valid spans */
    int next_span;                       /* index of the next one */
} stk_hang;

void stk_hang_begin(stk_hang *hang, double limit_s, double now_s);

/* Adds a sample of the machine, with the bytes of output so far and the time of the last progress
 * (NaN: never). */
void stk_hang_add(stk_hang *hang, const stk_event_sample *sample, double bytes, double progress_s);

/* Whether the command hangs; `why` says what was seen. */
bool stk_hang_is(const stk_hang *hang, double now_s, char *why, size_t room);

#endif
