/* test_dataset_finding.c - where pictures lie, which table leads to them, what stands beside them.
 */
#include "test_dataset.h"

#include <math.h>

#include "base/str.h"

/* `rows` lines of a table, each with its number where the format has %d. */
static void put_rows(const char *name, const char *header, const char *format, int rows) {
    stk_str csv = {0};
    stk_str_appendf(&csv, "%s\n", header);
    for (int i = 0; i < rows; i++) {
        char line[200];
        size_t length = 0;
        for (const char *at = format; *at != '\0' && length < sizeof line - 16; at++) {
            if (at[0] == '%' && at[1] == 'd') {
                length += (size_t)snprintf(line + length, sizeof line - length, "%d", i);
                at++;
            } else if (at[0] == '%' && at[1] == 'm') { /* i modulo 3 */
                length += (size_t)snprintf(line + length, sizeof line - length, "%d", i % 3);
                at++;
            } else if (at[0] == '%' && at[1] == 'g') { /* groups of four */
                length += (size_t)snprintf(line + length, sizeof line - length, "%d", i / 4);
                at++;
            } else {
                line[length++] = *at;
            }
        }
        line[length] = '\0';
        stk_str_appendf(&csv, "%s\n", line);
    }
    put_text(name, stk_str_text(&csv));
    stk_str_free(&csv);
}

static void put_pictures(const char *folder, const char *ext, int first, int count) {
    for (int i = first; i < first + count; i++) {
        char name[160];
        snprintf(name, sizeof name, "%s/%d%s", folder, i, ext);
        put(name);
    }
}

static void the_cheaper_copy_is_used(void) {
    fresh();
    put_pictures("train", ".dcm", 0, 20);
    put_pictures("jpeg/train", ".jpg", 0, 20);
    put_pictures("test", ".dcm", 50, 3);
    put_pictures("jpeg/test", ".jpg", 50, 3);
    put_rows("train.csv", "image_name,target", "%d,%m", 20);
    put_text("test.csv", "image_name\n50\n51\n52\n");
    put_text("sample_submission.csv", "image_name,target\n50,0\n51,0\n52,0\n");
    stk_dataset *d = open_plain();
    REQUIRE(d != NULL && d->train.count == 20 && d->test.count == 3);
    CHECK_STR(d->train.items[0].path, "jpeg/train/0.jpg");
    CHECK_STR(d->test.items[0].path, "jpeg/test/50.jpg");
    stk_dataset_free(d);
}

/* Rows of the submission are found through the test table; a row may have several pictures. */
static void rows_of_several_pictures(void) {
    fresh();
    put_pictures("train_images/a", ".jpg", 0, 12);
    put_pictures("test_images/b", ".jpg", 20, 4);
    put_rows("train.csv", "patient,image_id,cancer", "p%g,%d,%m", 12);
    put_text("test.csv",
             "patient,image_id,prediction_id\nx,20,x_L\nx,21,x_R\nx,22,x_L\ny,23,y_L\n");
    put_text("sample_submission.csv", "prediction_id,cancer\ny_L,0\nx_L,0\nx_R,0\n");
    stk_dataset *d = open_plain();
    REQUIRE(d != NULL && d->row_count == 3 && d->test.count == 4);
    CHECK_STR(d->rows[1].id, "x_L");
    CHECK_INT(d->rows[1].first, 1);
    CHECK_INT(d->rows[1].count, 2);
    CHECK_STR(d->test.items[2].path, "test_images/b/22.jpg");
    CHECK_STR(d->grouped_by, "prediction_id");
    stk_dataset_free(d);
}

static void a_column_without_a_name_is_kept(void) {
    fresh();
    put_pictures("train", ".jpg", 0, 12);
    put_pictures("test", ".jpg", 20, 2);
    put_rows("train.csv", "file_name,category_id", "%d.jpg,%m", 12);
    put_text("sample_submission.csv", ",Id,Category\n7,20,0\n9,21,0\n");
    stk_dataset *d = open_plain();
    REQUIRE(d != NULL && d->row_count == 2);
    CHECK_INT(d->template_id, 1);
    CHECK_INT(d->template_kept, 0);
    CHECK_STR(d->rows[0].kept, "7");
    CHECK_STR(d->rows[1].kept, "9");
    CHECK_STR(d->rows[1].id, "21");
    stk_dataset_free(d);
}

/* Groups are found where the test rows have other values; where values cross there are none. */
static void groups_are_found(void) {
    for (int crosses = 0; crosses < 2; crosses++) {
        fresh();
        put_pictures("train", ".jpg", 0, 40);
        put_pictures("test", ".jpg", 50, 2);
        put_rows("train.csv", "id,where,label", "%d,place%g,%m", 40);
        put_text("test.csv",
                 crosses ? "id,where\n50,place3\n51,other\n" : "id,where\n50,another\n51,other\n");
        put_text("sample_submission.csv", "id,label\n50,0\n51,0\n");
        stk_dataset *d = open_plain();
        REQUIRE(d != NULL);
        CHECK_INT(d->division, crosses ? STK_DIVIDE_CLASSES : STK_DIVIDE_GROUPS);
        CHECK_INT(d->part_count, crosses ? 0 : 10);
        stk_dataset_free(d);
    }
}

static void further_columns_are_features(void) {
    fresh();
    put_pictures("train", ".jpg", 0, 4);
    put_pictures("test", ".jpg", 50, 2);
    put_text("train.csv", "id,sex,age,same,note,label\n0,f,10,x,a,0\n1,m,30,x,b,1\n2,f,,x,c,0\n"
                          "3,m,20,x,d,1\n");
    put_text("test.csv", "id,age,sex,same\n50,40,m,x\n51,,unknown,x\n");
    put_text("sample_submission.csv", "id,label\n51,0.5\n50,0.5\n");
    stk_dataset_options o = options();
    o.columns = true;
    stk_dataset *d = open_with(&o);
    REQUIRE(d != NULL);
    CHECK_INT(d->features.columns, 2); /* `same` says nothing, `note` is not in the test table */
    REQUIRE(d->features.count == 4);   /* f, m; age, whether it is missing */
    const float *row = stk_features_row(&d->features, 1);
    CHECK(row[0] == 0 && row[1] == 1);
    CHECK(fabsf(row[2] - 1.224745f) < 1e-5f && row[3] == 0);
    row = stk_features_row(&d->features, 2);
    CHECK(row[0] == 1 && row[1] == 0 && row[2] == 0 && row[3] == 1);
    row = stk_features_row(&d->features, (size_t)d->test.items[0].record); /* 51 */
    CHECK(row[0] == 0 && row[1] == 0 && row[2] == 0 && row[3] == 1);
    row = stk_features_row(&d->features, (size_t)d->test.items[1].record);
    CHECK(row[1] == 1 && fabsf(row[2] - 2.449490f) < 1e-5f);
    stk_dataset_free(d);
    o.columns = false;
    d = open_with(&o);
    REQUIRE(d != NULL);
    CHECK_INT(d->features.count, 0);
    stk_dataset_free(d);
}

static void classes_in_names(void) {
    fresh();
    for (int i = 0; i < 8; i++) {
        char name[64];
        snprintf(name, sizeof name, "train/%s.%d.jpg", i % 2 ? "cat" : "dog", i);
        put(name);
    }
    put("test/1.jpg");
    put_text("sample_submission.csv", "id,label\n1,0.5\n");
    stk_dataset *d = open_plain();
    REQUIRE(d != NULL && d->class_count == 2);
    CHECK_STR(d->classes[1], "dog");
    CHECK_INT(d->answer.kind, STK_ANSWER_POSITIVE);
    CHECK_INT(d->answer.positive, 1);
    stk_dataset_free(d);
    fresh(); /* a camera's names say nothing */
    put("train/IMG_1.jpg");
    put("train/IMG_2.jpg");
    fails_with(STK_ERR_DATA, "nothing says what they show");
}

static void versions_of_pictures(void) {
    static const char *const folders[] = {"Cover", "JMiPOD", "UERD"};
    fresh();
    for (int f = 0; f < 3; f++) {
        put_pictures(folders[f], ".jpg", 0, 10);
    }
    put("Test/1.jpg");
    put_text("sample_submission.csv", "Id,Label\n1.jpg,0.5\n");
    stk_dataset *d = open_plain();
    REQUIRE(d != NULL && d->class_count == 2 && d->train.count == 30);
    CHECK_STR(d->classes[d->answer.positive], "changed");
    CHECK_INT(d->division, STK_DIVIDE_GROUPS);
    CHECK_INT(d->part_count, 10);
    stk_dataset_free(d);
    fresh(); /* numbered pictures of classes are no versions */
    put_pictures("train/ant", ".jpg", 0, 10);
    put_pictures("train/bee", ".jpg", 0, 10);
    d = open_plain();
    REQUIRE(d != NULL);
    CHECK_INT(d->division, STK_DIVIDE_CLASSES);
    stk_dataset_free(d);
}

/* Names with blanks are no lists, neither in the sample nor beside another divider. */
static void names_with_blanks(void) {
    fresh();
    put_pictures("train", ".jpg", 0, 12);
    put("test/50.jpg");
    put_rows("train.csv", "id,species", "%d,acer rubrum %m", 12);
    put_text("sample_submission.csv", "id,species\n50,acer rubrum 0\n");
    stk_dataset *d = open_plain();
    REQUIRE(d != NULL);
    CHECK_STR(stk_task_name(d->task), "single");
    CHECK_INT(d->class_count, 3);
    stk_dataset_free(d);
    fresh();
    put_pictures("train", ".jpg", 0, 4);
    put_text("train.csv", "id,signs\n0,dead end\n1,crossing\n2,crossing|dead end\n3,crossing\n");
    d = open_plain();
    REQUIRE(d != NULL && d->class_count == 2);
    CHECK_STR(stk_task_name(d->task), "multilabel");
    CHECK_STR(d->classes[1], "dead end");
    CHECK_INT(d->answer.divider, '|');
    stk_dataset_free(d);
}

/* Drawn lines have several rows for a picture, and dictionaries lead to none: neither is taken. */
static void other_tables_are_left_alone(void) {
    fresh();
    put_pictures("train", ".jpg", 0, 12);
    put_text("labels.csv", "attribute_id,attribute_name\n0,red\n1,green\n2,blue\n");
    put_rows("train.csv", "id,attribute_ids", "%d,%m", 12);
    put_rows("train_annotations.csv", "id,label,data", "%m,line,\"[1 2]\"", 30);
    put_text("label_num_to_name.json", "{\"0\": \"red\", \"1\": \"green\"}");
    stk_dataset *d = open_plain();
    REQUIRE(d != NULL && d->train.count == 12);
    CHECK_INT(d->class_count, 3);
    CHECK_STR(d->label_name, "attribute_ids");
    stk_dataset_free(d);
}

static const check_test tests[] = {
    TEST(the_cheaper_copy_is_used),
    TEST(rows_of_several_pictures),
    TEST(a_column_without_a_name_is_kept),
    TEST(groups_are_found),
    TEST(further_columns_are_features),
    TEST(classes_in_names),
    TEST(versions_of_pictures),
    TEST(names_with_blanks),
    TEST(other_tables_are_left_alone),
};

CHECK_MAIN(tests)
