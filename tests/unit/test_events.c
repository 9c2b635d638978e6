/* test_events.c - every event reaches every observer that asked for it, in order, unchanged. */
#include "check.h"

#include "base/error.h"
#include "events/events.h"
#include "base/public_struct.h"

#define LOG_SIZE 4096

typedef struct listener {
    char name;
    char *log;        /* what was heard, by all listeners in turn */
    const void *last; /* the event that was handed over last */
} listener;

static void note(void *user, const char *what, const void *event) {
    listener *l = user;
    size_t used = strlen(l->log);
    l->last = event;
    snprintf(l->log + used, LOG_SIZE - used, "%c:%s ", l->name, what);
}

static void on_start(void *user, const stk_event_start *event) {
    note(user, "start", event);
}
static void on_plan(void *user, const stk_event_plan *event) {
    note(user, "plan", event);
}
static void on_decision(void *user, const stk_event_decision *event) {
    char text[128];
    snprintf(text, sizeof text, "decision(%s,%s)", event->what, event->why);
    note(user, text, event);
}
static void on_step(void *user, const stk_event_step *event) {
    note(user, "step", event);
}
static void on_epoch(void *user, const stk_event_epoch *event) {
    note(user, "epoch", event);
}
static void on_checkpoint(void *user, const stk_event_checkpoint *event) {
    char text[128];
    snprintf(text, sizeof text, "checkpoint(%s,%d)", event->path, event->best);
    note(user, text, event);
}
static void on_bad_image(void *user, const stk_event_bad_image *event) {
    char text[128];
    snprintf(text, sizeof text, "bad(%s,%s,%s)", event->path, event->split, event->reason);
    note(user, text, event);
}
static void on_submission(void *user, const stk_event_submission *event) {
    note(user, "submission", event);
}
static void on_warning(void *user, const char *text) {
    note(user, text, text);
}
static void on_stop(void *user, const stk_summary *summary) {
    note(user, "stop", summary);
}

static void on_progress(void *user, const stk_event_progress *event) {
    note(user, "progress", event);
}

static stk_observer full(listener *l) {
    return (stk_observer){.user = l,
                          .start = on_start,
                          .plan = on_plan,
                          .decision = on_decision,
                          .step = on_step,
                          .epoch = on_epoch,
                          .checkpoint = on_checkpoint,
                          .bad_image = on_bad_image,
                          .submission = on_submission,
                          .warning = on_warning,
                          .stop = on_stop,
                          .progress = on_progress};
}

/* One of each event. */
static void tell_all(const stk_events *events) {
    stk_event_start start = {0};
    stk_event_plan plan = {0};
    stk_event_step step = {0};
    stk_event_epoch epoch = {0};
    stk_event_submission submission = {0};
    stk_summary summary = {0};
    stk_event_progress progress = {0};
    stk_events_start(events, &start);
    stk_events_plan(events, &plan);
    stk_events_decision(events, "batch 32", "few images");
    stk_events_step(events, &step);
    stk_events_epoch(events, &epoch);
    stk_events_checkpoint(events, "best", true);
    stk_events_bad_image(events, "a.jpg", "val", "cut off");
    stk_events_submission(events, &submission);
    stk_events_warning(events, "%d %s", 3, "left");
    stk_events_stop(events, &summary);
    stk_events_progress(events, &progress);
}

static void every_event_is_told_once(void) {
    char log[LOG_SIZE] = "";
    listener a = {'a', log, NULL};
    stk_observer observer = full(&a);
    stk_events events = {0};
    stk_events_add(&events, &observer);
    tell_all(&events);
    CHECK_STR(log, "a:start a:plan a:decision(batch 32,few images) a:step a:epoch "
                   "a:checkpoint(best,1) a:bad(a.jpg,val,cut off) a:submission a:3 left a:stop "
                   "a:progress ");
}

static void the_event_itself_is_handed_over(void) {
    char log[LOG_SIZE] = "";
    listener a = {'a', log, NULL};
    stk_observer observer = full(&a);
    stk_events events = {0};
    stk_event_step step = {.loss = 1.5};
    stk_summary summary = {.status = "complete"};
    stk_events_add(&events, &observer);
    stk_events_step(&events, &step);
    CHECK(a.last == &step);
    stk_events_stop(&events, &summary);
    CHECK(a.last == &summary);
}

static void observers_hear_in_the_order_they_came(void) {
    char log[LOG_SIZE] = "";
    listener listeners[STK_EVENTS_MAX];
    stk_observer observers[STK_EVENTS_MAX];
    stk_events events = {0};
    for (int i = 0; i < STK_EVENTS_MAX; i++) {
        listeners[i] = (listener){(char)('a' + i), log, NULL};
        observers[i] = full(&listeners[i]);
        stk_events_add(&events, &observers[i]);
    }
    CHECK_INT(events.count, STK_EVENTS_MAX);
    stk_events_warning(&events, "x");
    CHECK_STR(log, "a:x b:x c:x d:x e:x f:x g:x h:x ");
}

static void nobody_need_listen(void) {
    stk_events events = {0};
    tell_all(&events);
    tell_all(NULL);
    stk_events_add(&events, NULL);
    CHECK_INT(events.count, 0);
}

static void callbacks_are_optional(void) {
    char log[LOG_SIZE] = "";
    listener a = {'a', log, NULL};
    listener b = {'b', log, NULL};
    stk_observer none = {0};
    stk_observer steps = {.user = &a, .step = on_step};
    stk_observer stops = {.user = &b, .stop = on_stop};
    stk_events events = {0};
    stk_events_add(&events, &none);
    stk_events_add(&events, &steps);
    stk_events_add(&events, &stops);
    tell_all(&events);
    CHECK_STR(log, "a:step b:stop ");
}

static void a_long_warning_is_cut(void) {
    char log[LOG_SIZE] = "";
    char text[3000];
    listener a = {'a', log, NULL};
    stk_observer observer = full(&a);
    stk_events events = {0};
    memset(text, 'w', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    stk_events_add(&events, &observer);
    stk_events_warning(&events, "%s", text);
    CHECK_INT(strlen(log), 1023 + 3);
    CHECK(strncmp(log, "a:www", 5) == 0);
}

/* A struct of another version than the library's is refused before anything is read or written. */
static void structs_of_callers_carry_their_size(void) {
    stk_observer observer = {.size = sizeof observer};
    stk_run run = {.size = sizeof run, .observer = &observer};
    stk_error err = {0};
    CHECK_INT(stk_public_check_run(NULL, &err), STK_OK);
    CHECK_INT(stk_public_check_run(&run, &err), STK_OK);
    observer.size = 0;
    CHECK_INT(stk_public_check_run(&run, &err), STK_ERR_USAGE);
    CHECK_CONTAINS(err.message, "the size of a stk_observer is not set");
    stk_error_clear(&err);
    run.size += 8;
    CHECK_INT(stk_public_check_run(&run, &err), STK_ERR_USAGE);
    CHECK_CONTAINS(err.message, "headers of this library");
    stk_error_clear(&err);
    stk_outcome outcome = {.models = 3};
    CHECK_INT(STK_PUBLIC_BEGIN(stk_outcome, &outcome, NULL, &err), STK_ERR_USAGE);
    CHECK_INT(outcome.models, 3);
    outcome.size = sizeof outcome;
    CHECK_INT(STK_PUBLIC_BEGIN(stk_outcome, &outcome, NULL, NULL), STK_OK);
    CHECK_INT(outcome.models, 0);
    CHECK(outcome.size == sizeof outcome);
    CHECK_INT(STK_PUBLIC_BEGIN(stk_outcome, (void *)NULL, NULL, NULL), STK_OK);
}

static const check_test tests[] = {
    TEST(structs_of_callers_carry_their_size),
    TEST(every_event_is_told_once),
    TEST(the_event_itself_is_handed_over),
    TEST(observers_hear_in_the_order_they_came),
    TEST(nobody_need_listen),
    TEST(callbacks_are_optional),
    TEST(a_long_warning_is_cut),
};

CHECK_MAIN(tests)
