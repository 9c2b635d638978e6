/* typical_step.c - seconds of a step, from the typical one of the last groups. */
#include "train/typical_step.h"

#include <math.h>

/* Seconds of a group; a longer step is one by itself. */
#define GROUP_S 0.25

/* Groups that count: a lasting change is believed after the fourth. */
#define GROUPS 7

void stk_typical_step_wait(stk_typical_step *p, double seconds) {
    p->waited += p->timed > 0 ? seconds : 0;
}

void stk_typical_step_add(stk_typical_step *p, double seconds) {
    if (p->timed++ == 0) {
        return; /* the first step warms up and does not count */
    }
    p->steps++;
    p->seconds += seconds;
    if (p->seconds < GROUP_S) {
        return;
    }
    p->step_s.room = p->wait_s.room = GROUPS;
    stk_typical_note(&p->step_s, p->seconds / (double)p->steps);
    stk_typical_note(&p->wait_s, p->waited / (double)p->steps);
    p->steps = 0;
    p->seconds = p->waited = 0;
}

/* Before the first group is full, its steps count as they are. */
static double value_of(const stk_typical_step *p, const stk_typical *groups, double open) {
    return groups->count > 0 ? stk_typical_value(groups)
           : p->steps > 0    ? open / (double)p->steps
                             : NAN;
}

double stk_typical_step_s(const stk_typical_step *p) {
    return value_of(p, &p->step_s, p->seconds);
}

double stk_typical_step_wait_s(const stk_typical_step *p) {
    return value_of(p, &p->wait_s, p->waited);
}
