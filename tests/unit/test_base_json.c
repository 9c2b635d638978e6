/* test_base_json.c - the JSON writer, the reader, and what the reader must refuse. */
#include "check.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/text/json.h"

static stk_status parse(const char *text, stk_json **root, stk_error *err) {
    memset(err, 0, sizeof *err);
    *root = NULL;
    return stk_json_parse(text, strlen(text), root, err);
}

static void writes_one_line(void) {
    stk_str out = {0};
    stk_json_writer w = stk_json_write_to(&out, 0);
    stk_json_begin_object(&w);
    stk_json_key(&w, "text");
    stk_json_put_string(&w, "a \"b\" \\ \n\t\x7f \xC3\xA9");
    stk_json_key(&w, "none");
    stk_json_put_string(&w, NULL);
    stk_json_key(&w, "list");
    stk_json_begin_array(&w);
    stk_json_put_int(&w, INT64_MIN);
    stk_json_put_bool(&w, true);
    stk_json_begin_array(&w);
    stk_json_end_array(&w);
    stk_json_put_null(&w);
    stk_json_end_array(&w);
    stk_json_key(&w, "empty");
    stk_json_begin_object(&w);
    stk_json_end_object(&w);
    stk_json_end_object(&w);
    CHECK_STR(stk_str_text(&out),
              "{\"text\": \"a \\\"b\\\" \\\\ \\n\\u0009\\u007f \xC3\xA9\", \"none\": null, "
              "\"list\": [-9223372036854775808, true, [], null], \"empty\": {}}");
    stk_str_free(&out);
}

static void writes_indented(void) {
    stk_str out = {0};
    stk_json_writer w = stk_json_write_to(&out, 2);
    stk_json_begin_object(&w);
    stk_json_key(&w, "a");
    stk_json_begin_array(&w);
    stk_json_put_int(&w, 1);
    stk_json_put_int(&w, 2);
    stk_json_end_array(&w);
    stk_json_key(&w, "b");
    stk_json_put_bool(&w, false);
    stk_json_end_object(&w);
    CHECK_STR(stk_str_text(&out), "{\n  \"a\": [\n    1,\n    2\n  ],\n  \"b\": false\n}");
    stk_str_free(&out);
}

static void numbers_survive_the_trip(void) {
    static const double values[] = {0, -0.0, 1, 0.1, 1.0 / 3.0, 1e300, 5e-324, -123456.789, 2e15};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        stk_str out = {0};
        stk_error err;
        stk_json *root;
        stk_json_writer w = stk_json_write_to(&out, 0);
        stk_json_put_double(&w, values[i]);
        REQUIRE_OK(parse(stk_str_text(&out), &root, &err), &err);
        CHECK(stk_json_number(root, 99) == values[i]);
        stk_json_free(root);
        stk_str_free(&out);
    }
    stk_str out = {0};
    stk_json_writer w = stk_json_write_to(&out, 0);
    stk_json_begin_array(&w);
    stk_json_put_double(&w, NAN);
    stk_json_put_double(&w, -INFINITY);
    stk_json_put_double(&w, 0.1);
    stk_json_end_array(&w);
    CHECK_STR(stk_str_text(&out), "[null, null, 0.1]");
    stk_str_free(&out);
}

/* File names may hold Latin-1 or anything else; what is written must still be JSON. */
static void broken_utf8_becomes_a_mark(void) {
    static const char *const broken[] = {
        "\xE9",     "\xC3", "\xC0\x80",        "\xED\xA0\x80", "\xF5\x80\x80\x80",
        "\xE2\x82", "\x80", "\xF4\x90\x80\x80"};
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        stk_str out = {0};
        stk_error err;
        stk_json *root;
        char raw[16];
        snprintf(raw, sizeof raw, "\"%s\"", broken[i]);
        CHECK_INT(parse(raw, &root, &err), STK_ERR_DATA);
        CHECK_CONTAINS(err.message, "UTF-8");
        stk_json_writer w = stk_json_write_to(&out, 0);
        stk_json_put_string(&w, broken[i]);
        REQUIRE_OK(parse(stk_str_text(&out), &root, &err), &err);
        CHECK_CONTAINS(stk_json_string(root), "\xEF\xBF\xBD");
        stk_json_free(root);
        stk_str_clear(&out);

        /* Where it is to be read back, it is. */
        w = stk_json_write_to(&out, 0);
        w.exact = true;
        stk_json_put_string(&w, broken[i]);
        CHECK_CONTAINS(stk_str_text(&out), "\\udc");
        REQUIRE_OK(parse(stk_str_text(&out), &root, &err), &err);
        CHECK_STR(stk_json_string(root), broken[i]);
        stk_json_free(root);
        stk_str_free(&out);
    }
    stk_error err;
    stk_json *root;
    const char *good = "\"\xC3\xA9 \xE2\x82\xAC \xED\x9F\xBF \xF0\x9F\x98\x80 \xF4\x8F\xBF\xBF\"";
    REQUIRE_OK(parse(good, &root, &err), &err);
    CHECK_INT(strlen(stk_json_string(root)), strlen(good) - 2);
    stk_json_free(root);
}

/* A terminal that shows a line of JSON obeys nothing in it, and a reader gets what was meant. */
static void what_a_terminal_obeys_is_escaped(void) {
    const char *text = "a\x1b[31m\xC2\x9B\x7F\xE2\x80\xAE\xC3\xA9";
    stk_str out = {0};
    stk_error err;
    stk_json *root;
    stk_json_writer w = stk_json_write_to(&out, 0);
    stk_json_put_string(&w, text);
    CHECK_STR(stk_str_text(&out), "\"a\\u001b[31m\\u009b\\u007f\\u202e\xC3\xA9\"");
    REQUIRE_OK(parse(stk_str_text(&out), &root, &err), &err);
    CHECK_STR(stk_json_string(root), text);
    stk_json_free(root);
    stk_str_free(&out);
}

static void reads_a_tree(void) {
    stk_error err;
    stk_json *root;
    REQUIRE_OK(
        parse(" {\"a\" : [1, [2, {\"x\": 3}], \"t\"], \"b\":{}, \"c\":true,\r\n\t\"d\":null} ",
              &root, &err),
        &err);
    CHECK_INT(stk_json_kind_of(root), STK_JSON_OBJECT);
    CHECK_INT(stk_json_count(root), 4);
    CHECK_STR(stk_json_key_at(root, 1), "b");
    CHECK(stk_json_key_at(root, 4) == NULL);
    const stk_json *a = stk_json_get(root, "a");
    CHECK_INT(stk_json_count(a), 3);
    CHECK_NEAR(stk_json_number(stk_json_at(a, 0), -1), 1, 0);
    CHECK_STR(stk_json_string(stk_json_at(a, 2)), "t");
    CHECK(stk_json_at(a, 3) == NULL);
    const stk_json *x = stk_json_get(stk_json_at(stk_json_at(a, 1), 1), "x");
    CHECK_NEAR(stk_json_number(x, -1), 3, 0);
    CHECK_INT(stk_json_count(stk_json_get(root, "b")), 0);
    CHECK(stk_json_bool(stk_json_get(root, "c"), false));
    CHECK_INT(stk_json_kind_of(stk_json_get(root, "d")), STK_JSON_NULL);
    CHECK(stk_json_get(root, "e") == NULL);
    CHECK(stk_json_get(a, "a") == NULL);
    /* Questions of the wrong kind have harmless answers. */
    CHECK(stk_json_string(root) == NULL);
    CHECK(stk_json_string(NULL) == NULL);
    CHECK_NEAR(stk_json_number(a, 5), 5, 0);
    CHECK(stk_json_bool(a, true));
    CHECK_INT(stk_json_count(NULL), 0);
    CHECK(stk_json_at(NULL, 0) == NULL);
    stk_json_free(root);
    stk_json_free(NULL);
}

static void reads_escapes(void) {
    stk_error err;
    stk_json *root;
    REQUIRE_OK(
        parse("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\\u00e9\\u20AC\\ud83d\\ude00\"", &root, &err),
        &err);
    CHECK_STR(stk_json_string(root), "\"\\/\b\f\n\r\tA\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80");
    stk_json_free(root);
}

static void whole_numbers_are_exact(void) {
    static const struct {
        const char *text;
        bool whole;
        uint64_t value;
    } cases[] = {{"0", true, 0},
                 {"9007199254740993", true, 9007199254740993ull},
                 {"9223372036854775807", true, INT64_MAX},
                 {"9223372036854775808", false, 0},
                 {"99999999999999999999", false, 0},
                 {"-1", false, 0},
                 {"1.0", false, 0},
                 {"1e3", false, 0},
                 {"\"1\"", false, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        stk_error err;
        stk_json *root;
        uint64_t value = 0;
        REQUIRE_OK(parse(cases[i].text, &root, &err), &err);
        if (stk_json_u64(root, &value) != cases[i].whole || value != cases[i].value) {
            CHECK_FAIL("%s gave %llu", cases[i].text, (unsigned long long)value);
        }
        stk_json_free(root);
    }
}

static void refuses_what_is_not_json(void) {
    static const char *const bad[] = {"",
                                      " ",
                                      "{",
                                      "}",
                                      "[",
                                      "]",
                                      "[1,]",
                                      "[,1]",
                                      "[1 2]",
                                      "{\"a\":1,}",
                                      "{a:1}",
                                      "{\"a\" 1}",
                                      "{\"a\":}",
                                      "{\"a\":1",
                                      "{\"a\"",
                                      "{1:2}",
                                      "01",
                                      "-",
                                      "+1",
                                      "1.",
                                      ".5",
                                      "1e",
                                      "1e+",
                                      "--1",
                                      "0x10",
                                      "NaN",
                                      "Infinity",
                                      "nul",
                                      "nullx",
                                      "tru",
                                      "True",
                                      "\"",
                                      "\"\\",
                                      "\"\\x\"",
                                      "\"\\u12\"",
                                      "\"\\u12G4\"",
                                      "\"\\ud800\"",
                                      "\"\\ud800\\n\"",
                                      "\"\\ud800\\u0041\"",
                                      "\"\\udc00\"",
                                      "\"\\udc7f\"",
                                      "\"\\udd00\"",
                                      "\"\\u0000\"",
                                      "\"a\nb\"",
                                      "'a'",
                                      "1 2",
                                      "[1] x",
                                      "// c\n1",
                                      "\xEF\xBB\xBF 1",
                                      "[\"a\":1]",
                                      "{\"a\":1 \"b\":2}",
                                      "\"\\ud800\\",
                                      "\"\\ud83d\\ude0"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        stk_error err;
        stk_json *root;
        if (parse(bad[i], &root, &err) != STK_ERR_DATA || root != NULL) {
            CHECK_FAIL("\"%s\" passed for JSON", bad[i]);
        } else {
            CHECK_CONTAINS(err.message, "not valid JSON");
        }
    }
    stk_error err = {0};
    stk_json *root = NULL;
    CHECK_INT(stk_json_parse("1\0", 2, &root, &err), STK_ERR_DATA);
    CHECK_INT(stk_json_parse("nullnull", 3, &root, NULL), STK_ERR_DATA);
}

static void says_where(void) {
    stk_error err;
    stk_json *root;
    CHECK_INT(parse("[1, 2, x]", &root, &err), STK_ERR_DATA);
    CHECK_CONTAINS(err.message, "byte 7");
    CHECK_INT(parse("{\"k\": 1, \"q\": 2, \"k\": 3}", &root, &err), STK_ERR_DATA);
    CHECK_CONTAINS(err.message, "\"k\"");
    CHECK_INT(parse("{\"a\": 1, \"b\": {\"a\": 1}}", &root, &err), STK_OK);
    stk_json_free(root);
}

static void depth_is_bounded(void) {
    char text[400];
    stk_error err;
    stk_json *root;
    for (int depth = 64; depth <= 65; depth++) {
        memset(text, '[', (size_t)depth);
        memset(text + depth, ']', (size_t)depth);
        text[2 * depth] = '\0';
        CHECK_INT(parse(text, &root, &err), depth <= 64 ? STK_OK : STK_ERR_DATA);
        stk_json_free(root);
    }
    /* A long row of brackets must not use up the stack. */
    size_t size = 1 << 20;
    char *brackets = stk_mem_raw(size, 1);
    REQUIRE(brackets != NULL);
    memset(brackets, '[', size);
    memset(&err, 0, sizeof err);
    CHECK_INT(stk_json_parse(brackets, size, &root, &err), STK_ERR_DATA);
    stk_mem_free(brackets);
    memset(text, '1', 100);
    text[100] = '\0';
    CHECK_INT(parse(text, &root, &err), STK_ERR_DATA);
}

static void lack_of_memory_is_told(void) {
    const char *text = "{\"a\": [1, 2, {\"b\": \"c\"}], \"d\": 4}";
    stk_status status = STK_ERR_MEMORY;
    for (int i = 0; i < 50 && status != STK_OK; i++) {
        stk_error err;
        stk_json *root;
        stk_mem_fail_after(i);
        status = parse(text, &root, &err);
        stk_mem_fail_after(-1);
        CHECK(status == STK_OK || (status == STK_ERR_MEMORY && i < 49));
        stk_json_free(root);
    }
    CHECK_INT(status, STK_OK);
}

static const check_test tests[] = {
    TEST(writes_one_line),
    TEST(writes_indented),
    TEST(numbers_survive_the_trip),
    TEST(broken_utf8_becomes_a_mark),
    TEST(what_a_terminal_obeys_is_escaped),
    TEST(reads_a_tree),
    TEST(reads_escapes),
    TEST(whole_numbers_are_exact),
    TEST(refuses_what_is_not_json),
    TEST(says_where),
    TEST(depth_is_bounded),
    TEST(lack_of_memory_is_told),
};

CHECK_MAIN(tests)
