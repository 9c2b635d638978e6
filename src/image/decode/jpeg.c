/*
 * jpeg.c - JPEG to pixels with libjpeg-turbo.
 *
 * Rows above the wanted part pass only the entropy decoder, blocks beside it are not transformed,
 * and nothing below it is read. At the edges of a part the library invents the neighbours that
 * colour needs, so two more columns are decoded on each side. Scaling by 1/2, 1/4 and 1/8 happens
 * in the inverse transform; other ratios have no vector code.
 *
 * libjpeg reports errors by longjmp. The function that calls setjmp changes no local variable:
 * everything lives in a jpeg_reader of its caller, which frees it. Warnings are not printed; only
 * the premature end of the data matters, which tells how many rows came.
 *
 * libjpeg keeps markers in a list, and older versions walk the whole list to append one, so a file
 * with a million markers would take for ever. Markers with EXIF and XMP are not kept: pass_app1()
 * notes the position of the first of each. The limits are checked for every marker (each gives a
 * message), every piece of the file and every row of blocks.
 */
#include "image/decode/decoders.h"

#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <jpeglib.h>
#include <jerror.h>

#include "base/error.h"
#include "base/mem.h"

#define MARKER_EXIF (JPEG_APP0 + 1)

static const char exif_sign[6] = "Exif\0"; /* and one NUL more */
static const char xmp_sign[29] = "http://ns.adobe.com/xap/1.0/";

/* libjpeg gets this many bytes at a time; the limits are checked in between. */
#define PIECE_BYTES ((size_t)64 << 10)

/* Most scans of a file. Cameras write about ten; a small file can hold thousands and take minutes.
 */
#define MAX_SCANS 100

/* Most rows of a 4:2:0 picture that libjpeg makes in one call. */
#define ROWS_AT_ONCE 4

/* Columns decoded beside a part, so that its own columns are right. */
#define SPARE_COLUMNS 2

typedef struct jpeg_reader {
    struct jpeg_decompress_struct cinfo;
    struct jpeg_error_mgr errors;
    struct jpeg_progress_mgr progress;
    struct jpeg_source_mgr source;
    const uint8_t *begin, *end; /* of the file's bytes */
    bool past_end;              /* libjpeg has read all bytes and wants more */
    stk_image_tags tags;
    jmp_buf escape;
    const stk_image_receiver *receiver; /* borrowed */
    stk_image_part part;                /* the part that the receiver wants */
    stk_image_watch watch;
    size_t channels;   /* of the rows that the receiver gets: 3 or 1 */
    uint8_t *cmyk;     /* owned: one row of (width, 4), NULL unless needed */
    bool ended;        /* the data ended too early */
    stk_status status; /* the error that longjmp was called for */
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
 * Rows decoded when the data ends. After the first scan of a file with several, all rows are there,
 * only coarser.
 */
static int rows_read(const struct jpeg_decompress_struct *cinfo) {
    if (cinfo->input_scan_number > 1) {
        return (int)cinfo->image_height;
    }
    int64_t rows = (int64_t)cinfo->input_iMCU_row * cinfo->max_v_samp_factor * DCTSIZE;
    return (int)(rows < (int64_t)cinfo->image_height ? rows : (int64_t)cinfo->image_height);
}

static void watch_out(jpeg_reader *reader) {
    if (stk_image_halted(&reader->watch)) {
        leave(reader, stk_image_refuse_halted(&reader->watch, "JPEG", reader->err));
    }
}

static void on_message(j_common_ptr common, int level) {
    jpeg_reader *reader = common->client_data;
    watch_out(reader);
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
    watch_out(reader);
}

/* ---- the file's bytes ---- */

static void begin_source(j_decompress_ptr cinfo) {
    (void)cinfo;
}

/* Gives libjpeg the next piece; past the last one an end marker, as jpeg_mem_src does. */
static boolean next_piece(j_decompress_ptr cinfo) {
    static const JOCTET end_marker[2] = {0xFF, JPEG_EOI};
    jpeg_reader *reader = cinfo->client_data;
    struct jpeg_source_mgr *source = &reader->source;
    watch_out(reader);
    const uint8_t *at = source->next_input_byte + source->bytes_in_buffer;
    size_t left = reader->past_end ? 0 : (size_t)(reader->end - at);
    if (left == 0) {
        reader->past_end = true;
        WARNMS(cinfo, JWRN_JPEG_EOF);
        source->next_input_byte = end_marker;
        source->bytes_in_buffer = 2;
        return TRUE;
    }
    source->next_input_byte = at;
    source->bytes_in_buffer = left < PIECE_BYTES ? left : PIECE_BYTES;
    return TRUE;
}

static void skip_bytes(j_decompress_ptr cinfo, long count) {
    struct jpeg_source_mgr *source = cinfo->src;
    while (count > (long)source->bytes_in_buffer) {
        count -= (long)source->bytes_in_buffer;
        source->next_input_byte += source->bytes_in_buffer;
        source->bytes_in_buffer = 0;
        (void)next_piece(cinfo);
    }
    if (count > 0) {
        source->next_input_byte += (size_t)count;
        source->bytes_in_buffer -= (size_t)count;
    }
}

static unsigned read_byte(j_decompress_ptr cinfo) {
    struct jpeg_source_mgr *source = cinfo->src;
    if (source->bytes_in_buffer == 0) {
        (void)next_piece(cinfo);
    }
    source->bytes_in_buffer--;
    return *source->next_input_byte++;
}

/* Notes the position of EXIF or XMP and skips it. Ignores a marker that the file's end cuts off. */
static boolean pass_app1(j_decompress_ptr cinfo) {
    jpeg_reader *reader = cinfo->client_data;
    stk_image_tags *tags = &reader->tags;
    unsigned length = read_byte(cinfo) << 8;
    length |= read_byte(cinfo);
    size_t size = length > 2 ? length - 2 : 0;
    const uint8_t *data = reader->source.next_input_byte;
    bool whole = !reader->past_end && size <= (size_t)(reader->end - data);
    watch_out(reader);
    if (whole && tags->exif == NULL && size > sizeof exif_sign &&
        memcmp(data, exif_sign, sizeof exif_sign) == 0) {
        tags->exif = data;
        tags->exif_size = size;
    } else if (whole && tags->xmp == NULL && size > sizeof xmp_sign &&
               memcmp(data, xmp_sign, sizeof xmp_sign) == 0) {
        tags->xmp = data + sizeof xmp_sign;
        tags->xmp_size = size - sizeof xmp_sign;
    }
    skip_bytes(cinfo, (long)size);
    return TRUE;
}

static void open_source(jpeg_reader *reader, const uint8_t *bytes, size_t size) {
    size_t piece = size < PIECE_BYTES ? size : PIECE_BYTES;
    reader->begin = bytes;
    reader->end = bytes + size;
    reader->source = (struct jpeg_source_mgr){.next_input_byte = bytes,
                                              .bytes_in_buffer = piece,
                                              .init_source = begin_source,
                                              .fill_input_buffer = next_piece,
                                              .skip_input_data = skip_bytes,
                                              .resync_to_restart = jpeg_resync_to_restart,
                                              .term_source = begin_source};
    reader->cinfo.src = &reader->source;
    jpeg_set_marker_processor(&reader->cinfo, MARKER_EXIF, pass_app1);
}

/* ---- the picture ---- */

/* Adobe stores ink inverted: 255 means none. Light is the product of paper and black. `rgb` may be
 * `cmyk`. */
static void convert_cmyk(const uint8_t *cmyk, int width, bool inverted, uint8_t *rgb) {
    unsigned flip = inverted ? 0 : 255;
    for (int x = 0; x < width; x++) {
        unsigned black = cmyk[4 * x + 3] ^ flip;
        for (int c = 0; c < 3; c++) {
            rgb[3 * x + c] = (uint8_t)(((cmyk[4 * x + c] ^ flip) * black + 127) / 255);
        }
    }
}

/* Whether the frame is baseline: the kind of the first frame marker says so. */
static bool is_baseline(const uint8_t *at, const uint8_t *end) {
    enum { FRAME_FIRST = 0xC0, FRAME_LAST = 0xCF, TABLES = 0xC4, EXTENSION = 0xC8, CODES = 0xCC };
    at += 2; /* the start marker */
    while (end - at >= 4 && at[0] == 0xFF) {
        uint8_t kind = at[1];
        if (kind == 0xFF) { /* padding */
            at++;
            continue;
        }
        if (kind >= FRAME_FIRST && kind <= FRAME_LAST && kind != TABLES && kind != EXTENSION &&
            kind != CODES) {
            return kind == FRAME_FIRST;
        }
        ptrdiff_t length = 2 + (at[2] << 8 | at[3]);
        at += length < end - at ? length : end - at;
    }
    return false;
}

/* Whether the scan that begins at `at` is followed by the end marker: nothing is missing, and no
 * further scan comes. Within a scan 0xFF stands only before 0 or a restart marker. */
static bool ends_after_scan(const uint8_t *at, const uint8_t *end) {
    while (at < end && (at = memchr(at, 0xFF, (size_t)(end - at))) != NULL && end - at >= 2) {
        if (at[1] != 0 && at[1] != 0xFF && (at[1] < JPEG_RST0 || at[1] > JPEG_RST0 + 7)) {
            return at[1] == JPEG_EOI;
        }
        at += at[1] == 0xFF ? 1 : 2;
    }
    return false;
}

/* What a device finds in the picture, whose header was read up to its first scan. */
static stk_jpeg_planes planes_of(const jpeg_reader *reader) {
    const struct jpeg_decompress_struct *cinfo = &reader->cinfo;
    const jpeg_component_info *comps = cinfo->comp_info;
    if (cinfo->progressive_mode || cinfo->arith_code || cinfo->data_precision != 8 ||
        cinfo->comps_in_scan != cinfo->num_components || !is_baseline(reader->begin, reader->end) ||
        !ends_after_scan(reader->source.next_input_byte, reader->end)) {
        return STK_PLANES_OTHER;
    }
    if (cinfo->jpeg_color_space == JCS_GRAYSCALE) { /* other factors mean nothing here */
        bool plain = comps[0].h_samp_factor == 1 && comps[0].v_samp_factor == 1;
        return plain ? STK_PLANES_GREY : STK_PLANES_OTHER;
    }
    if (cinfo->jpeg_color_space != JCS_YCbCr || comps[1].h_samp_factor != 1 ||
        comps[1].v_samp_factor != 1 || comps[2].h_samp_factor != 1 || comps[2].v_samp_factor != 1) {
        return STK_PLANES_OTHER;
    }
    switch (comps[0].h_samp_factor * 10 + comps[0].v_samp_factor) {
    case 11:
        return STK_PLANES_444;
    case 21:
        return STK_PLANES_422;
    case 22:
        return STK_PLANES_420;
    default:
        return STK_PLANES_OTHER;
    }
}

/* Checks the size that the header gives, and asks the receiver for the wanted part. */
static void ask_receiver(jpeg_reader *reader) {
    struct jpeg_decompress_struct *cinfo = &reader->cinfo;
    stk_status status = stk_image_check_size(cinfo->image_width, cinfo->image_height, reader->err);
    if (status == STK_OK) {
        uint64_t blocks = 0;
        for (int i = 0; i < cinfo->num_components; i++) {
            blocks += (uint64_t)cinfo->comp_info[i].width_in_blocks *
                      cinfo->comp_info[i].height_in_blocks;
        }
        stk_image_info info = {
            .width = (int)cinfo->image_width,
            .height = (int)cinfo->image_height,
            .orientation = stk_image_orientation(&reader->tags),
            .divides = true,
            .planes = reader->receiver->asks_planes ? planes_of(reader) : STK_PLANES_OTHER,
            .whole_bytes = jpeg_has_multiple_scans(cinfo) ? blocks * sizeof(JBLOCK) : 0};
        status = reader->receiver->begin(reader->receiver->user, &info, &reader->part, reader->err);
    }
    if (status != STK_OK) {
        leave(reader, status);
    }
}

/*
 * Whether columns can be left out. libjpeg-turbo before 2.1.91 has a bug if colour is subsampled in
 * both directions, by more than two in one, and scaled: it fills half of a row and leaves the rest
 * uninitialised.
 */
static bool can_crop(const struct jpeg_decompress_struct *cinfo, int divisor) {
    for (int i = 0; divisor > 1 && i < cinfo->num_components; i++) {
        int h = cinfo->comp_info[i].h_samp_factor;
        int v = cinfo->comp_info[i].v_samp_factor;
        bool both = h < cinfo->max_h_samp_factor && v < cinfo->max_v_samp_factor;
        if (both && (2 * h != cinfo->max_h_samp_factor || 2 * v != cinfo->max_v_samp_factor)) {
            return false;
        }
    }
    return true;
}

/* Starts decoding, restricts it to the part and skips to its first row; returns the row's width. */
static JDIMENSION start_part(jpeg_reader *reader) {
    struct jpeg_decompress_struct *cinfo = &reader->cinfo;
    const stk_image_part *part = &reader->part;
    bool four = cinfo->jpeg_color_space == JCS_CMYK || cinfo->jpeg_color_space == JCS_YCCK;
    cinfo->out_color_space = four ? JCS_CMYK : reader->channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    cinfo->dct_method = JDCT_ISLOW;
    cinfo->scale_num = 1;
    cinfo->scale_denom = (unsigned)part->divisor;
    (void)jpeg_start_decompress(cinfo);

    JDIMENSION x = 0;
    JDIMENSION width = cinfo->output_width;
    int left = part->x > SPARE_COLUMNS ? part->x - SPARE_COLUMNS : 0;
    int right = part->x + part->width + SPARE_COLUMNS;
    right = right < (int)width ? right : (int)width;
    if ((left > 0 || right < (int)width) && can_crop(cinfo, part->divisor)) {
        x = (JDIMENSION)left;
        width = (JDIMENSION)(right - left);
        jpeg_crop_scanline(cinfo, &x, &width);
    }
    stk_status status =
        reader->receiver->rows(reader->receiver->user, (int)x, (int)width, reader->err);
    if (status == STK_OK && four) {
        reader->cmyk = stk_mem_raw(width, 4);
        status = reader->cmyk != NULL ? STK_OK : STK_FAIL_MEMORY(reader->err, "decoding a JPEG");
    }
    if (status != STK_OK) {
        leave(reader, status);
    }
    if (part->y > 0) {
        (void)jpeg_skip_scanlines(cinfo, (JDIMENSION)part->y);
    }
    return width;
}

static void take_cmyk_row(jpeg_reader *reader, JDIMENSION width) {
    uint8_t *to = reader->receiver->room(reader->receiver->user, 1);
    JSAMPROW row = reader->cmyk;
    (void)jpeg_read_scanlines(&reader->cinfo, &row, 1);
    if (reader->channels == 1) {
        convert_cmyk(reader->cmyk, (int)width, reader->cinfo.saw_Adobe_marker, reader->cmyk);
        stk_image_to_grey(reader->cmyk, width, to);
    } else {
        convert_cmyk(reader->cmyk, (int)width, reader->cinfo.saw_Adobe_marker, to);
    }
    reader->receiver->take(reader->receiver->user, 1);
}

static void take_rows(jpeg_reader *reader, JDIMENSION width, int most) {
    int count = most < ROWS_AT_ONCE ? most : ROWS_AT_ONCE;
    uint8_t *to = reader->receiver->room(reader->receiver->user, count);
    JSAMPROW rows[ROWS_AT_ONCE];
    for (int i = 0; i < count; i++) {
        rows[i] = to + (size_t)i * width * reader->channels;
    }
    JDIMENSION made = jpeg_read_scanlines(&reader->cinfo, rows, (JDIMENSION)count);
    reader->receiver->take(reader->receiver->user, (int)made);
}

static bool read_part(jpeg_reader *reader, const uint8_t *bytes, size_t size) {
    if (setjmp(reader->escape) != 0) {
        return false;
    }
    struct jpeg_decompress_struct *cinfo = &reader->cinfo;
    jpeg_create_decompress(cinfo);
    cinfo->progress = &reader->progress;
    open_source(reader, bytes, size);
    (void)jpeg_read_header(cinfo, TRUE);
    ask_receiver(reader);
    JDIMENSION width = start_part(reader);
    int end = reader->part.y + reader->part.height;
    while ((int)cinfo->output_scanline < end) {
        watch_out(reader);
        if (reader->cmyk != NULL) {
            take_cmyk_row(reader, width);
        } else {
            take_rows(reader, width, end - (int)cinfo->output_scanline);
        }
    }
    return true;
}

static stk_status decode(const uint8_t *bytes, size_t size, const stk_image_receiver *receiver,
                         stk_error *err) {
    jpeg_reader reader = {
        .receiver = receiver, .watch = stk_image_watch_start(receiver), .err = err};
    reader.channels = receiver->channels == 1 ? 1 : 3;
    reader.cinfo.err = jpeg_std_error(&reader.errors);
    reader.cinfo.client_data = &reader;
    reader.errors.error_exit = on_error;
    reader.errors.emit_message = on_message;
    reader.errors.output_message = print_nothing;
    reader.progress.progress_monitor = on_progress;

    stk_status status = read_part(&reader, bytes, size) ? STK_OK : reader.status;
    jpeg_destroy_decompress(&reader.cinfo);
    stk_mem_free(reader.cmyk);
    return status;
}

static bool recognises(const uint8_t *bytes, size_t size) {
    return size >= 3 && bytes[0] == 0xFF && bytes[1] == 0xD8 && bytes[2] == 0xFF;
}

const stk_image_decoder stk_image_jpeg = {
    .name = "JPEG",
    .extension = "jpg",
    .recognises = recognises,
    .grey = true,
    .decode = decode,
};
