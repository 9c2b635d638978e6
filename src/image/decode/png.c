/*
 * png.c - PNG to pixels with libpng.
 *
 * libpng reports errors by longjmp; as in jpeg.c, everything that must be freed lives in a
 * png_reader of the caller of the function that calls setjmp. libpng's memory comes from stk_mem.
 * Chunks that do not affect pixels are skipped: compressed texts of a small file can fill the
 * memory. A picture of 16 bits is read as a whole, because its window depends on all its values
 * (see stk_window_find()).
 */
#include "image/decode/decoders.h"

#include <setjmp.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "image/decode/png_guard.h"
#include "image/decode/samples.h"

/* Largest expansion of a deflate stream: a header that promises more is wrong. */
#define DEFLATE_MAX_RATIO 1040

typedef struct png_reader {
    png_structp png;
    png_infop info;
    const uint8_t *bytes; /* borrowed */
    size_t size;
    size_t offset;                      /* bytes that libpng has read */
    const stk_image_receiver *receiver; /* borrowed */
    stk_image_part part;                /* the part that the receiver wants */
    stk_image_watch watch;
    int width, height; /* px */
    bool deep;         /* values of 16 bits */
    uint8_t *pixels;   /* owned: one row with alpha, or all rows of a picture that is read whole */
    stk_png_guard guard;
} png_reader;

static bool is_halted(png_reader *reader) {
    if (stk_image_halted(&reader->watch)) {
        reader->guard.status = stk_image_refuse_halted(&reader->watch, "PNG", reader->guard.err);
        return true;
    }
    return false;
}

/* libpng reads chunks and rows of any length through this function. */
static void take_bytes(png_structp png, png_bytep to, size_t length) {
    png_reader *reader = png_get_io_ptr(png);
    if (is_halted(reader)) {
        png_longjmp(png, 1);
    }
    if (length > reader->size - reader->offset) {
        png_error(png, "the file was cut off");
    }
    memcpy(to, reader->bytes + reader->offset, length);
    reader->offset += length;
}

/* Makes libpng ignore all optional chunks but transparency. */
static void pass_over_chunks(png_structp png) {
#ifdef PNG_HANDLE_AS_UNKNOWN_SUPPORTED
    png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, NULL, -1);
#else
    (void)png;
#endif
}

/* Converts everything to 8-bit RGB or RGBA, 16 bits to grey or RGB with or without alpha; false:
 * the header promises more than the file can hold.
 */
static bool prepare(png_reader *reader) {
    png_structp png = reader->png;
    png_infop info = reader->info;
    png_uint_32 width = png_get_image_width(png, info);
    png_uint_32 height = png_get_image_height(png, info);
    reader->guard.status = stk_image_check_size(width, height, reader->guard.err);
    if (reader->guard.status != STK_OK) {
        return false;
    }
    reader->width = (int)width;
    reader->height = (int)height;
    if ((uint64_t)png_get_rowbytes(png, info) * height / DEFLATE_MAX_RATIO > reader->size) {
        reader->guard.status =
            STK_FAIL(reader->guard.err, STK_ERR_DATA,
                     "the PNG says that it has %u x %u pixels, which its %zu bytes "
                     "cannot hold",
                     (unsigned)width, (unsigned)height, reader->size);
        return false;
    }
    reader->deep = png_get_bit_depth(png, info) == 16;
    png_set_expand(png);
    if (!reader->deep) {
        png_set_gray_to_rgb(png);
    }
    return true;
}

/* Asks the receiver for the wanted part, and allocates rows that do not go to it directly. */
static bool ask_receiver(png_reader *reader, int channels, bool interlaced) {
    const stk_image_receiver *to = reader->receiver;
    size_t row_bytes = (size_t)reader->width * (size_t)channels;
    size_t whole = interlaced ? row_bytes * (size_t)reader->height : 0;
    stk_image_info info = {.width = reader->width, .height = reader->height, .whole_bytes = whole};
    reader->guard.status = stk_image_png_orientation(reader->bytes, reader->size, &info.orientation,
                                                     reader->guard.err);
    if (reader->guard.status == STK_OK) {
        reader->guard.status = to->begin(to->user, &info, &reader->part, reader->guard.err);
    }
    if (reader->guard.status == STK_OK) {
        reader->guard.status = to->rows(to->user, 0, reader->width, reader->guard.err);
    }
    if (reader->guard.status == STK_OK && (interlaced || channels == 4)) {
        reader->pixels = stk_mem_raw(interlaced ? whole : row_bytes, 1);
        if (reader->pixels == NULL) {
            reader->guard.status = STK_FAIL_MEMORY(reader->guard.err, "decoding a PNG");
        }
    }
    return reader->guard.status == STK_OK;
}

/* Passes one row to the receiver; four channels include alpha. */
static void give_row(const png_reader *reader, const uint8_t *row, int channels) {
    uint8_t *to = reader->receiver->room(reader->receiver->user, 1);
    if (channels == 4) {
        stk_image_over_white(row, (size_t)reader->width, to);
    } else {
        memcpy(to, row, 3 * (size_t)reader->width);
    }
    reader->receiver->take(reader->receiver->user, 1);
}

/* Reads row by row: skips rows above the part, ends below it. */
static bool read_plain(png_reader *reader, int channels) {
    const stk_image_receiver *to = reader->receiver;
    int end = reader->part.y + reader->part.height;
    for (int y = 0; y < end; y++) {
        if (is_halted(reader)) {
            return false;
        }
        if (y < reader->part.y) {
            png_read_row(reader->png, NULL, NULL);
        } else if (channels == 4) {
            png_read_row(reader->png, reader->pixels, NULL);
            give_row(reader, reader->pixels, channels);
        } else {
            png_read_row(reader->png, to->room(to->user, 1), NULL);
            to->take(to->user, 1);
        }
    }
    return true;
}

/* Reads all passes, each of which fills in more of the same rows. */
static bool read_whole(png_reader *reader, size_t row_bytes, int passes) {
    for (int pass = 0; pass < passes; pass++) {
        for (int y = 0; y < reader->height; y++) {
            if (is_halted(reader)) {
                return false;
            }
            png_read_row(reader->png, reader->pixels + (size_t)y * row_bytes, NULL);
        }
    }
    return true;
}

static bool read_interlaced(png_reader *reader, int channels, int passes) {
    size_t row_bytes = (size_t)reader->width * (size_t)channels;
    if (!read_whole(reader, row_bytes, passes)) {
        return false;
    }
    for (int y = reader->part.y; y < reader->part.y + reader->part.height; y++) {
        if (is_halted(reader)) {
            return false;
        }
        give_row(reader, reader->pixels + (size_t)y * row_bytes, channels);
    }
    return true;
}

/* Reads 16 bits, the first byte the higher one. */
static bool read_deep(png_reader *reader, int channels, int passes) {
    stk_status *status = &reader->guard.status;
    stk_error *err = reader->guard.err;
    const uint16_t one = 1;
    stk_samples s = {.format = "PNG",
                     .type = STK_SAMPLE_U16,
                     .swapped = *(const uint8_t *)&one == 1,
                     .width = reader->width,
                     .height = reader->height,
                     .channels = channels,
                     .channel_bytes = 2,
                     .alpha = channels % 2 == 0 ? STK_ALPHA_STRAIGHT : STK_ALPHA_NONE};
    s.column_bytes = 2 * (size_t)channels;
    s.row_bytes = s.column_bytes * (size_t)s.width;
    s.whole_bytes = s.row_bytes * (uint64_t)s.height;
    *status =
        stk_image_png_orientation(reader->bytes, reader->size, &s.orientation, reader->guard.err);
    STK_THEN(*status, stk_samples_ask(&s, reader->receiver, &reader->watch, &reader->part, err));
    if (*status != STK_OK) {
        return false;
    }
    reader->pixels = stk_mem_raw((size_t)s.whole_bytes, 1);
    if (reader->pixels == NULL) {
        *status = STK_FAIL_MEMORY(err, "decoding a PNG");
        return false;
    }
    if (!read_whole(reader, s.row_bytes, passes)) {
        return false;
    }
    s.bytes = reader->pixels;
    *status = stk_samples_give_part(&s, &reader->part, reader->receiver, &reader->watch, err);
    return *status == STK_OK;
}

static bool read_part(png_reader *reader) {
    png_structp png = reader->png;
    if (setjmp(png_jmpbuf(png)) != 0) {
        return false;
    }
    png_set_read_fn(png, reader, take_bytes);
    pass_over_chunks(png);
    png_read_info(png, reader->info);
    if (!prepare(reader)) {
        return false;
    }
    int passes = png_set_interlace_handling(png);
    png_read_update_info(png, reader->info);
    int channels = png_get_channels(png, reader->info);
    if (channels < (reader->deep ? 1 : 3) || channels > 4 ||
        png_get_rowbytes(png, reader->info) !=
            (size_t)reader->width * (size_t)channels * (reader->deep ? 2 : 1)) {
        png_error(png, "its kind of pixels is not known");
    }
    if (reader->deep) {
        return read_deep(reader, channels, passes);
    }
    if (!ask_receiver(reader, channels, passes > 1)) {
        return false;
    }
    return passes > 1 ? read_interlaced(reader, channels, passes) : read_plain(reader, channels);
}

static stk_status decode(const uint8_t *bytes, size_t size, const stk_image_receiver *receiver,
                         stk_error *err) {
    png_reader reader = {
        .bytes = bytes,
        .size = size,
        .receiver = receiver,
        .watch = stk_image_watch_start(receiver),
        .guard = {.purpose = "decoding a PNG", .refusal = "the PNG cannot be decoded", .err = err}};
    reader.png = stk_png_new_read(&reader.guard);
    reader.info = reader.png != NULL ? png_create_info_struct(reader.png) : NULL;
    stk_status status = STK_OK;
    if (reader.info == NULL) {
        status = STK_FAIL_MEMORY(err, "decoding a PNG");
    } else if (!read_part(&reader)) {
        status = reader.guard.status;
    } else if (reader.guard.no_memory) {
        /* libpng skipped something that it had no memory for: the pixels may be wrong. */
        status = STK_FAIL_MEMORY(err, "decoding a PNG");
    }
    png_destroy_read_struct(&reader.png, &reader.info, NULL);
    stk_mem_free(reader.pixels);
    return status;
}

static bool recognises(const uint8_t *bytes, size_t size) {
    return size >= 8 && memcmp(bytes, "\x89PNG\r\n\x1a\n", 8) == 0;
}

const stk_image_decoder stk_image_png = {
    .name = "PNG",
    .extension = "png",
    .recognises = recognises,
    .decode = decode,
};
