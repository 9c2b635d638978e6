/* blas.c - what OpenBLAS offers beyond CBLAS; other libraries lack these symbols. */
#include "backend/cpu/blas.h"

#include <cblas.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/error.h"
#include "base/machine.h"

/* OpenBLAS maps a buffer of 32 MB on arm64 and of 128 MB on x86_64. */
#define BUFFER_BYTES ((size_t)129 << 20)

extern void openblas_set_num_threads(int threads) __attribute__((weak));
extern char *openblas_get_corename(void) __attribute__((weak));

/* A product of two numbers: at its first product the library maps a buffer, which it keeps. */
static void multiply_once(void) {
    float one = 1;
    float product = 0;
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, 1, 1, 1, 1, &one, 1, &one, 1, 0,
                &product, 1);
}

stk_status stk_cpu_blas_begin(stk_error *err) {
    static atomic_bool has_buffer;
    if (openblas_set_num_threads == NULL) {
        return STK_OK;
    }
    openblas_set_num_threads(1);
    if (atomic_load(&has_buffer)) {
        return STK_OK;
    }
    if (!stk_machine_can_map(BUFFER_BYTES)) {
        return STK_FAIL_MEMORY(err, "OpenBLAS, which maps up to 128 MB");
    }
    multiply_once();
    atomic_store(&has_buffer, true);
    return STK_OK;
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
