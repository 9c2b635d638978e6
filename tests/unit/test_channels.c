/*
 * test_channels.c - pictures that are not RGB: on CUDA as on the CPU, kernels against plain loops,
 * whole models, and what is refused.
 */
#include "cuda_cases.h"
#include "cuda_pair.h"
#include "models/models.h"

static const stk_mix mixes[] = {
    {.kind = STK_MIX_NONE},
    {.kind = STK_MIX_MIXUP, .keep = 0.7f},
    {.kind = STK_MIX_CUTMIX, .keep = 0.4f, .left = 1, .right = 5, .top = 1, .bottom = 4}};

/* Each number of channels with each reader; in an ordinary run some of them. */
static void cuda_agrees(void) {
    const int counts[] = {1, 2, 4, 6, 3, 13, 64};
    const stk_precision precisions[] = {STK_PRECISION_FP32_STRICT, STK_PRECISION_FP16};
    for (int i = 0; i < (int)STK_COUNT(counts); i++) {
        for (picture_reader = 0; picture_reader < 3; picture_reader++) {
            pair p;
            char what[48];
            if (picture_reader != i % 3 && picture_reader != 0 && !check_is_full()) {
                continue;
            }
            picture_channels = counts[i];
            stk_graph *graph = pair_graph(build_channels, 9);
            pair_wish wish = {.batch = 3, .precision = precisions[(i + picture_reader) % 2]};
            snprintf(what, sizeof what, "%d channels, reader %d", picture_channels, picture_reader);
            if (pair_open(&p, graph, &wish)) {
                for (int k = 0; k < 3; k++) {
                    stk_step_input in = pair_input(&p);
                    in.mix = mixes[k];
                    pair_step(&p, &in, what);
                }
                pair_close(&p);
            }
            wish.infer = true;
            if (i % 2 == 0 && pair_open(&p, graph, &wish)) {
                pair_infer(&p, 2, what);
                pair_close(&p);
            }
            stk_graph_free(graph);
        }
    }
}

/* ---- kernels ---- */

enum { MOST = 24000 };

static double wanted_number(const stk_graph *g, const uint8_t *images, const stk_mix *mix,
                            int batch, int sample, int row, int column, int c) {
    size_t side = (size_t)g->img_size;
    size_t at = ((size_t)row * side + (size_t)column) * (size_t)g->channels + (size_t)c;
    size_t picture = side * side * (size_t)g->channels;
    double mean = g->mean[c], std = g->std[c];
    double own = (images[(size_t)sample * picture + at] / 255.0 - mean) / std;
    double other = (images[(size_t)(batch - 1 - sample) * picture + at] / 255.0 - mean) / std;
    bool cut = row >= mix->top && row < mix->bottom && column >= mix->left && column < mix->right;
    double keep = mix->kind == STK_MIX_NONE    ? 1
                  : mix->kind == STK_MIX_MIXUP ? (double)mix->keep
                                               : !cut;
    return keep * own + (1 - keep) * other;
}

static void check_input(play_device *play, cuda_type type, int channels, int size, int batch,
                        const stk_mix *mix, const cuda_stem *stem) {
    static uint8_t images[MOST];
    static float got[MOST], wanted[MOST], norms[2 * STK_MOST_CHANNELS];
    stk_graph graph = {.img_size = size, .channels = channels};
    for (int c = 0; c < channels; c++) {
        graph.mean[c] = 0.3f + 0.01f * (float)c;
        graph.std[c] = 0.2f + 0.005f * (float)c;
    }
    stk_rng rng = stk_rng_make(5, STK_RNG_TEST, 0, 0);
    size_t bytes = (size_t)(batch * size * size * channels);
    for (size_t i = 0; i < bytes; i++) {
        images[i] = (uint8_t)stk_rng_below(&rng, 256);
    }
    /* Of y: side, channels of a pixel, and pixels of a cell in a row. */
    int side = stem != NULL ? stem->side : size;
    int padded = stem != NULL ? 4 : cuda_input_channels(channels);
    int across = stem != NULL ? 2 : 1;
    size_t count = (size_t)(batch * side * side * across * across * padded);
    for (size_t i = 0; i < count; i++) {
        int c = (int)i % padded;
        int inner = (int)i / padded % (across * across);
        int cell = (int)i / padded / (across * across);
        int row = cell / side % side * across + inner / across - (stem != NULL ? stem->before : 0);
        int column = cell % side * across + inner % across - (stem != NULL ? stem->before : 0);
        bool there = c < channels && row >= 0 && row < size && column >= 0 && column < size;
        wanted[i] = there ? (float)wanted_number(&graph, images, mix, batch, cell / side / side,
                                                 row, column, c)
                          : 0;
    }
    cuda_step_constants constants = {.mix_kind = (int)mix->kind,
                                     .mix_keep = mix->keep,
                                     .mix_left = mix->left,
                                     .mix_top = mix->top,
                                     .mix_right = mix->right,
                                     .mix_bottom = mix->bottom};
    cuda_pointer place = case_put(play, images, bytes);
    constants.images = place;
    size_t norm_count = stk_cuda_input_norms(&graph, norms);
    CHECK_INT(norm_count, 2 * channels);
    cuda_program p = case_begin(type);
    cuda_ref to = case_values(&p, count);
    if (stem != NULL) {
        stk_cuda_input_blocks(&p, &graph, batch, true, stem, to);
    } else {
        stk_cuda_input(&p, &graph, batch, true, to);
    }
    play_data data[] = {
        play_in(cuda_fixed_at(CUDA_FIXED_CONSTANTS, 0), PLAY_BYTES, sizeof constants, &constants),
        play_in(cuda_fixed_at(CUDA_FIXED_NORMS, 0), PLAY_FLOAT, norm_count, norms),
        play_out(to, PLAY_T, count, got)};
    CASE_RUN(play, &p, data);
    case_take_back(play, place);
    play_check_each("pictures", got, wanted, count, 1e-6, case_room(type));
}

static void pictures(void) {
    play_device play;
    if (!play_open(&play)) {
        return;
    }
    const cuda_stem stem = {.side = 7, .before = 3, .lead = 1, .taps = 4, .kernel = 7};
    EACH_TYPE(type) {
        const int counts[] = {1, 2, 4, 6, 64};
        for (size_t i = 0; i < STK_COUNT(counts); i++) {
            if (!check_is_full() && (i + (size_t)type) % 3 != 0) {
                continue;
            }
            check_input(&play, type, counts[i], 7, 3, &mixes[i % 3], NULL);
            if (counts[i] <= CUDA_STEM_CHANNELS) {
                check_input(&play, type, counts[i], 8, 2, &mixes[(i + 1) % 3], &stem);
            }
        }
    }
    play_close(&play);
}

/* From filters over pixels to padded channels, and back. */
static void filters(void) {
    static float w[MOST], padded[MOST], back[MOST], wanted[MOST];
    play_device play;
    if (!play_open(&play)) {
        return;
    }
    const int counts[] = {1, 4, 6, 13};
    for (size_t k = 0; k < STK_COUNT(counts); k++) {
        size_t rows = 5 * 9;
        size_t c = (size_t)counts[k];
        size_t wide = (size_t)cuda_input_channels(counts[k]);
        play_random(CUDA_TYPE_F16, w, c * rows, -1, 1, 3);
        for (size_t i = 0; i < wide * rows; i++) {
            wanted[i] = i % wide < c ? w[i / wide * c + i % wide] : 0;
        }
        cuda_program p = case_begin(CUDA_TYPE_F16);
        cuda_ref from = case_values(&p, c * rows);
        cuda_ref to = case_values(&p, wide * rows);
        cuda_ref again = case_values(&p, c * rows);
        stk_cuda_pad_filter(&p, 5, 9, counts[k], from, to);
        stk_cuda_drop_padding(&p, 5, 9, counts[k], to, again);
        play_data data[] = {play_in(from, PLAY_T, c * rows, w),
                            play_out(to, PLAY_T, wide * rows, padded),
                            play_out(again, PLAY_T, c * rows, back)};
        CASE_RUN(&play, &p, data);
        play_check_each("padded", padded, wanted, wide * rows, 0, 0);
        play_check_each("back again", back, w, c * rows, 0, 0);
    }
    play_close(&play);
}

/* ---- graphs ---- */

static void models_of_any_channels(void) {
    const stk_model *model = NULL;
    stk_error err = {0};
    REQUIRE_OK(stk_model_find("resnet18", &model, &err), &err);
    const int counts[] = {0, 1, 3, 6};
    for (size_t i = 0; i < STK_COUNT(counts); i++) {
        stk_graph *graph = NULL;
        stk_model_config config = {.img_size = 64, .classes = 2, .channels = counts[i]};
        int channels = counts[i] > 0 ? counts[i] : 3;
        REQUIRE_OK(stk_model_build(model, &config, &graph, &err), &err);
        CHECK_INT(graph->channels, channels);
        CHECK_INT(graph->values[graph->input].shape.channels, channels);
        CHECK_INT(graph->params[0].shape[1], channels);
        for (int c = 0; c < channels; c++) {
            CHECK_NEAR(graph->mean[c], channels == 3 ? (double)model->mean[c] : 0.5, 0);
            CHECK_NEAR(graph->std[c], channels == 3 ? (double)model->std[c] : 0.5, 0);
        }
        stk_graph_free(graph);
    }
}

static void refusals(void) {
    const int bad[] = {0, -1, STK_MOST_CHANNELS + 1};
    for (size_t i = 0; i <= STK_COUNT(bad); i++) {
        stk_graph *graph = NULL;
        stk_error err = {0};
        REQUIRE_OK(stk_graph_new(&graph, 4, 2, &err), &err);
        int x = STK_NO_VALUE;
        if (i < STK_COUNT(bad)) {
            stk_graph_set_channels(graph, bad[i]);
        }
        x = stk_graph_linear(graph, stk_graph_input(graph), "fc", 2);
        stk_graph_set_channels(graph, i < STK_COUNT(bad) ? 3 : 4); /* too late */
        CHECK_INT(stk_graph_finish(graph, x, &err), STK_ERR_INTERNAL);
        CHECK(strstr(err.message, "1 to 64") != NULL);
        stk_graph_free(graph);
    }
}

static const check_test tests[] = {
    TEST(cuda_agrees), TEST(pictures), TEST(filters), TEST(models_of_any_channels), TEST(refusals),
};

CHECK_MAIN(tests)
