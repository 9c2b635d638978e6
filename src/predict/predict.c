/* predict.c - inference over samples. */
#include "predict/predict.h"

#include "base/error.h"

typedef struct collector {
    const stk_prediction *prediction;
    double *probs;
    bool *have;
    size_t at; /* samples come in order: the row of the next batch's first */
} collector;

static void collect(void *user, const stk_batch *batch, const float *logits) {
    collector *c = user;
    size_t classes = (size_t)c->prediction->graph->classes;
    for (size_t i = 0; i < batch->count; i++, c->at++) {
        if (!batch->bad[i]) {
            stk_softmax(logits + i * classes, (int)classes, c->probs + c->at * classes);
            c->have[c->at] = true;
        }
    }
}

static void tell_bad(void *user, const char *path, const char *reason) {
    const collector *c = user;
    stk_events_bad_image(c->prediction->events, path, c->prediction->split, reason);
}

stk_status stk_predict_samples(const stk_prediction *p, double *probs, bool *have, bool *done,
                               stk_error *err) {
    collector c = {.prediction = p, .probs = probs, .have = have};
    stk_compile_config config = {
        .batch = STK_PREDICT_BATCH, .precision = p->precision, .train = false, .ema = p->ema};
    stk_exec *exec = NULL;
    stk_error why = {0};
    *done = false;
    stk_status status = p->backend->compile(&exec, p->state, &config, &why);
    if (status == STK_ERR_STOPPED) {
        return STK_OK; /* as if by p->halt */
    }
    if (status != STK_OK) {
        status = STK_FAIL(err, status, "%s", why.message);
    } else {
        stk_evaluation evaluation = {.backend = p->backend,
                                     .exec = exec,
                                     .classes = p->graph->classes,
                                     .data = p->data,
                                     .halt = p->halt,
                                     .batch = collect,
                                     .bad = tell_bad,
                                     .user = &c};
        evaluation.data.batch = STK_PREDICT_BATCH;
        status = stk_evaluate(&evaluation, done, err);
    }
    p->backend->exec_free(exec);
    return status;
}
