/* test_loader.c - batches are the same however many threads make them, and every way to end. */
#include "check.h"
#include "loader_runs.h"
#include "scripted_place.h"

#include <limits.h>
#include <math.h>

/* Which sample stood at each place of all epochs; returns how many there were. */
static size_t list_run(const stk_loader_config *config, size_t *samples, size_t room) {
    stk_error err = {0};
    stk_loader *loader = NULL;
    const stk_batch *batch = NULL;
    size_t count = 0;
    if (stk_loader_start(&loader, config, &err) != STK_OK) {
        CHECK_FAIL("%s", err.message);
        return 0;
    }
    while (stk_loader_next(loader, &batch, &err) == STK_OK && batch != NULL) {
        for (size_t i = 0; i < batch->count && count < room; i++) {
            samples[count++] = batch->samples[i];
            CHECK_INT(batch->labels[i], config->samples[batch->samples[i]].label);
        }
        stk_loader_release(loader, batch);
    }
    CHECK_INT(err.status, STK_OK);
    stk_loader_close(loader);
    return count;
}

typedef struct told {
    size_t count;
    char paths[64][64];
    char reasons[64][256];
} told;

static void hear(void *user, const char *path, const char *reason) {
    told *t = user;
    if (t->count < 64) {
        snprintf(t->paths[t->count], sizeof t->paths[0], "%s", path);
        snprintf(t->reasons[t->count], sizeof t->reasons[0], "%s", reason);
        t->count++;
    }
}

static const char *reason_of(const told *t, const char *path) {
    for (size_t i = 0; i < t->count; i++) {
        if (strcmp(t->paths[i], path) == 0) {
            return t->reasons[i];
        }
    }
    return NULL;
}

/* ---- the same bytes ---- */

static const struct {
    int workers;
    int slots;
} crews[] = {{1, 2}, {1, 7}, {2, 2}, {2, 5}, {8, 2}, {8, 3}, {8, 16}};

static void check_crews(stk_loader_config config) {
    uint64_t first = 0;
    for (size_t i = 0; i < sizeof crews / sizeof *crews; i++) {
        config.sizing.workers = crews[i].workers;
        config.sizing.slots = crews[i].slots;
        uint64_t hash = hash_run(&config);
        first = i == 0 ? hash : first;
        if (hash != first) {
            CHECK_FAIL("%d workers and %d slots give other bytes", config.sizing.workers,
                       config.sizing.slots);
        }
    }
}

static void same_bytes_for_any_crew(void) {
    stk_loader_config config = config_of(shared_pictures()->samples, 4);
    check_crews(config);
    config.transform.train = false;
    config.order.shuffle = false;
    config.order.replace_bad = false;
    check_crews(config);
}

static void same_bytes_for_any_crew_with_bad_samples(void) {
    stk_sample samples[PICTURES];
    copy_samples(samples);
    samples[0].path = "text.jpg";
    samples[5].path = "empty.jpg";
    samples[6].path = "not-there.jpg";
    samples[22].path = "text.jpg";
    stk_loader_config config = config_of(samples, 4);
    check_crews(config);
    config.order.replace_bad = false;
    check_crews(config);
}

static void seed_changes_order_and_pixels(void) {
    stk_loader_config config = config_of(shared_pictures()->samples, 4);
    uint64_t with_shuffle = hash_run(&config);
    config.seed = 8;
    CHECK(hash_run(&config) != with_shuffle);
    config.order.shuffle = false;
    uint64_t in_order = hash_run(&config);
    config.seed = 7;
    CHECK(hash_run(&config) != in_order); /* other crops of the same pictures */
    config.transform.train = false;
    uint64_t centre = hash_run(&config);
    config.seed = 8;
    CHECK(hash_run(&config) == centre); /* evaluation draws nothing */
}

/* ---- order ---- */

static void shuffle_is_a_new_permutation_each_epoch(void) {
    stk_loader_config config = config_of(shared_pictures()->samples, 4);
    size_t samples[3 * PICTURES];
    REQUIRE(list_run(&config, samples, 3 * PICTURES) == 3 * PICTURES);
    for (size_t epoch = 0; epoch < 3; epoch++) {
        bool seen[PICTURES] = {false};
        for (size_t i = 0; i < PICTURES; i++) {
            seen[samples[epoch * PICTURES + i]] = true;
        }
        for (size_t i = 0; i < PICTURES; i++) {
            CHECK(seen[i]);
        }
    }
    size_t bytes = PICTURES * sizeof *samples;
    CHECK(memcmp(samples, samples + PICTURES, bytes) != 0);
    CHECK(memcmp(samples, samples + 2 * PICTURES, bytes) != 0);
    CHECK(memcmp(samples + PICTURES, samples + 2 * PICTURES, bytes) != 0);
}

static void without_shuffle_in_order(void) {
    stk_loader_config config = config_of(shared_pictures()->samples, 5);
    size_t samples[3 * PICTURES];
    config.order.shuffle = false;
    REQUIRE(list_run(&config, samples, 3 * PICTURES) == 3 * PICTURES);
    for (size_t i = 0; i < 3 * PICTURES; i++) {
        CHECK_INT(samples[i], i % PICTURES);
    }
}

/* Each picture has its place in the batch, and its value is the mean of its colours. */
static void batches_of_grey(void) {
    static uint8_t rgb[PICTURES * SIZE * SIZE * 3];
    stk_loader_config config = config_of(shared_pictures()->samples, PICTURES);
    config.transform.train = false;
    config.order.shuffle = false;
    config.order.epochs = 1;
    for (int channels = 3; channels >= 1; channels -= 2) {
        stk_error err = {0};
        stk_loader *loader = NULL;
        const stk_batch *batch = NULL;
        config.transform.channels = channels;
        REQUIRE_OK(stk_loader_start(&loader, &config, &err), &err);
        CHECK_INT(stk_loader_info_of(loader).channels, channels);
        REQUIRE_OK(stk_loader_next(loader, &batch, &err), &err);
        REQUIRE(batch != NULL && batch->count == PICTURES);
        for (size_t i = 0; channels == 1 && i < (size_t)PICTURES * SIZE * SIZE; i++) {
            double grey = 0.299 * rgb[3 * i] + 0.587 * rgb[3 * i + 1] + 0.114 * rgb[3 * i + 2];
            if (fabs(grey - batch->images[i]) > 12) {
                CHECK_FAIL("value %zu is %d instead of %.0f", i, batch->images[i], grey);
                break;
            }
        }
        if (channels == 3) {
            memcpy(rgb, batch->images, sizeof rgb);
        }
        stk_loader_release(loader, batch);
        stk_loader_close(loader);
    }
}

static void indices_choose_samples(void) {
    static const size_t indices[] = {20, 3, 9, 10, 1};
    stk_loader_config config = config_of(shared_pictures()->samples, 2);
    size_t samples[15];
    config.indices = indices;
    config.count = 5;
    config.order.shuffle = false;
    REQUIRE(list_run(&config, samples, 15) == 15);
    for (size_t i = 0; i < 15; i++) {
        CHECK_INT(samples[i], indices[i % 5]);
    }
    config.order.shuffle = true;
    REQUIRE(list_run(&config, samples, 15) == 15);
    size_t sum = 0;
    for (size_t i = 0; i < 5; i++) {
        sum += samples[i];
    }
    CHECK_INT(sum, 43);
}

/* ---- how an epoch is divided ---- */

static void batches_of_an_epoch(void) {
    static const struct {
        size_t count;
        size_t batch;
        bool drop;
        size_t batches;
        size_t last; /* samples in the last batch of an epoch */
    } cases[] = {
        {23, 4, false, 6, 3}, {23, 4, true, 5, 4},  {20, 4, false, 5, 4}, {20, 4, true, 5, 4},
        {3, 4, false, 1, 3},  {3, 4, true, 1, 3},   {4, 4, true, 1, 4},   {5, 4, true, 1, 4},
        {1, 1, true, 1, 1},   {1, 64, false, 1, 1}, {7, 1, true, 7, 1},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        stk_loader_config config = config_of(shared_pictures()->samples, cases[c].batch);
        stk_error err = {0};
        stk_loader *loader = NULL;
        config.count = cases[c].count;
        config.order.drop_last = cases[c].drop;
        config.order.epochs = 2;
        REQUIRE_OK(stk_loader_start(&loader, &config, &err), &err);
        stk_loader_info info = stk_loader_info_of(loader);
        CHECK_INT(info.batches_per_epoch, cases[c].batches);
        for (size_t i = 0; i < 2 * cases[c].batches; i++) {
            const stk_batch *batch = NULL;
            REQUIRE_OK(stk_loader_next(loader, &batch, &err), &err);
            REQUIRE(batch != NULL);
            bool last = (i + 1) % cases[c].batches == 0;
            CHECK_INT(batch->count, last ? cases[c].last : cases[c].batch);
            CHECK_INT(batch->epoch, i / cases[c].batches);
            CHECK_INT(batch->index, i % cases[c].batches);
            stk_loader_release(loader, batch);
        }
        for (int again = 0; again < 2; again++) {
            const stk_batch *batch = (const stk_batch *)&err;
            CHECK_INT(stk_loader_next(loader, &batch, &err), STK_OK);
            CHECK(batch == NULL);
        }
        stk_loader_close(loader);
    }
}

static void epochs_zero_goes_on(void) {
    stk_loader_config config = config_of(shared_pictures()->samples, PICTURES);
    stk_error err = {0};
    stk_loader *loader = NULL;
    config.order.epochs = 0;
    REQUIRE_OK(stk_loader_start(&loader, &config, &err), &err);
    for (uint64_t i = 0; i < 9; i++) {
        const stk_batch *batch = NULL;
        REQUIRE_OK(stk_loader_next(loader, &batch, &err), &err);
        REQUIRE(batch != NULL);
        CHECK_INT(batch->epoch, i);
        stk_loader_release(loader, batch);
    }
    stk_loader_close(loader);
}

/* ---- samples that cannot be used ---- */

static void bad_samples_are_replaced_by_the_next(void) {
    stk_sample samples[PICTURES];
    size_t whole[3 * PICTURES];
    size_t spoilt[3 * PICTURES];
    copy_samples(samples);
    stk_loader_config config = config_of(samples, 4);
    REQUIRE(list_run(&config, whole, 3 * PICTURES) == 3 * PICTURES);
    bool bad[PICTURES] = {false};
    bad[3] = bad[11] = true;
    bad[whole[PICTURES - 1]] = true; /* the last of the first epoch: its place goes to the first */
    for (size_t i = 0; i < PICTURES; i++) {
        samples[i].path = bad[i] ? "text.jpg" : samples[i].path;
    }
    REQUIRE(list_run(&config, spoilt, 3 * PICTURES) == 3 * PICTURES);
    for (size_t i = 0; i < 3 * PICTURES; i++) {
        size_t epoch = i / PICTURES * PICTURES;
        size_t place = i % PICTURES;
        while (bad[whole[epoch + place]]) {
            place = (place + 1) % PICTURES;
        }
        CHECK_INT(spoilt[i], whole[epoch + place]);
    }
}

static void bad_samples_are_told_once(void) {
    stk_sample samples[PICTURES];
    stk_error err = {0};
    stk_loader *loader = NULL;
    told heard = {0};
    copy_samples(samples);
    samples[2].path = "text.jpg";
    samples[3].path = "empty.jpg";
    samples[19].path = "not-there.jpg";
    samples[20].path = NULL;
    stk_loader_config config = config_of(samples, 4);
    config.sizing.workers = 8;
    config.order.epochs = 0;
    REQUIRE_OK(stk_loader_start(&loader, &config, &err), &err);
    for (int i = 0; i < 20; i++) {
        const stk_batch *batch = NULL;
        REQUIRE_OK(stk_loader_next(loader, &batch, &err), &err);
        for (size_t k = 0; k < batch->count; k++) {
            CHECK(!batch->bad[k]);
            CHECK(batch->samples[k] != 2 && batch->samples[k] != 3 && batch->samples[k] != 19 &&
                  batch->samples[k] != 20);
        }
        stk_loader_release(loader, batch);
        stk_loader_take_bad(loader, hear, &heard);
    }
    CHECK_INT(heard.count, 3);
    stk_loader_counters counters = stk_loader_counters_of(loader);
    CHECK_INT(counters.bad, 3);
    CHECK(reason_of(&heard, "text.jpg") != NULL && reason_of(&heard, "empty.jpg") != NULL);
    CHECK_CONTAINS(reason_of(&heard, "not-there.jpg"), "No such file");
    stk_loader_close(loader);
}

static void bad_samples_are_marked_in_evaluation(void) {
    stk_sample samples[PICTURES];
    stk_error err = {0};
    stk_loader *loader = NULL;
    told heard = {0};
    static const uint8_t zeros[SIZE * SIZE * 3];
    copy_samples(samples);
    samples[0].path = "text.jpg";
    samples[9].path = NULL; /* a test row without a picture is known to be missing */
    samples[22].path = "not-there.jpg";
    stk_loader_config config = config_of(samples, 8);
    config.order.shuffle = false;
    config.order.replace_bad = false;
    config.transform.train = false;
    config.order.epochs = 2;
    REQUIRE_OK(stk_loader_start(&loader, &config, &err), &err);
    size_t place = 0;
    const stk_batch *batch = NULL;
    while (stk_loader_next(loader, &batch, &err) == STK_OK && batch != NULL) {
        for (size_t i = 0; i < batch->count; i++, place++) {
            size_t sample = place % PICTURES;
            bool bad = sample == 0 || sample == 9 || sample == 22;
            const uint8_t *image = batch->images + i * sizeof zeros;
            CHECK_INT(batch->samples[i], sample);
            CHECK_INT(batch->bad[i], bad);
            CHECK_INT(memcmp(image, zeros, sizeof zeros) == 0, bad);
        }
        stk_loader_release(loader, batch);
    }
    CHECK_INT(err.status, STK_OK);
    CHECK_INT(place, 2 * PICTURES);
    stk_loader_take_bad(loader, hear, &heard);
    CHECK_INT(heard.count, 2);
    CHECK(reason_of(&heard, "text.jpg") != NULL && reason_of(&heard, "not-there.jpg") != NULL);
    stk_loader_take_bad(loader, hear, &heard);
    CHECK_INT(heard.count, 2);
    stk_loader_close(loader);
}

/* A batch that nothing could be put into must never be handed out as if it were one. */
static void all_bad_is_an_error(void) {
    static const int workers[] = {1, 2, 8};
    static const size_t batches[] = {1, 3, 4};
    for (size_t w = 0; w < 3; w++) {
        for (size_t b = 0; b < 3; b++) {
            stk_sample samples[PICTURES];
            stk_error err = {0};
            stk_loader *loader = NULL;
            const stk_batch *batch = NULL;
            copy_samples(samples);
            for (size_t i = 0; i < PICTURES; i++) {
                samples[i].path = "text.jpg";
            }
            stk_loader_config config = config_of(samples, batches[b]);
            config.count = 4;
            config.sizing.workers = workers[w];
            REQUIRE_OK(stk_loader_start(&loader, &config, &err), &err);
            CHECK_INT(stk_loader_next(loader, &batch, &err), STK_ERR_DATA);
            CHECK(batch == NULL);
            CHECK_CONTAINS(err.message, "none of the 4 training images");
            CHECK_CONTAINS(err.message, "text.jpg");
            stk_error again = {0};
            CHECK_INT(stk_loader_next(loader, &batch, &again), STK_ERR_DATA);
            stk_loader_close(loader);
        }
    }
}

static void all_missing_is_an_error_without_a_path(void) {
    stk_sample samples[PICTURES];
    stk_error err = {0};
    stk_loader *loader = NULL;
    const stk_batch *batch = NULL;
    copy_samples(samples);
    for (size_t i = 0; i < PICTURES; i++) {
        samples[i].path = NULL;
    }
    stk_loader_config config = config_of(samples, 2);
    REQUIRE_OK(stk_loader_start(&loader, &config, &err), &err);
    CHECK_INT(stk_loader_next(loader, &batch, &err), STK_ERR_DATA);
    CHECK(strstr(err.message, "(null)") == NULL);
    stk_loader_close(loader);
}

static void all_bad_is_fine_in_evaluation(void) {
    stk_sample samples[PICTURES];
    copy_samples(samples);
    for (size_t i = 0; i < PICTURES; i++) {
        samples[i].path = i % 2 == 0 ? "text.jpg" : NULL;
    }
    size_t listed[3 * PICTURES];
    stk_loader_config config = config_of(samples, 4);
    config.order.replace_bad = false;
    CHECK_INT(list_run(&config, listed, 3 * PICTURES), 3 * PICTURES);
}

/* ---- ending and releasing ---- */

static void close_at_any_moment(void) {
    stk_loader_close(NULL);
    for (int taken = 0; taken < 5; taken++) {
        for (int pause = 0; pause < 2; pause++) {
            stk_loader_config config = config_of(shared_pictures()->samples, 4);
            stk_error err = {0};
            stk_loader *loader = NULL;
            const stk_batch *batch = NULL;
            config.sizing.workers = 8;
            config.order.epochs = 0;
            REQUIRE_OK(stk_loader_start(&loader, &config, &err), &err);
            for (int i = 0; i < taken; i++) {
                if (batch != NULL) {
                    stk_loader_release(loader, batch);
                }
                REQUIRE_OK(stk_loader_next(loader, &batch, &err), &err);
            }
            if (pause > 0) {
                usleep(20000); /* long enough for the ring to be full and workers asleep */
            }
            stk_loader_close(loader); /* the last batch is still held */
        }
    }
}

static void released_in_any_order(void) {
    stk_loader_config config = config_of(shared_pictures()->samples, 4);
    stk_error err = {0};
    stk_loader *loader = NULL;
    uint64_t hash = HASH_START;
    uint64_t expected = HASH_START;
    size_t listed[3 * PICTURES];
    size_t count = list_run(&config, listed, 3 * PICTURES);
    expected = hash_bytes(expected, listed, count * sizeof *listed);
    REQUIRE_OK(stk_loader_start(&loader, &config, &err), &err);
    for (;;) {
        const stk_batch *first = NULL;
        const stk_batch *second = NULL;
        REQUIRE_OK(stk_loader_next(loader, &first, &err), &err);
        REQUIRE_OK(stk_loader_next(loader, &second, &err), &err);
        if (first != NULL) {
            hash = hash_bytes(hash, first->samples, first->count * sizeof *first->samples);
        }
        if (second != NULL) {
            CHECK(first != second);
            hash = hash_bytes(hash, second->samples, second->count * sizeof *second->samples);
            stk_loader_release(loader, second);
        }
        if (first == NULL) {
            break;
        }
        stk_loader_release(loader, first);
    }
    CHECK(hash == expected);
    stk_loader_close(loader);
}

/* A batch that is held is not written to, however long it is held. */
static void held_batches_stay(void) {
    stk_loader_config config = config_of(shared_pictures()->samples, 4);
    stk_error err = {0};
    stk_loader *loader = NULL;
    const stk_batch *held = NULL;
    config.sizing.slots = 2;
    config.sizing.workers = 8;
    REQUIRE_OK(stk_loader_start(&loader, &config, &err), &err);
    REQUIRE_OK(stk_loader_next(loader, &held, &err), &err);
    uint64_t before = hash_bytes(HASH_START, held->images, held->count * SIZE * SIZE * 3);
    usleep(20000);
    CHECK(hash_bytes(HASH_START, held->images, held->count * SIZE * SIZE * 3) == before);
    CHECK_INT(held->index, 0);
    stk_loader_close(loader);
}

/* ---- counting ---- */

static uint64_t file_bytes(const char *name) {
    char path[320];
    char *data = NULL;
    size_t size = 0;
    stk_error err = {0};
    snprintf(path, sizeof path, "%s/%s", shared_pictures()->root, name);
    must(stk_file_read(path, 0, &data, &size, &err), &err);
    stk_mem_free(data);
    return size;
}

static uint64_t file_px(const char *name) {
    char path[320];
    stk_image image = {0};
    char *data = NULL;
    size_t size = 0;
    stk_error err = {0};
    snprintf(path, sizeof path, "%s/%s", shared_pictures()->root, name);
    must(stk_file_read(path, 0, &data, &size, &err), &err);
    must(stk_image_decode((const uint8_t *)data, size, &image, &err), &err);
    uint64_t px = (uint64_t)image.width * (uint64_t)image.height;
    stk_image_free(&image);
    stk_mem_free(data);
    return px;
}

static void counters_add_up(void) {
    stk_sample samples[PICTURES];
    stk_error err = {0};
    stk_loader *loader = NULL;
    const stk_batch *batch = NULL;
    uint64_t bytes = 0;
    uint64_t px = 0;
    copy_samples(samples);
    samples[4].path = "text.jpg";
    samples[5].path = NULL;
    for (size_t i = 0; i < PICTURES; i++) {
        px += i != 4 && i != 5 ? file_px(samples[i].path) : 0;
        bytes += samples[i].path != NULL ? file_bytes(samples[i].path) : 0;
    }
    stk_loader_config config = config_of(samples, 4);
    config.order.replace_bad = false;
    config.order.epochs = 1;
    REQUIRE_OK(stk_loader_start(&loader, &config, &err), &err);
    while (stk_loader_next(loader, &batch, &err) == STK_OK && batch != NULL) {
        stk_loader_release(loader, batch);
    }
    stk_loader_counters counters = stk_loader_counters_of(loader);
    CHECK_INT(counters.images, PICTURES - 2);
    CHECK_INT(counters.read_bytes, bytes);
    CHECK_INT(counters.bad, 1);
    CHECK_INT(counters.source_px, px);
    CHECK(counters.read_ns > 0 && counters.decode_ns > 0);
    CHECK(counters.wait_ns > 0 && counters.hand_over_ns > 0);
    CHECK(counters.hand_over_ns <= counters.wait_ns);
    stk_loader_close(loader);
}

#define ANSWER_MS 300
#define WAITED_NS (ANSWER_MS / 3 * SCRIPTED_MS) /* what is surely seen of it */

/* A loader of single pictures on a place that takes ANSWER_MS for each; the first may be bad. */
static stk_loader *start_slow(stk_store **store, stk_sample samples[PICTURES], int workers,
                              bool first_is_bad) {
    static char paths[PICTURES][32];
    stk_error err = {0};
    stk_loader *loader = NULL;
    stk_storage_options options = {.cache = "off", .read_timeout_s = 60};
    scripted_place *place = scripted_new();
    copy_samples(samples);
    place->folder = shared_pictures()->root;
    must(stk_store_open_on(store, &scripted_source, place, &options, &err), &err);
    for (int i = 0; i < PICTURES; i++) {
        bool bad = first_is_bad && i == 0;
        snprintf(paths[i], sizeof paths[i], bad ? "%s?n" : "%s?o%d", samples[i].path, ANSWER_MS);
        samples[i].path = paths[i];
    }
    stk_loader_config config = config_of(samples, 1);
    config.store = *store;
    config.order.shuffle = false;
    config.sizing = (stk_loader_sizing){.workers = workers, .slots = 2};
    must(stk_loader_start(&loader, &config, &err), &err);
    return loader;
}

/* A worker that had no slot, and then has one whose bytes are being read, waits for bytes. */
static void a_wait_for_a_slot_becomes_one_for_bytes(void) {
    stk_sample samples[PICTURES];
    stk_error err = {0};
    stk_store *store = NULL;
    const stk_batch *batch[3] = {NULL};
    stk_loader *loader = start_slow(&store, samples, 4, false);
    stk_loader_counters before, after;
    REQUIRE_OK(stk_loader_next(loader, &batch[0], &err), &err);
    do { /* until both slots are full */
        usleep(20000);
        before = stk_loader_counters_of(loader);
    } while (before.batches_ready < 1 || before.reads_in_flight > 0);
    stk_loader_release(loader, batch[0]);
    REQUIRE_OK(stk_loader_next(loader, &batch[1], &err), &err);
    REQUIRE_OK(stk_loader_next(loader, &batch[2], &err), &err);
    after = stk_loader_counters_of(loader);
    CHECK(after.read_wait_ns - before.read_wait_ns >= WAITED_NS);
    CHECK(after.slot_wait_ns > before.slot_wait_ns);
    stk_loader_close(loader);
    stk_store_close(store);
}

static void reading_in_the_place_of_a_bad_picture_is_waiting_for_bytes(void) {
    stk_sample samples[PICTURES];
    stk_error err = {0};
    stk_store *store = NULL;
    const stk_batch *batch = NULL;
    stk_loader *loader = start_slow(&store, samples, 1, true);
    REQUIRE_OK(stk_loader_next(loader, &batch, &err), &err);
    stk_loader_counters counters = stk_loader_counters_of(loader);
    CHECK_INT(counters.bad, 1);
    CHECK(counters.read_wait_ns >= WAITED_NS);
    stk_loader_close(loader);
    stk_store_close(store);
}

/* ---- tuning ---- */

/* A consumer that takes its time needs fewer workers; the batches stay the same. */
static void workers_follow_the_consumer(void) {
    stk_loader_config config = config_of(shared_pictures()->samples, 4);
    stk_error err = {0};
    stk_loader *loader = NULL;
    const stk_batch *batch = NULL;
    stk_loader_counters counters = {.workers = 6};
    config.order.epochs = 0;
    config.sizing = (stk_loader_sizing){.workers = 6, .slots = 3, .tune_workers = true};
    REQUIRE_OK(stk_loader_start(&loader, &config, &err), &err);
    for (int i = 0; i < 600 && counters.workers == 6; i++) {
        REQUIRE_OK(stk_loader_next(loader, &batch, &err), &err);
        usleep(20000);
        stk_loader_release(loader, batch);
        counters = stk_loader_counters_of(loader);
    }
    CHECK(counters.workers < 6);
    for (int i = 0; i < 50; i++) { /* the others still work */
        REQUIRE_OK(stk_loader_next(loader, &batch, &err), &err);
        stk_loader_release(loader, batch);
    }
    stk_loader_close(loader);
}

static void workers_that_were_asked_for_stay(void) {
    stk_loader_config config = config_of(shared_pictures()->samples, 4);
    stk_error err = {0};
    stk_loader *loader = NULL;
    const stk_batch *batch = NULL;
    stk_loader_counters counters;
    config.order.epochs = 0;
    config.sizing = (stk_loader_sizing){.workers = 6, .slots = 3};
    REQUIRE_OK(stk_loader_start(&loader, &config, &err), &err);
    for (int i = 0; i < 75; i++) {
        REQUIRE_OK(stk_loader_next(loader, &batch, &err), &err);
        usleep(20000);
        stk_loader_release(loader, batch);
    }
    counters = stk_loader_counters_of(loader);
    CHECK_INT(counters.workers, 6);
    CHECK_INT(counters.slots, 3);
    stk_loader_close(loader);
}

static void start_with_room(stk_loader **loader, int room_workers, int room_slots) {
    stk_loader_config config = config_of(shared_pictures()->samples, 4);
    stk_error err = {0};
    config.sizing = (stk_loader_sizing){
        .workers = 2, .slots = 3, .room_workers = room_workers, .room_slots = room_slots};
    REQUIRE_OK(stk_loader_start(loader, &config, &err), &err);
}

/* Asks for so many and expects what there is then. */
static void resize(stk_loader *loader, int workers, int slots, int got_workers, int got_slots) {
    stk_loader_counters counters;
    stk_loader_resize(loader, &workers, &slots);
    counters = stk_loader_counters_of(loader);
    CHECK_INT(workers, got_workers);
    CHECK_INT(slots, got_slots);
    CHECK_INT(counters.workers, got_workers);
    CHECK_INT(counters.slots, got_slots);
}

/* More and fewer, between any two batches and while one is held: the stream stays what it is. */
static void resized_at_any_moment(void) {
    static const int sizes[][2] = {{6, 9}, {1, 2}, {3, 9}, {6, 2}, {1, 4}, {2, 3}};
    stk_loader_config config = config_of(shared_pictures()->samples, 4);
    uint64_t expected = hash_run(&config);
    stk_error err = {0};
    stk_loader *loader = NULL;
    const stk_batch *batch = NULL;
    uint64_t hash = HASH_START;
    start_with_room(&loader, 6, 9);
    for (int i = 0;; i++) {
        int now = i % 6;
        REQUIRE_OK(stk_loader_next(loader, &batch, &err), &err);
        if (batch == NULL) {
            break;
        }
        resize(loader, sizes[now][0], sizes[now][1], sizes[now][0], sizes[now][1]);
        hash = hash_batch(hash, batch);
        stk_loader_release(loader, batch);
    }
    CHECK(hash == expected);
    stk_loader_close(loader);
}

static void who_resizes_decides(void) {
    stk_loader *loader = NULL;
    start_with_room(&loader, 4, 5);
    resize(loader, 0, 0, 2, 3);
    resize(loader, 3, 0, 3, 3);
    resize(loader, 0, 4, 3, 4);
    resize(loader, 100, 100, 4, 5); /* there is no room for more */
    resize(loader, 1, 1, 1, 2);     /* two slots are the least there can be */
    stk_loader_close(loader);
    start_with_room(&loader, 0, 0);
    resize(loader, 8, 8, 2, 3);
    stk_loader_close(loader);

    /* The tuner does not take back what was asked for. */
    stk_loader_config config = config_of(shared_pictures()->samples, 4);
    stk_error err = {0};
    const stk_batch *batch = NULL;
    config.order.epochs = 0;
    config.sizing = (stk_loader_sizing){
        .workers = 1, .slots = 3, .tune_workers = true, .tune_slots = true, .room_workers = 6};
    REQUIRE_OK(stk_loader_start(&loader, &config, &err), &err);
    resize(loader, 6, 0, 6, 3);
    for (int i = 0; i < 75; i++) {
        REQUIRE_OK(stk_loader_next(loader, &batch, &err), &err);
        usleep(20000);
        stk_loader_release(loader, batch);
    }
    stk_loader_counters counters = stk_loader_counters_of(loader);
    CHECK_INT(counters.workers, 6);
    stk_loader_close(loader);
}

/* What there is goes on. */
static void resized_without_memory(void) {
    stk_loader *loader = NULL;
    stk_error err = {0};
    const stk_batch *batch = NULL;
    int workers = 6;
    int slots = 9;
    start_with_room(&loader, 6, 9);
    for (int i = 0; i < 3; i++) { /* until what it works with has its memory */
        REQUIRE_OK(stk_loader_next(loader, &batch, &err), &err);
        stk_loader_release(loader, batch);
    }
    stk_mem_fail_after(0);
    stk_loader_resize(loader, &workers, &slots);
    stk_mem_fail_after(-1);
    CHECK_INT(workers, 2);
    CHECK(slots >= 2 && slots <= 9);
    stk_loader_close(loader);
}

/* Who holds all that there is now gets an error instead of waiting for ever. */
static void all_are_held_after_there_were_more(void) {
    stk_loader *loader = NULL;
    stk_error err = {0};
    const stk_batch *batch[4] = {NULL};
    int workers = 0;
    int slots = 2;
    start_with_room(&loader, 2, 4);
    stk_loader_resize(loader, &workers, &(int){4});
    stk_loader_resize(loader, &workers, &slots);
    int held = 0;
    while (held < 4 && stk_loader_next(loader, &batch[held], &err) == STK_OK) {
        held++;
    }
    CHECK(held >= 2);
    CHECK(held == 4 || err.status == STK_ERR_USAGE);
    for (int i = 0; i < held; i++) {
        stk_loader_release(loader, batch[i]);
    }
    err = (stk_error){0};
    CHECK_INT(stk_loader_next(loader, &batch[0], &err), STK_OK);
    stk_loader_close(loader);
}

/* ---- memory ---- */

static void open_without_memory(void) {
    stk_loader_config config = config_of(shared_pictures()->samples, 4);
    int failures = 0;
    for (int64_t n = 0; n < 200; n++) {
        stk_error err = {0};
        stk_loader *loader = NULL;
        config.sizing.workers = 1;
        config.sizing.slots = 2;
        stk_mem_fail_after(n);
        stk_status status = stk_loader_start(&loader, &config, &err);
        stk_mem_fail_after(-1);
        if (status == STK_OK) {
            stk_loader_close(loader);
            break;
        }
        failures++;
        CHECK_INT(status, STK_ERR_MEMORY);
        CHECK_CONTAINS(err.message, "memory");
        CHECK(loader == NULL);
    }
    CHECK(failures >= 5 && failures < 200);
}

/* Memory that runs out later ends the stream with an error; no picture is called bad for it. */
static void next_without_memory(void) {
    for (int64_t n = 0; n < 40; n++) {
        stk_sample samples[PICTURES];
        stk_error err = {0};
        stk_loader *loader = NULL;
        const stk_batch *batch = NULL;
        told heard = {0};
        copy_samples(samples);
        samples[7].path = "text.jpg";
        stk_loader_config config = config_of(samples, 2);
        config.order.epochs = 0;
        REQUIRE_OK(stk_loader_start(&loader, &config, &err), &err);
        REQUIRE_OK(stk_loader_next(loader, &batch, &err), &err);
        stk_mem_fail_after(n);
        stk_status status = STK_OK;
        for (int i = 0; i < 100 && status == STK_OK; i++) {
            stk_loader_release(loader, batch);
            status = stk_loader_next(loader, &batch, &err);
        }
        stk_mem_fail_after(-1);
        CHECK_INT(status, STK_ERR_MEMORY);
        CHECK(batch == NULL);
        stk_loader_take_bad(loader, hear, &heard);
        CHECK(heard.count == 0 || (heard.count == 1 && strcmp(heard.paths[0], "text.jpg") == 0));
        stk_loader_close(loader);
    }
}

/* ---- the plan ---- */

static void plans(void) {
    const uint64_t any = STK_AUTO_BYTES;
    const int64_t none = STK_AUTO_INT;
    static const uint64_t slot = (uint64_t)10 * 32 * 32 * 3;
    const struct {
        int64_t workers;
        int64_t prefetch;
        uint64_t loader_memory;
        int cores;
        uint64_t memory;
        int expected_workers;
        int expected_prefetch;
        int expected_slots;
        bool cut;
    } cases[] = {
        {none, none, any, 8, 1u << 30, 8, 2, 10, false},
        {none, none, any, 1, 1u << 30, 1, 4, 4, false},
        {none, none, any, 3, 1u << 30, 3, 2, 6, false},
        {0, none, any, 8, 1u << 30, 1, 4, 4, false},
        {0, 1, any, 8, 1u << 30, 1, 1, 2, false}, /* two slots are the least there can be */
        {6, 3, any, 2, 1u << 30, 6, 3, 18, false},
        /* A sixth is for reading, a quarter for connections, an eighth for threads. */
        {6, 3, 40 * slot, 2, 1u << 30, 6, 3, 18, false},
        {6, 3, 39 * slot, 2, 1u << 30, 6, 3, 17, true},
        {6, 3, 24 * slot, 2, 1u << 30, 6, 3, 11, true},
        {6, 3, 2 * slot, 2, 1u << 30, 6, 3, 2, true},
        {6, 3, slot, 2, 1u << 30, 6, 3, 2, true},
        {6, 3, 0, 2, 1u << 30, 6, 3, 2, true},
        {6, 3, any, 2, 8 * 8 * slot, 6, 3, 3, true}, /* an eighth of the machine */
        {6, none, 2 * slot, 2, 1u << 30, 6, 1, 2, true},
        {1024, 1024, any, 2, UINT64_MAX, 1024, 1024, 1024 * 1024, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        stk_loader_options options = {.workers = cases[i].workers,
                                      .prefetch = cases[i].prefetch,
                                      .loader_memory = cases[i].loader_memory};
        stk_loader_sizing plan =
            stk_loader_sizing_make(&options, 10, 32, cases[i].cores, cases[i].memory);
        CHECK_INT(plan.workers, cases[i].expected_workers);
        CHECK_INT(plan.prefetch, cases[i].expected_prefetch);
        CHECK_INT(plan.slots, cases[i].expected_slots);
        CHECK_INT(plan.cut, cases[i].cut);
        CHECK_INT(plan.tune_workers, cases[i].workers == none);
        CHECK_INT(plan.tune_slots, cases[i].prefetch == none);
    }
}

/* Room is left for later, within the memory; what is planned does not depend on it. */
static void plans_leave_room(void) {
    static const uint64_t slot = (uint64_t)10 * 32 * 32 * 3;
    const struct {
        int64_t workers;
        int64_t prefetch;
        uint64_t loader_memory;
        int room_workers;
        int room_slots;
    } cases[] = {
        {STK_AUTO_INT, STK_AUTO_INT, STK_AUTO_BYTES, 8, 28},
        {2, 1, STK_AUTO_BYTES, 8, 8},
        {6, 3, STK_AUTO_BYTES, 8, 36},
        {12, 3, STK_AUTO_BYTES, 12, 72},
        {6, 3, 40 * slot, 8, 18}, /* the memory is full */
        {6, 3, 0, 8, 2},
        {1000, 1, STK_AUTO_BYTES, 1000, 1024},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        stk_loader_options options = {.workers = cases[i].workers,
                                      .prefetch = cases[i].prefetch,
                                      .loader_memory = cases[i].loader_memory};
        stk_loader_sizing plan = stk_loader_sizing_make(&options, 10, 32, 8, UINT64_MAX);
        CHECK_INT(plan.room_workers, cases[i].room_workers);
        CHECK_INT(plan.room_slots, cases[i].room_slots);
        CHECK(plan.most_workers <= plan.room_workers && plan.most_slots <= plan.room_slots);
    }
}

static const check_test tests[] = {
    TEST(same_bytes_for_any_crew),
    TEST(same_bytes_for_any_crew_with_bad_samples),
    TEST(seed_changes_order_and_pixels),
    TEST(shuffle_is_a_new_permutation_each_epoch),
    TEST(without_shuffle_in_order),
    TEST(batches_of_grey),
    TEST(indices_choose_samples),
    TEST(batches_of_an_epoch),
    TEST(epochs_zero_goes_on),
    TEST(bad_samples_are_replaced_by_the_next),
    TEST(bad_samples_are_told_once),
    TEST(bad_samples_are_marked_in_evaluation),
    TEST(all_bad_is_an_error),
    TEST(all_missing_is_an_error_without_a_path),
    TEST(all_bad_is_fine_in_evaluation),
    TEST(close_at_any_moment),
    TEST(released_in_any_order),
    TEST(held_batches_stay),
    TEST(counters_add_up),
    TEST(a_wait_for_a_slot_becomes_one_for_bytes),
    TEST(reading_in_the_place_of_a_bad_picture_is_waiting_for_bytes),
    TEST(workers_follow_the_consumer),
    TEST(workers_that_were_asked_for_stay),
    TEST(resized_at_any_moment),
    TEST(who_resizes_decides),
    TEST(resized_without_memory),
    TEST(all_are_held_after_there_were_more),
    TEST(open_without_memory),
    TEST(next_without_memory),
    TEST(plans),
    TEST(plans_leave_room),
};

CHECK_MAIN(tests)
