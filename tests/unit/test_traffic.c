/* test_traffic.c - the bytes of a step, counted by hand and against published counts. */
#include "check.h"

#include "engine/traffic.h"
#include "models/models.h"

static void whole_networks(void) {
    static const struct {
        const char *model;
        double megabytes;
        double part; /* that it may be off */
    } cases[] = {{"resnet50", 364, 0.03}, {"efficientnet_b4", 549, 0.05}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        stk_error err = {0};
        const stk_model *model = NULL;
        stk_graph *graph = NULL;
        stk_traffic two;
        stk_traffic four;
        stk_traffic infer;
        stk_model_config config = {.img_size = 224,
                                   .classes = 1000,
                                   .dropout = STK_MODEL_OWN_RATE,
                                   .drop_path = STK_MODEL_OWN_RATE};
        REQUIRE_OK(stk_model_find(cases[i].model, &model, &err), &err);
        REQUIRE_OK(stk_model_build(model, &config, &graph, &err), &err);
        REQUIRE_OK(stk_graph_traffic(graph, true, 2, &two, &err), &err);
        REQUIRE_OK(stk_graph_traffic(graph, true, 4, &four, &err), &err);
        REQUIRE_OK(stk_graph_traffic(graph, false, 2, &infer, &err), &err);
        CHECK_NEAR(two.image_bytes * 1e-6, cases[i].megabytes, cases[i].megabytes * cases[i].part);
        CHECK_NEAR(four.image_bytes, 2 * two.image_bytes, 1);
        CHECK(infer.image_bytes < two.image_bytes / 3);
        CHECK_NEAR(two.step_bytes, 26.0 * (double)graph->param_elements, 1);
        CHECK_NEAR(infer.step_bytes, 2.0 * (double)graph->param_elements, 1);
        stk_graph_free(graph);
    }
}

/* 8 x 8 x 3 -> conv 16, norm, ReLU, twice -> conv 16, norm, added to the first, ReLU -> mean ->
 * linear. */
static void a_small_one_by_hand(void) {
    stk_error err = {0};
    stk_graph *graph = NULL;
    stk_traffic traffic;
    REQUIRE_OK(stk_graph_new(&graph, 8, 10, &err), &err);
    int a = stk_graph_conv(graph, stk_graph_input(graph), "a", 16, 3, 1, 1);
    a = stk_graph_relu(graph, stk_graph_batch_norm(graph, a, "an", STK_INIT_ONE));
    int b = stk_graph_conv(graph, a, "b", 16, 3, 1, 1);
    b = stk_graph_relu(graph, stk_graph_batch_norm(graph, b, "bn", STK_INIT_ONE));
    int c = stk_graph_conv(graph, b, "c", 16, 3, 1, 1);
    c = stk_graph_batch_norm(graph, c, "cn", STK_INIT_ONE);
    c = stk_graph_relu(graph, stk_graph_add(graph, c, a));
    int x = stk_graph_linear(graph, stk_graph_avg_pool(graph, c), "fc", 10);
    REQUIRE_OK(stk_graph_finish(graph, x, &err), &err);
    REQUIRE_OK(stk_graph_traffic(graph, true, 4, &traffic, &err), &err);
    double p = 8 * 8 * 3;
    double n = 8 * 8 * 16;
    double expected = p             /* pictures become numbers */
                      + 2 * (p + n) /* the first convolution: nobody wants p's gradient */
                      + 3 * (n + n) + 3 * (n + n) /* the others */
                      + 3 * 8 * n                 /* norms */
                      + 2 * n                     /* what is added, and its gradient */
                      + 3 * n                     /* two gradients meet in front of the second */
                      + 2 * (n + 16)              /* the mean, forward and backward */
                      + 3 * (16.0 + 10);          /* the linear layer */
    CHECK_NEAR(traffic.image_bytes / 4, expected, 50); /* the loss has a few numbers more */
    CHECK(traffic.image_bytes / 4 >= expected);
    CHECK_NEAR(traffic.multiply_adds, n * 27 + 2 * n * 144 + 160, 0);
    stk_graph_free(graph);
}

static const check_test tests[] = {
    TEST(whole_networks),
    TEST(a_small_one_by_hand),
};

CHECK_MAIN(tests)
