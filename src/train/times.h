/*
 * times.h - where the wall time of a training went, from what was measured while it passed.
 *
 * Pure arithmetic. A host and its device work at the same time, so that what was measured adds up
 * to more than the time that passed; here each second gets one owner: validation and saving first,
 * then what the device computed, then, of the time in which it had nothing to compute, waiting for
 * pictures and copying them; all else is the rest. docs/accounting.md explains it to users.
 */
#ifndef STK_TRAIN_TIMES_H
#define STK_TRAIN_TIMES_H

#include <stoker/events.h>
#include <stoker/loader.h>

/* What was measured of a stretch of training, in seconds. */
typedef struct stk_spent {
    double steps_s;      /* in steps whose results have come, waiting for their pictures included */
    double busy_s;       /* of these: the device computed */
    double update_s;     /* of these: the optimiser */
    double copy_s;       /* of the steps: the device had nothing to do but wait for the copy */
    double wait_s;       /* the consumer had no batch */
    double hand_over_s;  /* of these: it was complete and on its way */
    double read_s;       /* meanwhile, summed over workers: they had no bytes */
    double decode_s;     /* meanwhile, summed over workers: they decoded and augmented */
    double validate_s;   /* in validations */
    double checkpoint_s; /* in the hooks that save */
} stk_spent;

/* One wait for a batch, from the loader's counters before and behind it. */
void stk_spent_wait(stk_spent *spent, const stk_loader_counters *before,
                    const stk_loader_counters *after);

/* Of wait_s: the device had nothing to compute either, as far as the results that came tell. */
double stk_spent_idle_wait(const stk_spent *spent);

/* How the stretch, which took total_s, is divided; no part is below 0 and all of them make it up.
 */
stk_times stk_times_divide(const stk_spent *spent, double total_s);

/* Both one behind the other. */
stk_times stk_times_add(const stk_times *a, const stk_times *b);

/*
 * What was added between two moments of the same training. Results come some steps late, so that a
 * part may have been more before it was known what the time was for: such a part is 0 here, and the
 * others make up for it.
 */
stk_times stk_times_between(const stk_times *before, const stk_times *after);

/* A training from its beginning to now: stretches without a gap between them. */
typedef struct stk_account {
    stk_times before; /* of the stretches that were closed */
    stk_spent spent;  /* since then */
    int64_t since_ns; /* monotonic */
} stk_account;

stk_times stk_account_stretch(const stk_account *account, int64_t now_ns); /* the open one */
stk_times stk_account_all(const stk_account *account, int64_t now_ns);     /* all of them */
/* Closes the open stretch and begins the next one; the times of the one that was closed. */
stk_times stk_account_close_stretch(stk_account *account, int64_t now_ns);

#endif
