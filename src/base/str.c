/* str.c - growing text, nearest words, and parsing of numbers, sizes and durations. */
#include "base/str.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"

/* Longer words than this are not compared letter by letter; no option or model name is longer. */
#define NEAREST_MAX 64

/* The longest duration that is shown: 9999 hours. An estimate without a rate may be infinite. */
#define LONGEST_S (9999.0 * 3600)

bool stk_str_reserve(stk_str *str, size_t extra) {
    if (str->failed || extra >= SIZE_MAX - str->length - 1 ||
        !STK_RESERVE(str->text, str->capacity, str->length + extra + 1)) {
        str->failed = true;
        return false;
    }
    str->text[str->length] = '\0';
    return true;
}

void stk_str_free(stk_str *str) {
    stk_mem_free(str->text);
    memset(str, 0, sizeof *str);
}

void stk_str_free_part(stk_str *whole, stk_str *part) {
    whole->failed = whole->failed || part->failed;
    stk_str_free(part);
}

void stk_str_clear(stk_str *str) {
    str->length = 0;
    str->failed = false;
    if (str->text != NULL) {
        str->text[0] = '\0';
    }
}

void stk_str_append_bytes(stk_str *str, const void *bytes, size_t length) {
    if (stk_str_reserve(str, length)) {
        if (length > 0) {
            memcpy(str->text + str->length, bytes, length);
        }
        str->length += length;
        str->text[str->length] = '\0';
    }
}

void stk_str_append(stk_str *str, const char *text) {
    stk_str_append_bytes(str, text, strlen(text));
}

void stk_str_append_args(stk_str *str, const char *format, va_list args) {
    va_list again;
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, args);
    if (length >= 0 && stk_str_reserve(str, (size_t)length)) {
        vsnprintf(str->text + str->length, (size_t)length + 1, format, again);
        str->length += (size_t)length;
    } else {
        str->failed = true;
    }
    va_end(again);
}

void stk_str_appendf(stk_str *str, const char *format, ...) {
    va_list args;
    va_start(args, format);
    stk_str_append_args(str, format, args);
    va_end(args);
}

bool stk_str_ok(const stk_str *str) {
    return !str->failed;
}

const char *stk_str_text(const stk_str *str) {
    return str->text != NULL ? str->text : "";
}

char *stk_str_take(stk_str *str) {
    if (!stk_str_reserve(str, 0)) {
        stk_str_free(str);
        return NULL;
    }
    str->text[str->length] = '\0';
    char *text = str->text;
    memset(str, 0, sizeof *str);
    return text;
}

char *stk_str_format(const char *format, ...) {
    stk_str str = {0};
    va_list args;
    va_start(args, format);
    stk_str_append_args(&str, format, args);
    va_end(args);
    return stk_str_take(&str);
}

bool stk_str_equal(const char *a, const char *b) {
    return strcmp(a, b) == 0;
}

bool stk_str_equal_nocase(const char *a, const char *b) {
    return strcasecmp(a, b) == 0;
}

bool stk_str_ends_with_nocase(const char *text, const char *tail) {
    size_t n = strlen(text);
    size_t m = strlen(tail);
    return n >= m && strcasecmp(text + n - m, tail) == 0;
}

/* The well-formed sequences of Unicode, table 3-7. */
size_t stk_utf8_length(const char *text, size_t left) {
    const unsigned char *p = (const unsigned char *)text;
    if (p[0] < 0x80) {
        return 1;
    }
    size_t length = p[0] >= 0xC2 && p[0] <= 0xDF   ? 2
                    : p[0] >= 0xE0 && p[0] <= 0xEF ? 3
                    : p[0] >= 0xF0 && p[0] <= 0xF4 ? 4
                                                   : 0;
    if (length == 0 || length > left) {
        return 0;
    }
    unsigned lowest = p[0] == 0xE0 ? 0xA0 : p[0] == 0xF0 ? 0x90 : 0x80;
    unsigned highest = p[0] == 0xED ? 0x9F : p[0] == 0xF4 ? 0x8F : 0xBF;
    if (p[1] < lowest || p[1] > highest) {
        return 0;
    }
    for (size_t i = 2; i < length; i++) {
        if (p[i] < 0x80 || p[i] > 0xBF) {
            return 0;
        }
    }
    return length;
}

int stk_utf8_control(const char *text, size_t length) {
    const unsigned char *p = (const unsigned char *)text;
    int code = length == 1   ? p[0]
               : length == 2 ? (p[0] & 0x1F) << 6 | (p[1] & 0x3F)
               : length == 3 ? (p[0] & 0x0F) << 12 | (p[1] & 0x3F) << 6 | (p[2] & 0x3F)
                             : -1; /* none of them is so long */
    bool control = (code >= 0 && code < 0x20) || (code >= 0x7F && code < 0xA0);
    bool turning = (code >= 0x202A && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069);
    return control || turning ? code : -1;
}

/* Levenshtein's distance with one row; both words are at most NEAREST_MAX long. */
static size_t edit_distance(const char *a, size_t n, const char *b, size_t m) {
    size_t row[NEAREST_MAX + 1];
    for (size_t j = 0; j <= m; j++) {
        row[j] = j;
    }
    for (size_t i = 1; i <= n; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            size_t above = row[j];
            bool same = tolower((unsigned char)a[i - 1]) == tolower((unsigned char)b[j - 1]);
            size_t best = diagonal + (same ? 0 : 1);
            best = above + 1 < best ? above + 1 : best;
            best = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
            row[j] = best;
            diagonal = above;
        }
    }
    return row[m];
}

const char *stk_str_nearest(const char *word, const char *const *candidates, size_t count) {
    const char *nearest = NULL;
    size_t n = strlen(word);
    size_t best = n / 3 + 1;
    for (size_t i = 0; i < count && n <= NEAREST_MAX; i++) {
        size_t m = strlen(candidates[i]);
        if (m > NEAREST_MAX) {
            continue;
        }
        size_t distance = edit_distance(word, n, candidates[i], m);
        if (distance > 0 && distance >= (n > m ? n : m)) {
            continue; /* no letter in common */
        }
        /* A word that continues what was typed is meant more often than a random neighbour. */
        if (n >= 3 && m > n && strncasecmp(word, candidates[i], n) == 0) {
            distance = distance > 1 ? 1 : distance;
        }
        if (distance < best || (distance == best && nearest == NULL)) {
            best = distance;
            nearest = candidates[i];
        }
    }
    return nearest;
}

/* Moves past blanks; true when nothing else is left. */
static bool only_blanks(const char *text) {
    while (isspace((unsigned char)*text)) {
        text++;
    }
    return *text == '\0';
}

bool stk_parse_int(const char *text, int64_t *value) {
    char *end;
    errno = 0;
    long long parsed = strtoll(text, &end, 10);
    if (end == text || errno != 0 || !only_blanks(end)) {
        return false;
    }
    *value = parsed;
    return true;
}

/*
 * A decimal number at the start of text; *end is after it. Accepts neither hexadecimal nor "inf"
 * nor "nan", which strtod alone would.
 */
static bool scan_double(const char *text, double *value, const char **end) {
    const char *p = text;
    while (isspace((unsigned char)*p)) {
        p++;
    }
    const char *digits = p + (*p == '-' || *p == '+');
    if (!isdigit((unsigned char)digits[0]) &&
        !(digits[0] == '.' && isdigit((unsigned char)digits[1]))) {
        return false;
    }
    if (digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X')) {
        return false;
    }
    char *stop;
    double parsed = strtod(p, &stop);
    if (stop == p || !isfinite(parsed)) {
        return false;
    }
    *value = parsed;
    *end = stop;
    return true;
}

bool stk_parse_double(const char *text, double *value) {
    const char *end;
    double parsed;
    if (!scan_double(text, &parsed, &end) || !only_blanks(end)) {
        return false;
    }
    *value = parsed;
    return true;
}

bool stk_parse_bytes(const char *text, uint64_t *bytes) {
    static const char units[] = "kmgt";
    const char *end;
    double number;
    if (!scan_double(text, &number, &end) || number < 0) {
        return false;
    }
    double factor = 1;
    while (isspace((unsigned char)*end)) {
        end++;
    }
    const char *unit = *end != '\0' ? strchr(units, tolower((unsigned char)*end)) : NULL;
    if (unit != NULL) {
        for (const char *u = units; u <= unit; u++) {
            factor *= 1024;
        }
        end++;
        end += *end == 'i' || *end == 'I' ? 1 : 0;
    }
    end += *end == 'b' || *end == 'B' ? 1 : 0;
    double product = number * factor;
    if (!only_blanks(end) || product >= 9.0e18) {
        return false;
    }
    *bytes = (uint64_t)product;
    return true;
}

/* "HH:MM:SS" or "MM:SS", the last field perhaps with a fraction. */
static bool parse_clock(const char *text, double *seconds) {
    double total = 0;
    int fields = 0;
    const char *p = text;
    for (;;) {
        double field;
        const char *end;
        if (!isdigit((unsigned char)*p) || !scan_double(p, &field, &end) || ++fields > 3) {
            return false;
        }
        if (fields > 1 && field >= 60) {
            return false;
        }
        total = total * 60 + field;
        if (*end != ':') {
            bool good = fields >= 2 && only_blanks(end);
            *seconds = good ? total : *seconds;
            return good;
        }
        if (p + strspn(p, "0123456789") != end) {
            return false;
        }
        p = end + 1;
    }
}

bool stk_parse_duration(const char *text, double *seconds) {
    static const struct {
        char letter;
        double seconds;
    } units[] = {{'d', 86400}, {'h', 3600}, {'m', 60}, {'s', 1}};
    const char *p = text;
    while (isspace((unsigned char)*p)) {
        p++;
    }
    if (strchr(p, ':') != NULL) {
        return parse_clock(p, seconds);
    }
    double total = 0;
    size_t smallest = 0; /* units must come in falling order: "2h30m", not "30m2h" */
    if (*p == '\0' || *p == '-') {
        return false;
    }
    if (stk_parse_double(p, seconds)) {
        return true;
    }
    while (!only_blanks(p)) {
        double number;
        const char *end;
        if (!scan_double(p, &number, &end) || number < 0) {
            return false;
        }
        size_t unit = smallest;
        while (unit < 4 && units[unit].letter != tolower((unsigned char)*end)) {
            unit++;
        }
        if (unit == 4) {
            return false;
        }
        total += number * units[unit].seconds;
        smallest = unit + 1;
        p = end + 1;
    }
    if (!isfinite(total)) {
        return false;
    }
    *seconds = total;
    return true;
}

bool stk_parse_bool(const char *text, bool *value) {
    static const char *const words[] = {"yes", "true", "on", "1", "no", "false", "off", "0"};
    while (isspace((unsigned char)*text)) {
        text++;
    }
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        size_t length = strlen(words[i]);
        if (strncasecmp(text, words[i], length) == 0 && only_blanks(text + length)) {
            *value = i < 4;
            return true;
        }
    }
    return false;
}

const char *stk_format_duration(char *buf, size_t size, double seconds) {
    /* NaN and negative numbers are shown as nothing left. */
    double bounded = seconds > 0 ? fmin(seconds, LONGEST_S) : 0;
    long long whole = (long long)(bounded + 0.5);
    if (whole >= 3600) {
        snprintf(buf, size, "%lld:%02lld:%02lld", whole / 3600, whole / 60 % 60, whole % 60);
    } else {
        snprintf(buf, size, "%lld:%02lld", whole / 60, whole % 60);
    }
    return buf;
}

stk_span stk_format_span(double seconds) {
    stk_span span;
    double s = seconds > 0 ? fmin(seconds, LONGEST_S) : 0;
    if (s < 99.5) {
        snprintf(span.text, sizeof span.text, "%.2g s", s);
    } else if (s < 599.5) {
        snprintf(span.text, sizeof span.text, "%.0f s", s);
    } else if (s < 2 * 3600) {
        snprintf(span.text, sizeof span.text, "%.0f min", s / 60);
    } else {
        snprintf(span.text, sizeof span.text, "%.1f h", s / 3600);
    }
    return span;
}

stk_amount stk_format_amount(double value, int digits, const char *unit) {
    stk_amount amount;
    char number[32];
    snprintf(number, sizeof number, "%.*g", digits, value);
    if (strchr(number, 'e') != NULL) {
        snprintf(number, sizeof number, "%.0f", value);
    }
    snprintf(amount.text, sizeof amount.text, "%s %s%s", number, unit,
             strcmp(number, "1") == 0 ? "" : "s");
    return amount;
}

const char *stk_format_count(char *buf, size_t size, uint64_t count) {
    char digits[24];
    int length = snprintf(digits, sizeof digits, "%llu", (unsigned long long)count);
    size_t at = 0;
    for (int i = 0; i < length && at + 2 < size; i++) {
        if (i > 0 && (length - i) % 3 == 0) {
            buf[at++] = ',';
        }
        buf[at++] = digits[i];
    }
    buf[at] = '\0';
    return buf;
}

const char *stk_format_bytes(char *buf, size_t size, uint64_t bytes) {
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB"};
    double value = (double)bytes;
    size_t unit = 0;
    while (value >= 999.5 && unit + 1 < sizeof units / sizeof *units) {
        value /= 1000;
        unit++;
    }
    snprintf(buf, size, value < 9.95 && unit > 0 ? "%.1f %s" : "%.0f %s", value, units[unit]);
    return buf;
}

double stk_as_shown(double value) {
    char text[32];
    snprintf(text, sizeof text, "%.6g", value);
    return isfinite(value) ? strtod(text, NULL) : value;
}
