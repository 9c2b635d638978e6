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
