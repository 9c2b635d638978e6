/*
 * timing.c - which of several ways to compute a thing is the fastest.
 *
 * Each is captured some times in a row, so that the host's launches cost nothing, and replayed
 * between two events. They take turns, and the shortest time of each counts: whatever else the
 * device does meanwhile only makes times longer.
 */
#include "backend/cuda/exec.h"
#include "base/error.h"

#define REPEATS 3
#define ROUNDS 4
#define ENOUGH_MS 30.0f /* of one race; what takes so long is told apart well enough */
#define LEAST_GAIN 0.99f

typedef struct race {
    const cuda_player *player;
    cuda_event begin, end;
    cuda_graph_exec graphs[CUDA_MOST_RACERS];
    float best[CUDA_MOST_RACERS]; /* ms */
    int count;
} race;

/* By launches first, which loads what is loaded late. */
static stk_status line_up(race *r, const cuda_range *ways, stk_error *err) {
    const cuda_driver *d = r->player->device->driver;
    stk_status status = stk_cuda_check(d, d->event_new(&r->begin, 0), "making events", err);
    if (status == STK_OK) {
        status = stk_cuda_check(d, d->event_new(&r->end, 0), "making events", err);
    }
    for (int i = 0; i < r->count && status == STK_OK; i++) {
        status = stk_cuda_player_range(r->player, ways[i], err);
        if (status == STK_OK) {
            status = stk_cuda_player_capture(r->player, ways[i], REPEATS, &r->graphs[i], err);
        }
        if (status == STK_OK) {
            status = stk_cuda_check(d, d->graph_launch(r->graphs[i], r->player->device->compute),
                                    "launching a graph", err);
        }
    }
    return status;
}

static stk_status time_one(race *r, int way, float *ms, stk_error *err) {
    const cuda_driver *d = r->player->device->driver;
    cuda_stream stream = r->player->device->compute;
    int result = d->event_record(r->begin, stream);
    result = result == CUDA_GOOD ? d->graph_launch(r->graphs[way], stream) : result;
    result = result == CUDA_GOOD ? d->event_record(r->end, stream) : result;
    result = result == CUDA_GOOD ? d->event_wait(r->end) : result;
    result = result == CUDA_GOOD ? d->event_elapsed_ms(ms, r->begin, r->end) : result;
    return stk_cuda_check(d, result, "timing a kernel", err);
}

static stk_status run_rounds(race *r, stk_error *err) {
    stk_status status = STK_OK;
    float spent = 0;
    for (int round = 0; round < ROUNDS && spent < ENOUGH_MS && status == STK_OK; round++) {
        for (int i = 0; i < r->count && status == STK_OK; i++) {
            float ms = 0;
            status = time_one(r, i, &ms, err);
            r->best[i] = round == 0 || ms < r->best[i] ? ms : r->best[i];
            spent += ms;
        }
    }
    return status;
}

static void finish(race *r) {
    const cuda_driver *d = r->player->device->driver;
    for (int i = 0; i < r->count; i++) {
        r->graphs[i] != NULL ? d->graph_exec_free(r->graphs[i]) : 0;
    }
    r->begin != NULL ? d->event_free(r->begin) : 0;
    r->end != NULL ? d->event_free(r->end) : 0;
}

stk_status stk_cuda_race(const cuda_player *player, const cuda_range *ways, int count, int *winner,
                         stk_error *err) {
    race r = {.player = player, .count = count};
    stk_status status = line_up(&r, ways, err);
    if (status == STK_OK) {
        status = run_rounds(&r, err);
    }
    *winner = 0;
    for (int i = 1; i < count && status == STK_OK; i++) {
        float needed = *winner == 0 ? LEAST_GAIN * r.best[0] : r.best[*winner];
        *winner = r.best[i] < needed ? i : *winner;
    }
    finish(&r);
    return status;
}
