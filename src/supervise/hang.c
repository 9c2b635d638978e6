/* hang.c - the ranges of what was seen in a silence, and what they mean. */
#include "supervise/hang.h"

#include <math.h>
#include <stdio.h>

#include "base/str.h"

#define IDLE_UTIL 10.0   /* percent: a GPU below it idles */
#define SPIN_UTIL 95.0   /* percent: one that never falls below it may spin */
#define SPIN_POWER 1.05  /* the most by the least: a spinning one's power does not change */
#define SPIN_INPUT 5e6   /* bytes per second: more than that is a batch on its way */
#define IDLE_CPU 2.0     /* percent of the cores */
#define IDLE_CORE 5.0    /* percent of one: of many cores two percent are more than one program */
#define SPIN_CORE 95.0   /* percent of one */
#define SPIN_CPU 2.0     /* percent of the cores: how little it changes */
#define USUAL_SILENCES 3 /* as long as the longest so far */

static void forget_samples(stk_hang *hang) {
    hang->samples = 0;
    hang->util_least = hang->util_most = NAN;
    hang->memory_least = hang->memory_most = NAN;
    hang->power_least = hang->power_most = NAN;
    hang->cpu_least = hang->cpu_most = NAN;
    hang->input_most = NAN;
}

void stk_hang_begin(stk_hang *hang, double limit_s, double now_s) {
    *hang = (stk_hang){.limit_s = limit_s,
                       .began_s = now_s,
                       .quiet_s = now_s,
                       .bytes = NAN,
                       .said = NAN,
                       .progress_s = NAN};
    forget_samples(hang);
}

/* What is not known (NaN) widens nothing: fmin and fmax leave it out. */
static void widen(double *least, double *most, double value) {
    *least = fmin(*least, value);
    *most = fmax(*most, value);
}

/* Whether something went on since the last sample; keeps what the next one is compared with. */
static bool goes_on(stk_hang *hang, double bytes, double progress_s) {
    bool speaks = isnan(hang->said) || bytes != hang->said;
    bool heard = !isnan(progress_s);
    bool moves = heard && (isnan(hang->progress_s) || progress_s > hang->progress_s);
    if (moves) {
        double before_s = isnan(hang->progress_s) ? hang->began_s : hang->progress_s;
        hang->gap_s = fmax(hang->gap_s, progress_s - before_s);
        hang->progress_s = progress_s;
    }
    hang->said = bytes;
    return moves || (speaks && !heard);
}

void stk_hang_see(stk_hang *hang, const stk_event_sample *sample, double bytes, double progress_s) {
    if (goes_on(hang, bytes, progress_s)) {
        hang->quiet_s = sample->at_s;
        hang->bytes = bytes;
        forget_samples(hang);
        return;
    }
    double memory =
        isnan(sample->gpu_memory_own) ? sample->gpu_memory_used : sample->gpu_memory_own;
    widen(&hang->util_least, &hang->util_most, sample->gpu_util);
    widen(&hang->memory_least, &hang->memory_most, memory);
    widen(&hang->power_least, &hang->power_most, sample->gpu_power_w);
    widen(&hang->cpu_least, &hang->cpu_most, sample->cpu_own);
    hang->input_most = fmax(hang->input_most, sample->pcie_in);
    hang->cores = sample->core_count > hang->cores ? sample->core_count : hang->cores;
    hang->samples++;
}

static bool cpu_idles(const stk_hang *hang) {
    double limit = hang->cores > 0 ? fmin(IDLE_CPU, IDLE_CORE / hang->cores) : IDLE_CPU;
    return hang->cpu_most < limit;
}

/* Of one that was never heard to make progress nobody knows how long it is silent as a rule. */
static bool is_unusual(const stk_hang *hang, double silence_s) {
    return !isnan(hang->progress_s) && silence_s >= USUAL_SILENCES * hang->gap_s;
}

static bool gpu_idles(const stk_hang *hang, double silence_s) {
    bool cpu_works = !isnan(hang->cpu_most) && !cpu_idles(hang);
    return hang->util_most < IDLE_UTIL && (!cpu_works || is_unusual(hang, silence_s));
}

static bool gpu_spins(const stk_hang *hang, double silence_s) {
    return hang->util_least >= SPIN_UTIL && hang->memory_least == hang->memory_most &&
           !(hang->power_most > hang->power_least * SPIN_POWER) &&
           !(hang->input_most > SPIN_INPUT) && silence_s >= USUAL_SILENCES * hang->gap_s;
}

static bool cpu_spins(const stk_hang *hang, double silence_s) {
    int cores = hang->cores > 0 ? hang->cores : 1;
    return hang->cpu_least * cores >= SPIN_CORE && hang->cpu_most - hang->cpu_least < SPIN_CPU &&
           is_unusual(hang, silence_s);
}

/* What the GPU or, without one, the command's processes do that makes it a hang; false: nothing. */
static bool says_what(const stk_hang *hang, double silence_s, char *what, size_t room) {
    if (!isnan(hang->util_most)) {
        if (gpu_idles(hang, silence_s)) {
            snprintf(what, room, "the GPU idles (util %.0f to %.0f %%)", hang->util_least,
                     hang->util_most);
            return true;
        }
        if (gpu_spins(hang, silence_s)) {
            snprintf(what, room, "the GPU spins (util %.0f to %.0f %%, its memory does not change)",
                     hang->util_least, hang->util_most);
            return true;
        }
        return false;
    }
    if (cpu_idles(hang)) {
        snprintf(what, room, "its processes use no CPU (%.1f to %.1f %% of the cores)",
                 hang->cpu_least, hang->cpu_most);
        return true;
    }
    if (cpu_spins(hang, silence_s)) {
        snprintf(what, room, "its processes only spin (%.1f to %.1f %% of the cores)",
                 hang->cpu_least, hang->cpu_most);
        return true;
    }
    return false;
}

bool stk_hang_is(const stk_hang *hang, double now_s, char *why, size_t room) {
    char what[160];
    double silence_s = now_s - hang->quiet_s;
    if (!(silence_s >= hang->limit_s) || hang->samples == 0 ||
        !says_what(hang, silence_s, what, sizeof what)) {
        return false;
    }
    bool spoke = hang->said != hang->bytes;
    snprintf(why, room, "%s for %s while %s",
             spoke ? "output but no progress" : "no output and no progress",
             stk_format_span(silence_s).text, what);
    return true;
}
