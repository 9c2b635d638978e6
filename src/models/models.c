/* models.c - the list of families. */
#include "models/models.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/str.h"

static const stk_model_family *const families[] = {&stk_convnet_family, &stk_resnet_family};
#define FAMILIES (sizeof families / sizeof *families)
#define MAX_MODELS 64

stk_status stk_model_find(const char *name, const stk_model **model, stk_error *err) {
    const char *names[MAX_MODELS];
    size_t count = 0;
    size_t length = strcspn(name, ".");
    for (size_t f = 0; f < FAMILIES; f++) {
        for (size_t i = 0; i < families[f]->count && count < MAX_MODELS; i++) {
            const stk_model *candidate = &families[f]->models[i];
            if (strlen(candidate->name) == length && strncmp(candidate->name, name, length) == 0) {
                *model = candidate;
                return STK_OK;
            }
            names[count++] = candidate->name;
        }
    }
    char bare[64]; /* the tag says nothing about which model is meant */
    snprintf(bare, sizeof bare, "%.*s", (int)(length < sizeof bare ? length : 0), name);
    const char *nearest = stk_str_nearest(bare, names, count);
    stk_str list = {0};
    for (size_t i = 0; i < count; i++) {
        stk_str_appendf(&list, "%s%s", i > 0 ? ", " : "", names[i]);
    }
    stk_status status =
        STK_FAIL(err, STK_ERR_USAGE, "--model %s: there is no such model%s%s; there are %s", name,
                 nearest != NULL ? "; did you mean " : "", nearest != NULL ? nearest : "",
                 stk_str_text(&list));
    stk_str_free(&list);
    return status;
}

stk_status stk_model_build(const stk_model *model, const stk_model_config *config, stk_graph **out,
                           stk_error *err) {
    stk_graph *graph = NULL;
    stk_model_config own = *config;
    own.dropout = config->dropout < 0 ? model->dropout : config->dropout;
    own.drop_path = config->drop_path < 0 ? model->drop_path : config->drop_path;
    stk_status status = stk_graph_new(&graph, config->img_size, config->classes, err);
    if (status != STK_OK) {
        return status;
    }
    memcpy(graph->mean, model->mean, sizeof graph->mean);
    memcpy(graph->std, model->std, sizeof graph->std);
    status = stk_graph_finish(graph, model->build(model, &own, graph), err);
    if (status != STK_OK) {
        stk_graph_free(graph);
        return status;
    }
    *out = graph;
    return STK_OK;
}
