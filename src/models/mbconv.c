/* mbconv.c - stem, seven stages of inverted residual blocks, head. */
#include "models/mbconv.h"

#include <math.h>
#include <stdio.h>

#define STEM_CHANNELS 32
#define HEAD_CHANNELS 1280
#define TENSORFLOW_EPSILON 1e-3f
#define SQUEEZE 4 /* channels before a block per channel that its squeeze leaves */

/* One network while it is built. */
typedef struct builder {
    const stk_mbconv_net *net;
    stk_graph *graph;
} builder;

typedef struct mbconv_block_spec {
    char name[32]; /* "blocks.2.0" */
    int kernel;
    int stride;
    int expand;
    int inputs;
    int outputs;
    double drop_path;
} mbconv_block_spec;

/* The nearest multiple of 8, or the next one where that would take away a tenth or more. */
static int scale_channels(int channels, double width) {
    double wanted = channels * width;
    int rounded = (int)(wanted + 4) / 8 * 8;
    rounded = rounded > 8 ? rounded : 8;
    return rounded < 0.9 * wanted ? rounded + 8 : rounded;
}

static int stage_blocks(const stk_mbconv_net *net, int stage) {
    bool end = stage == 0 || stage == STK_MBCONV_STAGES - 1;
    int blocks = net->stages[stage].blocks;
    return end && net->fixed_ends ? blocks : (int)ceil(blocks * net->depth);
}

static int activate(const builder *b, int x) {
    return b->net->relu6 ? stk_graph_relu6(b->graph, x) : stk_graph_silu(b->graph, x);
}

static int norm(const builder *b, int x, const char *block, const char *module) {
    char name[64];
    snprintf(name, sizeof name, "%s%s", block, module);
    return stk_graph_batch_norm(b->graph, x, name, STK_INIT_ONE);
}

static int pointwise(const builder *b, int x, const char *block, const char *module, int channels) {
    char name[64];
    snprintf(name, sizeof name, "%s%s", block, module);
    return stk_graph_conv(b->graph, x, name, channels, 1, 1, 0);
}

static int depthwise(const builder *b, int x, const mbconv_block_spec *spec) {
    char name[64];
    snprintf(name, sizeof name, "%s.conv_dw", spec->name);
    return stk_graph_depthwise(b->graph, x, name, spec->kernel, spec->stride,
                               b->net->same ? STK_PAD_SAME : spec->kernel / 2);
}

/* A gate per channel, from the means of all channels. */
static int squeeze_excite(const builder *b, int x, const mbconv_block_spec *spec) {
    char name[64];
    stk_graph *graph = b->graph;
    snprintf(name, sizeof name, "%s.se.conv_reduce", spec->name);
    int gate = stk_graph_avg_pool(graph, x);
    gate = stk_graph_conv_bias(graph, gate, name, spec->inputs / SQUEEZE, 1, 1, 0);
    gate = activate(b, gate);
    snprintf(name, sizeof name, "%s.se.conv_expand", spec->name);
    gate = stk_graph_conv_bias(graph, gate, name, spec->inputs * spec->expand, 1, 1, 0);
    return stk_graph_scale(graph, x, stk_graph_sigmoid(graph, gate));
}

/* timm counts the norms of a block from 1 and calls the 1x1 after an expansion conv_pwl. */
static int add_block(const builder *b, int x, const mbconv_block_spec *spec) {
    bool expands = spec->expand > 1;
    int y = x;
    if (expands) {
        y = pointwise(b, y, spec->name, ".conv_pw", spec->inputs * spec->expand);
        y = activate(b, norm(b, y, spec->name, ".bn1"));
    }
    y = depthwise(b, y, spec);
    y = activate(b, norm(b, y, spec->name, expands ? ".bn2" : ".bn1"));
    if (b->net->squeeze) {
        y = squeeze_excite(b, y, spec);
    }
    y = pointwise(b, y, spec->name, expands ? ".conv_pwl" : ".conv_pw", spec->outputs);
    y = norm(b, y, spec->name, expands ? ".bn3" : ".bn2");
    if (spec->stride > 1 || spec->inputs != spec->outputs) {
        return y;
    }
    return stk_graph_add(b->graph, stk_graph_drop_path(b->graph, y, spec->drop_path), x);
}

/* All stages; *channels becomes that of the last. */
static int add_stages(const builder *b, int x, double drop_path, int *channels) {
    const stk_mbconv_net *net = b->net;
    int total = 0;
    for (int s = 0; s < STK_MBCONV_STAGES; s++) {
        total += stage_blocks(net, s);
    }
    int index = 0;
    for (int s = 0; s < STK_MBCONV_STAGES; s++) {
        const stk_mbconv_stage *stage = &net->stages[s];
        for (int i = 0; i < stage_blocks(net, s); i++, index++) {
            mbconv_block_spec spec = {.kernel = stage->kernel,
                                      .stride = i == 0 ? stage->stride : 1,
                                      .expand = stage->expand,
                                      .inputs = *channels,
                                      .outputs = scale_channels(stage->channels, net->width),
                                      .drop_path = drop_path * index / total};
            snprintf(spec.name, sizeof spec.name, "blocks.%d.%d", s, i);
            x = add_block(b, x, &spec);
            *channels = spec.outputs;
        }
    }
    return x;
}

int stk_mbconv_build(const stk_mbconv_net *net, const stk_model_config *config, stk_graph *graph) {
    builder b = {.net = net, .graph = graph};
    double ends = net->fixed_ends ? 1.0 : net->width;
    graph->norm_epsilon = net->same ? TENSORFLOW_EPSILON : graph->norm_epsilon;
    int channels = scale_channels(STEM_CHANNELS, ends);
    int x = stk_graph_conv(graph, stk_graph_input(graph), "conv_stem", channels, 3, 2,
                           net->same ? STK_PAD_SAME : 1);
    x = activate(&b, norm(&b, x, "", "bn1"));
    x = add_stages(&b, x, config->drop_path, &channels);
    x = pointwise(&b, x, "", "conv_head", scale_channels(HEAD_CHANNELS, ends));
    x = activate(&b, norm(&b, x, "", "bn2"));
    x = stk_graph_dropout(graph, stk_graph_avg_pool(graph, x), config->dropout);
    x = stk_model_head(config, graph, x, "classifier");
    stk_graph_start_as(graph, x, STK_INIT_LINEAR, graph->classes);
    return x;
}
