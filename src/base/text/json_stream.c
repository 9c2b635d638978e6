/*
 * json_stream.c - a window moves over the text. A token always lies in the window as a whole: where
 * it is cut off, the window moves to the beginning of the token and reads on. Strings are decoded
 * in place, which is possible because no escape is shorter than what it stands for.
 */
#include "base/text/json_stream.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/text/json_text.h"

#define MAX_DEPTH 64
#define WINDOW_BYTES ((size_t)1 << 20)
#define TOKEN_BYTES_MOST ((size_t)16 << 20)

/* What may stand at the place that the stream has reached. */
typedef enum expected {
    EXPECT_ROOT,           /* a value, or the end of the text */
    EXPECT_VALUE,          /* after a key, or after a comma in an array */
    EXPECT_VALUE_OR_CLOSE, /* after [ */
    EXPECT_KEY,            /* after a comma in an object */
    EXPECT_KEY_OR_CLOSE,   /* after { */
    EXPECT_COMMA_OR_CLOSE  /* after a value */
} expected;

struct stk_json_stream {
    const stk_range_source *source; /* borrowed */
    char *window;                   /* owned; one more byte than capacity, for a NUL */
    size_t capacity;
    size_t at;     /* next byte of the window */
    size_t end;    /* bytes in the window */
    uint64_t base; /* where in the source the window begins */
    uint64_t line;
    bool over;     /* the source has no bytes behind the window */
    char held;     /* the byte that the NUL behind the last token has replaced */
    char *held_at; /* where it stood; NULL: nowhere */
    expected expect;
    int depth;
    char closing[MAX_DEPTH]; /* of each open container */
};

uint64_t stk_json_stream_line(const stk_json_stream *s) {
    return s->line;
}

uint64_t stk_json_stream_at(const stk_json_stream *s) {
    return s->base + s->at;
}

stk_status stk_json_stream_fail(const stk_json_stream *s, const char *what, stk_error *err) {
    return STK_FAIL(err, STK_ERR_DATA, "%s, line %llu, byte %llu: %s", s->source->name,
                    (unsigned long long)s->line, (unsigned long long)stk_json_stream_at(s), what);
}

static stk_status fail_syntax(const stk_json_stream *s, const char *what, stk_error *err) {
    return STK_FAIL(err, STK_ERR_DATA, "%s is not valid JSON at line %llu, byte %llu: %s",
                    s->source->name, (unsigned long long)s->line,
                    (unsigned long long)stk_json_stream_at(s), what);
}

static stk_status fail_cut(const stk_json_stream *s, stk_error *err) {
    return STK_FAIL(err, STK_ERR_DATA,
                    "%s ends in the middle of a value, at byte %llu; copy or download it again",
                    s->source->name, (unsigned long long)(s->base + s->end));
}

/* Moves the window, so that it begins with byte `keep`, and reads on. */
static stk_status read_on(stk_json_stream *s, size_t keep, stk_error *err) {
    size_t kept = s->end - keep;
    if (kept > 0 && keep > 0) {
        memmove(s->window, s->window + keep, kept);
    }
    s->base += keep;
    s->at -= keep;
    s->end = kept;
    if (kept * 2 > s->capacity) {
        size_t wider = s->capacity * 2;
        if (wider > TOKEN_BYTES_MOST) {
            return fail_syntax(s, "a string or a number of over 8 MiB", err);
        }
        char *window = stk_mem_resize(s->window, wider + 1, 1);
        if (window == NULL) {
            return STK_FAIL_MEMORY(err, s->source->name);
        }
        s->window = window;
        s->capacity = wider;
    }
    size_t got = 0;
    size_t room = s->capacity - kept;
    stk_status status =
        s->source->read(s->source->user, s->base + kept, s->window + kept, room, &got, err);
    s->end += status == STK_OK ? got : 0;
    s->over = status == STK_OK && got < room;
    return status;
}

/* Passes over blanks. Afterwards a byte stands at s->at, or the text is over. */
static stk_status skip_blanks(stk_json_stream *s, stk_error *err) {
    for (;;) {
        while (s->at < s->end) {
            char c = s->window[s->at];
            if (c != ' ' && c != '\n' && c != '\t' && c != '\r') {
                return STK_OK;
            }
            s->line += c == '\n';
            s->at++;
        }
        if (s->over) {
            return STK_OK;
        }
        stk_status status = read_on(s, s->at, err);
        if (status != STK_OK) {
            return status;
        }
    }
}

/* Puts a NUL behind a token; the byte that stood there comes back with the next call. */
static void end_text(stk_json_stream *s) {
    s->held_at = &s->window[s->at];
    s->held = *s->held_at;
    *s->held_at = '\0';
}

static void restore(stk_json_stream *s) {
    if (s->held_at != NULL) {
        *s->held_at = s->held;
        s->held_at = NULL;
    }
}

/* Finds the quote that ends the string whose text begins at s->at + 1; *plain: it has no escapes.
 */
static stk_status find_quote(stk_json_stream *s, size_t *quote, bool *plain, stk_error *err) {
    size_t i = 1; /* from s->at, which moves with the window */
    *plain = true;
    for (;;) {
        const unsigned char *text = (const unsigned char *)s->window + s->at;
        size_t size = s->end - s->at;
        while (i < size && text[i] != '"') {
            if (text[i] == '\\' || text[i] < 0x20) {
                *plain = false;
                i += text[i] == '\\' ? 1 : 0;
            }
            i++;
        }
        if (i < size) {
            *quote = s->at + i;
            return STK_OK;
        }
        if (s->over) {
            return fail_cut(s, err);
        }
        stk_status status = read_on(s, s->at, err);
        if (status != STK_OK) {
            return status;
        }
    }
}

/* Decodes the string between s->at and `quote` in place. */
static stk_status decode(stk_json_stream *s, size_t quote, size_t *length, stk_error *err) {
    size_t start = s->at;
    size_t used = 0;
    while (s->at < quote) {
        char c = s->window[s->at++];
        const char *wrong = NULL;
        if (c == '\\') {
            wrong = stk_json_unescape(s->window, quote, &s->at, s->window + start, &used);
        } else if ((unsigned char)c < 0x20) {
            wrong = "a control character in a string";
        } else {
            s->window[start + used++] = c;
        }
        if (wrong != NULL) {
            return fail_syntax(s, wrong, err);
        }
    }
    *length = used;
    return STK_OK;
}

static stk_status take_string(stk_json_stream *s, stk_json_token *token, stk_error *err) {
    size_t quote = 0;
    bool plain = true;
    stk_status status = find_quote(s, &quote, &plain, err);
    if (status != STK_OK) {
        return status;
    }
    size_t start = ++s->at;
    token->text = s->window + start;
    token->length = quote - start;
    if (!plain) {
        status = decode(s, quote, &token->length, err);
    }
    if (status == STK_OK) {
        s->window[start + token->length] = '\0'; /* at the quote or before it: it was passed */
        s->at = quote + 1;
    }
    return status;
}

/* Makes sure that the number or word at s->at does not go on behind the window. */
static stk_status complete_word(stk_json_stream *s, stk_error *err) {
    size_t i = 0;
    for (;;) {
        const char *text = s->window + s->at;
        size_t size = s->end - s->at;
        while (i < size && text[i] != ',' && text[i] != ']' && text[i] != '}' && text[i] > ' ') {
            i++;
        }
        if (i < size || s->over) {
            return STK_OK;
        }
        stk_status status = read_on(s, s->at, err);
        if (status != STK_OK) {
            return status;
        }
    }
}

static stk_status take_number(stk_json_stream *s, stk_json_token *token, stk_error *err) {
    size_t start = s->at;
    const char *wrong = stk_json_pass_number(s->window, s->end, &s->at);
    if (wrong != NULL) {
        return s->at == s->end ? fail_cut(s, err) : fail_syntax(s, wrong, err);
    }
    token->text = s->window + start;
    token->length = s->at - start;
    end_text(s);
    return STK_OK;
}

static stk_status take_word(stk_json_stream *s, stk_json_token *token, stk_error *err) {
    static const struct {
        const char *word;
        stk_json_token_kind kind;
        const char *text;
    } words[] = {{"true", STK_JSON_TOKEN_TRUE, "true"},
                 {"false", STK_JSON_TOKEN_FALSE, "false"},
                 {"null", STK_JSON_TOKEN_NULL, ""},
                 {"NaN", STK_JSON_TOKEN_NULL, ""}};
    size_t left = s->end - s->at;
    for (size_t i = 0; i < STK_COUNT(words); i++) {
        size_t length = strlen(words[i].word);
        if (left >= length && memcmp(s->window + s->at, words[i].word, length) == 0) {
            s->at += length;
            token->kind = words[i].kind;
            token->text = words[i].text;
            token->length = strlen(words[i].text);
            return STK_OK;
        }
        if (left > 0 && left < length && memcmp(s->window + s->at, words[i].word, left) == 0) {
            return fail_cut(s, err);
        }
    }
    return left == 0 ? fail_cut(s, err) : fail_syntax(s, "expected a value", err);
}

static stk_status open_container(stk_json_stream *s, stk_json_token *token, char closing,
                                 stk_error *err) {
    if (s->depth == MAX_DEPTH) {
        return fail_syntax(s, "nested too deeply", err);
    }
    s->at++;
    s->closing[s->depth++] = closing;
    token->kind = closing == '}' ? STK_JSON_TOKEN_OBJECT : STK_JSON_TOKEN_ARRAY;
    s->expect = closing == '}' ? EXPECT_KEY_OR_CLOSE : EXPECT_VALUE_OR_CLOSE;
    return STK_OK;
}

static void close_container(stk_json_stream *s, stk_json_token *token) {
    char closing = s->closing[--s->depth];
    s->at++;
    token->kind = closing == '}' ? STK_JSON_TOKEN_OBJECT_END : STK_JSON_TOKEN_ARRAY_END;
    s->expect = s->depth > 0 ? EXPECT_COMMA_OR_CLOSE : EXPECT_ROOT;
}

/* The value whose first byte is c. */
static stk_status take_value(stk_json_stream *s, int c, stk_json_token *token, stk_error *err) {
    if (c == '{' || c == '[') {
        return open_container(s, token, c == '{' ? '}' : ']', err);
    }
    s->expect = s->depth > 0 ? EXPECT_COMMA_OR_CLOSE : EXPECT_ROOT;
    if (c == '"') {
        token->kind = STK_JSON_TOKEN_STRING;
        return take_string(s, token, err);
    }
    stk_status status = complete_word(s, err);
    if (status != STK_OK) {
        return status;
    }
    token->kind = STK_JSON_TOKEN_NUMBER;
    return c == '-' || (c >= '0' && c <= '9') ? take_number(s, token, err)
                                              : take_word(s, token, err);
}

static stk_status take_key(stk_json_stream *s, int c, stk_json_token *token, stk_error *err) {
    if (c != '"') {
        return c < 0 ? fail_cut(s, err) : fail_syntax(s, "expected a key in quotes", err);
    }
    token->kind = STK_JSON_TOKEN_KEY;
    s->expect = EXPECT_VALUE;
    return take_string(s, token, err);
}

/* Passes the colon after a key. That waits until the key is no longer needed, since reading on
 * moves the window. */
static stk_status pass_colon(stk_json_stream *s, stk_error *err) {
    stk_status status = skip_blanks(s, err);
    if (status == STK_OK && (s->at == s->end || s->window[s->at] != ':')) {
        status = s->at == s->end ? fail_cut(s, err)
                                 : fail_syntax(s, "expected a colon after the key", err);
    }
    s->at++;
    return status;
}

/* Passes the comma between two members; *closes instead where the container ends. */
static stk_status pass_comma(stk_json_stream *s, bool *closes, stk_error *err) {
    char closing = s->closing[s->depth - 1];
    if (s->at == s->end) {
        return fail_cut(s, err);
    }
    *closes = s->window[s->at] == closing;
    if (*closes) {
        return STK_OK;
    }
    if (s->window[s->at] != ',') {
        return fail_syntax(s, closing == '}' ? "expected , or }" : "expected , or ]", err);
    }
    s->at++;
    s->expect = closing == '}' ? EXPECT_KEY : EXPECT_VALUE;
    return skip_blanks(s, err);
}

stk_status stk_json_stream_open(stk_json_stream **stream, const stk_range_source *source,
                                stk_error *err) {
    stk_json_stream *s = stk_mem_new(1, sizeof *s);
    char *window = stk_mem_raw(WINDOW_BYTES + 1, 1);
    if (s == NULL || window == NULL) {
        stk_mem_free(s);
        stk_mem_free(window);
        return STK_FAIL_MEMORY(err, source->name);
    }
    s->source = source;
    s->window = window;
    s->capacity = WINDOW_BYTES;
    s->line = 1;
    s->expect = EXPECT_ROOT;
    *stream = s;
    return STK_OK;
}

void stk_json_stream_close(stk_json_stream *s) {
    if (s != NULL) {
        stk_mem_free(s->window);
        stk_mem_free(s);
    }
}

stk_status stk_json_stream_next(stk_json_stream *s, stk_json_token *token, stk_error *err) {
    bool closes = false;
    restore(s);
    *token = (stk_json_token){.text = ""};
    stk_status status = s->expect == EXPECT_VALUE && s->depth > 0 && s->closing[s->depth - 1] == '}'
                            ? pass_colon(s, err)
                            : STK_OK;
    STK_THEN(status, skip_blanks(s, err));
    if (status == STK_OK && stk_json_stream_at(s) == 0 && s->end >= 3 &&
        memcmp(s->window, "\xEF\xBB\xBF", 3) == 0) {
        s->at = 3;
        status = skip_blanks(s, err);
    }
    if (status == STK_OK && s->expect == EXPECT_COMMA_OR_CLOSE) {
        status = pass_comma(s, &closes, err);
    }
    if (status != STK_OK) {
        return status;
    }
    int c = s->at < s->end ? (unsigned char)s->window[s->at] : -1;
    token->offset = stk_json_stream_at(s);
    if (s->expect == EXPECT_KEY_OR_CLOSE || s->expect == EXPECT_VALUE_OR_CLOSE) {
        closes = c == s->closing[s->depth - 1];
        s->expect = closes                             ? s->expect
                    : s->expect == EXPECT_KEY_OR_CLOSE ? EXPECT_KEY
                                                       : EXPECT_VALUE;
    }
    if (closes) {
        close_container(s, token);
        return STK_OK;
    }
    if (s->expect == EXPECT_KEY) {
        return take_key(s, c, token, err);
    }
    if (s->expect == EXPECT_ROOT && c < 0) {
        return STK_OK;
    }
    return c < 0 ? fail_cut(s, err) : take_value(s, c, token, err);
}

stk_status stk_json_stream_skip(stk_json_stream *s, stk_error *err) {
    int depth = s->depth;
    stk_status status = STK_OK;
    while (status == STK_OK && s->depth >= depth) {
        stk_json_token token;
        status = stk_json_stream_next(s, &token, err);
    }
    return status;
}
