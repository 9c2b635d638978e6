/* test_base_text_blocks.c - texts that are freed together. */
#include "check.h"

#include "base/mem.h"
#include "base/text/text_blocks.h"

#define MANY 100000 /* their texts take several blocks */

static void texts_stay_as_they_are(void) {
    static const char *kept[MANY];
    stk_text_blocks texts = {0};
    char text[32];
    for (size_t i = 0; i < MANY; i++) {
        snprintf(text, sizeof text, "class/%zu.jpg and more", i);
        kept[i] = stk_text_blocks_keep(&texts, text, strlen(text) - strlen(" and more"));
        REQUIRE(kept[i] != NULL);
    }
    for (size_t i = 0; i < MANY; i++) {
        snprintf(text, sizeof text, "class/%zu.jpg", i);
        REQUIRE(strcmp(kept[i], text) == 0);
    }
    CHECK_STR(stk_text_blocks_keep(&texts, "", 0), "");
    stk_text_blocks_free(&texts);
    CHECK(texts.first == NULL);
    stk_text_blocks_free(&texts);
}

static void a_text_may_be_larger_than_a_block(void) {
    const size_t size = (size_t)3 << 20;
    stk_text_blocks texts = {0};
    char *small = stk_text_blocks_keep(&texts, "small", 5);
    char *large = stk_text_blocks_cut(&texts, size);
    char *after = stk_text_blocks_keep(&texts, "after", 5);
    REQUIRE(small != NULL && large != NULL && after != NULL);
    memset(large, 'x', size);
    CHECK_STR(small, "small");
    CHECK_STR(after, "after");
    stk_text_blocks_free(&texts);
}

static void adopted_blocks_are_freed_with_the_rest(void) {
    stk_text_blocks texts = {0};
    char *first = stk_mem_strdup("first");
    char *second = stk_mem_strdup("second");
    REQUIRE(first != NULL && second != NULL);
    REQUIRE(stk_text_blocks_adopt(&texts, first));
    const char *a = stk_text_blocks_keep(&texts, "a", 1);
    REQUIRE(stk_text_blocks_adopt(&texts, second));
    const char *b = stk_text_blocks_keep(&texts, "b", 1);
    REQUIRE(a != NULL && b != NULL);
    CHECK(b == a + 2); /* the block of `a` has room left */
    CHECK_STR(first, "first");
    CHECK_STR(second, "second");
    stk_text_blocks_free(&texts);
}

static void merged_texts_move_and_stay(void) {
    stk_text_blocks into = {0};
    stk_text_blocks from = {0};
    stk_text_blocks_merge(&into, &from);
    CHECK(into.first == NULL);
    const char *a = stk_text_blocks_keep(&from, "a", 1);
    REQUIRE(a != NULL && stk_text_blocks_cut(&from, (size_t)1 << 20) != NULL);
    stk_text_blocks_merge(&into, &from); /* into nothing */
    CHECK(from.first == NULL && into.first != NULL);
    const char *b = stk_text_blocks_keep(&into, "b", 1);
    const char *c = stk_text_blocks_keep(&from, "c", 1);
    REQUIRE(b != NULL && c != NULL);
    stk_text_blocks_merge(&into, &from);
    stk_text_blocks_merge(&into, &from); /* nothing */
    const char *d = stk_text_blocks_keep(&into, "d", 1);
    CHECK(d == b + 2); /* the block of `b` has room left */
    CHECK_STR(a, "a");
    CHECK_STR(b, "b");
    CHECK_STR(c, "c");
    stk_text_blocks_free(&from);
    stk_text_blocks_free(&into);
}

static void lack_of_memory_changes_nothing(void) {
    stk_text_blocks texts = {0};
    char *block = stk_mem_strdup("block");
    REQUIRE(block != NULL);
    stk_mem_fail_after(0);
    CHECK(stk_text_blocks_cut(&texts, 1) == NULL);
    CHECK(stk_text_blocks_keep(&texts, "a", 1) == NULL);
    CHECK(!stk_text_blocks_adopt(&texts, block));
    CHECK(texts.first == NULL);
    stk_mem_fail_after(-1);
    const char *a = stk_text_blocks_keep(&texts, "a", 1);
    REQUIRE(a != NULL);
    stk_mem_fail_after(0);
    const char *b = stk_text_blocks_keep(&texts, "b", 1); /* fits into the block */
    CHECK(stk_text_blocks_cut(&texts, (size_t)1 << 20) == NULL);
    CHECK(!stk_text_blocks_adopt(&texts, block));
    stk_mem_fail_after(-1);
    REQUIRE(b != NULL);
    CHECK_STR(a, "a");
    CHECK_STR(b, "b");
    stk_text_blocks_free(&texts);
    CHECK_STR(block, "block");
    stk_mem_free(block);
}

static void a_list_takes_texts(void) {
    stk_texts texts = {0};
    char text[16];
    for (int i = 0; i < 40; i++) {
        snprintf(text, sizeof text, "%d", i);
        REQUIRE(stk_texts_take(&texts, stk_mem_strdup(text)));
    }
    CHECK_INT(texts.count, 40);
    CHECK_STR(texts.items[0], "0");
    CHECK_STR(texts.items[39], "39");
    CHECK(!stk_texts_take(&texts, NULL));
    while (texts.count < texts.capacity) {
        REQUIRE(stk_texts_take(&texts, stk_mem_strdup("more")));
    }
    size_t full = texts.count;
    char *last = stk_mem_strdup("last");
    REQUIRE(last != NULL);
    stk_mem_fail_after(0);
    CHECK(!stk_texts_take(&texts, last)); /* freed all the same */
    stk_mem_fail_after(-1);
    CHECK_INT(texts.count, full);
    CHECK_STR(texts.items[0], "0");
    stk_texts_free(&texts);
    CHECK(texts.items == NULL && texts.count == 0 && texts.capacity == 0);
    stk_texts_free(&texts);
}

static const check_test tests[] = {
    TEST(texts_stay_as_they_are),
    TEST(a_text_may_be_larger_than_a_block),
    TEST(adopted_blocks_are_freed_with_the_rest),
    TEST(merged_texts_move_and_stay),
    TEST(lack_of_memory_changes_nothing),
    TEST(a_list_takes_texts),
};

CHECK_MAIN(tests)
