/*
 * blaslt_emulated.c - the look-alike of cuBLASLt: see the header.
 *
 * Two algorithms are offered for every product: one with a workspace, if the caller allows that
 * much, and one without.
 */
#include "blaslt_emulated.h"

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emu_enqueue.h"
#include "numbers16.h"

enum { BLASLT_SEAL = 0x424c4153, BLASLT_WORKSPACE = 4096, BLASLT_ALGOS = 2 };

static _Thread_local char last_error[256];

__attribute__((format(printf, 2, 3))) static int fail(int status, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(last_error, sizeof last_error, format, arguments);
    va_end(arguments);
    return status;
}

/* The reason of the last refusal belongs to the library's sentence here: it says what is wrong. */
const char *cublasLtGetStatusString(int status) {
    return status == BLASLT_GOOD ? "success" : last_error;
}

const char *cublasLtGetStatusName(int status) {
    switch (status) {
    case BLASLT_GOOD:
        return "CUBLAS_STATUS_SUCCESS";
    case BLASLT_NO_MEMORY:
        return "CUBLAS_STATUS_ALLOC_FAILED";
    case BLASLT_INVALID_VALUE:
        return "CUBLAS_STATUS_INVALID_VALUE";
    case BLASLT_NOT_SUPPORTED:
        return "CUBLAS_STATUS_NOT_SUPPORTED";
    default:
        return "CUBLAS_STATUS_EXECUTION_FAILED";
    }
}

size_t cublasLtGetVersion(void) {
    return BLASLT_VERSION;
}

/* All objects begin with a seal. */
static int object_new(void **object, size_t bytes) {
    if (object == NULL) {
        return fail(BLASLT_INVALID_VALUE, "nowhere to put an object");
    }
    uint32_t *fresh = calloc(1, bytes);
    *object = fresh;
    if (fresh == NULL) {
        return fail(BLASLT_NO_MEMORY, "no memory for an object");
    }
    *fresh = BLASLT_SEAL;
    return BLASLT_GOOD;
}

static bool is_object(const void *object) {
    return object != NULL && *(const uint32_t *)object == BLASLT_SEAL;
}

static int object_free(void *object) {
    if (!is_object(object)) {
        return fail(BLASLT_INVALID_VALUE, "what is destroyed is no object of this library");
    }
    *(uint32_t *)object = 0;
    free(object);
    return BLASLT_GOOD;
}

/* How large each attribute is; 0: there is none. */
static const unsigned char layout_bytes[BLASLT_LAYOUT_ATTRIBUTES] = {4, 4, 8, 8, 8};
static const unsigned char product_bytes[BLASLT_PRODUCT_ATTRIBUTES] = {
    [BLASLT_PRODUCT_COMPUTE] = 4,  [BLASLT_PRODUCT_SCALE] = 4,  [BLASLT_PRODUCT_POINTERS] = 4,
    [BLASLT_PRODUCT_TURN_A] = 4,   [BLASLT_PRODUCT_TURN_B] = 4, [BLASLT_PRODUCT_TURN_C] = 4,
    [BLASLT_PRODUCT_EPILOGUE] = 4, [BLASLT_PRODUCT_BIAS] = 8,   [BLASLT_PRODUCT_BIAS_TYPE] = 4};
static const unsigned char wish_bytes[BLASLT_WISH_ATTRIBUTES] = {
    [BLASLT_WISH_WORKSPACE] = 8, [BLASLT_WISH_REDUCTION] = 4, [BLASLT_WISH_ALIGN_A] = 4,
    [BLASLT_WISH_ALIGN_B] = 4,   [BLASLT_WISH_ALIGN_C] = 4,   [BLASLT_WISH_ALIGN_D] = 4};

static int set(void *object, int64_t *values, const unsigned char *sizes, int count, int name,
               const void *value, size_t bytes) {
    if (!is_object(object) || value == NULL) {
        return fail(BLASLT_INVALID_VALUE, "attribute %d is set of nothing or to nothing", name);
    }
    if (name < 0 || name >= count || sizes[name] == 0) {
        return fail(BLASLT_NOT_SUPPORTED, "there is no attribute %d here", name);
    }
    if (bytes != sizes[name]) {
        return fail(BLASLT_INVALID_VALUE, "attribute %d has %d bytes, not %zu", name, sizes[name],
                    bytes);
    }
    int32_t small = 0;
    if (bytes == 4) {
        memcpy(&small, value, 4);
        values[name] = small;
    } else {
        memcpy(&values[name], value, 8);
    }
    return BLASLT_GOOD;
}

int cublasLtCreate(blaslt_handle **handle) {
    return object_new((void **)handle, sizeof **handle);
}

int cublasLtDestroy(blaslt_handle *handle) {
    return object_free(handle);
}

int cublasLtMatrixLayoutCreate(blaslt_layout **layout, int type, uint64_t rows, uint64_t columns,
                               int64_t lead) {
    int status = object_new((void **)layout, sizeof **layout);
    if (status == BLASLT_GOOD) {
        (*layout)->values[BLASLT_LAYOUT_TYPE] = type;
        (*layout)->values[BLASLT_LAYOUT_ROWS] = (int64_t)rows;
        (*layout)->values[BLASLT_LAYOUT_COLUMNS] = (int64_t)columns;
        (*layout)->values[BLASLT_LAYOUT_LEAD] = lead;
    }
    return status;
}

int cublasLtMatrixLayoutDestroy(blaslt_layout *layout) {
    return object_free(layout);
}

int cublasLtMatrixLayoutSetAttribute(blaslt_layout *layout, int name, const void *value,
                                     size_t bytes) {
    return set(layout, layout->values, layout_bytes, BLASLT_LAYOUT_ATTRIBUTES, name, value, bytes);
}

int cublasLtMatmulDescCreate(blaslt_product **product, int compute, int scale) {
    int status = object_new((void **)product, sizeof **product);
    if (status == BLASLT_GOOD) {
        (*product)->values[BLASLT_PRODUCT_COMPUTE] = compute;
        (*product)->values[BLASLT_PRODUCT_SCALE] = scale;
        (*product)->values[BLASLT_PRODUCT_EPILOGUE] = BLASLT_EPILOGUE_NONE;
        (*product)->values[BLASLT_PRODUCT_BIAS_TYPE] = -1; /* that of D */
    }
    return status;
}

int cublasLtMatmulDescDestroy(blaslt_product *product) {
    return object_free(product);
}

int cublasLtMatmulDescSetAttribute(blaslt_product *product, int name, const void *value,
                                   size_t bytes) {
    return set(product, product->values, product_bytes, BLASLT_PRODUCT_ATTRIBUTES, name, value,
               bytes);
}

int cublasLtMatmulPreferenceCreate(blaslt_wish **wish) {
    int status = object_new((void **)wish, sizeof **wish);
    for (int i = BLASLT_WISH_ALIGN_A; status == BLASLT_GOOD && i <= BLASLT_WISH_ALIGN_D; i++) {
        (*wish)->values[i] = 256; /* as the library assumes */
    }
    return status;
}

int cublasLtMatmulPreferenceDestroy(blaslt_wish *wish) {
    return object_free(wish);
}

int cublasLtMatmulPreferenceSetAttribute(blaslt_wish *wish, int name, const void *value,
                                         size_t bytes) {
    return set(wish, wish->values, wish_bytes, BLASLT_WISH_ATTRIBUTES, name, value, bytes);
}

/* A matrix as it lies: number (i, j) is at i * down + j * right. */
typedef struct blaslt_matrix {
    int type;
    int64_t rows, columns, down, right;
} blaslt_matrix;

static bool is_float_type(int64_t type) {
    return type == BLASLT_FLOAT || type == BLASLT_HALF || type == BLASLT_BFLOAT16;
}

static int matrix_of(const blaslt_layout *layout, int64_t turn, blaslt_matrix *matrix) {
    if (!is_object(layout)) {
        return fail(BLASLT_INVALID_VALUE, "a layout is missing");
    }
    const int64_t *v = layout->values;
    int64_t rows = v[BLASLT_LAYOUT_ROWS], columns = v[BLASLT_LAYOUT_COLUMNS];
    bool by_row = v[BLASLT_LAYOUT_ORDER] == 1;
    int64_t lead = v[BLASLT_LAYOUT_LEAD];
    if (rows < 1 || columns < 1 || v[BLASLT_LAYOUT_ORDER] < 0 || v[BLASLT_LAYOUT_ORDER] > 1 ||
        lead < (by_row ? columns : rows) || turn < 0 || turn > 1) {
        return fail(BLASLT_INVALID_VALUE,
                    "a matrix of %lld by %lld, %lld apart, order %d, turned %d", (long long)rows,
                    (long long)columns, (long long)lead, (int)v[BLASLT_LAYOUT_ORDER], (int)turn);
    }
    if (!is_float_type(v[BLASLT_LAYOUT_TYPE])) {
        return fail(BLASLT_NOT_SUPPORTED, "a matrix of type %d", (int)v[BLASLT_LAYOUT_TYPE]);
    }
    *matrix = (blaslt_matrix){(int)v[BLASLT_LAYOUT_TYPE], rows, columns, by_row ? lead : 1,
                              by_row ? 1 : lead};
    if (turn == 1) {
        *matrix = (blaslt_matrix){matrix->type, columns, rows, matrix->right, matrix->down};
    }
    return BLASLT_GOOD;
}

/* Everything that a product is, for the stream to take along. */
typedef struct blaslt_run {
    blaslt_matrix a, b, c, d;
    const unsigned char *a_at, *b_at, *c_at, *bias;
    unsigned char *d_at, *workspace;
    size_t workspace_bytes;
    float alpha, beta;
    int bias_type;
    bool tf32, relu;
} blaslt_run;

static int run_of(const blaslt_handle *handle, const blaslt_product *product,
                  const blaslt_layout *a, const blaslt_layout *b, const blaslt_layout *c,
                  const blaslt_layout *d, blaslt_run *run) {
    if (!is_object(handle) || !is_object(product)) {
        return fail(BLASLT_INVALID_VALUE, "no handle, or no description of the product");
    }
    const int64_t *v = product->values;
    int status = matrix_of(a, v[BLASLT_PRODUCT_TURN_A], &run->a);
    status = status ? status : matrix_of(b, v[BLASLT_PRODUCT_TURN_B], &run->b);
    status = status ? status : matrix_of(c, 0, &run->c);
    status = status ? status : matrix_of(d, 0, &run->d);
    if (status != BLASLT_GOOD) {
        return status;
    }
    if (run->a.columns != run->b.rows || run->a.rows != run->d.rows ||
        run->b.columns != run->d.columns || run->c.rows != run->d.rows ||
        run->c.columns != run->d.columns) {
        return fail(BLASLT_INVALID_VALUE, "%lld by %lld times %lld by %lld is not %lld by %lld",
                    (long long)run->a.rows, (long long)run->a.columns, (long long)run->b.rows,
                    (long long)run->b.columns, (long long)run->d.rows, (long long)run->d.columns);
    }
    int64_t compute = v[BLASLT_PRODUCT_COMPUTE];
    int64_t epilogue = v[BLASLT_PRODUCT_EPILOGUE];
    run->tf32 = compute == BLASLT_COMPUTE_TF32;
    run->relu = (epilogue & BLASLT_EPILOGUE_RELU) != 0;
    if ((compute != BLASLT_COMPUTE_32F && compute != BLASLT_COMPUTE_32F_PEDANTIC && !run->tf32) ||
        v[BLASLT_PRODUCT_SCALE] != BLASLT_FLOAT || v[BLASLT_PRODUCT_POINTERS] != 0 ||
        v[BLASLT_PRODUCT_TURN_C] != 0 || run->a.type != run->b.type || run->c.type != run->d.type ||
        (run->d.type != run->a.type && run->d.type != BLASLT_FLOAT) ||
        (run->tf32 && run->a.type != BLASLT_FLOAT)) {
        return fail(BLASLT_NOT_SUPPORTED, "types or modes of a product that are not known here");
    }
    if (epilogue != BLASLT_EPILOGUE_NONE &&
        (epilogue & ~(int64_t)(BLASLT_EPILOGUE_RELU | BLASLT_EPILOGUE_BIAS)) != 0) {
        return fail(BLASLT_NOT_SUPPORTED, "epilogue %d is not known here", (int)epilogue);
    }
    run->bias_type =
        v[BLASLT_PRODUCT_BIAS_TYPE] < 0 ? run->d.type : (int)v[BLASLT_PRODUCT_BIAS_TYPE];
    if (epilogue & BLASLT_EPILOGUE_BIAS) {
        run->bias = (const unsigned char *)(uintptr_t)v[BLASLT_PRODUCT_BIAS];
        if (run->bias_type != run->d.type && run->bias_type != BLASLT_FLOAT) {
            return fail(BLASLT_NOT_SUPPORTED, "a bias of type %d", run->bias_type);
        }
    }
    return BLASLT_GOOD;
}

static blaslt_algo algo_of(int number, const blaslt_wish *wish) {
    blaslt_algo algo = {.seal = BLASLT_SEAL, .number = (uint64_t)number};
    algo.workspace_bytes = number == 0 ? BLASLT_WORKSPACE : 0;
    for (int i = 0; i < 4; i++) {
        algo.alignments[i] = (uint64_t)wish->values[BLASLT_WISH_ALIGN_A + i];
    }
    return algo;
}

int cublasLtMatmulAlgoGetHeuristic(blaslt_handle *handle, blaslt_product *product, blaslt_layout *a,
                                   blaslt_layout *b, blaslt_layout *c, blaslt_layout *d,
                                   blaslt_wish *wish, int most, blaslt_offer *offers, int *count) {
    blaslt_run run = {.alpha = 0};
    int status = run_of(handle, product, a, b, c, d, &run);
    if (status != BLASLT_GOOD) {
        return status;
    }
    if (!is_object(wish) || most < 1 || offers == NULL || count == NULL) {
        return fail(BLASLT_INVALID_VALUE, "no preference, or no room for algorithms");
    }
    *count = 0;
    for (int i = 0; i < BLASLT_ALGOS && *count < most; i++) {
        blaslt_algo algo = algo_of(i, wish);
        if ((int64_t)algo.workspace_bytes <= wish->values[BLASLT_WISH_WORKSPACE]) {
            offers[(*count)++] =
                (blaslt_offer){.algo = algo, .workspace_bytes = algo.workspace_bytes, .waves = 1};
        }
    }
    return BLASLT_GOOD;
}

static int check_algo(const blaslt_algo *algo) {
    return algo != NULL && algo->seal == BLASLT_SEAL && algo->number < BLASLT_ALGOS
               ? BLASLT_GOOD
               : fail(BLASLT_INVALID_VALUE, "an algorithm that was not offered");
}

int cublasLtMatmulAlgoCheck(blaslt_handle *handle, blaslt_product *product, blaslt_layout *a,
                            blaslt_layout *b, blaslt_layout *c, blaslt_layout *d,
                            const blaslt_algo *algo, blaslt_offer *offer) {
    blaslt_run run = {.alpha = 0};
    int status = run_of(handle, product, a, b, c, d, &run);
    status = status ? status : check_algo(algo);
    if (status == BLASLT_GOOD && offer != NULL) {
        blaslt_algo kept = *algo; /* the caller may point into the offer */
        *offer = (blaslt_offer){.algo = kept, .workspace_bytes = kept.workspace_bytes, .waves = 1};
    }
    return status;
}

static float load(const unsigned char *base, int type, int64_t at) {
    if (type == BLASLT_FLOAT) {
        return ((const float *)base)[at];
    }
    uint16_t bits = ((const uint16_t *)base)[at];
    return type == BLASLT_HALF ? float_of_half(bits) : float_of_bf16(bits);
}

static void store(unsigned char *base, int type, int64_t at, float value) {
    if (type == BLASLT_FLOAT) {
        ((float *)base)[at] = value;
    } else {
        ((uint16_t *)base)[at] = type == BLASLT_HALF ? half_of_float(value) : bf16_of_float(value);
    }
}

/* The matrix as dense floats, column after column, or row after row. */
static float *dense(const blaslt_matrix *m, const unsigned char *base, bool by_row, bool tf32) {
    float *values = malloc((size_t)(m->rows * m->columns) * sizeof *values);
    if (values == NULL) {
        fprintf(stderr, "the emulated cuBLASLt has no memory\n");
        abort();
    }
    for (int64_t i = 0; i < m->rows; i++) {
        for (int64_t j = 0; j < m->columns; j++) {
            float value = load(base, m->type, i * m->down + j * m->right);
            values[by_row ? i * m->columns + j : j * m->rows + i] =
                tf32 ? tf32_of_float(value) : value;
        }
    }
    return values;
}

static void compute(void *arg) {
    const blaslt_run *run = arg;
    int64_t m = run->d.rows, n = run->d.columns, k = run->a.columns;
    if (run->workspace_bytes > 0) { /* whoever keeps something there shall notice */
        memset(run->workspace, 0xff, run->workspace_bytes);
    }
    float *a = dense(&run->a, run->a_at, false, run->tf32); /* (k, m) */
    float *b = dense(&run->b, run->b_at, false, run->tf32); /* (n, k) */
    float *sums = malloc((size_t)m * sizeof *sums);
    if (sums == NULL) {
        fprintf(stderr, "the emulated cuBLASLt has no memory\n");
        abort();
    }
    for (int64_t j = 0; j < n; j++) {
        memset(sums, 0, (size_t)m * sizeof *sums);
        for (int64_t p = 0; p < k; p++) {
            float factor = b[j * k + p];
            const float *column = a + p * m;
            for (int64_t i = 0; i < m; i++) {
                sums[i] += factor * column[i];
            }
        }
        for (int64_t i = 0; i < m; i++) {
            float value = run->alpha * sums[i];
            if (run->beta != 0) {
                value +=
                    run->beta * load(run->c_at, run->c.type, i * run->c.down + j * run->c.right);
            }
            if (run->bias != NULL) {
                value += load(run->bias, run->bias_type, i);
            }
            store(run->d_at, run->d.type, i * run->d.down + j * run->d.right,
                  run->relu ? fmaxf(value, 0) : value);
        }
    }
    free(a);
    free(b);
    free(sums);
}

int cublasLtMatmul(blaslt_handle *handle, blaslt_product *product, const void *alpha, const void *a,
                   blaslt_layout *a_layout, const void *b, blaslt_layout *b_layout,
                   const void *beta, const void *c, blaslt_layout *c_layout, void *d,
                   blaslt_layout *d_layout, const blaslt_algo *algo, void *workspace,
                   size_t workspace_bytes, void *stream) {
    blaslt_run run = {.alpha = 0};
    int status = run_of(handle, product, a_layout, b_layout, c_layout, d_layout, &run);
    if (status != BLASLT_GOOD) {
        return status;
    }
    if (alpha == NULL || beta == NULL || a == NULL || b == NULL || c == NULL || d == NULL) {
        return fail(BLASLT_INVALID_VALUE, "a product without one of its pointers");
    }
    if ((product->values[BLASLT_PRODUCT_EPILOGUE] & BLASLT_EPILOGUE_BIAS) && run.bias == NULL) {
        return fail(BLASLT_INVALID_VALUE, "a bias is to be added that is not there");
    }
    if (algo != NULL) {
        const void *pointers[4] = {a, b, c, d};
        status = check_algo(algo);
        for (int i = 0; i < 4 && status == BLASLT_GOOD; i++) {
            if ((uintptr_t)pointers[i] % algo->alignments[i] != 0) {
                status = fail(BLASLT_INVALID_VALUE, "matrix %d does not lie on %d bytes", i,
                              (int)algo->alignments[i]);
            }
        }
        if (status == BLASLT_GOOD && (workspace_bytes < algo->workspace_bytes ||
                                      (workspace == NULL && algo->workspace_bytes > 0))) {
            status = fail(BLASLT_INVALID_VALUE, "the algorithm needs a workspace of %d bytes",
                          (int)algo->workspace_bytes);
        }
        if (status != BLASLT_GOOD) {
            return status;
        }
        run.workspace = workspace;
        run.workspace_bytes = algo->workspace_bytes;
    }
    run.a_at = a;
    run.b_at = b;
    run.c_at = c;
    run.d_at = d;
    memcpy(&run.alpha, alpha, sizeof run.alpha);
    memcpy(&run.beta, beta, sizeof run.beta);
    if (run.beta != 0 && c == d && memcmp(&run.c, &run.d, sizeof run.c) != 0) {
        return fail(BLASLT_INVALID_VALUE, "C and D are one, with different layouts");
    }
    return emu_put_on_stream(stream, compute, &run, sizeof run) == 0
               ? BLASLT_GOOD
               : fail(BLASLT_EXECUTION_FAILED, "the stream refuses a product");
}
