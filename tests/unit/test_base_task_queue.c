/* test_base_task_queue.c - jobs for a thread that may be held, and givers that are not. */
#include "check.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/threads/task_queue.h"

#define LONG_S 60.0 /* nothing here takes that long */

/* What a job that waits for a pipe, as for a disk, shares with its test. */
typedef struct gate {
    int ends[2];
    atomic_int passed;
} gate;

static char order[64]; /* of the thread alone until it is settled */

static void write_letter(void *user) {
    size_t length = strlen(order);
    order[length] = (char)(intptr_t)user;
    order[length + 1] = '\0';
}

static void pass_gate(void *user) {
    gate *g = user;
    char byte;
    while (read(g->ends[0], &byte, 1) != 1) {
    }
    atomic_fetch_add(&g->passed, 1);
}

static void open_gate(gate *g) {
    REQUIRE(write(g->ends[1], "x", 1) == 1);
}

static stk_task_queue *make(size_t most_bytes) {
    stk_task_queue *queue = NULL;
    stk_error err = {0};
    order[0] = '\0';
    CHECK(stk_task_queue_open(&queue, "writes", most_bytes, &err) == STK_OK);
    return queue;
}

static stk_status try_letter(stk_task_queue *queue, char letter, size_t bytes, double patience_s) {
    stk_queue_task job = {.work = write_letter, .user = (void *)(intptr_t)letter, .bytes = bytes};
    return stk_task_queue_put(queue, &job, patience_s);
}

static bool give_letter(stk_task_queue *queue, char letter, size_t bytes, double patience_s) {
    return try_letter(queue, letter, bytes, patience_s) == STK_OK;
}

static void jobs_are_done_in_order(void) {
    stk_task_queue *queue = make(100);
    for (char letter = 'a'; letter <= 'z'; letter++) {
        CHECK(give_letter(queue, letter, 40, LONG_S));
    }
    CHECK(stk_task_queue_flush(queue, LONG_S));
    CHECK_STR(order, "abcdefghijklmnopqrstuvwxyz");
    CHECK(stk_task_queue_busy_s(queue) == 0);
    CHECK(stk_task_queue_close(queue, 0));
    CHECK(stk_task_queue_close(NULL, 0));
}

static void a_held_thread_holds_nobody(void) {
    gate g = {.passed = 0};
    stk_task_queue *queue = make(100);
    REQUIRE(pipe2(g.ends, O_CLOEXEC) == 0);
    CHECK_INT(
        stk_task_queue_put(queue, &(stk_queue_task){.work = pass_gate, .user = &g, .bytes = 60}, 0),
        STK_OK);
    CHECK(give_letter(queue, 'a', 40, 0));
    int64_t start = stk_clock_ns();
    CHECK_INT(try_letter(queue, 'b', 1, 0.05), STK_ERR_STORAGE); /* waits for that long, once */
    CHECK(stk_clock_since_s(start) >= 0.05);
    for (int i = 0; i < 1000; i++) {
        CHECK(!give_letter(queue, 'c', 1, LONG_S)); /* the disk is known to be held */
    }
    CHECK(give_letter(queue, 'd', 0, 0)); /* what must not be lost has room */
    for (int i = 0; i < 1000 && stk_task_queue_busy_s(queue) <= 0.05; i++) {
        CHECK(!stk_task_queue_flush(queue, 0.01)); /* a busy machine may begin the task late */
    }
    CHECK(stk_task_queue_busy_s(queue) > 0.05);
    CHECK(stk_clock_since_s(start) < LONG_S);
    open_gate(&g);
    CHECK(stk_task_queue_flush(queue, LONG_S));
    CHECK(give_letter(queue, 'f', 100, 0)); /* it answers again */
    CHECK(stk_task_queue_flush(queue, LONG_S));
    CHECK_STR(order, "adf");
    CHECK(stk_task_queue_close(queue, LONG_S));
    close(g.ends[0]);
    close(g.ends[1]);
}

static void what_is_left_behind_is_done_later(void) {
    static gate g; /* it outlives the queue */
    stk_task_queue *queue = make(100);
    REQUIRE(pipe2(g.ends, O_CLOEXEC) == 0);
    for (int i = 0; i < 2; i++) {
        stk_queue_task job = {.work = pass_gate, .user = &g, .bytes = 1};
        CHECK_INT(stk_task_queue_put(queue, &job, 0), STK_OK);
    }
    CHECK(!stk_task_queue_close(queue, 0.01));
    open_gate(&g);
    open_gate(&g);
    for (int i = 0; i < 10000 && atomic_load(&g.passed) < 2; i++) {
        usleep(1000);
    }
    CHECK_INT(atomic_load(&g.passed), 2);
}

static void lack_of_memory_is_said(void) {
    stk_task_queue *queue = NULL;
    stk_error err = {0};
    stk_mem_fail_after(0);
    stk_status status = stk_task_queue_open(&queue, "writes", 1, &err);
    stk_mem_fail_after(-1);
    CHECK(status == STK_ERR_MEMORY);
    queue = make(100);
    CHECK(give_letter(queue, 'a', 1, LONG_S));
    stk_mem_fail_after(0);
    status = try_letter(queue, 'b', 1, LONG_S);
    stk_queue_task last = {.work = write_letter, .user = (void *)(intptr_t)'z', .bytes = 1};
    stk_task_queue_put_last(queue, &last);
    bool closed = stk_task_queue_close(queue, LONG_S);
    stk_mem_fail_after(-1);
    CHECK_INT(status, STK_ERR_MEMORY);
    CHECK(closed);
    CHECK_STR(order, "az"); /* what ends it needs no memory */
}

static const check_test tests[] = {
    TEST(jobs_are_done_in_order),
    TEST(a_held_thread_holds_nobody),
    TEST(what_is_left_behind_is_done_later),
    TEST(lack_of_memory_is_said),
};

CHECK_MAIN(tests)
