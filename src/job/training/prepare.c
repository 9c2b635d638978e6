/*
 * prepare.c - everything before the first event of a run: data set, recipe, device, network; and,
 * after the first submission, the measured batch.
 */
#include "job/training/job.h"

#include <stdio.h>

#include "base/error.h"
#include "base/files/file.h"
#include "job/recipe/picture_look.h"
#include "job/recipe/recipe_loss.h"
#include "job/recipe/recipe_lines.h"
#include "job/recipe/recipe_sizes.h"
#include "job/recipe/task_lines.h"
#include "job/recipe/version_look.h"
#include "job/training/folds.h"
#include "predict/submission.h"
#include "weights/pretrained.h"

/* How many images one fold trains on. */
static stk_status count_training(const stk_dataset *dataset, const stk_recipe *recipe,
                                 size_t *train, size_t *val, stk_error *err) {
    stk_split split;
    stk_status status = stk_fold_split(dataset, recipe, 0, &split, NULL, err);
    if (status == STK_OK) {
        *train = split.train_count;
        *val = split.val_count;
        stk_split_free(&split);
    }
    return status;
}

/* Whether the call that began a resumed run left the number of views to Stoker. */
static bool views_were_chosen(const stk_job *job) {
    const char *given = stk_json_string(stk_json_get(job->resume.given, "tta"));
    return stk_options_source(job->options, "tta") == STK_FROM_RUN &&
           (given == NULL || stk_str_equal_nocase(given, "auto"));
}

/* A resumed run trains the models that it was begun for, and predicts in as many views. A run of a
 * version without refits has none, and one of a version without --tta has one view. Only what was
 * given counts as asked for. */
static void keep_models(stk_job *job) {
    const stk_json *given = job->resume.given;
    if (stk_is_auto_int(job->job_options->refit)) {
        job->recipe.refits = 0;
    }
    job->recipe.models_asked = (stk_json_get(given, "folds") != NULL ? job->recipe.folds : 1) +
                               (stk_json_get(given, "refit") != NULL ? job->recipe.refits : 0);
    job->recipe.views = job->recipe.views > 0 ? job->recipe.views : 1;
    job->recipe.least_views = views_were_chosen(job) ? 1 : job->recipe.views;
}

/* Finds the models that may be trained; all of them start from pretrained weights, or none. */
static stk_status find_models(stk_job *job, const stk_events *early, stk_error *err) {
    stk_model_search *models = &job->models;
    stk_status status = stk_model_search_find(models, &job->recipe, job->options,
                                              job->dataset->class_count, early, err);
    if (status == STK_OK) {
        stk_recipe_take_weights(&job->recipe, job->options, models->candidates[0].weights);
    }
    return status;
}

/* Opens the device, and chooses the model to begin with. */
static stk_status open_device(stk_job *job, stk_error *err) {
    stk_model_search *models = &job->models;
    stk_status status = stk_network_open_device(&job->network, job->options, &job->clock, err);
    job->clock.margin.end_s = stk_opened_device_end_s(&job->network.opened);
    STK_THEN(status, stk_model_search_begin(models, &job->network, &job->recipe,
                                            job->dataset->class_count, err));
    /* A resumed run of a version without --eval-size goes on to validate at the size of training.
     */
    job->recipe.eval_as_trained = job->resume.on && stk_is_auto_int(job->job_options->eval_size);
    STK_THEN(status, stk_recipe_take_model(&job->recipe, job->options,
                                           &models->candidates[models->chosen], err));
    return status;
}

/* Finds the first weights. Where the model may still change, nothing is said about them. A head
 * that was learned already need not learn alone. Nor does it where a GPU would have to compile for
 * it within a budget, and no rehearsal tells how long that takes. */
static stk_status find_weights(stk_job *job, const char *before, size_t train_count,
                               const stk_events *early, stk_error *err) {
    static const stk_events nobody = {0};
    bool open = stk_model_search_is_open(&job->models) && stk_job_is_to_fit(job);
    const stk_events *events = open ? &nobody : early;
    stk_model_search_emit(&job->models, NULL, stk_opened_device_is_cpu(&job->network.opened),
                          events);
    stk_status status = stk_network_find_pretrained(&job->network, &job->recipe, job->options,
                                                    job->dataset->class_count, before, events, err);
    bool compiles = !stk_opened_device_is_cpu(&job->network.opened) &&
                    stk_recipe_is_limited(job->options) && !stk_recipe_is_to_fit(job->options);
    job->recipe.may_freeze = job->network.head_anew && !compiles;
    return status == STK_OK ? stk_recipe_choose_freeze(&job->recipe, job->options, train_count, err)
                            : status;
}

/* Completes the recipe with the result of the batch search. */
static stk_status complete_recipe(stk_job *job, stk_error *err) {
    const stk_batch_search *search = &job->batch_search;
    return stk_recipe_complete(&job->recipe, job->options, &search->facts, &search->chosen,
                               search->infer_batch, search->to_be_measured, err);
}

/* Takes the batch of the saved state, or a smaller one if memory is short now. */
static stk_status resume_batch(stk_job *job, stk_error *err) {
    const stk_train_position *before = &job->resume.state.position;
    bool known = before->batch > 0;
    stk_status status = STK_ERR_MEMORY;
    if (known) {
        job->recipe = stk_recipe_with_batch(&job->recipe, (size_t)before->batch, before->accumulate,
                                            job->loader_options);
    }
    while (status == STK_ERR_MEMORY) {
        stk_error why = {0};
        char what[128]; /* stk_recipe_emit_resumed_batch() emits the result */
        status = stk_batch_search_check(&job->batch_search, job->recipe.batch,
                                        job->recipe.infer_batch, &why);
        stk_recipe smaller =
            stk_recipe_shrink(&job->recipe, job->loader_options, false, what, sizeof what);
        if (status == STK_ERR_MEMORY && known && what[0] != '\0') {
            job->recipe = smaller;
        } else if (status != STK_OK) {
            return STK_FAIL(err, status, "%s", why.message);
        }
    }
    return STK_OK;
}

/* Builds the network, finds the batch that fits into memory, and completes the recipe. */
static stk_status open_network(stk_job *job, size_t train_count, stk_error *err) {
    stk_status status =
        stk_network_build(&job->network, &job->recipe, job->dataset->class_count, err);
    STK_THEN(status, stk_batch_search_plan(&job->batch_search, job->options, train_count,
                                           job->resume.on, err));
    STK_THEN(status, complete_recipe(job, err));
    if (status == STK_OK) {
        stk_recipe_describe(job->options, &job->chosen);
        status = stk_str_ok(&job->chosen) ? STK_OK : STK_FAIL_MEMORY(err, "options");
    }
    if (status == STK_OK && job->resume.on) {
        status = resume_batch(job, err);
    }
    return status == STK_OK ? stk_network_allocate(&job->network, err) : status;
}

bool stk_job_is_to_fit(const stk_job *job) {
    return job->fits && !job->resume.on && stk_recipe_is_to_fit(job->options);
}

stk_status stk_job_plan_network(stk_job *job, size_t *train, size_t *val, stk_error *err) {
    stk_network_free_graph(&job->network);
    stk_status status = count_training(job->dataset, &job->recipe, train, val, err);
    STK_THEN(status,
             stk_network_build(&job->network, &job->recipe, job->dataset->class_count, err));
    STK_THEN(status, stk_batch_search_plan(&job->batch_search, job->options, *train, false, err));
    STK_THEN(status, complete_recipe(job, err));
    return status == STK_OK ? stk_network_allocate(&job->network, err) : status;
}

/* Whether the saved state belongs to a run with this recipe and network. */
static stk_status check_resume(const stk_job *job, stk_error *err) {
    const stk_resume *resume = &job->resume;
    const stk_job_network *network = &job->network;
    int64_t saved = resume->state.position.batch;
    size_t batch = saved > 0 ? (size_t)saved : job->recipe.batch;
    int64_t steps = 0;
    stk_status status =
        stk_fold_count_steps(job->dataset, &job->recipe, resume->state.fold, batch, &steps, err);
    STK_THEN(status, stk_resume_check_steps(resume, (int64_t)job->recipe.seed, steps, err));
    return status == STK_OK
               ? stk_saved_state_fits(resume->path, &resume->state, network->opened.backend,
                                      network->state, network->graph, err)
               : status;
}

/* An empty text is what a script passes when a variable is not set. */
static stk_status check_empty(const stk_options *options, stk_error *err) {
    static const char *const names[] = {"out", "name", "resume", "deadline"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (stk_options_source(options, names[i]) != STK_FROM_DEFAULT &&
            stk_options_get(options, names[i])[0] == '\0') {
            return STK_FAIL(err, STK_ERR_USAGE, "--%s is empty; give a value or leave it out",
                            names[i]);
        }
    }
    return STK_OK;
}

/* Whether --metric was given, in this call or in the one that began a resumed run. */
static bool metric_is_given(const stk_job *job) {
    const stk_train_options *train = stk_options_values(job->options, &stk_train_option_table);
    stk_option_source source = stk_options_source(job->options, "metric");
    bool earlier = source == STK_FROM_RUN && stk_json_get(job->resume.given, "metric") != NULL;
    return (source == STK_FROM_FLAG || source == STK_FROM_CONFIG || earlier) &&
           train->metric != STK_METRIC_AUTO;
}

/* The data set's options, with the metric that decides on task and answer. */
static stk_dataset_options dataset_options(const stk_job *job) {
    const stk_train_options *train = stk_options_values(job->options, &stk_train_option_table);
    stk_dataset_options options = *job->dataset_options;
    options.metric_given = metric_is_given(job);
    options.metric = (stk_metric)train->metric;
    return options;
}

static stk_status open_dataset(stk_job *job, const stk_events *early, stk_error *err) {
    const stk_dataset_options options = dataset_options(job);
    const stk_storage_options storage = job->storage; /* the store copies it */
    if (job->dataset_options->data == NULL) {
        return STK_FAIL(err, STK_ERR_USAGE,
                        "--data is missing: give the folder with the pictures; `stoker sample DIR` "
                        "makes one to try");
    }
    stk_status status = stk_dataset_open(&job->dataset, &options, &storage, early, err);
    if (status == STK_OK && job->resume.on) {
        status = stk_resume_check_folds(&job->resume, stk_recipe_models(&job->recipe), err);
    }
    if (status == STK_OK && job->resume.on) {
        status = stk_saved_state_check(&job->resume.state, job->dataset, err);
    }
    STK_THEN(status, stk_submission_check(job->dataset, early, err));
    return status == STK_OK ? stk_outputs_of(job->dataset, &job->outputs, err) : status;
}

/* Whether pictures are scaled. A resumed run of a version without --resize goes on to scale them.
 */
static stk_status choose_resize(stk_job *job, stk_error *err) {
    bool faint = false;
    stk_status status = job->dataset->has_versions && !job->resume.on
                            ? stk_versions_look_at(job->dataset, &faint, err)
                            : STK_OK;
    return status == STK_OK ? stk_recipe_choose_resize(&job->recipe, job->options, faint, err)
                            : status;
}

/* Arrays may have any number of channels, and values of any size. Windows of pictures are at most
 * as large as these. */
static stk_status look_at_pictures(stk_job *job, stk_error *err) {
    stk_picture_look look;
    stk_status status = stk_picture_look_at(job->dataset, job->recipe.native, &look, err);
    if (status == STK_OK && job->recipe.native) {
        stk_recipe_take_side(&job->recipe, look.side, stk_recipe_is_to_fit(job->options));
    }
    if (status == STK_OK) {
        job->recipe.channels = look.channels;
        job->recipe.window = look.window;
    }
    return status;
}

/* Numbers are learned as the loss wants them: as shares of their range for a sigmoid. */
static stk_status take_loss(stk_job *job, stk_error *err) {
    const stk_recipe *recipe = &job->recipe;
    bool shares = recipe->task == STK_TASK_REGRESSION && recipe->loss.kind == STK_LOSS_SIGMOID;
    job->dataset->targets.shares = job->outputs.shares = shares;
    stk_status status =
        stk_recipe_weigh_positives(recipe, &job->dataset->targets, &job->positive_weights, err);
    stk_recipe_take_positive_weights(&job->recipe, job->positive_weights);
    return status;
}

stk_status stk_job_prepare(stk_job *job, const stk_observer *observer, size_t *train, size_t *val,
                           stk_error *err) {
    stk_events early = {0};
    stk_events_add(&early, observer);
    stk_status status = check_empty(job->options, err);
    STK_THEN(status, stk_network_check_decode(job->options, err));
    STK_THEN(status, open_dataset(job, &early, err));
    STK_THEN(status, choose_resize(job, err));
    STK_THEN(status, look_at_pictures(job, err));
    STK_THEN(status, find_models(job, &early, err));
    STK_THEN(status, stk_recipe_take_dataset(&job->recipe, job->options, job->dataset, err));
    STK_THEN(status, take_loss(job, err));
    STK_THEN(status, stk_task_emit(job->dataset, &job->recipe, &early, err));
    if (job->resume.on) {
        keep_models(job);
    }
    STK_THEN(status, count_training(job->dataset, &job->recipe, train, val, err));
    STK_THEN(status, stk_dataset_check_folds(job->dataset, job->recipe.val_fraction,
                                             job->recipe.folds, job->recipe.seed, &early, err));
    STK_THEN(status, open_device(job, err));
    STK_THEN(status, open_network(job, *train, err));
    job->time = stk_time_plan_begin(&job->recipe);
    if (status == STK_OK && job->resume.on) {
        status = check_resume(job, err);
    }
    /* In the last fold a resumed run needs no first weights: the saved state has weights. */
    bool first_weights =
        !job->resume.on || job->resume.state.fold + 1 < stk_recipe_models(&job->recipe);
    const char *before = job->resume.on ? job->resume.state.pretrained : "";
    if (status == STK_OK && first_weights) {
        status = find_weights(job, before, *train, &early, err);
    } else if (status == STK_OK) {
        stk_network_warn_replaced_pretrained(job->job_options, before, &early);
    }
    return status;
}

stk_status stk_job_claim_folder(stk_run_folder *folder, const stk_job_options *options,
                                const char *verb, stk_error *err) {
    return stk_run_folder_open(folder, options->out, options->name != NULL ? options->name : verb,
                               err);
}

/* Emits the default rate, which depends on the batch that was measured. */
static void emit_rate(const stk_job *job) {
    const stk_train_options *given = stk_options_values(job->options, &stk_train_option_table);
    char what[64];
    char why[96];
    if (stk_is_default_double(given->lr)) {
        snprintf(what, sizeof what, "lr %.6g", job->recipe.lr);
        snprintf(why, sizeof why, "the default for %lld images an update",
                 (long long)job->recipe.batch * job->recipe.train.accumulate);
        stk_events_decision(&job->events, what, why);
    }
}

stk_status stk_job_measure_batch(stk_job *job, stk_error *err) {
    if (!job->batch_search.to_be_measured) {
        return STK_OK;
    }
    stk_batch_search_measure(&job->batch_search);
    stk_status status = complete_recipe(job, err);
    if (status == STK_OK) {
        stk_recipe_emit_batch(&job->recipe, job->batch_search.why, &job->events);
        emit_rate(job);
    }
    return status == STK_OK && job->out.folder.path != NULL
               ? stk_job_write_args(&job->out.folder, job->options, err)
               : status;
}

stk_status stk_job_begin_first_fold(stk_job *job, size_t train, stk_split *split,
                                    const stk_sample **val_samples, stk_error *err) {
    stk_job_emit_recipe(job, train);
    stk_status status = stk_job_measure_batch(job, err);
    return status == STK_OK ? stk_fold_split(job->dataset, &job->recipe, 0, split, val_samples, err)
                            : status;
}
