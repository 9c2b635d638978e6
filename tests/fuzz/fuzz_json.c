/* fuzz_json.c - what the JSON reader accepts, the writer writes so that it reads back the same. */
#include "fuzz.h"

#include <string.h>

#include "base/str.h"
#include "base/text/json.h"

static const fuzz_seed seeds[] = {
    FUZZ_SEED("{\"a\": [1, -2.5e3, true, null, \"x\\u00e9\\ud83d\\ude00\\n\"], \"b\": {}}"),
    FUZZ_SEED(
        "{\"__metadata__\":{\"format\":\"pt\"},\"fc.weight\":{\"dtype\":\"F32\",\"shape\":[10,"
        "512],\"data_offsets\":[0,20480]}}"),
    FUZZ_SEED("[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]"),
    FUZZ_SEED("[9223372036854775807, 0.1, 1e308, -0, 5e-324, 12345678901234567890]"),
    FUZZ_SEED("\"\\\"\\\\\\/\\b\\f\\n\\r\\t \xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\""),
    FUZZ_SEED("{\"data\": \"caf\\udce9\", \"\\udc80\": 1, \"\\udcff\": 2}"),
    FUZZ_SEED(" \t\r\n{ \"k\" : false , \"\" : \"\" } "),
};
FUZZ_PLAN(seeds)

/* Looking a member up goes through those before it: in a large object it is not done for each. */
#define MOST_LOOKED_UP 100

static void write_value(stk_json_writer *writer, const stk_json *value) {
    bool object = stk_json_kind_of(value) == STK_JSON_OBJECT;
    switch (stk_json_kind_of(value)) {
    case STK_JSON_NULL:
        stk_json_put_null(writer);
        break;
    case STK_JSON_BOOL:
        stk_json_put_bool(writer, stk_json_bool(value, false));
        break;
    case STK_JSON_NUMBER:
        stk_json_put_double(writer, stk_json_number(value, 0));
        break;
    case STK_JSON_STRING:
        stk_json_put_string(writer, stk_json_string(value));
        break;
    case STK_JSON_ARRAY:
    case STK_JSON_OBJECT:
        (object ? stk_json_begin_object : stk_json_begin_array)(writer);
        for (const stk_json *member = stk_json_at(value, 0); member != NULL;
             member = stk_json_next(value, member)) {
            if (object) {
                const char *key = stk_json_key_of(member);
                FUZZ_REQUIRE(stk_json_count(value) > MOST_LOOKED_UP ||
                             stk_json_get(value, key) == member);
                stk_json_key(writer, key);
            }
            write_value(writer, member);
        }
        (object ? stk_json_end_object : stk_json_end_array)(writer);
        break;
    }
}

static void to_text(const stk_json *root, int indent, stk_str *out) {
    stk_json_writer writer = stk_json_write_to(out, indent);
    writer.exact = true;
    write_value(&writer, root);
    FUZZ_REQUIRE(stk_str_ok(out));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    stk_json *root = NULL;
    stk_error err = {0};
    if (stk_json_parse((const char *)data, size, &root, &err) != STK_OK) {
        FUZZ_REQUIRE(root == NULL && err.status == STK_ERR_DATA && err.message[0] != '\0');
        return 0;
    }
    for (int indent = 0; indent <= 2; indent += 2) {
        stk_str first = {0};
        stk_str second = {0};
        stk_json *again = NULL;
        to_text(root, indent, &first);
        FUZZ_REQUIRE(stk_json_parse(first.text, first.length, &again, &err) == STK_OK);
        to_text(again, indent, &second);
        FUZZ_REQUIRE(strcmp(first.text, second.text) == 0);
        stk_json_free(again);
        stk_str_free(&first);
        stk_str_free(&second);
    }
    stk_json_free(root);
    return 0;
}
