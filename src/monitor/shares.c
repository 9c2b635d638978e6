/* shares.c - divides the parts of training time by the whole. */
#include "monitor/shares.h"

static double known(double seconds) {
    return seconds > 0 ? seconds : 0; /* not NaN */
}

stk_shares stk_shares_of(const stk_times *t) {
    double training_s = known(known(t->total_s) - known(t->validate_s) - known(t->checkpoint_s));
    if (training_s == 0) {
        return (stk_shares){0};
    }
    stk_shares shares = {
        .training_s = training_s,
        .read = known(t->read_s) / training_s,
        .decode = known(t->decode_s) / training_s,
        .queue = known(t->queue_s) / training_s,
        .copy = known(t->copy_s) / training_s,
        .compute = (known(t->compute_s) + known(t->update_s)) / training_s,
        .other = known(t->other_s) / training_s,
    };
    shares.wait = shares.read + shares.decode + shares.queue;
    return shares;
}
