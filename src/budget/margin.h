/*
 * margin.h - the time to leave for the last work of a run: writing files, closing, ending the
 * process.
 *
 * Every kind of last work happens early in a run, too: a first submission is written from class
 * priors, a loader is closed after a fold. How long that took on this machine says more than any
 * constant. Pure arithmetic.
 */
#ifndef STK_BUDGET_MARGIN_H
#define STK_BUDGET_MARGIN_H

/* Safety factor: the machine may become busier than it was when the work was measured. */
#define STK_MARGIN_SAFETY 2.0

/* Kinds of last work, in their order. */
typedef enum stk_margin_work {
    STK_MARGIN_SUBMISSION, /* writing the rows */
    STK_MARGIN_CLOSING,    /* loaders, networks, memory */
    STK_MARGIN_WORKS
} stk_margin_work;

/* Zero-initialised: nothing was measured yet. */
typedef struct stk_margin {
    double recent_s[STK_MARGIN_WORKS][2]; /* the last two times of each kind, the latest first */
    double busy;  /* factor by which other programs make work longer; 0: not known */
    double end_s; /* least seconds that ending the process takes (a GPU takes some); 0: none */
} stk_margin;

void stk_margin_note(stk_margin *margin, stk_margin_work work, double seconds);

/* Seconds that the work from `first` to the end took: per kind the longer of the last two. */
double stk_margin_took(const stk_margin *margin, stk_margin_work first);

/*
 * Seconds to leave for that work: with the safety factor, plus some for the end of the process,
 * which cannot be measured before it happens. budget_s is NaN without a budget.
 */
double stk_margin_needed(const stk_margin *margin, stk_margin_work first, double budget_s);

/* `seconds` of work as they may become on a busy machine, where times vary. */
double stk_margin_stretch(const stk_margin *margin, double seconds);

#endif
