/* record.c - events to what a report shows. */
#include "report/state/record.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "base/mem.h"

#define MOST_FOLDS 10000 /* a higher number is not ours */

/* ---- texts ---- */

static void clear_pool(stk_text_pool *pool) {
    for (size_t i = 0; i < pool->count; i++) {
        stk_mem_free(pool->texts[i]);
    }
    pool->count = 0;
}

static void free_pool(stk_text_pool *pool) {
    clear_pool(pool);
    stk_mem_free(pool->texts);
    *pool = (stk_text_pool){0};
}

/* A copy that lives as its pool does; NULL for NULL, and without memory. */
static const char *keep(stk_record *record, stk_text_pool *pool, const char *text) {
    if (text == NULL) {
        return NULL;
    }
    char **grown = stk_mem_grow(pool->texts, &pool->capacity, pool->count + 1, sizeof *grown);
    char *copy = stk_mem_strdup(text);
    pool->texts = grown != NULL ? grown : pool->texts;
    if (grown == NULL || copy == NULL) {
        stk_mem_free(copy);
        record->failed = true;
        return NULL;
    }
    pool->texts[pool->count++] = copy;
    return copy;
}

static void add_note(stk_record *record, stk_note_kind kind, const char *what, const char *why) {
    stk_notes *notes = &record->notes[kind];
    notes->told++;
    if (notes->count >= STK_RECORD_NOTES) {
        return;
    }
    stk_note *grown = stk_mem_grow(notes->items, &notes->capacity, notes->count + 1, sizeof *grown);
    if (grown == NULL) {
        record->failed = true;
        return;
    }
    notes->items = grown;
    stk_note *note = &notes->items[notes->count];
    *note = (stk_note){.at_s = record->now_s,
                       .what = keep(record, &record->note_texts, what != NULL ? what : ""),
                       .why = keep(record, &record->note_texts, why)};
    notes->count += note->what != NULL;
}

static void forget_attempts(stk_record *record) {
    record->attempt_count = 0;
    clear_pool(&record->attempt_texts);
}

/* ---- callbacks ---- */

static void on_start(void *user, const stk_event_start *event) {
    stk_record *record = user;
    stk_text_pool *pool = &record->start_texts;
    clear_pool(pool);
    record->start = *event;
    record->start.chosen = keep(record, pool, event->chosen);
    record->start.run_dir = keep(record, pool, event->run_dir);
    record->start.data = keep(record, pool, event->data);
    record->start.model = keep(record, pool, event->model);
    record->start.device = keep(record, pool, event->device);
    record->start.precision = keep(record, pool, event->precision);
    record->start.device_name = keep(record, pool, event->device_name);
    record->started = true;
    record->stopped = false; /* the run was resumed */
    forget_attempts(record);
}

static bool is_same(const char *a, const char *b) {
    return a != NULL && b != NULL ? strcmp(a, b) == 0 : a == b;
}

static void on_plan(void *user, const stk_event_plan *event) {
    stk_record *record = user;
    record->plan = *event;
    record->planned = true;
}

static void on_decision(void *user, const stk_event_decision *event) {
    add_note(user, STK_NOTE_DECISION, event->what, event->why);
}

static void on_step(void *user, const stk_event_step *event) {
    stk_record *record = user;
    record->step = *event;
    record->stepped = true;
}

/* Training went back: epochs that are trained again take the place of those before. */
static void drop_rows(stk_record *record, int fold, int epoch) {
    while (record->row_count > 0 && record->rows[record->row_count - 1].fold == fold &&
           record->rows[record->row_count - 1].epoch >= epoch) {
        record->row_count--;
    }
}

static void on_epoch(void *user, const stk_event_epoch *event) {
    stk_record *record = user;
    record->stepped = false;
    if (event->fold < 0 || event->fold >= MOST_FOLDS || event->epoch < 1) {
        return; /* a line of a file that somebody else wrote */
    }
    drop_rows(record, event->fold, event->epoch);
    stk_event_epoch *grown = stk_mem_grow(record->rows, &record->row_capacity,
                                          record->row_count + 1, sizeof *record->rows);
    if (grown == NULL) {
        record->failed = true;
        return;
    }
    record->rows = grown;
    record->rows[record->row_count++] = *event;
}

static void on_bad_image(void *user, const stk_event_bad_image *event) {
    add_note(user, STK_NOTE_BAD_IMAGE, event->path, event->reason);
}

static void on_warning(void *user, const char *text) {
    add_note(user, STK_NOTE_WARNING, text, NULL);
}

static void on_verdict(void *user, const stk_event_verdict *event) {
    stk_record *record = user;
    stk_text_pool *pool = &record->verdict_texts;
    clear_pool(pool);
    record->verdict = *event;
    record->verdict.name = keep(record, pool, event->name);
    record->verdict.text = keep(record, pool, event->text);
    record->verdict.evidence = keep(record, pool, event->evidence);
    record->verdict.batch = keep(record, pool, event->batch);
    for (int i = 0; i < event->remedy_count; i++) {
        record->verdict.remedies[i].text = keep(record, pool, event->remedies[i].text);
        record->verdict.remedies[i].flags = keep(record, pool, event->remedies[i].flags);
    }
    record->judged = true;
    record->verdict_s = record->now_s;
    add_note(record, STK_NOTE_VERDICT, event->text != NULL ? event->text : event->name, NULL);
}

/* Takes an attempt; its end takes the place of its start. */
static void take_attempt(stk_record *record, const stk_event_attempt *event) {
    int at = 0;
    while (at < record->attempt_count && !(record->attempts[at].number == event->number &&
                                           is_same(record->attempts[at].part, event->part))) {
        at++;
    }
    if (record->attempts == NULL) {
        record->attempts = stk_mem_new(STK_RECORD_ATTEMPTS, sizeof *record->attempts);
    }
    bool news = at == record->attempt_count || (event->ended && !record->attempts[at].ended);
    if (record->attempts == NULL || at == STK_RECORD_ATTEMPTS || !news) {
        record->failed = record->failed || record->attempts == NULL;
        return;
    }
    stk_text_pool *pool = &record->attempt_texts;
    stk_event_attempt *to = &record->attempts[at];
    *to = *event;
    to->part = keep(record, pool, event->part);
    to->command = keep(record, pool, event->command);
    to->verdict = keep(record, pool, event->verdict);
    to->stop_reason = keep(record, pool, event->stop_reason);
    record->attempt_count += at == record->attempt_count;
}

static void on_attempt(void *user, const stk_event_attempt *event) {
    stk_record *record = user;
    take_attempt(record, event);
    record->stepped = false; /* what the one before said of itself is over */
}

static void on_stop(void *user, const stk_summary *summary) {
    stk_record *record = user;
    stk_text_pool *pool = &record->summary_texts;
    clear_pool(pool);
    record->summary = *summary;
    record->summary.status = keep(record, pool, summary->status);
    record->summary.stop_reason = keep(record, pool, summary->stop_reason);
    record->summary.metric = keep(record, pool, summary->metric);
    record->summary.device = keep(record, pool, summary->device);
    record->summary.precision = keep(record, pool, summary->precision);
    record->summary.verdict = keep(record, pool, summary->verdict);
    record->summary.submission = keep(record, pool, summary->submission);
    record->summary.command = keep(record, pool, summary->command);
    record->summary.estimate = keep(record, pool, summary->estimate);
    if (summary->attempt_count > 0) { /* it knows all of them, however much the events lack */
        forget_attempts(record);
    }
    for (int i = 0; i < summary->attempt_count; i++) {
        take_attempt(record, &summary->attempts[i]);
    }
    record->stopped = true;
}

/* ---- samples ---- */

static const size_t gauge_offsets[] = {
    [STK_GAUGE_GPU_UTIL] = offsetof(stk_event_sample, gpu_util),
    [STK_GAUGE_SM_ACTIVITY] = offsetof(stk_event_sample, sm_activity),
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

static double gauge_of(const stk_record *record, const stk_event_sample *event, size_t gauge) {
    double value = NAN;
    if (gauge < OFFSETS) {
        memcpy(&value, (const char *)event + gauge_offsets[gauge], sizeof value);
    } else if (gauge == STK_GAUGE_LOSS || gauge == STK_GAUGE_STEP_RATE) {
        const stk_event_step *step = &record->step;
        value = !record->stepped          ? NAN
                : gauge == STK_GAUGE_LOSS ? step->loss
                                          : step->images_per_second;
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
static void halve(stk_record *record) {
    for (size_t i = 0; i + 1 < record->moment_count; i += 2) {
        stk_moment *to = &record->moments[i / 2];
        const stk_moment *a = &record->moments[i];
        const stk_moment *b = a + 1;
        to->at_s = (a->at_s + b->at_s) / 2;
        for (size_t g = 0; g < STK_GAUGE_COUNT; g++) {
            to->values[g] = between(a->values[g], b->values[g]);
        }
    }
    record->moment_count /= 2;
    record->per_moment *= 2;
}

static void end_moment(stk_record *record) {
    if (record->moment_count == STK_RECORD_MOMENTS) {
        halve(record);
    }
    stk_moment *moment = &record->moments[record->moment_count++];
    moment->at_s = record->pending.at_s / (double)record->pending_count;
    for (size_t g = 0; g < STK_GAUGE_COUNT; g++) {
        moment->values[g] =
            record->known[g] > 0 ? record->pending.values[g] / (double)record->known[g] : NAN;
    }
    record->pending = (stk_moment){0};
    record->pending_count = 0;
    memset(record->known, 0, sizeof record->known);
}

static void add_cores(stk_record *record, const stk_event_sample *event) {
    int count = event->core_count < STK_RECORD_CORES ? event->core_count : STK_RECORD_CORES;
    if (count <= 0 || event->cores == NULL) {
        return;
    }
    record->core_count = count > record->core_count ? count : record->core_count;
    record->core_samples++;
    for (int i = 0; i < count; i++) {
        record->core_sums[i] += isfinite(event->cores[i]) ? event->cores[i] : 0;
    }
}

static void on_sample(void *user, const stk_event_sample *event) {
    stk_record *record = user;
    double at = isfinite(event->at_s) ? event->at_s : record->now_s;
    if (record->moments == NULL) {
        record->moments = stk_mem_new(STK_RECORD_MOMENTS, sizeof *record->moments);
        record->per_moment = 1;
        if (record->moments == NULL) {
            record->failed = true;
            return;
        }
    }
    record->samples++;
    record->pending.at_s += at;
    record->pending_count++;
    for (size_t g = 0; g < STK_GAUGE_COUNT; g++) {
        double value = gauge_of(record, event, g);
        if (isfinite(value)) {
            record->pending.values[g] += value;
            record->known[g]++;
        }
    }
    add_cores(record, event);
    if (event->gpu_throttled != NULL && event->gpu_throttled[0] != '\0') {
        record->throttled++;
        clear_pool(&record->throttle_texts);
        record->throttled_by = keep(record, &record->throttle_texts, event->gpu_throttled);
    }
    if (record->pending_count >= record->per_moment) {
        end_moment(record);
    }
}

/* ---- the header's functions ---- */

void stk_record_open(stk_record *record) {
    *record = (stk_record){0};
    record->observer = (stk_observer){
        .user = record,
        .start = on_start,
        .plan = on_plan,
        .decision = on_decision,
        .step = on_step,
        .epoch = on_epoch,
        .bad_image = on_bad_image,
        .warning = on_warning,
        .stop = on_stop,
        .sample = on_sample,
        .verdict = on_verdict,
        .attempt = on_attempt,
    };
}

void stk_record_close(stk_record *record) {
    for (int kind = 0; kind < STK_NOTE_KINDS; kind++) {
        stk_mem_free(record->notes[kind].items);
    }
    free_pool(&record->start_texts);
    free_pool(&record->verdict_texts);
    free_pool(&record->summary_texts);
    free_pool(&record->attempt_texts);
    free_pool(&record->note_texts);
    free_pool(&record->throttle_texts);
    stk_mem_free(record->rows);
    stk_mem_free(record->attempts);
    stk_mem_free(record->moments);
    *record = (stk_record){0};
}

void stk_record_at(void *user, double now_s) {
    ((stk_record *)user)->now_s = now_s;
}

bool stk_record_take_rows(stk_record *record, const stk_event_epoch *rows, size_t count) {
    stk_event_epoch *taken = stk_mem_new(count > 0 ? count : 1, sizeof *taken);
    if (taken == NULL) {
        return false;
    }
    size_t told = 0; /* both are in the order of training, so that one walk finds all pairs */
    for (size_t i = 0; i < count; i++) {
        taken[i] = rows[i];
        for (size_t k = 0; k < record->row_count; k++) {
            const stk_event_epoch *same = &record->rows[(told + k) % record->row_count];
            if (same->fold == rows[i].fold && same->epoch == rows[i].epoch) {
                taken[i].times = same->times;
                taken[i].epochs = same->epochs;
                taken[i].best = rows[i].best || same->best;
                told = (size_t)(same - record->rows) + 1;
                break;
            }
        }
    }
    stk_mem_free(record->rows);
    record->rows = taken;
    record->row_count = count;
    record->row_capacity = count > 0 ? count : 1;
    return true;
}

static double known(double seconds) {
    return isfinite(seconds) ? seconds : 0;
}

static void add_times(stk_times *sum, const stk_times *times) {
    sum->read_s += known(times->read_s);
    sum->decode_s += known(times->decode_s);
    sum->queue_s += known(times->queue_s);
    sum->copy_s += known(times->copy_s);
    sum->compute_s += known(times->compute_s);
    sum->update_s += known(times->update_s);
    sum->validate_s += known(times->validate_s);
    sum->checkpoint_s += known(times->checkpoint_s);
    sum->other_s += known(times->other_s);
    sum->total_s += known(times->total_s);
}

stk_times stk_record_times(const stk_record *record) {
    stk_times sum = {0};
    for (size_t i = 0; i < record->row_count; i++) {
        add_times(&sum, &record->rows[i].times);
    }
    if (record->stepped) {
        add_times(&sum, &record->step.times); /* of the epoch that is being trained */
    }
    return sum;
}

int stk_record_folds(const stk_record *record) {
    int folds = 1;
    for (size_t i = 0; i < record->row_count; i++) {
        folds = record->rows[i].fold >= folds ? record->rows[i].fold + 1 : folds;
    }
    return folds;
}

const stk_event_epoch *stk_record_best(const stk_record *record) {
    const stk_event_epoch *best = NULL;
    const stk_event_epoch *highest = NULL;
    for (size_t i = 0; i < record->row_count; i++) {
        const stk_event_epoch *row = &record->rows[i];
        best = row->best ? row : best;
        if (isfinite(row->val_acc1) && (highest == NULL || row->val_acc1 > highest->val_acc1)) {
            highest = row;
        }
    }
    return stk_record_folds(record) > 1 ? NULL : best != NULL ? best : highest;
}

/* Means over the epochs, by how long they took. */
static void add_speed(const stk_record *record, stk_summary *summary) {
    double seconds = 0;
    double images = 0;
    double waited = 0;
    for (size_t i = 0; i < record->row_count; i++) {
        const stk_event_epoch *row = &record->rows[i];
        if (row->seconds > 0 && isfinite(row->images_per_second) && isfinite(row->wait_fraction)) {
            seconds += row->seconds;
            images += row->seconds * row->images_per_second;
            waited += row->seconds * row->wait_fraction;
        }
    }
    summary->images_per_second = seconds > 0 ? images / seconds : NAN;
    summary->wait_fraction = seconds > 0 ? waited / seconds : NAN;
}

const char *stk_record_command(const stk_record *record) {
    const char *first = record->attempt_count > 0 ? record->attempts[0].command : NULL;
    return record->stopped && record->summary.command != NULL ? record->summary.command : first;
}

/* What only a supervised command has; of epochs it has those before the one that it said last. */
static void add_command(const stk_record *record, stk_summary *summary) {
    summary->command = stk_record_command(record);
    summary->attempts = record->attempts;
    summary->attempt_count = record->attempt_count;
    if (summary->command == NULL || record->stopped) {
        return;
    }
    const stk_event_attempt *last = &record->attempts[record->attempt_count - 1];
    summary->exit_code = -1;
    summary->bad_images = -1;
    summary->epochs_done = record->step.epoch > 0 ? record->step.epoch - 1 : -1;
    summary->images_per_second = last->ended       ? last->images_per_second
                                 : record->stepped ? record->step.images_per_second
                                                   : NAN;
    summary->batch = last->batch >= 0 && last->batch <= INT_MAX ? (int)last->batch : -1;
    summary->workers = last->workers;
}

stk_summary stk_record_summary(const stk_record *record) {
    if (record->stopped) {
        stk_summary ended = record->summary;
        add_command(record, &ended);
        return ended;
    }
    const stk_event_start *start = &record->start;
    const stk_event_epoch *best = stk_record_best(record);
    bool started = record->started;
    stk_summary summary = {
        .best_acc1 = best != NULL ? best->val_acc1 : NAN,
        .best_metric = NAN,
        .epochs_done = (int)record->row_count,
        .folds_done = -1,
        .folds_planned = started ? start->folds : -1,
        .oof_acc1 = NAN,
        .oof_metric = NAN,
        .budget_s = started ? start->budget_s : NAN,
        .used_s = record->now_s > 0 ? record->now_s : NAN,
        .reserve_s = record->planned ? record->plan.reserve_s : NAN,
        .batch = started ? start->batch : -1,
        .workers = started ? start->workers : -1,
        .prefetch = started ? start->prefetch : -1,
        .device = start->device,
        .precision = start->precision,
        .bad_images = (int64_t)record->notes[STK_NOTE_BAD_IMAGE].told,
        .verdict = record->verdict.name,
    };
    add_speed(record, &summary);
    add_command(record, &summary);
    return summary;
}
