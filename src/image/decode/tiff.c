/*
 * tiff.c - TIFF to pixels: plain files here, all others with libtiff.
 *
 * Plain are files of one page in strips without compression whose values are whole bytes. Their
 * values are used where they lie, if the strips follow one another, and are put together otherwise.
 */
#include "image/decode/tiff.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"

#define ENTRY_BYTES 12

typedef struct tiff_reader {
    const uint8_t *bytes; /* borrowed */
    size_t size;
    bool big;            /* the order of bytes */
    size_t entries;      /* where the page's entries begin */
    unsigned count;      /* number of entries */
    uint8_t *joined;     /* owned: the strips one after another; NULL: they lie so in the file */
    uint64_t strip_rows; /* rows of a strip */
} tiff_reader;

static uint32_t number_at(const tiff_reader *r, size_t at, unsigned bytes) {
    uint32_t value = 0;
    for (unsigned i = 0; i < bytes; i++) {
        value |= (uint32_t)r->bytes[at + i] << (8 * (r->big ? bytes - 1 - i : i));
    }
    return value;
}

/* Number `index` of a tag; `fallback` where the file does not have it. */
static uint32_t value_of(const tiff_reader *r, stk_tiff_tag tag, size_t index, uint32_t fallback) {
    for (unsigned i = 0; i < r->count; i++) {
        size_t entry = r->entries + i * ENTRY_BYTES;
        if (number_at(r, entry, 2) != (uint32_t)tag) {
            continue;
        }
        uint32_t type = number_at(r, entry + 2, 2);
        unsigned bytes = type == 3 ? 2 : 4;
        uint64_t count = number_at(r, entry + 4, 4);
        uint64_t at = count * bytes <= 4 ? entry + 8 : number_at(r, entry + 8, 4);
        at += index * bytes;
        bool good = (type == 3 || type == 4) && index < count && at + bytes <= r->size;
        return good ? number_at(r, (size_t)at, bytes) : fallback;
    }
    return fallback;
}

/* Finds the first page; false: what is there is damaged or of the 64-bit kind. */
static bool open_page(tiff_reader *r) {
    r->big = r->bytes[0] == 'M';
    uint64_t page = number_at(r, 4, 4);
    if (number_at(r, 2, 2) != 42 || page + 2 > r->size) {
        return false;
    }
    r->count = number_at(r, (size_t)page, 2);
    r->entries = (size_t)page + 2;
    return page + 2 + (uint64_t)r->count * ENTRY_BYTES <= r->size;
}

/* Whether the page is plain, and what its pixels are. */
static bool describe(tiff_reader *r, const stk_image_receiver *receiver, stk_samples *s) {
    stk_tiff_kind kind = {.photometric = value_of(r, STK_TIFF_PHOTOMETRIC, 0, 99),
                          .bits = value_of(r, STK_TIFF_BITS, 0, 1),
                          .format = value_of(r, STK_TIFF_FORMAT, 0, 1),
                          .channels = value_of(r, STK_TIFF_CHANNELS, 0, 1),
                          .orientation = value_of(r, STK_TIFF_ORIENTATION, 0, 1),
                          .extra = value_of(r, STK_TIFF_EXTRA, 0, 0)};
    kind.extras = value_of(r, STK_TIFF_EXTRA, 0, UINT32_MAX) != UINT32_MAX;
    kind.extras += value_of(r, STK_TIFF_EXTRA, 1, UINT32_MAX) != UINT32_MAX;
    uint32_t width = value_of(r, STK_TIFF_WIDTH, 0, 0);
    uint32_t height = value_of(r, STK_TIFF_HEIGHT, 0, 0);
    bool plain = value_of(r, STK_TIFF_COMPRESSION, 0, 1) == 1 &&
                 value_of(r, STK_TIFF_FILL_ORDER, 0, 1) == 1 &&
                 (value_of(r, STK_TIFF_PLANES, 0, 1) == 1 || kind.channels == 1) &&
                 value_of(r, STK_TIFF_OFFSETS, 0, 0) != 0 && width <= INT32_MAX &&
                 height <= INT32_MAX && stk_tiff_describe(&kind, receiver, s);
    for (unsigned c = 1; plain && c < kind.channels; c++) {
        plain = value_of(r, STK_TIFF_BITS, c, kind.bits) == kind.bits &&
                value_of(r, STK_TIFF_FORMAT, c, kind.format) == kind.format;
    }
    if (plain) {
        s->width = (int)width;
        s->height = (int)height;
        s->channel_bytes = stk_sample_bytes(s->type);
        s->column_bytes = s->channel_bytes * kind.channels;
        s->row_bytes = s->column_bytes * width;
        uint32_t rows = value_of(r, STK_TIFF_ROWS, 0, height);
        r->strip_rows = rows > 0 && rows < height ? rows : height;
    }
    return plain;
}

/* Finds the strips; *joint: each begins where the one before it ends. */
static stk_status check_strips(const tiff_reader *r, const stk_samples *s, bool *joint,
                               stk_error *err) {
    uint64_t next = value_of(r, STK_TIFF_OFFSETS, 0, 0);
    *joint = true;
    for (uint64_t row = 0; row < (uint64_t)s->height; row += r->strip_rows) {
        uint64_t left = (uint64_t)s->height - row;
        uint64_t bytes = (left < r->strip_rows ? left : r->strip_rows) * s->row_bytes;
        uint64_t at = value_of(r, STK_TIFF_OFFSETS, (size_t)(row / r->strip_rows), 0);
        if (at == 0 || at + bytes > r->size) {
            return STK_FAIL(err, STK_ERR_DATA,
                            "the TIFF ends before row %llu of %d: the file is cut off or damaged",
                            (unsigned long long)row, s->height);
        }
        *joint = *joint && at == next;
        next = at + bytes;
    }
    return STK_OK;
}

static stk_status join_strips(tiff_reader *r, stk_samples *s, stk_error *err) {
    r->joined = stk_mem_raw((size_t)s->height, s->row_bytes);
    if (r->joined == NULL) {
        return STK_FAIL_MEMORY(err, "decoding a TIFF");
    }
    for (uint64_t row = 0; row < (uint64_t)s->height; row += r->strip_rows) {
        uint64_t left = (uint64_t)s->height - row;
        uint64_t rows = left < r->strip_rows ? left : r->strip_rows;
        size_t at = value_of(r, STK_TIFF_OFFSETS, (size_t)(row / r->strip_rows), 0);
        memcpy(r->joined + row * s->row_bytes, r->bytes + at, (size_t)(rows * s->row_bytes));
    }
    s->bytes = r->joined;
    return STK_OK;
}

static stk_status give_plain(tiff_reader *r, stk_samples *s, const stk_image_receiver *receiver,
                             stk_image_watch *watch, stk_error *err) {
    bool joint = true;
    stk_image_part part;
    const uint16_t one = 1;
    s->swapped = r->big == (*(const uint8_t *)&one == 1);
    stk_status status = stk_image_check_size(s->width, s->height, err);
    STK_THEN(status, check_strips(r, s, &joint, err));
    s->whole_bytes = joint ? 0 : s->row_bytes * (uint64_t)s->height;
    STK_THEN(status, stk_samples_ask(s, receiver, watch, &part, err));
    if (status == STK_OK && joint) {
        s->bytes = r->bytes + value_of(r, STK_TIFF_OFFSETS, 0, 0);
    } else if (status == STK_OK) {
        status = join_strips(r, s, err);
    }
    STK_THEN(status, stk_samples_give_part(s, &part, receiver, watch, err));
    stk_mem_free(r->joined);
    return status;
}

static stk_status decode(const uint8_t *bytes, size_t size, const stk_image_receiver *receiver,
                         stk_error *err) {
    tiff_reader reader = {.bytes = bytes, .size = size};
    stk_samples samples = {.format = "TIFF"};
    stk_image_watch watch = stk_image_watch_start(receiver);
    if (stk_image_halted(&watch)) {
        return stk_image_refuse_halted(&watch, "TIFF", err);
    }
    if (open_page(&reader) && describe(&reader, receiver, &samples)) {
        return give_plain(&reader, &samples, receiver, &watch, err);
    }
    return stk_tiff_with_library(bytes, size, receiver, &watch, err);
}

static bool recognises(const uint8_t *bytes, size_t size) {
    return size >= 8 && (memcmp(bytes, "II*\0", 4) == 0 || memcmp(bytes, "MM\0*", 4) == 0 ||
                         memcmp(bytes, "II+\0", 4) == 0 || memcmp(bytes, "MM\0+", 4) == 0);
}

const stk_image_decoder stk_image_tiff = {
    .name = "TIFF",
    .extension = "tif",
    .recognises = recognises,
    .any_channels = true,
    .decode = decode,
};
