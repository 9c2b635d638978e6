/*
 * dicom.h - only for this room: what the files that read DICOM share.
 *
 * dicom_header.c finds the elements that describe the pixels, dicom_frame.c brings the first
 * frame's values into memory, jpeg_lossless.c and jpeg2000.c decode two of the formats inside,
 * dicom.c puts them together and chooses the window.
 */
#ifndef STK_IMAGE_DECODE_DICOM_H
#define STK_IMAGE_DECODE_DICOM_H

#include "image/decode/samples.h"

/* How the pixels are stored. */
typedef enum stk_dicom_coding {
    STK_DICOM_RAW,
    STK_DICOM_RLE,
    STK_DICOM_JPEG,          /* baseline, or extended with 8 bits */
    STK_DICOM_JPEG_LOSSLESS, /* process 14 */
    STK_DICOM_JPEG2000
} stk_dicom_coding;

typedef enum stk_dicom_colours {
    STK_DICOM_BLACK_IS_LOW, /* MONOCHROME2 */
    STK_DICOM_WHITE_IS_LOW, /* MONOCHROME1 */
    STK_DICOM_RGB,
    STK_DICOM_YBR,     /* full range, as in JPEG */
    STK_DICOM_YBR_422, /* the same with half of the colours */
    STK_DICOM_PALETTE
} stk_dicom_colours;

/* One of the three tables of a palette. */
typedef struct stk_dicom_palette {
    const uint8_t *values; /* borrowed from the file; NULL: there is none */
    size_t bytes;
    unsigned count;      /* entries */
    int first;           /* the value that the first entry stands for */
    unsigned entry_bits; /* 8 or 16 */
} stk_dicom_palette;

typedef struct stk_dicom {
    const uint8_t *bytes; /* borrowed: the file */
    size_t size;
    bool big; /* values have their higher byte first */
    stk_dicom_coding coding;
    stk_dicom_colours colours;
    int width, height;
    int channels;
    bool planes;             /* channels lie one behind the other */
    unsigned bits_allocated; /* 8, 16 or 32 */
    unsigned bits_stored;
    unsigned high_bit;
    bool is_signed;
    unsigned frames;
    double slope, intercept; /* a value of the window is slope * stored + intercept */
    bool windowed;
    double centre, width_of_window;
    bool padded;
    int padding; /* stored value that is no pixel */
    stk_dicom_palette palette[3];
    const uint8_t *pixels; /* borrowed: the values, or the fragments of a coded picture */
    size_t pixel_bytes;
    bool in_fragments;
} stk_dicom;

/* Reads the header; checks that it makes sense and that the size is allowed. */
STK_CHECKED stk_status stk_dicom_read_header(stk_dicom *dicom, const uint8_t *bytes, size_t size,
                                             stk_image_watch *watch, stk_error *err);

/* Whether bytes without the 128 of a preamble look like the elements of DICOM. */
bool stk_dicom_begins_bare(const uint8_t *bytes, size_t size);

/*
 * The coded first frame: *frame is borrowed from the file, or from *joined where it was put
 * together; the caller frees *joined.
 */
STK_CHECKED stk_status stk_dicom_find_frame(const stk_dicom *dicom, const uint8_t **frame,
                                            size_t *bytes, uint8_t **joined, stk_error *err);

/*
 * Values of a frame: (height, width, channels), or (channels, height, width) if `planes`; 8, 16 or
 * 32 bits each in this machine's order, the stored bits and, if the file is signed, their sign.
 */
typedef struct stk_dicom_values {
    void *values; /* owned, freed with stk_mem_free() */
    unsigned bits;
    int width, height; /* the file's, or a fraction of them */
    bool planes;
} stk_dicom_values;

/* Values that are stored as they are, or run-length coded. */
STK_CHECKED stk_status stk_dicom_read_raw(const stk_dicom *dicom, stk_dicom_values *values,
                                          stk_image_watch *watch, stk_error *err);
STK_CHECKED stk_status stk_dicom_read_rle(const stk_dicom *dicom, const uint8_t *frame,
                                          size_t bytes, stk_dicom_values *values,
                                          stk_image_watch *watch, stk_error *err);

/* JPEG of process 14, any predictor, 2 to 16 bits. Values are 16 bits wide, without sign. */
STK_CHECKED stk_status stk_jpeg_lossless_decode(const stk_dicom *dicom, const uint8_t *frame,
                                                size_t bytes, stk_dicom_values *values,
                                                stk_image_watch *watch, stk_error *err);

/* How often the sides of a JPEG 2000 picture can be halved while decoding: 0 to 3. */
int stk_jpeg2000_halvings(const uint8_t *frame, size_t bytes);

/* Decodes it at 1 / divisor of its size. Values are 32 bits wide and signed. */
STK_CHECKED stk_status stk_jpeg2000_decode(const stk_dicom *dicom, const uint8_t *frame,
                                           size_t bytes, int divisor, stk_dicom_values *values,
                                           stk_error *err);

/* Leaves the stored bits of each value, with its sign if the file is signed. */
void stk_dicom_mask_values(const stk_dicom *dicom, stk_dicom_values *values, unsigned high_bit);

#endif
