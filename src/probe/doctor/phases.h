/*
 * phases.h - only for the doctor: its phases, and the state that its files share.
 */
#ifndef STK_PROBE_DOCTOR_PHASES_H
#define STK_PROBE_DOCTOR_PHASES_H

#include "probe/doctor/doctor.h"

/* The measurements, in this order; time.c divides the time over them. */
typedef enum doctor_phase {
    DOCTOR_COLD,
    DOCTOR_WARM,
    DOCTOR_DECODE,
    DOCTOR_REMADE, /* decoding pictures as staging or a cache would store them */
    DOCTOR_COPY,
    DOCTOR_STEP,
    DOCTOR_FIXED,   /* the step with another batch */
    DOCTOR_SMALLER, /* the step with smaller pictures */
    DOCTOR_LOADER,
    DOCTOR_TOGETHER,
    DOCTOR_PHASES
} doctor_phase;

/* Rates measured with a change applied, in images per second; NaN: not measured. */
typedef struct doctor_changes {
    int stage_side_px;    /* shorter side of staged pictures */
    bool staging_shrinks; /* staging made some picture smaller */
    double staged;        /* one worker decoding staged pictures */
    double decoded;       /* one worker with pictures from a cache of decoded ones */
    double all_cores;     /* one worker decoding, with a worker on every core */
    int small_size;       /* px: the smaller --img-size that was tried; 0: none */
    double small_decode;  /* one worker decoding at small_size */
    double small_step;    /* training steps at small_size */
    double double_step;   /* training steps with twice the batch */
} doctor_changes;

/* One examination. */
typedef struct doctor {
    const stk_doctor_case *patient;
    stk_diagnosis *found;
    doctor_changes changes;
    stk_rates rates;
    int64_t pilot_batch; /* batch of the pilot, the steps timed first; 0: there was no pilot */
    double pilot_s;      /* seconds of one step of the pilot */
    double setup_s;      /* seconds of compiling a network and its first steps */
    double overhead_s;  /* seconds of a worker per picture beside decoding: the loader's overhead */
    size_t *chosen;     /* owned: indices of samples to read, in random order */
    const char **paths; /* owned: the paths of these samples */
    size_t chosen_count;
    size_t read_count; /* samples of `chosen` that were read, from the first on */
} doctor;

/* Seconds that this phase may take, from the time that is left; at least 0.05. */
double stk_doctor_seconds(const doctor *d, doctor_phase phase);

/* Seconds left for all phases. */
double stk_doctor_left(const doctor *d);

STK_CHECKED stk_status stk_doctor_stopped(const doctor *d, stk_error *err);

/* ---- data.c: where pictures come from and what becomes of them ---- */

STK_CHECKED stk_status stk_doctor_choose(doctor *d, stk_error *err);
STK_CHECKED stk_status stk_doctor_storage(doctor *d, stk_error *err);
STK_CHECKED stk_status stk_doctor_decode(doctor *d, stk_error *err);
STK_CHECKED stk_status stk_doctor_loader(doctor *d, stk_error *err);

/* The loader config of training, on pictures that are as cold or warm as in most epochs. */
stk_loader_config stk_doctor_data(const doctor *d);

/* ---- step.c: what the device does ---- */

STK_CHECKED stk_status stk_doctor_copy(doctor *d, stk_error *err);
STK_CHECKED stk_status stk_doctor_steps(doctor *d, stk_error *err);
STK_CHECKED stk_status stk_doctor_together(doctor *d, stk_error *err);

/* ---- changes.c: arithmetic ---- */

/* Writes the rates of the stages, and the predicted effect of changes, into the diagnosis. */
void stk_doctor_predict(const stk_rates *rates, const doctor_changes *changes, double overhead_s,
                        stk_diagnosis *found);

#endif
