/*
 * same_pictures.h - two validations compared on the pictures that both have seen.
 *
 * A validation that ran out of time has seen a part of its pictures. Its figures beside those of a
 * whole validation say little: the part may be easier or harder. On the same pictures only the
 * weights differ, and some dozen pictures tell more. Threads: one at a time.
 */
#ifndef STK_TRAIN_SAME_PICTURES_H
#define STK_TRAIN_SAME_PICTURES_H

#include <stdbool.h>
#include <stddef.h>

#include <stoker/status.h>

/* What one validation came to for one picture. */
typedef struct stk_picture_result {
    float loss;
    bool seen;
    bool right; /* the label is the most likely class */
} stk_picture_result;

typedef struct stk_same_pictures {
    size_t count;             /* pictures of a whole validation */
    stk_picture_result *now;  /* owned: (count), of the running or last validation */
    stk_picture_result *best; /* owned: (count), of the best weights; none seen: not known */
} stk_same_pictures;

STK_CHECKED stk_status stk_same_pictures_open(stk_same_pictures *same, size_t count,
                                              stk_error *err);
void stk_same_pictures_free(stk_same_pictures *same);

/* A validation begins. */
void stk_same_pictures_reset(stk_same_pictures *same);

/* Adds the result of picture `at`, below `count`, to the running validation. */
void stk_same_pictures_add(stk_same_pictures *same, size_t at, bool right, double loss);

/* The weights of the last validation have become the best ones. */
void stk_same_pictures_take_best(stk_same_pictures *same);

/* Pictures that both the last validation and that of the best weights have seen. */
size_t stk_same_pictures_shared(const stk_same_pictures *same);

/* What the last validation has beyond that of the best weights, on the pictures that both have
 * seen: percent of right answers, and mean loss. 0 where they share none. */
void stk_same_pictures_differ(const stk_same_pictures *same, double *acc1, double *loss);

/*
 * Whether the last validation speaks against its weights: on the pictures that both have seen it is
 * worse than that of the best weights, by more than the standard error of the difference. With
 * `by_loss` the mean loss is compared, otherwise the number of right answers.
 */
bool stk_same_pictures_is_worse(const stk_same_pictures *same, bool by_loss);

#endif
