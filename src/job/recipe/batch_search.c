/*
 * batch_search.c - the batch by memory, and by measured speed.
 *
 * What memory and data set allow is arithmetic. On a GPU the batch that nobody gave is then
 * measured, a few steps of each batch in question. These steps overwrite the weights: whoever
 * trains next sets them.
 */
#include "job/recipe/batch_search.h"

#include <math.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/machine.h"
#include "engine/memory_check.h"
#include "predict/predict.h"
#include "probe/step_timer.h"

#define MEASURE_S 0.4   /* seconds of steps that one batch is measured for, once it is warm */
#define LEAST_WINDOWS 5 /* parts of that time, at least; the median counts */

static bool on_cpu(const stk_batch_search *search) {
    return stk_opened_device_is_cpu(&search->network->opened);
}

/* Everything that lies in the device's memory with such a batch; `how` is filled for the caller. */
static stk_memory_ask ask_of(const stk_batch_search *search, size_t batch,
                             stk_compile_config how[2]) {
    const stk_recipe *recipe = search->recipe;
    const stk_job_network *network = search->network;
    stk_loader_sizing loader = stk_recipe_sizing(recipe, search->loader_options, batch);
    how[0] = stk_network_compile_config(network, recipe, true);
    how[0].batch = batch;
    how[1] = stk_network_compile_config(network, recipe, false);
    how[1].batch = search->infer_batch;
    return (stk_memory_ask){
        .backend = network->opened.backend,
        .device = network->opened.device,
        .graph = network->graph,
        .model = recipe->model->name,
        .state = &network->state_config,
        .compile = &how[0],
        .other = &how[1],
        .picture_bytes = on_cpu(search) ? (uint64_t)loader.slots * loader.slot_bytes / batch : 0,
        .kept_bytes = stk_opened_decoder_owed(&network->decoder)};
}

/* Bytes that this batch needs; UINT64_MAX: unknown. */
static uint64_t need(void *user, size_t batch) {
    stk_compile_config how[2];
    stk_memory_ask ask = ask_of(user, batch, how);
    uint64_t bytes = 0;
    return stk_memory_total(&ask, batch, &bytes, NULL) == STK_OK ? bytes : UINT64_MAX;
}

/* Fails with a sentence where a batch does not fit. */
static stk_status check_memory(const stk_batch_search *search, size_t batch, stk_error *err) {
    stk_compile_config how[2];
    stk_memory_ask ask = ask_of(search, batch, how);
    stk_error why = {0};
    stk_status status = stk_memory_check(&ask, &why);
    bool assumed = search->options->assume_memory > 0;
    return status == STK_OK ? STK_OK
                            : STK_FAIL(err, status, "%s%s", why.message,
                                       assumed ? ", or more --assume-memory" : "");
}

/* Seconds of the budget that a training has from now on. */
static double seconds_left(const stk_batch_search *search) {
    return isnan(search->budget_s) ? stk_run_clock_left(search->clock)
                                   : search->budget_s - stk_run_clock_elapsed(search->clock);
}

/* Whether the batch was left to Stoker, and a faster one could replace it. */
static bool could_be_measured(const stk_batch_search *search) {
    return !on_cpu(search) && stk_batch_next(&search->chosen, &search->curve) != 0;
}

/* Whether the batch will be measured; if it could be but will not, `skipped` says why. */
static bool is_to_measure(stk_batch_search *search) {
    double left = seconds_left(search);
    search->allowed_s = stk_batch_measure_s(left);
    if (!could_be_measured(search)) {
        return false;
    }
    if (search->options->deterministic) {
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
    case STK_BATCH_BY_UPDATES:
        return "a larger batch would leave the training too few updates";
    case STK_BATCH_BY_MEMORY:
        snprintf(text, room, "a larger batch needs more than %.0f %%%s",
                 100 * STK_BATCH_MEMORY_PART,
                 search->facts.policy == STK_BATCH_SPEED ? "; it may be faster" : "");
        return text;
    case STK_BATCH_BY_DEVICE:
        return "the device computes no more at a time";
    case STK_BATCH_BY_SPEED:
        return "a larger batch would not be faster";
    case STK_BATCH_BY_TIME:
        snprintf(text, room,
                 "larger ones were not measured: one takes %.1f s, and %.1f s are to spare",
                 search->last_s, search->allowed_s - search->others_s);
        return text;
    default: /* by rule, or a step would take too long */
        return "a larger batch has to be asked for";
    }
}

/* Why a batch that was given is smaller: it does not fit. */
static void explain_short(stk_batch_search *search) {
    const stk_batch_choice *c = &search->chosen;
    char wanted[32] = "more than can be counted";
    char have[32];
    uint64_t bytes = need(search, c->wanted);
    if (bytes != UINT64_MAX) {
        stk_format_bytes(wanted, sizeof wanted, bytes);
    }
    snprintf(search->why, sizeof search->why,
             "%zu at a time need %s of memory and %s are free; gradients are added up to %lld "
             "images an update",
             c->wanted, wanted,
             stk_format_bytes(have, sizeof have, search->network->memory.free_bytes),
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

/* Fills in search->why, where there is something to say about the batch. */
static void explain(stk_batch_search *search) {
    const stk_batch_choice *c = &search->chosen;
    bool added = c->accumulate != search->facts.accumulate;
    bool short_validation = search->infer_batch < STK_PREDICT_BATCH;
    char text[160];
    stk_str why = {0};
    search->why[0] = '\0';
    if (search->facts.given > 0) {
        if (c->limit == STK_BATCH_BY_MEMORY) {
            explain_short(search);
        } else if (short_validation) {
            snprintf(search->why, sizeof search->why,
                     "validation has %zu at a time: there is no memory for more",
                     search->infer_batch);
        }
        return;
    }
    if (on_cpu(search) && search->facts.policy == STK_BATCH_SPEED && !added && !short_validation) {
        return; /* the rule for CPUs needs no explanation */
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
        stk_str_appendf(&why, "validation has %zu at a time; ", search->infer_batch);
    }
    double part = 100 * (double)c->bytes / fmax((double)search->network->memory.free_bytes, 1);
    stk_str_appendf(&why, "memory %.*f %%: %s", part < 10 ? 1 : 0, part,
                    why_not_more(search, text, sizeof text));
    snprintf(search->why, sizeof search->why, "%s", stk_str_text(&why));
    stk_str_free(&why);
}

/*
 * When memory limits the batch, the batch of validation is halved if that makes room for a larger
 * batch of training; a half below the training batch found so far is not tried. The results of
 * validation stay the same.
 */
static stk_batch_choice plan_both(stk_batch_search *search) {
    stk_batch_choice best = stk_batch_plan(&search->facts);
    size_t half = search->infer_batch / 2;
    for (; best.limit == STK_BATCH_BY_MEMORY && half > 0 && half >= best.batch; half /= 2) {
        size_t before = search->infer_batch;
        search->infer_batch = half;
        stk_batch_choice c = stk_batch_plan(&search->facts);
        bool helps = c.batch > best.batch;
        best = helps ? c : best;
        search->infer_batch = helps ? half : before;
    }
    if (best.batch == 0) {
        search->infer_batch = 1; /* the error then names the least memory that is needed */
    }
    return best;
}

stk_status stk_batch_search_plan(stk_batch_search *search, const stk_options *options,
                                 size_t train_count, bool resuming, stk_error *err) {
    stk_job_network *network = search->network;
    const stk_opened_device *opened = &network->opened;
    stk_batch_choice *c = &search->chosen;
    stk_status status = stk_network_note_memory(network, err);
    if (status != STK_OK) {
        return status;
    }
    search->facts = stk_recipe_batch_facts(search->recipe, options, on_cpu(search), train_count);
    search->facts.device_most = opened->backend->most_batch;
    search->facts.free_bytes = network->memory.free_bytes;
    search->facts.need = need;
    search->facts.user = search;
    search->infer_batch = search->recipe->infer_batch;
    size_t most = search->facts.device_most;
    if (most > 0 && search->facts.given > most && train_count > most) {
        return STK_FAIL(
            err, STK_ERR_USAGE,
            "--batch %zu is too large: %s computes at most %zu pictures at a time; use a "
            "smaller --batch with --accumulate",
            search->facts.given, opened->name, most);
    }
    *c = plan_both(search);
    if (resuming && c->limit == STK_BATCH_BY_MEMORY) {
        c->batch = c->wanted;
        c->accumulate = search->facts.accumulate;
    } else if (c->batch == 0) {
        c->batch = 1;
        c->accumulate = search->facts.accumulate;
        status = check_memory(search, c->batch, err); /* memory may have become free meanwhile */
    }
    if (status != STK_OK) {
        return status;
    }
    search->to_be_measured = is_to_measure(search);
    if (!search->to_be_measured) {
        explain(search);
    }
    return STK_OK;
}

stk_status stk_batch_search_check(stk_batch_search *search, size_t batch, size_t infer_batch,
                                  stk_error *err) {
    search->infer_batch = infer_batch;
    return check_memory(search, batch, err);
}

/* Limits the steps of one batch; compiling does not count. */
typedef struct step_limit {
    stk_run_clock *clock;
    double seconds;   /* that the steps may take */
    int64_t begun_ns; /* when the limit was first asked for; 0: not yet */
} step_limit;

static bool must_end(void *user) {
    step_limit *limit = user;
    limit->begun_ns = limit->begun_ns == 0 ? stk_clock_ns() : limit->begun_ns;
    return stk_clock_since_s(limit->begun_ns) > limit->seconds ||
           stk_run_clock_must_write(limit->clock);
}

/* Measures images per second in a few steps of this batch, for `seconds` at most. */
static stk_status measure(stk_batch_search *search, size_t batch, double seconds,
                          double *images_per_second, stk_error *err) {
    step_limit limit = {.clock = search->clock, .seconds = seconds};
    const stk_job_network *network = search->network;
    stk_update_point point = {.lr = STK_TIMED_RATE, .head_lr = STK_TIMED_RATE, .steps = 1};
    stk_update update = stk_update_make(&search->recipe->train, &point);
    stk_step_times times = {0};
    stk_step_ask ask = {.backend = network->opened.backend,
                        .device = network->opened.device,
                        .graph = network->graph,
                        .state = network->state,
                        .how = stk_network_compile_config(network, search->recipe, true),
                        .update = &update,
                        .seconds = MEASURE_S,
                        .windows = LEAST_WINDOWS,
                        .halt = {must_end, &limit}};
    ask.how.batch = batch;
    stk_status status = stk_step_time(&ask, &times, err);
    *images_per_second = (double)batch / times.median_s;
    return status;
}

/* Measures one batch after the other, as long as there is time for the next. */
static stk_status search_batches(stk_batch_search *search, stk_error *err) {
    const stk_job_network *network = search->network;
    stk_batch_curve *curve = &search->curve;
    int64_t start = stk_clock_ns();
    stk_status status = stk_state_first_weights_unless(
        network->opened.backend, network->state, network->graph, search->recipe->seed,
        stk_run_clock_must_write, search->clock, err);
    size_t batch = stk_batch_next(&search->chosen, curve);
    while (status == STK_OK && batch != 0 &&
           (curve->count == 0 || search->others_s + search->last_s <= search->allowed_s)) {
        stk_batch_point *point = &curve->points[curve->count];
        bool first = curve->count == 0; /* costs nothing extra: training compiles it anyway */
        double before = search->took_s;
        point->batch = batch;
        status = measure(search, batch, search->allowed_s - search->others_s,
                         &point->images_per_second, err);
        curve->count += status == STK_OK;
        bool refused = status != STK_OK && status != STK_ERR_STOPPED;
        if (refused && batch > search->chosen.batch) { /* another program took the memory */
            search->chosen.search_most = batch / 2;
            search->chosen.search_limit = STK_BATCH_BY_MEMORY;
        }
        search->took_s = stk_clock_since_s(start);
        search->last_s = search->took_s - before;
        search->others_s += first || status != STK_OK ? 0 : search->last_s;
        batch = stk_batch_next(&search->chosen, curve);
    }
    return status;
}

/* Why not even one batch was measured. */
static void explain_failure(stk_batch_search *search, stk_status status) {
    bool ends = stk_run_clock_stopping(search->clock) || stk_run_clock_must_write(search->clock);
    if (status == STK_ERR_STOPPED && !ends) {
        snprintf(search->skipped, sizeof search->skipped, "%.1f s were too short a time for it",
                 search->allowed_s);
    } else { /* a lost device reports its error again when training begins */
        snprintf(search->skipped, sizeof search->skipped, "%s",
                 status == STK_ERR_STOPPED ? "it was interrupted" : "the device could not do it");
    }
}

void stk_batch_search_measure(stk_batch_search *search) {
    stk_error ignored = {0};
    if (!search->to_be_measured) {
        return;
    }
    search->clock->halt_on_stop = true; /* what was measured before a stop is enough */
    stk_status status = search_batches(search, &ignored);
    search->clock->halt_on_stop = false;
    if (status != STK_OK && search->curve.count == 0) {
        explain_failure(search, status);
    }
    search->to_be_measured = false;
    search->chosen = stk_batch_choose_measured(&search->facts, &search->chosen, &search->curve);
    explain(search);
}

int64_t stk_batch_search_largest(const stk_batch_search *search) {
    stk_batch_search other = *search;
    other.infer_batch = search->recipe->infer_batch;
    other.facts.user = &other;
    other.facts.given = 0;
    other.facts.accumulate = 1;
    other.facts.policy = STK_BATCH_FILL;
    return (int64_t)stk_batch_plan(&other.facts).batch;
}
