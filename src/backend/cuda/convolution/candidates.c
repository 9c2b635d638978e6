/* candidates.c - candidates of the libraries for one convolution; running and keeping one. */
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
_Static_assert(MOST_DNN + MOST_PRODUCTS < CUDA_MOST_WAYS, "ways");
_Static_assert(MOST_FUSED + MOST_DNN_BESIDE + MOST_PRODUCTS < CUDA_MOST_WAYS, "ways");

/* cuDNN stores and sums channels by the eight, and from 16-byte boundaries. */
#define BY_EIGHT 8

static void add_way(cuda_ways *ways, cuda_way way) {
    ways->ways[ways->count++] = way;
}

/* Each kind of offers is only built where the kinds before it gave nothing. */
typedef enum offer_kind { READY, COMPILED, LAST_RESORT, OFFER_KINDS } offer_kind;

/* What the library falls back to always works and is often very slow. */
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
static stk_status build_some(const cuda_way_makers *makers, const cuda_conv_shape *shape,
                             cuda_way_kind way, const cuda_dnn_offer *offers, int count,
                             offer_kind kind, int most, cuda_ways *ways, stk_error *err) {
    int64_t engines[MOST_DNN];
    stk_status status = STK_OK;
    int built = 0;
    for (int i = 0; i < count && built < most && status == STK_OK; i++) {
        int64_t engine = offers[i].engine;
        cuda_dnn_plan *plan = NULL;
        if (kind_of(&offers[i]) != kind || count_of(engine, engines, built) >= MOST_OF_ENGINE) {
            continue;
        }
        status =
            stk_cuda_dnn_build(makers->dnn, shape, way == CUDA_WAY_DNN, &offers[i], &plan, err);
        if (plan != NULL) {
            add_way(ways, (cuda_way){.kind = way, .engine = engine, .dnn = plan});
        }
        /* An engine that compiles may take very long to find out that it cannot: it counts too. */
        if (plan != NULL || kind == COMPILED) {
            engines[built++] = engine;
        }
    }
    return status;
}

static stk_status gather_dnn(const cuda_way_makers *makers, const cuda_conv_shape *shape,
                             cuda_way_kind way, int most, cuda_ways *ways, stk_error *err) {
    cuda_dnn_offer *offers = stk_mem_new(MOST_OFFERS, sizeof *offers);
    int count = MOST_OFFERS;
    int before = ways->count;
    if (offers == NULL) {
        return STK_FAIL_MEMORY(err, "the plans of convolutions");
    }
    stk_status status = stk_cuda_dnn_offers(makers->dnn, shape, way == CUDA_WAY_DNN,
                                            makers->config->deterministic, offers, &count, err);
    for (int kind = 0; kind < OFFER_KINDS && ways->count == before && status == STK_OK; kind++) {
        /* Statistics and norms are not worth waiting for a compiler: there are kernels for them. */
        int wanted = kind != COMPILED ? most : shape->stats || shape->in_norm ? 0 : 1;
        status = build_some(makers, shape, way, offers, count, (offer_kind)kind, wanted, ways, err);
    }
    stk_mem_free(offers);
    return status;
}

static stk_status gather_products(const cuda_way_makers *makers, const cuda_conv_shape *shape,
                                  cuda_ways *ways, stk_error *err) {
    cuda_lt_algo algos[MOST_PRODUCTS];
    int count = MOST_PRODUCTS;
    stk_status status = stk_cuda_lt_offers(makers->lt, shape, algos, &count, err);
    for (int i = 0; i < count && status == STK_OK; i++) {
        cuda_lt_plan *plan = NULL;
        status = stk_cuda_lt_build(makers->lt, shape, &algos[i], &plan, err);
        if (plan != NULL) {
            add_way(ways, (cuda_way){.kind = CUDA_WAY_PRODUCT, .product = plan});
        }
    }
    return status;
}

/* Those of the libraries. */
static stk_status gather_all(const cuda_way_makers *makers, const cuda_conv_shape *shape,
                             cuda_ways *ways, stk_error *err) {
    bool tail = stk_cuda_own_has_tail(shape);
    bool fusible = tail && shape->filters <= CUDA_DNN_MOST_FILTERS;
    int plain = tail ? MOST_DNN_BESIDE : MOST_DNN;
    stk_status status = STK_OK;
    if (shape->stats || shape->in_norm) {
        return shape->filters % BY_EIGHT == 0 &&
                       (!shape->in_norm || shape->channels % BY_EIGHT == 0)
                   ? gather_dnn(makers, shape, CUDA_WAY_FUSED, MOST_DNN, ways, err)
                   : STK_OK;
    }
    if (fusible) {
        status = gather_dnn(makers, shape, CUDA_WAY_FUSED, MOST_FUSED, ways, err);
    }
    if (status == STK_OK) {
        status = gather_dnn(makers, shape, CUDA_WAY_DNN, plain, ways, err);
    }
    if (status == STK_OK && stk_cuda_lt_can(shape)) {
        status = gather_products(makers, shape, ways, err);
    }
    return status;
}

stk_status stk_cuda_ways_gather(const cuda_way_makers *makers, const cuda_conv_shape *shape,
                                cuda_ways *ways, stk_error *err) {
    ways->count = 0;
    stk_status status = gather_all(makers, shape, ways, err);
    if (status == STK_OK && stk_cuda_own_has_blocks(shape, makers->config->major)) {
        add_way(ways, (cuda_way){.kind = CUDA_WAY_BLOCKS});
    } else if (status == STK_OK && stk_cuda_own_has_rows(shape, makers->config->major)) {
        add_way(ways, (cuda_way){.kind = CUDA_WAY_ROWS});
    }
    return status;
}

void stk_cuda_way_free(const cuda_way_makers *makers, cuda_way *way) {
    stk_cuda_dnn_plan_free(way->dnn);
    stk_cuda_lt_plan_free(makers->lt, way->product);
    way->dnn = NULL;
    way->product = NULL;
}

void stk_cuda_ways_free(const cuda_way_makers *makers, cuda_ways *ways) {
    while (ways->count > 0) {
        stk_cuda_way_free(makers, &ways->ways[--ways->count]);
    }
}

stk_status stk_cuda_way_run(const cuda_way_makers *makers, const cuda_way *way, const cuda_own *own,
                            const cuda_conv_call *call, stk_error *err) {
    const cuda_convs_config *config = makers->config;
    stk_status status = STK_OK;
    switch (way->kind) {
    case CUDA_WAY_OWN:
        return stk_cuda_own_run(own, CUDA_OWN_WHOLE, config, call, err);
    case CUDA_WAY_BLOCKS:
    case CUDA_WAY_ROWS:
        status = stk_cuda_own_run(own, way->kind == CUDA_WAY_ROWS ? CUDA_OWN_ROWS : CUDA_OWN_BLOCKS,
                                  config, call, err);
        return status == STK_OK && stk_cuda_own_sums_blocks(call->shape)
                   ? stk_cuda_own_run(own, CUDA_OWN_BLOCKS_SUM, config, call, err)
                   : status;
    case CUDA_WAY_FUSED:
        if (call->shape->bias && call->shape->type != CUDA_TYPE_F32) {
            status = stk_cuda_own_run(own, CUDA_OWN_DOWN, config, call, err);
        }
        return status == STK_OK ? stk_cuda_dnn_run(makers->dnn, way->dnn, call, false, err)
                                : status;
    case CUDA_WAY_DNN:
        status = stk_cuda_dnn_run(makers->dnn, way->dnn, call, true, err);
        break;
    case CUDA_WAY_PRODUCT:
        status = stk_cuda_lt_run(makers->lt, way->product, call, err);
        break;
    }
    if (status == STK_OK && stk_cuda_own_has_tail(call->shape)) {
        status = stk_cuda_own_run(own, CUDA_OWN_TAIL, config, call, err);
    }
    return status;
}

/* The kind, then the plan's text, or the algorithm. */
void stk_cuda_way_write(const cuda_way_makers *makers, const cuda_way *way, char **bytes,
                        size_t *count) {
    char *text = NULL;
    const void *body = "";
    size_t size = 0;
    *bytes = NULL;
    if (way->dnn != NULL) {
        if (stk_cuda_dnn_write(makers->dnn, way->dnn, &text, NULL) != STK_OK) {
            return;
        }
        body = text;
        size = strlen(text);
    } else if (way->product != NULL) {
        body = stk_cuda_lt_plan_algo(way->product);
        size = sizeof(cuda_lt_algo);
    }
    char *made = stk_mem_raw(size + 1, 1);
    if (made != NULL) {
        made[0] = (char)way->kind;
        memcpy(made + 1, body, size);
        *bytes = made;
        *count = size + 1;
    }
    stk_mem_free(text);
}

bool stk_cuda_way_read(const cuda_way_makers *makers, const cuda_conv_shape *shape,
                       const char *bytes, size_t count, cuda_way *way) {
    stk_status status = STK_OK;
    *way = (cuda_way){.kind = CUDA_WAY_OWN};
    if (count == 0) {
        return false;
    }
    switch (bytes[0]) {
    case CUDA_WAY_BLOCKS:
        way->kind = CUDA_WAY_BLOCKS;
        return stk_cuda_own_has_blocks(shape, makers->config->major);
    case CUDA_WAY_ROWS:
        way->kind = CUDA_WAY_ROWS;
        return stk_cuda_own_has_rows(shape, makers->config->major);
    case CUDA_WAY_PRODUCT:
        if (count == 1 + sizeof(cuda_lt_algo) && stk_cuda_lt_can(shape)) {
            cuda_lt_algo algo;
            memcpy(&algo, bytes + 1, sizeof algo);
            way->kind = CUDA_WAY_PRODUCT;
            status = stk_cuda_lt_build(makers->lt, shape, &algo, &way->product, NULL);
        }
        return status == STK_OK && way->product != NULL;
    case CUDA_WAY_FUSED:
    case CUDA_WAY_DNN: {
        char *text = stk_mem_strndup(bytes + 1, count - 1);
        way->kind = (cuda_way_kind)bytes[0];
        if (text != NULL) {
            status = stk_cuda_dnn_read(makers->dnn, text, &way->dnn, NULL);
        }
        stk_mem_free(text);
        return status == STK_OK && way->dnn != NULL;
    }
    default:
        return false;
    }
}
