/* test_probe_epochs.c - whole epochs of a loader, with a consumer that has a rate or none. */
#include "check.h"
#include "small_pictures.h"

#include "base/clock.h"
#include "base/error.h"
#include "probe/epoch_probe.h"
#include "probe/own_use.h"
#include "probe/probe_options.h"

#define PICTURES 30
#define BATCH 8
#define PER_EPOCH (PICTURES / BATCH * BATCH)

static stk_options *options_with(const char *const (*given)[2], size_t count) {
    static char root[256];
    stk_error err = {0};
    stk_options *options = NULL;
    if (root[0] == '\0') {
        snprintf(root, sizeof root, "%s", check_folder());
        picture_set set = make_pictures(root, PICTURES);
        free_pictures(&set);
    }
    must(stk_options_for_bench_loader(&options, &err), &err);
    must(stk_options_set(options, "data", root, &err), &err);
    must(stk_options_set(options, "batch", "8", &err), &err);
    must(stk_options_set(options, "img-size", "16", &err), &err);
    for (size_t i = 0; i < count; i++) {
        must(stk_options_set(options, given[i][0], given[i][1], &err), &err);
    }
    return options;
}

static void check_epochs(const stk_epoch_list *list, size_t count, int64_t images) {
    CHECK_INT(list->count, count);
    for (size_t i = 0; i < list->count; i++) {
        const stk_epoch_figures *e = &list->items[i];
        CHECK_INT(e->epoch, i);
        CHECK_INT(e->images, images);
        CHECK(e->seconds > 0);
        CHECK_NEAR(e->images_per_second * e->seconds, images, 1e-6 * (double)images);
        CHECK(e->wait_fraction >= 0 && e->wait_fraction <= 1);
    }
}

static void measures_whole_epochs(void) {
    static const char *const given[][2] = {{"epochs", "3"}};
    stk_error err = {0};
    stk_loader_figures f;
    stk_epoch_list list;
    stk_options *options = options_with(given, 1);
    REQUIRE_OK(stk_probe_epochs(options, 0, 3600, NULL, NULL, &f, &list, &err), &err);
    check_epochs(&list, 3, PER_EPOCH);
    double seconds = 0;
    int64_t bytes = 0;
    for (size_t i = 0; i < list.count; i++) {
        seconds += list.items[i].seconds;
        bytes += list.items[i].read_bytes;
    }
    CHECK_INT(f.images, 3 * PER_EPOCH);
    CHECK_NEAR(f.seconds, seconds, 1e-6);
    CHECK_NEAR(f.images_per_second * f.seconds, f.images, 1e-6 * (double)f.images);
    CHECK(bytes > 3 * PER_EPOCH * 100);
    CHECK(f.first_batch_ms > 0 && f.first_batch_ms <= list.items[0].seconds * 1e3);
    CHECK(f.rss_bytes > 100000);
    CHECK_INT(f.samples, PICTURES);
    CHECK_INT(f.batch, BATCH);
    CHECK_INT(f.img_size, 16);
    CHECK(f.workers >= 1 && f.slots >= 2 && f.cores >= 1);
    CHECK(isnan(f.ceiling_share) && isnan(f.decode_only_per_second_per_core));
    CHECK_INT(f.decode_images, 0);
    stk_epoch_list_free(&list);
    stk_options_free(options);
}

/* The last batch counts too when it is kept, though it is not full. */
static void counts_batches_that_are_not_full(void) {
    static const char *const given[][2] = {{"epochs", "2"}, {"drop-last", "false"}};
    stk_error err = {0};
    stk_loader_figures f;
    stk_epoch_list list;
    stk_options *options = options_with(given, 2);
    REQUIRE_OK(stk_probe_epochs(options, 0, 3600, NULL, NULL, &f, &list, &err), &err);
    check_epochs(&list, 2, PICTURES);
    stk_epoch_list_free(&list);
    stk_options_free(options);
}

/* Who works at a rate takes at least as long as that, however fast the loader is. */
static void consumes_at_the_rate(void) {
    static const char *const given[][2] = {{"epochs", "2"}};
    stk_error err = {0};
    stk_loader_figures f;
    stk_epoch_list list;
    stk_options *options = options_with(given, 1);
    double rate = 240;
    REQUIRE_OK(stk_probe_epochs(options, rate, 3600, NULL, NULL, &f, &list, &err), &err);
    check_epochs(&list, 2, PER_EPOCH);
    CHECK(f.seconds >= 2 * PER_EPOCH / rate - 1e-6);
    CHECK(f.images_per_second <= rate + 1e-3);
    for (size_t i = 0; i < list.count; i++) {
        CHECK(list.items[i].wait_fraction < 1); /* who works does not wait meanwhile */
    }
    stk_epoch_list_free(&list);
    stk_options_free(options);
}

static void without_a_number_ends_with_the_seconds(void) {
    stk_error err = {0};
    stk_loader_figures f;
    stk_epoch_list list;
    stk_options *options = options_with(NULL, 0);
    REQUIRE_OK(stk_probe_epochs(options, 0, 0.001, NULL, NULL, &f, &list, &err), &err);
    CHECK(list.count >= 1);
    check_epochs(&list, list.count, PER_EPOCH);
    CHECK(f.seconds >= 0.001);
    stk_epoch_list_free(&list);
    stk_options_free(options);
}

static void counts_what_the_cache_gave(void) {
    static const char *const given[][2] = {{"epochs", "4"}, {"cache", "ram"}, {"drop-last", "no"}};
    stk_error err = {0};
    stk_loader_figures f;
    stk_epoch_list list;
    stk_options *options = options_with(given, 3);
    int64_t hits = 0;
    int64_t misses = 0;
    REQUIRE_OK(stk_probe_epochs(options, 0, 3600, NULL, NULL, &f, &list, &err), &err);
    check_epochs(&list, 4, PICTURES);
    for (size_t i = 0; i < list.count; i++) {
        hits += list.items[i].cache_hits;
        misses += list.items[i].cache_misses;
    }
    /* A picture may be wanted again, by the next epoch, before it has come for this one. */
    CHECK(misses >= PICTURES && misses <= 2 * PICTURES);
    CHECK_INT(hits + misses, 4 * PICTURES);
    CHECK(list.items[0].cache_misses > 0);
    CHECK_INT(list.items[3].cache_misses, 0);
    stk_epoch_list_free(&list);
    stk_options_free(options);
}

static void ends_when_asked_and_when_it_cannot(void) {
    stk_error err = {0};
    stk_loader_figures f;
    stk_epoch_list list;
    stk_stop stop = {0};
    stk_options *options = options_with(NULL, 0);
    stk_stop_request(&stop, STK_STOP_SOON, 0);
    CHECK_INT(stk_probe_epochs(options, 1, 3600, &stop, NULL, &f, &list, &err), STK_ERR_STOPPED);
    stk_epoch_list_free(&list);
    stk_error_clear(&err);
    must(stk_options_set(options, "data", "/nonexistent", &err), &err);
    CHECK_INT(stk_probe_epochs(options, 0, 1, NULL, NULL, &f, &list, &err), STK_ERR_DATA);
    CHECK_CONTAINS(err.message, "/nonexistent");
    stk_epoch_list_free(&list);
    stk_options_free(options);
}

static void survives_lack_of_memory(void) {
    static const int64_t requests[] = {0, 1, 3, 10, 30, 100};
    static const char *const given[][2] = {{"epochs", "1"}};
    stk_options *options = options_with(given, 1);
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        stk_error err = {0};
        stk_loader_figures f;
        stk_epoch_list list;
        stk_mem_fail_after(requests[i]);
        stk_status status = stk_probe_epochs(options, 0, 1, NULL, NULL, &f, &list, &err);
        stk_mem_fail_after(-1);
        CHECK_INT(status, STK_ERR_MEMORY);
        stk_epoch_list_free(&list);
    }
    stk_options_free(options);
}

static void own_use_is_known(void) {
    int64_t before = stk_own_peak_resident();
    size_t size = (size_t)64 << 20;
    char *block = stk_mem_raw(size, 1);
    REQUIRE(block != NULL);
    memset(block, 1, size);
    int64_t with = stk_own_resident();
    stk_mem_free(block);
    CHECK(before > 0);
    CHECK(with >= (int64_t)size);
    CHECK(stk_own_peak_resident() >= with - ((int64_t)4 << 20));
    CHECK(stk_own_peak_resident() >= before);
    CHECK(stk_own_processor_s() > 0);
}

static const check_test tests[] = {
    TEST(measures_whole_epochs),      TEST(counts_batches_that_are_not_full),
    TEST(consumes_at_the_rate),       TEST(without_a_number_ends_with_the_seconds),
    TEST(counts_what_the_cache_gave), TEST(ends_when_asked_and_when_it_cannot),
    TEST(survives_lack_of_memory),    TEST(own_use_is_known),
};

CHECK_MAIN(tests)
