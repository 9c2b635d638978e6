/*
 * labels.c - tables whose labels are no classes.
 *
 * Stoker trains one class per picture. A table of ages, prices or several labels per picture could
 * be read as classes, and the run would succeed and be worth nothing. So the cells are checked.
 * Labels that are clearly no classes are refused, unless --label-column names the column; doubtful
 * labels cause a warning.
 */
#include "dataset/listing.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"

/* More different numbers than people give to classes by hand. */
#define MANY_NUMBERS 20
#define MANY_WHOLE 30

/* Rows per number: below the first the numbers are measured, below the second perhaps. */
#define FEW_PER_NUMBER 3
#define SOME_PER_NUMBER 20

/* Characters between labels of one cell. */
static const char dividers[] = " \t,;|";

/* Names of columns that measure something, word by word. */
static const char *const measures[] = {
    "age",   "ages",     "years",   "year",        "months",   "days",    "hours",   "minutes",
    "price", "prices",   "cost",    "salary",      "income",   "amount",  "count",   "counts",
    "score", "scores",   "rating",  "height",      "weight",   "width",   "length",  "size",
    "area",  "volume",   "depth",   "temperature", "distance", "speed",   "percent", "percentage",
    "ratio", "quantity", "seconds", "duration",    "bmi",      "boneage", NULL};

/* Names of columns whose numbers are names of classes. */
static const char *const identities[] = {"id",      "ids",      "idx",        "index",    "class",
                                         "classes", "category", "categories", "breed",    "species",
                                         "type",    "code",     "kind",       "name",     "family",
                                         "genus",   "digit",    "group",      "identity", NULL};

/* The different texts of the label column. */
typedef struct label_text {
    const char *text; /* the table's */
    size_t rows;      /* how many have it */
} label_text;

typedef struct texts {
    stk_map indices;   /* from text to index in `items` */
    label_text *items; /* owned */
    size_t count;
    size_t capacity;
} texts;

/* The label column of a table. */
typedef struct column {
    const stk_listing *listing;
    const stk_csv *csv;
    const char *where; /* the table's path, for errors */
    const char *file;  /* its name, for lines */
    const char *name;  /* of the column */
    texts labels;
} column;

static void free_texts(texts *t) {
    stk_map_free(&t->indices);
    stk_mem_free(t->items);
    memset(t, 0, sizeof *t);
}

static stk_status gather(column *c, size_t label, stk_error *err) {
    texts *t = &c->labels;
    for (size_t row = 0; row < c->csv->rows; row++) {
        const char *text = stk_csv_cell(c->csv, row, label);
        size_t place = t->count;
        bool added;
        if (stk_map_find(&t->indices, text, &place) && place < t->count) {
            t->items[place].rows++;
            continue;
        }
        if (!STK_RESERVE(t->items, t->capacity, t->count + 1) ||
            !stk_map_add(&t->indices, text, t->count, &added)) {
            return STK_FAIL_MEMORY(err, c->where);
        }
        t->items[t->count++] = (label_text){text, 1};
    }
    return STK_OK;
}

/* ---- numbers ---- */

typedef struct numbers {
    double least;
    double most;
    const char *least_text;
    const char *most_text;
    bool fractions;
} numbers;

/* Digits, a sign, a point, an exponent: "nan" and "0x1f" are names. */
static bool read_number(const char *text, double *value) {
    return text[strspn(text, "+-.0123456789eE")] == '\0' && stk_parse_double(text, value) &&
           isfinite(*value);
}

/* False when some label is no number. */
static bool all_numbers(const texts *t, numbers *n) {
    *n = (numbers){.least = INFINITY, .most = -INFINITY};
    for (size_t i = 0; i < t->count; i++) {
        double value;
        if (!read_number(t->items[i].text, &value)) {
            return false;
        }
        n->fractions = n->fractions || value != floor(value);
        if (value < n->least) {
            n->least = value;
            n->least_text = t->items[i].text;
        }
        if (value > n->most) {
            n->most = value;
            n->most_text = t->items[i].text;
        }
    }
    return true;
}

static bool has_word_of(const char *name, const char *const *words) {
    char word[STK_WORD_MOST];
    for (const char *at = name; stk_next_word(&at, word);) {
        for (const char *const *known = words; *known != NULL; known++) {
            if (stk_str_equal(word, *known)) {
                return true;
            }
        }
    }
    return false;
}

typedef enum suspicion { NONE, DOUBT, CERTAINTY } suspicion;

/* Whether numbers measure something rather than name a class. */
static suspicion suspect_numbers(const column *c, const numbers *n) {
    size_t count = c->labels.count;
    size_t rows = c->csv->rows;
    bool few_each = rows < FEW_PER_NUMBER * count;
    bool many = count > MANY_NUMBERS || (few_each && count > 2);
    if (n->fractions) {
        return many ? CERTAINTY : NONE;
    }
    if (has_word_of(c->name, identities)) {
        return NONE;
    }
    if (has_word_of(c->name, measures)) {
        return many ? CERTAINTY : count > 2 ? DOUBT : NONE;
    }
    if (count <= MANY_WHOLE) {
        return NONE;
    }
    if (!stk_table_is_label_name(c->name)) {
        return DOUBT;
    }
    /* Numbers of classes leave no gaps, or have many pictures each. */
    bool gaps = n->most - n->least + 1 > 1.2 * (double)count;
    return gaps && rows < SOME_PER_NUMBER * count ? DOUBT : NONE;
}

static stk_status check_numbers(const column *c, const numbers *n, stk_error *err) {
    suspicion suspected = suspect_numbers(c, n);
    bool meant = c->listing->options->label_column != NULL;
    const char *kind = n->fractions ? "numbers" : "whole numbers";
    if (suspected == CERTAINTY && !meant) {
        return STK_FAIL(err, STK_ERR_DATA,
                        "column '%s' of %s holds %zu different %s from %s to %s in %zu rows: that "
                        "looks like something measured, and regression is not supported; Stoker "
                        "trains classes, so write ranges as classes into a column of their own, or "
                        "pass --label-column %s to take each number as a class",
                        c->name, c->where, c->labels.count, kind, n->least_text, n->most_text,
                        c->csv->rows, c->name);
    }
    if (suspected != NONE) {
        stk_events_warning(c->listing->events,
                           "column '%s' of %s holds %zu different %s from %s to %s in %zu rows: "
                           "each is taken as a class of its own, for regression is not supported",
                           c->name, c->file, c->labels.count, kind, n->least_text, n->most_text,
                           c->csv->rows);
    }
    return STK_OK;
}

/* ---- several labels in a cell ---- */

/* The texts divided into words. */
typedef struct divided {
    char *block;            /* owned: the words of all texts, each with a NUL after it */
    stk_map seen;           /* the words of texts that are made of words alone */
    size_t plain;           /* texts that are made of words alone, not of words and numbers */
    size_t longer;          /* plain texts of two words or more */
    size_t listed;          /* texts that are lists of labels for certain */
    size_t listed_rows;     /* rows with such texts */
    size_t begun;           /* texts whose first word is a label by itself */
    const char *example;    /* borrowed: a text that is a list, or may be one */
    const char *any_longer; /* borrowed */
} divided;

static bool is_digits(const char *word) {
    return word[strspn(word, "0123456789")] == '\0';
}

/* Divides a text, copied to `to`, into words and counts it. Returns the end of the copy; NULL
 * without memory. */
static char *divide(const texts *t, size_t place, char *to, divided *d) {
    const char *text = t->items[place].text;
    size_t words = 0;
    size_t digits = 0;
    size_t known = 0; /* words that are labels by themselves */
    bool first_known = false;
    char *start = to;
    for (text += strspn(text, dividers); *text != '\0'; text += strspn(text, dividers)) {
        size_t length = strcspn(text, dividers);
        memcpy(to, text, length);
        to[length] = '\0';
        text += length;
        digits += is_digits(to);
        bool label = stk_map_find(&t->indices, to, NULL);
        known += label;
        first_known = first_known || (label && words == 0);
        words++;
        to += length + 1;
    }
    bool list = words > 1 && (known == words || digits == words);
    bool plain = digits == 0;
    d->plain += plain;
    d->longer += plain && words > 1;
    d->begun += plain && words > 1 && first_known;
    d->listed += list;
    d->listed_rows += list ? t->items[place].rows : 0;
    if (words > 1 && (list || plain)) {
        const char **shown = list ? &d->example : &d->any_longer;
        *shown = *shown != NULL ? *shown : t->items[place].text;
    }
    bool added;
    for (char *word = start; plain && word < to; word += strlen(word) + 1) {
        if (!stk_map_add(&d->seen, word, 0, &added)) {
            return NULL;
        }
    }
    return to;
}

static stk_status divide_all(const column *c, divided *d, stk_error *err) {
    const texts *t = &c->labels;
    size_t bytes = 0;
    for (size_t i = 0; i < t->count; i++) {
        bytes += strlen(t->items[i].text) + 1; /* a divider, or the end, after each word */
    }
    d->block = stk_mem_raw(bytes + 1, 1);
    char *to = d->block;
    for (size_t i = 0; to != NULL && i < t->count; i++) {
        to = divide(t, i, to, d);
    }
    return to != NULL ? STK_OK : STK_FAIL_MEMORY(err, c->where);
}

static stk_status judge_lists(const column *c, const divided *d, stk_error *err) {
    const texts *t = &c->labels;
    size_t alone = 0; /* texts that one row has */
    for (size_t i = 0; i < t->count; i++) {
        alone += t->items[i].rows == 1;
    }
    bool meant = c->listing->options->label_column != NULL;
    if (d->listed > 0 && alone * 2 > t->count && !meant) {
        return STK_FAIL(
            err, STK_ERR_DATA,
            "column '%s' of %s holds several labels in a cell in %zu of %zu rows, such "
            "as '%.100s': several labels per picture are not supported; write one label "
            "per picture into a column of its own, or pass --label-column %s to take "
            "each of the %zu texts as a class",
            c->name, c->where, d->listed_rows, c->csv->rows, d->example, c->name, t->count);
    }
    if (d->listed > 0) {
        stk_events_warning(c->listing->events,
                           "column '%s' of %s holds several labels in a cell, such as '%.100s': "
                           "several labels per picture are not supported, so each of the %zu texts "
                           "is a class of its own",
                           c->name, c->file, d->example, t->count);
    } else if (d->begun > 0 || (d->longer > 2 && d->plain >= d->seen.count)) {
        stk_events_warning(c->listing->events,
                           "column '%s' of %s may hold several labels in a cell, such as '%.100s': "
                           "several labels per picture are not supported, so each of the %zu texts "
                           "is a class of its own",
                           c->name, c->file, d->any_longer, t->count);
    }
    return STK_OK;
}

static stk_status check_lists(const column *c, stk_error *err) {
    divided d = {0};
    stk_status status = divide_all(c, &d, err);
    STK_THEN(status, judge_lists(c, &d, err));
    stk_map_free(&d.seen);
    stk_mem_free(d.block);
    return status;
}

stk_status stk_labels_check(const stk_listing *listing, const stk_csv *csv, const char *where,
                            const char *file, size_t label, stk_error *err) {
    column c = {
        .listing = listing, .csv = csv, .where = where, .file = file, .name = csv->header[label]};
    numbers n;
    stk_status status = gather(&c, label, err);
    STK_THEN(status,
             all_numbers(&c.labels, &n) ? check_numbers(&c, &n, err) : check_lists(&c, err));
    free_texts(&c.labels);
    return status;
}

/* ---- a column for each class ---- */

static bool is_flag(const char *cell, bool *set) {
    *set = stk_str_equal(cell, "1") || stk_str_equal(cell, "1.0");
    return *set || stk_str_equal(cell, "0") || stk_str_equal(cell, "0.0");
}

/* Takes out of `flags` the columns that hold anything but 0 and 1, or nothing but 1. */
static stk_status find_flags(const stk_csv *csv, bool *flags, const char *where, stk_error *err) {
    bool *cleared = stk_mem_new(csv->columns, sizeof *cleared); /* some row has a 0 */
    if (cleared == NULL) {
        return STK_FAIL_MEMORY(err, where);
    }
    for (size_t row = 0; row < csv->rows; row++) {
        const char *cell = stk_csv_cell(csv, row, 0);
        for (size_t i = 0; i < csv->columns; i++) {
            bool set = false;
            flags[i] = flags[i] && is_flag(cell, &set);
            cleared[i] = cleared[i] || !set;
            cell = i + 1 < csv->columns ? stk_csv_next(cell) : cell;
        }
    }
    for (size_t i = 0; i < csv->columns; i++) {
        flags[i] = flags[i] && cleared[i];
    }
    stk_mem_free(cleared);
    return STK_OK;
}

/* The first row that has no 1 or several; SIZE_MAX: there is none. */
static size_t find_not_one(const stk_csv *csv, const bool *flags, size_t *ones) {
    for (size_t row = 0; row < csv->rows; row++) {
        const char *cell = stk_csv_cell(csv, row, 0);
        *ones = 0;
        for (size_t i = 0; i < csv->columns; i++) {
            bool set = false;
            *ones += flags[i] && is_flag(cell, &set) && set;
            cell = i + 1 < csv->columns ? stk_csv_next(cell) : cell;
        }
        if (*ones != 1) {
            return row;
        }
    }
    return SIZE_MAX;
}

/* The error for columns of 0 and 1 that are labels. */
static stk_status judge_flags(const stk_csv *csv, const char *where, const bool *flags,
                              size_t others, stk_error *err) {
    stk_first_names found = {0};
    size_t ones = 0;
    char names[300];
    char columns[400];
    for (size_t i = 0; i < csv->columns; i++) {
        if (flags[i]) {
            stk_first_names_add(&found, csv->header[i]);
        }
    }
    if (found.count < 2 || (found.count < 3 && found.count < others)) {
        return STK_OK;
    }
    size_t row = find_not_one(csv, flags, &ones);
    stk_first_names_text(&found, names, sizeof names);
    if (row == SIZE_MAX) {
        return STK_FAIL(
            err, STK_ERR_DATA,
            "%s has a column for each class instead of one for the label: %zu columns "
            "(%s) hold one 1 in each row and 0 otherwise, which is not supported; write "
            "a column label with the name of the column that has the 1",
            where, found.count, names);
    }
    return STK_FAIL(
        err, STK_ERR_DATA,
        "cannot tell which column of %s is the label: %zu columns (%s) hold 0 or 1, and "
        "line %zu has %zu times 1; several labels per picture are not supported, so "
        "name the one column to train on with --label-column (the columns are %s)",
        where, found.count, names, stk_csv_line(csv, row), ones,
        stk_table_names(csv, columns, sizeof columns));
}

stk_status stk_labels_check_columns(const stk_csv *csv, const char *where, size_t id, size_t part,
                                    stk_error *err) {
    size_t others = 0;
    bool *flags = stk_mem_new(csv->columns, sizeof *flags);
    if (flags == NULL) {
        return STK_FAIL_MEMORY(err, where);
    }
    for (size_t i = 0; i < csv->columns; i++) {
        flags[i] = i != id && i != part;
        others += flags[i];
    }
    stk_status status = find_flags(csv, flags, where, err);
    STK_THEN(status, judge_flags(csv, where, flags, others, err));
    stk_mem_free(flags);
    return status;
}
