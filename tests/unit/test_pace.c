/*
 * test_pace.c - folds that are paced while time is simulated: what is trained fits, the schedule
 * comes to its end, and each decision is told once.
 *
 * A program of its own: the machine's clocks stand still (simulated_clock.h), so that a busy
 * machine adds nothing to the simulated time.
 */
#include "check.h"
#include "simulated_clock.h"

#include <math.h>

#include "base/clock.h"
#include "base/numbers/rng.h"
#include "job/training/job.h"
#include "job/steering/pace.h"
#include "train/times.h"
#include "train/typical_step.h"
#include "train/train.h"

#define STEPS 50 /* of an epoch */
#define BATCH 32
#define VAL_IMAGES 400

#define VAL_BATCHES 8

#define MOST_STALLS 8

/* All of it stands still for a while. */
typedef struct stall {
    double at_s;
    double seconds;
    bool over;
} stall;

typedef struct simulation {
    stk_job job;
    stk_observer observer;
    char told[4096]; /* "what: why\n" of each decision */
    int decisions;
    double now;          /* seconds since the start of the process */
    double step_s;       /* what a step really takes at first */
    double changes_at_s; /* when that changes */
    double later_step_s; /* what a step takes after the change */
    double slows_from_s; /* a slow change begins here */
    double slows_to_s;   /* a slow change ends here; 0: the change is sudden */
    double noise;        /* by which part it may be more or less */
    bool unvalidated;    /* there is no validation set */
    stall stalls[MOST_STALLS];
    double stalled_s; /* of the seconds that have passed */
    double trained_s; /* when the last training ended */
    double schedule;  /* of the last fold, in the end */
    int went_on;      /* behind a plan */
    int64_t steps;    /* of it */
    int epochs;       /* of it: whole ones */
    double stop_at_s; /* when an end is asked for */
    stk_stop stop;
} simulation;

static void hear(void *user, const stk_event_decision *event) {
    simulation *s = user;
    size_t length = strlen(s->told);
    snprintf(s->told + length, sizeof s->told - length, "%s: %s\n", event->what, event->why);
    s->decisions++;
}

static int times_told(const simulation *s, const char *text) {
    int times = 0;
    for (const char *p = strstr(s->told, text); p != NULL; p = strstr(p + 1, text)) {
        times++;
    }
    return times;
}

static void open_simulation(simulation *s, double budget_s, int epochs, int folds, size_t rows) {
    memset(s, 0, sizeof *s);
    s->job.clock.looked_ns = clocks_hold();
    s->observer = (stk_observer){.user = s, .decision = hear};
    s->job.recipe.views = s->job.recipe.least_views = 1;
    s->now = 2;
    s->step_s = 0.1;
    s->changes_at_s = INFINITY;
    s->stop_at_s = INFINITY;
    s->job.clock.stop = &s->stop;
    s->job.clock.budget_s = budget_s;
    s->job.recipe.epochs_wanted = epochs;
    s->job.recipe.batch = BATCH;
    s->job.recipe.img_size = s->job.recipe.eval_size = 32;
    s->job.recipe.folds = s->job.time.folds = folds;
    s->job.time.views = 1;
    s->job.out.ensemble.rows = rows;
    s->job.time.epoch_s = NAN;
    s->job.time.predict_s = NAN;
    stk_events_add(&s->job.events, &s->observer);
}

/* A fold begins. */
static void begin_pace(simulation *s, stk_fold_pace *pace) {
    *pace = (stk_fold_pace){.recipe = &s->job.recipe,
                            .clock = &s->job.clock,
                            .events = &s->job.events,
                            .time = &s->job.time,
                            .tally = &s->job.tally,
                            .saver = &s->job.saver,
                            .test_images = s->job.out.ensemble.rows};
    s->job.saver.clock = &s->job.clock;
    s->job.saver.network = &s->job.network;
    stk_fold_pace_begin(pace);
}

/* The job's clock shows the simulated time. */
static void set_clock(simulation *s) {
    s->job.clock.start_ns = stk_clock_ns() - (int64_t)(s->now * 1e9);
}

static double real_step_s(const simulation *s) {
    stk_rng rng = stk_rng_make(1, STK_RNG_TEST, 0, (uint64_t)(s->now * 1e6));
    double step_s = s->now < s->changes_at_s ? s->step_s : s->later_step_s;
    if (s->slows_to_s > 0) {
        double part = (s->now - s->slows_from_s) / (s->slows_to_s - s->slows_from_s);
        step_s = s->step_s + fmin(fmax(part, 0), 1) * (s->later_step_s - s->step_s);
    }
    return step_s * (1 + s->noise * stk_rng_range(&rng, -1, 1));
}

/* So much work is done; what it took with the stalls that fall into it. */
static double pass(simulation *s, double seconds) {
    for (int i = 0; i < MOST_STALLS; i++) {
        stall *at = &s->stalls[i];
        if (!at->over && at->seconds > 0 && at->at_s < s->now + seconds) {
            at->over = true;
            s->stalled_s += at->seconds;
            seconds += at->seconds;
        }
    }
    s->now += seconds;
    return seconds;
}

/* Inference takes a third of a step's time per picture. */
static double infer_s(const simulation *s, size_t images) {
    return real_step_s(s) / BATCH / 3 * (double)images;
}

static stk_train_orders ask(simulation *s, stk_fold_pace *pace, const stk_train_standing *p) {
    set_clock(s);
    if (s->now >= s->stop_at_s) {
        stk_stop_request(&s->stop, STK_STOP_SOON, 0);
    }
    return stk_fold_pace_step(pace, p);
}

static void validate(simulation *s, stk_train_standing *p) {
    if (s->unvalidated) {
        return;
    }
    stk_batch_times times = {.last_ns = (int64_t)(s->now * 1e9)};
    double start = s->now;
    for (int i = 0; i < VAL_BATCHES; i++) {
        pass(s, infer_s(s, VAL_IMAGES / VAL_BATCHES));
        stk_batch_times_note(&times, VAL_IMAGES / VAL_BATCHES, (int64_t)(s->now * 1e9));
    }
    p->validations++;
    p->val_s = s->now - start;
    p->val_even_s = stk_batch_times_even(&times, p->val_s);
}

/* As stk_trainer_goes_on(). */
static bool goes_on(simulation *s, stk_fold_pace *pace, stk_train_standing *p,
                    stk_train_orders *go) {
    bool whole = p->step == STEPS;
    if (p->steps_done < go->total_steps || go->stop) {
        return !go->stop;
    }
    stk_train_standing next = *p;
    next.over = true;
    next.epoch += whole;
    next.step = whole ? 0 : p->step;
    *go = ask(s, pace, &next);
    if (go->stop || go->total_steps <= p->steps_done) {
        return false;
    }
    s->schedule = fmin(s->schedule, (double)p->steps_done / (double)go->total_steps);
    s->went_on++;
    return true;
}

/* What stk_train_fold() does with the pace. */
static void simulate_fold(simulation *s) {
    stk_fold_pace pace;
    stk_train_standing p = {.steps_per_epoch = STEPS, .step_s = NAN, .wait_s = 0, .val_s = NAN};
    stk_train_orders go = {0};
    stk_typical_step steps = {0};
    int validated_epoch = 0;
    set_clock(s);
    begin_pace(s, &pace);
    pace.val_images = s->unvalidated ? 0 : VAL_IMAGES;
    s->schedule = 0;
    s->epochs = 0;
    do {
        p.epoch += p.step % STEPS == 0;
        p.step %= STEPS;
        go = ask(s, &pace, &p);
        while (p.step < STEPS && p.steps_done < go.total_steps && !go.stop) {
            s->schedule += (1 - s->schedule) / (double)(go.total_steps - p.steps_done);
            stk_typical_step_add(&steps, pass(s, real_step_s(s)));
            p.step++;
            p.steps_done++;
            p.steps_timed = steps.timed;
            p.step_s = stk_typical_step_s(&steps);
            go = p.step < STEPS ? ask(s, &pace, &p) : go;
        }
        bool others_follow = p.step == STEPS && p.steps_done < go.total_steps && !go.stop;
        bool passed_over =
            others_follow && validated_epoch > 0 && p.epoch - validated_epoch < go.validate_every;
        if (p.step > 0 && !passed_over) {
            validate(s, &p);
            validated_epoch = p.epoch;
        }
        s->epochs += p.step == STEPS;
    } while (goes_on(s, &pace, &p, &go));
    s->steps = p.steps_done;
    s->trained_s = s->now;
    pass(s, s->job.time.views * infer_s(s, s->job.out.ensemble.rows));
}

/* The first fold of ten has 1.5 s, and 5 s pass before its first step. */
static stk_train_orders begin_slowly(simulation *s, double compile_s) {
    static stk_fold_pace pace;
    stk_train_standing p = {.epoch = 1, .steps_per_epoch = STEPS, .step_s = NAN, .val_s = NAN};
    open_simulation(s, 20, 0, 10, 500);
    set_clock(s);
    begin_pace(s, &pace);
    pace.val_images = VAL_IMAGES;
    pass(s, 5);
    stk_fold_pace_leave_out(&pace, compile_s);
    return ask(s, &pace, &p);
}

/* The share of a fold is one of what is left when its networks are compiled. */
static void compiling_takes_nothing_from_the_first_fold(void) {
    static simulation s;
    CHECK(begin_slowly(&s, 5).total_steps > 0);
    CHECK_INT(s.job.time.folds, 10);
    CHECK_INT(s.decisions, 0);
}

/* Otherwise every fold would begin as slowly, and none would be trained. */
static void a_slow_beginning_costs_folds_but_not_all_training(void) {
    static simulation s;
    CHECK(begin_slowly(&s, 0).total_steps > 0);
    CHECK_INT(s.job.time.folds, 1);
    CHECK_INT(times_told(&s, "1 model instead of 10: beginning one takes 5 s, which is more than "
                             "its share of the time\n"),
              1);
    CHECK_INT(s.decisions, 1);
}

/* Validations take no longer because the backbone learns, too. */
static void steps_of_all_layers_do_not_slow_validations_down(void) {
    static simulation s;
    stk_fold_pace pace;
    stk_train_standing p = {.epoch = 2,
                            .steps_done = STEPS,
                            .steps_timed = STEPS,
                            .steps_per_epoch = STEPS,
                            .step_s = 0.01,
                            .expected = true,
                            .validations = 1,
                            .val_s = 0.5,
                            .val_even_s = 0.5};
    open_simulation(&s, 100, 0, 1, 500);
    set_clock(&s);
    begin_pace(&s, &pace);
    pace.val_images = VAL_IMAGES;
    (void)ask(&s, &pace, &p);
    double before_s = s.job.time.predict_s;
    CHECK(before_s > 0);
    p.step_s = 0.05;
    p.expected = false;
    (void)ask(&s, &pace, &p);
    CHECK_NEAR(s.job.time.predict_s, before_s, 1e-9);
}

/* Memory ran out, and training begins again where it began: only the first time counts. */
static void training_again_is_no_slow_beginning(void) {
    static simulation s;
    stk_fold_pace pace;
    stk_train_standing p = {.epoch = 1, .steps_per_epoch = STEPS, .step_s = NAN, .val_s = NAN};
    open_simulation(&s, 20, 0, 10, 500);
    set_clock(&s);
    begin_pace(&s, &pace);
    pace.val_images = VAL_IMAGES;
    pass(&s, 0.2);
    CHECK(ask(&s, &pace, &p).total_steps > 0);
    pass(&s, 5);
    stk_fold_pace_reset(&pace);
    (void)ask(&s, &pace, &p);
    CHECK_NEAR(s.job.time.setup_s, 0.2, 0.1);
    CHECK_INT(times_told(&s, "beginning one"), 0);
}

/* Pictures have just become larger: a prediction of 83 s out of 100 is only expected. */
static void a_change_of_size_does_not_end_it(void) {
    for (int expected = 0; expected < 2; expected++) {
        static simulation s;
        stk_fold_pace pace;
        stk_train_standing p = {.epoch = 5,
                                .steps_per_epoch = STEPS,
                                .steps_done = 4 * STEPS,
                                .step_s = 0.4,
                                .validations = 1,
                                .val_s = 1.67,
                                .val_even_s = 1.67,
                                .expected = expected == 1};
        open_simulation(&s, 100, 0, 1, 20000);
        set_clock(&s);
        begin_pace(&s, &pace);
        pace.val_images = VAL_IMAGES;
        s.now = 50;
        CHECK((ask(&s, &pace, &p).total_steps > p.steps_done) == (expected == 1));
    }
}

static void what_fits_is_trained_and_nothing_is_told(void) {
    static simulation s;
    open_simulation(&s, 1000, 10, 1, 500);
    simulate_fold(&s);
    CHECK_INT(s.epochs, 10);
    CHECK_INT(s.decisions, 0);
    CHECK_NEAR(s.schedule, 1, 1e-9);
}

/* An epoch of 5 s and a validation of 0.42 s: 95 or so seconds of 100 are for training, and 15 are
 * kept until the first validation. */
static void a_cut_at_planning_is_told_with_its_numbers(void) {
    static simulation s;
    open_simulation(&s, 100, 50, 1, 500);
    simulate_fold(&s);
    CHECK_CONTAINS(s.told, " of 50 epochs: one takes 5.4");
    CHECK_CONTAINS(s.told, "s are left for this fold before the 15 s kept for prediction");
    CHECK_INT(s.epochs, 17);
    CHECK_NEAR(s.schedule, 1, 1e-9);
    CHECK(s.now <= 100 && s.now >= 96);
    CHECK(s.decisions <= 3);
}

/* Wherever it falls to a fifth: what was trained is predicted with in time, at a low rate. */
static void throughput_that_falls_to_a_fifth(void) {
    for (int i = 0; i < 40; i++) {
        static simulation s;
        double at = 5 + 1.7 * i;
        open_simulation(&s, 100, 20, 1, 500);
        s.changes_at_s = at;
        s.later_step_s = 5 * s.step_s;
        simulate_fold(&s);
        CHECK(s.now <= 100);
        double factor = stk_schedule_factor(STK_SCHEDULE_COSINE, 0, s.schedule);
        if (!(factor < 0.1)) {
            CHECK_FAIL("falling at %g s the rate ends at %g of the highest", at, factor);
        }
        CHECK(s.now > 76); /* and the time was used */
        if (at < 70) {
            CHECK_CONTAINS(s.told, " of 20 epochs: ");
        }
    }
}

/* Percent of the time before the reserve, less the stalls, at which training had ended. */
static double share_used(const simulation *s) {
    const stk_job *job = &s->job;
    double before_s = job->clock.budget_s - job->time.plan.reserve_s;
    return 100 * (s->trained_s - s->stalled_s) / (before_s - s->stalled_s);
}

/* Budgets with stalls that begin at any moment: in steps, in validations, in the first of each. */
static void stalls_do_not_end_it(void) {
    static const struct {
        double budget_s, step_s, stall_s;
        int stalls;
    } cases[] = {{10, 0.05, 2, 1}, {10, 0.004, 2, 1}, {60, 0.05, 8, 1},
                 {60, 0.5, 8, 1},  {30, 0.05, 1, 3},  {30, 0.2, 1, 3}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        double last_s = 0.9 * cases[c].budget_s - cases[c].stalls * cases[c].stall_s;
        for (int i = 0; i < 100; i++) {
            static simulation s;
            open_simulation(&s, cases[c].budget_s, 0, 1, 500);
            s.now = 0.2;
            s.step_s = cases[c].step_s;
            for (int k = 0; k < cases[c].stalls; k++) {
                s.stalls[k] = (stall){.at_s = 0.2 + (i * 0.01 + k) * last_s / cases[c].stalls,
                                      .seconds = cases[c].stall_s};
            }
            simulate_fold(&s);
            CHECK(s.now <= cases[c].budget_s);
            CHECK(s.stalled_s > 0);
            if (!(share_used(&s) >= 95)) {
                CHECK_FAIL("%g s, steps of %g s, stall at %g s: training ended at %g s\n%s",
                           cases[c].budget_s, cases[c].step_s, s.stalls[0].at_s, s.trained_s,
                           s.told);
            }
            double factor = stk_schedule_factor(STK_SCHEDULE_COSINE, 0, s.schedule);
            if (!(factor < 0.2)) { /* a stall at the very end comes when it is still falling */
                CHECK_FAIL("%g s, steps of %g s, stall at %g s: the rate ends at %g of the highest",
                           cases[c].budget_s, cases[c].step_s, s.stalls[0].at_s, factor);
            }
            CHECK(s.decisions <= 4);
        }
    }
}

/*
 * Of a minute or more at least 95 % go into training and prediction, and what the last files may
 * take stays free. Whatever steps take, and whether they vary.
 */
static void a_budget_of_a_minute_is_used(void) {
    static const double budgets[] = {60, 90, 240, 3600};
    static const double noises[] = {0, 0.3};
    for (int i = 0; i < 2 * 4 * 25; i++) {
        static simulation s;
        double budget_s = budgets[i / 50];
        open_simulation(&s, budget_s, 0, 1, 500);
        s.now = 0.3;
        s.step_s = budget_s / (1000 + 300 * (i % 25)); /* up to 164 epochs */
        s.noise = noises[i / 25 % 2];
        simulate_fold(&s);
        if (!(s.now - 0.3 >= 0.95 * budget_s && s.now + fmin(0.02 * budget_s, 2) <= budget_s)) {
            CHECK_FAIL("of %g s, with steps of %g s, %g s were used", budget_s, s.step_s, s.now);
        }
        CHECK(s.steps / STEPS < STK_BUDGET_MOST_EPOCHS);
    }
}

/* A budget that is far too long: training ends, and one line says why. */
static void the_most_epochs_are_told(void) {
    static simulation s;
    open_simulation(&s, 1000, 0, 1, 500);
    s.step_s = 0.001;
    simulate_fold(&s);
    CHECK_INT(s.epochs, STK_BUDGET_MOST_EPOCHS);
    CHECK_INT(times_told(&s, "training ends after 1000 epochs: further ones"), 1);
    open_simulation(&s, 1000, 30, 1, 500); /* as asked for: nothing to say */
    s.step_s = 0.001;
    simulate_fold(&s);
    CHECK_INT(s.epochs, 30);
    CHECK_INT(times_told(&s, "training ends"), 0);
}

/* Without a validation set steps are all there is: twice what they let one expect is kept. */
static void without_validation_steps_tell(void) {
    static simulation s;
    open_simulation(&s, 600, 0, 1, 500);
    s.unvalidated = true;
    simulate_fold(&s);
    CHECK(s.job.time.timed);
    CHECK_NEAR(s.job.time.predict_s, 2 * 0.33 * 0.1 / BATCH * 500, 0.05);
    CHECK(s.now <= 598 && s.now >= 0.95 * 600);
}

/* A fold keeps what the fold before it has measured, until it has a validation of its own. */
static void later_folds_keep_what_was_timed(void) {
    static simulation s;
    stk_fold_pace pace;
    open_simulation(&s, 600, 3, 2, 500);
    simulate_fold(&s);
    CHECK(s.job.time.timed);
    double predict_s = s.job.time.predict_s;
    s.job.tally.fold = 1;
    set_clock(&s);
    begin_pace(&s, &pace);
    pace.val_images = VAL_IMAGES;
    stk_train_standing p = {.epoch = 1,
                            .step = 10,
                            .steps_per_epoch = STEPS,
                            .steps_done = 10,
                            .steps_timed = 10,
                            .step_s = 1,
                            .val_s = NAN};
    (void)ask(&s, &pace, &p);
    CHECK(s.job.time.timed && s.job.time.plan.reserve_s < 0.05 * 600);
    CHECK_NEAR(s.job.time.predict_s, predict_s, 0);
    pace.val_images = 0; /* steps know less than the validations of the fold before */
    (void)ask(&s, &pace, &p);
    CHECK_NEAR(s.job.time.predict_s, predict_s, 0);
}

/* The first validation read its pictures, the later ones find them in memory. */
static void unread_pictures_are_kept_time_for(void) {
    static simulation s;
    stk_fold_pace pace;
    open_simulation(&s, 600, 0, 1, 400);
    begin_pace(&s, &pace);
    pace.val_images = VAL_IMAGES;
    stk_train_standing p = {.epoch = 2,
                            .steps_per_epoch = STEPS,
                            .steps_done = STEPS,
                            .steps_timed = STEPS,
                            .step_s = 0.1,
                            .validations = 1,
                            .val_s = 9,
                            .val_even_s = 8};
    (void)ask(&s, &pace, &p);
    for (; p.epoch < 9; p.epoch++, p.steps_done += STEPS) {
        p.validations++;
        p.val_s = p.val_even_s = 2;
        (void)ask(&s, &pace, &p);
    }
    CHECK_NEAR(s.job.time.predict_s, 8, 1e-9);
    CHECK_NEAR(s.job.time.plan.epoch_s, 50 * 0.1 + 2.0 / 8, 0.1); /* every eighth validates */
}

/* One of 20 validations takes a second longer: nobody hears of other epochs. */
static void a_stalled_validation_does_not_make_the_plan_flutter(void) {
    for (int i = 0; i < 20; i++) {
        static simulation s;
        open_simulation(&s, 60, 0, 1, 500);
        s.step_s = 0.04; /* an epoch of 2 s, a validation of 0.17 s */
        s.stalls[0] = (stall){.at_s = 2 + 2.17 * i + 2.01, .seconds = 1};
        simulate_fold(&s);
        CHECK_INT(times_told(&s, " epochs instead of "), 0);
        CHECK(share_used(&s) >= 95);
    }
}

/* From full speed to a fifth in the course of 40 s. */
static void a_gradual_slowdown_is_kept_up_with(void) {
    static simulation s;
    open_simulation(&s, 100, 0, 1, 500);
    s.slows_from_s = 30;
    s.slows_to_s = 70;
    s.later_step_s = 0.5;
    simulate_fold(&s);
    CHECK(s.now <= 100);
    CHECK(share_used(&s) >= 95);
    CHECK(stk_schedule_factor(STK_SCHEDULE_COSINE, 0, s.schedule) < 0.1);
}

/* Its steps were thought to take ten times as long, and the plan is over at 15 s. */
static void a_plan_that_was_too_short_is_made_again(void) {
    static simulation s;
    stk_fold_pace pace;
    open_simulation(&s, 100, 0, 1, 0);
    set_clock(&s);
    begin_pace(&s, &pace);
    pace.val_images = VAL_IMAGES;
    stk_train_standing p = {.epoch = 3,
                            .steps_per_epoch = STEPS,
                            .steps_done = 2 * STEPS,
                            .steps_timed = 2 * STEPS,
                            .step_s = 0.1,
                            .wait_s = 0,
                            .validations = 1,
                            .val_s = 0.5,
                            .val_even_s = 0.5,
                            .over = true};
    s.job.time.total_steps = 2 * STEPS;
    s.now = 15;
    stk_train_orders go = ask(&s, &pace, &p);
    CHECK(!go.stop && go.total_steps > 10 * STEPS);
    CHECK_CONTAINS(s.told, "training goes on for ");
    CHECK_CONTAINS(s.told, " steps: a step takes 0.1 s and a validation 0.5 s, and 82 s are left");
    CHECK_INT(s.decisions, 1);
    s.job.time.total_steps = p.steps_done;
    s.now = 96.5; /* a second is not worth a validation */
    CHECK_INT(ask(&s, &pace, &p).total_steps, p.steps_done);
    CHECK_INT(s.decisions, 1);
    s.now = 40;
    p.step_s = 90; /* 57 s are left, and no step fits into them */
    CHECK_INT(ask(&s, &pace, &p).total_steps, p.steps_done);
    CHECK_CONTAINS(s.told, "training ends after 100 steps: a step takes 90 s and a validation ");
    CHECK_INT(s.decisions, 2);
    s.stop_at_s = 0; /* nobody is told to stop what is over */
    CHECK_INT(ask(&s, &pace, &p).total_steps, p.steps_done);
    CHECK_INT(s.decisions, 2);
}

/* All epochs that were asked for are trained: the time that is left is nobody's business. */
static void no_more_than_was_asked_for(void) {
    static simulation s;
    open_simulation(&s, 1000, 3, 1, 500);
    simulate_fold(&s);
    CHECK_INT(s.epochs, 3);
    CHECK_INT(s.went_on, 0);
    CHECK_INT(s.decisions, 0);
    CHECK(!s.job.time.plan.cut);
}

/* A slow beginning promises less than there is time for. */
static void throughput_that_rises(void) {
    static simulation s;
    open_simulation(&s, 200, 30, 1, 500);
    s.step_s = 0.4;
    s.changes_at_s = 30;
    s.later_step_s = 0.05;
    simulate_fold(&s);
    CHECK(s.now <= 200);
    CHECK_INT(s.epochs, 30);
    CHECK_NEAR(s.schedule, 1, 1e-9);
    CHECK_CONTAINS(s.told, "30 of 30 epochs: ");
}

/* By its first steps a validation would take 50 s and the prediction 230: too early to believe. */
static void first_steps_that_are_slow_do_not_end_it(void) {
    static simulation s;
    open_simulation(&s, 180, 0, 1, 1736);
    s.step_s = 13;
    s.changes_at_s = 20;
    s.later_step_s = 0.3;
    simulate_fold(&s);
    CHECK(s.now <= 180 && s.now >= 140);
    CHECK(s.epochs >= 5);
}

/* Now all epochs fit and now some do not: that is told now and then, not in every epoch. */
static void a_budget_that_just_fits_does_not_flutter(void) {
    for (int i = 0; i < 120; i++) {
        static simulation s;
        open_simulation(&s, 560 + i, 100, 1,
                        500); /* 100 epochs take about 640 s with the reserve */
        s.noise = 0.3;
        simulate_fold(&s);
        CHECK(s.decisions <= 10);
    }
}

/* Where as many epochs as fit are trained, a few more or less are no news. */
static void without_a_number_of_epochs_only_large_changes_are_told(void) {
    static simulation s;
    open_simulation(&s, 100, 0, 1, 500);
    simulate_fold(&s);
    CHECK_INT(times_told(&s, " epochs instead of "), 0);
    CHECK_INT(s.decisions, times_told(&s, "epoch 18 ends after "));
    CHECK(s.epochs >= 17);
    open_simulation(&s, 100, 0, 1, 500);
    s.changes_at_s = 30;
    s.later_step_s = 0.5;
    simulate_fold(&s);
    CHECK_CONTAINS(s.told, " epochs instead of ");
    CHECK(s.now <= 100);
}

/* One epoch would take 100 s: it ends where it can be validated and predicted with. */
static void an_epoch_that_does_not_fit_is_cut_and_told_once(void) {
    static simulation s;
    open_simulation(&s, 20, 5, 1, 50);
    s.step_s = 2;
    simulate_fold(&s);
    CHECK(s.steps >= 2 && s.steps < STEPS);
    CHECK_CONTAINS(s.told, "epoch 1 ends after ");
    CHECK_CONTAINS(s.told, " of 50 steps: a step takes 2 s and a validation ");
    CHECK_INT(times_told(&s, "ends after"), 1);
    CHECK(s.now <= 20);
}

/* The test set is what takes long: time for it is kept before any validation has told how long. */
static void prediction_is_reserved_for_before_it_was_measured(void) {
    for (int budget = 4; budget <= 40; budget += 3) {
        static simulation s;
        open_simulation(&s, budget, 0, 1, 1500);
        s.now = 0.3;
        simulate_fold(&s); /* predicting takes 1.6 s */
        CHECK(s.steps > 0);
        CHECK(s.now <= budget);
    }
}

static void views_that_are_given_up_are_told(void) {
    static simulation s;
    open_simulation(&s, 100, 5, 1, 3000); /* a view takes 3.1 s */
    s.job.recipe.views = s.job.recipe.least_views = s.job.time.views = 8;
    simulate_fold(&s);
    CHECK_INT(s.job.time.views, 3);
    CHECK_CONTAINS(s.told,
                   "3 of 8 views of each test image: one view of all test images takes 3.1");
    CHECK_INT(s.epochs, 5);
    open_simulation(&s, 1000, 5, 1, 3000);
    s.job.recipe.views = s.job.recipe.least_views = s.job.time.views = 8;
    simulate_fold(&s);
    CHECK_INT(s.job.time.views, 8);
    CHECK_INT(s.decisions, 0);
    open_simulation(&s, 100, 10, 1, 3000);
    s.changes_at_s = 20; /* then a view takes half as long */
    s.later_step_s = 0.05;
    s.job.recipe.views = s.job.recipe.least_views = s.job.time.views = 4;
    simulate_fold(&s);
    CHECK_INT(s.job.time.views, 4);
    CHECK_CONTAINS(s.told, "3 of 4 views of each test image: ");
    CHECK_CONTAINS(s.told, "s, and views beyond 15 % of the budget would take too much time from "
                           "training");
    CHECK_CONTAINS(s.told, "all 4 views of each test image: one view of all test images takes 1.6 "
                           "s, and all of them fit into 15 % of the budget");
    CHECK_INT(s.decisions, 2);
}

/* Two views that nobody asked for: of 100 s a view of all models may take 5. */
static void views_that_were_chosen_go_without_a_word(void) {
    static const struct {
        int folds, refits;
        size_t pictures; /* labelled */
        int views;
    } cases[] = {
        {1, 0, 5000, 2}, /* 3.1 s */
        {1, 1, 5000, 1}, /* twice that */
        {2, 0, 1, 1},
        {1, 0, 1, 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        static simulation s;
        open_simulation(&s, 100, 5, cases[i].folds, 3000);
        s.job.recipe.views = s.job.time.views = 2;
        s.job.recipe.refits = cases[i].refits;
        s.job.recipe.pictures = cases[i].pictures;
        s.job.recipe.test_pictures = 3000;
        simulate_fold(&s);
        CHECK_INT(s.job.time.views, cases[i].views);
        CHECK_INT(times_told(&s, "view"), 0);
        CHECK(s.now <= 100);
    }
}

/* Two views fit at the speed of the validation and do not at a little less: steps waver about it,
 * and two of three validations tell. */
static void views_that_waver_are_told_once_an_epoch(void) {
    static simulation s;
    stk_fold_pace pace;
    stk_train_standing p = {.epoch = 2,
                            .steps_per_epoch = STEPS,
                            .steps_done = STEPS,
                            .validations = 1,
                            .val_s = 4,
                            .val_even_s = 4};
    open_simulation(&s, 100, 5, 1, 560); /* a view takes 5.6 s, and two of 5.63 are kept for */
    s.job.recipe.views = s.job.recipe.least_views = s.job.time.views = 2;
    begin_pace(&s, &pace);
    pace.val_images = VAL_IMAGES;
    for (; p.step < STEPS; p.step++, p.steps_done++) {
        p.step_s = p.step % 2 == 0 ? 0.1 : 0.102;
        p.steps_timed = p.steps_done;
        (void)ask(&s, &pace, &p);
    }
    CHECK_INT(times_told(&s, " views"), 0);
    p.step_s = 0.1;
    for (p.epoch = 3; p.epoch <= 6; p.epoch++, p.steps_done += STEPS) {
        p.step = 0;
        p.validations++;
        p.val_s = p.val_even_s = p.epoch < 5 ? 4.2 : 4;
        (void)ask(&s, &pace, &p);
        CHECK_INT(times_told(&s, "1 of 2 views"), p.epoch >= 4);
        CHECK_INT(times_told(&s, "all 2 views"), p.epoch >= 6);
    }
}

static int simulate_folds(simulation *s) {
    int done = 0;
    for (; s->job.tally.fold < s->job.recipe.folds; s->job.tally.fold++) {
        set_clock(s);
        if (s->job.tally.fold > 0) {
            stk_time_plan_folds(&s->job.time, &s->job.recipe, &s->job.clock, &s->job.events,
                                s->job.tally.fold, -1);
        }
        if (s->job.tally.fold >= s->job.time.folds) {
            break;
        }
        simulate_fold(s);
        CHECK_NEAR(s->schedule, 1, 0.1);
        done++;
    }
    return done;
}

/* Five folds of ten epochs of 5.4 s, 270 s in all. */
static void folds_are_planned_again_when_one_takes_more_than_its_share(void) {
    static simulation s;
    open_simulation(&s, 400, 10, 5, 300);
    CHECK_INT(simulate_folds(&s), 5);
    CHECK_INT(s.decisions, 0);
    open_simulation(&s, 400, 10, 5, 300);
    s.changes_at_s = 20; /* in the first fold, whose share is 80 s; it would take 150 */
    s.later_step_s = 0.3;
    int done = simulate_folds(&s);
    CHECK_CONTAINS(s.told, " of 5 folds: 5 folds of 10 epochs need ");
    CHECK(done >= 2 && done <= 4);
    CHECK(s.now <= 400);
    CHECK(s.now > 250);
}

/* Of a fold that begins. */
static const stk_train_standing unmeasured = {
    .epoch = 1, .steps_per_epoch = STEPS, .step_s = NAN, .wait_s = NAN, .val_s = NAN};

/* The second of three folds, each of which has 46 s, compiles for 60 s. */
static void a_fold_without_a_step_knows_what_was_measured_before(void) {
    static simulation s;
    stk_fold_pace pace;
    open_simulation(&s, 170, 10, 5, 100);
    s.job.tally.fold = 1;
    s.job.time.folds = 3;
    s.job.time.epoch_s = 20;
    s.now = 50;
    set_clock(&s);
    begin_pace(&s, &pace);
    s.now += 60;
    (void)ask(&s, &pace, &unmeasured);
    CHECK_NEAR(s.job.time.epoch_s, 20, 0);
    CHECK_INT(s.job.time.folds, 2); /* its time is this one's */
    CHECK(s.job.time.plan.steps_left > 0);
    stk_time_plan_folds(&s.job.time, &s.job.recipe, &s.job.clock, &s.job.events, s.job.tally.fold,
                        -1);
    CHECK_INT(times_told(&s, "5 of 5 folds"), 0);
}

static void a_fold_without_a_step_keeps_time_for_prediction(void) {
    static simulation s;
    stk_fold_pace pace;
    open_simulation(&s, 100, 10, 2, 100);
    s.job.tally.fold = 1;
    s.job.time.predict_s = 30;
    begin_pace(&s, &pace);
    (void)ask(&s, &pace, &unmeasured);
    CHECK_NEAR(s.job.time.predict_s, 30, 0);
    CHECK(s.job.time.plan.reserve_s > 41);
}

static void an_end_before_the_first_step_tells_no_times_of_steps(void) {
    static simulation s;
    stk_fold_pace pace;
    open_simulation(&s, 20, 5, 1, 50);
    set_clock(&s);
    begin_pace(&s, &pace);
    s.now = 19;
    (void)ask(&s, &pace, &unmeasured);
    CHECK_CONTAINS(s.told, "no epoch 1: 0 s are left for this fold before the 3 s kept for ");
}

static void a_request_to_stop_ends_it(void) {
    static simulation s;
    open_simulation(&s, 100, 20, 1, 500);
    s.stop_at_s = 0;
    simulate_fold(&s);
    CHECK_INT(s.steps, 0);
    CHECK_CONTAINS(s.told, "stopping: ");
}

static void behind_a_request_to_stop_nothing_is_planned(void) {
    static const stk_train_standing slow = {.epoch = 2,
                                            .steps_per_epoch = STEPS,
                                            .steps_done = STEPS,
                                            .steps_timed = STEPS,
                                            .step_s = 1,
                                            .validations = 1,
                                            .val_s = 4,
                                            .val_even_s = 4};
    for (int stop = 0; stop < 2; stop++) {
        static simulation s;
        stk_fold_pace pace;
        open_simulation(&s, 300, 10, 5, 500);
        s.stop_at_s = stop ? 0 : INFINITY;
        set_clock(&s);
        begin_pace(&s, &pace);
        stk_train_orders go = ask(&s, &pace, &slow);
        CHECK(go.stop == (stop == 1));
        CHECK_INT(s.decisions > 1, !stop);
        CHECK_INT(times_told(&s, "stopping: "), stop);
        s.told[0] = '\0';
        s.job.time.folds = 5;
        s.job.time.epoch_s = 54;
        stk_time_plan_folds(&s.job.time, &s.job.recipe, &s.job.clock, &s.job.events,
                            s.job.tally.fold, -1);
        CHECK_INT(times_told(&s, " of 5 folds: "), !stop);
    }
}

/* A resumed run that is asked to stop at once judges and saves the epoch that it has found. */
static void without_a_plan_a_request_to_stop_ends_it_where_it_stands(void) {
    static simulation s;
    stk_fold_pace pace;
    stk_train_standing found = {.epoch = 3,
                                .step = STEPS,
                                .steps_per_epoch = STEPS,
                                .steps_done = 3 * STEPS,
                                .step_s = NAN,
                                .wait_s = NAN,
                                .val_s = NAN};
    open_simulation(&s, NAN, 10, 1, 500);
    s.stop_at_s = 0;
    set_clock(&s);
    begin_pace(&s, &pace);
    stk_train_orders go = ask(&s, &pace, &found);
    CHECK(go.stop);
    CHECK_INT(go.epochs, 3);
    CHECK_INT(go.total_steps, 3 * STEPS);
}

static const check_test tests[] = {
    TEST(compiling_takes_nothing_from_the_first_fold),
    TEST(a_slow_beginning_costs_folds_but_not_all_training),
    TEST(training_again_is_no_slow_beginning),
    TEST(steps_of_all_layers_do_not_slow_validations_down),
    TEST(a_change_of_size_does_not_end_it),
    TEST(what_fits_is_trained_and_nothing_is_told),
    TEST(a_cut_at_planning_is_told_with_its_numbers),
    TEST(throughput_that_falls_to_a_fifth),
    TEST(stalls_do_not_end_it),
    TEST(a_budget_of_a_minute_is_used),
    TEST(the_most_epochs_are_told),
    TEST(without_validation_steps_tell),
    TEST(later_folds_keep_what_was_timed),
    TEST(unread_pictures_are_kept_time_for),
    TEST(a_stalled_validation_does_not_make_the_plan_flutter),
    TEST(a_gradual_slowdown_is_kept_up_with),
    TEST(a_plan_that_was_too_short_is_made_again),
    TEST(no_more_than_was_asked_for),
    TEST(throughput_that_rises),
    TEST(first_steps_that_are_slow_do_not_end_it),
    TEST(a_budget_that_just_fits_does_not_flutter),
    TEST(without_a_number_of_epochs_only_large_changes_are_told),
    TEST(an_epoch_that_does_not_fit_is_cut_and_told_once),
    TEST(prediction_is_reserved_for_before_it_was_measured),
    TEST(views_that_are_given_up_are_told),
    TEST(views_that_were_chosen_go_without_a_word),
    TEST(views_that_waver_are_told_once_an_epoch),
    TEST(folds_are_planned_again_when_one_takes_more_than_its_share),
    TEST(a_fold_without_a_step_knows_what_was_measured_before),
    TEST(a_fold_without_a_step_keeps_time_for_prediction),
    TEST(an_end_before_the_first_step_tells_no_times_of_steps),
    TEST(a_request_to_stop_ends_it),
    TEST(behind_a_request_to_stop_nothing_is_planned),
    TEST(without_a_plan_a_request_to_stop_ends_it_where_it_stands),
};

CHECK_MAIN(tests)
