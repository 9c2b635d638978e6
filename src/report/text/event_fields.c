/*
 * event_fields.c - the fields of every kind of event.
 *
 * Rows stand in the order in which a line of events.jsonl has them; a new field is one new row.
 */
#include "report/text/event_fields.h"

/* A table. OF is its struct. */
#define ROWS(name, ...) static const stk_field name[] = {__VA_ARGS__}

/* Rows by kind. */
#define TEXT(name) STK_FIELD(OF, TEXT, #name, name)
#define COUNT(name) STK_FIELD(OF, COUNT, #name, name)
#define COUNT64(name) STK_FIELD(OF, COUNT64, #name, name)
#define NUMBER(name) STK_FIELD(OF, NUMBER, #name, name)
#define SECONDS(name) STK_FIELD(OF, SECONDS, #name, name)
#define TRUTH(name) STK_FIELD(OF, TRUTH, #name, name)
#define TIMES(name) STK_FIELD(OF, TIMES, #name, name)

/* A row for an array, whose length is the field `count`. */
#define LIST(kind, name, count) \
    { #name, STK_FIELD_##kind, offsetof(OF, name), offsetof(OF, count) }

#define OF stk_event_start

/* Without start_ns, a reading of the monotonic clock: it means nothing to a later reader of the
 * file. */
ROWS(start_rows, TEXT(chosen), TEXT(run_dir), TEXT(data), TEXT(model), TEXT(device),
     TEXT(precision), COUNT(img_size), COUNT(batch), COUNT(workers), COUNT(prefetch),
     COUNT(classes), COUNT(folds), COUNT(cores), COUNT64(memory_bytes), TEXT(device_name),
     COUNT64(device_bytes), COUNT64(train_images), COUNT64(val_images), COUNT64(test_images),
     SECONDS(budget_s), COUNT(refits), TEXT(metric), TEXT(task));

#undef OF
#define OF stk_event_plan

ROWS(plan_rows, COUNT(fold), COUNT(epochs), COUNT64(steps_per_epoch), SECONDS(seconds_per_epoch),
     SECONDS(total_s), SECONDS(left_s), SECONDS(reserve_s), COUNT(folds), COUNT(refits));

#undef OF
#define OF stk_event_decision

ROWS(decision_rows, TEXT(what), TEXT(why));

#undef OF
#define OF stk_event_step

ROWS(step_rows, COUNT(fold), COUNT(epoch), COUNT(epochs), COUNT64(step), COUNT64(steps),
     COUNT64(steps_done), NUMBER(loss), NUMBER(acc1), NUMBER(lr), NUMBER(steps_per_second),
     NUMBER(images_per_second), NUMBER(wait_fraction), SECONDS(left_s), TIMES(times));

#undef OF
#define OF stk_event_epoch

ROWS(epoch_rows, COUNT(fold), COUNT(epoch), COUNT(epochs), NUMBER(train_loss), NUMBER(train_acc1),
     NUMBER(val_loss), NUMBER(val_acc1), NUMBER(val_acc5), NUMBER(lr), NUMBER(images_per_second),
     NUMBER(wait_fraction), SECONDS(seconds), TRUTH(best), TIMES(times), NUMBER(val_metric));

#undef OF
#define OF stk_times

ROWS(times_rows, SECONDS(read_s), SECONDS(decode_s), SECONDS(queue_s), SECONDS(copy_s),
     SECONDS(compute_s), SECONDS(update_s), SECONDS(validate_s), SECONDS(checkpoint_s),
     SECONDS(other_s), SECONDS(total_s));

#undef OF
#define OF stk_event_sample

ROWS(sample_rows, SECONDS(at_s), NUMBER(gpu_util), NUMBER(sm_activity), NUMBER(jpeg_util),
     NUMBER(gpu_memory_used), NUMBER(gpu_memory_total), NUMBER(gpu_memory_own), NUMBER(gpu_power_w),
     NUMBER(gpu_temperature_c), NUMBER(gpu_clock_mhz), NUMBER(gpu_clock_most_mhz),
     TEXT(gpu_throttled), NUMBER(pcie_in), NUMBER(pcie_out), NUMBER(cpu), NUMBER(cpu_own),
     NUMBER(iowait), NUMBER(resident), NUMBER(memory_used), NUMBER(disk_read), NUMBER(disk_written),
     NUMBER(net_in), NUMBER(net_out), NUMBER(images_per_second), NUMBER(wait_fraction),
     COUNT(batches_ready), COUNT(slots), COUNT(workers), LIST(CORES, cores, core_count));

#undef OF
#define OF stk_event_verdict

ROWS(verdict_rows, TEXT(name), TEXT(text), TEXT(evidence), TRUTH(fine), TRUTH(first), TEXT(batch),
     NUMBER(images_per_second), NUMBER(wait_fraction), NUMBER(gpu_util), NUMBER(gpu_memory_used),
     NUMBER(gpu_memory_total), NUMBER(device_decoded), NUMBER(jpeg_util),
     LIST(REMEDIES, remedies, remedy_count));

#undef OF
#define OF stk_remedy

ROWS(remedy_rows, TEXT(text), TEXT(flags), NUMBER(gain));

#undef OF
#define OF stk_event_attempt

/* The attempts of a summary have ended, and lack the first row. */
ROWS(attempt_rows, TRUTH(ended), COUNT(number), TEXT(part), TEXT(command), COUNT64(batch),
     COUNT(workers), NUMBER(images_per_second), SECONDS(seconds), NUMBER(gpu_util),
     NUMBER(gpu_memory_used), NUMBER(gpu_memory_total), TEXT(verdict), TEXT(stop_reason),
     COUNT(exit_code), COUNT(signal), TRUTH(kept));

#undef OF
#define OF stk_event_checkpoint

ROWS(checkpoint_rows, TEXT(path), TRUTH(best));

#undef OF
#define OF stk_event_bad_image

ROWS(bad_image_rows, TEXT(path), TEXT(split), TEXT(reason));

#undef OF
#define OF stk_event_submission

ROWS(submission_rows, TEXT(path), TEXT(status), COUNT64(rows), COUNT(models), COUNT(models_wanted),
     COUNT(epoch));

#undef OF
#define OF stk_summary

ROWS(summary_rows, TEXT(status), TEXT(stop_reason), TEXT(task), NUMBER(best_acc1), TEXT(metric),
     NUMBER(best_metric), COUNT(epochs_done), COUNT(folds_done), COUNT(folds_planned),
     NUMBER(oof_acc1), NUMBER(oof_metric), NUMBER(held_out), TEXT(held_out_from),
     NUMBER(temperature), TEXT(pool), NUMBER(images_per_second), NUMBER(wait_fraction),
     SECONDS(budget_s), SECONDS(used_s), SECONDS(reserve_s), COUNT(batch), COUNT(workers),
     COUNT(prefetch), TEXT(device), TEXT(precision), COUNT64(bad_images), TEXT(verdict),
     TEXT(submission));

ROWS(summary_command_rows, TEXT(command), TEXT(estimate), COUNT(exit_code),
     LIST(ATTEMPTS, attempts, attempt_count));

#undef OF
#define OF stk_event_warning

ROWS(warning_rows, TEXT(text));

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
