/* verb_plan.c - `stoker plan`. */
#include "cli/cli.h"

#include <math.h>
#include <stdio.h>

#include "base/error.h"
#include "base/str.h"
#include "options/options.h"
#include "report/text/event_json.h"

#define FIELD(kind, name) STK_FIELD(stk_estimate, kind, #name, name)
/* Offset within an entry of `measured`, whose struct has no name. */
#define MEASURED(member) \
    (offsetof(stk_estimate, measured[0].member) - offsetof(stk_estimate, measured))
#define BYTES(key, member) STK_FIELD(stk_estimate, COUNT64, key, member)

/* The members of --json, in order: task and general figures, measured batches, the form of the
 * submission, more figures, two kinds of memory. */
static const stk_field first_rows[] = {
    FIELD(CHARS, task),    FIELD(CHARS, metric),       FIELD(CHARS, submission_takes),
    FIELD(CHARS, reason),  FIELD(CHARS, device),       FIELD(CHARS, precision),
    FIELD(COUNT64, batch), FIELD(COUNT64, accumulate), FIELD(CHARS, batch_why),
};

static const stk_field submission_rows[] = {
    STK_FIELD(stk_estimate, COUNT64, "rows", submission_rows),
    STK_FIELD(stk_estimate, COUNT, "columns", submission_columns),
    STK_FIELD(stk_estimate, CHARS, "header", submission_header),
    STK_FIELD(stk_estimate, CHARS, "sample", submission_like),
};

static const stk_field further_rows[] = {
    FIELD(COUNT, workers),
    FIELD(COUNT64, train_images),
    FIELD(COUNT64, val_images),
    FIELD(COUNT64, test_images),
    FIELD(COUNT64, steps_per_epoch),
    FIELD(NUMBER, images_per_second),
    FIELD(NUMBER, wait_fraction),
    FIELD(NUMBER, setup_s),
    FIELD(NUMBER, step_s),
    FIELD(NUMBER, val_s),
    FIELD(NUMBER, epoch_s),
    FIELD(NUMBER, predict_s),
    FIELD(NUMBER, total_s),
    FIELD(NUMBER, budget_s),
    FIELD(NUMBER, reserve_s),
    FIELD(COUNT, folds_wanted),
    FIELD(COUNT, epochs_wanted),
    FIELD(COUNT, epochs_weighed),
    FIELD(COUNT, folds),
    FIELD(COUNT, epochs),
    FIELD(COUNT64, steps),
    FIELD(TRUTH, cut),
    FIELD(COUNT, refits),
};

static const stk_field device_rows[] = {
    BYTES("weights", weights),     BYTES("gradients", gradients),     BYTES("optimiser", optimiser),
    BYTES("average", average),     BYTES("activations", activations), BYTES("workspace", workspace),
    BYTES("inference", inference), BYTES("total", device_bytes),      BYTES("free", device_free),
    BYTES("of", device_total),     BYTES("decoder", decoder),
};

static const stk_field host_rows[] = {
    BYTES("batches", batches),
    BYTES("reads", reads),
    BYTES("cache", cache),
    BYTES("saving", saving),
};

static const stk_field measured_rows[] = {
    {"batch", STK_FIELD_COUNT64, MEASURED(batch), 0},
    {"images_per_second", STK_FIELD_NUMBER, MEASURED(images_per_second), 0},
};

static const stk_fields first_fields = STK_FIELDS(first_rows);
static const stk_fields submission_fields = STK_FIELDS(submission_rows);
static const stk_fields further_fields = STK_FIELDS(further_rows);
static const stk_fields device_fields = STK_FIELDS(device_rows);
static const stk_fields host_fields = STK_FIELDS(host_rows);
static const stk_fields measured_fields = STK_FIELDS(measured_rows);

static stk_status print_json(const stk_estimate *estimate, stk_error *err) {
    stk_str text = {0};
    stk_json_writer writer = stk_json_write_to(&text, 0);
    stk_estimate e = *estimate;
    e.epochs_wanted = e.epochs_wanted > 0 ? e.epochs_wanted : -1; /* null: as many as fit */
    stk_json_begin_object(&writer);
    stk_fields_put(&writer, &first_fields, &e);
    stk_json_key(&writer, "batches_measured");
    stk_json_begin_array(&writer);
    for (int i = 0; i < e.measured_count; i++) {
        stk_json_begin_object(&writer);
        stk_fields_put(&writer, &measured_fields, &e.measured[i]);
        stk_json_end_object(&writer);
    }
    stk_json_end_array(&writer);
    stk_json_key(&writer, "submission");
    if (e.submission_rows > 0) {
        stk_json_begin_object(&writer);
        stk_fields_put(&writer, &submission_fields, &e);
        stk_json_end_object(&writer);
    } else {
        stk_json_put_null(&writer);
    }
    stk_fields_put(&writer, &further_fields, &e);
    stk_json_key(&writer, "device_memory");
    stk_json_begin_object(&writer);
    stk_fields_put(&writer, &device_fields, &e);
    stk_json_end_object(&writer);
    stk_json_key(&writer, "host_memory");
    stk_json_begin_object(&writer);
    stk_fields_put(&writer, &host_fields, &e);
    stk_json_end_object(&writer);
    stk_json_end_object(&writer);
    return cli_print_object(&text, err);
}

static void print_part(const char *name, uint64_t bytes) {
    char text[32];
    if (bytes > 0) {
        printf("  %-12s %10s\n", name, stk_format_bytes(text, sizeof text, bytes));
    }
}

static void print_memory(const stk_estimate *e) {
    char need[32];
    char have[32];
    printf("\nmemory on %s: %s of %s that are free (%.0f %%)\n", e->device,
           stk_format_bytes(need, sizeof need, e->device_bytes),
           stk_format_bytes(have, sizeof have, e->device_free),
           e->device_free > 0 ? 100.0 * (double)e->device_bytes / (double)e->device_free : 0.0);
    print_part("weights", e->weights);
    print_part("gradients", e->gradients);
    print_part("optimiser", e->optimiser);
    print_part("average", e->average);
    print_part("activations", e->activations);
    print_part("workspace", e->workspace);
    print_part("inference", e->inference);
    print_part("decoder", e->decoder);
    printf("memory of the host besides, at most, with %d workers\n", e->workers);
    print_part("batches", e->batches);
    print_part("reads", e->reads);
    print_part("cache", e->cache);
    print_part("saving", e->saving);
}

static void print_seconds(const char *name, double seconds, const char *more) {
    char number[32];
    snprintf(number, sizeof number, seconds >= 100 ? "%.0f" : "%.3g", seconds);
    printf("  %-12s %10s s%s%s\n", name, number, more[0] != '\0' ? "  " : "", more);
}

/* "3 folds"; validated models and refits are "models". */
static void put_models(char *text, size_t room, const stk_estimate *e, int count) {
    snprintf(text, room, "%d %s%s", count, e->refits > 0 ? "model" : "fold", count == 1 ? "" : "s");
}

static void print_time(const stk_estimate *e) {
    char more[160];
    char models[32];
    printf("\ntime\n");
    print_seconds("set-up", e->setup_s, "listing, opening, compiling");
    double step_ms = 1e3 * e->step_s;
    snprintf(more, sizeof more, "%lld steps of %.*f ms, %.0f images/s, waiting %.0f %%",
             (long long)e->steps_per_epoch, step_ms < 100, step_ms, e->images_per_second,
             100 * e->wait_fraction);
    print_seconds("epoch", e->epoch_s, more);
    snprintf(more, sizeof more, "%lld images, part of the epoch", (long long)e->val_images);
    print_seconds("validation", e->val_s, more);
    snprintf(more, sizeof more, "%lld test images with one model", (long long)e->test_images);
    print_seconds("prediction", e->predict_s, more);
    put_models(models, sizeof models, e, e->folds_wanted);
    snprintf(more, sizeof more, "%s of %d epoch%s", models, e->epochs_weighed,
             e->epochs_weighed == 1 ? "" : "s");
    print_seconds("in all", e->total_s, more);
    if (isfinite(e->budget_s)) {
        print_seconds("budget", e->budget_s, "");
        print_seconds("reserve", e->reserve_s, "kept back for prediction");
    }
}

/* Prints "2 folds of 7 epochs" and a line end; the last epoch may be cut. */
static void print_extent(const stk_estimate *e) {
    int64_t last = e->steps - (int64_t)(e->epochs - 1) * e->steps_per_epoch;
    double percent = 100 * (double)last / (double)e->steps_per_epoch;
    bool part = last < e->steps_per_epoch;
    char models[32];
    put_models(models, sizeof models, e, e->folds);
    printf("%s of ", models);
    if (part && e->epochs == 1) {
        printf("a part of an epoch: %lld of %lld steps (%.0f %%)\n", (long long)last,
               (long long)e->steps_per_epoch, percent);
    } else if (part) {
        printf("%d epochs, the last one to %.0f %%\n", e->epochs, percent);
    } else {
        printf("%d epoch%s\n", e->epochs, e->epochs == 1 ? "" : "s");
    }
}

static void print_fit(const stk_estimate *e) {
    if (!isfinite(e->budget_s)) {
        printf("\nwithout a budget nothing is cut\n");
    } else if (e->steps == 0) {
        printf("\nthe budget is too short to train: no step fits with its validation before the "
               "reserve\n");
    } else {
        printf(e->cut ? "\nthe budget cuts it to " : "\nit fits: ");
        print_extent(e);
    }
}

static void print_task(const stk_estimate *e) {
    bool submits = e->submission_takes[0] != '\0';
    printf("task %s, rated by %s%s%s\n", e->task, e->metric,
           submits ? "; each row of the submission takes " : "", e->submission_takes);
}

static void print_text(const stk_estimate *e, bool quiet) {
    if (!quiet) {
        print_task(e);
        printf("%s, %s, batch %lld", e->device, e->precision, (long long)e->batch);
        if (e->accumulate > 1) {
            printf(" x %lld", (long long)e->accumulate);
        }
        printf(": %lld training images, %lld validation, %lld test\n", (long long)e->train_images,
               (long long)e->val_images, (long long)e->test_images);
        print_memory(e);
        print_time(e);
    }
    print_fit(e);
}

static stk_status plan(cli_session *session, stk_error *err) {
    stk_estimate e = {.size = sizeof e};
    stk_run with = cli_run_for_object(session);
    stk_status status = stk_plan_run(session->options, &with, &e, err);
    if (status == STK_OK && session->json) {
        status = print_json(&e, err);
    } else if (status == STK_OK) {
        print_text(&e, session->quiet);
    }
    return status;
}

static int run(const cli_verb *verb, int argc, char **argv) {
    return cli_run_work(verb, argc, argv, "data", plan);
}

const cli_verb cli_plan = {
    .name = "plan",
    .prints = true,
    .summary = "Says what a training would need: time, memory, what a budget would cut.",
    .usage = "--data DIR [--model NAME] [--budget T] [options]",
    .options = stk_options_for_plan,
    .run = run,
    .ends_at_stop = true,
};
