/*
 * jpeg_lossless.c - JPEG without loss: process 14 of ISO 10918-1, which DICOM uses.
 *
 * Each value is the difference to a prediction from its neighbours to the left and above. Of a
 * difference, Huffman codes tell the number of bits; the bits follow. libjpeg-turbo reads such
 * files only since its version 3, so they are decoded here. A row's prediction needs the row above,
 * which lies in the output.
 */
#include "image/decode/dicom.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"

#define MOST_COMPONENTS 3
#define MOST_TABLES 4
#define LOOKUP_BITS 10 /* codes up to this length are found at once */
#define MOST_CODE 16   /* bits of a code */
#define INLINE static inline __attribute__((always_inline))

typedef struct huffman {
    uint16_t lookup[1 << LOOKUP_BITS]; /* length << 8 | category; 0: a longer code */
    int32_t end[MOST_CODE + 1];   /* one more than the last code of a length; -1: there is none */
    int32_t first[MOST_CODE + 1]; /* the first code of a length */
    uint8_t from[MOST_CODE + 1];  /* the place of its category */
    uint8_t categories[256];
    bool defined;
} huffman;

typedef struct lossless_reader {
    const uint8_t *at;
    const uint8_t *end;
    uint64_t held; /* bits, the next one highest */
    unsigned count;
    unsigned invented; /* bits that were held beyond the data's end */
    int width, height, components;
    unsigned precision;
    unsigned predictor;
    unsigned point;   /* bits that were dropped */
    unsigned restart; /* values of a component between restarts; 0: none */
    uint8_t ids[MOST_COMPONENTS];
    uint8_t tables[MOST_COMPONENTS]; /* of the components of the scan */
    huffman huffman[MOST_TABLES];
    uint16_t *values; /* (height, width, components) */
    stk_image_watch *watch;
    stk_error *err;
} lossless_reader;

static stk_status fail(const lossless_reader *r, const char *why) {
    return STK_FAIL(r->err, STK_ERR_DATA, "the lossless JPEG cannot be decoded: %s", why);
}

/* ---- codes ---- */

static bool define_table(huffman *h, const uint8_t *at, size_t bytes, size_t *used) {
    size_t total = 0;
    int32_t code = 0;
    memset(h, 0, sizeof *h);
    for (int length = 1; length <= MOST_CODE; length++) {
        total += at[length - 1];
    }
    if (total > 256 || bytes < MOST_CODE + total) {
        return false;
    }
    memcpy(h->categories, at + MOST_CODE, total);
    size_t place = 0;
    for (int length = 1; length <= MOST_CODE; length++) {
        unsigned count = at[length - 1];
        h->first[length] = code;
        h->from[length] = (uint8_t)place;
        for (unsigned i = 0; i < count && length <= LOOKUP_BITS; i++) {
            size_t shift = LOOKUP_BITS - (size_t)length;
            size_t from = (size_t)(code + (int32_t)i) << shift;
            for (size_t k = from; k < from + ((size_t)1 << shift) && k < 1 << LOOKUP_BITS; k++) {
                h->lookup[k] = (uint16_t)((unsigned)length << 8 | h->categories[place + i]);
            }
        }
        code += (int32_t)count;
        place += count;
        h->end[length] = count > 0 ? code : -1;
        if (code > 1 << length) {
            return false;
        }
        code <<= 1;
    }
    *used = MOST_CODE + total;
    h->defined = true;
    return true;
}

/* Fills up the held bits. At a marker or the end, zeros come instead, and are counted. */
INLINE void refill(lossless_reader *r) {
    while (r->count <= 56) {
        uint64_t byte = 0;
        if (r->at < r->end && (*r->at != 0xFF || (r->end - r->at > 1 && r->at[1] == 0))) {
            byte = *r->at;
            r->at += byte == 0xFF ? 2 : 1;
        } else {
            r->invented += 8;
        }
        r->held |= byte << (56 - r->count);
        r->count += 8;
    }
}

INLINE unsigned take_bits(lossless_reader *r, unsigned bits) {
    unsigned value = (unsigned)(r->held >> (64 - bits));
    r->held <<= bits;
    r->count -= bits;
    return value;
}

/* A category above LOOKUP_BITS; 17: no code looks like this. */
static unsigned find_long_code(lossless_reader *r, const huffman *h) {
    for (unsigned length = LOOKUP_BITS + 1; length <= MOST_CODE; length++) {
        int32_t code = (int32_t)(r->held >> (64 - length));
        if (code < h->end[length] && code >= h->first[length]) {
            (void)take_bits(r, length);
            return h->categories[(h->from[length] + (size_t)(code - h->first[length])) % 256];
        }
    }
    return 17;
}

/* The next difference; *bad is set when it makes no sense. */
INLINE int32_t next_difference(lossless_reader *r, const huffman *h, bool *bad) {
    refill(r);
    unsigned entry = h->lookup[r->held >> (64 - LOOKUP_BITS)];
    unsigned category = entry & 255;
    if (entry != 0) {
        (void)take_bits(r, entry >> 8);
    } else {
        category = find_long_code(r, h);
    }
    if (category == 0) {
        return 0;
    }
    if (category >= 16) {
        *bad = *bad || category > 16;
        return 32768;
    }
    int32_t value = (int32_t)take_bits(r, category);
    return value < 1 << (category - 1) ? value - (1 << category) + 1 : value;
}

/* ---- rows ---- */

INLINE int32_t predict(unsigned predictor, int32_t left, int32_t above, int32_t corner) {
    switch (predictor) {
    case 1:
        return left;
    case 2:
        return above;
    case 3:
        return corner;
    case 4:
        return left + above - corner;
    case 5:
        return left + ((above - corner) >> 1);
    case 6:
        return above + ((left - corner) >> 1);
    default:
        return (left + above) >> 1;
    }
}

/* Row of `count` components that stand `step` values apart; the first value of each is predicted
 * already. */
INLINE void read_row(lossless_reader *r, uint16_t *row, const uint16_t *above, unsigned predictor,
                     int from, int count, size_t step, bool *bad) {
    size_t values = (size_t)r->width * step;
    for (size_t x = step; x < values; x += step) {
        for (int c = from; c < from + count; c++) {
            size_t at = x + (size_t)c;
            int32_t over = predictor > 1 ? above[at] : 0;
            int32_t corner = predictor > 2 ? above[at - step] : 0;
            int32_t expected = predict(predictor, row[at - step], over, corner);
            row[at] = (uint16_t)(expected + next_difference(r, &r->huffman[r->tables[c]], bad));
        }
    }
}

static void read_any_row(lossless_reader *r, uint16_t *row, const uint16_t *above,
                         unsigned predictor, int from, int count, bool *bad) {
    size_t step = (size_t)r->components;
    if (predictor == 1 && step == 1) {
        read_row(r, row, above, 1, 0, 1, 1, bad);
    } else if (predictor == 7 && step == 1) {
        read_row(r, row, above, 7, 0, 1, 1, bad);
    } else {
        read_row(r, row, above, predictor, from, count, step, bad);
    }
}

/* Goes to the bits behind a restart marker. */
static bool pass_restart(lossless_reader *r) {
    r->held = 0;
    r->count = 0;
    r->invented = 0;
    while (r->end - r->at >= 2 && r->at[0] == 0xFF && r->at[1] == 0xFF) {
        r->at++;
    }
    if (r->end - r->at < 2 || r->at[0] != 0xFF || r->at[1] < 0xD0 || r->at[1] > 0xD7) {
        return false;
    }
    r->at += 2;
    return true;
}

/* The components from `from` on, `count` of them. */
static stk_status read_scan(lossless_reader *r, int from, int count) {
    size_t step = (size_t)r->components;
    int restart_rows = r->restart > 0 ? (int)(r->restart / (unsigned)r->width) : r->height + 1;
    bool bad = r->restart % (unsigned)r->width != 0;
    r->held = 0;
    r->count = 0;
    r->invented = 0;
    for (int y = 0; y < r->height && !bad; y++) {
        uint16_t *row = r->values + (size_t)y * (size_t)r->width * step;
        const uint16_t *above = row - (y > 0 ? (size_t)r->width * step : 0);
        bool first = y % restart_rows == 0;
        if (stk_image_halted(r->watch)) {
            return stk_image_refuse_halted(r->watch, "DICOM", r->err);
        }
        if (first && y > 0 && !pass_restart(r)) {
            return fail(r, "a restart marker is missing");
        }
        for (int c = from; c < from + count; c++) {
            int32_t expected = first ? 1 << (r->precision - r->point - 1) : above[c];
            row[c] = (uint16_t)(expected + next_difference(r, &r->huffman[r->tables[c]], &bad));
        }
        read_any_row(r, row, above, first ? 1 : r->predictor, from, count, &bad);
        if (r->invented > r->count) {
            return fail(r, "the file is cut off");
        }
    }
    return bad ? fail(r, "its data is damaged") : STK_OK;
}

/* ---- markers ---- */

static bool take_tables(lossless_reader *r, const uint8_t *at, size_t bytes) {
    while (bytes > 17) {
        unsigned place = at[0];
        size_t used = 0;
        if (place >= MOST_TABLES || !define_table(&r->huffman[place], at + 1, bytes - 1, &used)) {
            return false;
        }
        at += 1 + used;
        bytes -= 1 + used;
    }
    return bytes == 0;
}

static stk_status take_frame(lossless_reader *r, const stk_dicom *d, const uint8_t *at,
                             size_t bytes) {
    if (bytes < 6 || r->components > 0) {
        return fail(r, "its head is damaged");
    }
    r->precision = at[0];
    r->height = at[1] << 8 | at[2];
    r->width = at[3] << 8 | at[4];
    r->components = at[5];
    if (r->precision < 2 || r->precision > 16 || r->width != d->width || r->height != d->height ||
        r->components != d->channels || bytes < 6 + 3 * (size_t)r->components) {
        return fail(r, "its size is not the one that the DICOM tells");
    }
    for (int c = 0; c < r->components; c++) {
        r->ids[c] = at[6 + 3 * c];
        if (at[7 + 3 * c] != 0x11) {
            return fail(r, "its colours are subsampled");
        }
    }
    r->values = stk_mem_new((size_t)r->width * (size_t)r->height,
                            (size_t)r->components * sizeof *r->values);
    return r->values != NULL ? STK_OK : STK_FAIL_MEMORY(r->err, "decoding a DICOM");
}

/* A scan has all components, or one of them. *seen gets their number. */
static stk_status take_scan(lossless_reader *r, const uint8_t *at, size_t bytes, int *seen) {
    int count = bytes > 0 ? at[0] : 0;
    if (r->components < 1 || (count != 1 && count != r->components) ||
        bytes != 4 + 2 * (size_t)count) {
        return fail(r, "a scan is damaged");
    }
    int from = 0;
    while (from < r->components && r->ids[from] != at[1]) {
        from++;
    }
    if (from + count > r->components) {
        return fail(r, "a scan is of unknown colours");
    }
    for (int c = 0; c < count; c++) {
        unsigned table = at[2 + 2 * c] >> 4;
        if (table >= MOST_TABLES || !r->huffman[table].defined) {
            return fail(r, "a table is missing");
        }
        r->tables[from + c] = (uint8_t)table;
    }
    r->predictor = at[1 + 2 * count];
    r->point = at[3 + 2 * count] & 15;
    if (r->predictor < 1 || r->predictor > 7 || r->point >= r->precision) {
        return fail(r, "its way of predicting is not known");
    }
    *seen += count;
    return read_scan(r, from, count);
}

/* Moves to the next marker and its segment; false: there is none. */
static bool next_segment(lossless_reader *r, unsigned *marker, const uint8_t **segment,
                         size_t *bytes) {
    while (r->end - r->at >= 2 && (r->at[0] != 0xFF || r->at[1] == 0 || r->at[1] == 0xFF ||
                                   r->at[1] == 0xD8 || (r->at[1] >= 0xD0 && r->at[1] <= 0xD7))) {
        r->at += r->at[0] == 0xFF && r->at[1] == 0xD8 ? 2 : 1;
    }
    if (r->end - r->at < 4 || r->at[1] == 0xD9) {
        return false;
    }
    size_t length = (size_t)r->at[2] << 8 | r->at[3];
    if (length < 2 || (size_t)(r->end - r->at) < 2 + length) {
        return false;
    }
    *marker = r->at[1];
    *segment = r->at + 4;
    *bytes = length - 2;
    r->at += 2 + length;
    return true;
}

static stk_status read_segments(lossless_reader *r, const stk_dicom *d) {
    stk_status status = STK_OK;
    unsigned marker;
    const uint8_t *segment;
    size_t bytes;
    int seen = 0;
    while (status == STK_OK && (seen == 0 || seen < r->components) &&
           next_segment(r, &marker, &segment, &bytes)) {
        if (stk_image_halted(r->watch)) {
            return stk_image_refuse_halted(r->watch, "DICOM", r->err);
        }
        if (marker == 0xC4 && !take_tables(r, segment, bytes)) {
            return fail(r, "a table is damaged");
        }
        if (marker == 0xC3) {
            status = take_frame(r, d, segment, bytes);
        } else if (marker == 0xDD && bytes == 2) {
            r->restart = (unsigned)(segment[0] << 8 | segment[1]);
        } else if (marker == 0xDA) {
            status = take_scan(r, segment, bytes, &seen);
        } else if (marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8 &&
                   marker != 0xCC) {
            return fail(r, "it is JPEG of another kind");
        }
    }
    return status == STK_OK && (seen == 0 || seen < r->components) ? fail(r, "the file is cut off")
                                                                   : status;
}

stk_status stk_jpeg_lossless_decode(const stk_dicom *d, const uint8_t *frame, size_t bytes,
                                    stk_dicom_values *values, stk_image_watch *watch,
                                    stk_error *err) {
    lossless_reader *r = stk_mem_new(1, sizeof *r);
    if (r == NULL) {
        return STK_FAIL_MEMORY(err, "decoding a DICOM");
    }
    r->at = frame;
    r->end = frame + bytes;
    r->watch = watch;
    r->err = err;
    stk_status status = read_segments(r, d);
    size_t count = (size_t)r->width * (size_t)r->height * (size_t)r->components;
    for (size_t i = 0; status == STK_OK && r->point > 0 && i < count; i++) {
        r->values[i] = (uint16_t)(r->values[i] << r->point);
    }
    *values =
        (stk_dicom_values){.values = r->values, .bits = 16, .width = r->width, .height = r->height};
    stk_mem_free(r);
    return status;
}
