/*
 * timing.c - which of several ranges of operations is the fastest.
 *
 * Each range is captured several times in a row, so that launches cost the host nothing, and
 * replayed between two events. The ranges take turns, and the shortest time of each counts: other
 * work on the device only makes times longer.
 */
#include "backend/cuda/player/player.h"

#include "base/error.h"

#define REPEATS 3        /* of a range in its graph */
#define ROUNDS 4         /* measurements of each range */
#define ENOUGH_MS 30.0f  /* measured in all: no further round */
#define LEAST_GAIN 0.99f /* of the first range's time, that another must beat */

typedef struct range_timer {
    const cuda_player *player;
    cuda_event begin, end;
    cuda_graph_exec graphs[CUDA_MOST_TIMED];
    float best_ms[CUDA_MOST_TIMED];
    int count;
} range_timer;

/* Launches each range before it captures it: libraries load code at first use. */
static stk_status capture_all(range_timer *t, const cuda_range *ranges, stk_error *err) {
    const cuda_driver *d = t->player->driver;
    stk_status status = stk_cuda_check(d, d->event_new(&t->begin, 0), "making events", err);
    STK_THEN(status, stk_cuda_check(d, d->event_new(&t->end, 0), "making events", err));
    for (int i = 0; i < t->count && status == STK_OK; i++) {
        status = stk_cuda_player_range(t->player, ranges[i], err);
        STK_THEN(status,
                 stk_cuda_player_capture(t->player, ranges[i], REPEATS, &t->graphs[i], err));
        STK_THEN(status, stk_cuda_check(d, d->graph_launch(t->graphs[i], t->player->stream),
                                        "launching a graph", err));
    }
    return status;
}

static stk_status time_one(const range_timer *t, int range, float *ms, stk_error *err) {
    const cuda_driver *d = t->player->driver;
    cuda_stream stream = t->player->stream;
    int result = d->event_record(t->begin, stream);
    result = result == CUDA_GOOD ? d->graph_launch(t->graphs[range], stream) : result;
    result = result == CUDA_GOOD ? d->event_record(t->end, stream) : result;
    result = result == CUDA_GOOD ? d->event_wait(t->end) : result;
    result = result == CUDA_GOOD ? d->event_elapsed_ms(ms, t->begin, t->end) : result;
    return stk_cuda_check(d, result, "timing a kernel", err);
}

static stk_status time_all(range_timer *t, stk_error *err) {
    stk_status status = STK_OK;
    float spent_ms = 0;
    for (int round = 0; round < ROUNDS && spent_ms < ENOUGH_MS && status == STK_OK; round++) {
        for (int i = 0; i < t->count && status == STK_OK; i++) {
            float ms = 0;
            status = time_one(t, i, &ms, err);
            t->best_ms[i] = round == 0 || ms < t->best_ms[i] ? ms : t->best_ms[i];
            spent_ms += ms;
        }
    }
    return status;
}

static void free_timer(range_timer *t) {
    const cuda_driver *d = t->player->driver;
    for (int i = 0; i < t->count; i++) {
        t->graphs[i] != NULL ? d->graph_exec_free(t->graphs[i]) : 0;
    }
    t->begin != NULL ? d->event_free(t->begin) : 0;
    t->end != NULL ? d->event_free(t->end) : 0;
}

stk_status stk_cuda_player_fastest(const cuda_player *player, const cuda_range *ranges, int count,
                                   int *fastest, stk_error *err) {
    range_timer t = {.player = player, .count = count};
    stk_status status = capture_all(&t, ranges, err);
    STK_THEN(status, time_all(&t, err));
    *fastest = 0;
    for (int i = 1; i < count && status == STK_OK; i++) {
        float needed = *fastest == 0 ? LEAST_GAIN * t.best_ms[0] : t.best_ms[*fastest];
        *fastest = t.best_ms[i] < needed ? i : *fastest;
    }
    free_timer(&t);
    return status;
}
