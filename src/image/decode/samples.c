/*
 * samples.c - numbers of any type become 8-bit rows.
 *
 * A row is read channel by channel into floats, passes the window and is put between the other
 * channels. Bytes are copied as they are.
 */
#include "image/decode/samples.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"

/* ---- rows ---- */

/* Values become levels; what is no number becomes 0. */
static void pass_window(const float *values, size_t count, float from, float scale, uint8_t *out,
                        size_t step) {
    for (size_t i = 0; i < count; i++) {
        float level = (values[i] - from) * scale + 0.5f;
        level = level > 0 ? level : 0;
        level = level < 255 ? level : 255;
        out[i * step] = (uint8_t)level;
    }
}

/* What the rows of one picture need. */
typedef struct row_maker {
    const stk_samples *samples;
    const stk_image_part *part;
    stk_window window;
    int wanted;      /* channels of the output */
    int given;       /* channels without alpha */
    float *values;   /* owned: a row of one channel */
    uint8_t *levels; /* owned: a row of all channels; NULL unless alpha or grey needs it */
} row_maker;

static bool is_plain(const stk_samples *s) {
    return s->type == STK_SAMPLE_U8 && !s->inverted && s->own == NULL;
}

/* One channel of row y to every `step`th byte from `out` on. */
static void make_channel(const row_maker *m, int channel, int y, uint8_t *out, size_t step) {
    const stk_samples *s = m->samples;
    size_t count = (size_t)m->part->width;
    if (is_plain(s)) {
        const uint8_t *at = s->bytes + (size_t)y * s->row_bytes +
                            (size_t)m->part->x * s->column_bytes +
                            (size_t)channel * s->channel_bytes;
        for (size_t i = 0; i < count; i++) {
            out[i * step] = at[i * s->column_bytes];
        }
        return;
    }
    float lo = m->window.lo[channel];
    float hi = m->window.hi[channel];
    float scale = hi > lo ? 255 / (hi - lo) : 0;
    stk_samples_read(s, channel, m->part->x, y, m->part->width, m->values);
    if (s->inverted && channel < m->given) {
        pass_window(m->values, count, hi, -scale, out, step);
    } else {
        pass_window(m->values, count, lo, scale, out, step);
    }
}

/* Lays `given` colours with alpha behind them over white, in place and closer together. */
static void lay_over_white(const row_maker *m, uint8_t *row) {
    size_t from = (size_t)m->samples->channels;
    size_t to = (size_t)m->given;
    for (size_t i = 0; i < (size_t)m->part->width; i++) {
        unsigned alpha = row[i * from + to];
        for (size_t c = 0; c < to; c++) {
            unsigned value = row[i * from + c];
            unsigned mixed = (value * alpha + 255 * (255 - alpha) + 127) / 255;
            unsigned added = value + 255 - alpha;
            unsigned level = m->samples->alpha == STK_ALPHA_STRAIGHT ? mixed : added;
            row[i * to + c] = (uint8_t)(level < 255 ? level : 255);
        }
    }
}

/* Grey to RGB, or RGB to grey. */
static void change_channels(const row_maker *m, const uint8_t *row, uint8_t *out) {
    size_t count = (size_t)m->part->width;
    for (size_t i = 0; i < count && m->given == 1; i++) {
        memset(out + 3 * i, row[i], 3);
    }
    if (m->given == 3) {
        stk_image_to_grey(row, count, out);
    }
}

static void make_row(const row_maker *m, int y, uint8_t *out) {
    const stk_samples *s = m->samples;
    bool mixes = s->alpha == STK_ALPHA_STRAIGHT || s->alpha == STK_ALPHA_DONE;
    int read = mixes ? s->channels : m->given;
    uint8_t *row = m->levels != NULL ? m->levels : out;
    if (is_plain(s) && s->channel_bytes == 1 && s->column_bytes == (size_t)read) {
        memcpy(row, s->bytes + (size_t)y * s->row_bytes + (size_t)m->part->x * s->column_bytes,
               (size_t)m->part->width * s->column_bytes);
    } else {
        for (int c = 0; c < read; c++) {
            make_channel(m, c, y, row + c, (size_t)read);
        }
    }
    if (mixes) {
        lay_over_white(m, row);
    }
    if (m->given != m->wanted) {
        change_channels(m, row, out);
    } else if (row != out) {
        memcpy(out, row, (size_t)m->part->width * (size_t)m->wanted);
    }
}

/* ---- the whole ---- */

static int without_alpha(const stk_samples *s) {
    return s->channels - (s->alpha != STK_ALPHA_NONE ? 1 : 0);
}

stk_image_info stk_samples_info(const stk_samples *s) {
    int given = without_alpha(s);
    return (stk_image_info){.width = s->width,
                            .height = s->height,
                            .channels = given == 1 ? 3 : given,
                            .divides = s->divides,
                            .orientation = s->orientation > 0 ? s->orientation : 1,
                            .whole_bytes = s->whole_bytes};
}

static stk_status check_channels(const stk_samples *s, const stk_image_receiver *to,
                                 stk_error *err) {
    int given = without_alpha(s);
    int wanted = to->channels > 0 ? to->channels : 3;
    bool header_only = to->rows == NULL;
    if (given == wanted || header_only ||
        ((wanted == 1 || wanted == 3) && (given == 1 || given == 3))) {
        return STK_OK;
    }
    return STK_FAIL(err, STK_ERR_DATA, "the %s has %d channels, and pictures of %d are wanted",
                    s->format, given, wanted);
}

/* The window for alpha, which nobody measures: whole numbers up to their largest, others up to 1.
 */
static float full_alpha(stk_sample_type type) {
    return type == STK_SAMPLE_U8 ? 255 : type == STK_SAMPLE_U16 ? 65535 : 1;
}

static stk_status choose_window(row_maker *m, const stk_image_receiver *to, stk_image_watch *watch,
                                stk_error *err) {
    const stk_samples *s = m->samples;
    stk_status status = STK_OK;
    const stk_window *given = s->own != NULL ? s->own : to->window;
    if (s->type == STK_SAMPLE_U8 && s->own == NULL) {
        for (int c = 0; c < s->channels; c++) {
            m->window.hi[c] = 255;
        }
    } else if (s->type == STK_SAMPLE_BOOL) {
        for (int c = 0; c < s->channels; c++) {
            m->window.hi[c] = 1;
        }
    } else if (given != NULL && given->channels == m->given) {
        m->window = *given;
    } else {
        status = stk_window_find(s, watch, &m->window, err);
    }
    if (s->alpha != STK_ALPHA_NONE) {
        m->window.lo[s->channels - 1] = 0;
        m->window.hi[s->channels - 1] = full_alpha(s->type);
    }
    return status;
}

static stk_status open_rows(row_maker *m, const stk_image_receiver *to, stk_image_watch *watch,
                            stk_error *err) {
    const stk_samples *s = m->samples;
    stk_status status = choose_window(m, to, watch, err);
    STK_THEN(status, to->rows(to->user, m->part->x, m->part->width, err));
    if (status != STK_OK) {
        return status;
    }
    bool mixes = s->alpha == STK_ALPHA_STRAIGHT || s->alpha == STK_ALPHA_DONE;
    bool changes = mixes || m->given != m->wanted;
    size_t width = (size_t)m->part->width;
    m->values = is_plain(s) ? NULL : stk_mem_raw(width, sizeof *m->values);
    m->levels = changes ? stk_mem_raw(width, (size_t)s->channels) : NULL;
    if ((m->values == NULL && !is_plain(s)) || (m->levels == NULL && changes)) {
        return STK_FAIL_MEMORY(err, "decoding a picture");
    }
    return STK_OK;
}

stk_status stk_samples_give_part(const stk_samples *s, const stk_image_part *part,
                                 const stk_image_receiver *to, stk_image_watch *watch,
                                 stk_error *err) {
    if (to->meter != NULL) {
        return stk_window_meter_take(to->meter, s, watch, err);
    }
    row_maker m = {.samples = s,
                   .part = part,
                   .wanted = to->channels > 0 ? to->channels : 3,
                   .given = without_alpha(s)};
    stk_status status = open_rows(&m, to, watch, err);
    for (int y = part->y; status == STK_OK && y < part->y + part->height; y++) {
        if (stk_image_halted(watch)) {
            status = stk_image_refuse_halted(watch, s->format, err);
            break;
        }
        make_row(&m, y, to->room(to->user, 1));
        to->take(to->user, 1);
    }
    stk_mem_free(m.values);
    stk_mem_free(m.levels);
    return status;
}

stk_status stk_samples_ask(const stk_samples *s, const stk_image_receiver *to,
                           stk_image_watch *watch, stk_image_part *part, stk_error *err) {
    stk_image_info info = stk_samples_info(s);
    *part = (stk_image_part){.divisor = 1, .width = s->width, .height = s->height};
    if (stk_image_halted(watch)) {
        return stk_image_refuse_halted(watch, s->format, err);
    }
    if (to->meter != NULL) {
        return STK_OK;
    }
    stk_status status = check_channels(s, to, err);
    return status == STK_OK ? to->begin(to->user, &info, part, err) : status;
}

stk_status stk_samples_give(const stk_samples *s, const stk_image_receiver *to,
                            stk_image_watch *watch, stk_error *err) {
    stk_image_part part;
    stk_status status = stk_samples_ask(s, to, watch, &part, err);
    return status == STK_OK ? stk_samples_give_part(s, &part, to, watch, err) : status;
}
