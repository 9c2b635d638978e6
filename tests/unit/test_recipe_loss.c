/* test_recipe_loss.c - which loss a task is learned with, what is refused, what positives weigh. */
#include "check.h"

#include <math.h>

#include "base/mem.h"
#include "job/recipe/job_options.h"
#include "job/recipe/recipe_loss.h"
#include "loss_golden.h"
#include "train/plain_loss.h"

static stk_error error;

/* A recipe of a task with these values; the options are freed by the caller. */
static stk_recipe recipe_of(stk_options **options, stk_task task, const char *metric,
                            const char *loss, const char *weight) {
    error = (stk_error){0};
    if (stk_options_for_train(options, &error) != STK_OK ||
        stk_options_set(*options, "metric", metric, &error) != STK_OK ||
        stk_options_set(*options, "loss", loss, &error) != STK_OK ||
        stk_options_set(*options, "positive-weight", weight, &error) != STK_OK) {
        printf("%s\n", error.message);
        exit(1);
    }
    stk_recipe recipe = stk_recipe_begin(*options);
    recipe.task = task;
    stk_recipe_expect(&recipe, *options, 5);
    return recipe;
}

static void task_and_metric_choose_the_loss(void) {
    static const struct {
        stk_task task;
        const char *metric, *asked, *name;
        stk_loss loss;
    } cases[] = {
        {STK_TASK_SINGLE, "acc1", "auto", "ce", {.kind = STK_LOSS_SOFTMAX}},
        {STK_TASK_BINARY, "auc", "auto", "ce", {.kind = STK_LOSS_SOFTMAX}},
        {STK_TASK_ORDINAL, "qwk", "auto", "mse", {.kind = STK_LOSS_STEPS}},
        {STK_TASK_ORDINAL, "auto", "auto", "mse", {.kind = STK_LOSS_STEPS}},
        {STK_TASK_ORDINAL, "qwk", "ce", "ce", {.kind = STK_LOSS_SOFTMAX}},
        {STK_TASK_ORDINAL, "logloss", "auto", "ce", {.kind = STK_LOSS_SOFTMAX}},
        {STK_TASK_ORDINAL, "acc1", "mse", "mse", {.kind = STK_LOSS_STEPS}},
        {STK_TASK_SINGLE, "qwk", "auto", "ce", {.kind = STK_LOSS_SOFTMAX}},
        {STK_TASK_MULTILABEL, "micro_f1", "auto", "bce", {.kind = STK_LOSS_SIGMOID}},
        {STK_TASK_MULTILABEL,
         "auc",
         "focal",
         "focal",
         {.kind = STK_LOSS_SIGMOID, .gamma_pos = 2, .gamma_neg = 2}},
        {STK_TASK_MULTILABEL,
         "auc",
         "asymmetric",
         "asymmetric",
         {.kind = STK_LOSS_SIGMOID, .gamma_neg = 4, .margin = 0.05f}},
        {STK_TASK_REGRESSION, "rmse", "auto", "mse", {.kind = STK_LOSS_SQUARED}},
        {STK_TASK_REGRESSION, "r2", "auto", "mse", {.kind = STK_LOSS_SQUARED}},
        {STK_TASK_REGRESSION,
         "mae",
         "auto",
         "huber",
         {.kind = STK_LOSS_HUBER, .huber_delta = 0.5f}},
        {STK_TASK_REGRESSION, "mae", "mae", "mae", {.kind = STK_LOSS_ABSOLUTE}},
        {STK_TASK_REGRESSION, "rmse", "bce", "bce", {.kind = STK_LOSS_SIGMOID}},
    };
    for (size_t i = 0; i < STK_COUNT(cases); i++) {
        stk_options *options = NULL;
        stk_recipe recipe =
            recipe_of(&options, cases[i].task, cases[i].metric, cases[i].asked, "1");
        REQUIRE_OK(stk_recipe_take_loss(&recipe, options, &error), &error);
        CHECK_STR(stk_options_get(options, "loss"), cases[i].name);
        CHECK_INT(recipe.loss.kind, cases[i].loss.kind);
        CHECK_NEAR(recipe.loss.gamma_pos, cases[i].loss.gamma_pos, 0);
        CHECK_NEAR(recipe.loss.gamma_neg, cases[i].loss.gamma_neg, 0);
        CHECK_NEAR(recipe.loss.margin, cases[i].loss.margin, 0);
        CHECK_NEAR(recipe.loss.huber_delta, cases[i].loss.huber_delta, 0);
        bool smoothed = cases[i].task == STK_TASK_SINGLE || cases[i].task == STK_TASK_BINARY;
        CHECK(smoothed || recipe.train.label_smoothing == 0); /* numbers and steps are not */
        stk_options_free(options);
    }
}

static void what_does_not_fit_is_refused(void) {
    static const struct {
        stk_task task;
        const char *loss, *weight, *words;
    } cases[] = {
        {STK_TASK_SINGLE, "bce", "1", "task single, which is learned with one of these: ce"},
        {STK_TASK_RANKING, "mse", "1", "--loss mse does not go with the task ranking"},
        {STK_TASK_ORDINAL, "huber", "1",
         "task ordinal, which is learned with one of these: ce, mse"},
        {STK_TASK_MULTILABEL, "ce", "1", "one of these: bce, focal, asymmetric"},
        {STK_TASK_MULTILABEL, "huber", "1", "--loss huber does not go with the task multilabel"},
        {STK_TASK_REGRESSION, "focal", "1", "one of these: bce, mse, mae, huber"},
        {STK_TASK_REGRESSION, "bce", "2", "--positive-weight is for several labels"},
        {STK_TASK_SINGLE, "auto", "auto", "--positive-weight is for several labels"},
    };
    for (size_t i = 0; i < STK_COUNT(cases); i++) {
        stk_options *options = NULL;
        stk_recipe recipe =
            recipe_of(&options, cases[i].task, "auto", cases[i].loss, cases[i].weight);
        CHECK_INT(stk_recipe_take_loss(&recipe, options, &error), STK_ERR_USAGE);
        CHECK_CONTAINS(error.message, cases[i].words);
        stk_options_free(options);
    }
}

/* Of 40 pictures label 0 has 10, label 1 all, label 2 none, and label 3 one. */
static stk_targets make_targets(void) {
    stk_targets t;
    error = (stk_error){0};
    bool good = stk_targets_open_labels(&t, 4, 40, &error) == STK_OK;
    for (int i = 0; i < 40 && good; i++) {
        good = (i % 4 != 0 || stk_targets_add_label(&t, 0, &error) == STK_OK) &&
               stk_targets_add_label(&t, 1, &error) == STK_OK &&
               (i != 5 || stk_targets_add_label(&t, 3, &error) == STK_OK);
        stk_targets_end_record(&t);
    }
    if (!good || stk_targets_finish(&t, &error) != STK_OK) {
        printf("%s\n", error.message);
        exit(1);
    }
    return t;
}

static void weights_of_positives(void) {
    static const struct {
        const char *given;
        double weights[4];
    } cases[] = {{"auto", {3, 0.05, 20, 20}}, {"2.5", {2.5, 2.5, 2.5, 2.5}}};
    stk_targets t = make_targets();
    float *weights = NULL;
    stk_options *options = NULL;
    for (size_t i = 0; i < STK_COUNT(cases); i++) {
        stk_recipe recipe =
            recipe_of(&options, STK_TASK_MULTILABEL, "auto", "auto", cases[i].given);
        REQUIRE_OK(stk_recipe_weigh_positives(&recipe, &t, &weights, &error), &error);
        REQUIRE(weights != NULL);
        for (int k = 0; k < 4; k++) {
            CHECK_NEAR(weights[k], cases[i].weights[k], 1e-5);
        }
        stk_recipe_take_positive_weights(&recipe, weights);
        stk_recipe_expect(&recipe, options, 7); /* they stay */
        CHECK(recipe.loss.positive_weights == weights);
        stk_mem_free(weights);
        for (int after = 0; after < 2; after++) {
            stk_mem_fail_after(after);
            CHECK_INT(stk_recipe_weigh_positives(&recipe, &t, &weights, NULL), STK_ERR_MEMORY);
            stk_mem_fail_after(-1);
        }
        stk_options_free(options);
    }
    stk_recipe none = recipe_of(&options, STK_TASK_MULTILABEL, "auto", "auto", "1");
    REQUIRE_OK(stk_recipe_weigh_positives(&none, &t, &weights, &error), &error);
    CHECK(weights == NULL);
    stk_options_free(options);
    stk_targets_free(&t);
}

/* Validation counts what training does, but for weights, focus and smoothing. */
static void validation_has_the_golden_losses(void) {
    int checked = 0;
    for (size_t g = 0; g < STK_COUNT(golden_losses); g++) {
        const golden_loss *golden = &golden_losses[g];
        const stk_loss *loss = &golden->loss;
        bool plain = loss->gamma_pos <= 0 && loss->gamma_neg <= 0 && loss->margin <= 0 &&
                     loss->positive_weights == NULL;
        bool smoothed = golden->smoothing > 0 && loss->kind == STK_LOSS_SIGMOID;
        for (int o = 0; plain && !smoothed && o < GOLDEN_OUTPUTS; o++) {
            if (!isnan(golden_targets[o])) {
                double value = stk_plain_loss(loss, golden_logits[o], golden_targets[o]);
                CHECK_NEAR(value, golden->losses[o], 1e-8 * (1 + golden->losses[o]));
                checked++;
            }
        }
    }
    CHECK(checked >= 5 * (GOLDEN_OUTPUTS - 1));
}

static const check_test tests[] = {
    TEST(task_and_metric_choose_the_loss),
    TEST(what_does_not_fit_is_refused),
    TEST(weights_of_positives),
    TEST(validation_has_the_golden_losses),
};

CHECK_MAIN(tests)
