/*
 * exec.c - from a graph to an executable; which executable computes a batch of fewer samples; the
 * backend's table.
 *
 * All that an executable needs is laid out without the device and then allocated at once: the
 * copies of the weights, the fresh gradients, two batches of pictures, the libraries' workspace and
 * the arena. Then variants are tuned, kernels compiled and execution plans found.
 */
#include "backend/cuda/exec.h"

#include <limits.h>
#include <string.h>

#include "backend/cuda/lowering/lower.h"
#include "backend/cuda/tuning/tuning.h"
#include "base/error.h"
#include "base/mem.h"

/* Many kernels have a row of blocks for each sample, and a grid has no more rows. */
#define MOST_SAMPLES ((size_t)65535)

/* Rounds of autotune: a result may lead to further decisions. */
#define MOST_ROUNDS 3
/* Rounds in which decisions for convolutions without a plan are taken back. The program that is
 * lowered then may have further ones. */
#define MOST_RETRACTIONS 4

static cuda_type type_of(stk_precision precision) {
    switch (precision) {
    case STK_PRECISION_FP16:
        return CUDA_TYPE_F16;
    case STK_PRECISION_BF16:
        return CUDA_TYPE_BF16;
    default:
        return CUDA_TYPE_F32;
    }
}

static size_t rounded(size_t bytes) {
    return (bytes + CUDA_ALIGN - 1) / CUDA_ALIGN * CUDA_ALIGN;
}

static size_t most(size_t a, size_t b) {
    return a > b ? a : b;
}

/* Appends a part to the allocation; returns its offset. */
static size_t part(cuda_parts *parts, size_t bytes) {
    size_t at = parts->bytes;
    parts->bytes += rounded(bytes);
    return at;
}

static size_t feature_bytes(const stk_exec *exec, const stk_graph *graph) {
    return exec->config.batch * stk_graph_feature_count(graph) * sizeof(float);
}

/* Bytes of a batch's targets; 0 where there are none. */
static size_t target_bytes(const stk_exec *exec, const stk_graph *graph) {
    bool none = stk_loss_has_labels(graph->loss.kind) || !exec->config.train;
    return none ? 0 : exec->config.batch * (size_t)graph->classes * sizeof(float);
}

static void place_parts(stk_exec *exec, const stk_graph *graph) {
    cuda_parts *s = &exec->parts;
    size_t counters = 0;
    size_t arena = 0;
    for (int i = 0; i < PLAY_COUNT; i++) {
        counters = most(counters, (size_t)exec->programs[i].counters * 4);
        arena = most(arena, exec->programs[i].arena_bytes);
    }
    memset(s->fixed, 0xFF, sizeof s->fixed);
    s->fixed[CUDA_FIXED_WEIGHTS] =
        part(s, exec->layout.elements * cuda_type_bytes(exec->layout.type));
    s->fixed[CUDA_FIXED_FRESH] = part(s, exec->layout.fresh_bytes);
    s->fixed[CUDA_FIXED_CONSTANTS] = part(s, sizeof(cuda_step_constants));
    s->fixed[CUDA_FIXED_RESULT] = part(s, sizeof(cuda_result));
    /* A smaller batch, which shares this memory, may need up to a third more counters. */
    s->fixed[CUDA_FIXED_COUNTERS] = part(s, 2 * counters);
    s->fixed[CUDA_FIXED_TABLE] = part(s, exec->layout.elements / CUDA_CHUNK * sizeof(cuda_chunk));
    s->fixed[CUDA_FIXED_WORKSPACE] = part(s, CUDA_WORKSPACE_BYTES);
    for (int i = 0; i < CUDA_DEVICE_BATCHES; i++) {
        s->images[i] =
            part(s, stk_shape_count(graph->values[graph->input].shape) * exec->config.batch);
        s->labels[i] = part(s, exec->config.batch * sizeof(int));
        s->targets[i] = part(s, target_bytes(exec, graph));
        s->features[i] = part(s, feature_bytes(exec, graph));
    }
    size_t norms = stk_cuda_input_norms(graph, NULL);
    if (norms > 0) {
        s->fixed[CUDA_FIXED_NORMS] = part(s, norms * sizeof(float));
    }
    if (graph->loss.positive_weights != NULL) {
        s->fixed[CUDA_FIXED_POSITIVE] = part(s, (size_t)graph->classes * sizeof(float));
    }
    s->arena = part(s, arena);
}

/* Makes the programs and places the parts of the allocation. Reads properties of the device, but
 * calls nothing on it. The places do not depend on `results`. */
static stk_status lay_out(stk_exec *exec, const stk_device *device, const stk_graph *usual,
                          const stk_compile_config *config, const stk_state_config *state,
                          cuda_tuning_results *results, stk_error *err) {
    const stk_graph *graph = stk_compile_graph(config, usual);
    stk_precision precision = stk_cuda_device_precision(device, config->precision);
    cuda_type type = type_of(precision);
    bool strict = precision == STK_PRECISION_FP32_STRICT;
    stk_pieces_config cut = stk_pieces_config_of(config);
    exec->config = *config;
    exec->logits = cuda_nothing();
    if (config->batch < 1 || config->batch > INT_MAX / 4) {
        return STK_FAIL(err, STK_ERR_USAGE, "a batch of %zu samples cannot be computed",
                        config->batch);
    }
    for (int i = 0; i < PLAY_COUNT; i++) {
        stk_cuda_program_begin(&exec->programs[i], type, strict, device->multiprocessors);
        exec->programs[i].major = device->major;
        exec->programs[i].kept_stats = config->kept_stats;
    }
    stk_status status = stk_pieces_make(&exec->pieces, graph, &cut, err);
    STK_THEN(status,
             stk_cuda_parameter_layout_make(&exec->layout, graph, type, config->train, err));
    STK_THEN(status, stk_cuda_lower(&exec->programs[PLAY_MAIN], &exec->pieces, &exec->layout,
                                    (int)config->batch, results, &exec->logits, err));
    if (status == STK_OK) {
        stk_cuda_lower_weights(&exec->programs[PLAY_WEIGHTS], &exec->pieces, &exec->layout);
    }
    if (status == STK_OK && config->train) {
        cuda_optimiser optimiser = {
            .elements = exec->layout.elements, .kind = state->optimizer, .ema = state->ema};
        stk_cuda_gather(&exec->programs[PLAY_GATHER], &optimiser);
        stk_cuda_gather(&exec->programs[PLAY_UPDATE], &optimiser);
        stk_cuda_optimise(&exec->programs[PLAY_UPDATE], &optimiser);
    }
    for (int i = 0; i < PLAY_COUNT && status == STK_OK; i++) {
        status = stk_cuda_program_lay_out(&exec->programs[i], err);
    }
    if (status == STK_OK) {
        place_parts(exec, graph);
    }
    return status;
}

static void free_programs(stk_exec *exec) {
    stk_pieces_free(&exec->pieces);
    stk_cuda_parameter_layout_free(&exec->layout);
    for (int i = 0; i < PLAY_COUNT; i++) {
        stk_cuda_program_free(&exec->programs[i]);
    }
}

/* All kinds of optimisers need the same scratch memory, so any kind will do here. */
static stk_status cuda_exec_need(stk_device *device, const stk_graph *graph,
                                 const stk_compile_config *config, uint64_t *bytes,
                                 uint64_t *workspace, stk_error *err) {
    stk_exec exec = {.state = NULL};
    stk_state_config state = {.train = config->train};
    stk_status status = lay_out(&exec, device, graph, config, &state, NULL, err);
    *bytes = exec.parts.bytes;
    if (workspace != NULL) {
        *workspace = CUDA_WORKSPACE_BYTES;
    }
    free_programs(&exec);
    return status;
}

static void free_step_events(const cuda_driver *d, const cuda_step_events *m) {
    const cuda_event events[] = {m->sending, m->copied, m->ready, m->begun, m->updating, m->done};
    for (size_t i = 0; i < STK_COUNT(events); i++) {
        events[i] != NULL ? d->event_free(events[i]) : 0;
    }
}

static void cuda_exec_free(stk_exec *exec) {
    if (exec == NULL) {
        return;
    }
    cuda_exec_free(exec->smaller);
    stk_device *device = exec->state->device;
    if (stk_cuda_enter(device, NULL) == STK_OK) {
        const cuda_driver *d = device->driver;
        (void)d->stream_wait(device->copy);
        (void)d->stream_wait(device->compute);
        for (int i = 0; i < PLAY_COUNT; i++) {
            stk_cuda_player_close(&exec->players[i]);
        }
        for (int i = 0; i < CUDA_DEVICE_BATCHES; i++) {
            exec->used[i] != NULL ? d->event_free(exec->used[i]) : 0;
        }
        for (int i = 0; i < STK_STEPS_AHEAD; i++) {
            free_step_events(d, &exec->events[i]);
        }
        if (exec->memory != 0 && exec->home == NULL) {
            stk_cuda_give(device, exec->memory, exec->parts.bytes);
        }
        exec->queue != NULL ? d->host_free(exec->queue) : 0;
        exec->labels != NULL ? d->host_free(exec->labels) : 0;
        exec->targets != NULL ? d->host_free(exec->targets) : 0;
        exec->features != NULL ? d->host_free(exec->features) : 0;
        exec->answers != NULL ? d->host_free(exec->answers) : 0;
    }
    free_programs(exec);
    stk_mem_free(exec);
}

/* Whether the main program fits the allocation; place_parts() has the order of its parts. */
static bool fits(const stk_exec *exec) {
    const cuda_parts *s = &exec->parts;
    size_t counters = s->fixed[CUDA_FIXED_TABLE] - s->fixed[CUDA_FIXED_COUNTERS];
    return exec->programs[PLAY_MAIN].arena_bytes <= s->bytes - s->arena &&
           (size_t)exec->programs[PLAY_MAIN].counters * 4 <= counters;
}

/*
 * A smaller executable uses the allocation of `home`: no data in the arena survives a step, and all
 * else is the same for both. So the memory need of a batch covers all smaller ones. Should the
 * smaller batch need more after all, it gets an allocation of its own.
 */
static void share_memory(stk_exec *exec, stk_exec *home) {
    cuda_parts own = exec->parts;
    exec->parts = home->parts;
    if (fits(exec)) {
        exec->home = home;
        exec->memory = home->memory;
    } else {
        exec->parts = own;
    }
}

static stk_status take_memory(stk_exec *exec, stk_error *err) {
    stk_device *device = exec->state->device;
    stk_device_memory memory = {0};
    if (exec->home != NULL) {
        return STK_OK;
    }
    int result = stk_cuda_take(device, &exec->memory, exec->parts.bytes);
    if (result == CUDA_GOOD) {
        return STK_OK;
    }
    exec->memory = 0;
    if (result != CUDA_ERROR_OUT_OF_MEMORY_) {
        return stk_cuda_check(device->driver, result, "taking memory on the GPU", err);
    }
    (void)stk_cuda_device_memory(device, &memory, NULL);
    return STK_FAIL(err, STK_ERR_MEMORY,
                    "batch %zu at %d px needs %.1f MiB of the GPU's memory, and %.1f MiB are free "
                    "now: something else has taken the rest; end it, or use a smaller %s",
                    exec->config.batch, exec->pieces.graph->img_size,
                    (double)exec->parts.bytes / 1048576, (double)memory.free_bytes / 1048576,
                    exec->config.train ? "--batch or --img-size" : "--img-size");
}

static stk_status take_host_memory(stk_exec *exec, stk_error *err) {
    const cuda_driver *d = exec->state->device->driver;
    size_t batch = exec->config.batch;
    size_t answers = batch * stk_graph_answers(exec->pieces.graph) * sizeof(float);
    void *memory[5] = {NULL, NULL, NULL, NULL, NULL};
    size_t bytes[5] = {sizeof(cuda_step_queue), STK_STEPS_AHEAD * batch * sizeof(int),
                       exec->config.train ? 0 : CUDA_DEVICE_BATCHES * answers,
                       CUDA_DEVICE_BATCHES * target_bytes(exec, exec->pieces.graph),
                       CUDA_DEVICE_BATCHES * feature_bytes(exec, exec->pieces.graph)};
    bool good = true;
    for (size_t i = 0; i < STK_COUNT(memory) && good; i++) {
        good = bytes[i] == 0 || d->host_take(&memory[i], bytes[i], 0) == CUDA_GOOD;
    }
    exec->queue = memory[0];
    exec->labels = memory[1];
    exec->answers = memory[2];
    exec->targets = memory[3];
    exec->features = memory[4];
    return good ? STK_OK : STK_FAIL_MEMORY(err, "batches on their way to the GPU");
}

/* A waiting host sleeps: it would otherwise spin on a core that decode workers need. */
static stk_status make_events(stk_exec *exec, stk_error *err) {
    const cuda_driver *d = exec->state->device->driver;
    int result = CUDA_GOOD;
    for (int i = 0; i < CUDA_DEVICE_BATCHES; i++) {
        result |= d->event_new(&exec->used[i], CUDA_EVENT_NO_TIMING);
    }
    for (int i = 0; i < STK_STEPS_AHEAD; i++) {
        cuda_step_events *m = &exec->events[i];
        result |= d->event_new(&m->sending, 0);
        result |= d->event_new(&m->copied, CUDA_EVENT_BLOCKING);
        result |= d->event_new(&m->ready, 0);
        result |= d->event_new(&m->begun, 0);
        result |= d->event_new(&m->updating, 0);
        result |= d->event_new(&m->done, CUDA_EVENT_BLOCKING);
    }
    return stk_cuda_check(d, result, "making events", err);
}

/* Sets the addresses of all buffers and players; prepares the memory that the first step reads. */
static stk_status aim(stk_exec *exec, stk_error *err) {
    stk_state *state = exec->state;
    const cuda_driver *d = state->device->driver;
    cuda_stream stream = state->device->compute;
    bool average = exec->config.ema && !exec->config.train;
    for (int i = 0; i < CUDA_FIXED_COUNT; i++) {
        size_t offset = exec->parts.fixed[i];
        exec->fixed[i] = offset != SIZE_MAX ? exec->memory + offset : 0;
    }
    exec->fixed[CUDA_FIXED_VALUES] = state->blocks[average ? STK_TENSOR_EMA : STK_TENSOR_VALUE];
    exec->fixed[CUDA_FIXED_GRADIENTS] = state->blocks[STK_TENSOR_GRADIENT];
    exec->fixed[CUDA_FIXED_MOMENTUM] = state->blocks[STK_TENSOR_MOMENTUM];
    exec->fixed[CUDA_FIXED_SECOND] = state->blocks[STK_TENSOR_SECOND];
    exec->fixed[CUDA_FIXED_EMA] = state->blocks[STK_TENSOR_EMA];
    exec->fixed[CUDA_FIXED_SCALER] = state->scaler;
    for (int i = 0; i < PLAY_COUNT; i++) {
        exec->players[i] = (cuda_player){.driver = d,
                                         .stream = stream,
                                         .kernels = state->device->kernels,
                                         .convs = state->device->convs,
                                         .program = &exec->programs[i],
                                         .arena = exec->memory + exec->parts.arena,
                                         .fixed = exec->fixed};
    }
    size_t start = exec->parts.fixed[CUDA_FIXED_FRESH];
    size_t end = exec->parts.fixed[CUDA_FIXED_TABLE];
    size_t chunks = exec->layout.elements / CUDA_CHUNK * sizeof(cuda_chunk);
    int result = d->fill(exec->memory + start, 0, end - start, stream);
    result |= d->copy_in(exec->fixed[CUDA_FIXED_TABLE], exec->layout.chunks, chunks, stream);
    const stk_graph *graph = exec->pieces.graph;
    float norms[2 * STK_MOST_CHANNELS];
    size_t norm_bytes = stk_cuda_input_norms(graph, norms) * sizeof *norms;
    if (norm_bytes > 0) {
        result |= d->copy_in(exec->fixed[CUDA_FIXED_NORMS], norms, norm_bytes, stream);
    }
    if (exec->fixed[CUDA_FIXED_POSITIVE] != 0) {
        result |= d->copy_in(exec->fixed[CUDA_FIXED_POSITIVE], graph->loss.positive_weights,
                             (size_t)graph->classes * sizeof(float), stream);
    }
    result |= d->stream_wait(stream);
    return stk_cuda_check(d, result, "preparing a network", err);
}

/* fp16 has a dynamic loss scale; other types compute without one. */
static stk_status set_scaler(stk_exec *exec, stk_error *err) {
    stk_state *state = exec->state;
    bool dynamic = exec->layout.type == CUDA_TYPE_F16;
    return exec->config.train && dynamic != state->scaled
               ? stk_cuda_state_scale(state, dynamic, err)
               : STK_OK;
}

/* Fills the arena with noise: plans are timed on it and on the weights. */
static stk_status make_noise(stk_exec *exec, stk_error *err) {
    const cuda_program *main = &exec->programs[PLAY_MAIN];
    cuda_program noise;
    const cuda_program *programs[] = {&noise};
    cuda_player player = exec->players[PLAY_WEIGHTS];
    stk_cuda_program_begin_like(&noise, main);
    cuda_ref all = stk_cuda_buffer(&noise, main->arena_bytes);
    stk_cuda_noise(&noise, main->arena_bytes / cuda_type_bytes(main->type), all);
    stk_status status = stk_cuda_program_lay_out(&noise, err);
    player.program = &noise;
    STK_THEN(status, stk_cuda_kernels_make(exec->state->device->kernels, programs, 1, err));
    STK_THEN(status, stk_cuda_player_run(&player, err));
    stk_cuda_program_free(&noise);
    return status;
}

static stk_status lower_main(stk_exec *exec, cuda_tuning_results *results, stk_error *err) {
    cuda_program *p = &exec->programs[PLAY_MAIN];
    cuda_program first = *p;
    stk_cuda_program_begin_like(p, &first);
    stk_cuda_program_free(&first);
    stk_status status = stk_cuda_lower(p, &exec->pieces, &exec->layout, (int)exec->config.batch,
                                       results, &exec->logits, err);
    return status == STK_OK ? stk_cuda_program_lay_out(p, err) : status;
}

/*
 * Lowers the main program again, after new results. All variants need the same memory; should one
 * need more after all, the plain variants are right, if slower.
 */
static stk_status lower_again(stk_exec *exec, stk_error *err) {
    stk_status status = lower_main(exec, exec->state->device->tuning_results, err);
    if (status == STK_OK && !fits(exec)) {
        status = lower_main(exec, NULL, err);
    }
    if (status == STK_OK && !fits(exec)) {
        status = STK_FAIL(err, STK_ERR_INTERNAL, "the memory need depends on the chosen variants");
    }
    return status;
}

static stk_status make_kernels(stk_exec *exec, stk_error *err) {
    const cuda_program *programs[PLAY_COUNT];
    for (int i = 0; i < PLAY_COUNT; i++) {
        programs[i] = &exec->programs[i];
    }
    return stk_cuda_kernels_make(exec->state->device->kernels, programs, PLAY_COUNT, err);
}

/* Makes the kernels of the programs as they are; *cold: some had to be compiled. */
static stk_status look_for_kernels(stk_exec *exec, bool *cold, stk_error *err) {
    const cuda_kernels *kernels = exec->state->device->kernels;
    int before, after, loaded;
    stk_cuda_kernels_counts(kernels, &before, &loaded);
    stk_status status = make_kernels(exec, err);
    stk_cuda_kernels_counts(kernels, &after, &loaded);
    *cold = after > before;
    return status;
}

/* Times variants until there are no new decisions. A hurried device that had to compile keeps the
 * plain variants: the others would have to be compiled, too. */
static stk_status autotune(stk_exec *exec, stk_error *err) {
    const stk_device *device = exec->state->device;
    bool tuned = true;
    bool cold = false;
    stk_status status = device->config.hurried ? look_for_kernels(exec, &cold, err) : STK_OK;
    if (cold) {
        return status;
    }
    for (int round = 0; round < MOST_ROUNDS && tuned && status == STK_OK; round++) {
        status = stk_cuda_autotune(&exec->players[PLAY_MAIN], device->tuning_results,
                                   &device->config, &tuned, err);
        status = status == STK_OK && tuned ? lower_again(exec, err) : status;
    }
    return status;
}

/* Makes the kernels and plans of all programs. */
static stk_status make_plans(stk_exec *exec, stk_error *err) {
    stk_status status = make_kernels(exec, err);
    STK_THEN(status, make_noise(exec, err));
    STK_THEN(status, stk_cuda_player_run(&exec->players[PLAY_WEIGHTS], err));
    STK_THEN(status, stk_cuda_player_prepare(&exec->players[PLAY_MAIN], NULL, err));
    /* A program that replaces another may contain further fused convolutions without a plan. */
    for (int round = 0; round < MOST_RETRACTIONS && status == STK_OK; round++) {
        if (!stk_cuda_autotune_retract(&exec->players[PLAY_MAIN],
                                       exec->state->device->tuning_results)) {
            break;
        }
        status = lower_again(exec, err);
        STK_THEN(status, make_kernels(exec, err));
        STK_THEN(status, stk_cuda_player_prepare(&exec->players[PLAY_MAIN], NULL, err));
    }
    return status;
}

/* Refuses what has a memory need but cannot be computed. */
static stk_status check_config(stk_exec *exec, stk_error *err) {
    const stk_state *state = exec->state;
    bool train = exec->config.train;
    if (exec->config.batch > MOST_SAMPLES) {
        return STK_FAIL(
            err, STK_ERR_USAGE,
            "a batch of %zu is too large: a GPU computes at most %zu pictures at a time; "
            "use a smaller --batch",
            exec->config.batch, MOST_SAMPLES);
    }
    if ((train && state->blocks[STK_TENSOR_GRADIENT] == 0) ||
        (!train && exec->config.ema && state->blocks[STK_TENSOR_EMA] == 0)) {
        return STK_FAIL(err, STK_ERR_INTERNAL, "the state has no tensors for this executable");
    }
    return STK_OK;
}

/* The steps of compiling that follow the layout, in this order. */
typedef stk_status compile_step(stk_exec *exec, stk_error *err);
static compile_step *const compile_steps[] = {check_config, take_memory, take_host_memory,
                                              make_events,  aim,         set_scaler,
                                              autotune,     make_plans};

/* `home`: for a smaller executable, see share_memory(); otherwise NULL. */
static stk_status make_exec(stk_exec **out, stk_state *state, const stk_compile_config *config,
                            stk_exec *home, stk_error *err) {
    stk_exec *exec = stk_mem_new(1, sizeof *exec);
    if (exec == NULL) {
        return STK_FAIL_MEMORY(err, "a compiled network");
    }
    exec->state = state;
    stk_state_config kinds = {.train = config->train,
                              .optimizer =
                                  state->blocks[STK_TENSOR_SECOND] != 0 ? STK_ADAMW : STK_SGD,
                              .ema = state->blocks[STK_TENSOR_EMA] != 0};
    stk_status status = stk_cuda_enter(state->device, err);
    STK_THEN(status,
             stk_graph_check_params(state->graph, stk_compile_graph(config, state->graph), err));
    STK_THEN(status, lay_out(exec, state->device, state->graph, config, &kinds,
                             state->device->tuning_results, err));
    if (status == STK_OK && home != NULL) {
        share_memory(exec, home);
    }
    for (size_t i = 0; i < STK_COUNT(compile_steps) && status == STK_OK; i++) {
        status = compile_steps[i](exec, err);
    }
    if (status != STK_OK) {
        cuda_exec_free(exec);
        return status;
    }
    *out = exec;
    return STK_OK;
}

static stk_status cuda_compile(stk_exec **exec, stk_state *state, const stk_compile_config *config,
                               stk_error *err) {
    return make_exec(exec, state, config, NULL, err);
}

static uint64_t cuda_exec_bytes(const stk_exec *exec) {
    const stk_exec *smaller = exec->smaller;
    return exec->parts.bytes +
           (smaller != NULL && smaller->home == NULL ? smaller->parts.bytes : 0);
}

/*
 * The executable for a step of `count` samples. Fewer than the batch have other shapes, so they
 * need the smaller executable. Its step begins when the steps before have ended, since its pictures
 * overwrite theirs; step_by_count() waits for its end.
 */
static stk_status find_exec(stk_exec *exec, size_t count, stk_exec **found, stk_error *err) {
    stk_compile_config config = exec->config;
    config.batch = count;
    *found = exec;
    if (count == exec->config.batch || !config.train) {
        return STK_OK;
    }
    if (exec->smaller != NULL && exec->smaller->config.batch != count) {
        cuda_exec_free(exec->smaller);
        exec->smaller = NULL;
    }
    stk_status status = stk_cuda_finish(exec->state->device, CUDA_GOOD, "a training step", err);
    if (status == STK_OK && exec->smaller == NULL) {
        status = make_exec(&exec->smaller, exec->state, &config, exec, err);
    }
    *found = exec->smaller;
    return status;
}

static stk_status check_count(const stk_exec *exec, size_t count, bool train, stk_error *err) {
    if (count < 1 || count > exec->config.batch || train != exec->config.train) {
        return STK_FAIL(err, STK_ERR_INTERNAL,
                        "a network compiled for %s of up to %zu samples was called for %s of %zu",
                        exec->config.train ? "training" : "inference", exec->config.batch,
                        train ? "training" : "inference", count);
    }
    return stk_cuda_enter(exec->state->device, err);
}

/* Results are collected from `exec`, also those that its smaller executable computes. */
static stk_status step_by_count(stk_exec *exec, const stk_step_input *input,
                                stk_step_output *output, stk_error *err) {
    stk_exec *found = NULL;
    stk_status status = check_count(exec, input->count, true, err);
    STK_THEN(status, stk_step_check(exec->pieces.graph, input, err));
    STK_THEN(status, find_exec(exec, input->count, &found, err));
    if (status != STK_OK || output != NULL || found == exec) {
        return status == STK_OK ? stk_cuda_step(found, input, output, err) : status;
    }
    stk_step_output now;
    status = stk_cuda_step(found, input, &now, err);
    return status == STK_OK ? stk_cuda_step_note(exec, &now, err) : status;
}

static stk_status infer_checked(stk_exec *exec, const uint8_t *images, const float *features,
                                size_t count, float *logits, stk_error *err) {
    stk_status status = check_count(exec, count, false, err);
    STK_THEN(status, stk_features_check(exec->pieces.graph, features, err));
    return status == STK_OK ? stk_cuda_infer(exec, images, features, count, logits, err) : status;
}

const stk_backend stk_cuda_backend = {
    .name = "cuda",
    .most_batch = MOST_SAMPLES,
    .device_open = stk_cuda_device_open,
    .device_close = stk_cuda_device_close,
    .describe = stk_cuda_device_describe,
    .bus_id = stk_cuda_device_bus_id,
    .memory = stk_cuda_device_memory,
    .counts = stk_cuda_device_counts,
    .precision = stk_cuda_device_precision,
    .host_take = stk_cuda_device_host_take,
    .host_free = stk_cuda_device_host_free,
    .decoder_bytes = stk_cuda_device_decoder_bytes,
    .decoder_open = stk_cuda_device_decoder_open,
    .decoder_close = stk_cuda_device_decoder_close,
    .state_new = stk_cuda_state_new,
    .state_free = stk_cuda_state_free,
    .state_bytes = stk_cuda_state_bytes,
    .state_has = stk_cuda_state_has,
    .state_read = stk_cuda_state_read,
    .state_write = stk_cuda_state_write,
    .extras_read = stk_cuda_state_extras_read,
    .extras_write = stk_cuda_state_extras_write,
    .exec_need = cuda_exec_need,
    .compile = cuda_compile,
    .exec_free = cuda_exec_free,
    .exec_bytes = cuda_exec_bytes,
    .step = step_by_count,
    .collect = stk_cuda_collect,
    .infer = infer_checked,
    .fetch = stk_cuda_fetch,
    .profile = stk_cuda_profile,
    .bandwidth = stk_cuda_bandwidth,
    .copy_bandwidth = stk_cuda_copy_bandwidth,
};
