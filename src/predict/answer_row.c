/* answer_row.c - from the values of a row's pictures to the text of its cells. */
#include "predict/answer_row.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/text/csv.h"
#include "weights/label_sets.h"

double stk_answer_unseen(stk_answer_kind kind, size_t pictures, int columns, int unseen) {
    bool shared = kind == STK_ANSWER_PROBABILITIES && pictures > 0 && unseen > 0;
    return shared ? 1.0 / ((double)pictures + columns + unseen) : 0;
}

stk_status stk_answer_row_open(stk_answer_row *row, const int *classes, int columns, int unseen,
                               stk_error *err) {
    size_t count = (size_t)row->answers->class_count;
    int most = row->how->most > 0 ? row->how->most : 1;
    row->values = stk_mem_new(count, sizeof *row->values);
    row->pooled = stk_mem_new(count, sizeof *row->pooled);
    row->chosen = stk_mem_new(count, sizeof *row->chosen);
    row->best = stk_mem_new((size_t)most, sizeof *row->best);
    bool ok =
        row->values != NULL && row->pooled != NULL && row->chosen != NULL && row->best != NULL;
    if (ok && classes != NULL) {
        row->written = stk_mem_new(count, sizeof *row->written);
        ok = row->written != NULL;
        for (int i = 0; ok && i < columns; i++) {
            if (classes[i] >= 0) {
                row->written[classes[i]] = true;
            }
        }
    }
    for (size_t k = 0; ok && k < count; k++) {
        row->columns += row->written == NULL || row->written[k];
    }
    row->unseen = stk_answer_unseen(row->how->kind, row->answers->pictures, row->columns, unseen);
    row->left = 1 - unseen * row->unseen;
    return ok ? STK_OK : STK_FAIL_MEMORY(err, "the rows of the submission");
}

void stk_answer_row_close(stk_answer_row *row) {
    stk_mem_free(row->written);
    stk_mem_free(row->values);
    stk_mem_free(row->pooled);
    stk_mem_free(row->chosen);
    stk_mem_free(row->best);
    memset(row, 0, sizeof *row);
}

static bool sums_to_one(const stk_answer_row *row) {
    stk_answer_kind kind = row->how->kind;
    return row->how->shares || kind == STK_ANSWER_LABEL || kind == STK_ANSWER_PROBABILITIES ||
           kind == STK_ANSWER_POSITIVE || kind == STK_ANSWER_RANKED || kind == STK_ANSWER_SURE;
}

/* The values of a row from its pictures that a model has read, early ones where none was; from all
 * where both have none. */
static void pool(stk_answer_row *row, size_t first, size_t count) {
    const stk_answers *a = row->answers;
    const stk_ensemble *e = a->ensemble;
    stk_row_source best = STK_ROW_PRIORS;
    size_t taken = 0;
    for (size_t i = first; i < first + count; i++) {
        stk_row_source source = stk_ensemble_source(e, i);
        best = source > best ? source : best;
    }
    for (size_t i = first; i < first + count; i++) {
        if (stk_ensemble_source(e, i) == best) {
            stk_ensemble_row(e, i, row->pooled);
            stk_pooling_add(a->pool, row->pooled, e->classes, taken++, row->values);
        }
    }
    stk_pooling_end(a->pool, a->task, e->classes, taken, row->values);
}

void stk_answer_row_take(stk_answer_row *row, size_t first, size_t count) {
    const stk_answers *a = row->answers;
    size_t classes = (size_t)a->class_count;
    pool(row, first, count);
    row->sound = true;
    row->sum = 0;
    for (size_t k = 0; k < classes; k++) {
        bool possible = row->how->kind == STK_ANSWER_NUMBERS || row->values[k] >= 0;
        row->values[k] = row->how->shares ? fmax(row->values[k], 0) : row->values[k];
        row->sound = row->sound && isfinite(row->values[k]) && possible;
        row->sum += row->written == NULL || row->written[k] ? row->values[k] : 0;
    }
    if (sums_to_one(row) && row->how->kind != STK_ANSWER_LABEL &&
        row->how->kind != STK_ANSWER_SURE) {
        row->sound = row->sound && row->sum > 0 && isfinite(row->sum);
    }
    if (row->how->kind == STK_ANSWER_LIST || row->how->kind == STK_ANSWER_FLAGS) {
        stk_labels_choose_set(a->rule, row->values, a->class_count, a->exclusive, row->chosen);
    }
}

/*
 * Appends what "%.9g" would print, but faster: printf's exact arithmetic would be most of the time
 * of a large file. False where rounding could change the last digit, and for numbers that are not
 * below 1 or too small for an exact power of ten.
 */
static bool append_quickly(stk_str *out, double value) {
    static const double powers[] = {1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                    1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    int zeros = 0; /* between the point and the first digit */
    while (zeros < 13 && value * powers[zeros] < 1e8) {
        zeros++;
    }
    double scaled = value * powers[zeros];
    double whole = floor(scaled + 0.5);
    if (!(value < 1) || scaled < 1e8 || whole >= 1e9 || fabs(scaled - floor(scaled) - 0.5) < 1e-5) {
        return false;
    }
    char text[24];
    char *end = text + sizeof text;
    char *p = end;
    unsigned long digits = (unsigned long)whole;
    bool powered = zeros > 3; /* 1.5e-05 rather than 0.000015 */
    if (powered) {
        *--p = (char)('0' + (zeros + 1) % 10);
        *--p = (char)('0' + (zeros + 1) / 10);
        *--p = '-';
        *--p = 'e';
    }
    int count = 9;
    for (; digits % 10 == 0; digits /= 10) {
        count--;
    }
    for (int i = count; i > 0; i--, digits /= 10) {
        *--p = (char)('0' + digits % 10);
        if (powered && i == 2) {
            *--p = '.';
        }
    }
    for (int i = 0; !powered && i < zeros; i++) {
        *--p = '0';
    }
    if (!powered) {
        *--p = '.';
        *--p = '0';
    }
    stk_str_append_bytes(out, p, (size_t)(end - p));
    return true;
}

/* Nine digits: each number is off by 5e-10 of itself at most, and so is the sum of a row. */
static void append_number(stk_str *out, double value) {
    if (!append_quickly(out, value)) {
        stk_str_appendf(out, "%.9g", value);
    }
}

/* The number of the class that is named. */
static int label_of(const stk_answer_row *row) {
    static const stk_label_rule likeliest = {STK_LABEL_LIKELIEST, 0, NULL};
    const stk_answers *a = row->answers;
    const stk_label_rule *rule = a->rule != NULL ? a->rule : &likeliest;
    return row->sound ? stk_label_choose(rule, row->values, a->class_count) : 0;
}

static void append_label(stk_str *out, const stk_answer_row *row) {
    stk_csv_append(out, row->answers->classes[label_of(row)]);
}

/* A class and its probability. */
static void append_sure(stk_str *out, const stk_answer_row *row) {
    int label = label_of(row);
    bool known = row->sound && row->sum > 0;
    stk_str cell = {0};
    stk_str_append(&cell, row->answers->classes[label]);
    stk_str_append(&cell, " ");
    append_number(&cell, known ? row->values[label] / row->sum : 1.0 / row->columns);
    stk_csv_append(out, stk_str_text(&cell));
    stk_str_free_part(out, &cell);
}

/* A name in the quotes that a list has. Python takes the other quotes for a name that has them,
 * JSON a bar before them. */
static void append_quoted(stk_str *cell, const char *name, char quote) {
    char mark = quote == '\'' && strchr(name, '\'') != NULL ? '"' : quote;
    stk_str_append_bytes(cell, &mark, mark != '\0');
    for (const char *p = name; *p != '\0'; p++) {
        bool escaped = mark != '\0' && (*p == mark || (*p == '\\' && mark == '"'));
        stk_str_append_bytes(cell, "\\", escaped);
        stk_str_append_bytes(cell, p, 1);
    }
    stk_str_append_bytes(cell, &mark, mark != '\0');
}

/* Names one after another. A cell without any is empty, or has brackets alone. */
static void append_names(stk_str *out, const stk_answer_row *row) {
    const stk_answers *a = row->answers;
    char bracket = row->how->bracket;
    char close = (char)(bracket == '[' ? ']' : bracket == '{' ? '}' : ')');
    char divider[3] = {row->how->divider, bracket != '\0' ? ' ' : '\0', '\0'};
    stk_str cell = {0};
    stk_str_append_bytes(&cell, &bracket, bracket != '\0');
    if (row->how->kind == STK_ANSWER_RANKED) {
        int count = stk_rank_choose(a->rule, row->values, a->class_count, row->how->most,
                                    row->how->stranger, row->best);
        for (int i = 0; i < count; i++) {
            stk_str_append(&cell, i > 0 ? divider : "");
            stk_str_append(&cell, a->classes[row->best[i]]);
        }
    } else {
        bool any = false;
        for (int k = 0; k < a->class_count; k++) {
            if (row->chosen[k]) {
                stk_str_append(&cell, any ? divider : "");
                append_quoted(&cell, a->classes[k], row->how->quote);
                any = true;
            }
        }
    }
    stk_str_append_bytes(&cell, &close, bracket != '\0');
    stk_csv_append(out, stk_str_text(&cell));
    stk_str_free_part(out, &cell);
}

void stk_answer_append(stk_str *out, const stk_answer_row *row) {
    const stk_answers *a = row->answers;
    switch (row->how->kind) {
    case STK_ANSWER_POSITIVE: {
        double p = row->sound ? row->values[row->how->positive] / row->sum : 1.0 / a->class_count;
        append_number(out, a->rule != NULL ? stk_label_step(a->rule, p) : p);
        break;
    }
    case STK_ANSWER_LIST:
    case STK_ANSWER_RANKED:
        append_names(out, row);
        break;
    case STK_ANSWER_SURE:
        append_sure(out, row);
        break;
    case STK_ANSWER_NUMBERS:
    case STK_ANSWER_SCORES:
    case STK_ANSWER_FLAGS:
        stk_answer_append_class(out, row, 0);
        break;
    default:
        append_label(out, row);
    }
}

void stk_answer_append_number(stk_str *out, const stk_answer_row *row, int class_index) {
    if (sums_to_one(row)) {
        bool shared = row->sum > 0 && isfinite(row->sum) && row->sound;
        double share = shared ? row->values[class_index] / row->sum : 1.0 / row->columns;
        append_number(out, row->left * share);
    } else {
        append_number(out, isfinite(row->values[class_index]) ? row->values[class_index] : 0);
    }
}

void stk_answer_append_class(stk_str *out, const stk_answer_row *row, int class_index) {
    if (class_index < 0) {
        append_number(out, row->unseen);
    } else if (row->how->kind == STK_ANSWER_FLAGS) {
        stk_str_append(out, row->chosen[class_index] ? "1" : "0");
    } else {
        stk_answer_append_number(out, row, class_index);
    }
}
