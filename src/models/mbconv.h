/*
 * mbconv.h - networks of inverted residual blocks, of which MobileNetV2 and EfficientNet are made:
 * a 1x1 convolution to more channels, a depthwise one, perhaps squeeze-and-excite, a 1x1 back. The
 * families describe their network in a table; names of modules are timm's. Not for other rooms.
 */
#ifndef STK_MODELS_MBCONV_H
#define STK_MODELS_MBCONV_H

#include "models/models.h"

#define STK_MBCONV_STAGES 7

typedef struct stk_mbconv_stage {
    int blocks;   /* before scaling by depth */
    int kernel;   /* of the depthwise convolutions */
    int stride;   /* of the first block */
    int expand;   /* channels within a block per channel before it; 1: no 1x1 before */
    int channels; /* behind each block, before scaling by width */
} stk_mbconv_stage;

typedef struct stk_mbconv_net {
    const stk_mbconv_stage *stages; /* STK_MBCONV_STAGES */
    double width;
    double depth;
    bool fixed_ends; /* stem, head and the depth of the first and the last stage are not scaled */
    bool squeeze;    /* squeeze-and-excite, to a quarter of the channels before the block */
    bool same;       /* TensorFlow's padding and epsilon of norms */
    bool relu6;      /* otherwise SiLU */
} stk_mbconv_net;

/* From the input to the logits. */
int stk_mbconv_build(const stk_mbconv_net *net, const stk_model_config *config, stk_graph *graph);

#endif
