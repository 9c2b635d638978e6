/* avx2.c - tiles in the 16 registers of AVX2: 12 of sums, two of B, one element of A. */
#include "backend/cpu/gemm/gemm.h"

#if defined(__x86_64__)

static bool is_here(void) {
    return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
}

#define GEMM_LANES 8
#define GEMM_ROWS 6
#define GEMM_TARGET __attribute__((target("avx2,fma")))
#define GEMM_HAS_UPPER_HALVES
#define GEMM_TABLE stk_cpu_gemm_avx2
#define GEMM_LABEL "avx2"
#include "backend/cpu/gemm/tile.h"

#endif
