/* task.c - the names of tasks and answers. */
#include "metrics/task.h"

/* In the order of stk_task. */
static const char *const names[] = {"auto",    "single",     "binary", "multilabel",
                                    "ordinal", "regression", "ranking"};

/* In the order of stk_answer_kind. */
static const char *const answers[] = {"label", "probabilities", "positive", "scores",
                                      "flags", "list",          "ranked",   "numbers"};

const char *stk_answer_name(stk_answer_kind kind) {
    return answers[kind];
}

const char *stk_task_name(stk_task task) {
    return names[task];
}
