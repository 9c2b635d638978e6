/* recipe.c - defaults that depend on the data set and the machine. No timing: runs must repeat. */
#include "job/recipe.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/machine.h"
#include "budget/budget.h"
#include "job/job_options.h"
#include "train/train.h"
#include "weights/pretrained.h"

#define AUTO_MODEL "convnet_s"

/* Of a batch on a CPU: on a few cores a step of a large network would take many seconds. */
#define MOST_PIXELS ((size_t)1 << 20)

/* Highest rates for a batch of 256, by optimiser, from scratch and pretrained. */
#define LR_BATCH 256.0
static const double default_lr[][2] = {[STK_SGD] = {0.5, 0.05}, [STK_ADAMW] = {4e-3, 5e-4}};

/* AdamW's decay is multiplied with the learning rate, which is much lower than SGD's. */
static const double default_decay[] = {[STK_SGD] = 5e-4, [STK_ADAMW] = 0.05};

/*
 * Pretrained weights are at their best after a few epochs and only worse afterwards. From scratch a
 * training whose rate falls to the end is at its best near the end, and while the rate is high
 * three epochs without a better one are usual. A budget is there to be used.
 */
#define PRETRAINED_PATIENCE 3

/* Short trainings learn more from most of a picture than from a small part of it. */
#define AUTO_CROP_SCALE 0.7

static stk_status resolve_number(stk_options *options, const char *name, double value,
                                 const char *why, stk_error *err) {
    char text[32];
    snprintf(text, sizeof text, "%.6g", value);
    return stk_options_resolve(options, name, text, why, err);
}

/*
 * Weights that are named with a tag ("resnet34.ra4_e3600_r224_in1k") may want pictures prepared in
 * their own way: then the model is the one of that tag.
 */
static const stk_model *as_pretrained(const stk_model *model, const char *pretrained) {
    const stk_model *tagged = NULL;
    size_t length = strcspn(model->name, ".");
    if (strchr(model->name, '.') != NULL || pretrained == NULL ||
        strncmp(pretrained, model->name, length) != 0 || pretrained[length] != '.' ||
        stk_model_find(pretrained, &tagged, NULL) != STK_OK) {
        return model;
    }
    return tagged;
}

static stk_status choose_rate(stk_options *options, const char *name, double given, double own,
                              double *rate, stk_error *err) {
    *rate = stk_is_auto_double(given) ? own : given;
    return stk_is_auto_double(given) ? resolve_number(options, name, own, "auto", err) : STK_OK;
}

static stk_status choose_model(stk_recipe *choice, stk_options *options, const stk_job_options *job,
                               stk_error *err) {
    const char *name = job->model != NULL ? job->model : AUTO_MODEL;
    stk_status status = stk_model_find(name, &choice->model, err);
    if (status != STK_OK) {
        return status;
    }
    choice->model = as_pretrained(choice->model, job->pretrained);
    if (job->model == NULL) {
        status = stk_options_resolve(options, "model", choice->model->name, "auto", err);
    }
    choice->img_size = choice->model->img_size;
    if (!stk_is_auto_int(job->img_size)) {
        choice->img_size = (int)job->img_size;
    } else if (status == STK_OK) {
        status = resolve_number(options, "img-size", choice->img_size, "auto", err);
    }
    if (status == STK_OK) {
        status = choose_rate(options, "dropout", job->dropout, choice->model->dropout,
                             &choice->dropout, err);
    }
    if (status == STK_OK) {
        status = choose_rate(options, "drop-path", job->drop_path, choice->model->drop_path,
                             &choice->drop_path, err);
    }
    return status;
}

/* Why it is not the precision that was asked for. */
static const char *explain_precision(const stk_opened_device *opened, char *why, size_t room) {
    snprintf(why, room, "the %s computes in %s", stk_opened_device_is_cpu(opened) ? "CPU" : "GPU",
             stk_precision_name(opened->precision));
    return why;
}

static stk_status choose_device(stk_recipe *choice, stk_options *options,
                                const stk_job_options *job, const stk_device_config *given,
                                stk_error *err) {
    stk_opened_device *opened = &choice->opened;
    stk_device_config config = *given;
    choice->threads = stk_machine_cores();
    config.threads = choice->threads;
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
        status = stk_options_resolve(
            options, "precision", stk_precision_name(opened->precision),
            asked == STK_PRECISION_AUTO ? "auto" : explain_precision(opened, why, sizeof why), err);
    }
    return status;
}

bool stk_recipe_is_pretrained(const stk_options *options) {
    const stk_job_options *job = stk_options_values(options, &stk_job_option_table);
    return stk_pretrained_wanted(job->pretrained, AUTO_MODEL) != NULL;
}

double stk_recipe_default_lr(const stk_train_options *train, bool pretrained, size_t batch,
                             size_t train_count) {
    /* An update never spans epochs: more batches than an epoch has are not added up. */
    size_t batches = train_count / batch > 0 ? train_count / batch : 1;
    double images = (double)batch * fmin((double)train->accumulate, (double)batches);
    return stk_as_shown(default_lr[train->optimizer][pretrained] * images / LR_BATCH);
}

stk_batch_facts stk_recipe_batch_facts(const stk_recipe *choice, const stk_options *options,
                                       size_t train_count) {
    const stk_train_options *train = stk_options_values(options, &stk_train_option_table);
    size_t pixels = (size_t)choice->img_size * (size_t)choice->img_size;
    return (stk_batch_facts){
        .given = stk_is_auto_int(train->batch) ? 0 : (size_t)train->batch,
        .accumulate = train->accumulate,
        .train_count = train_count,
        .most = stk_opened_device_is_cpu(&choice->opened) ? MOST_PIXELS / pixels : SIZE_MAX,
        .policy = (stk_batch_policy)train->batch_policy};
}

/* The options say what became of the batch, where it is not what was asked for. */
static stk_status resolve_batch(stk_options *options, const stk_batch_facts *facts,
                                const stk_batch_choice *batch, stk_error *err) {
    stk_status status = STK_OK;
    if (batch->batch != facts->given) {
        bool cut = facts->given > facts->train_count;
        status = resolve_number(options, "batch", (double)batch->batch,
                                facts->given == 0 ? "auto"
                                : cut             ? "cut to the training set"
                                                  : "cut to the memory",
                                err);
    }
    if (status == STK_OK && batch->accumulate != facts->accumulate) {
        status = resolve_number(options, "accumulate", (double)batch->accumulate,
                                "keeps the images of an update", err);
    }
    return status;
}

/* `scale` is what a given rate is multiplied with, since the batch is not the one it was for. */
static stk_status choose_rates(stk_recipe *choice, stk_options *options, double scale,
                               size_t train_count, bool open, stk_error *err) {
    stk_train_options *train = &choice->train;
    stk_status status = STK_OK;
    choice->lr = train->lr;
    if (stk_is_default_double(train->lr)) {
        choice->lr = stk_recipe_default_lr(train, stk_recipe_is_pretrained(options), choice->batch,
                                           train_count);
        status = open ? STK_OK : resolve_number(options, "lr", choice->lr, "default", err);
    } else if (!stk_is_auto_double(train->lr) && scale != 1) {
        choice->lr = stk_as_shown(train->lr * scale);
        status = resolve_number(options, "lr", choice->lr, "scaled with the batch", err);
    }
    if (status == STK_OK && !stk_is_auto_double(train->head_lr) && scale != 1) {
        train->head_lr = stk_as_shown(train->head_lr * scale);
        status = resolve_number(options, "head-lr", train->head_lr, "scaled with the batch", err);
    }
    if (status == STK_OK && stk_is_auto_double(train->weight_decay)) {
        train->weight_decay = default_decay[train->optimizer];
        status = resolve_number(options, "weight-decay", train->weight_decay, "auto", err);
    }
    return status;
}

static stk_status choose_epochs(stk_recipe *choice, stk_options *options,
                                const stk_budget_options *budget, stk_error *err) {
    stk_train_options *train = &choice->train;
    bool limited = !stk_is_auto_double(budget->budget_s) || budget->deadline != NULL;
    bool as_fits = limited && stk_is_auto_int(train->epochs);
    stk_status status = STK_OK;
    if (!stk_is_auto_int(train->epochs)) {
        choice->epochs_wanted = (int)train->epochs;
    } else if (!limited) {
        choice->epochs_wanted = STK_BUDGET_DEFAULT_EPOCHS;
        status = resolve_number(options, "epochs", choice->epochs_wanted, "auto", err);
    }
    if (status == STK_OK && stk_is_auto_int(train->patience)) {
        train->patience = stk_recipe_is_pretrained(options) && !as_fits ? PRETRAINED_PATIENCE : 0;
        status = resolve_number(options, "patience", (double)train->patience, "auto", err);
    }
    return status;
}

static stk_status choose_loader(stk_recipe *choice, stk_options *options,
                                const stk_loader_options *loader, stk_error *err) {
    choice->loader = stk_loader_sizing_make(loader, choice->batch, choice->img_size,
                                            stk_machine_cores(), stk_machine_memory());
    stk_status status = STK_OK;
    if (stk_is_auto_int(loader->workers)) {
        status = resolve_number(options, "workers", choice->loader.workers, "auto", err);
    }
    if (status == STK_OK && stk_is_auto_int(loader->prefetch)) {
        status = resolve_number(options, "prefetch", choice->loader.prefetch, "auto", err);
    }
    return status;
}

static stk_status choose_augment(stk_recipe *choice, stk_options *options, stk_error *err) {
    const stk_augment_options *given = stk_options_values(options, &stk_augment_option_table);
    choice->augment = *given;
    if (!stk_is_auto_double(given->crop_scale)) {
        return STK_OK;
    }
    choice->augment.crop_scale = AUTO_CROP_SCALE;
    return resolve_number(options, "crop-scale", AUTO_CROP_SCALE, "auto", err);
}

/* What is still open when the line is written. */
static const char *meaning_of_auto(const char *name) {
    return strcmp(name, "epochs") == 0    ? "as the budget allows"
           : strcmp(name, "head-lr") == 0 ? "as lr"
           : strcmp(name, "batch") == 0   ? "to be measured"
                                          : "to be found";
}

/* "model convnet_s (auto), img-size 64 (auto), ..." */
static void write_line(stk_recipe *choice, const stk_options *options) {
    static const struct {
        const char *name;
        bool dull; /* told only where it was given */
    } shown[] = {{"model", false},
                 {"pretrained", true},
                 {"img-size", false},
                 {"batch", false},
                 {"accumulate", true},
                 {"epochs", false},
                 {"optimizer", false},
                 {"lr", false},
                 {"head-lr", true},
                 {"schedule", true},
                 {"backbone-lr-scale", true},
                 {"weight-decay", true},
                 {"freeze-epochs", true},
                 {"clip-grad", true},
                 {"ema", true},
                 {"patience", true},
                 {"metric", true},
                 {"folds", true},
                 {"device", false},
                 {"precision", false},
                 {"deterministic", true},
                 {"workers", false},
                 {"prefetch", false},
                 {"seed", true},
                 {"budget", true},
                 {"deadline", true}};
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
        char value[160];
        const char *name = shown[i].name;
        const char *text = stk_options_get(options, name);
        bool given = stk_options_source(options, name) != STK_FROM_DEFAULT;
        if (text == NULL || (shown[i].dull && !given)) {
            continue;
        }
        if (stk_str_equal_nocase(text, "auto")) {
            snprintf(value, sizeof value, "%s (auto)", meaning_of_auto(name));
        } else if (stk_str_equal_nocase(text, "default")) {
            snprintf(value, sizeof value, "by the batch (default)");
        } else {
            stk_options_show(options, name, value, sizeof value);
        }
        stk_str_appendf(&choice->line, "%s%s %s", choice->line.length > 0 ? ", " : "", name, value);
    }
}

stk_status stk_recipe_begin(stk_recipe *choice, stk_options *options,
                            const stk_device_config *device, stk_error *err) {
    memset(choice, 0, sizeof *choice);
    const stk_job_options *job = stk_options_values(options, &stk_job_option_table);
    const stk_train_options *train = stk_options_values(options, &stk_train_option_table);
    choice->train = *train;
    stk_status status = choose_model(choice, options, job, err);
    if (status == STK_OK) {
        status = choose_device(choice, options, job, device, err);
    }
    if (status != STK_OK) {
        stk_recipe_free(choice);
    }
    return status;
}

stk_status stk_recipe_complete(stk_recipe *choice, stk_options *options,
                               const stk_batch_facts *facts, const stk_batch_choice *batch,
                               bool open, stk_error *err) {
    const stk_train_options *train = stk_options_values(options, &stk_train_option_table);
    const stk_loader_options *loader = stk_options_values(options, &stk_loader_option_table);
    const stk_budget_options *budget = stk_options_values(options, &stk_budget_option_table);
    choice->train = *train;
    choice->train.accumulate = batch->accumulate;
    choice->batch = batch->batch;
    stk_status status = open ? STK_OK : resolve_batch(options, facts, batch, err);
    if (status == STK_OK) {
        status = choose_rates(choice, options, stk_batch_rate_scale(facts, batch),
                              facts->train_count, open, err);
    }
    if (status == STK_OK) {
        status = choose_epochs(choice, options, budget, err);
    }
    if (status == STK_OK) {
        status = choose_loader(choice, options, loader, err);
    }
    if (status == STK_OK) {
        status = choose_augment(choice, options, err);
    }
    if (status == STK_OK) {
        stk_str_free(&choice->line);
        write_line(choice, options);
        status = stk_str_ok(&choice->line) ? STK_OK : STK_FAIL_MEMORY(err, "options");
    }
    return status;
}

void stk_recipe_free(stk_recipe *choice) {
    stk_str_free(&choice->line);
    stk_opened_device_close(&choice->opened);
}

void stk_recipe_emit_batch(const stk_recipe *choice, const stk_events *events) {
    char what[64];
    int length = snprintf(what, sizeof what, "batch %zu", choice->batch);
    if (choice->train.accumulate > 1) {
        snprintf(what + length, sizeof what - (size_t)length, " x %lld",
                 (long long)choice->train.accumulate);
    }
    if (choice->batch_why[0] != '\0') {
        stk_events_decision(events, what, choice->batch_why);
    }
}

void stk_recipe_emit(const stk_recipe *choice, const stk_options *options, const stk_events *events,
                     size_t train_count) {
    const stk_train_options *train = stk_options_values(options, &stk_train_option_table);
    const stk_job_options *job = stk_options_values(options, &stk_job_option_table);
    char what[96];
    char why[160];
    if (!stk_is_auto_int(train->batch) && (size_t)train->batch > train_count) {
        snprintf(what, sizeof what, "batch %zu", train_count);
        snprintf(why, sizeof why, "there are %zu training images", train_count);
        stk_events_decision(events, what, why);
    }
    if (choice->loader.cut) {
        snprintf(what, sizeof what, "%d batches prepared ahead", choice->loader.slots);
        snprintf(why, sizeof why, "%d workers x prefetch %d would need more than --loader-memory",
                 choice->loader.workers, choice->loader.prefetch);
        stk_events_decision(events, what, why);
    }
    const stk_opened_device *opened = &choice->opened;
    if (job->device == NULL || !stk_opened_device_is_cpu(opened)) {
        char text[400];
        stk_events_decision(events, opened->name,
                            stk_opened_device_describe(opened, text, sizeof text));
    }
    stk_recipe_emit_batch(choice, events);
    if (job->precision != STK_PRECISION_AUTO && job->precision != (int)opened->precision) {
        snprintf(what, sizeof what, "precision %s", stk_precision_name(opened->precision));
        stk_events_decision(events, what, explain_precision(opened, why, sizeof why));
    }
    stk_str noted = {0};
    stk_options_noted(options, &noted);
    if (noted.length > 0) {
        stk_events_decision(events, "accepted without effect", stk_str_text(&noted));
    }
    stk_str_free(&noted);
}
