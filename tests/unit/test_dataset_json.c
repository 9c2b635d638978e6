/* test_dataset_json.c - the shapes of JSON that are tables, and what is none. */
#include "check.h"

#include "base/error.h"
#include "base/mem.h"
#include "dataset/json_table.h"

static stk_csv csv;
static stk_json_table_info info;
static stk_error err;

static stk_status read_text(const char *text) {
    stk_bytes block = {.data = (uint8_t *)(uintptr_t)text, .size = strlen(text)};
    stk_range_source source = stk_range_of_block("x.json", &block);
    memset(&err, 0, sizeof err);
    return stk_json_table_read(&source, &csv, &info, &err);
}

static void end(void) {
    stk_csv_free(&csv);
    stk_json_table_info_free(&info);
}

/* The table with commas between cells and a bar behind each row, the header first. */
static const char *spelled(void) {
    static char text[4096];
    size_t used = 0;
    text[0] = '\0';
    const char *cell = csv.columns > 0 ? csv.header[0] : NULL;
    for (size_t i = 0; cell != NULL && i < (csv.rows + 1) * csv.columns; i++) {
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", cell,
                                 (i + 1) % csv.columns == 0 ? "|" : ",");
        cell = stk_csv_next(cell);
    }
    return text;
}

static void check_table(const char *text, const char *table) {
    if (read_text(text) != STK_OK) {
        CHECK_FAIL("%s: %s", text, err.message);
        return;
    }
    CHECK_STR(spelled(), table);
    end();
}

static void lists_of_records(void) {
    check_table("[{\"id\":1,\"label\":\"cat\"},{\"id\":2,\"label\":\"dog\"}]",
                "id,label|1,cat|2,dog|");
    check_table("{\"id\":1,\"label\":\"cat\"}\n{\"id\":2,\"label\":\"dog\"}\n",
                "id,label|1,cat|2,dog|");
    check_table("\xEF\xBB\xBF{\"id\":1}{\"id\":2} {\"id\":3}", "id|1|2|3|");
    check_table("{\"info\":{\"year\":2020},\"version\":1.0,\"data\":[{\"id\":1},{\"id\":2}]}",
                "id|1|2|");
    check_table("{\"a\":[],\"rows\":[{\"id\":1}]}", "id|1|");
}

static void values_become_cells(void) {
    check_table("[{\"a\":3,\"b\":3.0,\"c\":-1.50E+2,\"d\":123456789012345678901234567890,"
                "\"e\":9007199254740993}]",
                "a,b,c,d,e|3,3.0,-1.50E+2,123456789012345678901234567890,9007199254740993|");
    check_table("[{\"a\":null,\"b\":true,\"c\":false,\"d\":\"\",\"e\":NaN}]",
                "a,b,c,d,e|,true,false,,|");
    check_table("[{\"\\u006bey\":\"caf\\u00e9 \\ud83d\\ude00 a\\\"b\\/\"}]",
                "key|caf\xC3\xA9 \xF0\x9F\x98\x80 a\"b/|");
    /* Fields that some records lack, or have in another order. */
    check_table("[{\"a\":1,\"b\":2},{\"b\":3},{\"c\":4,\"a\":5},{}]", "a,b,c|1,2,|,3,|5,,4|,,|");
    check_table("[{\"a\":{\"x\":1,\"y\":{\"z\":2},\"w\":[3]},\"b\":4}]", "a.x,b|1,4|");
    check_table("[{\"id\":1,\"labels\":[\"a\",\"b\",null]},{\"id\":2,\"labels\":[]}]",
                "id,labels|1,a b |2,|");
    check_table("[{\"id\":1,\"l\":[{\"x\":1}],\"m\":[[1,2],[3]],\"n\":[1,\"a\"]}]", "id|1|");
}

static void columns_and_maps(void) {
    check_table("{\"id\":[1,2,3],\"label\":[\"a\",null,\"c\"]}", "id,label|1,a|2,|3,c|");
    check_table("{\"id\":[1],\"label\":[\"a\"]}", "id,label|1,a|");
    check_table("{\"version\":1,\"id\":[1],\"label\":[\"a\"]}", "id,label|1,a|");
    check_table("{\"id\":{\"0\":\"x\",\"1\":\"y\"},\"n\":{\"0\":5,\"1\":6}}", "id,n|x,5|y,6|");
    check_table("{\"a.jpg\":\"cat\",\"b.jpg\":\"dog\"}", "id,label|a.jpg,cat|b.jpg,dog|");
    check_table("{\"1\":{\"y\":2,\"z\":3},\"7\":{\"z\":4}}", "id,y,z|1,2,3|7,,4|");
    check_table("{\"k\":{\"y\":2,\"id\":9}}", "id,y|9,2|");
    check_table("{\"a\":[\"x\",\"y\"],\"b\":[],\"c\":[\"z\"]}", "id,label|a,x y|b,|c,z|");
    check_table("{\"a\":[\"x\"],\"b\":[\"y\"],\"c\":[\"z\"]}", "id,label|a,x|b,y|c,z|");
}

#define IMAGES "\"images\":[{\"id\":7,\"file_name\":\"a\"},{\"id\":8,\"file_name\":\"b\"}]"
#define NOTES                                                               \
    "\"annotations\":[{\"id\":0,\"image_id\":8,\"category_id\":5,\"g\":1}," \
    "{\"id\":1,\"image_id\":7,\"category_id\":3,\"g\":2}]"
#define CLASSES "\"categories\":[{\"id\":3,\"name\":\"cat\"},{\"id\":5,\"name\":\"dog\"}]"

static void coco_in_any_order(void) {
    static const char table[] = "id,file_name,category_id,g|7,a,3,2|8,b,5,1|";
    check_table("{" IMAGES "," NOTES "," CLASSES "}", table);
    check_table("{\"info\":{\"a\":[1]}," CLASSES "," NOTES "," IMAGES "}", table);
    check_table("{\"licenses\":[{\"id\":1}]," NOTES ",\"x\":[{\"id\":1},2]," IMAGES "}", table);
    REQUIRE(read_text("{" NOTES "," CLASSES "," IMAGES "}") == STK_OK);
    CHECK(info.is_coco && !info.has_boxes && !info.has_masks);
    CHECK_INT(info.category_count, 2);
    CHECK_STR(info.category_ids[1], "5");
    CHECK_STR(info.category_names[1], "dog");
    end();
}

static void coco_by_image_id(void) {
    REQUIRE(
        read_text("{\"annotations\":[{\"genus_id\":1,\"category_id\":4,\"image_id\":"
                  "\"00000__001\"}],\"images\":[{\"image_id\":\"00000__001\",\"file_name\":"
                  "\"000/00/00000__001.jpg\",\"license\":1}],\"categories\":[{\"category_id\":4,"
                  "\"scientificName\":\"Abies alba\"}],\"genera\":[{\"genus_id\":1}]}") == STK_OK);
    CHECK_STR(spelled(), "image_id,file_name,license,genus_id,category_id|"
                         "00000__001,000/00/00000__001.jpg,1,1,4|");
    CHECK_STR(info.category_ids[0], "4");
    CHECK_STR(info.category_names[0], "Abies alba");
    end();
    check_table("[{\"image_id\":\"0\",\"file_name\":\"000/test-0.jpg\"}]",
                "image_id,file_name|0,000/test-0.jpg|");
}

static void coco_without_one_list(void) {
    check_table("{" IMAGES "}", "id,file_name|7,a|8,b|");
    check_table("{" IMAGES ",\"annotations\":[]}", "id,file_name|7,a|8,b|");
    check_table("{" NOTES "}", "id,image_id,category_id,g|0,8,5,1|1,7,3,2|");
    check_table("{\"categories\":[]," IMAGES "}", "id,file_name|7,a|8,b|");
}

static void several_annotations_of_an_image(void) {
    REQUIRE(read_text("{" IMAGES ",\"annotations\":["
                      "{\"image_id\":7,\"category_id\":3,\"g\":1,\"h\":1,\"bbox\":[0,0,5,5]},"
                      "{\"image_id\":7,\"category_id\":9,\"g\":1,\"h\":2,\"bbox\":[]},"
                      "{\"image_id\":7,\"category_id\":3,\"g\":1,\"h\":1},"
                      "{\"image_id\":99,\"category_id\":4}]}") == STK_OK);
    CHECK_STR(spelled(), "id,file_name,category_id,g,h|7,a,3 9,1,|8,b,,,|");
    CHECK(info.has_boxes && !info.has_masks);
    CHECK_INT(info.strays, 1);
    CHECK_INT(info.array_count, 0);
    end();
    REQUIRE(read_text("{" IMAGES ",\"annotations\":["
                      "{\"image_id\":8,\"category_id\":3,\"bbox\":[],\"segmentation\":[]},"
                      "{\"image_id\":8,\"category_id\":3,\"segmentation\":[[1,2,3]]}]}") == STK_OK);
    CHECK_STR(spelled(), "id,file_name,category_id|7,a,|8,b,3|");
    CHECK(!info.has_boxes && info.has_masks);
    end();
    REQUIRE(read_text("{" IMAGES ",\"annotations\":[{\"image_id\":8,\"category_id\":3,"
                      "\"segmentation\":{\"counts\":\"x\",\"size\":[1,2]}}]}") == STK_OK);
    CHECK_STR(spelled(), "id,file_name,category_id|7,a,|8,b,3|");
    CHECK(info.has_masks);
    end();
}

static void lists_of_numbers_are_noted(void) {
    static const char text[] = "[{\"id\":\"x\",\"b\":[1.5,2],\"c\":[[1],[2],[3]]},\n"
                               " {\"id\":\"y\",\"c\":[[4],[5],[6]]},\n"
                               " {\"id\":\"z\",\"b\":[3,-4e1],\"d\":[1]},{\"d\":[1,2]}]";
    REQUIRE(read_text(text) == STK_OK);
    CHECK_STR(spelled(), "id|x|y|z||");
    CHECK_INT(stk_csv_line(&csv, 2), 3);
    REQUIRE(info.array_count == 3);
    CHECK_STR(info.arrays[0].name, "b");
    CHECK_INT(info.arrays[0].length, 2);
    CHECK_INT(info.arrays[0].lists, 0);
    CHECK_INT(info.arrays[1].length, 3);
    CHECK_INT(info.arrays[1].lists, 3);
    CHECK_INT(info.arrays[2].length, 0);
    for (size_t i = 0; i < 3; i++) {
        CHECK_INT(info.arrays[i].place_count, 4);
    }
    const stk_json_place *place = &info.arrays[0].places[2];
    CHECK(strncmp(text + place->offset, "[3,-4e1]", (size_t)place->bytes) == 0);
    CHECK_INT(place->bytes, 8);
    CHECK_INT(info.arrays[0].places[1].bytes, 0);
    CHECK_INT(info.arrays[0].places[3].bytes, 0);
    end();
}

static void what_is_no_table_is_refused(void) {
    static const struct {
        const char *text;
        const char *part;
    } cases[] = {
        {"", "x.json is empty"},
        {" \n", "x.json is empty"},
        {"[]", "holds no records"},
        {"{}", "holds no records"},
        {"[{}]", "holds no records"},
        {"{\"images\":[],\"annotations\":[]}", "holds no records"},
        {"7", "no table that Stoker knows"},
        {"{\"a\":1,\"b\":{\"c\":2}}", "no table that Stoker knows"},
        {"{\"a\":1,\"b\":[1,2],\"c\":[1]}", "no table that Stoker knows"},
        {"[1,2]", "not of records"},
        {"[[1,2]]", "not of records"},
        {"[{\"a\":1},2]", "records and other things"},
        {"{\"images\":[{\"id\":1},7]}", "\"images\" holds records and other things"},
        {"{\"train\":[{\"a\":1}],\"val\":[{\"a\":1}]}", "\"train\", \"val\""},
        {"[{\"a\":1,\"a\":2}]", "\"a\" stands twice"},
        {"[{\"a\":[1],\"a\":[2]}]", "\"a\" stands twice"},
        {"{\"images\":[{\"id\":1}],\"images\":[{\"id\":2}]}", "\"images\" stands twice"},
        {"{\"id\":[1],\"id\":[2]}", "\"id\" stands twice"},
        {"{\"id\":{\"0\":1,\"2\":1}}", "no row numbers"},
        {"[{\"a\":1}] x", "x.json is not valid JSON at line 1, byte 10"},
        {"[{\"a\":1}] 5", "something follows"},
        {"{\"a\":1}\n[1]", "something follows"},
        {"{\"a\":1}\n{\"a\":2}\n7", "line 3, byte 17: something that is no record"},
        {"{\"a\":1}\n{\"a\":2", "ends in the middle"},
        {"[{\"a\":1},\n{\"a\":}]", "line 2, byte 15"},
        {"{\"images\":[{\"id\":1},{\"id\":1}],\"annotations\":[{\"image_id\":1}]}",
         "two images have the id \"1\""},
        {"{\"images\":[{\"id\":1}],\"annotations\":[{\"x\":1}]}", "no image_id"},
        {"{\"images\":[{\"x\":1}],\"annotations\":[{\"image_id\":1}]}", "images have no id"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CHECK_INT(read_text(cases[i].text), STK_ERR_DATA);
        CHECK_CONTAINS(err.message, cases[i].part);
        CHECK_CONTAINS(err.message, "x.json");
        CHECK(csv.buffer == NULL && info.arrays == NULL && info.categories.buffer == NULL);
    }
}

static void lack_of_memory_is_told(void) {
    static const char *const texts[] = {
        "{" IMAGES "," NOTES "," CLASSES "}",
        "[{\"id\":1,\"l\":[\"a\",\"b\"],\"n\":[1,2],\"o\":{\"p\":1}}]",
        "{\"id\":[1,2,3],\"label\":[1,2,3]}",
        "{\"a\":\"b\"}\n{\"a\":\"b\"}",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        stk_status status = STK_ERR_MEMORY;
        int64_t n = 0;
        for (; status == STK_ERR_MEMORY && n < 300; n++) {
            stk_mem_fail_after(n);
            status = read_text(texts[i]);
            stk_mem_fail_after(-1);
            CHECK(status == STK_OK || (status == STK_ERR_MEMORY && csv.buffer == NULL));
        }
        CHECK_INT(status, STK_OK);
        CHECK(n > 5);
        end();
    }
}

static const check_test tests[] = {
    TEST(lists_of_records),
    TEST(values_become_cells),
    TEST(columns_and_maps),
    TEST(coco_in_any_order),
    TEST(coco_by_image_id),
    TEST(coco_without_one_list),
    TEST(several_annotations_of_an_image),
    TEST(lists_of_numbers_are_noted),
    TEST(what_is_no_table_is_refused),
    TEST(lack_of_memory_is_told),
};

CHECK_MAIN(tests)
