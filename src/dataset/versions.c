/*
 * versions.c - class folders that hold versions of the same pictures: Cover/1.jpg, UERD/1.jpg.
 *
 * Pictures of class folders are often numbered, so the same names alone show nothing. But where a
 * folder is called like originals and the submission takes one number, it asks whether a picture
 * was changed at all: the originals are one class, and all others are the other. The versions of
 * one picture are alike, so they are not divided between training and validation.
 */
#include "dataset/listing.h"

#include <stdint.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"
#include "dataset/column_profile.h"

/* The share of the names that must be in two folders or more. */
#define SHARED 0.9

/* Names of folders of originals; case does not matter. */
static const char *const originals[] = {"cover",  "original", "originals", "real",     "clean",
                                        "normal", "genuine",  "authentic", "pristine", "negative"};

/* The name of the class of all versions. */
#define CHANGED "changed"

/* The name of a picture without folder and extension, as a text of the data set. */
static const char *stem_of(stk_listing *listing, const char *path) {
    const char *base = stk_path_base(path);
    const char *extension = stk_picture_extension(base);
    size_t length = strlen(base) - (extension != NULL ? strlen(extension) : 0);
    return stk_listing_keep(listing, base, length);
}

/* Whether most names occur in several classes. */
static stk_status are_versions(stk_listing *listing, const char **stems, bool *versions,
                               stk_error *err) {
    const stk_sample_list *train = &listing->dataset->train;
    stk_map first = {0}; /* from a name to the first sample that has it */
    size_t shared = 0;
    bool *counted = stk_mem_new(train->count, sizeof *counted);
    bool ok = counted != NULL;
    for (size_t i = 0; ok && i < train->count; i++) {
        bool added;
        size_t other = 0;
        stems[i] = stem_of(listing, train->items[i].path);
        ok = stems[i] != NULL && stk_map_add(&first, stems[i], i, &added);
        if (ok && !added && stk_map_find(&first, stems[i], &other) && !counted[other] &&
            train->items[other].label != train->items[i].label) {
            counted[other] = true;
            shared++;
        }
    }
    *versions = ok && first.count > 1 && (double)shared >= SHARED * (double)first.count;
    stk_map_free(&first);
    stk_mem_free(counted);
    return ok ? STK_OK : STK_FAIL_MEMORY(err, "the names of the pictures");
}

/* The class of the originals; -1: none is called so. */
static int find_original(const stk_dataset *dataset) {
    for (int c = 0; c < dataset->class_count; c++) {
        for (size_t i = 0; i < STK_COUNT(originals); i++) {
            if (stk_str_equal_nocase(dataset->classes[c], originals[i])) {
                return c;
            }
        }
    }
    return -1;
}

/* Whether the sample's rows take one number each. */
static bool takes_a_number(const stk_sample_file *sample, size_t id) {
    double x;
    if (sample->file == NULL || sample->csv.columns != 2 || sample->csv.rows == 0) {
        return false;
    }
    return stk_cell_number(stk_csv_cell(&sample->csv, 0, id == 0 ? 1 : 0), &x);
}

/* Makes two classes of all: the originals, and what was changed. */
static stk_status merge(stk_listing *listing, int original, stk_error *err) {
    stk_dataset *dataset = listing->dataset;
    const char *name = dataset->classes[original];
    const char *changed = stk_listing_keep(listing, CHANGED, strlen(CHANGED));
    if (changed == NULL) {
        return STK_FAIL_MEMORY(err, "the class names");
    }
    for (size_t i = 0; i < dataset->train.count; i++) {
        dataset->train.items[i].label = dataset->train.items[i].label != original;
    }
    for (size_t i = 0; i < dataset->val.count; i++) {
        dataset->val.items[i].label = dataset->val.items[i].label != original;
    }
    dataset->texts->classes[0] = name;
    dataset->texts->classes[1] = changed;
    dataset->class_count = 2;
    dataset->has_versions = true;
    listing->positive = changed;
    char *why =
        stk_str_format("the folders have pictures of the same names, and each row takes one "
                       "number: all but '%s' are versions",
                       name);
    stk_events_decision(listing->events, "two classes, original and changed",
                        why != NULL ? why : name);
    stk_mem_free(why);
    return STK_OK;
}

stk_status stk_versions_find(stk_listing *listing, const stk_sample_file *sample, size_t sample_id,
                             stk_error *err) {
    stk_dataset *dataset = listing->dataset;
    stk_sample_list *train = &dataset->train;
    bool versions = false;
    const char *flag;
    int original = find_original(dataset);
    if (original < 0 || train->count == 0 || !takes_a_number(sample, sample_id)) {
        return STK_OK;
    }
    const char **stems = stk_mem_new(train->count, sizeof *stems);
    stk_status status = stems != NULL ? are_versions(listing, stems, &versions, err)
                                      : STK_FAIL_MEMORY(err, "the names of the pictures");
    bool divides = versions && stk_division_column(listing->options, &flag) == NULL &&
                   listing->options->val_per_class <= 0;
    if (status == STK_OK && divides) {
        listing->found_group = "name of the picture";
    }
    for (size_t i = 0; status == STK_OK && divides && i < train->count; i++) {
        status = stk_division_add(listing, stems[i], &train->items[i].part, err);
    }
    if (status == STK_OK && versions) {
        status = merge(listing, original, err);
    }
    stk_mem_free(stems);
    return status;
}
