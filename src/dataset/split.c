/*
 * split.c - divides the training samples, class by class, by a permutation from the seed, or by a
 * column.
 */
#include "dataset/dataset.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/numbers/rng.h"
#include "dataset/listing.h"

/* The samples sorted by class: those of class c are members[starts[c]] .. members[starts[c+1]-1]
 */
typedef struct by_class {
    size_t *starts;
    size_t *members;
} by_class;

static bool sort_by_class(const stk_dataset *dataset, by_class *g) {
    size_t classes = (size_t)stk_dataset_strata(dataset);
    g->starts = stk_mem_new(classes + 2, sizeof *g->starts);
    g->members = stk_mem_new(dataset->train.count, sizeof *g->members);
    if (g->starts == NULL || g->members == NULL) {
        return false;
    }
    /* Counts go two entries ahead, so that filling moves starts[c + 1] to where class c ends. */
    for (size_t i = 0; i < dataset->train.count; i++) {
        g->starts[(size_t)dataset->train.items[i].label + 2]++;
    }
    for (size_t c = 2; c < classes + 2; c++) {
        g->starts[c] += g->starts[c - 1];
    }
    for (size_t i = 0; i < dataset->train.count; i++) {
        g->members[g->starts[(size_t)dataset->train.items[i].label + 1]++] = i;
    }
    return true;
}

/* One image of every class may be this much more than the fraction, or less than so many images: a
 * training with many small classes misses each image that validates. */
#define MOST_OVER 1.5
#define FEW_VALIDATE 30.0

/* Whether every class of two or more gives at least one image. */
static bool all_give(const by_class *g, int classes, double fraction) {
    size_t images = 0;
    size_t giving = 0;
    for (int c = 0; c < classes; c++) {
        size_t n = g->starts[c + 1] - g->starts[c];
        images += n >= 2 ? n : 0;
        giving += n >= 2;
    }
    double wanted = fraction * (double)images;
    return wanted < FEW_VALIDATE || (double)giving <= MOST_OVER * wanted;
}

/*
 * Takes the validation samples of every class. A rounding error is carried into the next class, so
 * that the sum is near the fraction, too: where not all give, small classes take turns. A class of
 * two or more keeps an image for training.
 */
static void deal_fraction(const by_class *g, int classes, double fraction, uint64_t seed,
                          int *fold_of) {
    double carry = 0;
    size_t least = all_give(g, classes, fraction) ? 1 : 0;
    for (int c = 0; c < classes; c++) {
        size_t n = g->starts[c + 1] - g->starts[c];
        if (n < 2) {
            continue;
        }
        double exact = (double)n * fraction + carry;
        double whole = floor(exact + 0.5);
        carry = exact - whole;
        size_t part = whole < (double)least ? least : (size_t)whole;
        part = part > n - 1 ? n - 1 : part;
        stk_rng rng = stk_rng_make(seed, STK_RNG_SPLIT, 0, (uint64_t)c);
        uint64_t key = stk_rng_u64(&rng);
        for (size_t i = 0; i < part; i++) {
            fold_of[g->members[g->starts[c] + stk_rng_permute(key, n, i)]] = 0;
        }
    }
}

/*
 * Deals every class over the folds like cards, and the next class from the fold after the last: the
 * shares of a class, and whole folds, differ by one image at most. A class with one image always
 * trains.
 */
static void deal_folds(const by_class *g, int classes, size_t folds, uint64_t seed, int *fold_of) {
    size_t turn = 0;
    for (int c = 0; c < classes; c++) {
        size_t n = g->starts[c + 1] - g->starts[c];
        if (n < 2) {
            continue;
        }
        stk_rng rng = stk_rng_make(seed, STK_RNG_SPLIT, 1, (uint64_t)c);
        uint64_t key = stk_rng_u64(&rng);
        for (size_t i = 0; i < n; i++) {
            fold_of[g->members[g->starts[c] + stk_rng_permute(key, n, i)]] =
                (int)((turn + i) % folds);
        }
        turn = (turn + n) % folds;
    }
}

/* Takes the folds from the column; classes with one image always train. */
static void deal_given(const stk_dataset *dataset, const by_class *g, int *fold_of) {
    for (size_t i = 0; i < dataset->train.count; i++) {
        const stk_sample *sample = &dataset->train.items[i];
        bool alone = g->starts[sample->label + 1] - g->starts[sample->label] < 2;
        fold_of[i] = alone ? -1 : sample->part;
    }
}

static stk_status deal_groups(const stk_dataset *dataset, double val_fraction, int folds,
                              uint64_t seed, int *fold_of, stk_error *err) {
    bool many = folds >= 2;
    int bins = many ? folds : 2;
    double *shares = stk_mem_new((size_t)bins, sizeof *shares);
    if (shares == NULL) {
        return STK_FAIL_MEMORY(err, "the division of the groups");
    }
    for (int i = 0; i < bins; i++) {
        shares[i] = many ? 1.0 / bins : i == 0 ? val_fraction : 1 - val_fraction;
    }
    stk_status status = stk_groups_deal(dataset, shares, bins, many, seed, fold_of, err);
    for (size_t i = 0; status == STK_OK && !many && i < dataset->train.count; i++) {
        fold_of[i] = fold_of[i] == 0 ? 0 : -1;
    }
    stk_mem_free(shares);
    return status;
}

/* The two sorted lists of one fold. */
static stk_status collect(const int *fold_of, size_t count, int fold, stk_split *split,
                          stk_error *err) {
    split->train = stk_mem_new(count, sizeof *split->train);
    split->val = stk_mem_new(count, sizeof *split->val);
    if (split->train == NULL || split->val == NULL) {
        stk_split_free(split);
        return STK_FAIL_MEMORY(err, "the division of the samples");
    }
    for (size_t i = 0; i < count; i++) {
        if (fold_of[i] == fold) {
            split->val[split->val_count++] = i;
        } else {
            split->train[split->train_count++] = i;
        }
    }
    return STK_OK;
}

static stk_status check_request(const stk_dataset *dataset, double val_fraction, int folds,
                                stk_error *err) {
    if (folds >= 2 && (size_t)folds > dataset->train.count) {
        return STK_FAIL(err, STK_ERR_DATA,
                        "cannot make %d folds of %zu images in %s; pass fewer with --folds", folds,
                        dataset->train.count, dataset->root);
    }
    if (folds < 2 && dataset->val.count == 0 && !(val_fraction >= 0 && val_fraction < 1)) {
        return STK_FAIL(err, STK_ERR_USAGE,
                        "--val-fraction %g: it must be 0 or more, and less than 1", val_fraction);
    }
    return STK_OK;
}

bool stk_dataset_is_divided(const stk_dataset *dataset, double val_fraction, int folds) {
    return folds >= 2 || dataset->division == STK_DIVIDE_FOLDS ||
           (dataset->val.count == 0 && val_fraction > 0);
}

stk_status stk_dataset_deal(const stk_dataset *dataset, double val_fraction, int folds,
                            uint64_t seed, int *fold_of, stk_error *err) {
    by_class g = {0};
    stk_status status = check_request(dataset, val_fraction, folds, err);
    for (size_t i = 0; i < dataset->train.count; i++) {
        fold_of[i] = -1;
    }
    if (status != STK_OK || !stk_dataset_is_divided(dataset, val_fraction, folds)) {
        return status;
    }
    if (dataset->division == STK_DIVIDE_GROUPS) {
        return deal_groups(dataset, val_fraction, folds, seed, fold_of, err);
    }
    if (!sort_by_class(dataset, &g)) {
        status = STK_FAIL_MEMORY(err, "the division of the samples");
    } else if (dataset->division == STK_DIVIDE_FOLDS) {
        deal_given(dataset, &g, fold_of);
    } else if (folds >= 2) {
        deal_folds(&g, stk_dataset_strata(dataset), (size_t)folds, seed, fold_of);
    } else {
        deal_fraction(&g, stk_dataset_strata(dataset), val_fraction, seed, fold_of);
    }
    stk_mem_free(g.starts);
    stk_mem_free(g.members);
    return status;
}

stk_status stk_dataset_split(const stk_dataset *dataset, double val_fraction, int folds, int fold,
                             uint64_t seed, stk_split *split, stk_error *err) {
    size_t count = dataset->train.count;
    int there = dataset->division == STK_DIVIDE_FOLDS ? dataset->part_count : folds;
    memset(split, 0, sizeof *split);
    if (there >= 2 && (fold < 0 || fold >= there)) {
        return STK_FAIL(err, STK_ERR_USAGE, "fold %d does not exist; with --folds %d it is 0 to %d",
                        fold, there, there - 1);
    }
    int *fold_of = stk_mem_new(count, sizeof *fold_of);
    stk_status status = fold_of != NULL
                            ? stk_dataset_deal(dataset, val_fraction, folds, seed, fold_of, err)
                            : STK_FAIL_MEMORY(err, "the division of the samples");
    STK_THEN(status, collect(fold_of, count, there >= 2 ? fold : 0, split, err));
    stk_mem_free(fold_of);
    if (status == STK_OK && split->val_count == 0 &&
        stk_dataset_is_divided(dataset, val_fraction, there)) {
        stk_split_free(split);
        status = STK_FAIL(err, STK_ERR_DATA,
                          "nothing of %s is left to validate: too few classes have two or more "
                          "images; add pictures, or pass %s",
                          dataset->root,
                          folds >= 2 ? "fewer --folds, or none with --val-fraction 0"
                                     : "--val-fraction 0 to train without validating");
    }
    return status;
}

stk_status stk_dataset_split_none(const stk_dataset *dataset, stk_split *split, stk_error *err) {
    size_t count = dataset->train.count;
    *split = (stk_split){.train = stk_mem_new(count, sizeof *split->train), .train_count = count};
    if (split->train == NULL) {
        return STK_FAIL_MEMORY(err, "the list of the samples");
    }
    for (size_t i = 0; i < count; i++) {
        split->train[i] = i;
    }
    return STK_OK;
}

void stk_split_free(stk_split *split) {
    stk_mem_free(split->train);
    stk_mem_free(split->val);
    memset(split, 0, sizeof *split);
}

void stk_dataset_priors(const stk_dataset *dataset, double *priors) {
    if (!stk_task_has_classes(dataset->task)) {
        stk_targets_means(&dataset->targets, priors);
        return;
    }
    for (int c = 0; c < dataset->class_count; c++) {
        priors[c] = dataset->train.count > 0 ? 0.0 : 1.0 / dataset->class_count;
    }
    for (size_t i = 0; i < dataset->train.count; i++) {
        priors[dataset->train.items[i].label] += 1.0;
    }
    for (int c = 0; c < dataset->class_count && dataset->train.count > 0; c++) {
        priors[c] /= (double)dataset->train.count;
    }
}
