/*
 * test_base_sync.c - files that a disk takes its time to store. A program of its own: it replaces
 * fsync().
 */
#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files/disk.h"
#include "base/files/file.h"
#include "base/files/sync.h"
#include "base/threads/thread.h"
#include "doors.h"
#include "folder_looks.h"
#include "job/saved/write_behind.h"

/* A disk that stores nothing while its door is closed; for this process and its children. */
typedef struct disk_of_test {
    door door;
    atomic_int error; /* that storing ends with; 0: all is well */
} disk_of_test;

static disk_of_test *slow_disk;

/* In the place of the C library's, also in a child that shares our memory. */
int fsync(int fd) {
    if (slow_disk == NULL) {
        return (int)syscall(SYS_fsync, fd);
    }
    door_wait(&slow_disk->door);
    int result = (int)syscall(SYS_fsync, fd);
    if (atomic_load(&slow_disk->error) != 0) {
        errno = atomic_load(&slow_disk->error);
        result = -1;
    }
    atomic_fetch_add(&slow_disk->door.passed, 1);
    return result;
}

static void set_door(bool closed) {
    if (slow_disk == NULL) {
        void *shared = mmap(NULL, sizeof *slow_disk, PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        slow_disk = shared != MAP_FAILED ? shared : NULL;
        REQUIRE(slow_disk != NULL);
    }
    atomic_store(&slow_disk->door.begun, 0);
    atomic_store(&slow_disk->door.passed, 0);
    atomic_store(&slow_disk->error, 0);
    atomic_store(&slow_disk->door.open, !closed);
}

static void open_door(void) {
    atomic_store(&slow_disk->door.open, true);
}

static int new_file(const char *name) {
    return open(in(check_folder(), name), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
}

static void it_is_fsync(void) {
    set_door(false);
    int fd = new_file("a");
    for (int refused = 0; refused < 2; refused++) {
        stk_start_fail_after(STK_START_PROCESS, refused ? 0 : -1);
        CHECK_INT(stk_sync(fd), 0);
        errno = 0;
        CHECK_INT(stk_sync(-1), -1);
        CHECK_INT(errno, EBADF);
        int ends[2];
        REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
        CHECK_INT(stk_sync(ends[0]), -1);
        CHECK_INT(errno, EINVAL);
        close(ends[0]);
        close(ends[1]);
    }
    stk_start_fail_after(STK_START_PROCESS, -1);
    CHECK_INT(atomic_load(&slow_disk->door.passed), 6);
    CHECK_INT(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC); /* ours are as they were */
    CHECK_INT(waitpid(-1, NULL, WNOHANG | __WALL), -1);     /* and no child is left */
    CHECK_INT(errno, ECHILD);
    close(fd);
}

static double hardly(void *user, double waited_s) {
    (void)user;
    (void)waited_s;
    return 0.02;
}

static double for_ever(void *user, double waited_s) {
    (void)user;
    (void)waited_s;
    return INFINITY;
}

static const stk_disk_config impatient = {.look_s = 60, .move_s = 60, .sync_s = hardly};

static void a_slow_one_is_left_to_itself(void) {
    set_door(true);
    int before = stk_disk_unsynced();
    stk_error err = {0};
    stk_disk *disk = stk_disk_enter(&impatient);
    const char *path = in(check_folder(), "a");
    REQUIRE_OK(stk_file_write(path, "new", 3, &err), &err);
    CHECK(stk_disk_unsynced() > before);
    CHECK(!stk_disk_hangs(path)); /* a slow disk is alive */
    CHECK(holds(path, "new"));
    for (int i = 0; i < 60; i++) { /* more than are begun at a time */
        REQUIRE_OK(stk_file_write(path, "newer", 5, &err), &err);
    }
    CHECK(holds(path, "newer"));
    int free_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    CHECK(free_fd < 40); /* files are closed all the same */
    close(free_fd);
    open_door();
    CHECK(door_comes(&slow_disk->door.passed, atomic_load(&slow_disk->door.begun)));
    before = stk_disk_unsynced();
    stk_disk_leave(disk);
    disk = stk_disk_enter(&(stk_disk_config){.look_s = 60, .move_s = 60, .sync_s = for_ever});
    REQUIRE_OK(stk_file_write(path, "last", 4, &err), &err);
    CHECK_INT(stk_disk_unsynced(), before);
    stk_disk_leave(disk);
}

/* It has a descriptor of its own, and what becomes of it is heard of. */
static void what_fails_later_is_counted(void) {
    set_door(true);
    atomic_store(&slow_disk->error, EIO);
    int before = stk_disk_unstored();
    struct stat info;
    stk_disk *disk = stk_disk_enter(&impatient);
    int fd = new_file("a");
    CHECK_INT(stk_disk_sync(fd, "a"), 0);
    CHECK(door_comes(&slow_disk->door.begun, 1)); /* what begins later may open this number anew */
    CHECK_INT(stk_disk_close(fd, "a"), 0);
    CHECK_INT(stk_disk_look_at(fd, "a", &info), -1); /* it is closed for us */
    CHECK_INT(errno, EBADF);
    CHECK_INT(stk_disk_unstored(), before);
    open_door();
    for (int i = 0; i < DOOR_MOST_MS && stk_disk_unstored() == before; i++) {
        (void)stk_disk_hangs("a"); /* looks who has come back */
        usleep(1000);
    }
    CHECK_INT(stk_disk_unstored(), before + 1);
    stk_disk_leave(disk);
}

static double waited; /* what a disk has told to have waited */

static double note_waited(void *user, double waited_s) {
    (void)user;
    waited = waited_s;
    return 30;
}

static void syncs_know_how_long_others_took(void) {
    set_door(false);
    stk_disk *disk =
        stk_disk_enter(&(stk_disk_config){.look_s = 60, .move_s = 60, .sync_s = note_waited});
    int fd = new_file("a");
    CHECK_INT(stk_disk_sync(fd, "a"), 0);
    CHECK(waited == 0);
    CHECK_INT(stk_disk_sync(fd, "a"), 0);
    CHECK(waited > 0);
    CHECK_INT(stk_disk_close(fd, "a"), 0);
    stk_disk_leave(disk);
}

static void without_a_patience_of_its_own_it_is_an_error(void) {
    set_door(true);
    int before = stk_disk_unsynced();
    stk_error err = {0};
    stk_disk *disk = stk_disk_enter(&(stk_disk_config){.look_s = 60, .move_s = 0.1});
    const char *path = in(check_folder(), "a");
    CHECK_INT(stk_file_write(path, "new", 3, &err), STK_ERR_STORAGE);
    CHECK_CONTAINS(err.message, "its disk gave no answer within");
    CHECK(stk_disk_hangs(path));
    CHECK_INT(stk_disk_unsynced(), before);
    open_door();
    stk_disk_leave(disk);
    CHECK(door_comes(&slow_disk->door.passed, 1));
}

static void a_file_behind_has_its_own_patience(void) {
    set_door(true);
    stk_write_behind writer = {.sync_s = 0.02};
    stk_file_writer *file = NULL;
    stk_error err = {0};
    const char *path = in(check_folder(), "a");
    int before = stk_disk_unsynced();
    REQUIRE_OK(stk_write_behind_begin(&writer, &file, path, true, &err), &err);
    REQUIRE_OK(stk_file_append(file, "state", 5, &err), &err);
    REQUIRE_OK(stk_file_commit(file, &err), &err);
    stk_write_behind_start(&writer);
    REQUIRE_OK(stk_write_behind_finish(&writer, &err), &err); /* while the door is closed */
    CHECK(stk_disk_unsynced() > before);
    CHECK(holds(path, "state"));
    open_door();
    stk_write_behind_free(&writer);
}

/*
 * The process ends, pipes and locks that it had end with it, and the one that waits for the disk
 * stays until that is done.
 */
static void the_process_can_end_meanwhile(void) {
#ifdef CHECK_THREAD_SANITIZED
    CHECK_SKIP("this sanitizer starts no threads after a fork");
#endif
    int ends[2];
    char byte;
    int how = -1;
    set_door(true);
    REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        stk_disk *disk = stk_disk_enter(&impatient);
        int fd = new_file("a");
        bool good = fd >= 0 && stk_disk_sync(fd, "a") == 0 && door_comes(&slow_disk->door.begun, 1);
        stk_disk_leave(disk);
        _exit(good ? 0 : 1);
    }
    close(ends[1]);
    CHECK(pid > 0 && waitpid(pid, &how, 0) == pid && how == 0);
    CHECK_INT(atomic_load(&slow_disk->door.passed), 0);
    CHECK_INT(read(ends[0], &byte, 1), 0); /* nobody holds the other end */
    CHECK_INT(atomic_load(&slow_disk->door.passed), 0);
    open_door();
    CHECK(door_comes(&slow_disk->door.passed, 1));
    close(ends[0]);
}

static const check_test tests[] = {
    TEST(it_is_fsync),
    TEST(the_process_can_end_meanwhile),
    TEST(syncs_know_how_long_others_took),
    TEST(what_fails_later_is_counted),
    /* From here on a call may still be on its way when the next one begins. */
    TEST(a_slow_one_is_left_to_itself),
    TEST(without_a_patience_of_its_own_it_is_an_error),
    TEST(a_file_behind_has_its_own_patience),
};

CHECK_MAIN(tests)
