/* task_lines.c - the lines about task, metric and submission. */
#include "job/recipe/task_lines.h"

#include <stdio.h>

#include "base/str.h"
#include "metrics/metric_words.h"
#include "predict/submission.h"

const char *stk_task_describe_answer(const stk_dataset *dataset, char *text, size_t size) {
    const stk_answer *a = &dataset->answer;
    switch (a->kind) {
    case STK_ANSWER_LABEL:
        snprintf(text, size, "the label");
        break;
    case STK_ANSWER_PROBABILITIES:
        snprintf(text, size, "a probability for each class, which sum to 1");
        break;
    case STK_ANSWER_POSITIVE:
        snprintf(text, size, "the probability of '%.60s'", dataset->classes[a->positive]);
        break;
    case STK_ANSWER_SCORES:
        snprintf(text, size, "a probability for each label");
        break;
    case STK_ANSWER_FLAGS:
        snprintf(text, size, "1 or 0 for each label");
        break;
    case STK_ANSWER_LIST:
        if (a->bracket != '\0') {
            snprintf(text, size, "the labels that hold, as a list with brackets");
        } else {
            snprintf(text, size, "the labels that hold, divided by '%c'", a->divider);
        }
        break;
    case STK_ANSWER_RANKED:
        snprintf(text, size, "the %d likeliest classes, best first", a->most);
        break;
    case STK_ANSWER_SURE:
        snprintf(text, size, "the likeliest class and its probability");
        break;
    case STK_ANSWER_NUMBERS:
        if (a->shares) {
            snprintf(text, size, "shares, which sum to 1");
            break;
        }
        snprintf(text, size, "%s within the range of the training data",
                 dataset->class_count == 1 ? "a number" : "numbers");
        break;
    }
    return text;
}

/* Which metric rates, and why, unless --metric says so. */
static void emit_metric(const stk_dataset *dataset, const stk_recipe *recipe,
                        const stk_events *events) {
    const stk_metric_info *info = stk_metric_info_of((stk_metric)recipe->train.metric);
    const char *phrase = recipe->metric_phrase != NULL ? recipe->metric_phrase : "";
    char what[64];
    char answer[160];
    char takes[200];
    char why[400];
    bool asked = (stk_metric)recipe->train.metric == recipe->metric_found;
    if (!asked && !recipe->metric_is_open) {
        return;
    }
    snprintf(what, sizeof what, "metric %s", info->name);
    if (dataset->row_count > 0) {
        snprintf(takes, sizeof takes, "each row takes %s",
                 stk_task_describe_answer(dataset, answer, sizeof answer));
    } else {
        snprintf(takes, sizeof takes, "the task is %s", stk_task_name(dataset->task));
    }
    if (asked && stk_metric_is_nearest(recipe->metric_found, phrase)) {
        snprintf(why, sizeof why,
                 "the description asks for \"%s\", which Stoker does not compute; %s rates instead",
                 phrase, info->name);
    } else if (asked) {
        snprintf(why, sizeof why, "the description asks for \"%s\"", phrase);
    } else if (phrase[0] != '\0') {
        snprintf(why, sizeof why, "what the description names, \"%s\", cannot rate it, and %s",
                 phrase, takes);
    } else {
        snprintf(why, sizeof why, "no description names one, and %s", takes);
    }
    stk_events_decision(events, what, why);
}

/* Several pictures for a row: what becomes of their values, as far as that is known. */
static void emit_rows(const stk_dataset *dataset, const stk_train_options *train,
                      const stk_events *events) {
    char what[160];
    char why[200];
    stk_pooling pool = (stk_pooling)train->pool;
    bool open = pool == STK_POOL_AUTO && train->calibrate && dataset->train_has_rows;
    snprintf(what, sizeof what, "%zu test pictures for %zu rows, %s", dataset->test.count,
             dataset->row_count,
             pool == STK_POOL_MAX ? "of whose values the largest count"
             : open               ? "whose values are averaged or maximised, as validates better"
                                  : "whose values are averaged");
    snprintf(why, sizeof why, "several have the same %.80s%s", dataset->grouped_by,
             pool == STK_POOL_AUTO && !dataset->train_has_rows
                 ? ", and the training pictures cannot be grouped so"
                 : "");
    stk_events_decision(events, what, why);
}

stk_status stk_task_look_at_submission(const stk_dataset *dataset, stk_submission_look *look,
                                       stk_error *err) {
    *look = (stk_submission_look){.rows = (int64_t)dataset->row_count};
    return look->rows > 0 ? stk_submission_describe(dataset, look->header, sizeof look->header,
                                                    &look->columns, err)
                          : STK_OK;
}

static stk_status emit_submission(const stk_dataset *dataset, const stk_events *events,
                                  stk_error *err) {
    stk_submission_look look;
    char why[600];
    stk_status status = stk_task_look_at_submission(dataset, &look, err);
    if (status == STK_OK && look.rows > 0) {
        int length = snprintf(why, sizeof why, "%lld row%s of %s, ", (long long)look.rows,
                              look.rows == 1 ? "" : "s", look.header);
        if (dataset->template_file != NULL) {
            snprintf(why + length, sizeof why - (size_t)length, "as %.200s has them",
                     dataset->template_file);
        } else {
            snprintf(why + length, sizeof why - (size_t)length, "since there is no sample of it");
        }
        stk_events_decision(events, "answer file", why);
    }
    return status;
}

stk_status stk_task_emit(const stk_dataset *dataset, const stk_recipe *recipe,
                         const stk_events *events, stk_error *err) {
    char answer[160];
    char what[260];
    if (dataset->reason != NULL) {
        bool rows = dataset->row_count > 0;
        snprintf(what, sizeof what, "task %s%s%s", stk_task_name(dataset->task),
                 rows ? ", each row takes " : "",
                 rows ? stk_task_describe_answer(dataset, answer, sizeof answer) : "");
        stk_events_decision(events, what, dataset->reason);
    }
    emit_metric(dataset, recipe, events);
    stk_status status = emit_submission(dataset, events, err);
    if (dataset->grouped_by != NULL && dataset->row_count < dataset->test.count) {
        emit_rows(dataset, &recipe->train, events);
    }
    if (dataset->features.count > 0) {
        size_t columns = dataset->features.code.count;
        snprintf(what, sizeof what, "%zu column%s beside the pictures: %s", columns,
                 columns == 1 ? "" : "s", dataset->features.names);
        stk_events_decision(events, what,
                            "training and test table have them; --no-columns leaves them out");
    }
    if (recipe->channels != 0 && recipe->channels != 3) {
        snprintf(what, sizeof what, "%d channel%s", recipe->channels,
                 recipe->channels == 1 ? "" : "s");
        stk_events_decision(events, what, "the pictures have as many");
    }
    return status;
}
