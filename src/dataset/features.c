/* features.c - columns of the tables as numbers that a network can take. */
#include "dataset/features.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"
#include "dataset/column_profile.h"

/* A column with more different texts is no property of the picture. */
#define MOST_TEXTS 32

/* Whole numbers with so few values are codes as well as amounts: each value gets a number, too. */
#define FEW_NUMBERS 12
#define ROWS_OF_A_CODE 5

/* A column of numbers may have other cells ("na"): at most this share. */
#define MOST_ODD 0.1

/* Numbers are cut off so many deviations from the mean: one wild cell must not rule a picture. */
#define FARTHEST 6.0f

/* Names of columns that repeat what the picture's file says. */
static const char *const of_the_file[] = {"width", "height"};

/* A column and where its numbers stand in a record. */
typedef struct feature_source {
    size_t train;               /* column of the training table */
    size_t test;                /* column of the test table */
    stk_column_profile profile; /* of the training table */
    bool amount;                /* the value is a number */
    bool gaps;                  /* a number says where the value is missing */
    size_t texts;               /* numbers for single texts */
    int first;                  /* its first number in a record */
    double mean;
    double scale;
} feature_source;

static int width_of(const feature_source *s) {
    return (s->amount ? 1 : 0) + (s->gaps ? 1 : 0) + (int)s->texts;
}

static bool repeats_the_file(const char *name) {
    for (size_t i = 0; i < STK_COUNT(of_the_file); i++) {
        if (stk_str_equal_nocase(name, of_the_file[i])) {
            return true;
        }
    }
    return false;
}

/* Decides how the column becomes numbers; false: it says nothing that could be learned. */
static bool plan_column(feature_source *s) {
    const stk_column_profile *p = &s->profile;
    bool has_gaps = p->filled < p->rows || p->numbers < p->filled;
    if (p->count < 2 && !(p->count == 1 && p->filled < p->rows)) {
        return false;
    }
    s->amount = p->numbers > 0 && p->least < p->most &&
                (double)(p->filled - p->numbers) <= MOST_ODD * (double)p->filled;
    s->gaps = s->amount && has_gaps;
    bool codes = s->amount && !p->fractions && p->count > 2 && p->count <= FEW_NUMBERS &&
                 p->rows >= ROWS_OF_A_CODE * p->count;
    s->texts = !s->amount || codes ? p->count : 0;
    if (!s->amount && p->count > MOST_TEXTS) {
        return false;
    }
    double sum = 0;
    double squares = 0;
    for (size_t i = 0; s->amount && i < p->count; i++) {
        double x;
        if (stk_cell_number(p->texts[i].text, &x)) {
            sum += x * (double)p->texts[i].rows;
            squares += x * x * (double)p->texts[i].rows;
        }
    }
    double n = (double)(p->numbers > 0 ? p->numbers : 1);
    s->mean = sum / n;
    s->scale = sqrt(fmax(squares / n - s->mean * s->mean, 0));
    s->scale = s->scale > 1e-12 * fabs(s->mean) && s->scale > 0 ? s->scale : 1;
    return true;
}

static void encode(const feature_source *s, const char *cell, float *record) {
    float *at = record + s->first;
    double x;
    bool is_number = stk_cell_number(cell, &x);
    if (s->amount) {
        float value = is_number ? (float)((x - s->mean) / s->scale) : 0;
        *at++ = fminf(fmaxf(value, -FARTHEST), FARTHEST);
    }
    if (s->gaps) {
        *at++ = is_number ? 0 : 1;
    }
    size_t place;
    if (s->texts > 0 && stk_map_find(&s->profile.places, cell, &place) && place < s->texts) {
        at[place] = 1;
    }
}

static void encode_table(const stk_features *f, const feature_source *sources, size_t count,
                         const stk_csv *csv, bool test, size_t first_record) {
    for (size_t row = 0; row < csv->rows; row++) {
        float *record = f->values + (first_record + row) * (size_t)f->count;
        const char *cell = stk_csv_cell(csv, row, 0);
        size_t column = 0;
        for (size_t i = 0; i < count; i++) {
            size_t wanted = test ? sources[i].test : sources[i].train;
            if (wanted < column) { /* the test table has them in another order */
                cell = stk_csv_cell(csv, row, 0);
                column = 0;
            }
            for (; column < wanted; column++) {
                cell = stk_csv_next(cell);
            }
            encode(&sources[i], cell, record);
        }
    }
}

static void name_columns(stk_features *f, const feature_source *sources, size_t count,
                         const stk_csv *train) {
    size_t length = 0;
    for (size_t i = 0; i < count && i < 3 && length < sizeof f->names; i++) {
        length += (size_t)snprintf(f->names + length, sizeof f->names - length, "%s%.30s",
                                   i > 0 ? ", " : "", train->header[sources[i].train]);
    }
    if (count > 3 && length < sizeof f->names) {
        snprintf(f->names + length, sizeof f->names - length, " ...");
    }
}

/* Whether the test table has some text that was learned. Numbers need not be the same. */
static bool is_known_in(const feature_source *s, const stk_csv *test) {
    for (size_t row = 0; !s->amount && row < test->rows; row++) {
        if (stk_map_find(&s->profile.places, stk_csv_cell(test, row, s->test), NULL)) {
            return true;
        }
    }
    return s->amount;
}

/* Finds the columns that become numbers. */
static stk_status find_sources(stk_features *f, const stk_csv *train, const stk_csv *test,
                               const bool *wanted, feature_source *sources, size_t *count,
                               stk_error *err) {
    stk_status status = STK_OK;
    *count = 0;
    for (size_t c = 0; status == STK_OK && c < train->columns; c++) {
        feature_source *s = &sources[*count];
        *s = (feature_source){.train = c, .test = stk_csv_column(test, train->header[c])};
        if (!wanted[c] || s->test == SIZE_MAX || repeats_the_file(train->header[c])) {
            continue;
        }
        status = stk_column_profile_make(&s->profile, train, c, err);
        if (status == STK_OK && plan_column(s) && is_known_in(s, test)) {
            s->first = f->count;
            f->count += width_of(s);
            ++*count;
        } else {
            stk_column_profile_free(&s->profile);
        }
    }
    return status;
}

stk_status stk_features_make(stk_features *f, const stk_csv *train, const stk_csv *test,
                             const bool *wanted, stk_error *err) {
    size_t count = 0;
    memset(f, 0, sizeof *f);
    if (test == NULL) {
        return STK_OK;
    }
    feature_source *sources = stk_mem_new(train->columns, sizeof *sources);
    if (sources == NULL) {
        return STK_FAIL_MEMORY(err, "the columns of the table");
    }
    stk_status status = find_sources(f, train, test, wanted, sources, &count, err);
    if (status == STK_OK && f->count > 0) {
        f->columns = (int)count;
        f->records = train->rows + test->rows;
        f->values = stk_mem_new(f->records, (size_t)f->count * sizeof *f->values);
        status = f->values != NULL ? STK_OK : STK_FAIL_MEMORY(err, "the columns of the table");
    }
    if (status == STK_OK && f->count > 0) {
        encode_table(f, sources, count, train, false, 0);
        encode_table(f, sources, count, test, true, train->rows);
        name_columns(f, sources, count, train);
    }
    for (size_t i = 0; i < count; i++) {
        stk_column_profile_free(&sources[i].profile);
    }
    stk_mem_free(sources);
    if (status != STK_OK) {
        stk_features_free(f);
    }
    return status;
}

void stk_features_free(stk_features *f) {
    stk_mem_free(f->values);
    memset(f, 0, sizeof *f);
}

const float *stk_features_row(const stk_features *f, size_t record) {
    return f->values + record * (size_t)f->count;
}
