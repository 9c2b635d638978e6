/* test_smaller_batch.c - half a batch twice as often, and the same place in the data with it. */
#include "check.h"

#include "budget/batch_choice.h"
#include "train/position.h"

static void halves(void) {
    static const struct {
        size_t batch;
        int64_t accumulate, images;
        bool can;
        size_t half;
        int64_t twice;
    } cases[] = {
        {256, 1, 256, true, 128, 2},
        {128, 2, 256, true, 64, 4},
        {8, 3, 24, true, 4, 6},
        {4, 1, 4, true, 2, 2},
        {2, 2, 4, false, 2, 2}, /* the least */
        {3, 1, 3, false, 3, 1},
        {1, 7, 7, false, 1, 7},
        {5, 1, 5, true, 2, 3}, /* 6 pictures are as near as 4 */
        {25, 1, 25, true, 12, 2},
        {12, 2, 25, true, 6, 4},
        {6, 4, 25, true, 3, 8}, /* nothing is lost on the way */
        {1000000, 65536, (int64_t)1000000 * 65536, true, 500000, 131072},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t batch = cases[i].batch;
        int64_t accumulate = cases[i].accumulate;
        CHECK_INT(stk_batch_halve(&batch, &accumulate, cases[i].images), cases[i].can);
        CHECK_INT(batch, cases[i].half);
        CHECK_INT(accumulate, cases[i].twice);
    }
}

/* However often: an update has the pictures it had, to half a batch. */
static void updates_keep_their_pictures(void) {
    for (int64_t asked = 1; asked < 400; asked++) {
        for (int64_t times = 1; times < 4; times++) {
            size_t batch = (size_t)asked;
            int64_t accumulate = times;
            int halvings = 0;
            while (halvings < 20 && stk_batch_halve(&batch, &accumulate, asked * times)) {
                int64_t off = (int64_t)batch * accumulate - asked * times;
                CHECK(2 * (off < 0 ? -off : off) <= (int64_t)batch);
                CHECK(batch >= STK_LEAST_RETRY_BATCH);
                halvings++;
            }
            CHECK(halvings < 20);
        }
    }
}

static stk_train_position at(int epoch, int64_t step, int64_t steps, int64_t batch, int64_t micro) {
    return (stk_train_position){.epoch = epoch,
                                .step = step,
                                .steps_per_epoch = steps,
                                .batch = batch,
                                .accumulate = 1,
                                .steps_waiting = micro,
                                .steps_done = epoch * steps + step,
                                .updates = epoch * steps + step - micro,
                                .total_steps = 10 * steps,
                                .schedule = 0.25};
}

static void place_stays(void) {
    static const struct {
        int epoch;
        int64_t step, steps, batch, micro; /* before */
        int64_t half, half_steps;
        int64_t step_after, done_after;
    } cases[] = {
        {0, 0, 4, 8, 0, 4, 8, 0, 0},  /* the beginning */
        {3, 0, 4, 8, 0, 4, 8, 0, 24}, /* between epochs */
        {3, 0, 4, 8, 0, 4, 9, 0, 27}, /* a rest that is a batch now */
        {2, 3, 4, 8, 0, 4, 8, 6, 22}, /* within one */
        {2, 3, 4, 8, 0, 2, 16, 12, 44},
        {2, 3, 4, 8, 2, 4, 8, 2, 18}, /* back to the last update */
        {2, 1, 4, 8, 1, 4, 8, 0, 16},
        {2, 4, 4, 8, 0, 4, 8, 8, 24}, /* only its validation is missing */
        {2, 4, 4, 8, 0, 4, 9, 9, 27},
        {1, 3, 4, 25, 0, 12, 8, 6, 14}, /* 75 pictures are six batches and a bit */
        {1, 3, 3, 7, 0, 3, 7, 7, 14},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        stk_train_position p =
            at(cases[i].epoch, cases[i].step, cases[i].steps, cases[i].batch, cases[i].micro);
        int64_t updates = p.updates;
        stk_train_position_rebatch(&p, cases[i].half, 2, cases[i].half_steps);
        CHECK_INT(p.epoch, cases[i].epoch);
        CHECK_INT(p.step, cases[i].step_after);
        CHECK_INT(p.steps_done, cases[i].done_after);
        CHECK_INT(p.steps_per_epoch, cases[i].half_steps);
        CHECK_INT(p.total_steps, 10 * cases[i].half_steps);
        CHECK_INT(p.batch, cases[i].half);
        CHECK_INT(p.accumulate, 2);
        CHECK_INT(p.steps_waiting, 0);
        CHECK_INT(p.updates, updates);
        CHECK_NEAR(p.schedule, 0.25, 0);
    }
}

static void same_or_unknown_batch_is_left_alone(void) {
    stk_train_position same = at(2, 3, 4, 8, 2);
    stk_train_position_rebatch(&same, 8, 1, 4);
    CHECK_INT(same.step, 3);
    CHECK_INT(same.steps_waiting, 2);
    stk_train_position unknown = at(2, 3, 4, 0, 0);
    stk_train_position_rebatch(&unknown, 4, 2, 8);
    CHECK_INT(unknown.step, 3);
    CHECK_INT(unknown.steps_per_epoch, 4);
    CHECK_INT(unknown.batch, 0);
}

/* A position before any step, as it is saved before a learning rate is looked for. */
static void nothing_was_planned(void) {
    stk_train_position p = at(0, 0, 0, 8, 0);
    stk_train_position_rebatch(&p, 4, 2, 6);
    CHECK_INT(p.steps_per_epoch, 6);
    CHECK_INT(p.steps_done, 0);
    CHECK_INT(p.total_steps, 0);
}

static const check_test tests[] = {
    TEST(halves),
    TEST(updates_keep_their_pictures),
    TEST(place_stays),
    TEST(same_or_unknown_batch_is_left_alone),
    TEST(nothing_was_planned),
};

CHECK_MAIN(tests)
