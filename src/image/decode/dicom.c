/*
 * dicom.c - DICOM to pixels: the first frame, through the file's own window.
 *
 * Grey values pass the first window that the file names (centre and width, after slope and
 * intercept), if it shows any of the picture's values. Without one, a thousandth of the values is
 * cut off on each side: the range from the smallest to the largest often ends in a few values of
 * metal or of letters burnt in, which would leave the rest dark. Percentiles much larger than that
 * would cut off small bright findings. Values that mark pixels outside of the scan do not count.
 * Bytes without a window stay as they are. MONOCHROME1 is inverted.
 */
#include "image/decode/dicom.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"

#define PREAMBLE 128

/* One decoding. */
typedef struct dicom_reader {
    stk_dicom dicom;
    const stk_image_receiver *receiver; /* borrowed */
    stk_image_watch watch;
    stk_image_part part;
    const uint8_t *frame; /* borrowed from the file or from `joined` */
    size_t frame_bytes;
    uint8_t *joined;         /* owned */
    stk_dicom_values values; /* owned */
    uint8_t *colours;        /* owned: (height, width, 3) of a palette, (height, width) of a JPEG */
    int rows;                /* of a baseline JPEG that came */
    stk_samples samples;
    stk_window window;
    stk_error *err; /* borrowed */
} dicom_reader;

static bool is_grey(const stk_dicom *d) {
    return d->colours == STK_DICOM_BLACK_IS_LOW || d->colours == STK_DICOM_WHITE_IS_LOW;
}

/* ---- the window ---- */

/* The file's window in stored values; a falling slope exchanges its ends. */
static void named_window(const stk_dicom *d, float *lo, float *hi) {
    double low = d->centre - 0.5 - (d->width_of_window - 1) / 2;
    double high = low + d->width_of_window - 1;
    *lo = (float)((low - d->intercept) / d->slope);
    *hi = (float)((high - d->intercept) / d->slope);
}

/* Whether bytes are shown as they are. */
static bool keeps_bytes(const stk_dicom *d) {
    float lo = 0;
    float hi = 255;
    if (d->windowed) {
        named_window(d, &lo, &hi);
    }
    return d->bits_stored == 8 && d->bits_allocated == 8 && !d->is_signed &&
           (!is_grey(d) || (lo == 0 && hi == 255 && d->slope > 0));
}

static stk_status choose_window(dicom_reader *r) {
    const stk_dicom *d = &r->dicom;
    stk_samples *s = &r->samples;
    if (!is_grey(d)) {
        r->window = (stk_window){.channels = 3};
        for (int c = 0; c < 3; c++) {
            r->window.hi[c] =
                s->type == STK_SAMPLE_U8 ? 255 : (float)(((uint64_t)1 << d->bits_stored) - 1);
        }
        s->own = s->type == STK_SAMPLE_U8 ? NULL : &r->window;
        return STK_OK;
    }
    s->inverted = (d->colours == STK_DICOM_WHITE_IS_LOW) != (d->slope < 0);
    s->padded = d->padded;
    s->padding = (float)d->padding;
    if (keeps_bytes(d)) {
        return STK_OK;
    }
    s->spread = true;
    stk_status status = stk_window_find(s, &r->watch, &r->window, r->err);
    s->own = &r->window;
    if (status == STK_OK && d->windowed) {
        float ends[2];
        named_window(d, &ends[0], &ends[1]);
        float lo = fminf(ends[0], ends[1]);
        float hi = fmaxf(ends[0], ends[1]);
        if (hi > lo && lo < r->window.hi[0] && hi > r->window.lo[0]) {
            r->window.lo[0] = lo;
            r->window.hi[0] = hi;
        }
    }
    return status;
}

/* ---- colours ---- */

static uint8_t clamp_level(double level) {
    return (uint8_t)(level < 0 ? 0 : level > 255 ? 255 : level + 0.5);
}

/* ITU-R BT.601, full range, in place. */
static void ybr_to_rgb(stk_dicom_values *v) {
    size_t pixels = (size_t)v->width * (size_t)v->height;
    size_t next = v->planes ? pixels : 1;
    uint8_t *at = v->values;
    for (size_t i = 0; i < pixels; i++, at += v->planes ? 1 : 3) {
        double y = at[0];
        double blue = at[next] - 128.0;
        double red = at[2 * next] - 128.0;
        at[0] = clamp_level(y + 1.402 * red);
        at[next] = clamp_level(y - 0.344136 * blue - 0.714136 * red);
        at[2 * next] = clamp_level(y + 1.772 * blue);
    }
}

static uint8_t palette_level(const stk_dicom *d, const stk_dicom_palette *p, int64_t value) {
    int64_t last = (int64_t)p->count - 1;
    int64_t place = value - p->first;
    size_t at = (size_t)(place < 0 ? 0 : place > last ? last : place);
    if (p->entry_bits == 8 && p->bytes < 2 * (size_t)p->count) {
        return at < p->bytes ? p->values[at] : 0;
    }
    if (2 * at + 1 >= p->bytes) {
        return 0;
    }
    unsigned entry = d->big ? (unsigned)(p->values[2 * at] << 8 | p->values[2 * at + 1])
                            : (unsigned)(p->values[2 * at + 1] << 8 | p->values[2 * at]);
    return (uint8_t)(p->entry_bits == 8 ? entry : entry >> 8);
}

static stk_status apply_palette(dicom_reader *r) {
    const stk_dicom *d = &r->dicom;
    stk_samples *s = &r->samples;
    if (d->palette[0].values == NULL || d->palette[1].values == NULL ||
        d->palette[2].values == NULL) {
        return STK_FAIL(r->err, STK_ERR_DATA, "the DICOM has a palette without all its tables");
    }
    float *row = stk_mem_raw((size_t)s->width, sizeof *row);
    r->colours = stk_mem_raw((size_t)s->width * (size_t)s->height, 3);
    if (row == NULL || r->colours == NULL) {
        stk_mem_free(row);
        return STK_FAIL_MEMORY(r->err, "decoding a DICOM");
    }
    uint8_t *to = r->colours;
    for (int y = 0; y < s->height; y++) {
        stk_samples_read(s, 0, 0, y, s->width, row);
        for (int x = 0; x < s->width; x++, to += 3) {
            for (int c = 0; c < 3; c++) {
                to[c] = palette_level(d, &d->palette[c], (int64_t)row[x]);
            }
        }
    }
    stk_mem_free(row);
    s->bytes = r->colours;
    s->type = STK_SAMPLE_U8;
    s->channels = 3;
    s->channel_bytes = 1;
    s->column_bytes = 3;
    s->row_bytes = 3 * (size_t)s->width;
    return STK_OK;
}

/* ---- values ---- */

static stk_sample_type type_of(const stk_dicom *d, unsigned bits) {
    switch (bits) {
    case 8:
        return d->is_signed ? STK_SAMPLE_I8 : STK_SAMPLE_U8;
    case 16:
        return d->is_signed ? STK_SAMPLE_I16 : STK_SAMPLE_U16;
    default:
        return d->is_signed ? STK_SAMPLE_I32 : STK_SAMPLE_U32;
    }
}

/* Colours of 8 bits that came in wider values become bytes, in place. */
static void narrow(const stk_dicom *d, stk_dicom_values *v) {
    size_t count = (size_t)v->width * (size_t)v->height * (size_t)d->channels;
    uint8_t *to = v->values;
    if (v->bits == 8 || d->bits_allocated != 8) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        to[i] = (uint8_t)(v->bits == 16 ? ((uint16_t *)v->values)[i] : ((uint32_t *)v->values)[i]);
    }
    v->bits = 8;
}

static void place_values(dicom_reader *r) {
    const stk_dicom_values *v = &r->values;
    stk_samples *s = &r->samples;
    size_t value = v->bits / 8;
    size_t channels = (size_t)r->dicom.channels;
    s->bytes = v->values;
    s->type = type_of(&r->dicom, v->bits);
    s->width = v->width;
    s->height = v->height;
    s->column_bytes = v->planes ? value : value * channels;
    s->row_bytes = s->column_bytes * (size_t)v->width;
    s->channel_bytes = v->planes ? s->row_bytes * (size_t)v->height : value;
}

static stk_status read_values(dicom_reader *r) {
    const stk_dicom *d = &r->dicom;
    stk_dicom_values *v = &r->values;
    stk_status status = STK_OK;
    switch (d->coding) {
    case STK_DICOM_RLE:
        status = stk_dicom_read_rle(d, r->frame, r->frame_bytes, v, &r->watch, r->err);
        break;
    case STK_DICOM_JPEG_LOSSLESS:
        status = stk_jpeg_lossless_decode(d, r->frame, r->frame_bytes, v, &r->watch, r->err);
        break;
    case STK_DICOM_JPEG2000:
        status = stk_jpeg2000_decode(d, r->frame, r->frame_bytes, r->part.divisor, v, r->err);
        break;
    default:
        status = stk_dicom_read_raw(d, v, &r->watch, r->err);
        break;
    }
    if (status == STK_OK &&
        (d->coding == STK_DICOM_JPEG_LOSSLESS || d->coding == STK_DICOM_JPEG2000)) {
        stk_dicom_mask_values(d, v, d->bits_stored - 1);
        narrow(d, v);
    }
    if (status == STK_OK && v->bits == 8 && d->channels == 3 &&
        (d->colours == STK_DICOM_YBR || d->colours == STK_DICOM_YBR_422)) {
        ybr_to_rgb(v);
    }
    return status;
}

static stk_status give_values(dicom_reader *r) {
    const stk_dicom *d = &r->dicom;
    stk_samples *s = &r->samples;
    *s = (stk_samples){.format = "DICOM",
                       .width = d->width,
                       .height = d->height,
                       .channels = d->colours == STK_DICOM_PALETTE ? 3 : d->channels};
    size_t pixels = (size_t)d->width * (size_t)d->height * (size_t)s->channels;
    s->whole_bytes = pixels * (d->coding == STK_DICOM_JPEG2000 ? 8 : d->bits_allocated / 8);
    if (d->coding == STK_DICOM_JPEG2000) {
        s->divides = stk_jpeg2000_halvings(r->frame, r->frame_bytes) >= 3;
    }
    stk_status status = stk_samples_ask(s, r->receiver, &r->watch, &r->part, r->err);
    STK_THEN(status, read_values(r));
    if (status != STK_OK) {
        return status;
    }
    s->channels = d->channels;
    place_values(r);
    if (d->colours == STK_DICOM_PALETTE) {
        status = apply_palette(r);
    }
    STK_THEN(status, choose_window(r));
    STK_THEN(status, stk_samples_give_part(s, &r->part, r->receiver, &r->watch, r->err));
    return status;
}

/* ---- baseline JPEG ---- */

/* Receives the whole of a grey JPEG. */
static stk_status begin_whole(void *user, const stk_image_info *info, stk_image_part *part,
                              stk_error *err) {
    dicom_reader *r = user;
    const stk_dicom *d = &r->dicom;
    if (info->width != d->width || info->height != d->height) {
        return STK_FAIL(err, STK_ERR_DATA,
                        "the JPEG has another size than the DICOM around it tells");
    }
    *part = (stk_image_part){.divisor = 1, .width = d->width, .height = d->height};
    r->colours = stk_mem_raw((size_t)d->width, (size_t)d->height);
    return r->colours != NULL ? STK_OK : STK_FAIL_MEMORY(err, "decoding a DICOM");
}

static stk_status expect_whole_rows(void *user, int x, int width, stk_error *err) {
    const dicom_reader *r = user;
    return x == 0 && width == r->dicom.width
               ? STK_OK
               : STK_FAIL(err, STK_ERR_INTERNAL, "a decoder gave part of a row");
}

static uint8_t *room_in_whole(void *user, int count) {
    const dicom_reader *r = user;
    (void)count;
    return r->colours + (size_t)r->rows * (size_t)r->dicom.width;
}

static void take_whole(void *user, int count) {
    ((dicom_reader *)user)->rows += count;
}

/* A grey JPEG through the window. */
static stk_status give_windowed_jpeg(dicom_reader *r) {
    const stk_dicom *d = &r->dicom;
    stk_samples *s = &r->samples;
    stk_image_receiver whole = {.user = r,
                                .max_cpu_ns = r->receiver->max_cpu_ns,
                                .limit = r->receiver->limit,
                                .channels = 1,
                                .begin = begin_whole,
                                .rows = expect_whole_rows,
                                .room = room_in_whole,
                                .take = take_whole};
    *s = (stk_samples){.format = "DICOM",
                       .type = STK_SAMPLE_U8,
                       .width = d->width,
                       .height = d->height,
                       .channels = 1,
                       .channel_bytes = 1,
                       .column_bytes = 1,
                       .row_bytes = (size_t)d->width,
                       .whole_bytes = (uint64_t)d->width * (uint64_t)d->height};
    stk_status status = stk_samples_ask(s, r->receiver, &r->watch, &r->part, r->err);
    STK_THEN(status, stk_image_jpeg.decode(r->frame, r->frame_bytes, &whole, r->err));
    s->bytes = r->colours;
    STK_THEN(status, choose_window(r));
    STK_THEN(status, stk_samples_give_part(s, &r->part, r->receiver, &r->watch, r->err));
    return status;
}

/* Colours, and grey that stays as it is, go from the JPEG decoder to the receiver. */
static stk_status give_jpeg(dicom_reader *r) {
    const stk_dicom *d = &r->dicom;
    if (!stk_image_jpeg.recognises(r->frame, r->frame_bytes)) {
        return STK_FAIL(r->err, STK_ERR_DATA,
                        "the DICOM says that it holds a JPEG, and it does not");
    }
    if (d->bits_allocated != 8 || d->colours == STK_DICOM_PALETTE) {
        return STK_FAIL(
            r->err, STK_ERR_DATA,
            "the DICOM holds a JPEG of %u bits or with a palette, which Stoker does not "
            "read: convert it",
            d->bits_stored);
    }
    if (!keeps_bytes(d) || d->colours == STK_DICOM_WHITE_IS_LOW) {
        return give_windowed_jpeg(r);
    }
    if (r->receiver->channels > 1 && r->receiver->channels != 3) {
        return STK_FAIL(r->err, STK_ERR_DATA,
                        "the DICOM has %d channels, and pictures of %d are wanted", d->channels,
                        r->receiver->channels);
    }
    return stk_image_jpeg.decode(r->frame, r->frame_bytes, r->receiver, r->err);
}

static stk_status decode(const uint8_t *bytes, size_t size, const stk_image_receiver *receiver,
                         stk_error *err) {
    dicom_reader r = {.receiver = receiver, .watch = stk_image_watch_start(receiver), .err = err};
    stk_status status = stk_dicom_read_header(&r.dicom, bytes, size, &r.watch, err);
    if (status == STK_OK && receiver->meter != NULL) {
        return STK_ERR_STOPPED; /* its window is its own */
    }
    if (status == STK_OK && r.dicom.in_fragments) {
        status = stk_dicom_find_frame(&r.dicom, &r.frame, &r.frame_bytes, &r.joined, err);
    }
    if (status == STK_OK) {
        status = r.dicom.coding == STK_DICOM_JPEG ? give_jpeg(&r) : give_values(&r);
    }
    stk_mem_free(r.joined);
    stk_mem_free(r.values.values);
    stk_mem_free(r.colours);
    return status;
}

static bool recognises(const uint8_t *bytes, size_t size) {
    return (size >= PREAMBLE + 4 && memcmp(bytes + PREAMBLE, "DICM", 4) == 0) ||
           stk_dicom_begins_bare(bytes, size);
}

const stk_image_decoder stk_image_dicom = {
    .name = "DICOM",
    .extension = "dcm",
    .recognises = recognises,
    .any_channels = true,
    .decode = decode,
};
