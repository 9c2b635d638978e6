/*
 * finish.c - the last steps of listing, which all layouts share: sorting classes, rare classes, the
 * subset, and the checks.
 */
#include "dataset/ask.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"

stk_status stk_listing_set_ask(stk_listing *listing, const stk_ask *ask, stk_error *err) {
    stk_dataset *dataset = listing->dataset;
    const char *texts[] = {ask->positive, ask->stranger, ask->reason, ask->phrase};
    const char **kept[] = {&listing->positive, &listing->stranger, &dataset->reason,
                           &dataset->metric_phrase};
    dataset->metric = ask->metric;
    dataset->metric_given = ask->metric_given;
    dataset->task = ask->task;
    dataset->answer = ask->answer;
    for (size_t i = 0; i < STK_COUNT(texts); i++) {
        *kept[i] = texts[i] != NULL ? stk_listing_keep(listing, texts[i], strlen(texts[i])) : NULL;
        if (texts[i] != NULL && *kept[i] == NULL) {
            return STK_FAIL_MEMORY(err, "what is asked for");
        }
    }
    return STK_OK;
}

/* The number of a class; -1: there is none of that name. */
static int number_of(const stk_dataset *dataset, const char *name) {
    for (int c = 0; name != NULL && c < dataset->class_count; c++) {
        if (strcmp(dataset->classes[c], name) == 0) {
            return c;
        }
    }
    return -1;
}

/* The class that --positive names; -1: none. Refuses one that there is not. */
static stk_status find_positive(const stk_listing *listing, int *positive, stk_error *err) {
    const stk_dataset *dataset = listing->dataset;
    const char *name = listing->options->positive;
    *positive = -1;
    if (name == NULL) {
        return STK_OK;
    }
    if (dataset->task != STK_TASK_BINARY || dataset->class_count != 2) {
        return STK_FAIL(err, STK_ERR_USAGE,
                        "--positive %s: one of two classes is the positive one, and the task is %s "
                        "with %d %s; leave it out",
                        name, stk_task_name(dataset->task), dataset->class_count,
                        stk_task_outputs(dataset->task, dataset->class_count));
    }
    for (int c = 0; c < 2; c++) {
        bool fits = stk_str_equal_nocase(dataset->classes[c], name);
        *positive =
            fits && (*positive < 0 || stk_str_equal(dataset->classes[c], name)) ? c : *positive;
    }
    return *positive >= 0
               ? STK_OK
               : STK_FAIL(err, STK_ERR_USAGE,
                          "--positive %s: there is no such class; the two are '%s' and '%s'", name,
                          dataset->classes[0], dataset->classes[1]);
}

/* Once classes have their numbers. Without a sample submission nothing was asked for. */
static stk_status number_answer(stk_listing *listing, stk_error *err) {
    stk_dataset *dataset = listing->dataset;
    stk_answer *answer = &dataset->answer;
    if (dataset->task == STK_TASK_AUTO) {
        dataset->task = dataset->class_count == 2 ? STK_TASK_BINARY : STK_TASK_SINGLE;
        answer->kind = dataset->template_columns > 2 ? STK_ANSWER_PROBABILITIES : STK_ANSWER_LABEL;
    }
    int named;
    stk_status status = find_positive(listing, &named, err);
    int positive = named >= 0 ? named : number_of(dataset, listing->positive);
    answer->positive = positive >= 0 ? positive : dataset->class_count - 1;
    answer->stranger = number_of(dataset, listing->stranger);
    return status;
}

/* Rows of single pictures, where nothing has made others. */
stk_status stk_listing_make_rows(stk_listing *listing, stk_error *err) {
    stk_dataset *dataset = listing->dataset;
    stk_status status = STK_OK;
    if (dataset->row_count > 0) {
        return STK_OK;
    }
    for (size_t i = 0; status == STK_OK && i < dataset->test.count; i++) {
        stk_row row = {.id = dataset->test.items[i].id, .first = i, .count = 1};
        status = stk_listing_add_row(listing, row, err);
    }
    return status;
}

/* A class with one picture cannot be both learned and validated. */
static stk_status treat_rare(stk_listing *listing, stk_error *err) {
    stk_dataset *dataset = listing->dataset;
    size_t *counts = stk_mem_new((size_t)dataset->class_count, sizeof *counts);
    bool *is_rare = stk_mem_new((size_t)dataset->class_count, sizeof *is_rare);
    if (counts == NULL || is_rare == NULL) {
        stk_mem_free(counts);
        stk_mem_free(is_rare);
        return STK_FAIL_MEMORY(err, "the class names");
    }
    for (size_t i = 0; i < dataset->train.count; i++) {
        counts[dataset->train.items[i].label]++;
    }
    stk_first_names rare = {0};
    for (int c = 0; c < dataset->class_count; c++) {
        is_rare[c] = counts[c] == 1;
        if (is_rare[c]) {
            stk_first_names_add(&rare, dataset->classes[c]);
        }
    }
    char names[300];
    stk_first_names_text(&rare, names, sizeof names);
    stk_status status = STK_OK;
    int treatment = listing->options->rare_class;
    if (treatment == STK_RARE_AUTO) { /* most: the labels are not classes, or the wrong column */
        bool most = 2 * rare.count > dataset->train.count;
        treatment = most && listing->options->val_fraction > 0 ? STK_RARE_ERROR : STK_RARE_TRAIN;
    }
    if (rare.count > 0 && treatment == STK_RARE_TRAIN) {
        stk_events_warning(listing->events, "%zu class%s one image and will not be validated: %s",
                           rare.count, rare.count == 1 ? " has" : "es have", names);
    } else if (rare.count > 0 && treatment == STK_RARE_DROP) {
        stk_events_warning(listing->events, "left out %zu class%s with one image: %s", rare.count,
                           rare.count == 1 ? "" : "es", names);
        status = stk_listing_drop_classes(dataset, is_rare, err);
    } else if (rare.count == 1) {
        status = STK_FAIL(err, STK_ERR_DATA,
                          "class '%s' has one image, which cannot be both trained on and "
                          "validated; add pictures, or pass --rare-class train to train on it "
                          "without validating it, or --rare-class drop to leave it out",
                          names);
    } else if (rare.count > 1) {
        bool all = rare.count == (size_t)dataset->class_count;
        status = STK_FAIL(
            err, STK_ERR_DATA,
            "%zu classes have one image each (%s), which cannot be both trained on "
            "and validated; add pictures, or pass %s",
            rare.count, names,
            all ? "--val-fraction 0, without --folds, to train on them without validating any"
                : "--rare-class train to train on them without validating them, or "
                  "--rare-class drop to leave them out");
    }
    stk_mem_free(counts);
    stk_mem_free(is_rare);
    return status;
}

static stk_status need_two_classes(const stk_listing *listing, stk_error *err) {
    const stk_dataset *dataset = listing->dataset;
    if (dataset->class_count >= 2) {
        return STK_OK;
    }
    if (dataset->class_count == 0) {
        return STK_FAIL(err, STK_ERR_DATA,
                        "no class of %s is left to train on; add pictures, or pass --rare-class "
                        "train to keep the classes with one image",
                        dataset->root);
    }
    return STK_FAIL(err, STK_ERR_DATA,
                    "%s has one class only, '%s'; a classifier needs two or more, so add pictures "
                    "of a second class%s",
                    dataset->root, dataset->classes[0],
                    dataset->layout == STK_LAYOUT_FOLDERS
                        ? ", or pass the folder that holds the class folders with --data"
                    : dataset->layout == STK_LAYOUT_KAGGLE
                        ? ", or name another column with --label-column"
                        : "");
}

/* Rare classes only matter where some training samples have to validate. */
static stk_status treat_rare_if_split(stk_listing *listing, stk_error *err) {
    stk_status status = listing->dataset->val.count == 0 ? treat_rare(listing, err) : STK_OK;
    return status == STK_OK ? need_two_classes(listing, err) : status;
}

/* Several labels and numbers: nothing to sort and no class that could be rare. */
static stk_status finish_targets(stk_listing *listing, stk_error *err) {
    stk_dataset *dataset = listing->dataset;
    const stk_dataset_options *o = listing->options;
    if (o->classes > 0 || o->per_class > 0 || o->val_per_class > 0) {
        return STK_FAIL(err, STK_ERR_USAGE,
                        "--classes, --per-class and --val-per-class take a subset by class, and %s "
                        "has %s; leave them out",
                        dataset->root,
                        dataset->task == STK_TASK_REGRESSION ? "numbers" : "several labels");
    }
    int none;
    stk_status status = find_positive(listing, &none, err);
    STK_THEN(status, stk_division_sort(listing, err));
    STK_THEN(status, stk_division_finish(listing, err));
    return status == STK_OK ? stk_listing_make_rows(listing, err) : status;
}

stk_status stk_listing_finish(stk_listing *listing, stk_error *err) {
    stk_dataset *dataset = listing->dataset;
    if (dataset->class_count == 0) {
        return STK_FAIL(err, STK_ERR_DATA,
                        "%s holds pictures without labels, so there is nothing to train on",
                        dataset->root);
    }
    if (dataset->task != STK_TASK_AUTO && !stk_task_has_classes(dataset->task)) {
        return finish_targets(listing, err);
    }
    stk_status status = need_two_classes(listing, err);
    STK_THEN(status, stk_listing_sort_classes(dataset, err));
    STK_THEN(status, stk_division_sort(listing, err));
    if (status == STK_OK && listing->options->rare_class == STK_RARE_DROP) {
        /* Before the subset, so that it has as many classes as were asked for. */
        status = treat_rare_if_split(listing, err);
    }
    STK_THEN(status, stk_subset_classes(listing, err));
    STK_THEN(status, treat_rare_if_split(listing, err));
    STK_THEN(status, stk_subset_pictures(listing, err));
    STK_THEN(status, stk_division_finish(listing, err));
    STK_THEN(status, stk_listing_make_rows(listing, err));
    STK_THEN(status, number_answer(listing, err));
    return status;
}
