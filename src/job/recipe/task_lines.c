/* task_lines.c - the lines about task, metric and submission. */
#include "job/recipe/task_lines.h"

#include <stdio.h>

#include "base/str.h"

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
        snprintf(text, size, "the labels that hold, divided by '%c'", a->divider);
        break;
    case STK_ANSWER_RANKED:
        snprintf(text, size, "the %d likeliest classes, best first", a->most);
        break;
    case STK_ANSWER_NUMBERS:
        snprintf(text, size, "%s within the range of the training data",
                 dataset->class_count == 1 ? "a number" : "numbers");
        break;
    }
    return text;
}

static void emit_metric(const stk_recipe *recipe, const stk_events *events) {
    const stk_metric_info *info = stk_metric_info_of((stk_metric)recipe->train.metric);
    char what[64];
    char why[120];
    if ((stk_metric)recipe->train.metric != recipe->metric_found) {
        return; /* given, or the usual one of the task */
    }
    snprintf(what, sizeof what, "metric %s", info->name);
    snprintf(why, sizeof why, "the description asks for \"%s\"", recipe->metric_phrase);
    stk_events_decision(events, what, why);
}

void stk_task_emit(const stk_dataset *dataset, const stk_recipe *recipe, const stk_events *events) {
    char answer[160];
    char what[260];
    if (dataset->reason != NULL) {
        snprintf(what, sizeof what, "task %s, each row takes %s", stk_task_name(dataset->task),
                 stk_task_describe_answer(dataset, answer, sizeof answer));
        stk_events_decision(events, what, dataset->reason);
    }
    emit_metric(recipe, events);
    if (dataset->grouped_by != NULL && dataset->row_count < dataset->test.count) {
        char why[160];
        snprintf(what, sizeof what, "%zu test pictures for %zu rows, whose values are averaged",
                 dataset->test.count, dataset->row_count);
        snprintf(why, sizeof why, "several have the same %.80s", dataset->grouped_by);
        stk_events_decision(events, what, why);
    }
    if (dataset->features.count > 0) {
        snprintf(what, sizeof what, "%d column%s beside the pictures: %s",
                 dataset->features.columns, dataset->features.columns == 1 ? "" : "s",
                 dataset->features.names);
        stk_events_decision(events, what,
                            "training and test table have them; --no-columns leaves them out");
    }
    if (recipe->channels != 0 && recipe->channels != 3) {
        snprintf(what, sizeof what, "%d channel%s", recipe->channels,
                 recipe->channels == 1 ? "" : "s");
        stk_events_decision(events, what, "the pictures have as many");
    }
}
