/* program.c - appends operations, and finds from them how long each buffer lives. */
#include "backend/cuda/program/program.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "engine/arena.h"

void stk_cuda_program_begin(cuda_program *p, cuda_type type, bool strict, int multiprocessors) {
    memset(p, 0, sizeof *p);
    p->type = type;
    p->strict = strict;
    p->multiprocessors = multiprocessors;
    for (int i = 0; i < CUDA_FIXED_COUNT; i++) {
        (void)stk_cuda_buffer(p, 0);
    }
}

void stk_cuda_program_begin_like(cuda_program *p, const cuda_program *other) {
    stk_cuda_program_begin(p, other->type, other->strict, other->multiprocessors);
    p->major = other->major;
    p->kept_stats = other->kept_stats;
}

void stk_cuda_program_free(cuda_program *p) {
    stk_mem_free(p->buffers);
    stk_mem_free(p->ops);
    stk_mem_free(p->decisions);
    memset(p, 0, sizeof *p);
}

cuda_ref stk_cuda_buffer(cuda_program *p, size_t bytes) {
    if (!STK_RESERVE(p->buffers, p->buffer_capacity, (size_t)p->buffer_count + 1)) {
        (void)STK_FAIL_MEMORY(&p->error, "the program of a network");
        return cuda_nothing();
    }
    p->buffers[p->buffer_count] = (cuda_buffer){.bytes = bytes, .birth = -1, .death = -1};
    return (cuda_ref){p->buffer_count++, 0};
}

cuda_ref stk_cuda_counters(cuda_program *p, int count) {
    cuda_ref ref = cuda_fixed_at(CUDA_FIXED_COUNTERS, (size_t)p->counters * 4);
    p->counters += count;
    return ref;
}

/* A new operation; without memory for it, a dummy that is never read. */
static cuda_op *add_op(cuda_program *p, cuda_op_kind kind) {
    cuda_op *op = &p->lost;
    if (STK_RESERVE(p->ops, p->op_capacity, (size_t)p->op_count + 1)) {
        op = &p->ops[p->op_count++];
    } else {
        (void)STK_FAIL_MEMORY(&p->error, "the program of a network");
    }
    memset(op, 0, sizeof *op);
    op->kind = kind;
    op->time = p->time++;
    return op;
}

cuda_launch *stk_cuda_launch(cuda_program *p, const char *file, const char *name, unsigned grid_x,
                             unsigned grid_y, unsigned threads, unsigned shared_bytes) {
    cuda_launch *launch = &add_op(p, CUDA_OP_LAUNCH)->launch;
    launch->file = file;
    launch->name = name;
    launch->grid[0] = grid_x;
    launch->grid[1] = grid_y;
    launch->threads = threads;
    launch->shared_bytes = shared_bytes;
    return launch;
}

void stk_cuda_define(cuda_launch *launch, const char *name, long value) {
    size_t used = strlen(launch->defines);
    snprintf(launch->defines + used, sizeof launch->defines - used, "-D%s=%ld ", name, value);
}

void stk_cuda_define_stats(const cuda_program *p, cuda_launch *launch) {
    if (p->kept_stats) {
        stk_cuda_define(launch, "KEPT_STATS", 1);
    }
}

void stk_cuda_arg(cuda_launch *launch, cuda_ref ref) {
    int last = launch->arg_count < CUDA_MOST_ARGS ? launch->arg_count++ : CUDA_MOST_ARGS - 1;
    cuda_arg arg = {.kind = CUDA_ARG_REF, .ref = ref};
    if (ref.buffer == CUDA_NUMBER_INT) {
        arg = (cuda_arg){.kind = CUDA_ARG_INT, .number = (int32_t)ref.offset};
    } else if (ref.buffer == CUDA_NUMBER_LONG) {
        arg = (cuda_arg){.kind = CUDA_ARG_LONG, .big = (int64_t)ref.offset};
    } else if (ref.buffer == CUDA_NUMBER_FLOAT) {
        arg = (cuda_arg){.kind = CUDA_ARG_FLOAT};
        memcpy(&arg.real, &ref.offset, sizeof arg.real);
    }
    launch->args[last] = arg;
}

void stk_cuda_defines(cuda_launch *launch, const cuda_define *defines, size_t count) {
    for (size_t i = 0; i < count; i++) {
        stk_cuda_define(launch, defines[i].name, defines[i].value);
    }
}

void stk_cuda_args(cuda_launch *launch, const cuda_ref *refs, size_t count) {
    for (size_t i = 0; i < count; i++) {
        stk_cuda_arg(launch, refs[i]);
    }
}

int stk_cuda_act_code(stk_op act) {
    switch (act) {
    case STK_OP_RELU:
        return 1;
    case STK_OP_RELU6:
        return 2;
    case STK_OP_SILU:
        return 3;
    case STK_OP_SIGMOID:
        return 4;
    default:
        return 0;
    }
}

void stk_cuda_conv(cuda_program *p, const cuda_conv_op *conv) {
    add_op(p, CUDA_OP_CONV)->conv = *conv;
}

static void touch(cuda_program *p, cuda_ref ref, int time) {
    if (cuda_is_something(ref) && ref.buffer < p->buffer_count) {
        cuda_buffer *b = &p->buffers[ref.buffer];
        b->birth = b->birth < 0 || time < b->birth ? time : b->birth;
        b->death = time > b->death ? time : b->death;
    }
}

/* The buffers that an operation names live at its time. */
static void touch_all(cuda_program *p, const cuda_op *op) {
    for (int k = 0; k < op->launch.arg_count; k++) {
        if (op->launch.args[k].kind == CUDA_ARG_REF) {
            touch(p, op->launch.args[k].ref, op->time);
        }
    }
    if (op->kind == CUDA_OP_CONV) {
        const cuda_ref refs[] = {op->conv.x,     op->conv.w,     op->conv.y,   op->conv.bias,
                                 op->conv.added, op->conv.stats, op->conv.raw, op->conv.in_norm};
        for (size_t k = 0; k < sizeof refs / sizeof *refs; k++) {
            touch(p, refs[k], op->time);
        }
    }
}

cuda_variant_span stk_cuda_variants_begin(const cuda_program *p) {
    return (cuda_variant_span){.first_op = p->op_count,
                               .time = p->time,
                               .counters = p->counters,
                               .end = p->time,
                               .most_counters = p->counters};
}

void stk_cuda_variants_add(cuda_program *p, cuda_variant_span *span, bool runs) {
    span->end = p->time > span->end ? p->time : span->end;
    span->most_counters = p->counters > span->most_counters ? p->counters : span->most_counters;
    if (!runs) {
        for (int i = span->first_op; i < p->op_count; i++) {
            touch_all(p, &p->ops[i]);
        }
        p->op_count = span->first_op;
    }
    span->first_op = p->op_count;
    p->time = span->time;
    p->counters = span->counters;
}

void stk_cuda_variants_end(cuda_program *p, const cuda_variant_span *span) {
    p->time = span->end;
    p->counters = span->most_counters;
}

stk_status stk_cuda_program_lay_out(cuda_program *p, stk_error *err) {
    if (p->error.status != STK_OK) {
        return STK_FAIL(err, p->error.status, "%s", p->error.message);
    }
    for (int i = 0; i < p->op_count; i++) {
        touch_all(p, &p->ops[i]);
    }
    stk_arena_item *items = stk_mem_new((size_t)p->buffer_count, sizeof *items);
    if (items == NULL) {
        return STK_FAIL_MEMORY(err, "the memory layout");
    }
    for (int i = 0; i < p->buffer_count; i++) {
        const cuda_buffer *b = &p->buffers[i];
        items[i] = (stk_arena_item){
            .bytes = b->birth >= 0 ? b->bytes : 0, .birth = b->birth, .death = b->death};
    }
    stk_status status =
        stk_arena_place(items, (size_t)p->buffer_count, CUDA_ALIGN, &p->arena_bytes, err);
    for (int i = 0; i < p->buffer_count && status == STK_OK; i++) {
        p->buffers[i].offset = items[i].offset;
    }
    stk_mem_free(items);
    return status;
}
