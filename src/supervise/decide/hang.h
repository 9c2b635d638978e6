/*
 * hang.h - whether a command hangs. Pure.
 *
 * It hangs when for so long neither its output nor its progress went on while the GPU either idles
 * or spins (busy all the time at a power and memory that do not change and without input, as in a
 * collective whose other side is gone), or, without a GPU, while its processes used no CPU or did
 * nothing but spin. Output that brings no progress counts as silence once progress was heard
 * before.
 *
 * The last `limit_s` seconds of the silence are judged, and of their samples those in between: the
 * highest and the lowest twentieth of what CPU and GPU were used do not count. So neither the end
 * of the work before the silence nor a thread that wakes up now and then hides a hang.
 *
 * What works in silence must not be taken for it: where only the CPU is busy (data are prepared, an
 * epoch without a word), and where something spins, the silence must also be three times as long as
 * any between two steps of progress before, and a CPU that works before there was any is no hang.
 */
#ifndef STK_SUPERVISE_DECIDE_HANG_H
#define STK_SUPERVISE_DECIDE_HANG_H

#include <stdbool.h>
#include <stddef.h>

#include <stoker/events.h>

/* Samples of this many spans of a silence are told apart. */
#define STK_HANG_SPANS 256

/* The samples of a short span of a silence, as ranges. NaN: not known. */
typedef struct stk_hang_span {
    double from_s;                    /* when the first was taken; time of the run */
    double util_least, util_most;     /* percent */
    double memory_least, memory_most; /* bytes */
    double power_least, power_most;   /* watts */
    double input_most;                /* bytes per second to the GPU */
    double cpu_least, cpu_most;       /* percent of the cores, by the command */
} stk_hang_span;

/* What is seen of the command since something last went on. Starts with stk_hang_begin. */
typedef struct stk_hang {
    double limit_s;    /* INFINITY: never */
    double began_s;    /* when the command did; time of the run */
    double quiet_s;    /* since when nothing went on; the same */
    double bytes;      /* of output when it did */
    double said;       /* of output at the last sample; NaN: there was none */
    double progress_s; /* when progress was last heard; NaN: never */
    double gap_s;      /* the longest time between two steps of it, or before the first */
    int cores;         /* 0: not known */
    stk_hang_span spans[STK_HANG_SPANS]; /* of the silence; a ring */
    int span_count;                      /* of these, that are there */
    int next_span;                       /* where the next one goes */
} stk_hang;

void stk_hang_begin(stk_hang *hang, double limit_s, double now_s);

/* A sample of the machine, with the bytes of output so far and when progress was last heard (NaN:
 * never). */
void stk_hang_add(stk_hang *hang, const stk_event_sample *sample, double bytes, double progress_s);

/* True: it hangs; `why` says what was seen. */
bool stk_hang_is(const stk_hang *hang, double now_s, char *why, size_t room);

#endif
