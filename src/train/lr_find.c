/* lr_find.c - the learning-rate range test: a short training, after which the weights are restored.
 */
#include "train/lr_find.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"

/* The moving mean spans about a tenth of the test: eight tenths of a power of ten. */
#define SMOOTHED_PART 0.1

/*
 * The first quarter of the test learns nothing: it shows the initial loss, and how much batches
 * differ by chance. The loss has fallen when its moving mean is below the initial loss by more than
 * LEAST_FALL of that, and by more than LEAST_DEVIATIONS deviations of single steps.
 */
#define QUIET_PART 4
#define LEAST_FALL 0.02
#define LEAST_DEVIATIONS 1.5

/* Share of the fall from the initial to the lowest loss: a loss this near to the lowest is as low.
 */
#define NEARLY 0.1

/* Factor below the rate of the lowest loss, which is at the edge of what works. */
#define SAFETY 3.0

double stk_lr_at(int i, int steps) {
    return STK_LR_FROM * pow(STK_LR_TO / STK_LR_FROM, (double)i / (steps - 1));
}

static double lowest(const stk_lr_point *points, int from, int to) {
    double least = INFINITY;
    for (int i = from; i < to; i++) {
        least = fmin(least, points[i].smoothed);
    }
    return least;
}

bool stk_lr_add(stk_lr_point *points, int i, int steps, double lr, double loss) {
    double keep = fmax(1 - 1 / (SMOOTHED_PART * steps), 0);
    /* A moving mean from nothing is too low by this factor at first. */
    double before = 1 - pow(keep, i);
    double after = 1 - pow(keep, i + 1);
    double last = i > 0 ? points[i - 1].smoothed : 0;
    points[i] = (stk_lr_point){lr, loss, (keep * before * last + (1 - keep) * loss) / after};
    return !isfinite(loss) || points[i].smoothed > STK_LR_EXPLOSION * lowest(points, 0, i + 1);
}

/* Mean and deviation of the losses of single steps. */
static void measure(const stk_lr_point *points, int count, double *mean, double *deviation) {
    double sum = 0;
    double squares = 0;
    for (int i = 0; i < count; i++) {
        sum += points[i].loss;
    }
    *mean = sum / count;
    for (int i = 0; i < count; i++) {
        squares += (points[i].loss - *mean) * (points[i].loss - *mean);
    }
    *deviation = sqrt(squares / count);
}

double stk_lr_suggest(const stk_lr_point *points, int count) {
    int quiet = count / QUIET_PART;
    if (quiet < 1) {
        return NAN;
    }
    double start;
    double deviation;
    measure(points, quiet, &start, &deviation);
    double least = lowest(points, quiet, count);
    if (!(start - least > fmax(LEAST_FALL * start, LEAST_DEVIATIONS * deviation))) {
        return NAN;
    }
    int best = quiet;
    while (points[best].smoothed > least + NEARLY * (start - least)) {
        best++;
    }
    char text[32];
    snprintf(text, sizeof text, "%.1e", points[best].lr / SAFETY);
    return strtod(text, NULL);
}

void stk_lr_curve_free(stk_lr_curve *curve) {
    stk_mem_free(curve->points);
    *curve = (stk_lr_curve){.suggestion = NAN};
}

typedef struct lr_finder {
    const stk_lr_find_config *config;
    stk_lr_curve *curve;
    stk_exec *exec;
    stk_loader *loader;
    float *initial; /* owned: all parameters before the test */
    uint64_t step;
    double images;
    int64_t start_ns;
} lr_finder;

/* Copies the parameters from the state to `initial`, or back. */
static stk_status copy_weights(const lr_finder *f, bool back, stk_error *err) {
    const stk_lr_find_config *c = f->config;
    stk_status status = STK_OK;
    for (int p = 0; p < c->graph->param_count && status == STK_OK; p++) {
        float *values = f->initial + c->graph->params[p].offset;
        status = back ? c->backend->state_write(c->state, STK_TENSOR_VALUE, p, values, err)
                      : c->backend->state_read(c->state, STK_TENSOR_VALUE, p, values, err);
    }
    return status == STK_OK && back ? stk_train_reset_state(c->backend, c->state, c->graph, err)
                                    : status;
}

static stk_status open_finder(lr_finder *f, stk_error *err) {
    const stk_lr_find_config *c = f->config;
    f->curve->points = stk_mem_new((size_t)c->steps, sizeof *f->curve->points);
    f->initial = stk_mem_raw(c->graph->param_elements, sizeof *f->initial);
    stk_status status = f->curve->points != NULL && f->initial != NULL
                            ? copy_weights(f, false, err)
                            : STK_FAIL_MEMORY(err, "the learning-rate test");
    STK_THEN(status, c->backend->compile(&f->exec, c->state, &c->compile, err));
    if (status == STK_OK) {
        stk_loader_config data = c->train_data;
        data.batch = c->compile.batch;
        data.order = STK_LOADER_TRAINING;
        status = stk_loader_start(&f->loader, &data, err);
    }
    return status;
}

/* One batch of an update; the last batch updates the weights. */
static stk_status run_batch(lr_finder *f, bool first, const stk_update *update, double *loss_sum,
                            double *images, stk_error *err) {
    const stk_lr_find_config *c = f->config;
    const stk_train_options *o = c->options;
    const stk_batch *batch = NULL;
    stk_status status = stk_loader_next(f->loader, &batch, err);
    if (status != STK_OK) {
        return status;
    }
    stk_step_input input = {
        .images = batch->images,
        .labels = batch->labels,
        .targets = batch->targets,
        .features = batch->features,
        .count = batch->count,
        .mix = stk_mix_draw(o->mixup, o->cutmix, c->seed, f->step, c->graph->img_size),
        .label_smoothing = (float)o->label_smoothing,
        .seed = c->seed,
        .step = f->step,
        .keep_gradients = !first,
        .update = update};
    stk_step_output output = {0};
    status = c->backend->step(f->exec, &input, &output, err);
    *loss_sum += output.loss_sum;
    *images += (double)batch->count;
    stk_loader_release(f->loader, batch);
    f->step++;
    return status;
}

static stk_status run_step(lr_finder *f, int i, double *loss, stk_error *err) {
    const stk_train_options *o = f->config->options;
    double lr = stk_lr_at(i, f->config->steps);
    stk_update_point point = {.lr = lr, .head_lr = lr, .steps = o->accumulate, .updates = i};
    stk_update update = stk_update_make(o, &point);
    double sum = 0;
    double images = 0;
    stk_status status = STK_OK;
    for (int64_t k = 0; k < o->accumulate && status == STK_OK; k++) {
        bool last = k + 1 == o->accumulate;
        status = run_batch(f, k == 0, last ? &update : NULL, &sum, &images, err);
    }
    f->images += images;
    *loss = images > 0 ? sum / images : NAN;
    return status;
}

static void tell(const lr_finder *f, int done) {
    double elapsed = stk_clock_since_s(f->start_ns);
    stk_event_progress event = {.what = "learning-rate test",
                                .done = done,
                                .total = f->config->steps,
                                .bytes = -1,
                                .per_second = f->images / elapsed,
                                .bytes_per_second = NAN,
                                .left_s = elapsed / done * (f->config->steps - done)};
    stk_events_progress(f->config->events, &event);
}

static void tell_bad(void *user, const char *path, const char *reason) {
    const lr_finder *f = user;
    stk_events_bad_image(f->config->events, path, "train", reason);
}

static stk_status run_steps(lr_finder *f, stk_error *err) {
    const stk_lr_find_config *c = f->config;
    stk_lr_curve *curve = f->curve;
    stk_status status = STK_OK;
    for (int i = 0; i < c->steps && status == STK_OK && !curve->exploded; i++) {
        stk_error why = {0};
        double loss = NAN;
        curve->halted = c->halt.asked != NULL && c->halt.asked(c->halt.user);
        if (curve->halted) {
            break;
        }
        status = run_step(f, i, &loss, &why);
        curve->halted = status == STK_ERR_STOPPED;
        if (curve->halted) {
            return STK_OK;
        }
        if (status != STK_OK) {
            return STK_FAIL(err, status, "%s", why.message);
        }
        curve->exploded = stk_lr_add(curve->points, i, c->steps, stk_lr_at(i, c->steps), loss);
        curve->count += isfinite(loss); /* a loss that is no number is no point of a curve */
        tell(f, i + 1);
    }
    return status;
}

stk_status stk_lr_find(const stk_lr_find_config *config, stk_lr_curve *curve, stk_error *err) {
    *curve = (stk_lr_curve){.suggestion = NAN};
    lr_finder f = {.config = config, .curve = curve, .start_ns = stk_clock_ns()};
    stk_error why = {0};
    stk_status status = open_finder(&f, &why);
    curve->halted = status == STK_ERR_STOPPED; /* while compiling: the weights are as they were */
    if (curve->halted) {
        status = STK_OK;
    } else if (status != STK_OK) {
        status = STK_FAIL(err, status, "%s", why.message);
    } else {
        status = run_steps(&f, err);
        stk_loader_take_bad(f.loader, tell_bad, &f);
        stk_error again = {0};
        stk_status put_back = copy_weights(&f, true, &again);
        if (status == STK_OK && put_back != STK_OK) {
            status = STK_FAIL(err, put_back, "%s", again.message);
        }
    }
    if (status == STK_OK && !curve->halted) {
        curve->suggestion = stk_lr_suggest(curve->points, curve->count);
    }
    curve->seconds = stk_clock_since_s(f.start_ns);
    stk_loader_close(f.loader);
    config->backend->exec_free(f.exec);
    stk_mem_free(f.initial);
    if (status != STK_OK) {
        stk_lr_curve_free(curve);
    }
    return status;
}
