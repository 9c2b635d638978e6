/* config_keys.c - the list of keys, and which of them is meant. */
#include "supervise/settings/config_keys.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/text/json.h"

/* Of a value that is no number, this much is shown. */
#define SHOWN 40

void stk_config_free(stk_config_keys *entries) {
    for (size_t i = 0; i < entries->count; i++) {
        stk_mem_free(entries->list[i].way);
    }
    stk_mem_free(entries->list);
    memset(entries, 0, sizeof *entries);
}

stk_status stk_config_add(stk_config_keys *entries, size_t below, const char *key, size_t length,
                          size_t *index, stk_error *err) {
    stk_config_key *grown =
        stk_mem_grow(entries->list, &entries->capacity, entries->count + 1, sizeof *entries->list);
    if (grown == NULL) {
        return STK_FAIL_MEMORY(err, entries->path);
    }
    entries->list = grown;
    const stk_config_key *parent = below != SIZE_MAX ? &grown[below] : NULL;
    stk_config_key entry = {.depth = parent != NULL ? parent->depth + 1 : 1,
                            .name = parent != NULL ? strlen(parent->way) + 1 : 0};
    entry.way = parent != NULL ? stk_str_format("%s.%.*s", parent->way, (int)length, key)
                               : stk_mem_strndup(key, length);
    if (entry.way == NULL) {
        return STK_FAIL_MEMORY(err, entries->path);
    }
    *index = entries->count;
    grown[entries->count++] = entry;
    return STK_OK;
}

stk_status stk_config_refuse(const stk_config_keys *entries, size_t at, const char *why,
                             stk_error *err) {
    size_t line = 1;
    for (size_t i = 0; i < at && i < entries->size; i++) {
        line += entries->text[i] == '\n';
    }
    return STK_FAIL(err, STK_ERR_USAGE, "cannot change %s, line %zu: %s", entries->path, line, why);
}

/* The strict reader says what is wrong with it; ours then only finds places. */
static stk_status scan_json(stk_config_keys *entries, stk_error *err) {
    stk_json *root = NULL;
    stk_error why = {0};
    if (stk_json_parse(entries->text, entries->size, &root, &why) != STK_OK) {
        return why.status == STK_ERR_MEMORY
                   ? STK_FAIL_MEMORY(err, entries->path)
                   : STK_FAIL(err, STK_ERR_USAGE, "%s is not JSON: %s", entries->path, why.message);
    }
    bool object = stk_json_kind_of(root) == STK_JSON_OBJECT;
    size_t at = 0;
    stk_json_free(root);
    return object ? stk_config_flow(entries, &at, SIZE_MAX, 0, err)
                  : STK_FAIL(err, STK_ERR_USAGE, "%s has no keys: it is no object", entries->path);
}

stk_status stk_config_scan(stk_config_keys *entries, const char *path, const char *text,
                           size_t size, stk_error *err) {
    *entries = (stk_config_keys){.path = path, .text = text, .size = size};
    if (stk_str_ends_with_nocase(path, ".json")) {
        return scan_json(entries, err);
    }
    if (!stk_str_ends_with_nocase(path, ".yaml") && !stk_str_ends_with_nocase(path, ".yml")) {
        return STK_FAIL(err, STK_ERR_USAGE,
                        "cannot tell what %s is: a file with keys ends in .json, .yaml or .yml",
                        path);
    }
    return memchr(text, '\0', size) != NULL
               ? STK_FAIL(err, STK_ERR_USAGE, "%s is no YAML: it holds a zero byte", path)
               : stk_config_block(entries, err);
}

/* How well a key fits an entry: 0 not at all, 1 as the end of its way, 2 as all of it. */
static int fits(const stk_config_key *entry, const char *key) {
    size_t way = strlen(entry->way);
    size_t length = strlen(key);
    if (length > way || strcmp(entry->way + way - length, key) != 0) {
        return 0;
    }
    if (length == way) {
        return 2;
    }
    return entry->way[way - length - 1] == '.' ? 1 : 0;
}

static stk_status fail_missing(const stk_config_keys *entries, const char *key, stk_error *err) {
    const char **names = stk_mem_new(entries->count + 1, sizeof *names);
    if (names == NULL) {
        return STK_FAIL_MEMORY(err, entries->path);
    }
    for (size_t i = 0; i < entries->count; i++) {
        const stk_config_key *entry = &entries->list[i];
        names[i] = strchr(key, '.') != NULL ? entry->way : entry->way + entry->name;
    }
    const char *near = stk_str_nearest(key, names, entries->count);
    stk_status status = near != NULL
                            ? STK_FAIL(err, STK_ERR_USAGE, "%s has no key %s; is %s meant?",
                                       entries->path, key, near)
                            : STK_FAIL(err, STK_ERR_USAGE, "%s has no key %s", entries->path, key);
    stk_mem_free(names);
    return status;
}

static stk_status fail_several(const stk_config_keys *entries, const char *key,
                               const stk_config_key *a, const stk_config_key *b, stk_error *err) {
    return strcmp(a->way, b->way) == 0
               ? STK_FAIL(err, STK_ERR_USAGE, "%s has the key %s twice; leave one of them",
                          entries->path, a->way)
               : STK_FAIL(err, STK_ERR_USAGE,
                          "%s has several keys %s (%s, %s); name the one that is meant with the "
                          "way to it",
                          entries->path, key, a->way, b->way);
}

/* Whole numbers without a sign, as batches and workers are. */
static bool read_number(const stk_config_keys *entries, const stk_config_key *entry,
                        int64_t *value) {
    char digits[20];
    if (!entry->plain || entry->length == 0 || entry->length >= sizeof digits) {
        return false;
    }
    memcpy(digits, entries->text + entry->start, entry->length);
    digits[entry->length] = '\0';
    return strspn(digits, "0123456789") == entry->length && stk_parse_int(digits, value);
}

static stk_status fail_no_number(const stk_config_keys *entries, const stk_config_key *entry,
                                 stk_error *err) {
    if (entry->length == 0) {
        return STK_FAIL(err, STK_ERR_USAGE, "%s: %s has no number", entries->path, entry->way);
    }
    size_t shown = 0;
    const char *text = entries->text + entry->start;
    while (shown < entry->length && shown < SHOWN && text[shown] != '\n' && text[shown] != '\r') {
        shown++;
    }
    return STK_FAIL(err, STK_ERR_USAGE, "%s: the value of %s is no whole number: %.*s%s",
                    entries->path, entry->way, (int)shown, text,
                    shown < entry->length ? " ..." : "");
}

stk_status stk_config_find(const stk_config_keys *entries, const char *key,
                           const stk_config_key **found, int64_t *value, stk_error *err) {
    const stk_config_key *best = NULL;
    const stk_config_key *rival = NULL; /* one that fits as well */
    int best_fit = 0;
    for (size_t i = 0; i < entries->count; i++) {
        const stk_config_key *entry = &entries->list[i];
        int fit = fits(entry, key);
        /* Of two ways that read alike the shorter one has a dot in a key of its own. */
        bool nearer = fit == 2 && best_fit == 2 && entry->depth < best->depth;
        bool farther = fit == 2 && best_fit == 2 && entry->depth > best->depth;
        if (fit > best_fit || nearer) {
            best = entry;
            best_fit = fit;
            rival = NULL;
        } else if (fit > 0 && fit == best_fit && !farther) {
            rival = entry;
        }
    }
    if (best == NULL) {
        return fail_missing(entries, key, err);
    }
    if (rival != NULL) {
        return fail_several(entries, key, best, rival, err);
    }
    *found = best;
    return read_number(entries, best, value) ? STK_OK : fail_no_number(entries, best, err);
}
