/* loader_runs.h - a small set of pictures and runs of a loader over it, for the loader's tests. */
#ifndef STK_TESTS_LOADER_RUNS_H
#define STK_TESTS_LOADER_RUNS_H

#include "check.h"
#include "small_pictures.h"

#include "loader/loader.h"

#define PICTURES 23
#ifndef SIZE
#define SIZE 12
#endif

static picture_set pictures; /* made once; tests copy the list where they change it */

static inline const picture_set *shared_pictures(void) {
    if (pictures.samples == NULL) {
        pictures = make_pictures(check_folder(), PICTURES);
        write_text(pictures.root, "text.jpg", "this is no picture");
        write_text(pictures.root, "empty.jpg", "");
    }
    return &pictures;
}

static inline stk_loader_config config_of(const stk_sample *samples, size_t batch) {
    return (stk_loader_config){
        .store = shared_pictures()->store,
        .samples = samples,
        .count = PICTURES,
        .transform = {.size = SIZE, .train = true, .augment = {.crop_scale = 0.4, .flip = true}},
        .batch = batch,
        .sizing = {.workers = 2, .slots = 3},
        .seed = 7,
        .order = {.shuffle = true, .replace_bad = true, .epochs = 3}};
}

/* A copy of the list, to be spoilt. */
static inline void copy_samples(stk_sample *out) {
    memcpy(out, shared_pictures()->samples, PICTURES * sizeof *out);
}

/* What a consumer sees of a batch, as one number that goes on from `hash`. */
static inline uint64_t hash_batch(uint64_t hash, const stk_batch *batch) {
    hash = hash_bytes(hash, batch->images, batch->count * SIZE * SIZE * 3);
    hash = hash_bytes(hash, batch->labels, batch->count * sizeof *batch->labels);
    hash = hash_bytes(hash, batch->samples, batch->count * sizeof *batch->samples);
    hash = hash_bytes(hash, batch->bad, batch->count * sizeof *batch->bad);
    hash = hash_bytes(hash, &batch->epoch, sizeof batch->epoch);
    return hash_bytes(hash, &batch->index, sizeof batch->index);
}

/* Everything that is left of a stream, as one number; 0 after an error. */
static inline uint64_t hash_rest(stk_loader *loader) {
    stk_error err = {0};
    const stk_batch *batch = NULL;
    uint64_t hash = HASH_START;
    while (stk_loader_next(loader, &batch, &err) == STK_OK && batch != NULL) {
        hash = hash_batch(hash, batch);
        stk_loader_release(loader, batch);
    }
    if (err.status != STK_OK) {
        CHECK_FAIL("%s", err.message);
        return 0;
    }
    return hash;
}

/* The same of a loader that is opened and closed for it. */
static inline uint64_t hash_run(const stk_loader_config *config) {
    stk_error err = {0};
    stk_loader *loader = NULL;
    if (stk_loader_start(&loader, config, &err) != STK_OK) {
        CHECK_FAIL("%s", err.message);
        return 0;
    }
    uint64_t hash = hash_rest(loader);
    stk_loader_close(loader);
    return hash;
}

#endif
