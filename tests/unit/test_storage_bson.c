/* test_storage_bson.c - BSON files of products: cells, places of pictures, damage of every kind. */
#include "check.h"

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"
#include "storage/tar/bson_scan.h"
#include "bson_files.h"

static stk_bson_scan scan;
static stk_error err;

static stk_status read_with(const char *bytes, size_t size, const stk_bson_how *how) {
    stk_bytes block = {.data = (uint8_t *)(uintptr_t)bytes, .size = size};
    stk_range_source source = stk_range_of_block("x.bson", &block);
    memset(&err, 0, sizeof err);
    return stk_bson_read(&source, how, &scan, &err);
}

static stk_status read_file(void) {
    return read_with(stk_str_text(&bson_file), bson_file.length, NULL);
}

static void put_products(void) {
    stk_str_clear(&bson_file);
    size_t at = open_document();
    put_int32("_id", 42);
    put_int32("category_id", 1000010653);
    PICTURES("first", "2nd");
    close_document(at);
    at = open_document();
    put_int32("_id", -7);
    PICTURES("");
    put_int32("category_id", 5);
    close_document(at);
}

static void check_picture(size_t i, size_t row, const char *bytes) {
    CHECK_INT(scan.pictures[i].row, row);
    CHECK_INT(scan.pictures[i].bytes, strlen(bytes));
    CHECK(memcmp(bson_file.text + scan.pictures[i].offset, bytes, strlen(bytes)) == 0);
}

static void products_have_pictures(void) {
    put_products();
    REQUIRE_OK(read_file(), &err);
    CHECK_INT(scan.csv.rows, 2);
    CHECK_INT(scan.csv.columns, 2);
    CHECK_STR(scan.csv.header[0], "_id");
    CHECK_STR(stk_csv_cell(&scan.csv, 0, 1), "1000010653");
    CHECK_STR(stk_csv_cell(&scan.csv, 1, 0), "-7");
    CHECK_INT(stk_csv_line(&scan.csv, 1), 2);
    CHECK(scan.is_whole);
    CHECK_INT(scan.bytes, bson_file.length);
    REQUIRE(scan.picture_count == 3);
    check_picture(0, 0, "first");
    check_picture(1, 0, "2nd");
    check_picture(2, 1, "");
    stk_bson_scan_free(&scan);
    stk_str_free(&bson_file);
}

static void values_become_cells(void) {
    static const char *const cells[] = {"9007199254740993",
                                        "-9223372036854775808",
                                        "caf\xC3\xA9",
                                        "00010203040506070809aaff",
                                        "true",
                                        "0.1",
                                        "1e+300",
                                        "",
                                        "-5"};
    stk_str_clear(&bson_file);
    size_t at = open_document();
    put_int64("_id", 9007199254740993);
    put_int64("b", INT64_MIN);
    put_string("c", "caf\xC3\xA9");
    head(0x07, "d");
    stk_str_append_bytes(&bson_file, "\0\1\2\3\4\5\6\7\10\11\xAA\xFF", 12);
    head(0x08, "e");
    put_number(1, 1);
    head(0x01, "f");
    put_number(0x3FB999999999999A, 8);
    head(0x01, "g");
    put_number(0x7E37E43C8800759C, 8);
    head(0x0A, "h");
    head(0x09, "i");
    put_number((uint64_t)-5, 8);
    /* These are no cells. */
    head(0x0B, "regex");
    stk_str_append_bytes(&bson_file, "a\0b\0", 4);
    head(0x13, "decimal");
    put_number(0, 8);
    put_number(0, 8);
    head(0x0D, "code");
    put_number(2, 4);
    put_number('x', 2);
    head(0x0C, "pointer");
    put_number(1, 4);
    put_number(0, 1);
    put_number(0, 8);
    put_number(0, 4);
    head(0x11, "time");
    put_number(0, 8);
    head(0xFF, "least");
    head(0x7F, "most");
    head(0x06, "undefined");
    head(0x03, "document");
    size_t inner = open_document();
    put_int32("x", 1);
    close_document(inner);
    head(0x05, "picture"); /* the old kind, which has its length twice */
    put_number(7, 4);
    put_number(2, 1);
    put_number(3, 4);
    stk_str_append(&bson_file, "abc");
    close_document(at);
    REQUIRE_OK(read_file(), &err);
    REQUIRE(scan.csv.columns == 9 && scan.picture_count == 1);
    check_picture(0, 0, "abc");
    for (size_t i = 0; i < 9; i++) {
        CHECK_STR(stk_csv_cell(&scan.csv, 0, i), cells[i]);
    }
    stk_bson_scan_free(&scan);
    stk_str_free(&bson_file);
}

static void large_files_are_read_in_pieces(void) {
    static char large[3000001];
    static char small[5001];
    memset(large, 'L', sizeof large - 1);
    memset(small, 'S', sizeof small - 1);
    stk_str_clear(&bson_file);
    for (int i = 0; i < 1500; i++) {
        size_t at = open_document();
        put_int32("_id", i);
        PICTURES(small, i % 700 == 3 ? large : "tiny");
        close_document(at);
    }
    for (int most = 0; most <= 5; most += 5) {
        stk_bson_how how = {.at_a_time = most};
        REQUIRE_OK(read_with(bson_file.text, bson_file.length, &how), &err);
        CHECK_INT(scan.csv.rows, 1500);
        REQUIRE(scan.picture_count == 3000);
        for (size_t i = 0; i < 3000; i++) {
            check_picture(i, i / 2, i % 2 == 0 ? small : i / 2 % 700 == 3 ? large : "tiny");
        }
        stk_bson_scan_free(&scan);
    }
    stk_str_free(&bson_file);
}

static bool is_enough(void *user, uint64_t at) {
    return at >= *(uint64_t *)user;
}

static void reading_can_end_early(void) {
    static char picture[100001];
    memset(picture, 'P', sizeof picture - 1);
    stk_str_clear(&bson_file);
    for (int i = 0; i < 100; i++) {
        size_t at = open_document();
        put_int32("_id", i);
        PICTURES(picture);
        close_document(at);
    }
    uint64_t most = 3000000;
    stk_bson_how how = {.enough = is_enough, .user = &most};
    REQUIRE_OK(read_with(bson_file.text, bson_file.length, &how), &err);
    CHECK(!scan.is_whole && scan.bytes >= most && scan.bytes < most + 2000000);
    CHECK_INT(scan.csv.rows, scan.picture_count);
    stk_bson_scan_free(&scan);
    stk_str_free(&bson_file);
}

/* Every cut and every changed byte is an error with a sentence, or leads to pictures in the
 * bson_file.
 */
static void damage_is_refused(void) {
    put_products();
    for (size_t size = 0; size < bson_file.length; size++) {
        stk_status status = read_with(bson_file.text, size, NULL);
        bool whole_first = size == (unsigned char)bson_file.text[0];
        CHECK_INT(status, whole_first ? STK_OK : STK_ERR_DATA);
        CHECK(status == STK_OK || strstr(err.message, "x.bson") != NULL);
        stk_bson_scan_free(&scan);
    }
    for (size_t i = 0; i < bson_file.length; i++) {
        for (int flip = 1; flip < 256; flip += flip < 4 ? 1 : 63) {
            bson_file.text[i] = (char)(bson_file.text[i] ^ flip);
            if (read_file() == STK_OK) {
                for (size_t k = 0; k < scan.picture_count; k++) {
                    CHECK(scan.pictures[k].offset + scan.pictures[k].bytes < bson_file.length);
                }
            } else {
                CHECK_INT(err.status, STK_ERR_DATA);
            }
            stk_bson_scan_free(&scan);
            bson_file.text[i] = (char)(bson_file.text[i] ^ flip);
        }
    }
    CHECK_INT(read_with("", 0, NULL), STK_ERR_DATA);
    CHECK_CONTAINS(err.message, "x.bson is empty");
    CHECK_INT(read_with("{\"a\":1}", 7, NULL), STK_ERR_DATA);
    CHECK_CONTAINS(err.message, "no BSON file or is damaged");
    stk_str_free(&bson_file);
}

static void repeated_fields_are_refused(void) {
    stk_str_clear(&bson_file);
    size_t at = open_document();
    put_int32("_id", 1);
    put_int32("_id", 2);
    close_document(at);
    CHECK_INT(read_file(), STK_ERR_DATA);
    CHECK_CONTAINS(err.message, "stands twice");
    stk_str_free(&bson_file);
}

static void pictures_become_members(void) {
    stk_shard_index index = {0};
    put_products();
    REQUIRE_OK(read_file(), &err);
    REQUIRE_OK(stk_bson_index(&scan, "train.bson", "train", &index, &err), &err);
    REQUIRE_OK(stk_bson_index(&scan, "b.bson", "", &index, &err), &err);
    CHECK_INT(index.shard_count, 2);
    CHECK_STR(index.shards[0].name, "train.bson");
    CHECK_INT(index.shards[0].size, bson_file.length);
    REQUIRE(index.member_count == 6);
    CHECK_STR(index.members[0].path, "train/42/0.jpg");
    CHECK_STR(index.members[1].path, "train/42/1.jpg");
    CHECK_STR(index.members[2].path, "train/-7/0.jpg");
    CHECK_STR(index.members[5].path, "-7/0.jpg");
    CHECK_INT(index.members[5].shard, 1);
    CHECK(memcmp(bson_file.text + index.members[1].offset, "2nd", 3) == 0);
    CHECK_INT(index.members[1].size, 3);
    stk_shard_index_free(&index);
    stk_bson_scan_free(&scan);
    stk_str_free(&bson_file);
}

static void ids_must_be_names(void) {
    static const char *const ids[] = {"", "..", "a/b", ".hidden", "a\nb", "x\\y"};
    stk_shard_index index = {0};
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        stk_str_clear(&bson_file);
        size_t at = open_document();
        put_string("_id", ids[i]);
        close_document(at);
        REQUIRE_OK(read_file(), &err);
        CHECK_INT(stk_bson_index(&scan, "x.bson", "", &index, &err), STK_ERR_DATA);
        CHECK_CONTAINS(err.message, "cannot name its pictures");
        stk_bson_scan_free(&scan);
    }
    stk_str_clear(&bson_file);
    for (int i = 0; i < 2; i++) {
        size_t at = open_document();
        put_int32("_id", 3);
        close_document(at);
    }
    REQUIRE_OK(read_file(), &err);
    CHECK_INT(stk_bson_index(&scan, "x.bson", "", &index, &err), STK_ERR_DATA);
    CHECK_CONTAINS(err.message, "two documents have the _id \"3\"");
    stk_bson_scan_free(&scan);
    stk_str_clear(&bson_file);
    size_t at = open_document();
    put_int32("id", 3);
    close_document(at);
    REQUIRE_OK(read_file(), &err);
    CHECK_INT(stk_bson_index(&scan, "x.bson", "", &index, &err), STK_ERR_DATA);
    CHECK_CONTAINS(err.message, "have no _id");
    stk_bson_scan_free(&scan);
    CHECK_INT(index.member_count, 0);
    stk_shard_index_free(&index);
    stk_str_free(&bson_file);
}

static void lack_of_memory_is_told(void) {
    put_products();
    stk_status status = STK_ERR_MEMORY;
    int64_t n = 0;
    for (; status == STK_ERR_MEMORY && n < 100; n++) {
        stk_shard_index index = {0};
        stk_bson_how how = {.at_a_time = 2};
        stk_mem_fail_after(n);
        status = read_with(bson_file.text, bson_file.length, &how);
        STK_THEN(status, stk_bson_index(&scan, "x.bson", "", &index, &err));
        stk_mem_fail_after(-1);
        CHECK(status == STK_OK || status == STK_ERR_MEMORY);
        stk_shard_index_free(&index);
        stk_bson_scan_free(&scan);
    }
    CHECK_INT(status, STK_OK);
    CHECK(n > 8);
    stk_str_free(&bson_file);
}

static const check_test tests[] = {
    TEST(products_have_pictures),  TEST(values_become_cells), TEST(large_files_are_read_in_pieces),
    TEST(reading_can_end_early),   TEST(damage_is_refused),   TEST(repeated_fields_are_refused),
    TEST(pictures_become_members), TEST(ids_must_be_names),   TEST(lack_of_memory_is_told),
};

CHECK_MAIN(tests)
