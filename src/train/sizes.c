/*
 * sizes.c - small pictures in the first part of a training, and the change to the usual ones.
 */
#include "train/trainer.h"

#include <stdio.h>

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

bool stk_trainer_size_changes(const stk_trainer *t) {
    return t->small && !t->within_epoch && t->schedule >= SMALL_UNTIL;
}

void stk_trainer_change_size(stk_trainer *t) {
    stk_train_standing *p = &t->standing;
    char what[64];
    double before = stk_trainer_graph(t)->img_size;
    t->small = t->result->small = false;
    t->size_validated = false;
    double side = stk_trainer_graph(t)->img_size / before;
    p->step_s *= side * side;
    p->wait_s *= side * side;
    p->val_s *= side * side;
    p->val_even_s *= side * side;
    stk_typical_step_expect(&t->typical_step, p->step_s, p->wait_s);
    snprintf(what, sizeof what, "pictures of %d px", stk_trainer_graph(t)->img_size);
    stk_events_decision(t->config->events, what,
                        "the first half of the training is over, and now detail counts");
}
