/* head.c - the last layer of every network, with numbers beside the picture or without. */
#include "models/models.h"

/* Outputs of the layer that the numbers beside a picture pass: twice as many as there are numbers,
 * within these bounds. */
#define LEAST_FEATURE_OUTPUTS 16
#define MOST_FEATURE_OUTPUTS 256

int stk_model_head(const stk_model_config *config, stk_graph *graph, int x, const char *name) {
    if (config->features > 0) {
        int wanted = 2 * config->features;
        int width = wanted < LEAST_FEATURE_OUTPUTS  ? LEAST_FEATURE_OUTPUTS
                    : wanted > MOST_FEATURE_OUTPUTS ? MOST_FEATURE_OUTPUTS
                                                    : wanted;
        int numbers = stk_graph_features(graph, config->features);
        numbers = stk_graph_relu(graph, stk_graph_linear(graph, numbers, "features", width));
        x = stk_graph_concat(graph, x, numbers);
    }
    if (config->steps) {
        return stk_graph_steps(graph, stk_graph_linear(graph, x, name, 1));
    }
    return stk_graph_linear(graph, x, name, graph->classes);
}
