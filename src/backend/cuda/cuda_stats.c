/*
 * cuda_stats.c - races of "convolution with statistics" against "convolution, then a kernel".
 *
 * All shapes stand in one program, so that their plans and kernels are made at once by several
 * threads.
 */
#include "backend/cuda/cuda_stats.h"

#include <stdio.h>
#include <string.h>

#include "backend/cuda/cuda_emit.h"
#include "base/error.h"
#include "base/mem.h"

typedef struct candidate {
    char name[CUDA_CHOICE_NAME];
    cuda_conv_shape shape; /* without statistics */
    cuda_range noise;      /* what they read */
    cuda_range ways[2];    /* by CUDA_STATS_ */
} candidate;

typedef struct trial {
    cuda_program program;
    candidate *items; /* owned */
    int count;
} trial;

void stk_cuda_stats_name(const cuda_conv_shape *shape, char name[CUDA_CHOICE_NAME]) {
    snprintf(name, CUDA_CHOICE_NAME,
             "statistics 1 type %d x %d %d %d %d y %d %d %d kernel %d stride %d pad %d",
             (int)shape->type, shape->batch, shape->height, shape->width, shape->channels,
             shape->out_height, shape->out_width, shape->filters, shape->kernel, shape->stride,
             shape->pad);
}

bool stk_cuda_stats_fused(cuda_choices *choices, const cuda_conv_shape *shape) {
    char name[CUDA_CHOICE_NAME];
    if (choices == NULL || shape->strict) {
        return false;
    }
    stk_cuda_stats_name(shape, name);
    return stk_cuda_choice_of(choices, name) == CUDA_STATS_FUSED;
}

/* ---- the program of all candidates ---- */

static void add_candidate(trial *t, cuda_choices *choices, const cuda_conv_shape *shape) {
    candidate *next = &t->items[t->count];
    stk_cuda_stats_name(shape, next->name);
    bool known = stk_cuda_choice_of(choices, next->name) != CUDA_UNDECIDED;
    for (int i = 0; i < t->count && !known; i++) {
        known = strcmp(t->items[i].name, next->name) == 0;
    }
    if (!known) {
        next->shape = *shape;
        next->shape.stats = false;
        t->count++;
    }
}

static stk_status find_candidates(trial *t, const cuda_player *player, stk_error *err) {
    const cuda_program *p = player->program;
    t->items = stk_mem_new((size_t)p->op_count + 1, sizeof *t->items);
    if (t->items == NULL) {
        return STK_FAIL_MEMORY(err, "what is fastest on the GPU");
    }
    for (int i = 0; i < p->op_count; i++) {
        if (p->ops[i].kind == CUDA_OP_CONV && cuda_is_something(p->ops[i].conv.stats)) {
            add_candidate(t, player->device->choices, &p->ops[i].conv.shape);
        }
    }
    return STK_OK;
}

static cuda_ref channels_of(cuda_program *p, const cuda_conv_shape *s, size_t vectors) {
    return stk_cuda_buffer(p, vectors * (size_t)s->filters * sizeof(float));
}

/* What is computed with takes power, which takes time: plans are timed on noise. */
static void add_noise(cuda_program *p, size_t bytes) {
    stk_cuda_noise(p, bytes / cuda_type_bytes(p->type), stk_cuda_buffer(p, bytes));
}

/* Both ways, on buffers of their own: the norm's running statistics stay as they are. */
static void add_ways(cuda_program *p, candidate *c) {
    const cuda_conv_shape *s = &c->shape;
    size_t of_type = cuda_type_bytes(s->type);
    size_t pixels = (size_t)s->batch * (size_t)s->height * (size_t)s->width;
    size_t taps = (size_t)s->kernel * (size_t)s->kernel * (size_t)s->channels;
    cuda_plane plane = {s->batch, s->out_height * s->out_width, s->filters};
    size_t rows = (size_t)plane.batch * (size_t)plane.pixels;
    cuda_norm norm = {.weight = channels_of(p, s, 1),
                      .bias = channels_of(p, s, 1),
                      .running_mean = channels_of(p, s, 1),
                      .running_var = channels_of(p, s, 1),
                      .weight_grad = cuda_nothing(),
                      .bias_grad = cuda_nothing(),
                      .coefs = channels_of(p, s, 4),
                      .back = cuda_nothing()};
    cuda_conv_op conv = {
        .shape = *s,
        .x = stk_cuda_buffer(p, pixels * (size_t)s->channels * of_type),
        .w = stk_cuda_buffer(p, taps * (size_t)s->filters * of_type),
        .y = stk_cuda_buffer(p, rows * (size_t)s->filters * of_type),
        .bias = cuda_nothing(),
        .added = cuda_nothing(),
        .stats = stk_cuda_buffer(p, stk_cuda_norm_scratch(p, plane)),
    };
    c->noise = (cuda_range){p->op_count, 2};
    stk_cuda_noise(p, pixels * (size_t)s->channels, conv.x);
    stk_cuda_noise(p, taps * (size_t)s->filters, conv.w);
    c->ways[CUDA_STATS_APART] = (cuda_range){p->op_count, 2};
    stk_cuda_conv(p, &conv);
    stk_cuda_norm_stats(p, plane, conv.y, &norm, conv.stats);
    c->ways[CUDA_STATS_FUSED] = (cuda_range){p->op_count, 2};
    conv.shape.stats = true;
    stk_cuda_conv(p, &conv);
    stk_cuda_norm_settle(p, plane, &norm, conv.stats);
}

/* ---- the races ---- */

static stk_status race_one(const cuda_player *player, const candidate *c, bool *fused,
                           stk_error *err) {
    const stk_device *device = player->device;
    cuda_conv_shape with = c->shape;
    int way = CUDA_STATS_APART;
    stk_status status = STK_OK;
    with.stats = true;
    if (device->config.halted != NULL && device->config.halted(device->config.user, 0)) {
        return STK_FAIL(err, STK_ERR_STOPPED, "stopped while kernels were timed");
    }
    if (stk_cuda_convs_has(device->convs, &with)) {
        status = stk_cuda_player_range(player, c->noise, err);
        status = status == STK_OK ? stk_cuda_race(player, c->ways, 2, &way, err) : status;
    }
    if (status == STK_OK) {
        stk_cuda_choice_set(device->choices, c->name, way);
        *fused = *fused || way == CUDA_STATS_FUSED;
    }
    return status;
}

static stk_status race_all(const cuda_player *player, const trial *t, bool *fused, stk_error *err) {
    cuda_player mine = {.device = player->device,
                        .program = &t->program,
                        .arena = player->arena,
                        .fixed = player->fixed};
    const cuda_program *program = &t->program;
    stk_status status = stk_cuda_kernels_make(player->device->kernels, &program, 1, err);
    if (status == STK_OK) {
        status = stk_cuda_player_launch(&mine, 0, err);
    }
    if (status == STK_OK) {
        status = stk_cuda_player_prepare(&mine, err);
    }
    for (int i = 0; i < t->count && status == STK_OK; i++) {
        status = race_one(&mine, &t->items[i], fused, err);
    }
    return status;
}

stk_status stk_cuda_stats_choose(const cuda_player *player, bool *fused, stk_error *err) {
    const cuda_program *p = player->program;
    trial t = {.items = NULL};
    *fused = false;
    if (player->device->choices == NULL || p->strict) {
        return STK_OK;
    }
    stk_cuda_program_begin(&t.program, p->type, p->strict, p->multiprocessors);
    stk_status status = find_candidates(&t, player, err);
    add_noise(&t.program, p->arena_bytes);
    for (int i = 0; i < t.count; i++) {
        add_ways(&t.program, &t.items[i]);
    }
    if (status == STK_OK) {
        status = stk_cuda_program_lay_out(&t.program, err);
    }
    /* A network so small that there is no room for it is fast enough. */
    bool fits = t.program.arena_bytes <= p->arena_bytes && t.program.counters <= p->counters;
    if (status == STK_OK && t.count > 0 && fits) {
        status = race_all(player, &t, fused, err);
    }
    stk_mem_free(t.items);
    stk_cuda_program_free(&t.program);
    return status;
}

bool stk_cuda_stats_missing(const cuda_player *player) {
    const cuda_program *p = player->program;
    const stk_device *device = player->device;
    bool missing = false;
    for (int i = 0; i < p->op_count; i++) {
        const cuda_conv_shape *shape = &p->ops[i].conv.shape;
        if (p->ops[i].kind == CUDA_OP_CONV && shape->stats &&
            !stk_cuda_convs_has(device->convs, shape)) {
            char name[CUDA_CHOICE_NAME];
            stk_cuda_stats_name(shape, name);
            stk_cuda_choice_set(device->choices, name, CUDA_STATS_APART);
            missing = true;
        }
    }
    return missing;
}
