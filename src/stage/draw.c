/*
 * draw.c - draws a textured shape over clutter.
 *
 * Classes differ in form alone. Background and the texture's two colours get three clearly
 * different brightnesses in random order, and every hue is random, so no class has a mean colour of
 * its own. The shape lies inside the middle square of the picture, which evaluation crops. Shapes
 * are drawn with four samples per pixel; lines and blobs behind them fade over one pixel.
 */
#include "stage/draw.h"

#include <math.h>
#include <string.h>

#define PI 3.14159265358979323846
#define SIDE_MIN 72 /* px */
#define SIDE_MAX 180
#define LATTICE 6 /* points of the slow background noise along each side */

/* One texture period in units of the shape's radius: wide enough to be seen at 64 px. */
#define PERIOD 0.52

typedef struct colour {
    float channel[3]; /* 0 to 255 */
} colour;

/* State while one picture is drawn. */
typedef struct scene {
    stk_image *image;
    stk_rng rng;
    double short_side; /* px */
    colour ground;     /* mean colour of the background */
    colour first;      /* the two colours of the texture */
    colour second;
    double centre_x, centre_y; /* of the shape, px */
    double radius;             /* of the circle around the shape, px */
    double cosine, sine;       /* of its rotation */
    double tilt_x, tilt_y;     /* direction of the texture, in the shape's own frame */
    double period;             /* of the texture, in radii */
    double phase;              /* 0 to 1 */
    uint64_t grain;            /* random key of the grain */
} scene;

const char *const stk_draw_shape_names[STK_DRAW_SHAPES] = {
    "disc", "square", "triangle", "cross", "ring", "star", "bar", "crescent"};
const char *const stk_draw_texture_names[STK_DRAW_TEXTURES] = {"stripes", "checker", "dots",
                                                               "solid",   "grain",   "halves"};

/* Whether a point lies in the shape, which fits the unit circle. */
static bool inside_shape(int shape, double u, double v) {
    double r2 = u * u + v * v;
    if (r2 > 1) {
        return false;
    }
    double au = fabs(u);
    double av = fabs(v);
    switch (shape) {
    case 0: /* disc, made smaller so that its area is similar to that of the others */
        return r2 < 0.92 * 0.92;
    case 1: /* square */
        return au < 0.7 && av < 0.7;
    case 2: /* triangle: its corners on the unit circle */
        return v > -0.5 && 1.7320508 * au + v < 1;
    case 3: /* cross */
        return (au < 0.33 && av < 0.94) || (av < 0.33 && au < 0.94);
    case 4: /* ring */
        return r2 > 0.5 * 0.5;
    case 5: { /* star of five: the distance to the edge between tip and notch decides */
        double wedge = fabs(fmod(atan2(u, v) + 4 * PI + PI / 5, 2 * PI / 5) - PI / 5);
        double r = sqrt(r2);
        double x = r * cos(wedge);
        double y = r * sin(wedge);
        /* Tip (1, 0), notch 0.45 away at 36 degrees. */
        const double notch_x = 0.45 * 0.80901699;
        const double notch_y = 0.45 * 0.58778525;
        return (notch_x - 1) * y - notch_y * (x - 1) > 0;
    }
    case 6: /* bar */
        return au < 0.94 && av < 0.34;
    default: /* crescent: a disc without the part that another disc covers */
        return (u - 0.52) * (u - 0.52) + v * v > 0.76 * 0.76;
    }
}

static uint64_t hash_cell(uint64_t key, int64_t i, int64_t j) {
    stk_rng rng = {.key = key, .counter = (uint64_t)(i + 1000) * 4096 + (uint64_t)(j + 1000)};
    return stk_rng_u64(&rng);
}

/* Whether a point of the shape has the texture's second colour. */
static bool second_colour(const scene *s, int texture, double u, double v) {
    double along = (u * s->tilt_x + v * s->tilt_y) / s->period + s->phase;
    double across = (v * s->tilt_x - u * s->tilt_y) / s->period + s->phase;
    switch (texture) {
    case 0: /* stripes */
        return along - floor(along) < 0.5;
    case 1: /* checker */
        return (along - floor(along) < 0.5) != (across - floor(across) < 0.5);
    case 2: { /* dots, every other row shifted */
        double row = floor(across);
        double x = along + 0.5 * (row - 2 * floor(row / 2));
        x -= floor(x) + 0.5;
        double y = across - row - 0.5;
        return x * x + y * y < 0.33 * 0.33;
    }
    case 3: /* solid */
        return false;
    case 4: /* grain: small cells, each of a random colour */
        return (hash_cell(s->grain, (int64_t)floor(along * 4), (int64_t)floor(across * 4)) & 1) !=
               0;
    default: /* halves: divided by a line through the shape's middle */
        return u * s->tilt_x + v * s->tilt_y < 0;
    }
}

/* A colour of the given brightness and a random hue. */
static colour draw_colour(stk_rng *rng, double brightness) {
    double red = stk_rng_range(rng, -1, 1);
    double green = stk_rng_range(rng, -1, 1);
    double blue = stk_rng_range(rng, -1, 1);
    double mean = 0.3 * red + 0.59 * green + 0.11 * blue;
    double strength = stk_rng_range(rng, 10, 55);
    return (colour){{(float)(brightness + strength * (red - mean)),
                     (float)(brightness + strength * (green - mean)),
                     (float)(brightness + strength * (blue - mean))}};
}

/* Deals a dark, a middle and a bright brightness to the three colours in random order. */
static void choose_colours(scene *s) {
    double levels[3] = {stk_rng_range(&s->rng, 20, 60), stk_rng_range(&s->rng, 108, 148),
                        stk_rng_range(&s->rng, 196, 236)};
    for (int i = 2; i > 0; i--) {
        int j = (int)stk_rng_below(&s->rng, (uint64_t)i + 1);
        double kept = levels[i];
        levels[i] = levels[j];
        levels[j] = kept;
    }
    s->ground = draw_colour(&s->rng, levels[0]);
    s->first = draw_colour(&s->rng, levels[1]);
    s->second = draw_colour(&s->rng, levels[2]);
}

static void choose_shape_place(scene *s) {
    stk_rng *rng = &s->rng;
    s->radius = s->short_side * stk_rng_range(rng, 0.33, 0.45);
    double room = 0.47 * s->short_side - s->radius;
    s->centre_x = s->image->width / 2.0 + stk_rng_range(rng, -room, room);
    s->centre_y = s->image->height / 2.0 + stk_rng_range(rng, -room, room);
    double angle = stk_rng_range(rng, 0, 2 * PI);
    double tilt = stk_rng_range(rng, 0, 2 * PI);
    s->cosine = cos(angle);
    s->sine = sin(angle);
    s->tilt_x = cos(tilt);
    s->tilt_y = sin(tilt);
    s->period = PERIOD * stk_rng_range(rng, 0.85, 1.15);
    s->phase = stk_rng_uniform(rng);
    s->grain = stk_rng_u64(rng);
}

static void blend(uint8_t *pixel, colour c, double share) {
    for (int i = 0; i < 3; i++) {
        double value = pixel[i] + ((double)c.channel[i] - pixel[i]) * share;
        pixel[i] = (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value + 0.5);
    }
}

static uint8_t *pixel_at(const scene *s, int x, int y) {
    return s->image->pixels + 3 * ((size_t)y * (size_t)s->image->width + (size_t)x);
}

/* A slow change of brightness: a random lattice, smoothed, and a slope from side to side. */
static void paint_ground(scene *s) {
    double lattice[LATTICE][LATTICE];
    double slope_x = stk_rng_range(&s->rng, -22, 22);
    double slope_y = stk_rng_range(&s->rng, -22, 22);
    for (int j = 0; j < LATTICE; j++) {
        for (int i = 0; i < LATTICE; i++) {
            lattice[j][i] = stk_rng_range(&s->rng, -16, 16);
        }
    }
    for (int y = 0; y < s->image->height; y++) {
        double v = (double)y / s->image->height;
        int j = (int)(v * (LATTICE - 1));
        double down = v * (LATTICE - 1) - j;
        for (int x = 0; x < s->image->width; x++) {
            double u = (double)x / s->image->width;
            int i = (int)(u * (LATTICE - 1));
            double right = u * (LATTICE - 1) - i;
            double top = lattice[j][i] + (lattice[j][i + 1] - lattice[j][i]) * right;
            double low = lattice[j + 1][i] + (lattice[j + 1][i + 1] - lattice[j + 1][i]) * right;
            double change = top + (low - top) * down + slope_x * (u - 0.5) + slope_y * (v - 0.5);
            colour c = s->ground;
            for (int k = 0; k < 3; k++) {
                c.channel[k] += (float)change;
            }
            blend(pixel_at(s, x, y), c, 1);
        }
    }
}

/* Paints all points that are nearer than `thickness` to the line from a to b; a blob when a is b.
 */
static void paint_stroke(scene *s, double ax, double ay, double bx, double by, double thickness,
                         colour c, double share) {
    double dx = bx - ax;
    double dy = by - ay;
    double length2 = dx * dx + dy * dy;
    int left = (int)fmax(0, floor(fmin(ax, bx) - thickness - 1));
    int top = (int)fmax(0, floor(fmin(ay, by) - thickness - 1));
    int right = (int)fmin(s->image->width - 1, ceil(fmax(ax, bx) + thickness + 1));
    int bottom = (int)fmin(s->image->height - 1, ceil(fmax(ay, by) + thickness + 1));
    for (int y = top; y <= bottom; y++) {
        for (int x = left; x <= right; x++) {
            double px = x + 0.5 - ax;
            double py = y + 0.5 - ay;
            double t = length2 > 0 ? fmin(1, fmax(0, (px * dx + py * dy) / length2)) : 0;
            px -= t * dx;
            py -= t * dy;
            double cover = thickness + 0.5 - sqrt(px * px + py * py);
            if (cover > 0) {
                blend(pixel_at(s, x, y), c, share * fmin(1, cover));
            }
        }
    }
}

/* Lines and blobs of any brightness; much smaller than the shape. */
static void paint_clutter(scene *s) {
    stk_rng *rng = &s->rng;
    double width = s->image->width;
    double height = s->image->height;
    int lines = 2 + (int)stk_rng_below(rng, 5);
    for (int i = 0; i < lines; i++) {
        double ax = stk_rng_range(rng, 0, width);
        double ay = stk_rng_range(rng, 0, height);
        double bx = stk_rng_range(rng, 0, width);
        double by = stk_rng_range(rng, 0, height);
        double thickness = s->short_side * stk_rng_range(rng, 0.004, 0.012);
        colour c = draw_colour(rng, stk_rng_range(rng, 20, 236));
        paint_stroke(s, ax, ay, bx, by, thickness, c, 0.7);
    }
    int blobs = 3 + (int)stk_rng_below(rng, 7);
    for (int i = 0; i < blobs; i++) {
        double x = stk_rng_range(rng, 0, width);
        double y = stk_rng_range(rng, 0, height);
        double size = s->short_side * stk_rng_range(rng, 0.012, 0.045);
        double long_x = stk_rng_range(rng, -1, 1) * size;
        double long_y = stk_rng_range(rng, -1, 1) * size;
        colour c = draw_colour(rng, stk_rng_range(rng, 20, 236));
        paint_stroke(s, x - long_x, y - long_y, x + long_x, y + long_y, size, c, 0.8);
    }
}

static void paint_shape(scene *s, int shape, int texture) {
    int left = (int)fmax(0, floor(s->centre_x - s->radius));
    int top = (int)fmax(0, floor(s->centre_y - s->radius));
    int right = (int)fmin(s->image->width - 1, ceil(s->centre_x + s->radius));
    int bottom = (int)fmin(s->image->height - 1, ceil(s->centre_y + s->radius));
    for (int y = top; y <= bottom; y++) {
        for (int x = left; x <= right; x++) {
            int firsts = 0;
            int seconds = 0;
            for (int k = 0; k < 4; k++) {
                double px = (x + 0.25 + 0.5 * (k & 1) - s->centre_x) / s->radius;
                double py = (y + 0.25 + 0.5 * (k >> 1) - s->centre_y) / s->radius;
                double u = px * s->cosine + py * s->sine;
                double v = py * s->cosine - px * s->sine;
                if (inside_shape(shape, u, v)) {
                    bool second = second_colour(s, texture, u, v);
                    seconds += second;
                    firsts += !second;
                }
            }
            int covered = firsts + seconds;
            if (covered > 0) {
                colour c;
                for (int i = 0; i < 3; i++) {
                    c.channel[i] = (s->first.channel[i] * (float)firsts +
                                    s->second.channel[i] * (float)seconds) /
                                   (float)covered;
                }
                blend(pixel_at(s, x, y), c, covered / 4.0);
            }
        }
    }
}

/* A camera's noise over everything: one number of 64 bits gives all three channels of a pixel. */
static void paint_noise(scene *s) {
    int strength = 2 + (int)stk_rng_below(&s->rng, 6);
    size_t count = (size_t)s->image->width * (size_t)s->image->height;
    for (size_t i = 0; i < count; i++) {
        uint64_t bits = stk_rng_u64(&s->rng);
        for (int c = 0; c < 3; c++) {
            int noise = (int)(bits >> (16 * c) & 0xFF) + (int)(bits >> (16 * c + 8) & 0xFF) - 255;
            int value = s->image->pixels[3 * i + (size_t)c] + noise * strength / 128;
            s->image->pixels[3 * i + (size_t)c] = (uint8_t)(value < 0     ? 0
                                                            : value > 255 ? 255
                                                                          : value);
        }
    }
}

stk_status stk_draw_picture(stk_image *image, int shape, int texture, stk_rng rng, stk_error *err) {
    int long_side = SIDE_MIN + (int)stk_rng_below(&rng, SIDE_MAX - SIDE_MIN + 1);
    int short_side = (int)(long_side * stk_rng_range(&rng, 0.65, 1));
    short_side = short_side < SIDE_MIN ? SIDE_MIN : short_side;
    bool wide = stk_rng_below(&rng, 2) == 1;
    stk_status status =
        stk_image_new(image, wide ? long_side : short_side, wide ? short_side : long_side, err);
    if (status != STK_OK) {
        return status;
    }
    memset(image->pixels, 0, (size_t)image->width * (size_t)image->height * 3);
    scene s = {.image = image, .rng = rng, .short_side = short_side};
    choose_colours(&s);
    choose_shape_place(&s);
    paint_ground(&s);
    paint_clutter(&s);
    paint_shape(&s, shape, texture);
    paint_noise(&s);
    return STK_OK;
}
