/* text.c - bytes of unknown origin to clean UTF-8. */
#include "report/text/text.h"

#include <string.h>

/* U+FFFD, the character that stands for what could not be read. */
#define REPLACEMENT "\xef\xbf\xbd"

static void append_clean(stk_str *out, const char *text, bool one_line) {
    const char *end = text + strlen(text);
    while (text < end) {
        size_t length = stk_utf8_length(text, (size_t)(end - text));
        if (length == 0) {
            stk_str_append(out, REPLACEMENT);
            length = 1;
        } else if (one_line && stk_utf8_control(text, length) >= 0) {
            stk_str_append(out, " ");
        } else {
            stk_str_append_bytes(out, text, length);
        }
        text += length;
    }
}

void stk_report_append_utf8(stk_str *out, const char *text) {
    append_clean(out, text, false);
}

void stk_report_append_line(stk_str *out, const char *text) {
    append_clean(out, text, true);
}

void stk_report_append_markup(stk_str *out, const char *text) {
    stk_str clean = {0};
    stk_report_append_line(&clean, text);
    const char *rest = stk_str_text(&clean);
    while (*rest != '\0') {
        size_t plain = strcspn(rest, "&<>\"'");
        stk_str_append_bytes(out, rest, plain);
        rest += plain;
        if (*rest != '\0') {
            stk_str_append(out, *rest == '&'   ? "&amp;"
                                : *rest == '<' ? "&lt;"
                                : *rest == '>' ? "&gt;"
                                : *rest == '"' ? "&quot;"
                                               : "&#39;");
            rest++;
        }
    }
    stk_str_free_part(out, &clean);
}

/* The sentence that belongs to the word in the table; without one, the word itself. */
static const char *find_words(const char *const pairs[][2], size_t count, const char *word) {
    for (size_t i = 0; i < count && word != NULL; i++) {
        if (stk_str_equal(word, pairs[i][0])) {
            return pairs[i][1];
        }
    }
    return word;
}

const char *stk_report_words(const char *word) {
    static const char *const words[][2] = {
        {"complete", "done"},
        {"partial", "done in part"},
        {"prior", "class priors only"},
        {"epochs", "every planned epoch was trained"},
        {"patience", "it no longer improved"},
        {"budget", "the time budget was used up"},
        {"signal", "it was asked to stop"},
        {"error", "an error ended it"},
    };
    return find_words(words, sizeof words / sizeof *words, word);
}

const char *stk_report_stop_words(const stk_summary *summary) {
    static const char *const words[][2] = {
        {"epochs", "the command ended by itself"},
        {"budget", "the command was stopped when its time was up"},
        {"error", "the command failed"},
    };
    const char *word = summary->stop_reason;
    const char *other =
        summary->command != NULL ? find_words(words, sizeof words / sizeof *words, word) : word;
    return other != word ? other : stk_report_words(word);
}

void stk_report_append_json(stk_str *out, const stk_json *value) {
    double number;
    switch (stk_json_kind_of(value)) {
    case STK_JSON_STRING:
        stk_str_append(out, stk_json_string(value));
        break;
    case STK_JSON_NUMBER:
        number = stk_json_number(value, 0);
        stk_str_appendf(out, "%.*g", number == stk_as_shown(number) ? 6 : 17, number);
        break;
    case STK_JSON_BOOL:
        stk_str_append(out, stk_json_bool(value, false) ? "yes" : "no");
        break;
    default:
        break; /* null: an option that is not set; args.json has nothing deeper */
    }
}
