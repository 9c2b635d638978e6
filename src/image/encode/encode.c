/*
 * encode.c - pixels to JPEG.
 *
 * The bytes are allocated with stk_mem, so that tests can make allocation fail. As in jpeg.c,
 * variables of the function that calls setjmp live in its caller.
 */
#include "image/image.h"

#include <setjmp.h>
#include <stdio.h>

#include <jpeglib.h>
#include <jerror.h>

#include "base/error.h"
#include "base/mem.h"

typedef struct jpeg_writer {
    struct jpeg_compress_struct cinfo;
    struct jpeg_error_mgr errors;
    struct jpeg_destination_mgr target;
    jmp_buf escape;
    const stk_image *image; /* borrowed */
    int quality;
    uint8_t *bytes;    /* owned until success */
    size_t capacity;   /* allocated bytes */
    stk_status status; /* the error that longjmp was called for */
    stk_error *err;    /* borrowed */
} jpeg_writer;

static _Noreturn void leave(jpeg_writer *writer, stk_status status) {
    writer->status = status;
    longjmp(writer->escape, 1);
}

static void on_error(j_common_ptr common) {
    jpeg_writer *writer = common->client_data;
    char text[JMSG_LENGTH_MAX];
    common->err->format_message(common, text);
    if (common->err->msg_code == JERR_OUT_OF_MEMORY) {
        leave(writer, STK_FAIL_MEMORY(writer->err, "encoding a JPEG"));
    }
    leave(writer, STK_FAIL(writer->err, STK_ERR_DATA, "cannot encode a JPEG: %s", text));
}

static void print_nothing(j_common_ptr common) {
    (void)common;
}

/* Makes room after the first `used` bytes. */
static void grow(jpeg_writer *writer, size_t used) {
    if (!STK_RESERVE(writer->bytes, writer->capacity, used + 4096)) {
        leave(writer, STK_FAIL_MEMORY(writer->err, "encoding a JPEG"));
    }
    writer->target.next_output_byte = writer->bytes + used;
    writer->target.free_in_buffer = writer->capacity - used;
}

static void on_begin(j_compress_ptr cinfo) {
    jpeg_writer *writer = cinfo->client_data;
    grow(writer, 0);
}

/* libjpeg calls this when the buffer is full and ignores the counters. */
static boolean on_full(j_compress_ptr cinfo) {
    jpeg_writer *writer = cinfo->client_data;
    grow(writer, writer->capacity);
    return TRUE;
}

static void on_end(j_compress_ptr cinfo) {
    (void)cinfo;
}

static bool write_rows(jpeg_writer *writer) {
    if (setjmp(writer->escape) != 0) {
        return false;
    }
    struct jpeg_compress_struct *cinfo = &writer->cinfo;
    jpeg_create_compress(cinfo);
    cinfo->dest = &writer->target;
    cinfo->image_width = (JDIMENSION)writer->image->width;
    cinfo->image_height = (JDIMENSION)writer->image->height;
    cinfo->input_components = 3;
    cinfo->in_color_space = JCS_RGB;
    jpeg_set_defaults(cinfo);
    jpeg_set_quality(cinfo, writer->quality, TRUE);
    cinfo->optimize_coding = TRUE; /* smaller, and no slower to decode */
    jpeg_start_compress(cinfo, TRUE);
    while (cinfo->next_scanline < cinfo->image_height) {
        JSAMPROW row =
            writer->image->pixels + (size_t)cinfo->next_scanline * cinfo->image_width * 3;
        (void)jpeg_write_scanlines(cinfo, &row, 1);
    }
    jpeg_finish_compress(cinfo);
    return true;
}

stk_status stk_image_encode_jpeg(const stk_image *image, int quality, uint8_t **bytes, size_t *size,
                                 stk_error *err) {
    if (quality < 1 || quality > 100) {
        return STK_FAIL(err, STK_ERR_USAGE, "cannot encode a JPEG: quality %d is not in 1 to 100",
                        quality);
    }
    jpeg_writer writer = {.image = image, .quality = quality, .err = err};
    writer.cinfo.err = jpeg_std_error(&writer.errors);
    writer.cinfo.client_data = &writer;
    writer.errors.error_exit = on_error;
    writer.errors.output_message = print_nothing;
    writer.target.init_destination = on_begin;
    writer.target.empty_output_buffer = on_full;
    writer.target.term_destination = on_end;

    stk_status status = write_rows(&writer) ? STK_OK : writer.status;
    size_t used = writer.capacity - writer.target.free_in_buffer;
    jpeg_destroy_compress(&writer.cinfo);
    if (status != STK_OK) {
        stk_mem_free(writer.bytes);
        return status;
    }
    *bytes = writer.bytes;
    *size = used;
    return STK_OK;
}
