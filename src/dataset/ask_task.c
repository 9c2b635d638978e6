/*
 * ask_task.c - decides on the task, and on what the submission takes.
 *
 * What decides, in this order: --task; what the labels are (several columns, lists, fractions); the
 * metric that --metric or else the description names; the cells of the sample submission, which are
 * placeholders but of the wanted kind; the names of columns. The reason is kept for people.
 */
#include "dataset/ask.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"
#include "dataset/label_columns.h"
#include "dataset/label_lists.h"
#include "dataset/sample_cells.h"
#include "metrics/metric_words.h"

/* More different numbers than people give to classes by hand. */
#define MANY_NUMBERS 20
#define MANY_WHOLE 30

/* Rows per number: below the first the numbers are measured, below the second perhaps. */
#define FEW_PER_NUMBER 3
#define SOME_PER_NUMBER 20

/* Steps of a scale, at most. */
#define MOST_STEPS 12

/* Names in a list of ranked classes where nothing says how many. */
#define USUAL_RANKED 5

/* Names of columns whose numbers are names of classes. */
static const char *const identities[] = {"id",      "ids",      "idx",        "index",    "class",
                                         "classes", "category", "categories", "breed",    "species",
                                         "type",    "code",     "kind",       "name",     "family",
                                         "genus",   "digit",    "group",      "identity", NULL};

/* Names of columns whose numbers are steps of a scale. */
static const char *const steps[] = {"grade", "level", "stage",  "severity", "diagnosis", "rating",
                                    "score", "stars", "degree", "quality",  NULL};

/* Texts that mean yes. */
static const char *const yes_texts[] = {"1", "1.0", "true", "yes", "y", "t", "positive", "pos"};

/* Classes of pictures that belong to no class, word by word: whales nobody knows. */
static const char *const strangers[] = {"new", "unknown", "other", "stranger", NULL};

/* ---- deciding ---- */

/* What may be taken for something else; told where the decision stands. */
typedef struct doubts {
    char texts[2][600];
    size_t count;
} doubts;

/* What is known while it is decided. */
typedef struct asking {
    stk_ask *ask;
    doubts *doubts;
    const stk_listing *listing;
    const stk_ask_tables *tables;
    const stk_hints *hints;
    stk_task wanted; /* --task */
    stk_sample_cells sample;
    bool has_sample;
    size_t asked;              /* columns of the sample that are answers */
    stk_column_profile labels; /* owned: of the only label column */
    stk_label_lists lists;
    const char *name; /* of that column */
} asking;

static void STK_PRINTF(2, 3) say(stk_ask *ask, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(ask->reason, sizeof ask->reason, format, arguments);
    va_end(arguments);
}

static void STK_PRINTF(2, 3) doubt(asking *a, const char *format, ...) {
    va_list arguments;
    if (a->doubts->count < STK_COUNT(a->doubts->texts)) {
        char *text = a->doubts->texts[a->doubts->count++];
        va_start(arguments, format);
        vsnprintf(text, sizeof a->doubts->texts[0], format, arguments);
        va_end(arguments);
    }
}

static void decide(asking *a, stk_task task, stk_answer_kind kind) {
    a->ask->task = task;
    a->ask->answer = (stk_answer){
        .kind = kind, .divider = a->lists.divider != '\0' ? a->lists.divider : ' ', .stranger = -1};
}

typedef enum suspicion { NONE, DOUBT, CERTAINTY } suspicion;

/* Whether numbers measure something rather than name a class. */
static suspicion suspect_numbers(const asking *a) {
    const stk_column_profile *p = &a->labels;
    bool few_each = p->rows < FEW_PER_NUMBER * p->count;
    bool many = p->count > MANY_NUMBERS || (few_each && p->count > 2);
    if (p->fractions) {
        return many ? CERTAINTY : NONE;
    }
    if (stk_has_word_of(a->name, identities)) {
        return NONE;
    }
    if (stk_table_is_measure_name(a->name)) {
        return many ? CERTAINTY : p->count > 2 ? DOUBT : NONE;
    }
    if (p->count <= MANY_WHOLE) {
        return NONE;
    }
    if (!stk_table_is_label_name(a->name)) {
        return DOUBT;
    }
    /* Numbers of classes leave no gaps, or have many pictures each. */
    bool gaps = p->most - p->least + 1 > 1.2 * (double)p->count;
    return gaps && p->rows < SOME_PER_NUMBER * p->count ? DOUBT : NONE;
}

/* Whether the column's numbers are amounts. Where it is in doubt, a warning says what was taken. */
static bool is_regression(asking *a) {
    const stk_column_profile *p = &a->labels;
    const stk_hints *h = a->hints;
    if (!stk_column_is_numeric(p) || p->count < 3) {
        return false;
    }
    const char *kind = p->fractions ? "numbers" : "whole numbers";
    if (h->numbers) {
        say(a->ask, "%s is rated by %s", a->name, h->phrase);
        return true;
    }
    suspicion suspected = suspect_numbers(a);
    if (suspected == CERTAINTY) {
        say(a->ask, "%s has %zu different %s from %s to %s", a->name, p->count, kind, p->least_text,
            p->most_text);
        return true;
    }
    if (h->labels || h->steps || h->ranked > 0 || stk_has_word_of(a->name, identities)) {
        return false;
    }
    if (a->has_sample && a->sample.fractions > 0 && a->asked == 1) {
        say(a->ask, "the sample has %s for the whole numbers of %s", a->sample.first, a->name);
        return true;
    }
    if (suspected == NONE) {
        return false;
    }
    bool amount = p->count > MANY_NUMBERS && !stk_table_is_label_name(a->name);
    doubt(a,
          "column '%s' of %s holds %zu different %s from %s to %s in %zu rows: %s; "
          "--task %s takes them %s",
          a->name, a->tables->file, p->count, kind, p->least_text, p->most_text, p->rows,
          amount ? "they are taken as amounts" : "each is taken as a class of its own",
          amount ? "single" : "regression", amount ? "as classes" : "as amounts");
    say(a->ask, "%s looks measured", a->name);
    return amount;
}

/* Whole numbers that are steps of a scale. */
static bool is_ordinal(asking *a) {
    const stk_column_profile *p = &a->labels;
    bool scale = stk_column_is_numeric(p) && !p->fractions && p->count > 2 &&
                 p->count <= MOST_STEPS && p->most - p->least + 1 == (double)p->count;
    if (scale && a->hints->steps) {
        say(a->ask, "%s has the steps %s to %s, rated by %s", a->name, p->least_text, p->most_text,
            a->hints->phrase);
        return true;
    }
    bool other = a->hints->labels || a->hints->probabilities || a->hints->ranked > 0 ||
                 (a->has_sample && a->asked > 1);
    if (scale && !other && stk_has_word_of(a->name, steps)) {
        say(a->ask, "%s has the steps %s to %s", a->name, p->least_text, p->most_text);
        return true;
    }
    return false;
}

/* ---- two classes ---- */

static bool is_yes(const char *text) {
    for (size_t i = 0; i < STK_COUNT(yes_texts); i++) {
        if (stk_str_equal_nocase(text, yes_texts[i])) {
            return true;
        }
    }
    return false;
}

/* The answer column of a sample that has one. */
static const char *answer_name(const asking *a) {
    const stk_ask_tables *t = a->tables;
    for (size_t c = 0; a->has_sample && c < t->sample->columns; c++) {
        if (c != t->sample_id && c != t->sample_kept) {
            return t->sample->header[c];
        }
    }
    return NULL;
}

/* Which of two classes is the positive one. */
static const char *positive_of(const asking *a, const char *first, const char *second) {
    double x;
    double y;
    const char *column = answer_name(a);
    if (stk_cell_number(first, &x) && stk_cell_number(second, &y)) {
        return x > y ? first : second;
    }
    if (is_yes(first) != is_yes(second)) {
        return is_yes(first) ? first : second;
    }
    if (column != NULL && stk_str_equal_nocase(column, first)) {
        return first;
    }
    if (column != NULL && stk_str_equal_nocase(column, second)) {
        return second;
    }
    int told = stk_hints_positive(a->hints, first, second);
    return told == 0 ? first : told == 1 ? second : strcmp(first, second) > 0 ? first : second;
}

/* Probability or label: the metric says it, or else the cells of the sample. */
static void decide_binary(asking *a, const char *first, const char *second) {
    const char *positive = positive_of(a, first, second);
    const stk_sample_cells *s = &a->sample;
    const stk_hints *h = a->hints;
    a->ask->positive = positive;
    bool names = s->numbers < s->cells; /* the sample has class names, or "True" */
    bool probability =
        h->probabilities || (!h->labels && !names && (s->fractions > 0 || s->constant));
    if (!a->has_sample || a->asked != 1) {
        bool columns = a->has_sample && a->asked > 1;
        decide(a, STK_TASK_BINARY, columns ? STK_ANSWER_PROBABILITIES : STK_ANSWER_LABEL);
        say(a->ask, "%s or %s%s", first, second,
            columns ? ", and the sample has a column for each" : "");
    } else if (probability) {
        decide(a, STK_TASK_BINARY, STK_ANSWER_POSITIVE);
        if (h->probabilities) {
            say(a->ask, "the metric is %s", h->phrase);
        } else {
            say(a->ask, "the sample has %s in its only column", s->first);
        }
    } else {
        decide(a, STK_TASK_BINARY, STK_ANSWER_LABEL);
        say(a->ask, "%s or %s, as the %s asks for", first, second,
            h->labels ? h->phrase : "sample");
    }
}

/* ---- several labels, ranked classes, classes ---- */

static bool is_multilabel(asking *a) {
    const stk_label_lists *lists = &a->lists;
    bool by_sample = a->has_sample && a->asked == 1 && a->sample.lists > 0;
    if (lists->listed > 0 || (lists->doubtful && by_sample)) {
        say(a->ask, "cells of %s hold several labels, such as '%.60s'", a->name, lists->example);
        return true;
    }
    if (lists->doubtful) {
        doubt(a,
              "column '%s' of %s may hold several labels in a cell, such as '%.100s': "
              "each of the %zu texts is taken as a class of its own; --task "
              "multilabel divides them",
              a->name, a->tables->file, lists->example, a->labels.count);
    }
    return false;
}

static const char *stranger_among(const stk_column_profile *p) {
    const char *found = NULL;
    for (size_t i = 0; i < p->count; i++) {
        if (stk_has_word_of(p->texts[i].text, strangers)) {
            if (found != NULL) {
                return NULL; /* a name of some other kind */
            }
            found = p->texts[i].text;
        }
    }
    return found;
}

static bool is_ranking(asking *a) {
    const stk_sample_cells *s = &a->sample;
    bool by_sample = a->has_sample && a->asked == 1 && s->cells > 0 && 2 * s->lists > s->cells &&
                     !a->hints->labels && !a->hints->probabilities;
    if (!by_sample && a->hints->ranked == 0) {
        return false;
    }
    decide(a, STK_TASK_RANKING, STK_ANSWER_RANKED);
    a->ask->answer.divider = ' ';
    a->ask->answer.most = a->hints->ranked > 0 ? a->hints->ranked : (int)s->words;
    a->ask->stranger = stranger_among(&a->labels);
    if (a->hints->ranked > 0) {
        say(a->ask, "the %d likeliest classes of %s: the metric is %s", a->ask->answer.most,
            a->name, a->hints->phrase);
    } else {
        say(a->ask, "the sample has %zu names in a cell", s->words);
    }
    return true;
}

static void decide_single(asking *a) {
    bool columns = a->has_sample && a->asked > 1;
    decide(a, STK_TASK_SINGLE, columns ? STK_ANSWER_PROBABILITIES : STK_ANSWER_LABEL);
    say(a->ask, "%s has %zu classes%s", a->name, a->labels.count,
        columns         ? ", and the sample a column for each"
        : a->has_sample ? ", and the sample one column for the label"
                        : "");
}

/* ---- by what --task says ---- */

static stk_status fail_wanted(const asking *a, const char *why, stk_error *err) {
    return STK_FAIL(err, STK_ERR_USAGE,
                    "--task %s: column '%s' of %s %s; pass another task, or "
                    "another --label-column",
                    stk_task_name(a->wanted), a->name, a->tables->where, why);
}

static stk_status decide_wanted(asking *a, stk_error *err) {
    const stk_column_profile *p = &a->labels;
    switch (a->wanted) {
    case STK_TASK_BINARY:
        if (p->count != 2) {
            return fail_wanted(a, "does not have two different values", err);
        }
        decide_binary(a, p->texts[0].text, p->texts[1].text);
        break;
    case STK_TASK_MULTILABEL:
        decide(a, STK_TASK_MULTILABEL, STK_ANSWER_LIST);
        break;
    case STK_TASK_ORDINAL:
        if (!stk_column_is_numeric(p)) {
            return fail_wanted(a, "holds no numbers, so nobody knows the order of its classes",
                               err);
        }
        decide(a, STK_TASK_ORDINAL, STK_ANSWER_LABEL);
        break;
    case STK_TASK_REGRESSION:
        if (!stk_column_is_numeric(p)) {
            return fail_wanted(a, "holds cells that are no numbers", err);
        }
        decide(a, STK_TASK_REGRESSION, STK_ANSWER_NUMBERS);
        break;
    case STK_TASK_RANKING:
        if (!is_ranking(a)) {
            decide(a, STK_TASK_RANKING, STK_ANSWER_RANKED);
            a->ask->answer.most = USUAL_RANKED;
            a->ask->stranger = stranger_among(p);
        }
        a->ask->answer.divider = ' ';
        break;
    default:
        decide_single(a);
        break;
    }
    say(a->ask, "--task %s", stk_task_name(a->wanted));
    return STK_OK;
}

static stk_status decide_column(asking *a, stk_error *err) {
    if (a->wanted != STK_TASK_AUTO) {
        return decide_wanted(a, err);
    }
    const stk_column_profile *p = &a->labels;
    if (is_multilabel(a)) {
        decide(a, STK_TASK_MULTILABEL, STK_ANSWER_LIST);
    } else if (a->ask->values) {
        decide_single(a);
    } else if (is_ranking(a)) {
        return STK_OK;
    } else if (is_regression(a)) {
        decide(a, STK_TASK_REGRESSION, STK_ANSWER_NUMBERS);
    } else if (is_ordinal(a)) {
        decide(a, STK_TASK_ORDINAL, STK_ANSWER_LABEL);
    } else if (p->count == 2) {
        decide_binary(a, p->texts[0].text, p->texts[1].text);
    } else {
        decide_single(a);
    }
    return STK_OK;
}

/* ---- several label columns ---- */

static stk_status decide_columns(asking *a, stk_error *err) {
    stk_label_columns c;
    size_t count = a->ask->count;
    stk_status status = stk_label_columns_look(&c, a->tables->train, a->ask->labels, count, err);
    if (status != STK_OK) {
        return status;
    }
    if (!c.numbers) {
        return STK_FAIL(err, STK_ERR_DATA,
                        "%zu columns of %s are labels, but column '%s' holds cells that are no "
                        "numbers; name the one column to train on with --label-column",
                        count, a->tables->where, c.odd);
    }
    stk_task task = a->wanted != STK_TASK_AUTO ? a->wanted
                    : !c.flags                 ? STK_TASK_REGRESSION
                    : c.one_hot                ? STK_TASK_SINGLE
                                               : STK_TASK_MULTILABEL;
    if (task == STK_TASK_SINGLE && c.one_hot) {
        decide(a, task, STK_ANSWER_PROBABILITIES);
        a->ask->one_hot = true;
        say(a->ask, "%zu columns, of which one is 1 in each row", count);
    } else if (task == STK_TASK_MULTILABEL && c.flags) {
        decide(a, task, a->hints->labels ? STK_ANSWER_FLAGS : STK_ANSWER_SCORES);
        say(a->ask, "%zu columns of 0 and 1", count);
    } else if (task == STK_TASK_REGRESSION) {
        decide(a, task, STK_ANSWER_NUMBERS);
        say(a->ask, "%zu columns of numbers", count);
    } else {
        return STK_FAIL(err, STK_ERR_USAGE,
                        "--task %s: %zu columns of %s are labels, which is %s; name the one column "
                        "to train on with --label-column",
                        stk_task_name(task), count, a->tables->where,
                        !c.flags    ? "regression"
                        : c.one_hot ? "single"
                                    : "multilabel");
    }
    return STK_OK;
}

/* The metric of the hints, where it can rate the task. Now that the task is known the text is read
 * once more: a mean F1 of several labels is another one than that of classes. */
static void take_metric(stk_ask *ask, const stk_hints *hints) {
    const char *phrase = hints->phrase;
    stk_metric metric = hints->metric;
    stk_metric_mention said = {.metric = STK_METRIC_AUTO};
    if (!hints->given && hints->text != NULL) {
        said = stk_metric_find_in_text(hints->text, ask->task);
    }
    if (said.metric != STK_METRIC_AUTO) {
        metric = said.metric;
        phrase = said.phrase;
    }
    if (stk_metric_rates(metric, ask->task)) {
        ask->metric = metric;
        ask->metric_given = hints->given;
    }
    snprintf(ask->phrase, sizeof ask->phrase, "%s", phrase);
}

/* A profile of classes that no table has. */
static stk_status profile_of_names(stk_column_profile *p, const char *const *names, size_t count,
                                   stk_error *err) {
    bool ok = STK_RESERVE(p->texts, p->capacity, count);
    for (size_t i = 0; ok && i < count; i++) {
        bool added;
        p->texts[p->count++] = (stk_column_text){names[i], 1};
        ok = stk_map_add(&p->places, names[i], i, &added);
    }
    if (!ok) {
        stk_column_profile_free(p);
        return STK_FAIL_MEMORY(err, "the class names");
    }
    return STK_OK;
}

static stk_status decide_classes(asking *a, const char *const *classes, size_t count,
                                 stk_error *err) {
    bool fits = a->wanted == STK_TASK_AUTO || a->wanted == STK_TASK_SINGLE ||
                a->wanted == STK_TASK_RANKING || (a->wanted == STK_TASK_BINARY && count == 2);
    if (!fits) {
        return STK_FAIL(err, STK_ERR_USAGE,
                        "--task %s: %s has classes and no table with other labels; pass --task "
                        "single, or leave it out",
                        stk_task_name(a->wanted), a->listing->dataset->root);
    }
    if (a->wanted == STK_TASK_RANKING || (a->wanted == STK_TASK_AUTO && is_ranking(a))) {
        decide(a, STK_TASK_RANKING, STK_ANSWER_RANKED);
        a->ask->answer.divider = ' ';
        a->ask->answer.most = a->hints->ranked > 0  ? a->hints->ranked
                              : a->sample.words > 1 ? (int)a->sample.words
                                                    : USUAL_RANKED;
        say(a->ask, a->wanted == STK_TASK_AUTO ? "the sample has lists" : "--task ranking");
    } else if (count == 2 && a->wanted != STK_TASK_SINGLE) {
        decide_binary(a, classes[0], classes[1]);
    } else {
        decide_single(a);
    }
    return STK_OK;
}

/* ---- the whole ---- */

/* What is decided about. */
typedef struct question {
    const stk_listing *listing;
    const stk_ask_tables *tables; /* tables->train NULL: no table has labels */
    const char *const *classes;   /* in that case: those of folders or names */
    size_t class_count;
} question;

/* Decides by these hints; `ask` has its columns. */
static stk_status decide_by(const question *q, const stk_hints *hints, stk_ask *ask,
                            doubts *doubtful, stk_error *err) {
    const stk_ask_tables *t = q->tables;
    asking a = {.ask = ask,
                .doubts = doubtful,
                .listing = q->listing,
                .tables = t,
                .hints = hints,
                .wanted = (stk_task)q->listing->options->task,
                .has_sample = t->sample != NULL,
                .name = "the data set"};
    stk_status status = STK_OK;
    bool has_table = t->train != NULL;
    bool one_column = has_table && ask->count == 1;
    if (a.has_sample) {
        a.asked = t->sample->columns - 1 - (t->sample_kept != SIZE_MAX);
    }
    if (!has_table) {
        status = profile_of_names(&a.labels, q->classes, q->class_count, err);
    } else if (one_column) {
        a.name = t->train->header[ask->labels[0]];
        status = stk_column_profile_make(&a.labels, t->train, ask->labels[0], err);
        STK_THEN(status, stk_label_lists_find(&a.lists, &a.labels, err));
    }
    if (status == STK_OK) {
        a.sample = stk_sample_cells_read(t->sample, t->sample_id, t->sample_kept, &a.labels.places);
        status = !has_table   ? decide_classes(&a, q->classes, q->class_count, err)
                 : one_column ? decide_column(&a, err)
                              : decide_columns(&a, err);
    }
    stk_column_profile_free(&a.labels);
    take_metric(ask, hints);
    return status;
}

/* Whether the folder alone leads to the metric of the options: what was decided then stands, as in
 * a run that is begun again with all options that it told. */
static bool leads_to(const stk_ask *ask, stk_metric metric) {
    stk_metric own = ask->metric != STK_METRIC_AUTO
                         ? ask->metric
                         : stk_metric_default(ask->task, ask->answer.kind);
    return own == metric;
}

/* Decides by the folder, and once more by the metric of the options where that does not follow. */
static stk_status decide_question(const question *q, const stk_hints *hints, stk_ask *ask,
                                  stk_error *err) {
    const stk_dataset_options *options = q->listing->options;
    const stk_ask before = *ask;
    doubts doubtful = {.count = 0};
    stk_status status = decide_by(q, hints, ask, &doubtful, err);
    if (status == STK_OK && options->metric_given && !leads_to(ask, options->metric)) {
        stk_hints named = *hints;
        stk_hints_name_metric(&named, options->metric);
        *ask = before;
        doubtful.count = 0;
        status = decide_by(q, &named, ask, &doubtful, err);
    }
    for (size_t i = 0; status == STK_OK && i < doubtful.count; i++) {
        stk_events_warning(q->listing->events, "%s", doubtful.texts[i]);
    }
    return status;
}

stk_status stk_ask_task(stk_ask *ask, const stk_listing *listing, const stk_ask_tables *t,
                        const stk_hints *hints, stk_error *err) {
    const question q = {.listing = listing, .tables = t};
    return decide_question(&q, hints, ask, err);
}

stk_status stk_ask_classes(stk_ask *ask, const stk_listing *listing, const stk_csv *sample,
                           size_t sample_id, const char *const *classes, size_t count,
                           const stk_hints *hints, stk_error *err) {
    const stk_ask_tables tables = {
        .sample = sample, .sample_id = sample_id, .sample_kept = SIZE_MAX};
    const question q = {
        .listing = listing, .tables = &tables, .classes = classes, .class_count = count};
    *ask = (stk_ask){.metric = STK_METRIC_AUTO};
    return decide_question(&q, hints, ask, err);
}
