/* variants.c - the table of fusions. */
#include "backend/cuda/variants/variants.h"

const cuda_fusion_row stk_cuda_fusions[CUDA_FUSIONS] = {
    [CUDA_FUSE_STATS] = {.name = "statistics 1",
                         .parts = 1,
                         .emit = stk_cuda_emit_stats,
                         .rehearse = stk_cuda_rehearse_stats},
    [CUDA_FUSE_LAYER_BACK] = {.name = "layer backward 1",
                              .parts = 1,
                              .scratch = stk_cuda_layer_back_site_scratch,
                              .emit = stk_cuda_emit_layer_back,
                              .rehearse = stk_cuda_rehearse_layer_back},
    [CUDA_FUSE_NORM_CONV] = {.name = "norm in front 1",
                             .parts = 2,
                             .emit = stk_cuda_emit_norm_conv,
                             .rehearse = stk_cuda_rehearse_norm_conv},
    [CUDA_FUSE_NORM_WEIGHT] = {.name = "norm in front of a gradient 1",
                               .parts = 1,
                               .emit = stk_cuda_emit_norm_weight,
                               .rehearse = stk_cuda_rehearse_norm_weight},
    [CUDA_FUSE_JOIN] = {.name = "join 1",
                        .parts = 2,
                        .scratch = stk_cuda_join_site_scratch,
                        .emit = stk_cuda_emit_join,
                        .rehearse = stk_cuda_rehearse_join},
    [CUDA_FUSE_JOIN_BACK] = {.name = "gradients join 1",
                             .parts = 3,
                             .scratch = stk_cuda_join_back_site_scratch,
                             .emit = stk_cuda_emit_join_back,
                             .rehearse = stk_cuda_rehearse_join_back},
};

void stk_cuda_emit_variants(cuda_program *p, cuda_fusion fusion, const cuda_site *site, int part,
                            int chosen) {
    stk_cuda_emit_both(p, stk_cuda_fusions[fusion].emit, site, part, chosen);
}
