/*
 * doctor.c - options, and the phases one after the other. time.c says how long each may take.
 */
#include "probe/doctor/doctor.h"

#include <math.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"
#include "probe/doctor/phases.h"

#define DEFAULT_SECONDS "110" /* so that opening and closing end within two minutes */

#define FIELD(name) offsetof(stk_doctor_options, name)

static const stk_option options[] = {
    STK_OPTION(DOUBLE, "seconds", seconds, .fallback = DEFAULT_SECONDS,
               STK_OPTION_RANGE(0.1, 86400), .metavar = "N",
               .help = "approximate length of all measurements together; with less time the "
                       "figures are rougher"),
    STK_OPTION(TEXT, "plot", plot, .metavar = "FILE.png|svg",
               .help = "draw the rates and what changes would bring as bars"),
};

const stk_option_table stk_doctor_option_table =
    STK_OPTION_TABLE("Examination", options, stk_doctor_options);

/* A side of about three quarters that networks accept; 0: none is worth trying. */
static int smaller_size(int img_size) {
    int unit = img_size > 128 ? 32 : 8;
    int size = img_size * 3 / 4 / unit * unit;
    return size >= 16 ? size : 0;
}

static void begin(doctor *d) {
    const stk_doctor_case *p = d->patient;
    stk_diagnosis *f = d->found;
    *f = (stk_diagnosis){.cores = p->cores,
                         .workers = p->data.sizing.workers,
                         .batch = (int64_t)p->compile.batch,
                         .measured_batch = (int64_t)p->compile.batch,
                         .img_size = p->data.transform.size,
                         .images = (int64_t)p->data.count,
                         .storage_cold = NAN,
                         .storage_warm = NAN,
                         .cold_bytes = NAN,
                         .warm_bytes = NAN,
                         .decode = NAN,
                         .decode_worker = NAN,
                         .core_share = 1,
                         .loader = NAN,
                         .copy = NAN,
                         .copy_bytes = NAN,
                         .step = NAN,
                         .fixed_ms = NAN,
                         .together = NAN};
    snprintf(f->model, sizeof f->model, "%s", p->model->name);
    snprintf(f->device, sizeof f->device, "%s", p->opened->name);
    snprintf(f->precision, sizeof f->precision, "%s", stk_precision_name(p->opened->precision));
    snprintf(f->about, sizeof f->about, "%s", p->opened->backend->describe(p->opened->device));
    d->rates = (stk_rates){.storage = NAN,
                           .decode = NAN,
                           .workers = f->workers,
                           .cores = p->cores,
                           .copy = NAN,
                           .step = NAN,
                           .fixed_s = NAN,
                           .on_host = stk_opened_device_is_cpu(p->opened),
                           .batch = f->batch,
                           .img_size = f->img_size,
                           .images = f->images};
    d->changes = (doctor_changes){.stage_side_px = stk_rates_stage_side(f->img_size),
                                  .staged = NAN,
                                  .decoded = NAN,
                                  .all_cores = NAN,
                                  .small_size = smaller_size(f->img_size),
                                  .small_decode = NAN,
                                  .small_step = NAN,
                                  .double_step = NAN};
}

/* Emits what is going to be measured, since it takes two minutes. */
static void tell(const doctor *d, const char *what) {
    char why[64];
    snprintf(why, sizeof why, "%.0f s are left", fmax(stk_doctor_left(d), 0));
    stk_events_decision(d->patient->events, what, why);
}

static stk_status examine(doctor *d, stk_error *err) {
    static const struct {
        const char *words;
        stk_status (*measure)(doctor *d, stk_error *err);
    } phases[] = {{"measuring storage, cold and warm", stk_doctor_storage},
                  {"measuring decoding", stk_doctor_decode},
                  {"measuring copies to the device", stk_doctor_copy},
                  {"measuring the bare training step", stk_doctor_steps},
                  {"measuring the loader", stk_doctor_loader},
                  {"measuring all of them together", stk_doctor_together}};
    stk_status status = stk_doctor_choose(d, err);
    for (size_t i = 0; i < sizeof phases / sizeof *phases && status == STK_OK; i++) {
        if (phases[i].measure != stk_doctor_copy || !d->rates.on_host) {
            tell(d, phases[i].words); /* a CPU has no copies */
        }
        status = phases[i].measure(d, err);
        STK_THEN(status, stk_doctor_stopped(d, err));
    }
    return status;
}

stk_status stk_doctor_examine(const stk_doctor_case *patient, stk_diagnosis *found,
                              stk_error *err) {
    doctor d = {.patient = patient, .found = found};
    begin(&d);
    stk_status status = examine(&d, err);
    if (status == STK_OK) {
        stk_doctor_predict(&d.rates, &d.changes, d.overhead_s, found);
        found->epoch_s = (double)found->images / found->together;
        found->seconds = stk_clock_since_s(patient->start_ns);
    }
    stk_mem_free(d.chosen);
    stk_mem_free(d.paths);
    return status;
}
