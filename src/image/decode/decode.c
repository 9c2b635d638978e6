/* decode.c - finds the decoder for some bytes, and decodes whole pictures and headers with it. */
#include "image/image.h"

#include <string.h>

#include "base/error.h"
#include "image/decode/decoders.h"

/* In the order of trying: the most common format first. */
static const stk_image_decoder *const decoders[] = {
    &stk_image_jpeg,
    &stk_image_png,
    &stk_image_webp,
    &stk_image_raw,
};

/* Formats that Stoker recognises only to name them in the error. */
static const struct {
    const char *name;
    size_t offset; /* of the magic bytes in the file */
    const char *magic;
} foreign[] = {
    {"a GIF", 0, "GIF8"},      {"a BMP", 0, "BM"},         {"a TIFF", 0, "II*"},
    {"a TIFF", 0, "MM"},       {"an AVIF", 4, "ftypavif"}, {"a HEIC", 4, "ftypheic"},
    {"a HEIC", 4, "ftypmif1"}, {"a HEIC", 4, "ftypheix"},
};

static stk_status refuse(const uint8_t *bytes, size_t size, stk_error *err) {
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++) {
        size_t length = strlen(foreign[i].magic);
        if (size >= foreign[i].offset + length &&
            memcmp(bytes + foreign[i].offset, foreign[i].magic, length) == 0) {
            return STK_FAIL(err, STK_ERR_DATA,
                            "it is %s picture; Stoker reads JPEG, PNG and WebP: convert it",
                            foreign[i].name);
        }
    }
    return STK_FAIL(err, STK_ERR_DATA, "it is not a JPEG, PNG or WebP picture");
}

stk_status stk_image_receive(const uint8_t *bytes, size_t size, const stk_image_receiver *receiver,
                             stk_error *err) {
    if (size == 0) {
        return STK_FAIL(err, STK_ERR_DATA, "the file is empty");
    }
    for (size_t i = 0; i < sizeof decoders / sizeof *decoders; i++) {
        const stk_image_decoder *decoder = decoders[i];
        if (!decoder->recognises(bytes, size)) {
            continue;
        }
        if (decoder->decode == NULL) {
            return STK_FAIL(err, STK_ERR_DATA,
                            "it is a %s picture and this build of Stoker has no %s: install its "
                            "library and build again, or convert the picture",
                            decoder->name, decoder->name);
        }
        return decoder->decode(bytes, size, receiver, err);
    }
    return refuse(bytes, size, err);
}

const char *stk_image_extension(const uint8_t *bytes, size_t size) {
    for (size_t i = 0; i < sizeof decoders / sizeof *decoders; i++) {
        if (decoders[i]->recognises(bytes, size)) {
            return decoders[i]->extension;
        }
    }
    return NULL;
}

/* Receives a whole picture. */
typedef struct whole_picture {
    stk_image *image;
    int orientation;
    int rows; /* rows received */
} whole_picture;

static stk_status begin_whole(void *user, const stk_image_info *info, stk_image_part *part,
                              stk_error *err) {
    whole_picture *w = user;
    w->orientation = info->orientation;
    *part = (stk_image_part){.divisor = 1, .width = info->width, .height = info->height};
    return stk_image_new(w->image, info->width, info->height, err);
}

static stk_status expect_whole_rows(void *user, int x, int width, stk_error *err) {
    const whole_picture *w = user;
    return x == 0 && width == w->image->width
               ? STK_OK
               : STK_FAIL(err, STK_ERR_INTERNAL, "a decoder gave part of a row");
}

static uint8_t *room_in_whole(void *user, int count) {
    const whole_picture *w = user;
    (void)count;
    return w->image->pixels + 3 * (size_t)w->image->width * (size_t)w->rows;
}

static void take_whole(void *user, int count) {
    whole_picture *w = user;
    w->rows += count;
}

stk_status stk_image_decode(const uint8_t *bytes, size_t size, stk_image *image, stk_error *err) {
    return stk_image_decode_within(bytes, size, &(stk_image_limit){0}, image, err);
}

stk_status stk_image_decode_within(const uint8_t *bytes, size_t size, const stk_image_limit *limit,
                                   stk_image *image, stk_error *err) {
    memset(image, 0, sizeof *image);
    whole_picture w = {.image = image};
    stk_image_receiver receiver = {.user = &w,
                                   .max_cpu_ns = STK_IMAGE_MAX_CPU_NS,
                                   .limit = *limit,
                                   .begin = begin_whole,
                                   .rows = expect_whole_rows,
                                   .room = room_in_whole,
                                   .take = take_whole};
    stk_status status = stk_image_receive(bytes, size, &receiver, err);
    STK_THEN(status, stk_image_orient(image, w.orientation, &receiver, err));
    if (status != STK_OK) {
        stk_image_free(image);
    }
    return status;
}

/* Takes only the header: the status returned here ends the decoding without a failure. */
static stk_status note_size(void *user, const stk_image_info *info, stk_image_part *part,
                            stk_error *err) {
    stk_image *size = user;
    (void)part;
    (void)err;
    size->width = info->width;
    size->height = info->height;
    return STK_ERR_STOPPED;
}

stk_status stk_image_size(const uint8_t *bytes, size_t size, int *width, int *height,
                          stk_error *err) {
    stk_image noted = {0};
    stk_image_receiver receiver = {
        .user = &noted, .max_cpu_ns = STK_IMAGE_MAX_CPU_NS, .begin = note_size};
    stk_status status = stk_image_receive(bytes, size, &receiver, err);
    *width = noted.width;
    *height = noted.height;
    return status == STK_ERR_STOPPED ? STK_OK : status;
}
