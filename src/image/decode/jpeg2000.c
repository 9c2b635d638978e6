/*
 * jpeg2000.c - JPEG 2000 inside DICOM, with OpenJPEG where the build has it.
 *
 * Its wavelets hold the picture at half, a quarter and an eighth of its size: a crop that becomes
 * smaller is decoded from one of these, which takes a fraction of the time. Their pixels lie up to
 * half a pixel further to the upper left than those of a mean would, which is not corrected.
 * OpenJPEG cannot be
 * interrupted and takes memory by itself, so sizes are compared before it decodes.
 */
#include "image/decode/dicom.h"

#include "base/error.h"

#ifdef STK_HAVE_JPEG2000

#include <stdio.h>
#include <string.h>

#include <openjpeg.h>

#include "base/mem.h"

#define LEAST_TILE 14   /* bytes */
#define MOST_HALVINGS 3 /* an eighth, as with JPEG */

typedef struct j2k_source {
    const uint8_t *bytes; /* borrowed */
    size_t size;
    size_t at;
    char reason[160]; /* OpenJPEG's first complaint */
    opj_codec_t *codec;
    opj_stream_t *stream;
    opj_image_t *image;
} j2k_source;

static OPJ_SIZE_T read_bytes(void *to, OPJ_SIZE_T size, void *user) {
    j2k_source *source = user;
    size_t left = source->size - source->at;
    size_t count = size < left ? size : left;
    if (count == 0) {
        return (OPJ_SIZE_T)-1;
    }
    memcpy(to, source->bytes + source->at, count);
    source->at += count;
    return count;
}

static OPJ_OFF_T skip_bytes(OPJ_OFF_T count, void *user) {
    j2k_source *source = user;
    size_t left = source->size - source->at;
    if (count < 0) {
        return -1;
    }
    source->at += (size_t)count < left ? (size_t)count : left;
    return count;
}

static OPJ_BOOL seek_to(OPJ_OFF_T at, void *user) {
    j2k_source *source = user;
    if (at < 0 || (size_t)at > source->size) {
        return OPJ_FALSE;
    }
    source->at = (size_t)at;
    return OPJ_TRUE;
}

static void keep_reason(const char *text, void *user) {
    j2k_source *source = user;
    if (source->reason[0] == '\0') {
        snprintf(source->reason, sizeof source->reason, "%s", text);
        source->reason[strcspn(source->reason, "\n")] = '\0';
    }
}

static void print_nothing(const char *text, void *user) {
    (void)text;
    (void)user;
}

static void close_source(j2k_source *source) {
    opj_image_destroy(source->image);
    opj_stream_destroy(source->stream);
    opj_destroy_codec(source->codec);
}

static uint32_t big32(const uint8_t *at) {
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/* Whether the file has room for its tiles, for each of which OpenJPEG takes memory at once. */
static bool holds_tiles(const uint8_t *frame, size_t bytes) {
    static const uint8_t start[4] = {0xFF, 0x4F, 0xFF, 0x51};
    const uint8_t *at = memmem(frame, bytes, start, sizeof start);
    if (at == NULL || (size_t)(frame + bytes - at) < 40) {
        return false;
    }
    uint64_t width = big32(at + 8);
    uint64_t height = big32(at + 12);
    uint64_t tile_width = big32(at + 24);
    uint64_t tile_height = big32(at + 28);
    return tile_width > 0 && tile_height > 0 &&
           (width / tile_width + 1) * (height / tile_height + 1) <= 4 + bytes / LEAST_TILE;
}

/* Reads the header; false: it cannot be read. The caller closes the source in any case. */
static bool open_source(j2k_source *source, const uint8_t *frame, size_t bytes) {
    static const uint8_t box[12] = {0, 0, 0, 12, 'j', 'P', ' ', ' ', '\r', '\n', 0x87, '\n'};
    bool in_box = bytes >= sizeof box && memcmp(frame, box, sizeof box) == 0;
    opj_dparameters_t parameters;
    *source = (j2k_source){.bytes = frame, .size = bytes};
    source->codec = opj_create_decompress(in_box ? OPJ_CODEC_JP2 : OPJ_CODEC_J2K);
    source->stream = opj_stream_create(OPJ_J2K_STREAM_CHUNK_SIZE, OPJ_TRUE);
    if (source->codec == NULL || source->stream == NULL || !holds_tiles(frame, bytes)) {
        return false;
    }
    opj_stream_set_user_data(source->stream, source, NULL);
    opj_stream_set_user_data_length(source->stream, bytes);
    opj_stream_set_read_function(source->stream, read_bytes);
    opj_stream_set_skip_function(source->stream, skip_bytes);
    opj_stream_set_seek_function(source->stream, seek_to);
    opj_set_error_handler(source->codec, keep_reason, source);
    opj_set_warning_handler(source->codec, print_nothing, NULL);
    opj_set_info_handler(source->codec, print_nothing, NULL);
    opj_set_default_decoder_parameters(&parameters);
    return opj_setup_decoder(source->codec, &parameters) &&
           opj_read_header(source->stream, source->codec, &source->image);
}

int stk_jpeg2000_halvings(const uint8_t *frame, size_t bytes) {
    j2k_source source;
    int halvings = 0;
    if (open_source(&source, frame, bytes)) {
        opj_codestream_info_v2_t *info = opj_get_cstr_info(source.codec);
        if (info != NULL && info->m_default_tile_info.tccp_info != NULL) {
            halvings = MOST_HALVINGS;
            for (OPJ_UINT32 c = 0; c < info->nbcomps; c++) {
                int levels = (int)info->m_default_tile_info.tccp_info[c].numresolutions - 1;
                halvings = levels < halvings ? levels : halvings;
            }
        }
        opj_destroy_cstr_info(&info);
    }
    close_source(&source);
    return halvings > 0 ? halvings : 0;
}

/* Whether the picture is what the file around it tells, and its channels are of one size. */
static bool is_expected(const opj_image_t *image, const stk_dicom *d, int divisor) {
    OPJ_UINT32 width = (OPJ_UINT32)((d->width + divisor - 1) / divisor);
    OPJ_UINT32 height = (OPJ_UINT32)((d->height + divisor - 1) / divisor);
    bool good = (int)image->numcomps == d->channels;
    for (OPJ_UINT32 c = 0; good && c < image->numcomps; c++) {
        const opj_image_comp_t *comp = &image->comps[c];
        good = comp->w == width && comp->h == height && comp->dx == 1 && comp->dy == 1 &&
               comp->prec >= 1 && comp->prec <= 31;
    }
    return good;
}

static stk_status fail(const j2k_source *source, stk_error *err) {
    return STK_FAIL(err, STK_ERR_DATA, "the JPEG 2000 cannot be decoded: %s",
                    source->reason[0] != '\0' ? source->reason : "it is damaged");
}

static stk_status copy_values(const stk_dicom *d, const opj_image_t *image,
                              stk_dicom_values *values, stk_error *err) {
    size_t pixels = (size_t)image->comps[0].w * image->comps[0].h;
    *values = (stk_dicom_values){.bits = 32,
                                 .width = (int)image->comps[0].w,
                                 .height = (int)image->comps[0].h,
                                 .planes = true};
    int32_t *to = stk_mem_raw(pixels * (size_t)d->channels, sizeof *to);
    values->values = to;
    if (to == NULL) {
        return STK_FAIL_MEMORY(err, "decoding a DICOM");
    }
    for (int c = 0; c < d->channels; c++) {
        memcpy(to + (size_t)c * pixels, image->comps[c].data, pixels * sizeof *to);
    }
    return STK_OK;
}

stk_status stk_jpeg2000_decode(const stk_dicom *d, const uint8_t *frame, size_t bytes, int divisor,
                               stk_dicom_values *values, stk_error *err) {
    j2k_source source;
    stk_status status = STK_OK;
    if (!open_source(&source, frame, bytes)) {
        status = fail(&source, err);
    } else if (!is_expected(source.image, d, 1)) {
        status = STK_FAIL(err, STK_ERR_DATA,
                          "the JPEG 2000 has another size than the DICOM around it tells");
    } else if ((divisor > 1 && !opj_set_decoded_resolution_factor(
                                   source.codec, (OPJ_UINT32)__builtin_ctz((unsigned)divisor))) ||
               !opj_decode(source.codec, source.stream, source.image)) {
        status = fail(&source, err);
    } else {
        bool whole = is_expected(source.image, d, divisor);
        for (OPJ_UINT32 c = 0; whole && c < source.image->numcomps; c++) {
            whole = source.image->comps[c].data != NULL;
        }
        status = whole ? copy_values(d, source.image, values, err) : fail(&source, err);
    }
    close_source(&source);
    return status;
}

#else

int stk_jpeg2000_halvings(const uint8_t *frame, size_t bytes) {
    (void)frame;
    (void)bytes;
    return 0;
}

stk_status stk_jpeg2000_decode(const stk_dicom *d, const uint8_t *frame, size_t bytes, int divisor,
                               stk_dicom_values *values, stk_error *err) {
    (void)d;
    (void)frame;
    (void)bytes;
    (void)divisor;
    (void)values;
    return STK_FAIL(err, STK_ERR_DATA,
                    "the DICOM holds JPEG 2000 and this build of Stoker has no libopenjp2 "
                    "(STK_JPEG2000): install it and build again, or convert the picture");
}

#endif
