/*
 * json_table.c - which shape a JSON file has, and the table in it.
 *
 * A file of one object tells only at its end what it is: COCO, columns, records by id. So all that
 * could be a table is kept until then. JSON Lines look like such an object first; where a second
 * value follows, reading begins again.
 */
#include "dataset/json_table.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "dataset/json_columns.h"
#include "dataset/json_record.h"

/* Lists of records in one file. */
#define SECTIONS_MOST 64

/* One list of records. */
typedef struct section {
    char *name; /* owned */
    stk_json_records records;
    bool mixed; /* it holds other things than records, too */
} section;

typedef struct json_file {
    const stk_range_source *source;
    stk_json_stream *stream; /* owned */
    section sections[SECTIONS_MOST];
    size_t section_count;
    stk_json_records members; /* records and labels by id */
    stk_json_columns columns;
    size_t objects; /* members of the outer object that are records */
    size_t plain;   /* that are plain values */
    bool has_more;  /* and members that are neither, nor lists of records or of plain values */
    stk_str key;    /* of the member that is being read */
} json_file;

static void free_file(json_file *t) {
    for (size_t i = 0; i < t->section_count; i++) {
        stk_mem_free(t->sections[i].name);
        stk_json_records_free(&t->sections[i].records);
    }
    stk_json_records_free(&t->members);
    stk_json_columns_free(&t->columns);
    stk_str_free(&t->key);
    stk_json_stream_close(t->stream);
    *t = (json_file){.source = t->source};
}

void stk_json_table_info_free(stk_json_table_info *info) {
    stk_json_arrays_free(info->arrays, info->array_count);
    stk_csv_free(&info->categories);
    stk_mem_free(info->category_ids);
    stk_mem_free(info->category_names);
    memset(info, 0, sizeof *info);
}

static section *find_section(json_file *t, const char *name) {
    for (size_t i = 0; i < t->section_count; i++) {
        if (stk_str_equal(t->sections[i].name, name)) {
            return &t->sections[i];
        }
    }
    return NULL;
}

static bool is_coco_name(const char *name) {
    return stk_str_equal(name, "images") || stk_str_equal(name, "annotations");
}

/* Beside images or annotations no other list can be the table, so it need not be kept. */
static bool is_needed(json_file *t, const char *name) {
    return is_coco_name(name) || stk_str_equal(name, "categories") ||
           (find_section(t, "images") == NULL && find_section(t, "annotations") == NULL);
}

static void drop_others(json_file *t) {
    for (size_t i = 0; i < t->section_count; i++) {
        if (!is_coco_name(t->sections[i].name) &&
            !stk_str_equal(t->sections[i].name, "categories")) {
            stk_json_records_free(&t->sections[i].records);
        }
    }
}

static stk_status add_section(json_file *t, const char *name, section **added, stk_error *err) {
    if (find_section(t, name) != NULL) {
        char sentence[200];
        snprintf(sentence, sizeof sentence, "the list \"%.100s\" stands twice; remove one", name);
        return stk_json_stream_fail(t->stream, sentence, err);
    }
    if (t->section_count == SECTIONS_MOST) {
        return stk_json_stream_fail(t->stream, "more lists of records than Stoker reads", err);
    }
    char *copy = stk_mem_strdup(name);
    if (copy == NULL) {
        return STK_FAIL_MEMORY(err, t->source->name);
    }
    *added = &t->sections[t->section_count++];
    **added = (section){.name = copy, .records.rows.name = t->source->name};
    (*added)->records.notes_arrays =
        !stk_str_equal(name, "annotations") && !stk_str_equal(name, "categories");
    if (is_coco_name(name)) {
        drop_others(t);
    }
    return STK_OK;
}

/* Records until the end of their list; *token is the first record's {. */
static stk_status read_section(json_file *t, const char *name, stk_json_token *token,
                               stk_error *err) {
    section *s = NULL;
    stk_status status = add_section(t, name, &s, err);
    while (status == STK_OK && token->kind != STK_JSON_TOKEN_ARRAY_END) {
        if (token->kind == STK_JSON_TOKEN_OBJECT) {
            status = stk_json_stream_next(t->stream, token, err);
            STK_THEN(status, stk_json_record_read(&s->records, t->stream, NULL, token, err));
        } else {
            s->mixed = true;
            status =
                token->kind == STK_JSON_TOKEN_ARRAY ? stk_json_stream_skip(t->stream, err) : STK_OK;
        }
        STK_THEN(status, stk_json_stream_next(t->stream, token, err));
    }
    return status;
}

/* A list that is a member of the outer object, or the whole file where the name is "". */
static stk_status read_list(json_file *t, const char *name, stk_error *err) {
    stk_json_token token;
    section *empty = NULL;
    stk_status status = stk_json_stream_next(t->stream, &token, err);
    if (status != STK_OK) {
        return status;
    }
    if (token.kind == STK_JSON_TOKEN_OBJECT && is_needed(t, name)) {
        return read_section(t, name, &token, err);
    }
    if (token.kind == STK_JSON_TOKEN_ARRAY_END && (is_coco_name(name) || name[0] == '\0')) {
        return name[0] != '\0' ? add_section(t, name, &empty, err) : STK_OK;
    }
    if (stk_json_token_is_plain(&token) || token.kind == STK_JSON_TOKEN_ARRAY_END) {
        return stk_json_columns_list(&t->columns, t->stream, name, &token, &t->has_more, err);
    }
    t->has_more = true;
    while (status == STK_OK && token.kind != STK_JSON_TOKEN_ARRAY_END) {
        status = stk_json_token_is_plain(&token) ? STK_OK : stk_json_stream_skip(t->stream, err);
        STK_THEN(status, stk_json_stream_next(t->stream, &token, err));
    }
    return status;
}

/* An object that is a member of the outer object. */
static stk_status read_object(json_file *t, stk_error *err) {
    stk_json_token token;
    const char *name = stk_str_text(&t->key);
    stk_status status = stk_json_stream_next(t->stream, &token, err);
    if (status == STK_OK && token.kind == STK_JSON_TOKEN_KEY && stk_str_equal(token.text, "0")) {
        status = stk_json_stream_next(t->stream, &token, err);
        if (status == STK_OK && stk_json_token_is_plain(&token)) {
            return stk_json_columns_numbered(&t->columns, t->stream, name, &token, err);
        }
        t->has_more = true; /* records within records: passed over */
        STK_THEN(status, stk_json_stream_skip(t->stream, err));
        STK_THEN(status, stk_json_stream_skip(t->stream, err));
        return status;
    }
    t->objects++;
    return status == STK_OK ? stk_json_record_read(&t->members, t->stream, name, &token, err)
                            : status;
}

/* The members of the outer object, up to and with its end. */
static stk_status read_members(json_file *t, stk_error *err) {
    stk_json_token token;
    stk_status status = stk_json_stream_next(t->stream, &token, err);
    while (status == STK_OK && token.kind == STK_JSON_TOKEN_KEY) {
        stk_str_clear(&t->key);
        stk_str_append_bytes(&t->key, token.text, token.length);
        const char *name = stk_str_text(&t->key);
        status = stk_str_ok(&t->key) ? stk_json_stream_next(t->stream, &token, err)
                                     : STK_FAIL_MEMORY(err, t->source->name);
        if (status != STK_OK) {
            return status;
        }
        if (token.kind == STK_JSON_TOKEN_OBJECT) {
            status = read_object(t, err);
        } else if (token.kind == STK_JSON_TOKEN_ARRAY) {
            status = read_list(t, name, err);
        } else {
            t->plain++;
            status = stk_json_record_pair(&t->members, t->stream, name, &token, err);
        }
        STK_THEN(status, stk_json_stream_next(t->stream, &token, err));
    }
    return status;
}

/* ---- which of what was read is the table ---- */

static stk_status fail_no_table(const json_file *t, stk_error *err) {
    return STK_FAIL(err, STK_ERR_DATA,
                    "%s is valid JSON but no table that Stoker knows; a list of records "
                    "[{\"id\": ..., \"label\": ...}, ...] is one",
                    t->source->name);
}

static stk_status finish_section(json_file *t, section *s, stk_csv *csv, stk_json_table_info *info,
                                 stk_error *err) {
    const char *name = t->source->name;
    if (s->mixed) {
        return STK_FAIL(err, STK_ERR_DATA,
                        "%s: the list %s%s%sholds records and other things; leave only the records",
                        name, s->name[0] != '\0' ? "\"" : "", s->name,
                        s->name[0] != '\0' ? "\" " : "");
    }
    return stk_json_records_finish(&s->records, csv, info, err);
}

static stk_status finish_coco(json_file *t, stk_csv *csv, stk_json_table_info *info,
                              stk_error *err) {
    stk_json_records none = {.rows.name = t->source->name};
    stk_json_records none_either = none;
    section *images = find_section(t, "images");
    section *annotations = find_section(t, "annotations");
    section *categories = find_section(t, "categories");
    info->is_coco = images != NULL;
    if ((images != NULL && images->mixed) || (annotations != NULL && annotations->mixed)) {
        return finish_section(t, images != NULL && images->mixed ? images : annotations, csv, info,
                              err);
    }
    stk_status status = STK_OK;
    if (categories != NULL) {
        status = stk_json_coco_categories(&categories->records, info, err);
    }
    STK_THEN(status, stk_json_coco_join(t->source->name, images != NULL ? &images->records : &none,
                                        annotations != NULL ? &annotations->records : &none_either,
                                        csv, info, err));
    return status;
}

/* The only list of records, or an error that names two of them. */
static stk_status finish_only(json_file *t, stk_csv *csv, stk_json_table_info *info,
                              stk_error *err) {
    if (t->section_count > 1) {
        return STK_FAIL(err, STK_ERR_DATA,
                        "%s has several lists of records (\"%.80s\", \"%.80s\"), and none is "
                        "called images; keep the one that has the labels",
                        t->source->name, t->sections[0].name, t->sections[1].name);
    }
    return finish_section(t, &t->sections[0], csv, info, err);
}

static stk_status finish(json_file *t, stk_csv *csv, stk_json_table_info *info, stk_error *err) {
    if (find_section(t, "images") != NULL || find_section(t, "annotations") != NULL) {
        return finish_coco(t, csv, info, err);
    }
    if (t->section_count > 0) {
        return finish_only(t, csv, info, err);
    }
    bool even = stk_json_columns_are_even(&t->columns);
    if (t->columns.count > 0 && t->objects == 0 && !t->has_more && (even || t->plain == 0)) {
        return stk_json_columns_finish(&t->columns, t->source->name, csv, err);
    }
    bool by_id = (t->objects > 0) != (t->plain > 0) && t->columns.count == 0 && !t->has_more;
    if (by_id) {
        return stk_json_records_finish(&t->members, csv, info, err);
    }
    bool nothing = t->objects + t->plain + t->columns.count == 0 && !t->has_more;
    return nothing ? STK_FAIL(err, STK_ERR_DATA, "%s holds no records", t->source->name)
                   : fail_no_table(t, err);
}

/* ---- the file ---- */

/* Records that follow each other without a list around them. */
static stk_status read_lines(json_file *t, stk_error *err) {
    stk_json_token token = {.kind = STK_JSON_TOKEN_OBJECT};
    section *s = NULL;
    stk_status status = stk_json_stream_open(&t->stream, t->source, err);
    STK_THEN(status, add_section(t, "", &s, err));
    while (status == STK_OK) {
        status = stk_json_stream_next(t->stream, &token, err);
        if (status != STK_OK || token.kind == STK_JSON_TOKEN_END) {
            return status;
        }
        if (token.kind != STK_JSON_TOKEN_OBJECT) {
            return stk_json_stream_fail(
                t->stream, "something that is no record follows; one {...} per line is needed",
                err);
        }
        status = stk_json_stream_next(t->stream, &token, err);
        STK_THEN(status, stk_json_record_read(&s->records, t->stream, NULL, &token, err));
    }
    return status;
}

/* Reads all of the file, once or, if it is JSON Lines, from the beginning again. */
static stk_status read_all(json_file *t, stk_error *err) {
    stk_json_token token;
    stk_status status = stk_json_stream_open(&t->stream, t->source, err);
    STK_THEN(status, stk_json_stream_next(t->stream, &token, err));
    if (status != STK_OK) {
        return status;
    }
    stk_json_token_kind outer = token.kind;
    if (outer == STK_JSON_TOKEN_END) {
        return STK_FAIL(err, STK_ERR_DATA, "%s is empty", t->source->name);
    }
    if (outer != STK_JSON_TOKEN_OBJECT && outer != STK_JSON_TOKEN_ARRAY) {
        return fail_no_table(t, err);
    }
    status = outer == STK_JSON_TOKEN_OBJECT ? read_members(t, err) : read_list(t, "", err);
    STK_THEN(status, stk_json_stream_next(t->stream, &token, err));
    if (status == STK_OK && token.kind == STK_JSON_TOKEN_OBJECT && outer == STK_JSON_TOKEN_OBJECT) {
        free_file(t);
        return read_lines(t, err);
    }
    if (status == STK_OK && token.kind != STK_JSON_TOKEN_END) {
        status = stk_json_stream_fail(t->stream, "something follows the value; remove it", err);
    }
    if (status == STK_OK && outer == STK_JSON_TOKEN_ARRAY &&
        (t->columns.count > 0 || t->has_more)) {
        status = STK_FAIL(err, STK_ERR_DATA,
                          "%s is a list, but not of records; a list [{\"id\": ..., \"label\": "
                          "...}, ...] would be a table",
                          t->source->name);
    }
    return status;
}

stk_status stk_json_table_read(const stk_range_source *source, stk_csv *csv,
                               stk_json_table_info *info, stk_error *err) {
    memset(csv, 0, sizeof *csv);
    memset(info, 0, sizeof *info);
    json_file *t = stk_mem_new(1, sizeof *t);
    if (t == NULL) {
        return STK_FAIL_MEMORY(err, source->name);
    }
    t->source = source;
    t->members.rows.name = source->name;
    stk_status status = read_all(t, err);
    if (status == STK_OK) {
        stk_json_stream_close(t->stream);
        t->stream = NULL;
        status = finish(t, csv, info, err);
    }
    free_file(t);
    stk_mem_free(t);
    if (status != STK_OK) {
        stk_csv_free(csv);
        stk_json_table_info_free(info);
    }
    return status;
}
