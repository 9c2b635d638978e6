/* test_base_map.c - the map from text to numbers. */
#include "check.h"

#include <stdint.h>

#include "base/map.h"
#include "base/mem.h"

#define MANY 5000

static void finds_what_was_added(void) {
    static char keys[MANY][16];
    stk_map map = {0};
    bool added = false;
    CHECK(!stk_map_find(&map, "key0", NULL));
    for (size_t i = 0; i < MANY; i++) {
        snprintf(keys[i], sizeof keys[i], "key%zu", i);
        REQUIRE(stk_map_add(&map, keys[i], i * 3, &added));
        CHECK(added);
    }
    CHECK_INT(map.count, MANY);
    CHECK(map.count * 2 <= map.capacity);
    for (size_t i = 0; i < MANY; i++) {
        char copy[16];
        size_t value = SIZE_MAX;
        snprintf(copy, sizeof copy, "key%zu", i);
        REQUIRE(stk_map_find(&map, copy, &value) && value == i * 3);
    }
    CHECK(stk_map_find(&map, "key1", NULL));
    CHECK(!stk_map_find(&map, "key", NULL));
    CHECK(!stk_map_find(&map, "key5000", NULL));
    stk_map_free(&map);
    CHECK(!stk_map_find(&map, "key1", NULL));
    stk_map_free(&map);
}

static void the_first_value_stays(void) {
    stk_map map = {0};
    bool added = false;
    size_t value = 0;
    CHECK(stk_map_add(&map, "", 1, &added) && added);
    CHECK(stk_map_add(&map, "", 2, &added) && !added);
    CHECK(stk_map_find(&map, "", &value) && value == 1);
    CHECK_INT(map.count, 1);
    stk_map_free(&map);
}

static void lack_of_memory_leaves_the_map(void) {
    static char keys[64][8];
    stk_map map = {0};
    bool added = false;
    stk_mem_fail_after(0);
    CHECK(!stk_map_add(&map, "a", 1, &added));
    stk_mem_fail_after(-1);
    size_t count = 0;
    for (; count < 64; count++) {
        snprintf(keys[count], sizeof keys[count], "%zu", count);
        stk_mem_fail_after(count > 0 ? 0 : -1);
        bool fits = stk_map_add(&map, keys[count], count, &added);
        stk_mem_fail_after(-1);
        if (!fits) {
            break;
        }
    }
    CHECK_INT(count, 32);
    CHECK_INT(map.count, count);
    for (size_t i = 0; i < count; i++) {
        size_t value = SIZE_MAX;
        CHECK(stk_map_find(&map, keys[i], &value) && value == i);
    }
    stk_map_free(&map);
}

static const check_test tests[] = {
    TEST(finds_what_was_added),
    TEST(the_first_value_stays),
    TEST(lack_of_memory_leaves_the_map),
};

CHECK_MAIN(tests)
