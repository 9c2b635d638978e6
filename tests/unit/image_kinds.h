/*
 * image_kinds.h - one small file of every kind that the decoders know, full of noise, and a
 * receiver that keeps the part that it asks for.
 */
#ifndef STK_TESTS_IMAGE_KINDS_H
#define STK_TESTS_IMAGE_KINDS_H

#include "image/decode/decoders.h"
#include "image_files.h"

typedef enum file_format { FILE_JPEG, FILE_PNG, FILE_WEBP } file_format;

typedef struct file_kind {
    const char *name;
    file_format format;
    int channels; /* that the file is made of */
    jpeg_kind jpeg;
    png_kind png;
    int webp; /* webp_kind */
} file_kind;

#define JPEG_YUV(...) \
    .format = FILE_JPEG, .channels = 3, .jpeg = {.in = JCS_RGB, .out = JCS_YCbCr, __VA_ARGS__}
#define JPEG_INK(space, ...)            \
    .format = FILE_JPEG, .channels = 4, \
    .jpeg = {.in = JCS_CMYK, .out = space, .adobe = true, __VA_ARGS__}
#define PNG_OF(bits, type, values, passes)  \
    .format = FILE_PNG, .channels = values, \
    .png = {.depth = bits, .colour = PNG_COLOR_TYPE_##type, .interlace = passes}

static const file_kind file_kinds[] = {
    {.name = "JPEG 4:4:4", JPEG_YUV(.h = 1, .v = 1)},
    {.name = "JPEG 4:2:2", JPEG_YUV(.h = 2, .v = 1)},
    {.name = "JPEG 4:4:0", JPEG_YUV(.h = 1, .v = 2)},
    {.name = "JPEG 4:2:0", JPEG_YUV(.h = 2, .v = 2)},
    {.name = "JPEG 4:1:1", JPEG_YUV(.h = 4, .v = 1)},
    {.name = "JPEG 4:1:0", JPEG_YUV(.h = 4, .v = 2)},
    {.name = "JPEG 2 x 4", JPEG_YUV(.h = 2, .v = 4)},
    {.name = "JPEG 4:2:0 with restarts", JPEG_YUV(.h = 2, .v = 2, .restart = 1)},
    {.name = "progressive JPEG 4:4:4", JPEG_YUV(.h = 1, .v = 1, .progressive = true)},
    {.name = "progressive JPEG 4:2:2", JPEG_YUV(.h = 2, .v = 1, .progressive = true)},
    {.name = "progressive JPEG 4:4:0", JPEG_YUV(.h = 1, .v = 2, .progressive = true)},
    {.name = "progressive JPEG 4:2:0", JPEG_YUV(.h = 2, .v = 2, .progressive = true)},
    {.name = "progressive JPEG with restarts",
     JPEG_YUV(.h = 2, .v = 2, .progressive = true, .restart = 1)},
    {.name = "grey JPEG",
     .format = FILE_JPEG,
     .channels = 1,
     .jpeg = {.in = JCS_GRAYSCALE, .out = JCS_GRAYSCALE}},
    {.name = "JPEG of plain RGB",
     .format = FILE_JPEG,
     .channels = 3,
     .jpeg = {.in = JCS_RGB, .out = JCS_RGB, .adobe = true}},
    {.name = "CMYK JPEG", JPEG_INK(JCS_CMYK)},
    {.name = "YCCK JPEG", JPEG_INK(JCS_YCCK, .h = 2, .v = 2)},
    {.name = "progressive YCCK JPEG", JPEG_INK(JCS_YCCK, .h = 2, .v = 1, .progressive = true)},
    {.name = "RGB PNG", PNG_OF(8, RGB, 3, 0)},
    {.name = "interlaced RGB PNG", PNG_OF(8, RGB, 3, 1)},
    {.name = "PNG with alpha", PNG_OF(8, RGB_ALPHA, 4, 0)},
    {.name = "interlaced PNG with alpha", PNG_OF(8, RGB_ALPHA, 4, 1)},
    {.name = "16-bit PNG", PNG_OF(16, RGB, 3, 0)},
    {.name = "interlaced 16-bit PNG with alpha", PNG_OF(16, RGB_ALPHA, 4, 1)},
    {.name = "grey PNG", PNG_OF(8, GRAY, 1, 0)},
    {.name = "1-bit PNG", PNG_OF(1, GRAY, 1, 0)},
    {.name = "interlaced 1-bit PNG", PNG_OF(1, GRAY, 1, 1)},
    {.name = "16-bit grey PNG with alpha", PNG_OF(16, GRAY_ALPHA, 2, 0)},
    {.name = "PNG with a palette", PNG_OF(8, PALETTE, 1, 0)},
    {.name = "interlaced 4-bit PNG with a palette", PNG_OF(4, PALETTE, 1, 1)},
#ifdef STK_HAVE_WEBP
    {.name = "lossy WebP", .format = FILE_WEBP, .channels = 3, .webp = WEBP_LOSSY},
    {.name = "lossy WebP with alpha", .format = FILE_WEBP, .channels = 4, .webp = WEBP_LOSSY},
    {.name = "lossless WebP", .format = FILE_WEBP, .channels = 3, .webp = WEBP_LOSSLESS},
    {.name = "lossless WebP with alpha", .format = FILE_WEBP, .channels = 4, .webp = WEBP_LOSSLESS},
#endif
};
#define FILE_KINDS (sizeof file_kinds / sizeof *file_kinds)

static inline blob make_kind_of_png(const file_kind *kind, const uint8_t *values, size_t row_bytes,
                                    int width, int height, int orientation) {
    png_kind png = kind->png;
    png_color palette[256];
    for (int i = 0; i < 256; i++) {
        palette[i] = (png_color){(png_byte)(i * 7), (png_byte)(255 - i), (png_byte)(i * 31)};
    }
    if (png.colour == PNG_COLOR_TYPE_PALETTE) {
        png.palette = palette;
        png.palette_size = 1 << png.depth;
    }
    png.orientation = orientation;
    return make_png(values, row_bytes, width, height, png);
}

/* A file of the kind; an orientation of 0 leaves EXIF out. WebP has none with alpha. */
static inline blob make_file(const file_kind *kind, int width, int height, int orientation,
                             uint64_t seed) {
    int depth = kind->format == FILE_PNG ? kind->png.depth : 8;
    size_t row_bytes = ((size_t)width * (size_t)(kind->channels * depth) + 7) / 8;
    uint8_t *values = stk_mem_raw((size_t)height, row_bytes);
    stk_rng rng = stk_rng_make(seed, STK_RNG_TEST, (uint64_t)width, (uint64_t)height);
    for (size_t i = 0; i < (size_t)height * row_bytes; i++) {
        values[i] = (uint8_t)stk_rng_below(&rng, 256);
    }
    blob file = {0};
    if (kind->format == FILE_JPEG) {
        file = make_jpeg(values, width, height, kind->channels, kind->jpeg);
        if (orientation > 0) {
            blob tagged = with_exif(file, orientation, orientation % 2 == 0);
            free_blob(&file);
            file = tagged;
        }
    } else if (kind->format == FILE_PNG) {
        file = make_kind_of_png(kind, values, row_bytes, width, height, orientation);
    }
#ifdef STK_HAVE_WEBP
    if (kind->format == FILE_WEBP) {
        file = make_webp(values, width, height, kind->channels, (webp_kind)kind->webp);
        if (orientation > 0 && kind->channels == 3) {
            blob tagged = webp_with_exif(file, width, height, orientation);
            free_blob(&file);
            file = tagged;
        }
    }
#endif
    stk_mem_free(values);
    return file;
}

/* Keeps the rows that it gets. Starts with divisor and, unless all is wanted, a part. */
typedef struct catcher {
    stk_image_part part; /* a width of 0 becomes everything */
    stk_image_info info; /* what the header said */
    stk_image rows;      /* owned: the wanted rows, as wide as they came */
    int x;               /* the column that they begin with */
    int count;           /* rows that came */
} catcher;

static inline stk_status catch_begin(void *user, const stk_image_info *info, stk_image_part *part,
                                     stk_error *err) {
    catcher *c = user;
    (void)err;
    c->info = *info;
    if (c->part.width == 0) {
        c->part.x = 0;
        c->part.y = 0;
        c->part.width = (info->width + c->part.divisor - 1) / c->part.divisor;
        c->part.height = (info->height + c->part.divisor - 1) / c->part.divisor;
    }
    *part = c->part;
    return STK_OK;
}

static inline stk_status catch_width(void *user, int x, int width, stk_error *err) {
    catcher *c = user;
    c->x = x;
    return stk_image_new(&c->rows, width, c->part.height, err);
}

static inline uint8_t *catch_room(void *user, int count) {
    catcher *c = user;
    if (count < 1 || count > STK_RECEIVER_ROWS || c->count + count > c->rows.height) {
        printf("a decoder gives more rows than were asked for\n");
        abort();
    }
    return pixel(&c->rows, 0, c->count);
}

static inline void catch_rows(void *user, int count) {
    catcher *c = user;
    c->count += count;
}

/* Fills in the catcher, whose rows the caller frees in any case. */
static inline stk_status catch_part(catcher *c, const blob *file, int64_t max_cpu_ns,
                                    stk_error *err) {
    stk_image_receiver receiver = {.user = c,
                                   .max_cpu_ns = max_cpu_ns,
                                   .begin = catch_begin,
                                   .rows = catch_width,
                                   .room = catch_room,
                                   .take = catch_rows};
    return stk_image_receive(file->bytes, file->size, &receiver, err);
}

#endif
