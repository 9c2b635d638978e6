/*
 * test_base_write_target.c - what is replaced, what is written to, and what is refused.
 *
 * Devices are made in the test's folder where that is allowed: a test that fails must not replace
 * one of the machine's. Where it is not allowed, nobody could replace those either.
 */
#include "check.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>

#include "base/clock.h"
#include "base/files/file.h"
#include "base/files/file_lock.h"
#include "base/files/write_target.h"
#include "base/mem.h"
#include "folder_looks.h"
#include "report/observers/lines.h"
#include "supervise/output/transcript.h"

#define MANY_BYTES 300000 /* more than a pipe holds */

static const stk_file_how chosen = {.chosen = true};

static mode_t kind_of(const char *path) {
    struct stat info;
    return lstat(path, &info) == 0 ? info.st_mode & S_IFMT : 0;
}

static int mode_of(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 ? (int)(info.st_mode & 07777) : -1;
}

/*
 * A device of the machine's by its number, or a link to it for who may not make one. NULL for a
 * root who may not: he could replace the machine's.
 */
static const char *device(const char *folder, const char *name, unsigned int minor_number) {
    const char *path = in(folder, name);
    bool made = mknod(path, S_IFCHR | 0666, makedev(1, minor_number)) == 0;
    int fd = made ? open(path, O_WRONLY | O_CLOEXEC) : -1; /* a mount may not allow devices */
    if (fd >= 0) {
        close(fd);
        return path;
    }
    (void)unlink(path);
    return geteuid() != 0 && symlink(in("/dev", name), path) == 0 ? path : NULL;
}

static void links_to_own_files_are_refused(void) {
    const char *folder = check_folder();
    const char *path = in(folder, "own");
    const char *other = in(folder, "other");
    stk_error errs[6] = {0};
    bool taken = true;
    int fd = 7;
    REQUIRE_OK(stk_file_write(other, "precious", 8, &errs[0]), &errs[0]);
    REQUIRE(symlink("other", path) == 0);
    CHECK_INT(stk_file_write(path, "x", 1, &errs[1]), STK_ERR_STORAGE);
    CHECK_CONTAINS(errs[1].message, "it is a link");
    CHECK_CONTAINS(errs[1].message, path);
    CHECK_INT(stk_lines_open(path, &fd, &errs[2]), STK_ERR_STORAGE);
    CHECK_CONTAINS(errs[2].message, "it is a link");
    CHECK_INT(stk_file_lock(path, &fd, &taken, &errs[3]), STK_ERR_STORAGE);
    CHECK_CONTAINS(errs[3].message, "it is a link");
    CHECK(!taken && fd == -1);
    CHECK_INT(stk_file_alias(other, path, &errs[4]), STK_ERR_STORAGE);
    CHECK_CONTAINS(errs[4].message, "it is a link");
    stk_transcript *transcript = NULL; /* output.log, which is made empty when it is opened */
    CHECK_INT(stk_transcript_open(&transcript, path, 10, &errs[5]), STK_ERR_STORAGE);
    CHECK(kind_of(path) == S_IFLNK && holds(other, "precious"));
    CHECK_INT(entries(folder), 2);
}

/* Nothing is waited for, and what is there stays. */
static void pipes_in_place_of_own_files_are_refused(void) {
    const char *folder = check_folder();
    const char *path = in(folder, "pipe");
    stk_error errs[4] = {0};
    stk_lock_state state = STK_LOCK_HELD;
    bool taken = true;
    int fd = 7;
    REQUIRE(mkfifo(path, 0600) == 0);
    CHECK_INT(stk_file_write(path, "x", 1, &errs[0]), STK_ERR_STORAGE);
    CHECK_CONTAINS(errs[0].message, "a named pipe");
    CHECK_INT(stk_lines_open(path, &fd, &errs[1]), STK_ERR_STORAGE);
    CHECK_CONTAINS(errs[1].message, "a named pipe");
    CHECK_INT(stk_file_lock(path, &fd, &taken, &errs[2]), STK_ERR_STORAGE);
    (void)!stk_file_lock_look(path, &state, NULL);
    CHECK(kind_of(path) == S_IFIFO && entries(folder) == 1);
}

/* The name of the thread's number, which was used once, and a link that waits there. */
static void hidden_names_are_not_guessed(void) {
    const char *folder = check_folder();
    const char *path = in(folder, "a");
    const char *victim = in(folder, "victim");
    char planted[600];
    stk_error err = {0};
    snprintf(planted, sizeof planted, "%s/.a.%ld.tmp", folder, (long)gettid());
    REQUIRE_OK(stk_file_write(victim, "precious", 8, &err), &err);
    REQUIRE(symlink("victim", planted) == 0);
    REQUIRE_OK(stk_file_write(path, "new", 3, &err), &err);
    CHECK(holds(victim, "precious") && holds(path, "new"));
    CHECK(kind_of(path) == S_IFREG);
    /* Two writers of one path at a time have two hidden files. */
    stk_file_writer *first = NULL;
    stk_file_writer *second = NULL;
    REQUIRE_OK(stk_file_create(&first, path, &err), &err);
    REQUIRE_OK(stk_file_create(&second, path, &err), &err);
    REQUIRE_OK(stk_file_append(first, "1", 1, &err), &err);
    REQUIRE_OK(stk_file_append(second, "2", 1, &err), &err);
    REQUIRE_OK(stk_file_commit(second, &err), &err);
    CHECK(holds(path, "2"));
    REQUIRE_OK(stk_file_commit(first, &err), &err);
    CHECK(holds(path, "1"));
    CHECK_INT(entries(folder), 3);
}

static void long_names_are_written(void) {
    char name[256];
    stk_error err = {0};
    memset(name, 'n', sizeof name);
    name[255] = '\0';
    const char *path = in(check_folder(), name);
    REQUIRE_OK(stk_file_write(path, "x", 1, &err), &err);
    CHECK(holds(path, "x"));
}

static void chosen_links_are_followed(void) {
    const char *folder = check_folder();
    stk_error err = {0};
    stk_error errs[3] = {0};
    const char *link_path = in(folder, "link");
    const char *real = in(folder, "d/real");
    REQUIRE_OK(stk_dir_make(in(folder, "d"), &err), &err);
    REQUIRE(symlink("d/chain", link_path) == 0 && symlink("real", in(folder, "d/chain")) == 0);
    /* The first makes the file that the links lead to, the second replaces it. */
    REQUIRE_OK(stk_file_write_how(link_path, "one", 3, &chosen, &err), &err);
    CHECK(holds(real, "one"));
    REQUIRE(chmod(real, 0640) == 0);
    REQUIRE_OK(stk_file_write_how(link_path, "two", 3, &chosen, &err), &err);
    CHECK(holds(real, "two") && mode_of(real) == 0640);
    REQUIRE_OK(stk_file_show(link_path, "three", 5, &err), &err);
    CHECK(holds(real, "three") && mode_of(real) == 0644);
    CHECK(kind_of(link_path) == S_IFLNK && kind_of(in(folder, "d/chain")) == S_IFLNK);
    CHECK(entries(folder) == 2 && entries(in(folder, "d")) == 2);
    REQUIRE(symlink("circle", in(folder, "circle")) == 0);
    CHECK_INT(stk_file_write_how(in(folder, "circle"), "x", 1, &chosen, &errs[0]), STK_ERR_STORAGE);
    REQUIRE(symlink("no/such/file", in(folder, "lost")) == 0);
    CHECK_INT(stk_file_write_how(in(folder, "lost"), "x", 1, &chosen, &errs[1]), STK_ERR_STORAGE);
    CHECK_CONTAINS(errs[1].message, "lost");
    REQUIRE(symlink("d", in(folder, "to-folder")) == 0);
    CHECK_INT(stk_file_write_how(in(folder, "to-folder"), "x", 1, &chosen, &errs[2]),
              STK_ERR_STORAGE);
    CHECK_CONTAINS(errs[2].message, "a folder");
    CHECK_INT(entries(folder), 5);
}

typedef struct drain {
    const char *path;
    size_t bytes;
} drain;

static void *read_all(void *user) {
    drain *d = user;
    char piece[4096];
    int fd = open(d->path, O_RDONLY | O_CLOEXEC);
    for (ssize_t got = 1; fd >= 0 && got > 0;) {
        got = read(fd, piece, sizeof piece);
        d->bytes += got > 0 ? (size_t)got : 0;
    }
    if (fd >= 0) {
        close(fd);
    }
    return NULL;
}

static void pipes_are_written_to(void) {
    const char *folder = check_folder();
    const char *path = in(folder, "pipe");
    stk_error err = {0};
    drain d = {.path = path};
    pthread_t reader;
    char *many = stk_mem_new(MANY_BYTES, 1);
    REQUIRE(many != NULL && mkfifo(path, 0600) == 0);
    REQUIRE_OK(stk_write_target_check("--out", path, &err), &err);
    REQUIRE(pthread_create(&reader, NULL, read_all, &d) == 0);
    stk_status status = stk_file_write_how(path, many, MANY_BYTES, &chosen, &err);
    pthread_join(reader, NULL);
    stk_mem_free(many);
    REQUIRE_OK(status, &err);
    CHECK_INT(d.bytes, MANY_BYTES);
    CHECK(kind_of(path) == S_IFIFO && entries(folder) == 1);
}

static void *ask_to_stop(void *user) {
    usleep(50000);
    stk_stop_request(user, STK_STOP_SOON, 9);
    return NULL;
}

/* Whoever writes to a pipe that nobody reads, or not to its end, can be stopped. */
static void a_missing_reader_is_not_waited_for_for_ever(void) {
    const char *path = in(check_folder(), "pipe");
    stk_error errs[4] = {0};
    stk_stop stop = {0};
    pthread_t asker;
    char *many = stk_mem_new(MANY_BYTES, 1);
    REQUIRE(many != NULL && mkfifo(path, 0600) == 0);
    CHECK_INT(stk_file_show(path, "x", 1, &errs[0]), STK_ERR_STORAGE);
    CHECK_CONTAINS(errs[0].message, "nobody reads it");
    stk_file_how late = {.chosen = true, .deadline_ns = stk_clock_ns() + 50000000};
    CHECK_INT(stk_file_write_how(path, "x", 1, &late, &errs[1]), STK_ERR_STORAGE);
    stk_file_how how = {.chosen = true, .stop = &stop};
    REQUIRE(pthread_create(&asker, NULL, ask_to_stop, &stop) == 0);
    CHECK_INT(stk_file_write_how(path, "x", 1, &how, &errs[2]), STK_ERR_STOPPED);
    CHECK_CONTAINS(errs[2].message, path);
    pthread_join(asker, NULL);
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC); /* reads nothing */
    REQUIRE(fd >= 0);
    CHECK_INT(stk_file_write_how(path, many, MANY_BYTES, &how, &errs[3]), STK_ERR_STOPPED);
    close(fd);
    stk_mem_free(many);
    CHECK(kind_of(path) == S_IFIFO);
}

/* A reader who leaves is an error; the signal of it does not end the program. */
static void a_reader_may_leave(void) {
    stk_error err = {0};
    char name[64];
    int ends[2];
    REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
    close(ends[0]);
    snprintf(name, sizeof name, "/proc/self/fd/%d", ends[1]);
    CHECK_INT(stk_file_write_how(name, "abc", 3, &chosen, &err), STK_ERR_STORAGE);
    CHECK_CONTAINS(err.message, "whoever read it has gone");
    close(ends[1]);
}

/* A descriptor of this process takes bytes behind what it has; a file behind it is not replaced. */
static void descriptors_are_written_to(void) {
    const char *folder = check_folder();
    const char *path = in(folder, "redirected");
    const char *link_path = in(folder, "stdout");
    stk_error err = {0};
    char name[64];
    int sockets[2];
    char got[4] = {0};
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    REQUIRE(fd >= 0 && write(fd, "lines\n", 6) == 6);
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    REQUIRE(symlink(name, link_path) == 0);
    CHECK(stk_write_target_is_descriptor(link_path, fd) &&
          !stk_write_target_is_descriptor(link_path, fd + 1));
    CHECK(!stk_write_target_is_descriptor(path, fd));
    REQUIRE_OK(stk_file_write_how(link_path, "rows\n", 5, &chosen, &err), &err);
    REQUIRE(write(fd, "more\n", 5) == 5);
    CHECK(holds(path, "lines\nrows\nmore\n"));
    REQUIRE_OK(stk_write_target_check("--out", link_path, &err), &err);
    close(fd);
    CHECK(kind_of(link_path) == S_IFLNK && entries(folder) == 2);
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) == 0);
    snprintf(name, sizeof name, "/dev/fd/%d", sockets[0]);
    REQUIRE_OK(stk_file_write_how(name, "abc", 3, &chosen, &err), &err);
    CHECK(read(sockets[1], got, 3) == 3 && memcmp(got, "abc", 3) == 0);
    close(sockets[0]);
    close(sockets[1]);
}

static void devices_are_written_to(void) {
    const char *folder = check_folder();
    stk_error errs[3] = {0};
    const char *null = device(folder, "null", 3);
    const char *full = device(folder, "full", 7);
    if (null == NULL || full == NULL) {
        CHECK_SKIP("no device can be made here");
    }
    mode_t kinds[] = {kind_of(null), kind_of(full)};
    REQUIRE_OK(stk_file_write_how(null, "abc", 3, &chosen, &errs[0]), &errs[0]);
    CHECK_INT(stk_file_write_how(full, "abc", 3, &chosen, &errs[1]), STK_ERR_STORAGE);
    CHECK_CONTAINS(errs[1].message, "No space left");
    CHECK(kind_of(null) == kinds[0] && kind_of(full) == kinds[1]);
    CHECK_INT(entries(folder), 2);
}

static void sockets_and_folders_are_refused(void) {
    const char *folder = check_folder();
    stk_error errs[4] = {0};
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%.90s/s", folder);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    REQUIRE(fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address) == 0);
    CHECK_INT(stk_file_write_how(address.sun_path, "x", 1, &chosen, &errs[0]), STK_ERR_STORAGE);
    CHECK_CONTAINS(errs[0].message, "a socket");
    CHECK_INT(stk_write_target_check("--plot", address.sun_path, &errs[1]), STK_ERR_USAGE);
    CHECK_CONTAINS(errs[1].message, "--plot");
    CHECK(kind_of(address.sun_path) == S_IFSOCK);
    close(fd);
    CHECK_INT(stk_file_write_how(folder, "x", 1, &chosen, &errs[2]), STK_ERR_STORAGE);
    CHECK_CONTAINS(errs[2].message, "a folder");
}

static void the_mode_of_the_old_file_is_kept(void) {
    const char *folder = check_folder();
    const char *path = in(folder, "a");
    stk_error err = {0};
    struct stat info;
    mode_t before = umask(022);
    stk_status status = stk_file_write(path, "1", 1, &err);
    umask(before);
    REQUIRE_OK(status, &err);
    CHECK_INT(mode_of(path), 0644);
    static const mode_t modes[] = {0600, 0664, 0444};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        REQUIRE(chmod(path, modes[i]) == 0);
        REQUIRE_OK(stk_file_write(path, "2", 1, &err), &err);
        CHECK_INT(mode_of(path), modes[i]);
    }
    if (geteuid() == 0) { /* nobody else may give files away */
        REQUIRE(chown(path, 12345, 54321) == 0);
        REQUIRE_OK(stk_file_write_how(path, "3", 1, &chosen, &err), &err);
        CHECK(stat(path, &info) == 0 && info.st_uid == 12345 && info.st_gid == 54321);
    }
    const stk_file_how secret = {.owner_only = true};
    REQUIRE_OK(stk_file_write_how(path, "4", 1, &secret, &err), &err);
    CHECK(mode_of(path) == 0600 && stat(path, &info) == 0 && info.st_uid == geteuid());
    REQUIRE_OK(stk_file_write_how(in(folder, "b"), "4", 1, &secret, &err), &err);
    CHECK_INT(mode_of(in(folder, "b")), 0600);
}

/* Nothing is left behind and nothing is lost for want of memory. */
static void lack_of_memory_keeps_the_old_file(void) {
    const char *folder = check_folder();
    const char *link_path = in(folder, "link");
    stk_error err = {0};
    REQUIRE_OK(stk_file_write(in(folder, "real"), "old", 3, &err), &err);
    REQUIRE(symlink("real", link_path) == 0);
    stk_status status = STK_ERR_MEMORY;
    int failed = 0;
    for (int i = 0; i < 30 && status != STK_OK; i++) {
        stk_mem_fail_after(i);
        status = stk_file_write_how(link_path, "new", 3, &chosen, NULL);
        stk_mem_fail_after(-1);
        failed += status != STK_OK;
        CHECK(status == STK_OK || holds(in(folder, "real"), "old"));
        CHECK_INT(entries(folder), 2);
    }
    CHECK(status == STK_OK && failed > 3 && holds(in(folder, "real"), "new"));
}

static const check_test tests[] = {
    TEST(links_to_own_files_are_refused),
    TEST(pipes_in_place_of_own_files_are_refused),
    TEST(hidden_names_are_not_guessed),
    TEST(long_names_are_written),
    TEST(chosen_links_are_followed),
    TEST(pipes_are_written_to),
    TEST(a_missing_reader_is_not_waited_for_for_ever),
    TEST(a_reader_may_leave),
    TEST(descriptors_are_written_to),
    TEST(devices_are_written_to),
    TEST(sockets_and_folders_are_refused),
    TEST(the_mode_of_the_old_file_is_kept),
    TEST(lack_of_memory_keeps_the_old_file),
};

CHECK_MAIN(tests)
