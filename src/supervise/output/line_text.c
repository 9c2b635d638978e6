/* line_text.c - cleans output lines and reads the numbers in them. */
#include "supervise/output/line_text.h"

#include <math.h>
#include <string.h>

#include "base/str.h"

/* Longest number; what is longer is an identifier. */
#define NUMBER_MOST 40

/* One byte of a clean line. */
static char clean_letter(unsigned char c) {
    if (c >= 'A' && c <= 'Z') {
        return (char)(c - 'A' + 'a');
    }
    return c >= 0x80 ? '~' : c < ' ' || c == 0x7F ? ' ' : (char)c;
}

/* Length of the terminal escape sequence at `text`. */
static size_t escape_length(const char *text, size_t left) {
    size_t i = 2;
    if (left > 1 && text[1] == '[') {
        while (i < left && (text[i] < 0x40 || text[i] > 0x7E)) {
            i++;
        }
        i++;
    } else if (left > 1 && text[1] == ']') { /* a title: it ends with a bell, or ESC \ */
        while (i < left && text[i] != 0x07 && text[i] != 0x1B) {
            i++;
        }
        i += i < left && text[i] == 0x1B ? 2 : 1;
    } else if (left > 1 && (text[1] == '(' || text[1] == ')')) { /* selects a character set */
        i = 3;
    }
    return i < left ? i : left;
}

void stk_text_clean(const char *text, size_t length, char *out) {
    size_t made = 0;
    for (size_t i = 0; i < length;) {
        if (text[i] == 0x1B) {
            i += escape_length(text + i, length - i);
        } else {
            out[made++] = clean_letter((unsigned char)text[i++]);
        }
    }
    while (made > 0 && out[made - 1] == ' ') {
        made--;
    }
    out[made] = '\0';
}

/* Reads digits with commas between thousands; returns their end, `at` if there are none. */
static const char *read_digits(const char *at, double *value) {
    const char *from = at;
    bool grouped = false;
    for (; at - from < NUMBER_MOST; at++) {
        if (stk_is_digit(*at)) {
            *value = *value * 10 + (*at - '0');
            continue;
        }
        bool group = *at == ',' && (grouped ? at[-4] == ',' : at > from && at - from <= 3) &&
                     stk_is_digit(at[1]) && stk_is_digit(at[2]) && stk_is_digit(at[3]) &&
                     !stk_is_digit(at[4]);
        if (!group) {
            break;
        }
        grouped = true;
    }
    return at;
}

/* Adds the exponent after a number; returns its end, `at` if there is none. */
static const char *read_exponent(const char *at, int *exponent) {
    const char *p = at;
    if (*p != 'e') {
        return at;
    }
    p++;
    int sign = *p == '-' ? -1 : 1;
    p += *p == '-' || *p == '+' ? 1 : 0;
    if (!stk_is_digit(*p)) {
        return at;
    }
    int value = 0;
    for (int i = 0; i < 4 && stk_is_digit(*p); i++, p++) {
        value = value * 10 + (*p - '0');
    }
    *exponent += sign * value;
    return p;
}

/* value x 10^exponent, from a table where the exponent is small. */
static double scaled(double value, int exponent) {
    static const double powers[] = {1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9};
    int size = exponent < 0 ? -exponent : exponent;
    double power = size < (int)(sizeof powers / sizeof *powers) ? powers[size] : pow(10, size);
    return exponent < 0 ? value / power : value * power;
}

/* "nan", "inf" and "infinity". */
static bool read_word(const char *at, double sign, stk_line_number *figure) {
    static const char *const words[] = {"nan", "inf", "infinity"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const char *end = at;
        for (const char *p = words[i]; *p != '\0' && *end == *p; p++) {
            end++;
        }
        if ((size_t)(end - at) == strlen(words[i]) && !stk_is_letter(*end)) {
            *figure = (stk_line_number){
                .value = *at == 'n' ? NAN : sign * INFINITY, .point = true, .end = end};
            return true;
        }
    }
    return false;
}

bool stk_line_number_read(const char *at, stk_line_number *figure) {
    *figure = (stk_line_number){0};
    double sign = *at == '-' ? -1 : 1;
    at += *at == '-' || *at == '+' ? 1 : 0;
    if (*at == 'n' || *at == 'i') {
        return read_word(at, sign, figure);
    }
    double value = 0;
    const char *end = read_digits(at, &value);
    bool digits = end > at;
    int exponent = 0;
    if (*end == '.' && stk_is_digit(end[1])) {
        const char *point = end + 1;
        for (end = point; end - point < NUMBER_MOST && stk_is_digit(*end); end++) {
            value = value * 10 + (*end - '0');
        }
        exponent = (int)(point - end);
        figure->point = digits = true;
    }
    if (!digits || stk_is_digit(*end)) {
        return false;
    }
    const char *power = read_exponent(end, &exponent);
    figure->point = figure->point || power > end;
    figure->end = power;
    figure->value = sign * scaled(value, exponent);
    return true;
}

void stk_line_number_read_unit(stk_line_number *figure) {
    static const char prefixes[] = "kmgt";
    const char *at = stk_skip_blanks(figure->end);
    const char *prefix = *at != '\0' ? strchr(prefixes, *at) : NULL;
    double unit = 1;
    if (prefix != NULL) {
        unit = ldexp(1, 10 * (int)(prefix - prefixes + 1));
        at++;
        at += at[0] == 'i' && at[1] == 'b' ? 1 : 0;
    } else if (*at != 'b') {
        return;
    }
    at += *at == 'b' ? 1 : 0;
    if (!stk_is_letter(*at)) {
        figure->unit = unit;
        figure->end = at;
    }
}

void stk_text_plain(const char *text, size_t length, char *plain, size_t room) {
    size_t made = 0;
    for (size_t i = 0; i < length;) {
        if (text[i] == 0x1B) {
            i += escape_length(text + i, length - i);
            continue;
        }
        size_t bytes = stk_utf8_length(text + i, length - i);
        unsigned char c = bytes == 0 ? '?' : (unsigned char)text[i];
        bool blank = c <= ' ' || c == 0x7F;
        bytes = bytes == 0 ? 1 : bytes;
        if (made + bytes >= room) {
            break;
        }
        if (bytes > 1) {
            memcpy(plain + made, text + i, bytes);
            made += bytes;
        } else if (!blank || made > 0) {
            plain[made++] = (char)(blank ? ' ' : c);
        }
        i += bytes;
    }
    while (made > 0 && plain[made - 1] == ' ') {
        made--;
    }
    plain[made] = '\0';
}
