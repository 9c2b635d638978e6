/*
 * test_job_stop.c - runs that end early: asked to stop, out of time, out of memory.
 * A program of its own: it replaces aligned_alloc(), open() and close().
 */
#include "check.h"
#include "job_runs.h"
#include "simulated_clock.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

static char base[256];
static char a[300];

static void enter(void) {
    snprintf(base, sizeof base, "%s", check_folder());
    run_dir(a, sizeof a, base, "a");
}

/* ---- asked to stop ---- */

static void stop_before_the_first_step(void) {
    static const stk_stop_level levels[] = {STK_STOP_SOON, STK_STOP_NOW};
    for (size_t i = 0; i < 2; i++) {
        static run_story story;
        stk_stop stop = {0};
        memset(&story, 0, sizeof story);
        enter();
        stk_stop_request(&stop, levels[i], 0);
        train(&story, shared_data(), a, "", (stk_run){.stop = &stop});
        REQUIRE_OK(story.status, &story.err); /* the priors are a submission */
        CHECK_INT(story.steps, 0);
        CHECK_STR(story.outcome.status, "prior");
        CHECK_STR(story.submissions, "prior 10 0\n");
        CHECK_INT(story.outcome.models, 0);
        CHECK(isnan(story.outcome.best_acc1));
        CHECK_SUMMARY(a, "status", "prior");
        CHECK_SUMMARY(a, "stop_reason", "signal");
        CHECK_SUMMARY(a, "best_acc1", "null");
        CHECK_SUMMARY(a, "folds_done", "0");
        CHECK_INT(count_lines(a, "submission.csv"), 1 + TEST_ROWS);
    }
}

/* Without test pictures there is nothing to deliver: that is the one kind of exit code 130. */
static void stop_with_nothing_to_deliver(void) {
    static run_story story;
    stk_stop stop = {0};
    enter();
    stk_stop_request(&stop, STK_STOP_SOON, 0);
    train(&story, shared_data_without_test(), a, "", (stk_run){.stop = &stop});
    CHECK_INT(story.status, STK_ERR_STOPPED);
    CHECK_INT(stk_status_exit_code(story.status), 130);
    CHECK_STR(story.outcome.status, "failed");
    CHECK_STR(story.outcome.submission, "");
}

typedef struct stopper {
    stk_stop stop;
    sem_t stepped;
} stopper;

static void *request_stop(void *argument) {
    stopper *s = argument;
    sem_wait(&s->stepped);
    stk_stop_request(&s->stop, STK_STOP_SOON, 0);
    return NULL;
}

typedef struct relay {
    stk_observer observer; /* wakes the stopper; nothing else is listened to */
    stopper stopper;
    int steps;
} relay;

static void wake_stopper(void *user, const stk_event_step *event) {
    (void)event;
    relay *r = user;
    if (++r->steps == 2) {
        sem_post(&r->stopper.stepped);
    }
}

static void stop_from_another_thread(void) {
    static relay r;
    static stk_outcome outcome = {.size = sizeof outcome};
    stk_error err = {0};
    stk_options *options = NULL;
    pthread_t thread;
    enter();
    sem_init(&r.stopper.stepped, 0, 0);
    r.observer = (stk_observer){.size = sizeof r.observer, .user = &r, .step = wake_stopper};
    pthread_create(&thread, NULL, request_stop, &r.stopper);
    must(stk_options_for_train(&options, &err), &err);
    set_all(options, "img-size=16 batch=8 epochs=10000 workers=2 recipe=plain");
    must(stk_options_set(options, "data", shared_data(), &err), &err);
    must(stk_options_set(options, "out", a, &err), &err);
    stk_run run = {.size = sizeof run, .observer = &r.observer, .stop = &r.stopper.stop};
    stk_status status = stk_train(options, &run, &outcome, &err);
    pthread_join(thread, NULL);
    sem_destroy(&r.stopper.stepped);
    stk_options_free(options);
    REQUIRE_OK(status, &err);
    CHECK_STR(outcome.status, "partial");
    CHECK_INT(outcome.models, 1);
    CHECK_SUMMARY(a, "status", "partial");
    CHECK_SUMMARY(a, "stop_reason", "signal");
    CHECK(has_file(a, "weights/best.safetensors"));
    CHECK_INT(count_lines(a, "submission.csv"), 1 + TEST_ROWS);
}

static void stop_soon_delivers(void) {
    static run_story story;
    stk_stop stop = {0};
    enter();
    story.stop = &stop;
    story.stop_level = STK_STOP_SOON;
    story.stop_after_steps = 4; /* the first of the second epoch */
    train(&story, shared_data(), a, "folds=2 epochs=50", (stk_run){.stop = &stop});
    REQUIRE_OK(story.status, &story.err);
    CHECK_INT(story.steps, 4);
    CHECK_STR(story.submissions, "prior 10 0\npartial 10 1\n");
    CHECK_STR(story.outcome.status, "partial");
    CHECK_SUMMARY(a, "folds_done", "1");
    CHECK_SUMMARY(a, "folds_planned", "2");
    CHECK_SUMMARY(a, "stop_reason", "signal");
}

static void stop_now_gives_up_at_once(void) {
    static run_story story;
    stk_stop stop = {0};
    enter();
    story.stop = &stop;
    story.stop_level = STK_STOP_NOW;
    story.stop_after_steps = 4;
    train(&story, shared_data(), a, "epochs=50", (stk_run){.stop = &stop});
    CHECK_INT(story.steps, 4);
    CHECK_STR(story.submissions, "prior 10 0\n");
    CHECK(has_file(a, "submission.csv") && has_file(a, "summary.json"));
    CHECK_SUMMARY(a, "stop_reason", "signal");
}

/* ---- out of time ---- */

static void budget_that_is_gone_gives_priors(void) {
    static run_story story;
    enter();
    stk_run run = {.start_ns = stk_clock_ns() - 1500000000}; /* it began 1.5 s ago */
    train(&story, shared_data(), a, "budget=1s", run);
    REQUIRE_OK(story.status, &story.err);
    CHECK_INT(story.steps, 0);
    CHECK_STR(story.outcome.status, "prior");
    CHECK_SUMMARY(a, "status", "prior");
    CHECK_SUMMARY(a, "stop_reason", "budget");
    CHECK_SUMMARY(a, "budget_s", "1");
    CHECK_INT(count_lines(a, "submission.csv"), 1 + TEST_ROWS);
    static run_story nothing;
    enter();
    train(&nothing, shared_data_without_test(), a, "budget=1s", run);
    CHECK_INT(nothing.status, STK_ERR_USAGE);
    CHECK_CONTAINS(nothing.err.message, "larger --budget");
}

static void budget_cuts_the_epochs(void) {
    static run_story story;
    enter();
    train(&story, shared_data(), a, "budget=1s epochs=100000",
          (stk_run){.start_ns = stk_clock_ns()});
    REQUIRE_OK(story.status, &story.err);
    CHECK(strcmp(story.outcome.status, "complete") != 0);
    CHECK_SUMMARY(a, "stop_reason", "budget");
    CHECK_INT(count_lines(a, "submission.csv"), 1 + TEST_ROWS);
}

/* Patience ends it long before the budget does: nothing that was asked for is missing. */
static void patience_under_a_budget_is_complete(void) {
    static run_story story;
    CHECK_LONG();
    enter();
    train(&story, shared_data(), a, "budget=100s epochs=100000 patience=1 lr=1e-12",
          (stk_run){.start_ns = stk_clock_ns()});
    REQUIRE_OK(story.status, &story.err);
    CHECK_SUMMARY(a, "stop_reason", "patience");
    CHECK_SUMMARY(a, "status", "complete");
    CHECK_CONTAINS(story.decisions, " of 100000 epochs\n");
}

static void pass_a_step(void) {
    clocks_pass(25000000);
}

/*
 * Three folds within one budget: every one of them is trained, for a third of the time or so. Only
 * steps take time, so that every machine has enough of it for as many epochs as three folds want.
 */
static void budget_is_shared_by_folds(void) {
    static run_story story = {.at_step = pass_a_step};
    CHECK_LONG();
    enter();
    train(&story, shared_data(), a, "budget=4s epochs=auto folds=3",
          (stk_run){.start_ns = clocks_hold()});
    clocks_release();
    REQUIRE_OK(story.status, &story.err);
    CHECK_SUMMARY(a, "folds_done", "3");
    CHECK_INT(story.outcome.models, 3);
    /* Alike but for noise; a first fold that takes all it can would have nine of ten. */
    CHECK(story.fold_epochs[0] <= 2 * (story.fold_epochs[1] + story.fold_epochs[2]));
}

/* ---- out of memory ---- */

/* Whatever request fails, there is a sentence, and what was written before stays readable. */
static void train_without_memory(void) {
    int failures = 0;
    stk_status status = STK_ERR_MEMORY;
    CHECK_SAME_THREADS();
    enter();
    shared_data();
    for (int64_t n = 0; n < 20000 && status != STK_OK; n += n < 40 ? 4 : 3 + n / 8) {
        static run_story story;
        stk_options *options = NULL;
        char out[320];
        memset(&story, 0, sizeof story);
        snprintf(out, sizeof out, "%s/n%d", base, (int)n);
        must(stk_options_for_train(&options, &story.err), &story.err);
        set_all(options, "img-size=16 batch=8 epochs=1 workers=1");
        must(stk_options_set(options, "data", shared_data(), &story.err), &story.err);
        must(stk_options_set(options, "out", out, &story.err), &story.err);
        stk_observer observer = observer_of(&story);
        stk_run run = {.size = sizeof run, .observer = &observer};
        stk_mem_fail_after(n);
        story.outcome.size = sizeof story.outcome;
        status = stk_train(options, &run, &story.outcome, &story.err);
        stk_mem_fail_after(-1);
        stk_options_free(options);
        failures += status != STK_OK;
        if (status != STK_OK && story.err.message[0] == '\0') {
            CHECK_FAIL("request %d fails without a sentence", (int)n);
        }
        CHECK_STR(story.outcome.status, status == STK_OK ? "complete" : story.outcome.status);
    }
    CHECK_INT(status, STK_OK);
    CHECK(failures > 10);
}

static bool starving;      /* the next request for much memory fails */
static bool keeps_state;   /* the state stays then, and reading it finds no memory */
static bool reading_state; /* from that request on: requests fail while the state is open */
static stk_stop starved;

#ifdef CHECK_SANITIZED
static const bool can_starve = false;
#else
static const bool can_starve = true;

/* Whoever is refused has nothing left to go on from either, and is to end now. */
void *aligned_alloc(size_t alignment, size_t bytes) {
    static void *(*next)(size_t alignment, size_t bytes);
    char state[400];
    if (next == NULL) {
        *(void **)&next = dlsym(RTLD_NEXT, "aligned_alloc");
    }
    if (starving && bytes >= (64 << 10) && keeps_state) {
        reading_state = true;
        starving = false;
        return NULL;
    }
    if (starving && bytes >= (64 << 10)) {
        snprintf(state, sizeof state, "%s/state/train.safetensors", a);
        CHECK_INT(unlink(state), 0);
        stk_stop_request(&starved, STK_STOP_NOW, 0);
        starving = false;
        return NULL;
    }
    return next(alignment, bytes);
}

/* Files are opened by the library with three arguments at most, the last of which is a mode. */
int open(const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    int mode = (flags & O_CREAT) != 0 ? va_arg(rest, int) : 0;
    va_end(rest);
    if (reading_state && strstr(path, "/state/train.safetensors") != NULL) {
        stk_mem_fail_after(0);
    }
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

int close(int fd) {
    if (reading_state) {
        stk_mem_fail_after(-1);
    }
    return (int)syscall(SYS_close, fd);
}
#endif

/* The last of these is followed by a network that is compiled for more than the head. */
static int steps_before;

static void starve(void) {
    starving = --steps_before == 0;
}

/* Out of memory, and out of time for weights to begin again with: it delivers what it has. */
static void no_memory_and_no_time_to_begin_again(void) {
    static run_story story = {.at_step = starve};
    if (!can_starve) {
        CHECK_SKIP("a sanitizer has an allocator of its own");
    }
    enter();
    steps_before = 3;
    train(&story, shared_data(), a, "epochs=50 freeze-epochs=1 device=cpu",
          (stk_run){.stop = &starved});
    REQUIRE_OK(story.status, &story.err);
    CHECK_INT(story.steps, 3);
    CHECK_STR(story.outcome.status, "prior");
    CHECK_SUMMARY(a, "stop_reason", "signal");
    CHECK_SUMMARY(a, "epochs_done", "1");
}

/* Out of memory, and none to go back to what was saved either: what there is is delivered. */
static void no_memory_to_go_back(void) {
    static run_story story = {.at_step = starve};
    if (!can_starve) {
        CHECK_SKIP("a sanitizer has an allocator of its own");
    }
    enter();
    steps_before = 3;
    keeps_state = true;
    train(&story, shared_data(), a, "epochs=50 freeze-epochs=1 device=cpu", (stk_run){0});
    reading_state = false;
    keeps_state = false;
    CHECK_INT(story.status, STK_ERR_MEMORY);
    CHECK_CONTAINS(story.err.message, "what was saved last cannot be gone back to: end what else ");
    CHECK_CONTAINS(story.err.message, "what was learnt up to epoch 1 is kept");
    CHECK_STR(story.outcome.status, "partial");
    CHECK_STR(story.submissions, "prior 10 0\npartial 10 1\n");
    CHECK_SUMMARY(a, "status", "partial");
    CHECK_SUMMARY(a, "stop_reason", "error");
    CHECK_SUMMARY(a, "epochs_done", "1");
}

static const check_test tests[] = {
    TEST(stop_before_the_first_step),
    TEST(stop_with_nothing_to_deliver),
    TEST(stop_from_another_thread),
    TEST(stop_soon_delivers),
    TEST(stop_now_gives_up_at_once),
    TEST(budget_that_is_gone_gives_priors),
    TEST(budget_cuts_the_epochs),
    TEST(patience_under_a_budget_is_complete),
    TEST(budget_is_shared_by_folds),
    TEST(train_without_memory),
    TEST(no_memory_and_no_time_to_begin_again),
    TEST(no_memory_to_go_back),
};

CHECK_MAIN(tests)
