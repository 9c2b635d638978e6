/*
 * jpeg.c - JPEG to pixels with libjpeg-turbo.
 *
 * libjpeg leaves by longjmp on errors. The function that calls setjmp changes no local variable:
 * everything lives in a jpeg_reader of its caller, which therefore knows what to free. Warnings
 * are not printed; the one that matters is the end of the data, which tells how many rows came.
 */
#include "image/decoders.h"

#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <jpeglib.h>
#include <jerror.h>

#include "base/error.h"
#include "base/mem.h"

#define MARKER_EXIF (JPEG_APP0 + 1)
#define EXIF_PREFIX 6 /* "Exif" and two NULs before the TIFF header */

/* Cameras write about ten; a small file can hold thousands and take minutes to decode. */
#define MAX_SCANS 200

/* libjpeg makes this many rows of a 4:2:0 picture in one go at most. */
#define ROWS_AT_ONCE 4

typedef struct jpeg_reader {
    struct jpeg_decompress_struct cinfo;
    struct jpeg_error_mgr errors;
    struct jpeg_progress_mgr progress;
    jmp_buf escape;
    stk_image *image;  /* borrowed; filled */
    uint8_t *cmyk;     /* owned: one row of (width, 4), NULL unless needed */
    int orientation;   /* EXIF's */
    bool ended;        /* the data ended early */
    stk_status status; /* why escape was taken */
    stk_error *err;    /* borrowed */
} jpeg_reader;

static _Noreturn void leave(jpeg_reader *reader, stk_status status) {
    reader->status = status;
    longjmp(reader->escape, 1);
}

static void on_error(j_common_ptr common) {
    jpeg_reader *reader = common->client_data;
    char text[JMSG_LENGTH_MAX];
    common->err->format_message(common, text);
    if (common->err->msg_code == JERR_OUT_OF_MEMORY) {
        leave(reader, STK_FAIL_MEMORY(reader->err, "decoding a JPEG"));
    }
    leave(reader, STK_FAIL(reader->err, STK_ERR_DATA, "the JPEG cannot be decoded: %s", text));
}

/*
 * How many rows there are when the data ends. Behind the first scan of a file with several, all
 * rows are there, only coarser.
 */
static int rows_read(const struct jpeg_decompress_struct *cinfo) {
    if (cinfo->input_scan_number > 1) {
        return (int)cinfo->image_height;
    }
    int64_t rows = (int64_t)cinfo->input_iMCU_row * cinfo->max_v_samp_factor * DCTSIZE;
    return (int)(rows < (int64_t)cinfo->image_height ? rows : (int64_t)cinfo->image_height);
}

static void on_message(j_common_ptr common, int level) {
    jpeg_reader *reader = common->client_data;
    struct jpeg_decompress_struct *cinfo = &reader->cinfo;
    int code = common->err->msg_code;
    bool end =
        code == JWRN_JPEG_EOF || (code == JWRN_HIT_MARKER && cinfo->unread_marker == JPEG_EOI);
    if (level >= 0 || !end || reader->ended) {
        return;
    }
    reader->ended = true;
    int rows = rows_read(cinfo);
    if ((int64_t)rows * 2 < (int64_t)cinfo->image_height) {
        leave(reader,
              STK_FAIL(reader->err, STK_ERR_DATA,
                       "the JPEG ends after %d of its %d rows: the file is cut off or damaged",
                       rows, (int)cinfo->image_height));
    }
}

static void print_nothing(j_common_ptr common) {
    (void)common;
}

static void on_progress(j_common_ptr common) {
    jpeg_reader *reader = common->client_data;
    if (reader->cinfo.input_scan_number > MAX_SCANS) {
        leave(reader,
              STK_FAIL(reader->err, STK_ERR_DATA,
                       "the JPEG has more than %d scans, which no camera writes", MAX_SCANS));
    }
}

static int read_orientation(const struct jpeg_decompress_struct *cinfo) {
    for (jpeg_saved_marker_ptr m = cinfo->marker_list; m != NULL; m = m->next) {
        if (m->marker == MARKER_EXIF && m->data_length > EXIF_PREFIX &&
            memcmp(m->data, "Exif\0\0", EXIF_PREFIX) == 0) {
            return stk_image_orientation(m->data + EXIF_PREFIX, m->data_length - EXIF_PREFIX);
        }
    }
    return 1;
}

/* Adobe writes ink inverted: 255 means none. What is left of the light is paper times black. */
static void convert_cmyk(const uint8_t *cmyk, int width, bool inverted, uint8_t *rgb) {
    unsigned flip = inverted ? 0 : 255;
    for (int x = 0; x < width; x++) {
        unsigned black = cmyk[4 * x + 3] ^ flip;
        for (int c = 0; c < 3; c++) {
            rgb[3 * x + c] = (uint8_t)(((cmyk[4 * x + c] ^ flip) * black + 127) / 255);
        }
    }
}

static void start(jpeg_reader *reader, const uint8_t *bytes, size_t size) {
    struct jpeg_decompress_struct *cinfo = &reader->cinfo;
    jpeg_create_decompress(cinfo);
    cinfo->progress = &reader->progress;
    jpeg_mem_src(cinfo, bytes, (unsigned long)size);
    jpeg_save_markers(cinfo, MARKER_EXIF, 0xFFFF);
    (void)jpeg_read_header(cinfo, TRUE);
    reader->orientation = read_orientation(cinfo);

    stk_status status = stk_image_new(reader->image, (int)cinfo->image_width,
                                      (int)cinfo->image_height, reader->err);
    if (status != STK_OK) {
        leave(reader, status);
    }
    bool four = cinfo->jpeg_color_space == JCS_CMYK || cinfo->jpeg_color_space == JCS_YCCK;
    if (four) {
        reader->cmyk = stk_mem_raw(cinfo->image_width, 4);
        if (reader->cmyk == NULL) {
            leave(reader, STK_FAIL_MEMORY(reader->err, "decoding a JPEG"));
        }
    }
    cinfo->out_color_space = four ? JCS_CMYK : JCS_RGB;
    cinfo->dct_method = JDCT_ISLOW;
    (void)jpeg_start_decompress(cinfo);
}

static bool read_rows(jpeg_reader *reader, const uint8_t *bytes, size_t size) {
    if (setjmp(reader->escape) != 0) {
        return false;
    }
    start(reader, bytes, size);
    struct jpeg_decompress_struct *cinfo = &reader->cinfo;
    size_t row_bytes = (size_t)cinfo->image_width * 3;
    while (cinfo->output_scanline < cinfo->output_height) {
        uint8_t *to = reader->image->pixels + cinfo->output_scanline * row_bytes;
        if (reader->cmyk != NULL) {
            JSAMPROW row = reader->cmyk;
            (void)jpeg_read_scanlines(cinfo, &row, 1);
            convert_cmyk(reader->cmyk, reader->image->width, cinfo->saw_Adobe_marker, to);
            continue;
        }
        JSAMPROW rows[ROWS_AT_ONCE];
        JDIMENSION count = 0;
        while (count < ROWS_AT_ONCE && cinfo->output_scanline + count < cinfo->output_height) {
            rows[count] = to + count * row_bytes;
            count++;
        }
        (void)jpeg_read_scanlines(cinfo, rows, count);
    }
    return true;
}

static stk_status decode(const uint8_t *bytes, size_t size, stk_image *image, stk_error *err) {
    jpeg_reader reader = {.image = image, .orientation = 1, .err = err};
    reader.cinfo.err = jpeg_std_error(&reader.errors);
    reader.cinfo.client_data = &reader;
    reader.errors.error_exit = on_error;
    reader.errors.emit_message = on_message;
    reader.errors.output_message = print_nothing;
    reader.progress.progress_monitor = on_progress;

    stk_status status = read_rows(&reader, bytes, size) ? STK_OK : reader.status;
    jpeg_destroy_decompress(&reader.cinfo);
    stk_mem_free(reader.cmyk);
    if (status == STK_OK) {
        status = stk_image_orient(image, reader.orientation, err);
    }
    if (status != STK_OK) {
        stk_image_free(image);
    }
    return status;
}

static bool recognises(const uint8_t *bytes, size_t size) {
    return size >= 3 && bytes[0] == 0xFF && bytes[1] == 0xD8 && bytes[2] == 0xFF;
}

const stk_image_decoder stk_image_jpeg = {
    .name = "JPEG",
    .recognises = recognises,
    .decode = decode,
};
