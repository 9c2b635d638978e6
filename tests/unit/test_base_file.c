/* test_base_file.c - atomic writing, reading, folders and locks. */
#include "check.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/files/file.h"
#include "base/files/file_lock.h"
#include "base/mem.h"
#include "base/str.h"
#include "folder_looks.h"

static void gives_a_file_a_second_name(void) {
    const char *folder = check_folder();
    stk_error err = {0};
    const char *path = in(folder, "best");
    const char *alias = in(folder, "last");
    REQUIRE_OK(stk_file_write(path, "one", 3, &err), &err);
    REQUIRE_OK(stk_file_write(alias, "before", 6, &err), &err);
    REQUIRE_OK(stk_file_alias(path, alias, &err), &err);
    REQUIRE_OK(stk_file_alias(path, alias, &err), &err);
    CHECK(holds(alias, "one"));
    REQUIRE_OK(stk_file_write(path, "two", 3, &err), &err);
    CHECK(holds(alias, "one"));
    REQUIRE_OK(stk_file_write(alias, "three", 5, &err), &err);
    CHECK(holds(path, "two"));
    CHECK(stk_file_alias(in(folder, "nothing"), alias, &err) == STK_ERR_STORAGE);
    CHECK(holds(alias, "three"));
    CHECK(entries(folder) == 2);
}

static void writes_and_reads(void) {
    const char *folder = check_folder();
    stk_error err = {0};
    const char *path = in(folder, "a.txt");
    REQUIRE_OK(stk_file_write(path, "first", 5, &err), &err);
    CHECK(holds(path, "first"));
    REQUIRE_OK(stk_file_write(path, "second, longer", 14, &err), &err);
    CHECK(holds(path, "second, longer"));
    REQUIRE_OK(stk_file_write(path, NULL, 0, &err), &err);
    CHECK(holds(path, ""));
    CHECK_INT(entries(folder), 1);
    CHECK(stk_path_is_file(path) && !stk_path_is_dir(path));
    CHECK(stk_path_is_dir(folder) && !stk_path_is_file(folder));
    CHECK(!stk_path_is_file(in(folder, "b")) && !stk_path_is_dir(in(folder, "b")));
}

static void what_is_shown_can_be_read_by_all(void) {
    const char *folder = check_folder();
    stk_error err = {0};
    struct stat info;
    const char *path = in(folder, "a.txt");
    mode_t before = umask(077);
    REQUIRE_OK(stk_file_write(path, "of few", 6, &err), &err);
    stk_status status = stk_file_show(path, "of all", 6, &err);
    umask(before);
    REQUIRE_OK(status, &err);
    CHECK(holds(path, "of all"));
    REQUIRE(stat(path, &info) == 0);
    CHECK_INT(info.st_mode & 0777, 0644);
    CHECK_INT(entries(folder), 1);
    CHECK_INT(stk_file_show(in(folder, "no/such/a"), "x", 1, NULL), STK_ERR_STORAGE);
    REQUIRE_OK(stk_dir_make(in(folder, "d"), &err), &err);
    CHECK_INT(stk_file_show(in(folder, "d"), "x", 1, NULL), STK_ERR_STORAGE);
    CHECK(stk_path_is_dir(in(folder, "d")));
    CHECK_INT(entries(folder), 2);
}

static void reading_has_limits(void) {
    const char *folder = check_folder();
    const char *path = in(folder, "a");
    char *data = NULL;
    size_t size = 0;
    stk_error err = {0};
    REQUIRE_OK(stk_file_write(path, "12345", 5, &err), &err);
    REQUIRE_OK(stk_file_read(path, 5, &data, &size, &err), &err);
    CHECK_INT(size, 5);
    CHECK_INT(data[5], 0);
    stk_mem_free(data);
    CHECK_INT(stk_file_read(path, 4, &data, &size, &err), STK_ERR_STORAGE);
    CHECK_CONTAINS(err.message, "larger than 4 bytes");
    memset(&err, 0, sizeof err);
    CHECK_INT(stk_file_read(folder, 0, &data, &size, &err), STK_ERR_STORAGE);
    CHECK_CONTAINS(err.message, "folder");
    memset(&err, 0, sizeof err);
    CHECK_INT(stk_file_read(in(folder, "none"), 0, &data, &size, &err), STK_ERR_STORAGE);
    CHECK_CONTAINS(err.message, "No such file");
    /* Files whose size the system tells as 0 are read to their end too. */
    REQUIRE_OK(stk_file_read("/proc/self/status", 0, &data, &size, &err), &err);
    CHECK(size > 100 && strlen(data) == size);
    stk_mem_free(data);
    CHECK_INT(stk_file_read("/proc/self/status", 10, &data, &size, NULL), STK_ERR_STORAGE);
}

static void blocks_grow_and_keep_their_bytes(void) {
    stk_bytes bytes = {0};
    REQUIRE(stk_bytes_reserve(&bytes, 3) && bytes.capacity == 3);
    memcpy(bytes.data, "abc", 3);
    REQUIRE(stk_bytes_reserve(&bytes, 100000) && bytes.capacity == 100000);
    CHECK(memcmp(bytes.data, "abc", 3) == 0);
    CHECK(stk_bytes_reserve(&bytes, 5) && bytes.capacity == 100000);
    stk_mem_fail_after(0);
    CHECK(!stk_bytes_reserve(&bytes, 200000) && bytes.capacity == 100000);
    stk_mem_fail_after(-1);
    CHECK(memcmp(bytes.data, "abc", 3) == 0);
    stk_bytes_free(&bytes);
}

static void pieces_appear_at_commit(void) {
    const char *folder = check_folder();
    const char *path = in(folder, "a");
    stk_file_writer *writer = NULL;
    stk_error err = {0};
    REQUIRE_OK(stk_file_write(path, "old", 3, &err), &err);
    REQUIRE_OK(stk_file_create(&writer, path, &err), &err);
    REQUIRE_OK(stk_file_append(writer, "ne", 2, &err), &err);
    CHECK(holds(path, "old"));
    REQUIRE_OK(stk_file_append(writer, "w", 1, &err), &err);
    REQUIRE_OK(stk_file_commit(writer, &err), &err);
    CHECK(holds(path, "new"));
    REQUIRE_OK(stk_file_create(&writer, path, &err), &err);
    REQUIRE_OK(stk_file_append(writer, "lost", 4, &err), &err);
    CHECK_INT(entries(folder), 2);
    stk_file_discard(writer);
    CHECK(holds(path, "new"));
    CHECK_INT(entries(folder), 1);
    stk_file_discard(NULL);
}

/* Of the only file in a folder whose name is hidden; -1: there is none. */
static long hidden_bytes(const char *folder) {
    struct stat info;
    long bytes = -1;
    DIR *open_folder = opendir(folder);
    const struct dirent *entry;
    while (open_folder != NULL && (entry = readdir(open_folder)) != NULL) {
        if (entry->d_name[0] == '.' && strlen(entry->d_name) > 2 &&
            stat(in(folder, entry->d_name), &info) == 0) {
            bytes = (long)info.st_size;
        }
    }
    closedir(open_folder);
    return bytes;
}

/* Each write waits for a thread: small ones are held until they make up a megabyte. */
static void small_pieces_are_written_together(void) {
    enum { PIECE = 4096, MEGABYTE = 1 << 20, LARGE = 3 << 20 };
    const char *folder = check_folder();
    stk_error err = {0};
    char *all = stk_mem_raw(2 * LARGE, 1);
    REQUIRE(all != NULL);
    for (size_t i = 0; i < (size_t)2 * LARGE; i++) {
        all[i] = (char)(i * 7 >> 5);
    }
    for (int without_memory = 0; without_memory < 2; without_memory++) {
        stk_file_writer *writer = NULL;
        char *back = NULL;
        size_t got = 0;
        size_t size = 0;
        REQUIRE_OK(stk_file_create(&writer, in(folder, "a"), &err), &err);
        stk_mem_fail_after(without_memory ? 0 : -1);
        for (; size < MEGABYTE + (size_t)5 * PIECE; size += PIECE) {
            REQUIRE_OK(stk_file_append(writer, all + size, PIECE, &err), &err);
        }
        stk_mem_fail_after(-1);
        CHECK_INT(hidden_bytes(folder), without_memory ? (long)size : MEGABYTE);
        REQUIRE_OK(stk_file_append(writer, all + size, LARGE, &err), &err);
        size += LARGE;
        CHECK_INT(hidden_bytes(folder), (long)size);
        REQUIRE_OK(stk_file_append(writer, all + size, 3, &err), &err);
        size += 3;
        REQUIRE_OK(stk_file_commit(writer, &err), &err);
        REQUIRE_OK(stk_file_read(in(folder, "a"), 0, &back, &got, &err), &err);
        CHECK(got == size && memcmp(back, all, size) == 0);
        stk_mem_free(back);
    }
    stk_mem_free(all);
}

static void relative_names_work(void) {
    const char *folder = check_folder();
    char before[512];
    stk_error err = {0};
    REQUIRE(getcwd(before, sizeof before) != NULL && chdir(folder) == 0);
    stk_status status = stk_file_write("plain", "x", 1, &err);
    CHECK(status == STK_OK && holds("plain", "x"));
    CHECK(chdir(before) == 0);
}

/* In a child, since a limit on file sizes concerns the whole process. */
static int write_over_limit(const char *path) {
    struct rlimit limit = {SIZE_LIMIT, SIZE_LIMIT};
    signal(SIGXFSZ, SIG_IGN);
    char *big = stk_mem_new(2 * SIZE_LIMIT, 1);
    stk_error err = {0};
    if (big == NULL || setrlimit(RLIMIT_FSIZE, &limit) != 0) {
        return 2;
    }
    stk_status status = stk_file_write(path, big, 2 * SIZE_LIMIT, &err);
    bool told = strstr(err.message, path) != NULL && strstr(err.message, "too large") != NULL;
    stk_mem_free(big);
    return status == STK_ERR_STORAGE && told ? 0 : 1;
}

static void a_failed_write_keeps_the_old_file(void) {
    check_old_file_stays(write_over_limit);
}

static void writing_where_nothing_can_be_written(void) {
    const char *folder = check_folder();
    stk_error err = {0};
    CHECK_INT(stk_file_write(in(folder, "no/such/a"), "x", 1, &err), STK_ERR_STORAGE);
    CHECK_CONTAINS(err.message, "no/such/a");
    memset(&err, 0, sizeof err);
    REQUIRE_OK(stk_dir_make(in(folder, "d/e"), &err), &err);
    CHECK_INT(stk_file_write(in(folder, "d"), "x", 1, &err), STK_ERR_STORAGE);
    CHECK(stk_path_is_dir(in(folder, "d/e")));
    CHECK_INT(entries(folder), 1);
    for (int i = 0; i < 3; i++) {
        stk_mem_fail_after(i);
        CHECK_INT(stk_file_write(in(folder, "m"), "x", 1, NULL), STK_ERR_MEMORY);
        stk_mem_fail_after(-1);
    }
    CHECK_INT(entries(folder), 1);
}

static void *write_often(void *argument) {
    char text[2001];
    const char *path = argument;
    static atomic_int writers;
    memset(text, 'a' + atomic_fetch_add(&writers, 1), sizeof text - 1);
    for (int i = 0; i < 50; i++) {
        if (stk_file_write(path, text, sizeof text - 1, NULL) != STK_OK) {
            return argument;
        }
    }
    return NULL;
}

/* Whoever comes last wins, and nobody ever sees a mixture. */
static void threads_may_write_one_file(void) {
    const char *folder = check_folder();
    const char *path = in(folder, "shared");
    pthread_t threads[3];
    char *data = NULL;
    size_t size = 0;
    stk_error err = {0};
    for (int i = 0; i < 3; i++) {
        REQUIRE(pthread_create(&threads[i], NULL, write_often, (void *)(uintptr_t)path) == 0);
    }
    for (int i = 0; i < 3; i++) {
        void *failed = NULL;
        pthread_join(threads[i], &failed);
        CHECK(failed == NULL);
    }
    REQUIRE_OK(stk_file_read(path, 0, &data, &size, &err), &err);
    CHECK_INT(size, 2000);
    CHECK_INT(strspn(data, (char[]){data[0], '\0'}), 2000);
    CHECK_INT(entries(folder), 1);
    stk_mem_free(data);
}

static void makes_folders(void) {
    const char *folder = check_folder();
    stk_error err = {0};
    bool made = false;
    REQUIRE_OK(stk_dir_make(in(folder, "a/b//c/"), &err), &err);
    CHECK(stk_path_is_dir(in(folder, "a/b/c")));
    REQUIRE_OK(stk_dir_make(in(folder, "a/b/c"), &err), &err);
    REQUIRE_OK(stk_dir_make("/", &err), &err);
    CHECK_INT(stk_dir_make("", &err), STK_ERR_STORAGE);
    memset(&err, 0, sizeof err);
    REQUIRE_OK(stk_dir_claim(in(folder, "run"), &made, &err), &err);
    CHECK(made);
    REQUIRE_OK(stk_dir_claim(in(folder, "run"), &made, &err), &err);
    CHECK(!made);
    CHECK_INT(stk_dir_claim(in(folder, "x/y"), &made, &err), STK_ERR_STORAGE);
    memset(&err, 0, sizeof err);
    REQUIRE_OK(stk_file_write(in(folder, "f"), "x", 1, &err), &err);
    CHECK_INT(stk_dir_make(in(folder, "f/g"), &err), STK_ERR_STORAGE);
    CHECK_CONTAINS(err.message, "is a file");
}

/* A disk is not to blame for what the process lacks. */
static void lack_of_descriptors_is_lack_of_memory(void) {
    const char *folder = check_folder();
    stk_error errs[3] = {0};
    stk_dir_list list;
    char *data = NULL;
    size_t size = 0;
    struct rlimit before;
    REQUIRE(stk_file_write(in(folder, "a"), "x", 1, &errs[0]) == STK_OK);
    int free_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    REQUIRE(free_fd >= 0 && getrlimit(RLIMIT_NOFILE, &before) == 0);
    close(free_fd);
    struct rlimit none = {(rlim_t)free_fd, before.rlim_max};
    REQUIRE(setrlimit(RLIMIT_NOFILE, &none) == 0);
    stk_status listed = stk_dir_read(folder, &list, &errs[0]);
    stk_status read = stk_file_read(in(folder, "a"), 0, &data, &size, &errs[1]);
    stk_status written = stk_file_write(in(folder, "a"), "new", 3, &errs[2]);
    REQUIRE(setrlimit(RLIMIT_NOFILE, &before) == 0);
    CHECK_INT(listed, STK_ERR_MEMORY);
    CHECK_INT(read, STK_ERR_MEMORY);
    CHECK_INT(written, STK_ERR_MEMORY);
    for (int i = 0; i < 3; i++) {
        CHECK_CONTAINS(errs[i].message, "Too many open files");
    }
    CHECK(holds(in(folder, "a"), "x"));
}

static void lists_are_sorted(void) {
    static const char *const names[] = {"b", "a10", "a2", "B", ".hidden", "\xC3\xA9", "z"};
    const char *folder = check_folder();
    stk_error err = {0};
    stk_dir_list list;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        REQUIRE_OK(stk_file_write(in(folder, names[i]), "", 0, &err), &err);
    }
    REQUIRE_OK(stk_dir_make(in(folder, "dir"), &err), &err);
    REQUIRE(symlink("dir", in(folder, "link")) == 0 && symlink("none", in(folder, "lost")) == 0);
    REQUIRE_OK(stk_dir_read(folder, &list, &err), &err);
    static const char *const sorted[] = {"B",    "a10",  "a2", "b",       "dir",
                                         "link", "lost", "z",  "\xC3\xA9"};
    REQUIRE(list.count == sizeof sorted / sizeof *sorted);
    for (size_t i = 0; i < list.count; i++) {
        CHECK_STR(list.entries[i].name, sorted[i]);
        CHECK(list.entries[i].is_dir == (i == 4 || i == 5));
    }
    stk_dir_list_free(&list);
    CHECK_INT(stk_dir_read(in(folder, "none"), &list, &err), STK_ERR_STORAGE);
    CHECK_CONTAINS(err.message, "none");
    CHECK(list.count == 0);
    stk_status status = STK_ERR_MEMORY;
    for (int i = 0; i < 50 && status != STK_OK; i++) {
        stk_mem_fail_after(i);
        status = stk_dir_read(folder, &list, NULL);
        stk_mem_fail_after(-1);
        CHECK(status == STK_OK || status == STK_ERR_MEMORY);
    }
    CHECK_INT(status, STK_OK);
    stk_dir_list_free(&list);
    stk_dir_list_free(&list);
}

static void joins_paths(void) {
    static const char *const cases[][3] = {
        {"a", "b", "a/b"}, {"a/", "b", "a/b"}, {"", "b", "b"}, {"a", "/b", "/b"}, {"/", "b", "/b"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *joined = stk_path_join(cases[i][0], cases[i][1]);
        CHECK_STR(joined, cases[i][2]);
        stk_mem_free(joined);
    }
    CHECK_STR(stk_path_base("a/b.c"), "b.c");
    CHECK_STR(stk_path_base("b"), "b");
    CHECK_STR(stk_path_base("a/"), "");
}

static void cuts_slashes_off_the_end(void) {
    static const char *const trimmed[][2] = {{"a", "a"},   {"a/b/", "a/b"}, {"a///", "a"},
                                             {"/a", "/a"}, {"/", "/"},      {"///", "/"},
                                             {"", ""}};
    for (size_t i = 0; i < sizeof trimmed / sizeof *trimmed; i++) {
        char *path = stk_path_trim(trimmed[i][0]);
        CHECK_STR(path, trimmed[i][1]);
        stk_mem_free(path);
    }
    stk_mem_fail_after(0);
    CHECK(stk_path_trim("a/") == NULL);
    stk_mem_fail_after(-1);
}

static void a_lock_has_one_holder(void) {
    const char *folder = check_folder();
    const char *path = in(folder, "lock");
    stk_error err = {0};
    int first = -1;
    int second = 7;
    bool taken = false;
    REQUIRE_OK(stk_file_lock(path, &first, &taken, &err), &err);
    CHECK(taken && first >= 0);
    REQUIRE_OK(stk_file_lock(path, &second, &taken, &err), &err);
    CHECK(!taken && second == -1);
    stk_file_unlock(first, ".");
    REQUIRE_OK(stk_file_lock(path, &second, &taken, &err), &err);
    CHECK(taken);
    stk_file_unlock(second, ".");
    stk_file_unlock(-1, ".");
    CHECK_INT(stk_file_lock(in(folder, "no/lock"), &first, &taken, &err), STK_ERR_STORAGE);
    CHECK(!taken);
}

/* Looking tells who holds a lock from who does not, and makes and changes nothing. */
static void looking_at_a_lock(void) {
    const char *folder = check_folder();
    const char *path = in(folder, "lock");
    stk_error err = {0};
    stk_lock_state state = STK_LOCK_HELD;
    bool taken = false;
    int fd = -1;
    REQUIRE_OK(stk_file_lock_look(path, &state, &err), &err);
    CHECK_INT(state, STK_LOCK_FREE);
    CHECK(!stk_path_is_file(path));
    REQUIRE_OK(stk_file_lock(path, &fd, &taken, &err), &err);
    REQUIRE_OK(stk_file_lock_look(path, &state, &err), &err);
    CHECK_INT(state, STK_LOCK_HELD);
    stk_file_unlock(fd, ".");
    REQUIRE_OK(stk_file_lock_look(path, &state, &err), &err);
    CHECK_INT(state, STK_LOCK_FREE);
    REQUIRE_OK(stk_file_lock(path, &fd, &taken, &err), &err);
    CHECK(taken);
    stk_file_unlock(fd, ".");
}

static void pieces_are_read_anywhere(void) {
    stk_error err = {0};
    char path[300];
    char got[8] = {0};
    stk_file_reader *reader = NULL;
    snprintf(path, sizeof path, "%s/pieces", check_folder());
    REQUIRE_OK(stk_file_write(path, "0123456789", 10, &err), &err);
    REQUIRE_OK(stk_file_open(&reader, path, &err), &err);
    CHECK_INT(stk_file_size(reader), 10);
    REQUIRE_OK(stk_file_read_at(reader, 6, got, 4, &err), &err);
    CHECK_STR(got, "6789");
    REQUIRE_OK(stk_file_read_at(reader, 0, got, 2, &err), &err);
    CHECK_STR(got, "0189");
    REQUIRE_OK(stk_file_read_at(reader, 99, got, 0, &err), &err);
    /* The reader keeps the file that it has opened. */
    REQUIRE_OK(stk_file_write(path, "new", 3, &err), &err);
    REQUIRE_OK(stk_file_read_at(reader, 2, got, 2, &err), &err);
    CHECK_STR(got, "2389");
    CHECK_INT(stk_file_read_at(reader, 8, got, 3, &err), STK_ERR_STORAGE);
    CHECK_CONTAINS(err.message, "became shorter");
    CHECK_CONTAINS(err.message, path);
    stk_file_close(reader);
    stk_file_close(NULL);
}

static void what_is_no_file_is_not_opened(void) {
    stk_file_reader *reader = NULL;
    char path[300];
    stk_error errs[3] = {0};
    snprintf(path, sizeof path, "%s/pipe", check_folder());
    REQUIRE(mkfifo(path, 0600) == 0);
    CHECK_INT(stk_file_open(&reader, path, &errs[0]), STK_ERR_STORAGE);
    CHECK_CONTAINS(errs[0].message, "not a file");
    CHECK_INT(stk_file_open(&reader, check_folder(), &errs[1]), STK_ERR_STORAGE);
    CHECK_CONTAINS(errs[1].message, "a folder");
    CHECK_INT(stk_file_open(&reader, "/no/such", &errs[2]), STK_ERR_STORAGE);
    CHECK_CONTAINS(errs[2].message, "/no/such");
    CHECK(reader == NULL);
}

static void a_file_of_somebody_else_is_rewritten(void) {
    const char *folder = check_folder();
    stk_error err = {0};
    struct stat info;
    char path[512];
    char link_path[512];
    snprintf(path, sizeof path, "%s", in(folder, "real"));
    snprintf(link_path, sizeof link_path, "%s", in(folder, "link"));
    REQUIRE_OK(stk_file_write(path, "old", 3, &err), &err);
    CHECK_INT(chmod(path, 0600), 0);
    CHECK_INT(symlink("real", link_path), 0);
    REQUIRE_OK(stk_file_rewrite(link_path, "newer", 5, &err), &err);
    CHECK(holds(path, "newer"));
    CHECK(lstat(link_path, &info) == 0 && S_ISLNK(info.st_mode));
    CHECK(stat(path, &info) == 0 && (info.st_mode & 07777) == 0600);
    CHECK_INT(chmod(path, 04755), 0);
    REQUIRE_OK(stk_file_rewrite(path, "", 0, &err), &err);
    CHECK(stat(path, &info) == 0 && (info.st_mode & 07777) == 04755);
    CHECK_INT(unlink(path), 0); /* one that is gone is not made again, nor behind a link */
    CHECK_INT(stk_file_rewrite(path, "x", 1, &err), STK_ERR_STORAGE);
    CHECK_CONTAINS(err.message, "real");
    CHECK_INT(stk_file_rewrite(link_path, "x", 1, NULL), STK_ERR_STORAGE);
    CHECK_INT(entries(folder), 1);
}

static const check_test tests[] = {
    TEST(pieces_are_read_anywhere),
    TEST(what_is_no_file_is_not_opened),
    TEST(writes_and_reads),
    TEST(a_file_of_somebody_else_is_rewritten),
    TEST(gives_a_file_a_second_name),
    TEST(what_is_shown_can_be_read_by_all),
    TEST(reading_has_limits),
    TEST(blocks_grow_and_keep_their_bytes),
    TEST(pieces_appear_at_commit),
    TEST(small_pieces_are_written_together),
    TEST(relative_names_work),
    TEST(a_failed_write_keeps_the_old_file),
    TEST(writing_where_nothing_can_be_written),
    TEST(threads_may_write_one_file),
    TEST(makes_folders),
    TEST(lack_of_descriptors_is_lack_of_memory),
    TEST(lists_are_sorted),
    TEST(joins_paths),
    TEST(cuts_slashes_off_the_end),
    TEST(a_lock_has_one_holder),
    TEST(looking_at_a_lock),
};

CHECK_MAIN(tests)
