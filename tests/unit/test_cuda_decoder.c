/*
 * test_cuda_decoder.c - pictures decoded by a GPU, real or emulated: the bytes are the CPU's, what
 * it cannot decode comes back, and so does everything when it hangs.
 */
#include "check.h"

#include <dirent.h>

#include "backend/cuda/device.h"
#include "base/clock.h"
#include "base/files/file.h"
#include "base/threads/thread.h"
#include "cuda_pair.h"
#include "image_files.h"

enum { MOST = 160 };

/* A device with its decoder. */
typedef struct desk {
    stk_device *device;
    stk_device_decoder decoder;
    stk_image_scratch *scratch;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    int waiting; /* pictures that were taken and did not end; lock */
} desk;

typedef struct order {
    desk *desk;
    uint8_t *out; /* of the device, pinned */
    bool ended, good;
} order;

static bool open_desk(desk *k) {
    stk_error err = {0};
    const stk_device_config config = {.threads = 2};
    *k = (desk){0};
    (void)unsetenv("STK_EMU_JPEG");
    if (!pair_choose_gpu()) {
        return false;
    }
    if (stk_cuda_device_open(&k->device, &config, &err) != STK_OK) {
        CHECK_FAIL("%s", err.message);
        return false;
    }
    if (stk_cuda_device_decoder_open(&k->decoder, k->device, &err) != STK_OK ||
        stk_image_scratch_new(&k->scratch, NULL, &err) != STK_OK) {
        CHECK_FAIL("%s", err.message);
        return false;
    }
    pthread_mutex_init(&k->lock, NULL);
    stk_cond_init(&k->ended);
    while (k->decoder.mood(k->decoder.state) == STK_OFFER_FULL) { /* it warms up */
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return true;
}

static void close_desk(desk *k) {
    stk_image_scratch_free(k->scratch);
    stk_cuda_device_decoder_close(k->device);
    stk_cuda_device_close(k->device);
}

static void end_order(void *user, bool good) {
    order *o = user;
    pthread_mutex_lock(&o->desk->lock);
    CHECK(!o->ended);
    o->ended = true;
    o->good = good;
    o->desk->waiting--;
    pthread_cond_signal(&o->desk->ended);
    pthread_mutex_unlock(&o->desk->lock);
}

/* Offers a picture until it is taken or refused; false: the plan or the decoder refuses it. */
static bool order_picture(desk *k, order *o, const stk_transform *t, const blob *file,
                          stk_rng rng) {
    stk_picture_plan plan;
    stk_error err = {0};
    bool able = false;
    if (stk_transform_plan(k->scratch, t, file->bytes, file->size, rng, &plan, &able, &err) !=
        STK_OK) {
        CHECK_FAIL("%s", err.message);
    }
    if (!able) {
        return false;
    }
    size_t bytes = 3 * (size_t)t->size * (size_t)t->size;
    *o = (order){.desk = k, .out = stk_cuda_device_host_take(k->device, bytes)};
    memset(o->out, 77, bytes);
    stk_device_picture picture = {.bytes = file->bytes,
                                  .size = file->size,
                                  .plan = &plan,
                                  .out = o->out,
                                  .block = o->out,
                                  .done = end_order,
                                  .user = o,
                                  .owner = k};
    pthread_mutex_lock(&k->lock);
    k->waiting++;
    pthread_mutex_unlock(&k->lock);
    stk_offer answer = STK_OFFER_FULL;
    while ((answer = k->decoder.offer(k->decoder.state, &picture)) == STK_OFFER_FULL) {
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    }
    if (answer == STK_OFFER_REFUSED) {
        pthread_mutex_lock(&k->lock);
        k->waiting--;
        pthread_mutex_unlock(&k->lock);
        stk_cuda_device_host_free(k->device, o->out);
    }
    return answer == STK_OFFER_TAKEN;
}

static void wait_for_all(desk *k) {
    pthread_mutex_lock(&k->lock);
    while (k->waiting > 0) {
        if (!stk_cond_wait_until(&k->ended, &k->lock, stk_clock_ns() + 50000000)) {
            pthread_mutex_unlock(&k->lock);
            k->decoder.check(k->decoder.state);
            pthread_mutex_lock(&k->lock);
        }
    }
    pthread_mutex_unlock(&k->lock);
}

/* Numbers that differ between the device's square and the CPU's, and the largest difference. */
typedef struct difference {
    size_t count, of;
    int most;
} difference;

static void compare(desk *k, const order *o, const stk_transform *t, const blob *file, stk_rng rng,
                    difference *d) {
    stk_error err = {0};
    size_t bytes = 3 * (size_t)t->size * (size_t)t->size;
    uint8_t *own = stk_mem_new(1, bytes);
    if (stk_transform_apply(k->scratch, t, file->bytes, file->size, rng, own, NULL, &err) !=
        STK_OK) {
        CHECK_FAIL("%s", err.message);
    }
    d->of += bytes;
    for (size_t i = 0; i < bytes; i++) {
        int by = abs(own[i] - o->out[i]);
        d->count += by > 0;
        d->most = by > d->most ? by : d->most;
    }
    stk_mem_free(own);
}

static stk_rng rng_of(size_t i) {
    return stk_rng_make(11, STK_RNG_TEST, 0, i);
}

/* Decodes pictures on the device and on the CPU. */
static difference decode_both(desk *k, const stk_transform *t, const blob *files, size_t count) {
    order orders[MOST];
    bool taken[MOST];
    difference d = {0};
    for (size_t i = 0; i < count; i++) {
        taken[i] = order_picture(k, &orders[i], t, &files[i], rng_of(i));
        CHECK(taken[i]);
    }
    wait_for_all(k);
    for (size_t i = 0; i < count; i++) {
        if (taken[i]) {
            CHECK(orders[i].good);
            compare(k, &orders[i], t, &files[i], rng_of(i), &d);
            stk_cuda_device_host_free(k->device, orders[i].out);
        }
    }
    return d;
}

/* Patches of colour with noise on them: smooth and sharp, like photographs. */
static blob photograph(int width, int height, jpeg_kind kind, uint64_t seed) {
    stk_image image = quarters(width, height);
    stk_image grain = noise(width, height, seed);
    for (int i = 0; i < 3 * width * height; i++) {
        int wave = (i / 3 % width * 7 + i / 3 / width * 5 + (int)seed) % 97;
        image.pixels[i] = (uint8_t)((2 * image.pixels[i] + wave + grain.pixels[i] / 4) / 3);
    }
    blob file = make_jpeg(image.pixels, width, height, kind.in == JCS_GRAYSCALE ? 1 : 3, kind);
    stk_image_free(&image);
    stk_image_free(&grain);
    return file;
}

static const jpeg_kind kinds[] = {
    {.in = JCS_RGB, .out = JCS_YCbCr, .h = 2, .v = 2},
    {.in = JCS_RGB, .out = JCS_YCbCr, .h = 2, .v = 1},
    {.in = JCS_RGB, .out = JCS_YCbCr, .h = 1, .v = 1},
    {.in = JCS_GRAYSCALE, .out = JCS_GRAYSCALE},
    {.in = JCS_RGB, .out = JCS_YCbCr, .h = 2, .v = 2, .restart = 1},
};
#define KINDS (sizeof kinds / sizeof *kinds)

/* Squares so large that the CPU decodes in full size. */
static const stk_transform training = {
    .size = 48, .train = true, .augment = {.crop_scale = 0.3, .flip = true}};
static const stk_transform evaluation = {
    .size = 48, .crop_fraction = 0.875, .interpolation = STK_BICUBIC};

static size_t make_files(blob *files) {
    static const int sizes[][2] = {{60, 70}, {83, 61}, {64, 64}, {1, 1}, {3, 5}, {90, 17}, {5, 90}};
    size_t count = 0;
    for (size_t k = 0; k < KINDS; k++) {
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            files[count++] = photograph(sizes[i][0], sizes[i][1], kinds[k], 10 * k + i);
        }
    }
    return count;
}

static void free_files(blob *files, size_t count) {
    for (size_t i = 0; i < count; i++) {
        free_blob(&files[i]);
    }
}

static void check_same(desk *k, const stk_transform *t, const char *what) {
    blob files[MOST];
    size_t count = make_files(files);
    difference d = decode_both(k, t, files, count);
    if (d.count > 0) {
        CHECK_FAIL("%s: %zu of %zu numbers differ, by up to %d", what, d.count, d.of, d.most);
    }
    free_files(files, count);
}

static void squares_are_the_cpus_byte_for_byte(void) {
    desk k;
    if (!open_desk(&k)) {
        return;
    }
    check_same(&k, &training, "training");
    check_same(&k, &evaluation, "evaluation");
    stk_transform view = evaluation;
    view.view = 3;
    view.size = 47; /* rows that are no whole words */
    check_same(&k, &view, "a mirrored view");
    close_desk(&k);
}

static void changes_are_the_cpus_byte_for_byte(void) {
    desk k;
    stk_transform t = training;
    if (!open_desk(&k)) {
        return;
    }
    t.augment.color_jitter = 0.4;
    t.augment.hue = 0.1;
    t.augment.rotate = 20;
    t.augment.erasing = 0.5;
    t.augment.augment = STK_POLICY_RANDAUGMENT;
    t.augment.augment_ops = 2;
    t.augment.augment_magnitude = 9;
    check_same(&k, &t, "augmented");
    close_desk(&k);
}

/* The folder of real photographs, or the test is skipped. */
static void real_photographs_are_the_same(void) {
    char folder[500];
    const char *root = getenv("STOKER_DATA");
    snprintf(folder, sizeof folder, "%s/photos/glass", root != NULL ? root : "../shared/data");
    blob files[MOST];
    size_t count = 0;
    desk k;
    DIR *dir = opendir(folder);
    if (dir == NULL) {
        check_skip_reason = "there are no photographs beside the project";
        return;
    }
    if (!open_desk(&k)) {
        closedir(dir);
        return;
    }
    for (struct dirent *e = readdir(dir); e != NULL && count < 24; e = readdir(dir)) {
        char path[1000];
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        char *bytes = NULL;
        size_t size = 0;
        stk_error err = {0};
        if (e->d_name[0] != '.' &&
            stk_file_read(path, (size_t)1 << 24, &bytes, &size, &err) == STK_OK) {
            files[count++] = (blob){(uint8_t *)bytes, size};
        }
    }
    closedir(dir);
    stk_transform t = training;
    t.size = 224;
    difference d = decode_both(&k, &t, files, count);
    CHECK_INT((long)d.count, 0);
    CHECK(d.of > 0);
    free_files(files, count);
    close_desk(&k);
}

/* Turned pictures: rows and columns exchanged, and mirrored. */
static void turned_pictures_are_the_same(void) {
    static const uint8_t head[] = {0xFF, 0xE1, 0, 34, 'E', 'x', 'i', 'f', 0, 0,    'M', 'M',
                                   0,    42,   0, 0,  0,   8,   0,   1,   1, 0x12, 0,   3,
                                   0,    0,    0, 1,  0,   0,   0,   0,   0, 0,    0,   0};
    blob files[8];
    desk k;
    if (!open_desk(&k)) {
        return;
    }
    for (uint8_t turn = 1; turn <= 8; turn++) {
        blob plain = photograph(70, 60, kinds[0], turn);
        blob *file = &files[turn - 1];
        file->size = plain.size + sizeof head;
        file->bytes = stk_mem_new(1, file->size);
        memcpy(file->bytes, plain.bytes, 2);
        memcpy(file->bytes + 2, head, sizeof head);
        file->bytes[2 + 29] = turn;
        memcpy(file->bytes + 2 + sizeof head, plain.bytes + 2, plain.size - 2);
        free_blob(&plain);
    }
    difference d = decode_both(&k, &training, files, 8);
    CHECK_INT((long)d.count, 0);
    d = decode_both(&k, &evaluation, files, 8);
    CHECK_INT((long)d.count, 0);
    free_files(files, 8);
    close_desk(&k);
}

/* Pictures that only the CPU decodes are not planned. */
static void others_are_left_to_the_cpu(void) {
    static const jpeg_kind others[] = {
        {.in = JCS_RGB, .out = JCS_YCbCr, .progressive = true},
        {.in = JCS_RGB, .out = JCS_RGB},
        {.in = JCS_RGB, .out = JCS_YCbCr, .h = 1, .v = 2},
        {.in = JCS_RGB, .out = JCS_YCbCr, .h = 4, .v = 1},
    };
    stk_picture_plan plan;
    stk_image_scratch *scratch = NULL;
    stk_error err = {0};
    bool able = true;
    REQUIRE_OK(stk_image_scratch_new(&scratch, NULL, &err), &err);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        blob file = photograph(64, 48, others[i], i);
        CHECK(stk_transform_plan(scratch, &training, file.bytes, file.size, rng_of(0), &plan, &able,
                                 &err) == STK_OK);
        CHECK(!able);
        free_blob(&file);
    }
    blob file = photograph(64, 48, kinds[0], 1);
    size_t cuts[] = {0, 2, 30, file.size / 2, file.size - 1};
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) { /* files that are cut off */
        CHECK(stk_transform_plan(scratch, &training, file.bytes, cuts[i], rng_of(0), &plan, &able,
                                 &err) == STK_OK);
        CHECK(!able);
    }
    stk_transform t = training;
    t.native = true;
    CHECK(stk_transform_plan(scratch, &t, file.bytes, file.size, rng_of(0), &plan, &able, &err) ==
          STK_OK);
    CHECK(!able);
    t = training;
    t.channels = 1;
    CHECK(stk_transform_plan(scratch, &t, file.bytes, file.size, rng_of(0), &plan, &able, &err) ==
          STK_OK);
    CHECK(!able);
    CHECK(stk_transform_plan(scratch, &training, file.bytes, file.size, rng_of(0), &plan, &able,
                             &err) == STK_OK);
    CHECK(able);
    free_blob(&file);
    stk_image_scratch_free(scratch);
}

static bool is_emulated(const desk *k) {
    return strstr(stk_cuda_device_describe(k->device), "Emulated") != NULL;
}

/* One call of nvJPEG fails: halves of the group are decoded again, and all pictures are good. */
static void a_refused_call_is_made_again_in_parts(void) {
    desk k;
    if (!open_desk(&k)) {
        return;
    }
    if (!is_emulated(&k)) {
        check_skip_reason = "faults are made on the emulated GPU";
        close_desk(&k);
        return;
    }
    (void)setenv("STK_EMU_JPEG", "reject:1", 1);
    check_same(&k, &training, "after a refused call");
    stk_device_decoder_counts counts;
    k.decoder.counts(k.decoder.state, &counts);
    CHECK_INT((long)counts.failed, 0);
    (void)unsetenv("STK_EMU_JPEG");
    close_desk(&k);
}

/* An engine that hangs: all pictures come back as not decoded, and nothing more is taken. */
static void a_hanging_engine_gives_pictures_back(void) {
    desk k;
    order orders[3];
    if (!open_desk(&k)) {
        return;
    }
    if (!is_emulated(&k)) {
        check_skip_reason = "faults are made on the emulated GPU";
        close_desk(&k);
        return;
    }
    (void)setenv("STK_EMU_JPEG", "hang", 1);
    blob file = photograph(64, 48, kinds[0], 1);
    for (int i = 0; i < 3; i++) {
        CHECK(order_picture(&k, &orders[i], &training, &file, rng_of(0)));
    }
    k.decoder.withdraw(k.decoder.state, &k);
    for (int i = 0; i < 3; i++) {
        CHECK(orders[i].ended && !orders[i].good);
        stk_cuda_device_host_free(k.device, orders[i].out);
    }
    CHECK_INT(k.decoder.mood(k.decoder.state), STK_OFFER_REFUSED);
    CHECK(!order_picture(&k, &orders[0], &training, &file, rng_of(0)));
    free_blob(&file);
    stk_cuda_device_decoder_close(k.device); /* abandons the thread */
    CHECK(k.device->decoder_is_abandoned);
    stk_image_scratch_free(k.scratch);
    (void)unsetenv("STK_EMU_JPEG");
}

static const check_test tests[] = {
    TEST(others_are_left_to_the_cpu),          TEST(squares_are_the_cpus_byte_for_byte),
    TEST(turned_pictures_are_the_same),        TEST(changes_are_the_cpus_byte_for_byte),
    TEST(real_photographs_are_the_same),       TEST(a_refused_call_is_made_again_in_parts),
    TEST(a_hanging_engine_gives_pictures_back)};
CHECK_MAIN(tests)
