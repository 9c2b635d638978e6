/* test_dataset_brought.c - folders as people bring them: one folder too high, samples of other
 * names, and what Stoker does not do. */
#include "test_dataset.h"

#include "base/str.h"
#include "predict/submission.h"

/* A table of eight pictures of two classes in `folder`, two test pictures and their sample. */
static void put_competition(const char *folder, const char *sample) {
    char name[200];
    for (int i = 0; i < 8; i++) {
        snprintf(name, sizeof name, "%strain/a%d.jpg", folder, i);
        put(name);
    }
    snprintf(name, sizeof name, "%stest/t0.jpg", folder);
    put(name);
    snprintf(name, sizeof name, "%stest/t1.jpg", folder);
    put(name);
    snprintf(name, sizeof name, "%strain.csv", folder);
    put_text(name,
             "id,label\na0,red\na1,blue\na2,red\na3,blue\na4,red\na5,blue\na6,red\na7,blue\n");
    snprintf(name, sizeof name, "%s%s", folder, sample);
    put_text(name, "id,label\nt1,red\nt0,red\n");
}

static void expect_sample(const char *file) {
    stk_dataset *d = open_plain();
    REQUIRE(d != NULL && d->row_count == 2);
    CHECK_STR(d->template_file, file);
    CHECK_STR(d->rows[0].id, "t1");
    CHECK(d->test.count == 2 && d->test.items[0].path != NULL);
    CHECK_INT(d->class_count, 2);
    stk_dataset_free(d);
}

static void a_folder_that_only_holds_the_data_set(void) {
    static const char *const folders[] = {"comp-name/", "data/", "kaggle/input/comp/"};
    for (size_t i = 0; i < STK_COUNT(folders); i++) {
        fresh();
        put_competition(folders[i], "sample_submission.csv");
        put(".DS_Store");
        put("Thumbs.db");
        put("readme.md");
        put("__MACOSX/x/._train.csv");
        expect_sample("sample_submission.csv");
        CHECK_CONTAINS(decisions, "the data set from ");
        CHECK_STR(warnings, "");
    }
    put("description.md");
    expect_sample("sample_submission.csv");
    CHECK_CONTAINS(warnings, "description.md lies beside the data set");
    fresh();
    put_cats_and_dogs("comp/train");
    stk_dataset *d = open_plain();
    REQUIRE(d != NULL && d->class_count == 2);
    CHECK_STR(d->classes[0], "cat");
    stk_dataset_free(d);
    fresh(); /* what lies beside it counts */
    put_cats_and_dogs("comp/train");
    put("7.jpg");
    fails_with(STK_ERR_DATA, "beside the class folders");
}

static void a_sample_that_lies_in_a_folder(void) {
    fresh();
    put_competition("", "files/sample_submission.csv");
    expect_sample("files/sample_submission.csv");
    CHECK_CONTAINS(decisions, "the sample submission from files/sample_submission.csv");
    put_text("more/SampleSubmission.csv", "id,label\nt0,red\n");
    fails_with(STK_ERR_DATA, "2 files that could be the sample submission: files/");
    stk_dataset_options o = options();
    o.sample_submission = "none";
    stk_dataset *d = open_with(&o);
    CHECK(d != NULL && d->template_file == NULL);
    stk_dataset_free(d);
}

static void other_names_of_the_sample(void) {
    static const char *const names[] = {"submission_format.csv",  "SubmissionFormat.csv",
                                        "example_submission.csv", "submission-template.csv",
                                        "test_submission.csv",    "sample_sub.csv",
                                        "submission.csv",         "random_submission.csv"};
    for (size_t i = 0; i < STK_COUNT(names); i++) {
        fresh();
        put_competition("", names[i]);
        expect_sample(names[i]);
    }
    fresh();
    put_competition("", "submission.csv"); /* somebody's own */
    put_text("second_submission.csv", "id,label\nt0,red\n");
    stk_dataset *d = open_plain();
    CHECK(d != NULL && d->template_file == NULL && d->row_count == 2);
    stk_dataset_free(d);
}

static void a_column_of_each_class_has_no_name_for_all(void) {
    char header[300];
    int columns;
    fresh();
    put_competition("", "note.txt");
    put_text("train.csv", "id,red,blue\na0,1,0\na1,0,1\na2,1,0\na3,0,1\na4,1,0\na5,0,1\na6,1,0\n"
                          "a7,0,1\n");
    stk_dataset_options o = options();
    o.label_column = "red,blue";
    stk_dataset *d = open_with(&o);
    REQUIRE(d != NULL &&
            stk_submission_describe(d, header, sizeof header, &columns, &error) == STK_OK);
    CHECK_STR(header, "id,label,blue,red");
    stk_dataset_free(d);
}

/* Usage and the like are copied; a number that no training column has is not made up. */
static void columns_of_the_sample_without_an_answer(void) {
    static const char *const copied[] = {"id,label,Usage\nt1,red,Public\nt0,red,Private\n",
                                         "id,label,confidence\nt1,red,0.5\nt0,red,0.5\n"};
    for (size_t i = 0; i < STK_COUNT(copied); i++) {
        fresh();
        put_competition("", "sample_submission.csv");
        put_text("sample_submission.csv", copied[i]);
        stk_dataset *d = open_plain();
        REQUIRE(d != NULL && d->row_count == 2);
        CHECK_INT(d->template_kept, 2);
        CHECK_STR(d->rows[0].kept, i == 0 ? "Public" : "0.5");
        CHECK_CONTAINS(warnings, "its cells are copied, and column 'label' takes the answers");
        CHECK_INT(stk_submission_check(d, &events, &error), STK_OK);
        stk_dataset_free(d);
    }
    fresh();
    put_competition("", "sample_submission.csv");
    put_text("train.csv", "id,w,h\na0,1.5,2\na1,2.5,3\na2,3.5,2\na3,1,2\na4,4,5\na5,2,3\na6,1,1\n"
                          "a7,0,1\n");
    put_text("sample_submission.csv", "id,w,h,q\nt1,0,0,0\nt0,0,0,0\n");
    stk_dataset *d = open_plain();
    REQUIRE(d != NULL);
    CHECK_INT(stk_submission_check(d, &events, &error), STK_ERR_DATA);
    CHECK_CONTAINS(error.message, "wants numbers in the column 'q'");
    CHECK_CONTAINS(error.message, "--sample-submission none");
    stk_dataset_free(d);
}

static void put_named(const char *folder, const char *tail, int count) {
    for (int i = 0; i < count; i++) {
        char name[200];
        snprintf(name, sizeof name, "%s/%d%s", folder, i, tail);
        put(name);
    }
}

static void masks_and_boxes_are_no_classes(void) {
    static const char *const folders[][3] = {
        {"train/images", "train/masks", ".png"}, {"train/image", "train/label", ".png"},
        {"images", "annotations", ".png"},       {"imgs", "SegmentationClass", ".png"},
        {"train/img", "train/gt", "_mask.png"},  {"train/images", "train/labels", ".txt"},
        {"JPEGImages", "Annotations", ".xml"},
    };
    for (size_t i = 0; i < STK_COUNT(folders); i++) {
        fresh();
        put_named(folders[i][0], ".png", 6);
        put_named(folders[i][1], folders[i][2], 6);
        fails_with(STK_ERR_DATA, i < 5 ? "these are masks (segmentation)" : "these are boxes");
        CHECK_CONTAINS(error.message, "Stoker trains classes, labels and numbers");
    }
    fresh();
    put_named("images/train", ".jpg", 6);
    put_named("labels/train", ".txt", 6);
    put("labels/classes.txt");
    fails_with(STK_ERR_DATA, "these are boxes");
    fresh(); /* a table does not help */
    put_named("train/images", ".png", 4);
    put_named("train/masks", ".png", 4);
    put_text("train.csv", "id,rle\n0,1 2\n1,3 4\n2,1 2\n3,3 4\n");
    fails_with(STK_ERR_DATA, "these are masks");
    fresh(); /* other names inside: two classes */
    put_named("images", ".png", 4);
    put_named("masks", "x.png", 4);
    stk_dataset *d = open_plain();
    CHECK(d != NULL && d->class_count == 2);
    stk_dataset_free(d);
}

/* Six pictures in two folders, and a table of them with the columns that are named. */
static void put_parts(const char *first, const char *second, const char *header,
                      const char *const cells[6]) {
    stk_str csv = {0};
    stk_str_appendf(&csv, "%s\n", header);
    for (int i = 0; i < 6; i++) {
        char name[100];
        snprintf(name, sizeof name, "%s/images/%d.png", i < 3 ? first : second, i);
        put(name);
        stk_str_appendf(&csv, "%d.png,%s\n", i, cells[i]);
    }
    put_text("Data_Entry.csv", stk_str_text(&csv));
    stk_str_free(&csv);
}

static void a_table_tells_more_than_parts(void) {
    static const char *const findings[6] = {"Mass,m",   "Hernia,m", "Mass,f",
                                            "Hernia,f", "Mass,f",   "Hernia,m"};
    static const char *const same[6] = {"x,m", "x,m", "x,f", "y,f", "y,f", "y,m"};
    fresh();
    put_parts("images_001", "images_002", "Image Index,Finding Labels,Gender", findings);
    stk_dataset *d = open_plain();
    REQUIRE(d != NULL && d->class_count == 2 && d->train.count == 6);
    CHECK_INT(d->layout, STK_LAYOUT_KAGGLE);
    CHECK_STR(d->classes[0], "Hernia");
    stk_dataset_free(d);
    fresh(); /* names that are classes, and a label that is another one */
    put_parts("cat", "dog", "Image Index,label,Gender", findings);
    d = open_plain();
    REQUIRE(d != NULL);
    CHECK_STR(d->classes[0], "Hernia");
    stk_dataset_free(d);
    fresh(); /* no column is called like a label */
    put_parts("cat", "dog", "Image Index,Camera,Gender", findings);
    d = open_plain();
    REQUIRE(d != NULL);
    CHECK_INT(d->layout, STK_LAYOUT_FOLDERS);
    CHECK_STR(d->classes[0], "cat");
    stk_dataset_free(d);
    fresh(); /* the table says what the folders say */
    put_parts("c0", "c1", "Image Index,classname,Gender", same);
    d = open_plain();
    REQUIRE(d != NULL);
    CHECK_INT(d->layout, STK_LAYOUT_FOLDERS);
    stk_dataset_free(d);
}

static void columns_that_options_name_beside_folders(void) {
    static const char *const cells[6] = {"x,m", "x,m", "x,f", "y,f", "y,f", "y,m"};
    stk_dataset_options o = options();
    fresh();
    put_parts("cat", "dog", "Image Index,Camera,Gender", cells);
    o.label_column = "Gender";
    stk_dataset *d = open_with(&o);
    REQUIRE(d != NULL && d->class_count == 2);
    CHECK_STR(d->classes[0], "f");
    stk_dataset_free(d);
    o.label_column = "nonsense";
    expect_failure(&o, STK_ERR_USAGE);
    CHECK_CONTAINS(error.message, "--label-column nonsense: no table of ");
    o.label_column = NULL;
    o.id_column = "nonsense";
    expect_failure(&o, STK_ERR_USAGE);
    CHECK_CONTAINS(error.message, "--id-column nonsense: no table of ");
    fresh();
    put_cats_and_dogs("train");
    put("test/7.jpg");
    put_text("sample_submission.csv", "number,pic,what\n0,7,cat\n");
    o.id_column = "pic"; /* of the sample */
    d = open_with(&o);
    CHECK(d != NULL && d->template_id == 1);
    stk_dataset_free(d);
}

static void groups_are_who_and_no_measures(void) {
    stk_str csv = {0};
    fresh();
    stk_str_append(&csv, "id,label,Patient Age,Patient Code,Patient ID\n");
    for (int i = 0; i < 24; i++) {
        char name[40];
        snprintf(name, sizeof name, "train/%d.jpg", i);
        put(name);
        stk_str_appendf(&csv, "%d,%s,%d,c%d,p%d\n", i, i % 2 ? "x" : "y", 40 + i % 5, i % 6, i / 2);
    }
    put_text("train.csv", stk_str_text(&csv));
    stk_str_free(&csv);
    stk_dataset_options o = options();
    o.label_column = "label";
    stk_dataset *d = open_with(&o);
    REQUIRE(d != NULL);
    CHECK_STR(d->part_column, "Patient ID");
    stk_dataset_free(d);
}

static void lists_of_names_divide_the_rows(void) {
    static const char *const cells[6] = {"Mass,m",   "Hernia,m", "Mass,f",
                                         "Hernia,f", "Mass,f",   "Hernia,m"};
    fresh();
    put_parts("images_001", "images_002", "Image Index,Finding Labels,Gender", cells);
    put_text("train_val_list.txt", "0.png\r\n1.png\r\n2.png\r\n3.png");
    put_text("test_list.txt", "4.png\nx/5.png\n\n");
    stk_dataset_options o = options();
    o.label_column = "Finding Labels";
    stk_dataset *d = open_with(&o);
    REQUIRE(d != NULL && d->train.count == 4 && d->test.count == 2);
    CHECK_STR(d->test.items[0].path, "images_002/images/4.png");
    stk_dataset_free(d);
    put_text("train_val_list.txt", "0.png\n1.png\n2.png\n"); /* 3.png is in no list */
    d = open_with(&o);
    REQUIRE(d != NULL && d->train.count == 6 && d->test.count == 0);
    stk_dataset_free(d);
    put_text("train_val_list.txt", "no list but a few words\n");
    d = open_with(&o);
    REQUIRE(d != NULL && d->train.count == 6);
    stk_dataset_free(d);
}

static void the_reason_names_class_folders(void) {
    fresh();
    put_cats_and_dogs("train");
    stk_dataset *d = open_plain();
    REQUIRE(d != NULL);
    CHECK_STR(d->reason, "classes: folders cat, dog");
    stk_dataset_free(d);
    put("test/7.jpg");
    put_text("sample_submission.csv", "id,label\n7,cat\n");
    d = open_plain();
    REQUIRE(d != NULL);
    CHECK_CONTAINS(d->reason, "cat or dog, as the sample asks for; classes: folders cat, dog");
    stk_dataset_free(d);
}

/* Rows "i,a,b" of pictures 0 to `count`, `each` rows a picture. */
static void put_rows_of_each(const char *header, int count, int each) {
    stk_str csv = {0};
    stk_str_appendf(&csv, "%s\n", header);
    for (int i = 0; i < count * each; i++) {
        stk_str_appendf(&csv, "%d,%d 2 %d 4,k%d\n", i / each, i, i + 7, i % 3);
    }
    put_text("train.csv", stk_str_text(&csv));
    stk_str_free(&csv);
}

static void several_rows_or_files_of_a_picture(void) {
    fresh();
    put_named("train", ".jpg", 6);
    put_rows_of_each("id,spot,source", 6, 2);
    fails_with(STK_ERR_DATA, "has several rows for 6 of 6 ids (first '0', lines 2 and 3)");
    CHECK_CONTAINS(error.message, "boxes or masks");
    stk_dataset_options o = options();
    o.label_column = "source";
    expect_failure(&o, STK_ERR_DATA);
    CHECK_CONTAINS(error.message, "has several rows for 6 of 6 ids");
    fresh();
    put_named("train", ".jpg", 6);
    put_rows_of_each("id,first,second", 6, 1);
    fails_with(STK_ERR_USAGE, "the file that shows the columns of the submission");
    fresh();
    put_named("train", "_red.png", 6);
    put_named("train", "_green.png", 6);
    put_rows_of_each("id,first,label", 6, 1);
    fails_with(STK_ERR_DATA, "the id '0' of ");
    CHECK_CONTAINS(error.message,
                   "is no picture but 2 files: 0_green.png, 0_red.png; several channels");
}

static void what_is_there_instead_of_pictures(void) {
    static const char *const files[][2] = {
        {"train_audio/b/1.ogg", "there are sound files (train_audio/b/1.ogg)"},
        {"clips/1.mp4", "there are videos (clips/1.mp4)"},
        {"more/train.zip", "there is the archive more/train.zip"}};
    for (size_t i = 0; i < STK_COUNT(files); i++) {
        fresh();
        put(files[i][0]);
        put("readme.md");
        put("other.txt");
        put("also/x.txt");
        fails_with(STK_ERR_DATA, files[i][1]);
    }
    stk_str csv = {0};
    fresh();
    stk_str_append(&csv, "label,Image\n3,");
    for (int i = 0; i < 300; i++) {
        stk_str_appendf(&csv, "%d ", i % 256);
    }
    put_text("training.csv", stk_str_text(&csv));
    fails_with(STK_ERR_DATA, "training.csv has hundreds of numbers in a cell of its column Image");
    fresh();
    stk_str_clear(&csv);
    stk_str_append(&csv, "label");
    for (int i = 0; i < 300; i++) {
        stk_str_appendf(&csv, ",pixel%d", i);
    }
    stk_str_append(&csv, "\n");
    put_text("train.csv", stk_str_text(&csv));
    fails_with(STK_ERR_DATA, "no rows");
    stk_str_append(&csv, "3");
    for (int i = 0; i < 300; i++) {
        stk_str_append(&csv, ",7");
    }
    put_text("train.csv", stk_str_text(&csv));
    fails_with(STK_ERR_DATA, "train.csv has 301 columns, as if they were the pixels");
    stk_str_free(&csv);
}

static void paths_of_other_machines(void) {
    static const char *const before[] = {"/kaggle/input/comp/train/", "train\\",
                                         "C:\\data\\train\\", "../comp/train/"};
    for (size_t f = 0; f < STK_COUNT(before); f++) {
        stk_str csv = {0};
        fresh();
        put_named("train", ".jpg", 6);
        put_named("test", ".jpg", 6);
        stk_str_append(&csv, "path,label\n");
        for (int i = 0; i < 6; i++) {
            stk_str_appendf(&csv, "%s%d.jpg,%s\n", before[f], i, i % 2 ? "x" : "y");
        }
        put_text("train.csv", stk_str_text(&csv));
        stk_str_free(&csv);
        stk_dataset *d = open_plain();
        REQUIRE(d != NULL && d->train.count == 6);
        CHECK_STR(d->train.items[0].path, "train/0.jpg");
        stk_dataset_free(d);
    }
}

static void names_in_other_letters(void) {
    fresh();
    put("train/A0.JPG");
    put("train/fe\xCC\x81"
        "e1.jpg"); /* as macOS stores it */
    put("train/\xC3\x84rger.jpg");
    put("train/b3.jpg");
    put("train/c.jpg");
    put("train/C.jpg");
    put_text("train.csv", "id,label\na0.jpg,x\nf\xC3\xA9"
                          "e1.jpg,y\na\xCC\x88rger,x\nB3.JPG,y\n"
                          "c,x\nC,y\n");
    stk_dataset *d = open_plain();
    REQUIRE(d != NULL && d->train.count == 6);
    CHECK_STR(d->train.items[0].path, "train/b3.jpg");
    stk_dataset_free(d);
    put("train/b3.png");
    put_text("train.csv", "id,label\nA0,x\nF\xC3\xA9"
                          "e1,y\n\xC3\x84rger,x\nB3.gif,y\nc,x\nC,y\n");
    fails_with(STK_ERR_DATA, "B3.gif"); /* another ending is another file */
}

static const check_test tests[] = {
    TEST(a_folder_that_only_holds_the_data_set),
    TEST(a_sample_that_lies_in_a_folder),
    TEST(other_names_of_the_sample),
    TEST(a_column_of_each_class_has_no_name_for_all),
    TEST(columns_of_the_sample_without_an_answer),
    TEST(masks_and_boxes_are_no_classes),
    TEST(a_table_tells_more_than_parts),
    TEST(columns_that_options_name_beside_folders),
    TEST(groups_are_who_and_no_measures),
    TEST(lists_of_names_divide_the_rows),
    TEST(the_reason_names_class_folders),
    TEST(several_rows_or_files_of_a_picture),
    TEST(what_is_there_instead_of_pictures),
    TEST(paths_of_other_machines),
    TEST(names_in_other_letters),
};

CHECK_MAIN(tests)
