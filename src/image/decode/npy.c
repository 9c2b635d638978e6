/*
 * npy.c - arrays of NumPy (.npy) as pictures.
 *
 * The file is a magic number, a version, a header of text and the values. The header is a Python
 * dictionary of three entries; only what NumPy writes is read: no nesting but the shape. (H, W) is
 * one channel. Of (A, B, C) the smaller one of the first and the last number, if it is at most
 * STK_IMAGE_MAX_CHANNELS, is the channels; if they are equal, the last. The values stay where they
 * are; a description of their places goes to samples.c.
 */
#include "image/decode/samples.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"

#define MAGIC "\x93NUMPY"
#define MAGIC_BYTES 6
#define MOST_DIMENSIONS 3
#define MOST_HEADER 65536 /* bytes; NumPy's are 128 */

typedef struct npy_array {
    char order; /* '<', '>', '|' or '=' */
    char kind;  /* 'f', 'i', 'u' or 'b' */
    int bytes;  /* of a value */
    bool fortran;
    int dimensions;
    int64_t shape[MOST_DIMENSIONS];
} npy_array;

/* A place in the header's text. */
typedef struct npy_text {
    const char *at;
    const char *end;
} npy_text;

static void skip_blanks(npy_text *t) {
    while (t->at < t->end && (*t->at == ' ' || *t->at == '\n' || *t->at == '\t')) {
        t->at++;
    }
}

static bool take_char(npy_text *t, char c) {
    skip_blanks(t);
    if (t->at < t->end && *t->at == c) {
        t->at++;
        return true;
    }
    return false;
}

static bool take_word(npy_text *t, const char *word) {
    size_t length = strlen(word);
    skip_blanks(t);
    if ((size_t)(t->end - t->at) >= length && memcmp(t->at, word, length) == 0) {
        t->at += length;
        return true;
    }
    return false;
}

/* A whole number that a picture could have, or more digits than that. */
static bool take_number(npy_text *t, int64_t *number) {
    skip_blanks(t);
    const char *from = t->at;
    *number = 0;
    while (t->at < t->end && *t->at >= '0' && *t->at <= '9') {
        *number = *number < INT32_MAX ? *number * 10 + (*t->at - '0') : *number;
        t->at++;
    }
    return t->at > from;
}

/* '<f4' and its like, in quotes of either kind. */
static bool take_type(npy_text *t, npy_array *array) {
    int64_t bytes;
    char quote = take_char(t, '\'') ? '\'' : '"';
    if ((quote == '"' && !take_char(t, '"')) || t->end - t->at < 4) {
        return false;
    }
    array->order = *t->at++;
    array->kind = *t->at++;
    bool read = take_number(t, &bytes) && take_char(t, quote);
    array->bytes = (int)bytes;
    return read && strchr("<>|=", array->order) != NULL && strchr("fiub", array->kind) != NULL;
}

static bool take_shape(npy_text *t, npy_array *array) {
    if (!take_char(t, '(')) {
        return false;
    }
    while (!take_char(t, ')')) {
        int64_t length;
        if (!take_number(t, &length)) {
            return false;
        }
        if (array->dimensions < MOST_DIMENSIONS) {
            array->shape[array->dimensions] = length;
        }
        array->dimensions++;
        (void)take_char(t, ',');
    }
    return true;
}

static bool take_entries(npy_text *t, npy_array *array) {
    int seen = 0;
    if (!take_char(t, '{')) {
        return false;
    }
    while (!take_char(t, '}')) {
        bool good = false;
        if (take_word(t, "'descr'")) {
            good = take_char(t, ':') && take_type(t, array);
            seen |= 1;
        } else if (take_word(t, "'fortran_order'")) {
            good = take_char(t, ':');
            array->fortran = good && take_word(t, "True");
            good = good && (array->fortran || take_word(t, "False"));
            seen |= 2;
        } else if (take_word(t, "'shape'")) {
            good = take_char(t, ':') && take_shape(t, array);
            seen |= 4;
        }
        if (!good) {
            return false;
        }
        (void)take_char(t, ',');
    }
    return seen == 7;
}

/* Reads the header; *data is where the values begin. */
static stk_status read_header(const uint8_t *bytes, size_t size, npy_array *array, size_t *data,
                              stk_error *err) {
    bool is_wide = size > MAGIC_BYTES && bytes[MAGIC_BYTES] >= 2;
    size_t from = is_wide ? MAGIC_BYTES + 6 : MAGIC_BYTES + 4;
    if (size < from) {
        return STK_FAIL(err, STK_ERR_DATA, "the array's head ends early: the file was cut off");
    }
    size_t length = (size_t)bytes[8] | (size_t)bytes[9] << 8;
    if (is_wide) {
        length |= (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
    }
    if (bytes[MAGIC_BYTES] < 1 || bytes[MAGIC_BYTES] > 3 || length > MOST_HEADER) {
        return STK_FAIL(err, STK_ERR_DATA,
                        "the array's head is not one that Stoker knows (version %d, %zu bytes)",
                        bytes[MAGIC_BYTES], length);
    }
    if (size - from < length) {
        return STK_FAIL(err, STK_ERR_DATA, "the array's head ends early: the file was cut off");
    }
    npy_text text = {(const char *)bytes + from, (const char *)bytes + from + length};
    if (!take_entries(&text, array)) {
        return STK_FAIL(err, STK_ERR_DATA,
                        "the array holds no plain numbers, or its head is damaged: store it as "
                        "whole numbers or floats");
    }
    *data = from + length;
    return STK_OK;
}

static bool find_type(const npy_array *array, stk_sample_type *type) {
    static const struct {
        char kind;
        int bytes;
        stk_sample_type type;
    } types[] = {{'b', 1, STK_SAMPLE_BOOL}, {'u', 1, STK_SAMPLE_U8},  {'i', 1, STK_SAMPLE_I8},
                 {'u', 2, STK_SAMPLE_U16},  {'i', 2, STK_SAMPLE_I16}, {'u', 4, STK_SAMPLE_U32},
                 {'i', 4, STK_SAMPLE_I32},  {'u', 8, STK_SAMPLE_U64}, {'i', 8, STK_SAMPLE_I64},
                 {'f', 2, STK_SAMPLE_F16},  {'f', 4, STK_SAMPLE_F32}, {'f', 8, STK_SAMPLE_F64}};
    for (size_t i = 0; i < STK_COUNT(types); i++) {
        if (types[i].kind == array->kind && types[i].bytes == array->bytes) {
            *type = types[i].type;
            return true;
        }
    }
    return false;
}

/* Which dimension is the channels; -1: none of three. */
static int channel_dimension(const npy_array *array) {
    int64_t first = array->shape[0];
    int64_t last = array->shape[2];
    int smaller = first < last ? 0 : 2;
    return array->shape[smaller] <= STK_IMAGE_MAX_CHANNELS ? smaller : -1;
}

/* Says where rows, columns and channels lie; sizes are at most INT32_MAX. */
static stk_status place(const npy_array *array, stk_samples *s, stk_error *err) {
    int64_t steps[MOST_DIMENSIONS] = {0}; /* values */
    int channel = array->dimensions == 3 ? channel_dimension(array) : -1;
    if (array->dimensions < 2 || array->dimensions > 3 || (array->dimensions == 3 && channel < 0)) {
        return STK_FAIL(err, STK_ERR_DATA,
                        "the array has %d dimensions%s; Stoker reads (rows, columns) and arrays of "
                        "three dimensions, the first or last of which is at most %d",
                        array->dimensions, array->dimensions == 3 ? ", each of them long" : "",
                        STK_IMAGE_MAX_CHANNELS);
    }
    int row = channel == 0 ? 1 : 0;
    int64_t channels = channel >= 0 ? array->shape[channel] : 1;
    stk_status status = stk_image_check_size(array->shape[row + 1], array->shape[row], err);
    if (status == STK_OK && channels < 1) {
        status = STK_FAIL(err, STK_ERR_DATA, "the array has no channels");
    }
    if (status != STK_OK) {
        return status;
    }
    int64_t step = 1;
    for (int i = 0; i < array->dimensions; i++) {
        int d = array->fortran ? i : array->dimensions - 1 - i;
        steps[d] = step;
        step *= array->shape[d];
    }
    size_t bytes = stk_sample_bytes(s->type);
    s->height = (int)array->shape[row];
    s->width = (int)array->shape[row + 1];
    s->channels = (int)channels;
    s->row_bytes = (size_t)steps[row] * bytes;
    s->column_bytes = (size_t)steps[row + 1] * bytes;
    s->channel_bytes = channel >= 0 ? (size_t)steps[channel] * bytes : bytes;
    return STK_OK;
}

static stk_status decode(const uint8_t *bytes, size_t size, const stk_image_receiver *receiver,
                         stk_error *err) {
    npy_array array = {0};
    size_t data = 0;
    stk_image_watch watch = stk_image_watch_start(receiver);
    stk_samples samples = {.format = "array"};
    stk_status status = read_header(bytes, size, &array, &data, err);
    if (status == STK_OK && !find_type(&array, &samples.type)) {
        status = STK_FAIL(err, STK_ERR_DATA,
                          "the array's values are of type %c%d, which Stoker does not read: store "
                          "them as whole numbers or floats",
                          array.kind, array.bytes);
    }
    STK_THEN(status, place(&array, &samples, err));
    if (status != STK_OK) {
        return status;
    }
    uint64_t needed = (uint64_t)samples.width * (uint64_t)samples.height *
                      (uint64_t)samples.channels * stk_sample_bytes(samples.type);
    if (size - data < needed) {
        return STK_FAIL(err, STK_ERR_DATA,
                        "the array needs %llu bytes and %zu are there: the file was cut off",
                        (unsigned long long)needed, size - data);
    }
    const uint16_t one = 1;
    bool is_little = *(const uint8_t *)&one == 1;
    samples.bytes = bytes + data;
    samples.swapped = array.order == (is_little ? '>' : '<');
    samples.alpha = samples.channels == 4 && receiver->channels != 4 && receiver->rows != NULL
                        ? STK_ALPHA_STRAIGHT
                        : STK_ALPHA_NONE;
    return stk_samples_give(&samples, receiver, &watch, err);
}

static bool recognises(const uint8_t *bytes, size_t size) {
    return size >= MAGIC_BYTES + 4 && memcmp(bytes, MAGIC, MAGIC_BYTES) == 0;
}

const stk_image_decoder stk_image_npy = {
    .name = "NumPy",
    .extension = "npy",
    .recognises = recognises,
    .any_channels = true,
    .decode = decode,
};
