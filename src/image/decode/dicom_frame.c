/*
 * dicom_frame.c - the first frame of a DICOM file: fragments, plain values and run lengths.
 *
 * Values come as this machine stores them, without bits that belong to something else, so that all
 * codings look alike behind this file.
 */
#include "image/decode/dicom.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"

#define ITEM_HEAD 8
#define RLE_HEAD 64
#define RLE_MOST 15 /* segments */

static uint32_t little32(const uint8_t *at) {
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static stk_status fail_cut(stk_error *err) {
    return STK_FAIL(err, STK_ERR_DATA, "the DICOM's pixels end early: the file is cut off");
}

static size_t frame_values(const stk_dicom *d) {
    return (size_t)d->width * (size_t)d->height * (size_t)d->channels;
}

/* ---- fragments ---- */

/* The fragment at *at, which moves behind it; false: there is none. */
static bool next_fragment(const stk_dicom *d, size_t *at, const uint8_t **fragment, size_t *bytes) {
    if (d->pixel_bytes - *at < ITEM_HEAD || memcmp(d->pixels + *at, "\xFE\xFF\x00\xE0", 4) != 0) {
        return false;
    }
    size_t length = little32(d->pixels + *at + 4);
    if (d->pixel_bytes - *at - ITEM_HEAD < length) {
        return false;
    }
    *fragment = d->pixels + *at + ITEM_HEAD;
    *bytes = length;
    *at += ITEM_HEAD + length;
    return true;
}

/*
 * Of several frames the table of offsets says where the second begins; without a table each frame
 * is one fragment.
 */
stk_status stk_dicom_find_frame(const stk_dicom *d, const uint8_t **frame, size_t *bytes,
                                uint8_t **joined, stk_error *err) {
    const uint8_t *table;
    const uint8_t *fragment;
    size_t table_bytes;
    size_t length;
    size_t at = 0;
    *bytes = 0;
    if (!next_fragment(d, &at, &table, &table_bytes)) {
        return fail_cut(err);
    }
    size_t first = at;
    size_t end = d->pixel_bytes;
    if (d->frames > 1 && table_bytes >= 8) {
        size_t second = little32(table + 4);
        end = second < d->pixel_bytes - first ? first + second : d->pixel_bytes;
    }
    size_t count = 0;
    for (; at < end && next_fragment(d, &at, &fragment, &length); count++) {
        *frame = count == 0 ? fragment : *frame;
        *bytes += length;
        if (d->frames > 1 && table_bytes < 8) {
            return STK_OK;
        }
    }
    if (count == 0) {
        return fail_cut(err);
    }
    if (count == 1) {
        return STK_OK;
    }
    *joined = stk_mem_raw(*bytes, 1);
    if (*joined == NULL) {
        return STK_FAIL_MEMORY(err, "decoding a DICOM");
    }
    *bytes = 0;
    for (at = first; count > 0 && next_fragment(d, &at, &fragment, &length); count--) {
        memcpy(*joined + *bytes, fragment, length);
        *bytes += length;
    }
    *frame = *joined;
    return STK_OK;
}

/* ---- values ---- */

static stk_status new_values(const stk_dicom *d, unsigned bits, bool planes,
                             stk_dicom_values *values, stk_error *err) {
    *values =
        (stk_dicom_values){.bits = bits, .width = d->width, .height = d->height, .planes = planes};
    values->values = stk_mem_raw(frame_values(d), bits / 8);
    return values->values != NULL ? STK_OK : STK_FAIL_MEMORY(err, "decoding a DICOM");
}

void stk_dicom_mask_values(const stk_dicom *d, stk_dicom_values *v, unsigned high_bit) {
    size_t count = (size_t)v->width * (size_t)v->height * (size_t)d->channels;
    unsigned up = v->bits - 1 - high_bit;
    unsigned down = v->bits - d->bits_stored;
    if (up == 0 && down == 0) {
        return;
    }
#define EACH(type)                                                                               \
    for (size_t i = 0; i < count; i++) {                                                         \
        ((type *)v->values)[i] = (type)((type)((uint32_t)((type *)v->values)[i] << up) >> down); \
    }
    if (v->bits == 8 && d->is_signed) {
        EACH(int8_t)
    } else if (v->bits == 8) {
        EACH(uint8_t)
    } else if (v->bits == 16 && d->is_signed) {
        EACH(int16_t)
    } else if (v->bits == 16) {
        EACH(uint16_t)
    } else if (d->is_signed) {
        EACH(int32_t)
    } else {
        EACH(uint32_t)
    }
#undef EACH
}

static void copy_swapped(const stk_dicom *d, stk_dicom_values *v) {
    size_t count = frame_values(d);
    if (v->bits == 16) {
        uint16_t *to = v->values;
        for (size_t i = 0; i < count; i++) {
            const uint8_t *at = d->pixels + 2 * i;
            to[i] = (uint16_t)(d->big ? at[0] << 8 | at[1] : at[1] << 8 | at[0]);
        }
    } else {
        uint32_t *to = v->values;
        for (size_t i = 0; i < count; i++) {
            uint32_t value = little32(d->pixels + 4 * i);
            to[i] = d->big ? __builtin_bswap32(value) : value;
        }
    }
}

/* Two pixels are four bytes: two of brightness, then the colours of both. */
static stk_status spread_colours(const stk_dicom *d, stk_dicom_values *v, stk_error *err) {
    size_t pairs = (size_t)d->width * (size_t)d->height / 2;
    uint8_t *to = v->values;
    if (d->width % 2 != 0 || d->bits_allocated != 8 || d->pixel_bytes < 4 * pairs) {
        return fail_cut(err);
    }
    for (size_t i = 0; i < pairs; i++, to += 6) {
        const uint8_t *at = d->pixels + 4 * i;
        const uint8_t both[6] = {at[0], at[2], at[3], at[1], at[2], at[3]};
        memcpy(to, both, sizeof both);
    }
    return STK_OK;
}

stk_status stk_dicom_read_raw(const stk_dicom *d, stk_dicom_values *values, stk_image_watch *watch,
                              stk_error *err) {
    bool halved = d->colours == STK_DICOM_YBR_422;
    size_t bytes = frame_values(d) * (d->bits_allocated / 8);
    if (stk_image_halted(watch)) {
        return stk_image_refuse_halted(watch, "DICOM", err);
    }
    if (!halved && d->pixel_bytes < bytes) {
        return STK_FAIL(err, STK_ERR_DATA,
                        "the DICOM's pixels need %zu bytes and %zu are there: the file is cut off",
                        bytes, d->pixel_bytes);
    }
    stk_status status = new_values(d, d->bits_allocated, d->planes, values, err);
    if (status == STK_OK && halved) {
        values->planes = false;
        status = spread_colours(d, values, err);
    } else if (status == STK_OK && d->bits_allocated == 8) {
        memcpy(values->values, d->pixels, bytes);
    } else if (status == STK_OK) {
        copy_swapped(d, values);
    }
    if (status == STK_OK) {
        stk_dicom_mask_values(d, values, d->high_bit);
    }
    return status;
}

/* ---- run lengths ---- */

/* Decodes one segment, which is one byte of each value, to every `step`th byte; false: it is cut
 * off. */
static bool decode_segment(const uint8_t *at, const uint8_t *end, uint8_t *to, size_t count,
                           size_t step) {
    size_t done = 0;
    while (done < count && at < end) {
        unsigned code = *at++;
        size_t run = code < 128 ? code + 1u : 257 - code;
        bool repeats = code > 128;
        if (code == 128) {
            continue;
        }
        if ((size_t)(end - at) < (repeats ? 1 : run)) {
            return false;
        }
        size_t used = run < count - done ? run : count - done;
        for (size_t i = 0; i < used; i++) {
            to[(done + i) * step] = at[repeats ? 0 : i];
        }
        at += repeats ? 1 : run;
        done += used;
    }
    return done == count;
}

/* The segments are the bytes of the values, the highest one first, channel by channel. */
stk_status stk_dicom_read_rle(const stk_dicom *d, const uint8_t *frame, size_t bytes,
                              stk_dicom_values *values, stk_image_watch *watch, stk_error *err) {
    size_t step = d->bits_allocated / 8;
    size_t pixels = (size_t)d->width * (size_t)d->height;
    size_t segments = step * (size_t)d->channels;
    const uint16_t one = 1;
    bool little = *(const uint8_t *)&one == 1;
    if (bytes < RLE_HEAD || little32(frame) != segments || segments > RLE_MOST ||
        pixels / 128 > bytes) {
        return STK_FAIL(err, STK_ERR_DATA,
                        "the DICOM's run lengths are damaged: %zu segments are needed", segments);
    }
    stk_status status = new_values(d, d->bits_allocated, true, values, err);
    for (size_t s = 0; status == STK_OK && s < segments; s++) {
        size_t from = little32(frame + 4 + 4 * s);
        size_t place = little ? step - 1 - s % step : s % step;
        uint8_t *to = (uint8_t *)values->values + s / step * pixels * step + place;
        if (stk_image_halted(watch)) {
            status = stk_image_refuse_halted(watch, "DICOM", err);
        } else if (from >= bytes ||
                   !decode_segment(frame + from, frame + bytes, to, pixels, step)) {
            status = fail_cut(err);
        }
    }
    if (status == STK_OK) {
        stk_dicom_mask_values(d, values, d->high_bit);
    }
    return status;
}
