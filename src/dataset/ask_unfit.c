/*
 * ask_unfit.c - recognises what Stoker does not learn: boxes, masks, pairs and matches of pictures,
 * several numbers in a cell, sentences.
 *
 * Such labels would train as classes or lists of labels and give a submission that is worth
 * nothing. They are told by what cells hold; names of columns only help. One sentence says what it
 * is and which option takes the labels otherwise.
 */
#include "dataset/ask.h"

#include <ctype.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"
#include "dataset/box_columns.h"
#include "dataset/label_cells.h"

/* "Nearly all", of cells. */
#define NEARLY_ALL 0.95

/* Runs with fewer words may be anything. */
#define TELLING_WORDS 4
#define TELLING_CELLS 3

/* A number is no longer than this. */
#define MOST_WORD 32

/* Rows after which a column of other things is left. */
#define FIRST_ROWS 20

/* Fewer rows are too few to tell sentences from names. */
#define FEWEST_SENTENCES 20

static const char *const mask_words[] = {"rle",      "mask",         "masks",  "encoded", "pixels",
                                         "segments", "segmentation", "encode", NULL};

static bool nearly(size_t count, size_t all) {
    return all > 0 && (double)count >= NEARLY_ALL * (double)all;
}

/* The next word between blanks. */
static const char *next_word(const char **at, size_t *length) {
    const char *word = *at + strspn(*at, " \t");
    *length = strcspn(word, " \t");
    *at = word + *length;
    return *length > 0 ? word : NULL;
}

static bool is_number(const char *word, size_t length, double *value) {
    char text[MOST_WORD];
    if (length >= sizeof text) {
        return false;
    }
    memcpy(text, word, length);
    text[length] = '\0';
    return stk_cell_number(text, value);
}

/* ---- runs of pixels ---- */

typedef struct run_look {
    size_t filled;
    size_t even;      /* cells of an even number of whole numbers */
    size_t longer;    /* cells with many words */
    size_t ascending; /* of these, those that are runs: each begins behind the one before */
    size_t words;     /* of the first of these */
    bool varied;      /* others have other numbers of words */
} run_look;

static void look_at_runs(run_look *look, const char *cell) {
    size_t length;
    size_t words = 0;
    double end = 0;
    bool whole = true;
    bool ascending = true;
    double start = 0;
    if (stk_cell_is_missing(cell) || stk_str_equal(cell, "-1")) {
        return; /* no mask */
    }
    for (const char *word; whole && (word = next_word(&cell, &length)) != NULL; words++) {
        double x = 0;
        whole = is_number(word, length, &x) && x >= 0 && x == floor(x);
        if (words % 2 == 0) {
            ascending = ascending && x >= end;
            start = x;
        } else {
            ascending = ascending && x > 0;
            end = start + x;
        }
    }
    bool even = whole && words % 2 == 0;
    look->filled += words > 0;
    look->even += even && words > 0;
    if (words >= TELLING_WORDS) {
        look->words = look->words == 0 ? words : look->words;
        look->varied = look->varied || words != look->words;
    }
    look->longer += words >= TELLING_WORDS || !whole;
    look->ascending += even && ascending && words >= TELLING_WORDS;
}

/* Whether a phrase stands in the text as words of its own: "iou" is a part of "various". */
static bool has_phrase(const char *text, const char *phrase) {
    size_t length = strlen(phrase);
    for (const char *at = text; (at = strcasestr(at, phrase)) != NULL; at++) {
        bool begins = at == text || !isalnum((unsigned char)at[-1]);
        if (begins && !isalnum((unsigned char)at[length])) {
            return true;
        }
    }
    return false;
}

static bool says_masks(const stk_hints *hints) {
    static const char *const phrases[] = {
        "run-length", "run length", "rle", "dice", "segmentation", "IoU", "intersection over union",
    };
    bool found = false;
    for (size_t i = 0; hints->text != NULL && !found && i < STK_COUNT(phrases); i++) {
        found = has_phrase(hints->text, phrases[i]);
    }
    return found;
}

static bool are_runs(const stk_csv *csv, size_t column, const stk_hints *hints) {
    run_look look = {0};
    for (size_t row = 0; row < csv->rows; row++) {
        look_at_runs(&look, stk_csv_cell(csv, row, column));
    }
    bool named = stk_has_word_of(csv->header[column], mask_words) || says_masks(hints);
    bool told = look.varied && look.longer >= TELLING_CELLS && nearly(look.ascending, look.longer);
    return told || (named && look.longer > 0 && nearly(look.even, look.filled));
}

/* ---- several numbers in a cell ---- */

/* What the cells of a column hold beside each other. */
typedef struct number_look {
    size_t filled;
    size_t several;   /* cells of two numbers or more, and nothing else */
    size_t same;      /* of these, those with as many as the first */
    size_t fractions; /* of these, those with a number that is not whole */
    size_t first;     /* numbers in the first */
    size_t brackets;
    size_t nested; /* of these, lists of lists */
} number_look;

static void look_at_numbers(number_look *look, const char *cell) {
    static const char separators[] = " \t,;[](){}";
    const char *at = cell;
    bool bracket = stk_cell_bracket(cell) != '\0';
    size_t words = 0;
    bool numbers = true;
    bool fraction = false;
    if (cell[0] == '\0') {
        return;
    }
    while (numbers && *(at += strspn(at, separators)) != '\0') {
        size_t length = strcspn(at, separators);
        double x;
        numbers = length > 0 && is_number(at, length, &x);
        fraction = fraction || (numbers && memchr(at, '.', length) != NULL);
        at += length;
        words++;
    }
    look->filled++;
    look->brackets += bracket;
    if (numbers && words > 1) {
        look->first = look->several == 0 ? words : look->first;
        look->several++;
        look->same += words == look->first;
        look->fractions += fraction;
        look->nested += bracket && strpbrk(cell + 1, "[({") != NULL;
    }
}

/* Numbers that belong together: with fractions, or as many in each pair of brackets. */
static bool are_vectors(const stk_csv *csv, size_t column) {
    number_look look = {0};
    for (size_t row = 0; row < csv->rows; row++) {
        look_at_numbers(&look, stk_csv_cell(csv, row, column));
    }
    return nearly(look.several, look.filled) &&
           (2 * look.fractions > look.several || 2 * look.nested > look.several ||
            (nearly(look.brackets, look.filled) && look.same == look.several));
}

/* ---- sentences ---- */

/* Whether most cells have several words, some of which only sentences have, and hardly any cell is
 * repeated: names of classes are short, or come again. */
static stk_status are_sentences(const stk_csv *csv, size_t column, bool *are, stk_error *err) {
    static const char *const words[] = {"a",  "an", "the", "of",   "on",  "in", "is",
                                        "at", "to", "and", "with", "are", "by", NULL};
    stk_map texts = {0};
    bool ok = true;
    size_t different = 0;
    size_t sentences = 0;
    for (size_t row = 0; ok && row < csv->rows; row++) {
        const char *cell = stk_csv_cell(csv, row, column);
        const char *at = cell;
        size_t length;
        size_t count = 0;
        bool added = false;
        while (next_word(&at, &length) != NULL) {
            count++;
        }
        ok = stk_map_add(&texts, cell, row, &added);
        different += added;
        sentences += count >= TELLING_WORDS && stk_has_word_of(cell, words);
    }
    stk_map_free(&texts);
    *are = csv->rows >= FEWEST_SENTENCES && 2 * sentences > csv->rows && 2 * different > csv->rows;
    return ok ? STK_OK : STK_FAIL_MEMORY(err, csv->header[column]);
}

/* ---- the cells of the label column ---- */

static const char *first_filled(const stk_csv *csv, size_t column, size_t least) {
    for (size_t row = 0; row < csv->rows; row++) {
        const char *cell = stk_csv_cell(csv, row, column);
        if (strlen(cell) >= least) {
            return cell;
        }
    }
    return least > 1 ? first_filled(csv, column, 1) : "";
}

static stk_status fail_cells(const stk_ask_tables *t, size_t column, const char *are,
                             const char *instead, stk_error *err) {
    return STK_FAIL(err, STK_ERR_DATA,
                    "column '%s' of %s holds %s, such as '%.60s', which Stoker does not learn: it "
                    "learns labels and numbers of whole pictures; %s",
                    t->train->header[column], t->where, are, first_filled(t->train, column, 4),
                    instead);
}

stk_status stk_ask_refuse_cells(const stk_ask *ask, const stk_listing *listing,
                                const stk_ask_tables *t, const stk_hints *hints, stk_error *err) {
    static const char other[] = "name a column of labels with --label-column, or pass --task "
                                "multilabel or single to take the texts as labels all the same";
    size_t column = ask->labels[0];
    if (ask->count > 1 || listing->options->task != STK_TASK_AUTO) {
        return STK_OK;
    }
    if (stk_cells_are_boxes(t->train, column)) {
        return fail_cells(t, column, "boxes", other, err);
    }
    if (are_runs(t->train, column, hints)) {
        return fail_cells(t, column, "masks as runs of pixels", other, err);
    }
    if (are_vectors(t->train, column)) {
        return fail_cells(t, column, "several numbers in a cell",
                          "divide them into columns of one number each, and name these with "
                          "--label-column A,B, or pass --task multilabel if they are labels",
                          err);
    }
    bool sentences;
    stk_status status = are_sentences(t->train, column, &sentences, err);
    return status == STK_OK && sentences ? fail_cells(t, column, "sentences", other, err) : status;
}

/* ---- what the sample asks for ---- */

static bool has_word(const char *cell, const char *wanted) {
    size_t length;
    for (const char *word; (word = next_word(&cell, &length)) != NULL;) {
        if (strlen(wanted) == length && strncmp(word, wanted, length) == 0) {
            return true;
        }
    }
    return false;
}

/* Answers that are ids of rows: pictures that match each other are wanted. */
static stk_status refuse_matches(const stk_ask_tables *t, stk_error *err) {
    size_t answer = stk_ask_only_answer(t);
    size_t own = 0;
    for (size_t row = 0; answer != SIZE_MAX && row < t->sample->rows; row++) {
        const char *id = stk_csv_cell(t->sample, row, t->sample_id);
        own += id[0] != '\0' && has_word(stk_csv_cell(t->sample, row, answer), id);
    }
    if (answer == SIZE_MAX || t->sample->rows < 2 || !nearly(own, t->sample->rows)) {
        return STK_OK;
    }
    return STK_FAIL(
        err, STK_ERR_DATA,
        "the sample submission has ids of rows in column '%s', such as '%.60s': it asks "
        "which pictures match each other, and Stoker finds no matches; to learn a "
        "column of %s, name it with --label-column",
        t->sample->header[answer], stk_csv_cell(t->sample, 0, answer), t->where);
}

/* Whether two names are the same but for a number or a letter at the end: image1, image2. */
static bool are_twins(const char *a, const char *b) {
    size_t length = strlen(a);
    bool ends = length > 1 && length == strlen(b) && strncasecmp(a, b, length - 1) == 0;
    char x = ends ? a[length - 1] : '\0';
    char y = ends ? b[length - 1] : '\0';
    return ends && x != y &&
           ((isdigit((unsigned char)x) && isdigit((unsigned char)y)) ||
            (strchr("aAxX", x) != NULL && strchr("bByY", y) != NULL) ||
            (strchr("lL", x) != NULL && strchr("rR", y) != NULL));
}

static bool names_pictures(const stk_csv *csv, size_t column) {
    size_t named = 0;
    for (size_t row = 0; row < csv->rows; row++) {
        named += stk_dataset_is_image_name(stk_csv_cell(csv, row, column));
        if (named == 0 && row == FIRST_ROWS) { /* of very many columns few are looked at in full */
            return false;
        }
    }
    return nearly(named, csv->rows);
}

/* Whether the pictures of a row are two different ones. */
static bool differ(const stk_csv *csv, size_t a, size_t b) {
    size_t count = 0;
    for (size_t row = 0; row < csv->rows; row++) {
        count += !stk_str_equal(stk_csv_cell(csv, row, a), stk_csv_cell(csv, row, b));
    }
    return 2 * count > csv->rows;
}

/* Whether a column belongs to the ids' as image2 does to image1: it has texts, which the sample
 * does not ask for. */
static bool is_second(const stk_ask_tables *t, size_t column) {
    const stk_csv *csv = t->train;
    size_t numbers = 0;
    double x;
    if (!are_twins(csv->header[t->id], csv->header[column]) ||
        (t->sample != NULL && stk_csv_column(t->sample, csv->header[column]) != SIZE_MAX)) {
        return false;
    }
    for (size_t row = 0; row < csv->rows; row++) {
        numbers += stk_cell_number(stk_csv_cell(csv, row, column), &x);
    }
    return numbers == 0 && differ(csv, t->id, column);
}

/* Whether most cells of a column that names pictures are ids of other rows: pairs, too. */
static stk_status has_ids(const stk_ask_tables *t, size_t column, bool *has, stk_error *err) {
    stk_map ids = {0};
    bool ok = true;
    bool added;
    size_t found = 0;
    for (size_t row = 0; ok && row < t->train->rows; row++) {
        ok = stk_map_add(&ids, stk_csv_cell(t->train, row, t->id), row, &added);
    }
    for (size_t row = 0; ok && row < t->train->rows; row++) {
        found += stk_map_find(&ids, stk_csv_cell(t->train, row, column), NULL);
    }
    stk_map_free(&ids);
    *has = 2 * found > t->train->rows;
    return ok ? STK_OK : STK_FAIL_MEMORY(err, t->where);
}

/* A second column that names pictures: the other one of a pair, or a mask. */
static stk_status refuse_pairs(const stk_ask_tables *t, stk_error *err) {
    const stk_csv *csv = t->train;
    bool has_labels = false;
    for (size_t c = 0; c < csv->columns; c++) {
        has_labels = has_labels || (c != t->id && stk_table_has_label_word(csv->header[c]));
    }
    for (size_t c = 0; c < csv->columns; c++) {
        bool other = c != t->id && names_pictures(csv, c) && differ(csv, t->id, c);
        bool pairs = c != t->id && is_second(t, c);
        if (other && !pairs) {
            stk_status status = has_ids(t, c, &pairs, err);
            if (status != STK_OK) {
                return status;
            }
        }
        if (pairs) {
            return STK_FAIL(err, STK_ERR_DATA,
                            "columns '%s' and '%s' of %s name two pictures in each row: Stoker "
                            "predicts each picture alone and compares no pairs; to learn a column "
                            "from the first picture alone, name it with --label-column",
                            csv->header[t->id], csv->header[c], t->where);
        }
        bool alone = csv->columns == 2 ||
                     (t->sample != NULL && stk_csv_column(t->sample, csv->header[c]) != SIZE_MAX);
        bool masks =
            t->sample == NULL && !has_labels && stk_has_word_of(csv->header[c], mask_words);
        if (other && (alone || masks) &&
            (t->test == NULL || stk_csv_column(t->test, csv->header[c]) == SIZE_MAX)) {
            return STK_FAIL(err, STK_ERR_DATA,
                            "column '%s' of %s names pictures, such as '%.60s': masks and other "
                            "pictures are nothing that Stoker predicts; to learn a column of "
                            "labels, name it with --label-column",
                            csv->header[c], t->where, first_filled(csv, c, 1));
        }
    }
    return STK_OK;
}

/* Masks that the sample asks for in a column that the table has. */
static stk_status refuse_masks(const stk_ask_tables *t, const stk_hints *hints, stk_error *err) {
    for (size_t c = 0; t->sample != NULL && c < t->sample->columns; c++) {
        size_t column = stk_csv_column(t->train, t->sample->header[c]);
        if (stk_ask_is_answer(t, c) && column != SIZE_MAX && column != t->id &&
            stk_has_word_of(t->sample->header[c], mask_words) &&
            are_runs(t->train, column, hints)) {
            return fail_cells(t, column, "masks as runs of pixels",
                              "name a column of labels with --label-column, or pass --task "
                              "multilabel or single to take the texts as labels all the same",
                              err);
        }
    }
    return STK_OK;
}

/* Whether an id has several rows, as pictures with several boxes have. */
static stk_status repeats(const stk_ask_tables *t, bool *is_repeated, stk_error *err) {
    stk_map seen = {0};
    bool ok = true;
    *is_repeated = false;
    for (size_t row = 0; ok && row < t->train->rows && !*is_repeated; row++) {
        bool added = true;
        ok = stk_map_add(&seen, stk_csv_cell(t->train, row, t->id), row, &added);
        *is_repeated = ok && !added;
    }
    stk_map_free(&seen);
    return ok ? STK_OK : STK_FAIL_MEMORY(err, t->where);
}

/* Boxes: the sample asks for them, or there is no sample and pictures have several rows. */
static stk_status refuse_boxes(const stk_ask_tables *t, stk_error *err) {
    stk_box_columns boxes;
    stk_box_columns_find(&boxes, t->train);
    size_t answer = stk_ask_only_answer(t);
    bool asked = answer != SIZE_MAX && stk_cells_ask_for_boxes(t->sample, answer, boxes.count > 0);
    size_t named = 0;
    size_t asked_columns = 0;
    for (size_t c = 0; t->sample != NULL && c < t->sample->columns; c++) {
        asked_columns += stk_ask_is_answer(t, c);
        named += stk_ask_is_answer(t, c) &&
                 stk_box_columns_have(&boxes, stk_csv_column(t->train, t->sample->header[c]));
    }
    asked = asked || named == 4 || (named > 0 && named >= asked_columns);
    stk_status status = STK_OK;
    if (!asked && t->sample == NULL && boxes.count > 0) {
        status = repeats(t, &asked, err);
    }
    if (status != STK_OK || !asked) {
        return status;
    }
    char where[300] = "";
    if (boxes.count > 0) {
        snprintf(where, sizeof where, " (%.80s%s%.80s in %.100s)",
                 t->train->header[boxes.columns[0]], boxes.count > 1 ? " ... " : "",
                 boxes.count > 1 ? t->train->header[boxes.columns[boxes.count - 1]] : "", t->file);
    }
    return STK_FAIL(err, STK_ERR_DATA,
                    "%s asks for boxes in pictures%s, and Stoker does not find things in pictures: "
                    "it learns labels and numbers of whole pictures; to learn a column of %s, name "
                    "it with --label-column",
                    t->sample != NULL ? "the sample submission" : "the data set", where, t->where);
}

stk_status stk_ask_refuse(const stk_listing *listing, const stk_ask_tables *t,
                          const stk_hints *hints, stk_error *err) {
    if (listing->options->label_column != NULL) {
        return STK_OK;
    }
    stk_status status = refuse_matches(t, err);
    STK_THEN(status, refuse_pairs(t, err));
    STK_THEN(status, refuse_boxes(t, err));
    if (listing->options->task == STK_TASK_AUTO) {
        STK_THEN(status, refuse_masks(t, hints, err));
    }
    return status;
}
