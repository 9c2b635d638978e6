/*
 * set_words.c - the words that name a training, validation or test set, in folders, tables and
 * cells.
 */
#include "dataset/listing.h"

#include "base/mem.h"
#include "base/str.h"

static const struct {
    const char *word;
    stk_set_kind kind;
    bool weak;
} words[] = {
    {"train", STK_SET_TRAIN, false},    {"trainval", STK_SET_TRAIN, false},
    {"trainset", STK_SET_TRAIN, false}, {"training", STK_SET_TRAIN, true},
    {"val", STK_SET_VAL, false},        {"validation", STK_SET_VAL, false},
    {"valset", STK_SET_VAL, false},     {"valid", STK_SET_VAL, true},
    {"dev", STK_SET_VAL, true},         {"test", STK_SET_TEST, false},
    {"testset", STK_SET_TEST, false},   {"testing", STK_SET_TEST, true},
};

stk_set_kind stk_set_word(const char *word, bool *weak) {
    *weak = false;
    for (size_t i = 0; i < STK_COUNT(words); i++) {
        if (stk_str_equal_nocase(words[i].word, word)) {
            *weak = words[i].weak;
            return words[i].kind;
        }
    }
    return STK_SET_NONE;
}

stk_set_kind stk_set_of_table(const char *path) {
    bool named[STK_SET_KINDS] = {false};
    bool weak;
    char word[STK_WORD_MOST];
    for (const char *at = path; stk_next_word(&at, word);) {
        named[stk_set_word(word, &weak)] = true;
    }
    return named[STK_SET_TEST]    ? (named[STK_SET_TRAIN] ? STK_SET_NONE : STK_SET_TEST)
           : named[STK_SET_TRAIN] ? STK_SET_TRAIN
           : named[STK_SET_VAL]   ? STK_SET_VAL
                                  : STK_SET_NONE;
}
