/*
 * metric_phrases.c - the phrases for metrics, and how they match.
 *
 * A phrase matches word by word; what stands between two words (blanks, hyphens, brackets,
 * asterisks) does not matter. Of those that begin at the same word the longest counts, and of equal
 * ones the first that can rate the task.
 */
#include "metrics/metric_phrases.h"

#include <ctype.h>
#include <string.h>

/* Bytes between two words of a phrase at most. */
#define MOST_BETWEEN 8

enum {
    SURE = 0,
    VAGUE = STK_PHRASE_VAGUE,
    NEAR = STK_PHRASE_NEAR,
    OPEN = STK_PHRASE_OPEN,
    LISTED = STK_PHRASE_LISTED,
    UNLISTED = STK_PHRASE_UNLISTED
};

/* Of several labels Stoker does not compute these. */
#define PER_CLASS(words)                      \
    {words, STK_METRIC_BALANCED_ACC, SURE}, { \
        words, STK_METRIC_MACRO_F1, NEAR      \
    }
#define MATTHEWS(words)                  \
    {words, STK_METRIC_MCC, SURE}, {     \
        words, STK_METRIC_MICRO_F1, NEAR \
    }

static const stk_metric_phrase phrases[] = {
    {"mean column wise roc auc", STK_METRIC_AUC_MACRO, SURE},
    {"mean column wise auc", STK_METRIC_AUC_MACRO, SURE},
    {"column wise mean roc auc", STK_METRIC_AUC_MACRO, SURE},
    {"column averaged roc auc", STK_METRIC_AUC_MACRO, SURE},
    {"mean columnwise roc auc", STK_METRIC_AUC_MACRO, SURE},
    {"mean columnwise auc", STK_METRIC_AUC_MACRO, SURE},
    {"columnwise mean roc auc", STK_METRIC_AUC_MACRO, SURE},
    {"macro averaged auc", STK_METRIC_AUC_MACRO, SURE},
    {"macro auc", STK_METRIC_AUC_MACRO, SURE},
    {"auc macro", STK_METRIC_AUC_MACRO, SURE},
    {"mean area under the", STK_METRIC_AUC_MACRO, SURE},
    {"macro averaged roc auc", STK_METRIC_AUC_MACRO, SURE},
    {"mean roc auc", STK_METRIC_AUC_MACRO, SURE},
    {"mean auc", STK_METRIC_AUC_MACRO, SURE},
    {"average auc", STK_METRIC_AUC_MACRO, SURE},
    {"weighted auc", STK_METRIC_WEIGHTED_AUC, SURE},
    {"weighted area under the", STK_METRIC_WEIGHTED_AUC, SURE},
    {"area under the roc", STK_METRIC_AUC, SURE},
    {"area under roc", STK_METRIC_AUC, SURE},
    {"area under the receiver operating characteristic", STK_METRIC_AUC, SURE},
    {"area under receiver operating characteristic", STK_METRIC_AUC, SURE},
    {"area under the receiver operator", STK_METRIC_AUC, SURE},
    {"area under receiver operator", STK_METRIC_AUC, SURE},
    {"area under the curve", STK_METRIC_AUC, VAGUE},
    {"roc auc", STK_METRIC_AUC, SURE},
    {"auc roc", STK_METRIC_AUC, SURE},
    {"auroc", STK_METRIC_AUC, SURE},
    {"auc", STK_METRIC_AUC, VAGUE},
    {"log loss", STK_METRIC_LOGLOSS, SURE},
    {"logloss", STK_METRIC_LOGLOSS, SURE},
    {"logarithmic loss", STK_METRIC_LOGLOSS, SURE},
    {"cross entropy", STK_METRIC_LOGLOSS, VAGUE},
    {"quadratic weighted kappa", STK_METRIC_QWK, SURE},
    {"quadratically weighted kappa", STK_METRIC_QWK, SURE},
    {"weighted kappa", STK_METRIC_QWK, SURE},
    {"kappa", STK_METRIC_QWK, VAGUE},
    {"probabilistic f1", STK_METRIC_PF1, SURE},
    {"probabilistic f 1", STK_METRIC_PF1, SURE},
    {"probabilistic f score", STK_METRIC_PF1, SURE},
    {"pf1", STK_METRIC_PF1, SURE},
    {"macro f1", STK_METRIC_MACRO_F1, SURE},
    {"macro f 1", STK_METRIC_MACRO_F1, SURE},
    {"macro averaged f1", STK_METRIC_MACRO_F1, SURE},
    {"macro average f1", STK_METRIC_MACRO_F1, SURE},
    {"macro f score", STK_METRIC_MACRO_F1, SURE},
    {"macro averaged f score", STK_METRIC_MACRO_F1, SURE},
    {"f1 macro", STK_METRIC_MACRO_F1, SURE},
    {"f 1 macro", STK_METRIC_MACRO_F1, SURE},
    {"per class f1", STK_METRIC_MACRO_F1, SURE},
    {"per class f 1", STK_METRIC_MACRO_F1, SURE},
    {"class wise f1", STK_METRIC_MACRO_F1, SURE},
    {"classwise f1", STK_METRIC_MACRO_F1, SURE},
    {"f1 score of each class", STK_METRIC_MACRO_F1, SURE},
    {"f1 of each class", STK_METRIC_MACRO_F1, SURE},
    {"f1 micro", STK_METRIC_MICRO_F1, SURE},
    {"f 1 micro", STK_METRIC_MICRO_F1, SURE},
    {"micro f1", STK_METRIC_MICRO_F1, SURE},
    {"micro f 1", STK_METRIC_MICRO_F1, SURE},
    {"micro averaged f1", STK_METRIC_MICRO_F1, SURE},
    {"micro average f1", STK_METRIC_MICRO_F1, SURE},
    {"samples f1", STK_METRIC_SAMPLES_F1, SURE},
    {"sample averaged f1", STK_METRIC_SAMPLES_F1, SURE},
    {"example based f1", STK_METRIC_SAMPLES_F1, SURE},
    {"mean f1", STK_METRIC_AUTO, SURE},
    {"mean f score", STK_METRIC_AUTO, SURE},
    {"average f1", STK_METRIC_AUTO, SURE},
    {"f1 score", STK_METRIC_AUTO, SURE},
    {"f1 measure", STK_METRIC_AUTO, SURE},
    {"f measure", STK_METRIC_AUTO, VAGUE},
    {"f score", STK_METRIC_AUTO, VAGUE},
    {"f 1 measure", STK_METRIC_AUTO, SURE},
    {"f 1 score", STK_METRIC_AUTO, SURE},
    {"f1", STK_METRIC_AUTO, VAGUE},
    {"f 1", STK_METRIC_AUTO, VAGUE},
    {"categorization accuracy", STK_METRIC_ACC1, SURE},
    {"categorisation accuracy", STK_METRIC_ACC1, SURE},
    {"classification accuracy", STK_METRIC_ACC1, SURE},
    {"subset accuracy", STK_METRIC_ACC1, SURE},
    {"exact match ratio", STK_METRIC_ACC1, SURE},
    {"top 1 accuracy", STK_METRIC_ACC1, SURE},
    {"accuracy", STK_METRIC_ACC1, VAGUE},
    {"top 5 accuracy", STK_METRIC_ACC5, SURE},
    {"top 1 error", STK_METRIC_ERROR, SURE},
    {"top 1 classification error", STK_METRIC_ERROR, SURE},
    {"classification error", STK_METRIC_ERROR, SURE},
    {"categorization error", STK_METRIC_ERROR, SURE},
    {"misclassification rate", STK_METRIC_ERROR, SURE},
    {"error rate", STK_METRIC_ERROR, VAGUE},
    {"root mean squared error", STK_METRIC_RMSE, SURE},
    {"root mean square error", STK_METRIC_RMSE, SURE},
    {"mcrmse", STK_METRIC_RMSE, SURE},
    {"rmse", STK_METRIC_RMSE, SURE},
    {"mean absolute error", STK_METRIC_MAE, SURE},
    {"mae", STK_METRIC_MAE, VAGUE},
    {"coefficient of determination", STK_METRIC_R2, SURE},
    {"r 2", STK_METRIC_R2, VAGUE},
    {"r2", STK_METRIC_R2, VAGUE},
    {"r squared", STK_METRIC_R2, VAGUE},
    {"r\xC2\xB2", STK_METRIC_R2, VAGUE},
    PER_CLASS("balanced accuracy"),
    PER_CLASS("balanced classification accuracy"),
    PER_CLASS("balanced multi class accuracy"),
    PER_CLASS("balanced multiclass accuracy"),
    PER_CLASS("normalized multi class accuracy"),
    PER_CLASS("normalized multiclass accuracy"),
    PER_CLASS("mean per class accuracy"),
    PER_CLASS("average per class accuracy"),
    PER_CLASS("averaged per class accuracy"),
    PER_CLASS("per class accuracy"),
    PER_CLASS("per class mean accuracy"),
    PER_CLASS("class wise accuracy"),
    PER_CLASS("classwise accuracy"),
    PER_CLASS("mean class accuracy"),
    PER_CLASS("mean class wise accuracy"),
    PER_CLASS("average class accuracy"),
    PER_CLASS("class averaged accuracy"),
    PER_CLASS("class average accuracy"),
    PER_CLASS("class balanced accuracy"),
    PER_CLASS("accuracy per class"),
    PER_CLASS("accuracy of each class"),
    PER_CLASS("accuracy averaged over classes"),
    PER_CLASS("accuracy averaged over the classes"),
    PER_CLASS("accuracy averaged over all classes"),
    PER_CLASS("accuracy averaged across classes"),
    PER_CLASS("macro accuracy"),
    PER_CLASS("macro averaged accuracy"),
    PER_CLASS("macro average accuracy"),
    PER_CLASS("macro recall"),
    PER_CLASS("macro averaged recall"),
    PER_CLASS("macro average recall"),
    PER_CLASS("recall macro"),
    PER_CLASS("mean recall"),
    PER_CLASS("average recall"),
    PER_CLASS("unweighted average recall"),
    PER_CLASS("mean per class recall"),
    PER_CLASS("average per class recall"),
    PER_CLASS("per class recall"),
    PER_CLASS("recall of each class"),
    PER_CLASS("mean class recall"),
    MATTHEWS("matthew correlation coefficient"),
    MATTHEWS("matthew correlation"),
    MATTHEWS("phi coefficient"),
    {"mcc", STK_METRIC_MCC, VAGUE},
    {"mcc", STK_METRIC_MICRO_F1, VAGUE | NEAR},
    /* A ranked list where something says how long it is, otherwise a figure of columns. */
    {"mean average precision", STK_METRIC_MAPK, LISTED},
    {"mean average precision", STK_METRIC_AUC_MACRO, NEAR | OPEN | UNLISTED},
    {"average precision", STK_METRIC_MAPK, LISTED},
    {"average precision", STK_METRIC_AUC_MACRO, NEAR | UNLISTED},
    {"MAP", STK_METRIC_MAPK, VAGUE | LISTED},
    {"MAP", STK_METRIC_AUC_MACRO, VAGUE | NEAR | OPEN | UNLISTED},
    {"mAP", STK_METRIC_MAPK, VAGUE | LISTED},
    {"mAP", STK_METRIC_AUC_MACRO, VAGUE | NEAR | OPEN | UNLISTED},
    {"map at", STK_METRIC_MAPK, SURE},
    /* Only near. */
    {"average precision score", STK_METRIC_AUC_MACRO, NEAR},
    {"macro average precision", STK_METRIC_AUC_MACRO, NEAR},
    {"macro averaged average precision", STK_METRIC_AUC_MACRO, NEAR},
    {"macro averaged mean average precision", STK_METRIC_AUC_MACRO, NEAR},
    {"class wise mean average precision", STK_METRIC_AUC_MACRO, NEAR},
    {"classwise mean average precision", STK_METRIC_AUC_MACRO, NEAR},
    {"label ranking average precision", STK_METRIC_AUC_MACRO, NEAR},
    {"area under the precision recall", STK_METRIC_AUC_MACRO, NEAR},
    {"area under precision recall", STK_METRIC_AUC_MACRO, NEAR},
    {"precision recall auc", STK_METRIC_AUC_MACRO, NEAR},
    {"pr auc", STK_METRIC_AUC_MACRO, NEAR},
    {"auc pr", STK_METRIC_AUC_MACRO, NEAR},
    {"prauc", STK_METRIC_AUC_MACRO, NEAR},
    {"auprc", STK_METRIC_AUC_MACRO, NEAR},
    {"auc prc", STK_METRIC_AUC_MACRO, NEAR},
    {"lwlrap", STK_METRIC_AUC_MACRO, NEAR},
    {"global average precision", STK_METRIC_ACC1, NEAR},
    {"GAP", STK_METRIC_ACC1, VAGUE | NEAR},
    {"normalized discounted cumulative gain", STK_METRIC_MAPK, NEAR | OPEN},
    {"normalised discounted cumulative gain", STK_METRIC_MAPK, NEAR | OPEN},
    {"discounted cumulative gain", STK_METRIC_MAPK, NEAR | OPEN},
    {"ndcg", STK_METRIC_MAPK, NEAR | OPEN},
    {"mean reciprocal rank", STK_METRIC_MAPK, NEAR | OPEN},
    {"mrr", STK_METRIC_MAPK, NEAR | OPEN},
    {"top 2 accuracy", STK_METRIC_ACC5, NEAR},
    {"top 3 accuracy", STK_METRIC_ACC5, NEAR},
    {"top 10 accuracy", STK_METRIC_ACC5, NEAR},
    {"top 3 error", STK_METRIC_ACC5, NEAR},
    {"top 3 classification error", STK_METRIC_ACC5, NEAR},
    {"top 5 error", STK_METRIC_ACC5, NEAR},
    {"top 5 classification error", STK_METRIC_ACC5, NEAR},
    {"top five error", STK_METRIC_ACC5, NEAR},
    {"brier score", STK_METRIC_LOGLOSS, NEAR},
    {"brier", STK_METRIC_LOGLOSS, NEAR},
    {"brier loss", STK_METRIC_LOGLOSS, NEAR},
    {"kullback leibler divergence", STK_METRIC_LOGLOSS, NEAR},
    {"kullback leibler", STK_METRIC_LOGLOSS, NEAR},
    {"kullback\xE2\x80\x93leibler divergence", STK_METRIC_LOGLOSS, NEAR},
    {"kullback\xE2\x80\x93leibler", STK_METRIC_LOGLOSS, NEAR},
    {"kl divergence", STK_METRIC_LOGLOSS, NEAR},
    {"weighted log loss", STK_METRIC_LOGLOSS, NEAR},
    {"weighted logloss", STK_METRIC_LOGLOSS, NEAR},
    {"weighted logarithmic loss", STK_METRIC_LOGLOSS, NEAR},
    {"weighted multi label logarithmic loss", STK_METRIC_LOGLOSS, NEAR},
    {"weighted multi label log loss", STK_METRIC_LOGLOSS, NEAR},
    {"weighted cross entropy", STK_METRIC_LOGLOSS, NEAR},
    {"mean f2 score", STK_METRIC_AUTO, NEAR},
    {"mean f2 measure", STK_METRIC_AUTO, NEAR},
    {"mean f2", STK_METRIC_AUTO, NEAR},
    {"average f2 score", STK_METRIC_AUTO, NEAR},
    {"average f2 measure", STK_METRIC_AUTO, NEAR},
    {"average f2", STK_METRIC_AUTO, NEAR},
    {"f2 score", STK_METRIC_AUTO, NEAR},
    {"f2 measure", STK_METRIC_AUTO, NEAR},
    {"f2", STK_METRIC_AUTO, VAGUE | NEAR},
    {"mean f 2 score", STK_METRIC_AUTO, NEAR},
    {"mean f 2 measure", STK_METRIC_AUTO, NEAR},
    {"mean f 2", STK_METRIC_AUTO, NEAR},
    {"average f 2 score", STK_METRIC_AUTO, NEAR},
    {"average f 2 measure", STK_METRIC_AUTO, NEAR},
    {"average f 2", STK_METRIC_AUTO, NEAR},
    {"f 2 score", STK_METRIC_AUTO, NEAR},
    {"f 2 measure", STK_METRIC_AUTO, NEAR},
    {"f 2", STK_METRIC_AUTO, VAGUE | NEAR},
    {"mean f beta score", STK_METRIC_AUTO, NEAR},
    {"mean f beta measure", STK_METRIC_AUTO, NEAR},
    {"mean f beta", STK_METRIC_AUTO, NEAR},
    {"average f beta score", STK_METRIC_AUTO, NEAR},
    {"average f beta measure", STK_METRIC_AUTO, NEAR},
    {"average f beta", STK_METRIC_AUTO, NEAR},
    {"f beta score", STK_METRIC_AUTO, NEAR},
    {"f beta measure", STK_METRIC_AUTO, NEAR},
    {"f beta", STK_METRIC_AUTO, NEAR},
    {"mean fbeta score", STK_METRIC_AUTO, NEAR},
    {"mean fbeta measure", STK_METRIC_AUTO, NEAR},
    {"mean fbeta", STK_METRIC_AUTO, NEAR},
    {"average fbeta score", STK_METRIC_AUTO, NEAR},
    {"average fbeta measure", STK_METRIC_AUTO, NEAR},
    {"average fbeta", STK_METRIC_AUTO, NEAR},
    {"fbeta score", STK_METRIC_AUTO, NEAR},
    {"fbeta measure", STK_METRIC_AUTO, NEAR},
    {"fbeta", STK_METRIC_AUTO, NEAR},
    {"mean f\xCE\xB2 score", STK_METRIC_AUTO, NEAR},
    {"mean f\xCE\xB2 measure", STK_METRIC_AUTO, NEAR},
    {"mean f\xCE\xB2", STK_METRIC_AUTO, NEAR},
    {"average f\xCE\xB2 score", STK_METRIC_AUTO, NEAR},
    {"average f\xCE\xB2 measure", STK_METRIC_AUTO, NEAR},
    {"average f\xCE\xB2", STK_METRIC_AUTO, NEAR},
    {"f\xCE\xB2 score", STK_METRIC_AUTO, NEAR},
    {"f\xCE\xB2 measure", STK_METRIC_AUTO, NEAR},
    {"f\xCE\xB2", STK_METRIC_AUTO, NEAR},
    {"mean f 0 5 score", STK_METRIC_AUTO, NEAR},
    {"mean f 0 5 measure", STK_METRIC_AUTO, NEAR},
    {"mean f 0 5", STK_METRIC_AUTO, NEAR},
    {"average f 0 5 score", STK_METRIC_AUTO, NEAR},
    {"average f 0 5 measure", STK_METRIC_AUTO, NEAR},
    {"average f 0 5", STK_METRIC_AUTO, NEAR},
    {"f 0 5 score", STK_METRIC_AUTO, NEAR},
    {"f 0 5 measure", STK_METRIC_AUTO, NEAR},
    {"f 0 5", STK_METRIC_AUTO, VAGUE | NEAR},
    {"mean f0 5 score", STK_METRIC_AUTO, NEAR},
    {"mean f0 5 measure", STK_METRIC_AUTO, NEAR},
    {"mean f0 5", STK_METRIC_AUTO, NEAR},
    {"average f0 5 score", STK_METRIC_AUTO, NEAR},
    {"average f0 5 measure", STK_METRIC_AUTO, NEAR},
    {"average f0 5", STK_METRIC_AUTO, NEAR},
    {"f0 5 score", STK_METRIC_AUTO, NEAR},
    {"f0 5 measure", STK_METRIC_AUTO, NEAR},
    {"f0 5", STK_METRIC_AUTO, VAGUE | NEAR},
    {"weighted f1", STK_METRIC_MICRO_F1, NEAR},
    {"weighted f 1", STK_METRIC_MICRO_F1, NEAR},
    {"weighted f score", STK_METRIC_MICRO_F1, NEAR},
    {"weighted average f1", STK_METRIC_MICRO_F1, NEAR},
    {"weighted averaged f1", STK_METRIC_MICRO_F1, NEAR},
    {"weighted mean f1", STK_METRIC_MICRO_F1, NEAR},
    {"support weighted f1", STK_METRIC_MICRO_F1, NEAR},
    {"f1 weighted", STK_METRIC_MICRO_F1, NEAR},
    {"hamming loss", STK_METRIC_MICRO_F1, NEAR},
    {"linear weighted kappa", STK_METRIC_QWK, NEAR},
    {"linearly weighted kappa", STK_METRIC_QWK, NEAR},
    {"mean squared error", STK_METRIC_RMSE, NEAR},
    {"mean square error", STK_METRIC_RMSE, NEAR},
    {"mean squared logarithmic error", STK_METRIC_RMSE, NEAR},
    {"mean squared log error", STK_METRIC_RMSE, NEAR},
    {"root mean squared logarithmic error", STK_METRIC_RMSE, NEAR},
    {"root mean square logarithmic error", STK_METRIC_RMSE, NEAR},
    {"root mean squared log error", STK_METRIC_RMSE, NEAR},
    {"rmsle", STK_METRIC_RMSE, NEAR},
    {"msle", STK_METRIC_RMSE, NEAR},
    {"root mean squared percentage error", STK_METRIC_RMSE, NEAR},
    {"root mean square percentage error", STK_METRIC_RMSE, NEAR},
    {"rmspe", STK_METRIC_RMSE, NEAR},
    {"normalized root mean squared error", STK_METRIC_RMSE, NEAR},
    {"nrmse", STK_METRIC_RMSE, NEAR},
    {"mse", STK_METRIC_RMSE, VAGUE | NEAR},
    {"mean absolute percentage error", STK_METRIC_MAE, NEAR},
    {"mean absolute percent error", STK_METRIC_MAE, NEAR},
    {"symmetric mean absolute percentage error", STK_METRIC_MAE, NEAR},
    {"symmetric mean absolute percent error", STK_METRIC_MAE, NEAR},
    {"mape", STK_METRIC_MAE, NEAR},
    {"smape", STK_METRIC_MAE, NEAR},
    {"wmape", STK_METRIC_MAE, NEAR},
    {"median absolute error", STK_METRIC_MAE, NEAR},
    {"pinball loss", STK_METRIC_MAE, NEAR},
    {"quantile loss", STK_METRIC_MAE, NEAR},
    {"pearson correlation coefficient", STK_METRIC_R2, NEAR},
    {"pearson correlation", STK_METRIC_R2, NEAR},
    {"pearson product moment correlation", STK_METRIC_R2, NEAR},
    {"pearson r", STK_METRIC_R2, NEAR},
    {"spearman rank correlation coefficient", STK_METRIC_R2, NEAR},
    {"spearman rank correlation", STK_METRIC_R2, NEAR},
    {"spearman rank order correlation", STK_METRIC_R2, NEAR},
    {"spearman correlation coefficient", STK_METRIC_R2, NEAR},
    {"spearman correlation", STK_METRIC_R2, NEAR},
    {"spearman rho", STK_METRIC_R2, NEAR},
    {"kendall tau", STK_METRIC_R2, NEAR},
    {"kendall rank correlation", STK_METRIC_R2, NEAR},
    {"concordance correlation coefficient", STK_METRIC_R2, NEAR},
    {"concordance correlation", STK_METRIC_R2, NEAR},
    {"concordance index", STK_METRIC_R2, NEAR},
    {"pearson", STK_METRIC_R2, VAGUE | NEAR},
    {"spearman", STK_METRIC_R2, VAGUE | NEAR},
    {"rank correlation", STK_METRIC_R2, VAGUE | NEAR},
    {"c index", STK_METRIC_R2, VAGUE | NEAR},
    {"explained variance", STK_METRIC_R2, VAGUE | NEAR},
};

/* Words between a phrase and its number at most. */
#define MOST_FILLERS 4

/* ---- words ---- */

/* Bytes of UTF-8 belong to words, so that a word never ends within a character. */
bool stk_phrase_is_letter(char c) {
    unsigned char byte = (unsigned char)c;
    return byte >= 0x80 || isalnum(byte) != 0;
}

bool stk_phrase_begins_word(const char *text, const char *at) {
    return stk_phrase_is_letter(*at) && (at == text || !stk_phrase_is_letter(at[-1]));
}

static bool is_same(char c, char of_phrase) {
    return (isupper((unsigned char)of_phrase) ? c : (char)tolower((unsigned char)c)) == of_phrase;
}

/* Behind the 's of a possessive, or the s of a plural; otherwise `at`. */
static const char *skip_ending(const char *at) {
    static const char *const endings[] = {"s", "'s", "\xE2\x80\x99s"};
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        size_t length = strlen(endings[i]);
        if (strncmp(at, endings[i], length) == 0 && !stk_phrase_is_letter(at[length])) {
            return at + length;
        }
    }
    return at;
}

/* The end of a word. The @ of MAP@5 is read as the word "at". */
static const char *skip_word(const char *at, const char *word) {
    if (*at == '@' && strncmp(word, "at", 2) == 0 && !stk_phrase_is_letter(word[2])) {
        return at + 1;
    }
    while (stk_phrase_is_letter(*word) && is_same(*at, *word)) {
        at++;
        word++;
    }
    at = stk_phrase_is_letter(*word) ? NULL : skip_ending(at);
    return at != NULL && stk_phrase_is_letter(*at) ? NULL : at;
}

const char *stk_phrase_next_word(const char *at) {
    int lines = 0;
    for (int i = 0; i <= MOST_BETWEEN; i++, at++) {
        if (stk_phrase_is_letter(*at) || *at == '@') {
            return at;
        }
        lines += *at == '\n';
        if (*at == '\0' || lines > 1) {
            return NULL;
        }
    }
    return NULL;
}

const char *stk_phrase_match(const char *at, const char *words) {
    const char *end = at;
    while (end != NULL) {
        end = skip_word(end, words);
        words = strchr(words, ' ');
        if (end == NULL || words == NULL) {
            return end;
        }
        words++;
        end = stk_phrase_next_word(end);
    }
    return NULL;
}

int stk_phrase_length(const char *end) {
    static const char *const fillers[] = {"at", "map", "top", "for", "the"};
    const char *at = stk_phrase_next_word(end);
    int k = 0;
    for (int words = 0; at != NULL && !isdigit((unsigned char)*at); words++) {
        const char *past = NULL;
        for (size_t i = 0;
             words < MOST_FILLERS && past == NULL && i < sizeof fillers / sizeof *fillers; i++) {
            past = skip_word(at, fillers[i]);
        }
        at = past != NULL ? stk_phrase_next_word(past) : NULL;
    }
    for (; at != NULL && isdigit((unsigned char)*at) && k < STK_PHRASE_MOST_K; at++) {
        k = 10 * k + (*at - '0');
    }
    return k < STK_PHRASE_MOST_K ? k : 0;
}

/* ---- phrases ---- */

static bool rates(const stk_metric_phrase *p, stk_task task) {
    return stk_metric_rates(p->metric == STK_METRIC_AUTO ? STK_METRIC_MICRO_F1 : p->metric, task);
}

/* Whether a phrase of lists, or of columns, goes with what is said of a length. */
static bool has_length(const stk_metric_phrase *p, stk_task task, int guesses, const char *end) {
    bool listed = (p->flags & STK_PHRASE_LISTED) != 0;
    bool unlisted = (p->flags & STK_PHRASE_UNLISTED) != 0;
    bool said = (listed || unlisted) && (guesses > 0 || stk_phrase_length(end) > 0);
    return listed ? said || task == STK_TASK_RANKING : !unlisted || !said;
}

const stk_metric_phrase *stk_phrase_find(const char *at, stk_task task, int guesses,
                                         const char **end) {
    const stk_metric_phrase *best = NULL;
    for (size_t i = 0; i < sizeof phrases / sizeof *phrases; i++) {
        const stk_metric_phrase *p = &phrases[i];
        bool begins = is_same(*at, p->words[0]) && rates(p, task);
        const char *stop = begins ? stk_phrase_match(at, p->words) : NULL;
        if (stop != NULL && (best == NULL || stop > *end) && has_length(p, task, guesses, stop)) {
            best = p;
            *end = stop;
        }
    }
    return best;
}

bool stk_phrase_is_computed(const char *text, stk_metric metric) {
    bool near = false;
    for (size_t i = 0; i < sizeof phrases / sizeof *phrases; i++) {
        const stk_metric_phrase *p = &phrases[i];
        const char *end = p->metric == metric || p->metric == STK_METRIC_AUTO
                              ? stk_phrase_match(text, p->words)
                              : NULL;
        if (end != NULL && *end == '\0') {
            if ((p->flags & STK_PHRASE_NEAR) == 0) {
                return true;
            }
            near = true;
        }
    }
    return !near;
}
