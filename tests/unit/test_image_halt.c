/*
 * test_image_halt.c - decoding that is cancelled or runs out of its time, and files that are made
 * to take long: a megabyte of markers, chunks or tables.
 */
#include "check.h"
#include "image_kinds.h"

#include <time.h>

#ifdef STK_HAVE_WEBP
#include <webp/decode.h>
#endif
#include <zlib.h>

#include "base/error.h"

static double cpu_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* ---- cancelling ---- */

/* A catcher that cancels its own decoding: when it begins, or when so many rows have come. */
typedef struct canceller {
    catcher caught; /* first: the catcher's functions take it */
    atomic_bool cancelled;
    bool begun;
    int after; /* rows; 0: when it begins */
} canceller;

static stk_status begin_and_cancel(void *user, const stk_image_info *info, stk_image_part *part,
                                   stk_error *err) {
    canceller *c = user;
    c->begun = true;
    atomic_store(&c->cancelled, c->after == 0);
    return catch_begin(&c->caught, info, part, err);
}

static void take_and_cancel(void *user, int count) {
    canceller *c = user;
    catch_rows(&c->caught, count);
    atomic_store(&c->cancelled, c->caught.count >= c->after);
}

static stk_status decode_cancelled(canceller *c, const blob *file, stk_error *err) {
    stk_image_receiver receiver = {.user = c,
                                   .limit = {.cancelled = &c->cancelled},
                                   .begin = begin_and_cancel,
                                   .rows = catch_width,
                                   .room = catch_room,
                                   .take = take_and_cancel};
    c->caught.part.divisor = 1;
    return stk_image_receive(file->bytes, file->size, &receiver, err);
}

static void every_decoder_can_be_cancelled(void) {
    static const int rows[] = {0, 1, 40};
    for (size_t k = 0; k < FILE_KINDS; k++) {
        blob file = make_file(&file_kinds[k], 90, 128, 0, k);
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            stk_error err = {0};
            canceller c = {.after = rows[i]};
            stk_status status = decode_cancelled(&c, &file, &err);
            if (status != STK_ERR_STOPPED || c.caught.count >= rows[i] + STK_RECEIVER_ROWS) {
                CHECK_FAIL("%s: cancelled behind row %d, it gave %d rows: %s", file_kinds[k].name,
                           rows[i], c.caught.count, err.message);
            }
            stk_image_free(&c.caught.rows);
        }
        free_blob(&file);
    }
}

/* Before the header is known, too: bombs of markers and chunks never come that far. */
static void reading_the_header_can_be_cancelled(void) {
    for (size_t k = 0; k < FILE_KINDS; k++) {
        blob file = make_file(&file_kinds[k], 20, 20, 0, k);
        stk_error err = {0};
        canceller c = {.cancelled = true};
        CHECK_INT(decode_cancelled(&c, &file, &err), STK_ERR_STOPPED);
        CHECK_CONTAINS(err.message, "cancelled");
        CHECK(!c.begun);
        stk_image_free(&c.caught.rows);
        free_blob(&file);
    }
}

/* One that has begun is not bad because its time is over; without a limit it can be decoded. */
static void limits_of_time_end_decoding(void) {
    stk_image_scratch *scratch = NULL;
    stk_error err = {0};
    uint8_t out[8 * 8 * 3];
    stk_transform transform = {.size = 8, .crop_fraction = 1};
    const stk_image_limit limits[2] = {{.cpu_ns = 1}, {.deadline_ns = 1}};
    REQUIRE_OK(stk_image_scratch_new(&scratch, NULL, &err), &err);
    for (size_t k = 0; k < FILE_KINDS; k++) {
        blob file = make_file(&file_kinds[k], 40, 1100, 6, k);
        for (int i = 0; i < 2; i++) {
            stk_image image = {0};
            stk_error_clear(&err);
            CHECK_INT(stk_image_decode_within(file.bytes, file.size, &limits[i], &image, &err),
                      STK_ERR_STOPPED);
            CHECK_CONTAINS(err.message, "there was no time");
            CHECK(image.pixels == NULL);
            stk_image_scratch_limit(scratch, &limits[i]);
            CHECK_INT(stk_transform_apply(scratch, &transform, file.bytes, file.size, (stk_rng){0},
                                          out, NULL, &err),
                      STK_ERR_STOPPED);
            CHECK_INT(stk_image_shrink(scratch, file.bytes, file.size, 16, &image, &err),
                      STK_ERR_STOPPED);
        }
        stk_image_scratch_limit(scratch, &(stk_image_limit){0});
        stk_error_clear(&err);
        REQUIRE_OK(stk_transform_apply(scratch, &transform, file.bytes, file.size, (stk_rng){0},
                                       out, NULL, &err),
                   &err);
        free_blob(&file);
    }
    stk_image_scratch_free(scratch);
}

/* On a busy machine a picture takes long by the clock: one that has done nothing yet was held up,
 * one that has used a part of its time is slow. */
static void a_busy_machine_ends_slow_pictures_only(void) {
    const stk_image_limit limit = {.cpu_ns = 2000000000, .wall_ns = 1};
    stk_error err = {0};
    stk_image image = {0};
    blob small = make_file(&file_kinds[0], 40, 40, 0, 1);
    REQUIRE_OK(stk_image_decode_within(small.bytes, small.size, &limit, &image, &err), &err);
    stk_image_free(&image);
    free_blob(&small);
    blob png = make_slow_png();
    double before = cpu_s();
    CHECK_INT(stk_image_decode_within(png.bytes, png.size, &limit, &image, &err), STK_ERR_STOPPED);
    CHECK(cpu_s() - before > 0.25); /* an eighth of what it may use */
    CHECK(cpu_s() - before < 2);
    CHECK_CONTAINS(err.message, "there was no time");
    free_blob(&png);
}

/* A picture that has more pixels than its time has nanoseconds is not even begun. */
static void hopeless_pictures_are_not_tried(void) {
    stk_image_scratch *scratch = NULL;
    stk_error err = {0};
    uint8_t out[8 * 8 * 3];
    stk_transform transform = {.size = 8, .crop_fraction = 1};
    blob png = make_slow_png();
    REQUIRE_OK(stk_image_scratch_new(&scratch, NULL, &err), &err);
    stk_image_scratch_limit(scratch, &(stk_image_limit){.cpu_ns = 200000000});
    CHECK_INT(stk_transform_apply(scratch, &transform, png.bytes, png.size, (stk_rng){0}, out, NULL,
                                  &err),
              STK_ERR_STOPPED);
    CHECK_CONTAINS(err.message, "no time to decode 16000 x 16000 pixels");
    free_blob(&png);
    stk_image_scratch_free(scratch);
}

/* A large picture that is decoded in pieces is the one that is decoded at once, or a part of it. */
static void pieces_make_the_same_picture(void) {
#ifdef STK_HAVE_WEBP
    enum { WIDTH = 2100, HEIGHT = 2010 };
    for (int channels = 3; channels <= (check_is_full() ? 4 : 3); channels++) {
        for (int kind = WEBP_LOSSY; kind <= WEBP_LOSSLESS; kind++) {
            stk_error err = {0};
            uint8_t *values = stk_mem_new((size_t)WIDTH * HEIGHT, (size_t)channels);
            stk_rng rng = stk_rng_make(5, STK_RNG_TEST, 0, 0);
            for (size_t i = 0; i < (size_t)WIDTH * HEIGHT * (size_t)channels; i += 61) {
                values[i] = (uint8_t)stk_rng_below(&rng, 256);
            }
            blob file = make_webp(values, WIDTH, HEIGHT, channels, (webp_kind)kind);
            uint8_t *whole = channels == 4 ? WebPDecodeRGBA(file.bytes, file.size, NULL, NULL)
                                           : WebPDecodeRGB(file.bytes, file.size, NULL, NULL);
            catcher part = {.part = {1, 301, 207, 1400, 1500}};
            REQUIRE_OK(catch_part(&part, &file, 0, &err), &err);
            size_t different = 0;
            for (int y = 0; y < part.part.height && channels == 3; y++) {
                different += memcmp(pixel(&part.rows, part.part.x - part.x, y),
                                    whole + 3 * ((size_t)(207 + y) * WIDTH + 301), 3 * 1400) != 0;
            }
            CHECK_INT(part.count, part.part.height);
            CHECK_INT(different, 0);
            blob cut = {file.bytes, file.size / 2};
            catcher half = {.part.divisor = 1};
            CHECK_INT(catch_part(&half, &cut, 0, &err), STK_ERR_DATA);
            CHECK_CONTAINS(err.message, "cut off");
            stk_image_free(&part.rows);
            stk_image_free(&half.rows);
            WebPFree(whole);
            stk_mem_free(values);
            free_blob(&file);
        }
    }
#else
    CHECK_SKIP("this build has no WebP");
#endif
}

/* ---- bombs ---- */

#define BOMB_BYTES ((size_t)1 << 20)

/* A second for a megabyte is the promise; sanitizers and slow machines have ten. */
#define MOST_CPU_S 10

/* The file with copies of a piece at a place, a megabyte of them. */
static blob make_bomb(blob file, size_t place, const void *piece, size_t length) {
    size_t count = BOMB_BYTES / length;
    blob out = {stk_mem_raw(file.size + count * length, 1), file.size + count * length};
    memcpy(out.bytes, file.bytes, place);
    for (size_t i = 0; i < count; i++) {
        memcpy(out.bytes + place + i * length, piece, length);
    }
    memcpy(out.bytes + place + count * length, file.bytes + place, file.size - place);
    return out;
}

static size_t find(blob file, const char *text, size_t length) {
    const uint8_t *at = memmem(file.bytes, file.size, text, length);
    return at != NULL ? (size_t)(at - file.bytes) : 0;
}

/* Decodes it in time, whatever comes of it, and finds its size. */
static stk_status defuse(const char *name, blob bomb) {
    stk_error err = {0};
    stk_image image = {0};
    int width;
    int height;
    double start = cpu_s();
    stk_status status = stk_image_decode(bomb.bytes, bomb.size, &image, &err);
    stk_status sized = stk_image_size(bomb.bytes, bomb.size, &width, &height, &err);
    double took = cpu_s() - start;
    if (took > MOST_CPU_S) {
        CHECK_FAIL("%s took %.1f s", name, took);
    }
    CHECK(status == STK_OK || status == STK_ERR_DATA);
    CHECK(status != STK_OK || sized == STK_OK);
    stk_image_free(&image);
    return status;
}

static void bombs_of_jpeg_markers_do_not_hang(void) {
    static const struct {
        const char *name;
        const char *piece;
        size_t length;
    } pieces[] = {
        {"empty APP1", "\xFF\xE1\0\x02", 4},
        {"APP1 with Exif", "\xFF\xE1\0\x0AExif\0\0II", 12},
        {"empty APP0", "\xFF\xE0\0\x02", 4},
        {"empty APP2", "\xFF\xE2\0\x02", 4},
        {"empty APP14", "\xFF\xEE\0\x02", 4},
        {"empty comments", "\xFF\xFE\0\x02", 4},
        {"restart intervals", "\xFF\xDD\0\x04\0\0", 6},
        {"empty tables of codes", "\xFF\xC4\0\x13\x3F\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 21},
        {"empty quantisation tables", "\xFF\xDB\0\x02", 4},
        {"filling bytes", "\xFF", 1},
    };
    stk_image scene = quarters(64, 40);
    for (int progressive = 0; progressive < 2; progressive++) {
        blob jpeg = make_rgb_jpeg(&scene, progressive);
        size_t places[2] = {2, find(jpeg, "\xFF\xDA", 2)};
        for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
            for (int place = 0; place < 2; place++) {
                blob bomb = make_bomb(jpeg, places[place], pieces[i].piece, pieces[i].length);
                (void)defuse(pieces[i].name, bomb);
                free_blob(&bomb);
            }
        }
        blob restarts = make_bomb(jpeg, jpeg.size - 40, "\xFF\xD0", 2);
        (void)defuse("restart markers", restarts);
        free_blob(&restarts);
        free_blob(&jpeg);
    }
    stk_image_free(&scene);
}

/* A quarter of a million of them, and the picture is there and stands upright all the same. */
static void the_first_exif_of_many_counts(void) {
    stk_error err = {0};
    stk_image scene = quarters(64, 40);
    stk_image stored = store(&scene, 6);
    blob jpeg = make_rgb_jpeg(&stored, false);
    blob bomb = make_bomb(jpeg, 2, "\xFF\xE1\0\x02", 4);
    blob tagged = with_exif(bomb, 6, true);
    blob twice = with_exif(tagged, 6, true);
    twice.bytes[36 + 2 + 28] = 3; /* what the second one says */
    stk_image image = {0};
    CHECK_INT(defuse("empty APP1", twice), STK_OK);
    REQUIRE_OK(stk_image_decode(twice.bytes, twice.size, &image, &err), &err);
    CHECK(near_image(&image, &scene, 8));
    stk_image_free(&image);
    stk_image_free(&stored);
    stk_image_free(&scene);
    free_blob(&jpeg);
    free_blob(&bomb);
    free_blob(&tagged);
    free_blob(&twice);
}

/* Empty chunks with the right checksum. */
static void bombs_of_png_chunks_do_not_hang(void) {
    static const char *const names[] = {"tEXt", "zTXt", "iTXt", "IDAT", "eXIf",
                                        "PLTE", "tRNS", "stKr", "gAMA", "sPLT"};
    stk_image scene = quarters(64, 40);
    blob png = make_rgb_png(&scene, PNG_INTERLACE_NONE);
    size_t idat = find(png, "IDAT", 4) - 4;
    size_t iend = find(png, "IEND", 4) - 4;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        uint8_t chunk[12] = {0};
        memcpy(chunk + 4, names[i], 4);
        uint32_t sum = (uint32_t)crc32(0, chunk + 4, 4);
        for (int b = 0; b < 4; b++) {
            chunk[8 + b] = (uint8_t)(sum >> (24 - 8 * b));
        }
        size_t places[2] = {idat, iend};
        for (int place = 0; place < 2; place++) {
            blob bomb = make_bomb(png, places[place], chunk, sizeof chunk);
            (void)defuse(names[i], bomb);
            free_blob(&bomb);
        }
    }
    free_blob(&png);
    stk_image_free(&scene);
}

static void bombs_of_webp_chunks_do_not_hang(void) {
#ifdef STK_HAVE_WEBP
    static const char *const chunks[] = {"EXIF\0\0\0", "XMP \0\0\0", "stKr\0\0\0",
                                         "ALPH\0\0\0", "ANMF\0\0\0", "VP8X\0\0\0"};
    stk_image scene = quarters(64, 40);
    blob simple = make_webp(scene.pixels, 64, 40, 3, WEBP_LOSSY);
    blob webp = webp_with_exif(simple, 64, 40, 6);
    size_t places[2] = {30, webp.size}; /* before the picture, and behind all */
    for (size_t i = 0; i < sizeof chunks / sizeof *chunks; i++) {
        for (int place = 0; place < 2; place++) {
            blob bomb = make_bomb(webp, places[place], chunks[i], 8);
            for (int b = 0; b < 4; b++) {
                bomb.bytes[4 + b] = (uint8_t)((bomb.size - 8) >> (8 * b));
            }
            (void)defuse(chunks[i], bomb);
            free_blob(&bomb);
        }
    }
    free_blob(&webp);
    free_blob(&simple);
    stk_image_free(&scene);
#else
    CHECK_SKIP("this build has no WebP");
#endif
}

static const check_test tests[] = {
    TEST(every_decoder_can_be_cancelled),    TEST(reading_the_header_can_be_cancelled),
    TEST(limits_of_time_end_decoding),       TEST(a_busy_machine_ends_slow_pictures_only),
    TEST(hopeless_pictures_are_not_tried),   TEST(pieces_make_the_same_picture),
    TEST(bombs_of_jpeg_markers_do_not_hang), TEST(the_first_exif_of_many_counts),
    TEST(bombs_of_png_chunks_do_not_hang),   TEST(bombs_of_webp_chunks_do_not_hang),
};

CHECK_MAIN(tests)
