/*
 * subset.c - takes some classes, and some pictures of each.
 *
 * Every class and every picture has a random number that depends only on the seed and its own name;
 * those with the smallest numbers are taken. So the choice does not depend on other files, on the
 * order of the listing or on the location, and taking the same subset of a subset changes nothing.
 * The name of a picture is its id without the folders down to its class: train/cat/1.jpg and
 * cat/1.jpg are the same picture of the class cat.
 */
#include "dataset/listing.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/numbers/checksum.h"
#include "base/numbers/rng.h"

/* The purposes of random numbers. */
typedef enum purpose { FOR_CLASSES, FOR_VAL, FOR_TRAIN } purpose;

/* A class or a sample that may be chosen. */
typedef struct candidate {
    uint64_t number;
    const char *name; /* what decides between equal numbers */
    size_t index;     /* into the list of classes or samples */
    int label;        /* a sample's class; 0 for classes */
} candidate;

/* Classes that have less than was asked for. */
typedef struct shortage {
    stk_first_names few;
    size_t least; /* pictures of the class with the fewest */
    const char *least_class;
} shortage;

static int compare_candidates(const void *a, const void *b) {
    const candidate *x = a;
    const candidate *y = b;
    if (x->label != y->label) {
        return x->label < y->label ? -1 : 1;
    }
    if (x->number != y->number) {
        return x->number < y->number ? -1 : 1;
    }
    return strcmp(x->name, y->name);
}

static uint64_t number_of(const stk_listing *listing, purpose what, uint64_t hash) {
    stk_rng rng = stk_rng_make((uint64_t)listing->options->subset_seed, STK_RNG_SUBSET, what, hash);
    return stk_rng_u64(&rng);
}

static uint64_t hash_class(const char *name) {
    return stk_checksum(name, strlen(name));
}

/* The part of an id after CLASS/ or FOLDER/CLASS/; the whole id when it does not begin so. */
static const char *below_class(const char *id, const char *class_name) {
    size_t length = strlen(class_name);
    const char *starts[2] = {id, strchr(id, '/')};
    for (int i = 0; i < 2 && starts[i] != NULL; i++) {
        const char *at = starts[i] + i;
        if (strncmp(at, class_name, length) == 0 && at[length] == '/') {
            return at + length + 1;
        }
    }
    return id;
}

stk_status stk_subset_classes(stk_listing *listing, stk_error *err) {
    stk_dataset *dataset = listing->dataset;
    int64_t wanted = listing->options->classes;
    int count = dataset->class_count;
    listing->all_classes = count;
    if (wanted == 1) {
        return STK_FAIL(err, STK_ERR_USAGE,
                        "--classes 1: a classifier needs two or more; 0 means all of them");
    }
    if (wanted > count) {
        stk_events_warning(listing->events,
                           "--classes %" PRId64 ": there are only %d, all are used", wanted, count);
    }
    if (wanted <= 0 || wanted >= count) {
        return STK_OK;
    }
    candidate *candidates = stk_mem_new((size_t)count, sizeof *candidates);
    bool *dropped = stk_mem_new((size_t)count, sizeof *dropped);
    stk_status status = candidates != NULL && dropped != NULL
                            ? STK_OK
                            : STK_FAIL_MEMORY(err, "the choice of classes");
    for (int c = 0; status == STK_OK && c < count; c++) {
        const char *name = dataset->classes[c];
        candidates[c] = (candidate){.number = number_of(listing, FOR_CLASSES, hash_class(name)),
                                    .name = name,
                                    .index = (size_t)c};
    }
    if (status == STK_OK) {
        qsort(candidates, (size_t)count, sizeof *candidates, compare_candidates);
        for (int c = (int)wanted; c < count; c++) {
            dropped[candidates[c].index] = true;
        }
        status = stk_listing_drop_classes(dataset, dropped, err);
    }
    stk_mem_free(candidates);
    stk_mem_free(dropped);
    return status;
}

/* The samples of a list, class by class, in the order in which they are chosen; NULL: no memory. */
static candidate *line_up(const stk_listing *listing, const stk_sample_list *list, purpose what) {
    const stk_dataset *dataset = listing->dataset;
    candidate *candidates = stk_mem_new(list->count, sizeof *candidates);
    uint64_t *hashes = stk_mem_new((size_t)dataset->class_count, sizeof *hashes);
    for (int c = 0; hashes != NULL && c < dataset->class_count; c++) {
        hashes[c] = hash_class(dataset->classes[c]);
    }
    if (candidates == NULL || hashes == NULL) {
        stk_mem_free(candidates);
        stk_mem_free(hashes);
        return NULL;
    }
    for (size_t i = 0; i < list->count; i++) {
        const stk_sample *sample = &list->items[i];
        const char *name = below_class(sample->id, dataset->classes[sample->label]);
        uint64_t hash = stk_checksum_seeded(name, strlen(name), hashes[sample->label]);
        candidates[i] = (candidate){.number = number_of(listing, what, hash),
                                    .name = sample->id,
                                    .index = i,
                                    .label = sample->label};
    }
    if (list->count > 1) {
        qsort(candidates, list->count, sizeof *candidates, compare_candidates);
    }
    stk_mem_free(hashes);
    return candidates;
}

static void note_shortage(shortage *s, const char *class_name, size_t there) {
    if (s->few.count == 0 || there < s->least) {
        s->least = there;
        s->least_class = class_name;
    }
    stk_first_names_add(&s->few, class_name);
}

static void tell_shortage(const stk_listing *listing, const shortage *s, int64_t wanted,
                          const char *kind) {
    char names[300];
    if (s->few.count > 0) {
        stk_events_warning(listing->events,
                           "%zu of %d classes have fewer than %" PRId64 " %s pictures (%s; %s has "
                           "the fewest, %zu); all of these are used",
                           s->few.count, listing->dataset->class_count, wanted, kind,
                           stk_first_names_text(&s->few, names, sizeof names), s->least_class,
                           s->least);
    }
}

/*
 * How many of a class's pictures are kept for training before validation takes its own: as many as
 * --per-class says, but at most half.
 */
static size_t training_share(const stk_dataset_options *o, size_t count) {
    size_t half = (count + 1) / 2;
    return o->per_class > 0 && (uint64_t)o->per_class < half ? (size_t)o->per_class : half;
}

/* Marks at most `most` samples of each class, and counts the classes that have fewer. */
static stk_status mark(const stk_listing *listing, const stk_sample_list *list, purpose what,
                       int64_t most, bool keep_half, bool *marked, stk_error *err) {
    const stk_dataset *dataset = listing->dataset;
    candidate *candidates = line_up(listing, list, what);
    shortage missing = {0};
    if (candidates == NULL) {
        return STK_FAIL_MEMORY(err, "the choice of pictures");
    }
    size_t at = 0;
    for (int c = 0; c < dataset->class_count; c++) {
        size_t first = at;
        while (at < list->count && candidates[at].label == c) {
            at++;
        }
        size_t there = at - first;
        there -= keep_half ? training_share(listing->options, there) : 0;
        for (size_t i = 0; i < there && i < (uint64_t)most; i++) {
            marked[candidates[first + i].index] = true;
        }
        if (there < (uint64_t)most) {
            note_shortage(&missing, dataset->classes[c], there);
        }
    }
    tell_shortage(listing, &missing, most, what == FOR_VAL ? "validation" : "training");
    stk_mem_free(candidates);
    return STK_OK;
}

/* Leaves the marked samples in the list, in their order; the others are appended to `rest`, unless
 * it is NULL. */
static void divide(stk_sample_list *list, const bool *marked, stk_sample_list *rest) {
    size_t left = 0;
    for (size_t i = 0; i < list->count; i++) {
        if (marked[i]) {
            list->items[left++] = list->items[i];
        } else if (rest != NULL) {
            rest->items[rest->count++] = list->items[i];
        }
    }
    list->count = left;
}

static stk_status limit(const stk_listing *listing, stk_sample_list *list, purpose what,
                        int64_t most, stk_error *err) {
    bool *marked = stk_mem_new(list->count, sizeof *marked);
    stk_status status = marked != NULL ? mark(listing, list, what, most, false, marked, err)
                                       : STK_FAIL_MEMORY(err, "the choice of pictures");
    if (status == STK_OK) {
        divide(list, marked, NULL);
    }
    stk_mem_free(marked);
    return status;
}

/* Makes a validation set out of training pictures. */
static stk_status set_apart(stk_listing *listing, int64_t most, stk_error *err) {
    stk_dataset *dataset = listing->dataset;
    stk_sample_list all = dataset->train;
    bool *marked = stk_mem_new(all.count, sizeof *marked);
    stk_sample *kept = stk_mem_raw(all.count, sizeof *kept);
    stk_status status = marked != NULL && kept != NULL
                            ? mark(listing, &all, FOR_VAL, most, true, marked, err)
                            : STK_FAIL_MEMORY(err, "the choice of pictures");
    if (status == STK_OK) {
        stk_sample_list train = {.items = kept};
        divide(&all, marked, &train);
        stk_mem_free(dataset->val.items);
        dataset->val = all;
        dataset->train = train;
        kept = NULL;
    }
    stk_mem_free(marked);
    stk_mem_free(kept);
    return status;
}

/* "100 of 1,000 classes, 500 + 10 pictures each, seed 42". */
static void tell_subset(const stk_listing *listing) {
    const stk_dataset_options *o = listing->options;
    char text[200];
    char a[32];
    char b[32];
    int used = listing->dataset->class_count;
    size_t n;
    if (used < listing->all_classes) {
        n = (size_t)snprintf(text, sizeof text, "%s of %s classes",
                             stk_format_count(a, sizeof a, (uint64_t)used),
                             stk_format_count(b, sizeof b, (uint64_t)listing->all_classes));
    } else {
        n = (size_t)snprintf(text, sizeof text, "all %s classes",
                             stk_format_count(a, sizeof a, (uint64_t)used));
    }
    stk_format_count(a, sizeof a, (uint64_t)o->per_class);
    stk_format_count(b, sizeof b, (uint64_t)o->val_per_class);
    if (o->per_class > 0 && o->val_per_class > 0) {
        n += (size_t)snprintf(text + n, sizeof text - n, ", %s + %s pictures each", a, b);
    } else if (o->per_class > 0 || o->val_per_class > 0) {
        n += (size_t)snprintf(text + n, sizeof text - n, ", %s %s pictures each",
                              o->per_class > 0 ? a : b,
                              o->per_class > 0 ? "training" : "validation");
    }
    snprintf(text + n, sizeof text - n, ", seed %" PRId64, o->subset_seed);
    stk_events_decision(listing->events, "subset", text);
}

stk_status stk_subset_pictures(stk_listing *listing, stk_error *err) {
    const stk_dataset_options *o = listing->options;
    stk_dataset *dataset = listing->dataset;
    stk_status status = STK_OK;
    if (o->classes <= 0 && o->per_class <= 0 && o->val_per_class <= 0) {
        return STK_OK;
    }
    if (o->per_class == 1 && o->val_per_class <= 0 && dataset->val.count == 0) {
        return STK_FAIL(err, STK_ERR_USAGE,
                        "--per-class 1 leaves one picture of each class, which cannot be both "
                        "trained on and validated; pass a larger number, or --val-per-class too");
    }
    if (o->val_per_class > 0) {
        status = dataset->val.count > 0
                     ? limit(listing, &dataset->val, FOR_VAL, o->val_per_class, err)
                     : set_apart(listing, o->val_per_class, err);
    }
    if (status == STK_OK && o->per_class > 0) {
        status = limit(listing, &dataset->train, FOR_TRAIN, o->per_class, err);
    }
    if (status == STK_OK) {
        tell_subset(listing);
    }
    return status;
}
