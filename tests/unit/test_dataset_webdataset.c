/* Tests of shards as other tools write them: KEY.jpg and KEY.cls, and tars of class folders. */
#include "test_dataset.h"

#include "base/str.h"
#include "storage/tar/tar_write.h"

/* Writes a tar of members NAME, or NAME=TEXT. */
static void put_members(const char *name, const char *const *members) {
    char path[PATH_MAX];
    stk_tar_writer *tar = NULL;
    snprintf(path, sizeof path, "%s/%s", root, name);
    CHECK_INT(stk_tar_writer_open(&tar, path, &error), STK_OK);
    for (; tar != NULL && *members != NULL; members++) {
        char member[600];
        snprintf(member, sizeof member, "%s", *members);
        char *text = strchr(member, '=');
        if (text != NULL) {
            *text++ = '\0';
        }
        CHECK_INT(
            stk_tar_writer_add(tar, member, text, text != NULL ? strlen(text) : 0, NULL, &error),
            STK_OK);
    }
    CHECK_INT(stk_tar_writer_commit(tar, NULL, &error), STK_OK);
}

#define PUT_TAR(name, ...) put_members(name, (const char *const[]){__VA_ARGS__, NULL})

/* All samples of a list as "PATH CLASS " each. */
static const char *shown(const stk_dataset *d, const stk_sample_list *list) {
    static char text[2000];
    size_t length = 0;
    text[0] = '\0';
    for (size_t i = 0; i < list->count && length < sizeof text; i++) {
        int label = list->items[i].label;
        length += (size_t)snprintf(text + length, sizeof text - length, "%s %s ",
                                   list->items[i].path, label >= 0 ? d->classes[label] : "?");
    }
    return text;
}

static void reads_numbers_as_classes(void) {
    fresh();
    PUT_TAR("a-000000.tar", "000001.cls=10\n", "000001.jpg", "000002.cls=002", "000002.jpg",
            "000003.cls=2", "000003.jpeg");
    PUT_TAR("a-000001.tar", "sub/000004.jpg", "sub/000004.cls=10", "sub/000004.json={}",
            "000005.png", "000005.cls= 2 ", "000005.mask.png");
    stk_dataset *d = open_plain();
    REQUIRE(d != NULL);
    CHECK_INT(d->layout, STK_LAYOUT_WEBDATASET);
    CHECK_INT(d->class_count, 2);
    CHECK_STR(d->classes[0], "2");
    CHECK_STR(d->classes[1], "10");
    CHECK_STR(shown(d, &d->train), "000001.jpg 10 000002.jpg 2 000003.jpeg 2 000005.png 2 "
                                   "sub/000004.jpg 10 ");
    CHECK_INT(d->val.count, 0);
    CHECK_INT(d->test.count, 0);
    CHECK_STR(warnings, "");
    stk_dataset_free(d);
}

static void reads_names_of_classes(void) {
    fresh();
    PUT_TAR("train.tar", "1.cls=0", "1.jpg", "2.cls=2", "2.jpg", "3.cls=3", "3.jpg", "4.cls=0",
            "4.jpg", "5.cls=2", "5.jpg", "6.cls=3", "6.jpg");
    PUT_TAR("val.tar", "1.cls=2", "1.jpg");
    put_text("classes.txt", "tench\r\nunused\ncrane\ncrane\n\n");
    stk_dataset *d = open_plain();
    REQUIRE(d != NULL);
    /* Two classes of one name stay two. */
    CHECK_STR(shown(d, &d->train), "train/1.jpg tench train/2.jpg crane train/3.jpg crane (3) "
                                   "train/4.jpg tench train/5.jpg crane train/6.jpg crane (3) ");
    CHECK_STR(shown(d, &d->val), "val/1.jpg crane ");
    stk_dataset_free(d);
    put_text("classes.txt", "tench\n");
    fails_with(STK_ERR_DATA, "train/2.cls says class 2, but classes.txt has no line for it");
    fresh();
    PUT_TAR("a.tar", "1.cls=cat", "1.jpg", "2.cls=dog", "2.jpg", "3.cls=cat\n", "3.jpg",
            "4.cls=dog", "4.jpg");
    d = open_plain();
    REQUIRE(d != NULL);
    CHECK_STR(shown(d, &d->train), "1.jpg cat 2.jpg dog 3.jpg cat 4.jpg dog ");
    stk_dataset_free(d);
}

static void reads_labels_from_json_and_text(void) {
    fresh();
    PUT_TAR("a.tar", "1.jpg", "1.json={\"label\": 5, \"w\": 3}", "2.jpg", "2.json={\"cls\": \"7\"}",
            "3.jpg", "3.json={\"class\": \"7\"}", "4.jpg", "4.txt=5\n", "5.input.jpg", "5.txt=7");
    stk_dataset *d = open_plain();
    REQUIRE(d != NULL);
    CHECK_INT(d->layout, STK_LAYOUT_WEBDATASET);
    CHECK_STR(shown(d, &d->train), "1.jpg 5 2.jpg 7 3.jpg 7 4.jpg 5 5.input.jpg 7 ");
    stk_dataset_free(d);
}

static void keeps_splits(void) {
    fresh();
    PUT_TAR("set-train-000000.tar", "0.jpg", "0.cls=0", "1.jpg", "1.cls=1");
    PUT_TAR("set-train-000001.tar", "2.jpg", "2.cls=0", "3.jpg", "3.cls=1");
    PUT_TAR("set-validation-000000.tar", "0.jpg", "0.cls=1");
    PUT_TAR("set-test-000000.tar", "0.jpg", "1.jpg", "1.cls=1", "2.jpg", "2.cls=9");
    stk_dataset *d = open_plain();
    REQUIRE(d != NULL);
    CHECK_STR(shown(d, &d->train), "train/0.jpg 0 train/1.jpg 1 train/2.jpg 0 train/3.jpg 1 ");
    CHECK_STR(shown(d, &d->val), "val/0.jpg 1 ");
    CHECK_STR(shown(d, &d->test), "test/0.jpg ? test/1.jpg 1 test/2.jpg ? ");
    CHECK_STR(d->test.items[1].id, "1");
    stk_dataset_free(d);
    PUT_TAR("set-validation-000000.tar", "0.jpg", "0.cls=4");
    fails_with(STK_ERR_DATA, "val/0.cls says class '4', which is no class of the training set");

    /* One split alone can be looked at too, and so can all pictures. */
    stk_dataset_options o = options();
    char data[PATH_MAX];
    snprintf(data, sizeof data, "%s/set-test-000000.tar", root);
    o.data = data;
    REQUIRE_OK(stk_dataset_open_images(&d, &o, NULL, &events, &error), &error);
    CHECK_STR(shown(d, &d->test), "0.jpg ? 1.jpg ? 2.jpg ? ");
    stk_dataset_free(d);
}

static void wants_pairs(void) {
    fresh();
    PUT_TAR("a.tar", "1.jpg", "1.cls=0", "2.jpg", "3.jpg", "3.cls=1", "4.jpg", "4.cls=", "5.cls=1",
            "6.jpg", "6.cls=0", "7.jpg", "7.cls=1", "readme.txt=hello");
    fails_with(STK_ERR_DATA, "2 pictures without a label: 2.jpg, 4.jpg; ");
    CHECK_CONTAINS(error.message, "--mismatch skip");
    stk_dataset_options o = options();
    o.mismatch = STK_MISMATCH_SKIP;
    stk_dataset *d = open_with(&o);
    REQUIRE(d != NULL);
    CHECK_STR(shown(d, &d->train), "1.jpg 0 3.jpg 1 6.jpg 0 7.jpg 1 ");
    CHECK_CONTAINS(warnings, "left out 2 pictures without a label: 2.jpg, 4.jpg");
    CHECK_CONTAINS(warnings, "left out 1 label without a picture: 5.cls");
    stk_dataset_free(d);

    fresh();
    PUT_TAR("a.tar", "1.jpg", "1.png", "1.cls=0", "2.jpg", "2.cls=1");
    fails_with(STK_ERR_DATA, "1.jpg has two pictures, the other is 1.png");
    o = options();
    o.image_ext = "jpg";
    o.rare_class = STK_RARE_TRAIN;
    d = open_with(&o);
    REQUIRE(d != NULL);
    CHECK_STR(shown(d, &d->train), "1.jpg 0 2.jpg 1 ");
    stk_dataset_free(d);
    fresh();
    PUT_TAR("a.tar", "1.jpg", "1.cls=0", "2.jpg", "2.cls=0");
    fails_with(STK_ERR_DATA, "has one class only, '0'");
}

/* Tars of class folders are class folders, whatever texts lie in them. */
static void takes_class_folders_in_tars(void) {
    fresh();
    PUT_TAR("set.tar", "set/cat/1.jpg", "set/cat/1.txt=a cat", "set/cat/2.jpg", "set/dog/1.jpg",
            "set/dog/2.jpg");
    stk_dataset *d = open_plain();
    REQUIRE(d != NULL);
    CHECK_INT(d->layout, STK_LAYOUT_FOLDERS);
    CHECK_STR(shown(d, &d->train), "cat/1.jpg cat cat/2.jpg cat dog/1.jpg dog dog/2.jpg dog ");
    stk_dataset_free(d);
    fresh();
    PUT_TAR("train.tar", "cat/1.jpg", "dog/1.jpg");
    PUT_TAR("val.tar", "cat/1.jpg");
    PUT_TAR("test.tar", "9.jpg", "8.jpg");
    put_text("sample_submission.csv", "id,label\n9,cat\n8,cat\n");
    d = open_plain();
    REQUIRE(d != NULL);
    CHECK_INT(d->layout, STK_LAYOUT_FOLDERS);
    CHECK_STR(shown(d, &d->train), "train/cat/1.jpg cat train/dog/1.jpg dog ");
    CHECK_STR(shown(d, &d->val), "val/cat/1.jpg cat ");
    CHECK_STR(shown(d, &d->test), "test/9.jpg ? test/8.jpg ? ");
    stk_dataset_free(d);
}

static void takes_a_table_beside_tars(void) {
    fresh();
    PUT_TAR("images.tar", "images/a.jpg", "images/b.jpg", "images/c.jpg", "images/d.jpg");
    put_text("labels.csv", "id,label\na,cat\nb,dog\nc,cat\nd,dog\n");
    stk_dataset *d = open_plain();
    REQUIRE(d != NULL);
    CHECK_INT(d->layout, STK_LAYOUT_KAGGLE);
    CHECK_STR(shown(d, &d->train), "a.jpg cat b.jpg dog c.jpg cat d.jpg dog ");
    stk_dataset_free(d);
}

/* The same files in a folder are no shards: there pictures without folders have no label. */
static void is_for_shards_only(void) {
    fresh();
    put("1.jpg");
    put_text("1.cls", "0");
    fails_with(STK_ERR_DATA, "no class folders");
}

static void runs_beside_shards_and_in_them(void) {
    fresh();
    PUT_TAR("a.tar", "1.cls=cat", "1.jpg", "2.cls=dog", "2.jpg", "3.cls=cat", "3.jpg", "4.cls=dog",
            "4.jpg");
    put("runs/train/results.png");
    put("mine/args.json");
    put("mine/results.png");
    stk_dataset *d = open_plain();
    REQUIRE(d != NULL);
    CHECK_INT(d->layout, STK_LAYOUT_WEBDATASET);
    CHECK_INT(d->train.count, 4);
    CHECK_CONTAINS(warnings, "passed over 2 folders");
    CHECK_CONTAINS(warnings, ": mine, runs;");
    stk_dataset_free(d);

    fresh(); /* the folder of a data set after a training in it, as a tar */
    PUT_TAR("a.tar", "cat/1.jpg", "cat/2.jpg", "dog/1.jpg", "dog/2.jpg", "runs/train/args.json={}",
            "runs/train/a.png", "runs/train/b.png", "mine/args.json={}", "mine/a.png");
    d = open_plain();
    REQUIRE(d != NULL);
    CHECK_INT(d->class_count, 2);
    CHECK_INT(d->train.count, 4);
    CHECK_CONTAINS(warnings, ": mine, runs;");
    stk_dataset_free(d);
}

static const check_test tests[] = {
    TEST(reads_numbers_as_classes),
    TEST(reads_names_of_classes),
    TEST(reads_labels_from_json_and_text),
    TEST(keeps_splits),
    TEST(wants_pairs),
    TEST(takes_class_folders_in_tars),
    TEST(takes_a_table_beside_tars),
    TEST(is_for_shards_only),
    TEST(runs_beside_shards_and_in_them),
};
CHECK_MAIN(tests)
