/* json_record.c - reads one record after the other into a table, token by token. */
#include "dataset/json_record.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"

/* Members of an object in a record that become columns. A larger one is no part of a table. */
#define INNER_MOST 32

static const char what[] = "the records of a JSON file";

void stk_json_arrays_free(stk_json_array *arrays, size_t count) {
    for (size_t i = 0; i < count; i++) {
        stk_mem_free(arrays[i].name);
        stk_mem_free(arrays[i].places);
    }
    stk_mem_free(arrays);
}

void stk_json_records_free(stk_json_records *records) {
    const char *name = records->rows.name;
    stk_csv_rows_free(&records->rows);
    stk_json_arrays_free(records->arrays, records->array_count);
    stk_str_free(&records->key);
    *records = (stk_json_records){.rows.name = name};
}

bool stk_json_token_is_plain(const stk_json_token *token) {
    return token->kind >= STK_JSON_TOKEN_STRING;
}

static stk_status fail_twice(const stk_json_records *r, const stk_json_stream *stream,
                             stk_error *err) {
    char sentence[200];
    snprintf(sentence, sizeof sentence, "the field \"%.100s\" stands twice in a record; remove one",
             stk_str_text(&r->key));
    return stk_json_stream_fail(stream, sentence, err);
}

/* Sets the cell of the column that r->key names. */
static stk_status put_cell(stk_json_records *r, const stk_json_stream *stream,
                           const stk_json_token *value, size_t *column, stk_error *err) {
    stk_status status =
        stk_csv_rows_column_of(&r->rows, stk_str_text(&r->key), r->key.length, column, err);
    if (status == STK_OK && stk_csv_rows_has(&r->rows, *column)) {
        status = fail_twice(r, stream, err);
    }
    STK_THEN(status, stk_csv_rows_put(&r->rows, *column, value->text, value->length, err));
    return status;
}

static stk_status set_key(stk_json_records *r, const stk_json_token *token, size_t keep,
                          stk_error *err) {
    if (r->key.length > keep) {
        r->key.length = keep;
        r->key.text[keep] = '\0';
    }
    stk_str_append_bytes(&r->key, token->text, token->length);
    return stk_str_ok(&r->key) ? STK_OK : STK_FAIL_MEMORY(err, what);
}

/* ---- lists ---- */

/* What a list holds. */
typedef struct list_look {
    size_t numbers;
    size_t others; /* values that are neither numbers nor lists of numbers */
    size_t lists;  /* lists in the list */
    size_t length; /* numbers in each of them */
    bool uneven;   /* the lists differ in length, or numbers stand beside them */
} list_look;

/* One list of numbers in a list, whose [ was read. */
static stk_status look_at_inner(stk_json_stream *stream, list_look *look, stk_error *err) {
    stk_json_token token;
    size_t before = look->numbers;
    stk_status status = stk_json_stream_next(stream, &token, err);
    while (status == STK_OK && token.kind != STK_JSON_TOKEN_ARRAY_END) {
        if (token.kind == STK_JSON_TOKEN_NUMBER) {
            look->numbers++;
        } else {
            look->others++;
            bool has_parts = !stk_json_token_is_plain(&token);
            status = has_parts ? stk_json_stream_skip(stream, err) : STK_OK;
        }
        STK_THEN(status, stk_json_stream_next(stream, &token, err));
    }
    size_t length = look->numbers - before;
    look->uneven = look->uneven || (look->lists > 0 && length != look->length) ||
                   (look->lists == 0 && before > 0);
    look->length = length;
    look->lists++;
    return status;
}

/* Looks at a list from its first token on, which is no string. */
static stk_status look_at_list(stk_json_stream *stream, stk_json_token *token, list_look *look,
                               stk_error *err) {
    stk_status status = STK_OK;
    while (status == STK_OK && token->kind != STK_JSON_TOKEN_ARRAY_END) {
        if (token->kind == STK_JSON_TOKEN_NUMBER) {
            look->numbers++;
            look->uneven = look->uneven || look->lists > 0;
        } else if (token->kind == STK_JSON_TOKEN_ARRAY) {
            status = look_at_inner(stream, look, err);
        } else {
            look->others++;
            status =
                token->kind == STK_JSON_TOKEN_OBJECT ? stk_json_stream_skip(stream, err) : STK_OK;
        }
        STK_THEN(status, stk_json_stream_next(stream, token, err));
    }
    return status;
}

/* The array that r->key names, added if need be; NULL: without memory, or beyond the limit. */
static stk_json_array *find_array(stk_json_records *r, bool *full) {
    const char *name = stk_str_text(&r->key);
    for (size_t i = 0; i < r->array_count; i++) {
        if (stk_str_equal(r->arrays[i].name, name)) {
            return &r->arrays[i];
        }
    }
    *full = r->array_count == STK_JSON_ARRAYS_MAX;
    if (*full || !STK_RESERVE(r->arrays, r->array_capacity, r->array_count + 1)) {
        return NULL;
    }
    stk_json_array *array = &r->arrays[r->array_count];
    *array = (stk_json_array){.name = stk_mem_strdup(name)};
    r->array_count += array->name != NULL;
    return array->name != NULL ? array : NULL;
}

/* Gives the array places up to `count`; new ones are empty. */
static bool widen_places(stk_json_array *array, size_t count) {
    if (!STK_RESERVE(array->places, array->capacity, count)) {
        return false;
    }
    if (count > array->place_count) {
        memset(array->places + array->place_count, 0,
               (count - array->place_count) * sizeof *array->places);
        array->place_count = count;
    }
    return true;
}

static stk_status note_array(stk_json_records *r, const stk_json_stream *stream, uint64_t offset,
                             const list_look *look, stk_error *err) {
    bool full = false;
    stk_json_array *array = find_array(r, &full);
    if (full) {
        return STK_OK;
    }
    size_t row = r->rows.rows;
    bool first = array != NULL && array->place_count == 0;
    if (array == NULL || (array->place_count <= row && !widen_places(array, row + 1))) {
        return STK_FAIL_MEMORY(err, what);
    }
    if (array->places[row].bytes > 0) {
        return fail_twice(r, stream, err);
    }
    array->places[row] =
        (stk_json_place){.offset = offset, .bytes = stk_json_stream_at(stream) - offset};
    bool same = array->length == look->numbers && array->lists == look->lists;
    if (first) {
        array->length = look->numbers;
        array->lists = look->lists;
    } else if (!same) {
        array->length = 0;
    }
    return STK_OK;
}

/* A list that begins with a string: all its plain values in one cell. */
static stk_status join_list(stk_json_records *r, stk_json_stream *stream, stk_json_token *token,
                            stk_error *err) {
    size_t column = 0;
    stk_status status = put_cell(r, stream, token, &column, err);
    STK_THEN(status, stk_json_stream_next(stream, token, err));
    while (status == STK_OK && token->kind != STK_JSON_TOKEN_ARRAY_END) {
        status = stk_json_token_is_plain(token)
                     ? stk_csv_rows_join(&r->rows, column, token->text, token->length, err)
                     : stk_json_stream_skip(stream, err);
        STK_THEN(status, stk_json_stream_next(stream, token, err));
    }
    return status;
}

/* Whether a list of objects has the name of one of boxes: detectors write such lists per image. */
static bool is_boxes_name(const char *key) {
    static const char *const names[] = {"detections", "boxes", "bboxes", "objects"};
    for (size_t i = 0; i < STK_COUNT(names); i++) {
        if (stk_str_equal(key, names[i])) {
            return true;
        }
    }
    return false;
}

static stk_status read_list(stk_json_records *r, stk_json_stream *stream, uint64_t offset,
                            stk_error *err) {
    stk_json_token token;
    list_look look = {0};
    stk_status status = stk_json_stream_next(stream, &token, err);
    if (status == STK_OK && token.kind == STK_JSON_TOKEN_STRING) {
        return join_list(r, stream, &token, err);
    }
    STK_THEN(status, look_at_list(stream, &token, &look, err));
    if (status != STK_OK) {
        return status;
    }
    const char *key = stk_str_text(&r->key);
    r->has_boxes = r->has_boxes || (stk_str_equal(key, "bbox") && look.numbers > 0) ||
                   (look.others > 0 && is_boxes_name(key));
    r->has_masks =
        r->has_masks || (stk_str_equal(key, "segmentation") && look.numbers + look.others > 0);
    bool notes = r->notes_arrays && look.numbers > 0 && look.others == 0 && !look.uneven;
    return notes ? note_array(r, stream, offset, &look, err) : STK_OK;
}

/* ---- records ---- */

/* The members of an object in a record, as columns "outer.inner". */
static stk_status read_inner(stk_json_records *r, stk_json_stream *stream, stk_error *err) {
    stk_json_token token;
    size_t column = 0;
    size_t count = 0;
    if (stk_str_equal(stk_str_text(&r->key), "segmentation")) {
        r->has_masks = true;
        return stk_json_stream_skip(stream, err);
    }
    stk_str_append(&r->key, ".");
    size_t keep = r->key.length;
    stk_status status = stk_json_stream_next(stream, &token, err);
    while (status == STK_OK && token.kind == STK_JSON_TOKEN_KEY) {
        status = set_key(r, &token, keep, err);
        STK_THEN(status, stk_json_stream_next(stream, &token, err));
        if (status == STK_OK && !stk_json_token_is_plain(&token)) {
            status = stk_json_stream_skip(stream, err);
        } else if (status == STK_OK && count++ < INNER_MOST) {
            status = put_cell(r, stream, &token, &column, err);
        }
        STK_THEN(status, stk_json_stream_next(stream, &token, err));
    }
    return status;
}

/* The value of the member that r->key names. */
static stk_status read_member(stk_json_records *r, stk_json_stream *stream, stk_error *err) {
    stk_json_token token;
    size_t column = 0;
    stk_status status = stk_json_stream_next(stream, &token, err);
    if (status != STK_OK) {
        return status;
    }
    if (stk_json_token_is_plain(&token)) {
        return put_cell(r, stream, &token, &column, err);
    }
    return token.kind == STK_JSON_TOKEN_OBJECT ? read_inner(r, stream, err)
                                               : read_list(r, stream, token.offset, err);
}

stk_status stk_json_record_read(stk_json_records *r, stk_json_stream *stream, const char *id,
                                stk_json_token *token, stk_error *err) {
    size_t id_column = 0;
    stk_status status = stk_csv_rows_begin(&r->rows, stk_json_stream_line(stream), err);
    if (id != NULL) {
        STK_THEN(status, stk_csv_rows_column_of(&r->rows, "id", 2, &id_column, err));
    }
    while (status == STK_OK && token->kind == STK_JSON_TOKEN_KEY) {
        status = set_key(r, token, 0, err);
        STK_THEN(status, read_member(r, stream, err));
        STK_THEN(status, stk_json_stream_next(stream, token, err));
    }
    if (status == STK_OK && id != NULL && !stk_csv_rows_has(&r->rows, id_column)) {
        status = stk_csv_rows_put(&r->rows, id_column, id, strlen(id), err);
    }
    STK_THEN(status, stk_csv_rows_end(&r->rows, err));
    return status;
}

stk_status stk_json_record_pair(stk_json_records *r, stk_json_stream *stream, const char *id,
                                const stk_json_token *value, stk_error *err) {
    size_t columns[2];
    stk_status status = stk_csv_rows_begin(&r->rows, stk_json_stream_line(stream), err);
    STK_THEN(status, stk_csv_rows_column_of(&r->rows, "id", 2, &columns[0], err));
    STK_THEN(status, stk_csv_rows_column_of(&r->rows, "label", 5, &columns[1], err));
    STK_THEN(status, stk_csv_rows_put(&r->rows, columns[0], id, strlen(id), err));
    STK_THEN(status, stk_csv_rows_put(&r->rows, columns[1], value->text, value->length, err));
    STK_THEN(status, stk_csv_rows_end(&r->rows, err));
    return status;
}

stk_status stk_json_records_finish(stk_json_records *r, stk_csv *csv, stk_json_table_info *info,
                                   stk_error *err) {
    stk_status status = STK_OK;
    info->has_boxes = info->has_boxes || r->has_boxes;
    info->has_masks = info->has_masks || r->has_masks;
    for (size_t i = 0; status == STK_OK && i < r->array_count; i++) {
        status = widen_places(&r->arrays[i], r->rows.rows) ? STK_OK : STK_FAIL_MEMORY(err, what);
    }
    STK_THEN(status, stk_csv_rows_finish(&r->rows, csv, err));
    if (status == STK_OK && r->notes_arrays) {
        info->arrays = r->arrays;
        info->array_count = r->array_count;
        r->arrays = NULL;
        r->array_count = 0;
    }
    stk_json_records_free(r);
    return status;
}
