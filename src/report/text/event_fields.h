/*
 * event_fields.h - inside the report room: the fields of events.jsonl, for who writes and who reads
 * them. A field stands under its own name in the struct of stoker/events.h.
 */
#ifndef STK_REPORT_TEXT_EVENT_FIELDS_H
#define STK_REPORT_TEXT_EVENT_FIELDS_H

#include <stddef.h>

typedef enum stk_field_kind {
    STK_FIELD_TEXT,    /* const char *, NULL is null */
    STK_FIELD_COUNT,   /* int, negative is null */
    STK_FIELD_COUNT64, /* int64_t, negative is null */
    STK_FIELD_NUMBER,  /* double, to six digits */
    STK_FIELD_SECONDS, /* double, to the millisecond */
    STK_FIELD_TRUTH,   /* bool */
    STK_FIELD_TIMES    /* stk_times: an object */
} stk_field_kind;

typedef struct stk_field {
    const char *key;
    stk_field_kind kind;
    size_t offset; /* in the event's struct */
} stk_field;

typedef struct stk_fields {
    const char *event; /* its name; NULL for what is a part of an event */
    const stk_field *rows;
    size_t count;
} stk_fields;

extern const stk_fields stk_start_fields;
extern const stk_fields stk_plan_fields;
extern const stk_fields stk_decision_fields;
extern const stk_fields stk_step_fields;
extern const stk_fields stk_epoch_fields;
extern const stk_fields stk_times_fields;
extern const stk_fields stk_sample_fields;  /* without its cores */
extern const stk_fields stk_verdict_fields; /* without its remedies */
extern const stk_fields stk_remedy_fields;
extern const stk_fields stk_attempt_fields;
extern const stk_fields stk_attempt_done_fields; /* of one that has ended, within a summary */
extern const stk_fields stk_checkpoint_fields;
extern const stk_fields stk_bad_image_fields;
extern const stk_fields stk_submission_fields;
extern const stk_fields stk_summary_fields;         /* and summary.json */
extern const stk_fields stk_summary_command_fields; /* further ones of a supervised command */

#endif
