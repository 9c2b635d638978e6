/*
 * window.c - which values of a picture, or of many, become black and white.
 *
 * Percentiles come from a grid of values: 128 x 128 of them tell a thousandth well enough, and take
 * little time beside decoding. A meter keeps the values of many pictures; when it is full it drops
 * every second one and takes fewer of later pictures, so that all count about the same.
 */
#include "image/decode/samples.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"

#define GRID 128                       /* values along a side that are looked at */
#define PER_MILLE 1                    /* of the values lie outside of the window, on each side */
#define METER_VALUES ((size_t)1 << 18) /* most values of a channel that a meter keeps */

struct stk_window_meter {
    int channels;                          /* of the pictures so far; 0: none yet */
    float *values[STK_IMAGE_MAX_CHANNELS]; /* owned: METER_VALUES each */
    size_t count[STK_IMAGE_MAX_CHANNELS];
    size_t every[STK_IMAGE_MAX_CHANNELS];  /* one value in so many is kept */
    size_t passed[STK_IMAGE_MAX_CHANNELS]; /* values since the last one that was kept */
};

/* Puts the value that would stand at place k of the sorted list there. */
static float select_value(float *values, size_t count, size_t k) {
    size_t low = 0;
    size_t high = count - 1;
    while (low < high) {
        float pivot = values[low + (high - low) / 2];
        size_t i = low;
        size_t j = high;
        while (i <= j) {
            while (values[i] < pivot) {
                i++;
            }
            while (pivot < values[j]) {
                j--;
            }
            if (i > j) {
                break;
            }
            float kept = values[i];
            values[i++] = values[j];
            values[j] = kept;
            if (j == 0) {
                break;
            }
            j--;
        }
        if (k <= j) {
            high = j;
        } else if (k >= i) {
            low = i;
        } else {
            break;
        }
    }
    return values[k];
}

/* The window of some values, whose order changes. No values: everything is black. */
static void bound(float *values, size_t count, float *lo, float *hi) {
    *lo = 0;
    *hi = 1;
    if (count > 0) {
        size_t outside = count * PER_MILLE / 1000;
        *lo = select_value(values, count, outside);
        *hi = select_value(values, count, count - 1 - outside);
    }
}

/* Collects the values of one channel on the grid; `row` has room for a row, `values` for all. */
static size_t collect(const stk_samples *s, int channel, float *row, float *values) {
    size_t count = 0;
    int rows = s->height < GRID ? s->height : GRID;
    int columns = s->width < GRID ? s->width : GRID;
    for (int j = 0; j < rows; j++) {
        int y = (int)((int64_t)(2 * j + 1) * s->height / (2 * rows));
        stk_samples_read(s, channel, 0, y, s->width, row);
        for (int i = 0; i < columns; i++) {
            float value = row[(int64_t)(2 * i + 1) * s->width / (2 * columns)];
            if (isfinite(value) && !(s->padded && value == s->padding)) {
                values[count++] = value;
            }
        }
    }
    return count;
}

static stk_status take_grid_room(const stk_samples *s, float **row, float **values,
                                 stk_error *err) {
    *row = stk_mem_raw((size_t)s->width, sizeof **row);
    *values = stk_mem_raw((size_t)GRID * GRID * (size_t)s->channels, sizeof **values);
    return *row != NULL && *values != NULL ? STK_OK
                                           : STK_FAIL_MEMORY(err, "the range of a picture");
}

/* Three channels are colours, whose ranges must not drift apart: they share a window. */
static bool shares(const stk_samples *s) {
    return s->channels - (s->alpha != STK_ALPHA_NONE ? 1 : 0) == 3;
}

static stk_status find_percentiles(const stk_samples *s, stk_window *window, stk_error *err) {
    float *row = NULL;
    float *values = NULL;
    stk_status status = take_grid_room(s, &row, &values, err);
    size_t count = 0;
    for (int c = 0; status == STK_OK && c < window->channels; c++) {
        count = shares(s) && c > 0 ? count : 0;
        count += collect(s, c, row, values + count);
        if (!shares(s)) {
            bound(values, count, &window->lo[c], &window->hi[c]);
        }
    }
    if (status == STK_OK && shares(s)) {
        bound(values, count, &window->lo[0], &window->hi[0]);
    }
    stk_mem_free(row);
    stk_mem_free(values);
    return status;
}

/* All bits that a row of one channel uses. */
static uint16_t bits_of_row(const stk_samples *s, int channel, int y) {
    const uint8_t *at = s->bytes + (size_t)y * s->row_bytes + (size_t)channel * s->channel_bytes;
    uint16_t bits = 0;
    for (size_t x = 0; x < (size_t)s->width; x++) {
        uint16_t value;
        memcpy(&value, at + x * s->column_bytes, sizeof value);
        bits |= value;
    }
    return s->swapped ? __builtin_bswap16(bits) : bits;
}

/* From 0 to the largest number of as many bits, 8 or more, as the picture uses. */
static stk_status find_bits(const stk_samples *s, stk_image_watch *watch, stk_window *window,
                            stk_error *err) {
    unsigned used = 0xff;
    for (int c = 0; c < window->channels; c++) {
        used = shares(s) ? used : 0xff;
        for (int y = 0; y < s->height && used < 0x8000; y++) {
            if (stk_image_halted(watch)) {
                return stk_image_refuse_halted(watch, s->format, err);
            }
            used |= bits_of_row(s, c, y);
        }
        unsigned most = 0xff;
        while (most < used) {
            most = 2 * most + 1;
        }
        window->hi[c] = (float)most;
    }
    window->hi[0] = shares(s) ? window->hi[2] : window->hi[0];
    return STK_OK;
}

stk_status stk_window_find(const stk_samples *s, stk_image_watch *watch, stk_window *window,
                           stk_error *err) {
    memset(window, 0, sizeof *window);
    window->channels = s->channels - (s->alpha != STK_ALPHA_NONE ? 1 : 0);
    stk_status status = s->type == STK_SAMPLE_U16 && !s->spread ? find_bits(s, watch, window, err)
                                                                : find_percentiles(s, window, err);
    for (int c = 1; shares(s) && c < 3; c++) {
        window->lo[c] = window->lo[0];
        window->hi[c] = window->hi[0];
    }
    return status;
}

/* ---- the meter ---- */

stk_status stk_window_meter_new(stk_window_meter **meter, stk_error *err) {
    *meter = stk_mem_new(1, sizeof **meter);
    return *meter != NULL ? STK_OK : STK_FAIL_MEMORY(err, "the range of pictures");
}

void stk_window_meter_free(stk_window_meter *meter) {
    for (int c = 0; meter != NULL && c < STK_IMAGE_MAX_CHANNELS; c++) {
        stk_mem_free(meter->values[c]);
    }
    stk_mem_free(meter);
}

static void keep(stk_window_meter *meter, int channel, float value) {
    float *values = meter->values[channel];
    if (++meter->passed[channel] < meter->every[channel]) {
        return;
    }
    meter->passed[channel] = 0;
    if (meter->count[channel] == METER_VALUES) {
        for (size_t i = 0; i < METER_VALUES / 2; i++) {
            values[i] = values[2 * i];
        }
        meter->count[channel] = METER_VALUES / 2;
        meter->every[channel] *= 2;
    }
    values[meter->count[channel]++] = value;
}

static stk_status expect_channels(stk_window_meter *meter, const stk_samples *s, int channels,
                                  stk_error *err) {
    if (meter->channels != 0 && meter->channels != channels) {
        return STK_FAIL(err, STK_ERR_DATA, "the %s has %d channels, and others have %d", s->format,
                        channels, meter->channels);
    }
    for (int c = 0; c < channels; c++) {
        if (meter->values[c] == NULL) {
            meter->values[c] = stk_mem_raw(METER_VALUES, sizeof *meter->values[c]);
            meter->every[c] = 1;
        }
        if (meter->values[c] == NULL) {
            return STK_FAIL_MEMORY(err, "the range of pictures");
        }
    }
    meter->channels = channels;
    return STK_OK;
}

stk_status stk_window_meter_take(stk_window_meter *meter, const stk_samples *s,
                                 stk_image_watch *watch, stk_error *err) {
    float *row = NULL;
    float *values = NULL;
    int channels = s->channels - (s->alpha != STK_ALPHA_NONE ? 1 : 0);
    if (s->own != NULL || s->type == STK_SAMPLE_U8 || s->type == STK_SAMPLE_BOOL) {
        return STK_ERR_STOPPED;
    }
    if (stk_image_halted(watch)) {
        return stk_image_refuse_halted(watch, s->format, err);
    }
    stk_status status = expect_channels(meter, s, channels, err);
    STK_THEN(status, take_grid_room(s, &row, &values, err));
    for (int c = 0; status == STK_OK && c < channels; c++) {
        size_t count = collect(s, c, row, values);
        for (size_t i = 0; i < count; i++) {
            keep(meter, c, values[i]);
        }
    }
    stk_mem_free(row);
    stk_mem_free(values);
    return status == STK_OK ? STK_ERR_STOPPED : status;
}

void stk_window_meter_end(const stk_window_meter *meter, stk_window *window) {
    memset(window, 0, sizeof *window);
    window->channels = meter->channels;
    for (int c = 0; c < meter->channels; c++) {
        bound(meter->values[c], meter->count[c], &window->lo[c], &window->hi[c]);
    }
    for (int c = 1; c < 3 && meter->channels == 3; c++) {
        window->lo[0] = fminf(window->lo[0], window->lo[c]);
        window->hi[0] = fmaxf(window->hi[0], window->hi[c]);
    }
    for (int c = 1; c < 3 && meter->channels == 3; c++) {
        window->lo[c] = window->lo[0];
        window->hi[c] = window->hi[0];
    }
}
