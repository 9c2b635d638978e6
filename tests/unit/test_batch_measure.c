/*
 * test_batch_measure.c - batches that are measured on a device whose time is simulated: what there
 * is time for, what is taken, and what is told.
 */
#include "check.h"
#include "simulated_clock.h"

#include <math.h>

#include "backend/cpu/device.h"
#include "base/error.h"
#include "job/training/job.h"
#include "models/models.h"

#define SIZE 12

/* The batch of the rule is 128 then, and no larger one is worth measuring. */
#define IMAGES 3000

typedef struct device_times {
    double compile_s;
    double step_s;    /* of a step of at most 128 pictures */
    double large_s;   /* of a step of more pictures */
    double picture_s; /* of a step, for each of its pictures */
    double step_most; /* steps after which an end is asked for */
    int steps;
} device_times;

static device_times times;
static stk_stop stop;

static void pass(double seconds) {
    clocks_pass((int64_t)(seconds * 1e9));
}

static stk_status slow_compile(stk_exec **exec, stk_state *state, const stk_compile_config *config,
                               stk_error *err) {
    pass(times.compile_s);
    return stk_cpu_backend.compile(exec, state, config, err);
}

/* The weights are not looked at: a step is nothing but its time. */
static stk_status slow_step(stk_exec *exec, const stk_step_input *input, stk_step_output *output,
                            stk_error *err) {
    (void)exec;
    (void)output;
    (void)err;
    pass((input->count > 128 ? times.large_s : times.step_s) +
         times.picture_s * (double)input->count);
    if (++times.steps >= times.step_most) {
        stk_stop_request(&stop, STK_STOP_SOON, 0);
    }
    return STK_OK;
}

static stk_status nothing_to_collect(stk_exec *exec, bool wait, stk_step_output *outputs,
                                     size_t room, size_t *count, stk_error *err) {
    (void)exec;
    (void)wait;
    (void)outputs;
    (void)room;
    (void)err;
    *count = 0;
    return STK_OK;
}

/* What measuring came to. */
static struct {
    double took_s;
    size_t batch;
    char told[512];
} seen;

static void hear(void *user, const stk_event_decision *event) {
    (void)user;
    if (strncmp(event->what, "batch ", 6) == 0) {
        snprintf(seen.told, sizeof seen.told, "%s: %s", event->what, event->why);
    }
}

/* A job on the slow device, with a network, that has this --batch. */
static void open_job(stk_job *job, stk_backend *backend, stk_options **options, const char *batch,
                     int64_t start) {
    stk_error err = {0};
    *backend = stk_cpu_backend;
    backend->name = "slow";
    backend->compile = slow_compile;
    backend->step = slow_step;
    backend->collect = nothing_to_collect;
    *job = (stk_job){.verb = "train", .out = {.folder = {.lock_fd = -1}}};
    REQUIRE_OK(stk_options_for_train(options, &err), &err);
    REQUIRE_OK(stk_options_set(*options, "batch", batch, &err), &err);
    stk_job_open(job, *options, &(stk_run){.stop = &stop, .start_ns = start});
    REQUIRE_OK(stk_model_find("convnet_s", &job->recipe.model, &err), &err);
    job->recipe.img_size = SIZE;
    job->network.opened = (stk_opened_device){.backend = backend, .name = "slow:0"};
    REQUIRE_OK(
        backend->device_open(&job->network.opened.device, &(stk_device_config){.threads = 1}, &err),
        &err);
    stk_model_config network = {.img_size = SIZE, .classes = 2};
    REQUIRE_OK(stk_model_build(job->recipe.model, &network, &job->network.graph, &err), &err);
    job->network.state_config = (stk_state_config){.train = true};
}

/* With so many seconds left, and so many images to train on. */
static void measure(double left_s, device_times device, size_t images) {
    static const stk_observer observer = {.decision = hear};
    stk_error err = {0};
    stk_backend backend;
    stk_options *options = NULL;
    stk_job job;
    times = device;
    stop = (stk_stop){0};
    seen.told[0] = '\0';
    int64_t start = clocks_hold();
    open_job(&job, &backend, &options, "auto", start);
    stk_events_add(&job.events, &observer);
    job.clock.budget_s = left_s;
    REQUIRE_OK(stk_batch_search_plan(&job.batch_search, job.options, images, false, &err), &err);
    REQUIRE_OK(stk_recipe_complete(&job.recipe, options, &job.batch_search.facts,
                                   &job.batch_search.chosen, job.batch_search.infer_batch,
                                   job.batch_search.to_be_measured, &err),
               &err);
    REQUIRE_OK(backend.state_new(&job.network.state, job.network.opened.device, job.network.graph,
                                 &job.network.state_config, &err),
               &err);
    bool open = job.batch_search.to_be_measured;
    REQUIRE_OK(stk_job_measure_batch(&job, &err), &err);
    seen.took_s = (double)(atomic_load(&simulated_ns) - start) * 1e-9;
    seen.batch = job.recipe.batch;
    CHECK(open && !job.batch_search.to_be_measured);
    stk_job_close(&job);
    stk_options_free(options);
    clocks_release();
}

static void a_fast_device_is_measured_until_it_is_known(void) {
    device_times device = {
        .compile_s = 0.1, .step_s = 0.01, .picture_s = 1e-3, .step_most = INFINITY};
    measure(600, device, IMAGES);
    CHECK(seen.took_s < 5);
    CHECK_INT(seen.batch, 128);
    CHECK_CONTAINS(seen.told, "batch 128: 928 images/s, the best of 2 batches measured in ");
}

/* Whatever a step takes: the first batch may take its share, and all others another one. */
static void slow_steps_take_no_more_than_their_share(void) {
    for (int i = 0; i < 9; i++) {
        device_times device = {.picture_s = 1e-3 * (1 << i), .step_most = INFINITY};
        double step_s = 128 * device.picture_s;
        measure(120, device, IMAGES);
        if (seen.took_s > 2 * (6 + step_s)) {
            CHECK_FAIL("steps of %g s: %g s of 120", step_s, seen.took_s);
        }
        CHECK(seen.batch >= 8);
        if (2 * step_s > 6) { /* before it is warm */
            CHECK_CONTAINS(seen.told,
                           "batch 128: not measured: 6.0 s were too short a time for it; ");
        } else {
            CHECK_CONTAINS(seen.told, " images/s, ");
        }
    }
}

/* That a larger one would not fit is not said of one that there was no time for. */
static void a_larger_batch_that_is_too_slow_is_left(void) {
    device_times device = {.compile_s = 0.5, .step_s = 0.1, .large_s = 4, .step_most = INFINITY};
    measure(120, device, 100000);
    CHECK_INT(seen.batch, 128);
    CHECK_CONTAINS(seen.told,
                   "larger ones were not measured: one takes 8.5 s, and 6.0 s are to spare");
}

static void a_request_to_stop_ends_it(void) {
    device_times device = {.step_s = 0.3, .step_most = 2};
    measure(NAN, device, IMAGES);
    CHECK_NEAR(seen.took_s, 0.6, 1e-6);
    CHECK_INT(seen.batch, 128);
    CHECK_CONTAINS(seen.told, "not measured: it was interrupted; ");
}

/* A device that computes 100 pictures at a time, and a --batch that is refused or not. */
static void a_batch_that_the_device_cannot_compute_is_refused(void) {
    static const struct {
        const char *batch;
        size_t images;
        size_t chosen; /* 0: refused */
    } cases[] = {{"100", IMAGES, 100}, {"101", 50, 50}, {"101", 101, 0}, {"101", IMAGES, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        stk_error err = {0};
        stk_backend backend;
        stk_options *options = NULL;
        stk_job job;
        open_job(&job, &backend, &options, cases[i].batch, 0);
        backend.most_batch = 100;
        stk_status status =
            stk_batch_search_plan(&job.batch_search, options, cases[i].images, false, &err);
        CHECK_INT(status, cases[i].chosen > 0 ? STK_OK : STK_ERR_USAGE);
        if (cases[i].chosen > 0) {
            CHECK_INT(job.batch_search.chosen.batch, cases[i].chosen);
        } else {
            CHECK_CONTAINS(err.message, "--batch 101 is too large: slow:0 computes at most 100 ");
        }
        stk_job_close(&job);
        stk_options_free(options);
    }
}

static const check_test tests[] = {
    TEST(a_batch_that_the_device_cannot_compute_is_refused),
    TEST(a_fast_device_is_measured_until_it_is_known),
    TEST(slow_steps_take_no_more_than_their_share),
    TEST(a_larger_batch_that_is_too_slow_is_left),
    TEST(a_request_to_stop_ends_it),
};

CHECK_MAIN(tests)
