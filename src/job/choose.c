/* choose.c - defaults that depend on the data set and the machine. No timing: runs must repeat. */
#include "job/choose.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/backends.h"
#include "base/error.h"
#include "base/machine.h"
#include "budget/budget.h"
#include "job/job_options.h"
#include "train/train.h"

#define AUTO_MODEL "convnet_s"

/*
 * The batch is the largest power of two that leaves this many steps to an epoch and has no more
 * pixels than this: on a few cores a step of a large network would take many seconds.
 */
#define MOST_PIXELS ((size_t)1 << 20)
#define AUTO_STEPS 15
#define LEAST_BATCH 8
#define MOST_BATCH 128

/* The rate that goes with a batch of 32; it grows with the square root of the batch. */
#define AUTO_LR 0.08
#define AUTO_LR_BATCH 32.0

/* Short trainings learn more from most of a picture than from a small part of it. */
#define AUTO_CROP_SCALE 0.7

static size_t auto_batch(size_t train_count, int img_size) {
    size_t batch = MOST_BATCH;
    size_t pixels = (size_t)img_size * (size_t)img_size;
    while (batch > LEAST_BATCH &&
           (train_count / batch < AUTO_STEPS || batch * pixels > MOST_PIXELS)) {
        batch /= 2;
    }
    return batch < train_count ? batch : train_count;
}

static stk_status resolve_number(stk_options *options, const char *name, double value,
                                 const char *why, stk_error *err) {
    char text[32];
    snprintf(text, sizeof text, "%.6g", value);
    return stk_options_resolve(options, name, text, why, err);
}

static stk_status choose_model(stk_choice *choice, stk_options *options, const stk_job_options *job,
                               stk_error *err) {
    const char *name = job->model != NULL ? job->model : AUTO_MODEL;
    stk_status status = stk_model_find(name, &choice->model, err);
    if (status != STK_OK) {
        return status;
    }
    if (job->model == NULL) {
        status = stk_options_resolve(options, "model", choice->model->name, "auto", err);
    }
    choice->img_size = choice->model->img_size;
    if (!stk_is_auto_int(job->img_size)) {
        choice->img_size = (int)job->img_size;
    } else if (status == STK_OK) {
        status = resolve_number(options, "img-size", choice->img_size, "auto", err);
    }
    return status;
}

static stk_status choose_device(stk_choice *choice, stk_options *options,
                                const stk_job_options *job, stk_error *err) {
    const char *why = NULL;
    const char *device = job->device != NULL ? job->device : "auto";
    stk_status status = stk_backend_find(device, &choice->backend, &why, err);
    choice->threads = stk_machine_cores();
    choice->precision = "fp32";
    if (status == STK_OK && job->device == NULL) {
        status = stk_options_resolve(options, "device", choice->backend->name, why, err);
    }
    if (status == STK_OK && job->precision == STK_PRECISION_AUTO) {
        status = stk_options_resolve(options, "precision", choice->precision, "auto", err);
    } else if (status == STK_OK && job->precision != STK_PRECISION_FP32 &&
               job->precision != STK_PRECISION_FP32_STRICT) {
        status = stk_options_resolve(options, "precision", choice->precision,
                                     "the CPU computes in fp32", err);
    }
    return status;
}

/* A batch over the training set is cut to it, and a given rate goes down with it. */
static stk_status choose_steps(stk_choice *choice, stk_options *options,
                               const stk_train_options *train, const stk_budget_options *budget,
                               size_t train_count, stk_error *err) {
    stk_status status = STK_OK;
    double scale = 1;
    if (stk_is_auto_int(train->batch)) {
        choice->batch = auto_batch(train_count, choice->img_size);
        status = resolve_number(options, "batch", (double)choice->batch, "auto", err);
    } else {
        choice->batch = (size_t)train->batch;
        if (choice->batch > train_count) {
            scale = (double)train_count / (double)choice->batch;
            choice->batch = train_count;
            status = resolve_number(options, "batch", (double)train_count,
                                    "cut to the training set", err);
        }
    }
    if (status == STK_OK && stk_is_auto_double(train->lr)) {
        choice->lr = stk_as_shown(
            AUTO_LR * sqrt((double)choice->batch * (double)train->accumulate / AUTO_LR_BATCH));
        status = resolve_number(options, "lr", choice->lr, "auto", err);
    } else if (status == STK_OK) {
        choice->lr = train->lr;
        if (scale != 1) {
            choice->lr = stk_as_shown(train->lr * scale);
            status = resolve_number(options, "lr", choice->lr, "scaled with the batch", err);
        }
    }
    if (status != STK_OK) {
        return status;
    }
    bool limited = !stk_is_auto_double(budget->budget_s);
    if (!stk_is_auto_int(train->epochs)) {
        choice->epochs_wanted = (int)train->epochs;
    } else if (!limited) {
        choice->epochs_wanted = STK_BUDGET_DEFAULT_EPOCHS;
        status = resolve_number(options, "epochs", choice->epochs_wanted, "auto", err);
    }
    return status;
}

static stk_status choose_loader(stk_choice *choice, stk_options *options,
                                const stk_loader_options *loader, stk_error *err) {
    choice->loader = stk_loader_plan_make(loader, choice->batch, choice->img_size,
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

static stk_status choose_augment(stk_choice *choice, stk_options *options, stk_error *err) {
    const stk_augment_options *given = stk_options_values(options, &stk_augment_option_table);
    choice->augment = *given;
    if (!stk_is_auto_double(given->crop_scale)) {
        return STK_OK;
    }
    choice->augment.crop_scale = AUTO_CROP_SCALE;
    return resolve_number(options, "crop-scale", AUTO_CROP_SCALE, "auto", err);
}

/* "model convnet_s (auto), img-size 64 (auto), ..." */
static void write_line(stk_choice *choice, const stk_options *options) {
    static const char *const shown[] = {"model",   "img-size", "batch",  "epochs",
                                        "lr",      "folds",    "device", "precision",
                                        "workers", "prefetch", "seed",   "budget"};
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
        char value[160];
        const char *text = stk_options_get(options, shown[i]);
        bool given = stk_options_source(options, shown[i]) != STK_FROM_DEFAULT;
        bool dull = strcmp(shown[i], "folds") == 0 || strcmp(shown[i], "seed") == 0 ||
                    strcmp(shown[i], "budget") == 0;
        if (text == NULL || (dull && !given)) {
            continue;
        }
        if (strcmp(text, "auto") == 0) {
            snprintf(value, sizeof value, "as the budget allows (auto)");
        } else {
            stk_options_show(options, shown[i], value, sizeof value);
        }
        stk_str_appendf(&choice->line, "%s%s %s", choice->line.length > 0 ? ", " : "", shown[i],
                        value);
    }
}

stk_status stk_choose(stk_choice *choice, stk_options *options, size_t train_count,
                      stk_error *err) {
    memset(choice, 0, sizeof *choice);
    const stk_job_options *job = stk_options_values(options, &stk_job_option_table);
    const stk_train_options *train = stk_options_values(options, &stk_train_option_table);
    const stk_loader_options *loader = stk_options_values(options, &stk_loader_option_table);
    const stk_budget_options *budget = stk_options_values(options, &stk_budget_option_table);
    stk_status status = choose_model(choice, options, job, err);
    if (status == STK_OK) {
        status = choose_device(choice, options, job, err);
    }
    if (status == STK_OK) {
        status = choose_steps(choice, options, train, budget, train_count, err);
    }
    if (status == STK_OK) {
        status = choose_loader(choice, options, loader, err);
    }
    if (status == STK_OK) {
        status = choose_augment(choice, options, err);
    }
    if (status == STK_OK) {
        write_line(choice, options);
        status = stk_str_ok(&choice->line) ? STK_OK : STK_FAIL_MEMORY(err, "options");
    }
    if (status != STK_OK) {
        stk_choice_free(choice);
    }
    return status;
}

void stk_choice_free(stk_choice *choice) {
    stk_str_free(&choice->line);
}

void stk_choice_tell(const stk_choice *choice, const stk_options *options, const stk_events *events,
                     size_t train_count) {
    const stk_train_options *train = stk_options_values(options, &stk_train_option_table);
    const stk_job_options *job = stk_options_values(options, &stk_job_option_table);
    char what[96];
    char why[160];
    if (!stk_is_auto_int(train->batch) && (size_t)train->batch > train_count) {
        snprintf(what, sizeof what, "batch %zu", choice->batch);
        snprintf(why, sizeof why, "there are %zu training images", train_count);
        stk_events_decision(events, what, why);
    }
    if (choice->loader.cut) {
        snprintf(what, sizeof what, "%d batches prepared ahead", choice->loader.slots);
        snprintf(why, sizeof why, "%d workers x prefetch %d would need more than --loader-memory",
                 choice->loader.workers, choice->loader.prefetch);
        stk_events_decision(events, what, why);
    }
    if (job->precision == STK_PRECISION_FP16 || job->precision == STK_PRECISION_BF16) {
        stk_events_decision(events, "precision fp32", "the CPU computes in fp32");
    }
    if (stk_options_source(options, "compile") != STK_FROM_DEFAULT) {
        stk_events_decision(events, job->compile ? "compile" : "no-compile",
                            "without effect, the CPU has one path");
    }
    stk_str noted = {0};
    stk_options_noted(options, &noted);
    if (noted.length > 0) {
        stk_events_decision(events, "accepted without effect", stk_str_text(&noted));
    }
    stk_str_free(&noted);
}
