/* test_dataset_cells.c - how labels and the answers of a sample are written, and what that tells.
 */
#include "test_dataset.h"

#include <math.h>

#include "base/str.h"

/* A table of so many pictures, whose further cells are those of `cells`, in turn. */
static void put_rows(const char *header, const char *const *cells, int rows) {
    stk_str csv = {0};
    int count = 0;
    while (cells[count] != NULL) {
        count++;
    }
    fresh();
    stk_str_appendf(&csv, "%s\n", header);
    for (int i = 0; i < rows; i++) {
        char name[64];
        snprintf(name, sizeof name, "train/a%d.jpg", i);
        put(name);
        stk_str_appendf(&csv, "a%d.jpg,%s\n", i, cells[i % count]);
    }
    put_text("train.csv", stk_str_text(&csv));
    stk_str_free(&csv);
    put("test/t0.jpg");
    put("test/t1.jpg");
}

static void put_sample(const char *header, const char *answer) {
    char text[400];
    snprintf(text, sizeof text, "%s\nt0.jpg,%s\nt1.jpg,%s\n", header, answer, answer);
    put_text("sample_submission.csv", text);
}

static stk_dataset *opens_as(stk_task task, const char *reason) {
    stk_dataset_options o = options();
    o.rare_class = STK_RARE_TRAIN;
    o.mismatch = STK_MISMATCH_AUTO;
    stk_dataset *d = open_with(&o);
    if (d != NULL) {
        CHECK_STR(stk_task_name(d->task), stk_task_name(task));
        CHECK_CONTAINS(d->reason, reason);
    }
    return d;
}

static const char *const lists[] = {"\"['red', 'x|y']\"", "['green']", "[]", "['red']", NULL};
static const char *const json_lists[] = {"\"[\"\"red\"\", \"\"blue\"\"]\"", "\"[\"\"green\"\"]\"",
                                         NULL};

static void lists_with_brackets(void) {
    put_rows("id,label", lists, 24);
    put_sample("id,label", "['red']");
    stk_dataset *d = opens_as(STK_TASK_MULTILABEL, "cells of label are lists of labels, such as [");
    REQUIRE(d != NULL && d->class_count == 3);
    CHECK_STR(d->classes[0], "green");
    CHECK_STR(d->classes[2], "x|y");
    CHECK(d->answer.kind == STK_ANSWER_LIST && d->answer.bracket == '[');
    CHECK(d->answer.quote == '\'' && d->answer.divider == ',');
    float row[3];
    stk_targets_row(&d->targets, 0, row);
    CHECK(row[0] == 0 && row[1] == 1 && row[2] == 1);
    stk_targets_row(&d->targets, 2, row);
    CHECK(row[0] == 0 && row[1] == 0 && row[2] == 0);
    stk_dataset_free(d);
    put_rows("id,label", json_lists, 24); /* as the table has them, where no sample is */
    d = opens_as(STK_TASK_MULTILABEL, "");
    REQUIRE(d != NULL && d->class_count == 3);
    CHECK(d->answer.bracket == '[' && d->answer.quote == '"');
    stk_dataset_free(d);
    put_sample("id,label", "red|blue"); /* and as the sample has them, where it has none */
    d = opens_as(STK_TASK_MULTILABEL, "");
    REQUIRE(d != NULL);
    CHECK(d->answer.bracket == '\0' && d->answer.divider == '|');
    stk_dataset_free(d);
    static const char *const names[] = {"(red)", "(blue)", "(green)", NULL};
    static const char *const records[] = {"{'kind': 1}", "{'kind': 2}", "{'kind': 3}", NULL};
    put_rows("id,label", names, 24); /* no lists */
    stk_dataset_free(opens_as(STK_TASK_SINGLE, "label has 3 classes"));
    put_rows("id,label", records, 24);
    stk_dataset_free(opens_as(STK_TASK_SINGLE, "label has 3 classes"));
    put_rows("id,label", json_lists, 24);
    stk_dataset_options o = options();
    o.task = STK_TASK_SINGLE; /* each text as it is */
    d = open_with(&o);
    REQUIRE(d != NULL && d->class_count == 2);
    CHECK_STR(d->classes[0], "[\"green\"]");
    stk_dataset_free(d);
}

static void a_column_for_each_label(void) {
    static const char *const tags[] = {"red;green", "blue", "red", "green", NULL};
    put_rows("id,tags", tags, 24);
    put_sample("id,red,green,blue", "0.5,0.5,0.5");
    stk_dataset *d = opens_as(STK_TASK_MULTILABEL, "such as 'red;green'; the sample has a column");
    REQUIRE(d != NULL && d->class_count == 3);
    CHECK_INT(d->answer.kind, STK_ANSWER_SCORES);
    float row[3];
    stk_targets_row(&d->targets, 0, row);
    CHECK(row[0] == 0 && row[1] == 1 && row[2] == 1);
    stk_dataset_free(d);
}

static void decimal_commas(void) {
    static const char *const numbers[] = {"\"0,95\"", "\"1,05\"", "\"-2,08\"",
                                          "3",        "\"1,33\"", NULL};
    static const char *const pairs[] = {"\"1,2\"", "3", "\"2,3\"", "1", "2", NULL};
    put_rows("id,label", numbers, 5);
    stk_dataset_options o = options();
    o.task = STK_TASK_REGRESSION;
    stk_dataset *d = open_with(&o);
    REQUIRE(d != NULL);
    CHECK(fabs(d->targets.least[0] + 2.08) < 1e-6 && d->targets.most[0] == 3);
    stk_dataset_free(d);
    d = opens_as(STK_TASK_REGRESSION, "label has 5 different numbers from -2.08 to 3");
    stk_dataset_free(d);
    CHECK_CONTAINS(decisions, "numbers of label with decimal points");
    put_sample("id,label", "\"0,00\""); /* a sample of such numbers says nothing else */
    d = opens_as(STK_TASK_REGRESSION, "label has 5 different numbers from -2.08 to 3");
    stk_dataset_free(d);
    put_rows("id,label", pairs, 20);
    d = opens_as(STK_TASK_MULTILABEL, "such as '1,2'");
    REQUIRE(d != NULL && d->class_count == 3);
    stk_dataset_free(d);
}

static void words_for_a_missing_number(void) {
    static const char *const words[] = {"nan", "NA", "N/A", "unknown", "?", "None", "null"};
    for (size_t w = 0; w < STK_COUNT(words); w++) {
        stk_str csv = {0};
        fresh();
        stk_str_append(&csv, "id,label\n");
        for (int i = 0; i < 120; i++) {
            char name[64];
            snprintf(name, sizeof name, "train/a%d.jpg", i);
            put(name);
            if (i == 5) {
                stk_str_appendf(&csv, "a%d.jpg,%s\n", i, words[w]);
            } else {
                stk_str_appendf(&csv, "a%d.jpg,%d.%d\n", i, i, i % 7);
            }
        }
        put_text("train.csv", stk_str_text(&csv));
        stk_str_free(&csv);
        stk_dataset *d = opens_as(STK_TASK_REGRESSION, "label has ");
        REQUIRE(d != NULL);
        CHECK_INT(d->train.count, 119);
        CHECK_CONTAINS(warnings, "left out 1 row of train.csv without a label: a5.jpg");
        CHECK_CONTAINS(decisions, "1 cell of label that counts as empty");
        stk_dataset_free(d);
    }
    static const char *const kinds[] = {"0", "1", "unknown", NULL};
    put_rows("id,label", kinds, 30); /* a class, where the sample has it */
    put_sample("id,label", "unknown");
    stk_dataset *d = opens_as(STK_TASK_SINGLE, "label has 3 classes");
    stk_dataset_free(d);
    static const char *const names[] = {"none", "scab", "rust", NULL};
    put_rows("id,label", names, 30); /* no numbers */
    d = opens_as(STK_TASK_SINGLE, "label has 3 classes");
    stk_dataset_free(d);
}

/* The sample's cells tell the column, whatever its name. */
static void columns_by_the_cells_of_the_sample(void) {
    static const char *const whales[] = {"orca,w01abc", "beluga,w02abd", "orca,w03abe", NULL};
    static const char *const hierarchy[] = {"red,0,3", "green,1,4", "blue,2,5", NULL};
    static const struct {
        const char *header;
        const char *const *cells;
        const char *answer;
        const char *label;
    } cases[] = {
        {"image,species,individual_id", whales, "w01abc w03abe", "individual_id"},
        {"image,species,individual_id", whales, "w77xyz", "individual_id"}, /* of this form */
        {"image,species,individual_id", whales, "orca", "species"},
        {"id,species,label_id,size", hierarchy, "0", "label_id"},
        {"id,species,code,size", hierarchy, "0", "species"}, /* a placeholder */
    };
    for (size_t i = 0; i < STK_COUNT(cases); i++) {
        put_rows(cases[i].header, cases[i].cells, 30);
        put_sample("id,predictions", cases[i].answer);
        stk_dataset_options o = options();
        stk_dataset *d = open_with(&o);
        REQUIRE(d != NULL);
        CHECK_STR(d->label_name, cases[i].label);
        CHECK_CONTAINS(d->reason, cases[i].label);
        CHECK(d->part_column == NULL || strcmp(d->part_column, cases[i].label) != 0);
        stk_dataset_free(d);
    }
    CHECK_CONTAINS(warnings, "the sample submission has numbers, such as '0', and classes have "
                             "names, such as 'red'");
}

static void a_class_and_its_probability(void) {
    static const char *const classes[] = {"18381", "20", "33", NULL};
    static const char *const two[] = {"red fox", "blue", NULL};
    put_rows("id,landmark_id", classes, 30);
    put_sample("id,landmarks", "18381 0.0");
    stk_dataset *d = opens_as(STK_TASK_SINGLE, "landmark_id has 3 classes, and the sample a class");
    REQUIRE(d != NULL);
    CHECK_INT(d->answer.kind, STK_ANSWER_SURE);
    stk_dataset_free(d);
    put_rows("id,label", two, 30);
    put_sample("id,label", "red fox 0.5");
    d = opens_as(STK_TASK_SINGLE, "label has 2 classes");
    REQUIRE(d != NULL);
    CHECK_INT(d->answer.kind, STK_ANSWER_SURE);
    stk_dataset_free(d);
}

static void votes_are_shares(void) {
    static const char *const votes[] = {"15,1,0", "0,2,2", "1,0,0", NULL};
    static const char *const places[] = {"40.5,-69.5,1", "41.5,-68,0", NULL};
    put_rows("id,a_vote,b_vote,c_vote", votes, 30);
    put_sample("id,a_vote,b_vote,c_vote", "0.333,0.333,0.334");
    stk_dataset *d = opens_as(STK_TASK_REGRESSION, "3 columns of numbers, of which each row of the "
                                                   "sample sums to 1 (label columns a_vote, ");
    REQUIRE(d != NULL);
    CHECK(d->answer.kind == STK_ANSWER_NUMBERS && d->answer.shares);
    float row[3];
    stk_targets_row(&d->targets, 0, row);
    CHECK(fabsf(row[0] - 15.0f / 16) < 1e-6f && fabsf(row[1] - 1.0f / 16) < 1e-6f && row[2] == 0);
    stk_dataset_free(d);
    stk_dataset_options o = options();
    o.task = STK_TASK_SINGLE;
    expect_failure(&o, STK_ERR_USAGE);
    CHECK_CONTAINS(error.message, "which is regression");
    put_sample("id,a_vote,b_vote,c_vote", "0,0,0");
    d = opens_as(STK_TASK_REGRESSION, "");
    REQUIRE(d != NULL);
    CHECK(!d->answer.shares);
    stk_dataset_free(d);
    put_rows("id,lat,lon,up", places, 30); /* no parts of a whole */
    put_sample("id,lat,lon,up", "1,0,0");
    d = opens_as(STK_TASK_REGRESSION, "");
    REQUIRE(d != NULL);
    CHECK(!d->answer.shares);
    stk_dataset_free(d);
}

/* The positive one of two classes. */
static void the_positive_class(void) {
    static const struct {
        const char *classes[3];
        const char *wanted; /* --positive */
        const char *positive;
        bool guess;
    } cases[] = {
        {{"fire", "nofire", NULL}, NULL, "fire", false},
        {{"Ship", "no_ship", NULL}, NULL, "Ship", false},
        {{"malignant", "benign", NULL}, NULL, "malignant", false},
        {{"No Finding", "Edema", NULL}, NULL, "Edema", false},
        {{"normal", "abnormal", NULL}, NULL, "abnormal", false},
        {{"cat", "dog", NULL}, NULL, "dog", true},
        {{"cat", "dog", NULL}, "cat", "cat", false},
        {{"cat", "dog", NULL}, "DOG", "dog", false},
        {{"0", "1", NULL}, "0", "0", false},
    };
    for (size_t i = 0; i < STK_COUNT(cases); i++) {
        put_rows("id,label", cases[i].classes, 30);
        put_sample("id,target", "0.5");
        stk_dataset_options o = options();
        o.positive = cases[i].wanted;
        stk_dataset *d = open_with(&o);
        REQUIRE(d != NULL);
        CHECK_INT(d->answer.kind, STK_ANSWER_POSITIVE);
        CHECK_STR(d->classes[d->answer.positive], cases[i].positive);
        CHECK((strstr(warnings, "which is a guess; --positive NAME says it") != NULL) ==
              cases[i].guess);
        stk_dataset_free(d);
    }
    put_rows("id,label", cases[5].classes, 30);
    stk_dataset_options o = options();
    o.positive = "cow";
    expect_failure(&o, STK_ERR_USAGE);
    CHECK_CONTAINS(error.message,
                   "--positive cow: there is no such class; the two are 'cat' and 'dog'");
    put_rows("id,label", (const char *const[]){"a", "b", "cow", NULL}, 30);
    expect_failure(&o, STK_ERR_USAGE);
    CHECK_CONTAINS(error.message, "the task is single with 3 classes");
    fresh();
    put_cats_and_dogs("train");
    o.positive = "cat";
    stk_dataset *d = open_with(&o);
    REQUIRE(d != NULL);
    CHECK_INT(d->answer.positive, 0);
    stk_dataset_free(d);
}

static void names_with_blanks_in_lists(void) {
    static const char *const animals[] = {"red fox", "green frog", "blue whale", NULL};
    put_rows("id,label", animals, 30);
    put_sample("id,label", "red fox green frog");
    put_text("description.md", "## Evaluation\n\nMAP@3\n");
    stk_dataset *d = opens_as(STK_TASK_RANKING, "label");
    stk_dataset_free(d);
    CHECK_CONTAINS(warnings, "names of classes have blanks");
    put_rows("id,label", animals, 30);
    put_sample("id,label", "a red shape"); /* a placeholder of several words */
    d = opens_as(STK_TASK_SINGLE, "label has 3 classes");
    stk_dataset_free(d);
}

/* Whole numbers whose column does not say that they are classes, and texts that hardly repeat. */
static void classes_in_doubt(void) {
    stk_str csv = {0};
    for (int kind = 0; kind < 3; kind++) {
        fresh();
        csv.length = 0;
        stk_str_appendf(&csv, "id,%s\n", kind == 0 ? "y" : kind == 1 ? "digit" : "n_people");
        for (int i = 0; i < 120; i++) {
            char name[64];
            snprintf(name, sizeof name, "train/a%d.jpg", i);
            put(name);
            stk_str_appendf(&csv, "a%d.jpg,%d\n", i, kind == 2 ? i % 8 : i % 20);
        }
        put_text("train.csv", stk_str_text(&csv));
        stk_dataset *d = opens_as(STK_TASK_SINGLE, "");
        stk_dataset_free(d);
        CHECK((strstr(warnings, "--task regression takes them as amounts") != NULL) == (kind != 1));
    }
    fresh();
    csv.length = 0;
    stk_str_append(&csv, "id,label\n");
    for (int i = 0; i < 60; i++) {
        char name[64];
        snprintf(name, sizeof name, "train/a%d.jpg", i);
        put(name);
        stk_str_appendf(&csv, "a%d.jpg,2020-01-%02d\n", i, i % 50);
    }
    put_text("train.csv", stk_str_text(&csv));
    stk_str_free(&csv);
    stk_dataset *d = opens_as(STK_TASK_SINGLE, "");
    stk_dataset_free(d);
    CHECK_CONTAINS(warnings,
                   "column 'label' of train.csv holds 50 different texts in 60 rows, such "
                   "as '2020-01-00'");
}

static void memory_runs_out(void) {
    stk_dataset_options o = options();
    put_rows("id,label", lists, 12);
    put_sample("id,target", "['red']");
    open_without_memory(&o);
}

static const check_test tests[] = {
    TEST(lists_with_brackets),
    TEST(a_column_for_each_label),
    TEST(decimal_commas),
    TEST(words_for_a_missing_number),
    TEST(columns_by_the_cells_of_the_sample),
    TEST(a_class_and_its_probability),
    TEST(votes_are_shares),
    TEST(the_positive_class),
    TEST(names_with_blanks_in_lists),
    TEST(classes_in_doubt),
    TEST(memory_runs_out),
};

CHECK_MAIN(tests)
