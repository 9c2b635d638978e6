/*
 * any_event.c - turns the callbacks of an observer into calls of one function, and back.
 *
 * The warning, whose callback takes a text, is written out; other kinds come from the list.
 */
#include "events/any_event.h"

#define SIZE(kind, callback, type) [kind] = sizeof(type),
static const size_t sizes[STK_EVENT_KINDS] = {[STK_EVENT_WARNING] = sizeof(stk_event_warning),
                                              STK_STRUCT_EVENTS(SIZE)};

size_t stk_event_size(stk_event_kind kind) {
    return sizes[kind];
}

#define PASS(kind, callback, type)         \
    case kind:                             \
        if (to->callback != NULL) {        \
            to->callback(to->user, event); \
        }                                  \
        break;

void stk_event_pass(const stk_observer *to, stk_event_kind kind, const void *event) {
    switch (kind) {
        STK_STRUCT_EVENTS(PASS)
    case STK_EVENT_WARNING:
        if (to->warning != NULL) {
            to->warning(to->user, ((const stk_event_warning *)event)->text);
        }
        break;
    case STK_EVENT_KINDS:
        break;
    }
}

/* The callbacks of a sink; `user` is the sink. */
#define TAKE(kind, callback, type)                               \
    static void take_##callback(void *user, const type *event) { \
        const stk_event_sink *sink = user;                       \
        sink->take(sink->user, kind, event);                     \
    }
STK_STRUCT_EVENTS(TAKE)

static void take_warning(void *user, const char *text) {
    const stk_event_sink *sink = user;
    const stk_event_warning event = {text};
    sink->take(sink->user, STK_EVENT_WARNING, &event);
}

#define ENTRY(kind, callback, type) .callback = take_##callback,

void stk_event_sink_open(stk_event_sink *sink,
                         void (*take)(void *user, stk_event_kind kind, const void *event),
                         void *user) {
    *sink = (stk_event_sink){
        .observer = {.size = sizeof sink->observer,
                     .user = sink,
                     .warning = take_warning,
                     STK_STRUCT_EVENTS(ENTRY)},
        .take = take,
        .user = user,
    };
}
