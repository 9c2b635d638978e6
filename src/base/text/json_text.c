/* json_text.c - escapes and numbers of JSON, as RFC 8259 has them. */
#include "base/text/json_text.h"

#include <stdbool.h>
#include <string.h>

typedef struct place {
    const char *text;
    size_t size;
    size_t at;
} place;

static int peek(const place *p) {
    return p->at < p->size ? (unsigned char)p->text[p->at] : -1;
}

static bool read_hex4(place *p, unsigned *value) {
    *value = 0;
    for (int i = 0; i < 4; i++) {
        int c = peek(p);
        int digit = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : -1;
        if (digit < 0) {
            return false;
        }
        *value = *value * 16 + (unsigned)digit;
        p->at++;
    }
    return true;
}

static void put_utf8(char *out, size_t *used, unsigned code) {
    if (code < 0x80) {
        out[(*used)++] = (char)code;
    } else if (code < 0x800) {
        out[(*used)++] = (char)(0xC0 | code >> 6);
        out[(*used)++] = (char)(0x80 | (code & 0x3F));
    } else if (code < 0x10000) {
        out[(*used)++] = (char)(0xE0 | code >> 12);
        out[(*used)++] = (char)(0x80 | (code >> 6 & 0x3F));
        out[(*used)++] = (char)(0x80 | (code & 0x3F));
    } else {
        out[(*used)++] = (char)(0xF0 | code >> 18);
        out[(*used)++] = (char)(0x80 | (code >> 12 & 0x3F));
        out[(*used)++] = (char)(0x80 | (code >> 6 & 0x3F));
        out[(*used)++] = (char)(0x80 | (code & 0x3F));
    }
}

/*
 * After \u. Surrogates must come in pairs, unless they are \udc80 to \udcff and stand for a byte
 * that is not UTF-8. A NUL would cut the string short.
 */
static const char *read_code(place *p, char *out, size_t *used) {
    unsigned code;
    if (!read_hex4(p, &code)) {
        return "four hexadecimal digits must follow \\u";
    }
    if (code >= 0xD800 && code < 0xDC00) {
        unsigned low;
        if (peek(p) != '\\' || p->at + 1 >= p->size || p->text[p->at + 1] != 'u') {
            return "half of a surrogate pair";
        }
        p->at += 2;
        if (!read_hex4(p, &low) || low < 0xDC00 || low > 0xDFFF) {
            return "half of a surrogate pair";
        }
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    } else if (code >= 0xDC80 && code <= 0xDCFF) {
        out[(*used)++] = (char)(code - 0xDC00);
        return NULL;
    } else if (code >= 0xDC00 && code <= 0xDFFF) {
        return "half of a surrogate pair";
    }
    if (code == 0) {
        return "a string with \\u0000";
    }
    put_utf8(out, used, code);
    return NULL;
}

const char *stk_json_unescape(const char *text, size_t size, size_t *at, char *out, size_t *used) {
    static const char plain[] = "\"\\/bfnrt";
    static const char meant[] = "\"\\/\b\f\n\r\t";
    place p = {.text = text, .size = size, .at = *at};
    const char *wrong = NULL;
    int c = peek(&p);
    p.at++;
    if (c == 'u') {
        wrong = read_code(&p, out, used);
    } else {
        const char *found = c > 0 ? strchr(plain, c) : NULL;
        wrong = found == NULL ? "an unknown escape" : NULL;
        if (found != NULL) {
            out[(*used)++] = meant[found - plain];
        }
    }
    *at = p.at;
    return wrong;
}

static bool skip_digits(place *p) {
    size_t before = p->at;
    while (peek(p) >= '0' && peek(p) <= '9') {
        p->at++;
    }
    return p->at > before;
}

const char *stk_json_pass_number(const char *text, size_t size, size_t *at) {
    place p = {.text = text, .size = size, .at = *at};
    const char *wrong = NULL;
    p.at += peek(&p) == '-' ? 1 : 0;
    bool zero = peek(&p) == '0';
    size_t digits = p.at;
    if (!skip_digits(&p) || (zero && p.at > digits + 1)) {
        wrong = "not a number";
    }
    if (wrong == NULL && peek(&p) == '.') {
        p.at++;
        wrong = skip_digits(&p) ? NULL : "digits must follow the point";
    }
    if (wrong == NULL && (peek(&p) == 'e' || peek(&p) == 'E')) {
        p.at++;
        p.at += peek(&p) == '+' || peek(&p) == '-' ? 1 : 0;
        wrong = skip_digits(&p) ? NULL : "digits must follow the exponent's e";
    }
    *at = p.at;
    return wrong;
}
