/*
 * margin.h - the time that must be left when computing ends, from how long such work took before.
 *
 * What comes at the end of a run has come before: class priors were written as a submission, a
 * loader was closed. How long that took on this machine, with what else runs on it, says more than
 * any constant. Pure arithmetic.
 */
#ifndef STK_BUDGET_MARGIN_H
#define STK_BUDGET_MARGIN_H

/* A machine can become busier: work that took a second may take so many the next time. */
#define STK_MARGIN_SAFETY 2.0

/* The last work of a run, in its order. */
typedef enum stk_margin_work {
    STK_MARGIN_SUBMISSION, /* writing the rows */
    STK_MARGIN_CLOSING,    /* loaders, networks, memory */
    STK_MARGIN_WORKS
} stk_margin_work;

/* Zero-initialised: nothing was measured yet. */
typedef struct stk_margin {
    double recent_s[STK_MARGIN_WORKS][2]; /* the last two of each, the latest first */
    double busy;  /* how many times as long everything takes as it would alone; 0: not known */
    double end_s; /* what the end of the process takes at least; 0: next to nothing */
} stk_margin;

void stk_margin_note(stk_margin *margin, stk_margin_work work, double seconds);

/* What the work from `first` to the end took: the longer of the last two times of each. */
double stk_margin_took(const stk_margin *margin, stk_margin_work first);

/*
 * What is to be left for it: that with the safety, and some time for what cannot be measured before
 * it happens. budget_s is NaN without a budget.
 */
double stk_margin_needed(const stk_margin *margin, stk_margin_work first, double budget_s);

/* What a part of the work is to be reckoned with: on a busy machine times scatter. */
double stk_margin_stretch(const stk_margin *margin, double seconds);

#endif
