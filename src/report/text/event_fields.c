/*
 * event_fields.c - the fields of every kind of event.
 *
 * Rows stand in the order in which a line of events.jsonl has them; a new field is one new row.
 */
#include "report/text/event_fields.h"

#define FIELD(type, kind, name) STK_FIELD(type, kind, #name, name)

/* A row for an array, whose length is the field `count`. */
#define LIST(type, kind, name, count) \
    { #name, STK_FIELD_##kind, offsetof(type, name), offsetof(type, count) }

/* Without start_ns, a reading of the monotonic clock: it means nothing to a later reader of the
 * file. */
static const stk_field start_rows[] = {
    FIELD(stk_event_start, TEXT, chosen),
    FIELD(stk_event_start, TEXT, run_dir),
    FIELD(stk_event_start, TEXT, data),
    FIELD(stk_event_start, TEXT, model),
    FIELD(stk_event_start, TEXT, device),
    FIELD(stk_event_start, TEXT, precision),
    FIELD(stk_event_start, COUNT, img_size),
    FIELD(stk_event_start, COUNT, batch),
    FIELD(stk_event_start, COUNT, workers),
    FIELD(stk_event_start, COUNT, prefetch),
    FIELD(stk_event_start, COUNT, classes),
    FIELD(stk_event_start, COUNT, folds),
    FIELD(stk_event_start, COUNT, cores),
    FIELD(stk_event_start, COUNT64, memory_bytes),
    FIELD(stk_event_start, TEXT, device_name),
    FIELD(stk_event_start, COUNT64, device_bytes),
    FIELD(stk_event_start, COUNT64, train_images),
    FIELD(stk_event_start, COUNT64, val_images),
    FIELD(stk_event_start, COUNT64, test_images),
    FIELD(stk_event_start, SECONDS, budget_s),
};

static const stk_field plan_rows[] = {
    FIELD(stk_event_plan, COUNT, fold),
    FIELD(stk_event_plan, COUNT, epochs),
    FIELD(stk_event_plan, COUNT64, steps_per_epoch),
    FIELD(stk_event_plan, SECONDS, seconds_per_epoch),
    FIELD(stk_event_plan, SECONDS, total_s),
    FIELD(stk_event_plan, SECONDS, left_s),
    FIELD(stk_event_plan, SECONDS, reserve_s),
};

static const stk_field decision_rows[] = {
    FIELD(stk_event_decision, TEXT, what),
    FIELD(stk_event_decision, TEXT, why),
};

static const stk_field step_rows[] = {
    FIELD(stk_event_step, COUNT, fold),
    FIELD(stk_event_step, COUNT, epoch),
    FIELD(stk_event_step, COUNT, epochs),
    FIELD(stk_event_step, COUNT64, step),
    FIELD(stk_event_step, COUNT64, steps),
    FIELD(stk_event_step, COUNT64, steps_done),
    FIELD(stk_event_step, NUMBER, loss),
    FIELD(stk_event_step, NUMBER, acc1),
    FIELD(stk_event_step, NUMBER, lr),
    FIELD(stk_event_step, NUMBER, steps_per_second),
    FIELD(stk_event_step, NUMBER, images_per_second),
    FIELD(stk_event_step, NUMBER, wait_fraction),
    FIELD(stk_event_step, SECONDS, left_s),
    FIELD(stk_event_step, TIMES, times),
};

static const stk_field epoch_rows[] = {
    FIELD(stk_event_epoch, COUNT, fold),
    FIELD(stk_event_epoch, COUNT, epoch),
    FIELD(stk_event_epoch, COUNT, epochs),
    FIELD(stk_event_epoch, NUMBER, train_loss),
    FIELD(stk_event_epoch, NUMBER, train_acc1),
    FIELD(stk_event_epoch, NUMBER, val_loss),
    FIELD(stk_event_epoch, NUMBER, val_acc1),
    FIELD(stk_event_epoch, NUMBER, val_acc5),
    FIELD(stk_event_epoch, NUMBER, lr),
    FIELD(stk_event_epoch, NUMBER, images_per_second),
    FIELD(stk_event_epoch, NUMBER, wait_fraction),
    FIELD(stk_event_epoch, SECONDS, seconds),
    FIELD(stk_event_epoch, TRUTH, best),
    FIELD(stk_event_epoch, TIMES, times),
};

static const stk_field times_rows[] = {
    FIELD(stk_times, SECONDS, read_s),     FIELD(stk_times, SECONDS, decode_s),
    FIELD(stk_times, SECONDS, queue_s),    FIELD(stk_times, SECONDS, copy_s),
    FIELD(stk_times, SECONDS, compute_s),  FIELD(stk_times, SECONDS, update_s),
    FIELD(stk_times, SECONDS, validate_s), FIELD(stk_times, SECONDS, checkpoint_s),
    FIELD(stk_times, SECONDS, other_s),    FIELD(stk_times, SECONDS, total_s),
};

static const stk_field sample_rows[] = {
    FIELD(stk_event_sample, SECONDS, at_s),
    FIELD(stk_event_sample, NUMBER, gpu_util),
    FIELD(stk_event_sample, NUMBER, sm_activity),
    FIELD(stk_event_sample, NUMBER, gpu_memory_used),
    FIELD(stk_event_sample, NUMBER, gpu_memory_total),
    FIELD(stk_event_sample, NUMBER, gpu_memory_own),
    FIELD(stk_event_sample, NUMBER, gpu_power_w),
    FIELD(stk_event_sample, NUMBER, gpu_temperature_c),
    FIELD(stk_event_sample, NUMBER, gpu_clock_mhz),
    FIELD(stk_event_sample, NUMBER, gpu_clock_most_mhz),
    FIELD(stk_event_sample, TEXT, gpu_throttled),
    FIELD(stk_event_sample, NUMBER, pcie_in),
    FIELD(stk_event_sample, NUMBER, pcie_out),
    FIELD(stk_event_sample, NUMBER, cpu),
    FIELD(stk_event_sample, NUMBER, cpu_own),
    FIELD(stk_event_sample, NUMBER, iowait),
    FIELD(stk_event_sample, NUMBER, resident),
    FIELD(stk_event_sample, NUMBER, memory_used),
    FIELD(stk_event_sample, NUMBER, disk_read),
    FIELD(stk_event_sample, NUMBER, disk_written),
    FIELD(stk_event_sample, NUMBER, net_in),
    FIELD(stk_event_sample, NUMBER, net_out),
    FIELD(stk_event_sample, NUMBER, images_per_second),
    FIELD(stk_event_sample, NUMBER, wait_fraction),
    FIELD(stk_event_sample, COUNT, batches_ready),
    FIELD(stk_event_sample, COUNT, slots),
    FIELD(stk_event_sample, COUNT, workers),
    LIST(stk_event_sample, CORES, cores, core_count),
};

static const stk_field verdict_rows[] = {
    FIELD(stk_event_verdict, TEXT, name),
    FIELD(stk_event_verdict, TEXT, text),
    FIELD(stk_event_verdict, TEXT, evidence),
    FIELD(stk_event_verdict, TRUTH, fine),
    FIELD(stk_event_verdict, TRUTH, first),
    FIELD(stk_event_verdict, TEXT, batch),
    FIELD(stk_event_verdict, NUMBER, images_per_second),
    FIELD(stk_event_verdict, NUMBER, wait_fraction),
    FIELD(stk_event_verdict, NUMBER, gpu_util),
    FIELD(stk_event_verdict, NUMBER, gpu_memory_used),
    FIELD(stk_event_verdict, NUMBER, gpu_memory_total),
    LIST(stk_event_verdict, REMEDIES, remedies, remedy_count),
};

static const stk_field remedy_rows[] = {
    FIELD(stk_remedy, TEXT, text),
    FIELD(stk_remedy, TEXT, flags),
    FIELD(stk_remedy, NUMBER, gain),
};

/* The attempts of a summary have ended, and lack the first row. */
static const stk_field attempt_rows[] = {
    FIELD(stk_event_attempt, TRUTH, ended),
    FIELD(stk_event_attempt, COUNT, number),
    FIELD(stk_event_attempt, TEXT, part),
    FIELD(stk_event_attempt, TEXT, command),
    FIELD(stk_event_attempt, COUNT64, batch),
    FIELD(stk_event_attempt, COUNT, workers),
    FIELD(stk_event_attempt, NUMBER, images_per_second),
    FIELD(stk_event_attempt, SECONDS, seconds),
    FIELD(stk_event_attempt, NUMBER, gpu_util),
    FIELD(stk_event_attempt, NUMBER, gpu_memory_used),
    FIELD(stk_event_attempt, NUMBER, gpu_memory_total),
    FIELD(stk_event_attempt, TEXT, verdict),
    FIELD(stk_event_attempt, TEXT, stop_reason),
    FIELD(stk_event_attempt, COUNT, exit_code),
    FIELD(stk_event_attempt, COUNT, signal),
    FIELD(stk_event_attempt, TRUTH, kept),
};

static const stk_field checkpoint_rows[] = {
    FIELD(stk_event_checkpoint, TEXT, path),
    FIELD(stk_event_checkpoint, TRUTH, best),
};

static const stk_field bad_image_rows[] = {
    FIELD(stk_event_bad_image, TEXT, path),
    FIELD(stk_event_bad_image, TEXT, split),
    FIELD(stk_event_bad_image, TEXT, reason),
};

static const stk_field submission_rows[] = {
    FIELD(stk_event_submission, TEXT, path),           FIELD(stk_event_submission, TEXT, status),
    FIELD(stk_event_submission, COUNT64, rows),        FIELD(stk_event_submission, COUNT, models),
    FIELD(stk_event_submission, COUNT, models_wanted),
};

static const stk_field summary_rows[] = {
    FIELD(stk_summary, TEXT, status),
    FIELD(stk_summary, TEXT, stop_reason),
    FIELD(stk_summary, NUMBER, best_acc1),
    FIELD(stk_summary, TEXT, metric),
    FIELD(stk_summary, NUMBER, best_metric),
    FIELD(stk_summary, COUNT, epochs_done),
    FIELD(stk_summary, COUNT, folds_done),
    FIELD(stk_summary, COUNT, folds_planned),
    FIELD(stk_summary, NUMBER, oof_acc1),
    FIELD(stk_summary, NUMBER, oof_metric),
    FIELD(stk_summary, NUMBER, images_per_second),
    FIELD(stk_summary, NUMBER, wait_fraction),
    FIELD(stk_summary, SECONDS, budget_s),
    FIELD(stk_summary, SECONDS, used_s),
    FIELD(stk_summary, SECONDS, reserve_s),
    FIELD(stk_summary, COUNT, batch),
    FIELD(stk_summary, COUNT, workers),
    FIELD(stk_summary, COUNT, prefetch),
    FIELD(stk_summary, TEXT, device),
    FIELD(stk_summary, TEXT, precision),
    FIELD(stk_summary, COUNT64, bad_images),
    FIELD(stk_summary, TEXT, verdict),
    FIELD(stk_summary, TEXT, submission),
};

static const stk_field summary_command_rows[] = {
    FIELD(stk_summary, TEXT, command),
    FIELD(stk_summary, TEXT, estimate),
    FIELD(stk_summary, COUNT, exit_code),
    LIST(stk_summary, ATTEMPTS, attempts, attempt_count),
};

static const stk_field warning_rows[] = {
    FIELD(stk_event_warning, TEXT, text),
};

const stk_fields stk_times_fields = STK_FIELDS(times_rows);
const stk_fields stk_remedy_fields = STK_FIELDS(remedy_rows);
const stk_fields stk_attempt_done_fields = {attempt_rows + 1,
                                            sizeof attempt_rows / sizeof *attempt_rows - 1};
const stk_fields stk_summary_command_fields = STK_FIELDS(summary_command_rows);

const stk_event_form stk_event_forms[STK_EVENT_KINDS] = {
    [STK_EVENT_START] = {"start", STK_FIELDS(start_rows)},
    [STK_EVENT_PLAN] = {"plan", STK_FIELDS(plan_rows)},
    [STK_EVENT_DECISION] = {"decision", STK_FIELDS(decision_rows)},
    [STK_EVENT_STEP] = {"step", STK_FIELDS(step_rows)},
    [STK_EVENT_EPOCH] = {"epoch", STK_FIELDS(epoch_rows)},
    [STK_EVENT_CHECKPOINT] = {"checkpoint", STK_FIELDS(checkpoint_rows)},
    [STK_EVENT_BAD_IMAGE] = {"bad_image", STK_FIELDS(bad_image_rows)},
    [STK_EVENT_SUBMISSION] = {"submission", STK_FIELDS(submission_rows)},
    [STK_EVENT_WARNING] = {"warning", STK_FIELDS(warning_rows)},
    [STK_EVENT_STOP] = {"stop", STK_FIELDS(summary_rows)},
    [STK_EVENT_SAMPLE] = {"sample", STK_FIELDS(sample_rows)},
    [STK_EVENT_VERDICT] = {"verdict", STK_FIELDS(verdict_rows)},
    [STK_EVENT_ATTEMPT] = {"attempt", STK_FIELDS(attempt_rows)},
};
