/*
 * test_dataset_division.c - folders whose names say that they are a part of a data set, and sample
 * submissions whose rows are not there.
 */
#include "test_dataset.h"

static void parts_are_no_classes(void) {
    static const struct {
        const char *train;
        const char *val;
        const char *test;
    } cases[] = {
        {"train", "val2017", "test2019"},
        {"train_val2019", NULL, "test2019"},
        {"train2017", "val_2017", "test-2"},
        {"Training", "Validation", "Testing"},
        {"train_images", "valid_images", "Test Images"},
        {"TrainSet", "val-set", "testset"},
        {"training_data", "validation data", "test_data"},
        {"train", NULL, "TEST_2"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char name[128];
        fresh();
        put_cats_and_dogs(cases[i].train);
        if (cases[i].val != NULL) {
            snprintf(name, sizeof name, "%s/cat/v.jpg", cases[i].val);
            put(name);
        }
        snprintf(name, sizeof name, "%s/t.jpg", cases[i].test);
        put(name);
        stk_dataset *d = open_plain();
        REQUIRE(d != NULL);
        CHECK_INT(d->class_count, 2);
        CHECK_STR(d->classes[0], "cat");
        CHECK_INT(d->train.count, 6);
        CHECK_INT(d->val.count, cases[i].val != NULL ? 1 : 0);
        REQUIRE(d->test.count == 1);
        CHECK_STR(d->test.items[0].path, name);
        stk_dataset_free(d);
    }
}

static void usual_names_come_first(void) {
    fresh();
    put_cats_and_dogs("train");
    put_cats_and_dogs("train_2");
    put("test/a.jpg");
    put("test_2/b.jpg");
    stk_dataset *d = open_plain();
    REQUIRE(d != NULL);
    CHECK_INT(d->train.count, 6);
    REQUIRE(d->test.count == 1);
    CHECK_STR(d->test.items[0].path, "test/a.jpg");
    CHECK_STR(decisions, "");
    stk_dataset_free(d);
}

static void other_names_are_told(void) {
    fresh();
    put_cats_and_dogs("train");
    put("test2019/t.jpg");
    stk_dataset *d = open_plain();
    REQUIRE(d != NULL);
    CHECK_CONTAINS(decisions, "test2019");
    stk_dataset_free(d);
}

static void parts_that_could_be_either(void) {
    fresh();
    put_cats_and_dogs("train1");
    put_cats_and_dogs("train2");
    fails_with(STK_ERR_DATA, "train1, train2");
    CHECK_CONTAINS(error.message, "rename");
    fresh();
    put_cats_and_dogs("train");
    put("test1/a.jpg");
    put("test2/b.jpg");
    stk_dataset *d = open_plain();
    REQUIRE(d != NULL);
    CHECK_INT(d->test.count, 0);
    CHECK_CONTAINS(warnings, "test1, test2");
    stk_dataset_free(d);
    /* One part alone is no data set. */
    fresh();
    put("test2019/a.jpg");
    put("val2019/b.jpg");
    fails_with(STK_ERR_DATA, "no training set: test2019, val2019 are");
}

static void names_that_are_classes(void) {
    static const char *const names[] = {"valley", "contest",  "testudo", "train station",
                                        "values", "trainer",  "images",  "data 2019",
                                        "2019",   "protest_2"};
    fresh();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s/1.jpg", names[i]);
        put(name);
        snprintf(name, sizeof name, "%s/2.jpg", names[i]);
        put(name);
    }
    stk_dataset *d = open_plain();
    REQUIRE(d != NULL);
    CHECK_INT(d->class_count, sizeof names / sizeof *names);
    stk_dataset_free(d);
    /* Below the training set any name is a class. */
    fresh();
    put("train/test2/1.jpg");
    put("train/test2/2.jpg");
    put("train/val/1.jpg");
    put("train/val/2.jpg");
    d = open_plain();
    REQUIRE(d != NULL);
    CHECK_INT(d->class_count, 2);
    stk_dataset_free(d);
}

static void a_table_finds_its_parts(void) {
    fresh();
    put_text("train.csv", "id,label\n1,cat\n2,dog\n3,cat\n4,dog\n");
    for (char c = '1'; c <= '4'; c++) {
        char name[32];
        snprintf(name, sizeof name, "train2019/%c.jpg", c);
        put(name);
    }
    put("test2019/5.jpg");
    stk_dataset *d = open_plain();
    REQUIRE(d != NULL);
    CHECK_INT(d->train.count, 4);
    CHECK_STR(d->train.items[0].path, "train2019/1.jpg");
    REQUIRE(d->test.count == 1);
    CHECK_STR(d->test.items[0].path, "test2019/5.jpg");
    stk_dataset_free(d);
}

/* ---- the sample submission ---- */

static void rows_that_are_nowhere(void) {
    fresh();
    put_cats_and_dogs("train");
    put("test/a1.jpg");
    put("test/a2.jpg");
    put_text("sample_submission.csv", "id,predicted\n268243,0\n268244,0\n268245,0\n");
    fails_with(STK_ERR_DATA, "none of the 3 ids");
    CHECK_CONTAINS(error.message, "sample_submission.csv");
    CHECK_CONTAINS(error.message, "268243");
    CHECK_CONTAINS(error.message, "a1.jpg");
    CHECK_CONTAINS(error.message, "/test");
    CHECK_CONTAINS(error.message, "--sample-submission none");
    stk_dataset_options o = options();
    o.sample_submission = "none";
    stk_dataset *d = open_with(&o);
    REQUIRE(d != NULL);
    CHECK_INT(d->test.count, 2);
    CHECK(d->template_header == NULL);
    stk_dataset_free(d);

    fresh(); /* without any test pictures */
    put_cats_and_dogs("train");
    put_text("sample_submission.csv", "id,predicted\nx,0\ny,0\n");
    fails_with(STK_ERR_DATA, "none of the 2 ids");
}

static void the_folder_that_trained_two_splits(void) {
    fresh();
    put("train_val2019/Plants/400/a.jpg");
    put("train_val2019/Plants/401/b.jpg");
    put("train_val2019/Birds/1/c.jpg");
    put("train_val2019/Birds/2/d.jpg");
    put("test2019/e.jpg");
    put("test2019/f.jpg");
    put_text("kaggle_sample_submission.csv", "id,predicted\n268243,0\n268244,0\n");
    fails_with(STK_ERR_DATA, "kaggle_sample_submission.csv");
    CHECK_CONTAINS(error.message, "none of the 2 ids");
    CHECK_CONTAINS(error.message, "test2019");
}

static void sample_files_of_other_names(void) {
    static const char *const names[] = {
        "kaggle_sample_submission.csv", "SampleSubmission.csv",        "sample-submission.csv",
        "sample_submission_stage2.csv", "stage1_sampleSubmission.csv", "sample_sub.csv",
        "submission_sample.csv"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        fresh();
        put_cats_and_dogs("train");
        put("test/a.jpg");
        put("test/b.jpg");
        put_text(names[i], "Id,Predicted\nb,0\na,0\n");
        stk_dataset *d = open_plain();
        REQUIRE(d != NULL);
        CHECK(d->template_header != NULL);
        CHECK_STR(d->template_file, names[i]);
        REQUIRE(d->test.count == 2);
        CHECK_STR(d->test.items[0].id, "b");
        stk_dataset_free(d);
    }
}

static void a_part_of_the_data_is_no_sample_file(void) {
    fresh();
    put_cats_and_dogs("train");
    put("test/a.jpg");
    put_text("subsample.csv", "id,label\nx,0\n");
    stk_dataset *d = open_plain();
    REQUIRE(d != NULL);
    CHECK(d->template_header == NULL);
    stk_dataset_free(d);
}

static void sample_files_that_are_named(void) {
    fresh();
    put_cats_and_dogs("train");
    put("test/a.jpg");
    put_text("sample_submission_1.csv", "id,label\na,0\n");
    put_text("sample_submission_2.csv", "id,label,more\na,0,0\n");
    fails_with(STK_ERR_DATA, "sample_submission_1.csv, sample_submission_2.csv");
    CHECK_CONTAINS(error.message, "--sample-submission");
    stk_dataset_options o = options();
    o.sample_submission = "sample_submission_2.csv";
    stk_dataset *d = open_with(&o);
    REQUIRE(d != NULL);
    CHECK_INT(d->template_columns, 3);
    stk_dataset_free(d);
    o.sample_submission = "sub.csv";
    expect_failure(&o, STK_ERR_USAGE);
    CHECK_CONTAINS(error.message, "--sample-submission sub.csv");
    put_text("sample_submission.csv", "id,label\na,0\n"); /* the usual name comes first */
    d = open_plain();
    REQUIRE(d != NULL);
    CHECK_STR(d->template_file, "sample_submission.csv");
    stk_dataset_free(d);
}

static void a_packed_sample_file(void) {
    fresh();
    put_cats_and_dogs("train");
    put("test/a.jpg");
    put("sample_submission.csv.zip");
    fails_with(STK_ERR_DATA, "sample_submission.csv.zip");
    CHECK_CONTAINS(error.message, "unpack");
    put_text("sample_submission.csv", "id,label\na,0\n");
    stk_dataset *d = open_plain();
    REQUIRE(d != NULL);
    CHECK_STR(d->template_file, "sample_submission.csv");
    stk_dataset_free(d);
}

static const check_test tests[] = {
    TEST(parts_are_no_classes),        TEST(usual_names_come_first),
    TEST(other_names_are_told),        TEST(parts_that_could_be_either),
    TEST(names_that_are_classes),      TEST(a_table_finds_its_parts),
    TEST(rows_that_are_nowhere),       TEST(the_folder_that_trained_two_splits),
    TEST(sample_files_of_other_names), TEST(a_part_of_the_data_is_no_sample_file),
    TEST(sample_files_that_are_named), TEST(a_packed_sample_file),
};

CHECK_MAIN(tests)
