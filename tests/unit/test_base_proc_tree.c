/* test_base_proc_tree.c - who was started by whom. */
#include "check.h"

#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/threads/proc_tree.h"

/* A child that has a child, which has the name; returns when both are there. */
static pid_t start_two(const char *name) {
    int ends[2];
    char byte = 0;
    if (pipe(ends) != 0) {
        return -1;
    }
    pid_t child = fork();
    if (child == 0) {
        pid_t grandchild = fork();
        if (grandchild == 0) {
            prctl(PR_SET_NAME, name, 0, 0, 0);
            (void)!write(ends[1], &byte, 1);
        }
        alarm(120);
        for (;;) {
            pause();
        }
    }
    (void)!read(ends[0], &byte, 1);
    close(ends[0]);
    close(ends[1]);
    return child;
}

static void end_all(const stk_proc_tree *tree) {
    for (size_t i = 0; i < tree->count; i++) {
        kill(tree->items[i].pid, SIGKILL);
    }
    waitpid(tree->items[0].pid, NULL, 0);
}

static void children_stand_behind_their_parents(void) {
    stk_proc_tree tree = {0};
    pid_t child = start_two(") (odd) Z 1 (");
    REQUIRE(child > 0);
    CHECK(stk_proc_tree_read(&tree, getpid()));
    CHECK_INT(tree.count, 3);
    REQUIRE(tree.count == 3);
    CHECK_INT(tree.items[0].pid, getpid());
    CHECK_INT(tree.items[0].parent, getppid());
    CHECK_INT(tree.items[0].depth, 0);
    CHECK_INT(tree.items[1].pid, child);
    CHECK_INT(tree.items[1].parent, getpid());
    CHECK_INT(tree.items[1].depth, 1);
    CHECK_INT(tree.items[2].parent, child);
    CHECK_INT(tree.items[2].depth, 2);
    CHECK_STR(tree.items[2].name, ") (odd) Z 1 (");
    CHECK(tree.items[2].born >= tree.items[0].born);
    CHECK(tree.items[0].resident > 0);
    CHECK(stk_proc_tree_find(&tree, child) == &tree.items[1]);
    CHECK(stk_proc_tree_find(&tree, getppid()) == NULL);
    /* Its memory is used again, and the root may be any of them. */
    stk_proc_tree again = tree;
    CHECK(stk_proc_tree_read(&again, child));
    CHECK_INT(again.count, 2);
    CHECK(again.items[0].pid == child && again.items[0].depth == 0);
    tree = again;
    end_all(&tree);
    stk_proc_tree_free(&tree);
    CHECK(tree.items == NULL && tree.count == 0);
}

static void time_on_the_cores_is_counted(void) {
    stk_proc before;
    stk_proc after;
    REQUIRE(stk_proc_read(&before, getpid()));
    int64_t start = stk_clock_ns();
    do {
        REQUIRE(stk_proc_read(&after, getpid()));
    } while (after.cpu_s < before.cpu_s + 0.05 && stk_clock_since_s(start) < 60);
    CHECK(after.cpu_s >= before.cpu_s + 0.05);
    CHECK_INT(after.depth, 0);
    pid_t child = fork();
    if (child == 0) {
        do {
            stk_proc_read(&after, getpid());
        } while (after.cpu_s < 0.05);
        _exit(0);
    }
    CHECK(stk_proc_read(&before, getpid()));
    waitpid(child, NULL, 0);
    CHECK(stk_proc_read(&after, getpid()));
    CHECK(after.ended_s >= before.ended_s + 0.04);
}

static void ended_ones_are_seen_until_they_are_waited_for(void) {
    stk_proc_tree tree = {0};
    pid_t child = fork();
    if (child == 0) {
        _exit(0);
    }
    siginfo_t info;
    CHECK(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT) == 0);
    CHECK(stk_proc_tree_read(&tree, getpid()));
    const stk_proc *found = stk_proc_tree_find(&tree, child);
    CHECK(found != NULL && found->state == 'Z' && stk_proc_is_dead(found));
    CHECK(!stk_proc_is_dead(&tree.items[0]));
    waitpid(child, NULL, 0);
    CHECK(stk_proc_tree_read(&tree, getpid()));
    CHECK(stk_proc_tree_find(&tree, child) == NULL);
    stk_proc_tree_free(&tree);
}

static void *sit(void *user) {
    (void)user;
    for (;;) {
        pause();
    }
    return NULL;
}

/* The kernel shows such a process as ended. */
static void a_first_thread_that_ended_is_not_the_process(void) {
    pid_t child = fork();
    if (child == 0) {
        pthread_t thread;
        alarm(120);
        if (pthread_create(&thread, NULL, sit, NULL) != 0) {
            _exit(1);
        }
        pthread_exit(NULL);
    }
    char path[64];
    char text[4096] = "";
    snprintf(path, sizeof path, "/proc/%d/status", (int)child);
    for (int tries = 0; tries < 2000 && strstr(text, "Z (zombie)") == NULL; tries++) {
        usleep(5000);
        FILE *file = fopen(path, "re");
        REQUIRE(file != NULL);
        text[fread(text, 1, sizeof text - 1, file)] = '\0';
        fclose(file);
    }
    CHECK_CONTAINS(text, "Z (zombie)");
    stk_proc proc;
    CHECK(stk_proc_read(&proc, child));
    CHECK(!stk_proc_is_dead(&proc));
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

static void numbers_that_nobody_has(void) {
    stk_proc proc;
    stk_proc_tree tree = {0};
    const pid_t none[] = {0, -1, 0x7fffffff};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        CHECK(!stk_proc_read(&proc, none[i]));
        CHECK(!stk_proc_tree_read(&tree, none[i]));
        CHECK_INT(tree.count, 0);
    }
    stk_proc_tree_free(&tree);
}

static void without_memory_the_tree_is_empty(void) {
    stk_proc_tree tree = {0};
    stk_mem_fail_after(0);
    CHECK(!stk_proc_tree_read(&tree, getpid()));
    stk_mem_fail_after(-1);
    CHECK_INT(tree.count, 0);
    CHECK(stk_proc_tree_read(&tree, getpid()));
    stk_proc_tree_free(&tree);
}

static const check_test tests[] = {
    TEST(children_stand_behind_their_parents),
    TEST(time_on_the_cores_is_counted),
    TEST(ended_ones_are_seen_until_they_are_waited_for),
    TEST(a_first_thread_that_ended_is_not_the_process),
    TEST(numbers_that_nobody_has),
    TEST(without_memory_the_tree_is_empty),
};

CHECK_MAIN(tests)
