/* typical_step.c - seconds of a step, from the typical one of the last groups. */
#include "train/typical_step.h"

#include <math.h>

/* Seconds of a group; a longer step is one by itself. */
#define GROUP_S 0.25

/* Groups that count: a lasting change is believed after the fourth. */
#define GROUPS 7

void stk_typical_step_wait(stk_typical_step *t, double seconds) {
    t->waited += t->timed > 0 ? seconds : 0;
}

/* Stores the seconds per step of a group. */
static void note_group(stk_typical_step *t, double step_s, double wait_s) {
    t->step_s.room = t->wait_s.room = GROUPS;
    stk_typical_note(&t->step_s, step_s);
    stk_typical_note(&t->wait_s, wait_s);
}

void stk_typical_step_expect(stk_typical_step *t, double step_s, double wait_s) {
    *t = (stk_typical_step){0};
    if (!isnan(step_s)) {
        note_group(t, step_s, wait_s);
    }
}

void stk_typical_step_add(stk_typical_step *t, double seconds) {
    if (t->timed++ == 0) {
        return; /* the first step warms up and does not count */
    }
    t->steps++;
    t->seconds += seconds;
    if (t->seconds < GROUP_S) {
        return;
    }
    note_group(t, t->seconds / (double)t->steps, t->waited / (double)t->steps);
    t->steps = 0;
    t->seconds = t->waited = 0;
}

/* Before the first group is full, its steps count as they are. */
static double value_of(const stk_typical_step *t, const stk_typical *groups, double open) {
    return groups->count > 0 ? stk_typical_value(groups)
           : t->steps > 0    ? open / (double)t->steps
                             : NAN;
}

double stk_typical_step_s(const stk_typical_step *t) {
    return value_of(t, &t->step_s, t->seconds);
}

double stk_typical_step_wait_s(const stk_typical_step *t) {
    return value_of(t, &t->wait_s, t->waited);
}
