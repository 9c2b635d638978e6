/*
 * player.c - running a program.
 *
 * A replayed graph costs the host a few microseconds per step, however many kernels it has.
 */
#include "backend/cuda/player/player.h"

#include "base/error.h"
#include "base/mem.h"

static cuda_pointer place_of(const cuda_player *player, cuda_ref ref) {
    if (!cuda_is_something(ref)) {
        return 0;
    }
    cuda_pointer base = ref.buffer < CUDA_FIXED_COUNT
                            ? player->fixed[ref.buffer]
                            : player->arena + player->program->buffers[ref.buffer].offset;
    return base + ref.offset;
}

static cuda_conv_call call_of(const cuda_player *player, const cuda_conv_op *conv) {
    return (cuda_conv_call){.shape = &conv->shape,
                            .x = place_of(player, conv->shape.in_norm ? conv->raw : conv->x),
                            .w = place_of(player, conv->w),
                            .y = place_of(player, conv->y),
                            .bias = place_of(player, conv->bias),
                            .added = place_of(player, conv->added),
                            .stats = place_of(player, conv->stats),
                            .in_norm = place_of(player, conv->in_norm),
                            .workspace = player->fixed[CUDA_FIXED_WORKSPACE]};
}

/* The convolutions of a program, and which operations they are. */
typedef struct preparing {
    cuda_conv_call *calls; /* owned */
    int *ops;              /* owned */
    const cuda_noise_writer *writer;
} preparing;

static stk_status write_noise_for_call(void *user, int call, stk_error *err) {
    const preparing *p = user;
    return p->writer->write_noise_for(p->writer->user, p->ops[call], err);
}

stk_status stk_cuda_player_prepare(const cuda_player *player, const cuda_noise_writer *writer,
                                   stk_error *err) {
    const cuda_program *p = player->program;
    size_t most = (size_t)p->op_count + 1;
    preparing made = {.calls = stk_mem_new(most, sizeof *made.calls),
                      .ops = stk_mem_new(most, sizeof *made.ops),
                      .writer = writer};
    int count = 0;
    stk_status status = STK_OK;
    if (made.calls == NULL || made.ops == NULL) {
        status = STK_FAIL_MEMORY(err, "the convolutions of a network");
    }
    for (int i = 0; i < p->op_count && status == STK_OK; i++) {
        if (p->ops[i].kind == CUDA_OP_CONV) {
            made.ops[count] = i;
            made.calls[count++] = call_of(player, &p->ops[i].conv);
        }
    }
    if (status == STK_OK && count > 0) {
        status = stk_cuda_convs_make(player->convs, made.calls, count,
                                     writer != NULL ? write_noise_for_call : NULL, &made, err);
    }
    stk_mem_free(made.calls);
    stk_mem_free(made.ops);
    return status;
}

static cuda_pointer find_place(const void *context, cuda_ref ref) {
    return place_of(context, ref);
}

stk_status stk_cuda_player_launch(const cuda_player *player, int index, stk_error *err) {
    const cuda_op *op = &player->program->ops[index];
    if (op->kind == CUDA_OP_LAUNCH) {
        return stk_cuda_kernels_launch(player->kernels, &op->launch, player->program->type,
                                       player->stream, find_place, player, err);
    }
    cuda_conv_call call = call_of(player, &op->conv);
    return stk_cuda_convs_run(player->convs, &call, err);
}

stk_status stk_cuda_player_range(const cuda_player *player, cuda_range ops, stk_error *err) {
    stk_status status = STK_OK;
    for (int i = 0; i < ops.count && status == STK_OK; i++) {
        status = stk_cuda_player_launch(player, ops.first + i, err);
    }
    return status;
}

stk_status stk_cuda_player_capture(const cuda_player *player, cuda_range ops, int times,
                                   cuda_graph_exec *made, stk_error *err) {
    const cuda_driver *d = player->driver;
    cuda_graph graph = NULL;
    stk_status status = stk_cuda_check(
        d, d->capture_begin(player->stream, CUDA_CAPTURE_THREAD_LOCAL), "capturing a step", err);
    if (status != STK_OK) {
        return status;
    }
    for (int i = 0; i < times && status == STK_OK; i++) {
        status = stk_cuda_player_range(player, ops, err);
    }
    int ended = d->capture_end(player->stream, &graph); /* also after a failure */
    STK_THEN(status, stk_cuda_check(d, ended, "capturing a step", err));
    STK_THEN(status, stk_cuda_check(d, d->graph_make(made, graph, 0), "making a graph", err));
    if (graph != NULL) {
        d->graph_free(graph);
    }
    return status;
}

stk_status stk_cuda_player_run(cuda_player *player, stk_error *err) {
    const cuda_driver *d = player->driver;
    const cuda_range all = {0, player->program->op_count};
    if (player->program->op_count == 0) {
        return STK_OK;
    }
    if (player->runs++ == 0) {
        return stk_cuda_player_range(player, all, err);
    }
    stk_status status = player->graph == NULL
                            ? stk_cuda_player_capture(player, all, 1, &player->graph, err)
                            : STK_OK;
    return status == STK_OK ? stk_cuda_check(d, d->graph_launch(player->graph, player->stream),
                                             "launching a step", err)
                            : status;
}

void stk_cuda_player_close(cuda_player *player) {
    if (player->graph != NULL) {
        player->driver->graph_exec_free(player->graph);
    }
    player->graph = NULL;
}
