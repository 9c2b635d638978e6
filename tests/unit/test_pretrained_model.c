/* test_pretrained_model.c - which model weights belong to, and which models have weights here. */
#include "check.h"

#include <unistd.h>

#include "base/files/file.h"
#include "tensor_files.h"
#include "weights/pretrained_model.h"

#define MOST_PARAMS 400

static char home[256];

/* An empty home, and no variable that leads elsewhere. */
static void enter(void) {
    static const char *const variables[] = {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME",
                                            "XDG_CACHE_HOME"};
    snprintf(home, sizeof home, "%s", check_folder());
    for (size_t i = 0; i < STK_COUNT(variables); i++) {
        unsetenv(variables[i]);
    }
    setenv("HOME", home, 1);
}

/* Writes weights of a model below home, all of them zero; `note` is the model in the metadata, or
 * NULL. `path` becomes the file's. */
static void put(const char *model, const char *name, const char *note, char path[600]) {
    static made_tensor tensors[MOST_PARAMS];
    const stk_model *row = NULL;
    stk_graph *graph = NULL;
    stk_error err = {0};
    REQUIRE_OK(stk_model_find(model, &row, &err), &err);
    stk_model_config config = {.img_size = row->img_size, .classes = 3};
    REQUIRE_OK(stk_model_build(row, &config, &graph, &err), &err);
    REQUIRE(graph->param_count <= MOST_PARAMS);
    void *zeros = stk_mem_new(graph->param_elements, sizeof(uint16_t));
    REQUIRE(zeros != NULL);
    for (int p = 0; p < graph->param_count; p++) {
        const stk_param *param = &graph->params[p];
        tensors[p] = (made_tensor){.name = param->name,
                                   .rank = param->rank,
                                   .dtype = "F16",
                                   .data = zeros,
                                   .bytes = param->count * sizeof(uint16_t)};
        for (int d = 0; d < param->rank; d++) {
            tensors[p].shape[d] = (uint64_t)param->shape[d];
        }
    }
    stk_tensor_note notes[] = {{"model", note}};
    snprintf(path, 600, "%s/%s", home, name);
    *strrchr(path, '/') = '\0';
    REQUIRE_OK(stk_dir_make(path, &err), &err);
    path[strlen(path)] = '/';
    REQUIRE_OK(write_tensors(path, tensors, (size_t)graph->param_count, notes, note != NULL, &err),
               &err);
    stk_mem_free(zeros);
    stk_graph_free(graph);
}

static void belongs_to(const char *wanted, const char *model, const char *why) {
    stk_pretrained_file file;
    stk_error err = {0};
    const stk_model *found = NULL;
    const char *reason = NULL;
    REQUIRE_OK(stk_pretrained_find(wanted, &file, &err), &err);
    REQUIRE_OK(stk_pretrained_model(&file, &found, &reason, &err), &err);
    CHECK_STR(found->name, model);
    CHECK_CONTAINS(reason, why);
    stk_pretrained_file_free(&file);
}

static void a_name_says_it(void) {
    char path[600];
    enter();
    put("cifar_resnet20", "a/net.safetensors", "cifar_resnet20", path);
    belongs_to(path, "cifar_resnet20", "metadata");
    put("tf_efficientnet_b0", "a/tf_efficientnet_b0-1234.safetensors", NULL, path);
    belongs_to(path, "tf_efficientnet_b0", "named by the file");
    put("tf_efficientnet_b0", "a/tf_efficientnet_b0.ap_in1k.safetensors", NULL, path);
    belongs_to(path, "tf_efficientnet_b0.ap_in1k", "named by the file");
    put("tf_efficientnet_b0", "a/tf_efficientnet_b0_mine.safetensors", NULL, path);
    belongs_to(path, "tf_efficientnet_b0", "named by the file");
    put("tf_efficientnet_b0",
        ".cache/huggingface/hub/models--timm--tf_efficientnet_b0.x/snapshots/1/model.safetensors",
        NULL, path);
    belongs_to(path, "tf_efficientnet_b0", "folder");
    belongs_to("tf_efficientnet_b0.x", "tf_efficientnet_b0", "named by the weights");
}

static void shapes_say_it_otherwise(void) {
    char path[600];
    enter();
    put("tf_efficientnet_b0", "a/net.safetensors", NULL, path);
    belongs_to(path, "efficientnet_b0", "the first model with these parameters");
    put("convnet_s", "a/resnet18.safetensors", NULL, path);
    belongs_to(path, "convnet_s", "the first model with these parameters");
}

static void what_fits_nothing_is_refused(void) {
    static const made_tensor other = {
        .name = "blocks.0.weight", .rank = 1, .shape = {2}, .data = "abcdefgh", .bytes = 8};
    static const char *const names[] = {"a/net.safetensors", "a/resnet18.safetensors"};
    static const char *const parts[] = {"fit none of the models; name the model with --model",
                                        "no weights of resnet18"};
    enter();
    for (size_t i = 0; i < STK_COUNT(names); i++) {
        stk_error err = {0};
        char path[600];
        const stk_model *model = NULL;
        const char *why = NULL;
        snprintf(path, sizeof path, "%s/a", home);
        REQUIRE_OK(stk_dir_make(path, &err), &err);
        snprintf(path, sizeof path, "%s/%s", home, names[i]);
        REQUIRE_OK(write_tensors(path, &other, 1, NULL, 0, &err), &err);
        stk_pretrained_file file = {.path = path, .name = (char[]){""}};
        CHECK_INT(stk_pretrained_model(&file, &model, &why, &err), STK_ERR_DATA);
        CHECK_CONTAINS(err.message, parts[i]);
    }
}

/* The models here, as one text. */
static const char *present(void) {
    static char text[300];
    const stk_model *models[8];
    size_t count = 0;
    stk_str places = {0};
    stk_error err = {0};
    text[0] = '\0';
    if (stk_pretrained_models(models, STK_COUNT(models), &count, &places, &err) != STK_OK) {
        return err.message[0] != '\0' ? "error" : "";
    }
    for (size_t i = 0; i < count; i++) {
        size_t length = strlen(text);
        snprintf(text + length, sizeof text - length, "%s ", models[i]->name);
    }
    CHECK_CONTAINS(stk_str_text(&places), ".cache/stoker");
    stk_str_free(&places);
    return text;
}

static void models_that_have_weights(void) {
    char path[600];
    enter();
    CHECK_STR(present(), "");
    put("convnet_s", ".cache/stoker/resnet18d.safetensors", NULL, path);
    put("convnet_s", ".cache/stoker/notes.txt", NULL, path);
    CHECK_STR(present(), "");
    put("convnet_s", ".cache/stoker/convnet_s.safetensors", NULL, path);
    put("convnet_s", ".cache/stoker/resnet50/model.safetensors", NULL, path);
    CHECK_STR(present(), "convnet_s resnet50 ");
    /* Weights of a tag with a row of its own belong to that row, and a row's two names count once.
     */
    put("convnet_s", ".cache/stoker/tf_efficientnet_b0.ap_in1k.safetensors", NULL, path);
    CHECK_STR(present(), "convnet_s resnet50 tf_efficientnet_b0.ap_in1k ");
    put("convnet_s",
        ".cache/huggingface/hub/models--timm--tf_efficientnet_b0.ns_jft_in1k/snapshots/1/"
        "model.safetensors",
        NULL, path);
    CHECK_STR(present(), "convnet_s resnet50 tf_efficientnet_b0 tf_efficientnet_b0.ap_in1k ");
}

static void no_memory_is_told(void) {
    char path[600];
    enter();
    put("convnet_s", ".cache/stoker/convnet_s.safetensors", NULL, path);
    stk_status status = STK_ERR_MEMORY;
    int n = 0;
    for (; n < 2000 && status == STK_ERR_MEMORY; n++) {
        const stk_model *models[8];
        size_t count = 0;
        stk_str places = {0};
        stk_pretrained_file file = {.path = path, .name = (char[]){""}};
        const char *why = NULL;
        stk_error err = {0};
        stk_mem_fail_after(n);
        status = stk_pretrained_models(models, STK_COUNT(models), &count, &places, &err);
        if (status == STK_OK) {
            status = stk_pretrained_model(&file, &models[0], &why, &err);
        }
        stk_mem_fail_after(-1);
        CHECK_INT(err.status, status);
        stk_str_free(&places);
    }
    CHECK_INT(status, STK_OK);
    CHECK(n > 20);
}

static const check_test tests[] = {
    TEST(a_name_says_it),
    TEST(shapes_say_it_otherwise),
    TEST(what_fits_nothing_is_refused),
    TEST(models_that_have_weights),
    TEST(no_memory_is_told),
};

CHECK_MAIN(tests)
