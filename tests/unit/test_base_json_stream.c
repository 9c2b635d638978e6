/* test_base_json_stream.c - JSON texts token by token, cut anywhere by the source. */
#include "check.h"

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/text/json_stream.h"

/* A text in memory as a source. */
typedef struct text {
    const char *bytes;
    size_t size;
} text;

static stk_status read_text(void *user, uint64_t offset, void *into, size_t size, size_t *got,
                            stk_error *err) {
    const text *t = user;
    (void)err;
    size_t left = offset < t->size ? t->size - (size_t)offset : 0;
    *got = left < size ? left : size;
    memcpy(into, t->bytes + offset, *got);
    return STK_OK;
}

/* All tokens, each as a letter and its text. */
static stk_status spell(const char *bytes, size_t size, stk_str *out, stk_error *err) {
    static const char letters[] = ".{}[]ksntf0";
    text t = {.bytes = bytes, .size = size};
    stk_range_source source = {.name = "x.json", .user = &t, .read = read_text};
    stk_json_stream *stream = NULL;
    stk_json_token token = {.kind = STK_JSON_TOKEN_OBJECT};
    memset(err, 0, sizeof *err);
    stk_str_clear(out);
    stk_status status = stk_json_stream_open(&stream, &source, err);
    while (status == STK_OK && token.kind != STK_JSON_TOKEN_END) {
        status = stk_json_stream_next(stream, &token, err);
        if (status == STK_OK) {
            CHECK(strlen(token.text) == token.length);
            CHECK(token.offset <= stk_json_stream_at(stream));
            stk_str_appendf(out, "%c%s ", letters[token.kind], token.text);
        }
    }
    stk_json_stream_close(stream);
    return status;
}

static void tokens_come_in_order(void) {
    static const struct {
        const char *text;
        const char *tokens;
    } cases[] = {
        {"{\"a\": [1, -2.50e+3, \"x\"], \"b\": {}}", "{ ka [ n1 n-2.50e+3 sx ] kb { } } . "},
        {"\xEF\xBB\xBF[]", "[ ] . "},
        {"[true,false,null,NaN]", "[ ttrue ffalse 0 0 ] . "},
        {"{\"a\":1}\n{\"a\":2}\n", "{ ka n1 } { ka n2 } . "},
        {"123456789012345678901234567890", "n123456789012345678901234567890 . "},
        {"\"\\u00e9\\ud83d\\ude00\\n\\\"\\\\ \xC3\xA9\"",
         "s\xC3\xA9\xF0\x9F\x98\x80\n\"\\ \xC3\xA9 . "},
        {"\"caf\\udce9\"", "scaf\xE9 . "},
        {"\"M\xFCller \\n\xFF\"", "sM\xFCller \n\xFF . "},
        {"", ". "},
        {" \n ", ". "},
        {"{\"a\"  :  \"\"}", "{ ka s } . "}};
    stk_str out = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        stk_error err;
        CHECK_INT(spell(cases[i].text, strlen(cases[i].text), &out, &err), STK_OK);
        CHECK_STR(stk_str_text(&out), cases[i].tokens);
    }
    stk_str_free(&out);
}

static void errors_name_line_and_byte(void) {
    static const struct {
        const char *text;
        const char *part;
    } cases[] = {{"[1,\n 2,\n x]", "line 3, byte 9: expected a value"},
                 {"[1 2]", "byte 3: expected , or ]"},
                 {"{\"a\" 1}", "byte 5: expected a colon"},
                 {"{\"a\":1 \"b\":2}", "expected , or }"},
                 {"{\"a\":1,}", "expected a key"},
                 {"{1:2}", "expected a key"},
                 {"[1,]", "expected a value"},
                 {"[", "ends in the middle of a value, at byte 1"},
                 {"[1", "ends in the middle"},
                 {"[\"abc", "ends in the middle of a value, at byte 5"},
                 {"[\"abc\\", "ends in the middle"},
                 {"{\"a\"", "ends in the middle"},
                 {"{\"a\":", "ends in the middle"},
                 {"{", "ends in the middle"},
                 {"[tru", "ends in the middle"},
                 {"[-", "ends in the middle"},
                 {"[01]", "not a number"},
                 {"[1.]", "digits must follow"},
                 {"[1e]", "digits must follow"},
                 {"[\"\\x\"]", "an unknown escape"},
                 {"[\"\\u12\"]", "hexadecimal"},
                 {"[\"\\ud800\"]", "surrogate"},
                 {"[\"\\u0000\"]", "u0000"},
                 {"[\"\x01\"]", "control character"},
                 {"]", "expected a value"},
                 {"Infinity", "expected a value"}};
    stk_str out = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        stk_error err;
        CHECK_INT(spell(cases[i].text, strlen(cases[i].text), &out, &err), STK_ERR_DATA);
        CHECK_CONTAINS(err.message, cases[i].part);
        CHECK_CONTAINS(err.message, "x.json");
    }
    char deep[200];
    memset(deep, '[', sizeof deep);
    stk_error err;
    CHECK_INT(spell(deep, sizeof deep, &out, &err), STK_ERR_DATA);
    CHECK_CONTAINS(err.message, "nested too deeply");
    stk_str_free(&out);
}

/* A text of several windows, with a token across each border, reads as the small text does. */
static void tokens_cross_the_window(void) {
    static const char part[] =
        "{\"key\": [\"caf\\u00e9 \xC3\xA9\", 12345.25, true, {\"k\" : \"\"}]},\n";
    stk_str all = {0};
    stk_str out = {0};
    stk_str one = {0};
    stk_error err;
    CHECK_INT(spell("{\"key\": [\"caf\\u00e9 \xC3\xA9\", 12345.25, true, {\"k\" : \"\"}]}", 53,
                    &one, &err),
              STK_OK);
    stk_str_append(&all, "[");
    size_t parts = 60000;
    for (size_t i = 0; i < parts; i++) {
        stk_str_append(&all, part);
    }
    all.text[all.length - 2] = ']';
    REQUIRE_OK(spell(all.text, all.length, &out, &err), &err);
    size_t length = one.length - 2; /* without its end */
    CHECK_INT(out.length, 2 + parts * length + 4);
    for (size_t i = 0; i < parts; i++) {
        if (strncmp(out.text + 2 + i * length, one.text, length) != 0) {
            CHECK_FAIL("part %zu differs", i);
            break;
        }
    }
    stk_str_free(&all);
    stk_str_free(&out);
    stk_str_free(&one);
}

static void long_strings_have_a_limit(void) {
    size_t size = (size_t)20 << 20;
    char *bytes = stk_mem_raw(size, 1);
    stk_str out = {0};
    stk_error err;
    REQUIRE(bytes != NULL);
    memset(bytes, 'x', size);
    bytes[0] = '"';
    bytes[3 << 20] = '"';
    REQUIRE_OK(spell(bytes, ((size_t)3 << 20) + 1, &out, &err), &err);
    CHECK_INT(out.length, ((size_t)3 << 20) - 1 + 4);
    bytes[3 << 20] = 'x';
    CHECK_INT(spell(bytes, size, &out, &err), STK_ERR_DATA);
    CHECK_CONTAINS(err.message, "8 MiB");
    stk_mem_free(bytes);
    stk_str_free(&out);
}

static void containers_are_skipped(void) {
    static const char bytes[] = "[[1,[2,{\"a\":[]}]],3]";
    text t = {.bytes = bytes, .size = sizeof bytes - 1};
    stk_range_source source = {.name = "x.json", .user = &t, .read = read_text};
    stk_json_stream *stream = NULL;
    stk_json_token token;
    stk_error err = {0};
    REQUIRE_OK(stk_json_stream_open(&stream, &source, &err), &err);
    CHECK_INT(stk_json_stream_next(stream, &token, &err), STK_OK);
    CHECK_INT(stk_json_stream_next(stream, &token, &err), STK_OK);
    CHECK_INT(token.offset, 1);
    CHECK_INT(stk_json_stream_skip(stream, &err), STK_OK);
    CHECK_INT(stk_json_stream_at(stream), 17);
    CHECK_INT(stk_json_stream_next(stream, &token, &err), STK_OK);
    CHECK_STR(token.text, "3");
    CHECK_INT(stk_json_stream_fail(stream, "what", &err), STK_ERR_DATA);
    CHECK_STR(err.message, "x.json, line 1, byte 19: what");
    stk_json_stream_close(stream);
    stk_json_stream_close(NULL);
}

static void blocks_are_sources(void) {
    stk_error err = {0};
    char got[8];
    size_t count = 0;
    stk_bytes block = {.data = (uint8_t *)(uintptr_t) "abcdef", .size = 6};
    stk_range_source s = stk_range_of_block("b", &block);
    CHECK_INT(s.read(s.user, 2, got, 8, &count, &err), STK_OK);
    CHECK_INT(count, 4);
    CHECK(memcmp(got, "cdef", 4) == 0);
    CHECK_INT(s.read(s.user, UINT64_MAX, got, 8, &count, &err), STK_OK);
    CHECK_INT(count, 0);
    CHECK_INT(stk_range_read(&s, 1, got, 5, &err), STK_OK);
    CHECK_INT(stk_range_read(&s, 1, got, 6, &err), STK_ERR_DATA);
    CHECK_CONTAINS(err.message, "ends at byte 6");
}

static void lack_of_memory_is_told(void) {
    stk_str out = {0};
    for (int64_t n = 0; n < 2; n++) {
        stk_error err;
        stk_mem_fail_after(n);
        CHECK_INT(spell("[]", 2, &out, &err), STK_ERR_MEMORY);
        stk_mem_fail_after(-1);
    }
    stk_str_free(&out);
}

static const check_test tests[] = {
    TEST(tokens_come_in_order),      TEST(errors_name_line_and_byte), TEST(tokens_cross_the_window),
    TEST(long_strings_have_a_limit), TEST(containers_are_skipped),    TEST(blocks_are_sources),
    TEST(lack_of_memory_is_told),
};

CHECK_MAIN(tests)
