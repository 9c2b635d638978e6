/* test_storage_s3_manifest.c - a listing is the same after it was kept, or it is none. */
#include "check.h"

#ifdef STK_HAVE_S3

#include "base/files/file.h"
#include "base/mem.h"
#include "storage/s3/manifest.h"

/* Every byte that a key may have, but NUL. */
static void add_odd_objects(stk_tree *tree) {
    static const char *const keys[] = {"a b/c+d.jpg",
                                       "100%/50%25.jpg",
                                       "\xC3\xBC/\xE6\x97\xA5.jpg",
                                       "line\nfeed\r.jpg",
                                       "tab\t",
                                       "x//y.jpg",
                                       "-",
                                       " leading and trailing ",
                                       "q?a=b&c#d",
                                       "quote\"s'<>&;.jpg"};
    static const char *const versions[] = {"", "-", "9e107d9d372bb6826bd81d3542a419d6", "a b%-3"};
    stk_error err = {0};
    char all[256];
    for (int i = 1; i < 256; i++) {
        all[i - 1] = (char)i;
    }
    all[255] = '\0';
    REQUIRE_OK(stk_tree_add(tree, all, 255, 7, "e", 0, &err), &err);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        REQUIRE_OK(stk_tree_add(tree, keys[i], strlen(keys[i]), i * 1000000007,
                                versions[i % (sizeof versions / sizeof *versions)], 0, &err),
                   &err);
    }
    REQUIRE_OK(stk_tree_finish(tree, &err), &err);
}

static void check_same(const stk_tree *a, const stk_tree *b) {
    CHECK_INT(a->count, b->count);
    for (size_t i = 0; i < a->count && i < b->count; i++) {
        CHECK_STR(a->objects[i].path, b->objects[i].path);
        CHECK_STR(a->objects[i].version, b->objects[i].version);
        CHECK_INT(a->objects[i].size, b->objects[i].size);
    }
}

static const stk_s3_manifest example = {.location = "s3://bucket/some where",
                                        .endpoint = "http://127.0.0.1:9000",
                                        .region = "eu-west-1",
                                        .time_s = 1794650580};

static void what_was_kept_comes_back(void) {
    stk_error err = {0};
    stk_tree tree = {0};
    stk_tree back = {0};
    char *folder = stk_path_join(check_folder(), "not/there/yet");
    char *path = stk_s3_manifest_path(folder, &example);
    add_odd_objects(&tree);
    REQUIRE_OK(stk_s3_manifest_save(path, &example, &tree, &err), &err);
    stk_s3_manifest found = {.location = example.location, .endpoint = example.endpoint};
    CHECK(stk_s3_manifest_load(path, &found, &back));
    check_same(&tree, &back);
    CHECK_INT(found.time_s, example.time_s);
    CHECK_STR(found.region, example.region);
    stk_tree_free(&back);
    stk_tree_free(&tree);
    stk_mem_free(path);
    stk_mem_free(folder);
}

static void an_empty_list_comes_back(void) {
    stk_error err = {0};
    stk_tree tree = {0};
    char *path = stk_s3_manifest_path(check_folder(), &example);
    REQUIRE_OK(stk_s3_manifest_save(path, &example, &tree, &err), &err);
    stk_s3_manifest found = {.location = example.location, .endpoint = example.endpoint};
    CHECK(stk_s3_manifest_load(path, &found, &tree));
    CHECK_INT(tree.count, 0);
    stk_tree_free(&tree);
    stk_mem_free(path);
}

static void another_place_has_another_file(void) {
    stk_s3_manifest other = example;
    char *path = stk_s3_manifest_path("d", &example);
    other.region[0] = '\0'; /* it does not matter */
    char *same = stk_s3_manifest_path("d", &other);
    other.location = "s3://bucket/elsewhere";
    char *place = stk_s3_manifest_path("d", &other);
    other = example;
    other.endpoint = "aws";
    char *endpoint = stk_s3_manifest_path("d", &other);
    CHECK_STR(same, path);
    CHECK(strcmp(place, path) != 0);
    CHECK(strcmp(endpoint, path) != 0);
    CHECK(strncmp(path, "d/s3-", 5) == 0);
    stk_mem_free(endpoint);
    stk_mem_free(place);
    stk_mem_free(same);
    stk_mem_free(path);
}

/* Tries to read bytes as the manifest of a place. */
static bool parses(const char *data, size_t size, const char *place, const char *endpoint) {
    stk_tree tree = {0};
    stk_s3_manifest found = {.location = place, .endpoint = endpoint};
    char *copy = stk_mem_raw(size + 1, 1);
    memcpy(copy, data, size);
    bool good = stk_s3_manifest_parse(copy, size, &found, &tree);
    if (!good) {
        CHECK(tree.objects == NULL && tree.count == 0);
    }
    stk_tree_free(&tree);
    stk_mem_free(copy);
    return good;
}

static void damage_is_noticed(void) {
    stk_error err = {0};
    stk_tree tree = {0};
    char *data = NULL;
    size_t size = 0;
    char *path = stk_s3_manifest_path(check_folder(), &example);
    add_odd_objects(&tree);
    REQUIRE_OK(stk_s3_manifest_save(path, &example, &tree, &err), &err);
    REQUIRE_OK(stk_file_read(path, 0, &data, &size, &err), &err);
    CHECK(parses(data, size, example.location, example.endpoint));
    CHECK(!parses(data, size, "s3://bucket/other", example.endpoint));
    CHECK(!parses(data, size, example.location, "aws"));
    for (size_t cut = 0; cut < size; cut++) {
        CHECK(!parses(data, cut, example.location, example.endpoint));
    }
    for (size_t i = 0; i < size; i++) {
        data[i] ^= 1;
        CHECK(!parses(data, size, example.location, example.endpoint));
        data[i] ^= 1;
    }
    stk_mem_free(data);
    stk_tree_free(&tree);
    stk_mem_free(path);
}

static void an_unwritable_folder_is_an_error(void) {
    stk_error err = {0};
    stk_tree tree = {0};
    CHECK_INT(stk_s3_manifest_save("/proc/nowhere/s3.list", &example, &tree, &err),
              STK_ERR_STORAGE);
    CHECK_CONTAINS(err.message, "/proc/nowhere");
    stk_s3_manifest found = {.location = example.location, .endpoint = example.endpoint};
    CHECK(!stk_s3_manifest_load("/proc/nowhere/s3.list", &found, &tree));
}

static void lack_of_memory_is_told(void) {
    stk_tree tree = {0};
    char *path = stk_s3_manifest_path(check_folder(), &example);
    add_odd_objects(&tree);
    stk_status status = STK_ERR_MEMORY;
    for (int64_t n = 0; status == STK_ERR_MEMORY; n++) {
        stk_error err = {0};
        stk_mem_fail_after(n);
        status = stk_s3_manifest_save(path, &example, &tree, &err);
        stk_mem_fail_after(-1);
    }
    CHECK_INT(status, STK_OK);
    bool good = false;
    for (int64_t n = 0; !good && n < 100; n++) {
        stk_tree back = {0};
        stk_s3_manifest found = {.location = example.location, .endpoint = example.endpoint};
        stk_mem_fail_after(n);
        good = stk_s3_manifest_load(path, &found, &back);
        stk_mem_fail_after(-1);
        stk_tree_free(&back);
    }
    CHECK(good);
    stk_tree_free(&tree);
    stk_mem_free(path);
}

static const check_test tests[] = {
    TEST(what_was_kept_comes_back),         TEST(an_empty_list_comes_back),
    TEST(another_place_has_another_file),   TEST(damage_is_noticed),
    TEST(an_unwritable_folder_is_an_error), TEST(lack_of_memory_is_told),
};

#else

static void not_built(void) {
    CHECK_SKIP("built without S3");
}

static const check_test tests[] = {TEST(not_built)};

#endif

CHECK_MAIN(tests)
