/* task.c - the names of tasks. */
#include "metrics/task.h"

/* In the order of stk_task. */
static const char *const names[] = {"auto",    "single",     "binary", "multilabel",
                                    "ordinal", "regression", "ranking"};

const char *stk_task_name(stk_task task) {
    return names[task];
}
