/* test_metric_words.c - metrics found in prose, in the manner of competitions' descriptions. */
#include "check.h"

#include "base/mem.h"
#include "base/str.h"
#include "metrics/metric_words.h"

static const char *name_in(const char *text, stk_task task) {
    return stk_metric_info_of(stk_metric_find_in_text(text, task).metric)->name;
}

static void phrases_of_every_metric(void) {
    static const struct {
        stk_task task;
        const char *sentence;
        const char *name;
    } cases[] = {
        {STK_TASK_BINARY, "We score entries by the area under the ROC curve of the answers.",
         "auc"},
        {STK_TASK_BINARY, "The metric is ROC-AUC.", "auc"},
        {STK_TASK_SINGLE, "Entries are evaluated with the mean column-wise ROC AUC.", "auc_macro"},
        {STK_TASK_MULTILABEL, "Evaluated by mean *column-wise*\nROC AUC, as usual.", "auc_macro"},
        {STK_TASK_BINARY, "Entries are judged by a weighted AUC; small alarms matter.",
         "weighted_auc"},
        {STK_TASK_SINGLE, "Scores are the multi class log loss of your table.", "logloss"},
        {STK_TASK_SINGLE, "We use the multi-class logarithmic loss.", "logloss"},
        {STK_TASK_BINARY, "Ranked by log-loss.", "logloss"},
        {STK_TASK_ORDINAL, "The quadratic weighted kappa compares two raters.", "qwk"},
        {STK_TASK_SINGLE, "Entries are evaluated with the macro F1 score.", "macro_f1"},
        {STK_TASK_SINGLE, "macro-averaged F1 decides", "macro_f1"},
        {STK_TASK_SINGLE, "The F1 score (macro averaged) decides.", "macro_f1"},
        {STK_TASK_SINGLE, "Score: average of the per-class F1 (macro-averaged).", "macro_f1"},
        {STK_TASK_SINGLE, "macro-averaged F1", "macro_f1"},
        {STK_TASK_MULTILABEL, "the mean per-class F1 over all frogs", "macro_f1"},
        {STK_TASK_MULTILABEL, "F1 (macro-averaged)", "macro_f1"},
        {STK_TASK_MULTILABEL, "F1-macro", "macro_f1"},
        {STK_TASK_MULTILABEL, "macro F1-score", "macro_f1"},
        {STK_TASK_MULTILABEL, "a macro averaged F-score", "macro_f1"},
        {STK_TASK_MULTILABEL, "F1 score, macro", "macro_f1"},
        {STK_TASK_MULTILABEL, "the average of the F1 scores of each class", "macro_f1"},
        {STK_TASK_MULTILABEL, "class-wise F1", "macro_f1"},
        {STK_TASK_SINGLE, "F1 (micro-averaged)", "micro_f1"},
        {STK_TASK_SINGLE, "Each class has an F1 tractor.", "auto"},
        {STK_TASK_MULTILABEL, "The metric of this challenge is Mean F1-Score.", "micro_f1"},
        {STK_TASK_MULTILABEL, "Evaluated with the micro averaged F1 score.", "micro_f1"},
        {STK_TASK_MULTILABEL, "The mean F1 over all samples decides.", "samples_f1"},
        {STK_TASK_MULTILABEL, "Evaluated with F1 scores, micro-averaged.", "micro_f1"},
        {STK_TASK_BINARY, "A probabilistic F1 score (pF1) is used.", "pf1"},
        {STK_TASK_SINGLE, "Entries are evaluated by their categorization accuracy.", "acc1"},
        {STK_TASK_SINGLE, "classification accuracy", "acc1"},
        {STK_TASK_SINGLE, "Evaluated by accuracy.", "acc1"},
        {STK_TASK_SINGLE, "This year the top-1 classification error counts.", "error"},
        {STK_TASK_SINGLE, "We rank by top-1 error", "error"},
        {STK_TASK_SINGLE, "The top-5 accuracy counts.", "acc5"},
        {STK_TASK_REGRESSION, "Scored by the Root Mean Squared Error.", "rmse"},
        {STK_TASK_REGRESSION, "scored on RMSE", "rmse"},
        {STK_TASK_REGRESSION, "mean absolute error", "mae"},
        {STK_TASK_REGRESSION, "The metric is R^2.", "r2"},
        {STK_TASK_REGRESSION, "The metric is R\xC2\xB2.", "r2"},
        {STK_TASK_REGRESSION, "The metric is the R2 score.", "r2"},
        {STK_TASK_SINGLE, "Whoever photographs the most birds wins.", "auto"},
        {STK_TASK_SINGLE, "", "auto"},
        {STK_TASK_SINGLE, "A map of 5 lakes, an accuracy of 3 m, and R2 the robot.", "auto"},
        {STK_TASK_SINGLE, "the f10 score, aucs of a raucous logjam", "auto"},
    };
    for (size_t i = 0; i < STK_COUNT(cases); i++) {
        const char *name = name_in(cases[i].sentence, cases[i].task);
        if (strcmp(name, cases[i].name) != 0) {
            CHECK_FAIL("\"%s\" gives %s", cases[i].sentence, name);
        }
    }
}

static void kaggles_own_words(void) {
    static const struct {
        stk_task task;
        const char *sentence;
        const char *name;
    } cases[] = {
        {STK_TASK_MULTILABEL, "Submissions are evaluated on the mean columnwise ROC AUC.",
         "auc_macro"},
        {STK_TASK_ORDINAL, "Submissions are scored using the quadratic weighted kappa.", "qwk"},
        {STK_TASK_BINARY,
         "Submissions are evaluated on area under the receiver operating characteristic curve",
         "auc"},
        {STK_TASK_SINGLE, "Submissions are evaluated on the accuracy of their predictions.",
         "acc1"},
        {STK_TASK_SINGLE, "## Evaluation\n\nF-measure", "macro_f1"},
        {STK_TASK_SINGLE, "## Metric\n\nAccuracy\n", "acc1"},
        {STK_TASK_REGRESSION, "coefficient of determination", "r2"},
        {STK_TASK_REGRESSION, "mean columnwise root mean squared error (MCRMSE)", "rmse"},
        {STK_TASK_SINGLE, "Scored by balanced accuracy.", "balanced_acc"},
        {STK_TASK_SINGLE, "The metric is the mean per-class accuracy.", "balanced_acc"},
        {STK_TASK_SINGLE, "balanced multi-class accuracy", "balanced_acc"},
        {STK_TASK_SINGLE, "Macro-averaged recall decides.", "balanced_acc"},
        {STK_TASK_BINARY, "Matthews correlation coefficient", "mcc"},
        {STK_TASK_BINARY, "Matthew's correlation", "mcc"},
        {STK_TASK_BINARY, "Evaluated by MCC.", "mcc"},
    };
    for (size_t i = 0; i < STK_COUNT(cases); i++) {
        stk_metric_mention found = stk_metric_find_in_text(cases[i].sentence, cases[i].task);
        const char *name = stk_metric_info_of(found.metric)->name;
        if (strcmp(name, cases[i].name) != 0 || stk_metric_is_nearest(found.metric, found.phrase)) {
            CHECK_FAIL("\"%s\" gives %s", cases[i].sentence, name);
        }
    }
}

/* What Stoker does not compute has a nearest metric, and is known to be something else. */
static void others_have_a_nearest_metric(void) {
    static const struct {
        stk_task task;
        const char *sentence;
        const char *name;
        const char *phrase;
    } cases[] = {
        {STK_TASK_MULTILABEL, "evaluated by their mean F2 score", "samples_f1", "mean F2 score"},
        {STK_TASK_MULTILABEL, "The F2 score decides.", "micro_f1", "F2 score"},
        {STK_TASK_MULTILABEL, "the micro-averaged mean F2", "micro_f1", "mean F2"},
        {STK_TASK_MULTILABEL, "F-beta, beta = 2, macro-averaged", "macro_f1", "F-beta"},
        {STK_TASK_SINGLE, "the $F_{\\beta}$ score", "macro_f1", "F_{\\beta}$ score"},
        {STK_TASK_SINGLE, "Scored by F0.5.", "macro_f1", "F0.5"},
        {STK_TASK_SINGLE, "the weighted F1 score", "micro_f1", "weighted F1"},
        {STK_TASK_MULTILABEL, "balanced accuracy", "macro_f1", "balanced accuracy"},
        {STK_TASK_MULTILABEL, "scored by MCC", "micro_f1", "MCC"},
        {STK_TASK_BINARY, "the Brier score", "logloss", "Brier score"},
        {STK_TASK_SINGLE, "Kullback-Leibler divergence", "logloss", "Kullback-Leibler divergence"},
        {STK_TASK_SINGLE, "Kullback\xE2\x80\x93Leibler divergence", "logloss",
         "Kullback\xE2\x80\x93Leibler divergence"},
        {STK_TASK_SINGLE, "weighted log loss", "logloss", "weighted log loss"},
        {STK_TASK_ORDINAL, "linearly weighted kappa", "qwk", "linearly weighted kappa"},
        {STK_TASK_REGRESSION, "mean squared error", "rmse", "mean squared error"},
        {STK_TASK_REGRESSION, "scored by the MSE", "rmse", "MSE"},
        {STK_TASK_REGRESSION, "Root Mean Squared Logarithmic Error (RMSLE)", "rmse",
         "Root Mean Squared Logarithmic Error"},
        {STK_TASK_REGRESSION, "mean absolute percentage error", "mae",
         "mean absolute percentage error"},
        {STK_TASK_REGRESSION, "SMAPE", "mae", "SMAPE"},
        {STK_TASK_REGRESSION, "Pearson correlation coefficient", "r2",
         "Pearson correlation coefficient"},
        {STK_TASK_REGRESSION, "Spearman\xE2\x80\x99s rank correlation", "r2",
         "Spearman\xE2\x80\x99s rank correlation"},
        {STK_TASK_REGRESSION, "concordance index", "r2", "concordance index"},
        {STK_TASK_MULTILABEL, "mean average precision (mAP) over the classes", "auc_macro",
         "mean average precision"},
        {STK_TASK_BINARY, "average precision", "auc_macro", "average precision"},
        {STK_TASK_BINARY, "area under the precision-recall curve", "auc_macro",
         "area under the precision-recall"},
        {STK_TASK_SINGLE, "Global Average Precision (GAP)", "acc1", "Global Average Precision"},
        {STK_TASK_SINGLE, "the top-5 error", "acc5", "top-5 error"},
        {STK_TASK_RANKING, "NDCG@5", "mapk", "NDCG"},
    };
    for (size_t i = 0; i < STK_COUNT(cases); i++) {
        stk_metric_mention found = stk_metric_find_in_text(cases[i].sentence, cases[i].task);
        const char *name = stk_metric_info_of(found.metric)->name;
        if (strcmp(name, cases[i].name) != 0 || strcmp(found.phrase, cases[i].phrase) != 0 ||
            !stk_metric_is_nearest(found.metric, found.phrase)) {
            CHECK_FAIL("\"%s\" gives %s for \"%s\"", cases[i].sentence, name, found.phrase);
        }
    }
    CHECK(!stk_metric_is_nearest(STK_METRIC_ACC1, "--metric acc1"));
    CHECK(!stk_metric_is_nearest(STK_METRIC_ACC1, ""));
    CHECK(!stk_metric_is_nearest(STK_METRIC_AUC_MACRO, "area under the ROC"));
    /* Masks and boxes are rated by nothing that Stoker has. */
    CHECK_STR(name_in("the mean Dice coefficient", STK_TASK_AUTO), "auto");
    CHECK_STR(name_in("mean average precision at several IoU thresholds", STK_TASK_AUTO), "auto");
}

/* Words that only explain count less than a metric that is named. */
static void explanations_count_less(void) {
    static const struct {
        const char *text;
        const char *name;
    } cases[] = {
        {"## Evaluation\n\nSubmissions will be evaluated based on their mean F2 score. The F "
         "score, "
         "commonly used in information retrieval, measures accuracy using the precision p and "
         "recall r.",
         "macro_f1"},
        {"The F score is a metric that measures accuracy using precision and recall. Submissions "
         "are scored with log loss.",
         "logloss"},
        {"## Evaluation\n\nThe accuracy of the model matters.\n\n# Rules\n\nEntries are scored by "
         "AUC.",
         "auc"},
        {"## Evaluation\n\nModels are evaluated for accuracy using the F1-score.", "macro_f1"},
        {"## Evaluation\n\nYour model's accuracy will be evaluated on hidden pictures. The metric "
         "is macro F1.",
         "macro_f1"},
        {"## Evaluation\n\nEvaluated by accuracy. Ties are broken by log loss.", "acc1"},
        {"## Evaluation\n\nEvaluated by accuracy; log loss is told, too.", "acc1"},
        {"## Evaluation\n\nEvaluated by accuracy as well as log loss.", "acc1"},
        {"## Evaluation\n\nEvaluated for accuracy, measured by the log loss.", "logloss"},
        {"## Evaluation\n\nThe accuracy of the answers.", "acc1"},
        {"The metric measures accuracy.", "acc1"},
        {"## Evaluation\n\nThe team achieving the highest accuracy wins.", "acc1"},
        {"## Evaluation\n\nThe Hausdorff distance measures accuracy.", "auto"},
    };
    for (size_t i = 0; i < STK_COUNT(cases); i++) {
        const char *name = name_in(cases[i].text, STK_TASK_SINGLE);
        if (strcmp(name, cases[i].name) != 0) {
            CHECK_FAIL("\"%s\" gives %s", cases[i].text, name);
        }
    }
}

/* A mean average precision is that of lists where something says how long they are. */
static void lists_or_columns(void) {
    static const struct {
        const char *text;
        stk_metric metric;
        int k;
        bool is_open;
    } cases[] = {
        {"Evaluated by the mean average precision over the classes.", STK_METRIC_AUC_MACRO, 0,
         true},
        {"The metric is mAP.", STK_METRIC_AUC_MACRO, 0, true},
        {"Evaluated by the mean average precision at 3.", STK_METRIC_MAPK, 3, false},
        {"The mean average precision decides. Name up to five classes.", STK_METRIC_MAPK, 5, false},
        {"You may make at most 3 different guesses. mean average precision", STK_METRIC_MAPK, 3,
         false},
        {"The list of ten classes is long. mean average precision", STK_METRIC_AUC_MACRO, 0, true},
        {"Up to 3 of them may win. mean average precision", STK_METRIC_AUC_MACRO, 0, true},
        {"Up to 300 labels. mean average precision", STK_METRIC_AUC_MACRO, 0, true},
        {"MAP@K", STK_METRIC_MAPK, 0, false},
        {"NDCG", STK_METRIC_MAPK, 0, true},
        {"Evaluated by a map.", STK_METRIC_AUTO, 0, false},
    };
    for (size_t i = 0; i < STK_COUNT(cases); i++) {
        stk_metric_mention found = stk_metric_find_in_text(cases[i].text, STK_TASK_AUTO);
        if (found.metric != cases[i].metric || found.k != cases[i].k ||
            found.is_open != cases[i].is_open) {
            CHECK_FAIL("\"%s\" gives %s of %d", cases[i].text,
                       stk_metric_info_of(found.metric)->name, found.k);
        }
    }
    CHECK_STR(name_in("Evaluated by the mean average precision at 3.", STK_TASK_BINARY), "auto");
}

static void lists_have_a_length(void) {
    static const struct {
        const char *text;
        int k;
    } cases[] = {
        {"Evaluated by the Mean Average Precision @ 5 (MAP@5):", 5},
        {"Evaluated with MAP@3.", 3},
        {"mean average precision at 10", 10},
        {"mean average precision for the top 7", 7},
        {"Mean Average Precision (MAP@12)", 12},
        {"MAP@K over all pictures", 0},
        {"mean average precision of 5 experts", 0},
        {"MAP@99999999999999999999", 0},
    };
    for (size_t i = 0; i < STK_COUNT(cases); i++) {
        stk_metric_mention found = stk_metric_find_in_text(cases[i].text, STK_TASK_RANKING);
        CHECK_INT(found.metric, STK_METRIC_MAPK);
        if (found.k != cases[i].k) {
            CHECK_FAIL("\"%s\" gives %d", cases[i].text, found.k);
        }
    }
}

static const char lilies[] =
    "# Lilies of the pond\n\n## Description\n\nLast year's models reached a classification "
    "accuracy "
    "of 93 %, and their log loss was small. A good curator has an area under the ROC curve close "
    "to "
    "one.\n\n## Evaluation\n\nThere is no prize for log loss. Submissions are evaluated with the "
    "**quadratic weighted\nkappa** of the answers and the botanist's own grades. Unlike plain "
    "accuracy, it forgives small mistakes.\n\n### Submission file\n\nFor each picture give a "
    "grade.\n\n## Prizes\n\nThe best macro F1 score also wins a lamp; it is evaluated by hand.\n";

static void section_on_evaluation_counts_most(void) {
    stk_metric_mention found = stk_metric_find_in_text(lilies, STK_TASK_SINGLE);
    CHECK_INT(found.metric, STK_METRIC_QWK);
    CHECK(found.in_evaluation);
    CHECK_STR(found.phrase, "quadratic weighted kappa");
    /* Kappa rates no ranking: the section has nothing, and another sentence speaks of evaluating.
     */
    found = stk_metric_find_in_text(lilies, STK_TASK_RANKING);
    CHECK_INT(found.metric, STK_METRIC_MACRO_F1);
    CHECK_INT(stk_metric_find_in_text(lilies, STK_TASK_AUTO).metric, STK_METRIC_QWK);
    CHECK_INT(stk_metric_find_in_text(lilies, STK_TASK_REGRESSION).metric, STK_METRIC_AUTO);
}

static void other_forms_of_headings(void) {
    static const char *const texts[] = {
        "About\n\nOld boats: RMSE 3.\n\nEvaluation\n\nThe mean absolute error decides.\n",
        "# About\nRMSE\n\n**Evaluation**\n\nThe mean absolute error decides.\n",
        "RMSE\n### Evaluation metric: mean absolute error\n",
        "RMSE\nEVALUATION:\nmean absolute error",
        "RMSE\n\nEvaluation\n----------\nmean absolute error\n",
    };
    for (size_t i = 0; i < STK_COUNT(texts); i++) {
        stk_metric_mention found = stk_metric_find_in_text(texts[i], STK_TASK_REGRESSION);
        CHECK_INT(found.metric, STK_METRIC_MAE);
        CHECK(found.in_evaluation);
    }
    /* A line of prose is no heading. */
    stk_metric_mention found = stk_metric_find_in_text(
        "evaluation of boats is an art of its own\nRMSE\n", STK_TASK_REGRESSION);
    CHECK(!found.in_evaluation && found.metric == STK_METRIC_RMSE);
}

static void denied_metrics_do_not_count(void) {
    CHECK_STR(name_in("Evaluated by AUC instead of log loss.", STK_TASK_BINARY), "auc");
    CHECK_STR(name_in("Instead of log loss we use AUC as the metric.", STK_TASK_BINARY), "auc");
    CHECK_STR(name_in("The metric is not accuracy but AUC.", STK_TASK_BINARY), "auc");
    CHECK_STR(
        name_in("Rather than the usual log loss, entries are scored by AUC.", STK_TASK_BINARY),
        "auc");
    CHECK_STR(name_in("Note log loss is the metric.", STK_TASK_BINARY), "logloss");
    CHECK_STR(name_in("This is not scored by log loss.", STK_TASK_BINARY), "auto");
    CHECK_STR(name_in("Not the per-class F1 counts, but the log loss.", STK_TASK_SINGLE),
              "logloss");
    CHECK_STR(name_in("It is not F1 (macro-averaged).", STK_TASK_SINGLE), "auto");
}

static void odd_texts(void) {
    enum { LENGTH = 1 << 20 };
    char *text = stk_mem_new(LENGTH + 1, 1);
    REQUIRE(text != NULL);
    for (int i = 0; i < LENGTH; i++) {
        text[i] = "auc "[i % 4];
    }
    CHECK_STR(name_in(text, STK_TASK_BINARY), "auto"); /* vague, and no word of evaluating */
    memset(text, '#', LENGTH);
    CHECK_STR(name_in(text, STK_TASK_BINARY), "auto");
    memset(text, 'E', LENGTH);
    CHECK_STR(name_in(text, STK_TASK_BINARY), "auto");
    stk_mem_free(text);
    CHECK_STR(name_in("## Evaluation", STK_TASK_BINARY), "auto");
    CHECK_STR(name_in("\xFF\xFE log\xC3 loss log  \t loss", STK_TASK_BINARY), "logloss");
    CHECK_STR(name_in("log\n\nloss", STK_TASK_BINARY), "auto"); /* another paragraph */
    stk_metric_mention found =
        stk_metric_find_in_text("mean *** column *** wise *** roc *** auc", STK_TASK_MULTILABEL);
    CHECK_INT(found.metric, STK_METRIC_AUC_MACRO);
    CHECK(strlen(found.phrase) < sizeof found.phrase);
}

static const check_test tests[] = {
    TEST(phrases_of_every_metric),
    TEST(lists_have_a_length),
    TEST(kaggles_own_words),
    TEST(others_have_a_nearest_metric),
    TEST(explanations_count_less),
    TEST(lists_or_columns),
    TEST(section_on_evaluation_counts_most),
    TEST(other_forms_of_headings),
    TEST(denied_metrics_do_not_count),
    TEST(odd_texts),
};

CHECK_MAIN(tests)
