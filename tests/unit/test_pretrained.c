/*
 * test_pretrained.c - weights of others: types, prefixes and heads that are taken, everything else
 * that is refused by name.
 */
#include "check.h"

#include <stdint.h>

#include "tensor_files.h"
#include "weights/pretrained.h"

/* ---- a device that is a plain array ---- */

struct stk_state {
    const stk_graph *graph;
    float *values;
};

static stk_status fake_write(stk_state *state, stk_tensor_kind kind, int param, const float *values,
                             stk_error *err) {
    const stk_param *p = &state->graph->params[param];
    (void)err;
    (void)kind;
    memcpy(state->values + p->offset, values, p->count * sizeof *values);
    return STK_OK;
}

static const stk_backend fake = {.name = "fake", .state_write = fake_write};

/* A convolution of 2 x 3 x 3 x 3, a norm and a classifier of 3 x 2: seven parameters. */
#define PARAMS 7
#define MOST_NUMBERS 54

static stk_graph *small_graph(void) {
    stk_graph *g = NULL;
    stk_error err = {0};
    if (stk_graph_new(&g, 6, 3, &err) != STK_OK) {
        exit(1);
    }
    int x = stk_graph_conv(g, stk_graph_input(g), "conv1", 2, 3, 1, 1);
    x = stk_graph_avg_pool(g, stk_graph_batch_norm(g, x, "bn1", STK_INIT_ONE));
    if (stk_graph_finish(g, stk_graph_linear(g, x, "fc", 3), &err) != STK_OK) {
        exit(1);
    }
    return g;
}

typedef struct setting {
    stk_graph *graph;
    stk_state state;
    char path[300];
    made_tensor tensors[PARAMS + 400]; /* what goes into the file: the model's, at first */
    size_t count;
    char names[PARAMS][128];
    double numbers[PARAMS][MOST_NUMBERS]; /* room for any type */
    stk_pretrained_report report;
    stk_error err;
} setting;

/* Number i of parameter p, in the file's order; small and whole, so that every type has it. */
static float number(int p, size_t i) {
    return (float)(p * 8 + (int)i) - 40;
}

/* The numbers of a tensor in its type. */
static void fill(setting *s, int p, const char *dtype) {
    size_t count = s->graph->params[p].count;
    unsigned char *out = (unsigned char *)s->numbers[p];
    size_t bytes = strcmp(dtype, "F64") == 0 ? 8 : strcmp(dtype, "F32") == 0 ? 4 : 2;
    for (size_t i = 0; i < count; i++) {
        float value = number(p, i);
        double wide = (double)value;
        uint32_t bits;
        memcpy(&bits, &value, sizeof bits);
        uint32_t rest = bits & 0x7FFFFFFFu;
        uint16_t brain = (uint16_t)(bits >> 16);
        uint16_t half = (uint16_t)(bits >> 16 & 0x8000u);
        half = (uint16_t)(half | (rest > 0 ? (rest - (112u << 23)) >> 13 : 0));
        const void *from = bytes == 8                   ? (const void *)&wide
                           : bytes == 4                 ? (const void *)&value
                           : strcmp(dtype, "BF16") == 0 ? (const void *)&brain
                                                        : (const void *)&half;
        memcpy(out + i * bytes, from, bytes);
    }
    s->tensors[p].dtype = dtype;
    s->tensors[p].data = out;
    s->tensors[p].bytes = count * bytes;
}

static void prepare(setting *s) {
    memset(s, 0, sizeof *s);
    s->graph = small_graph();
    s->state = (stk_state){s->graph, stk_mem_new(s->graph->param_elements, sizeof(float))};
    REQUIRE(s->graph->param_count == PARAMS && s->state.values != NULL);
    snprintf(s->path, sizeof s->path, "%s/w.safetensors", check_folder());
    for (int p = 0; p < PARAMS; p++) {
        const stk_param *param = &s->graph->params[p];
        snprintf(s->names[p], sizeof s->names[p], "%s", param->name);
        s->tensors[p] = (made_tensor){.name = s->names[p], .rank = param->rank};
        for (int d = 0; d < param->rank; d++) {
            s->tensors[p].shape[d] = (uint64_t)param->shape[d];
        }
        fill(s, p, "F32");
    }
    s->count = PARAMS;
}

static void tear_down(setting *s) {
    stk_mem_free(s->state.values);
    stk_graph_free(s->graph);
}

/* The place of a parameter. */
static int place(const setting *s, const char *name) {
    for (int p = 0; p < PARAMS; p++) {
        if (strcmp(s->graph->params[p].name, name) == 0) {
            return p;
        }
    }
    exit(1);
}

static stk_status load_with(setting *s, const stk_tensor_note *notes, size_t note_count) {
    stk_pretrained_report checked;
    stk_error cause = {0};
    memset(&s->err, 0, sizeof s->err);
    memset(s->state.values, 0, s->graph->param_elements * sizeof(float));
    if (write_tensors(s->path, s->tensors, s->count, notes, note_count, &s->err) != STK_OK) {
        fprintf(stderr, "%s\n", s->err.message);
        exit(1);
    }
    stk_status status =
        stk_pretrained_load(s->path, "resnet18", &fake, &s->state, s->graph, &s->report, &s->err);
    /* Checking alone says the same. */
    CHECK_INT(stk_pretrained_check(s->path, "resnet18", s->graph, &checked, &cause), status);
    CHECK_STR(cause.message, s->err.message);
    CHECK_INT(checked.tensors, s->report.tensors);
    return status;
}

static stk_status load(setting *s) {
    return load_with(s, NULL, 0);
}

/* Whether a parameter has the numbers of the file, in memory's order. */
static bool is_loaded(const setting *s, int p) {
    const stk_param *param = &s->graph->params[p];
    const float *values = s->state.values + param->offset;
    bool same = true;
    for (size_t i = 0; i < param->count; i++) {
        size_t at = i;
        if (param->rank == 4) {
            size_t inner = i % 27;
            at = i - inner + inner % 9 * 3 + inner / 9; /* (I, taps) to (taps, I) */
        }
        same = same && values[at] == number(p, i);
    }
    return same;
}

static bool is_untouched(const setting *s, int p) {
    const stk_param *param = &s->graph->params[p];
    bool zero = true;
    for (size_t i = 0; i < param->count; i++) {
        zero = zero && s->state.values[param->offset + i] == 0;
    }
    return zero;
}

static bool all_untouched(const setting *s) {
    bool zero = true;
    for (int p = 0; p < PARAMS; p++) {
        zero = zero && is_untouched(s, p);
    }
    return zero;
}

static setting s;

/* ---- what is taken ---- */

static void every_float_type_is_loaded(void) {
    static const char *const types[] = {"F32", "F16", "BF16", "F64"};
    prepare(&s);
    for (int t = 0; t < 4; t++) {
        for (int p = 0; p < PARAMS; p++) {
            fill(&s, p, types[t]);
        }
        REQUIRE_OK(load(&s), &s.err);
        for (int p = 0; p < PARAMS; p++) {
            CHECK(is_loaded(&s, p));
        }
        CHECK_INT(s.report.tensors, PARAMS);
        CHECK_INT(s.report.converted, t == 0 ? 0 : PARAMS);
        CHECK_STR(s.report.type, t == 0 ? "" : types[t]);
        CHECK(!s.report.head_anew && s.report.prefix[0] == '\0' && s.report.ignored == 0);
    }
    tear_down(&s);
}

static void prefixes_are_taken_off(void) {
    static const char *const prefixes[] = {
        "module.", "model.", "state_dict.", "state_dict.module.", "model.module.", "module.model."};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
        prepare(&s);
        for (int p = 0; p < PARAMS; p++) {
            snprintf(s.names[p], sizeof s.names[p], "%s%s", prefixes[i], s.graph->params[p].name);
        }
        REQUIRE_OK(load(&s), &s.err);
        CHECK_STR(s.report.prefix, prefixes[i]);
        for (int p = 0; p < PARAMS; p++) {
            CHECK(is_loaded(&s, p));
        }
        tear_down(&s);
    }
    /* A prefix on some of the names only is not one. */
    prepare(&s);
    snprintf(s.names[0], sizeof s.names[0], "module.%s", s.graph->params[0].name);
    CHECK_INT(load(&s), STK_ERR_DATA);
    CHECK_CONTAINS(s.err.message, "missing in the file: conv1.weight");
    CHECK_CONTAINS(s.err.message, "not known to the model: module.conv1.weight");
    CHECK(all_untouched(&s));
    tear_down(&s);
}

static void counters_are_passed_over(void) {
    static const int64_t seen = 7;
    prepare(&s);
    s.tensors[s.count++] = (made_tensor){
        .name = "bn1.num_batches_tracked", .dtype = "I64", .data = &seen, .bytes = sizeof seen};
    REQUIRE_OK(load(&s), &s.err);
    CHECK_INT(s.report.ignored, 1);
    CHECK_INT(s.report.converted, 0);
    tear_down(&s);
}

static void a_head_of_another_size_starts_anew(void) {
    static const float many[1000 * 2];
    prepare(&s);
    int weight = place(&s, "fc.weight");
    int bias = place(&s, "fc.bias");
    s.tensors[weight] = (made_tensor){"fc.weight", 2, {1000, 2}, "F32", many, sizeof many};
    s.tensors[bias] = (made_tensor){"fc.bias", 1, {1000}, "F32", many, 4000};
    REQUIRE_OK(load(&s), &s.err);
    CHECK(s.report.head_anew);
    CHECK_INT(s.report.file_classes, 1000);
    CHECK_INT(s.report.tensors, PARAMS - 2);
    for (int p = 0; p < PARAMS; p++) {
        CHECK(p == weight || p == bias ? is_untouched(&s, p) : is_loaded(&s, p));
    }
    /* A file without a classifier. */
    s.tensors[weight] = s.tensors[PARAMS - 1];
    s.tensors[bias] = s.tensors[PARAMS - 2];
    CHECK(weight >= PARAMS - 2 && bias >= PARAMS - 2);
    s.count = PARAMS - 2;
    REQUIRE_OK(load(&s), &s.err);
    CHECK(s.report.head_anew);
    CHECK_INT(s.report.file_classes, 0);
    tear_down(&s);
}

/* ---- what is refused ---- */

static void half_a_head_is_refused(void) {
    static const float many[1000 * 2];
    prepare(&s);
    int weight = place(&s, "fc.weight");
    int bias = place(&s, "fc.bias");
    made_tensor own = s.tensors[weight];
    s.tensors[weight] = (made_tensor){"fc.weight", 2, {1000, 2}, "F32", many, sizeof many};
    CHECK_INT(load(&s), STK_ERR_DATA);
    CHECK_CONTAINS(s.err.message, "fc.weight (the file has 1000x2, the model 3x2)");
    s.tensors[bias] = (made_tensor){"fc.bias", 1, {999}, "F32", many, 3996};
    CHECK_INT(load(&s), STK_ERR_DATA);
    CHECK_CONTAINS(s.err.message, "fc.bias (the file has 999, the model 3)");
    /* Another number of inputs is another network. */
    s.tensors[weight] = (made_tensor){"fc.weight", 2, {500, 4}, "F32", many, sizeof many};
    s.tensors[bias] = (made_tensor){"fc.bias", 1, {500}, "F32", many, 2000};
    CHECK_INT(load(&s), STK_ERR_DATA);
    CHECK_CONTAINS(s.err.message, "fc.weight (the file has 500x4, the model 3x2)");
    s.tensors[weight] = own;
    s.tensors[bias].name = "fc.bios";
    CHECK_INT(load(&s), STK_ERR_DATA);
    CHECK_CONTAINS(s.err.message, "missing in the file: fc.bias");
    CHECK_CONTAINS(s.err.message, "not known to the model: fc.bios");
    CHECK(all_untouched(&s));
    tear_down(&s);
}

static void what_does_not_fit_is_named(void) {
    static const int32_t whole[2] = {1, 2};
    prepare(&s);
    int conv = place(&s, "conv1.weight");
    int var = place(&s, "bn1.running_var");
    int mean = place(&s, "bn1.running_mean");
    s.tensors[conv].shape[1] = 1;
    s.tensors[conv].shape[3] = 9;
    s.tensors[var].name = "bn1.va\x1b[31mr";
    s.tensors[mean].dtype = "I32";
    s.tensors[mean].data = whole;
    CHECK_INT(load(&s), STK_ERR_DATA);
    CHECK_CONTAINS(s.err.message, s.path);
    CHECK_CONTAINS(s.err.message,
                   "does not fit resnet18\n  of another shape: conv1.weight (the file "
                   "has 2x1x3x9, the model 2x3x3x3), bn1.running_mean (the file has "
                   "I32, which are no weights)\n  missing in the file: "
                   "bn1.running_var\n  not known to the model: bn1.va?[31mr");
    CHECK(all_untouched(&s));
    tear_down(&s);
}

/* The list is bounded; the message never loses its count. */
static void long_lists_are_cut(void) {
    static char names[400][96];
    prepare(&s);
    for (int i = 0; i < 400; i++) {
        snprintf(
            names[i], sizeof names[i], "blocks.%03d.%.*s", i, i % 80,
            "a_name_that_is_rather_long_and_gets_longer_from_one_tensor_to_the_next_one_and_so");
        s.tensors[s.count++] = (made_tensor){.name = names[i], .data = "", .shape = {0}, .rank = 1};
    }
    CHECK_INT(load(&s), STK_ERR_DATA);
    CHECK_CONTAINS(s.err.message, "not known to the model: blocks.000.");
    CHECK_CONTAINS(s.err.message, " and 380 more");
    CHECK(strlen(s.err.message) < sizeof s.err.message - 1);
    /* None of them is the model's. */
    memmove(s.tensors, s.tensors + PARAMS, 400 * sizeof *s.tensors);
    s.count = 400;
    CHECK_INT(load(&s), STK_ERR_DATA);
    CHECK_CONTAINS(s.err.message,
                   "has no weights of resnet18\n  missing in the file: conv1.weight");
    CHECK(strcmp(s.err.message + strlen(s.err.message) - 5, " more") == 0);
    tear_down(&s);
}

static void a_checkpoint_of_another_model_says_so(void) {
    stk_tensor_note note = {"model", "resnet50"};
    prepare(&s);
    REQUIRE_OK(load_with(&s, &note, 1), &s.err);
    CHECK_STR(s.report.checkpoint_of, "resnet50");
    s.count--;
    CHECK_INT(load_with(&s, &note, 1), STK_ERR_DATA);
    CHECK_CONTAINS(s.err.message, "is a checkpoint of resnet50 and does not fit resnet18; use "
                                  "--model resnet50");
    s.count++;
    note.text = "resnet18";
    REQUIRE_OK(load_with(&s, &note, 1), &s.err);
    CHECK_STR(s.report.checkpoint_of, "");
    tear_down(&s);
}

static void files_that_cannot_be_read_are_told(void) {
    prepare(&s);
    stk_error err = {0};
    CHECK_INT(stk_pretrained_check("/no/such", "m", s.graph, &s.report, &err), STK_ERR_STORAGE);
    CHECK_CONTAINS(err.message, "/no/such");
    memset(&err, 0, sizeof err);
    REQUIRE_OK(stk_file_write(s.path, "PK\3\4 and an archive", 18, &err), &err);
    CHECK_INT(stk_pretrained_check(s.path, "m", s.graph, &s.report, &err), STK_ERR_DATA);
    CHECK_CONTAINS(err.message, "PyTorch pickle");
    tear_down(&s);
}

static void numbers_that_are_none_are_refused(void) {
    const float odd[] = {NAN, INFINITY, -INFINITY};
    for (int i = 0; i < 3; i++) {
        prepare(&s);
        fill(&s, 0, "F32");
        memcpy((unsigned char *)s.numbers[0] + 5 * sizeof odd[i], &odd[i], sizeof odd[i]);
        REQUIRE_OK(write_tensors(s.path, s.tensors, s.count, NULL, 0, &s.err), &s.err);
        CHECK_INT(
            stk_pretrained_load(s.path, "resnet18", &fake, &s.state, s.graph, &s.report, &s.err),
            STK_ERR_DATA);
        CHECK_CONTAINS(s.err.message, "conv1.weight");
        tear_down(&s);
    }
}

static void no_memory_is_told(void) {
    prepare(&s);
    for (int bad = 0; bad < 2; bad++) {
        s.count = (size_t)(PARAMS - bad);
        CHECK_INT(load(&s), bad ? STK_ERR_DATA : STK_OK);
        stk_status status = STK_ERR_MEMORY;
        int n = 0;
        for (; n < 500 && status == STK_ERR_MEMORY; n++) {
            stk_error err = {0};
            stk_mem_fail_after(n);
            status = stk_pretrained_load(s.path, "m", &fake, &s.state, s.graph, &s.report, &err);
            stk_mem_fail_after(-1);
            CHECK_INT(err.status, status);
        }
        CHECK_INT(status, bad ? STK_ERR_DATA : STK_OK);
        CHECK(n > 5);
    }
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
    int x = stk_graph_conv(g, stk_graph_input(g), "conv1", 2, 3, 1, 1);
    x = stk_graph_avg_pool(g, stk_graph_batch_norm(g, x, "bn1", STK_INIT_ONE));
    if (stk_graph_finish(g, stk_graph_linear(g, x, "fc", 3), &err) != STK_OK) {
        exit(1);
    }
    return g;
}

/* Filter f, channel c and tap t of what becomes of the file's filters over RGB. */
static float adapted(int f, int c, int t, int channels) {
    int conv = place(&s, "conv1.weight");
    float rgb[3];
    for (int i = 0; i < 3; i++) {
        rgb[i] = number(conv, (size_t)((f * 3 + i) * 9 + t));
    }
    return channels == 1 ? rgb[0] + rgb[1] + rgb[2] : rgb[c % 3] * (3 / (float)channels);
}

static void filters_for_other_channels(void) {
    const int counts[] = {1, 2, 4, 6, 64};
    for (size_t k = 0; k < STK_COUNT(counts); k++) {
        int channels = counts[k];
        prepare(&s);
        REQUIRE_OK(write_tensors(s.path, s.tensors, s.count, NULL, 0, &s.err), &s.err);
        stk_graph *graph = graph_of_channels(channels);
        stk_state state = {graph, stk_mem_new(graph->param_elements, sizeof(float))};
        stk_pretrained_report report;
        REQUIRE(state.values != NULL);
        REQUIRE_OK(stk_pretrained_load(s.path, "resnet18", &fake, &state, graph, &report, &s.err),
                   &s.err);
        CHECK_INT(report.channels, channels);
        CHECK(!report.head_anew);
        const stk_param *param = &graph->params[0];
        CHECK_STR(param->name, "conv1.weight");
        for (int i = 0; i < (int)param->count; i++) { /* in memory (filters, taps, channels) */
            int c = i % channels;
            int t = i / channels % 9;
            CHECK_NEAR(state.values[param->offset + (size_t)i],
                       adapted(i / channels / 9, c, t, channels), 1e-5);
        }
        stk_mem_free(state.values);
        stk_graph_free(graph);
        tear_down(&s);
    }
}

/* Only filters over RGB are made into others, and only those of the first layer. */
static void other_filters_are_refused(void) {
    static const float many[2 * 4 * 9];
    prepare(&s);
    int conv = place(&s, "conv1.weight");
    s.tensors[conv] = (made_tensor){"conv1.weight", 4, {2, 4, 3, 3}, "F32", many, sizeof many};
    REQUIRE_OK(write_tensors(s.path, s.tensors, s.count, NULL, 0, &s.err), &s.err);
    stk_graph *graph = graph_of_channels(6);
    stk_pretrained_report report;
    CHECK_INT(stk_pretrained_check(s.path, "resnet18", graph, &report, &s.err), STK_ERR_DATA);
    CHECK_CONTAINS(s.err.message, "conv1.weight (the file has 2x4x3x3, the model 2x6x3x3)");
    stk_graph_free(graph);
    tear_down(&s);
}

/* ---- features ---- */

/* The small network with a layer over two features beside the pooled picture. */
static stk_graph *graph_with_features(void) {
    stk_graph *g = NULL;
    stk_error err = {0};
    if (stk_graph_new(&g, 6, 3, &err) != STK_OK) {
        exit(1);
    }
    int x = stk_graph_conv(g, stk_graph_input(g), "conv1", 2, 3, 1, 1);
    x = stk_graph_avg_pool(g, stk_graph_batch_norm(g, x, "bn1", STK_INIT_ONE));
    int made = stk_graph_linear(g, stk_graph_features(g, 2), "features", 4);
    x = stk_graph_concat(g, x, stk_graph_relu(g, made));
    if (stk_graph_finish(g, stk_graph_linear(g, x, "fc", 3), &err) != STK_OK) {
        exit(1);
    }
    return g;
}

/* A network with features takes the backbone of a file without them. Its classifier starts at
 * zero, and the layer over the features stays as it was: with zeros there too it would never learn.
 */
static void a_head_with_features(void) {
    prepare(&s);
    REQUIRE_OK(write_tensors(s.path, s.tensors, s.count, NULL, 0, &s.err), &s.err);
    stk_graph *graph = graph_with_features();
    stk_state state = {graph, stk_mem_new(graph->param_elements, sizeof(float))};
    REQUIRE(state.values != NULL);
    for (size_t i = 0; i < graph->param_elements; i++) {
        state.values[i] = 0.5f;
    }
    stk_pretrained_report report;
    CHECK_INT(stk_pretrained_load(s.path, "resnet18", &fake, &state, graph, &report, &s.err),
              STK_OK);
    CHECK(report.head_anew);
    CHECK_INT(report.tensors, 5);
    for (int p = 0; p < graph->param_count; p++) {
        const stk_param *param = &graph->params[p];
        bool zero = strncmp(param->name, "fc.", 3) == 0;
        bool kept = strncmp(param->name, "features.", 9) == 0;
        for (size_t i = 0; i < param->count && (zero || kept); i++) {
            CHECK_NEAR(state.values[param->offset + i], zero ? 0 : 0.5, 0);
        }
    }
    stk_mem_free(state.values);
    stk_graph_free(graph);
    tear_down(&s);
}

static const check_test tests[] = {
    TEST(every_float_type_is_loaded),
    TEST(prefixes_are_taken_off),
    TEST(counters_are_passed_over),
    TEST(a_head_of_another_size_starts_anew),
    TEST(half_a_head_is_refused),
    TEST(what_does_not_fit_is_named),
    TEST(long_lists_are_cut),
    TEST(a_checkpoint_of_another_model_says_so),
    TEST(files_that_cannot_be_read_are_told),
    TEST(numbers_that_are_none_are_refused),
    TEST(no_memory_is_told),
    TEST(filters_for_other_channels),
    TEST(other_filters_are_refused),
    TEST(a_head_with_features),
};

CHECK_MAIN(tests)
