/*
 * test_exec_cache.c - which executables wait for the next use, and that folds come to the same with
 * those that others have left.
 */
#include "check.h"
#include "train_fold.h"

#include "base/error.h"
#include "engine/exec_cache.h"

/* Executables of the CPU as those of a backend that compiles: counted, and there is room for a few
 * only. */
static struct {
    int compiled;
    int alive;
    int most; /* that may be alive at a time */
} made;

static stk_status compile_counted(stk_exec **exec, stk_state *state,
                                  const stk_compile_config *config, stk_error *err) {
    if (made.alive >= made.most) {
        return STK_FAIL(err, STK_ERR_MEMORY, "there is memory for %d networks", made.most);
    }
    stk_status status = stk_cpu_backend.compile(exec, state, config, err);
    made.compiled += status == STK_OK;
    made.alive += status == STK_OK;
    return status;
}

static void free_counted(stk_exec *exec) {
    made.alive -= exec != NULL;
    stk_cpu_backend.exec_free(exec);
}

static void count_nothing(const stk_device *device, stk_device_counts *counts) {
    (void)device;
    *counts = (stk_device_counts){0};
}

/* A fold on that backend. */
static void set_up(fold *f, int most) {
    made.compiled = made.alive = 0;
    made.most = most;
    open_fold(f, norm_graph(), 1, false);
    f->scripted = *f->backend;
    f->scripted.compile = compile_counted;
    f->scripted.exec_free = free_counted;
    f->scripted.counts = count_nothing;
    f->config.backend = &f->scripted;
}

static stk_exec_cache cache_of(const fold *f) {
    return (stk_exec_cache){.backend = f->config.backend, .state = f->state};
}

static stk_exec *taken(stk_exec_cache *cache, const stk_compile_config *config) {
    stk_error err = {0};
    stk_exec *exec = NULL;
    must(stk_exec_cache_take(cache, config, &exec, &err), &err);
    return exec;
}

static void the_same_network_is_compiled_once(void) {
    fold f;
    set_up(&f, 8);
    stk_exec_cache cache = cache_of(&f);
    const stk_compile_config how = {.batch = 4, .train = true};
    stk_compile_config others[] = {how, how, how, how, how, how, how, how};
    others[0].batch = 5;
    others[1].train = false;
    others[2].frozen = true;
    others[3].plain = true;
    others[4].graph = f.graph;
    others[5].precision = STK_PRECISION_FP32;
    others[6].ema = true;
    others[7].kept_stats = true;
    stk_exec *exec = taken(&cache, &how);
    stk_exec_cache_keep(&cache, &how, exec);
    CHECK(taken(&cache, &how) == exec);
    CHECK_INT(made.compiled, 1);
    CHECK_INT(cache.count, 0);
    stk_exec_cache_keep(&cache, &how, exec);
    for (size_t i = 0; i < STK_COUNT(others); i++) {
        stk_exec *other = taken(&cache, &others[i]);
        CHECK(other != exec);
        f.scripted.exec_free(other);
    }
    CHECK_INT(made.compiled, 1 + (int)STK_COUNT(others));
    stk_exec_cache_clear(&cache);
    CHECK_INT(made.alive, 0);
    close_fold(&f);
}

static void the_oldest_goes_first(void) {
    fold f;
    set_up(&f, 8);
    stk_exec_cache cache = cache_of(&f);
    for (size_t batch = 1; batch <= STK_EXEC_CACHE_MOST + 1; batch++) {
        stk_compile_config how = {.batch = batch};
        stk_exec_cache_keep(&cache, &how, taken(&cache, &how));
    }
    CHECK_INT(made.alive, STK_EXEC_CACHE_MOST);
    stk_exec *second = taken(&cache, &(stk_compile_config){.batch = 2});
    CHECK_INT(made.compiled, STK_EXEC_CACHE_MOST + 1);
    stk_exec *first = taken(&cache, &(stk_compile_config){.batch = 1});
    CHECK_INT(made.compiled, STK_EXEC_CACHE_MOST + 2);
    f.scripted.exec_free(first);
    f.scripted.exec_free(second);
    stk_exec_cache_clear(&cache);
    CHECK_INT(made.alive, 0);
    close_fold(&f);
}

static void memory_is_made_for_what_is_needed_now(void) {
    fold f;
    stk_error err = {0};
    set_up(&f, 2);
    stk_exec_cache cache = cache_of(&f);
    stk_compile_config how[3] = {{.batch = 1}, {.batch = 2}, {.batch = 3}};
    stk_exec *used = taken(&cache, &how[0]);
    stk_exec_cache_keep(&cache, &how[1], taken(&cache, &how[1]));
    stk_exec *exec = taken(&cache, &how[2]);
    CHECK_INT(cache.count, 0);
    CHECK_INT(made.alive, 2);
    stk_exec *none = NULL;
    CHECK_INT(stk_exec_cache_take(&cache, &how[1], &none, &err), STK_ERR_MEMORY);
    CHECK_CONTAINS(err.message, "there is memory for 2 networks");
    f.scripted.exec_free(exec);
    f.scripted.exec_free(used);
    close_fold(&f);
}

static void what_is_made_in_a_moment_is_not_kept(void) {
    fold f;
    set_up(&f, 8);
    f.scripted.counts = NULL;
    stk_exec_cache cache = cache_of(&f);
    stk_compile_config how = {.batch = 1};
    stk_exec_cache_keep(&cache, &how, taken(&cache, &how));
    CHECK_INT(cache.count, 0);
    CHECK_INT(made.alive, 0);
    close_fold(&f);
}

/* Two folds in a row, the first epoch with a frozen backbone; returns a hash of the weights. */
static uint64_t two_folds(bool kept, int most, int *compiled) {
    fold f;
    set_up(&f, most);
    stk_exec_cache cache = cache_of(&f);
    f.options.freeze_epochs = 1;
    f.config.execs = kept ? &cache : NULL;
    uint64_t hash = 0;
    for (int i = 0; i < 2; i++) {
        f.config.seed = 4 + (uint64_t)i;
        stk_error err = {0};
        must(stk_state_first_weights(f.backend, f.state, f.graph, 3, &err), &err);
        must(stk_train_reset_state(f.backend, f.state, f.graph, &err), &err);
        CHECK_INT(run_fold(&f), STK_OK);
        hash = hash * 31 + hash_weights(&f);
    }
    CHECK_INT(made.alive, cache.count);
    *compiled = made.compiled;
    stk_exec_cache_clear(&cache);
    CHECK_INT(made.alive, 0);
    close_fold(&f);
    return hash;
}

static void folds_come_to_the_same(void) {
    int compiled;
    uint64_t alone = two_folds(false, 8, &compiled);
    CHECK_INT(compiled, 6);
    CHECK(two_folds(true, 8, &compiled) == alone);
    CHECK_INT(compiled, 3);
    CHECK(two_folds(true, 2, &compiled) == alone); /* there is no memory to keep them all */
    CHECK(compiled > 3);
}

/* The network that predicts is ready when training ends, also where nothing is validated. */
static void what_predicts_is_compiled_first(void) {
    for (int predicts = 0; predicts < 2; predicts++) {
        fold f;
        set_up(&f, 8);
        stk_exec_cache cache = cache_of(&f);
        f.config.execs = &cache;
        f.config.val_data.count = 0;
        f.config.predicts = predicts == 1;
        CHECK_INT(run_fold(&f), STK_OK);
        CHECK_INT(made.compiled, 1 + predicts);
        f.scripted.exec_free(taken(&cache, &f.config.val_compile));
        CHECK_INT(made.compiled, 2);
        stk_exec_cache_clear(&cache);
        close_fold(&f);
    }
}

/* Steps that were halted may still read pictures: nothing of such a fold is kept. */
static void after_an_error_nothing_is_kept(void) {
    fold f;
    set_up(&f, 8);
    stk_exec_cache cache = cache_of(&f);
    f.config.execs = &cache;
    f.fail_checkpoint = 1;
    CHECK_INT(run_fold(&f), STK_ERR_STORAGE);
    CHECK_INT(cache.count, 0);
    CHECK_INT(made.alive, 0);
    close_fold(&f);
}

static const check_test tests[] = {
    TEST(the_same_network_is_compiled_once),
    TEST(the_oldest_goes_first),
    TEST(memory_is_made_for_what_is_needed_now),
    TEST(what_is_made_in_a_moment_is_not_kept),
    TEST(folds_come_to_the_same),
    TEST(what_predicts_is_compiled_first),
    TEST(after_an_error_nothing_is_kept),
};

CHECK_MAIN(tests)
