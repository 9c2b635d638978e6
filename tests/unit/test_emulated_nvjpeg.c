/*
 * test_emulated_nvjpeg.c - the look-alike of nvJPEG against libjpeg, what it refuses, and the
 * faults that it can be told to have.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <time.h>

#include "backend/cuda/driver/jpeg_api.h"
#include "emulated_libs.h"
#include "image_files.h"

enum { MOST = 3, UNTOUCHED = 0xFF, GARBAGE = 0xA7, SPARE = 5 /* bytes behind each row */ };

static emulated e;
static cuda_jpeg nvjpeg;
static cuda_jpeg_handle handle;
static cuda_jpeg_decoder decoder;

static bool begin(void) {
    (void)unsetenv("STK_EMU_JPEG");
    if (!emulated_open(&e, "libnvjpeg.so.13")) {
        return false;
    }
#define X(name, symbol, parameters) emulated_find(&e, symbol, &nvjpeg.name);
    CUDA_JPEG_FUNCTIONS(X)
    CUDA_JPEG_NEWER_FUNCTIONS(X)
#undef X
    CHECK_INT(nvjpeg.create(CUDA_JPEG_BY_ENGINES, NULL, NULL, 0, &handle), CUDA_JPEG_GOOD);
    CHECK_INT(nvjpeg.state_new(handle, &decoder), CUDA_JPEG_GOOD);
    return true;
}

static void end(void) {
    CHECK_INT(nvjpeg.state_free(decoder), CUDA_JPEG_GOOD);
    CHECK_INT(nvjpeg.destroy(handle), CUDA_JPEG_GOOD);
    emulated_close(&e);
}

/* A picture to decode, and the memory of its planes, which are as large as those of 4:4:4. */
typedef struct given {
    blob file;
    int width, height, planes;
    int across, down; /* how much coarser colour is */
    cuda_pointer memory;
    size_t pitch;
} given;

static given give(int width, int height, int channels, jpeg_kind kind) {
    given g = {.width = width,
               .height = height,
               .planes = channels,
               .across = kind.h > 0 ? kind.h : 2,
               .down = kind.h > 0 ? kind.v : 2,
               .pitch = (size_t)width + SPARE};
    stk_image image = noise(width, height, (uint64_t)width);
    g.file = make_jpeg(image.pixels, width, height, channels, kind);
    stk_image_free(&image);
    CHECK_INT(e.driver.memory_take(&g.memory, 3 * g.pitch * (size_t)height), CUDA_GOOD);
    return g;
}

static given give_colour(int width, int height, int h, int v) {
    return give(width, height, 3, (jpeg_kind){.in = JCS_RGB, .out = JCS_YCbCr, .h = h, .v = v});
}

static given give_grey(int width, int height, int h, int v) {
    return give(width, height, 1,
                (jpeg_kind){.in = JCS_GRAYSCALE, .out = JCS_GRAYSCALE, .h = h, .v = v});
}

static void take_back(given *g) {
    free_blob(&g->file);
    CHECK_INT(e.driver.memory_free(g->memory), CUDA_GOOD);
}

static cuda_jpeg_image place_of(const given *g) {
    cuda_jpeg_image image = {0};
    for (int i = 0; i < g->planes && i < 3; i++) {
        size_t offset = (size_t)i * g->pitch * (size_t)g->height;
        image.channel[i] = (unsigned char *)(uintptr_t)(g->memory + offset);
        image.pitch[i] = g->pitch;
    }
    return image;
}

/* Decodes pictures as one batch. */
static int decode(const given *all, int count) {
    const unsigned char *files[32];
    size_t sizes[32];
    cuda_jpeg_image images[32];
    for (int i = 0; i < count; i++) {
        files[i] = all[i].file.bytes;
        sizes[i] = all[i].file.size;
        images[i] = place_of(&all[i]);
    }
    CHECK_INT(nvjpeg.begin(handle, decoder, count, 1, CUDA_JPEG_PLANES), CUDA_JPEG_GOOD);
    return nvjpeg.decode(handle, decoder, files, sizes, images, e.stream);
}

/* The picture by libjpeg as YCbCr, where each pixel has the colour that was stored for it:
 * (height, width, planes). */
static uint8_t *expected_of(const given *g) {
    struct jpeg_decompress_struct j;
    struct jpeg_error_mgr errors;
    size_t row_bytes = (size_t)g->width * (size_t)g->planes;
    uint8_t *pixels = stk_mem_new((size_t)g->height, row_bytes);
    j.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&j);
    jpeg_mem_src(&j, g->file.bytes, g->file.size);
    (void)jpeg_read_header(&j, TRUE);
    j.out_color_space = j.jpeg_color_space;
    j.do_fancy_upsampling = FALSE;
    (void)jpeg_start_decompress(&j);
    while (j.output_scanline < j.output_height) {
        JSAMPROW row = pixels + j.output_scanline * row_bytes;
        (void)jpeg_read_scanlines(&j, &row, 1);
    }
    jpeg_destroy_decompress(&j);
    return pixels;
}

/* All bytes of a picture's planes. */
static uint8_t *planes_of(const given *g) {
    size_t bytes = 3 * g->pitch * (size_t)g->height;
    uint8_t *planes = stk_mem_new(1, bytes);
    CHECK_INT(e.driver.copy_out(planes, g->memory, bytes, e.stream), CUDA_GOOD);
    return planes;
}

/* How many bytes are not what they must be, in the first `rows` rows of all planes: those of the
 * picture, and those beside it, which nobody may touch. */
static size_t count_wrong(const given *g, const uint8_t *planes, const uint8_t *expected,
                          int rows) {
    size_t wrong = 0;
    for (int i = 0; i < 3; i++) {
        int across = i > 0 ? g->across : 1;
        int down = i > 0 ? g->down : 1;
        int width = i < g->planes ? (g->width + across - 1) / across : 0;
        int height = i < g->planes ? (g->height + down - 1) / down : 0;
        const uint8_t *plane = planes + (size_t)i * g->pitch * (size_t)g->height;
        for (int y = 0; y < rows; y++) {
            for (int x = 0; x < (int)g->pitch; x++) {
                size_t at = (size_t)(y * down * g->width + x * across) * (size_t)g->planes;
                int want = x < width && y < height ? expected[at + (size_t)i] : UNTOUCHED;
                wrong += plane[(size_t)y * g->pitch + (size_t)x] != want;
            }
        }
    }
    return wrong;
}

static void check_planes(const given *g) {
    uint8_t *expected = expected_of(g);
    uint8_t *planes = planes_of(g);
    size_t wrong = count_wrong(g, planes, expected, g->height);
    if (wrong > 0) {
        CHECK_FAIL("%zu bytes of %d x %d, colour coarser by %d and %d, are wrong", wrong, g->width,
                   g->height, g->across, g->down);
    }
    stk_mem_free(planes);
    stk_mem_free(expected);
}

static bool is_untouched(const given *g) {
    uint8_t *planes = planes_of(g);
    bool same = true;
    for (size_t i = 0; i < 3 * g->pitch * (size_t)g->height; i++) {
        same = same && planes[i] == UNTOUCHED;
    }
    stk_mem_free(planes);
    return same;
}

static void planes_are_those_of_libjpeg(void) {
    static const int sizes[][2] = {{1, 1}, {16, 16}, {17, 23}, {33, 8}, {125, 94}};
    given all[25];
    int count = 0;
    if (!begin()) {
        return;
    }
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        int width = sizes[i][0];
        int height = sizes[i][1];
        all[count++] = give_colour(width, height, 2, 2);
        all[count++] = give_colour(width, height, 2, 1);
        all[count++] = give_colour(width, height, 1, 1);
        all[count++] = give_grey(width, height, 1, 1);
        all[count++] = give_grey(width, height, 2, 2);
    }
    CHECK_INT(decode(all, count), CUDA_JPEG_GOOD);
    for (int i = 0; i < count; i++) {
        check_planes(&all[i]);
        take_back(&all[i]);
    }
    end();
}

/* One bad picture refuses the batch, wherever it is, and nothing is written. */
static void check_refused(given bad, int status) {
    given all[2] = {give_colour(20, 20, 2, 2), bad};
    CHECK_INT(decode(all, 2), status);
    CHECK(is_untouched(&all[0]));
    CHECK(is_untouched(&all[1]));
    CHECK_INT(decode(all, 1), CUDA_JPEG_GOOD);
    check_planes(&all[0]);
    take_back(&all[0]);
    take_back(&all[1]);
}

static void pictures_that_are_refused(void) {
    static const jpeg_scan_info apart[] = {
        {1, {0}, 0, 63, 0, 0}, {1, {1}, 0, 63, 0, 0}, {1, {2}, 0, 63, 0, 0}};
    static const jpeg_kind colour = {.in = JCS_RGB, .out = JCS_YCbCr};
    if (!begin()) {
        return;
    }
    jpeg_kind kind = colour;
    kind.progressive = true;
    check_refused(give(20, 20, 3, kind), CUDA_JPEG_UNSUPPORTED);
    kind = colour;
    kind.scans = apart;
    kind.scan_count = 3;
    check_refused(give(20, 20, 3, kind), CUDA_JPEG_UNSUPPORTED);
    check_refused(give_colour(20, 20, 4, 1), CUDA_JPEG_UNSUPPORTED);
    given bad = give_colour(20, 20, 2, 2);
    free_blob(&bad.file);
    bad.planes = 4;
    uint8_t inks[20 * 20 * 4] = {0};
    bad.file = make_jpeg(inks, 20, 20, 4, (jpeg_kind){.in = JCS_CMYK, .out = JCS_CMYK});
    check_refused(bad, CUDA_JPEG_UNSUPPORTED);

    bad = give_colour(20, 20, 2, 2);
    bad.file.bytes[1] = 'x';
    check_refused(bad, CUDA_JPEG_BAD);
    bad = give_colour(20, 20, 2, 2);
    bad.file.size = 100; /* amid the tables */
    check_refused(bad, CUDA_JPEG_BAD);
    bad = give_colour(20, 20, 2, 2);
    bad.file.size = 1;
    check_refused(bad, CUDA_JPEG_BAD);
    end();
}

/* What was lost is not told: the rows before it are right. */
static void damage_is_not_reported(void) {
    if (!begin()) {
        return;
    }
    given g = give_colour(64, 160, 2, 2);
    uint8_t *expected = expected_of(&g);
    g.file.size = g.file.size * 6 / 10;
    CHECK_INT(decode(&g, 1), CUDA_JPEG_GOOD);
    uint8_t *planes = planes_of(&g);
    CHECK_INT(count_wrong(&g, planes, expected, 32), 0);
    CHECK_INT(planes[159 * g.pitch], GARBAGE);
    CHECK_INT(planes[159 * g.pitch + 63], GARBAGE);
    CHECK_INT(planes[159 * g.pitch + 64], UNTOUCHED);
    stk_mem_free(planes);
    stk_mem_free(expected);
    take_back(&g);
    end();
}

static void batches_are_as_large_as_was_told(void) {
    if (!begin()) {
        return;
    }
    given all[MOST];
    const unsigned char *files[MOST];
    size_t sizes[MOST];
    cuda_jpeg_image images[MOST];
    for (int i = 0; i < MOST; i++) {
        all[i] = give_colour(20 + i, 20, 2, 1);
        files[i] = all[i].file.bytes;
        sizes[i] = all[i].file.size;
        images[i] = place_of(&all[i]);
    }
    CHECK_INT(nvjpeg.decode(handle, decoder, files, sizes, images, e.stream), 1);
    CHECK_INT(nvjpeg.begin(handle, decoder, 0, 1, CUDA_JPEG_PLANES), 2);
    CHECK_INT(nvjpeg.begin(handle, decoder, 2, 1, 3), CUDA_JPEG_NO_SUCH_WAY);
    CHECK_INT(nvjpeg.begin(handle, decoder, 2, 1, CUDA_JPEG_PLANES), CUDA_JPEG_GOOD);
    CHECK_INT(nvjpeg.decode(handle, decoder, files, sizes, images, e.stream), CUDA_JPEG_GOOD);
    check_planes(&all[0]);
    check_planes(&all[1]);
    CHECK(is_untouched(&all[2]));

    files[1] = NULL;
    CHECK_INT(nvjpeg.decode(handle, decoder, files, sizes, images, e.stream), 2);
    files[1] = all[1].file.bytes;
    images[1].pitch[0] = 20;
    CHECK_INT(nvjpeg.decode(handle, decoder, files, sizes, images, e.stream), 2);
    images[1].pitch[0] = 21;
    CHECK_INT(nvjpeg.decode(handle, decoder, files, sizes, images, e.stream), 0);
    images[1].channel[2] = NULL;
    CHECK_INT(nvjpeg.decode(handle, decoder, files, sizes, images, e.stream), 2);
    images[1] = place_of(&all[1]);
    CHECK_INT(nvjpeg.decode(handle, decoder, files, sizes, images, (cuda_stream)(void *)&all), 6);
    for (int i = 0; i < MOST; i++) {
        take_back(&all[i]);
    }
    end();
}

static void the_table_opens_it(void) {
    cuda_jpeg jpeg;
    stk_error err = {0};
    unsigned engines = 0;
    unsigned cores = 0;
    if (!begin()) {
        return;
    }
    REQUIRE_OK(stk_cuda_jpeg_open(&jpeg, &e.play.libraries, &err), &err);
    CHECK_INT(jpeg.version, 13000);
    CHECK_CONTAINS(jpeg.found, "/emulated/libnvjpeg.so.13");
    REQUIRE(jpeg.engines != NULL);
    CHECK_INT(jpeg.engines(handle, &engines, &cores), CUDA_JPEG_GOOD);
    CHECK_INT(engines, 7);
    CHECK_INT(cores, 1);
    stk_cuda_jpeg_close(&jpeg);
    end();
}

/* ---- faults ---- */

static void gpus_without_engines_or_memory(void) {
    cuda_jpeg_handle another = NULL;
    cuda_jpeg_decoder none = NULL;
    if (!begin()) {
        return;
    }
    (void)setenv("STK_EMU_JPEG", "noengine", 1);
    CHECK_INT(nvjpeg.create(CUDA_JPEG_BY_ENGINES, NULL, NULL, 0, &another), CUDA_JPEG_WRONG_ARCH);
    CHECK_INT(nvjpeg.create(CUDA_JPEG_BY_PROCESSORS, NULL, NULL, 0, &another), CUDA_JPEG_GOOD);
    CHECK_INT(nvjpeg.create(0, NULL, NULL, 0, &another), CUDA_JPEG_NO_SUCH_WAY);
    (void)setenv("STK_EMU_JPEG", "nomemory", 1);
    CHECK_INT(nvjpeg.state_new(another, &none), CUDA_JPEG_NO_MEMORY);
    (void)unsetenv("STK_EMU_JPEG");
    CHECK_INT(nvjpeg.state_new(another, &none), CUDA_JPEG_GOOD);
    CHECK_INT(nvjpeg.begin(handle, none, 1, 1, CUDA_JPEG_PLANES), 2);
    CHECK_INT(nvjpeg.state_free(none), CUDA_JPEG_GOOD);
    CHECK_INT(nvjpeg.destroy(another), CUDA_JPEG_GOOD);
    end();
}

static double now_s(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void batches_that_fail_or_are_slow(void) {
    if (!begin()) {
        return;
    }
    given g = give_grey(9, 9, 1, 1);
    (void)setenv("STK_EMU_JPEG", "reject:2", 1);
    CHECK_INT(decode(&g, 1), CUDA_JPEG_GOOD);
    CHECK_INT(decode(&g, 1), 6);
    CHECK_INT(decode(&g, 1), CUDA_JPEG_GOOD);
    (void)setenv("STK_EMU_JPEG", "reject:2+", 1);
    CHECK_INT(decode(&g, 1), CUDA_JPEG_GOOD);
    CHECK_INT(decode(&g, 1), 6);
    CHECK_INT(decode(&g, 1), 6);
    (void)setenv("STK_EMU_JPEG", "slow:60", 1);
    double begun_s = now_s();
    CHECK_INT(decode(&g, 1), CUDA_JPEG_GOOD);
    CHECK(now_s() - begun_s >= 0.06);
    (void)unsetenv("STK_EMU_JPEG");
    take_back(&g);
    end();
}

typedef struct hanging {
    const given *picture;
    atomic_int returned; /* 0: not yet; else 1 and the status */
} hanging;

static void *decode_one(void *context) {
    hanging *h = context;
    atomic_store(&h->returned, 1 + decode(h->picture, 1));
    return NULL;
}

/* The driver is free meanwhile. */
static void a_batch_that_hangs(void) {
    pthread_t thread;
    if (!begin()) {
        return;
    }
    given g = give_grey(9, 9, 1, 1);
    hanging h = {.picture = &g};
    (void)setenv("STK_EMU_JPEG", "hang:2", 1);
    CHECK_INT(decode(&g, 1), CUDA_JPEG_GOOD);
    CHECK_INT(e.driver.fill(g.memory, UNTOUCHED, 9 * g.pitch, e.stream), CUDA_GOOD);
    REQUIRE(pthread_create(&thread, NULL, decode_one, &h) == 0);
    double begun_s = now_s();
    while (now_s() - begun_s < 0.2) {
        CHECK_INT(e.driver.stream_wait(e.stream), CUDA_GOOD);
    }
    CHECK_INT(atomic_load(&h.returned), 0);
    (void)unsetenv("STK_EMU_JPEG");
    CHECK_INT(pthread_join(thread, NULL), 0);
    CHECK_INT(atomic_load(&h.returned), 1 + 6);
    CHECK(is_untouched(&g));
    take_back(&g);
    end();
}

/* ---- what ends the process ---- */

static void write_outside(void) {
    given g = give_colour(20, 20, 1, 1);
    g.memory += SPARE + 1; /* the last plane ends one byte behind the memory */
    (void)decode(&g, 1);
}

static void free_too_early(void) {
    (void)nvjpeg.destroy(handle);
}

/* What a child prints on stderr; `act` must not come back. */
static const char *last_words(void (*act)(void)) {
    static char words[2048];
    int ends[2];
    size_t used = 0;
    ssize_t got;
    int status = 0;
    fflush(stdout);
    if (pipe(ends) != 0) {
        return "";
    }
    pid_t child = fork();
    if (child == 0) {
        (void)dup2(ends[1], STDERR_FILENO);
        if (begin()) {
            act();
        }
        _exit(0);
    }
    (void)close(ends[1]);
    while ((got = read(ends[0], words + used, sizeof words - used - 1)) > 0) {
        used += (size_t)got;
    }
    words[used] = '\0';
    (void)close(ends[0]);
    (void)waitpid(child, &status, 0);
    CHECK(WIFSIGNALED(status));
    return words;
}

static void mistakes_end_the_process(void) {
    if (!begin()) {
        return;
    }
    end();
    CHECK_CONTAINS(last_words(write_outside), "a plane is larger than the memory of the device");
    CHECK_CONTAINS(last_words(free_too_early), "a handle is freed before its states");
}

static const check_test tests[] = {TEST(planes_are_those_of_libjpeg),
                                   TEST(pictures_that_are_refused),
                                   TEST(damage_is_not_reported),
                                   TEST(batches_are_as_large_as_was_told),
                                   TEST(the_table_opens_it),
                                   TEST(gpus_without_engines_or_memory),
                                   TEST(batches_that_fail_or_are_slow),
                                   TEST(a_batch_that_hangs),
                                   TEST(mistakes_end_the_process)};
CHECK_MAIN(tests)
