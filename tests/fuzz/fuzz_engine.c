/*
 * fuzz_engine.c - what libFuzzer, or another engine, calls in a program fuzz_NAME. The target's own
 * function has another name (FUZZ_TRY), since all targets are also linked into one test program.
 */
#include "fuzz.h"

int FUZZ_TRY(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    return FUZZ_TRY(data, size);
}
