/*
 * fuzz_main.c - a fuzzing driver without libFuzzer, so that hostile input is part of every test
 * run. All targets are one program, which is called through links: test_fuzz_NAME tries one.
 *
 * It tries each seed, each beginning of each seed, each file of the target's corpus, some inputs of
 * a megabyte, and then a fixed number of mutations that depend on nothing but a number and the
 * seeds:
 *
 *     program              what a test run tries
 *     program FIRST COUNT  mutations FIRST .. FIRST+COUNT-1; the sentence of a crash names the
 *                          number that repeats it
 *     program --seeds DIR  writes the seeds there, for libFuzzer to begin with
 *     program --try FILE.. these inputs alone
 *
 * No input may take long: MOST_CPU_S of the processor's time.
 */
#include "fuzz.h"

#include <dirent.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/numbers/rng.h"

/* Bytes of an input: room for small seeds to grow, and a bound for the large ones. */
#define ROOM_SIZE 4096
#define MAX_SIZE (64 * 1024)

/*
 * Inputs in which a piece of a seed is repeated until they are so large. Sanitizers that check
 * whole strings at every call of the C library make such an input quadratic by themselves: there it
 * is smaller, and the ordinary build tells the time.
 */
#define LARGE_SIZE (MOST_CPU_S > 1 ? (size_t)1 << 17 : (size_t)1 << 20)

/* Of the longest input, on a slow machine too. Sanitizers check every access. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MOST_CPU_S 20.0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define MOST_CPU_S 20.0
#endif
#endif
#ifndef MOST_CPU_S
#define MOST_CPU_S 1.0
#endif

/* The targets, each with its functions; CMakeLists.txt writes the list and renames the functions.
 */
typedef struct fuzz_target {
    const char *name;
    int (*try)(const uint8_t *data, size_t size);
    fuzz_plan (*prepare)(void);
} fuzz_target;

#define FUZZ_TARGET(name)                                    \
    int fuzz_##name##_try(const uint8_t *data, size_t size); \
    fuzz_plan fuzz_##name##_prepare(void);
#include "fuzz_targets.h"
#undef FUZZ_TARGET

static const fuzz_target targets[] = {
#define FUZZ_TARGET(name) {#name, fuzz_##name##_try, fuzz_##name##_prepare},
#include "fuzz_targets.h"
#undef FUZZ_TARGET
};

/* Bytes that mean something in the formats that are read; picked more often than others. */
static const char interesting[] = "\"\\,:{}[]\r\n\t 0123456789-+.eEun\xEF\xBB\xBF\xFF\x80\x7F<>/";

static const fuzz_target *target;
static fuzz_plan plan;       /* with the files of the corpus behind the seeds */
static size_t own_seeds;     /* of these, those of the target itself */
static size_t most_bytes;    /* of an input; ROOM_SIZE or as the largest seed */
static double slowest_s = 0; /* of all inputs so far */

/* What is being tried, for the handler. */
static char current[512] = "nothing";

static void on_crash(int signal_number) {
    static const char before[] = "crashed while trying ";
    ssize_t unused = write(STDERR_FILENO, before, sizeof before - 1);
    unused = write(STDERR_FILENO, current, strlen(current));
    unused = write(STDERR_FILENO, "\n", 1);
    (void)unused;
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

static double cpu_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* The input lies in memory of exactly its size, so that a sanitizer sees every byte too many. */
static void try_input(const char *bytes, size_t size) {
    uint8_t *copy = malloc(size > 0 ? size : 1);
    FUZZ_REQUIRE(copy != NULL);
    if (size > 0) {
        memcpy(copy, bytes, size);
    }
    double begun = cpu_s();
    target->try(copy, size);
    double took = cpu_s() - begun;
    slowest_s = took > slowest_s ? took : slowest_s;
    if (took > MOST_CPU_S) {
        fprintf(stderr, "%zu bytes took %.1f s of the processor's time, more than %.0f\n", size,
                took, MOST_CPU_S);
        abort();
    }
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

/*
 * A seed in which a piece, of a few bytes or of many, stands again and again: what is quadratic in
 * the count of anything shows here.
 */
static void try_large(uint64_t number) {
    stk_rng rng = stk_rng_make(number, STK_RNG_TEST, 1, 0);
    const fuzz_seed *seed = &plan.seeds[stk_rng_below(&rng, plan.count)];
    char *text = malloc(LARGE_SIZE);
    FUZZ_REQUIRE(text != NULL);
    if (seed->size > 0 && seed->size < LARGE_SIZE) {
        size_t at = (size_t)stk_rng_below(&rng, seed->size);
        size_t most = seed->size - at;
        size_t bound = stk_rng_below(&rng, 2) > 0 && most > 16 ? 16 : most;
        size_t piece = 1 + (size_t)stk_rng_below(&rng, bound);
        size_t rest = seed->size - at;
        size_t size = at;
        memcpy(text, seed->bytes, at);
        while (size + piece + rest <= LARGE_SIZE) {
            memcpy(text + size, seed->bytes + at, piece);
            size += piece;
        }
        memcpy(text + size, seed->bytes + at, rest);
        snprintf(current, sizeof current, "large input %llu", (unsigned long long)number);
        try_input(text, size + rest);
    }
    free(text);
}

/* A whole file, which lives as long as the program. */
static fuzz_seed read_seed(const char *path) {
    FILE *file = fopen(path, "rb");
    char *bytes = malloc(LARGE_SIZE);
    FUZZ_REQUIRE(file != NULL && bytes != NULL);
    size_t size = fread(bytes, 1, LARGE_SIZE, file);
    fclose(file);
    char *fitting = realloc(bytes, size > 0 ? size : 1);
    FUZZ_REQUIRE(fitting != NULL);
    return (fuzz_seed){fitting, size};
}

/* Puts the files of the corpus behind the seeds, by name: their order is the same everywhere. */
static void add_corpus(const char *folder) {
    struct dirent **list = NULL;
    int files = scandir(folder, &list, NULL, alphasort);
    fuzz_seed *seeds = malloc((plan.count + (files > 0 ? (size_t)files : 0)) * sizeof *seeds);
    FUZZ_REQUIRE(seeds != NULL);
    memcpy(seeds, plan.seeds, plan.count * sizeof *seeds);
    for (int i = 0; i < files; i++) {
        char path[2048];
        snprintf(path, sizeof path, "%s/%s", folder, list[i]->d_name);
        if (list[i]->d_name[0] != '.') {
            seeds[plan.count++] = read_seed(path);
        }
        free(list[i]);
    }
    free(list);
    plan.seeds = seeds;
}

static void try_corpus(void) {
    for (size_t i = own_seeds; i < plan.count; i++) {
        snprintf(current, sizeof current, "file %zu of the corpus", i - own_seeds);
        try_input(plan.seeds[i].bytes, plan.seeds[i].size);
    }
}

static int write_seeds(const char *folder) {
    for (size_t i = 0; i < own_seeds; i++) {
        char path[1024];
        snprintf(path, sizeof path, "%s/seed-%03zu", folder, i);
        FILE *file = fopen(path, "wb");
        FUZZ_REQUIRE(file != NULL);
        FUZZ_REQUIRE(fwrite(plan.seeds[i].bytes, 1, plan.seeds[i].size, file) ==
                     plan.seeds[i].size);
        FUZZ_REQUIRE(fclose(file) == 0);
    }
    return 0;
}

static int try_files(char **paths) {
    for (; *paths != NULL; paths++) {
        fuzz_seed seed = read_seed(*paths);
        snprintf(current, sizeof current, "%s", *paths);
        try_input(seed.bytes, seed.size);
    }
    printf("slowest: %.3f s\n", slowest_s);
    return 0;
}

static void find_most_bytes(void) {
    most_bytes = ROOM_SIZE;
    for (size_t i = 0; i < plan.count; i++) {
        size_t size = plan.seeds[i].size < MAX_SIZE ? plan.seeds[i].size : MAX_SIZE;
        most_bytes = size > most_bytes ? size : most_bytes;
    }
}

/* The target whose name follows `test_fuzz_` in the name under which the program was called. */
static const fuzz_target *find_target(const char *called) {
    const char *name = strstr(called, "test_fuzz_");
    for (size_t i = 0; name != NULL && i < sizeof targets / sizeof *targets; i++) {
        if (strcmp(targets[i].name, name + strlen("test_fuzz_")) == 0) {
            return &targets[i];
        }
    }
    return NULL;
}

int main(int argc, char **argv) {
    const char *slash = strrchr(argv[0], '/');
    target = find_target(slash != NULL ? slash + 1 : argv[0]);
    if (target == NULL) {
        fprintf(stderr, "%s: call this program through a link, such as test_fuzz_%s\n", argv[0],
                targets[0].name);
        return 2;
    }
    signal(SIGABRT, on_crash);
    signal(SIGSEGV, on_crash);
    plan = target->prepare();
    own_seeds = plan.count;
    if (argc > 2 && strcmp(argv[1], "--seeds") == 0) {
        return write_seeds(argv[2]);
    }
    if (argc > 2 && strcmp(argv[1], "--try") == 0) {
        return try_files(argv + 2);
    }
    char corpus[1024];
    snprintf(corpus, sizeof corpus, "%s/%s", STK_FUZZ_CORPUS, target->name);
    add_corpus(corpus);
    find_most_bytes();
    uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
    /* `make test` tries half, and a sanitizer, which sees little more in many than in some, a
     * quarter; `make soak` has time for millions. */
    uint64_t usual = plan.mutations / (getenv("STK_TEST_QUICK") != NULL ? 4 : 2);
    uint64_t count = argc > 2 ? strtoull(argv[2], NULL, 10) : usual;
    for (size_t i = 0; i < plan.prefixed && argc < 2; i++) {
        try_prefixes(i);
    }
    try_corpus();
    for (uint64_t i = 0; i < (argc < 2 ? plan.large : count / 1000); i++) {
        try_large(first + i);
    }
    for (uint64_t i = 0; i < count; i++) {
        try_mutation(first + i);
    }
    printf("ok   %llu mutations of %zu seeds, the slowest took %.3f s\n"
           "1 passed, 0 failed, 0 skipped\n",
           (unsigned long long)count, plan.count, slowest_s);
    return 0;
}
