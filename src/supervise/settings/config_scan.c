/*
 * config_scan.c - positions of values: JSON by our reader, YAML by libyaml.
 *
 * The JSON reader checks the text and makes a tree. The scan walks tree and text side by side: the
 * tree says what comes next, the text where it is.
 *
 * libyaml reports events with marks. A mark counts characters, not bytes; byte_of() converts it.
 */
#include "supervise/settings/config_keys.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/str.h"
#include "base/text/json.h"

/* Writes the name of a list's element: its number. */
static void name_element(char name[24], size_t number) {
    snprintf(name, 24, "%zu", number);
}

/* ---- JSON ---- */

static bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* Skips blanks, and `sign` if it comes next. */
static void skip(const char *text, size_t *at, char sign) {
    while (is_blank(text[*at])) {
        (*at)++;
    }
    if (text[*at] == sign) {
        (*at)++;
        skip(text, at, '\0');
    }
}

/* Skips a number, true, false or null: within an object a sign or a blank always follows. The text
 * has no terminator. */
static void skip_word(const char *text, size_t *at) {
    while (!is_blank(text[*at]) && strchr(",]}", text[*at]) == NULL) {
        (*at)++;
    }
}

/* Skips from an opening quote to after the closing one. */
static void skip_string(const char *text, size_t *at) {
    for ((*at)++; text[*at] != '"'; (*at)++) {
        *at += text[*at] == '\\' ? 1 : 0;
    }
    (*at)++;
}

/* Lists the keys below `value`, which begins at *at, and moves *at past it. */
static stk_status walk_json(stk_config_keys *keys, const stk_json *value, size_t *at, size_t index,
                            stk_error *err) {
    const char *text = keys->text;
    stk_json_kind kind = stk_json_kind_of(value);
    size_t start = *at;
    if (kind != STK_JSON_OBJECT && kind != STK_JSON_ARRAY) {
        if (kind == STK_JSON_STRING) {
            skip_string(text, at);
        } else {
            skip_word(text, at);
        }
        keys->list[index].start = start;
        keys->list[index].length = *at - start;
        keys->list[index].plain = kind != STK_JSON_STRING;
        return STK_OK;
    }
    size_t number = 0;
    skip(text, at, text[start]);
    for (const stk_json *member = stk_json_at(value, 0); member != NULL;
         member = stk_json_next(value, member)) {
        char element[24];
        size_t added;
        name_element(element, number++);
        if (kind == STK_JSON_OBJECT) {
            skip_string(text, at);
            skip(text, at, ':');
        }
        const char *name = kind == STK_JSON_OBJECT ? stk_json_key_of(member) : element;
        stk_status status = stk_config_keys_add(keys, index, name, &added, err);
        STK_THEN(status, walk_json(keys, member, at, added, err));
        if (status != STK_OK) {
            return status;
        }
        skip(text, at, ',');
    }
    (*at)++; /* the closing bracket */
    return STK_OK;
}

static stk_status scan_json(stk_config_keys *keys, stk_error *err) {
    stk_json *root = NULL;
    stk_error why = {0};
    if (stk_json_parse(keys->text, keys->size, &root, &why) != STK_OK) {
        return why.status == STK_ERR_MEMORY
                   ? STK_FAIL_MEMORY(err, keys->file)
                   : STK_FAIL(err, STK_ERR_USAGE, "%s is not JSON: %s", keys->file, why.message);
    }
    size_t at = 0;
    stk_status status = STK_OK;
    if (stk_json_kind_of(root) == STK_JSON_OBJECT) {
        skip(keys->text, &at, '\0');
        status = walk_json(keys, root, &at, SIZE_MAX, err);
    } else {
        status = STK_FAIL(err, STK_ERR_USAGE, "%s has no keys: it is no object", keys->file);
    }
    stk_json_free(root);
    return status;
}

/* ---- YAML ---- */

#ifdef STK_HAVE_YAML

#include <yaml.h>

/* An open mapping or list. */
typedef struct yaml_level {
    bool is_list;
    size_t parent; /* index of the key that it is the value of; SIZE_MAX: the document */
    size_t count;  /* elements of a list so far */
    bool has_key;  /* a mapping: the next event is the value of `key` */
    size_t key;    /* index of the current key */
} yaml_level;

typedef struct yaml_scan {
    stk_config_keys *keys;
    yaml_parser_t parser;
    yaml_level levels[STK_CONFIG_DEPTH];
    int depth;         /* open levels */
    int documents;     /* begun so far */
    bool done;         /* the stream has ended */
    size_t characters; /* of the text up to `byte`: where byte_of() stopped */
    size_t byte;
} yaml_scan;

/* The byte of the text that a mark stands for. Marks mostly grow, so each search begins where the
 * last one stopped. */
static size_t byte_of(yaml_scan *s, size_t character) {
    const stk_config_keys *keys = s->keys;
    if (character < s->characters) {
        s->characters = 0;
        s->byte = 0;
    }
    for (; s->characters < character && s->byte < keys->size; s->characters++) {
        s->byte++;
        while (s->byte < keys->size && ((unsigned char)keys->text[s->byte] & 0xC0) == 0x80) {
            s->byte++;
        }
    }
    return s->byte;
}

static stk_status refuse(const yaml_scan *s, size_t byte, const char *why, stk_error *err) {
    const stk_config_keys *keys = s->keys;
    size_t line = 1;
    for (size_t i = 0; i < byte && i < keys->size; i++) {
        line += keys->text[i] == '\n';
    }
    return STK_FAIL(err, STK_ERR_USAGE, "cannot change %s, line %zu: %s", keys->file, line, why);
}

static stk_status refuse_event(yaml_scan *s, const yaml_event_t *event, const char *why,
                               stk_error *err) {
    return refuse(s, byte_of(s, event->start_mark.index), why, err);
}

/* Reports libyaml's own error. For invalid bytes libyaml gives an offset, otherwise a mark. */
static stk_status refuse_text(yaml_scan *s, stk_error *err) {
    const yaml_parser_t *parser = &s->parser;
    char why[200];
    if (parser->error == YAML_MEMORY_ERROR) {
        return STK_FAIL_MEMORY(err, s->keys->file);
    }
    size_t byte = parser->error == YAML_READER_ERROR ? parser->problem_offset
                                                     : byte_of(s, parser->problem_mark.index);
    snprintf(why, sizeof why, "not valid YAML: %s",
             parser->problem != NULL ? parser->problem : "unreadable");
    return refuse(s, byte, why, err);
}

/* The key whose value the next event is; adds one for an element of a list. */
static stk_status next_value(yaml_scan *s, size_t *index, stk_error *err) {
    char name[24];
    if (s->depth == 0) {
        *index = SIZE_MAX;
        return STK_OK;
    }
    yaml_level *level = &s->levels[s->depth - 1];
    level->has_key = false;
    if (!level->is_list) {
        *index = level->key;
        return STK_OK;
    }
    name_element(name, level->count++);
    return stk_config_keys_add(s->keys, level->parent, name, index, err);
}

static bool is_key(const yaml_scan *s) {
    return s->depth > 0 && !s->levels[s->depth - 1].is_list && !s->levels[s->depth - 1].has_key;
}

static stk_status take_scalar(yaml_scan *s, const yaml_event_t *event, stk_error *err) {
    size_t index;
    if (s->depth == 0 && event->data.scalar.length > 0) {
        return refuse_event(s, event, "this is neither a key with its value nor a list", err);
    }
    if (is_key(s)) {
        yaml_level *level = &s->levels[s->depth - 1];
        level->has_key = true;
        return stk_config_keys_add(s->keys, level->parent, (const char *)event->data.scalar.value,
                                   &level->key, err);
    }
    stk_status status = next_value(s, &index, err);
    if (status == STK_OK && index != SIZE_MAX) {
        stk_config_key *key = &s->keys->list[index];
        key->start = byte_of(s, event->start_mark.index);
        key->length = byte_of(s, event->end_mark.index) - key->start;
        key->plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    }
    return status;
}

static stk_status open_level(yaml_scan *s, const yaml_event_t *event, stk_error *err) {
    size_t parent;
    if (is_key(s)) {
        return refuse_event(s, event, "a mapping or a list is used as a key", err);
    }
    if (s->depth == STK_CONFIG_DEPTH) {
        return refuse_event(s, event, "it is nested too deeply", err);
    }
    stk_status status = next_value(s, &parent, err);
    if (status == STK_OK) {
        s->levels[s->depth++] =
            (yaml_level){.is_list = event->type == YAML_SEQUENCE_START_EVENT, .parent = parent};
    }
    return status;
}

static bool has_anchor(const yaml_event_t *event) {
    return event->type == YAML_ALIAS_EVENT ||
           (event->type == YAML_SCALAR_EVENT && event->data.scalar.anchor != NULL) ||
           (event->type == YAML_MAPPING_START_EVENT && event->data.mapping_start.anchor != NULL) ||
           (event->type == YAML_SEQUENCE_START_EVENT && event->data.sequence_start.anchor != NULL);
}

static stk_status take_event(yaml_scan *s, const yaml_event_t *event, stk_error *err) {
    if (has_anchor(event)) {
        return refuse_event(s, event, "anchors and aliases are not supported; write the value out",
                            err);
    }
    switch (event->type) {
    case YAML_SCALAR_EVENT:
        return take_scalar(s, event, err);
    case YAML_MAPPING_START_EVENT:
    case YAML_SEQUENCE_START_EVENT:
        return open_level(s, event, err);
    case YAML_MAPPING_END_EVENT:
    case YAML_SEQUENCE_END_EVENT:
        s->depth--;
        return STK_OK;
    case YAML_DOCUMENT_START_EVENT:
        return s->documents++ == 0
                   ? STK_OK
                   : refuse_event(s, event, "a second document begins here; leave one", err);
    case YAML_STREAM_END_EVENT:
        s->done = true;
        return STK_OK;
    default:
        return STK_OK;
    }
}

static stk_status scan_yaml(stk_config_keys *keys, stk_error *err) {
    yaml_scan s = {.keys = keys};
    stk_status status = STK_OK;
    if (memchr(keys->text, '\0', keys->size) != NULL) {
        return STK_FAIL(err, STK_ERR_USAGE, "%s is no YAML: it holds a zero byte", keys->file);
    }
    if (!yaml_parser_initialize(&s.parser)) {
        return STK_FAIL_MEMORY(err, keys->file);
    }
    yaml_parser_set_input_string(&s.parser, (const unsigned char *)keys->text, keys->size);
    yaml_parser_set_encoding(&s.parser, YAML_UTF8_ENCODING); /* a byte order mark is a character */
    while (status == STK_OK && !s.done) {
        yaml_event_t event;
        if (!yaml_parser_parse(&s.parser, &event)) {
            status = refuse_text(&s, err);
            break;
        }
        status = take_event(&s, &event, err);
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&s.parser);
    return status;
}

#else

static stk_status scan_yaml(stk_config_keys *keys, stk_error *err) {
    return STK_FAIL(err, STK_ERR_USAGE,
                    "cannot change %s: this build has no YAML; use a .json file, an environment "
                    "variable or an argument, or build with libyaml",
                    keys->file);
}

#endif

stk_status stk_config_scan(stk_config_keys *keys, const char *file, const char *text, size_t size,
                           stk_error *err) {
    *keys = (stk_config_keys){.file = file, .text = text, .size = size};
    if (stk_str_ends_with_nocase(file, ".json")) {
        return scan_json(keys, err);
    }
    if (stk_str_ends_with_nocase(file, ".yaml") || stk_str_ends_with_nocase(file, ".yml")) {
        return scan_yaml(keys, err);
    }
    return STK_FAIL(err, STK_ERR_USAGE,
                    "cannot tell what %s is: a file with keys ends in .json, .yaml or .yml", file);
}
