/*
 * config_flow.c - values in brackets and quotes: all of JSON, and YAML's flow style, which looks
 * the same but for keys and texts without quotes, comments, and commas before a closing bracket.
 */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "supervise/settings/config_keys.h"

static bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* Passes blanks, line ends and comments. */
static void skip_blanks(const stk_config_keys *entries, size_t *at) {
    const char *text = entries->text;
    while (*at < entries->size) {
        if (text[*at] == '#' && (*at == 0 || is_blank(text[*at - 1]))) {
            const char *end = memchr(text + *at, '\n', entries->size - *at);
            *at = end != NULL ? (size_t)(end - text) : entries->size;
        } else if (is_blank(text[*at])) {
            (*at)++;
        } else {
            return;
        }
    }
}

stk_status stk_config_quoted(const stk_config_keys *entries, size_t *at, stk_error *err) {
    const char *text = entries->text;
    size_t from = *at;
    char quote = text[from];
    for (size_t i = from + 1; i < entries->size; i++) {
        if (quote == '"' && text[i] == '\\') {
            i++;
        } else if (text[i] == quote) {
            if (quote == '\'' && i + 1 < entries->size && text[i + 1] == quote) {
                i++;
            } else {
                *at = i + 1;
                return STK_OK;
            }
        }
    }
    return stk_config_refuse(entries, from, "a quote opens here and never closes", err);
}

/* A text without quotes ends where the next thing of the brackets begins. */
static bool ends_plain(const stk_config_keys *entries, size_t i) {
    char c = entries->text[i];
    char next = i + 1 < entries->size ? entries->text[i + 1] : ' ';
    return strchr(",[]{}", c) != NULL || (c == ':' && (is_blank(next) || strchr(",[]{}", next))) ||
           (c == '#' && is_blank(entries->text[i - 1]));
}

/* Passes a text without quotes; *length is without the blanks behind it. */
static stk_status plain(const stk_config_keys *entries, size_t *at, size_t *length,
                        stk_error *err) {
    const char *text = entries->text;
    size_t from = *at;
    if (from < entries->size && strchr("&*", text[from]) != NULL) {
        return stk_config_refuse(entries, from, "anchors and aliases are not understood", err);
    }
    size_t i = from;
    while (i < entries->size && (i == from || !ends_plain(entries, i))) {
        i++;
    }
    *at = i;
    while (i > from && is_blank(text[i - 1])) {
        i--;
    }
    *length = i - from;
    return STK_OK;
}

/* A key with its quotes taken off, and the colon behind it; without one its value is nothing. */
static stk_status pair(stk_config_keys *entries, size_t *at, size_t below, int depth,
                       stk_error *err) {
    const char *text = entries->text;
    size_t from = *at;
    size_t length = 0;
    size_t index = 0;
    bool quoted = text[from] == '"' || text[from] == '\'';
    stk_status status =
        quoted ? stk_config_quoted(entries, at, err) : plain(entries, at, &length, err);
    if (status == STK_OK) {
        status = quoted
                     ? stk_config_add(entries, below, text + from + 1, *at - from - 2, &index, err)
                     : stk_config_add(entries, below, text + from, length, &index, err);
    }
    if (status != STK_OK) {
        return status;
    }
    skip_blanks(entries, at);
    entries->list[index].start = *at;
    if (*at >= entries->size || text[*at] != ':') {
        return STK_OK;
    }
    (*at)++;
    return stk_config_flow(entries, at, index, depth, err);
}

static stk_status element(stk_config_keys *entries, size_t *at, size_t below, int depth,
                          size_t number, stk_error *err) {
    char name[24];
    size_t index;
    int length = snprintf(name, sizeof name, "%zu", number);
    stk_status status = stk_config_add(entries, below, name, (size_t)length, &index, err);
    if (status != STK_OK) {
        return status;
    }
    status = stk_config_flow(entries, at, index, depth, err);
    skip_blanks(entries, at);
    if (status == STK_OK && *at < entries->size && entries->text[*at] == ':') {
        (*at)++; /* a key alone within a list: what it is called does not matter to anybody */
        status = stk_config_flow(entries, at, index, depth, err);
    }
    return status;
}

/* From behind an opening bracket to behind its closing one. */
static stk_status brackets(stk_config_keys *entries, size_t *at, size_t below, int depth,
                           stk_error *err) {
    const char *text = entries->text;
    size_t from = *at;
    char close = text[from] == '{' ? '}' : ']';
    (*at)++;
    for (size_t number = 0;; number++) {
        skip_blanks(entries, at);
        if (*at < entries->size && text[*at] == close) {
            (*at)++;
            return STK_OK;
        }
        if (*at >= entries->size || strchr(",:]}", text[*at]) != NULL) {
            return stk_config_refuse(entries, *at < entries->size ? *at : from,
                                     "brackets and commas do not fit together", err);
        }
        stk_status status = close == '}' ? pair(entries, at, below, depth, err)
                                         : element(entries, at, below, depth, number, err);
        if (status != STK_OK) {
            return status;
        }
        skip_blanks(entries, at);
        if (*at < entries->size && text[*at] == ',') {
            (*at)++;
        } else if (*at >= entries->size || text[*at] != close) {
            return stk_config_refuse(entries, *at < entries->size ? *at : from,
                                     "a comma or a closing bracket is missing", err);
        }
    }
}

stk_status stk_config_flow(stk_config_keys *entries, size_t *at, size_t index, int depth,
                           stk_error *err) {
    stk_status status;
    bool is_plain = false;
    size_t length = 0;
    skip_blanks(entries, at);
    size_t from = *at;
    char c = from < entries->size ? entries->text[from] : '\0';
    if (depth > STK_CONFIG_DEPTH) {
        return stk_config_refuse(entries, from, "it is nested too deeply", err);
    }
    if (c == '{' || c == '[') {
        status = brackets(entries, at, index, depth + 1, err);
    } else if (c == '"' || c == '\'') {
        status = stk_config_quoted(entries, at, err);
    } else {
        is_plain = true;
        status = c == ',' || c == '}' || c == ']' ? STK_OK : plain(entries, at, &length, err);
    }
    if (status == STK_OK && index != SIZE_MAX) {
        stk_config_key *entry = &entries->list[index];
        entry->start = from;
        entry->length = is_plain ? length : *at - from;
        entry->plain = is_plain;
    }
    return status;
}
