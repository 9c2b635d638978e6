/* test_dataset_subset.c - which classes and pictures a subset has. */
#include "test_dataset.h"

#include "base/mem.h"

#define CLASSES 8
#define PICTURES 12

static const char *const names[CLASSES] = {"ant", "bee", "cat", "dog", "elk", "fox", "gnu", "hen"};

/* CLASSES classes of PICTURES pictures below a folder ("train/" or ""). */
static void put_classes(const char *folder, int pictures) {
    char name[128];
    for (int c = 0; c < CLASSES; c++) {
        for (int i = 0; i < pictures; i++) {
            snprintf(name, sizeof name, "%s%s/%02d.jpg", folder, names[c], i);
            put(name);
        }
    }
}

/* The same as a table; class c has the pictures c00, c01 ... */
static void put_table(void) {
    char text[8192] = "id,label\n";
    char name[64];
    for (int i = 0; i < CLASSES * PICTURES; i++) {
        size_t length = strlen(text);
        snprintf(text + length, sizeof text - length, "p%03d,%s\n", i, names[i % CLASSES]);
        snprintf(name, sizeof name, "train/p%03d.jpg", i);
        put(name);
    }
    put_text("train.csv", text);
}

static stk_dataset_options subset(int64_t classes, int64_t per_class, int64_t val_per_class) {
    stk_dataset_options o = options();
    o.classes = classes;
    o.per_class = per_class;
    o.val_per_class = val_per_class;
    o.subset_seed = 42;
    return o;
}

static int count_label(const stk_sample_list *list, int label) {
    int count = 0;
    for (size_t i = 0; i < list->count; i++) {
        count += list->items[i].label == label;
    }
    return count;
}

/* "cat/03.jpg" of "train/cat/03.jpg": what stays when the folder in front goes. */
static const char *without_train(const char *id) {
    return strncmp(id, "train/", 6) == 0 ? id + 6 : id;
}

static bool same_lists(const stk_sample_list *a, const stk_sample_list *b) {
    bool same = a->count == b->count;
    for (size_t i = 0; same && i < a->count; i++) {
        same = strcmp(without_train(a->items[i].id), without_train(b->items[i].id)) == 0 &&
               a->items[i].label == b->items[i].label;
    }
    return same;
}

static bool same_sets(const stk_dataset *a, const stk_dataset *b) {
    bool same = a->class_count == b->class_count;
    for (int c = 0; same && c < a->class_count; c++) {
        same = strcmp(a->classes[c], b->classes[c]) == 0;
    }
    return same && same_lists(&a->train, &b->train) && same_lists(&a->val, &b->val);
}

static void all_is_the_default(void) {
    fresh();
    put_classes("", PICTURES);
    stk_dataset *d = open_plain();
    REQUIRE(d != NULL);
    CHECK_INT(d->class_count, CLASSES);
    CHECK_INT(d->train.count, CLASSES * PICTURES);
    CHECK_STR(decisions, "");
    CHECK_STR(warnings, "");
    stk_dataset_free(d);
}

static void classes_and_pictures_are_chosen(void) {
    fresh();
    put_classes("train/", PICTURES);
    put("test/1.jpg");
    put("test/2.jpg");
    stk_dataset_options o = subset(3, 5, 0);
    stk_dataset *d = open_with(&o);
    REQUIRE(d != NULL && d->class_count == 3);
    CHECK_STR(decisions, "subset: 3 of 8 classes, 5 training pictures each, seed 42");
    CHECK_STR(warnings, "");
    CHECK_INT(d->train.count, 15);
    CHECK_INT(d->val.count, 0);
    CHECK_INT(d->test.count, 2);
    for (int c = 0; c < 3; c++) {
        CHECK(c == 0 || strcmp(d->classes[c - 1], d->classes[c]) < 0);
        CHECK_INT(count_label(&d->train, c), 5);
    }
    for (size_t i = 0; i < d->train.count; i++) {
        const stk_sample *sample = &d->train.items[i];
        CHECK_CONTAINS(sample->path, d->classes[sample->label]);
        CHECK(i == 0 || strcmp(d->train.items[i - 1].path, sample->path) < 0);
    }
    stk_dataset_free(d);
}

/* The choice is written down: it must be the same on every machine and in every version. */
static void the_choice_never_changes(void) {
    fresh();
    put_classes("", PICTURES);
    stk_dataset_options o = subset(2, 2, 1);
    stk_dataset *d = open_with(&o);
    REQUIRE(d != NULL && d->class_count == 2 && d->train.count == 4 && d->val.count == 2);
    CHECK_STR(d->classes[0], "ant");
    CHECK_STR(d->classes[1], "hen");
    CHECK_STR(d->train.items[0].path, "ant/01.jpg");
    CHECK_STR(d->train.items[1].path, "ant/03.jpg");
    CHECK_STR(d->val.items[0].path, "ant/11.jpg");
    stk_dataset_free(d);
}

static void the_same_flags_choose_the_same(void) {
    fresh();
    put_classes("", PICTURES);
    stk_dataset_options o = subset(4, 6, 2);
    stk_dataset *first = open_with(&o);
    stk_dataset *again = open_with(&o);
    o.subset_seed = 43;
    stk_dataset *other = open_with(&o);
    REQUIRE(first != NULL && again != NULL && other != NULL);
    CHECK(same_sets(first, again));
    CHECK(!same_sets(first, other));
    stk_dataset_free(first);
    stk_dataset_free(again);
    stk_dataset_free(other);
}

static void other_classes_do_not_matter(void) {
    fresh();
    put_classes("", PICTURES);
    stk_dataset_options o = subset(0, 6, 2);
    stk_dataset *all = open_with(&o);
    o = subset(3, 6, 2);
    stk_dataset *some = open_with(&o);
    REQUIRE(all != NULL && some != NULL);
    size_t found = 0;
    for (size_t i = 0; i < some->train.count; i++) {
        for (size_t k = 0; k < all->train.count; k++) {
            found += strcmp(some->train.items[i].path, all->train.items[k].path) == 0;
        }
    }
    CHECK_INT(found, some->train.count);
    stk_dataset_free(all);
    stk_dataset_free(some);
}

static void the_folder_in_front_does_not_matter(void) {
    stk_dataset_options o = subset(4, 6, 2);
    fresh();
    put_classes("", PICTURES);
    stk_dataset *plain = open_with(&o);
    fresh();
    put_classes("train/", PICTURES);
    o.data = root;
    stk_dataset *deeper = open_with(&o);
    REQUIRE(plain != NULL && deeper != NULL);
    CHECK(same_sets(plain, deeper));
    stk_dataset_free(plain);
    stk_dataset_free(deeper);
}

/* Copies what a subset has into a folder of its own, with its validation set beside it. */
static void a_subset_of_the_subset_is_all_of_it(void) {
    char name[128];
    stk_dataset_options o = subset(4, 6, 2);
    fresh();
    put_classes("", PICTURES);
    stk_dataset *first = open_with(&o);
    REQUIRE(first != NULL);
    fresh();
    for (size_t i = 0; i < first->train.count; i++) {
        snprintf(name, sizeof name, "train/%s", first->train.items[i].path);
        put(name);
    }
    for (size_t i = 0; i < first->val.count; i++) {
        snprintf(name, sizeof name, "val/%s", first->val.items[i].path);
        put(name);
    }
    o.data = root;
    stk_dataset *again = open_with(&o);
    REQUIRE(again != NULL);
    CHECK_INT(again->class_count, 4);
    CHECK(same_lists(&first->train, &again->train));
    REQUIRE(again->val.count == first->val.count);
    for (size_t i = 0; i < first->val.count; i++) {
        CHECK_STR(again->val.items[i].path + 4, first->val.items[i].path);
    }
    CHECK_STR(warnings, "");
    stk_dataset_free(first);
    stk_dataset_free(again);
}

static void validation_pictures_are_set_apart(void) {
    fresh();
    put_classes("", PICTURES);
    stk_dataset_options o = subset(0, 0, 3);
    stk_dataset *d = open_with(&o);
    REQUIRE(d != NULL);
    CHECK_STR(decisions, "subset: all 8 classes, 3 validation pictures each, seed 42");
    CHECK_INT(d->train.count, CLASSES * (PICTURES - 3));
    CHECK_INT(d->val.count, CLASSES * 3);
    for (int c = 0; c < CLASSES; c++) {
        CHECK_INT(count_label(&d->val, c), 3);
    }
    for (size_t i = 0; i < d->val.count; i++) {
        for (size_t k = 0; k < d->train.count; k++) {
            CHECK(strcmp(d->val.items[i].path, d->train.items[k].path) != 0);
        }
    }
    stk_split split;
    REQUIRE_OK(stk_dataset_split(d, 0.2, 1, 0, 0, &split, &error), &error);
    CHECK_INT(split.train_count, d->train.count);
    stk_split_free(&split);
    stk_dataset_free(d);
}

/* Which pictures validate does not depend on how many train. */
static void validation_comes_first(void) {
    fresh();
    put_classes("", PICTURES);
    stk_dataset_options o = subset(0, 2, 3);
    stk_dataset *few = open_with(&o);
    o = subset(0, 9, 3);
    stk_dataset *many = open_with(&o);
    REQUIRE(few != NULL && many != NULL);
    CHECK(same_lists(&few->val, &many->val));
    CHECK_INT(few->train.count, CLASSES * 2);
    CHECK_INT(many->train.count, CLASSES * 9);
    stk_dataset_free(few);
    stk_dataset_free(many);
}

static void a_given_validation_set_is_chosen_from(void) {
    char name[64];
    fresh();
    put_classes("train/", PICTURES);
    for (int c = 0; c < CLASSES; c++) {
        for (int i = 0; i < 5; i++) {
            snprintf(name, sizeof name, "val/%s/v%d.jpg", names[c], i);
            put(name);
        }
    }
    stk_dataset_options o = subset(5, 4, 2);
    stk_dataset *d = open_with(&o);
    REQUIRE(d != NULL);
    CHECK_INT(d->train.count, 20);
    CHECK_INT(d->val.count, 10);
    for (size_t i = 0; i < d->val.count; i++) {
        CHECK(strncmp(d->val.items[i].path, "val/", 4) == 0);
        CHECK_CONTAINS(d->val.items[i].path, d->classes[d->val.items[i].label]);
    }
    CHECK_STR(decisions, "subset: 5 of 8 classes, 4 + 2 pictures each, seed 42");
    stk_dataset_free(d);
}

static void tables_have_subsets_too(void) {
    fresh();
    put_table();
    put_text("sample_submission.csv", "id,label\nt1,x\n");
    put("test/t1.jpg");
    stk_dataset_options o = subset(3, 4, 2);
    stk_dataset *d = open_with(&o);
    REQUIRE(d != NULL);
    CHECK_INT(d->layout, STK_LAYOUT_KAGGLE);
    CHECK_INT(d->class_count, 3);
    CHECK_INT(d->train.count, 12);
    CHECK_INT(d->val.count, 6);
    CHECK_INT(d->test.count, 1);
    for (size_t i = 1; i < d->train.count; i++) {
        CHECK(strcmp(d->train.items[i - 1].id, d->train.items[i].id) < 0);
    }
    stk_dataset_free(d);
}

static void test_labels_of_other_classes_go(void) {
    char name[64];
    fresh();
    put_classes("train/", PICTURES);
    for (int c = 0; c < CLASSES; c++) {
        snprintf(name, sizeof name, "test/%s/t%d.jpg", names[c], c);
        put(name);
    }
    stk_dataset_options o = subset(3, 0, 0);
    stk_dataset *d = open_with(&o);
    REQUIRE(d != NULL && d->test.count == CLASSES);
    int known = 0;
    for (size_t i = 0; i < d->test.count; i++) {
        int label = d->test.items[i].label;
        known += label >= 0;
        CHECK(label < 3);
        CHECK(label < 0 || strstr(d->test.items[i].path, d->classes[label]) != NULL);
    }
    CHECK_INT(known, 3);
    stk_dataset_free(d);
}

static void fewer_than_asked_for_is_told(void) {
    fresh();
    put_classes("", PICTURES);
    put("ant/extra.jpg");
    stk_dataset_options o = subset(100, 13, 0);
    stk_dataset *d = open_with(&o);
    REQUIRE(d != NULL);
    CHECK_INT(d->class_count, CLASSES);
    CHECK_INT(d->train.count, CLASSES * PICTURES + 1);
    CHECK_CONTAINS(warnings, "--classes 100: there are only 8");
    CHECK_CONTAINS(warnings, "7 of 8 classes have fewer than 13 training pictures (bee, cat, dog "
                             "...; bee has the fewest, 12)");
    stk_dataset_free(d);

    fresh();
    put_classes("", 3);
    o = subset(0, 0, 10);
    d = open_with(&o);
    REQUIRE(d != NULL);
    /* Half of them, rounded down, may validate. */
    CHECK_INT(d->val.count, CLASSES);
    CHECK_INT(d->train.count, CLASSES * 2);
    CHECK_CONTAINS(warnings, "8 of 8 classes have fewer than 10 validation pictures");
    stk_dataset_free(d);

    fresh();
    put_classes("", 6);
    o = subset(0, 1, 10);
    d = open_with(&o);
    REQUIRE(d != NULL);
    /* Training asks for one, so all others may validate. */
    CHECK_INT(d->val.count, CLASSES * 5);
    CHECK_INT(d->train.count, CLASSES);
    stk_dataset_free(d);
}

static void rare_classes(void) {
    fresh();
    put_classes("", PICTURES);
    put("yak/only.jpg");
    put("zebra/only.jpg");
    stk_dataset_options o = subset(9, 5, 0);
    expect_failure(&o, STK_ERR_DATA);
    CHECK_CONTAINS(error.message, "one image");
    o.rare_class = STK_RARE_DROP;
    stk_dataset *d = open_with(&o);
    REQUIRE(d != NULL);
    CHECK_INT(d->class_count, CLASSES); /* those with one image were no candidates */
    CHECK_STR(d->classes[CLASSES - 1], "hen");
    stk_dataset_free(d);
    o.rare_class = STK_RARE_TRAIN;
    o.classes = 0;
    o.val_per_class = 2;
    d = open_with(&o);
    REQUIRE(d != NULL);
    CHECK_INT(d->class_count, CLASSES + 2);
    CHECK_INT(count_label(&d->train, CLASSES), 1);
    CHECK_INT(count_label(&d->val, CLASSES), 0);
    stk_dataset_free(d);
}

static void requests_that_cannot_be(void) {
    fresh();
    put_classes("", PICTURES);
    stk_dataset_options o = subset(1, 0, 0);
    expect_failure(&o, STK_ERR_USAGE);
    CHECK_CONTAINS(error.message, "--classes 1");
    o = subset(0, 1, 0);
    expect_failure(&o, STK_ERR_USAGE);
    CHECK_CONTAINS(error.message, "--val-per-class");
}

static void memory_runs_out(void) {
    fresh();
    put_classes("", 4);
    stk_dataset_options o = subset(3, 2, 1);
    int failures = 0;
    for (int64_t n = 0; n < 4000; n++) {
        stk_dataset *d = NULL;
        stk_error_clear(&error);
        stk_mem_fail_after(n);
        stk_status status = stk_dataset_open(&d, &o, NULL, NULL, &error);
        stk_mem_fail_after(-1);
        if (status == STK_OK) {
            CHECK_INT(d->train.count, 6);
            stk_dataset_free(d);
            break;
        }
        failures++;
        CHECK(d == NULL);
    }
    CHECK(failures > 20);
}

static const check_test tests[] = {
    TEST(all_is_the_default),
    TEST(classes_and_pictures_are_chosen),
    TEST(the_choice_never_changes),
    TEST(the_same_flags_choose_the_same),
    TEST(other_classes_do_not_matter),
    TEST(the_folder_in_front_does_not_matter),
    TEST(a_subset_of_the_subset_is_all_of_it),
    TEST(validation_pictures_are_set_apart),
    TEST(validation_comes_first),
    TEST(a_given_validation_set_is_chosen_from),
    TEST(tables_have_subsets_too),
    TEST(test_labels_of_other_classes_go),
    TEST(fewer_than_asked_for_is_told),
    TEST(rare_classes),
    TEST(requests_that_cannot_be),
    TEST(memory_runs_out),
};

CHECK_MAIN(tests)
