/*
 * task.h - what is predicted for a picture: the kinds of labels that a data set may have.
 *
 * Single, binary, ordinal and ranking tasks train a softmax over classes, multilabel ones a sigmoid
 * per label, regressions a number per target. No functions and no state.
 */
#ifndef STK_DATASET_TASK_H
#define STK_DATASET_TASK_H

/* The names, in the order of the values: the choices of an option. */
#define STK_TASK_NAMES "auto single binary multilabel ordinal regression ranking"

typedef enum stk_task {
    STK_TASK_AUTO,       /* as the data set says */
    STK_TASK_SINGLE,     /* one class per picture */
    STK_TASK_BINARY,     /* two classes; class 1 is the positive one */
    STK_TASK_MULTILABEL, /* any number of labels per picture: targets of 0 and 1, NaN: not known */
    STK_TASK_ORDINAL,    /* one class per picture; the classes are steps of a scale, in order */
    STK_TASK_REGRESSION, /* one or more numbers per picture; NaN: not known */
    STK_TASK_RANKING     /* one class per picture, answered by a list of the likeliest classes */
} stk_task;

#endif
