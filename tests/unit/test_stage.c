/* test_stage.c - staging: what is written, what is read from it, and going on after an end. */
#include "check.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/files/file_lock.h"
#include "base/str.h"
#include "base/text/csv.h"
#include "image_files.h"
#include "scripted_place.h"
#include "small_pictures.h"
#include "stage/picture_queue.h"
#include "stage/stage.h"
#include "stage/stage_dest.h"

#define CLASSES 3
#define PICTURES 7

static char root[300];   /* of the data set */
static char near[320];   /* where it is staged to */
static char words[4096]; /* warnings, each with a line break behind it */
static stk_error error;

static void note_warning(void *user, const char *text) {
    (void)user;
    size_t length = strlen(words);
    snprintf(words + length, sizeof words - length, "%s\n", text);
}

static const stk_observer listener = {.warning = note_warning};
static const stk_events events = {.observers = {&listener}, .count = 1};

static void make_folder(const char *folder, const char *name) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    must(stk_dir_make(path, &error), &error);
}

static void fresh(void) {
    const char *folder = check_folder();
    snprintf(root, sizeof root, "%s/far", folder);
    snprintf(near, sizeof near, "%s/near", folder);
    words[0] = '\0';
    stk_error_clear(&error);
    make_folder(root, "");
}

/* Class folders with `pictures` of each class, a validation picture of each, and three to test. */
static void put_folders(int pictures) {
    static const char *const names[CLASSES] = {"ant", "bee", "cow"};
    char path[512];
    char name[64];
    for (int c = 0; c < CLASSES; c++) {
        for (int i = 0; i < pictures; i++) {
            snprintf(name, sizeof name, "train/%s", names[c]);
            make_folder(root, name);
            snprintf(path, sizeof path, "%s/train/%s/%d.jpg", root, names[c], i);
            write_picture(path, c, i);
        }
        snprintf(name, sizeof name, "val/%s", names[c]);
        make_folder(root, name);
        snprintf(path, sizeof path, "%s/val/%s/v.jpg", root, names[c]);
        write_picture(path, c, 100 + c);
        make_folder(root, "test");
        snprintf(path, sizeof path, "%s/test/t%d.jpg", root, c);
        write_picture(path, c, 200 + c);
    }
}

static stk_stage_options plain_options(void) {
    return (stk_stage_options){
        .shard_size = 5, .workers = STK_AUTO_INT, .max_bad = STK_AUTO_DOUBLE};
}

static stk_dataset_options data_at(const char *place) {
    return (stk_dataset_options){.data = place, .val_fraction = 0.2};
}

static stk_status stage_with(const stk_stage_options *options, const stk_dataset_options *data,
                             stk_staged *staged) {
    stk_stage_request request = {.dir = near, .options = options, .data = data, .events = &events};
    stk_error_clear(&error);
    return stk_stage_run(&request, staged, &error);
}

static stk_status stage_plainly(stk_staged *staged) {
    stk_stage_options options = plain_options();
    stk_dataset_options data = data_at(root);
    return stage_with(&options, &data, staged);
}

/* What stands in the folder, hidden names too, sorted; texts and contents into out. */
static void read_folder(const char *folder, stk_str *out) {
    stk_dir_list list = {0};
    must(stk_dir_read(folder, &list, &error), &error);
    for (size_t i = 0; i < list.count; i++) {
        char *path = stk_path_join(folder, list.entries[i].name);
        char *data = NULL;
        size_t size = 0;
        must(stk_file_read(path, 0, &data, &size, &error), &error);
        stk_str_appendf(out, "[%s %zu]", list.entries[i].name, size);
        stk_str_append_bytes(out, data, size);
        stk_mem_free(data);
        stk_mem_free(path);
    }
    stk_dir_list_free(&list);
}

static bool is_there(const char *name) {
    char path[PATH_MAX];
    struct stat info;
    snprintf(path, sizeof path, "%s/%s", near, name);
    return stat(path, &info) == 0;
}

static char *text_of(const char *name) {
    char path[PATH_MAX];
    char *data = NULL;
    size_t size = 0;
    snprintf(path, sizeof path, "%s/%s", near, name);
    if (stk_file_read(path, 0, &data, &size, NULL) != STK_OK) {
        CHECK_FAIL("there is no %s", name);
    }
    return data;
}

static void check_same_list(const stk_dataset *a, const stk_sample_list *x, const stk_dataset *b,
                            const stk_sample_list *y) {
    stk_bytes bytes[2] = {{0}, {0}};
    REQUIRE(x->count == y->count);
    for (size_t i = 0; i < x->count; i++) {
        CHECK_STR(y->items[i].id, x->items[i].id);
        CHECK_INT(y->items[i].label, x->items[i].label);
        REQUIRE((x->items[i].path == NULL) == (y->items[i].path == NULL));
        if (x->items[i].path != NULL) {
            REQUIRE_OK(stk_store_read(a->store, x->items[i].path, &bytes[0], &error), &error);
            REQUIRE_OK(stk_store_read(b->store, y->items[i].path, &bytes[1], &error), &error);
            CHECK_INT(bytes[0].size, bytes[1].size);
            CHECK(bytes[0].size == bytes[1].size &&
                  memcmp(bytes[0].data, bytes[1].data, bytes[0].size) == 0);
        }
    }
    stk_bytes_free(&bytes[0]);
    stk_bytes_free(&bytes[1]);
}

/* The staged data set is the one that the options give at the source, picture by picture. */
static void check_same(const stk_dataset_options *data) {
    stk_dataset *far = NULL;
    stk_dataset *copy = NULL;
    stk_dataset_options there = *data;
    there.data = near;
    REQUIRE_OK(stk_dataset_open(&far, data, NULL, NULL, &error), &error);
    REQUIRE_OK(stk_dataset_open(&copy, &there, NULL, &events, &error), &error);
    CHECK_INT(copy->layout, STK_LAYOUT_STAGED);
    REQUIRE(far->class_count == copy->class_count);
    for (int c = 0; c < far->class_count; c++) {
        CHECK_STR(copy->classes[c], far->classes[c]);
    }
    check_same_list(far, &far->train, copy, &copy->train);
    check_same_list(far, &far->val, copy, &copy->val);
    check_same_list(far, &far->test, copy, &copy->test);
    CHECK_STR(copy->id_name, far->id_name);
    CHECK_STR(copy->label_name, far->label_name);
    CHECK_INT(copy->template_columns, far->template_columns);
    CHECK_INT(copy->template_id, far->template_id);
    stk_dataset_free(far);
    stk_dataset_free(copy);
}

static void class_folders(void) {
    stk_staged staged;
    fresh();
    put_folders(PICTURES);
    REQUIRE_OK(stage_plainly(&staged), &error);
    CHECK(!staged.already);
    CHECK_INT(staged.classes, CLASSES);
    CHECK_INT(staged.train, CLASSES * PICTURES);
    CHECK_INT(staged.val, CLASSES);
    CHECK_INT(staged.test, 3);
    CHECK_INT(staged.shards, 5 + 1 + 1);
    CHECK_INT(staged.pictures, CLASSES * PICTURES + CLASSES + 3);
    CHECK_INT(staged.recoded, 0);
    CHECK_STR(words, "");
    CHECK(is_there("train-000004.tar") && !is_there("train-000005.tar"));
    CHECK(!is_there("staging.json") && !is_there(".train-000000.record"));
    CHECK(!is_there("bad_images.csv") && !is_there("sample_submission.csv"));
    char *classes = text_of("classes.txt");
    CHECK_STR(classes, "ant\nbee\ncow\n");
    stk_mem_free(classes);
    stk_dataset_options data = data_at(root);
    check_same(&data);
    char *samples = text_of("samples.csv");
    CHECK(strncmp(samples,
                  "split,class,id,path,member\n"
                  "train,ant,train/ant/0.jpg,train/ant/0.jpg,000000000.jpg\n",
                  80) == 0);
    CHECK_CONTAINS(samples, "\nval,bee,val/bee/v.jpg,val/bee/v.jpg,000000001.jpg\n");
    CHECK_CONTAINS(samples, "\ntest,,t2,test/t2.jpg,000000002.jpg\n");
    stk_mem_free(samples);
}

static void put_kaggle(void) {
    char path[512];
    stk_str table = {0};
    make_folder(root, "train");
    make_folder(root, "test");
    stk_str_append(&table, "image,breed\n");
    for (int i = 0; i < 12; i++) {
        snprintf(path, sizeof path, "%s/train/p%02d.jpg", root, 11 - i);
        write_picture(path, i % CLASSES, i);
        stk_str_appendf(&table, "p%02d,\"a, %d\"\n", 11 - i, i % CLASSES);
    }
    write_text(root, "train.csv", stk_str_text(&table));
    write_text(root, "sampleSubmission.csv", "breed,image\nx,t2\nx,gone\nx,t1\n");
    stk_str_free(&table);
    for (int i = 1; i <= 2; i++) {
        snprintf(path, sizeof path, "%s/test/t%d.jpg", root, i);
        write_picture(path, 0, 50 + i);
    }
}

static void kaggle_tables(void) {
    stk_staged staged;
    fresh();
    put_kaggle();
    stk_stage_options options = plain_options();
    stk_dataset_options data = data_at(root);
    data.val_per_class = 1;
    REQUIRE_OK(stage_with(&options, &data, &staged), &error);
    CHECK_INT(staged.train, 9);
    CHECK_INT(staged.val, 3);
    CHECK_INT(staged.test, 2);
    check_same(&data);
    words[0] = '\0';
    stk_dataset_options plain = data_at(near);
    stk_dataset *copy = NULL;
    REQUIRE_OK(stk_dataset_open(&copy, &plain, NULL, &events, &error), &error);
    CHECK_INT(copy->val.count, 3); /* the split survives without the flag */
    CHECK_STR(copy->id_name, "image");
    CHECK_STR(copy->label_name, "breed");
    REQUIRE(copy->test.count == 3);
    CHECK_STR(copy->test.items[0].id, "t2");
    CHECK_STR(copy->test.items[1].id, "gone");
    CHECK(copy->test.items[1].path == NULL);
    CHECK_CONTAINS(words, "1 of 3 test pictures were not there");
    stk_dataset_free(copy);
    char *template = text_of("sample_submission.csv");
    CHECK_STR(template, "breed,image\nx,t2\nx,gone\nx,t1\n");
    stk_mem_free(template);
    /* For predicting there are the rows, and no classes. */
    REQUIRE_OK(stk_dataset_open_images(&copy, &plain, NULL, &events, &error), &error);
    CHECK_INT(copy->class_count, 0);
    REQUIRE(copy->test.count == 3);
    CHECK_STR(copy->test.items[2].id, "t1");
    stk_dataset_free(copy);
}

static void a_subset_and_its_flags_again(void) {
    stk_staged staged;
    fresh();
    put_folders(PICTURES);
    stk_stage_options options = plain_options();
    stk_dataset_options data = data_at(root);
    data.classes = 2;
    data.per_class = 4;
    data.subset_seed = 9;
    REQUIRE_OK(stage_with(&options, &data, &staged), &error);
    CHECK_INT(staged.classes, 2);
    CHECK_INT(staged.train, 8);
    CHECK_INT(staged.val, 2);
    CHECK_INT(staged.test, 3);
    check_same(&data);
    CHECK_STR(words, "");
}

static void pictures_without_labels(void) {
    char path[512];
    stk_staged staged;
    fresh();
    for (int i = 0; i < 4; i++) {
        snprintf(path, sizeof path, "%s/x%d.jpg", root, i);
        write_picture(path, 0, i);
    }
    REQUIRE_OK(stage_plainly(&staged), &error);
    CHECK_INT(staged.test, 4);
    CHECK_INT(staged.classes, 0);
    stk_dataset_options there = data_at(near);
    stk_dataset *copy = NULL;
    REQUIRE_OK(stk_dataset_open_any(&copy, &there, NULL, NULL, &error), &error);
    REQUIRE(copy->test.count == 4);
    CHECK_STR(copy->test.items[3].id, "x3");
    stk_dataset_free(copy);
    CHECK_INT(stk_dataset_open(&copy, &there, NULL, NULL, &error), STK_ERR_DATA);
    CHECK_CONTAINS(error.message, "without labels");
}

static void staged_from_staged(void) {
    char first[320];
    stk_staged staged;
    fresh();
    put_folders(PICTURES);
    REQUIRE_OK(stage_plainly(&staged), &error);
    snprintf(first, sizeof first, "%s", near);
    snprintf(near, sizeof near, "%.200s2", first);
    stk_stage_options options = plain_options();
    options.shard_size = 100;
    stk_dataset_options data = data_at(first);
    REQUIRE_OK(stage_with(&options, &data, &staged), &error);
    CHECK_INT(staged.shards, 3);
    data = data_at(root);
    check_same(&data);
}

/* ---- smaller pictures ---- */

static void write_large(const char *path, int width, int height, bool as_png) {
    stk_image image = {0};
    uint8_t *bytes = NULL;
    size_t size = 0;
    must(stk_image_new(&image, width, height, &error), &error);
    for (int i = 0; i < width * height * 3; i++) {
        image.pixels[i] = (uint8_t)((i / 3) % width);
    }
    must(as_png ? stk_image_encode_png(&image, &bytes, &size, &error)
                : stk_image_encode_jpeg(&image, 95, &bytes, &size, &error),
         &error);
    must(stk_file_write(path, bytes, size, &error), &error);
    stk_image_free(&image);
    stk_mem_free(bytes);
}

/* Size and kind of training picture i of the staged data set. */
static void look_at(const stk_dataset *copy, size_t i, int *width, int *height, size_t *size,
                    const char **extension) {
    stk_bytes bytes = {0};
    REQUIRE_OK(stk_store_read(copy->store, copy->train.items[i].path, &bytes, &error), &error);
    REQUIRE_OK(stk_image_size(bytes.data, bytes.size, width, height, &error), &error);
    *extension = stk_image_extension(bytes.data, bytes.size);
    *size = bytes.size;
    stk_bytes_free(&bytes);
}

static void put_large(void) {
    char path[512];
    make_folder(root, "a");
    make_folder(root, "b");
    static const struct {
        const char *name;
        int width, height;
        bool as_png;
    } files[] = {{"a/0.jpg", 120, 80, false}, /* larger */
                 {"a/1.png", 40, 30, true},   /* small, and no JPEG */
                 {"b/0.jpg", 50, 40, false},  /* small enough */
                 {"b/1.jpg", 30, 100, false}};
    for (size_t i = 0; i < 4; i++) {
        snprintf(path, sizeof path, "%s/%s", root, files[i].name);
        write_large(path, files[i].width, files[i].height, files[i].as_png);
    }
}

static void pictures_become_smaller(void) {
    static const int expected[4][2] = {{50, 33}, {40, 30}, {50, 40}, {15, 50}};
    for (int with_quality = 0; with_quality < 2; with_quality++) {
        stk_staged staged;
        fresh();
        put_large();
        stk_stage_options options = plain_options();
        stk_dataset_options data = data_at(root);
        options.max_side = 50;
        options.quality = with_quality ? 60 : 0;
        REQUIRE_OK(stage_with(&options, &data, &staged), &error);
        CHECK_INT(staged.recoded, with_quality ? 4 : 3);
        stk_dataset_options there = data_at(near);
        stk_dataset *copy = NULL;
        REQUIRE_OK(stk_dataset_open(&copy, &there, NULL, NULL, &error), &error);
        REQUIRE(copy->train.count == 4);
        for (size_t i = 0; i < 4; i++) {
            int width = 0;
            int height = 0;
            size_t size = 0;
            const char *extension = NULL;
            look_at(copy, i, &width, &height, &size, &extension);
            CHECK_INT(width, expected[i][0]);
            CHECK_INT(height, expected[i][1]);
            CHECK_STR(extension, "jpg");
            CHECK(stk_str_ends_with_nocase(copy->train.items[i].path, ".jpg"));
        }
        stk_dataset_free(copy);
    }
}

static void kinds_keep_their_names(void) {
    char path[512];
    stk_staged staged;
    fresh();
    put_large();
    /* The name lies: what counts is what the bytes are, or the name when they are nothing. */
    snprintf(path, sizeof path, "%s/b/2.JPG", root);
    write_large(path, 9, 9, true);
    write_text(root, "b/3.webp", "no picture");
    write_text(root, "b/4.PNG", "");
    REQUIRE_OK(stage_plainly(&staged), &error);
    stk_dataset_options data = data_at(root);
    check_same(&data);
    char *samples = text_of("samples.csv");
    CHECK_CONTAINS(samples, "a/1.png,000000001.png\n");
    CHECK_CONTAINS(samples, "b/2.JPG,000000004.png\n");
    CHECK_CONTAINS(samples, "b/3.webp,000000005.webp\n");
    CHECK_CONTAINS(samples, "b/4.PNG,000000006.png\n");
    stk_mem_free(samples);
}

/* ---- bad pictures ---- */

static void bad_pictures_are_left_out(void) {
    stk_staged staged;
    fresh();
    put_folders(PICTURES);
    write_text(root, "train/bee/3.jpg", "no picture, \"really\"");
    write_text(root, "test/t1.jpg", "");
    stk_stage_options options = plain_options();
    stk_dataset_options data = data_at(root);
    options.quality = 80;
    REQUIRE_OK(stage_with(&options, &data, &staged), &error);
    CHECK_INT(staged.bad, 2);
    CHECK_INT(staged.train, CLASSES * PICTURES - 1);
    CHECK_INT(staged.test, 2);
    char *bad = text_of("bad_images.csv");
    CHECK_CONTAINS(bad, "path,split,reason\ntrain/bee/3.jpg,train,");
    CHECK_CONTAINS(bad, "\ntest/t1.jpg,test,the file is empty\n");
    stk_mem_free(bad);
    stk_dataset_options there = data_at(near);
    stk_dataset *copy = NULL;
    REQUIRE_OK(stk_dataset_open(&copy, &there, NULL, NULL, &error), &error);
    CHECK_INT(copy->train.count, CLASSES * PICTURES - 1);
    REQUIRE(copy->test.count == 3); /* the row needs an answer all the same */
    CHECK_STR(copy->test.items[1].id, "t1");
    CHECK(copy->test.items[1].path == NULL);
    stk_dataset_free(copy);
}

static void too_many_bad_pictures_are_an_error(void) {
    stk_staged staged;
    fresh();
    put_folders(PICTURES);
    write_text(root, "train/bee/3.jpg", "no picture");
    stk_stage_options options = plain_options();
    stk_dataset_options data = data_at(root);
    options.quality = 80;
    options.max_bad = 1;
    CHECK_INT(stage_with(&options, &data, &staged), STK_ERR_DATA);
    CHECK_CONTAINS(error.message, "--max-bad");
    CHECK_CONTAINS(error.message, "train/bee/3.jpg");
    CHECK_CONTAINS(error.message, "2 of 7 shards are finished");
    CHECK(is_there("staging.json") && !is_there("stoker.index"));
    /* Nobody takes what is there for a data set. */
    stk_dataset_options there = data_at(near);
    stk_dataset *copy = NULL;
    stk_error_clear(&error);
    CHECK_INT(stk_dataset_open(&copy, &there, NULL, NULL, &error), STK_ERR_DATA);
    CHECK_CONTAINS(error.message, "stage");
    /* The limit is no part of the plan. */
    options.max_bad = STK_AUTO_DOUBLE;
    REQUIRE_OK(stage_with(&options, &data, &staged), &error);
    CHECK_INT(staged.kept_shards, 2);
    CHECK_INT(staged.bad, 1);
}

/* What could not be read for a while is in the shards when the staging has gone on. */
static void shards_that_lack_pictures_are_made_again(void) {
    stk_str clean = {0};
    stk_str after = {0};
    stk_staged staged;
    fresh();
    put_folders(PICTURES);
    stk_stage_options options = plain_options();
    stk_dataset_options data = data_at(root);
    options.quality = 80;
    REQUIRE_OK(stage_with(&options, &data, &staged), &error);
    read_folder(near, &clean);
    snprintf(near + strlen(near), 8, "-2");
    write_text(root, "train/ant/1.jpg", "no picture");
    write_text(root, "train/cow/2.jpg", "no picture");
    options.max_bad = 100.0 / (CLASSES * PICTURES); /* one */
    CHECK_INT(stage_with(&options, &data, &staged), STK_ERR_DATA);
    CHECK_CONTAINS(error.message, "train/cow/2.jpg");
    put_folders(PICTURES);
    stk_error_clear(&error);
    REQUIRE_OK(stage_with(&options, &data, &staged), &error);
    CHECK(staged.kept_shards > 0); /* those that were whole */
    CHECK_INT(staged.bad, 0);
    read_folder(near, &after);
    CHECK(after.length == clean.length && memcmp(after.text, clean.text, clean.length) == 0);
    stk_str_free(&clean);
    stk_str_free(&after);
}

/* ---- going on, and refusals ---- */

/* Lack of memory ends a staging at every place; the next one goes on, and nothing is different. */
static void an_end_at_any_place_changes_nothing(void) {
    stk_str clean = {0};
    stk_str after = {0};
    stk_staged staged;
    int64_t kept = 0;
    int ends = 0;
    fresh();
    put_folders(PICTURES);
    write_text(root, "train/cow/2.jpg", "no picture");
    stk_stage_options options = plain_options();
    stk_dataset_options data = data_at(root);
    options.quality = 75;
    REQUIRE_OK(stage_with(&options, &data, &staged), &error);
    read_folder(near, &clean);
    snprintf(near + strlen(near), 8, "-2");
    for (int64_t n = 40;; n += 7) {
        stk_mem_fail_after(n);
        stk_status status = stage_with(&options, &data, &staged);
        stk_mem_fail_after(-1);
        kept = staged.kept_shards > kept ? staged.kept_shards : kept;
        if (status == STK_OK) {
            break;
        }
        ends++;
        if (status != STK_ERR_MEMORY) {
            CHECK_FAIL("it ended with: %s", error.message);
        }
        REQUIRE(ends < 2000);
    }
    CHECK(ends > 10);
    CHECK(kept >= 1);
    read_folder(near, &after);
    CHECK(clean.length == after.length && memcmp(clean.text, after.text, clean.length) == 0);
    stk_str_free(&clean);
    stk_str_free(&after);
}

static void damage_near(const char *name, const char *text) {
    write_text(near, name, text);
}

/* A staging that was cut off leaves files of every sort behind. */
static void leftovers_are_cleaned(void) {
    stk_str clean = {0};
    stk_str after = {0};
    stk_staged staged;
    fresh();
    put_folders(PICTURES);
    REQUIRE_OK(stage_plainly(&staged), &error);
    read_folder(near, &clean);
    char *about = text_of("stage.json");
    damage_near("staging.json", about);
    damage_near(".train-000001.tar.77.tmp", "half");
    damage_near("..train-000001.record.77.tmp", "half");
    damage_near(".samples.csv.77.tmp", "half");
    damage_near(".train-000001.record", "no record");
    damage_near("train-000099.tar", "of another plan");
    /* The index is there: all that is left to do is to clean up, and foreign files stay. */
    damage_near("notes.md", "mine");
    REQUIRE_OK(stage_plainly(&staged), &error);
    CHECK(staged.already);
    CHECK(!is_there("staging.json") && !is_there(".train-000001.tar.77.tmp") &&
          !is_there("..train-000001.record.77.tmp") && !is_there(".train-000001.record") &&
          is_there("notes.md"));
    /* Without the index everything is made again. */
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/stoker.index", near);
    unlink(path);
    damage_near("train-000000.tar", "cut");
    damage_near("staging.json", about);
    REQUIRE_OK(stage_plainly(&staged), &error);
    CHECK(!staged.already);
    CHECK(!is_there("train-000099.tar"));
    snprintf(path, sizeof path, "%s/notes.md", near);
    unlink(path);
    read_folder(near, &after);
    CHECK(clean.length == after.length && memcmp(clean.text, after.text, clean.length) == 0);
    stk_mem_free(about);
    stk_str_free(&clean);
    stk_str_free(&after);
}

static void the_same_again_is_no_work(void) {
    stk_staged staged;
    fresh();
    put_folders(PICTURES);
    REQUIRE_OK(stage_plainly(&staged), &error);
    stk_staged first = staged;
    REQUIRE_OK(stage_plainly(&staged), &error);
    CHECK(staged.already);
    CHECK_INT(staged.pictures, 0);
    CHECK_INT(staged.train, first.train);
    CHECK_INT(staged.val, first.val);
    CHECK_INT(staged.test, first.test);
    CHECK_INT(staged.shards, first.shards);
    CHECK_INT(staged.bytes, first.bytes);
    CHECK_INT(staged.classes, first.classes);
}

static void another_staging_is_refused(void) {
    stk_staged staged;
    fresh();
    put_folders(PICTURES);
    REQUIRE_OK(stage_plainly(&staged), &error);
    stk_stage_options options = plain_options();
    stk_dataset_options data = data_at(root);
    options.max_side = 300;
    CHECK_INT(stage_with(&options, &data, &staged), STK_ERR_USAGE);
    CHECK_CONTAINS(error.message, "with --max-side 0");
    CHECK_CONTAINS(error.message, "--overwrite");
    options = plain_options();
    data.per_class = 3;
    CHECK_INT(stage_with(&options, &data, &staged), STK_ERR_USAGE);
    CHECK_CONTAINS(error.message, "with --per-class 0");
    data.per_class = 0;
    char path[512];
    snprintf(path, sizeof path, "%s/train/ant/new.jpg", root);
    write_picture(path, 0, 77);
    CHECK_INT(stage_with(&options, &data, &staged), STK_ERR_USAGE);
    CHECK_CONTAINS(error.message, "other samples would be chosen now");
    options.overwrite = true;
    REQUIRE_OK(stage_with(&options, &data, &staged), &error);
    CHECK_INT(staged.kept_shards, 0);
    check_same(&data);
    options.shard_size = 100;
    REQUIRE_OK(stage_with(&options, &data, &staged), &error);
    CHECK(!is_there("train-000001.tar"));
    check_same(&data);
}

static void folders_of_others_are_left_alone(void) {
    char old_near[320];
    stk_staged staged;
    stk_str before = {0};
    stk_str after = {0};
    fresh();
    put_folders(PICTURES);
    snprintf(old_near, sizeof old_near, "%s", near);
    make_folder(near, "");
    damage_near("thesis.txt", "years of work");
    read_folder(near, &before);
    stk_stage_options options = plain_options();
    stk_dataset_options data = data_at(root);
    options.overwrite = true;
    CHECK_INT(stage_with(&options, &data, &staged), STK_ERR_USAGE);
    CHECK_CONTAINS(error.message, "not empty");
    CHECK(!is_there(".lock"));
    read_folder(near, &after);
    CHECK_STR(stk_str_text(&after), stk_str_text(&before));
    snprintf(near, sizeof near, "%.200s/thesis.txt", old_near);
    CHECK_INT(stage_with(&options, &data, &staged), STK_ERR_USAGE);
    CHECK_CONTAINS(error.message, "it is a file");
    snprintf(near, sizeof near, "%.200s/train/new/place", root);
    CHECK_INT(stage_with(&options, &data, &staged), STK_ERR_USAGE);
    CHECK_CONTAINS(error.message, "lies in the data set");
    snprintf(near, sizeof near, "s3://bucket/place");
    CHECK_INT(stage_with(&options, &data, &staged), STK_ERR_USAGE);
    CHECK_CONTAINS(error.message, "folder of this machine");
    stk_str_free(&before);
    stk_str_free(&after);
}

static void two_stagings_do_not_mix(void) {
    stk_staged staged;
    int fd = -1;
    bool taken = false;
    char path[PATH_MAX];
    fresh();
    put_folders(PICTURES);
    make_folder(near, "");
    snprintf(path, sizeof path, "%s/.lock", near);
    REQUIRE_OK(stk_file_lock(path, &fd, &taken, &error), &error);
    REQUIRE(taken);
    CHECK_INT(stage_plainly(&staged), STK_ERR_USAGE);
    CHECK_CONTAINS(error.message, "another staging is writing");
    stk_file_unlock(fd, ".");
    REQUIRE_OK(stage_plainly(&staged), &error);
}

static void a_request_to_stop_ends_it(void) {
    stk_staged staged;
    stk_stop stop = {0};
    fresh();
    put_folders(PICTURES);
    stk_stage_options options = plain_options();
    stk_dataset_options data = data_at(root);
    stk_stage_request request = {.dir = near, .options = &options, .data = &data, .stop = &stop};
    stk_stop_request(&stop, STK_STOP_SOON, 0);
    CHECK_INT(stk_stage_run(&request, &staged, &error), STK_ERR_STOPPED);
    CHECK_CONTAINS(error.message, "the same command goes on");
    CHECK(is_there("staging.json"));
    REQUIRE_OK(stage_plainly(&staged), &error);
    check_same(&data);
}

static void damaged_descriptions_are_refused(void) {
    stk_staged staged;
    stk_dataset *copy = NULL;
    stk_dataset_options there;
    fresh();
    put_folders(PICTURES);
    REQUIRE_OK(stage_plainly(&staged), &error);
    there = data_at(near);
    static const struct {
        const char *name;
        const char *text;
        const char *words;
    } cases[] = {
        {"stage.json", "{", "stage.json is not what stoker stage wrote"},
        {"stage.json", "{}", "names no format"},
        {"stage.json", "{\"format\": 2}", "another version"},
        {"stage.json", "{\"format\": 1}", NULL},
        {"samples.csv", "a,b\n1,2\n", "its columns have other names"},
        {"samples.csv", "split,class,id,path,members\n,,,,\n", "its columns have other names"},
        {"samples.csv", "split,class,id,path,membe\n,,,,\n", "its columns have other names"},
        {"samples.csv", "\"split,class\",id,path,member,a\n,,,,\n", "its columns have other names"},
        {"samples.csv", "split,class,id,path,member\nx,ant,1,1,1.jpg\n", "no known name"},
        {"samples.csv", "split,class,id,path,member\ntrain,,1,1,1.jpg\n", "has no class"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        damage_near(cases[i].name, cases[i].text);
        stk_error_clear(&error);
        stk_status status = stk_dataset_open(&copy, &there, NULL, NULL, &error);
        CHECK_INT(status, cases[i].words != NULL ? STK_ERR_DATA : STK_OK);
        if (cases[i].words != NULL) {
            CHECK_CONTAINS(error.message, cases[i].words);
        }
        stk_dataset_free(copy);
        copy = NULL;
    }
}

/* Who closes a queue does not wait until its picture is decoded. */
static void closing_a_queue_cancels_decoding(void) {
    static const char *const paths[] = {"slow.png"};
    const char *folder = check_folder();
    stk_error err = {0};
    char path[PATH_MAX];
    double seconds[2] = {0};
    picture_set set = make_pictures(folder, 1);
    blob png = make_slow_png();
    snprintf(path, sizeof path, "%s/slow.png", folder);
    must(stk_file_write(path, png.bytes, png.size, &err), &err);
    free_blob(&png);
    for (int i = 0; i < 2; i++) {
        stk_picture_queue *queue = NULL;
        const stk_queued_picture *queued = NULL;
        stk_picture_queue_config config = {.store = set.store,
                                           .paths = paths,
                                           .count = 1,
                                           .recode = {.max_side = 64},
                                           .workers = 1};
        int64_t start = stk_clock_ns();
        REQUIRE_OK(stk_picture_queue_open(&queue, &config, &err), &err);
        while (i == 0 && queued == NULL) {
            REQUIRE_OK(stk_picture_queue_next(queue, 1000000000, &queued, &err), &err);
        }
        usleep(i == 0 ? 0 : 50000); /* it is being decoded, or soon */
        start = i == 0 ? start : stk_clock_ns();
        stk_picture_queue_close(queue);
        seconds[i] = stk_clock_since_s(start);
    }
    if (seconds[1] > seconds[0] / 2) {
        CHECK_FAIL("closing took %.2f s, decoding takes %.2f s", seconds[1], seconds[0]);
    }
    free_pictures(&set);
}

static uint64_t bound_bytes; /* what the source below was told */

static void note_bound(void *place, uint64_t bytes) {
    (void)place;
    bound_bytes = bytes;
}

/* What a server sends counts as the queue's memory while it comes. */
static void answers_stay_within_the_memory_of_the_queue(void) {
    stk_store *store = NULL;
    stk_picture_queue *queue = NULL;
    stk_error err = {0};
    stk_storage_source source = scripted_source;
    source.bound = note_bound;
    bound_bytes = 0;
    REQUIRE_OK(stk_store_open_on(&store, &source, scripted_new(), NULL, &err), &err);
    stk_picture_queue_config config = {.store = store, .workers = 1};
    REQUIRE_OK(stk_picture_queue_open(&queue, &config, &err), &err);
    CHECK_INT(bound_bytes, STK_PICTURE_QUEUE_BYTES);
    stk_picture_queue_close(queue);
    stk_store_close(store);
}

static const check_test tests[] = {
    TEST(class_folders),
    TEST(kaggle_tables),
    TEST(a_subset_and_its_flags_again),
    TEST(pictures_without_labels),
    TEST(staged_from_staged),
    TEST(pictures_become_smaller),
    TEST(kinds_keep_their_names),
    TEST(bad_pictures_are_left_out),
    TEST(too_many_bad_pictures_are_an_error),
    TEST(shards_that_lack_pictures_are_made_again),
    TEST(an_end_at_any_place_changes_nothing),
    TEST(leftovers_are_cleaned),
    TEST(the_same_again_is_no_work),
    TEST(another_staging_is_refused),
    TEST(folders_of_others_are_left_alone),
    TEST(two_stagings_do_not_mix),
    TEST(a_request_to_stop_ends_it),
    TEST(damaged_descriptions_are_refused),
    TEST(answers_stay_within_the_memory_of_the_queue),
    TEST(closing_a_queue_cancels_decoding),
};

CHECK_MAIN(tests)
