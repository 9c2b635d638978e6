/*
 * test_image_part.c - decoding only what a crop needs gives what decoding everything gives.
 */
#include "check.h"
#include "image_kinds.h"
#include "resize_picture.h"

#include "base/error.h"

static const int shapes[][2] = {{1, 1}, {7, 5}, {17, 33}, {64, 48}, {333, 251}};
#define SHAPES (sizeof shapes / sizeof *shapes)
#define LARGEST 128 /* px: a crop of 333 x 251 to this is never divided */

static int random_between(stk_rng *rng, int low, int high) {
    return low + (int)stk_rng_below(rng, (uint64_t)(high - low) + 1);
}

/* ---- the decoders: any part equals the same part of the whole ---- */

static bool same_part(const catcher *whole, const catcher *part) {
    if (part->count != part->part.height || part->x > part->part.x ||
        part->x + part->rows.width < part->part.x + part->part.width) {
        return false;
    }
    for (int y = 0; y < part->part.height; y++) {
        if (memcmp(pixel(&part->rows, part->part.x - part->x, y),
                   pixel(&whole->rows, part->part.x, part->part.y + y),
                   3 * (size_t)part->part.width) != 0) {
            return false;
        }
    }
    return true;
}

static void check_parts(const char *name, const blob *file, int divisor, stk_rng *rng) {
    stk_error err = {0};
    catcher whole = {.part.divisor = divisor};
    REQUIRE_OK(catch_part(&whole, file, 0, &err), &err);
    REQUIRE(whole.x == 0 && whole.rows.width == whole.part.width);
    REQUIRE(whole.count == whole.part.height);
    int parts = whole.part.width > 100 ? 4 : check_tries(20);
    for (int i = 0; i < parts; i++) {
        stk_image_part wanted = {.divisor = divisor};
        wanted.x = random_between(rng, 0, whole.part.width - 1);
        wanted.y = random_between(rng, 0, whole.part.height - 1);
        wanted.width = random_between(rng, 1, whole.part.width - wanted.x);
        wanted.height = random_between(rng, 1, whole.part.height - wanted.y);
        catcher part = {.part = wanted};
        REQUIRE_OK(catch_part(&part, file, 0, &err), &err);
        if (!same_part(&whole, &part)) {
            CHECK_FAIL("%s, %d x %d, divided by %d: columns %d+%d, rows %d+%d differ", name,
                       whole.info.width, whole.info.height, divisor, wanted.x, wanted.width,
                       wanted.y, wanted.height);
        }
        stk_image_free(&part.rows);
    }
    stk_image_free(&whole.rows);
}

static void any_part_equals_that_of_the_whole(void) {
    stk_rng rng = stk_rng_make(1, STK_RNG_TEST, 0, 0);
    for (size_t k = 0; k < FILE_KINDS; k++) {
        for (size_t s = 0; s < SHAPES; s++) {
            blob file = make_file(&file_kinds[k], shapes[s][0], shapes[s][1], 0, k);
            int most = file_kinds[k].format == FILE_JPEG ? 8 : 1;
            for (int divisor = 1; divisor <= most; divisor *= 2) {
                check_parts(file_kinds[k].name, &file, divisor, &rng);
            }
            free_blob(&file);
        }
    }
}

/* ---- the transform: equals decoding, cropping and scaling one after the other ---- */

typedef struct difference {
    int most;
    double mean;
} difference;

static difference compare(const uint8_t *a, const uint8_t *b, int size) {
    difference d = {0};
    int count = size * size * 3;
    for (int i = 0; i < count; i++) {
        int by = abs(a[i] - b[i]);
        d.most = by > d.most ? by : d.most;
        d.mean += (double)by / count;
    }
    return d;
}

/* Training scales with the triangle whatever the model wants in evaluation. */
static stk_interpolation filter_of(const stk_transform *transform) {
    return transform->train ? STK_BILINEAR : transform->interpolation;
}

/* Both ways to the square; `image` is the whole file's picture. False after an error. */
static bool both_ways(stk_image_scratch *scratch, const stk_transform *transform, const blob *file,
                      const stk_image *image, uint64_t number, uint8_t *out, uint8_t *expected) {
    stk_error err = {0};
    stk_rng rng = stk_rng_make(2, STK_RNG_AUGMENT, 0, number);
    stk_rng drawn = rng;
    bool flip = false;
    stk_crop crop = stk_transform_draw(transform, image->width, image->height, &drawn, &flip);
    stk_status status =
        resize_picture(image, crop, transform->size, filter_of(transform), flip, expected, &err);
    if (status == STK_OK) {
        status =
            stk_transform_apply(scratch, transform, file->bytes, file->size, rng, out, NULL, &err);
    }
    if (status != STK_OK) {
        CHECK_FAIL("%s", err.message);
    }
    return status == STK_OK;
}

static stk_transform draw_transform(stk_rng *rng, int size) {
    return (stk_transform){.size = size,
                           .train = stk_rng_below(rng, 4) > 0,
                           .augment = {.crop_scale = stk_rng_range(rng, 0.01, 0.5), .flip = true},
                           .crop_fraction = stk_rng_range(rng, 0.3, 1),
                           .interpolation =
                               stk_rng_below(rng, 2) == 1 ? STK_BICUBIC : STK_BILINEAR};
}

/* Sizes at which a JPEG is not divided: at least half of the short side. */
static int draw_size(stk_rng *rng, int width, int height) {
    int side = width < height ? width : height;
    int size = random_between(rng, side / 2 + 1, LARGEST);
    return size;
}

static void apply_equals_decoding_everything(void) {
    static uint8_t out[LARGEST * LARGEST * 3];
    static uint8_t expected[LARGEST * LARGEST * 3];
    stk_error err = {0};
    stk_image_scratch *scratch = NULL;
    stk_rng rng = stk_rng_make(3, STK_RNG_TEST, 0, 0);
    REQUIRE_OK(stk_image_scratch_new(&scratch, NULL, &err), &err);
    for (size_t k = 0; k < FILE_KINDS; k++) {
        for (size_t s = 0; s < SHAPES; s++) {
            stk_image image = {0};
            blob file = make_file(&file_kinds[k], shapes[s][0], shapes[s][1], 0, k);
            REQUIRE_OK(stk_image_decode(file.bytes, file.size, &image, &err), &err);
            for (uint64_t i = 0; i < (uint64_t)check_tries(12); i++) {
                int size = draw_size(&rng, shapes[s][0], shapes[s][1]);
                stk_transform transform = draw_transform(&rng, size);
                size_t bytes = 3 * (size_t)size * (size_t)size;
                REQUIRE(both_ways(scratch, &transform, &file, &image, i, out, expected));
                if (memcmp(out, expected, bytes) != 0) {
                    CHECK_FAIL("%s, %d x %d to %d, crop %d: other bytes", file_kinds[k].name,
                               shapes[s][0], shapes[s][1], size, (int)i);
                }
            }
            stk_image_free(&image);
            free_blob(&file);
        }
    }
    stk_image_scratch_free(scratch);
}

/*
 * A turned picture is scaled as it is stored and turned afterwards. Then rows may be weighed before
 * columns, and what is rounded in between, to 1/64 level, is rounded elsewhere; mirrored weights
 * may be rounded the other way by 1/16384 each. Both together can move a value over one border of
 * rounding and no further, and seldom; a part that is wrong by a tenth of a pixel moves noise more.
 */
static void check_turned(stk_image_scratch *scratch, const file_kind *kind, int orientation,
                         stk_rng *rng) {
    static uint8_t out[LARGEST * LARGEST * 3];
    static uint8_t expected[LARGEST * LARGEST * 3];
    stk_error err = {0};
    for (size_t s = 0; s < SHAPES; s++) {
        stk_image image = {0};
        blob file = make_file(kind, shapes[s][0], shapes[s][1], orientation, s);
        REQUIRE_OK(stk_image_decode(file.bytes, file.size, &image, &err), &err);
        for (uint64_t i = 0; i < (uint64_t)check_tries(8); i++) {
            int size = draw_size(rng, shapes[s][0], shapes[s][1]);
            stk_transform transform = draw_transform(rng, size);
            REQUIRE(both_ways(scratch, &transform, &file, &image, i, out, expected));
            difference d = compare(out, expected, size);
            if (d.most > (orientation > 1) || (size >= 16 && d.mean > 0.05)) {
                CHECK_FAIL("%s, %d x %d to %d, orientation %d, crop %d: %d levels, mean %.4f",
                           kind->name, shapes[s][0], shapes[s][1], size, orientation, (int)i,
                           d.most, d.mean);
            }
        }
        stk_image_free(&image);
        free_blob(&file);
    }
}

static void apply_turns_what_it_scales(void) {
    stk_error err = {0};
    stk_image_scratch *scratch = NULL;
    stk_rng rng = stk_rng_make(4, STK_RNG_TEST, 0, 0);
    REQUIRE_OK(stk_image_scratch_new(&scratch, NULL, &err), &err);
    for (size_t k = 0; k < FILE_KINDS; k++) {
        const char *name = file_kinds[k].name;
        bool chosen = strcmp(name, "JPEG 4:2:0") == 0 || strcmp(name, "CMYK JPEG") == 0 ||
                      strcmp(name, "progressive JPEG 4:4:4") == 0;
#ifdef PNG_eXIf_SUPPORTED
        chosen = chosen || strcmp(name, "RGB PNG") == 0 || strcmp(name, "interlaced RGB PNG") == 0;
#endif
        chosen = chosen || strcmp(name, "lossy WebP") == 0 || strcmp(name, "lossless WebP") == 0;
        for (int orientation = 1; chosen && orientation <= 8; orientation++) {
            check_turned(scratch, &file_kinds[k], orientation, &rng);
        }
    }
    stk_image_scratch_free(scratch);
}

/* ---- windows of native pixels ---- */

/* The pixel of `count` at a place beyond them, in mirror images. */
static int reflected(int place, int count) {
    while (place >= count) {
        place = place < 2 * count ? 2 * count - 1 - place : place - 2 * count;
    }
    return place;
}

/* Whether the square has the picture's own pixels from (x, y) on. */
static bool is_window(const stk_image *image, int x, int y, int size, bool flip,
                      const uint8_t *square) {
    int width = image->width < size ? image->width : size;
    int height = image->height < size ? image->height : size;
    for (int i = 0; i < size * size; i++) {
        int column = reflected(i % size, width);
        int row = reflected(i / size, height);
        column = flip ? width - 1 - column : column;
        if (memcmp(square + 3 * (size_t)i, pixel(image, x + column, y + row), 3) != 0) {
            return false;
        }
    }
    return true;
}

/* Windows of any size and view of one picture, trained with or not. */
static void check_windows(stk_image_scratch *scratch, const char *name, const blob *file) {
    static const int sizes[] = {1, 5, 8, 33, 64, 100};
    static uint8_t out[100 * 100 * 3];
    stk_error err = {0};
    stk_image image = {0};
    REQUIRE_OK(stk_image_decode(file->bytes, file->size, &image, &err), &err);
    for (size_t n = 0; n < 2 * STK_COUNT(sizes); n++) {
        stk_transform t = {.size = sizes[n / 2],
                           .native = true,
                           .train = n % 2 == 0,
                           .augment = {.crop_scale = 0.3, .flip = true},
                           .crop_fraction = 0.5,
                           .interpolation = STK_BICUBIC,
                           .view = (int)(n % STK_TRANSFORM_VIEWS)};
        stk_rng rng = stk_rng_make(8, STK_RNG_AUGMENT, 0, n);
        stk_rng drawn = rng;
        bool flip = false;
        stk_crop crop = stk_transform_draw(&t, image.width, image.height, &drawn, &flip);
        REQUIRE_OK(stk_transform_apply(scratch, &t, file->bytes, file->size, rng, out, NULL, &err),
                   &err);
        if (!is_window(&image, (int)crop.x, (int)crop.y, t.size, flip, out)) {
            CHECK_FAIL("%s, %d x %d: a window of %d differs", name, image.width, image.height,
                       t.size);
        }
        CHECK((int)crop.x % 8 == 0 && (int)crop.y % 8 == 0);
        CHECK(crop.x + crop.width <= image.width && crop.y + crop.height <= image.height);
    }
    stk_image_free(&image);
}

/* All formats, larger pictures than the window and smaller ones, a JPEG of ten times its size. */
static void native_windows_are_the_pictures_own_pixels(void) {
    stk_error err = {0};
    stk_image_scratch *scratch = NULL;
    REQUIRE_OK(stk_image_scratch_new(&scratch, NULL, &err), &err);
    for (size_t k = 0; k < FILE_KINDS; k++) {
        for (size_t s = 0; s < SHAPES; s++) {
            blob file = make_file(&file_kinds[k], shapes[s][0], shapes[s][1], 0, k);
            check_windows(scratch, file_kinds[k].name, &file);
            free_blob(&file);
        }
    }
    stk_image_scratch_free(scratch);
}

/* Of a picture that is stored lying on its side, too. */
static void native_windows_of_turned_pictures(void) {
    static uint8_t out[64 * 64 * 3];
    stk_error err = {0};
    stk_image_scratch *scratch = NULL;
    REQUIRE_OK(stk_image_scratch_new(&scratch, NULL, &err), &err);
    for (int orientation = 1; orientation <= 8; orientation++) {
        for (int view = 0; view < STK_TRANSFORM_VIEWS; view += 2) {
            blob file = make_file(&file_kinds[3], 100, 48, orientation, 1);
            stk_image image = {0};
            stk_transform t = {.size = 40, .native = true, .view = view};
            stk_rng rng = stk_rng_make(9, STK_RNG_AUGMENT, 0, 0);
            bool flip = true;
            REQUIRE_OK(stk_image_decode(file.bytes, file.size, &image, &err), &err);
            stk_crop crop = stk_transform_draw(&t, image.width, image.height, &rng, &flip);
            REQUIRE_OK(
                stk_transform_apply(scratch, &t, file.bytes, file.size, rng, out, NULL, &err),
                &err);
            CHECK(!flip && is_window(&image, (int)crop.x, (int)crop.y, 40, false, out));
            stk_image_free(&image);
            free_blob(&file);
        }
    }
    stk_image_scratch_free(scratch);
}

/* Every place of the grid is drawn; evaluation takes the middle, then corners. */
static void native_windows_are_everywhere(void) {
    static const int views[][2] = {{8, 8}, {0, 0}, {16, 16}, {16, 0}};
    stk_transform t = {.size = 24, .native = true, .train = true, .augment = {.flip = true}};
    stk_rng rng = stk_rng_make(10, STK_RNG_AUGMENT, 0, 0);
    int seen[3][3][2] = {{{0}}};
    bool flip = false;
    for (int i = 0; i < 400; i++) {
        stk_crop crop = stk_transform_draw(&t, 45, 41, &rng, &flip);
        REQUIRE(crop.x >= 0 && crop.x <= 16 && crop.y >= 0 && crop.y <= 16);
        seen[(int)crop.x / 8][(int)crop.y / 8][flip]++;
    }
    for (int i = 0; i < 18; i++) {
        CHECK(seen[i / 6][i / 2 % 3][i % 2] > 0);
    }
    t.train = false;
    for (t.view = 0; t.view < STK_TRANSFORM_VIEWS; t.view++) {
        stk_crop crop = stk_transform_draw(&t, 45, 41, &rng, &flip);
        CHECK_INT(crop.x, views[t.view / 2][0]);
        CHECK_INT(crop.y, views[t.view / 2][1]);
        CHECK(flip == (t.view % 2 == 1));
    }
}

/* ---- divided pictures ---- */

/* The same square from a picture that was decoded whole at 1/divisor of its size. */
static bool divided_equals(const blob *file, const stk_transform *transform, stk_crop crop,
                           bool flip, int divisor, const uint8_t *out) {
    int size = transform->size;
    stk_error err = {0};
    catcher whole = {.part.divisor = divisor};
    uint8_t *expected = stk_mem_raw((size_t)size * (size_t)size, 3);
    crop =
        (stk_crop){crop.x / divisor, crop.y / divisor, crop.width / divisor, crop.height / divisor};
    bool same = catch_part(&whole, file, 0, &err) == STK_OK &&
                resize_picture(&whole.rows, crop, size, filter_of(transform), flip, expected,
                               &err) == STK_OK &&
                memcmp(out, expected, (size_t)size * (size_t)size * 3) == 0;
    stk_image_free(&whole.rows);
    stk_mem_free(expected);
    return same;
}

static void check_divisor(stk_image_scratch *scratch, const stk_transform *transform,
                          const blob *file, int width, int height, uint64_t number) {
    static uint8_t out[300 * 300 * 3];
    stk_error err = {0};
    stk_rng rng = stk_rng_make(5, STK_RNG_AUGMENT, 0, number);
    stk_rng drawn = rng;
    bool flip = false;
    stk_crop crop = stk_transform_draw(transform, width, height, &drawn, &flip);
    REQUIRE_OK(
        stk_transform_apply(scratch, transform, file->bytes, file->size, rng, out, NULL, &err),
        &err);
    double side = fmin(crop.width, crop.height);
    int expected = side >= 8 * transform->size   ? 8
                   : side >= 4 * transform->size ? 4
                   : side >= 2 * transform->size ? 2
                                                 : 1;
    for (int divisor = 1; divisor <= 8; divisor *= 2) {
        bool same = divided_equals(file, transform, crop, flip, divisor, out);
        if (same != (divisor == expected)) {
            CHECK_FAIL("%d x %d to %d: divided by %d, expected %d", width, height, transform->size,
                       divisor, expected);
        }
    }
}

/* Sizes on both sides of every border, and any crops of a picture with odd sides. */
static void the_strongest_division_that_covers_is_taken(void) {
    static const int borders[] = {32, 33, 64, 65, 128, 129, 256, 300};
    const file_kind *kind = &file_kinds[3];
    stk_error err = {0};
    stk_image_scratch *scratch = NULL;
    stk_rng rng = stk_rng_make(6, STK_RNG_TEST, 0, 0);
    REQUIRE_OK(stk_image_scratch_new(&scratch, NULL, &err), &err);
    blob square = make_file(kind, 256, 256, 0, 1);
    for (size_t i = 0; i < sizeof borders / sizeof *borders; i++) {
        stk_transform transform = {.size = borders[i], .crop_fraction = 1};
        check_divisor(scratch, &transform, &square, 256, 256, 0);
    }
    free_blob(&square);
    blob odd = make_file(kind, 333, 251, 0, 2);
    for (uint64_t i = 0; i < 60; i++) {
        stk_transform transform = draw_transform(&rng, random_between(&rng, 5, 60));
        check_divisor(scratch, &transform, &odd, 333, 251, i);
    }
    free_blob(&odd);
    stk_image_scratch_free(scratch);
}

/* Waves with periods of at least 80 px, ten pixels at an eighth of the size. */
static stk_image waves(int width, int height) {
    stk_image image = quarters(width, height);
    for (int y = 0; y < height; y++) {
        for (int x = 0; x < width; x++) {
            uint8_t *p = pixel(&image, x, y);
            p[0] = (uint8_t)(128 + 80 * sin(x * 0.07) * cos(y * 0.02));
            p[1] = (uint8_t)(128 + 80 * sin(y * 0.06 + x * 0.03));
            p[2] = (uint8_t)(128 + 80 * cos((x + y) * 0.05));
        }
    }
    return image;
}

/*
 * Dividing by d blurs as a box of d px does, which takes (d * w)^2 / 24 off a wave of w radians per
 * px: 1.3 % of 80 levels here. With the rounding and with divided pixels that lie across the crop's
 * edge the mean comes to one level. A shift by half a divided pixel would be ten times the bound.
 */
static void dividing_changes_little(void) {
    static const int sizes[] = {64, 100, 150, 250};
    static uint8_t out[250 * 250 * 3];
    static uint8_t expected[250 * 250 * 3];
    stk_error err = {0};
    stk_image_scratch *scratch = NULL;
    stk_image scene = waves(1203, 901);
    REQUIRE_OK(stk_image_scratch_new(&scratch, NULL, &err), &err);
    for (int orientation = 1; orientation <= 8; orientation++) {
        blob jpeg = make_rgb_jpeg(&scene, false);
        blob tagged = with_exif(jpeg, orientation, true);
        stk_image image = {0};
        REQUIRE_OK(stk_image_decode(tagged.bytes, tagged.size, &image, &err), &err);
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            stk_transform transform = {.size = sizes[i],
                                       .train = i % 2 == 0,
                                       .augment = {.crop_scale = 0.6, .flip = true},
                                       .crop_fraction = 0.9};
            REQUIRE(both_ways(scratch, &transform, &tagged, &image, i, out, expected));
            difference d = compare(out, expected, sizes[i]);
            if (getenv("STK_TEST_SHOW") != NULL) {
                printf("  to %d, orientation %d: mean %.3f, most %d\n", sizes[i], orientation,
                       d.mean, d.most);
            }
            CHECK(d.mean < 1.5);
        }
        stk_image_free(&image);
        free_blob(&jpeg);
        free_blob(&tagged);
    }
    stk_image_free(&scene);
    stk_image_scratch_free(scratch);
}

/* ---- views: every second one is the exact mirror image of the one before it ---- */

static bool is_mirrored(const uint8_t *a, const uint8_t *b, int size) {
    bool same = true;
    for (int y = 0; same && y < size; y++) {
        for (int x = 0; same && x < size; x++) {
            same = memcmp(a + 3 * (y * size + x), b + 3 * (y * size + size - 1 - x), 3) == 0;
        }
    }
    return same;
}

static void odd_views_are_mirror_images(void) {
    static const int sizes[] = {8, 33, 64};
    stk_error err = {0};
    stk_image_scratch *scratch = NULL;
    uint8_t out[STK_TRANSFORM_VIEWS][64 * 64 * 3];
    stk_rng rng = stk_rng_make(5, STK_RNG_TEST, 0, 0);
    REQUIRE_OK(stk_image_scratch_new(&scratch, NULL, &err), &err);
    for (int orientation = 1; orientation <= 8; orientation++) {
        for (size_t k = 0; k < FILE_KINDS; k++) {
            blob file = make_file(&file_kinds[k], 91, 120, orientation, k);
            int size = sizes[(size_t)orientation % 3];
            for (int view = 0; view < STK_TRANSFORM_VIEWS; view++) {
                stk_transform transform = {.size = size, .crop_fraction = 0.9, .view = view};
                REQUIRE_OK(stk_transform_apply(scratch, &transform, file.bytes, file.size, rng,
                                               out[view], NULL, &err),
                           &err);
                size_t bytes = 3 * (size_t)size * (size_t)size;
                if (view % 2 == 1 && !is_mirrored(out[view - 1], out[view], size)) {
                    CHECK_FAIL("%s, orientation %d: view %d", file_kinds[k].name, orientation,
                               view);
                }
                CHECK(view == 0 || memcmp(out[0], out[view], bytes) != 0);
            }
            free_blob(&file);
        }
    }
    stk_image_scratch_free(scratch);
}

static const check_test tests[] = {
    TEST(any_part_equals_that_of_the_whole),
    TEST(apply_equals_decoding_everything),
    TEST(apply_turns_what_it_scales),
    TEST(native_windows_are_the_pictures_own_pixels),
    TEST(native_windows_of_turned_pictures),
    TEST(native_windows_are_everywhere),
    TEST(the_strongest_division_that_covers_is_taken),
    TEST(dividing_changes_little),
    TEST(odd_views_are_mirror_images),
};

CHECK_MAIN(tests)
