/* test_dataset_split.c - dividing samples; the data sets are made by hand. Also the option table.
 */
#include "check.h"

#include <stdint.h>

#include "base/error.h"
#include "base/mem.h"
#include "dataset/dataset.h"

#define MOST 2000

static stk_sample samples[MOST];
static stk_error error;

/* A data set with so many samples of each class, the classes interleaved where they last. */
static stk_dataset make(const int *counts, int classes) {
    stk_dataset d = {.root = "made", .class_count = classes};
    bool more = true;
    for (int round = 0; more; round++) {
        more = false;
        for (int c = 0; c < classes; c++) {
            if (round < counts[c]) {
                samples[d.train.count++] = (stk_sample){.path = "p", .id = "i", .label = c};
                more = true;
            }
        }
    }
    d.train.items = samples;
    stk_error_clear(&error);
    return d;
}

static int count_label(const size_t *list, size_t count, int label) {
    int n = 0;
    for (size_t i = 0; i < count; i++) {
        n += samples[list[i]].label == label;
    }
    return n;
}

/* Both lists sorted, without repeats, and together everything. */
static void check_partition(const stk_dataset *d, const stk_split *split) {
    CHECK_INT(split->train_count + split->val_count, d->train.count);
    size_t t = 0;
    size_t v = 0;
    for (size_t i = 0; i < d->train.count; i++) {
        if (t < split->train_count && split->train[t] == i) {
            t++;
        } else if (v < split->val_count && split->val[v] == i) {
            v++;
        } else {
            CHECK_FAIL("sample %zu is in no list or out of order", i);
            return;
        }
    }
}

static void fraction_of_every_class(void) {
    static const int counts[] = {100, 50, 10, 3, 2, 1, 7, 7, 7, 7};
    stk_dataset d = make(counts, 10);
    stk_split split;
    int sevens = 0;
    REQUIRE_OK(stk_dataset_split(&d, 0.2, 1, 0, 7, &split, &error), &error);
    check_partition(&d, &split);
    for (int c = 0; c < 10; c++) {
        int n = count_label(split.val, split.val_count, c);
        if (counts[c] == 1) {
            CHECK_INT(n, 0);
        } else {
            CHECK(n >= 1 && n < counts[c]);
            CHECK(n >= (int)floor(counts[c] * 0.2) && n <= (int)ceil(counts[c] * 0.2));
        }
        sevens += c >= 6 ? n : 0;
    }
    CHECK_INT(count_label(split.val, split.val_count, 0), 20);
    CHECK_INT(count_label(split.val, split.val_count, 1), 10);
    /* Rounding is handed on: each seven alone would round down to 1, which is 14 %. */
    CHECK(sevens >= 5 && sevens <= 6);
    stk_split_free(&split);
    CHECK(split.train == NULL);
}

static void both_sides_get_something(void) {
    static const int pair[] = {2, 2};
    stk_dataset d = make(pair, 2);
    static const double fractions[] = {0.9, 0.01};
    for (int i = 0; i < 2; i++) {
        stk_split split;
        REQUIRE_OK(stk_dataset_split(&d, fractions[i], 0, 0, 7, &split, &error), &error);
        check_partition(&d, &split);
        CHECK_INT(split.val_count, 2);
        CHECK_INT(count_label(split.train, split.train_count, 0), 1);
        stk_split_free(&split);
    }
}

/* One of three from each of 101 classes would be a third; a tenth is 30. */
static void many_small_classes_take_turns(void) {
    int counts[102];
    stk_split split;
    for (int c = 0; c < 101; c++) {
        counts[c] = 3;
    }
    counts[101] = 1;
    stk_dataset d = make(counts, 102);
    REQUIRE_OK(stk_dataset_split(&d, 0.1, 1, 0, 7, &split, &error), &error);
    check_partition(&d, &split);
    CHECK_INT(split.val_count, 30);
    for (int c = 0; c < 102; c++) {
        CHECK(count_label(split.val, split.val_count, c) <= 1);
    }
    CHECK_INT(count_label(split.val, split.val_count, 101), 0);
    stk_split_free(&split);
    REQUIRE_OK(stk_dataset_split(&d, 0.25, 1, 0, 7, &split, &error), &error);
    CHECK_INT(split.val_count, 101); /* that is not much more than 76 */
    stk_split_free(&split);
    d = make(counts, 90); /* 27: too few to judge by */
    REQUIRE_OK(stk_dataset_split(&d, 0.1, 1, 0, 7, &split, &error), &error);
    CHECK_INT(split.val_count, 90);
    stk_split_free(&split);
}

static void seed_decides(void) {
    static const int counts[] = {40, 40};
    stk_dataset d = make(counts, 2);
    stk_split a;
    stk_split b;
    stk_split c;
    REQUIRE_OK(stk_dataset_split(&d, 0.25, 1, 0, 1, &a, &error), &error);
    REQUIRE_OK(stk_dataset_split(&d, 0.25, 1, 0, 1, &b, &error), &error);
    REQUIRE_OK(stk_dataset_split(&d, 0.25, 1, 0, 2, &c, &error), &error);
    CHECK_INT(a.val_count, 20);
    CHECK(memcmp(a.val, b.val, a.val_count * sizeof *a.val) == 0);
    CHECK(memcmp(a.val, c.val, a.val_count * sizeof *a.val) != 0);
    stk_split_free(&a);
    stk_split_free(&b);
    stk_split_free(&c);
}

static void folds_are_even(void) {
    static const int counts[] = {100, 33, 7, 2, 1, 13};
    enum { FOLDS = 5 };
    static int seen[MOST];
    stk_dataset d = make(counts, 6);
    size_t least = SIZE_MAX;
    size_t most = 0;
    memset(seen, 0, sizeof seen);
    for (int f = 0; f < FOLDS; f++) {
        stk_split split;
        REQUIRE_OK(stk_dataset_split(&d, 0.2, FOLDS, f, 3, &split, &error), &error);
        check_partition(&d, &split);
        for (size_t i = 0; i < split.val_count; i++) {
            seen[split.val[i]]++;
        }
        for (int c = 0; c < 6; c++) {
            int n = count_label(split.val, split.val_count, c);
            int low = counts[c] / FOLDS;
            CHECK(n == low || (counts[c] > 1 && counts[c] % FOLDS != 0 && n == low + 1));
        }
        least = split.val_count < least ? split.val_count : least;
        most = split.val_count > most ? split.val_count : most;
        stk_split_free(&split);
    }
    CHECK(most - least <= 1);
    /* Everything validates once, but for the class with one image, which always trains. */
    for (size_t i = 0; i < d.train.count; i++) {
        CHECK_INT(seen[i], samples[i].label == 4 ? 0 : 1);
    }
}

static void given_validation_set_stays_apart(void) {
    static const int counts[] = {5, 5};
    stk_dataset d = make(counts, 2);
    stk_sample given = {.path = "v", .id = "v", .label = 0};
    stk_split split;
    d.val = (stk_sample_list){&given, 1};
    REQUIRE_OK(stk_dataset_split(&d, 0.2, 1, 0, 1, &split, &error), &error);
    CHECK_INT(split.train_count, 10);
    CHECK_INT(split.val_count, 0);
    stk_split_free(&split);
    REQUIRE_OK(stk_dataset_split(&d, 0.2, 2, 0, 1, &split, &error), &error);
    CHECK_INT(split.val_count, 5);
    stk_split_free(&split);
}

static void divisions_that_cannot_be(void) {
    static const int counts[] = {2, 2};
    static const int ones[] = {1, 1};
    stk_split split;
    stk_dataset d = make(counts, 2);
    CHECK_INT(stk_dataset_split(&d, 0.2, 5, 0, 1, &split, &error), STK_ERR_DATA);
    CHECK_CONTAINS(error.message, "5 folds of 4 images");
    CHECK(split.train == NULL && split.val == NULL);
    CHECK_INT(stk_dataset_split(&d, 0.2, 2, 2, 1, &split, NULL), STK_ERR_USAGE);
    CHECK_INT(stk_dataset_split(&d, 0.2, 2, -1, 1, &split, NULL), STK_ERR_USAGE);
    CHECK_INT(stk_dataset_split(&d, NAN, 1, 0, 1, &split, NULL), STK_ERR_USAGE);
    stk_error_clear(&error);
    CHECK_INT(stk_dataset_split(&d, 1.0, 1, 0, 1, &split, &error), STK_ERR_USAGE);
    CHECK_CONTAINS(error.message, "--val-fraction");
    d = make(ones, 2);
    CHECK_INT(stk_dataset_split(&d, 0.2, 1, 0, 1, &split, &error), STK_ERR_DATA);
    CHECK_CONTAINS(error.message, "left to validate");
    CHECK_CONTAINS(error.message, "--val-fraction 0");
    CHECK(split.train == NULL && split.val == NULL);
}

static void memory_runs_out(void) {
    static const int counts[] = {20, 20};
    stk_dataset d = make(counts, 2);
    stk_status status = STK_ERR_MEMORY;
    for (int n = 0; n < 20 && status != STK_OK; n++) {
        stk_split split;
        stk_mem_fail_after(n);
        status = stk_dataset_split(&d, 0.2, 1, 0, 1, &split, NULL);
        stk_mem_fail_after(-1);
        CHECK(status == STK_OK || (status == STK_ERR_MEMORY && split.train == NULL));
        stk_split_free(&split);
    }
    CHECK_INT(status, STK_OK);
}

static void priors_are_shares(void) {
    static const int counts[] = {6, 3, 1};
    stk_dataset d = make(counts, 3);
    double priors[3];
    stk_dataset_priors(&d, priors);
    CHECK_NEAR(priors[0], 0.6, 1e-12);
    CHECK_NEAR(priors[1], 0.3, 1e-12);
    CHECK_NEAR(priors[2], 0.1, 1e-12);
    d.train.count = 0;
    stk_dataset_priors(&d, priors);
    CHECK_NEAR(priors[0], 1.0 / 3, 1e-12);
}

static void options_are_described(void) {
    const stk_option_table *table = &stk_dataset_option_table;
    CHECK_STR(table->group, "Data");
    CHECK_INT(table->size, sizeof(stk_dataset_options));
    REQUIRE(table->count == 17);
    for (size_t i = 0; i < table->count; i++) {
        const stk_option *option = &table->options[i];
        REQUIRE(option->name != NULL && option->help != NULL);
        CHECK(option->help[strlen(option->help) - 1] != '.');
        CHECK(option->offset < table->size);
        CHECK((option->type == STK_OPTION_CHOICE) == (option->choices != NULL));
    }
    CHECK_STR(table->options[0].name, "data");
    CHECK_STR(table->options[0].aliases, "data_root");
}

static const check_test tests[] = {
    TEST(fraction_of_every_class),  TEST(many_small_classes_take_turns),
    TEST(both_sides_get_something), TEST(seed_decides),
    TEST(folds_are_even),           TEST(given_validation_set_stays_apart),
    TEST(divisions_that_cannot_be), TEST(memory_runs_out),
    TEST(priors_are_shares),        TEST(options_are_described),
};

CHECK_MAIN(tests)
