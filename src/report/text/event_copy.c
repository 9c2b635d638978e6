/* event_copy.c - texts and arrays of events copied by the table of event_fields.h. */
#include "report/text/event_copy.h"

#include <string.h>

#include "base/mem.h"
#include "report/text/event_fields.h"

typedef struct stk_event_piece {
    struct stk_event_piece *next;
    char bytes[]; /* aligned as a pointer is, which suits texts, floats and attempts */
} stk_event_piece;

void stk_event_pool_clear(stk_event_pool *pool) {
    while (pool->first != NULL) {
        stk_event_piece *next = pool->first->next;
        stk_mem_free(pool->first);
        pool->first = next;
    }
    *pool = (stk_event_pool){0};
}

/* NULL for NULL, and without memory. */
static void *copy_bytes(stk_event_pool *pool, const void *data, size_t size) {
    stk_event_piece *piece = data != NULL ? stk_mem_raw(1, sizeof *piece + size) : NULL;
    if (piece == NULL) {
        pool->failed = pool->failed || data != NULL;
        return NULL;
    }
    memcpy(piece->bytes, data, size);
    piece->next = pool->first;
    pool->first = piece;
    pool->bytes += sizeof *piece + size;
    return piece->bytes;
}

const char *stk_event_pool_text(stk_event_pool *pool, const char *text) {
    return copy_bytes(pool, text, text != NULL ? strlen(text) + 1 : 0);
}

/* Replaces an array by its copy; an empty array becomes NULL. */
static void *copy_array(stk_event_pool *pool, const void *array, int *count, size_t size) {
    void *copy = *count > 0 ? copy_bytes(pool, array, (size_t)*count * size) : NULL;
    *count = copy != NULL ? *count : 0;
    return copy;
}

/* Gives a struct that was copied bitwise its own texts and arrays. */
static void own_fields(stk_event_pool *pool, const stk_fields *fields, void *event) {
    for (size_t i = 0; i < fields->count; i++) {
        const stk_field *field = &fields->rows[i];
        void *at = (char *)event + field->offset;
        int *count = (int *)((char *)event + field->count_offset);
        if (field->kind == STK_FIELD_TEXT) {
            *(const char **)at = stk_event_pool_text(pool, *(const char **)at);
        } else if (field->kind == STK_FIELD_REMEDIES) {
            for (int r = 0; r < *count; r++) {
                own_fields(pool, &stk_remedy_fields, (stk_remedy *)at + r);
            }
        } else if (field->kind == STK_FIELD_CORES) {
            *(const float **)at = copy_array(pool, *(const float **)at, count, sizeof(float));
        } else if (field->kind == STK_FIELD_ATTEMPTS) {
            stk_event_attempt *attempts =
                copy_array(pool, *(const stk_event_attempt **)at, count, sizeof(stk_event_attempt));
            for (int a = 0; a < *count; a++) {
                own_fields(pool, &stk_attempt_done_fields, &attempts[a]);
            }
            *(const stk_event_attempt **)at = attempts;
        }
    }
}

void stk_event_copy(stk_event_pool *pool, stk_event_kind kind, const void *event,
                    stk_any_event *copy) {
    memcpy(copy, event, stk_event_size(kind));
    own_fields(pool, &stk_event_forms[kind].fields, copy);
    if (kind == STK_EVENT_STOP) {
        own_fields(pool, &stk_summary_command_fields, copy);
    }
}
