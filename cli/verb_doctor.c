/* verb_doctor.c - `stoker doctor`: what is slow in a training, and what would help. */
#include "cli/cli.h"

#include <math.h>
#include <stdio.h>

#include "base/error.h"
#include "base/text/json.h"
#include "probe/doctor/doctor.h"
#include "probe/doctor/text.h"

static void put_number(stk_json_writer *writer, const char *key, double value) {
    stk_json_key(writer, key);
    stk_json_put_double(writer, stk_as_shown(isfinite(value) ? value : NAN));
}

static void put_text(stk_json_writer *writer, const char *key, const char *text) {
    stk_json_key(writer, key);
    stk_json_put_string(writer, text);
}

static void put_count(stk_json_writer *writer, const char *key, int64_t value) {
    stk_json_key(writer, key);
    stk_json_put_int(writer, value);
}

static void put_truth(stk_json_writer *writer, const char *key, bool value) {
    stk_json_key(writer, key);
    stk_json_put_bool(writer, value);
}

static void put_what_if(stk_json_writer *writer, const stk_what_if *w) {
    stk_json_begin_object(writer);
    put_text(writer, "what", w->what);
    put_text(writer, "flags", w->flags[0] != '\0' ? w->flags : NULL);
    put_number(writer, "images_per_second", w->images_per_second);
    put_number(writer, "epoch_s", w->epoch_s);
    put_number(writer, "gain", w->gain);
    put_text(writer, "narrowest", w->narrowest);
    put_text(writer, "basis", w->basis);
    stk_json_end_object(writer);
}

/* What was examined. */
static void put_case(stk_json_writer *writer, const stk_diagnosis *d) {
    put_text(writer, "model", d->model);
    put_text(writer, "device", d->device);
    put_text(writer, "device_name", d->about);
    put_text(writer, "precision", d->precision);
    put_count(writer, "batch", d->batch);
    put_count(writer, "measured_batch", d->measured_batch);
    put_count(writer, "img_size", d->img_size);
    put_count(writer, "cores", d->cores);
    put_count(writer, "workers", d->workers);
    put_count(writer, "images", d->images);
    put_count(writer, "pictures_read", d->pictures);
    put_number(writer, "picture_bytes", d->picture_bytes);
    put_number(writer, "picture_px", d->picture_px);
    put_truth(writer, "remote", d->is_remote);
    put_truth(writer, "kept_near", d->is_kept);
}

/* The rates, in the order in which pictures pass. */
static void put_rates(stk_json_writer *writer, const stk_diagnosis *d) {
    put_number(writer, "storage_cold", d->storage_cold);
    put_number(writer, "storage_cold_bytes_per_second", d->cold_bytes);
    put_number(writer, "storage_warm", d->storage_warm);
    put_number(writer, "storage_warm_bytes_per_second", d->warm_bytes);
    put_number(writer, "decode", d->decode);
    put_number(writer, "decode_per_worker", d->decode_worker);
    put_number(writer, "core_share", d->core_share);
    put_number(writer, "loader", d->loader);
    put_number(writer, "copy", d->copy);
    put_number(writer, "copy_bytes_per_second", d->copy_bytes);
    put_number(writer, "step", d->step);
    put_number(writer, "step_ms", d->step_ms);
    put_number(writer, "step_fixed_ms", d->fixed_ms);
    put_number(writer, "predicted", d->predicted);
    put_number(writer, "together", d->together);
    put_number(writer, "wait_fraction", d->wait_fraction);
    put_text(writer, "narrowest", d->narrowest);
    put_number(writer, "epoch_s", d->epoch_s);
    put_number(writer, "first_epoch_s", d->first_epoch_s);
}

static stk_status print_json(const stk_diagnosis *d, const char *plot, stk_error *err) {
    stk_str text = {0};
    stk_json_writer writer = stk_json_write_to(&text, 0);
    stk_json_begin_object(&writer);
    put_case(&writer, d);
    put_rates(&writer, d);
    stk_json_key(&writer, "what_if");
    stk_json_begin_array(&writer);
    for (int i = 0; i < d->what_if_count; i++) {
        put_what_if(&writer, &d->what_ifs[i]);
    }
    stk_json_end_array(&writer);
    put_number(&writer, "seconds", d->seconds);
    put_text(&writer, "plot", plot);
    stk_json_end_object(&writer);
    return cli_print_object(&text, err);
}

/* With --quiet it is one sentence. */
static stk_status print_text(const cli_session *session, const stk_diagnosis *d, const char *plot,
                             stk_error *err) {
    stk_str text = {0};
    if (session->quiet) {
        stk_doctor_verdict(d, &text);
    } else {
        stk_str_append(&text, "\n");
        stk_doctor_print(d, &text);
        stk_str_appendf(&text, "\nexamined in %.0f s", d->seconds);
        if (plot != NULL) {
            stk_str_appendf(&text, "; the picture is %s", cli_clean(plot));
        }
    }
    return cli_print_for_people(session, &text, err);
}

static stk_status examine(cli_session *session, stk_error *err) {
    stk_diagnosis diagnosis = {.size = sizeof diagnosis};
    const stk_doctor_options *wanted =
        stk_options_values(session->options, &stk_doctor_option_table);
    stk_run with = cli_run_for_object(session);
    stk_status status = stk_doctor(session->options, &with, &diagnosis, err);
    /* A picture that cannot be written does not take away what was measured. */
    if (status == STK_OK || diagnosis.seconds > 0) {
        const char *drawn = status == STK_OK ? wanted->plot : NULL;
        stk_status printed = session->json ? print_json(&diagnosis, drawn, err)
                                           : print_text(session, &diagnosis, drawn, err);
        status = status == STK_OK ? printed : status;
    }
    return status;
}

static int run(const cli_verb *verb, int argc, char **argv) {
    return cli_run_work(verb, argc, argv, "data", examine);
}

const cli_verb cli_doctor = {
    .name = "doctor",
    .prints = true,
    .output = "plot",
    .summary = "Measures each stage of a training alone and together, and says what would help.",
    .usage = "--data PATH|URL [--model NAME] [--seconds N] [--plot FILE.png|svg] [options]",
    .options = stk_options_for_doctor,
    .run = run,
    .ends_at_stop = true,
};
