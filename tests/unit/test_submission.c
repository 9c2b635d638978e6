/* test_submission.c - submissions with and without a sample file; the data sets are made by hand.
 */
#include "check.h"
#include "full_rows.h"

#include <math.h>

#include "base/error.h"
#include "base/files/file.h"
#include "base/mem.h"
#include "base/numbers/rng.h"
#include "base/str.h"
#include "base/text/csv.h"
#include "predict/submission.h"

/* Of every data set here. */
#define MOST_ROWS 60000

/* Probabilities of single classes; valid until the next call. */
static const stk_answers *answers_of(const char *const *classes, int count, const double *probs) {
    static stk_answers answers;
    static stk_ensemble ensemble;
    static double weights[MOST_ROWS];
    for (int i = 0; i < MOST_ROWS; i++) {
        weights[i] = 1;
    }
    ensemble = (stk_ensemble){.rows = MOST_ROWS,
                              .classes = (size_t)count,
                              .sum = full_rows(probs, MOST_ROWS, (size_t)count),
                              .weights = weights};
    answers = (stk_answers){
        .classes = classes, .class_count = count, .task = STK_TASK_SINGLE, .ensemble = &ensemble};
    return &answers;
}

static stk_error error;
static char warnings[2048];
static char path[300];

static const char *const pets[] = {"cat", "dog", "owl"};
static stk_sample rows[] = {{.path = "test/b.jpg", .id = "b", .label = -1},
                            {.id = "a,1", .label = -1}};
static stk_row two_rows[] = {{.id = "b", .count = 1}, {.id = "a,1", .first = 1, .count = 1}};
static const double even_probs[] = {0.5, 0.25, 0.25, 0.125, 0.125, 0.75};

static void note_warning(void *user, const char *text) {
    (void)user;
    size_t length = strlen(warnings);
    snprintf(warnings + length, sizeof warnings - length, "%s\n", text);
}

static const stk_observer listener = {.warning = note_warning};
static const stk_events events = {.observers = {&listener}, .count = 1};

/* A data set of two test rows and three classes. */
static stk_dataset make(const char *const *header, int columns, int id) {
    warnings[0] = '\0';
    stk_error_clear(&error);
    snprintf(path, sizeof path, "%s/submission.csv", check_folder());
    return (stk_dataset){.root = "made",
                         .classes = pets,
                         .class_count = 3,
                         .test = {rows, 2},
                         .rows = two_rows,
                         .row_count = 2,
                         .template_kept = -1,
                         .template_header = header,
                         .template_columns = columns,
                         .template_id = id,
                         .id_name = "id",
                         .label_name = "label"};
}

/* Gives the data set these test pictures, each a row of its own. */
static void give_rows(stk_dataset *d, stk_sample *samples, stk_row *of_samples, size_t count) {
    d->test = (stk_sample_list){samples, count};
    d->rows = of_samples;
    d->row_count = count;
    for (size_t i = 0; i < count; i++) {
        of_samples[i] = (stk_row){.id = samples[i].id, .first = i, .count = 1};
    }
}

/* Writes and expects exactly this text. */
static void expect_answers(const stk_dataset *d, const stk_answers *answers, const char *expected) {
    char *data = NULL;
    size_t size;
    REQUIRE_OK(stk_submission_write_how(path, NULL, d, answers, &error), &error);
    REQUIRE_OK(stk_file_read(path, 0, &data, &size, &error), &error);
    CHECK_STR(data, expected);
    stk_mem_free(data);
}

static void expect_text(const stk_dataset *d, const char *const *classes, int class_count,
                        const double *probs, const char *expected) {
    expect_answers(d, answers_of(classes, class_count, probs), expected);
}

static void without_a_sample_file(void) {
    stk_dataset d = make(NULL, 0, 0);
    REQUIRE_OK(stk_submission_check(&d, &events, &error), &error);
    CHECK_STR(warnings, "");
    expect_text(&d, pets, 3, even_probs,
                "id,label,cat,dog,owl\nb,cat,0.5,0.25,0.25\n\"a,1\",owl,0.125,0.125,0.75\n");
    /* Again, over the first file, and with numbers that are no shares yet. */
    static const double counts[] = {2, 1, 1, 0, 0, 3};
    expect_text(&d, pets, 3, counts,
                "id,label,cat,dog,owl\nb,cat,0.5,0.25,0.25\n\"a,1\",owl,0,0,1\n");
}

static void class_called_like_a_column(void) {
    static const char *const classes[] = {"x,y", "Label"};
    static const double probs[] = {0.25, 0.75, 1, 0};
    stk_dataset d = make(NULL, 0, 0);
    expect_text(&d, classes, 2, probs,
                "id,label,\"p_x,y\",p_Label\nb,Label,0.25,0.75\n\"a,1\",\"x,y\",1,0\n");
}

static void one_column_means_labels(void) {
    static const char *const header[] = {"Species", "File"};
    stk_dataset d = make(header, 2, 1);
    REQUIRE_OK(stk_submission_check(&d, &events, &error), &error);
    CHECK_STR(warnings, "");
    expect_text(&d, pets, 3, even_probs, "Species,File\ncat,b\nowl,\"a,1\"\n");
    static const double bad[] = {0, NAN, 1, 0, 0, 0};
    expect_text(&d, pets, 3, bad, "Species,File\ncat,b\ncat,\"a,1\"\n");
}

/* A rule changes labels, and no probabilities. */
static void rule_names_labels(void) {
    static const char *const header[] = {"id", "label"};
    stk_label_rule rule = {STK_LABEL_WEIGHTS, 3, (double[]){1, 3, 1}};
    stk_answers answers = *answers_of(pets, 3, even_probs);
    answers.rule = &rule;
    stk_dataset labels = make(header, 2, 0);
    stk_dataset plain = make(NULL, 0, 0);
    char *data = NULL;
    size_t size;
    REQUIRE_OK(stk_submission_write_how(path, NULL, &labels, &answers, &error), &error);
    REQUIRE_OK(stk_file_read(path, 0, &data, &size, &error), &error);
    CHECK_STR(data, "id,label\nb,dog\n\"a,1\",owl\n");
    stk_mem_free(data);
    REQUIRE_OK(stk_submission_write_how(path, NULL, &plain, &answers, &error), &error);
    REQUIRE_OK(stk_file_read(path, 0, &data, &size, &error), &error);
    CHECK_STR(data, "id,label,cat,dog,owl\nb,dog,0.5,0.25,0.25\n\"a,1\",owl,0.125,0.125,0.75\n");
    stk_mem_free(data);
}

/* The pictures of a row are averaged, or the largest values count; what no model has read does
 * not. */
static void rows_pool_their_pictures(void) {
    static const double probs[] = {0.5, 0.25, 0.25, 0.125, 0.125, 0.75, 0.125, 0.125, 0.75};
    static stk_row rows_of_some[] = {{.id = "a", .count = 2}, {.id = "b", .first = 2, .count = 1}};
    static double known[] = {1, 0, 1};
    static const char *const expected[][2] = {
        {"a,owl,0.3125,0.1875,0.5\n", "a,cat,0.5,0.25,0.25\n"},
        {"a,owl,0.333333333,0.166666667,0.5\n", "a,cat,0.5,0.25,0.25\n"}};
    stk_dataset d = make(NULL, 0, 0);
    stk_sample samples[] = {rows[0], rows[0], rows[1]};
    d.test = (stk_sample_list){samples, 3};
    d.rows = rows_of_some;
    for (int pool = 0; pool < STK_POOL_WAYS; pool++) {
        for (int unread = 0; unread < 2; unread++) {
            char *data = NULL;
            size_t size;
            stk_answers answers = *answers_of(pets, 3, probs);
            answers.pool = (stk_pooling)pool;
            stk_ensemble ensemble = *answers.ensemble;
            ensemble.weights = unread == 1 ? known : ensemble.weights;
            answers.ensemble = &ensemble;
            REQUIRE_OK(stk_submission_write_how(path, NULL, &d, &answers, &error), &error);
            REQUIRE_OK(stk_file_read(path, 0, &data, &size, &error), &error);
            CHECK_CONTAINS(data, expected[pool][unread]);
            CHECK_CONTAINS(data, "\nb,owl,0.125,0.125,0.75\n");
            stk_mem_free(data);
        }
    }
}

/* Before the first model early predictions count, and pictures without any do not. */
static void rows_pool_early_predictions(void) {
    static const double probs[] = {0.2, 0.2, 0.6, 0.2, 0.2, 0.6, 0.2, 0.2, 0.6};
    static stk_row rows_of_some[] = {{.id = "a", .count = 2}, {.id = "b", .first = 2, .count = 1}};
    static double nobody[] = {0, 0, 0};
    static double priors[] = {0.75, 0.125, 0.125};
    static bool early[] = {true, false, false};
    stk_dataset d = make(NULL, 0, 0);
    stk_sample samples[] = {rows[0], rows[0], rows[1]};
    d.test = (stk_sample_list){samples, 3};
    d.rows = rows_of_some;
    for (int pool = 0; pool < STK_POOL_WAYS; pool++) {
        char *data = NULL;
        size_t size;
        stk_answers answers = *answers_of(pets, 3, probs);
        answers.pool = (stk_pooling)pool;
        stk_ensemble ensemble = *answers.ensemble;
        ensemble.early = ensemble.sum;
        ensemble.early_have = early;
        ensemble.weights = nobody;
        ensemble.priors = priors;
        answers.ensemble = &ensemble;
        REQUIRE_OK(stk_submission_write_how(path, NULL, &d, &answers, &error), &error);
        REQUIRE_OK(stk_file_read(path, 0, &data, &size, &error), &error);
        CHECK_CONTAINS(data, "\na,owl,0.2,0.2,0.6\n");
        CHECK_CONTAINS(data, "\nb,cat,0.75,0.125,0.125\n");
        stk_mem_free(data);
    }
}

static void columns_keep_their_order_and_spelling(void) {
    static const char *const header[] = {"owl", "ID", " Dog", "cat"};
    stk_dataset d = make(header, 4, 1);
    REQUIRE_OK(stk_submission_check(&d, &events, &error), &error);
    CHECK_STR(warnings, "");
    expect_text(&d, pets, 3, even_probs,
                "owl,ID, Dog,cat\n0.25,b,0.25,0.5\n0.75,\"a,1\",0.125,0.125\n");
}

static void an_exact_name_goes_first(void) {
    static const char *const header[] = {"id", "CAT", "cat", "dog", "owl"};
    stk_dataset d = make(header, 5, 0);
    REQUIRE_OK(stk_submission_check(&d, &events, &error), &error);
    CHECK_CONTAINS(warnings, "1 column of the sample submission is no class");
    CHECK_CONTAINS(warnings, "CAT");
    expect_text(&d, pets, 3, even_probs,
                "id,CAT,cat,dog,owl\nb,0,0.5,0.25,0.25\n\"a,1\",0,0.125,0.125,0.75\n");
}

static void classes_and_columns_that_differ(void) {
    static const char *const header[] = {"id", "cow", "owl", "cat", "emu"};
    static const double probs[] = {0.25, 0.5, 0.25, 0, 1, 0};
    stk_dataset d = make(header, 5, 0);
    REQUIRE_OK(stk_submission_check(&d, &events, &error), &error);
    CHECK_CONTAINS(warnings, "no column for 1 of 3 classes (first: dog)");
    CHECK_CONTAINS(warnings, "2 columns of the sample submission are no class");
    CHECK_CONTAINS(warnings, "first: cow");
    expect_text(&d, pets, 3, probs, "id,cow,owl,cat,emu\nb,0,0.5,0.5,0\n\"a,1\",0,0.5,0.5,0\n");
}

/* Classes without training pictures get what add-one smoothing gives them; rows sum to 1. */
static void columns_of_unseen_classes(void) {
    static const char *const header[] = {"id", "cow", "owl", "cat", "dog", "emu"};
    static const double probs[] = {0.5, 0.25, 0.25, NAN, 1, 0};
    stk_dataset d = make(header, 6, 0);
    d.train.count = 5;
    d.task = STK_TASK_SINGLE;
    d.answer.kind = STK_ANSWER_PROBABILITIES;
    REQUIRE_OK(stk_submission_check(&d, &events, &error), &error);
    CHECK_CONTAINS(warnings, "(first: cow) and get 0.1 each in every row, as if each had one");
    stk_answers answers = *answers_of(pets, 3, probs);
    answers.pictures = 5;
    expect_answers(&d, &answers,
                   "id,cow,owl,cat,dog,emu\nb,0.1,0.2,0.4,0.2,0.1\n"
                   "\"a,1\",0.1,0.266666667,0.266666667,0.266666667,0.1\n");
    answers.pictures = 0; /* not known */
    expect_answers(&d, &answers,
                   "id,cow,owl,cat,dog,emu\nb,0,0.25,0.5,0.25,0\n"
                   "\"a,1\",0,0.333333333,0.333333333,0.333333333,0\n");
    warnings[0] = '\0';
    d.task = STK_TASK_MULTILABEL; /* labels do not exclude each other */
    d.answer.kind = STK_ANSWER_SCORES;
    REQUIRE_OK(stk_submission_check(&d, &events, &error), &error);
    CHECK_CONTAINS(warnings, "(first: cow) and will be 0");
    answers = *answers_of(pets, 3, even_probs);
    answers.pictures = 5;
    expect_answers(&d, &answers,
                   "id,cow,owl,cat,dog,emu\nb,0,0.25,0.5,0.25,0\n"
                   "\"a,1\",0,0.75,0.125,0.125,0\n");
}

static void describes(const stk_dataset *d, const char *header, int columns) {
    char text[300];
    int count = 0;
    REQUIRE_OK(stk_submission_describe(d, text, sizeof text, &count, &error), &error);
    CHECK_STR(text, header);
    CHECK_INT(count, columns);
}

static void headers_for_people(void) {
    static const char *const two[] = {"Id", "Cate,gory"};
    static const char *const dogs[] = {"affenpinscher", "basset_of_the_north", "file",
                                       "chow_chow_of_the_south", "yorkshire_terrier"};
    static const char *const alike[] = {"a_class_with_a_rather_long_name",
                                        "a_class_with_another_long_name", "ID"};
    stk_dataset d = make(two, 2, 0);
    describes(&d, "Id,\"Cate,gory\"", 2);
    d = make(dogs, 5, 2);
    describes(&d, "file, 4 columns from affenpinscher to yorkshire_terrier", 5);
    d.template_kept = 0;
    describes(&d, "file, 3 columns from basset_of_the_north to yorkshire_terrier", 5);
    d = make(NULL, 0, 0);
    describes(&d, "id,label,cat,dog,owl", 5);
    d.answer.kind = STK_ANSWER_NUMBERS;
    describes(&d, "id,cat,dog,owl", 4);
    d = make(NULL, 0, 0);
    d.classes = alike;
    describes(&d, "id, label, 3 columns from p_a_class_with_a_rather_long_name to p_ID", 5);
    stk_mem_fail_after(0);
    char text[8];
    int count;
    CHECK_INT(stk_submission_describe(&d, text, sizeof text, &count, &error), STK_ERR_MEMORY);
    stk_mem_fail_after(-1);
}

static void columns_that_match_nothing(void) {
    static const char *const header[] = {"id", "red", "green", "blue", "pink", "grey"};
    stk_dataset d = make(header, 6, 0);
    CHECK_INT(stk_submission_check(&d, &events, &error), STK_ERR_DATA);
    CHECK_CONTAINS(error.message, "red, green, blue, ...");
    CHECK_CONTAINS(error.message, "cat, dog, owl;");
    stk_error_clear(&error);
    CHECK_INT(stk_submission_write_how(path, NULL, &d, answers_of(pets, 3, even_probs), &error),
              STK_ERR_DATA);
    CHECK(!stk_path_is_file(path));
    /* A folder that was opened for prediction has no classes to compare with. */
    d.class_count = 0;
    CHECK_INT(stk_submission_check(&d, &events, NULL), STK_OK);
}

static void rows_that_are_no_probabilities(void) {
    static const char *const header[] = {"id", "cat", "dog"};
    static const double bad[][6] = {
        {NAN, 0.5, 0.5, 0, 0, 0}, {INFINITY, 0, 0, -1, 2, 0}, {0, 0, 1, 1.7e308, 1.7e308, 0}};
    for (int i = 0; i < 3; i++) {
        stk_dataset d = make(header, 3, 0);
        expect_text(&d, pets, 3, bad[i], "id,cat,dog\nb,0.5,0.5\n\"a,1\",0.5,0.5\n");
    }
    stk_dataset plain = make(NULL, 0, 0);
    expect_text(&plain, pets, 3, bad[0],
                "id,label,cat,dog,owl\nb,cat,0.333333333,0.333333333,0.333333333\n"
                "\"a,1\",cat,0.333333333,0.333333333,0.333333333\n");
}

/* A folder of pictures asks for nothing: rows take what the models' competition takes, where the
 * file can hold that. */
static void answers_of_the_models_own_competition(void) {
    static const double probs[] = {0.2, 0.5, 0.3, 0.6, 0.3, 0.1};
    static const char *const one[] = {"id", "answer"};
    static const char *const three[] = {"id", "cat", "dog", "owl"};
    stk_answer ranked = {.kind = STK_ANSWER_RANKED, .divider = ' ', .most = 2, .stranger = -1};
    stk_answer positive = {.kind = STK_ANSWER_POSITIVE, .positive = 2, .stranger = -1};
    const struct {
        const char *const *header;
        int columns;
        const stk_answer *trained;
        const char *text;
    } cases[] = {
        {one, 2, &ranked, "id,answer\nb,dog owl\n\"a,1\",cat dog\n"},
        {one, 2, &positive, "id,answer\nb,0.3\n\"a,1\",0.1\n"},
        {one, 2, NULL, "id,answer\nb,dog\n\"a,1\",cat\n"},
        {three, 4, &ranked, "id,cat,dog,owl\nb,0.2,0.5,0.3\n\"a,1\",0.6,0.3,0.1\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        stk_dataset d = make(cases[i].header, cases[i].columns, 0);
        stk_answers answers = *answers_of(pets, 3, probs);
        answers.trained = cases[i].trained;
        REQUIRE_OK(stk_submission_write_how(path, NULL, &d, &answers, &error), &error);
        char *text = NULL;
        size_t size = 0;
        REQUIRE_OK(stk_file_read(path, 0, &text, &size, &error), &error);
        CHECK_STR(text, cases[i].text);
        stk_mem_free(text);
    }
}

/* A class and its probability, lists with brackets, and shares of a whole. */
static void answers_in_the_form_of_the_sample(void) {
    static const double probs[] = {0.2, 0.5, 0.3, 0.6, 0.3, 0.1};
    static const double high[] = {0.9, 0.1, 0.8, 0.1, 0.1, 0.1};
    static const double votes[] = {-0.5, 0.75, 0.25, -1, -2, 0};
    static const char *const odd[] = {"it's", "a \"b\"", "c,d"};
    static const char *const one[] = {"id", "answer"};
    static const char *const three[] = {"id", "cat", "dog", "owl"};
    const stk_answer python = {
        .kind = STK_ANSWER_LIST, .divider = ',', .stranger = -1, .bracket = '[', .quote = '\''};
    stk_answer json = python;
    json.quote = '"';
    const struct {
        const char *const *classes;
        stk_task task;
        stk_answer answer;
        const double *values;
        const char *text;
    } cases[] = {
        {pets,
         STK_TASK_SINGLE,
         {.kind = STK_ANSWER_SURE, .stranger = -1},
         probs,
         "id,answer\nb,dog 0.5\n\"a,1\",cat 0.6\n"},
        {pets, STK_TASK_MULTILABEL, python, high,
         "id,answer\nb,\"['cat', 'owl']\"\n\"a,1\",['cat']\n"},
        {odd, STK_TASK_MULTILABEL, python, high,
         "id,answer\nb,\"[\"\"it's\"\", 'c,d']\"\n\"a,1\",\"[\"\"it's\"\"]\"\n"},
        {odd, STK_TASK_MULTILABEL, json, probs,
         "id,answer\nb,\"[\"\"a \\\"\"b\\\"\"\"\"]\"\n\"a,1\",\"[\"\"it's\"\"]\"\n"},
        {pets,
         STK_TASK_REGRESSION,
         {.kind = STK_ANSWER_NUMBERS, .stranger = -1, .shares = true},
         votes,
         "id,cat,dog,owl\nb,0,0.75,0.25\n\"a,1\",0.333333333,0.333333333,0.333333333\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bool shares = cases[i].answer.shares;
        stk_dataset d = make(shares ? three : one, shares ? 4 : 2, 0);
        d.task = cases[i].task;
        d.answer = cases[i].answer;
        stk_answers answers = *answers_of(cases[i].classes, 3, cases[i].values);
        answers.task = cases[i].task;
        expect_answers(&d, &answers, cases[i].text);
    }
}

static void printed_rows_sum_to_one(void) {
    enum { CLASSES = 1000, ROWS = 300 };
    static char names[CLASSES][8];
    static const char *classes[CLASSES];
    static const char *header[CLASSES + 1];
    static stk_sample many[ROWS];
    double *probs = stk_mem_new((size_t)CLASSES * ROWS, sizeof *probs);
    REQUIRE(probs != NULL);
    header[CLASSES] = "id";
    for (int k = 0; k < CLASSES; k++) {
        snprintf(names[k], sizeof names[k], "c%d", k);
        classes[k] = names[k];
        header[CLASSES - 1 - k] = names[k];
    }
    for (int i = 0; i < ROWS * CLASSES; i++) {
        probs[i] = 1.0 / (1 + (double)((i * 7919LL) % 10007));
    }
    for (int i = 0; i < ROWS; i++) {
        many[i].id = "x";
    }
    stk_dataset d = make(header, CLASSES + 1, CLASSES);
    static stk_row of_many[ROWS];
    give_rows(&d, many, of_many, ROWS);
    stk_status status =
        stk_submission_write_how(path, NULL, &d, answers_of(classes, CLASSES, probs), &error);
    stk_mem_free(probs);
    REQUIRE_OK(status, &error);
    stk_csv csv;
    REQUIRE_OK(stk_csv_read(path, &csv, &error), &error);
    CHECK_INT(csv.rows, ROWS);
    CHECK_STR(csv.header[0], "c999");
    for (size_t row = 0; row < csv.rows; row++) {
        double sum = 0;
        for (size_t k = 0; k < CLASSES; k++) {
            double value = -1;
            CHECK(stk_parse_double(stk_csv_cell(&csv, row, k), &value) && value >= 0);
            sum += value;
        }
        CHECK_NEAR(sum, 1.0, 1e-6);
    }
    stk_csv_free(&csv);
}

/* Numbers are written as "%.9g" writes them, whatever way that takes. */
static void numbers_as_the_library_writes_them(void) {
    static const double hard[] = {0,
                                  1,
                                  0.1,
                                  0.25,
                                  0.5,
                                  0.0999999999999,
                                  0.9999999994,
                                  0.9999999996,
                                  1e-4,
                                  9.9999999999e-5,
                                  1e-5,
                                  1.5e-5,
                                  0.1234567885,
                                  0.00012345678949999,
                                  1e-13,
                                  1e-14,
                                  9e-15,
                                  1e-300,
                                  5e-324,
                                  0.3,
                                  2.0 / 3,
                                  1e-10};
    enum { HARD = sizeof hard / sizeof *hard, ROWS = 20000 };
    static stk_sample many[ROWS];
    static double probs[ROWS * 2];
    static const char *const header[] = {"id", "a", "b"};
    static const char *const classes[] = {"a", "b"};
    stk_dataset d = make(header, 3, 0);
    stk_rng rng = stk_rng_make(7, (stk_rng_purpose)0, 0, 0);
    static stk_row of_many[ROWS];
    for (int i = 0; i < ROWS; i++) {
        double value = stk_rng_uniform(&rng) * pow(10, -(i % 17));
        many[i].id = "x";
        probs[2 * i] = i < HARD ? hard[i] : value;
        probs[2 * i + 1] = 1 - probs[2 * i];
    }
    give_rows(&d, many, of_many, ROWS);
    REQUIRE_OK(stk_submission_write_how(path, NULL, &d, answers_of(classes, 2, probs), &error),
               &error);
    stk_csv csv;
    REQUIRE_OK(stk_csv_read(path, &csv, &error), &error);
    REQUIRE(csv.rows == ROWS);
    for (int i = 0; i < ROWS; i++) {
        double sum = probs[2 * i] + probs[2 * i + 1];
        for (size_t k = 0; k < 2; k++) {
            char expected[40];
            snprintf(expected, sizeof expected, "%.9g", probs[2 * i + (int)k] / sum);
            REQUIRE(strcmp(stk_csv_cell(&csv, (size_t)i, k + 1), expected) == 0);
        }
    }
    stk_csv_free(&csv);
}

static bool second_time(void *user) {
    int *asked = user;
    return ++*asked == 2;
}

/* A file that takes too long leaves the one before in place, and nothing else. */
static void what_is_late_is_given_up(void) {
    enum { ROWS = 60000 };
    static stk_sample many[ROWS];
    static double probs[ROWS * 3];
    stk_dataset d = make(NULL, 0, 0);
    REQUIRE_OK(stk_submission_write_how(path, NULL, &d, answers_of(pets, 3, even_probs), &error),
               &error);
    char *before = NULL;
    char *after = NULL;
    size_t size = 0;
    REQUIRE_OK(stk_file_read(path, 0, &before, &size, &error), &error);
    static stk_row of_many[ROWS];
    for (int i = 0; i < ROWS; i++) {
        many[i].id = "row";
        probs[3 * i] = 1;
    }
    give_rows(&d, many, of_many, ROWS);
    int asked = 0;
    stk_halt late = {second_time, &asked};
    CHECK_INT(stk_submission_write_unless(path, &d, answers_of(pets, 3, probs), late, &error),
              STK_ERR_STOPPED);
    CHECK_INT(asked, 2);
    REQUIRE_OK(stk_file_read(path, 0, &after, &size, NULL), &error);
    CHECK_STR(after, before);
    stk_mem_free(before);
    stk_mem_free(after);
    stk_error_clear(&error);
    REQUIRE_OK(stk_submission_write_unless(path, &d, answers_of(pets, 3, probs), late, &error),
               &error);
    REQUIRE_OK(stk_file_read(path, 0, &after, &size, &error), &error);
    CHECK(size > ROWS * 10);
    stk_mem_free(after);
}

static void what_cannot_be_written(void) {
    stk_dataset d = make(NULL, 0, 0);
    CHECK_INT(stk_submission_write_how("/no/such/folder/s.csv", NULL, &d,
                                       answers_of(pets, 3, even_probs), &error),
              STK_ERR_STORAGE);
    CHECK_CONTAINS(error.message, "/no/such/folder/s.csv");
    stk_error_clear(&error);
    CHECK_INT(stk_submission_write_how(path, NULL, &d, answers_of(pets, 0, even_probs), &error),
              STK_ERR_INTERNAL);
    CHECK(!stk_path_is_file(path));
}

static void memory_runs_out(void) {
    static const char *const header[] = {"id", "Cat", "dog", "cow"};
    for (int plain = 0; plain < 2; plain++) {
        stk_dataset d = plain ? make(NULL, 0, 0) : make(header, 4, 0);
        stk_status status = STK_ERR_MEMORY;
        for (int n = 0; n < 100 && status != STK_OK; n++) {
            stk_mem_fail_after(n);
            status = stk_submission_check(&d, NULL, NULL);
            if (status == STK_OK) {
                status =
                    stk_submission_write_how(path, NULL, &d, answers_of(pets, 3, even_probs), NULL);
            }
            stk_mem_fail_after(-1);
            CHECK(status == STK_OK || status == STK_ERR_MEMORY);
            CHECK(stk_path_is_file(path) == (status == STK_OK));
        }
        CHECK_INT(status, STK_OK);
    }
}

static const check_test tests[] = {
    TEST(without_a_sample_file),
    TEST(class_called_like_a_column),
    TEST(one_column_means_labels),
    TEST(rule_names_labels),
    TEST(rows_pool_their_pictures),
    TEST(rows_pool_early_predictions),
    TEST(columns_keep_their_order_and_spelling),
    TEST(an_exact_name_goes_first),
    TEST(classes_and_columns_that_differ),
    TEST(columns_of_unseen_classes),
    TEST(headers_for_people),
    TEST(columns_that_match_nothing),
    TEST(rows_that_are_no_probabilities),
    TEST(answers_of_the_models_own_competition),
    TEST(answers_in_the_form_of_the_sample),
    TEST(printed_rows_sum_to_one),
    TEST(numbers_as_the_library_writes_them),
    TEST(what_is_late_is_given_up),
    TEST(what_cannot_be_written),
    TEST(memory_runs_out),
};

CHECK_MAIN(tests)
