/*
 * mbconv.h - networks of inverted residual blocks: MobileNetV2 and EfficientNet. A block is a 1x1
 * convolution to more channels, a depthwise one, perhaps squeeze-and-excite, and a 1x1 back. The
 * families describe their networks in tables. Module names are timm's. Only for this room.
 */
#ifndef STK_MODELS_MBCONV_H
#define STK_MODELS_MBCONV_H

#include "models/models.h"

#define STK_MBCONV_STAGES 7

typedef struct stk_mbconv_stage {
    int blocks;   /* before scaling by depth */
    int kernel;   /* of the depthwise convolutions */
    int stride;   /* of the first block */
    int expand;   /* channels within a block per input channel; 1: no first 1x1 convolution */
    int channels; /* output channels of each block, before scaling by width */
} stk_mbconv_stage;

typedef struct stk_mbconv_net {
    const stk_mbconv_stage *stages; /* STK_MBCONV_STAGES */
    double width;
    double depth;
    bool fixed_ends; /* width scales neither stem nor head, depth neither the first nor the last
                        stage */
    bool squeeze;    /* squeeze-and-excite, to a quarter of the block's input channels */
    bool same;       /* TensorFlow's padding and epsilon of norms */
    bool relu6;      /* otherwise SiLU */
} stk_mbconv_net;

/* From the input to the logits. */
int stk_mbconv_build(const stk_mbconv_net *net, const stk_model_config *config, stk_graph *graph);

#endif
