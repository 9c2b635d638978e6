/* event_json.c - one loop over the fields writes them, another reads them. */
#include "report/text/event_json.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "report/text/text.h"

/* ---- writing ---- */

static void put_seconds(stk_json_writer *writer, double seconds) {
    stk_json_put_double(writer, round(seconds * 1000) / 1000);
}

static void put_count(stk_json_writer *writer, int64_t value) {
    if (value < 0) {
        stk_json_put_null(writer);
    } else {
        stk_json_put_int(writer, value);
    }
}

static void put_text(stk_json_writer *writer, const char *text) {
    stk_str clean = {0};
    if (text != NULL) {
        stk_report_append_utf8(&clean, text);
    }
    stk_json_put_string(writer, text != NULL ? stk_str_text(&clean) : NULL);
    stk_str_free_part(writer->out, &clean);
}

static void put_object(stk_json_writer *writer, const stk_fields *fields, const void *part) {
    stk_json_begin_object(writer);
    stk_fields_put(writer, fields, part);
    stk_json_end_object(writer);
}

static void put_array(stk_json_writer *writer, const stk_field *field, const void *at, int count) {
    stk_json_begin_array(writer);
    for (int i = 0; i < count; i++) {
        if (field->kind == STK_FIELD_CORES) {
            stk_json_put_double(writer, stk_as_shown(roundf((*(const float *const *)at)[i])));
        } else if (field->kind == STK_FIELD_REMEDIES) {
            put_object(writer, &stk_remedy_fields, (const stk_remedy *)at + i);
        } else {
            put_object(writer, &stk_attempt_done_fields, *(const stk_event_attempt *const *)at + i);
        }
    }
    stk_json_end_array(writer);
}

static void put_value(stk_json_writer *writer, const stk_field *field, const void *event) {
    const void *at = (const char *)event + field->offset;
    switch (field->kind) {
    case STK_FIELD_TEXT:
        put_text(writer, *(const char *const *)at);
        break;
    case STK_FIELD_CHARS:
        put_text(writer, *(const char *)at != '\0' ? at : NULL);
        break;
    case STK_FIELD_COUNT:
        put_count(writer, *(const int *)at);
        break;
    case STK_FIELD_COUNT64:
        put_count(writer, *(const int64_t *)at);
        break;
    case STK_FIELD_NUMBER:
        stk_json_put_double(writer, stk_as_shown(*(const double *)at));
        break;
    case STK_FIELD_SECONDS:
        put_seconds(writer, *(const double *)at);
        break;
    case STK_FIELD_TRUTH:
        stk_json_put_bool(writer, *(const bool *)at);
        break;
    case STK_FIELD_TIMES:
        put_object(writer, &stk_times_fields, at);
        break;
    case STK_FIELD_CORES:
    case STK_FIELD_REMEDIES:
    case STK_FIELD_ATTEMPTS:
        put_array(writer, field, at, *(const int *)((const char *)event + field->count_offset));
        break;
    }
}

static void put_field(stk_json_writer *writer, const stk_field *field, const void *from) {
    stk_json_key(writer, field->key);
    if (from != NULL) {
        put_value(writer, field, from);
    } else {
        stk_json_put_null(writer);
    }
}

void stk_fields_put(stk_json_writer *writer, const stk_fields *fields, const void *from) {
    for (size_t i = 0; i < fields->count; i++) {
        put_field(writer, &fields->rows[i], from);
    }
}

void stk_event_put(stk_json_writer *writer, stk_event_kind kind, const void *event) {
    stk_fields_put(writer, &stk_event_forms[kind].fields, event);
    if (kind == STK_EVENT_STOP && ((const stk_summary *)event)->command != NULL) {
        stk_fields_put(writer, &stk_summary_command_fields, event);
    }
}

void stk_event_put_member(stk_json_writer *writer, stk_event_kind kind, const void *event,
                          const char *key) {
    const stk_fields *fields = &stk_event_forms[kind].fields;
    size_t i = 0;
    while (!stk_str_equal(fields->rows[i].key, key)) {
        i++;
    }
    put_field(writer, &fields->rows[i], event);
}

/* ---- lines of events.jsonl ---- */

void stk_event_put_line(stk_str *out, double t, stk_event_kind kind, const void *event) {
    stk_json_writer writer = stk_json_write_to(out, 0);
    stk_json_begin_object(&writer);
    stk_json_key(&writer, "t");
    put_seconds(&writer, t);
    stk_json_key(&writer, "event"); /* stk_event_line_kind looks for it after the time */
    stk_json_put_string(&writer, stk_event_forms[kind].name);
    stk_event_put(&writer, kind, event);
    stk_json_end_object(&writer);
    stk_str_append(out, "\n");
}

stk_event_kind stk_event_kind_named(const char *name, size_t length) {
    stk_event_kind kind = 0;
    while (kind < STK_EVENT_KINDS &&
           !(stk_event_forms[kind].name != NULL && strlen(stk_event_forms[kind].name) == length &&
             memcmp(stk_event_forms[kind].name, name, length) == 0)) {
        kind++;
    }
    return kind;
}

stk_event_kind stk_event_line_kind(const char *line, size_t length) {
    static const char key[] = "\"event\": \"";
    const size_t within = 80; /* bytes that hold the time and the name */
    const char *name = memmem(line, length < within ? length : within, key, sizeof key - 1);
    name = name != NULL ? name + sizeof key - 1 : line + length;
    const char *end = memchr(name, '"', length - (size_t)(name - line));
    return end != NULL ? stk_event_kind_named(name, (size_t)(end - name)) : STK_EVENT_KINDS;
}

/* ---- reading ---- */

/* A whole number from 0 to `most`; -1 where there is none. */
static int64_t count_of(const stk_json *value, int64_t most) {
    uint64_t whole;
    return stk_json_u64(value, &whole) && whole <= (uint64_t)most ? (int64_t)whole : -1;
}

static void read_fields(const stk_json *object, const stk_fields *fields, void *event,
                        stk_event_arrays *arrays);

static int read_cores(const stk_json *list, float *cores) {
    int count = 0;
    for (const stk_json *core = stk_json_at(list, 0); core != NULL && count < STK_EVENT_MOST_CORES;
         core = stk_json_next(list, core)) {
        cores[count++] = (float)stk_json_number(core, NAN);
    }
    return count;
}

static int read_remedies(const stk_json *list, stk_remedy *remedies) {
    int count = 0;
    for (const stk_json *remedy = stk_json_at(list, 0); remedy != NULL && count < STK_MOST_REMEDIES;
         remedy = stk_json_next(list, remedy)) {
        read_fields(remedy, &stk_remedy_fields, &remedies[count], NULL);
        remedies[count].flags = remedies[count].flags != NULL ? remedies[count].flags : "";
        count++;
    }
    return count;
}

static int read_attempts(const stk_json *list, stk_event_attempt *attempts) {
    int count = 0;
    for (const stk_json *attempt = stk_json_at(list, 0);
         attempt != NULL && count < STK_EVENT_MOST_ATTEMPTS;
         attempt = stk_json_next(list, attempt)) {
        attempts[count] = (stk_event_attempt){.ended = true};
        read_fields(attempt, &stk_attempt_done_fields, &attempts[count++], NULL);
    }
    return count;
}

/* Without `arrays` there are none. */
static void read_fields(const stk_json *object, const stk_fields *fields, void *event,
                        stk_event_arrays *arrays) {
    for (size_t i = 0; i < fields->count; i++) {
        const stk_field *field = &fields->rows[i];
        const stk_json *value = stk_json_get(object, field->key);
        void *at = (char *)event + field->offset;
        int *count = (int *)((char *)event + field->count_offset);
        switch (field->kind) {
        case STK_FIELD_TEXT:
            *(const char **)at = stk_json_string(value);
            break;
        case STK_FIELD_CHARS:
            break; /* no event has it */
        case STK_FIELD_COUNT:
            *(int *)at = (int)count_of(value, INT_MAX);
            break;
        case STK_FIELD_COUNT64:
            *(int64_t *)at = count_of(value, INT64_MAX);
            break;
        case STK_FIELD_NUMBER:
        case STK_FIELD_SECONDS:
            *(double *)at = stk_json_number(value, NAN);
            break;
        case STK_FIELD_TRUTH:
            *(bool *)at = stk_json_bool(value, false);
            break;
        case STK_FIELD_TIMES:
            read_fields(value, &stk_times_fields, at, NULL);
            break;
        case STK_FIELD_CORES:
            *(const float **)at = arrays != NULL ? arrays->cores : NULL;
            *count = arrays != NULL ? read_cores(value, arrays->cores) : 0;
            break;
        case STK_FIELD_REMEDIES:
            *count = read_remedies(value, at);
            break;
        case STK_FIELD_ATTEMPTS:
            *(const stk_event_attempt **)at = arrays != NULL ? arrays->attempts : NULL;
            *count = arrays != NULL ? read_attempts(value, arrays->attempts) : 0;
            break;
        }
    }
}

void stk_event_read(const stk_json *object, stk_event_kind kind, stk_any_event *event,
                    stk_event_arrays *arrays) {
    *event = (stk_any_event){0};
    read_fields(object, &stk_event_forms[kind].fields, event, arrays);
    if (kind == STK_EVENT_STOP) {
        read_fields(object, &stk_summary_command_fields, event, arrays);
    }
}

stk_any_event stk_event_unknown(stk_event_kind kind) {
    stk_any_event event;
    stk_event_read(NULL, kind, &event, NULL);
    return event;
}
