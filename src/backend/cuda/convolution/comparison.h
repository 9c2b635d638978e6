/*
 * comparison.h - inside convolution/: which candidate computes the right result.
 *
 * A library may offer a plan that runs, is fast and computes something else: engines of cuDNN have
 * done that where the padding behind differs from that in front. So results of candidates are
 * compared before one is taken, by fingerprints: a few sums over the whole result, with random
 * signs. A wrong result moves such a sum by about the length of its error.
 */
#ifndef STK_BACKEND_CUDA_CONVOLUTION_COMPARISON_H
#define STK_BACKEND_CUDA_CONVOLUTION_COMPARISON_H

#include "backend/cuda/convolution/candidates.h"

typedef struct cuda_fingerprint {
    bool taken;                      /* the other fields are set */
    bool runs;                       /* the candidate runs; otherwise there are no sums */
    bool finite;                     /* all sums are finite */
    double sums[CUDA_OWN_SUM_COUNT]; /* the first one is the sum of squares */
} cuda_fingerprint;

/* Candidates for one convolution. Fingerprints are taken when they are needed. */
typedef struct cuda_comparison {
    const cuda_candidate_makers *makers;
    const cuda_candidates *candidates;
    const cuda_own *own;             /* with CUDA_OWN_SUMS, which computes fingerprints */
    const cuda_conv_call *call;      /* its inputs are finite numbers */
    int order[CUDA_MOST_CANDIDATES]; /* numbers of candidates, the fastest first */
    int count;                       /* entries of `order` */
    cuda_fingerprint fingerprints[CUDA_MOST_CANDIDATES]; /* of candidates, by number */
} cuda_comparison;

/* Whether our own kernel is fast enough for this shape to say what is right. */
bool stk_cuda_comparison_can_judge(const cuda_conv_shape *shape);

/*
 * The number of the best candidate whose result is that of another engine; -1: none. For shapes
 * that libraries are known to get wrong, where our own kernel can judge, it is -1 always.
 */
int stk_cuda_comparison_agreed(cuda_comparison *check);

/*
 * The number of the best candidate whose result is that of our own kernel, which `own` has; -1:
 * none, and our kernel is to be taken.
 */
int stk_cuda_comparison_judged(cuda_comparison *check);

/*
 * When nobody can say what is right: the best candidate, if all are settings of one engine and
 * another setting agrees, else what the library would have taken; -1: none runs.
 */
int stk_cuda_comparison_unjudged(cuda_comparison *check);

#endif
