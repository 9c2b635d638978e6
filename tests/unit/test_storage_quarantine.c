/* test_storage_quarantine.c - objects that are left alone for a while, and for how long. */
#include "check.h"

#include "base/mem.h"
#include "storage/reading/quarantine.h"

#define S 1000000000LL

static void for_a_while_and_then_for_longer(void) {
    stk_quarantine quarantine = {0};
    stk_error why = {0};
    stk_quarantine_open(&quarantine);
    CHECK(!stk_quarantine_has(&quarantine, "a", 100 * S, &why));
    stk_quarantine_add(&quarantine, "a", "it hangs", 100 * S, 3 * S);
    CHECK(stk_quarantine_has(&quarantine, "a", 100 * S, &why));
    CHECK_INT(why.status, STK_ERR_STORAGE);
    CHECK_STR(why.message, "it hangs");
    CHECK(stk_quarantine_has(&quarantine, "a", 159 * S, &why));
    CHECK(!stk_quarantine_has(&quarantine, "b", 159 * S, &why));
    CHECK(!stk_quarantine_has(&quarantine, "a", 160 * S, &why)); /* it has another chance */
    stk_quarantine_add(&quarantine, "a", "it hangs again", 200 * S, 3 * S);
    CHECK(stk_quarantine_has(&quarantine, "a", 319 * S, &why));
    CHECK(!stk_quarantine_has(&quarantine, "a", 320 * S, &why));
    stk_quarantine_close(&quarantine);
}

static void many_of_them(void) {
    stk_quarantine quarantine = {0};
    stk_error why = {0};
    char path[16];
    char reason[24];
    stk_quarantine_open(&quarantine);
    for (int i = 0; i < 1000; i++) {
        snprintf(path, sizeof path, "p%d", i);
        snprintf(reason, sizeof reason, "because of %d", i);
        stk_quarantine_add(&quarantine, path, reason, i * S, 1 * S);
    }
    for (int i = 0; i < 1000; i++) {
        snprintf(path, sizeof path, "p%d", i);
        snprintf(reason, sizeof reason, "because of %d", i);
        CHECK_INT(stk_quarantine_has(&quarantine, path, 500 * S, &why), i > 480);
        CHECK(i <= 480 || strcmp(why.message, reason) == 0);
    }
    stk_quarantine_close(&quarantine);
}

static void no_memory(void) {
    for (int64_t n = 0; n < 6; n++) {
        stk_quarantine quarantine = {0};
        stk_error why = {0};
        stk_quarantine_open(&quarantine);
        stk_mem_fail_after(n);
        stk_quarantine_add(&quarantine, "a", "it hangs", 100 * S, 3 * S);
        stk_mem_fail_after(-1);
        bool has = stk_quarantine_has(&quarantine, "a", 101 * S, &why);
        CHECK_INT(has, n >= 4);
        stk_quarantine_close(&quarantine);
    }
}

static const check_test tests[] = {
    TEST(for_a_while_and_then_for_longer),
    TEST(many_of_them),
    TEST(no_memory),
};

CHECK_MAIN(tests)
