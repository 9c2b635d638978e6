/*
 * vector.h - inside the CPU backend: plain loops compiled for better processors too, and the
 * exponential that such loops can hold.
 *
 * On x86, compilers by default use only the instructions of the oldest 64-bit processors. For a
 * function NAME_body, marked CPU_BODY,
 *     CPU_VECTOR(NAME, (const float *x, size_t count), (x, count))
 * compiles the body three times, for the oldest processors, for AVX2 and for AVX-512, and defines
 * NAME, which chooses one at run time. Elsewhere, as on arm64, every processor has vector
 * instructions, and NAME only calls the body. Results may differ in the last bits, since newer
 * processors multiply and add in one instruction; a machine always takes the same version.
 */
#ifndef STK_BACKEND_CPU_KERNELS_VECTOR_H
#define STK_BACKEND_CPU_KERNELS_VECTOR_H

#include <stdint.h>
#include <string.h>

/* Must be inlined: it is compiled for the instructions of its caller. */
#define CPU_BODY static inline __attribute__((always_inline))

#if defined(__x86_64__)
#define CPU_VECTOR(name, parameters, arguments)                                                 \
    static __attribute__((                                                                      \
        target("avx512f,avx512dq,avx512vl,avx512bw,fma,avx2"))) void name##_avx512 parameters { \
        name##_body arguments;                                                                  \
    }                                                                                           \
    static __attribute__((target("avx2,fma"))) void name##_avx2 parameters {                    \
        name##_body arguments;                                                                  \
    }                                                                                           \
    static void name parameters {                                                               \
        if (__builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&         \
            __builtin_cpu_supports("avx512bw")) {                                               \
            name##_avx512 arguments;                                                            \
        } else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {           \
            name##_avx2 arguments;                                                              \
        } else {                                                                                \
            name##_body arguments;                                                              \
        }                                                                                       \
    }
#else
#define CPU_VECTOR(name, parameters, arguments) \
    static void name parameters {               \
        name##_body arguments;                  \
    }
#endif

/*
 * Before a loop: its rounds do not depend on each other, though output and input may be the same
 * memory, element for element.
 */
#if !defined(__clang__)
#define CPU_EACH _Pragma("GCC ivdep")
#elif __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(undefined_behavior_sanitizer) || __has_feature(memory_sanitizer)
#define CPU_EACH /* clang warns of loops that it cannot make vectors of */
#else
#define CPU_EACH _Pragma("clang loop vectorize(assume_safety)")
#endif

/*
 * e to the power of x, with a relative error below 2e-7. x is clamped to -87 .. 87, so that the
 * result is always a normal number. NaN counts as 87 or -87, by its sign.
 */
CPU_BODY float cpu_exp(float x) {
    /* Clamps the bits as integers: for floats compilers make branches, for integers a minimum. */
    uint32_t sign;
    memcpy(&sign, &x, sizeof sign);
    uint32_t size = sign & 0x7FFFFFFFu;
    size = size < 0x42AE0000u ? size : 0x42AE0000u; /* 87 */
    size |= sign & 0x80000000u;
    memcpy(&x, &size, sizeof x);
    /* x = n ln 2 + r with |r| <= ln 2 / 2. Adding 1.5 * 2^23 leaves n in the lowest bits. */
    float shifted = x * 1.44269504f + 12582912.0f;
    float n = shifted - 12582912.0f;
    float r = x - n * 0.693145752f; /* ln 2 in two parts, the first of them short */
    r = r - n * 1.42860677e-6f;
    /* The Taylor series ends at r^7 / 7!, below 2e-8. */
    float p = 1.0f / 5040;
    p = p * r + 1.0f / 720;
    p = p * r + 1.0f / 120;
    p = p * r + 1.0f / 24;
    p = p * r + 1.0f / 6;
    p = p * r + 0.5f;
    p = p * r * r + r + 1.0f;
    int32_t bits;
    memcpy(&bits, &shifted, sizeof bits);
    bits = (int32_t)(((uint32_t)bits << 23) + 0x3F800000u); /* 2^n: n becomes the exponent */
    float power;
    memcpy(&power, &bits, sizeof power);
    return p * power;
}

CPU_BODY float cpu_sigmoid(float x) {
    return 1.0f / (1.0f + cpu_exp(-x));
}

#endif
