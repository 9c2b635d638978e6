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
    CHECK(!d->train_has_rows); /* the side is not known */
    CHECK_INT(d->train.items[0].row, 0);
    stk_dataset_free(d);
}

/* Training pictures are grouped as the test rows are, by the columns that an id is written of or by
 * the id's own column; and validate together. */
static void training_rows_of_several_pictures(void) {
    static const char *const test_tables[] = {
        "machine,patient,image_id,side,row\n7,x,20,L,x_L\n7,x,21,R,x_R\n7,x,22,L,x_L\n7,y_z,23,L,"
        "y_z_L\n",
        "machine,patient,image_id,side,row\n7,x,20,L,a\n7,x,21,R,b\n7,x,22,L,a\n7,y_z,23,L,c\n",
        "machine,patient,image_id,side,row\n7,x,20,L,x_L\n7,x,21,R,x_R\n7,w,22,L,w_L\n7,y_z,23,L,"
        "y_z_L\n"};
    static const char *const samples[] = {"row,cancer\ny_z_L,0\nx_L,0\nx_R,0\n",
                                          "row,cancer\nc,0\na,0\nb,0\n",
                                          "row,cancer\ny_z_L,0\nx_L,0\nx_R,0\nw_L,0\n"};
    for (int t = 0; t < 3; t++) {
        fresh();
        put_pictures("train_images/a", ".jpg", 0, 24);
        put_pictures("test_images/b", ".jpg", 20, 4);
        stk_str table = {0};
        stk_str_append(&table, "machine,patient,image_id,side,cancer\n");
        for (int i = 0; i < 24; i++) {
            stk_str_appendf(&table, "7,p%d,%d,%s,%d\n", i / 4, i, i % 4 < 2 ? "L" : "R", i / 2 % 2);
        }
        put_text("train.csv", stk_str_text(&table));
        stk_str_free(&table);
        put_text("test.csv", test_tables[t]);
        put_text("sample_submission.csv", samples[t]);
        stk_dataset *d = open_plain();
        REQUIRE(d != NULL && d->train.count == 24);
        CHECK_INT(d->train_has_rows, t == 0);
        for (size_t i = 0; t == 0 && i < 24; i++) {
            for (size_t k = 0; k < 24; k++) { /* samples are sorted by their ids as texts */
                const stk_sample *a = &d->train.items[i];
                const stk_sample *b = &d->train.items[k];
                CHECK((a->row == b->row) == (atoi(a->id) / 2 == atoi(b->id) / 2));
                CHECK(a->row > 0 && (a->row != b->row || a->part == b->part));
            }
        }
        stk_dataset_free(d);
    }
}

/* Without another column that divides, the id's own column does. */
static void training_rows_have_the_id(void) {
    fresh();
    put_pictures("train_images/a", ".jpg", 0, 24);
    put_pictures("test_images/b", ".jpg", 20, 3);
    stk_str table = {0};
    stk_str_append(&table, "image,thing,kind\n");
    for (int i = 0; i < 24; i++) {
        stk_str_appendf(&table, "%d,%d,%d\n", i, 7 + i / 2, i / 2 % 2);
    }
    put_text("train.csv", stk_str_text(&table));
    stk_str_free(&table);
    put_text("test.csv", "image,thing\n20,7\n21,7\n22,500\n");
    put_text("sample_submission.csv", "thing,kind\n7,0\n500,0\n");
    stk_dataset *d = open_plain();
    REQUIRE(d != NULL && d->row_count == 2 && d->train.count == 24);
    CHECK(d->train_has_rows);
    CHECK_STR(d->part_column, "thing");
    CHECK_INT(d->division, STK_DIVIDE_GROUPS);
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
        stk_dataset_options o = options();
        o.group_column = "none";
        d = open_with(&o);
        REQUIRE(d != NULL);
        CHECK_INT(d->division, STK_DIVIDE_CLASSES);
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
    CHECK_INT(d->features.code.count, 2); /* `same` says nothing, `note` is not in the test table */
    REQUIRE(d->features.count == 4);      /* f, m; age, whether it is missing */
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

/* What a model needs that was trained elsewhere: the test table as it is, also without labels. */
static void the_test_table_is_kept_where_it_is_wanted(void) {
    fresh();
    put_pictures("train", ".jpg", 0, 4);
    put_pictures("test", ".jpg", 50, 2);
    put_text("train.csv", "id,age,label\n0,10,0\n1,30,1\n2,11,0\n3,20,1\n");
    put_text("test.csv", "id,age\n50,40\n51,41\n");
    put_text("sample_submission.csv", "id,label\n51,0.5\n50,0.5\n");
    stk_dataset_options o = options();
    stk_dataset *d = open_with(&o);
    REQUIRE(d != NULL);
    CHECK_INT(d->test_table.rows, 0);
    stk_dataset_free(d);
    o.keep_test_table = true;
    d = open_with(&o);
    REQUIRE(d != NULL && d->test_table.rows == 2 && d->test.count == 2);
    CHECK_INT(d->test_record, 4);
    CHECK_INT(d->test.items[0].record, 5);
    stk_dataset_free(d);
    for (int with_sample = 1; with_sample >= 0; with_sample--) {
        fresh();
        put_pictures("test", ".jpg", 50, 3);
        put_text("test.csv", "id,age\n50,40\n51,41\n");
        if (with_sample == 1) {
            put_text("sample_submission.csv", "id,label\n51,0.5\n50,0.5\n");
        }
        stk_error err = {0};
        o = options();
        o.keep_test_table = true;
        REQUIRE_OK(stk_dataset_open_images(&d, &o, NULL, NULL, &err), &err);
        REQUIRE(d->test_table.rows == 2 && d->test.count == 2 && d->row_count == 2);
        CHECK_INT(d->test_record, 0);
        CHECK_INT(d->test.items[0].record, with_sample);
        stk_dataset_free(d);
        o.keep_test_table = false;
        REQUIRE_OK(stk_dataset_open_images(&d, &o, NULL, NULL, &err), &err);
        CHECK_INT(d->test.count, with_sample == 1 ? 2 : 3);
        CHECK_INT(d->test.items[0].record, -1);
        stk_dataset_free(d);
    }
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

/* As an archive with a folder in it leaves them: train/train, test/test. */
static void classes_in_names_one_folder_deeper(void) {
    fresh();
    for (int i = 0; i < 8; i++) {
        char name[64];
        snprintf(name, sizeof name, "train/train/%s.%d.jpg", i % 2 ? "cat" : "dog", i);
        put(name);
    }
    put("test/test/1.jpg");
    put_text("sample_submission.csv", "id,label\n1,0.5\n");
    stk_dataset *d = open_plain();
    REQUIRE(d != NULL && d->class_count == 2 && d->train.count == 8);
    CHECK_STR(d->classes[1], "dog");
    CHECK_STR(d->train.items[0].path, "train/train/cat.1.jpg");
    CHECK_STR(d->test.items[0].path, "test/test/1.jpg");
    stk_dataset_free(d);
    put("train/cat.9.jpg"); /* some above, some below: nothing says what the folder is */
    fails_with(STK_ERR_DATA, "class folders");
}

/* A folder that holds nothing but one folder is looked through. */
static void class_folders_one_folder_deeper(void) {
    static const char *const nested[][3] = {{"train/train", "val/val", "test/test"},
                                            {"train/photos", "val/photos", "test"},
                                            {"train/train/images", "val", "test/Test Images"}};
    for (size_t i = 0; i < STK_COUNT(nested); i++) {
        char name[64];
        fresh();
        put_cats_and_dogs(nested[i][0]);
        snprintf(name, sizeof name, "%s/cat/5.jpg", nested[i][1]);
        put(name);
        snprintf(name, sizeof name, "%s/dog/6.jpg", nested[i][2]);
        put(name);
        stk_dataset *d = open_plain();
        REQUIRE(d != NULL && d->class_count == 2);
        CHECK_INT(d->train.count, 6);
        CHECK_INT(d->val.count, 1);
        CHECK_STR(d->classes[d->val.items[0].label], "cat");
        REQUIRE(d->test.count == 1 && d->test.items[0].label == 1);
        CHECK_STR(warnings, "");
        stk_dataset_free(d);
    }
    fresh();
    put("train/cat/1.jpg"); /* one class is no folder to look through */
    put("train/cat/2.jpg");
    fails_with(STK_ERR_DATA, "one class only, 'cat'");
    fresh();
    put_cats_and_dogs("train/train");
    put("train/1.jpg"); /* a picture beside it */
    fails_with(STK_ERR_DATA, "1 picture in");
    fresh();
    put_cats_and_dogs("train/train");
    put("val/dogs/1.jpg"); /* one class of the validation set, misspelt */
    fails_with(STK_ERR_DATA, "did you mean 'dog'?");
    stk_dataset_options o = options();
    fresh();
    put_cats_and_dogs("train/train");
    put("val/val/cat/7.jpg");
    open_without_memory(&o);
}

static void a_description_beside_class_folders(void) {
    fresh();
    put_cats_and_dogs("train");
    put("test/1.jpg");
    put_text("description.md", "The metric is the macro F1 score.");
    stk_dataset *d = open_plain();
    REQUIRE(d != NULL);
    CHECK_INT(d->metric, STK_METRIC_MACRO_F1);
    CHECK_STR(stk_task_name(d->task), "binary");
    CHECK_INT(d->answer.kind, STK_ANSWER_LABEL);
    stk_dataset_free(d);
    put_text("description.md", "The metric is the mean squared height of the cats.");
    d = open_plain();
    REQUIRE(d != NULL);
    CHECK_INT(d->metric, STK_METRIC_AUTO);
    stk_dataset_free(d);
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
    CHECK(d->has_versions);
    stk_split split;
    stk_error err = {0};
    REQUIRE_OK(stk_dataset_split(d, 0.2, 1, 0, 7, &split, &err), &err);
    REQUIRE(split.val_count == 6); /* all three versions of two pictures */
    for (size_t i = 0; i < split.val_count; i++) {
        for (size_t j = 0; j < split.train_count; j++) {
            CHECK(d->train.items[split.val[i]].part != d->train.items[split.train[j]].part);
        }
    }
    stk_split_free(&split);
    stk_dataset_free(d);
    fresh(); /* numbered pictures of classes are no versions */
    put_pictures("train/ant", ".jpg", 0, 10);
    put_pictures("train/bee", ".jpg", 0, 10);
    d = open_plain();
    REQUIRE(d != NULL);
    CHECK_INT(d->division, STK_DIVIDE_CLASSES);
    CHECK(!d->has_versions);
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

/* Who, where and which row is no property of a picture: it cannot be known of other pictures. */
static void ids_are_no_features(void) {
    fresh();
    put_pictures("train", ".jpg", 0, 24);
    put_pictures("test", ".jpg", 50, 4);
    put_rows("train.csv", "id,user,seat,row,days,dose,side,other,label",
             "%d,u%g,7%g,3%d,5%g,%d.5,s%m,%g.0,%m", 24);
    /* `days` is measured, `dose` has fractions, `side` and `other` are mostly known. */
    put_text("test.csv", "id,user,seat,row,days,dose,side,other\n50,v1,901,324,9,88.25,s0,1\n"
                         "51,v2,902,325,8,99.5,s1,2\n52,u1,903,326,7,91.25,s9,3\n"
                         "53,v3,71,327,6,93,s2,99\n");
    put_text("sample_submission.csv", "id,label\n50,0\n51,0\n52,0\n53,0\n");
    stk_dataset_options o = options();
    o.columns = true;
    o.group_column = "user";
    stk_dataset *d = open_with(&o);
    REQUIRE(d != NULL);
    CHECK_INT(d->features.code.count, 4);
    CHECK_STR(d->features.names, "days, dose, side ...");
    stk_dataset_free(d);
    o.group_column = "side";
    d = open_with(&o);
    REQUIRE(d != NULL);
    CHECK_STR(d->features.names, "days, dose, other");
    stk_dataset_free(d);
    open_without_memory(&o);
}

/* Half of the angles are not known ("na"); `kind` says nothing where it is the same in all test
 * rows, which need to be some. */
static void gaps_are_learned_and_what_never_changes_is_not(void) {
    char csv[1000] = "id,angle,kind,label\n";
    char test[400] = "id,angle,kind\n";
    char *at = csv + strlen(csv);
    fresh();
    put_pictures("train", ".jpg", 0, 20);
    put_pictures("test", ".jpg", 50, 8);
    for (int i = 0; i < 20; i++) {
        char angle[16];
        snprintf(angle, sizeof angle, "%d.5", 30 + i * 7 % 20);
        at += snprintf(at, 40, "%d,%s,%s,%d\n", i, i % 2 == 0 ? "na" : angle,
                       i % 3 == 0 ? "x" : "y", i % 3);
    }
    at = test + strlen(test);
    for (int i = 50; i < 58; i++) {
        at += snprintf(at, 40, "%d,3%d.5,x\n", i, i % 10);
    }
    put_text("train.csv", csv);
    put_text("test.csv", test);
    put_text("sample_submission.csv", "id,label\n50,0\n51,0\n52,0\n53,0\n54,0\n55,0\n56,0\n57,0\n");
    stk_dataset_options o = options();
    o.columns = true;
    stk_dataset *d = open_with(&o);
    REQUIRE(d != NULL);
    CHECK_STR(d->features.names, "angle");
    CHECK_INT(d->features.count, 2);
    CHECK_NEAR(stk_features_row(&d->features, 0)[1], 1, 0);
    CHECK_NEAR(stk_features_row(&d->features, 1)[1], 0, 0);
    stk_dataset_free(d);
}

/* A permutation of the rows' numbers is a count, too; a few rows that grow by chance are none. */
static void counts_of_rows_are_no_features(void) {
    char csv[1000] = "id,place,label\n";
    char *at = csv + strlen(csv);
    fresh();
    put_pictures("train", ".jpg", 0, 20);
    put_pictures("test", ".jpg", 50, 2);
    for (int i = 0; i < 20; i++) {
        at += snprintf(at, 40, "%d,%d,%d\n", i, 4 + i * 7 % 20, i % 3);
    }
    put_text("train.csv", csv);
    put_text("test.csv", "id,place\n50,5\n51,6\n");
    put_text("sample_submission.csv", "id,label\n50,0\n51,0\n");
    stk_dataset_options o = options();
    o.columns = true;
    stk_dataset *d = open_with(&o);
    REQUIRE(d != NULL);
    CHECK_INT(d->features.code.count, 0);
    stk_dataset_free(d);
    fresh();
    put_pictures("train", ".jpg", 0, 7);
    put_pictures("test", ".jpg", 50, 2);
    put_rows("train.csv", "id,place,label", "%d,%d,%m", 7);
    put_text("test.csv", "id,place\n50,5\n51,6\n");
    put_text("sample_submission.csv", "id,label\n50,0\n51,0\n");
    d = open_with(&o);
    REQUIRE(d != NULL);
    CHECK_INT(d->features.code.count, 1);
    stk_dataset_free(d);
}

/* Pictures called by a format with their number. */
static void put_numbered(const char *format, int first, int count) {
    for (int i = first; i < first + count; i++) {
        char name[160];
        snprintf(name, sizeof name, format, i);
        put(name);
    }
}

static void numbers_find_padded_names(void) {
    fresh();
    put_numbered("train/%05d.jpg", 0, 20);
    put_numbered("test/test-%06d.jpg", 0, 3);
    put_rows("train.csv", "row,label", "%d,%m", 20);
    put_text("sample_submission.csv", "row,label\n0,0\n2,0\n1,0\n");
    stk_dataset *d = open_plain();
    REQUIRE(d != NULL && d->train.count == 20 && d->test.count == 3);
    CHECK_STR(d->train.items[1].path, "train/00001.jpg");
    CHECK_STR(d->train.items[1].id, "1");
    CHECK_STR(d->test.items[1].path, "test/test-000002.jpg");
    stk_dataset_free(d);
    /* In class folders the rows of the sample are found so, too. */
    fresh();
    put_numbered("train/cat/%03d.jpg", 0, 4);
    put_numbered("train/dog/%03d.jpg", 4, 4);
    put_numbered("test/%03d.jpg", 0, 3);
    put_text("sample_submission.csv", "id,label\n2,cat\n0,cat\n1,cat\n");
    d = open_plain();
    REQUIRE(d != NULL && d->test.count == 3);
    CHECK_STR(d->test.items[0].path, "test/002.jpg");
    CHECK_CONTAINS(decisions, "by their numbers: no picture is called 2, and only test/002.jpg");
    stk_dataset_free(d);
}

/* Training and test pictures in one folder have the same numbers, and their names tell them apart.
 */
static void numbers_of_two_sets(void) {
    fresh();
    put_numbered("images/train-%04d.png", 1, 12);
    put_numbered("images/test-%04d.png", 1, 4);
    put_text("labels.csv", "n,label\n1,a\n2,b\n3,a\n4,b\n5,a\n6,b\n7,a\n8,b\n9,a\n10,b\n11,a\n12,"
                           "b\n");
    put_text("sample_submission.csv", "n,label\n4,a\n3,a\n2,a\n1,a\n");
    stk_dataset *d = open_plain();
    REQUIRE(d != NULL && d->train.count == 12 && d->test.count == 4);
    CHECK_STR(d->train.items[0].path, "images/train-0001.png");
    CHECK_STR(d->test.items[0].path, "images/test-0004.png");
    stk_dataset_free(d);
}

/* Names come first; a number that several names end with, or few ids mean, finds nothing. */
static void numbers_that_are_unclear(void) {
    fresh();
    put_numbered("train/%02d.jpg", 5, 10); /* 05 to 14: most ids are names */
    put_numbered("train/x%d.jpg", 5, 10);
    put_text("train.csv", "id,label\n10,a\n11,b\n12,a\n13,b\n14,a\n7,b\n");
    stk_dataset_options o = options();
    o.mismatch = STK_MISMATCH_SKIP;
    stk_dataset *d = open_with(&o);
    REQUIRE(d != NULL);
    CHECK_INT(d->train.count, 5);
    CHECK_CONTAINS(warnings, "left out 1 row of train.csv without a picture: 7");
    stk_dataset_free(d);
    fresh(); /* a table of classes is none of pictures, though its numbers end names */
    put_numbered("cat/%03d.jpg", 0, 20);
    put_numbered("dog/%03d.jpg", 20, 20);
    put_text("names.csv", "number,name\n0,cat\n1,dog\n");
    d = open_plain();
    REQUIRE(d != NULL);
    CHECK_INT(d->layout, STK_LAYOUT_FOLDERS);
    CHECK_INT(d->train.count, 40);
    stk_dataset_free(d);
    fresh(); /* labels are numbers, too, but not one for each picture */
    put_numbered("train/p%03d.jpg", 0, 12);
    put_rows("train.csv", "code,label", "q%d,%m", 12);
    fails_with(STK_ERR_DATA, "is named in column");
}

/* Most names lead to pictures, so a column that counts the rows is not taken for numbers of
 * pictures: all labels would be those of other pictures. */
static void counted_rows_are_no_pictures(void) {
    stk_str csv = {0};
    fresh();
    put_numbered("images/frame_%05d.jpg", 0, 210);
    stk_str_append(&csv, "index,file,label\n");
    for (int i = 0; i < 200; i++) {
        stk_str_appendf(&csv, "%d,%s_%05d.jpg,%d\n", i, i % 13 == 0 ? "still" : "frame",
                        i * 77 % 200, i % 3);
    }
    put_text("train.csv", stk_str_text(&csv));
    stk_str_free(&csv);
    put_rows("sample_submission.csv", "file,label", "frame_0020%d.jpg,0", 10);
    fails_with(STK_ERR_DATA, "train.csv has labels for 16 pictures that are not in");
    stk_dataset_options o = options();
    o.mismatch = STK_MISMATCH_SKIP;
    stk_dataset *d = open_with(&o);
    REQUIRE(d != NULL && d->train.count == 184);
    CHECK_STR(d->train.items[0].id, "frame_00016.jpg");
    CHECK_STR(d->train.items[0].path, "images/frame_00016.jpg");
    stk_dataset_free(d);
}

/* The same where ids are folders: each has the pictures of a row. */
static void counted_rows_are_no_folders(void) {
    fresh();
    stk_str csv = {0};
    stk_str_append(&csv, "index,who,label\n");
    for (int i = 0; i < 20; i++) {
        char name[80];
        for (int k = 0; k < 2; k++) {
            snprintf(name, sizeof name, "train/w%d/%04d.jpg", i * 7 % 20, 2 * i + k);
            put(name);
        }
        stk_str_appendf(&csv, "%d,%s%d,%d\n", i, i % 5 == 0 ? "W" : "w", i * 7 % 20, i % 3);
    }
    put_text("train.csv", stk_str_text(&csv));
    stk_str_free(&csv);
    fails_with(STK_ERR_DATA, "train.csv has labels for 4 pictures that are not in");
}

static void lack_of_memory_with_numbers(void) {
    fresh();
    put_numbered("train/%03d.jpg", 0, 12);
    put_numbered("test/%03d.jpg", 0, 2);
    put_rows("train.csv", "id,label", "%d,%m", 12);
    put_text("sample_submission.csv", "id,label\n0,0\n1,0\n");
    stk_dataset_options o = options();
    open_without_memory(&o);
}

static const check_test tests[] = {
    TEST(the_cheaper_copy_is_used),
    TEST(rows_of_several_pictures),
    TEST(training_rows_of_several_pictures),
    TEST(training_rows_have_the_id),
    TEST(a_column_without_a_name_is_kept),
    TEST(groups_are_found),
    TEST(further_columns_are_features),
    TEST(the_test_table_is_kept_where_it_is_wanted),
    TEST(classes_in_names),
    TEST(classes_in_names_one_folder_deeper),
    TEST(class_folders_one_folder_deeper),
    TEST(a_description_beside_class_folders),
    TEST(versions_of_pictures),
    TEST(names_with_blanks),
    TEST(other_tables_are_left_alone),
    TEST(ids_are_no_features),
    TEST(gaps_are_learned_and_what_never_changes_is_not),
    TEST(counts_of_rows_are_no_features),
    TEST(numbers_find_padded_names),
    TEST(numbers_of_two_sets),
    TEST(numbers_that_are_unclear),
    TEST(counted_rows_are_no_pictures),
    TEST(counted_rows_are_no_folders),
    TEST(lack_of_memory_with_numbers),
};

CHECK_MAIN(tests)
