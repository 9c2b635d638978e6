/*
 * fuzz_json_table.c - whatever bytes a JSON file holds: an error with a sentence, or a table whose
 * cells all can be read and whose noted lists lie in the file.
 */
#include "fuzz.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "dataset/json_table.h"

static const fuzz_seed seeds[] = {
    FUZZ_SEED("[{\"id\":1,\"l\":\"a\\u00e9\"},{\"l\":null,\"o\":{\"p\":true,\"q\":[1]}}]"),
    FUZZ_SEED("{\"id\":\"1\",\"b\":[1.5,-2e3]}\n{\"id\":\"2\",\"b\":[3,4],\"c\":[[1,2],[3,4]]}\n"),
    FUZZ_SEED("{\"images\":[{\"id\":1,\"f\":\"x\"},{\"id\":2}],\"annotations\":[{\"image_id\":2,"
              "\"category_id\":5},{\"image_id\":2,\"category_id\":6,\"bbox\":[1,2,3,4]}],"
              "\"categories\":[{\"id\":5,\"name\":\"cat\"}]}"),
    FUZZ_SEED("{\"id\":[1,2],\"label\":[\"a\",\"b\"]}"),
    FUZZ_SEED("{\"id\":{\"0\":\"a\",\"1\":\"b\"},\"x\":{\"0\":1,\"1\":NaN}}"),
    FUZZ_SEED("{\"a\":\"cat\",\"b\":\"dog\"}"),
    FUZZ_SEED("{\"a\":{\"x\":1},\"b\":{\"y\":[\"p\",\"q\"]}}"),
};
FUZZ_PLAN(seeds)

static void check_cells(const stk_csv *csv) {
    const char *cell = csv->header[0];
    size_t most = 0;
    for (size_t i = 0; i < (csv->rows + 1) * csv->columns; i++) {
        FUZZ_REQUIRE(i % csv->columns != 0 || cell == csv->buffer + csv->starts[i / csv->columns]);
        most += strlen(cell);
        cell = stk_csv_next(cell);
    }
    FUZZ_REQUIRE(most < UINT32_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    stk_bytes block = {.data = (uint8_t *)(uintptr_t)data, .size = size};
    stk_range_source source = stk_range_of_block("input", &block);
    stk_csv csv;
    stk_json_table_info info;
    stk_error err = {0};
    if (stk_json_table_read(&source, &csv, &info, &err) != STK_OK) {
        FUZZ_REQUIRE(err.status == STK_ERR_DATA && strstr(err.message, "input") != NULL);
        FUZZ_REQUIRE(csv.buffer == NULL && info.arrays == NULL);
        return 0;
    }
    FUZZ_REQUIRE(csv.columns > 0);
    check_cells(&csv);
    for (size_t i = 0; i < info.array_count; i++) {
        const stk_json_array *array = &info.arrays[i];
        FUZZ_REQUIRE(array->place_count == csv.rows);
        for (size_t row = 0; row < csv.rows; row++) {
            const stk_json_place *place = &array->places[row];
            FUZZ_REQUIRE(place->bytes <= size && place->offset <= size - place->bytes);
            FUZZ_REQUIRE(place->bytes == 0 || (data[place->offset] == '[' &&
                                               data[place->offset + place->bytes - 1] == ']'));
        }
    }
    stk_csv_free(&csv);
    stk_json_table_info_free(&info);
    return 0;
}
