/* rehearsal.c - trains a few steps with the trainer itself, so that loading and computing overlap
 * as they will. */
#include "job/training/rehearsal.h"

#include <math.h>

#include "base/clock.h"
#include "base/error.h"
#include "engine/traffic.h"
#include "probe/step_timer.h"

#define LEAST_SLOTS 2 /* batches of a loader that decodes one while another is used */

/* The batch on a CPU: as many pictures as make so many multiply-adds, within these bounds. */
#define CPU_MULTIPLY_ADDS 8e9
#define CPU_LEAST_BATCH 4
#define CPU_MOST_BATCH 16

/* A step that was halted tells how long steps are at least, if it lasted this part of the limit. */
#define TELLING_PART 0.5

typedef struct running_rehearsal {
    stk_rehearsal *rehearsal;
    const stk_rehearsal_length *length;
    stk_run_clock *clock;
    int64_t first_ns;   /* when the first step was asked for; 0: not yet */
    int64_t steps_done; /* before the one that was asked for last */
} running_rehearsal;

static stk_status choose_batch(const stk_job *job, size_t *batch, stk_error *err) {
    stk_traffic traffic;
    *batch = job->recipe.batch;
    if (!stk_opened_device_is_cpu(&job->network.opened)) {
        return STK_OK;
    }
    stk_status status = stk_graph_traffic(job->network.graph, true, sizeof(float), &traffic, err);
    if (status == STK_OK) {
        double wanted = fmax(CPU_MULTIPLY_ADDS / traffic.multiply_adds, CPU_LEAST_BATCH);
        *batch = (size_t)fmin(fmin(wanted, CPU_MOST_BATCH), (double)*batch);
    }
    return status;
}

static stk_train_orders pace(void *user, const stk_train_standing *standing) {
    running_rehearsal *r = user;
    const stk_rehearsal_length *length = r->length;
    if (r->first_ns == 0) {
        r->first_ns = stk_clock_ns();
        r->rehearsal->setup_s = stk_run_clock_elapsed(r->clock);
        r->clock->halt_at_s = isfinite(length->halt_s) ? r->rehearsal->setup_s + length->halt_s : 0;
    }
    r->steps_done = standing->steps_done;
    double seconds = stk_clock_since_s(r->first_ns);
    int64_t timed = standing->steps_timed;
    bool enough = (timed >= length->enough_steps && seconds > length->enough_s) ||
                  (timed >= length->least_steps && seconds > length->most_s) ||
                  timed >= length->most_steps;
    r->rehearsal->step_s = standing->step_s;
    r->rehearsal->source_px =
        sqrt((double)standing->loader.source_px / (double)standing->loader.images);
    bool stop = enough || stk_run_clock_stopping(r->clock);
    /* Epochs do not end the rehearsal: a small data set has few steps. */
    return (stk_train_orders){.epochs = standing->epoch,
                              .total_steps = stop ? standing->steps_done : INT64_MAX,
                              .stop = stop};
}

/* Notes what a rehearsal tells that was halted before a step was timed. A device that waited for
 * pictures most of the time tells nothing about steps. */
static void note_halted(const running_rehearsal *r, const stk_train_result *result) {
    double seconds = r->first_ns != 0 ? stk_clock_since_s(r->first_ns) : 0;
    double computed_s = fmax(seconds - result->starved_s, 0);
    if (!isnan(r->rehearsal->step_s) || stk_run_clock_stopping(r->clock)) {
        return;
    }
    if (computed_s > TELLING_PART * r->length->halt_s) {
        r->rehearsal->step_s = computed_s / (double)(r->steps_done + 1);
        r->rehearsal->is_least = true;
    }
    r->rehearsal->out_of_time = stk_run_clock_must_write(r->clock);
}

/* The hook of a checkpoint that saves nothing. */
static stk_status keep_nothing(void *user, const stk_event_epoch *epoch, bool best,
                               stk_error *err) {
    (void)user;
    (void)epoch;
    (void)best;
    (void)err;
    return STK_OK;
}

/* Warnings of storage are said once; everything else will be said again. */
static void pass_on(void *user, const char *text) {
    const stk_job *job = user;
    stk_events_warning(&job->events, "%s", text);
}

stk_status stk_job_rehearse(stk_job *job, const stk_split *split,
                            const stk_rehearsal_length *length, stk_rehearsal *rehearsal,
                            stk_error *err) {
    *rehearsal = (stk_rehearsal){.step_s = NAN, .source_px = NAN};
    running_rehearsal running = {.rehearsal = rehearsal, .length = length, .clock = &job->clock};
    stk_observer warner = {.user = job, .warning = pass_on};
    stk_events warnings = {0};
    stk_train_result result = {0};
    stk_train_options options = job->recipe.train;
    options.freeze_epochs = 0; /* steps of the head alone would be too fast */
    stk_events_add(&warnings, &warner);
    stk_train_config config = {
        .backend = job->network.opened.backend,
        .state = job->network.state,
        .graph = job->network.graph,
        .options = &options,
        .lr = isnan(job->recipe.lr) ? STK_TIMED_RATE : job->recipe.lr,
        .train_compile = stk_network_compile_config(&job->network, &job->recipe, true),
        .train_data = stk_job_loader_config(job, true, job->dataset->train.items, split->train,
                                            split->train_count),
        .seed = job->recipe.seed,
        .events = &warnings,
        .hooks = {
            .user = &running, .pace = pace, .checkpoint = keep_nothing, .save_every_s = INFINITY}};
    stk_status status = choose_batch(job, &rehearsal->batch, err);
    config.train_compile.batch = rehearsal->batch;
    if (stk_opened_device_is_cpu(&job->network.opened)) {
        stk_loader_sizing *sizing = &config.train_data.sizing;
        sizing->slots = sizing->most_slots = LEAST_SLOTS;
        sizing->tune_slots = false;
    }
    config.train_data.stop_after_bad =
        stk_loader_bad_limit(job->loader_options, split->train_count);
    STK_THEN(status, stk_network_first_weights(&job->network, &job->recipe, 0, &job->clock, err));
    STK_THEN(status, stk_train_fold(&config, &result, err));
    job->clock.halt_at_s = 0;
    if (result.halted) {
        note_halted(&running, &result);
    }
    rehearsal->wait_fraction = result.train_s > 0 ? result.wait_s / result.train_s : NAN;
    return status;
}
