/* test_times.c - where the time went: every second has one owner. */
#include "sound_times.h"

#include "train/times.h"

/* A CPU waits or computes, never both. */
static void a_host_does_one_thing_at_a_time(void) {
    stk_spent spent = {.steps_s = 9,
                       .busy_s = 5,
                       .update_s = 1,
                       .wait_s = 3.5,
                       .hand_over_s = 0.5,
                       .read_s = 4, /* two workers */
                       .decode_s = 2,
                       .validate_s = 2,
                       .checkpoint_s = 0.5};
    stk_times t = stk_times_divide(&spent, 12);
    check_sound(&t, 12);
    CHECK_NEAR(t.validate_s, 2, 1e-9);
    CHECK_NEAR(t.checkpoint_s, 0.5, 1e-9);
    CHECK_NEAR(t.compute_s, 4, 1e-9);
    CHECK_NEAR(t.update_s, 1, 1e-9);
    CHECK_NEAR(t.queue_s, 0.5, 1e-9);
    CHECK_NEAR(t.read_s, 2, 1e-9);
    CHECK_NEAR(t.decode_s, 1, 1e-9);
    CHECK_NEAR(t.copy_s, 0, 0);
    CHECK_NEAR(t.other_s, 1, 1e-9);
}

/* While a device computes the host may wait: that costs nothing. */
static void who_computes_does_not_wait(void) {
    stk_spent spent = {
        .steps_s = 10, .busy_s = 8, .wait_s = 9, .decode_s = 1, .copy_wait_s = 3, .update_s = 2};
    stk_times t = stk_times_divide(&spent, 10.5);
    check_sound(&t, 10.5);
    CHECK_NEAR(stk_spent_idle_wait(&spent), 2, 1e-9);
    CHECK_NEAR(t.compute_s, 6, 1e-9);
    CHECK_NEAR(t.update_s, 2, 1e-9);
    CHECK_NEAR(t.decode_s, 2, 1e-9);
    CHECK_NEAR(t.copy_s, 0.5, 1e-9); /* what is left; events of a device are not the host's clock */
    CHECK_NEAR(t.other_s, 0, 1e-9);
    spent.busy_s = 1000; /* by a clock of its own */
    t = stk_times_divide(&spent, 12);
    check_sound(&t, 12);
    CHECK_NEAR(t.compute_s + t.update_s, 10, 1e-9);
    CHECK_NEAR(t.copy_s, 2, 1e-9);
    spent.busy_s = 8;
    spent.wait_s = 0;
    t = stk_times_divide(&spent, 14);
    check_sound(&t, 14);
    CHECK_NEAR(t.copy_s, 3, 1e-9);
    CHECK_NEAR(t.other_s, 3, 1e-9);
}

/* Of the time in which nothing could be decoded, storage has what workers had no bytes for. */
static void waiting_has_a_reason(void) {
    static const struct {
        double hand_over_s, read_s, decode_s;
        double read, decode, queue;
    } cases[] = {
        {0, 5, 0, 4, 0, 0},    {0, 0, 7, 0, 4, 0}, {0, 3, 1, 3, 1, 0},
        {4, 9, 9, 0, 0, 4},    {2, 1, 1, 1, 1, 2}, {0, 0, 0, 0, 0, 4}, /* neither */
        {1, 1e-9, 0, 3, 0, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        stk_spent spent = {.steps_s = 4,
                           .wait_s = 4,
                           .hand_over_s = cases[i].hand_over_s,
                           .read_s = cases[i].read_s,
                           .decode_s = cases[i].decode_s};
        stk_times t = stk_times_divide(&spent, 4);
        check_sound(&t, 4);
        CHECK_NEAR(t.read_s, cases[i].read, 1e-9);
        CHECK_NEAR(t.decode_s, cases[i].decode, 1e-9);
        CHECK_NEAR(t.queue_s, cases[i].queue, 1e-9);
    }
}

/* Clocks of devices run as they like: the sum stays what passed. */
static void nothing_is_negative_and_all_adds_up(void) {
    static const double values[] = {0, 1e-9, 0.3, 5, 1e6};
    enum { VALUES = 5, FIELDS = 10 };
    uint32_t random = 1;
    for (int i = 0; i < 20000; i++) {
        double fields[FIELDS];
        for (int f = 0; f < FIELDS; f++) {
            random = random * 1664525u + 1013904223u;
            fields[f] = values[(random >> 16) % VALUES];
        }
        stk_spent spent = {.steps_s = fields[0],
                           .busy_s = fields[1],
                           .update_s = fields[2],
                           .copy_wait_s = fields[3],
                           .wait_s = fields[4],
                           .hand_over_s = fmin(fields[5], fields[4]),
                           .read_s = fields[6],
                           .decode_s = fields[7],
                           .validate_s = fields[8],
                           .checkpoint_s = fields[9]};
        double total = values[i % VALUES];
        stk_times t = stk_times_divide(&spent, total);
        check_sound(&t, total);
    }
    stk_times none = stk_times_divide(&(stk_spent){.busy_s = 1}, -1);
    check_sound(&none, 0);
}

static void waits_are_what_the_counters_gained(void) {
    stk_loader_counters before = {.wait_ns = 1000000000,
                                  .hand_over_ns = 5,
                                  .read_wait_ns = 7000000000,
                                  .decode_ns = 100,
                                  .augment_ns = 50,
                                  .slot_wait_ns = 9};
    stk_loader_counters after = before;
    after.wait_ns += 2000000000;
    after.hand_over_ns += 500000000;
    after.read_wait_ns += 4000000000;
    after.decode_ns += 1000000000;
    after.augment_ns += 2000000000;
    after.slot_wait_ns += 5000000000;
    stk_spent spent = {.wait_s = 1};
    stk_spent_wait(&spent, &before, &after);
    CHECK_NEAR(spent.wait_s, 3, 1e-9);
    CHECK_NEAR(spent.hand_over_s, 0.5, 1e-9);
    CHECK_NEAR(spent.read_s, 4, 1e-9);
    CHECK_NEAR(spent.decode_s, 3, 1e-9);
    stk_spent_wait(&spent, &after, &before); /* another loader: nothing */
    CHECK_NEAR(spent.wait_s, 3, 1e-9);
}

/* Workers without a slot wait for a device, if one decodes meanwhile. */
static void waits_for_a_device_that_decodes(void) {
    stk_loader_counters before = {.wait_ns = 1000000000, .device_images = 7, .slot_wait_ns = 9};
    stk_loader_counters after = before;
    stk_spent spent = {0};
    after.wait_ns += 2000000000;
    after.read_wait_ns += 1000000000;
    after.slot_wait_ns += 3000000000;
    stk_spent_wait(&spent, &before, &after);
    CHECK_NEAR(spent.decode_s, 0, 0);
    after.device_images++;
    after.decode_ns += 500000000;
    stk_spent_wait(&spent, &before, &after);
    CHECK_NEAR(spent.decode_s, 3.5, 1e-9);
    CHECK_NEAR(spent.read_s, 2, 1e-9);
}

/* Stretches follow each other without a gap. */
static void an_account_loses_nothing(void) {
    stk_account account = {.since_ns = 5000000000};
    account.spent = (stk_spent){.steps_s = 2, .busy_s = 2};
    stk_times first = stk_account_stretch(&account, 8000000000);
    check_sound(&first, 3);
    stk_times closed = stk_account_close_stretch(&account, 8000000000);
    check_sound(&closed, 3);
    CHECK_NEAR(closed.compute_s, first.compute_s, 0);
    CHECK_NEAR(account.spent.busy_s, 0, 0);
    account.spent.checkpoint_s = 1;
    stk_times second = stk_account_stretch(&account, 10000000000);
    check_sound(&second, 2);
    CHECK_NEAR(second.checkpoint_s, 1, 1e-9);
    stk_times all = stk_account_all(&account, 10000000000);
    check_sound(&all, 5);
    CHECK_NEAR(all.compute_s, 2, 1e-9);
    CHECK_NEAR(all.checkpoint_s, 1, 1e-9);
    CHECK_NEAR(all.other_s, 2, 1e-9);
}

/* A result that came late takes its time from where it stood meanwhile. */
static void between_two_moments(void) {
    stk_times before = {.compute_s = 4, .other_s = 2, .read_s = 1, .total_s = 7};
    stk_times after = {.compute_s = 9, .other_s = 1, .read_s = 3, .total_s = 13};
    stk_times t = stk_times_between(&before, &after);
    check_sound(&t, 6);
    CHECK_NEAR(t.other_s, 0, 0);
    CHECK_NEAR(t.compute_s / t.read_s, 2.5, 1e-9);
    t = stk_times_between(&before, &before);
    check_sound(&t, 0);
    t = stk_times_between(&after, &before);
    check_sound(&t, 0);
}

static const check_test tests[] = {
    TEST(a_host_does_one_thing_at_a_time),
    TEST(who_computes_does_not_wait),
    TEST(waiting_has_a_reason),
    TEST(nothing_is_negative_and_all_adds_up),
    TEST(waits_are_what_the_counters_gained),
    TEST(waits_for_a_device_that_decodes),
    TEST(an_account_loses_nothing),
    TEST(between_two_moments),
};

CHECK_MAIN(tests)
