/*
 * decoders.h - only for this room: the interface of decoders, and the steps that several of them
 * share (sizes, orientation, alpha, limits).
 *
 * A decoder reads the header, asks its receiver which part of the picture is wanted, and writes the
 * rows of that part from top to bottom into the receiver's memory. It decodes nothing that it can
 * leave out.
 */
#ifndef STK_IMAGE_DECODE_DECODERS_H
#define STK_IMAGE_DECODE_DECODERS_H

#include "image/device_decoder.h"
#include "image/image.h"
#include "image/resample/resample.h"

/* From the header. */
typedef struct stk_image_info {
    int width, height;      /* px, as stored */
    int channels;           /* that the picture has; 0: 3, or grey that counts as RGB */
    int orientation;        /* EXIF's, 1 to 8 */
    bool divides;           /* can be decoded at 1/2, 1/4 and 1/8 of its size */
    uint64_t whole_bytes;   /* bytes, if the format can only decode whole pictures; 0: it decodes by
                               rows */
    stk_jpeg_planes planes; /* what a device finds; set only if the receiver asks for planes */
} stk_image_info;

/* The wanted part, in pixels of the stored picture after division. */
typedef struct stk_image_part {
    int divisor; /* 1, 2, 4 or 8; sizes are rounded up */
    int x, y;
    int width, height;
} stk_image_part;

/*
 * Where a decoder's rows go. There are four receivers: begin_part() and its neighbours in
 * transform.c (a crop becomes a square), begin_shrinking() in shrink.c (a smaller picture),
 * begin_whole() in decode.c (the whole picture), note_info() in decode.c (the header alone).
 */
typedef struct stk_image_receiver {
    void *user;
    int64_t max_cpu_ns;       /* a picture that takes longer is refused; 0: no limit */
    stk_image_limit limit;    /* decoding beyond it ends with STK_ERR_STOPPED */
    int channels;             /* of the rows; 0: 3 */
    const stk_window *window; /* for values of more than 8 bits; NULL or without channels: the
                                 picture's own */
    stk_window_meter *meter;  /* takes such values, and decoding ends; NULL: not wanted */
    bool asks_planes;         /* wants to know whether a device can decode the picture */
    /* Takes the header and says which part is wanted. */
    stk_status (*begin)(void *user, const stk_image_info *info, stk_image_part *part,
                        stk_error *err);
    /* Announces rows of `width` px from column x on: the wanted part or more. */
    stk_status (*rows)(void *user, int x, int width, stk_error *err);
    /* Memory for the next rows, contiguous; at most STK_RECEIVER_ROWS at a time. */
    uint8_t *(*room)(void *user, int count);
    void (*take)(void *user, int count); /* that many rows were written */
} stk_image_receiver;

#define STK_RECEIVER_ROWS STK_RESAMPLE_ROWS

typedef struct stk_image_decoder {
    const char *name;                                      /* "JPEG" */
    const char *extension;                                 /* "jpg" */
    bool (*recognises)(const uint8_t *bytes, size_t size); /* by the first bytes */
    bool grey;           /* it can give grey; otherwise grey is made of the RGB that it gives */
    bool any_channels;   /* it can give any number of channels that a picture has, and grey */
    const char *library; /* that is missing where `decode` is NULL: "libwebp (STK_WEBP)" */
    /* NULL: not built in. */
    stk_status (*decode)(const uint8_t *bytes, size_t size, const stk_image_receiver *receiver,
                         stk_error *err);
} stk_image_decoder;

extern const stk_image_decoder stk_image_jpeg;
extern const stk_image_decoder stk_image_png;
extern const stk_image_decoder stk_image_webp;
extern const stk_image_decoder stk_image_raw;
extern const stk_image_decoder stk_image_npy;
extern const stk_image_decoder stk_image_tiff;
extern const stk_image_decoder stk_image_bmp;
extern const stk_image_decoder stk_image_dicom;
extern const stk_image_decoder stk_image_gif;

/* Finds the decoder for the bytes and decodes into the receiver. */
STK_CHECKED stk_status stk_image_receive(const uint8_t *bytes, size_t size,
                                         const stk_image_receiver *receiver, stk_error *err);

/*
 * Fails with STK_ERR_DATA for a picture that is too large. Decoders call it before they or their
 * library allocate memory for the pixels.
 */
STK_CHECKED stk_status stk_image_check_size(int64_t width, int64_t height, stk_error *err);

/*
 * The metadata of a file that may hold its orientation: EXIF, with or without "Exif" and two NULs
 * before its TIFF header, and XMP. Both are borrowed from the file's bytes; NULL: the file has
 * none.
 */
typedef struct stk_image_tags {
    const uint8_t *exif;
    size_t exif_size;
    const uint8_t *xmp;
    size_t xmp_size;
} stk_image_tags;

/* The orientation, 1 to 8: from EXIF, otherwise from XMP; 1 if neither has one. */
int stk_image_orientation(const stk_image_tags *tags);

/* The same from the chunks of a PNG, where EXIF and XMP may also be text chunks. */
STK_CHECKED stk_status stk_image_png_orientation(const uint8_t *bytes, size_t size,
                                                 int *orientation, stk_error *err);

/*
 * How to make a picture upright: mirror the stored one, then exchange rows and columns if
 * `swapped`.
 */
typedef struct stk_turn {
    bool mirror_x; /* left and right of the stored picture are exchanged */
    bool mirror_y; /* top and bottom */
    bool swapped;
} stk_turn;

stk_turn stk_image_turn(int orientation);

/* Makes the picture upright; orientation 1 changes nothing. Uses the receiver's limits. */
STK_CHECKED stk_status stk_image_orient(stk_image *image, int orientation,
                                        const stk_image_receiver *receiver, stk_error *err);

/* Blends pixels with alpha, (count, 4), over white: (count, 3). */
void stk_image_over_white(const uint8_t *rgba, size_t count, uint8_t *rgb);

/* Pixels become grey with the weights of Rec. 601, as in Pillow; in place, if `grey` is `rgb`. */
void stk_image_to_grey(const uint8_t *rgb, size_t count, uint8_t *grey);

/*
 * Ends decoding that takes too long or that nobody waits for any more. Decoders check after each
 * row and each read. Most limits are in CPU time of the thread, so waiting does not count.
 */
typedef enum stk_image_halt {
    STK_IMAGE_GOES_ON,
    STK_IMAGE_CANCELLED,  /* limit.cancelled was set */
    STK_IMAGE_OVER_LIMIT, /* a limit of the caller was exceeded */
    STK_IMAGE_REFUSED     /* max_cpu_ns was exceeded: the picture counts as bad */
} stk_image_halt;

typedef struct stk_image_watch {
    stk_image_limit limit;
    int64_t cpu_end_ns;  /* in the thread's CPU time; INT64_MAX: never */
    int64_t least_ns;    /* until this CPU time limit.wall_ns does not apply */
    int64_t wall_end_ns; /* on the monotonic clock; INT64_MAX: never */
    bool end_is_limit;   /* cpu_end_ns comes from limit.cpu_ns */
    bool timed;          /* a limit needs a clock */
    int64_t looked_ns;   /* when the clocks were last read; 0: not yet */
    unsigned calls;      /* since looked_ns */
    stk_image_halt halt;
} stk_image_watch;

stk_image_watch stk_image_watch_start(const stk_image_receiver *receiver);
bool stk_image_halted(stk_image_watch *watch); /* cheap: reads clocks only now and then */
STK_CHECKED stk_status stk_image_refuse_halted(const stk_image_watch *watch, const char *format,
                                               stk_error *err);

#endif
