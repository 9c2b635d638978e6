/*
 * plain.c - tiles with instructions that every processor of the architecture has, and the
 * choice among all kinds of tiles.
 */
#include "backend/cpu/gemm/gemm.h"

static bool is_here(void) {
    return true;
}

#define GEMM_LANES 4
#define GEMM_ROWS 4
#define GEMM_TARGET
#define GEMM_TABLE stk_cpu_gemm_plain
#define GEMM_LABEL "plain"
#include "backend/cpu/gemm/tile.h"

const cpu_gemm *const stk_cpu_gemm_list[] = {
#if defined(__x86_64__)
    &stk_cpu_gemm_avx512,
    &stk_cpu_gemm_avx2,
#elif defined(__aarch64__)
    &stk_cpu_gemm_neon,
#endif
    &stk_cpu_gemm_plain,
    NULL,
};

const cpu_gemm *stk_cpu_gemm_best(void) {
    for (size_t i = 0; stk_cpu_gemm_list[i] != NULL; i++) {
        if (stk_cpu_gemm_list[i]->is_here()) {
            return stk_cpu_gemm_list[i];
        }
    }
    return &stk_cpu_gemm_plain;
}
