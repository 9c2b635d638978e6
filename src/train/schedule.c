/* schedule.c - the learning rate as a function of progress, and how each batch is mixed. */
#include "train/train.h"

#include <math.h>

#include "base/numbers/rng.h"

#define PI 3.141592653589793

/* The warm-up begins above zero: a step with rate zero would be wasted. */
#define LEAST_WARMUP 0.02

double stk_schedule_factor(stk_schedule schedule, double warmup, double progress) {
    if (progress < warmup) {
        return fmax(progress / warmup, LEAST_WARMUP);
    }
    double along = fmin((progress - warmup) / (1 - warmup), 1);
    switch (schedule) {
    case STK_SCHEDULE_LINEAR:
        return 1 - along;
    case STK_SCHEDULE_STEP:
        /* Shares of the whole training, whatever the warm-up. */
        return progress < 0.3 ? 1 : progress < 0.6 ? 0.1 : progress < 0.9 ? 0.01 : 0.001;
    case STK_SCHEDULE_CONSTANT:
        return 1;
    case STK_SCHEDULE_COSINE:
        break;
    }
    return 0.5 * (1 + cos(PI * along));
}

/* Beta(a, a) from two gamma variates. */
static double draw_beta(stk_rng *rng, double a) {
    double x = stk_rng_gamma(rng, a);
    double y = stk_rng_gamma(rng, a);
    return x + y > 0 ? x / (x + y) : 0.5;
}

stk_mix stk_mix_draw(double mixup, double cutmix, uint64_t seed, uint64_t step, int img_size) {
    stk_mix mix = {.kind = STK_MIX_NONE, .keep = 1};
    if (mixup <= 0 && cutmix <= 0) {
        return mix;
    }
    stk_rng rng = stk_rng_make(seed, STK_RNG_MIX, step, 0);
    bool cut = cutmix > 0 && (mixup <= 0 || stk_rng_uniform(&rng) < 0.5);
    double keep = draw_beta(&rng, cut ? cutmix : mixup);
    if (!cut) {
        mix.kind = STK_MIX_MIXUP;
        mix.keep = (float)keep;
        return mix;
    }
    /* A square of the lost share around a random centre, cut off at the picture's edge. */
    int side = (int)(img_size * sqrt(1 - keep));
    int x = (int)stk_rng_below(&rng, (uint64_t)img_size);
    int y = (int)stk_rng_below(&rng, (uint64_t)img_size);
    mix.kind = STK_MIX_CUTMIX;
    mix.left = x - side / 2 < 0 ? 0 : x - side / 2;
    mix.top = y - side / 2 < 0 ? 0 : y - side / 2;
    mix.right = x + side / 2 > img_size ? img_size : x + side / 2;
    mix.bottom = y + side / 2 > img_size ? img_size : y + side / 2;
    double area = (double)(mix.right - mix.left) * (mix.bottom - mix.top);
    mix.keep = (float)(1 - area / ((double)img_size * img_size));
    return mix;
}
