/* render.c - option tables as help, as a page, as YAML and as JSON. */
#include "options/options.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/text/json.h"
#include "options/store.h"

#define HELP_INDENT 28
#define HELP_WIDTH 98

/* Appends text broken into lines that start at HELP_INDENT; `column` is where it starts now. */
static void append_wrapped(stk_str *out, const char *text, size_t column) {
    const char *p = text;
    while (*p != '\0') {
        size_t word = strcspn(p, " ");
        if (column + 1 + word > HELP_WIDTH && column > HELP_INDENT) {
            stk_str_appendf(out, "\n%*s", HELP_INDENT, "");
            column = HELP_INDENT;
        }
        if (column > HELP_INDENT) {
            stk_str_append(out, " ");
            column++;
        }
        stk_str_append_bytes(out, p, word);
        column += word;
        p += word;
        p += strspn(p, " ");
    }
    stk_str_append(out, "\n");
}

/* "--batch auto|N", "--[no-]compile". */
static void append_flag(stk_str *out, const stk_option *option) {
    if (option->type == STK_OPTION_BOOL) {
        stk_str_appendf(out, option->noted ? "--%s" : "--[no-]%s", option->name);
        return;
    }
    stk_str_appendf(out, "--%s ", option->name);
    if (option->type == STK_OPTION_CHOICE && option->metavar == NULL) {
        for (const char *p = option->choices; *p != '\0'; p++) {
            if (*p == '=') {
                p += strcspn(p, " ");
                if (*p == '\0') {
                    break;
                }
            }
            stk_str_append_bytes(out, *p == ' ' ? "|" : p, 1);
        }
        return;
    }
    stk_str_appendf(out, "%s%s", option->may_be_auto ? "auto|" : "",
                    option->metavar != NULL ? option->metavar : "VALUE");
}

static bool has_default(const stk_option_entry *entry) {
    return !entry->option->noted && entry->option->fallback != NULL &&
           entry->option->fallback[0] != '\0' && entry->option->type != STK_OPTION_BOOL;
}

void stk_options_help(const stk_options *options, stk_str *out) {
    const stk_option_table *group = NULL;
    for (size_t i = 0; i < options->count; i++) {
        const stk_option_entry *entry = &options->entries[i];
        if (entry->table != group) {
            group = entry->table;
            stk_str_appendf(out, "\n%s:\n", group->group);
        }
        stk_str line = {0};
        append_flag(&line, entry->option);
        stk_str_appendf(out, "  %s", stk_str_text(&line));
        size_t column = 2 + line.length;
        if (column + 2 > HELP_INDENT) {
            stk_str_append(out, "\n");
            column = 0;
        }
        stk_str_appendf(out, "%*s", (int)(HELP_INDENT - column), "");
        stk_str_clear(&line);
        stk_str_append(&line, entry->option->help);
        if (has_default(entry)) {
            stk_str_appendf(&line, " (%s)", entry->option->fallback);
        }
        append_wrapped(out, stk_str_text(&line), HELP_INDENT);
        stk_str_free(&line);
    }
}

void stk_options_markdown(const stk_options *options, stk_str *out) {
    const stk_option_table *group = NULL;
    for (size_t i = 0; i < options->count; i++) {
        const stk_option_entry *entry = &options->entries[i];
        const stk_option *option = entry->option;
        if (entry->table != group) {
            group = entry->table;
            stk_str_appendf(out,
                            "\n### %s\n\n| flag | also | default | meaning | values |\n"
                            "| --- | --- | --- | --- | --- |\n",
                            group->group);
        }
        stk_str flag = {0};
        stk_str expected = {0};
        append_flag(&flag, option);
        stk_options_expected(option, &expected);
        stk_str_append(out, "| `");
        for (const char *p = stk_str_text(&flag); *p != '\0'; p++) {
            stk_str_append_bytes(out, *p == '|' ? "\\|" : p, *p == '|' ? 2 : 1);
        }
        stk_str_append(out, "` | ");
        for (const char *p = option->aliases != NULL ? option->aliases : ""; *p != '\0';) {
            size_t word = strcspn(p, " ");
            stk_str_appendf(out, "`%.*s`%s", (int)word, p, p[word] != '\0' ? ", " : "");
            p += word;
            p += strspn(p, " ");
        }
        stk_str_appendf(out, " | %s | %s | %s |\n",
                        option->type == STK_OPTION_BOOL && !option->noted ? entry->text
                        : has_default(entry)                              ? option->fallback
                                                                          : "",
                        option->help, stk_str_text(&expected));
        stk_str_free(&flag);
        stk_str_free(&expected);
    }
}

/* The name with underscores, as keys of configuration files are written. */
static void append_key(stk_str *out, const char *name) {
    for (const char *p = name; *p != '\0'; p++) {
        stk_str_append_bytes(out, *p == '-' ? "_" : p, 1);
    }
}

/* Words that YAML would read as something other than text, or that end early, are quoted. */
static bool is_plain(const stk_option *option, const char *text) {
    static const char *const special[] = {"true", "false", "yes", "no", "on", "off", "null", "~"};
    bool is_text = option->type == STK_OPTION_TEXT || option->type == STK_OPTION_DURATION ||
                   option->type == STK_OPTION_CHOICE;
    for (size_t i = 0; i < sizeof special / sizeof *special && is_text; i++) {
        if (stk_str_equal_nocase(text, special[i])) {
            return false;
        }
    }
    for (const char *p = text; *p != '\0'; p++) {
        if (!isalnum((unsigned char)*p) && strchr("._/+-", *p) == NULL) {
            return false;
        }
    }
    return (text[0] != '-' || !is_text) && text[0] != '\0';
}

/*
 * Quotes as JSON has them, which YAML reads, with escapes for what YAML takes for a line break or
 * refuses to read: U+007F to U+009F, U+2028, U+2029, U+FEFF, U+FFFE and U+FFFF.
 */
static void append_quoted(stk_str *out, const char *text) {
    stk_str json = {0};
    stk_json_writer writer = stk_json_write_to(&json, 0);
    stk_json_put_string(&writer, text);
    const unsigned char *p = (const unsigned char *)stk_str_text(&json);
    while (*p != '\0') {
        unsigned code = 0;
        size_t length = *p < 0x80 ? 1 : *p < 0xE0 ? 2 : *p < 0xF0 ? 3 : 4;
        if (length == 2) {
            code = (p[0] & 0x1Fu) << 6 | (p[1] & 0x3Fu);
        } else if (length == 3) {
            code = (p[0] & 0x0Fu) << 12 | (p[1] & 0x3Fu) << 6 | (p[2] & 0x3Fu);
        }
        if (*p == 0x7F || (code >= 0x80 && code <= 0x9F) || code == 0x2028 || code == 0x2029 ||
            code == 0xFEFF || code >= 0xFFFE) {
            stk_str_appendf(out, "\\u%04x", *p == 0x7F ? 0x7Fu : code);
        } else {
            stk_str_append_bytes(out, p, length);
        }
        p += length;
    }
    stk_str_free_part(out, &json);
}

/* A comment ends with its line. */
static void append_comment(stk_str *out, const char *text) {
    stk_str_append(out, "  # ");
    for (const char *p = text; *p != '\0'; p++) {
        stk_str_append_bytes(out, iscntrl((unsigned char)*p) ? " " : p, 1);
    }
}

void stk_options_yaml(const stk_options *options, stk_str *out) {
    const stk_option_table *group = NULL;
    for (size_t i = 0; i < options->count; i++) {
        const stk_option_entry *entry = &options->entries[i];
        const char *text = stk_option_effective(entry);
        if (!stk_option_is_written(entry)) {
            continue;
        }
        if (entry->table != group) {
            group = entry->table;
            stk_str_appendf(out, "%s# %s\n", out->length > 0 ? "\n" : "", group->group);
        }
        append_key(out, entry->option->name);
        stk_str_append(out, ":");
        /* An empty value would mean the default, so a default that was removed is written as "". */
        if (is_plain(entry->option, text)) {
            stk_str_appendf(out, " %s", text);
        } else if (text[0] != '\0' || has_default(entry)) {
            stk_str_append(out, " ");
            append_quoted(out, text);
        }
        if (entry->why != NULL) {
            append_comment(out, entry->why);
        }
        stk_str_append(out, "\n");
    }
}

/* The value as JSON, by the option's type; "auto" is a string, an empty text null. */
static void put_json_value(stk_json_writer *writer, const stk_option_entry *entry) {
    const char *text = stk_option_effective(entry);
    int64_t whole;
    double number;
    bool truth;
    if (text[0] == '\0') {
        stk_json_put_null(writer);
    } else if (entry->option->type == STK_OPTION_INT && stk_parse_int(text, &whole)) {
        stk_json_put_int(writer, whole);
    } else if (entry->option->type == STK_OPTION_DOUBLE && stk_parse_double(text, &number)) {
        stk_json_put_double(writer, number);
    } else if (entry->option->type == STK_OPTION_BOOL && stk_parse_bool(text, &truth)) {
        stk_json_put_bool(writer, truth);
    } else {
        stk_json_put_string(writer, text);
    }
}

void stk_options_json(const stk_options *options, stk_str *out) {
    stk_json_writer writer = stk_json_write_to(out, 2);
    writer.exact = true; /* paths are read back */
    stk_json_begin_object(&writer);
    for (size_t i = 0; i < options->count; i++) {
        const stk_option_entry *entry = &options->entries[i];
        if (!stk_option_is_written(entry)) {
            continue;
        }
        stk_str key = {0};
        append_key(&key, entry->option->name);
        out->failed = out->failed || key.failed;
        stk_json_key(&writer, stk_str_text(&key));
        stk_str_free(&key);
        put_json_value(&writer, entry);
    }
    stk_json_end_object(&writer);
    stk_str_append(out, "\n");
}

void stk_options_each_flag(const stk_options *options,
                           void (*visit)(void *user, const char *flag, const stk_option *option),
                           void *user) {
    for (size_t i = 0; i < options->count; i++) {
        const stk_option *option = options->entries[i].option;
        char flag[80];
        snprintf(flag, sizeof flag, "--%s", option->name);
        visit(user, flag, option);
        if (option->type == STK_OPTION_BOOL && !option->noted) {
            snprintf(flag, sizeof flag, "--no-%s", option->name);
            visit(user, flag, option);
        }
    }
}
