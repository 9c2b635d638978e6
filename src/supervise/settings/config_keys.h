/*
 * config_keys.h - where in the text of a JSON or YAML file each key has its value.
 *
 * It is for replacing one number in a file that somebody wrote by hand, without touching the rest:
 * places are bytes of the text. YAML is read as far as configurations use it, with or without
 * libyaml: block and flow mappings and sequences, quotes, comments, block texts. Anchors, aliases,
 * several documents and keys behind ? are refused, since a number could then stand for more than
 * one key. Threads: one at a time.
 */
#ifndef STK_SUPERVISE_SETTINGS_CONFIG_KEYS_H
#define STK_SUPERVISE_SETTINGS_CONFIG_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <stoker/status.h>

/* Deeper than any configuration, and no more than the stack bears. */
#define STK_CONFIG_DEPTH 64

typedef struct stk_config_key {
    char *way;   /* owned: keys from the top, with dots: "train.batch_size"; elements are numbers */
    size_t name; /* where in `way` its own key begins */
    int depth;   /* keys in `way`, from 1 */
    size_t start; /* of the value, in bytes */
    size_t length;
    bool plain; /* a value on one line without quotes: it may be a number */
} stk_config_key;

typedef struct stk_config_keys {
    const char *path; /* borrowed, for errors */
    const char *text; /* borrowed */
    size_t size;
    stk_config_key *list; /* owned */
    size_t count;
    size_t capacity;
} stk_config_keys;

/* By the ending of `path`: .json, .yaml or .yml; STK_ERR_USAGE where it has none of them, or the
 * text is not what it says. Freed also after an error. */
STK_CHECKED stk_status stk_config_scan(stk_config_keys *entries, const char *path, const char *text,
                                       size_t size, stk_error *err);
void stk_config_free(stk_config_keys *entries);

/*
 * The whole number that `key` means: the way to it from the top (a key that has a dot itself comes
 * first), or else the only one at any depth that ends so. STK_ERR_USAGE says which key is near.
 */
STK_CHECKED stk_status stk_config_find(const stk_config_keys *entries, const char *key,
                                       const stk_config_key **entry, int64_t *value,
                                       stk_error *err);

/* For the readers: adds an entry below another one (SIZE_MAX: at the top); its index into *index.
 * The list may move. */
STK_CHECKED stk_status stk_config_add(stk_config_keys *entries, size_t below, const char *key,
                                      size_t length, size_t *index, stk_error *err);
STK_CHECKED stk_status stk_config_refuse(const stk_config_keys *entries, size_t at, const char *why,
                                         stk_error *err);

/* A value from *at on in brackets or quotes, or a plain one that ends as within brackets: those of
 * JSON and of YAML are read alike. *at is then behind it. */
STK_CHECKED stk_status stk_config_flow(stk_config_keys *entries, size_t *at, size_t index,
                                       int depth, stk_error *err);

/* From an opening quote to behind the closing one. */
STK_CHECKED stk_status stk_config_quoted(const stk_config_keys *entries, size_t *at,
                                         stk_error *err);

/* YAML in lines; the inner parts in brackets are read by stk_config_flow. */
STK_CHECKED stk_status stk_config_block(stk_config_keys *entries, stk_error *err);

#endif
