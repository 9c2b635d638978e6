/* asking.c - what is said while it is decided. */
#include "dataset/asking.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/mem.h"

void stk_ask_say(stk_ask *ask, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(ask->reason, sizeof ask->reason, format, arguments);
    va_end(arguments);
}

void stk_ask_doubt(stk_asking *a, const char *format, ...) {
    va_list arguments;
    if (a->doubts->count < STK_COUNT(a->doubts->texts)) {
        char *text = a->doubts->texts[a->doubts->count++];
        va_start(arguments, format);
        vsnprintf(text, sizeof a->doubts->texts[0], format, arguments);
        va_end(arguments);
    }
}
