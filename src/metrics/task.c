/* task.c - the names of tasks and answers. */
#include "metrics/task.h"

#include <stddef.h>
#include <string.h>

/* In the order of stk_task. */
static const char *const names[] = {"auto",    "single",     "binary", "multilabel",
                                    "ordinal", "regression", "ranking"};

/* In the order of stk_answer_kind. */
static const char *const answers[] = {"label", "probabilities", "positive", "scores", "flags",
                                      "list",  "ranked",        "numbers",  "sure"};

const char *stk_answer_name(stk_answer_kind kind) {
    return answers[kind];
}

const char *stk_task_name(stk_task task) {
    return names[task];
}

stk_task stk_task_named(const char *name) {
    for (size_t i = 0; name != NULL && i < sizeof names / sizeof *names; i++) {
        if (strcmp(name, names[i]) == 0) {
            return (stk_task)i;
        }
    }
    return STK_TASK_AUTO;
}

const char *stk_task_outputs(stk_task task, int count) {
    switch (task) {
    case STK_TASK_MULTILABEL:
        return count == 1 ? "label" : "labels";
    case STK_TASK_REGRESSION:
        return count == 1 ? "number" : "numbers";
    default:
        return count == 1 ? "class" : "classes";
    }
}
