/* test_dataset_labels.c - what labels, sample submission and description ask for. */
#include "test_dataset.h"

#include <math.h>

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

/* Opens the table; `reason` is a part of what is said about the task. */
static stk_dataset *opens_as(stk_task task, const char *reason) {
    stk_dataset_options o = options();
    o.rare_class = STK_RARE_TRAIN;
    stk_dataset *d = open_with(&o);
    if (d != NULL) {
        CHECK_STR(stk_task_name(d->task), stk_task_name(task));
        CHECK_CONTAINS(d->reason, reason);
    }
    return d;
}

static void has_outputs(stk_task task, const char *reason, int outputs) {
    stk_dataset *d = opens_as(task, reason);
    REQUIRE(d != NULL);
    CHECK_INT(d->class_count, outputs);
    CHECK_STR(warnings, "");
    stk_dataset_free(d);
}

static void warns(stk_task task, int outputs, const char *warning) {
    stk_dataset *d = opens_as(task, "");
    REQUIRE(d != NULL);
    CHECK_INT(d->class_count, outputs);
    CHECK_CONTAINS(warnings, warning);
    stk_dataset_free(d);
}

/* --task single takes every text as a class. */
static void are_classes_when_told(int classes) {
    stk_dataset_options o = options();
    o.rare_class = STK_RARE_TRAIN;
    o.task = STK_TASK_SINGLE;
    stk_dataset *d = open_with(&o);
    REQUIRE(d != NULL);
    CHECK_INT(d->class_count, classes);
    CHECK_STR(d->reason, "--task single");
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
    has_outputs(STK_TASK_REGRESSION, "age has 90 different whole numbers from 1 to 90", 1);
    are_classes_when_told(90);
    put_table("id,label", 200, a_price);
    has_outputs(STK_TASK_REGRESSION, "label has 200 different numbers from 0", 1);
    stk_dataset *d = opens_as(STK_TASK_REGRESSION, "");
    REQUIRE(d != NULL);
    CHECK_INT(d->targets.outputs, 1);
    CHECK_INT(d->answer.kind, STK_ANSWER_NUMBERS);
    float row;
    stk_targets_row(&d->targets, 3, &row);
    CHECK(fabsf(row - 3.21f) < 1e-6f);
    CHECK(d->targets.least[0] == 0 && fabs(d->targets.most[0] - 39.93) < 1e-5);
    CHECK(stk_dataset_strata(d) == 10);
    stk_dataset_free(d);
}

static void numbers_that_may_measure(void) {
    put_table("id,label", 180, a_sparse_number);
    warns(STK_TASK_SINGLE, 60, "60 different whole numbers from 0 to 177");
    CHECK_CONTAINS(warnings, "--task regression takes them as amounts");
    put_table("id,Pawpularity", 180, an_age);
    warns(STK_TASK_REGRESSION, 1, "--task single takes them as classes");
    put_table("id,age", 60, a_grade); /* few: they may be groups */
    warns(STK_TASK_SINGLE, 5, "each is taken as a class");
}

static void numbers_that_are_classes(void) {
    put_table("id_code,diagnosis", 60, a_grade);
    has_outputs(STK_TASK_ORDINAL, "the steps 0 to 4", 5);
    put_table("id,label", 60, half_a_grade);
    has_outputs(STK_TASK_SINGLE, "4 classes", 4);
    put_table("id,label", 180, a_class_number);
    has_outputs(STK_TASK_SINGLE, "60 classes", 60);
    put_table("id,class_id", 180, a_sparse_number);
    has_outputs(STK_TASK_SINGLE, "60 classes", 60);
}

/* The metric that the description names decides what the numbers alone do not say. */
static void the_description_decides(void) {
    static const struct {
        const char *text;
        stk_task task;
    } texts[] = {
        {"# Task\n## Evaluation\nRated by the root mean squared error.\n", STK_TASK_REGRESSION},
        {"## Evaluation\nThe quadratic weighted kappa between grades.\n## Data\nRMSE\n",
         STK_TASK_ORDINAL},
        {"Accuracy counts.\n", STK_TASK_SINGLE},
        {"Nothing is said.\n", STK_TASK_SINGLE},
        {"## Evaluation\n\nMean Average Precision @ 3 (MAP@3)\n", STK_TASK_RANKING},
    };
    for (int i = 0; i < 5; i++) {
        put_table("id,label", 60, a_grade);
        put_text("description.md", texts[i].text);
        stk_dataset *d = opens_as(texts[i].task, "");
        REQUIRE(d != NULL);
        CHECK(texts[i].task != STK_TASK_RANKING || d->answer.most == 3);
        stk_dataset_free(d);
    }
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
    put_table("image,labels", 96, a_disease);
    stk_dataset *d = opens_as(STK_TASK_MULTILABEL, "such as 'scab rust'");
    REQUIRE(d != NULL && d->class_count == 4);
    CHECK_STR(d->classes[0], "complex");
    CHECK_STR(d->classes[1], "healthy");
    CHECK_INT(d->answer.kind, STK_ANSWER_LIST);
    CHECK_INT(d->answer.divider, ' ');
    float row[4];
    stk_targets_row(&d->targets, 4, row); /* scab rust */
    CHECK(row[0] == 0 && row[1] == 0 && row[2] == 1 && row[3] == 1);
    CHECK(d->targets.exclusive[1] && !d->targets.exclusive[2]);
    CHECK_INT(stk_dataset_strata(d), 5);
    stk_dataset_free(d);
    are_classes_when_told(6);
    put_table("id,label", 30, some_findings);
    d = opens_as(STK_TASK_MULTILABEL, "'Mass|Edema'");
    REQUIRE(d != NULL);
    CHECK_INT(d->answer.divider, '|');
    stk_dataset_free(d);
    put_table("id,attribute_ids", 40, some_numbers);
    d = opens_as(STK_TASK_MULTILABEL, "'0 3 0'");
    REQUIRE(d != NULL);
    CHECK_STR(d->classes[2], "2"); /* sorted by value */
    CHECK_STR(d->classes[10], "10");
    stk_targets_row(&d->targets, 0, (float[64]){0});
    stk_dataset_free(d);
    put_table("id,label", 40, an_animal_and_its_weather);
    warns(STK_TASK_SINGLE, 4, "--task multilabel divides them");
}

/* Rows without any label, and a sample whose cells are lists. */
static void lists_that_the_sample_shows(void) {
    put_table("id,label", 40, an_animal_and_its_weather);
    put("test/x.jpg");
    put_text("sample_submission.csv", "id,label\nx,cat sunny dog\n");
    stk_dataset *d = opens_as(STK_TASK_MULTILABEL, "");
    REQUIRE(d != NULL);
    CHECK_INT(d->class_count, 4);
    stk_dataset_free(d);
    fresh();
    put("train/a.jpg");
    put("train/b.jpg");
    put("train/c.jpg");
    put_text("train.csv", "id,ids\na,3 7\nb,\nc,7\n");
    d = opens_as(STK_TASK_MULTILABEL, "'3 7'");
    REQUIRE(d != NULL && d->class_count == 2);
    float row[2];
    stk_targets_row(&d->targets, 1, row);
    CHECK(row[0] == 0 && row[1] == 0);
    stk_dataset_free(d);
}

static void texts_that_are_one_label(void) {
    put_table("id,breed", 36, a_dog);
    has_outputs(STK_TASK_SINGLE, "", 6);
    put_table("id,label", 36, an_apple);
    has_outputs(STK_TASK_SINGLE, "", 4);
}

static void one_of_four(stk_str *out, int row) {
    stk_str_appendf(out, "%d,%d,%d,%d", row % 4 == 0, row % 4 == 1, row % 4 == 2, row % 4 == 3);
}

static void some_of_three(stk_str *out, int row) {
    stk_str_appendf(out, "%d,%d,%d,p%d", row % 2, row % 3 == 0, row % 5 == 0, row % 7);
}

static void a_column_per_class(void) {
    put_table("image_id,healthy,multiple_diseases,rust,scab", 20, one_of_four);
    stk_dataset *d = opens_as(STK_TASK_SINGLE, "4 columns, of which one is 1 in each row");
    REQUIRE(d != NULL && d->class_count == 4);
    CHECK_STR(d->classes[1], "multiple_diseases");
    CHECK_INT(d->train.items[0].label, 0); /* sorted by id: 0, 1, 10 ... */
    CHECK_INT(d->train.items[1].label, 1);
    CHECK_INT(d->train.items[2].label, 2);
    stk_dataset_free(d);
    put_table("StudyInstanceUID,ETT,NGT,CVC,PatientID", 30, some_of_three);
    d = opens_as(STK_TASK_MULTILABEL, "3 columns of 0 and 1");
    REQUIRE(d != NULL && d->class_count == 3);
    CHECK_STR(d->classes[2], "CVC"); /* in the order of the columns */
    CHECK_INT(d->answer.kind, STK_ANSWER_SCORES);
    stk_dataset_free(d);
    stk_dataset_options o = options();
    o.label_column = "NGT";
    d = open_with(&o);
    REQUIRE(d != NULL);
    CHECK_INT(d->class_count, 2);
    CHECK_STR(stk_task_name(d->task), "binary");
    stk_dataset_free(d);
}

/* Of three label columns the sample asks for two: those are trained. */
static void the_sample_chooses_columns(void) {
    put_table("StudyInstanceUID,ETT,NGT,CVC,PatientID", 30, some_of_three);
    put("test/x.1.2.jpg");
    put_text("sample_submission.csv", "StudyInstanceUID,CVC,ETT\nx.1.2,0,0\n");
    stk_dataset *d = opens_as(STK_TASK_MULTILABEL, "2 columns");
    REQUIRE(d != NULL && d->class_count == 2);
    CHECK_STR(d->classes[0], "CVC");
    CHECK_STR(d->test.items[0].path, "test/x.1.2.jpg");
    CHECK_CONTAINS(decisions, "PatientID");
    CHECK_INT(d->part_count, 7);
    stk_dataset_free(d);
}

static void a_flag(stk_str *out, int row) {
    stk_str_appendf(out, "%d", row % 3 == 0);
}

static void a_word(stk_str *out, int row) {
    stk_str_append(out, row % 3 == 0 ? "False" : "True");
}

/* A probability or a label: what the sample has, unless the description says it. */
static void two_classes(void) {
    static const struct {
        const char *sample;
        const char *description;
        stk_answer_kind kind;
    } cases[] = {
        {"id,flag\nx,0.5\ny,0.5\n", NULL, STK_ANSWER_POSITIVE},
        {"id,flag\nx,0\ny,0\n", NULL, STK_ANSWER_POSITIVE},
        {"id,flag\nx,0\ny,1\n", NULL, STK_ANSWER_LABEL},
        {"id,flag\nx,0\ny,1\n", "scored by the area under the curve", STK_ANSWER_POSITIVE},
        {"id,flag\nx,0\ny,0\n", "scored by the F1 score", STK_ANSWER_LABEL},
    };
    for (int words = 0; words < 2; words++) {
        for (size_t i = 0; i < STK_COUNT(cases); i++) {
            put_table("id,flag", 30, words ? a_word : a_flag);
            put("test/x.jpg");
            put("test/y.jpg");
            put_text("sample_submission.csv", cases[i].sample);
            if (cases[i].description != NULL) {
                put_text("description.md", cases[i].description);
            }
            stk_dataset *d = opens_as(STK_TASK_BINARY, "");
            REQUIRE(d != NULL);
            CHECK_INT(d->answer.kind, cases[i].kind);
            CHECK_INT(d->answer.positive, 1);
            stk_dataset_free(d);
        }
    }
    put_table("id,flag", 30, a_word);
    put("test/x.jpg");
    put_text("sample_submission.csv", "id,flag\nx,True\n");
    stk_dataset *d = opens_as(STK_TASK_BINARY, "as the sample asks for");
    REQUIRE(d != NULL);
    CHECK_INT(d->answer.kind, STK_ANSWER_LABEL);
    stk_dataset_free(d);
}

/* --metric counts before the description, as if the description named it. */
static void the_options_name_the_metric(void) {
    static const struct {
        const char *description;
        stk_metric metric;
        stk_answer_kind kind;
        const char *reason;
    } cases[] = {
        {NULL, STK_METRIC_AUC, STK_ANSWER_POSITIVE, "the metric is --metric auc"},
        {"scored by the F1 score", STK_METRIC_LOGLOSS, STK_ANSWER_POSITIVE, "--metric logloss"},
        {"scored by the area under the curve", STK_METRIC_ACC1, STK_ANSWER_LABEL,
         "as the --metric acc1 asks for"},
        /* Numbers cannot rate it: the sample decides, and the check of options refuses later. */
        {NULL, STK_METRIC_RMSE, STK_ANSWER_LABEL, "as the sample asks for"},
    };
    for (size_t i = 0; i < STK_COUNT(cases); i++) {
        put_table("id,flag", 30, a_flag);
        put("test/x.jpg");
        put("test/y.jpg");
        put_text("sample_submission.csv", "id,flag\nx,0\ny,1\n");
        if (cases[i].description != NULL) {
            put_text("description.md", cases[i].description);
        }
        stk_dataset_options o = options();
        o.metric_given = true;
        o.metric = cases[i].metric;
        stk_dataset *d = open_with(&o);
        REQUIRE(d != NULL);
        CHECK_INT(d->answer.kind, cases[i].kind);
        CHECK_CONTAINS(d->reason, cases[i].reason);
        bool rates = cases[i].metric != STK_METRIC_RMSE;
        CHECK_INT(d->metric_given, rates);
        CHECK_INT(d->metric, rates ? cases[i].metric : STK_METRIC_AUTO);
        stk_dataset_free(d);
    }
    /* The usual metric of such a folder: args.yaml has it, and a run that is begun from it writes
     * the same. */
    put_table("StudyInstanceUID,ETT,NGT,CVC,PatientID", 30, some_of_three);
    stk_dataset_options o = options();
    o.metric_given = true;
    o.metric = STK_METRIC_AUC_MACRO;
    stk_dataset *usual = open_with(&o);
    REQUIRE(usual != NULL);
    CHECK(usual->answer.kind == STK_ANSWER_SCORES && !usual->metric_given);
    stk_dataset_free(usual);
    o.metric = STK_METRIC_MACRO_F1;
    usual = open_with(&o);
    REQUIRE(usual != NULL);
    CHECK(usual->answer.kind == STK_ANSWER_FLAGS && usual->metric_given);
    stk_dataset_free(usual);
    put_table("id,label", 60, a_grade);
    put_text("description.md", "## Evaluation\n\nMean Average Precision @ 3 (MAP@3)\n");

    o.metric = STK_METRIC_MAPK;
    stk_dataset *d = open_with(&o);
    REQUIRE(d != NULL);
    CHECK_INT(d->answer.most, 3); /* the text says how many */
    CHECK(!d->metric_given);
    stk_dataset_free(d);
    o.metric = STK_METRIC_QWK;
    d = open_with(&o);
    REQUIRE(d != NULL);
    CHECK_INT(d->task, STK_TASK_ORDINAL);
    stk_dataset_free(d);
}

/* Requests for memory that opening a data set makes. */
static int requests_of(const stk_dataset_options *o) {
    stk_status status = STK_ERR_MEMORY;
    int n = -1;
    while (status != STK_OK && n < 3000) {
        stk_dataset *d = NULL;
        stk_error_clear(&error);
        stk_mem_fail_after(++n);
        status = stk_dataset_open(&d, o, NULL, NULL, &error);
        stk_mem_fail_after(-1);
        stk_dataset_free(d);
    }
    CHECK_INT(status, STK_OK);
    return n;
}

/* Where the folder leads to the metric of the options, it is decided once: deciding takes more than
 * two requests. */
static void a_metric_that_follows_changes_nothing(void) {
    put_table("id,flag", 30, a_flag);
    stk_dataset_options o = options();
    int without = requests_of(&o);
    o.metric_given = true;
    o.metric = STK_METRIC_ACC1;
    CHECK(requests_of(&o) <= without + 2);
    stk_dataset *d = open_with(&o);
    REQUIRE(d != NULL);
    CHECK(!d->metric_given && d->metric == STK_METRIC_AUTO);
    stk_dataset_free(d);
    o.metric = STK_METRIC_LOGLOSS;
    CHECK(requests_of(&o) > without + 2);
}

static void a_whale(stk_str *out, int row) {
    stk_str_appendf(out, row % 4 == 0 ? "new_whale" : "w_%d", row % 9);
}

static void ranked_classes(void) {
    put_table("Image,Id", 40, a_whale);
    put("test/x.jpg");
    put_text("sample_submission.csv", "Image,Id\nx.jpg,new_whale w_1 w_2 w_3 w_4\n");
    stk_dataset *d = opens_as(STK_TASK_RANKING, "5 names in a cell");
    REQUIRE(d != NULL);
    CHECK_INT(d->answer.most, 5);
    CHECK_INT(d->answer.divider, ' ');
    REQUIRE(d->answer.stranger >= 0);
    CHECK_STR(d->classes[d->answer.stranger], "new_whale");
    stk_dataset_free(d);
}

static void a_float_grade(stk_str *out, int row) {
    stk_str_appendf(out, "%d.0", row % 5);
}

static void a_float_flag(stk_str *out, int row) {
    stk_str_appendf(out, "%d.0", row % 2);
}

static void a_float_or_half(stk_str *out, int row) {
    stk_str_append(out, row % 5 == 0 ? "0.5" : row % 5 == 1 ? "1.0" : "2.0");
}

/* Whole numbers that pandas saved as 3.0 are written as the sample has them. */
static void whole_numbers_with_a_point(void) {
    static const struct {
        void (*label)(stk_str *out, int row);
        const char *sample; /* NULL: there is none */
        stk_task task;
        const char *first; /* class */
    } cases[] = {
        {a_float_grade, "id,diagnosis\nx,0\n", STK_TASK_ORDINAL, "0"},
        {a_float_grade, NULL, STK_TASK_ORDINAL, "0"},
        {a_float_grade, "id,diagnosis\nx,0.0\n", STK_TASK_ORDINAL, "0.0"},
        {a_float_grade, "id,0,1,2,3,4\nx,0.0,0.0,0.0,0.0,1.0\n", STK_TASK_SINGLE, "0"},
        {a_float_grade, "id,0.0,1.0,2.0,3.0,4.0\nx,1,0,0,0,0\n", STK_TASK_SINGLE, "0.0"},
        {a_float_grade, "id,diagnosis\nx,0.0 4.0 1.0\n", STK_TASK_RANKING, "0.0"},
        {a_float_grade, "id,diagnosis\nx,0 4 1\n", STK_TASK_RANKING, "0"},
        {a_float_flag, "id,diagnosis\nx,0\ny,1\n", STK_TASK_BINARY, "0"},
        {a_float_flag, "id,diagnosis\nx,0.5\ny,0.5\n", STK_TASK_BINARY, "0"},
    };
    for (size_t i = 0; i < STK_COUNT(cases); i++) {
        put_table("id,diagnosis", 30, cases[i].label);
        put("test/x.jpg");
        put("test/y.jpg");
        if (cases[i].sample != NULL) {
            put_text("sample_submission.csv", cases[i].sample);
        }
        stk_dataset *d = opens_as(cases[i].task, "");
        REQUIRE(d != NULL);
        CHECK_INT(d->class_count, cases[i].label == a_float_grade ? 5 : 2);
        CHECK_STR(d->classes[0], cases[i].first);
        bool cut = strcmp(cases[i].first, "0") == 0;
        CHECK((strcmp(decisions, "") != 0) == cut);
        if (cut) {
            CHECK_CONTAINS(decisions, "labels of diagnosis without '.0': all are whole numbers");
        }
        stk_dataset_free(d);
    }
    put_table("id,diagnosis", 30, a_float_or_half); /* one that is not whole keeps all */
    stk_dataset *d = opens_as(STK_TASK_SINGLE, "");
    REQUIRE(d != NULL && d->class_count == 3);
    CHECK_STR(d->classes[1], "1.0");
    stk_dataset_free(d);
}

/* What the words of a description mean depends on the task, which is known later. */
static void words_of_a_metric_follow_the_task(void) {
    put_table("image,labels", 36, a_disease);
    put_text("description.md", "## Evaluation\n\nThe metric is [Mean F1-Score](https://x.y/F).\n");
    stk_dataset *d = opens_as(STK_TASK_MULTILABEL, "");
    REQUIRE(d != NULL);
    CHECK_INT(d->metric, STK_METRIC_MICRO_F1);
    CHECK_STR(d->metric_phrase, "Mean F1");
    stk_dataset_free(d);
    put_table("image,animal", 30, a_dog);
    put_text("description.md", "## Evaluation\n\nThe metric is [Mean F1-Score](https://x.y/F).\n");
    d = opens_as(STK_TASK_SINGLE, "");
    REQUIRE(d != NULL);
    CHECK_INT(d->metric, STK_METRIC_MACRO_F1);
    stk_dataset_free(d);
    put_table("StudyInstanceUID,ETT,NGT,CVC,PatientID", 30, some_of_three);
    put_text("description.md", "## Evaluation\n\nthe area under the ROC curve of each label\n");
    d = opens_as(STK_TASK_MULTILABEL, "");
    REQUIRE(d != NULL);
    CHECK_INT(d->metric, STK_METRIC_AUC_MACRO);
    stk_dataset_free(d);
}

static void memory_runs_out(void) {
    stk_dataset_options o = options();
    put_table("image,labels", 36, a_disease);
    open_without_memory(&o);
    put_table("id,age", 90, an_age);
    open_without_memory(&o);
    put_table("StudyInstanceUID,ETT,NGT,CVC,PatientID", 30, some_of_three);
    put("test/x.jpg");
    put_text("sample_submission.csv", "StudyInstanceUID,CVC,ETT\nx,0,0\n");
    put_text("description.md", "## Evaluation\nROC AUC\n");
    open_without_memory(&o);
}

static void four_columns(stk_str *out, int row) {
    stk_str_appendf(out, "%d.5,%d,%d,%s,%d", row, row % 2, row % 3 == 0, row % 2 ? "x" : "y",
                    (row + 1) % 2);
}

static void two_numbers_and_one(stk_str *out, int row) {
    stk_str_appendf(out, "c%d,%d,%d", row % 3, row, row * 2);
}

/* Several columns are named with commas between, in any order. */
static void several_columns_are_named(void) {
    put_table("id,depth,wet,old,kind,dry", 24, four_columns);
    stk_dataset_options o = options();
    o.label_column = "old, WET";
    stk_dataset *d = open_with(&o);
    REQUIRE(d != NULL && d->class_count == 2);
    CHECK_INT(d->task, STK_TASK_MULTILABEL);
    CHECK_STR(d->classes[0], "old");
    CHECK_STR(d->classes[1], "wet");
    stk_dataset_free(d);
    o.label_column = "depth,old,";
    d = open_with(&o);
    REQUIRE(d != NULL && d->class_count == 2);
    CHECK_INT(d->task, STK_TASK_REGRESSION);
    float row[2];
    stk_targets_row(&d->targets, 3, row);
    CHECK(row[0] == 3.5f && row[1] == 1);
    stk_dataset_free(d);
    o.label_column = "wet,dry"; /* one of them is 1 in each row */
    d = open_with(&o);
    REQUIRE(d != NULL && d->class_count == 2);
    CHECK_INT(d->task, STK_TASK_SINGLE);
    stk_dataset_free(d);
    static const struct {
        const char *names;
        stk_status status;
        const char *text;
    } wrong[] = {
        {"wet,odl", STK_ERR_USAGE, "--label-column odl: "},
        {"wet,id", STK_ERR_USAGE, "--label-column wet,id: id is the id column"},
        {"wet,old,Wet", STK_ERR_USAGE, "wet is there twice"},
        {",", STK_ERR_USAGE, "--label-column , names no column"},
        {"wet,kind", STK_ERR_DATA, "column 'kind' holds cells that are no numbers"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        o.label_column = wrong[i].names;
        o.id_column = "id";
        expect_failure(&o, wrong[i].status);
        CHECK_CONTAINS(error.message, wrong[i].text);
    }
}

static void a_name_may_have_commas(void) {
    put_table("id,\"a,b\",a,b", 12, two_numbers_and_one);
    stk_dataset_options o = options();
    o.label_column = "a,b";
    stk_dataset *d = open_with(&o);
    REQUIRE(d != NULL);
    CHECK_INT(d->class_count, 3);
    CHECK_STR(d->label_name, "a,b");
    stk_dataset_free(d);
}

static const check_test tests[] = {
    TEST(a_metric_that_follows_changes_nothing),
    TEST(numbers_that_measure),
    TEST(numbers_that_may_measure),
    TEST(numbers_that_are_classes),
    TEST(the_description_decides),
    TEST(the_options_name_the_metric),
    TEST(several_labels_in_a_cell),
    TEST(lists_that_the_sample_shows),
    TEST(texts_that_are_one_label),
    TEST(a_column_per_class),
    TEST(the_sample_chooses_columns),
    TEST(two_classes),
    TEST(ranked_classes),
    TEST(whole_numbers_with_a_point),
    TEST(words_of_a_metric_follow_the_task),
    TEST(memory_runs_out),
    TEST(several_columns_are_named),
    TEST(a_name_may_have_commas),
};

CHECK_MAIN(tests)
