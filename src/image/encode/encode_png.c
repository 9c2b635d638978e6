/*
 * encode_png.c - pixels to PNG, without loss.
 *
 * The bytes and libpng's own memory come from stk_mem, so that tests can make allocation fail.
 * libpng reports errors by longjmp; as in png.c, everything that must be freed lives in the caller
 * of the function that calls setjmp.
 */
#include "image/image.h"

#include <setjmp.h>

#include "base/error.h"
#include "base/str.h"
#include "image/decode/png_guard.h"

typedef struct png_writer {
    png_structp png;
    png_infop info;
    const stk_image *image; /* borrowed */
    bool drawing;           /* the picture is lines and letters on one colour */
    stk_str out;            /* owned until success: the bytes so far */
    stk_png_guard guard;
} png_writer;

static void append(png_structp png, png_bytep bytes, size_t length) {
    png_writer *writer = png_get_io_ptr(png);
    stk_str_append_bytes(&writer->out, bytes, length);
    if (!stk_str_ok(&writer->out)) {
        writer->guard.no_memory = true;
        png_error(png, "out of memory");
    }
}

static void flush_nothing(png_structp png) {
    (void)png;
}

/* zlib's level for drawings: the default, 6, takes four times as long for 3/4 of the bytes. */
#define DRAWING_LEVEL 3

static bool write_rows(png_writer *writer) {
    png_structp png = writer->png;
    const stk_image *image = writer->image;
    if (setjmp(png_jmpbuf(png)) != 0) {
        return false;
    }
    png_set_write_fn(png, writer, append, flush_nothing);
    png_set_IHDR(png, writer->info, (png_uint_32)image->width, (png_uint_32)image->height, 8,
                 PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
                 PNG_FILTER_TYPE_DEFAULT);
    if (writer->drawing) {
        /* PNG's filters help where colours change gradually; drawings would become larger. */
        png_set_filter(png, PNG_FILTER_TYPE_BASE, PNG_FILTER_NONE);
        png_set_compression_level(png, DRAWING_LEVEL);
    }
    png_write_info(png, writer->info);
    for (int y = 0; y < image->height; y++) {
        png_write_row(png, image->pixels + (size_t)y * (size_t)image->width * 3);
    }
    png_write_end(png, writer->info);
    return true;
}

static stk_status encode(const stk_image *image, bool drawing, uint8_t **bytes, size_t *size,
                         stk_error *err) {
    png_writer writer = {
        .image = image,
        .drawing = drawing,
        .guard = {.purpose = "encoding a PNG", .refusal = "cannot encode a PNG", .err = err}};
    writer.png = stk_png_new_write(&writer.guard);
    writer.info = writer.png != NULL ? png_create_info_struct(writer.png) : NULL;
    stk_status status = STK_OK;
    if (writer.info == NULL) {
        status = STK_FAIL_MEMORY(err, "encoding a PNG");
    } else if (!write_rows(&writer)) {
        status = writer.guard.status;
    }
    png_destroy_write_struct(&writer.png, &writer.info);
    if (status == STK_OK) {
        *size = writer.out.length;
        *bytes = (uint8_t *)stk_str_take(&writer.out);
        status = *bytes != NULL ? STK_OK : STK_FAIL_MEMORY(err, "encoding a PNG");
    }
    stk_str_free(&writer.out);
    return status;
}

stk_status stk_image_encode_png(const stk_image *image, uint8_t **bytes, size_t *size,
                                stk_error *err) {
    return encode(image, false, bytes, size, err);
}

stk_status stk_image_encode_drawing(const stk_image *image, uint8_t **bytes, size_t *size,
                                    stk_error *err) {
    return encode(image, true, bytes, size, err);
}
