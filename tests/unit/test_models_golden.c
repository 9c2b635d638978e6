/*
 * test_models_golden.c - models against PyTorch and timm: names and shapes of all, and for one of
 * each family logits, gradients, running statistics and the losses of a short training. What is
 * expected, and the script that made it, are in tests/golden. Weights and pictures are not stored:
 * both sides compute them with uniform().
 */
#include "check.h"

#include <inttypes.h>

#include "backend/cpu/device.h"
#include "base/files/file.h"
#include "base/mem.h"
#include "base/text/csv.h"
#include "engine/backend.h"
#include "models/models.h"

#define CLASSES 5
#define PICTURES 8
#define BATCH 4
#define STEPS 30
#define FIRST_STEPS 4 /* of those, in an ordinary run */
#define PROJECTIONS 3
#define SQUARES 4 /* along a side of a picture */
#define MOMENTUM 0.9f
#define DECAY 1e-3f
#define MOST_LINES 600

#define LOGITS_LIMIT 1e-4 /* of the largest */
#define GRAD_LIMIT 1e-3   /* of the tensor's norm */
#define GRAD_FLOOR 1e-6   /* of the norm of all gradients: some would be zero but for rounding */
#define LOSS_LIMIT 0.01   /* of the loss */

static const stk_backend *const cpu = &stk_cpu_backend;

/* ---- what both sides compute ---- */

static uint64_t fnv(const char *text) {
    uint64_t value = UINT64_C(0xCBF29CE484222325);
    for (; *text != '\0'; text++) {
        value = (value ^ (unsigned char)*text) * UINT64_C(0x100000001B3);
    }
    return value;
}

/* In [-1, 1), with 24 bits: number i of those that belong to a name whose hash is `key`. */
static double uniform(uint64_t key, size_t i) {
    uint64_t x = key + ((uint64_t)i + 1) * UINT64_C(0x9E3779B97F4A7C15);
    x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
    x = x ^ (x >> 31);
    return (double)(x >> 40) * 0x1p-23 - 1;
}

static bool ends_with(const char *text, const char *tail) {
    size_t n = strlen(text);
    size_t m = strlen(tail);
    return n >= m && strcmp(text + n - m, tail) == 0;
}

/* Where element i of PyTorch's order, (O, I, kh, kw), lies in memory, (O, kh, kw, I). */
static size_t place_of(const stk_param *param, size_t i) {
    if (param->rank != 4) {
        return i;
    }
    size_t inputs = (size_t)param->shape[1];
    size_t taps = (size_t)param->shape[2] * (size_t)param->shape[3];
    size_t filter = i / (inputs * taps);
    size_t input = i / taps % inputs;
    return (filter * taps + i % taps) * inputs + input;
}

static void fill_pictures(uint8_t *out, int seed, int size) {
    char name[32];
    snprintf(name, sizeof name, "squares %d", seed);
    uint64_t squares = fnv(name);
    snprintf(name, sizeof name, "noise %d", seed);
    uint64_t noise = fnv(name);
    size_t row = 3 * (size_t)size;
    for (size_t i = 0; i < PICTURES * row * (size_t)size; i++) {
        size_t picture = i / (row * (size_t)size);
        size_t y = i / row % (size_t)size * SQUARES / (size_t)size;
        size_t x = i / 3 % (size_t)size * SQUARES / (size_t)size;
        size_t square = ((picture * SQUARES + y) * SQUARES + x) * 3 + i % 3;
        out[i] = (uint8_t)floor(128 + 80 * uniform(squares, square) + 40 * uniform(noise, i));
    }
}

/* ---- what PyTorch found ---- */

typedef struct golden_line {
    char name[96];
    double norm;
    double projections[PROJECTIONS];
    bool seen;
} golden_line;

typedef struct golden {
    int seed;        /* of the pictures */
    int size;        /* px */
    double variance; /* that running variances are near */
    double last;     /* that weights of a block's third norm are near */
    double shift;    /* that biases of norms are near */
    double lr;
    double logits[BATCH * CLASSES];
    double losses[STEPS];
    double norm; /* of all gradients together */
    golden_line lines[MOST_LINES];
    int line_count;
} golden;

static double weight_of(const stk_param *param, const golden *g, double u) {
    if (param->rank > 1) {
        return u * sqrt(6.0 / ((double)param->count / param->shape[0]));
    }
    if (ends_with(param->name, "running_var")) {
        return g->variance * (1 + 0.5 * u);
    }
    if (ends_with(param->name, "weight")) {
        return (ends_with(param->name, "bn3.weight") ? g->last : 1) * (1 + 0.2 * u);
    }
    bool norm = strstr(param->name, "bn") != NULL && ends_with(param->name, "bias");
    return (norm ? g->shift : 0) + 0.1 * u;
}

/* As many numbers as there are at `text`, at most `most`. */
static int read_numbers(const char *text, double *numbers, int most) {
    int count = 0;
    char *end = NULL;
    for (; count < most; text = end, count++) {
        numbers[count] = strtod(text, &end);
        if (end == text) {
            break;
        }
    }
    return count;
}

static bool read_line(golden *g, const char *line) {
    char key[16];
    char name[96];
    double numbers[1 + PROJECTIONS];
    int behind = 0;
    if (sscanf(line, "%15s %n", key, &behind) != 1) {
        return false;
    }
    const char *rest = line + behind;
    if (strcmp(key, "logits") == 0) {
        return read_numbers(rest, g->logits, BATCH * CLASSES) == BATCH * CLASSES;
    }
    if (strcmp(key, "losses") == 0) {
        return read_numbers(rest, g->losses, STEPS) == STEPS;
    }
    if (strcmp(key, "grad") == 0 || strcmp(key, "running") == 0) {
        bool good = g->line_count < MOST_LINES && sscanf(rest, "%95s %n", name, &behind) == 1 &&
                    read_numbers(rest + behind, numbers, 1 + PROJECTIONS) == 1 + PROJECTIONS;
        if (good) {
            golden_line *to = &g->lines[g->line_count++];
            memcpy(to->name, name, sizeof name);
            to->norm = numbers[0];
            memcpy(to->projections, numbers + 1, sizeof to->projections);
            g->norm = strcmp(key, "grad") == 0 ? hypot(g->norm, to->norm) : g->norm;
        }
        return good;
    }
    double value = atof(rest);
    g->seed = strcmp(key, "seed") == 0 ? (int)value : g->seed;
    g->size = strcmp(key, "size") == 0 ? (int)value : g->size;
    g->variance = strcmp(key, "variance") == 0 ? value : g->variance;
    g->last = strcmp(key, "last") == 0 ? value : g->last;
    g->shift = strcmp(key, "shift") == 0 ? value : g->shift;
    g->lr = strcmp(key, "lr") == 0 ? value : g->lr;
    return true;
}

static bool read_golden(const char *model, golden *g) {
    char path[512];
    char *text = NULL;
    size_t size = 0;
    stk_error err = {0};
    snprintf(path, sizeof path, "%s/model_%s.txt", STK_GOLDEN_FOLDER, model);
    if (stk_file_read(path, 0, &text, &size, &err) != STK_OK) {
        CHECK_FAIL("%s", err.message);
        return false;
    }
    bool good = true;
    char *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        good = read_line(g, line) && good;
    }
    stk_mem_free(text);
    if (!good || g->size == 0 || g->lr <= 0 || g->variance <= 0 || g->last <= 0) {
        CHECK_FAIL("%s cannot be used", path);
        return false;
    }
    return true;
}

/* ---- one model on the CPU ---- */

typedef struct bench {
    golden expected;
    stk_graph *graph;
    stk_device *device;
    stk_state *state;
    stk_exec *train;
    stk_exec *plain; /* node by node */
    stk_exec *infer;
    uint8_t *pictures; /* (PICTURES, size, size, 3) */
    int labels[PICTURES];
    float *values; /* room for the largest parameter */
    stk_error err;
} bench;

static void bench_close(bench *b) {
    stk_exec *execs[] = {b->train, b->plain, b->infer};
    for (int i = 0; i < 3; i++) {
        if (execs[i] != NULL) {
            cpu->exec_free(execs[i]);
        }
    }
    if (b->state != NULL) {
        cpu->state_free(b->state);
    }
    if (b->device != NULL) {
        cpu->device_close(b->device);
    }
    stk_graph_free(b->graph);
    stk_mem_free(b->pictures);
    stk_mem_free(b->values);
    stk_mem_free(b);
}

static bool bench_build(bench *b, const char *name) {
    const stk_model *model = NULL;
    stk_model_config network = {.img_size = b->expected.size, .classes = CLASSES};
    stk_device_config device = {.threads = 2};
    stk_state_config state = {.train = true, .optimizer = STK_SGD};
    stk_compile_config config = {.batch = BATCH, .train = true};
    stk_compile_config plain = {.batch = BATCH, .train = true, .plain = true};
    stk_compile_config infer = {.batch = BATCH};
    return stk_model_find(name, &model, &b->err) == STK_OK &&
           stk_model_build(model, &network, &b->graph, &b->err) == STK_OK &&
           cpu->device_open(&b->device, &device, &b->err) == STK_OK &&
           cpu->state_new(&b->state, b->device, b->graph, &state, &b->err) == STK_OK &&
           cpu->compile(&b->train, b->state, &config, &b->err) == STK_OK &&
           cpu->compile(&b->plain, b->state, &plain, &b->err) == STK_OK &&
           cpu->compile(&b->infer, b->state, &infer, &b->err) == STK_OK;
}

static bench *bench_open(const char *name) {
    bench *b = stk_mem_new(1, sizeof *b);
    if (b == NULL || !read_golden(name, &b->expected) || !bench_build(b, name)) {
        CHECK_FAIL("%s: %s", name, b != NULL ? b->err.message : "no memory");
        if (b != NULL) {
            bench_close(b);
        }
        return NULL;
    }
    size_t largest = 0;
    for (int p = 0; p < b->graph->param_count; p++) {
        size_t count = b->graph->params[p].count;
        largest = count > largest ? count : largest;
    }
    size_t size = (size_t)b->expected.size;
    b->values = stk_mem_raw(largest, sizeof *b->values);
    b->pictures = stk_mem_raw(PICTURES * size * size, 3);
    if (b->values == NULL || b->pictures == NULL) {
        CHECK_FAIL("no memory");
        bench_close(b);
        return NULL;
    }
    fill_pictures(b->pictures, b->expected.seed, b->expected.size);
    for (size_t i = 0; i < PICTURES; i++) {
        b->labels[i] = (int)((uniform(fnv("labels"), i) + 1) / 2 * CLASSES);
    }
    return b;
}

static void set_weights(bench *b) {
    for (int p = 0; p < b->graph->param_count; p++) {
        const stk_param *param = &b->graph->params[p];
        uint64_t key = fnv(param->name);
        for (size_t i = 0; i < param->count; i++) {
            b->values[place_of(param, i)] = (float)weight_of(param, &b->expected, uniform(key, i));
        }
        REQUIRE_OK(cpu->state_write(b->state, STK_TENSOR_VALUE, p, b->values, &b->err), &b->err);
    }
}

static stk_step_input batch_of(const bench *b, int number, const stk_update *update) {
    size_t size = (size_t)b->expected.size;
    return (stk_step_input){.images = b->pictures + (size_t)number * BATCH * size * size * 3,
                            .labels = b->labels + (size_t)number * BATCH,
                            .count = BATCH,
                            .mix = {.kind = STK_MIX_NONE, .keep = 1},
                            .update = update};
}

static void check_logits(bench *b) {
    float logits[BATCH * CLASSES];
    double largest = 0;
    double worst = 0;
    REQUIRE_OK(cpu->infer(b->infer, b->pictures, NULL, BATCH, logits, &b->err), &b->err);
    for (int i = 0; i < BATCH * CLASSES; i++) {
        double difference = fabs((double)logits[i] - b->expected.logits[i]);
        largest = fmax(largest, fabs(b->expected.logits[i]));
        worst = difference <= worst ? worst : difference;
    }
    printf("  logits differ by %.1e of the largest\n", worst / largest);
    CHECK(worst <= LOGITS_LIMIT * largest);
}

/* How far the tensor in b->values is from what PyTorch found, as a share of its norm. */
static double tensor_error(const bench *b, const stk_param *param, const golden_line *line) {
    double squares = 0;
    double projections[PROJECTIONS] = {0};
    for (int k = 0; k < PROJECTIONS; k++) {
        char name[112];
        snprintf(name, sizeof name, "%s#%d", param->name, k);
        uint64_t key = fnv(name);
        for (size_t i = 0; i < param->count; i++) {
            double value = b->values[place_of(param, i)];
            squares += k == 0 ? value * value : 0;
            projections[k] += value * uniform(key, i);
        }
    }
    double worst = fabs(sqrt(squares) - line->norm);
    for (int k = 0; k < PROJECTIONS; k++) {
        double difference = fabs(projections[k] - line->projections[k]);
        worst = difference <= worst ? worst : difference;
    }
    return worst / fmax(line->norm, GRAD_FLOOR / GRAD_LIMIT * b->expected.norm);
}

static golden_line *line_of(bench *b, const char *name) {
    for (int i = 0; i < b->expected.line_count; i++) {
        if (strcmp(b->expected.lines[i].name, name) == 0) {
            return &b->expected.lines[i];
        }
    }
    return NULL;
}

/* Gradients of all parameters, and the running statistics behind the step. */
static void check_tensors(bench *b, const char *path) {
    double worst = 0;
    const char *where = "";
    for (int p = 0; p < b->graph->param_count; p++) {
        const stk_param *param = &b->graph->params[p];
        golden_line *line = line_of(b, param->name);
        stk_tensor_kind kind = param->trainable ? STK_TENSOR_GRADIENT : STK_TENSOR_VALUE;
        if (line == NULL) {
            CHECK_FAIL("%s is not expected", param->name);
            continue;
        }
        REQUIRE_OK(cpu->state_read(b->state, kind, p, b->values, &b->err), &b->err);
        double error = tensor_error(b, param, line);
        line->seen = true;
        if (!(error <= GRAD_LIMIT)) {
            CHECK_FAIL("%s, %s differs by %.2e", path, param->name, error);
        }
        if (!(error <= worst)) {
            worst = error;
            where = param->name;
        }
    }
    printf("  %s: tensors differ by at most %.1e of their norm, %s\n", path, worst, where);
    for (int i = 0; i < b->expected.line_count; i++) {
        if (!b->expected.lines[i].seen) {
            CHECK_FAIL("there is no %s", b->expected.lines[i].name);
        }
    }
}

static void check_gradients(bench *b, stk_exec *exec, const char *path) {
    stk_step_input input = batch_of(b, 0, NULL);
    stk_step_output output;
    set_weights(b);
    REQUIRE_OK(cpu->step(exec, &input, &output, &b->err), &b->err);
    CHECK_NEAR(output.loss_sum / BATCH, b->expected.losses[0], 1e-4 * b->expected.losses[0]);
    check_tensors(b, path);
}

static void check_losses(bench *b, const char *name) {
    stk_update update = {.kind = STK_SGD,
                         .lr = (float)b->expected.lr,
                         .head_lr = (float)b->expected.lr,
                         .momentum = MOMENTUM,
                         .nesterov = true,
                         .weight_decay = DECAY,
                         .grad_scale = 1};
    double worst = 0;
    set_weights(b);
    /* Later steps repeat what the first ones do: the smallest network alone goes all the way. */
    bool all = check_is_full() || strcmp(name, "cifar_resnet20") == 0;
    for (int s = 0; s < (all && !check_is_quick() ? STEPS : FIRST_STEPS); s++) {
        stk_step_input input = batch_of(b, s % 2, &update);
        stk_step_output output;
        REQUIRE_OK(cpu->step(b->train, &input, &output, &b->err), &b->err);
        double expected = b->expected.losses[s];
        double error = fabs(output.loss_sum / BATCH - expected) / expected;
        worst = error <= worst ? worst : error;
        if (!(error <= LOSS_LIMIT)) {
            CHECK_FAIL("step %d has the loss %.6f, expected %.6f", s, output.loss_sum / BATCH,
                       expected);
        }
    }
    printf("  losses differ by at most %.1e\n", worst);
    CHECK(b->expected.losses[STEPS - 1] < 0.7 * b->expected.losses[0]);
}

/* Two of the networks, which have all operations between them, are enough for a sanitizer. */
static bool is_left_out(const char *name) {
    return check_is_quick() && strcmp(name, "cifar_resnet20") != 0 &&
           strcmp(name, "tf_efficientnet_b0") != 0;
}

static void check_model(const char *name) {
    if (is_left_out(name)) {
        CHECK_SKIP("STK_TEST_QUICK is set");
    }
    bench *b = bench_open(name);
    REQUIRE(b != NULL);
    set_weights(b);
    check_logits(b);
    check_gradients(b, b->train, "fused");
    check_gradients(b, b->plain, "plain");
    check_losses(b, name);
    bench_close(b);
}

static void resnet18_computes_what_timm_does(void) {
    check_model("resnet18");
}

static void resnet50_computes_what_timm_does(void) {
    check_model("resnet50");
}

static void cifar_resnet20_computes_what_pytorch_does(void) {
    check_model("cifar_resnet20");
}

static void efficientnet_b0_computes_what_timm_does(void) {
    check_model("efficientnet_b0");
}

static void tf_efficientnet_b0_computes_what_timm_does(void) {
    check_model("tf_efficientnet_b0");
}

static void tf_efficientnet_lite0_computes_what_timm_does(void) {
    check_model("tf_efficientnet_lite0");
}

static void mobilenetv2_100_computes_what_timm_does(void) {
    check_model("mobilenetv2_100");
}

/* ---- all models ---- */

/* The sum does not depend on the order of the tensors. */
static uint64_t hash_of(const stk_graph *graph, size_t *trainable) {
    uint64_t sum = 0;
    for (int p = 0; p < graph->param_count; p++) {
        const stk_param *param = &graph->params[p];
        char text[160];
        int length = snprintf(text, sizeof text, "%s", param->name);
        for (int d = 0; d < param->rank; d++) {
            length += snprintf(text + length, sizeof text - (size_t)length, " %d", param->shape[d]);
        }
        sum += fnv(text);
        *trainable += param->trainable ? param->count : 0;
    }
    return sum;
}

/* Columns of models.csv. */
enum {
    NAME,
    TENSORS,
    HASH,
    TRAINABLE,
    IMG_SIZE,
    CROP,
    INTERPOLATION,
    MEAN,
    STD = MEAN + 3,
    COLUMNS = STD + 3
};

static void check_row(const stk_csv *csv, size_t row) {
    const char *name = stk_csv_cell(csv, row, NAME);
    const stk_model *model = NULL;
    stk_graph *graph = NULL;
    stk_error err = {0};
    REQUIRE_OK(stk_model_find(name, &model, &err), &err);
    CHECK_STR(model->name, name);
    stk_model_config config = {.img_size = model->img_size,
                               .classes = strncmp(name, "cifar", 5) == 0 ? 10 : 1000};
    REQUIRE_OK(stk_model_build(model, &config, &graph, &err), &err);
    size_t trainable = 0;
    char hash[32];
    snprintf(hash, sizeof hash, "%016" PRIx64, hash_of(graph, &trainable));
    CHECK_INT(graph->param_count, atoi(stk_csv_cell(csv, row, TENSORS)));
    CHECK_INT(trainable, atoll(stk_csv_cell(csv, row, TRAINABLE)));
    CHECK_STR(hash, stk_csv_cell(csv, row, HASH));
    CHECK_INT(model->img_size, atoi(stk_csv_cell(csv, row, IMG_SIZE)));
    CHECK_NEAR(model->crop_fraction, atof(stk_csv_cell(csv, row, CROP)), 1e-9);
    CHECK_STR(model->interpolation == STK_BICUBIC ? "bicubic" : "bilinear",
              stk_csv_cell(csv, row, INTERPOLATION));
    for (size_t c = 0; c < 3; c++) {
        CHECK_NEAR(graph->mean[c], atof(stk_csv_cell(csv, row, MEAN + c)), 1e-6);
        CHECK_NEAR(graph->std[c], atof(stk_csv_cell(csv, row, STD + c)), 1e-6);
    }
    stk_graph_free(graph);
}

/* The table has every model but convnet_s, which is our own. */
static void all_models_have_the_tensors_and_numbers_of_timm(void) {
    stk_error err = {0};
    stk_csv csv;
    REQUIRE_OK(stk_csv_read(STK_GOLDEN_FOLDER "/models.csv", &csv, &err), &err);
    REQUIRE(csv.columns == COLUMNS);
    for (size_t row = 0; row < csv.rows; row++) {
        int before = check_failures;
        check_row(&csv, row);
        if (check_failures > before) {
            printf("  that was %s\n", stk_csv_cell(&csv, row, NAME));
        }
    }
    size_t models = 0;
    while (stk_model_at(models) != NULL) {
        models++;
    }
    CHECK_INT(models, csv.rows + 1);
    stk_csv_free(&csv);
}

static const check_test tests[] = {
    TEST(all_models_have_the_tensors_and_numbers_of_timm),
    TEST(resnet18_computes_what_timm_does),
    TEST(resnet50_computes_what_timm_does),
    TEST(cifar_resnet20_computes_what_pytorch_does),
    TEST(efficientnet_b0_computes_what_timm_does),
    TEST(tf_efficientnet_b0_computes_what_timm_does),
    TEST(tf_efficientnet_lite0_computes_what_timm_does),
    TEST(mobilenetv2_100_computes_what_timm_does),
};

CHECK_MAIN(tests)
