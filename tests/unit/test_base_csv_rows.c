/* test_base_csv_rows.c - tables of rows whose fields come with their names. */
#include "check.h"

#include "base/error.h"
#include "base/mem.h"
#include "base/text/csv_rows.h"

static stk_status put(stk_csv_rows *rows, const char *name, const char *text, stk_error *err) {
    size_t column = 0;
    stk_status status = stk_csv_rows_column_of(rows, name, strlen(name), &column, err);
    return status == STK_OK ? stk_csv_rows_put(rows, column, text, strlen(text), err) : status;
}

/* Three rows: a b, then b c in another order, then none of these. */
static stk_status fill(stk_csv_rows *rows, stk_error *err) {
    stk_status status = stk_csv_rows_begin(rows, 3, err);
    STK_THEN(status, put(rows, "a", "1", err));
    STK_THEN(status, put(rows, "b", "", err));
    STK_THEN(status, stk_csv_rows_end(rows, err));
    STK_THEN(status, stk_csv_rows_begin(rows, 4, err));
    STK_THEN(status, put(rows, "a", "dropped", err));
    STK_THEN(status, stk_csv_rows_begin(rows, 5, err));
    STK_THEN(status, put(rows, "c", "x y", err));
    STK_THEN(status, put(rows, "b", "2", err));
    STK_THEN(status, stk_csv_rows_end(rows, err));
    STK_THEN(status, stk_csv_rows_begin(rows, (uint64_t)1 << 40, err));
    STK_THEN(status, stk_csv_rows_end(rows, err));
    return status;
}

static void rows_become_a_table(void) {
    stk_csv_rows rows = {0};
    stk_csv csv;
    stk_error err = {0};
    REQUIRE_OK(fill(&rows, &err), &err);
    REQUIRE_OK(stk_csv_rows_finish(&rows, &csv, &err), &err);
    CHECK(rows.cells == NULL && rows.column_count == 0);
    CHECK_INT(csv.rows, 3);
    CHECK_INT(csv.columns, 3);
    static const char *const cells[] = {"a", "b", "c", "1", "", "", "", "2", "x y", "", "", ""};
    const char *cell = csv.header[0]; /* all cells stand behind each other */
    for (size_t i = 0; i < sizeof cells / sizeof *cells; i++) {
        CHECK_STR(cell, cells[i]);
        cell = stk_csv_next(cell);
    }
    for (size_t i = 0; i < 9; i++) {
        CHECK_STR(stk_csv_cell(&csv, i / 3, i % 3), cells[3 + i]);
    }
    CHECK_INT(stk_csv_line(&csv, 0), 3);
    CHECK_INT(stk_csv_line(&csv, 1), 5);
    CHECK_INT(stk_csv_line(&csv, 2), UINT32_MAX);
    stk_csv_trim(&csv);
    CHECK_STR(stk_csv_cell(&csv, 1, 2), "x y");
    stk_csv_free(&csv);
}

static void cells_can_be_lists(void) {
    stk_csv_rows rows = {0};
    stk_csv csv;
    stk_error err = {0};
    size_t column = 0;
    REQUIRE_OK(stk_csv_rows_column_of(&rows, "l", 1, &column, &err), &err);
    REQUIRE_OK(stk_csv_rows_begin(&rows, 1, &err), &err);
    CHECK(!stk_csv_rows_has(&rows, column));
    REQUIRE_OK(stk_csv_rows_put(&rows, column, "a", 1, &err), &err);
    CHECK(stk_csv_rows_has(&rows, column));
    REQUIRE_OK(stk_csv_rows_join(&rows, column, "bc", 2, &err), &err);
    REQUIRE_OK(stk_csv_rows_end(&rows, &err), &err);
    REQUIRE_OK(stk_csv_rows_finish(&rows, &csv, &err), &err);
    CHECK_STR(stk_csv_cell(&csv, 0, 0), "a bc");
    stk_csv_free(&csv);
}

static void what_is_no_table_is_refused(void) {
    stk_csv_rows rows = {0};
    stk_csv csv;
    stk_error err = {0};
    rows.name = "t.json";
    CHECK_INT(stk_csv_rows_finish(&rows, &csv, &err), STK_ERR_DATA);
    CHECK_CONTAINS(err.message, "t.json holds no records");
    stk_status status = STK_OK;
    stk_error_clear(&err);
    for (int i = 0; i < 30000 && status == STK_OK; i++) {
        char name[16];
        snprintf(name, sizeof name, "n%d", i);
        status = stk_csv_rows_begin(&rows, 1, &err);
        STK_THEN(status, put(&rows, name, "1", &err));
        STK_THEN(status, stk_csv_rows_end(&rows, &err));
    }
    CHECK_INT(status, STK_ERR_DATA);
    CHECK_CONTAINS(err.message, "no table");
    CHECK(rows.cells_used < 4000000);
    stk_csv_rows_free(&rows);
    stk_error_clear(&err);
    status = stk_csv_rows_begin(&rows, 1, &err);
    for (int i = 0; i < 30000 && status == STK_OK; i++) {
        char name[16];
        snprintf(name, sizeof name, "n%d", i);
        STK_THEN(status, put(&rows, name, "1", &err));
    }
    CHECK_INT(status, STK_ERR_DATA);
    CHECK_CONTAINS(err.message, "different fields");
    stk_csv_rows_free(&rows);
}

static void lack_of_memory_is_told(void) {
    for (int64_t n = 0; n < 40; n++) {
        stk_csv_rows rows = {0};
        stk_csv csv = {0};
        stk_error err = {0};
        stk_mem_fail_after(n);
        stk_status status = fill(&rows, &err);
        STK_THEN(status, stk_csv_rows_finish(&rows, &csv, &err));
        stk_mem_fail_after(-1);
        CHECK(status == STK_OK || status == STK_ERR_MEMORY);
        CHECK(n > 0 || status == STK_ERR_MEMORY);
        CHECK(n < 39 || status == STK_OK);
        stk_csv_free(&csv);
        stk_csv_rows_free(&rows);
    }
}

static void read_text(stk_csv *csv, const char *text) {
    stk_error err = {0};
    REQUIRE_OK(stk_csv_parse("t", text, strlen(text), csv, &err), &err);
}

static void parts_become_a_table(void) {
    stk_csv a;
    stk_csv b;
    stk_csv joined = {0};
    stk_error err = {0};
    read_text(&a, "id,x,x\n1,a,A\n2,b,B\n3,c,C\n");
    read_text(&b, "more,ID\n\nm,7\n");
    const bool taken[] = {true, false, true};
    stk_status status = STK_ERR_MEMORY;
    for (int n = 0; n < 40 && status == STK_ERR_MEMORY; n++) { /* without memory at first */
        stk_mem_fail_after(n);
        status = stk_csv_join("t", (stk_csv_part[]){{&a, taken}, {&b, NULL}, {&a, NULL}}, 3,
                              &joined, &err);
        stk_mem_fail_after(-1);
        CHECK((status == STK_OK) == (joined.buffer != NULL));
    }
    REQUIRE_OK(status, &err);
    CHECK_INT(joined.rows, 6);
    CHECK_INT(joined.columns, 3);
    static const char *const cells[] = {"id", "x", "x", "1", "a", "A", "3", "c", "C", "7", "",
                                        "",   "1", "a", "A", "2", "b", "B", "3", "c", "C"};
    const char *cell = joined.header[0];
    for (size_t i = 0; i < sizeof cells / sizeof *cells; i++) {
        CHECK_STR(cell, cells[i]);
        cell = stk_csv_next(cell);
    }
    CHECK_STR(stk_csv_cell(&joined, 2, 0), "7");
    CHECK_INT(stk_csv_line(&joined, 1), 4);
    CHECK_INT(stk_csv_line(&joined, 2), 3);
    stk_csv_free(&joined);
    /* No row is a table, too. */
    const bool none[] = {false, false, false};
    REQUIRE_OK(stk_csv_join("t", (stk_csv_part[]){{&a, none}}, 1, &joined, &err), &err);
    CHECK_INT(joined.rows, 0);
    CHECK_STR(joined.header[1], "x");
    stk_csv_free(&joined);
    stk_csv_free(&a);
    stk_csv_free(&b);
}

static const check_test tests[] = {
    TEST(rows_become_a_table),    TEST(cells_can_be_lists),   TEST(what_is_no_table_is_refused),
    TEST(lack_of_memory_is_told), TEST(parts_become_a_table),
};

CHECK_MAIN(tests)
