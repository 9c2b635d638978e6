/* test_dataset_labels.c - tables whose labels are no classes: numbers that measure, several labels.
 */
#include "test_dataset.h"

#include "base/str.h"

/* A table of `rows` pictures whose label is what `label` makes of the row's number. */
static void put_table(const char *header, int rows, void (*label)(stk_str *out, int row)) {
    stk_str csv = {0};
    fresh();
    stk_str_appendf(&csv, "%s\n", header);
    for (int i = 0; i < rows; i++) {
        char name[64];
        snprintf(name, sizeof name, "train/%d.jpg", i);
        put(name);
        stk_str_appendf(&csv, "%d,", i);
        label(&csv, i);
        stk_str_append(&csv, "\n");
    }
    put_text("train.csv", stk_str_text(&csv));
    stk_str_free(&csv);
}

static void opens_with(int classes, const char *warning) {
    stk_dataset_options o = options();
    o.rare_class = STK_RARE_TRAIN;
    stk_dataset *d = open_with(&o);
    REQUIRE(d != NULL);
    CHECK_INT(d->class_count, classes);
    if (warning == NULL) {
        CHECK_STR(warnings, "");
    } else {
        CHECK_CONTAINS(warnings, warning);
    }
    stk_dataset_free(d);
}

/* With --label-column what was refused is taken as classes, and told. */
static void opens_when_named(const char *column, int classes) {
    stk_dataset_options o = options();
    o.rare_class = STK_RARE_TRAIN;
    o.label_column = column;
    stk_dataset *d = open_with(&o);
    REQUIRE(d != NULL);
    CHECK_INT(d->class_count, classes);
    CHECK_CONTAINS(warnings, "not supported");
    stk_dataset_free(d);
}

static void an_age(stk_str *out, int row) {
    stk_str_appendf(out, "%d", 1 + row * 7 % 90);
}

static void a_price(stk_str *out, int row) {
    stk_str_appendf(out, "%d.%02d", row % 40, row * 7 % 100);
}

static void a_grade(stk_str *out, int row) {
    stk_str_appendf(out, "%d", row % 5);
}

static void half_a_grade(stk_str *out, int row) {
    stk_str_appendf(out, "%.1f", row % 4 / 2.0);
}

static void a_class_number(stk_str *out, int row) {
    stk_str_appendf(out, "%d", row % 60);
}

static void a_sparse_number(stk_str *out, int row) {
    stk_str_appendf(out, "%d", 3 * (row % 60));
}

static void numbers_that_measure(void) {
    put_table("id,age", 180, an_age);
    fails_with(STK_ERR_DATA, "train.csv holds 90 different whole numbers from 1 to 90 in 180 "
                             "rows");
    CHECK_CONTAINS(error.message, "column 'age' of ");
    CHECK_CONTAINS(error.message, "regression is not supported");
    CHECK_CONTAINS(error.message, "--label-column age");
    opens_when_named("age", 90);
    put_table("id,label", 200, a_price);
    fails_with(STK_ERR_DATA, "train.csv holds 200 different numbers from 0");
    CHECK_CONTAINS(error.message, "regression");
    opens_when_named("label", 200);
}

static void numbers_that_may_measure(void) {
    put_table("id,label", 180, a_sparse_number);
    opens_with(60, "60 different whole numbers from 0 to 177");
    CHECK_CONTAINS(warnings, "regression is not supported");
    put_table("id,Pawpularity", 180, an_age);
    opens_with(90, "regression is not supported");
    put_table("id,age", 60, a_grade); /* few: they may be groups */
    opens_with(5, "regression is not supported");
}

static void numbers_that_are_classes(void) {
    put_table("id_code,diagnosis", 60, a_grade);
    opens_with(5, NULL);
    put_table("id,label", 60, half_a_grade);
    opens_with(4, NULL);
    put_table("id,label", 180, a_class_number);
    opens_with(60, NULL);
    put_table("id,class_id", 180, a_sparse_number);
    opens_with(60, NULL);
}

static void a_disease(stk_str *out, int row) {
    static const char *const labels[] = {"scab",    "rust",      "healthy",
                                         "complex", "scab rust", "rust complex"};
    stk_str_append(out, labels[row % 6]);
}

static void some_numbers(stk_str *out, int row) {
    stk_str_appendf(out, "%d %d %d", row, row + 3, row * 5 % 17);
}

static void some_findings(stk_str *out, int row) {
    static const char *const labels[] = {"Mass", "Edema", "Mass|Edema"};
    stk_str_append(out, labels[row % 3]);
}

static void an_animal_and_its_weather(stk_str *out, int row) {
    stk_str_appendf(out, "%s %s", row % 2 ? "cat" : "dog", row / 2 % 2 ? "sunny" : "rainy");
}

static void a_dog(stk_str *out, int row) {
    static const char *const labels[] = {"golden retriever", "labrador retriever", "boxer",
                                         "great dane",       "border collie",      "rough collie"};
    stk_str_append(out, labels[row % 6]);
}

static void an_apple(stk_str *out, int row) {
    stk_str_appendf(out, "Apple Red %d", row % 4);
}

static void several_labels_in_a_cell(void) {
    /* Combinations with pictures enough are classes, and a line says so. */
    put_table("image,labels", 36, a_disease);
    opens_with(6, "'scab rust'");
    CHECK_CONTAINS(warnings, "column 'labels' of train.csv");
    CHECK_CONTAINS(warnings, "several labels per picture are not supported");
    CHECK_CONTAINS(warnings, "each of the 6 texts is a class of its own");
    put_table("id,label", 30, some_findings);
    opens_with(3, "'Mass|Edema'");
    put_table("id,label", 40, an_animal_and_its_weather);
    opens_with(4, "several labels per picture are not supported");
    /* As many combinations as pictures are nothing to train on. */
    put_table("id,attribute_ids", 40, some_numbers);
    fails_with(STK_ERR_DATA, "train.csv holds several labels in a cell");
    CHECK_CONTAINS(error.message, "'0 3 0'");
    CHECK_CONTAINS(error.message, "not supported");
    CHECK(strstr(error.message, "--rare-class") == NULL);
    opens_when_named("attribute_ids", 40);
}

static void texts_that_are_one_label(void) {
    put_table("id,breed", 36, a_dog);
    opens_with(6, NULL);
    put_table("id,label", 36, an_apple);
    opens_with(4, NULL);
}

static void one_of_four(stk_str *out, int row) {
    stk_str_appendf(out, "%d,%d,%d,%d", row % 4 == 0, row % 4 == 1, row % 4 == 2, row % 4 == 3);
}

static void some_of_three(stk_str *out, int row) {
    stk_str_appendf(out, "%d,%d,%d,p%d", row % 2, row % 3 == 0, row % 5 == 0, row % 7);
}

static void a_column_per_class(void) {
    put_table("image_id,healthy,multiple_diseases,rust,scab", 20, one_of_four);
    fails_with(STK_ERR_DATA, "4 columns (healthy, multiple_diseases, rust ...)");
    CHECK_CONTAINS(error.message, "one 1 in each row");
    CHECK_CONTAINS(error.message, "not supported");
    CHECK(strstr(error.message, "--label-column") == NULL);
    put_table("StudyInstanceUID,ETT,NGT,CVC,PatientID", 30, some_of_three);
    fails_with(STK_ERR_DATA, "3 columns (ETT, NGT, CVC)");
    CHECK_CONTAINS(error.message, "several labels per picture are not supported");
    CHECK_CONTAINS(error.message, "--label-column");
    stk_dataset_options o = options();
    o.label_column = "NGT";
    stk_dataset *d = open_with(&o);
    REQUIRE(d != NULL);
    CHECK_INT(d->class_count, 2);
    stk_dataset_free(d);
}

static void memory_runs_out(void) {
    put_table("image,labels", 36, a_disease);
    stk_dataset_options o = options();
    open_without_memory(&o);
}

static const check_test tests[] = {
    TEST(numbers_that_measure),     TEST(numbers_that_may_measure), TEST(numbers_that_are_classes),
    TEST(several_labels_in_a_cell), TEST(texts_that_are_one_label), TEST(a_column_per_class),
    TEST(memory_runs_out),
};

CHECK_MAIN(tests)
