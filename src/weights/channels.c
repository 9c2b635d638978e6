/* channels.c - filters over RGB become filters over other channels. */
#include "weights/channels.h"

void stk_weights_adapt_channels(const float *rgb, size_t filters, size_t taps, int channels,
                                float *out) {
    float scale = (float)STK_PRETRAINED_CHANNELS / (float)channels;
    for (size_t f = 0; f < filters; f++) {
        const float *from = rgb + f * STK_PRETRAINED_CHANNELS * taps;
        for (int c = 0; c < channels; c++) {
            for (size_t t = 0; t < taps; t++) {
                float sum = from[t] + from[taps + t] + from[2 * taps + t];
                float one = from[(size_t)(c % STK_PRETRAINED_CHANNELS) * taps + t];
                *out++ = channels == 1 ? sum : one * scale;
            }
        }
    }
}

bool stk_weights_reads_pictures(const stk_graph *graph, int param) {
    for (int n = 0; n < graph->node_count; n++) {
        const stk_node *node = &graph->nodes[n];
        if (node->op == STK_OP_CONV && node->inputs[0] == graph->input &&
            node->params[0] == param) {
            return true;
        }
    }
    return false;
}
