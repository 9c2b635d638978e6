/* test_loader_sampler.c - which sample stands where: shares, balance, weights. */
#include "check.h"

#include "base/error.h"
#include "base/mem.h"
#include "loader/sampler.h"

#define COUNT 100

/* 10 of class 0, 30 of class 1, 60 of class 3; class 2 has none. */
static int labels[COUNT];

static void make_labels(void) {
    for (int i = 0; i < COUNT; i++) {
        int k = i * 37 % COUNT;
        labels[i] = k < 10 ? 0 : k < 40 ? 1 : 3;
    }
}

static stk_sampler *open_sampler(stk_sampler_config config) {
    stk_error err = {0};
    stk_sampler *sampler = NULL;
    make_labels();
    config.count = config.count > 0 ? config.count : COUNT;
    config.labels = labels;
    config.seed = 5;
    if (stk_sampler_new(&sampler, &config, &err) != STK_OK) {
        CHECK_FAIL("%s", err.message);
        exit(1);
    }
    return sampler;
}

static void natural_shows_each_once(void) {
    for (int shuffle = 0; shuffle < 2; shuffle++) {
        stk_sampler *s = open_sampler((stk_sampler_config){.shuffle = shuffle == 1});
        CHECK_INT(stk_sampler_count(s), COUNT);
        for (uint64_t epoch = 0; epoch < 3; epoch++) {
            int seen[COUNT] = {0};
            size_t in_place = 0;
            for (size_t p = 0; p < COUNT; p++) {
                size_t entry = stk_sampler_at(s, epoch, p);
                REQUIRE(entry < COUNT);
                seen[entry]++;
                in_place += entry == p;
            }
            for (size_t i = 0; i < COUNT; i++) {
                CHECK_INT(seen[i], 1);
            }
            CHECK(shuffle == 0 ? in_place == COUNT : in_place < 15);
        }
        stk_sampler_free(s);
    }
}

static void shares(void) {
    static const struct {
        size_t count, rank, world;
        bool equal;
        size_t share;
    } cases[] = {{100, 0, 0, false, 100}, {100, 0, 3, false, 34}, {100, 1, 3, false, 33},
                 {100, 2, 3, false, 33},  {100, 0, 3, true, 33},  {100, 2, 3, true, 33},
                 {5, 4, 5, true, 1},      {5, 1, 2, false, 2}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        stk_sampler *s = open_sampler((stk_sampler_config){.count = cases[i].count,
                                                           .rank = cases[i].rank,
                                                           .world = cases[i].world,
                                                           .equal_shares = cases[i].equal});
        CHECK_INT(stk_sampler_count(s), cases[i].share);
        stk_sampler_free(s);
    }
}

/* Every class equally often in every stretch, and inside a class all before any comes again. */
static void balanced_deals_rounds(void) {
    stk_sampler *s = open_sampler((stk_sampler_config){.sampling = STK_SAMPLING_BALANCED});
    int seen[COUNT] = {0};
    bool same_order = true;
    int first[3] = {0};
    for (size_t round = 0; round < 30; round++) {
        int classes[4] = {0};
        for (size_t i = 0; i < 3; i++) {
            size_t entry = stk_sampler_at(s, 2, 3 * round + i);
            REQUIRE(entry < COUNT);
            classes[labels[entry]]++;
            seen[entry]++;
            first[i] = round == 0 ? labels[entry] : first[i];
            same_order = same_order && first[i] == labels[entry];
        }
        CHECK_INT(classes[0], 1);
        CHECK_INT(classes[1], 1);
        CHECK_INT(classes[3], 1);
    }
    CHECK(!same_order);
    for (size_t i = 0; i < COUNT; i++) { /* 30 draws of each class */
        CHECK(labels[i] == 0 ? seen[i] == 3 : labels[i] == 1 ? seen[i] == 1 : seen[i] <= 1);
    }
    bool other = false;
    for (size_t p = 0; p < COUNT; p++) {
        other = other || stk_sampler_at(s, 2, p) != stk_sampler_at(s, 3, p);
    }
    CHECK(other);
    stk_sampler_free(s);
}

/* The members of a class come in another order in the next cycle. */
static void balanced_cycles_differ(void) {
    stk_sampler *s = open_sampler((stk_sampler_config){.sampling = STK_SAMPLING_BALANCED});
    size_t cycles[3][10];
    size_t count = 0;
    for (size_t p = 0; p < 90 && count < 30; p++) {
        size_t entry = stk_sampler_at(s, 0, p);
        if (labels[entry] == 0) {
            cycles[count / 10][count % 10] = entry;
            count++;
        }
    }
    CHECK_INT(count, 30);
    CHECK(memcmp(cycles[0], cycles[1], sizeof cycles[0]) != 0);
    CHECK(memcmp(cycles[1], cycles[2], sizeof cycles[0]) != 0);
    stk_sampler_free(s);
}

/* Machines that deal together deal each class equally often too. */
static void balanced_over_machines(void) {
    int classes[4] = {0};
    for (size_t rank = 0; rank < 4; rank++) {
        stk_sampler *s = open_sampler(
            (stk_sampler_config){.sampling = STK_SAMPLING_BALANCED, .rank = rank, .world = 4});
        for (size_t p = 0; p < 24; p++) {
            classes[labels[stk_sampler_at(s, 1, p)]]++;
        }
        stk_sampler_free(s);
    }
    CHECK(classes[0] == 32 && classes[1] == 32 && classes[3] == 32);
}

/* Deviations are below five of their standard deviations; the draws are always the same ones. */
static void check_frequencies(const stk_sampler *s, const double *expected, size_t draws) {
    double seen[COUNT] = {0};
    for (size_t e = 0; e < draws / COUNT; e++) {
        for (size_t p = 0; p < COUNT; p++) {
            seen[stk_sampler_at(s, e, p)]++;
        }
    }
    for (size_t i = 0; i < COUNT; i++) {
        double mean = expected[i] * (double)draws;
        if (fabs(seen[i] - mean) > 5 * sqrt(mean) + 1e-9) {
            CHECK_FAIL("sample %zu was drawn %g times instead of %g", i, seen[i], mean);
        }
    }
}

static void weights_are_frequencies(void) {
    double weights[COUNT];
    double expected[COUNT];
    double sum = 0;
    stk_error err = {0};
    stk_sampler *s = NULL;
    for (size_t i = 0; i < COUNT; i++) {
        weights[i] = i % 7 == 0 ? 0 : (double)(i % 10 + 1);
        sum += weights[i];
    }
    for (size_t i = 0; i < COUNT; i++) {
        expected[i] = weights[i] / sum;
    }
    stk_sampler_config config = {
        .count = COUNT, .weights = weights, .sampling = STK_SAMPLING_WEIGHTED, .seed = 9};
    REQUIRE_OK(stk_sampler_new(&s, &config, &err), &err);
    check_frequencies(s, expected, 200000);
    stk_sampler_free(s);
}

static void square_roots_of_class_sizes(void) {
    stk_sampler *s = open_sampler((stk_sampler_config){.sampling = STK_SAMPLING_SQRT});
    double expected[COUNT];
    double sum = sqrt(10) + sqrt(30) + sqrt(60);
    for (size_t i = 0; i < COUNT; i++) {
        double size = labels[i] == 0 ? 10 : labels[i] == 1 ? 30 : 60;
        expected[i] = sqrt(size) / sum / size;
    }
    check_frequencies(s, expected, 200000);
    stk_sampler_free(s);
}

static void unusable_weights_are_refused(void) {
    static const double bad[] = {-1, NAN, INFINITY};
    for (size_t i = 0; i < 3; i++) {
        double weights[2] = {1, bad[i]};
        stk_error err = {0};
        stk_sampler *s = NULL;
        stk_sampler_config config = {
            .count = 2, .weights = weights, .sampling = STK_SAMPLING_WEIGHTED};
        CHECK_INT(stk_sampler_new(&s, &config, &err), STK_ERR_USAGE);
        CHECK_CONTAINS(err.message, "sample 1");
        weights[1] = 0;
        weights[0] = 0;
        stk_error_clear(&err);
        CHECK_INT(stk_sampler_new(&s, &config, &err), STK_ERR_USAGE);
    }
}

static void lack_of_memory_is_an_error(void) {
    static const stk_sampling all[] = {STK_SAMPLING_NATURAL, STK_SAMPLING_BALANCED,
                                       STK_SAMPLING_SQRT};
    make_labels();
    for (size_t i = 0; i < 3; i++) {
        int64_t failed = 0;
        for (;; failed++) {
            stk_error err = {0};
            stk_sampler *s = NULL;
            stk_sampler_config config = {.count = COUNT, .labels = labels, .sampling = all[i]};
            stk_mem_fail_after(failed);
            stk_status status = stk_sampler_new(&s, &config, &err);
            stk_mem_fail_after(-1);
            if (status == STK_OK) {
                stk_sampler_free(s);
                break;
            }
            CHECK_INT(status, STK_ERR_MEMORY);
        }
        CHECK(failed >= (i == 0 ? 1 : 3));
    }
}

static const check_test tests[] = {
    TEST(natural_shows_each_once),     TEST(shares),
    TEST(balanced_deals_rounds),       TEST(balanced_cycles_differ),
    TEST(balanced_over_machines),      TEST(weights_are_frequencies),
    TEST(square_roots_of_class_sizes), TEST(unusable_weights_are_refused),
    TEST(lack_of_memory_is_an_error),
};

CHECK_MAIN(tests)
