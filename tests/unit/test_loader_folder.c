/* test_loader_folder.c - a loader on a folder, by options: what is taken for which pictures. */
#include "check.h"
#include "small_pictures.h"

#include <sys/stat.h>

#include <stoker/loader.h>

#include "base/error.h"

typedef struct setting {
    const char *name, *value;
} setting;

/* Options for small pictures of the folder, and up to four more. */
static stk_options *options_for(const char *data, const setting *more, size_t count) {
    static const setting usual[] = {
        {"batch", "4"}, {"img-size", "16"}, {"workers", "2"}, {"epochs", "1"}};
    stk_error err = {0};
    stk_options *options = NULL;
    must(stk_options_for_loader(&options, &err), &err);
    if (data != NULL) {
        must(stk_options_set(options, "data", data, &err), &err);
    }
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++) {
        must(stk_options_set(options, usual[i].name, usual[i].value, &err), &err);
    }
    for (size_t i = 0; i < count; i++) {
        must(stk_options_set(options, more[i].name, more[i].value, &err), &err);
    }
    return options;
}

/* What a stream over a folder showed. */
typedef struct seen {
    stk_status status;
    stk_error err;
    size_t images, labelled, bad;
    int classes;
    char first_path[128];
    char first_class[64];
} seen;

static seen run(const char *data, const setting *more, size_t count) {
    seen s = {0};
    stk_loader *loader = NULL;
    const stk_batch *batch = NULL;
    stk_loader_info info = {0};
    stk_loader_counters counters = {.size = sizeof counters};
    stk_error refused = {0};
    stk_options *options = options_for(data, more, count);
    s.status = stk_loader_open(&loader, options, &s.err);
    stk_options_free(options); /* not needed any more */
    if (s.status != STK_OK) {
        return s;
    }
    CHECK_INT(stk_loader_describe(loader, &info, &refused), STK_ERR_USAGE);
    CHECK_CONTAINS(refused.message, "the size of a stk_loader_info is not set");
    info.size = sizeof info;
    CHECK_INT(stk_loader_describe(loader, &info, &s.err), STK_OK);
    s.classes = info.classes;
    while ((s.status = stk_loader_next(loader, &batch, &s.err)) == STK_OK && batch != NULL) {
        for (size_t i = 0; i < batch->count; i++) {
            const char *class = stk_loader_class(loader, batch->labels[i]);
            s.images++;
            s.labelled += batch->labels[i] >= 0;
            s.bad += batch->bad[i];
            if (s.images == 1) {
                snprintf(s.first_path, sizeof s.first_path, "%s",
                         stk_loader_path(loader, batch->samples[i]));
                snprintf(s.first_class, sizeof s.first_class, "%s", class != NULL ? class : "");
            }
        }
        stk_loader_release(loader, batch);
    }
    CHECK_INT(stk_loader_stats(loader, &counters, &s.err), STK_OK);
    CHECK_INT(counters.images, s.images - s.bad);
    counters.size++;
    CHECK_INT(stk_loader_stats(loader, &counters, &refused), STK_ERR_USAGE);
    CHECK(stk_loader_path(loader, 1000000) == NULL);
    CHECK(stk_loader_class(loader, -1) == NULL && stk_loader_class(loader, 99) == NULL);
    stk_loader_close(loader);
    return s;
}

/* folder/<class>/<n>.jpg, `each` pictures in every one of `classes` folders. */
static void make_classes(const char *folder, int classes, int each) {
    for (int c = 0; c < classes; c++) {
        char path[400];
        snprintf(path, sizeof path, "%s/k%d", folder, c);
        (void)mkdir(path, 0777);
        for (int i = 0; i < each; i++) {
            snprintf(path, sizeof path, "%s/k%d/%d.jpg", folder, c, i);
            write_picture(path, c, i);
        }
    }
}

static const setting in_order[] = {{"train-transform", "no"}};

static void class_folders(void) {
    const char *folder = check_folder();
    make_classes(folder, 3, 5);
    seen s = run(folder, in_order, 1);
    REQUIRE_OK(s.status, &s.err);
    CHECK(s.images == 15 && s.labelled == 15 && s.classes == 3 && s.bad == 0);
    CHECK_STR(s.first_path, "k0/0.jpg");
    CHECK_STR(s.first_class, "k0");
    s = run(folder, NULL, 0); /* training leaves out what does not fill a batch */
    REQUIRE_OK(s.status, &s.err);
    CHECK_INT(s.images, 12);
}

static void splits_are_parts(void) {
    const char *folder = check_folder();
    make_classes(folder, 2, 10);
    size_t parts[2];
    static const char *const names[] = {"train", "val"};
    for (size_t i = 0; i < 2; i++) {
        setting more[] = {in_order[0], {"split", names[i]}};
        seen s = run(folder, more, 2);
        REQUIRE_OK(s.status, &s.err);
        parts[i] = s.images;
    }
    CHECK(parts[0] + parts[1] == 20 && parts[1] >= 2 && parts[0] > parts[1]);
    setting test[] = {{"split", "test"}};
    seen s = run(folder, test, 1);
    CHECK_INT(s.status, STK_ERR_DATA);
    CHECK_CONTAINS(s.err.message, "no test pictures");
}

static void a_folder_without_classes_gives_all_its_pictures(void) {
    char folder[256];
    char path[300];
    snprintf(folder, sizeof folder, "%s", check_folder());
    for (int i = 0; i < 6; i++) {
        snprintf(path, sizeof path, "%s/%d.jpg", folder, i);
        write_picture(path, 0, i);
    }
    seen s = run(folder, in_order, 1);
    REQUIRE_OK(s.status, &s.err);
    CHECK(s.images == 6 && s.labelled == 0 && s.classes == 0);
    CHECK_STR(s.first_path, "0.jpg");
    snprintf(path, sizeof path, "%s/below", folder); /* one folder says nothing about classes */
    REQUIRE(mkdir(path, 0777) == 0);
    snprintf(path, sizeof path, "%s/below/7.jpg", folder);
    write_picture(path, 0, 7);
    s = run(folder, in_order, 1);
    REQUIRE_OK(s.status, &s.err);
    CHECK(s.images == 7 && s.labelled == 0);
}

/* Labels that are there and cannot be used must not be dropped without a word. */
static void wrong_labels_are_an_error(void) {
    char folder[256];
    char path[300];
    snprintf(folder, sizeof folder, "%s", check_folder());
    snprintf(path, sizeof path, "%s/train", folder);
    REQUIRE(mkdir(path, 0777) == 0);
    for (int i = 0; i < 4; i++) {
        snprintf(path, sizeof path, "%s/train/%d.jpg", folder, i);
        write_picture(path, i % 2, i);
    }
    write_text(folder, "train.csv", "id,label\n0,a\n1,b\n2,a\n3,b\n");
    seen s = run(folder, in_order, 1);
    REQUIRE_OK(s.status, &s.err);
    CHECK(s.images == 4 && s.labelled == 4);
    write_text(folder, "train.csv", "id,label\n0,a\n0,b\n1,b\n2,a\n3,b\n");
    s = run(folder, in_order, 1);
    CHECK_INT(s.status, STK_ERR_DATA);
    CHECK_CONTAINS(s.err.message, "train.csv");
}

static void loose_pictures_beside_classes_are_an_error(void) {
    char folder[256];
    char path[300];
    snprintf(folder, sizeof folder, "%s", check_folder());
    make_classes(folder, 2, 3);
    snprintf(path, sizeof path, "%s/loose.jpg", folder);
    write_picture(path, 0, 9);
    CHECK_INT(run(folder, NULL, 0).status, STK_ERR_DATA);
}

static void what_is_not_there_is_told(void) {
    seen s = run(NULL, NULL, 0);
    CHECK_INT(s.status, STK_ERR_USAGE);
    CHECK_CONTAINS(s.err.message, "--data");
    s = run("/nowhere/at/all", NULL, 0);
    CHECK_INT(s.status, STK_ERR_DATA);
    s = run(check_folder(), NULL, 0);
    CHECK_INT(s.status, STK_ERR_DATA);
    CHECK_CONTAINS(s.err.message, "empty");
}

static void requests_that_cannot_work_are_refused(void) {
    const char *folder = check_folder();
    make_classes(folder, 2, 40);
    setting huge[] = {
        {"batch", "80"}, {"img-size", "4096"}, {"prefetch", "1000"}, {"loader-memory", "1000000G"}};
    seen s = run(folder, huge, 4);
    CHECK_INT(s.status, STK_ERR_MEMORY);
    CHECK_CONTAINS(s.err.message, "--img-size");
    setting keep[] = {{"drop-last", "no"}, {"batch", "32"}};
    s = run(folder, keep, 2);
    REQUIRE_OK(s.status, &s.err);
    CHECK_INT(s.images, 80);
    setting drop[] = {{"batch", "32"}};
    s = run(folder, drop, 1);
    REQUIRE_OK(s.status, &s.err);
    CHECK_INT(s.images, 64);
}

/* A loader on a folder has no device: --decode may leave that open, and must not insist on one. */
static void a_device_is_not_there(void) {
    static const char *const refused[] = {"gpu", "both"};
    static const char *const fine[] = {"auto", "cpu"};
    const char *folder = check_folder();
    make_classes(folder, 2, 8);
    for (size_t i = 0; i < 2; i++) {
        seen s = run(folder, &(setting){"decode", refused[i]}, 1);
        CHECK_INT(s.status, STK_ERR_USAGE);
        CHECK_CONTAINS(s.err.message, refused[i]);
        CHECK_CONTAINS(s.err.message, " needs a GPU, and this loader has none; use --decode cpu");
        s = run(folder, &(setting){"decode", fine[i]}, 1);
        REQUIRE_OK(s.status, &s.err);
        CHECK(s.images > 0);
    }
}

static void weights_choose_samples(void) {
    enum { COUNT = 20 };
    const char *folder = check_folder();
    double weights[COUNT] = {[3] = 1, [17] = 3};
    size_t drawn[COUNT] = {0};
    stk_error err = {0};
    stk_loader *loader = NULL;
    const stk_batch *batch = NULL;
    make_classes(folder, 2, COUNT / 2);
    static const setting forever[] = {{"epochs", "0"}, {"max-bad", "0"}};
    stk_options *options = options_for(folder, forever, 2);
    REQUIRE_OK(stk_loader_open(&loader, options, &err), &err);
    stk_options_free(options);
    REQUIRE_OK(stk_loader_next(loader, &batch, &err), &err);
    CHECK_INT(stk_loader_weigh(loader, weights, COUNT - 1, &err), STK_ERR_USAGE);
    CHECK_CONTAINS(err.message, "sample 19");
    stk_error_clear(&err);
    REQUIRE_OK(stk_loader_weigh(loader, weights, COUNT, &err), &err);
    size_t first[4] = {0};
    for (int i = 0; i < 100; i++) {
        REQUIRE_OK(stk_loader_next(loader, &batch, &err), &err);
        CHECK(batch->epoch == (uint64_t)i / 5 && batch->index == (size_t)i % 5);
        for (size_t k = 0; k < batch->count; k++) {
            drawn[batch->samples[k]]++;
        }
        memcpy(first, i == 0 ? batch->samples : first, sizeof first);
        stk_loader_release(loader, batch);
    }
    CHECK_INT(drawn[3] + drawn[17], 400);
    CHECK(drawn[3] > 60 && drawn[3] < 140); /* 100 expected; five deviations are 43 */
    REQUIRE_OK(stk_loader_seek(loader, 0, 0, &err), &err);
    REQUIRE_OK(stk_loader_next(loader, &batch, &err), &err);
    CHECK_INT(memcmp(first, batch->samples, sizeof first), 0);
    stk_loader_close(loader);
}

static void sampling_by_class_needs_labels(void) {
    char folder[256];
    char path[300];
    snprintf(folder, sizeof folder, "%s", check_folder());
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/%d.jpg", folder, i);
        write_picture(path, 0, i);
    }
    setting balanced[] = {{"sampling", "balanced"}};
    seen s = run(folder, balanced, 1);
    CHECK_INT(s.status, STK_ERR_DATA);
    CHECK_CONTAINS(s.err.message, "labels");
}

static void a_batch_larger_than_the_set_is_the_set(void) {
    const char *folder = check_folder();
    make_classes(folder, 2, 1);
    setting more[] = {{"batch", "64"}};
    seen s = run(folder, more, 1);
    REQUIRE_OK(s.status, &s.err);
    CHECK_INT(s.images, 2);
}

/* A picture of the size of the square, with noise that no scaling would leave alone. */
static void unscaled_pictures_come_as_they_are(void) {
    const char *folder = check_folder();
    char path[400];
    stk_error err = {0};
    stk_image image = {0};
    uint8_t *bytes = NULL;
    size_t size = 0;
    must(stk_image_new(&image, 24, 16, &err), &err);
    stk_rng rng = stk_rng_make(4, STK_RNG_TEST, 0, 0);
    for (int i = 0; i < 24 * 16 * 3; i++) {
        image.pixels[i] = (uint8_t)stk_rng_below(&rng, 256);
    }
    must(stk_image_encode_png(&image, &bytes, &size, &err), &err);
    snprintf(path, sizeof path, "%s/a.png", folder);
    must(stk_file_write(path, bytes, size, &err), &err);
    for (int train = 0; train < 2; train++) {
        const setting none[] = {
            {"resize", "none"}, {"train-transform", train ? "yes" : "no"}, {"flip", "no"}};
        stk_loader *loader = NULL;
        const stk_batch *batch = NULL;
        stk_options *options = options_for(folder, none, 3);
        must(stk_loader_open(&loader, options, &err), &err);
        must(stk_loader_next(loader, &batch, &err), &err);
        REQUIRE(batch != NULL && batch->count == 1);
        bool found = false; /* one of the two windows of the grid, row by row */
        for (int x = 0; x <= 8; x += 8) {
            bool same = true;
            for (size_t y = 0; y < 16; y++) {
                same = same && memcmp(batch->images + y * 48,
                                      image.pixels + (y * 24 + (size_t)x) * 3, 48) == 0;
            }
            found = found || same;
        }
        CHECK(found);
        stk_loader_release(loader, batch);
        stk_loader_close(loader);
        stk_options_free(options);
    }
    stk_mem_free(bytes);
    stk_image_free(&image);
}

static const check_test tests[] = {
    TEST(class_folders),
    TEST(unscaled_pictures_come_as_they_are),
    TEST(splits_are_parts),
    TEST(a_folder_without_classes_gives_all_its_pictures),
    TEST(wrong_labels_are_an_error),
    TEST(loose_pictures_beside_classes_are_an_error),
    TEST(what_is_not_there_is_told),
    TEST(requests_that_cannot_work_are_refused),
    TEST(a_device_is_not_there),
    TEST(weights_choose_samples),
    TEST(sampling_by_class_needs_labels),
    TEST(a_batch_larger_than_the_set_is_the_set),
};

CHECK_MAIN(tests)
