/* rng.c - splitmix64 over a counter, and permutations by a Feistel network. */
#include "base/numbers/rng.h"

#include <math.h>

#define GOLDEN 0x9E3779B97F4A7C15ull
#define FEISTEL_ROUNDS 6

static uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
}

stk_rng stk_rng_make(uint64_t seed, stk_rng_purpose purpose, uint64_t epoch, uint64_t index) {
    uint64_t key = mix(seed + GOLDEN);
    key = mix(key ^ ((uint64_t)purpose * GOLDEN));
    key = mix(key + epoch * 0xD1342543DE82EF95ull);
    key = mix(key ^ (index * GOLDEN + 1));
    return (stk_rng){.key = key, .counter = 0};
}

uint64_t stk_rng_u64(stk_rng *rng) {
    rng->counter++;
    return mix(rng->key + rng->counter * GOLDEN);
}

double stk_rng_uniform(stk_rng *rng) {
    return (double)(stk_rng_u64(rng) >> 11) * 0x1.0p-53;
}

double stk_rng_range(stk_rng *rng, double low, double high) {
    return low + (high - low) * stk_rng_uniform(rng);
}

/* The high half of a 64x64 product; its bias is below n / 2^64. */
uint64_t stk_rng_below(stk_rng *rng, uint64_t n) {
    return (uint64_t)(((unsigned __int128)stk_rng_u64(rng) * n) >> 64);
}

double stk_rng_normal(stk_rng *rng) {
    double u = 1.0 - stk_rng_uniform(rng); /* in (0, 1], so that the logarithm is finite */
    double v = stk_rng_uniform(rng);
    return sqrt(-2.0 * log(u)) * cos(6.283185307179586 * v);
}

/* Marsaglia and Tsang, 2000; shapes below 1 by the usual power of a uniform. */
double stk_rng_gamma(stk_rng *rng, double shape) {
    double boost = 1.0;
    if (shape < 1.0) {
        boost = pow(1.0 - stk_rng_uniform(rng), 1.0 / shape);
        shape += 1.0;
    }
    double d = shape - 1.0 / 3.0;
    double c = 1.0 / sqrt(9.0 * d);
    for (;;) {
        double x = stk_rng_normal(rng);
        double v = 1.0 + c * x;
        if (v <= 0) {
            continue;
        }
        v = v * v * v;
        double u = 1.0 - stk_rng_uniform(rng);
        if (log(u) < 0.5 * x * x + d - d * v + d * log(v)) {
            return boost * d * v;
        }
    }
}

/*
 * A balanced Feistel network permutes 0 .. 4^half_bits - 1, the smallest such range that holds n;
 * walking on from a value outside 0 .. n-1 until it is inside keeps it a bijection. The range is
 * below 4n, so four steps are expected at most.
 */
uint64_t stk_rng_permute(uint64_t key, uint64_t n, uint64_t i) {
    if (n <= 1) {
        return 0;
    }
    unsigned half_bits = 1;
    while (half_bits < 32 && ((uint64_t)1 << (2 * half_bits)) < n) {
        half_bits++;
    }
    uint64_t mask = ((uint64_t)1 << half_bits) - 1;
    do {
        uint64_t left = i >> half_bits;
        uint64_t right = i & mask;
        for (uint64_t round = 0; round < FEISTEL_ROUNDS; round++) {
            uint64_t next =
                left ^ (mix(key + right * GOLDEN + round * 0xA0761D6478BD642Full) & mask);
            left = right;
            right = next;
        }
        i = left << half_bits | right;
    } while (i >= n);
    return i;
}
