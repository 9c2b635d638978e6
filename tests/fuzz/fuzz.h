/*
 * fuzz.h - what a fuzz target and its driver share.
 *
 * A target fuzz_NAME.c defines LLVMFuzzerTestOneInput(), which aborts when something is wrong, and
 * fuzz_prepare(), which tells the seeds. With fuzz_main.c it becomes build/tests/test_fuzz_NAME, a
 * test like any other, which also tries what lies in corpus/NAME: there the two functions are
 * called fuzz_NAME_try() and fuzz_NAME_prepare(). With libFuzzer, or another engine that
 * $LIB_FUZZING_ENGINE names, it becomes a program fuzz_NAME that is guided by coverage:
 *
 *     tools/fuzz.sh json 600
 *
 * fuzzes one target for ten minutes, with sanitizers, and adds what is new to its corpus.
 */
#ifndef STK_TESTS_FUZZ_H
#define STK_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct fuzz_seed {
    const char *bytes;
    size_t size;
} fuzz_seed;

/* One seed from a string literal, which may hold NUL bytes. */
#define FUZZ_SEED(literal) \
    { (literal), sizeof(literal) - 1 }

/* What a test run tries. */
typedef struct fuzz_plan {
    const fuzz_seed *seeds;
    size_t count;
    size_t prefixed;    /* of so many, the first ones, every beginning is tried */
    uint64_t mutations; /* in a run that is told nothing else */
    uint64_t large;     /* inputs of a megabyte, in such a run */
} fuzz_plan;

/* Called once, at the start of the driver. */
fuzz_plan fuzz_prepare(void);

/* A plan for an array of seeds that are quick to try. */
#define FUZZ_PLAN(array)                                                                           \
    fuzz_plan fuzz_prepare(void) {                                                                 \
        const size_t count = sizeof(array) / sizeof *(array);                                      \
        return (fuzz_plan){                                                                        \
            .seeds = (array), .count = count, .prefixed = count, .mutations = 30000, .large = 10}; \
    }

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Stops the program with a sentence: the input that did it is the one being tried. */
#define FUZZ_REQUIRE(condition)                                                            \
    do {                                                                                   \
        if (!(condition)) {                                                                \
            fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition); \
            abort();                                                                       \
        }                                                                                  \
    } while (0)

#endif
