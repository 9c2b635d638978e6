/* text.c - bytes of unknown origin to clean UTF-8. */
#include "report/text.h"

/* U+FFFD, the character that stands for what could not be read. */
#define REPLACEMENT "\xef\xbf\xbd"

/*
 * Bytes of the UTF-8 character at p, 0 when there is none: the forms of RFC 3629, so neither
 * overlong ones nor surrogates nor anything over U+10FFFF. The NUL at the end stops every form.
 */
static size_t character_length(const unsigned char *p) {
    if (p[0] < 0x80) {
        return 1;
    }
    size_t length = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
    if (p[0] < 0xc2 || p[0] > 0xf4) {
        return 0;
    }
    for (size_t i = 1; i < length; i++) {
        if ((p[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    bool overlong = (p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xf0 && p[1] < 0x90);
    bool surrogate = p[0] == 0xed && p[1] > 0x9f;
    bool beyond = p[0] == 0xf4 && p[1] > 0x8f;
    return overlong || surrogate || beyond ? 0 : length;
}

/* ASCII's control characters and the 32 that Unicode has behind U+007F. */
static bool is_control(const unsigned char *p) {
    return p[0] < 0x20 || p[0] == 0x7f || (p[0] == 0xc2 && p[1] < 0xa0);
}

static void append_clean(stk_str *out, const char *text, bool one_line) {
    for (const unsigned char *p = (const unsigned char *)text; *p != '\0';) {
        size_t length = character_length(p);
        if (length == 0) {
            stk_str_append(out, REPLACEMENT);
            p++;
        } else if (one_line && is_control(p)) {
            stk_str_append(out, " ");
            p += length;
        } else {
            stk_str_append_bytes(out, p, length);
            p += length;
        }
    }
}

void stk_report_append_utf8(stk_str *out, const char *text) {
    append_clean(out, text, false);
}

void stk_report_append_line(stk_str *out, const char *text) {
    append_clean(out, text, true);
}
