/* test_storage_backoff.c - objects that are left alone for a while, and for how long. */
#include "check.h"

#include "base/mem.h"
#include "storage/reading/backoff.h"

#define S 1000000000LL

static void for_a_while_and_then_for_longer(void) {
    stk_backoff backoff = {0};
    stk_error why = {0};
    stk_backoff_open(&backoff);
    CHECK(!stk_backoff_has(&backoff, "a", 100 * S, &why));
    stk_backoff_add(&backoff, "a", "it hangs", 100 * S, 3 * S);
    CHECK(stk_backoff_has(&backoff, "a", 100 * S, &why));
    CHECK_INT(why.status, STK_ERR_STORAGE);
    CHECK_STR(why.message, "it hangs");
    CHECK(stk_backoff_has(&backoff, "a", 159 * S, &why));
    CHECK(!stk_backoff_has(&backoff, "b", 159 * S, &why));
    CHECK(!stk_backoff_has(&backoff, "a", 160 * S, &why)); /* it has another chance */
    stk_backoff_add(&backoff, "a", "it hangs again", 200 * S, 3 * S);
    CHECK(stk_backoff_has(&backoff, "a", 319 * S, &why));
    CHECK(!stk_backoff_has(&backoff, "a", 320 * S, &why));
    stk_backoff_close(&backoff);
}

static void many_of_them(void) {
    stk_backoff backoff = {0};
    stk_error why = {0};
    char path[16];
    char reason[24];
    stk_backoff_open(&backoff);
    for (int i = 0; i < 1000; i++) {
        snprintf(path, sizeof path, "p%d", i);
        snprintf(reason, sizeof reason, "because of %d", i);
        stk_backoff_add(&backoff, path, reason, i * S, 1 * S);
    }
    for (int i = 0; i < 1000; i++) {
        snprintf(path, sizeof path, "p%d", i);
        snprintf(reason, sizeof reason, "because of %d", i);
        CHECK_INT(stk_backoff_has(&backoff, path, 500 * S, &why), i > 480);
        CHECK(i <= 480 || strcmp(why.message, reason) == 0);
    }
    stk_backoff_close(&backoff);
}

static void no_memory(void) {
    for (int64_t n = 0; n < 6; n++) {
        stk_backoff backoff = {0};
        stk_error why = {0};
        stk_backoff_open(&backoff);
        stk_mem_fail_after(n);
        stk_backoff_add(&backoff, "a", "it hangs", 100 * S, 3 * S);
        stk_mem_fail_after(-1);
        bool has = stk_backoff_has(&backoff, "a", 101 * S, &why);
        CHECK_INT(has, n >= 4);
        stk_backoff_close(&backoff);
    }
}

static const check_test tests[] = {
    TEST(for_a_while_and_then_for_longer),
    TEST(many_of_them),
    TEST(no_memory),
};

CHECK_MAIN(tests)
