/* test_base_disk.c - work aside, and calls of a file system that does not answer. */
#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/files/disk.h"
#include "base/files/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/threads/thread.h"
#include "base/threads/timed_call.h"
#include "doors.h"
#include "folder_looks.h"

#define SECOND_NS ((int64_t)1000000000)
#define LONG_NS (60 * SECOND_NS) /* with a busy machine */

/* Work that waits at a door, and how often it was dropped. */
typedef struct kept_door {
    door door;
    atomic_int dropped;
} kept_door;

static void pass(void *state) {
    kept_door *d = state;
    door_pass(&d->door);
}

static void drop(void *state) {
    kept_door *d = state;
    atomic_fetch_add(&d->dropped, 1);
}

/* ---- aside ---- */

static void work_is_done_one_after_the_other(void) {
    stk_timed_call *aside = NULL;
    stk_error err = {0};
    kept_door d = {.door = {.open = true}};
    REQUIRE_OK(stk_timed_call_open(&aside, "tests", &err), &err);
    CHECK(stk_timed_call_has_ended(aside));
    for (int i = 1; i <= 3; i++) {
        stk_timed_call_begin(aside, pass, &d, drop);
        CHECK(stk_timed_call_wait(aside, stk_clock_ns() + LONG_NS));
        CHECK_INT(atomic_load(&d.door.passed), i);
    }
    CHECK(!stk_timed_call_close(aside));
    CHECK_INT(atomic_load(&d.dropped), 0);
    CHECK(!stk_timed_call_close(NULL));
}

static void work_can_be_left_behind(void) {
    static kept_door d;
    stk_timed_call *aside = NULL;
    stk_error err = {0};
    REQUIRE_OK(stk_timed_call_open(&aside, "tests", &err), &err);
    stk_timed_call_begin(aside, pass, &d, drop);
    CHECK(!stk_timed_call_wait(aside, stk_clock_ns() + SECOND_NS / 100));
    CHECK(!stk_timed_call_has_ended(aside));
    CHECK(stk_timed_call_close(aside));
    CHECK_INT(atomic_load(&d.dropped), 0);
    atomic_store(&d.door.open, true);
    CHECK(door_comes(&d.dropped, 1));
    CHECK_INT(atomic_load(&d.door.passed), 1);
}

static void a_thread_may_be_refused(void) {
    stk_timed_call *aside = NULL;
    stk_error err = {0};
    stk_start_fail_after(STK_START_THREAD, 0);
    CHECK_INT(stk_timed_call_open(&aside, "tests", &err), STK_ERR_DEVICE);
    stk_start_fail_after(STK_START_THREAD, -1);
    CHECK(aside == NULL);
    CHECK_CONTAINS(err.message, "cannot start a thread that tests");
    CHECK_CONTAINS(err.message, "ulimit -u");
    stk_mem_fail_after(0);
    CHECK_INT(stk_timed_call_open(&aside, "tests", NULL), STK_ERR_MEMORY);
    stk_mem_fail_after(-1);
}

/* ---- the calls ---- */

static const stk_disk_config patient = {.look_s = 60, .move_s = 60};
/* Long enough for a disk that is alive on a busy machine. */
static const stk_disk_config hasty = {.look_s = 0.5, .move_s = 0.5};

/* Each call, on a thread that has entered a disk or has not. */
static void use_a_folder(const char *folder) {
    const char *a = in(folder, "a");
    const char *b = in(folder, "b");
    struct stat info;
    char text[16] = "";
    int fd = stk_disk_open(a, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    REQUIRE(fd >= 0);
    CHECK_INT(stk_disk_write(fd, a, "hello", 5), 5);
    CHECK_INT(stk_disk_write_at(fd, a, "J", 1, 0), 1);
    CHECK_INT(stk_disk_cut(fd, a, 4), 0);
    CHECK_INT(stk_disk_sync(fd, a), 0);
    CHECK_INT(stk_disk_read_at(fd, a, text, 15, 1), 3);
    CHECK_STR(text, "ell");
    CHECK_INT(stk_disk_lock(fd, a, LOCK_EX | LOCK_NB), 0);
    CHECK_INT(stk_disk_look_at(fd, a, &info), 0);
    CHECK_INT(info.st_size, 4);
    CHECK_INT(stk_disk_close(fd, a), 0);
    fd = stk_disk_open(a, O_RDONLY | O_CLOEXEC, 0);
    CHECK_INT(stk_disk_read(fd, a, text, 15), 4);
    CHECK(memcmp(text, "Jell", 4) == 0);
    CHECK_INT(stk_disk_close(fd, a), 0);
    CHECK_INT(stk_disk_look(a, &info), 0);
    CHECK_INT(info.st_mode & 0777, 0600);
    CHECK_INT(stk_disk_access(a, R_OK), 0);
    CHECK_INT(stk_disk_link(a, b), 0);
    CHECK_INT(stk_disk_exchange(a, b), 0);
    CHECK_INT(stk_disk_remove(a), 0);
    CHECK_INT(stk_disk_rename(b, a), 0);
    char *full = stk_disk_resolve(in(folder, "../"));
    CHECK(full != NULL && full[0] == '/');
    stk_mem_free(full);
    REQUIRE(symlink("where it leads", b) == 0);
    CHECK_INT(stk_disk_read_link(b, text, 9), 9);
    CHECK(memcmp(text, "where it ", 9) == 0);
    CHECK_INT(stk_disk_look_link(b, &info), 0);
    CHECK(S_ISLNK(info.st_mode));
    CHECK_INT(stk_disk_remove(b), 0);
    struct statfs system;
    CHECK_INT(stk_disk_look_system("/proc/self", &system), 0);
    CHECK(system.f_type == PROC_SUPER_MAGIC);
    CHECK_INT(stk_disk_look_system(b, &system), -1);
    CHECK_INT(stk_disk_make_dir(b, 0700), 0);
    CHECK_INT(stk_disk_remove_dir(b), 0);
    errno = 0;
    CHECK_INT(stk_disk_open(b, O_RDONLY, 0), -1);
    CHECK_INT(errno, ENOENT);
    CHECK_STR(stk_disk_reason(errno), strerror(ENOENT));
    CHECK_INT(stk_disk_remove(b), -1);
    CHECK(stk_disk_resolve(b) == NULL && errno == ENOENT);
    CHECK(!stk_disk_hangs(a));
    CHECK_INT(stk_disk_remove(a), 0);
}

static void calls_do_what_the_systems_do(void) {
    use_a_folder(check_folder());
    stk_disk *disk = stk_disk_enter(&patient);
    REQUIRE(disk != NULL);
    use_a_folder(check_folder());
    stk_start_fail_after(STK_START_THREAD, 0); /* the thread is there */
    use_a_folder(check_folder());
    stk_disk_leave(disk);
    disk = stk_disk_enter(&patient);
    use_a_folder(check_folder()); /* and now it is not */
    stk_start_fail_after(STK_START_THREAD, -1);
    stk_disk_leave(disk);
    stk_disk_leave(NULL);
    stk_mem_fail_after(0);
    CHECK(stk_disk_enter(&patient) == NULL);
    stk_mem_fail_after(-1);
}

static void whole_files_of_any_size_come_through(void) {
    const char *path = in(check_folder(), "a");
    size_t size = ((size_t)17 << 20) + 7; /* several pieces */
    char *data = stk_mem_raw(size, 1);
    char *back = NULL;
    size_t got = 0;
    stk_error err = {0};
    REQUIRE(data != NULL);
    for (size_t i = 0; i < size; i++) {
        data[i] = (char)(i * 31 >> 3);
    }
    stk_disk *disk = stk_disk_enter(&patient);
    REQUIRE_OK(stk_file_write(path, data, size, &err), &err);
    REQUIRE_OK(stk_file_read(path, 0, &back, &got, &err), &err);
    CHECK(got == size && memcmp(back, data, size) == 0);
    stk_disk_leave(disk);
    stk_mem_free(back);
    stk_mem_free(data);
}

/* A pipe without a writer is opened for ever, as a file on a dead mount is. */
static const char *make_hanging(const char *folder, const char *name) {
    const char *path = in(folder, name);
    CHECK_INT(mkfifo(path, 0600), 0);
    return path;
}

static void free_hanging(const char *path) {
    int fd = open(path, O_RDWR | O_CLOEXEC);
    usleep(50000); /* the call that was left behind comes back meanwhile */
    close(fd);
}

static void what_hangs_is_left_behind(void) {
    const char *folder = check_folder();
    const char *pipe = make_hanging(folder, "pipe");
    const char *beside = in(folder, "beside");
    struct stat info;
    struct statfs system;
    char text[16];
    stk_disk *disk = stk_disk_enter(&hasty);
    int64_t start = stk_clock_ns();
    CHECK_INT(stk_disk_open(pipe, O_RDONLY | O_CLOEXEC, 0), -1);
    CHECK_INT(errno, ETIMEDOUT);
    CHECK_CONTAINS(stk_disk_reason(errno), "its disk gave no answer within 0.");
    CHECK(stk_clock_ns() - start < LONG_NS);
    CHECK(stk_disk_hangs(beside));
    CHECK_INT(stk_disk_look(beside, &info), -1); /* its neighbours are not even asked for */
    CHECK_INT(errno, ETIMEDOUT);
    CHECK_INT(stk_disk_read_link(beside, text, sizeof text), -1);
    CHECK_INT(errno, ETIMEDOUT);
    CHECK_INT(stk_disk_look_system(beside, &system), -1);
    CHECK_INT(errno, ETIMEDOUT);
    CHECK_INT(stk_disk_look("/", &info), 0); /* and others are */
    stk_error err = {0};
    stk_dir_list list;
    CHECK_INT(stk_dir_read(folder, &list, &err), STK_ERR_STORAGE);
    CHECK_CONTAINS(err.message, "cannot list the folder");
    CHECK(list.count == 0);
    err = (stk_error){0};
    CHECK_INT(stk_file_write(beside, "x", 1, &err), STK_ERR_STORAGE);
    CHECK_CONTAINS(err.message, "beside: its disk gave no answer within");
    const stk_file_how chosen = {.chosen = true};
    const char *link_path = in(check_folder(), "link"); /* on a disk that answers */
    REQUIRE(symlink(beside, link_path) == 0);
    err = (stk_error){0};
    CHECK_INT(stk_file_write_how(link_path, "x", 1, &chosen, &err), STK_ERR_STORAGE);
    CHECK_CONTAINS(err.message, "its disk gave no answer within");
    free_hanging(pipe);
    for (int i = 0; i < 10000 && stk_disk_hangs(beside); i++) {
        usleep(1000);
    }
    err = (stk_error){0};
    REQUIRE_OK(stk_file_write(beside, "x", 1, &err), &err); /* the disk is back */
    CHECK(holds(beside, "x"));
    stk_disk_leave(disk);
}

static void a_root_hangs_as_a_whole(void) {
    const char *folder = check_folder();
    const char *below = in(folder, "run/state");
    stk_error err = {0};
    struct stat info;
    REQUIRE_OK(stk_dir_make(below, &err), &err);
    const char *pipe = make_hanging(below, "pipe");
    stk_disk *disk = stk_disk_enter(&hasty);
    stk_disk_root(in(folder, "run"), false);
    CHECK_INT(stk_disk_open(pipe, O_RDONLY | O_CLOEXEC, 0), -1);
    CHECK(stk_disk_hangs(in(folder, "run/weights/best")));
    CHECK(stk_disk_hangs(in(folder, "run")));
    CHECK(!stk_disk_hangs(in(folder, "runs")));
    CHECK_INT(stk_disk_look(folder, &info), 0);
    stk_disk_leave(disk); /* the call is left behind for good */
    CHECK(!stk_disk_hangs(below));
    free_hanging(pipe);
}

static double no_time(void *user) {
    (void)user;
    return 0;
}

static double some_time(void *user) {
    (void)user;
    return 2;
}

/* Each reason to stop waiting, where patience alone would last for a minute. */
static void waiting_ends_early(void) {
    for (int way = 0; way < 4; way++) { /* no time, asked to stop, at once, optional */
        const char *folder = check_folder();
        const char *pipe = make_hanging(folder, "pipe");
        stk_stop stop = {0};
        stk_disk_config config = {.look_s = 600,
                                  .move_s = 600,
                                  .stop = &stop,
                                  .left_s = way == 0   ? no_time
                                            : way == 3 ? some_time
                                                       : NULL};
        stk_disk *disk = stk_disk_enter(&config);
        if (way == 1 || way == 2) {
            stk_stop_request(&stop, way == 1 ? STK_STOP_SOON : STK_STOP_NOW, 0);
        }
        stk_disk_root(folder, way == 3);
        CHECK_INT(stk_disk_open(pipe, O_RDONLY | O_CLOEXEC, 0), -1);
        CHECK_INT(errno, ETIMEDOUT);
        stk_disk_leave(disk);
        free_hanging(pipe);
    }
}

static void work_of_several_calls_has_one_time_out(void) {
    const char *folder = check_folder();
    const char *pipe = make_hanging(folder, "pipe");
    struct stat info;
    stk_disk *disk = stk_disk_enter_within(1e300);
    CHECK_INT(stk_disk_look("/", &info), 0);
    CHECK(stk_disk_left_s() > 60);
    CHECK(stk_disk_leave(disk));
    disk = stk_disk_enter_within(0.05);
    CHECK_INT(stk_disk_open(pipe, O_RDONLY | O_CLOEXEC, 0), -1);
    CHECK_INT(errno, ETIMEDOUT);
    errno = 0;
    CHECK_INT(stk_disk_look("/", &info), -1); /* nothing is asked for any more */
    CHECK_INT(errno, ETIMEDOUT);
    CHECK(stk_disk_left_s() <= 0);
    CHECK(!stk_disk_leave(disk));
    CHECK_INT(stk_disk_look("/", &info), 0);
    CHECK(stk_disk_leave(NULL));
    free_hanging(pipe);
}

/* Threads are not inherited: a child must not wait for its parent's. */
static void a_child_goes_on(void) {
#ifdef CHECK_THREAD_SANITIZED
    CHECK_SKIP("this sanitizer starts no threads after a fork");
#endif
    const char *folder = check_folder();
    stk_disk *disk = stk_disk_enter(&patient);
    struct stat info;
    CHECK_INT(stk_disk_look(folder, &info), 0);
    pid_t pid = fork();
    if (pid == 0) {
        bool good = stk_disk_look(folder, &info) == 0;
        stk_disk_leave(disk);
        _exit(good ? 0 : 1);
    }
    int how = -1;
    CHECK(pid > 0 && waitpid(pid, &how, 0) == pid && how == 0);
    stk_disk_leave(disk);
}

static void there_is_an_end_to_what_is_left_behind(void) {
    const char *folder = check_folder();
    static char pipes[20][600];
    stk_disk *disk = stk_disk_enter(&(stk_disk_config){.look_s = 0.001, .move_s = 0.001});
    for (int i = 0; i < 20; i++) {
        char name[16];
        snprintf(name, sizeof name, "%d", i);
        const char *own = in(folder, name);
        CHECK_INT(mkdir(own, 0700), 0);
        snprintf(pipes[i], sizeof pipes[i], "%s", make_hanging(own, "pipe"));
        CHECK_INT(stk_disk_open(pipes[i], O_RDONLY | O_CLOEXEC, 0), -1);
        CHECK_INT(errno, ETIMEDOUT);
    }
    stk_disk_leave(disk);
    for (int i = 0; i < 20; i++) {
        int fd = open(pipes[i], O_RDWR | O_NONBLOCK | O_CLOEXEC);
        usleep(1000);
        close(fd);
    }
}

static const check_test tests[] = {
    TEST(work_is_done_one_after_the_other),
    TEST(work_can_be_left_behind),
    TEST(a_thread_may_be_refused),
    TEST(calls_do_what_the_systems_do),
    TEST(whole_files_of_any_size_come_through),
    TEST(what_hangs_is_left_behind),
    TEST(a_root_hangs_as_a_whole),
    TEST(waiting_ends_early),
    TEST(work_of_several_calls_has_one_time_out),
    TEST(a_child_goes_on),
    TEST(there_is_an_end_to_what_is_left_behind),
};

CHECK_MAIN(tests)
