/* text.c - bytes of unknown origin to clean UTF-8. */
#include "report/text.h"

#include <string.h>

/* U+FFFD, the character that stands for what could not be read. */
#define REPLACEMENT "\xef\xbf\xbd"

/* ASCII's control characters and the 32 that Unicode has behind U+007F. */
static bool is_control(const char *text) {
    const unsigned char *p = (const unsigned char *)text;
    return p[0] < 0x20 || p[0] == 0x7f || (p[0] == 0xc2 && p[1] < 0xa0);
}

static void append_clean(stk_str *out, const char *text, bool one_line) {
    const char *end = text + strlen(text);
    while (text < end) {
        size_t length = stk_utf8_length(text, (size_t)(end - text));
        if (length == 0) {
            stk_str_append(out, REPLACEMENT);
            length = 1;
        } else if (one_line && is_control(text)) {
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
