/*
 * autotune.c - times the variants of decisions that have no result.
 *
 * All variants of all open decisions stand in one program, so that several threads make their
 * plans and kernels at once.
 */
#include "backend/cuda/tuning/tuning.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"

/* ---- the program of all variants ---- */

/* One open decision, and where its operations stand. */
typedef struct tuning_trial {
    char name[CUDA_RESULT_NAME];
    const cuda_decision *decision;
    cuda_range noise; /* fills what the variants read */
    cuda_range variants[CUDA_VARIANTS];
} tuning_trial;

typedef struct tuning_trials {
    cuda_program program;
    cuda_tuning_results *results;
    const stk_device_config *config;
    tuning_trial *items; /* owned */
    int count;
} tuning_trials;

static void add_decision(tuning_trials *t, const cuda_decision *decision) {
    tuning_trial *next = &t->items[t->count];
    stk_cuda_decision_name(decision, next->name);
    bool known = stk_cuda_tuning_result(t->results, next->name) != CUDA_UNDECIDED;
    for (int i = 0; i < t->count && !known; i++) {
        known = strcmp(t->items[i].name, next->name) == 0;
    }
    if (!known) {
        next->decision = decision;
        t->count++;
    }
}

static stk_status find_open(tuning_trials *t, const cuda_program *p, stk_error *err) {
    t->items = stk_mem_new((size_t)p->decision_count + 1, sizeof *t->items);
    if (t->items == NULL) {
        return STK_FAIL_MEMORY(err, "what is fastest on the GPU");
    }
    for (int i = 0; i < p->decision_count; i++) {
        add_decision(t, &p->decisions[i]);
    }
    return STK_OK;
}

/* Trials run one after the other: they use the same counters. */
static void add_trial(cuda_program *p, tuning_trial *trial) {
    const cuda_fusion_row *row = &stk_cuda_fusions[trial->decision->fusion];
    cuda_rehearsal made;
    trial->noise.first = p->op_count;
    row->rehearse(p, trial->decision, &made);
    trial->noise.count = p->op_count - trial->noise.first;
    for (int variant = 0; variant < CUDA_VARIANTS; variant++) {
        cuda_range *range = &trial->variants[variant];
        range->first = p->op_count;
        for (int part = 0; part < row->parts; part++) {
            row->emit(p, &made.site, part, variant);
        }
        range->count = p->op_count - range->first;
    }
}

static void add_trials(tuning_trials *t) {
    int most_counters = 0;
    for (int i = 0; i < t->count; i++) {
        t->program.counters = 0;
        add_trial(&t->program, &t->items[i]);
        most_counters = t->program.counters > most_counters ? t->program.counters : most_counters;
    }
    t->program.counters = most_counters;
}

/* ---- timing ---- */

static bool can_run(const cuda_player *player, cuda_range ops) {
    for (int i = ops.first; i < ops.first + ops.count; i++) {
        const cuda_op *op = &player->program->ops[i];
        if (op->kind == CUDA_OP_CONV && !stk_cuda_convs_has(player->convs, &op->conv.shape)) {
            return false;
        }
    }
    return true;
}

static stk_status time_trial(const cuda_player *player, const tuning_trials *t,
                             const tuning_trial *trial, stk_error *err) {
    int variant = CUDA_PLAIN;
    stk_status status = STK_OK;
    if (t->config->halted != NULL && t->config->halted(t->config->user, 0)) {
        return STK_FAIL(err, STK_ERR_STOPPED, "stopped while kernels were timed");
    }
    /* Even the plain variant may contain a fused convolution, by the result of another decision. If
     * that has no plan, stk_cuda_autotune_retract() will find it; this decision stays open. */
    if (!can_run(player, trial->variants[CUDA_PLAIN])) {
        return STK_OK;
    }
    if (can_run(player, trial->variants[CUDA_FUSED])) {
        status = stk_cuda_player_range(player, trial->noise, err);
        STK_THEN(status,
                 stk_cuda_player_fastest(player, trial->variants, CUDA_VARIANTS, &variant, err));
    }
    if (status == STK_OK) {
        stk_cuda_tuning_result_set(t->results, trial->name, variant);
    }
    return status;
}

/* The trials' inputs share memory: the noise of one trial overwrites that of another. */
typedef struct noise_source {
    const cuda_player *player;
    const tuning_trials *all;
} noise_source;

/* Plans are compared on noise: writes that of the trial to which an operation belongs. */
static stk_status write_noise_for(const void *user, int op, stk_error *err) {
    const noise_source *source = user;
    int at = source->all->count - 1;
    while (at > 0 && source->all->items[at].noise.first > op) {
        at--;
    }
    return stk_cuda_player_range(source->player, source->all->items[at].noise, err);
}

/* The first operation fills the whole arena with noise, for what no trial writes. */
static stk_status time_all(const cuda_player *player, const tuning_trials *t, stk_error *err) {
    cuda_player mine = *player;
    mine.program = &t->program;
    mine.graph = NULL;
    const cuda_program *program = &t->program;
    const noise_source source = {&mine, t};
    const cuda_noise_writer again = {write_noise_for, &source};
    stk_status status = stk_cuda_kernels_make(player->kernels, &program, 1, err);
    STK_THEN(status, stk_cuda_player_launch(&mine, 0, err));
    STK_THEN(status, stk_cuda_player_prepare(&mine, &again, err));
    for (int i = 0; i < t->count && status == STK_OK; i++) {
        status = time_trial(&mine, t, &t->items[i], err);
    }
    return status;
}

stk_status stk_cuda_autotune(const cuda_player *player, cuda_tuning_results *results,
                             const stk_device_config *config, bool *tuned, stk_error *err) {
    const cuda_program *p = player->program;
    tuning_trials t = {.results = results, .config = config};
    *tuned = false;
    stk_status status = find_open(&t, p, err);
    if (status != STK_OK || t.count == 0) {
        stk_mem_free(t.items);
        return status;
    }
    stk_cuda_program_begin_like(&t.program, p);
    t.program.kept_stats = false; /* running statistics of a trial would be noise */
    cuda_ref all = stk_cuda_buffer(&t.program, p->arena_bytes);
    stk_cuda_noise(&t.program, p->arena_bytes / cuda_type_bytes(p->type), all);
    add_trials(&t);
    status = stk_cuda_program_lay_out(&t.program, err);
    /* A network whose arena is too small for the trials is fast enough without them. */
    bool fits = t.program.arena_bytes <= p->arena_bytes && t.program.counters <= p->counters;
    if (status == STK_OK && fits) {
        status = time_all(player, &t, err);
        *tuned = status == STK_OK;
    }
    stk_mem_free(t.items);
    stk_cuda_program_free(&t.program);
    return status;
}

bool stk_cuda_autotune_retract(const cuda_player *player, cuda_tuning_results *results) {
    const cuda_program *p = player->program;
    bool missing = false;
    for (int i = 0; i < p->op_count; i++) {
        const cuda_conv_op *conv = &p->ops[i].conv;
        if (p->ops[i].kind == CUDA_OP_CONV && conv->decision > 0 &&
            !stk_cuda_convs_has(player->convs, &conv->shape)) {
            char name[CUDA_RESULT_NAME];
            stk_cuda_decision_name(&p->decisions[conv->decision - 1], name);
            stk_cuda_tuning_result_set(results, name, CUDA_PLAIN);
            missing = true;
        }
    }
    return missing;
}
