/* random_id.c - random numbers from the system, and a substitute while the system has none yet. */
#include "base/random_id.h"

#include <stdio.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"

uint64_t stk_random_id(void) {
    uint64_t id = 0;
    if (getrandom(&id, sizeof id, GRND_NONBLOCK) != (ssize_t)sizeof id) {
        id = ((uint64_t)stk_clock_wall_ns() ^ (uint64_t)stk_clock_ns() << 20) *
             ((uint64_t)gettid() * 2 + 1);
    }
    return id;
}

void stk_random_id_text(char text[STK_RANDOM_ID_TEXT]) {
    snprintf(text, STK_RANDOM_ID_TEXT, "%016llx", (unsigned long long)stk_random_id());
}
