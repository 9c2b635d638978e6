/*
 * test_dataset_tables.c - data sets whose tables are JSON, BSON or have other separators, and whose
 * pictures lie in such files: what is listed of them.
 */
#include "test_dataset.h"

#include <unistd.h>

#include "base/str.h"
#include "storage/tar/tar_write.h"
#include "bson_files.h"

static stk_str told; /* warnings and decisions of the last opening */

static void tell_decision(void *user, const stk_event_decision *event) {
    (void)user;
    stk_str_appendf(&told, "%s: %s\n", event->what, event->why);
}

static void tell_warning(void *user, const char *text) {
    (void)user;
    stk_str_appendf(&told, "warning: %s\n", text);
}

static const stk_observer teller = {
    .size = sizeof teller, .decision = tell_decision, .warning = tell_warning};
static const stk_events tellers = {.observers = {&teller}, .count = 1};

/* A fresh folder, and one for what outlives a run. */
static void begin(void) {
    fresh();
    char *kept = stk_path_join(root, ".kept");
    setenv("XDG_CACHE_HOME", kept, 1);
    stk_mem_free(kept);
}

static stk_dataset *open_told(void) {
    stk_dataset_options o = options();
    stk_dataset *d = NULL;
    stk_str_clear(&told);
    stk_error_clear(&error);
    if (stk_dataset_open(&d, &o, NULL, &tellers, &error) != STK_OK) {
        CHECK_FAIL("cannot open: %s", error.message);
    }
    return d;
}

static const char *told_text(void) {
    return stk_str_text(&told);
}

/* "ID PATH CLASS; ..." of the training samples. */
static const char *train_of(const stk_dataset *d) {
    static char text[2000];
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < d->train.count && used < sizeof text; i++) {
        const stk_sample *s = &d->train.items[i];
        used += (size_t)snprintf(text + used, sizeof text - used, "%s %s %s; ", s->id, s->path,
                                 s->label >= 0 ? d->classes[s->label] : "-");
    }
    return text;
}

/* "ID PATH; ..." of the pictures of the rows. */
static const char *test_of(const stk_dataset *d) {
    static char text[2000];
    size_t used = 0;
    text[0] = '\0';
    for (size_t r = 0; r < d->row_count; r++) {
        const stk_row *row = &d->rows[r];
        for (size_t i = row->first; i < row->first + row->count && used < sizeof text; i++) {
            const char *path = d->test.items[i].path;
            used += (size_t)snprintf(text + used, sizeof text - used, "%s %s; ", row->id,
                                     path != NULL ? path : "-");
        }
    }
    return text;
}

/* ---- COCO ---- */

static const char two_categories[] =
    "\"categories\":[{\"id\":105,\"name\":\"a\"},{\"id\":230,\"name\":\"b\"}]";

/* {"images":[...],"annotations":[...],"categories":[...]} */
static void put_coco(const char *name, const char *images, const char *annotations) {
    char *text =
        stk_str_format("{\"info\":{\"year\":2020},\"images\":[%s],\"annotations\":[%s],%s}", images,
                       annotations, two_categories);
    put_text(name, text);
    stk_mem_free(text);
}

static void coco_in_the_folders_of_the_sets(void) {
    static const char *const tops[] = {"nybg2020/", ""};
    for (int i = 0; i < 2; i++) {
        char name[128];
        begin();
        snprintf(name, sizeof name, "%strain/metadata.json", tops[i]);
        put_coco(name,
                 "{\"id\":71,\"file_name\":\"images/001/05/71.jpg\"},"
                 "{\"id\":9,\"file_name\":\"images/002/30/9.jpg\"},"
                 "{\"id\":72,\"file_name\":\"images/001/05/72.jpg\"},"
                 "{\"id\":8,\"file_name\":\"images/002/30/8.jpg\"}",
                 "{\"id\":1,\"image_id\":9,\"category_id\":230},"
                 "{\"id\":2,\"image_id\":71,\"category_id\":105},"
                 "{\"id\":3,\"image_id\":8,\"category_id\":230},"
                 "{\"id\":4,\"image_id\":72,\"category_id\":105}");
        snprintf(name, sizeof name, "%stest/metadata.json", tops[i]);
        put_text(name, "{\"images\":[{\"id\":0,\"file_name\":\"images/000/0.jpg\"},"
                       "{\"id\":1,\"file_name\":\"images/000/1.jpg\"}],\"info\":{}}");
        static const char *const pictures[] = {
            "train/images/001/05/71.jpg", "train/images/001/05/72.jpg", "train/images/002/30/8.jpg",
            "train/images/002/30/9.jpg",  "test/images/000/0.jpg",      "test/images/000/1.jpg"};
        for (size_t k = 0; k < STK_COUNT(pictures); k++) {
            snprintf(name, sizeof name, "%s%s", tops[i], pictures[k]);
            put(name);
        }
        put_text("sample_submission.csv", "Id,Predicted\n1,0\n0,0\n");
        stk_dataset *d = open_told();
        REQUIRE(d != NULL);
        CHECK_INT(d->class_count, 2);
        CHECK_STR(d->label_name, "category_id");
        REQUIRE(d->train.count == 4);
        CHECK_CONTAINS(train_of(d), "train/images/001/05/71.jpg 105; ");
        CHECK_CONTAINS(train_of(d), "train/images/002/30/8.jpg 230; ");
        CHECK_CONTAINS(test_of(d), "1 ");
        CHECK_CONTAINS(test_of(d), "test/images/000/1.jpg; 0 ");
        CHECK_STR(told_text(), "");
        stk_dataset_free(d);
    }
}

static void a_bare_list_leads_from_ids_to_pictures(void) {
    begin();
    put_coco("train_metadata.json",
             "{\"image_id\":\"00105__001\",\"file_name\":\"001/05/00105__001.jpg\"},"
             "{\"image_id\":\"00105__002\",\"file_name\":\"001/05/00105__002.jpg\"},"
             "{\"image_id\":\"00230__001\",\"file_name\":\"002/30/00230__001.jpg\"},"
             "{\"image_id\":\"00230__002\",\"file_name\":\"002/30/00230__002.jpg\"}",
             "{\"image_id\":\"00230__001\",\"genus_id\":1,\"category_id\":230},"
             "{\"image_id\":\"00105__001\",\"genus_id\":1,\"category_id\":105},"
             "{\"image_id\":\"00230__002\",\"genus_id\":1,\"category_id\":230},"
             "{\"image_id\":\"00105__002\",\"genus_id\":1,\"category_id\":105}");
    put_text("test_metadata.json", "[{\"file_name\":\"000/test-000000.jpg\",\"image_id\":\"0\"},"
                                   "{\"file_name\":\"000/test-000001.jpg\",\"image_id\":\"1\"}]");
    put("train_images/001/05/00105__001.jpg");
    put("train_images/001/05/00105__002.jpg");
    put("train_images/002/30/00230__001.jpg");
    put("train_images/002/30/00230__002.jpg");
    put("test_images/000/test-000000.jpg");
    put("test_images/000/test-000001.jpg");
    put_text("sample_submission.csv", "Id,Predicted\n0,42\n1,42\n");
    stk_dataset *d = open_told();
    REQUIRE(d != NULL);
    CHECK_INT(d->class_count, 2);
    CHECK_STR(d->label_name, "category_id");
    CHECK_CONTAINS(train_of(d), "train_images/001/05/00105__002.jpg 105; ");
    CHECK_STR(test_of(d), "0 test_images/000/test-000000.jpg; 1 test_images/000/test-000001.jpg; ");
    stk_dataset_free(d);
}

static void put_tar(const char *name, const char *const *members) {
    char path[600];
    stk_tar_writer *tar = NULL;
    snprintf(path, sizeof path, "%s/%s", root, name);
    REQUIRE_OK(stk_tar_writer_open(&tar, path, &error), &error);
    for (; *members != NULL; members++) {
        CHECK_INT(stk_tar_writer_add(tar, *members, "x", 1, NULL, &error), STK_OK);
    }
    CHECK_INT(stk_tar_writer_commit(tar, NULL, &error), STK_OK);
}

static void file_names_begin_with_the_archive(void) {
    begin();
    put_tar("train_val2019.tar.gz",
            (const char *const[]){"Plants/105/ab.jpg", "Plants/105/cd.jpg", "Birds/230/ef.jpg",
                                  "Birds/230/01.jpg", NULL});
    put_tar("test2019.tar.gz", (const char *const[]){"77.jpg", "88.jpg", NULL});
    put_coco("train2019.json",
             "{\"id\":5,\"file_name\":\"train_val2019/Plants/105/ab.jpg\"},"
             "{\"id\":6,\"file_name\":\"train_val2019/Plants/105/cd.jpg\"},"
             "{\"id\":77,\"file_name\":\"train_val2019/Birds/230/ef.jpg\"},"
             "{\"id\":88,\"file_name\":\"train_val2019/Birds/230/01.jpg\"}",
             "{\"id\":5,\"image_id\":5,\"category_id\":105},"
             "{\"id\":6,\"image_id\":6,\"category_id\":105},"
             "{\"id\":77,\"image_id\":77,\"category_id\":230},"
             "{\"id\":88,\"image_id\":88,\"category_id\":230}");
    put_coco("val2019.json", "{\"id\":9,\"file_name\":\"train_val2019/Plants/105/no.jpg\"}",
             "{\"id\":9,\"image_id\":9,\"category_id\":105}");
    put_text("test2019.json", "{\"images\":[{\"id\":1000,\"file_name\":\"test2019/88.jpg\"},"
                              "{\"id\":1001,\"file_name\":\"test2019/77.jpg\"}]}");
    put_text("kaggle_sample_submission.csv", "id,predicted\n1001,654\n1000,654\n");
    stk_dataset *d = open_told();
    REQUIRE(d != NULL);
    REQUIRE(d->train.count == 4);
    CHECK_CONTAINS(train_of(d), "train_val2019/Birds/230/ef.jpg 230; ");
    CHECK_CONTAINS(train_of(d), "train_val2019/Plants/105/ab.jpg 105; ");
    CHECK_STR(test_of(d), "1001 test2019/77.jpg; 1000 test2019/88.jpg; ");
    stk_dataset_free(d);
}

static const char detections[] =
    "{\"images\":[{\"id\":\"a\",\"max_detection_conf\":0.98,\"detections\":"
    "[{\"category\":\"1\",\"bbox\":[0.1,0.2,0.3,0.4],\"conf\":0.98}]},"
    "{\"id\":\"b\",\"max_detection_conf\":0.5,\"detections\":[]},"
    "{\"id\":\"c\",\"max_detection_conf\":0.2,\"detections\":[]},"
    "{\"id\":\"d\",\"max_detection_conf\":0.1,\"detections\":[]}],"
    "\"detection_categories\":{\"1\":\"animal\"},\"info\":{\"detector\":\"x\"}}";

static void put_wild(void) {
    for (char c = 'a'; c <= 'd'; c++) {
        char name[32];
        snprintf(name, sizeof name, "train/%c.jpg", c);
        put(name);
    }
    put("test/e.jpg");
    put("test/f.jpg");
    put_text("wild_megadetector_results.json", detections);
    put_text("sample_submission.csv", "Id,Category\ne,3\nf,4\n");
}

static void what_a_detector_found_is_no_label(void) {
    begin();
    put_wild();
    put_coco("wild_train_annotations.json",
             "{\"id\":\"a\",\"file_name\":\"a.jpg\",\"location\":3},"
             "{\"id\":\"b\",\"file_name\":\"b.jpg\",\"location\":3},"
             "{\"id\":\"c\",\"file_name\":\"c.jpg\",\"location\":4},"
             "{\"id\":\"d\",\"file_name\":\"d.jpg\",\"location\":4}",
             "{\"id\":\"1\",\"image_id\":\"a\",\"category_id\":0,\"count\":1},"
             "{\"id\":\"2\",\"image_id\":\"b\",\"category_id\":105,\"count\":1},"
             "{\"id\":\"3\",\"image_id\":\"c\",\"category_id\":0,\"count\":1},"
             "{\"id\":\"4\",\"image_id\":\"d\",\"category_id\":105,\"count\":1}");
    put_text("wild_test_information.json",
             "{\"images\":[{\"id\":\"e\",\"file_name\":\"e.jpg\",\"location\":8},"
             "{\"id\":\"f\",\"file_name\":\"f.jpg\",\"location\":9}],\"categories\":[{\"id\":0}]}");
    stk_dataset *d = open_told();
    REQUIRE(d != NULL);
    CHECK_STR(d->label_name, "category_id");
    CHECK_STR(d->classes[0], "0");
    CHECK_STR(test_of(d), "e test/e.jpg; f test/f.jpg; ");
    stk_dataset_free(d);

    begin(); /* alone, it is no table of labels */
    put_wild();
    stk_dataset_options o = options();
    expect_failure(&o, STK_ERR_DATA);
    CHECK(strstr(error.message, "max_detection_conf") == NULL);
}

static void boxes_are_left_out_and_strays_are_told(void) {
    begin();
    for (char c = 'a'; c <= 'd'; c++) {
        char name[32];
        snprintf(name, sizeof name, "images/train/%c.jpg", c);
        put(name);
    }
    put_coco("annotations/captions_train.json",
             "{\"id\":1,\"file_name\":\"a.jpg\"},{\"id\":2,\"file_name\":\"b.jpg\"},"
             "{\"id\":3,\"file_name\":\"c.jpg\"},{\"id\":4,\"file_name\":\"d.jpg\"}",
             "{\"id\":1,\"image_id\":1,\"caption\":\"words\"},"
             "{\"id\":2,\"image_id\":2,\"caption\":\"more words\"}");
    put_coco("annotations/instances_train.json",
             "{\"id\":1,\"file_name\":\"a.jpg\"},{\"id\":2,\"file_name\":\"b.jpg\"},"
             "{\"id\":3,\"file_name\":\"c.jpg\"},{\"id\":4,\"file_name\":\"d.jpg\"}",
             "{\"id\":1,\"image_id\":1,\"category_id\":105,\"bbox\":[1,2,3,4]},"
             "{\"id\":2,\"image_id\":2,\"category_id\":230,\"bbox\":[1,2,3,4]},"
             "{\"id\":3,\"image_id\":3,\"category_id\":105,\"bbox\":[1,2,3,4]},"
             "{\"id\":4,\"image_id\":4,\"category_id\":230,\"bbox\":[1,2,3,4]},"
             "{\"id\":5,\"image_id\":99,\"category_id\":230}");
    stk_dataset *d = open_told();
    REQUIRE(d != NULL);
    CHECK_INT(d->train.count, 4);
    CHECK_INT(d->class_count, 2);
    CHECK_CONTAINS(told_text(),
                   "warning: left out 1 annotation of annotations/instances_train.json");
    CHECK_CONTAINS(told_text(), "has boxes, too; Stoker trains which labels are in a picture");
    stk_dataset_free(d);
}

/* ---- plain JSON, tabs ---- */

static void tables_that_are_no_csv(void) {
    static const char *const tables[][2] = {
        {"train.tsv", "file\tspecies\na\tx\nb\ty\nc\tx\nd\ty\n"},
        {"labels.csv", "file;species\na;x\nb;y\nc;x\nd;y\n"},
        {"train.json", "[{\"file\":\"a\",\"species\":\"x\"},{\"file\":\"b\",\"species\":\"y\"},"
                       "{\"file\":\"c\",\"species\":\"x\"},{\"file\":\"d\",\"species\":\"y\"}]"},
        {"notes/train.jsonl", "{\"file\":\"a\",\"species\":\"x\"}\n{\"file\":\"b\",\"species\":"
                              "\"y\"}\n{\"file\":\"c\",\"species\":\"x\"}\n{\"file\":\"d\","
                              "\"species\":\"y\"}\n"}};
    for (size_t i = 0; i < STK_COUNT(tables); i++) {
        begin();
        for (char c = 'a'; c <= 'd'; c++) {
            char name[32];
            snprintf(name, sizeof name, "photos/%c.jpg", c);
            put(name);
        }
        put_text(tables[i][0], tables[i][1]);
        put_text("names.json", "{\"x\":{\"latin\":[1,2]},\"y\":7}");
        put_text("broken.json", "{\"images\":");
        stk_dataset *d = open_told();
        REQUIRE(d != NULL);
        CHECK_STR(d->label_name, "species");
        CHECK_STR(train_of(d), "a photos/a.jpg x; b photos/b.jpg y; c photos/c.jpg x; "
                               "d photos/d.jpg y; ");
        stk_dataset_free(d);
    }
    begin(); /* a usual name wants a table */
    put("photos/a.jpg");
    put_text("train.json", "{\"images\":");
    fails_with(STK_ERR_DATA, "train.json");
}

/* ---- pictures in JSON ---- */

/* Records with two bands of 4 x 4 numbers. */
static void put_bands(const char *name, const char *ids, bool labels) {
    stk_str text = {0};
    for (size_t i = 0; ids[i] != '\0'; i++) {
        stk_str_appendf(&text, "%s{\"id\":\"%c\"", i > 0 ? "," : "[", ids[i]);
        for (int band = 1; band <= 2; band++) {
            stk_str_appendf(&text, ",\"band_%d\":[", band);
            for (int k = 0; k < 16; k++) {
                stk_str_appendf(&text, "%s-%d.5", k > 0 ? "," : "", k + band);
            }
            stk_str_append(&text, "]");
        }
        stk_str_append(&text, i == 1 ? ",\"inc_angle\":\"na\"" : ",\"inc_angle\":39.5");
        if (labels) {
            stk_str_appendf(&text, ",\"is_iceberg\":%zu", i % 2);
        }
        stk_str_append(&text, "}");
    }
    stk_str_append(&text, "]");
    put_text(name, stk_str_text(&text));
    stk_str_free(&text);
}

static void pictures_in_json_are_made_once(void) {
    begin();
    put_bands("train.json", "abcd", true);
    put_bands("test.json", "yx", false);
    put_text("sample_submission.csv", "id,is_iceberg\nx,0.5\ny,0.5\n");
    for (int run = 0; run < 2; run++) {
        stk_bytes bytes = {0};
        stk_dataset *d = open_told();
        REQUIRE(d != NULL);
        CHECK_STR(train_of(d),
                  "a train/a.npy 0; b train/b.npy 1; c train/c.npy 0; d train/d.npy 1; ");
        CHECK_STR(test_of(d), "x test/x.npy; y test/y.npy; ");
        CHECK_STR(d->label_name, "is_iceberg");
        CHECK((strstr(told_text(), "making 4 pictures of train.json") != NULL) == (run == 0));
        REQUIRE_OK(stk_store_read(d->store, "train/b.npy", &bytes, &error), &error);
        CHECK(bytes.size > 6 && memcmp(bytes.data, "\x93NUMPY", 6) == 0);
        stk_bytes_free(&bytes);
        stk_dataset_free(d);
    }
    put_bands("train.json", "abcde", true); /* another file */
    stk_dataset *d = open_told();
    REQUIRE(d != NULL);
    CHECK_INT(d->train.count, 5);
    CHECK_CONTAINS(told_text(), "making 5 pictures of train.json");
    stk_dataset_free(d);
}

static void pictures_in_json_that_cannot_be_made(void) {
    begin();
    put_bands("train.json", "aba", true);
    fails_with(STK_ERR_DATA, "two records have the id \"a\"");
    begin(); /* beside files of pictures, lists of numbers are nothing special */
    put_bands("train.json", "abcd", true);
    for (char c = 'a'; c <= 'd'; c++) {
        char name[32];
        snprintf(name, sizeof name, "images/%c.jpg", c);
        put(name);
    }
    put("images/x.jpg");
    put_text("sample_submission.csv", "id,is_iceberg\nx,0.5\n");
    stk_dataset *d = open_told();
    REQUIRE(d != NULL);
    CHECK_CONTAINS(train_of(d), "a images/a.jpg 0; ");
    stk_dataset_free(d);
    begin();
    unsetenv("XDG_CACHE_HOME");
    char *home = stk_mem_strdup(getenv("HOME") != NULL ? getenv("HOME") : "");
    unsetenv("HOME");
    put_bands("train.json", "abcd", true);
    fails_with(STK_ERR_DATA, "name one with --cache");
    setenv("HOME", home, 1);
    stk_mem_free(home);
}

/* ---- BSON ---- */

/* Products 0, 1 ... with one to three pictures. */
static void put_bson(const char *name, int count, bool labels) {
    static const char *const three[] = {"pic", "ture", "s", NULL};
    char path[600];
    stk_str_clear(&bson_file);
    for (int i = 0; i < count; i++) {
        size_t at = open_document();
        put_int32("_id", i);
        if (labels) {
            put_int32("category_id", 1000000000 + i % 2);
        }
        put_pictures(three + i % 3);
        close_document(at);
    }
    snprintf(path, sizeof path, "%s/%s", root, name);
    CHECK_INT(stk_file_write(path, bson_file.text, bson_file.length, &error), STK_OK);
}

static void put_products(void) {
    put_bson("train.bson", 6, true);
    put_bson("train_example.bson", 2, true);
    put_bson("test.bson", 2, false);
    put_text("category_names.csv", "category_id,level\n1000000000,A\n1000000001,B\n");
    put_text("sample_submission.csv", "_id,category_id\n1,1000000000\n0,1000000000\n");
}

static void products_in_bson(void) {
    begin();
    put_products();
    for (int run = 0; run < 2; run++) {
        stk_bytes bytes = {0};
        stk_dataset *d = open_told();
        REQUIRE(d != NULL);
        CHECK_STR(d->label_name, "category_id");
        CHECK_INT(d->class_count, 2);
        CHECK_STR(d->classes[1], "1000000001");
        CHECK_INT(d->train.count, 12);
        CHECK_CONTAINS(train_of(d), "1 train/1/0.jpg 1000000001; 1 train/1/1.jpg 1000000001; ");
        CHECK_STR(test_of(d), "1 test/1/0.jpg; 1 test/1/1.jpg; 0 test/0/0.jpg; 0 test/0/1.jpg; "
                              "0 test/0/2.jpg; ");
        CHECK_CONTAINS(told_text(),
                       "train_example.bson is not used: it is the beginning of train.bson");
        CHECK((strstr(told_text(), "reading train.bson once") != NULL) == (run == 0));
        REQUIRE_OK(stk_store_read(d->store, "train/3/1.jpg", &bytes, &error), &error);
        CHECK(bytes.size == 4 && memcmp(bytes.data, "ture", 4) == 0);
        stk_bytes_free(&bytes);
        stk_dataset_free(d);
    }
    put_bson("train.bson", 8, true); /* another file */
    stk_dataset *d = open_told();
    REQUIRE(d != NULL);
    CHECK_INT(d->train.count, 17);
    stk_dataset_free(d);
}

static void a_damaged_bson_is_told(void) {
    begin();
    put_products();
    char *path = stk_path_join(root, "train.bson");
    CHECK_INT(truncate(path, 50), 0);
    stk_mem_free(path);
    stk_dataset_options o = options();
    stk_dataset *d = NULL;
    stk_str_clear(&told);
    CHECK(stk_dataset_open(&d, &o, NULL, &tellers, &error) != STK_OK);
    CHECK_CONTAINS(told_text(), "warning: train.bson is not used");
}

static void lack_of_memory_is_told(void) {
    stk_dataset_options o = options();
    begin();
    put_products();
    open_without_memory(&o);
    begin();
    put_bands("train.json", "abcd", true);
    put_bands("test.json", "yx", false);
    put_text("sample_submission.csv", "id,is_iceberg\nx,0.5\ny,0.5\n");
    open_without_memory(&o);
}

static const check_test tests[] = {
    TEST(coco_in_the_folders_of_the_sets),
    TEST(a_bare_list_leads_from_ids_to_pictures),
    TEST(file_names_begin_with_the_archive),
    TEST(what_a_detector_found_is_no_label),
    TEST(boxes_are_left_out_and_strays_are_told),
    TEST(tables_that_are_no_csv),
    TEST(pictures_in_json_are_made_once),
    TEST(pictures_in_json_that_cannot_be_made),
    TEST(products_in_bson),
    TEST(a_damaged_bson_is_told),
    TEST(lack_of_memory_is_told),
};

CHECK_MAIN(tests)
