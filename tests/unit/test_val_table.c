/* test_val_table.c - validation.csv from fold to fold. */
#include "check.h"

#include "base/files/file.h"
#include "base/mem.h"
#include "job/saved/saved_state.h"
#include "job/saved/val_table.h"

#define HEADER "path,label,predicted,probability,fold\n"

static const char *const classes[] = {"cat", "dog, large", "owl"};
static const stk_sample samples[] = {
    {.path = "a.jpg", .label = 0},
    {.path = "b \"c\".jpg", .label = 1},
    {.path = "d.jpg", .label = 2},
};
static const stk_dataset dataset = {.classes = classes, .class_count = 3};

/* A table in a folder of its own. */
static stk_val_table open_table(void) {
    stk_error err = {0};
    stk_val_table table;
    stk_run_folder folder = {.path = (char *)(uintptr_t)check_folder(), .lock_fd = -1};
    if (stk_val_table_open(&table, &folder, &err) != STK_OK) {
        CHECK_FAIL("%s", err.message);
        exit(1);
    }
    return table;
}

static void begin(stk_val_table *table, int fold) {
    stk_error err = {0};
    REQUIRE_OK(stk_val_table_begin(table, &dataset, fold, samples, 3, &err), &err);
}

/* A validation that says class `said` of samples from..to-1, last to first. */
static void judge(stk_val_table *table, int said, size_t from, size_t to) {
    stk_sample_results_reset(&table->now);
    for (size_t i = to; i-- > from;) {
        float logits[3] = {0};
        logits[said] = (float)log(2);
        double loss = samples[i].label == said ? log(2) : log(4);
        stk_sample_results_add(&table->now, i, logits, 3, samples[i].label, loss);
    }
}

static void expect_text(const stk_val_table *table, const char *text) {
    stk_error err = {0};
    char *data = NULL;
    size_t size = 0;
    REQUIRE_OK(stk_file_read(table->path, 0, &data, &size, &err), &err);
    CHECK_STR(data, text);
    stk_mem_free(data);
}

static void table_of_the_best_epoch(void) {
    stk_error err = {0};
    stk_val_table table = open_table();
    begin(&table, 0);
    CHECK(!table.owed);
    judge(&table, 0, 0, 3);
    stk_val_table_take_best(&table);
    CHECK(table.owed);
    CHECK(stk_val_table_seconds(&table) > 0);
    REQUIRE_OK(stk_val_table_write(&table, &dataset, &err), &err);
    CHECK(!table.owed);
    const char *first = HEADER "a.jpg,cat,cat,0.5,0\n"
                               "\"b \"\"c\"\".jpg\",\"dog, large\",cat,0.25,0\n"
                               "d.jpg,owl,cat,0.25,0\n";
    expect_text(&table, first);
    judge(&table, 2, 0, 3); /* of an epoch that is not the best */
    REQUIRE_OK(stk_val_table_write(&table, &dataset, &err), &err);
    expect_text(&table, first);
    stk_val_table_take_best(&table);
    REQUIRE_OK(stk_val_table_write(&table, &dataset, &err), &err);
    expect_text(&table, HEADER "a.jpg,cat,owl,0.25,0\n"
                               "\"b \"\"c\"\".jpg\",\"dog, large\",owl,0.25,0\n"
                               "d.jpg,owl,owl,0.5,0\n");
    stk_val_table_free(&table);
}

static void table_of_labels_and_numbers(void) {
    static const char *const names[] = {"cat", "dog", "owl, grey"};
    static const stk_sample two[] = {{.path = "a.jpg", .record = 1},
                                     {.path = "b.jpg", .record = 0}};
    stk_error err = {0};
    stk_dataset labels = {.task = STK_TASK_MULTILABEL,
                          .answer = {.kind = STK_ANSWER_LIST, .divider = ';'},
                          .classes = names,
                          .class_count = 3};
    REQUIRE_OK(stk_targets_open_labels(&labels.targets, 3, 2, &err), &err);
    stk_targets_end_record(&labels.targets);
    REQUIRE_OK(stk_targets_add_label(&labels.targets, 0, &err), &err);
    REQUIRE_OK(stk_targets_add_label(&labels.targets, 2, &err), &err);
    stk_targets_end_record(&labels.targets);
    stk_val_table table = open_table();
    REQUIRE_OK(stk_val_table_begin(&table, &labels, 0, two, 2, &err), &err);
    static const float high[] = {20, -20, 20};
    static const float low[] = {-20, -20, -20};
    stk_sample_results_add_labels(&table.now, 1, low, (const float[]){0, 0, 0}, 3);
    stk_sample_results_add_labels(&table.now, 0, high, (const float[]){1, 0, 1}, 3);
    stk_val_table_take_best(&table);
    REQUIRE_OK(stk_val_table_write(&table, &labels, &err), &err);
    expect_text(&table, HEADER "a.jpg,\"cat;owl, grey\",\"cat;owl, grey\",1,0\n"
                               "b.jpg,,,1,0\n");
    labels.answer.kind = STK_ANSWER_FLAGS; /* a column for each label */
    REQUIRE_OK(stk_val_table_write(&table, &labels, &err), &err);
    expect_text(&table, HEADER "a.jpg,\"cat|owl, grey\",\"cat|owl, grey\",1,0\n"
                               "b.jpg,,,1,0\n");
    stk_targets_free(&labels.targets);

    stk_dataset numbers = {.task = STK_TASK_REGRESSION, .classes = names, .class_count = 2};
    REQUIRE_OK(stk_targets_open_numbers(&numbers.targets, 2, 2, &err), &err);
    numbers.targets.numbers[2] = 0.1F;
    numbers.targets.numbers[0] = -3;
    numbers.targets.numbers[1] = 1e6F;
    REQUIRE_OK(stk_val_table_begin(&table, &numbers, 1, two, 2, &err), &err);
    REQUIRE_OK(stk_val_table_take_earlier(&table, &err), &err);
    stk_sample_results_add_numbers(&table.now, 0, (const float[]){2, 0.5F});
    stk_sample_results_add_numbers(&table.now, 1, (const float[]){7, 8});
    stk_val_table_take_best(&table);
    REQUIRE_OK(stk_val_table_write(&table, &numbers, &err), &err);
    expect_text(&table, HEADER "a.jpg,\"cat|owl, grey\",\"cat|owl, grey\",1,0\n"
                               "b.jpg,,,1,0\n"
                               "a.jpg,0.1 nan,2 0.5,,1\n"
                               "b.jpg,-3 1000000,7 8,,1\n");
    stk_targets_free(&numbers.targets);
    stk_val_table_free(&table);
}

static void table_of_folds(void) {
    stk_error err = {0};
    stk_val_table table = open_table();
    for (int fold = 0; fold < 3; fold++) {
        begin(&table, fold);
        REQUIRE_OK(stk_val_table_take_earlier(&table, &err), &err);
        CHECK(table.others == (fold > 0));
        judge(&table, 0, (size_t)fold, (size_t)fold + 1);
        stk_val_table_take_best(&table);
        REQUIRE_OK(stk_val_table_write(&table, &dataset, &err), &err);
    }
    expect_text(&table, HEADER "a.jpg,cat,cat,0.5,0\n"
                               "\"b \"\"c\"\".jpg\",\"dog, large\",cat,0.25,1\n"
                               "d.jpg,owl,cat,0.25,2\n");
    begin(&table, 1); /* another process goes on within the second fold */
    REQUIRE_OK(stk_val_table_take_earlier(&table, &err), &err);
    REQUIRE_OK(stk_val_table_drop(&table, &err), &err);
    expect_text(&table, HEADER "a.jpg,cat,cat,0.5,0\n");
    begin(&table, 0);
    REQUIRE_OK(stk_val_table_take_earlier(&table, &err), &err);
    CHECK(!table.others);
    REQUIRE_OK(stk_val_table_drop(&table, &err), &err);
    CHECK(!stk_path_is_file(table.path));
    REQUIRE_OK(stk_val_table_drop(&table, &err), &err);
    stk_val_table_free(&table);
}

static void table_that_somebody_changed(void) {
    static const char *const texts[] = {"a,b\n1,2\n", "", HEADER "a,b\n", "path,label\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        stk_error err = {0};
        stk_val_table table = open_table();
        REQUIRE_OK(stk_file_write(table.path, texts[i], strlen(texts[i]), &err), &err);
        begin(&table, 1);
        CHECK_INT(stk_val_table_take_earlier(&table, &err), STK_ERR_DATA);
        CHECK_CONTAINS(err.message, "validation.csv");
        CHECK(!table.others);
        judge(&table, 0, 0, 1); /* it begins anew */
        stk_val_table_take_best(&table);
        err = (stk_error){0};
        REQUIRE_OK(stk_val_table_write(&table, &dataset, &err), &err);
        expect_text(&table, HEADER "a.jpg,cat,cat,0.5,1\n");
        stk_val_table_free(&table);
    }
}

static void table_that_cannot_be_written(void) {
    stk_error err = {0};
    stk_val_table table;
    stk_run_folder folder = {.path = (char *)(uintptr_t) "/there/is/no/such/folder", .lock_fd = -1};
    REQUIRE_OK(stk_val_table_open(&table, &folder, &err), &err);
    begin(&table, 0);
    judge(&table, 0, 0, 3);
    stk_val_table_take_best(&table);
    CHECK_INT(stk_val_table_write(&table, &dataset, &err), STK_ERR_STORAGE);
    CHECK(!table.owed); /* it was tried */
    stk_val_table_free(&table);
}

static void table_without_memory(void) {
    stk_error err = {0};
    stk_val_table table = open_table();
    begin(&table, 0);
    judge(&table, 0, 0, 3);
    stk_val_table_take_best(&table);
    stk_mem_fail_after(0);
    CHECK_INT(stk_val_table_write(&table, &dataset, &err), STK_ERR_MEMORY);
    CHECK_INT(stk_val_table_begin(&table, &dataset, 1, samples, 3, &err), STK_ERR_MEMORY);
    stk_mem_fail_after(-1);
    CHECK(!stk_path_is_file(table.path));
    stk_val_table_free(&table);
}

static const check_test tests[] = {
    TEST(table_of_the_best_epoch),     TEST(table_of_folds),
    TEST(table_that_somebody_changed), TEST(table_that_cannot_be_written),
    TEST(table_without_memory),        TEST(table_of_labels_and_numbers),
};

CHECK_MAIN(tests)
