/* run_history.c - events to what a report shows. */
#include "report/state/run_history.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "report/text/event_json.h"
#include "train/times.h"

#define MOST_FOLDS 10000 /* a higher number is not ours */

/* ---- notes ---- */

static void add_note(stk_run_history *history, stk_note_kind kind, const char *what,
                     const char *why) {
    stk_notes *notes = &history->notes[kind];
    notes->total++;
    if (notes->count >= STK_HISTORY_NOTES) {
        return;
    }
    if (!STK_RESERVE(notes->items, notes->capacity, notes->count + 1)) {
        history->failed = true;
        return;
    }
    stk_note *note = &notes->items[notes->count];
    stk_event_pool *pool = &history->note_texts;
    *note = (stk_note){.at_s = history->view.now_s,
                       .what = stk_event_pool_text(pool, what != NULL ? what : ""),
                       .why = stk_event_pool_text(pool, why)};
    notes->count += note->what != NULL;
    history->failed = history->failed || pool->failed;
}

/* ---- epochs ---- */

/* Training went back: epochs that are trained again replace the rows from then on. */
static void drop_rows(stk_run_history *history, int fold, int epoch) {
    while (history->row_count > 0 && history->rows[history->row_count - 1].fold == fold &&
           history->rows[history->row_count - 1].epoch >= epoch) {
        history->row_count--;
    }
}

static void take_epoch(stk_run_history *history, const stk_event_epoch *event) {
    if (event->fold < 0 || event->fold >= MOST_FOLDS || event->epoch < 1) {
        return; /* a line of a file that somebody else wrote */
    }
    drop_rows(history, event->fold, event->epoch);
    if (!STK_RESERVE(history->rows, history->row_capacity, history->row_count + 1)) {
        history->failed = true;
        return;
    }
    history->rows[history->row_count++] = *event;
}

/* ---- samples ---- */

static const size_t gauge_offsets[] = {
    [STK_GAUGE_GPU_UTIL] = offsetof(stk_event_sample, gpu_util),
    [STK_GAUGE_SM_ACTIVITY] = offsetof(stk_event_sample, sm_activity),
    [STK_GAUGE_JPEG_UTIL] = offsetof(stk_event_sample, jpeg_util),
    [STK_GAUGE_GPU_MEMORY_USED] = offsetof(stk_event_sample, gpu_memory_used),
    [STK_GAUGE_GPU_MEMORY_TOTAL] = offsetof(stk_event_sample, gpu_memory_total),
    [STK_GAUGE_GPU_MEMORY_OWN] = offsetof(stk_event_sample, gpu_memory_own),
    [STK_GAUGE_GPU_POWER] = offsetof(stk_event_sample, gpu_power_w),
    [STK_GAUGE_GPU_TEMPERATURE] = offsetof(stk_event_sample, gpu_temperature_c),
    [STK_GAUGE_GPU_CLOCK] = offsetof(stk_event_sample, gpu_clock_mhz),
    [STK_GAUGE_PCIE_IN] = offsetof(stk_event_sample, pcie_in),
    [STK_GAUGE_PCIE_OUT] = offsetof(stk_event_sample, pcie_out),
    [STK_GAUGE_CPU] = offsetof(stk_event_sample, cpu),
    [STK_GAUGE_CPU_OWN] = offsetof(stk_event_sample, cpu_own),
    [STK_GAUGE_IOWAIT] = offsetof(stk_event_sample, iowait),
    [STK_GAUGE_RESIDENT] = offsetof(stk_event_sample, resident),
    [STK_GAUGE_MEMORY_USED] = offsetof(stk_event_sample, memory_used),
    [STK_GAUGE_DISK_READ] = offsetof(stk_event_sample, disk_read),
    [STK_GAUGE_DISK_WRITTEN] = offsetof(stk_event_sample, disk_written),
    [STK_GAUGE_NET_IN] = offsetof(stk_event_sample, net_in),
    [STK_GAUGE_NET_OUT] = offsetof(stk_event_sample, net_out),
    [STK_GAUGE_IMAGES_PER_SECOND] = offsetof(stk_event_sample, images_per_second),
    [STK_GAUGE_WAIT_FRACTION] = offsetof(stk_event_sample, wait_fraction),
};

#define OFFSETS (sizeof gauge_offsets / sizeof *gauge_offsets)

static double gauge_of(const stk_run_history *history, const stk_event_sample *event,
                       size_t gauge) {
    double value = NAN;
    if (gauge < OFFSETS) {
        memcpy(&value, (const char *)event + gauge_offsets[gauge], sizeof value);
    } else if (gauge == STK_GAUGE_LOSS || gauge == STK_GAUGE_STEP_RATE) {
        const stk_event_step *step = history->view.in_epoch ? history->view.step : NULL;
        value = step == NULL ? NAN : gauge == STK_GAUGE_LOSS ? step->loss : step->images_per_second;
    } else {
        int count = gauge == STK_GAUGE_BATCHES_READY ? event->batches_ready
                    : gauge == STK_GAUGE_SLOTS       ? event->slots
                                                     : event->workers;
        value = count >= 0 ? count : NAN;
    }
    return isfinite(value) ? value : NAN;
}

/* The mean of what is known of both. */
static double between(double a, double b) {
    return isnan(a) ? b : isnan(b) ? a : (a + b) / 2;
}

/* Half as many moments, each of twice as many samples. */
static void halve(stk_run_history *history) {
    for (size_t i = 0; i + 1 < history->moment_count; i += 2) {
        stk_moment *to = &history->moments[i / 2];
        const stk_moment *a = &history->moments[i];
        const stk_moment *b = a + 1;
        to->at_s = (a->at_s + b->at_s) / 2;
        for (size_t g = 0; g < STK_GAUGE_COUNT; g++) {
            to->values[g] = between(a->values[g], b->values[g]);
        }
    }
    history->moment_count /= 2;
    history->per_moment *= 2;
}

static void end_moment(stk_run_history *history) {
    if (history->moment_count == STK_HISTORY_MOMENTS) {
        halve(history);
    }
    stk_moment *moment = &history->moments[history->moment_count++];
    moment->at_s = history->pending.at_s / (double)history->pending_count;
    for (size_t g = 0; g < STK_GAUGE_COUNT; g++) {
        moment->values[g] =
            history->known[g] > 0 ? history->pending.values[g] / (double)history->known[g] : NAN;
    }
    history->pending = (stk_moment){0};
    history->pending_count = 0;
    memset(history->known, 0, sizeof history->known);
}

static void add_cores(stk_run_history *history, const stk_event_sample *event) {
    int count = event->core_count < STK_HISTORY_CORES ? event->core_count : STK_HISTORY_CORES;
    if (count <= 0 || event->cores == NULL) {
        return;
    }
    history->core_count = count > history->core_count ? count : history->core_count;
    history->core_samples++;
    for (int i = 0; i < count; i++) {
        history->core_sums[i] += isfinite(event->cores[i]) ? event->cores[i] : 0;
    }
}

static void take_sample(stk_run_history *history, const stk_event_sample *event) {
    double at = isfinite(event->at_s) ? event->at_s : history->view.now_s;
    if (history->moments == NULL) {
        history->moments = stk_mem_new(STK_HISTORY_MOMENTS, sizeof *history->moments);
        history->per_moment = 1;
        if (history->moments == NULL) {
            history->failed = true;
            return;
        }
    }
    history->samples++;
    history->pending.at_s += at;
    history->pending_count++;
    for (size_t g = 0; g < STK_GAUGE_COUNT; g++) {
        double value = gauge_of(history, event, g);
        if (isfinite(value)) {
            history->pending.values[g] += value;
            history->known[g]++;
        }
    }
    add_cores(history, event);
    if (event->gpu_throttled != NULL && event->gpu_throttled[0] != '\0') {
        history->throttled++;
        stk_event_pool_clear(&history->throttle_text);
        history->throttled_by = stk_event_pool_text(&history->throttle_text, event->gpu_throttled);
        history->failed = history->failed || history->throttle_text.failed;
    }
    if (history->pending_count >= history->per_moment) {
        end_moment(history);
    }
}

/* ---- the header's functions ---- */

static void run_history_take(void *user, stk_event_kind kind, const void *event) {
    stk_run_history *history = user;
    stk_run_view_take(&history->view, kind, event);
    history->failed = history->failed || history->view.failed;
    switch (kind) {
    case STK_EVENT_DECISION: {
        const stk_event_decision *decision = event;
        add_note(history, STK_NOTE_DECISION, decision->what, decision->why);
        break;
    }
    case STK_EVENT_EPOCH:
        take_epoch(history, event);
        break;
    case STK_EVENT_BAD_IMAGE: {
        const stk_event_bad_image *bad = event;
        add_note(history, STK_NOTE_BAD_IMAGE, bad->path, bad->reason);
        break;
    }
    case STK_EVENT_WARNING:
        add_note(history, STK_NOTE_WARNING, ((const stk_event_warning *)event)->text, NULL);
        break;
    case STK_EVENT_SAMPLE:
        take_sample(history, event);
        break;
    case STK_EVENT_VERDICT: {
        const stk_event_verdict *verdict = event;
        add_note(history, STK_NOTE_VERDICT, verdict->text != NULL ? verdict->text : verdict->name,
                 NULL);
        break;
    }
    default:
        break; /* the view has all that there is to store */
    }
}

void stk_run_history_open(stk_run_history *history) {
    *history = (stk_run_history){0};
    stk_event_sink_open(&history->sink, run_history_take, history);
}

void stk_run_history_close(stk_run_history *history) {
    for (int kind = 0; kind < STK_NOTE_KINDS; kind++) {
        stk_mem_free(history->notes[kind].items);
    }
    stk_event_pool_clear(&history->note_texts);
    stk_event_pool_clear(&history->throttle_text);
    stk_run_view_close(&history->view);
    stk_mem_free(history->rows);
    stk_mem_free(history->moments);
    *history = (stk_run_history){0};
}

void stk_run_history_set_time_s(void *user, double now_s) {
    ((stk_run_history *)user)->view.now_s = now_s;
}

bool stk_run_history_take_rows(stk_run_history *history, const stk_event_epoch *rows,
                               size_t count) {
    stk_event_epoch *taken = stk_mem_new(count > 0 ? count : 1, sizeof *taken);
    if (taken == NULL) {
        return false;
    }
    size_t told = 0; /* rows and events are both in the order of training: one walk finds all */
    for (size_t i = 0; i < count; i++) {
        taken[i] = rows[i];
        for (size_t k = 0; k < history->row_count; k++) {
            const stk_event_epoch *same = &history->rows[(told + k) % history->row_count];
            if (same->fold == rows[i].fold && same->epoch == rows[i].epoch) {
                taken[i].times = same->times;
                taken[i].epochs = same->epochs;
                taken[i].best = rows[i].best || same->best;
                told = (size_t)(same - history->rows) + 1;
                break;
            }
        }
    }
    stk_mem_free(history->rows);
    history->rows = taken;
    history->row_count = count;
    history->row_capacity = count > 0 ? count : 1;
    return true;
}

stk_times stk_run_history_times(const stk_run_history *history) {
    stk_times sum = {0};
    for (size_t i = 0; i < history->row_count; i++) {
        sum = stk_times_add(&sum, &history->rows[i].times);
    }
    if (history->view.in_epoch) {
        /* The epoch that is being trained. */
        sum = stk_times_add(&sum, &history->view.step->times);
    }
    return sum;
}

int stk_run_history_folds(const stk_run_history *history) {
    int folds = 1;
    for (size_t i = 0; i < history->row_count; i++) {
        folds = history->rows[i].fold >= folds ? history->rows[i].fold + 1 : folds;
    }
    return folds;
}

const stk_event_epoch *stk_run_history_best(const stk_run_history *history) {
    const stk_event_epoch *best = NULL;
    const stk_event_epoch *highest = NULL;
    for (size_t i = 0; i < history->row_count; i++) {
        const stk_event_epoch *row = &history->rows[i];
        best = row->best ? row : best;
        if (isfinite(row->val_acc1) && (highest == NULL || row->val_acc1 > highest->val_acc1)) {
            highest = row;
        }
    }
    return stk_run_history_folds(history) > 1 ? NULL : best != NULL ? best : highest;
}

stk_summary stk_run_history_summary(const stk_run_history *history, const stk_json *args,
                                    bool has_submission) {
    const stk_event_epoch *best = stk_run_history_best(history);
    const stk_run_facts facts = {.epochs_done = (int64_t)history->row_count,
                                 .bad_images = history->view.bad_images,
                                 .best_acc1 = best != NULL ? best->val_acc1 : NAN,
                                 .used_s = history->view.now_s > 0 ? history->view.now_s : NAN,
                                 .metric = stk_json_string(stk_json_get(args, "metric")),
                                 .has_submission = has_submission};
    return stk_run_summary(&history->view, &facts);
}
