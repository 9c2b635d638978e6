/*
 * sizes.c - small pictures in the first part of a training, and the change to the usual ones.
 */
#include "train/trainer.h"

/* Epochs that begin before this progress of the schedule have small pictures. Under a budget the
 * schedule follows the time: both sizes get half of it. */
#define SMALL_UNTIL 0.5

const stk_graph *stk_trainer_graph(const stk_trainer *t) {
    return t->small ? t->config->small_graph : t->config->graph;
}

const stk_graph *stk_trainer_val_graph(const stk_trainer *t) {
    const stk_train_config *c = t->config;
    return t->small ? c->small_val_graph : stk_compile_graph(&c->val_compile, c->graph);
}

bool stk_trainer_is_small_at(const stk_trainer *t, const stk_train_position *position) {
    return t->config->small_graph != NULL && position->small &&
           (position->step > 0 || position->schedule < SMALL_UNTIL);
}

bool stk_trainer_size_changes(const stk_trainer *t) {
    return t->small && !t->within_epoch && t->schedule >= SMALL_UNTIL;
}

void stk_trainer_set_size(stk_trainer *t, bool small) {
    stk_train_standing *p = &t->standing;
    double before = stk_trainer_graph(t)->img_size;
    t->small = t->result->small = small;
    t->validated_epoch = 0;
    t->since_best = 0; /* patience waits for epochs of one size */
    double side = stk_trainer_graph(t)->img_size / before;
    p->step_s *= side * side;
    p->wait_s *= side * side;
    p->val_s *= side * side;
    p->val_even_s *= side * side;
    stk_trainer_expect_steps(t);
}
