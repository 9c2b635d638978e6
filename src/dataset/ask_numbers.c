/*
 * ask_numbers.c - whether the numbers of a label column are amounts, steps of a scale or names of
 * classes.
 *
 * The metric of the description decides; then what the numbers are like; then the name of their
 * column. What stays in doubt is told, with the option that takes it otherwise.
 */
#include "dataset/asking.h"

#include <math.h>

#include "base/str.h"

/* More different numbers than people give to classes by hand. */
#define MANY_NUMBERS 20
#define MANY_WHOLE 30

/* More than this, and the name of their column should say that they are classes. */
#define SOME_WHOLE 10

/* Rows per number: below the first the numbers are measured, below the second perhaps. */
#define FEW_PER_NUMBER 3
#define SOME_PER_NUMBER 20

/* Steps of a scale, at most. */
#define MOST_STEPS 12

/* Names of columns whose numbers are names of classes. */
static const char *const identities[] = {"id",      "ids",      "idx",        "index",    "class",
                                         "classes", "category", "categories", "breed",    "species",
                                         "type",    "code",     "kind",       "name",     "family",
                                         "genus",   "digit",    "group",      "identity", NULL};

/* Names of columns whose numbers are steps of a scale. */
static const char *const steps[] = {"grade", "level", "stage",  "severity", "diagnosis", "rating",
                                    "score", "stars", "degree", "quality",  NULL};

typedef enum suspicion { NONE, DOUBT, CERTAINTY } suspicion;

/* Whether numbers measure something rather than name a class. */
static suspicion suspect_numbers(const stk_asking *a) {
    const stk_column_profile *p = &a->labels;
    bool few_each = p->rows < FEW_PER_NUMBER * p->count;
    bool many = p->count > MANY_NUMBERS || (few_each && p->count > 2);
    if (p->fractions) {
        return many ? CERTAINTY : NONE;
    }
    if (stk_has_word_of(a->name, identities)) {
        return NONE;
    }
    bool digits = stk_str_equal_nocase(a->name, "number") && p->count <= 10;
    if (stk_table_is_measure_name(a->name) && !digits) {
        return many ? CERTAINTY : p->count > 2 ? DOUBT : NONE;
    }
    if (p->count <= MANY_WHOLE) {
        return p->count > SOME_WHOLE && !stk_table_has_label_word(a->name) ? DOUBT : NONE;
    }
    if (!stk_table_is_label_name(a->name)) {
        return DOUBT;
    }
    /* Numbers of classes leave no gaps, or have many pictures each. */
    bool gaps = p->most - p->least + 1 > 1.2 * (double)p->count;
    return gaps && p->rows < SOME_PER_NUMBER * p->count ? DOUBT : NONE;
}

/* Whether the column's numbers are amounts. Where it is in doubt, a warning says what was taken. */
bool stk_ask_is_regression(stk_asking *a) {
    const stk_column_profile *p = &a->labels;
    const stk_hints *h = a->hints;
    if (!stk_column_is_numeric(p) || p->count < 3) {
        return false;
    }
    const char *kind = p->fractions ? "numbers" : "whole numbers";
    if (h->numbers) {
        stk_ask_say(a->ask, "%s is rated by %s", a->name, h->phrase);
        return true;
    }
    suspicion suspected = suspect_numbers(a);
    if (suspected == CERTAINTY) {
        stk_ask_say(a->ask, "%s has %zu different %s from %s to %s", a->name, p->count, kind,
                    p->least_text, p->most_text);
        return true;
    }
    if (h->labels || h->steps || h->ranked > 0 || stk_has_word_of(a->name, identities)) {
        return false;
    }
    if (a->has_sample && a->sample.fractions > 0 && a->asked == 1) {
        stk_ask_say(a->ask, "the sample has %s for the whole numbers of %s", a->sample.first,
                    a->name);
        return true;
    }
    if (suspected == NONE) {
        return false;
    }
    bool amount = p->count > MANY_NUMBERS &&
                  (!stk_table_is_label_name(a->name) || p->rows < STK_HARDLY_REPEATED * p->count);
    stk_ask_doubt(a,
                  "column '%s' of %s holds %zu different %s from %s to %s in %zu rows: %s; "
                  "--task %s takes them %s",
                  a->name, a->tables->file, p->count, kind, p->least_text, p->most_text, p->rows,
                  amount ? "they are taken as amounts" : "each is taken as a class of its own",
                  amount ? "single" : "regression", amount ? "as classes" : "as amounts");
    stk_ask_say(a->ask, "%s looks measured", a->name);
    return amount;
}

/* Whole numbers that are steps of a scale. */
bool stk_ask_is_ordinal(stk_asking *a) {
    const stk_column_profile *p = &a->labels;
    bool scale = stk_column_is_numeric(p) && !p->fractions && p->count > 2 &&
                 p->count <= MOST_STEPS && p->most - p->least + 1 == (double)p->count;
    if (scale && a->hints->steps) {
        stk_ask_say(a->ask, "%s has the steps %s to %s, rated by %s", a->name, p->least_text,
                    p->most_text, a->hints->phrase);
        return true;
    }
    bool other = a->hints->labels || a->hints->probabilities || a->hints->ranked > 0 ||
                 (a->has_sample && a->asked > 1);
    if (scale && !other && stk_has_word_of(a->name, steps)) {
        stk_ask_say(a->ask, "%s has the steps %s to %s", a->name, p->least_text, p->most_text);
        return true;
    }
    return false;
}
