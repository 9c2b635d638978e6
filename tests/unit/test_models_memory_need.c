/* test_models_memory_need.c - what the plan says is what is allocated, for whole models. */
#include "models/memory_need.h"

#include <malloc.h>

#include "backend/cpu/device.h"
#include "base/mem.h"
#include "check.h"

static const stk_backend *const cpu = &stk_cpu_backend;

/* Bytes that the C library has handed out and not got back. */
static size_t in_use(void) {
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

/* Sanitizers have an allocator of their own, which tells nothing. */
static bool counts(void) {
    size_t before = in_use();
    void *block = stk_mem_raw(1 << 20, 1);
    bool grown = in_use() >= before + (1 << 20);
    stk_mem_free(block);
    return grown;
}

typedef struct trial {
    const char *model;
    int img_size;
    size_t batch;
    stk_memory_need_config recipe;
} trial;

static void check_trial(const trial *t, stk_device *device) {
    const stk_model *model = NULL;
    stk_graph *graph = NULL;
    stk_state *state = NULL;
    stk_exec *exec = NULL;
    stk_memory_need need;
    stk_error err = {0};
    REQUIRE_OK(stk_model_find(t->model, &model, &err), &err);
    REQUIRE_OK(stk_model_memory_need(model, t->batch, t->img_size, STK_PRECISION_FP32, &t->recipe,
                                     cpu, device, &need, &err),
               &err);
    stk_model_config network = {.img_size = t->img_size,
                                .classes = t->recipe.classes,
                                .dropout = STK_MODEL_OWN_RATE,
                                .drop_path = STK_MODEL_OWN_RATE};
    stk_compile_config config = {.batch = t->batch,
                                 .train = !t->recipe.infer,
                                 .frozen = t->recipe.frozen,
                                 .plain = t->recipe.plain};
    REQUIRE_OK(stk_model_build(model, &network, &graph, &err), &err);
    size_t before = in_use();
    REQUIRE_OK(cpu->state_new(&state, device, graph, &t->recipe.state, &err), &err);
    size_t with_state = in_use();
    REQUIRE_OK(cpu->compile(&exec, state, &config, &err), &err);
    size_t with_exec = in_use();
    CHECK_INT(need.bytes, need.exec_bytes + need.state_bytes);
    CHECK_INT(need.exec_bytes, cpu->exec_bytes(exec));
    /* The library adds a header and a rounding to each block, and the plan itself has some lists.
     */
    if (counts()) {
        CHECK(with_state - before >= need.state_bytes);
        CHECK(with_state - before < need.state_bytes + 65536);
        CHECK(with_exec - with_state >= need.exec_bytes);
        CHECK(with_exec - with_state < need.exec_bytes + (1 << 20));
    }
    cpu->exec_free(exec);
    cpu->state_free(state);
    stk_graph_free(graph);
}

static void what_is_said_is_allocated(void) {
    static const trial trials[] = {
        {"resnet18", 64, 4, {.classes = 10, .state = {.train = true}}},
        {"resnet18", 96, 7, {.classes = 1000, .state = {.train = true, .optimizer = STK_ADAMW}}},
        {"resnet18", 64, 9, {.classes = 10, .state = {.train = true, .ema = true}}},
        {"resnet18", 64, 4, {.classes = 10, .state = {.train = true}, .frozen = true}},
        {"resnet18", 64, 4, {.classes = 10, .state = {.train = true}, .plain = true}},
        {"resnet18", 128, 3, {.classes = 10, .infer = true}},
        {"convnet_s", 64, 33, {.classes = 6, .state = {.train = true}}},
        {"resnet50", 64, 2, {.classes = 10, .state = {.train = true}}},
        {"cifar_resnet20", 32, 16, {.classes = 10, .state = {.train = true}}},
        {"efficientnet_b0", 64, 3, {.classes = 10, .state = {.train = true}}},
        {"efficientnet_b0", 64, 3, {.classes = 10, .infer = true}},
        {"efficientnet_b0", 64, 2, {.classes = 10, .state = {.train = true}, .plain = true}},
        {"tf_efficientnet_b0", 64, 2, {.classes = 10, .state = {.train = true, .ema = true}}},
        {"tf_efficientnet_lite0", 96, 2, {.classes = 10, .state = {.train = true}}},
        {"mobilenetv2_100", 64, 5, {.classes = 10, .state = {.train = true}, .frozen = true}},
    };
    stk_error err = {0};
    for (int threads = 1; threads < 4; threads++) {
        stk_device *device = NULL;
        stk_device_config config = {.threads = threads};
        REQUIRE_OK(cpu->device_open(&device, &config, &err), &err);
        for (size_t i = 0; i < sizeof trials / sizeof *trials; i++) {
            check_trial(&trials[i], device);
        }
        cpu->device_close(device);
    }
}

static void mistakes_are_told(void) {
    const stk_model *model = NULL;
    stk_device *device = NULL;
    stk_memory_need need;
    stk_memory_need_config recipe = {.classes = 10, .state = {.train = true}};
    stk_error err = {0};
    stk_device_config config = {.threads = 1};
    REQUIRE_OK(stk_model_find("resnet18", &model, &err), &err);
    REQUIRE_OK(cpu->device_open(&device, &config, &err), &err);
    CHECK_INT(
        stk_model_memory_need(model, 4, 0, STK_PRECISION_AUTO, &recipe, cpu, device, &need, &err),
        STK_ERR_USAGE);
    CHECK_CONTAINS(err.message, "--img-size");
    cpu->device_close(device);
}

static const check_test tests[] = {
    TEST(what_is_said_is_allocated),
    TEST(mistakes_are_told),
};

CHECK_MAIN(tests)
