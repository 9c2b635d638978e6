/*
 * test_models.c - the networks' parameters against what timm has, and finding them by name. The
 * list of modules was taken from timm's resnet18.
 */
#include "check.h"

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
        stk_model_build(model, &(stk_model_config){img_size, classes, 0, 0}, &graph, &err) !=
            STK_OK) {
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
    static const char *const names[] = {"convnet_s", "resnet18"};
    for (int m = 0; m < 2; m++) {
        for (int size = 16; size <= 256; size += size < 40 ? 1 : 27) {
            stk_graph *graph = build(names[m], size, 2 + size % 7);
            REQUIRE(graph != NULL);
            CHECK_INT(graph->img_size, size);
            CHECK_INT(stk_shape_count(graph->values[graph->logits].shape), 2 + size % 7);
            CHECK_NEAR(graph->mean[0], 0.485, 1e-6);
            CHECK_NEAR(graph->std[2], 0.225, 1e-6);
            stk_graph_free(graph);
        }
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

static void unknown_models_get_the_nearest_and_the_list(void) {
    static const char *const names[] = {"resnet81",         "ResNet18", "resnet-18",
                                        "resnet81.a1_in1k", "resnet1",  "resnet180"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const stk_model *model = NULL;
        stk_error err = {0};
        CHECK_INT(stk_model_find(names[i], &model, &err), STK_ERR_USAGE);
        CHECK(model == NULL);
        CHECK_CONTAINS(err.message, names[i]);
        CHECK_CONTAINS(err.message, "did you mean resnet18;");
        CHECK_CONTAINS(err.message, "there are convnet_s, resnet18");
    }
    char large[2000];
    memset(large, 'r', sizeof large - 1);
    large[sizeof large - 1] = '\0';
    static const char *const far[] = {"", ".", ".a1_in1k", "vit_base_patch16_224"};
    for (size_t i = 0; i < 5; i++) {
        const stk_model *model = NULL;
        stk_error err = {0};
        CHECK_INT(stk_model_find(i < 4 ? far[i] : large, &model, &err), STK_ERR_USAGE);
        CHECK(strstr(err.message, "did you mean") == NULL);
    }
}

static const check_test tests[] = {
    TEST(resnet18_is_that_of_timm),
    TEST(resnet18_has_the_shapes_of_the_paper),
    TEST(the_last_norm_of_a_block_starts_at_zero),
    TEST(networks_build_at_every_size),
    TEST(convnet_s_is_small),
    TEST(a_tag_is_accepted),
    TEST(unknown_models_get_the_nearest_and_the_list),
};

CHECK_MAIN(tests)
