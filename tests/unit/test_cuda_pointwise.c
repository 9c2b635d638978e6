/* test_cuda_pointwise.c - kernels of single nodes against plain loops. */
#include "cuda_cases.h"
#include "engine/drop.h"

#define MOST 6000

static const stk_op acts[] = {STK_OP_RELU, STK_OP_RELU6, STK_OP_SILU, STK_OP_SIGMOID};

static double act_of(stk_op act, double x) {
    switch (act) {
    case STK_OP_RELU:
        return x < 0 ? 0 : x;
    case STK_OP_RELU6:
        return x < 0 ? 0 : x > 6 ? 6 : x;
    case STK_OP_SILU:
        return x / (1 + exp(-x));
    default:
        return 1 / (1 + exp(-x));
    }
}

/* By what backward keeps: the input of SiLU, the output of the others. */
static double slope_of(stk_op act, double kept) {
    double s = 1 / (1 + exp(-kept));
    switch (act) {
    case STK_OP_RELU:
        return kept > 0;
    case STK_OP_RELU6:
        return kept > 0 && kept < 6;
    case STK_OP_SILU:
        return s * (1 + kept * (1 - s));
    default:
        return kept * (1 - kept);
    }
}

static void check_act(play_device *play, cuda_type type, stk_op act, size_t count, bool in_place) {
    static float x[MOST], y[MOST], wanted[MOST];
    play_random(type, x, count, -9, 9, 1 + count);
    x[count / 2] = NAN;
    for (size_t i = 0; i < count; i++) {
        wanted[i] = isnan(x[i]) ? NAN : (float)act_of(act, x[i]);
    }
    cuda_program p = case_begin(type);
    cuda_ref from = case_values(&p, count);
    cuda_ref to = in_place ? from : case_values(&p, count);
    stk_cuda_act(&p, act, count, from, to);
    play_data data[] = {play_in(from, PLAY_T, count, x), play_out(to, PLAY_T, count, y)};
    CASE_RUN(play, &p, data);
    play_check_each(stk_op_traits[act].name, y, wanted, count, 1e-6, case_room(type));
}

static void activations(void) {
    play_device play;
    if (!play_open(&play)) {
        return;
    }
    EACH_TYPE(type) {
        for (size_t a = 0; a < 4; a++) {
            if (play_takes(a + 1, type)) {
                check_act(&play, type, acts[a], 5003, false);
            }
        }
        if (play_takes(0, type)) {
            check_act(&play, type, STK_OP_SILU, 8, true);
        }
        if (play_takes(1, type)) {
            check_act(&play, type, STK_OP_RELU, 3, true);
            check_act(&play, type, STK_OP_RELU, 4097, true);
        }
    }
    play_close(&play);
}

static void check_act_back(play_device *play, cuda_type type, stk_op act, size_t count,
                           bool accumulate, bool in_place) {
    static float kept[MOST], dy[MOST], dx[MOST], wanted[MOST];
    play_random(type, kept, count, act == STK_OP_SIGMOID ? 0 : -9, act == STK_OP_SIGMOID ? 1 : 9,
                count);
    play_random(type, dy, count, -2, 2, count + 1);
    play_random(type, dx, count, -2, 2, count + 2);
    kept[0] = 0;
    kept[count - 1] = act == STK_OP_RELU6 ? 6 : kept[count - 1];
    for (size_t i = 0; i < count; i++) {
        wanted[i] = (float)((accumulate ? (double)dx[i] : 0) + slope_of(act, kept[i]) * dy[i]);
    }
    cuda_program p = case_begin(type);
    cuda_ref saved = case_values(&p, count);
    cuda_ref unused = case_values(&p, count); /* of NaNs: the other of input and output */
    cuda_ref back = case_values(&p, count);
    cuda_ref to = in_place ? back : case_values(&p, count);
    bool input = act == STK_OP_SILU;
    stk_cuda_act_back(&p, act, count, input ? saved : unused, input ? unused : saved, back, to,
                      accumulate);
    play_data data[] = {play_in(saved, PLAY_T, count, kept),
                        play_in(back, PLAY_T, count, dy),
                        {to, PLAY_T, count,
                         in_place     ? dy
                         : accumulate ? dx
                                      : NULL,
                         dx}};
    CASE_RUN(play, &p, data);
    play_check_each(stk_op_traits[act].name, dx, wanted, count, 2e-6 + case_room(type),
                    case_room(type));
}

static void activations_back(void) {
    play_device play;
    if (!play_open(&play)) {
        return;
    }
    EACH_TYPE(type) {
        for (size_t a = 0; a < 4; a++) {
            if (play_takes(a, type)) {
                check_act_back(&play, type, acts[a], 4999, a % 2 == 0, false);
            }
        }
        if (play_takes(1, type)) {
            check_act_back(&play, type, STK_OP_RELU6, 4999, false, true);
            check_act_back(&play, type, STK_OP_RELU6, 5, false, true);
        }
        if (play_takes(2, type)) {
            check_act_back(&play, type, STK_OP_SILU, 13, true, false);
        }
    }
    play_close(&play);
}

/* y = a + b, in memory of its own or on one of them; and the gradients of that. */
static void additions(void) {
    static float a[MOST], b[MOST], y[MOST], wanted[MOST];
    play_device play;
    if (!play_open(&play)) {
        return;
    }
    EACH_TYPE(type) {
        static const size_t counts[] = {1, 8, 5007};
        for (int k = 0; k < 9; k++) {
            size_t count = counts[k % 3];
            play_random(type, a, count, -2, 2, 3 + count);
            play_random(type, b, count, -2, 2, 4 + count);
            for (size_t i = 0; i < count; i++) {
                wanted[i] = k < 6 ? a[i] + b[i] : a[i];
            }
            cuda_program p = case_begin(type);
            cuda_ref left = case_values(&p, count);
            cuda_ref right = case_values(&p, count);
            cuda_ref to = k < 3 ? case_values(&p, count) : right;
            if (k < 3) {
                stk_cuda_add(&p, count, left, right, to);
            } else {
                stk_cuda_pass(&p, count, left, to, k < 6);
            }
            play_data data[] = {play_in(left, PLAY_T, count, a),
                                play_in(right, PLAY_T, count, k < 6 ? b : NULL),
                                play_out(to, PLAY_T, count, y)};
            CASE_RUN(&play, &p, data);
            play_check_each("sum", y, wanted, count, 0, k < 6 ? case_room(type) : 0);
        }
    }
    play_close(&play);
}

/* Batch, pixels, channels: by the eight or not, less than a tile, more, not a whole number. */
static const cuda_plane planes[] = {{2, 21, 16}, {7, 1, 10}, {1, 3, 1}, {2, 5, 264}, {40, 1, 37}};
#define PLANES (sizeof planes / sizeof *planes)

static size_t elements(cuda_plane plane) {
    return (size_t)plane.batch * (size_t)plane.pixels * (size_t)plane.channels;
}

static void biases(void) {
    static float x[MOST], y[MOST], wanted[MOST], of[MOST], sum[MOST], wanted_sum[MOST];
    play_device play;
    if (!play_open(&play)) {
        return;
    }
    EACH_TYPE(type) {
        for (size_t k = 0; k < PLANES; k++) {
            size_t count = elements(planes[k]);
            size_t channels = (size_t)planes[k].channels;
            if (!play_takes(k, type)) {
                continue;
            }
            play_random(type, x, count, -2, 2, k);
            play_random(CUDA_TYPE_F32, of, channels, -2, 2, k + 9);
            memset(wanted_sum, 0, sizeof wanted_sum);
            for (size_t i = 0; i < count; i++) {
                wanted[i] = x[i] + of[i % channels];
                wanted_sum[i % channels] += x[i];
            }
            cuda_program p = case_begin(type);
            cuda_ref from = case_values(&p, count);
            cuda_ref bias = case_floats(&p, channels);
            cuda_ref grad = case_floats(&p, channels);
            cuda_ref to = k == 1 ? from : case_values(&p, count);
            stk_cuda_bias_back(&p, planes[k], from, grad);
            stk_cuda_bias(&p, planes[k], from, bias, to);
            play_data data[] = {
                play_in(from, PLAY_T, count, x), play_in(bias, PLAY_FLOAT, channels, of),
                play_out(to, PLAY_T, count, y), play_out(grad, PLAY_FLOAT, channels, sum)};
            CASE_RUN(&play, &p, data);
            play_check_each("bias", y, wanted, count, 1e-7, case_room(type));
            play_check_each("its gradient", sum, wanted_sum, channels, 2e-5, 1e-5);
        }
    }
    play_close(&play);
}

static void check_sum_over_many_rows(play_device *play, cuda_plane plane) {
    size_t count = elements(plane);
    float *x = play_random_new(CUDA_TYPE_F16, count, -1, 1, 77);
    static float sum[64], wanted[64];
    for (size_t c = 0; c < (size_t)plane.channels; c++) {
        double total = 0;
        for (size_t i = c; i < count; i += (size_t)plane.channels) {
            total += x[i];
        }
        wanted[c] = (float)total;
    }
    cuda_program p = case_begin(CUDA_TYPE_F16);
    cuda_ref from = case_values(&p, count);
    cuda_ref grad = case_floats(&p, (size_t)plane.channels);
    stk_cuda_bias_back(&p, plane, from, grad);
    CHECK(p.ops[0].launch.grid[0] > 1); /* so that blocks must work together */
    play_data data[] = {play_in(from, PLAY_T, count, x),
                        play_out(grad, PLAY_FLOAT, (size_t)plane.channels, sum)};
    CASE_RUN(play, &p, data);
    play_check_each("sums of many rows", sum, wanted, (size_t)plane.channels, 1e-4, 1e-5);
    stk_mem_free(x);
}

static void biases_of_many_rows(void) {
    play_device play;
    if (!play_open(&play)) {
        return;
    }
    check_sum_over_many_rows(&play, (cuda_plane){30, 49, 24});
    check_sum_over_many_rows(&play, (cuda_plane){19, 101, 3});
    play_close(&play);
}

static void gates(void) {
    static float x[MOST], gate[MOST], y[MOST], wanted[MOST];
    play_device play;
    if (!play_open(&play)) {
        return;
    }
    EACH_TYPE(type) {
        for (size_t k = 0; k < PLANES; k++) {
            size_t count = elements(planes[k]);
            size_t channels = (size_t)planes[k].channels;
            size_t sample = (size_t)planes[k].pixels * channels;
            size_t gates_count = (size_t)planes[k].batch * channels;
            if (!play_takes(k + 1, type)) {
                continue;
            }
            play_random(type, x, count, -2, 2, k);
            play_random(type, gate, gates_count, 0, 1, k + 9);
            for (size_t i = 0; i < count; i++) {
                wanted[i] = x[i] * gate[i / sample * channels + i % channels];
            }
            cuda_program p = case_begin(type);
            cuda_ref from = case_values(&p, count);
            cuda_ref by = case_values(&p, gates_count);
            cuda_ref to = case_values(&p, count);
            stk_cuda_scale(&p, planes[k], from, by, to);
            play_data data[] = {play_in(from, PLAY_T, count, x),
                                play_in(by, PLAY_T, gates_count, gate),
                                play_out(to, PLAY_T, count, y)};
            CASE_RUN(&play, &p, data);
            play_check_each("scale", y, wanted, count, 1e-6, case_room(type));
        }
    }
    play_close(&play);
}

/* which: 1 dx, 2 dgate, 3 both. */
static void check_gate_back(play_device *play, cuda_type type, cuda_plane plane, int which,
                            bool add) {
    static float x[MOST], gate[MOST], dy[MOST], dx[MOST], dgate[MOST];
    static float wanted_x[MOST], wanted_gate[MOST];
    size_t count = elements(plane);
    size_t channels = (size_t)plane.channels;
    size_t sample = (size_t)plane.pixels * channels;
    size_t gates_count = (size_t)plane.batch * channels;
    play_random(type, x, count, -2, 2, 21);
    play_random(type, gate, gates_count, 0, 1, 22);
    play_random(type, dy, count, -2, 2, 23);
    play_random(type, dx, count, -2, 2, 24);
    play_random(type, dgate, gates_count, -2, 2, 25);
    for (size_t i = 0; i < gates_count; i++) {
        wanted_gate[i] = add ? dgate[i] : 0;
    }
    for (size_t i = 0; i < count; i++) {
        size_t g = i / sample * channels + i % channels;
        wanted_x[i] = (add ? dx[i] : 0) + dy[i] * gate[g];
        wanted_gate[g] += dy[i] * x[i];
    }
    cuda_program p = case_begin(type);
    cuda_ref from = case_values(&p, count);
    cuda_ref by = case_values(&p, gates_count);
    cuda_ref back = case_values(&p, count);
    cuda_ref to_x = case_values(&p, count);
    cuda_ref to_gate = case_values(&p, gates_count);
    stk_cuda_scale_back(&p, plane, from, by, back, which & 1 ? to_x : cuda_nothing(), add,
                        which & 2 ? to_gate : cuda_nothing(), add);
    play_data data[] = {play_in(from, PLAY_T, count, x),
                        play_in(by, PLAY_T, gates_count, gate),
                        play_in(back, PLAY_T, count, dy),
                        {to_x, PLAY_T, count, add ? dx : NULL, dx},
                        {to_gate, PLAY_T, gates_count, add ? dgate : NULL, dgate}};
    CASE_RUN(play, &p, data);
    if (which & 1) {
        play_check_each("dx of scale", dx, wanted_x, count, case_room(type), case_room(type));
    }
    if (which & 2) {
        play_check_each("dgate of scale", dgate, wanted_gate, gates_count, 4 * case_room(type),
                        case_room(type));
    }
}

static void gates_back(void) {
    play_device play;
    if (!play_open(&play)) {
        return;
    }
    EACH_TYPE(type) {
        for (size_t k = 0; k < PLANES; k++) {
            if (play_takes(k + 1, type)) {
                check_gate_back(&play, type, planes[k], 3, k % 2 == 0);
            }
        }
        if (play_takes(1, type)) {
            check_gate_back(&play, type, planes[0], 1, false);
        }
        if (play_takes(2, type)) {
            check_gate_back(&play, type, planes[1], 2, true);
        }
    }
    play_close(&play);
}

static void check_drop(play_device *play, cuda_type type, cuda_plane plane, stk_op op, bool add,
                       bool in_place) {
    static float x[MOST], y[MOST], wanted[MOST];
    size_t count = elements(plane);
    size_t run = op == STK_OP_DROP_PATH ? count / (size_t)plane.batch : 1;
    cuda_step_constants constants = {.seed = 12345678901ull, .step = 77};
    stk_node node = {.op = op, .rate = 0.3f};
    play_random(type, x, count, -2, 2, 31);
    play_random(type, y, count, -2, 2, 32);
    for (size_t i = 0; i < count; i++) {
        float factor = stk_drop_factor(node.rate, constants.seed, constants.step, 19, i / run);
        wanted[i] = (add ? y[i] : 0) + factor * x[i];
    }
    cuda_program p = case_begin(type);
    cuda_ref from = case_values(&p, count);
    cuda_ref to = in_place ? from : case_values(&p, count);
    stk_cuda_drop(&p, plane, &node, 19, from, to, add);
    play_data data[] = {
        play_in(from, PLAY_T, count, x),
        {to, PLAY_T, count,
         in_place ? x
         : add    ? y
                  : NULL,
         y},
        play_in(cuda_fixed_at(CUDA_FIXED_CONSTANTS, 0), PLAY_BYTES, sizeof constants, &constants)};
    CASE_RUN(play, &p, data);
    play_check_each("drop", y, wanted, count, case_room(type), case_room(type));
}

static void drops(void) {
    play_device play;
    if (!play_open(&play)) {
        return;
    }
    static const struct {
        cuda_plane plane;
        stk_op op;
        bool add, in_place;
    } kinds[] = {{{5, 7, 24}, STK_OP_DROPOUT, false, false},
                 {{3, 1, 37}, STK_OP_DROPOUT, true, false},
                 {{9, 7, 24}, STK_OP_DROP_PATH, false, true},
                 {{9, 7, 24}, STK_OP_DROP_PATH, true, false},
                 {{9, 5, 3}, STK_OP_DROP_PATH, false, false}};
    EACH_TYPE(type) {
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
            if (play_takes(k + 1, type)) {
                check_drop(&play, type, kinds[k].plane, kinds[k].op, kinds[k].add,
                           kinds[k].in_place);
            }
        }
    }
    play_close(&play);
}

static void check_shortcut(play_device *play, cuda_type type, stk_shape in, int channels,
                           int stride, bool add) {
    static float x[MOST], y[MOST], dx[MOST], wanted[MOST], wanted_dx[MOST];
    const int batch = 2;
    stk_shape out = {(in.height + stride - 1) / stride, (in.width + stride - 1) / stride, channels};
    size_t ins = batch * stk_shape_count(in);
    size_t outs = batch * stk_shape_count(out);
    int before = (channels - in.channels) / 2;
    play_random(type, x, ins, -2, 2, 41);
    play_random(type, dx, ins, -2, 2, 42);
    memset(wanted, 0, sizeof wanted);
    for (size_t i = 0; i < ins; i++) {
        wanted_dx[i] = add ? dx[i] : 0;
    }
    for (int n = 0; n < batch; n++)
        for (int r = 0; r < out.height; r++)
            for (int q = 0; q < out.width; q++)
                for (int c = 0; c < in.channels; c++) {
                    int to = ((n * out.height + r) * out.width + q) * channels + before + c;
                    int from =
                        ((n * in.height + r * stride) * in.width + q * stride) * in.channels + c;
                    wanted[to] = x[from];
                    wanted_dx[from] += x[from]; /* the gradient of y is y */
                }
    cuda_program p = case_begin(type);
    cuda_ref from = case_values(&p, ins);
    cuda_ref to = case_values(&p, outs);
    cuda_ref back = case_values(&p, ins);
    stk_cuda_shortcut(&p, batch, in, out, stride, from, to);
    stk_cuda_shortcut_back(&p, batch, in, out, stride, to, back, add);
    play_data data[] = {play_in(from, PLAY_T, ins, x),
                        play_out(to, PLAY_T, outs, y),
                        {back, PLAY_T, ins, add ? dx : NULL, dx}};
    CASE_RUN(play, &p, data);
    play_check_each("shortcut", y, wanted, outs, 0, 0);
    play_check_each("its gradient", dx, wanted_dx, ins, case_room(type), case_room(type));
}

static void shortcuts(void) {
    play_device play;
    if (!play_open(&play)) {
        return;
    }
    static const struct {
        stk_shape in;
        int channels, stride;
        bool add;
    } kinds[] = {{{8, 8, 16}, 32, 2, false},
                 {{7, 5, 8}, 16, 2, true}, /* 4 zeros in front */
                 {{5, 6, 3}, 8, 2, false},
                 {{3, 3, 8}, 24, 1, true}};
    EACH_TYPE(type) {
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
            if (play_takes(k + 1, type)) {
                check_shortcut(&play, type, kinds[k].in, kinds[k].channels, kinds[k].stride,
                               kinds[k].add);
            }
        }
    }
    play_close(&play);
}

static const check_test tests[] = {TEST(activations),
                                   TEST(activations_back),
                                   TEST(additions),
                                   TEST(biases),
                                   TEST(biases_of_many_rows),
                                   TEST(gates),
                                   TEST(gates_back),
                                   TEST(drops),
                                   TEST(shortcuts)};
CHECK_MAIN(tests)
