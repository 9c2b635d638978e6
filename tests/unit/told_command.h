/* told_command.h - a supervised command as its events tell it, for tests of who listens. */
#ifndef STK_TESTS_TOLD_COMMAND_H
#define STK_TESTS_TOLD_COMMAND_H

#include <math.h>

#include "base/clock.h"
#include "events/events.h"

#define TOLD_COMMAND "python -u train.py --note '<b>\x1b[31m&'"

static inline stk_event_attempt told_launch(const char *part, int number, int64_t batch) {
    return (stk_event_attempt){.number = number,
                               .part = part,
                               .command = TOLD_COMMAND,
                               .batch = batch,
                               .workers = batch > 0 ? 4 : -1,
                               .images_per_second = NAN,
                               .seconds = NAN,
                               .gpu_util = NAN,
                               .gpu_memory_used = NAN,
                               .gpu_memory_total = NAN,
                               .exit_code = -1};
}

/* The first was stopped for a larger batch, the second ran out of memory, the third crashed in
 * prediction. */
static inline void told_attempts(stk_event_attempt attempts[3]) {
    attempts[0] = told_launch("train", 1, 32);
    attempts[0].images_per_second = 410.5;
    attempts[0].seconds = 61;
    attempts[0].gpu_util = 35;
    attempts[0].gpu_memory_used = 2.4e9;
    attempts[0].gpu_memory_total = 24e9;
    attempts[0].verdict = "launch-bound";
    attempts[0].stop_reason = "batch";
    attempts[0].signal = 15;
    attempts[0].kept = true;
    attempts[1] = told_launch("train", 2, 64);
    attempts[1].seconds = 20.25;
    attempts[1].stop_reason = "memory";
    attempts[1].exit_code = 1;
    attempts[2] = told_launch("predict", 1, -1);
    attempts[2].seconds = 5;
    attempts[2].stop_reason = "crash";
    attempts[2].signal = 11;
    for (int i = 0; i < 3; i++) {
        attempts[i].ended = true;
    }
}

static inline stk_event_start told_command_start(void) {
    return (stk_event_start){.chosen = TOLD_COMMAND,
                             .run_dir = "runs/sup",
                             .start_ns = stk_clock_ns(),
                             .img_size = -1,
                             .batch = -1,
                             .workers = -1,
                             .prefetch = -1,
                             .classes = -1,
                             .folds = -1,
                             .cores = 8,
                             .memory_bytes = INT64_C(64000000000),
                             .device_bytes = -1,
                             .train_images = -1,
                             .val_images = -1,
                             .test_images = -1,
                             .budget_s = 600};
}

static inline stk_summary told_command_summary(const stk_event_attempt *attempts, int count) {
    return (stk_summary){.status = "partial",
                         .stop_reason = "budget",
                         .best_acc1 = NAN,
                         .best_metric = NAN,
                         .epochs_done = 3,
                         .folds_done = -1,
                         .folds_planned = -1,
                         .oof_acc1 = NAN,
                         .oof_metric = NAN,
                         .held_out = NAN,
                         .temperature = NAN,
                         .images_per_second = 410.5,
                         .wait_fraction = NAN,
                         .budget_s = 600,
                         .used_s = 120,
                         .reserve_s = 90,
                         .batch = 32,
                         .workers = 4,
                         .prefetch = -1,
                         .bad_images = -1,
                         .verdict = "launch-bound",
                         .command = TOLD_COMMAND,
                         .attempts = attempts,
                         .attempt_count = count,
                         .estimate = "30 epochs need 75 min",
                         .exit_code = 1};
}

static inline stk_event_step told_command_step(int epoch, double loss) {
    return (stk_event_step){.fold = -1,
                            .epoch = epoch,
                            .epochs = 30,
                            .step = -1,
                            .steps = -1,
                            .steps_done = -1,
                            .loss = loss,
                            .acc1 = NAN,
                            .lr = NAN,
                            .steps_per_second = NAN,
                            .images_per_second = 410.5,
                            .wait_fraction = NAN,
                            .left_s = NAN};
}

static inline stk_event_sample told_command_sample(double at_s) {
    return (stk_event_sample){.at_s = at_s,
                              .gpu_util = 35,
                              .sm_activity = NAN,
                              .gpu_memory_used = 3e9,
                              .gpu_memory_total = 24e9,
                              .gpu_memory_own = 2.4e9,
                              .gpu_power_w = NAN,
                              .gpu_temperature_c = NAN,
                              .gpu_clock_mhz = NAN,
                              .gpu_clock_most_mhz = NAN,
                              .pcie_in = NAN,
                              .pcie_out = NAN,
                              .cpu = 70,
                              .cpu_own = 60,
                              .iowait = 2,
                              .resident = 2e9,
                              .memory_used = 9e9,
                              .disk_read = 1e8,
                              .disk_written = 1e6,
                              .net_in = NAN,
                              .net_out = NAN,
                              .images_per_second = NAN,
                              .wait_fraction = NAN,
                              .batches_ready = -1,
                              .slots = -1,
                              .workers = -1};
}

/* Up to the middle of the second attempt. */
static inline void tell_command_half(const stk_events *events) {
    stk_event_attempt attempts[3];
    stk_event_attempt first = told_launch("train", 1, 32);
    stk_event_attempt second = told_launch("train", 2, 64);
    stk_event_start start = told_command_start();
    stk_event_verdict verdict = {.name = "launch-bound",
                                 .text = "launch-bound: the GPU works 35 %",
                                 .images_per_second = 410.5,
                                 .wait_fraction = NAN,
                                 .gpu_util = 35,
                                 .gpu_memory_used = 2.4e9,
                                 .gpu_memory_total = 24e9};
    told_attempts(attempts);
    stk_events_start(events, &start);
    stk_events_attempt(events, &first);
    for (int i = 1; i <= 4; i++) {
        stk_event_step step = told_command_step(i, 2.0 / i);
        stk_event_sample sample = told_command_sample(i);
        stk_events_step(events, &step);
        stk_events_sample(events, &sample);
    }
    stk_events_verdict(events, &verdict);
    stk_events_decision(events, "batch 64", "memory 10 %, activity 35 %");
    stk_events_attempt(events, &attempts[0]);
    stk_events_attempt(events, &second);
}

static inline void tell_command_rest(const stk_events *events) {
    stk_event_attempt attempts[3];
    stk_event_attempt prediction = told_launch("predict", 1, -1);
    told_attempts(attempts);
    stk_summary summary = told_command_summary(attempts, 3);
    stk_event_submission submission = {
        .path = "submission.csv", .status = "partial", .rows = 12, .models_wanted = -1};
    stk_events_attempt(events, &attempts[1]);
    stk_events_attempt(events, &prediction);
    stk_events_attempt(events, &attempts[2]);
    stk_events_submission(events, &submission);
    stk_events_stop(events, &summary);
}

#endif
