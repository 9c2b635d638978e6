/*
 * ask_positive.c - which of two classes is the positive one, whose probability is written.
 *
 * Numbers, words and the description tell it. Where nothing does, it is a guess, and the caller
 * says so: an area under the curve of the wrong class is as far below one half as it could be
 * above.
 */
#include "dataset/ask.h"

#include <ctype.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

/* Texts that mean yes. */
static const char *const yes_texts[] = {"1", "1.0", "true", "yes", "y", "t", "positive", "pos"};

/* Words of classes that mean that there is nothing. */
static const char *const none_words[] = {"normal", "healthy", "background", "none",    "neg",
                                         "benign", "absent",  "negative",   "control", NULL};

/* What stands before a name to deny it. */
static const char *const denials[] = {"non", "not", "no", "without", "un", "in", "anti"};

static bool is_yes(const char *text) {
    bool yes = false;
    for (size_t i = 0; i < STK_COUNT(yes_texts); i++) {
        yes = yes || stk_str_equal_nocase(text, yes_texts[i]);
    }
    return yes;
}

/* "nofire", "not_fire" and "No Fire" deny "fire". */
static bool denies(const char *text, const char *other) {
    for (size_t i = 0; i < STK_COUNT(denials); i++) {
        size_t length = strlen(denials[i]);
        if (strncasecmp(text, denials[i], length) == 0) {
            const char *rest = text + length + strspn(text + length, " _-.");
            if (*rest != '\0' && stk_str_equal_nocase(rest, other)) {
                return true;
            }
        }
    }
    return false;
}

static bool is_none(const char *text, const char *other) {
    static const char *const no_words[] = {"no", "not", "without", "non", NULL};
    char word[STK_WORD_MOST];
    const char *at = text;
    bool begins_so = false;
    if (stk_next_word(&at, word)) {
        for (size_t i = 0; no_words[i] != NULL; i++) {
            begins_so = begins_so || stk_str_equal(word, no_words[i]);
        }
    }
    return begins_so || denies(text, other) || stk_has_word_of(text, none_words);
}

const char *stk_ask_positive(const stk_dataset_options *options, const stk_hints *hints,
                             const char *answer, const char *first, const char *second,
                             bool *guessed) {
    double x;
    double y;
    const char *named = options->positive;
    *guessed = false;
    if (named != NULL && stk_str_equal_nocase(named, first) && !stk_str_equal(named, second)) {
        return first;
    }
    if (named != NULL && stk_str_equal_nocase(named, second)) {
        return second;
    }
    if (stk_cell_number(first, &x) && stk_cell_number(second, &y)) {
        return x > y ? first : second;
    }
    if (is_yes(first) != is_yes(second)) {
        return is_yes(first) ? first : second;
    }
    if (answer != NULL && stk_str_equal_nocase(answer, first)) {
        return first;
    }
    if (answer != NULL && stk_str_equal_nocase(answer, second)) {
        return second;
    }
    int told = stk_hints_positive(hints, first, second);
    if (told >= 0) {
        return told == 0 ? first : second;
    }
    if (is_none(first, second) != is_none(second, first)) {
        return is_none(first, second) ? second : first;
    }
    *guessed = true;
    return strcmp(first, second) > 0 ? first : second;
}
