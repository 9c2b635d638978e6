/*
 * compile_twice.h - compiles a loop twice on x86: for every processor, and for AVX2.
 *
 * By default compilers use only the instructions of the oldest 64-bit processors. Write the loop as
 * `static inline` NAME_body, marked BODY;
 *     COMPILE_TWICE(NAME, (int size, uint8_t *pixels), (size, pixels))
 * compiles it both ways and defines NAME, which chooses at run time. Only for integer arithmetic,
 * where both give the same result. On other processors, such as arm64, vector instructions are
 * always available and NAME is the body alone. Not for other rooms.
 */
#ifndef STK_IMAGE_AUGMENT_COMPILE_TWICE_H
#define STK_IMAGE_AUGMENT_COMPILE_TWICE_H

/* Must be inlined, since it is compiled for the instructions of its caller. */
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
