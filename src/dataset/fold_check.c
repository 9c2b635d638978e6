/* fold_check.c - checks all folds together, and reports classes that a fold lacks. */
#include "dataset/listing.h"

#include <stdio.h>

#include "base/error.h"
#include "base/mem.h"

typedef struct fold_counts {
    const stk_dataset *dataset;
    int folds;      /* 1: one division into training and validation */
    size_t *counts; /* owned: (folds, classes): samples that validate */
    size_t *totals; /* owned: of each class */
    size_t *sizes;  /* owned: of each fold */
    size_t always;  /* samples that always train */
} fold_counts;

static size_t of_class(const fold_counts *n, int fold, int c) {
    return n->counts[(size_t)fold * (size_t)stk_dataset_strata(n->dataset) + (size_t)c];
}

static stk_status count_folds(fold_counts *n, double val_fraction, int folds, uint64_t seed,
                              stk_error *err) {
    const stk_dataset *d = n->dataset;
    size_t classes = (size_t)stk_dataset_strata(d);
    int *fold_of = stk_mem_new(d->train.count, sizeof *fold_of);
    n->counts = stk_mem_new((size_t)n->folds, classes * sizeof *n->counts);
    n->totals = stk_mem_new(classes, sizeof *n->totals);
    n->sizes = stk_mem_new((size_t)n->folds, sizeof *n->sizes);
    stk_status status =
        fold_of != NULL && n->counts != NULL && n->totals != NULL && n->sizes != NULL
            ? stk_dataset_deal(d, val_fraction, folds, seed, fold_of, err)
            : STK_FAIL_MEMORY(err, "the division of the samples");
    for (size_t i = 0; status == STK_OK && i < d->train.count; i++) {
        size_t label = (size_t)d->train.items[i].label;
        n->totals[label]++;
        if (fold_of[i] < 0) {
            n->always++;
        } else {
            n->counts[(size_t)fold_of[i] * classes + label]++;
            n->sizes[fold_of[i]]++;
        }
    }
    stk_mem_free(fold_of);
    return status;
}

static stk_status check_sizes(const fold_counts *n, stk_error *err) {
    const stk_dataset *d = n->dataset;
    for (int f = 0; f < n->folds; f++) {
        if (n->sizes[f] == 0 || n->sizes[f] == d->train.count) {
            return STK_FAIL(err, STK_ERR_DATA,
                            "fold %d of %d has %s in %s: too few classes have two or more images; "
                            "add pictures or pass fewer --folds",
                            f + 1, n->folds,
                            n->sizes[f] == 0 ? "no pictures" : "all pictures, so none train",
                            d->root);
        }
    }
    return STK_OK;
}

/*
 * "2 of 5 folds ... (fold 1: cat, dog)": the folds that do not validate a class or, with
 * `training`, validate it without training on it.
 */
static void tell_missing(const fold_counts *n, bool training, const stk_events *events) {
    stk_first_names few = {0};
    int folds = 0;
    int first = 0;
    char names[300];
    for (int f = 0; f < n->folds; f++) {
        bool lacks = false;
        for (int c = 0; c < stk_dataset_strata(n->dataset); c++) {
            size_t here = of_class(n, f, c);
            bool absent = training ? here == n->totals[c] : here == 0;
            if (n->totals[c] < 2 || !absent) {
                continue; /* a warning has named classes with one image */
            }
            first = folds == 0 ? f : first;
            lacks = true;
            if (f == first) {
                stk_first_names_add(&few, n->dataset->classes[c]);
            }
        }
        folds += lacks;
    }
    if (folds == 0) {
        return;
    }
    stk_first_names_text(&few, names, sizeof names);
    if (n->folds == 1) {
        stk_events_warning(
            events, "%zu class%s %s: %s", few.count, few.count == 1 ? " is" : "es are",
            training ? "validated without being trained on" : "trained on without being validated",
            names);
    } else {
        stk_events_warning(events, "%d of %d folds %s some class (fold %d: %s)", folds, n->folds,
                           training ? "do not train on" : "do not validate", first + 1, names);
    }
}

/* How a column divides the samples. */
static void tell_division(const fold_counts *n, const stk_events *events) {
    const stk_dataset *d = n->dataset;
    char what[96];
    char why[300];
    char always[64] = "";
    size_t least = n->sizes[0];
    size_t most = n->sizes[0];
    for (int f = 1; f < n->folds; f++) {
        least = n->sizes[f] < least ? n->sizes[f] : least;
        most = n->sizes[f] > most ? n->sizes[f] : most;
    }
    if (n->folds > 1 && n->always > 0) {
        snprintf(always, sizeof always, ", %zu always train%s", n->always,
                 n->always == 1 ? "s" : "");
    }
    if (d->division == STK_DIVIDE_FOLDS) {
        snprintf(what, sizeof what, "%d folds as given", n->folds);
    } else if (n->folds > 1) {
        snprintf(what, sizeof what, "%d folds of %d groups", n->folds, d->part_count);
    } else {
        snprintf(what, sizeof what, "validation by groups");
    }
    if (n->folds > 1) {
        char sizes[64];
        if (least < most) {
            snprintf(sizes, sizeof sizes, "%zu to %zu", least, most);
        } else {
            snprintf(sizes, sizeof sizes, "%zu", least);
        }
        snprintf(why, sizeof why, "column %.80s; %s pictures each%s", d->part_column, sizes,
                 always);
    } else {
        snprintf(why, sizeof why, "column %.80s; %zu of %zu pictures validate", d->part_column,
                 least, d->train.count);
    }
    stk_events_decision(events, what, why);
}

stk_status stk_dataset_check_folds(const stk_dataset *dataset, double val_fraction, int folds,
                                   uint64_t seed, const stk_events *events, stk_error *err) {
    fold_counts n = {.dataset = dataset, .folds = folds > 1 ? folds : 1};
    if (dataset->division == STK_DIVIDE_FOLDS) {
        n.folds = dataset->part_count;
    } else if (!stk_dataset_is_divided(dataset, val_fraction, folds)) {
        return STK_OK;
    }
    stk_status status = count_folds(&n, val_fraction, folds, seed, err);
    STK_THEN(status, check_sizes(&n, err));
    if (status == STK_OK && dataset->division != STK_DIVIDE_CLASSES) {
        tell_division(&n, events);
    }
    if (status == STK_OK) {
        tell_missing(&n, false, events);
        tell_missing(&n, true, events);
    }
    stk_mem_free(n.counts);
    stk_mem_free(n.totals);
    stk_mem_free(n.sizes);
    return status;
}
