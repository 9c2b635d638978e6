/* cudnn.c - offers of cuDNN for a convolution, execution plans built of them, and their runs. */
#include "backend/cuda/convolution/cudnn.h"

#include <string.h>

#include "backend/cuda/convolution/cudnn_graph.h"
#include "backend/cuda/driver/api.h"
#include "base/error.h"
#include "base/mem.h"

/* The heuristics are asked for so many at a time. */
#define MOST_CONFIGS 24
#define MOST_NOTES 16

struct cuda_dnn_plan {
    cuda_dnn_graph graph; /* owned: lives as long as the plan made from it */
    cuda_dnn_descriptor plan;
};

static stk_status failed(const cuda_dnn *dnn, int status, const char *what, stk_error *err) {
    bool memory = status == DNN_NO_HOST_MEMORY || status == DNN_NO_DEVICE_MEMORY;
    return STK_FAIL(err, memory ? STK_ERR_MEMORY : STK_ERR_DEVICE, "cannot %s: cuDNN says %s", what,
                    dnn->api.error_string(status));
}

static stk_status find_functions(cuda_dnn_functions *api, void *library, stk_error *err) {
    const cuda_symbol wanted[] = {
#define X(name, symbol, parameters) {symbol, &api->name},
        CUDA_DNN_FUNCTIONS(X)
#undef X
            {"cudnnGetErrorString", &api->error_string},
    };
    return stk_cuda_symbols(library, "cuDNN", wanted, STK_COUNT(wanted), err);
}

/*
 * Plans are made for a description of the device rather than for a handle, since a handle serves
 * one thread at a time. cuDNN before 9.8 has no descriptions of devices.
 */
static int describe_device(cuda_dnn *dnn, const char *described) {
    int status = dnn->api.describe(DNN_DEVICE, &dnn->device);
    if (status != 0) {
        dnn->device = NULL;
        return status;
    }
    if (described != NULL) {
        status = dnn->api.set(dnn->device, DNN_DEVICE_JSON, DNN_TYPE_CHAR,
                              (int64_t)strlen(described), described);
    } else {
        status = dnn->api.set(dnn->device, DNN_DEVICE_HANDLE, DNN_TYPE_HANDLE, 1, &dnn->handle);
    }
    status = status == 0 ? dnn->api.finish(dnn->device) : status;
    if (status != 0) {
        (void)dnn->api.drop(dnn->device);
        dnn->device = NULL;
    }
    return status;
}

stk_status stk_cuda_dnn_open(cuda_dnn **dnn, void *library, cuda_stream stream,
                             const char *described, stk_error *err) {
    cuda_dnn *made = stk_mem_new(1, sizeof *made);
    *dnn = NULL;
    if (made == NULL) {
        return STK_FAIL_MEMORY(err, "cuDNN");
    }
    stk_status status = find_functions(&made->api, library, err);
    int result = 0;
    if (status == STK_OK && described != NULL) {
        result = describe_device(made, described);
    } else if (status == STK_OK) {
        result = made->api.create(&made->handle);
        result = result == 0 ? made->api.set_stream(made->handle, stream) : result;
        (void)(result == 0 ? describe_device(made, NULL) : 0);
    }
    if (result != 0) {
        status = failed(made, result, "start cuDNN", err);
    }
    if (status != STK_OK) {
        stk_cuda_dnn_close(made);
        return status;
    }
    *dnn = made;
    return STK_OK;
}

void stk_cuda_dnn_close(cuda_dnn *dnn) {
    if (dnn == NULL) {
        return;
    }
    if (dnn->device != NULL) {
        (void)dnn->api.drop(dnn->device);
    }
    if (dnn->handle != NULL) {
        (void)dnn->api.destroy(dnn->handle);
    }
    stk_mem_free(dnn);
}

bool stk_cuda_dnn_threaded(const cuda_dnn *dnn) {
    return dnn->device != NULL;
}

/* ---- offers ---- */

/* Whether one of the notes rules an engine out; see DNN_NOTE_*. */
static bool too_coarse(const int *notes, int64_t count, const cuda_conv_shape *shape,
                       bool deterministic) {
    bool strict = shape->type == CUDA_TYPE_F32 && shape->strict;
    for (int64_t i = 0; i < count; i++) {
        int note = notes[i];
        if (note == DNN_NOTE_REDUCED_PRECISION || note == DNN_NOTE_FFT ||
            (note >= DNN_NOTE_WINOGRAD && note <= DNN_NOTE_WINOGRAD_LAST) ||
            (strict && (note == DNN_NOTE_TENSOR_CORE || note == DNN_NOTE_DOWN_CONVERT)) ||
            (deterministic && note == DNN_NOTE_NONDETERMINISTIC)) {
            return true;
        }
    }
    return false;
}

static int read_knobs(const cuda_dnn *dnn, cuda_dnn_descriptor config, cuda_dnn_offer *offer) {
    cuda_dnn_descriptor knobs[CUDA_DNN_MOST_KNOBS] = {NULL};
    int64_t count = 0;
    int status = 0;
    for (int i = 0; i < CUDA_DNN_MOST_KNOBS && status == 0; i++) {
        status = dnn->api.describe(DNN_KNOB, &knobs[i]);
    }
    if (status == 0) {
        status = dnn->api.get(config, DNN_CONFIG_KNOBS, DNN_TYPE_DESCRIPTOR, CUDA_DNN_MOST_KNOBS,
                              &count, knobs);
    }
    for (int64_t i = 0; i < count && i < CUDA_DNN_MOST_KNOBS && status == 0; i++) {
        int64_t got = 0;
        int type = 0;
        status = dnn->api.get(knobs[i], DNN_KNOB_TYPE, DNN_TYPE_KNOB_TYPE, 1, &got, &type);
        offer->knobs[i][0] = type;
        if (status == 0) {
            status = dnn->api.get(knobs[i], DNN_KNOB_VALUE, DNN_TYPE_INT64, 1, &got,
                                  &offer->knobs[i][1]);
        }
        offer->knob_count = (int)i + 1;
    }
    for (int i = 0; i < CUDA_DNN_MOST_KNOBS; i++) {
        if (knobs[i] != NULL) {
            (void)dnn->api.drop(knobs[i]);
        }
    }
    return status;
}

/* Describes a configuration; false: it is not to be used. */
static bool read_config(const cuda_dnn *dnn, cuda_dnn_descriptor config,
                        const cuda_conv_shape *shape, bool deterministic, cuda_dnn_offer *offer) {
    cuda_dnn_descriptor engine = NULL;
    int numerical[MOST_NOTES], behavior[MOST_NOTES];
    int64_t got = 0, numericals = 0, behaviors = 0;
    memset(offer, 0, sizeof *offer);
    int status = dnn->api.describe(DNN_ENGINE, &engine);
    if (status != 0) {
        return false;
    }
    status = dnn->api.get(config, DNN_CONFIG_ENGINE, DNN_TYPE_DESCRIPTOR, 1, &got, &engine);
    if (status == 0) {
        status = dnn->api.get(engine, DNN_ENGINE_NUMBER, DNN_TYPE_INT64, 1, &got, &offer->engine);
    }
    if (status == 0) {
        status = dnn->api.get(engine, DNN_ENGINE_NUMERICAL_NOTES, DNN_TYPE_NUMERICAL_NOTE,
                              MOST_NOTES, &numericals, numerical);
    }
    if (status == 0) {
        status = dnn->api.get(engine, DNN_ENGINE_BEHAVIOR_NOTES, DNN_TYPE_BEHAVIOR_NOTE, MOST_NOTES,
                              &behaviors, behavior);
    }
    if (status == 0) {
        status = read_knobs(dnn, config, offer);
    }
    for (int64_t i = 0; i < behaviors && status == 0; i++) {
        offer->compiled = offer->compiled || behavior[i] == DNN_BEHAVIOR_COMPILED;
    }
    (void)dnn->api.drop(engine);
    /* Compiled engines need not say that they use TF32. */
    bool doubtful = offer->compiled && shape->type == CUDA_TYPE_F32 && shape->strict;
    return status == 0 && !doubtful && !too_coarse(numerical, numericals, shape, deterministic);
}

static bool same_offer(const cuda_dnn_offer *a, const cuda_dnn_offer *b) {
    return a->engine == b->engine && a->knob_count == b->knob_count &&
           memcmp(a->knobs, b->knobs, (size_t)a->knob_count * sizeof a->knobs[0]) == 0;
}

static void add_offer(cuda_dnn_offer *offers, int *count, int most, const cuda_dnn_offer *offer) {
    bool known = *count == most;
    for (int i = 0; i < *count && !known; i++) {
        known = same_offer(&offers[i], offer);
    }
    if (!known) {
        offers[(*count)++] = *offer;
    }
}

/* Asks one heuristic; when it fails there are no offers. */
static void ask(cuda_dnn_graph *graph, int mode, const cuda_conv_shape *shape, bool deterministic,
                cuda_dnn_offer *offers, int *count, int most) {
    const cuda_dnn *dnn = graph->dnn;
    cuda_dnn_descriptor configs[MOST_CONFIGS] = {NULL};
    cuda_dnn_descriptor heuristic = stk_cuda_dnn_new(graph, DNN_HEURISTIC);
    int64_t found = 0;
    stk_cuda_dnn_set_one(graph, heuristic, DNN_HEURISTIC_GRAPH, graph->whole);
    stk_cuda_dnn_set(graph, heuristic, DNN_HEURISTIC_MODE, DNN_TYPE_HEURISTIC_MODE, 1, &mode);
    if (dnn->device != NULL) {
        stk_cuda_dnn_set_one(graph, heuristic, DNN_HEURISTIC_DEVICE, dnn->device);
    }
    stk_cuda_dnn_finish(graph, heuristic);
    for (int i = 0; i < MOST_CONFIGS && graph->status == 0; i++) {
        graph->status = dnn->api.describe(DNN_CONFIG, &configs[i]);
    }
    if (graph->status == 0) {
        graph->status = dnn->api.get(heuristic, DNN_HEURISTIC_RESULTS, DNN_TYPE_DESCRIPTOR,
                                     MOST_CONFIGS, &found, configs);
    }
    for (int64_t i = 0; i < found && i < MOST_CONFIGS && graph->status == 0; i++) {
        cuda_dnn_offer offer;
        if (read_config(dnn, configs[i], shape, deterministic, &offer)) {
            offer.fallback = mode == DNN_HEURISTIC_FALLBACK;
            add_offer(offers, count, most, &offer);
        }
    }
    for (int i = 0; i < MOST_CONFIGS; i++) {
        if (configs[i] != NULL) {
            (void)dnn->api.drop(configs[i]);
        }
    }
    graph->status = 0;
}

stk_status stk_cuda_dnn_offers(cuda_dnn *dnn, const cuda_conv_shape *shape, bool plain,
                               bool deterministic, cuda_dnn_offer *offers, int *count,
                               stk_error *err) {
    static const int modes[] = {DNN_HEURISTIC_A, DNN_HEURISTIC_B, DNN_HEURISTIC_FALLBACK};
    int most = *count;
    cuda_dnn_graph *graph = stk_mem_new(1, sizeof *graph);
    *count = 0;
    if (graph == NULL) {
        return STK_FAIL_MEMORY(err, "the plans of convolutions");
    }
    stk_cuda_dnn_graph_begin(graph, dnn, shape, plain);
    for (size_t i = 0; i < STK_COUNT(modes) && graph->status == 0; i++) {
        ask(graph, modes[i], shape, deterministic, offers, count, most);
    }
    stk_cuda_dnn_graph_end(graph);
    stk_mem_free(graph);
    return STK_OK;
}

/* ---- plans ---- */

static void describe_plan(cuda_dnn_plan *plan, const cuda_dnn_offer *offer) {
    cuda_dnn_graph *graph = &plan->graph;
    const cuda_dnn *dnn = graph->dnn;
    cuda_dnn_descriptor knobs[CUDA_DNN_MOST_KNOBS];
    cuda_dnn_descriptor engine = stk_cuda_dnn_new(graph, DNN_ENGINE);
    stk_cuda_dnn_set_one(graph, engine, DNN_ENGINE_GRAPH, graph->whole);
    stk_cuda_dnn_set_long(graph, engine, DNN_ENGINE_NUMBER, offer->engine);
    if (dnn->device != NULL) {
        stk_cuda_dnn_set_one(graph, engine, DNN_ENGINE_DEVICE, dnn->device);
    }
    stk_cuda_dnn_finish(graph, engine);
    for (int i = 0; i < offer->knob_count; i++) {
        int type = (int)offer->knobs[i][0];
        knobs[i] = stk_cuda_dnn_new(graph, DNN_KNOB);
        stk_cuda_dnn_set(graph, knobs[i], DNN_KNOB_TYPE, DNN_TYPE_KNOB_TYPE, 1, &type);
        stk_cuda_dnn_set_long(graph, knobs[i], DNN_KNOB_VALUE, offer->knobs[i][1]);
        stk_cuda_dnn_finish(graph, knobs[i]);
    }
    cuda_dnn_descriptor config = stk_cuda_dnn_new(graph, DNN_CONFIG);
    stk_cuda_dnn_set_one(graph, config, DNN_CONFIG_ENGINE, engine);
    if (offer->knob_count > 0) {
        stk_cuda_dnn_set(graph, config, DNN_CONFIG_KNOBS, DNN_TYPE_DESCRIPTOR, offer->knob_count,
                         knobs);
    }
    stk_cuda_dnn_finish(graph, config);
    plan->plan = stk_cuda_dnn_new(graph, DNN_PLAN);
    stk_cuda_dnn_set_one(graph, plan->plan, DNN_PLAN_CONFIG, config);
}

/* For the description of the device, so that threads can do it, or for the handle that will run. */
static void finish_plan(cuda_dnn_plan *plan, bool described) {
    cuda_dnn_graph *graph = &plan->graph;
    const cuda_dnn *dnn = graph->dnn;
    if (described) {
        stk_cuda_dnn_set_one(graph, plan->plan, DNN_PLAN_DEVICE, dnn->device);
    } else {
        stk_cuda_dnn_set(graph, plan->plan, DNN_PLAN_HANDLE, DNN_TYPE_HANDLE, 1, &dnn->handle);
    }
    stk_cuda_dnn_finish(graph, plan->plan);
}

/* Hands the plan over if it was finished and is small enough. */
static void keep_fitting(cuda_dnn *dnn, cuda_dnn_plan *made, cuda_dnn_plan **plan) {
    int64_t got = 0, bytes = 0;
    if (made->graph.status == 0) {
        made->graph.status =
            dnn->api.get(made->plan, DNN_PLAN_WORKSPACE, DNN_TYPE_INT64, 1, &got, &bytes);
    }
    if (made->graph.status == 0 && bytes <= (int64_t)CUDA_DNN_WORKSPACE_BYTES) {
        *plan = made;
    } else {
        stk_cuda_dnn_plan_free(made);
    }
}

stk_status stk_cuda_dnn_build(cuda_dnn *dnn, const cuda_conv_shape *shape, bool plain,
                              const cuda_dnn_offer *offer, cuda_dnn_plan **plan, stk_error *err) {
    cuda_dnn_plan *made = stk_mem_new(1, sizeof *made);
    *plan = NULL;
    if (made == NULL) {
        return STK_FAIL_MEMORY(err, "the plans of convolutions");
    }
    stk_cuda_dnn_graph_begin(&made->graph, dnn, shape, plain);
    describe_plan(made, offer);
    finish_plan(made, dnn->device != NULL);
    keep_fitting(dnn, made, plan);
    return STK_OK;
}

stk_status stk_cuda_dnn_write(cuda_dnn *dnn, const cuda_dnn_plan *plan, char **text,
                              stk_error *err) {
    int64_t bytes = 0;
    *text = NULL;
    int status = dnn->api.get(plan->plan, DNN_PLAN_JSON, DNN_TYPE_CHAR, 0, &bytes, NULL);
    if (status != 0) {
        return failed(dnn, status, "keep the plan of a convolution", err);
    }
    char *made = stk_mem_new((size_t)bytes + 1, 1);
    if (made == NULL) {
        return STK_FAIL_MEMORY(err, "the plans of convolutions");
    }
    status = dnn->api.get(plan->plan, DNN_PLAN_JSON, DNN_TYPE_CHAR, bytes, &bytes, made);
    if (status != 0) {
        stk_mem_free(made);
        return failed(dnn, status, "keep the plan of a convolution", err);
    }
    *text = made;
    return STK_OK;
}

stk_status stk_cuda_dnn_read(cuda_dnn *dnn, const char *text, cuda_dnn_plan **plan,
                             stk_error *err) {
    cuda_dnn_plan *made = stk_mem_new(1, sizeof *made);
    *plan = NULL;
    if (made == NULL) {
        return STK_FAIL_MEMORY(err, "the plans of convolutions");
    }
    made->graph.dnn = dnn;
    made->plan = stk_cuda_dnn_new(&made->graph, DNN_PLAN);
    stk_cuda_dnn_set(&made->graph, made->plan, DNN_PLAN_JSON, DNN_TYPE_CHAR, (int64_t)strlen(text),
                     text);
    finish_plan(made, dnn->handle == NULL);
    keep_fitting(dnn, made, plan);
    return STK_OK;
}

void stk_cuda_dnn_bind(cuda_dnn *dnn, cuda_dnn_plan **plan) {
    cuda_dnn_plan *bound = NULL;
    char *text = NULL;
    if (dnn->handle == NULL || dnn->device == NULL ||
        stk_cuda_dnn_write(dnn, *plan, &text, NULL) != STK_OK) {
        return;
    }
    if (stk_cuda_dnn_read(dnn, text, &bound, NULL) == STK_OK && bound != NULL) {
        stk_cuda_dnn_plan_free(*plan);
        *plan = bound;
    }
    stk_mem_free(text);
}

void stk_cuda_dnn_plan_free(cuda_dnn_plan *plan) {
    if (plan != NULL) {
        stk_cuda_dnn_graph_end(&plan->graph);
        stk_mem_free(plan);
    }
}

stk_status stk_cuda_dnn_run(cuda_dnn *dnn, const cuda_dnn_plan *plan, const cuda_conv_call *call,
                            bool plain, stk_error *err) {
    int64_t ids[9] = {DNN_ID_X, DNN_ID_W, DNN_ID_Y};
    cuda_pointer pointers[9] = {call->x, call->w, call->y};
    int64_t count = 3;
    if (!plain && call->shape->bias) {
        ids[count] = DNN_ID_BIAS;
        pointers[count++] = call->shape->type == CUDA_TYPE_F32 ? call->bias : cuda_dnn_bias(call);
    }
    if (!plain && call->shape->added) {
        ids[count] = DNN_ID_ADDED;
        pointers[count++] = call->added;
    }
    if (!plain && call->shape->stats) {
        ids[count] = DNN_ID_SUM;
        pointers[count++] = call->stats;
        ids[count] = DNN_ID_SQUARES;
        pointers[count++] = call->stats + (size_t)call->shape->filters * sizeof(float);
    }
    if (call->shape->in_norm) {
        ids[count] = DNN_ID_SCALE;
        pointers[count++] = call->in_norm;
        ids[count] = DNN_ID_SHIFT;
        pointers[count++] =
            call->in_norm + (size_t)call->shape->channels * cuda_type_bytes(call->shape->type);
    }
    cuda_dnn_graph pack = {.dnn = dnn};
    cuda_dnn_descriptor made = stk_cuda_dnn_new(&pack, DNN_PACK);
    stk_cuda_dnn_set(&pack, made, DNN_PACK_IDS, DNN_TYPE_INT64, count, ids);
    stk_cuda_dnn_set(&pack, made, DNN_PACK_POINTERS, DNN_TYPE_POINTER, count, pointers);
    stk_cuda_dnn_set(&pack, made, DNN_PACK_WORKSPACE, DNN_TYPE_POINTER, 1, &call->workspace);
    stk_cuda_dnn_finish(&pack, made);
    int status = pack.status == 0 ? dnn->api.execute(dnn->handle, plan->plan, made) : pack.status;
    stk_cuda_dnn_graph_end(&pack);
    return status == 0 ? STK_OK : failed(dnn, status, "run a convolution", err);
}
