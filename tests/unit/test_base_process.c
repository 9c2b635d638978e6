/* test_base_process.c - a process is known by its number and its beginning. */
#include "check.h"

#include <signal.h>
#include <sys/wait.h>

#include "base/threads/process.h"

static void a_beginning_stays(void) {
    uint64_t first = 0;
    uint64_t second = 0;
    if (!stk_process_born(getpid(), &first)) {
        CHECK_SKIP("this system does not tell");
    }
    usleep(20000);
    CHECK(stk_process_born(getpid(), &second));
    CHECK(first == second);
}

/* One that has ended is gone, also while its parent has not asked for its end. */
static void what_has_ended_is_gone(void) {
    uint64_t own = 0;
    uint64_t born = 0;
    if (!stk_process_born(getpid(), &own)) {
        CHECK_SKIP("this system does not tell");
    }
    pid_t child = fork();
    if (child == 0) {
        pause();
        _exit(0);
    }
    CHECK(stk_process_born(child, &born));
    CHECK(born >= own);
    kill(child, SIGKILL);
    siginfo_t info;
    CHECK(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT) == 0);
    CHECK(!stk_process_born(child, &born));
    waitpid(child, NULL, 0);
    CHECK(!stk_process_born(child, &born));
}

static void numbers_that_nobody_has(void) {
    uint64_t born = 0;
    CHECK(!stk_process_born(-1, &born));
    CHECK(!stk_process_born(0x7fffffff, &born));
}

static const check_test tests[] = {
    TEST(a_beginning_stays),
    TEST(what_has_ended_is_gone),
    TEST(numbers_that_nobody_has),
};

CHECK_MAIN(tests)
