/* test_loader_cache.c - what a loader shows does not depend on what is cached. */
#include "loader_runs.h"

/* Runs three epochs through a store with this cache; its stream as a number. */
static uint64_t run(const char *cache, uint64_t cache_size, int workers,
                    stk_store_counters *counters) {
    stk_error err = {0};
    stk_storage_options options = {.cache = cache, .cache_size = cache_size, .read_timeout_s = 30};
    stk_loader_config config = config_of(shared_pictures()->samples, 4);
    stk_loader *loader = NULL;
    stk_store *store = NULL;
    must(stk_store_open(&store, shared_pictures()->root, &options, NULL, &err), &err);
    config.store = store;
    config.sizing.workers = workers;
    must(stk_loader_start(&loader, &config, &err), &err);
    uint64_t hash = hash_rest(loader);
    stk_loader_close(loader);
    stk_store_stats(store, counters);
    stk_store_close(store);
    return hash;
}

static void encoded_in_memory_changes_nothing(void) {
    stk_store_counters off = {0};
    stk_store_counters ram = {0};
    uint64_t plain = run("off", STK_AUTO_BYTES, 2, &off);
    CHECK(run("ram", STK_AUTO_BYTES, 2, &ram) == plain);
    CHECK_INT(off.cache_hits, 0);
    /* Reads ahead may ask for a picture again before its first read has ended. */
    CHECK(ram.cache_hits > 0 && ram.cache_hits <= 2 * PICTURES);
    CHECK(run("ram", 2000, 3, &ram) == plain); /* most do not fit */
}

static void on_disk_changes_nothing(void) {
    stk_store_counters off = {0};
    stk_store_counters disk = {0};
    char folder[300];
    snprintf(folder, sizeof folder, "%s/cache", check_folder());
    uint64_t plain = run("off", STK_AUTO_BYTES, 2, &off);
    CHECK(run(folder, (uint64_t)1 << 30, 2, &disk) == plain);
    stk_store_counters again = {0};
    CHECK(run(folder, (uint64_t)1 << 30, 2, &again) == plain);
    CHECK_INT(again.cache_hits, 3 * PICTURES); /* everything, from the first epoch on */
}

/* Which pictures fit, and how many threads fill the cache, must not show in the stream. */
static void decoded_pictures_do_not_depend_on_what_fits(void) {
    stk_store_counters all = {0};
    stk_store_counters few = {0};
    stk_store_counters none = {0};
    uint64_t whole = run("decoded", STK_AUTO_BYTES, 1, &all);
    CHECK(run("decoded", 6000, 3, &few) == whole);
    CHECK(run("decoded", 10, 2, &none) == whole);
    CHECK(all.cache_hits > few.cache_hits);
    CHECK_INT(none.cache_hits, 0);
}

static const check_test tests[] = {
    TEST(encoded_in_memory_changes_nothing),
    TEST(on_disk_changes_nothing),
    TEST(decoded_pictures_do_not_depend_on_what_fits),
};

CHECK_MAIN(tests)
