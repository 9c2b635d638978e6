/*
 * exif.c - the orientation of a picture, and turning it upright.
 *
 * EXIF is a TIFF file without pixels; the orientation is entry 0x0112 of its first directory. XMP
 * is XML, in which one value is searched, without parsing. Damaged metadata counts as missing,
 * since the picture itself may be fine.
 */
#include "image/decode/decoders.h"

#include <string.h>

#define TAG_ORIENTATION 0x0112
#define TYPE_SHORT 3
#define TYPE_LONG 4
#define ENTRY_BYTES 12
#define EXIF_PREFIX 6 /* "Exif" and two NULs before the TIFF header */

static uint32_t read_number(const uint8_t *bytes, size_t length, bool little) {
    uint32_t value = 0;
    for (size_t i = 0; i < length; i++) {
        value = value << 8 | bytes[little ? length - 1 - i : i];
    }
    return value;
}

/* The orientation, 1 to 8; 0: not found. */
static int read_exif(const uint8_t *tiff, size_t size) {
    if (size > EXIF_PREFIX && memcmp(tiff, "Exif\0\0", EXIF_PREFIX) == 0) {
        tiff += EXIF_PREFIX;
        size -= EXIF_PREFIX;
    }
    if (size < 8 || (memcmp(tiff, "II*\0", 4) != 0 && memcmp(tiff, "MM\0*", 4) != 0)) {
        return 0;
    }
    bool little = tiff[0] == 'I';
    size_t directory = read_number(tiff + 4, 4, little);
    if (directory > size - 2) {
        return 0;
    }
    size_t count = read_number(tiff + directory, 2, little);
    for (size_t i = 0; i < count; i++) {
        size_t entry_at = directory + 2 + i * ENTRY_BYTES;
        if (entry_at + ENTRY_BYTES > size) {
            break;
        }
        const uint8_t *entry = tiff + entry_at;
        if (read_number(entry, 2, little) == TAG_ORIENTATION) {
            uint32_t type = read_number(entry + 2, 2, little);
            uint32_t value = type == TYPE_SHORT  ? read_number(entry + 8, 2, little)
                             : type == TYPE_LONG ? read_number(entry + 8, 4, little)
                                                 : 1;
            return value >= 1 && value <= 8 ? (int)value : 1;
        }
    }
    return 0;
}

/* The orientation in XMP, an attribute or an element: 1 to 8; 0: not found. */
static int read_xmp(const uint8_t *xmp, size_t size) {
    static const char name[] = "tiff:Orientation";
    const uint8_t *end = xmp + size;
    const uint8_t *at = xmp;
    while ((at = memmem(at, (size_t)(end - at), name, sizeof name - 1)) != NULL) {
        at += sizeof name - 1;
        size_t sign = end - at > 2 && memcmp(at, "=\"", 2) == 0 ? 2 : end - at > 1 && *at == '>';
        if (sign > 0 && at[sign] >= '0' && at[sign] <= '9') {
            return at[sign] >= '1' && at[sign] <= '8' ? at[sign] - '0' : 1;
        }
    }
    return 0;
}

/* As in Pillow, XMP counts only if EXIF has no orientation. */
int stk_image_orientation(const stk_image_tags *tags) {
    int told = tags->exif != NULL ? read_exif(tags->exif, tags->exif_size) : 0;
    if (told == 0 && tags->xmp != NULL) {
        told = read_xmp(tags->xmp, tags->xmp_size);
    }
    return told > 0 ? told : 1;
}

/* Signs as in the table of the EXIF standard (CIPA DC-008, 4.6.4). */
stk_turn stk_image_turn(int orientation) {
    static const stk_turn turns[9] = {
        [2] = {.mirror_x = true},
        [3] = {.mirror_x = true, .mirror_y = true},
        [4] = {.mirror_y = true},
        [5] = {.swapped = true},
        [6] = {.mirror_y = true, .swapped = true},
        [7] = {.mirror_x = true, .mirror_y = true, .swapped = true},
        [8] = {.mirror_x = true, .swapped = true},
    };
    return turns[orientation >= 1 && orientation <= 8 ? orientation : 1];
}

/* Upright pixel (x, y) is stored pixel start + x * step_x + y * step_y. */
stk_status stk_image_orient(stk_image *image, int orientation, const stk_image_receiver *receiver,
                            stk_error *err) {
    if (orientation <= 1 || orientation > 8) {
        return STK_OK;
    }
    stk_turn turn = stk_image_turn(orientation);
    ptrdiff_t across = turn.mirror_x ? -3 : 3;
    ptrdiff_t down = (ptrdiff_t)3 * image->width * (turn.mirror_y ? -1 : 1);
    const uint8_t *start = image->pixels;
    start += turn.mirror_x ? (ptrdiff_t)3 * (image->width - 1) : 0;
    start += turn.mirror_y ? (ptrdiff_t)3 * image->width * (image->height - 1) : 0;

    stk_image upright;
    stk_status status = stk_image_new(&upright, turn.swapped ? image->height : image->width,
                                      turn.swapped ? image->width : image->height, err);
    if (status != STK_OK) {
        return status;
    }
    ptrdiff_t step_x = turn.swapped ? down : across;
    ptrdiff_t step_y = turn.swapped ? across : down;
    uint8_t *to = upright.pixels;
    stk_image_watch watch = stk_image_watch_start(receiver);
    for (ptrdiff_t y = 0; y < upright.height; y++) {
        if (stk_image_halted(&watch)) {
            stk_image_free(&upright);
            return stk_image_refuse_halted(&watch, "picture", err);
        }
        for (ptrdiff_t x = 0; x < upright.width; x++, to += 3) {
            memcpy(to, start + y * step_y + x * step_x, 3);
        }
    }
    stk_image_free(image);
    *image = upright;
    return STK_OK;
}
