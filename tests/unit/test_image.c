/* test_image.c - decoding and encoding: every kind of pixel, damage, lies and lack of memory. */
#include "check.h"

#include "base/error.h"
#include "base/files/file.h"
#include "image_files.h"

static void jpeg_goes_there_and_back(void) {
    stk_error err = {0};
    stk_image image = quarters(64, 32);
    blob jpeg = {0};
    REQUIRE_OK(stk_image_encode_jpeg(&image, 95, &jpeg.bytes, &jpeg.size, &err), &err);
    stk_image back;
    REQUIRE_OK(stk_image_decode(jpeg.bytes, jpeg.size, &back, &err), &err);
    CHECK(near_image(&back, &image, 6));
    stk_image_free(&back);
    free_blob(&jpeg);
    CHECK_INT(stk_image_encode_jpeg(&image, 0, &jpeg.bytes, &jpeg.size, &err), STK_ERR_USAGE);
    stk_error_clear(&err);
    CHECK_INT(stk_image_encode_jpeg(&image, 101, &jpeg.bytes, &jpeg.size, &err), STK_ERR_USAGE);
    stk_image_free(&image);
}

static void size_is_told_without_decoding(void) {
    stk_error err = {0};
    stk_image image = quarters(70, 33);
    blob jpeg = make_rgb_jpeg(&image, true);
    int width = 0;
    int height = 0;
    REQUIRE_OK(stk_image_size(jpeg.bytes, jpeg.size, &width, &height, &err), &err);
    CHECK(width == 70 && height == 33);
    CHECK_INT(stk_image_size(jpeg.bytes, 30, &width, &height, &err), STK_ERR_DATA);
    stk_error_clear(&err);
    CHECK_INT(stk_image_size((const uint8_t *)"text", 4, &width, &height, &err), STK_ERR_DATA);
    free_blob(&jpeg);
    stk_image_free(&image);
}

static void jpeg_that_is_too_wide_is_refused(void) {
    stk_error err = {0};
    stk_image image = quarters(70000, 2);
    blob jpeg = {0};
    CHECK_INT(stk_image_encode_jpeg(&image, 90, &jpeg.bytes, &jpeg.size, &err), STK_ERR_DATA);
    CHECK_CONTAINS(err.message, "cannot encode");
    stk_image_free(&image);
}

static void jpeg_of_every_orientation_stands_upright(void) {
    stk_error err = {0};
    stk_image scene = quarters(64, 40);
    for (int orientation = 1; orientation <= 8; orientation++) {
        stk_image stored = store(&scene, orientation);
        blob jpeg = make_rgb_jpeg(&stored, false);
        blob tagged = with_exif(jpeg, orientation, orientation % 2 == 0);
        stk_image image;
        REQUIRE_OK(stk_image_decode(tagged.bytes, tagged.size, &image, &err), &err);
        if (!near_image(&image, &scene, 8)) {
            CHECK_FAIL("orientation %d does not stand upright", orientation);
        }
        stk_image_free(&image);
        stk_image_free(&stored);
        free_blob(&jpeg);
        free_blob(&tagged);
    }
    stk_image_free(&scene);
}

/* Orientation 9, a directory behind the end, a cut directory: the picture counts, not the tag. */
static void jpeg_with_damaged_exif_is_read_as_stored(void) {
    stk_error err = {0};
    stk_image scene = quarters(64, 40);
    blob jpeg = make_rgb_jpeg(&scene, false);
    for (int damage = 0; damage < 4; damage++) {
        blob tagged = with_exif(jpeg, damage == 0 ? 9 : 6, true);
        uint8_t *tiff = tagged.bytes + 12;
        if (damage == 1) {
            tiff[7] = 0xFF;
        } else if (damage == 2) {
            tiff[8] = 200; /* more entries than there are, and none of them is the tag */
            tiff[10] = 0x13;
        } else if (damage == 3) {
            tiff[2] = 'x';
        }
        stk_image image;
        REQUIRE_OK(stk_image_decode(tagged.bytes, tagged.size, &image, &err), &err);
        CHECK(near_image(&image, &scene, 8));
        stk_image_free(&image);
        free_blob(&tagged);
    }
    free_blob(&jpeg);
    stk_image_free(&scene);
}

static void jpeg_progressive_and_restarts(void) {
    stk_error err = {0};
    stk_image scene = quarters(64, 40);
    blob progressive = make_rgb_jpeg(&scene, true);
    jpeg_kind kind = {.in = JCS_RGB, .out = JCS_RGB, .adobe = true, .restart = 1};
    blob plain_rgb = make_jpeg(scene.pixels, 64, 40, 3, kind);
    stk_image image;
    REQUIRE_OK(stk_image_decode(progressive.bytes, progressive.size, &image, &err), &err);
    CHECK(near_image(&image, &scene, 8));
    stk_image_free(&image);
    REQUIRE_OK(stk_image_decode(plain_rgb.bytes, plain_rgb.size, &image, &err), &err);
    CHECK(near_image(&image, &scene, 8));
    stk_image_free(&image);
    free_blob(&progressive);
    free_blob(&plain_rgb);
    stk_image_free(&scene);
}

static void jpeg_grey_becomes_rgb(void) {
    stk_error err = {0};
    uint8_t grey[32 * 16];
    memset(grey, 77, sizeof grey);
    jpeg_kind kind = {.in = JCS_GRAYSCALE, .out = JCS_GRAYSCALE};
    blob jpeg = make_jpeg(grey, 32, 16, 1, kind);
    stk_image image;
    REQUIRE_OK(stk_image_decode(jpeg.bytes, jpeg.size, &image, &err), &err);
    CHECK_INT(image.width, 32);
    CHECK(near_pixel(&image, 20, 10, (const uint8_t[]){77, 77, 77}, 1));
    stk_image_free(&image);
    free_blob(&jpeg);
}

/* Cyan 255 (full), magenta 0, yellow 128, black 64: red none, green 255 * 191 / 255, blue half. */
static void jpeg_of_four_inks(void) {
    stk_error err = {0};
    const uint8_t ink[4] = {255, 0, 128, 64};
    const uint8_t expected[3] = {0, 191, 95};
    for (int i = 0; i < 4; i++) {
        bool adobe = i % 2 == 1;
        bool ycck = i >= 2;
        uint8_t values[32 * 16 * 4];
        for (size_t j = 0; j < sizeof values; j++) {
            values[j] = (uint8_t)(adobe ? 255 - ink[j % 4] : ink[j % 4]);
        }
        jpeg_kind kind = {.in = JCS_CMYK, .out = ycck ? JCS_YCCK : JCS_CMYK, .adobe = adobe};
        if (ycck && !adobe) {
            continue; /* only the marker says that it is YCCK */
        }
        blob jpeg = make_jpeg(values, 32, 16, 4, kind);
        stk_image image;
        REQUIRE_OK(stk_image_decode(jpeg.bytes, jpeg.size, &image, &err), &err);
        if (!near_pixel(&image, 9, 9, expected, 4)) {
            const uint8_t *p = pixel(&image, 9, 9);
            CHECK_FAIL("adobe %d ycck %d gives %d %d %d", adobe, ycck, p[0], p[1], p[2]);
        }
        stk_image_free(&image);
        free_blob(&jpeg);
    }
}

static void jpeg_cut_off_is_used_when_half_is_there(void) {
    stk_error err = {0};
    stk_image scene = noise(128, 128, 1);
    blob jpeg = make_rgb_jpeg(&scene, false);
    stk_image whole;
    stk_image cut;
    REQUIRE_OK(stk_image_decode(jpeg.bytes, jpeg.size, &whole, &err), &err);
    REQUIRE_OK(stk_image_decode(jpeg.bytes, jpeg.size * 8 / 10, &cut, &err), &err);
    CHECK_INT(memcmp(cut.pixels, whole.pixels, (size_t)128 * 3 * 64), 0);
    CHECK(memcmp(cut.pixels, whole.pixels, (size_t)128 * 3 * 128) != 0);
    stk_image_free(&cut);
    CHECK_INT(stk_image_decode(jpeg.bytes, jpeg.size * 3 / 10, &cut, &err), STK_ERR_DATA);
    CHECK_CONTAINS(err.message, "of its 128 rows");
    CHECK(cut.pixels == NULL);
    stk_error_clear(&err);
    /* Only the end marker is missing. */
    REQUIRE_OK(stk_image_decode(jpeg.bytes, jpeg.size - 2, &cut, &err), &err);
    CHECK_INT(memcmp(cut.pixels, whole.pixels, (size_t)128 * 3 * 128), 0);
    stk_image_free(&cut);
    stk_image_free(&whole);
    free_blob(&jpeg);

    jpeg = make_rgb_jpeg(&scene, true);
    REQUIRE_OK(stk_image_decode(jpeg.bytes, jpeg.size / 2, &cut, &err), &err);
    stk_image_free(&cut);
    size_t scan = 0; /* where the first scan begins, which holds all rows coarsely */
    while (jpeg.bytes[scan] != 0xFF || jpeg.bytes[scan + 1] != 0xDA) {
        scan++;
    }
    CHECK_INT(stk_image_decode(jpeg.bytes, scan + 60, &cut, &err), STK_ERR_DATA);
    CHECK_CONTAINS(err.message, "rows");
    free_blob(&jpeg);
    stk_image_free(&scene);
}

/* Every length of a small file: either a picture or a reason, never a crash or a leak. */
static void every_prefix_is_a_picture_or_a_reason(void) {
    stk_image scene = noise(24, 24, 2);
    blob files[3] = {make_rgb_jpeg(&scene, false), make_rgb_jpeg(&scene, true),
                     make_rgb_png(&scene, PNG_INTERLACE_ADAM7)};
    for (int i = 0; i < 3; i++) {
        for (size_t size = 0; size < files[i].size; size++) {
            stk_error err = {0};
            stk_image image;
            uint8_t *exact = stk_mem_raw(size, 1); /* so that reading past the end is seen */
            memcpy(exact, files[i].bytes, size);
            stk_status status = stk_image_decode(exact, size, &image, &err);
            if (status == STK_OK) {
                CHECK_INT(image.width, 24);
                stk_image_free(&image);
            } else {
                CHECK_INT(status, STK_ERR_DATA);
                CHECK(err.message[0] != '\0' && image.pixels == NULL);
            }
            stk_mem_free(exact);
        }
        free_blob(&files[i]);
    }
    stk_image_free(&scene);
}

static void damaged_bytes_never_crash(void) {
    stk_image scene = noise(24, 24, 3);
    blob files[3] = {make_rgb_jpeg(&scene, false), make_rgb_jpeg(&scene, true),
                     make_rgb_png(&scene, 0)};
    stk_rng rng = stk_rng_make(4, STK_RNG_TEST, 0, 0);
    for (int i = 0; i < 3000; i++) {
        blob *file = &files[i % 3];
        size_t place = (size_t)stk_rng_below(&rng, file->size);
        uint8_t kept = file->bytes[place];
        file->bytes[place] = (uint8_t)stk_rng_u64(&rng);
        stk_error err = {0};
        stk_image image;
        if (stk_image_decode(file->bytes, file->size, &image, &err) == STK_OK) {
            stk_image_free(&image);
        } else {
            CHECK(err.message[0] != '\0');
        }
        file->bytes[place] = kept;
    }
    for (int i = 0; i < 3; i++) {
        free_blob(&files[i]);
    }
    stk_image_free(&scene);
}

static void png_is_exact(void) {
    stk_error err = {0};
    stk_image scene = noise(37, 23, 5);
    for (int interlace = 0; interlace < 2; interlace++) {
        blob png = make_rgb_png(&scene, interlace);
        stk_image image;
        REQUIRE_OK(stk_image_decode(png.bytes, png.size, &image, &err), &err);
        REQUIRE(image.width == 37 && image.height == 23);
        CHECK_INT(memcmp(image.pixels, scene.pixels, (size_t)37 * 23 * 3), 0);
        stk_image_free(&image);
        free_blob(&png);
    }
    stk_image_free(&scene);
}

static void check_png(const uint8_t *row, size_t row_bytes, int width, png_kind kind,
                      const uint8_t (*expected)[3]) {
    stk_error err = {0};
    blob png = make_png(row, row_bytes, width, 1, kind);
    stk_image image;
    REQUIRE_OK(stk_image_decode(png.bytes, png.size, &image, &err), &err);
    REQUIRE(image.width == width && image.height == 1);
    for (int x = 0; x < width; x++) {
        const uint8_t *p = pixel(&image, x, 0);
        if (!near_pixel(&image, x, 0, expected[x], 0)) {
            CHECK_FAIL("colour type %d depth %d: pixel %d is %d %d %d", kind.colour, kind.depth, x,
                       p[0], p[1], p[2]);
        }
    }
    stk_image_free(&image);
    free_blob(&png);
}

static void png_of_every_kind(void) {
    const png_color palette[4] = {{10, 20, 30}, {200, 0, 0}, {0, 0, 0}, {0, 100, 0}};
    const uint8_t alphas[4] = {255, 0, 51, 255};
    const png_color_16 key = {.gray = 3};
    check_png(
        (const uint8_t[]){0x1B}, 1, 4,
        (png_kind){
            .depth = 2, .colour = PNG_COLOR_TYPE_PALETTE, .palette = palette, .palette_size = 4},
        (const uint8_t[][3]){{10, 20, 30}, {200, 0, 0}, {0, 0, 0}, {0, 100, 0}});
    check_png((const uint8_t[]){0x1B}, 1, 4,
              (png_kind){.depth = 2,
                         .colour = PNG_COLOR_TYPE_PALETTE,
                         .palette = palette,
                         .palette_size = 4,
                         .alphas = alphas},
              (const uint8_t[][3]){{10, 20, 30}, {255, 255, 255}, {204, 204, 204}, {0, 100, 0}});
    check_png((const uint8_t[]){0x1B}, 1, 4,
              (png_kind){.depth = 2, .colour = PNG_COLOR_TYPE_GRAY, .key = &key},
              (const uint8_t[][3]){{0, 0, 0}, {85, 85, 85}, {170, 170, 170}, {255, 255, 255}});
    check_png((const uint8_t[]){0x80}, 1, 2, (png_kind){.depth = 1, .colour = PNG_COLOR_TYPE_GRAY},
              (const uint8_t[][3]){{255, 255, 255}, {0, 0, 0}});
    check_png((const uint8_t[]){0x80, 0x00, 0xFF, 0xFF}, 4, 2,
              (png_kind){.depth = 16, .colour = PNG_COLOR_TYPE_GRAY},
              (const uint8_t[][3]){{128, 128, 128}, {255, 255, 255}});
    check_png((const uint8_t[]){0, 0, 100, 128}, 4, 2,
              (png_kind){.depth = 8, .colour = PNG_COLOR_TYPE_GRAY_ALPHA},
              (const uint8_t[][3]){{255, 255, 255}, {177, 177, 177}});
    check_png((const uint8_t[]){10, 20, 30, 255, 1, 2, 3, 0}, 8, 2,
              (png_kind){.depth = 8, .colour = PNG_COLOR_TYPE_RGB_ALPHA},
              (const uint8_t[][3]){{10, 20, 30}, {255, 255, 255}});
    check_png((const uint8_t[]){0xFF, 0xFF, 0, 0, 0x80, 0, 0xFF, 0xFF}, 8, 1,
              (png_kind){.depth = 16, .colour = PNG_COLOR_TYPE_RGB_ALPHA},
              (const uint8_t[][3]){{255, 0, 128}});
}

/* Puts the chunk behind the pixels, before IEND, where it may stand too. */
static void move_exif_to_the_end(blob png) {
    for (size_t at = 8; at + 12 <= png.size;) {
        size_t length = (size_t)png.bytes[at + 2] << 8 | png.bytes[at + 3];
        size_t whole =
            12 + ((size_t)png.bytes[at] << 24 | (size_t)png.bytes[at + 1] << 16 | length);
        if (memcmp(png.bytes + at + 4, "eXIf", 4) == 0) {
            uint8_t chunk[256];
            size_t rest = png.size - at - whole - 12; /* up to IEND */
            memcpy(chunk, png.bytes + at, whole);
            memmove(png.bytes + at, png.bytes + at + whole, rest);
            memcpy(png.bytes + at + rest, chunk, whole);
            return;
        }
        at += whole;
    }
    CHECK_FAIL("there is no eXIf");
}

static void png_of_every_orientation_stands_upright(void) {
#ifdef PNG_eXIf_SUPPORTED
    stk_error err = {0};
    stk_image scene = noise(16, 10, 6);
    for (int orientation = 1; orientation <= 8; orientation++) {
        stk_image stored = store(&scene, orientation);
        png_kind kind = {.depth = 8, .colour = PNG_COLOR_TYPE_RGB, .orientation = orientation};
        blob png =
            make_png(stored.pixels, (size_t)stored.width * 3, stored.width, stored.height, kind);
        stk_image image;
        REQUIRE_OK(stk_image_decode(png.bytes, png.size, &image, &err), &err);
        REQUIRE(image.width == 16 && image.height == 10);
        CHECK_INT(memcmp(image.pixels, scene.pixels, 16 * 10 * 3), 0);
        stk_image_free(&image);
        move_exif_to_the_end(png);
        REQUIRE_OK(stk_image_decode(png.bytes, png.size, &image, &err), &err);
        REQUIRE(image.width == 16 && image.height == 10);
        CHECK_INT(memcmp(image.pixels, scene.pixels, 16 * 10 * 3), 0);
        stk_image_free(&image);
        stk_image_free(&stored);
        free_blob(&png);
    }
    stk_image_free(&scene);
#else
    CHECK_SKIP("this libpng does not know eXIf");
#endif
}

/* Rewrites the size in IHDR and its checksum. */
static void lie(blob png, uint32_t width, uint32_t height) {
    for (int i = 0; i < 4; i++) {
        png.bytes[16 + i] = (uint8_t)(width >> (24 - 8 * i));
        png.bytes[20 + i] = (uint8_t)(height >> (24 - 8 * i));
    }
    uint32_t sum = 0xFFFFFFFFu;
    for (int i = 12; i < 29; i++) {
        sum ^= png.bytes[i];
        for (int bit = 0; bit < 8; bit++) {
            sum = sum >> 1 ^ (sum & 1 ? 0xEDB88320u : 0);
        }
    }
    for (int i = 0; i < 4; i++) {
        png.bytes[29 + i] = (uint8_t)(~sum >> (24 - 8 * i));
    }
}

static void png_that_lies_about_its_size(void) {
    stk_error err = {0};
    stk_image scene = noise(10, 10, 7);
    blob png = make_rgb_png(&scene, 0);
    stk_image image;
    lie(png, 900000, 900000);
    CHECK_INT(stk_image_decode(png.bytes, png.size, &image, &err), STK_ERR_DATA);
    CHECK_CONTAINS(err.message, "900000 x 900000");
    stk_error_clear(&err);
    lie(png, 10000, 10000);
    CHECK_INT(stk_image_decode(png.bytes, png.size, &image, &err), STK_ERR_DATA);
    CHECK_CONTAINS(err.message, "cannot hold");
    stk_error_clear(&err);
    lie(png, 10, 40);
    CHECK_INT(stk_image_decode(png.bytes, png.size, &image, &err), STK_ERR_DATA);
    CHECK_CONTAINS(err.message, "the PNG cannot be decoded");
    stk_error_clear(&err);
    lie(png, 0, 10);
    CHECK_INT(stk_image_decode(png.bytes, png.size, &image, &err), STK_ERR_DATA);
    CHECK(image.pixels == NULL);
    stk_error_clear(&err);
    lie(png, 10, 10);
    REQUIRE_OK(stk_image_decode(png.bytes, png.size, &image, &err), &err);
    stk_image_free(&image);
    free_blob(&png);
    stk_image_free(&scene);
}

static void what_is_no_picture_gets_a_reason(void) {
    static const struct {
        const char *bytes;
        size_t size;
        const char *reason;
    } cases[] = {
        {"", 0, "empty"},
        {"\xFF", 1, "no picture"},
        {"hello, this is a text file", 26, "no picture"},
        {"GIF89a..........", 16, "GIF"},
        {"BM..........\0\0(\0\0\0", 18, "BMP"},
        {"II*\0\xff\0\0\0", 8, "TIFF"},
        {"\0\0\0\x18"
         "ftypheic....",
         16, "HEIC"},
        {"\xFF\xD8\xFF\xD9", 4, "JPEG"},
        {"\xFF\xD8\xFF\xE0\x00\x10JFIF", 10, "JPEG"},
        {"\x89PNG\r\n\x1a\n", 8, "cut off"},
        {"RIFF\x08\0\0\0WEBPVP8 ", 16, "WebP"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        stk_error err = {0};
        stk_image image;
        CHECK_INT(stk_image_decode((const uint8_t *)cases[i].bytes, cases[i].size, &image, &err),
                  STK_ERR_DATA);
        CHECK_CONTAINS(err.message, cases[i].reason);
        CHECK(image.pixels == NULL);
    }
}

static void sizes_over_the_limit_are_refused(void) {
    stk_error err = {0};
    stk_image image;
    CHECK_INT(stk_image_new(&image, 1 << 20, 1 << 20, &err), STK_ERR_DATA);
    CHECK_CONTAINS(err.message, "1048576 x 1048576");
    CHECK_INT(stk_image_new(&image, 0, 5, NULL), STK_ERR_DATA);
    CHECK_INT(stk_image_new(&image, 5, -1, NULL), STK_ERR_DATA);
    stk_image scene = quarters(16, 16);
    blob jpeg = make_rgb_jpeg(&scene, false);
    for (size_t i = 0; i + 9 < jpeg.size; i++) {
        if (jpeg.bytes[i] == 0xFF && jpeg.bytes[i + 1] == 0xC0) {
            memset(jpeg.bytes + i + 5, 0xFA, 4); /* 64250 x 64250 */
            break;
        }
    }
    stk_error_clear(&err);
    CHECK_INT(stk_image_decode(jpeg.bytes, jpeg.size, &image, &err), STK_ERR_DATA);
    CHECK_CONTAINS(err.message, "64250 x 64250");
    free_blob(&jpeg);
    stk_image_free(&scene);
}

/* Fails the first request, the second and so on until the call gets through. */
static void lack_of_memory_is_an_error(void) {
    stk_image scene = noise(40, 30, 8);
    uint8_t inks[40 * 30 * 4] = {0};
    jpeg_kind four = {.in = JCS_CMYK, .out = JCS_CMYK, .adobe = true};
    png_kind alpha = {.depth = 8, .colour = PNG_COLOR_TYPE_RGB_ALPHA};
    blob plain = make_rgb_jpeg(&scene, false);
    blob files[4] = {with_exif(plain, 6, true), make_jpeg(inks, 40, 30, 4, four),
                     make_rgb_png(&scene, 0), make_png(inks, 160, 40, 30, alpha)};
    for (int i = 0; i < 4; i++) {
        int64_t failed = 0;
        for (;; failed++) {
            stk_error err = {0};
            stk_image image;
            stk_mem_fail_after(failed);
            stk_status status = stk_image_decode(files[i].bytes, files[i].size, &image, &err);
            stk_mem_fail_after(-1);
            if (status == STK_OK) {
                stk_image_free(&image);
                break;
            }
            CHECK_INT(status, STK_ERR_MEMORY);
            CHECK(image.pixels == NULL);
            REQUIRE(failed < 1000);
        }
        CHECK(failed >= 2);
        free_blob(&files[i]);
    }
    for (int64_t failed = 0;; failed++) {
        blob jpeg = {0};
        stk_error err = {0};
        stk_mem_fail_after(failed);
        stk_status status = stk_image_encode_jpeg(&scene, 90, &jpeg.bytes, &jpeg.size, &err);
        stk_mem_fail_after(-1);
        free_blob(&jpeg);
        if (status == STK_OK) {
            CHECK(failed >= 1);
            break;
        }
        CHECK_INT(status, STK_ERR_MEMORY);
    }
    free_blob(&plain);
    stk_image_free(&scene);
}

static const char *data_folder(const char *name, char *buffer, size_t size) {
    const char *root = getenv("STOKER_DATA");
    snprintf(buffer, size, "%s/%s", root != NULL ? root : "../shared/data", name);
    return stk_path_is_dir(buffer) ? buffer : NULL;
}

static stk_status decode_file(const char *folder, const char *name, stk_image *image,
                              stk_error *err) {
    char *path = stk_path_join(folder, name);
    char *bytes = NULL;
    size_t size = 0;
    memset(image, 0, sizeof *image);
    stk_status status = stk_file_read(path, 0, &bytes, &size, err);
    if (status == STK_OK) {
        status = stk_image_decode((const uint8_t *)bytes, size, image, err);
    }
    stk_mem_free(bytes);
    stk_mem_free(path);
    return status;
}

static void odd_images_decode_or_say_why(void) {
    char folder[512];
    if (data_folder("odd-images", folder, sizeof folder) == NULL) {
        CHECK_SKIP("there are no odd-images; set STOKER_DATA");
    }
    stk_error err = {0};
    stk_dir_list list;
    REQUIRE_OK(stk_dir_read(folder, &list, &err), &err);
    int good = 0;
    for (size_t i = 0; i < list.count; i++) {
        stk_image image;
        stk_error reason = {0};
        stk_status status = decode_file(folder, list.entries[i].name, &image, &reason);
        good += status == STK_OK;
        if (status != STK_OK && getenv("STK_TEST_SHOW") != NULL) {
            printf("  %s: %s\n", list.entries[i].name, reason.message);
        }
        CHECK(status == STK_OK || (status == STK_ERR_DATA && reason.message[0] != '\0'));
        stk_image_free(&image);
    }
    CHECK(good * 10 >= (int)list.count * 8);
    stk_dir_list_free(&list);
}

/* Pillow's test pictures: one photograph, stored in each of the orientations. */
static void photographs_of_every_orientation_agree(void) {
    char folder[512];
    if (data_folder("odd-images", folder, sizeof folder) == NULL) {
        CHECK_SKIP("there are no odd-images; set STOKER_DATA");
    }
    stk_error err = {0};
    stk_image first = {0};
    REQUIRE_OK(decode_file(folder, "pillow_hopper_orientation_2.jpg", &first, &err), &err);
    for (int orientation = 3; orientation <= 8; orientation++) {
        char name[64];
        snprintf(name, sizeof name, "pillow_hopper_orientation_%d.jpg", orientation);
        stk_image image;
        REQUIRE_OK(decode_file(folder, name, &image, &err), &err);
        REQUIRE(image.width == first.width && image.height == first.height);
        double sum = 0;
        size_t count = (size_t)first.width * (size_t)first.height * 3;
        for (size_t i = 0; i < count; i++) {
            sum += abs(image.pixels[i] - first.pixels[i]);
        }
        CHECK(sum / (double)count < 6);
        stk_image_free(&image);
    }
    stk_image_free(&first);
}

static const check_test tests[] = {
    TEST(jpeg_goes_there_and_back),
    TEST(size_is_told_without_decoding),
    TEST(jpeg_that_is_too_wide_is_refused),
    TEST(jpeg_of_every_orientation_stands_upright),
    TEST(jpeg_with_damaged_exif_is_read_as_stored),
    TEST(jpeg_progressive_and_restarts),
    TEST(jpeg_grey_becomes_rgb),
    TEST(jpeg_of_four_inks),
    TEST(jpeg_cut_off_is_used_when_half_is_there),
    TEST(every_prefix_is_a_picture_or_a_reason),
    TEST(damaged_bytes_never_crash),
    TEST(png_is_exact),
    TEST(png_of_every_kind),
    TEST(png_of_every_orientation_stands_upright),
    TEST(png_that_lies_about_its_size),
    TEST(what_is_no_picture_gets_a_reason),
    TEST(sizes_over_the_limit_are_refused),
    TEST(lack_of_memory_is_an_error),
    TEST(odd_images_decode_or_say_why),
    TEST(photographs_of_every_orientation_agree),
};

CHECK_MAIN(tests)
