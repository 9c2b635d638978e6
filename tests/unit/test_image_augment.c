/*
 * test_image_augment.c - every change of a picture against its definition.
 *
 * References are written in floating point straight from the definitions. A level of difference is
 * allowed: definitions cut fractions off, so that a value that misses a whole number by the
 * rounding of a factor to 1/16384 or of a place to 1/256 px becomes the level below or above.
 */
#include "check.h"

#include "image/augment/ops.h"
#include "image/augment/draw.h"

#define MAX_SIZE 224
#define VALUES (3 * MAX_SIZE * MAX_SIZE)
#define GUARD 64
#define GUARD_BYTE 0xA5

static const int sizes[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 16, 17, 63, 64, 65, 224};
#define COUNT(array) (sizeof(array) / sizeof *(array))
#define SIZES COUNT(sizes)
static const double fill[3] = {124, 116, 104};

/* A picture with bytes around it that nobody may touch. */
typedef struct guarded {
    uint8_t before[GUARD];
    uint8_t room[VALUES + GUARD]; /* the guard follows the picture, wherever it ends */
} guarded;

static guarded original; /* what every test begins with */
static guarded picture;
static guarded spare;

static size_t values_of(int size) {
    return 3 * (size_t)size * (size_t)size;
}

static void put_guard(guarded *g, int size) {
    memset(g->before, GUARD_BYTE, GUARD);
    memset(g->room + values_of(size), GUARD_BYTE, GUARD);
}

static bool guard_holds(const guarded *g, int size) {
    for (int i = 0; i < GUARD; i++) {
        if (g->before[i] != GUARD_BYTE || g->room[values_of(size) + (size_t)i] != GUARD_BYTE) {
            return false;
        }
    }
    return true;
}

/* The first value is 255 and the last one 0, so that limits are always there. */
static void make_noise(int size, uint64_t seed) {
    stk_rng rng = stk_rng_make(seed, STK_RNG_TEST, 0, (uint64_t)size);
    size_t count = values_of(size);
    for (size_t i = 0; i < count; i++) {
        uint8_t value = (uint8_t)stk_rng_below(&rng, 256);
        original.room[i] = i == 0 ? 255 : i + 1 == count ? 0 : value;
    }
}

/*
 * Waves of up to 12 levels per pixel: where places are rounded to 1/256 px, a value then changes by
 * less than a tenth of a level, which noise would not allow.
 */
static void make_waves(int size) {
    for (int y = 0; y < size; y++) {
        for (int x = 0; x < size; x++) {
            for (int c = 0; c < 3; c++) {
                double wave = sin(0.08 * x + 0.5 * c) * cos(0.06 * y - 0.3 * c);
                original.room[3 * (y * size + x) + c] = (uint8_t)lround(128 + 120 * wave);
            }
        }
    }
}

/* Makes the change to a fresh copy of the picture. */
static void make(stk_change change, int size) {
    memcpy(picture.room, original.room, values_of(size));
    memset(spare.room, 77, values_of(size));
    put_guard(&picture, size);
    put_guard(&spare, size);
    stk_augment_make(&change, size, 3, picture.room, spare.room);
    CHECK(guard_holds(&picture, size));
    CHECK(guard_holds(&spare, size));
}

static double value_at(int size, int x, int y, int c) {
    return original.room[3 * (y * size + x) + c];
}

static double limited(double value) {
    return fmin(255, fmax(0, value));
}

static double grey_at(int size, int x, int y) {
    return floor(0.299 * value_at(size, x, y, 0) + 0.587 * value_at(size, x, y, 1) +
                 0.114 * value_at(size, x, y, 2) + 0.5);
}

static double mean_grey(int size) {
    double sum = 0;
    for (int y = 0; y < size; y++) {
        for (int x = 0; x < size; x++) {
            sum += grey_at(size, x, y);
        }
    }
    return floor(sum / size / size + 0.5);
}

static double blurred_at(int size, int x, int y, int c) {
    if (x == 0 || y == 0 || x == size - 1 || y == size - 1) {
        return value_at(size, x, y, c);
    }
    double sum = 4 * value_at(size, x, y, c);
    for (int j = -1; j <= 1; j++) {
        for (int i = -1; i <= 1; i++) {
            sum += value_at(size, x + i, y + j, c);
        }
    }
    return floor(sum / 13 + 0.5);
}

/* Through HSV and back, as textbooks do it. */
static double turned_hue_at(int size, int x, int y, int c, double turn) {
    double r = value_at(size, x, y, 0) / 255;
    double g = value_at(size, x, y, 1) / 255;
    double b = value_at(size, x, y, 2) / 255;
    double v = fmax(r, fmax(g, b));
    double chroma = v - fmin(r, fmin(g, b));
    double h = 0;
    if (chroma > 0) {
        h = v == r ? (g - b) / chroma : v == g ? 2 + (b - r) / chroma : 4 + (r - g) / chroma;
    }
    h = fmod(h + 6 * turn + 12, 6);
    double s = v > 0 ? chroma / v : 0;
    double f = h - floor(h);
    double p = v * (1 - s);
    double q = v * (1 - s * f);
    double t = v * (1 - s * (1 - f));
    const double rgb[6][3] = {{v, t, p}, {q, v, p}, {p, v, t}, {p, q, v}, {t, p, v}, {v, p, q}};
    return 255 * rgb[(int)h % 6][c];
}

static double sample_at(int size, double x, double y, int c) {
    double left = floor(x);
    double top = floor(y);
    double sum = 0;
    for (int j = 0; j < 2; j++) {
        for (int i = 0; i < 2; i++) {
            double from_x = left + i;
            double from_y = top + j;
            bool is_inside = from_x >= 0 && from_y >= 0 && from_x < size && from_y < size;
            double weight = (1 - fabs(x - from_x)) * (1 - fabs(y - from_y));
            sum += weight * (is_inside ? value_at(size, (int)from_x, (int)from_y, c) : fill[c]);
        }
    }
    return sum;
}

static double rotated_at(int size, int x, int y, int c, double degrees) {
    double angle = degrees * acos(-1) / 180;
    double middle = (size - 1) / 2.0;
    double from_x = middle + cos(angle) * (x - middle) - sin(angle) * (y - middle);
    double from_y = middle + sin(angle) * (x - middle) + cos(angle) * (y - middle);
    return sample_at(size, from_x, from_y, c);
}

static double expected_at(stk_change change, int size, int x, int y, int c, double mean) {
    double value = value_at(size, x, y, c);
    double factor = change.amount / (double)STK_FACTOR_ONE;
    double shear = change.amount / (double)STK_SHEAR_ONE;
    switch (change.kind) {
    case STK_CHANGE_IDENTITY:
        return value;
    case STK_CHANGE_BRIGHTNESS:
        return floor(limited(factor * value));
    case STK_CHANGE_CONTRAST:
        return floor(limited(mean + factor * (value - mean)));
    case STK_CHANGE_SATURATION: {
        double grey = grey_at(size, x, y);
        return floor(limited(grey + factor * (value - grey)));
    }
    case STK_CHANGE_SHARPNESS: {
        double blurred = blurred_at(size, x, y, c);
        return floor(limited(blurred + factor * (value - blurred)));
    }
    case STK_CHANGE_HUE:
        return turned_hue_at(size, x, y, c, change.amount / (6.0 * STK_HUE_SIXTH));
    case STK_CHANGE_POSTERIZE:
        return floor(value / pow(2, change.amount)) * pow(2, change.amount);
    case STK_CHANGE_SOLARIZE:
        return value >= change.amount ? 255 - value : value;
    case STK_CHANGE_ROTATE:
        return rotated_at(size, x, y, c, change.amount / 1000.0);
    case STK_CHANGE_SHEAR_X:
        return sample_at(size, x + shear * (y + 0.5), y, c);
    case STK_CHANGE_SHEAR_Y:
        return sample_at(size, x, y + shear * (x + 0.5), c);
    case STK_CHANGE_TRANSLATE_X:
        return sample_at(size, x - change.amount, y, c);
    case STK_CHANGE_TRANSLATE_Y:
        return sample_at(size, x, y - change.amount, c);
    case STK_CHANGE_ERASE:
        return x >= change.x && x < change.x + change.width && y >= change.y &&
                       y < change.y + change.height
                   ? fill[c]
                   : value;
    default:
        return -1000; /* not a change of single pixels */
    }
}

/* Compares all pixels after the change; one line of complaint is enough for a picture. */
static void compare(stk_change change, int size, double tolerance) {
    make(change, size);
    double mean = mean_grey(size);
    double worst = -1;
    int at = 0;
    for (int i = 0; i < 3 * size * size; i++) {
        double expected = expected_at(change, size, i / 3 % size, i / 3 / size, i % 3, mean);
        double difference = fabs(picture.room[i] - expected);
        if (difference > worst) {
            worst = difference;
            at = i;
        }
    }
    if (!(worst <= tolerance)) {
        CHECK_FAIL("kind %d amount %d size %d: value %d is %d, off by %.3f", (int)change.kind,
                   change.amount, size, at, picture.room[at], worst);
    }
}

static void compare_amounts(stk_change_kind kind, const int *amounts, size_t count,
                            double tolerance) {
    for (size_t i = 0; i < SIZES; i++) {
        for (size_t j = 0; j < count; j++) {
            make_noise(sizes[i], j);
            compare((stk_change){.kind = kind, .amount = amounts[j]}, sizes[i], tolerance);
        }
    }
}

static void blends_agree_with_their_definitions(void) {
    static const int factors[] = {0, 1, 1000, 8192, 16383, 16384, 16385, 21299, 30000, 32767};
    static const stk_change_kind kinds[] = {STK_CHANGE_BRIGHTNESS, STK_CHANGE_CONTRAST,
                                            STK_CHANGE_SATURATION, STK_CHANGE_SHARPNESS};
    for (size_t i = 0; i < COUNT(kinds); i++) {
        compare_amounts(kinds[i], factors, COUNT(factors), 1);
    }
}

/* No cutting off here, hence rounding's half a level and a sixteenth of fixed point. */
static void hue_agrees_with_hsv(void) {
    static const int turns[] = {-STK_HUE_MAX, -20000, -8192, -1,    0,          1,
                                333,          8192,   16384, 24000, STK_HUE_MAX};
    compare_amounts(STK_CHANGE_HUE, turns, COUNT(turns), 0.5 + 1.0 / 16);
}

/* Every colour of a coarse cube, since noise rarely has two equal channels. */
static void hue_of_every_kind_of_colour(void) {
    static const int levels[] = {0, 1, 60, 127, 128, 200, 254, 255};
    int size = 23; /* 529 pixels for 512 colours */
    memset(original.room, 90, values_of(size));
    for (int i = 0; i < 512; i++) {
        original.room[3 * i] = (uint8_t)levels[i & 7];
        original.room[3 * i + 1] = (uint8_t)levels[i >> 3 & 7];
        original.room[3 * i + 2] = (uint8_t)levels[i >> 6];
    }
    for (int turn = -STK_HUE_MAX; turn <= STK_HUE_MAX; turn += 1024) {
        compare((stk_change){.kind = STK_CHANGE_HUE, .amount = turn}, size, 0.5 + 1.0 / 16);
    }
}

static void levels_change_exactly(void) {
    static const int bits[] = {0, 1, 2, 3, 4, 5, 6, 7, 8};
    compare_amounts(STK_CHANGE_POSTERIZE, bits, COUNT(bits), 0);
    static const int thresholds[] = {0, 1, 127, 128, 129, 254, 255, 256};
    compare_amounts(STK_CHANGE_SOLARIZE, thresholds, COUNT(thresholds), 0);
}

static void autocontrast_stretches_each_channel(void) {
    for (size_t i = 0; i < SIZES; i++) {
        int size = sizes[i];
        make_noise(size, 3);
        for (size_t j = 0; j < values_of(size); j++) { /* red has one level, green 31, blue all */
            uint8_t *value = &original.room[j];
            *value = j % 3 == 0 ? 99 : j % 3 == 1 ? (uint8_t)(100 + *value % 31) : *value;
        }
        make((stk_change){.kind = STK_CHANGE_AUTOCONTRAST}, size);
        int low[3] = {255, 255, 255};
        int high[3] = {0, 0, 0};
        for (size_t j = 0; j < values_of(size); j++) {
            low[j % 3] = original.room[j] < low[j % 3] ? original.room[j] : low[j % 3];
            high[j % 3] = original.room[j] > high[j % 3] ? original.room[j] : high[j % 3];
        }
        for (size_t j = 0; j < values_of(size); j++) {
            double range = high[j % 3] - low[j % 3];
            double expected = original.room[j];
            if (range > 0) {
                expected = floor(255 * (original.room[j] - low[j % 3]) / range);
            }
            REQUIRE(picture.room[j] == expected);
        }
    }
}

/* The definition, with a count over the whole picture for each value. */
static double equalized(int size, size_t at) {
    const uint8_t *pixels = original.room;
    int highest = 0;
    double below = 0;
    for (size_t i = at % 3; i < values_of(size); i += 3) {
        highest = pixels[i] > highest ? pixels[i] : highest;
        below += pixels[i] < pixels[at];
    }
    double others = 0;
    for (size_t i = at % 3; i < values_of(size); i += 3) {
        others += pixels[i] != highest;
    }
    double step = floor(others / 255);
    return step == 0 ? pixels[at] : fmin(255, floor((below + floor(step / 2)) / step));
}

static void equalize_follows_the_histogram(void) {
    for (size_t i = 0; i < SIZES; i++) {
        int size = sizes[i];
        make_noise(size, 4);
        for (size_t j = 0; j < values_of(size); j++) { /* dark values are frequent */
            original.room[j] = (uint8_t)(original.room[j] * original.room[j] / 300);
        }
        make((stk_change){.kind = STK_CHANGE_EQUALIZE}, size);
        size_t step = size < 64 ? 1 : 487; /* all channels; the definition is slow */
        for (size_t j = 0; j < values_of(size); j += step) {
            REQUIRE(picture.room[j] == equalized(size, j));
        }
    }
    memset(original.room, 7, values_of(64));
    make((stk_change){.kind = STK_CHANGE_EQUALIZE}, 64);
    CHECK_INT(memcmp(picture.room, original.room, values_of(64)), 0);
}

static void moves_agree_with_their_definitions(void) {
    static const stk_change changes[] = {
        {.kind = STK_CHANGE_ROTATE, .amount = 1},
        {.kind = STK_CHANGE_ROTATE, .amount = 7500},
        {.kind = STK_CHANGE_ROTATE, .amount = -30000},
        {.kind = STK_CHANGE_ROTATE, .amount = 90000},
        {.kind = STK_CHANGE_ROTATE, .amount = -135000},
        {.kind = STK_CHANGE_ROTATE, .amount = 180000},
        {.kind = STK_CHANGE_SHEAR_X, .amount = 100},
        {.kind = STK_CHANGE_SHEAR_X, .amount = -19661},
        {.kind = STK_CHANGE_SHEAR_X, .amount = 64881},
        {.kind = STK_CHANGE_SHEAR_Y, .amount = 100},
        {.kind = STK_CHANGE_SHEAR_Y, .amount = -19661},
        {.kind = STK_CHANGE_SHEAR_Y, .amount = 64881},
    };
    for (size_t i = 0; i < SIZES; i++) {
        make_waves(sizes[i]);
        for (size_t j = 0; j < COUNT(changes); j++) {
            compare(changes[j], sizes[i], 1);
        }
    }
}

static void shifts_are_exact(void) {
    static const int shifts[] = {-300, -101, -9, -1, 0, 1, 2, 8, 32, 224};
    compare_amounts(STK_CHANGE_TRANSLATE_X, shifts, COUNT(shifts), 0);
    compare_amounts(STK_CHANGE_TRANSLATE_Y, shifts, COUNT(shifts), 0);
}

static void erasing_fills_its_rectangle(void) {
    for (size_t i = 0; i < SIZES; i++) {
        int size = sizes[i];
        make_noise(size, 5);
        for (int width = 0; width <= size; width += 1 + size / 3) {
            stk_change change = {.kind = STK_CHANGE_ERASE,
                                 .x = size - width,
                                 .y = width / 2,
                                 .width = width,
                                 .height = size - width / 2};
            compare(change, size, 0);
        }
    }
}

/* A change of no strength copies, even noise. */
static void strength_zero_is_the_identity(void) {
    static const stk_change changes[] = {
        {.kind = STK_CHANGE_IDENTITY},
        {.kind = STK_CHANGE_ROTATE},
        {.kind = STK_CHANGE_SHEAR_X},
        {.kind = STK_CHANGE_SHEAR_Y},
        {.kind = STK_CHANGE_TRANSLATE_X},
        {.kind = STK_CHANGE_TRANSLATE_Y},
        {.kind = STK_CHANGE_BRIGHTNESS, .amount = STK_FACTOR_ONE},
        {.kind = STK_CHANGE_CONTRAST, .amount = STK_FACTOR_ONE},
        {.kind = STK_CHANGE_SATURATION, .amount = STK_FACTOR_ONE},
        {.kind = STK_CHANGE_SHARPNESS, .amount = STK_FACTOR_ONE},
        {.kind = STK_CHANGE_HUE},
        {.kind = STK_CHANGE_POSTERIZE},
        {.kind = STK_CHANGE_SOLARIZE, .amount = 256},
        {.kind = STK_CHANGE_ERASE},
    };
    for (size_t i = 0; i < SIZES; i++) {
        make_noise(sizes[i], 6);
        for (size_t j = 0; j < COUNT(changes); j++) {
            make(changes[j], sizes[i]);
            CHECK_INT(memcmp(picture.room, original.room, values_of(sizes[i])), 0);
        }
    }
}

static const stk_augment_options everything = {
    .color_jitter = 0.4,
    .hue = 0.1,
    .rotate = 15,
    .augment = STK_POLICY_RANDAUGMENT,
    .augment_ops = 3,
    .augment_magnitude = 9,
    .erasing = 0.5,
};

static void apply(const stk_augment_options *options, int size, uint64_t index, uint8_t *out) {
    memcpy(picture.room, original.room, values_of(size));
    memset(spare.room, (int)index, values_of(size)); /* what was in it must not matter */
    put_guard(&picture, size);
    put_guard(&spare, size);
    stk_rng rng = stk_rng_make(1, STK_RNG_AUGMENT, 0, index);
    stk_augment_apply(options, size, 3, picture.room, spare.room, &rng);
    CHECK(guard_holds(&picture, size));
    CHECK(guard_holds(&spare, size));
    memcpy(out, picture.room, values_of(size));
}

static void the_generator_decides_everything(void) {
    static uint8_t first[VALUES];
    static uint8_t second[VALUES];
    for (size_t i = 0; i < SIZES; i++) {
        int size = sizes[i];
        make_noise(size, 7);
        int equal = 0;
        int tries = check_is_quick() ? 5 : 20;
        for (uint64_t index = 0; index < (uint64_t)tries; index++) {
            apply(&everything, size, index, first);
            memset(spare.room, 1, sizeof spare.room);
            apply(&everything, size, index, second);
            CHECK_INT(memcmp(first, second, values_of(size)), 0);
            apply(&everything, size, index + 100, second);
            equal += memcmp(first, second, values_of(size)) == 0;
        }
        CHECK(size < 3 ? equal < tries : equal == 0);
    }
}

/* FNV-1a. */
#define HASH_BEGIN 0xcbf29ce484222325u

static uint64_t hash_bytes(uint64_t hash, const uint8_t *bytes, size_t count) {
    for (size_t i = 0; i < count; i++) {
        hash = (hash ^ bytes[i]) * 0x100000001b3u;
    }
    return hash;
}

/*
 * The bytes are the same on every machine, with every compiler and with or without the instructions
 * that some processors have. A change of these numbers is a change of what training sees.
 */
static void bytes_are_the_same_everywhere(void) {
    static const stk_change changes[] = {
        {.kind = STK_CHANGE_BRIGHTNESS, .amount = 23456},
        {.kind = STK_CHANGE_CONTRAST, .amount = 23456},
        {.kind = STK_CHANGE_SATURATION, .amount = 23456},
        {.kind = STK_CHANGE_SHARPNESS, .amount = 23456},
        {.kind = STK_CHANGE_HUE, .amount = -12345},
        {.kind = STK_CHANGE_AUTOCONTRAST},
        {.kind = STK_CHANGE_EQUALIZE},
        {.kind = STK_CHANGE_ROTATE, .amount = 33333},
        {.kind = STK_CHANGE_SHEAR_X, .amount = 12345},
        {.kind = STK_CHANGE_SHEAR_Y, .amount = -12345},
    };
    static const uint64_t hashes[COUNT(changes)] = {
        0x218476974be437a0u, 0x03227b48cb60b2ccu, 0x33ef88ef00331918u, 0x43c3a198952cc840u,
        0x62fa9ab0d804c1f9u, 0xdb5761adda3a706eu, 0x7468deb731cbeb96u, 0x084a7f28049941a5u,
        0x601a08cc76022283u, 0x48c2c9e38f11121cu};
    for (size_t i = 0; i < COUNT(changes); i++) {
        uint64_t hash = HASH_BEGIN;
        for (int size = 1; size <= 131; size += 13) {
            make_noise(size, 9);
            make(changes[i], size);
            hash = hash_bytes(hash, picture.room, values_of(size));
        }
        if (hash != hashes[i]) {
            CHECK_FAIL("kind %d: the hash is 0x%016llx", (int)changes[i].kind,
                       (unsigned long long)hash);
        }
    }
    static uint8_t out[VALUES];
    uint64_t hash = HASH_BEGIN;
    make_noise(50, 10);
    for (uint64_t index = 0; index < 40; index++) {
        stk_augment_options options = everything;
        options.augment = index % 2 == 0 ? STK_POLICY_RANDAUGMENT : STK_POLICY_TRIVIALAUGMENT;
        apply(&options, 50, index, out);
        hash = hash_bytes(hash, out, values_of(50));
    }
    CHECK(hash == 0xd905fb20f3440326u);
}

static void every_policy_works_at_every_size(void) {
    static uint8_t out[VALUES];
    for (size_t i = 0; i < SIZES; i++) {
        make_noise(sizes[i], 8);
        for (uint64_t index = 0; index < (check_is_quick() ? 15 : 60); index++) {
            stk_augment_options options = everything;
            options.augment = STK_POLICY_TRIVIALAUGMENT;
            options.rotate = 180;
            apply(&options, sizes[i], index, out);
            options.augment = STK_POLICY_RANDAUGMENT;
            options.augment_magnitude = (int64_t)index / 2;
            apply(&options, sizes[i], index, out);
        }
    }
}

static const check_test tests[] = {
    TEST(blends_agree_with_their_definitions), TEST(hue_agrees_with_hsv),
    TEST(hue_of_every_kind_of_colour),         TEST(levels_change_exactly),
    TEST(autocontrast_stretches_each_channel), TEST(equalize_follows_the_histogram),
    TEST(moves_agree_with_their_definitions),  TEST(shifts_are_exact),
    TEST(erasing_fills_its_rectangle),         TEST(strength_zero_is_the_identity),
    TEST(the_generator_decides_everything),    TEST(bytes_are_the_same_everywhere),
    TEST(every_policy_works_at_every_size),
};

CHECK_MAIN(tests)
