/*
 * metric_phrases.h - only for metric_words.c: the phrases for metrics, and how words match.
 *
 * Threads: safe, nothing is stored.
 */
#ifndef STK_METRICS_METRIC_PHRASES_H
#define STK_METRICS_METRIC_PHRASES_H

#include "metrics/metric.h"

/* What is said of a phrase, as bits. */
enum {
    STK_PHRASE_VAGUE = 1,  /* counts only where the sentence or the section speaks of evaluating */
    STK_PHRASE_NEAR = 2,   /* Stoker does not compute it; the metric is the nearest that exists */
    STK_PHRASE_OPEN = 4,   /* rates a ranked list as well as columns: the sample says which */
    STK_PHRASE_LISTED = 8, /* counts only for a ranking, or with the length of its lists */
    STK_PHRASE_UNLISTED = 16, /* counts only without such a length */
};

typedef struct stk_metric_phrase {
    const char
        *words; /* one blank between two; capital letters match themselves, small ones both */
    stk_metric metric; /* STK_METRIC_AUTO: an F score whose average the task or the text says */
    unsigned flags;
} stk_metric_phrase;

/* Larger lengths of lists mean something else. */
#define STK_PHRASE_MOST_K 1000

/* The longest phrase that begins at a word and rates the task; its end in *end. NULL: none.
 * `guesses` is the length of a list that the text tells elsewhere, or 0. */
const stk_metric_phrase *stk_phrase_find(const char *at, stk_task task, int guesses,
                                         const char **end);

/* Whether a phrase of exactly these words stands for this metric, not just near it. */
bool stk_phrase_is_computed(const char *text, stk_metric metric);

/* The number of MAP@5, or of `mean average precision at 5`, right after the phrase; 0: none. */
int stk_phrase_length(const char *end);

/* The end of these words, which begin at `at`; NULL: they do not. Words may be in the plural. */
const char *stk_phrase_match(const char *at, const char *words);

/* The next word, or an @; NULL: the paragraph ends, or it is too far. */
const char *stk_phrase_next_word(const char *at);

bool stk_phrase_is_letter(char c);
bool stk_phrase_begins_word(const char *text, const char *at);

#endif
