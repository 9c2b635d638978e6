/* times.c - divides the time of a training among its parts; evens out the slowest batch. */
#include "train/times.h"

#include <math.h>
#include <string.h>

#define PARTS 9

/* Points to each part of the times; total_s is their sum and no part. */
static void list_parts(stk_times *times, double *parts[PARTS]) {
    double *all[PARTS] = {&times->read_s,     &times->decode_s,     &times->queue_s,
                          &times->copy_s,     &times->compute_s,    &times->update_s,
                          &times->validate_s, &times->checkpoint_s, &times->other_s};
    memcpy(parts, all, sizeof all);
}

/* The share of a in a + b; `otherwise` when both are 0. */
static double share_of(double a, double b, double otherwise) {
    return a + b > 0 ? a / (a + b) : otherwise;
}

/* Takes up to `wanted` seconds from what is left. */
static double take(double *left_s, double wanted_s) {
    double taken = fmin(fmax(wanted_s, 0), *left_s);
    *left_s -= taken;
    return taken;
}

static double seconds_between(uint64_t before_ns, uint64_t after_ns) {
    return after_ns > before_ns ? (double)(after_ns - before_ns) * 1e-9 : 0;
}

void stk_spent_wait(stk_spent *spent, const stk_loader_counters *before,
                    const stk_loader_counters *after) {
    spent->wait_s += seconds_between(before->wait_ns, after->wait_ns);
    spent->hand_over_s += seconds_between(before->hand_over_ns, after->hand_over_ns);
    spent->read_s += seconds_between(before->read_wait_ns, after->read_wait_ns);
    spent->decode_s += seconds_between(before->decode_ns + before->augment_ns,
                                       after->decode_ns + after->augment_ns);
    /* Training waits, and yet there is no slot: all pictures are under way on the device. */
    if (after->device_images > before->device_images) {
        spent->decode_s += seconds_between(before->slot_wait_ns, after->slot_wait_ns);
    }
}

double stk_spent_idle_wait(const stk_spent *spent) {
    return fmin(spent->wait_s, fmax(spent->steps_s - spent->busy_s, 0));
}

stk_times stk_times_divide(const stk_spent *spent, double total_s) {
    stk_times times = {.total_s = fmax(total_s, 0)};
    double left_s = times.total_s;
    times.validate_s = take(&left_s, spent->validate_s);
    times.checkpoint_s = take(&left_s, spent->checkpoint_s);
    double busy_s = take(&left_s, fmin(spent->busy_s, spent->steps_s));
    double update_share = share_of(spent->update_s, spent->busy_s - spent->update_s, 0);
    times.update_s = busy_s * fmin(update_share, 1);
    times.compute_s = busy_s - times.update_s;
    double wait_s = take(&left_s, stk_spent_idle_wait(spent));
    times.queue_s = wait_s * share_of(spent->hand_over_s, spent->wait_s - spent->hand_over_s, 1);
    double missing_s = wait_s - times.queue_s; /* until the batch was complete */
    if (spent->read_s + spent->decode_s > 0) {
        times.read_s = missing_s * share_of(spent->read_s, spent->decode_s, 0);
        times.decode_s = missing_s - times.read_s;
    } else { /* workers neither read nor decoded meanwhile: they handed over */
        times.queue_s = wait_s;
    }
    times.copy_s = take(&left_s, spent->copy_wait_s);
    times.other_s = left_s;
    return times;
}

stk_times stk_times_add(const stk_times *a, const stk_times *b) {
    stk_times sum = *a;
    stk_times more = *b;
    double *to[PARTS], *from[PARTS];
    list_parts(&sum, to);
    list_parts(&more, from);
    for (int i = 0; i < PARTS; i++) {
        *to[i] += isfinite(*from[i]) ? *from[i] : 0;
    }
    sum.total_s += isfinite(more.total_s) ? more.total_s : 0;
    return sum;
}

stk_times stk_times_between(const stk_times *before, const stk_times *after) {
    stk_times times = *after;
    stk_times old = *before;
    double *to[PARTS], *from[PARTS];
    double sum = 0;
    list_parts(&times, to);
    list_parts(&old, from);
    for (int i = 0; i < PARTS; i++) {
        *to[i] = fmax(*to[i] - *from[i], 0);
        sum += *to[i];
    }
    times.total_s = fmax(times.total_s - old.total_s, 0);
    for (int i = 0; i < PARTS && sum > 0; i++) {
        *to[i] *= times.total_s / sum;
    }
    return times;
}

stk_times stk_account_stretch(const stk_account *account, int64_t now_ns) {
    return stk_times_divide(&account->spent, (double)(now_ns - account->since_ns) * 1e-9);
}

stk_times stk_account_all(const stk_account *account, int64_t now_ns) {
    stk_times stretch = stk_account_stretch(account, now_ns);
    return stk_times_add(&account->before, &stretch);
}

stk_times stk_account_close_stretch(stk_account *account, int64_t now_ns) {
    stk_times stretch = stk_account_stretch(account, now_ns);
    *account =
        (stk_account){.before = stk_times_add(&account->before, &stretch), .since_ns = now_ns};
    return stretch;
}

void stk_batch_times_note(stk_batch_times *times, size_t images, int64_t now_ns) {
    double seconds = (double)(now_ns - times->last_ns) * 1e-9;
    if (seconds > times->slowest_s) {
        times->slowest_s = seconds;
        times->slowest = images;
    }
    times->images += images;
    times->last_ns = now_ns;
}

double stk_batch_times_even(const stk_batch_times *times, double seconds) {
    double others = (double)(times->images - times->slowest);
    double others_s = fmax(seconds - times->slowest_s, 0);
    return others > 0
               ? others_s + fmin(times->slowest_s, others_s / others * (double)times->slowest)
               : seconds;
}
