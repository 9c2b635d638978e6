/* test_dataset_kaggle.c - a table of labels beside a folder of pictures. */
#include "test_dataset.h"

#include "base/clock.h"
#include "base/str.h"

static const char four_labels[] = "id,label\nd,cat\nb,dog\na,cat\nc,dog\n";

/* Pictures a to d in a folder, with an ending. */
static void put_abcd(const char *folder, const char *ending) {
    for (char c = 'a'; c <= 'd'; c++) {
        char name[128];
        snprintf(name, sizeof name, "%s/%c%s", folder, c, ending);
        put(name);
    }
}

static void table_with_all_parts(void) {
    fresh();
    put_abcd("train", ".jpg");
    put("test/x.jpg");
    put("test/y.jpg");
    put_text("train.csv", four_labels);
    put_text("sample_submission.csv", "id,dog,cat\ny,0.5,0.5\nx,0.5,0.5\n");
    stk_dataset *d = open_plain();
    REQUIRE(d != NULL);
    CHECK_INT(d->layout, STK_LAYOUT_KAGGLE);
    CHECK_INT(d->class_count, 2);
    CHECK_STR(d->classes[0], "cat");
    REQUIRE(d->train.count == 4);
    CHECK_STR(d->train.items[0].id, "a");
    CHECK_STR(d->train.items[0].path, "train/a.jpg");
    CHECK_INT(d->train.items[0].label, 0);
    CHECK_STR(d->train.items[1].id, "b");
    CHECK_INT(d->train.items[1].label, 1);
    CHECK_INT(d->val.count, 0);
    REQUIRE(d->test.count == 2);
    CHECK_STR(d->test.items[0].id, "y");
    CHECK_STR(d->test.items[0].path, "test/y.jpg");
    CHECK_STR(d->test.items[1].id, "x");
    CHECK_INT(d->template_columns, 3);
    CHECK_STR(d->template_header[1], "dog");
    CHECK_INT(d->template_id, 0);
    CHECK_STR(warnings, "");
    stk_dataset_free(d);
}

static void other_usual_names(void) {
    static const char *const tables[] = {"labels.csv", "train_labels.csv", "Train.csv"};
    static const char *const folders[] = {"train_images", "images", "."};
    for (int i = 0; i < 3; i++) {
        fresh();
        put_abcd(folders[i], ".png");
        put("test_images/q.webp");
        put("test_images/p.png");
        put_text(tables[i], "breed,image_id\ncat,a.png\ndog,b.png\ncat,c.png\ndog,d.png\n");
        stk_dataset *d = open_plain();
        REQUIRE(d != NULL);
        CHECK_INT(d->layout, STK_LAYOUT_KAGGLE);
        CHECK_INT(d->train.count, 4);
        CHECK_STR(d->train.items[0].id, "a.png");
        CHECK_STR(d->id_name, "image_id");
        CHECK_STR(d->label_name, "breed");
        REQUIRE(d->test.count == 2);
        CHECK_STR(d->test.items[0].id, "p");
        CHECK_STR(d->test.items[1].id, "q");
        CHECK(d->template_header == NULL);
        stk_dataset_free(d);
    }
}

static void quotes_crlf_and_byte_order_mark(void) {
    fresh();
    put_abcd("train", ".jpg");
    put("test/x.jpg");
    put_text("train.csv", "\xEF\xBB\xBFid, label \r\n\"a\",\"cat, fat\"\r\nb ,\"a \"\"dog\"\"\"\r\n"
                          "c,\"cat, fat\"\r\n\r\nd,\"a \"\"dog\"\"\"");
    put_text("sample_submission.csv", "\xEF\xBB\xBFid,\"cat, fat\",other\r\nx,0,0\r\n");
    stk_dataset *d = open_plain();
    REQUIRE(d != NULL);
    REQUIRE(d->class_count == 2);
    CHECK_STR(d->classes[0], "a \"dog\"");
    CHECK_STR(d->classes[1], "cat, fat");
    CHECK_INT(d->train.count, 4);
    CHECK_STR(d->template_header[0], "id");
    CHECK_STR(d->template_header[1], "cat, fat");
    CHECK_STR(d->template_header[2], "other");
    stk_dataset_free(d);
}

static void ids_are_looked_up_loosely(void) {
    static const char *const pairs[][2] = {{"./e.jpg", "train/e.jpg"},
                                           {"c.d", "train/s/c.d.jpg"},
                                           {"s/a", "train/s/a.jpg"},
                                           {"s/b.jpg", "train/s/b.JPG"},
                                           {"train/f.jpg", "train/f.jpg"}};
    fresh();
    put_text("train.csv", "id,label\ns/a,x\ns/b.jpg,y\nc.d,x\n./e.jpg,y\ntrain/f.jpg,x\n");
    for (int i = 0; i < 5; i++) {
        put(pairs[i][1]);
    }
    stk_dataset *d = open_plain();
    REQUIRE(d != NULL);
    REQUIRE(d->train.count == 5);
    for (int i = 0; i < 5; i++) {
        CHECK_STR(d->train.items[i].id, pairs[i][0]);
        CHECK_STR(d->train.items[i].path, pairs[i][1]);
    }
    stk_dataset_free(d);
}

static void ids_that_fit_two_pictures(void) {
    fresh();
    put_abcd("train", ".jpg");
    put("train/b.png");
    put_text("train.csv", four_labels);
    fails_with(STK_ERR_DATA, "line 3: 'b' fits both");
    CHECK_CONTAINS(error.message, "train/b.jpg");
    CHECK_CONTAINS(error.message, "train/b.png");
    CHECK_CONTAINS(error.message, "--image-ext");
    stk_dataset_options o = options();
    o.image_ext = "jpg";
    stk_dataset *d = open_with(&o);
    REQUIRE(d != NULL);
    CHECK_INT(d->train.count, 4);
    stk_dataset_free(d);
}

static void image_ext_replaces_that_of_the_table(void) {
    fresh();
    put_abcd("train", ".png");
    put_text("train.csv", "id,label\na.jpg,x\nb.jpg,y\nc.jpg,x\nd.jpg,y\n");
    fails_with(STK_ERR_DATA, "--image-ext");
    CHECK_CONTAINS(error.message, "a.jpg");
    CHECK_CONTAINS(error.message, "a.png");
    stk_dataset_options o = options();
    o.image_ext = "png";
    stk_dataset *d = open_with(&o);
    REQUIRE(d != NULL);
    CHECK_STR(d->train.items[0].id, "a.jpg");
    CHECK_STR(d->train.items[0].path, "train/a.png");
    stk_dataset_free(d);
}

static void columns_are_found(void) {
    fresh();
    put_abcd("train", ".jpg");
    /* Both columns have usual id names; only one of them names pictures. */
    put_text("train.csv", "Id,Image\nw1,a.jpg\nw2,b.jpg\nw1,c.jpg\nw2,d.jpg\n");
    stk_dataset *d = open_plain();
    REQUIRE(d != NULL);
    CHECK_STR(d->id_name, "Image");
    CHECK_STR(d->classes[0], "w1");
    stk_dataset_free(d);

    /* The first column that is not called like a label. */
    put_text("train.csv", "label,x,y\np,a,\nq,b,\np,c,\nq,d,\n");
    d = open_plain();
    REQUIRE(d != NULL);
    CHECK_STR(d->id_name, "x");
    stk_dataset_free(d);
}

static void columns_are_named(void) {
    fresh();
    put_abcd("train", ".jpg");
    put_text("train.csv", "what,size,of\na,1,x\nb,2,y\nc,3,x\nd,4,y\n");
    fails_with(STK_ERR_USAGE, "what, size, of");
    CHECK_CONTAINS(error.message, "--label-column");
    stk_dataset_options o = options();
    o.label_column = "off";
    expect_failure(&o, STK_ERR_USAGE);
    CHECK_CONTAINS(error.message, "did you mean 'of'?");
    o.label_column = "what";
    o.id_column = "what";
    expect_failure(&o, STK_ERR_USAGE);
    CHECK_CONTAINS(error.message, "what is the id column");
    o.label_column = "OF";
    o.id_column = "wat";
    expect_failure(&o, STK_ERR_USAGE);
    CHECK_CONTAINS(error.message, "--id-column wat");
    CHECK_CONTAINS(error.message, "did you mean 'what'?");
    o.id_column = NULL;
    stk_dataset *d = open_with(&o);
    REQUIRE(d != NULL);
    CHECK_STR(d->label_name, "of");
    stk_dataset_free(d);

    put_text("train.csv", "id,label,class\na,1,x\nb,2,y\nc,3,x\nd,4,y\n");
    fails_with(STK_ERR_USAGE, "id, label, class");
    put_text("train.csv", "id\na\nb\n");
    fails_with(STK_ERR_DATA, "one column only, id");
}

static void rows_that_are_wrong(void) {
    fresh();
    put_abcd("train", ".jpg");
    put_text("train.csv", "id,label\na,x\nb,\nc,x\nd,y\n");
    fails_with(STK_ERR_DATA, "train.csv, line 3: the label (column label) is empty");
    CHECK_CONTAINS(error.message, "or pass --mismatch skip to leave out such rows");
    put_text("train.csv", "id,label\na,x\nb,y\n \t,x\nd,y\n");
    fails_with(STK_ERR_DATA, "train.csv, line 4: the id (column id) is empty");
    put_text("train.csv", "id,label\na,x\nb,y\nc,x\n\nd,y\nb,x\n");
    fails_with(STK_ERR_DATA, "has the id 'b' twice, on lines 3 and 7");
    put_text("train.csv", "id,label\na,x\nb,y\nc,x\nd,y\nb.jpg,y\n");
    fails_with(STK_ERR_DATA, "train/b.jpg twice, on lines 3 ('b') and 6 ('b.jpg')");
    put_text("train.csv", "id,label\na,x\nb\n");
    fails_with(STK_ERR_DATA, "line 3");
    put_text("train.csv", "");
    fails_with(STK_ERR_DATA, "is empty");
    put_text("train.csv", "id,label\n");
    fails_with(STK_ERR_DATA, "no rows");
    put_text("train.csv", "id,label\na,x\nb,x\nc,x\nd,x\n");
    fails_with(STK_ERR_DATA, "one class only, 'x'");
    CHECK_CONTAINS(error.message, "--label-column");
    put_text("train.csv", "id,label\na,x\nb,x\nc,x\nd,y\n");
    fails_with(STK_ERR_DATA, "class 'y' has one image");
}

static void labels_for_missing_files(void) {
    fresh();
    put_abcd("train", ".jpg");
    put_text("labels.csv", "id,label\na,x\nb,y\nc,x\nd,y\nm1,z\nm2,z\nm3,z\nm4,x\n");
    fails_with(STK_ERR_DATA, "labels for 4 pictures that are not in");
    CHECK_CONTAINS(error.message, "m1, m2, m3 ...");
    CHECK_CONTAINS(error.message, "--mismatch skip");
    CHECK_CONTAINS(error.message, "--image-ext");
    stk_dataset_options o = options();
    o.mismatch = STK_MISMATCH_SKIP;
    stk_dataset *d = open_with(&o);
    REQUIRE(d != NULL);
    CHECK_INT(d->train.count, 4);
    CHECK_INT(d->class_count, 2);
    CHECK_CONTAINS(warnings, "left out 4 rows of labels.csv without a picture: m1, m2, m3 ...");
    stk_dataset_free(d);
    put_text("labels.csv", "id,label\nk,x\nl,y\n");
    expect_failure(&o, STK_ERR_DATA);
    CHECK_CONTAINS(error.message, "the ids are like 'k', the files like 'a.jpg'");
}

static void files_without_labels(void) {
    fresh();
    put_abcd("train", ".jpg");
    put("train/e.jpg");
    put("train/sub/f.jpg");
    put_text("labels.csv", four_labels);
    fails_with(STK_ERR_DATA, "2 pictures without a label in");
    CHECK_CONTAINS(error.message, "e.jpg, sub/f.jpg");
    CHECK_CONTAINS(error.message, "--mismatch skip");
    stk_dataset_options o = options();
    o.mismatch = STK_MISMATCH_SKIP;
    stk_dataset *d = open_with(&o);
    REQUIRE(d != NULL);
    CHECK_INT(d->train.count, 4);
    CHECK_CONTAINS(warnings, "left out 2 pictures");
    stk_dataset_free(d);
}

/* By default one of a hundred is left out, and two of them are not. */
static void a_few_that_do_not_match_are_left_out(void) {
    char table[4000] = "id,label\n";
    char *at = table + strlen(table);
    fresh();
    for (int i = 0; i < 99; i++) {
        char name[32];
        snprintf(name, sizeof name, "train/p%02d.jpg", i);
        put(name);
        at += snprintf(at, 32, "p%02d,%c\n", i, i % 2 == 0 ? 'x' : 'y');
    }
    snprintf(at, 32, "gone,x\n");
    put_text("labels.csv", table);
    put("train/stranger.jpg");
    stk_dataset_options o = options();
    o.mismatch = STK_MISMATCH_AUTO;
    stk_dataset *d = open_with(&o);
    REQUIRE(d != NULL);
    CHECK_INT(d->train.count, 99);
    CHECK_CONTAINS(warnings, "left out 1 row of labels.csv without a picture: gone");
    CHECK_CONTAINS(warnings, "left out 1 picture without a label in labels.csv: stranger.jpg");
    stk_dataset_free(d);
    put("train/other.jpg");
    expect_failure(&o, STK_ERR_DATA);
    CHECK_CONTAINS(error.message, "2 pictures without a label");
    strcat(at, "lost,y\n");
    put_text("labels.csv", table);
    expect_failure(&o, STK_ERR_DATA);
    CHECK_CONTAINS(error.message, "labels for 2 pictures");
    o.mismatch = STK_MISMATCH_ERROR;
    expect_failure(&o, STK_ERR_DATA);
}

/* A row that stands twice is used once, unless the two disagree about where the picture belongs. */
static void repeated_rows_are_used_once(void) {
    fresh();
    put_abcd("train", ".jpg");
    put_text("train.csv", "n,id,label,who\n1,d,cat,p\n2,b,dog,q\n3,a,cat,r\n4,d,cat,p\n5,c,dog,s\n"
                          "6,b,dog,q\n7,d,cat,p\n");
    stk_dataset_options o = options();
    stk_dataset *d = open_with(&o);
    REQUIRE(d != NULL && d->train.count == 4);
    CHECK_STR(d->train.items[3].id, "d");
    CHECK_STR(d->classes[d->train.items[3].label], "cat");
    CHECK_STR(d->classes[d->train.items[2].label], "dog");
    CHECK_CONTAINS(warnings, "left out 3 rows of train.csv that repeat the id and the label of "
                             "another row: d, b, d\n");
    stk_dataset_free(d);
    open_without_memory(&o);
    o.group_column = "who";
    d = open_with(&o);
    REQUIRE(d != NULL && d->train.count == 4);
    stk_dataset_free(d);
    put_text("train.csv", "id,label,who\nd,cat,p\nb,dog,q\n,,\na,cat,r\nc,dog,s\n,,\n");
    warnings[0] = '\0';
    d = open_with(&o); /* rows of nothing are no rows */
    REQUIRE(d != NULL && d->train.count == 4);
    CHECK_STR(warnings, "");
    stk_dataset_free(d);
    put_text("train.csv", "id,label,who\nd,cat,p\nb,dog,q\na,cat,r\nd,cat,q\nc,dog,s\n");
    expect_failure(&o, STK_ERR_DATA);
    CHECK_CONTAINS(error.message, "has the id 'd' twice, on lines 2 and 5");
    put_text("train.csv", "id,x,y\nd,1,0\nb,1,1\na,0,0\nc,1,0\nb,1,1\n"); /* several labels */
    o = options();
    o.label_column = "x,y";
    d = open_with(&o);
    REQUIRE(d != NULL && d->targets.count == 4);
    stk_dataset_free(d);
    put_text("train.csv", "id,x,y\nd,1,0\nb,1,1\na,0,0\nc,1,0\nb,0,1\n");
    expect_failure(&o, STK_ERR_DATA);
    CHECK_CONTAINS(error.message, "has the id 'b' twice, on lines 3 and 6");
}

/* By default one of a hundred rows may have no label; with --mismatch skip all of them may. */
static void a_few_rows_without_a_label_are_left_out(void) {
    char table[4000] = "id,label\n";
    char *at = table + strlen(table);
    fresh();
    for (int i = 0; i < 200; i++) {
        char name[32];
        snprintf(name, sizeof name, "train/p%03d.jpg", i);
        put(name);
        at += snprintf(at, 32, "p%03d,%s\n", i, i == 7 || i == 99 ? "" : i % 2 ? "x" : "y");
    }
    put_text("train.csv", table);
    stk_dataset_options o = options();
    o.mismatch = STK_MISMATCH_AUTO;
    stk_dataset *d = open_with(&o);
    REQUIRE(d != NULL);
    CHECK_INT(d->train.count, 198);
    CHECK_STR(d->train.items[7].id, "p008");
    CHECK_STR(d->classes[d->train.items[7].label], "y");
    CHECK_STR(warnings, "left out 2 rows of train.csv without a label: p007, p099\n");
    stk_dataset_free(d);
    snprintf(at, 32, "p007,x\n"); /* it has a label elsewhere */
    put_text("train.csv", table);
    d = open_with(&o);
    REQUIRE(d != NULL);
    CHECK_INT(d->train.count, 199);
    stk_dataset_free(d);
    *at = '\0';
    char *label = strstr(table, "p150,") + 5;
    memmove(label, label + 1, strlen(label)); /* the third */
    put_text("train.csv", table);
    expect_failure(&o, STK_ERR_DATA);
    CHECK_CONTAINS(error.message, "train.csv, line 9: the label (column label) is empty");
    CHECK_CONTAINS(error.message, "--mismatch skip");
    o.mismatch = STK_MISMATCH_SKIP;
    d = open_with(&o);
    REQUIRE(d != NULL);
    CHECK_INT(d->train.count, 197);
    stk_dataset_free(d);
    o.mismatch = STK_MISMATCH_ERROR;
    expect_failure(&o, STK_ERR_DATA);
}

static void no_pictures(void) {
    fresh();
    put_text("labels.csv", four_labels);
    fails_with(STK_ERR_DATA, "no pictures in");
    CHECK_CONTAINS(error.message, "train_images");
}

static void sample_submissions_that_are_wrong(void) {
    fresh();
    put_abcd("train", ".jpg");
    put("test/x.jpg");
    put_text("train.csv", four_labels);
    put_text("sampleSubmission.csv", "id,label\nx,0\ny,0\nx,0\n");
    fails_with(STK_ERR_DATA, "has the id 'x' twice, on lines 2 and 4");
    CHECK_CONTAINS(error.message, "sampleSubmission.csv");
    put_text("sampleSubmission.csv", "id\nx\n");
    fails_with(STK_ERR_DATA, "one column only, id");
    put_text("sampleSubmission.csv", "id,label\nx,0\n,0\n");
    fails_with(STK_ERR_DATA, "line 3: the id is empty");
    put_text("sampleSubmission.csv", "id,cat,dog,cat\nx,0,0,0\n");
    fails_with(STK_ERR_DATA, "two columns called 'cat'");
    put_text("sampleSubmission.csv", "id,label\n");
    fails_with(STK_ERR_DATA, "no rows");
    put_text("sampleSubmission.csv", "id,label\nx,\"0\n");
    fails_with(STK_ERR_DATA, "never closes");
    put("test/x.png");
    put_text("sampleSubmission.csv", "id,label\nx,0\n");
    fails_with(STK_ERR_DATA, "line 2: 'x' fits both test/x.jpg and test/x.png");
}

static void test_pictures_that_are_missing(void) {
    fresh();
    put_abcd("train", ".jpg");
    put("test/x.jpg");
    put_text("train.csv", four_labels);
    put_text("sample_submission.csv", "label,ID\ncat,gone\ndog,x\ncat,lost\n");
    stk_dataset *d = open_plain();
    REQUIRE(d != NULL);
    REQUIRE(d->test.count == 3);
    CHECK(d->test.items[0].path == NULL);
    CHECK_STR(d->test.items[0].id, "gone");
    CHECK_STR(d->test.items[1].path, "test/x.jpg");
    CHECK_INT(d->template_id, 1);
    CHECK_CONTAINS(warnings, "2 of 3 pictures");
    CHECK_CONTAINS(warnings, "first: gone");
    CHECK(strchr(warnings, '\n') == warnings + strlen(warnings) - 1); /* one warning */
    stk_dataset_free(d);
}

static void one_folder_for_train_and_test(void) {
    fresh();
    put_abcd("images", ".jpg");
    put("images/t1.jpg");
    put("images/t2.jpg");
    put_text("train.csv", four_labels);
    put_text("sample_submission.csv", "id,label\nt2,0\nt1,0\n");
    stk_dataset *d = open_plain();
    REQUIRE(d != NULL);
    CHECK_INT(d->train.count, 4);
    REQUIRE(d->test.count == 2);
    CHECK_STR(d->test.items[0].path, "images/t2.jpg");
    stk_dataset_free(d);
}

static void table_or_class_folders(void) {
    fresh();
    put("train/cat/1.jpg");
    put("train/cat/2.jpg");
    put("train/dog/3.jpg");
    put("train/dog/4.jpg");
    put_text("train.csv", "id,label\n1,odd\n2,even\n3,odd\n4,even\n");
    stk_dataset *d = open_plain();
    REQUIRE(d != NULL);
    CHECK_INT(d->layout, STK_LAYOUT_KAGGLE);
    CHECK_STR(d->classes[0], "even");
    CHECK_STR(decisions, "");
    stk_dataset_free(d);

    put_text("train.csv", "class,count,more\ncat,20,x\ndog,20,x\n");
    d = open_plain();
    REQUIRE(d != NULL);
    CHECK_INT(d->layout, STK_LAYOUT_FOLDERS);
    CHECK_STR(d->classes[0], "cat");
    CHECK_CONTAINS(decisions, "train.csv");
    stk_dataset_free(d);

    stk_dataset_options o = options();
    o.id_column = "class";
    o.label_column = "count";
    expect_failure(&o, STK_ERR_DATA);
    CHECK_CONTAINS(error.message, "no picture in");
}

static void memory_runs_out(void) {
    fresh();
    put("train/s/a.jpg");
    put("train/s/b.jpg");
    put("train/c.jpg");
    put("train/d.jpg");
    put("test/x.jpg");
    put_text("train.csv", four_labels);
    put_text("sample_submission.csv", "id,dog,cat\ny,0.5,0.5\nx,0.5,0.5\n");
    stk_dataset_options o = options();
    open_without_memory(&o);
}

static void many_rows_are_matched_fast(void) {
    enum { ROWS = 20000 };
    fresh();
    stk_str csv = {0};
    stk_str_append(&csv, "id,label\n");
    for (int i = 0; i < ROWS; i++) {
        char name[64];
        snprintf(name, sizeof name, "train/picture%06d.jpg", i);
        put(name);
        stk_str_appendf(&csv, "picture%06d,class%d\n", ROWS - 1 - i, i % 120);
    }
    put_text("labels.csv", stk_str_text(&csv));
    stk_str_free(&csv);
    int64_t start = stk_clock_ns();
    stk_dataset *d = open_plain();
    double seconds = stk_clock_since_s(start);
    REQUIRE(d != NULL);
    CHECK_INT(d->train.count, ROWS);
    CHECK_INT(d->class_count, 120);
    CHECK(seconds < 2.0); /* far less on an idle machine without sanitizers */
    stk_dataset_free(d);
}

static const check_test tests[] = {
    TEST(table_with_all_parts),
    TEST(other_usual_names),
    TEST(quotes_crlf_and_byte_order_mark),
    TEST(ids_are_looked_up_loosely),
    TEST(ids_that_fit_two_pictures),
    TEST(image_ext_replaces_that_of_the_table),
    TEST(columns_are_found),
    TEST(columns_are_named),
    TEST(rows_that_are_wrong),
    TEST(labels_for_missing_files),
    TEST(files_without_labels),
    TEST(a_few_that_do_not_match_are_left_out),
    TEST(repeated_rows_are_used_once),
    TEST(a_few_rows_without_a_label_are_left_out),
    TEST(no_pictures),
    TEST(sample_submissions_that_are_wrong),
    TEST(test_pictures_that_are_missing),
    TEST(one_folder_for_train_and_test),
    TEST(table_or_class_folders),
    TEST(memory_runs_out),
    TEST(many_rows_are_matched_fast),
};

CHECK_MAIN(tests)
