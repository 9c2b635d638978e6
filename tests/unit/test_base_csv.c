/* test_base_csv.c - tables as they come from spreadsheets, editors and accidents. */
#include "check.h"

#include <malloc.h>

#include "base/error.h"
#include "base/files/file.h"
#include "base/mem.h"
#include "base/text/csv.h"

static stk_status parse(const char *text, stk_csv *csv, stk_error *err) {
    memset(err, 0, sizeof *err);
    return stk_csv_parse("t.csv", text, strlen(text), csv, err);
}

static void reads_a_plain_table(void) {
    stk_error err;
    stk_csv csv;
    REQUIRE_OK(parse("id,label\n1,cat\n2,dog", &csv, &err), &err);
    CHECK_INT(csv.rows, 2);
    CHECK_INT(csv.columns, 2);
    CHECK_STR(csv.header[0], "id");
    CHECK_STR(stk_csv_cell(&csv, 0, 1), "cat");
    CHECK_STR(stk_csv_cell(&csv, 1, 1), "dog");
    CHECK_INT(csv.lines[1], 2);
    CHECK_INT(csv.lines[2], 3);
    stk_csv_free(&csv);
    stk_csv_free(&csv);
}

static void reads_quotes_crlf_and_bom(void) {
    stk_error err;
    stk_csv csv;
    REQUIRE_OK(
        parse("\xEF\xBB\xBFid,label\r\n\"a,b\",\"say \"\"hi\"\"\"\r\n\r\n\"two\nlines\",\r\nz,\"\"",
              &csv, &err),
        &err);
    CHECK_STR(csv.header[0], "id");
    CHECK_INT(csv.rows, 3);
    CHECK_STR(stk_csv_cell(&csv, 0, 0), "a,b");
    CHECK_STR(stk_csv_cell(&csv, 0, 1), "say \"hi\"");
    CHECK_STR(stk_csv_cell(&csv, 1, 0), "two\nlines");
    CHECK_STR(stk_csv_cell(&csv, 1, 1), "");
    CHECK_STR(stk_csv_cell(&csv, 2, 1), "");
    CHECK_INT(csv.lines[2], 4);
    CHECK_INT(csv.lines[3], 6);
    stk_csv_free(&csv);
}

static void reads_lone_cr_and_blank_lines(void) {
    stk_error err;
    stk_csv csv;
    REQUIRE_OK(parse("\n\nid,label\r\r1,cat\r2,dog\r\n\n\n", &csv, &err), &err);
    CHECK_INT(csv.rows, 2);
    CHECK_STR(stk_csv_cell(&csv, 1, 0), "2");
    CHECK_INT(csv.lines[0], 3);
    CHECK_INT(csv.lines[1], 5);
    CHECK_INT(csv.lines[2], 6);
    stk_csv_free(&csv);
}

static void a_header_alone_has_no_rows(void) {
    stk_error err;
    stk_csv csv;
    REQUIRE_OK(parse("a,b,", &csv, &err), &err);
    CHECK_INT(csv.rows, 0);
    CHECK_INT(csv.columns, 3);
    CHECK_STR(csv.header[2], "");
    stk_csv_free(&csv);
}

static void finds_columns(void) {
    stk_error err;
    stk_csv csv;
    REQUIRE_OK(parse("Label,label,ID\nx,y,z\n", &csv, &err), &err);
    CHECK_INT(stk_csv_column(&csv, "label"), 1);
    CHECK_INT(stk_csv_column(&csv, "LABEL"), 0);
    CHECK_INT(stk_csv_column(&csv, "id"), 2);
    CHECK(stk_csv_column(&csv, "nothing") == SIZE_MAX);
    stk_csv_free(&csv);
}

static stk_status take_any(const char *text, stk_csv *csv, stk_error *err) {
    stk_bytes bytes = {0};
    memset(err, 0, sizeof *err);
    if (!stk_bytes_reserve(&bytes, strlen(text) + 1)) {
        return STK_FAIL_MEMORY(err, "a test");
    }
    memcpy(bytes.data, text, strlen(text));
    bytes.size = strlen(text);
    stk_status status = stk_csv_take_any("t.csv", &bytes, csv, err);
    CHECK(bytes.data == NULL);
    return status;
}

static void the_first_line_tells_the_separator(void) {
    static const struct {
        const char *text;
        size_t columns;
        const char *last; /* cell of the first row */
    } cases[] = {{"id,label\n1,cat\n", 2, "cat"},
                 {"id\tlabel\n1\tcat, dog\n", 2, "cat, dog"},
                 {"\xEF\xBB\xBFid;label\r\n1;cat\r\n", 2, "cat"},
                 {"\n\r\nid|a|b\n1||x\n", 3, "x"},
                 {"\"a,b\";\"c\"\"|\"\n1;\"x;y\"\n", 2, "x;y"},
                 {"id;a\tb\nx\n", 1, "x"},
                 {"id,a;b\n1,2;3\n", 2, "2;3"},
                 {"\"a\n;\"\tb\n1\t2;3,4\n", 2, "2;3,4"},
                 {"id\nx;y\n", 1, "x;y"},
                 {"\tid\n0\tx\n", 2, "x"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        stk_error err;
        stk_csv csv;
        REQUIRE_OK(take_any(cases[i].text, &csv, &err), &err);
        CHECK_INT(csv.columns, cases[i].columns);
        CHECK_STR(stk_csv_cell(&csv, 0, csv.columns - 1), cases[i].last);
        stk_csv_free(&csv);
    }
    stk_error err;
    stk_csv csv;
    CHECK_INT(take_any("a\tb\n1\t2\t3\n", &csv, &err), STK_ERR_DATA);
    CHECK_CONTAINS(err.message, "line 2");
    CHECK_CONTAINS(err.message, "text with tabs in quotes");
    REQUIRE_OK(parse("a\tb\n1\t2\n", &csv, &err), &err);
    CHECK_INT(csv.columns, 1);
    stk_csv_free(&csv);
}

static void a_column_may_have_no_name(void) {
    stk_error err;
    stk_csv csv;
    REQUIRE_OK(parse(",Id,Category\n0,x,3\n1,y,4\n", &csv, &err), &err);
    CHECK_INT(csv.columns, 3);
    CHECK_STR(csv.header[0], "");
    CHECK_INT(stk_csv_column(&csv, ""), 0);
    CHECK_STR(stk_csv_cell(&csv, 1, 0), "1");
    stk_csv_free(&csv);
}

static void errors_name_the_line(void) {
    static const struct {
        const char *text;
        const char *part;
    } cases[] = {{"a,b\n1,2\n1,2,3\n", "line 3"},
                 {"a,b\r\n\r\n1\r\n", "line 3"},
                 {"a,b\n1,2\n1\n", "has 1 field,"},
                 {"a,b\n\"x\ny\",1\nz\n", "line 4"},
                 {"a,b\n1,\"never\n\nclosed", "line 2"},
                 {"a,\"", "line 1"},
                 {"a,\"b\"\"", "line 1"},
                 {"", "empty"},
                 {"\r\n\n", "empty"},
                 {"\xEF\xBB\xBF", "empty"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        stk_error err;
        stk_csv csv;
        CHECK_INT(parse(cases[i].text, &csv, &err), STK_ERR_DATA);
        CHECK_CONTAINS(err.message, cases[i].part);
        CHECK_CONTAINS(err.message, "t.csv");
        CHECK(csv.buffer == NULL && csv.starts == NULL && csv.header == NULL);
    }
    stk_error err = {0};
    stk_csv csv;
    CHECK_INT(stk_csv_parse("t.csv", "a\nb\0c\n", 6, &csv, &err), STK_ERR_DATA);
    CHECK_CONTAINS(err.message, "line 2");
    CHECK_INT(stk_csv_parse("t.csv", NULL, 0, &csv, NULL), STK_ERR_DATA);
}

static void reads_files(void) {
    stk_error err = {0};
    stk_csv csv;
    char *path = stk_path_join(check_folder(), "x.csv");
    REQUIRE(path != NULL);
    CHECK_INT(stk_csv_read(path, &csv, &err), STK_ERR_STORAGE);
    CHECK_CONTAINS(err.message, "x.csv");
    CHECK(csv.buffer == NULL);
    memset(&err, 0, sizeof err);
    REQUIRE_OK(stk_file_write(path, "a\n1\n", 4, &err), &err);
    REQUIRE_OK(stk_csv_read(path, &csv, &err), &err);
    CHECK_STR(stk_csv_cell(&csv, 0, 0), "1");
    stk_csv_free(&csv);
    stk_mem_free(path);
}

static void what_is_written_reads_back(void) {
    static const char *const fields[] = {"plain", "a,b", "say \"hi\"", "two\nlines", "cr\rlf\r\n",
                                         "",      "\"",  " blanks ",   "\xC3\xA9"};
    size_t count = sizeof fields / sizeof *fields;
    stk_str out = {0};
    for (int row = 0; row < 2; row++) {
        for (size_t i = 0; i < count; i++) {
            stk_str_append(&out, i > 0 ? "," : "");
            stk_csv_append(&out, fields[i]);
        }
        stk_str_append(&out, "\n");
    }
    CHECK_CONTAINS(stk_str_text(&out), "plain,\"a,b\",\"say \"\"hi\"\"\",");
    stk_error err = {0};
    stk_csv csv;
    REQUIRE_OK(stk_csv_parse("t", stk_str_text(&out), out.length, &csv, &err), &err);
    REQUIRE(csv.columns == count && csv.rows == 1);
    for (size_t i = 0; i < count; i++) {
        CHECK_STR(stk_csv_cell(&csv, 0, i), fields[i]);
    }
    stk_csv_free(&csv);
    stk_str_free(&out);
}

static void lack_of_memory_is_told(void) {
    stk_status status = STK_ERR_MEMORY;
    for (int i = 0; i < 50 && status != STK_OK; i++) {
        stk_error err;
        stk_csv csv;
        stk_mem_fail_after(i);
        status = parse("a,b\n1,2\n3,4\n", &csv, &err);
        stk_mem_fail_after(-1);
        CHECK(status == STK_OK || status == STK_ERR_MEMORY);
        stk_csv_free(&csv);
    }
    CHECK_INT(status, STK_OK);
}

/* A text of so many repetitions of a piece. */
static char *repeated(const char *piece, size_t times) {
    size_t length = strlen(piece);
    char *text = stk_mem_raw(times * length + 1, 1);
    for (size_t i = 0; text != NULL && i < times; i++) {
        memcpy(text + i * length, piece, length + 1);
    }
    return text;
}

static void a_table_is_little_larger_than_its_file(void) {
    enum { COLUMNS = 1000, ROWS = 5000 };
    stk_error err;
    stk_csv csv;
    char *row = repeated(",", COLUMNS);
    REQUIRE(row != NULL);
    row[COLUMNS - 1] = '\n';
    char *text = repeated(row, ROWS);
    REQUIRE(text != NULL);
    REQUIRE_OK(parse(text, &csv, &err), &err);
    CHECK_INT(csv.rows, ROWS - 1);
    CHECK_INT(csv.columns, COLUMNS);
    CHECK_STR(stk_csv_cell(&csv, ROWS - 2, COLUMNS - 1), "");
    size_t beside = malloc_usable_size(csv.starts) + malloc_usable_size(csv.lines) +
                    malloc_usable_size((void *)csv.header);
    CHECK(beside < (size_t)COLUMNS * ROWS / 20); /* a pointer for each cell would be 40 MB */
    stk_csv_free(&csv);
    stk_mem_free(text);
    stk_mem_free(row);
}

static void endless_headers_are_refused(void) {
    stk_error err;
    stk_csv csv;
    char *text = repeated(",", STK_CSV_COLUMNS_MAX);
    REQUIRE(text != NULL);
    CHECK_INT(parse(text, &csv, &err), STK_ERR_DATA);
    CHECK_CONTAINS(err.message, "t.csv, line 1: the header has more than 100000 columns");
    text[STK_CSV_COLUMNS_MAX - 1] = '\0';
    REQUIRE_OK(parse(text, &csv, &err), &err);
    CHECK_INT(csv.columns, STK_CSV_COLUMNS_MAX);
    stk_csv_free(&csv);
    stk_mem_free(text);
}

static void blanks_are_cut_off(void) {
    stk_error err;
    stk_csv csv;
    REQUIRE_OK(parse(" id , label\n\t1,\" a b \"\n,  \n x,y", &csv, &err), &err);
    CHECK_STR(stk_csv_cell(&csv, 0, 1), " a b ");
    stk_csv_trim(&csv);
    static const char *const cells[][2] = {{"1", "a b"}, {"", ""}, {"x", "y"}};
    CHECK_STR(csv.header[0], "id");
    CHECK_STR(csv.header[1], "label");
    REQUIRE(csv.rows == 3);
    for (size_t row = 0; row < 3; row++) {
        const char *first = stk_csv_cell(&csv, row, 0);
        CHECK_STR(first, cells[row][0]);
        CHECK_STR(stk_csv_next(first), cells[row][1]);
    }
    stk_csv_free(&csv);
}

static void an_ending_is_cut_off(void) {
    stk_error err;
    stk_csv csv;
    REQUIRE_OK(parse("a.0,b.0,c\n1.0,2.0,x\n,.0,y\n3.0,4.00,z\n", &csv, &err), &err);
    stk_csv_cut(&csv, 1, ".0");
    static const char *const cells[][3] = {{"1.0", "2", "x"}, {"", "", "y"}, {"3.0", "4.00", "z"}};
    CHECK_STR(csv.header[1], "b.0");
    REQUIRE(csv.rows == 3);
    for (size_t row = 0; row < 3; row++) {
        for (size_t column = 0; column < 3; column++) {
            CHECK_STR(stk_csv_cell(&csv, row, column), cells[row][column]);
        }
    }
    stk_str out = {0};
    stk_csv_format(&csv, &out); /* its rows still lie one after another */
    CHECK_STR(stk_str_text(&out), "a.0,b.0,c\n1.0,2,x\n,,y\n3.0,4.00,z\n");
    stk_str_free(&out);
    stk_csv_free(&csv);
}

static void takes_a_block_over(void) {
    stk_error err = {0};
    stk_csv csv;
    stk_bytes bytes = {0};
    REQUIRE(stk_bytes_reserve(&bytes, 7));
    memcpy(bytes.data, "a,b\n1,2", 7);
    bytes.size = 7;
    REQUIRE_OK(stk_csv_take("t.csv", &bytes, &csv, &err), &err);
    CHECK(bytes.data == NULL && bytes.size == 0);
    CHECK_STR(stk_csv_cell(&csv, 0, 1), "2");
    stk_csv_free(&csv);
    CHECK_INT(stk_csv_take("t.csv", &bytes, &csv, &err), STK_ERR_DATA);
    CHECK_CONTAINS(err.message, "empty");
    CHECK(bytes.data == NULL);
}

static const check_test tests[] = {
    TEST(reads_a_plain_table),
    TEST(reads_quotes_crlf_and_bom),
    TEST(reads_lone_cr_and_blank_lines),
    TEST(a_header_alone_has_no_rows),
    TEST(finds_columns),
    TEST(the_first_line_tells_the_separator),
    TEST(a_column_may_have_no_name),
    TEST(errors_name_the_line),
    TEST(reads_files),
    TEST(what_is_written_reads_back),
    TEST(lack_of_memory_is_told),
    TEST(a_table_is_little_larger_than_its_file),
    TEST(endless_headers_are_refused),
    TEST(blanks_are_cut_off),
    TEST(an_ending_is_cut_off),
    TEST(takes_a_block_over),
};

CHECK_MAIN(tests)
