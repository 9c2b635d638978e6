/*
 * json_read.c - a JSON text as a tree.
 *
 * Values are kept in one array in the order of the text; a container's members follow it and each
 * value knows where its next sibling stands. Strings are decoded into one buffer that is never
 * longer than the text. So a tree is three blocks of memory whatever its shape.
 */
#include "base/text/json.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/files/file.h"
#include "base/mem.h"
#include "base/text/json_text.h"

#define MAX_DEPTH 64
#define MOST_BYTES_IN ((size_t)1 << 20) /* of stk_json_read_in */

typedef struct tree tree;

struct stk_json {
    stk_json_kind kind;
    bool truth;         /* STK_JSON_BOOL */
    double number;      /* STK_JSON_NUMBER */
    uint64_t whole;     /* STK_JSON_NUMBER, when is_whole */
    bool is_whole;      /* the text was a plain row of digits that fits */
    const char *string; /* STK_JSON_STRING; into tree.strings */
    const char *key;    /* of a member; into tree.strings */
    size_t count;       /* members */
    size_t end;         /* index past the last value inside this one */
    tree *owner;
};

struct tree {
    stk_json *values; /* owned */
    size_t count;
    size_t capacity;
    char *strings; /* owned; as long as the text */
    size_t strings_used;
    const char *text; /* while parsing */
    size_t size;
    size_t at;
};

static stk_status fail_at(const tree *t, const char *what, stk_error *err) {
    return STK_FAIL(err, STK_ERR_DATA, "not valid JSON at byte %zu: %s", t->at, what);
}

static int peek(const tree *t) {
    return t->at < t->size ? (unsigned char)t->text[t->at] : -1;
}

static void skip_blanks(tree *t) {
    while (peek(t) == ' ' || peek(t) == '\t' || peek(t) == '\n' || peek(t) == '\r') {
        t->at++;
    }
}

static void put_byte(tree *t, unsigned byte) {
    t->strings[t->strings_used++] = (char)byte;
}

/* After a backslash. */
static stk_status read_escape(tree *t, stk_error *err) {
    const char *wrong = stk_json_unescape(t->text, t->size, &t->at, t->strings, &t->strings_used);
    return wrong == NULL ? STK_OK : fail_at(t, wrong, err);
}

/* A decoded string is never longer than its text, quotes included: the NUL takes a quote's room. */
static stk_status read_string(tree *t, const char **out, stk_error *err) {
    *out = t->strings + t->strings_used;
    t->at++;
    for (;;) {
        int c = peek(t);
        if (c < 0) {
            return fail_at(t, "a string that does not end", err);
        }
        if (c < 0x20) {
            return fail_at(t, "a control character in a string", err);
        }
        if (c == '"') {
            t->at++;
            put_byte(t, 0);
            return STK_OK;
        }
        if (c == '\\') {
            t->at++;
            stk_status status = read_escape(t, err);
            if (status != STK_OK) {
                return status;
            }
            continue;
        }
        const unsigned char *bytes = (const unsigned char *)t->text + t->at;
        size_t length = stk_utf8_length(t->text + t->at, t->size - t->at);
        if (length == 0) {
            return fail_at(t, "a string that is not UTF-8", err);
        }
        for (size_t i = 0; i < length; i++) {
            put_byte(t, bytes[i]);
        }
        t->at += length;
    }
}

static stk_status new_value(tree *t, stk_json_kind kind, size_t *index, stk_error *err) {
    if (!STK_RESERVE(t->values, t->capacity, t->count + 1)) {
        return STK_FAIL_MEMORY(err, "a JSON tree");
    }
    *index = t->count++;
    t->values[*index] = (stk_json){.kind = kind, .end = *index + 1};
    return STK_OK;
}

static stk_status read_number(tree *t, size_t index, stk_error *err) {
    size_t start = t->at;
    const char *wrong = stk_json_pass_number(t->text, t->size, &t->at);
    if (wrong != NULL) {
        return fail_at(t, wrong, err);
    }
    char copy[64];
    size_t length = t->at - start;
    if (length >= sizeof copy) {
        return fail_at(t, "a number of over 63 characters", err);
    }
    memcpy(copy, t->text + start, length);
    copy[length] = '\0';
    stk_json *value = &t->values[index];
    value->number = strtod(copy, NULL);
    if (length <= 19 && strspn(copy, "0123456789") == length) {
        value->whole = strtoull(copy, NULL, 10);
        value->is_whole = value->whole <= INT64_MAX;
    }
    return STK_OK;
}

static stk_status read_word(tree *t, size_t index, stk_error *err) {
    static const struct {
        const char *word;
        stk_json_kind kind;
        bool truth;
    } words[] = {{"true", STK_JSON_BOOL, true},
                 {"false", STK_JSON_BOOL, false},
                 {"null", STK_JSON_NULL, false}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        size_t length = strlen(words[i].word);
        if (t->size - t->at >= length && memcmp(t->text + t->at, words[i].word, length) == 0) {
            t->at += length;
            t->values[index].kind = words[i].kind;
            t->values[index].truth = words[i].truth;
            return STK_OK;
        }
    }
    return fail_at(t, "expected a value", err);
}

static stk_status read_value(tree *t, const char *key, int depth, stk_error *err);

/* Members until the closing bracket. The container's record may move while they are read. */
static stk_status read_members(tree *t, size_t index, int depth, stk_error *err) {
    bool object = t->values[index].kind == STK_JSON_OBJECT;
    int closing = object ? '}' : ']';
    t->at++;
    skip_blanks(t);
    for (size_t count = 0; peek(t) != closing || count > 0; count++) {
        const char *key = NULL;
        if (object) {
            skip_blanks(t);
            if (peek(t) != '"') {
                return fail_at(t, "expected a key in quotes", err);
            }
            stk_status status = read_string(t, &key, err);
            if (status != STK_OK) {
                return status;
            }
            skip_blanks(t);
            if (peek(t) != ':') {
                return fail_at(t, "expected a colon after the key", err);
            }
            t->at++;
        }
        stk_status status = read_value(t, key, depth + 1, err);
        if (status != STK_OK) {
            return status;
        }
        t->values[index].count = count + 1;
        skip_blanks(t);
        if (peek(t) == closing) {
            break;
        }
        if (peek(t) != ',') {
            return fail_at(t, object ? "expected , or }" : "expected , or ]", err);
        }
        t->at++;
    }
    t->at++;
    t->values[index].end = t->count;
    return STK_OK;
}

static stk_status read_value(tree *t, const char *key, int depth, stk_error *err) {
    skip_blanks(t);
    size_t index = 0;
    int c = peek(t);
    stk_json_kind kind = c == '{'   ? STK_JSON_OBJECT
                         : c == '[' ? STK_JSON_ARRAY
                         : c == '"' ? STK_JSON_STRING
                                    : STK_JSON_NUMBER;
    stk_status status = new_value(t, kind, &index, err);
    if (status != STK_OK) {
        return status;
    }
    t->values[index].key = key;
    if (kind == STK_JSON_OBJECT || kind == STK_JSON_ARRAY) {
        if (depth >= MAX_DEPTH) {
            return fail_at(t, "nested too deeply", err);
        }
        return read_members(t, index, depth, err);
    }
    if (kind == STK_JSON_STRING) {
        const char *text;
        status = read_string(t, &text, err);
        t->values[index].string = text;
        return status;
    }
    return c == '-' || (c >= '0' && c <= '9') ? read_number(t, index, err)
                                              : read_word(t, index, err);
}

static int compare_keys(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Repeated keys would let two readers of one file see different values. */
static stk_status refuse_repeated_keys(const tree *t, const stk_json *object, stk_error *err) {
    const char **keys = stk_mem_raw(object->count, sizeof *keys);
    if (keys == NULL) {
        return STK_FAIL_MEMORY(err, "a JSON tree");
    }
    size_t count = 0;
    for (size_t i = (size_t)(object - t->values) + 1; i < object->end; i = t->values[i].end) {
        keys[count++] = t->values[i].key;
    }
    qsort(keys, count, sizeof *keys, compare_keys);
    stk_status status = STK_OK;
    for (size_t i = 1; i < count && status == STK_OK; i++) {
        if (strcmp(keys[i - 1], keys[i]) == 0) {
            status = STK_FAIL(err, STK_ERR_DATA, "not valid JSON: the key \"%.200s\" stands twice",
                              keys[i]);
        }
    }
    stk_mem_free(keys);
    return status;
}

/* Some texts are secrets: none is left in memory. */
static void free_tree(tree *t) {
    explicit_bzero(t->strings, t->strings_used);
    stk_mem_free(t->strings);
    stk_mem_free(t->values);
    stk_mem_free(t);
}

stk_status stk_json_parse(const char *text, size_t size, stk_json **root, stk_error *err) {
    tree *t = stk_mem_new(1, sizeof *t);
    char *strings = stk_mem_raw(size + 1, 1);
    if (t == NULL || strings == NULL) {
        stk_mem_free(t);
        stk_mem_free(strings);
        return STK_FAIL_MEMORY(err, "a JSON tree");
    }
    t->strings = strings;
    t->text = text;
    t->size = size;
    stk_status status = read_value(t, NULL, 0, err);
    if (status == STK_OK) {
        skip_blanks(t);
        status = t->at < size ? fail_at(t, "something follows the value", err) : STK_OK;
    }
    for (size_t i = 0; status == STK_OK && i < t->count; i++) {
        t->values[i].owner = t;
        if (t->values[i].kind == STK_JSON_OBJECT && t->values[i].count > 1) {
            status = refuse_repeated_keys(t, &t->values[i], err);
        }
    }
    if (status != STK_OK) {
        free_tree(t);
        return status;
    }
    *root = t->values;
    return STK_OK;
}

stk_status stk_json_read(const char *path, size_t most_bytes, stk_json **root, stk_error *err) {
    char *text = NULL;
    size_t size = 0;
    *root = NULL;
    stk_status status = stk_file_read(path, most_bytes, &text, &size, err);
    STK_THEN(status, stk_json_parse(text, size, root, err));
    stk_mem_free(text);
    return status;
}

stk_status stk_json_read_in(const char *folder, const char *name, stk_json **root, stk_error *err) {
    char *path = stk_path_join(folder, name);
    *root = NULL;
    stk_status status = path != NULL ? stk_json_read(path, MOST_BYTES_IN, root, err)
                                     : STK_FAIL_MEMORY(err, "a path");
    stk_mem_free(path);
    return status;
}

void stk_json_free(stk_json *root) {
    if (root != NULL) {
        free_tree(root->owner);
    }
}

stk_json_kind stk_json_kind_of(const stk_json *value) {
    return value != NULL ? value->kind : STK_JSON_NULL;
}

const char *stk_json_string(const stk_json *value) {
    return stk_json_kind_of(value) == STK_JSON_STRING ? value->string : NULL;
}

double stk_json_number(const stk_json *value, double otherwise) {
    return stk_json_kind_of(value) == STK_JSON_NUMBER ? value->number : otherwise;
}

bool stk_json_bool(const stk_json *value, bool otherwise) {
    return stk_json_kind_of(value) == STK_JSON_BOOL ? value->truth : otherwise;
}

bool stk_json_u64(const stk_json *value, uint64_t *out) {
    if (stk_json_kind_of(value) != STK_JSON_NUMBER || !value->is_whole) {
        return false;
    }
    *out = value->whole;
    return true;
}

size_t stk_json_count(const stk_json *value) {
    return value != NULL ? value->count : 0;
}

const stk_json *stk_json_at(const stk_json *value, size_t index) {
    if (index >= stk_json_count(value)) {
        return NULL;
    }
    const stk_json *values = value->owner->values;
    size_t i = (size_t)(value - values) + 1;
    while (index-- > 0) {
        i = values[i].end;
    }
    return &values[i];
}

const stk_json *stk_json_next(const stk_json *value, const stk_json *member) {
    const stk_json *values = value->owner->values;
    return member->end < value->end ? &values[member->end] : NULL;
}

const char *stk_json_key_of(const stk_json *member) {
    return member->key;
}

const char *stk_json_key_at(const stk_json *value, size_t index) {
    const stk_json *member = stk_json_at(value, index);
    return member != NULL ? member->key : NULL;
}

const stk_json *stk_json_get(const stk_json *object, const char *key) {
    if (stk_json_kind_of(object) != STK_JSON_OBJECT) {
        return NULL;
    }
    const stk_json *values = object->owner->values;
    for (size_t i = (size_t)(object - values) + 1; i < object->end; i = values[i].end) {
        if (strcmp(values[i].key, key) == 0) {
            return &values[i];
        }
    }
    return NULL;
}
