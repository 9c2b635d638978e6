/*
 * fuzz_image.h - what the fuzz targets of the picture formats share: seeds of one format, and what
 * must hold for any bytes.
 *
 * The seeds are pictures of every kind that the tests make and, where they are, the small files of
 * the folder odd-images below $STOKER_DATA; the number of a mutation means the same only with the
 * same seeds. Time is checked, too: an input must not take longer than its bytes and pixels.
 */
#ifndef STK_TESTS_FUZZ_IMAGE_H
#define STK_TESTS_FUZZ_IMAGE_H

#include "fuzz.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/files/file.h"
#include "unit/image_kinds.h"

#define FUZZ_MOST_SEEDS 128
#define FUZZ_MOST_BYTES (12 * 1024) /* of a file that becomes a seed: larger ones are slow */
#define FUZZ_MOST_SIZE 40           /* px */

/*
 * CPU time that decoding a file may take: no input of a megabyte takes a second, besides what its
 * pixels take. So many times that is allowed, because machines are slow and sanitizers slower.
 */
#define FUZZ_LEAST_S 0.02
#define FUZZ_S_PER_BYTE 1e-6
#define FUZZ_S_PER_PIXEL 20e-9
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define FUZZ_TIMES 50
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define FUZZ_TIMES 50
#endif
#endif
#ifndef FUZZ_TIMES
#define FUZZ_TIMES 5
#endif

/* Floods of small parts: a seed of so many bytes, and one that is tried as it is. */
#define FUZZ_SEED_FLOOD (60 * 1024)
#define FUZZ_WHOLE_FLOOD (1024 * 1024)

/* Some of the kinds are enough for trying every beginning. */
#define FUZZ_PREFIXED 4

static inline void fuzz_add_odd_images(const stk_image_decoder *decoder, fuzz_seed *seeds,
                                       size_t *count) {
    const char *root = getenv("STOKER_DATA");
    char *folder = stk_path_join(root != NULL ? root : "../shared/data", "odd-images");
    stk_dir_list list = {0};
    stk_error err = {0};
    if (stk_path_is_dir(folder) && stk_dir_read(folder, &list, &err) == STK_OK) {
        for (size_t i = 0; i < list.count && *count < FUZZ_MOST_SEEDS; i++) {
            char *path = stk_path_join(folder, list.entries[i].name);
            char *bytes = NULL;
            size_t size = 0;
            if (stk_file_read(path, FUZZ_MOST_BYTES, &bytes, &size, &err) == STK_OK &&
                decoder->recognises((const uint8_t *)bytes, size)) {
                seeds[(*count)++] = (fuzz_seed){bytes, size};
            } else {
                stk_mem_free(bytes);
            }
            stk_mem_free(path);
        }
        stk_dir_list_free(&list);
    }
    stk_mem_free(folder);
}

/* So many bytes of markers or chunks without contents before the picture's first. */
static inline fuzz_seed fuzz_flood(const fuzz_seed *seed, file_format format, size_t flood) {
    static const char *const parts[] = {
        [FILE_JPEG] = "\xFF\xE1\0\x02",
        [FILE_PNG] = "\0\0\0\0tEXt\x96\x42\xC5\x85", /* with its checksum */
        [FILE_WEBP] = "stKr\0\0\0\0",
    };
    static const size_t lengths[] = {[FILE_JPEG] = 4, [FILE_PNG] = 12, [FILE_WEBP] = 8};
    static const size_t places[] = {[FILE_JPEG] = 2, [FILE_PNG] = 33, [FILE_WEBP] = 12};
    size_t place = places[format];
    size_t count = flood / lengths[format];
    size_t size = seed->size + count * lengths[format];
    char *bytes = stk_mem_raw(size, 1);
    FUZZ_REQUIRE(bytes != NULL && seed->size > place);
    memcpy(bytes, seed->bytes, place);
    for (size_t i = 0; i < count; i++) {
        memcpy(bytes + place + i * lengths[format], parts[format], lengths[format]);
    }
    memcpy(bytes + place + count * lengths[format], seed->bytes + place, seed->size - place);
    return (fuzz_seed){bytes, size};
}

static inline void fuzz_check_failure(stk_status status, const stk_error *err) {
    FUZZ_REQUIRE(status == STK_ERR_DATA || status == STK_ERR_MEMORY);
    FUZZ_REQUIRE(err->status == status && err->message[0] != '\0');
}

static inline void fuzz_check_time(const uint8_t *data, size_t size, int64_t start_cpu_ns) {
    double took = (double)(stk_clock_cpu_ns() - start_cpu_ns) * 1e-9;
    if (took > FUZZ_TIMES * FUZZ_LEAST_S) {
        stk_error err = {0};
        int width = 0;
        int height = 0;
        bool sized = stk_image_size(data, size, &width, &height, &err) == STK_OK;
        double allowed = FUZZ_LEAST_S + FUZZ_S_PER_BYTE * (double)size +
                         FUZZ_S_PER_PIXEL * (sized ? (double)width * (double)height : 0);
        FUZZ_REQUIRE(took <= FUZZ_TIMES * allowed);
    }
}

static inline void fuzz_decode(const uint8_t *data, size_t size) {
    stk_error err = {0};
    stk_image image;
    int64_t start = stk_clock_cpu_ns();
    stk_status status = stk_image_decode(data, size, &image, &err);
    fuzz_check_time(data, size, start);
    if (status != STK_OK) {
        fuzz_check_failure(status, &err);
        FUZZ_REQUIRE(image.pixels == NULL);
        return;
    }
    FUZZ_REQUIRE(image.width > 0 && image.height > 0);
    /* Every pixel can be read. */
    size_t count = (size_t)image.width * (size_t)image.height * 3;
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        sum += image.pixels[i];
    }
    FUZZ_REQUIRE(sum <= 255 * (uint64_t)count);
    stk_image_free(&image);
}

/* Twice over other bytes: what succeeds has filled all of the square, both times the same. */
static inline void fuzz_transform(stk_image_scratch *scratch, const stk_transform *transform,
                                  const uint8_t *data, size_t size) {
    static uint8_t out[2][FUZZ_MOST_SIZE * FUZZ_MOST_SIZE * 3];
    stk_rng rng = stk_rng_make(size, STK_RNG_AUGMENT, 0, (uint64_t)transform->size);
    stk_status status[2];
    for (int i = 0; i < 2; i++) {
        stk_error err = {0};
        memset(out[i], i == 0 ? 0x5A : 0xA5, sizeof out[i]);
        int64_t start = stk_clock_cpu_ns();
        status[i] = stk_transform_apply(scratch, transform, data, size, rng, out[i], NULL, &err);
        fuzz_check_time(data, size, start);
        if (status[i] != STK_OK) {
            fuzz_check_failure(status[i], &err);
        }
    }
    size_t bytes = 3 * (size_t)transform->size * (size_t)transform->size;
    FUZZ_REQUIRE(status[0] == status[1]);
    FUZZ_REQUIRE(status[0] != STK_OK || memcmp(out[0], out[1], bytes) == 0);
    for (size_t i = bytes; i < sizeof out[0]; i++) {
        FUZZ_REQUIRE(out[0][i] == 0x5A && out[1][i] == 0xA5);
    }
}

static inline void fuzz_picture(const uint8_t *data, size_t size) {
    static const stk_transform transforms[] = {
        {.size = 3, .crop_fraction = 0.9},
        {.size = 16, .train = true, .augment = {.crop_scale = 0.05, .flip = true}},
        {.size = FUZZ_MOST_SIZE, .train = true, .augment = {.crop_scale = 0.5, .flip = true}},
    };
    static stk_image_scratch *scratch; /* lives as long as the program */
    stk_error err = {0};
    if (scratch == NULL) {
        FUZZ_REQUIRE(stk_image_scratch_new(&scratch, NULL, &err) == STK_OK);
    }
    fuzz_decode(data, size);
    for (size_t i = 0; i < sizeof transforms / sizeof *transforms; i++) {
        fuzz_transform(scratch, &transforms[i], data, size);
    }
}

/* The seeds live as long as the program. */
static inline fuzz_plan fuzz_plan_pictures(file_format format, const stk_image_decoder *decoder,
                                           uint64_t mutations) {
    static fuzz_seed seeds[FUZZ_MOST_SEEDS];
    size_t count = 0;
    for (size_t k = 0; k < FILE_KINDS; k++) {
        if (file_kinds[k].format == format) {
            blob file = make_file(&file_kinds[k], 19, 13, (int)(k % 9), k);
            seeds[count++] = (fuzz_seed){(const char *)file.bytes, file.size};
        }
    }
    size_t prefixed = count < FUZZ_PREFIXED ? count : FUZZ_PREFIXED;
    if (count > 0) {
        fuzz_seed whole = fuzz_flood(&seeds[0], format, FUZZ_WHOLE_FLOOD);
        fuzz_picture((const uint8_t *)whole.bytes, whole.size);
        stk_mem_free((char *)(uintptr_t)whole.bytes);
        seeds[count] = fuzz_flood(&seeds[0], format, FUZZ_SEED_FLOOD);
        count++;
    }
    fuzz_add_odd_images(decoder, seeds, &count);
    return (fuzz_plan){
        .seeds = seeds, .count = count, .prefixed = prefixed, .mutations = mutations, .large = 10};
}

#endif
