/* test_dataset.c - class folders, opening for prediction, bad folders. */
#include "test_dataset.h"

#include "base/clock.h"
#include "base/files/file.h"

static void class_folders_with_all_parts(void) {
    fresh();
    put_cats_and_dogs("train");
    put("train/cat/deep/er/9.webp");
    put("train/cat/notes.txt");
    put("train/cat/.hidden.jpg");
    put("train/.DS_Store");
    put("train/__MACOSX/x.txt");
    put("val/dog/v.jpg");
    put("test/b.jpg");
    put("test/a.jpeg");
    put("test/readme.md");
    stk_dataset *d = open_plain();
    REQUIRE(d != NULL);
    CHECK_INT(d->layout, STK_LAYOUT_FOLDERS);
    CHECK_STR(d->root, root);
    CHECK_INT(d->class_count, 2);
    CHECK_STR(d->classes[0], "cat");
    CHECK_STR(d->classes[1], "dog");
    REQUIRE(d->train.count == 7);
    CHECK_STR(d->train.items[0].path, "train/cat/0.jpg");
    CHECK_STR(d->train.items[3].path, "train/cat/deep/er/9.webp");
    CHECK_INT(d->train.items[3].label, 0);
    CHECK_STR(d->train.items[6].path, "train/dog/2.PNG");
    CHECK_INT(d->train.items[6].label, 1);
    REQUIRE(d->val.count == 1);
    CHECK_STR(d->val.items[0].path, "val/dog/v.jpg");
    CHECK_INT(d->val.items[0].label, 1);
    REQUIRE(d->test.count == 2);
    CHECK_STR(d->test.items[0].id, "a");
    CHECK_STR(d->test.items[0].path, "test/a.jpeg");
    CHECK_STR(d->test.items[1].id, "b");
    CHECK_INT(d->test.items[1].label, -1);
    CHECK(d->template_header == NULL);
    CHECK_STR(d->id_name, "id");
    CHECK_STR(d->label_name, "label");
    CHECK_STR(warnings, "");
    stk_dataset_free(d);
}

static void plain_class_folders(void) {
    static const char *const vals[] = {"valid", "Validation", "val"};
    for (int i = 0; i < 3; i++) {
        fresh();
        put_cats_and_dogs(".");
        char name[64];
        snprintf(name, sizeof name, "%s/cat/v.jpg", vals[i]);
        put(name);
        put("test/cat/t.jpg");
        put("test/bird/t.jpg");
        put("README.md");
        char slashed[300];
        snprintf(slashed, sizeof slashed, "%s//", root);
        stk_dataset_options o = options();
        o.data = slashed;
        stk_dataset *d = open_with(&o);
        REQUIRE(d != NULL);
        CHECK_STR(d->root, root);
        CHECK_INT(d->class_count, 2);
        CHECK_INT(d->train.count, 6);
        CHECK_STR(d->train.items[0].path, "cat/0.jpg");
        CHECK_INT(d->val.count, 1);
        REQUIRE(d->test.count == 2);
        /* The same name in two folders: ids carry the folder. */
        CHECK_STR(d->test.items[0].id, "bird/t");
        CHECK_INT(d->test.items[0].label, -1);
        CHECK_STR(d->test.items[1].id, "cat/t");
        CHECK_INT(d->test.items[1].label, 0);
        stk_dataset_free(d);
    }
}

static void test_ids_are_unique(void) {
    fresh();
    put_cats_and_dogs("train");
    put("test/x/a.jpg");
    put("test/x/a.png");
    put("test/y/a.jpg");
    stk_dataset *d = open_plain();
    REQUIRE(d != NULL);
    REQUIRE(d->test.count == 3);
    CHECK_STR(d->test.items[0].id, "x/a.jpg");
    CHECK_STR(d->test.items[1].id, "x/a.png");
    CHECK_STR(d->test.items[2].id, "y/a.jpg");
    stk_dataset_free(d);
}

static void whole_numbers_sort_by_value(void) {
    static const char *const names[] = {"10", "9", "-1", "2"};
    fresh();
    for (int i = 0; i < 4; i++) {
        char name[64];
        snprintf(name, sizeof name, "train/%s/a.jpg", names[i]);
        put(name);
        snprintf(name, sizeof name, "train/%s/b.jpg", names[i]);
        put(name);
    }
    stk_dataset *d = open_plain();
    REQUIRE(d != NULL);
    REQUIRE(d->class_count == 4);
    CHECK_STR(d->classes[0], "-1");
    CHECK_STR(d->classes[1], "2");
    CHECK_STR(d->classes[2], "9");
    CHECK_STR(d->classes[3], "10");
    for (size_t i = 0; i < d->train.count; i++) {
        const char *name = d->classes[d->train.items[i].label];
        const char *below = d->train.items[i].path + strlen("train/");
        CHECK(strncmp(below, name, strlen(name)) == 0 && below[strlen(name)] == '/');
    }
    stk_dataset_free(d);

    /* One name that is no number: all sort as text. */
    put("train/x/a.jpg");
    put("train/x/b.jpg");
    d = open_plain();
    REQUIRE(d != NULL);
    CHECK_STR(d->classes[0], "-1");
    CHECK_STR(d->classes[1], "10");
    stk_dataset_free(d);
}

static void samples_sort_by_path(void) {
    fresh();
    put("train/a/1.jpg");
    put("train/a/2.jpg");
    put("train/a b/1.jpg");
    put("train/a b/2/x.jpg");
    put("train/a b/2.jpg");
    stk_dataset *d = open_plain();
    REQUIRE(d != NULL);
    CHECK_INT(d->train.count, 5);
    for (size_t i = 1; i < d->train.count; i++) {
        CHECK(strcmp(d->train.items[i - 1].path, d->train.items[i].path) < 0);
    }
    stk_dataset_free(d);
}

static void image_ext_restricts(void) {
    fresh();
    put_cats_and_dogs("train");
    stk_dataset_options o = options();
    o.image_ext = "png";
    expect_failure(&o, STK_ERR_DATA);
    CHECK_CONTAINS(error.message, "cat");
    CHECK_CONTAINS(error.message, "only .png files count");
    o.image_ext = "svg";
    expect_failure(&o, STK_ERR_USAGE);
    CHECK_CONTAINS(error.message, "jpg, jpeg, png, webp, tif");
    o.image_ext = "tar.png";
    expect_failure(&o, STK_ERR_USAGE);
    o.image_ext = "jpgjpgjpgjpgjpgjpgjpg";
    expect_failure(&o, STK_ERR_USAGE);
    put("train/cat/0.png");
    put("train/cat/1.png");
    o.image_ext = ".PNG";
    stk_dataset *d = open_with(&o);
    REQUIRE(d != NULL);
    CHECK_INT(d->train.count, 5);
    stk_dataset_free(d);
}

static void links_that_lead_back_are_passed_over(void) {
    fresh();
    put_cats_and_dogs("train");
    char link[PATH_MAX];
    snprintf(link, sizeof link, "%s/train/cat/again", root);
    REQUIRE(symlink(".", link) == 0);
    stk_dataset *d = open_plain();
    REQUIRE(d != NULL);
    CHECK_INT(d->train.count, 6);
    stk_dataset_free(d);
}

static void folders_that_are_none(void) {
    fresh();
    stk_dataset_options o = options();
    char path[PATH_MAX];
    char meant[PATH_MAX + 32];
    fails_with(STK_ERR_DATA, "is empty");
    put(".hidden");
    fails_with(STK_ERR_DATA, "is empty");
    put("a.txt");
    fails_with(STK_ERR_DATA, "no pictures in");
    put_folder("train");
    fails_with(STK_ERR_DATA, "/train");

    put_folder("flowers");
    snprintf(path, sizeof path, "%s/flower/train/x", root);
    o.data = path;
    expect_failure(&o, STK_ERR_DATA);
    CHECK_CONTAINS(error.message, "no such folder");
    CHECK_CONTAINS(error.message, path);
    snprintf(meant, sizeof meant, "did you mean %s/flowers?", root);
    CHECK_CONTAINS(error.message, meant);
    snprintf(path, sizeof path, "%s/zzzzzzzz", root);
    expect_failure(&o, STK_ERR_DATA);
    CHECK(strstr(error.message, "did you mean") == NULL);

    snprintf(path, sizeof path, "%s/a.txt", root);
    expect_failure(&o, STK_ERR_DATA);
    CHECK_CONTAINS(error.message, "is a file");
    snprintf(path, sizeof path, "%s/a.txt/b", root);
    expect_failure(&o, STK_ERR_DATA);
    CHECK_CONTAINS(error.message, "no such folder");
    o.data = NULL;
    expect_failure(&o, STK_ERR_USAGE);
    CHECK_CONTAINS(error.message, "--data");
    o.data = "";
    expect_failure(&o, STK_ERR_USAGE);
    o.data = "gopher://bucket/x";
    expect_failure(&o, STK_ERR_USAGE);
    CHECK_CONTAINS(error.message, "gopher://bucket/x");
    o.data = "no-such-folder-in-the-working-folder";
    expect_failure(&o, STK_ERR_DATA);
}

static void unreadable_folder(void) {
    if (geteuid() == 0) {
        CHECK_SKIP("root may read everything");
    }
    fresh();
    put_cats_and_dogs("train");
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/train/dog", root);
    REQUIRE(chmod(path, 0) == 0);
    fails_with(STK_ERR_STORAGE, "ermission denied");
    CHECK_CONTAINS(error.message, path);
    chmod(path, 0777);
}

static void folders_that_do_not_fit(void) {
    fresh();
    put("train/cat/1.jpg");
    put("train/cat/2.jpg");
    fails_with(STK_ERR_DATA, "one class only, 'cat'");
    put("train/dog/readme.txt");
    fails_with(STK_ERR_DATA, "has no pictures: dog");
    put("train/dog/1.jpg");
    put("train/dog/2.jpg");
    put("train/loose1.jpg");
    put("train/loose2.jpg");
    fails_with(STK_ERR_DATA, "2 pictures in");
    CHECK_CONTAINS(error.message, "loose1.jpg, loose2.jpg");
    CHECK_CONTAINS(error.message, "--mismatch skip");
    stk_dataset_options o = options();
    o.mismatch = STK_MISMATCH_SKIP;
    stk_dataset *d = open_with(&o);
    REQUIRE(d != NULL);
    CHECK_INT(d->train.count, 4);
    CHECK_CONTAINS(warnings, "loose1.jpg");
    stk_dataset_free(d);

    fresh();
    put("1.jpg");
    put("2.jpg");
    fails_with(STK_ERR_DATA, "2 pictures but no class folders");
    CHECK_CONTAINS(error.message, "labels.csv");

    fresh();
    put_cats_and_dogs("pets");
    fails_with(STK_ERR_DATA, "pass --data");
    CHECK_CONTAINS(error.message, "/pets");
}

static void validation_folders_that_do_not_fit(void) {
    fresh();
    put_cats_and_dogs("train");
    put("val/dogs/1.jpg");
    fails_with(STK_ERR_DATA, "/val/dogs");
    CHECK_CONTAINS(error.message, "did you mean 'dog'?");
    fresh();
    put_cats_and_dogs("train");
    put("val/1.jpg");
    fails_with(STK_ERR_DATA, "no class folders");
    fresh();
    put_cats_and_dogs("train");
    put_folder("val");
    stk_dataset *d = open_plain();
    REQUIRE(d != NULL);
    CHECK_INT(d->val.count, 0);
    CHECK_CONTAINS(warnings, "/val has no pictures");
    stk_dataset_free(d);
}

static void a_rare_class_trains(void) {
    fresh();
    put_cats_and_dogs("train");
    put("train/bee/1.jpg");
    fails_with(STK_ERR_DATA, "class 'bee' has one image");
    CHECK_CONTAINS(error.message, "--rare-class train");
    CHECK_CONTAINS(error.message, "--rare-class drop");
    stk_dataset_options o = options();
    stk_split split;
    o.rare_class = STK_RARE_AUTO;
    stk_dataset *d = open_with(&o);
    REQUIRE(d != NULL);
    CHECK_INT(d->class_count, 3);
    CHECK_CONTAINS(warnings, "bee");
    REQUIRE_OK(stk_dataset_split(d, 0.5, 1, 0, 1, &split, &error), &error);
    CHECK(split.val_count > 0);
    for (size_t i = 0; i < split.val_count; i++) {
        CHECK(d->train.items[split.val[i]].label != 0);
    }
    stk_split_free(&split);
    stk_dataset_free(d);

    put("train/ant/1.jpg");
    fails_with(STK_ERR_DATA, "2 classes have one image each (ant, bee)");
    /* With a validation set nothing has to be divided. */
    put("val/dog/1.jpg");
    d = open_plain();
    REQUIRE(d != NULL);
    CHECK_INT(d->class_count, 4);
    stk_dataset_free(d);
}

/* Then the labels are no classes: a column of names or of numbers. */
static void most_pictures_alone_are_refused(void) {
    stk_dataset_options o = options();
    char name[64];
    fresh();
    put_cats_and_dogs("train");
    o.rare_class = STK_RARE_AUTO;
    o.val_fraction = 0.2;
    for (int i = 0; i < 7; i++) { /* beside six cats and dogs */
        stk_dataset *d = open_with(&o);
        REQUIRE(d != NULL);
        CHECK_INT(d->class_count, 2 + i);
        stk_dataset_free(d);
        snprintf(name, sizeof name, "train/bee%d/1.jpg", i);
        put(name);
    }
    expect_failure(&o, STK_ERR_DATA);
    CHECK_CONTAINS(error.message, "7 classes have one image each");
    o.val_fraction = 0; /* nothing is to be validated */
    stk_dataset_free(open_with(&o));
    o.val_fraction = 0.2;
    o.rare_class = STK_RARE_TRAIN;
    stk_dataset_free(open_with(&o));
}

static void pictures_that_are_all_alone_need_no_validation(void) {
    stk_dataset_options o = options();
    fresh();
    put("train/ant/1.jpg");
    put("train/bee/1.jpg");
    o.rare_class = STK_RARE_AUTO;
    o.val_fraction = 0.2;
    expect_failure(&o, STK_ERR_DATA);
    CHECK_CONTAINS(error.message, "--val-fraction 0");
    CHECK_CONTAINS(error.message, "ant, bee");
    o.val_fraction = 0;
    stk_dataset *d = open_with(&o);
    REQUIRE(d != NULL);
    CHECK_INT(d->train.count, 2);
    stk_dataset_free(d);
}

static void a_rare_class_is_dropped(void) {
    fresh();
    put_cats_and_dogs("train");
    put("train/bee/1.jpg");
    put("test/bee/t.jpg");
    put("test/dog/u.jpg");
    stk_dataset_options o = options();
    o.rare_class = STK_RARE_DROP;
    stk_dataset *d = open_with(&o);
    REQUIRE(d != NULL);
    CHECK_INT(d->class_count, 2);
    CHECK_STR(d->classes[0], "cat");
    REQUIRE(d->train.count == 6);
    CHECK_INT(d->train.items[0].label, 0);
    CHECK_INT(d->train.items[5].label, 1);
    REQUIRE(d->test.count == 2);
    CHECK_INT(d->test.items[0].label, -1);
    CHECK_INT(d->test.items[1].label, 1);
    CHECK_CONTAINS(warnings, "left out 1 class with one image: bee");
    stk_dataset_free(d);

    fresh();
    put("train/a/1.jpg");
    put("train/b/1.jpg");
    put("train/b/2.jpg");
    expect_failure(&o, STK_ERR_DATA);
    CHECK_CONTAINS(error.message, "one class only, 'b'");
    fresh();
    put("train/a/1.jpg");
    put("train/b/1.jpg");
    expect_failure(&o, STK_ERR_DATA);
    CHECK_CONTAINS(error.message, "no class of");
}

static void open_images_takes_any_folder(void) {
    fresh();
    put("b.jpg");
    put("sub/a.png");
    put("c.txt");
    stk_dataset_options o = options();
    stk_dataset *d = NULL;
    REQUIRE_OK(stk_dataset_open_images(&d, &o, NULL, &events, &error), &error);
    REQUIRE(d->test.count == 2);
    CHECK_STR(d->test.items[0].path, "b.jpg");
    CHECK_STR(d->test.items[0].id, "b");
    CHECK_STR(d->test.items[1].path, "sub/a.png");
    CHECK_STR(d->test.items[1].id, "a");
    CHECK_INT(d->test.items[1].label, -1);
    CHECK_INT(d->class_count, 0);
    CHECK_INT(d->train.count, 0);
    stk_dataset_free(d);

    put("test/t.jpg");
    REQUIRE_OK(stk_dataset_open_images(&d, &o, NULL, &events, &error), &error);
    REQUIRE(d->test.count == 1);
    CHECK_STR(d->test.items[0].path, "test/t.jpg");
    stk_dataset_free(d);

    put_text("sample_submission.csv", "image,label\nt.jpg,x\nu.jpg,x\n");
    REQUIRE_OK(stk_dataset_open_images(&d, &o, NULL, &events, &error), &error);
    REQUIRE(d->test.count == 2);
    CHECK_STR(d->test.items[0].id, "t.jpg");
    CHECK(d->test.items[1].path == NULL);
    CHECK_CONTAINS(warnings, "first: u.jpg");
    CHECK_STR(d->id_name, "image");
    stk_dataset_free(d);

    fresh();
    put("a.txt");
    CHECK_INT(stk_dataset_open_images(&d, &o, NULL, NULL, &error), STK_ERR_DATA);
    CHECK_CONTAINS(error.message, "no pictures to predict");
    CHECK(d == NULL);
}

static void class_folders_with_a_sample_submission(void) {
    fresh();
    put_cats_and_dogs("train");
    put("test/1.png");
    put("test/2.png");
    put_text("sample_submission.csv", "file,species\n2.png,cat\n1.png,cat\n");
    stk_dataset *d = open_plain();
    REQUIRE(d != NULL);
    CHECK_INT(d->layout, STK_LAYOUT_FOLDERS);
    REQUIRE(d->test.count == 2);
    CHECK_STR(d->test.items[0].id, "2.png");
    CHECK_STR(d->test.items[0].path, "test/2.png");
    CHECK_INT(d->template_columns, 2);
    CHECK_INT(d->template_id, 0);
    stk_dataset_free(d);
}

static void image_names(void) {
    CHECK(stk_dataset_is_image_name("a.jpg"));
    CHECK(stk_dataset_is_image_name("a.JPEG"));
    CHECK(stk_dataset_is_image_name("a.b.Png"));
    CHECK(stk_dataset_is_image_name("dir/a.webp"));
    CHECK(!stk_dataset_is_image_name("a.svg"));
    CHECK(!stk_dataset_is_image_name("jpg"));
    CHECK(!stk_dataset_is_image_name(".jpg"));
    CHECK(!stk_dataset_is_image_name("dir/.png"));
    CHECK(!stk_dataset_is_image_name("a.jpg.txt"));
    CHECK(!stk_dataset_is_image_name(""));
}

/* Every request for memory may fail: the answer is an error, never a crash or a leak. */
static void memory_runs_out(void) {
    fresh();
    put_cats_and_dogs("train");
    put("train/bee/1.jpg");
    put("test/cat/1.jpg");
    put("test/dog/1.jpg");
    stk_dataset_options o = options();
    o.rare_class = STK_RARE_DROP;
    open_without_memory(&o);
}

static void many_files_are_listed_fast(void) {
    enum { FILES = 20000, CLASSES = 100 };
    fresh();
    for (int i = 0; i < FILES; i++) {
        char name[64];
        snprintf(name, sizeof name, "train/class%03d/picture%06d.jpg", i % CLASSES, i);
        put(name);
    }
    stk_split split;
    int64_t start = stk_clock_ns();
    stk_dataset *d = open_plain();
    REQUIRE(d != NULL);
    REQUIRE_OK(stk_dataset_split(d, 0.2, 5, 2, 1, &split, &error), &error);
    double seconds = stk_clock_since_s(start);
    CHECK_INT(d->train.count, FILES);
    CHECK_INT(split.val_count, FILES / 5);
    CHECK(seconds < 2.0); /* far less on an idle machine without sanitizers */
    stk_split_free(&split);
    stk_dataset_free(d);
}

static void real_photographs(void) {
    const char *data = getenv("STOKER_DATA");
    snprintf(root, sizeof root, "%s/photos", data != NULL ? data : "../shared/data");
    if (!stk_path_is_dir(root)) {
        CHECK_SKIP("no folder of photographs here");
    }
    stk_dataset *d = open_plain();
    REQUIRE(d != NULL);
    CHECK_INT(d->class_count, 6);
    CHECK_INT(d->train.count, 480);
    stk_dataset_free(d);
}

static const check_test tests[] = {
    TEST(class_folders_with_all_parts),
    TEST(plain_class_folders),
    TEST(test_ids_are_unique),
    TEST(whole_numbers_sort_by_value),
    TEST(samples_sort_by_path),
    TEST(image_ext_restricts),
    TEST(links_that_lead_back_are_passed_over),
    TEST(folders_that_are_none),
    TEST(unreadable_folder),
    TEST(folders_that_do_not_fit),
    TEST(validation_folders_that_do_not_fit),
    TEST(a_rare_class_trains),
    TEST(most_pictures_alone_are_refused),
    TEST(pictures_that_are_all_alone_need_no_validation),
    TEST(a_rare_class_is_dropped),
    TEST(open_images_takes_any_folder),
    TEST(class_folders_with_a_sample_submission),
    TEST(image_names),
    TEST(memory_runs_out),
    TEST(many_files_are_listed_fast),
    TEST(real_photographs),
};

CHECK_MAIN(tests)
