/*
 * test_cuda_layout.c - the memory layout is the same whichever variants the device found faster:
 * networks are lowered without a device, and their fusions are decided by dice.
 */
#include "check.h"

#include "backend/cuda/tuning/tuning.h"
#include "backend/cuda/lowering/lower.h"
#include "base/numbers/rng.h"
#include "models/models.h"

#define DRAWS 4
#define ROUNDS 6 /* of decisions: a result may lead to further ones */

typedef struct scene {
    const char *model;
    int size, batch;
    cuda_type type;
    int major; /* of the device's compute capability */
    bool frozen;
} scene;

/* What is lowered, with all that it needs. */
typedef struct lowered {
    stk_graph *graph;
    stk_pieces pieces;
    cuda_parameter_layout layout;
    cuda_tuning_results *results;
    cuda_program program;
} lowered;

/* From a graph on. */
static bool cut(lowered *l, const scene *s, stk_error *err) {
    stk_pieces_config config = {.train = true, .frozen = s->frozen, .fuse = true};
    return stk_pieces_make(&l->pieces, l->graph, &config, err) == STK_OK &&
           stk_cuda_parameter_layout_make(&l->layout, l->graph, s->type, true, err) == STK_OK &&
           stk_cuda_tuning_results_open(&l->results, NULL, err) == STK_OK;
}

static bool begin(lowered *l, const scene *s, stk_error *err) {
    const stk_model *model = NULL;
    stk_model_config config = {.img_size = s->size, .classes = 10, .drop_path = 0.2f};
    memset(l, 0, sizeof *l);
    return stk_model_find(s->model, &model, err) == STK_OK &&
           stk_model_build(model, &config, &l->graph, err) == STK_OK && cut(l, s, err);
}

static void end(lowered *l) {
    stk_cuda_program_free(&l->program);
    stk_cuda_tuning_results_close(l->results);
    stk_cuda_parameter_layout_free(&l->layout);
    stk_pieces_free(&l->pieces);
    stk_graph_free(l->graph);
}

static bool lower(lowered *l, const scene *s, cuda_tuning_results *results, stk_error *err) {
    cuda_ref logits;
    stk_cuda_program_free(&l->program);
    stk_cuda_program_begin(&l->program, s->type, false, 132);
    l->program.major = s->major;
    return stk_cuda_lower(&l->program, &l->pieces, &l->layout, s->batch, results, &logits, err) ==
               STK_OK &&
           stk_cuda_program_lay_out(&l->program, err) == STK_OK;
}

/* By dice, or always fused where there are none. True: something was undecided. */
static bool decide_all(lowered *l, stk_rng *dice) {
    bool some = false;
    for (int i = 0; i < l->program.decision_count; i++) {
        char name[CUDA_RESULT_NAME];
        stk_cuda_decision_name(&l->program.decisions[i], name);
        if (stk_cuda_tuning_result(l->results, name) == CUDA_UNDECIDED) {
            int variant = dice != NULL ? (int)stk_rng_below(dice, CUDA_VARIANTS) : 1;
            stk_cuda_tuning_result_set(l->results, name, variant);
            some = true;
        }
    }
    return some;
}

static void check_layout(const lowered *l, const scene *s, size_t arena_bytes, int counters) {
    if (l->program.arena_bytes != arena_bytes || l->program.counters != counters) {
        CHECK_FAIL("%s, batch %d, type %d, major %d: %zu bytes and %d counters, not %zu and %d",
                   s->model, s->batch, (int)s->type, s->major, l->program.arena_bytes,
                   l->program.counters, arena_bytes, counters);
    }
}

/* Returns how many decisions there were in the end. */
static int throw_dice(const scene *s, uint64_t seed) {
    lowered l;
    stk_error err = {0};
    stk_rng dice = stk_rng_make(seed, STK_RNG_TEST, 0, 0);
    bool good = begin(&l, s, &err) && lower(&l, s, NULL, &err);
    size_t arena_bytes = l.program.arena_bytes;
    int counters = l.program.counters;
    bool more = true;
    for (int round = 0; round < ROUNDS && more && good; round++) {
        good = lower(&l, s, l.results, &err);
        check_layout(&l, s, arena_bytes, counters);
        more = decide_all(&l, &dice);
    }
    if (!good) {
        CHECK_FAIL("%s: %s", s->model, err.message);
    }
    CHECK(!more);
    int decisions = l.program.decision_count;
    end(&l);
    return decisions;
}

static void memory_does_not_depend_on_results(void) {
    static const scene scenes[] = {
        {"resnet50", 224, 256, CUDA_TYPE_F16, 9, false},
        {"resnet50", 224, 256, CUDA_TYPE_F16, 7, false},
        {"resnet50", 97, 7, CUDA_TYPE_BF16, 9, false},
        {"resnet50", 224, 1, CUDA_TYPE_F16, 10, false},
        {"resnet18", 160, 64, CUDA_TYPE_F16, 8, false},
        {"cifar_resnet20", 32, 128, CUDA_TYPE_F16, 9, false},
        {"efficientnet_b4", 380, 128, CUDA_TYPE_F16, 9, false},
        {"tf_efficientnet_lite0", 224, 3, CUDA_TYPE_BF16, 9, false},
        {"mobilenetv2_100", 224, 4096, CUDA_TYPE_F16, 9, false},
        {"convnet_s", 64, 31, CUDA_TYPE_F16, 9, false},
    };
    for (size_t i = 0; i < sizeof scenes / sizeof *scenes; i++) {
        for (uint64_t seed = 0; seed < DRAWS; seed++) {
            CHECK(throw_dice(&scenes[i], seed) > 0);
        }
    }
}

/* A batch that is not full is computed in the memory of a full one: see exec.c. */
static void fewer_samples_need_no_more(void) {
    static const scene scenes[] = {
        {"resnet50", 224, 64, CUDA_TYPE_F16, 9, false},
        {"resnet50", 224, 33, CUDA_TYPE_F32, 8, false},
        {"resnet18", 97, 31, CUDA_TYPE_BF16, 9, true},
        {"cifar_resnet20", 32, 128, CUDA_TYPE_F16, 9, false},
        {"efficientnet_b0", 224, 48, CUDA_TYPE_F16, 9, false},
        {"mobilenetv2_100", 160, 24, CUDA_TYPE_F32, 7, false},
        {"convnet_s", 64, 40, CUDA_TYPE_F16, 9, false},
    };
    for (size_t i = 0; i < sizeof scenes / sizeof *scenes; i++) {
        scene s = scenes[i];
        lowered l;
        stk_error err = {0};
        CHECK(begin(&l, &s, &err) && lower(&l, &s, NULL, &err));
        size_t arena_bytes = l.program.arena_bytes;
        int counters = l.program.counters;
        while (--s.batch > 0) {
            CHECK(lower(&l, &s, NULL, &err));
            /* There are places for twice the counters. */
            if (l.program.arena_bytes > arena_bytes || l.program.counters > 2 * counters) {
                CHECK_FAIL("%s: %d samples need %zu bytes and %d counters, %d need %zu and %d",
                           s.model, s.batch, l.program.arena_bytes, l.program.counters,
                           scenes[i].batch, arena_bytes, counters);
            }
        }
        end(&l);
    }
}

/* Nothing of a frozen network is trained but its head, which no decision is about. */
static void frozen_networks_decide_nothing(void) {
    const scene frozen = {"resnet50", 224, 32, CUDA_TYPE_F16, 9, true};
    CHECK_INT(throw_dice(&frozen, 0), 0);
}

/* Older devices, and smaller ones of today, have less shared memory. */
static void blocks_fit_into_every_device(void) {
    static const char *const models[] = {"resnet50", "efficientnet_b0", "efficientnet_b4",
                                         "efficientnet_b7", "mobilenetv2_100"};
    static const struct {
        int major;
        unsigned most; /* bytes of a block, of the least of them */
    } devices[] = {{7, 64 << 10}, {8, 99 << 10}, {9, 227 << 10}, {12, 99 << 10}};
    for (int i = 0; i < 20; i++) {
        const scene s = {models[i % 5], 224, 64, CUDA_TYPE_F16, devices[i / 5].major, false};
        lowered l;
        stk_error err = {0};
        CHECK(begin(&l, &s, &err) && lower(&l, &s, NULL, &err));
        for (int k = 0; k < l.program.op_count; k++) {
            const cuda_op *op = &l.program.ops[k];
            if (op->kind == CUDA_OP_LAUNCH && op->launch.shared_bytes > devices[i / 5].most) {
                CHECK_FAIL("%s, major %d: %s wants %u bytes", s.model, s.major, op->launch.name,
                           op->launch.shared_bytes);
            }
        }
        end(&l);
    }
}

/*
 * v is read by "early", "c" and the last addition. The convolution "early" stands before the
 * others, but goes backward with "side", which it is added to, and so before "c".
 */
static int three_readers(stk_graph *g) {
    int x = stk_graph_conv(g, stk_graph_input(g), "stem", 128, 3, 1, 1);
    x = stk_graph_relu(g, stk_graph_batch_norm(g, x, "bn0", STK_INIT_ONE));
    int v = stk_graph_conv(g, x, "conv1", 16, 3, 1, 1);
    v = stk_graph_relu(g, stk_graph_batch_norm(g, v, "bn1", STK_INIT_ONE));
    v = stk_graph_batch_norm(g, stk_graph_conv(g, v, "conv2", 128, 3, 1, 1), "bn2", STK_INIT_ONE);
    v = stk_graph_relu(g, stk_graph_add(g, v, x));
    int side = stk_graph_conv(g, x, "side", 128, 1, 1, 0);
    side = stk_graph_batch_norm(g, side, "bn_side", STK_INIT_ONE);
    int early = stk_graph_conv(g, v, "early", 128, 1, 1, 0);
    early = stk_graph_batch_norm(g, early, "bn_early", STK_INIT_ONE);
    int c = stk_graph_conv(g, v, "c", 16, 1, 1, 0);
    c = stk_graph_relu(g, stk_graph_batch_norm(g, c, "bn_c", STK_INIT_ONE));
    int both = stk_graph_relu(g, stk_graph_add(g, side, early));
    c = stk_graph_batch_norm(g, stk_graph_conv(g, c, "d", 128, 1, 1, 0), "bn_d", STK_INIT_ONE);
    c = stk_graph_relu(g, stk_graph_add(g, c, v));
    return stk_graph_linear(g, stk_graph_avg_pool(g, stk_graph_add(g, both, c)), "fc", 10);
}

/* Only the last gradient of a value can take all of it through the ReLU. */
static void gradients_join_when_all_are_there(void) {
    const scene s = {"three readers", 16, 8, CUDA_TYPE_F16, 9, false};
    lowered l = {.graph = NULL};
    stk_error err = {0};
    REQUIRE_OK(stk_graph_new(&l.graph, s.size, 10, &err), &err);
    REQUIRE_OK(stk_graph_finish(l.graph, three_readers(l.graph), &err), &err);
    CHECK(cut(&l, &s, &err));
    int joined = 0;
    for (int round = 0; round < ROUNDS; round++) {
        CHECK(lower(&l, &s, l.results, &err));
        (void)decide_all(&l, NULL);
    }
    for (int i = 0; i < l.program.op_count; i++) {
        const cuda_op *op = &l.program.ops[i];
        joined += op->kind == CUDA_OP_LAUNCH && strcmp(op->launch.name, "join_back") == 0;
    }
    CHECK_INT(joined, 0);
    end(&l);
}

static const check_test tests[] = {
    TEST(memory_does_not_depend_on_results), TEST(fewer_samples_need_no_more),
    TEST(frozen_networks_decide_nothing),    TEST(blocks_fit_into_every_device),
    TEST(gradients_join_when_all_are_there),
};

CHECK_MAIN(tests)
