/* submission.c - which column of the file takes what; writes the file row by row. */
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
#include "predict/answer_row.h"

/* Bytes of text that are collected before they are written. */
#define FLUSH_BYTES ((size_t)256 * 1024)

/* Bytes of a header that is told as it is. */
#define LONGEST_HEADER 60

#define NO_CLASS (-1)

/* What each column of the file holds. */
typedef struct columns {
    const char *const *names; /* borrowed: the header of the sample file; NULL without one */
    int count;
    int id;            /* which column is the id */
    int kept;          /* a column whose cells are those of the sample file; -1: none */
    bool single;       /* the one other column has the whole answer */
    char separator[2]; /* between the cells */
    bool each;         /* without a sample file: a column for each class */
    stk_answer answer;
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

/* Whether rows of this data set, which asks for nothing, can take what the models' competition
 * takes: its sample file has one column for answers, or several. A file that is made without a
 * sample has a column for names and one for each number. */
static bool can_take(const stk_dataset *dataset, const stk_answer *answer, int class_count) {
    int answers = dataset->template_columns - 1 - (dataset->template_kept >= 0);
    bool named = answer->kind == STK_ANSWER_LABEL || answer->kind == STK_ANSWER_LIST ||
                 answer->kind == STK_ANSWER_RANKED || answer->kind == STK_ANSWER_SURE;
    if (dataset->template_header == NULL) {
        return named || answer->kind == STK_ANSWER_NUMBERS;
    }
    bool one = named || answer->kind == STK_ANSWER_POSITIVE ||
               (class_count == 1 && answer->kind != STK_ANSWER_PROBABILITIES);
    return answers == 1 ? one : !named && answer->kind != STK_ANSWER_POSITIVE;
}

stk_answer stk_submission_answer(const stk_dataset *dataset, const stk_answers *a) {
    bool several = dataset->template_columns > 2 && dataset->template_kept < 0;
    bool asks = dataset->task != STK_TASK_AUTO;
    if (asks || (a->trained != NULL && can_take(dataset, a->trained, a->class_count))) {
        stk_answer answer = asks ? dataset->answer : *a->trained;
        bool known = answer.positive < a->class_count;
        answer.positive = known ? answer.positive : a->class_count - 1;
        return answer;
    }
    return (stk_answer){.kind = a->task == STK_TASK_REGRESSION   ? STK_ANSWER_NUMBERS
                                : a->task == STK_TASK_MULTILABEL ? STK_ANSWER_LIST
                                : several                        ? STK_ANSWER_PROBABILITIES
                                                                 : STK_ANSWER_LABEL,
                        .divider = ' ',
                        .positive = a->class_count - 1,
                        .stranger = -1};
}

/* Whether a file without a sample has a column for the whole answer: not where the answer is one
 * column for each label or number. */
static bool has_answer_column(stk_answer_kind kind) {
    return kind != STK_ANSWER_NUMBERS && kind != STK_ANSWER_SCORES && kind != STK_ANSWER_FLAGS;
}

/* The separator of the sample file, where no name holds it: cells are quoted for commas only. */
static char separator_of(const stk_dataset *dataset, const stk_answers *answers) {
    char separator = dataset->template_header != NULL ? dataset->template_separator : '\0';
    bool fits = separator != '\0' && answers->task != STK_TASK_MULTILABEL;
    for (int k = 0; fits && k < answers->class_count; k++) {
        fits = strchr(answers->classes[k], separator) == NULL;
    }
    for (int i = 0; fits && i < dataset->template_columns; i++) {
        fits = strchr(dataset->template_header[i], separator) == NULL;
    }
    for (size_t i = 0; fits && i < dataset->row_count; i++) {
        const stk_row *row = &dataset->rows[i];
        fits = strchr(row->id, separator) == NULL &&
               (row->kept == NULL || strchr(row->kept, separator) == NULL);
    }
    return fits || separator == ',' ? separator : ',';
}

/* Finds the class of every column of the sample file. */
static stk_status match_columns(columns *c, const stk_dataset *dataset, const stk_answers *answers,
                                stk_error *err) {
    const char *const *classes = answers->classes;
    int class_count = answers->class_count;
    *c = (columns){.names = dataset->template_header,
                   .count = dataset->template_columns,
                   .id = dataset->template_id,
                   .kept = dataset->template_kept,
                   .separator = {separator_of(dataset, answers)},
                   .each = answers->ensemble == NULL || answers->ensemble->sum.kept == 0,
                   .answer = stk_submission_answer(dataset, answers)};
    c->each = c->each || !has_answer_column(c->answer.kind);
    c->single = c->count - (c->kept >= 0) == 2 && c->answer.kind != STK_ANSWER_PROBABILITIES;
    if (c->names == NULL || c->single) {
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
        if (i != c->id && i != c->kept && c->classes[i] == NO_CLASS) {
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
    bool numbers = c->answer.kind == STK_ANSWER_NUMBERS && c->unmatched > 0;
    if (c->names == NULL || c->single || (c->matched > 0 && !numbers)) {
        return STK_OK;
    }
    if (numbers && c->matched > 0) {
        return STK_FAIL(err, STK_ERR_DATA,
                        "the sample submission in %s wants numbers in the column '%s', and no "
                        "column of the training data is called so (these are %s); mend the sample "
                        "file, or pass --sample-submission none to do without it",
                        dataset->root, c->first_unmatched,
                        some_names(classes, class_count, -1, classes_text, sizeof classes_text));
    }
    return STK_FAIL(err, STK_ERR_DATA,
                    "no column of the sample submission in %s is a class: its columns beside '%s' "
                    "are %s, the classes are %s; name the id column with --id-column or the label "
                    "column with --label-column, or mend the sample file",
                    dataset->root, c->names[c->id],
                    some_names(c->names, c->count, c->id, columns_text, sizeof columns_text),
                    some_names(classes, class_count, -1, classes_text, sizeof classes_text));
}

/* Columns that are no class: a log loss punishes a probability of 0 hard, so they get a little. */
static void warn_unseen(const columns *c, const stk_answers *answers, const stk_events *events) {
    bool one = c->unmatched == 1;
    double share = stk_answer_unseen(c->answer.kind, answers->pictures, c->matched, c->unmatched);
    char gets[120] = "and will be 0";
    if (share > 0) {
        snprintf(gets, sizeof gets, "and get%s %.3g%s in every row, as if %s had one picture",
                 one ? "s" : "", share, one ? "" : " each", one ? "it" : "each");
    }
    stk_events_warning(events,
                       "%d column%s of the sample submission %s no class of the training data "
                       "(first: %s) %s",
                       c->unmatched, one ? "" : "s", one ? "is" : "are", c->first_unmatched, gets);
}

stk_status stk_submission_check(const stk_dataset *dataset, const stk_events *events,
                                stk_error *err) {
    columns c;
    if (dataset->template_header == NULL || dataset->class_count == 0) {
        return STK_OK;
    }
    const stk_answers own = {.classes = dataset->classes,
                             .class_count = dataset->class_count,
                             .task = dataset->task,
                             .pictures = dataset->train.count};
    stk_status status = match_columns(&c, dataset, &own, err);
    if (status != STK_OK) {
        return status;
    }
    status = check_columns(&c, dataset, dataset->classes, dataset->class_count, err);
    bool sums = c.answer.kind == STK_ANSWER_PROBABILITIES;
    if (status == STK_OK && sums && c.first_missing != NULL) {
        stk_events_warning(events,
                           "the sample submission has no column for %d of %d classes (first: %s); "
                           "their probability goes to the others",
                           dataset->class_count - c.matched, dataset->class_count, c.first_missing);
    }
    if (status == STK_OK && !c.single && c.unmatched > 0) {
        warn_unseen(&c, &own, events);
    }
    free_columns(&c);
    return status;
}

/* Whether a class is called like another column of a file without a sample; then columns of classes
 * begin with "p_". */
static bool has_clash(stk_answer_kind kind, const stk_dataset *dataset, const char *const *classes,
                      int class_count) {
    bool clash = false;
    for (int k = 0; k < class_count; k++) {
        clash = clash || stk_str_equal_nocase(classes[k], dataset->id_name) ||
                (has_answer_column(kind) && stk_str_equal_nocase(classes[k], dataset->label_name));
    }
    return clash;
}

static void append_header(stk_str *out, const columns *c, const stk_dataset *dataset,
                          const char *const *classes, int class_count) {
    for (int i = 0; i < c->count; i++) {
        stk_str_append(out, i > 0 ? c->separator : "");
        stk_csv_append(out, c->names[i]);
    }
    if (c->names != NULL) {
        return;
    }
    bool clash = has_clash(c->answer.kind, dataset, classes, class_count);
    stk_csv_append(out, dataset->id_name);
    if (has_answer_column(c->answer.kind)) {
        stk_str_append(out, ",");
        stk_csv_append(out, dataset->label_name);
    }
    for (int k = 0; c->each && k < class_count; k++) {
        stk_str name = {0};
        stk_str_append(&name, clash ? "p_" : "");
        stk_str_append(&name, classes[k]);
        stk_str_append(out, ",");
        stk_csv_append(out, stk_str_text(&name));
        stk_str_free_part(out, &name);
    }
}

/* The header of many columns: the id, and the first and the last of the others. */
static void shorten_header(const columns *c, const stk_dataset *dataset, char *header,
                           size_t size) {
    const char *const *names = c->names != NULL ? c->names : dataset->classes;
    int count = c->names != NULL ? c->count : dataset->class_count;
    const char *first = NULL;
    const char *last = NULL;
    int others = 0;
    for (int i = 0; i < count; i++) {
        if (c->names == NULL || (i != c->id && i != c->kept)) {
            first = first != NULL ? first : names[i];
            last = names[i];
            others++;
        }
    }
    bool labelled = c->names == NULL && has_answer_column(c->answer.kind);
    bool clash =
        c->names == NULL && has_clash(c->answer.kind, dataset, names, dataset->class_count);
    snprintf(header, size, "%.60s%s%.60s, %d column%s from %s%.60s to %s%.60s",
             c->names != NULL ? names[c->id] : dataset->id_name, labelled ? ", " : "",
             labelled ? dataset->label_name : "", others, others == 1 ? "" : "s", clash ? "p_" : "",
             first, clash ? "p_" : "", last);
}

stk_status stk_submission_describe(const stk_dataset *dataset, char *header, size_t size,
                                   int *columns_count, stk_error *err) {
    const columns c = {.names = dataset->template_header,
                       .count = dataset->template_columns,
                       .id = dataset->template_id,
                       .kept = dataset->template_kept,
                       .separator = ",",
                       .each = !has_answer_column(dataset->answer.kind) ||
                               stk_predictions_kept(&dataset->answer, dataset->test.count,
                                                    (size_t)dataset->class_count) == 0,
                       .answer = dataset->answer};
    stk_str text = {0};
    append_header(&text, &c, dataset, dataset->classes, dataset->class_count);
    if (!stk_str_ok(&text)) {
        stk_str_free(&text);
        return STK_FAIL_MEMORY(err, "the columns of the submission");
    }
    *columns_count = c.names != NULL ? c.count
                                     : 1 + has_answer_column(c.answer.kind) +
                                           (c.each ? dataset->class_count : 0);
    if (text.length <= LONGEST_HEADER || *columns_count < 3) {
        snprintf(header, size, "%s", stk_str_text(&text));
    } else {
        shorten_header(&c, dataset, header, size);
    }
    stk_str_free(&text);
    return STK_OK;
}

/* One row as the sample file wants it. */
static void append_template_row(stk_str *out, const columns *c, const stk_row *row,
                                const stk_answer_row *answer) {
    for (int i = 0; i < c->count; i++) {
        stk_str_append(out, i > 0 ? c->separator : "");
        if (i == c->id) {
            stk_csv_append(out, row->id);
        } else if (i == c->kept) {
            stk_csv_append(out, row->kept != NULL ? row->kept : "");
        } else if (c->single) {
            stk_answer_append(out, answer);
        } else {
            stk_answer_append_class(out, answer, c->classes[i]);
        }
    }
}

/* One row of the file that is made without a sample: id, answer, every class. */
static void append_plain_row(stk_str *out, const columns *c, const stk_row *row,
                             const stk_answer_row *answer) {
    stk_csv_append(out, row->id);
    if (has_answer_column(answer->how->kind)) {
        stk_str_append(out, ",");
        stk_answer_append(out, answer);
    }
    for (int k = 0; c->each && k < answer->answers->class_count; k++) {
        stk_str_append(out, ",");
        stk_answer_append_class(out, answer, k);
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
    stk_answer_row answer = {.answers = a, .how = &c.answer};
    stk_status status = match_columns(&c, dataset, a, err);
    STK_THEN(status, check_columns(&c, dataset, a->classes, a->class_count, err));
    STK_THEN(status, stk_answer_row_open(&answer, c.classes, c.count, c.unmatched, err));
    STK_THEN(status, stk_file_create_how(&writer, path, how, err));
    if (status == STK_OK) {
        append_header(&out, &c, dataset, a->classes, a->class_count);
        stk_str_append(&out, "\n");
    }
    for (size_t i = 0; status == STK_OK && i < dataset->row_count; i++) {
        const stk_row *row = &dataset->rows[i];
        stk_answer_row_take(&answer, row->first, row->count);
        if (c.names != NULL) {
            append_template_row(&out, &c, row, &answer);
        } else {
            append_plain_row(&out, &c, row, &answer);
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
    stk_answer_row_close(&answer);
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
