/*
 * image.h - bytes to pixels and back.
 *
 * The format is found by content, never by file name. Pictures are 8-bit RGB, rows from top to
 * bottom, upright: EXIF orientation is applied, alpha is laid over white, 16-bit, palette, grey,
 * CMYK and YCCK become RGB. Values of more than 8 bits pass a window: see stk_window. Transforms
 * may ask for another number of channels. Threads: safe, but a stk_image_scratch belongs to one
 * thread at a time. A picture that cannot be decoded is STK_ERR_DATA; callers put the file name
 * before the message.
 */
#ifndef STK_IMAGE_IMAGE_H
#define STK_IMAGE_IMAGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <stoker/status.h>

#include "base/files/file.h"
#include "base/numbers/rng.h"
#include "image/augment/augment.h"

/* Larger pictures are refused before memory is allocated for them. */
#define STK_IMAGE_MAX_PIXELS ((int64_t)256 * 1024 * 1024)

/* Pictures that take more CPU time are refused: some files are made to be slow. */
#define STK_IMAGE_MAX_CPU_NS ((int64_t)10 * 1000 * 1000 * 1000)

/* Pictures with more channels are refused. */
#define STK_IMAGE_MAX_CHANNELS 16

/*
 * Which values become 0 and 255, for each channel; values between them are scaled, others clamped.
 * 8-bit values never pass a window.
 */
typedef struct stk_window {
    int channels; /* 0: none, each picture gets one of its own */
    float lo[STK_IMAGE_MAX_CHANNELS];
    float hi[STK_IMAGE_MAX_CHANNELS];
} stk_window;

typedef struct stk_image {
    int width;       /* px */
    int height;      /* px */
    uint8_t *pixels; /* (height, width, 3); owned, freed with stk_image_free */
} stk_image;

/*
 * Limits of decoding. Exceeding one does not make the picture bad: the status is STK_ERR_STOPPED.
 * All zero: only STK_IMAGE_MAX_CPU_NS applies. During libwebp calls and very long PNG rows limits
 * are checked rarely: some tenths of a second may pass before decoding ends.
 */
typedef struct stk_image_limit {
    const atomic_bool *cancelled; /* another thread sets it to end decoding; borrowed, or NULL */
    int64_t cpu_ns;               /* of the decoding thread; 0: no limit */
    /*
     * Wall time; 0: no limit. Applies only once an eighth of cpu_ns is used: on a busy machine a
     * thread may wait for a core most of the time, which is not the picture's fault.
     */
    int64_t wall_ns;
    int64_t deadline_ns; /* on the monotonic clock; 0: none */
} stk_image_limit;

/*
 * Decodes a picture. As in viewers, a JPEG whose data ends early is still used if at least half of
 * its rows are there; otherwise it is an error.
 */
STK_CHECKED stk_status stk_image_decode(const uint8_t *bytes, size_t size, stk_image *image,
                                        stk_error *err);

STK_CHECKED stk_status stk_image_decode_within(const uint8_t *bytes, size_t size,
                                               const stk_image_limit *limit, stk_image *image,
                                               stk_error *err);

/* The size of a picture as stored, from its header, without decoding. */
STK_CHECKED stk_status stk_image_size(const uint8_t *bytes, size_t size, int *width, int *height,
                                      stk_error *err);

/*
 * The number of channels that a picture has, from its header: 3 for pictures of colours and for
 * grey ones, which count as RGB; the channels of an array (.npy) or of a TIFF with neither.
 */
STK_CHECKED stk_status stk_image_channels(const uint8_t *bytes, size_t size, int *channels,
                                          stk_error *err);

/* The file extension by content: "jpg", "png", "webp", ...; NULL: unknown format. */
const char *stk_image_extension(const uint8_t *bytes, size_t size);

STK_CHECKED stk_status stk_image_new(stk_image *image, int width, int height, stk_error *err);
void stk_image_free(stk_image *image);

/* Encodes as JPEG, 4:2:0, optimised Huffman tables, quality 1 to 100; freed with stk_mem_free(). */
STK_CHECKED stk_status stk_image_encode_jpeg(const stk_image *image, int quality, uint8_t **bytes,
                                             size_t *size, stk_error *err);

/* Encodes as PNG, without loss; freed with stk_mem_free(). */
STK_CHECKED stk_status stk_image_encode_png(const stk_image *image, uint8_t **bytes, size_t *size,
                                            stk_error *err);

/* The same for lines and letters on one colour, which takes a fraction of the time. */
STK_CHECKED stk_status stk_image_encode_drawing(const stk_image *image, uint8_t **bytes,
                                                size_t *size, stk_error *err);

/*
 * Encodes as plain pixels with a small header, the format of the cache of decoded pictures.
 * stk_image_decode() reads it like any other format.
 */
STK_CHECKED stk_status stk_image_encode_raw(const stk_image *image, stk_bytes *bytes,
                                            stk_error *err);
bool stk_image_is_raw(const uint8_t *bytes, size_t size);

/* A part of a picture in pixels; corners may lie between pixels. */
typedef struct stk_crop {
    double x, y;
    double width, height;
} stk_crop;

/*
 * Filters for scaling, as in Pillow and torchvision with antialias; their width grows with the
 * scale: a triangle, or Keys' cubic with a = -0.5.
 */
typedef enum stk_interpolation { STK_BILINEAR, STK_BICUBIC } stk_interpolation;

/* How a sample becomes the network's input. */
typedef struct stk_transform {
    int size; /* px, side of the output square */
    /*
     * Of the output: 0 or 3 for RGB, 1 for grey. With any other number, pictures must have exactly
     * so many channels; others are bad. Colours are augmented only if there are 3.
     */
    int channels;
    stk_window window; /* for pictures whose values are not of 8 bits */
    bool train;        /* augmented; false: for evaluation, see `view` */
    stk_augment_options augment;
    /* Windows of the picture's own pixels, never scaled: at random places for training, at the view
     * otherwise. A picture that is smaller is continued by its mirror image. */
    bool native;
    double crop_fraction;            /* evaluation, scaled: share of the short side that is kept */
    stk_interpolation interpolation; /* evaluation, scaled; training is always bilinear */
    int view;                        /* evaluation: one of STK_TRANSFORM_VIEWS; 0: the centre */
} stk_transform;

/*
 * Views of one picture for evaluation: the centre, its mirror image, then three squares with 90 %
 * of the centre's side, each followed by its mirror image: at the middle of the centre, at its
 * upper left and at its lower right. Native windows lie in the middle of the picture, then in three
 * of its corners: upper left, lower right, upper right.
 */
#define STK_TRANSFORM_VIEWS 8

/*
 * The part that the transform takes from an upright picture of this size, and whether it is
 * mirrored: RandomResizedCrop with aspect 3/4 to 4/3 or a random window for training, the view
 * otherwise.
 */
stk_crop stk_transform_draw(const stk_transform *transform, int width, int height, stk_rng *rng,
                            bool *flip);

/*
 * The scratch is the memory that one thread keeps between pictures. Some pictures need
 * STK_IMAGE_HEAVY_BYTES or more: their format decodes whole pictures, or they are scaled down a
 * lot. The gate (may be NULL) lets only one thread at a time decode such a picture. `enter` is
 * called before such a picture, `leave` after it; an error of `enter` refuses the picture.
 */
#define STK_IMAGE_HEAVY_BYTES ((uint64_t)64 << 20)

typedef struct stk_image_scratch stk_image_scratch;

typedef struct stk_heavy_gate {
    void *user;
    stk_status (*enter)(void *user, uint64_t bytes, stk_error *err);
    void (*leave)(void *user);
} stk_heavy_gate;

STK_CHECKED stk_status stk_image_scratch_new(stk_image_scratch **scratch,
                                             const stk_heavy_gate *gate, stk_error *err);
void stk_image_scratch_free(stk_image_scratch *scratch);

/* Sets the limit for all later pictures; the default is none. */
void stk_image_scratch_limit(stk_image_scratch *scratch, const stk_image_limit *limit);

/* Channels of the transform's output. */
int stk_transform_channels(const stk_transform *transform);

/*
 * Decodes and transforms into out (size, size, channels). Decodes only what the crop needs. Adds
 * the time of augmentation after scaling to *augment_ns, unless NULL.
 */
STK_CHECKED stk_status stk_transform_apply(stk_image_scratch *scratch,
                                           const stk_transform *transform, const uint8_t *bytes,
                                           size_t size, stk_rng rng, uint8_t *out,
                                           int64_t *augment_ns, stk_error *err);

/* Stored width times height of the last transformed picture; 0: its header was unreadable. */
uint64_t stk_image_scratch_source_px(const stk_image_scratch *scratch);

/*
 * Decodes a picture, upright, with at most max_side px on its longer side (0: no limit). A larger
 * one is scaled down, antialiased, while it is decoded.
 */
STK_CHECKED stk_status stk_image_shrink(stk_image_scratch *scratch, const uint8_t *bytes,
                                        size_t size, int max_side, stk_image *image,
                                        stk_error *err);

/*
 * Measures one window for a whole data set: for each channel the values that a thousandth of the
 * pictures' values lies below and above. Threads: one at a time.
 */
typedef struct stk_window_meter stk_window_meter;

STK_CHECKED stk_status stk_window_meter_new(stk_window_meter **meter, stk_error *err);
void stk_window_meter_free(stk_window_meter *meter);

/*
 * Adds a picture. Pictures of 8 bits and those that have a window of their own (DICOM) add nothing.
 * STK_ERR_DATA: the picture cannot be read, or has another number of channels than those before.
 */
STK_CHECKED stk_status stk_window_meter_add(stk_window_meter *meter, const uint8_t *bytes,
                                            size_t size, stk_error *err);

/* The window of the pictures so far; window->channels is 0 when none of them needs one. */
void stk_window_meter_end(const stk_window_meter *meter, stk_window *window);

#endif
