/* told_run.h - a run as its events tell it, for tests of who listens. */
#ifndef STK_TESTS_TOLD_RUN_H
#define STK_TESTS_TOLD_RUN_H

#include <math.h>

#include <stoker/events.h>

/* A text that is markup, ends quotes and is no UTF-8. */
#define TOLD_EVIL "<script>alert('1')</script>\"& \xff\x07"

static inline stk_event_start told_start(void) {
    return (stk_event_start){.chosen = "batch 32 (auto)",
                             .run_dir = "runs/demo",
                             .data = "demo/data",
                             .model = "convnet_s",
                             .device = "cuda:0",
                             .precision = "fp16",
                             .img_size = 64,
                             .batch = 32,
                             .workers = 4,
                             .prefetch = 2,
                             .classes = 8,
                             .folds = 1,
                             .cores = 8,
                             .memory_bytes = INT64_C(64000000000),
                             .device_name = "NVIDIA A10",
                             .device_bytes = INT64_C(24000000000),
                             .train_images = 480,
                             .val_images = 120,
                             .test_images = 60,
                             .budget_s = 600};
}

/* Epochs get better; their times add up to ten seconds. */
static inline stk_event_epoch told_epoch(int fold, int epoch) {
    return (stk_event_epoch){.fold = fold,
                             .epoch = epoch,
                             .epochs = 10,
                             .train_loss = 2.0 / epoch,
                             .train_acc1 = 100 - 60.0 / epoch,
                             .val_loss = 2.2 / epoch,
                             .val_acc1 = 100 - 70.0 / epoch,
                             .val_acc5 = 100 - 20.0 / epoch,
                             .lr = 0.1 / epoch,
                             .images_per_second = 400 + epoch,
                             .wait_fraction = 0.25,
                             .seconds = 10,
                             .best = true,
                             .times = {.read_s = 0.5,
                                       .decode_s = 1.5,
                                       .queue_s = 0.25,
                                       .copy_s = 0.25,
                                       .compute_s = 5,
                                       .update_s = 0.5,
                                       .validate_s = 1,
                                       .checkpoint_s = 0.5,
                                       .other_s = 0.5,
                                       .total_s = 10}};
}

static inline stk_event_sample told_sample(double at_s, const float *cores, int core_count) {
    return (stk_event_sample){.at_s = at_s,
                              .gpu_util = 80,
                              .sm_activity = 60,
                              .gpu_memory_used = 18e9,
                              .gpu_memory_total = 24e9,
                              .gpu_power_w = 200,
                              .gpu_temperature_c = 66,
                              .gpu_clock_mhz = 1500,
                              .gpu_clock_most_mhz = 1900,
                              .gpu_throttled = "power",
                              .pcie_in = 1e9,
                              .pcie_out = 1e8,
                              .cpu = 70,
                              .cpu_own = 60,
                              .iowait = 2,
                              .core_count = core_count,
                              .cores = cores,
                              .resident = 2e9,
                              .memory_used = 9e9,
                              .disk_read = 1e8,
                              .disk_written = 1e6,
                              .net_in = 1e7,
                              .net_out = 1e5,
                              .images_per_second = 400 + at_s,
                              .wait_fraction = 0.25,
                              .batches_ready = 3,
                              .slots = 8,
                              .workers = 4,
                              .jpeg_util = 41};
}

static inline stk_event_verdict told_verdict(void) {
    return (stk_event_verdict){.name = "decode-bound",
                               .text = "input-bound: the GPU waits 46 %",
                               .evidence = "waiting 46 %, of which decoding 97 %",
                               .images_per_second = 2900,
                               .wait_fraction = 0.46,
                               .gpu_util = 54,
                               .gpu_memory_used = 18e9,
                               .gpu_memory_total = 24e9,
                               .remedy_count = 2,
                               .remedies = {{"stage at 256 px", "stoker stage --size 256", 2.1},
                                            {"more workers", "--workers 32", NAN}},
                               .device_decoded = 0.92,
                               .jpeg_util = 41};
}

static inline stk_summary told_summary(void) {
    return (stk_summary){.status = "complete",
                         .stop_reason = "epochs",
                         .best_acc1 = 90,
                         .metric = "macro_f1",
                         .best_metric = 0.875,
                         .epochs_done = 7,
                         .folds_done = 1,
                         .folds_planned = 1,
                         .oof_acc1 = NAN,
                         .oof_metric = NAN,
                         .held_out = NAN,
                         .temperature = NAN,
                         .images_per_second = 403,
                         .wait_fraction = 0.25,
                         .budget_s = 600,
                         .used_s = 120,
                         .reserve_s = 60,
                         .batch = 32,
                         .workers = 4,
                         .prefetch = 2,
                         .device = "cuda:0",
                         .precision = "fp16",
                         .bad_images = 1,
                         .verdict = "decode-bound",
                         .submission = "submission.csv"};
}

#endif
