/*
 * phases.h - inside the probe room: what the files of the doctor hand to each other.
 */
#ifndef STK_PROBE_DOCTOR_PHASES_H
#define STK_PROBE_DOCTOR_PHASES_H

#include "probe/doctor/doctor.h"

/* What is measured, in this order; the weights say how the time is divided. */
typedef enum doctor_phase {
    DOCTOR_COLD,
    DOCTOR_WARM,
    DOCTOR_DECODE,
    DOCTOR_REMADE, /* decoding what staging or a cache would keep */
    DOCTOR_COPY,
    DOCTOR_STEP,
    DOCTOR_FIXED,   /* the step with another batch */
    DOCTOR_SMALLER, /* the step with smaller pictures */
    DOCTOR_LOADER,
    DOCTOR_TOGETHER,
    DOCTOR_PHASES
} doctor_phase;

/* Rates that were measured for changes; NaN: not measured. */
typedef struct doctor_changes {
    int stage_side_px;    /* shorter side of staged pictures */
    bool staging_shrinks; /* some picture became smaller by it */
    double staged;        /* decoding those, of one worker */
    double decoded;       /* what is left of decoding pictures that were decoded before */
    double all_cores;     /* decoding, of one worker when every core has one */
    int small_size;       /* px: the smaller --img-size that was tried; 0: none */
    double small_decode;  /* of one worker at that size */
    double small_step;    /* at that size */
    double double_step;   /* with twice the batch */
} doctor_changes;

/* A patient on the table. */
typedef struct doctor {
    const stk_doctor_case *patient;
    stk_diagnosis *found;
    doctor_changes changes;
    stk_rates rates;
    int64_t pilot_batch; /* of the steps that were timed first; 0: none were */
    double pilot_s;      /* of one of them */
    double setup_s;      /* that compiling a network and its first steps took */
    double overhead_s;   /* of a worker per picture, beside decoding: what the loader costs */
    size_t *chosen;      /* owned: indices of samples in random order, those that may be read */
    const char **paths;  /* owned: their paths */
    size_t chosen_count;
    size_t read_count; /* the first of them, that were read */
} doctor;

/* Seconds that this phase may take, by what is left; at least a little. */
double stk_doctor_seconds(const doctor *d, doctor_phase phase);

/* Seconds that are left of all. */
double stk_doctor_left(const doctor *d);

STK_CHECKED stk_status stk_doctor_stopped(const doctor *d, stk_error *err);

/* ---- data.c: where pictures come from and what becomes of them ---- */

STK_CHECKED stk_status stk_doctor_choose(doctor *d, stk_error *err);
STK_CHECKED stk_status stk_doctor_storage(doctor *d, stk_error *err);
STK_CHECKED stk_status stk_doctor_decode(doctor *d, stk_error *err);
STK_CHECKED stk_status stk_doctor_loader(doctor *d, stk_error *err);

/* The loader of training on pictures in the state in which most epochs find them. */
stk_loader_config stk_doctor_data(const doctor *d);

/* ---- step.c: what the device does ---- */

STK_CHECKED stk_status stk_doctor_copy(doctor *d, stk_error *err);
STK_CHECKED stk_status stk_doctor_steps(doctor *d, stk_error *err);
STK_CHECKED stk_status stk_doctor_together(doctor *d, stk_error *err);

/* ---- changes.c: arithmetic ---- */

/* The rates of the stages, and what changes of them would bring, into the diagnosis. */
void stk_doctor_predict(const stk_rates *rates, const doctor_changes *changes, double overhead_s,
                        stk_diagnosis *found);

#endif
