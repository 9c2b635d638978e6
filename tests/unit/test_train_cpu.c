/* test_train_cpu.c - the loop of one fold on the CPU: it learns, repeats itself and adds up. */
#include "check.h"
#include "train_fold.h"

static void learns(void) {
    fold f;
    open_fold(&f, normed_graph(), 2, false);
    f.config.lr = 0.05;
    f.total = 16;
    CHECK_INT(run_fold(&f), STK_OK);
    CHECK_INT(f.epochs, 8);
    CHECK(f.epoch[7].train_loss < 0.5 * f.epoch[0].train_loss);
    CHECK(f.result.best.val_acc1 > 90);
    CHECK(f.result.images == 128 && f.result.train_s > 0);
    close_fold(&f);
}

/* Two batches of 8 whose gradients are added up are one of 16, where no layer looks at the batch.
 */
static void accumulation_is_a_larger_batch(void) {
    fold small;
    fold large;
    open_fold(&large, plain_graph(), 1, false);
    large.config.batch = 16;
    large.config.val.count = 0;
    large.options.weight_decay = 0.01;
    large.total = 1000000000; /* the rate hardly moves between the two halves */
    large.stop_at = 1;
    CHECK_INT(run_fold(&large), STK_OK);
    open_fold(&small, plain_graph(), 1, false);
    uint64_t before = hash_weights(&small);
    small.config.batch = 8;
    small.config.val.count = 0;
    small.options.weight_decay = 0.01;
    small.options.accumulate = 2;
    small.total = 1000000000;
    small.stop_at = 2;
    CHECK_INT(run_fold(&small), STK_OK);
    CHECK(hash_weights(&small) != before);
    CHECK(weights_distance(&small, &large) < 1e-6);
    close_fold(&small);
    close_fold(&large);
}

static void huge_rate_is_reported(void) {
    fold f;
    open_fold(&f, plain_graph(), 1, false);
    f.config.lr = 1e20;
    f.total = 200;
    CHECK_INT(run_fold(&f), STK_OK);
    CHECK(f.result.diverged);
    close_fold(&f);
}

static void same_weights_for_any_crew(void) {
    static const struct {
        int threads, workers, slots;
    } crews[] = {{1, 1, 2}, {1, 1, 2}, {1, 8, 5}, {2, 2, 3}, {3, 1, 16}};
    uint64_t first = 0;
    for (size_t i = 0; i < sizeof crews / sizeof *crews; i++) {
        fold f;
        open_fold(&f, normed_graph(), crews[i].threads, false);
        f.config.train.plan.workers = f.config.val.plan.workers = crews[i].workers;
        f.config.train.plan.slots = f.config.val.plan.slots = crews[i].slots;
        f.config.train.transform.augment.flip = true;
        f.options.mixup = 0.2;
        f.options.cutmix = 1;
        f.options.label_smoothing = 0.1;
        f.options.weight_decay = 0.001;
        f.total = 4;
        CHECK_INT(run_fold(&f), STK_OK);
        uint64_t hash = hash_weights(&f);
        first = i == 0 ? hash : first;
        if (hash != first) {
            CHECK_FAIL("%d threads, %d workers: other weights", crews[i].threads, crews[i].workers);
        }
        close_fold(&f);
    }
}

static void seed_changes_the_weights(void) {
    uint64_t hashes[2];
    for (uint64_t seed = 0; seed < 2; seed++) {
        fold f;
        open_fold(&f, plain_graph(), 1, false);
        f.config.train.seed = seed;
        f.total = 2;
        CHECK_INT(run_fold(&f), STK_OK);
        hashes[seed] = hash_weights(&f);
        close_fold(&f);
    }
    CHECK(hashes[0] != hashes[1]);
}

static void fold_without_memory(void) {
    fold f;
    open_fold(&f, plain_graph(), 1, false);
    f.total = 2;
    int failures = 0;
    stk_status status = STK_ERR_MEMORY;
    for (int64_t n = 0; n < 5000 && status != STK_OK; n += n < 60 ? 1 : 7) {
        stk_mem_fail_after(n);
        status = run_fold(&f);
        stk_mem_fail_after(-1);
        failures += status != STK_OK;
        CHECK(status == STK_OK || status == STK_ERR_MEMORY);
    }
    CHECK_INT(status, STK_OK);
    CHECK(failures > 60);
    close_fold(&f);
}

static const check_test tests[] = {
    TEST(learns),
    TEST(accumulation_is_a_larger_batch),
    TEST(huge_rate_is_reported),
    TEST(same_weights_for_any_crew),
    TEST(seed_changes_the_weights),
    TEST(fold_without_memory),
};

CHECK_MAIN(tests)
