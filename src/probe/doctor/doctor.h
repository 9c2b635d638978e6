/*
 * doctor.h - measures each stage of a training alone, then all of them together.
 *
 * The diagnosis names the slowest stage and predicts what changes would bring, with the arithmetic
 * of monitor/rates.h on the measured rates. Threads: measure one thing at a time in a process; the
 * functions of text.c are safe.
 */
#ifndef STK_PROBE_DOCTOR_DOCTOR_H
#define STK_PROBE_DOCTOR_DOCTOR_H

#include <stoker/job.h>
#include <stoker/stop.h>

#include "backend/opened_device.h"
#include "base/str.h"
#include "events/events.h"
#include "loader/loader.h"
#include "models/models.h"
#include "monitor/rates.h"
#include "options/options.h"
#include "storage/storage.h"

typedef struct stk_doctor_options {
    double seconds;   /* for all measurements, about */
    const char *plot; /* file for the picture; NULL: none */
} stk_doctor_options;

extern const stk_option_table stk_doctor_option_table;

/* The training that is examined; all pointers are borrowed. */
typedef struct stk_doctor_case {
    const stk_opened_device *opened;
    const stk_model *model;
    stk_model_config network; /* what the graph was built for */
    const stk_graph *graph;
    stk_state *state; /* the measurements change its weights */
    stk_state_config state_config;
    stk_compile_config compile; /* of training, with its batch */
    stk_update update;
    stk_loader_config data; /* of training: samples, transform, sizing */
    const char *root;       /* the location that samples' paths are relative to */
    stk_storage_options storage;
    int cores;
    int64_t start_ns; /* when the seconds began */
    double seconds;
    const stk_stop *stop;
    const stk_events *events; /* receive a line before each measurement */
} stk_doctor_case;

/* Measures; a request to stop gives STK_ERR_STOPPED. */
STK_CHECKED stk_status stk_doctor_examine(const stk_doctor_case *patient, stk_diagnosis *diagnosis,
                                          stk_error *err);

/* ---- text.c: the diagnosis in words and bars, for a terminal and for a picture ---- */

/* Appends the whole diagnosis as lines for people. */
void stk_doctor_print(const stk_diagnosis *diagnosis, stk_str *text);

/* Appends one sentence that names the narrowest stage and what that means. */
void stk_doctor_verdict(const stk_diagnosis *diagnosis, stk_str *text);

/* Checks before any measurement that this build can draw such a file and that it can be written. */
STK_CHECKED stk_status stk_doctor_can_draw(const char *path, stk_error *err);

/* The bars of the diagnosis as a picture; the file ends with .png or .svg. */
STK_CHECKED stk_status stk_doctor_draw(const stk_diagnosis *diagnosis, const char *path,
                                       const stk_stop *stop, stk_error *err);

#endif
