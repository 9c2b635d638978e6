/*
 * test_state_saver.c - what is said of a state that was not written in time: the disk is blamed
 * only where it had its time.
 *
 * A program of its own: the disk answers when the test says so, and the clocks stand still
 * (simulated_clock.h).
 */
#include "check.h"
#include "folder_looks.h"
#include "simulated_clock.h"

#include <math.h>

#include "base/clock.h"
#include "base/files/file.h"
#include "job/saved/state_saver.h"

#define NS_PER_S 1000000000
#define BUDGET_S 60

static atomic_bool disk_hangs;

/* Instead of the C library's. */
int fsync(int fd) {
    while (atomic_load(&disk_hangs)) {
        usleep(1000);
    }
    return (int)syscall(SYS_fsync, fd);
}

/* A saver that has begun to write a state, in a run with so much time left. */
typedef struct pending_save {
    stk_state_saver saver;
    stk_run_clock clock;
    stk_stop stop;
    stk_events events;
    stk_observer observer;
    stk_error late;
    const char *path;
    char warning[512]; /* the last one */
    int warnings;
} pending_save;

static void hear(void *user, const char *message) {
    pending_save *p = user;
    snprintf(p->warning, sizeof p->warning, "%s", message);
    p->warnings++;
}

static void send_state(pending_save *p, const char *text) {
    stk_error err = {0};
    stk_file_writer *file = NULL;
    stk_write_behind *writer = &p->saver.writer;
    REQUIRE_OK(stk_write_behind_begin(writer, &file, p->path, true, &err), &err);
    REQUIRE_OK(stk_file_append(file, text, strlen(text), &err), &err);
    REQUIRE_OK(stk_file_commit(file, &err), &err);
    stk_write_behind_start(writer);
}

/* `left_s` of the budget are left, and the state was begun `age_s` ago. */
static void begin(pending_save *p, double left_s, double age_s) {
    *p = (pending_save){.path = in(check_folder(), "state"), .observer = {.warning = hear}};
    p->observer.user = p;
    stk_events_add(&p->events, &p->observer);
    p->clock = (stk_run_clock){.budget_s = BUDGET_S, .stop = &p->stop};
    p->saver = (stk_state_saver){
        .events = &p->events, .clock = &p->clock, .late_error = &p->late, .writing.epoch = 2};
    int64_t now = clocks_hold();
    atomic_store(&disk_hangs, true);
    send_state(p, "a state");
    p->clock.start_ns = now - (int64_t)((BUDGET_S - left_s) * NS_PER_S);
    p->saver.writer.begun_ns = now - (int64_t)(age_s * NS_PER_S);
}

/* What was given up comes into place when the disk answers. */
static void let_disk_answer(const pending_save *p) {
    atomic_store(&disk_hangs, false);
    for (int i = 0; i < 60000 && !stk_path_is_file(p->path); i++) {
        usleep(1000);
    }
    CHECK(holds(p->path, "a state"));
}

static void end(pending_save *p) {
    let_disk_answer(p);
    clocks_release();
    stk_state_saver_free_copy(&p->saver);
}

static void time_that_is_over_is_no_failure_of_the_disk(void) {
    pending_save p;
    begin(&p, 0.1, 2.9);
    stk_state_saver_wait(&p.saver);
    CHECK_INT(p.warnings, 1);
    CHECK_STR(p.warning,
              "the last state was not saved, so a resume would start before it: the time "
              "was over before it was written");
    CHECK_INT(p.late.status, STK_OK);
    CHECK(!p.saver.exists && !stk_write_behind_is_pending(&p.saver.writer));
    CHECK(p.saver.unfinished);            /* so that the job removes the temporary file */
    CHECK_INT(p.saver.position.epoch, 0); /* of the state that counts */
    end(&p);
}

static void a_disk_that_had_its_time_is_to_blame(void) {
    pending_save p;
    begin(&p, 0.1, 3.1); /* the time is over as well */
    stk_state_saver_wait(&p.saver);
    CHECK_INT(p.warnings, 1);
    CHECK_CONTAINS(p.warning, "its disk gave no answer within 3.1 s");
    CHECK_INT(p.late.status, STK_ERR_STORAGE);
    CHECK_CONTAINS(p.late.message, "its disk gave no answer within 3.1 s");
    end(&p);

    begin(&p, 50, STK_DISK_MOVE_S + 1); /* there would be time, but not for this disk */
    stk_state_saver_wait(&p.saver);
    CHECK_INT(p.late.status, STK_ERR_STORAGE);
    CHECK(!p.saver.exists);
    end(&p);
}

/* After a second request to stop nobody waits, and nobody calls that an error. */
static void who_is_asked_to_stop_at_once_leaves_the_state(void) {
    pending_save p;
    begin(&p, 50, 3.1);
    stk_stop_request(&p.stop, STK_STOP_NOW, 0);
    stk_state_saver_wait(&p.saver);
    CHECK_INT(p.warnings, 1);
    CHECK_INT(p.late.status, STK_OK);
    end(&p);
}

static void a_state_that_comes_in_time_counts(void) {
    pending_save p;
    begin(&p, 50, 1);
    atomic_store(&disk_hangs, false);
    stk_state_saver_wait(&p.saver);
    CHECK_INT(p.warnings, 0);
    CHECK_INT(p.late.status, STK_OK);
    CHECK(p.saver.exists);
    CHECK_INT(p.saver.position.epoch, 2);
    CHECK_NEAR(stk_typical_value(&p.saver.write_s), 1, 1e-6);
    end(&p);
}

/* One warning is enough for a run. */
static void the_loss_is_told_once(void) {
    pending_save p;
    begin(&p, 0.1, 1);
    stk_state_saver_wait(&p.saver);
    let_disk_answer(&p);
    CHECK_INT(unlink(p.path), 0);
    atomic_store(&disk_hangs, true);
    send_state(&p, "a state");
    stk_state_saver_wait(&p.saver);
    CHECK_INT(p.warnings, 1);
    CHECK_INT(p.late.status, STK_OK);
    end(&p);
}

/* The write that runs meanwhile is not lost, and the next one takes memory again. */
static void a_freed_copy_is_taken_again(void) {
    pending_save p;
    begin(&p, 50, 1);
    atomic_store(&disk_hangs, false);
    stk_state_saver_free_copy(&p.saver);
    CHECK(p.saver.exists && p.saver.writer.block.data == NULL);
    CHECK_INT(p.saver.position.epoch, 2);
    CHECK_INT(unlink(p.path), 0);
    p.saver.writing.epoch = 3;
    send_state(&p, "a state");
    stk_state_saver_wait(&p.saver);
    CHECK_INT(p.saver.position.epoch, 3);
    CHECK_INT(p.warnings, 0);
    end(&p);
}

/* The state that a resumed run began with counts until another one is written. */
static void the_state_of_a_resumed_run_counts(void) {
    pending_save p;
    begin(&p, 0.1, 1);
    stk_state_saver_continue(&p.saver, &(stk_train_position){.epoch = 1});
    stk_state_saver_wait(&p.saver);
    CHECK(p.saver.exists);
    CHECK_INT(p.saver.position.epoch, 1);
    end(&p);
}

static const check_test tests[] = {
    TEST(time_that_is_over_is_no_failure_of_the_disk),
    TEST(a_disk_that_had_its_time_is_to_blame),
    TEST(who_is_asked_to_stop_at_once_leaves_the_state),
    TEST(a_state_that_comes_in_time_counts),
    TEST(the_loss_is_told_once),
    TEST(a_freed_copy_is_taken_again),
    TEST(the_state_of_a_resumed_run_counts),
};

CHECK_MAIN(tests)
