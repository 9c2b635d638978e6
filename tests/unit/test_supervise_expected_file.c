/* test_supervise_expected_file.c - files that a command has written, has not, or has written badly.
 */
#include "check.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/files/file.h"
#include "base/mem.h"
#include "supervise/files/expected_file.h"

static void put(const char *path, const char *text) {
    stk_error err = {0};
    if (stk_file_write(path, text, strlen(text), &err) != STK_OK) {
        CHECK_FAIL("not written: %s", err.message);
        exit(1);
    }
}

static const char *named(const char *name) {
    static char path[400];
    snprintf(path, sizeof path, "%s/%s", check_folder(), name);
    return path;
}

/* Sets a file's time to one that is given, as a copy or an archive does. */
static void set_time(const char *path, const struct stat *like) {
    struct timespec times[2] = {like->st_mtim, like->st_mtim};
    CHECK_INT(utimensat(AT_FDCWD, path, times, 0), 0);
}

static void what_is_written(void) {
    static const struct {
        const char *name;
        const char *text; /* NULL: nothing is */
        int64_t rows;     /* -2: it is not what was expected */
        const char *says;
    } cases[] = {
        {"s.csv", "id,label\n1,a\n2,b\n", 2, ""},
        {"s.csv", "id,label\r\n1,\"a\r\nb\"", 1, ""},
        {"S.CSV", "id\n1\n\n\n", 1, ""},
        {"s.tsv", "id\tlabel\n1\ta,b\n\n2\tc", 2, ""},
        {"s.txt", "x\ny z\n", 2, ""},
        {"s.txt", "0.93", 1, ""},
        {"s.npy", "x", -1, ""},
        {"s", "x", -1, ""},
        {"s.csv", NULL, -2, "is not there"},
        {"s.csv", "", -2, "is empty"},
        {"s.npy", "", -2, "is empty"},
        {"s.csv", "\n", -2, "empty"},
        {"s.csv", "id,label\n", -2, "no rows, at most a header"},
        {"s.txt", " \n\n", -2, "no rows"},
        {"s.tsv", "\n\n", -2, "no rows, at most a header"},
        {"s.csv", "id,label\n1\n", -2, "line 2"},
        {"no/s.csv", NULL, -2, "is not there"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        stk_expected_file expect;
        stk_error err = {0};
        int64_t rows = 77;
        const char *path = named(cases[i].name);
        CHECK_INT(stk_expected_file_begin(&expect, path, NULL), STK_OK);
        CHECK(!expect.there);
        if (cases[i].text != NULL) {
            put(path, cases[i].text);
        }
        stk_status status = stk_expected_file_check(&expect, &rows, &err);
        CHECK_INT(status, cases[i].rows == -2 ? STK_ERR_DATA : STK_OK);
        CHECK_INT(rows, cases[i].rows == -2 ? -1 : cases[i].rows);
        CHECK_CONTAINS(err.message, cases[i].says);
    }
}

static void an_old_file_does_not_count(void) {
    stk_expected_file expect;
    stk_error err = {0};
    int64_t rows;
    const char *path = named("s.csv");
    put(path, "id\n1\n");
    CHECK_INT(stk_expected_file_begin(&expect, path, NULL), STK_OK);
    CHECK(expect.there);
    CHECK_INT(stk_expected_file_check(&expect, &rows, &err), STK_ERR_DATA);
    CHECK_CONTAINS(err.message, "as it was before");
}

static void the_same_bytes_written_anew_count(void) {
    stk_expected_file expect;
    stk_error err = {0};
    struct stat old;
    int64_t rows;
    const char *path = named("s.csv");
    put(path, "id\n1\n");
    CHECK_INT(stat(path, &old), 0);
    CHECK_INT(stk_expected_file_begin(&expect, path, NULL), STK_OK);
    put(path, "id\n1\n"); /* another file of that name */
    set_time(path, &old);
    REQUIRE_OK(stk_expected_file_check(&expect, &rows, &err), &err);
    CHECK_INT(rows, 1);

    CHECK_INT(stk_expected_file_begin(&expect, path, NULL),
              STK_OK); /* the same one, with another time */
    old.st_mtim.tv_sec -= 5;
    set_time(path, &old);
    REQUIRE_OK(stk_expected_file_check(&expect, &rows, &err), &err);
}

static void other_bytes_count_whatever_the_clock_says(void) {
    stk_expected_file expect;
    stk_error err = {0};
    struct stat old;
    int64_t rows;
    const char *path = named("s.csv");
    put(path, "id\n1\n");
    CHECK_INT(stat(path, &old), 0);
    CHECK_INT(stk_expected_file_begin(&expect, path, NULL), STK_OK);
    FILE *file = fopen(path, "r+");
    REQUIRE(file != NULL);
    fputs("id\n2\n", file);
    fclose(file);
    set_time(path, &old);
    REQUIRE_OK(stk_expected_file_check(&expect, &rows, &err), &err);
    CHECK_INT(rows, 1);
}

static void the_end_of_a_large_file_is_looked_at(void) {
    stk_expected_file expect;
    stk_error err = {0};
    struct stat old;
    int64_t rows;
    const char *path = named("weights.bin");
    put(path, "x");
    CHECK_INT(truncate(path, INT64_C(3) << 30), 0); /* takes no room on the disk */
    CHECK_INT(stat(path, &old), 0);
    CHECK_INT(stk_expected_file_begin(&expect, path, NULL), STK_OK);
    CHECK_INT(expect.size, INT64_C(3) << 30);
    int fd = open(path, O_WRONLY);
    CHECK_INT(pwrite(fd, "y", 1, (INT64_C(3) << 30) - 1), 1);
    close(fd);
    set_time(path, &old);
    REQUIRE_OK(stk_expected_file_check(&expect, &rows, &err), &err);
    CHECK_INT(rows, -1);
    CHECK_INT(unlink(path), 0);
}

static void what_is_no_file(void) {
    stk_expected_file expect;
    stk_error err = {0};
    int64_t rows;
    const char *path = named("s.csv");
    CHECK_INT(stk_expected_file_begin(&expect, path, NULL), STK_OK);
    CHECK_INT(mkdir(path, 0777), 0);
    CHECK_INT(stk_expected_file_check(&expect, &rows, &err), STK_ERR_DATA);
    CHECK_CONTAINS(err.message, "a folder");

    memset(&err, 0, sizeof err);
    CHECK_INT(stk_expected_file_begin(&expect, "/dev/null", NULL), STK_OK);
    CHECK_INT(stk_expected_file_check(&expect, &rows, &err), STK_ERR_DATA);
    CHECK_CONTAINS(err.message, "is none");
}

static void one_that_may_not_be_read(void) {
    stk_expected_file expect;
    stk_error err = {0};
    int64_t rows;
    if (geteuid() == 0) {
        CHECK_SKIP("root may read everything");
    }
    const char *path = named("s.csv");
    CHECK_INT(stk_expected_file_begin(&expect, path, NULL), STK_OK);
    put(path, "id\n1\n");
    CHECK_INT(chmod(path, 0), 0);
    CHECK_INT(stk_expected_file_check(&expect, &rows, &err), STK_ERR_DATA);
    CHECK_CONTAINS(err.message, "s.csv");
}

static void nothing_is_expected(void) {
    stk_expected_file expect;
    stk_error err = {0};
    int64_t rows = 5;
    CHECK_INT(stk_expected_file_begin(&expect, NULL, NULL), STK_OK);
    REQUIRE_OK(stk_expected_file_check(&expect, &rows, &err), &err);
    CHECK_INT(rows, -1);
}

static void lack_of_memory_says_nothing_of_the_file(void) {
    const char *path = named("memory.csv");
    int64_t rows = 77;
    int failed = 0;
    put(path, "id,label\n1,a\n");
    for (int i = 0; i < 100; i++) {
        stk_expected_file expect;
        stk_error err = {0};
        stk_mem_fail_after(i);
        stk_status status = stk_expected_file_begin(&expect, path, &err);
        stk_mem_fail_after(-1);
        CHECK(status == STK_OK || (status == STK_ERR_MEMORY && err.message[0] != '\0'));
        if (status == STK_OK) {
            break;
        }
        failed++;
    }
    CHECK(failed > 0);
    stk_expected_file expect = {.path = path}; /* there was none */
    stk_status status = STK_ERR_MEMORY;
    for (failed = 0; status != STK_OK && failed < 100; failed++) {
        stk_error err = {0};
        stk_mem_fail_after(failed);
        status = stk_expected_file_check(&expect, &rows, &err);
        stk_mem_fail_after(-1);
        CHECK(status == STK_OK || (status == STK_ERR_MEMORY && rows == -1));
    }
    CHECK(failed > 1 && status == STK_OK);
    CHECK_INT(rows, 1);
}

static const check_test tests[] = {
    TEST(what_is_written),
    TEST(an_old_file_does_not_count),
    TEST(the_same_bytes_written_anew_count),
    TEST(other_bytes_count_whatever_the_clock_says),
    TEST(the_end_of_a_large_file_is_looked_at),
    TEST(what_is_no_file),
    TEST(one_that_may_not_be_read),
    TEST(nothing_is_expected),
    TEST(lack_of_memory_says_nothing_of_the_file),
};
CHECK_MAIN(tests)
