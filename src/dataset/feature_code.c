/* feature_code.c - finds columns that say something, and turns their cells into numbers. */
#include "dataset/feature_code.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"
#include "dataset/column_profile.h"
#include "dataset/listing.h"

/* Whole numbers with so few values are codes as well as amounts: each value gets a number, too. */
#define FEW_NUMBERS 12
#define ROWS_OF_A_CODE 5

/* A column of numbers may have other cells: at most this share, and more where all of them have the
 * same text ("na"). */
#define MOST_ODD 0.1
#define MOST_GAPS 0.5

/* Numbers are cut off so many deviations from the mean: one wild cell must not rule a picture. */
#define FARTHEST 6.0f

/* Of so many rows or more, a whole number for each that always grows counts them, and a cell that
 * is the same in all of them says nothing. */
#define FEWEST_ROWS 8

/* Filled cells of the test table that must be known: other values are those of other groups. */
#define KNOWN 0.5

/* Names of columns that repeat what the picture's file says. */
static const char *const of_the_file[] = {"width", "height"};

static size_t width_of(const stk_coded_column *c) {
    return (c->amount ? 1 : 0) + (c->gaps ? 1 : 0) + c->text_count;
}

static bool repeats_the_file(const char *name) {
    for (size_t i = 0; i < STK_COUNT(of_the_file); i++) {
        if (stk_str_equal_nocase(name, of_the_file[i])) {
            return true;
        }
    }
    return false;
}

/* ---- the code of a table ---- */

static void measure(stk_coded_column *c, const stk_column_profile *p) {
    double sum = 0;
    double squares = 0;
    for (size_t i = 0; c->amount && i < p->count; i++) {
        double x;
        if (stk_cell_number(p->texts[i].text, &x)) {
            sum += x * (double)p->texts[i].rows;
            squares += x * x * (double)p->texts[i].rows;
        }
    }
    double n = (double)(p->numbers > 0 ? p->numbers : 1);
    c->mean = sum / n;
    c->scale = sqrt(fmax(squares / n - c->mean * c->mean, 0));
    c->scale = c->scale > 1e-12 * fabs(c->mean) && c->scale > 0 ? c->scale : 1;
}

/* Whether the column counts the rows, in their order or another one. */
static bool is_row_number(const stk_column_profile *p) {
    double before = -INFINITY;
    bool grows = true;
    if (p->rows < FEWEST_ROWS || p->count < p->rows || p->numbers < p->rows || p->fractions) {
        return false;
    }
    for (size_t i = 0; grows && i < p->count; i++) { /* in the order of the rows */
        double x;
        grows = stk_cell_number(p->texts[i].text, &x) && x > before;
        before = grows ? x : before;
    }
    return grows || p->most - p->least + 1 == (double)p->count;
}

/* Whether the cells are numbers but for a few. */
static bool has_amounts(const stk_column_profile *p) {
    size_t odd_texts = 0;
    for (size_t i = 0; i < p->count && odd_texts < 2; i++) {
        double x;
        odd_texts += !stk_cell_number(p->texts[i].text, &x);
    }
    double odd = odd_texts < 2 ? MOST_GAPS : MOST_ODD;
    return p->numbers > 0 && p->least < p->most &&
           (double)(p->filled - p->numbers) <= odd * (double)p->filled;
}

/* Decides how the column becomes numbers; false: it says nothing that could be learned. */
static bool plan_column(stk_coded_column *c, const stk_column_profile *p) {
    bool has_gaps = p->filled < p->rows || p->numbers < p->filled;
    if ((p->count < 2 && !(p->count == 1 && p->filled < p->rows)) || is_row_number(p)) {
        return false;
    }
    c->amount = has_amounts(p);
    c->gaps = c->amount && has_gaps;
    bool codes = c->amount && !p->fractions && p->count > 2 && p->count <= FEW_NUMBERS &&
                 p->rows >= ROWS_OF_A_CODE * p->count;
    if (!c->amount && p->count > STK_CODED_TEXTS) {
        return false;
    }
    c->text_count = !c->amount || codes ? p->count : 0;
    for (size_t i = 0; i < c->text_count; i++) {
        c->texts[i] = p->texts[i].text;
        if (strlen(c->texts[i]) > STK_CODED_TEXT_BYTES) {
            return false;
        }
    }
    measure(c, p);
    return true;
}

static int compare_numbers(const void *a, const void *b) {
    double x = *(const double *)a;
    double y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Whether a cell has one of the texts, or the same number as one of them: 30 is 30.0. */
static bool is_value(const stk_column_profile *p, const double *numbers, size_t count,
                     const char *cell) {
    double x;
    return stk_map_find(&p->places, cell, NULL) ||
           (stk_cell_number(cell, &x) && count > 0 &&
            bsearch(&x, numbers, count, sizeof x, compare_numbers) != NULL);
}

static bool is_always_the_same(const stk_csv *csv, size_t column) {
    const char *first = csv->rows >= FEWEST_ROWS ? stk_csv_cell(csv, 0, column) : NULL;
    bool same = first != NULL;
    for (size_t row = 1; same && row < csv->rows; row++) {
        same = stk_str_equal(stk_csv_cell(csv, row, column), first);
    }
    return same;
}

/*
 * Whether the test table mostly has values that were learned. Otherwise the column tells rows or
 * groups of rows apart, such as patients, and what is learned of it misleads. Of what is measured
 * other numbers mean something, too.
 */
static stk_status is_known_in(const stk_coded_column *c, const stk_column_profile *p,
                              const stk_csv *test, size_t column, bool *is_known, stk_error *err) {
    size_t count = 0;
    size_t filled = 0;
    size_t known = 0;
    *is_known = !is_always_the_same(test, column);
    if (!*is_known || (c->amount && (p->fractions || stk_table_is_measure_name(c->name)))) {
        return STK_OK;
    }
    double *numbers = stk_mem_new(p->count, sizeof *numbers);
    if (numbers == NULL) {
        return STK_FAIL_MEMORY(err, c->name);
    }
    for (size_t i = 0; i < p->count; i++) {
        count += stk_cell_number(p->texts[i].text, &numbers[count]);
    }
    qsort(numbers, count, sizeof *numbers, compare_numbers);
    for (size_t row = 0; row < test->rows; row++) {
        const char *cell = stk_csv_cell(test, row, column);
        filled += cell[0] != '\0';
        known += cell[0] != '\0' && is_value(p, numbers, count, cell);
    }
    stk_mem_free(numbers);
    *is_known = filled > 0 && (double)known >= KNOWN * (double)filled;
    return STK_OK;
}

stk_status stk_feature_code_make(stk_feature_code *code, const stk_csv *train, const stk_csv *test,
                                 const bool *wanted, stk_error *err) {
    stk_status status = STK_OK;
    memset(code, 0, sizeof *code);
    for (size_t c = 0; status == STK_OK && c < train->columns; c++) {
        stk_coded_column column = {.name = train->header[c]};
        stk_column_profile profile;
        size_t in_test = stk_csv_column(test, column.name);
        if (!wanted[c] || in_test == SIZE_MAX || repeats_the_file(column.name)) {
            continue;
        }
        bool fits = true;
        bool known = false;
        status = stk_column_profile_make(&profile, train, c, err);
        if (status == STK_OK && plan_column(&column, &profile)) {
            status = is_known_in(&column, &profile, test, in_test, &known, err);
        }
        if (status == STK_OK && known) {
            status = stk_feature_code_add(code, &column, &fits, err);
        }
        code->left_out += !fits;
        stk_column_profile_free(&profile);
    }
    if (status != STK_OK) {
        stk_feature_code_free(code);
    }
    return status;
}

void stk_feature_code_free(stk_feature_code *code) {
    for (size_t i = 0; i < code->count; i++) {
        stk_map_free(&code->columns[i].places);
    }
    stk_mem_free(code->columns);
    stk_text_blocks_free(&code->kept);
    memset(code, 0, sizeof *code);
}

/* Copies the name and the texts of the column, and makes its map. */
static bool keep_texts(stk_feature_code *code, stk_coded_column *c) {
    bool ok = true;
    c->name = stk_text_blocks_keep(&code->kept, c->name, strlen(c->name));
    c->places = (stk_map){0};
    for (size_t i = 0; ok && i < c->text_count; i++) {
        bool added;
        c->texts[i] = stk_text_blocks_keep(&code->kept, c->texts[i], strlen(c->texts[i]));
        ok = c->texts[i] != NULL && stk_map_add(&c->places, c->texts[i], i, &added);
    }
    return ok && c->name != NULL;
}

stk_status stk_feature_code_add(stk_feature_code *code, const stk_coded_column *column, bool *fits,
                                stk_error *err) {
    size_t bytes = code->bytes + STK_CODED_COLUMN_BYTES + strlen(column->name);
    for (size_t i = 0; i < column->text_count; i++) {
        bytes += strlen(column->texts[i]) + STK_CODED_TEXT_EXTRA;
    }
    *fits = bytes <= STK_FEATURE_CODE_BYTES && width_of(column) > 0;
    if (!*fits) {
        return STK_OK;
    }
    if (!STK_RESERVE(code->columns, code->capacity, code->count + 1)) {
        return STK_FAIL_MEMORY(err, column->name);
    }
    stk_coded_column *added = &code->columns[code->count];
    *added = *column;
    if (!keep_texts(code, added)) {
        stk_map_free(&added->places);
        return STK_FAIL_MEMORY(err, column->name);
    }
    code->count++;
    code->numbers += (int)width_of(column);
    code->bytes = bytes;
    return STK_OK;
}

/* ---- cells ---- */

/* The place of a cell's text or else of a text that is the same number: 30 is 30.0. */
static bool find_place(const stk_coded_column *c, const char *cell, const double *number,
                       size_t *place) {
    bool found = stk_map_find(&c->places, cell, place);
    for (size_t i = 0; number != NULL && !found && i < c->text_count; i++) {
        double x;
        if (stk_cell_number(c->texts[i], &x) && !(x < *number) && !(x > *number)) {
            *place = i;
            found = true;
        }
    }
    return found;
}

static void code_cell(const stk_coded_column *c, const char *cell, float *at) {
    double x;
    bool is_number = stk_cell_number(cell, &x);
    if (c->amount) {
        float value = is_number ? (float)((x - c->mean) / c->scale) : 0;
        *at++ = fminf(fmaxf(value, -FARTHEST), FARTHEST);
    }
    if (c->gaps) {
        *at++ = is_number ? 0 : 1;
    }
    size_t place;
    if (find_place(c, cell, is_number ? &x : NULL, &place)) {
        at[place] = 1;
    }
}

/* `columns`: where each column of the code stands in the table; SIZE_MAX: nowhere. */
static void code_row(const stk_feature_code *code, const stk_csv *csv, size_t row,
                     const size_t *columns, float *values) {
    const char *cell = stk_csv_cell(csv, row, 0);
    size_t column = 0;
    for (size_t i = 0; i < code->count; i++) {
        if (columns[i] == SIZE_MAX) {
            code_cell(&code->columns[i], "", values);
        } else {
            if (columns[i] < column) { /* the table has them in another order */
                cell = stk_csv_cell(csv, row, 0);
                column = 0;
            }
            for (; column < columns[i]; column++) {
                cell = stk_csv_next(cell);
            }
            code_cell(&code->columns[i], cell, values);
        }
        values += width_of(&code->columns[i]);
    }
}

stk_status stk_feature_code_apply(const stk_feature_code *code, const stk_csv *csv, float *values,
                                  stk_features_absent *absent, stk_error *err) {
    stk_features_absent lacks = {0};
    size_t *columns = stk_mem_new(code->count, sizeof *columns);
    if (columns == NULL) {
        return STK_FAIL_MEMORY(err, "the columns of the table");
    }
    for (size_t i = 0; i < code->count; i++) {
        columns[i] = stk_csv_column(csv, code->columns[i].name);
        if (columns[i] == SIZE_MAX && lacks.columns++ == 0) {
            lacks.name = code->columns[i].name;
        }
    }
    if (absent != NULL) {
        *absent = lacks;
    }
    for (size_t row = 0; row < csv->rows; row++) {
        code_row(code, csv, row, columns, values + row * (size_t)code->numbers);
    }
    stk_mem_free(columns);
    return STK_OK;
}

void stk_feature_code_missing(const stk_feature_code *code, float *values) {
    for (size_t i = 0; i < code->count; i++) {
        code_cell(&code->columns[i], "", values);
        values += width_of(&code->columns[i]);
    }
}
