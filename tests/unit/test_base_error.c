/* test_base_error.c - errors, their exit codes, and the request to stop. */
#include "check.h"

#include <math.h>

#include <stoker/stop.h>

#include "base/error.h"

static void the_first_error_wins(void) {
    stk_error err = {0};
    CHECK_INT(STK_FAIL(&err, STK_ERR_DATA, "cannot read %s", "a.csv"), STK_ERR_DATA);
    CHECK_INT(STK_FAIL(&err, STK_ERR_STORAGE, "later"), STK_ERR_STORAGE);
    CHECK_INT(err.status, STK_ERR_DATA);
    CHECK_STR(err.message, "cannot read a.csv");
    CHECK_CONTAINS(err.file, "test_base_error.c");
    CHECK(err.line > 0);
    stk_error_clear(&err);
    CHECK_INT(err.status, STK_OK);
    CHECK_STR(err.message, "");
    CHECK_INT(STK_FAIL_MEMORY(&err, "a test"), STK_ERR_MEMORY);
    CHECK_CONTAINS(err.message, "out of memory for a test");
}

static void secrets_of_addresses_are_not_told(void) {
    stk_error err = {0};
    (void)STK_FAIL(&err, STK_ERR_DATA, "cannot open %s: there is none", "s3://me:secret@bucket/a");
    CHECK_STR(err.message, "cannot open s3://***@bucket/a: there is none");
}

static void cause_is_told_without_the_remedy(void) {
    static const char *const cases[][2] = {
        {"no memory for 8; use less; or none", "no memory for 8"},
        {"no memory for 8", "no memory for 8"},
        {"", ""}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        stk_error err = {0};
        char text[64] = "?";
        char little[6] = "?";
        (void)STK_FAIL(&err, STK_ERR_MEMORY, "%s", cases[i][0]);
        stk_error_cause(&err, text, sizeof text);
        CHECK_STR(text, cases[i][1]);
        stk_error_cause(&err, little, sizeof little);
        CHECK(strlen(little) < sizeof little);
    }
}

static void nobody_need_listen(void) {
    CHECK_INT(STK_FAIL(NULL, STK_ERR_USAGE, "unheard"), STK_ERR_USAGE);
    stk_error_clear(NULL);
}

static void long_messages_are_cut(void) {
    char text[5000];
    stk_error err = {0};
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    CHECK_INT(STK_FAIL(&err, STK_ERR_DATA, "%s", text), STK_ERR_DATA);
    CHECK_INT(strlen(err.message), sizeof err.message - 1);
}

static void exit_codes_are_the_documented_ones(void) {
    static const struct {
        stk_status status;
        const char *name;
        int code;
    } table[] = {{STK_OK, "ok", 0},
                 {STK_ERR_INTERNAL, "internal", 1},
                 {STK_ERR_USAGE, "usage", 2},
                 {STK_ERR_DATA, "data", 3},
                 {STK_ERR_DEVICE, "device", 4},
                 {STK_ERR_MEMORY, "memory", 4},
                 {STK_ERR_STORAGE, "storage", 5},
                 {STK_ERR_STOPPED, "stopped", 130}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        CHECK_STR(stk_status_name(table[i].status), table[i].name);
        CHECK_INT(stk_status_exit_code(table[i].status), table[i].code);
    }
    CHECK_STR(stk_status_name((stk_status)99), "internal");
    CHECK_INT(stk_status_exit_code((stk_status)99), 1);
    CHECK(strlen(stk_version()) >= 5);
}

static void a_stop_only_rises(void) {
    stk_stop stop = {0};
    CHECK_INT(stk_stop_asked(NULL), STK_STOP_NONE);
    CHECK_INT(stk_stop_deadline_s(NULL), 0);
    CHECK_INT(stk_stop_asked(&stop), STK_STOP_NONE);
    CHECK_INT(stk_stop_deadline_s(&stop), 0);
    stk_stop_request(&stop, STK_STOP_SOON, 5);
    CHECK_INT(stk_stop_asked(&stop), STK_STOP_SOON);
    stk_stop_request(&stop, STK_STOP_NOW, 9);
    CHECK_INT(stk_stop_asked(&stop), STK_STOP_NOW);
    stk_stop_request(&stop, STK_STOP_SOON, 0);
    CHECK_INT(stk_stop_asked(&stop), STK_STOP_NOW);
    CHECK_INT(stk_stop_deadline_s(&stop), 5);
}

static void the_time_to_stop_counts_from_the_request(void) {
    stk_stop stop = {0};
    CHECK(isinf(stk_stop_left_s(NULL)));
    stk_stop_request(&stop, STK_STOP_SOON, 0); /* Ctrl-C: take your time */
    CHECK(isinf(stk_stop_left_s(&stop)));
    stk_stop_request(&stop, STK_STOP_SOON, 5);
    usleep(50000);
    double left = stk_stop_left_s(&stop);
    CHECK(left <= 4.96 && left > 0);
    stk_stop_request(&stop, STK_STOP_SOON, 60); /* the first deadline stays */
    CHECK(stk_stop_left_s(&stop) <= left);
}

static const check_test tests[] = {
    TEST(the_first_error_wins),
    TEST(secrets_of_addresses_are_not_told),
    TEST(cause_is_told_without_the_remedy),
    TEST(nobody_need_listen),
    TEST(long_messages_are_cut),
    TEST(exit_codes_are_the_documented_ones),
    TEST(a_stop_only_rises),
    TEST(the_time_to_stop_counts_from_the_request),
};

CHECK_MAIN(tests)
