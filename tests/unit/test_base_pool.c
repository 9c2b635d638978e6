/* test_base_pool.c - every task once, whatever the number of threads. */
#include "check.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/threads/pool.h"
#include "doors.h"

#define MAX_TASKS 1000
#define MAX_THREADS 8

typedef struct tally {
    atomic_int done[MAX_TASKS];     /* how often each task ran */
    atomic_int inside[MAX_THREADS]; /* tasks running with this thread's number */
    atomic_int faults;
    int threads;
    int plain[MAX_TASKS]; /* written without atomics: the end of a run must make it visible */
} tally;

static void count_task(void *context, size_t task, int thread) {
    tally *t = context;
    if (thread < 0 || thread >= t->threads || atomic_fetch_add(&t->inside[thread], 1) != 0) {
        atomic_fetch_add(&t->faults, 1);
        return;
    }
    atomic_fetch_add(&t->done[task], 1);
    t->plain[task]++;
    atomic_fetch_sub(&t->inside[thread], 1);
}

static void run_and_check(stk_pool *pool, tally *t, size_t tasks, int runs) {
    memset(t, 0, sizeof *t);
    t->threads = stk_pool_threads(pool);
    for (int i = 0; i < runs; i++) {
        stk_pool_run(pool, tasks, count_task, t);
    }
    CHECK_INT(atomic_load(&t->faults), 0);
    for (size_t i = 0; i < MAX_TASKS; i++) {
        int expected = i < tasks ? runs : 0;
        if (atomic_load(&t->done[i]) != expected || t->plain[i] != expected) {
            CHECK_FAIL("task %zu of %zu ran %d times, expected %d", i, tasks,
                       atomic_load(&t->done[i]), expected);
            return;
        }
    }
}

static void every_task_runs_once(void) {
    static tally t;
    static const size_t counts[] = {0, 1, 2, 3, 7, 64, MAX_TASKS};
    for (int threads = 1; threads <= MAX_THREADS; threads++) {
        stk_pool *pool = NULL;
        stk_error err = {0};
        REQUIRE_OK(stk_pool_new(&pool, threads, &err), &err);
        CHECK_INT(stk_pool_threads(pool), threads);
        for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
            run_and_check(pool, &t, counts[i], 1);
        }
        stk_pool_free(pool);
    }
}

static void many_short_runs(void) {
    static tally t;
    for (int threads = 2; threads <= 4; threads += 2) {
        stk_pool *pool = NULL;
        stk_error err = {0};
        REQUIRE_OK(stk_pool_new(&pool, threads, &err), &err);
        run_and_check(pool, &t, 3, 2000);
        stk_pool_free(pool);
    }
}

/* Threads that have gone to sleep must wake for the next run. */
static void runs_after_a_pause(void) {
    static tally t;
    stk_pool *pool = NULL;
    stk_error err = {0};
    REQUIRE_OK(stk_pool_new(&pool, 3, &err), &err);
    for (int i = 0; i < 5; i++) {
        usleep(5000);
        run_and_check(pool, &t, 50, 1);
    }
    usleep(5000);
    stk_pool_free(pool);
}

static void two_pools_do_not_mix(void) {
    static tally first;
    static tally second;
    stk_pool *a = NULL;
    stk_pool *b = NULL;
    stk_error err = {0};
    REQUIRE_OK(stk_pool_new(&a, 2, &err), &err);
    REQUIRE_OK(stk_pool_new(&b, 3, &err), &err);
    for (int i = 0; i < 20; i++) {
        run_and_check(a, &first, 10, 1);
        run_and_check(b, &second, 20, 1);
    }
    stk_pool_free(a);
    stk_pool_free(b);
    stk_pool_free(NULL);
}

static void pools_come_and_go(void) {
    for (int i = 0; i < 100; i++) {
        stk_pool *pool = NULL;
        stk_error err = {0};
        REQUIRE_OK(stk_pool_new(&pool, 4, &err), &err);
        stk_pool_free(pool);
    }
}

static void lack_of_memory_is_told(void) {
    for (int i = 0; i < 2; i++) {
        stk_pool *pool = NULL;
        stk_error err = {0};
        stk_mem_fail_after(i);
        CHECK_INT(stk_pool_new(&pool, 2, &err), STK_ERR_MEMORY);
        stk_mem_fail_after(-1);
        CHECK(pool == NULL);
        CHECK_CONTAINS(err.message, "memory");
    }
}

typedef struct countdown {
    int left; /* questions that are answered with no */
    int asked;
    atomic_int tasks;
} countdown;

static bool is_over(void *user) {
    countdown *c = user;
    c->asked++;
    return c->left-- <= 0;
}

static void slow_task(void *context, size_t task, int thread) {
    (void)task;
    (void)thread;
    countdown *c = context;
    atomic_fetch_add(&c->tasks, 1);
    usleep(200);
}

/* The other threads find nothing more to do; only what they have begun is done. */
static void a_run_can_be_halted(void) {
    for (int threads = 1; threads <= 3; threads++) {
        stk_pool *pool = NULL;
        stk_error err = {0};
        countdown c = {.left = 3};
        REQUIRE_OK(stk_pool_new(&pool, threads, &err), &err);
        stk_pool_watch(pool, is_over, &c);
        stk_pool_run(pool, 10000, slow_task, &c);
        CHECK(stk_pool_was_halted(pool));
        CHECK_INT(c.asked, 4);
        int done = atomic_load(&c.tasks);
        CHECK(done >= 3 && done < 10000);
        if (threads == 1) {
            CHECK_INT(done, 3);
        }
        stk_pool_run(pool, 100, slow_task, &c); /* nor is another one begun, or asked about */
        stk_pool_run(pool, 1, slow_task, &c);
        CHECK_INT(c.asked, 4);
        CHECK_INT(atomic_load(&c.tasks), done);
        stk_pool_watch(pool, NULL, NULL);
        CHECK(!stk_pool_was_halted(pool));
        atomic_store(&c.tasks, 0);
        stk_pool_run(pool, 100, slow_task, &c);
        CHECK_INT(atomic_load(&c.tasks), 100);
        stk_pool_free(pool);
    }
}

/* ---- a thread that gets no core ---- */

static int held_pipe[2];
static atomic_bool is_held;

/* The thread that is told stays here until somebody writes. */
static void hold(int number) {
    (void)number;
    char byte;
    int before = errno;
    atomic_store(&is_held, true);
    while (read(held_pipe[0], &byte, 1) < 0 && errno == EINTR) {
    }
    errno = before;
}

static void *release_late(void *late) {
    for (int i = 0; i < 1000 && !atomic_load((atomic_bool *)late + 1); i++) {
        usleep(10000);
    }
    atomic_store((atomic_bool *)late, !atomic_load((atomic_bool *)late + 1));
    CHECK_INT(write(held_pipe[1], "x", 1), 1);
    return NULL;
}

typedef struct second_thread {
    atomic_bool known;
    pthread_t thread;
} second_thread;

static void find_second(void *context, size_t task, int thread) {
    second_thread *second = context;
    (void)task;
    if (thread == 1 && !atomic_load(&second->known)) {
        second->thread = pthread_self();
        atomic_store(&second->known, true);
    }
    usleep(1000);
}

/* On a busy machine a thread is woken and gets no core for a while: the others do its work. */
static void nobody_waits_for_a_thread_without_a_task(void) {
    static tally t;
    stk_pool *pool = NULL;
    stk_error err = {0};
    second_thread second = {.known = false};
    atomic_bool late[2] = {false, false}; /* it was released late; it need not be any more */
    pthread_t releaser;
    struct sigaction action = {.sa_handler = hold};
    REQUIRE(pipe(held_pipe) == 0);
    REQUIRE(sigaction(SIGUSR1, &action, NULL) == 0);
    REQUIRE_OK(stk_pool_new(&pool, 2, &err), &err);
    while (!atomic_load(&second.known)) {
        stk_pool_run(pool, 4, find_second, &second);
    }
    usleep(20000); /* it sleeps, and holds no lock */
    REQUIRE(pthread_kill(second.thread, SIGUSR1) == 0);
    while (!atomic_load(&is_held)) {
        usleep(1000);
    }
    REQUIRE(pthread_create(&releaser, NULL, release_late, late) == 0);
    run_and_check(pool, &t, 50, 3);
    atomic_store(&late[1], true);
    REQUIRE(pthread_join(releaser, NULL) == 0);
    CHECK(!atomic_load(&late[0]));
    run_and_check(pool, &t, 50, 3);
    stk_pool_free(pool);
    close(held_pipe[0]);
    close(held_pipe[1]);
}

/* Tasks that wait at a door, and when to halt. */
typedef struct halting {
    door door;
    int asked;
    int until;     /* so many times asked, or tasks begun */
    double next_s; /* that was asked for last */
} halting;

static void pass(void *context, size_t task, int thread) {
    halting *h = context;
    (void)task;
    (void)thread;
    door_pass(&h->door);
}

static bool asked_enough(void *user, double next_s) {
    halting *h = user;
    h->next_s = next_s;
    return h->asked++ >= h->until;
}

static bool halt_once_begun(void *user, double next_s) {
    halting *h = user;
    h->next_s = next_s;
    return atomic_load(&h->door.begun) >= h->until;
}

static stk_pool_end run_or_leave(stk_pool *pool, size_t tasks, halting *h,
                                 bool (*halted)(void *user, double next_s)) {
    stk_pool_halt halt = {.halted = halted, .user = h, .longest_s = 0.5};
    return stk_pool_run_or_leave(pool, tasks, pass, h, &halt);
}

static void it_can_be_left(void) {
    static halting h; /* the pool's for good */
    stk_pool *pool = NULL;
    stk_error err = {0};
    REQUIRE_OK(stk_pool_new(&pool, 3, &err), &err);
    h = (halting){.until = 2};
    CHECK_INT(run_or_leave(pool, 5, &h, halt_once_begun), STK_POOL_LEFT);
    CHECK(h.next_s == 0); /* it can be left at any time */
    CHECK(stk_pool_any_left());
    CHECK_INT(atomic_load(&h.door.begun), 2); /* the caller has taken none */
    CHECK_INT(atomic_load(&h.door.passed), 0);
    atomic_store(&h.door.open, true);
    CHECK(door_comes(&h.door.passed, 2));
    CHECK_INT(atomic_load(&h.door.begun), 2); /* and no other is begun */
}

static void it_need_not_be_left(void) {
    for (int threads = 1; threads <= 3; threads++) {
        stk_pool *pool = NULL;
        stk_error err = {0};
        REQUIRE_OK(stk_pool_new(&pool, threads, &err), &err);
        halting h = {.door = {.open = true}, .until = 1 << 30};
        CHECK_INT(run_or_leave(pool, 5, &h, asked_enough), STK_POOL_DONE);
        CHECK_INT(atomic_load(&h.door.passed), 5);
        CHECK_INT(run_or_leave(pool, 1, &h, asked_enough), STK_POOL_DONE);
        CHECK_INT(run_or_leave(pool, 0, &h, asked_enough), STK_POOL_DONE);
        CHECK_INT(run_or_leave(pool, 2, &h, NULL), STK_POOL_DONE);
        CHECK_INT(atomic_load(&h.door.passed), 8);
        h = (halting){.door = {.open = true}};
        CHECK_INT(run_or_leave(pool, 5, &h, asked_enough), STK_POOL_HALTED);
        CHECK_INT(atomic_load(&h.door.begun), 0);
        stk_pool_run(pool, 5, pass, &h); /* it is as good as before */
        CHECK_INT(atomic_load(&h.door.passed), 5);
        stk_pool_free(pool);
    }
    stk_pool *alone = NULL;
    stk_error err = {0};
    REQUIRE_OK(stk_pool_new(&alone, 1, &err), &err);
    halting h = {.door = {.open = true}, .until = 2};
    CHECK_INT(run_or_leave(alone, 5, &h, asked_enough), STK_POOL_HALTED);
    CHECK_INT(atomic_load(&h.door.passed), 2); /* it asks before each, */
    CHECK(h.next_s >= 0.5);                    /* which it has to do itself */
    stk_pool_free(alone);
}

static const check_test tests[] = {
    TEST(every_task_runs_once), TEST(many_short_runs),
    TEST(runs_after_a_pause),   TEST(two_pools_do_not_mix),
    TEST(pools_come_and_go),    TEST(lack_of_memory_is_told),
    TEST(a_run_can_be_halted),  TEST(nobody_waits_for_a_thread_without_a_task),
    TEST(it_need_not_be_left),  TEST(it_can_be_left),
};

CHECK_MAIN(tests)
