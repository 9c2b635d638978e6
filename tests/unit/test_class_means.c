/* test_class_means.c - class means in a head: directions, the choice of their weight, and the
 * network that gives the inputs of the head. */
#include "check.h"

#include <math.h>
#include <string.h>

#include "backend/cpu/device.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/numbers/rng.h"
#include "models/models.h"
#include "train/class_means.h"

#define CLASSES 4
#define WIDTH 3
#define STRANGER 3

static stk_error error;

static stk_class_means open_means(int stranger) {
    stk_class_means m = {0};
    stk_error_clear(&error);
    if (stk_class_means_open(&m, CLASSES, WIDTH, stranger, &error) != STK_OK) {
        CHECK_FAIL("%s", error.message);
        exit(1);
    }
    return m;
}

/* A class without pictures, and that of strangers, has no direction; pictures whose features are
 * not finite do not count. */
static void directions_of_classes(void) {
    static const struct {
        int label;
        float features[WIDTH];
    } pictures[] = {{0, {4, 0, 0}},       {0, {6, 0, 0}},        {1, {0, 5, 0}},
                    {1, {0, NAN, 0}},     {1, {0, INFINITY, 0}}, {STRANGER, {0, 0, 5}},
                    {STRANGER, {0, 5, 0}}};
    stk_class_means m = open_means(STRANGER);
    for (size_t i = 0; i < sizeof pictures / sizeof *pictures; i++) {
        stk_class_means_add(&m, pictures[i].label, pictures[i].features);
    }
    stk_class_means_finish(&m);
    CHECK_INT(m.count, 5);
    CHECK_NEAR(m.centre[0], 2, 1e-6);
    CHECK_NEAR(m.centre[1], 2, 1e-6);
    CHECK_NEAR(m.centre[2], 1, 1e-6);
    /* Class 0: (5, 0, 0) - (2, 2, 1). */
    CHECK_NEAR(m.directions[0], 3 / sqrt(14), 1e-6);
    CHECK_NEAR(m.directions[1], -2 / sqrt(14), 1e-6);
    CHECK_NEAR(m.directions[2], -1 / sqrt(14), 1e-6);
    for (size_t k = 2 * WIDTH; k < (size_t)CLASSES * WIDTH; k++) {
        CHECK_NEAR(m.directions[k], 0, 0);
    }
    stk_class_means_free(&m);
}

static void nothing_was_added(void) {
    stk_class_means m = open_means(-1);
    float weights[CLASSES * WIDTH] = {0};
    float bias[CLASSES] = {0};
    stk_class_means_finish(&m);
    CHECK_NEAR(stk_class_means_scale(&m, weights), 1, 0);
    stk_class_means_join(&m, 3, weights, bias);
    for (size_t c = 0; c < CLASSES; c++) {
        CHECK_NEAR(bias[c], 0, 0);
    }
    stk_class_means_free(&m);
}

/* The joined head says the sum of both scores. */
static void a_joined_head_is_the_sum(void) {
    stk_rng rng = stk_rng_make(3, (stk_rng_purpose)0, 0, 0);
    stk_class_means m = open_means(-1);
    float weights[CLASSES * WIDTH];
    float bias[CLASSES];
    for (int i = 0; i < 40; i++) {
        float features[WIDTH];
        for (int k = 0; k < WIDTH; k++) {
            features[k] = (float)(stk_rng_normal(&rng) + (k == i % CLASSES ? 2 : 0));
        }
        stk_class_means_add(&m, i % CLASSES, features);
    }
    stk_class_means_finish(&m);
    for (int k = 0; k < CLASSES * WIDTH; k++) {
        weights[k] = (float)stk_rng_normal(&rng);
    }
    for (int c = 0; c < CLASSES; c++) {
        bias[c] = (float)c;
    }
    static const float seen[WIDTH] = {1, -2, 0.5F};
    float plain[CLASSES];
    for (int c = 0; c < CLASSES; c++) {
        plain[c] = bias[c];
        for (int k = 0; k < WIDTH; k++) {
            plain[c] += weights[c * WIDTH + k] * seen[k];
        }
    }
    const stk_metrics_config rated = {
        .task = STK_TASK_SINGLE, .outputs = CLASSES, .capacity = 1, .metric = STK_METRIC_ACC1};
    stk_means_trial t;
    REQUIRE_OK(stk_means_trial_open(&t, &rated, &error), &error);
    stk_means_trial_add(&t, &m, 0, plain, seen);
    stk_means_trial_add(&t, &m, 0, plain, seen); /* there is no room */
    CHECK_INT(t.count, 1);
    double factor = 2 * stk_class_means_scale(&m, weights);
    stk_class_means_join(&m, factor, weights, bias);
    for (int c = 0; c < CLASSES; c++) {
        float joined = bias[c];
        for (int k = 0; k < WIDTH; k++) {
            joined += weights[c * WIDTH + k] * seen[k];
        }
        CHECK_NEAR(joined, plain[c] + factor * t.near[c], 1e-4);
    }
    stk_means_trial_free(&t);
    stk_class_means_free(&m);
}

/* Held-out pictures whose plain logits, or whose products, are those of their class with a share of
 * chance. */
static stk_means_trial held_out_of(uint64_t seed, size_t count, double plain_tells,
                                   double near_tells, stk_metric metric) {
    stk_rng rng = stk_rng_make(seed, (stk_rng_purpose)0, 0, 0);
    const stk_metrics_config rated = {
        .task = STK_TASK_SINGLE, .outputs = CLASSES, .capacity = count, .metric = metric};
    stk_means_trial t = {0};
    if (stk_means_trial_open(&t, &rated, &error) != STK_OK) {
        CHECK_FAIL("%s", error.message);
        exit(1);
    }
    for (size_t i = 0; i < count; i++) {
        int label = (int)(i % CLASSES);
        for (int c = 0; c < CLASSES; c++) {
            size_t at = i * CLASSES + (size_t)c;
            t.plain[at] = (float)(stk_rng_normal(&rng) + (c == label ? plain_tells : 0));
            t.near[at] = (float)(stk_rng_normal(&rng) + (c == label ? near_tells : 0));
        }
        t.labels[i] = label;
        t.count++;
    }
    return t;
}

static stk_means_trial held_out(size_t count, double plain_tells, double near_tells,
                                stk_metric metric) {
    return held_out_of(5, count, plain_tells, near_tells, metric);
}

/* Percent of the pictures that are right with this weight of the means. */
static double rate(const stk_means_trial *t, double weight) {
    int right = 0;
    for (size_t i = 0; i < t->count; i++) {
        int best = 0;
        double scores[CLASSES];
        for (int c = 0; c < CLASSES; c++) {
            size_t at = i * CLASSES + (size_t)c;
            scores[c] = t->plain[at] + weight * t->near[at];
            best = scores[c] > scores[best] ? c : best;
        }
        right += best == t->labels[i];
    }
    return 100.0 * right / (double)t->count;
}

static stk_means_choice choose(const stk_means_trial *t) {
    const stk_calibrate_config config = {.metric = t->rated.metric, .stranger = -1};
    stk_means_choice choice = {0};
    if (stk_means_trial_choose(t, 1, &config, &choice, &error) != STK_OK) {
        CHECK_FAIL("%s", error.message);
        exit(1);
    }
    return choice;
}

static void means_join_where_they_help(void) {
    static const stk_metric metrics[] = {STK_METRIC_ACC1, STK_METRIC_MAPK, STK_METRIC_LOGLOSS,
                                         STK_METRIC_MACRO_F1, STK_METRIC_ERROR};
    for (size_t i = 0; i < sizeof metrics / sizeof *metrics; i++) {
        bool loss = stk_metric_is_loss(metrics[i]);
        stk_means_trial t = held_out(400, 1, 2, metrics[i]);
        stk_means_choice choice = choose(&t);
        CHECK(choice.weight > 0);
        CHECK(loss ? choice.best < choice.plain : choice.best > choice.plain);
        CHECK(choice.calibration.temperature > 0);
        stk_calibration_free(&choice.calibration);
        stk_means_trial_free(&t);
        t = held_out(400, 2, 0, metrics[i]); /* they say nothing */
        choice = choose(&t);
        CHECK_NEAR(choice.weight, 0, 0);
        CHECK(choice.calibration.rule.numbers == NULL);
        stk_means_trial_free(&t);
    }
}

/* The best of seven weights is partly chance: its own pictures rate it higher than others do. */
static void gains_are_of_pictures_that_have_not_chosen(void) {
    double gains = 0;
    double best = 0;
    int joined = 0;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        stk_means_trial t = held_out_of(seed, 80, 1.5, 1, STK_METRIC_ACC1);
        stk_means_choice choice = {0};
        REQUIRE_OK(stk_means_trial_choose(&t, 1, NULL, &choice, &error), &error);
        if (choice.weight > 0) {
            double plain = rate(&t, 0);
            CHECK_NEAR(choice.plain, plain, 1e-9);
            CHECK_NEAR(choice.calibration.means, choice.weight, 0);
            CHECK(choice.calibration.means_gain > 0);
            gains += choice.calibration.means_gain;
            best += rate(&t, choice.weight) - plain;
            joined++;
        }
        stk_calibration_free(&choice.calibration);
        stk_means_trial_free(&t);
    }
    CHECK(joined > 20);
    CHECK(gains < best - joined * 0.5); /* percent */
}

/* Nothing is fitted to the head that the means join. */
static void means_join_without_a_calibration(void) {
    static const stk_metric metrics[] = {STK_METRIC_ACC1, STK_METRIC_LOGLOSS, STK_METRIC_MACRO_F1};
    for (size_t i = 0; i < sizeof metrics / sizeof *metrics; i++) {
        stk_means_choice choice = {0};
        stk_means_trial t = held_out(400, 1, 2, metrics[i]);
        REQUIRE_OK(stk_means_trial_choose(&t, 1, NULL, &choice, &error), &error);
        CHECK(choice.weight > 0 && choice.calibration.rule.numbers == NULL);
        CHECK_NEAR(choice.calibration.temperature, 0, 0);
        CHECK_NEAR(choice.calibration.means_gain, choice.best - choice.plain, 0);
        stk_means_trial_free(&t);
    }
}

/* What a few pictures gain may be chance. */
static void few_pictures_choose_nothing(void) {
    stk_means_trial t = held_out(400, 1.5, 0.4, STK_METRIC_ACC1);
    t.count = 4;
    stk_means_choice choice = choose(&t);
    CHECK_NEAR(choice.weight, 0, 0);
    stk_means_trial_free(&t);
}

static void trials_fit_into_memory_and_time(void) {
    CHECK(stk_means_trial_most(5000, 1280) >= 1000);
    CHECK(stk_means_trial_most(65000, 2048) * 65000 * 2048 <= (size_t)10000000000);
    CHECK(stk_means_trial_most(2, 8) * 2 * 2 * sizeof(float) <= (size_t)256 << 20);
}

static void without_memory(void) {
    stk_means_trial t = held_out(40, 1, 2, STK_METRIC_MACRO_F1);
    const stk_calibrate_config config = {.metric = STK_METRIC_MACRO_F1, .stranger = -1};
    stk_status status = STK_ERR_MEMORY;
    for (int n = 0; status == STK_ERR_MEMORY && n < 2000; n++) {
        stk_class_means m;
        stk_means_choice choice = {0};
        stk_mem_fail_after(n);
        status = stk_class_means_open(&m, CLASSES, WIDTH, -1, NULL);
        if (status == STK_OK) {
            stk_class_means_free(&m);
            status = stk_means_trial_choose(&t, 1, &config, &choice, NULL);
            stk_calibration_free(&choice.calibration);
        }
        stk_mem_fail_after(-1);
    }
    CHECK_INT(status, STK_OK);
    stk_means_trial_free(&t);
}

/* ---- the network that gives the inputs of the head ---- */

/* Any network gives the same outputs, and after them what its head makes them of. */
static void embedding_networks_agree(void) {
    static const char *const names[] = {"convnet_s", "resnet18", "cifar_resnet20",
                                        "mobilenetv2_100"};
    const stk_backend *cpu = &stk_cpu_backend;
    const stk_device_config config = {.threads = 1};
    stk_device *device = NULL;
    stk_error_clear(&error);
    REQUIRE_OK(cpu->device_open(&device, &config, &error), &error);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        enum { SIZE = 32, COUNT = 2, MOST = CLASSES + 2048 };
        static uint8_t images[COUNT * SIZE * SIZE * 3];
        static float plain[COUNT * CLASSES];
        static float both[COUNT * MOST];
        static float weights[CLASSES * 2048];
        float bias[CLASSES];
        stk_model_config how = {.img_size = SIZE,
                                .classes = CLASSES,
                                .dropout = STK_MODEL_OWN_RATE,
                                .drop_path = STK_MODEL_OWN_RATE};
        stk_graph *graphs[2] = {NULL};
        stk_exec *execs[2] = {NULL};
        stk_state *state = NULL;
        const stk_model *model = NULL;
        const stk_state_config kept = {.train = false};
        REQUIRE_OK(stk_model_find(names[i], &model, &error), &error);
        REQUIRE_OK(stk_model_build(model, &how, &graphs[0], &error), &error);
        how.embeds = true;
        REQUIRE_OK(stk_model_build(model, &how, &graphs[1], &error), &error);
        CHECK_INT(stk_graph_answers(graphs[0]), CLASSES);
        size_t width = (size_t)graphs[1]->embedded;
        REQUIRE(width > 0 && width <= 2048 && stk_graph_answers(graphs[1]) == CLASSES + width);
        REQUIRE_OK(cpu->state_new(&state, device, graphs[0], &kept, &error), &error);
        REQUIRE_OK(stk_state_first_weights(cpu, state, graphs[0], 1, &error), &error);
        for (size_t k = 0; k < sizeof images; k++) {
            images[k] = (uint8_t)(k * 37 % 251);
        }
        for (int g = 0; g < 2; g++) {
            const stk_compile_config compiled = {.graph = graphs[g], .batch = COUNT};
            REQUIRE_OK(cpu->compile(&execs[g], state, &compiled, &error), &error);
            REQUIRE_OK(cpu->infer(execs[g], images, NULL, COUNT, g == 0 ? plain : both, &error),
                       &error);
        }
        const stk_node *head = &graphs[0]->nodes[graphs[0]->values[graphs[0]->logits].producer];
        REQUIRE_OK(cpu->state_read(state, STK_TENSOR_VALUE, head->params[0], weights, &error),
                   &error);
        REQUIRE_OK(cpu->state_read(state, STK_TENSOR_VALUE, head->params[1], bias, &error), &error);
        for (size_t s = 0; s < COUNT; s++) {
            const float *own = both + s * (CLASSES + width);
            for (size_t c = 0; c < CLASSES; c++) {
                double again = bias[c];
                for (size_t k = 0; k < width; k++) {
                    again += (double)weights[c * width + k] * own[CLASSES + k];
                }
                CHECK_NEAR(own[c], plain[s * CLASSES + c], 1e-5);
                CHECK_NEAR(own[c], again, 1e-3 * (1 + fabs(again)));
            }
        }
        for (int g = 0; g < 2; g++) {
            cpu->exec_free(execs[g]);
        }
        cpu->state_free(state);
        stk_graph_free(graphs[0]);
        stk_graph_free(graphs[1]);
    }
    cpu->device_close(device);
}

static const check_test tests[] = {
    TEST(directions_of_classes),
    TEST(nothing_was_added),
    TEST(a_joined_head_is_the_sum),
    TEST(means_join_where_they_help),
    TEST(gains_are_of_pictures_that_have_not_chosen),
    TEST(means_join_without_a_calibration),
    TEST(few_pictures_choose_nothing),
    TEST(trials_fit_into_memory_and_time),
    TEST(without_memory),
    TEST(embedding_networks_agree),
};

CHECK_MAIN(tests)
