/* test_weights_outputs.c - what a checkpoint keeps of the meaning of its outputs. */
#include "check.h"

#include "base/mem.h"
#include "weights/outputs.h"

static void expect_round_trip(const stk_outputs *outputs, stk_outputs *back) {
    stk_error err = {0};
    stk_str text = {0};
    stk_outputs_append(outputs, &text);
    CHECK(stk_str_ok(&text));
    REQUIRE_OK(stk_outputs_read(stk_str_text(&text), outputs->count, back, &err), &err);
    CHECK_INT(back->task, outputs->task);
    CHECK_INT(back->has_answer, outputs->has_answer);
    stk_str_free(&text);
}

static void labels_come_back(void) {
    bool exclusive[] = {false, true, false};
    stk_outputs labels = {.task = STK_TASK_MULTILABEL,
                          .count = 3,
                          .pictures = 1234567,
                          .exclusive = exclusive,
                          .has_answer = true,
                          .answer = {.kind = STK_ANSWER_LIST, .divider = '"', .stranger = -1}};
    stk_outputs back;
    expect_round_trip(&labels, &back);
    CHECK(back.units == NULL && !back.exclusive[0] && back.exclusive[1] && !back.exclusive[2]);
    CHECK_INT(back.pictures, 1234567);
    CHECK_INT(back.answer.kind, STK_ANSWER_LIST);
    CHECK_INT(back.answer.divider, '"');
    CHECK_INT(back.answer.stranger, -1);
    stk_outputs_free(&back);
}

/* How lists are written, and that numbers are shares. */
static void the_form_of_answers_comes_back(void) {
    stk_outputs lists = {
        .task = STK_TASK_MULTILABEL,
        .count = 2,
        .has_answer = true,
        .answer = {
            .kind = STK_ANSWER_LIST, .divider = ',', .stranger = -1, .bracket = '[', .quote = '"'}};
    stk_outputs back;
    expect_round_trip(&lists, &back);
    CHECK(back.answer.bracket == '[' && back.answer.quote == '"' && !back.answer.shares);
    stk_outputs_free(&back);
    lists.answer = (stk_answer){.kind = STK_ANSWER_NUMBERS, .stranger = -1, .shares = true};
    expect_round_trip(&lists, &back);
    CHECK(back.answer.bracket == '\0' && back.answer.shares);
    stk_outputs_free(&back);
    lists.answer = (stk_answer){.kind = STK_ANSWER_SURE, .stranger = -1};
    expect_round_trip(&lists, &back);
    CHECK_INT(back.answer.kind, STK_ANSWER_SURE);
    stk_outputs_free(&back);
    stk_error err = {0};
    static const char strange[] =
        "{\"task\": \"multilabel\", \"answer\": {\"kind\": \"list\", \"divider\": \",\", \"most\": "
        "0, "
        "\"positive\": 0, \"stranger\": -1, \"bracket\": \"<\", \"quote\": \"ab\"}}";
    REQUIRE_OK(stk_outputs_read(strange, 2, &back, &err), &err);
    CHECK(back.answer.bracket == '\0' && back.answer.quote == '\0');
    stk_outputs_free(&back);
}

static void the_metric_of_the_options_comes_back(void) {
    stk_outputs two = {.task = STK_TASK_BINARY,
                       .count = 2,
                       .has_answer = true,
                       .answer = {.kind = STK_ANSWER_POSITIVE, .stranger = -1}};
    stk_outputs back;
    expect_round_trip(&two, &back);
    CHECK(!back.metric_given);
    stk_outputs_free(&back);
    two.metric_given = true;
    two.metric = STK_METRIC_PF1;
    expect_round_trip(&two, &back);
    CHECK(back.metric_given && back.metric == STK_METRIC_PF1);
    stk_outputs_free(&back);
    stk_error err = {0};
    REQUIRE_OK(stk_outputs_read("{\"task\": \"single\", \"metric\": \"later\"}", 3, &back, &err),
               &err);
    CHECK(!back.metric_given);
    stk_outputs_free(&back);
}

static void numbers_come_back(void) {
    stk_output_unit units[] = {{1, 2, -1, 5}, {0.1, 0.2, 0, 1e9}};
    stk_outputs numbers = {.task = STK_TASK_REGRESSION, .count = 2, .units = units};
    stk_outputs back;
    expect_round_trip(&numbers, &back);
    CHECK(back.exclusive == NULL && !back.has_answer && !back.shares);
    CHECK_NEAR(back.units[1].scale, 0.2, 0);
    CHECK_NEAR(back.units[1].most, 1e9, 0);
    stk_outputs_free(&back);
}

static void shares_of_a_range_come_back(void) {
    stk_output_unit units[] = {{3, 2, 1, 5}, {7, 1, 7, 7}};
    stk_outputs numbers = {.task = STK_TASK_REGRESSION, .count = 2, .units = units, .shares = true};
    static const float logits[][2] = {{0, 4}, {2, -4}, {100, 0}, {-1000, 0}, {NAN, 0}};
    static const double values[] = {3, 1 + 4 / (1 + 0.1353352832366127), 5, 1, 3};
    static const float learned[] = {0.25f, 0};
    stk_outputs back;
    expect_round_trip(&numbers, &back);
    CHECK(back.shares);
    for (size_t i = 0; i < STK_COUNT(values); i++) {
        double value[2];
        stk_outputs_values(&back, logits[i], 1, value);
        CHECK_NEAR(value[0], values[i], 1e-9);
        CHECK_NEAR(value[1], 7, 0); /* there was no other number */
    }
    float restored[2];
    stk_outputs_restore(&back, learned, restored);
    CHECK_NEAR(restored[0], 2, 1e-6);
    CHECK_NEAR(restored[1], 7, 0);
    stk_outputs_free(&back);
}

static void ranked_lists_come_back(void) {
    stk_outputs ranked = {
        .task = STK_TASK_RANKING,
        .count = 4,
        .has_answer = true,
        .answer = {.kind = STK_ANSWER_RANKED, .divider = ' ', .most = 5, .stranger = 3}};
    stk_outputs back;
    expect_round_trip(&ranked, &back);
    CHECK_INT(back.answer.most, 5);
    CHECK_INT(back.answer.stranger, 3);
    stk_outputs_free(&back);
    ranked.answer.most = 2000000000; /* longer than any list that is written */
    expect_round_trip(&ranked, &back);
    CHECK_INT(back.answer.most, 1000);
    stk_outputs_free(&back);
}

static void older_files_tell_less(void) {
    stk_error err = {0};
    stk_outputs back;
    REQUIRE_OK(stk_outputs_read(NULL, 3, &back, &err), &err);
    CHECK(back.task == STK_TASK_AUTO && !back.has_answer);
    REQUIRE_OK(stk_outputs_read("{\"task\": \"single\"}", 3, &back, &err), &err);
    CHECK(back.task == STK_TASK_SINGLE && !back.has_answer);
    CHECK_INT(back.pictures, 0);
    stk_outputs_free(&back);
}

#define ANSWER(kind, divider, most, positive, stranger)                                    \
    "{\"task\": \"ranking\", \"answer\": {\"kind\": \"" kind "\", \"divider\": \"" divider \
    "\", \"most\": " most ", \"positive\": " positive ", \"stranger\": " stranger "}}"

static void damaged_texts_are_refused(void) {
    static const char *const texts[] = {
        "",
        "[]",
        "{\"task\": \"reading\"}",
        "{\"task\": \"multilabel\", \"exclusive\": [3]}",
        "{\"task\": \"multilabel\", \"exclusive\": [-1]}",
        "{\"task\": \"multilabel\", \"exclusive\": [\"a\"]}",
        "{\"task\": \"single\", \"answer\": {}}",
        ANSWER("song", " ", "5", "0", "0"),
        ANSWER("ranked", "ab", "5", "0", "0"),
        ANSWER("ranked", " ", "-1", "0", "0"),
        ANSWER("ranked", " ", "1.5", "0", "0"),
        ANSWER("ranked", " ", "1e300", "0", "0"),
        ANSWER("positive", " ", "5", "3", "0"),
        ANSWER("ranked", " ", "5", "0", "3"),
        ANSWER("ranked", " ", "5", "0", "-2"),
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        stk_error err = {0};
        stk_outputs back;
        if (stk_outputs_read(texts[i], 3, &back, &err) != STK_ERR_DATA) {
            CHECK_FAIL("text %zu was read: %s", i, texts[i]);
        }
    }
    for (int after = 0; after < 3; after++) {
        stk_outputs back;
        stk_mem_fail_after(after);
        CHECK_INT(stk_outputs_read(ANSWER("label", " ", "0", "0", "0"), 3, &back, NULL),
                  STK_ERR_MEMORY);
        stk_mem_fail_after(-1);
    }
}

static const check_test tests[] = {
    TEST(labels_come_back),
    TEST(the_form_of_answers_comes_back),
    TEST(the_metric_of_the_options_comes_back),
    TEST(numbers_come_back),
    TEST(shares_of_a_range_come_back),
    TEST(ranked_lists_come_back),
    TEST(older_files_tell_less),
    TEST(damaged_texts_are_refused),
};

CHECK_MAIN(tests)
