/*
 * augment.c - which random changes a picture gets, and in which order.
 *
 * Ranges are torchvision's, whose policies have 31 strengths, 0 to 30. Drawn numbers become whole
 * numbers at once; see draw.h.
 */
#include "image/augment/augment.h"

#include <assert.h>
#include <math.h>

#include "image/augment/ops.h"
#include "image/augment/draw.h"

#define STRENGTH_MAX 30
#define TRIVIAL_SHIFT_PX 32 /* largest translation of TrivialAugment, whatever the size */
#define ERASE_TRIES 10
#define ERASE_AREA_MIN 0.02 /* of the picture */
#define ERASE_AREA_MAX 0.33
#define ERASE_ASPECT_MIN 0.3 /* height by width */
#define ERASE_ASPECT_MAX 3.3

#define FACTOR(x) ((int)((x)*STK_FACTOR_ONE + 0.5))
#define SHEAR(x) ((int)((x)*STK_SHEAR_ONE + 0.5))

/* One operation that policies choose from. */
typedef struct policy_change {
    stk_change_kind kind;
    int rest;    /* amount at strength 0 */
    bool either; /* the change is positive or negative, with equal probability */
    int most[3]; /* by policy: difference between the amounts at strengths 30 and 0 */
} policy_change;

/*
 * Solarize starts at threshold 255, which already inverts white, as in torchvision. The amounts of
 * translations depend on the picture's size; see change_at().
 */
static const policy_change operations[] = {
    {STK_CHANGE_IDENTITY, 0, false, {0, 0, 0}},
    {STK_CHANGE_SHEAR_X, 0, true, {0, SHEAR(0.3), SHEAR(0.99)}},
    {STK_CHANGE_SHEAR_Y, 0, true, {0, SHEAR(0.3), SHEAR(0.99)}},
    {STK_CHANGE_TRANSLATE_X, 0, true, {0, 0, 0}},
    {STK_CHANGE_TRANSLATE_Y, 0, true, {0, 0, 0}},
    {STK_CHANGE_ROTATE, 0, true, {0, 30000, 135000}},
    {STK_CHANGE_BRIGHTNESS, STK_FACTOR_ONE, true, {0, FACTOR(0.9), FACTOR(0.99)}},
    {STK_CHANGE_SATURATION, STK_FACTOR_ONE, true, {0, FACTOR(0.9), FACTOR(0.99)}},
    {STK_CHANGE_CONTRAST, STK_FACTOR_ONE, true, {0, FACTOR(0.9), FACTOR(0.99)}},
    {STK_CHANGE_SHARPNESS, STK_FACTOR_ONE, true, {0, FACTOR(0.9), FACTOR(0.99)}},
    {STK_CHANGE_POSTERIZE, 0, false, {0, 4, 6}},
    {STK_CHANGE_SOLARIZE, 255, false, {0, -255, -255}},
    {STK_CHANGE_AUTOCONTRAST, 0, false, {0, 0, 0}},
    {STK_CHANGE_EQUALIZE, 0, false, {0, 0, 0}},
};
#define OPERATIONS (sizeof operations / sizeof *operations)

_Static_assert(STK_POLICY_RANDAUGMENT == 1 && STK_POLICY_TRIVIALAUGMENT == 2,
               "operation.most is indexed by policy");

static stk_change *add(stk_augment_draw *draw, stk_change_kind kind, int amount) {
    assert(draw->count < STK_DRAW_CHANGES);
    stk_change *change = &draw->changes[draw->count++];
    *change = (stk_change){.kind = kind, .amount = amount};
    return change;
}

static void draw_rotation(const stk_augment_options *options, stk_rng *rng,
                          stk_augment_draw *draw) {
    if (options->rotate > 0) {
        double degrees = stk_rng_range(rng, -options->rotate, options->rotate);
        add(draw, STK_CHANGE_ROTATE, (int)lround(degrees * 1000));
    }
}

static int draw_factor(double change, stk_rng *rng) {
    double low = change < 1 ? 1 - change : 0;
    long factor = lround(stk_rng_range(rng, low, 1 + change) * STK_FACTOR_ONE);
    return (int)(factor < STK_FACTOR_MAX ? factor : STK_FACTOR_MAX);
}

/*
 * The four changes of colour jitter in random order. All numbers are drawn even if a change is off,
 * so that turning one off does not alter the others.
 */
static void draw_jitter(const stk_augment_options *options, stk_rng *rng, stk_augment_draw *draw) {
    if (!(options->color_jitter > 0) && !(options->hue > 0)) {
        return;
    }
    stk_change parts[] = {{.kind = STK_CHANGE_BRIGHTNESS},
                          {.kind = STK_CHANGE_CONTRAST},
                          {.kind = STK_CHANGE_SATURATION},
                          {.kind = STK_CHANGE_HUE}};
    for (int i = 0; i < 3; i++) {
        parts[i].amount = draw_factor(options->color_jitter, rng);
    }
    parts[3].amount =
        (int)lround(stk_rng_range(rng, -options->hue, options->hue) * 6 * STK_HUE_SIXTH);
    for (uint64_t left = 4; left > 0; left--) {
        uint64_t chosen = stk_rng_below(rng, left);
        stk_change part = parts[chosen];
        parts[chosen] = parts[left - 1];
        if (part.kind == STK_CHANGE_HUE ? options->hue > 0 : options->color_jitter > 0) {
            add(draw, part.kind, part.amount);
        }
    }
}

/*
 * Difference between the amounts at this strength and at strength 0. Rounded as torchvision does:
 * lengths and thresholds towards strength 0, others to the nearest.
 */
static int change_at(const policy_change *op, int policy, int strength, int size) {
    int64_t most = op->most[policy];
    switch (op->kind) {
    case STK_CHANGE_TRANSLATE_X:
    case STK_CHANGE_TRANSLATE_Y:
        if (policy == STK_POLICY_TRIVIALAUGMENT) {
            return TRIVIAL_SHIFT_PX * strength / STRENGTH_MAX;
        }
        return (int)((int64_t)150 * size * strength / (331 * STRENGTH_MAX));
    case STK_CHANGE_SOLARIZE:
        return (int)(most * strength / STRENGTH_MAX);
    default:
        return (int)((most * strength + STRENGTH_MAX / 2) / STRENGTH_MAX);
    }
}

static void draw_policy(const stk_augment_options *options, int size, stk_rng *rng,
                        stk_augment_draw *draw) {
    bool is_trivial = options->augment == STK_POLICY_TRIVIALAUGMENT;
    int64_t count = is_trivial ? 1 : options->augment_ops;
    assert(options->augment == STK_POLICY_NONE || count <= STK_AUGMENT_MAX_OPS);
    if (options->augment == STK_POLICY_NONE) {
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        const policy_change *op = &operations[stk_rng_below(rng, OPERATIONS)];
        int strength = is_trivial ? (int)stk_rng_below(rng, STRENGTH_MAX + 1)
                                  : (int)options->augment_magnitude;
        assert(strength >= 0 && strength <= STRENGTH_MAX);
        int change = change_at(op, options->augment, strength, size);
        bool is_less = op->either && stk_rng_below(rng, 2) == 1;
        add(draw, op->kind, op->rest + (is_less ? -change : change));
    }
}

/* A rectangle as wide or as high as the picture is drawn again, up to ten times. */
static void draw_erasing(const stk_augment_options *options, int size, stk_rng *rng,
                         stk_augment_draw *draw) {
    if (!(options->erasing > 0) || !(stk_rng_uniform(rng) < options->erasing)) {
        return;
    }
    for (int i = 0; i < ERASE_TRIES; i++) {
        double area = stk_rng_range(rng, ERASE_AREA_MIN, ERASE_AREA_MAX) * size * size;
        double aspect = exp(stk_rng_range(rng, log(ERASE_ASPECT_MIN), log(ERASE_ASPECT_MAX)));
        int height = (int)lround(sqrt(area * aspect));
        int width = (int)lround(sqrt(area / aspect));
        if (height < size && width < size) {
            stk_change *change = add(draw, STK_CHANGE_ERASE, 0);
            change->width = width;
            change->height = height;
            change->y = (int)stk_rng_below(rng, (uint64_t)size - (uint64_t)height + 1);
            change->x = (int)stk_rng_below(rng, (uint64_t)size - (uint64_t)width + 1);
            return;
        }
    }
}

void stk_augment_choose(const stk_augment_options *options, int size, stk_rng *rng,
                        stk_augment_draw *draw) {
    draw->count = 0;
    draw_rotation(options, rng, draw);
    draw_jitter(options, rng, draw);
    draw_policy(options, size, rng, draw);
    draw_erasing(options, size, rng, draw);
}

/* Changes that move pixels; false: the change is of another kind. */
static bool move_pixels(const stk_change *change, int size, int channels, uint8_t *pixels,
                        uint8_t *spare) {
    switch (change->kind) {
    case STK_CHANGE_SHEAR_X:
        stk_augment_shear_x(size, channels, pixels, spare, change->amount);
        break;
    case STK_CHANGE_SHEAR_Y:
        stk_augment_shear_y(size, channels, pixels, spare, change->amount);
        break;
    case STK_CHANGE_TRANSLATE_X:
        stk_augment_translate_x(size, channels, pixels, change->amount);
        break;
    case STK_CHANGE_TRANSLATE_Y:
        stk_augment_translate_y(size, channels, pixels, change->amount);
        break;
    case STK_CHANGE_ROTATE:
        stk_augment_rotate(size, channels, pixels, spare, change->amount);
        break;
    case STK_CHANGE_ERASE:
        stk_augment_erase(size, channels, pixels, change->x, change->y, change->width,
                          change->height);
        break;
    default:
        return false;
    }
    return true;
}

void stk_augment_make(const stk_change *change, int size, int channels, uint8_t *pixels,
                      uint8_t *spare) {
    if (move_pixels(change, size, channels, pixels, spare) || channels != 3) {
        return;
    }
    switch (change->kind) {
    case STK_CHANGE_BRIGHTNESS:
        stk_augment_brightness(size, pixels, change->amount);
        break;
    case STK_CHANGE_SATURATION:
        stk_augment_saturation(size, pixels, change->amount);
        break;
    case STK_CHANGE_CONTRAST:
        stk_augment_contrast(size, pixels, change->amount);
        break;
    case STK_CHANGE_SHARPNESS:
        stk_augment_sharpness(size, pixels, spare, change->amount);
        break;
    case STK_CHANGE_POSTERIZE:
        stk_augment_posterize(size, pixels, change->amount);
        break;
    case STK_CHANGE_SOLARIZE:
        stk_augment_solarize(size, pixels, change->amount);
        break;
    case STK_CHANGE_AUTOCONTRAST:
        stk_augment_autocontrast(size, pixels);
        break;
    case STK_CHANGE_EQUALIZE:
        stk_augment_equalize(size, pixels);
        break;
    case STK_CHANGE_HUE:
        stk_augment_hue(size, pixels, change->amount);
        break;
    default:
        break;
    }
}

bool stk_augment_map_of(const stk_change *change, int size, stk_augment_map *map) {
    switch (change->kind) {
    case STK_CHANGE_SHEAR_X:
        *map = stk_augment_shear_x_map(change->amount);
        break;
    case STK_CHANGE_SHEAR_Y:
        *map = stk_augment_shear_y_map(change->amount);
        break;
    case STK_CHANGE_ROTATE:
        *map = stk_augment_rotate_map(size, change->amount);
        break;
    default:
        return false;
    }
    return true;
}

bool stk_augment_is_needed(const stk_augment_options *options) {
    return options->rotate > 0 || options->color_jitter > 0 || options->hue > 0 ||
           options->augment == STK_POLICY_TRIVIALAUGMENT ||
           (options->augment == STK_POLICY_RANDAUGMENT && options->augment_ops > 0) ||
           options->erasing > 0;
}

void stk_augment_apply(const stk_augment_options *options, int size, int channels, uint8_t *pixels,
                       uint8_t *spare, stk_rng *rng) {
    stk_augment_draw draw;
    stk_augment_choose(options, size, rng, &draw);
    for (int i = 0; i < draw.count; i++) {
        stk_augment_make(&draw.changes[i], size, channels, pixels, spare);
    }
}
