/*
 * event_fields.h - what a table of the fields of a struct is, and the tables of events.
 *
 * Code that treats all fields alike goes through the table: event_json.h writes and reads fields as
 * JSON (events.jsonl, summary.json, --json), event_copy.h copies the texts and lists that an event
 * points to. A field of an event has the same name in JSON as in its struct of stoker/events.h. The
 * command has tables of its own for the objects that it prints with --json.
 */
#ifndef STK_REPORT_TEXT_EVENT_FIELDS_H
#define STK_REPORT_TEXT_EVENT_FIELDS_H

#include <stddef.h>

#include "events/any_event.h"

/* The C type of a field, and what it is in JSON. */
typedef enum stk_field_kind {
    STK_FIELD_TEXT,     /* const char *; NULL is null */
    STK_FIELD_CHARS,    /* char[]; "" is null. No event has such a field */
    STK_FIELD_COUNT,    /* int; negative is null */
    STK_FIELD_COUNT64,  /* int64_t; negative is null */
    STK_FIELD_NUMBER,   /* double, to six digits; NaN is null */
    STK_FIELD_SECONDS,  /* double, to the millisecond; NaN is null */
    STK_FIELD_TRUTH,    /* bool */
    STK_FIELD_TIMES,    /* stk_times: an object */
    STK_FIELD_CORES,    /* const float *: an array of whole numbers */
    STK_FIELD_REMEDIES, /* stk_remedy[STK_MOST_REMEDIES]: an array of objects */
    STK_FIELD_ATTEMPTS  /* const stk_event_attempt *: an array of objects */
} stk_field_kind;

typedef struct stk_field {
    const char *key;
    stk_field_kind kind;
    size_t offset;       /* bytes from the beginning of the struct */
    size_t count_offset; /* of an array: where its length lies, an int; otherwise 0 */
} stk_field;

/* A row of such a table: a member of a struct, and its key. */
#define STK_FIELD(type, kind, key, member) \
    { key, STK_FIELD_##kind, offsetof(type, member), 0 }

typedef struct stk_fields {
    const stk_field *rows;
    size_t count;
} stk_fields;

/* The value of a stk_fields from an array of rows. */
#define STK_FIELDS(rows) \
    { rows, sizeof(rows) / sizeof *(rows) }

/* One kind of event as events.jsonl has it. */
typedef struct stk_event_form {
    const char *name; /* value of the key `event`; NULL: not written (progress, batch) */
    stk_fields fields;
} stk_event_form;

extern const stk_event_form stk_event_forms[STK_EVENT_KINDS];

/* Parts of events. */
extern const stk_fields stk_times_fields;
extern const stk_fields stk_remedy_fields;
extern const stk_fields stk_attempt_done_fields; /* an attempt within a summary */
extern const stk_fields
    stk_summary_command_fields; /* a summary has them for a supervised command */

#endif
