/* test_dataset_own.c - what Stoker itself wrote into a data set is no part of it. */
#include "test_dataset.h"

/* A run folder with two plots in it. */
static void put_run(const char *folder) {
    char name[128];
    static const char *const files[] = {"args.json", "results.png", "weights/best.png"};
    for (int i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "%s/%s", folder, files[i]);
        put(name);
    }
}

static size_t count_lines(const char *text) {
    size_t lines = 0;
    for (; *text != '\0'; text++) {
        lines += *text == '\n';
    }
    return lines;
}

/* Opens what must have two classes of three pictures, and one warning that names `passed`. */
static void expect_two_classes(const char *passed) {
    warnings[0] = '\0';
    stk_dataset *d = open_plain();
    REQUIRE(d != NULL);
    CHECK_INT(d->class_count, 2);
    CHECK_STR(d->classes[0], "cat");
    CHECK_STR(d->classes[1], "dog");
    CHECK_INT(d->train.count, 6);
    CHECK_INT(count_lines(warnings), 1);
    CHECK_CONTAINS(warnings, passed);
    stk_dataset_free(d);
}

static void runs_beside_class_folders(void) {
    fresh();
    put_cats_and_dogs(".");
    put_run("runs/train");
    expect_two_classes("passed over 1 folder");
    CHECK_CONTAINS(warnings, ": runs;");
    put_run("runs/train.1");
    expect_two_classes(": runs;");

    /* What --out DATA/run wrote. */
    put_run("run");
    expect_two_classes("passed over 2 folders");
    CHECK_CONTAINS(warnings, "run, runs");
}

/* Killed before its options were written: it has a lock, and perhaps a picture. */
static void runs_that_hardly_began(void) {
    fresh();
    put_cats_and_dogs(".");
    put("mine/state/lock");
    expect_two_classes(": mine;");
    put("mine/events.jsonl");
    put("mine/results.png");
    expect_two_classes(": mine;");
    put("test/state/lock");
    expect_two_classes(": mine, test;");

    /* A folder of that name alone says nothing. */
    put("cat/state/a.jpg");
    stk_dataset *d = open_plain();
    REQUIRE(d != NULL);
    CHECK_INT(d->train.count, 7);
    stk_dataset_free(d);
}

static void runs_deeper_in_a_data_set(void) {
    fresh();
    put_cats_and_dogs("train");
    put("val/cat/v.jpg");
    put("test/t.jpg");
    put_run("train/runs/train");
    put_run("train/other");
    put_run("train/cat/mine");
    put_run("val/mine");
    put_run("test/runs/x");
    put_run("test/mine");
    expect_two_classes("passed over 6 folders");
    stk_dataset *d = open_plain();
    REQUIRE(d != NULL);
    CHECK_INT(d->val.count, 1);
    CHECK_INT(d->test.count, 1);
    stk_dataset_free(d);
}

static void runs_called_like_a_part_of_the_data_set(void) {
    fresh();
    put_cats_and_dogs(".");
    put_run("test");
    put_run("train");
    expect_two_classes("test, train");
    stk_dataset *d = open_plain();
    REQUIRE(d != NULL);
    CHECK_INT(d->test.count, 0);
    stk_dataset_free(d);
}

static void a_folder_called_runs_is_no_class(void) {
    fresh();
    put_cats_and_dogs("train");
    put("train/runs/1.jpg");
    put("train/runs/2.jpg");
    expect_two_classes("train/runs");
    CHECK_CONTAINS(warnings, "rename");
}

static void staged_copies_are_no_class(void) {
    fresh();
    put_cats_and_dogs(".");
    put("near/stage.json");
    put("near/samples.csv");
    put("near/train-000000.tar");
    put("half/staging.json");
    expect_two_classes("half, near");
}

static void runs_beside_a_table(void) {
    fresh();
    put_text("train.csv", "id,label\n1,cat\n2,dog\n3,cat\n4,dog\n");
    for (char c = '1'; c <= '4'; c++) {
        char name[16];
        snprintf(name, sizeof name, "%c.jpg", c);
        put(name);
    }
    put_run("runs/train");
    put_run("mine");
    stk_dataset *d = open_plain();
    REQUIRE(d != NULL);
    CHECK_INT(d->train.count, 4);
    CHECK_CONTAINS(warnings, "mine, runs");
    stk_dataset_free(d);
}

static void runs_where_any_picture_counts(void) {
    fresh();
    put("a.jpg");
    put("sub/b.jpg");
    put_run("runs/train");
    put_run("mine");
    stk_dataset_options o = options();
    stk_dataset *d = NULL;
    REQUIRE_OK(stk_dataset_open_images(&d, &o, NULL, &events, &error), &error);
    CHECK_INT(d->test.count, 2);
    CHECK_CONTAINS(warnings, "mine, runs");
    stk_dataset_free(d);
    /* One folder of pictures and two of runs: no class folders. */
    REQUIRE_OK(stk_dataset_open_any(&d, &o, NULL, &events, &error), &error);
    CHECK_INT(d->class_count, 0);
    CHECK_INT(d->test.count, 2);
    stk_dataset_free(d);
}

static void the_folder_that_was_asked_for_may_be_a_run(void) {
    fresh();
    put_run(".");
    stk_dataset_options o = options();
    stk_dataset *d = NULL;
    REQUIRE_OK(stk_dataset_open_images(&d, &o, NULL, &events, &error), &error);
    CHECK_INT(d->test.count, 2);
    CHECK_STR(warnings, "");
    stk_dataset_free(d);
}

static void what_is_left_behind_is_no_class(void) {
    static const char *const names[] = {"__MACOSX", "lost+found",   "__pycache__",
                                        "@eaDir",   "$RECYCLE.BIN", "System Volume Information"};
    fresh();
    put_cats_and_dogs(".");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char name[128];
        snprintf(name, sizeof name, "%s/a.jpg", names[i]);
        put(name);
    }
    put(".git/a.jpg");
    stk_dataset *d = open_plain();
    REQUIRE(d != NULL);
    CHECK_INT(d->class_count, 2);
    CHECK_STR(warnings, "");
    stk_dataset_free(d);
}

static void memory_runs_out(void) {
    fresh();
    put_cats_and_dogs("train");
    put_run("train/runs/a");
    put_run("train/mine");
    put("train/begun/state/lock");
    put_run("test");
    stk_dataset_options o = options();
    open_without_memory(&o);
}

static const check_test tests[] = {
    TEST(runs_beside_class_folders),
    TEST(runs_that_hardly_began),
    TEST(runs_deeper_in_a_data_set),
    TEST(runs_called_like_a_part_of_the_data_set),
    TEST(a_folder_called_runs_is_no_class),
    TEST(staged_copies_are_no_class),
    TEST(runs_beside_a_table),
    TEST(runs_where_any_picture_counts),
    TEST(the_folder_that_was_asked_for_may_be_a_run),
    TEST(what_is_left_behind_is_no_class),
    TEST(memory_runs_out),
};

CHECK_MAIN(tests)
