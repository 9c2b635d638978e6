/* models.c - the list of families. */
#include "models/models.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/str.h"

static const stk_model_family *const families[] = {&stk_convnet_family, &stk_resnet_family,
                                                   &stk_cifar_resnet_family,
                                                   &stk_efficientnet_family, &stk_mobilenet_family};
#define FAMILIES (sizeof families / sizeof *families)
#define MAX_MODELS 128
#define MOST_NEAREST 3 /* names that an error offers */
#define MOST_LEAST 256 /* px: the search for the least image size ends here */

const stk_model *stk_model_at(size_t index) {
    for (size_t f = 0; f < FAMILIES; f++) {
        if (index < families[f]->count) {
            return &families[f]->models[index];
        }
        index -= families[f]->count;
    }
    return NULL;
}

/* The row whose name is the first `length` letters of `name`. */
static const stk_model *row_named(const char *name, size_t length) {
    const stk_model *model = NULL;
    for (size_t i = 0; (model = stk_model_at(i)) != NULL; i++) {
        if (strlen(model->name) == length && strncmp(model->name, name, length) == 0) {
            return model;
        }
    }
    return NULL;
}

/* "; did you mean a, b or c?", or all there are when none is near. */
static void append_offer(stk_str *text, const char *name) {
    const char *names[MAX_MODELS];
    size_t count = 0;
    const stk_model *model = NULL;
    for (size_t i = 0; (model = stk_model_at(i)) != NULL && count < MAX_MODELS; i++) {
        if (strchr(model->name, '.') == NULL) {
            names[count++] = model->name;
        }
    }
    const char *nearest[MOST_NEAREST];
    size_t found = 0;
    while (found < MOST_NEAREST && (nearest[found] = stk_str_nearest(name, names, count)) != NULL) {
        size_t at = 0;
        while (names[at] != nearest[found]) {
            at++;
        }
        names[at] = names[--count];
        found++;
    }
    for (size_t i = 0; i < found; i++) {
        const char *before = i == 0 ? "; did you mean " : i + 1 < found ? ", " : " or ";
        stk_str_appendf(text, "%s%s", before, nearest[i]);
    }
    stk_str_appendf(text, found > 0 ? "?" : "; there are " STK_MODEL_NAMES);
}

stk_status stk_model_find(const char *name, const stk_model **model, stk_error *err) {
    size_t length = strcspn(name, ".");
    const stk_model *found = row_named(name, strlen(name));
    found = found != NULL ? found : row_named(name, length);
    if (found != NULL) {
        *model = found;
        return STK_OK;
    }
    char bare[64]; /* the name without its tag */
    snprintf(bare, sizeof bare, "%.*s", (int)(length < sizeof bare ? length : 0), name);
    stk_str offer = {0};
    append_offer(&offer, bare);
    stk_status status = STK_FAIL(err, STK_ERR_USAGE, "--model %s: there is no such model%s", name,
                                 stk_str_text(&offer));
    stk_str_free(&offer);
    return status;
}

/* Whether a layer that halves the picture finds a single pixel: such a network learns little. */
static bool is_too_small(const stk_graph *graph) {
    for (int n = 0; n < graph->node_count; n++) {
        const stk_node *node = &graph->nodes[n];
        if (node->stride > 1 && graph->values[node->inputs[0]].shape.height == 1) {
            return true;
        }
    }
    return false;
}

static stk_status build(const stk_model *model, const stk_model_config *config, stk_graph **out,
                        stk_error *err) {
    stk_graph *graph = NULL;
    stk_status status = stk_graph_new(&graph, config->img_size, config->classes, err);
    if (status != STK_OK) {
        return status;
    }
    memcpy(graph->mean, model->mean, sizeof model->mean);
    memcpy(graph->std, model->std, sizeof model->std);
    stk_graph_set_channels(graph, config->channels > 0 ? config->channels : 3);
    if (config->loss != NULL) {
        stk_graph_set_loss(graph, config->loss);
    }
    int outputs = model->build(model, config, graph);
    outputs = config->embeds ? stk_graph_embed(graph, outputs) : outputs;
    status = stk_graph_finish(graph, outputs, err);
    if (status == STK_OK && is_too_small(graph)) {
        status = STK_FAIL(err, STK_ERR_USAGE, "images of %d px are too small for %s",
                          config->img_size, model->name);
    }
    if (status != STK_OK) {
        stk_graph_free(graph);
        return status;
    }
    *out = graph;
    return STK_OK;
}

/* The least image size that the network can be built for; 0: none was found. */
static int least_size(const stk_model *model, stk_model_config config) {
    for (config.img_size++; config.img_size <= MOST_LEAST; config.img_size++) {
        stk_graph *graph = NULL;
        stk_error err = {0};
        if (build(model, &config, &graph, &err) == STK_OK) {
            stk_graph_free(graph);
            return config.img_size;
        }
    }
    return 0;
}

stk_status stk_model_build(const stk_model *model, const stk_model_config *config, stk_graph **out,
                           stk_error *err) {
    stk_model_config own = *config;
    own.dropout = config->dropout < 0 ? model->dropout : config->dropout;
    own.drop_path = config->drop_path < 0 ? model->drop_path : config->drop_path;
    stk_error why = {0};
    stk_status status = build(model, &own, out, &why);
    if (status == STK_OK) {
        return STK_OK;
    }
    int least = status == STK_ERR_USAGE ? least_size(model, own) : 0;
    if (least > 0) {
        return STK_FAIL(err, STK_ERR_USAGE,
                        "--img-size %d: %s needs images of at least %d px, since it halves them "
                        "again and again",
                        config->img_size, model->name, least);
    }
    return STK_FAIL(err, status, "%s", why.message);
}
