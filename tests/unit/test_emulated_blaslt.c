/*
 * test_emulated_blaslt.c - the look-alike of cuBLASLt against plain loops, and what it refuses.
 */
#include "emulated/blaslt_emulated.h"
#include "emulated_libs.h"

/* The functions as the library exports them, found at run time. */
#define FUNCTIONS(X)                        \
    X(cublasLtCreate)                       \
    X(cublasLtDestroy)                      \
    X(cublasLtMatrixLayoutCreate)           \
    X(cublasLtMatrixLayoutDestroy)          \
    X(cublasLtMatrixLayoutSetAttribute)     \
    X(cublasLtMatmulDescCreate)             \
    X(cublasLtMatmulDescDestroy)            \
    X(cublasLtMatmulDescSetAttribute)       \
    X(cublasLtMatmulPreferenceCreate)       \
    X(cublasLtMatmulPreferenceDestroy)      \
    X(cublasLtMatmulPreferenceSetAttribute) \
    X(cublasLtMatmulAlgoGetHeuristic)       \
    X(cublasLtMatmulAlgoCheck)              \
    X(cublasLtMatmul)

static struct {
#define X(name) __typeof__(name) *name;
    FUNCTIONS(X)
#undef X
} lt;

/* What numbers of a matrix are in memory. */
static cuda_type stored(int type) {
    return type == BLASLT_FLOAT  ? CUDA_TYPE_F32
           : type == BLASLT_HALF ? CUDA_TYPE_F16
                                 : CUDA_TYPE_BF16;
}

static emulated e;
static blaslt_handle *handle;
static cuda_pointer workspace;

static bool begin(void) {
    if (!emulated_open(&e, "libcublasLt.so.13")) {
        return false;
    }
#define X(name) emulated_find(&e, #name, &lt.name);
    FUNCTIONS(X)
#undef X
    CHECK_INT(lt.cublasLtCreate(&handle), BLASLT_GOOD);
    CHECK_INT(e.driver.memory_take(&workspace, 8192), CUDA_GOOD);
    return true;
}

static void end(void) {
    CHECK_INT(e.driver.memory_free(workspace), CUDA_GOOD);
    CHECK_INT(lt.cublasLtDestroy(handle), BLASLT_GOOD);
    emulated_close(&e);
}

typedef struct product {
    int turn_a, turn_b;
    int in_type, out_type;
    int m, n, k;
    int slack; /* further numbers between columns */
    float alpha, beta;
    bool bias, relu, by_row; /* D and C by rows */
} product;

enum { A, B, C, D, MATRICES };

typedef struct laid_out {
    blaslt_product *what;
    blaslt_layout *layouts[MATRICES];
    int rows[MATRICES], columns[MATRICES], lead[MATRICES];
} laid_out;

static laid_out lay_out(const product *p) {
    laid_out l = {.rows = {p->turn_a ? p->k : p->m, p->turn_b ? p->n : p->k, p->m, p->m},
                  .columns = {p->turn_a ? p->m : p->k, p->turn_b ? p->k : p->n, p->n, p->n}};
    int32_t epilogue = (p->bias ? BLASLT_EPILOGUE_BIAS : 0) | (p->relu ? BLASLT_EPILOGUE_RELU : 0);
    int32_t by_row = 1;
    for (int i = 0; i < MATRICES; i++) {
        bool rows = p->by_row && i >= C;
        l.lead[i] = (rows ? l.columns[i] : l.rows[i]) + p->slack;
        CHECK_INT(lt.cublasLtMatrixLayoutCreate(&l.layouts[i], i >= C ? p->out_type : p->in_type,
                                                (uint64_t)l.rows[i], (uint64_t)l.columns[i],
                                                l.lead[i]),
                  BLASLT_GOOD);
        if (rows) {
            CHECK_INT(lt.cublasLtMatrixLayoutSetAttribute(l.layouts[i], BLASLT_LAYOUT_ORDER,
                                                          &by_row, sizeof by_row),
                      BLASLT_GOOD);
        }
    }
    CHECK_INT(lt.cublasLtMatmulDescCreate(&l.what, BLASLT_COMPUTE_32F, BLASLT_FLOAT), BLASLT_GOOD);
    CHECK_INT(lt.cublasLtMatmulDescSetAttribute(l.what, BLASLT_PRODUCT_TURN_A, &p->turn_a, 4),
              BLASLT_GOOD);
    CHECK_INT(lt.cublasLtMatmulDescSetAttribute(l.what, BLASLT_PRODUCT_TURN_B, &p->turn_b, 4),
              BLASLT_GOOD);
    if (epilogue != 0) {
        CHECK_INT(lt.cublasLtMatmulDescSetAttribute(l.what, BLASLT_PRODUCT_EPILOGUE, &epilogue, 4),
                  BLASLT_GOOD);
    }
    return l;
}

static void put_away(laid_out *l) {
    for (int i = 0; i < MATRICES; i++) {
        CHECK_INT(lt.cublasLtMatrixLayoutDestroy(l->layouts[i]), BLASLT_GOOD);
    }
    CHECK_INT(lt.cublasLtMatmulDescDestroy(l->what), BLASLT_GOOD);
}

static int offers_of(laid_out *l, uint64_t bytes, blaslt_offer *offers) {
    blaslt_wish *wish = NULL;
    int count = -1;
    CHECK_INT(lt.cublasLtMatmulPreferenceCreate(&wish), BLASLT_GOOD);
    CHECK_INT(lt.cublasLtMatmulPreferenceSetAttribute(wish, BLASLT_WISH_WORKSPACE, &bytes, 8),
              BLASLT_GOOD);
    CHECK_INT(lt.cublasLtMatmulAlgoGetHeuristic(handle, l->what, l->layouts[A], l->layouts[B],
                                                l->layouts[C], l->layouts[D], wish, 4, offers,
                                                &count),
              BLASLT_GOOD);
    CHECK_INT(lt.cublasLtMatmulPreferenceDestroy(wish), BLASLT_GOOD);
    return count;
}

/* Where number (i, j) of the matrix as stored lies. */
static size_t place(const product *p, const laid_out *l, int matrix, int i, int j) {
    bool rows = p->by_row && matrix >= C;
    return (size_t)(rows ? i * l->lead[matrix] + j : j * l->lead[matrix] + i);
}

static double expected_at(const product *p, const laid_out *l, float *const values[], int i,
                          int j) {
    double sum = 0;
    for (int q = 0; q < p->k; q++) {
        double a = values[A][p->turn_a ? place(p, l, A, q, i) : place(p, l, A, i, q)];
        double b = values[B][p->turn_b ? place(p, l, B, j, q) : place(p, l, B, q, j)];
        sum += a * b;
    }
    sum = p->alpha * sum + p->beta * values[C][place(p, l, C, i, j)];
    sum += p->bias ? emulated_number((unsigned)i + 5) : 0;
    return p->relu ? fmax(sum, 0) : sum;
}

static void check_product(const product *p) {
    laid_out l = lay_out(p);
    float *values[MATRICES];
    size_t counts[MATRICES];
    cuda_pointer pointers[MATRICES], bias = 0;
    blaslt_offer offers[4];
    for (int i = 0; i < MATRICES; i++) {
        bool rows = p->by_row && i >= C;
        counts[i] = (size_t)(l.lead[i] * (rows ? l.rows[i] : l.columns[i]));
        values[i] = malloc(counts[i] * sizeof(float));
        for (size_t k = 0; k < counts[i]; k++) {
            values[i][k] = emulated_number((unsigned)(k + 7919u * (unsigned)i));
        }
        pointers[i] =
            emulated_put(&e, stored(i >= C ? p->out_type : p->in_type), values[i], counts[i]);
    }
    if (p->bias) {
        float numbers[64];
        int32_t type = BLASLT_FLOAT;
        for (int i = 0; i < p->m; i++) {
            numbers[i] = emulated_number((unsigned)i + 5);
        }
        bias = emulated_put(&e, CUDA_TYPE_F32, numbers, (size_t)p->m);
        CHECK_INT(lt.cublasLtMatmulDescSetAttribute(l.what, BLASLT_PRODUCT_BIAS, &bias, 8),
                  BLASLT_GOOD);
        CHECK_INT(lt.cublasLtMatmulDescSetAttribute(l.what, BLASLT_PRODUCT_BIAS_TYPE, &type, 4),
                  BLASLT_GOOD);
    }
    CHECK_INT(offers_of(&l, 0, offers), 1); /* one needs a workspace */
    CHECK_INT(offers_of(&l, 8192, offers), 2);
    CHECK_INT(lt.cublasLtMatmulAlgoCheck(handle, l.what, l.layouts[A], l.layouts[B], l.layouts[C],
                                         l.layouts[D], &offers[0].algo, &offers[0]),
              BLASLT_GOOD);
    CHECK_INT(lt.cublasLtMatmul(handle, l.what, &p->alpha, (void *)pointers[A], l.layouts[A],
                                (void *)pointers[B], l.layouts[B], &p->beta, (void *)pointers[C],
                                l.layouts[C], (void *)pointers[D], l.layouts[D], &offers[0].algo,
                                (void *)workspace, 8192, e.stream),
              BLASLT_GOOD);
    float *result = malloc(counts[D] * sizeof *result);
    emulated_get(&e, stored(p->out_type), pointers[D], result, counts[D]);
    double tolerance = p->out_type == BLASLT_FLOAT  ? 1e-6
                       : p->out_type == BLASLT_HALF ? 1.0 / 2048
                                                    : 1.0 / 256;
    for (int i = 0; i < p->m; i++) {
        for (int j = 0; j < p->n; j++) {
            double expected = expected_at(p, &l, values, i, j);
            CHECK_NEAR(result[place(p, &l, D, i, j)], expected,
                       tolerance * (fabs(expected) + 1e-3) + 1e-6);
        }
    }
    for (int i = 0; i < MATRICES; i++) {
        CHECK_INT(e.driver.memory_free(pointers[i]), CUDA_GOOD);
        free(values[i]);
    }
    if (p->bias) {
        CHECK_INT(e.driver.memory_free(bias), CUDA_GOOD);
    }
    free(result);
    put_away(&l);
}

static void products(void) {
    static const int types[] = {BLASLT_FLOAT, BLASLT_HALF, BLASLT_BFLOAT16};
    if (!begin()) {
        return;
    }
    for (int t = 0; t < 3; t++) {
        for (int turns = 0; turns < 4; turns++) {
            product p = {.turn_a = turns & 1,
                         .turn_b = turns >> 1,
                         .in_type = types[t],
                         .out_type = types[t],
                         .m = 5,
                         .n = 7,
                         .k = 3,
                         .slack = turns,
                         .alpha = 1,
                         .beta = turns == 3 ? 0.5f : 0};
            check_product(&p);
            p.out_type = BLASLT_FLOAT;
            p.bias = true;
            p.relu = turns == 1;
            p.by_row = turns == 2;
            check_product(&p);
        }
    }
    end();
}

static int run_with(laid_out *l, const cuda_pointer *pointers, const blaslt_algo *algo,
                    size_t bytes) {
    float one = 1, zero = 0;
    return lt.cublasLtMatmul(handle, l->what, &one, (void *)pointers[A], l->layouts[A],
                             (void *)pointers[B], l->layouts[B], &zero, (void *)pointers[C],
                             l->layouts[C], (void *)pointers[D], l->layouts[D], algo,
                             (void *)workspace, bytes, e.stream);
}

static void misuse(void) {
    product p = {
        .in_type = BLASLT_HALF, .out_type = BLASLT_HALF, .m = 8, .n = 8, .k = 8, .alpha = 1};
    if (!begin()) {
        return;
    }
    laid_out l = lay_out(&p);
    blaslt_offer offers[4];
    blaslt_algo stray = {.seal = 1};
    cuda_pointer memory = 0;
    int64_t wide = 0, lead = 4, rows = 9;
    CHECK_INT(e.driver.memory_take(&memory, 4096), CUDA_GOOD);
    cuda_pointer pointers[MATRICES] = {memory, memory + 256, memory + 512, memory + 512};
    CHECK_INT(offers_of(&l, 8192, offers), 2);
    CHECK_INT(run_with(&l, pointers, &offers[0].algo, 1024), BLASLT_INVALID_VALUE);
    CHECK_INT(run_with(&l, pointers, &stray, 8192), BLASLT_INVALID_VALUE);
    pointers[B] += 16; /* the library assumes 256 unless it is told otherwise */
    CHECK_INT(run_with(&l, pointers, &offers[0].algo, 8192), BLASLT_INVALID_VALUE);
    pointers[B] -= 16;
    CHECK_INT(run_with(&l, pointers, &offers[0].algo, 8192), BLASLT_GOOD);
    CHECK_INT(lt.cublasLtMatmulDescSetAttribute(l.what, BLASLT_PRODUCT_TURN_A, &wide, 8),
              BLASLT_INVALID_VALUE);
    CHECK_INT(lt.cublasLtMatmulDescSetAttribute(l.what, 99, &wide, 8), BLASLT_NOT_SUPPORTED);
    CHECK_INT(lt.cublasLtMatrixLayoutSetAttribute(l.layouts[A], BLASLT_LAYOUT_LEAD, &lead, 8),
              BLASLT_GOOD);
    CHECK_INT(run_with(&l, pointers, &offers[0].algo, 8192), BLASLT_INVALID_VALUE);
    lead = 9;
    CHECK_INT(lt.cublasLtMatrixLayoutSetAttribute(l.layouts[A], BLASLT_LAYOUT_LEAD, &lead, 8),
              BLASLT_GOOD);
    CHECK_INT(lt.cublasLtMatrixLayoutSetAttribute(l.layouts[A], BLASLT_LAYOUT_ROWS, &rows, 8),
              BLASLT_GOOD);
    CHECK_INT(run_with(&l, pointers, &offers[0].algo, 8192), BLASLT_INVALID_VALUE);
    CHECK_INT(e.driver.memory_free(memory), CUDA_GOOD);
    put_away(&l);
    end();
}

static const check_test tests[] = {TEST(products), TEST(misuse)};

CHECK_MAIN(tests)
