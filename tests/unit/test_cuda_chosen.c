/* test_cuda_chosen.c - which backend a device's name means, and what is said where it is not there.
 */
#include "check.h"

#include "backend/backends.h"
#include "backend/cpu/device.h"
#include "backend/cuda/device.h"
#include "cuda_play.h"

static void the_cpu_is_always_there(void) {
    stk_backend_choice choice;
    stk_error err = {0};
    REQUIRE_OK(stk_backend_find("cpu", &choice, &err), &err);
    CHECK(choice.backend == &stk_cpu_backend);
    CHECK_INT(choice.index, 0);
    CHECK_STR(choice.why, "given");
}

static void names_that_mean_nothing_are_told(void) {
    static const char *const names[] = {"",
                                        "gpu",
                                        "CPU",
                                        "cuda1",
                                        "cuda:",
                                        "cuda:-1",
                                        "cuda:1x",
                                        "cuda: 1",
                                        "cuda:+1",
                                        "cpu:0",
                                        "cuda:99999999999999999999"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        stk_backend_choice choice;
        stk_error err = {0};
        if (stk_backend_find(names[i], &choice, &err) != STK_ERR_USAGE) {
            CHECK_FAIL("\"%s\" is taken", names[i]);
        }
        CHECK_CONTAINS(err.message, "give auto, cpu or cuda[:N]");
    }
}

/* A driver that is there is found in any case, and its GPUs are hidden from tests. */
static bool says_what_lacks(const char *why) {
    return (strstr(why, "no libcu") != NULL && strstr(why, "was found") != NULL) ||
           strstr(why, "the NVIDIA driver sees no GPU") != NULL;
}

/* In a folder without libraries cuDNN is not found, nor is the driver where there is none. */
static void without_libraries_auto_is_the_cpu_and_cuda_an_error(void) {
    stk_backend_choice choice;
    stk_error err = {0};
    setenv("STOKER_CUDA_LIBS", check_folder(), 1);
    REQUIRE_OK(stk_backend_find("auto", &choice, &err), &err);
    CHECK(choice.backend == &stk_cpu_backend);
    CHECK_CONTAINS(choice.why, "auto: ");
    CHECK(says_what_lacks(choice.why));
    CHECK_INT(stk_backend_find("cuda", &choice, &err), STK_ERR_DEVICE);
    CHECK_CONTAINS(err.message, "--device cuda: ");
    CHECK(says_what_lacks(err.message));
    CHECK_CONTAINS(err.message, "use --device cpu");
    unsetenv("STOKER_CUDA_LIBS");
}

static void with_a_gpu_auto_is_cuda(void) {
    stk_backend_choice choice;
    stk_error err = {0};
    play_device play;
    char why[512];
    if (!play_open(&play)) {
        return;
    }
    if (play.emulated) {
        setenv("STOKER_CUDA_LIBS", play_emulated_folder(), 1);
    }
    play_close(&play);
    if (!stk_cuda_usable(0, why, sizeof why)) {
        unsetenv("STOKER_CUDA_LIBS");
        CHECK_SKIP("there is a GPU, but not all of its libraries");
    }
    REQUIRE_OK(stk_backend_find("auto", &choice, &err), &err);
    CHECK(choice.backend == &stk_cuda_backend);
    CHECK_INT(choice.index, 0);
    CHECK_CONTAINS(choice.why, "auto: ");
    CHECK_CONTAINS(choice.why, "cuDNN 9.");
    REQUIRE_OK(stk_backend_find("cuda:0", &choice, &err), &err);
    CHECK(choice.backend == &stk_cuda_backend);
    CHECK_INT(stk_backend_find("cuda:999", &choice, &err), STK_ERR_DEVICE);
    CHECK_CONTAINS(err.message, "--device cuda:999: there is no GPU number 999: there ");
    unsetenv("STOKER_CUDA_LIBS");
}

static const check_test tests[] = {
    TEST(the_cpu_is_always_there),
    TEST(names_that_mean_nothing_are_told),
    TEST(without_libraries_auto_is_the_cpu_and_cuda_an_error),
    TEST(with_a_gpu_auto_is_cuda),
};

CHECK_MAIN(tests)
