/*
 * decoders.h - what the files of this room share: the decoders of this build, one file each, how
 * they hand over a picture, and the steps that more than one of them needs. Not for other rooms.
 *
 * A decoder reads the header, asks its receiver which part of the picture is wanted, and hands over
 * the rows of that part from top to bottom; it decodes nothing that it can leave out. Rows are
 * written straight to where the receiver wants them.
 */
#ifndef STK_IMAGE_DECODERS_H
#define STK_IMAGE_DECODERS_H

#include "image/image.h"

/* What the header says. */
typedef struct stk_image_info {
    int width, height;    /* px, as stored */
    int orientation;      /* EXIF's, 1 to 8 */
    bool divides;         /* it can be had at 1/2, 1/4 and 1/8 of its size */
    uint64_t whole_bytes; /* memory that the format needs for the picture as a whole; 0: none */
} stk_image_info;

/* What is wanted of it: in pixels of the stored picture after it was divided. */
typedef struct stk_image_part {
    int divisor; /* 1, 2, 4 or 8; sizes are rounded up */
    int x, y;
    int width, height;
} stk_image_part;

typedef struct stk_image_receiver {
    void *user;
    int64_t max_cpu_ns;    /* a picture that takes longer is refused; 0: no limit */
    stk_image_limit limit; /* decoding ends with STK_ERR_STOPPED where it goes beyond this */
    stk_status (*begin)(void *user, const stk_image_info *info, stk_image_part *part,
                        stk_error *err);
    /* Rows will be `width` px wide from column x on: the wanted part or more. */
    stk_status (*rows)(void *user, int x, int width, stk_error *err);
    /* Where the next rows go, one behind the other; at most STK_RECEIVER_ROWS at a time. */
    uint8_t *(*room)(void *user, int count);
    void (*take)(void *user, int count); /* that many were written */
} stk_image_receiver;

#define STK_RECEIVER_ROWS 16

typedef struct stk_image_decoder {
    const char *name;                                      /* "JPEG" */
    const char *extension;                                 /* "jpg" */
    bool (*recognises)(const uint8_t *bytes, size_t size); /* by the first bytes */
    /* NULL: not built in. */
    stk_status (*decode)(const uint8_t *bytes, size_t size, const stk_image_receiver *receiver,
                         stk_error *err);
} stk_image_decoder;

extern const stk_image_decoder stk_image_jpeg;
extern const stk_image_decoder stk_image_png;
extern const stk_image_decoder stk_image_webp;
extern const stk_image_decoder stk_image_raw;

/* Hands the picture in the bytes to the receiver. */
STK_CHECKED stk_status stk_image_receive(const uint8_t *bytes, size_t size,
                                         const stk_image_receiver *receiver, stk_error *err);

/*
 * Fails with STK_ERR_DATA when a picture of this size is refused. Decoders ask before they or
 * their library take memory for the pixels.
 */
STK_CHECKED stk_status stk_image_check_size(int64_t width, int64_t height, stk_error *err);

/*
 * Where a file may tell which way up it is: EXIF, with or without "Exif" and two NULs before its
 * TIFF header, and XMP. Both are borrowed from the file's bytes; NULL: the file has none.
 */
typedef struct stk_image_tags {
    const uint8_t *exif;
    size_t exif_size;
    const uint8_t *xmp;
    size_t xmp_size;
} stk_image_tags;

/* EXIF's orientation, 1 to 8: what EXIF tells, otherwise XMP; 1 where neither does. */
int stk_image_orientation(const stk_image_tags *tags);

/* The same of the chunks of a PNG, where EXIF and XMP may also be texts. */
STK_CHECKED stk_status stk_image_png_orientation(const uint8_t *bytes, size_t size,
                                                 int *orientation, stk_error *err);

/*
 * What an orientation means: an upright picture is the stored one, mirrored as told, and then with
 * rows and columns exchanged where `swapped` says so.
 */
typedef struct stk_turn {
    bool mirror_x; /* left and right of the stored picture are exchanged */
    bool mirror_y; /* top and bottom */
    bool swapped;
} stk_turn;

stk_turn stk_image_turn(int orientation);

/* Turns and mirrors the picture so that it stands upright; 1 leaves it alone. The receiver of the
 * picture has the limits. */
STK_CHECKED stk_status stk_image_orient(stk_image *image, int orientation,
                                        const stk_image_receiver *receiver, stk_error *err);

/* Lays pixels with alpha, (count, 4), over white: (count, 3). */
void stk_image_over_white(const uint8_t *rgba, size_t count, uint8_t *rgb);

/*
 * Guards against pictures that take for ever, and ends decoding that nobody waits for any more.
 * Decoders ask it row by row and whenever they read on; limits are in CPU time of the thread where
 * waiting is to be free.
 */
typedef enum stk_image_halt {
    STK_IMAGE_GOES_ON,
    STK_IMAGE_CANCELLED, /* limit.cancelled was set */
    STK_IMAGE_LATE,      /* a limit of the caller's is over */
    STK_IMAGE_SLOW       /* max_cpu_ns is over: the picture is refused */
} stk_image_halt;

typedef struct stk_image_watch {
    stk_image_limit limit;
    int64_t cpu_end_ns;  /* of the thread's CPU time; INT64_MAX: never */
    int64_t least_ns;    /* of CPU time, which limit.wall_ns needs before it ends anything */
    int64_t wall_end_ns; /* on the monotonic clock; INT64_MAX: never */
    bool end_is_limit;   /* cpu_end_ns comes from limit.cpu_ns */
    bool timed;          /* there is a clock to look at */
    int64_t looked_ns;   /* when the clocks were last looked at; 0: not yet */
    unsigned calls;      /* since then */
    stk_image_halt halt;
} stk_image_watch;

stk_image_watch stk_image_watch_start(const stk_image_receiver *receiver);
bool stk_image_halted(stk_image_watch *watch); /* cheap: looks at CPU time now and then */
STK_CHECKED stk_status stk_image_refuse_halted(const stk_image_watch *watch, const char *format,
                                               stk_error *err);

#endif
