/* test_run_watch.c - which run is meant, and that only the process that writes it is asked to end.
 */
#include "check.h"
#include "small_pictures.h"
#include "told_lines.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "run/run_folder.h"
#include "run/run_watch.h"

static void enter_folder(void) {
    if (chdir(check_folder()) != 0) {
        perror("chdir");
        exit(1);
    }
}

/* A process that writes the run until SIGTERM comes, or with `deaf` until it is killed. */
static pid_t start_writer(const char *folder, bool deaf) {
    int ready[2];
    char byte;
    sigset_t term;
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    pid_t child = pipe(ready) == 0 ? fork() : -1;
    if (child == 0) {
        stk_error err = {0};
        stk_run_folder writes;
        sigprocmask(SIG_BLOCK, &term, NULL);
        must(stk_run_folder_open(&writes, folder, NULL, &err), &err);
        write_text(folder, "args.json", "{}");
        write_text(folder, "events.jsonl", START_LINE);
        if (write(ready[1], "x", 1) != 1) {
            _exit(1);
        }
        int number = 0;
        while (deaf) {
            pause();
        }
        sigwait(&term, &number);
        write_text(folder, "summary.json", "{\"status\": \"partial\"}");
        _exit(0);
    }
    if (child < 0 || read(ready[0], &byte, 1) != 1) {
        perror("fork");
        exit(1);
    }
    close(ready[0]);
    close(ready[1]);
    return child;
}

static void end_writer(pid_t child) {
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

/* A run that has ended, begun at this second. */
static void leave_run(const char *folder, int begun) {
    char path[256];
    struct timespec times[2] = {{.tv_sec = begun}, {.tv_sec = begun}};
    snprintf(path, sizeof path, "%s/state", folder);
    must(stk_dir_make(path, NULL), &(stk_error){0});
    write_text(folder, "events.jsonl", START_LINE);
    write_text(folder, "state/lock", "");
    snprintf(path, sizeof path, "%s/state/lock", folder);
    CHECK(utimensat(AT_FDCWD, path, times, 0) == 0);
}

static void expect_newest(bool running, const char *expected) {
    stk_error err = {0};
    char *folder = NULL;
    stk_status status = stk_watch_newest(running, &folder, &err);
    if (expected != NULL) {
        CHECK_INT(status, STK_OK);
        CHECK_STR(folder, expected);
    } else {
        CHECK_INT(status, STK_ERR_USAGE);
        CHECK(folder == NULL);
        CHECK_CONTAINS(err.message, running ? "is running" : "there is no run below runs/");
    }
    stk_mem_free(folder);
}

static void the_newest_run(void) {
    enter_folder();
    expect_newest(false, NULL);
    expect_newest(true, NULL);
    must(stk_dir_make("runs/other", NULL), &(stk_error){0}); /* no run */
    write_text("runs", "events.jsonl", "");                  /* no folder */
    expect_newest(false, NULL);
    leave_run("runs/b", 2000);
    leave_run("runs/a", 3000);
    leave_run("runs/c", 1000);
    expect_newest(false, "runs/a");
    expect_newest(true, NULL);
    pid_t child = start_writer("runs/d", false);
    expect_newest(true, "runs/d");
    end_writer(child);
    expect_newest(true, NULL);
}

static void a_run_is_asked_to_end(void) {
    stk_error err = {0};
    stk_stopped stopped;
    stk_run_status seen;
    enter_folder();
    pid_t child = start_writer("run", false);
    must(stk_run_status_open(&seen, "run", false, &err), &err);
    REQUIRE_OK(stk_watch_look(&seen, &err), &err);
    CHECK(seen.running && seen.pid == child && seen.host[0] == '\0');
    REQUIRE_OK(stk_watch_stop("run", 60, NULL, &stopped, &err), &err);
    CHECK(stopped.gone && !stopped.already);
    CHECK_INT(stopped.pid, child);
    REQUIRE_OK(stk_watch_look(&seen, &err), &err);
    CHECK_STR(stk_run_status_state(&seen), "ended");
    REQUIRE_OK(stk_watch_stop("run", 60, NULL, &stopped, &err), &err);
    CHECK(stopped.gone && stopped.already);
    CHECK_INT(stopped.pid, -1);
    end_writer(child);
    stk_run_status_close(&seen);
}

static void one_that_does_not_listen(void) {
    stk_error err = {0};
    stk_stopped stopped;
    enter_folder();
    pid_t child = start_writer("run", true);
    REQUIRE_OK(stk_watch_stop("run", 0, NULL, &stopped, &err), &err); /* only asked */
    CHECK(!stopped.gone && !stopped.already);
    REQUIRE_OK(stk_watch_stop("run", 0.1, NULL, &stopped, &err), &err);
    CHECK(!stopped.gone && stopped.waited_s >= 0.1);
    stk_stop enough = {0};
    stk_stop_request(&enough, STK_STOP_SOON, 0);
    REQUIRE_OK(stk_watch_stop("run", 1e6, &enough, &stopped, &err), &err);
    CHECK(!stopped.gone);
    end_writer(child);
}

/* A number that another process has by now, and a machine that is not this one. */
static void a_stranger_is_left_alone(void) {
    static const char *const texts[] = {"{\"pid\": %d, \"born\": 1, \"host\": \"far\"}",
                                        "{\"pid\""};
    static const char *const words[] = {"on far", "does not say by which process"};
    enter_folder();
    pid_t child = start_writer("run", false);
    for (size_t i = 0; i < 2; i++) {
        char text[100];
        stk_error err = {0};
        stk_stopped stopped;
        int fd = open("run/state/lock", O_WRONLY | O_TRUNC);
        int length = snprintf(text, sizeof text, texts[i], (int)child);
        CHECK_INT(write(fd, text, (size_t)length), length);
        close(fd);
        CHECK_INT(stk_watch_stop("run", 60, NULL, &stopped, &err), STK_ERR_USAGE);
        CHECK_CONTAINS(err.message, words[i]);
        CHECK_INT(waitpid(child, NULL, WNOHANG), 0);
    }
    end_writer(child);
}

static const check_test tests[] = {
    TEST(the_newest_run),
    TEST(a_run_is_asked_to_end),
    TEST(one_that_does_not_listen),
    TEST(a_stranger_is_left_alone),
};

CHECK_MAIN(tests)
