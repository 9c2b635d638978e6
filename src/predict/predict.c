/* predict.c - predicts samples with one model, view after view. */
#include "predict/predict.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"
#include "metrics/probabilities.h"
#include "train/times.h"

#define FIELD(name) offsetof(stk_view_options, name)

static const stk_option view_options[] = {
    STK_OPTION(INT, "tta", tta, STK_OPTION_AUTO, STK_OPTION_RANGE(1, STK_TRANSFORM_VIEWS),
               .may_change = true, .lasting = true, .metavar = "N",
               .help =
                   "test-time augmentation: views of each picture whose predictions are averaged; "
                   "2 adds its mirror image, more add slightly smaller parts and their mirror "
                   "images; takes N times as long; fewer are used when a budget is short; auto: 2 "
                   "where training mirrors pictures and the second view costs little, else 1; in "
                   "predict as many as the run used"),
};

const stk_option_table stk_view_option_table =
    STK_OPTION_TABLE("Views", view_options, stk_view_options);

typedef struct view_collector {
    const stk_prediction *prediction;
    stk_predictions *probs;
    bool *have;
    double *view_probs;    /* (classes): one row of one view, then the mean of all */
    double *before;        /* (classes): scratch for the mean of earlier views */
    int *views;            /* (samples): views in the mean of each row */
    stk_batch_times times; /* of the running pass */
} view_collector;

/* The class of a sample, where it is known and outputs are classes; below 0: none. */
static int class_of(const stk_prediction *p, int label) {
    bool classes = p->outputs == NULL || stk_task_has_classes(p->outputs->task);
    return classes && label < p->graph->classes ? label : -1;
}

static void collect(void *user, const stk_batch *batch, const size_t *entries,
                    const float *logits) {
    view_collector *c = user;
    stk_batch_times_note(&c->times, batch->count, stk_clock_ns());
    size_t classes = (size_t)c->prediction->graph->classes;
    double temperature = c->prediction->temperature > 0 ? c->prediction->temperature : 1;
    for (size_t i = 0; i < batch->count; i++) {
        if (batch->bad[i]) {
            continue;
        }
        int views = ++c->views[entries[i]];
        if (c->prediction->outputs != NULL) {
            stk_outputs_values(c->prediction->outputs, logits + i * classes, temperature,
                               c->view_probs);
        } else {
            stk_softmax(logits + i * classes, (int)classes, temperature, c->view_probs);
        }
        const double *row =
            views > 1 ? stk_predictions_row(c->probs, entries[i], c->before) : c->view_probs;
        for (size_t k = 0; views > 1 && k < classes; k++) {
            c->view_probs[k] = row[k] + (c->view_probs[k] - row[k]) / views;
        }
        stk_predictions_set(c->probs, entries[i], c->view_probs,
                            class_of(c->prediction, batch->labels[i]));
        c->have[entries[i]] = true;
    }
}

static void tell_bad(void *user, const char *path, const char *reason) {
    const view_collector *c = user;
    stk_events_bad_image(c->prediction->events, path, c->prediction->split, reason);
}

/* One pass over all samples per view. *whole: no pass was halted. */
static stk_status predict_views(view_collector *c, stk_exec *exec, stk_predicted *predicted,
                                bool *whole, stk_error *err) {
    const stk_prediction *p = c->prediction;
    int views = p->views > 1 ? p->views : 1;
    stk_status status = STK_OK;
    *whole = true;
    for (int view = 0; view < views && *whole && status == STK_OK; view++) {
        if (view > 0 && p->wants_view != NULL && !p->wants_view(p->user, predicted)) {
            break;
        }
        stk_evaluation evaluation = {.backend = p->backend,
                                     .exec = exec,
                                     .answers = stk_graph_answers(p->graph),
                                     .data = p->data,
                                     .on_batch = collect,
                                     .bad = tell_bad,
                                     .user = c};
        evaluation.data.batch = predicted->batch;
        evaluation.data.transform.view = view;
        int64_t start = stk_clock_ns();
        c->times = (stk_batch_times){.last_ns = start};
        status = stk_evaluate(&evaluation, whole, err);
        if (status == STK_OK && *whole) {
            predicted->views++;
            predicted->pass_s = stk_batch_times_even(&c->times, stk_clock_since_s(start));
        }
    }
    predicted->done = status == STK_OK && predicted->views == views;
    return status;
}

/* Compiles for predicted->batch, unless that was done, and predicts. A device that is halted
 * meanwhile is no error. */
static stk_status run(view_collector *c, stk_exec_cache *execs, stk_predicted *predicted,
                      stk_error *err) {
    const stk_prediction *p = c->prediction;
    stk_compile_config config = p->compile;
    config.batch = predicted->batch;
    stk_exec *exec = NULL;
    bool whole;
    stk_error why = {0};
    int64_t start = stk_clock_ns();
    predicted->views = 0;
    memset(c->views, 0, p->data.count * sizeof *c->views);
    if (p->exec != NULL) {
        return predict_views(c, p->exec, predicted, &whole, err);
    }
    stk_status status = stk_exec_cache_take(execs, &config, &exec, &why);
    if (status != STK_OK) {
        return status == STK_ERR_STOPPED ? STK_OK : STK_FAIL(err, status, "%s", why.message);
    }
    predicted->start_s += stk_clock_since_s(start);
    status = predict_views(c, exec, predicted, &whole, err);
    if (status == STK_OK && whole) {
        stk_exec_cache_keep(execs, &config, exec);
    } else { /* after a halt the device may still read pictures: freeing waits for it */
        p->backend->exec_free(exec);
    }
    return status;
}

/* Halves the batch after memory ran out. */
static void halve(const stk_prediction *p, stk_predicted *predicted, const stk_error *cause) {
    char what[96];
    char why[sizeof cause->message];
    snprintf(what, sizeof what, "prediction in batches of %zu instead of %zu", predicted->batch / 2,
             predicted->batch);
    stk_error_cause(cause, why, sizeof why);
    predicted->batch /= 2;
    stk_events_decision(p->events, what, why);
}

stk_status stk_predict_samples(const stk_prediction *p, stk_predictions *probs, bool *have,
                               stk_predicted *predicted, stk_error *err) {
    view_collector c = {.prediction = p, .probs = probs, .have = have};
    stk_exec_cache own = {.backend = p->backend, .state = p->state};
    stk_exec_cache *execs = p->execs != NULL ? p->execs : &own;
    bool again = true;
    *predicted = (stk_predicted){.pass_s = NAN, .batch = p->compile.batch};
    c.view_probs = stk_mem_new((size_t)p->graph->classes, sizeof *c.view_probs);
    c.before = stk_mem_new((size_t)p->graph->classes, sizeof *c.before);
    c.views = stk_mem_new(p->data.count, sizeof *c.views);
    bool ok = c.view_probs != NULL && c.before != NULL && c.views != NULL;
    stk_status status = ok ? STK_OK : STK_FAIL_MEMORY(err, "predictions");
    while (status == STK_OK && again) {
        stk_error why = {0};
        status = run(&c, execs, predicted, &why);
        bool kept = execs->count > 0;
        again = status == STK_ERR_MEMORY && (kept || predicted->batch > 1) && p->exec == NULL;
        if (again) {
            if (kept) { /* first there is as much memory as there can be */
                stk_exec_cache_clear(execs);
            } else {
                halve(p, predicted, &why);
            }
            status = STK_OK;
        } else if (status != STK_OK) {
            (void)STK_FAIL(err, status, "%s", why.message);
        }
    }
    stk_exec_cache_clear(&own);
    stk_mem_free(c.view_probs);
    stk_mem_free(c.before);
    stk_mem_free(c.views);
    return status;
}
