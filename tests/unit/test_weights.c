/*
 * test_weights.c - checkpoints: what is written reads back bit for bit and lies in the file as
 * PyTorch has it; files that lie are refused.
 */
#include "check.h"

#include <signal.h>
#include <stdint.h>
#include <sys/resource.h>

#include "base/files/file.h"
#include "base/mem.h"
#include "base/numbers/rng.h"
#include "tensor_files.h"
#include "weights/checkpoint.h"

/* ---- a device that is a plain array and may fail ---- */

struct stk_state {
    const stk_graph *graph;
    float *values;
    const float *averages; /* NULL: none are kept */
    int reads_left;        /* negative: no limit */
};

static stk_status fake_read(stk_state *state, stk_tensor_kind kind, int param, float *values,
                            stk_error *err) {
    const stk_param *p = &state->graph->params[param];
    const float *from = kind == STK_TENSOR_VALUE ? state->values
                        : kind == STK_TENSOR_EMA ? state->averages
                                                 : NULL;
    if (from == NULL || state->reads_left == 0) {
        snprintf(err->message, sizeof err->message, "the device is gone");
        return err->status = STK_ERR_DEVICE;
    }
    state->reads_left--;
    memcpy(values, from + p->offset, p->count * sizeof *values);
    return STK_OK;
}

static stk_status fake_write(stk_state *state, stk_tensor_kind kind, int param, const float *values,
                             stk_error *err) {
    const stk_param *p = &state->graph->params[param];
    (void)err;
    (void)kind;
    memcpy(state->values + p->offset, values, p->count * sizeof *values);
    return STK_OK;
}

static const stk_backend fake = {
    .name = "fake", .state_read = fake_read, .state_write = fake_write};

/* A convolution of 2 x 3 x 3 x 3, a norm and a classifier. */
static stk_graph *small_graph(int classes) {
    stk_graph *g = NULL;
    stk_error err = {0};
    if (stk_graph_new(&g, 6, classes, &err) != STK_OK) {
        exit(1);
    }
    int x = stk_graph_conv(g, stk_graph_input(g), "conv1", 2, 3, 1, 1);
    x = stk_graph_avg_pool(g, stk_graph_batch_norm(g, x, "bn1", STK_INIT_ONE));
    if (stk_graph_finish(g, stk_graph_linear(g, x, "fc", classes), &err) != STK_OK) {
        exit(1);
    }
    return g;
}

typedef struct setting {
    stk_graph *graph;
    stk_state state;
    stk_checkpoint_info info;
    char folder[256];
    char path[300];
} setting;

static char *class_names[] = {(char[]){"cat"}, (char[]){"a \"dog\", \xC3\xBC"}, (char[]){"x\ny"}};

static setting prepare(void) {
    setting s = {.graph = small_graph(3)};
    s.state = (stk_state){s.graph, stk_mem_raw(s.graph->param_elements, sizeof(float)), NULL, -1};
    for (size_t i = 0; i < s.graph->param_elements; i++) {
        s.state.values[i] = (float)i;
    }
    s.info = (stk_checkpoint_info){.model = class_names[0],
                                   .classes = class_names,
                                   .class_count = 3,
                                   .img_size = 64,
                                   .crop_fraction = 0.95,
                                   .native = true,
                                   .interpolation = STK_BICUBIC,
                                   .mean = {0.485f, 0.456f, 0.406f},
                                   .std = {0.229f, 0.224f, 0.225f},
                                   .acc1 = 93.75,
                                   .epoch = 7};
    snprintf(s.folder, sizeof s.folder, "%s", check_folder());
    snprintf(s.path, sizeof s.path, "%s/best.safetensors", s.folder);
    return s;
}

static void tear_down(setting *s) {
    stk_mem_free(s->state.values);
    stk_graph_free(s->graph);
}

static stk_status save(setting *s, stk_error *err) {
    return stk_checkpoint_save(s->path, &fake, &s->state, s->graph, &s->info, err);
}

static uint32_t bits(float value) {
    uint32_t out;
    memcpy(&out, &value, sizeof out);
    return out;
}

/* ---- there and back ---- */

/* Any bits come back: tiny and huge numbers, infinities, the sign of zero, NaN with its payload. */
static void numbers_come_back_bit_for_bit(void) {
    setting s = prepare();
    stk_error err = {0};
    stk_rng rng = stk_rng_make(3, STK_RNG_TEST, 0, 0);
    size_t count = s.graph->param_elements;
    float *kept = stk_mem_raw(count, sizeof *kept);
    REQUIRE(kept != NULL);
    for (size_t i = 0; i < count; i++) {
        uint32_t pattern = (uint32_t)stk_rng_u64(&rng);
        memcpy(&s.state.values[i], &pattern, sizeof pattern);
    }
    s.state.values[0] = -0.0f;
    s.state.values[1] = INFINITY;
    memcpy(kept, s.state.values, count * sizeof *kept);
    REQUIRE_OK(save(&s, &err), &err);
    memset(s.state.values, 0, count * sizeof *kept);
    REQUIRE_OK(stk_checkpoint_load(s.path, &fake, &s.state, s.graph, &err), &err);
    CHECK(memcmp(kept, s.state.values, count * sizeof *kept) == 0);
    stk_mem_free(kept);
    tear_down(&s);
}

static void averages_are_saved_where_asked(void) {
    setting s = prepare();
    stk_error err = {0};
    size_t count = s.graph->param_elements;
    float *averages = stk_mem_raw(count, sizeof *averages);
    REQUIRE(averages != NULL);
    for (size_t i = 0; i < count; i++) {
        averages[i] = s.state.values[i] + 1000;
    }
    s.info.averaged = true;
    CHECK_INT(save(&s, &err), STK_ERR_DEVICE); /* the state has none */
    s.state.averages = averages;
    err = (stk_error){0};
    REQUIRE_OK(save(&s, &err), &err);
    REQUIRE_OK(stk_checkpoint_load(s.path, &fake, &s.state, s.graph, &err), &err);
    CHECK(memcmp(averages, s.state.values, count * sizeof *averages) == 0);
    stk_mem_free(averages);
    tear_down(&s);
}

static void metadata_comes_back(void) {
    setting s = prepare();
    stk_error err = {0};
    stk_checkpoint_info info;
    REQUIRE_OK(save(&s, &err), &err);
    REQUIRE_OK(stk_checkpoint_info_read(s.path, &info, &err), &err);
    CHECK_STR(info.model, "cat");
    CHECK_INT(info.class_count, 3);
    for (int i = 0; i < 3; i++) {
        CHECK_STR(info.classes[i], class_names[i]);
        CHECK_INT(bits(info.mean[i]), bits(s.info.mean[i]));
        CHECK_INT(bits(info.std[i]), bits(s.info.std[i]));
    }
    CHECK_INT(info.img_size, 64);
    CHECK_INT(info.epoch, 7);
    CHECK_NEAR(info.crop_fraction, 0.95, 0);
    CHECK(info.native);
    CHECK_INT(info.interpolation, STK_BICUBIC);
    CHECK_NEAR(info.acc1, 93.75, 0);
    CHECK_NEAR(info.calibration.temperature, 0, 0);
    stk_checkpoint_info_free(&info);
    s.info.acc1 = NAN;
    s.info.epoch = 0;
    s.info.native = false;
    s.info.calibration = (stk_calibration){.temperature = 0.8,
                                           .rule = {STK_LABEL_WEIGHTS, 3, (double[]){1, 2, 1.5}}};
    REQUIRE_OK(save(&s, &err), &err);
    REQUIRE_OK(stk_checkpoint_info_read(s.path, &info, &err), &err);
    CHECK(isnan(info.acc1));
    CHECK_INT(info.epoch, 0);
    CHECK(!info.native);
    CHECK_NEAR(info.calibration.temperature, 0.8, 0);
    REQUIRE(info.calibration.rule.count == 3);
    CHECK_NEAR(info.calibration.rule.numbers[2], 1.5, 0);
    CHECK_INT(info.calibration.pool, STK_POOL_MEAN);
    stk_checkpoint_info_free(&info);
    s.info.calibration = (stk_calibration){.pool = STK_POOL_MAX,
                                           .rows = 30,
                                           .pool_scores = {0.5, 0.625}, /* without a temperature */
                                           .means = 4,
                                           .means_gain = 0.125};
    REQUIRE_OK(save(&s, &err), &err);
    REQUIRE_OK(stk_checkpoint_info_read(s.path, &info, &err), &err);
    CHECK_NEAR(info.calibration.temperature, 1, 0);
    CHECK_INT(info.calibration.pool, STK_POOL_MAX);
    CHECK_INT(info.calibration.rows, 30);
    CHECK_NEAR(info.calibration.pool_scores[STK_POOL_MAX], 0.625, 0);
    stk_checkpoint_info_free(&info);
    tear_down(&s);
}

/* Memory has (O, kh, kw, I), the file (O, I, kh, kw) as PyTorch has it. */
static void convolutions_lie_as_in_pytorch(void) {
    setting s = prepare();
    stk_error err = {0};
    stk_tensor_file file;
    REQUIRE_OK(save(&s, &err), &err);
    REQUIRE_OK(stk_tensors_open(&file, s.path, &err), &err);
    const stk_tensor *conv = stk_tensors_find(&file, "conv1.weight");
    REQUIRE(conv != NULL);
    CHECK_STR(conv->dtype, "F32");
    CHECK_INT(conv->rank, 4);
    CHECK(conv->shape[0] == 2 && conv->shape[1] == 3 && conv->shape[2] == 3 && conv->shape[3] == 3);
    CHECK_INT(conv->bytes, 216);
    static const float begin[] = {0, 3, 6, 9, 12, 15, 18, 21, 24, 1, 4, 7};
    float *numbers = numbers_of(&file, conv);
    CHECK(memcmp(numbers, begin, sizeof begin) == 0);
    for (int o = 0; o < 2; o++) {
        for (int i = 0; i < 3; i++) {
            for (int tap = 0; tap < 9; tap++) {
                CHECK_INT(numbers[(o * 3 + i) * 9 + tap], o * 27 + tap * 3 + i);
            }
        }
    }
    const stk_tensor *fc = stk_tensors_find(&file, "fc.weight");
    REQUIRE(fc != NULL);
    CHECK(fc->rank == 2 && fc->shape[0] == 3 && fc->shape[1] == 2);
    stk_mem_free(numbers);
    numbers = numbers_of(&file, fc);
    CHECK_INT(numbers[0], 54 + 4 * 2);
    stk_mem_free(numbers);
    CHECK_INT(file.count, 7);
    CHECK(stk_tensors_find(&file, "bn1.num_batches_tracked") == NULL);
    CHECK(stk_tensors_find(&file, "conv1") == NULL);
    CHECK(stk_tensors_note(&file, "nothing") == NULL);
    stk_tensors_close(&file);
    tear_down(&s);
}

static void a_file_cut_anywhere_is_refused(void) {
    setting s = prepare();
    stk_error err = {0};
    char *data = NULL;
    size_t size = 0;
    stk_tensor_file file;
    REQUIRE_OK(save(&s, &err), &err);
    REQUIRE_OK(stk_file_read(s.path, 0, &data, &size, &err), &err);
    REQUIRE(size > 500);
    for (size_t cut = 0; cut < size; cut++) {
        stk_error cause = {0};
        if (stk_tensors_parse(&file, "cut", data, cut, &cause) != STK_ERR_DATA) {
            CHECK_FAIL("%zu of %zu bytes: %s", cut, size, cause.message);
        }
    }
    REQUIRE_OK(stk_tensors_parse(&file, "whole", data, size, &err), &err);
    stk_tensors_close(&file);
    /* The same through a file, where it ends in the header and in the numbers. */
    for (size_t cut = 0; cut < size; cut += size / 7) {
        stk_error cause = {0};
        stk_checkpoint_info info;
        REQUIRE_OK(stk_file_write(s.path, data, cut, &err), &err);
        CHECK_INT(stk_tensors_open(&file, s.path, &cause), STK_ERR_DATA);
        CHECK_CONTAINS(cause.message, s.path);
        CHECK_INT(stk_checkpoint_info_read(s.path, &info, NULL), STK_ERR_DATA);
        CHECK(info.model == NULL && info.classes == NULL);
        CHECK_INT(stk_checkpoint_load(s.path, &fake, &s.state, s.graph, NULL), STK_ERR_DATA);
    }
    stk_mem_free(data);
    tear_down(&s);
}

static void a_missing_checkpoint_is_told(void) {
    setting s = prepare();
    stk_checkpoint_info info;
    stk_error err = {0};
    CHECK_INT(stk_checkpoint_info_read(s.path, &info, &err), STK_ERR_STORAGE);
    CHECK_CONTAINS(err.message, s.path);
    CHECK_INT(stk_checkpoint_load(s.path, &fake, &s.state, s.graph, NULL), STK_ERR_STORAGE);
    tear_down(&s);
}

/* ---- files that do not fit the model ---- */

static void another_model_is_named(void) {
    setting s = prepare();
    stk_error err = {0};
    REQUIRE_OK(save(&s, &err), &err);
    stk_graph *more = small_graph(4);
    stk_state state = {more, stk_mem_new(more->param_elements, sizeof(float)), NULL, -1};
    CHECK_INT(stk_checkpoint_load(s.path, &fake, &state, more, &err), STK_ERR_DATA);
    CHECK_CONTAINS(err.message, s.path);
    CHECK_CONTAINS(err.message, "2 tensors differ");
    CHECK_CONTAINS(err.message, "fc.weight (another shape or type), fc.bias");
    for (size_t i = 0; i < more->param_elements; i++) {
        REQUIRE(state.values[i] == 0); /* nothing is loaded by half */
    }
    stk_mem_free(state.values);
    stk_graph_free(more);
    tear_down(&s);
}

static void missing_and_wrong_tensors_are_named(void) {
    setting s = prepare();
    stk_error err = {0};
    static const float numbers[54] = {0};
    made_tensor tensors[] = {
        {.name = "conv1.weight", .rank = 4, .shape = {2, 3, 3, 3}, .data = numbers, .bytes = 216},
        {.name = "bn1.weight", .rank = 2, .shape = {2, 1}, .data = numbers, .bytes = 8},
        {.name = "fc.bias", .rank = 1, .shape = {3}, .data = numbers, .bytes = 12},
    };
    REQUIRE_OK(write_tensors(s.path, tensors, 3, NULL, 0, &err), &err);
    CHECK_INT(stk_checkpoint_load(s.path, &fake, &s.state, s.graph, &err), STK_ERR_DATA);
    CHECK_CONTAINS(err.message, "5 tensors differ");
    CHECK_CONTAINS(err.message, "bn1.weight (another shape or type)");
    CHECK_CONTAINS(err.message, "bn1.running_var (missing)");
    CHECK(strstr(err.message, "conv1.weight") == NULL);
    CHECK(strstr(err.message, "and more") == NULL);
    memset(&err, 0, sizeof err);
    REQUIRE_OK(write_tensors(s.path, NULL, 0, NULL, 0, &err), &err);
    CHECK_INT(stk_checkpoint_load(s.path, &fake, &s.state, s.graph, &err), STK_ERR_DATA);
    CHECK_CONTAINS(err.message, "7 tensors differ");
    CHECK_CONTAINS(err.message, "and more");
    tear_down(&s);
}

/* Integers of the right shape and size are not weights. */
static void another_type_is_refused(void) {
    setting s = prepare();
    stk_error err = {0};
    char *data = NULL;
    size_t size = 0;
    REQUIRE_OK(save(&s, &err), &err);
    REQUIRE_OK(stk_file_read(s.path, 0, &data, &size, &err), &err);
    char *dtype = strstr(data + 8, "\"F32\"");
    REQUIRE(dtype != NULL);
    dtype[1] = 'I';
    REQUIRE_OK(stk_file_write(s.path, data, size, &err), &err);
    CHECK_INT(stk_checkpoint_load(s.path, &fake, &s.state, s.graph, &err), STK_ERR_DATA);
    CHECK_CONTAINS(err.message, "1 tensors differ: conv1.weight");
    stk_mem_free(data);
    tear_down(&s);
}

/* PyTorch writes one number more per norm; what the model does not ask for is passed over. */
static void tensors_too_many_do_no_harm(void) {
    setting s = prepare();
    stk_error err = {0};
    stk_tensor_file file;
    REQUIRE_OK(save(&s, &err), &err);
    REQUIRE_OK(stk_tensors_open(&file, s.path, &err), &err);
    made_tensor more[8];
    static const float one = 1;
    REQUIRE(file.count == 7);
    for (size_t i = 0; i < 7; i++) {
        const stk_tensor *t = &file.tensors[i];
        more[i] = (made_tensor){.name = t->name,
                                .rank = t->rank,
                                .data = numbers_of(&file, t),
                                .bytes = (size_t)t->bytes};
        memcpy(more[i].shape, t->shape, sizeof t->shape);
    }
    more[7] = (made_tensor){.name = "bn1.num_batches_tracked", .data = &one, .bytes = 4};
    REQUIRE_OK(write_tensors(s.path, more, 8, NULL, 0, &err), &err);
    for (size_t i = 0; i < 7; i++) {
        stk_mem_free((void *)(uintptr_t)more[i].data);
    }
    memset(s.state.values, 0, s.graph->param_elements * sizeof(float));
    REQUIRE_OK(stk_checkpoint_load(s.path, &fake, &s.state, s.graph, &err), &err);
    for (size_t i = 0; i < s.graph->param_elements; i++) {
        REQUIRE(s.state.values[i] == (float)i);
    }
    stk_tensors_close(&file);
    tear_down(&s);
}

static void bad_metadata_is_refused(void) {
    static const struct {
        const char *key;
        const char *text;
        const char *part; /* NULL: it is accepted */
    } cases[] = {
        {"model", NULL, "'model'"},
        {"classes", NULL, "'classes'"},
        {"classes", "[]", "'classes'"},
        {"classes", "{}", "'classes'"},
        {"classes", "[\"a\"", "'classes'"},
        {"classes", "[\"a\", 1]", "class 1"},
        {"img_size", NULL, "'img_size'"},
        {"img_size", "0", "'img_size'"},
        {"img_size", "99999999999", "'img_size'"},
        {"mean", NULL, "'mean'"},
        {"mean", "[1, 2]", "'mean'"},
        {"mean", "[1, 2, 3", "'mean'"},
        {"mean", "[1, 2, nan]", "'mean'"},
        {"mean", "[1, 2, 1e99]", "'mean'"},
        {"mean", "[1, 2, \"3\"]", "'mean'"},
        {"std", "[1, 2, 0]", "'std'"},
        {"std", "[1, -2, 1]", "'std'"},
        {"mean", "[-1, 0, 0.5]", NULL},
        {"epoch", "99999999999", NULL},
        {"crop_fraction", "-3", NULL},
        {"interpolation", NULL, NULL}, /* as in files of before it was told */
        {"interpolation", "sharp", NULL},
        {"val/acc1", "inf", NULL},
        {"calibration", NULL, NULL}, /* as in files of before it was fitted */
        {"calibration", "{\"temperature\": 1e9, \"rule\": \"likeliest\", \"numbers\": []}", NULL},
        {"calibration", "{", NULL},
        {"nothing", NULL, NULL},
    };
    char path[300];
    snprintf(path, sizeof path, "%s/m.safetensors", check_folder());
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        stk_tensor_note notes[] = {{"model", "m"},
                                   {"classes", "[\"a\", \"b\"]"},
                                   {"img_size", "64"},
                                   {"mean", "[0, 0, 0]"},
                                   {"std", "[1, 1, 1]"},
                                   {"epoch", "1"},
                                   {"crop_fraction", "1"},
                                   {"val/acc1", "50"},
                                   {"interpolation", "bilinear"},
                                   {"calibration", ""}};
        stk_error err = {0};
        stk_checkpoint_info info;
        for (int i = 0; i < 10; i++) {
            if (strcmp(notes[i].key, cases[c].key) == 0) {
                notes[i].key = cases[c].text != NULL ? notes[i].key : "other";
                notes[i].text = cases[c].text != NULL ? cases[c].text : "x";
            }
        }
        REQUIRE_OK(write_tensors(path, NULL, 0, notes, 10, &err), &err);
        stk_status status = stk_checkpoint_info_read(path, &info, &err);
        CHECK_INT(status, cases[c].part != NULL ? STK_ERR_DATA : STK_OK);
        CHECK_CONTAINS(err.message, cases[c].part != NULL ? cases[c].part : "");
        CHECK(status != STK_OK || (info.epoch <= 1 && info.crop_fraction == 1));
        CHECK(status != STK_OK || info.interpolation == STK_BILINEAR);
        CHECK(status != STK_OK || info.calibration.temperature == 0);
        stk_checkpoint_info_free(&info);
    }
}

/* ---- failures ---- */

static bool same_file(const char *path, const char *data, size_t size) {
    char *now = NULL;
    size_t length = 0;
    bool same = stk_file_read(path, 0, &now, &length, NULL) == STK_OK && length == size &&
                memcmp(now, data, size) == 0;
    stk_mem_free(now);
    return same;
}

/* Entries of a folder, hidden ones too. */
static int entries(const char *folder) {
    char command[600];
    int count = -1;
    snprintf(command, sizeof command, "ls -A '%s' | wc -l", folder);
    FILE *pipe = popen(command, "r");
    if (pipe != NULL) {
        count = fscanf(pipe, "%d", &count) == 1 ? count : -1;
        pclose(pipe);
    }
    return count;
}

static void a_failure_keeps_the_old_file(void) {
    setting s = prepare();
    stk_error err = {0};
    char *data = NULL;
    size_t size = 0;
    REQUIRE_OK(save(&s, &err), &err);
    REQUIRE_OK(stk_file_read(s.path, 0, &data, &size, &err), &err);
    s.state.values[0] = 99;
    struct rlimit old;
    REQUIRE(getrlimit(RLIMIT_FSIZE, &old) == 0);
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    const rlim_t limits[] = {0, 4, 100, size / 2, size - 1};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        struct rlimit small = {limits[i], old.rlim_max};
        stk_error cause = {0};
        REQUIRE(setrlimit(RLIMIT_FSIZE, &small) == 0);
        stk_status status = save(&s, &cause);
        REQUIRE(setrlimit(RLIMIT_FSIZE, &old) == 0);
        CHECK_INT(status, STK_ERR_STORAGE);
        CHECK_CONTAINS(cause.message, s.path);
        CHECK(same_file(s.path, data, size));
        CHECK_INT(entries(s.folder), 1);
    }
    signal(SIGXFSZ, handler);
    for (int reads = 0; reads < 7; reads += 3) {
        stk_error cause = {0};
        s.state.reads_left = reads;
        CHECK_INT(save(&s, &cause), STK_ERR_DEVICE);
        CHECK(same_file(s.path, data, size));
    }
    CHECK_INT(entries(s.folder), 1);
    s.state.reads_left = -1;
    snprintf(s.path, sizeof s.path, "%s/no/such/folder/x", s.folder);
    CHECK_INT(save(&s, &err), STK_ERR_STORAGE);
    CHECK_CONTAINS(err.message, s.path);
    stk_mem_free(data);
    tear_down(&s);
}

static void no_memory_is_told(void) {
    setting s = prepare();
    stk_error err = {0};
    char *data = NULL;
    size_t size = 0;
    REQUIRE_OK(save(&s, &err), &err);
    REQUIRE_OK(stk_file_read(s.path, 0, &data, &size, &err), &err);
    bool done = false;
    int n = 0;
    for (; n < 2000 && !done; n++) {
        stk_checkpoint_info info = {0};
        memset(&err, 0, sizeof err);
        stk_mem_fail_after(n);
        stk_status status = save(&s, &err);
        if (status == STK_OK) {
            status = stk_checkpoint_info_read(s.path, &info, &err);
        }
        if (status == STK_OK) {
            status = stk_checkpoint_load(s.path, &fake, &s.state, s.graph, &err);
        }
        stk_mem_fail_after(-1);
        stk_checkpoint_info_free(&info);
        done = status == STK_OK;
        if (!done && (status != STK_ERR_MEMORY || err.status != STK_ERR_MEMORY)) {
            CHECK_FAIL("request %d: %s: %s", n, stk_status_name(status), err.message);
        }
        CHECK(same_file(s.path, data, size));
        CHECK_INT(err.status == STK_OK, done);
    }
    CHECK(done && n > 20);
    CHECK_INT(entries(s.folder), 1);
    stk_mem_fail_after(0);
    stk_tensor_file file;
    memset(&err, 0, sizeof err);
    CHECK_INT(stk_tensors_parse(&file, "x", data, size, &err), STK_ERR_MEMORY);
    stk_mem_fail_after(-1);
    stk_mem_free(data);
    tear_down(&s);
}

/* ---- pictures that are not RGB ---- */

static stk_graph *graph_of_channels(int channels) {
    stk_graph *g = NULL;
    stk_error err = {0};
    if (stk_graph_new(&g, 6, 3, &err) != STK_OK) {
        exit(1);
    }
    stk_graph_set_channels(g, channels);
    int x = stk_graph_avg_pool(g, stk_graph_conv(g, stk_graph_input(g), "conv1", 2, 3, 1, 1));
    if (stk_graph_finish(g, stk_graph_linear(g, x, "fc", 3), &err) != STK_OK) {
        exit(1);
    }
    return g;
}

static void channels_come_back(void) {
    const int counts[] = {1, 6, STK_MOST_CHANNELS};
    for (size_t k = 0; k < STK_COUNT(counts); k++) {
        setting s = prepare();
        stk_error err = {0};
        stk_checkpoint_info info;
        tear_down(&s);
        s.graph = graph_of_channels(counts[k]);
        s.state.graph = s.graph;
        s.state.values = stk_mem_new(s.graph->param_elements, sizeof(float));
        for (int c = 0; c < counts[k]; c++) {
            s.info.mean[c] = 0.1f + (float)c / 77;
            s.info.std[c] = 0.2f + (float)c / 99;
        }
        REQUIRE_OK(save(&s, &err), &err);
        REQUIRE_OK(stk_checkpoint_info_read(s.path, &info, &err), &err);
        CHECK_INT(info.channels, counts[k]);
        for (int c = 0; c < STK_MOST_CHANNELS; c++) {
            CHECK_INT(bits(info.mean[c]), c < counts[k] ? bits(s.info.mean[c]) : 0);
            CHECK_INT(bits(info.std[c]), c < counts[k] ? bits(s.info.std[c]) : 0);
        }
        REQUIRE_OK(stk_checkpoint_load(s.path, &fake, &s.state, s.graph, &err), &err);
        stk_checkpoint_info_free(&info);
        tear_down(&s);
    }
}

/* A file of an earlier version does not say how many channels there are. */
static void channels_of_older_files(void) {
    static const struct {
        const char *channels, *mean;
        int count; /* 0: it is refused */
    } cases[] = {{NULL, "[0.5, 0.4, 0.3]", 3}, {"3", "[0.5, 0.4, 0.3]", 3}, {"2", "[0.5, 0.4]", 2},
                 {"2", "[0.5, 0.4, 0.3]", 0},  {NULL, "[0.5, 0.4]", 0},     {"0", "[]", 0},
                 {"65", "[0.5, 0.4, 0.3]", 0}, {"three", "[1, 1, 1]", 0},   {"-1", "[1, 1, 1]", 0}};
    char path[300];
    snprintf(path, sizeof path, "%s/older.safetensors", check_folder());
    for (size_t i = 0; i < STK_COUNT(cases); i++) {
        stk_error err = {0};
        stk_checkpoint_info info;
        stk_tensor_note notes[] = {{"model", "m"},         {"classes", "[\"a\"]"},
                                   {"img_size", "64"},     {"mean", cases[i].mean},
                                   {"std", cases[i].mean}, {"channels", cases[i].channels}};
        size_t count = STK_COUNT(notes) - (cases[i].channels == NULL);
        REQUIRE_OK(write_tensors(path, NULL, 0, notes, count, &err), &err);
        stk_status status = stk_checkpoint_info_read(path, &info, &err);
        CHECK_INT(status, cases[i].count > 0 ? STK_OK : STK_ERR_DATA);
        CHECK_INT(info.channels, cases[i].count);
        stk_checkpoint_info_free(&info);
    }
}

static const check_test tests[] = {
    TEST(numbers_come_back_bit_for_bit),
    TEST(averages_are_saved_where_asked),
    TEST(metadata_comes_back),
    TEST(convolutions_lie_as_in_pytorch),
    TEST(a_file_cut_anywhere_is_refused),
    TEST(a_missing_checkpoint_is_told),
    TEST(another_model_is_named),
    TEST(missing_and_wrong_tensors_are_named),
    TEST(another_type_is_refused),
    TEST(tensors_too_many_do_no_harm),
    TEST(bad_metadata_is_refused),
    TEST(a_failure_keeps_the_old_file),
    TEST(no_memory_is_told),
    TEST(channels_come_back),
    TEST(channels_of_older_files),
};

CHECK_MAIN(tests)
