/* test_sample.c - the drawn data set: layouts, sameness, refusals, and that colours tell nothing.
 */
#include "check.h"

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/files/file.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/text/csv.h"
#include "image/image.h"
#include "stage/sample.h"

/* A path in a fresh folder for this test; freed by nobody, the program is short. */
static char *fresh(const char *name) {
    return stk_path_join(check_folder(), name);
}

static stk_sample_options small(const char *dir, int layout) {
    return (stk_sample_options){
        .dir = dir, .layout = layout, .classes = 3, .per_class = 8, .seed = 5};
}

/* Entries of a folder, hidden ones too; -1 when there is no such folder. */
static int entries(const char *path) {
    DIR *folder = opendir(path);
    if (folder == NULL) {
        return -1;
    }
    int count = -2; /* "." and ".." */
    while (readdir(folder) != NULL) {
        count++;
    }
    closedir(folder);
    return count;
}

static int entries_below(const char *dir, const char *name) {
    char *path = stk_path_join(dir, name);
    int count = entries(path);
    stk_mem_free(path);
    return count;
}

/* Appends names and contents of all files below a folder, in sorted order. */
static void collect(const char *path, stk_str *out) {
    stk_dir_list list;
    if (stk_dir_read(path, &list, NULL) != STK_OK) {
        CHECK_FAIL("cannot list %s", path);
        return;
    }
    for (size_t i = 0; i < list.count; i++) {
        char *below = stk_path_join(path, list.entries[i].name);
        stk_str_appendf(out, "[%s]", list.entries[i].name);
        char *data = NULL;
        size_t size = 0;
        if (list.entries[i].is_dir) {
            collect(below, out);
        } else if (stk_file_read(below, 0, &data, &size, NULL) == STK_OK) {
            stk_str_append_bytes(out, data, size);
        } else {
            CHECK_FAIL("cannot read %s", below);
        }
        stk_mem_free(data);
        stk_mem_free(below);
    }
    stk_dir_list_free(&list);
}

static bool same_trees(const char *a, const char *b) {
    stk_str left = {0};
    stk_str right = {0};
    collect(a, &left);
    collect(b, &right);
    bool same = left.length > 0 && left.length == right.length &&
                memcmp(left.text, right.text, left.length) == 0;
    stk_str_free(&left);
    stk_str_free(&right);
    return same;
}

static void folder_layout_has_what_was_asked(void) {
    stk_error err = {0};
    char *dir = fresh("new/set/"); /* parents are made, the slash does not matter */
    stk_sample_options options = small(dir, STK_SAMPLE_FOLDER);
    REQUIRE_OK(stk_sample_make(&options, NULL, NULL, 2, &err), &err);
    CHECK_INT(entries(dir), 3);
    CHECK_INT(entries_below(dir, "train"), 3);
    CHECK_INT(entries_below(dir, "train/disc_stripes"), 8);
    CHECK_INT(entries_below(dir, "train/square_checker"), 8);
    CHECK_INT(entries_below(dir, "train/triangle_dots"), 8);
    CHECK_INT(entries_below(dir, "val"), 3);
    CHECK_INT(entries_below(dir, "val/triangle_dots"), 1);
    CHECK_INT(entries_below(dir, "test"), 6);
    char *first = stk_path_join(dir, "train/disc_stripes/0000.jpg");
    char *last = stk_path_join(dir, "test/0005.jpg");
    CHECK(stk_path_is_file(first));
    CHECK(stk_path_is_file(last));
    stk_mem_free(first);
    stk_mem_free(last);
    stk_mem_free(dir);
}

static void pictures_are_of_varied_sizes(void) {
    stk_error err = {0};
    char *dir = fresh("d");
    stk_sample_options options = small(dir, STK_SAMPLE_KAGGLE);
    options.per_class = 30;
    REQUIRE_OK(stk_sample_make(&options, NULL, NULL, 2, &err), &err);
    char *train = stk_path_join(dir, "train");
    stk_dir_list list;
    REQUIRE_OK(stk_dir_read(train, &list, &err), &err);
    int least = 1000;
    int most = 0;
    int wide = 0;
    for (size_t i = 0; i < list.count; i++) {
        char *path = stk_path_join(train, list.entries[i].name);
        char *bytes = NULL;
        size_t size = 0;
        stk_image image;
        REQUIRE_OK(stk_file_read(path, 0, &bytes, &size, &err), &err);
        REQUIRE_OK(stk_image_decode((const uint8_t *)bytes, size, &image, &err), &err);
        int sides[2] = {image.width, image.height};
        for (int k = 0; k < 2; k++) {
            least = sides[k] < least ? sides[k] : least;
            most = sides[k] > most ? sides[k] : most;
        }
        wide += image.width > image.height;
        stk_image_free(&image);
        stk_mem_free(bytes);
        stk_mem_free(path);
    }
    CHECK(least >= 72 && least < 85);
    CHECK(most <= 180 && most > 165);
    CHECK(wide > 20 && wide < 70);
    stk_dir_list_free(&list);
    stk_mem_free(train);
    stk_mem_free(dir);
}

static stk_status read_table(const char *dir, const char *name, stk_csv *csv, stk_error *err) {
    char *path = stk_path_join(dir, name);
    stk_status status = stk_csv_read(path, csv, err);
    stk_mem_free(path);
    return status;
}

/* Every row names a picture of that split once; returns how often the class changes. */
static int check_rows(const char *dir, const char *split, const stk_csv *csv, int classes) {
    stk_map seen = {0};
    stk_map labels = {0};
    int changes = 0;
    for (size_t i = 0; i < csv->rows; i++) {
        const char *id = stk_csv_cell(csv, i, 0);
        bool added = false;
        CHECK(strlen(id) == 16 && strspn(id, "0123456789abcdef") == 16);
        CHECK(stk_map_add(&seen, id, i, &added) && added);
        CHECK(stk_map_add(&labels, stk_csv_cell(csv, i, 1), i, &added));
        char *path = stk_str_format("%s/%s/%s.jpg", dir, split, id);
        CHECK(stk_path_is_file(path));
        stk_mem_free(path);
        changes += i > 0 && strcmp(stk_csv_cell(csv, i, 1), stk_csv_cell(csv, i - 1, 1)) != 0;
    }
    CHECK_INT(labels.count, classes);
    stk_map_free(&seen);
    stk_map_free(&labels);
    return changes;
}

static void kaggle_layout_has_its_tables(void) {
    stk_error err = {0};
    char *dir = fresh("d");
    stk_sample_options options = small(dir, STK_SAMPLE_KAGGLE);
    REQUIRE_OK(stk_sample_make(&options, NULL, NULL, 2, &err), &err);
    CHECK_INT(entries(dir), 5);
    CHECK_INT(entries_below(dir, "train"), 24);
    CHECK_INT(entries_below(dir, "test"), 6);
    stk_csv train;
    stk_csv submission;
    stk_csv solution;
    REQUIRE_OK(read_table(dir, "train.csv", &train, &err), &err);
    REQUIRE_OK(read_table(dir, "sample_submission.csv", &submission, &err), &err);
    REQUIRE_OK(read_table(dir, "solution.csv", &solution, &err), &err);
    CHECK_INT(train.columns, 2);
    CHECK_STR(train.header[0], "id");
    CHECK_STR(train.header[1], "label");
    CHECK_INT(train.rows, 24);
    CHECK_INT(submission.rows, 6);
    CHECK_INT(solution.rows, 6);
    CHECK(check_rows(dir, "train", &train, 3) > 6); /* mixed: sorted ones change twice */
    check_rows(dir, "test", &submission, 1);
    check_rows(dir, "test", &solution, 3);
    CHECK_STR(stk_csv_cell(&submission, 0, 1), "disc_stripes");
    for (size_t i = 0; i < 6; i++) {
        CHECK_STR(stk_csv_cell(&submission, i, 0), stk_csv_cell(&solution, i, 0));
    }
    stk_csv_free(&train);
    stk_csv_free(&submission);
    stk_csv_free(&solution);
    stk_mem_free(dir);
}

static void same_seed_same_bytes_whatever_the_threads(void) {
    stk_error err = {0};
    for (int layout = STK_SAMPLE_FOLDER; layout <= STK_SAMPLE_KAGGLE; layout++) {
        char *one = fresh("one");
        char *four = fresh("four");
        char *other = fresh("other");
        stk_sample_options options = small(one, layout);
        REQUIRE_OK(stk_sample_make(&options, NULL, NULL, 1, &err), &err);
        options.dir = four;
        REQUIRE_OK(stk_sample_make(&options, NULL, NULL, 4, &err), &err);
        options.dir = other;
        options.seed = 6;
        REQUIRE_OK(stk_sample_make(&options, NULL, NULL, 2, &err), &err);
        CHECK(same_trees(one, four));
        CHECK(!same_trees(one, other));
        stk_mem_free(one);
        stk_mem_free(four);
        stk_mem_free(other);
    }
}

static void all_class_names_differ(void) {
    stk_map seen = {0};
    char names[STK_SAMPLE_MAX_CLASSES][64];
    for (int k = 0; k < STK_SAMPLE_MAX_CLASSES; k++) {
        bool added = false;
        stk_sample_class_name(k, names[k], sizeof names[k]);
        CHECK(stk_map_add(&seen, names[k], 0, &added) && added);
    }
    CHECK_STR(names[0], "disc_stripes");
    CHECK_STR(names[8], "disc_checker");
    stk_map_free(&seen);
}

static void folder_that_is_not_empty_is_refused(void) {
    stk_error err = {0};
    char *dir = fresh("d");
    char *file = stk_path_join(dir, ".hidden");
    stk_sample_options options = small(dir, STK_SAMPLE_FOLDER);
    REQUIRE_OK(stk_dir_make(dir, &err), &err);
    REQUIRE_OK(stk_file_write(file, "x", 1, &err), &err);
    CHECK_INT(stk_sample_make(&options, NULL, NULL, 1, &err), STK_ERR_USAGE);
    CHECK_CONTAINS(err.message, dir);
    CHECK_CONTAINS(err.message, "not empty");
    CHECK_INT(entries(dir), 1);
    stk_error_clear(&err);
    REQUIRE(unlink(file) == 0);
    REQUIRE_OK(stk_sample_make(&options, NULL, NULL, 1, &err), &err);
    CHECK_INT(entries(dir), 3);
    CHECK_INT(stk_sample_make(&options, NULL, NULL, 1, NULL), STK_ERR_USAGE);
    stk_mem_free(file);
    stk_mem_free(dir);
}

static void wrong_options_are_refused(void) {
    char *dir = fresh("d");
    static const struct {
        const char *dir;
        int64_t classes;
        int64_t per_class;
        const char *reason;
    } cases[] = {{"d", 1, 8, "2 to 48"},     {"d", 49, 8, "2 to 48"}, {"d", 3, 1, "100000"},
                 {"d", 3, 100001, "100000"}, {"", 3, 8, "no name"},   {".", 3, 8, "no name"},
                 {"x/..", 3, 8, "no name"},  {"/", 3, 8, "no name"},  {NULL, 3, 8, "no name"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        stk_error err = {0};
        stk_sample_options options = small(dir, STK_SAMPLE_FOLDER);
        if (cases[i].dir == NULL || strcmp(cases[i].dir, "d") != 0) {
            options.dir = cases[i].dir;
        }
        options.classes = cases[i].classes;
        options.per_class = cases[i].per_class;
        CHECK_INT(stk_sample_make(&options, NULL, NULL, 1, &err), STK_ERR_USAGE);
        CHECK_CONTAINS(err.message, cases[i].reason);
    }
    CHECK_INT(entries(dir), -1);
    stk_mem_free(dir);
}

static void disk_errors_leave_nothing(void) {
    stk_error err = {0};
    const char *root = check_folder();
    char *file = stk_path_join(root, "file");
    char *below = stk_path_join(root, "file/d");
    char *dir = stk_path_join(root, "d");
    REQUIRE_OK(stk_file_write(file, "x", 1, &err), &err);
    stk_sample_options options = small(below, STK_SAMPLE_FOLDER);
    CHECK_INT(stk_sample_make(&options, NULL, NULL, 1, &err), STK_ERR_USAGE);
    CHECK_CONTAINS(err.message, "file");
    stk_error_clear(&err);
    options.dir = file;
    CHECK_INT(stk_sample_make(&options, NULL, NULL, 1, &err), STK_ERR_USAGE);
    stk_error_clear(&err);

    /* A limit on the size of files is the nearest thing to a full disk that needs no rights. */
    struct rlimit kept;
    REQUIRE(getrlimit(RLIMIT_FSIZE, &kept) == 0);
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    struct rlimit tight = {.rlim_cur = 1000, .rlim_max = kept.rlim_max};
    REQUIRE(setrlimit(RLIMIT_FSIZE, &tight) == 0);
    options.dir = dir;
    stk_status status = stk_sample_make(&options, NULL, NULL, 2, &err);
    REQUIRE(setrlimit(RLIMIT_FSIZE, &kept) == 0);
    signal(SIGXFSZ, handler);
    CHECK_INT(status, STK_ERR_STORAGE);
    CHECK_CONTAINS(err.message, "cannot write");
    CHECK_INT(entries(root), 1); /* the file alone */
    stk_mem_free(dir);
    stk_mem_free(below);
    stk_mem_free(file);
}

static void *request_stop(void *stop) {
    usleep(30000);
    stk_stop_request(stop, STK_STOP_SOON, 0);
    return NULL;
}

static void stop_leaves_nothing(void) {
    const char *root = check_folder();
    char *dir = stk_path_join(root, "d");
    stk_sample_options options = small(dir, STK_SAMPLE_FOLDER);
    stk_error err = {0};
    stk_stop stop = {0};
    stk_stop_request(&stop, STK_STOP_SOON, 0);
    CHECK_INT(stk_sample_make(&options, NULL, &stop, 2, &err), STK_ERR_STOPPED);
    CHECK_INT(entries(root), 0);

    stk_stop later = {0};
    pthread_t thread;
    options.per_class = 20000;
    stk_error_clear(&err);
    REQUIRE(pthread_create(&thread, NULL, request_stop, &later) == 0);
    CHECK_INT(stk_sample_make(&options, NULL, &later, 2, &err), STK_ERR_STOPPED);
    CHECK_CONTAINS(err.message, "stopped");
    pthread_join(thread, NULL);
    CHECK_INT(entries(root), 0);
    stk_mem_free(dir);
}

static void lack_of_memory_leaves_nothing(void) {
    const char *root = check_folder();
    char *dir = stk_path_join(root, "d");
    stk_sample_options options = small(dir, STK_SAMPLE_KAGGLE);
    options.classes = 2;
    options.per_class = 2;
    int64_t failed = 0;
    for (;; failed++) {
        stk_error err = {0};
        stk_mem_fail_after(failed);
        stk_status status = stk_sample_make(&options, NULL, NULL, 1, &err);
        stk_mem_fail_after(-1);
        if (status == STK_OK) {
            break;
        }
        CHECK_INT(status, STK_ERR_MEMORY);
        CHECK_INT(entries(root), 0);
        REQUIRE(failed < 1000);
    }
    CHECK(failed > 20);
    CHECK_INT(entries(dir), 5);
    stk_mem_free(dir);
}

#define THUMB 16
#define THUMB_VALUES (THUMB * THUMB * 3)

static void thumbnail(const char *dir, const char *split, const char *name, int number,
                      double *values) {
    char *path = stk_str_format("%s/%s/%s/%04d.jpg", dir, split, name, number);
    char *bytes = NULL;
    size_t size = 0;
    uint8_t out[THUMB_VALUES] = {0};
    stk_error err = {0};
    stk_transform transform = {.size = THUMB, .crop_fraction = 1};
    stk_image_scratch *scratch = NULL;
    if (stk_file_read(path, 0, &bytes, &size, &err) != STK_OK ||
        stk_image_scratch_new(&scratch, NULL, &err) != STK_OK ||
        stk_transform_apply(scratch, &transform, (const uint8_t *)bytes, size, (stk_rng){0}, out,
                            NULL, &err) != STK_OK) {
        CHECK_FAIL("%s", err.message);
    }
    stk_image_scratch_free(scratch);
    for (int i = 0; i < THUMB_VALUES; i++) {
        values[i] = out[i];
    }
    stk_mem_free(bytes);
    stk_mem_free(path);
}

/* The nearest class mean over thumbnails: what a linear model sees first. */
static void mean_colours_do_not_tell_the_classes(void) {
    enum { CLASSES = 6, TRAIN = 100, VAL = 20 };
    static double means[CLASSES][THUMB_VALUES];
    stk_error err = {0};
    CHECK_LONG();
    char *dir = fresh("d");
    stk_sample_options options = {.dir = dir, .classes = CLASSES, .per_class = TRAIN};
    REQUIRE_OK(stk_sample_make(&options, NULL, NULL, 2, &err), &err);
    char name[64];
    double values[THUMB_VALUES];
    double brightness[CLASSES] = {0};
    for (int k = 0; k < CLASSES; k++) {
        for (int i = 0; i < TRAIN; i++) {
            thumbnail(dir, "train", stk_sample_class_name(k, name, sizeof name), i, values);
            for (int j = 0; j < THUMB_VALUES; j++) {
                means[k][j] += values[j] / TRAIN;
                brightness[k] += values[j] / TRAIN / THUMB_VALUES;
            }
        }
    }
    int right = 0;
    for (int k = 0; k < CLASSES; k++) {
        for (int i = 0; i < VAL; i++) {
            thumbnail(dir, "val", stk_sample_class_name(k, name, sizeof name), i, values);
            int best = 0;
            double least = INFINITY;
            for (int c = 0; c < CLASSES; c++) {
                double distance = 0;
                for (int j = 0; j < THUMB_VALUES; j++) {
                    distance += (values[j] - means[c][j]) * (values[j] - means[c][j]);
                }
                best = distance < least ? c : best;
                least = fmin(distance, least);
            }
            right += best == k;
        }
    }
    if (right * 10 >= CLASSES * VAL * 4) {
        CHECK_FAIL("the nearest mean is right for %d of %d", right, CLASSES * VAL);
    }
    for (int k = 0; k < CLASSES; k++) {
        CHECK_NEAR(brightness[k], 128, 22); /* the spread of one picture is about 60 */
    }
    stk_mem_free(dir);
}

static const check_test tests[] = {
    TEST(folder_layout_has_what_was_asked),
    TEST(pictures_are_of_varied_sizes),
    TEST(kaggle_layout_has_its_tables),
    TEST(same_seed_same_bytes_whatever_the_threads),
    TEST(all_class_names_differ),
    TEST(folder_that_is_not_empty_is_refused),
    TEST(wrong_options_are_refused),
    TEST(disk_errors_leave_nothing),
    TEST(stop_leaves_nothing),
    TEST(lack_of_memory_leaves_nothing),
    TEST(mean_colours_do_not_tell_the_classes),
};

CHECK_MAIN(tests)
