/*
 * event_json.h - events to JSON and back, by the table of event_fields.h.
 *
 * Threads: safe, nothing is stored.
 */
#ifndef STK_REPORT_TEXT_EVENT_JSON_H
#define STK_REPORT_TEXT_EVENT_JSON_H

#include "base/text/json.h"
#include "report/text/event_fields.h"

/* Limits on what is read; later entries are left out. */
#define STK_EVENT_MOST_CORES 1024
#define STK_EVENT_MOST_ATTEMPTS 128

/* Writes fields of a struct as members of the open object; all are null where `from` is NULL. */
void stk_fields_put(stk_json_writer *writer, const stk_fields *fields, const void *from);

/* Writes all fields of an event as members of the open object. */
void stk_event_put(stk_json_writer *writer, stk_event_kind kind, const void *event);

/* Writes one member by its key, which must be a field of the kind; null where `event` is NULL. */
void stk_event_put_member(stk_json_writer *writer, stk_event_kind kind, const void *event,
                          const char *key);

/*
 * Appends a line of events.jsonl with its line break: {"t": 1.5, "event": "step", ...}. `t` is the
 * time of the event in seconds since the start of the run. The kind must have a name in
 * stk_event_forms.
 */
void stk_event_put_line(stk_str *out, double t, stk_event_kind kind, const void *event);

/*
 * The kind of a line by its first bytes, without parsing the line. STK_EVENT_KINDS: the line does
 * not begin like an event. The rest of the line may be damaged.
 */
stk_event_kind stk_event_line_kind(const char *line, size_t length);

/* The kind whose name has `length` bytes from `name`; STK_EVENT_KINDS: there is none. */
stk_event_kind stk_event_kind_named(const char *name, size_t length);

/* Room for the arrays that an event points to. */
typedef struct stk_event_arrays {
    float cores[STK_EVENT_MOST_CORES];
    stk_event_attempt attempts[STK_EVENT_MOST_ATTEMPTS];
} stk_event_arrays;

/*
 * Fills in *event from an object. The field of a member that is missing or of another type is not
 * known. Texts of the event point into the object, its arrays into `arrays`.
 */
void stk_event_read(const stk_json *object, stk_event_kind kind, stk_any_event *event,
                    stk_event_arrays *arrays);

/* An event of which nothing is known: numbers are NaN, counts -1, texts NULL, arrays empty. */
stk_any_event stk_event_unknown(stk_event_kind kind);

#endif
