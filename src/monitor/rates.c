/*
 * rates.c - the speed of all stages together, and the rates after a change.
 *
 * Each formula is the simplest one that predicts well. Stages on hardware of their own overlap, so
 * the slowest decides. The times of stages that share cores add up.
 */
#include "monitor/rates.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/str.h"

/*
 * Decoding time grows with the pixels to this power: the JPEG transform scales large pictures down
 * as it decodes, and every picture has a fixed cost. For 0.09 to 0.8 million pixels, at 128 and
 * 224 px, the prediction is within 22 % of the measured time, mostly below.
 */
#define DECODE_POWER 0.8

/* A decoded picture must still be cropped and scaled: measured 3.4 to 3.6 times as fast. */
#define DECODED_GAIN 3.0

/*
 * What one engine of an H200 decodes: its seven decode 25,000 pictures of 500 by 375 px a second.
 * Engines of other GPUs are taken to be as fast.
 */
#define ENGINE_RATE (25000.0 / 7)
#define ENGINE_PX (500.0 * 375.0)

/* Least use of the device's engines, percent, that says how fast they are. */
#define LEAST_UTIL 5.0

/* Photographs are mostly 4:3 or 3:4. */
#define LONG_SIDE 4
#define SHORT_SIDE 3

/* Evaluation uses the middle 7/8 of the shorter side (timm's crop of 0.875). */
#define STAGED_SIDE 8
#define SEEN_SIDE 7

const char *stk_stage_name(stk_stage_kind stage) {
    static const char *const names[STK_STAGE_COUNT] = {
        [STK_STAGE_STORAGE] = "storage",
        [STK_STAGE_DECODE] = "decoding",
        [STK_STAGE_COPY] = "copying",
        [STK_STAGE_STEP] = "training step",
    };
    return names[stage];
}

stk_rate_text stk_rates_text(double rate) {
    stk_rate_text shown;
    if (!(rate >= 0) || isinf(rate)) {
        snprintf(shown.text, sizeof shown.text, "?");
    } else if (rate < 9.95) {
        snprintf(shown.text, sizeof shown.text, "%.1f", rate);
    } else {
        stk_format_count(shown.text, sizeof shown.text, (uint64_t)llround(rate));
    }
    return shown;
}

/* More workers than cores decode no faster. */
static double cores_rate(const stk_rates *rates) {
    return rates->decode * (rates->workers < rates->cores ? rates->workers : rates->cores);
}

/*
 * The cores decode H images a second and the device G; it can decode the share s of the pictures.
 * The cores decode the others in any case, so that there are at most H / (1 - s). Where whoever has
 * time decodes, both together decode H + G. Where the device comes first, it decodes its share at
 * G, which makes G / s.
 */
static double decode_rate(const stk_rates *rates) {
    double cores = cores_rate(rates);
    double device = rates->device_decode;
    double share = rates->device_share;
    if (!(share > 0)) {
        return cores;
    }
    double by_others = share < 1 ? cores / (1 - share) : NAN;
    double by_device = rates->device_first ? device / share : device + (cores > 0 ? cores : 0);
    return fmin(by_others, by_device); /* NaN counts only where both are */
}

double stk_rates_of(const stk_rates *rates, stk_stage_kind stage) {
    switch (stage) {
    case STK_STAGE_STORAGE:
        return rates->storage;
    case STK_STAGE_DECODE:
        return decode_rate(rates);
    case STK_STAGE_COPY:
        return rates->copy;
    default:
        return rates->step;
    }
}

static bool known(double rate) {
    return rate > 0; /* not NaN */
}

static double seconds_of(double rate) {
    return known(rate) ? 1 / rate : 0;
}

/*
 * Images per second of C cores that both decode and compute the step. S is the step rate on all
 * cores, D the decode rate of one core. An image takes 1/D core seconds to decode and C/S in the
 * step. C core seconds pass in a second, and no core idles while the loader is ahead. So the rate
 * is C / (1/D + C/S) = 1 / (1/S + 1/(C D)).
 *
 * With W < C workers, the cores that decode make the others wait at the end of every operation of
 * the step. If each core had a fixed part of an operation, decoding would delay the step as if
 * there were only W cores: 1/(W D). Since parts are handed out as cores become free, the model
 * takes that delay for one core of C and the formula above for the others. On 2 cores the result is
 * within 3 % of the measurement, with 1 worker and with 2.
 */
static double shared_rate(const stk_rates *rates) {
    double cores = rates->cores;
    double workers = rates->workers < rates->cores ? rates->workers : cores;
    double held = 1 + 1 / workers - 1 / cores;
    return 1 / (seconds_of(rates->step) + held * seconds_of(rates->decode * cores));
}

double stk_rates_together(const stk_rates *rates, stk_stage_kind *narrowest) {
    stk_stage_kind least_stage = STK_STAGE_STEP;
    double least = NAN;
    for (int stage = 0; stage < STK_STAGE_COUNT; stage++) {
        double rate = stk_rates_of(rates, (stk_stage_kind)stage);
        if (known(rate) && !(rate >= least)) {
            least = rate;
            least_stage = (stk_stage_kind)stage;
        }
    }
    if (rates->on_host && known(rates->step) && known(rates->decode)) {
        double shared = shared_rate(rates);
        if (shared < least) {
            least = shared;
            least_stage =
                rates->step <= rates->decode * rates->cores ? STK_STAGE_STEP : STK_STAGE_DECODE;
        }
    }
    if (narrowest != NULL) {
        *narrowest = least_stage;
    }
    return least;
}

/* Seconds of a step that do not grow with the batch; at most the whole step. */
static double fixed_of(const stk_rates *rates) {
    double step_s = (double)rates->batch / rates->step;
    return rates->fixed_s > 0 ? fmin(rates->fixed_s, step_s) : 0;
}

/* The step rate for another batch when the part that grows with it takes `factor` times as long. */
static double step_after(const stk_rates *rates, int64_t batch, double factor) {
    if (!known(rates->step) || isinf(rates->step) || rates->batch <= 0 || batch <= 0) {
        return rates->step;
    }
    double fixed_s = fixed_of(rates);
    double image_s = 1 / rates->step - fixed_s / (double)rates->batch;
    return (double)batch / (fixed_s + (double)batch * image_s * factor);
}

/* How many times as fast pictures of the second size are decoded as those of the first. */
static double decode_gain(double px, double other_px) {
    return pow(px / other_px, DECODE_POWER);
}

void stk_rates_take_decoded(stk_rates *rates, const stk_decoded *d) {
    double on_device = fmin(d->device_images, d->images);
    double on_cores = d->images - on_device;
    double engines_s = d->jpeg_util >= LEAST_UTIL ? d->jpeg_util / 100 * d->seconds : 0;
    rates->decode = on_cores > 0 && d->cores_s > 0 ? on_cores / d->cores_s : NAN;
    rates->device_decode = !(on_device > 0) ? 0 : engines_s > 0 ? on_device / engines_s : NAN;
    rates->device_share = d->images > 0 ? on_device / d->images : NAN;
}

double stk_rates_of_engines(const stk_rates *rates, int engines) {
    return engines > 0 && rates->source_px > 0
               ? engines * ENGINE_RATE * decode_gain(ENGINE_PX, rates->source_px)
               : NAN;
}

/* Mean pixels of a picture after staging at this shorter side; never more than before. */
static double staged_px(const stk_rates *rates, int short_side_px) {
    double wanted = (double)short_side_px * short_side_px * LONG_SIDE / SHORT_SIDE;
    return wanted < rates->source_px ? wanted : rates->source_px;
}

bool stk_rates_shrinks(const stk_rates *rates, int short_side_px) {
    return !rates->native && staged_px(rates, short_side_px) < rates->source_px;
}

int stk_rates_stage_side(int img_size) {
    return (img_size * STAGED_SIDE + SEEN_SIDE - 1) / SEEN_SIDE;
}

int stk_rates_max_side(int short_side_px) {
    return (short_side_px * LONG_SIDE + SHORT_SIDE - 1) / SHORT_SIDE;
}

stk_rates stk_rates_with_workers(const stk_rates *rates, int workers) {
    stk_rates changed = *rates;
    changed.workers = workers;
    return changed;
}

stk_rates stk_rates_with_device(const stk_rates *rates, double device_decode) {
    stk_rates changed = *rates;
    changed.device_decode = device_decode;
    changed.device_share = rates->device_share > 0 ? rates->device_share : 1;
    changed.device_first = false;
    return changed;
}

stk_rates stk_rates_with_cores(const stk_rates *rates, int cores) {
    stk_rates changed = *rates;
    changed.cores = cores;
    changed.workers = cores;
    if (rates->on_host && rates->cores > 0 && cores > 0) {
        changed.step = step_after(rates, rates->batch, (double)rates->cores / cores);
    }
    return changed;
}

stk_rates stk_rates_with_batch(const stk_rates *rates, int64_t batch) {
    stk_rates changed = *rates;
    changed.batch = batch;
    changed.step = step_after(rates, batch, 1);
    return changed;
}

stk_rates stk_rates_staged(const stk_rates *rates, int short_side_px) {
    stk_rates changed = *rates;
    changed.storage = INFINITY;
    if (stk_rates_shrinks(rates, short_side_px)) {
        changed.source_px = staged_px(rates, short_side_px);
        double gain = decode_gain(rates->source_px, changed.source_px);
        changed.decode *= gain;
        changed.device_decode *= gain;
    }
    return changed;
}

stk_rates stk_rates_with_img_size(const stk_rates *rates, int img_size) {
    stk_rates changed = *rates;
    if (img_size <= 0 || rates->img_size <= 0) {
        return changed;
    }
    double ratio = (double)img_size / rates->img_size;
    changed.img_size = img_size;
    changed.step = step_after(rates, rates->batch, ratio * ratio);
    changed.copy /= ratio * ratio;
    return changed;
}

stk_rates stk_rates_cached(const stk_rates *rates) {
    stk_rates changed = *rates;
    changed.storage = INFINITY;
    return changed;
}

stk_rates stk_rates_decoded(const stk_rates *rates) {
    stk_rates changed = stk_rates_cached(rates);
    changed.decode *= DECODED_GAIN;
    changed.device_decode = 0;
    changed.device_share = 0;
    return changed;
}
