/*
 * test_cuda_overlap.c - kernels that come while others still run: who may, and that it changes no
 * bit.
 */
#include "cuda_pair.h"

static int build_few(stk_graph *g) {
    int x = stk_graph_conv(g, stk_graph_input(g), "conv1", 8, 3, 1, 1);
    x = stk_graph_relu(g, stk_graph_batch_norm(g, x, "bn1", STK_INIT_ONE));
    int y = stk_graph_conv(g, x, "conv2", 16, 3, 2, 1);
    y = stk_graph_batch_norm(g, y, "bn2", STK_INIT_ONE);
    int z = stk_graph_conv(g, x, "short", 16, 1, 2, 0);
    z = stk_graph_batch_norm(g, z, "bn3", STK_INIT_ONE);
    x = stk_graph_relu(g, stk_graph_add(g, y, z));
    x = stk_graph_conv(g, x, "conv3", 16, 3, 1, 1);
    x = stk_graph_silu(g, stk_graph_batch_norm(g, x, "bn4", STK_INIT_ONE));
    return stk_graph_linear(g, stk_graph_avg_pool(g, x), "fc", CLASSES);
}

/* ---- launches that come early ---- */

static int early_launches;
static int (*launch_with)(const cuda_launch_config *config, cuda_function function,
                          void **arguments, void **extra);

static int count_launch(const cuda_launch_config *config, cuda_function function, void **arguments,
                        void **extra) {
    early_launches++;
    CHECK_INT(config->attribute_count, 1);
    CHECK_INT(config->attributes[0].kind, CUDA_LAUNCH_EARLY);
    CHECK_INT(config->attributes[0].value.number, 1);
    return launch_with(config, function, arguments, extra);
}

/* Parameters after some steps; freed with stk_mem_free(). NULL: the test is skipped. */
static float *train_some(cuda_early early, int *launches, size_t *count) {
    static const stk_update sgd = {
        .kind = STK_SGD, .lr = 0.1f, .head_lr = 0.3f, .momentum = 0.9f, .grad_scale = 1};
    pair_wish wish = {.batch = 6, .precision = STK_PRECISION_FP16, .deterministic = true};
    pair p;
    stk_graph *graph = pair_graph(build_few, 12);
    if (!pair_open(&p, graph, &wish)) {
        stk_graph_free(graph);
        return NULL;
    }
    const pair_side *gpu = &p.sides[PAIR_GPU];
    launch_with = gpu->device->libraries.driver.launch_with;
    gpu->device->libraries.driver.launch_with = count_launch;
    gpu->device->early = early;
    early_launches = 0;
    for (int i = 0; i < 3; i++) {
        stk_step_input in = pair_input(&p);
        stk_step_output out;
        in.update = &sgd;
        in.step += (uint64_t)i;
        CHECK(gpu->backend->step(gpu->exec, &in, &out, &p.err) == STK_OK);
    }
    *launches = early_launches;
    *count = graph->param_elements;
    float *values = pair_read(&p, PAIR_GPU, STK_TENSOR_VALUE);
    pair_close(&p);
    stk_graph_free(graph);
    return values;
}

static void early_launches_change_no_bit(void) {
    float *values[CUDA_EARLY_ANY + 1] = {NULL};
    int launches[CUDA_EARLY_ANY + 1];
    size_t count = 0;
    for (int early = CUDA_EARLY_NEVER; early <= CUDA_EARLY_ANY; early++) {
        values[early] = train_some((cuda_early)early, &launches[early], &count);
        if (values[early] == NULL) {
            return;
        }
        CHECK(memcmp(values[0], values[early], count * sizeof **values) == 0);
    }
    CHECK_INT(launches[CUDA_EARLY_NEVER], 0);
    CHECK(launches[CUDA_EARLY_OWN] > 0);
    CHECK(launches[CUDA_EARLY_ANY] > launches[CUDA_EARLY_OWN]);
    for (int early = CUDA_EARLY_NEVER; early <= CUDA_EARLY_ANY; early++) {
        stk_mem_free(values[early]);
    }
}

static const check_test tests[] = {
    TEST(early_launches_change_no_bit),
};

CHECK_MAIN(tests)
