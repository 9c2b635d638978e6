/*
 * blaslt.c - 1x1 convolutions as products of matrices.
 *
 * cuBLASLt stores matrices by columns: our matrix, stored by rows, is its transpose there. With M
 * rows of pixels, C channels and K filters, x is (C, M), w is (C, K), y is (K, M), and
 *   forward  y = w' x     data  dx = w dy     weight  dw = x dy'
 */
#include "backend/cuda/convolution/blaslt.h"

#include "backend/cuda/driver/api.h"
#include "base/error.h"
#include "base/mem.h"

#define MOST_RESULTS 16

struct cuda_lt {
    cuda_lt_functions api;
    cuda_lt_handle handle;
    cuda_stream stream;
};

struct cuda_lt_plan {
    cuda_lt_object product;
    cuda_lt_object a, b, d;
    cuda_lt_algo algo;
};

static stk_status find_functions(cuda_lt_functions *api, void *library, stk_error *err) {
    const cuda_symbol wanted[] = {
#define X(name, symbol, parameters) {symbol, &api->name},
        CUDA_LT_FUNCTIONS(X)
#undef X
    };
    return stk_cuda_symbols(library, "cuBLASLt", wanted, STK_COUNT(wanted), err);
}

stk_status stk_cuda_lt_open(cuda_lt **lt, void *library, cuda_stream stream, stk_error *err) {
    cuda_lt *made = stk_mem_new(1, sizeof *made);
    *lt = NULL;
    if (made == NULL) {
        return STK_FAIL_MEMORY(err, "cuBLASLt");
    }
    made->stream = stream;
    stk_status status = find_functions(&made->api, library, err);
    if (status == STK_OK) {
        int result = made->api.create(&made->handle);
        if (result != 0) {
            made->handle = NULL;
            status =
                STK_FAIL(err, STK_ERR_DEVICE, "cannot start cuBLASLt: it gives error %d", result);
        }
    }
    if (status != STK_OK) {
        stk_cuda_lt_close(made);
        return status;
    }
    *lt = made;
    return STK_OK;
}

void stk_cuda_lt_close(cuda_lt *lt) {
    if (lt != NULL && lt->handle != NULL) {
        (void)lt->api.destroy(lt->handle);
    }
    stk_mem_free(lt);
}

bool stk_cuda_lt_can(const cuda_conv_shape *shape) {
    return shape->kernel == 1 && shape->stride == 1 && shape->pad == 0 &&
           shape->out_height == shape->height && shape->out_width == shape->width;
}

static int data_type(cuda_type type) {
    return type == CUDA_TYPE_F32 ? LT_FLOAT : type == CUDA_TYPE_F16 ? LT_HALF : LT_BFLOAT16;
}

/* Makes all of a plan except the algorithm. Returns the library's first error, or 0. */
static int describe(const cuda_lt *lt, const cuda_conv_shape *shape, cuda_lt_plan *plan) {
    const cuda_lt_functions *api = &lt->api;
    uint64_t pixels = (uint64_t)shape->batch * (uint64_t)shape->height * (uint64_t)shape->width;
    uint64_t channels = (uint64_t)shape->channels, filters = (uint64_t)shape->filters;
    bool forward = shape->kind == CUDA_CONV_FORWARD, weight = shape->kind == CUDA_CONV_WEIGHT;
    bool fast = shape->type == CUDA_TYPE_F32 && !shape->strict;
    int32_t transposed = LT_TRANSPOSE;
    int type = data_type(shape->type);
    int status =
        api->product_new(&plan->product, fast ? LT_COMPUTE_TF32 : LT_COMPUTE_FLOAT, LT_FLOAT);
    if (status == 0 && !(shape->kind == CUDA_CONV_DATA)) {
        status = api->product_set(plan->product, forward ? LT_PRODUCT_TRANS_A : LT_PRODUCT_TRANS_B,
                                  &transposed, sizeof transposed);
    }
    if (status == 0) {
        status =
            api->matrix_new(&plan->a, type, channels, weight ? pixels : filters, (int64_t)channels);
    }
    if (status == 0) {
        uint64_t rows = forward ? channels : filters;
        status = api->matrix_new(&plan->b, type, rows, pixels, (int64_t)rows);
    }
    if (status == 0) {
        uint64_t rows = forward ? filters : channels;
        status = api->matrix_new(&plan->d, type, rows, weight ? filters : pixels, (int64_t)rows);
    }
    return status;
}

static void forget(const cuda_lt *lt, cuda_lt_plan *plan) {
    cuda_lt_object matrices[] = {plan->a, plan->b, plan->d};
    for (size_t i = 0; i < STK_COUNT(matrices); i++) {
        if (matrices[i] != NULL) {
            (void)lt->api.matrix_free(matrices[i]);
        }
    }
    if (plan->product != NULL) {
        (void)lt->api.product_free(plan->product);
    }
}

/* The parts of a split sum are added in float32: fp16 would round each of them. */
static int prefer(const cuda_lt *lt, cuda_lt_object *preference) {
    uint64_t bytes = CUDA_WORKSPACE_BYTES;
    uint32_t reduction = LT_REDUCTION_COMPUTE_TYPE;
    int status = lt->api.preference_new(preference);
    if (status == 0) {
        status = lt->api.preference_set(*preference, LT_PREFERENCE_WORKSPACE, &bytes, sizeof bytes);
    }
    if (status == 0) {
        status = lt->api.preference_set(*preference, LT_PREFERENCE_REDUCTION, &reduction,
                                        sizeof reduction);
    }
    return status;
}

stk_status stk_cuda_lt_offers(cuda_lt *lt, const cuda_conv_shape *shape, cuda_lt_algo *algos,
                              int *count, stk_error *err) {
    cuda_lt_result *results = stk_mem_new(MOST_RESULTS, sizeof *results);
    cuda_lt_plan plan = {.product = NULL};
    cuda_lt_object preference = NULL;
    int most = *count < MOST_RESULTS ? *count : MOST_RESULTS;
    int found = 0;
    *count = 0;
    if (results == NULL) {
        return STK_FAIL_MEMORY(err, "the plans of products");
    }
    int status = describe(lt, shape, &plan);
    status = status == 0 ? prefer(lt, &preference) : status;
    if (status == 0) {
        status = lt->api.heuristic(lt->handle, plan.product, plan.a, plan.b, plan.d, plan.d,
                                   preference, most, results, &found);
    }
    for (int i = 0; i < found && i < most && status == 0; i++) {
        if (results[i].state == 0 && results[i].workspace_bytes <= CUDA_WORKSPACE_BYTES) {
            algos[(*count)++] = results[i].algo;
        }
    }
    if (preference != NULL) {
        (void)lt->api.preference_free(preference);
    }
    forget(lt, &plan);
    stk_mem_free(results);
    return STK_OK;
}

stk_status stk_cuda_lt_build(cuda_lt *lt, const cuda_conv_shape *shape, const cuda_lt_algo *algo,
                             cuda_lt_plan **plan, stk_error *err) {
    cuda_lt_plan *made = stk_mem_new(1, sizeof *made);
    cuda_lt_result result = {.algo = *algo};
    *plan = NULL;
    if (made == NULL) {
        return STK_FAIL_MEMORY(err, "the plans of products");
    }
    made->algo = *algo;
    int status = describe(lt, shape, made);
    if (status == 0) {
        status = lt->api.check(lt->handle, made->product, made->a, made->b, made->d, made->d, algo,
                               &result);
    }
    if (status != 0 || result.state != 0 || result.workspace_bytes > CUDA_WORKSPACE_BYTES) {
        stk_cuda_lt_plan_free(lt, made);
        return STK_OK;
    }
    *plan = made;
    return STK_OK;
}

void stk_cuda_lt_plan_free(cuda_lt *lt, cuda_lt_plan *plan) {
    if (plan != NULL) {
        forget(lt, plan);
        stk_mem_free(plan);
    }
}

const cuda_lt_algo *stk_cuda_lt_plan_algo(const cuda_lt_plan *plan) {
    return &plan->algo;
}

stk_status stk_cuda_lt_run(cuda_lt *lt, const cuda_lt_plan *plan, const cuda_conv_call *call,
                           stk_error *err) {
    const cuda_conv_shape *shape = call->shape;
    float alpha = 1;
    float beta = shape->kind == CUDA_CONV_DATA && shape->accumulate ? 1 : 0;
    cuda_pointer a = shape->kind == CUDA_CONV_WEIGHT ? call->x : call->w;
    cuda_pointer b = shape->kind == CUDA_CONV_FORWARD ? call->x : call->y;
    cuda_pointer d = shape->kind == CUDA_CONV_FORWARD ? call->y
                     : shape->kind == CUDA_CONV_DATA  ? call->x
                                                      : call->w;
    int status = lt->api.multiply(lt->handle, plan->product, &alpha, a, plan->a, b, plan->b, &beta,
                                  d, plan->d, d, plan->d, &plan->algo, call->workspace,
                                  CUDA_WORKSPACE_BYTES, lt->stream);
    if (status != 0) {
        return STK_FAIL(err, status == LT_NO_MEMORY ? STK_ERR_MEMORY : STK_ERR_DEVICE,
                        "cannot multiply matrices: cuBLASLt gives error %d", status);
    }
    return STK_OK;
}
