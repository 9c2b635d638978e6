/*
 * fold_means.c - class means join the head of a fold's best weights, where most classes have few
 * pictures.
 *
 * Two passes of inference after training: over the training pictures, whose features are averaged
 * class by class, and over held-out ones, which decide how much of the means the head takes
 * (train/class_means.h). A refit, which holds nothing out, takes as much as the validated models.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"
#include "job/training/fold_run.h"
#include "job/training/folds.h"
#include "train/class_means.h"
#include "train/evaluate.h"

/* Half of the classes must have so many training pictures at most; more of them teach the head. */
#define FEW_RANKED 20
#define FEW_NAMED 3

/* Fewer held-out pictures decide nothing. */
#define FEWEST_HELD_OUT 10

/* What the passes of one fold need. */
typedef struct means_passes {
    stk_running_fold *fold;
    stk_graph *graph; /* owned: also gives the inputs of the head */
    stk_exec *exec;   /* owned: of `graph` */
    stk_class_means means;
    stk_means_trial trial;
    float *weights; /* owned: of the head, (classes, width) */
    float *bias;    /* owned: (classes) */
    size_t *held;   /* owned: indices of held-out pictures, evenly chosen */
} means_passes;

/* ---- whether ---- */

static int by_size(const void *a, const void *b) {
    const size_t *x = a;
    const size_t *y = b;
    return (*x > *y) - (*x < *y);
}

/* Training pictures of the class in the middle of those that have any; 0: not known. */
static size_t middle_class(const stk_running_fold *fold) {
    const stk_dataset *d = fold->job->dataset;
    size_t classes = (size_t)d->class_count;
    size_t *counts = stk_mem_new(classes, sizeof *counts);
    size_t empty = 0;
    if (counts == NULL) {
        return 0;
    }
    for (size_t i = 0; i < fold->split.train_count; i++) {
        counts[d->train.items[fold->split.train[i]].label]++;
    }
    qsort(counts, classes, sizeof *counts, by_size);
    while (empty < classes && counts[empty] == 0) {
        empty++;
    }
    size_t middle = empty < classes ? counts[empty + (classes - empty) / 2] : 0;
    stk_mem_free(counts);
    return middle;
}

/* The most pictures that a class in the middle may have; 0: the task or the metric gains nothing.
 */
static size_t most_of_middle(const stk_job *job) {
    const stk_dataset *d = job->dataset;
    stk_metric metric = (stk_metric)job->recipe.train.metric;
    bool named = metric == STK_METRIC_ACC1 || metric == STK_METRIC_ACC5 ||
                 metric == STK_METRIC_ERROR || metric == STK_METRIC_MACRO_F1 ||
                 metric == STK_METRIC_MAPK || metric == STK_METRIC_BALANCED_ACC ||
                 metric == STK_METRIC_MCC;
    return !job->recipe.train.class_means || d->train_has_rows ? 0
           : d->task == STK_TASK_RANKING                       ? FEW_RANKED
           : d->task == STK_TASK_SINGLE && named               ? FEW_NAMED
                                                               : 0;
}

/* Held-out pictures that are tried. The inputs of the head are not known before it is built; those
 * of usual networks are fewer than 2048. */
static size_t count_held(const stk_running_fold *fold) {
    size_t most = stk_means_trial_most((size_t)fold->job->dataset->class_count, 2048);
    return fold->split.val_count < most ? fold->split.val_count : most;
}

size_t stk_fold_means_images(const stk_running_fold *fold) {
    size_t most = most_of_middle(fold->job);
    bool refit = stk_recipe_is_refit(&fold->job->recipe, fold->job->tally.fold);
    size_t held = count_held(fold);
    bool known = refit ? fold->means_wanted > 0 : held >= FEWEST_HELD_OUT;
    size_t middle = most > 0 && known ? middle_class(fold) : 0;
    return middle > 0 && middle <= most ? fold->split.train_count + held : 0;
}

/* Seconds that are left beside prediction; INFINITY without a budget. */
static double seconds_left(stk_running_fold *fold) {
    stk_job *job = fold->job;
    double predict_s = isnan(job->time.predict_s) ? 0 : STK_MARGIN_SAFETY * job->time.predict_s;
    double oof_s = job->recipe.folds > 1
                       ? job->time.views * (double)fold->split.val_count * fold->pace.picture_s
                       : 0;
    return stk_run_clock_before_writing(&job->clock) - predict_s - (isnan(oof_s) ? 0 : oof_s);
}

/* Whether there are weights that the means can join, and time for it. */
static bool is_wanted(stk_running_fold *fold) {
    stk_job *job = fold->job;
    char what[96];
    char why[160];
    stk_calibration of_file = {0};
    int img_size = 0;
    stk_error ignored = {0};
    if (fold->pace.means_images == 0 || !fold->result.has_best || fold->result.best_small ||
        fold->below_prior || fold->unfinished || job->tally.weights_lost ||
        stk_run_clock_stopping(&job->clock)) {
        return false;
    }
    double need_s = (double)fold->pace.means_images * fold->pace.picture_s;
    double left_s = seconds_left(fold);
    if (need_s > left_s) {
        snprintf(what, sizeof what, "the means of rare classes are left out");
        snprintf(why, sizeof why, "they take about %s, and %s are left beside prediction",
                 stk_format_span(need_s).text, stk_format_span(fmax(left_s, 0)).text);
        stk_events_decision(&job->events, what, why);
        return false;
    }
    /* A resumed run may find them there. */
    bool done =
        stk_job_read_calibration(stk_fold_weights(fold), &of_file, &img_size, &ignored) == STK_OK &&
        of_file.means > 0;
    stk_calibration_free(&of_file);
    return !done;
}

/* ---- the passes ---- */

static void close_passes(means_passes *p) {
    p->fold->job->network.opened.backend->exec_free(p->exec);
    stk_graph_free(p->graph);
    stk_class_means_free(&p->means);
    stk_means_trial_free(&p->trial);
    stk_mem_free(p->weights);
    stk_mem_free(p->bias);
    stk_mem_free(p->held);
}

/* Compiles the network; where memory runs out, without the executables that wait. */
static stk_status compile(means_passes *p, stk_error *err) {
    stk_job *job = p->fold->job;
    const stk_backend *backend = job->network.opened.backend;
    stk_compile_config how = stk_network_compile_config(&job->network, &job->recipe, false);
    how.graph = p->graph;
    stk_error why = {0};
    stk_status status = backend->compile(&p->exec, job->network.state, &how, &why);
    if (status == STK_ERR_MEMORY && job->network.execs.count > 0) {
        stk_exec_cache_clear(&job->network.execs);
        why = (stk_error){0};
        status = backend->compile(&p->exec, job->network.state, &how, &why);
    }
    return status == STK_OK ? STK_OK : STK_FAIL(err, status, "%s", why.message);
}

static stk_status open_passes(means_passes *p, stk_error *err) {
    stk_running_fold *fold = p->fold;
    stk_job *job = fold->job;
    const stk_graph *usual = job->network.graph;
    const stk_backend *backend = job->network.opened.backend;
    const stk_node *head = stk_graph_classifier(usual);
    size_t classes = (size_t)usual->classes;
    int stranger =
        job->dataset->answer.kind == STK_ANSWER_RANKED ? job->dataset->answer.stranger : -1;
    stk_status status = stk_fold_load_weights(fold, err);
    STK_THEN(status, stk_network_build_embedding(&job->network, &job->recipe, &p->graph, err));
    if (status != STK_OK) {
        return status;
    }
    memcpy(p->graph->mean, usual->mean, sizeof usual->mean);
    memcpy(p->graph->std, usual->std, sizeof usual->std);
    size_t width = (size_t)p->graph->embedded;
    p->weights = stk_mem_raw(classes, width * sizeof *p->weights);
    p->bias = stk_mem_raw(classes, sizeof *p->bias);
    if (p->weights == NULL || p->bias == NULL) {
        return STK_FAIL_MEMORY(err, "the means of classes");
    }
    status = stk_class_means_open(&p->means, usual->classes, width, stranger, err);
    STK_THEN(status, backend->state_read(job->network.state, STK_TENSOR_VALUE, head->params[0],
                                         p->weights, err));
    STK_THEN(status, backend->state_read(job->network.state, STK_TENSOR_VALUE, head->params[1],
                                         p->bias, err));
    STK_THEN(status, compile(p, err));
    return status;
}

/* What a pass does with a picture: its outputs, and after them the inputs of the head. */
typedef void add_picture(means_passes *p, int label, const float *logits, const float *features);

static void add_trained(means_passes *p, int label, const float *logits, const float *features) {
    (void)logits;
    stk_class_means_add(&p->means, label, features);
}

static void add_held(means_passes *p, int label, const float *logits, const float *features) {
    stk_means_trial_add(&p->trial, &p->means, label, logits, features);
}

/* The pass that runs. */
typedef struct running_pass {
    means_passes *passes;
    add_picture *add;
} running_pass;

static void add_batch(void *user, const stk_batch *batch, const size_t *entries,
                      const float *answers) {
    const running_pass *running = user;
    const stk_graph *graph = running->passes->graph;
    (void)entries;
    for (size_t i = 0; i < batch->count; i++) {
        const float *own = answers + i * stk_graph_answers(graph);
        if (!batch->bad[i]) {
            running->add(running->passes, batch->labels[i], own, own + graph->classes);
        }
    }
}

/* One pass over samples. STK_ERR_STOPPED: there was no time for all of them. */
static stk_status pass(means_passes *p, const stk_sample *samples, const size_t *indices,
                       size_t count, add_picture *add, stk_error *err) {
    stk_job *job = p->fold->job;
    running_pass running = {p, add};
    stk_evaluation evaluation = {.backend = job->network.opened.backend,
                                 .exec = p->exec,
                                 .answers = stk_graph_answers(p->graph),
                                 .data = stk_job_loader_config(job, false, samples, indices, count),
                                 .on_batch = add_batch,
                                 .user = &running};
    evaluation.data.batch = job->recipe.infer_batch;
    bool done = false;
    stk_status status = stk_evaluate(&evaluation, &done, err);
    return status == STK_OK && !done ? STK_FAIL(err, STK_ERR_STOPPED, "there was no time") : status;
}

/* Every k-th held-out picture, so that each class has its share. */
static stk_status choose_held(means_passes *p, size_t count, stk_error *err) {
    const stk_split *split = &p->fold->split;
    p->held = stk_mem_raw(count, sizeof *p->held);
    if (p->held == NULL) {
        return STK_FAIL_MEMORY(err, "held-out pictures");
    }
    for (size_t i = 0; i < count; i++) {
        size_t at = (size_t)((double)i * (double)split->val_count / (double)count);
        p->held[i] = split->val != NULL ? split->val[at] : at;
    }
    return STK_OK;
}

/* Chooses the weight of the means on held-out pictures. */
static stk_status try_means(means_passes *p, stk_means_choice *choice, stk_error *err) {
    const stk_running_fold *fold = p->fold;
    const stk_job *job = fold->job;
    size_t count = count_held(fold);
    const stk_metrics_config rated = {.task = job->dataset->task,
                                      .outputs = job->dataset->class_count,
                                      .capacity = count,
                                      .metric = (stk_metric)job->recipe.train.metric,
                                      .k = job->dataset->answer.most};
    const stk_calibrate_config config = {.metric = rated.metric, .stranger = p->means.stranger};
    stk_status status = choose_held(p, count, err);
    STK_THEN(status, stk_means_trial_open(&p->trial, &rated, err));
    STK_THEN(status, pass(p, fold->val_samples, p->held, count, add_held, err));
    STK_THEN(status,
             stk_means_trial_choose(&p->trial, stk_class_means_scale(&p->means, p->weights),
                                    job->recipe.train.calibrate ? &config : NULL, choice, err));
    return status;
}

/* Writes the head with the means into the state, and the weights that predict again. */
static stk_status save_joined(means_passes *p, double weight, stk_calibration *calibration,
                              stk_error *err) {
    stk_job *job = p->fold->job;
    const stk_backend *backend = job->network.opened.backend;
    const stk_node *head = stk_graph_classifier(job->network.graph);
    stk_class_means_join(&p->means, weight * stk_class_means_scale(&p->means, p->weights),
                         p->weights, p->bias);
    const stk_tensor_kind kinds[] = {STK_TENSOR_VALUE, STK_TENSOR_EMA};
    stk_status status = STK_OK;
    for (size_t i = 0; i < STK_COUNT(kinds) && status == STK_OK; i++) {
        if (stk_state_keeps(&job->network.state_config, kinds[i])) {
            status = backend->state_write(job->network.state, kinds[i], head->params[0], p->weights,
                                          err);
            STK_THEN(status, backend->state_write(job->network.state, kinds[i], head->params[1],
                                                  p->bias, err));
        }
    }
    STK_THEN(status, stk_fold_save_weights(p->fold, calibration, err));
    return status;
}

static void emit(const stk_job *job, const stk_means_choice *choice, size_t held) {
    char what[96];
    char why[200];
    char count[32];
    const char *metric = stk_options_get(job->options, "metric");
    stk_format_count(count, sizeof count, held);
    if (choice->weight > 0) {
        snprintf(what, sizeof what, "the means of rare classes join the head, with weight %.3g",
                 choice->weight);
        snprintf(why, sizeof why, "%s %.4g instead of %.4g on %s held-out pictures", metric,
                 choice->best, choice->plain, count);
    } else {
        snprintf(what, sizeof what, "the means of rare classes do not join the head");
        snprintf(why, sizeof why, "%s %.4g at best instead of %.4g on %s held-out pictures", metric,
                 choice->best, choice->plain, count);
    }
    stk_events_decision(&job->events, what, why);
}

static stk_status join(means_passes *p, stk_error *err) {
    stk_running_fold *fold = p->fold;
    const stk_job *job = fold->job;
    bool refit = stk_recipe_is_refit(&job->recipe, job->tally.fold);
    stk_means_choice choice = {.weight = fold->means_wanted};
    stk_status status = open_passes(p, err);
    STK_THEN(status, pass(p, job->dataset->train.items, fold->split.train, fold->split.train_count,
                          add_trained, err));
    if (status != STK_OK) {
        return status;
    }
    stk_class_means_finish(&p->means);
    if (refit) {
        fold->calibration.means = choice.weight;
        return save_joined(p, choice.weight, &fold->calibration, err);
    }
    status = try_means(p, &choice, err);
    if (status == STK_OK) {
        emit(job, &choice, p->trial.count);
    }
    if (status == STK_OK && choice.weight > 0) {
        status = save_joined(p, choice.weight, &choice.calibration, err);
    }
    stk_calibration_free(&choice.calibration);
    return status;
}

void stk_fold_join_means(stk_running_fold *fold) {
    stk_run_clock *clock = &fold->job->clock;
    means_passes p = {.fold = fold};
    stk_error why = {0};
    if (!is_wanted(fold)) {
        return;
    }
    double halt_at_s = clock->halt_at_s;
    double left_s = seconds_left(fold);
    if (isfinite(left_s)) { /* whatever takes longer is given up for the prediction */
        clock->halt_at_s = stk_run_clock_elapsed(clock) + left_s;
    }
    stk_status status = join(&p, &why);
    clock->halt_at_s = halt_at_s;
    close_passes(&p);
    if (status == STK_ERR_STOPPED || status == STK_ERR_MEMORY) {
        stk_events_decision(&fold->job->events, "the means of rare classes are left out",
                            status == STK_ERR_MEMORY ? "there is no memory for them"
                                                     : "there was no time for all pictures");
    } else if (status != STK_OK) {
        stk_events_warning(&fold->job->events, "the means of rare classes are left out: %s",
                           why.message);
    }
}
