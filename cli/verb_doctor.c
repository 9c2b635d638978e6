/* verb_doctor.c - `stoker doctor`: what is slow in a training, and what would help. */
#include "cli/cli.h"

#include <stdio.h>

#include "base/error.h"
#include "probe/doctor/doctor.h"
#include "report/text/event_json.h"

/* What was examined, then the rates of the stages in the order of the pipeline. */
static const stk_field diagnosis_rows[] = {
    STK_FIELD(stk_diagnosis, CHARS, "model", model),
    STK_FIELD(stk_diagnosis, CHARS, "device", device),
    STK_FIELD(stk_diagnosis, CHARS, "device_name", about),
    STK_FIELD(stk_diagnosis, CHARS, "precision", precision),
    STK_FIELD(stk_diagnosis, COUNT64, "batch", batch),
    STK_FIELD(stk_diagnosis, COUNT64, "measured_batch", measured_batch),
    STK_FIELD(stk_diagnosis, COUNT, "img_size", img_size),
    STK_FIELD(stk_diagnosis, COUNT, "cores", cores),
    STK_FIELD(stk_diagnosis, COUNT, "workers", workers),
    STK_FIELD(stk_diagnosis, COUNT64, "images", images),
    STK_FIELD(stk_diagnosis, COUNT64, "pictures_read", pictures),
    STK_FIELD(stk_diagnosis, NUMBER, "picture_bytes", picture_bytes),
    STK_FIELD(stk_diagnosis, NUMBER, "picture_px", picture_px),
    STK_FIELD(stk_diagnosis, TRUTH, "remote", is_remote),
    STK_FIELD(stk_diagnosis, TRUTH, "kept_near", is_kept),
    STK_FIELD(stk_diagnosis, NUMBER, "storage_cold", storage_cold),
    STK_FIELD(stk_diagnosis, NUMBER, "storage_cold_bytes_per_second", cold_bytes),
    STK_FIELD(stk_diagnosis, NUMBER, "storage_warm", storage_warm),
    STK_FIELD(stk_diagnosis, NUMBER, "storage_warm_bytes_per_second", warm_bytes),
    STK_FIELD(stk_diagnosis, NUMBER, "decode", decode),
    STK_FIELD(stk_diagnosis, NUMBER, "decode_per_worker", decode_worker),
    STK_FIELD(stk_diagnosis, NUMBER, "core_share", core_share),
    STK_FIELD(stk_diagnosis, NUMBER, "loader", loader),
    STK_FIELD(stk_diagnosis, NUMBER, "copy", copy),
    STK_FIELD(stk_diagnosis, NUMBER, "copy_bytes_per_second", copy_bytes),
    STK_FIELD(stk_diagnosis, NUMBER, "step", step),
    STK_FIELD(stk_diagnosis, NUMBER, "step_ms", step_ms),
    STK_FIELD(stk_diagnosis, NUMBER, "step_fixed_ms", fixed_ms),
    STK_FIELD(stk_diagnosis, NUMBER, "predicted", predicted),
    STK_FIELD(stk_diagnosis, NUMBER, "together", together),
    STK_FIELD(stk_diagnosis, NUMBER, "wait_fraction", wait_fraction),
    STK_FIELD(stk_diagnosis, TEXT, "narrowest", narrowest),
    STK_FIELD(stk_diagnosis, NUMBER, "epoch_s", epoch_s),
    STK_FIELD(stk_diagnosis, NUMBER, "first_epoch_s", first_epoch_s),
};

static const stk_field what_if_rows[] = {
    STK_FIELD(stk_what_if, CHARS, "what", what),
    STK_FIELD(stk_what_if, CHARS, "flags", flags),
    STK_FIELD(stk_what_if, NUMBER, "images_per_second", images_per_second),
    STK_FIELD(stk_what_if, NUMBER, "epoch_s", epoch_s),
    STK_FIELD(stk_what_if, NUMBER, "gain", gain),
    STK_FIELD(stk_what_if, TEXT, "narrowest", narrowest),
    STK_FIELD(stk_what_if, TEXT, "basis", basis),
};

static stk_status print_json(const stk_diagnosis *d, const char *plot, stk_error *err) {
    stk_str text = {0};
    stk_json_writer writer = stk_json_write_to(&text, 0);
    stk_json_begin_object(&writer);
    stk_fields_put(&writer, &(stk_fields)STK_FIELDS(diagnosis_rows), d);
    stk_json_key(&writer, "what_if");
    stk_json_begin_array(&writer);
    for (int i = 0; i < d->what_if_count; i++) {
        stk_json_begin_object(&writer);
        stk_fields_put(&writer, &(stk_fields)STK_FIELDS(what_if_rows), &d->what_ifs[i]);
        stk_json_end_object(&writer);
    }
    stk_json_end_array(&writer);
    stk_json_key(&writer, "seconds");
    stk_json_put_double(&writer, stk_as_shown(d->seconds));
    stk_json_key(&writer, "plot");
    stk_json_put_string(&writer, plot);
    stk_json_end_object(&writer);
    return cli_print_object(&text, err);
}

/* With --quiet prints one sentence. */
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
    /* If the picture cannot be written, the measurements are printed nevertheless. */
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
