/* test_memory_check.c - a batch that cannot fit is refused before anything is allocated. */
#include "check.h"

#include "backend/cpu/device.h"
#include "engine/memory_check.h"
#include "models/models.h"

typedef struct network {
    stk_device *device;
    stk_graph *graph;
    stk_backend backend; /* the CPU's, with another amount of memory */
    stk_state_config state;
    stk_compile_config train;
    stk_compile_config infer;
    stk_memory_ask ask;
    stk_error err;
} network;

static uint64_t free_bytes;

static stk_status fixed_memory(stk_device *device, stk_device_memory *memory, stk_error *err) {
    (void)device;
    (void)err;
    *memory = (stk_device_memory){.total_bytes = free_bytes, .free_bytes = free_bytes};
    return STK_OK;
}

static void open_network(network *n, const char *name, int img_size, size_t batch) {
    const stk_model *model = NULL;
    stk_device_config device = {.threads = 2};
    stk_model_config config = {.img_size = img_size, .classes = 1000};
    memset(n, 0, sizeof *n);
    REQUIRE_OK(stk_cpu_backend.device_open(&n->device, &device, &n->err), &n->err);
    REQUIRE_OK(stk_model_find(name, &model, &n->err), &n->err);
    REQUIRE_OK(stk_model_build(model, &config, &n->graph, &n->err), &n->err);
    n->backend = stk_cpu_backend;
    n->state = (stk_state_config){.train = true};
    n->train = (stk_compile_config){.batch = batch, .train = true};
    n->infer = (stk_compile_config){.batch = 64};
    n->ask = (stk_memory_ask){.backend = &n->backend,
                              .device = n->device,
                              .graph = n->graph,
                              .model = name,
                              .state = &n->state,
                              .compile = &n->train,
                              .other = &n->infer};
}

static void close_network(network *n) {
    stk_graph_free(n->graph);
    stk_cpu_backend.device_close(n->device);
}

/* The number behind these words. */
static size_t number_behind(const char *text, const char *words) {
    const char *at = strstr(text, words);
    return at != NULL ? (size_t)strtoull(at + strlen(words), NULL, 10) : 0;
}

static void what_fits_passes_and_what_does_not_is_told(void) {
    network n;
    open_network(&n, "resnet50", 224, 100000);
    n.backend.memory = fixed_memory;
    n.backend.name = "cuda";
    free_bytes = (uint64_t)138 << 30;
    CHECK_INT(stk_memory_check(&n.ask, &n.err), STK_ERR_MEMORY);
    CHECK_CONTAINS(n.err.message, "batch 100000 of resnet50 at 224 px needs ");
    CHECK_CONTAINS(n.err.message, "of the GPU's memory and 138.0 GiB are free");
    size_t largest = number_behind(n.err.message, "the largest that fits is ");
    CHECK(largest > 100 && largest < 10000);

    uint64_t bytes = 0;
    n.train.batch = largest;
    REQUIRE_OK(stk_memory_total(&n.ask, largest, &bytes, &n.err), &n.err);
    CHECK(bytes <= free_bytes);
    CHECK_INT(stk_memory_check(&n.ask, &n.err), STK_OK);
    n.train.batch = largest + 1;
    REQUIRE_OK(stk_memory_total(&n.ask, largest + 1, &bytes, &n.err), &n.err);
    CHECK(bytes > free_bytes);
    CHECK_INT(stk_memory_check(&n.ask, &n.err), STK_ERR_MEMORY);
    CHECK_INT(number_behind(n.err.message, "the largest that fits is "), largest);
    close_network(&n);
}

/* Both executables, the parameters and the prepared batches count, each of them once. */
static void all_of_it_is_counted(void) {
    network n;
    open_network(&n, "resnet18", 64, 8);
    uint64_t train = 0;
    uint64_t infer = 0;
    uint64_t all = 0;
    REQUIRE_OK(stk_cpu_backend.exec_need(n.device, n.graph, &n.train, &train, NULL, &n.err),
               &n.err);
    REQUIRE_OK(stk_cpu_backend.exec_need(n.device, n.graph, &n.infer, &infer, NULL, &n.err),
               &n.err);
    n.ask.picture_bytes = 1000;
    REQUIRE_OK(stk_memory_total(&n.ask, 8, &all, &n.err), &n.err);
    CHECK_INT(all, train + infer + stk_cpu_backend.state_bytes(n.graph, &n.state) + 8000);
    n.ask.other = NULL;
    REQUIRE_OK(stk_memory_total(&n.ask, 8, &all, &n.err), &n.err);
    CHECK_INT(all, train + stk_cpu_backend.state_bytes(n.graph, &n.state) + 8000);
    CHECK_INT(stk_memory_check(&n.ask, &n.err), STK_OK);
    close_network(&n);
}

static void numbers_do_not_overflow(void) {
    static const size_t batches[] = {(size_t)1 << 31, (size_t)1 << 40, (size_t)1 << 62, SIZE_MAX};
    network n;
    open_network(&n, "resnet18", 64, 1);
    for (size_t i = 0; i < sizeof batches / sizeof *batches; i++) {
        n.train.batch = batches[i];
        n.err = (stk_error){0};
        CHECK_INT(stk_memory_check(&n.ask, &n.err), STK_ERR_MEMORY);
        CHECK_CONTAINS(n.err.message, "of this machine's memory and ");
        CHECK(number_behind(n.err.message, "the largest that fits is ") > 1);
    }
    CHECK_CONTAINS(n.err.message, "more than can be counted");
    close_network(&n);
}

static void not_even_one(void) {
    network n;
    open_network(&n, "resnet18", 64, 2);
    n.backend.memory = fixed_memory;
    free_bytes = 1 << 20;
    CHECK_INT(stk_memory_check(&n.ask, &n.err), STK_ERR_MEMORY);
    CHECK_CONTAINS(n.err.message, "not even one picture fits");
    CHECK_CONTAINS(n.err.message, "1 MiB can be used");
    close_network(&n);
}

/* What others will take of the free memory is not the batch's. */
static void kept_memory_is_not_free(void) {
    network n;
    uint64_t bytes = 0;
    open_network(&n, "resnet18", 64, 8);
    n.backend.memory = fixed_memory;
    REQUIRE_OK(stk_memory_total(&n.ask, 8, &bytes, &n.err), &n.err);
    free_bytes = bytes + 1000;
    n.ask.kept_bytes = 1000;
    CHECK_INT(stk_memory_check(&n.ask, &n.err), STK_OK);
    n.ask.kept_bytes = 1001;
    CHECK_INT(stk_memory_check(&n.ask, &n.err), STK_ERR_MEMORY);
    n.ask.kept_bytes = UINT64_MAX;
    n.err = (stk_error){0};
    CHECK_INT(stk_memory_check(&n.ask, &n.err), STK_ERR_MEMORY);
    CHECK_CONTAINS(n.err.message, "0 MiB can be used");
    close_network(&n);
}

static const check_test tests[] = {
    TEST(what_fits_passes_and_what_does_not_is_told),
    TEST(all_of_it_is_counted),
    TEST(numbers_do_not_overflow),
    TEST(not_even_one),
    TEST(kept_memory_is_not_free),
};

CHECK_MAIN(tests)
