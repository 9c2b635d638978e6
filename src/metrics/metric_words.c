/*
 * metric_words.c - phrases for metrics, and where in a description they count.
 *
 * A phrase matches word by word; what stands between two words (blanks, hyphens, brackets,
 * asterisks) does not matter. Of all matches the one in the best place counts, among those of equal
 * places the first, and of those that begin at the same word the longest.
 */
#include "metrics/metric_words.h"

#include <ctype.h>
#include <string.h>

/* Bytes between two words of a phrase at most. */
#define MOST_BETWEEN 8

/* Words before a phrase that may deny it. */
#define DENIED_WITHIN 4

/* Words after a phrase that may say which average, or how many answers. */
#define SAID_WITHIN 8

/* Bytes before and after a match that may belong to its sentence. */
#define LONGEST_SENTENCE 400

/* Words between a phrase and its number at most; larger numbers mean something else. */
#define MOST_FILLERS 4
#define MOST_K 1000

/* The longest line that can be a heading. */
#define LONGEST_HEADING 60

/* Words of a heading without marks at most. */
#define BARE_WORDS 3

/* Bytes of a text that are looked at. */
#define MOST_TEXT (64 << 10)

/* Where a match stands: more counts more. */
enum { ANYWHERE = 1, EVALUATED = 2, SECTION = 4 };

typedef struct metric_phrase {
    const char *words; /* in lower case, one blank between two */
    stk_metric metric; /* STK_METRIC_AUTO: an F1 score whose average the task or the text says */
    bool vague;        /* counts only where the sentence or the section speaks of evaluating */
} metric_phrase;

static const metric_phrase phrases[] = {
    {"mean column wise roc auc", STK_METRIC_AUC_MACRO, false},
    {"mean column wise auc", STK_METRIC_AUC_MACRO, false},
    {"column wise mean roc auc", STK_METRIC_AUC_MACRO, false},
    {"column averaged roc auc", STK_METRIC_AUC_MACRO, false},
    {"macro averaged roc auc", STK_METRIC_AUC_MACRO, false},
    {"mean roc auc", STK_METRIC_AUC_MACRO, false},
    {"mean auc", STK_METRIC_AUC_MACRO, false},
    {"average auc", STK_METRIC_AUC_MACRO, false},
    {"weighted auc", STK_METRIC_WEIGHTED_AUC, false},
    {"weighted area under the", STK_METRIC_WEIGHTED_AUC, false},
    {"area under the roc", STK_METRIC_AUC, false},
    {"area under roc", STK_METRIC_AUC, false},
    {"area under the receiver operating characteristic", STK_METRIC_AUC, false},
    {"area under receiver operating characteristic", STK_METRIC_AUC, false},
    {"area under the curve", STK_METRIC_AUC, true},
    {"roc auc", STK_METRIC_AUC, false},
    {"auc roc", STK_METRIC_AUC, false},
    {"auroc", STK_METRIC_AUC, false},
    {"auc", STK_METRIC_AUC, true},
    {"log loss", STK_METRIC_LOGLOSS, false},
    {"logloss", STK_METRIC_LOGLOSS, false},
    {"logarithmic loss", STK_METRIC_LOGLOSS, false},
    {"cross entropy", STK_METRIC_LOGLOSS, true},
    {"quadratic weighted kappa", STK_METRIC_QWK, false},
    {"quadratically weighted kappa", STK_METRIC_QWK, false},
    {"weighted kappa", STK_METRIC_QWK, false},
    {"kappa", STK_METRIC_QWK, true},
    {"probabilistic f1", STK_METRIC_PF1, false},
    {"probabilistic f 1", STK_METRIC_PF1, false},
    {"probabilistic f score", STK_METRIC_PF1, false},
    {"pf1", STK_METRIC_PF1, false},
    {"macro f1", STK_METRIC_MACRO_F1, false},
    {"macro f 1", STK_METRIC_MACRO_F1, false},
    {"macro averaged f1", STK_METRIC_MACRO_F1, false},
    {"macro average f1", STK_METRIC_MACRO_F1, false},
    {"macro f score", STK_METRIC_MACRO_F1, false},
    {"macro averaged f score", STK_METRIC_MACRO_F1, false},
    {"f1 macro", STK_METRIC_MACRO_F1, false},
    {"f 1 macro", STK_METRIC_MACRO_F1, false},
    {"per class f1", STK_METRIC_MACRO_F1, false},
    {"per class f 1", STK_METRIC_MACRO_F1, false},
    {"class wise f1", STK_METRIC_MACRO_F1, false},
    {"classwise f1", STK_METRIC_MACRO_F1, false},
    {"f1 score of each class", STK_METRIC_MACRO_F1, false},
    {"f1 of each class", STK_METRIC_MACRO_F1, false},
    {"f1 micro", STK_METRIC_MICRO_F1, false},
    {"f 1 micro", STK_METRIC_MICRO_F1, false},
    {"micro f1", STK_METRIC_MICRO_F1, false},
    {"micro f 1", STK_METRIC_MICRO_F1, false},
    {"micro averaged f1", STK_METRIC_MICRO_F1, false},
    {"micro average f1", STK_METRIC_MICRO_F1, false},
    {"samples f1", STK_METRIC_SAMPLES_F1, false},
    {"sample averaged f1", STK_METRIC_SAMPLES_F1, false},
    {"example based f1", STK_METRIC_SAMPLES_F1, false},
    {"mean f1", STK_METRIC_AUTO, false},
    {"mean f score", STK_METRIC_AUTO, false},
    {"average f1", STK_METRIC_AUTO, false},
    {"f1 score", STK_METRIC_AUTO, false},
    {"f1 measure", STK_METRIC_AUTO, false},
    {"f 1 score", STK_METRIC_AUTO, false},
    {"f1", STK_METRIC_AUTO, true},
    {"categorization accuracy", STK_METRIC_ACC1, false},
    {"categorisation accuracy", STK_METRIC_ACC1, false},
    {"classification accuracy", STK_METRIC_ACC1, false},
    {"top 1 accuracy", STK_METRIC_ACC1, false},
    {"accuracy", STK_METRIC_ACC1, true},
    {"top 5 accuracy", STK_METRIC_ACC5, false},
    {"top 1 error", STK_METRIC_ERROR, false},
    {"top 1 classification error", STK_METRIC_ERROR, false},
    {"classification error", STK_METRIC_ERROR, false},
    {"categorization error", STK_METRIC_ERROR, false},
    {"misclassification rate", STK_METRIC_ERROR, false},
    {"error rate", STK_METRIC_ERROR, true},
    {"mean average precision", STK_METRIC_MAPK, false},
    {"map at", STK_METRIC_MAPK, false},
    {"root mean squared error", STK_METRIC_RMSE, false},
    {"root mean square error", STK_METRIC_RMSE, false},
    {"rmse", STK_METRIC_RMSE, false},
    {"mean absolute error", STK_METRIC_MAE, false},
    {"mae", STK_METRIC_MAE, true},
    {"coefficient of determination", STK_METRIC_R2, false},
    {"r 2", STK_METRIC_R2, true},
    {"r2", STK_METRIC_R2, true},
    {"r squared", STK_METRIC_R2, true},
    {"r\xC2\xB2", STK_METRIC_R2, true},
};

/* ---- words ---- */

/* Bytes of UTF-8 belong to words, so that a word never ends within a character. */
static bool is_letter(char c) {
    unsigned char byte = (unsigned char)c;
    return byte >= 0x80 || isalnum(byte) != 0;
}

/* The end of a word, also in the plural. The @ of MAP@5 is read as the word "at". */
static const char *skip_word(const char *at, const char *word) {
    if (*at == '@' && strncmp(word, "at", 2) == 0 && !is_letter(word[2])) {
        return at + 1;
    }
    while (is_letter(*word) && tolower((unsigned char)*at) == (unsigned char)*word) {
        at++;
        word++;
    }
    bool plural = *at == 's' && !is_letter(at[1]);
    return is_letter(*word) ? NULL : plural ? at + 1 : is_letter(*at) ? NULL : at;
}

/* The next word, or an @; NULL: the paragraph ends, or it is too far. */
static const char *next_word(const char *at) {
    int lines = 0;
    for (int i = 0; i <= MOST_BETWEEN; i++, at++) {
        if (is_letter(*at) || *at == '@') {
            return at;
        }
        lines += *at == '\n';
        if (*at == '\0' || lines > 1) {
            return NULL;
        }
    }
    return NULL;
}

/* The end of a phrase that begins at `at`; NULL: it does not. */
static const char *match(const char *at, const char *words) {
    const char *end = at;
    while (end != NULL) {
        end = skip_word(end, words);
        words = strchr(words, ' ');
        if (end == NULL || words == NULL) {
            return end;
        }
        words++;
        end = next_word(end);
    }
    return NULL;
}

static bool begins_word(const char *text, const char *at) {
    return is_letter(*at) && (at == text || !is_letter(at[-1]));
}

/* ---- sections and sentences ---- */

typedef struct text_range {
    const char *begin;
    const char *end;
} text_range;

static const char *end_of_line(const char *line) {
    const char *end = strchr(line, '\n');
    return end != NULL ? end : line + strlen(line);
}

/* Whether a line is a heading that begins with this word; *level becomes its number of #. Without
 * one it has few words: otherwise it is a line of prose. */
static bool is_heading(text_range line, const char *word, int *level) {
    const char *at = line.begin;
    int words = 0;
    *level = 0;
    while (at < line.end && !is_letter(*at)) {
        *level += *at == '#';
        at++;
    }
    for (const char *c = at; c < line.end; c++) {
        words += begins_word(at, c);
    }
    return line.end - line.begin <= LONGEST_HEADING && (*level > 0 || words <= BARE_WORDS) &&
           match(at, word) != NULL;
}

/* From the heading to the next one that is not below it. Empty: there is no such section. */
static text_range find_section(const char *text) {
    text_range section = {text, text};
    int own = 0;
    bool inside = false;
    for (const char *line = text; *line != '\0';) {
        text_range range = {line, end_of_line(line)};
        int level;
        bool begins = is_heading(range, "evaluation", &level);
        if (!inside && begins) {
            inside = true;
            own = level;
            section.begin = line;
        } else if (inside && !begins && *line == '#' && (own == 0 || level <= own)) {
            section.end = line;
            return section;
        }
        line = *range.end != '\0' ? range.end + 1 : range.end;
        section.end = inside ? line : section.begin;
    }
    return section;
}

/* Whether a sentence ends at this byte. */
static bool ends_sentence(const char *at) {
    bool mark = *at == '.' || *at == '!' || *at == '?';
    bool lines = *at == '\n' && (at[1] == '\n' || at[1] == '#' || at[1] == '-' || at[1] == '*');
    return *at == '\0' || lines || (mark && (isspace((unsigned char)at[1]) || at[1] == '\0'));
}

static text_range sentence_around(const char *text, const char *begin, const char *end) {
    text_range sentence = {begin, end};
    while (sentence.begin > text && begin - sentence.begin < LONGEST_SENTENCE &&
           !ends_sentence(sentence.begin - 1)) {
        sentence.begin--;
    }
    while (sentence.end - end < LONGEST_SENTENCE && !ends_sentence(sentence.end)) {
        sentence.end++;
    }
    return sentence;
}

/* Whether one of these words begins in the range. */
static bool has_word(const char *text, text_range range, const char *const *words, size_t count) {
    bool found = false;
    for (const char *at = range.begin; at < range.end && !found; at++) {
        for (size_t i = 0; begins_word(text, at) && i < count; i++) {
            found = found || match(at, words[i]) != NULL;
        }
    }
    return found;
}

/* Whether a word of the range begins with one of these. */
static bool has_stem(const char *text, text_range range, const char *const *stems, size_t count) {
    bool found = false;
    for (const char *at = range.begin; at < range.end && !found; at++) {
        for (size_t i = 0; begins_word(text, at) && i < count; i++) {
            size_t j = 0;
            while (stems[i][j] != '\0' && tolower((unsigned char)at[j]) == stems[i][j]) {
                j++;
            }
            found = found || stems[i][j] == '\0';
        }
    }
    return found;
}

/* Whether one of the words right before says that this is not the metric. */
static bool is_denied(const char *text, text_range sentence, const char *begin) {
    static const char *const denials[] = {"no",      "not",    "instead", "rather",
                                          "unlike",  "never",  "without", "nor",
                                          "neither", "former", "earlier", "previous"};
    const char *from = begin;
    int words = 0;
    while (from > sentence.begin && words < DENIED_WITHIN) {
        from--;
        words += begins_word(text, from);
        bool turn = begins_word(text, from) && match(from, "but") != NULL;
        if (turn || *from == ',' || *from == ';' || *from == ':') {
            break;
        }
    }
    return has_word(text, (text_range){from, begin}, denials, sizeof denials / sizeof *denials);
}

/* ---- one match ---- */

/* The average of an F1 score: as the words after it say, otherwise as the task has it. Of several
 * labels Kaggle's mean F1 counts all decisions together. */
static stk_metric choose_f1(const char *text, const char *end, const char *last, stk_task task) {
    static const char *const micro[] = {"micro"};
    static const char *const macro[] = {"macro"};
    static const char *const samples[] = {"example", "sample"};
    text_range after = {end, end};
    for (int words = 0; after.end < last && words < SAID_WITHIN; after.end++) {
        words += begins_word(text, after.end);
    }
    return has_stem(text, after, macro, 1)     ? STK_METRIC_MACRO_F1
           : has_stem(text, after, micro, 1)   ? STK_METRIC_MICRO_F1
           : task != STK_TASK_MULTILABEL       ? STK_METRIC_MACRO_F1
           : has_stem(text, after, samples, 2) ? STK_METRIC_SAMPLES_F1
                                               : STK_METRIC_MICRO_F1;
}

/* The number of MAP@5, or of `mean average precision at 5`, right after the phrase; 0: none. */
static int find_k(const char *end) {
    static const char *const fillers[] = {"at", "map", "top", "for", "the"};
    const char *at = next_word(end);
    int k = 0;
    for (int words = 0; at != NULL && !isdigit((unsigned char)*at); words++) {
        const char *past = NULL;
        for (size_t i = 0;
             words < MOST_FILLERS && past == NULL && i < sizeof fillers / sizeof *fillers; i++) {
            past = skip_word(at, fillers[i]);
        }
        at = past != NULL ? next_word(past) : NULL;
    }
    for (; at != NULL && isdigit((unsigned char)*at) && k < MOST_K; at++) {
        k = 10 * k + (*at - '0');
    }
    return k < MOST_K ? k : 0;
}

/* Copies the words with single blanks between them. */
static void copy_phrase(char *phrase, size_t size, const char *begin, const char *end) {
    size_t length = 0;
    for (; begin < end && length + 1 < size; begin++) {
        bool blank = isspace((unsigned char)*begin) != 0;
        if (!blank || (length > 0 && phrase[length - 1] != ' ')) {
            phrase[length++] = blank ? ' ' : *begin;
        }
    }
    phrase[length] = '\0';
}

/* Where a match counts; 0: it does not. */
static int place_of(const char *text, text_range section, const char *begin, const char *end,
                    bool vague) {
    static const char *const signals[] = {"evaluat", "scored", "metric",  "judged",
                                          "graded",  "ranked", "measured"};
    text_range sentence = sentence_around(text, begin, end);
    bool evaluated = has_stem(text, sentence, signals, sizeof signals / sizeof *signals);
    bool inside = begin >= section.begin && begin < section.end;
    if (is_denied(text, sentence, begin) || (vague && !evaluated && !inside)) {
        return 0;
    }
    return (inside ? SECTION : ANYWHERE) + (evaluated ? EVALUATED : 0);
}

/* The longest phrase at a word; its end in *end. NULL: none that rates the task. */
static const metric_phrase *longest_at(const char *at, stk_task task, const char **end) {
    const metric_phrase *best = NULL;
    for (size_t i = 0; i < sizeof phrases / sizeof *phrases; i++) {
        const metric_phrase *p = &phrases[i];
        stk_metric metric = p->metric == STK_METRIC_AUTO ? STK_METRIC_MICRO_F1 : p->metric;
        bool begins = tolower((unsigned char)*at) == (unsigned char)p->words[0] &&
                      stk_metric_rates(metric, task);
        const char *stop = begins ? match(at, p->words) : NULL;
        if (stop != NULL && (best == NULL || stop > *end)) {
            best = p;
            *end = stop;
        }
    }
    return best;
}

/* The metric of a phrase. Of several labels an area is that of each column. */
static stk_metric metric_of(const metric_phrase *p, const char *text, const char *end,
                            const char *last, stk_task task) {
    bool columns = p->metric == STK_METRIC_AUC && task == STK_TASK_MULTILABEL;
    return p->metric == STK_METRIC_AUTO ? choose_f1(text, end, last, task)
           : columns                    ? STK_METRIC_AUC_MACRO
                                        : p->metric;
}

stk_metric_mention stk_metric_find_in_text(const char *text, stk_task task) {
    stk_metric_mention found = {.metric = STK_METRIC_AUTO};
    text_range section = find_section(text);
    const char *last = text + strnlen(text, MOST_TEXT);
    int best = 0;
    for (const char *at = text; at < last;) {
        const char *end = at + 1;
        const metric_phrase *p = begins_word(text, at) ? longest_at(at, task, &end) : NULL;
        int place = p != NULL ? place_of(text, section, at, end, p->vague) : 0;
        if (place > best) {
            best = place;
            found.metric = metric_of(p, text, end, last, task);
            found.k = p->metric == STK_METRIC_MAPK ? find_k(end) : 0;
            found.in_evaluation = place >= SECTION;
            copy_phrase(found.phrase, sizeof found.phrase, at, end);
        }
        at = end;
    }
    return found;
}
