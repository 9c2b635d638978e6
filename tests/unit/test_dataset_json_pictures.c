/* test_dataset_json_pictures.c - pictures out of JSON files: values, shapes, kept results, faults.
 */
#include "check.h"

#include <sys/stat.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"
#include "dataset/json_pictures.h"

static char folder[256]; /* of the running test */
static stk_json_pictures pictures;
static stk_error err;

static stk_status convert_version(const char *text, size_t size, const char *version) {
    stk_bytes block = {.data = (uint8_t *)(uintptr_t)text, .size = size};
    stk_range_source source = stk_range_of_block("in/train.json", &block);
    memset(&err, 0, sizeof err);
    return stk_json_pictures_convert(&source, version, folder, "train", NULL, &pictures, &err);
}

static void begin(void) {
    snprintf(folder, sizeof folder, "%s", check_folder());
}

static stk_status convert(const stk_str *text) {
    return convert_version(stk_str_text(text), text->length, "v1");
}

/* Records like those of a radar: two bands, an angle that may be "na". */
static void put_records(stk_str *text, size_t count, size_t side) {
    stk_str_clear(text);
    stk_str_append(text, "[");
    for (size_t i = 0; i < count; i++) {
        stk_str_appendf(text, "%s{\"id\": \"p%zu\"", i > 0 ? ", " : "", i);
        for (int band = 1; band <= 2; band++) {
            stk_str_appendf(text, ", \"band_%d\": [", band);
            for (size_t k = 0; k < side * side; k++) {
                stk_str_appendf(text, "%s-%zu.%d25", k > 0 ? ", " : "", i + k, band);
            }
            stk_str_append(text, "]");
        }
        stk_str_appendf(text, ", \"inc_angle\": %s, \"is_iceberg\": %zu}",
                        i % 2 == 0 ? "43.9239" : "\"na\"", i % 2);
    }
    stk_str_append(text, "]");
}

/* A picture's file: its head is checked, its floats are returned. */
static const float *read_npy(const char *name, const char *shape, size_t floats) {
    static stk_bytes bytes;
    char *path = stk_str_format("%s/pictures/train/%s", folder, name);
    char wanted[128];
    if (stk_file_read_into(path, 0, &bytes, &err) != STK_OK) {
        CHECK_FAIL("%s", err.message);
        return NULL;
    }
    stk_mem_free(path);
    snprintf(wanted, sizeof wanted, "{'descr': '<f4', 'fortran_order': False, 'shape': %s, }",
             shape);
    CHECK_INT(bytes.size, 128 + 4 * floats);
    CHECK(memcmp(bytes.data, "\x93NUMPY\x01\x00\x76\x00", 10) == 0);
    CHECK(strncmp((const char *)bytes.data + 10, wanted, strlen(wanted)) == 0);
    CHECK_INT(bytes.data[127], '\n');
    return (const float *)(const void *)(bytes.data + 128);
}

static void bands_are_channels(void) {
    begin();
    stk_str text = {0};
    put_records(&text, 5, 6);
    REQUIRE_OK(convert(&text), &err);
    CHECK_INT(pictures.csv.rows, 5);
    CHECK_INT(pictures.csv.columns, 3);
    CHECK_STR(stk_csv_cell(&pictures.csv, 1, 1), "na");
    CHECK_STR(pictures.csv.header[pictures.id_column], "id");
    CHECK(pictures.height == 6 && pictures.width == 6 && pictures.channels == 2);
    CHECK(!pictures.is_recalled);
    const float *floats = read_npy("p3.npy", "(6, 6, 2)", 72);
    REQUIRE(floats != NULL);
    CHECK_NEAR(floats[0], -3.125, 0);
    CHECK_NEAR(floats[1], -3.225, 1e-6);
    CHECK_NEAR(floats[2 * 35], -38.125, 0);
    CHECK_NEAR(floats[71], -38.225, 1e-5);
    stk_json_pictures_free(&pictures);
    stk_str_free(&text);
}

static void nested_lists_are_rows(void) {
    begin();
    static const char text[] =
        "[{\"image_id\": 7, \"box\": [1,2,3,4], \"pixels\": [[1,2,3,4,5,6],[7,8,9,10,11,12],"
        "[13,14,15,16,17,18]]}]";
    REQUIRE_OK(convert_version(text, sizeof text - 1, ""), &err);
    CHECK(pictures.height == 3 && pictures.width == 6 && pictures.channels == 1);
    const float *floats = read_npy("7.npy", "(3, 6, 1)", 18);
    REQUIRE(floats != NULL);
    for (int i = 0; i < 18; i++) {
        CHECK_NEAR(floats[i], i + 1, 0);
    }
    stk_json_pictures_free(&pictures);
}

static void results_are_kept(void) {
    begin();
    stk_str text = {0};
    char path[600];
    struct stat info;
    put_records(&text, 4, 4);
    REQUIRE_OK(convert(&text), &err);
    stk_json_pictures_free(&pictures);
    /* The source is not asked again. */
    REQUIRE_OK(convert_version("nothing", 7, "v1"), &err);
    CHECK(pictures.is_recalled);
    CHECK(pictures.height == 4 && pictures.width == 4 && pictures.channels == 2);
    CHECK_INT(pictures.csv.rows, 4);
    CHECK_STR(stk_csv_cell(&pictures.csv, 3, 0), "p3");
    CHECK_CONTAINS(pictures.folder, "/pictures/train");
    stk_json_pictures_free(&pictures);
    /* Another version of the file, of fewer pictures. */
    CHECK_INT(convert_version("nothing", 7, "v2"), STK_ERR_DATA);
    put_records(&text, 3, 4);
    REQUIRE_OK(convert_version(text.text, text.length, "v2"), &err);
    CHECK(!pictures.is_recalled);
    stk_json_pictures_free(&pictures);
    snprintf(path, sizeof path, "%s/pictures/train/p3.npy", folder);
    CHECK(stat(path, &info) != 0);
    /* A picture that is gone or cut. */
    snprintf(path, sizeof path, "%s/pictures/train/p2.npy", folder);
    CHECK_INT(truncate(path, 100), 0);
    REQUIRE_OK(convert_version(text.text, text.length, "v2"), &err);
    CHECK(!pictures.is_recalled);
    CHECK(stat(path, &info) == 0 && info.st_size == 128 + 4 * 32);
    stk_json_pictures_free(&pictures);
    stk_str_free(&text);
}

static void faults_are_told(void) {
#define SIXTEEN "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16"
    static const struct {
        const char *text;
        const char *part;
    } cases[] = {
        {"[{\"id\":1,\"label\":2}]", "no lists of equally many numbers"},
        {"[{\"id\":1,\"b\":[" SIXTEEN ",17]}]", "17 numbers, which are no square"},
        {"[{\"id\":1,\"b\":[" SIXTEEN "]},{\"id\":1,\"b\":[" SIXTEEN "]}]",
         "two records have the id"},
        {"[{\"id\":1,\"b\":[" SIXTEEN "]},{\"id\":2}]", "the id \"2\" has no b"},
        {"[{\"id\":\"../x\",\"b\":[" SIXTEEN "]}]", "cannot name a picture"},
        {"[{\"id\":null,\"b\":[" SIXTEEN "]}]", "cannot name a picture"},
        {"[{\"id\":1,\"b\":[1e39,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16]}]", "fit a float"},
        {"[{\"id\":1,\"b\":[" SIXTEEN "]},{\"id\":2,\"b\":[1]}]", "no lists of equally many"},
        {"{\"a\":", "ends in the middle"}};
    begin();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CHECK_INT(convert_version(cases[i].text, strlen(cases[i].text), "x"), STK_ERR_DATA);
        CHECK_CONTAINS(err.message, cases[i].part);
        CHECK_CONTAINS(err.message, "train.json");
        CHECK(pictures.csv.buffer == NULL && pictures.folder == NULL);
    }
}

static void numbers_are_those_of_strtof(void) {
    static const char *const texts[] = {"0",
                                        "-0.0",
                                        "1",
                                        "-27.878360999999998",
                                        "0.1",
                                        "1e-3",
                                        "1.5E+10",
                                        "123456789012345678901234",
                                        "0.00000000000000000000000000001",
                                        "3.4028234e38",
                                        "16777217",
                                        "-1e-50",
                                        "43.92390000000000042",
                                        "0.30000001192092896"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        float value = 5;
        CHECK(stk_json_pixels_parse(texts[i], 1, &value, 1));
        CHECK_NEAR(value, strtof(texts[i], NULL), 0);
    }
    float two[3] = {9, 9, 9};
    CHECK(stk_json_pixels_parse("[ 1 ,\n2]", 2, two, 2));
    CHECK(two[0] == 1 && two[1] == 9 && two[2] == 2);
    CHECK(!stk_json_pixels_parse("[1,2]", 3, two, 1));
    CHECK(!stk_json_pixels_parse("[1,2]", 1, two, 1));
    CHECK(!stk_json_pixels_parse("[1,x]", 2, two, 1));
    CHECK(!stk_json_pixels_parse("[1,-]", 2, two, 1));
    CHECK(!stk_json_pixels_parse("[1e99]", 1, two, 1));
}

static void lack_of_memory_is_told(void) {
    begin();
    stk_str text = {0};
    put_records(&text, 2, 4);
    stk_status status = STK_ERR_MEMORY;
    int64_t n = 0;
    for (; status == STK_ERR_MEMORY && n < 400; n++) {
        stk_mem_fail_after(n);
        status = convert(&text);
        stk_mem_fail_after(-1);
        CHECK(status == STK_OK || (status == STK_ERR_MEMORY && pictures.csv.buffer == NULL));
    }
    CHECK_INT(status, STK_OK);
    CHECK(n > 20);
    stk_json_pictures_free(&pictures);
    stk_str_free(&text);
}

static const check_test tests[] = {
    TEST(bands_are_channels), TEST(nested_lists_are_rows),       TEST(results_are_kept),
    TEST(faults_are_told),    TEST(numbers_are_those_of_strtof), TEST(lack_of_memory_is_told),
};

CHECK_MAIN(tests)
