/*
 * finish.c - the last steps of listing, which all layouts share: sorting classes, rare classes, the
 * subset, and the checks.
 */
#include "dataset/listing.h"

#include "base/error.h"
#include "base/mem.h"

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

stk_status stk_listing_finish(stk_listing *listing, stk_error *err) {
    if (listing->dataset->class_count == 0) {
        return STK_FAIL(err, STK_ERR_DATA,
                        "%s holds pictures without labels, so there is nothing to train on",
                        listing->dataset->root);
    }
    stk_status status = need_two_classes(listing, err);
    STK_THEN(status, stk_listing_sort_classes(listing->dataset, err));
    STK_THEN(status, stk_division_sort(listing, err));
    if (status == STK_OK && listing->options->rare_class == STK_RARE_DROP) {
        /* Before the subset, so that it has as many classes as were asked for. */
        status = treat_rare_if_split(listing, err);
    }
    STK_THEN(status, stk_subset_classes(listing, err));
    STK_THEN(status, treat_rare_if_split(listing, err));
    STK_THEN(status, stk_subset_pictures(listing, err));
    return status == STK_OK ? stk_division_finish(listing, err) : status;
}
