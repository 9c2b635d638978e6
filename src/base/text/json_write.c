/* json_write.c - the JSON writer: appends values to a text. */
#include "base/text/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

stk_json_writer stk_json_write_to(stk_str *out, int indent) {
    return (stk_json_writer){.out = out, .indent = indent};
}

static void break_line(stk_json_writer *writer) {
    if (writer->indent > 0 && writer->out->length > 0) {
        stk_str_appendf(writer->out, "\n%*s", writer->indent * writer->depth, "");
    }
}

/* Before a key or a value: the comma and the line, unless a key has just been written. */
static void before_value(stk_json_writer *writer) {
    if (writer->after_key) {
        writer->after_key = false;
        return;
    }
    if (writer->need_comma) {
        stk_str_append(writer->out, writer->indent > 0 ? "," : ", ");
    }
    break_line(writer);
}

static void open_container(stk_json_writer *writer, const char *bracket) {
    before_value(writer);
    stk_str_append(writer->out, bracket);
    writer->depth++;
    writer->need_comma = false;
}

static void close_container(stk_json_writer *writer, const char *bracket) {
    writer->depth--;
    if (writer->need_comma) {
        break_line(writer);
    }
    stk_str_append(writer->out, bracket);
    writer->need_comma = true;
}

void stk_json_begin_object(stk_json_writer *writer) {
    open_container(writer, "{");
}

void stk_json_end_object(stk_json_writer *writer) {
    close_container(writer, "}");
}

void stk_json_begin_array(stk_json_writer *writer) {
    open_container(writer, "[");
}

void stk_json_end_array(stk_json_writer *writer) {
    close_container(writer, "]");
}

/* A byte that is not UTF-8 is written as this code plus the byte. */
#define ESCAPED_BYTE 0xDC00u

/*
 * Names of files may hold any bytes, but a JSON text with broken UTF-8 could not be read back.
 * Characters that a terminal obeys are escaped, since people look at such lines.
 */
static void append_quoted(stk_str *out, const char *text, bool exact) {
    size_t left = strlen(text);
    size_t length;
    stk_str_append(out, "\"");
    for (const char *p = text; left > 0; p += length) {
        length = stk_utf8_length(p, left);
        if (length == 0) {
            stk_str_appendf(out, "\\u%04x", exact ? ESCAPED_BYTE + (unsigned char)*p : 0xFFFDu);
            length = 1;
        } else if (*p == '"' || *p == '\\') {
            stk_str_appendf(out, "\\%c", *p);
        } else if (*p == '\n') {
            stk_str_append(out, "\\n");
        } else if (stk_utf8_control(p, length) >= 0) {
            stk_str_appendf(out, "\\u%04x", (unsigned)stk_utf8_control(p, length));
        } else {
            stk_str_append_bytes(out, p, length);
        }
        left -= length;
    }
    stk_str_append(out, "\"");
}

void stk_json_key(stk_json_writer *writer, const char *key) {
    before_value(writer);
    append_quoted(writer->out, key, writer->exact);
    stk_str_append(writer->out, ": ");
    writer->after_key = true;
}

void stk_json_put_string(stk_json_writer *writer, const char *text) {
    if (text == NULL) {
        stk_json_put_null(writer);
        return;
    }
    before_value(writer);
    append_quoted(writer->out, text, writer->exact);
    writer->need_comma = true;
}

void stk_json_put_int(stk_json_writer *writer, int64_t value) {
    before_value(writer);
    stk_str_appendf(writer->out, "%lld", (long long)value);
    writer->need_comma = true;
}

void stk_json_put_double(stk_json_writer *writer, double value) {
    if (!isfinite(value)) {
        stk_json_put_null(writer);
        return;
    }
    char text[32];
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value) {
            break;
        }
    }
    before_value(writer);
    stk_str_append(writer->out, text);
    writer->need_comma = true;
}

void stk_json_put_bool(stk_json_writer *writer, bool value) {
    before_value(writer);
    stk_str_append(writer->out, value ? "true" : "false");
    writer->need_comma = true;
}

void stk_json_put_null(stk_json_writer *writer) {
    before_value(writer);
    stk_str_append(writer->out, "null");
    writer->need_comma = true;
}
