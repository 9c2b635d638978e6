/* test_supervise_hang.c - both sides of every line between work in silence and a hang. */
#include "check.h"

#include "supervise/decide/hang.h"

#define LIMIT_S 300
#define HEARD_S 10 /* when progress was last heard, where it was */

/* A silence as the samples show it: each figure goes between two values. */
typedef struct scene {
    const char *name;
    double util[2];
    double memory[2];
    double power[2];
    double input;
    double cpu[2];
    int cores;
    bool heard;   /* progress, before */
    double gap_s; /* between two steps of it */
    bool hangs;
    const char *why; /* a part of it; NULL: any */
} scene;

#define UNKNOWN \
    { NAN, NAN }

static stk_event_sample sample_of(const scene *s, int i, double at_s) {
    int k = i % 2;
    return (stk_event_sample){.at_s = at_s,
                              .gpu_util = s->util[k],
                              .gpu_memory_used = 7e9 + i, /* others come and go */
                              .gpu_memory_own = s->memory[k],
                              .gpu_power_w = s->power[k],
                              .pcie_in = s->input,
                              .cpu_own = s->cpu[k],
                              .core_count = s->cores};
}

/* Progress at 10 s and `gap_s` later, or none; then a silence of `silence_s`. */
static void play(const scene *s, double silence_s, stk_hang *hang, double *now_s) {
    stk_hang_begin(hang, LIMIT_S, 0);
    double at_s = 0;
    double heard_s[] = {s->heard ? HEARD_S : NAN, s->heard ? HEARD_S + s->gap_s : NAN};
    for (int i = 0; i < 2; i++) {
        at_s = s->heard ? heard_s[i] : at_s + 1;
        stk_event_sample sample = sample_of(s, i, at_s);
        stk_hang_add(hang, &sample, 100 + i, heard_s[i]);
    }
    for (int i = 1; i <= (int)silence_s; i++) {
        stk_event_sample sample = sample_of(s, i, at_s + i);
        stk_hang_add(hang, &sample, 101, heard_s[1]);
    }
    *now_s = at_s + silence_s;
}

static void what_a_silence_means(void) {
    static const scene scenes[] = {
        {.name = "the GPU idles, and all else",
         .util = {0, 2},
         .memory = {5e9, 5e9},
         .power = {60, 70},
         .cpu = {0, 0.5},
         .cores = 8,
         .hangs = true,
         .why = "no output and no progress for 300 s while the GPU idles (util 0 to 2 %)"},
        {.name = "just below idling", .util = {0, 9.9}, .cpu = UNKNOWN, .hangs = true},
        {.name = "just no idling", .util = {0, 10}, .cpu = UNKNOWN, .hangs = false},
        {.name = "data are prepared before the first step",
         .util = {0, 0},
         .cpu = {12, 13},
         .cores = 8,
         .hangs = false},
        {.name = "the GPU idles and a core works, after progress each second",
         .util = {0, 0},
         .cpu = {12, 13},
         .cores = 8,
         .heard = true,
         .gap_s = 1,
         .hangs = true},
        {.name = "an epoch on the CPU of a machine with a GPU",
         .util = {0, 0},
         .cpu = {12, 13},
         .cores = 8,
         .heard = true,
         .gap_s = 200,
         .hangs = false},
        {.name = "steps with pauses", .util = {5, 60}, .cpu = UNKNOWN, .hangs = false},
        {.name = "the GPU spins",
         .util = {99, 100},
         .memory = {5e9, 5e9},
         .power = {200, 205},
         .input = 1e5,
         .cpu = {12, 13},
         .cores = 8,
         .heard = true,
         .gap_s = 2,
         .hangs = true,
         .why = "the GPU spins (util 99 to 100 %"},
        {.name = "spins at the lowest share and the largest change of power",
         .util = {95, 100},
         .memory = {5e9, 5e9},
         .power = {200, 210},
         .cpu = UNKNOWN,
         .hangs = true},
        {.name = "not busy enough to spin",
         .util = {94.9, 100},
         .memory = {5e9, 5e9},
         .power = {200, 205},
         .cpu = UNKNOWN,
         .hangs = false},
        {.name = "power changes too much to spin",
         .util = {95, 100},
         .memory = {5e9, 5e9},
         .power = {200, 210.1},
         .cpu = UNKNOWN,
         .hangs = false},
        {.name = "memory changes",
         .util = {99, 100},
         .memory = {5e9, 5.001e9},
         .power = {200, 200},
         .cpu = UNKNOWN,
         .hangs = false},
        {.name = "power is not known",
         .util = {99, 100},
         .memory = {5e9, 5e9},
         .power = UNKNOWN,
         .cpu = UNKNOWN,
         .hangs = true},
        {.name = "memory is not known: that of all, which changes, is none",
         .util = {99, 100},
         .memory = UNKNOWN,
         .power = UNKNOWN,
         .cpu = UNKNOWN,
         .hangs = false},
        {.name = "batches come in at full power",
         .util = {99, 100},
         .memory = {5e9, 5e9},
         .power = {690, 700},
         .input = 5.1e6,
         .cpu = UNKNOWN,
         .hangs = false},
        {.name = "hardly anything comes in",
         .util = {99, 100},
         .memory = {5e9, 5e9},
         .power = {690, 700},
         .input = 4.9e6,
         .cpu = UNKNOWN,
         .hangs = true},
        {.name = "a third of an epoch at full power",
         .util = {99, 100},
         .memory = {5e9, 5e9},
         .power = {690, 700},
         .cpu = UNKNOWN,
         .heard = true,
         .gap_s = 101,
         .hangs = false},
        {.name = "three times an epoch at full power",
         .util = {99, 100},
         .memory = {5e9, 5e9},
         .power = {690, 700},
         .cpu = UNKNOWN,
         .heard = true,
         .gap_s = 100,
         .hangs = true},
        {.name = "no GPU, no CPU",
         .util = UNKNOWN,
         .cpu = {0, 0.4},
         .cores = 8,
         .hangs = true,
         .why = "its processes use no CPU (0.0 to 0.4 % of the cores)"},
        {.name = "two cores at almost two percent",
         .util = UNKNOWN,
         .cpu = {0, 1.9},
         .cores = 2,
         .hangs = true},
        {.name = "two cores at two percent",
         .util = UNKNOWN,
         .cpu = {0, 2.0},
         .cores = 2,
         .hangs = false},
        {.name = "one of 64 cores works, which is less than two percent of them",
         .util = UNKNOWN,
         .cpu = {1.5, 1.56},
         .cores = 64,
         .hangs = false},
        {.name = "64 cores idle", .util = UNKNOWN, .cpu = {0, 0.07}, .cores = 64, .hangs = true},
        {.name = "nobody knows how many cores", .util = UNKNOWN, .cpu = {0, 1.9}, .hangs = true},
        {.name = "a long first epoch on the CPU without a word",
         .util = UNKNOWN,
         .cpu = {12.4, 12.5},
         .cores = 8,
         .hangs = false},
        {.name = "a core spins after progress each second",
         .util = UNKNOWN,
         .cpu = {12.4, 12.5},
         .cores = 8,
         .heard = true,
         .gap_s = 1,
         .hangs = true,
         .why = "its processes only spin"},
        {.name = "silent epochs on the CPU",
         .util = UNKNOWN,
         .cpu = {12.4, 12.5},
         .cores = 8,
         .heard = true,
         .gap_s = 120,
         .hangs = false},
        {.name = "less than a core",
         .util = UNKNOWN,
         .cpu = {11.8, 11.85},
         .cores = 8,
         .heard = true,
         .gap_s = 1,
         .hangs = false},
        {.name = "work that changes",
         .util = UNKNOWN,
         .cpu = {12.5, 14.5},
         .cores = 8,
         .heard = true,
         .gap_s = 1,
         .hangs = false},
        {.name = "nothing is seen at all", .util = UNKNOWN, .cpu = UNKNOWN, .hangs = false},
    };
    for (size_t i = 0; i < sizeof scenes / sizeof *scenes; i++) {
        const scene *s = &scenes[i];
        stk_hang hang;
        double now_s;
        char why[300] = "";
        play(s, LIMIT_S, &hang, &now_s);
        if (stk_hang_is(&hang, now_s, why, sizeof why) != s->hangs) {
            CHECK_FAIL("%s: %s", s->name, s->hangs ? "is no hang" : why);
        }
        if (s->why != NULL) {
            CHECK_CONTAINS(why, s->why);
        }
        CHECK(!stk_hang_is(&hang, now_s - 0.1, why, sizeof why)); /* not before its time */
        play(s, LIMIT_S - 1, &hang, &now_s);
        CHECK(!stk_hang_is(&hang, now_s, why, sizeof why));
    }
}

static const scene silent = {.util = {0, 0}, .cpu = {0, 0}, .cores = 4};

static void see(stk_hang *hang, double at_s, double bytes, double progress_s) {
    stk_event_sample sample = sample_of(&silent, 0, at_s);
    stk_hang_add(hang, &sample, bytes, progress_s);
}

/* One that was never understood goes on as long as it prints. */
static void words_that_nobody_understands(void) {
    stk_hang hang;
    char why[300];
    stk_hang_begin(&hang, 10, 5);
    for (int t = 5; t < 100; t++) {
        see(&hang, t, t, NAN);
        CHECK(!stk_hang_is(&hang, t, why, sizeof why));
    }
    for (int t = 100; t < 109; t++) {
        see(&hang, t, 99, NAN);
        CHECK(!stk_hang_is(&hang, t, why, sizeof why));
    }
    see(&hang, 109, 99, NAN);
    CHECK(stk_hang_is(&hang, 109, why, sizeof why));
}

/* One that was goes on only with its progress; new progress ends the silence. */
static void a_hang_that_prints(void) {
    stk_hang hang;
    char why[300];
    stk_hang_begin(&hang, 10, 0);
    see(&hang, 1, 10, 1);
    for (int t = 2; t <= 11; t++) {
        see(&hang, t, t * 10, 1);
    }
    CHECK(stk_hang_is(&hang, 11, why, sizeof why));
    CHECK_CONTAINS(why, "output but no progress for 10 s while the GPU idles");
    see(&hang, 12, 120, 12);
    CHECK(!stk_hang_is(&hang, 12, why, sizeof why));
    CHECK(!stk_hang_is(&hang, 40, why, sizeof why)); /* nothing was seen since */
    see(&hang, 40, 120, 12);
    CHECK(stk_hang_is(&hang, 40, why, sizeof why));
    CHECK_CONTAINS(why, "no output and no progress for 28 s");
}

/* What was seen before something went on is not held against it. */
static void every_silence_is_judged_alone(void) {
    stk_hang hang;
    char why[300];
    stk_hang_begin(&hang, 5, 0);
    see(&hang, 1, 1, NAN);
    stk_event_sample busy = sample_of(&silent, 0, 4);
    busy.gpu_util = 80;
    stk_hang_add(&hang, &busy, 1, NAN);
    for (int t = 5; t < 8; t++) {
        see(&hang, t, 1, NAN);
    }
    CHECK(!stk_hang_is(&hang, 7, why, sizeof why));
    see(&hang, 8, 2, NAN);
    for (int t = 9; t <= 13; t++) {
        see(&hang, t, 2, NAN);
    }
    CHECK(stk_hang_is(&hang, 13, why, sizeof why));
}

/* A series of CPU shares in a silence, one a second, and when it is a hang. */
typedef struct series {
    const char *name;
    double limit_s;
    int seconds;
    double usual;
    double odd;
    int first_odd; /* the first second with the odd share */
    int every;     /* and then each so many seconds; 0: never again */
    int hangs_at;  /* the first second at which it is a hang; 0: it is none */
} series;

static void odd_samples_in_a_silence(void) {
    static const series all[] = {
        {"nothing at all", 10, 20, 0, 0, 0, 0, 10},
        {"the end of the work before", 10, 20, 0, 90, 1, 0, 11},
        {"work in the middle of a short limit", 2, 20, 0, 90, 2, 0, 4},
        {"a word of work in a long silence", 300, 600, 0, 90, 150, 0, 300},
        {"a thread that wakes up each minute", 300, 600, 0, 5, 30, 60, 300},
        {"work in one second of ten", 300, 900, 0, 50, 5, 10, 0},
        {"work in one second of ten, with a long limit", 3600, 9000, 0, 50, 5, 10, 0},
        {"a loop that was held up once", 300, 600, 50, 10, 200, 0, 300},
        {"a loop that is held up each ten seconds", 300, 900, 50, 10, 5, 10, 0},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const series *s = &all[i];
        stk_hang hang;
        char why[300];
        int hangs_at = 0;
        stk_hang_begin(&hang, s->limit_s, 0);
        stk_event_sample sample = {.gpu_util = NAN,
                                   .gpu_memory_used = NAN,
                                   .gpu_memory_own = NAN,
                                   .gpu_power_w = NAN,
                                   .pcie_in = NAN,
                                   .core_count = 2};
        stk_hang_add(&hang, &sample, 1, 0);
        for (int t = 1; t <= s->seconds && hangs_at == 0; t++) {
            int since = t - s->first_odd;
            bool odd = s->first_odd > 0 &&
                       (s->every > 0 ? since >= 0 && since % s->every == 0 : since == 0);
            sample.at_s = t;
            sample.cpu_own = odd ? s->odd : s->usual;
            stk_hang_add(&hang, &sample, 1, 0);
            hangs_at = stk_hang_is(&hang, t, why, sizeof why) ? t : 0;
        }
        if (hangs_at != s->hangs_at) {
            CHECK_FAIL("%s: a hang at %d s, not at %d s", s->name, hangs_at, s->hangs_at);
        }
    }
}

static void never(void) {
    stk_hang hang;
    char why[300];
    stk_hang_begin(&hang, INFINITY, 0);
    see(&hang, 1, 1, NAN);
    see(&hang, 2, 1, NAN);
    CHECK(!stk_hang_is(&hang, 1e9, why, sizeof why));
}

static const check_test tests[] = {
    TEST(what_a_silence_means),     TEST(words_that_nobody_understands),
    TEST(a_hang_that_prints),       TEST(every_silence_is_judged_alone),
    TEST(odd_samples_in_a_silence), TEST(never),
};

CHECK_MAIN(tests)
