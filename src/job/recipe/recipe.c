/*
 * recipe.c - from options to a recipe.
 *
 * Defaults depend on the data set and the machine, and on timing only where a batch is measured or
 * a budget decides: runs must repeat. Every choice ends with stk_options_resolve(), which stores
 * the value and the reason in the options.
 */
#include "job/recipe/recipe.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/machine.h"
#include "base/mem.h"
#include "budget/budget.h"
#include "budget/inference.h"
#include "budget/prediction_choice.h"
#include "job/recipe/job_options.h"
#include "job/recipe/recipe_loss.h"
#include "job/recipe/recipe_rates.h"
#include "job/recipe/recipe_sizes.h"
#include "predict/predict.h"

/* A GPU compiles for every batch, which takes seconds where nothing is stored from earlier runs. So
 * a batch that was rehearsed stays, if the one to choose is no more times larger or smaller. */
#define NEAR_BATCH 2

/* From so many times as many pictures as the others have, the largest class is seen less often. */
#define IMBALANCE 5.0

/* Pixels of a batch on a CPU at most: on a few cores a step of a large network takes seconds. */
#define MOST_PIXELS ((size_t)1 << 20)

stk_recipe stk_recipe_begin(const stk_options *options) {
    const stk_job_options *job = stk_options_values(options, &stk_job_option_table);
    const stk_train_options *train = stk_options_values(options, &stk_train_option_table);
    const stk_view_options *views = stk_options_values(options, &stk_view_option_table);
    const stk_dataset_options *data = stk_options_values(options, &stk_dataset_option_table);
    stk_recipe recipe = {.metric_found = STK_METRIC_AUTO,
                         .folds = stk_is_auto_int(job->folds) ? 1 : (int)job->folds,
                         .refits = stk_is_auto_int(job->refit) ? 0 : (int)job->refit,
                         .may_freeze = true,
                         .views = stk_is_auto_int(views->tta) ? 0 : (int)views->tta,
                         .least_views = stk_is_auto_int(views->tta) ? 1 : (int)views->tta,
                         .seed = (uint64_t)job->seed,
                         .val_fraction = data->val_fraction,
                         .infer_batch = STK_PREDICT_BATCH};
    recipe.models_asked = stk_recipe_models(&recipe);
    bool known = !stk_is_auto_int(train->epochs);
    stk_recipe_expect(&recipe, options, known ? (double)train->epochs : STK_BUDGET_DEFAULT_EPOCHS);
    return recipe;
}

const char *stk_recipe_optimizer(const stk_train_options *train) {
    return train->optimizer == STK_SGD ? "sgd" : "adamw";
}

static double given_or(double given, double own) {
    return stk_is_auto_double(given) ? own : given;
}

/* The metric that the data set asks for, or the usual one of the task. */
static stk_metric default_metric(const stk_recipe *recipe) {
    return recipe->metric_found != STK_METRIC_AUTO
               ? recipe->metric_found
               : stk_metric_default(recipe->task, recipe->answer);
}

/* The loss that goes with the task and its metric. Targets of several labels are not smoothed: most
 * labels are rare, and smoothing would say that each is there a little. Steps of a scale would all
 * be drawn towards its middle. */
static void take_loss(stk_recipe *recipe) {
    recipe->loss = stk_recipe_loss(recipe);
    if (!stk_loss_has_labels(recipe->loss.kind) || recipe->task == STK_TASK_ORDINAL) {
        recipe->train.label_smoothing = 0;
    }
}

void stk_recipe_expect(stk_recipe *recipe, const stk_options *options, double epochs) {
    const stk_job_options *job = stk_options_values(options, &stk_job_option_table);
    const stk_augment_options *augment = stk_options_values(options, &stk_augment_option_table);
    double seen = recipe->pictures > 0 ? epochs * (double)recipe->pictures : INFINITY;
    const stk_recipe_row *row =
        stk_recipe_row_choose(job->recipe, recipe->weights != NULL, epochs, seen);
    stk_train_options *train = &recipe->train;
    *train = *(const stk_train_options *)stk_options_values(options, &stk_train_option_table);
    recipe->row = row;
    recipe->epochs_expected = epochs;
    train->optimizer =
        train->optimizer == STK_OPTIMIZER_AUTO ? (int)row->optimizer : train->optimizer;
    train->weight_decay = given_or(train->weight_decay,
                                   train->optimizer == STK_SGD ? row->sgd_decay : row->adam_decay);
    train->label_smoothing = given_or(train->label_smoothing, row->label_smoothing);
    train->mixup = given_or(train->mixup, row->mixup);
    train->ema = given_or(train->ema, row->ema);
    /* Rates that were given were meant for usual norms. */
    bool keeps = row->keeps_stats && recipe->weights != NULL && stk_is_default_double(train->lr) &&
                 train->backbone_lr_scale == 1;
    if (train->norm_stats == STK_NORM_STATS_AUTO) {
        train->norm_stats = keeps ? STK_NORM_STATS_KEPT : STK_NORM_STATS_BATCH;
    }
    if (train->metric == STK_METRIC_AUTO) {
        train->metric = (int)default_metric(recipe);
    }
    take_loss(recipe);
    train->patience = stk_is_auto_int(train->patience) ? 0 : train->patience;
    recipe->augment = *augment;
    recipe->augment.crop_scale =
        given_or(augment->crop_scale, recipe->native ? 1 : row->crop_scale);
}

stk_loader_sizing stk_recipe_sizing(const stk_recipe *recipe, const stk_loader_options *options,
                                    size_t batch) {
    uint64_t side = (uint64_t)recipe->img_size;
    uint64_t channels = recipe->channels > 0 ? (uint64_t)recipe->channels : 3;
    return stk_loader_sizing_for(options, batch, side * side * channels, stk_machine_cores(),
                                 stk_machine_memory());
}

bool stk_recipe_is_limited(const stk_options *options) {
    const stk_budget_options *budget = stk_options_values(options, &stk_budget_option_table);
    return !stk_is_auto_double(budget->budget_s) || budget->deadline != NULL;
}

bool stk_recipe_is_to_fit(const stk_options *options) {
    const stk_train_options *train = stk_options_values(options, &stk_train_option_table);
    return stk_recipe_is_limited(options) && stk_is_auto_int(train->epochs);
}

stk_training_facts stk_recipe_training_facts(const stk_recipe *recipe, const stk_options *options,
                                             const stk_dataset *dataset) {
    const stk_job_options *job = stk_options_values(options, &stk_job_option_table);
    const stk_train_options *train = stk_options_values(options, &stk_train_option_table);
    bool by_column = dataset->division == STK_DIVIDE_FOLDS;
    bool divided = !by_column && stk_dataset_is_divided(dataset, recipe->val_fraction, 1);
    bool free = divided && stk_options_source(options, "val-fraction") == STK_FROM_DEFAULT;
    /* Rules for labels are fitted to the validation pictures: these must not be few. */
    bool may_hold_less =
        free && !stk_metric_has_rule((stk_metric)recipe->train.metric, dataset->task);
    return (stk_training_facts){.left_s = NAN,
                                .picture_s = NAN,
                                .pictures = dataset->train.count,
                                .val_part = divided ? recipe->val_fraction : 0,
                                .may_hold_less = may_hold_less,
                                .pretrained = recipe->weights != NULL,
                                .img_size = recipe->img_size,
                                .may_shrink = stk_is_auto_int(job->img_size),
                                .windows = recipe->native,
                                .may_grow = stk_is_auto_int(job->img_size) && !recipe->native,
                                .source_px = NAN,
                                .may_begin_small =
                                    stk_is_auto_int(job->early_size) && !recipe->native,
                                .epochs = stk_is_auto_int(train->epochs) ? 0 : (int)train->epochs,
                                .folds = recipe->folds,
                                .refits = stk_is_auto_int(job->refit) ? -1 : (int)job->refit};
}

stk_status stk_recipe_take_views(stk_recipe *recipe, stk_options *options, int views,
                                 stk_error *err) {
    recipe->views = views;
    return stk_options_resolve_number(options, "tta", views, "auto", err);
}

size_t stk_recipe_predicted(const stk_recipe *recipe, int refits) {
    size_t of_folds = recipe->folds > 1 ? recipe->pictures : 0;
    return recipe->test_pictures * (size_t)(recipe->folds + refits) + of_folds;
}

double stk_recipe_eval_pixels(const stk_recipe *recipe) {
    double side = (double)recipe->eval_size / recipe->img_size;
    return side * side;
}

stk_status stk_recipe_take_choice(stk_recipe *recipe, stk_options *options,
                                  const stk_training_choice *choice, stk_error *err) {
    const stk_job_options *job = stk_options_values(options, &stk_job_option_table);
    stk_status status = STK_OK;
    recipe->refits = choice->refits;
    recipe->img_size = choice->img_size;
    stk_recipe_expect(recipe, options, choice->epochs);
    if (choice->val_part > 0 && choice->val_part < recipe->val_fraction) {
        recipe->val_fraction = choice->val_part;
        status = stk_options_resolve_number(options, "val-fraction", choice->val_part, "auto", err);
    }
    if (status == STK_OK && stk_is_auto_int(job->folds)) {
        status = stk_options_resolve_number(options, "folds", recipe->folds, "auto", err);
    }
    if (status == STK_OK && stk_is_auto_int(job->refit)) {
        status = stk_options_resolve_number(options, "refit", choice->refits, "auto", err);
    }
    if (status == STK_OK && stk_is_auto_int(job->img_size)) {
        status = stk_options_resolve_number(options, "img-size", choice->img_size, "auto", err);
    }
    STK_THEN(status, stk_recipe_choose_eval_size(recipe, options, err));
    return status == STK_OK ? stk_recipe_take_early_size(recipe, options, choice->early_size, err)
                            : status;
}

/* Takes the number of folds that a column gives. */
static stk_status take_column(stk_recipe *recipe, stk_options *options, const stk_dataset *dataset,
                              stk_error *err) {
    const stk_job_options *job = stk_options_values(options, &stk_job_option_table);
    int given = dataset->part_count;
    char text[16];
    char why[160];
    if (dataset->division != STK_DIVIDE_FOLDS || recipe->folds == given) {
        return STK_OK;
    }
    if (!stk_is_auto_int(job->folds)) {
        return STK_FAIL(err, STK_ERR_USAGE,
                        "--folds %d: column %s of %s gives %d folds; leave --folds out",
                        recipe->folds, dataset->part_column, dataset->root, given);
    }
    if (given > STK_MOST_FOLDS) {
        return STK_FAIL(err, STK_ERR_USAGE,
                        "--fold-column %s: it has %d different values in %s, which is too many for "
                        "folds (at most %d); if they are groups, pass --group-column and --folds",
                        dataset->part_column, given, dataset->root, STK_MOST_FOLDS);
    }
    snprintf(text, sizeof text, "%d", given);
    snprintf(why, sizeof why, "as many as column %.80s has", dataset->part_column);
    recipe->folds = given;
    recipe->models_asked = stk_recipe_models(recipe);
    return stk_options_resolve(options, "folds", text, why, err);
}

/* How many times as many pictures the largest class has as the others have on average. */
static stk_status measure_imbalance(const stk_dataset *dataset, double *times, stk_error *err) {
    double pictures = (double)dataset->train.count;
    double *shares = stk_mem_new((size_t)dataset->class_count, sizeof *shares);
    double largest = 0;
    *times = 1;
    if (shares == NULL) {
        return STK_FAIL_MEMORY(err, "shares of the classes");
    }
    stk_dataset_priors(dataset, shares);
    for (int c = 0; c < dataset->class_count; c++) {
        largest = fmax(largest, round(shares[c] * pictures));
    }
    if (largest < pictures) {
        *times = largest * (dataset->class_count - 1) / (pictures - largest);
    }
    stk_mem_free(shares);
    return STK_OK;
}

static stk_status choose_sampling(stk_recipe *recipe, stk_options *options,
                                  const stk_dataset *dataset, stk_error *err) {
    const stk_loader_options *loader = stk_options_values(options, &stk_loader_option_table);
    double times;
    recipe->sampling = (stk_sampling)loader->sampling;
    if (recipe->sampling != STK_SAMPLING_AUTO) {
        return STK_OK;
    }
    stk_status status = measure_imbalance(dataset, &times, err);
    if (status != STK_OK || times < IMBALANCE) {
        recipe->sampling = STK_SAMPLING_NATURAL;
        return status == STK_OK ? stk_options_resolve(options, "sampling", "natural", "auto", err)
                                : status;
    }
    recipe->sampling = STK_SAMPLING_SQRT;
    recipe->imbalance = times;
    return stk_options_resolve(options, "sampling", "sqrt", "auto", err);
}

/* Checks that the metric can rate the task, and names it where it was left to Stoker. */
static stk_status take_metric(const stk_recipe *recipe, stk_options *options, stk_error *err) {
    stk_metric metric = (stk_metric)recipe->train.metric;
    const stk_train_options *given = stk_options_values(options, &stk_train_option_table);
    stk_status status = stk_metric_check(metric, recipe->task, err);
    return status == STK_OK && given->metric == STK_METRIC_AUTO
               ? stk_options_resolve(options, "metric", stk_metric_info_of(metric)->name, "auto",
                                     err)
               : status;
}

stk_status stk_recipe_take_dataset(stk_recipe *recipe, stk_options *options,
                                   const stk_dataset *dataset, stk_error *err) {
    const stk_train_options *given = stk_options_values(options, &stk_train_option_table);
    const stk_job_options *job = stk_options_values(options, &stk_job_option_table);
    recipe->task = dataset->task;
    recipe->metric_found = dataset->metric_given ? STK_METRIC_AUTO : dataset->metric;
    recipe->metric_phrase = dataset->metric_phrase;
    recipe->answer = dataset->answer.kind;
    recipe->metric_is_open = given->metric == STK_METRIC_AUTO;
    recipe->features = dataset->features.count;
    recipe->pictures = dataset->train.count;
    recipe->test_pictures = dataset->test.count;
    stk_recipe_expect(recipe, options, recipe->epochs_expected);
    stk_status status = take_metric(recipe, options, err);
    STK_THEN(status, stk_recipe_take_loss(recipe, options, err));
    STK_THEN(status, choose_sampling(recipe, options, dataset, err));
    STK_THEN(status, take_column(recipe, options, dataset, err));
    if (status != STK_OK || stk_recipe_is_to_fit(options)) {
        return status;
    }
    stk_training_facts facts = stk_recipe_training_facts(recipe, options, dataset);
    recipe->refits = stk_training_choose(&facts).refits;
    if (stk_is_auto_int(job->refit)) {
        status = stk_options_resolve_number(options, "refit", recipe->refits, "auto", err);
    }
    return status == STK_OK && stk_is_auto_int(job->folds) && dataset->division != STK_DIVIDE_FOLDS
               ? stk_options_resolve_number(options, "folds", recipe->folds, "auto", err)
               : status;
}

void stk_recipe_take_positive_weights(stk_recipe *recipe, const float *weights) {
    recipe->positive_weights = weights;
    recipe->loss = stk_recipe_loss(recipe);
}

static stk_status choose_rate(stk_options *options, const char *name, double given, double own,
                              double *rate, stk_error *err) {
    *rate = given_or(given, own);
    return stk_is_auto_double(given) ? stk_options_resolve_number(options, name, own, "auto", err)
                                     : STK_OK;
}

void stk_recipe_take_weights(stk_recipe *recipe, const stk_options *options, const char *weights) {
    recipe->weights = weights;
    stk_recipe_expect(recipe, options, recipe->epochs_expected);
}

stk_status stk_recipe_take_model(stk_recipe *recipe, stk_options *options,
                                 const stk_model_source *source, stk_error *err) {
    const stk_job_options *job = stk_options_values(options, &stk_job_option_table);
    stk_status status = STK_OK;
    recipe->model = source->model;
    stk_recipe_take_weights(recipe, options, source->weights);
    if (source->weights == NULL && recipe->train.norm_stats == STK_NORM_STATS_KEPT) {
        return STK_FAIL(err, STK_ERR_USAGE,
                        "--norm-stats kept: random weights have no statistics to keep; pass "
                        "--pretrained, or leave --norm-stats out");
    }
    if (job->model == NULL) {
        status = stk_options_resolve(options, "model", recipe->model->name, "auto", err);
    }
    recipe->img_size = stk_recipe_size_for(recipe, options, recipe->model);
    if (status == STK_OK && stk_is_auto_int(job->img_size)) {
        status = stk_options_resolve_number(options, "img-size", recipe->img_size, "auto", err);
    }
    STK_THEN(status, stk_recipe_choose_eval_size(recipe, options, err));
    STK_THEN(status, stk_recipe_take_early_size(recipe, options, 0, err));
    STK_THEN(status, choose_rate(options, "dropout", job->dropout, recipe->model->dropout,
                                 &recipe->dropout, err));
    STK_THEN(status, choose_rate(options, "drop-path", job->drop_path, recipe->model->drop_path,
                                 &recipe->drop_path, err));
    return status;
}

stk_status stk_recipe_open_device(stk_opened_device *opened, stk_options *options,
                                  const stk_device_config *given, stk_error *err) {
    const stk_job_options *job = stk_options_values(options, &stk_job_option_table);
    stk_device_config config = *given;
    config.threads = stk_machine_cores();
    config.deterministic = job->deterministic;
    config.memory_bytes = job->assume_memory;
    stk_precision asked = (stk_precision)job->precision;
    stk_status status = stk_opened_device_open(opened, job->device, asked, &config, err);
    if (status == STK_OK && (job->device == NULL || strcmp(job->device, opened->name) != 0)) {
        status = stk_options_resolve(options, "device", opened->name,
                                     job->device == NULL ? "auto" : opened->why, err);
    }
    if (status == STK_OK && asked != opened->precision) {
        char why[64];
        status =
            stk_options_resolve(options, "precision", stk_precision_name(opened->precision),
                                asked == STK_PRECISION_AUTO
                                    ? "auto"
                                    : stk_opened_device_explain_precision(opened, why, sizeof why),
                                err);
    }
    return status;
}

stk_batch_facts stk_recipe_batch_facts(const stk_recipe *recipe, const stk_options *options,
                                       bool on_cpu, size_t train_count) {
    const stk_train_options *train = stk_options_values(options, &stk_train_option_table);
    size_t pixels = (size_t)recipe->img_size * (size_t)recipe->img_size;
    stk_batch_bounds bounds = stk_recipe_batch_bounds(
        recipe->weights != NULL, (double)train_count * recipe->epochs_expected);
    size_t ready = on_cpu ? 0 : recipe->batch_rehearsed;
    if (ready > 0 && ready <= NEAR_BATCH * bounds.most && NEAR_BATCH * ready >= bounds.least) {
        bounds = (stk_batch_bounds){.least = ready, .most = ready};
    }
    return (stk_batch_facts){.given = stk_is_auto_int(train->batch) ? 0 : (size_t)train->batch,
                             .accumulate = train->accumulate,
                             .train_count = train_count,
                             .quick_most = on_cpu ? MOST_PIXELS / pixels : SIZE_MAX,
                             .learns_most = bounds.most,
                             .least = bounds.least,
                             .policy = (stk_batch_policy)train->batch_policy};
}

/* Writes the batch to the options where it is not the one that was asked for. */
static stk_status resolve_batch(stk_options *options, const stk_batch_facts *facts,
                                const stk_batch_choice *choice, stk_error *err) {
    stk_status status = STK_OK;
    if (choice->batch != facts->given) {
        bool cut = facts->given > facts->train_count;
        status = stk_options_resolve_number(options, "batch", (double)choice->batch,
                                            facts->given == 0 ? "auto"
                                            : cut             ? "cut to the training set"
                                                              : "cut to the memory",
                                            err);
    }
    if (status == STK_OK && choice->accumulate != facts->accumulate) {
        status = stk_options_resolve_number(options, "accumulate", (double)choice->accumulate,
                                            "keeps the images of an update", err);
    }
    return status;
}

/* Writes what the row of the recipe gave to the options. */
static stk_status resolve_row(const stk_recipe *recipe, stk_options *options, stk_error *err) {
    const stk_train_options *given = stk_options_values(options, &stk_train_option_table);
    const stk_augment_options *augment = stk_options_values(options, &stk_augment_option_table);
    const stk_train_options *train = &recipe->train;
    const struct {
        const char *name;
        double given;
        double value;
    } numbers[] = {
        {"weight-decay", given->weight_decay, train->weight_decay},
        {"label-smoothing", given->label_smoothing, train->label_smoothing},
        {"mixup", given->mixup, train->mixup},
        {"ema", given->ema, train->ema},
        {"crop-scale", augment->crop_scale, recipe->augment.crop_scale},
    };
    const stk_job_options *job = stk_options_values(options, &stk_job_option_table);
    stk_status status = job->recipe == 0
                            ? stk_options_resolve(options, "recipe", recipe->row->name, "auto", err)
                            : STK_OK;
    if (status == STK_OK && given->optimizer == STK_OPTIMIZER_AUTO) {
        status =
            stk_options_resolve(options, "optimizer", stk_recipe_optimizer(train), "auto", err);
    }
    if (status == STK_OK && given->norm_stats == STK_NORM_STATS_AUTO) {
        bool kept = train->norm_stats == STK_NORM_STATS_KEPT;
        status = stk_options_resolve(options, "norm-stats", kept ? "kept" : "batch", "auto", err);
    }
    for (size_t i = 0; i < STK_COUNT(numbers) && status == STK_OK; i++) {
        if (stk_is_auto_double(numbers[i].given)) {
            status =
                stk_options_resolve_number(options, numbers[i].name, numbers[i].value, "auto", err);
        }
    }
    return status;
}

static stk_status choose_epochs(stk_recipe *recipe, stk_options *options, stk_error *err) {
    const stk_train_options *train = &recipe->train;
    stk_status status = STK_OK;
    if (!stk_is_auto_int(train->epochs)) {
        recipe->epochs_wanted = (int)train->epochs;
    } else if (!stk_recipe_is_limited(options)) {
        recipe->epochs_wanted = STK_BUDGET_DEFAULT_EPOCHS;
        status = stk_options_resolve_number(options, "epochs", recipe->epochs_wanted, "auto", err);
    }
    return status;
}

/*
 * Chooses the views where the number was left to Stoker. Without a rehearsal nothing is measured
 * yet, and the choice must not depend on time: what is predicted is compared with the training that
 * was asked for. If a budget cuts that short, the plan of the running fold does with one view.
 */
static stk_status choose_views(stk_recipe *recipe, stk_options *options, size_t train_count,
                               stk_error *err) {
    if (recipe->views > 0) {
        return STK_OK;
    }
    if (recipe->epochs_wanted == 0) { /* a rehearsal may find time for more */
        recipe->views = 1;
        return STK_OK;
    }
    double trained =
        (double)recipe->epochs_wanted * (double)train_count * stk_recipe_models(recipe);
    double predicted = (double)stk_recipe_predicted(recipe, recipe->refits);
    double view = STK_INFERENCE_PART * stk_recipe_eval_pixels(recipe) * predicted;
    return stk_recipe_take_views(recipe, options,
                                 stk_views_choose(recipe->augment.flip, view, trained), err);
}

static stk_status choose_loader(stk_recipe *recipe, stk_options *options,
                                const stk_loader_options *loader, stk_error *err) {
    recipe->loader = stk_recipe_sizing(recipe, loader, recipe->batch);
    stk_status status = STK_OK;
    if (stk_is_auto_int(loader->workers)) {
        status =
            stk_options_resolve_number(options, "workers", recipe->loader.workers, "auto", err);
    }
    if (status == STK_OK && stk_is_auto_int(loader->prefetch)) {
        status =
            stk_options_resolve_number(options, "prefetch", recipe->loader.prefetch, "auto", err);
    }
    return status;
}

stk_status stk_recipe_choose_freeze(stk_recipe *recipe, stk_options *options, size_t train_count,
                                    stk_error *err) {
    const stk_train_options *given = stk_options_values(options, &stk_train_option_table);
    stk_train_options *train = &recipe->train;
    double updates = (double)train_count / (double)recipe->batch / (double)train->accumulate;
    if (!stk_is_auto_int(given->freeze_epochs)) {
        return STK_OK;
    }
    int frozen = stk_recipe_freeze_epochs(recipe->row, recipe->epochs_expected, updates);
    if (recipe->epochs_wanted > 0 && frozen >= recipe->epochs_wanted) {
        frozen = recipe->epochs_wanted - 1; /* one is left for all layers */
    }
    train->freeze_epochs = recipe->may_freeze ? frozen : 0;
    return stk_options_resolve_number(options, "freeze-epochs", (double)train->freeze_epochs,
                                      "auto", err);
}

stk_status stk_recipe_complete(stk_recipe *recipe, stk_options *options,
                               const stk_batch_facts *facts, const stk_batch_choice *choice,
                               size_t infer_batch, bool to_be_measured, stk_error *err) {
    const stk_loader_options *loader = stk_options_values(options, &stk_loader_option_table);
    stk_recipe_expect(recipe, options, recipe->epochs_expected);
    recipe->train.accumulate = choice->accumulate;
    recipe->accumulate_chosen = choice->accumulate;
    recipe->batch = choice->batch;
    recipe->batch_chosen = choice->batch;
    recipe->infer_batch = infer_batch;
    stk_status status = to_be_measured ? STK_OK : resolve_batch(options, facts, choice, err);
    STK_THEN(status, stk_recipe_choose_rates(recipe, options, stk_batch_rate_scale(facts, choice),
                                             facts->train_count, to_be_measured, err));
    STK_THEN(status, choose_epochs(recipe, options, err));
    STK_THEN(status, choose_views(recipe, options, facts->train_count, err));
    STK_THEN(status, choose_loader(recipe, options, loader, err));
    STK_THEN(status, stk_recipe_choose_freeze(recipe, options, facts->train_count, err));
    return status == STK_OK && !to_be_measured ? resolve_row(recipe, options, err) : status;
}

int stk_recipe_models(const stk_recipe *recipe) {
    return recipe->folds + recipe->refits;
}

bool stk_recipe_is_refit(const stk_recipe *recipe, int model) {
    return model >= recipe->folds;
}

bool stk_recipe_has_chosen(const stk_recipe *recipe) {
    return recipe->models_asked < stk_recipe_models(recipe);
}

/* ---- other recipes from one ---- */

stk_recipe stk_recipe_with_batch(const stk_recipe *recipe, size_t batch, int64_t accumulate,
                                 const stk_loader_options *loader) {
    stk_recipe other = *recipe;
    other.batch = batch;
    other.train.accumulate = accumulate;
    other.loader = stk_recipe_sizing(&other, loader, batch);
    return other;
}

stk_recipe stk_recipe_with_infer_batch(const stk_recipe *recipe, size_t infer_batch) {
    stk_recipe other = *recipe;
    other.infer_batch = infer_batch;
    return other;
}

stk_recipe stk_recipe_with_early_sizes(const stk_recipe *recipe) {
    stk_recipe early = *recipe;
    early.img_size = recipe->early_size;
    early.eval_size = recipe->early_eval_size;
    return early;
}

stk_recipe stk_recipe_with_sizes_of(const stk_recipe *recipe, const stk_recipe *other) {
    stk_recipe same = *recipe;
    same.img_size = other->img_size;
    same.eval_size = other->eval_size;
    return same;
}

stk_recipe stk_recipe_with_views(const stk_recipe *recipe, int views) {
    stk_recipe other = *recipe;
    other.views = views;
    return other;
}

stk_recipe stk_recipe_with_lr(const stk_recipe *recipe, double lr) {
    stk_recipe other = *recipe;
    other.lr = lr;
    return other;
}

stk_recipe stk_recipe_with_workers(const stk_recipe *recipe, int workers) {
    stk_recipe other = *recipe;
    other.loader.workers = workers;
    return other;
}

/* Halves the batch and doubles the accumulation, so that an update has as many images as before.
 * Here and below, `what` stays "" where nothing can be halved. */
static stk_recipe shrink_training(const stk_recipe *recipe, const stk_loader_options *loader,
                                  char *what, size_t room) {
    size_t batch = recipe->batch;
    int64_t accumulate = recipe->train.accumulate;
    int64_t images = (int64_t)recipe->batch_chosen * recipe->accumulate_chosen;
    if (!stk_batch_halve(&batch, &accumulate, images)) {
        return *recipe;
    }
    snprintf(what, room, "batch %zu x %lld instead of %zu x %lld", batch, (long long)accumulate,
             recipe->batch, (long long)recipe->train.accumulate);
    return stk_recipe_with_batch(recipe, batch, accumulate, loader);
}

static stk_recipe shrink_validation(const stk_recipe *recipe, char *what, size_t room) {
    size_t half = recipe->infer_batch / 2;
    if (half < 1) {
        return *recipe;
    }
    snprintf(what, room, "validation and prediction in batches of %zu instead of %zu", half,
             recipe->infer_batch);
    return stk_recipe_with_infer_batch(recipe, half);
}

stk_recipe stk_recipe_shrink(const stk_recipe *recipe, const stk_loader_options *loader,
                             bool validating, char *what, size_t room) {
    what[0] = '\0';
    stk_recipe smaller = validating ? shrink_validation(recipe, what, room)
                                    : shrink_training(recipe, loader, what, room);
    if (what[0] != '\0') {
        return smaller;
    }
    return validating ? shrink_training(recipe, loader, what, room)
                      : shrink_validation(recipe, what, room);
}
