/*
 * config_keys.h - the keys of a JSON or YAML file, each with the bytes of its value.
 *
 * Used to replace one number in a file that somebody wrote by hand: the bytes of the value change,
 * all other bytes (comments, order, blanks) stay. config_scan.c fills the list. Threads: one at a
 * time.
 */
#ifndef STK_SUPERVISE_SETTINGS_CONFIG_KEYS_H
#define STK_SUPERVISE_SETTINGS_CONFIG_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <stoker/status.h>

typedef struct stk_config_key {
    char *key_path; /* owned: "train.batch_size"; elements of a list have their number as key */
    size_t name;    /* where in key_path the last key begins */
    int depth;      /* keys in key_path, from 1 */
    size_t start;   /* first byte of the value */
    size_t length;  /* bytes of the value; 0: none, or a mapping or list */
    bool plain;     /* a scalar without quotes: it may be a number */
} stk_config_key;

typedef struct stk_config_keys {
    const char *file; /* borrowed: the file's name, for errors */
    const char *text; /* borrowed: the file's contents */
    size_t size;
    stk_config_key *list; /* owned */
    size_t count;
    size_t capacity;
} stk_config_keys;

void stk_config_keys_free(stk_config_keys *keys);

/* Adds a key below the parent with this index (SIZE_MAX: at the top); writes its index. The list
 * may move. */
STK_CHECKED stk_status stk_config_keys_add(stk_config_keys *keys, size_t parent, const char *key,
                                           size_t *index, stk_error *err);

/*
 * Finds the whole number that `key` means: the key with this path from the top, or else the only
 * key whose path ends with it. Where one key itself contains a dot, the path with fewer keys wins.
 * STK_ERR_USAGE says what is wrong and which key is similar.
 */
STK_CHECKED stk_status stk_config_keys_find(const stk_config_keys *keys, const char *key,
                                            const stk_config_key **found, int64_t *value,
                                            stk_error *err);

/* Deepest nesting of mappings and lists. */
#define STK_CONFIG_DEPTH 64

/*
 * Lists the keys of a text. `file` ends in .json, .yaml or .yml; `file` and `text` are borrowed
 * until the list is freed. STK_ERR_USAGE: another ending, or the text is not valid. Free the list
 * after an error too.
 *
 * YAML is read by libyaml, whose events carry the position of every scalar. JSON has a scanner of
 * its own, because a build without libyaml must read JSON too, and because libyaml refuses some
 * valid JSON: a character that is escaped as a surrogate pair. A YAML file with anchors, aliases or
 * several documents is refused, since one number could then stand for more than one key. libyaml is
 * strict: control characters, bytes that are not UTF-8, tabs as indentation and values such as `@x`
 * or `a: b: c` are errors.
 */
STK_CHECKED stk_status stk_config_scan(stk_config_keys *keys, const char *file, const char *text,
                                       size_t size, stk_error *err);

#endif
