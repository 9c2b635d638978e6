/*
 * fuzz_main.c - a fuzzing driver without libFuzzer, so that hostile input is part of every test
 * run.
 *
 * It tries each seed, each beginning of each seed, and then a fixed number of mutations that depend
 * on nothing but a number: `program FIRST COUNT` tries mutations FIRST .. FIRST+COUNT-1, and the
 * sentence of a crash names the number that repeats it.
 */
#include "fuzz.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/rng.h"

/* Bytes of an input: room for small seeds to grow, and a bound for the large ones. */
#define ROOM_SIZE 4096
#define MAX_SIZE (64 * 1024)

/* Bytes that mean something in the formats that are read; picked more often than others. */
static const char interesting[] = "\"\\,:{}[]\r\n\t 0123456789-+.eEun\xEF\xBB\xBF\xFF\x80\x7F<>/";

static fuzz_plan plan;
static size_t most_bytes; /* of an input; ROOM_SIZE or as the largest seed */

/* What is being tried, for the handler. */
static char current[64] = "nothing";

static void on_crash(int signal_number) {
    static const char before[] = "crashed while trying ";
    ssize_t unused = write(STDERR_FILENO, before, sizeof before - 1);
    unused = write(STDERR_FILENO, current, strlen(current));
    unused = write(STDERR_FILENO, "\n", 1);
    (void)unused;
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

/* The input lies in memory of exactly its size, so that a sanitizer sees every byte too many. */
static void try_input(const char *bytes, size_t size) {
    uint8_t *copy = malloc(size > 0 ? size : 1);
    FUZZ_REQUIRE(copy != NULL);
    if (size > 0) {
        memcpy(copy, bytes, size);
    }
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
}

static size_t mutate_once(char *text, size_t size, stk_rng *rng) {
    size_t at = (size_t)stk_rng_below(rng, size + 1);
    char byte = stk_rng_below(rng, 3) > 0 ? interesting[stk_rng_below(rng, sizeof interesting - 1)]
                                          : (char)stk_rng_below(rng, 256);
    switch (stk_rng_below(rng, 5)) {
    case 0: /* replace a byte */
        if (at < size) {
            text[at] = byte;
        }
        return size;
    case 1: /* insert a byte */
        if (size < most_bytes) {
            memmove(text + at + 1, text + at, size - at);
            text[at] = byte;
            size++;
        }
        return size;
    case 2: { /* remove a piece */
        size_t length = (size_t)stk_rng_below(rng, size - at + 1);
        memmove(text + at, text + at + length, size - at - length);
        return size - length;
    }
    case 3: { /* repeat a piece */
        size_t length = (size_t)stk_rng_below(rng, size - at + 1);
        if (size + length <= most_bytes) {
            memmove(text + at + length, text + at, size - at);
            size += length;
        }
        return size;
    }
    default: { /* put a piece of another seed there */
        const fuzz_seed *other = &plan.seeds[stk_rng_below(rng, plan.count)];
        size_t length = (size_t)stk_rng_below(rng, other->size + 1);
        if (at + length <= most_bytes) {
            memcpy(text + at, other->bytes, length);
            size = at + length > size ? at + length : size;
        }
        return size;
    }
    }
}

static void try_mutation(uint64_t number) {
    static char text[MAX_SIZE + 1];
    stk_rng rng = stk_rng_make(number, STK_RNG_TEST, 0, 0);
    const fuzz_seed *seed = &plan.seeds[stk_rng_below(&rng, plan.count)];
    size_t size = seed->size < most_bytes ? seed->size : most_bytes;
    memcpy(text, seed->bytes, size);
    for (uint64_t edits = 1 + stk_rng_below(&rng, 8); edits > 0; edits--) {
        size = mutate_once(text, size, &rng);
    }
    snprintf(current, sizeof current, "mutation %llu", (unsigned long long)number);
    try_input(text, size);
}

static void try_prefixes(size_t number) {
    const fuzz_seed *seed = &plan.seeds[number];
    for (size_t size = 0; size <= seed->size; size++) {
        snprintf(current, sizeof current, "the first %zu bytes of seed %zu", size, number);
        try_input(seed->bytes, size);
    }
}

int main(int argc, char **argv) {
    signal(SIGABRT, on_crash);
    signal(SIGSEGV, on_crash);
    plan = fuzz_prepare();
    most_bytes = ROOM_SIZE;
    for (size_t i = 0; i < plan.count; i++) {
        size_t size = plan.seeds[i].size < MAX_SIZE ? plan.seeds[i].size : MAX_SIZE;
        most_bytes = size > most_bytes ? size : most_bytes;
    }
    uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
    uint64_t count = argc > 2 ? strtoull(argv[2], NULL, 10) : plan.mutations;
    for (size_t i = 0; i < plan.prefixed && argc < 2; i++) {
        try_prefixes(i);
    }
    for (uint64_t i = 0; i < count; i++) {
        try_mutation(first + i);
    }
    printf("ok   %llu mutations of %zu seeds\n1 passed, 0 failed, 0 skipped\n",
           (unsigned long long)count, plan.count);
    return 0;
}
