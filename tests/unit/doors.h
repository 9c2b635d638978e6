/*
 * doors.h - work that waits until a test lets it go on.
 *
 * A door is closed until it is opened. No wait is for ever: a test that goes wrong ends after a
 * minute.
 */
#ifndef STK_TESTS_DOORS_H
#define STK_TESTS_DOORS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

#define DOOR_MOST_MS 60000

typedef struct door {
    atomic_bool open;
    atomic_int begun;  /* that have come to it */
    atomic_int passed; /* and gone through */
} door;

/* Waits at it. Who has more to do before it counts as through adds to `passed` himself. */
static inline void door_wait(door *d) {
    atomic_fetch_add(&d->begun, 1);
    for (int i = 0; i < DOOR_MOST_MS && !atomic_load(&d->open); i++) {
        usleep(1000);
    }
}

static inline void door_pass(door *d) {
    door_wait(d);
    atomic_fetch_add(&d->passed, 1);
}

/* Whether a count comes to be a value, or more. */
static inline bool door_comes(atomic_int *count, int value) {
    for (int i = 0; i < DOOR_MOST_MS && atomic_load(count) < value; i++) {
        usleep(1000);
    }
    return atomic_load(count) >= value;
}

#endif
