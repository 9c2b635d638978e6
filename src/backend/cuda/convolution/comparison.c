/* comparison.c - fingerprints of results, and which candidate they confirm. */
#include "backend/cuda/convolution/comparison.h"

#include <math.h>

/*
 * What results are written over, in bytes: numbers between 2 and 3 in all types. A plan that leaves
 * holes, or adds where it should not, then differs from others.
 */
#define SPOILED 0x40

/* Operations that our own kernel does in a few milliseconds, and in some dozens of them. */
#define FEW_OPERATIONS 2e9
#define MANY_OPERATIONS 2e10

/* The largest relative difference of two results that count as equal. */
static double room_of(const cuda_conv_shape *shape) {
    return shape->type != CUDA_TYPE_F32 ? 0.03 : shape->strict ? 1e-4 : 0.01;
}

static bool uneven(const cuda_conv_shape *s, int size, int out) {
    return (size + 2 * s->pad - s->kernel) / s->stride + 1 != out;
}

/* Engines of cuDNN have given wrong results where padding differs before and after. */
static bool is_doubtful(const cuda_conv_shape *shape) {
    return uneven(shape, shape->height, shape->out_height) ||
           uneven(shape, shape->width, shape->out_width);
}

bool stk_cuda_comparison_can_judge(const cuda_conv_shape *s) {
    double outs = (double)s->batch * s->out_height * s->out_width * s->filters;
    double operations = 2 * outs * s->kernel * s->kernel * s->channels;
    return operations < (is_doubtful(s) ? MANY_OPERATIONS : FEW_OPERATIONS);
}

/* ---- fingerprints ---- */

/* Sums of all blocks, in their order. */
static void add_up(cuda_fingerprint *print, float rows[][CUDA_OWN_SUM_COUNT], unsigned count) {
    print->finite = true;
    for (int k = 0; k < CUDA_OWN_SUM_COUNT; k++) {
        for (unsigned i = 0; i < count; i++) {
            print->sums[k] += (double)rows[i][k];
        }
        print->finite = print->finite && isfinite(print->sums[k]);
    }
}

static void take(const cuda_comparison *check, const cuda_candidate *candidate,
                 cuda_fingerprint *print) {
    const cuda_convs_config *config = check->makers->config;
    const cuda_driver *d = config->driver;
    const cuda_conv_call *call = check->call;
    const cuda_own *own = check->own;
    unsigned blocks = own->program.ops[own->ops[CUDA_OWN_SUMS]].launch.grid[0];
    float rows[CUDA_OWN_MOST_SUMS][CUDA_OWN_SUM_COUNT];
    cuda_pointer place = 0;
    size_t bytes = stk_cuda_own_written(call, &place) * cuda_type_bytes(call->shape->type);
    *print = (cuda_fingerprint){.taken = true};
    print->runs =
        d->fill(place, SPOILED, bytes, config->stream) == CUDA_GOOD &&
        stk_cuda_candidate_run(check->makers, candidate, own, call, NULL) == STK_OK &&
        stk_cuda_own_run(own, CUDA_OWN_SUMS, config, call, NULL) == STK_OK &&
        d->copy_out(rows, call->workspace, blocks * sizeof rows[0], config->stream) == CUDA_GOOD;
    print->runs = d->stream_wait(config->stream) == CUDA_GOOD && print->runs;
    if (print->runs) {
        add_up(print, rows, blocks);
    }
}

static const cuda_fingerprint *fingerprint_of(cuda_comparison *check, int candidate) {
    cuda_fingerprint *print = &check->fingerprints[candidate];
    if (!print->taken) {
        take(check, &check->candidates->items[candidate], print);
    }
    return print;
}

static bool agree(const cuda_fingerprint *a, const cuda_fingerprint *b,
                  const cuda_conv_shape *shape) {
    double lengths[2] = {sqrt(a->sums[0]), sqrt(b->sums[0])};
    double most = room_of(shape) * fmax(lengths[0], lengths[1]);
    bool same = a->finite && b->finite && fabs(lengths[0] - lengths[1]) <= most;
    for (int k = 1; k < CUDA_OWN_SUM_COUNT && same; k++) {
        same = fabs(a->sums[k] - b->sums[k]) <= most;
    }
    return same;
}

/* ---- which result is right ---- */

static bool same_engine(const cuda_candidate *a, const cuda_candidate *b) {
    return a->kind == b->kind && a->engine == b->engine;
}

/* The fastest candidate that agrees with another one: of another engine, or of the same engine. All
 * settings of one engine may be wrong alike, so the latter counts only where no other engine is. */
static int find_pair(cuda_comparison *check, bool of_one_engine) {
    const cuda_candidate *candidates = check->candidates->items;
    const cuda_conv_shape *shape = check->call->shape;
    for (int i = 0; i < check->count; i++) {
        int one = check->order[i];
        for (int j = 0; j < check->count; j++) {
            int other = check->order[j];
            if (i != j && same_engine(&candidates[one], &candidates[other]) == of_one_engine &&
                agree(fingerprint_of(check, one), fingerprint_of(check, other), shape)) {
                return one;
            }
        }
    }
    return -1;
}

int stk_cuda_comparison_agreed(cuda_comparison *check) {
    const cuda_conv_shape *shape = check->call->shape;
    bool better_judge = is_doubtful(shape) && stk_cuda_comparison_can_judge(shape);
    return better_judge ? -1 : find_pair(check, false);
}

int stk_cuda_comparison_judged(cuda_comparison *check) {
    const cuda_candidate ours = {.kind = CUDA_CANDIDATE_OWN};
    cuda_fingerprint right;
    take(check, &ours, &right);
    if (!right.finite) { /* the inputs are not finite */
        return stk_cuda_comparison_unjudged(check);
    }
    for (int i = 0; i < check->count; i++) {
        if (agree(fingerprint_of(check, check->order[i]), &right, check->call->shape)) {
            return check->order[i];
        }
    }
    return -1;
}

int stk_cuda_comparison_unjudged(cuda_comparison *check) {
    const cuda_candidate *candidates = check->candidates->items;
    bool alone = true;
    for (int i = 1; i < check->count; i++) {
        alone = alone && same_engine(&candidates[check->order[0]], &candidates[check->order[i]]);
    }
    int chosen = alone ? find_pair(check, true) : -1;
    for (int candidate = 0; candidate < check->candidates->count && chosen < 0; candidate++) {
        chosen = fingerprint_of(check, candidate)->finite ? candidate : -1;
    }
    /* If no result is finite, the inputs are not either, and the fastest candidate is taken. */
    for (int i = 0; i < check->count && chosen < 0; i++) {
        chosen = fingerprint_of(check, check->order[i])->runs ? check->order[i] : -1;
    }
    return chosen;
}
