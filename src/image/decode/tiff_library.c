/*
 * tiff_library.c - TIFF to pixels with libtiff, where the build has it: compressed files, tiles,
 * palettes, unusual colours.
 *
 * Plain numbers are decoded row by row, or tile by tile, into memory for the whole picture, and go
 * on as samples. For all other kinds of pixels libtiff makes RGB with alpha, strip by strip. The
 * library reads from memory, prints nothing, and takes no block above MOST_BLOCK; the limits are
 * checked for every row, tile and strip.
 */
#include "image/decode/tiff.h"

#include "base/error.h"

#ifdef STK_HAVE_TIFF

#include <stdio.h>
#include <string.h>

#include <tiffio.h>

#include "base/mem.h"

#define MOST_BLOCK ((tmsize_t)1 << 30)

/* No compression makes files smaller by more, but of pictures that are made for it. */
#define MOST_RATIO 4096

typedef struct tiff_source {
    const uint8_t *bytes; /* borrowed */
    size_t size;
    size_t at;
    char reason[160]; /* libtiff's first complaint */
    TIFF *tiff;
    const stk_image_receiver *receiver; /* borrowed */
    stk_image_watch *watch;             /* borrowed */
    stk_error *err;                     /* borrowed */
} tiff_source;

/* ---- the file's bytes ---- */

static tmsize_t read_bytes(thandle_t handle, void *to, tmsize_t size) {
    tiff_source *source = (tiff_source *)handle;
    size_t left = source->size - source->at;
    size_t count = (size_t)size < left ? (size_t)size : left;
    memcpy(to, source->bytes + source->at, count);
    source->at += count;
    return (tmsize_t)count;
}

static tmsize_t write_nothing(thandle_t handle, void *from, tmsize_t size) {
    (void)handle;
    (void)from;
    (void)size;
    return 0;
}

static toff_t seek_to(thandle_t handle, toff_t offset, int whence) {
    tiff_source *source = (tiff_source *)handle;
    toff_t base = whence == SEEK_CUR ? source->at : whence == SEEK_END ? source->size : 0;
    toff_t at = base + offset;
    source->at = at < source->size ? (size_t)at : source->size;
    return source->at;
}

static int close_nothing(thandle_t handle) {
    (void)handle;
    return 0;
}

static toff_t size_of(thandle_t handle) {
    return ((tiff_source *)handle)->size;
}

static int keep_reason(TIFF *tiff, void *user, const char *module, const char *format,
                       va_list values) {
    tiff_source *source = user;
    (void)tiff;
    (void)module;
    if (source->reason[0] == '\0') {
        vsnprintf(source->reason, sizeof source->reason, format, values);
    }
    return 1;
}

static int print_nothing(TIFF *tiff, void *user, const char *module, const char *format,
                         va_list values) {
    (void)tiff;
    (void)user;
    (void)module;
    (void)format;
    (void)values;
    return 1;
}

static stk_status fail(const tiff_source *source) {
    return STK_FAIL(source->err, STK_ERR_DATA, "the TIFF cannot be decoded: %s",
                    source->reason[0] != '\0' ? source->reason : "it is damaged");
}

static stk_status open_tiff(tiff_source *source) {
    TIFFOpenOptions *options = TIFFOpenOptionsAlloc();
    if (options == NULL) {
        return STK_FAIL_MEMORY(source->err, "decoding a TIFF");
    }
    TIFFOpenOptionsSetMaxSingleMemAlloc(options, MOST_BLOCK);
    TIFFOpenOptionsSetErrorHandlerExtR(options, keep_reason, source);
    TIFFOpenOptionsSetWarningHandlerExtR(options, print_nothing, source);
    source->tiff = TIFFClientOpenExt("TIFF", "rm", (thandle_t)source, read_bytes, write_nothing,
                                     seek_to, close_nothing, size_of, NULL, NULL, options);
    TIFFOpenOptionsFree(options);
    return source->tiff != NULL ? STK_OK : fail(source);
}

static stk_status check_watch(const tiff_source *source) {
    return stk_image_halted(source->watch)
               ? stk_image_refuse_halted(source->watch, "TIFF", source->err)
               : STK_OK;
}

static unsigned tag_of(TIFF *tiff, uint32_t tag) {
    uint16_t value = 0;
    (void)TIFFGetFieldDefaulted(tiff, tag, &value);
    return value;
}

static stk_tiff_kind kind_of(TIFF *tiff) {
    uint16_t extras = 0;
    uint16_t *extra = NULL;
    uint16_t photometric = 99;
    (void)TIFFGetFieldDefaulted(tiff, TIFFTAG_EXTRASAMPLES, &extras, &extra);
    (void)TIFFGetField(tiff, TIFFTAG_PHOTOMETRIC, &photometric);
    return (stk_tiff_kind){.photometric = photometric,
                           .bits = tag_of(tiff, TIFFTAG_BITSPERSAMPLE),
                           .format = tag_of(tiff, TIFFTAG_SAMPLEFORMAT),
                           .channels = tag_of(tiff, TIFFTAG_SAMPLESPERPIXEL),
                           .extras = extras,
                           .extra = extras > 0 && extra != NULL ? extra[0] : 0,
                           .orientation = tag_of(tiff, TIFFTAG_ORIENTATION)};
}

/* ---- plain numbers ---- */

static stk_status read_rows(const tiff_source *source, const stk_samples *s, int planes,
                            uint8_t *to) {
    stk_status status = STK_OK;
    for (int p = 0; p < planes; p++) {
        for (int y = 0; status == STK_OK && y < s->height; y++, to += s->row_bytes) {
            status = check_watch(source);
            if (status == STK_OK &&
                TIFFReadScanline(source->tiff, to, (uint32_t)y, (uint16_t)p) != 1) {
                status = fail(source);
            }
        }
    }
    return status;
}

/* Copies the part of a tile that lies in the picture. */
static void place_tile(const stk_samples *s, const uint8_t *tile, size_t tile_row, uint32_t x,
                       uint32_t y, uint32_t tile_height, uint8_t *plane) {
    size_t left = s->row_bytes - x * s->column_bytes;
    size_t bytes = tile_row < left ? tile_row : left;
    for (uint32_t j = 0; j < tile_height && y + j < (uint32_t)s->height; j++) {
        memcpy(plane + (y + j) * s->row_bytes + x * s->column_bytes, tile + j * tile_row, bytes);
    }
}

static stk_status read_tiles(const tiff_source *source, const stk_samples *s, int planes,
                             uint8_t *to) {
    uint32_t width = 0;
    uint32_t height = 0;
    stk_status status = STK_OK;
    tmsize_t bytes = TIFFTileSize(source->tiff);
    tmsize_t row = TIFFTileRowSize(source->tiff);
    (void)TIFFGetField(source->tiff, TIFFTAG_TILEWIDTH, &width);
    (void)TIFFGetField(source->tiff, TIFFTAG_TILELENGTH, &height);
    if (width < 1 || height < 1 || bytes < 1 || bytes > MOST_BLOCK ||
        (uint64_t)row != (uint64_t)width * s->column_bytes ||
        (uint64_t)bytes < (uint64_t)row * height) {
        return fail(source);
    }
    uint8_t *tile = stk_mem_new((size_t)bytes, 1);
    if (tile == NULL) {
        return STK_FAIL_MEMORY(source->err, "decoding a TIFF");
    }
    for (int p = 0; p < planes; p++) {
        uint8_t *plane = to + (size_t)p * s->row_bytes * (size_t)s->height;
        for (uint64_t y = 0; status == STK_OK && y < (uint64_t)s->height; y += height) {
            for (uint64_t x = 0; status == STK_OK && x < (uint64_t)s->width; x += width) {
                status = check_watch(source);
                if (status == STK_OK && TIFFReadTile(source->tiff, tile, (uint32_t)x, (uint32_t)y,
                                                     0, (uint16_t)p) < 0) {
                    status = fail(source);
                } else if (status == STK_OK) {
                    place_tile(s, tile, (size_t)row, (uint32_t)x, (uint32_t)y, height, plane);
                }
            }
        }
    }
    stk_mem_free(tile);
    return status;
}

static stk_status give_numbers(const tiff_source *source, stk_samples *s) {
    stk_image_part part;
    bool apart = tag_of(source->tiff, TIFFTAG_PLANARCONFIG) == PLANARCONFIG_SEPARATE;
    int planes = apart ? s->channels : 1;
    size_t value = stk_sample_bytes(s->type);
    s->column_bytes = apart ? value : value * (size_t)s->channels;
    s->row_bytes = s->column_bytes * (size_t)s->width;
    s->channel_bytes = apart ? s->row_bytes * (size_t)s->height : value;
    s->whole_bytes = s->row_bytes * (uint64_t)s->height * (uint64_t)planes;
    bool fits = TIFFIsTiled(source->tiff) ||
                (uint64_t)TIFFScanlineSize64(source->tiff) == (uint64_t)s->row_bytes;
    if (!fits || s->whole_bytes / MOST_RATIO > source->size) {
        return STK_FAIL(source->err, STK_ERR_DATA,
                        "the TIFF says that it has %d x %d pixels, which its %zu bytes cannot hold",
                        s->width, s->height, source->size);
    }
    stk_status status = stk_samples_ask(s, source->receiver, source->watch, &part, source->err);
    if (status != STK_OK) {
        return status;
    }
    uint8_t *values = stk_mem_raw((size_t)s->whole_bytes, 1);
    if (values == NULL) {
        return STK_FAIL_MEMORY(source->err, "decoding a TIFF");
    }
    s->bytes = values;
    status = TIFFIsTiled(source->tiff) ? read_tiles(source, s, planes, values)
                                       : read_rows(source, s, planes, values);
    STK_THEN(status, stk_samples_give_part(s, &part, source->receiver, source->watch, source->err));
    stk_mem_free(values);
    return status;
}

/* ---- other kinds of pixels ---- */

/* Colours are mixed with black by their alpha already. */
static void give_row(const stk_image_receiver *to, const uint32_t *pixels, int width) {
    uint8_t *out = to->room(to->user, 1);
    for (int x = 0; x < width; x++) {
        uint32_t p = pixels[x];
        uint32_t white = 255 - TIFFGetA(p);
        uint32_t levels[3] = {TIFFGetR(p) + white, TIFFGetG(p) + white, TIFFGetB(p) + white};
        for (int c = 0; c < 3; c++) {
            out[3 * x + c] = (uint8_t)(levels[c] < 255 ? levels[c] : 255);
        }
    }
    to->take(to->user, 1);
}

/* Rows that libtiff decodes together: a strip, or a row of tiles. */
static uint32_t block_rows(TIFF *tiff, int height) {
    uint32_t rows = 0;
    if (TIFFIsTiled(tiff)) {
        (void)TIFFGetField(tiff, TIFFTAG_TILELENGTH, &rows);
    } else {
        (void)TIFFGetFieldDefaulted(tiff, TIFFTAG_ROWSPERSTRIP, &rows);
    }
    return rows > 0 && rows < (uint32_t)height ? rows : (uint32_t)height;
}

static stk_status give_blocks(const tiff_source *source, TIFFRGBAImage *image,
                              const stk_image_part *part, int width, int height, uint32_t rows,
                              uint32_t *raster) {
    stk_status status = STK_OK;
    int end = part->y + part->height;
    for (int top = part->y / (int)rows * (int)rows; status == STK_OK && top < end;
         top += (int)rows) {
        uint32_t count = (int)rows < height - top ? rows : (uint32_t)(height - top);
        memset(raster, 0, (size_t)width * count * sizeof *raster);
        image->row_offset = top;
        image->col_offset = 0;
        status = check_watch(source);
        if (status == STK_OK && TIFFRGBAImageGet(image, raster, (uint32_t)width, count) != 1) {
            status = fail(source);
        }
        for (int y = top; status == STK_OK && y < top + (int)count && y < end; y++) {
            status = check_watch(source);
            if (status == STK_OK && y >= part->y) {
                give_row(source->receiver, raster + (size_t)(y - top) * (size_t)width, width);
            }
        }
    }
    return status;
}

static stk_status give_colours(const tiff_source *source, int width, int height, int orientation) {
    const stk_image_receiver *to = source->receiver;
    stk_image_part part;
    TIFFRGBAImage image;
    char reason[1024] = "";
    if (!TIFFRGBAImageOK(source->tiff, reason) ||
        !TIFFRGBAImageBegin(&image, source->tiff, 1, reason)) {
        return STK_FAIL(source->err, STK_ERR_DATA, "the TIFF cannot be decoded: %s", reason);
    }
    image.req_orientation = image.orientation; /* as stored */
    uint32_t rows = block_rows(source->tiff, height);
    stk_image_info info = {.width = width, .height = height, .orientation = orientation};
    info.whole_bytes = (uint64_t)width * rows * 4;
    stk_status status = to->begin(to->user, &info, &part, source->err);
    STK_THEN(status, to->rows(to->user, 0, width, source->err));
    uint32_t *raster = status == STK_OK ? stk_mem_raw((size_t)width * rows, sizeof *raster) : NULL;
    if (status == STK_OK && raster == NULL) {
        status = STK_FAIL_MEMORY(source->err, "decoding a TIFF");
    }
    STK_THEN(status, give_blocks(source, &image, &part, width, height, rows, raster));
    stk_mem_free(raster);
    TIFFRGBAImageEnd(&image);
    return status;
}

static stk_status decode_page(const tiff_source *source) {
    uint32_t width = 0;
    uint32_t height = 0;
    (void)TIFFGetField(source->tiff, TIFFTAG_IMAGEWIDTH, &width);
    (void)TIFFGetField(source->tiff, TIFFTAG_IMAGELENGTH, &height);
    stk_tiff_kind kind = kind_of(source->tiff);
    stk_samples samples = {.format = "TIFF", .width = (int)width, .height = (int)height};
    stk_status status = stk_image_check_size(width, height, source->err);
    STK_THEN(status, check_watch(source));
    if (status != STK_OK) {
        return status;
    }
    if (stk_tiff_describe(&kind, source->receiver, &samples)) {
        return give_numbers(source, &samples);
    }
    int orientation = kind.orientation >= 1 && kind.orientation <= 8 ? (int)kind.orientation : 1;
    if (source->receiver->channels != 0 && source->receiver->channels != 3) {
        return STK_FAIL(source->err, STK_ERR_DATA,
                        "the TIFF has 3 channels, and pictures of %d are wanted",
                        source->receiver->channels);
    }
    return give_colours(source, (int)width, (int)height, orientation);
}

stk_status stk_tiff_with_library(const uint8_t *bytes, size_t size,
                                 const stk_image_receiver *receiver, stk_image_watch *watch,
                                 stk_error *err) {
    tiff_source source = {
        .bytes = bytes, .size = size, .receiver = receiver, .watch = watch, .err = err};
    stk_status status = open_tiff(&source);
    if (status == STK_OK) {
        status = decode_page(&source);
        TIFFClose(source.tiff);
    }
    return status;
}

#else

stk_status stk_tiff_with_library(const uint8_t *bytes, size_t size,
                                 const stk_image_receiver *receiver, stk_image_watch *watch,
                                 stk_error *err) {
    (void)bytes;
    (void)size;
    (void)receiver;
    (void)watch;
    return STK_FAIL(err, STK_ERR_DATA,
                    "it is a TIFF picture of a kind for which this build of Stoker lacks libtiff "
                    "4.5 (STK_TIFF): install it and build again, or convert the picture");
}

#endif
