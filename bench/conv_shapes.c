/*
 * conv_shapes.c - how fast convolutions of the usual networks are: conv_shapes [THREADS [KERNELS
 * [BATCH [NETWORK]]]], with KERNELS such as avx2 or "best". Prints one JSON object a shape:
 * billions of operations in a second of one core's time, forward and for both gradients, the best
 * of some repetitions; and their median share of what the innermost loop reaches in the first
 * cache, timed at the same moment, since other work on the machine slows down both.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backend/cpu/convolution/conv.h"
#include "base/mem.h"

typedef struct layer {
    const char *network;
    int times; /* in the network */
    int side, in, out, kernel, stride, pad;
} layer;

static const layer layers[] = {
    {"resnet18", 1, 224, 3, 64, 7, 2, 3},    {"resnet18", 4, 56, 64, 64, 3, 1, 1},
    {"resnet18", 1, 56, 64, 128, 3, 2, 1},   {"resnet18", 1, 56, 64, 128, 1, 2, 0},
    {"resnet18", 3, 28, 128, 128, 3, 1, 1},  {"resnet18", 1, 28, 128, 256, 3, 2, 1},
    {"resnet18", 1, 28, 128, 256, 1, 2, 0},  {"resnet18", 3, 14, 256, 256, 3, 1, 1},
    {"resnet18", 1, 14, 256, 512, 3, 2, 1},  {"resnet18", 1, 14, 256, 512, 1, 2, 0},
    {"resnet18", 3, 7, 512, 512, 3, 1, 1},   {"resnet50", 1, 224, 3, 64, 7, 2, 3},
    {"resnet50", 1, 56, 64, 64, 1, 1, 0},    {"resnet50", 3, 56, 64, 64, 3, 1, 1},
    {"resnet50", 4, 56, 64, 256, 1, 1, 0},   {"resnet50", 2, 56, 256, 64, 1, 1, 0},
    {"resnet50", 1, 56, 256, 128, 1, 1, 0},  {"resnet50", 1, 56, 128, 128, 3, 2, 1},
    {"resnet50", 4, 28, 128, 512, 1, 1, 0},  {"resnet50", 1, 56, 256, 512, 1, 2, 0},
    {"resnet50", 3, 28, 512, 128, 1, 1, 0},  {"resnet50", 3, 28, 128, 128, 3, 1, 1},
    {"resnet50", 1, 28, 512, 256, 1, 1, 0},  {"resnet50", 1, 28, 256, 256, 3, 2, 1},
    {"resnet50", 6, 14, 256, 1024, 1, 1, 0}, {"resnet50", 1, 28, 512, 1024, 1, 2, 0},
    {"resnet50", 5, 14, 1024, 256, 1, 1, 0}, {"resnet50", 5, 14, 256, 256, 3, 1, 1},
    {"resnet50", 1, 14, 1024, 512, 1, 1, 0}, {"resnet50", 1, 14, 512, 512, 3, 2, 1},
    {"resnet50", 3, 7, 512, 2048, 1, 1, 0},  {"resnet50", 1, 14, 1024, 2048, 1, 2, 0},
    {"resnet50", 2, 7, 2048, 512, 1, 1, 0},  {"resnet50", 2, 7, 512, 512, 3, 1, 1},
    {"b0", 1, 224, 3, 32, 3, 2, 1},          {"b0", 1, 112, 32, 16, 1, 1, 0},
    {"b0", 1, 112, 16, 96, 1, 1, 0},         {"b0", 1, 56, 96, 24, 1, 1, 0},
    {"b0", 2, 56, 24, 144, 1, 1, 0},         {"b0", 1, 28, 144, 40, 1, 1, 0},
    {"b0", 2, 28, 40, 240, 1, 1, 0},         {"b0", 3, 14, 80, 480, 1, 1, 0},
    {"b0", 3, 14, 112, 672, 1, 1, 0},        {"b0", 4, 7, 192, 1152, 1, 1, 0},
    {"b0", 1, 7, 320, 1280, 1, 1, 0},
};

#define PARTS 3
#define REPEATS 15

/* What all layers of a network together take. */
typedef struct total {
    const char *network;
    double operations;
    double core_s[PARTS];
    double wall_s[PARTS];
} total;

static double seconds(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static float *new_values(size_t count) {
    float *values = stk_mem_aligned(count * sizeof *values);
    if (values == NULL) {
        fprintf(stderr, "conv_shapes: no memory for %zu floats\n", count);
        exit(1);
    }
    for (size_t i = 0; i < count; i++) {
        values[i] = (float)(i * 2654435761u % 1000) * 1e-3f - 0.5f;
    }
    return values;
}

static void run_part(const cpu_gemm *gemm, int part, const cpu_call *call) {
    if (part == 0) {
        stk_cpu_conv_forward(gemm, call, NULL);
    } else if (part == 1) {
        stk_cpu_conv_data_gradient(gemm, call);
    } else {
        stk_cpu_conv_weight_gradient(gemm, call);
    }
}

/* What the innermost loop does when all it reads is in the first cache: the most that can be had.
 */
static double best_rate(const cpu_gemm *gemm) {
    enum { TILES = 200 };
    static float a[CPU_GEMM_MOST_ROWS * CPU_GEMM_PITCH];
    static float b[CPU_GEMM_DEPTH * 64];
    static float c[CPU_GEMM_MOST_ROWS][64];
    float *rows[CPU_GEMM_MOST_ROWS];
    for (size_t i = 0; i < CPU_GEMM_MOST_ROWS; i++) {
        rows[i] = c[i];
    }
    cpu_tile tile = {
        .a = a, .b = b, .depth = CPU_GEMM_DEPTH, .rows = gemm->rows, .cols = gemm->cols, .c = rows};
    double core = seconds(CLOCK_THREAD_CPUTIME_ID);
    for (int i = 0; i < TILES; i++) {
        gemm->rows_by_panel(&tile);
    }
    core = seconds(CLOCK_THREAD_CPUTIME_ID) - core;
    return 2e-9 * TILES * (double)(gemm->rows * gemm->cols * CPU_GEMM_DEPTH) / core;
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a;
    double y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* The best of some repetitions; returns the median share of what could be had at the same time. */
static double time_part(const cpu_gemm *gemm, int part, const cpu_call *call, double operations,
                        double *core_s, double *wall_s) {
    double shares[REPEATS];
    *core_s = *wall_s = 1e9;
    for (int i = 0; i < REPEATS; i++) {
        double rate = best_rate(gemm);
        double core = seconds(CLOCK_PROCESS_CPUTIME_ID);
        double wall = seconds(CLOCK_MONOTONIC);
        run_part(gemm, part, call);
        core = seconds(CLOCK_PROCESS_CPUTIME_ID) - core;
        wall = seconds(CLOCK_MONOTONIC) - wall;
        rate = (rate + best_rate(gemm)) / 2;
        shares[i] = operations / core / rate;
        *core_s = core < *core_s ? core : *core_s;
        *wall_s = wall < *wall_s ? wall : *wall_s;
    }
    qsort(shares, REPEATS, sizeof *shares, by_size);
    return shares[REPEATS / 2];
}

static void time_layer(const cpu_gemm *gemm, const layer *l, size_t batch, stk_pool *pool,
                       total *sum) {
    int side = (l->side + 2 * l->pad - l->kernel) / l->stride + 1;
    stk_value values[2] = {{.shape = {l->side, l->side, l->in}}, {.shape = {side, side, l->out}}};
    stk_node node = {.op = STK_OP_CONV,
                     .input_count = 1,
                     .output = 1,
                     .param_count = 1,
                     .kernel = l->kernel,
                     .stride = l->stride,
                     .pad = l->pad};
    stk_graph graph = {.nodes = &node, .node_count = 1, .values = values, .value_count = 2};
    size_t weights = (size_t)(l->kernel * l->kernel * l->in) * (size_t)l->out;
    stk_piece piece = {.live = true, .training = true};
    stk_piece_needs needs =
        stk_cpu_conv_needs(gemm, &(cpu_ask){&graph, &piece, &node, batch, stk_pool_threads(pool)});
    float *blocks[] = {new_values(batch * stk_shape_count(values[0].shape)),
                       new_values(batch * stk_shape_count(values[1].shape)),
                       new_values(batch * stk_shape_count(values[0].shape)),
                       new_values(weights),
                       new_values(weights),
                       new_values(needs.workspace_bytes / sizeof(float) + 1)};
    cpu_call call = {.pool = pool, .graph = &graph, .node = &node, .batch = batch, .train = true};
    call.x[0] = blocks[0];
    call.y = blocks[1];
    call.dy = blocks[1];
    call.dx[0] = blocks[2];
    call.param[0] = blocks[3];
    call.param_grad[0] = blocks[4];
    call.workspace = blocks[5];
    double operations = 2e-9 * (double)(side * side) * (double)weights * (double)batch;
    printf("{\"bench\": \"conv\", \"network\": \"%s\", \"side\": %d, \"in\": %d, \"out\": %d, "
           "\"kernel\": %d, \"stride\": %d, \"gf\": %.2f",
           l->network, l->side, l->in, l->out, l->kernel, l->stride, operations);
    static const char *const names[PARTS] = {"forward", "data", "weight"};
    for (int part = 0; part < PARTS; part++) {
        if (part == 1 && l->in == 3) {
            continue; /* pictures have no gradient */
        }
        double core_s, wall_s;
        double share = time_part(gemm, part, &call, operations, &core_s, &wall_s);
        printf(", \"%s\": %.1f, \"share\": %.2f", names[part], operations / core_s, share);
        sum->operations += l->times * operations;
        sum->core_s[part] += l->times * core_s;
        sum->wall_s[part] += l->times * wall_s;
    }
    printf(", \"workspace_mb\": %.1f}\n", (double)needs.workspace_bytes / 1e6);
    fflush(stdout);
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
        stk_mem_free(blocks[i]);
    }
}

static void print_total(const total *t) {
    if (t->network != NULL) {
        double core_s = t->core_s[0] + t->core_s[1] + t->core_s[2];
        printf("{\"bench\": \"conv\", \"network\": \"%s\", \"gf\": %.1f, \"core_s\": %.3f, "
               "\"wall_s\": %.3f, \"forward_s\": %.3f, \"data_s\": %.3f, \"weight_s\": %.3f, "
               "\"gf_per_core_s\": %.1f}\n",
               t->network, t->operations, core_s, t->wall_s[0] + t->wall_s[1] + t->wall_s[2],
               t->wall_s[0], t->wall_s[1], t->wall_s[2], t->operations / core_s);
    }
}

static const cpu_gemm *find_kernels(const char *name) {
    for (size_t i = 0; stk_cpu_gemm_list[i] != NULL; i++) {
        if (strcmp(stk_cpu_gemm_list[i]->name, name) == 0 && stk_cpu_gemm_list[i]->is_here()) {
            return stk_cpu_gemm_list[i];
        }
    }
    return stk_cpu_gemm_best();
}

int main(int argc, char **argv) {
    int threads = argc > 1 ? atoi(argv[1]) : 1;
    const cpu_gemm *gemm = find_kernels(argc > 2 ? argv[2] : "best");
    int batch = argc > 3 ? atoi(argv[3]) : 16;
    const char *network = argc > 4 ? argv[4] : NULL;
    stk_pool *pool;
    stk_error error;
    if (threads < 1 || batch < 1 || stk_pool_new(&pool, threads, &error) != STK_OK) {
        fprintf(stderr, "usage: conv_shapes [THREADS [KERNELS [BATCH [NETWORK]]]]\n");
        return 2;
    }
    printf("{\"bench\": \"conv\", \"kernels\": \"%s\", \"threads\": %d, \"batch\": %d}\n",
           gemm->name, threads, batch);
    total sum = {0};
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) {
        if (network != NULL && strcmp(network, layers[i].network) != 0) {
            continue;
        }
        if (sum.network == NULL || strcmp(sum.network, layers[i].network) != 0) {
            print_total(&sum);
            sum = (total){.network = layers[i].network};
        }
        time_layer(gemm, &layers[i], (size_t)batch, pool, &sum);
    }
    print_total(&sum);
    stk_pool_free(pool);
    return 0;
}
