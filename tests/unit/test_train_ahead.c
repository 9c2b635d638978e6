/*
 * test_train_ahead.c - steps whose results come later: nothing that is learnt depends on it.
 *
 * The late backend does a step when the next one is handed over, or when somebody waits, and tells
 * its result some calls later: whoever gives a batch back too early, or reads weights too early,
 * gets other numbers than the CPU's.
 */
#include <unistd.h>

#include "base/clock.h"
#include "check.h"
#include "train_fold.h"

/* One fold at a time. */
static struct {
    bool there; /* a step has been handed over and not been done */
    stk_exec *exec;
    stk_step_input input;
    stk_update update;
    stk_step_output done[STK_STEPS_AHEAD];
    int done_count;
    int lag;
    double busy_s; /* that a step is said to have taken, unless `slow` */
    bool slow;     /* a step is said to take four times its time, and compiling takes a while */
    int64_t handed_ns;
} late;

static stk_status do_step(stk_error *err) {
    stk_status status = STK_OK;
    if (late.there) {
        late.there = false;
        CHECK(late.done_count < STK_STEPS_AHEAD);
        stk_step_output *output = &late.done[late.done_count++];
        status = stk_cpu_backend.step(late.exec, &late.input, output, err);
        output->busy_s = late.slow ? 4 * stk_clock_since_s(late.handed_ns) : late.busy_s;
    }
    return status;
}

static stk_status late_step(stk_exec *exec, const stk_step_input *input, stk_step_output *output,
                            stk_error *err) {
    CHECK(output == NULL);
    stk_status status = do_step(err);
    late.there = true;
    late.handed_ns = stk_clock_ns();
    late.exec = exec;
    late.input = *input;
    if (input->update != NULL) {
        late.update = *input->update;
        late.input.update = &late.update;
    }
    return status;
}

static stk_status late_collect(stk_exec *exec, bool wait, stk_step_output *outputs, size_t room,
                               size_t *count, stk_error *err) {
    (void)exec;
    stk_status status = wait ? do_step(err) : STK_OK;
    int told = wait ? late.done_count : late.done_count - late.lag;
    *count = told > 0 ? (size_t)told : 0;
    CHECK(*count <= room);
    memcpy(outputs, late.done, *count * sizeof *outputs);
    late.done_count -= (int)*count;
    memmove(late.done, late.done + *count, (size_t)late.done_count * sizeof *outputs);
    return status;
}

static void late_free(stk_exec *exec) {
    if (late.there && late.exec == exec) {
        stk_error err = {0};
        CHECK_INT(do_step(&err), STK_OK);
    }
    stk_cpu_backend.exec_free(exec);
}

static void make_late(fold *f, int lag) {
    memset(&late, 0, sizeof late);
    late.lag = lag;
    f->scripted = stk_cpu_backend;
    f->scripted.step = late_step;
    f->scripted.collect = late_collect;
    f->scripted.exec_free = late_free;
    f->config.backend = &f->scripted;
}

/* Four steps an epoch, three epochs, with all that a step depends on. */
static void set_up(fold *f, int slots) {
    open_fold(f, norm_graph(), 2, false);
    f->options.optimizer = STK_ADAMW;
    f->options.ema = 0.9;
    f->options.mixup = 0.4;
    f->options.accumulate = 3;
    f->config.lr = 0.01;
    f->config.train_compile.batch = 4;
    f->config.train_data.sizing.slots = slots;
    f->total = 12;
}

static void nothing_depends_on_when_results_come(void) {
    static const int lags[] = {0, 1, 3, STK_STEPS_AHEAD - 1};
    fold at_once;
    set_up(&at_once, 3);
    CHECK_INT(run_fold(&at_once), STK_OK);
    for (size_t i = 0; i < sizeof lags / sizeof *lags; i++) {
        for (int slots = 2; slots <= 4; slots += 2) {
            if (check_is_quick() && (int)i % 2 != slots / 2 % 2) { /* each of both with two lags */
                continue;
            }
            fold f;
            set_up(&f, slots);
            make_late(&f, lags[i]);
            CHECK_INT(run_fold(&f), STK_OK);
            CHECK(!late.there && late.done_count == 0);
            CHECK(hash_weights(&f) == hash_weights(&at_once));
            CHECK(hash_tensors(&f, STK_TENSOR_SECOND) == hash_tensors(&at_once, STK_TENSOR_SECOND));
            CHECK(hash_tensors(&f, STK_TENSOR_EMA) == hash_tensors(&at_once, STK_TENSOR_EMA));
            CHECK_INT(f.epochs, 3);
            for (int e = 0; e < 3; e++) {
                CHECK_NEAR(f.epoch[e].train_loss, at_once.epoch[e].train_loss, 0);
                CHECK_NEAR(f.epoch[e].train_acc1, at_once.epoch[e].train_acc1, 0);
                CHECK_NEAR(f.epoch[e].val_loss, at_once.epoch[e].val_loss, 0);
                CHECK(isfinite(f.epoch[e].images_per_second));
            }
            CHECK_NEAR(f.result.images, at_once.result.images, 0);
            CHECK_INT(f.steps, 12);
            close_fold(&f);
        }
    }
    close_fold(&at_once);
}

/* The host waits for pictures at times; a device that computes meanwhile does not. */
static void who_computes_does_not_wait(void) {
    for (int busy = 0; busy < 2; busy++) {
        fold f;
        set_up(&f, 2);
        make_late(&f, 1);
        late.busy_s = busy * 3600.0;
        CHECK_INT(run_fold(&f), STK_OK);
        for (int e = 0; e < 3; e++) {
            CHECK(busy ? f.epoch[e].wait_fraction == 0 : f.epoch[e].wait_fraction > 0);
        }
        CHECK(busy ? f.result.wait_s == 0 : f.result.wait_s > 0);
        close_fold(&f);
    }
}

static stk_status compile_slowly(stk_exec **exec, stk_state *state,
                                 const stk_compile_config *config, stk_error *err) {
    usleep(config->train ? 300000 : 0);
    return stk_cpu_backend.compile(exec, state, config, err);
}

/* While the first epoch's network is compiled the device has nothing to do either. */
static void compiling_is_no_waiting(void) {
    fold f;
    set_up(&f, 2);
    make_late(&f, 1);
    f.scripted.compile = compile_slowly;
    late.slow = true;
    CHECK_INT(run_fold(&f), STK_OK);
    CHECK_NEAR(f.epoch[0].wait_fraction, 0, 0);
    close_fold(&f);
}

/* The weights that are saved are those of the steps that count. */
static uint64_t saved_hash[32];
static int saved;

static void save_state(void *user, const stk_train_position *position) {
    const fold *f = user;
    (void)position;
    if (saved < 32) {
        saved_hash[saved++] = hash_weights(f);
    }
    CHECK(!late.there);
}

static void what_is_saved_is_what_was_trained(void) {
    uint64_t expected[32];
    fold f;
    int count = 0;
    for (int round = 0; round < 2; round++) {
        saved = 0;
        set_up(&f, 2);
        f.config.hooks.save_state = save_state;
        f.config.hooks.save_every_s = 0; /* after every step */
        if (round == 1) {
            make_late(&f, 2);
        }
        CHECK_INT(run_fold(&f), STK_OK);
        if (round == 0) {
            count = saved;
            memcpy(expected, saved_hash, sizeof expected);
        }
        close_fold(&f);
    }
    CHECK_INT(saved, count);
    CHECK(count >= 12);
    CHECK(memcmp(expected, saved_hash, (size_t)count * sizeof *expected) == 0);
}

static void trouble_is_told_with_its_own_step(void) {
    fold f;
    open_fold(&f, plain_graph(), 1, true);
    f.config.train_compile.batch = 2; /* eight steps an epoch */
    f.total = 16;
    script.lag = 5;
    script.broken_step = 1;
    CHECK_INT(run_fold(&f), STK_OK);
    CHECK(f.result.diverged);
    CHECK_CONTAINS(f.result.trouble, "at step 2 of epoch 1");
    CHECK(script.step_count > 2 && script.step_count < 9);
    CHECK_INT(script.infers, 0);
    close_fold(&f);

    open_fold(&f, plain_graph(), 1, true);
    f.config.train_compile.batch = 2;
    f.total = 16;
    script.lag = 5;
    script.broken_step = 7; /* the last of an epoch: before it is validated */
    CHECK_INT(run_fold(&f), STK_OK);
    CHECK(f.result.diverged);
    CHECK_INT(script.step_count, 8);
    CHECK_INT(script.infers, 0);
    close_fold(&f);
}

static void updates_that_are_left_out_are_no_trouble(void) {
    fold f;
    open_fold(&f, plain_graph(), 1, true);
    f.config.train_compile.batch = 2;
    f.total = 24;
    script.scale = 1024;
    script.lag = 2;
    script.skip[0] = script.skip[1] = script.skip[2] = true;
    script.broken_step = 1; /* its loss counts for nothing */
    script.skip[20] = true;
    CHECK_INT(run_fold(&f), STK_OK);
    CHECK(!f.result.diverged);
    CHECK_INT(f.epochs, 3);
    CHECK_NEAR(f.epoch[0].train_loss, 1, 1e-9);
    CHECK_NEAR(f.result.images, 48, 0);
    CHECK_INT(f.decisions, 2); /* the second: one of eight is not rare */
    CHECK_CONTAINS(f.decision, "loss scale 1024: 1 update was left out");
    close_fold(&f);
}

static void updates_that_are_all_left_out_are(void) {
    fold f;
    open_fold(&f, plain_graph(), 1, true);
    f.config.train_compile.batch = 2;
    f.total = 16;
    script.scale = 2;
    memset(script.skip, true, sizeof script.skip);
    CHECK_INT(run_fold(&f), STK_OK);
    CHECK(f.result.diverged);
    CHECK_INT(script.step_count, 8);
    CHECK_CONTAINS(f.result.trouble, "every update of epoch 1");
    close_fold(&f);

    open_fold(&f, plain_graph(), 1, true);
    f.config.train_compile.batch = 2;
    f.total = 16;
    script.scale = 1; /* nothing is left to try */
    script.skip[3] = true;
    CHECK_INT(run_fold(&f), STK_OK);
    CHECK(f.result.diverged);
    CHECK_INT(script.step_count, 4);
    CHECK_CONTAINS(f.result.trouble, "range of fp16 at step 4 of epoch 1");
    close_fold(&f);
}

static const check_test tests[] = {
    TEST(nothing_depends_on_when_results_come), TEST(what_is_saved_is_what_was_trained),
    TEST(who_computes_does_not_wait),           TEST(compiling_is_no_waiting),
    TEST(trouble_is_told_with_its_own_step),    TEST(updates_that_are_left_out_are_no_trouble),
    TEST(updates_that_are_all_left_out_are),
};

CHECK_MAIN(tests)
