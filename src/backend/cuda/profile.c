/*
 * profile.c - where the time of a step goes.
 *
 * Every operation runs between two events, in the order of the step, so that caches are as in the
 * step. The times include some microseconds for each launch, which a replayed graph does not take.
 */
#include "backend/cuda/exec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"

#define ROUNDS 5

static const char *const conv_kinds[] = {[CUDA_CONV_FORWARD] = "conv",
                                         [CUDA_CONV_DATA] = "conv data",
                                         [CUDA_CONV_WEIGHT] = "conv weight"};

static void name_op(const cuda_op *op, char *text, size_t room) {
    if (op->kind == CUDA_OP_CONV) {
        const cuda_conv_shape *s = &op->conv.shape;
        snprintf(text, room, "%s %dx%dx%d to %d, %dx%d/%d%s%s%s%s%s", conv_kinds[s->kind],
                 s->height, s->width, s->channels, s->filters, s->kernel, s->kernel, s->stride,
                 s->accumulate ? " +=" : "", s->added ? " + added" : "",
                 s->act != STK_OP_COUNT ? " act" : "", s->in_norm ? " of a norm" : "",
                 s->stats ? " + statistics" : "");
    } else {
        snprintf(text, room, "%.24s %.100s", op->launch.name, op->launch.defines);
    }
}

static double buffer_bytes(const cuda_program *p, cuda_ref ref) {
    return cuda_is_something(ref) ? (double)p->buffers[ref.buffer].bytes : 0;
}

static double op_bytes(const cuda_program *p, const cuda_op *op) {
    double bytes = 0;
    if (op->kind == CUDA_OP_CONV) {
        return buffer_bytes(p, op->conv.shape.in_norm ? op->conv.raw : op->conv.x) +
               buffer_bytes(p, op->conv.y) + buffer_bytes(p, op->conv.added);
    }
    for (int i = 0; i < op->launch.arg_count; i++) {
        if (op->launch.args[i].kind == CUDA_ARG_REF) {
            bytes += buffer_bytes(p, op->launch.args[i].ref);
        }
    }
    return bytes;
}

/* Adds one operation to the line of its name. */
static void add_line(stk_profile_line *lines, size_t room, size_t *count, const cuda_program *p,
                     const cuda_op *op, double ms) {
    stk_profile_line line = {.calls = 1, .ms = ms, .bytes = op_bytes(p, op)};
    name_op(op, line.what, sizeof line.what);
    for (size_t i = 0; i < *count; i++) {
        if (strcmp(lines[i].what, line.what) == 0) {
            lines[i].calls++;
            lines[i].ms += line.ms;
            lines[i].bytes += line.bytes;
            return;
        }
    }
    if (*count < room) {
        lines[(*count)++] = line;
    }
}

static int longest_first(const void *a, const void *b) {
    double x = ((const stk_profile_line *)a)->ms;
    double y = ((const stk_profile_line *)b)->ms;
    return x > y ? -1 : x < y;
}

/* The shortest of some rounds, per operation; events has one more than there are operations. */
static stk_status time_ops(const cuda_player *player, cuda_event *events, double *ms,
                           stk_error *err) {
    const cuda_driver *d = player->driver;
    int count = player->program->op_count;
    stk_status status = STK_OK;
    for (int round = 0; round < ROUNDS && status == STK_OK; round++) {
        int result = d->event_record(events[0], player->stream);
        for (int i = 0; i < count && status == STK_OK; i++) {
            status = stk_cuda_player_launch(player, i, err);
            result |= d->event_record(events[i + 1], player->stream);
        }
        result |= d->stream_wait(player->stream);
        for (int i = 0; i < count && status == STK_OK; i++) {
            float took = 0;
            result |= d->event_elapsed_ms(&took, events[i], events[i + 1]);
            ms[i] = round == 0 || took < ms[i] ? took : ms[i];
        }
        STK_THEN(status, stk_cuda_check(d, result, "timing a step", err));
    }
    return status;
}

static stk_status profile_one(const cuda_player *player, stk_profile_line *lines, size_t room,
                              size_t *count, stk_error *err) {
    const cuda_driver *d = player->driver;
    size_t ops = (size_t)player->program->op_count;
    cuda_event *events = stk_mem_new(ops + 1, sizeof(cuda_event));
    double *ms = stk_mem_new(ops + 1, sizeof *ms);
    stk_status status =
        events != NULL && ms != NULL ? STK_OK : STK_FAIL_MEMORY(err, "timing a step");
    for (size_t i = 0; i <= ops && status == STK_OK; i++) {
        status = stk_cuda_check(d, d->event_new(&events[i], 0), "making events", err);
    }
    STK_THEN(status, time_ops(player, events, ms, err));
    for (size_t i = 0; i < ops && status == STK_OK; i++) {
        add_line(lines, room, count, player->program, &player->program->ops[i], ms[i]);
    }
    for (size_t i = 0; i <= ops && events != NULL; i++) {
        if (events[i] != NULL) {
            d->event_free(events[i]);
        }
    }
    stk_mem_free(events);
    stk_mem_free(ms);
    return status;
}

stk_status stk_cuda_profile(stk_exec *exec, stk_profile_line *lines, size_t room, size_t *count,
                            stk_error *err) {
    *count = 0;
    if (exec->started == 0) {
        return STK_FAIL(err, STK_ERR_INTERNAL, "there was no step that could be profiled");
    }
    stk_status status = stk_cuda_enter(exec->state->device, err);
    for (int i = PLAY_MAIN; i <= PLAY_UPDATE && status == STK_OK; i++) {
        status = profile_one(&exec->players[i], lines, room, count, err);
    }
    exec->state->version++;
    qsort(lines, *count, sizeof *lines, longest_first);
    return status;
}
