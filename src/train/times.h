/*
 * times.h - where the wall time of a training went, from what was measured while it passed.
 *
 * Pure arithmetic. Host and device work at the same time, so measured times add up to more than the
 * time that passed. Here each second gets one owner: validation and saving first, then computing on
 * the device, then, while the device was idle, waiting for pictures and copying them. The rest is
 * "other". docs/accounting.md explains it to users.
 */
#ifndef STK_TRAIN_TIMES_H
#define STK_TRAIN_TIMES_H

#include <stoker/events.h>
#include <stoker/loader.h>

/* Measured seconds of a stretch of training. */
typedef struct stk_spent {
    double steps_s;      /* steps whose results have come, including waiting for their pictures */
    double busy_s;       /* part of steps_s in which the device computed */
    double update_s;     /* part of busy_s: the optimiser */
    double copy_wait_s;  /* part of steps_s in which the device only waited for a copy */
    double wait_s;       /* training waited for a batch */
    double hand_over_s;  /* part of wait_s in which the batch was complete and being handed over */
    double read_s;       /* during wait_s, summed over workers: waiting for bytes */
    double decode_s;     /* during wait_s, summed over workers: decoding and augmenting, and waiting
                            for a device that decodes */
    double validate_s;   /* validations, and the hook that uses their executable */
    double checkpoint_s; /* the hooks that save */
} stk_spent;

/* Adds one wait for a batch, from the loader's counters before and after it. */
void stk_spent_wait(stk_spent *spent, const stk_loader_counters *before,
                    const stk_loader_counters *after);

/* The part of wait_s in which the device was idle too, by the results that have come. */
double stk_spent_idle_wait(const stk_spent *spent);

/* Divides a stretch of total_s seconds; no part is negative, and the parts sum to total_s. */
stk_times stk_times_divide(const stk_spent *spent, double total_s);

/* The sum of two stretches. A part of b that is not known (NaN, from a file) adds nothing. */
stk_times stk_times_add(const stk_times *a, const stk_times *b);

/*
 * The difference of two moments of the same training. Results come some steps late, so a part may
 * shrink once it is known what the time was for: such a part is 0 here, and the others absorb it.
 */
stk_times stk_times_between(const stk_times *before, const stk_times *after);

/* The time of a training as stretches without gaps. */
typedef struct stk_account {
    stk_times before; /* sum of the closed stretches */
    stk_spent spent;  /* of the open stretch */
    int64_t since_ns; /* monotonic clock: when the open stretch began */
} stk_account;

stk_times stk_account_stretch(const stk_account *account, int64_t now_ns); /* the open one */
stk_times stk_account_all(const stk_account *account, int64_t now_ns);     /* all of them */
/* Closes the open stretch, begins the next one, and returns the times of the closed one. */
stk_times stk_account_close_stretch(stk_account *account, int64_t now_ns);

/*
 * The time of a validation with its slowest batch evened out: that batch may have been held up by
 * something else. Initialised with last_ns = start of the validation and zeros.
 */
typedef struct stk_batch_times {
    int64_t last_ns;  /* monotonic clock: when the last batch was done */
    size_t images;    /* of all batches so far */
    double slowest_s; /* seconds of the slowest batch */
    size_t slowest;   /* images of the slowest batch */
} stk_batch_times;

void stk_batch_times_note(stk_batch_times *times, size_t images, int64_t now_ns);

/* `seconds` of the whole validation, had its slowest batch been as fast as the others; unchanged
 * when there is only one batch. */
double stk_batch_times_even(const stk_batch_times *times, double seconds);

#endif
