/*
 * step.c - measures the device: copies, steps alone, and steps that the loader feeds.
 *
 * On a CPU a step of a large batch may take longer than there is time for. So a pilot with a small
 * batch is timed first. Where steps of the whole batch cannot be measured, a smaller batch is.
 */
#include <math.h>

#include "base/clock.h"
#include "base/error.h"
#include "engine/memory_check.h"
#include "probe/doctor/phases.h"
#include "probe/step_timer.h"

/* The batch of a pilot is the batch divided by this. */
#define PILOT_SHARE 8

/* The least steps of a measurement: warm-up, one window, and the steps of all stages together. */
#define LEAST_STEPS 8
#define ALONE_STEPS 4

/* These least steps may take this share of the time that is left. */
#define STEPS_SHARE 0.6

/* An optional phase is measured where its set-up and ALONE_STEPS take less than this many times its
 * time. */
#define ABOUT 1.5

/* If twice the batch cannot be measured, the batch divided by this is measured. */
#define OTHER_SHARE 4

#define WINDOWS 3

/* All stages together: the share of the time for warm-up, and the least steps that are measured. */
#define WARM_SHARE 0.2
#define LEAST_MEASURED 2
#define MOST_LENGTHS 3.0

/* Slots of the loader for that: filling and emptying more would take long. */
#define SLOTS 4

static bool must_stop(void *user) {
    return stk_stop_asked(((const doctor *)user)->patient->stop) != STK_STOP_NONE;
}

static bool on_cpu(const doctor *d) {
    return d->rates.on_host;
}

stk_status stk_doctor_copy(doctor *d, stk_error *err) {
    const stk_opened_device *o = d->patient->opened;
    double picture = 3.0 * d->rates.img_size * d->rates.img_size;
    d->found->copy_bytes = INFINITY;
    if (o->backend->copy_bandwidth != NULL) {
        d->found->copy_bytes =
            o->backend->copy_bandwidth(o->device, (size_t)(picture * (double)d->rates.batch));
    }
    d->found->copy = d->found->copy_bytes / picture;
    d->rates.copy = d->found->copy;
    return stk_doctor_stopped(d, err);
}

/* ---- bare steps ---- */

/* Seconds of one step, by the median window. */
static stk_status time_step(const doctor *d, const stk_graph *graph, stk_state *state,
                            int64_t batch, double seconds, double *step_s, stk_error *err) {
    const stk_doctor_case *p = d->patient;
    stk_step_times times = {.median_s = NAN};
    stk_step_ask ask = {.backend = p->opened->backend,
                        .device = p->opened->device,
                        .graph = graph,
                        .state = state,
                        .how = p->compile,
                        .update = &p->update,
                        .seconds = seconds,
                        .windows = seconds > 1 ? WINDOWS : 1};
    ask.how.batch = (size_t)batch;
    stk_status status = stk_step_time(&ask, &times, err);
    *step_s = times.median_s;
    return status == STK_OK ? stk_doctor_stopped(d, err) : status;
}

/* Whether the device has the memory for such a batch of such a network. */
static bool fits(const doctor *d, const stk_graph *graph, int64_t batch) {
    const stk_doctor_case *p = d->patient;
    stk_compile_config how = p->compile;
    stk_error ignored = {0};
    stk_memory_ask ask = {.backend = p->opened->backend,
                          .device = p->opened->device,
                          .graph = graph,
                          .model = p->model->name,
                          .state = &p->state_config,
                          .compile = &how};
    how.batch = (size_t)batch;
    return stk_memory_check(&ask, &ignored) == STK_OK;
}

/* The batch that there is time for. */
static stk_status choose_batch(doctor *d, stk_error *err) {
    const stk_doctor_case *p = d->patient;
    int64_t batch = (int64_t)p->compile.batch;
    stk_status status = STK_OK;
    if (on_cpu(d)) {
        d->pilot_batch = batch / PILOT_SHARE > 0 ? batch / PILOT_SHARE : 1;
        status = time_step(d, p->graph, p->state, d->pilot_batch, 0, &d->pilot_s, err);
        double image_s = d->pilot_s / (double)d->pilot_batch;
        double most_s = STEPS_SHARE * stk_doctor_left(d);
        while (batch > 1 && LEAST_STEPS * (double)batch * image_s > most_s) {
            batch /= 2;
        }
    }
    d->found->measured_batch = batch;
    d->rates.batch = batch;
    return status;
}

/* Whether there is time for an optional phase: its set-up and a few steps. */
static bool has_time(const doctor *d, double step_s, double seconds) {
    return d->setup_s + ALONE_STEPS * step_s < ABOUT * seconds;
}

/* The part of a step's time that does not grow with the batch, from the line through two batches.
 */
static void take_fixed(doctor *d, double step_s, int64_t other, double other_s) {
    double image_s = (other_s - step_s) / (double)(other - d->rates.batch);
    d->rates.fixed_s = fmin(fmax(step_s - (double)d->rates.batch * image_s, 0), step_s);
}

static stk_status measure_fixed(doctor *d, double step_s, stk_error *err) {
    const stk_doctor_case *p = d->patient;
    double seconds = stk_doctor_seconds(d, DOCTOR_FIXED);
    int64_t batch = d->rates.batch;
    bool larger = has_time(d, 2 * step_s, seconds) && fits(d, p->graph, 2 * batch);
    int64_t other = larger ? 2 * batch : batch / OTHER_SHARE;
    double other_s = NAN;
    if (d->pilot_batch > 0 && d->pilot_batch != batch) {
        take_fixed(d, step_s, d->pilot_batch, d->pilot_s);
    }
    if (other < 1 || (!larger && !has_time(d, step_s / OTHER_SHARE, seconds))) {
        return STK_OK;
    }
    stk_status status = time_step(d, p->graph, p->state, other, seconds, &other_s, err);
    if (status == STK_OK) {
        take_fixed(d, step_s, other, other_s);
        d->changes.double_step = larger ? (double)other / other_s : NAN;
    }
    return status;
}

/* The step of a network for smaller pictures. */
static stk_status measure_smaller(doctor *d, double step_s, stk_error *err) {
    const stk_doctor_case *p = d->patient;
    const stk_backend *backend = p->opened->backend;
    double seconds = stk_doctor_seconds(d, DOCTOR_SMALLER);
    double ratio = (double)d->changes.small_size / d->rates.img_size;
    stk_model_config network = p->network;
    stk_graph *graph = NULL;
    stk_state *state = NULL;
    stk_error refused = {0};
    double small_s = NAN;
    network.img_size = d->changes.small_size;
    if (d->changes.small_size == 0 || !has_time(d, step_s * ratio * ratio, seconds)) {
        return STK_OK;
    }
    if (stk_model_build(p->model, &network, &graph, &refused) != STK_OK ||
        !fits(d, graph, d->rates.batch)) {
        d->changes.small_size = graph == NULL ? 0 : d->changes.small_size;
        stk_graph_free(graph);
        return STK_OK;
    }
    stk_status status = backend->state_new(&state, p->opened->device, graph, &p->state_config, err);
    STK_THEN(status, stk_state_first_weights_unless(backend, state, graph, 0, must_stop, d, err));
    STK_THEN(status, time_step(d, graph, state, d->rates.batch, seconds, &small_s, err));
    if (status == STK_OK) {
        d->changes.small_step = (double)d->rates.batch / small_s;
    }
    backend->state_free(state);
    stk_graph_free(graph);
    return status;
}

/* The step of training, or the pilot's where there is no time for another one. */
static stk_status measure_step(doctor *d, double *step_s, stk_error *err) {
    const stk_doctor_case *p = d->patient;
    double seconds = stk_doctor_seconds(d, DOCTOR_STEP);
    int64_t start = stk_clock_ns();
    if (d->pilot_batch == d->rates.batch && ALONE_STEPS * d->pilot_s > seconds) {
        *step_s = d->pilot_s;
        return STK_OK;
    }
    stk_status status = time_step(d, p->graph, p->state, d->rates.batch, seconds, step_s, err);
    d->setup_s = fmax(stk_clock_since_s(start) - fmax(seconds, ALONE_STEPS * *step_s), 0);
    return status;
}

stk_status stk_doctor_steps(doctor *d, stk_error *err) {
    const stk_doctor_case *p = d->patient;
    double step_s = NAN;
    stk_status status = stk_state_first_weights_unless(p->opened->backend, p->state, p->graph, 0,
                                                       must_stop, d, err);
    STK_THEN(status, choose_batch(d, err));
    STK_THEN(status, measure_step(d, &step_s, err));
    if (status == STK_OK) {
        d->rates.step = (double)d->rates.batch / step_s;
        d->found->step = d->rates.step;
        d->found->step_ms = 1e3 * step_s;
        status = measure_fixed(d, step_s, err);
    }
    if (status == STK_OK) {
        d->found->fixed_ms = 1e3 * d->rates.fixed_s;
        status = measure_smaller(d, step_s, err);
    }
    return status;
}

/* ---- all together ---- */

/* Steps that a loader feeds. */
typedef struct feeding {
    const doctor *d;
    stk_loader *loader;
    stk_exec *exec;
    const stk_batch *held; /* the step that may still run reads it */
    uint64_t step;         /* number of the next step */
    uint64_t images;       /* since the last look, as are steps, waited_s and busy_s */
    int64_t steps;
    double waited_s;
    double busy_s; /* the device computed */
} feeding;

static stk_status collect(feeding *f, bool wait, stk_error *err) {
    stk_step_output outputs[STK_STEPS_AHEAD];
    size_t count = 0;
    stk_status status = f->d->patient->opened->backend->collect(f->exec, wait, outputs,
                                                                STK_STEPS_AHEAD, &count, err);
    for (size_t i = 0; status == STK_OK && i < count; i++) {
        f->busy_s += outputs[i].busy_s;
    }
    return status;
}

static stk_status one_step(feeding *f, stk_error *err) {
    const stk_doctor_case *p = f->d->patient;
    const stk_batch *batch = NULL;
    int64_t start = stk_clock_ns();
    stk_status status = stk_loader_next(f->loader, &batch, err);
    f->waited_s += stk_clock_since_s(start);
    if (status != STK_OK) {
        return status;
    }
    stk_step_input input = {.images = batch->images,
                            .labels = batch->labels,
                            .count = batch->count,
                            .step = f->step++,
                            .update = &p->update};
    status = p->opened->backend->step(f->exec, &input, NULL, err);
    f->images += batch->count;
    f->steps++;
    if (f->held != NULL) {
        stk_loader_release(f->loader, f->held);
    }
    f->held = batch;
    STK_THEN(status, collect(f, false, err));
    return status == STK_OK ? stk_doctor_stopped(f->d, err) : status;
}

/* Runs steps for a time, from an idle device to an idle device. */
static stk_status feed(feeding *f, double seconds, int64_t least, double *took, stk_error *err) {
    int64_t start = stk_clock_ns();
    stk_status status = STK_OK;
    f->images = 0;
    f->steps = 0;
    f->waited_s = 0;
    f->busy_s = 0;
    do {
        status = one_step(f, err);
        *took = stk_clock_since_s(start);
    } while (status == STK_OK && (*took < seconds || f->steps < least) &&
             *took < MOST_LENGTHS * seconds);
    STK_THEN(status, collect(f, true, err));
    *took = stk_clock_since_s(start);
    return status;
}

/*
 * The batches taken were made meanwhile or were in the ring before. The number of complete batches
 * in the ring changes from moment to moment, so a difference of one means nothing.
 */
static double images_made(const feeding *f, const stk_loader_counters *before,
                          const stk_loader_counters *after) {
    double ready = (double)before->batches_ready - (double)after->batches_ready - 1;
    return (double)f->images - fmax(ready, 0) * (double)f->d->rates.batch;
}

static stk_status measure_feeding(feeding *f, double seconds, stk_diagnosis *found,
                                  stk_error *err) {
    stk_loader_counters before;
    stk_loader_counters after;
    double took = 0;
    stk_status status = feed(f, WARM_SHARE * seconds, 1, &took, err);
    before = stk_loader_counters_of(f->loader);
    STK_THEN(status, feed(f, (1 - WARM_SHARE) * seconds, LEAST_MEASURED, &took, err));
    after = stk_loader_counters_of(f->loader);
    if (status == STK_OK && took > 0) {
        found->together = images_made(f, &before, &after) / took;
        /* While the device computes, waiting costs nothing. */
        found->wait_fraction = fmin(f->waited_s, fmax(took - f->busy_s, 0)) / took;
    }
    return status;
}

stk_status stk_doctor_together(doctor *d, stk_error *err) {
    const stk_backend *backend = d->patient->opened->backend;
    double seconds = stk_doctor_seconds(d, DOCTOR_TOGETHER);
    stk_loader_config data = stk_doctor_data(d);
    stk_compile_config how = d->patient->compile;
    feeding f = {.d = d};
    how.batch = data.batch;
    data.sizing.slots = data.sizing.slots < SLOTS ? data.sizing.slots : SLOTS;
    data.sizing.most_slots = data.sizing.slots;
    stk_status status = backend->compile(&f.exec, d->patient->state, &how, err);
    STK_THEN(status, stk_loader_start(&f.loader, &data, err));
    STK_THEN(status, measure_feeding(&f, seconds, d->found, err));
    backend->exec_free(f.exec); /* first: a step may still read the pictures */
    stk_loader_close(f.loader);
    return status;
}
