/*
 * avx512.c - tiles in the 32 registers of AVX-512: 28 of sums, two of B and one element
 * of A.
 */
#include "backend/cpu/gemm/gemm.h"

#if defined(__x86_64__)

static bool is_here(void) {
    return __builtin_cpu_supports("avx512f") != 0;
}

#define GEMM_LANES 16
#define GEMM_ROWS 14
#define GEMM_TARGET __attribute__((target("avx512f")))
#define GEMM_HAS_UPPER_HALVES
#define GEMM_TABLE stk_cpu_gemm_avx512
#define GEMM_LABEL "avx512"
#include "backend/cpu/gemm/tile.h"

#endif
