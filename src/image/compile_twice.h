/*
 * compile_twice.h - loops that are compiled for every processor and for a better one.
 *
 * On x86, compilers may use no more than what the oldest 64-bit processors have. A function
 * `static inline` NAME_body, marked BODY, is compiled once so and once for AVX2 by
 *     COMPILE_TWICE(NAME, (int size, uint8_t *pixels), (size, pixels))
 * which defines NAME, the function that chooses at run time. This is for arithmetic on whole
 * numbers, where both give the same result. Elsewhere, as on arm64, vector instructions are always
 * there and NAME is the body alone. Not for other rooms.
 */
#ifndef STK_IMAGE_COMPILE_TWICE_H
#define STK_IMAGE_COMPILE_TWICE_H

/* Must become part of its caller, since it is compiled for what the caller is compiled for. */
#define BODY static inline __attribute__((always_inline))

#if defined(__x86_64__)
#define COMPILE_TWICE(name, parameters, arguments)                       \
    static __attribute__((target("avx2"))) void name##_avx2 parameters { \
        name##_body arguments;                                           \
    }                                                                    \
    static void name parameters {                                        \
        if (__builtin_cpu_supports("avx2")) {                            \
            name##_avx2 arguments;                                       \
        } else {                                                         \
            name##_body arguments;                                       \
        }                                                                \
    }
#else
#define COMPILE_TWICE(name, parameters, arguments) \
    static void name parameters {                  \
        name##_body arguments;                     \
    }
#endif

#endif
