/* test_cuda_ends.c - pictures in, losses and gradients out: kernels against plain loops. */
#include "cuda_cases.h"
#include "engine/steps.h"

#define MOST 24000

static play_data constants_data(const cuda_step_constants *constants) {
    return play_in(cuda_fixed_at(CUDA_FIXED_CONSTANTS, 0), PLAY_BYTES, sizeof *constants,
                   constants);
}

/* ---- pictures ---- */

/* `shift`: bytes by which the pictures begin off a boundary of words. */
static void check_input(play_device *play, cuda_type type, int size, int batch,
                        cuda_step_constants constants, bool train, size_t shift) {
    static uint8_t images[MOST];
    static float y[MOST], wanted[MOST];
    stk_graph graph = {.img_size = size,
                       .channels = 3,
                       .mean = {0.485f, 0.456f, 0.406f},
                       .std = {0.229f, 0.224f, 0.225f}};
    size_t pixels = (size_t)size * (size_t)size;
    size_t all = (size_t)batch * pixels;
    stk_rng rng = stk_rng_make(5, STK_RNG_TEST, 0, 0);
    for (size_t i = 0; i < 3 * all; i++) {
        images[shift + i] = (uint8_t)stk_rng_below(&rng, 256);
    }
    for (size_t i = 0; i < 4 * all; i++) {
        size_t n = i / 4 / pixels;
        size_t at = i / 4 % pixels;
        size_t c = i % 4;
        int row = (int)at / size;
        int column = (int)at % size;
        bool cut = row >= constants.mix_top && row < constants.mix_bottom &&
                   column >= constants.mix_left && column < constants.mix_right;
        size_t partner = (size_t)batch - 1 - n;
        if (c == 3) {
            wanted[i] = 0;
            continue;
        }
        double own =
            (images[shift + (n * pixels + at) * 3 + c] / 255.0 - graph.mean[c]) / graph.std[c];
        double other = (images[shift + (partner * pixels + at) * 3 + c] / 255.0 - graph.mean[c]) /
                       graph.std[c];
        double keep = !train || constants.mix_kind == 0 ? 1
                      : constants.mix_kind == 1         ? (double)constants.mix_keep
                                                        : !cut;
        wanted[i] = (float)(keep * own + (1 - keep) * other);
    }
    cuda_pointer place = case_put(play, images, shift + 3 * all);
    constants.images = place + shift;
    cuda_program p = case_begin(type);
    cuda_ref to = case_values(&p, 4 * all);
    stk_cuda_input(&p, &graph, batch, train, to);
    play_data data[] = {constants_data(&constants), play_out(to, PLAY_T, 4 * all, y)};
    CASE_RUN(play, &p, data);
    case_take_back(play, place);
    play_check_each("input", y, wanted, 4 * all, 1e-6, case_room(type));
}

static void pictures(void) {
    play_device play;
    if (!play_open(&play)) {
        return;
    }
    const cuda_step_constants plain = {.mix_kind = STK_MIX_NONE, .mix_keep = 1};
    const cuda_step_constants mixup = {.mix_kind = STK_MIX_MIXUP, .mix_keep = 0.7f};
    const cuda_step_constants cutmix = {.mix_kind = STK_MIX_CUTMIX,
                                        .mix_keep = 0.6f,
                                        .mix_left = 1,
                                        .mix_top = 2,
                                        .mix_right = 6,
                                        .mix_bottom = 5};
    EACH_TYPE(type) {
        check_input(&play, type, 8, 3, plain, false, 0);
        check_input(&play, type, 8, 3, mixup, true, 0);
        check_input(&play, type, 8, 3, mixup, false, 0); /* never in inference */
        check_input(&play, type, 8, 2, cutmix, true, 0);
        check_input(&play, type, 8, 2, cutmix, true, 3);
        check_input(&play, type, 7, 3, cutmix, true, 0); /* 49 pixels: no multiple of 4 */
        check_input(&play, type, 33, 2, mixup, true, 0);
        check_input(&play, type, 1, 1, plain, true, 0);
    }
    play_close(&play);
}

static void filters(void) {
    static float w[MOST], padded[MOST], back[MOST], wanted[MOST];
    play_device play;
    if (!play_open(&play)) {
        return;
    }
    EACH_TYPE(type) {
        size_t count = 5 * 49;
        play_random(type, w, 3 * count, -1, 1, 3);
        for (size_t i = 0; i < 4 * count; i++) {
            wanted[i] = i % 4 < 3 ? w[i / 4 * 3 + i % 4] : 0;
        }
        cuda_program p = case_begin(type);
        cuda_ref from = case_values(&p, 3 * count);
        cuda_ref wide = case_values(&p, 4 * count);
        cuda_ref narrow = case_values(&p, 3 * count);
        stk_cuda_pad_filter(&p, 5, 49, 3, from, wide);
        stk_cuda_drop_padding(&p, 5, 49, 3, wide, narrow);
        play_data data[] = {play_in(from, PLAY_T, 3 * count, w),
                            play_out(wide, PLAY_T, 4 * count, padded),
                            play_out(narrow, PLAY_T, 3 * count, back)};
        CASE_RUN(&play, &p, data);
        play_check_each("padded", padded, wanted, 4 * count, 0, 0);
        play_check_each("back again", back, w, 3 * count, 0, 0);
    }
    play_close(&play);
}

/* ---- the loss ---- */

typedef struct loss_case {
    int batch, classes;
    float *logits; /* (batch, classes) */
    int *labels;
    cuda_step_constants constants;
    float scale;
    bool steps; /* of STK_LOSS_STEPS instead of softmax */
} loss_case;

/* The squared error of the place that one sample's logits say. */
static double reference_place(const loss_case *k, const float *x, double step, float *gradient) {
    stk_steps steps = stk_steps_of(k->classes);
    int last = k->classes - 1;
    double place = ((double)x[last] - (double)x[0]) / (steps.pull * last);
    double off = place - (step - steps.middle) / sqrt(((double)k->classes * k->classes - 1) / 12);
    memset(gradient, 0, (size_t)k->classes * sizeof *gradient);
    gradient[last] = (float)(off / (steps.pull * last) * (double)k->scale / k->batch);
    gradient[0] = -gradient[last];
    return off * off / 2;
}

/* As backend/cpu/kernels/loss.c, in float64. */
static void reference_loss(const loss_case *k, float *gradient, double *loss, int *correct) {
    bool mixed = k->constants.mix_kind != STK_MIX_NONE;
    double keep = mixed ? (double)k->constants.mix_keep : 1;
    *loss = 0;
    *correct = 0;
    for (int i = 0; i < k->batch; i++) {
        const float *x = k->logits + (size_t)i * (size_t)k->classes;
        int own = k->labels[i];
        int other = k->labels[k->batch - 1 - i];
        int best = 0;
        double sum = 0;
        for (int c = 0; c < k->classes; c++) {
            best = x[c] > x[best] ? c : best;
        }
        *correct += best == (keep >= 0.5 ? own : other);
        if (k->steps) {
            *loss += reference_place(k, x, keep * own + (1 - keep) * other,
                                     gradient + (size_t)i * (size_t)k->classes);
            continue;
        }
        for (int c = 0; c < k->classes; c++) {
            sum += exp((double)x[c] - (double)x[best]);
        }
        for (int c = 0; c < k->classes; c++) {
            double log_p = (double)x[c] - (double)x[best] - log(sum);
            double smooth = k->constants.label_smoothing;
            double target = smooth / k->classes +
                            (1 - smooth) * ((c == own ? keep : 0) + (c == other ? 1 - keep : 0));
            *loss -= target * log_p;
            gradient[(size_t)i * (size_t)k->classes + (size_t)c] =
                (float)((exp(log_p) - target) * (double)k->scale / k->batch);
        }
    }
}

static void run_loss(play_device *play, cuda_type type, const loss_case *k, bool in_place,
                     float *gradient, cuda_result *result) {
    size_t count = (size_t)k->batch * (size_t)k->classes;
    cuda_step_constants constants = k->constants;
    cuda_scaler scaler = {.scale = k->scale, .inverse = 1 / k->scale};
    cuda_pointer labels = case_put(play, k->labels, (size_t)k->batch * sizeof(int));
    constants.labels = labels;
    cuda_program p = case_begin(type);
    cuda_ref logits = case_values(&p, count);
    cuda_ref to = in_place ? logits : case_values(&p, count);
    (k->steps ? stk_cuda_loss_steps : stk_cuda_loss)(&p, k->batch, k->classes, logits, to);
    play_data data[] = {
        constants_data(&constants),
        play_in(cuda_fixed_at(CUDA_FIXED_SCALER, 0), PLAY_BYTES, sizeof scaler, &scaler),
        play_out(cuda_fixed_at(CUDA_FIXED_RESULT, 0), PLAY_BYTES, sizeof *result, result),
        play_in(logits, PLAY_T, count, k->logits), play_out(to, PLAY_T, count, gradient)};
    CASE_RUN(play, &p, data);
    case_take_back(play, labels);
}

static void check_loss(play_device *play, cuda_type type, int batch, int classes,
                       const cuda_step_constants *constants, bool in_place, bool steps) {
    static float gradient[MOST], wanted[MOST], logits[MOST];
    static int labels[400];
    loss_case k = {batch, classes, logits, labels, *constants, type == CUDA_TYPE_F16 ? 1024.0f : 1,
                   steps};
    size_t count = (size_t)batch * (size_t)classes;
    play_random(type, logits, count, -8, 8, (uint64_t)classes);
    stk_rng rng = stk_rng_make(8, STK_RNG_TEST, 0, (uint64_t)batch);
    for (int i = 0; i < batch; i++) {
        labels[i] = (int)stk_rng_below(&rng, (uint64_t)classes);
        /* Every other one is right, and the second largest is as large as the largest. */
        if (i % 2 == 0) {
            logits[(size_t)i * (size_t)classes + (size_t)labels[i]] = 8;
            logits[(size_t)i * (size_t)classes + (size_t)classes - 1] = 8;
        }
    }
    double loss;
    int correct;
    cuda_result result;
    reference_loss(&k, wanted, &loss, &correct);
    run_loss(play, type, &k, in_place, gradient, &result);
    CHECK_NEAR(result.loss_sum, loss, 1e-5 * (1 + fabs(loss)));
    CHECK_INT(result.correct, correct);
    CHECK_INT(result.skipped, 0);
    CHECK_NEAR(result.scale, k.scale, 0);
    CHECK(isnan(result.grad_norm));
    double most = (double)k.scale / batch;
    play_check_each("gradient of the loss", gradient, wanted, count, 2e-6 * most + 6e-8,
                    case_room(type));
}

static void losses(void) {
    play_device play;
    if (!play_open(&play)) {
        return;
    }
    const cuda_step_constants plain = {.mix_kind = STK_MIX_NONE, .mix_keep = 0.2f};
    const cuda_step_constants smooth = {.label_smoothing = 0.1f};
    const cuda_step_constants mixup = {
        .mix_kind = STK_MIX_MIXUP, .mix_keep = 0.3f, .label_smoothing = 0.05f};
    const cuda_step_constants cutmix = {.mix_kind = STK_MIX_CUTMIX, .mix_keep = 0.5f};
    EACH_TYPE(type) {
        check_loss(&play, type, 5, 1000, &smooth, false, false);
        check_loss(&play, type, 5, 1000, &cutmix, true, false);
        check_loss(&play, type, 33, 10, &plain, true, false);
        check_loss(&play, type, 64, 3, &mixup, false, false);
        check_loss(&play, type, 1, 2, &plain, false, false);
        check_loss(&play, type, 2, 130, &mixup, true, false);
    }
    check_loss(&play, CUDA_TYPE_F16, 1, 22000, &smooth, false, false);
    EACH_TYPE(type) {
        check_loss(&play, type, 33, 5, &plain, true, true);
        check_loss(&play, type, 64, 2, &mixup, false, true);
        check_loss(&play, type, 400, 12, &cutmix, true, true);
        check_loss(&play, type, 1, 30, &smooth, false, true);
    }
    play_close(&play);
}

/* A training that has diverged must show. */
static void loss_of_no_number(void) {
    play_device play;
    if (!play_open(&play)) {
        return;
    }
    float logits[] = {1, 2, 3, NAN, 1, 2, 1, NAN, 2};
    int labels[] = {2, 0, 2};
    float gradient[9];
    cuda_result result;
    loss_case k = {3, 3, logits, labels, {.mix_kind = STK_MIX_NONE}, 1, false};
    run_loss(&play, CUDA_TYPE_F32, &k, false, gradient, &result);
    CHECK(isnan(result.loss_sum));
    CHECK_INT(result.correct, 3); /* the first logit stays the best where it is no number */
    CHECK(!isnan(gradient[0]) && isnan(gradient[3]) && isnan(gradient[6]));
    k.steps = true;
    run_loss(&play, CUDA_TYPE_F32, &k, false, gradient, &result);
    CHECK(isnan(result.loss_sum));
    CHECK_INT(result.correct, 3);
    CHECK(!isnan(gradient[0]) && isnan(gradient[3]) && !isnan(gradient[6]));
    play_close(&play);
}

static void to_float(void) {
    static float x[MOST], y[MOST];
    play_device play;
    if (!play_open(&play)) {
        return;
    }
    EACH_TYPE(type) {
        size_t counts[] = {1, 8, 9003};
        for (int k = 0; k < 3; k++) {
            play_random(type, x, counts[k], -9, 9, 4);
            cuda_program p = case_begin(type);
            cuda_ref from = case_values(&p, counts[k]);
            cuda_ref to = case_floats(&p, counts[k]);
            stk_cuda_to_float(&p, counts[k], from, to);
            play_data data[] = {play_in(from, PLAY_T, counts[k], x),
                                play_out(to, PLAY_FLOAT, counts[k], y)};
            CASE_RUN(&play, &p, data);
            play_check_each("float32", y, x, counts[k], 0, 0);
        }
    }
    play_close(&play);
}

static const check_test tests[] = {TEST(pictures), TEST(filters), TEST(losses),
                                   TEST(loss_of_no_number), TEST(to_float)};
CHECK_MAIN(tests)
