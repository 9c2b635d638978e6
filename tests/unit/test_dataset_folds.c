/*
 * test_dataset_folds.c - folds that a column gives and groups that stay together: what is read from
 * a table, and the properties that every division has.
 */
#include "test_dataset.h"

#include <stdint.h>

#include "base/mem.h"
#include "base/numbers/rng.h"

#define MOST 3000

static stk_sample samples[MOST];
static char names[MOST][16];
static const char *parts[MOST];
static int fold_of[MOST];

/* A data set by hand without samples: add() follows. */
static stk_dataset made(int classes, stk_division division) {
    static const char *const class_names[] = {"a", "b", "c", "d", "e", "f"};
    stk_error_clear(&error);
    warnings[0] = '\0';
    decisions[0] = '\0';
    return (stk_dataset){.root = "made",
                         .classes = class_names,
                         .class_count = classes,
                         .train = {.items = samples},
                         .division = division,
                         .part_column = "column",
                         .parts = parts};
}

static void add(stk_dataset *d, int label, int part) {
    REQUIRE(d->train.count < MOST);
    for (; d->part_count <= part; d->part_count++) {
        snprintf(names[d->part_count], sizeof names[0], "p%d", d->part_count);
        parts[d->part_count] = names[d->part_count];
    }
    samples[d->train.count++] = (stk_sample){.path = "p", .id = "i", .label = label, .part = part};
}

/* All samples of a part are in one place. */
static void check_together(const stk_dataset *d) {
    static int place[MOST];
    for (int p = 0; p < d->part_count; p++) {
        place[p] = INT_MIN;
    }
    for (size_t i = 0; i < d->train.count; i++) {
        int *at = &place[samples[i].part];
        CHECK(*at == INT_MIN || *at == fold_of[i]);
        *at = fold_of[i];
    }
}

static int in_fold(const stk_dataset *d, int fold, int label) {
    int n = 0;
    for (size_t i = 0; i < d->train.count; i++) {
        n += fold_of[i] == fold && (label < 0 || samples[i].label == label);
    }
    return n;
}

/* Every split is what the deal says, complete and disjoint. */
static void check_splits(const stk_dataset *d, double fraction, int folds, int there,
                         uint64_t seed) {
    for (int f = 0; f < there; f++) {
        stk_split split;
        REQUIRE_OK(stk_dataset_split(d, fraction, folds, f, seed, &split, &error), &error);
        CHECK_INT(split.train_count + split.val_count, d->train.count);
        size_t t = 0;
        size_t v = 0;
        for (size_t i = 0; i < d->train.count; i++) {
            bool val = v < split.val_count && split.val[v] == i;
            bool train = t < split.train_count && split.train[t] == i;
            CHECK(val != train);
            CHECK_INT(val, fold_of[i] == f);
            v += val;
            t += train;
        }
        stk_split_free(&split);
    }
}

/* Groups of random sizes and classes; class c is rarer than the one before. */
static stk_dataset random_groups(uint64_t seed, int groups, int largest, bool pure) {
    stk_dataset d = made(4, STK_DIVIDE_GROUPS);
    stk_rng rng = stk_rng_make(seed, STK_RNG_TEST, 0, 0);
    for (int g = 0; g < groups; g++) {
        int size = 1 + (int)stk_rng_below(&rng, (uint64_t)largest);
        int label = 0;
        for (int i = 0; i < size; i++) {
            if (i == 0 || !pure) {
                double x = stk_rng_uniform(&rng);
                label = x < 0.5 ? 0 : x < 0.75 ? 1 : x < 0.9 ? 2 : 3;
            }
            add(&d, label, g);
        }
    }
    return d;
}

static void groups_stay_together_and_classes_even(void) {
    for (uint64_t seed = 0; seed < 40; seed++) {
        int folds = 2 + (int)(seed % 5);
        int largest = 1 + (int)(seed % 7);
        stk_dataset d = random_groups(seed, 150, largest, seed % 2 == 0);
        REQUIRE_OK(stk_dataset_deal(&d, 0.2, folds, seed, fold_of, &error), &error);
        check_together(&d);
        check_splits(&d, 0.2, folds, folds, seed);
        for (int c = -1; c < 4; c++) {
            int total = 0;
            for (int f = 0; f < folds; f++) {
                total += in_fold(&d, f, c);
            }
            for (int f = 0; f < folds; f++) {
                /* No fold is off by more than the largest group, and one for what mixes. */
                CHECK_NEAR(in_fold(&d, f, c), (double)total / folds, largest + 1);
            }
            CHECK(c >= 0 || total == (int)d.train.count);
        }
    }
}

static void groups_stay_on_one_side(void) {
    static const double fractions[] = {0.1, 0.2, 0.5, 0.8};
    for (uint64_t seed = 0; seed < 20; seed++) {
        double fraction = fractions[seed % 4];
        stk_dataset d = random_groups(seed, 100, 5, seed % 2 == 0);
        REQUIRE_OK(stk_dataset_deal(&d, fraction, 1, seed, fold_of, &error), &error);
        check_together(&d);
        check_splits(&d, fraction, 1, 1, seed);
        CHECK_NEAR(in_fold(&d, 0, -1), fraction * (double)d.train.count, 6);
        for (int c = 0; c < 4; c++) {
            int all = in_fold(&d, 0, c) + in_fold(&d, -1, c);
            CHECK_NEAR(in_fold(&d, 0, c), fraction * all, 6);
        }
    }
}

static void single_pictures_are_groups_too(void) {
    stk_dataset d = made(3, STK_DIVIDE_GROUPS);
    for (int i = 0; i < 90; i++) {
        add(&d, i % 3 == 0 ? 0 : i % 3, i);
    }
    REQUIRE_OK(stk_dataset_deal(&d, 0.2, 5, 1, fold_of, &error), &error);
    for (int f = 0; f < 5; f++) {
        for (int c = 0; c < 3; c++) {
            CHECK_INT(in_fold(&d, f, c), 6);
        }
    }
}

static void seed_decides_between_equal_groups(void) {
    static int other[MOST];
    stk_dataset d = random_groups(3, 60, 1, true);
    size_t bytes = d.train.count * sizeof *fold_of;
    REQUIRE_OK(stk_dataset_deal(&d, 0.2, 3, 1, fold_of, &error), &error);
    REQUIRE_OK(stk_dataset_deal(&d, 0.2, 3, 1, other, &error), &error);
    CHECK(memcmp(fold_of, other, bytes) == 0);
    REQUIRE_OK(stk_dataset_deal(&d, 0.2, 3, 2, other, &error), &error);
    CHECK(memcmp(fold_of, other, bytes) != 0);
}

static void one_huge_group(void) {
    stk_dataset d = made(2, STK_DIVIDE_GROUPS);
    for (int i = 0; i < 500; i++) {
        add(&d, i % 2, 0);
    }
    for (int i = 0; i < 40; i++) {
        add(&d, i % 2, 1 + i / 4);
    }
    REQUIRE_OK(stk_dataset_deal(&d, 0.2, 5, 1, fold_of, &error), &error);
    int huge = fold_of[0];
    for (int f = 0; f < 5; f++) {
        int n = in_fold(&d, f, -1);
        CHECK(f == huge ? n == 500 : n == 8 || n == 12);
    }
    /* Alone with a small one it is too large to validate, and the small one has to. */
    d = made(2, STK_DIVIDE_GROUPS);
    for (int i = 0; i < 18; i++) {
        add(&d, i % 2, i < 10 ? 0 : 1);
    }
    REQUIRE_OK(stk_dataset_deal(&d, 0.2, 1, 1, fold_of, &error), &error);
    CHECK_INT(in_fold(&d, 0, -1), 8);
    CHECK_INT(fold_of[0], -1);
    REQUIRE_OK(stk_dataset_deal(&d, 0.9, 1, 1, fold_of, &error), &error);
    CHECK_INT(in_fold(&d, 0, -1), 10);
}

static void a_class_with_one_image_always_trains(void) {
    stk_dataset d = made(3, STK_DIVIDE_GROUPS);
    for (int i = 0; i < 40; i++) {
        add(&d, i % 2, i / 4);
    }
    add(&d, 2, 3); /* its group cannot be divided, so all of it trains */
    REQUIRE_OK(stk_dataset_deal(&d, 0.2, 3, 1, fold_of, &error), &error);
    check_together(&d);
    CHECK_INT(fold_of[40], -1);
    CHECK_INT(in_fold(&d, -1, -1), 5);

    d = made(3, STK_DIVIDE_FOLDS);
    for (int i = 0; i < 12; i++) {
        add(&d, i % 2, i / 4);
    }
    add(&d, 2, 1);
    add(&d, 0, -1);
    REQUIRE_OK(stk_dataset_deal(&d, 0.2, 3, 1, fold_of, &error), &error);
    for (int i = 0; i < 14; i++) {
        CHECK_INT(fold_of[i], i < 12 ? i / 4 : -1);
    }
    check_splits(&d, 0.2, 3, 3, 7);
    check_splits(&d, 0.2, 1, 3, 7); /* fewer folds are wanted: those there are stay as they are */
}

static void divisions_that_cannot_be(void) {
    stk_split split;
    stk_dataset d = made(2, STK_DIVIDE_GROUPS);
    for (int i = 0; i < 30; i++) {
        add(&d, i % 2, i / 10);
    }
    CHECK_INT(stk_dataset_deal(&d, 0.2, 5, 1, fold_of, &error), STK_ERR_DATA);
    CHECK_CONTAINS(error.message, "cannot make 5 folds of 3 groups");
    REQUIRE_OK(stk_dataset_deal(&d, 0.2, 3, 1, fold_of, NULL), &error);
    d.train.count = 10;
    stk_error_clear(&error);
    CHECK_INT(stk_dataset_deal(&d, 0.2, 1, 1, fold_of, &error), STK_ERR_DATA);
    CHECK_CONTAINS(error.message, "1 group in made cannot be divided");

    d = made(2, STK_DIVIDE_FOLDS);
    for (int i = 0; i < 12; i++) {
        add(&d, i % 2, i / 4);
    }
    stk_error_clear(&error);
    CHECK_INT(stk_dataset_split(&d, 0.2, 3, 3, 1, &split, &error), STK_ERR_USAGE);
    CHECK_CONTAINS(error.message, "fold 3 does not exist");
}

static void all_folds_are_looked_at(void) {
    stk_dataset d = made(3, STK_DIVIDE_FOLDS);
    for (int i = 0; i < 30; i++) {
        add(&d, i % 2, i / 10);
    }
    add(&d, 2, 2);
    add(&d, 2, 2);
    add(&d, 1, -1);
    REQUIRE_OK(stk_dataset_check_folds(&d, 0.2, 3, 1, &events, &error), &error);
    CHECK_CONTAINS(decisions, "3 folds as given: column column; 10 to 12 pictures each, 1 always");
    CHECK_CONTAINS(warnings, "2 of 3 folds do not validate some class (fold 1: c)\n");
    CHECK_CONTAINS(warnings, "1 of 3 folds do not train on some class (fold 3: c)\n");

    d = made(3, STK_DIVIDE_FOLDS); /* a fold of nothing but a class with one image */
    for (int i = 0; i < 20; i++) {
        add(&d, i % 2, i / 10);
    }
    add(&d, 2, 2);
    CHECK_INT(stk_dataset_check_folds(&d, 0.2, 3, 1, &events, &error), STK_ERR_DATA);
    CHECK_CONTAINS(error.message, "fold 3 of 3 has no pictures");

    d = made(2, STK_DIVIDE_GROUPS);
    for (int i = 0; i < 20; i++) {
        add(&d, 0, i / 2);
    }
    add(&d, 1, 10);
    add(&d, 1, 10);
    REQUIRE_OK(stk_dataset_check_folds(&d, 0.2, 1, 1, &events, &error), &error);
    CHECK_CONTAINS(decisions, "validation by groups: column column; 4 of 22 pictures validate");
    CHECK_CONTAINS(warnings, "1 class is trained on without being validated: b\n");

    d = made(2, STK_DIVIDE_CLASSES);
    for (int i = 0; i < 20; i++) {
        add(&d, i % 2, 0);
    }
    REQUIRE_OK(stk_dataset_check_folds(&d, 0.2, 4, 1, &events, &error), &error);
    CHECK_STR(warnings, "");
    CHECK_STR(decisions, "");
    samples[4].label = 2; /* now four folds have not one each of a class of two */
    samples[6].label = 2;
    d.class_count = 3;
    REQUIRE_OK(stk_dataset_check_folds(&d, 0.2, 4, 1, &events, &error), &error);
    CHECK_CONTAINS(warnings, "2 of 4 folds do not validate some class (fold ");
    CHECK_STR(decisions, "");
}

static void memory_runs_out(void) {
    stk_dataset d = random_groups(1, 30, 4, false);
    stk_status status = STK_ERR_MEMORY;
    for (int n = 0; n < 40 && status != STK_OK; n++) {
        stk_mem_fail_after(n);
        status = stk_dataset_check_folds(&d, 0.2, 3, 1, NULL, NULL);
        stk_mem_fail_after(-1);
        CHECK(status == STK_OK || status == STK_ERR_MEMORY);
    }
    CHECK_INT(status, STK_OK);
}

/* ---- what is read from a table ---- */

/* Eight pictures of two classes; the rows get what stands in `cells`, divided by blanks. */
static void table(const char *column, const char *cells) {
    char text[1000];
    int n = snprintf(text, sizeof text, "id,animal,%s\n", column);
    fresh();
    for (int i = 0; i < 8; i++) {
        char name[32];
        size_t length = strcspn(cells, " ");
        snprintf(name, sizeof name, "train/%d.jpg", i);
        put(name);
        n += snprintf(text + n, sizeof text - (size_t)n, "%d,%s,%.*s\n", i, i % 2 ? "cat" : "dog",
                      (int)length, cells);
        cells += length + (cells[length] == ' ');
    }
    put_text("train.csv", text);
}

static void values_in_order_are_folds(void) {
    table("k", "10 10 9 9 -1 -1 9 10");
    stk_dataset_options o = options();
    o.fold_column = "K"; /* case does not matter in names of columns */
    stk_dataset *d = open_with(&o);
    REQUIRE(d != NULL);
    CHECK_INT(d->division, STK_DIVIDE_FOLDS);
    CHECK_INT(d->part_count, 2);
    CHECK_STR(d->parts[0], "9");
    CHECK_STR(d->parts[1], "10");
    static const int want[] = {1, 1, 0, 0, -1, -1, 0, 1};
    for (size_t i = 0; i < 8; i++) {
        CHECK_INT(d->train.items[i].part, want[i]);
    }
    CHECK_STR(d->label_name, "animal"); /* what is neither id nor fold */
    stk_dataset_free(d);

    table("k", "b a b a b a Z Z");
    d = open_with(&o);
    REQUIRE(d != NULL);
    CHECK_INT(d->part_count, 3);
    CHECK_STR(d->parts[0], "Z");
    CHECK_INT(d->train.items[0].part, 2);
    stk_dataset_free(d);

    table("k", "-1 -1 x x x y y y");
    o.fold_column = NULL;
    o.group_column = "k";
    d = open_with(&o);
    REQUIRE(d != NULL);
    CHECK_INT(d->division, STK_DIVIDE_GROUPS);
    CHECK_INT(d->part_count, 3); /* as a group -1 is a name like others */
    stk_dataset_free(d);
}

static void tables_that_do_not_do(void) {
    stk_dataset_options o = options();
    o.fold_column = "k";
    table("k", "1 1  2 2 1 1 2");
    expect_failure(&o, STK_ERR_DATA);
    CHECK_CONTAINS(error.message, "line 4: column k is empty");
    table("fold", "1 1 2 2 1 1 2 2");
    expect_failure(&o, STK_ERR_USAGE);
    CHECK_CONTAINS(error.message, "--fold-column k");
    CHECK_CONTAINS(error.message, "its columns are id, animal, fold");
    table("k", "1 1 1 1 1 1 1 1");
    expect_failure(&o, STK_ERR_DATA);
    CHECK_CONTAINS(error.message, "there is one value only");
    table("k", "-1 -1 -1 -1 -1 -1 -1 -1");
    expect_failure(&o, STK_ERR_DATA);
    CHECK_CONTAINS(error.message, "there is no fold");
    o.group_column = "k";
    expect_failure(&o, STK_ERR_USAGE);
    CHECK_CONTAINS(error.message, "--fold-column k and --group-column k");
    o.group_column = NULL;
    o.val_per_class = 1;
    expect_failure(&o, STK_ERR_USAGE);
    CHECK_CONTAINS(error.message, "--val-per-class 1");
    o.val_per_class = 0;
    o.per_class = 2; /* leaves four pictures, and eight folds had one each */
    table("k", "1 2 3 4 5 6 7 8");
    expect_failure(&o, STK_ERR_DATA);
    CHECK_CONTAINS(error.message, "no picture is left in fold '");
}

static void class_folders_have_no_column(void) {
    stk_dataset_options o = options();
    fresh();
    put("cat/1.jpg");
    put("cat/2.jpg");
    put("dog/1.jpg");
    put("dog/2.jpg");
    o.group_column = "patient";
    expect_failure(&o, STK_ERR_USAGE);
    CHECK_CONTAINS(error.message, "--group-column patient");
    CHECK_CONTAINS(error.message, "has no table of labels");
    stk_dataset *d = NULL;
    stk_error_clear(&error);
    REQUIRE_OK(stk_dataset_open_images(&d, &o, NULL, &events, &error), &error);
    CHECK_INT(d->test.count, 4); /* pictures alone need no column */
    stk_dataset_free(d);
}

static const check_test tests[] = {
    TEST(groups_stay_together_and_classes_even),
    TEST(groups_stay_on_one_side),
    TEST(single_pictures_are_groups_too),
    TEST(seed_decides_between_equal_groups),
    TEST(one_huge_group),
    TEST(a_class_with_one_image_always_trains),
    TEST(divisions_that_cannot_be),
    TEST(all_folds_are_looked_at),
    TEST(memory_runs_out),
    TEST(values_in_order_are_folds),
    TEST(tables_that_do_not_do),
    TEST(class_folders_have_no_column),
};

CHECK_MAIN(tests)
