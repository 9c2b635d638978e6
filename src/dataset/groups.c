/*
 * groups.c - distributes groups of samples over folds, or over training and validation.
 *
 * In general no division keeps groups whole and every class even. A greedy search comes close. The
 * largest groups go first, while the bins can still be balanced. Each goes to the bin where the sum
 * over classes of (n - share T)^2 / (share T) grows least, where the bin has n pictures of the
 * class and the data set T: roughly the bin that lacks the group's classes most.
 */
#include "dataset/listing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/numbers/checksum.h"
#include "base/numbers/rng.h"

/* Purposes of random numbers beside those of split.c. */
#define FOR_GROUPS 2
#define FOR_BINS 3

/* Costs that differ by less count as equal: another machine may round sums differently. */
#define NOISE 1e-9

typedef struct group {
    size_t size;
    uint64_t number; /* by seed and name: decides between groups of one size */
    int part;
    bool trains; /* always */
} group;

typedef struct dealing {
    const stk_dataset *dataset;
    const double *shares; /* borrowed */
    int bins;
    group *groups;   /* owned: (part_count); first those that are dealt, the largest first */
    size_t dealt;    /* groups that get a bin: all but those that always train */
    size_t *starts;  /* owned: the samples of part p are members[starts[p]] up to starts[p + 1] */
    size_t *members; /* owned */
    size_t *totals;  /* owned: pictures of each class in the groups that get a bin */
    size_t *counts;  /* owned: (bins, classes) */
    size_t *full;    /* owned: pictures in each bin */
    size_t *mine;    /* owned: pictures of each class in the group at hand; zero in between */
    uint64_t key;    /* decides between bins of equal cost */
} dealing;

static bool open_dealing(dealing *d) {
    const stk_dataset *s = d->dataset;
    size_t classes = (size_t)stk_dataset_strata(s);
    size_t parts = (size_t)s->part_count;
    d->groups = stk_mem_new(parts, sizeof *d->groups);
    d->starts = stk_mem_new(parts + 2, sizeof *d->starts);
    d->members = stk_mem_new(s->train.count, sizeof *d->members);
    d->totals = stk_mem_new(classes, sizeof *d->totals);
    d->counts = stk_mem_new((size_t)d->bins, classes * sizeof *d->counts);
    d->full = stk_mem_new((size_t)d->bins, sizeof *d->full);
    d->mine = stk_mem_new(classes, sizeof *d->mine);
    return d->groups != NULL && d->starts != NULL && d->members != NULL && d->totals != NULL &&
           d->counts != NULL && d->full != NULL && d->mine != NULL;
}

static void close_dealing(dealing *d) {
    stk_mem_free(d->groups);
    stk_mem_free(d->starts);
    stk_mem_free(d->members);
    stk_mem_free(d->totals);
    stk_mem_free(d->counts);
    stk_mem_free(d->full);
    stk_mem_free(d->mine);
}

static int compare_groups(const void *a, const void *b) {
    const group *x = a;
    const group *y = b;
    if (x->trains != y->trains) {
        return x->trains ? 1 : -1;
    }
    if (x->size != y->size) {
        return x->size > y->size ? -1 : 1;
    }
    if (x->number != y->number) {
        return x->number < y->number ? -1 : 1;
    }
    return x->part - y->part;
}

/* Fills in the members of each group, the totals of each class and the order of the groups. */
static void line_up(dealing *d, uint64_t seed) {
    const stk_dataset *s = d->dataset;
    const stk_sample *items = s->train.items;
    for (size_t i = 0; i < s->train.count; i++) {
        d->starts[items[i].part + 2]++; /* two entries ahead, as in split.c */
        d->totals[items[i].label]++;
    }
    for (int p = 0; p < s->part_count; p++) {
        stk_rng rng = stk_rng_make(seed, STK_RNG_SPLIT, FOR_GROUPS,
                                   stk_checksum(s->parts[p], strlen(s->parts[p])));
        d->groups[p] = (group){.size = d->starts[p + 2], .number = stk_rng_u64(&rng), .part = p};
    }
    for (int p = 2; p < s->part_count + 2; p++) {
        d->starts[p] += d->starts[p - 1];
    }
    for (size_t i = 0; i < s->train.count; i++) {
        d->members[d->starts[items[i].part + 1]++] = i;
        d->groups[items[i].part].trains =
            d->groups[items[i].part].trains || d->totals[items[i].label] == 1;
    }
    for (size_t i = 0; i < s->train.count; i++) {
        d->totals[items[i].label] -= d->groups[items[i].part].trains;
    }
    for (int p = 0; p < s->part_count; p++) {
        d->groups[p].trains = d->groups[p].trains || d->groups[p].size == 0;
        d->dealt += !d->groups[p].trains;
    }
    qsort(d->groups, (size_t)s->part_count, sizeof *d->groups, compare_groups);
}

/* How much the sum above grows when the group goes into the bin, without terms that all bins share.
 */
static double cost(const dealing *d, const group *g, int bin) {
    const stk_sample *items = d->dataset->train.items;
    const size_t *counts = d->counts + (size_t)bin * (size_t)stk_dataset_strata(d->dataset);
    double sum = 0;
    /* Picture by picture: a class with m of them in the group counts m times (2 n + m) / T. */
    for (size_t i = d->starts[g->part]; i < d->starts[g->part + 1]; i++) {
        int c = items[d->members[i]].label;
        sum += (double)(2 * counts[c] + d->mine[c]) / (d->shares[bin] * (double)d->totals[c]);
    }
    return sum;
}

static bool is_better(const dealing *d, double cost_a, int a, double cost_b, int b) {
    if (fabs(cost_a - cost_b) > NOISE * fmax(cost_a, cost_b)) {
        return cost_a < cost_b;
    }
    double full_a = (double)d->full[a] / d->shares[a];
    double full_b = (double)d->full[b] / d->shares[b];
    if (fabs(full_a - full_b) > NOISE * fmax(full_a, full_b)) {
        return full_a < full_b;
    }
    uint64_t bins = (uint64_t)d->bins;
    return stk_rng_permute(d->key, bins, (uint64_t)a) < stk_rng_permute(d->key, bins, (uint64_t)b);
}

static void put(dealing *d, const group *g, int bin, int *bin_of) {
    size_t *counts = d->counts + (size_t)bin * (size_t)stk_dataset_strata(d->dataset);
    for (size_t i = d->starts[g->part]; i < d->starts[g->part + 1]; i++) {
        counts[d->dataset->train.items[d->members[i]].label]++;
        bin_of[d->members[i]] = bin;
    }
    d->full[bin] += g->size;
}

static void deal(dealing *d, const group *g, int *bin_of) {
    const stk_sample *items = d->dataset->train.items;
    int best = 0;
    double least = INFINITY;
    for (size_t i = d->starts[g->part]; i < d->starts[g->part + 1]; i++) {
        d->mine[items[d->members[i]].label]++;
    }
    for (int bin = 0; bin < d->bins; bin++) {
        double now = cost(d, g, bin);
        if (bin == 0 || is_better(d, now, bin, least, best)) {
            best = bin;
            least = now;
        }
    }
    for (size_t i = d->starts[g->part]; i < d->starts[g->part + 1]; i++) {
        d->mine[items[d->members[i]].label] = 0;
    }
    put(d, g, best, bin_of);
}

/* A bin with a small share may be empty; it gets the smallest group. */
static void fill_empty(dealing *d, int *bin_of) {
    size_t last = d->dealt;
    for (int bin = 0; bin < d->bins; bin++) {
        if (d->full[bin] == 0) {
            put(d, &d->groups[--last], bin, bin_of);
        }
    }
}

static stk_status check_groups(const dealing *d, bool folds, stk_error *err) {
    const stk_dataset *s = d->dataset;
    if (d->dealt >= (size_t)d->bins) {
        return STK_OK;
    }
    if (folds) {
        return STK_FAIL(err, STK_ERR_DATA,
                        "--group-column %s: cannot make %d folds of %zu group%s in %s; pass fewer "
                        "with --folds",
                        s->part_column, d->bins, d->dealt, stk_plural(d->dealt), s->root);
    }
    return STK_FAIL(err, STK_ERR_DATA,
                    "--group-column %s: %zu group%s in %s cannot be divided between training and "
                    "validation; it takes two",
                    s->part_column, d->dealt, stk_plural(d->dealt), s->root);
}

stk_status stk_groups_deal(const stk_dataset *dataset, const double *shares, int bins, bool folds,
                           uint64_t seed, int *bin_of, stk_error *err) {
    dealing d = {.dataset = dataset, .shares = shares, .bins = bins};
    stk_rng rng = stk_rng_make(seed, STK_RNG_SPLIT, FOR_BINS, 0);
    d.key = stk_rng_u64(&rng);
    stk_status status =
        open_dealing(&d) ? STK_OK : STK_FAIL_MEMORY(err, "the division of the groups");
    if (status == STK_OK) {
        line_up(&d, seed);
        status = check_groups(&d, folds, err);
    }
    if (status == STK_OK) {
        for (size_t i = 0; i < dataset->train.count; i++) {
            bin_of[i] = -1;
        }
        for (size_t g = 0; g < d.dealt; g++) {
            deal(&d, &d.groups[g], bin_of);
        }
        fill_empty(&d, bin_of);
    }
    close_dealing(&d);
    return status;
}
