/* candidates.c - what the libraries offer for one convolution; running and storing a candidate. */
#include "backend/cuda/convolution/candidates.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"

/*
 * How many of each are built and timed: the heuristics put the good ones first, but often dozens of
 * settings of one engine before the next engine.
 */
enum {
    MOST_OFFERS = 64,
    MOST_DNN = 14,
    MOST_FUSED = 8,
    MOST_DNN_BESIDE = 6,
    MOST_PRODUCTS = 6,
    MOST_OF_ENGINE = 8
};
_Static_assert(MOST_DNN + MOST_PRODUCTS < CUDA_MOST_CANDIDATES, "candidates");
_Static_assert(MOST_FUSED + MOST_DNN_BESIDE + MOST_PRODUCTS < CUDA_MOST_CANDIDATES, "candidates");

/* cuDNN stores and sums channels by the eight, and from 16-byte boundaries. */
#define BY_EIGHT 8

static void add_candidate(cuda_candidates *candidates, cuda_candidate candidate) {
    candidates->items[candidates->count++] = candidate;
}

/* Kinds of offers, in order; one is built only if those before it gave no candidate. */
typedef enum offer_kind { READY, COMPILED, LAST_RESORT, OFFER_KINDS } offer_kind;

/* The fallback of the library always works and is often very slow. */
static offer_kind kind_of(const cuda_dnn_offer *offer) {
    return offer->compiled ? COMPILED : offer->fallback ? LAST_RESORT : READY;
}

static int count_of(int64_t engine, const int64_t *engines, int count) {
    int same = 0;
    for (int i = 0; i < count; i++) {
        same += engines[i] == engine;
    }
    return same;
}

/* Builds up to `most` offers of a kind. */
static stk_status build_some(const cuda_candidate_makers *makers, const cuda_conv_shape *shape,
                             cuda_candidate_kind candidate, const cuda_dnn_offer *offers, int count,
                             offer_kind kind, int most, cuda_candidates *candidates,
                             stk_error *err) {
    int64_t engines[MOST_DNN];
    stk_status status = STK_OK;
    int built = 0;
    for (int i = 0; i < count && built < most && status == STK_OK; i++) {
        int64_t engine = offers[i].engine;
        cuda_dnn_plan *plan = NULL;
        if (kind_of(&offers[i]) != kind || count_of(engine, engines, built) >= MOST_OF_ENGINE) {
            continue;
        }
        status = stk_cuda_dnn_build(makers->dnn, shape, candidate == CUDA_CANDIDATE_DNN, &offers[i],
                                    &plan, err);
        if (plan != NULL) {
            add_candidate(candidates,
                          (cuda_candidate){.kind = candidate, .engine = engine, .dnn = plan});
        }
        /* A compiling engine that fails may have taken very long, so it counts as well. */
        if (plan != NULL || kind == COMPILED) {
            engines[built++] = engine;
        }
    }
    return status;
}

static stk_status gather_dnn(const cuda_candidate_makers *makers, const cuda_conv_shape *shape,
                             cuda_candidate_kind candidate, int most, cuda_candidates *candidates,
                             stk_error *err) {
    cuda_dnn_offer *offers = stk_mem_new(MOST_OFFERS, sizeof *offers);
    int count = MOST_OFFERS;
    int before = candidates->count;
    if (offers == NULL) {
        return STK_FAIL_MEMORY(err, "the plans of convolutions");
    }
    stk_status status = stk_cuda_dnn_offers(makers->dnn, shape, candidate == CUDA_CANDIDATE_DNN,
                                            makers->config->deterministic, offers, &count, err);
    for (int kind = 0; kind < OFFER_KINDS && candidates->count == before && status == STK_OK;
         kind++) {
        /* No compiled engines for statistics and norms: our own kernels compute these. */
        int wanted = kind != COMPILED ? most : shape->stats || shape->in_norm ? 0 : 1;
        status = build_some(makers, shape, candidate, offers, count, (offer_kind)kind, wanted,
                            candidates, err);
    }
    stk_mem_free(offers);
    return status;
}

static stk_status gather_products(const cuda_candidate_makers *makers, const cuda_conv_shape *shape,
                                  cuda_candidates *candidates, stk_error *err) {
    cuda_lt_algo algos[MOST_PRODUCTS];
    int count = MOST_PRODUCTS;
    stk_status status = stk_cuda_lt_offers(makers->lt, shape, algos, &count, err);
    for (int i = 0; i < count && status == STK_OK; i++) {
        cuda_lt_plan *plan = NULL;
        status = stk_cuda_lt_build(makers->lt, shape, &algos[i], &plan, err);
        if (plan != NULL) {
            add_candidate(candidates,
                          (cuda_candidate){.kind = CUDA_CANDIDATE_PRODUCT, .product = plan});
        }
    }
    return status;
}

/* The candidates of the libraries. */
static stk_status gather_all(const cuda_candidate_makers *makers, const cuda_conv_shape *shape,
                             cuda_candidates *candidates, stk_error *err) {
    bool tail = stk_cuda_own_has_tail(shape);
    bool fusible = tail && shape->filters <= CUDA_DNN_MOST_FILTERS;
    int plain = tail ? MOST_DNN_BESIDE : MOST_DNN;
    stk_status status = STK_OK;
    if (shape->stats || shape->in_norm) {
        return shape->filters % BY_EIGHT == 0 &&
                       (!shape->in_norm || shape->channels % BY_EIGHT == 0)
                   ? gather_dnn(makers, shape, CUDA_CANDIDATE_FUSED, MOST_DNN, candidates, err)
                   : STK_OK;
    }
    if (fusible) {
        status = gather_dnn(makers, shape, CUDA_CANDIDATE_FUSED, MOST_FUSED, candidates, err);
    }
    STK_THEN(status, gather_dnn(makers, shape, CUDA_CANDIDATE_DNN, plain, candidates, err));
    if (status == STK_OK && stk_cuda_lt_can(shape)) {
        status = gather_products(makers, shape, candidates, err);
    }
    return status;
}

stk_status stk_cuda_candidates_gather(const cuda_candidate_makers *makers,
                                      const cuda_conv_shape *shape, cuda_candidates *candidates,
                                      stk_error *err) {
    candidates->count = 0;
    stk_status status = gather_all(makers, shape, candidates, err);
    if (status == STK_OK && stk_cuda_own_has_blocks(shape, makers->config->major)) {
        add_candidate(candidates, (cuda_candidate){.kind = CUDA_CANDIDATE_BLOCKS});
    } else if (status == STK_OK && stk_cuda_own_has_rows(shape, makers->config->major)) {
        add_candidate(candidates, (cuda_candidate){.kind = CUDA_CANDIDATE_ROWS});
    }
    return status;
}

void stk_cuda_candidate_free(const cuda_candidate_makers *makers, cuda_candidate *candidate) {
    stk_cuda_dnn_plan_free(candidate->dnn);
    stk_cuda_lt_plan_free(makers->lt, candidate->product);
    candidate->dnn = NULL;
    candidate->product = NULL;
}

void stk_cuda_candidates_free(const cuda_candidate_makers *makers, cuda_candidates *candidates) {
    while (candidates->count > 0) {
        stk_cuda_candidate_free(makers, &candidates->items[--candidates->count]);
    }
}

stk_status stk_cuda_candidate_run(const cuda_candidate_makers *makers,
                                  const cuda_candidate *candidate, const cuda_own *own,
                                  const cuda_conv_call *call, stk_error *err) {
    const cuda_convs_config *config = makers->config;
    stk_status status = STK_OK;
    switch (candidate->kind) {
    case CUDA_CANDIDATE_OWN:
        return stk_cuda_own_run(own, CUDA_OWN_WHOLE, config, call, err);
    case CUDA_CANDIDATE_BLOCKS:
    case CUDA_CANDIDATE_ROWS:
        status = stk_cuda_own_run(
            own, candidate->kind == CUDA_CANDIDATE_ROWS ? CUDA_OWN_ROWS : CUDA_OWN_BLOCKS, config,
            call, err);
        return status == STK_OK && stk_cuda_own_sums_blocks(call->shape)
                   ? stk_cuda_own_run(own, CUDA_OWN_BLOCKS_SUM, config, call, err)
                   : status;
    case CUDA_CANDIDATE_FUSED:
        if (call->shape->bias && call->shape->type != CUDA_TYPE_F32) {
            status = stk_cuda_own_run(own, CUDA_OWN_DOWN, config, call, err);
        }
        return status == STK_OK ? stk_cuda_dnn_run(makers->dnn, candidate->dnn, call, false, err)
                                : status;
    case CUDA_CANDIDATE_DNN:
        status = stk_cuda_dnn_run(makers->dnn, candidate->dnn, call, true, err);
        break;
    case CUDA_CANDIDATE_PRODUCT:
        status = stk_cuda_lt_run(makers->lt, candidate->product, call, err);
        break;
    }
    if (status == STK_OK && stk_cuda_own_has_tail(call->shape)) {
        status = stk_cuda_own_run(own, CUDA_OWN_TAIL, config, call, err);
    }
    return status;
}

/* The kind, then the plan's text, or the algorithm. */
void stk_cuda_candidate_write(const cuda_candidate_makers *makers, const cuda_candidate *candidate,
                              char **bytes, size_t *count) {
    char *text = NULL;
    const void *body = "";
    size_t size = 0;
    *bytes = NULL;
    if (candidate->dnn != NULL) {
        if (stk_cuda_dnn_write(makers->dnn, candidate->dnn, &text, NULL) != STK_OK) {
            return;
        }
        body = text;
        size = strlen(text);
    } else if (candidate->product != NULL) {
        body = stk_cuda_lt_plan_algo(candidate->product);
        size = sizeof(cuda_lt_algo);
    }
    char *made = stk_mem_raw(size + 1, 1);
    if (made != NULL) {
        made[0] = (char)candidate->kind;
        memcpy(made + 1, body, size);
        *bytes = made;
        *count = size + 1;
    }
    stk_mem_free(text);
}

bool stk_cuda_candidate_read(const cuda_candidate_makers *makers, const cuda_conv_shape *shape,
                             const char *bytes, size_t count, cuda_candidate *candidate) {
    stk_status status = STK_OK;
    *candidate = (cuda_candidate){.kind = CUDA_CANDIDATE_OWN};
    if (count == 0) {
        return false;
    }
    switch (bytes[0]) {
    case CUDA_CANDIDATE_BLOCKS:
        candidate->kind = CUDA_CANDIDATE_BLOCKS;
        return stk_cuda_own_has_blocks(shape, makers->config->major);
    case CUDA_CANDIDATE_ROWS:
        candidate->kind = CUDA_CANDIDATE_ROWS;
        return stk_cuda_own_has_rows(shape, makers->config->major);
    case CUDA_CANDIDATE_PRODUCT:
        if (count == 1 + sizeof(cuda_lt_algo) && stk_cuda_lt_can(shape)) {
            cuda_lt_algo algo;
            memcpy(&algo, bytes + 1, sizeof algo);
            candidate->kind = CUDA_CANDIDATE_PRODUCT;
            status = stk_cuda_lt_build(makers->lt, shape, &algo, &candidate->product, NULL);
        }
        return status == STK_OK && candidate->product != NULL;
    case CUDA_CANDIDATE_FUSED:
    case CUDA_CANDIDATE_DNN: {
        char *text = stk_mem_strndup(bytes + 1, count - 1);
        candidate->kind = (cuda_candidate_kind)bytes[0];
        if (text != NULL) {
            status = stk_cuda_dnn_read(makers->dnn, text, &candidate->dnn, NULL);
        }
        stk_mem_free(text);
        return status == STK_OK && candidate->dnn != NULL;
    }
    default:
        return false;
    }
}
