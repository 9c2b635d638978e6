/*
 * test_loader_slow.c - a loader among whose pictures some take very long to decode: it can be left
 * at any time, and the others do not wait for them. A program of its own: it replaces
 * jpeg_start_decompress().
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>

#include "image_files.h"
#include "loader_runs.h"

#include "base/clock.h"

#define SLOW 5 /* the sample that is slow */

/*
 * Far more than a small picture takes, far less than the slow one. A picture is also slow after so
 * long on the wall clock if it has used an eighth of that as CPU time, which with a sanitizer on a
 * busy machine a small picture may well do in 0.3 s.
 */
#ifdef CHECK_SANITIZED
#define SLOW_AFTER_S 0.8
#else
#define SLOW_AFTER_S 0.3
#endif

/* The list of the shared pictures, one of which is slow. */
static void slow_samples(stk_sample *samples) {
    static bool written;
    static char path[] = "slow.png";
    copy_samples(samples);
    if (!written) {
        char full[512];
        stk_error err = {0};
        blob png = make_slow_png();
        snprintf(full, sizeof full, "%s/%s", shared_pictures()->root, path);
        must(stk_file_write(full, png.bytes, png.size, &err), &err);
        free_blob(&png);
        written = true;
    }
    samples[SLOW].path = path;
}

static stk_loader_config evaluation_of(const stk_sample *samples, size_t batch) {
    stk_loader_config config = config_of(samples, batch);
    config.transform = (stk_transform){.size = SIZE, .crop_fraction = 1};
    config.order.shuffle = false;
    config.order.replace_bad = false;
    config.order.epochs = 1;
    config.slow_after_ns = (int64_t)(SLOW_AFTER_S * 1e9);
    return config;
}

/* ---- putting aside ---- */

static void slow_pictures_are_put_aside(void) {
    stk_sample samples[PICTURES];
    stk_error err = {0};
    stk_loader *loader = NULL;
    const stk_batch *batch = NULL;
    slow_samples(samples);
    stk_loader_config config = evaluation_of(samples, 4);
    size_t indices[PICTURES];
    for (size_t i = 0; i < PICTURES; i++) {
        indices[i] = PICTURES - 1 - i;
    }
    config.indices = indices;
    REQUIRE_OK(stk_loader_start(&loader, &config, &err), &err);
    size_t seen = 0;
    while (stk_loader_next(loader, &batch, &err) == STK_OK && batch != NULL) {
        for (size_t i = 0; i < batch->count; i++, seen++) {
            CHECK_INT(batch->bad[i], batch->samples[i] == SLOW);
            CHECK_INT(stk_loader_entries(batch)[i], seen);
            CHECK_INT(batch->samples[i], indices[seen]);
        }
        stk_loader_release(loader, batch);
    }
    CHECK_INT(err.status, STK_OK);
    CHECK_INT(seen, PICTURES);
    size_t entries[2] = {0};
    CHECK_INT(stk_loader_put_aside_count(loader), 1);
    CHECK_INT(stk_loader_take_put_aside(loader, entries, 2), 1);
    CHECK_INT(entries[0], PICTURES - 1 - SLOW);
    CHECK_INT(stk_loader_take_put_aside(loader, entries, 2), 0);
    stk_loader_counters counters = stk_loader_counters_of(loader);
    CHECK_INT(counters.bad, 0); /* it is not bad */
    stk_loader_close(loader);
}

/* In training another one takes its place, as if it were bad, but it does not end the run. */
static void note_reason(void *user, const char *path, const char *reason) {
    int *told = user;
    CHECK_STR(path, "slow.png");
    char expected[60];
    snprintf(expected, sizeof expected, "takes more than %.2g s to decode", (double)SLOW_AFTER_S);
    CHECK_CONTAINS(reason, expected);
    (*told)++;
}

static void training_goes_on_without_slow_pictures(void) {
    stk_sample samples[PICTURES];
    stk_error err = {0};
    stk_loader *loader = NULL;
    const stk_batch *batch = NULL;
    int told = 0;
    slow_samples(samples);
    stk_loader_config config = config_of(samples, 4);
    config.slow_after_ns = (int64_t)(SLOW_AFTER_S * 1e9);
    config.stop_after_bad = 1;
    REQUIRE_OK(stk_loader_start(&loader, &config, &err), &err);
    size_t seen = 0;
    while (stk_loader_next(loader, &batch, &err) == STK_OK && batch != NULL) {
        for (size_t i = 0; i < batch->count; i++, seen++) {
            CHECK(!batch->bad[i] && batch->samples[i] != SLOW);
        }
        stk_loader_release(loader, batch);
    }
    CHECK_INT(err.status, STK_OK);
    CHECK_INT(seen, PICTURES * config.order.epochs);
    stk_loader_take_bad(loader, note_reason, &told);
    CHECK_INT(told, 1);
    stk_loader_close(loader);
}

/* Where all are large none is slow: the limit grows until they come. */
static void large_pictures_are_not_slow_among_their_like(void) {
    enum { COUNT = 40 };
    stk_sample samples[COUNT];
    stk_error err = {0};
    stk_loader *loader = NULL;
    const stk_batch *batch = NULL;
    static char path[] = "large.png";
    char full[512];
    blob png = make_flat_png(1500, 1500, PNG_INTERLACE_NONE);
    snprintf(full, sizeof full, "%s/%s", shared_pictures()->root, path);
    must(stk_file_write(full, png.bytes, png.size, &err), &err);
    free_blob(&png);
    for (int i = 0; i < COUNT; i++) {
        samples[i] = (stk_sample){.path = path, .id = path};
    }
    stk_loader_config config = evaluation_of(samples, 4);
    config.count = COUNT;
    config.slow_after_ns = 100000;
    REQUIRE_OK(stk_loader_start(&loader, &config, &err), &err);
    while (stk_loader_next(loader, &batch, &err) == STK_OK && batch != NULL) {
        stk_loader_release(loader, batch);
    }
    stk_loader_counters counters = stk_loader_counters_of(loader);
    size_t put_aside = stk_loader_put_aside_count(loader);
    CHECK_INT(err.status, STK_OK);
    CHECK_INT(put_aside + counters.images, COUNT);
    CHECK(put_aside > 0);
    stk_loader_close(loader);
}

/* ---- leaving while a picture is decoded ---- */

/* There are more workers than pictures that may be under way: one that was read is in work. */
static void wait_until_decoding(stk_loader *loader) {
    stk_loader_counters counters;
    do {
        usleep(1000);
        counters = stk_loader_counters_of(loader);
    } while (counters.read_bytes == 0 || counters.reads_in_flight > 0 || counters.reads_ready > 0);
}

/* Seconds of a loader's life until the first batch is there, or until it is left before. */
static double live(const stk_loader_config *config, bool whole, bool seeks) {
    stk_error err = {0};
    stk_loader *loader = NULL;
    const stk_batch *batch = NULL;
    int64_t start = stk_clock_ns();
    must(stk_loader_start(&loader, config, &err), &err);
    if (whole) {
        CHECK_INT(stk_loader_next(loader, &batch, &err), STK_OK);
        double seconds = stk_clock_since_s(start);
        stk_loader_close(loader);
        return seconds;
    }
    wait_until_decoding(loader);
    start = stk_clock_ns();
    if (seeks) {
        CHECK_INT(stk_loader_seek(loader, 3, 0, &err), STK_OK);
    }
    stk_loader_close(loader);
    return stk_clock_since_s(start);
}

/* Without a limit, so that the picture would be decoded as a whole, which takes longer. */
static void closing_and_seeking_cancel_decoding(void) {
    stk_sample samples[PICTURES];
    slow_samples(samples);
    size_t only_slow[1] = {SLOW};
    stk_loader_config config = evaluation_of(samples, 1);
    config.indices = only_slow;
    config.count = 1;
    config.slow_after_ns = 0;
    config.order.epochs = 0;
    config.sizing = (stk_loader_sizing){.workers = 3, .slots = 2};
    double left_s = live(&config, false, false) + live(&config, false, true);
#ifndef CHECK_SANITIZED /* one sees to it that this takes a minute */
    double whole_s = live(&config, true, false);
    if (left_s > whole_s) {
        CHECK_FAIL("leaving took %.2f s, decoding takes %.2f s", left_s, whole_s);
    }
#endif
    CHECK(left_s > 0);
}

/* ---- what cannot be interrupted ---- */

static pthread_mutex_t door_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t door = PTHREAD_COND_INITIALIZER;
static bool door_shut;   /* nobody comes out of libjpeg; door_lock */
static int door_waiting; /* workers in front of the door; door_lock */
static int door_passed;  /* workers that came through it; door_lock */

/* Stands in for libjpeg's own, which it calls. */
boolean jpeg_start_decompress(j_decompress_ptr cinfo) {
    boolean (*own)(j_decompress_ptr) = NULL;
    *(void **)&own = dlsym(RTLD_NEXT, "jpeg_start_decompress");
    pthread_mutex_lock(&door_lock);
    door_waiting++;
    pthread_cond_broadcast(&door);
    while (door_shut) {
        pthread_cond_wait(&door, &door_lock);
    }
    door_waiting--;
    door_passed++;
    pthread_mutex_unlock(&door_lock);
    return own(cinfo);
}

/* Memory that is filled with a sign when it is given back, and looked at later. */
typedef struct lent {
    uint8_t *block;
    size_t bytes;
    bool back;
} lent;

static void *lend(void *user, size_t bytes) {
    lent *all = user;
    int i = 0;
    while (all[i].block != NULL) {
        i++;
    }
    all[i] = (lent){stk_mem_new(bytes, 1), bytes, false};
    return all[i].block;
}

static void take_back(void *user, void *block) {
    lent *all = user;
    int i = 0;
    while (all[i].block != block) {
        i++;
    }
    all[i].back = true;
    memset(block, 0xEE, all[i].bytes);
}

/* Opens the door in the end in any case, so that a loader that waits is a failure and no hang. */
static void *open_late(void *user) {
    for (int i = 0; i < 100 && !atomic_load((atomic_bool *)user); i++) {
        usleep(100000);
    }
    pthread_mutex_lock(&door_lock);
    door_shut = false;
    pthread_cond_broadcast(&door);
    pthread_mutex_unlock(&door_lock);
    return NULL;
}

/* All that the loader borrows goes while its workers are inside; then they come out. */
static void leave_workers(bool lends) {
    stk_error err = {0};
    stk_loader *loader = NULL;
    lent blocks[16] = {{0}};
    atomic_bool closed = false;
    picture_set set = make_pictures(check_folder(), PICTURES);
    stk_loader_config config = evaluation_of(set.samples, 4);
    config.store = set.store;
    if (lends) {
        config.memory = (stk_loader_memory){blocks, lend, take_back};
    }
    pthread_t late;
    pthread_mutex_lock(&door_lock);
    door_shut = true;
    int passed = door_passed;
    pthread_mutex_unlock(&door_lock);
    REQUIRE_OK(stk_loader_start(&loader, &config, &err), &err);
    pthread_mutex_lock(&door_lock);
    while (door_waiting < 2) { /* both workers */
        pthread_cond_wait(&door, &door_lock);
    }
    pthread_mutex_unlock(&door_lock);
    REQUIRE(pthread_create(&late, NULL, open_late, &closed) == 0);
    stk_loader_close(loader);
    pthread_mutex_lock(&door_lock);
    CHECK(door_shut && door_waiting == 2);
    pthread_mutex_unlock(&door_lock);
    free_pictures(&set);
    atomic_store(&closed, true);
    pthread_join(late, NULL);
    pthread_mutex_lock(&door_lock);
    while (door_passed < passed + 2) {
        pthread_mutex_unlock(&door_lock);
        usleep(1000);
        pthread_mutex_lock(&door_lock);
    }
    pthread_mutex_unlock(&door_lock);
    usleep(50000); /* they end behind the door */
    for (int i = 0; i < 16 && blocks[i].block != NULL; i++) {
        CHECK(blocks[i].back);
        for (size_t b = 0; b < blocks[i].bytes; b++) {
            if (blocks[i].block[b] != 0xEE) {
                CHECK_FAIL("a worker has written to memory that was given back");
                break;
            }
        }
        stk_mem_free(blocks[i].block);
    }
}

static void workers_inside_a_library_are_left_behind(void) {
    leave_workers(false);
    leave_workers(true);
}

static const check_test tests[] = {
    TEST(slow_pictures_are_put_aside),
    TEST(training_goes_on_without_slow_pictures),
    TEST(large_pictures_are_not_slow_among_their_like),
    TEST(closing_and_seeking_cancel_decoding),
    TEST(workers_inside_a_library_are_left_behind),
};

CHECK_MAIN(tests)
