/* locale.c - the thread's locale, changed for the length of a call. */
#include "base/text/locale.h"

stk_locale stk_locale_enter(void) {
    stk_locale locale = {.plain = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0)};
    if (locale.plain != (locale_t)0) {
        locale.before = uselocale(locale.plain);
    }
    return locale;
}

void stk_locale_leave(stk_locale locale) {
    if (locale.plain != (locale_t)0) {
        uselocale(locale.before);
        freelocale(locale.plain);
    }
}
