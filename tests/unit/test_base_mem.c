/* test_base_mem.c - memory requests, their overflow checks and the switch that makes them fail. */
#include "check.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "base/mem.h"

/* Read through this, so that the compiler does not see how large a request is. */
static volatile size_t huge = SIZE_MAX;

static void new_memory_is_zeroed(void) {
    unsigned char *block = stk_mem_new(1000, 3);
    REQUIRE(block != NULL);
    for (int i = 0; i < 3000; i++) {
        REQUIRE(block[i] == 0);
    }
    stk_mem_free(block);
    stk_mem_free(NULL);
    stk_mem_free_secret(NULL);
    stk_mem_free_secret(stk_mem_strdup("a secret"));
}

static void nothing_is_still_something(void) {
    void *blocks[] = {stk_mem_new(0, 8), stk_mem_raw(8, 0), stk_mem_aligned(0),
                      stk_mem_resize(NULL, 0, 1)};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
        CHECK(blocks[i] != NULL);
        stk_mem_free(blocks[i]);
    }
}

static void aligned_is_aligned(void) {
    for (size_t bytes = 1; bytes < 300; bytes += 37) {
        char *block = stk_mem_aligned(bytes);
        REQUIRE(block != NULL);
        CHECK((uintptr_t)block % 64 == 0);
        memset(block, 1, bytes);
        stk_mem_free(block);
    }
}

static void overflow_is_a_failure(void) {
    size_t capacity = 16;
    CHECK(stk_mem_new(huge / 2 + 1, 2) == NULL);
    CHECK(stk_mem_raw(huge, huge) == NULL);
    CHECK(stk_mem_raw(huge / 2 + 1, 1) == NULL);
    CHECK(stk_mem_resize(NULL, huge / 4, 8) == NULL);
    CHECK(stk_mem_aligned(huge) == NULL);
    CHECK(stk_mem_aligned(huge - 32) == NULL);
    CHECK(stk_mem_strndup("x", huge) == NULL);
    char *none = NULL;
    CHECK(!stk_mem_reserve(&none, &capacity, huge, 1));
    CHECK(!stk_mem_reserve(&none, &capacity, huge / 2, 16));
    CHECK(none == NULL);
    CHECK_INT(capacity, 16);
}

static void growing_keeps_what_was_there(void) {
    int *numbers = NULL;
    size_t capacity = 0;
    for (int i = 0; i < 10000; i++) {
        REQUIRE(STK_RESERVE(numbers, capacity, (size_t)i + 1));
        numbers[i] = i;
    }
    CHECK(capacity >= 10000 && capacity < 20000);
    for (int i = 0; i < 10000; i++) {
        REQUIRE(numbers[i] == i);
    }
    const int *kept = numbers;
    CHECK(STK_RESERVE(numbers, capacity, 5) && numbers == kept);
    stk_mem_fail_after(0);
    size_t before = capacity;
    CHECK(!STK_RESERVE(numbers, capacity, capacity + 1) && numbers == kept);
    stk_mem_fail_after(-1);
    CHECK_INT(capacity, before);
    CHECK_INT(numbers[9999], 9999);
    stk_mem_free(numbers);
}

static void copies_text(void) {
    char *whole = stk_mem_strdup("text");
    char *part = stk_mem_strndup("text", 2);
    char *empty = stk_mem_strndup(NULL, 0);
    CHECK_STR(whole, "text");
    CHECK_STR(part, "te");
    CHECK_STR(empty, "");
    stk_mem_free(whole);
    stk_mem_free(part);
    stk_mem_free(empty);
}

static void the_nth_request_fails(void) {
    stk_mem_fail_after(2);
    void *first = stk_mem_new(1, 1);
    void *second = stk_mem_raw(1, 1);
    CHECK(first != NULL && second != NULL);
    CHECK(stk_mem_new(1, 1) == NULL);
    CHECK(stk_mem_raw(1, 1) == NULL);
    CHECK(stk_mem_aligned(1) == NULL);
    CHECK(stk_mem_resize(first, 2, 1) == NULL);
    CHECK(stk_mem_strdup("x") == NULL);
    stk_mem_fail_after(-1);
    void *third = stk_mem_new(1, 1);
    CHECK(third != NULL);
    stk_mem_free(first);
    stk_mem_free(second);
    stk_mem_free(third);
}

static void *ask_often(void *argument) {
    atomic_int *given = argument;
    for (int i = 0; i < 10000; i++) {
        void *block = stk_mem_raw(1, 1);
        if (block != NULL) {
            atomic_fetch_add(given, 1);
        }
        stk_mem_free(block);
    }
    return NULL;
}

static void failing_counts_over_threads(void) {
    pthread_t threads[4];
    atomic_int given = 0;
    int started = 0;
    stk_mem_fail_after(1234);
    while (started < 4 && pthread_create(&threads[started], NULL, ask_often, &given) == 0) {
        started++;
    }
    for (int i = 0; i < started; i++) {
        pthread_join(threads[i], NULL);
    }
    stk_mem_fail_after(-1);
    CHECK_INT(started, 4);
    CHECK_INT(atomic_load(&given), 1234);
}

static const check_test tests[] = {
    TEST(new_memory_is_zeroed),  TEST(nothing_is_still_something),   TEST(aligned_is_aligned),
    TEST(overflow_is_a_failure), TEST(growing_keeps_what_was_there), TEST(copies_text),
    TEST(the_nth_request_fails), TEST(failing_counts_over_threads),
};

CHECK_MAIN(tests)
