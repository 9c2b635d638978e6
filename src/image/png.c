/*
 * png.c - PNG to pixels with libpng.
 *
 * libpng leaves by longjmp on errors; as in jpeg.c, all that must be freed lives in a png_reader of
 * the function above the one that calls setjmp. Its memory comes from stk_mem.
 */
#include "image/decoders.h"

#include <setjmp.h>
#include <string.h>

#include <png.h>

#include "base/error.h"
#include "base/mem.h"

/* No deflate stream grows by more than this, so a larger promise in the header is a lie. */
#define DEFLATE_MAX_RATIO 1040

typedef struct png_reader {
    png_structp png;
    png_infop info;
    const uint8_t *bytes; /* borrowed */
    size_t size;
    size_t offset;    /* bytes that libpng has taken */
    stk_image *image; /* borrowed; filled */
    uint8_t *rgba;    /* owned: (height, width, 4) of a picture with alpha, else NULL */
    int orientation;  /* EXIF's */
    bool no_memory;   /* a request for memory failed; libpng may not have minded */
    stk_status status;
    stk_error *err; /* borrowed */
} png_reader;

static png_voidp take_memory(png_structp png, png_alloc_size_t size) {
    png_reader *reader = png_get_mem_ptr(png);
    void *block = stk_mem_raw(size, 1);
    reader->no_memory = reader->no_memory || block == NULL;
    return block;
}

static void give_memory(png_structp png, png_voidp block) {
    (void)png;
    stk_mem_free(block);
}

static PNG_NORETURN void on_error(png_structp png, png_const_charp text) {
    png_reader *reader = png_get_error_ptr(png);
    reader->status = reader->no_memory ? STK_FAIL_MEMORY(reader->err, "decoding a PNG")
                                       : STK_FAIL(reader->err, STK_ERR_DATA,
                                                  "the PNG cannot be decoded: %s", text);
    png_longjmp(png, 1);
}

static void on_warning(png_structp png, png_const_charp text) {
    (void)png;
    (void)text;
}

static void take_bytes(png_structp png, png_bytep to, size_t length) {
    png_reader *reader = png_get_io_ptr(png);
    if (length > reader->size - reader->offset) {
        png_error(png, "the file was cut off");
    }
    memcpy(to, reader->bytes + reader->offset, length);
    reader->offset += length;
}

/* Everything becomes 8-bit RGB or RGBA; false when the header's promises cannot be true. */
static bool prepare(png_reader *reader) {
    png_structp png = reader->png;
    png_infop info = reader->info;
    png_uint_32 width = png_get_image_width(png, info);
    png_uint_32 height = png_get_image_height(png, info);
    reader->status = stk_image_check_size(width, height, reader->err);
    if (reader->status != STK_OK) {
        return false;
    }
    if ((uint64_t)png_get_rowbytes(png, info) * height / DEFLATE_MAX_RATIO > reader->size) {
        reader->status = STK_FAIL(reader->err, STK_ERR_DATA,
                                  "the PNG says that it has %u x %u pixels, which its %zu bytes "
                                  "cannot hold",
                                  (unsigned)width, (unsigned)height, reader->size);
        return false;
    }
    png_set_scale_16(png);
    png_set_expand(png);
    png_set_gray_to_rgb(png);
    return true;
}

static void read_orientation(png_reader *reader) {
#ifdef PNG_eXIf_SUPPORTED
    png_bytep exif = NULL;
    png_uint_32 length = 0;
    if (png_get_eXIf_1(reader->png, reader->info, &length, &exif) != 0) {
        reader->orientation = stk_image_orientation(exif, length);
    }
#else
    (void)reader;
#endif
}

static bool take_pixels(png_reader *reader, bool alpha) {
    int width = (int)png_get_image_width(reader->png, reader->info);
    int height = (int)png_get_image_height(reader->png, reader->info);
    reader->status = stk_image_new(reader->image, width, height, reader->err);
    if (reader->status == STK_OK && alpha) {
        reader->rgba = stk_mem_raw((size_t)width * (size_t)height, 4);
        if (reader->rgba == NULL) {
            reader->status = STK_FAIL_MEMORY(reader->err, "decoding a PNG");
        }
    }
    return reader->status == STK_OK;
}

/* An interlaced picture comes in seven passes, each of which fills in more of the same rows. */
static bool read_rows(png_reader *reader) {
    png_structp png = reader->png;
    if (setjmp(png_jmpbuf(png)) != 0) {
        return false;
    }
    png_set_read_fn(png, reader, take_bytes);
    png_read_info(png, reader->info);
    read_orientation(reader);
    if (!prepare(reader)) {
        return false;
    }
    int passes = png_set_interlace_handling(png);
    png_read_update_info(png, reader->info);
    bool alpha = png_get_channels(png, reader->info) == 4;
    if (!take_pixels(reader, alpha)) {
        return false;
    }
    uint8_t *to = alpha ? reader->rgba : reader->image->pixels;
    size_t row_bytes = (size_t)reader->image->width * (alpha ? 4 : 3);
    if (png_get_rowbytes(png, reader->info) != row_bytes) {
        png_error(png, "its kind of pixels is not known");
    }
    for (int pass = 0; pass < passes; pass++) {
        for (int y = 0; y < reader->image->height; y++) {
            png_read_row(png, to + (size_t)y * row_bytes, NULL);
        }
    }
    return true;
}

static stk_status decode(const uint8_t *bytes, size_t size, stk_image *image, stk_error *err) {
    png_reader reader = {
        .bytes = bytes, .size = size, .image = image, .orientation = 1, .err = err};
    reader.png = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, &reader, on_error, on_warning,
                                          &reader, take_memory, give_memory);
    reader.info = reader.png != NULL ? png_create_info_struct(reader.png) : NULL;
    stk_status status = STK_OK;
    if (reader.info == NULL) {
        status = STK_FAIL_MEMORY(err, "decoding a PNG");
    } else if (!read_rows(&reader)) {
        status = reader.status;
    } else if (reader.no_memory) {
        /* libpng passed over a part that it had no memory for: the pixels may be wrong. */
        status = STK_FAIL_MEMORY(err, "decoding a PNG");
    }
    png_destroy_read_struct(&reader.png, &reader.info, NULL);
    if (status == STK_OK && reader.rgba != NULL) {
        stk_image_over_white(reader.rgba, (size_t)image->width * (size_t)image->height,
                             image->pixels);
    }
    stk_mem_free(reader.rgba);
    if (status == STK_OK) {
        status = stk_image_orient(image, reader.orientation, err);
    }
    if (status != STK_OK) {
        stk_image_free(image);
    }
    return status;
}

static bool recognises(const uint8_t *bytes, size_t size) {
    return size >= 8 && memcmp(bytes, "\x89PNG\r\n\x1a\n", 8) == 0;
}

const stk_image_decoder stk_image_png = {
    .name = "PNG",
    .recognises = recognises,
    .decode = decode,
};
