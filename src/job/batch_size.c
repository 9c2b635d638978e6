/*
 * batch_size.c - how many pictures a step has.
 *
 * What memory and data set allow is arithmetic and comes before anything is allocated. On a GPU a
 * batch that nobody gave is then measured, a few steps of each, once there is a submission: the
 * weights that these steps spoil are set anew by whoever trains next.
 */
#include <math.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/machine.h"
#include "job/job_state.h"
#include "models/memory_check.h"
#include "probe/step_timer.h"

/* Of each batch, once it is warm. */
#define MEASURE_S 0.4
#define WINDOWS 5
#define SOME_RATE 1e-3 /* that changes the weights little */

static bool on_cpu(const stk_job *job) {
    return stk_opened_device_is_cpu(&job->choice.opened);
}

/* What lies in the device's memory with such a batch; the configurations are the caller's. */
static stk_memory_ask ask_of(const stk_job *job, size_t batch, stk_compile_config how[2]) {
    const stk_recipe *choice = &job->choice;
    stk_loader_sizing loader = stk_loader_sizing_make(job->loader_options, batch, choice->img_size,
                                                      stk_machine_cores(), stk_machine_memory());
    how[0] = stk_job_compiles(job, true);
    how[0].batch = batch;
    how[1] = stk_job_compiles(job, false);
    return (stk_memory_ask){
        .backend = choice->opened.backend,
        .device = choice->opened.device,
        .graph = job->graph,
        .model = choice->model->name,
        .state = &job->state_config,
        .batch = &how[0],
        .other = &how[1],
        .picture_bytes = on_cpu(job) ? (uint64_t)loader.slots * loader.slot_bytes / batch : 0};
}

static uint64_t need(void *user, size_t batch) {
    stk_compile_config how[2];
    stk_memory_ask ask = ask_of(user, batch, how);
    uint64_t bytes = 0;
    return stk_memory_total(&ask, batch, &bytes, NULL) == STK_OK ? bytes : UINT64_MAX;
}

/* Says that a batch does not fit, where it does not. */
static stk_status check_memory(const stk_job *job, size_t batch, stk_error *err) {
    stk_compile_config how[2];
    stk_memory_ask ask = ask_of(job, batch, how);
    stk_error why = {0};
    stk_status status = stk_memory_check(&ask, &why);
    bool held = job->job_options->assume_memory > 0;
    return status == STK_OK ? STK_OK
                            : STK_FAIL(err, status, "%s%s", why.message,
                                       held ? ", or more --assume-memory" : "");
}

/* Seconds of the budget that a training has after this moment. */
static double seconds_left(const stk_job *job) {
    return isnan(job->foreseen_s) ? stk_run_clock_left(&job->clock)
                                  : job->foreseen_s - stk_run_clock_elapsed(&job->clock);
}

/* A batch that was left to Stoker, and could be another if that is faster. */
static bool could_be_measured(const stk_job *job) {
    return !on_cpu(job) && stk_batch_next(&job->batch.chosen, &job->batch.curve) != 0;
}

/* Whether it will be, and if not, why. */
static bool is_to_measure(stk_job *job) {
    stk_batch_search *search = &job->batch;
    double left = seconds_left(job);
    search->allowed_s = stk_batch_measure_s(left);
    if (!could_be_measured(job)) {
        return false;
    }
    if (job->job_options->deterministic) {
        snprintf(search->skipped, sizeof search->skipped,
                 "--deterministic leaves nothing to a clock");
    } else if (search->allowed_s <= 0) {
        snprintf(search->skipped, sizeof search->skipped, "%.0f s are too short a time for it",
                 fmax(left, 0));
    }
    return search->skipped[0] == '\0';
}

static const char *why_not_more(const stk_batch_search *search, char *text, size_t room) {
    switch (search->chosen.limit) {
    case STK_BATCH_BY_DATA:
        snprintf(text, room, "a larger batch would leave an epoch fewer than %d steps",
                 stk_batch_least_steps(&search->facts, 2 * search->chosen.batch));
        return text;
    case STK_BATCH_BY_MEMORY:
        snprintf(text, room, "a larger batch needs more than %.0f %%%s",
                 100 * STK_BATCH_MEMORY_PART,
                 search->facts.policy == STK_BATCH_SPEED ? "; it may be faster" : "");
        return text;
    case STK_BATCH_BY_SPEED:
        return "a larger batch would not be faster";
    case STK_BATCH_BY_TIME:
        snprintf(text, room, "larger ones were not measured: %.1f s for one, of %.1f s to spare",
                 search->last_s, search->allowed_s - search->others_s);
        return text;
    default:
        return "a larger batch has to be asked for";
    }
}

/* Of a batch that was given and does not fit. */
static void explain_short(stk_job *job) {
    const stk_batch_choice *c = &job->batch.chosen;
    char wanted[32] = "more than can be counted";
    char have[32];
    uint64_t bytes = need(job, c->wanted);
    if (bytes != UINT64_MAX) {
        stk_format_bytes(wanted, sizeof wanted, bytes);
    }
    snprintf(job->choice.batch_why, sizeof job->choice.batch_why,
             "%zu at a time need %s of memory and %s are free; gradients are added up to %lld "
             "images an update",
             c->wanted, wanted, stk_format_bytes(have, sizeof have, job->memory.free_bytes),
             (long long)c->batch * c->accumulate);
}

/* The speed of the batch that was chosen, and how it was found. */
static void explain_speed(const stk_batch_search *search, stk_str *why) {
    const stk_batch_curve *curve = &search->curve;
    double chosen = 0;
    double best = 0;
    for (size_t i = 0; i < curve->count; i++) {
        const stk_batch_point *point = &curve->points[i];
        best = fmax(best, point->images_per_second);
        chosen = point->batch == search->chosen.batch ? point->images_per_second : chosen;
    }
    stk_str_appendf(why, "%.0f images/s, ", chosen);
    if (chosen < best) {
        stk_str_appendf(why, "within %.0f %% of %.0f, ", 100 * STK_BATCH_KNEE, best);
    }
    stk_str_appendf(why, "the best of %zu batches measured in %.1f s; ", curve->count,
                    search->took_s);
}

/* One line about the batch, where there is something to say. */
static void explain(stk_job *job) {
    const stk_batch_search *search = &job->batch;
    const stk_batch_choice *c = &search->chosen;
    bool added = c->accumulate != search->facts.accumulate;
    bool short_validation = job->infer_batch < STK_PREDICT_BATCH;
    char text[160];
    stk_str why = {0};
    job->choice.batch_why[0] = '\0';
    if (search->facts.given > 0) {
        if (c->limit == STK_BATCH_BY_MEMORY) {
            explain_short(job);
        } else if (short_validation) {
            snprintf(job->choice.batch_why, sizeof job->choice.batch_why,
                     "validation has %zu at a time: there is no memory for more", job->infer_batch);
        }
        return;
    }
    if (on_cpu(job) && search->facts.policy == STK_BATCH_SPEED && !added && !short_validation) {
        return; /* by rule, and as ever */
    }
    if (search->curve.count > 0) {
        explain_speed(search, &why);
    } else if (search->skipped[0] != '\0') {
        stk_str_appendf(&why, "not measured: %s; ", search->skipped);
    }
    if (added) {
        stk_str_appendf(&why, "gradients are added up to %lld images an update; ",
                        (long long)c->batch * c->accumulate);
    }
    if (short_validation) {
        stk_str_appendf(&why, "validation has %zu at a time; ", job->infer_batch);
    }
    double part = 100 * (double)c->bytes / fmax((double)job->memory.free_bytes, 1);
    stk_str_appendf(&why, "memory %.*f %%: %s", part < 10 ? 1 : 0, part,
                    why_not_more(search, text, sizeof text));
    snprintf(job->choice.batch_why, sizeof job->choice.batch_why, "%s", stk_str_text(&why));
    stk_str_free(&why);
}

/* The batch that an earlier process had come to, or less where there is no memory for it now. */
static stk_status resume_batch(stk_job *job, stk_error *err) {
    bool known = job->resume.state.position.batch > 0;
    stk_status status = STK_ERR_DEVICE;
    stk_job_take_batch(job);
    while (status == STK_ERR_DEVICE) {
        stk_error why = {0};
        char what[128]; /* it is told with all that is resumed */
        status = check_memory(job, job->choice.batch, &why);
        bool other =
            status == STK_ERR_DEVICE && known && stk_job_shrink(job, false, what, sizeof what);
        if (status != STK_OK && !other) {
            return STK_FAIL(err, status, "%s", why.message);
        }
    }
    return STK_OK;
}

/* Where the memory is short, and it helps, validation has fewer pictures at a time, down to as many
 * as training: what it does with them is the same. */
static stk_batch_choice plan_both(stk_job *job) {
    const stk_batch_facts *facts = &job->batch.facts;
    stk_batch_choice best = stk_batch_plan(facts);
    size_t half = job->infer_batch / 2;
    for (; best.limit == STK_BATCH_BY_MEMORY && half > 0 && half >= best.batch; half /= 2) {
        size_t before = job->infer_batch;
        job->infer_batch = half;
        stk_batch_choice c = stk_batch_plan(facts);
        bool helps = c.batch > best.batch;
        best = helps ? c : best;
        job->infer_batch = helps ? half : before;
    }
    if (best.batch == 0) {
        job->infer_batch = 1; /* a refusal tells the least that is needed */
    }
    return best;
}

stk_status stk_job_plan_batch(stk_job *job, size_t train_count, stk_error *err) {
    const stk_opened_device *opened = &job->choice.opened;
    stk_batch_search *search = &job->batch;
    stk_batch_choice *c = &search->chosen;
    stk_status status = opened->backend->memory(opened->device, &job->memory, err);
    if (status != STK_OK) {
        return status;
    }
    search->facts = stk_recipe_batch_facts(&job->choice, job->options, train_count);
    search->facts.free_bytes = job->memory.free_bytes;
    search->facts.need = need;
    search->facts.user = job;
    *c = plan_both(job);
    if (job->resume.on && c->limit == STK_BATCH_BY_MEMORY) {
        c->batch = c->wanted; /* the rates are those of then, whatever the memory is now */
        c->accumulate = search->facts.accumulate;
    } else if (c->batch == 0) {
        c->batch = 1;
        c->accumulate = search->facts.accumulate;
        status = check_memory(job, c->batch, err); /* the memory may have become more meanwhile */
    }
    if (status != STK_OK) {
        return status;
    }
    bool open = is_to_measure(job);
    if (!open) {
        explain(job);
    }
    search->open = open;
    status = stk_recipe_complete(&job->choice, job->options, &search->facts, c, open, err);
    return status == STK_OK && job->resume.on ? resume_batch(job, err) : status;
}

/* How long the steps of one batch may take; compiling them is not counted. */
typedef struct patience {
    stk_job *job;
    double seconds;
    int64_t begun_ns; /* when it was first asked; 0: not yet */
} patience;

static bool must_end(void *user) {
    patience *p = user;
    p->begun_ns = p->begun_ns == 0 ? stk_clock_ns() : p->begun_ns;
    return stk_clock_since_s(p->begun_ns) > p->seconds || stk_run_clock_must_write(&p->job->clock);
}

/* Images per second in a few steps of this batch, which may take so many seconds. */
static stk_status measure(stk_job *job, size_t batch, double seconds, double *images_per_second,
                          stk_error *err) {
    patience steps = {.job = job, .seconds = seconds};
    const stk_opened_device *opened = &job->choice.opened;
    stk_update_point moment = {.lr = SOME_RATE, .head_lr = SOME_RATE, .micro_steps = 1};
    stk_update update = stk_update_make(&job->choice.train, &moment);
    stk_step_times times = {0};
    stk_step_ask ask = {.backend = opened->backend,
                        .device = opened->device,
                        .graph = job->graph,
                        .state = job->state,
                        .how = stk_job_compiles(job, true),
                        .update = &update,
                        .seconds = MEASURE_S,
                        .windows = WINDOWS,
                        .halt = {must_end, &steps}};
    ask.how.batch = batch;
    stk_status status = stk_step_time(&ask, &times, err);
    *images_per_second = (double)batch / times.median_s;
    return status;
}

/* One batch after the other, as long as there is time for the next. */
static stk_status search_batches(stk_job *job, stk_error *err) {
    stk_batch_search *search = &job->batch;
    stk_batch_curve *curve = &search->curve;
    int64_t start = stk_clock_ns();
    stk_status status = stk_state_first_weights_unless(job->choice.opened.backend, job->state,
                                                       job->graph, (uint64_t)job->job_options->seed,
                                                       stk_run_clock_must_write, &job->clock, err);
    size_t batch = stk_batch_next(&search->chosen, curve);
    while (status == STK_OK && batch != 0 &&
           (curve->count == 0 || search->others_s + search->last_s <= search->allowed_s)) {
        stk_batch_point *point = &curve->points[curve->count];
        bool first = curve->count == 0; /* it costs nothing: training compiles it anyway */
        double before = search->took_s;
        point->batch = batch;
        status = measure(job, batch, search->allowed_s - search->others_s,
                         &point->images_per_second, err);
        curve->count += status == STK_OK;
        bool refused = status != STK_OK && status != STK_ERR_STOPPED;
        if (refused && batch > search->chosen.batch) { /* somebody took the memory */
            search->chosen.most = batch / 2;
            search->chosen.most_limit = STK_BATCH_BY_MEMORY;
        }
        search->took_s = stk_clock_since_s(start);
        search->last_s = search->took_s - before;
        search->others_s += first || status != STK_OK ? 0 : search->last_s;
        batch = stk_batch_next(&search->chosen, curve);
    }
    return status;
}

static void tell_rate(const stk_job *job) {
    const stk_train_options *given = stk_options_values(job->options, &stk_train_option_table);
    char what[64];
    char why[96];
    if (stk_is_default_double(given->lr)) {
        snprintf(what, sizeof what, "lr %.6g", job->choice.lr);
        snprintf(why, sizeof why, "the default for %lld images an update",
                 (long long)job->choice.batch * job->choice.train.accumulate);
        stk_events_decision(&job->events, what, why);
    }
}

/* Why not even one batch was measured. */
static void explain_failure(stk_job *job, stk_status status) {
    stk_batch_search *search = &job->batch;
    bool ends = stk_run_clock_stopping(&job->clock) || stk_run_clock_must_write(&job->clock);
    if (status == STK_ERR_STOPPED && !ends) {
        snprintf(search->skipped, sizeof search->skipped, "%.1f s were too short a time for it",
                 search->allowed_s);
    } else { /* a device that is lost will say so again when it trains */
        snprintf(search->skipped, sizeof search->skipped, "%s",
                 status == STK_ERR_STOPPED ? "it was interrupted" : "the device could not do it");
    }
}

stk_status stk_job_measure_batch(stk_job *job, stk_error *err) {
    stk_batch_search *search = &job->batch;
    stk_error ignored = {0};
    if (!search->open) {
        return STK_OK;
    }
    job->clock.halt_on_stop = true; /* what was measured until then is enough */
    stk_status status = search_batches(job, &ignored);
    job->clock.halt_on_stop = false;
    if (status != STK_OK && search->curve.count == 0) {
        explain_failure(job, status);
    }
    search->open = false;
    search->chosen = stk_batch_settle(&search->facts, &search->chosen, &search->curve);
    explain(job);
    status = stk_recipe_complete(&job->choice, job->options, &search->facts, &search->chosen, false,
                                 err);
    if (status == STK_OK) {
        stk_recipe_emit_batch(&job->choice, &job->events);
        tell_rate(job);
    }
    return status == STK_OK && job->folder.path != NULL ? stk_job_write_args(job, err) : status;
}
