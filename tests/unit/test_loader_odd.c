/*
 * test_loader_odd.c - a folder of damaged, unusual and foreign pictures through the loader: each
 * file is a picture or has a reason, and the loader says what decoding alone says.
 */
#include "check.h"

#include "base/error.h"
#include "base/files/file.h"
#include "base/mem.h"
#include "loader/loader.h"

#define SIZE 24
#define BATCH 16
#define PICTURE_BYTES (SIZE * SIZE * 3)

/* The files of the folder, and what became of each. */
typedef struct odd_files {
    char root[512];
    stk_dir_list list;
    stk_sample *samples; /* owned */
    char **reasons;      /* owned, each of them: why the loader could not use it */
    int *told;           /* owned: how often it said so */
    int *seen;           /* owned: in how many batches it stood */
    stk_store *store;    /* owned */
    size_t strangers;    /* paths that the loader told and that are not in the list */
} odd_files;

static bool open_files(odd_files *files) {
    const char *root = getenv("STOKER_DATA");
    stk_error err = {0};
    *files = (odd_files){.strangers = 0};
    snprintf(files->root, sizeof files->root, "%s/odd-images",
             root != NULL ? root : "../shared/data");
    if (!stk_path_is_dir(files->root) || stk_dir_read(files->root, &files->list, &err) != STK_OK) {
        return false;
    }
    size_t count = files->list.count;
    files->samples = stk_mem_new(count, sizeof *files->samples);
    files->reasons = stk_mem_new(count, sizeof *files->reasons);
    files->told = stk_mem_new(count, sizeof *files->told);
    files->seen = stk_mem_new(count, sizeof *files->seen);
    for (size_t i = 0; i < count; i++) {
        const char *name = files->list.entries[i].name;
        files->samples[i] = (stk_sample){.path = name, .id = name, .label = (int)(i % 7)};
    }
    return count > 0 && stk_store_open(&files->store, files->root, NULL, NULL, &err) == STK_OK;
}

static void close_files(odd_files *files) {
    for (size_t i = 0; i < files->list.count; i++) {
        stk_mem_free(files->reasons[i]);
    }
    stk_store_close(files->store);
    stk_mem_free(files->samples);
    stk_mem_free(files->reasons);
    stk_mem_free(files->told);
    stk_mem_free(files->seen);
    stk_dir_list_free(&files->list);
}

static void hear(void *user, const char *path, const char *reason) {
    odd_files *files = user;
    for (size_t i = 0; i < files->list.count; i++) {
        if (strcmp(files->samples[i].path, path) == 0) {
            files->told[i]++;
            stk_mem_free(files->reasons[i]);
            files->reasons[i] = stk_mem_strdup(reason);
            return;
        }
    }
    files->strangers++;
}

static stk_loader_config config_of(const odd_files *files, bool train) {
    return (stk_loader_config){
        .store = files->store,
        .samples = files->samples,
        .count = files->list.count,
        .transform = {.size = SIZE,
                      .train = train,
                      .augment = {.crop_scale = 0.1, .flip = true},
                      .crop_fraction = 0.875},
        .batch = BATCH,
        .sizing = {.workers = 2, .slots = 3},
        .seed = 5,
        .order = {.shuffle = train, .replace_bad = train, .epochs = train ? 3 : 1}};
}

/* A sentence is some words, printable, and does not end in the middle. */
static bool is_sentence(const char *text) {
    size_t length = strlen(text);
    for (size_t i = 0; i < length; i++) {
        if ((unsigned char)text[i] < ' ') {
            return false;
        }
    }
    return length >= 12 && strchr(text, ' ') != NULL && text[length - 1] != ' ';
}

/* What decoding alone makes of a file; out is the picture, or the message says why not. */
static stk_status apply(stk_image_scratch *scratch, const odd_files *files, size_t i,
                        const stk_transform *transform, uint64_t number, uint8_t *out,
                        stk_error *err) {
    char *path = stk_path_join(files->root, files->samples[i].path);
    char *bytes = NULL;
    size_t size = 0;
    stk_status status = stk_file_read(path, 0, &bytes, &size, err);
    /* A copy of exactly its size, so that a sanitizer sees what reads behind the end. */
    uint8_t *exact = status == STK_OK ? stk_mem_raw(size, 1) : NULL;
    if (exact != NULL) {
        memcpy(exact, bytes, size);
        stk_rng rng = stk_rng_make(6, STK_RNG_AUGMENT, number, i);
        status = stk_transform_apply(scratch, transform, exact, size, rng, out, NULL, err);
    }
    stk_mem_free(exact);
    stk_mem_free(bytes);
    stk_mem_free(path);
    return status;
}

static void each_is_a_picture_or_a_sentence(void) {
    odd_files files;
    if (!open_files(&files)) {
        CHECK_SKIP("there are no odd-images; set STOKER_DATA");
    }
    stk_error err = {0};
    stk_image_scratch *scratch = NULL;
    uint8_t out[PICTURE_BYTES];
    REQUIRE_OK(stk_image_scratch_new(&scratch, NULL, &err), &err);
    size_t good = 0;
    for (size_t i = 0; i < files.list.count; i++) {
        for (uint64_t number = 0; number < 6; number++) {
            stk_transform transform = config_of(&files, number > 0).transform;
            stk_error_clear(&err);
            stk_status status = apply(scratch, &files, i, &transform, number, out, &err);
            good += number == 0 && status == STK_OK;
            if (status != STK_OK && (status != STK_ERR_DATA || !is_sentence(err.message))) {
                CHECK_FAIL("%s: status %d, \"%s\"", files.samples[i].path, (int)status,
                           err.message);
            }
        }
    }
    CHECK(good * 10 >= files.list.count * 8);
    stk_image_scratch_free(scratch);
    close_files(&files);
}

/* In order, without replacement: the batch has what decoding alone gives, or zeros and a mark. */
static void check_batch(const stk_batch *batch, odd_files *files, stk_image_scratch *scratch,
                        const stk_transform *transform) {
    static const uint8_t zeros[PICTURE_BYTES];
    for (size_t j = 0; j < batch->count; j++) {
        stk_error err = {0};
        uint8_t out[PICTURE_BYTES];
        size_t i = batch->samples[j];
        REQUIRE(i < files->list.count);
        files->seen[i]++;
        bool bad = apply(scratch, files, i, transform, 0, out, &err) != STK_OK;
        if (bad != batch->bad[j]) {
            CHECK_FAIL("%s is %s in the batch", files->samples[i].path,
                       batch->bad[j] ? "bad" : "good");
        } else if (memcmp(batch->images + j * PICTURE_BYTES, bad ? zeros : out, PICTURE_BYTES)) {
            CHECK_FAIL("%s has other pixels in the batch", files->samples[i].path);
        }
        CHECK_INT(batch->labels[j], files->samples[i].label);
    }
}

static void the_loader_says_what_decoding_says(void) {
    odd_files files;
    if (!open_files(&files)) {
        CHECK_SKIP("there are no odd-images; set STOKER_DATA");
    }
    stk_error err = {0};
    stk_image_scratch *scratch = NULL;
    stk_loader *loader = NULL;
    const stk_batch *batch = NULL;
    stk_loader_config config = config_of(&files, false);
    REQUIRE_OK(stk_image_scratch_new(&scratch, NULL, &err), &err);
    REQUIRE_OK(stk_loader_start(&loader, &config, &err), &err);
    while (stk_loader_next(loader, &batch, &err) == STK_OK && batch != NULL) {
        check_batch(batch, &files, scratch, &config.transform);
        stk_loader_release(loader, batch);
    }
    CHECK_STR(err.message, "");
    stk_loader_take_bad(loader, hear, &files);
    CHECK_INT(files.strangers, 0);
    size_t told = 0;
    for (size_t i = 0; i < files.list.count; i++) {
        stk_error reason = {0};
        uint8_t out[PICTURE_BYTES];
        bool bad = apply(scratch, &files, i, &config.transform, 0, out, &reason) != STK_OK;
        CHECK_INT(files.seen[i], 1);
        CHECK_INT(files.told[i], bad);
        if (bad && files.reasons[i] != NULL) {
            CHECK_CONTAINS(files.reasons[i], reason.message);
            CHECK(is_sentence(files.reasons[i]));
        }
        told += bad;
    }
    stk_loader_counters counters = stk_loader_counters_of(loader);
    CHECK_INT(counters.bad, told);
    CHECK(told > 0);
    stk_loader_close(loader);
    stk_image_scratch_free(scratch);
    close_files(&files);
}

/* In training every place has a good picture, and each bad file is told once over all epochs. */
static void training_never_sees_a_bad_picture(void) {
    odd_files files;
    if (!open_files(&files)) {
        CHECK_SKIP("there are no odd-images; set STOKER_DATA");
    }
    stk_error err = {0};
    stk_loader *loader = NULL;
    const stk_batch *batch = NULL;
    stk_loader_config config = config_of(&files, true);
    size_t pictures = 0;
    REQUIRE_OK(stk_loader_start(&loader, &config, &err), &err);
    while (stk_loader_next(loader, &batch, &err) == STK_OK && batch != NULL) {
        for (size_t j = 0; j < batch->count; j++) {
            REQUIRE(!batch->bad[j] && batch->samples[j] < files.list.count);
            files.seen[batch->samples[j]]++;
        }
        pictures += batch->count;
        stk_loader_release(loader, batch);
    }
    CHECK_STR(err.message, "");
    CHECK_INT(pictures, 3 * files.list.count);
    stk_loader_take_bad(loader, hear, &files);
    CHECK_INT(files.strangers, 0);
    for (size_t i = 0; i < files.list.count; i++) {
        if (files.told[i] > 1 || (files.told[i] == 0 && files.seen[i] == 0)) {
            CHECK_FAIL("%s was told %d times and seen %d times", files.samples[i].path,
                       files.told[i], files.seen[i]);
        }
        CHECK(files.told[i] == 0 || is_sentence(files.reasons[i]));
    }
    stk_loader_close(loader);
    close_files(&files);
}

static const check_test tests[] = {
    TEST(each_is_a_picture_or_a_sentence),
    TEST(the_loader_says_what_decoding_says),
    TEST(training_never_sees_a_bad_picture),
};

CHECK_MAIN(tests)
