/* cpu_blas.c - what OpenBLAS offers beyond CBLAS; other libraries lack these symbols. */
#include "backend/cpu/cpu_blas.h"

#include <stddef.h>
#include <string.h>

extern void openblas_set_num_threads(int threads) __attribute__((weak));
extern char *openblas_get_corename(void) __attribute__((weak));

void stk_cpu_blas_single_thread(void) {
    if (openblas_set_num_threads != NULL) {
        openblas_set_num_threads(1);
    }
}

const char *stk_cpu_blas_core_type(void) {
#if defined(__x86_64__)
    const char *core = openblas_get_corename != NULL ? openblas_get_corename() : NULL;
    if (core == NULL || (strcmp(core, "Prescott") != 0 && strcmp(core, "Core2") != 0 &&
                         strcmp(core, "Nehalem") != 0)) {
        return NULL;
    }
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")) {
        return "SkylakeX";
    }
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? "Haswell" : NULL;
#else
    return NULL;
#endif
}
