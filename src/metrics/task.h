/*
 * task.h - what a data set asks for, and what its submission takes.
 *
 * The task says what is learned, the answer what is written into each row. Both are found out from
 * the labels, the sample submission and the description (ask.h), or told by --task.
 */
#ifndef STK_METRICS_TASK_H
#define STK_METRICS_TASK_H

#include <stdbool.h>

/* In the order of the choices of --task. */
typedef enum stk_task {
    STK_TASK_AUTO,
    STK_TASK_SINGLE,     /* one of several classes */
    STK_TASK_BINARY,     /* one of two classes, of which one is the positive one */
    STK_TASK_MULTILABEL, /* any number of labels */
    STK_TASK_ORDINAL,    /* one of several classes that are steps of a scale */
    STK_TASK_REGRESSION, /* one or several numbers */
    STK_TASK_RANKING     /* the likeliest classes, the best first */
} stk_task;

#define STK_TASK_NAMES "auto single binary multilabel ordinal regression ranking"

/* "multilabel"; for messages. */
const char *stk_task_name(stk_task task);

/* The task of that name; AUTO for another name, or NULL. */
stk_task stk_task_named(const char *name);

/* What so many outputs of a network are: "class", "labels", "numbers"; for messages. */
const char *stk_task_outputs(stk_task task, int count);

/* Whether a picture belongs to one class: softmax and labels. Otherwise there are targets. */
static inline bool stk_task_has_classes(stk_task task) {
    return task != STK_TASK_MULTILABEL && task != STK_TASK_REGRESSION;
}

/* What each row of the submission takes. */
typedef enum stk_answer_kind {
    STK_ANSWER_LABEL,         /* the class, in one column */
    STK_ANSWER_PROBABILITIES, /* a probability for each class's column; a row sums to 1 */
    STK_ANSWER_POSITIVE,      /* the probability of the positive class, in one column */
    STK_ANSWER_SCORES,        /* several labels: a probability for each label's column */
    STK_ANSWER_FLAGS,         /* several labels: 1 or 0 in each label's column */
    STK_ANSWER_LIST,          /* several labels: the names of those that hold, in one column */
    STK_ANSWER_RANKED,  /* the names of the likeliest classes, the best first, in one column */
    STK_ANSWER_NUMBERS, /* a number for each target's column */
    STK_ANSWER_SURE     /* the likeliest class and its probability, in one column */
} stk_answer_kind;

#define STK_ANSWER_KINDS (STK_ANSWER_SURE + 1)

/* "ranked"; for files. */
const char *stk_answer_name(stk_answer_kind kind);

typedef struct stk_answer {
    stk_answer_kind kind;
    char divider; /* LIST, RANKED: between two names */
    int most;     /* RANKED: names in a row, at most */
    int positive; /* POSITIVE: the class whose probability is written */
    int stranger; /* RANKED: the class of those that belong to no other; -1: there is none */
    char bracket; /* LIST: that opens each list; '\0': none */
    char quote;   /* LIST with brackets: around each name; '\0': none */
    bool shares;  /* NUMBERS: those of a row are cut at 0 and sum to 1 */
} stk_answer;

#endif
