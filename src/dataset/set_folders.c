/*
 * set_folders.c - finds the folders of the training, validation and test set by their names.
 *
 * The usual names always count. Others are read word by word: "train_val2019" is a training set and
 * "Test Images" a test set, while "test station" is neither. An unclear name ("test-2", "Training")
 * counts only beside a training set; elsewhere it may be the name of a class.
 */
#include "dataset/listing.h"

#include <ctype.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

static const char *const usual_names[STK_SET_KINDS][4] = {
    [STK_SET_TRAIN] = {"train", NULL},
    [STK_SET_VAL] = {"val", "valid", "validation", NULL},
    [STK_SET_TEST] = {"test", "test_images", NULL},
};

static const char *const kind_words[STK_SET_KINDS] = {
    [STK_SET_TRAIN] = "training set",
    [STK_SET_VAL] = "validation set",
    [STK_SET_TEST] = "test set",
};

/* How clearly a name says what a folder is for. */
typedef enum clarity { UNCLEAR, CLEAR, USUAL } clarity;

/* Words that may stand beside the name of a set. */
static const char *const companions[] = {"set",    "images",   "image",   "imgs", "img",  "data",
                                         "photos", "pictures", "dataset", "jpg",  "jpeg", "png"};

static bool is_year(const char *word) {
    return strlen(word) == 4 && (strncmp(word, "19", 2) == 0 || strncmp(word, "20", 2) == 0);
}

static bool is_companion(const char *word) {
    for (size_t i = 0; i < STK_COUNT(companions); i++) {
        if (stk_str_equal(word, companions[i])) {
            return true;
        }
    }
    return false;
}

/* The set that a name means, word by word. */
static stk_set_kind read_name(const char *name, clarity *clear) {
    bool named[STK_SET_KINDS] = {false};
    bool weak = false;
    bool helped = false; /* by a year or a companion */
    bool numbered = false;
    char word[STK_WORD_MOST];
    for (const char *at = name; stk_next_word(&at, word);) {
        bool its_weak;
        stk_set_kind its_kind = stk_set_word(word, &its_weak);
        if (its_kind != STK_SET_NONE) {
            named[its_kind] = true;
            weak = weak || its_weak;
        } else if (isdigit((unsigned char)word[0])) {
            numbered = true;
            helped = helped || is_year(word);
        } else if (is_companion(word)) {
            helped = true;
        } else {
            return STK_SET_NONE;
        }
    }
    *clear = !weak && (helped || !numbered) ? CLEAR : UNCLEAR;
    /* "train_val" trains on both; other pairs mean nothing. */
    stk_set_kind kind = named[STK_SET_TRAIN]  ? STK_SET_TRAIN
                        : named[STK_SET_VAL]  ? STK_SET_VAL
                        : named[STK_SET_TEST] ? STK_SET_TEST
                                              : STK_SET_NONE;
    return named[STK_SET_TEST] && kind != STK_SET_TEST ? STK_SET_NONE : kind;
}

static stk_set_kind kind_of(const char *name, clarity *clear) {
    for (int kind = STK_SET_TRAIN; kind < STK_SET_KINDS; kind++) {
        for (const char *const *usual = usual_names[kind]; *usual != NULL; usual++) {
            if (stk_str_equal_nocase(name, *usual)) {
                *clear = USUAL;
                return (stk_set_kind)kind;
            }
        }
    }
    return read_name(name, clear);
}

/* Looks for the folder of a set without a usual name; unclear names count with `unclear`. */
static void find_other(stk_listing *listing, stk_set_kind kind, bool unclear) {
    stk_set_folder *found = &listing->sets[kind];
    found->candidates = (stk_first_names){0};
    for (size_t i = 0; i < listing->top.count; i++) {
        const stk_dir_entry *entry = &listing->top.entries[i];
        clarity clear = USUAL;
        if (entry->is_dir && kind_of(entry->name, &clear) == kind &&
            (unclear || clear != UNCLEAR)) {
            stk_first_names_add(&found->candidates, entry->name);
        }
    }
    found->name = found->candidates.count == 1 ? found->candidates.first[0] : NULL;
}

/* Whether every folder is called like a set, however unclearly. */
static bool all_are_sets(const stk_listing *listing) {
    for (size_t i = 0; i < listing->top.count; i++) {
        const stk_dir_entry *entry = &listing->top.entries[i];
        clarity clear;
        if (entry->is_dir && kind_of(entry->name, &clear) == STK_SET_NONE) {
            return false;
        }
    }
    return true;
}

void stk_listing_find_sets(stk_listing *listing) {
    stk_set_folder *train = &listing->sets[STK_SET_TRAIN];
    bool divided = false; /* there is a training set, or several that could be it */
    for (int kind = STK_SET_TRAIN; kind < STK_SET_KINDS; kind++) {
        stk_set_folder *found = &listing->sets[kind];
        found->name = stk_listing_entry(listing, usual_names[kind], true);
        found->usual = found->name != NULL;
        if (kind == STK_SET_TRAIN && !found->usual) {
            find_other(listing, STK_SET_TRAIN, false);
            if (train->candidates.count == 0 && all_are_sets(listing)) {
                find_other(listing, STK_SET_TRAIN, true);
            }
        } else if (!found->usual) {
            find_other(listing, (stk_set_kind)kind, divided);
        }
        divided = divided || found->usual || found->candidates.count > 0;
    }
}

const char *stk_listing_set(stk_listing *listing, stk_set_kind kind) {
    stk_set_folder *found = &listing->sets[kind];
    char names[300];
    if (found->told || found->usual) {
        return found->name;
    }
    found->told = true;
    if (found->name != NULL) {
        char *what = stk_str_format("%s from %s", kind_words[kind], found->name);
        stk_events_decision(listing->events, what != NULL ? what : found->name,
                            "the name of the folder says so");
        stk_mem_free(what);
    } else if (found->candidates.count > 1 && kind != STK_SET_TRAIN) {
        stk_events_warning(listing->events,
                           "%s has %zu folders that could be the %s (%s): none of them is used; "
                           "rename the one that is meant to %s",
                           listing->dataset->root, found->candidates.count, kind_words[kind],
                           stk_first_names_text(&found->candidates, names, sizeof names),
                           usual_names[kind][0]);
    }
    return found->name;
}

bool stk_listing_is_set(const stk_listing *listing, const char *name) {
    const stk_set_folder *train = &listing->sets[STK_SET_TRAIN];
    clarity clear = UNCLEAR;
    stk_set_kind kind = kind_of(name, &clear);
    return kind != STK_SET_NONE &&
           (clear != UNCLEAR || train->name != NULL || train->candidates.count > 0);
}

stk_set_kind stk_set_of(const char *name) {
    clarity clear = UNCLEAR;
    stk_set_kind kind = kind_of(name, &clear);
    return clear != UNCLEAR ? kind : STK_SET_NONE;
}

stk_set_kind stk_listing_set_at_top(const stk_listing *listing, const char *name) {
    for (int kind = STK_SET_TRAIN; kind < STK_SET_KINDS; kind++) {
        const char *found = listing->sets[kind].name;
        if (found != NULL && stk_str_equal(found, name)) {
            return (stk_set_kind)kind;
        }
    }
    return stk_set_of(name);
}
