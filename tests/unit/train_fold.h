/*
 * train_fold.h - a fold on a handful of pictures, for the tests of the training loop.
 *
 * It runs on the CPU, or on a backend whose steps and answers are written down in `script`, so that
 * every turn of the loop can be forced. Its steps end `lag` steps later, as a GPU's do. What
 * happens is written into script.story, a letter each: p the pace was asked, s a step, S it was
 * told, v an inference, E an epoch was told, C and c a checkpoint of the best and of other weights.
 */
#ifndef STK_TESTS_TRAIN_FOLD_H
#define STK_TESTS_TRAIN_FOLD_H

#include "first_values.h"
#include "small_pictures.h"

#include "backend/cpu/device.h"
#include "models/models.h"
#include "train/train.h"

#define SIZE 16
#define TRAIN 16
#define VAL 8

typedef struct step_note {
    size_t count;
    bool keep;
    bool update;
    float lr;
    float scale;
    stk_mix_kind mix;
    stk_update how; /* all zero without an update */
} step_note;

/* What the scripted backend does and has seen. */
static struct {
    step_note steps[256];
    int step_count;
    int fail_step;   /* this step (from 0) fails with STK_ERR_DEVICE; -1: none */
    int fail_infer;  /* this inference (from 0) fails with STK_ERR_MEMORY; -1: none */
    int broken_step; /* this step's loss is NaN; -1: none */
    int lag;         /* so many steps are running when a step returns */
    bool skip[256];  /* these updates are left out */
    float scale;     /* the loss scale that is told; 0: 1 */
    stk_step_output running[STK_STEPS_AHEAD];
    int running_count;
    int infers;
    int wrong[32];    /* per validation: so many samples are answered wrongly */
    int broken_infer; /* this validation (from 0) answers NaN; -1: none */
    char story[4096]; /* see above */
    size_t story_size;
} script;

static inline void tell(char letter) {
    if (script.story_size + 1 < sizeof script.story) {
        script.story[script.story_size++] = letter;
        script.story[script.story_size] = '\0';
    }
}

static inline stk_status scripted_step(stk_exec *exec, const stk_step_input *input,
                                       stk_step_output *output, stk_error *err) {
    (void)exec;
    int number = script.step_count++;
    if (number == script.fail_step) {
        err->status = STK_ERR_DEVICE;
        return STK_ERR_DEVICE;
    }
    if (number < 256) {
        script.steps[number] =
            (step_note){.count = input->count,
                        .keep = input->keep_gradients,
                        .update = input->update != NULL,
                        .lr = input->update != NULL ? input->update->lr : 0,
                        .scale = input->update != NULL ? input->update->grad_scale : 0,
                        .mix = input->mix.kind};
        script.steps[number].how =
            input->update != NULL ? *input->update : (stk_update){.kind = STK_SGD};
    }
    tell('s');
    stk_step_output result = {.loss_sum = number == script.broken_step ? NAN : (double)input->count,
                              .correct = input->count / 2,
                              .skipped = number < 256 && script.skip[number],
                              .loss_scale = script.scale > 0 ? script.scale : 1};
    if (output != NULL) {
        *output = result;
    } else if (script.running_count < STK_STEPS_AHEAD) {
        script.running[script.running_count++] = result;
    } else {
        CHECK_FAIL("too many steps run ahead");
    }
    return STK_OK;
}

static inline stk_status scripted_collect(stk_exec *exec, bool wait, stk_step_output *outputs,
                                          size_t room, size_t *count, stk_error *err) {
    (void)exec;
    (void)err;
    int ended = wait ? script.running_count : script.running_count - script.lag;
    *count = ended > 0 ? (size_t)ended : 0;
    CHECK(*count <= room);
    memcpy(outputs, script.running, *count * sizeof *outputs);
    script.running_count -= (int)*count;
    memmove(script.running, script.running + *count,
            (size_t)script.running_count * sizeof *outputs);
    return STK_OK;
}

/* Validation samples come in order, and sample i is of class i mod PICTURE_CLASSES. */
static inline stk_status scripted_infer(stk_exec *exec, const uint8_t *images,
                                        const float *features, size_t count, float *logits,
                                        stk_error *err) {
    (void)features;
    (void)exec;
    (void)images;
    int validation = script.infers++;
    if (validation == script.fail_infer) {
        err->status = STK_ERR_MEMORY;
        return STK_ERR_MEMORY;
    }
    tell('v');
    for (size_t i = 0; i < count; i++) {
        int label = (int)i % PICTURE_CLASSES;
        bool wrong = validation < 32 && (int)i < script.wrong[validation];
        for (int c = 0; c < PICTURE_CLASSES; c++) {
            bool said = c == (wrong ? (label + 1) % PICTURE_CLASSES : label);
            logits[i * PICTURE_CLASSES + (size_t)c] = validation == script.broken_infer ? NAN
                                                      : said                            ? 3.0f
                                                                                        : 0.0f;
        }
    }
    return STK_OK;
}

typedef struct fold {
    picture_set pictures;
    size_t train[TRAIN + 8];
    size_t val[VAL];
    const stk_backend *backend;
    stk_backend scripted;
    stk_device *device;
    stk_graph *graph;
    stk_state *state;
    stk_train_options options;
    stk_observer observer;
    stk_events events;
    stk_train_config config;
    stk_train_result result;
    /* the pace */
    int64_t total;
    int validate_every;
    int64_t change_at;   /* steps after which the total changes; 0: never */
    int64_t changed;     /* the total after that */
    int64_t stop_at;     /* steps after which the pace says stop; -1: never */
    bool halt_after;     /* validation_must_end answers true after halt_infers */
    int halt_infers;     /* inferences before it does */
    size_t val_seen;     /* what it was told last */
    int fail_checkpoint; /* the checkpoint of this epoch fails; 0: none */
    stk_train_standing last_progress;
    stk_train_standing over_progress; /* when it was last asked for more */
    int64_t more;                     /* the total that is answered then, once; 0: the same */
    /* what was told */
    int epochs;
    stk_event_epoch epoch[64];
    int steps;
    stk_event_step step;
    int bad_train;
    int bad_val;
    int decisions;
    char decision[256]; /* the last: what and why */
} fold;

static picture_set shared;

static inline stk_train_orders pace(void *user, const stk_train_standing *progress) {
    fold *f = user;
    if (progress->over) {
        tell('o');
        f->over_progress = *progress;
        f->total = f->more > 0 ? f->more : f->total;
        f->more = 0;
        return (stk_train_orders){
            .epochs = 9, .total_steps = f->total, .validate_every = f->validate_every};
    }
    tell('p');
    f->last_progress = *progress;
    int64_t total =
        f->change_at > 0 && progress->steps_done >= f->change_at ? f->changed : f->total;
    return (stk_train_orders){
        .epochs = (int)((total + progress->steps_per_epoch - 1) / progress->steps_per_epoch),
        .total_steps = total,
        .validate_every = f->validate_every,
        .stop = f->stop_at >= 0 && progress->steps_done >= f->stop_at};
}

static inline stk_status checkpoint(void *user, const stk_event_epoch *epoch, bool best,
                                    stk_error *err) {
    const fold *f = user;
    tell(best ? 'C' : 'c');
    if (epoch->epoch == f->fail_checkpoint) {
        err->status = STK_ERR_STORAGE;
        return STK_ERR_STORAGE;
    }
    return STK_OK;
}

static inline bool halted(void *user, size_t seen, double seconds) {
    fold *f = user;
    CHECK(seconds >= 0);
    f->val_seen = seen;
    return f->halt_after && script.infers >= f->halt_infers;
}

static inline void on_step(void *user, const stk_event_step *event) {
    fold *f = user;
    tell('S');
    f->steps++;
    f->step = *event;
}

static inline void on_epoch(void *user, const stk_event_epoch *event) {
    fold *f = user;
    tell('E');
    if (f->epochs < 64) {
        f->epoch[f->epochs++] = *event;
    }
}

static inline void on_bad(void *user, const stk_event_bad_image *event) {
    fold *f = user;
    f->bad_train += strcmp(event->split, "train") == 0;
    f->bad_val += strcmp(event->split, "val") == 0;
}

static inline void note_decision(void *user, const stk_event_decision *event) {
    fold *f = user;
    f->decisions++;
    snprintf(f->decision, sizeof f->decision, "%s: %s", event->what, event->why);
}

/* A convolution, ReLU, the average and a linear layer: no batch norm. */
static inline stk_graph *plain_graph(void) {
    stk_error err = {0};
    stk_graph *graph = NULL;
    must(stk_graph_new(&graph, SIZE, PICTURE_CLASSES, &err), &err);
    for (int c = 0; c < 3; c++) {
        graph->mean[c] = 0.5f;
        graph->std[c] = 0.25f;
    }
    int x = stk_graph_conv(graph, stk_graph_input(graph), "conv", 8, 3, 2, 1);
    x = stk_graph_avg_pool(graph, stk_graph_relu(graph, x));
    must(stk_graph_finish(graph, stk_graph_linear(graph, x, "fc", PICTURE_CLASSES), &err), &err);
    return graph;
}

static inline stk_graph *norm_graph_of(int size) {
    stk_error err = {0};
    stk_graph *graph = NULL;
    const stk_model *model = NULL;
    must(stk_model_find("convnet_s", &model, &err), &err);
    must(stk_model_build(model, &(stk_model_config){.img_size = size, .classes = PICTURE_CLASSES},
                         &graph, &err),
         &err);
    return graph;
}

static inline stk_graph *norm_graph(void) {
    return norm_graph_of(SIZE);
}

/* Takes the graph over. The state can do all that any options ask for. */
static inline void open_fold(fold *f, stk_graph *graph, int threads, bool scripted) {
    stk_error err = {0};
    memset(f, 0, sizeof *f);
    memset(&script, 0, sizeof script);
    script.fail_step = script.broken_step = -1;
    script.fail_infer = script.broken_infer = -1;
    if (shared.samples == NULL) {
        shared = make_pictures(check_folder(), TRAIN + VAL);
        write_text(shared.root, "text.jpg", "no picture");
    }
    f->pictures = shared;
    for (size_t i = 0; i < TRAIN; i++) {
        f->train[i] = i;
    }
    for (size_t i = 0; i < VAL; i++) {
        f->val[i] = TRAIN + i;
    }
    stk_device_config device = {.threads = threads};
    f->backend = &stk_cpu_backend;
    f->graph = graph;
    must(f->backend->device_open(&f->device, &device, &err), &err);
    stk_state_config keeps = {.train = true, .optimizer = STK_ADAMW, .ema = true};
    must(f->backend->state_new(&f->state, f->device, graph, &keeps, &err), &err);
    for (int p = 0; p < graph->param_count; p++) {
        float *values = stk_mem_new(graph->params[p].count, sizeof *values);
        first_values(graph, p, 1, values);
        must(f->backend->state_write(f->state, STK_TENSOR_VALUE, p, values, &err), &err);
        stk_mem_free(values);
    }
    must(stk_train_reset_state(f->backend, f->state, graph, &err), &err);
    f->scripted = stk_cpu_backend;
    f->scripted.step = scripted_step;
    f->scripted.collect = scripted_collect;
    f->scripted.infer = scripted_infer;
    f->options = (stk_train_options){.momentum = 0.9,
                                     .nesterov = true,
                                     .beta2 = 0.999,
                                     .accumulate = 1,
                                     .head_lr = STK_AUTO_DOUBLE,
                                     .backbone_lr_scale = 1};
    f->observer = (stk_observer){.user = f,
                                 .step = on_step,
                                 .epoch = on_epoch,
                                 .bad_image = on_bad,
                                 .decision = note_decision};
    stk_events_add(&f->events, &f->observer);
    f->total = 6;
    f->stop_at = -1;
    stk_loader_config data = {
        .store = f->pictures.store,
        .samples = f->pictures.samples,
        .transform = {.size = SIZE, .augment = {.crop_scale = 0.5}, .crop_fraction = 1},
        .sizing = {.workers = 2, .slots = 3},
        .seed = 4};
    f->config = (stk_train_config){
        .backend = scripted ? &f->scripted : f->backend,
        .state = f->state,
        .graph = graph,
        .options = &f->options,
        .lr = 0.1,
        .train_compile = {.batch = 8, .train = true},
        .val_compile = {.batch = VAL},
        .train_data = data,
        .val_data = data,
        .seed = 4,
        .fold = 2,
        .events = &f->events,
        .hooks = {
            .user = f, .pace = pace, .checkpoint = checkpoint, .validation_must_end = halted}};
    f->config.train_data.transform.train = true;
    f->config.train_data.indices = f->train;
    f->config.train_data.count = TRAIN;
    f->config.val_data.indices = f->val;
    f->config.val_data.count = VAL;
}

static inline void close_fold(fold *f) {
    f->backend->state_free(f->state);
    f->backend->device_close(f->device);
    stk_graph_free(f->graph);
}

static inline stk_status run_fold(fold *f) {
    stk_error err = {0};
    f->config.val_compile.ema = f->options.ema > 0;
    return stk_train_fold(&f->config, &f->result, &err);
}

/* All parameters, running statistics included. */
static inline uint64_t hash_tensors(const fold *f, stk_tensor_kind kind) {
    uint64_t hash = HASH_START;
    stk_error err = {0};
    for (int p = 0; p < f->graph->param_count; p++) {
        size_t count = f->graph->params[p].count;
        float *values = stk_mem_new(count, sizeof *values);
        must(f->backend->state_read(f->state, kind, p, values, &err), &err);
        hash = hash_bytes(hash, values, count * sizeof *values);
        stk_mem_free(values);
    }
    return hash;
}

static inline uint64_t hash_weights(const fold *f) {
    return hash_tensors(f, STK_TENSOR_VALUE);
}

static inline double weights_distance(const fold *a, const fold *b) {
    double most = 0;
    stk_error err = {0};
    for (int p = 0; p < a->graph->param_count; p++) {
        size_t count = a->graph->params[p].count;
        float *x = stk_mem_new(count, sizeof *x);
        float *y = stk_mem_new(count, sizeof *y);
        must(a->backend->state_read(a->state, STK_TENSOR_VALUE, p, x, &err), &err);
        must(b->backend->state_read(b->state, STK_TENSOR_VALUE, p, y, &err), &err);
        for (size_t i = 0; i < count; i++) {
            double distance = fabs((double)x[i] - y[i]);
            most = distance > most ? distance : most;
        }
        stk_mem_free(x);
        stk_mem_free(y);
    }
    return most;
}

#endif
