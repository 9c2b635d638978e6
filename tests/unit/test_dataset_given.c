/* test_dataset_given.c - rows that validate or are predicted because the folder says so. */
#include "test_dataset.h"

#include "base/str.h"

/* All decisions of a listing, each with a line break behind it. */
static char told[4096];

static void note_all(void *user, const stk_event_decision *event) {
    (void)user;
    size_t length = strlen(told);
    snprintf(told + length, sizeof told - length, "%s: %s\n", event->what, event->why);
}

static const stk_observer all_listener = {.warning = note_warning, .decision = note_all};
static const stk_events all_events = {.observers = {&all_listener}, .count = 1};

static stk_dataset *open_told(const stk_dataset_options *o) {
    stk_dataset *dataset = NULL;
    told[0] = '\0';
    stk_error_clear(&error);
    if (stk_dataset_open(&dataset, o, NULL, &all_events, &error) != STK_OK) {
        CHECK_FAIL("cannot open: %s", error.message);
    }
    return dataset;
}

static void put_pictures(const char *folder, int first, int count) {
    for (int i = first; i < first + count; i++) {
        char name[160];
        snprintf(name, sizeof name, "%s/%d.jpg", folder, i);
        put(name);
    }
}

/* Rows `first` and so on: the number, and a or b in turn, behind the text. */
static void put_labels(const char *name, const char *header, int first, int count,
                       const char *tail) {
    stk_str csv = {0};
    stk_str_appendf(&csv, "%s\n", header);
    for (int i = first; i < first + count; i++) {
        stk_str_appendf(&csv, "%d,%s%s\n", i, i % 2 ? "b" : "a", tail);
    }
    put_text(name, stk_str_text(&csv));
    stk_str_free(&csv);
}

static void a_table_validates(void) {
    static const char *const folders[] = {"val", "train", "images"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        fresh();
        put_pictures(i < 2 ? "train" : "images", 0, 10);
        put_pictures(folders[i], 20, 4);
        put_labels("train.csv", "id,label", 0, 10, "");
        put_labels("valid.csv", "id,label", 20, 4, "");
        stk_dataset_options o = options();
        stk_dataset *d = open_told(&o);
        REQUIRE(d != NULL && d->train.count == 10 && d->val.count == 4);
        char path[40];
        snprintf(path, sizeof path, "%s/21.jpg", folders[i]);
        CHECK_STR(d->val.items[1].path, path);
        CHECK_STR(d->classes[d->val.items[1].label], "b");
        CHECK_STR(d->classes[d->val.items[2].label], "a");
        CHECK_CONTAINS(told, "4 rows of valid.csv validate: the name of the table says so\n");
        CHECK(!stk_dataset_is_divided(d, o.val_fraction, 1));
        stk_dataset_free(d);
        if (i == 1) {
            open_without_memory(&o);
        }
    }
}

/* Columns may stand in another order; ids may be those of training rows where pictures are not. */
static void the_same_ids_in_two_folders(void) {
    fresh();
    put_pictures("train", 0, 6);
    put_pictures("val", 0, 4);
    put_labels("train.csv", "id,label", 0, 6, "");
    put_text("val.csv", "label,more,id\nb,x,0\na,x,1\nb,x,2\na,x,3\n");
    stk_dataset_options o = options();
    stk_dataset *d = open_told(&o);
    REQUIRE(d != NULL && d->train.count == 6 && d->val.count == 4);
    CHECK_STR(d->val.items[0].path, "val/0.jpg");
    CHECK_STR(d->classes[d->val.items[0].label], "b");
    CHECK_STR(d->train.items[0].path, "train/0.jpg");
    CHECK_STR(d->classes[d->train.items[0].label], "a");
    stk_dataset_free(d);
}

static void rows_of_no_use_are_left_out(void) {
    fresh();
    put_pictures("images", 0, 14);
    put_labels("train.csv", "id,label", 0, 10, "");
    put_text("val.csv", "id,label\n9,b\n10,a\n11,b\n12,zebra\n13,\n99,a\n10,a\n");
    stk_dataset_options o = options();
    stk_dataset *d = open_told(&o);
    REQUIRE(d != NULL && d->train.count == 10 && d->val.count == 2);
    CHECK_STR(d->val.items[0].id, "10");
    CHECK_INT(d->class_count, 2);
    CHECK_CONTAINS(told, "2 rows of val.csv validate: the name of the table says so; left out are "
                         "rows: 1 without a picture, 1 with a training picture, 2 without a label "
                         "or with a picture twice, 1 with a class that no training row has\n");
    stk_dataset_free(d);
    /* Nothing is left: the training rows validate. Pictures that no table names are an error again.
     */
    o.mismatch = STK_MISMATCH_SKIP;
    put_labels("val.csv", "id,label", 0, 3, "");
    d = open_told(&o);
    REQUIRE(d != NULL && d->train.count == 10 && d->val.count == 0);
    CHECK_CONTAINS(told, "the validation rows of val.csv are left out: all are of no use: 3 with a "
                         "training picture\n");
    stk_dataset_free(d);
    put_labels("val.csv", "id,kind", 10, 3, "");
    d = open_told(&o);
    REQUIRE(d != NULL && d->val.count == 0);
    CHECK_CONTAINS(told, "rows of val.csv are left out: it has no column label\n");
    stk_dataset_free(d);
}

static void coco_files_validate(void) {
    for (int missing = 0; missing < 2; missing++) {
        fresh();
        put_pictures("train_val2019", 0, 8);
        put_text("train2019.json",
                 "{\"images\": [{\"id\": 70, \"file_name\": \"train_val2019/0.jpg\"},"
                 "{\"id\": 71, \"file_name\": \"train_val2019/1.jpg\"},"
                 "{\"id\": 72, \"file_name\": \"train_val2019/2.jpg\"},"
                 "{\"id\": 73, \"file_name\": \"train_val2019/3.jpg\"},"
                 "{\"id\": 74, \"file_name\": \"train_val2019/4.jpg\"},"
                 "{\"id\": 75, \"file_name\": \"train_val2019/5.jpg\"}],"
                 "\"annotations\": [{\"image_id\": 70, \"category_id\": 1},"
                 "{\"image_id\": 71, \"category_id\": 2}, {\"image_id\": 72, \"category_id\": 1},"
                 "{\"image_id\": 73, \"category_id\": 2}, {\"image_id\": 74, \"category_id\": 1},"
                 "{\"image_id\": 75, \"category_id\": 2}]}");
        put_text("val2019.json",
                 missing ? "{\"images\": [{\"id\": 10, \"file_name\": \"val2019/6.jpg\"}],"
                           "\"annotations\": [{\"image_id\": 10, \"category_id\": 2}]}"
                         : "{\"images\": [{\"id\": 10, \"file_name\": \"train_val2019/6.jpg\"},"
                           "{\"id\": 11, \"file_name\": \"train_val2019/7.jpg\"}],"
                           "\"annotations\": [{\"image_id\": 10, \"category_id\": 2},"
                           "{\"image_id\": 11, \"category_id\": 1}]}");
        stk_dataset_options o = options();
        o.mismatch = missing ? STK_MISMATCH_SKIP : STK_MISMATCH_ERROR;
        stk_dataset *d = open_told(&o);
        REQUIRE(d != NULL && d->train.count == 6);
        CHECK_INT(d->val.count, missing ? 0 : 2);
        CHECK_CONTAINS(told, missing ? "the validation rows of val2019.json are left out: all are "
                                       "of no use: 1 without a picture\n"
                                     : "2 rows of val2019.json validate: ");
        stk_dataset_free(d);
    }
}

static void a_column_names_the_sets(void) {
    fresh();
    put_pictures("images", 0, 12);
    put_text("metadata.csv", "file,kind,part\n0,a,train\n1,b,train\n2,a,val\n3,b,Train\n4,a,train\n"
                             "5,b,val\n6,,test\n7,,test\n8,a,train\n9,b,train\n10,c,train\n"
                             "11,c,train\n");
    stk_dataset_options o = options();
    stk_dataset *d = open_told(&o);
    REQUIRE(d != NULL && d->train.count == 8 && d->val.count == 2 && d->test.count == 2);
    CHECK_STR(d->val.items[1].id, "5");
    CHECK_STR(d->classes[d->val.items[1].label], "b");
    CHECK_STR(d->rows[0].id, "6");
    CHECK_STR(d->test.items[0].path, "images/6.jpg");
    CHECK_INT(d->class_count, 3);
    CHECK_CONTAINS(told, "8 rows train, 2 validate, 2 are test rows: column part of metadata.csv "
                         "says so\n");
    stk_dataset_free(d);
    open_without_memory(&o);
    /* The column can be folds instead; then no row is set apart, and the labels must be there. */
    o.fold_column = "part";
    expect_failure(&o, STK_ERR_DATA);
    CHECK_CONTAINS(error.message, "line 8: the label (column kind) is empty");
    /* A sample submission has the last word on the test rows. */
    o.fold_column = NULL;
    put_text("sample_submission.csv", "file,kind\n7,a\n");
    d = open_told(&o);
    REQUIRE(d != NULL);
    CHECK_INT(d->train.count, 8);
    CHECK_INT(d->test.count, 1);
    stk_dataset_free(d);
}

/* Pictures of the sets lie in folders of their own. Test rows have every column, also what tells
 * the label, so none is an input. */
static void sets_have_their_folders(void) {
    fresh();
    put_pictures("train", 0, 8);
    put_pictures("val", 8, 2);
    put_pictures("test", 10, 2);
    put_text("labels.csv",
             "path,label,age,split\ntrain/0.jpg,1.5,3,train\ntrain/1.jpg,2.5,4,train\n"
             "train/2.jpg,2.25,5,train\ntrain/3.jpg,1.25,3,train\n"
             "train/4.jpg,0.5,4,train\ntrain/5.jpg,4.5,5,train\n"
             "train/6.jpg,3.5,4,train\ntrain/7.jpg,5.5,5,train\n"
             "val/8.jpg,7.5,5,valid\nval/9.jpg,8.5,5,valid\n"
             "test/10.jpg,0,3,test\ntest/11.jpg,0,4,test\n");
    stk_dataset_options o = options();
    o.columns = true;
    stk_dataset *d = open_told(&o);
    REQUIRE(d != NULL && d->train.count == 8 && d->val.count == 2 && d->test.count == 2);
    CHECK_INT(d->task, STK_TASK_REGRESSION);
    CHECK_STR(d->val.items[0].path, "val/8.jpg");
    float row[1];
    stk_targets_row(&d->targets, (size_t)d->val.items[1].record, row);
    CHECK(row[0] == 8.5f);
    CHECK_INT(d->features.code.count, 0);
    stk_dataset_free(d);
}

/* Labels 3.0 lose their ".0" in the validation rows, too, also where only these have it. */
static void whole_labels_of_rows_that_validate(void) {
    for (int from = 0; from < 3; from++) { /* a column, a table, a table that alone has ".0" */
        stk_str csv = {0};
        stk_str val = {0};
        fresh();
        put_pictures("images", 0, 30);
        stk_str_append(&csv, from == 0 ? "image,label,split\n" : "image,label\n");
        stk_str_append(&val, "image,label\n");
        for (int i = 0; i < 30; i++) {
            stk_str *to = from > 0 && i >= 20 ? &val : &csv;
            stk_str_appendf(to, "%d,%d%s%s\n", i, i % 3, from == 2 && i < 20 ? "" : ".0",
                            from > 0 ? ""
                            : i < 20 ? ",train"
                                     : ",val");
        }
        put_text("train.csv", stk_str_text(&csv));
        if (from > 0) {
            put_text("val.csv", stk_str_text(&val));
        }
        stk_str_free(&csv);
        stk_str_free(&val);
        stk_dataset_options o = options();
        stk_dataset *d = open_told(&o);
        REQUIRE(d != NULL && d->train.count == 20 && d->class_count == 3);
        CHECK_STR(d->classes[1], "1");
        REQUIRE(d->val.count == 10);
        CHECK_STR(d->classes[d->val.items[0].label], "2"); /* 20 % 3 */
        stk_dataset_free(d);
    }
}

/* A row validates if it says what a training row could say. */
static void rows_without_a_label_do_not_validate(void) {
    fresh();
    put_pictures("images", 0, 15); /* each row has one 1, or it has no class */
    put_text("train.csv", "id,ant,bee,cat\n0,1,0,0\n1,0,1,0\n2,0,0,1\n3,1,0,0\n4,0,1,0\n"
                          "5,0,0,1\n6,1,0,0\n7,0,1,0\n8,0,0,1\n");
    put_text("val.csv", "id,cat,ant,bee\n9,0,0,0\n10,1,0,0\n11,,,\n12,0,1,1\n13,0,1,0\n"
                        "14,0,0.5,0.5\n");
    stk_dataset_options o = options();
    stk_dataset *d = open_told(&o);
    REQUIRE(d != NULL && d->class_count == 3 && d->val.count == 2);
    CHECK_STR(d->classes[d->val.items[0].label], "cat");
    CHECK_STR(d->val.items[1].id, "13");
    CHECK_STR(d->classes[d->val.items[1].label], "ant");
    CHECK_CONTAINS(told, "4 without a label or with a picture twice\n");
    stk_dataset_free(d);

    fresh(); /* an amount */
    put_pictures("images", 0, 12);
    put_text("train.csv", "id,size\n0,1.5\n1,2.25\n2,3.5\n3,4.125\n4,5.5\n5,6.5\n6,7.5\n");
    put_text("val.csv", "id,size\n7,na\n8,3.25\n9,\n10,inf\n11,2\n");
    d = open_told(&o);
    REQUIRE(d != NULL && d->task == STK_TASK_REGRESSION && d->val.count == 2);
    CHECK_STR(d->val.items[0].id, "11");
    CHECK_STR(d->val.items[1].id, "8");
    CHECK_CONTAINS(told, "3 without a label or with a picture twice\n");
    stk_dataset_free(d);

    fresh(); /* several amounts: some may be missing, but not all */
    put_pictures("images", 0, 8);
    put_text("train.csv", "id,x,y\n0,1.5,2\n1,2.5,\n2,,3\n3,4.5,4\n");
    put_text("val.csv", "id,x,y\n4,na,\n5,3.25,\n6,1,2\n7,,\n");
    o.label_column = "x,y";
    d = open_told(&o);
    REQUIRE(d != NULL && d->task == STK_TASK_REGRESSION && d->val.count == 2);
    CHECK_STR(d->val.items[0].id, "5");
    stk_dataset_free(d);
    o.label_column = NULL;

    fresh(); /* lists: every label has a training picture */
    put_pictures("images", 0, 10);
    put_text("train.csv", "id,labels\n0,rust\n1,scab\n2,rust scab\n3,mold\n4,mold rust\n5,rust\n");
    put_text("val.csv", "id,labels\n6,scab mold\n7,rust zebra\n8,\n9,scab\n");
    d = open_told(&o);
    REQUIRE(d != NULL && d->task == STK_TASK_MULTILABEL && d->val.count == 3);
    CHECK_INT(d->class_count, 3);
    CHECK_STR(d->val.items[1].id, "8");
    CHECK_CONTAINS(told, "1 with a label that no training row has\n");
    stk_dataset_free(d);
    open_without_memory(&o);
}

/* A second name of the label is no input: the test rows have it because they have labels. */
static void a_second_label_is_no_input(void) {
    stk_str csv = {0};
    fresh();
    put_pictures("images", 0, 60);
    stk_str_append(&csv, "image,label,label_name,split\n");
    for (int i = 0; i < 60; i++) {
        stk_str_appendf(&csv, "%d,%d,%s,%s\n", i, i % 3, i % 3 == 0 ? "ant" : "bee",
                        i < 40   ? "train"
                        : i < 50 ? "val"
                                 : "test");
    }
    put_text("metadata.csv", stk_str_text(&csv));
    stk_str_free(&csv);
    stk_dataset_options o = options();
    o.columns = true;
    stk_dataset *d = open_told(&o);
    REQUIRE(d != NULL && d->train.count == 40 && d->val.count == 10 && d->test.count == 10);
    CHECK_STR(d->label_name, "label");
    CHECK_INT(d->features.count, 0);
    stk_dataset_free(d);
    /* Beside a test table the columns are inputs as ever. */
    put_text("test.csv", "image,label_name\n50,ant\n51,bee\n52,ant\n53,bee\n");
    d = open_told(&o);
    REQUIRE(d != NULL);
    CHECK_INT(d->test.count, 4);
    CHECK_INT(d->features.code.count, 1);
    stk_dataset_free(d);
}

/* The same words name a set in folders, tables and cells. */
static void all_words_of_sets(void) {
    static const char *const words[][2] = {{"train", "val"},
                                           {"training", "validation"},
                                           {"trainset", "valset"},
                                           {"trainval", "dev"},
                                           {"Train", "Valid"}};
    for (size_t i = 0; i < STK_COUNT(words); i++) {
        char cell[40];
        char name[40];
        stk_str csv = {0};
        fresh();
        put_pictures("images", 0, 10);
        stk_str_append(&csv, "id,label,part\n");
        for (int k = 0; k < 10; k++) {
            snprintf(cell, sizeof cell, "%s", words[i][k < 6 ? 0 : 1]);
            stk_str_appendf(&csv, "%d,%c,%s\n", k, k % 2 ? 'b' : 'a', cell);
        }
        put_text("metadata.csv", stk_str_text(&csv));
        stk_str_free(&csv);
        stk_dataset *d = open_plain();
        REQUIRE(d != NULL && d->train.count == 6 && d->val.count == 4);
        stk_dataset_free(d);
        fresh();
        put_pictures("images", 0, 10);
        snprintf(name, sizeof name, "%s.csv", words[i][0]);
        put_labels(name, "id,label", 0, 6, "");
        snprintf(name, sizeof name, "%s.csv", words[i][1]);
        put_labels(name, "id,label", 6, 4, "");
        d = open_plain();
        REQUIRE(d != NULL && d->train.count == 6 && d->val.count == 4);
        stk_dataset_free(d);
        fresh();
        put_cats_and_dogs(words[i][0]);
        put_cats_and_dogs(words[i][1]);
        d = open_plain();
        REQUIRE(d != NULL && d->train.count == 6 && d->val.count == 6 && d->class_count == 2);
        stk_dataset_free(d);
    }
    fresh(); /* without a training set it may be a class */
    put_pictures("dev", 0, 4);
    put_pictures("prod", 4, 4);
    stk_dataset *d = open_plain();
    REQUIRE(d != NULL && d->class_count == 2 && d->train.count == 8);
    stk_dataset_free(d);
}

/* Other words beside names of sets, or none of another set, name no sets. */
static void columns_that_name_no_sets(void) {
    fresh();
    put_pictures("images", 0, 6);
    put_labels("labels.csv", "id,label,part", 0, 6, ",train");
    stk_dataset *d = open_plain();
    REQUIRE(d != NULL);
    CHECK_INT(d->train.count, 6);
    stk_dataset_free(d);
    put_text("labels.csv", "id,label\n0,train\n1,bus\n2,train\n3,bus\n4,train\n5,bus\n");
    d = open_plain();
    REQUIRE(d != NULL);
    CHECK_INT(d->train.count, 6);
    stk_dataset_free(d);
    put_text("labels.csv", "id,label\n0,train\n1,test\n2,train\n3,test\n4,train\n5,test\n");
    d = open_plain(); /* it is called like a label */
    REQUIRE(d != NULL);
    CHECK_INT(d->train.count, 6);
    stk_dataset_free(d);
}

static const check_test tests[] = {
    TEST(a_table_validates),
    TEST(the_same_ids_in_two_folders),
    TEST(rows_of_no_use_are_left_out),
    TEST(coco_files_validate),
    TEST(a_column_names_the_sets),
    TEST(sets_have_their_folders),
    TEST(whole_labels_of_rows_that_validate),
    TEST(rows_without_a_label_do_not_validate),
    TEST(a_second_label_is_no_input),
    TEST(columns_that_name_no_sets),
    TEST(all_words_of_sets),
};

CHECK_MAIN(tests)
