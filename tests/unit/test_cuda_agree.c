/*
 * test_cuda_agree.c - which plan of a convolution is believed: who agrees with whom, by
 * fingerprints that are made up here, and the kernel that takes a print.
 */
#include "cuda_cases.h"

#include "backend/cuda/convolution/comparison.h"

/* ---- who is believed ---- */

/* Too large for our own kernel. */
static const cuda_conv_shape large = {.kind = CUDA_CONV_WEIGHT,
                                      .type = CUDA_TYPE_F16,
                                      .batch = 256,
                                      .height = 56,
                                      .width = 56,
                                      .channels = 64,
                                      .out_height = 56,
                                      .out_width = 56,
                                      .filters = 64,
                                      .kernel = 3,
                                      .stride = 1,
                                      .pad = 1,
                                      .act = STK_OP_COUNT};

typedef struct stage {
    cuda_candidates candidates;
    cuda_conv_call call;
    cuda_comparison check;
} stage;

/* The results by letters, equal ones agree; '!' is no number, '-' does not run. */
static void set_up(stage *s, const cuda_conv_shape *shape, const char *engines,
                   const char *results) {
    memset(s, 0, sizeof *s);
    s->call.shape = shape;
    s->check.candidates = &s->candidates;
    s->check.call = &s->call;
    for (int i = 0; engines[i] != '\0'; i++) {
        cuda_fingerprint *print = &s->check.fingerprints[i];
        s->candidates.items[i] = (cuda_candidate){.kind = CUDA_CANDIDATE_DNN, .engine = engines[i]};
        s->check.order[i] = i;
        print->taken = true;
        print->runs = results[i] != '-';
        print->finite = print->runs && results[i] != '!';
        for (int k = 0; k < CUDA_OWN_SUM_COUNT && print->finite; k++) {
            print->sums[k] = k == 0 ? 100 : results[i] - 'a' + k;
        }
        s->candidates.count = s->check.count = i + 1;
    }
}

static void reverse(stage *s) {
    for (int i = 0; i < s->check.count; i++) {
        s->check.order[i] = s->check.count - 1 - i;
    }
}

static void the_best_that_another_engine_confirms_is_taken(void) {
    static const struct {
        const char *engines, *results;
        int agreed;
    } cases[] = {
        {"12", "aa", 0},     /* the usual */
        {"123", "abb", 1},   /* the fastest is wrong */
        {"123", "aba", 0},   /* the second is */
        {"1123", "aabb", 2}, /* two settings of one engine confirm nothing */
        {"1112", "baaa", 1}, /* one setting is wrong */
        {"11", "aa", -1},    {"1", "a", -1},
        {"123", "abc", -1},  {"123", "!!a", -1}, /* what is no number agrees with nothing */
        {"12", "--", -1},    {"123", "-aa", 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        stage s;
        set_up(&s, &large, cases[i].engines, cases[i].results);
        CHECK_INT(stk_cuda_comparison_agreed(&s.check), cases[i].agreed);
    }
    stage s;
    set_up(&s, &large, "12", "aa");
    reverse(&s);
    CHECK_INT(stk_cuda_comparison_agreed(&s.check), 1);
    set_up(&s, &large, "11", "aa"); /* but the libraries differ */
    s.candidates.items[1].kind = CUDA_CANDIDATE_PRODUCT;
    CHECK_INT(stk_cuda_comparison_agreed(&s.check), 0);
}

static void without_a_judge_the_library_decides(void) {
    static const struct {
        const char *engines, *results;
        int taken; /* with the last one being the fastest */
    } cases[] = {
        {"111", "aab", 1}, /* one engine: the fastest that another setting confirms */
        {"123", "abc", 0}, /* nobody agrees: the first offer */
        {"123", "!bc", 1}, /* that gives numbers */
        {"112", "aab", 0}, /* settings of one engine confirm nothing against another engine */
        {"123", "!!!", 2}, /* the inputs are to blame */
        {"123", "!!-", 1}, {"1", "a", 0}, {"12", "--", -1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        stage s;
        set_up(&s, &large, cases[i].engines, cases[i].results);
        reverse(&s);
        CHECK_INT(stk_cuda_comparison_unjudged(&s.check), cases[i].taken);
    }
}

/* Lengths are 10; one sum, or the length, is off by a share of that. */
static void how_far_results_may_be_apart(void) {
    static const struct {
        cuda_type type;
        bool strict;
        double good, bad;
    } cases[] = {{CUDA_TYPE_F16, false, 0.02, 0.04},
                 {CUDA_TYPE_BF16, false, 0.02, 0.04},
                 {CUDA_TYPE_F32, false, 0.005, 0.02},
                 {CUDA_TYPE_F32, true, 5e-5, 2e-4}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cuda_conv_shape shape = large;
        shape.type = cases[i].type;
        shape.strict = cases[i].strict;
        for (int k = 0; k < CUDA_OWN_SUM_COUNT; k++) {
            stage s;
            for (int bad = 0; bad < 2; bad++) {
                double share = bad ? cases[i].bad : cases[i].good;
                set_up(&s, &shape, "12", "aa");
                s.check.fingerprints[1].sums[k] *= k == 0 ? (1 - share) * (1 - share) : 1;
                s.check.fingerprints[1].sums[k] -= k == 0 ? 0 : 10 * share;
                CHECK_INT(stk_cuda_comparison_agreed(&s.check), bad ? -1 : 0);
            }
        }
    }
    stage s;
    set_up(&s, &large, "12", "aa");
    for (int i = 0; i < 2; i++) { /* zeros are equal */
        memset(s.check.fingerprints[i].sums, 0, sizeof s.check.fingerprints[i].sums);
    }
    CHECK_INT(stk_cuda_comparison_agreed(&s.check), 0);
}

static void uneven_padding_is_for_our_own_kernel_to_judge(void) {
    cuda_conv_shape shape = large;
    stage s;
    CHECK(!stk_cuda_comparison_can_judge(&shape));
    shape.batch = 8;
    CHECK(stk_cuda_comparison_can_judge(&shape));
    set_up(&s, &shape, "12", "aa");
    CHECK_INT(stk_cuda_comparison_agreed(&s.check), 0);
    shape.stride = 2;
    shape.pad = 0; /* a row and a column behind, none before */
    shape.out_height = shape.out_width = 28;
    set_up(&s, &shape, "12", "aa");
    CHECK_INT(stk_cuda_comparison_agreed(&s.check), -1);
    shape.pad = 1;
    set_up(&s, &shape, "12", "aa");
    CHECK_INT(stk_cuda_comparison_agreed(&s.check), 0);
    shape.pad = 0;
    shape.batch = 4096; /* too large */
    CHECK(!stk_cuda_comparison_can_judge(&shape));
    set_up(&s, &shape, "12", "aa");
    CHECK_INT(stk_cuda_comparison_agreed(&s.check), 0);
}

/* ---- the kernel ---- */

static uint64_t mixed(uint64_t z) {
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

/* Whole numbers, so that sums are exact. */
static void check_sums(play_device *play, cuda_type type, size_t count, unsigned blocks) {
    static float x[9000], rows[4 * CUDA_OWN_SUM_COUNT];
    double wanted[CUDA_OWN_SUM_COUNT] = {0};
    play_random(CUDA_TYPE_F32, x, count, -9, 9, count);
    for (size_t i = 0; i < count; i++) {
        uint64_t bits = mixed(i / 8 + UINT64_C(0x9E3779B97F4A7C15)) >> (i % 8 * 8);
        x[i] = rintf(x[i]);
        wanted[0] += (double)x[i] * (double)x[i];
        for (int k = 1; k < CUDA_OWN_SUM_COUNT; k++) {
            wanted[k] += (bits >> (k - 1) & 1) != 0 ? -(double)x[i] : (double)x[i];
        }
    }
    cuda_program p = case_begin(type);
    cuda_ref from = case_values(&p, count);
    cuda_ref to = case_floats(&p, (size_t)blocks * CUDA_OWN_SUM_COUNT);
    cuda_launch *launch = stk_cuda_launch(&p, "conv_check", "check_sums", blocks, 1, 256,
                                          256 * CUDA_OWN_SUM_COUNT * sizeof(float));
    stk_cuda_define(launch, "WIDE", CUDA_OWN_SUM_COUNT);
    CUDA_ARGS(launch, from, to, cuda_long(count));
    play_data data[] = {
        {.ref = from, .kind = PLAY_T, .count = count, .in = x},
        {.ref = to, .kind = PLAY_FLOAT, .count = (size_t)blocks * CUDA_OWN_SUM_COUNT, .out = rows},
    };
    CASE_RUN(play, &p, data);
    for (int k = 0; k < CUDA_OWN_SUM_COUNT; k++) {
        double sum = 0;
        for (unsigned i = 0; i < blocks; i++) {
            sum += (double)rows[i * CUDA_OWN_SUM_COUNT + (unsigned)k];
        }
        CHECK_NEAR(sum, wanted[k], 0);
    }
}

static void sums_hold_every_number_once(void) {
    static const size_t counts[] = {1, 7, 8, 9, 375, 2048, 4096 + 8, 8999};
    play_device play;
    if (!play_open(&play)) {
        return;
    }
    EACH_TYPE(type) {
        for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
            check_sums(&play, type, counts[i], 1 + (unsigned)i % 3);
        }
    }
    play_close(&play);
}

static const check_test tests[] = {
    TEST(the_best_that_another_engine_confirms_is_taken),
    TEST(without_a_judge_the_library_decides),
    TEST(how_far_results_may_be_apart),
    TEST(uneven_padding_is_for_our_own_kernel_to_judge),
    TEST(sums_hold_every_number_once),
};

CHECK_MAIN(tests)
