/*
 * changes.c - predicts the effect of changes: the arithmetic of monitor/rates.h on rates that were
 * measured with the change wherever that was possible.
 */
#include <stdio.h>
#include <stdlib.h>

#include "probe/doctor/phases.h"

static const char measured[] = "measured";
static const char computed[] = "computed";

typedef struct change_table {
    const stk_rates *rates; /* without a change, the loader's overhead included */
    double overhead_s;
    double base;       /* images per second without any change */
    double batch_gain; /* step rate with the whole batch divided by that with the measured batch */
    stk_diagnosis *found;
} change_table;

/* One worker's rate, the loader's overhead included. */
static double with_overhead(double decode, double overhead_s) {
    return 1 / (1 / decode + overhead_s);
}

/* Adds a row with its rates; the caller writes the words. NULL: there is no room or no number. */
static stk_what_if *add(change_table *t, const stk_rates *rates, const char *basis) {
    stk_stage_kind narrowest;
    stk_diagnosis *found = t->found;
    double rate = stk_rates_together(rates, &narrowest);
    if (!(rate > 0) || found->what_if_count == STK_MOST_WHAT_IFS) {
        return NULL;
    }
    stk_what_if *row = &found->what_ifs[found->what_if_count++];
    *row = (stk_what_if){.images_per_second = rate,
                         .epoch_s = (double)rates->images / rate,
                         .gain = rate / t->base,
                         .narrowest = stk_stage_name(narrowest),
                         .basis = basis};
    return row;
}

static void add_workers(change_table *t, double all_cores) {
    const stk_rates *r = t->rates;
    int workers = r->workers < r->cores ? r->cores : 2 * r->workers;
    stk_rates changed = stk_rates_with_workers(r, workers);
    if (r->workers < r->cores && all_cores > 0) {
        changed.decode = with_overhead(all_cores, t->overhead_s);
    }
    stk_what_if *row = add(t, &changed, r->workers < r->cores ? measured : computed);
    if (row != NULL) {
        snprintf(row->what, sizeof row->what, "%d workers", workers);
        snprintf(row->flags, sizeof row->flags, "--workers %d", workers);
    }
}

static void add_cores(change_table *t) {
    int cores = 2 * t->rates->cores;
    stk_rates changed = stk_rates_with_cores(t->rates, cores);
    stk_what_if *row = add(t, &changed, computed);
    if (row != NULL) {
        snprintf(row->what, sizeof row->what, "%d cores like these", cores);
    }
}

static void add_staged(change_table *t, const doctor_changes *c) {
    stk_rates near = stk_rates_cached(t->rates); /* storage never limits what is cached */
    stk_what_if *row = add(t, &near, computed);
    if (row != NULL) {
        snprintf(row->what, sizeof row->what, "staged as it is, near by");
        snprintf(row->flags, sizeof row->flags, "stoker stage SRC DEST");
    }
    if (!c->staging_shrinks || !(c->staged > 0)) {
        return;
    }
    stk_rates small = stk_rates_staged(t->rates, c->stage_side_px);
    small.decode = with_overhead(c->staged, t->overhead_s);
    row = add(t, &small, measured);
    if (row != NULL) {
        snprintf(row->what, sizeof row->what, "staged at %d px", c->stage_side_px);
        snprintf(row->flags, sizeof row->flags, "stoker stage SRC DEST --max-side %d",
                 stk_rates_max_side(c->stage_side_px));
    }
}

static void add_caches(change_table *t, const doctor_changes *c) {
    stk_rates cached = stk_rates_cached(t->rates);
    stk_what_if *row = add(t, &cached, computed);
    if (row != NULL) {
        snprintf(row->what, sizeof row->what, "pictures kept in memory");
        snprintf(row->flags, sizeof row->flags, "--cache ram");
    }
    if (!(c->decoded > 0)) {
        return;
    }
    cached.decode = with_overhead(c->decoded, t->overhead_s);
    row = add(t, &cached, measured);
    if (row != NULL) {
        snprintf(row->what, sizeof row->what, "decoded pictures kept in memory");
        snprintf(row->flags, sizeof row->flags, "--cache decoded");
    }
}

static void add_batch(change_table *t, const doctor_changes *c) {
    int64_t batch = 2 * t->rates->batch;
    stk_rates changed = stk_rates_with_batch(t->rates, batch);
    bool tried = c->double_step > 0 && t->found->measured_batch == t->rates->batch;
    changed.step = tried ? c->double_step : changed.step;
    stk_what_if *row = add(t, &changed, tried ? measured : computed);
    if (row != NULL) {
        snprintf(row->what, sizeof row->what, "batch %lld", (long long)batch);
        snprintf(row->flags, sizeof row->flags, "--batch %lld", (long long)batch);
    }
}

static void add_smaller(change_table *t, const doctor_changes *c) {
    if (c->small_size == 0) {
        return;
    }
    stk_rates changed = stk_rates_with_img_size(t->rates, c->small_size);
    changed.decode =
        c->small_decode > 0 ? with_overhead(c->small_decode, t->overhead_s) : changed.decode;
    bool tried = c->small_step > 0;
    changed.step = tried ? c->small_step * t->batch_gain : changed.step;
    stk_what_if *row = add(t, &changed, tried ? measured : computed);
    if (row != NULL) {
        snprintf(row->what, sizeof row->what, "training at %d px", c->small_size);
        snprintf(row->flags, sizeof row->flags, "--img-size %d", c->small_size);
    }
}

static int by_gain(const void *a, const void *b) {
    double x = ((const stk_what_if *)a)->gain;
    double y = ((const stk_what_if *)b)->gain;
    return (x < y) - (x > y);
}

void stk_doctor_predict(const stk_rates *rates, const doctor_changes *changes, double overhead_s,
                        stk_diagnosis *found) {
    stk_rates now = *rates;
    stk_stage_kind narrowest;
    now.decode = with_overhead(rates->decode, overhead_s);
    found->predicted = stk_rates_together(&now, &narrowest);
    found->narrowest = stk_stage_name(narrowest);
    stk_rates whole = stk_rates_with_batch(&now, found->batch);
    change_table t = {.rates = &whole,
                      .overhead_s = overhead_s,
                      .base = stk_rates_together(&whole, NULL),
                      .batch_gain = whole.step / now.step,
                      .found = found};
    add_workers(&t, changes->all_cores);
    add_cores(&t);
    add_staged(&t, changes);
    add_caches(&t, changes);
    add_batch(&t, changes);
    add_smaller(&t, changes);
    qsort(found->what_ifs, (size_t)found->what_if_count, sizeof *found->what_ifs, by_gain);
    stk_rates first = whole;
    first.storage = found->storage_cold;
    found->first_epoch_s = (double)rates->images / stk_rates_together(&first, NULL);
}
