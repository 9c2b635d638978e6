/*
 * fold.c - the training loop of one fold: epochs, steps, checkpoints, going back.
 */
#include "train/train.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"
#include "train/trainer.h"

/* How often a fold may go back to a saved state, with half the learning rate each time. */
#define MOST_SETBACKS 3

static void tell_bad(void *user, const char *path, const char *reason) {
    const stk_trainer *t = user;
    stk_events_bad_image(t->config->events, path, "train", reason);
}

static uint64_t consumer_wait_ns(const stk_trainer *t) {
    stk_loader_counters counters = stk_loader_counters_of(t->loader);
    return counters.wait_ns;
}

/* Emits what the loader tuned since the last epoch. */
static void tell_loader(stk_trainer *t) {
    stk_loader_counters now = stk_loader_counters_of(t->loader);
    char what[64];
    if (now.workers != t->result->workers) {
        snprintf(what, sizeof what, "workers %d", now.workers);
        stk_events_decision(t->config->events, what,
                            now.workers < t->result->workers ? "fewer are enough"
                                                             : "training waited for pictures");
    }
    if (now.slots != t->result->slots) {
        snprintf(what, sizeof what, "%d batches prepared ahead", now.slots);
        stk_events_decision(t->config->events, what, "batches were taken faster than they came");
    }
    t->result->workers = now.workers;
    t->result->slots = now.slots;
}

/* Waiting for pictures counts only while the device is idle. Time in which it is idle because a
 * network is compiled or a state saved belongs to no step. */
static double waited_s(const stk_trainer *t) {
    double waited = (double)(consumer_wait_ns(t) - t->wait_before_ns) * 1e-9;
    double idle = t->epoch_train_s - t->epoch_busy_s;
    return fmin(waited, fmax(idle, 0));
}

static void begin_epoch(stk_trainer *t) {
    t->epoch_before_s =
        t->epoch_again ? t->epoch_before_s + stk_clock_since_s(t->epoch_start_ns) : 0;
    t->epoch_counted = t->epoch_again && t->epoch_counted;
    t->epoch_judged = false;
    t->epoch_again = false;
    t->standing.epoch++;
    if (!t->within_epoch) {
        t->standing.step = 0;
        t->loss_sum = 0;
        t->correct = 0;
        t->images = 0;
    }
    t->within_epoch = false;
    t->step_before = t->standing.step;
    t->images_before = t->result->images;
    t->epoch_updates = 0;
    t->epoch_skipped = 0;
    t->epoch_train_s = 0;
    t->epoch_busy_s = 0;
    t->epoch_start_ns = stk_clock_ns();
    t->wait_before_ns = consumer_wait_ns(t);
}

static void tell_step(const stk_trainer *t) {
    const stk_train_standing *p = &t->standing;
    double elapsed = stk_clock_since_s(t->epoch_start_ns);
    double rate = elapsed > 0 ? (double)(p->step - t->step_before) / elapsed : NAN;
    double steps = (double)(t->orders.total_steps - p->steps_done);
    double cheaper = (1 - p->frozen_part) * fmin((double)p->frozen_left, steps);
    double left = (steps - cheaper) * p->step_s;
    int every = t->orders.validate_every > 1 ? t->orders.validate_every : 1;
    double validations = ceil((double)(t->orders.epochs - p->epoch + 1) / every) * p->val_s;
    double images = t->result->images - t->images_before; /* whose results have come */
    stk_event_step event = {.fold = t->config->fold,
                            .epoch = p->epoch,
                            .epochs = t->orders.epochs,
                            .step = p->step,
                            .steps = p->steps_per_epoch,
                            .steps_done = p->steps_done,
                            .loss = t->loss_sum / t->images,
                            .acc1 = stk_trainer_train_acc1(t),
                            .lr = t->lr,
                            .steps_per_second = rate,
                            .images_per_second = images > 0 ? images / elapsed : NAN,
                            .wait_fraction = elapsed > 0 ? fmin(waited_s(t) / elapsed, 1) : 0,
                            .left_s = left + (isnan(validations) ? 0 : validations),
                            .times = stk_account_stretch(&t->account, stk_clock_ns())};
    stk_events_step(t->config->events, &event);
}

static stk_update make_update(const stk_trainer *t) {
    const stk_train_options *o = t->config->options;
    double head_lr = stk_is_auto_double(o->head_lr) ? t->lr : o->head_lr * t->lr_factor;
    stk_update_point point = {.lr = t->lr,
                              .head_lr = head_lr,
                              .steps = t->steps_waiting,
                              .updates = t->updates,
                              .frozen_updates =
                                  stk_update_frozen_count(o, t->standing.steps_per_epoch)};
    return stk_update_make(o, &point);
}

/* Takes the next batch, and records how long and why it was waited for. */
static stk_status next_batch(stk_trainer *t, const stk_batch **batch, stk_error *err) {
    stk_loader_counters before, after;
    before = stk_loader_counters_of(t->loader);
    stk_status status = stk_loader_next(t->loader, batch, err);
    after = stk_loader_counters_of(t->loader);
    stk_spent_wait(&t->account.spent, &before, &after);
    if (status == STK_OK && !t->told_batch) {
        stk_event_batch event = {.fold = t->config->fold,
                                 .images = (*batch)->images,
                                 .labels = (*batch)->labels,
                                 .count = (*batch)->count,
                                 .size = stk_trainer_graph(t)->img_size};
        stk_events_batch(t->config->events, &event);
        t->told_batch = true;
    }
    return status;
}

/* One step. The weights are updated when enough batches were accumulated, or the epoch ends. */
static stk_status train_step(stk_trainer *t, bool last_of_epoch, stk_error *err) {
    const stk_train_options *o = t->config->options;
    stk_train_standing *p = &t->standing;
    const stk_batch *batch = NULL;
    int64_t start = stk_clock_ns();
    stk_error why = {0};
    stk_status status = next_batch(t, &batch, &why);
    double waited = stk_clock_since_s(start);
    t->result->starved_s += waited;
    t->result->halted = status == STK_ERR_STOPPED;
    if (status != STK_OK) {
        return t->result->halted ? STK_OK : STK_FAIL(err, status, "%s", why.message);
    }
    stk_typical_step_wait(&t->typical_step, waited);
    bool keep = t->steps_waiting > 0;
    bool update = ++t->steps_waiting >= o->accumulate || last_of_epoch;
    stk_update how = make_update(t);
    stk_step_input input = {.images = batch->images,
                            .labels = batch->labels,
                            .targets = batch->targets,
                            .features = batch->features,
                            .count = batch->count,
                            .mix = stk_mix_draw(o->mixup, o->cutmix, t->config->seed,
                                                (uint64_t)p->steps_done,
                                                stk_trainer_graph(t)->img_size),
                            .label_smoothing = (float)o->label_smoothing,
                            .seed = t->config->seed,
                            .step = (uint64_t)p->steps_done,
                            .keep_gradients = keep,
                            .update = update ? &how : NULL};
    status = t->config->backend->step(t->train_exec, &input, NULL, &why);
    stk_trainer_let_go(t);
    t->held = batch;
    t->result->halted = t->torn = status == STK_ERR_STOPPED;
    if (t->torn) {
        return STK_OK;
    }
    if (status != STK_OK) {
        return STK_FAIL(err, status, "%s", why.message);
    }
    t->steps_waiting = update ? 0 : t->steps_waiting;
    t->updates += update;
    t->schedule = t->schedule_next;
    p->step++;
    p->steps_done++;
    stk_trainer_note_step(t, batch->count, update, start);
    return stk_trainer_collect(t, false, err);
}

/* Emits warnings of storage: a full cache, objects that have changed. */
static void tell_notices(const stk_trainer *t) {
    char text[600];
    while (stk_store_take_notice(stk_loader_store(t->loader), text, sizeof text)) {
        stk_events_warning(t->config->events, "%s", text);
    }
}

/* The event of the epoch that ends; closes its stretch of the account. */
static stk_event_epoch figures_of(stk_trainer *t, double val_loss, double metric, double waited) {
    double seconds = t->epoch_before_s + stk_clock_since_s(t->epoch_start_ns);
    return (stk_event_epoch){.fold = t->config->fold,
                             .epoch = t->standing.epoch,
                             .epochs = t->orders.epochs,
                             .train_loss = t->loss_sum / t->images,
                             .train_acc1 = stk_trainer_train_acc1(t),
                             .val_loss = val_loss,
                             .val_acc1 = stk_metrics_value(&t->val_metrics, STK_METRIC_ACC1),
                             .val_acc5 = stk_metrics_value(&t->val_metrics, STK_METRIC_ACC5),
                             .lr = t->lr,
                             .images_per_second =
                                 (t->result->images - t->images_before) / t->epoch_train_s,
                             .wait_fraction = waited / t->epoch_train_s,
                             .seconds = seconds,
                             .times = stk_account_close_stretch(&t->account, stk_clock_ns()),
                             .val_metric = metric};
}

/* The weights of this epoch were saved as the best ones; `before` is the result until then. */
static void take_best(stk_trainer *t, const stk_train_result *before) {
    stk_train_result *r = t->result;
    r->rated_loss = r->best.val_loss;
    r->rated_acc1 = r->best.val_acc1;
    if (before->has_best && t->val_part && stk_same_pictures_shared(&t->same) > 0) {
        double acc1, loss;
        stk_same_pictures_differ(&t->same, &acc1, &loss);
        r->rated_loss = before->rated_loss + loss;
        r->rated_acc1 = before->rated_acc1 + acc1;
    }
    stk_same_pictures_take_best(&t->same);
}

/* Emits what the loader has found, and returns the seconds that the epoch waited for it. */
static double end_loading(stk_trainer *t) {
    double waited = waited_s(t);
    stk_loader_take_bad(t->loader, tell_bad, t);
    tell_notices(t);
    tell_loader(t);
    t->result->wait_s += waited;
    return waited;
}

/* Whether this whole epoch is neither validated nor saved: others follow, and that would take too
 * much of the time. */
static bool is_passed_over(stk_trainer *t) {
    return t->result->has_best && t->validated_epoch > 0 &&
           t->standing.epoch - t->validated_epoch < t->orders.validate_every &&
           stk_trainer_has_next_epoch(t);
}

/* Emits an epoch that is not validated. Its weights are not saved either. */
static stk_status pass_over(stk_trainer *t, stk_error *err) {
    double waited = end_loading(t);
    stk_metrics_reset(&t->val_metrics);
    stk_status status = stk_trainer_judge_epoch(t, t->loss_sum / t->images, NAN, err);
    if (status != STK_OK || t->result->diverged) {
        return status;
    }
    stk_event_epoch epoch = figures_of(t, NAN, NAN, waited);
    t->result->epochs_done += !t->epoch_counted;
    t->epoch_counted = true;
    stk_events_epoch(t->config->events, &epoch);
    return STK_OK;
}

/* Validates, emits the epoch, and calls the checkpoint hook. */
static stk_status end_epoch(stk_trainer *t, stk_error *err) {
    const stk_train_config *c = t->config;
    double waited = end_loading(t);
    bool done;
    stk_status status = stk_trainer_validate(t, &done, err);
    if (status != STK_OK) {
        return status;
    }
    if (!done) {
        return stk_trainer_save_within(t, err); /* a later process validates what was trained */
    }
    double val_loss = stk_trainer_val_loss(t);
    status = stk_trainer_judge_epoch(t, t->loss_sum / t->images, val_loss, err);
    if (status != STK_OK || t->result->diverged) {
        return status;
    }
    double metric;
    status = stk_trainer_rate(t, &metric, err);
    if (status != STK_OK) {
        return status;
    }
    stk_event_epoch epoch = figures_of(t, val_loss, metric, waited);
    /* Weights of a training that may be going wrong do not replace the best ones. */
    epoch.best = stk_trainer_is_best(t, &epoch) &&
                 (!t->result->has_best || stk_loss_watch_is_calm(&t->watch));
    status = epoch.best ? stk_trainer_keep_calibration(t, err) : STK_OK;
    if (status != STK_OK) {
        return status;
    }
    stk_trainer_note_gain(t, epoch.best, metric);
    stk_train_result before = *t->result;
    if (epoch.best) {
        t->result->has_best = true;
        t->result->best_small = t->small;
        t->result->best = epoch;
        t->result->best_metric = metric;
        t->result->best_scored = stk_trainer_val_scored(t);
    }
    t->result->epochs_done += !t->epoch_counted;
    stk_events_epoch(c->events, &epoch);
    int64_t start = stk_clock_ns();
    status = c->hooks.checkpoint(c->hooks.user, &epoch, epoch.best, err);
    t->account.spent.checkpoint_s += stk_clock_since_s(start);
    if (status != STK_OK) { /* the weights were not saved: the epoch does not count */
        *t->result = before;
        return status;
    }
    if (epoch.best) {
        take_best(t, &before);
    }
    t->validated_epoch = t->standing.epoch;
    t->epoch_counted = t->epoch_judged = true;
    return STK_OK;
}

/* Keeps an executable that nothing runs on any more. Otherwise the device may still read pictures:
 * freeing waits for it. */
static void put_away(stk_trainer *t, stk_exec **exec, const stk_compile_config *how, bool idle) {
    if (idle) {
        stk_exec_cache_keep(t->execs, how, *exec);
    } else {
        t->config->backend->exec_free(*exec);
    }
    *exec = NULL;
}

/* Whether no step was halted, and the results of all steps are collected. */
static bool is_collected(const stk_trainer *t) {
    return t->pending_count == 0 && !t->torn;
}

/* `good`: nothing has failed or was halted. */
static void put_away_execs(stk_trainer *t, bool good) {
    put_away(t, &t->train_exec, &t->train_how, good && is_collected(t));
    put_away(t, &t->infer_exec, &t->infer_how, good);
}

/* Takes an executable that waits for it, or compiles. *exec stays NULL without an error only when
 * the device was halted (result->halted). */
static stk_status compile(stk_trainer *t, const stk_compile_config *how, stk_exec **exec,
                          stk_error *err) {
    const stk_train_config *c = t->config;
    stk_error why = {0};
    if (c->hooks.compiling != NULL) {
        c->hooks.compiling(c->hooks.user, true);
    }
    stk_status status = stk_exec_cache_take(t->execs, how, exec, &why);
    if (c->hooks.compiling != NULL) {
        c->hooks.compiling(c->hooks.user, false);
    }
    t->result->halted = status == STK_ERR_STOPPED;
    return status == STK_OK || t->result->halted ? STK_OK
                                                 : STK_FAIL(err, status, "%s", why.message);
}

/* Compiles the network for this epoch: the head alone is trained, or everything. */
static stk_status choose_exec(stk_trainer *t, stk_error *err) {
    const stk_train_config *c = t->config;
    bool frozen = t->standing.epoch <= c->options->freeze_epochs;
    if (t->train_exec != NULL && t->frozen == frozen) {
        return STK_OK;
    }
    put_away(t, &t->train_exec, &t->train_how, is_collected(t));
    t->train_how = c->train_compile;
    t->train_how.frozen = frozen;
    t->train_how.graph = t->small ? c->small_graph : t->train_how.graph;
    if (t->frozen != frozen) { /* steps become others */
        t->frozen = frozen;
        stk_trainer_expect_steps(t);
    }
    return compile(t, &t->train_how, &t->train_exec, err);
}

static void tell_fewer_workers(const stk_trainer *t, int wanted) {
    stk_loader_counters now = stk_loader_counters_of(t->loader);
    if (now.workers < wanted) {
        stk_events_warning(t->config->events,
                           "pictures are decoded by %d threads instead of %d: the system refuses "
                           "more; allow this user more processes (ulimit -u)",
                           now.workers, wanted);
    }
}

/* Starts the loader at the position of training. */
static stk_status open_loader(stk_trainer *t, stk_error *err) {
    stk_loader_config data = t->config->train_data;
    const stk_train_standing *p = &t->standing;
    bool over = p->step > 0 && p->step >= p->steps_per_epoch; /* only its validation is missing */
    data.batch = t->config->train_compile.batch;
    data.transform.size = stk_trainer_graph(t)->img_size;
    data.order = STK_LOADER_TRAINING;
    data.order.first_epoch = (uint64_t)p->epoch + (over ? 1 : 0);
    data.order.first_batch = over ? 0 : (size_t)p->step;
    stk_status status = stk_loader_start(&t->loader, &data, err);
    t->result->workers = data.sizing.workers;
    t->result->slots = data.sizing.slots;
    if (status == STK_OK) {
        tell_fewer_workers(t, data.sizing.workers);
        stk_trainer_resize_loader(t);
    }
    return status;
}

/* Compiles the network for validations, and predictions, with pictures of the present size. */
static stk_status compile_validation(stk_trainer *t, stk_error *err) {
    stk_compile_config *how = &t->infer_how;
    if (t->config->val_data.count == 0 && !t->config->predicts) {
        return STK_OK;
    }
    t->result->validating = true;
    *how = t->config->val_compile;
    how->graph = t->small ? t->config->small_val_graph : how->graph;
    return compile(t, how, &t->infer_exec, err);
}

/* Between two epochs: goes on with pictures of the usual size. The network for training is compiled
 * when the epoch begins. */
static stk_status change_size(stk_trainer *t, stk_error *err) {
    char what[64];
    stk_loader_take_bad(t->loader, tell_bad, t);
    tell_notices(t);
    put_away_execs(t, true);
    stk_trainer_let_go(t);
    stk_loader_close(t->loader);
    t->loader = NULL;
    t->result->validating = false;
    stk_trainer_set_size(t, false);
    t->standing.step = 0;
    snprintf(what, sizeof what, "pictures of %d px", stk_trainer_graph(t)->img_size);
    stk_events_decision(t->config->events, what,
                        "the first half of the training is over, and now detail counts");
    stk_status status = open_loader(t, err);
    return status == STK_OK ? compile_validation(t, err) : status;
}

static stk_status run_steps(stk_trainer *t, stk_error *err) {
    stk_train_standing *p = &t->standing;
    stk_status status = STK_OK;
    while (status == STK_OK && p->step < p->steps_per_epoch && !stk_trainer_is_finished(t)) {
        bool last = p->step + 1 == p->steps_per_epoch || p->steps_done + 1 >= t->orders.total_steps;
        status = train_step(t, last, err);
        if (status == STK_OK && !t->result->diverged && !t->result->halted) {
            tell_step(t);
            if (p->step < p->steps_per_epoch) {
                stk_trainer_ask_pace(t);
            }
            if (stk_trainer_save_is_due(t)) {
                status = stk_trainer_collect(t, true, err);
                if (status == STK_OK && !t->result->diverged) {
                    status = stk_trainer_save_within(t, err);
                }
            }
        }
    }
    return status == STK_OK && !t->torn ? stk_trainer_collect(t, true, err) : status;
}

/* Lets the hook use the best weights while they are in the state. */
static void offer_best(stk_trainer *t) {
    const stk_train_hooks *hooks = &t->config->hooks;
    bool best = t->epoch_judged && t->result->has_best &&
                t->result->best.epoch == t->standing.epoch && !t->val_part;
    if (!best || hooks->improved == NULL || t->infer_exec == NULL || stk_trainer_is_finished(t)) {
        return;
    }
    int64_t start = stk_clock_ns();
    hooks->improved(hooks->user, &t->standing, t->infer_exec);
    t->account.spent.validate_s += stk_clock_since_s(start);
}

static stk_status run_epoch(stk_trainer *t, stk_error *err) {
    const stk_train_standing *p = &t->standing;
    bool grows = stk_trainer_size_changes(t) && stk_trainer_has_next_epoch(t);
    stk_status status = grows ? change_size(t, err) : STK_OK;
    if (status != STK_OK || t->result->halted) {
        return status;
    }
    begin_epoch(t);
    t->result->validating = false;
    status = choose_exec(t, err);
    if (status != STK_OK || t->result->halted) {
        return status;
    }
    stk_trainer_ask_pace(t);
    status = run_steps(t, err);
    bool whole = p->step == p->steps_per_epoch;
    bool idle =
        p->step == 0 || t->went_on_at == p->steps_done; /* no step since the last validation */
    if (status != STK_OK || idle || t->result->diverged || t->torn) {
        return status;
    }
    if (whole && is_passed_over(t)) {
        return pass_over(t, err);
    }
    if (!whole) { /* saved before the part of an epoch is validated like a whole one */
        status = stk_trainer_save_within(t, err);
    }
    if (status == STK_OK && !t->result->diverged && !t->result->halted) {
        status = end_epoch(t, err);
    }
    if (status == STK_OK && whole && t->epoch_judged) {
        stk_trainer_save(t, true);
    }
    int64_t patience = t->config->options->patience;
    t->result->ran_out_of_patience = whole && patience > 0 && t->since_best >= patience;
    if (status == STK_OK) {
        offer_best(t);
    }
    return status;
}

/* Says where an area under the curve will be that of a part of the pictures. */
static void tell_kept(const stk_trainer *t) {
    const stk_metrics *m = &t->val_metrics;
    char what[96];
    if (m->every > 1) {
        snprintf(what, sizeof what, "%s of %zu of %zu validation pictures",
                 stk_metric_info_of(m->metric)->name, (m->capacity + m->every - 1) / m->every,
                 m->capacity);
        stk_events_decision(t->config->events, what,
                            "the outputs of all would take more than 1 GiB");
    }
}

/* Opens everything that training needs. The first state is saved before networks are compiled,
 * which may take long. */
static stk_status open_trainer(stk_trainer *t, stk_error *err) {
    const stk_train_config *c = t->config;
    const stk_metrics_config rated = {.task = stk_trainer_task(c),
                                      .outputs = c->graph->classes,
                                      .capacity = c->val_data.count,
                                      .metric = (stk_metric)c->options->metric,
                                      .k = c->ranked};
    stk_status status = stk_metrics_open(&t->val_metrics, &rated, err);
    if (status == STK_OK && stk_metric_info_of(rated.metric)->needs_outputs) {
        tell_kept(t);
    }
    if (status == STK_OK && stk_trainer_is_calibrated(c)) {
        status = stk_metrics_keep_logits(&t->val_metrics, err);
    }
    STK_THEN(status, stk_trainer_open_rows(t, &rated, err));
    if (status == STK_OK && !stk_task_has_classes(stk_trainer_task(c))) {
        t->val_values = stk_mem_new((size_t)c->graph->classes, sizeof *t->val_values);
        t->val_row = stk_mem_new((size_t)c->graph->classes, 2 * sizeof *t->val_row);
        status = t->val_values != NULL && t->val_row != NULL ? STK_OK
                                                             : STK_FAIL_MEMORY(err, "validation");
    }
    STK_THEN(status, stk_same_pictures_open(&t->same, c->val_data.count, err));
    STK_THEN(status, open_loader(t, err));
    if (status != STK_OK) {
        return status;
    }
    stk_loader_info info = stk_loader_info_of(t->loader);
    t->standing.steps_per_epoch = (int64_t)info.batches_per_epoch;
    t->standing.frozen_part = STK_FROZEN_PART;
    t->standing.step_s = NAN;
    t->standing.wait_s = NAN;
    t->standing.val_s = NAN;
    t->standing.val_even_s = NAN;
    if (c->resume == NULL) {
        stk_trainer_save(t, false);
    }
    return compile_validation(t, err);
}

/*
 * After a bad loss or bad weights: goes back to the last epoch, with half the rate. States saved
 * within an epoch are not used, because when they are saved depends on the clock, and a run must
 * repeat. When going back is not possible, or was done often enough, result->diverged stays and
 * ends the fold.
 */
static stk_status retry_from_last_epoch(stk_trainer *t, stk_error *err) {
    const stk_train_hooks *hooks = &t->config->hooks;
    stk_train_position position;
    bool there = false;
    if (hooks->load_state == NULL || t->saved_steps < 0 || t->setbacks >= MOST_SETBACKS) {
        return STK_OK;
    }
    stk_status status = hooks->load_state(hooks->user, &position, &there, err);
    if (status != STK_OK || !there) {
        return status;
    }
    position.lr_scale = t->lr_scale / 2;
    position.setbacks = t->setbacks + 1;
    bool small = t->small;
    stk_trainer_put(t, &position);
    bool other = t->small != small; /* the size changed after the epoch that is gone back to */
    if (other) {
        t->small = small;
        stk_trainer_set_size(t, !small);
        put_away_execs(t, true);
    }
    t->result->validating = false;
    t->result->diverged = false;
    t->result->ran_out_of_patience = false;
    char what[96];
    snprintf(what, sizeof what, "back to the start with half the learning rate");
    if (position.epoch > 0) {
        snprintf(what, sizeof what, "back to epoch %d with half the learning rate", position.epoch);
    }
    stk_events_decision(t->config->events, what, t->result->trouble);
    stk_loader_take_bad(t->loader, tell_bad, t);
    tell_notices(t);
    stk_loader_close(t->loader);
    t->loader = NULL;
    status = open_loader(t, err);
    return status == STK_OK && other ? compile_validation(t, err) : status;
}

stk_status stk_train_fold(const stk_train_config *config, stk_train_result *result,
                          stk_error *err) {
    stk_trainer t = {.config = config,
                     .result = result,
                     .lr_scale = 1,
                     .saved_steps = -1,
                     .went_on_at = -1,
                     .account = {.since_ns = stk_clock_ns()},
                     .watch = stk_loss_watch_new(config->graph->classes)};
    memset(result, 0, sizeof *result);
    result->best_metric = NAN;
    result->lr_scale = 1;
    t.own_execs = (stk_exec_cache){.backend = config->backend, .state = config->state};
    t.execs = config->execs != NULL ? config->execs : &t.own_execs;
    t.small = config->small_graph != NULL;
    if (config->resume != NULL) {
        stk_trainer_put(&t, config->resume);
        int64_t patience = config->options->patience;
        result->ran_out_of_patience = patience > 0 && t.since_best >= patience;
    }
    result->small = t.small;
    stk_status status = open_trainer(&t, err);
    if (status == STK_OK && !result->halted) {
        do {
            status = run_epoch(&t, err);
            if (status == STK_OK && result->diverged) {
                status = retry_from_last_epoch(&t, err);
            }
        } while (status == STK_OK && stk_trainer_goes_on(&t));
    }
    if (t.loader != NULL) {
        stk_loader_take_bad(t.loader, tell_bad, &t);
        tell_notices(&t);
    }
    int64_t closing = stk_clock_ns();
    /* The loader is closed last: a step in flight still reads its batch. */
    put_away_execs(&t, status == STK_OK && !result->halted);
    stk_exec_cache_clear(&t.own_execs);
    stk_loader_close(t.loader);
    stk_metrics_free(&t.val_metrics);
    stk_calibration_free(&t.fitted);
    stk_pooled_rows_free(&t.val_rows);
    stk_mem_free(t.val_values);
    stk_mem_free(t.val_row);
    stk_same_pictures_free(&t.same);
    result->closing_s = stk_clock_since_s(closing);
    result->times = stk_account_all(&t.account, stk_clock_ns());
    return status;
}
