/*
 * division.c - a column of the labels' table that divides the training samples: into given folds,
 * or into groups that stay together.
 */
#include "dataset/listing.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/text/names.h"

/* The fold of samples that always train, as in scikit-learn's PredefinedSplit. */
#define ALWAYS_TRAINS (-1)

bool stk_division_is_free(const stk_dataset_options *options) {
    return options->group_column != NULL && stk_str_equal_nocase(options->group_column, "none");
}

const char *stk_division_column(const stk_dataset_options *options, const char **flag) {
    bool folds = options->fold_column != NULL;
    *flag = folds ? "--fold-column" : "--group-column";
    return folds                           ? options->fold_column
           : stk_division_is_free(options) ? NULL
                                           : options->group_column;
}

stk_status stk_division_check(const stk_dataset_options *options, stk_error *err) {
    const char *flag;
    const char *name = stk_division_column(options, &flag);
    if (options->fold_column != NULL && options->group_column != NULL &&
        !stk_division_is_free(options)) {
        return STK_FAIL(err, STK_ERR_USAGE,
                        "--fold-column %s and --group-column %s: folds that are given cannot be "
                        "made of groups too; pass one of the two",
                        options->fold_column, options->group_column);
    }
    if (name != NULL && options->val_per_class > 0) {
        return STK_FAIL(err, STK_ERR_USAGE,
                        "%s %s and --val-per-class %lld: pictures that are set apart one by one "
                        "would not follow the column; leave --val-per-class out",
                        flag, name, (long long)options->val_per_class);
    }
    return STK_OK;
}

stk_status stk_division_need_table(const stk_listing *listing, stk_error *err) {
    const char *flag;
    const char *name = stk_division_column(listing->options, &flag);
    if (name == NULL) {
        return STK_OK;
    }
    return STK_FAIL(err, STK_ERR_USAGE,
                    "%s %s: %s has no table of labels whose column that could be; it needs a "
                    "labels.csv with the columns id, label and %s beside the pictures",
                    flag, name, listing->dataset->root, name);
}

stk_status stk_division_add(stk_listing *listing, const char *value, int *part, stk_error *err) {
    stk_dataset *dataset = listing->dataset;
    const char *flag;
    const char *column = stk_division_column(listing->options, &flag);
    column = column != NULL ? column : listing->found_group;
    size_t index = (size_t)dataset->part_count;
    int64_t number;
    bool added = false;
    if (dataset->part_column == NULL) {
        bool folds = listing->options->fold_column != NULL;
        dataset->division = folds ? STK_DIVIDE_FOLDS : STK_DIVIDE_GROUPS;
        dataset->part_column = stk_listing_keep(listing, column, strlen(column));
    }
    if (dataset->part_column == NULL) {
        return STK_FAIL_MEMORY(err, column);
    }
    if (dataset->division == STK_DIVIDE_FOLDS && stk_parse_int(value, &number) &&
        number == ALWAYS_TRAINS) {
        *part = ALWAYS_TRAINS;
        return STK_OK;
    }
    if (stk_map_find(&listing->part_numbers, value, &index)) {
        *part = (int)index;
        return STK_OK;
    }
    const char *name = stk_listing_keep(listing, value, strlen(value));
    bool has_room =
        name != NULL && STK_RESERVE(dataset->texts->parts, listing->part_capacity, index + 1);
    dataset->parts = dataset->texts->parts; /* the array may have moved */
    if (!has_room || !stk_map_add(&listing->part_numbers, name, index, &added)) {
        return STK_FAIL_MEMORY(err, column);
    }
    dataset->texts->parts[dataset->part_count++] = name;
    *part = (int)index;
    return STK_OK;
}

stk_status stk_division_sort(stk_listing *listing, stk_error *err) {
    stk_dataset *dataset = listing->dataset;
    size_t count = (size_t)dataset->part_count;
    if (count == 0) {
        return STK_OK;
    }
    int *new_parts = stk_mem_new(count, sizeof *new_parts);
    stk_status status = new_parts != NULL
                            ? stk_names_sort(dataset->texts->parts, count, new_parts, err)
                            : STK_FAIL_MEMORY(err, dataset->part_column);
    for (size_t i = 0; status == STK_OK && i < dataset->train.count; i++) {
        stk_sample *sample = &dataset->train.items[i];
        sample->part = sample->part >= 0 ? new_parts[sample->part] : sample->part;
    }
    stk_mem_free(new_parts);
    return status;
}

stk_status stk_division_finish(const stk_listing *listing, stk_error *err) {
    const stk_dataset *dataset = listing->dataset;
    stk_status status = STK_OK;
    if (dataset->division != STK_DIVIDE_FOLDS) {
        return STK_OK;
    }
    if (dataset->part_count < 2) {
        return STK_FAIL(err, STK_ERR_DATA, "--fold-column %s: %s in it; folds need two or more",
                        dataset->part_column,
                        dataset->part_count == 0 ? "there is no fold" : "there is one value only");
    }
    size_t *counts = stk_mem_new((size_t)dataset->part_count, sizeof *counts);
    if (counts == NULL) {
        return STK_FAIL_MEMORY(err, dataset->part_column);
    }
    for (size_t i = 0; i < dataset->train.count; i++) {
        if (dataset->train.items[i].part >= 0) {
            counts[dataset->train.items[i].part]++;
        }
    }
    for (int p = 0; status == STK_OK && p < dataset->part_count; p++) {
        if (counts[p] == 0) {
            status = STK_FAIL(err, STK_ERR_DATA,
                              "--fold-column %s: no picture is left in fold '%s' after what "
                              "--classes, --per-class and --rare-class leave out; take more "
                              "pictures",
                              dataset->part_column, dataset->parts[p]);
        }
    }
    stk_mem_free(counts);
    return status;
}
