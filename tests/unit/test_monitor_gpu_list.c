/* test_monitor_gpu_list.c - which GPUs a program may use, as CUDA reads CUDA_VISIBLE_DEVICES. */
#include "check.h"

#include "monitor/gpu_list.h"
#include "nvml_script.h"

static const stk_gpu_info are[] = {
    {.bus_id = "0000:19:00.0", .name = "A", .uuid = "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6"},
    {.bus_id = "0000:3B:00.0", .name = "B", .uuid = "GPU-8932aaaa-d72c-4106-c12f-20bd9faed9f6"},
    {.bus_id = "0000:4C:00.0", .name = "C", .uuid = "GPU-17fe0000-d72c-4106-c12f-20bd9faed9f6"},
};

static stk_gpu_info places[STK_GPU_MOST];
static char why[200];

/* The names of those that are seen, one after the other. */
static const char *chosen(const char *visible) {
    static char names[16];
    size_t count = stk_gpu_list_choose(visible, are, 3, places, why, sizeof why);
    names[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        strcat(names, places[i].name);
    }
    return names;
}

static void numbers(void) {
    CHECK_STR(chosen(NULL), "ABC");
    CHECK_STR(chosen("0"), "A");
    CHECK_STR(chosen("1,0"), "BA");
    CHECK_STR(chosen(" 2 , 1 "), "CB");
    CHECK_STR(why, "");
    CHECK_STR(chosen("02"), "C");
}

static void none(void) {
    CHECK_STR(chosen(""), "");
    CHECK_STR(why, "CUDA_VISIBLE_DEVICES is empty");
    CHECK_STR(chosen("-1"), "");
    CHECK_STR(why, "CUDA_VISIBLE_DEVICES has \"-1\", which is no GPU here");
    CHECK_STR(chosen("NoDevFiles"), "");
    CHECK_STR(chosen("3"), "");
    CHECK_STR(chosen("18446744073709551616"), "");
    CHECK_STR(chosen("0x1"), "");
    CHECK_STR(chosen("1.5"), "");
}

static void the_first_that_is_none_ends_it(void) {
    CHECK_STR(chosen("2,7,0"), "C");
    CHECK_STR(why, "CUDA_VISIBLE_DEVICES has \"7\", which is no GPU here");
    CHECK_STR(chosen("0,-1,1"), "A");
    CHECK_STR(chosen("0,,1"), "A");
    CHECK_STR(chosen("0,1,"), "AB");
    CHECK_STR(chosen(",0"), "");
}

static void beginnings_of_uuids(void) {
    CHECK_STR(chosen("GPU-8932f937"), "A");
    CHECK_STR(chosen("GPU-17FE"), "C");
    CHECK_STR(chosen("GPU-17fe0000-d72c-4106-c12f-20bd9faed9f6,GPU-8932a"), "CB");
    CHECK_STR(chosen("GPU-8932"), ""); /* two begin so */
    CHECK_STR(chosen("GPU-17,0,GPU-99"), "CA");
    CHECK_STR(chosen("GPU-17fe0000-d72c-4106-c12f-20bd9faed9f6x"), "");
}

static void one_named_twice_shows_none(void) {
    CHECK_STR(chosen("0,0"), "");
    CHECK_CONTAINS(why, "names a GPU twice");
    CHECK_STR(chosen("1,2,GPU-17fe"), "");
}

static void parts_of_gpus_are_not_supported(void) {
    CHECK_STR(chosen("MIG-GPU-8932f937/1/0"), "");
    CHECK_STR(why, "parts of GPUs (MIG-GPU-8932f937/1/0) are not supported");
    CHECK_STR(chosen("1,MIG-17fe"), "B");
}

static void nvml_counts_them(void) {
    nvml_use("fake_nvml", "bus 0000:19:00.0\nuuid GPU-aa\nname NVIDIA H200\ndevice\n"
                          "bus 0000:3b:00.0\nuuid GPU-ab\ndevice\nbus 0001:4c:01.0\n");
    REQUIRE(stk_gpu_list(NULL, places, why, sizeof why) == 3);
    CHECK_STR(why, "");
    CHECK_STR(places[0].bus_id, "0000:19:00.0");
    CHECK_STR(places[0].name, "NVIDIA H200");
    CHECK_STR(places[0].uuid, "GPU-aa");
    CHECK_STR(places[1].bus_id, "0000:3B:00.0");
    CHECK_STR(places[1].name, "GPU"); /* whose name is not told */
    CHECK_STR(places[2].bus_id, "0001:4C:01.0");
    CHECK_STR(places[2].uuid, "");
    REQUIRE(stk_gpu_list("2,GPU-ab", places, why, sizeof why) == 2);
    CHECK_STR(places[0].bus_id, "0001:4C:01.0");
    CHECK_STR(places[1].uuid, "GPU-ab");
    CHECK_INT(stk_gpu_list("", places, why, sizeof why), 0);
}

static void what_is_missing_is_said(void) {
    nvml_use("fake_nvml", "util 5\n");
    CHECK_INT(stk_gpu_list(NULL, places, why, sizeof why), 0);
    CHECK_STR(why, "NVML shows no GPU");
    CHECK_INT(stk_gpu_list("0", places, why, sizeof why), 0);
    CHECK_STR(why, "NVML shows no GPU");
    nvml_use("fake_nvml", "fail 999\n");
    CHECK_INT(stk_gpu_list(NULL, places, why, sizeof why), 0);
    CHECK_STR(why, "NVML does not start: Unknown Error");
}

static const check_test tests[] = {
    TEST(numbers),
    TEST(none),
    TEST(the_first_that_is_none_ends_it),
    TEST(beginnings_of_uuids),
    TEST(one_named_twice_shows_none),
    TEST(parts_of_gpus_are_not_supported),
    TEST(nvml_counts_them),
    TEST(what_is_missing_is_said),
};

CHECK_MAIN(tests)
