/*
 * check.h - the test harness: one header, no dependencies.
 *
 * A test file defines `static void name(void)` functions with CHECK lines, lists them in an array
 * of TEST(name) and ends with CHECK_MAIN(array). Most test files are linked into one program, and
 * build/tests/FILE is a link to it that runs that file's tests. It prints one line per test and,
 * last, `N passed, N failed, N skipped`. `build/tests/FILE NAME` runs the tests whose names contain
 * NAME.
 */
#ifndef STK_TESTS_CHECK_H
#define STK_TESTS_CHECK_H

#include <dirent.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <stoker/status.h>

/* CHECK_SANITIZED: a sanitizer manages memory and stacks. GCC and Clang name it differently. */
#ifdef __SANITIZE_THREAD__
#define CHECK_THREAD_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define CHECK_THREAD_SANITIZED 1
#elif __has_feature(address_sanitizer)
#define CHECK_SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(CHECK_THREAD_SANITIZED)
#define CHECK_SANITIZED 1
#endif

typedef struct check_test {
    const char *name;
    void (*run)(void);
} check_test;

#define TEST(function) \
    { #function, function }

static int check_failures;            /* of the running test */
static const char *check_skip_reason; /* set by CHECK_SKIP */

#define CHECK_FAIL(...)                          \
    do {                                         \
        printf("  %s:%d: ", __FILE__, __LINE__); \
        printf(__VA_ARGS__);                     \
        printf("\n");                            \
        check_failures++;                        \
    } while (0)

#define CHECK(condition)                            \
    do {                                            \
        if (!(condition)) {                         \
            CHECK_FAIL("is false: %s", #condition); \
        }                                           \
    } while (0)

/* Ends the test function when the condition does not hold: what follows would crash. */
#define REQUIRE(condition)                          \
    do {                                            \
        if (!(condition)) {                         \
            CHECK_FAIL("is false: %s", #condition); \
            return;                                 \
        }                                           \
    } while (0)

#define CHECK_INT(actual, expected)                                             \
    do {                                                                        \
        long long check_a = (long long)(actual);                                \
        long long check_e = (long long)(expected);                              \
        if (check_a != check_e) {                                               \
            CHECK_FAIL("%s is %lld, expected %lld", #actual, check_a, check_e); \
        }                                                                       \
    } while (0)

#define CHECK_NEAR(actual, expected, tolerance)                                 \
    do {                                                                        \
        double check_a = (double)(actual);                                      \
        double check_e = (double)(expected);                                    \
        if (!(fabs(check_a - check_e) <= (tolerance))) {                        \
            CHECK_FAIL("%s is %.9g, expected %.9g", #actual, check_a, check_e); \
        }                                                                       \
    } while (0)

#define CHECK_STR(actual, expected)                                    \
    do {                                                               \
        const char *check_a = (actual);                                \
        const char *check_e = (expected);                              \
        if (check_a == NULL || strcmp(check_a, check_e) != 0) {        \
            CHECK_FAIL("%s is \"%s\", expected \"%s\"", #actual,       \
                       check_a != NULL ? check_a : "(null)", check_e); \
        }                                                              \
    } while (0)

#define CHECK_CONTAINS(actual, part)                                  \
    do {                                                              \
        const char *check_a = (actual);                               \
        if (check_a == NULL || strstr(check_a, (part)) == NULL) {     \
            CHECK_FAIL("%s is \"%s\", which lacks \"%s\"", #actual,   \
                       check_a != NULL ? check_a : "(null)", (part)); \
        }                                                             \
    } while (0)

/* A call that must succeed; prints the error's sentence when it does not, and ends the test. */
#define REQUIRE_OK(call, err)                                   \
    do {                                                        \
        if ((call) != STK_OK) {                                 \
            CHECK_FAIL("%s failed: %s", #call, (err)->message); \
            return;                                             \
        }                                                       \
    } while (0)

#define CHECK_SKIP(reason)            \
    do {                              \
        check_skip_reason = (reason); \
        return;                       \
    } while (0)

/* Under a sanitizer, which sees the same in a few repetitions as in many (STK_TEST_QUICK=1). */
static inline bool check_is_quick(void) {
    return getenv("STK_TEST_QUICK") != NULL;
}

/* Skips a test that takes long under a sanitizer (STK_TEST_QUICK=1). */
#define CHECK_LONG()                             \
    do {                                         \
        if (check_is_quick()) {                  \
            CHECK_SKIP("STK_TEST_QUICK is set"); \
        }                                        \
    } while (0)

/* Skips a test under ThreadSanitizer: others have the same threads. */
#ifdef CHECK_THREAD_SANITIZED
#define CHECK_SAME_THREADS() CHECK_SKIP("other tests have the same threads")
#else
#define CHECK_SAME_THREADS() (void)0
#endif

/* In `make soak` and `make gpu-test` (STK_TEST_FULL=1), which have time for everything. */
static inline bool check_is_full(void) {
    return getenv("STK_TEST_FULL") != NULL;
}

/* How many of so many random tries are made: all in `make soak` (STK_TEST_FULL=1), half in an
 * ordinary run, a quarter under a sanitizer. */
static inline int check_tries(int most) {
    return check_is_full() ? most : check_is_quick() ? most / 4 + 1 : most / 2;
}

/* ---- Folders for files ---- */

static char check_folders[160]; /* holds all folders of this process; "" before the first */
static pid_t check_owner;       /* the process that removes them: not a child that it has forked */

/* Removes a file or a folder with all that is in it, also where a test has forbidden writing. */
static inline void check_remove(const char *path) {
    if (unlink(path) == 0) {
        return;
    }
    (void)chmod(path, 0700);
    DIR *folder = opendir(path);
    for (struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
        char inner[4096];
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
            snprintf(inner, sizeof inner, "%s/%s", path, entry->d_name) < (int)sizeof inner) {
            check_remove(inner);
        }
    }
    if (folder != NULL) {
        closedir(folder);
    }
    (void)rmdir(path);
}

static inline void check_remove_folders(void) {
    if (getpid() == check_owner) {
        check_remove(check_folders);
    }
}

/* A fresh folder for this test's files; it goes away when the process ends. */
static inline const char *check_folder(void) {
    static char path[176];
    if (check_folders[0] == '\0') {
        const char *base = getenv("TMPDIR");
        snprintf(check_folders, sizeof check_folders, "%s/stoker-test-XXXXXX",
                 base != NULL ? base : "/tmp");
        if (mkdtemp(check_folders) == NULL) {
            perror("mkdtemp");
            exit(1);
        }
        check_owner = getpid();
        atexit(check_remove_folders);
    }
    snprintf(path, sizeof path, "%s/XXXXXX", check_folders); /* a forked child may ask, too */
    if (mkdtemp(path) == NULL) {
        perror(path);
        exit(1);
    }
    return path;
}

/* ---- Running ---- */

static inline int check_run(const check_test *tests, size_t count, int argc, char **argv) {
    int passed = 0;
    int failed = 0;
    int skipped = 0;
    for (size_t i = 0; i < count; i++) {
        if (argc > 1 && strstr(tests[i].name, argv[1]) == NULL) {
            continue;
        }
        check_failures = 0;
        check_skip_reason = NULL;
        tests[i].run();
        if (check_failures > 0) {
            failed++;
            printf("FAIL %s\n", tests[i].name);
        } else if (check_skip_reason != NULL) {
            skipped++;
            printf("skip %s: %s\n", tests[i].name, check_skip_reason);
        } else {
            passed++;
            printf("ok   %s\n", tests[i].name);
        }
        fflush(stdout);
    }
    printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped);
    return failed > 0 ? 1 : 0;
}

/*
 * The main function of a test file. Where many files are linked into one program it has the name
 * that CMakeLists.txt gives it, and unit_main.c calls it.
 */
#ifndef CHECK_MAIN_NAME
#define CHECK_MAIN_NAME main
#endif
#define CHECK_MAIN(tests)                                                       \
    int CHECK_MAIN_NAME(int argc, char **argv);                                 \
    int CHECK_MAIN_NAME(int argc, char **argv) {                                \
        return check_run((tests), sizeof(tests) / sizeof *(tests), argc, argv); \
    }

#endif
