/* fuzz_csv.c - what the CSV reader accepts, written again, reads back cell by cell the same. */
#include "fuzz.h"

#include <string.h>

#include "base/csv.h"

static const fuzz_seed seeds[] = {
    FUZZ_SEED("id,label\n1,cat\n2,dog\n"),
    FUZZ_SEED("\xEF\xBB\xBFid,label\r\n\"a,b\",\"say \"\"hi\"\"\"\r\n\r\n\"two\nlines\",\r\n"),
    FUZZ_SEED("a\rb\rc"),
    FUZZ_SEED("id,c0,c1,c2\nx,0.25,0.5,0.25\ny,,,\n"),
    FUZZ_SEED("\"\",\"\"\n\"\",x\n"),
};
FUZZ_PLAN(seeds)

/*
 * An empty cell that is a row of its own is a blank line, which readers pass over; and text that
 * itself begins with a byte order mark loses it.
 */
static bool cannot_read_back(const stk_csv *csv) {
    if (strncmp(csv->cells[0], "\xEF\xBB\xBF", 3) == 0) {
        return true;
    }
    for (size_t i = 0; csv->columns == 1 && i <= csv->rows; i++) {
        if (csv->cells[i][0] == '\0') {
            return true;
        }
    }
    return false;
}

static void write_table(const stk_csv *csv, stk_str *out) {
    for (size_t i = 0; i < (csv->rows + 1) * csv->columns; i++) {
        stk_csv_append(out, csv->cells[i]);
        stk_str_append(out, (i + 1) % csv->columns == 0 ? "\r\n" : ",");
    }
    FUZZ_REQUIRE(stk_str_ok(out));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    stk_csv csv;
    stk_csv again;
    stk_error err = {0};
    stk_str out = {0};
    if (stk_csv_parse("input", (const char *)data, size, &csv, &err) != STK_OK) {
        FUZZ_REQUIRE(csv.buffer == NULL && err.status == STK_ERR_DATA);
        return 0;
    }
    FUZZ_REQUIRE(csv.columns > 0 && csv.header == csv.cells);
    for (size_t i = 1; i <= csv.rows; i++) {
        FUZZ_REQUIRE(csv.lines[i] > csv.lines[i - 1]);
    }
    if (!cannot_read_back(&csv)) {
        write_table(&csv, &out);
        FUZZ_REQUIRE(stk_csv_parse("again", out.text, out.length, &again, &err) == STK_OK);
        FUZZ_REQUIRE(again.rows == csv.rows && again.columns == csv.columns);
        for (size_t i = 0; i < (csv.rows + 1) * csv.columns; i++) {
            FUZZ_REQUIRE(strcmp(again.cells[i], csv.cells[i]) == 0);
        }
        stk_csv_free(&again);
        stk_str_free(&out);
    }
    stk_csv_free(&csv);
    return 0;
}
