#include "image/augment.h"
bool stk_augment_is_needed(const stk_augment_options *options) {
    (void)options;
    return false;
}
void stk_augment_apply(const stk_augment_options *options, int size, uint8_t *pixels,
                       uint8_t *spare, stk_rng *rng) {
    (void)options;
    (void)size;
    (void)pixels;
    (void)spare;
    (void)rng;
}
