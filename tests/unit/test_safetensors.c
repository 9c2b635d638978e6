/*
 * test_safetensors.c - the file format: the bytes that are written, what of other writers is read,
 * and headers that lie.
 */
#include "check.h"

#include <math.h>
#include <stdint.h>
#include <unistd.h>

#include "tensor_files.h"
#include "weights/safetensors.h"

static void the_file_has_the_form_of_the_format(void) {
    stk_error err = {0};
    char path[300];
    static const float numbers[] = {1, 2, 3, 4, 5, 6};
    made_tensor tensors[] = {
        {.name = "a", .rank = 2, .shape = {2, 2}, .data = numbers, .bytes = 16},
        {.name = "b\"", .rank = 0, .data = numbers + 4, .bytes = 4},
    };
    stk_tensor_note note = {"k", "v"};
    snprintf(path, sizeof path, "%s/t.safetensors", check_folder());
    REQUIRE_OK(write_tensors(path, tensors, 2, &note, 1, &err), &err);
    char *data = NULL;
    size_t size = 0;
    REQUIRE_OK(stk_file_read(path, 0, &data, &size, &err), &err);
    static const char header[] =
        "{\"__metadata__\": {\"k\": \"v\"}, \"a\": {\"dtype\": \"F32\", \"shape\": [2, 2], "
        "\"data_offsets\": [0, 16]}, \"b\\\"\": {\"dtype\": \"F32\", \"shape\": [], "
        "\"data_offsets\": [16, 20]}}";
    size_t length = (uint8_t)data[0] | (size_t)(uint8_t)data[1] << 8;
    CHECK_INT(length % 8, 0);
    CHECK_INT(size, 8 + length + 20);
    CHECK(strncmp(data + 8, header, strlen(header)) == 0);
    for (size_t i = strlen(header); i < length; i++) {
        CHECK_INT(data[8 + i], ' ');
    }
    CHECK(memcmp(data + 8 + length, numbers, 20) == 0);
    stk_mem_free(data);
    /* No notes, no tensors. */
    stk_tensor_file file;
    REQUIRE_OK(write_tensors(path, NULL, 0, NULL, 0, &err), &err);
    REQUIRE_OK(stk_tensors_open(&file, path, &err), &err);
    CHECK_INT(file.count, 0);
    CHECK(stk_tensors_note(&file, "k") == NULL);
    stk_tensors_close(&file);
}

/* ---- files of others ---- */

/* A file in memory: length, header, `numbers` bytes; the caller frees. */
static char *file_of(const char *header, size_t numbers, size_t *size) {
    size_t length = strlen(header);
    char *bytes = stk_mem_new(8 + length + numbers, 1);
    if (bytes == NULL) {
        exit(1);
    }
    for (int i = 0; i < 8; i++) {
        bytes[i] = (char)(uint8_t)((uint64_t)length >> (8 * i));
    }
    memcpy(bytes + 8, header, length);
    *size = 8 + length + numbers;
    return bytes;
}

/* The numbers cannot be read from it afterwards. */
static stk_status parse(const char *header, size_t numbers, stk_tensor_file *file, stk_error *err) {
    size_t size;
    char *bytes = file_of(header, numbers, &size);
    stk_status status = stk_tensors_parse(file, "x.safetensors", bytes, size, err);
    stk_mem_free(bytes);
    file->memory = NULL;
    return status;
}

static void refuses(const char *header, size_t numbers, const char *part) {
    stk_tensor_file file;
    stk_error err = {0};
    if (parse(header, numbers, &file, &err) != STK_ERR_DATA) {
        CHECK_FAIL("accepted: %s", header);
        stk_tensors_close(&file);
        return;
    }
    CHECK(file.reader == NULL && file.header == NULL && file.tensors == NULL && file.count == 0);
    CHECK_CONTAINS(err.message, "x.safetensors");
    CHECK_CONTAINS(err.message, part);
}

#define T(name, dtype, shape, from, to)                                                          \
    "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":[" #from "," #to \
    "]}"

static void good_files_of_others_are_read(void) {
    static const char *const headers[] = {
        "{}",
        "{}  ",
        "{" T("a", "F32", "[2]", 0, 8) "}",
        "{" T("a", "F16", "[2,2]", 0, 8) "}",
        "{" T("n", "I64", "[]", 0, 8) "}",
        "{" T("n", "BOOL", "[8]", 0, 8) "}",
        "{" T("n", "F8_E4M3", "[8]", 0, 8) "}",
        "{\"__metadata__\":{}," T("c", "C64", "[1]", 0, 8) "}",
        "{" T("b", "U8", "[3]", 5, 8) "," T("a", "U8", "[5]", 0, 5) "}",
        "{" T("z", "F32", "[0,7]", 0, 0) "," T("a", "F64", "[1]", 0, 8) "}",
        "{" T("a", "F64", "[1]", 0, 8) "," T("z", "F32", "[0]", 8, 8) "}",
        "{" T("a", "U8", "[1,1,1,1,1,1,1,8]", 0, 8) "}",
        "{\"__metadata__\":{\"format\":\"pt\"}," T("", "BF16", "[4]", 0, 8) "}",
    };
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        stk_tensor_file file;
        stk_error err = {0};
        REQUIRE_OK(parse(headers[i], i < 2 ? 0 : 8, &file, &err), &err);
        stk_tensors_close(&file);
    }
}

static void tensors_are_found_where_they_lie(void) {
    stk_tensor_file file;
    stk_error err = {0};
    REQUIRE_OK(parse("{\"__metadata__\":{\"format\":\"pt\"}," T("b", "U8", "[3]", 5, 8) "," T(
                         "a", "U8", "[1,5]", 0, 5) "}",
                     8, &file, &err),
               &err);
    const stk_tensor *a = stk_tensors_find(&file, "a");
    const stk_tensor *b = stk_tensors_find(&file, "b");
    REQUIRE(a != NULL && b != NULL);
    CHECK_INT(a->offset, 0);
    CHECK_INT(b->offset, 5);
    CHECK_INT(b->bytes, 3);
    CHECK_INT(a->rank, 2);
    CHECK_INT(a->shape[1], 5);
    CHECK_STR(stk_tensors_note(&file, "format"), "pt");
    CHECK(stk_tensors_find(&file, "__metadata__") == NULL);
    stk_tensors_close(&file);
    stk_tensors_close(&file);
}

static void headers_that_lie_are_refused(void) {
    static const struct {
        const char *header;
        const char *part;
    } bad[] = {
        {"", "header"},
        {" {}", "no object"},
        {"\xEF\xBB\xBF{}", "no object"},
        {"{}\n\t7", "damaged"},
        {"{\"__metadata__\":[]}", "__metadata__"},
        {"{\"__metadata__\":\"x\"}", "__metadata__"},
        {"{\"__metadata__\":{\"a\":1}}", "__metadata__"},
        {"{\"__metadata__\":{\"a\":{}}}", "__metadata__"},
        {"{" T("a", "F32", "[2e0]", 0, 8) "}", "'a'"},
        {"{" T("a", "F32", "[1.5]", 0, 6) "}", "'a'"},
        {"{" T("a", "F4", "[16]", 0, 8) "}", "'a'"},
        {"{" T("a", "F32", "[2]", 0, 08) "}", "damaged"},
        {"{\"\xC0\xAF\":1}", "damaged"},
        {"{\"\xED\xA0\x80\":1}", "damaged"},
        {"{\"\\ud800\":1}", "damaged"},
        {"[]", "no object"},
        {"7", "no object"},
        {"{", "damaged"},
        {"{} x", "damaged"},
        {"{\"a\":1}", "'a'"},
        {"{\"a\":{}}", "'a'"},
        {"{\"a\":[]}", "'a'"},
        {"{\"a\":null}", "'a'"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}", "'a'"},
        {"{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,8]}}", "'a'"},
        {"{\"a\":{\"shape\":[2],\"data_offsets\":[0,8]}}", "'a'"},
        {"{\"a\":{\"dtype\":7,\"shape\":[2],\"data_offsets\":[0,8]}}", "'a'"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":2,\"data_offsets\":[0,8]}}", "'a'"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8]}}", "'a'"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8,8]}}", "'a'"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":\"08\"}}", "'a'"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":{\"x\":0}}}", "'a'"},
        {"{" T("a", "F32", "[3]", 0, 8) "}", "'a'"},
        {"{" T("a", "F32", "[1]", 0, 8) "}", "'a'"},
        {"{" T("a", "F32", "[]", 0, 8) "}", "'a'"},
        {"{" T("a", "F31", "[2]", 0, 8) "}", "'a'"},
        {"{" T("a", "f32", "[2]", 0, 8) "}", "'a'"},
        {"{" T("a", "", "[0]", 0, 0) "}", "'a'"},
        {"{" T("a", "F32", "[2]", 4, 12) "}", "'a'"},
        {"{" T("a", "F32", "[2]", 8, 0) "}", "'a'"},
        {"{" T("a", "F32", "[2]", -8, 0) "}", "'a'"},
        {"{" T("a", "F32", "[2]", 0, 8.0) "}", "'a'"},
        {"{" T("a", "F32", "[-2]", 0, 8) "}", "'a'"},
        {"{" T("a", "F32", "[2.0]", 0, 8) "}", "'a'"},
        {"{" T("a", "F32", "[\"2\"]", 0, 8) "}", "'a'"},
        {"{" T("a", "F32", "[2,1,1,1,1,1,1,1,1]", 0, 8) "}", "'a'"},
        {"{" T("a", "F32", "[4611686018427387904,2,2]", 0, 0) "}", "'a'"},
        {"{" T("a", "F32", "[4611686018427387906]", 0, 8) "}", "'a'"},
        {"{" T("a", "F32", "[0,4611686018427387906]", 0, 8) "}", "'a'"},
        {"{" T("a", "F32", "[2]", 18446744073709551608, 18446744073709551616) "}", "'a'"},
        {"{" T("a", "F32", "[2]", 9223372036854775800, 9223372036854775807) "}", "'a'"},
        {"{" T("a", "F32", "[2]", 0, 8) "," T("a", "F32", "[2]", 0, 8) "}", "damaged"},
        {"{" T("a", "F32", "[2]", 0, 8) "," T("b", "F32", "[2]", 0, 8) "}", "overlap"},
        {"{" T("a", "U8", "[5]", 0, 5) "," T("b", "U8", "[4]", 4, 8) "}", "overlap"},
        {"{" T("a", "U8", "[8]", 0, 8) "," T("b", "U8", "[0]", 4, 4) "}", "overlap"},
        {"{" T("a", "U8", "[3]", 0, 3) "," T("b", "U8", "[4]", 4, 8) "}", "gap"},
        {"{" T("a", "F32", "[1]", 4, 8) "}", "gap"},
        {"{" T("a", "F32", "[1]", 0, 4) "}", "4 bytes at its end"},
        {"{}", "8 bytes at its end"},
        {"{\"a\\u0000b\":1}", "damaged"},
        {"{\"\xFF\":1}", "damaged"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        refuses(bad[i].header, 8, bad[i].part);
    }
}

/* A rank that no tensor has, and nesting that would need a deep stack. */
static void huge_headers_are_refused(void) {
    size_t many = 200000;
    char *header = stk_mem_new(many * 2 + 200, 1);
    REQUIRE(header != NULL);
    strcpy(header, "{\"a\":{\"dtype\":\"U8\",\"data_offsets\":[0,8],\"shape\":[8");
    size_t used = strlen(header);
    for (size_t i = 0; i < many; i++) {
        memcpy(header + used + 2 * i, ",1", 2);
    }
    strcpy(header + used + 2 * many, "]}}");
    refuses(header, 8, "'a'");
    memset(header, '[', many);
    header[many] = '\0';
    refuses(header, 8, "damaged");
    stk_mem_free(header);
}

static void wrong_header_lengths_are_refused(void) {
    static const char header[] = "{" T("a", "F32", "[2]", 0, 8) "}   ";
    static const uint64_t lengths[] = {0,          1,         8,          100u << 20,    104857601,
                                       UINT32_MAX, INT64_MAX, UINT64_MAX, UINT64_MAX - 7};
    size_t size;
    char *bytes = file_of(header, 8, &size);
    uint64_t right = strlen(header);
    for (uint64_t i = 0; i < sizeof lengths / sizeof *lengths + 2 * right; i++) {
        uint64_t length = i < 2 * right ? i : lengths[i - 2 * right];
        stk_tensor_file file;
        stk_error err = {0};
        for (int k = 0; k < 8; k++) {
            bytes[k] = (char)(uint8_t)(length >> (8 * k));
        }
        stk_status status = stk_tensors_parse(&file, "x", bytes, size, &err);
        if (status != (length == right ? STK_OK : STK_ERR_DATA)) {
            CHECK_FAIL("length %llu: %s", (unsigned long long)length, err.message);
        }
        stk_tensors_close(&file);
    }
    stk_mem_free(bytes);
}

/* ---- numbers ---- */

static uint32_t bits(float value) {
    uint32_t out;
    memcpy(&out, &value, sizeof out);
    return out;
}

/* Every half float against the formula: sign, exponent, fraction. */
static void halves_become_floats(void) {
    for (uint32_t h = 0; h <= UINT16_MAX; h++) {
        uint16_t half = (uint16_t)h;
        int exponent = (half >> 10) & 31;
        double fraction = half & 1023;
        double sign = half & 0x8000 ? -1 : 1;
        float got;
        REQUIRE(stk_widen("F16", &half, 1, &got));
        if (exponent == 31 && fraction > 0) {
            CHECK(isnan(got) && (bits(got) >> 13 & 1023) == (half & 1023u));
        } else if (exponent == 31) {
            CHECK(isinf(got) && (got < 0) == (sign < 0));
        } else {
            double wanted =
                exponent == 0 ? ldexp(fraction, -24) : ldexp(1024 + fraction, exponent - 25);
            CHECK((double)got == sign * wanted && (signbit(got) != 0) == (sign < 0));
        }
    }
}

static void other_numbers_become_floats(void) {
    static const uint16_t brains[] = {0x3F80, 0xC000, 0x0001, 0x7F80, 0x8000};
    static const double doubles[] = {1.5, -0.1, 1e300, 1e-300, 0x1.000001p0};
    float values[5];
    REQUIRE(stk_widen("BF16", brains, 5, values));
    CHECK(values[0] == 1 && values[1] == -2 && bits(values[2]) == 0x10000 && isinf(values[3]));
    CHECK(values[4] == 0 && signbit(values[4]));
    REQUIRE(stk_widen("F64", doubles, 5, values));
    CHECK(values[0] == 1.5f && values[1] == -0.1f && isinf(values[2]) && values[3] == 0);
    CHECK(values[4] == 1); /* halfway between two floats: the even one */
    CHECK(!stk_widen("I64", doubles, 5, values));
    CHECK(!stk_widen("f16", doubles, 5, values));
}

/* Tensors of all types in one file, each on an odd boundary, longer than what is read at once. */
static void numbers_are_read_from_files(void) {
    enum { COUNT = 9001 };
    static uint16_t halves[COUNT];
    static uint16_t brains[COUNT];
    static double doubles[COUNT];
    static float floats[COUNT];
    static float got[COUNT];
    stk_error err = {0};
    char path[300];
    stk_tensor_file file;
    for (int i = 0; i < COUNT; i++) {
        halves[i] = (uint16_t)(i & 0x7BFF);
        brains[i] = (uint16_t)(0x3F80 + i);
        doubles[i] = i / 7.0;
        floats[i] = (float)i / 3;
    }
    const made_tensor made[] = {
        {"odd", 1, {3}, "U8", "abc", 3},
        {"half", 1, {COUNT}, "F16", halves, sizeof halves},
        {"brain", 2, {1, COUNT}, "BF16", brains, sizeof brains},
        {"double", 1, {COUNT}, "F64", doubles, sizeof doubles},
        {"float", 1, {COUNT}, "F32", floats, sizeof floats},
    };
    snprintf(path, sizeof path, "%s/t.safetensors", check_folder());
    REQUIRE_OK(write_tensors(path, made, 5, NULL, 0, &err), &err);
    REQUIRE_OK(stk_tensors_open(&file, path, &err), &err);
    for (int t = 1; t < 5; t++) {
        static float wanted[COUNT];
        const stk_tensor *tensor = stk_tensors_find(&file, made[t].name);
        REQUIRE(tensor != NULL && stk_tensor_is_float(tensor));
        CHECK_INT(stk_tensor_count(tensor), COUNT);
        REQUIRE(stk_widen(made[t].dtype, made[t].data, COUNT, wanted));
        REQUIRE_OK(stk_tensors_read_floats(&file, tensor, got, &err), &err);
        CHECK(memcmp(got, wanted, sizeof got) == 0);
    }
    CHECK(!stk_tensor_is_float(stk_tensors_find(&file, "odd")));
    /* A file that is cut under the reader's hands is an error, not a crash. */
    REQUIRE(truncate(path, 40000) == 0);
    CHECK_INT(stk_tensors_read_floats(&file, stk_tensors_find(&file, "float"), got, &err),
              STK_ERR_STORAGE);
    CHECK_CONTAINS(err.message, "became shorter");
    stk_tensors_close(&file);
}

/* What PyTorch's own files begin with: archives of 1.6 and later, and pickles before. */
static void pickles_are_recognised(void) {
    static const struct {
        const char *bytes;
        size_t size;
    } files[] = {
        {"PK\3\4\0\0\x08\x08\0\0\0\0 and so on", 25},
        {"PK\3\4\0\0\0\0\0\0\0\0 and so on", 25},
        {"\x80\2\x8a\nl\xfc\x9c\x46\xf9 j\xa8P\x19.", 15},
        {"\x80\4\x95\x20\0\0\0\0\0\0\0}q\0.", 16},
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        stk_tensor_file file;
        stk_error err = {0};
        CHECK_INT(stk_tensors_parse(&file, "net.pth", files[i].bytes, files[i].size, &err),
                  STK_ERR_DATA);
        CHECK_CONTAINS(err.message, "net.pth is a PyTorch pickle");
        CHECK_CONTAINS(err.message, "python3 -c");
        CHECK_CONTAINS(err.message, "OUT.safetensors");
    }
}

static void a_missing_file_is_told(void) {
    stk_tensor_file file;
    stk_error err = {0};
    CHECK_INT(stk_tensors_open(&file, "/no/such.safetensors", &err), STK_ERR_STORAGE);
    CHECK_CONTAINS(err.message, "/no/such.safetensors");
    CHECK_INT(stk_tensors_open(&file, check_folder(), NULL), STK_ERR_STORAGE);
}

static const check_test tests[] = {
    TEST(the_file_has_the_form_of_the_format),
    TEST(good_files_of_others_are_read),
    TEST(tensors_are_found_where_they_lie),
    TEST(headers_that_lie_are_refused),
    TEST(huge_headers_are_refused),
    TEST(wrong_header_lengths_are_refused),
    TEST(halves_become_floats),
    TEST(other_numbers_become_floats),
    TEST(numbers_are_read_from_files),
    TEST(pickles_are_recognised),
    TEST(a_missing_file_is_told),
};

CHECK_MAIN(tests)
