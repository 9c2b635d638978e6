/*
 * step.c - training steps and inferences.
 *
 * There are two streams: one copies pictures, labels and targets while the other computes the step
 * before. Events order the streams on the device. The host waits until pictures have left its
 * memory (step() for those of the step before, collect() for those of the last step), and for
 * results that the caller wants now. Events also measure the parts of a step; their times are read
 * together with its result. Values that change from step to step lie in cuda_step_constants.
 */
#include "backend/cuda/exec.h"

#include <math.h>
#include <string.h>

#include "base/error.h"

static stk_status check(const stk_exec *exec, int result, const char *what, stk_error *err) {
    return stk_cuda_check(exec->state->device->driver, result, what, err);
}

static size_t picture_bytes(const stk_exec *exec) {
    const stk_graph *graph = exec->pieces.graph;
    return stk_shape_count(graph->values[graph->input].shape);
}

static void set_update(cuda_step_constants *k, const stk_update *u) {
    k->nesterov = u->nesterov;
    k->momentum = u->momentum;
    k->beta2 = u->beta2;
    k->epsilon = u->epsilon;
    k->weight_decay = u->weight_decay;
    k->grad_scale = u->grad_scale;
    k->clip_norm = u->clip_norm;
    k->ema_decay = u->ema_decay;
    k->lr[0] = u->lr;
    k->lr[1] = u->head_lr;
    k->steps[0] = u->updates;
    k->steps[1] = u->head_updates;
}

static cuda_step_constants constants_of(const stk_exec *exec, const stk_step_input *input,
                                        size_t device_batch) {
    cuda_step_constants k = {.images = exec->memory + exec->parts.images[device_batch],
                             .labels = exec->memory + exec->parts.labels[device_batch],
                             .targets = exec->memory + exec->parts.targets[device_batch],
                             .features = exec->memory + exec->parts.features[device_batch],
                             .seed = input->seed,
                             .step = input->step,
                             .mix_kind = (int)input->mix.kind,
                             .mix_keep = input->mix.kind == STK_MIX_NONE ? 1 : input->mix.keep,
                             .mix_left = input->mix.left,
                             .mix_top = input->mix.top,
                             .mix_right = input->mix.right,
                             .mix_bottom = input->mix.bottom,
                             .label_smoothing = input->label_smoothing,
                             .keep_gradients = input->keep_gradients,
                             .frozen = exec->config.frozen};
    if (input->update != NULL) {
        set_update(&k, input->update);
    }
    return k;
}

/* Renews the copies of the weights if the parameters were changed elsewhere. */
static stk_status renew_weight_copies(stk_exec *exec, stk_error *err) {
    if (exec->version == exec->state->version) {
        return STK_OK;
    }
    exec->version = exec->state->version;
    return stk_cuda_player_run(&exec->players[PLAY_WEIGHTS], err);
}

/* Sends pictures to a device batch once the step that last read it has ended. */
static stk_status send(stk_exec *exec, const uint8_t *images, size_t count, size_t device_batch,
                       const cuda_step_events *events, stk_error *err) {
    stk_device *device = exec->state->device;
    const cuda_driver *d = device->driver;
    int result = exec->started >= CUDA_DEVICE_BATCHES
                     ? d->stream_wait_event(device->copy, exec->used[device_batch], 0)
                     : CUDA_GOOD;
    if (result == CUDA_GOOD) {
        result = d->event_record(events->sending, device->copy);
    }
    if (result == CUDA_GOOD) {
        result = d->copy_in(exec->memory + exec->parts.images[device_batch], images,
                            count * picture_bytes(exec), device->copy);
    }
    return check(exec, result, "sending pictures", err);
}

/* Sends the features, if the network has any, in the same way as the targets. */
static stk_status send_features(stk_exec *exec, const float *features, size_t count,
                                size_t device_batch, stk_error *err) {
    const stk_device *device = exec->state->device;
    size_t each = stk_graph_feature_count(exec->pieces.graph);
    size_t bytes = count * each * sizeof *features;
    if (bytes == 0) {
        return STK_OK;
    }
    float *from = exec->features + device_batch * exec->config.batch * each;
    memcpy(from, features, bytes);
    return check(exec,
                 device->driver->copy_in(exec->memory + exec->parts.features[device_batch], from,
                                         bytes, device->copy),
                 "sending features", err);
}

/*
 * Sends the labels or the targets, from pinned memory: copies from other memory may wait. The
 * targets that were in this device batch before have left the pinned memory, since wait_sent() has
 * waited for the step before, and copies end in order.
 */
static stk_status send_answers(stk_exec *exec, const stk_step_input *input, size_t device_batch,
                               size_t ahead_index, stk_error *err) {
    const stk_device *device = exec->state->device;
    bool labels = exec->targets == NULL;
    size_t outputs = labels ? 1 : (size_t)exec->pieces.graph->classes;
    size_t bytes = input->count * outputs * (labels ? sizeof(int) : sizeof(float));
    void *from = labels ? (void *)(exec->labels + ahead_index * exec->config.batch)
                        : exec->targets + device_batch * exec->config.batch * outputs;
    size_t to = labels ? exec->parts.labels[device_batch] : exec->parts.targets[device_batch];
    memcpy(from, labels ? (const void *)input->labels : input->targets, bytes);
    return check(exec, device->driver->copy_in(exec->memory + to, from, bytes, device->copy),
                 "sending labels", err);
}

/* The computing stream waits for the pictures, then reads its constants. */
static stk_status hand_over(stk_exec *exec, const cuda_step_events *events,
                            const cuda_step_constants *constants, stk_error *err) {
    stk_device *device = exec->state->device;
    const cuda_driver *d = device->driver;
    int result = d->event_record(events->copied, device->copy);
    if (result == CUDA_GOOD) {
        result = d->event_record(events->ready, device->compute);
    }
    if (result == CUDA_GOOD) {
        result = d->stream_wait_event(device->compute, events->copied, 0);
    }
    if (result == CUDA_GOOD) {
        result = d->event_record(events->begun, device->compute);
    }
    if (result == CUDA_GOOD) {
        result = d->copy_in(exec->fixed[CUDA_FIXED_CONSTANTS], constants, sizeof *constants,
                            device->compute);
    }
    return check(exec, result, "sending pictures", err);
}

/* Waits until the pictures of the last step have left the host's memory. */
static stk_status wait_sent(const stk_exec *exec, stk_error *err) {
    if (exec->started == 0) {
        return STK_OK;
    }
    cuda_event last = exec->events[(exec->started - 1) % STK_STEPS_AHEAD].copied;
    return check(exec, exec->state->device->driver->event_wait(last), "sending pictures", err);
}

static stk_status run_step(stk_exec *exec, const stk_step_input *input, cuda_event updating,
                           stk_error *err) {
    const stk_device *device = exec->state->device;
    stk_status status = renew_weight_copies(exec, err);
    STK_THEN(status, stk_cuda_player_run(&exec->players[PLAY_MAIN], err));
    if (status == STK_OK && input->update == NULL) {
        status = stk_cuda_player_run(&exec->players[PLAY_GATHER], err);
    }
    STK_THEN(status, check(exec, device->driver->event_record(updating, device->compute),
                           "a training step", err));
    if (status == STK_OK && input->update != NULL) {
        status = stk_cuda_player_run(&exec->players[PLAY_UPDATE], err);
    }
    exec->state->version++; /* without an update too: running statistics have moved */
    if (status == STK_OK) {
        exec->version = exec->state->version;
    }
    return status;
}

/* Copies the result to the host when the step has ended. */
static stk_status finish(stk_exec *exec, size_t device_batch, size_t ahead_index, stk_error *err) {
    stk_device *device = exec->state->device;
    const cuda_driver *d = device->driver;
    int result = d->event_record(exec->used[device_batch], device->compute);
    if (result == CUDA_GOOD) {
        result = d->copy_out(&exec->queue->results[ahead_index], exec->fixed[CUDA_FIXED_RESULT],
                             sizeof(cuda_result), device->compute);
    }
    if (result == CUDA_GOOD) {
        result = d->event_record(exec->events[ahead_index].done, device->compute);
    }
    return check(exec, result, "a training step", err);
}

/* Adds the seconds between two events to *seconds. */
static int add_between(const stk_exec *exec, cuda_event begin, cuda_event end, double *seconds) {
    float ms = 0;
    int result = exec->state->device->driver->event_elapsed_ms(&ms, begin, end);
    *seconds += ms > 0 ? ms * 1e-3 : 0;
    return result;
}

/* The result and times of a step that has ended. */
static stk_status take_output(const stk_exec *exec, size_t ahead_index, stk_step_output *output,
                              stk_error *err) {
    const cuda_result *r = &exec->queue->results[ahead_index];
    const cuda_step_events *m = &exec->events[ahead_index];
    if (exec->is_noted[ahead_index]) {
        *output = exec->noted[ahead_index];
        return STK_OK;
    }
    *output = (stk_step_output){.loss_sum = r->loss_sum,
                                .correct = (size_t)r->correct,
                                .grad_norm = r->grad_norm,
                                .skipped = r->skipped != 0,
                                .loss_scale = r->scale};
    int result = add_between(exec, m->begun, m->done, &output->busy_s);
    result |= add_between(exec, m->updating, m->done, &output->update_s);
    result |= add_between(exec, m->sending, m->copied, &output->copy_s);
    result |= add_between(exec, m->ready, m->begun, &output->copy_wait_s);
    output->copy_wait_s = fmin(output->copy_wait_s, output->copy_s);
    return check(exec, result, "a training step", err);
}

/* The caller got the last step's result directly: shifts the uncollected ones by one place. All
 * steps have ended. */
static void hand_out_last(stk_exec *exec) {
    cuda_result *results = exec->queue->results;
    for (uint64_t i = exec->started - 1; i > exec->collected; i--) {
        size_t to = i % STK_STEPS_AHEAD;
        size_t from = (i - 1) % STK_STEPS_AHEAD;
        results[to] = results[from];
        exec->is_noted[to] = exec->is_noted[from];
        exec->noted[to] = exec->noted[from];
        cuda_step_events kept = exec->events[to];
        exec->events[to] = exec->events[from];
        exec->events[from] = kept;
    }
    exec->collected++;
}

stk_status stk_cuda_step(stk_exec *exec, const stk_step_input *input, stk_step_output *output,
                         stk_error *err) {
    const stk_device_config *config = &exec->state->device->config;
    size_t device_batch = exec->started % CUDA_DEVICE_BATCHES;
    size_t ahead_index = exec->started % STK_STEPS_AHEAD;
    const cuda_step_events *events = &exec->events[ahead_index];
    /* The caller may reuse the pictures of the step before, even if this step fails. */
    stk_status status = wait_sent(exec, err);
    if (status == STK_OK && config->halted != NULL && config->halted(config->user, 0)) {
        return STK_FAIL(err, STK_ERR_STOPPED, "stopped before a step");
    }
    if (exec->started - exec->collected >= STK_STEPS_AHEAD) {
        return STK_FAIL(err, STK_ERR_INTERNAL, "nobody collects what steps came to");
    }
    STK_THEN(status, send(exec, input->images, input->count, device_batch, events, err));
    if (status != STK_OK) {
        return status;
    }
    exec->queue->constants[ahead_index] = constants_of(exec, input, device_batch);
    exec->is_noted[ahead_index] = false;
    status = send_answers(exec, input, device_batch, ahead_index, err);
    STK_THEN(status, send_features(exec, input->features, input->count, device_batch, err));
    STK_THEN(status, hand_over(exec, events, &exec->queue->constants[ahead_index], err));
    exec->started++;
    STK_THEN(status, run_step(exec, input, events->updating, err));
    STK_THEN(status, finish(exec, device_batch, ahead_index, err));
    if (status != STK_OK || output == NULL) {
        return status;
    }
    status =
        check(exec, exec->state->device->driver->event_wait(events->done), "a training step", err);
    STK_THEN(status, take_output(exec, ahead_index, output, err));
    hand_out_last(exec);
    return status;
}

stk_status stk_cuda_step_note(stk_exec *exec, const stk_step_output *output, stk_error *err) {
    const stk_device *device = exec->state->device;
    size_t ahead_index = exec->started % STK_STEPS_AHEAD;
    if (exec->started - exec->collected >= STK_STEPS_AHEAD) {
        return STK_FAIL(err, STK_ERR_INTERNAL, "nobody collects what steps came to");
    }
    exec->is_noted[ahead_index] = true;
    exec->noted[ahead_index] = *output;
    int result = device->driver->event_record(exec->events[ahead_index].copied, device->copy);
    if (result == CUDA_GOOD) {
        result = device->driver->event_record(exec->events[ahead_index].done, device->compute);
    }
    exec->started++;
    return check(exec, result, "a training step", err);
}

stk_status stk_cuda_collect(stk_exec *exec, bool wait, stk_step_output *outputs, size_t room,
                            size_t *count, stk_error *err) {
    const cuda_driver *d = exec->state->device->driver;
    *count = 0;
    stk_status status = stk_cuda_enter(exec->state->device, err);
    /* Also without `wait`, the host waits here for the copy of the pictures handed over last. The
     * copy begins when the step that read the same device batch before has ended, so the host is at
     * most two steps ahead. */
    STK_THEN(status, wait_sent(exec, err));
    while (status == STK_OK && *count < room && exec->collected < exec->started) {
        size_t ahead_index = exec->collected % STK_STEPS_AHEAD;
        cuda_event done = exec->events[ahead_index].done;
        int result = wait ? d->event_wait(done) : d->event_query(done);
        if (result == CUDA_ERROR_NOT_READY_) {
            break;
        }
        status = check(exec, result, "a training step", err);
        STK_THEN(status, take_output(exec, ahead_index, &outputs[*count], err));
        if (status == STK_OK) {
            ++*count;
            exec->collected++;
        }
    }
    return status;
}

/* Copies the logits to the host when the inference has ended. */
static stk_status finish_infer(stk_exec *exec, size_t device_batch, size_t bytes, stk_error *err) {
    const stk_device *device = exec->state->device;
    const cuda_driver *d = device->driver;
    cuda_pointer from = exec->players[PLAY_MAIN].arena +
                        exec->programs[PLAY_MAIN].buffers[exec->logits.buffer].offset;
    float *answers =
        exec->answers + device_batch * exec->config.batch * stk_graph_answers(exec->pieces.graph);
    int result = d->event_record(exec->used[device_batch], device->compute);
    result = result == CUDA_GOOD ? d->copy_out(answers, from, bytes, device->compute) : result;
    result = result == CUDA_GOOD ? d->event_record(exec->events[device_batch].done, device->compute)
                                 : result;
    exec->answer_bytes[device_batch] = bytes;
    return check(exec, result, "an inference", err);
}

stk_status stk_cuda_infer(stk_exec *exec, const uint8_t *images, const float *features,
                          size_t count, float *logits, stk_error *err) {
    const stk_device_config *config = &exec->state->device->config;
    size_t bytes = count * stk_graph_answers(exec->pieces.graph) * sizeof(float);
    size_t device_batch = exec->started % CUDA_DEVICE_BATCHES;
    size_t most = logits != NULL ? 1 : CUDA_DEVICE_BATCHES;
    if (config->halted != NULL && config->halted(config->user, 0)) {
        return STK_FAIL(err, STK_ERR_STOPPED, "stopped before an inference");
    }
    if (exec->started - exec->collected >= most) {
        return STK_FAIL(err, STK_ERR_INTERNAL, "nobody fetches what inferences came to");
    }
    exec->queue->constants[device_batch] =
        (cuda_step_constants){.images = exec->memory + exec->parts.images[device_batch],
                              .features = exec->memory + exec->parts.features[device_batch]};
    const cuda_step_events *events = &exec->events[device_batch];
    stk_status status = send(exec, images, count, device_batch, events, err);
    STK_THEN(status, send_features(exec, features, count, device_batch, err));
    STK_THEN(status, hand_over(exec, events, &exec->queue->constants[device_batch], err));
    STK_THEN(status, renew_weight_copies(exec, err));
    STK_THEN(status, stk_cuda_player_run(&exec->players[PLAY_MAIN], err));
    STK_THEN(status, finish_infer(exec, device_batch, bytes, err));
    exec->started += status == STK_OK;
    return status == STK_OK && logits != NULL ? stk_cuda_fetch(exec, logits, err) : status;
}

stk_status stk_cuda_fetch(stk_exec *exec, float *logits, stk_error *err) {
    const cuda_driver *d = exec->state->device->driver;
    size_t device_batch = exec->collected % CUDA_DEVICE_BATCHES;
    if (exec->config.train || exec->collected == exec->started) {
        return STK_FAIL(err, STK_ERR_INTERNAL, "there is no inference to fetch");
    }
    stk_status status = stk_cuda_enter(exec->state->device, err);
    STK_THEN(status,
             check(exec, d->event_wait(exec->events[device_batch].done), "an inference", err));
    if (status == STK_OK) {
        size_t room = exec->config.batch * stk_graph_answers(exec->pieces.graph);
        memcpy(logits, exec->answers + device_batch * room, exec->answer_bytes[device_batch]);
        exec->collected++;
    }
    return status;
}
