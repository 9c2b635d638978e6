/* test_supervise_stacks.c - what is seen of processes that wait, and of ones that are gone. */
#include "check.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "supervise/process/stacks.h"

/* A process below this one that has come to its waiting when it is returned. */
static pid_t start(void (*live)(void *user), void *user) {
    int fds[2];
    char byte;
    if (pipe(fds) != 0) {
        return -1;
    }
    pid_t pid = fork();
    if (pid == 0) {
        close(fds[0]);
        live(user);
        (void)!write(fds[1], "x", 1);
        for (;;) {
            pause();
        }
    }
    close(fds[1]);
    bool there = pid > 0 && read(fds[0], &byte, 1) == 1;
    close(fds[0]);
    return there ? pid : -1;
}

static void end(pid_t pid) {
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static void *sleep_on(void *argument) {
    pause();
    return argument;
}

typedef struct way {
    const char *file; /* held open */
    int threads;      /* besides the first */
} way;

static void live(void *user) {
    const way *w = user;
    pthread_t thread;
    prctl(PR_SET_NAME, "odd) \x1b(name");
    for (int i = 0; i < 30 && w->file != NULL; i++) {
        (void)open(w->file, O_RDWR | O_CREAT, 0600);
    }
    for (int i = 0; i < w->threads; i++) {
        (void)pthread_create(&thread, NULL, sleep_on, NULL);
    }
}

static size_t times(const char *text, const char *part) {
    size_t count = 0;
    for (const char *at = strstr(text, part); at != NULL; at = strstr(at + 1, part)) {
        count++;
    }
    return count;
}

static void what_waits_is_seen(void) {
    char path[300];
    char line[128];
    snprintf(path, sizeof path, "%s/held open\n", check_folder());
    way ways[] = {{.file = path, .threads = 3}, {.threads = 80}};
    pid_t first = start(live, &ways[0]);
    pid_t second = start(live, &ways[1]);
    REQUIRE(first > 0 && second > 0);
    stk_str text = {0};
    stk_stacks_describe(getpid(), &text);
    const char *seen = stk_str_text(&text);
    CHECK(stk_str_ok(&text));
    snprintf(line, sizeof line, "process %lld, started by %lld: S (sleeps): ", (long long)first,
             (long long)getpid());
    CHECK_CONTAINS(seen, line);
    CHECK_CONTAINS(seen, "test_supervise_stacks");
    snprintf(line, sizeof line, "process %lld,", (long long)getpid());
    CHECK(strstr(seen, line) == NULL); /* the root is left out */
    snprintf(line, sizeof line, "  thread %lld odd)  (name: S (sleeps)", (long long)first);
    CHECK_CONTAINS(seen, line);
    CHECK_INT(times(seen, "  thread "), 4 + 64);
    CHECK_CONTAINS(seen, "  and 17 more threads\n");
    CHECK_CONTAINS(seen, "/held open \n"); /* its line break is none of ours */
    CHECK_CONTAINS(seen, " more files\n");
    CHECK(strchr(seen, '\x1b') == NULL);
    stk_str_free(&text);
    end(first);
    end(second);
}

/* One that has ended and was not waited for has a name and no more. */
static void what_has_ended_is_said_so(void) {
    char line[128];
    pid_t pid = fork();
    if (pid == 0) {
        _exit(0);
    }
    siginfo_t info;
    REQUIRE(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) == 0);
    stk_str text = {0};
    stk_stacks_describe(getpid(), &text);
    snprintf(line, sizeof line, "process %lld, started by %lld: Z (has ended): [", (long long)pid,
             (long long)getpid());
    CHECK_CONTAINS(stk_str_text(&text), line);
    CHECK(strstr(stk_str_text(&text), "thread ") == NULL);
    stk_str_free(&text);
    waitpid(pid, NULL, 0);
}

/* A shell that waits for a line which never comes. */
static void a_long_command_line_is_cut(void) {
    char argument[2000];
    int fds[2];
    memset(argument, 'y', sizeof argument - 1);
    argument[sizeof argument - 1] = '\0';
    REQUIRE(pipe(fds) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(fds[0], STDIN_FILENO);
        execl("/bin/sh", "sh", "-c", "read line", argument, (char *)NULL);
        _exit(127);
    }
    stk_str text = {0};
    const char *command = NULL;
    for (int i = 0; i < 600 && command == NULL; i++) { /* until it is a shell */
        usleep(20000);
        stk_str_clear(&text);
        stk_stacks_describe(getpid(), &text);
        command = strstr(stk_str_text(&text), "sh -c read line yyy");
    }
    end(pid);
    close(fds[0]);
    close(fds[1]);
    REQUIRE(command != NULL);
    CHECK_INT(strcspn(command, "\n"), 400);
    stk_str_free(&text);
}

static void nothing_to_see(void) {
    stk_str text = {0};
    stk_stacks_describe(0x7fffffff, &text);
    CHECK_STR(stk_str_text(&text), "no process can be seen\n");
    stk_str_clear(&text);
    stk_stacks_describe(getpid(), &text);
    CHECK_STR(stk_str_text(&text), "no process can be seen\n");
    stk_str_free(&text);
}

static const check_test tests[] = {
    TEST(nothing_to_see),
    TEST(what_waits_is_seen),
    TEST(what_has_ended_is_said_so),
    TEST(a_long_command_line_is_cut),
};

CHECK_MAIN(tests)
