/* margin.c - measured times of the last work, and the time to leave for it. */
#include "budget/margin.h"

#include <math.h>

/* Time for the end of the process, which cannot be measured beforehand. */
#define UNKNOWN_SHARE 0.015 /* share of the budget */
#define SHORT_SHARE 0.02    /* share of a short budget, where a moment is much */
#define SHORT_MOST_S 0.9    /* up to this: what UNKNOWN_SHARE makes of a minute */
#define UNKNOWN_LEAST_S 0.2 /* at least; on a busy machine times `busy` */
#define UNKNOWN_MOST_S 2.0  /* at most */

/* Limits `busy`: a thread that waited longer for its core was unlucky once. */
#define BUSY_MOST 5.0

void stk_margin_note(stk_margin *margin, stk_margin_work work, double seconds) {
    double *recent = margin->recent_s[work];
    recent[1] = recent[0];
    recent[0] = fmax(seconds, 0);
}

double stk_margin_took(const stk_margin *margin, stk_margin_work first) {
    double sum = 0;
    for (int work = first; work < STK_MARGIN_WORKS; work++) {
        sum += fmax(margin->recent_s[work][0], margin->recent_s[work][1]);
    }
    return sum;
}

double stk_margin_stretch(const stk_margin *margin, double seconds) {
    return seconds * fmin(fmax(margin->busy, 1), STK_MARGIN_SAFETY);
}

double stk_margin_needed(const stk_margin *margin, stk_margin_work first, double budget_s) {
    double share = fmax(UNKNOWN_SHARE * budget_s, fmin(SHORT_SHARE * budget_s, SHORT_MOST_S));
    double unknown = isnan(budget_s) ? 0 : share;
    unknown = fmax(unknown, UNKNOWN_LEAST_S * fmin(fmax(margin->busy, 1), BUSY_MOST));
    unknown = fmax(unknown, margin->end_s);
    return STK_MARGIN_SAFETY * stk_margin_took(margin, first) + fmin(unknown, UNKNOWN_MOST_S);
}
