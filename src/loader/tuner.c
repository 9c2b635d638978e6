/* tuner.c - the rules; each threshold is a share of the time between two readings. */
#include "loader/tuner.h"

/* A consumer that waits less than this is fed well enough. */
#define WAIT_NOTED 0.02

/* Workers that wait less than this share of their time, for slots or bytes, are busy. */
#define BUSY 0.10

/* If waits for slots take the time of SPARE_WORKERS in SPARE_READINGS readings in a row, one worker
 * can go. */
#define SPARE_WORKERS 1.5
#define SPARE_READINGS 4

stk_tuner_advice stk_tuner_judge(stk_tuner *tuner, const stk_tuner_reading *r) {
    stk_tuner_advice advice = {.workers = r->workers, .slots = r->slots};
    if (!(r->seconds > 0)) {
        return advice;
    }
    double waiting = r->wait_s / r->seconds;
    double spare = r->full_wait_s / r->seconds; /* in workers */
    double starved = r->other_wait_s / r->seconds;
    bool hungry = waiting > WAIT_NOTED;
    bool busy = spare + starved < BUSY * r->workers;
    bool too_many = !hungry && spare > SPARE_WORKERS;
    tuner->idle_readings = too_many ? tuner->idle_readings + 1 : 0;
    if (hungry && busy && !tuner->fix_workers && r->workers < tuner->most_workers) {
        advice.workers++;
    } else if (hungry && spare > BUSY * r->workers && !tuner->fix_slots &&
               r->slots < tuner->most_slots) {
        advice.slots++;
    } else if (tuner->idle_readings >= SPARE_READINGS && !tuner->fix_workers && r->workers > 1) {
        advice.workers--;
        tuner->idle_readings = 0;
    }
    return advice;
}

/* ---- cores beside a device ---- */

/* Shares of the time: batches are missing if the consumer waits longer; the device has too few
 * pictures if it is idle for longer. */
#define LEAST_WAIT 0.01
#define MOST_IDLE 0.03

/* A rate that is higher by this share is better, not only noisy. */
#define BETTER 0.01

/* A step is one core, or this part of the workers. */
#define STEPS 8

/* Readings between two trials. */
#define HOLD 4

static int within(int cores, int most) {
    return cores < 0 ? 0 : cores > most ? most : cores;
}

/* Tries the next number the same way, or the other way where there is none. */
static void try_another(stk_core_share *share, int step, int most) {
    share->way = share->way == 0 ? -1 : share->way;
    if (within(share->kept + share->way * step, most) == share->kept) {
        share->way = -share->way;
    }
    share->cores = within(share->kept + share->way * step, most);
    share->tries = share->cores != share->kept;
    share->held = 0;
}

void stk_core_share_judge(stk_core_share *share, const stk_core_reading *r) {
    if (!(r->seconds > 0) || r->wait_s < LEAST_WAIT * r->seconds) {
        share->rate = 0; /* of a time that says nothing of the next one */
        return;
    }
    double rate = r->images / r->seconds;
    int most = r->workers > 1 ? r->workers - 1 : 0;
    int step = r->workers / STEPS > 1 ? r->workers / STEPS : 1;
    bool starves = r->idle_s > MOST_IDLE * r->seconds;
    bool better = share->tries && share->rate > 0 && rate > (1 + BETTER) * share->rate;
    if (better) {
        share->kept = share->cores;
        share->rate = rate;
        try_another(share, step, most);
    } else if (share->tries) {
        share->tries = false;
        share->way = -share->way;
        share->cores = within(share->kept, most);
    } else {
        share->kept = within(share->cores - (starves ? step : 0), most);
        share->cores = share->kept;
        share->rate = rate;
        share->held++;
        if (!starves && share->held >= HOLD) {
            try_another(share, step, most);
        }
    }
}
