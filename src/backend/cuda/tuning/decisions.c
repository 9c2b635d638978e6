/* decisions.c - takes the variant that a tuning result names, and notes the decision. */
#include "backend/cuda/tuning/tuning.h"

#include <stdio.h>

#include "base/error.h"
#include "base/mem.h"

void stk_cuda_decision_name(const cuda_decision *decision, char name[CUDA_RESULT_NAME]) {
    const cuda_conv_shape *s = &decision->shape;
    snprintf(name, CUDA_RESULT_NAME,
             "%s type %d x %d %d %d %d y %d %d %d kernel %d stride %d pad %d%s variant %d",
             stk_cuda_fusions[decision->fusion].name, (int)s->type, s->batch, s->height, s->width,
             s->channels, s->out_height, s->out_width, s->filters, s->kernel, s->stride, s->pad,
             s->accumulate ? " +" : "", decision->detail);
}

static int note(cuda_program *p, const cuda_decision *decision) {
    if (!STK_RESERVE(p->decisions, p->decision_capacity, (size_t)p->decision_count + 1)) {
        (void)STK_FAIL_MEMORY(&p->error, "the program of a network");
        return 0;
    }
    p->decisions[p->decision_count++] = *decision;
    return p->decision_count;
}

int stk_cuda_decision_result(cuda_tuning_results *results, const cuda_decision *decision) {
    char name[CUDA_RESULT_NAME];
    if (results == NULL) {
        return CUDA_UNDECIDED;
    }
    stk_cuda_decision_name(decision, name);
    return stk_cuda_tuning_result(results, name);
}

int stk_cuda_decide(cuda_program *p, cuda_tuning_results *results, const cuda_decision *decision,
                    int *number) {
    *number = 0;
    if (results == NULL || p->strict) {
        return CUDA_PLAIN;
    }
    *number = note(p, decision);
    int variant = stk_cuda_decision_result(results, decision);
    return variant != CUDA_UNDECIDED ? variant : CUDA_PLAIN;
}
