/*
 * neon.c - tiles in the 32 registers that every arm64 processor has: 24 of sums, two of B
 * and elements of A, which instructions can take out of a register by themselves.
 */
#include "backend/cpu/gemm/gemm.h"

#if defined(__aarch64__)

static bool is_here(void) {
    return true;
}

#define GEMM_LANES 4
#define GEMM_ROWS 12
#define GEMM_TARGET
#define GEMM_TABLE stk_cpu_gemm_neon
#define GEMM_LABEL "neon"
#include "backend/cpu/gemm/tile.h"

#endif
