/*
 * test_cuda_transfer.c - parameters to the GPU and back: the right numbers in any order, few waits,
 * and what happens without pinned memory. That steps are seen is checked by test_cuda_backend.c.
 */
#include "cuda_pair.h"

/* A state on a GPU whose driver calls are counted. */
typedef struct counted {
    stk_graph *graph;
    stk_device *device;
    stk_state *state;
    cuda_driver driver; /* the device's, with these three replaced */
} counted;

static const cuda_driver *real;
static int waits;
static int copies_back;

static int count_wait(cuda_stream stream) {
    waits++;
    return real->stream_wait(stream);
}

static int count_copy_out(void *to, cuda_pointer from, size_t bytes, cuda_stream stream) {
    copies_back++;
    return real->copy_out(to, from, bytes, stream);
}

static int no_host_memory(void **pointer, size_t bytes, unsigned flags) {
    (void)pointer;
    (void)bytes;
    (void)flags;
    return CUDA_ERROR_OUT_OF_MEMORY_;
}

/* Many small tensors, then one of 9 MiB, then small ones again. */
static int build_uneven(stk_graph *g) {
    int x = stk_graph_input(g);
    char name[16];
    for (int i = 0; i < 20; i++) {
        snprintf(name, sizeof name, "conv%d", i);
        x = stk_graph_conv(g, x, name, 8, 3, 1, 1);
        snprintf(name, sizeof name, "bn%d", i);
        x = stk_graph_batch_norm(g, x, name, STK_INIT_ONE);
    }
    x = stk_graph_conv(g, x, "wide", 512, 1, 1, 0);
    x = stk_graph_conv(g, x, "large", 512, 3, 1, 1);
    return stk_graph_linear(g, stk_graph_avg_pool(g, x), "fc", CLASSES);
}

static bool open_counted(counted *c, bool pinned) {
    stk_error err = {0};
    stk_device_config device = {.threads = 1};
    stk_state_config config = {.train = true, .optimizer = STK_ADAMW, .ema = true};
    memset(c, 0, sizeof *c);
    if (!pair_choose_gpu()) {
        return false;
    }
    c->graph = pair_graph(build_uneven, 4);
    if (stk_cuda_device_open(&c->device, &device, &err) != STK_OK ||
        stk_cuda_state_new(&c->state, c->device, c->graph, &config, &err) != STK_OK) {
        CHECK_FAIL("%s", err.message);
        return false;
    }
    real = c->device->driver;
    c->driver = *real;
    c->driver.stream_wait = count_wait;
    c->driver.copy_out = count_copy_out;
    if (!pinned) {
        c->driver.host_take = no_host_memory;
    }
    c->device->driver = &c->driver;
    waits = copies_back = 0;
    return true;
}

static void close_counted(counted *c) {
    stk_cuda_state_free(c->state);
    c->device->driver = real;
    stk_cuda_device_close(c->device);
    stk_graph_free(c->graph);
}

/* The numbers of a tensor: other ones for each kind, parameter and `salt`. */
static float number(stk_tensor_kind kind, int param, size_t k, int salt) {
    return (float)(100 * (int)kind + 7 * param + salt) + (float)(k % 1000) / 1024;
}

static void write_one(counted *c, stk_tensor_kind kind, int param, int salt) {
    size_t count = c->graph->params[param].count;
    float *values = stk_mem_raw(count, sizeof *values);
    stk_error err = {0};
    for (size_t k = 0; k < count; k++) {
        values[k] = number(kind, param, k, salt);
    }
    CHECK(stk_cuda_state_write(c->state, kind, param, values, &err) == STK_OK);
    memset(values, 0xff, count * sizeof *values); /* they are not needed any more */
    stk_mem_free(values);
}

static void check_one(counted *c, stk_tensor_kind kind, int param, int salt) {
    size_t count = c->graph->params[param].count;
    float *values = stk_mem_raw(count, sizeof *values);
    stk_error err = {0};
    size_t wrong = 0;
    CHECK(stk_cuda_state_read(c->state, kind, param, values, &err) == STK_OK);
    for (size_t k = 0; k < count; k++) {
        wrong += values[k] != number(kind, param, k, salt);
    }
    if (wrong > 0) {
        CHECK_FAIL("%zu of %zu numbers of tensor %d of kind %d are wrong, the first is %g", wrong,
                   count, param, (int)kind, (double)values[0]);
    }
    stk_mem_free(values);
}

static void write_all(counted *c, int salt) {
    for (int kind = 0; kind < STK_TENSOR_KINDS; kind++) {
        for (int p = 0; p < c->graph->param_count; p++) {
            write_one(c, (stk_tensor_kind)kind, p, salt);
        }
    }
}

static void check_all(counted *c, int salt) {
    for (int kind = 0; kind < STK_TENSOR_KINDS; kind++) {
        for (int p = 0; p < c->graph->param_count; p++) {
            check_one(c, (stk_tensor_kind)kind, p, salt);
        }
    }
}

static void many_tensors_take_few_waits(void) {
    counted c;
    if (!open_counted(&c, true)) {
        return;
    }
    int tensors = STK_TENSOR_KINDS * c.graph->param_count;
    CHECK(tensors > 500);
    write_all(&c, 1);
    CHECK_INT(waits, STK_TENSOR_KINDS); /* only for the large tensors */
    waits = 0;
    check_all(&c, 1);
    CHECK_INT(copies_back, 3 * STK_TENSOR_KINDS); /* before, of and behind the large tensor */
    CHECK_INT(waits, copies_back);
    close_counted(&c);
}

/* All but the large tensor: 1 MiB. */
static void each_small(counted *c, void each(counted *, stk_tensor_kind, int, int), int salt) {
    for (int p = 0; p < c->graph->param_count; p++) {
        if (c->graph->params[p].count < 1 << 20) {
            each(c, STK_TENSOR_EMA, p, salt);
        }
    }
}

/* More than what is under way at a time. */
static void what_is_under_way_is_not_written_over(void) {
    counted c;
    if (!open_counted(&c, true)) {
        return;
    }
    for (int salt = 0; salt < 12; salt++) {
        each_small(&c, write_one, salt);
        for (int kind = 0; kind < STK_TENSOR_KINDS; kind++) {
            write_one(&c, (stk_tensor_kind)kind, 0, salt);
        }
    }
    check_one(&c, STK_TENSOR_VALUE, 0, 11);
    each_small(&c, check_one, 11);
    close_counted(&c);
}

static void a_write_is_seen_by_the_next_read(void) {
    counted c;
    if (!open_counted(&c, true)) {
        return;
    }
    write_all(&c, 1);
    check_one(&c, STK_TENSOR_VALUE, 0, 1); /* brings the ones behind it along */
    write_one(&c, STK_TENSOR_VALUE, 3, 2);
    check_one(&c, STK_TENSOR_VALUE, 3, 2);
    check_one(&c, STK_TENSOR_VALUE, 2, 1);
    check_one(&c, STK_TENSOR_VALUE, 4, 1);
    close_counted(&c);
}

/* As averages begin: each is read from the weights and written beside them. */
static void writes_elsewhere_leave_what_was_read(void) {
    counted c;
    if (!open_counted(&c, true)) {
        return;
    }
    write_all(&c, 1);
    waits = copies_back = 0;
    for (int p = 0; p < 40; p++) {
        check_one(&c, STK_TENSOR_VALUE, p, 1);
        write_one(&c, STK_TENSOR_EMA, p, 2);
    }
    CHECK_INT(copies_back, 1);
    CHECK_INT(waits, 1);
    check_one(&c, STK_TENSOR_EMA, 0, 2);
    check_one(&c, STK_TENSOR_EMA, 39, 2);
    check_one(&c, STK_TENSOR_EMA, 40, 1);
    close_counted(&c);
}

static void without_pinned_memory_each_is_waited_for(void) {
    counted c;
    if (!open_counted(&c, false)) {
        return;
    }
    write_all(&c, 1);
    CHECK_INT(waits, STK_TENSOR_KINDS * c.graph->param_count);
    check_all(&c, 1);
    CHECK_INT(copies_back, STK_TENSOR_KINDS * c.graph->param_count);
    close_counted(&c);
}

static const check_test tests[] = {
    TEST(many_tensors_take_few_waits),
    TEST(what_is_under_way_is_not_written_over),
    TEST(a_write_is_seen_by_the_next_read),
    TEST(writes_elsewhere_leave_what_was_read),
    TEST(without_pinned_memory_each_is_waited_for),
};

CHECK_MAIN(tests)
