/*
 * test_predict.c - averaging of models, and probabilities of samples against inference by hand.
 *
 * A program of its own: its clocks can stand still (simulated_clock.h). A picture that takes long
 * is put aside and comes in a later batch; on a busy machine that happens to any picture. Tests
 * that say which rows are in which batch hold the clocks, so that nothing takes any time.
 */
#include "check.h"
#include "first_values.h"
#include "full_rows.h"
#include "image_files.h"
#include "simulated_clock.h"
#include "small_pictures.h"

#include "backend/cpu/device.h"
#include "base/error.h"
#include "metrics/probabilities.h"
#include "train/evaluate.h"

#define SIZE 12
#define CLASSES PICTURE_CLASSES
#define ROWS (2 * STK_PREDICT_BATCH + 5)
#define PASSED 17 /* rows that are predicted at a time where there are so few */
#define BATCHES 8 /* batches of that size in all rows */

/* ---- ensemble ---- */

static const stk_calibration none;

static void ballot_averages(void) {
    stk_error err = {0};
    stk_ensemble ensemble;
    static const double a[] = {0.2, 0.8, 0.6, 0.4, 0.9, 0.1};
    static const double b[] = {0.4, 0.6, 0.0, 1.0, 0.5, 0.5};
    static const bool all[] = {true, true, true};
    static const bool some[] = {true, false, true};
    REQUIRE_OK(stk_ensemble_open(&ensemble, 3, 2, 0, &err), &err);
    add_member(&ensemble, a, all, &none, 1);
    const double *probs = averages_of(&ensemble);
    for (size_t i = 0; i < 6; i++) {
        CHECK_NEAR(probs[i], a[i], 0); /* one model's word is passed on unchanged */
    }
    add_member(&ensemble, b, some, &none, 1);
    probs = averages_of(&ensemble);
    CHECK_NEAR(probs[0], 0.3, 1e-15);
    CHECK_NEAR(probs[1], 0.7, 1e-15);
    CHECK_NEAR(probs[2], 0.6, 0); /* the second model did not predict this row */
    CHECK_NEAR(probs[5], 0.3, 1e-15);
    CHECK_INT(ensemble.models, 2);
    CHECK_NEAR(ensemble.weights[1], 1, 0);
    CHECK(averages_of(&ensemble)[0] == probs[0]); /* counting changes nothing */
    stk_ensemble_free(&ensemble);
    stk_ensemble_free(&ensemble);
}

static void ballot_priors(void) {
    stk_error err = {0};
    stk_ensemble ensemble;
    static const double said[] = {1, 0, 0, 1, 0, 0, 1, 0, 0};
    static const bool have[] = {false, true, false};
    REQUIRE_OK(stk_ensemble_open(&ensemble, 3, 3, 0, &err), &err);
    for (size_t i = 0; i < 9; i++) {
        CHECK_NEAR(averages_of(&ensemble)[i], 1.0 / 3, 1e-15);
    }
    ensemble.priors[0] = 0.5;
    ensemble.priors[1] = 0.3;
    ensemble.priors[2] = 0.2;
    add_member(&ensemble, said, (const bool[]){false, false, false}, &none, 1);
    CHECK_INT(ensemble.models, 0); /* it has said nothing */
    CHECK_NEAR(averages_of(&ensemble)[0], 0.5, 0);
    add_member(&ensemble, said, have, &none, 1);
    CHECK_INT(ensemble.models, 1);
    const double *probs = averages_of(&ensemble);
    CHECK_NEAR(probs[1], 0.3, 0);
    CHECK_NEAR(probs[3], 1, 0);
    CHECK_NEAR(probs[4], 0, 0);
    CHECK_NEAR(probs[8], 0.2, 0);
    stk_ensemble_free(&ensemble);
}

/* They fill rows that no member has, choose labels until there is one, and are no member. */
static void ballot_with_early_predictions(void) {
    static const double member[6] = {0.7, 0.3, 0.9, 0.1, 0, 0};
    stk_error err = {0};
    stk_ensemble ensemble;
    stk_calibration ruled = {.temperature = 1, .pictures = 1000, .plain_score = 0.2, .score = 0.9};
    double numbers[2] = {1, 50};
    REQUIRE_OK(stk_ensemble_open(&ensemble, 3, 2, 0, &err), &err);
    for (int again = 0; again < 2; again++) { /* the later ones replace the earlier ones */
        double *early = stk_mem_new(6, sizeof *early);
        bool *have = stk_mem_new(3, sizeof *have);
        for (int i = 0; i < 6; i++) {
            early[i] = (i + 1 + again) / 10.0;
        }
        have[0] = have[1] = true;
        ruled.rule = (stk_label_rule){STK_LABEL_WEIGHTS, 2, numbers};
        stk_predictions rows = full_rows(early, 3, 2);
        REQUIRE_OK(stk_ensemble_set_early(&ensemble, &rows, have, &ruled, &err), &err);
    }
    const double *probs = averages_of(&ensemble);
    CHECK_INT(ensemble.models, 0);
    CHECK_NEAR(probs[0], 0.2, 0);
    CHECK_NEAR(probs[3], 0.5, 0);
    CHECK_NEAR(probs[4], 0.5, 0); /* the priors */
    CHECK_INT(stk_ensemble_rule(&ensemble)->kind, STK_LABEL_WEIGHTS);
    add_member(&ensemble, member, (const bool[]){true, false, false}, &none, 1);
    probs = averages_of(&ensemble);
    CHECK_INT(ensemble.models, 1);
    CHECK_NEAR(probs[0], 0.7, 0);
    CHECK_NEAR(probs[3], 0.5, 0);
    CHECK_NEAR(probs[5], 0.5, 0);
    CHECK_INT(stk_ensemble_rule(&ensemble)->kind, STK_LABEL_LIKELIEST);
    stk_ensemble_free(&ensemble);
}

static void ballot_without_rows_or_memory(void) {
    stk_error err = {0};
    stk_ensemble ensemble;
    REQUIRE_OK(stk_ensemble_open(&ensemble, 0, 3, 0, &err), &err);
    add_member(&ensemble, NULL, NULL, &none, 1);
    CHECK(averages_of(&ensemble) != NULL);
    stk_ensemble_free(&ensemble);
    for (int64_t n = 0; n < 6; n++) {
        stk_error failure = {0};
        stk_mem_fail_after(n);
        CHECK_INT(stk_ensemble_open(&ensemble, 4, 3, 0, &failure), STK_ERR_MEMORY);
        stk_mem_fail_after(-1);
        CHECK(ensemble.sum.all == NULL && ensemble.priors == NULL);
    }
}

static void ballot_weighs(void) {
    stk_error err = {0};
    stk_ensemble ensemble;
    static const double a[] = {0.2, 0.8, 0.6, 0.4};
    static const double b[] = {0.8, 0.2, 0.1, 0.9};
    static const bool all[] = {true, true};
    static const bool second[] = {false, true};
    REQUIRE_OK(stk_ensemble_open(&ensemble, 2, 2, 0, &err), &err);
    add_member(&ensemble, a, second, &none, 1);
    add_member(&ensemble, b, all, &none, 3);
    const double *probs = averages_of(&ensemble);
    CHECK_NEAR(probs[0], 0.8, 1e-15); /* alone its weight makes no difference */
    CHECK_NEAR(probs[2], (0.6 + 3 * 0.1) / 4, 1e-15);
    CHECK_NEAR(probs[3], (0.4 + 3 * 0.9) / 4, 1e-15);
    stk_ensemble_free(&ensemble);
}

static void weights_of_scores(void) {
    static const struct {
        double acc1[3];
        int classes;
        double weights[3];
    } cases[] = {
        {{90, 60, 75}, 2, {40, 10, 25}},   {{100, 100, 100}, 4, {75, 75, 75}},
        {{60, 10, 20}, 10, {50, 0.5, 10}}, /* no better than guessing: a hundredth */
        {{60, 0, 20}, 10, {50, 0.5, 10}},  /* worse counts no less */
        {{5, 10, 10}, 10, {1, 1, 1}},      /* nobody knows anything */
        {{90, NAN, 60}, 2, {40, 25, 10}},  /* not known: the mean of the others */
        {{NAN, NAN, NAN}, 2, {1, 1, 1}},   {{NAN, 10, 10}, 10, {1, 1, 1}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double weights[3];
        stk_ensemble_weights(cases[i].acc1, 3, cases[i].classes, weights);
        for (size_t k = 0; k < 3; k++) {
            CHECK_NEAR(weights[k], cases[i].weights[k], 1e-12);
        }
    }
}

/* ---- samples ---- */

typedef struct model {
    picture_set pictures;
    stk_device *device;
    stk_graph *graph;
    stk_state *state;
    stk_observer observer;
    stk_events events;
    stk_prediction prediction;
    int bad;
    char bad_split[16];
    int batches_allowed; /* the halt answers true when so many were inferred; -1: never */
    double probs[ROWS * CLASSES];
    bool have[ROWS];
    stk_predicted predicted;
    int views_wanted; /* wants_view says yes up to so many */
} model;

static picture_set shared;

static void on_bad(void *user, const stk_event_bad_image *event) {
    model *m = user;
    m->bad++;
    snprintf(m->bad_split, sizeof m->bad_split, "%s", event->split);
}

/* Batches that were inferred. How often a halt is asked depends on how long others take. */
static int inferred;
static stk_backend counting; /* the CPU's, with counting_infer() */

static stk_status counting_infer(stk_exec *exec, const uint8_t *images, const float *features,
                                 size_t count, float *logits, stk_error *err) {
    inferred++;
    return stk_cpu_backend.infer(exec, images, features, count, logits, err);
}

static bool halted(void *user) {
    const model *m = user;
    return m->batches_allowed >= 0 && inferred >= m->batches_allowed;
}

static stk_graph *small_graph(void) {
    stk_error err = {0};
    stk_graph *graph = NULL;
    must(stk_graph_new(&graph, SIZE, CLASSES, &err), &err);
    int x = stk_graph_conv(graph, stk_graph_input(graph), "conv", 4, 3, 2, 1);
    x = stk_graph_relu(graph, stk_graph_batch_norm(graph, x, "bn", STK_INIT_ONE));
    x = stk_graph_linear(graph, stk_graph_avg_pool(graph, x), "fc", CLASSES);
    must(stk_graph_finish(graph, x, &err), &err);
    return graph;
}

static void open_model(model *m) {
    stk_error err = {0};
    stk_device_config config = {.threads = 2};
    memset(m, 0, sizeof *m);
    if (shared.samples == NULL) {
        shared = make_pictures(check_folder(), ROWS);
        write_text(shared.root, "text.jpg", "no picture");
    }
    m->pictures = shared;
    m->batches_allowed = -1;
    inferred = 0;
    counting = stk_cpu_backend;
    counting.infer = counting_infer;
    m->graph = small_graph();
    must(stk_cpu_backend.device_open(&m->device, &config, &err), &err);
    must(stk_cpu_backend.state_new(&m->state, m->device, m->graph,
                                   &(stk_state_config){.train = true}, &err),
         &err);
    for (int p = 0; p < m->graph->param_count; p++) {
        float *values = stk_mem_new(m->graph->params[p].count, sizeof *values);
        first_values(m->graph, p, 3, values);
        must(stk_cpu_backend.state_write(m->state, STK_TENSOR_VALUE, p, values, &err), &err);
        stk_mem_free(values);
    }
    m->observer = (stk_observer){.user = m, .bad_image = on_bad};
    stk_events_add(&m->events, &m->observer);
    m->prediction =
        (stk_prediction){.backend = &counting,
                         .state = m->state,
                         .graph = m->graph,
                         .compile = {.batch = STK_PREDICT_BATCH},
                         .data = {.store = m->pictures.store,
                                  .samples = m->pictures.samples,
                                  .count = ROWS,
                                  .transform = {.size = SIZE, .crop_fraction = 0.9},
                                  .sizing = {.workers = 3, .slots = 2},
                                  .halt = {halted, m},
                                  .order = {.drop_last = true, .replace_bad = true} /* not read */},
                         .split = "test",
                         .events = &m->events};
    for (size_t i = 0; i < ROWS * CLASSES; i++) {
        m->probs[i] = -7; /* to see what is left alone */
    }
}

static void close_model(model *m) {
    stk_cpu_backend.state_free(m->state);
    stk_cpu_backend.device_close(m->device);
    stk_graph_free(m->graph);
}

static bool is_untouched(const model *m, size_t row) {
    bool untouched = !m->have[row];
    for (size_t c = 0; c < CLASSES; c++) {
        untouched = untouched && m->probs[row * CLASSES + c] == -7;
    }
    return untouched;
}

/* One picture alone, decoded and inferred without loader or batches. */
static void infer_by_hand(const model *m, stk_exec *exec, size_t row, double *probs) {
    stk_error err = {0};
    char path[320];
    char *bytes = NULL;
    size_t size = 0;
    uint8_t pixels[SIZE * SIZE * 3];
    float logits[CLASSES];
    stk_rng rng = stk_rng_make(0, STK_RNG_TEST, 0, 0);
    snprintf(path, sizeof path, "%s/%s", m->pictures.root, m->pictures.samples[row].path);
    must(stk_file_read(path, 0, &bytes, &size, &err), &err);
    stk_image_scratch *scratch = NULL;
    must(stk_image_scratch_new(&scratch, NULL, &err), &err);
    must(stk_transform_apply(scratch, &m->prediction.data.transform, (const uint8_t *)bytes, size,
                             rng, pixels, NULL, &err),
         &err);
    stk_image_scratch_free(scratch);
    must(stk_cpu_backend.infer(exec, pixels, NULL, 1, logits, &err), &err);
    stk_softmax(logits, CLASSES, 1, probs);
    stk_mem_free(bytes);
}

static void samples_equal_inference_by_hand(void) {
    stk_error err = {0};
    stk_exec *exec = NULL;
    stk_compile_config config = {.batch = 1};
    static model m;
    open_model(&m);
    REQUIRE_OK(predict_into(&m.prediction, m.probs, m.have, &m.predicted, &err), &err);
    CHECK(m.predicted.done);
    REQUIRE_OK(stk_cpu_backend.compile(&exec, m.state, &config, &err), &err);
    for (size_t row = 0; row < ROWS; row++) {
        double expected[CLASSES];
        double sum = 0;
        CHECK(m.have[row]);
        infer_by_hand(&m, exec, row, expected);
        for (size_t c = 0; c < CLASSES; c++) {
            CHECK_NEAR(m.probs[row * CLASSES + c], expected[c], 1e-6);
            sum += m.probs[row * CLASSES + c];
        }
        CHECK_NEAR(sum, 1, 1e-12);
    }
    CHECK_INT(m.bad, 0);
    stk_cpu_backend.exec_free(exec);
    close_model(&m);
}

/* At half the temperature every probability is squared, and the row sums to 1 again. */
static void temperature_divides_logits(void) {
    stk_error err = {0};
    static model m;
    static double plain[ROWS * CLASSES];
    open_model(&m);
    REQUIRE_OK(predict_into(&m.prediction, m.probs, m.have, &m.predicted, &err), &err);
    memcpy(plain, m.probs, sizeof plain);
    m.prediction.temperature = 0.5;
    REQUIRE_OK(predict_into(&m.prediction, m.probs, m.have, &m.predicted, &err), &err);
    for (size_t row = 0; row < ROWS; row++) {
        double sum = 0;
        for (size_t c = 0; c < CLASSES; c++) {
            sum += plain[row * CLASSES + c] * plain[row * CLASSES + c];
        }
        for (size_t c = 0; c < CLASSES; c++) {
            double p = plain[row * CLASSES + c];
            CHECK_NEAR(m.probs[row * CLASSES + c], p * p / sum, 1e-12);
        }
    }
    close_model(&m);
}

static void same_bits_again(void) {
    static const int workers[] = {1, 8};
    uint64_t hashes[2];
    for (size_t i = 0; i < 2; i++) {
        stk_error err = {0};
        static model m;
        open_model(&m);
        m.prediction.data.sizing.workers = workers[i];
        m.prediction.data.sizing.slots = 2 + (int)i;
        REQUIRE_OK(predict_into(&m.prediction, m.probs, m.have, &m.predicted, &err), &err);
        hashes[i] = hash_bytes(HASH_START, m.probs, sizeof m.probs);
        close_model(&m);
    }
    CHECK(hashes[0] == hashes[1]);
}

static void missing_and_bad_rows_are_left_alone(void) {
    stk_error err = {0};
    static model m;
    stk_sample samples[ROWS];
    open_model(&m);
    memcpy(samples, m.pictures.samples, sizeof samples);
    samples[0].path = NULL;
    samples[70].path = "text.jpg";
    samples[ROWS - 1].path = "not-there.jpg";
    m.prediction.data.samples = samples;
    REQUIRE_OK(predict_into(&m.prediction, m.probs, m.have, &m.predicted, &err), &err);
    CHECK(m.predicted.done); /* all was looked at */
    for (size_t row = 0; row < ROWS; row++) {
        bool bad = row == 0 || row == 70 || row == ROWS - 1;
        CHECK_INT(is_untouched(&m, row), bad);
    }
    CHECK_INT(m.bad, 2);
    CHECK_STR(m.bad_split, "test");
    close_model(&m);
}

/* In batches of so many; three of 64 are all of them. */
static void halt_after_batches(const stk_backend *backend, size_t batch, int allowed) {
    stk_error err = {0};
    static model m;
    open_model(&m);
    m.prediction.backend = backend;
    m.batches_allowed = allowed;
    clocks_hold();
    stk_status status = predict_into(&m.prediction, m.probs, m.have, &m.predicted, &err);
    clocks_release();
    REQUIRE_OK(status, &err);
    size_t rows = (size_t)allowed * batch;
    for (size_t row = 0; row < ROWS; row++) {
        CHECK_INT(is_untouched(&m, row), row >= rows);
    }
    CHECK_INT(m.predicted.done, rows >= ROWS);
    close_model(&m);
}

static void halting_leaves_rows_alone(void) {
    for (int allowed = 0; allowed <= BATCHES; allowed++) {
        halt_after_batches(&counting, PASSED, allowed);
    }
}

/* ---- pictures that take long ---- */

#define SLOW_ROW 3

static void write_slow(const model *m, blob png) {
    stk_error err = {0};
    char path[320];
    snprintf(path, sizeof path, "%s/slow.png", m->pictures.root);
    must(stk_file_write(path, png.bytes, png.size, &err), &err);
    free_blob(&png);
}

static bool others_are_there(void *user) {
    const model *m = user;
    size_t rows = 0;
    for (size_t row = 0; row < ROWS; row++) {
        rows += m->have[row];
    }
    return rows >= ROWS - 1;
}

/* In the first batch, where all others would wait for it. */
static void slow_pictures_do_not_hold_up_others(void) {
    stk_error err = {0};
    static model m;
    stk_sample samples[ROWS];
    open_model(&m);
    write_slow(&m, make_slow_png());
    memcpy(samples, m.pictures.samples, sizeof samples);
    samples[SLOW_ROW].path = "slow.png";
    m.prediction.data.samples = samples;
    m.prediction.data.halt = (stk_halt){others_are_there, &m};
    REQUIRE_OK(predict_into(&m.prediction, m.probs, m.have, &m.predicted, &err), &err);
    CHECK(!m.predicted.done);
    for (size_t row = 0; row < ROWS; row++) {
        CHECK_INT(is_untouched(&m, row), row == SLOW_ROW);
    }
    CHECK_INT(m.bad, 0);
    close_model(&m);
}

static void note_entries(void *user, const stk_batch *batch, const size_t *entries,
                         const float *logits) {
    model *m = user;
    (void)logits;
    for (size_t i = 0; i < batch->count; i++) {
        m->have[entries[i]] = !batch->bad[i];
    }
}

static void note_bad(void *user, const char *path, const char *reason) {
    CHECK_STR(path, "slow.png");
    CHECK_CONTAINS(reason, "too long");
    ((model *)user)->bad++;
}

/* A picture beyond the final limit is told as bad, and the evaluation is complete without it. */
static void slow_pictures_can_be_given_up(void) {
    stk_error err = {0};
    stk_compile_config config = {.batch = STK_PREDICT_BATCH};
    static model m;
    stk_sample samples[ROWS];
    bool done = false;
    open_model(&m);
    write_slow(&m, make_slow_png());
    memcpy(samples, m.pictures.samples, sizeof samples);
    samples[SLOW_ROW].path = "slow.png";
    stk_evaluation evaluation = {.backend = &stk_cpu_backend,
                                 .answers = CLASSES,
                                 .data = m.prediction.data,
                                 .final_limit_ns = 100000000,
                                 .on_batch = note_entries,
                                 .bad = note_bad,
                                 .user = &m};
    evaluation.data.samples = samples;
    evaluation.data.batch = STK_PREDICT_BATCH;
    REQUIRE_OK(stk_cpu_backend.compile(&evaluation.exec, m.state, &config, &err), &err);
    REQUIRE_OK(stk_evaluate(&evaluation, &done, &err), &err);
    CHECK(done);
    for (size_t row = 0; row < ROWS; row++) {
        CHECK_INT(m.have[row], row != SLOW_ROW);
    }
    CHECK_INT(m.bad, 1);
    stk_cpu_backend.exec_free(evaluation.exec);
    close_model(&m);
}

/* Where there is time all are seen, in every view; those that are put aside are not mixed up. */
static void slow_pictures_come_last(void) {
    stk_error err = {0};
    stk_exec *exec = NULL;
    stk_compile_config config = {.batch = 1};
    static model m;
    stk_sample samples[ROWS];
    size_t indices[ROWS];
    open_model(&m);
    int side = check_is_quick() ? 2500 : 5000;
    write_slow(&m, make_flat_png(side, side, PNG_INTERLACE_NONE));
    memcpy(samples, m.pictures.samples, sizeof samples);
    for (size_t row = 0; row < ROWS; row++) {
        indices[row] = ROWS - 1 - row;
        if (row % 41 == SLOW_ROW) {
            samples[row].path = "slow.png";
        }
    }
    m.prediction.data.samples = samples;
    m.prediction.data.indices = indices;
    m.prediction.views = 2;
    REQUIRE_OK(predict_into(&m.prediction, m.probs, m.have, &m.predicted, &err), &err);
    CHECK(m.predicted.done && m.predicted.views == 2);
    REQUIRE_OK(stk_cpu_backend.compile(&exec, m.state, &config, &err), &err);
    m.pictures.samples = samples;
    for (size_t row = 0; row < ROWS; row++) {
        double views[2][CLASSES];
        for (int view = 0; view < 2; view++) {
            m.prediction.data.transform.view = view;
            infer_by_hand(&m, exec, indices[row], views[view]);
        }
        CHECK(m.have[row]);
        for (size_t c = 0; c < CLASSES; c++) {
            CHECK_NEAR(m.probs[row * CLASSES + c], (views[0][c] + views[1][c]) / 2, 1e-6);
        }
    }
    CHECK_INT(m.bad, 0);
    stk_cpu_backend.exec_free(exec);
    close_model(&m);
}

static float on_its_way[STK_PREDICT_BATCH * CLASSES];

static stk_status ahead_infer(stk_exec *exec, const uint8_t *images, const float *features,
                              size_t count, float *logits, stk_error *err) {
    CHECK(logits == NULL);
    return counting_infer(exec, images, features, count, on_its_way, err);
}

static stk_status ahead_fetch(stk_exec *exec, float *logits, stk_error *err) {
    (void)exec;
    (void)err;
    memcpy(logits, on_its_way, sizeof on_its_way);
    return STK_OK;
}

/* A device that answers a batch later has answered the last one, too, when it is halted there. */
static void halting_behind_the_last_batch(void) {
    stk_backend ahead = stk_cpu_backend;
    ahead.infer = ahead_infer;
    ahead.fetch = ahead_fetch;
    for (int allowed = 0; allowed <= 3; allowed++) {
        halt_after_batches(&ahead, STK_PREDICT_BATCH, allowed);
    }
}

/* ---- views ---- */

static bool wants_view(void *user, const stk_predicted *so_far) {
    const model *m = user;
    CHECK(so_far->pass_s >= 0 && so_far->start_s >= 0);
    return so_far->views < m->views_wanted;
}

/* What each view alone says, by hand. */
static void views_are_averaged(void) {
    static const int views[] = {2, 3, STK_TRANSFORM_VIEWS};
    for (size_t i = 0; i < 3; i++) {
        stk_error err = {0};
        stk_exec *exec = NULL;
        stk_compile_config config = {.batch = 1};
        static model m;
        open_model(&m);
        m.prediction.views = views[i];
        m.prediction.data.count = STK_PREDICT_BATCH + 3;
        REQUIRE_OK(predict_into(&m.prediction, m.probs, m.have, &m.predicted, &err), &err);
        CHECK(m.predicted.done && m.predicted.pass_s >= 0);
        CHECK_INT(m.predicted.views, views[i]);
        REQUIRE_OK(stk_cpu_backend.compile(&exec, m.state, &config, &err), &err);
        for (size_t row = 0; row < m.prediction.data.count; row += 11) {
            double expected[CLASSES] = {0};
            for (int view = 0; view < views[i]; view++) {
                double said[CLASSES];
                m.prediction.data.transform.view = view;
                infer_by_hand(&m, exec, row, said);
                for (size_t c = 0; c < CLASSES; c++) {
                    expected[c] += said[c] / views[i];
                }
            }
            for (size_t c = 0; c < CLASSES; c++) {
                CHECK_NEAR(m.probs[row * CLASSES + c], expected[c], 1e-6);
            }
        }
        stk_cpu_backend.exec_free(exec);
        close_model(&m);
    }
}

static uint64_t hash_of(int views, int wanted) {
    stk_error err = {0};
    static model m;
    open_model(&m);
    m.prediction.views = views;
    m.prediction.wants_view = wants_view;
    m.prediction.user = &m;
    m.views_wanted = wanted;
    must(predict_into(&m.prediction, m.probs, m.have, &m.predicted, &err), &err);
    int made = views > wanted ? wanted : views > 1 ? views : 1;
    CHECK_INT(m.predicted.views, made);
    CHECK_INT(m.predicted.done, views <= made);
    close_model(&m);
    return hash_bytes(HASH_START, m.probs, sizeof m.probs);
}

static void views_can_be_given_up(void) {
    uint64_t one = hash_of(0, 8);
    uint64_t two = hash_of(2, 8);
    CHECK(hash_of(1, 8) == one);
    CHECK(hash_of(4, 1) == one); /* the first view is there bit for bit */
    CHECK(hash_of(4, 2) == two);
    CHECK(one != two);
}

/* Halted in the second view: rows before that have two, the others one. */
static void halting_in_a_later_view(void) {
    stk_error err = {0};
    static model one;
    static model both;
    static model m;
    model *models[] = {&one, &both, &m};
    for (int i = 0; i < 3; i++) {
        open_model(models[i]);
        models[i]->prediction.views = i == 0 ? 1 : 2;
        models[i]->batches_allowed = i == 2 ? BATCHES + 1 : -1;
        clocks_hold();
        stk_status status = predict_into(&models[i]->prediction, models[i]->probs, models[i]->have,
                                         &models[i]->predicted, &err);
        clocks_release();
        REQUIRE_OK(status, &err);
    }
    CHECK(!m.predicted.done);
    CHECK_INT(m.predicted.views, 1);
    for (size_t i = 0; i < ROWS; i++) {
        const model *same = i < PASSED ? &both : &one;
        CHECK(m.have[i]); /* none has nothing */
        CHECK(memcmp(m.probs + i * CLASSES, same->probs + i * CLASSES, CLASSES * sizeof *m.probs) ==
              0);
    }
    for (int i = 0; i < 3; i++) {
        close_model(models[i]);
    }
}

static void samples_without_memory(void) {
    stk_status status = STK_ERR_MEMORY;
    int failures = 0;
    static model m;
    open_model(&m);
    m.prediction.data.count = 10;
    for (int64_t n = 0; n < 2000 && status != STK_OK; n++) {
        stk_error err = {0};
        stk_mem_fail_after(n);
        status = predict_into(&m.prediction, m.probs, m.have, &m.predicted, &err);
        stk_mem_fail_after(-1);
        failures += status != STK_OK;
        CHECK(status == STK_OK || status == STK_ERR_MEMORY);
        CHECK_INT(m.predicted.done, status == STK_OK);
    }
    CHECK_INT(status, STK_OK);
    CHECK(failures > 10);
    close_model(&m);
}

/* A device that has memory for so many pictures only, and for so many batches of those. */
static size_t most_pictures;
static int batches_left;
static size_t compiled[16];
static int compiles;

static stk_status scarce_compile(stk_exec **exec, stk_state *state,
                                 const stk_compile_config *config, stk_error *err) {
    if (compiles < 16) {
        compiled[compiles++] = config->batch;
    }
    return config->batch <= most_pictures
               ? stk_cpu_backend.compile(exec, state, config, err)
               : STK_FAIL(err, STK_ERR_MEMORY, "no memory for %zu; use less", config->batch);
}

static stk_status scarce_infer(stk_exec *exec, const uint8_t *images, const float *features,
                               size_t count, float *logits, stk_error *err) {
    return batches_left-- != 0 ? stk_cpu_backend.infer(exec, images, features, count, logits, err)
                               : STK_FAIL(err, STK_ERR_MEMORY, "no memory to infer; use less");
}

static char decided[256];

static void on_decision(void *user, const stk_event_decision *event) {
    (void)user;
    snprintf(decided, sizeof decided, "%s: %s", event->what, event->why);
}

static void memory_for_fewer_pictures(void) {
    static const struct {
        size_t batch, most;
        int batches; /* before there is no memory for one; -1: there always is */
        int views;
        stk_status status;
        size_t used;
        int compiles;
    } cases[] = {
        {64, 64, -1, 1, STK_OK, 64, 1},
        {64, 63, -1, 1, STK_OK, 32, 2},
        {64, 5, -1, 1, STK_OK, 4, 5},
        {16, 16, -1, 1, STK_OK, 16, 1},
        {64, 0, -1, 1, STK_ERR_MEMORY, 1, 7},
        {64, 64, 1, 1, STK_OK, 32, 2},
        {64, 64, BATCHES + 1, 2, STK_OK, 32, 2}, /* in the second view: all of it again */
    };
    stk_backend scarce = stk_cpu_backend;
    static model whole[2];
    scarce.compile = scarce_compile;
    scarce.infer = scarce_infer;
    for (int views = 1; views <= 2; views++) {
        model *m = &whole[views - 1];
        stk_error err = {0};
        open_model(m);
        m->prediction.views = views;
        REQUIRE_OK(predict_into(&m->prediction, m->probs, m->have, &m->predicted, &err), &err);
        CHECK_INT(m->predicted.batch, STK_PREDICT_BATCH);
    }
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        static model m;
        stk_error err = {0};
        open_model(&m);
        m.observer.decision = on_decision;
        m.prediction.backend = &scarce;
        m.prediction.compile.batch = cases[i].batch;
        m.prediction.views = cases[i].views;
        most_pictures = cases[i].most;
        batches_left = cases[i].batches;
        compiles = 0;
        decided[0] = '\0';
        stk_status status = predict_into(&m.prediction, m.probs, m.have, &m.predicted, &err);
        CHECK_INT(status, cases[i].status);
        CHECK_INT(m.predicted.done, status == STK_OK);
        CHECK_INT(m.predicted.batch, cases[i].used);
        CHECK_INT(compiles, cases[i].compiles);
        CHECK_INT(decided[0] != '\0', cases[i].compiles > 1);
        for (size_t k = 0; status == STK_OK && k < ROWS * CLASSES; k++) {
            CHECK_NEAR(m.probs[k], whole[cases[i].views - 1].probs[k], 1e-6);
        }
        if (cases[i].used == 32 && cases[i].batches < 0) {
            CHECK_STR(decided, "prediction in batches of 32 instead of 64: no memory for 64");
        }
        close_model(&m);
    }
    close_model(&whole[0]);
    close_model(&whole[1]);
}

/* The same bits as with an executable of its own; it is neither compiled nor halved nor freed. */
static void an_executable_that_is_given(void) {
    stk_backend scarce = stk_cpu_backend;
    static model own, given;
    stk_exec *exec = NULL;
    stk_error err = {0};
    scarce.compile = scarce_compile;
    scarce.infer = scarce_infer;
    compiles = 0;
    open_model(&own);
    REQUIRE_OK(predict_into(&own.prediction, own.probs, own.have, &own.predicted, &err), &err);
    for (int lacking = 1; lacking >= 0; lacking--) { /* in the second batch, or nowhere */
        open_model(&given);
        REQUIRE_OK(stk_cpu_backend.compile(&exec, given.state,
                                           &(stk_compile_config){.batch = STK_PREDICT_BATCH}, &err),
                   &err);
        given.prediction.backend = &scarce;
        given.prediction.exec = exec;
        batches_left = lacking ? 1 : -1;
        for (int again = lacking; again < 2; again++) {
            stk_status status =
                predict_into(&given.prediction, given.probs, given.have, &given.predicted, &err);
            CHECK_INT(status, lacking ? STK_ERR_MEMORY : STK_OK);
            CHECK_INT(given.predicted.batch, STK_PREDICT_BATCH);
        }
        CHECK(lacking || memcmp(own.probs, given.probs, sizeof own.probs) == 0);
        stk_cpu_backend.exec_free(exec);
        close_model(&given);
    }
    CHECK_INT(compiles, 0);
    close_model(&own);
}

static const check_test tests[] = {
    TEST(an_executable_that_is_given),
    TEST(ballot_averages),
    TEST(ballot_priors),
    TEST(ballot_with_early_predictions),
    TEST(ballot_without_rows_or_memory),
    TEST(ballot_weighs),
    TEST(weights_of_scores),
    TEST(samples_equal_inference_by_hand),
    TEST(temperature_divides_logits),
    TEST(same_bits_again),
    TEST(missing_and_bad_rows_are_left_alone),
    TEST(halting_leaves_rows_alone),
    TEST(slow_pictures_do_not_hold_up_others),
    TEST(slow_pictures_can_be_given_up),
    TEST(slow_pictures_come_last),
    TEST(halting_behind_the_last_batch),
    TEST(views_are_averaged),
    TEST(views_can_be_given_up),
    TEST(halting_in_a_later_view),
    TEST(samples_without_memory),
    TEST(memory_for_fewer_pictures),
};

CHECK_MAIN(tests)
