/* test_lr_find.c - the learning-rate range test: on curves that are known, and on a network. */
#include "train/lr_find.h"

#include "base/numbers/rng.h"
#include "check.h"
#include "train_fold.h"

/* ---- curves ---- */

#define STEPS 100

/*
 * Descent on a parabola of this curvature with noise on the loss; a step is stable below
 * 2 / curvature. Returns how many points there are.
 */
static int descend(stk_lr_point *points, int steps, double curvature, double noise, bool *over) {
    stk_rng rng = stk_rng_make(5, STK_RNG_TEST, (uint64_t)(1000 * curvature), 0);
    double w = 1;
    for (int i = 0; i < steps; i++) {
        double lr = stk_lr_at(i, steps);
        double loss = 0.1 + w * w + noise * stk_rng_range(&rng, -1, 1);
        *over = stk_lr_add(points, i, steps, lr, loss);
        if (*over) {
            return i + 1;
        }
        w -= lr * curvature * w;
    }
    return steps;
}

static void parabolas(void) {
    static const double curvatures[] = {2, 10, 100, 1e3, 1e4};
    static const int lengths[] = {50, STEPS, 400};
    for (size_t c = 0; c < 5; c++) {
        for (size_t k = 0; k < 6; k++) {
            stk_lr_point points[400];
            bool over = false;
            int steps = lengths[k % 3];
            int count = descend(points, steps, curvatures[c], k < 3 ? 0 : 0.05, &over);
            double limit = 2 / curvatures[c];
            double lr = stk_lr_suggest(points, count);
            CHECK(over || curvatures[c] < 10); /* long before the rate of 10 */
            if (!(lr < limit && lr > limit / 40)) {
                CHECK_FAIL("curvature %g, %d steps, noise %d: %g, limit %g", curvatures[c], steps,
                           k >= 3, lr, limit);
            }
        }
    }
}

static void rates_grow_by_one_factor(void) {
    CHECK_NEAR(stk_lr_at(0, STEPS), 1e-7, 1e-20);
    CHECK_NEAR(stk_lr_at(STEPS - 1, STEPS), 10, 1e-12);
    double factor = stk_lr_at(1, STEPS) / stk_lr_at(0, STEPS);
    for (int i = 1; i < STEPS; i++) {
        CHECK_NEAR(stk_lr_at(i, STEPS) / stk_lr_at(i - 1, STEPS), factor, 1e-9);
    }
}

/* The mean weighs the last points most and is unbiased from the first one on. */
static void smoothing(void) {
    stk_lr_point points[STEPS] = {{0}};
    for (int i = 0; i < STEPS; i++) {
        CHECK(!stk_lr_add(points, i, STEPS, stk_lr_at(i, STEPS), 2.5));
        CHECK_NEAR(points[i].smoothed, 2.5, 1e-12);
    }
    CHECK(!stk_lr_add(points, 50, STEPS, 1, 3.5));
    CHECK_NEAR(points[50].smoothed, 2.6, 0.01); /* a tenth of the way */
    (void)stk_lr_add(points, 0, STEPS, 1, 1);
    (void)stk_lr_add(points, 1, STEPS, 1, 2);
    CHECK_NEAR(points[1].smoothed, (0.9 * 1 + 2) / 1.9, 1e-12);
}

static void explosions_end_it(void) {
    static const double broken[] = {NAN, INFINITY, -INFINITY};
    stk_lr_point points[STEPS] = {{0}};
    for (size_t k = 0; k < 3; k++) {
        CHECK(!stk_lr_add(points, 0, STEPS, 1e-7, 1));
        CHECK(stk_lr_add(points, 1, STEPS, 1e-6, broken[k]));
    }
    int count = 0;
    while (count < STEPS && !stk_lr_add(points, count, STEPS, 1, count < 30 ? 1 : 8)) {
        count++;
    }
    /* 1 + 7 (1 - 0.9^n) passes 4 at n = 6. */
    CHECK_INT(count, 30 + 5);
}

static void no_suggestion_from_nothing(void) {
    stk_lr_point points[STEPS] = {{0}};
    CHECK(isnan(stk_lr_suggest(points, 0)));
    for (int i = 0; i < STEPS; i++) { /* level, then worse: there is no rate that helps */
        (void)stk_lr_add(points, i, STEPS, stk_lr_at(i, STEPS), i < 60 ? 2 : 2.2);
    }
    CHECK(isnan(stk_lr_suggest(points, STEPS)));
    for (int i = 0; i < STEPS; i++) { /* better to the end: a rate near the highest */
        (void)stk_lr_add(points, i, STEPS, stk_lr_at(i, STEPS), 2 - 0.015 * i);
    }
    double lr = stk_lr_suggest(points, STEPS);
    CHECK(lr >= 0.5 && lr <= 10.0 / 3);
}

/* Batches of few pictures differ much, and nothing is learnt: chance makes no rate better. */
static void noise_is_no_curve(void) {
    stk_lr_point points[STEPS] = {{0}};
    for (uint64_t seed = 0; seed < 200; seed++) {
        stk_rng rng = stk_rng_make(seed, STK_RNG_TEST, 7, 0);
        for (int i = 0; i < STEPS; i++) {
            (void)stk_lr_add(points, i, STEPS, stk_lr_at(i, STEPS), 2 + 0.3 * stk_rng_normal(&rng));
        }
        CHECK(isnan(stk_lr_suggest(points, STEPS)));
    }
}

/* ---- a network ---- */

static stk_lr_find_config config_of(const fold *f) {
    return (stk_lr_find_config){.backend = f->backend,
                                .state = f->state,
                                .graph = f->graph,
                                .options = &f->options,
                                .compile = f->config.train_compile,
                                .train_data = f->config.train_data,
                                .seed = 4,
                                .steps = 40,
                                .events = &f->events};
}

static void weights_come_back(void) {
    static const int optimizers[] = {STK_SGD, STK_ADAMW};
    for (size_t k = 0; k < 2; k++) {
        fold f;
        fold other;
        open_fold(&f, norm_graph(), 1, false);
        open_fold(&other, norm_graph(), 1, false);
        f.options.optimizer = other.options.optimizer = optimizers[k];
        f.options.ema = other.options.ema = 0.9;
        stk_lr_find_config config = config_of(&f);
        stk_lr_curve curve;
        stk_error err = {0};
        REQUIRE_OK(stk_lr_find(&config, &curve, &err), &err);
        CHECK(curve.exploded && curve.count > 10 && curve.count <= 40);
        CHECK(curve.suggestion > 1e-5 && curve.suggestion < 1);
        stk_lr_curve_free(&curve);
        CHECK_INT(run_fold(&f), STK_OK); /* and trains as if nothing had been */
        CHECK_INT(run_fold(&other), STK_OK);
        CHECK(hash_weights(&f) == hash_weights(&other));
        CHECK(hash_tensors(&f, STK_TENSOR_EMA) == hash_tensors(&other, STK_TENSOR_EMA));
        CHECK(hash_tensors(&f, STK_TENSOR_SECOND) == hash_tensors(&other, STK_TENSOR_SECOND));
        close_fold(&f);
        close_fold(&other);
    }
}

static void same_curve_every_time(void) {
    stk_lr_curve curves[2];
    stk_error err = {0};
    for (int k = 0; k < 2; k++) {
        fold f;
        open_fold(&f, plain_graph(), k + 1, false);
        f.config.train_data.sizing.workers = 1 + 3 * k;
        stk_lr_find_config config = config_of(&f);
        REQUIRE_OK(stk_lr_find(&config, &curves[k], &err), &err);
        close_fold(&f);
    }
    CHECK_INT(curves[0].count, curves[1].count);
    CHECK(memcmp(curves[0].points, curves[1].points,
                 (size_t)curves[0].count * sizeof *curves[0].points) == 0);
    CHECK(curves[0].suggestion == curves[1].suggestion);
    stk_lr_curve_free(&curves[0]);
    stk_lr_curve_free(&curves[1]);
}

/* Every point is one update; the scripted loss is level, so that all rates are tried. */
static void accumulated_batches_are_one_point(void) {
    fold f;
    stk_lr_curve curve;
    stk_error err = {0};
    open_fold(&f, plain_graph(), 1, true);
    f.options.accumulate = 3;
    f.options.backbone_lr_scale = 0.5;
    stk_lr_find_config config = config_of(&f);
    config.backend = &f.scripted;
    REQUIRE_OK(stk_lr_find(&config, &curve, &err), &err);
    CHECK_INT(curve.count, 40);
    CHECK(isnan(curve.suggestion) && !curve.exploded && !curve.halted);
    REQUIRE(script.step_count == 120);
    for (int i = 0; i < 120; i++) {
        CHECK_INT(script.steps[i].keep, i % 3 != 0);
        CHECK_INT(script.steps[i].update, i % 3 == 2);
    }
    CHECK_NEAR(script.steps[119].how.head_lr, 10, 1e-5);
    CHECK_NEAR(script.steps[119].how.lr, 5, 1e-5);
    CHECK_NEAR(script.steps[119].scale, 1 / 3.0, 1e-7);
    CHECK_NEAR(curve.points[39].loss, 1, 1e-12);
    stk_lr_curve_free(&curve);
    close_fold(&f);
}

static bool halt_soon(void *user) {
    (void)user;
    return script.step_count >= 5;
}

static void can_be_halted(void) {
    fold f;
    stk_lr_curve curve;
    stk_error err = {0};
    open_fold(&f, plain_graph(), 1, true);
    uint64_t before = hash_weights(&f);
    stk_lr_find_config config = config_of(&f);
    config.backend = &f.scripted;
    config.halt = (stk_halt){halt_soon, NULL};
    REQUIRE_OK(stk_lr_find(&config, &curve, &err), &err);
    CHECK(curve.halted && isnan(curve.suggestion));
    CHECK_INT(curve.count, 5);
    CHECK(hash_weights(&f) == before);
    stk_lr_curve_free(&curve);
    close_fold(&f);

    open_fold(&f, plain_graph(), 1, true);
    config = config_of(&f);
    config.backend = &f.scripted;
    script.fail_step = 3;
    CHECK_INT(stk_lr_find(&config, &curve, &err), STK_ERR_DEVICE);
    CHECK(curve.points == NULL);
    close_fold(&f);
}

static void without_memory(void) {
    fold f;
    open_fold(&f, plain_graph(), 1, false);
    stk_lr_find_config config = config_of(&f);
    config.steps = 20;
    int failures = 0;
    stk_status status = STK_ERR_MEMORY;
    for (int64_t n = 0; n < 5000 && status != STK_OK; n += n < 60 ? 1 : 7) {
        stk_lr_curve curve;
        stk_error err = {0};
        stk_mem_fail_after(n);
        status = stk_lr_find(&config, &curve, &err);
        stk_mem_fail_after(-1);
        failures += status != STK_OK;
        CHECK(status == STK_OK || status == STK_ERR_MEMORY);
        stk_lr_curve_free(&curve);
    }
    CHECK_INT(status, STK_OK);
    CHECK(failures > 30);
    close_fold(&f);
}

static const check_test tests[] = {
    TEST(parabolas),
    TEST(rates_grow_by_one_factor),
    TEST(smoothing),
    TEST(explosions_end_it),
    TEST(no_suggestion_from_nothing),
    TEST(noise_is_no_curve),
    TEST(weights_come_back),
    TEST(same_curve_every_time),
    TEST(accumulated_batches_are_one_point),
    TEST(can_be_halted),
    TEST(without_memory),
};

CHECK_MAIN(tests)
