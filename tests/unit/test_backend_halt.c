/* A step that takes long can be halted between its parts, and then changes no parameter. */
#include <string.h>
#include <time.h>

#include "backend/backends.h"
#include "base/error.h"
#include "base/mem.h"
#include "check.h"
#include "first_values.h"
#include "models/models.h"

#define SIZE_PX 16
#define CLASSES 3
#define BATCH 4
#define STALL_S 0.3

typedef struct halt_after {
    int calls;     /* that are answered with false */
    double next_s; /* that the last call spoke of */
    double most_s; /* and the most of all */
    int stall_in;  /* the call after so many between two parts takes STALL_S; 0: none does */
    int stalls;    /* so many of them one after the other */
} halt_after;

static bool is_halted(void *user, double next_s) {
    halt_after *halt = user;
    CHECK(next_s >= 0 && next_s < 60);
    halt->next_s = next_s;
    halt->most_s = next_s > halt->most_s ? next_s : halt->most_s;
    if (next_s > 0 && halt->stall_in > 0 && --halt->stall_in == 0) {
        nanosleep(&(struct timespec){.tv_nsec = (long)(STALL_S * 1e9)}, NULL);
        halt->stall_in = --halt->stalls > 0;
    }
    bool within = next_s == 0; /* a part: how often that is asked depends on how long it takes */
    return within ? halt->calls <= 0 : halt->calls-- <= 0;
}

typedef struct fixture {
    halt_after halt;
    const stk_backend *backend;
    stk_graph *graph;
    stk_device *device;
    stk_state *state;
    stk_exec *train;
    stk_exec *infer;
    uint8_t images[BATCH * SIZE_PX * SIZE_PX * 3];
    int labels[BATCH];
} fixture;

static bool set_up(fixture *f) {
    stk_backend_choice found;
    const stk_model *model = NULL;
    stk_error err = {0};
    stk_device_config device = {.threads = 1, .halted = is_halted, .user = &f->halt};
    stk_compile_config train = {.batch = BATCH, .train = true};
    stk_compile_config infer = {.batch = BATCH, .train = false};
    memset(f, 0, sizeof *f);
    for (size_t i = 0; i < sizeof f->images; i++) {
        f->images[i] = (uint8_t)(i * 7);
    }
    for (int i = 0; i < BATCH; i++) {
        f->labels[i] = i % CLASSES;
    }
    bool good = stk_backend_find("cpu", &found, &err) == STK_OK;
    f->backend = good ? found.backend : NULL;
    good = good && stk_model_find("convnet_s", &model, &err) == STK_OK &&
           stk_model_build(model, &(stk_model_config){.img_size = SIZE_PX, .classes = CLASSES},
                           &f->graph, &err) == STK_OK &&
           f->backend->device_open(&f->device, &device, &err) == STK_OK &&
           f->backend->state_new(&f->state, f->device, f->graph, &(stk_state_config){.train = true},
                                 &err) == STK_OK &&
           f->backend->compile(&f->train, f->state, &train, &err) == STK_OK &&
           f->backend->compile(&f->infer, f->state, &infer, &err) == STK_OK;
    for (int p = 0; good && p < f->graph->param_count; p++) {
        float *values = stk_mem_new(f->graph->params[p].count, sizeof *values);
        good = values != NULL;
        if (good) {
            first_values(f->graph, p, 1, values);
            good = f->backend->state_write(f->state, STK_TENSOR_VALUE, p, values, &err) == STK_OK;
        }
        stk_mem_free(values);
    }
    CHECK(good);
    return good;
}

static void tear_down(fixture *f) {
    if (f->backend != NULL) {
        f->backend->exec_free(f->infer);
        f->backend->exec_free(f->train);
        f->backend->state_free(f->state);
        f->backend->device_close(f->device);
    }
    stk_graph_free(f->graph);
}

static stk_status step(fixture *f, int calls, bool update, stk_error *err) {
    stk_update sgd = {.lr = 0.1f, .head_lr = 0.1f, .momentum = 0.9f, .grad_scale = 1};
    stk_step_input input = {.images = f->images,
                            .labels = f->labels,
                            .count = BATCH,
                            .mix = {.keep = 1},
                            .update = update ? &sgd : NULL};
    stk_step_output output;
    f->halt.calls = calls;
    return f->backend->step(f->train, &input, &output, err);
}

/* The last layer's bias: what the very first step moves for sure. */
static void read_last(fixture *f, float *values) {
    stk_error err = {0};
    int last = f->graph->param_count - 1;
    CHECK_INT(f->backend->state_read(f->state, STK_TENSOR_VALUE, last, values, &err), STK_OK);
}

static void a_halted_step_moves_no_parameter(void) {
    fixture f;
    if (set_up(&f)) {
        size_t bytes = f.graph->params[f.graph->param_count - 1].count * sizeof(float);
        float *before = stk_mem_new(1, bytes);
        float *after = stk_mem_new(1, bytes);
        read_last(&f, before);
        stk_error none = {0};
        CHECK_INT(step(&f, 1000000, false, &none), STK_OK);
        int parts = 1000000 - f.halt.calls;
        CHECK(parts > 4);
        for (int calls = 0; calls < parts; calls++) {
            stk_error err = {0};
            CHECK_INT(step(&f, calls, true, &err), STK_ERR_STOPPED);
            CHECK_INT(err.status, STK_ERR_STOPPED);
            read_last(&f, after);
            CHECK(memcmp(before, after, bytes) == 0);
        }
        stk_error err = {0};
        CHECK_INT(step(&f, 1000000, true, &err), STK_OK);
        read_last(&f, after);
        CHECK(memcmp(before, after, bytes) != 0);
        stk_mem_free(before);
        stk_mem_free(after);
    }
    tear_down(&f);
}

/* Which part that was does not matter, nor whether it was in the first step, nor that there were
 * two: the next one is not thought to take as long. */
static void a_part_that_was_held_up_tells_nothing(void) {
    for (int before = 0; before < 6; before++) {
        fixture f;
        stk_error err = {0};
        if (set_up(&f)) {
            for (int i = 0; i < before / 2 + 3; i++) {
                f.halt.stall_in = i == before / 2 ? 5 : 0;
                f.halt.stalls = 1 + before % 2;
                CHECK_INT(step(&f, 1000000, true, &err), STK_OK);
                CHECK_INT(f.halt.stall_in, 0);
            }
            CHECK(f.halt.most_s > 0 && f.halt.most_s < STALL_S);
        }
        tear_down(&f);
    }
}

static void a_halted_inference_writes_no_logits(void) {
    fixture f;
    if (set_up(&f)) {
        float logits[BATCH * CLASSES];
        stk_error err = {0};
        memset(logits, 0x55, sizeof logits);
        float untouched = logits[0];
        f.halt.calls = 2;
        CHECK_INT(f.backend->infer(f.infer, f.images, NULL, BATCH, logits, &err), STK_ERR_STOPPED);
        CHECK(logits[0] == untouched);
        stk_error_clear(&err);
        f.halt.calls = 1000000;
        CHECK_INT(f.backend->infer(f.infer, f.images, NULL, BATCH, logits, &err), STK_OK);
        CHECK(logits[0] != untouched);
        CHECK(f.halt.next_s == 0); /* all is computed: nothing is left that needs time */
    }
    tear_down(&f);
}

static bool is_over(void *user) {
    halt_after *halt = user;
    return halt->calls-- <= 0;
}

/* A large model has many: they are drawn, and given up, in parts. */
static void first_weights_can_be_given_up(void) {
    fixture f;
    if (set_up(&f)) {
        int last = f.graph->param_count - 2; /* the head's weights */
        size_t bytes = f.graph->params[last].count * sizeof(float);
        float *before = stk_mem_new(1, bytes);
        float *after = stk_mem_new(1, bytes);
        stk_error err = {0};
        CHECK_INT(f.backend->state_read(f.state, STK_TENSOR_VALUE, last, before, &err), STK_OK);
        halt_after halt = {.calls = 0};
        CHECK_INT(
            stk_state_first_weights_unless(f.backend, f.state, f.graph, 9, is_over, &halt, &err),
            STK_ERR_STOPPED);
        CHECK_INT(err.status, STK_ERR_STOPPED);
        stk_error_clear(&err);
        CHECK_INT(f.backend->state_read(f.state, STK_TENSOR_VALUE, last, after, &err), STK_OK);
        CHECK(memcmp(before, after, bytes) == 0);
        halt.calls = 1000000;
        CHECK_INT(
            stk_state_first_weights_unless(f.backend, f.state, f.graph, 9, is_over, &halt, &err),
            STK_OK);
        CHECK_INT(f.backend->state_read(f.state, STK_TENSOR_VALUE, last, after, &err), STK_OK);
        CHECK(memcmp(before, after, bytes) != 0);
        stk_mem_free(before);
        stk_mem_free(after);
    }
    tear_down(&f);
}

/* Between layers it is asked with the time that the last ones took. */
static bool is_within_a_layer(void *user, double next_s) {
    const bool *on = user;
    return *on && !(next_s > 0);
}

/* A layer of many pictures takes long, the first one of a training, too. */
static void a_step_is_halted_within_a_layer(void) {
    static uint8_t images[64 * 96 * 96 * 3];
    static int labels[64];
    const stk_model *model = NULL;
    stk_backend_choice found;
    stk_graph *graph = NULL;
    stk_device *device = NULL;
    stk_state *state = NULL;
    stk_exec *exec = NULL;
    stk_error err = {0};
    bool on = true;
    stk_device_config config = {.threads = 2, .halted = is_within_a_layer, .user = &on};
    stk_compile_config train = {.batch = 64, .train = true};
    REQUIRE_OK(stk_backend_find("cpu", &found, &err), &err);
    REQUIRE_OK(stk_model_find("resnet18", &model, &err), &err);
    REQUIRE_OK(stk_model_build(model, &(stk_model_config){.img_size = 96, .classes = CLASSES},
                               &graph, &err),
               &err);
    REQUIRE_OK(found.backend->device_open(&device, &config, &err), &err);
    REQUIRE_OK(
        found.backend->state_new(&state, device, graph, &(stk_state_config){.train = true}, &err),
        &err);
    REQUIRE_OK(found.backend->compile(&exec, state, &train, &err), &err);
    stk_step_input input = {.images = images, .labels = labels, .count = 64, .mix = {.keep = 1}};
    stk_step_output output;
    CHECK_INT(found.backend->step(exec, &input, &output, &err), STK_ERR_STOPPED);
    stk_error_clear(&err);
    float logits[64 * CLASSES];
    on = false; /* and nothing of that is left behind */
    found.backend->exec_free(exec);
    exec = NULL;
    train.train = false;
    REQUIRE_OK(found.backend->compile(&exec, state, &train, &err), &err);
    CHECK_INT(found.backend->infer(exec, images, NULL, 1, logits, &err), STK_OK);
    found.backend->exec_free(exec);
    found.backend->state_free(state);
    found.backend->device_close(device);
    stk_graph_free(graph);
}

static const check_test tests[] = {
    TEST(a_halted_step_moves_no_parameter),    TEST(a_part_that_was_held_up_tells_nothing),
    TEST(a_halted_inference_writes_no_logits), TEST(a_step_is_halted_within_a_layer),
    TEST(first_weights_can_be_given_up),
};

CHECK_MAIN(tests)
