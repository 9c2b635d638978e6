/* relay.c - passing events on. */
#include "job/relay.h"

#include <string.h>

static void pass_step(void *user, const stk_event_step *event) {
    const stk_relay *relay = user;
    stk_events_step(relay->to, event);
}

static void pass_epoch(void *user, const stk_event_epoch *event) {
    const stk_relay *relay = user;
    stk_events_epoch(relay->to, event);
}

static void pass_warning(void *user, const char *text) {
    const stk_relay *relay = user;
    stk_events_warning(relay->to, "%s", text);
}

/* Without memory for remembering it is better told twice than not at all. */
static void pass_bad_image(void *user, const stk_event_bad_image *event) {
    stk_relay *relay = user;
    bool added = true;
    if (!stk_map_add(&relay->told, event->path, 0, &added) || added) {
        relay->bad_images++;
        stk_events_bad_image(relay->to, event->path, event->split, event->reason);
    }
}

void stk_relay_open(stk_relay *relay, const stk_events *to) {
    memset(relay, 0, sizeof *relay);
    relay->to = to;
    relay->own = (stk_observer){.user = relay,
                                .step = pass_step,
                                .epoch = pass_epoch,
                                .bad_image = pass_bad_image,
                                .warning = pass_warning};
    stk_events_add(&relay->events, &relay->own);
}

void stk_relay_free(stk_relay *relay) {
    stk_map_free(&relay->told);
}
