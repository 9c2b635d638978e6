/*
 * image_files.h - pictures and files of every kind, made in memory for the tests of the image room.
 */
#ifndef STK_TESTS_IMAGE_FILES_H
#define STK_TESTS_IMAGE_FILES_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>
#include <png.h>
#ifdef STK_HAVE_WEBP
#include <webp/encode.h>
#endif

#include "base/mem.h"
#include "base/numbers/rng.h"
#include "base/str.h"
#include "image/image.h"

typedef struct blob {
    uint8_t *bytes;
    size_t size;
} blob;

static inline void free_blob(blob *b) {
    stk_mem_free(b->bytes);
    *b = (blob){0};
}

static inline uint8_t *pixel(const stk_image *image, int x, int y) {
    return image->pixels + 3 * ((size_t)y * (size_t)image->width + (size_t)x);
}

/* Four plain quarters: red, green, blue and grey, so that JPEG keeps them and corners tell all. */
static inline stk_image quarters(int width, int height) {
    static const uint8_t colours[4][3] = {
        {220, 30, 30}, {30, 200, 40}, {40, 40, 210}, {120, 120, 120}};
    stk_image image = {0};
    if (stk_image_new(&image, width, height, NULL) != STK_OK) {
        exit(1);
    }
    for (int y = 0; y < height; y++) {
        for (int x = 0; x < width; x++) {
            memcpy(pixel(&image, x, y), colours[2 * (y >= height / 2) + (x >= width / 2)], 3);
        }
    }
    return image;
}

static inline stk_image noise(int width, int height, uint64_t seed) {
    stk_image image = quarters(width, height);
    stk_rng rng = stk_rng_make(seed, STK_RNG_TEST, 0, 0);
    for (int i = 0; i < width * height * 3; i++) {
        image.pixels[i] = (uint8_t)stk_rng_below(&rng, 256);
    }
    return image;
}

static inline bool near_pixel(const stk_image *image, int x, int y, const uint8_t *expected,
                              int tolerance) {
    const uint8_t *p = pixel(image, x, y);
    for (int c = 0; c < 3; c++) {
        if (abs(p[c] - expected[c]) > tolerance) {
            return false;
        }
    }
    return true;
}

static inline bool near_image(const stk_image *a, const stk_image *b, int tolerance) {
    if (a->width != b->width || a->height != b->height) {
        return false;
    }
    /* The seams between quarters are smeared by JPEG; look at the middles of an 8 x 8 grid. */
    for (int j = 0; j < 8; j++) {
        for (int i = 0; i < 8; i++) {
            int x = (2 * i + 1) * a->width / 16;
            int y = (2 * j + 1) * a->height / 16;
            if (!near_pixel(a, x, y, pixel(b, x, y), tolerance)) {
                return false;
            }
        }
    }
    return true;
}

typedef struct jpeg_kind {
    J_COLOR_SPACE in;
    J_COLOR_SPACE out;
    bool progressive;
    bool adobe;  /* marker, and so inverted ink */
    int restart; /* rows of MCUs between restart markers */
    int h, v;    /* how often colour is coarser than brightness; 0: as libjpeg likes it */
    const jpeg_scan_info *scans; /* the script of a progressive file; NULL: the usual one */
    int scan_count;
} jpeg_kind;

/* A JPEG straight from libjpeg, of rows with `channels` values per pixel. */
static inline blob make_jpeg(const uint8_t *values, int width, int height, int channels,
                             jpeg_kind kind) {
    struct jpeg_compress_struct cinfo;
    struct jpeg_error_mgr errors;
    unsigned char *bytes = NULL;
    unsigned long size = 0;
    cinfo.err = jpeg_std_error(&errors);
    jpeg_create_compress(&cinfo);
    jpeg_mem_dest(&cinfo, &bytes, &size);
    cinfo.image_width = (JDIMENSION)width;
    cinfo.image_height = (JDIMENSION)height;
    cinfo.input_components = channels;
    cinfo.in_color_space = kind.in;
    jpeg_set_defaults(&cinfo);
    jpeg_set_colorspace(&cinfo, kind.out);
    cinfo.write_Adobe_marker = kind.adobe;
    jpeg_set_quality(&cinfo, 95, TRUE);
    cinfo.restart_in_rows = kind.restart;
    for (int i = 0; kind.h > 0 && i < cinfo.num_components; i++) {
        bool fine = i == 0 || i == 3; /* brightness, and the black of YCCK */
        cinfo.comp_info[i].h_samp_factor = fine ? kind.h : 1;
        cinfo.comp_info[i].v_samp_factor = fine ? kind.v : 1;
    }
    if (kind.scans != NULL) {
        cinfo.scan_info = kind.scans;
        cinfo.num_scans = kind.scan_count;
    } else if (kind.progressive) {
        jpeg_simple_progression(&cinfo);
    }
    jpeg_start_compress(&cinfo, TRUE);
    while (cinfo.next_scanline < cinfo.image_height) {
        JSAMPROW row = (JSAMPROW)values + (size_t)cinfo.next_scanline * (size_t)(width * channels);
        jpeg_write_scanlines(&cinfo, &row, 1);
    }
    jpeg_finish_compress(&cinfo);
    jpeg_destroy_compress(&cinfo);
    return (blob){bytes, size};
}

static inline blob make_rgb_jpeg(const stk_image *image, bool progressive) {
    jpeg_kind kind = {.in = JCS_RGB, .out = JCS_YCbCr, .progressive = progressive};
    return make_jpeg(image->pixels, image->width, image->height, 3, kind);
}

typedef struct png_kind {
    int depth;
    int colour;
    int interlace;
    const png_color *palette;
    int palette_size;
    const uint8_t *alphas;   /* tRNS of a palette */
    const png_color_16 *key; /* tRNS of other kinds */
    int orientation;         /* eXIf when not 0 */
    int texts;               /* so many compressed texts of TEXT_BYTES */
} png_kind;

#define TEXT_BYTES 20000

static inline void png_append(png_structp png, png_bytep bytes, size_t size) {
    stk_str_append_bytes(png_get_io_ptr(png), bytes, size);
}

static inline void png_flush_nothing(png_structp png) {
    (void)png;
}

static inline void png_add_text(png_structp png, png_infop info) {
    char words[TEXT_BYTES + 1];
    char key[] = "Comment";
    memset(words, 'a', TEXT_BYTES);
    words[TEXT_BYTES] = '\0';
    png_text text = {.compression = PNG_TEXT_COMPRESSION_zTXt,
                     .key = key,
                     .text = words,
                     .text_length = TEXT_BYTES};
    png_set_text(png, info, &text, 1);
}

static inline blob make_png(const uint8_t *rows, size_t row_bytes, int width, int height,
                            png_kind kind) {
    stk_str out = {0};
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(png);
    png_set_write_fn(png, &out, png_append, png_flush_nothing);
    png_set_IHDR(png, info, (png_uint_32)width, (png_uint_32)height, kind.depth, kind.colour,
                 kind.interlace, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    if (kind.palette != NULL) {
        png_set_PLTE(png, info, kind.palette, kind.palette_size);
    }
    if (kind.alphas != NULL || kind.key != NULL) {
        png_set_tRNS(png, info, kind.alphas, kind.palette_size, (png_color_16 *)kind.key);
    }
#ifdef PNG_eXIf_SUPPORTED
    uint8_t exif[26] = "MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0";
    exif[19] = (uint8_t)kind.orientation;
    if (kind.orientation != 0) {
        png_set_eXIf_1(png, info, sizeof exif, exif);
    }
#endif
    for (int i = 0; i < kind.texts; i++) {
        png_add_text(png, info);
    }
    png_write_info(png, info);
    int passes = png_set_interlace_handling(png);
    for (int pass = 0; pass < passes; pass++) {
        for (int y = 0; y < height; y++) {
            png_write_row(png, rows + (size_t)y * row_bytes);
        }
    }
    png_write_end(png, info);
    png_destroy_write_struct(&png, &info);
    size_t size = out.length;
    return (blob){(uint8_t *)stk_str_take(&out), size};
}

static inline blob make_rgb_png(const stk_image *image, int interlace) {
    png_kind kind = {.depth = 8, .colour = PNG_COLOR_TYPE_RGB, .interlace = interlace};
    return make_png(image->pixels, (size_t)image->width * 3, image->width, image->height, kind);
}

/* A plain picture of one bit per pixel: some bytes, whatever its size. */
static inline blob make_flat_png(int width, int height, int interlace) {
    size_t row_bytes = ((size_t)width + 7) / 8;
    uint8_t *rows = stk_mem_new((size_t)height, row_bytes);
    png_kind kind = {.depth = 1, .colour = PNG_COLOR_TYPE_GRAY, .interlace = interlace};
    blob png = make_png(rows, row_bytes, width, height, kind);
    stk_mem_free(rows);
    return png;
}

/*
 * 256 million pixels in some kilobytes: made in no time, but decoding it takes a second or more on
 * any machine.
 */
static inline blob make_slow_png(void) {
    return make_flat_png(16000, 16000, PNG_INTERLACE_NONE);
}

#ifdef STK_HAVE_WEBP

typedef enum webp_kind { WEBP_LOSSY, WEBP_LOSSLESS } webp_kind;

/* A WebP of rows with 3 or 4 values per pixel. */
static inline blob make_webp(const uint8_t *values, int width, int height, int channels,
                             webp_kind kind) {
    int stride = width * channels;
    uint8_t *bytes = NULL;
    size_t size = 0;
    if (kind == WEBP_LOSSLESS) {
        size = (channels == 4 ? WebPEncodeLosslessRGBA
                              : WebPEncodeLosslessRGB)(values, width, height, stride, &bytes);
    } else {
        size = (channels == 4 ? WebPEncodeRGBA : WebPEncodeRGB)(values, width, height, stride, 90,
                                                                &bytes);
    }
    blob out = {stk_mem_raw(size, 1), size};
    if (size == 0 || out.bytes == NULL) {
        exit(1);
    }
    memcpy(out.bytes, bytes, size);
    WebPFree(bytes);
    return out;
}

/* The same picture in the extended form, where an EXIF chunk behind it tells the orientation. */
static inline blob webp_with_exif(blob simple, int width, int height, int orientation) {
    enum { HEADER = 12, EXTENDED = 18, EXIF = 8 + 26 };
    size_t picture = simple.size - HEADER;
    size_t size = HEADER + EXTENDED + picture + EXIF;
    blob out = {stk_mem_new(size, 1), size};
    uint8_t *at = out.bytes;
    memcpy(at, simple.bytes, HEADER);
    for (int i = 0; i < 4; i++) {
        at[4 + i] = (uint8_t)((size - 8) >> (8 * i));
    }
    at += HEADER;
    memcpy(at, "VP8X\x0A\0\0\0\x08", 9);
    for (int i = 0; i < 3; i++) {
        at[12 + i] = (uint8_t)((unsigned)(width - 1) >> (8 * i));
        at[15 + i] = (uint8_t)((unsigned)(height - 1) >> (8 * i));
    }
    at += EXTENDED;
    memcpy(at, simple.bytes + HEADER, picture);
    at += picture;
    memcpy(at, "EXIF\x1A\0\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0", 27);
    at[27] = (uint8_t)orientation;
    return out;
}

#endif

/* Puts an APP1 with the orientation right behind SOI, in either byte order. */
static inline blob with_exif(blob jpeg, int orientation, bool little) {
    uint8_t segment[36] = {0xFF, 0xE1, 0, 34, 'E', 'x', 'i', 'f', 0, 0};
    const uint8_t intel[] = {'I', 'I', '*', 0, 8, 0, 0, 0, 1, 0, 0x12, 1, 3, 0, 1, 0, 0, 0};
    const uint8_t motorola[] = {'M', 'M', 0, '*', 0, 0, 0, 8, 0, 1, 1, 0x12, 0, 3, 0, 0, 0, 1};
    memcpy(segment + 10, little ? intel : motorola, 18);
    segment[little ? 28 : 29] = (uint8_t)orientation;
    blob out = {stk_mem_raw(jpeg.size + sizeof segment, 1), jpeg.size + sizeof segment};
    memcpy(out.bytes, jpeg.bytes, 2);
    memcpy(out.bytes + 2, segment, sizeof segment);
    memcpy(out.bytes + 2 + sizeof segment, jpeg.bytes + 2, jpeg.size - 2);
    return out;
}

/*
 * The stored form of a picture, from the wording of the standard: which side of the scene the
 * first row is, and which side the first column.
 */
static inline stk_image store(const stk_image *scene, int orientation) {
    static const char *const sides[9] = {"", "TL", "TR", "BR", "BL", "LT", "RT", "RB", "LB"};
    const char *side = sides[orientation];
    bool swapped = side[0] == 'L' || side[0] == 'R';
    stk_image stored = {0};
    if (stk_image_new(&stored, swapped ? scene->height : scene->width,
                      swapped ? scene->width : scene->height, NULL) != STK_OK) {
        exit(1);
    }
    for (int row = 0; row < stored.height; row++) {
        for (int column = 0; column < stored.width; column++) {
            int x = 0;
            int y = 0;
            for (int i = 0; i < 2; i++) {
                int steps = i == 0 ? row : column;
                switch (side[i]) {
                case 'T':
                    y = steps;
                    break;
                case 'B':
                    y = scene->height - 1 - steps;
                    break;
                case 'L':
                    x = steps;
                    break;
                default:
                    x = scene->width - 1 - steps;
                    break;
                }
            }
            memcpy(pixel(&stored, column, row), pixel(scene, x, y), 3);
        }
    }
    return stored;
}

#endif
