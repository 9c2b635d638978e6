/* submission.c - writes probabilities as rows of text. */
#include "predict/submission.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/files/file.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/text/csv.h"

/* Bytes of text that are collected before they are written. */
#define FLUSH_BYTES ((size_t)256 * 1024)

#define NO_CLASS (-1)

/* What each column of the file holds. */
typedef struct columns {
    const char *const *names; /* borrowed: the header of the sample file; NULL without one */
    int count;
    int id;        /* which column is the id */
    bool labels;   /* the one other column is the label */
    int *classes;  /* owned: the class of each column, or NO_CLASS */
    int matched;   /* columns that are a class */
    int unmatched; /* columns that are neither a class nor the id */
    const char *first_unmatched;
    const char *first_missing; /* the first class without a column; NULL: all have one */
} columns;

static void free_columns(columns *c) {
    stk_mem_free(c->classes);
    memset(c, 0, sizeof *c);
}

/* Appends the name in small letters and without outer blanks, with its NUL. */
static void append_folded(stk_str *out, const char *name) {
    while (isspace((unsigned char)*name)) {
        name++;
    }
    size_t length = strlen(name);
    while (length > 0 && isspace((unsigned char)name[length - 1])) {
        length--;
    }
    for (size_t i = 0; i < length; i++) {
        char small = (char)tolower((unsigned char)name[i]);
        stk_str_append_bytes(out, &small, 1);
    }
    stk_str_append_bytes(out, "", 1);
}

static void take_class(columns *c, int column, size_t class_index, bool *taken) {
    if (!taken[class_index]) {
        taken[class_index] = true;
        c->classes[column] = (int)class_index;
        c->matched++;
    }
}

static bool match_exactly(columns *c, const char *const *classes, int class_count, bool *taken) {
    stk_map map = {0};
    bool ok = true;
    for (int k = 0; ok && k < class_count; k++) {
        bool added;
        ok = stk_map_add(&map, classes[k], (size_t)k, &added);
    }
    for (int i = 0; ok && i < c->count; i++) {
        size_t found;
        if (i != c->id && stk_map_find(&map, c->names[i], &found)) {
            take_class(c, i, found, taken);
        }
    }
    stk_map_free(&map);
    return ok;
}

/* The same for columns that are left over, ignoring case and outer blanks. */
static bool match_loosely(columns *c, const char *const *classes, int class_count, bool *taken) {
    stk_map map = {0};
    stk_str folded = {0};
    for (int k = 0; k < class_count; k++) {
        append_folded(&folded, classes[k]);
    }
    for (int i = 0; i < c->count; i++) {
        append_folded(&folded, c->names[i]);
    }
    bool ok = stk_str_ok(&folded);
    const char *at = stk_str_text(&folded);
    for (int k = 0; ok && k < class_count; k++) {
        bool added;
        ok = taken[k] || stk_map_add(&map, at, (size_t)k, &added);
        at += strlen(at) + 1;
    }
    for (int i = 0; ok && i < c->count; i++) {
        size_t found;
        if (i != c->id && c->classes[i] == NO_CLASS && stk_map_find(&map, at, &found)) {
            take_class(c, i, found, taken);
        }
        at += strlen(at) + 1;
    }
    stk_map_free(&map);
    stk_str_free(&folded);
    return ok;
}

/* Finds the class of every column of the sample file. */
static stk_status match_columns(columns *c, const stk_dataset *dataset, const char *const *classes,
                                int class_count, stk_error *err) {
    *c = (columns){.names = dataset->template_header,
                   .count = dataset->template_columns,
                   .id = dataset->template_id,
                   .labels = dataset->template_columns == 2};
    if (c->names == NULL || c->labels) {
        return STK_OK;
    }
    bool *taken = stk_mem_new((size_t)class_count, sizeof *taken);
    c->classes = stk_mem_new((size_t)c->count, sizeof *c->classes);
    bool ok = taken != NULL && c->classes != NULL;
    for (int i = 0; ok && i < c->count; i++) {
        c->classes[i] = NO_CLASS;
    }
    ok = ok && match_exactly(c, classes, class_count, taken);
    if (ok && c->matched < c->count - 1) {
        ok = match_loosely(c, classes, class_count, taken);
    }
    for (int i = 0; ok && i < c->count; i++) {
        if (i != c->id && c->classes[i] == NO_CLASS) {
            c->first_unmatched = c->unmatched++ == 0 ? c->names[i] : c->first_unmatched;
        }
    }
    for (int k = 0; ok && c->first_missing == NULL && k < class_count; k++) {
        c->first_missing = taken[k] ? NULL : classes[k];
    }
    stk_mem_free(taken);
    if (!ok) {
        free_columns(c);
        return STK_FAIL_MEMORY(err, "the columns of the submission");
    }
    return STK_OK;
}

/* "a, b, c ..." of the first names, without number `except`. */
static const char *some_names(const char *const *names, int count, int except, char *buf,
                              size_t size) {
    size_t length = 0;
    int told = 0;
    buf[0] = '\0';
    for (int i = 0; i < count && told < 4 && length < size; i++) {
        if (i != except) {
            length += (size_t)snprintf(buf + length, size - length, "%s%.60s", told > 0 ? ", " : "",
                                       told == 3 ? "..." : names[i]);
            told++;
        }
    }
    return buf;
}

static stk_status check_columns(const columns *c, const stk_dataset *dataset,
                                const char *const *classes, int class_count, stk_error *err) {
    char columns_text[300];
    char classes_text[300];
    if (c->names == NULL || c->labels || c->matched > 0) {
        return STK_OK;
    }
    return STK_FAIL(err, STK_ERR_DATA,
                    "no column of the sample submission in %s is a class: its columns beside '%s' "
                    "are %s, the classes are %s; name the id column with --id-column or the label "
                    "column with --label-column, or mend the sample file",
                    dataset->root, c->names[c->id],
                    some_names(c->names, c->count, c->id, columns_text, sizeof columns_text),
                    some_names(classes, class_count, -1, classes_text, sizeof classes_text));
}

stk_status stk_submission_check(const stk_dataset *dataset, const stk_events *events,
                                stk_error *err) {
    columns c;
    if (dataset->template_header == NULL || dataset->class_count == 0) {
        return STK_OK;
    }
    stk_status status = match_columns(&c, dataset, dataset->classes, dataset->class_count, err);
    if (status != STK_OK) {
        return status;
    }
    status = check_columns(&c, dataset, dataset->classes, dataset->class_count, err);
    if (status == STK_OK && !c.labels && c.first_missing != NULL) {
        stk_events_warning(events,
                           "the sample submission has no column for %d of %d classes (first: %s); "
                           "their probability goes to the others",
                           dataset->class_count - c.matched, dataset->class_count, c.first_missing);
    }
    if (status == STK_OK && !c.labels && c.unmatched > 0) {
        stk_events_warning(events,
                           "%d column%s of the sample submission %s no class of the training data "
                           "(first: %s) and will be 0",
                           c.unmatched, c.unmatched == 1 ? "" : "s",
                           c.unmatched == 1 ? "is" : "are", c.first_unmatched);
    }
    free_columns(&c);
    return status;
}

/* Whether every number of a row can be a probability. */
static bool is_sound(const double *row, int class_count) {
    for (int k = 0; k < class_count; k++) {
        if (!isfinite(row[k]) || row[k] < 0) {
            return false;
        }
    }
    return true;
}

static const char *label_of(const double *row, const stk_answers *a) {
    static const stk_label_rule likeliest = {STK_LABEL_LIKELIEST, 0, NULL};
    const stk_label_rule *rule = a->rule != NULL ? a->rule : &likeliest;
    bool sound = is_sound(row, a->class_count);
    return a->classes[sound ? stk_label_choose(rule, row, a->class_count) : 0];
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

/* One row as the sample file wants it. */
static void append_template_row(stk_str *out, const columns *c, const char *id, const double *row,
                                const stk_answers *a) {
    double sum = 0;
    bool sound = is_sound(row, a->class_count);
    for (int i = 0; !c->labels && i < c->count; i++) {
        sum += c->classes[i] != NO_CLASS ? row[c->classes[i]] : 0.0;
    }
    sound = sound && sum > 0 && isfinite(sum);
    for (int i = 0; i < c->count; i++) {
        stk_str_append(out, i > 0 ? "," : "");
        if (i == c->id) {
            stk_csv_append(out, id);
        } else if (c->labels) {
            stk_csv_append(out, label_of(row, a));
        } else if (c->classes[i] == NO_CLASS) {
            stk_str_append(out, "0");
        } else {
            append_number(out, sound ? row[c->classes[i]] / sum : 1.0 / c->matched);
        }
    }
}

/* One row of the file that is made without a sample: id, label, every class. */
static void append_plain_row(stk_str *out, const char *id, const double *row,
                             const stk_answers *a) {
    double sum = 0;
    for (int k = 0; k < a->class_count; k++) {
        sum += row[k];
    }
    bool sound = is_sound(row, a->class_count) && sum > 0 && isfinite(sum);
    stk_csv_append(out, id);
    stk_str_append(out, ",");
    stk_csv_append(out, label_of(row, a));
    for (int k = 0; k < a->class_count; k++) {
        stk_str_append(out, ",");
        append_number(out, sound ? row[k] / sum : 1.0 / a->class_count);
    }
}

static void append_header(stk_str *out, const columns *c, const stk_dataset *dataset,
                          const char *const *classes, int class_count) {
    bool clash = false;
    for (int i = 0; i < c->count; i++) {
        stk_str_append(out, i > 0 ? "," : "");
        stk_csv_append(out, c->names[i]);
    }
    if (c->names != NULL) {
        return;
    }
    for (int k = 0; k < class_count; k++) {
        clash = clash || stk_str_equal_nocase(classes[k], dataset->id_name) ||
                stk_str_equal_nocase(classes[k], dataset->label_name);
    }
    stk_csv_append(out, dataset->id_name);
    stk_str_append(out, ",");
    stk_csv_append(out, dataset->label_name);
    for (int k = 0; k < class_count; k++) {
        stk_str name = {0};
        stk_str_append(&name, clash ? "p_" : "");
        stk_str_append(&name, classes[k]);
        stk_str_append(out, ",");
        stk_csv_append(out, stk_str_text(&name));
        stk_str_free_part(out, &name);
    }
}

/* Writes the collected text and empties it. */
static stk_status flush(stk_file_writer *writer, stk_str *out, stk_error *err) {
    if (!stk_str_ok(out)) {
        return STK_FAIL_MEMORY(err, "the submission");
    }
    stk_status status = stk_file_append(writer, stk_str_text(out), out->length, err);
    stk_str_clear(out);
    return status;
}

static stk_status write_rows(const char *path, const stk_file_how *how, const stk_dataset *dataset,
                             const stk_answers *a, stk_halt late, stk_error *err) {
    columns c = {0};
    stk_str out = {0};
    stk_file_writer *writer = NULL;
    if (a->class_count < 1) {
        return STK_FAIL(err, STK_ERR_INTERNAL, "cannot write %s: there are no classes", path);
    }
    stk_status status = match_columns(&c, dataset, a->classes, a->class_count, err);
    STK_THEN(status, check_columns(&c, dataset, a->classes, a->class_count, err));
    STK_THEN(status, stk_file_create_how(&writer, path, how, err));
    if (status == STK_OK) {
        append_header(&out, &c, dataset, a->classes, a->class_count);
        stk_str_append(&out, "\n");
    }
    for (size_t i = 0; status == STK_OK && i < dataset->test.count; i++) {
        const double *row = a->probs + i * (size_t)a->class_count;
        const char *id = dataset->test.items[i].id;
        if (c.names != NULL) {
            append_template_row(&out, &c, id, row, a);
        } else {
            append_plain_row(&out, id, row, a);
        }
        stk_str_append(&out, "\n");
        if (out.length >= FLUSH_BYTES || !stk_str_ok(&out)) {
            status = flush(writer, &out, err);
            if (status == STK_OK && late.asked != NULL && late.asked(late.user)) {
                status = STK_FAIL(err, STK_ERR_STOPPED, "there was no time to write %s", path);
            }
        }
    }
    STK_THEN(status, flush(writer, &out, err));
    if (status == STK_OK) {
        status = stk_file_commit(writer, err);
    } else {
        stk_file_discard(writer);
    }
    stk_str_free(&out);
    free_columns(&c);
    return status;
}

stk_status stk_submission_write_how(const char *path, const stk_file_how *how,
                                    const stk_dataset *dataset, const stk_answers *answers,
                                    stk_error *err) {
    stk_halt never = {0};
    return write_rows(path, how, dataset, answers, never, err);
}

stk_status stk_submission_write_unless(const char *path, const stk_dataset *dataset,
                                       const stk_answers *answers, stk_halt late, stk_error *err) {
    return write_rows(path, NULL, dataset, answers, late, err);
}
