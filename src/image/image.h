/*
 * image.h - bytes to pixels and back.
 *
 * The format is found by content, never by file name. Pictures are 8-bit RGB, rows from top to
 * bottom, upright: EXIF orientation is applied, alpha is laid over white, 16-bit, palette, grey,
 * CMYK and YCCK become RGB. Nothing here keeps state; every call is thread-safe. A picture that
 * cannot be decoded is STK_ERR_DATA; the message continues a file name.
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
#include "image/augment.h"

/* Pictures with more pixels are refused before memory is taken for them. */
#define STK_IMAGE_MAX_PIXELS ((int64_t)256 * 1024 * 1024)

/* A picture that takes more CPU time than this is refused: some files are made to be slow. */
#define STK_IMAGE_MAX_CPU_NS ((int64_t)10 * 1000 * 1000 * 1000)

typedef struct stk_image {
    int width;       /* px */
    int height;      /* px */
    uint8_t *pixels; /* (height, width, 3); owned, freed with stk_image_free */
} stk_image;

/*
 * How long decoding may go on. A picture that goes beyond a limit is not bad: STK_ERR_STOPPED. All
 * zero: as long as STK_IMAGE_MAX_CPU_NS allows. libwebp and very long rows of a PNG are checked
 * rarely: some tenths of a second may pass before decoding ends.
 */
typedef struct stk_image_limit {
    const atomic_bool *cancelled; /* decoding ends when another thread sets it; borrowed, or NULL */
    int64_t cpu_ns;               /* of the decoding thread; 0: no limit */
    /*
     * In wall time; 0: no limit. It applies only once an eighth of cpu_ns is used: on a busy
     * machine a thread may wait for a core most of the time, which is not the picture's fault.
     */
    int64_t wall_ns;
    int64_t deadline_ns; /* on the monotonic clock; 0: none */
} stk_image_limit;

/*
 * A picture out of a file's bytes. A JPEG whose data ends early is still used when at least half of
 * its rows were there, as viewers do; less is an error.
 */
STK_CHECKED stk_status stk_image_decode(const uint8_t *bytes, size_t size, stk_image *image,
                                        stk_error *err);

STK_CHECKED stk_status stk_image_decode_within(const uint8_t *bytes, size_t size,
                                               const stk_image_limit *limit, stk_image *image,
                                               stk_error *err);

/* The size of a picture as it is stored, from its header; nothing is decoded. */
STK_CHECKED stk_status stk_image_size(const uint8_t *bytes, size_t size, int *width, int *height,
                                      stk_error *err);

/* The extension for files with such bytes: "jpg", "png", "webp", ...; NULL: not a known picture. */
const char *stk_image_extension(const uint8_t *bytes, size_t size);

STK_CHECKED stk_status stk_image_new(stk_image *image, int width, int height, stk_error *err);
void stk_image_free(stk_image *image);

/* JPEG bytes (freed with stk_mem_free), 4:2:0, Huffman tables of its own, quality 1 to 100. */
STK_CHECKED stk_status stk_image_encode_jpeg(const stk_image *image, int quality, uint8_t **bytes,
                                             size_t *size, stk_error *err);

/* PNG bytes (freed with stk_mem_free), without loss. */
STK_CHECKED stk_status stk_image_encode_png(const stk_image *image, uint8_t **bytes, size_t *size,
                                            stk_error *err);

/*
 * The picture as plain pixels with a small header. stk_image_decode reads it like any other format;
 * the cache of decoded pictures holds it.
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
 * Filters for scaling, as Pillow and torchvision with antialias have them: as wide as the scale, a
 * triangle or Keys' cubic with a = -0.5.
 */
typedef enum stk_interpolation { STK_BILINEAR, STK_BICUBIC } stk_interpolation;

/*
 * Scales the part to out (size, size, 3), antialiased, with integer weights; pixels outside of the
 * part do not count. flip mirrors it.
 */
STK_CHECKED stk_status stk_image_resize(const stk_image *image, stk_crop crop, int size,
                                        stk_interpolation filter, bool flip, uint8_t *out,
                                        stk_error *err);

/* How a sample becomes the network's input. */
typedef struct stk_transform {
    int size;   /* px, side of the square that comes out */
    bool train; /* augmented; otherwise the centre */
    stk_augment_options augment;
    double crop_fraction;            /* evaluation: the share of the short side that is kept */
    stk_interpolation interpolation; /* evaluation; training is always bilinear */
    int view;                        /* evaluation: which of the views below; 0: the centre */
} stk_transform;

/*
 * Views of one picture for evaluation: the centre, its mirror image, then three squares of 90 % of
 * the centre's side, each followed by its mirror image: in the middle of it, at its upper left and
 * at its lower right.
 */
#define STK_TRANSFORM_VIEWS 8

/*
 * The part that the transform takes from an upright picture of this size, and whether it is
 * mirrored: RandomResizedCrop with aspect 3/4 to 4/3, or the centre.
 */
stk_crop stk_transform_draw(const stk_transform *transform, int width, int height, stk_rng *rng,
                            bool *flip);

/*
 * The scratch is the memory that one thread keeps between pictures. The gate, which may be NULL, is
 * entered before a picture is decoded that needs STK_IMAGE_HEAVY_BYTES or more (because its format
 * decodes whole pictures, or because it is scaled down a lot), and left afterwards: with many
 * threads, only one such picture is decoded at a time. An error of `enter` refuses the picture.
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

/* Sets the limit for all later pictures; at first there is none. */
void stk_image_scratch_limit(stk_image_scratch *scratch, const stk_image_limit *limit);

/*
 * Decodes and transforms: out is (size, size, 3). Only what the crop needs is decoded. *augment_ns,
 * unless NULL, grows by the time of augmentation after scaling.
 */
STK_CHECKED stk_status stk_transform_apply(stk_image_scratch *scratch,
                                           const stk_transform *transform, const uint8_t *bytes,
                                           size_t size, stk_rng rng, uint8_t *out,
                                           int64_t *augment_ns, stk_error *err);

/* Stored width times height of the last transformed picture; 0 where its header was unreadable. */
uint64_t stk_image_scratch_source_px(const stk_image_scratch *scratch);

/*
 * Decodes a picture, upright, so that its longer side has at most max_side px (0: as many as it
 * has); a larger one is scaled down, antialiased, while it is decoded.
 */
STK_CHECKED stk_status stk_image_shrink(stk_image_scratch *scratch, const uint8_t *bytes,
                                        size_t size, int max_side, stk_image *image,
                                        stk_error *err);

#endif
