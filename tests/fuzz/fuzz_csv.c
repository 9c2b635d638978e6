/* fuzz_csv.c - what the CSV reader accepts, written again, reads back cell by cell the same. */
#include "fuzz.h"

#include <string.h>

#include "base/text/csv.h"

static const fuzz_seed seeds[] = {
    FUZZ_SEED("id,label\n1,cat\n2,dog\n"),
    FUZZ_SEED("\xEF\xBB\xBFid,label\r\n\"a,b\",\"say \"\"hi\"\"\"\r\n\r\n\"two\nlines\",\r\n"),
    FUZZ_SEED("a\rb\rc"),
    FUZZ_SEED("id,c0,c1,c2\nx,0.25,0.5,0.25\ny,,,\n"),
    FUZZ_SEED("\"\",\"\"\n\"\",x\n"),
    FUZZ_SEED("id\tlabel\n1\t\"a\tb\"\n"),
    FUZZ_SEED("\n\"a;\";b\r\n1;2\r\n"),
};
FUZZ_PLAN(seeds)

/*
 * An empty cell that is a row of its own is a blank line, which readers pass over; and text that
 * itself begins with a byte order mark loses it.
 */
static bool cannot_read_back(const stk_csv *csv) {
    bool cannot = strncmp(csv->header[0], "\xEF\xBB\xBF", 3) == 0 ||
                  (csv->columns == 1 && csv->header[0][0] == '\0');
    for (size_t row = 0; csv->columns == 1 && row < csv->rows; row++) {
        cannot = cannot || stk_csv_cell(csv, row, 0)[0] == '\0';
    }
    return cannot;
}

static void write_table(const stk_csv *csv, stk_str *out) {
    const char *cell = csv->header[0]; /* the cells of all rows stand behind each other */
    for (size_t i = 0; i < (csv->rows + 1) * csv->columns; i++) {
        stk_csv_append(out, cell);
        stk_str_append(out, (i + 1) % csv->columns == 0 ? "\r\n" : ",");
        cell = stk_csv_next(cell);
    }
    FUZZ_REQUIRE(stk_str_ok(out));
}

/* The cells of a table with any separator lie within its bytes. */
static void try_any_separator(const uint8_t *data, size_t size) {
    stk_bytes bytes = {0};
    stk_csv csv;
    stk_error err = {0};
    FUZZ_REQUIRE(stk_bytes_reserve(&bytes, size + 1));
    memcpy(bytes.data, data, size);
    bytes.size = size;
    if (stk_csv_take_any("input", &bytes, &csv, &err) != STK_OK) {
        FUZZ_REQUIRE(csv.buffer == NULL && err.status == STK_ERR_DATA);
        return;
    }
    const char *cell = csv.header[0];
    for (size_t i = 1; i < (csv.rows + 1) * csv.columns; i++) {
        cell = stk_csv_next(cell);
    }
    FUZZ_REQUIRE(bytes.data == NULL && csv.columns > 0);
    FUZZ_REQUIRE(cell - csv.buffer <= (ptrdiff_t)size);
    stk_csv_free(&csv);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size > 0) {
        try_any_separator(data, size);
    }
    stk_csv csv;
    stk_csv again;
    stk_error err = {0};
    stk_str out = {0};
    if (stk_csv_parse("input", (const char *)data, size, &csv, &err) != STK_OK) {
        FUZZ_REQUIRE(csv.buffer == NULL && err.status == STK_ERR_DATA);
        return 0;
    }
    FUZZ_REQUIRE(csv.columns > 0 && csv.header[0] == csv.buffer + csv.starts[0]);
    for (size_t i = 1; i <= csv.rows; i++) {
        FUZZ_REQUIRE(csv.lines[i] > csv.lines[i - 1]);
    }
    if (!cannot_read_back(&csv)) {
        write_table(&csv, &out);
        FUZZ_REQUIRE(stk_csv_parse("again", out.text, out.length, &again, &err) == STK_OK);
        FUZZ_REQUIRE(again.rows == csv.rows && again.columns == csv.columns);
        for (size_t i = 0; i < csv.columns; i++) {
            FUZZ_REQUIRE(strcmp(again.header[i], csv.header[i]) == 0);
        }
        for (size_t i = 0; i < csv.rows * csv.columns; i++) {
            size_t row = i / csv.columns;
            size_t column = i % csv.columns;
            FUZZ_REQUIRE(
                strcmp(stk_csv_cell(&again, row, column), stk_csv_cell(&csv, row, column)) == 0);
        }
        stk_csv_free(&again);
        stk_str_free(&out);
    }
    stk_csv_trim(&csv);
    for (size_t i = 0; i < csv.columns; i++) {
        FUZZ_REQUIRE(strlen(csv.header[i]) == 0 || strchr(" \t\r\n", csv.header[i][0]) == NULL);
    }
    stk_csv_free(&csv);
    return 0;
}
