/*
 * test_supervise_guardian.c - commands are started and told of truthfully, and nothing of them is
 * left behind, whoever is killed. A program of its own: it is also the command that does its best
 * to escape.
 */
#include "check.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/threads/proc_tree.h"
#include "base/threads/process.h"
#include "supervise/process/guardian.h"

#define PATIENCE_S 30 /* on a machine that is busy with other things */

/* Processes that a crowd has at last: itself and three that it started. */
#define CROWD_COUNT 4

/* ---- What the commands do ---- */

/* However a test fails, nothing sits here for ever. */
static _Noreturn void sit(void) {
    alarm(120);
    for (;;) {
        pause();
    }
}

static void ignore_all(void) {
    const int ignored[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGQUIT};
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++) {
        signal(ignored[i], SIG_IGN);
    }
}

/* Has a child, one in a session of its own and a grandchild without parent. */
static _Noreturn void be_a_crowd(void) {
    if (fork() == 0) {
        sit();
    }
    if (fork() == 0) {
        setsid();
        sit();
    }
    pid_t between = fork();
    if (between == 0) {
        setsid();
        if (fork() == 0) {
            setsid();
            sit();
        }
        _exit(0);
    }
    waitpid(between, NULL, 0);
    sit();
}

static _Noreturn void be_stubborn(void) {
    ignore_all();
    be_a_crowd();
}

/* Every millisecond another process, each in its own session; from one without a parent. */
static _Noreturn void be_a_bomb(void) {
    if (fork() != 0) {
        _exit(0);
    }
    setsid();
    ignore_all();
    for (int i = 0; i < 2000; i++) {
        if (fork() == 0) {
            setsid();
            sit();
        }
        usleep(1000);
    }
    sit();
}

/* Is every half millisecond another process, which has lost its parent, and leaves a mark. */
static _Noreturn void run_away(void) {
    for (int i = 0; i < 20000; i++) {
        if (fork() != 0) {
            _exit(0);
        }
        setsid();
        (void)!write(STDOUT_FILENO, ".", 1);
        usleep(500);
    }
    sit();
}

/* 32 and 33: the C library has them for itself, and lets nobody change what is done about them. */
#define LIBRARY_SIGNALS 0x180000000LL

/* Prints its open descriptors, and what it was given as signals, session and group. */
static void list_surroundings(void) {
    for (int fd = 0; fd < 1024; fd++) {
        if (fcntl(fd, F_GETFD) >= 0) {
            printf("fd%d ", fd);
        }
    }
    char line[256];
    FILE *file = fopen("/proc/self/status", "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, "SigIgn", 6) == 0 || strncmp(line, "SigBlk", 6) == 0) {
            printf("%.6s=%lld ", line, strtoll(line + 7, NULL, 16) & ~LIBRARY_SIGNALS);
        }
    }
    printf("session=%d group=%d\n", getsid(0) == getpid(), getpgrp() == getpid());
}

static int play(const char *what) {
    if (strcmp(what, "crowd") == 0) {
        be_a_crowd();
    } else if (strcmp(what, "stubborn") == 0) {
        be_stubborn();
    } else if (strcmp(what, "bomb") == 0) {
        be_a_bomb();
    } else if (strcmp(what, "runner") == 0) {
        run_away();
    } else if (strcmp(what, "list") == 0) {
        list_surroundings();
    }
    return 0;
}

/* ---- Guardians and commands ---- */

typedef struct fixture {
    stk_guardian *guardian;
    int out; /* a file that commands write to */
    char text[4096];
} fixture;

static bool begin(fixture *f) {
    stk_error err = {0};
    char path[300];
    *f = (fixture){0};
    snprintf(path, sizeof path, "%s/out", check_folder());
    f->out = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    const stk_guardian_config config = {.in = -1, .out = f->out, .err = f->out};
    if (stk_guardian_start(&f->guardian, &config, &err) != STK_OK) {
        CHECK_FAIL("no guardian: %s", err.message);
        return false;
    }
    return true;
}

static const char *output(fixture *f) {
    ssize_t length = pread(f->out, f->text, sizeof f->text - 1, 0);
    f->text[length > 0 ? length : 0] = '\0';
    return f->text;
}

static void end(fixture *f) {
    stk_guardian_stop(f->guardian, 3);
    close(f->out);
}

static bool run(fixture *f, char *const *argv) {
    stk_error err = {0};
    pid_t pid = 0;
    int code = -1;
    if (stk_guardian_launch(f->guardian, argv, environ, &pid, &code, &err) != STK_OK) {
        CHECK_FAIL("%s does not start: %s", argv[0], err.message);
        return false;
    }
    CHECK(pid > 0);
    CHECK_INT(code, 0);
    return true;
}

static bool run_self(fixture *f, char *what) {
    char program[] = "/proc/self/exe";
    char option[] = "--play";
    char *const argv[] = {program, option, what, NULL};
    return run(f, argv);
}

static bool run_line(fixture *f, char *line) {
    char program[] = "sh";
    char option[] = "-c";
    char *const argv[] = {program, option, line, NULL};
    return run(f, argv);
}

/* Waits as a supervisor does. */
static stk_guardian_report wait_for_news(fixture *f, stk_command_exit *ended) {
    int64_t start = stk_clock_ns();
    stk_guardian_report news = STK_GUARDIAN_NOTHING;
    while (news == STK_GUARDIAN_NOTHING && stk_clock_since_s(start) < PATIENCE_S) {
        struct pollfd waiting = {.fd = stk_guardian_fd(f->guardian), .events = POLLIN};
        poll(&waiting, 1, 100);
        news = stk_guardian_poll(f->guardian, ended);
    }
    return news;
}

static void wait_for_alive(fixture *f, size_t count) {
    int64_t start = stk_clock_ns();
    size_t alive = 0;
    while (alive < count && stk_clock_since_s(start) < PATIENCE_S) {
        usleep(5000);
        alive = stk_guardian_alive(f->guardian);
    }
    CHECK(alive >= count);
}

static bool is_alive(const stk_proc *proc) {
    uint64_t born = 0;
    return stk_process_born(proc->pid, &born) && born == proc->born;
}

/* Waits until none of a tree lives, its root included; false: one does. */
static bool all_gone(const stk_proc_tree *tree) {
    int64_t start = stk_clock_ns();
    bool any = true;
    while (any && stk_clock_since_s(start) < PATIENCE_S) {
        any = false;
        for (size_t i = 0; i < tree->count; i++) {
            any = any || is_alive(&tree->items[i]);
        }
        usleep(any ? 5000 : 0);
    }
    return !any;
}

/* Waits for a crowd below a guardian, and remembers it. */
static void remember(stk_proc_tree *tree, pid_t guardian) {
    int64_t start = stk_clock_ns();
    size_t handed = 0;
    while ((tree->count != 1 + CROWD_COUNT || handed != 2) &&
           stk_clock_since_s(start) < PATIENCE_S) {
        CHECK(stk_proc_tree_read(tree, guardian));
        handed = 0;
        for (size_t i = 0; i < tree->count; i++) {
            handed += tree->items[i].depth == 1;
        }
        usleep(2000);
    }
    CHECK_INT(tree->count, 1 + CROWD_COUNT);
    CHECK_INT(handed, 2); /* the command, and the one that has lost its parent */
}

/* One that has nothing to do with the guardian, though it looks the same. */
static pid_t start_outsider(bool own_session) {
    pid_t pid = fork();
    if (pid == 0) {
        if (own_session) {
            setsid();
        }
        sit();
    }
    return pid;
}

static void check_outsider(pid_t pid) {
    CHECK_INT(waitpid(pid, NULL, WNOHANG), 0);
    stk_proc proc;
    /* Nor was it stopped; on a busy machine it may not have begun to wait yet. */
    CHECK(stk_proc_read(&proc, pid) && proc.state != 'T');
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

/* ---- Tests ---- */

static void ends_are_told_truthfully(void) {
    fixture f;
    stk_command_exit ended = {.code = 99, .signal = 99};
    if (!begin(&f)) {
        return;
    }
    CHECK(stk_guardian_poll(f.guardian, &ended) == STK_GUARDIAN_NOTHING);
    char seven[] = "echo one; exit 7";
    CHECK(run_line(&f, seven));
    CHECK_INT(wait_for_news(&f, &ended), STK_GUARDIAN_ENDED);
    CHECK_INT(ended.code, 7);
    CHECK_INT(ended.signal, 0);
    CHECK(stk_guardian_poll(f.guardian, &ended) == STK_GUARDIAN_NOTHING); /* told once */
    char killed[] = "echo two; kill -9 $$";
    CHECK(run_line(&f, killed));
    CHECK_INT(wait_for_news(&f, &ended), STK_GUARDIAN_ENDED);
    CHECK_INT(ended.code, -1);
    CHECK_INT(ended.signal, SIGKILL);
    char well[] = "echo three >&2";
    CHECK(run_line(&f, well));
    CHECK_INT(wait_for_news(&f, &ended), STK_GUARDIAN_ENDED);
    CHECK_INT(ended.code, 0);
    CHECK_STR(output(&f), "one\ntwo\nthree\n");
    CHECK_INT(stk_guardian_alive(f.guardian), 0);
    end(&f);
}

/* The end of a command that nobody asked about is not taken for the end of the next one. */
static void an_earlier_end_is_not_a_later_one(void) {
    fixture f;
    stk_command_exit ended = {0};
    if (!begin(&f)) {
        return;
    }
    char first[] = "exit 3";
    CHECK(run_line(&f, first));
    struct pollfd waiting = {.fd = stk_guardian_fd(f.guardian), .events = POLLIN};
    CHECK_INT(poll(&waiting, 1, PATIENCE_S * 1000), 1);
    char program[] = "sleep"; /* not a shell, which takes a signal for itself while it begins */
    char seconds[] = "60";
    char *const second[] = {program, seconds, NULL};
    CHECK(run(&f, second));
    CHECK_INT(stk_guardian_poll(f.guardian, &ended), STK_GUARDIAN_NOTHING);
    stk_guardian_signal(f.guardian, SIGINT, STK_GUARDIAN_ALL);
    CHECK_INT(wait_for_news(&f, &ended), STK_GUARDIAN_ENDED);
    CHECK_INT(ended.signal, SIGINT);
    end(&f);
}

static void check_refused(fixture *f, char *program, int code, const char *why) {
    stk_error err = {0};
    char *const argv[] = {program, NULL};
    pid_t pid = -1;
    int said = -1;
    stk_command_exit ended = {0};
    CHECK_INT(stk_guardian_launch(f->guardian, argv, environ, &pid, &said, &err), STK_ERR_USAGE);
    CHECK_INT(said, code);
    CHECK_CONTAINS(err.message, program);
    CHECK_CONTAINS(err.message, why);
    CHECK_INT(stk_guardian_poll(f->guardian, &ended), STK_GUARDIAN_NOTHING);
    CHECK_INT(stk_guardian_alive(f->guardian), 0);
}

static void what_cannot_run_is_refused_with_a_reason(void) {
    fixture f;
    if (!begin(&f)) {
        return;
    }
    char folder[256];
    snprintf(folder, sizeof folder, "%s", check_folder());
    char script[300];
    snprintf(script, sizeof script, "%s/script", folder);
    FILE *file = fopen(script, "we");
    REQUIRE(file != NULL);
    fputs("#!/no/such/interpreter\n", file);
    fclose(file);
    char missing[] = "pythn-of-nobody";
    char nowhere[] = "/nowhere/at/all";
    check_refused(&f, missing, 127, "is it installed and on the PATH?");
    check_refused(&f, nowhere, 127, "is the path right?");
    check_refused(&f, folder, 126, "it is a folder");
    check_refused(&f, script, 126, "chmod +x");
    CHECK_INT(chmod(script, 0755), 0);
    check_refused(&f, script, 126, "interpreter");
    char well[] = "echo still here";
    stk_command_exit ended = {0};
    CHECK(run_line(&f, well));
    CHECK_INT(wait_for_news(&f, &ended), STK_GUARDIAN_ENDED);
    CHECK_STR(output(&f), "still here\n");
    end(&f);
}

/* Programs are found by the PATH that the command gets, which may be long like all the rest. */
static void surroundings_are_those_that_were_given(void) {
    fixture f;
    stk_error err = {0};
    stk_command_exit ended = {0};
    if (!begin(&f)) {
        return;
    }
    enum { COUNT = 16, EACH = 64 << 10 };
    char *envp[COUNT + 2] = {NULL};
    for (int i = 0; i < COUNT; i++) {
        envp[i] = stk_mem_new(EACH, 1);
        REQUIRE(envp[i] != NULL);
        memset(envp[i], 'x', EACH - 1);
        int length = snprintf(envp[i], 16, "BIG%d", i);
        envp[i][length] = '=';
    }
    char path[] = "PATH=/usr/bin:/bin";
    envp[COUNT] = path;
    char program[] = "env";
    char line[] = "/usr/bin/env | wc -c";
    char option[] = "-c";
    char shell[] = "sh";
    char *const by_shell[] = {shell, option, line, NULL};
    pid_t pid = 0;
    int code = 0;
    CHECK_INT(stk_guardian_launch(f.guardian, by_shell, envp, &pid, &code, &err), STK_OK);
    CHECK_INT(wait_for_news(&f, &ended), STK_GUARDIAN_ENDED);
    CHECK(strtol(output(&f), NULL, 10) > COUNT * (EACH - 100));
    char elsewhere[] = "PATH=/nowhere";
    char *const other[] = {elsewhere, NULL};
    char *const argv[] = {program, NULL};
    CHECK_INT(stk_guardian_launch(f.guardian, argv, other, &pid, &code, &err), STK_ERR_USAGE);
    CHECK_INT(code, 127);
    for (int i = 0; i < COUNT; i++) {
        stk_mem_free(envp[i]);
    }
    end(&f);
}

static void a_command_inherits_nothing_of_ours(void) {
    fixture f;
    stk_command_exit ended = {0};
    int open_here = dup(1); /* without CLOEXEC */
    signal(SIGUSR2, SIG_IGN);
    bool begun = begin(&f);
    signal(SIGUSR2, SIG_DFL);
    if (!begun) {
        return;
    }
    char list[] = "list";
    CHECK(run_self(&f, list));
    CHECK_INT(wait_for_news(&f, &ended), STK_GUARDIAN_ENDED);
    CHECK_STR(output(&f), "fd0 fd1 fd2 SigBlk=0 SigIgn=0 session=1 group=1\n");
    close(open_here);
    end(&f);
}

/* Whoever waits for the end of a pipe of ours must not wait for the guardian. */
static void the_guardian_holds_nothing_of_ours(void) {
    fixture f;
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    if (!begin(&f)) {
        return;
    }
    close(ends[1]);
    struct pollfd waiting = {.fd = ends[0], .events = POLLIN};
    CHECK_INT(poll(&waiting, 1, PATIENCE_S * 1000), 1);
    CHECK((waiting.revents & POLLHUP) != 0);
    close(ends[0]);
    end(&f);
}

static void a_signal_reaches_the_whole_tree(void) {
    fixture f;
    stk_command_exit ended = {0};
    if (!begin(&f)) {
        return;
    }
    stk_proc_tree tree = {0};
    char crowd[] = "crowd";
    CHECK(run_self(&f, crowd));
    remember(&tree, stk_guardian_pid(f.guardian));
    stk_proc_tree_free(&tree);
    pid_t outsider = start_outsider(false);
    stk_guardian_signal(f.guardian, SIGTERM, STK_GUARDIAN_ALL);
    CHECK_INT(wait_for_news(&f, &ended), STK_GUARDIAN_ENDED);
    CHECK_INT(ended.signal, SIGTERM);
    int64_t start = stk_clock_ns();
    while (stk_guardian_alive(f.guardian) > 0 && stk_clock_since_s(start) < PATIENCE_S) {
        usleep(5000);
    }
    CHECK_INT(stk_guardian_alive(f.guardian), 0);
    check_outsider(outsider);
    end(&f);
}

/* So that it can end in order, and what it started with it. */
static void a_signal_can_be_for_the_first_process_alone(void) {
    fixture f;
    stk_command_exit ended = {0};
    if (!begin(&f)) {
        return;
    }
    char line[] = "trap 'exit 9' TERM; echo ready; while :; do sleep 0.02; done";
    CHECK(run_line(&f, line));
    int64_t start = stk_clock_ns();
    while (strcmp(output(&f), "ready\n") != 0 && stk_clock_since_s(start) < PATIENCE_S) {
        usleep(5000);
    }
    stk_guardian_signal(f.guardian, SIGTERM, STK_GUARDIAN_FIRST);
    start = stk_clock_ns();
    while (stk_guardian_alive(f.guardian) > 0 && stk_clock_since_s(start) < PATIENCE_S) {
    }
    CHECK_INT(stk_guardian_poll(f.guardian, &ended), STK_GUARDIAN_ENDED);
    CHECK_INT(ended.code, 9);
    stk_guardian_signal(f.guardian, SIGTERM, STK_GUARDIAN_FIRST); /* there is none */
    stk_proc_tree tree = {0};
    char crowd[] = "crowd";
    CHECK(run_self(&f, crowd));
    remember(&tree, stk_guardian_pid(f.guardian));
    stk_guardian_signal(f.guardian, SIGTERM, STK_GUARDIAN_FIRST);
    CHECK_INT(wait_for_news(&f, &ended), STK_GUARDIAN_ENDED);
    CHECK_INT(ended.signal, SIGTERM);
    stk_guardian_signal(f.guardian, SIGTERM,
                        STK_GUARDIAN_FIRST); /* it has ended: nobody else is meant */
    usleep(50000);
    CHECK_INT(stk_guardian_alive(f.guardian), CROWD_COUNT - 1);
    stk_proc_tree_free(&tree);
    end(&f);
}

static void who_hides_is_killed_and_nobody_else(void) {
    fixture f;
    stk_command_exit ended = {0};
    stk_proc_tree tree = {0};
    pid_t in_session = start_outsider(true);
    if (!begin(&f)) {
        return;
    }
    pid_t in_group = start_outsider(false);
    char stubborn[] = "stubborn";
    CHECK(run_self(&f, stubborn));
    remember(&tree, stk_guardian_pid(f.guardian));
    stk_guardian_signal(f.guardian, SIGTERM, STK_GUARDIAN_ALL);
    CHECK_INT(stk_guardian_alive(f.guardian), CROWD_COUNT);
    CHECK_INT(stk_guardian_kill(f.guardian, PATIENCE_S), 0);
    CHECK_INT(stk_guardian_poll(f.guardian, &ended), STK_GUARDIAN_ENDED);
    CHECK_INT(ended.signal, SIGKILL);
    CHECK_INT(stk_guardian_alive(f.guardian), 0);
    CHECK(is_alive(&tree.items[0])); /* the guardian, for the next one */
    char well[] = "exit 5";
    CHECK(run_line(&f, well));
    CHECK_INT(wait_for_news(&f, &ended), STK_GUARDIAN_ENDED);
    CHECK_INT(ended.code, 5);
    end(&f);
    CHECK(all_gone(&tree));
    check_outsider(in_session);
    check_outsider(in_group);
    stk_proc_tree_free(&tree);
}

static void who_forks_on_and_on_is_ended(void) {
    fixture f;
    if (!begin(&f)) {
        return;
    }
    char bomb[] = "bomb";
    CHECK(run_self(&f, bomb));
    wait_for_alive(&f, 30);
    CHECK_INT(stk_guardian_kill(f.guardian, PATIENCE_S), 0);
    usleep(50000);
    CHECK_INT(stk_guardian_alive(f.guardian), 0);
    end(&f);
}

static void who_runs_away_is_caught(void) {
    fixture f;
    stk_command_exit ended = {0};
    if (access("/proc/thread-self/children", R_OK) != 0) {
        CHECK_SKIP("this kernel does not list children");
    }
    if (!begin(&f)) {
        return;
    }
    char runner[] = "runner";
    CHECK(run_self(&f, runner));
    CHECK_INT(wait_for_news(&f, &ended), STK_GUARDIAN_ENDED);
    int64_t start = stk_clock_ns();
    while (lseek(f.out, 0, SEEK_END) < 20 && stk_clock_since_s(start) < PATIENCE_S) {
        usleep(1000);
    }
    CHECK(stk_guardian_alive(f.guardian) > 0);
    CHECK_INT(stk_guardian_kill(f.guardian, PATIENCE_S), 0);
    off_t marks = lseek(f.out, 0, SEEK_END);
    CHECK(marks >= 20);
    usleep(100000);
    CHECK_INT(lseek(f.out, 0, SEEK_END), marks);
    end(&f);
}

static void stopping_ends_all(void) {
    fixture f;
    stk_proc_tree tree = {0};
    if (!begin(&f)) {
        return;
    }
    char stubborn[] = "stubborn";
    CHECK(run_self(&f, stubborn));
    remember(&tree, stk_guardian_pid(f.guardian));
    end(&f);
    CHECK(all_gone(&tree));
    CHECK_INT(waitpid(tree.items[0].pid, NULL, WNOHANG), -1); /* it was waited for */
    stk_proc_tree_free(&tree);
    stk_guardian_stop(NULL, 3);
}

/* A maker in a process of its own, whose number and guardian are told. */
static pid_t start_maker(pid_t *guardian, const char *const paths[3]) {
    int ends[2];
    if (pipe(ends) != 0) {
        return -1;
    }
    pid_t maker = fork();
    if (maker == 0) {
        fixture f;
        stk_error err = {0};
        char stubborn[] = "stubborn";
        if (!begin(&f) || !run_self(&f, stubborn) ||
            (paths != NULL &&
             stk_guardian_on_orphaned(f.guardian, paths[0], paths[1], paths[2], &err) != STK_OK)) {
            _exit(1);
        }
        pid_t pid = stk_guardian_pid(f.guardian);
        (void)!write(ends[1], &pid, sizeof pid);
        sit();
    }
    close(ends[1]);
    if (read(ends[0], guardian, sizeof *guardian) != sizeof *guardian) {
        *guardian = -1;
    }
    close(ends[0]);
    return maker;
}

static void check_maker_killed(const char *const paths[3]) {
    stk_proc_tree tree = {0};
    pid_t guardian = -1;
    pid_t maker = start_maker(&guardian, paths);
    REQUIRE(maker > 0 && guardian > 0);
    remember(&tree, guardian);
    pid_t outsider = start_outsider(false);
    kill(maker, SIGKILL);
    waitpid(maker, NULL, 0);
    CHECK(all_gone(&tree));
    check_outsider(outsider);
    waitpid(guardian, NULL, 0); /* where it was handed to us */
    stk_proc_tree_free(&tree);
}

static void a_maker_that_is_killed_leaves_nobody(void) {
    check_maker_killed(NULL);
}

static void put(const char *path, const char *text) {
    FILE *file = fopen(path, "we");
    REQUIRE(file != NULL);
    fputs(text, file);
    fclose(file);
}

static void check_put_back(const char *now, const char *expected, bool ordered) {
    char folder[256];
    char path[3][300];
    const char *const names[] = {"config.yaml", "changed", "original"};
    const char *paths[3];
    snprintf(folder, sizeof folder, "%s", check_folder());
    for (int i = 0; i < 3; i++) {
        snprintf(path[i], sizeof path[i], "%s/%s", folder, names[i]);
        paths[i] = path[i];
    }
    char target[320];
    snprintf(target, sizeof target, "%s/behind-a-link", folder);
    put(target, now);
    CHECK_INT(symlink("behind-a-link", paths[0]), 0);
    put(paths[1], "batch: 64\n");
    put(paths[2], "batch: 32\n");
    CHECK_INT(chmod(paths[0], 0640), 0);
    check_maker_killed(ordered ? paths : NULL);
    char text[100] = "";
    FILE *file = fopen(paths[0], "re");
    REQUIRE(file != NULL);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    CHECK_STR(text, expected);
    struct stat info;
    CHECK(stat(target, &info) == 0 && (info.st_mode & 0777) == 0640);
    CHECK(lstat(paths[0], &info) == 0 && S_ISLNK(info.st_mode));
}

static void a_maker_that_is_killed_leaves_no_changed_file(void) {
    check_put_back("batch: 64\n", "batch: 32\n", true);
}

static void what_somebody_else_has_changed_stays(void) {
    check_put_back("batch: 48\n", "batch: 48\n", true);
}

static void without_an_order_files_stay(void) {
    check_put_back("batch: 64\n", "batch: 64\n", false);
}

/* Neither when it is taken back nor when the maker ends in order is anything put back. */
static void an_order_can_be_taken_back(void) {
    fixture f;
    stk_error err = {0};
    char path[300];
    char other[320];
    snprintf(path, sizeof path, "%s/config", check_folder());
    snprintf(other, sizeof other, "%s.original", path);
    put(path, "new");
    put(other, "old");
    if (!begin(&f)) {
        return;
    }
    CHECK_INT(stk_guardian_on_orphaned(f.guardian, path, path, other, &err), STK_OK);
    end(&f);
    struct stat info;
    CHECK(stat(path, &info) == 0 && info.st_size == 3);
    char text[4] = "";
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    CHECK_INT(read(fd, text, 3), 3);
    close(fd);
    CHECK_STR(text, "new");
    if (!begin(&f)) {
        return;
    }
    CHECK_INT(stk_guardian_on_orphaned(f.guardian, path, path, other, &err), STK_OK);
    CHECK_INT(stk_guardian_on_orphaned(f.guardian, NULL, NULL, NULL, &err), STK_OK);
    /* A socket that closes without a word is what a maker's death looks like. */
    pid_t guardian = stk_guardian_pid(f.guardian);
    CHECK_INT(shutdown(stk_guardian_fd(f.guardian), SHUT_WR), 0);
    CHECK_INT(waitpid(guardian, NULL, 0), guardian);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    CHECK_INT(read(fd, text, 3), 3);
    close(fd);
    CHECK_STR(text, "new");
    end(&f);
}

static void a_guardian_that_is_killed_leaves_nobody(void) {
    fixture f;
    stk_error err = {0};
    stk_command_exit ended = {0};
    stk_proc_tree tree = {0};
    pid_t before = start_outsider(true);
    if (!begin(&f)) {
        return;
    }
    char stubborn[] = "stubborn";
    CHECK(run_self(&f, stubborn));
    remember(&tree, stk_guardian_pid(f.guardian));
    pid_t after = start_outsider(false);
    kill(stk_guardian_pid(f.guardian), SIGKILL);
    CHECK_INT(wait_for_news(&f, &ended), STK_GUARDIAN_LOST);
    CHECK(stk_guardian_alive(f.guardian) > 0);
    pid_t pid = 0;
    int code = 0;
    char program[] = "true";
    char *const argv[] = {program, NULL};
    CHECK_INT(stk_guardian_launch(f.guardian, argv, environ, &pid, &code, &err), STK_ERR_DEVICE);
    CHECK_CONTAINS(err.message, "guards");
    stk_error_clear(&err);
    CHECK_INT(stk_guardian_on_orphaned(f.guardian, NULL, NULL, NULL, &err), STK_ERR_DEVICE);
    CHECK_INT(stk_guardian_poll(f.guardian, &ended), STK_GUARDIAN_LOST);
    end(&f);
    CHECK(all_gone(&tree));
    check_outsider(before);
    check_outsider(after);
    stk_proc_tree_free(&tree);
}

/* Its maker, this process, does nothing about it. */
static void a_guardian_does_not_wait_for_a_late_maker(void) {
    char program[] = "sleep";
    char seconds[] = "600";
    char *sleeper[] = {program, seconds, NULL};
    stk_error err = {0};
    stk_guardian *guardian = NULL;
    pid_t pid = 0;
    int code = 0;
    const stk_guardian_config config = {
        .in = -1, .out = -1, .err = -1, .until_ns = stk_clock_ns() + 1000000000};
    CHECK_INT(stk_guardian_start(&guardian, &config, &err), STK_OK);
    CHECK_INT(stk_guardian_launch(guardian, sleeper, environ, &pid, &code, &err), STK_OK);
    for (int i = 0; i < 3000 && kill(pid, 0) == 0; i++) {
        usleep(10000);
    }
    CHECK(kill(pid, 0) != 0);
    stk_command_exit ended; /* at once: the guardian is waited for, which is just ending */
    CHECK_INT(stk_guardian_poll(guardian, &ended), STK_GUARDIAN_LOST);
    stk_guardian_stop(guardian, 3);
}

/* Two guardians of one process do not know each other. */
static void another_guardian_is_left_alone(void) {
    fixture lost;
    fixture other;
    stk_command_exit ended = {0};
    if (!begin(&lost)) {
        return;
    }
    if (!begin(&other)) {
        end(&lost);
        return;
    }
    char line[] = "exec sleep 100";
    CHECK(run_line(&lost, line));
    CHECK(run_line(&other, line));
    kill(stk_guardian_pid(lost.guardian), SIGKILL);
    CHECK_INT(wait_for_news(&lost, &ended), STK_GUARDIAN_LOST);
    end(&lost);
    CHECK_INT(stk_guardian_alive(other.guardian), 1);
    CHECK_INT(stk_guardian_poll(other.guardian, &ended), STK_GUARDIAN_NOTHING);
    end(&other);
}

/* One that somebody has stopped is set going again. */
static void a_guardian_that_was_stopped_goes_on(void) {
    fixture f;
    stk_command_exit ended = {0};
    if (!begin(&f)) {
        return;
    }
    kill(stk_guardian_pid(f.guardian), SIGSTOP);
    char line[] = "exit 4";
    CHECK(run_line(&f, line));
    CHECK_INT(wait_for_news(&f, &ended), STK_GUARDIAN_ENDED);
    CHECK_INT(ended.code, 4);
    kill(stk_guardian_pid(f.guardian), SIGSTOP);
    char stubborn[] = "stubborn";
    CHECK(run_self(&f, stubborn));
    wait_for_alive(&f, CROWD_COUNT);
    kill(stk_guardian_pid(f.guardian), SIGSTOP);
    CHECK_INT(stk_guardian_kill(f.guardian, PATIENCE_S), 0);
    kill(stk_guardian_pid(f.guardian), SIGSTOP);
    end(&f);
}

/* Signals for the group of the maker, such as those of a terminal, do not end the guardian. */
static void signals_do_not_end_the_guardian(void) {
    fixture f;
    stk_command_exit ended = {0};
    if (!begin(&f)) {
        return;
    }
    char first[] = "exit 0"; /* when it has ended the guardian is ready for signals */
    CHECK(run_line(&f, first));
    CHECK_INT(wait_for_news(&f, &ended), STK_GUARDIAN_ENDED);
    const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGQUIT, SIGUSR1, SIGUSR2, SIGCHLD};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        CHECK_INT(kill(stk_guardian_pid(f.guardian), numbers[i]), 0);
    }
    char line[] = "exit 6";
    CHECK(run_line(&f, line));
    CHECK_INT(wait_for_news(&f, &ended), STK_GUARDIAN_ENDED);
    CHECK_INT(ended.code, 6);
    stk_proc proc;
    CHECK(stk_proc_read(&proc, stk_guardian_pid(f.guardian)));
    CHECK_STR(proc.name, "command-guard");
    end(&f);
}

/* Who kills all processes that have the maker's name or words kills the maker, not the guardian. */
static void the_guardian_has_another_name_than_its_maker(void) {
    fixture f;
    stk_command_exit ended = {0};
    if (!begin(&f)) {
        return;
    }
    char first[] = "tr '\\0' ' ' </proc/$PPID/cmdline";
    CHECK(run_line(&f, first));
    CHECK_INT(wait_for_news(&f, &ended), STK_GUARDIAN_ENDED);
    CHECK_CONTAINS(output(&f), "command-guard ");
    CHECK(strstr(output(&f), "supervise") == NULL);
    FILE *own = fopen("/proc/self/cmdline", "re"); /* which stays */
    REQUIRE(own != NULL);
    char words[1000];
    words[fread(words, 1, sizeof words - 1, own)] = '\0';
    fclose(own);
    CHECK_CONTAINS(words, "supervise");
    end(&f);
}

static bool tells_children(void) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    return access(path, R_OK) == 0;
}

static void without_memory_all_are_ended(void) {
    fixture f;
    stk_proc_tree tree = {0};
    if (!tells_children()) {
        CHECK_SKIP("the kernel does not tell of children");
        return;
    }
    if (!begin(&f)) {
        return;
    }
    char stubborn[] = "stubborn";
    CHECK(run_self(&f, stubborn));
    remember(&tree, stk_guardian_pid(f.guardian));
    stk_mem_fail_after(0);
    size_t alive = stk_guardian_alive(f.guardian);
    size_t left = stk_guardian_kill(f.guardian, PATIENCE_S);
    stk_mem_fail_after(-1);
    CHECK_INT(alive, 1); /* how many there are takes a list */
    CHECK_INT(left, 0);
    CHECK_INT(stk_guardian_alive(f.guardian), 0);
    end(&f);
    CHECK(all_gone(&tree));
    stk_proc_tree_free(&tree);
}

static void lack_of_memory_is_told(void) {
    stk_error err = {0};
    stk_guardian *guardian = NULL;
    const stk_guardian_config config = {.in = -1, .out = -1, .err = -1};
    stk_mem_fail_after(0);
    CHECK_INT(stk_guardian_start(&guardian, &config, &err), STK_ERR_MEMORY);
    stk_mem_fail_after(-1);
    CHECK(guardian == NULL);
    fixture f;
    if (!begin(&f)) {
        return;
    }
    char program[] = "true";
    char *const argv[] = {program, NULL};
    pid_t pid = 0;
    int code = 0;
    stk_error second = {0};
    stk_mem_fail_after(0);
    CHECK_INT(stk_guardian_launch(f.guardian, argv, environ, &pid, &code, &second), STK_ERR_MEMORY);
    /* Where the kernel does not tell of children nobody knows that there are none. */
    CHECK_INT(stk_guardian_alive(f.guardian), tells_children() ? 0 : 1);
    stk_mem_fail_after(-1);
    CHECK_INT(stk_guardian_alive(f.guardian), 0);
    stk_command_exit ended = {0};
    CHECK(run(&f, argv));
    CHECK_INT(wait_for_news(&f, &ended), STK_GUARDIAN_ENDED);
    end(&f);
}

static const check_test tests[] = {
    TEST(ends_are_told_truthfully),
    TEST(an_earlier_end_is_not_a_later_one),
    TEST(what_cannot_run_is_refused_with_a_reason),
    TEST(surroundings_are_those_that_were_given),
    TEST(a_command_inherits_nothing_of_ours),
    TEST(the_guardian_holds_nothing_of_ours),
    TEST(a_signal_reaches_the_whole_tree),
    TEST(a_signal_can_be_for_the_first_process_alone),
    TEST(who_hides_is_killed_and_nobody_else),
    TEST(who_forks_on_and_on_is_ended),
    TEST(who_runs_away_is_caught),
    TEST(stopping_ends_all),
    TEST(a_maker_that_is_killed_leaves_nobody),
    TEST(a_maker_that_is_killed_leaves_no_changed_file),
    TEST(what_somebody_else_has_changed_stays),
    TEST(without_an_order_files_stay),
    TEST(an_order_can_be_taken_back),
    TEST(a_guardian_that_is_killed_leaves_nobody),
    TEST(a_guardian_does_not_wait_for_a_late_maker),
    TEST(another_guardian_is_left_alone),
    TEST(a_guardian_that_was_stopped_goes_on),
    TEST(signals_do_not_end_the_guardian),
    TEST(the_guardian_has_another_name_than_its_maker),
    TEST(lack_of_memory_is_told),
    TEST(without_memory_all_are_ended),
};

int main(int argc, char **argv) {
    if (argc == 3 && strcmp(argv[1], "--play") == 0) {
        return play(argv[2]);
    }
    return check_run(tests, sizeof tests / sizeof *tests, argc, argv);
}
