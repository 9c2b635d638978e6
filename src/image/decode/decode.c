/* decode.c - finds the decoder for some bytes, and decodes whole pictures and headers with it. */
#include "image/image.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "image/decode/decoders.h"

/* In the order of trying: the most common format first. */
static const stk_image_decoder *const decoders[] = {
    &stk_image_jpeg, &stk_image_png, &stk_image_webp, &stk_image_tiff,  &stk_image_raw,
    &stk_image_npy,  &stk_image_bmp, &stk_image_gif,  &stk_image_dicom,
};

#define READS "JPEG, PNG, WebP, TIFF, BMP, GIF, DICOM and .npy"

/* Formats that Stoker recognises only to name them in the error. */
static const struct {
    const char *name;
    size_t offset; /* of the magic bytes in the file */
    const char *magic;
} foreign[] = {
    {"an AVIF", 4, "ftypavif"},
    {"a HEIC", 4, "ftypheic"},
    {"a HEIC", 4, "ftypmif1"},
    {"a HEIC", 4, "ftypheix"},
};

/* A receiver of grey in front of a decoder that gives RGB. */
typedef struct grey_rows {
    const stk_image_receiver *to; /* borrowed */
    uint8_t *rgb;                 /* owned: STK_RECEIVER_ROWS rows */
    size_t width;                 /* px, of a row */
} grey_rows;

static stk_status begin_grey(void *user, const stk_image_info *info, stk_image_part *part,
                             stk_error *err) {
    const grey_rows *grey = user;
    return grey->to->begin(grey->to->user, info, part, err);
}

static stk_status expect_grey_rows(void *user, int x, int width, stk_error *err) {
    grey_rows *grey = user;
    grey->width = (size_t)width;
    grey->rgb = stk_mem_raw(STK_RECEIVER_ROWS * grey->width, 3);
    if (grey->rgb == NULL) {
        return STK_FAIL_MEMORY(err, "making a picture grey");
    }
    return grey->to->rows(grey->to->user, x, width, err);
}

static uint8_t *room_for_rgb(void *user, int count) {
    (void)count;
    return ((grey_rows *)user)->rgb;
}

static void take_rgb(void *user, int count) {
    const grey_rows *grey = user;
    uint8_t *out = grey->to->room(grey->to->user, count);
    stk_image_to_grey(grey->rgb, (size_t)count * grey->width, out);
    grey->to->take(grey->to->user, count);
}

/* Decodes into a receiver of grey or of many channels with a decoder that gives only RGB. */
static stk_status decode_rgb_for(const stk_image_decoder *decoder, const uint8_t *bytes,
                                 size_t size, const stk_image_receiver *to, stk_error *err) {
    if (to->channels != 1) {
        return STK_FAIL(err, STK_ERR_DATA,
                        "it is a %s picture of 3 channels, and pictures of %d are wanted",
                        decoder->name, to->channels);
    }
    grey_rows grey = {.to = to};
    stk_image_receiver receiver = *to;
    receiver.user = &grey;
    receiver.channels = 3;
    receiver.begin = begin_grey;
    receiver.rows = expect_grey_rows;
    receiver.room = room_for_rgb;
    receiver.take = take_rgb;
    stk_status status = decoder->decode(bytes, size, &receiver, err);
    stk_mem_free(grey.rgb);
    return status;
}

static stk_status refuse(const uint8_t *bytes, size_t size, stk_error *err) {
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++) {
        size_t length = strlen(foreign[i].magic);
        if (size >= foreign[i].offset + length &&
            memcmp(bytes + foreign[i].offset, foreign[i].magic, length) == 0) {
            return STK_FAIL(err, STK_ERR_DATA,
                            "it is %s picture; Stoker reads " READS ": convert it",
                            foreign[i].name);
        }
    }
    return STK_FAIL(err, STK_ERR_DATA, "it is no picture of a format that Stoker reads: " READS);
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
                            "it is a %s picture and this build of Stoker has no %s: install it and "
                            "build again, or convert the picture",
                            decoder->name, decoder->library);
        }
        if (receiver->channels != 0 && receiver->channels != 3 && !decoder->any_channels &&
            !(decoder->grey && receiver->channels == 1)) {
            return decode_rgb_for(decoder, bytes, size, receiver, err);
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
static stk_status note_info(void *user, const stk_image_info *info, stk_image_part *part,
                            stk_error *err) {
    (void)part;
    (void)err;
    *(stk_image_info *)user = *info;
    return STK_ERR_STOPPED;
}

static stk_status read_info(const uint8_t *bytes, size_t size, stk_image_info *info,
                            stk_error *err) {
    stk_image_receiver receiver = {
        .user = info, .max_cpu_ns = STK_IMAGE_MAX_CPU_NS, .begin = note_info};
    stk_status status = stk_image_receive(bytes, size, &receiver, err);
    return status == STK_ERR_STOPPED ? STK_OK : status;
}

stk_status stk_image_size(const uint8_t *bytes, size_t size, int *width, int *height,
                          stk_error *err) {
    stk_image_info info = {0};
    stk_status status = read_info(bytes, size, &info, err);
    *width = info.width;
    *height = info.height;
    return status;
}

stk_status stk_image_channels(const uint8_t *bytes, size_t size, int *channels, stk_error *err) {
    stk_image_info info = {0};
    stk_status status = read_info(bytes, size, &info, err);
    *channels = info.channels > 0 ? info.channels : 3;
    return status;
}

stk_status stk_window_meter_add(stk_window_meter *meter, const uint8_t *bytes, size_t size,
                                stk_error *err) {
    stk_image_info info = {0};
    stk_image_receiver receiver = {
        .user = &info, .max_cpu_ns = STK_IMAGE_MAX_CPU_NS, .begin = note_info, .meter = meter};
    stk_status status = stk_image_receive(bytes, size, &receiver, err);
    return status == STK_ERR_STOPPED ? STK_OK : status;
}
