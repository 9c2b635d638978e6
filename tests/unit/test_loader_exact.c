/* test_loader_exact.c - going to any batch, sharing between machines, sampling by class. */
#include "check.h"
#include "loader_runs.h"

#include "base/error.h"

/* Hashes of every batch of a run, in order; returns how many there were. */
static size_t hash_batches(const stk_loader_config *config, uint64_t *hashes, size_t room) {
    stk_error err = {0};
    stk_loader *loader = NULL;
    const stk_batch *batch = NULL;
    size_t count = 0;
    if (stk_loader_start(&loader, config, &err) != STK_OK) {
        CHECK_FAIL("%s", err.message);
        return 0;
    }
    while (stk_loader_next(loader, &batch, &err) == STK_OK && batch != NULL && count < room) {
        hashes[count++] = hash_batch(HASH_START, batch);
        stk_loader_release(loader, batch);
    }
    CHECK_INT(err.status, STK_OK);
    stk_loader_close(loader);
    return count;
}

/* ---- going to a batch ---- */

static void check_resumed(stk_loader_config config) {
    uint64_t hashes[64];
    size_t all = hash_batches(&config, hashes, 64);
    size_t per_epoch = all / 3;
    REQUIRE(all == 3 * per_epoch && per_epoch > 2);
    for (size_t at = 0; at < all; at++) {
        uint64_t rest[64];
        config.order.first_epoch = at / per_epoch;
        config.order.first_batch = at % per_epoch;
        config.sizing.workers = at % 2 == 0 ? 1 : 8;
        size_t count = hash_batches(&config, rest, 64);
        CHECK_INT(count, all - at);
        CHECK_INT(memcmp(rest, hashes + at, count * sizeof *rest), 0);
    }
}

static void a_run_that_starts_anywhere_shows_the_same(void) {
    check_resumed(config_of(shared_pictures()->samples, 4));
}

/* A picture that is bad must not be remembered as such across epochs: the other run cannot know. */
static void with_bad_pictures_too(void) {
    stk_sample samples[PICTURES];
    copy_samples(samples);
    samples[3].path = "text.jpg";
    samples[4].path = "empty.jpg";
    samples[17].path = NULL;
    check_resumed(config_of(samples, 4));
}

/* A tall picture whose file ends after a third of its rows. */
static void write_cut_picture(const char *path) {
    stk_error err = {0};
    stk_image image = {0};
    uint8_t *bytes = NULL;
    size_t size = 0;
    stk_rng rng = stk_rng_make(1, STK_RNG_TEST, 0, 0);
    must(stk_image_new(&image, 40, 320, &err), &err);
    for (int i = 0; i < image.width * image.height * 3; i++) {
        image.pixels[i] = (uint8_t)stk_rng_below(&rng, 256);
    }
    must(stk_image_encode_jpeg(&image, 90, &bytes, &size, &err), &err);
    must(stk_file_write(path, bytes, size / 3, &err), &err);
    stk_image_free(&image);
    stk_mem_free(bytes);
}

static void note_bad(void *user, const char *path, const char *reason) {
    (void)reason;
    *(bool *)user = *(bool *)user || strcmp(path, "cut.jpg") == 0;
}

/*
 * A file that ends early is good or bad depending on the crop. Which it is must follow from (seed,
 * epoch, place) alone, however often it was met before.
 */
static void with_a_picture_that_is_sometimes_bad(void) {
    stk_sample samples[PICTURES];
    stk_error err = {0};
    stk_loader *loader = NULL;
    const stk_batch *batch = NULL;
    char path[320];
    bool used = false;
    bool was_bad = false;
    copy_samples(samples);
    snprintf(path, sizeof path, "%s/cut.jpg", shared_pictures()->root);
    write_cut_picture(path);
    for (int i = 0; i < 8; i++) {
        samples[i].path = "cut.jpg";
    }
    stk_loader_config config = config_of(samples, 4);
    config.transform.augment.crop_scale = 0.02;
    REQUIRE_OK(stk_loader_start(&loader, &config, &err), &err);
    while (stk_loader_next(loader, &batch, &err) == STK_OK && batch != NULL) {
        for (size_t i = 0; i < batch->count; i++) {
            used = used || batch->samples[i] < 8;
        }
        stk_loader_release(loader, batch);
    }
    stk_loader_take_bad(loader, note_bad, &was_bad);
    stk_loader_close(loader);
    REQUIRE(used && was_bad); /* or the test would show nothing */
    check_resumed(config);
}

static void seek_goes_anywhere_and_back(void) {
    stk_loader_config config = config_of(shared_pictures()->samples, 4);
    static const size_t targets[][2] = {{1, 3}, {0, 0}, {2, 5}, {0, 5}, {1, 3}, {1, 0}};
    uint64_t hashes[64];
    size_t all = hash_batches(&config, hashes, 64);
    stk_error err = {0};
    stk_loader *loader = NULL;
    REQUIRE_OK(stk_loader_start(&loader, &config, &err), &err);
    for (size_t t = 0; t < sizeof targets / sizeof *targets; t++) {
        const stk_batch *batch = NULL;
        size_t at = targets[t][0] * all / 3 + targets[t][1];
        REQUIRE_OK(stk_loader_seek(loader, targets[t][0], targets[t][1], &err), &err);
        for (size_t i = 0; i < t && at < all; i++, at++) {
            REQUIRE_OK(stk_loader_next(loader, &batch, &err), &err);
            REQUIRE(batch != NULL);
            CHECK(hash_batch(HASH_START, batch) == hashes[at]);
            if (i + 1 < t) { /* the last one is still held when seek comes */
                stk_loader_release(loader, batch);
            }
        }
        if (batch != NULL) {
            REQUIRE_OK(stk_loader_seek(loader, 0, 1, &err), &err);
            stk_loader_release(loader, batch); /* became invalid: nothing happens */
        }
    }
    REQUIRE_OK(stk_loader_seek(loader, 2, 0, &err), &err);
    uint64_t rest = HASH_START;
    const stk_batch *batch = NULL;
    size_t count = 0;
    while (stk_loader_next(loader, &batch, &err) == STK_OK && batch != NULL) {
        rest = hash_batch(HASH_START, batch);
        count++;
        stk_loader_release(loader, batch);
    }
    CHECK_INT(count, all / 3);
    CHECK(rest == hashes[all - 1]);
    /* From the end back into the stream, and beyond the end. */
    REQUIRE_OK(stk_loader_seek(loader, 0, 0, &err), &err);
    REQUIRE_OK(stk_loader_next(loader, &batch, &err), &err);
    REQUIRE(batch != NULL);
    CHECK(hash_batch(HASH_START, batch) == hashes[0]);
    REQUIRE_OK(stk_loader_seek(loader, 3, 0, &err), &err);
    REQUIRE_OK(stk_loader_next(loader, &batch, &err), &err);
    CHECK(batch == NULL);
    stk_loader_close(loader);
}

static void a_batch_that_there_is_not_is_refused(void) {
    stk_loader_config config = config_of(shared_pictures()->samples, 4);
    stk_error err = {0};
    stk_loader *loader = NULL;
    const stk_batch *batch = NULL;
    REQUIRE_OK(stk_loader_start(&loader, &config, &err), &err);
    CHECK_INT(stk_loader_seek(loader, 0, 6, &err), STK_ERR_USAGE);
    CHECK_CONTAINS(err.message, "6 batches");
    stk_error_clear(&err);
    CHECK_INT(stk_loader_seek(loader, UINT64_MAX / 6 + 1, 1, &err), STK_ERR_USAGE);
    CHECK_CONTAINS(err.message, "no epoch");
    stk_error_clear(&err);
    REQUIRE_OK(stk_loader_next(loader, &batch, &err), &err);
    CHECK(batch != NULL && batch->index == 0);
    stk_loader_close(loader);
    config.order.first_batch = 6;
    CHECK_INT(stk_loader_start(&loader, &config, &err), STK_ERR_USAGE);
}

/* ---- many machines ---- */

static void machines_share_an_epoch(void) {
    for (size_t world = 1; world <= 5; world++) {
        for (int drop = 0; drop < 2; drop++) {
            int seen[PICTURES] = {0};
            size_t batches = 0;
            for (size_t rank = 0; rank < world; rank++) {
                stk_loader_config config = config_of(shared_pictures()->samples, 2);
                stk_error err = {0};
                stk_loader *loader = NULL;
                const stk_batch *batch = NULL;
                stk_loader_info info;
                config.rank = rank;
                config.world = world;
                config.order.drop_last = drop == 1;
                config.order.epochs = 1;
                REQUIRE_OK(stk_loader_start(&loader, &config, &err), &err);
                info = stk_loader_info_of(loader);
                while (stk_loader_next(loader, &batch, &err) == STK_OK && batch != NULL) {
                    for (size_t i = 0; i < batch->count; i++) {
                        seen[batch->samples[i]]++;
                    }
                    stk_loader_release(loader, batch);
                }
                if (drop == 1 && rank > 0) {
                    CHECK_INT(info.batches_per_epoch, batches); /* all take as many steps */
                }
                batches = info.batches_per_epoch;
                stk_loader_close(loader);
            }
            size_t once = 0;
            for (size_t i = 0; i < PICTURES; i++) {
                CHECK(seen[i] <= 1);
                once += (size_t)seen[i];
            }
            CHECK_INT(once, drop == 1 ? world * batches * 2 : PICTURES);
        }
    }
}

static void a_rank_outside_of_the_world_is_refused(void) {
    stk_loader_config config = config_of(shared_pictures()->samples, 2);
    stk_error err = {0};
    stk_loader *loader = NULL;
    config.rank = 3;
    config.world = 3;
    CHECK_INT(stk_loader_start(&loader, &config, &err), STK_ERR_USAGE);
    CHECK_CONTAINS(err.message, "rank 3");
    stk_error_clear(&err);
    config.rank = 30;
    config.world = 40;
    config.order.drop_last = true;
    CHECK_INT(stk_loader_start(&loader, &config, &err), STK_ERR_DATA);
    CHECK_CONTAINS(err.message, "too few");
}

/* ---- memory that is handed in, and held batches ---- */

typedef struct lender {
    size_t taken, given;
    size_t bytes;
    size_t most; /* blocks that it has; 0: as many as are wanted */
} lender;

static void *lend(void *user, size_t bytes) {
    lender *l = user;
    if (l->most > 0 && l->taken == l->most) {
        return NULL;
    }
    l->taken++;
    l->bytes = bytes;
    return malloc(bytes);
}

static void get_back(void *user, void *block) {
    lender *l = user;
    l->given++;
    free(block);
}

static void slots_lie_in_memory_that_is_handed_in(void) {
    stk_loader_config config = config_of(shared_pictures()->samples, 4);
    lender lends = {0};
    uint64_t plain = hash_run(&config);
    config.memory = (stk_loader_memory){.user = &lends, .take = lend, .give = get_back};
    CHECK(hash_run(&config) == plain);
    CHECK_INT(lends.taken, 3);
    CHECK_INT(lends.given, 3);
    CHECK_INT(lends.bytes, 4 * SIZE * SIZE * 3);
    /* Two blocks are enough to go on with. */
    lends = (lender){.most = 2};
    CHECK(hash_run(&config) == plain);
    CHECK_INT(lends.taken, 2);
    CHECK_INT(lends.given, 2);
    lends = (lender){.most = 1};
    stk_error err = {0};
    stk_loader *loader = NULL;
    const stk_batch *batch = NULL;
    REQUIRE_OK(stk_loader_start(&loader, &config, &err), &err);
    stk_status status = STK_OK;
    while (status == STK_OK && (status = stk_loader_next(loader, &batch, &err)) == STK_OK) {
        stk_loader_release(loader, batch);
    }
    CHECK_INT(status, STK_ERR_MEMORY);
    CHECK_CONTAINS(err.message, "--batch");
    stk_loader_close(loader);
    CHECK_INT(lends.given, 1);
}

static void who_holds_all_batches_is_told(void) {
    stk_loader_config config = config_of(shared_pictures()->samples, 4);
    stk_error err = {0};
    stk_loader *loader = NULL;
    const stk_batch *held[4] = {NULL};
    REQUIRE_OK(stk_loader_start(&loader, &config, &err), &err);
    for (int i = 0; i < 3; i++) {
        REQUIRE_OK(stk_loader_next(loader, &held[i], &err), &err);
    }
    CHECK_INT(stk_loader_next(loader, &held[3], &err), STK_ERR_USAGE);
    CHECK_CONTAINS(err.message, "all 3 batches");
    stk_error_clear(&err);
    stk_loader_release(loader, held[1]);
    REQUIRE_OK(stk_loader_next(loader, &held[3], &err), &err);
    CHECK(held[3] != NULL && held[3]->index == 3);
    stk_loader_close(loader);
}

/* ---- too many bad pictures ---- */

static void too_many_bad_pictures_end_the_stream(void) {
    static const int workers[] = {1, 4};
    for (size_t w = 0; w < 2; w++) {
        stk_sample samples[PICTURES];
        stk_error err = {0};
        stk_loader *loader = NULL;
        const stk_batch *batch = NULL;
        copy_samples(samples);
        samples[2].path = samples[9].path = samples[20].path = "text.jpg";
        stk_loader_config config = config_of(samples, 4);
        config.sizing.workers = workers[w];
        config.stop_after_bad = 4;
        CHECK(hash_run(&config) != 0); /* three are fine */
        config.stop_after_bad = 3;
        REQUIRE_OK(stk_loader_start(&loader, &config, &err), &err);
        stk_status status = STK_OK;
        while ((status = stk_loader_next(loader, &batch, &err)) == STK_OK && batch != NULL) {
            stk_loader_release(loader, batch);
        }
        CHECK_INT(status, STK_ERR_DATA);
        CHECK_CONTAINS(err.message, "3 of 23 images");
        CHECK_CONTAINS(err.message, "--max-bad");
        CHECK_CONTAINS(err.message, "text.jpg");
        stk_loader_close(loader);
    }
}

static void limits_of_bad_pictures(void) {
    static const struct {
        double percent;
        size_t count;
        size_t limit;
    } cases[] = {{NAN, 1000, 51}, {NAN, 79, 4},  {NAN, 80, 5},  {NAN, 1, 4},
                 {5, 1000, 51},   {5, 20, 2},    {5, 19, 1},    {0, 1000, 1},
                 {0, 1, 1},       {100, 10, 11}, {0.1, 100, 1}, {50, 3, 2}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        stk_loader_options options = {.max_bad = cases[i].percent};
        CHECK_INT(stk_loader_bad_limit(&options, cases[i].count), cases[i].limit);
    }
}

static const check_test tests[] = {
    TEST(a_run_that_starts_anywhere_shows_the_same),
    TEST(with_bad_pictures_too),
    TEST(with_a_picture_that_is_sometimes_bad),
    TEST(seek_goes_anywhere_and_back),
    TEST(a_batch_that_there_is_not_is_refused),
    TEST(machines_share_an_epoch),
    TEST(a_rank_outside_of_the_world_is_refused),
    TEST(slots_lie_in_memory_that_is_handed_in),
    TEST(who_holds_all_batches_is_told),
    TEST(too_many_bad_pictures_end_the_stream),
    TEST(limits_of_bad_pictures),
};

CHECK_MAIN(tests)
