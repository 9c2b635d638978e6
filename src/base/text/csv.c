/*
 * csv.c - reads a table in one pass. The pass drops quotes and delimiters and moves each field left
 * into the free space, so that the fields of a row lie one after another.
 */
#include "base/text/csv.h"

#include <stdint.h>
#include <string.h>

#include "base/error.h"
#include "base/files/file.h"
#include "base/mem.h"

typedef struct csv_reader {
    const char *name; /* for errors */
    char *at;         /* next character to read */
    char *end;
    char *out; /* where the next decoded character goes; never right of at */
    char separator;
    size_t line;
    size_t starts_capacity;
    size_t lines_capacity;
} csv_reader;

static stk_status quoted_field(csv_reader *r, stk_error *err) {
    size_t start = r->line;
    r->at++;
    for (;;) {
        if (r->at >= r->end) {
            return STK_FAIL(err, STK_ERR_DATA,
                            "%s, line %zu: a quote opens here and never closes; close it or double "
                            "it if it is part of the text",
                            r->name, start);
        }
        char c = *r->at++;
        if (c == '"') {
            if (r->at < r->end && *r->at == '"') {
                r->at++;
            } else {
                return STK_OK;
            }
        }
        r->line += c == '\n';
        *r->out++ = c;
    }
}

/* Passes one line break: LF, CRLF, or the lone CR of old files. */
static void skip_break(csv_reader *r) {
    bool cr = *r->at++ == '\r';
    if (cr && r->at < r->end && *r->at == '\n') {
        r->at++;
    }
    r->line++;
}

/* One field up to and with its delimiter; *last says that the row ends with it. */
static stk_status read_field(csv_reader *r, bool *last, stk_error *err) {
    if (r->at < r->end && *r->at == '"') {
        stk_status status = quoted_field(r, err);
        if (status != STK_OK) {
            return status;
        }
    }
    while (r->at < r->end && *r->at != r->separator && *r->at != '\n' && *r->at != '\r') {
        *r->out++ = *r->at++;
    }
    *last = r->at >= r->end || *r->at != r->separator;
    if (r->at < r->end) {
        if (*last) {
            skip_break(r);
        } else {
            r->at++;
        }
    }
    /* The delimiter has been passed (or the text has its own NUL), so there is room for this. */
    *r->out++ = '\0';
    return STK_OK;
}

static const char *separator_name(char separator) {
    return separator == '\t'  ? "tabs"
           : separator == ';' ? "semicolons"
           : separator == '|' ? "bars"
                              : "commas";
}

/* The end of the quoted text that begins at `at`, its quote included. */
static const char *pass_quotes(const char *at, const char *end) {
    for (at++; at < end; at++) {
        if (*at == '"' && (at + 1 == end || at[1] != '"')) {
            return at + 1;
        }
        at += *at == '"' ? 1 : 0;
    }
    return end;
}

/*
 * The separator by the first line with text in it: the one of the others that stands outside of
 * quotes, if no comma does. Two of them leave it open what separates: then it is the comma.
 */
static char find_separator(const char *text, const char *end) {
    char found = ',';
    bool begins = true; /* a cell begins here, so that a quote is no part of it */
    while (text < end && (*text == '\n' || *text == '\r')) {
        text++;
    }
    while (text < end && *text != '\n' && *text != '\r') {
        if (begins && *text == '"') {
            text = pass_quotes(text, end);
            begins = false;
            continue;
        }
        begins = strchr(",\t;|", *text) != NULL;
        if (*text == ',' || (begins && found != ',' && found != *text)) {
            return ',';
        }
        found = begins ? *text : found;
        text++;
    }
    return found;
}

/* Remembers where a row begins. */
static stk_status begin_row(stk_csv *csv, csv_reader *r, size_t row, stk_error *err) {
    if (row > STK_CSV_ROWS_MAX) {
        return STK_FAIL(err, STK_ERR_DATA,
                        "%s, line %zu: the table has more than %zu rows, more than Stoker reads; "
                        "if it is the right file, divide it",
                        r->name, r->line, STK_CSV_ROWS_MAX);
    }
    if (!STK_RESERVE(csv->starts, r->starts_capacity, row + 1) ||
        !STK_RESERVE(csv->lines, r->lines_capacity, row + 1)) {
        return STK_FAIL_MEMORY(err, r->name);
    }
    csv->starts[row] = (uint32_t)(r->out - csv->buffer);
    csv->lines[row] = (uint32_t)r->line;
    return STK_OK;
}

static stk_status read_row(stk_csv *csv, csv_reader *r, size_t row, stk_error *err) {
    size_t line = r->line;
    size_t fields = 0;
    stk_status status = begin_row(csv, r, row, err);
    for (bool last = false; status == STK_OK && !last; fields++) {
        if (row == 0 && fields == STK_CSV_COLUMNS_MAX) {
            return STK_FAIL(err, STK_ERR_DATA,
                            "%s, line %zu: the header has more than %zu columns, more than Stoker "
                            "reads; is it the right file?",
                            r->name, line, STK_CSV_COLUMNS_MAX);
        }
        status = read_field(r, &last, err);
    }
    if (status == STK_OK && row == 0) {
        csv->columns = fields;
    } else if (status == STK_OK && fields != csv->columns) {
        status = STK_FAIL(err, STK_ERR_DATA,
                          "%s, line %zu: the row has %zu field%s, the header %zu; mend the row or "
                          "put text with %s in quotes",
                          r->name, line, fields, fields == 1 ? "" : "s", csv->columns,
                          separator_name(r->separator));
    }
    return status;
}

/* Finds the names of the columns, which begin the buffer. */
static void point_header(stk_csv *csv) {
    const char *name = csv->buffer + csv->starts[0];
    for (size_t i = 0; i < csv->columns; i++) {
        csv->header[i] = name;
        name = stk_csv_next(name);
    }
}

static size_t line_of(const char *text, const char *place) {
    size_t line = 1;
    for (const char *p = text; p < place; p++) {
        line += *p == '\n';
    }
    return line;
}

/* Takes over buffer, which has a NUL after its size bytes. `any`: looks for the separator. */
static stk_status parse(const char *name, char *buffer, size_t size, bool any, stk_csv *csv,
                        stk_error *err) {
    csv->buffer = buffer;
    csv_reader r = {.name = name,
                    .at = buffer,
                    .end = buffer + size,
                    .out = buffer,
                    .separator = ',',
                    .line = 1};
    if (size >= UINT32_MAX) {
        stk_csv_free(csv);
        return STK_FAIL(err, STK_ERR_DATA,
                        "%s has 4 GiB or more, more than Stoker reads of a table; is it the right "
                        "file? leave out the columns that are not needed",
                        name);
    }
    const char *nul = memchr(buffer, '\0', size);
    if (nul != NULL) {
        size_t line = line_of(buffer, nul);
        stk_csv_free(csv);
        return STK_FAIL(err, STK_ERR_DATA,
                        "%s, line %zu: not a CSV file, for it holds a zero byte (is it UTF-16? "
                        "save it as UTF-8)",
                        name, line);
    }
    if (size >= 3 && memcmp(buffer, "\xEF\xBB\xBF", 3) == 0) {
        r.at += 3;
    }
    r.separator = any ? find_separator(r.at, r.end) : ',';
    csv->separator = r.separator;
    size_t rows = 0;
    stk_status status = STK_OK;
    while (status == STK_OK && r.at < r.end) {
        if (*r.at == '\n' || *r.at == '\r') {
            skip_break(&r);
            continue;
        }
        status = read_row(csv, &r, rows++, err);
    }
    if (status == STK_OK && rows == 0) {
        status = STK_FAIL(err, STK_ERR_DATA, "%s is empty; it needs a header row and data", name);
    }
    if (status == STK_OK) {
        csv->rows = rows - 1;
        csv->header = stk_mem_raw(csv->columns, sizeof *csv->header);
        status = csv->header != NULL ? STK_OK : STK_FAIL_MEMORY(err, name);
    }
    if (status != STK_OK) {
        stk_csv_free(csv);
        return status;
    }
    point_header(csv);
    return STK_OK;
}

stk_status stk_csv_read(const char *path, stk_csv *csv, stk_error *err) {
    char *buffer;
    size_t size;
    memset(csv, 0, sizeof *csv);
    stk_status status = stk_file_read(path, 0, &buffer, &size, err);
    return status == STK_OK ? parse(path, buffer, size, false, csv, err) : status;
}

stk_status stk_csv_parse(const char *name, const char *text, size_t size, stk_csv *csv,
                         stk_error *err) {
    memset(csv, 0, sizeof *csv);
    char *buffer = stk_mem_strndup(text, size);
    return buffer != NULL ? parse(name, buffer, size, false, csv, err) : STK_FAIL_MEMORY(err, name);
}

static stk_status take(const char *name, stk_bytes *bytes, bool any, stk_csv *csv, stk_error *err) {
    memset(csv, 0, sizeof *csv);
    if (!stk_bytes_reserve(bytes, bytes->size + 1)) {
        stk_bytes_free(bytes);
        return STK_FAIL_MEMORY(err, name);
    }
    char *buffer = (char *)bytes->data;
    size_t size = bytes->size;
    memset(bytes, 0, sizeof *bytes);
    buffer[size] = '\0';
    return parse(name, buffer, size, any, csv, err);
}

stk_status stk_csv_take(const char *name, stk_bytes *bytes, stk_csv *csv, stk_error *err) {
    return take(name, bytes, false, csv, err);
}

stk_status stk_csv_take_any(const char *name, stk_bytes *bytes, stk_csv *csv, stk_error *err) {
    return take(name, bytes, true, csv, err);
}

void stk_csv_free(stk_csv *csv) {
    stk_mem_free(csv->buffer);
    stk_mem_free(csv->starts);
    stk_mem_free(csv->lines);
    stk_mem_free(csv->header);
    memset(csv, 0, sizeof *csv);
}

const char *stk_csv_cell(const stk_csv *csv, size_t row, size_t column) {
    const char *cell = csv->buffer + csv->starts[row + 1];
    while (column-- > 0) {
        cell = stk_csv_next(cell);
    }
    return cell;
}

size_t stk_csv_line(const stk_csv *csv, size_t row) {
    return csv->lines[row + 1];
}

const char *stk_csv_next(const char *cell) {
    return cell + strlen(cell) + 1;
}

void stk_csv_trim(stk_csv *csv) {
    static const char blanks[] = " \t\r\n";
    char *from = csv->buffer;
    char *to = csv->buffer; /* never right of from */
    for (size_t row = 0; row <= csv->rows; row++) {
        csv->starts[row] = (uint32_t)(to - csv->buffer);
        for (size_t i = 0; i < csv->columns; i++) {
            size_t whole = strlen(from);
            size_t first = strspn(from, blanks);
            size_t end = whole;
            while (end > first && strchr(blanks, from[end - 1]) != NULL) {
                end--;
            }
            memmove(to, from + first, end - first);
            to += end - first;
            from += whole + 1;
            *to++ = '\0';
        }
    }
    point_header(csv);
}

void stk_csv_shorten(stk_csv *csv, size_t column, void (*shorten)(char *field, void *user),
                     void *user) {
    char *from = csv->buffer + csv->starts[0];
    char *to = from; /* never right of from */
    for (size_t row = 0; row <= csv->rows; row++) {
        csv->starts[row] = (uint32_t)(to - csv->buffer);
        for (size_t i = 0; i < csv->columns; i++) {
            size_t whole = strlen(from);
            if (row > 0 && i == column) {
                shorten(from, user);
            }
            size_t left = strlen(from);
            memmove(to, from, left);
            to += left;
            from += whole + 1;
            *to++ = '\0';
        }
    }
}

static void cut_suffix(char *field, void *user) {
    const char *suffix = *(const char **)user;
    size_t whole = strlen(field);
    size_t cut = strlen(suffix);
    if (whole >= cut && memcmp(field + whole - cut, suffix, cut) == 0) {
        field[whole - cut] = '\0';
    }
}

void stk_csv_cut(stk_csv *csv, size_t column, const char *suffix) {
    stk_csv_shorten(csv, column, cut_suffix, &suffix);
}

size_t stk_csv_column(const stk_csv *csv, const char *name) {
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < csv->columns; i++) {
            if (pass == 0 ? stk_str_equal(csv->header[i], name)
                          : stk_str_equal_nocase(csv->header[i], name)) {
                return i;
            }
        }
    }
    return SIZE_MAX;
}

void stk_csv_append(stk_str *out, const char *field) {
    if (field[strcspn(field, ",\"\r\n")] == '\0') {
        stk_str_append(out, field);
        return;
    }
    stk_str_append(out, "\"");
    for (const char *p = field; *p != '\0'; p++) {
        stk_str_append_bytes(out, *p == '"' ? "\"\"" : p, *p == '"' ? 2 : 1);
    }
    stk_str_append(out, "\"");
}

void stk_csv_format(const stk_csv *csv, stk_str *out) {
    const char *cell = csv->header[0]; /* the cells of all rows stand behind each other */
    for (size_t i = 0; i < (csv->rows + 1) * csv->columns; i++) {
        stk_csv_append(out, cell);
        stk_str_append(out, (i + 1) % csv->columns == 0 ? "\n" : ",");
        cell = stk_csv_next(cell);
    }
}
