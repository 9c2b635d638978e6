/*
 * doctor_job.c - `stoker doctor`: prepares a training and hands it to the probes, which measure
 * each of its stages. Writes nothing except the plot, if one was asked for.
 */

#include "base/error.h"
#include "base/machine.h"
#include "base/public_struct.h"
#include "job/training/job.h"
#include "probe/doctor/doctor.h"
#include "probe/step_timer.h"

/* The training of the first fold, with the network that was opened for it. */
static stk_status examine(stk_job *job, const stk_split *split, const stk_doctor_options *wanted,
                          stk_diagnosis *diagnosis, stk_error *err) {
    stk_update_point moment = {.lr = STK_TIMED_RATE, .head_lr = STK_TIMED_RATE, .steps = 1};
    stk_doctor_case patient = {.opened = &job->network.opened,
                               .model = job->recipe.model,
                               .network = {.img_size = job->recipe.img_size,
                                           .classes = job->dataset->class_count,
                                           .dropout = job->recipe.dropout,
                                           .drop_path = job->recipe.drop_path},
                               .graph = job->network.graph,
                               .state = job->network.state,
                               .state_config = job->network.state_config,
                               .compile =
                                   stk_network_compile_config(&job->network, &job->recipe, true),
                               .update = stk_update_make(&job->recipe.train, &moment),
                               .data = stk_job_loader_config(job, true, job->dataset->train.items,
                                                             split->train, split->train_count),
                               .root = job->dataset->root,
                               .storage = job->storage,
                               .cores = stk_machine_cores(),
                               .start_ns = job->clock.start_ns,
                               .seconds = wanted->seconds,
                               .stop = job->clock.stop,
                               .events = &job->events};
    stk_status status = stk_doctor_examine(&patient, diagnosis, err);
    if (status == STK_OK && wanted->plot != NULL) {
        status = stk_doctor_draw(diagnosis, wanted->plot, job->clock.stop, err);
    }
    return status;
}

static stk_status run_doctor(stk_job *job, const stk_observer *observer, void *diagnosis,
                             stk_error *err) {
    const stk_doctor_options *wanted = stk_options_values(job->options, &stk_doctor_option_table);
    stk_split split = {0};
    size_t train = 0;
    size_t val = 0;
    job->clock.budget_s = NAN;      /* --budget and --deadline are the training's */
    job->clock.halt_on_stop = true; /* half a measurement is useless */
    job->storage.deadline_ns = 0;
    job->storage.outage_s = stk_storage_to_measure(job->options).outage_s;
    stk_status status = wanted->plot != NULL ? stk_doctor_can_draw(wanted->plot, err) : STK_OK;
    STK_THEN(status, stk_job_prepare(job, observer, &train, &val, err));
    STK_THEN(status, stk_job_begin_first_fold(job, train, &split, NULL, err));
    if (status == STK_OK) {
        status = examine(job, &split, wanted, diagnosis, err);
        stk_split_free(&split);
    }
    return status;
}

stk_status stk_doctor(stk_options *options, const stk_run *run, stk_diagnosis *diagnosis,
                      stk_error *err) {
    stk_status status = STK_PUBLIC_BEGIN(stk_diagnosis, diagnosis, run, err);
    return status == STK_OK
               ? stk_job_look_at_first("doctor", options, run, run_doctor, diagnosis, err)
               : status;
}
