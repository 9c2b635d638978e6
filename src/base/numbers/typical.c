/* typical.c - the median by insertion sort: there are seven values at most. */
#include "base/numbers/typical.h"

#include <math.h>

#define USUAL_ROOM 3

static int room_of(const stk_typical *t) {
    return t->room > 0 && t->room <= STK_TYPICAL_MOST ? t->room : USUAL_ROOM;
}

void stk_typical_note(stk_typical *t, double value) {
    int room = room_of(t);
    t->values[t->next] = value;
    t->next = (t->next + 1) % room;
    t->count = t->count < room ? t->count + 1 : room;
}

double stk_typical_value(const stk_typical *t) {
    return stk_typical_of(t->values, t->count);
}

double stk_typical_of(const double *values, int count) {
    double sorted[STK_TYPICAL_MOST] = {0};
    if (count <= 0) {
        return NAN;
    }
    count = count < STK_TYPICAL_MOST ? count : STK_TYPICAL_MOST;
    for (int i = 0; i < count; i++) {
        int at = i;
        for (; at > 0 && sorted[at - 1] > values[i]; at--) {
            sorted[at] = sorted[at - 1];
        }
        sorted[at] = values[i];
    }
    return sorted[(count - 1) / 2];
}
