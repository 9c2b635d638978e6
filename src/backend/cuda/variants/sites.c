/*
 * sites.c - shared by the fusions: both variants of a part at one time; for sites on noise, buffers
 * and the coefficients of norms.
 */
#include "backend/cuda/variants/variants.h"

void stk_cuda_emit_variants(cuda_program *p, cuda_emit_part *emit, const cuda_site *site, int part,
                            int chosen) {
    cuda_variant_span span = stk_cuda_variants_begin(p);
    for (int variant = 0; variant < CUDA_VARIANTS; variant++) {
        emit(p, site, part, variant);
        stk_cuda_variants_add(p, &span, variant == chosen);
    }
    stk_cuda_variants_end(p, &span);
}

cuda_ref stk_cuda_room(cuda_program *p, size_t count) {
    return stk_cuda_buffer(p, count * cuda_type_bytes(p->type));
}

cuda_ref stk_cuda_room_floats(cuda_program *p, size_t count) {
    return stk_cuda_buffer(p, count * sizeof(float));
}

cuda_ref stk_cuda_noise_room(cuda_program *p, size_t count) {
    cuda_ref room = stk_cuda_room(p, count);
    stk_cuda_noise(p, count, room);
    return room;
}

cuda_ref stk_cuda_noise_floats(cuda_program *p, size_t count) {
    return stk_cuda_noise_room(p, count * sizeof(float) / cuda_type_bytes(p->type));
}

void stk_cuda_rehearse_coefs(cuda_program *p, cuda_plane plane, cuda_ref x, const cuda_norm *norm) {
    size_t channels = (size_t)plane.channels;
    cuda_ref few = stk_cuda_noise_room(p, channels);
    stk_cuda_to_float(p, channels, few, norm->weight);
    stk_cuda_to_float(p, channels, few, norm->bias);
    stk_cuda_norm_stats(p, plane, x, norm, cuda_nothing());
}
