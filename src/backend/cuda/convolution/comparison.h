/*
 * comparison.h - inside convolution/: which candidate computes the right result.
 *
 * A library may offer a plan that runs, is fast and computes a wrong result: engines of cuDNN have
 * done that where the padding after the image differs from that before it. So the results of
 * candidates are compared before one is taken, by fingerprints: a few sums over the whole result,
 * with random signs. An error e moves such a sum by about |e|.
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
    const cuda_own *own;        /* with CUDA_OWN_SUMS, which computes fingerprints */
    const cuda_conv_call *call; /* its inputs are finite numbers */
    /* Numbers of candidates in order of preference: the fastest first, with `deterministic` as they
     * were offered. "Fastest" below means first in this order. */
    int order[CUDA_MOST_CANDIDATES];
    int count;                                           /* entries of `order` */
    cuda_fingerprint fingerprints[CUDA_MOST_CANDIDATES]; /* of candidates, by number */
} cuda_comparison;

/* Whether our own kernel is fast enough for this shape to confirm results. */
bool stk_cuda_comparison_can_judge(const cuda_conv_shape *shape);

/*
 * The fastest candidate whose result another engine confirms; -1: none. Always -1 for shapes that
 * libraries are known to get wrong and for which our own kernel can judge.
 */
int stk_cuda_comparison_agreed(cuda_comparison *check);

/*
 * The fastest candidate whose result our own kernel confirms (`own` has CUDA_OWN_WHOLE); -1: none,
 * and our kernel must be taken.
 */
int stk_cuda_comparison_judged(cuda_comparison *check);

/*
 * For shapes that nothing confirms: the fastest candidate, if all are settings of one engine and
 * another setting agrees; otherwise the library's first offer; -1: none runs.
 */
int stk_cuda_comparison_unjudged(cuda_comparison *check);

#endif
