/* tuner.c - the rules; each threshold is a share of the sample's time. */
#include "loader/tuner.h"

/* A consumer that waits less than this is fed well enough. */
#define WAIT_NOTED 0.02

/* Workers that wait less than this share of their time, for slots or bytes, are busy. */
#define BUSY 0.10

/* If waits for slots take the time of this many workers, so many samples in a row, one can go. */
#define SPARE_WORKERS 1.5
#define SPARE_SAMPLES 4

stk_tuner_advice stk_tuner_judge(stk_tuner *tuner, const stk_tuner_sample *s) {
    stk_tuner_advice advice = {.workers = s->workers, .slots = s->slots};
    if (!(s->seconds > 0)) {
        return advice;
    }
    double waiting = s->wait_s / s->seconds;
    double spare = s->full_wait_s / s->seconds; /* in workers */
    double starved = s->other_wait_s / s->seconds;
    bool hungry = waiting > WAIT_NOTED;
    bool busy = spare + starved < BUSY * s->workers;
    bool too_many = !hungry && spare > SPARE_WORKERS;
    tuner->idle_samples = too_many ? tuner->idle_samples + 1 : 0;
    if (hungry && busy && !tuner->fix_workers && s->workers < tuner->most_workers) {
        advice.workers++;
    } else if (hungry && spare > BUSY * s->workers && !tuner->fix_slots &&
               s->slots < tuner->most_slots) {
        advice.slots++;
    } else if (tuner->idle_samples >= SPARE_SAMPLES && !tuner->fix_workers && s->workers > 1) {
        advice.workers--;
        tuner->idle_samples = 0;
    }
    return advice;
}
