/*
 * dicom_header.c - the elements of a DICOM file that describe its pixels.
 *
 * A file is a list of elements: a tag of two numbers, often two letters for the type, a length, a
 * value. The list ends for us at the pixels. Sequences are passed over: those with a length at
 * once, others element by element, which counts how deep they nest instead of calling itself.
 */
#include "image/decode/dicom.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"

#define PREAMBLE 128
#define UNKNOWN_LENGTH 0xFFFFFFFFu

#define TAG(group, element) ((uint32_t)(group) << 16 | (element))
#define TAG_ITEM TAG(0xFFFE, 0xE000)
#define TAG_ITEM_END TAG(0xFFFE, 0xE00D)
#define TAG_SEQUENCE_END TAG(0xFFFE, 0xE0DD)
#define TAG_PIXELS TAG(0x7FE0, 0x0010)

typedef struct element {
    uint32_t tag;
    uint32_t length; /* UNKNOWN_LENGTH: a sequence or fragments */
    const uint8_t *value;
    bool unknown_type; /* what is inside has no types, whatever the file has */
} element;

typedef struct header_reader {
    stk_dicom *dicom;
    size_t at;
    bool big;            /* of the elements */
    bool explicit;       /* elements have types */
    unsigned depth;      /* of the sequences of unknown length that are open */
    unsigned bare_depth; /* from this depth on elements have no types; 0: never */
    char syntax[65];
    char colours[17];
    bool found; /* the pixels */
} header_reader;

static uint32_t number_at(const uint8_t *at, size_t bytes, bool big) {
    uint32_t value = 0;
    for (size_t i = 0; i < bytes; i++) {
        value |= (uint32_t)at[i] << (8 * (big ? bytes - 1 - i : i));
    }
    return value;
}

static bool is_type(const uint8_t *at) {
    return at[0] >= 'A' && at[0] <= 'Z' && at[1] >= 'A' && at[1] <= 'Z';
}

/* Types whose length has four bytes. */
static bool is_long_type(const uint8_t *type) {
    static const char types[] = "OBOWOFODOLOVSQUCURUTUNSVUV";
    for (size_t i = 0; i + 1 < sizeof types; i += 2) {
        if (memcmp(types + i, type, 2) == 0) {
            return true;
        }
    }
    return false;
}

/* The next element's head; false: the file ends. */
static bool take_head(header_reader *r, element *e) {
    const uint8_t *at = r->dicom->bytes + r->at;
    size_t left = r->dicom->size - r->at;
    if (left < 8) {
        return false;
    }
    bool typed = r->explicit && (r->bare_depth == 0 || r->depth < r->bare_depth);
    e->tag = TAG(number_at(at, 2, r->big), number_at(at + 2, 2, r->big));
    e->unknown_type = false;
    bool is_mark = e->tag >> 16 == 0xFFFE;
    size_t head = 8;
    if (!typed || is_mark || !is_type(at + 4)) {
        e->length = number_at(at + 4, 4, r->big);
    } else if (is_long_type(at + 4)) {
        if (left < 12) {
            return false;
        }
        e->unknown_type = memcmp(at + 4, "UN", 2) == 0;
        e->length = number_at(at + 8, 4, r->big);
        head = 12;
    } else {
        e->length = number_at(at + 6, 2, r->big);
    }
    e->value = at + head;
    r->at += head;
    return true;
}

/* The text without what fills it up; of several, which backslashes separate, the first. */
static void copy_text(const element *e, char *text, size_t room) {
    size_t length = 0;
    size_t from = 0;
    while (from < e->length && e->value[from] == ' ') {
        from++;
    }
    for (; from < e->length && e->value[from] != '\\' && length < room - 1; from++) {
        text[length++] = (char)e->value[from];
    }
    while (length > 0 && (text[length - 1] == ' ' || text[length - 1] == '\0')) {
        length--;
    }
    text[length] = '\0';
}

/* The first number of a text of decimal numbers; NaN: there is none. */
static double first_decimal(const element *e) {
    char text[33];
    double value;
    copy_text(e, text, sizeof text);
    return stk_parse_double(text, &value) ? value : (double)NAN;
}

static void take_palette(header_reader *r, const element *e, stk_dicom_palette *palette) {
    if (e->length < 6) {
        return;
    }
    unsigned count = number_at(e->value, 2, r->big);
    unsigned first = number_at(e->value + 2, 2, r->big);
    palette->count = count > 0 ? count : 65536;
    palette->first = r->dicom->is_signed ? (int16_t)first : (int)first;
    palette->entry_bits = number_at(e->value + 4, 2, r->big);
}

/* Elements of group 0028 that are one whole number of two bytes. */
static void take_short(header_reader *r, const element *e) {
    stk_dicom *d = r->dicom;
    if (e->length < 2) {
        return;
    }
    unsigned value = number_at(e->value, 2, r->big);
    switch (e->tag & 0xFFFF) {
    case 0x0002:
        d->channels = (int)value;
        break;
    case 0x0006:
        d->planes = value == 1;
        break;
    case 0x0010:
        d->height = (int)value;
        break;
    case 0x0011:
        d->width = (int)value;
        break;
    case 0x0100:
        d->bits_allocated = value;
        break;
    case 0x0101:
        d->bits_stored = value;
        break;
    case 0x0102:
        d->high_bit = value;
        break;
    case 0x0103:
        d->is_signed = value == 1;
        break;
    case 0x0120:
        d->padded = true;
        d->padding = (int)value;
        break;
    default:
        break;
    }
}

/* Elements of group 0028 that are text or tables. */
static void take_other(header_reader *r, const element *e) {
    stk_dicom *d = r->dicom;
    unsigned number = e->tag & 0xFFFF;
    double value = number < 0x1100 ? first_decimal(e) : 0;
    switch (number) {
    case 0x0004:
        copy_text(e, r->colours, sizeof r->colours);
        break;
    case 0x0008:
        d->frames = value >= 1 && value < 1e9 ? (unsigned)value : 1;
        break;
    case 0x1050:
        d->centre = value;
        break;
    case 0x1051:
        d->width_of_window = value;
        break;
    case 0x1052:
        d->intercept = isfinite(value) ? value : 0;
        break;
    case 0x1053:
        d->slope = isfinite(value) && value != 0 ? value : 1;
        break;
    case 0x1101:
    case 0x1102:
    case 0x1103:
        take_palette(r, e, &d->palette[number - 0x1101]);
        break;
    case 0x1201:
    case 0x1202:
    case 0x1203:
        d->palette[number - 0x1201].values = e->value;
        d->palette[number - 0x1201].bytes = e->length;
        break;
    default:
        break;
    }
}

static void take_element(header_reader *r, const element *e) {
    if (e->tag == TAG(0x0002, 0x0010)) {
        copy_text(e, r->syntax, sizeof r->syntax);
    } else if (e->tag >> 16 == 0x0028) {
        take_short(r, e);
        take_other(r, e);
    } else if (e->tag == TAG_PIXELS) {
        r->dicom->pixels = e->value;
        r->dicom->pixel_bytes = e->length;
        r->found = true;
    }
}

/* Goes into or out of what has no length of its own. */
static void nest(header_reader *r, const element *e) {
    if (e->tag == TAG_ITEM_END || e->tag == TAG_SEQUENCE_END) {
        r->depth -= r->depth > 0 ? 1 : 0;
        r->bare_depth = r->depth < r->bare_depth ? 0 : r->bare_depth;
    } else if (e->tag == TAG_PIXELS && r->depth == 0) {
        r->dicom->pixels = e->value;
        r->dicom->pixel_bytes = r->dicom->size - r->at;
        r->dicom->in_fragments = true;
        r->found = true;
    } else {
        r->depth++;
        r->bare_depth = e->unknown_type && r->bare_depth == 0 ? r->depth : r->bare_depth;
    }
}

/*
 * The transfer syntax, which says how all elements behind group 0002 are stored. Names beyond those
 * are refused later, when it is known whether there are pixels at all.
 */
static void follow_syntax(header_reader *r) {
    static const char prefix[] = "1.2.840.10008.1.2";
    if (r->syntax[0] != '\0') {
        r->explicit = strcmp(r->syntax, prefix) != 0;
        r->big = strcmp(r->syntax, "1.2.840.10008.1.2.2") == 0;
    }
    r->dicom->big = r->big;
}

static stk_status walk(header_reader *r, stk_image_watch *watch, stk_error *err) {
    bool in_meta = r->dicom->size > r->at + 1 && r->dicom->bytes[r->at] == 2;
    element e;
    while (!r->found) {
        size_t from = r->at;
        if (stk_image_halted(watch)) {
            return stk_image_refuse_halted(watch, "DICOM", err);
        }
        if (!take_head(r, &e)) {
            break;
        }
        if (in_meta && e.tag >> 16 != 0x0002) {
            in_meta = false;
            follow_syntax(r);
            r->at = from;
            continue;
        }
        bool is_end = e.tag == TAG_ITEM_END || e.tag == TAG_SEQUENCE_END;
        if (is_end || e.length == UNKNOWN_LENGTH) {
            nest(r, &e);
            continue;
        }
        if (e.length > r->dicom->size - r->at) {
            return STK_FAIL(err, STK_ERR_DATA,
                            "the DICOM ends early: its element (%04x,%04x) has %u bytes and %zu "
                            "are there",
                            (unsigned)(e.tag >> 16), (unsigned)(e.tag & 0xFFFF), (unsigned)e.length,
                            r->dicom->size - r->at);
        }
        if (r->depth == 0) {
            take_element(r, &e);
        }
        r->at += e.length;
    }
    return r->found ? STK_OK
                    : STK_FAIL(err, STK_ERR_DATA,
                               "the DICOM has no pixels: the file is cut off or no picture");
}

static stk_status choose_coding(header_reader *r, stk_error *err) {
    static const struct {
        const char *ending; /* behind 1.2.840.10008.1.2 */
        stk_dicom_coding coding;
    } codings[] = {{"", STK_DICOM_RAW},
                   {".1", STK_DICOM_RAW},
                   {".2", STK_DICOM_RAW},
                   {".5", STK_DICOM_RLE},
                   {".4.50", STK_DICOM_JPEG},
                   {".4.51", STK_DICOM_JPEG},
                   {".4.57", STK_DICOM_JPEG_LOSSLESS},
                   {".4.70", STK_DICOM_JPEG_LOSSLESS},
                   {".4.90", STK_DICOM_JPEG2000},
                   {".4.91", STK_DICOM_JPEG2000}};
    static const char prefix[] = "1.2.840.10008.1.2";
    const char *ending = "";
    if (r->syntax[0] != '\0') {
        ending = strncmp(r->syntax, prefix, sizeof prefix - 1) == 0 ? r->syntax + sizeof prefix - 1
                                                                    : "?";
    }
    for (size_t i = 0; i < STK_COUNT(codings); i++) {
        if (strcmp(ending, codings[i].ending) == 0) {
            r->dicom->coding = codings[i].coding;
            return STK_OK;
        }
    }
    bool is_ls = strcmp(ending, ".4.80") == 0 || strcmp(ending, ".4.81") == 0;
    return STK_FAIL(err, STK_ERR_DATA,
                    "the DICOM's pixels are stored as %s (%s), which Stoker does not read: convert "
                    "it to JPEG 2000 or to explicit little endian",
                    is_ls ? "JPEG-LS" : "something else", r->syntax);
}

static stk_status choose_colours(header_reader *r, stk_error *err) {
    static const struct {
        const char *name;
        stk_dicom_colours colours;
        int channels;
    } known[] = {{"MONOCHROME2", STK_DICOM_BLACK_IS_LOW, 1},
                 {"MONOCHROME1", STK_DICOM_WHITE_IS_LOW, 1},
                 {"PALETTE COLOR", STK_DICOM_PALETTE, 1},
                 {"RGB", STK_DICOM_RGB, 3},
                 {"YBR_FULL", STK_DICOM_YBR, 3},
                 {"YBR_FULL_422", STK_DICOM_YBR_422, 3},
                 {"YBR_ICT", STK_DICOM_RGB, 3}, /* JPEG 2000's decoder makes RGB of these two */
                 {"YBR_RCT", STK_DICOM_RGB, 3}};
    stk_dicom *d = r->dicom;
    d->channels = d->channels > 0 ? d->channels : 1;
    if (r->colours[0] == '\0') {
        d->colours = d->channels == 3 ? STK_DICOM_RGB : STK_DICOM_BLACK_IS_LOW;
    }
    bool good = r->colours[0] == '\0' && (d->channels == 1 || d->channels == 3);
    for (size_t i = 0; i < STK_COUNT(known); i++) {
        if (strcmp(r->colours, known[i].name) == 0) {
            d->colours = known[i].colours;
            good = d->channels == known[i].channels;
        }
    }
    return good ? STK_OK
                : STK_FAIL(err, STK_ERR_DATA,
                           "the DICOM's pixels are %s of %d channels, which Stoker does not read",
                           r->colours[0] != '\0' ? r->colours : "colours", d->channels);
}

static stk_status check_bits(stk_dicom *d, stk_error *err) {
    d->bits_stored = d->bits_stored > 0 ? d->bits_stored : d->bits_allocated;
    d->high_bit = d->high_bit > 0 ? d->high_bit : d->bits_stored - 1;
    bool known = d->bits_allocated == 8 || d->bits_allocated == 16 || d->bits_allocated == 32;
    if (!known || d->bits_stored > d->bits_allocated || d->high_bit >= d->bits_allocated ||
        d->high_bit + 1 < d->bits_stored || (d->channels == 3 && d->bits_allocated == 32)) {
        return STK_FAIL(err, STK_ERR_DATA,
                        "the DICOM's values have %u of %u bits up to bit %u, which Stoker does not "
                        "read",
                        d->bits_stored, d->bits_allocated, d->high_bit);
    }
    if (d->is_signed) {
        d->padding = (int16_t)d->padding;
    }
    d->windowed = isfinite(d->centre) && isfinite(d->width_of_window) && d->width_of_window >= 1;
    return STK_OK;
}

stk_status stk_dicom_read_header(stk_dicom *dicom, const uint8_t *bytes, size_t size,
                                 stk_image_watch *watch, stk_error *err) {
    bool bare = stk_dicom_begins_bare(bytes, size);
    header_reader r = {.dicom = dicom, .at = bare ? 0 : PREAMBLE + 4, .explicit = true};
    *dicom = (stk_dicom){.bytes = bytes,
                         .size = size,
                         .frames = 1,
                         .slope = 1,
                         .centre = (double)NAN,
                         .width_of_window = (double)NAN};
    if (bare && size >= 6) {
        r.explicit = is_type(bytes + 4);
    }
    stk_status status = walk(&r, watch, err);
    STK_THEN(status, choose_coding(&r, err));
    STK_THEN(status, choose_colours(&r, err));
    STK_THEN(status, stk_image_check_size(dicom->width, dicom->height, err));
    STK_THEN(status, check_bits(dicom, err));
    if (status == STK_OK && dicom->in_fragments == (dicom->coding == STK_DICOM_RAW)) {
        status =
            STK_FAIL(err, STK_ERR_DATA, "the DICOM says that its pixels are %s, and they are not",
                     dicom->in_fragments ? "plain" : "compressed");
    }
    return status;
}

/* The first element is of group 0002 or 0008, and has a type or a length that the file holds. */
bool stk_dicom_begins_bare(const uint8_t *bytes, size_t size) {
    if (size < 16 || (size >= PREAMBLE + 4 && memcmp(bytes + PREAMBLE, "DICM", 4) == 0) ||
        (bytes[0] != 2 && bytes[0] != 8) || bytes[1] != 0 || bytes[3] != 0) {
        return false;
    }
    uint32_t length = number_at(bytes + 4, 4, false);
    bool next = length <= 64 && length % 2 == 0 && 8 + length < size &&
                bytes[8 + length] == bytes[0]; /* the next element is of the same group */
    return is_type(bytes + 4) || next;
}
