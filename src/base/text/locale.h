/*
 * locale.h - numbers with a decimal point, whatever the host program's locale says.
 *
 * A public call that reads or writes numbers as text enters the C locale on its own thread and
 * leaves it before it returns.
 */
#ifndef STK_BASE_TEXT_LOCALE_H
#define STK_BASE_TEXT_LOCALE_H

#include <locale.h>

typedef struct stk_locale {
    locale_t plain;  /* owned; (locale_t)0 when it could not be had: nothing was changed */
    locale_t before; /* the thread's own */
} stk_locale;

stk_locale stk_locale_enter(void);
void stk_locale_leave(stk_locale locale);

#endif
