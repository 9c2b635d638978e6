/*
 * hang.c - ranges of samples during a silence, and what they mean.
 *
 * Samples closer together than limit_s / STK_HANG_SPANS share a span, so the ring always reaches
 * back over the whole limit.
 */
#include "supervise/decide/hang.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/str.h"

#define IDLE_UTIL 10.0  /* percent: a GPU below it idles */
#define SPIN_UTIL 95.0  /* percent: a GPU that never falls below it may spin */
#define SPIN_POWER 1.05 /* highest by lowest power: a spinning GPU stays below it */
#define SPIN_INPUT 5e6  /* bytes per second: more is a batch on its way */
#define IDLE_CPU 2.0    /* percent of the cores */
#define IDLE_CORE \
    5.0 /* percent of one core: on many cores IDLE_CPU would be more than one program */
#define SPIN_CORE 95.0   /* percent of one core */
#define SPIN_CPU 2.0     /* percent of the cores: largest range of a spinning command */
#define USUAL_SILENCES 3 /* times the longest silence before */
#define ODD_SHARE 20     /* one in this many spans is ignored at either end of the range */

void stk_hang_begin(stk_hang *hang, double limit_s, double now_s) {
    *hang = (stk_hang){.limit_s = limit_s,
                       .began_s = now_s,
                       .quiet_s = now_s,
                       .quiet_bytes = NAN,
                       .last_bytes = NAN,
                       .progress_s = NAN};
}

/* fmin and fmax leave NaN out. */
static void widen(double *least, double *most, double value) {
    *least = fmin(*least, value);
    *most = fmax(*most, value);
}

/* The span for a sample of this time. */
static stk_hang_span *span_at(stk_hang *hang, double at_s) {
    stk_hang_span *last = &hang->spans[(hang->next_span + STK_HANG_SPANS - 1) % STK_HANG_SPANS];
    if (hang->span_count > 0 && at_s - last->from_s < hang->limit_s / STK_HANG_SPANS) {
        return last;
    }
    stk_hang_span *span = &hang->spans[hang->next_span];
    *span = (stk_hang_span){at_s, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN};
    hang->next_span = (hang->next_span + 1) % STK_HANG_SPANS;
    hang->span_count += hang->span_count < STK_HANG_SPANS;
    return span;
}

/* Whether output or progress appeared since the last sample. */
static bool goes_on(stk_hang *hang, double bytes, double progress_s) {
    bool speaks = isnan(hang->last_bytes) || bytes != hang->last_bytes;
    bool has_progress = !isnan(progress_s);
    bool moves = has_progress && (isnan(hang->progress_s) || progress_s > hang->progress_s);
    if (moves) {
        double before_s = isnan(hang->progress_s) ? hang->began_s : hang->progress_s;
        hang->gap_s = fmax(hang->gap_s, progress_s - before_s);
        hang->progress_s = progress_s;
    }
    hang->last_bytes = bytes;
    return moves || (speaks && !has_progress);
}

void stk_hang_add(stk_hang *hang, const stk_event_sample *sample, double bytes, double progress_s) {
    if (goes_on(hang, bytes, progress_s)) {
        hang->quiet_s = sample->at_s;
        hang->quiet_bytes = bytes;
        hang->span_count = 0;
        return;
    }
    double memory =
        isnan(sample->gpu_memory_own) ? sample->gpu_memory_used : sample->gpu_memory_own;
    stk_hang_span *span = span_at(hang, sample->at_s);
    widen(&span->util_least, &span->util_most, sample->gpu_util);
    widen(&span->memory_least, &span->memory_most, memory);
    widen(&span->power_least, &span->power_most, sample->gpu_power_w);
    widen(&span->cpu_least, &span->cpu_most, sample->cpu_own);
    span->input_most = fmax(span->input_most, sample->pcie_in);
    hang->cores = sample->core_count > hang->cores ? sample->core_count : hang->cores;
}

/* ---- The last seconds of the silence ---- */

/* What the spans show together. */
typedef struct silence_evidence {
    stk_hang_span all; /* ranges over all spans; CPU and GPU use without outliers */
    double silence_s;
    double gap_s;
    bool has_progress; /* progress was seen before */
    int cores;
    int spans;
} silence_evidence;

/* Lowest and highest value of one figure in each span. */
typedef struct span_figures {
    double least[STK_HANG_SPANS];
    double most[STK_HANG_SPANS];
    int count;
} span_figures;

static void note(span_figures *f, double least, double most) {
    if (!isnan(least)) {
        f->least[f->count] = least;
        f->most[f->count++] = most;
    }
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The range without outliers at either end; NaN: unknown. */
static void usual_range(span_figures *f, double *least, double *most) {
    size_t count = (size_t)f->count;
    size_t odd = count / ODD_SHARE;
    qsort(f->least, count, sizeof *f->least, compare);
    qsort(f->most, count, sizeof *f->most, compare);
    *least = count > 0 ? f->least[odd] : NAN;
    *most = count > 0 ? f->most[count - 1 - odd] : NAN;
}

static silence_evidence look_back(const stk_hang *hang, double now_s) {
    silence_evidence e = {.all = {NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN},
                          .silence_s = now_s - hang->quiet_s,
                          .gap_s = hang->gap_s,
                          .has_progress = !isnan(hang->progress_s),
                          .cores = hang->cores};
    span_figures util = {.count = 0};
    span_figures cpu = {.count = 0};
    for (int i = 0; i < hang->span_count; i++) {
        const stk_hang_span *span =
            &hang->spans[(hang->next_span + STK_HANG_SPANS - 1 - i) % STK_HANG_SPANS];
        if (span->from_s <= now_s - hang->limit_s) {
            break;
        }
        note(&util, span->util_least, span->util_most);
        note(&cpu, span->cpu_least, span->cpu_most);
        widen(&e.all.memory_least, &e.all.memory_most, span->memory_least);
        widen(&e.all.memory_least, &e.all.memory_most, span->memory_most);
        widen(&e.all.power_least, &e.all.power_most, span->power_least);
        widen(&e.all.power_least, &e.all.power_most, span->power_most);
        e.all.input_most = fmax(e.all.input_most, span->input_most);
        e.spans++;
    }
    usual_range(&util, &e.all.util_least, &e.all.util_most);
    usual_range(&cpu, &e.all.cpu_least, &e.all.cpu_most);
    return e;
}

/* ---- What it means ---- */

static bool cpu_idles(const silence_evidence *e) {
    double limit = e->cores > 0 ? fmin(IDLE_CPU, IDLE_CORE / e->cores) : IDLE_CPU;
    return e->all.cpu_most < limit;
}

/* Before any progress the usual length of a silence is unknown. */
static bool is_unusual(const silence_evidence *e) {
    return e->has_progress && e->silence_s >= USUAL_SILENCES * e->gap_s;
}

static bool gpu_idles(const silence_evidence *e) {
    bool cpu_works = !isnan(e->all.cpu_most) && !cpu_idles(e);
    return e->all.util_most < IDLE_UTIL && (!cpu_works || is_unusual(e));
}

static bool gpu_spins(const silence_evidence *e) {
    const stk_hang_span *all = &e->all;
    return all->util_least >= SPIN_UTIL && all->memory_least == all->memory_most &&
           !(all->power_most > all->power_least * SPIN_POWER) && !(all->input_most > SPIN_INPUT) &&
           e->silence_s >= USUAL_SILENCES * e->gap_s;
}

static bool cpu_spins(const silence_evidence *e) {
    int cores = e->cores > 0 ? e->cores : 1;
    return e->all.cpu_least * cores >= SPIN_CORE && e->all.cpu_most - e->all.cpu_least < SPIN_CPU &&
           is_unusual(e);
}

/* Says what the GPU or, without one, the processes do that shows a hang; false: no hang. */
static bool says_what(const silence_evidence *e, char *what, size_t room) {
    const stk_hang_span *all = &e->all;
    if (!isnan(all->util_most)) {
        if (gpu_idles(e)) {
            snprintf(what, room, "the GPU idles (util %.0f to %.0f %%)", all->util_least,
                     all->util_most);
            return true;
        }
        if (gpu_spins(e)) {
            snprintf(what, room, "the GPU spins (util %.0f to %.0f %%, its memory does not change)",
                     all->util_least, all->util_most);
            return true;
        }
        return false;
    }
    if (cpu_idles(e)) {
        snprintf(what, room, "its processes use no CPU (%.1f to %.1f %% of the cores)",
                 all->cpu_least, all->cpu_most);
        return true;
    }
    if (cpu_spins(e)) {
        snprintf(what, room, "its processes only spin (%.1f to %.1f %% of the cores)",
                 all->cpu_least, all->cpu_most);
        return true;
    }
    return false;
}

bool stk_hang_is(const stk_hang *hang, double now_s, char *why, size_t room) {
    char what[160];
    double silence_s = now_s - hang->quiet_s;
    if (!(silence_s >= hang->limit_s)) {
        return false;
    }
    silence_evidence e = look_back(hang, now_s);
    if (e.spans == 0 || !says_what(&e, what, sizeof what)) {
        return false;
    }
    bool spoke = hang->last_bytes != hang->quiet_bytes;
    snprintf(why, room, "%s for %s while %s",
             spoke ? "output but no progress" : "no output and no progress",
             stk_format_span(silence_s).text, what);
    return true;
}
