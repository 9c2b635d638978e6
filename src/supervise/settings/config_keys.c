/* config_keys.c - the list of keys, and the search for the one that the user means. */
#include "supervise/settings/config_keys.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"

/* Bytes of a value that an error shows. */
#define SHOWN 40

void stk_config_keys_free(stk_config_keys *keys) {
    for (size_t i = 0; i < keys->count; i++) {
        stk_mem_free(keys->list[i].key_path);
    }
    stk_mem_free(keys->list);
    memset(keys, 0, sizeof *keys);
}

stk_status stk_config_keys_add(stk_config_keys *keys, size_t parent, const char *key, size_t *index,
                               stk_error *err) {
    if (!STK_RESERVE(keys->list, keys->capacity, keys->count + 1)) {
        return STK_FAIL_MEMORY(err, keys->file);
    }
    const stk_config_key *above = parent != SIZE_MAX ? &keys->list[parent] : NULL;
    stk_config_key item = {.depth = above != NULL ? above->depth + 1 : 1,
                           .name = above != NULL ? strlen(above->key_path) + 1 : 0};
    item.key_path =
        above != NULL ? stk_str_format("%s.%s", above->key_path, key) : stk_mem_strdup(key);
    if (item.key_path == NULL) {
        return STK_FAIL_MEMORY(err, keys->file);
    }
    *index = keys->count;
    keys->list[keys->count++] = item;
    return STK_OK;
}

/* How well a key matches: 0 not at all, 1 the end of the path, 2 all of it. */
static int fits(const stk_config_key *item, const char *key) {
    size_t all = strlen(item->key_path);
    size_t length = strlen(key);
    if (length > all || strcmp(item->key_path + all - length, key) != 0) {
        return 0;
    }
    if (length == all) {
        return 2;
    }
    return item->key_path[all - length - 1] == '.' ? 1 : 0;
}

static stk_status fail_missing(const stk_config_keys *keys, const char *key, stk_error *err) {
    const char **names = stk_mem_new(keys->count + 1, sizeof *names);
    if (names == NULL) {
        return STK_FAIL_MEMORY(err, keys->file);
    }
    for (size_t i = 0; i < keys->count; i++) {
        const stk_config_key *item = &keys->list[i];
        names[i] = strchr(key, '.') != NULL ? item->key_path : item->key_path + item->name;
    }
    const char *near = stk_str_nearest(key, names, keys->count);
    stk_status status =
        near != NULL
            ? STK_FAIL(err, STK_ERR_USAGE, "%s has no key %s; is %s meant?", keys->file, key, near)
            : STK_FAIL(err, STK_ERR_USAGE, "%s has no key %s", keys->file, key);
    stk_mem_free(names);
    return status;
}

static stk_status fail_several(const stk_config_keys *keys, const char *key,
                               const stk_config_key *a, const stk_config_key *b, stk_error *err) {
    return strcmp(a->key_path, b->key_path) == 0
               ? STK_FAIL(err, STK_ERR_USAGE, "%s has the key %s twice; leave one of them",
                          keys->file, a->key_path)
               : STK_FAIL(err, STK_ERR_USAGE,
                          "%s has several keys %s (%s, %s); give the full path of the one you mean",
                          keys->file, key, a->key_path, b->key_path);
}

/* A whole number without a sign: batches and workers are such. */
static bool read_number(const stk_config_keys *keys, const stk_config_key *item, int64_t *value) {
    char digits[20];
    if (!item->plain || item->length == 0 || item->length >= sizeof digits) {
        return false;
    }
    memcpy(digits, keys->text + item->start, item->length);
    digits[item->length] = '\0';
    return strspn(digits, "0123456789") == item->length && stk_parse_int(digits, value);
}

static stk_status fail_no_number(const stk_config_keys *keys, const stk_config_key *item,
                                 stk_error *err) {
    if (item->length == 0) {
        return STK_FAIL(err, STK_ERR_USAGE, "%s: %s has no number", keys->file, item->key_path);
    }
    size_t shown = 0;
    const char *text = keys->text + item->start;
    while (shown < item->length && shown < SHOWN && text[shown] != '\n' && text[shown] != '\r') {
        shown++;
    }
    return STK_FAIL(err, STK_ERR_USAGE, "%s: the value of %s is no whole number: %.*s%s",
                    keys->file, item->key_path, (int)shown, text,
                    shown < item->length ? " ..." : "");
}

stk_status stk_config_keys_find(const stk_config_keys *keys, const char *key,
                                const stk_config_key **found, int64_t *value, stk_error *err) {
    const stk_config_key *best = NULL;
    const stk_config_key *rival = NULL; /* matches as well as `best` */
    int best_fit = 0;
    for (size_t i = 0; i < keys->count; i++) {
        const stk_config_key *item = &keys->list[i];
        int fit = fits(item, key);
        /* Of two equal paths, the one with fewer keys has a dot within a key. */
        bool nearer = fit == 2 && best_fit == 2 && item->depth < best->depth;
        bool farther = fit == 2 && best_fit == 2 && item->depth > best->depth;
        if (fit > best_fit || nearer) {
            best = item;
            best_fit = fit;
            rival = NULL;
        } else if (fit > 0 && fit == best_fit && !farther) {
            rival = item;
        }
    }
    if (best == NULL) {
        return fail_missing(keys, key, err);
    }
    if (rival != NULL) {
        return fail_several(keys, key, best, rival, err);
    }
    *found = best;
    return read_number(keys, best, value) ? STK_OK : fail_no_number(keys, best, err);
}
