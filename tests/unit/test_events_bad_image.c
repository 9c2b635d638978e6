/* test_events_bad_image.c - a bad image is told once where somebody keeps count. */
#include "events/events.h"

#include "base/mem.h"
#include "check.h"

static int told;

static void count(void *user, const stk_event_bad_image *event) {
    (void)user;
    (void)event;
    told++;
}

static const stk_observer observer = {.bad_image = count};

static void each_path_is_told_once(void) {
    stk_map map = {0};
    stk_events events = {.bad_told = &map};
    stk_events_add(&events, &observer);
    told = 0;
    stk_events_bad_image(&events, "a.jpg", "val", "it is empty");
    stk_events_bad_image(&events, "a.jpg", "val", "it is empty");
    stk_events_bad_image(&events, "a.jpg", "train", "it is empty");
    stk_events_bad_image(&events, "b.jpg", "val", "it is empty");
    CHECK_INT(told, 2);
    stk_map_free(&map);
}

static void without_a_map_all_are_told(void) {
    stk_events events = {0};
    stk_events_add(&events, &observer);
    told = 0;
    stk_events_bad_image(&events, "a.jpg", "val", "it is empty");
    stk_events_bad_image(&events, "a.jpg", "val", "it is empty");
    stk_events_bad_image(NULL, "a.jpg", "val", "it is empty");
    CHECK_INT(told, 2);
}

static void without_memory_all_are_told(void) {
    stk_map map = {0};
    stk_events events = {.bad_told = &map};
    stk_events_add(&events, &observer);
    told = 0;
    stk_mem_fail_after(0);
    stk_events_bad_image(&events, "a.jpg", "val", "it is empty");
    stk_events_bad_image(&events, "a.jpg", "val", "it is empty");
    stk_mem_fail_after(-1);
    CHECK_INT(told, 2);
    stk_map_free(&map);
}

static const check_test tests[] = {
    TEST(each_path_is_told_once),
    TEST(without_a_map_all_are_told),
    TEST(without_memory_all_are_told),
};

CHECK_MAIN(tests)
