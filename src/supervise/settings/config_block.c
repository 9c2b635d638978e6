/*
 * config_block.c - YAML whose lines belong together by their indentation.
 *
 * Open mappings and sequences lie on a stack, the innermost last; a line closes those that are
 * indented more than it is. Each knows its last entry, to which a deeper line belongs.
 */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "supervise/settings/config_keys.h"

#define ANCHORS "anchors and aliases are not understood; write the value out"
#define INDENTATION "its indentation does not fit the lines above"

typedef struct frame {
    size_t indent; /* columns before its keys, or before its dashes */
    bool sequence;
    bool open;    /* the last entry has no value yet: what is deeper is its value */
    size_t owner; /* the entry that it is the value of; SIZE_MAX: none */
    size_t last;
    size_t count; /* of entries */
} frame;

typedef struct block_reader {
    stk_config_keys *entries;
    const char *text; /* theirs */
    size_t at;        /* where the next line begins */
    size_t start;     /* of the line in work */
    size_t end;       /* of it, without blanks */
    frame frames[STK_CONFIG_DEPTH];
    int depth;
    bool marked; /* a line "---" was seen */
    bool ended;  /* a line "..." was seen */
} block_reader;

static stk_status refuse(const block_reader *r, const char *why, stk_error *err) {
    return stk_config_refuse(r->entries, r->start, why, err);
}

static frame *top_of(block_reader *r) {
    return r->depth > 0 ? &r->frames[r->depth - 1] : NULL;
}

static bool blank_at(const block_reader *r, size_t i) {
    return i >= r->end || r->text[i] == ' ' || r->text[i] == '\t';
}

static void skip_spaces(const block_reader *r, size_t *pos) {
    while (*pos < r->end && blank_at(r, *pos)) {
        (*pos)++;
    }
}

static bool starts_comment(const block_reader *r, size_t i) {
    return r->text[i] == '#' && (i == r->start || blank_at(r, i - 1));
}

/* Takes the next line; false: there is none. */
static bool next_line(block_reader *r) {
    size_t size = r->entries->size;
    if (r->at >= size) {
        return false;
    }
    const char *newline = memchr(r->text + r->at, '\n', size - r->at);
    r->start = r->at;
    r->end = newline != NULL ? (size_t)(newline - r->text) : size;
    r->at = newline != NULL ? r->end + 1 : size;
    while (r->end > r->start && strchr(" \t\r", r->text[r->end - 1]) != NULL) {
        r->end--;
    }
    return true;
}

static size_t indent_of(const block_reader *r) {
    size_t pos = r->start;
    while (pos < r->end && r->text[pos] == ' ') {
        pos++;
    }
    return pos - r->start;
}

/* Passes the lines of a text behind | or >: all that are indented more than its key. */
static void skip_text(block_reader *r, size_t indent) {
    for (size_t before = r->at; next_line(r); before = r->at) {
        if (r->start < r->end && indent_of(r) <= indent) {
            r->at = before;
            return;
        }
    }
}

/* What stands in brackets or quotes may go over several lines; nothing may follow on the last. */
static stk_status flow_value(block_reader *r, size_t index, size_t pos, stk_error *err) {
    stk_status status = stk_config_flow(r->entries, &pos, index, 0, err);
    if (status != STK_OK) {
        return status;
    }
    r->at = pos;
    if (next_line(r)) {
        skip_spaces(r, &pos);
        if (pos < r->end && !starts_comment(r, pos)) {
            return refuse(r, "something stands behind a closing bracket or quote", err);
        }
    }
    return STK_OK;
}

/* The value of the last entry of the innermost frame. */
static stk_status value(block_reader *r, size_t pos, stk_error *err) {
    frame *top = top_of(r);
    stk_config_key *entry = &r->entries->list[top->last];
    char c = r->text[pos];
    top->open = false;
    if (c == '&' || c == '*') {
        return refuse(r, ANCHORS, err);
    }
    if (c == '{' || c == '[' || c == '"' || c == '\'') {
        return flow_value(r, top->last, pos, err);
    }
    size_t end = pos;
    while (end < r->end && !(end > pos && starts_comment(r, end))) {
        end++;
    }
    while (end > pos && blank_at(r, end - 1)) {
        end--;
    }
    entry->start = pos;
    entry->length = end - pos;
    entry->plain = c != '|' && c != '>';
    if (!entry->plain) {
        skip_text(r, top->indent);
    }
    return STK_OK;
}

/* Closes what is indented more; *closed says whether anything was. */
static void unwind(block_reader *r, size_t indent, bool *closed) {
    *closed = false;
    while (r->depth > 0 && top_of(r)->indent > indent) {
        r->depth--;
        *closed = true;
    }
}

/* A line that is deeper than a text without quotes goes on with it. */
static stk_status go_on(block_reader *r, bool closed, stk_error *err) {
    const frame *top = top_of(r);
    stk_config_key *entry = top != NULL && top->count > 0 ? &r->entries->list[top->last] : NULL;
    if (closed || entry == NULL || !entry->plain) {
        return refuse(r, INDENTATION, err);
    }
    entry->length = r->end - entry->start;
    return STK_OK;
}

static stk_status push(block_reader *r, size_t indent, bool sequence, stk_error *err) {
    frame *top = top_of(r);
    if (r->depth == STK_CONFIG_DEPTH) {
        return refuse(r, "it is nested too deeply", err);
    }
    size_t owner = top != NULL ? top->last : SIZE_MAX;
    if (top != NULL) {
        top->open = false;
    }
    r->frames[r->depth++] = (frame){.indent = indent, .sequence = sequence, .owner = owner};
    return STK_OK;
}

/* Adds an entry to the innermost frame; its value comes. */
static stk_status add(block_reader *r, const char *name, size_t length, size_t pos,
                      stk_error *err) {
    frame *top = top_of(r);
    stk_status status = stk_config_add(r->entries, top->owner, name, length, &top->last, err);
    if (status == STK_OK) {
        top->count++;
        top->open = true;
        r->entries->list[top->last].start = pos;
    }
    return status;
}

/* A dash. *passed: it was none, but part of a longer text. */
static stk_status dash(block_reader *r, size_t indent, bool *passed, stk_error *err) {
    bool closed;
    char name[24];
    unwind(r, indent, &closed);
    frame *top = top_of(r);
    *passed = false;
    if (top == NULL || !top->sequence || top->indent < indent) {
        /* A sequence may stand in the same column as the key that it belongs to. */
        if (top != NULL && !top->open) {
            *passed = true;
            return top->indent < indent ? go_on(r, closed, err) : refuse(r, INDENTATION, err);
        }
        stk_status status = push(r, indent, true, err);
        if (status != STK_OK) {
            return status;
        }
        top = top_of(r);
    }
    int length = snprintf(name, sizeof name, "%zu", top->count);
    return add(r, name, (size_t)length, r->start + indent, err);
}

/* Where the colon of a key stands that begins at pos, and where the key ends; false: it is none. */
static bool find_colon(const block_reader *r, size_t pos, size_t *key_end, size_t *colon) {
    size_t i = pos;
    if (r->text[pos] == '"' || r->text[pos] == '\'') {
        if (stk_config_quoted(r->entries, &i, NULL) != STK_OK || i > r->end) {
            return false;
        }
        *key_end = i;
        skip_spaces(r, &i);
        *colon = i;
        return i < r->end && r->text[i] == ':' && blank_at(r, i + 1);
    }
    if (strchr("{[|>", r->text[pos]) != NULL) {
        return false;
    }
    for (; i < r->end && !starts_comment(r, i); i++) {
        if (r->text[i] == ':' && blank_at(r, i + 1)) {
            *colon = i;
            *key_end = i;
            while (*key_end > pos && blank_at(r, *key_end - 1)) {
                (*key_end)--;
            }
            return true;
        }
    }
    return false;
}

/* A key from pos to end, with its quotes. */
static stk_status key(block_reader *r, size_t pos, size_t end, size_t colon, stk_error *err) {
    size_t indent = pos - r->start;
    size_t quote = r->text[pos] == '"' || r->text[pos] == '\'' ? 1 : 0;
    bool closed;
    unwind(r, indent, &closed);
    if (top_of(r) != NULL && top_of(r)->sequence && top_of(r)->indent == indent) {
        r->depth--; /* one in the column of its key has ended */
    }
    const frame *top = top_of(r);
    stk_status status = STK_OK;
    if (top == NULL || top->indent < indent) {
        if (top != NULL && !top->open) {
            return go_on(r, closed, err);
        }
        status = top == NULL && r->entries->count > 0 ? refuse(r, INDENTATION, err)
                                                      : push(r, indent, false, err);
    }
    size_t behind = colon + 1;
    skip_spaces(r, &behind);
    if (status == STK_OK) {
        status = add(r, r->text + pos + quote, end - pos - 2 * quote, behind, err);
    }
    if (status != STK_OK || behind >= r->end || starts_comment(r, behind)) {
        return status;
    }
    return value(r, behind, err);
}

/* A value alone: of a dash before it, or of a key on a line before. */
static stk_status lone_value(block_reader *r, size_t pos, stk_error *err) {
    bool closed;
    if (r->depth == 0 && r->entries->count == 0 && (r->text[pos] == '{' || r->text[pos] == '[')) {
        return flow_value(r, SIZE_MAX, pos, err);
    }
    unwind(r, pos - r->start, &closed);
    const frame *top = top_of(r);
    if (top == NULL || top->indent >= pos - r->start) {
        return refuse(r, "this is neither a key with its value nor a part of a list", err);
    }
    return top->open ? value(r, pos, err) : go_on(r, closed, err);
}

/* What stands on a line from its first character on. */
static stk_status contents(block_reader *r, size_t pos, stk_error *err) {
    size_t end;
    size_t colon;
    while (r->text[pos] == '-' && blank_at(r, pos + 1)) {
        bool passed;
        stk_status status = dash(r, pos - r->start, &passed, err);
        if (status != STK_OK || passed) {
            return status;
        }
        pos++;
        skip_spaces(r, &pos);
        if (pos >= r->end || starts_comment(r, pos)) {
            return STK_OK;
        }
    }
    if (r->text[pos] == '?' && blank_at(r, pos + 1)) {
        return refuse(r, "keys behind ? are not understood", err);
    }
    if (r->text[pos] == '&' || r->text[pos] == '*') {
        return refuse(r, ANCHORS, err);
    }
    return find_colon(r, pos, &end, &colon) ? key(r, pos, end, colon, err)
                                            : lone_value(r, pos, err);
}

/* Lines that begin and end documents; *passed: this was one. */
static stk_status document(block_reader *r, bool *passed, stk_error *err) {
    const char *line = r->text + r->start;
    size_t behind = r->start + 3;
    bool three = r->end - r->start >= 3 && blank_at(r, behind);
    bool begins = three && memcmp(line, "---", 3) == 0;
    bool ends = three && memcmp(line, "...", 3) == 0;
    *passed = begins || ends || (line[0] == '%' && r->entries->count == 0);
    if ((begins && (r->marked || r->entries->count > 0)) || (r->ended && !ends)) {
        return refuse(r, "a second document begins here; one file must have one", err);
    }
    if (*passed && three) {
        skip_spaces(r, &behind);
        if (behind < r->end && !starts_comment(r, behind)) {
            return refuse(r, "begin what follows on a line of its own", err);
        }
    }
    r->marked = r->marked || begins;
    r->ended = r->ended || ends;
    return STK_OK;
}

stk_status stk_config_block(stk_config_keys *entries, stk_error *err) {
    block_reader r = {.entries = entries, .text = entries->text};
    stk_status status = STK_OK;
    if (entries->size >= 3 && memcmp(entries->text, "\xEF\xBB\xBF", 3) == 0) {
        r.at = 3;
    }
    while (status == STK_OK && next_line(&r)) {
        size_t pos = r.start + indent_of(&r);
        bool passed = pos >= r.end || r.text[pos] == '#';
        if (!passed && r.text[pos] == '\t') {
            status = refuse(&r, "it is indented with a tab; use blanks", err);
        } else if (!passed) {
            status = document(&r, &passed, err);
        }
        if (status == STK_OK && !passed) {
            status = contents(&r, pos, err);
        }
    }
    return status;
}
