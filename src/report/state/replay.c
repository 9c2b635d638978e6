/* replay.c - JSON lines to events, by the tables of event_fields.c. */
#include "report/state/replay.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/files/file.h"
#include "base/mem.h"
#include "base/text/json.h"
#include "report/text/event_fields.h"

#define BLOCK_BYTES ((size_t)256 << 10)
#define MOST_LINE_BYTES ((size_t)1 << 20) /* a longer line is none of ours */

/* ---- values ---- */

/* A whole number from 0 to `most`; -1 where there is none. */
static int64_t count_of(const stk_json *value, int64_t most) {
    uint64_t whole;
    return stk_json_u64(value, &whole) && whole <= (uint64_t)most ? (int64_t)whole : -1;
}

static void read_fields(const stk_json *object, const stk_fields *fields, void *event) {
    for (size_t i = 0; i < fields->count; i++) {
        const stk_json *value = stk_json_get(object, fields->rows[i].key);
        void *at = (char *)event + fields->rows[i].offset;
        switch (fields->rows[i].kind) {
        case STK_FIELD_TEXT:
            *(const char **)at = stk_json_string(value);
            break;
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
            read_fields(value, &stk_times_fields, at);
            break;
        }
    }
}

/* ---- events ---- */

#define TELL(observer, callback, event)                      \
    do {                                                     \
        if ((observer)->callback != NULL) {                  \
            (observer)->callback((observer)->user, (event)); \
        }                                                    \
    } while (0)

/* A kind of event whose struct is filled in by its table alone. */
#define SIMPLE(kind)                                                    \
    static void tell_##kind(stk_replay *replay, const stk_json *line) { \
        stk_event_##kind event = {0};                                   \
        read_fields(line, &stk_##kind##_fields, &event);                \
        TELL(replay->observer, kind, &event);                           \
    }

SIMPLE(start)
SIMPLE(plan)
SIMPLE(decision)
SIMPLE(step)
SIMPLE(epoch)
SIMPLE(checkpoint)
SIMPLE(bad_image)
SIMPLE(submission)

static void tell_sample(stk_replay *replay, const stk_json *line) {
    stk_event_sample event = {.cores = replay->cores};
    const stk_json *cores = stk_json_get(line, "cores");
    read_fields(line, &stk_sample_fields, &event);
    for (const stk_json *core = stk_json_at(cores, 0);
         core != NULL && event.core_count < STK_REPLAY_MOST_CORES;
         core = stk_json_next(cores, core)) {
        replay->cores[event.core_count++] = (float)stk_json_number(core, NAN);
    }
    TELL(replay->observer, sample, &event);
}

static void tell_verdict(stk_replay *replay, const stk_json *line) {
    stk_event_verdict event = {0};
    const stk_json *remedies = stk_json_get(line, "remedies");
    read_fields(line, &stk_verdict_fields, &event);
    for (const stk_json *remedy = stk_json_at(remedies, 0);
         remedy != NULL && event.remedy_count < STK_MOST_REMEDIES;
         remedy = stk_json_next(remedies, remedy)) {
        stk_remedy *to = &event.remedies[event.remedy_count++];
        read_fields(remedy, &stk_remedy_fields, to);
        to->flags = to->flags != NULL ? to->flags : "";
    }
    TELL(replay->observer, verdict, &event);
}

static void tell_warning(stk_replay *replay, const stk_json *line) {
    const char *text = stk_json_string(stk_json_get(line, "text"));
    if (text != NULL) {
        TELL(replay->observer, warning, text);
    }
}

stk_event_attempt stk_replay_read_attempt(const stk_json *event) {
    stk_event_attempt attempt = {0};
    read_fields(event, &stk_attempt_fields, &attempt);
    return attempt;
}

static void tell_attempt(stk_replay *replay, const stk_json *line) {
    stk_event_attempt event = stk_replay_read_attempt(line);
    TELL(replay->observer, attempt, &event);
}

stk_summary stk_replay_read_summary(const stk_json *summary) {
    stk_summary told = {0};
    read_fields(summary, &stk_summary_fields, &told);
    read_fields(summary, &stk_summary_command_fields, &told);
    return told;
}

void stk_replay_summary(const stk_observer *observer, const stk_json *summary) {
    stk_event_attempt attempts[STK_REPLAY_MOST_ATTEMPTS];
    stk_summary told = stk_replay_read_summary(summary);
    const stk_json *list = stk_json_get(summary, "attempts");
    told.attempts = attempts;
    for (const stk_json *attempt = stk_json_at(list, 0);
         attempt != NULL && told.attempt_count < STK_REPLAY_MOST_ATTEMPTS;
         attempt = stk_json_next(list, attempt)) {
        attempts[told.attempt_count] = stk_replay_read_attempt(attempt);
        attempts[told.attempt_count++].ended = true;
    }
    TELL(observer, stop, &told);
}

static void tell_stop(stk_replay *replay, const stk_json *line) {
    stk_replay_summary(replay->observer, line);
}

static const struct {
    const char *name;
    void (*tell)(stk_replay *replay, const stk_json *line);
} kinds[] = {
    {"sample", tell_sample},         {"step", tell_step},
    {"epoch", tell_epoch},           {"verdict", tell_verdict},
    {"start", tell_start},           {"plan", tell_plan},
    {"decision", tell_decision},     {"warning", tell_warning},
    {"bad_image", tell_bad_image},   {"checkpoint", tell_checkpoint},
    {"submission", tell_submission}, {"stop", tell_stop},
    {"attempt", tell_attempt},
};

bool stk_replay_line(stk_replay *replay, const char *line, size_t length) {
    stk_json *event = NULL;
    if (stk_json_parse(line, length, &event, NULL) != STK_OK) {
        return false;
    }
    const char *name = stk_json_string(stk_json_get(event, "event"));
    bool told = false;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds && name != NULL && !told; i++) {
        if (strcmp(name, kinds[i].name) == 0) {
            if (replay->at != NULL) {
                replay->at(replay->user, stk_json_number(stk_json_get(event, "t"), 0));
            }
            kinds[i].tell(replay, event);
            told = true;
        }
    }
    stk_json_free(event);
    return told;
}

/* ---- the file ---- */

/* Tells all whole lines of the block and gives how many bytes they have. */
static size_t tell_lines(stk_replay *replay, const char *text, size_t size) {
    size_t done = 0;
    const char *stop;
    while ((stop = memchr(text + done, '\n', size - done)) != NULL) {
        size_t length = (size_t)(stop - text) - done;
        if (length > 0 && stk_replay_line(replay, text + done, length)) {
            replay->events++;
        } else {
            replay->passed_over += length > 0;
        }
        done += length + 1;
    }
    return done;
}

stk_status stk_replay_file(stk_replay *replay, const char *path, stk_error *err) {
    stk_file_reader *reader = NULL;
    char *block = NULL;
    size_t capacity = 0;
    size_t kept = 0; /* bytes of a line whose end is still to come */
    stk_status status = stk_file_open(&reader, path, err);
    uint64_t left = status == STK_OK ? stk_file_size(reader) : 0;
    for (uint64_t at = 0; left > 0 && status == STK_OK;) {
        size_t part = left < BLOCK_BYTES ? (size_t)left : BLOCK_BYTES;
        kept = kept > MOST_LINE_BYTES ? 0 : kept; /* the rest of that line is passed over, too */
        char *grown = stk_mem_grow(block, &capacity, kept + part, 1);
        if (grown == NULL) {
            status = STK_FAIL_MEMORY(err, path);
            break;
        }
        block = grown;
        status = stk_file_read_at(reader, at, block + kept, part, err);
        if (status == STK_OK) {
            size_t size = kept + part;
            size_t done = tell_lines(replay, block, size);
            kept = size - done;
            memmove(block, block + done, kept);
            at += part;
            left -= part;
        }
    }
    stk_mem_free(block);
    stk_file_close(reader);
    return status;
}
