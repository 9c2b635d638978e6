/* verb_plan.c - `stoker plan`. */
#include "cli/cli.h"

#include <math.h>
#include <stdio.h>

#include "base/error.h"
#include "base/str.h"
#include "base/text/json.h"
#include "options/options.h"

static void put_number(stk_json_writer *writer, const char *key, double value) {
    stk_json_key(writer, key);
    stk_json_put_double(writer, stk_as_shown(value));
}

static void put_count(stk_json_writer *writer, const char *key, int64_t value) {
    stk_json_key(writer, key);
    stk_json_put_int(writer, value);
}

static void put_text(stk_json_writer *writer, const char *key, const char *value) {
    stk_json_key(writer, key);
    stk_json_put_string(writer, value);
}

static void put_memory(stk_json_writer *writer, const stk_estimate *e) {
    stk_json_key(writer, "device_memory");
    stk_json_begin_object(writer);
    put_count(writer, "weights", (int64_t)e->weights);
    put_count(writer, "gradients", (int64_t)e->gradients);
    put_count(writer, "optimiser", (int64_t)e->optimiser);
    put_count(writer, "average", (int64_t)e->average);
    put_count(writer, "activations", (int64_t)e->activations);
    put_count(writer, "workspace", (int64_t)e->workspace);
    put_count(writer, "inference", (int64_t)e->inference);
    put_count(writer, "total", (int64_t)e->device_bytes);
    put_count(writer, "free", (int64_t)e->device_free);
    put_count(writer, "of", (int64_t)e->device_total);
    stk_json_end_object(writer);
    stk_json_key(writer, "host_memory");
    stk_json_begin_object(writer);
    put_count(writer, "batches", (int64_t)e->batches);
    put_count(writer, "reads", (int64_t)e->reads);
    put_count(writer, "cache", (int64_t)e->cache);
    put_count(writer, "saving", (int64_t)e->saving);
    stk_json_end_object(writer);
}

/* Why the batch is what it is. */
static void put_batch(stk_json_writer *writer, const stk_estimate *e) {
    stk_json_key(writer, "batch_why");
    if (e->batch_why[0] != '\0') {
        stk_json_put_string(writer, e->batch_why);
    } else {
        stk_json_put_double(writer, NAN); /* null: it was given, or is the rule's */
    }
    stk_json_key(writer, "batches_measured");
    stk_json_begin_array(writer);
    for (int i = 0; i < e->measured_count; i++) {
        stk_json_begin_object(writer);
        put_count(writer, "batch", e->measured[i].batch);
        put_number(writer, "images_per_second", e->measured[i].images_per_second);
        stk_json_end_object(writer);
    }
    stk_json_end_array(writer);
}

static stk_status print_json(const stk_estimate *e, stk_error *err) {
    stk_str text = {0};
    stk_json_writer writer = stk_json_write_to(&text, 0);
    stk_json_begin_object(&writer);
    put_text(&writer, "device", e->device);
    put_text(&writer, "precision", e->precision);
    put_count(&writer, "batch", e->batch);
    put_count(&writer, "accumulate", e->accumulate);
    put_batch(&writer, e);
    put_count(&writer, "workers", e->workers);
    put_count(&writer, "train_images", e->train_images);
    put_count(&writer, "val_images", e->val_images);
    put_count(&writer, "test_images", e->test_images);
    put_count(&writer, "steps_per_epoch", e->steps_per_epoch);
    put_number(&writer, "images_per_second", e->images_per_second);
    put_number(&writer, "wait_fraction", e->wait_fraction);
    put_number(&writer, "setup_s", e->setup_s);
    put_number(&writer, "step_s", e->step_s);
    put_number(&writer, "val_s", e->val_s);
    put_number(&writer, "epoch_s", e->epoch_s);
    put_number(&writer, "predict_s", e->predict_s);
    put_number(&writer, "total_s", e->total_s);
    put_number(&writer, "budget_s", e->budget_s);
    put_number(&writer, "reserve_s", e->reserve_s);
    put_count(&writer, "folds_wanted", e->folds_wanted);
    stk_json_key(&writer, "epochs_wanted");
    if (e->epochs_wanted > 0) {
        stk_json_put_int(&writer, e->epochs_wanted);
    } else {
        stk_json_put_double(&writer, NAN); /* null: as many as fit */
    }
    put_count(&writer, "epochs_weighed", e->epochs_weighed);
    put_count(&writer, "folds", e->folds);
    put_count(&writer, "epochs", e->epochs);
    put_count(&writer, "steps", e->steps);
    stk_json_key(&writer, "cut");
    stk_json_put_bool(&writer, e->cut);
    put_memory(&writer, e);
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
    printf("memory of the host besides, at most, with %d workers\n", e->workers);
    print_part("batches", e->batches);
    print_part("reads", e->reads);
    print_part("cache", e->cache);
    print_part("saving", e->saving);
}

static void print_seconds(const char *name, double seconds, const char *more) {
    printf("  %-12s %10.3g s%s%s\n", name, seconds, more[0] != '\0' ? "  " : "", more);
}

static void print_time(const stk_estimate *e) {
    char more[160];
    printf("\ntime\n");
    print_seconds("set-up", e->setup_s, "listing, opening, compiling");
    snprintf(more, sizeof more, "%lld steps of %.3g ms, %.0f images/s, waiting %.0f %%",
             (long long)e->steps_per_epoch, 1e3 * e->step_s, e->images_per_second,
             100 * e->wait_fraction);
    print_seconds("epoch", e->epoch_s, more);
    snprintf(more, sizeof more, "%lld images, part of the epoch", (long long)e->val_images);
    print_seconds("validation", e->val_s, more);
    snprintf(more, sizeof more, "%lld test images with one model", (long long)e->test_images);
    print_seconds("prediction", e->predict_s, more);
    snprintf(more, sizeof more, "%d fold%s of %d epoch%s", e->folds_wanted,
             e->folds_wanted == 1 ? "" : "s", e->epochs_weighed, e->epochs_weighed == 1 ? "" : "s");
    print_seconds("in all", e->total_s, more);
    if (isfinite(e->budget_s)) {
        print_seconds("budget", e->budget_s, "");
        print_seconds("reserve", e->reserve_s, "kept back for prediction");
    }
}

/* "2 folds of 7 epochs", of which the last may be a part, or of a part of one. */
static void print_extent(const stk_estimate *e) {
    int64_t last = e->steps - (int64_t)(e->epochs - 1) * e->steps_per_epoch;
    double percent = 100 * (double)last / (double)e->steps_per_epoch;
    bool part = last < e->steps_per_epoch;
    printf("%d fold%s of ", e->folds, e->folds == 1 ? "" : "s");
    if (part && e->epochs == 1) {
        printf("a part of an epoch: %lld of %lld steps (%.0f %%)\n", (long long)last,
               (long long)e->steps_per_epoch, percent);
    } else if (part) {
        printf("%d epochs, the last one to %.0f %%\n", e->epochs, percent);
    } else {
        printf("%d epoch%s\n", e->epochs, e->epochs == 1 ? "" : "s");
    }
}

static void print_verdict(const stk_estimate *e) {
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

static void print_text(const stk_estimate *e, bool quiet) {
    if (!quiet) {
        printf("%s, %s, batch %lld", e->device, e->precision, (long long)e->batch);
        if (e->accumulate > 1) {
            printf(" x %lld", (long long)e->accumulate);
        }
        printf(": %lld training images, %lld validation, %lld test\n", (long long)e->train_images,
               (long long)e->val_images, (long long)e->test_images);
        print_memory(e);
        print_time(e);
    }
    print_verdict(e);
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
