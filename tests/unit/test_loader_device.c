/*
 * test_loader_device.c - a loader with a device that decodes: batches are those of a loader without
 * one, whatever the device takes, refuses, gives back or keeps.
 *
 * The device is made up here: one thread that decodes whole pictures and scales them by the plan's
 * weights in plain C. The pictures are less than twice as large as the squares, so that the CPU
 * decodes them in full size, too, and the bytes agree.
 */
#define SIZE 16

#include "check.h"
#include "loader_runs.h"

#include <unistd.h>

#include "base/clock.h"
#include "base/threads/thread.h"
#include "image/resample/resample.h"

#define TOTAL (3 * PICTURES) /* rows of a run of config_of() */

/* No test takes a hundredth of it. */
#define LONGEST_NS (30 * STK_NS_PER_S)

/* ---- a device ---- */

typedef struct axis_copy {
    int from, to, taps;
    int first[SIZE], count[SIZE];
    int16_t *weights; /* owned: (SIZE, taps) */
} axis_copy;

typedef struct job {
    stk_device_picture picture; /* `bytes` and `plan` are NULL: they were borrowed */
    uint8_t *bytes;             /* owned */
    stk_picture_plan plan;      /* without its axes */
    axis_copy across, down;
    int64_t since_ns;
    struct job *next;
} job;

/* What the device does is set before a loader starts, unless a comment says more. */
typedef struct device {
    size_t room;         /* pictures at a time; above: FULL */
    size_t takes;        /* pictures that it takes in all; then it is lost */
    size_t fails_each;   /* of so many pictures it gives one back; 0: none */
    unsigned slow_us;    /* for each picture */
    int64_t patience_ns; /* `check` gives everything back after this */
    int64_t opened_ns;
    bool hangs;          /* takes pictures and decodes none */
    bool is_synchronous; /* an offer returns when the picture is done */
    bool holds_first;    /* the first offer waits for a batch that is complete, and is refused with
                            FULL ever after; all others are refused */
    _Atomic(stk_loader *) loader; /* for holds_first */

    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t thread;
    job *queue;                       /* lock */
    size_t under_way;                 /* queue and the picture in work; lock */
    size_t taken;                     /* lock */
    size_t full;                      /* answers FULL; lock */
    uint64_t first_hash;              /* of the bytes of the first picture offered; lock */
    const void *gone;                 /* an owner that has withdrawn; lock */
    bool lost, quits;                 /* lock */
    stk_device_decoder_counts counts; /* lock */
} device;

static axis_copy copy_axis(const stk_resample_axis *axis) {
    axis_copy copy = {.from = axis->from, .to = axis->to, .taps = axis->taps};
    size_t bytes = (size_t)SIZE * (size_t)axis->taps * sizeof *copy.weights;
    copy.weights = stk_mem_raw(bytes, 1);
    memcpy(copy.weights, axis->weights, bytes);
    memcpy(copy.first, axis->first, sizeof copy.first);
    memcpy(copy.count, axis->count, sizeof copy.count);
    return copy;
}

/* Row i of `down`: columns across.from .. across.to-1 of the picture, with 6 bits of fraction. */
static void weigh_down(const job *j, const stk_image *image, int i, int16_t *middle) {
    const int16_t *weights = j->down.weights + (ptrdiff_t)i * j->down.taps;
    for (int x = j->across.from * 3; x < j->across.to * 3; x++) {
        int32_t sum = 1 << (STK_DOWN_SHIFT - 1);
        for (int k = 0; k < j->down.count[i]; k++) {
            int y = j->down.from + j->down.first[i] + k;
            sum += image->pixels[(ptrdiff_t)y * image->width * 3 + x] * weights[k];
        }
        middle[x - j->across.from * 3] = (int16_t)(sum >> STK_DOWN_SHIFT);
    }
}

static uint8_t weigh_across(const job *j, const int16_t *middle, int i, int channel) {
    const int16_t *weights = j->across.weights + (ptrdiff_t)i * j->across.taps;
    int32_t sum = 1 << (STK_ACROSS_SHIFT - 1);
    for (int k = 0; k < j->across.count[i]; k++) {
        sum += middle[(j->across.first[i] + k) * 3 + channel] * weights[k];
    }
    sum >>= STK_ACROSS_SHIFT;
    return (uint8_t)(sum < 0 ? 0 : sum > 255 ? 255 : sum);
}

static bool decode(const job *j) {
    static uint8_t spare[SIZE * SIZE * 3]; /* there is one thread */
    int16_t middle[64 * 3];
    stk_error err = {0};
    stk_image image = {0};
    uint8_t *out = j->picture.out;
    if (stk_image_decode(j->bytes, j->picture.size, &image, &err) != STK_OK) {
        return false;
    }
    CHECK(image.width == j->plan.width && image.height == j->plan.height && image.width <= 64);
    for (int y = 0; y < SIZE; y++) {
        weigh_down(j, &image, j->plan.mirror_y ? SIZE - 1 - y : y, middle);
        for (int x = 0; x < SIZE; x++) {
            size_t to = (size_t)(j->plan.swapped ? x * SIZE + y : y * SIZE + x);
            for (int c = 0; c < 3; c++) {
                out[3 * to + (size_t)c] = weigh_across(j, middle, x, c);
            }
        }
    }
    for (int i = 0; i < j->plan.changes.count; i++) {
        stk_augment_make(&j->plan.changes.changes[i], SIZE, 3, out, spare);
    }
    stk_image_free(&image);
    return true;
}

/* Tells what became of a picture, without the lock. */
static void end_job(device *d, job *j, bool good) {
    pthread_mutex_lock(&d->lock);
    d->counts.images += good;
    d->counts.failed += !good;
    CHECK(d->gone != j->picture.owner);
    pthread_mutex_unlock(&d->lock);
    j->picture.done(j->picture.user, good);
    stk_mem_free(j->bytes);
    stk_mem_free(j->across.weights);
    stk_mem_free(j->down.weights);
    stk_mem_free(j);
    pthread_mutex_lock(&d->lock);
    d->under_way--; /* whoever withdraws waits for `done` to return */
    pthread_cond_broadcast(&d->changed);
    pthread_mutex_unlock(&d->lock);
}

static void *serve(void *argument) {
    device *d = argument;
    size_t number = 0;
    pthread_mutex_lock(&d->lock);
    while (!d->quits) {
        job *j = d->hangs ? NULL : d->queue;
        if (j == NULL) {
            pthread_cond_wait(&d->changed, &d->lock);
            continue;
        }
        d->queue = j->next;
        pthread_mutex_unlock(&d->lock);
        if (d->slow_us > 0) {
            usleep(d->slow_us);
        }
        bool fails = d->fails_each > 0 && ++number % d->fails_each == 0;
        end_job(d, j, !fails && decode(j));
        pthread_mutex_lock(&d->lock);
    }
    pthread_mutex_unlock(&d->lock);
    return NULL;
}

/* Under the lock: a loader that waits for room for ever fails its test, which then goes on. */
static void lose_patience(device *d) {
    if (!d->lost && stk_clock_ns() - d->opened_ns > LONGEST_NS) {
        CHECK_FAIL("the loader waits for a device that has no room");
        d->lost = true;
    }
}

static stk_offer mood(void *state) {
    device *d = state;
    pthread_mutex_lock(&d->lock);
    lose_patience(d);
    stk_offer answer = d->lost                                      ? STK_OFFER_REFUSED
                       : d->under_way >= d->room && !d->holds_first ? STK_OFFER_FULL
                                                                    : STK_OFFER_TAKEN;
    pthread_mutex_unlock(&d->lock);
    return answer;
}

/* Under the lock. */
static void enqueue(device *d, const stk_device_picture *picture) {
    job *j = stk_mem_new(1, sizeof *j);
    job **end = &d->queue;
    CHECK(picture->block != NULL && (const uint8_t *)picture->block <= picture->out);
    *j = (job){.picture = *picture,
               .bytes = stk_mem_raw(picture->size, 1),
               .plan = *picture->plan,
               .across = copy_axis(picture->plan->across),
               .down = copy_axis(picture->plan->down),
               .since_ns = stk_clock_ns()};
    memcpy(j->bytes, picture->bytes, picture->size);
    j->picture.bytes = NULL;
    j->picture.plan = NULL;
    while (*end != NULL) {
        end = &(*end)->next;
    }
    *end = j;
    d->under_way++;
    d->taken++;
    pthread_cond_broadcast(&d->changed);
}

/* The answers of a device with holds_first. */
static stk_offer hold_first(device *d, const stk_device_picture *picture) {
    uint64_t hash = hash_bytes(HASH_START, picture->bytes, picture->size);
    stk_loader *loader = NULL;
    pthread_mutex_lock(&d->lock);
    lose_patience(d);
    d->first_hash = d->first_hash == 0 ? hash : d->first_hash;
    bool is_first = d->first_hash == hash;
    d->full += is_first;
    bool refuses = !is_first || d->lost;
    pthread_mutex_unlock(&d->lock);
    while (is_first && ((loader = atomic_load(&d->loader)) == NULL ||
                        stk_loader_counters_of(loader).batches_ready == 0)) {
        usleep(1000);
    }
    return refuses ? STK_OFFER_REFUSED : STK_OFFER_FULL;
}

static stk_offer offer(void *state, const stk_device_picture *picture) {
    device *d = state;
    stk_offer answer = STK_OFFER_TAKEN;
    if (d->holds_first) {
        return hold_first(d, picture);
    }
    pthread_mutex_lock(&d->lock);
    CHECK(d->gone != picture->owner);
    lose_patience(d);
    d->lost = d->lost || d->taken >= d->takes;
    if (d->lost) {
        answer = STK_OFFER_REFUSED;
    } else if (d->under_way >= d->room) {
        answer = STK_OFFER_FULL;
        d->full++;
    } else {
        enqueue(d, picture);
    }
    while (answer == STK_OFFER_TAKEN && d->is_synchronous && d->under_way > 0) {
        pthread_cond_wait(&d->changed, &d->lock);
    }
    pthread_mutex_unlock(&d->lock);
    return answer;
}

static void give_all_back(device *d) {
    pthread_mutex_lock(&d->lock);
    job *j = d->queue;
    d->queue = NULL;
    d->lost = true;
    d->counts.lost = true;
    pthread_mutex_unlock(&d->lock);
    while (j != NULL) {
        job *next = j->next;
        end_job(d, j, false);
        j = next;
    }
}

static void check(void *state) {
    device *d = state;
    pthread_mutex_lock(&d->lock);
    bool late = d->queue != NULL && stk_clock_ns() - d->queue->since_ns > d->patience_ns;
    pthread_mutex_unlock(&d->lock);
    if (late) {
        give_all_back(d);
    }
}

/* There is one owner at a time. */
static void withdraw(void *state, const void *owner) {
    device *d = state;
    give_all_back(d);
    pthread_mutex_lock(&d->lock);
    while (d->under_way > 0) {
        pthread_cond_wait(&d->changed, &d->lock);
    }
    d->gone = owner;
    pthread_mutex_unlock(&d->lock);
}

static void read_counts(void *state, stk_device_decoder_counts *counts) {
    device *d = state;
    pthread_mutex_lock(&d->lock);
    *counts = d->counts;
    pthread_mutex_unlock(&d->lock);
}

/* A device that takes all; tests change its fields before they start a loader. */
static void open_device(device *d) {
    stk_error err = {0};
    const stk_thread_config config = {.what = "decodes as a device"};
    *d = (device){
        .room = 32, .takes = SIZE_MAX, .patience_ns = STK_NS_PER_S, .opened_ns = stk_clock_ns()};
    pthread_mutex_init(&d->lock, NULL);
    stk_cond_init(&d->changed);
    must(stk_thread_start(&d->thread, &config, serve, d, &err), &err);
}

static void close_device(device *d) {
    pthread_mutex_lock(&d->lock);
    CHECK_INT(d->under_way, 0);
    d->quits = true;
    pthread_cond_broadcast(&d->changed);
    pthread_mutex_unlock(&d->lock);
    pthread_join(d->thread, NULL);
    pthread_cond_destroy(&d->changed);
    pthread_mutex_destroy(&d->lock);
}

static stk_device_decoder decoder_of(device *d) {
    return (stk_device_decoder){.state = d,
                                .most_bytes = SIZE_MAX,
                                .offer = offer,
                                .mood = mood,
                                .check = check,
                                .withdraw = withdraw,
                                .counts = read_counts};
}

/* ---- runs ---- */

/* Pictures of all kinds: the device is offered the JPEGs, the CPU decodes or finds bad the rest. */
static const stk_sample *mixed_samples(void) {
    static stk_sample samples[PICTURES];
    static const char *const others[] = {"a.png", "text.jpg", "empty.jpg", "b.png",
                                         "not-there.jpg"};
    stk_error err = {0};
    if (samples[0].path != NULL) {
        return samples;
    }
    copy_samples(samples);
    for (int i = 0; i < 5; i++) {
        samples[4 * i + 1].path = others[i];
    }
    for (int i = 0; i < 5; i += 3) {
        char path[320];
        uint8_t *bytes = NULL;
        size_t size = 0;
        stk_image image = {0};
        must(stk_image_new(&image, 21 + i, 23, &err), &err);
        for (int k = 0; k < image.width * image.height * 3; k++) {
            image.pixels[k] = (uint8_t)(k * 7 + i);
        }
        must(stk_image_encode_png(&image, &bytes, &size, &err), &err);
        snprintf(path, sizeof path, "%s/%s", shared_pictures()->root, others[i]);
        must(stk_file_write(path, bytes, size, &err), &err);
        stk_image_free(&image);
        stk_mem_free(bytes);
    }
    return samples;
}

/* A training with every kind of change. */
static stk_loader_config training_of(const stk_sample *samples) {
    stk_loader_config config = config_of(samples, 4);
    config.transform.augment.color_jitter = 0.4;
    config.transform.augment.hue = 0.1;
    config.transform.augment.rotate = 10;
    config.transform.augment.augment = STK_POLICY_TRIVIALAUGMENT;
    config.transform.augment.erasing = 0.5;
    return config;
}

static stk_loader *start(const stk_loader_config *config) {
    stk_error err = {0};
    stk_loader *loader = NULL;
    must(stk_loader_start(&loader, config, &err), &err);
    return loader;
}

/* The hash of a run with the device, whose counters must add up to `rows` pictures. */
static uint64_t hash_with(stk_loader_config config, device *d, size_t rows) {
    stk_device_decoder decoder = decoder_of(d);
    decoder.is_sparing = config.decoder.is_sparing;
    config.decoder = decoder;
    stk_loader *loader = start(&config);
    atomic_store(&d->loader, loader);
    uint64_t hash = hash_rest(loader);
    stk_loader_counters c = stk_loader_counters_of(loader);
    CHECK_INT(c.images, rows);
    CHECK_INT(c.device_images, d->counts.images);
    CHECK_INT(c.device_failed, d->counts.failed);
    CHECK_INT(c.device_images + c.device_failed, d->taken);
    CHECK(c.device_images <= c.images);
    stk_loader_close(loader);
    return hash;
}

/* The same without a device. */
static uint64_t hash_without(stk_loader_config config) {
    config.decoder = (stk_device_decoder){0};
    return hash_run(&config);
}

static void the_device_decodes_all(void) {
    stk_loader_config config = training_of(shared_pictures()->samples);
    for (int train = 0; train < 2; train++) {
        config.transform.train = train == 1;
        config.transform.crop_fraction = 0.9;
        config.transform.view = train == 1 ? 0 : 3; /* mirrored */
        config.transform.interpolation = STK_BICUBIC;
        config.order.replace_bad = train == 1;
        uint64_t expected = hash_without(config);
        for (int first = 0; first < 2; first++) {
            device d;
            open_device(&d);
            config.device_first = first == 1;
            CHECK(hash_with(config, &d, TOTAL) == expected);
            CHECK_INT(d.counts.images, TOTAL);
            close_device(&d);
        }
    }
}

static void any_crew_gives_the_same_bytes(void) {
    static const int crews[][2] = {{1, 2}, {2, 2}, {3, 7}, {8, 3}, {8, 16}};
    stk_loader_config config = training_of(mixed_samples());
    uint64_t expected = hash_without(config);
    for (size_t i = 0; i < sizeof crews / sizeof *crews; i++) {
        device d;
        open_device(&d);
        d.room = 1 + i;
        d.fails_each = 5;
        config.sizing =
            (stk_loader_sizing){.workers = crews[i][0], .slots = crews[i][1], .most_reads = 64};
        config.device_first = i % 2 == 1;
        CHECK(hash_with(config, &d, TOTAL) == expected);
        CHECK(d.taken > 0);
        close_device(&d);
    }
}

static void pictures_that_come_back_are_the_cpus(void) {
    stk_loader_config config = training_of(mixed_samples());
    for (int replace = 0; replace < 2; replace++) {
        config.order.replace_bad = replace == 1;
        uint64_t expected = hash_without(config);
        size_t good = replace == 1 ? TOTAL : TOTAL - 3 * 3; /* three samples are no pictures */
        for (size_t each = 1; each <= 7; each += 3) {
            device d;
            open_device(&d);
            d.fails_each = each;
            config.device_first = true;
            CHECK(hash_with(config, &d, good) == expected);
            CHECK_INT(d.taken, TOTAL - 5 * 3);
            CHECK_INT(d.counts.failed, d.taken / each);
            close_device(&d);
        }
    }
}

/* With device_first a worker waits until there is room, and the device decodes all that it can. */
static void a_full_device_is_waited_for(void) {
    stk_loader_config config = training_of(mixed_samples());
    device d;
    open_device(&d);
    d.room = 1;
    d.slow_us = 2000;
    config.device_first = true;
    config.sizing.workers = 6;
    CHECK(hash_with(config, &d, TOTAL) == hash_without(config));
    CHECK_INT(d.counts.images, TOTAL - 5 * 3);
    close_device(&d);
}

/* Otherwise workers decode while there is no batch, even if the device never has room. */
static void a_full_device_is_not_waited_for_without_a_batch(void) {
    stk_loader_config config = training_of(mixed_samples());
    device d;
    open_device(&d);
    d.room = 0;
    config.sizing.workers = 6;
    CHECK(hash_with(config, &d, TOTAL) == hash_without(config));
    CHECK_INT(d.taken, 0);
    close_device(&d);
}

/* The consumer waits for the first batch: it does not help that the second one is complete. */
static void a_later_batch_is_no_reason_to_wait(void) {
    stk_loader_config config = training_of(shared_pictures()->samples);
    device d;
    open_device(&d);
    d.holds_first = true;
    config.order.epochs = 1;
    config.sizing.workers = 4;
    CHECK(hash_with(config, &d, PICTURES) == hash_without(config));
    CHECK(d.full > 0);
    close_device(&d);
}

static void a_device_that_is_lost(void) {
    static const size_t takes[] = {0, 1, 10, 40};
    stk_loader_config config = training_of(mixed_samples());
    uint64_t expected = hash_without(config);
    for (size_t i = 0; i < sizeof takes / sizeof *takes; i++) {
        device d;
        open_device(&d);
        d.takes = takes[i];
        config.device_first = i % 2 == 0;
        CHECK(hash_with(config, &d, TOTAL) == expected);
        CHECK_INT(d.taken, takes[i]);
        close_device(&d);
    }
}

/* `check` gives the pictures back, and the consumer gets them all the same. */
static void a_device_that_hangs(void) {
    stk_loader_config config = training_of(mixed_samples());
    uint64_t expected = hash_without(config);
    for (int first = 0; first < 2; first++) {
        device d;
        open_device(&d);
        d.hangs = true;
        d.patience_ns = 100000000;
        d.room = first == 1 ? 3 : 32; /* workers may be waiting for room */
        config.device_first = first == 1;
        CHECK(hash_with(config, &d, TOTAL) == expected);
        CHECK_INT(d.counts.images, 0);
        CHECK(d.counts.failed > 0 && d.lost);
        close_device(&d);
    }
}

static void closing_takes_the_pictures_from_the_device(void) {
    static const size_t rooms[] = {0, 1, 5, 64};
    stk_loader_config config = training_of(mixed_samples());
    for (size_t i = 0; i < 2 * sizeof rooms / sizeof *rooms; i++) {
        device d;
        open_device(&d);
        d.hangs = i % 2 == 1;
        d.slow_us = 3000;
        d.room = rooms[i / 2];
        config.decoder = decoder_of(&d);
        config.device_first = true;
        config.sizing = (stk_loader_sizing){.workers = 4, .slots = 4, .most_reads = 64};
        stk_loader *loader = start(&config);
        pthread_mutex_lock(&d.lock);
        while (d.taken < d.room && d.taken < 8) {
            pthread_cond_wait(&d.changed, &d.lock);
        }
        pthread_mutex_unlock(&d.lock);
        int64_t begun = stk_clock_ns();
        stk_loader_close(loader);
        CHECK(stk_clock_ns() - begun < 5 * STK_NS_PER_S);
        CHECK(d.gone == loader);
        close_device(&d);
    }
}

/* ---- places in the epoch ---- */

/* What is left after some batches and a jump. */
static uint64_t hash_after_seek(const stk_loader_config *config, int before) {
    stk_error err = {0};
    stk_loader *loader = start(config);
    for (int i = 0; i < before; i++) {
        const stk_batch *batch = NULL;
        must(stk_loader_next(loader, &batch, &err), &err);
        stk_loader_release(loader, batch);
    }
    must(stk_loader_seek(loader, 1, 2, &err), &err);
    uint64_t hash = hash_rest(loader);
    stk_loader_close(loader);
    return hash;
}

static void seek_while_pictures_are_with_the_device(void) {
    stk_loader_config config = training_of(mixed_samples());
    uint64_t expected = hash_after_seek(&config, 0);
    for (int i = 0; i < 12; i++) {
        device d;
        open_device(&d);
        d.slow_us = 1000;
        d.fails_each = i % 2 == 0 ? 3 : 0;
        d.room = i % 3 == 0 ? 2 : 32;
        d.hangs = i >= 9;
        d.patience_ns = 50000000;
        config.decoder = decoder_of(&d);
        config.device_first = i % 4 < 2;
        config.sizing = (stk_loader_sizing){.workers = 1 + i % 5, .slots = 4, .most_reads = 64};
        CHECK(hash_after_seek(&config, i % 3) == expected);
        close_device(&d);
    }
}

/* ---- a device with better things to do ---- */

static void wait_for_full_ring(stk_loader *loader, uint64_t slots) {
    while (stk_loader_counters_of(loader).batches_ready < slots) {
        usleep(1000);
    }
}

/* It decodes while there is no batch: the first four pictures, for one worker. */
static void a_sparing_device_gets_pictures_while_there_is_no_batch(void) {
    stk_loader_config config = training_of(shared_pictures()->samples);
    for (int first = 0; first < 2; first++) {
        device d;
        open_device(&d);
        d.is_synchronous = true;
        config.decoder = decoder_of(&d);
        config.decoder.is_sparing = true;
        config.device_first = first == 1;
        config.sizing = (stk_loader_sizing){.workers = 1, .slots = 3, .most_reads = 64};
        stk_loader *loader = start(&config);
        wait_for_full_ring(loader, 3);
        CHECK_INT(stk_loader_counters_of(loader).device_images, first == 1 ? 12 : 4);
        CHECK_INT(stk_loader_counters_of(loader).images, 12);
        stk_loader_close(loader);
        close_device(&d);
    }
}

static void a_sparing_device_changes_no_bytes(void) {
    stk_loader_config config = training_of(mixed_samples());
    uint64_t expected = hash_without(config);
    config.decoder.is_sparing = true;
    for (size_t room = 1; room <= 9; room += 4) {
        device d;
        open_device(&d);
        d.room = room;
        d.fails_each = 4;
        CHECK(hash_with(config, &d, TOTAL) == expected);
        CHECK(d.taken > 0);
        close_device(&d);
    }
}

static const check_test tests[] = {
    TEST(the_device_decodes_all),
    TEST(any_crew_gives_the_same_bytes),
    TEST(pictures_that_come_back_are_the_cpus),
    TEST(a_full_device_is_waited_for),
    TEST(a_full_device_is_not_waited_for_without_a_batch),
    TEST(a_later_batch_is_no_reason_to_wait),
    TEST(a_device_that_is_lost),
    TEST(a_device_that_hangs),
    TEST(closing_takes_the_pictures_from_the_device),
    TEST(seek_while_pictures_are_with_the_device),
    TEST(a_sparing_device_gets_pictures_while_there_is_no_batch),
    TEST(a_sparing_device_changes_no_bytes),
};

CHECK_MAIN(tests)
