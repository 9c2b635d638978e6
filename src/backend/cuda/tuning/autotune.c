/*
 * autotune.c - asking, and racing for the answers.
 *
 * All ways of all questions stand in one program, so that their plans and kernels are made at once
 * by several threads.
 */
#include "backend/cuda/tuning/autotune.h"

#include <stdio.h>
#include <string.h>

#include "backend/cuda/emit/emit.h"
#include "backend/cuda/tuning/join_conv_back.h"
#include "backend/cuda/tuning/norm_conv_back.h"
#include "backend/cuda/tuning/norm_conv.h"
#include "backend/cuda/tuning/conv_stats.h"
#include "base/error.h"
#include "base/mem.h"

static const struct {
    const char *name; /* with a number that grows when the ways change */
    cuda_contest_ways *add;
} kinds[CUDA_ASK_KINDS] = {
    [CUDA_ASK_STATS] = {"statistics 1", stk_cuda_stats_ways},
    [CUDA_ASK_LAYER] = {"layer backward 1", stk_cuda_layer_ways},
    [CUDA_ASK_NORMED] = {"norm in front 1", stk_cuda_normed_ways},
    [CUDA_ASK_NORMED_BACK] = {"norm in front of a gradient 1", stk_cuda_normed_back_ways},
    [CUDA_ASK_JOIN] = {"join 1", stk_cuda_join_ways},
    [CUDA_ASK_JOIN_BACK] = {"gradients join 1", stk_cuda_join_back_ways},
};

cuda_ref stk_cuda_noise_place(cuda_program *p, size_t count) {
    cuda_ref place = stk_cuda_buffer(p, count * cuda_type_bytes(p->type));
    stk_cuda_noise(p, count, place);
    return place;
}

cuda_ref stk_cuda_noise_floats(cuda_program *p, size_t count) {
    return stk_cuda_noise_place(p, count * sizeof(float) / cuda_type_bytes(p->type));
}

void stk_cuda_question_name(const cuda_question *question, char name[CUDA_CHOICE_NAME]) {
    const cuda_conv_shape *s = &question->shape;
    snprintf(name, CUDA_CHOICE_NAME,
             "%s type %d x %d %d %d %d y %d %d %d kernel %d stride %d pad %d%s variant %d",
             kinds[question->kind].name, (int)s->type, s->batch, s->height, s->width, s->channels,
             s->out_height, s->out_width, s->filters, s->kernel, s->stride, s->pad,
             s->accumulate ? " +" : "", question->variant);
}

/* ---- asking ---- */

static int note(cuda_program *p, const cuda_question *question) {
    size_t need = (size_t)p->question_count + 1;
    cuda_question *grown = stk_mem_grow(p->questions, &p->question_capacity, need, sizeof *grown);
    if (grown == NULL) {
        (void)STK_FAIL_MEMORY(&p->error, "the program of a network");
        return 0;
    }
    p->questions = grown;
    p->questions[p->question_count++] = *question;
    return p->question_count;
}

int stk_cuda_answer(cuda_choices *choices, const cuda_question *question) {
    char name[CUDA_CHOICE_NAME];
    if (choices == NULL) {
        return CUDA_UNDECIDED;
    }
    stk_cuda_question_name(question, name);
    return stk_cuda_choice_of(choices, name);
}

int stk_cuda_ask(cuda_program *p, cuda_choices *choices, const cuda_question *question,
                 int *asked) {
    *asked = 0;
    if (choices == NULL || p->strict) {
        return 0;
    }
    *asked = note(p, question);
    int way = stk_cuda_answer(choices, question);
    return way != CUDA_UNDECIDED ? way : 0;
}

/* ---- the program of all ways ---- */

typedef struct contest {
    char name[CUDA_CHOICE_NAME];
    const cuda_question *question;
    cuda_range noise;
    cuda_range ways[CUDA_CONTEST_WAYS];
} contest;

typedef struct contests {
    cuda_program program;
    contest *items; /* owned */
    int count;
} contests;

static void add_question(contests *c, cuda_choices *choices, const cuda_question *question) {
    contest *next = &c->items[c->count];
    stk_cuda_question_name(question, next->name);
    bool known = stk_cuda_choice_of(choices, next->name) != CUDA_UNDECIDED;
    for (int i = 0; i < c->count && !known; i++) {
        known = strcmp(c->items[i].name, next->name) == 0;
    }
    if (!known) {
        next->question = question;
        c->count++;
    }
}

static stk_status find_open(contests *c, const cuda_player *player, stk_error *err) {
    const cuda_program *p = player->program;
    c->items = stk_mem_new((size_t)p->question_count + 1, sizeof *c->items);
    if (c->items == NULL) {
        return STK_FAIL_MEMORY(err, "what is fastest on the GPU");
    }
    for (int i = 0; i < p->question_count; i++) {
        add_question(c, player->device->choices, &p->questions[i]);
    }
    return STK_OK;
}

/* Contests run one after the other: they count with the same counters. */
static void add_ways(contests *c) {
    cuda_program *p = &c->program;
    int most = 0;
    for (int i = 0; i < c->count; i++) {
        contest *one = &c->items[i];
        p->counters = 0;
        one->noise.first = p->op_count;
        kinds[one->question->kind].add(p, one->question, one->ways);
        one->noise.count = one->ways[0].first - one->noise.first;
        most = p->counters > most ? p->counters : most;
    }
    p->counters = most;
}

/* ---- the races ---- */

static bool can_run(const cuda_player *player, cuda_range way) {
    for (int i = way.first; i < way.first + way.count; i++) {
        const cuda_op *op = &player->program->ops[i];
        if (op->kind == CUDA_OP_CONV &&
            !stk_cuda_convs_has(player->device->convs, &op->conv.shape)) {
            return false;
        }
    }
    return true;
}

static stk_status race_one(const cuda_player *player, const contest *c, stk_error *err) {
    const stk_device *device = player->device;
    int way = 0;
    stk_status status = STK_OK;
    if (device->config.halted != NULL && device->config.halted(device->config.user, 0)) {
        return STK_FAIL(err, STK_ERR_STOPPED, "stopped while kernels were timed");
    }
    /* By an earlier answer that is void, as stk_cuda_contests_void() will find: it stays open. */
    if (!can_run(player, c->ways[0])) {
        return STK_OK;
    }
    if (can_run(player, c->ways[1])) {
        status = stk_cuda_player_range(player, c->noise, err);
        status = status == STK_OK ? stk_cuda_race(player, c->ways, CUDA_CONTEST_WAYS, &way, err)
                                  : status;
    }
    if (status == STK_OK) {
        stk_cuda_choice_set(device->choices, c->name, way);
    }
    return status;
}

/* What the ways of all contests read lies in the same memory. */
typedef struct arena_user {
    const cuda_player *player;
    const contests *all;
} arena_user;

/* Plans are checked on noise: once more that of the contest in which an operation is. */
static stk_status refresh(const void *user, int op, stk_error *err) {
    const arena_user *u = user;
    int at = u->all->count - 1;
    while (at > 0 && u->all->items[at].noise.first > op) {
        at--;
    }
    return stk_cuda_player_range(u->player, u->all->items[at].noise, err);
}

/* The first operation fills all of the memory with noise: what is not written is that. */
static stk_status race_all(const cuda_player *player, const contests *c, stk_error *err) {
    cuda_player mine = {.device = player->device,
                        .program = &c->program,
                        .arena = player->arena,
                        .fixed = player->fixed};
    const cuda_program *program = &c->program;
    const arena_user user = {&mine, c};
    const cuda_refresh again = {refresh, &user};
    stk_status status = stk_cuda_kernels_make(player->device->kernels, &program, 1, err);
    if (status == STK_OK) {
        status = stk_cuda_player_launch(&mine, 0, err);
    }
    if (status == STK_OK) {
        status = stk_cuda_player_prepare(&mine, &again, err);
    }
    for (int i = 0; i < c->count && status == STK_OK; i++) {
        status = race_one(&mine, &c->items[i], err);
    }
    return status;
}

stk_status stk_cuda_contests(const cuda_player *player, bool *answered, stk_error *err) {
    const cuda_program *p = player->program;
    contests c = {.items = NULL};
    *answered = false;
    stk_status status = find_open(&c, player, err);
    if (status != STK_OK || c.count == 0) {
        stk_mem_free(c.items);
        return status;
    }
    stk_cuda_program_begin(&c.program, p->type, p->strict, p->multiprocessors);
    c.program.major = p->major;
    cuda_ref all = stk_cuda_buffer(&c.program, p->arena_bytes);
    stk_cuda_noise(&c.program, p->arena_bytes / cuda_type_bytes(p->type), all);
    add_ways(&c);
    status = stk_cuda_program_lay_out(&c.program, err);
    /* A network so small that there is no room for it is fast enough. */
    bool fits = c.program.arena_bytes <= p->arena_bytes && c.program.counters <= p->counters;
    if (status == STK_OK && fits) {
        status = race_all(player, &c, err);
        *answered = status == STK_OK;
    }
    stk_mem_free(c.items);
    stk_cuda_program_free(&c.program);
    return status;
}

bool stk_cuda_contests_void(const cuda_player *player) {
    const cuda_program *p = player->program;
    const stk_device *device = player->device;
    bool missing = false;
    for (int i = 0; i < p->op_count; i++) {
        const cuda_conv_op *conv = &p->ops[i].conv;
        if (p->ops[i].kind == CUDA_OP_CONV && conv->asked > 0 &&
            !stk_cuda_convs_has(device->convs, &conv->shape)) {
            char name[CUDA_CHOICE_NAME];
            stk_cuda_question_name(&p->questions[conv->asked - 1], name);
            stk_cuda_choice_set(device->choices, name, 0);
            missing = true;
        }
    }
    return missing;
}
