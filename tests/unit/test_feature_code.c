/*
 * test_feature_code.c - columns beside the pictures: coded as in training also from other tables,
 * kept as text with a checkpoint, and small.
 */
#include "check.h"

#include <math.h>

#include "base/mem.h"
#include "base/str.h"
#include "dataset/features.h"
#include "weights/columns.h"

#define ALL_WANTED ((const bool[]){true, true, true, true, true, true})

static stk_csv parse(const char *text) {
    stk_csv csv;
    stk_error err = {0};
    if (stk_csv_parse("a table", text, strlen(text), &csv, &err) != STK_OK) {
        printf("%s\n", err.message);
        exit(1);
    }
    return csv;
}

static stk_feature_code code_of(const char *train_text, const char *test_text) {
    stk_csv train = parse(train_text);
    stk_csv test = parse(test_text);
    stk_feature_code code;
    stk_error err = {0};
    if (stk_feature_code_make(&code, &train, &test, ALL_WANTED, &err) != STK_OK) {
        exit(1);
    }
    stk_csv_free(&train);
    stk_csv_free(&test);
    return code;
}

/* Ages 10, 20 and 30, one is missing; two sexes. */
static stk_feature_code people(void) {
    return code_of("age,sex\n10,f\n20,m\n30,f\n,m\n", "age,sex\n20,f\n");
}

static void check_row(const float *row, const float *wanted, int count) {
    for (int i = 0; i < count; i++) {
        CHECK_NEAR(row[i], wanted[i], 1e-6);
    }
}

/* Neither the order of columns nor other values in the new table change what a cell becomes. */
static void other_tables_are_coded_as_in_training(void) {
    stk_feature_code code = people();
    stk_features f;
    stk_features_absent absent;
    stk_error err = {0};
    const float scale = 1 / sqrtf(200.0f / 3);
    stk_csv other = parse("sex,more,age\nm,1,1000\nf,2,\nd,3,25\n");
    REQUIRE_OK(stk_features_of_code(&f, &code, &other, 7, &absent, &err), &err);
    CHECK_INT(absent.columns, 0);
    REQUIRE(f.count == 4);
    check_row(stk_features_row(&f, 7), (float[]){6, 0, 0, 1}, 4); /* cut off */
    check_row(stk_features_row(&f, 8), (float[]){0, 1, 1, 0}, 4);
    check_row(stk_features_row(&f, 9), (float[]){5 * scale, 0, 0, 0}, 4); /* d is not known */
    check_row(stk_features_row(&f, 10), (float[]){0, 1, 0, 0}, 4);        /* beyond the table */
    check_row(stk_features_row(&f, 6), (float[]){0, 1, 0, 0}, 4);
    stk_features_free(&f);
    stk_csv_free(&other);
    stk_feature_code_free(&code);
}

/* 3 is 3.0, also where numbers are codes; a text of training counts as it is written. */
static void equal_numbers_have_one_code(void) {
    stk_csv train = parse("site,age\n1,10\n2,20\n3,30\n4,20\n1,10\n2,20\n3,30\n4,20\n1,10\n2,20\n"
                          "3,30\n4,20\n1,10\n2,20\n3,30\n4,20\n1,10\n2,20\n3,30\n4,20\n");
    stk_csv test = parse("site,age\n1.0,10\n2.0,20\n4.0,30\n03,20\n9.0,20\n1e9,10\nx,10\n");
    static const int code_of_row[] = {0, 1, 3, 2, -1, -1, -1};
    stk_features f;
    stk_error err = {0};
    REQUIRE_OK(stk_features_make(&f, &train, &test, ALL_WANTED, &err), &err);
    REQUIRE(f.code.count == 2 && f.code.columns[0].text_count == 4);
    for (size_t row = 0; row < STK_COUNT(code_of_row); row++) {
        const float *codes = stk_features_row(&f, train.rows + row) + 1;
        for (int k = 0; k < 4; k++) {
            CHECK_NEAR(codes[k], k == code_of_row[row], 0);
        }
    }
    stk_features_free(&f);
    stk_csv_free(&train);
    stk_csv_free(&test);
}

static void absent_columns_count_as_empty(void) {
    stk_feature_code code = people();
    stk_features f;
    stk_features_absent absent;
    stk_error err = {0};
    stk_csv other = parse("id,sex\n1,m\n");
    REQUIRE_OK(stk_features_of_code(&f, &code, &other, 0, &absent, &err), &err);
    CHECK_INT(absent.columns, 1);
    CHECK_STR(absent.name, "age");
    check_row(stk_features_row(&f, 0), (float[]){0, 1, 0, 1}, 4);
    stk_features_free(&f);
    REQUIRE_OK(stk_features_of_code(&f, &code, NULL, 0, &absent, &err), &err);
    check_row(stk_features_row(&f, 0), (float[]){0, 1, 0, 0}, 4);
    stk_features_free(&f);
    stk_csv_free(&other);
    stk_feature_code_free(&code);
}

static void the_text_gives_the_same_numbers(void) {
    stk_feature_code code =
        code_of("a \"b\",grade,kind\n0.1,1,x\xff\n1e9,2,\"y\n,\"\n3.3,3,x\xff\n0.1,1,x\xff\n"
                "0.1,2,x\xff\n0.1,3,x\xff\n0.1,1,x\xff\n0.1,2,x\xff\n0.1,3,x\xff\n0.1,1,x\xff\n"
                "0.1,2,x\xff\n0.1,3,x\xff\n0.1,1,x\xff\n0.1,2,x\xff\n0.1,3,x\xff\n",
                "kind,grade,a \"b\"\nx\xff,1,1\n");
    stk_csv other = parse("a \"b\",grade,kind\n12345.678,2,x\xff\n,9,\"y\n,\"\n");
    stk_feature_code back;
    stk_features f[2];
    stk_features_absent absent;
    stk_str text = {0};
    stk_error err = {0};
    stk_columns_append(&code, &text);
    REQUIRE_OK(stk_columns_read(stk_str_text(&text), code.numbers, &back, &err), &err);
    CHECK_INT(back.count, 3);
    CHECK_INT(back.numbers, 1 + 1 + 3 + 2); /* a, grade and its values, kind */
    CHECK_INT(back.bytes, code.bytes);
    REQUIRE_OK(stk_features_of_code(&f[0], &code, &other, 0, &absent, &err), &err);
    REQUIRE_OK(stk_features_of_code(&f[1], &back, &other, 0, &absent, &err), &err);
    CHECK_INT(absent.columns, 0);
    CHECK(memcmp(f[0].values, f[1].values, 2 * 7 * sizeof(float)) == 0);
    CHECK(stk_features_row(&f[1], 1)[6] == 1); /* the text with a line break */
    stk_features_free(&f[0]);
    stk_features_free(&f[1]);
    stk_feature_code_free(&back);
    stk_feature_code_free(&code);
    stk_csv_free(&other);
    stk_str_free(&text);
}

static void damaged_texts_are_refused(void) {
    static const char *const bad[] = {
        "{}",
        "[",
        "[1]",
        "[{\"name\": \"a\"}]", /* no number at all */
        "[{\"mean\": 1, \"scale\": 1, \"gaps\": true}]",
        "[{\"name\": \"a\", \"mean\": 1, \"gaps\": true}]",
        "[{\"name\": \"a\", \"mean\": 1, \"scale\": 0, \"gaps\": true}]",
        "[{\"name\": \"a\", \"mean\": null, \"scale\": 1, \"gaps\": true}]",
        "[{\"name\": \"a\", \"texts\": [\"x\", 1]}]",
        "[{\"name\": \"a\", \"texts\": [\"x\", \"y\", \"z\"]}]", /* three numbers, not two */
    };
    for (size_t i = 0; i < STK_COUNT(bad); i++) {
        stk_feature_code code;
        stk_error err = {0};
        CHECK_INT(stk_columns_read(bad[i], 2, &code, &err), STK_ERR_DATA);
        CHECK_CONTAINS(err.message, "'columns'");
        CHECK(code.columns == NULL);
    }
    stk_str many = {0};
    for (int i = 0; i <= STK_CODED_TEXTS; i++) {
        stk_str_appendf(&many, "%s\"%d\"", i > 0 ? ", " : "[{\"name\": \"a\", \"texts\": [", i);
    }
    stk_str_append(&many, "]}]");
    stk_feature_code code;
    CHECK_INT(stk_columns_read(stk_str_text(&many), STK_CODED_TEXTS + 1, &code, NULL),
              STK_ERR_DATA);
    stk_str_free(&many);
}

static void older_files_have_none(void) {
    stk_feature_code code;
    stk_error err = {0};
    REQUIRE_OK(stk_columns_read(NULL, 3, &code, &err), &err);
    CHECK_INT(code.count, 0);
    REQUIRE_OK(stk_columns_read("", 0, &code, &err), &err);
    CHECK_INT(code.count, 0);
}

/* A long text is no property of a picture. */
static void long_texts_are_left_out(void) {
    stk_str text = {0};
    stk_str_append(&text, "note,sex\n");
    for (int row = 0; row < 4; row++) {
        for (int i = 0; i <= STK_CODED_TEXT_BYTES; i++) {
            stk_str_append(&text, row % 2 ? "a" : "b");
        }
        stk_str_append(&text, row % 2 ? ",f\n" : ",m\n");
    }
    stk_feature_code code = code_of(stk_str_text(&text), stk_str_text(&text));
    REQUIRE(code.count == 1);
    CHECK_STR(code.columns[0].name, "sex");
    stk_feature_code_free(&code);
    stk_str_free(&text);
}

/* However many columns a table has, the code stays small. */
static void the_code_is_bounded(void) {
    enum { COLUMNS = 9000 };
    stk_str text = {0};
    bool *wanted = stk_mem_raw(COLUMNS, sizeof *wanted);
    REQUIRE(wanted != NULL);
    memset(wanted, true, COLUMNS);
    for (int row = 0; row < 3; row++) {
        for (int i = 0; i < COLUMNS; i++) {
            stk_str_appendf(&text, "%s%s%d", i > 0 ? "," : "", row == 0 ? "c" : "", i + row);
        }
        stk_str_append(&text, "\n");
    }
    stk_csv csv = parse(stk_str_text(&text));
    stk_feature_code code;
    stk_error err = {0};
    REQUIRE_OK(stk_feature_code_make(&code, &csv, &csv, wanted, &err), &err);
    CHECK(code.bytes <= STK_FEATURE_CODE_BYTES);
    CHECK(code.left_out > 0);
    CHECK_INT(code.count + code.left_out, COLUMNS);
    CHECK_INT(code.numbers, code.count);
    stk_str kept = {0};
    stk_columns_append(&code, &kept);
    CHECK(strlen(stk_str_text(&kept)) < 2 * STK_FEATURE_CODE_BYTES);
    stk_str_free(&kept);
    stk_feature_code_free(&code);
    stk_csv_free(&csv);
    stk_mem_free(wanted);
    stk_str_free(&text);
}

static stk_status make_and_read(stk_error *err) {
    static const char text[] = "[{\"name\": \"age\", \"mean\": 2, \"scale\": 1, \"gaps\": true}, "
                               "{\"name\": \"sex\", \"texts\": [\"f\", \"m\"]}]";
    stk_feature_code code;
    stk_features f = {0};
    stk_features_absent absent;
    stk_status status = stk_columns_read(text, 4, &code, err);
    if (status == STK_OK) {
        status = stk_features_of_code(&f, &code, NULL, 0, &absent, err);
        stk_features_free(&f);
        stk_feature_code_free(&code);
    }
    return status;
}

static void no_memory_is_told(void) {
    stk_error err = {0};
    stk_status status = STK_ERR_MEMORY;
    int failed = 0;
    for (; status == STK_ERR_MEMORY && failed < 100; failed++) {
        stk_mem_fail_after(failed);
        status = make_and_read(&err);
        stk_mem_fail_after(-1);
    }
    CHECK_INT(status, STK_OK);
    CHECK(failed > 3);
}

static const check_test tests[] = {
    TEST(other_tables_are_coded_as_in_training),
    TEST(equal_numbers_have_one_code),
    TEST(absent_columns_count_as_empty),
    TEST(the_text_gives_the_same_numbers),
    TEST(damaged_texts_are_refused),
    TEST(older_files_have_none),
    TEST(long_texts_are_left_out),
    TEST(the_code_is_bounded),
    TEST(no_memory_is_told),
};

CHECK_MAIN(tests)
