/* test_storage_io_threads.c - tasks that get stuck, and those who stop waiting for them. */
#include "check.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "base/mem.h"
#include "storage/io_threads.h"

/* A door that a work function waits at, and what went through. */
typedef struct door {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool open;
    int waiting; /* works that stand before it */
    int begun;   /* works that ever came */
    int passed;  /* works that ended */
    int after;   /* times that the io_threads' `after` was called */
} door;

static void open_door(door *d, bool open) {
    pthread_mutex_lock(&d->lock);
    d->open = open;
    pthread_cond_broadcast(&d->changed);
    pthread_mutex_unlock(&d->lock);
}

static void new_door(door *d) {
    *d = (door){.open = false};
    pthread_mutex_init(&d->lock, NULL);
    pthread_cond_init(&d->changed, NULL);
}

/* Waits until a number of the door's has reached a value. */
static void wait_until(door *d, const int *number, int value) {
    pthread_mutex_lock(&d->lock);
    while (*number < value) {
        pthread_cond_wait(&d->changed, &d->lock);
    }
    pthread_mutex_unlock(&d->lock);
}

static void note_after(void *arg) {
    door *d = arg;
    pthread_mutex_lock(&d->lock);
    d->after++;
    pthread_cond_broadcast(&d->changed);
    pthread_mutex_unlock(&d->lock);
}

/* Paths that begin with "stuck" wait at the door; the answer is the path itself. */
static void work(void *user, stk_io_task *task) {
    door *d = user;
    pthread_mutex_lock(&d->lock);
    d->begun++;
    d->waiting++;
    pthread_cond_broadcast(&d->changed);
    while (strncmp(task->path, "stuck", 5) == 0 && !d->open) {
        pthread_cond_wait(&d->changed, &d->lock);
    }
    d->waiting--;
    d->passed++;
    pthread_cond_broadcast(&d->changed);
    pthread_mutex_unlock(&d->lock);
    size_t length = strlen(task->path);
    if (strcmp(task->path, "bad") == 0 || !stk_bytes_reserve(&task->bytes, length + 1)) {
        (void)stk_fetch_fail(&task->result, STK_FETCH_NEVER, STK_ERR_STORAGE, "%s is bad",
                             task->path);
        return;
    }
    memcpy(task->bytes.data, task->path, length + 1);
    task->bytes.size = length;
    task->result.verdict = STK_FETCH_OK;
}

/* Fetches, and how often each was done. */
#define FETCHES 64

typedef struct errand {
    stk_fetch fetch; /* first: a fetch leads to it */
    atomic_int done;
} errand;

static pthread_mutex_t errands_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t errands_changed = PTHREAD_COND_INITIALIZER;

static void errand_done(stk_fetch *fetch) {
    errand *e = (errand *)(void *)fetch;
    pthread_mutex_lock(&errands_lock);
    atomic_fetch_add(&e->done, 1);
    pthread_cond_broadcast(&errands_changed);
    pthread_mutex_unlock(&errands_lock);
}

static void begin(stk_io_threads *io_threads, errand *e, const char *path, door *d) {
    *e = (errand){.fetch = {.path = path, .done = errand_done}};
    if (!stk_io_threads_begin(io_threads, &e->fetch, work, d, NULL)) {
        CHECK_FAIL("there is no memory for %s", path);
    }
}

static void wait_done(errand *e) {
    pthread_mutex_lock(&errands_lock);
    while (atomic_load(&e->done) == 0) {
        pthread_cond_wait(&errands_changed, &errands_lock);
    }
    pthread_mutex_unlock(&errands_lock);
}

static stk_io_threads *open_io_threads(int most_threads) {
    stk_error err = {0};
    stk_io_threads *io_threads = NULL;
    if (stk_io_threads_open(&io_threads, most_threads, &err) != STK_OK) {
        printf("%s\n", err.message);
        exit(1);
    }
    return io_threads;
}

static void expect_answer(errand *e, const char *answer) {
    wait_done(e);
    CHECK_INT(e->fetch.result.verdict, STK_FETCH_OK);
    CHECK_STR((const char *)e->fetch.bytes.data, answer);
    CHECK(e->fetch.serving == NULL);
    CHECK_INT(atomic_load(&e->done), 1);
    stk_bytes_free(&e->fetch.bytes);
}

static void expect_cancelled(errand *e) {
    CHECK_INT(atomic_load(&e->done), 1);
    CHECK_INT(e->fetch.result.verdict, STK_FETCH_CANCELLED);
    CHECK(e->fetch.bytes.data == NULL);
}

static void jobs_are_done_in_their_order(void) {
    door d;
    static errand errands[FETCHES];
    char paths[FETCHES][16];
    new_door(&d);
    stk_io_threads *io_threads = open_io_threads(1);
    for (int i = 0; i < FETCHES; i++) {
        snprintf(paths[i], sizeof paths[i], "p%d", i);
        begin(io_threads, &errands[i], paths[i], &d);
        snprintf(paths[i], sizeof paths[i], "-"); /* the path was copied */
    }
    for (int i = 0; i < FETCHES; i++) {
        char answer[16];
        snprintf(answer, sizeof answer, "p%d", i);
        expect_answer(&errands[i], answer);
        CHECK(atomic_load(&errands[i].fetch.started_ns) > 0);
        CHECK(i == 0 || atomic_load(&errands[i].fetch.started_ns) >=
                            atomic_load(&errands[i - 1].fetch.started_ns));
    }
    begin(io_threads, &errands[0], "bad", &d);
    wait_done(&errands[0]);
    CHECK_INT(errands[0].fetch.result.verdict, STK_FETCH_NEVER);
    CHECK_CONTAINS(errands[0].fetch.result.cause, "bad is bad");
    stk_bytes_free(&errands[0].fetch.bytes);
    begin(io_threads, &errands[0], "good", &d); /* an error of before is not in the way */
    expect_answer(&errands[0], "good");
    stk_io_threads_close(io_threads, note_after, &d);
    CHECK_INT(d.after, 1);
    stk_io_threads_close(NULL, note_after, &d);
    CHECK_INT(d.after, 1);
}

static void long_paths_come_whole(void) {
    door d;
    errand e;
    char path[3000];
    new_door(&d);
    stk_io_threads *io_threads = open_io_threads(1);
    for (size_t length = 1; length < sizeof path; length = length * 3 + 1) {
        memset(path, 'x', length);
        path[length] = '\0';
        begin(io_threads, &e, path, &d);
        expect_answer(&e, path);
    }
    stk_io_threads_close(io_threads, NULL, NULL);
}

static void threads_follow_the_need(void) {
    door d;
    static errand errands[8];
    new_door(&d);
    stk_io_threads *io_threads = open_io_threads(3);
    CHECK_INT(stk_io_threads_count(io_threads), 1);
    stk_io_threads_grow(io_threads); /* nothing waits */
    CHECK_INT(stk_io_threads_count(io_threads), 1);
    for (int i = 0; i < 8; i++) {
        begin(io_threads, &errands[i], "stuck", &d);
    }
    for (int threads = 1; threads <= 3; threads++) {
        wait_until(&d, &d.waiting, threads);
        CHECK_INT(stk_io_threads_count(io_threads), threads);
        stk_io_threads_grow(io_threads);
    }
    CHECK_INT(stk_io_threads_count(io_threads), 3);
    open_door(&d, true);
    for (int i = 0; i < 8; i++) {
        expect_answer(&errands[i], "stuck");
    }
    CHECK_INT(d.begun, 8);
    stk_io_threads_close(io_threads, NULL, NULL);
}

static void a_stuck_job_is_left_alone(void) {
    door d;
    errand stuck;
    errand next;
    new_door(&d);
    stk_io_threads *io_threads = open_io_threads(1);
    begin(io_threads, &stuck, "stuck", &d);
    wait_until(&d, &d.waiting, 1);
    begin(io_threads, &next, "next", &d); /* waits behind it */
    stk_io_threads_cancel(io_threads, &stuck.fetch);
    expect_cancelled(&stuck);
    expect_answer(&next, "next"); /* another thread took its place */
    CHECK_INT(stk_io_threads_count(io_threads), 1);
    stk_io_threads_cancel(io_threads, &stuck.fetch); /* once is enough */
    CHECK_INT(atomic_load(&stuck.done), 1);
    open_door(&d, true);
    wait_until(&d, &d.passed, 2);
    stk_io_threads_close(io_threads, note_after, &d);
    wait_until(&d, &d.after, 1);
    CHECK_INT(atomic_load(&stuck.done), 1);
    CHECK_INT(d.after, 1);
}

static void jobs_that_have_not_begun_can_be_cancelled(void) {
    door d;
    static errand errands[5];
    new_door(&d);
    stk_io_threads *io_threads = open_io_threads(1);
    begin(io_threads, &errands[0], "stuck", &d);
    wait_until(&d, &d.waiting, 1);
    for (int i = 1; i < 5; i++) {
        begin(io_threads, &errands[i], "queued", &d);
    }
    static const int order[] = {4, 1, 3}; /* the last, the first, one between */
    for (int i = 0; i < 3; i++) {
        stk_io_threads_cancel(io_threads, &errands[order[i]].fetch);
        expect_cancelled(&errands[order[i]]);
    }
    begin(io_threads, &errands[1], "behind", &d);
    open_door(&d, true);
    expect_answer(&errands[0], "stuck");
    expect_answer(&errands[2], "queued");
    expect_answer(&errands[1], "behind");
    CHECK_INT(d.begun, 3);
    CHECK_INT(stk_io_threads_count(io_threads), 1);
    stk_io_threads_close(io_threads, NULL, NULL);
}

static void close_does_not_wait_for_the_stuck(void) {
    for (int abandoned = 1; abandoned <= 3; abandoned++) {
        door d;
        static errand errands[3];
        new_door(&d);
        stk_io_threads *io_threads = open_io_threads(4);
        for (int i = 0; i < abandoned; i++) {
            begin(io_threads, &errands[i], "stuck", &d);
            stk_io_threads_grow(io_threads);
            wait_until(&d, &d.waiting, i + 1);
        }
        for (int i = 0; i < abandoned; i++) {
            stk_io_threads_cancel(io_threads, &errands[i].fetch);
            expect_cancelled(&errands[i]);
        }
        stk_io_threads_close(io_threads, note_after, &d);
        pthread_mutex_lock(&d.lock);
        CHECK_INT(d.after, 0); /* they are still in there */
        CHECK_INT(d.waiting, abandoned);
        pthread_mutex_unlock(&d.lock);
        open_door(&d, true);
        wait_until(&d, &d.after, 1);
        struct timespec moment = {.tv_nsec = 5000000};
        nanosleep(&moment, NULL);
        pthread_mutex_lock(&d.lock);
        CHECK_INT(d.after, 1);
        CHECK_INT(d.passed, abandoned);
        pthread_mutex_unlock(&d.lock);
    }
}

static void those_who_come_back_work_on(void) {
    door d;
    errand e;
    static errand errands[8];
    new_door(&d);
    stk_io_threads *io_threads = open_io_threads(2);
    begin(io_threads, &e, "stuck", &d);
    wait_until(&d, &d.waiting, 1);
    stk_io_threads_cancel(io_threads, &e.fetch);
    CHECK_INT(stk_io_threads_count(io_threads), 0);
    open_door(&d, true);
    while (stk_io_threads_count(io_threads) == 0) {
        struct timespec moment = {.tv_nsec = 1000000};
        nanosleep(&moment, NULL);
    }
    CHECK_INT(stk_io_threads_count(io_threads), 1);
    for (int i = 0; i < 8; i++) {
        begin(io_threads, &errands[i], "more", &d);
    }
    for (int i = 0; i < 8; i++) {
        expect_answer(&errands[i], "more");
    }
    CHECK_INT(stk_io_threads_count(io_threads), 1);
    stk_io_threads_close(io_threads, NULL, NULL);
}

/* Of those who come back no more stay than may be at work at a time. */
static void the_limit_holds_for_those_who_come_back(void) {
    door d;
    static errand errands[5];
    new_door(&d);
    stk_io_threads *io_threads = open_io_threads(2);
    for (int i = 0; i < 3; i++) {
        begin(io_threads, &errands[i], "stuck", &d);
        wait_until(&d, &d.waiting, i + 1);
        stk_io_threads_cancel(io_threads, &errands[i].fetch);
    }
    for (int i = 3; i < 5; i++) {
        begin(io_threads, &errands[i], "stuck", &d);
        stk_io_threads_grow(io_threads);
        wait_until(&d, &d.waiting, i + 1);
    }
    CHECK_INT(stk_io_threads_count(io_threads), 2);
    open_door(&d, true);
    expect_answer(&errands[3], "stuck");
    expect_answer(&errands[4], "stuck");
    wait_until(&d, &d.passed, 5);
    CHECK(stk_io_threads_count(io_threads) <= 2);
    stk_io_threads_close(io_threads, note_after, &d);
    wait_until(&d, &d.after, 1);
}

static void there_is_an_end_to_strays(void) {
    door d;
    static errand errands[10];
    new_door(&d);
    stk_io_threads *io_threads = open_io_threads(2);
    int begun = 0;
    for (int i = 0; i < 10; i++) {
        begin(io_threads, &errands[i], "stuck", &d);
        if (stk_io_threads_count(io_threads) == 0) { /* nobody is left to take it */
            stk_io_threads_grow(io_threads);
            CHECK_INT(stk_io_threads_count(io_threads), 0);
            break;
        }
        wait_until(&d, &d.waiting, ++begun);
        stk_io_threads_cancel(io_threads, &errands[i].fetch);
    }
    CHECK_INT(begun, 4);
    stk_io_threads_cancel(io_threads, &errands[begun].fetch); /* even then it can be cancelled */
    expect_cancelled(&errands[begun]);
    open_door(&d, true);
    stk_io_threads_close(io_threads, note_after, &d);
    wait_until(&d, &d.after, 1);
    CHECK_INT(d.begun, 4);
}

static void slow_work(void *user, stk_io_task *task) {
    struct timespec moment = {.tv_nsec = 60000000};
    (void)user;
    stk_io_task_is_alive(task); /* too early to be worth telling */
    nanosleep(&moment, NULL);
    stk_io_task_is_alive(task);
    task->result.verdict = STK_FETCH_OK;
}

static void a_long_work_gives_signs_of_life(void) {
    errand e = {.fetch = {.path = "x", .done = errand_done}};
    stk_io_threads *io_threads = open_io_threads(1);
    CHECK(stk_io_threads_begin(io_threads, &e.fetch, slow_work, NULL, NULL));
    wait_done(&e);
    long long started = atomic_load(&e.fetch.started_ns);
    CHECK(started > 0);
    CHECK(atomic_load(&e.fetch.heard_ns) > started);
    stk_bytes_free(&e.fetch.bytes);
    stk_io_threads_close(io_threads, NULL, NULL);
}

static void no_memory(void) {
    stk_error err = {0};
    stk_io_threads *io_threads = NULL;
    door d;
    new_door(&d);
    stk_mem_fail_after(0);
    CHECK_INT(stk_io_threads_open(&io_threads, 2, &err), STK_ERR_MEMORY);
    stk_mem_fail_after(-1);
    io_threads = open_io_threads(2);
    for (int64_t n = 0; n < 2; n++) {
        errand e = {.fetch = {.path = "a", .done = errand_done}};
        CHECK(stk_bytes_reserve(&e.fetch.bytes, 10));
        stk_mem_fail_after(n);
        CHECK(!stk_io_threads_begin(io_threads, &e.fetch, work, &d, NULL));
        stk_mem_fail_after(-1);
        CHECK_INT(atomic_load(&e.done), 0);
        CHECK(e.fetch.bytes.data != NULL); /* the block is still the caller's */
        stk_bytes_free(&e.fetch.bytes);
    }
    errand e;
    begin(io_threads, &e, "a", &d);
    expect_answer(&e, "a");
    stk_io_threads_close(io_threads, NULL, NULL);
}

/* Threads that begin and cancel at once: every fetch is done once. */
#define ROUNDS 300

typedef struct crowd {
    stk_io_threads *io_threads;
    door *door;
    int number;
} crowd;

static void *begin_and_cancel(void *argument) {
    const crowd *c = argument;
    errand *errands = calloc(ROUNDS, sizeof *errands);
    for (int i = 0; i < ROUNDS && errands != NULL; i++) {
        begin(c->io_threads, &errands[i], i % 50 == 0 ? "stuck" : "x", c->door);
        stk_io_threads_grow(c->io_threads);
        if (i % 50 == 0 || i % 3 == c->number % 3) {
            stk_io_threads_cancel(c->io_threads, &errands[i].fetch);
        }
    }
    for (int i = 0; i < ROUNDS && errands != NULL; i++) {
        wait_done(&errands[i]);
        stk_bytes_free(&errands[i].fetch.bytes);
        if (atomic_load(&errands[i].done) != 1) {
            printf("  fetch %d was done %d times\n", i, atomic_load(&errands[i].done));
            abort();
        }
    }
    free(errands);
    return NULL;
}

static void many_begin_and_cancel_at_once(void) {
    door d;
    new_door(&d);
    pthread_t threads[4];
    crowd crowds[4];
    stk_io_threads *io_threads = open_io_threads(16);
    for (int i = 0; i < 4; i++) {
        crowds[i] = (crowd){.io_threads = io_threads, .door = &d, .number = i};
        if (pthread_create(&threads[i], NULL, begin_and_cancel, &crowds[i]) != 0) {
            printf("no thread\n");
            exit(1);
        }
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
    }
    stk_io_threads_close(io_threads, note_after, &d);
    open_door(&d, true);
    wait_until(&d, &d.after, 1);
    CHECK_INT(d.after, 1);
    CHECK_INT(d.waiting, 0);
}

static const check_test tests[] = {
    TEST(jobs_are_done_in_their_order),
    TEST(long_paths_come_whole),
    TEST(threads_follow_the_need),
    TEST(a_stuck_job_is_left_alone),
    TEST(jobs_that_have_not_begun_can_be_cancelled),
    TEST(close_does_not_wait_for_the_stuck),
    TEST(those_who_come_back_work_on),
    TEST(the_limit_holds_for_those_who_come_back),
    TEST(there_is_an_end_to_strays),
    TEST(a_long_work_gives_signs_of_life),
    TEST(no_memory),
    TEST(many_begin_and_cancel_at_once),
};

CHECK_MAIN(tests)
