/*
 * test_models.c - the networks' parameters against what timm has, finding them by name, and what
 * they drop in training. The list of modules was taken from timm's resnet18; all other models are
 * compared in test_models_golden.c.
 */
#include "check.h"
#include "first_values.h"

#include "backend/cpu/device.h"
#include "base/mem.h"
#include "models/models.h"

typedef struct module {
    const char *conv;
    const char *norm;
    int out;
    int in;
    int kernel;
} module;

static const module resnet18_modules[] = {
    {"conv1", "bn1", 64, 3, 7},
    {"layer1.0.conv1", "layer1.0.bn1", 64, 64, 3},
    {"layer1.0.conv2", "layer1.0.bn2", 64, 64, 3},
    {"layer1.1.conv1", "layer1.1.bn1", 64, 64, 3},
    {"layer1.1.conv2", "layer1.1.bn2", 64, 64, 3},
    {"layer2.0.conv1", "layer2.0.bn1", 128, 64, 3},
    {"layer2.0.conv2", "layer2.0.bn2", 128, 128, 3},
    {"layer2.0.downsample.0", "layer2.0.downsample.1", 128, 64, 1},
    {"layer2.1.conv1", "layer2.1.bn1", 128, 128, 3},
    {"layer2.1.conv2", "layer2.1.bn2", 128, 128, 3},
    {"layer3.0.conv1", "layer3.0.bn1", 256, 128, 3},
    {"layer3.0.conv2", "layer3.0.bn2", 256, 256, 3},
    {"layer3.0.downsample.0", "layer3.0.downsample.1", 256, 128, 1},
    {"layer3.1.conv1", "layer3.1.bn1", 256, 256, 3},
    {"layer3.1.conv2", "layer3.1.bn2", 256, 256, 3},
    {"layer4.0.conv1", "layer4.0.bn1", 512, 256, 3},
    {"layer4.0.conv2", "layer4.0.bn2", 512, 512, 3},
    {"layer4.0.downsample.0", "layer4.0.downsample.1", 512, 256, 1},
    {"layer4.1.conv1", "layer4.1.bn1", 512, 512, 3},
    {"layer4.1.conv2", "layer4.1.bn2", 512, 512, 3},
};
#define MODULES (sizeof resnet18_modules / sizeof *resnet18_modules)

static stk_graph *build(const char *name, int img_size, int classes) {
    const stk_model *model = NULL;
    stk_graph *graph = NULL;
    stk_error err = {0};
    if (stk_model_find(name, &model, &err) != STK_OK ||
        stk_model_build(model, &(stk_model_config){.img_size = img_size, .classes = classes},
                        &graph, &err) != STK_OK) {
        CHECK_FAIL("%s at %d px: %s", name, img_size, err.message);
        return NULL;
    }
    return graph;
}

static const stk_param *find(const stk_graph *graph, const char *module_name, const char *part) {
    char name[128];
    snprintf(name, sizeof name, "%s.%s", module_name, part);
    const stk_param *found = NULL;
    for (int p = 0; p < graph->param_count; p++) {
        if (strcmp(graph->params[p].name, name) == 0) {
            if (found != NULL) {
                CHECK_FAIL("%s is there twice", name);
            }
            found = &graph->params[p];
        }
    }
    if (found == NULL) {
        CHECK_FAIL("there is no %s", name);
    }
    return found;
}

static void has(const stk_graph *graph, const char *module_name, const char *part, int rank, int a,
                int b, int c) {
    const stk_param *param = find(graph, module_name, part);
    REQUIRE(param != NULL);
    const int shape[] = {a, b, c, c};
    if (param->rank != rank || memcmp(param->shape, shape, (size_t)rank * sizeof *shape) != 0) {
        CHECK_FAIL("%s has another shape", param->name);
    }
}

static size_t trainable(const stk_graph *graph) {
    size_t count = 0;
    for (int p = 0; p < graph->param_count; p++) {
        count += graph->params[p].trainable ? graph->params[p].count : 0;
    }
    return count;
}

static void resnet18_is_that_of_timm(void) {
    stk_graph *graph = build("resnet18", 224, 1000);
    REQUIRE(graph != NULL);
    for (size_t i = 0; i < MODULES; i++) {
        const module *m = &resnet18_modules[i];
        has(graph, m->conv, "weight", 4, m->out, m->in, m->kernel);
        has(graph, m->norm, "weight", 1, m->out, 0, 0);
        has(graph, m->norm, "bias", 1, m->out, 0, 0);
        has(graph, m->norm, "running_mean", 1, m->out, 0, 0);
        has(graph, m->norm, "running_var", 1, m->out, 0, 0);
    }
    has(graph, "fc", "weight", 2, 1000, 512, 0);
    has(graph, "fc", "bias", 1, 1000, 0, 0);
    /* All of timm's but num_batches_tracked, which says nothing, and nothing more. */
    CHECK_INT(graph->param_count, MODULES * 5 + 2);
    CHECK_INT(trainable(graph), 11689512);
    stk_graph_free(graph);
}

static void resnet18_has_the_shapes_of_the_paper(void) {
    static const int sides[] = {112, 56, 56, 56, 56, 28, 28, 28, 28, 28,
                                14,  14, 14, 14, 14, 7,  7,  7,  7,  7};
    stk_graph *graph = build("resnet18", 224, 10);
    REQUIRE(graph != NULL);
    size_t conv = 0;
    int adds = 0;
    for (int n = 0; n < graph->node_count; n++) {
        const stk_node *node = &graph->nodes[n];
        adds += node->op == STK_OP_ADD;
        if (node->op == STK_OP_CONV) {
            REQUIRE(conv < MODULES);
            CHECK_INT(graph->values[node->output].shape.height, sides[conv]);
            CHECK_INT(graph->values[node->output].shape.channels, resnet18_modules[conv].out);
            conv++;
        }
    }
    CHECK_INT(conv, MODULES);
    CHECK_INT(adds, 8);
    stk_graph_free(graph);
}

/* A block whose last norm starts at zero starts as the identity; all other norms start at one. */
static void the_last_norm_of_a_block_starts_at_zero(void) {
    stk_graph *graph = build("resnet18", 64, 10);
    REQUIRE(graph != NULL);
    for (size_t i = 0; i < MODULES; i++) {
        const char *norm = resnet18_modules[i].norm;
        const stk_param *weight = find(graph, norm, "weight");
        const stk_param *var = find(graph, norm, "running_var");
        REQUIRE(weight != NULL && var != NULL);
        bool last = strstr(norm, ".bn2") != NULL;
        CHECK_INT(weight->init, last ? STK_INIT_ZERO : STK_INIT_ONE);
        CHECK_INT(var->init, STK_INIT_ONE);
        CHECK(weight->trainable && !weight->decay && !var->trainable);
    }
    stk_graph_free(graph);
}

static void networks_build_at_every_size(void) {
    static const char *const names[] = {
        "convnet_s",       "resnet18",           "resnet50",
        "cifar_resnet20",  "efficientnet_b0",    "efficientnet_b3",
        "mobilenetv2_100", "tf_efficientnet_b1", "tf_efficientnet_lite0"};
    for (size_t m = 0; m < sizeof names / sizeof *names; m++) {
        for (int size = 17; size <= 256; size += size < 40 ? 1 : 27) {
            stk_graph *graph = build(names[m], size, 2 + size % 7);
            REQUIRE(graph != NULL);
            CHECK_INT(graph->img_size, size);
            CHECK_INT(stk_shape_count(graph->values[graph->logits].shape), 2 + size % 7);
            stk_graph_free(graph);
        }
    }
}

/* Five halvings need 17 px so that the last one still finds two. */
static void too_small_images_are_told_with_the_least_size(void) {
    static const struct {
        const char *name;
        int least;
    } cases[] = {{"resnet18", 17},        {"resnet152", 17},          {"efficientnet_b7", 17},
                 {"mobilenetv2_100", 17}, {"tf_efficientnet_b0", 17}, {"convnet_s", 9},
                 {"cifar_resnet20", 3}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const stk_model *model = NULL;
        stk_graph *graph = NULL;
        stk_error err = {0};
        char sentence[128];
        REQUIRE_OK(stk_model_find(cases[i].name, &model, &err), &err);
        stk_model_config config = {.img_size = cases[i].least - 1, .classes = 10};
        CHECK_INT(stk_model_build(model, &config, &graph, &err), STK_ERR_USAGE);
        CHECK(graph == NULL);
        snprintf(sentence, sizeof sentence, "--img-size %d: %s needs images of at least %d px",
                 config.img_size, cases[i].name, cases[i].least);
        CHECK_CONTAINS(err.message, sentence);
        graph = build(cases[i].name, cases[i].least, 10);
        REQUIRE(graph != NULL);
        stk_graph_free(graph);
    }
}

static void convnet_s_is_small(void) {
    stk_graph *graph = build("convnet_s", 64, 10);
    REQUIRE(graph != NULL);
    has(graph, "conv1", "weight", 4, 32, 3, 3);
    has(graph, "bn6", "running_var", 1, 256, 0, 0);
    has(graph, "fc", "weight", 2, 10, 256, 0);
    CHECK(trainable(graph) > 500000 && trainable(graph) < 700000);
    stk_graph_free(graph);
}

static void a_tag_is_accepted(void) {
    static const char *const names[] = {"resnet18", "resnet18.a1_in1k", "resnet18.tv_in1k.x",
                                        "resnet18."};
    const stk_model *model = NULL;
    stk_error err = {0};
    for (int i = 0; i < 4; i++) {
        model = NULL;
        REQUIRE_OK(stk_model_find(names[i], &model, &err), &err);
        CHECK_STR(model->name, "resnet18");
    }
    REQUIRE_OK(stk_model_find("convnet_s", &model, &err), &err);
    CHECK_STR(model->name, "convnet_s");
}

/* Rows of their own are for tags whose weights want other means. */
static void a_tag_with_other_means_is_a_row(void) {
    const stk_model *model = NULL;
    stk_error err = {0};
    REQUIRE_OK(stk_model_find("tf_efficientnet_b4.ap_in1k", &model, &err), &err);
    CHECK_NEAR(model->mean[0], 0.5, 1e-6);
    REQUIRE_OK(stk_model_find("tf_efficientnet_b4.ns_jft_in1k", &model, &err), &err);
    CHECK_STR(model->name, "tf_efficientnet_b4");
    CHECK_NEAR(model->mean[0], 0.485, 1e-6);
    REQUIRE_OK(stk_model_find("tf_efficientnet_b4_ns", &model, &err), &err);
    CHECK_NEAR(model->mean[0], 0.485, 1e-6);
}

static void names_are_unique(void) {
    const stk_model *model = NULL;
    for (size_t i = 0; (model = stk_model_at(i)) != NULL; i++) {
        const stk_model *found = NULL;
        stk_error err = {0};
        REQUIRE_OK(stk_model_find(model->name, &found, &err), &err);
        CHECK(found == model);
        CHECK(model->about[0] != '\0' && model->img_size > 0 && model->crop_fraction > 0);
    }
}

static void unknown_models_get_the_nearest(void) {
    static const struct {
        const char *name;
        const char *offer;
    } cases[] = {
        {"resnet81", "; did you mean resnet18"},
        {"ResNet18", "; did you mean resnet18"},
        {"resnet-18", "; did you mean resnet18"},
        {"resnet81.a1_in1k", "; did you mean resnet18"},
        {"resnet180", "; did you mean resnet18"},
        {"efficientnet-b4", "; did you mean efficientnet_b4"},
        {"tf_efficientnet_b4_nss", "; did you mean tf_efficientnet_b4_ns"},
        {"mobilenetv2", "; did you mean mobilenetv2_100?"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const stk_model *model = NULL;
        stk_error err = {0};
        CHECK_INT(stk_model_find(cases[i].name, &model, &err), STK_ERR_USAGE);
        CHECK(model == NULL);
        CHECK_CONTAINS(err.message, cases[i].name);
        CHECK_CONTAINS(err.message, cases[i].offer);
        CHECK(strlen(err.message) < 160);
        CHECK(strstr(err.message, ".ap_in1k") == NULL);
    }
}

static void names_near_to_none_get_the_list(void) {
    char large[2000];
    memset(large, 'r', sizeof large - 1);
    large[sizeof large - 1] = '\0';
    static const char *const far[] = {"", ".", ".a1_in1k", "vit_base_patch16_224"};
    for (size_t i = 0; i < 5; i++) {
        const stk_model *model = NULL;
        stk_error err = {0};
        CHECK_INT(stk_model_find(i < 4 ? far[i] : large, &model, &err), STK_ERR_USAGE);
        CHECK(strstr(err.message, "did you mean") == NULL);
        CHECK(i == 4 || strstr(err.message, "there are convnet_s, resnet18/34") != NULL);
    }
}

/* ---- dropping ---- */

static void rates_are_those_of_the_originals(void) {
    const stk_model *model = NULL;
    stk_graph *graph = NULL;
    stk_error err = {0};
    REQUIRE_OK(stk_model_find("efficientnet_b0", &model, &err), &err);
    stk_model_config config = {.img_size = 64,
                               .classes = 10,
                               .dropout = STK_MODEL_OWN_RATE,
                               .drop_path = STK_MODEL_OWN_RATE};
    REQUIRE_OK(stk_model_build(model, &config, &graph, &err), &err);
    /* The blocks with a shortcut, of 16 counted from 0. */
    static const int blocks[] = {2, 4, 6, 7, 9, 10, 12, 13, 14};
    size_t paths = 0;
    int dropouts = 0;
    for (int n = 0; n < graph->node_count; n++) {
        const stk_node *node = &graph->nodes[n];
        if (node->op == STK_OP_DROP_PATH) {
            REQUIRE(paths < sizeof blocks / sizeof *blocks);
            CHECK_NEAR(node->rate, 0.2 * blocks[paths] / 16, 1e-6);
            paths++;
        } else if (node->op == STK_OP_DROPOUT) {
            CHECK_NEAR(node->rate, 0.2, 1e-6);
            dropouts++;
        }
    }
    CHECK_INT(paths, sizeof blocks / sizeof *blocks);
    CHECK_INT(dropouts, 1);
    stk_graph_free(graph);
}

#define FEATURES 2000
#define SIDE 4

/*
 * A network whose logits are zero whatever is dropped: its classifier's weights are. The gradient
 * of these weights is then the features times what dropping makes of them.
 */
typedef struct dropper {
    stk_graph *graph;
    stk_device *device;
    stk_state *state;
    stk_exec *train;
    int head; /* the classifier's weight: (2, FEATURES) */
    stk_error err;
} dropper;

static void dropper_close(dropper *d) {
    const stk_backend *cpu = &stk_cpu_backend;
    if (d->train != NULL) {
        cpu->exec_free(d->train);
    }
    if (d->state != NULL) {
        cpu->state_free(d->state);
    }
    if (d->device != NULL) {
        cpu->device_close(d->device);
    }
    stk_graph_free(d->graph);
}

static bool dropper_open(dropper *d, double dropout, double drop_path) {
    const stk_backend *cpu = &stk_cpu_backend;
    stk_device_config device = {.threads = 2};
    stk_state_config state = {.train = true};
    stk_compile_config config = {.batch = 1, .train = true};
    float ones[3 * FEATURES]; /* every feature is the sum of the picture's means */
    for (int i = 0; i < 3 * FEATURES; i++) {
        ones[i] = 1;
    }
    *d = (dropper){.head = 1};
    bool good = stk_graph_new(&d->graph, SIDE, 2, &d->err) == STK_OK;
    if (good) {
        stk_graph *g = d->graph;
        int x = stk_graph_conv(g, stk_graph_input(g), "features", FEATURES, 1, 1, 0);
        x = stk_graph_avg_pool(g, stk_graph_drop_path(g, x, drop_path));
        x = stk_graph_linear(g, stk_graph_dropout(g, x, dropout), "head", 2);
        good = stk_graph_finish(g, x, &d->err) == STK_OK &&
               cpu->device_open(&d->device, &device, &d->err) == STK_OK &&
               cpu->state_new(&d->state, d->device, g, &state, &d->err) == STK_OK &&
               cpu->compile(&d->train, d->state, &config, &d->err) == STK_OK;
    }
    good = good && cpu->state_write(d->state, STK_TENSOR_VALUE, 0, ones, &d->err) == STK_OK;
    if (!good) {
        CHECK_FAIL("no network to drop from: %s", d->err.message);
        dropper_close(d);
    }
    return good;
}

/* The gradient of the classifier's first row in one step: FEATURES numbers. */
static bool dropper_step(dropper *d, uint64_t step, float *gradient) {
    const stk_backend *cpu = &stk_cpu_backend;
    uint8_t picture[SIDE * SIDE * 3];
    int label = 0;
    memset(picture, 200, sizeof picture);
    stk_step_input input = {.images = picture,
                            .labels = &label,
                            .count = 1,
                            .mix = {.kind = STK_MIX_NONE, .keep = 1},
                            .seed = 5,
                            .step = step};
    stk_step_output output;
    float both[2 * FEATURES];
    bool good = cpu->step(d->train, &input, &output, &d->err) == STK_OK &&
                cpu->state_read(d->state, STK_TENSOR_GRADIENT, d->head, both, &d->err) == STK_OK;
    memcpy(gradient, both, FEATURES * sizeof *gradient);
    return good;
}

/* The share of gradients that became zero over a number of steps; all others must have grown. */
static double dropped_share(double dropout, double drop_path, int steps) {
    dropper plain;
    dropper d;
    float kept[FEATURES];
    float gradient[FEATURES];
    if (!dropper_open(&plain, 0, 0)) {
        return NAN;
    }
    bool good = dropper_step(&plain, 0, kept);
    dropper_close(&plain);
    if (!good || !dropper_open(&d, dropout, drop_path)) {
        return NAN;
    }
    double grown = 1 / ((1 - dropout) * (1 - drop_path));
    size_t zeros = 0;
    for (int s = 0; s < steps && good; s++) {
        good = dropper_step(&d, (uint64_t)s, gradient);
        for (int i = 0; i < FEATURES; i++) {
            zeros += gradient[i] == 0;
            good = good && kept[i] != 0 &&
                   (gradient[i] == 0 || fabs(gradient[i] / (kept[i] * grown) - 1) < 1e-5);
        }
    }
    CHECK(good);
    dropper_close(&d);
    return (double)zeros / (FEATURES * (double)steps);
}

/* Bounds are four deviations of as many independent draws. */
static void dropping_keeps_the_mean(void) {
    CHECK_NEAR(dropped_share(0.3, 0, 10), 0.3, 4 * sqrt(0.3 * 0.7 / (10 * FEATURES)));
    CHECK_NEAR(dropped_share(0.5, 0, 10), 0.5, 4 * sqrt(0.5 * 0.5 / (10 * FEATURES)));
    /* Stochastic depth takes a sample as a whole: a draw per step. */
    CHECK_NEAR(dropped_share(0, 0.2, 500), 0.2, 4 * sqrt(0.2 * 0.8 / 500));
}

/* Logits of a model at 32 px, with weights that do not depend on its rates. */
static bool infer_with(const char *name, double dropout, double drop_path, float *logits) {
    const stk_backend *cpu = &stk_cpu_backend;
    const stk_model *model = NULL;
    stk_graph *graph = NULL;
    stk_device *device = NULL;
    stk_state *state = NULL;
    stk_exec *exec = NULL;
    stk_error err = {0};
    stk_model_config network = {
        .img_size = 32, .classes = 5, .dropout = dropout, .drop_path = drop_path};
    stk_device_config one = {.threads = 1};
    stk_state_config weights = {.train = false};
    stk_compile_config config = {.batch = 2};
    uint8_t pictures[2 * 32 * 32 * 3];
    for (size_t i = 0; i < sizeof pictures; i++) {
        pictures[i] = (uint8_t)(i * 37 % 251);
    }
    bool good = stk_model_find(name, &model, &err) == STK_OK &&
                stk_model_build(model, &network, &graph, &err) == STK_OK &&
                cpu->device_open(&device, &one, &err) == STK_OK &&
                cpu->state_new(&state, device, graph, &weights, &err) == STK_OK &&
                cpu->compile(&exec, state, &config, &err) == STK_OK;
    for (int p = 0; good && p < graph->param_count; p++) {
        float *values = stk_mem_raw(graph->params[p].count, sizeof *values);
        first_values(graph, p, 1, values);
        good = cpu->state_write(state, STK_TENSOR_VALUE, p, values, &err) == STK_OK;
        stk_mem_free(values);
    }
    good = good && cpu->infer(exec, pictures, NULL, 2, logits, &err) == STK_OK;
    if (exec != NULL) {
        cpu->exec_free(exec);
    }
    if (state != NULL) {
        cpu->state_free(state);
    }
    if (device != NULL) {
        cpu->device_close(device);
    }
    stk_graph_free(graph);
    return good;
}

static void nothing_is_dropped_in_evaluation(void) {
    static const char *const names[] = {"cifar_resnet20", "efficientnet_b0", "convnet_s"};
    for (int i = 0; i < 3; i++) {
        float with[2 * 5] = {0};
        float without[2 * 5] = {0};
        CHECK(infer_with(names[i], 0.5, 0.5, with));
        CHECK(infer_with(names[i], 0, 0, without));
        CHECK_INT(memcmp(with, without, sizeof with), 0);
        CHECK(with[0] != 0);
    }
}

static const check_test tests[] = {
    TEST(resnet18_is_that_of_timm),
    TEST(resnet18_has_the_shapes_of_the_paper),
    TEST(the_last_norm_of_a_block_starts_at_zero),
    TEST(networks_build_at_every_size),
    TEST(too_small_images_are_told_with_the_least_size),
    TEST(convnet_s_is_small),
    TEST(a_tag_is_accepted),
    TEST(a_tag_with_other_means_is_a_row),
    TEST(names_are_unique),
    TEST(unknown_models_get_the_nearest),
    TEST(names_near_to_none_get_the_list),
    TEST(rates_are_those_of_the_originals),
    TEST(dropping_keeps_the_mean),
    TEST(nothing_is_dropped_in_evaluation),
};

CHECK_MAIN(tests)
