/* test_supervise_trials.c - advice from single facts, and whole searches on simulated GPUs. */
#include "check.h"

#include <stdint.h>

#include "base/numbers/rng.h"
#include "supervise/decide/trials.h"

/* A command on an idle GPU for which all is given. */
static stk_trial_facts idle(void) {
    return (stk_trial_facts){.batch = 32,
                             .workers = -1,
                             .images_per_second = 410,
                             .memory_share = 0.01,
                             .activity = 12,
                             .gpu_used = true,
                             .can_set_batch = true,
                             .can_set_workers = true,
                             .cores = 8,
                             .lost_s = 60,
                             .left_s = INFINITY,
                             .fill = NAN};
}

static stk_trial_advice first(const stk_trial_facts *facts) {
    stk_trials trials;
    stk_trials_begin(&trials);
    stk_trial_advice advice = stk_trials_after(&trials, facts);
    CHECK(!advice.tried && !advice.kept);
    CHECK(advice.what[0] != '\0' && advice.why[0] != '\0');
    return advice;
}

static void an_idle_gpu_gets_twice_the_batch(void) {
    stk_trial_facts facts = idle();
    stk_trial_advice advice = first(&facts);
    CHECK_INT(advice.action, STK_TRIAL_RELAUNCH);
    CHECK_INT(advice.batch, 64);
    CHECK_INT(advice.workers, -1);
    CHECK_INT(advice.setting, STK_TRIAL_SETTING_BATCH);
    CHECK_STR(advice.what, "batch 64");
    CHECK_STR(advice.why, "GPU memory 1 %, activity 12 %, 410 img/s");
}

static void stays(stk_trial_facts facts, const char *says) {
    stk_trial_advice advice = first(&facts);
    CHECK_INT(advice.action, STK_TRIAL_STAY);
    CHECK_INT(advice.batch, -1);
    CHECK_INT(advice.workers, -1);
    CHECK_CONTAINS(advice.why, says);
}

static void what_keeps_it_as_it_is(void) {
    stk_trial_facts f = idle();
    f.memory_share = 0.50;
    stays(f, "GPU memory 50 %");
    f.memory_share = 0.49; /* twice as much would be 98 % */
    stays(f, "would not fit");
    f = idle(), f.activity = 60;
    stays(f, "activity 60 %");
    f = idle(), f.gpu_used = false;
    stays(f, "no GPU is used");
    f = idle(), f.memory_share = NAN;
    stays(f, "memory is unknown");
    f.activity = NAN, f.images_per_second = NAN;
    stays(f, "its GPU memory is unknown");
    f = idle(), f.can_set_batch = false;
    stays(f, "--batch-env");
    f = idle(), f.batch = -1;
    stays(f, "BATCH_SIZE=");
    f = idle(), f.images_per_second = NAN;
    stays(f, "no it/s or img/s");
    f.images_per_second = 0;
    stays(f, "no it/s or img/s");
    f = idle(), f.left_s = 240;
    stays(f, "no time for a trial: it costs 60 s of the 240 s");
    f = idle(), f.batch = INT64_C(1) << 30;
    stays(f, "would not fit");
    f = idle(), f.crashed = true;
    stays(f, "ended before it could be checked");
    f = idle(), f.input_bound = true, f.can_set_workers = false;
    stays(f, "--workers-env");
    f = idle(), f.input_bound = true, f.workers = 8;
    stays(f, "as many workers as cores (8)");
    f = idle(), f.input_bound = true, f.workers = 0, f.cores = 0;
    f.left_s = 1;
    stays(f, "no time");
}

static void a_trial_needs_time_and_no_activity(void) {
    stk_trial_facts f = idle();
    f.left_s = 241;
    CHECK_INT(first(&f).action, STK_TRIAL_RELAUNCH);
    f.lost_s = NAN, f.left_s = 1;
    CHECK_INT(first(&f).action, STK_TRIAL_RELAUNCH);
    f = idle(), f.activity = NAN; /* parts of a GPU do not tell it: the rate judges */
    CHECK_INT(first(&f).action, STK_TRIAL_RELAUNCH);
}

static void the_fill_sets_the_step(void) {
    static const struct {
        int64_t batch;
        double share, fill;
        int64_t next; /* 0: it stays */
    } cases[] = {
        {32, 0.01, 0.7, 64}, {32, 0.35, 0.7, 64},  {100, 0.36, 0.7, 192}, {100, 0.55, 0.7, 0},
        {64, 0.55, 0.7, 80}, {100, 0.63, 0.7, 0},  {100, 0.80, 0.7, 0},   {3, 0.3, 0.9, 6},
        {3, 0.5, 0.9, 0},    {100, 0.5, 1.0, 184}, {100, 0.86, 1.0, 0},   {8, 0, 0.7, 16},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        stk_trial_facts f = idle();
        f.batch = cases[i].batch, f.memory_share = cases[i].share, f.fill = cases[i].fill;
        f.activity = 99;
        stk_trial_advice advice = first(&f);
        CHECK_INT(advice.action, cases[i].next > 0 ? STK_TRIAL_RELAUNCH : STK_TRIAL_STAY);
        CHECK_INT(advice.batch, cases[i].next > 0 ? cases[i].next : -1);
    }
}

static void one_that_waits_gets_workers(void) {
    static const struct {
        int workers, cores, next;
    } cases[] = {{-1, 8, 4}, {0, 8, 4}, {0, 2, 2}, {2, 8, 4}, {3, 8, 6}, {6, 8, 8}, {0, 0, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        stk_trial_facts f = idle();
        f.input_bound = true, f.workers = cases[i].workers, f.cores = cases[i].cores;
        stk_trial_advice advice = first(&f);
        CHECK_INT(advice.action, STK_TRIAL_RELAUNCH);
        CHECK_INT(advice.workers, cases[i].next);
        CHECK_INT(advice.batch, -1);
        CHECK_CONTAINS(advice.why, "waits for its input");
    }
    stk_trial_facts f = idle(); /* also without a GPU */
    f.input_bound = true, f.gpu_used = false;
    CHECK_INT(first(&f).action, STK_TRIAL_RELAUNCH);
}

/* What becomes of batch 64 after 410 images/s with 32, and of the attempt behind it. */
static void how_a_trial_ends(void) {
    static const struct {
        double rate;
        bool out_of_memory, crashed, kept;
        const char *says;
    } cases[] = {
        {423, false, false, true, "batch 64: 423 img/s instead of 410; GPU memory"},
        {422, false, false, false, "batch 64: 422 img/s instead of 410"},
        {100, false, false, false, "batch 64: 100 img/s instead of 410"},
        {NAN, false, false, false, "cannot be compared"},
        {0, false, false, false, "cannot be compared"},
        {NAN, true, false, false, "batch 64: it ran out of memory"},
        {NAN, true, true, false, "batch 64: it ran out of memory"},
        {900, false, true, false, "batch 64: it ended before"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        stk_trials trials;
        stk_trial_facts f = idle();
        stk_trials_begin(&trials);
        (void)stk_trials_after(&trials, &f);
        f.batch = i % 2 == 0 ? 64 : -1; /* what was told is known even where it is not heard */
        f.images_per_second = cases[i].rate;
        f.out_of_memory = cases[i].out_of_memory, f.crashed = cases[i].crashed;
        stk_trial_advice advice = stk_trials_after(&trials, &f);
        CHECK(advice.tried);
        CHECK(advice.kept == cases[i].kept);
        CHECK_INT(advice.action, cases[i].kept ? STK_TRIAL_RELAUNCH : STK_TRIAL_TAKE_BACK);
        CHECK_INT(advice.batch, cases[i].kept ? 128 : 32);
        CHECK_STR(advice.what, cases[i].kept ? "batch 128" : "batch 32 again");
        CHECK_CONTAINS(advice.why, cases[i].says);
        if (!cases[i].kept) {
            f = idle();
            advice = stk_trials_after(&trials, &f);
            CHECK_INT(advice.action, STK_TRIAL_STAY);
            CHECK(!advice.tried);
            CHECK_STR(advice.what, "batch 32 stays");
            f.memory_share = NAN, f.activity = NAN, f.images_per_second = NAN;
            CHECK_STR(stk_trials_after(&trials, &f).why, "there is nothing more to try");
            f = idle();
            f.input_bound = true; /* the workers are another matter */
            CHECK_INT(stk_trials_after(&trials, &f).workers, 4);
        }
    }
}

static void workers_of_which_nothing_was_known_are_left_to_the_command(void) {
    stk_trials trials;
    stk_trial_facts f = idle();
    stk_trials_begin(&trials);
    f.input_bound = true;
    (void)stk_trials_after(&trials, &f);
    f.workers = 4;
    stk_trial_advice advice = stk_trials_after(&trials, &f);
    CHECK_INT(advice.action, STK_TRIAL_TAKE_BACK);
    CHECK_INT(advice.workers, -1);
    CHECK_INT(advice.setting, STK_TRIAL_SETTING_WORKERS);
    CHECK_STR(advice.what, "as the command has it again");
}

static void the_first_batch_is_halved_until_it_fits(void) {
    stk_trials trials;
    stk_trial_facts f = idle();
    stk_trials_begin(&trials);
    f.batch = 128, f.out_of_memory = true, f.crashed = true;
    stk_trial_advice advice = stk_trials_after(&trials, &f);
    CHECK_INT(advice.action, STK_TRIAL_RELAUNCH);
    CHECK_INT(advice.batch, 64);
    CHECK_STR(advice.why, "batch 128 ran out of memory");
    f.batch = 64;
    CHECK_INT(stk_trials_after(&trials, &f).batch, 32);
    f = idle(); /* however idle it is: 64 is known not to fit */
    advice = stk_trials_after(&trials, &f);
    CHECK_INT(advice.action, STK_TRIAL_STAY);
    CHECK_INT(advice.batch, 32);
    f.out_of_memory = true;
    CHECK_INT(stk_trials_after(&trials, &f).batch, 16);
}

/* The advice after a second look, at what the first one's advice led to. */
static stk_trial_advice second(const stk_trial_facts *before, const stk_trial_facts *after) {
    stk_trials trials;
    stk_trials_begin(&trials);
    CHECK_INT(stk_trials_after(&trials, before).action, STK_TRIAL_RELAUNCH);
    return stk_trials_after(&trials, after);
}

static void a_batch_that_is_not_taken_is_no_gain(void) {
    stk_trial_facts before = idle();
    stk_trial_facts after = idle();
    before.printed_batch = after.printed_batch = 32;
    after.images_per_second = 820; /* as many steps, times a batch that it does not have */
    stk_trial_advice advice = second(&before, &after);
    CHECK_INT(advice.action, STK_TRIAL_TAKE_BACK);
    CHECK_INT(advice.batch, 32);
    CHECK(advice.ignored);
    CHECK_CONTAINS(advice.why, "ignored the requested batch 64 and ran with its previous one, 32");
    after.printed_batch = 64;
    CHECK(second(&before, &after).kept);
    CHECK(!second(&before, &after).ignored);
    before.printed_batch = after.printed_batch =
        8; /* of each of eight GPUs, or of something else */
    after.printed_batch = 16;
    CHECK(second(&before, &after).kept);
    before.printed_batch = after.printed_batch = -1;
    before.epoch_steps = after.epoch_steps = 500;
    CHECK_CONTAINS(second(&before, &after).why, "still have 500 steps");
    after.memory_share = 0.0102; /* it took more: so many steps were asked for */
    CHECK(second(&before, &after).kept);
    after = before, after.images_per_second = 820, after.epoch_steps = 250;
    CHECK(second(&before, &after).kept);
    before.epoch_steps = after.epoch_steps = -1;
    CHECK(second(&before, &after).kept);
}

static void a_trial_that_hangs_is_taken_back(void) {
    stk_trial_facts before = idle();
    stk_trial_facts after = idle();
    after.hung = true;
    stk_trial_advice advice = second(&before, &after);
    CHECK_INT(advice.action, STK_TRIAL_TAKE_BACK);
    CHECK_INT(advice.batch, 32);
    CHECK_STR(advice.why, "batch 64: it hung");
}

static void what_could_not_be_told_is_not_tried_again(void) {
    stk_trials trials;
    stk_trial_facts f = idle();
    stk_trials_begin(&trials);
    CHECK_INT(stk_trials_after(&trials, &f).batch, 64);
    stk_trials_cancel(&trials);
    stk_trial_advice advice = stk_trials_after(&trials, &f);
    CHECK_INT(advice.action, STK_TRIAL_STAY);
    CHECK(!advice.tried);
    f.input_bound = true;
    CHECK_INT(stk_trials_after(&trials, &f).action, STK_TRIAL_RELAUNCH);
}

static void late_memory_errors_start_nothing_anew(void) {
    stk_trial_facts f = idle();
    f.out_of_memory = true, f.lost_s = 100, f.left_s = 99;
    stays(f, "less time is left");
    f.left_s = 100;
    CHECK_INT(first(&f).batch, 16);
}

/* Data were prepared, with a bar of its own, before the GPU had work. */
static void a_look_at_work_counts_more_than_one_before_it(void) {
    stk_trials trials;
    stk_trial_facts f = idle();
    stk_trials_begin(&trials);
    f.gpu_used = false, f.images_per_second = 9000;
    CHECK_INT(stk_trials_after(&trials, &f).action, STK_TRIAL_STAY);
    f = idle();
    CHECK_INT(stk_trials_after(&trials, &f).batch, 64);
    f.batch = 64, f.images_per_second = 800;
    CHECK(stk_trials_after(&trials, &f).kept);
}

static void memory_that_never_suffices(void) {
    stk_trials trials;
    stk_trial_facts f = idle();
    f.out_of_memory = true, f.batch = 1;
    CHECK_INT(first(&f).action, STK_TRIAL_STAY);
    CHECK_CONTAINS(first(&f).why, "no smaller one");
    f.batch = -1;
    CHECK_CONTAINS(first(&f).why, "unknown");
    f.can_set_batch = false;
    CHECK_CONTAINS(first(&f).why, "--batch-env");
    f = idle(), f.out_of_memory = true, f.batch = INT64_MAX;
    stk_trials_begin(&trials);
    int relaunches = 0;
    for (stk_trial_advice advice = stk_trials_after(&trials, &f); advice.action != STK_TRIAL_STAY;
         advice = stk_trials_after(&trials, &f)) {
        CHECK(advice.batch == f.batch / 2);
        f.batch = advice.batch;
        relaunches++;
    }
    CHECK(relaunches > 10 && relaunches < STK_TRIALS_MOST);
    for (int i = 0; i < 3 * STK_TRIALS_MOST; i++) {
        CHECK_INT(stk_trials_after(&trials, &f).action, STK_TRIAL_STAY);
    }
}

/* A GPU and a command on it, as a function of the batch and the workers. */
typedef struct machine {
    double best_rate; /* images/s that it comes near to with ever larger batches */
    double half_at;   /* the batch at which it has half of that */
    double worse_at;  /* from this batch on it becomes slower again */
    double base;      /* share of the memory that is used with no batch at all */
    double per_image;
    double per_worker; /* images/s that one worker brings */
    int cores;
    double fill;
    double crash_at; /* a batch from which on the command crashes */
} machine;

static stk_trial_facts attempt(const machine *m, int64_t batch, int workers) {
    stk_trial_facts f = idle();
    double n = (double)batch;
    double gpu = m->best_rate * n / (n + m->half_at);
    gpu *= n > m->worse_at ? m->worse_at / n : 1;
    double input = m->per_worker * workers;
    f.batch = batch, f.workers = workers, f.cores = m->cores, f.fill = m->fill;
    f.images_per_second = gpu < input ? gpu : input;
    f.input_bound = input < 0.9 * gpu;
    f.activity = 100 * f.images_per_second / m->best_rate;
    f.memory_share = m->base + m->per_image * n;
    f.out_of_memory = f.memory_share > 1;
    f.crashed = n >= m->crash_at;
    return f;
}

typedef struct search_end {
    int64_t batch;
    int workers;
    int starts;
    double rate; /* 0: it does not run */
    double best; /* of all that ran */
} search_end;

/* Runs the machine until the advice is to stay; a search without an end is a failure. */
static search_end searched(const machine *m, int64_t batch, int workers) {
    stk_trials trials;
    search_end end = {.batch = batch, .workers = workers};
    stk_trials_begin(&trials);
    for (;;) {
        stk_trial_facts f = attempt(m, end.batch, end.workers);
        bool runs = !f.out_of_memory && !f.crashed;
        end.rate = runs ? f.images_per_second : 0;
        end.best = fmax(end.best, end.rate);
        stk_trial_advice advice = stk_trials_after(&trials, &f);
        CHECK(advice.what[0] != '\0' && advice.why[0] != '\0');
        if (advice.action == STK_TRIAL_STAY) {
            return end;
        }
        if (++end.starts > STK_TRIALS_MOST) {
            CHECK_FAIL("the search does not end");
            return end;
        }
        end.batch = advice.batch > 0 ? advice.batch : end.batch;
        end.workers = advice.workers >= 0 ? advice.workers : end.workers;
    }
}

static void simulated_gpus(void) {
    static const struct {
        machine m;
        int64_t batch;
        int workers;
        int64_t end_batch;
        int end_workers, starts;
    } cases[] = {
        /* A small batch grows, also of a busy GPU, until that brings less than a tenth. */
        {{4000, 64, 1e9, 0.01, 1e-4, 1e6, 8, NAN, 1e9}, 4, 8, 1024, 8, 8},
        /* One that keeps the GPU busy from the beginning is left alone. */
        {{4000, 64, 1e9, 0.01, 1e-4, 1e6, 8, NAN, 1e9}, 128, 8, 128, 8, 0},
        /* A launch-bound one grows until half of the memory is used. */
        {{4000, 4096, 1e9, 0.02, 2e-3, 1e6, 8, NAN, 1e9}, 32, 8, 256, 8, 3},
        /* Behind 64 it becomes slower: 128 is tried and taken back. */
        {{4000, 200, 64, 0.01, 1e-4, 1e6, 8, NAN, 1e9}, 16, 8, 64, 8, 4},
        /* A fill of 90 %. */
        {{4000, 4096, 1e9, 0.02, 2e-3, 1e6, 8, 0.9, 1e9}, 32, 8, 432, 8, 4},
        /* Too large at first. */
        {{4000, 64, 1e9, 0.02, 1e-2, 1e6, 8, NAN, 1e9}, 512, 8, 64, 8, 3},
        /* Starved: four times the workers; then twice the batch brings nothing. */
        {{4000, 64, 1e9, 0.01, 1e-4, 300, 8, NAN, 1e9}, 32, 1, 32, 4, 4},
        /* Starved with every core at work. */
        {{4000, 64, 1e9, 0.01, 1e-4, 50, 8, NAN, 1e9}, 32, 2, 32, 8, 2},
        /* The script does not bear a batch of 64. */
        {{4000, 640, 1e9, 0.01, 1e-4, 1e6, 8, NAN, 64}, 32, 8, 32, 8, 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        search_end end = searched(&cases[i].m, cases[i].batch, cases[i].workers);
        CHECK_INT(end.batch, cases[i].end_batch);
        CHECK_INT(end.workers, cases[i].end_workers);
        CHECK_INT(end.starts, cases[i].starts);
    }
}

static void any_gpu(void) {
    int cases = check_is_quick() ? 500 : 10000;
    for (int i = 0; i < cases; i++) {
        stk_rng rng = stk_rng_make(9, STK_RNG_TEST, 0, (uint64_t)i);
        machine m = {.best_rate = pow(10, stk_rng_range(&rng, 1, 5)),
                     .half_at = pow(2, stk_rng_range(&rng, 0, 12)),
                     .worse_at = pow(2, stk_rng_range(&rng, 2, 14)),
                     .base = stk_rng_range(&rng, 0, 0.3),
                     .per_image = pow(2, stk_rng_range(&rng, -16, -4)),
                     .per_worker = pow(10, stk_rng_range(&rng, 0, 5)),
                     .cores = 1 + (int)stk_rng_below(&rng, 64),
                     .fill = stk_rng_below(&rng, 2) == 0 ? NAN : stk_rng_range(&rng, 0.1, 1),
                     .crash_at = pow(2, stk_rng_range(&rng, 8, 20))};
        int64_t batch = 1 + (int64_t)stk_rng_below(&rng, 512);
        int workers = 1 + (int)stk_rng_below(&rng, 16);
        bool crashes = (double)batch >= m.crash_at;
        bool fits = attempt(&m, 1, workers).memory_share <= 1;
        search_end end = searched(&m, batch, workers);
        CHECK(end.rate >= end.best / 1.03 - 1e-9);
        CHECK(end.rate > 0 || crashes || !fits);
    }
}

static const check_test tests[] = {
    TEST(an_idle_gpu_gets_twice_the_batch),
    TEST(what_keeps_it_as_it_is),
    TEST(a_trial_needs_time_and_no_activity),
    TEST(the_fill_sets_the_step),
    TEST(one_that_waits_gets_workers),
    TEST(how_a_trial_ends),
    TEST(workers_of_which_nothing_was_known_are_left_to_the_command),
    TEST(the_first_batch_is_halved_until_it_fits),
    TEST(a_batch_that_is_not_taken_is_no_gain),
    TEST(a_trial_that_hangs_is_taken_back),
    TEST(what_could_not_be_told_is_not_tried_again),
    TEST(late_memory_errors_start_nothing_anew),
    TEST(a_look_at_work_counts_more_than_one_before_it),
    TEST(memory_that_never_suffices),
    TEST(simulated_gpus),
    TEST(any_gpu),
};
CHECK_MAIN(tests)
