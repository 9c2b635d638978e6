/*
 * ask_task.c - decides on the task, and on what the submission takes.
 *
 * What decides, in this order: --task; what the labels are (several columns, lists, fractions); the
 * metric that --metric or else the description names; the cells of the sample submission, which are
 * placeholders but of the wanted kind; the names of columns. The reason is kept for people.
 */
#include "dataset/asking.h"

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

/* Fewer rows tell nothing about how often their texts repeat. */
#define FEWEST_TELLING 20

/* Label columns that a reason names, at most. */
#define MOST_NAMED 5

/* Names in a list of ranked classes where nothing says how many. */
#define USUAL_RANKED 5

/* Classes of pictures that belong to no class, word by word: whales nobody knows. */
static const char *const strangers[] = {"new", "unknown", "other", "stranger", NULL};

/* ---- deciding ---- */

static void decide(stk_asking *a, stk_task task, stk_answer_kind kind) {
    a->ask->task = task;
    a->ask->divider = (char)(a->lists.divider != '\0' ? a->lists.divider : ' ');
    a->ask->answer = (stk_answer){.kind = kind, .divider = a->ask->divider, .stranger = -1};
}

/* ---- two classes ---- */

/* The answer column of a sample that has one. */
static const char *answer_name(const stk_asking *a) {
    const stk_ask_tables *t = a->tables;
    for (size_t c = 0; a->has_sample && c < t->sample->columns; c++) {
        if (c != t->sample_id && c != t->sample_kept) {
            return t->sample->header[c];
        }
    }
    return NULL;
}

/* Probability or label: the metric says it, or else the cells of the sample. */
static void decide_binary(stk_asking *a, const char *first, const char *second) {
    bool guessed;
    const char *positive =
        stk_ask_positive(a->listing->options, a->hints, answer_name(a), first, second, &guessed);
    const stk_sample_cells *s = &a->sample;
    const stk_hints *h = a->hints;
    a->ask->positive = positive;
    bool names = s->numbers < s->cells; /* the sample has class names, or "True" */
    bool probability =
        h->probabilities || (!h->labels && !names && (s->fractions > 0 || s->constant));
    if (!a->has_sample || a->asked != 1) {
        bool columns = a->has_sample && a->asked > 1;
        decide(a, STK_TASK_BINARY, columns ? STK_ANSWER_PROBABILITIES : STK_ANSWER_LABEL);
        stk_ask_say(a->ask, "%s or %s%s", first, second,
                    columns ? ", and the sample has a column for each" : "");
    } else if (probability) {
        decide(a, STK_TASK_BINARY, STK_ANSWER_POSITIVE);
        if (h->probabilities) {
            stk_ask_say(a->ask, "the metric is %s", h->phrase);
        } else {
            stk_ask_say(a->ask, "the sample has %s in its only column", s->first);
        }
        if (guessed) {
            stk_ask_doubt(
                a,
                "nothing says whether the probability of '%.80s' or of '%.80s' is wanted: that of "
                "'%.80s' is written, which is a guess; --positive NAME says it",
                first, second, positive);
        }
    } else {
        decide(a, STK_TASK_BINARY, STK_ANSWER_LABEL);
        stk_ask_say(a->ask, "%s or %s, as the %s asks for", first, second,
                    h->labels ? h->phrase : "sample");
    }
}

/* ---- several labels, ranked classes, classes ---- */

/* A list is written as the sample has it, or else as the table. */
static void take_list_form(stk_asking *a) {
    const stk_cell_form *form = &a->ask->form;
    stk_answer *answer = &a->ask->answer;
    answer->bracket = a->has_sample ? a->sample.bracket : form->bracket;
    answer->quote = a->sample.quote != '\0' ? a->sample.quote : form->quote;
    if (answer->bracket != '\0') {
        answer->divider = ',';
    } else if (form->bracket != '\0' && a->has_sample) {
        answer->divider = a->sample.divider;
    }
}

/* One column for all labels, or one for each. */
static void decide_multilabel(stk_asking *a) {
    bool columns = a->has_sample && a->asked > 1;
    decide(a, STK_TASK_MULTILABEL,
           !columns           ? STK_ANSWER_LIST
           : a->hints->labels ? STK_ANSWER_FLAGS
                              : STK_ANSWER_SCORES);
    if (!columns) {
        take_list_form(a);
    }
}

static bool is_multilabel(stk_asking *a) {
    stk_label_lists *lists = &a->lists;
    bool by_sample = a->has_sample && a->asked == 1 && a->sample.lists > 0;
    const char *columns = a->has_sample && a->asked > 1 ? "; the sample has a column for each" : "";
    if (a->ask->form.bracket != '\0') {
        lists->divider = a->ask->form.divider;
        stk_ask_say(a->ask, "cells of %s are lists of labels, such as %.60s%s", a->name,
                    a->ask->form.example, columns);
        return true;
    }
    if (lists->listed > 0 || (lists->doubtful && by_sample)) {
        stk_ask_say(a->ask, "cells of %s hold several labels, such as '%.60s'%s", a->name,
                    lists->example, columns);
        return true;
    }
    if (lists->doubtful) {
        stk_ask_doubt(a,
                      "column '%s' of %s may hold several labels in a cell, such as '%.100s': "
                      "each of the %zu texts is taken as a class of its own; --task "
                      "multilabel divides them",
                      a->name, a->tables->file, lists->example, a->labels.count);
    }
    return false;
}

/* Whether the sample has a class and its probability in a cell. */
static bool is_sure(const stk_asking *a) {
    const stk_sample_cells *s = &a->sample;
    return a->has_sample && a->asked == 1 && s->sure > 0 && 10 * s->sure >= 9 * s->cells;
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

static bool is_ranking(stk_asking *a) {
    const stk_sample_cells *s = &a->sample;
    bool by_sample = a->has_sample && a->asked == 1 && s->cells > 0 && 2 * s->lists > s->cells &&
                     !a->hints->labels && !a->hints->probabilities;
    bool names = s->known > 0 || !a->lists.blanks; /* not a placeholder of several words */
    if (is_sure(a) || ((!by_sample || !names) && a->hints->ranked == 0)) {
        return false;
    }
    if (a->lists.blanks_example != NULL) {
        stk_ask_doubt(a,
                      "names of classes have blanks, such as '%.80s', and so have the lists of the "
                      "submission between two names: it cannot be told where a name ends",
                      a->lists.blanks_example);
    }
    decide(a, STK_TASK_RANKING, STK_ANSWER_RANKED);
    a->ask->answer.divider = ' ';
    a->ask->answer.most = a->hints->ranked > 0 ? a->hints->ranked : (int)s->words;
    a->ask->stranger = stranger_among(&a->labels);
    if (a->hints->ranked > 0) {
        stk_ask_say(a->ask, "the %d likeliest classes of %s: the metric is %s", a->ask->answer.most,
                    a->name, a->hints->phrase);
    } else {
        stk_ask_say(a->ask, "the sample has %zu names in a cell", s->words);
    }
    return true;
}

/* Texts that hardly repeat are names of single pictures, dates or sentences rather than classes. */
static void doubt_texts(stk_asking *a) {
    const stk_column_profile *p = &a->labels;
    if (!stk_column_is_numeric(p) && a->tables->file != NULL && p->rows >= FEWEST_TELLING &&
        p->rows < STK_HARDLY_REPEATED * p->count) {
        stk_ask_doubt(
            a,
            "column '%s' of %s holds %zu different texts in %zu rows, such as '%.80s': each is "
            "taken as a class of its own; --label-column names another column",
            a->name, a->tables->file, p->count, p->rows, p->texts[0].text);
    }
}

/* A sample of numbers wants numbers for classes, and nothing says which. */
static void doubt_numbers(stk_asking *a) {
    const stk_sample_cells *s = &a->sample;
    if (a->has_sample && a->asked == 1 && s->cells > 0 && s->numbers == s->cells &&
        a->labels.numbers == 0) {
        stk_ask_doubt(a,
                      "the sample submission has numbers, such as '%s', and classes have names, "
                      "such as '%.80s': names are written%s",
                      s->first, a->labels.texts[0].text,
                      a->tables->file != NULL
                          ? "; --label-column takes a column of numbers, if there is one"
                          : "");
    }
}

static void decide_single(stk_asking *a) {
    bool columns = a->has_sample && a->asked > 1;
    bool sure = is_sure(a);
    decide(a, STK_TASK_SINGLE,
           columns ? STK_ANSWER_PROBABILITIES
           : sure  ? STK_ANSWER_SURE
                   : STK_ANSWER_LABEL);
    stk_ask_say(a->ask, "%s has %zu classes%s", a->name, a->labels.count,
                columns         ? ", and the sample a column for each"
                : sure          ? ", and the sample a class and a probability in each cell"
                : a->has_sample ? ", and the sample one column for the label"
                                : "");
    doubt_numbers(a);
}

/* ---- by what --task says ---- */

static stk_status fail_wanted(const stk_asking *a, const char *why, stk_error *err) {
    return STK_FAIL(err, STK_ERR_USAGE,
                    "--task %s: column '%s' of %s %s; pass another task, or "
                    "another --label-column",
                    stk_task_name(a->wanted), a->name, a->tables->where, why);
}

static stk_status decide_wanted(stk_asking *a, stk_error *err) {
    const stk_column_profile *p = &a->labels;
    switch (a->wanted) {
    case STK_TASK_BINARY:
        if (p->count != 2) {
            return fail_wanted(a, "does not have two different values", err);
        }
        decide_binary(a, p->texts[0].text, p->texts[1].text);
        break;
    case STK_TASK_MULTILABEL:
        a->lists.divider =
            (char)(a->ask->form.bracket != '\0' ? a->ask->form.divider : a->lists.divider);
        decide_multilabel(a);
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
    stk_ask_say(a->ask, "--task %s", stk_task_name(a->wanted));
    return STK_OK;
}

static stk_status decide_column(stk_asking *a, stk_error *err) {
    if (a->wanted != STK_TASK_AUTO) {
        return decide_wanted(a, err);
    }
    const stk_column_profile *p = &a->labels;
    if (is_multilabel(a)) {
        decide_multilabel(a);
    } else if (a->ask->values) {
        decide_single(a);
    } else if (is_ranking(a)) {
        return STK_OK;
    } else if (stk_ask_is_regression(a)) {
        decide(a, STK_TASK_REGRESSION, STK_ANSWER_NUMBERS);
    } else if (stk_ask_is_ordinal(a)) {
        decide(a, STK_TASK_ORDINAL, STK_ANSWER_LABEL);
    } else if (p->count == 2 && !is_sure(a)) {
        decide_binary(a, p->texts[0].text, p->texts[1].text);
    } else {
        decide_single(a);
        doubt_texts(a);
    }
    return STK_OK;
}

/* ---- several label columns ---- */

static stk_status decide_columns(stk_asking *a, stk_error *err) {
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
        stk_ask_say(a->ask, "%zu columns, of which one is 1 in each row", count);
    } else if (task == STK_TASK_MULTILABEL && c.flags) {
        decide(a, task, a->hints->labels ? STK_ANSWER_FLAGS : STK_ANSWER_SCORES);
        stk_ask_say(a->ask, "%zu columns of 0 and 1", count);
    } else if (task == STK_TASK_REGRESSION) {
        decide(a, task, STK_ANSWER_NUMBERS);
        a->ask->answer.shares =
            a->has_sample && a->asked == count && a->sample.one && !c.flags &&
            stk_label_columns_are_parts(a->tables->train, a->ask->labels, count);
        stk_ask_say(a->ask, "%zu columns of numbers%s", count,
                    a->ask->answer.shares ? ", of which each row of the sample sums to 1" : "");
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

static stk_status decide_classes(stk_asking *a, const char *const *classes, size_t count,
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
        stk_ask_say(a->ask, a->wanted == STK_TASK_AUTO ? "the sample has lists" : "--task ranking");
    } else if (count == 2 && a->wanted != STK_TASK_SINGLE && !is_sure(a)) {
        decide_binary(a, classes[0], classes[1]);
    } else {
        decide_single(a);
    }
    return STK_OK;
}

/* ---- the whole ---- */

/* Whether the reason names the column, as a word of its own. */
static bool names_column(const char *reason, const char *name) {
    size_t length = strlen(name);
    for (const char *at = reason; length > 0 && (at = strstr(at, name)) != NULL; at++) {
        bool begins = at == reason || at[-1] == ' ';
        bool ends = at[length] == '\0' || strchr(" ,:;", at[length]) != NULL;
        if (begins && ends) {
            return true;
        }
    }
    return false;
}

/* The reason always says which columns are learned. */
static void name_columns(const stk_asking *a) {
    stk_ask *ask = a->ask;
    const stk_csv *csv = a->tables->train;
    size_t length = strlen(ask->reason);
    if (ask->count == 1 && names_column(ask->reason, csv->header[ask->labels[0]])) {
        return;
    }
    for (size_t i = 0; i < ask->count && length < sizeof ask->reason; i++) {
        bool last = i + 1 == ask->count || i + 1 == MOST_NAMED;
        length += (size_t)snprintf(ask->reason + length, sizeof ask->reason - length, "%s%.40s%s",
                                   i > 0             ? ", "
                                   : ask->count == 1 ? " (label column "
                                                     : " (label columns ",
                                   csv->header[ask->labels[i]],
                                   !last                 ? ""
                                   : i + 1 == ask->count ? ")"
                                                         : ", ...)");
        if (last) {
            break;
        }
    }
}

/* What is decided about. */
typedef struct question {
    const stk_listing *listing;
    const stk_ask_tables *tables; /* tables->train NULL: no table has labels */
    const char *const *classes;   /* in that case: those of folders or names */
    size_t class_count;
} question;

/* Decides by these hints; `ask` has its columns. */
static stk_status decide_by(const question *q, const stk_hints *hints, stk_ask *ask,
                            stk_doubts *doubtful, stk_error *err) {
    const stk_ask_tables *t = q->tables;
    stk_asking a = {.ask = ask,
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
    if (status == STK_OK) {
        name_columns(&a);
    }
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
    stk_doubts doubtful = {.count = 0};
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
