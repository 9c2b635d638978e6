/* test_base_random_id.c - ids differ, and are as long as names have room for. */
#include "check.h"

#include "base/random_id.h"

static void ids_differ(void) {
    enum { IDS = 64 };
    uint64_t ids[IDS];
    for (int i = 0; i < IDS; i++) {
        ids[i] = stk_random_id();
        for (int k = 0; k < i; k++) {
            CHECK(ids[i] != ids[k]);
        }
    }
}

static void texts_have_sixteen_digits(void) {
    char text[STK_RANDOM_ID_TEXT];
    char other[STK_RANDOM_ID_TEXT];
    stk_random_id_text(text);
    stk_random_id_text(other);
    CHECK_INT(strlen(text), STK_RANDOM_ID_TEXT - 1);
    CHECK_INT(strspn(text, "0123456789abcdef"), STK_RANDOM_ID_TEXT - 1);
    CHECK(strcmp(text, other) != 0);
}

static const check_test tests[] = {
    TEST(ids_differ),
    TEST(texts_have_sixteen_digits),
};

CHECK_MAIN(tests)
