/*
 * split.c - divides the training samples, class by class, by a permutation that the seed names.
 */
#include "dataset/dataset.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/rng.h"

/* The samples grouped by class: those of class c are members[starts[c]] .. members[starts[c+1]-1]
 */
typedef struct groups {
    size_t *starts;
    size_t *members;
} groups;

static bool group_by_class(const stk_dataset *dataset, groups *g) {
    size_t classes = (size_t)dataset->class_count;
    g->starts = stk_mem_new(classes + 2, sizeof *g->starts);
    g->members = stk_mem_new(dataset->train.count, sizeof *g->members);
    if (g->starts == NULL || g->members == NULL) {
        return false;
    }
    /* Counted two places ahead, so that filling moves starts[c + 1] to where class c ends. */
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

/*
 * The validating part of every class. What rounding takes from one class the next one gets, so that
 * the whole comes near the fraction too; a class of two or more keeps one image on either side.
 */
static void mark_fraction(const groups *g, int classes, double fraction, uint64_t seed,
                          bool *is_val) {
    double carry = 0;
    for (int c = 0; c < classes; c++) {
        size_t n = g->starts[c + 1] - g->starts[c];
        if (n < 2) {
            continue;
        }
        double exact = (double)n * fraction + carry;
        double whole = floor(exact + 0.5);
        carry = exact - whole;
        size_t part = whole < 1 ? 1 : (size_t)whole;
        part = part > n - 1 ? n - 1 : part;
        stk_rng rng = stk_rng_make(seed, STK_RNG_SPLIT, 0, (uint64_t)c);
        uint64_t key = stk_rng_u64(&rng);
        for (size_t i = 0; i < part; i++) {
            is_val[g->members[g->starts[c] + stk_rng_permute(key, n, i)]] = true;
        }
    }
}

/*
 * Deals every class over the folds as cards are dealt, going on with the next class where the last
 * one ended: classes and whole folds differ by one image at most. A class with one image always
 * trains.
 */
static void mark_fold(const groups *g, int classes, size_t folds, size_t fold, uint64_t seed,
                      bool *is_val) {
    size_t turn = 0;
    for (int c = 0; c < classes; c++) {
        size_t n = g->starts[c + 1] - g->starts[c];
        if (n < 2) {
            continue;
        }
        stk_rng rng = stk_rng_make(seed, STK_RNG_SPLIT, 1, (uint64_t)c);
        uint64_t key = stk_rng_u64(&rng);
        for (size_t i = 0; i < n; i++) {
            if ((turn + i) % folds == fold) {
                is_val[g->members[g->starts[c] + stk_rng_permute(key, n, i)]] = true;
            }
        }
        turn = (turn + n) % folds;
    }
}

/* Turns the marks into the two sorted lists. */
static stk_status collect(const bool *is_val, size_t count, stk_split *split, stk_error *err) {
    split->train = stk_mem_new(count, sizeof *split->train);
    split->val = stk_mem_new(count, sizeof *split->val);
    if (split->train == NULL || split->val == NULL) {
        stk_split_free(split);
        return STK_FAIL_MEMORY(err, "the division of the samples");
    }
    for (size_t i = 0; i < count; i++) {
        if (is_val[i]) {
            split->val[split->val_count++] = i;
        } else {
            split->train[split->train_count++] = i;
        }
    }
    return STK_OK;
}

static stk_status check_request(const stk_dataset *dataset, double val_fraction, int folds,
                                int fold, stk_error *err) {
    if (folds >= 2 && (fold < 0 || fold >= folds)) {
        return STK_FAIL(err, STK_ERR_USAGE, "fold %d does not exist; with --folds %d it is 0 to %d",
                        fold, folds, folds - 1);
    }
    if (folds >= 2 && (size_t)folds > dataset->train.count) {
        return STK_FAIL(err, STK_ERR_DATA,
                        "cannot make %d folds of %zu images in %s; pass fewer with --folds", folds,
                        dataset->train.count, dataset->root);
    }
    if (folds < 2 && dataset->val.count == 0 && !(val_fraction > 0 && val_fraction < 1)) {
        return STK_FAIL(err, STK_ERR_USAGE, "--val-fraction %g: it must lie between 0 and 1",
                        val_fraction);
    }
    return STK_OK;
}

stk_status stk_dataset_split(const stk_dataset *dataset, double val_fraction, int folds, int fold,
                             uint64_t seed, stk_split *split, stk_error *err) {
    size_t count = dataset->train.count;
    bool *is_val = NULL;
    groups g = {0};
    memset(split, 0, sizeof *split);
    stk_status status = check_request(dataset, val_fraction, folds, fold, err);
    if (status != STK_OK) {
        return status;
    }
    is_val = stk_mem_new(count, sizeof *is_val);
    if (is_val == NULL || !group_by_class(dataset, &g)) {
        status = STK_FAIL_MEMORY(err, "the division of the samples");
        goto done;
    }
    if (folds >= 2) {
        mark_fold(&g, dataset->class_count, (size_t)folds, (size_t)fold, seed, is_val);
    } else if (dataset->val.count == 0) {
        mark_fraction(&g, dataset->class_count, val_fraction, seed, is_val);
    }
    status = collect(is_val, count, split, err);
    if (status == STK_OK && split->val_count == 0 && (folds >= 2 || dataset->val.count == 0)) {
        stk_split_free(split);
        status = STK_FAIL(err, STK_ERR_DATA,
                          "nothing of %s is left to validate: too few classes have two or more "
                          "images; add pictures%s",
                          dataset->root, folds >= 2 ? " or pass fewer --folds" : "");
    }
done:
    stk_mem_free(is_val);
    stk_mem_free(g.starts);
    stk_mem_free(g.members);
    return status;
}

void stk_split_free(stk_split *split) {
    stk_mem_free(split->train);
    stk_mem_free(split->val);
    memset(split, 0, sizeof *split);
}

void stk_dataset_priors(const stk_dataset *dataset, double *priors) {
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
