/*
 * text.c - a diagnosis as lines with bars, and as a picture.
 *
 * Rates of stages differ a thousandfold. Bars are proportional up to a few times the rate of all
 * stages together, and cut off there.
 */
#include "probe/doctor/doctor.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/files/file.h"
#include "base/files/write_target.h"
#include "base/str.h"
#include "report/plots/plots.h"

/* The longest bar is this many times the rate of all together, or the best change if more. */
#define LONGEST 4.0
#define BAR_WIDTH 32

/* A change whose rate is closer than this to the rate without it has no effect. */
#define LITTLE_GAIN 0.03

/* A first epoch that takes so many times as long as others is mentioned. */
#define SLOWER 1.1

/* With a smaller share of the cores, other programs have falsified the figures. */
#define FAIR_SHARE 0.85

#define MOST_ROWS (10 + STK_MOST_WHAT_IFS)

typedef struct row {
    const char *label;
    double rate;
    bool marked;
    char more[128]; /* after the rate */
} row;

typedef struct rows {
    row items[MOST_ROWS];
    size_t count;
} rows;

/* "2,950" or "8.61"; "-" where there is none. */
static const char *show_rate(char *buf, size_t size, double rate) {
    if (!isfinite(rate)) {
        snprintf(buf, size, "-");
    } else if (rate < 100) {
        snprintf(buf, size, "%.3g", rate);
    } else {
        stk_format_count(buf, size, (uint64_t)(rate + 0.5));
    }
    return buf;
}

static row *add(rows *list, const char *label, double rate) {
    row *r = &list->items[list->count++];
    *r = (row){.label = label, .rate = rate};
    return r;
}

static void put_bytes(row *r, double bytes_per_second) {
    char bytes[32];
    if (isfinite(bytes_per_second) && bytes_per_second > 0) {
        snprintf(r->more, sizeof r->more, "%s/s",
                 stk_format_bytes(bytes, sizeof bytes, (uint64_t)bytes_per_second));
    }
}

static void put_step(row *r, const stk_diagnosis *f) {
    char ms[48];
    char fixed[48];
    int length = snprintf(r->more, sizeof r->more, "%s ms for %lld",
                          show_rate(ms, sizeof ms, f->step_ms), (long long)f->measured_batch);
    if (isfinite(f->fixed_ms)) {
        snprintf(r->more + length, sizeof r->more - (size_t)length, ", %s of them fixed",
                 show_rate(fixed, sizeof fixed, f->fixed_ms));
    }
}

/* The stages and all together; the narrowest is marked. */
static void list_stages(const stk_diagnosis *f, rows *list) {
    char rate[48];
    put_bytes(add(list, "storage, cold", f->storage_cold), f->cold_bytes);
    put_bytes(add(list, "storage, warm", f->storage_warm), f->warm_bytes);
    row *storage = &list->items[f->is_kept ? 1 : 0];
    row *decode = add(list, "decoding", f->decode);
    snprintf(decode->more, sizeof decode->more, "%d worker%s, %s each", f->workers,
             f->workers == 1 ? "" : "s", show_rate(rate, sizeof rate, f->decode_worker));
    (void)add(list, "loader", f->loader);
    row *copy = add(list, "copying to the device", f->copy);
    put_bytes(copy, f->copy_bytes);
    if (isinf(f->copy)) {
        snprintf(copy->more, sizeof copy->more, "none: the CPU computes where pictures are");
    }
    row *step = add(list, "training step", f->step);
    put_step(step, f);
    (void)add(list, "together, predicted", f->predicted);
    row *together = add(list, "together, measured", f->together);
    snprintf(together->more, sizeof together->more, "the step waits %.0f %%",
             100 * f->wait_fraction);
    const struct {
        const char *name;
        row *stage;
    } stages[] = {
        {"storage", storage}, {"decoding", decode}, {"copying", copy}, {"training step", step}};
    for (size_t i = 0; i < sizeof stages / sizeof *stages; i++) {
        stages[i].stage->marked = strcmp(stages[i].name, f->narrowest) == 0;
    }
}

static double longest(const stk_diagnosis *f) {
    double most = LONGEST * f->together;
    for (int i = 0; i < f->what_if_count; i++) {
        most = fmax(most, f->what_ifs[i].images_per_second);
    }
    return most;
}

/* The bar and what stands after it, without blanks at the end. */
static void put_bar(stk_str *text, double rate, double most, const char *after) {
    int length = rate > 0 ? (int)(BAR_WIDTH * fmin(rate / most, 1) + 0.5) : 0;
    char bar[BAR_WIDTH + 1];
    memset(bar, '#', BAR_WIDTH);
    bar[length] = '\0';
    if (isfinite(rate) && rate > most) {
        bar[length - 1] = '>';
    }
    const char *shown = isfinite(rate) ? bar : "";
    if (after[0] != '\0') {
        stk_str_appendf(text, "  %-*s  %s\n", BAR_WIDTH, shown, after);
    } else {
        stk_str_appendf(text, "%s%s\n", shown[0] != '\0' ? "  " : "", shown);
    }
}

static void put_head(const stk_diagnosis *f, stk_str *text) {
    char images[32];
    char bytes[32];
    stk_str_appendf(text, "%s at %d px, batch %lld, %s on %s: %s\n", f->model, f->img_size,
                    (long long)f->batch, f->precision, f->device, f->about);
    stk_str_appendf(
        text, "%s training images, %s and %.2f megapixels each; %d core%s, %d worker%s\n",
        stk_format_count(images, sizeof images, (uint64_t)f->images),
        stk_format_bytes(bytes, sizeof bytes, (uint64_t)f->picture_bytes), f->picture_px * 1e-6,
        f->cores, f->cores == 1 ? "" : "s", f->workers, f->workers == 1 ? "" : "s");
    if (f->core_share < FAIR_SHARE) {
        stk_str_appendf(text,
                        "others use the machine: decoding had %.0f %% of its cores' time, so that "
                        "rates are lower than they could be and may not fit together\n",
                        100 * f->core_share);
    }
    if (f->measured_batch != f->batch) {
        stk_str_appendf(
            text, "steps of batch %lld take too long for these --seconds: measured with %lld\n",
            (long long)f->batch, (long long)f->measured_batch);
    }
}

static void put_stages(const stk_diagnosis *f, double most, stk_str *text) {
    rows list = {0};
    list_stages(f, &list);
    stk_str_append(text, "\nalone                      images/s\n");
    for (size_t i = 0; i < list.count; i++) {
        const row *r = &list.items[i];
        char rate[48];
        char after[160];
        snprintf(after, sizeof after, "%s%s", r->more, r->marked ? "  <- narrowest" : "");
        stk_str_appendf(text, "%-24s %10s", r->label, show_rate(rate, sizeof rate, r->rate));
        put_bar(text, r->rate, most, after);
    }
}

static void put_narrowest(const stk_diagnosis *f, stk_str *text) {
    char rate[48];
    show_rate(rate, sizeof rate, f->together);
    stk_str_appendf(text, "The narrowest is %s%s. All together give %s images/s: %s an epoch",
                    strcmp(f->narrowest, "training step") == 0 ? "the " : "", f->narrowest, rate,
                    stk_format_span(f->epoch_s).text);
}

void stk_doctor_verdict(const stk_diagnosis *f, stk_str *text) {
    put_narrowest(f, text);
    double later_s = (double)f->images / f->predicted;
    if (f->is_kept && f->first_epoch_s > SLOWER * later_s) {
        stk_str_appendf(text, ", the first one about %s since nothing is near yet",
                        stk_format_span(f->first_epoch_s).text);
    }
    stk_str_append(text, ".");
}

static void put_what_ifs(const stk_diagnosis *f, double most, stk_str *text) {
    stk_str_append(text, "\nwhat if                           images/s   epoch   gain\n");
    for (int i = 0; i < f->what_if_count; i++) {
        const stk_what_if *w = &f->what_ifs[i];
        char rate[48];
        stk_str_appendf(text, "%-32s %9s %7s  %4.2fx", w->what,
                        show_rate(rate, sizeof rate, w->images_per_second),
                        stk_format_span(w->epoch_s).text, w->gain);
        put_bar(text, w->images_per_second, most, w->flags);
    }
    if (f->what_if_count > 0 && f->what_ifs[0].gain < 1 + LITTLE_GAIN) {
        stk_str_append(text, "None of these would make it faster.\n");
    }
}

void stk_doctor_print(const stk_diagnosis *f, stk_str *text) {
    double most = longest(f);
    put_head(f, text);
    put_stages(f, most, text);
    stk_str_append(text, "\n");
    stk_doctor_verdict(f, text);
    stk_str_append(text, "\n");
    put_what_ifs(f, most, text);
}

/* ---- the picture ---- */

static void fill_bar(stk_bar *bar, const char *label, double rate, bool marked, const char *more,
                     char *room, size_t size) {
    char number[48];
    snprintf(room, size, "%s%s%s", show_rate(number, sizeof number, rate), *more ? "  " : "", more);
    *bar = (stk_bar){label, room, isfinite(rate) ? rate : NAN, marked};
}

stk_status stk_doctor_can_draw(const char *path, stk_error *err) {
    stk_canvas *canvas = NULL;
    if (!stk_str_ends_with_nocase(path, ".png") && !stk_str_ends_with_nocase(path, ".svg")) {
        return STK_FAIL(err, STK_ERR_USAGE,
                        "--plot %s: pictures are PNG or SVG; give a name that ends with .png or "
                        ".svg",
                        path);
    }
    stk_status status = stk_write_target_check("--plot", path, err);
    STK_THEN(status, stk_canvas_for(&canvas, path, 1, 1, err));
    stk_canvas_free(canvas);
    return status;
}

stk_status stk_doctor_draw(const stk_diagnosis *f, const char *path, const stk_stop *stop,
                           stk_error *err) {
    const stk_file_how how = {.chosen = true, .stop = stop};
    rows list = {0};
    stk_bar bars[MOST_ROWS + 2];
    char texts[MOST_ROWS + 2][96];
    char title[160];
    stk_str below = {0};
    size_t count = 0;
    list_stages(f, &list);
    bars[count++] = (stk_bar){.label = "images per second, each alone"};
    for (size_t i = 0; i < list.count; i++, count++) {
        fill_bar(&bars[count], list.items[i].label, list.items[i].rate, list.items[i].marked, "",
                 texts[count], sizeof texts[count]);
    }
    bars[count++] = (stk_bar){.label = "what if"};
    for (int i = 0; i < f->what_if_count; i++, count++) {
        const stk_what_if *w = &f->what_ifs[i];
        char gain[24];
        snprintf(gain, sizeof gain, "%.2fx", w->gain);
        fill_bar(&bars[count], w->what, w->images_per_second, false, gain, texts[count],
                 sizeof texts[count]);
    }
    snprintf(title, sizeof title, "%s at %d px on %s", f->model, f->img_size, f->device);
    put_narrowest(f, &below);
    stk_bar_plot plot = {.title = title,
                         .below = stk_str_text(&below),
                         .bars = bars,
                         .count = count,
                         .most = longest(f)};
    stk_status status = stk_bar_plot_write(&plot, path, &how, err);
    stk_str_free(&below);
    return status;
}
