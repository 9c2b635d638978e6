/*
 * bmp.c - BMP to pixels.
 *
 * Rows have 1, 4 or 8 bits of a palette, or 16, 24 or 32 bits of colours that lie where masks say,
 * and go from the bottom up unless the height is negative. Only the rows of the wanted part are
 * looked at. Run-length coded pictures (RLE8, RLE4) are decoded whole, to numbers of the palette.
 */
#include "image/decode/decoders.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"

#define FILE_HEAD 14
#define CORE_HEAD 12  /* of OS/2 */
#define USUAL_HEAD 40 /* of Windows; longer ones begin like it */

enum { PLAIN, RLE8, RLE4, MASKS, MASKS_WITH_ALPHA = 6 };

/* One colour of a pixel of 16 or 32 bits. */
typedef struct bmp_mask {
    uint32_t bits;
    unsigned shift;
    uint32_t most; /* the largest value */
} bmp_mask;

typedef struct bmp_reader {
    const uint8_t *bytes; /* borrowed */
    size_t size;
    int width, height;
    bool top_down;
    unsigned bits; /* of a pixel */
    uint32_t compression;
    size_t data; /* where the pixels begin */
    size_t row_bytes;
    uint8_t palette[256][3]; /* RGB; black beyond the file's */
    bmp_mask masks[4];       /* red, green, blue, alpha; a mask without bits: none */
    uint8_t *indices;        /* owned: (height, width) numbers of the palette, bottom row first */
} bmp_reader;

static uint32_t get_number(const bmp_reader *r, size_t at, size_t bytes) {
    uint32_t value = 0;
    for (size_t i = 0; i < bytes && at + i < r->size; i++) {
        value |= (uint32_t)r->bytes[at + i] << (8 * i);
    }
    return value;
}

static void set_mask(bmp_mask *mask, uint32_t bits) {
    *mask = (bmp_mask){.bits = bits};
    if (bits != 0) {
        mask->shift = (unsigned)__builtin_ctz(bits);
        mask->most = bits >> mask->shift;
    }
}

static void read_masks(bmp_reader *r, uint32_t head) {
    static const uint32_t usual[2][3] = {{0x7c00, 0x03e0, 0x001f}, {0xff0000, 0x00ff00, 0x0000ff}};
    bool given = r->compression == MASKS || r->compression == MASKS_WITH_ALPHA;
    bool alpha = head >= 56 || r->compression == MASKS_WITH_ALPHA;
    for (size_t i = 0; i < 3; i++) {
        set_mask(&r->masks[i], given ? get_number(r, FILE_HEAD + USUAL_HEAD + 4 * i, 4)
                                     : usual[r->bits == 32][i]);
    }
    set_mask(&r->masks[3], given && alpha ? get_number(r, FILE_HEAD + USUAL_HEAD + 12, 4) : 0);
}

static void read_palette(bmp_reader *r, uint32_t head) {
    size_t entry = head == CORE_HEAD ? 3 : 4;
    uint32_t used = head == CORE_HEAD ? 0 : get_number(r, FILE_HEAD + 32, 4);
    uint32_t most = 1u << r->bits;
    uint32_t count = used > 0 && used < most ? used : most;
    for (size_t i = 0; i < count; i++) {
        size_t at = FILE_HEAD + (size_t)head + i * entry;
        for (size_t c = 0; c < 3; c++) {
            r->palette[i][c] = (uint8_t)get_number(r, at + 2 - c, 1);
        }
    }
}

static stk_status refuse_kind(const bmp_reader *r, stk_error *err) {
    return STK_FAIL(err, STK_ERR_DATA,
                    "the BMP has %u bits per pixel and compression %u, which Stoker does not read: "
                    "convert it",
                    r->bits, (unsigned)r->compression);
}

static bool is_known_kind(const bmp_reader *r) {
    switch (r->compression) {
    case PLAIN:
        return r->bits == 1 || r->bits == 4 || r->bits == 8 || r->bits == 16 || r->bits == 24 ||
               r->bits == 32;
    case RLE8:
        return r->bits == 8;
    case RLE4:
        return r->bits == 4;
    case MASKS:
    case MASKS_WITH_ALPHA:
        return r->bits == 16 || r->bits == 32;
    default:
        return false;
    }
}

static stk_status read_head(bmp_reader *r, stk_error *err) {
    uint32_t head = get_number(r, FILE_HEAD, 4);
    bool core = head == CORE_HEAD;
    if (r->size < FILE_HEAD + CORE_HEAD || (!core && (head < USUAL_HEAD || head > 1024)) ||
        r->size < FILE_HEAD + (size_t)head) {
        return STK_FAIL(err, STK_ERR_DATA, "the BMP's head is damaged or cut off");
    }
    int64_t width = core ? (int64_t)get_number(r, 18, 2) : (int32_t)get_number(r, 18, 4);
    int64_t height = core ? (int64_t)get_number(r, 20, 2) : (int32_t)get_number(r, 22, 4);
    r->bits = get_number(r, core ? 24 : 28, 2);
    r->compression = core ? PLAIN : get_number(r, 30, 4);
    r->data = get_number(r, 10, 4);
    r->top_down = height < 0;
    height = height < 0 ? -height : height;
    stk_status status = stk_image_check_size(width, height, err);
    if (status == STK_OK && !is_known_kind(r)) {
        status = refuse_kind(r, err);
    }
    if (status != STK_OK) {
        return status;
    }
    r->width = (int)width;
    r->height = (int)height;
    r->row_bytes = ((size_t)width * r->bits + 31) / 32 * 4;
    bool coded = r->compression == RLE8 || r->compression == RLE4;
    if (r->data > r->size || (!coded && r->row_bytes * (uint64_t)height > r->size - r->data)) {
        return STK_FAIL(err, STK_ERR_DATA,
                        "the BMP says that it has %d x %d pixels, which its %zu bytes cannot hold",
                        r->width, r->height, r->size);
    }
    if (r->bits <= 8) {
        read_palette(r, head);
    } else {
        read_masks(r, head);
    }
    return STK_OK;
}

/* ---- run lengths ---- */

/* The next pixel of a run; pixels beyond the edge are lost. */
static void put_index(bmp_reader *r, int64_t *x, int64_t y, unsigned index) {
    if (*x < r->width && y < r->height) {
        r->indices[y * r->width + *x] = (uint8_t)index;
    }
    ++*x;
}

/* Pixel i of some bytes: one of two in a byte, or a byte. */
static unsigned index_in(const bmp_reader *r, size_t at, unsigned i) {
    if (r->compression == RLE8) {
        return r->bytes[at + i];
    }
    return i % 2 == 0 ? r->bytes[at + i / 2] >> 4 : r->bytes[at + i / 2] & 15u;
}

/* Decodes up to the mark of the end; false: the data ends before it. */
static bool decode_runs(bmp_reader *r, stk_image_watch *watch) {
    int64_t x = 0;
    int64_t y = 0;
    size_t at = r->data;
    while (at + 2 <= r->size && y < r->height && !stk_image_halted(watch)) {
        unsigned count = r->bytes[at];
        unsigned code = r->bytes[at + 1];
        at += 2;
        if (count > 0) {
            for (unsigned i = 0; i < count; i++) {
                put_index(r, &x, y, index_in(r, at - 1, r->compression == RLE8 ? 0 : i % 2));
            }
        } else if (code == 0) {
            x = 0;
            y++;
        } else if (code == 1) {
            return true;
        } else if (code == 2 && at + 2 <= r->size) {
            x += r->bytes[at];
            y += r->bytes[at + 1];
            at += 2;
        } else {
            size_t bytes = r->compression == RLE8 ? code : (code + 1) / 2;
            if (code == 2 || r->size - at < bytes) {
                return false;
            }
            for (unsigned i = 0; i < code; i++) {
                put_index(r, &x, y, index_in(r, at, i));
            }
            at += bytes + bytes % 2;
        }
    }
    return y >= r->height;
}

static stk_status read_runs(bmp_reader *r, stk_image_watch *watch, stk_error *err) {
    r->indices = stk_mem_new((size_t)r->width, (size_t)r->height);
    if (r->indices == NULL) {
        return STK_FAIL_MEMORY(err, "decoding a BMP");
    }
    if (!decode_runs(r, watch)) {
        return watch->halt != STK_IMAGE_GOES_ON
                   ? stk_image_refuse_halted(watch, "BMP", err)
                   : STK_FAIL(err, STK_ERR_DATA, "the BMP ends early: the file was cut off");
    }
    return STK_OK;
}

/* ---- rows ---- */

static void give_palette_row(const bmp_reader *r, const uint8_t *row, int x, int width,
                             uint8_t *out) {
    unsigned bits = r->indices != NULL ? 8 : r->bits;
    for (int i = x; i < x + width; i++, out += 3) {
        unsigned place = (unsigned)i * bits % 8;
        unsigned index = row[(size_t)i * bits / 8] >> (8 - bits - place) & ((1u << bits) - 1);
        memcpy(out, r->palette[index], 3);
    }
}

static unsigned level_of(const bmp_mask *mask, uint32_t pixel) {
    uint64_t value = (pixel & mask->bits) >> mask->shift;
    return mask->most > 0 ? (unsigned)((value * 255 + mask->most / 2) / mask->most) : 0;
}

static void give_masked_row(const bmp_reader *r, const uint8_t *row, int x, int width,
                            uint8_t *out) {
    for (int i = x; i < x + width; i++, out += 3) {
        const uint8_t *at = row + (size_t)i * (r->bits / 8);
        uint32_t pixel = (uint32_t)at[0] | (uint32_t)at[1] << 8;
        if (r->bits == 32) {
            pixel |= (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
        }
        uint8_t rgba[4];
        for (int c = 0; c < 4; c++) {
            rgba[c] = (uint8_t)level_of(&r->masks[c], pixel);
        }
        if (r->masks[3].bits != 0) {
            stk_image_over_white(rgba, 1, out);
        } else {
            memcpy(out, rgba, 3);
        }
    }
}

static void give_row(const bmp_reader *r, int y, int x, int width, uint8_t *out) {
    size_t row = (size_t)(r->top_down ? y : r->height - 1 - y);
    const uint8_t *at = r->indices != NULL ? r->indices + row * (size_t)r->width
                                           : r->bytes + r->data + row * r->row_bytes;
    if (r->bits <= 8) {
        give_palette_row(r, at, x, width, out);
    } else if (r->bits != 24) {
        give_masked_row(r, at, x, width, out);
    } else {
        at += 3 * (size_t)x;
        for (int i = 0; i < width; i++, at += 3, out += 3) {
            out[0] = at[2];
            out[1] = at[1];
            out[2] = at[0];
        }
    }
}

static stk_status give_part(bmp_reader *r, const stk_image_receiver *to, stk_image_watch *watch,
                            stk_error *err) {
    stk_image_part part;
    bool coded = r->compression == RLE8 || r->compression == RLE4;
    stk_image_info info = {.width = r->width, .height = r->height, .orientation = 1};
    info.whole_bytes = coded ? (uint64_t)r->width * (uint64_t)r->height : 0;
    stk_status status = to->begin(to->user, &info, &part, err);
    STK_THEN(status, to->rows(to->user, part.x, part.width, err));
    if (status == STK_OK && coded) {
        status = read_runs(r, watch, err);
    }
    for (int y = part.y; status == STK_OK && y < part.y + part.height; y++) {
        if (stk_image_halted(watch)) {
            return stk_image_refuse_halted(watch, "BMP", err);
        }
        give_row(r, y, part.x, part.width, to->room(to->user, 1));
        to->take(to->user, 1);
    }
    return status;
}

static stk_status decode(const uint8_t *bytes, size_t size, const stk_image_receiver *receiver,
                         stk_error *err) {
    bmp_reader reader = {.bytes = bytes, .size = size};
    stk_image_watch watch = stk_image_watch_start(receiver);
    stk_status status = read_head(&reader, err);
    if (status == STK_OK && stk_image_halted(&watch)) {
        status = stk_image_refuse_halted(&watch, "BMP", err);
    }
    STK_THEN(status, give_part(&reader, receiver, &watch, err));
    stk_mem_free(reader.indices);
    return status;
}

/* A head of a known length, because two letters are soon the beginning of something else. */
static bool recognises(const uint8_t *bytes, size_t size) {
    return size >= FILE_HEAD + 4 && memcmp(bytes, "BM", 2) == 0 && bytes[15] < 4 &&
           bytes[16] == 0 && bytes[17] == 0;
}

const stk_image_decoder stk_image_bmp = {
    .name = "BMP",
    .extension = "bmp",
    .recognises = recognises,
    .decode = decode,
};
