/*
 * test_job_write_behind.c - files that are put to the disk behind the caller. A program of its
 * own: it replaces fsync().
 */
#include "check.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/threads/thread.h"
#include "folder_looks.h"
#include "job/saved/write_behind.h"

#define LARGE ((size_t)4 << 20)

static atomic_bool disk_hangs;

/* Instead of the C library's: the disk answers when it may. */
int fsync(int fd) {
    while (atomic_load(&disk_hangs)) {
        usleep(1000);
    }
    return (int)syscall(SYS_fsync, fd);
}

/* Sends a text on its way, in two pieces. */
static void send_text(stk_write_behind *writer, const char *path, const char *text, bool gather) {
    stk_error err = {0};
    stk_file_writer *file = NULL;
    size_t half = strlen(text) / 2;
    REQUIRE_OK(stk_write_behind_begin(writer, &file, path, gather, &err), &err);
    REQUIRE_OK(stk_file_append(file, text, half, &err), &err);
    REQUIRE_OK(stk_file_append(file, text + half, strlen(text) - half, &err), &err);
    REQUIRE_OK(stk_file_commit(file, &err), &err);
    stk_write_behind_start(writer);
}

static void files_arrive_one_after_the_other(void) {
    const char *folder = check_folder();
    const char *path = in(folder, "a");
    stk_write_behind writer = {0};
    stk_error err = {0};
    const uint8_t *kept = NULL;
    REQUIRE_OK(stk_write_behind_finish(&writer, &err), &err); /* there is nothing yet */
    for (int i = 0; i < 3; i++) {
        char text[16];
        snprintf(text, sizeof text, "number %d", i);
        send_text(&writer, path, text, true);
        CHECK(stk_write_behind_is_pending(&writer));
        CHECK(stk_write_behind_age(&writer) >= 0);
        REQUIRE_OK(stk_write_behind_finish(&writer, &err), &err);
        CHECK(!stk_write_behind_is_pending(&writer) && !stk_write_behind_is_done(&writer));
        CHECK(holds(path, text));
        CHECK(stk_write_behind_seconds(&writer) > 0);
        CHECK(i == 0 || writer.block.data == kept); /* its memory is used again */
        kept = writer.block.data;
        REQUIRE_OK(stk_write_behind_finish(&writer, &err), &err);
    }
    CHECK_INT(entries(folder), 1);
    stk_write_behind_free(&writer);
    stk_write_behind_free(&writer);
}

static void it_can_be_seen_when_one_is_done(void) {
    const char *path = in(check_folder(), "a");
    stk_write_behind writer = {0};
    stk_error err = {0};
    CHECK(!stk_write_behind_is_done(&writer));
    send_text(&writer, path, "text", true);
    for (int i = 0; i < 10000 && !stk_write_behind_is_done(&writer); i++) {
        usleep(1000);
    }
    CHECK(stk_write_behind_is_done(&writer) && stk_write_behind_is_pending(&writer));
    CHECK(holds(path, "text"));
    REQUIRE_OK(stk_write_behind_finish(&writer, &err), &err);
    stk_write_behind_free(&writer);
}

static void the_end_waits_for_what_is_pending(void) {
    const char *folder = check_folder();
    const char *path = in(folder, "a");
    char *large = stk_mem_new(LARGE + 1, 1);
    REQUIRE(large != NULL);
    memset(large, 'x', LARGE);
    stk_write_behind writer = {0};
    send_text(&writer, path, large, true);
    stk_write_behind_free(&writer);
    CHECK(holds(path, large));
    CHECK_INT(entries(folder), 1);
    CHECK(writer.block.data == NULL && !stk_write_behind_is_pending(&writer));
    send_text(&writer, path, "again", true);
    stk_write_behind_free(&writer);
    CHECK(holds(path, "again"));
    stk_mem_free(large);
}

static void what_may_not_be_gathered_is_written_at_once(void) {
    const char *folder = check_folder();
    const char *path = in(folder, "a");
    stk_write_behind writer = {0};
    stk_error err = {0};
    send_text(&writer, path, "text", false);
    CHECK(holds(path, "text"));
    CHECK(stk_write_behind_is_pending(&writer) && stk_write_behind_is_done(&writer));
    REQUIRE_OK(stk_write_behind_finish(&writer, &err), &err);
    CHECK(stk_write_behind_seconds(&writer) > 0 && writer.block.data == NULL);
    send_text(&writer, path, "", true); /* nothing to gather */
    CHECK(stk_write_behind_is_done(&writer) && holds(path, ""));
    REQUIRE_OK(stk_write_behind_finish(&writer, &err), &err);
    CHECK_INT(entries(folder), 1);
    stk_write_behind_free(&writer);
}

static void what_is_superfluous_goes_when_it_is_in_place(void) {
    const char *folder = check_folder();
    for (int way = 0; way < 3; way++) { /* at once, behind, in vain */
        const char *old[] = {in(folder, "old a"), in(folder, "old b")};
        stk_write_behind writer = {0};
        stk_file_writer *file = NULL;
        stk_error err = {0};
        const char *path = in(folder, way == 0 ? "at once" : way == 1 ? "behind" : "no/such");
        REQUIRE_OK(stk_file_write(old[0], "x", 1, &err), &err);
        REQUIRE_OK(stk_file_write(old[1], "x", 1, &err), &err);
        REQUIRE_OK(stk_write_behind_begin(&writer, &file, path, way > 0, &err), &err);
        REQUIRE_OK(stk_file_append(file, "x", 1, &err), &err);
        REQUIRE_OK(stk_file_commit(file, &err), &err);
        stk_write_behind_remove(&writer, old[0]);
        stk_write_behind_remove(&writer, old[1]);
        CHECK(stk_path_is_file(old[0]) && stk_path_is_file(old[1]));
        stk_write_behind_start(&writer);
        CHECK_INT(stk_write_behind_finish(&writer, &err), way < 2 ? STK_OK : STK_ERR_STORAGE);
        CHECK(stk_path_is_file(old[0]) == (way == 2) && stk_path_is_file(old[1]) == (way == 2));
        stk_write_behind_free(&writer);
    }
}

static void without_a_thread_it_is_written_at_once(void) {
    const char *path = in(check_folder(), "a");
    stk_write_behind writer = {0};
    stk_error err = {0};
    stk_start_fail_after(STK_START_THREAD, 0);
    send_text(&writer, path, "text", true);
    stk_start_fail_after(STK_START_THREAD, -1);
    CHECK(stk_write_behind_is_done(&writer) && holds(path, "text"));
    REQUIRE_OK(stk_write_behind_finish(&writer, &err), &err);
    send_text(&writer, path, "behind", true); /* by now there is one */
    REQUIRE_OK(stk_write_behind_finish(&writer, &err), &err);
    CHECK(holds(path, "behind"));
    stk_write_behind_free(&writer);
}

static void what_hangs_is_given_up(void) {
    const char *path = in(check_folder(), "a");
    stk_write_behind writer = {0};
    stk_error err = {0};
    atomic_store(&disk_hangs, true);
    send_text(&writer, path, "late", true);
    CHECK(!stk_write_behind_wait(&writer, stk_clock_ns() + 1000000));
    CHECK_INT(stk_write_behind_give_up(&writer, &err), STK_ERR_STORAGE);
    CHECK_CONTAINS(err.message, "its disk gave no answer within");
    CHECK(!stk_write_behind_is_pending(&writer));
    atomic_store(&disk_hangs, false);
    for (int i = 0; i < 60000 && !stk_path_is_file(path); i++) {
        usleep(1000); /* what was left behind comes into place when the disk answers */
    }
    CHECK(holds(path, "late"));
    send_text(&writer, path, "next", true);
    REQUIRE(stk_write_behind_wait(&writer, INT64_MAX));
    err = (stk_error){0};
    REQUIRE_OK(stk_write_behind_give_up(&writer, &err), &err); /* there is nothing to give up */
    CHECK(holds(path, "next"));
    stk_write_behind_free(&writer);
}

static void an_error_is_told_once(void) {
    const char *folder = check_folder();
    stk_write_behind writer = {0};
    stk_error err = {0};
    send_text(&writer, in(folder, "no/such"), "text", true);
    CHECK_INT(stk_write_behind_finish(&writer, &err), STK_ERR_STORAGE);
    CHECK_CONTAINS(err.message, "cannot write");
    CHECK_CONTAINS(err.message, "no/such: No such file");
    err = (stk_error){0};
    REQUIRE_OK(stk_write_behind_finish(&writer, &err), &err);
    send_text(&writer, in(folder, "a"), "good", true); /* the next one is none the worse */
    REQUIRE_OK(stk_write_behind_finish(&writer, &err), &err);
    CHECK(holds(in(folder, "a"), "good"));
    stk_write_behind_free(&writer);
}

static void what_is_discarded_leaves_nothing(void) {
    const char *folder = check_folder();
    const char *path = in(folder, "a");
    stk_write_behind writer = {0};
    stk_error err = {0};
    send_text(&writer, path, "kept", true);
    REQUIRE_OK(stk_write_behind_finish(&writer, &err), &err);
    for (int gather = 0; gather < 2; gather++) {
        stk_file_writer *file = NULL;
        REQUIRE_OK(stk_write_behind_begin(&writer, &file, path, gather != 0, &err), &err);
        REQUIRE_OK(stk_file_append(file, "lost", 4, &err), &err);
        stk_file_discard(file);
        CHECK(!stk_write_behind_is_pending(&writer));
        CHECK(holds(path, "kept"));
        CHECK_INT(entries(folder), 1);
    }
    stk_write_behind_free(&writer);
}

/* Without memory for the second piece what was gathered goes to the disk, and the rest with it. */
static void without_memory_it_is_written_at_once(void) {
    const char *folder = check_folder();
    const char *path = in(folder, "a");
    stk_write_behind writer = {0};
    stk_file_writer *file = NULL;
    stk_error err = {0};
    char text[101];
    memset(text, 'x', sizeof text);
    text[100] = '\0';
    for (int pieces = 0; pieces < 2; pieces++) { /* that there is memory for */
        size_t first = pieces > 0 ? 10 : 0;
        REQUIRE_OK(stk_write_behind_begin(&writer, &file, path, true, &err), &err);
        REQUIRE_OK(stk_file_append(file, text, first, &err), &err);
        stk_mem_fail_after(0);
        stk_status status = stk_file_append(file, text + first, 50, &err);
        stk_mem_fail_after(-1);
        REQUIRE_OK(status, &err);
        REQUIRE_OK(stk_file_append(file, text + first + 50, 50 - first, &err), &err);
        REQUIRE_OK(stk_file_commit(file, &err), &err);
        stk_write_behind_start(&writer);
        CHECK(stk_write_behind_is_done(&writer) && holds(path, text));
        REQUIRE_OK(stk_write_behind_finish(&writer, &err), &err);
        CHECK_INT(entries(folder), 1);
    }
    for (int i = 0; i < 4; i++) {
        stk_mem_fail_after(i);
        stk_status status = stk_write_behind_begin(&writer, &file, path, true, NULL);
        stk_mem_fail_after(-1);
        CHECK_INT(status, STK_ERR_MEMORY);
        CHECK(!stk_write_behind_is_pending(&writer));
    }
    CHECK(holds(path, text));
    CHECK_INT(entries(folder), 1);
    stk_write_behind_free(&writer);
}

static void what_is_spilt_may_not_find_room(void) {
    stk_write_behind writer = {0};
    stk_file_writer *file = NULL;
    stk_error err = {0};
    const char *path = in(check_folder(), "no/such");
    REQUIRE_OK(stk_write_behind_begin(&writer, &file, path, true, &err), &err);
    REQUIRE_OK(stk_file_append(file, "x", 1, &err), &err);
    stk_mem_fail_after(0);
    stk_status status = stk_file_append(file, (char[100]){0}, 100, &err);
    stk_mem_fail_after(-1);
    CHECK_INT(status, STK_ERR_STORAGE);
    CHECK_CONTAINS(err.message, "no/such");
    stk_file_discard(file);
    REQUIRE_OK(stk_write_behind_begin(&writer, &file, path, true, &err), &err);
    err = (stk_error){0};
    CHECK_INT(stk_file_commit(file, &err), STK_ERR_STORAGE); /* an empty file has no place */
    stk_write_behind_free(&writer);
}

/* In a child, since a limit on file sizes concerns the whole process. */
static int send_over_limit(const char *path) {
    struct rlimit limit = {SIZE_LIMIT, SIZE_LIMIT};
    stk_write_behind writer = {0};
    stk_file_writer *file = NULL;
    stk_error err = {0};
    signal(SIGXFSZ, SIG_IGN);
    char *big = stk_mem_new(2 * SIZE_LIMIT, 1);
    if (big == NULL || setrlimit(RLIMIT_FSIZE, &limit) != 0 ||
        stk_write_behind_begin(&writer, &file, path, true, NULL) != STK_OK ||
        stk_file_append(file, big, 2 * SIZE_LIMIT, NULL) != STK_OK ||
        stk_file_commit(file, NULL) != STK_OK) {
        return 2;
    }
    stk_write_behind_start(&writer);
    stk_status status = stk_write_behind_finish(&writer, &err);
    bool told = strstr(err.message, path) != NULL && strstr(err.message, "too large") != NULL;
    stk_mem_free(big);
    stk_write_behind_free(&writer);
    return status == STK_ERR_STORAGE && told ? 0 : 1;
}

static void a_full_disk_keeps_the_old_file(void) {
    check_old_file_stays(send_over_limit);
}

static const check_test tests[] = {
    TEST(files_arrive_one_after_the_other),
    TEST(it_can_be_seen_when_one_is_done),
    TEST(the_end_waits_for_what_is_pending),
    TEST(what_may_not_be_gathered_is_written_at_once),
    TEST(what_is_superfluous_goes_when_it_is_in_place),
    TEST(without_a_thread_it_is_written_at_once),
    TEST(what_hangs_is_given_up),
    TEST(an_error_is_told_once),
    TEST(what_is_discarded_leaves_nothing),
    TEST(without_memory_it_is_written_at_once),
    TEST(what_is_spilt_may_not_find_room),
    TEST(a_full_disk_keeps_the_old_file),
};

CHECK_MAIN(tests)
