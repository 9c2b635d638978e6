/* recipe_lines.c - what was chosen, in the words that people read. */
#include "job/recipe/recipe_lines.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "job/recipe/job_options.h"

/* What "auto" means for an option that is not resolved yet. */
static const char *meaning_of_auto(const char *name) {
    return strcmp(name, "epochs") == 0    ? "as the budget allows"
           : strcmp(name, "head-lr") == 0 ? "as lr"
           : strcmp(name, "batch") == 0   ? "to be measured"
                                          : "to be found";
}

void stk_recipe_describe(const stk_options *options, stk_str *line) {
    static const struct {
        const char *name;
        bool dull; /* shown only where it was given */
    } shown[] = {{"model", false},       {"pretrained", true},      {"img-size", false},
                 {"early-size", true},   {"batch", false},          {"accumulate", true},
                 {"epochs", false},      {"optimizer", false},      {"lr", false},
                 {"head-lr", true},      {"schedule", true},        {"backbone-lr-scale", true},
                 {"weight-decay", true}, {"freeze-epochs", true},   {"clip-grad", true},
                 {"ema", true},          {"patience", true},        {"metric", true},
                 {"loss", true},         {"positive-weight", true}, {"folds", true},
                 {"device", false},      {"precision", false},      {"deterministic", true},
                 {"workers", false},     {"decode", true},          {"prefetch", false},
                 {"seed", true},         {"budget", true},          {"deadline", true}};
    for (size_t i = 0; i < STK_COUNT(shown); i++) {
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
        stk_str_appendf(line, "%s%s %s", line->length > 0 ? ", " : "", name, value);
    }
}

void stk_recipe_emit_batch(const stk_recipe *recipe, const char *why, const stk_events *events) {
    char what[64];
    int length = snprintf(what, sizeof what, "batch %zu", recipe->batch);
    if (recipe->train.accumulate > 1) {
        snprintf(what + length, sizeof what - (size_t)length, " x %lld",
                 (long long)recipe->train.accumulate);
    }
    if (why[0] != '\0') {
        stk_events_decision(events, what, why);
    }
}

void stk_recipe_emit_row(const stk_recipe *recipe, const stk_options *options,
                         const stk_events *events) {
    const stk_job_options *job = stk_options_values(options, &stk_job_option_table);
    const stk_train_options *train = &recipe->train;
    char what[64];
    stk_str why = {0};
    snprintf(what, sizeof what, "recipe %s", recipe->row->name);
    if (job->recipe == 0) {
        stk_str_appendf(&why, "for %s %s; ",
                        stk_format_amount(recipe->epochs_expected, 3, "epoch").text,
                        recipe->row->pretrained ? "from pretrained weights" : "from scratch");
    }
    stk_str_appendf(&why, "%s", stk_recipe_optimizer(train));
    if (recipe->native) {
        stk_str_appendf(&why, ", native pixels%s%s", recipe->native_why != NULL ? ": " : "",
                        recipe->native_why != NULL ? recipe->native_why : "");
    } else {
        stk_str_appendf(&why, ", crop-scale %.3g", recipe->augment.crop_scale);
    }
    if (train->norm_stats == STK_NORM_STATS_KEPT) {
        stk_str_appendf(&why, ", norm-stats kept");
    }
    const struct {
        const char *name;
        double value;
    } others[] = {{"label-smoothing", train->label_smoothing},
                  {"mixup", train->mixup},
                  {"ema", train->ema},
                  {"head-lr", stk_is_auto_double(train->head_lr) ? 0 : train->head_lr},
                  {"freeze-epochs", (double)train->freeze_epochs}};
    for (size_t i = 0; i < STK_COUNT(others); i++) {
        if (others[i].value > 0) {
            stk_str_appendf(&why, ", %s %.3g", others[i].name, others[i].value);
        }
    }
    stk_events_decision(events, what, stk_str_text(&why));
    if (recipe->imbalance > 0) {
        stk_str_clear(&why);
        stk_str_appendf(&why, "the largest class has %.3g times as many pictures as the others",
                        recipe->imbalance);
        stk_events_decision(events, "sampling sqrt", stk_str_text(&why));
    }
    stk_str_free(&why);
}

void stk_recipe_emit(const stk_recipe *recipe, const stk_options *options,
                     const stk_opened_device *device, const stk_opened_decoder *decoder,
                     const char *batch_why, size_t train_count, const stk_events *events) {
    const stk_train_options *train = stk_options_values(options, &stk_train_option_table);
    const stk_job_options *job = stk_options_values(options, &stk_job_option_table);
    char what[96];
    char why[160];
    if (!stk_is_auto_int(train->batch) && (size_t)train->batch > train_count) {
        snprintf(what, sizeof what, "batch %zu", train_count);
        snprintf(why, sizeof why, "there are %zu training images", train_count);
        stk_events_decision(events, what, why);
    }
    if (recipe->loader.cut) {
        snprintf(what, sizeof what, "%d batches prepared ahead", recipe->loader.slots);
        snprintf(why, sizeof why, "%d workers x prefetch %d would need more than --loader-memory",
                 recipe->loader.workers, recipe->loader.prefetch);
        stk_events_decision(events, what, why);
    }
    if (job->device == NULL || !stk_opened_device_is_cpu(device)) {
        char text[400];
        stk_events_decision(events, device->name,
                            stk_opened_device_describe(device, text, sizeof text));
    }
    stk_opened_decoder_emit(decoder, events);
    stk_recipe_emit_batch(recipe, batch_why, events);
    if (job->precision != STK_PRECISION_AUTO && job->precision != (int)device->precision) {
        snprintf(what, sizeof what, "precision %s", stk_precision_name(device->precision));
        stk_events_decision(events, what,
                            stk_opened_device_explain_precision(device, why, sizeof why));
    }
    stk_str noted = {0};
    stk_options_noted(options, &noted);
    if (noted.length > 0) {
        stk_events_decision(events, "accepted without effect", stk_str_text(&noted));
    }
    stk_str_free(&noted);
}

void stk_recipe_emit_resumed_batch(const stk_recipe *recipe, const stk_events *events) {
    char what[96];
    char why[64];
    if (recipe->batch < recipe->batch_chosen) {
        snprintf(what, sizeof what, "batch %zu x %lld", recipe->batch,
                 (long long)recipe->train.accumulate);
        snprintf(why, sizeof why, "there was no memory for %zu", recipe->batch_chosen);
        stk_events_decision(events, what, why);
    }
}
