/* early_words.h - what is said before a run's first line, kept until that was told. */
#ifndef STK_JOB_EARLY_WORDS_H
#define STK_JOB_EARLY_WORDS_H

#include "base/str.h"
#include "events/events.h"

typedef struct stk_early_words {
    stk_observer observer; /* for whoever speaks: warnings and decisions are kept */
    stk_str text; /* per word: 'w' or 'd', a text, NUL; a decision's reason follows with its NUL */
} stk_early_words;

/* The struct stays where it is: its observer refers to it. */
void stk_early_words_open(stk_early_words *words);
void stk_early_words_free(stk_early_words *words);

/* Says all of it, in its order. */
void stk_early_words_tell(const stk_early_words *words, const stk_events *events);

/* Says the warnings alone, where nothing comes of the run: they may tell why. */
void stk_early_words_warn(const stk_early_words *words, const stk_events *events);

#endif
