/* replay.c - lines to events, block by block. */
#include "report/state/replay.h"

#include <string.h>

#include "base/error.h"
#include "base/files/file.h"
#include "base/mem.h"

#define BLOCK_BYTES ((size_t)256 << 10)
#define MOST_LINE_BYTES ((size_t)1 << 20) /* a longer line is no event */

/* ---- events ---- */

static void emit(stk_replay *replay, stk_event_kind kind, const stk_json *object) {
    stk_any_event event;
    stk_event_read(object, kind, &event, &replay->arrays);
    if (kind != STK_EVENT_WARNING || event.warning.text != NULL) {
        stk_event_pass(replay->observer, kind, &event);
    }
}

void stk_replay_summary(stk_replay *replay, const stk_json *summary) {
    emit(replay, STK_EVENT_STOP, summary);
}

bool stk_replay_line(stk_replay *replay, const char *line, size_t length) {
    stk_json *object = NULL;
    if (stk_json_parse(line, length, &object, NULL) != STK_OK) {
        return false;
    }
    const char *name = stk_json_string(stk_json_get(object, "event"));
    stk_event_kind kind = name != NULL ? stk_event_kind_named(name, strlen(name)) : STK_EVENT_KINDS;
    if (kind < STK_EVENT_KINDS) {
        if (replay->at != NULL) {
            replay->at(replay->user, stk_json_number(stk_json_get(object, "t"), 0));
        }
        emit(replay, kind, object);
    }
    stk_json_free(object);
    return kind < STK_EVENT_KINDS;
}

/* ---- the file ---- */

/* Emits all whole lines of the block; returns how many bytes they have. */
static size_t emit_lines(stk_replay *replay, const char *text, size_t size) {
    size_t done = 0;
    const char *stop;
    while ((stop = memchr(text + done, '\n', size - done)) != NULL) {
        size_t length = (size_t)(stop - text) - done;
        if (length > 0 && stk_replay_line(replay, text + done, length)) {
            replay->events++;
        } else {
            replay->skipped += length > 0;
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
        kept = kept > MOST_LINE_BYTES ? 0 : kept; /* the rest of that line is skipped as well */
        if (!STK_RESERVE(block, capacity, kept + part)) {
            status = STK_FAIL_MEMORY(err, path);
            break;
        }
        status = stk_file_read_at(reader, at, block + kept, part, err);
        if (status == STK_OK) {
            size_t size = kept + part;
            size_t done = emit_lines(replay, block, size);
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
