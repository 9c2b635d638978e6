/* test_cuda_device.c - opening a GPU, and what is said where there is none. */
#include "check.h"

#include "backend/cuda/device.h"
#include "backend/cuda/program/kernels.h"
#include "base/files/file.h"
#include "base/mem.h"
#include "cuda_play.h"

/* Whether there is a GPU at all, and whether it is emulated; the test is skipped without. Asked
 * once: what the library opens stays in the process, and would then be taken for the system's. */
static bool find_gpu(bool *emulated) {
    static int known; /* 1: a real one, 2: an emulated one */
    play_device play;
    if (known == 0) {
        if (!play_open(&play)) {
            return false;
        }
        known = play.emulated ? 2 : 1;
        play_close(&play);
    }
    *emulated = known == 2;
    return true;
}

/* Lets the library find the emulated GPU, or the real one; false: the test is skipped. */
static bool choose_gpu(void) {
    bool emulated;
    char why[512];
    char folder[256];
    if (!find_gpu(&emulated)) {
        return false;
    }
    snprintf(folder, sizeof folder, "%s", check_folder());
    setenv("XDG_CACHE_HOME", folder, 1);
    unsetenv("STOKER_CUDA_LIBS");
    if (emulated) {
        setenv("STOKER_CUDA_LIBS", play_emulated_folder(), 1);
    }
    if (!stk_cuda_usable(0, why, sizeof why)) {
        static char reason[600];
        snprintf(reason, sizeof reason, "%s", why);
        check_skip_reason = reason;
        return false;
    }
    return true;
}

static void a_device_opens_and_closes(void) {
    stk_device *device = NULL;
    stk_error err = {0};
    stk_device_memory memory = {0};
    stk_device_config config = {.threads = 2};
    if (!choose_gpu()) {
        return;
    }
    for (int start = 0; start < 2; start++) {
        REQUIRE_OK(stk_cuda_device_open(&device, &config, &err), &err);
        CHECK_CONTAINS(stk_cuda_device_describe(device), device->name);
        CHECK_CONTAINS(stk_cuda_device_describe(device), " GiB, CUDA ");
        CHECK_CONTAINS(stk_cuda_device_bus_id(device), ":");
        CHECK(device->multiprocessors > 0 && device->major > 0);
        CHECK(device->compute != NULL && device->copy != NULL && device->compute != device->copy);
        CHECK(device->store != NULL && device->kernels != NULL && device->convs != NULL);
        REQUIRE_OK(stk_cuda_device_memory(device, &memory, &err), &err);
        CHECK(memory.free_bytes > 0 && memory.free_bytes <= memory.total_bytes);
        CHECK_INT(memory.total_bytes, device->total_bytes);
        char *host = stk_cuda_device_host_take(device, 1000);
        REQUIRE(host != NULL);
        memset(host, 1, 1000);
        stk_cuda_device_host_free(device, host);
        stk_cuda_device_host_free(device, NULL);
        stk_cuda_device_close(device);
    }
    stk_cuda_device_close(NULL);
}

/* As if the GPU were a smaller one: what is free, what can be had, and what is said of it. */
static void memory_is_held_to_what_is_assumed(void) {
    const size_t assumed = (size_t)1536 << 20;
    stk_device *device = NULL;
    stk_error err = {0};
    stk_device_memory before, after;
    cuda_pointer part = 0;
    cuda_pointer rest = 0;
    stk_device_config config = {.threads = 1, .memory_bytes = assumed};
    if (!choose_gpu()) {
        return;
    }
    REQUIRE_OK(stk_cuda_device_open(&device, &config, &err), &err);
    CHECK_CONTAINS(stk_cuda_device_describe(device), " GiB, held to 1.5 GiB, CUDA ");
    REQUIRE_OK(stk_cuda_enter(device, &err), &err);
    REQUIRE_OK(stk_cuda_device_memory(device, &before, &err), &err);
    CHECK_INT(before.total_bytes, assumed);
    CHECK(before.free_bytes > (64 << 20) && before.free_bytes < assumed);
    CHECK_INT(stk_cuda_take(device, &part, 1 << 20), CUDA_GOOD);
    REQUIRE_OK(stk_cuda_device_memory(device, &after, &err), &err);
    CHECK_INT(before.free_bytes - after.free_bytes, 1 << 20);
    CHECK_INT(stk_cuda_take(device, &rest, assumed), CUDA_ERROR_OUT_OF_MEMORY_);
    CHECK_INT(stk_cuda_take(device, &rest, SIZE_MAX), CUDA_ERROR_OUT_OF_MEMORY_);
    CHECK_INT(rest, 0);
    stk_cuda_give(device, part, 1 << 20);
    REQUIRE_OK(stk_cuda_device_memory(device, &after, &err), &err);
    CHECK_INT(after.free_bytes, before.free_bytes);
    CHECK_INT(stk_cuda_take(device, &rest, before.free_bytes), CUDA_GOOD);
    stk_cuda_give(device, rest, before.free_bytes);
    stk_cuda_device_close(device);

    config.memory_bytes = (uint64_t)1 << 50; /* no GPU has it */
    REQUIRE_OK(stk_cuda_device_open(&device, &config, &err), &err);
    CHECK_CONTAINS(stk_cuda_device_describe(device), " GiB, less than the assumed ");
    REQUIRE_OK(stk_cuda_device_memory(device, &after, &err), &err);
    CHECK_INT(after.total_bytes, device->total_bytes);
    stk_cuda_device_close(device);
}

static void precisions_are_what_the_gpu_can_do(void) {
    stk_device hopper = {.major = 9};
    stk_device turing = {.major = 7, .minor = 5};
    stk_device pascal = {.major = 6};
    CHECK_INT(stk_cuda_device_precision(&hopper, STK_PRECISION_AUTO), STK_PRECISION_FP16);
    CHECK_INT(stk_cuda_device_precision(&hopper, STK_PRECISION_BF16), STK_PRECISION_BF16);
    CHECK_INT(stk_cuda_device_precision(&hopper, STK_PRECISION_FP32_STRICT),
              STK_PRECISION_FP32_STRICT);
    CHECK_INT(stk_cuda_device_precision(&turing, STK_PRECISION_AUTO), STK_PRECISION_FP16);
    CHECK_INT(stk_cuda_device_precision(&turing, STK_PRECISION_BF16), STK_PRECISION_FP16);
    CHECK_INT(stk_cuda_device_precision(&pascal, STK_PRECISION_AUTO), STK_PRECISION_FP32);
    CHECK_INT(stk_cuda_device_precision(&pascal, STK_PRECISION_FP32), STK_PRECISION_FP32);
}

static void a_number_that_no_gpu_has_is_told(void) {
    stk_device *device = NULL;
    stk_error err = {0};
    char why[256];
    stk_device_config config = {.threads = 1, .index = 999};
    if (!choose_gpu()) {
        return;
    }
    CHECK(!stk_cuda_usable(999, why, sizeof why));
    CHECK_CONTAINS(why, "there is no GPU number 999: there ");
    CHECK_INT(stk_cuda_device_open(&device, &config, &err), STK_ERR_DEVICE);
    CHECK_CONTAINS(err.message, "there is no GPU number 999: there ");
    CHECK(device == NULL);
    CHECK(!stk_cuda_usable(-1, why, sizeof why));
}

static void missing_libraries_are_told_with_the_gpu(void) {
    stk_device *device = NULL;
    stk_error err = {0};
    char why[512];
    char path[700];
    char *data = NULL;
    size_t size = 0;
    stk_device_config config = {.threads = 1};
    bool emulated;
    if (!find_gpu(&emulated)) {
        return;
    }
    /* A folder that has the driver alone, which a real one need not be in. */
    const char *folder = check_folder();
    if (emulated) {
        snprintf(path, sizeof path, "%s/libcuda.so.1", play_emulated_folder());
        REQUIRE_OK(stk_file_read(path, 0, &data, &size, &err), &err);
        snprintf(path, sizeof path, "%s/libcuda.so.1", folder);
        REQUIRE_OK(stk_file_write(path, data, size, &err), &err);
        stk_mem_free(data);
    }
    setenv("STOKER_CUDA_LIBS", folder, 1);
    CHECK(!stk_cuda_usable(0, why, sizeof why));
    CHECK_CONTAINS(why, "there is ");
    CHECK_CONTAINS(why, ", but no libcudnn.so.9 was found");
    CHECK_INT(stk_cuda_device_open(&device, &config, &err), STK_ERR_DEVICE);
    CHECK_CONTAINS(err.message, "no libcudnn.so.9 was found");
    CHECK(device == NULL);
    unsetenv("STOKER_CUDA_LIBS");
}

static const check_test tests[] = {
    TEST(a_device_opens_and_closes),
    TEST(memory_is_held_to_what_is_assumed),
    TEST(precisions_are_what_the_gpu_can_do),
    TEST(a_number_that_no_gpu_has_is_told),
    TEST(missing_libraries_are_told_with_the_gpu),
};

CHECK_MAIN(tests)
