/*
 * gif.c - the first frame of a GIF.
 *
 * The frame is decoded whole, to numbers of its palette, because interlaced rows come in another
 * order. It lies somewhere on the file's screen; what it does not cover, and what is transparent,
 * is white.
 */
#include "image/decode/decoders.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"

#define HEAD 13
#define MOST_CODES 4096
#define NO_CODE MOST_CODES

typedef struct gif_reader {
    const uint8_t *bytes; /* borrowed */
    size_t size;
    size_t at; /* the next byte to read */
    int width, height;
    int left, top, frame_width, frame_height;
    bool interlaced;
    int transparent;         /* number in the palette; -1: none */
    uint8_t palette[256][3]; /* black beyond the file's */
    uint8_t *indices;        /* owned: (frame_height, frame_width), in the order of the file */
    stk_image_watch watch;
} gif_reader;

/* The codes of LZW: a string is that of another code and one index more. */
typedef struct gif_codes {
    uint16_t before[MOST_CODES];
    uint8_t last[MOST_CODES];
    uint8_t first[MOST_CODES];
    uint16_t length[MOST_CODES];
} gif_codes;

/* Bits of the sub-blocks, which each begin with their length. */
typedef struct gif_bits {
    uint32_t held;
    unsigned count;
    size_t block; /* bytes left of the sub-block */
} gif_bits;

static stk_status fail_cut(stk_error *err) {
    return STK_FAIL(err, STK_ERR_DATA, "the GIF ends early: the file is cut off or damaged");
}

static unsigned get16(const uint8_t *at) {
    return (unsigned)at[0] | (unsigned)at[1] << 8;
}

/* Whether so many bytes are left; *at is where they are. */
static bool take(gif_reader *r, size_t count, const uint8_t **at) {
    if (r->size - r->at < count) {
        return false;
    }
    *at = r->bytes + r->at;
    r->at += count;
    return true;
}

static bool take_palette(gif_reader *r, unsigned flags) {
    const uint8_t *colours;
    size_t count = (size_t)2 << (flags & 7);
    if ((flags & 0x80) == 0) {
        return true;
    }
    if (!take(r, 3 * count, &colours)) {
        return false;
    }
    memset(r->palette, 0, sizeof r->palette);
    memcpy(r->palette, colours, 3 * count);
    return true;
}

/* An extension; that of graphics tells which colour is transparent. */
static bool pass_extension(gif_reader *r) {
    const uint8_t *kind;
    const uint8_t *block;
    if (!take(r, 1, &kind)) {
        return false;
    }
    for (bool is_first = true;; is_first = false) {
        const uint8_t *length;
        if (stk_image_halted(&r->watch) || !take(r, 1, &length) || !take(r, *length, &block)) {
            return false;
        }
        if (*length == 0) {
            return true;
        }
        if (is_first && *kind == 0xF9 && *length >= 4) {
            r->transparent = (block[0] & 1) != 0 ? block[3] : -1;
        }
    }
}

/* Reads up to the first frame's pixels. */
static bool find_frame(gif_reader *r) {
    const uint8_t *at;
    r->transparent = -1;
    if (!take(r, HEAD, &at)) {
        return false;
    }
    r->width = (int)get16(at + 6);
    r->height = (int)get16(at + 8);
    if (!take_palette(r, at[10])) {
        return false;
    }
    while (take(r, 1, &at)) {
        if (*at == '!' && pass_extension(r)) {
            continue;
        }
        if (*at != ',' || !take(r, 9, &at)) {
            return false;
        }
        r->left = (int)get16(at);
        r->top = (int)get16(at + 2);
        r->frame_width = (int)get16(at + 4);
        r->frame_height = (int)get16(at + 6);
        r->interlaced = (at[8] & 0x40) != 0;
        r->width = r->width > 0 ? r->width : r->frame_width;
        r->height = r->height > 0 ? r->height : r->frame_height;
        return take_palette(r, at[8]);
    }
    return false;
}

/* The next code of so many bits; NO_CODE: there are none. */
static unsigned next_code(gif_reader *r, gif_bits *bits, unsigned width) {
    while (bits->count < width) {
        const uint8_t *byte;
        if (bits->block == 0) {
            if (stk_image_halted(&r->watch) || !take(r, 1, &byte) || *byte == 0) {
                return NO_CODE;
            }
            bits->block = *byte;
        }
        if (!take(r, 1, &byte)) {
            return NO_CODE;
        }
        bits->block--;
        bits->held |= (uint32_t)*byte << bits->count;
        bits->count += 8;
    }
    unsigned code = bits->held & ((1u << width) - 1);
    bits->held >>= width;
    bits->count -= width;
    return code;
}

/* Writes the string of a code that ends before `room` bytes are full; the rest of it is lost. */
static size_t put_string(const gif_codes *codes, unsigned code, uint8_t *to, size_t room) {
    size_t length = codes->length[code];
    for (size_t i = length; i > 0; i--) {
        if (i <= room) {
            to[i - 1] = codes->last[code];
        }
        code = codes->before[code];
    }
    return length < room ? length : room;
}

static void add_code(gif_codes *codes, unsigned code, unsigned before, uint8_t last) {
    codes->before[code] = (uint16_t)before;
    codes->last[code] = last;
    codes->first[code] = codes->first[before];
    codes->length[code] = (uint16_t)(codes->length[before] + 1);
}

/* Decodes the frame's pixels; false: they end early or are damaged. */
static bool decode_frame(gif_reader *r, gif_codes *codes) {
    const uint8_t *least;
    gif_bits bits = {0};
    size_t room = (size_t)r->frame_width * (size_t)r->frame_height;
    size_t done = 0;
    if (!take(r, 1, &least) || *least < 1 || *least > 11) {
        return false;
    }
    const unsigned clear = 1u << *least;
    unsigned width = *least + 1u;
    unsigned next = clear + 2;
    unsigned before = NO_CODE;
    for (unsigned i = 0; i < clear; i++) {
        codes->last[i] = codes->first[i] = (uint8_t)i;
        codes->length[i] = 1;
    }
    while (done < room) {
        unsigned code = next_code(r, &bits, width);
        if (code == clear) {
            width = *least + 1u;
            next = clear + 2;
            before = NO_CODE;
            continue;
        }
        if (code == NO_CODE || code == clear + 1 || code > next ||
            (code == next && before == NO_CODE) || (before == NO_CODE && code > clear)) {
            return false;
        }
        if (before != NO_CODE && next < MOST_CODES) {
            add_code(codes, next, before, codes->first[code == next ? before : code]);
            next++;
        } else if (code >= next) {
            return false;
        }
        done += put_string(codes, code, r->indices + done, room - done);
        width += next == 1u << width && width < 12;
        before = code;
    }
    return true;
}

static stk_status read_frame(gif_reader *r, stk_error *err) {
    gif_codes *codes = stk_mem_new(1, sizeof *codes);
    r->indices = stk_mem_raw((size_t)r->frame_width, (size_t)r->frame_height);
    stk_status status =
        codes != NULL && r->indices != NULL ? STK_OK : STK_FAIL_MEMORY(err, "decoding a GIF");
    if (status == STK_OK && !decode_frame(r, codes)) {
        status = r->watch.halt != STK_IMAGE_GOES_ON ? stk_image_refuse_halted(&r->watch, "GIF", err)
                                                    : fail_cut(err);
    }
    stk_mem_free(codes);
    return status;
}

/* Where row y of an interlaced frame stands in the file: every 8th row, the 4th between them, ...
 */
static int stored_row(const gif_reader *r, int y) {
    static const int first[4] = {0, 4, 2, 1};
    static const int step[4] = {8, 8, 4, 2};
    int before = 0;
    for (int pass = 0; r->interlaced && pass < 4; pass++) {
        if (y % step[pass] == first[pass]) {
            return before + y / step[pass];
        }
        before += (r->frame_height - first[pass] + step[pass] - 1) / step[pass];
    }
    return y;
}

static void give_row(const gif_reader *r, int y, int x, int width, uint8_t *out) {
    memset(out, 255, 3 * (size_t)width);
    if (y < r->top || y >= r->top + r->frame_height) {
        return;
    }
    const uint8_t *row = r->indices + (size_t)stored_row(r, y - r->top) * (size_t)r->frame_width;
    for (int i = 0; i < width; i++) {
        int column = x + i - r->left;
        if (column >= 0 && column < r->frame_width && row[column] != r->transparent) {
            memcpy(out + 3 * (size_t)i, r->palette[row[column]], 3);
        }
    }
}

static stk_status give_part(gif_reader *r, const stk_image_receiver *to, stk_error *err) {
    stk_image_part part;
    stk_image_info info = {.width = r->width,
                           .height = r->height,
                           .orientation = 1,
                           .whole_bytes = (uint64_t)r->frame_width * (uint64_t)r->frame_height};
    stk_status status = to->begin(to->user, &info, &part, err);
    STK_THEN(status, to->rows(to->user, part.x, part.width, err));
    STK_THEN(status, read_frame(r, err));
    for (int y = part.y; status == STK_OK && y < part.y + part.height; y++) {
        if (stk_image_halted(&r->watch)) {
            return stk_image_refuse_halted(&r->watch, "GIF", err);
        }
        give_row(r, y, part.x, part.width, to->room(to->user, 1));
        to->take(to->user, 1);
    }
    return status;
}

static stk_status decode(const uint8_t *bytes, size_t size, const stk_image_receiver *receiver,
                         stk_error *err) {
    gif_reader reader = {.bytes = bytes, .size = size};
    reader.watch = stk_image_watch_start(receiver);
    stk_status status = STK_OK;
    bool found = !stk_image_halted(&reader.watch) && find_frame(&reader);
    if (reader.watch.halt != STK_IMAGE_GOES_ON) {
        status = stk_image_refuse_halted(&reader.watch, "GIF", err);
    } else if (!found) {
        status = fail_cut(err);
    }
    STK_THEN(status, stk_image_check_size(reader.width, reader.height, err));
    STK_THEN(status, stk_image_check_size(reader.frame_width, reader.frame_height, err));
    STK_THEN(status, give_part(&reader, receiver, err));
    stk_mem_free(reader.indices);
    return status;
}

static bool recognises(const uint8_t *bytes, size_t size) {
    return size >= 6 && (memcmp(bytes, "GIF87a", 6) == 0 || memcmp(bytes, "GIF89a", 6) == 0);
}

const stk_image_decoder stk_image_gif = {
    .name = "GIF",
    .extension = "gif",
    .recognises = recognises,
    .decode = decode,
};
