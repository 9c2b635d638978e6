/* test_storage_tree.c - names with slashes shown as folders. */
#include "check.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/numbers/rng.h"
#include "storage/tree.h"

static stk_error err;

static void add_as(stk_tree *tree, const char *path, uint64_t size, const char *version,
                   uint64_t value) {
    stk_error_clear(&err);
    if (stk_tree_add(tree, path, strlen(path), size, version, value, &err) != STK_OK) {
        CHECK_FAIL("%s: %s", path, err.message);
    }
}

static void add(stk_tree *tree, const char *path) {
    add_as(tree, path, strlen(path), "", 0);
}

static void finish(stk_tree *tree) {
    stk_error_clear(&err);
    if (stk_tree_finish(tree, &err) != STK_OK) {
        CHECK_FAIL("%s", err.message);
    }
}

/* What stands in a folder, as "file folder/ file". */
static const char *list(const stk_tree *tree, const char *folder) {
    static char text[4096];
    stk_dir_list entries = {0};
    size_t at = 0;
    text[0] = '\0';
    if (stk_tree_list(tree, folder, &entries, &err) != STK_OK) {
        return err.message;
    }
    for (size_t i = 0; i < entries.count && at < sizeof text; i++) {
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%s%s", i > 0 ? " " : "",
                               entries.entries[i].name, entries.entries[i].is_dir ? "/" : "");
    }
    stk_dir_list_free(&entries);
    return text;
}

static void names_become_folders(void) {
    stk_tree tree = {0};
    add(&tree, "train/dog/2.jpg");
    add(&tree, "labels.csv");
    add(&tree, "train/cat/1.jpg");
    add(&tree, "train/cat/old/3.jpg");
    add(&tree, "test/9.jpg");
    finish(&tree);
    CHECK_INT(tree.count, 5);
    CHECK_STR(list(&tree, ""), "labels.csv test/ train/");
    CHECK_STR(list(&tree, "train"), "cat/ dog/");
    CHECK_STR(list(&tree, "train/cat"), "1.jpg old/");
    CHECK_STR(list(&tree, "train/cat/old"), "3.jpg");
    CHECK_STR(list(&tree, "test"), "9.jpg");
    CHECK_STR(list(&tree, "train/"), "cat/ dog/");
    CHECK_STR(list(&tree, "/"), "labels.csv test/ train/");
    stk_tree_free(&tree);
}

static void folders_that_are_none_are_empty(void) {
    stk_tree tree = {0};
    finish(&tree);
    CHECK_STR(list(&tree, ""), "");
    CHECK_STR(list(&tree, "a"), "");
    CHECK(stk_tree_find(&tree, "a") == NULL);
    add(&tree, "ab/c");
    finish(&tree);
    CHECK_STR(list(&tree, "a"), "");
    CHECK_STR(list(&tree, "ab/c"), "");
    CHECK_STR(list(&tree, "abc"), "");
    CHECK_STR(list(&tree, "b"), "");
    stk_tree_free(&tree);
}

/* '-' and '.' come before '/', letters and digits behind it: neighbours of "a/" in the list. */
static void neighbours_of_a_folder_are_not_in_it(void) {
    stk_tree tree = {0};
    add(&tree, "a0");
    add(&tree, "a/y/1");
    add(&tree, "a-b");
    add(&tree, "a");
    add(&tree, "a/x");
    add(&tree, "a.txt");
    add(&tree, "a-b/z");
    add(&tree, "a0/w");
    add(&tree, "\xc3\xa4/u");
    finish(&tree);
    /* A file and a folder of one name both stand there, the file first. */
    CHECK_STR(list(&tree, ""), "a a/ a-b a-b/ a.txt a0 a0/ \xc3\xa4/");
    CHECK_STR(list(&tree, "a"), "x y/");
    CHECK_STR(list(&tree, "a-b"), "z");
    CHECK_STR(list(&tree, "a0"), "w");
    CHECK_STR(list(&tree, "\xc3\xa4"), "u");
    CHECK(stk_tree_find(&tree, "a") != NULL);
    CHECK(stk_tree_find(&tree, "a/x") != NULL);
    CHECK(stk_tree_find(&tree, "a/y") == NULL); /* a folder is no object */
    stk_tree_free(&tree);
}

static void names_that_are_no_files_are_passed_over(void) {
    stk_tree tree = {0};
    add(&tree, "");
    add(&tree, "folder/");
    add(&tree, "folder/sub/");
    add(&tree, ".");
    add(&tree, "..");
    add(&tree, "../up");
    add(&tree, "in/../side");
    add(&tree, "in/./here");
    add(&tree, "in/..");
    add(&tree, "./");
    CHECK_INT(stk_tree_add(&tree, "nul\0l", 5, 1, "", 0, &err), STK_OK);
    finish(&tree);
    CHECK_INT(tree.count, 0);
    add(&tree, "./a/b");
    add(&tree, "././c");
    add(&tree, "d/...");
    add(&tree, "e/..f");
    finish(&tree);
    CHECK_INT(tree.count, 4);
    CHECK(stk_tree_find(&tree, "a/b") != NULL);
    CHECK(stk_tree_find(&tree, "c") != NULL);
    CHECK_STR(list(&tree, ""), "a/ c d/ e/");
    stk_tree_free(&tree);
}

static void hidden_names_are_not_shown(void) {
    stk_tree tree = {0};
    add(&tree, ".hidden");
    add(&tree, ".git/config");
    add(&tree, "a/.DS_Store");
    add(&tree, "a/b");
    finish(&tree);
    CHECK_STR(list(&tree, ""), "a/");
    CHECK_STR(list(&tree, "a"), "b");
    CHECK(stk_tree_find(&tree, ".git/config") != NULL); /* but can be read */
    stk_tree_free(&tree);
}

static void odd_slashes_do_no_harm(void) {
    stk_tree tree = {0};
    add(&tree, "/a");
    add(&tree, "b//c");
    add(&tree, "b/d");
    finish(&tree);
    CHECK_STR(list(&tree, ""), "b/");
    CHECK_STR(list(&tree, "b"), "d");
    CHECK(stk_tree_find(&tree, "b//c") != NULL);
    stk_tree_free(&tree);
}

static void of_two_the_last_stays(void) {
    stk_tree tree = {0};
    add_as(&tree, "b", 1, "old", 10);
    add_as(&tree, "a", 2, "old", 20);
    add_as(&tree, "b", 3, "new", 30);
    add_as(&tree, "c", 4, "old", 40);
    add_as(&tree, "b", 5, "newest", 50);
    finish(&tree);
    CHECK_INT(tree.count, 3);
    const stk_tree_object *b = stk_tree_find(&tree, "b");
    REQUIRE(b != NULL);
    CHECK_INT(b->size, 5);
    CHECK_INT(b->value, 50);
    CHECK_STR(b->version, "newest");
    CHECK_STR(b->path, "b");
    const stk_tree_object *c = stk_tree_find(&tree, "c");
    REQUIRE(c != NULL);
    CHECK_STR(c->version, "old");
    stk_tree_free(&tree);
}

static void long_names_are_kept_whole(void) {
    static char name[300000];
    stk_tree tree = {0};
    memset(name, 'x', sizeof name - 1);
    name[100] = '/';
    add(&tree, name); /* longer than a block of texts */
    add(&tree, "short");
    finish(&tree);
    const stk_tree_object *found = stk_tree_find(&tree, name);
    REQUIRE(found != NULL);
    CHECK_INT(strlen(found->path), sizeof name - 1);
    CHECK(stk_tree_find(&tree, "short") != NULL);
    stk_tree_free(&tree);
}

/* A tar can name a file half a million folders deep; those who walk through them must not. */
static void depth_has_an_end(void) {
    static char name[2000];
    stk_tree tree = {0};
    for (size_t i = 0; i + 2 < sizeof name; i += 2) {
        memcpy(name + i, "a/", 2);
    }
    memcpy(name + sizeof name - 6, "x.jpg", 6);
    add(&tree, name);
    add(&tree, name + sizeof name - 6 - 400);
    add(&tree, "short");
    finish(&tree);
    CHECK_INT(tree.count, 2);
    CHECK(stk_tree_find(&tree, name) == NULL);
    stk_tree_free(&tree);
}

#define MANY 100000
#define CLASSES 1000

/* In an order of its own; every one is found and every folder has its own. */
static void many_names(void) {
    stk_tree tree = {0};
    char path[64];
    int64_t start = stk_clock_ns();
    for (uint64_t i = 0; i < MANY; i++) {
        uint64_t k = stk_rng_permute(5, MANY, i);
        snprintf(path, sizeof path, "train/n%04d/img_%06d.jpg", (int)(k % CLASSES), (int)k);
        add_as(&tree, path, k, k % 2 == 0 ? "even" : "odd", i);
    }
    finish(&tree);
    CHECK_INT(tree.count, MANY);
    for (size_t i = 1; i < tree.count; i++) {
        CHECK(strcmp(tree.objects[i - 1].path, tree.objects[i].path) < 0);
    }
    for (int k = 0; k < MANY; k++) {
        snprintf(path, sizeof path, "train/n%04d/img_%06d.jpg", k % CLASSES, k);
        const stk_tree_object *found = stk_tree_find(&tree, path);
        CHECK(found != NULL && found->size == (uint64_t)k);
    }
    stk_dir_list classes = {0};
    REQUIRE_OK(stk_tree_list(&tree, "train", &classes, &err), &err);
    CHECK_INT(classes.count, CLASSES);
    for (size_t i = 0; i < classes.count; i++) {
        stk_dir_list files = {0};
        snprintf(path, sizeof path, "train/%.20s", classes.entries[i].name);
        REQUIRE_OK(stk_tree_list(&tree, path, &files, &err), &err);
        CHECK(classes.entries[i].is_dir);
        CHECK_INT(files.count, MANY / CLASSES);
        stk_dir_list_free(&files);
    }
    stk_dir_list_free(&classes);
    stk_tree_free(&tree);
    printf("  %d names in %.0f ms\n", MANY, stk_clock_since_s(start) * 1e3);
}

static void no_memory(void) {
    for (int64_t n = 0; n < 40; n++) {
        stk_tree tree = {0};
        stk_dir_list entries = {0};
        stk_error why = {0};
        static const char *const names[] = {"b/x", "a/y", "c", "a/z", "b/w/v"};
        stk_status status = STK_OK;
        stk_mem_fail_after(n);
        for (int i = 0; i < 5 && status == STK_OK; i++) {
            status = stk_tree_add(&tree, names[i], strlen(names[i]), 1, names[i], 0, &why);
        }
        status = status == STK_OK ? stk_tree_finish(&tree, &why) : status;
        status = status == STK_OK ? stk_tree_list(&tree, "", &entries, &why) : status;
        stk_mem_fail_after(-1);
        if (status == STK_OK) {
            CHECK_INT(entries.count, 3);
        } else {
            CHECK_INT(status, STK_ERR_MEMORY);
            CHECK_INT(why.status, STK_ERR_MEMORY);
            CHECK_INT(entries.count, 0);
        }
        CHECK(n > 0 || status != STK_OK);
        CHECK(n < 39 || status == STK_OK);
        stk_dir_list_free(&entries);
        stk_tree_free(&tree);
    }
}

static const check_test tests[] = {
    TEST(names_become_folders),
    TEST(folders_that_are_none_are_empty),
    TEST(neighbours_of_a_folder_are_not_in_it),
    TEST(names_that_are_no_files_are_passed_over),
    TEST(hidden_names_are_not_shown),
    TEST(odd_slashes_do_no_harm),
    TEST(of_two_the_last_stays),
    TEST(long_names_are_kept_whole),
    TEST(depth_has_an_end),
    TEST(many_names),
    TEST(no_memory),
};

CHECK_MAIN(tests)
