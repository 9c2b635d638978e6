/* test_train_cpu.c - the loop of one fold on the CPU: it learns, repeats itself and adds up. */
#include "check.h"
#include "full_rows.h"
#include "train_fold.h"

static void learns(void) {
    fold f;
    open_fold(&f, norm_graph(), 2, false);
    f.config.lr = 0.05;
    f.total = 16;
    CHECK_INT(run_fold(&f), STK_OK);
    CHECK_INT(f.epochs, 8);
    CHECK(f.epoch[7].train_loss < 0.5 * f.epoch[0].train_loss);
    CHECK(f.result.best.val_acc1 > 90);
    CHECK(f.result.images == 128 && f.result.train_s > 0);
    close_fold(&f);
}

static void adamw_learns(void) {
    fold f;
    CHECK_LONG();
    open_fold(&f, norm_graph(), 2, false);
    f.options.optimizer = STK_ADAMW;
    f.options.weight_decay = 0.05;
    f.config.lr = 0.01;
    f.total = 16;
    CHECK_INT(run_fold(&f), STK_OK);
    CHECK(f.epoch[7].train_loss < 0.5 * f.epoch[0].train_loss);
    CHECK(f.result.best.val_acc1 > 90);
    close_fold(&f);
}

#define LARGE 32

/* Trains one update of LARGE pictures in parts of `batch`; the rate hardly moves between them. */
static void run_in_parts(fold *f, const size_t *pictures, size_t batch, int optimizer,
                         double clip_grad) {
    open_fold(f, plain_graph(), 1, false);
    f->config.train_data.indices = pictures;
    f->config.train_data.count = LARGE;
    f->config.train_compile.batch = batch;
    f->config.val_data.count = 0;
    f->options.accumulate = LARGE / (int64_t)batch;
    f->options.weight_decay = 0.01;
    f->options.optimizer = optimizer;
    f->options.clip_grad = clip_grad;
    f->total = 1000000000;
    f->stop_at = LARGE / (int64_t)batch;
    CHECK_INT(run_fold(f), STK_OK);
}

/* Four batches of 8 whose gradients are added up are one of 32, where no layer looks at the batch;
 * with clipping, too, which looks at their mean. */
static void accumulation_is_a_larger_batch(void) {
    static const double clips[] = {0, 0.05};
    size_t pictures[LARGE];
    for (size_t i = 0; i < LARGE; i++) {
        pictures[i] = i % TRAIN;
    }
    for (int k = 0; k < 4; k++) {
        int optimizer = k % 2 == 0 ? STK_SGD : STK_ADAMW;
        fold small;
        fold large;
        fold before;
        run_in_parts(&large, pictures, 32, optimizer, clips[k / 2]);
        run_in_parts(&small, pictures, 8, optimizer, clips[k / 2]);
        open_fold(&before, plain_graph(), 1, false);
        /* AdamW divides gradients by their size, rounding errors of tiny ones included. */
        double rounding = optimizer == STK_SGD ? 1e-6 : 2e-5;
        CHECK(weights_distance(&before, &large) > 100 * rounding);
        CHECK(weights_distance(&small, &large) < rounding);
        close_fold(&before);
        close_fold(&small);
        close_fold(&large);
    }
}

/* During the first epochs only the head moves, and the norms keep their statistics. */
static void backbone_is_frozen_at_first(void) {
    for (int epochs = 0; epochs < 2; epochs++) {
        fold f;
        fold before;
        open_fold(&before, norm_graph(), 1, false);
        open_fold(&f, norm_graph(), 1, false);
        f.options.freeze_epochs = 1;
        f.options.ema = 0.9;
        f.total = epochs == 0 ? 2 : 4;
        CHECK_INT(run_fold(&f), STK_OK);
        stk_error err = {0};
        for (int p = 0; p < f.graph->param_count; p++) {
            const stk_param *param = &f.graph->params[p];
            float *x = stk_mem_new(param->count, sizeof *x);
            float *y = stk_mem_new(param->count, sizeof *y);
            must(f.backend->state_read(before.state, STK_TENSOR_VALUE, p, x, &err), &err);
            must(f.backend->state_read(f.state, STK_TENSOR_VALUE, p, y, &err), &err);
            bool moved = memcmp(x, y, param->count * sizeof *x) != 0;
            if (moved != (param->head || epochs == 1)) {
                CHECK_FAIL("%s: moved %d after %d epochs", param->name, moved, epochs + 1);
            }
            stk_mem_free(x);
            stk_mem_free(y);
        }
        close_fold(&before);
        close_fold(&f);
    }
}

/* The averages are what is validated: with a rate of zero for everything but one wild step they
 * differ from the weights, and so does the validation. */
static void averages_are_validated(void) {
    double losses[2];
    uint64_t hashes[2];
    for (int k = 0; k < 2; k++) {
        fold f;
        open_fold(&f, norm_graph(), 1, false);
        f.options.ema = k == 0 ? 0 : 0.999;
        f.total = 2;
        CHECK_INT(run_fold(&f), STK_OK);
        losses[k] = f.epoch[0].val_loss;
        hashes[k] = hash_weights(&f);
        if (k == 1) { /* the same network with the averages as its weights has the same loss */
            stk_error err = {0};
            CHECK(hash_tensors(&f, STK_TENSOR_EMA) != hash_weights(&f));
            for (int p = 0; p < f.graph->param_count; p++) {
                float *values = stk_mem_new(f.graph->params[p].count, sizeof *values);
                must(f.backend->state_read(f.state, STK_TENSOR_EMA, p, values, &err), &err);
                must(f.backend->state_write(f.state, STK_TENSOR_VALUE, p, values, &err), &err);
                stk_mem_free(values);
            }
            f.options.ema = 0;
            f.options.freeze_epochs = 1; /* statistics stay, too */
            f.config.lr = 0;
            f.epochs = 0;
            CHECK_INT(run_fold(&f), STK_OK);
            CHECK_NEAR(f.epoch[0].val_loss, losses[1], 1e-9);
        }
        close_fold(&f);
    }
    CHECK(hashes[0] == hashes[1]); /* the training itself is the same */
    CHECK(losses[0] != losses[1]);
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
        open_fold(&f, norm_graph(), crews[i].threads, false);
        f.config.train_data.sizing.workers = f.config.val_data.sizing.workers = crews[i].workers;
        f.config.train_data.sizing.slots = f.config.val_data.sizing.slots = crews[i].slots;
        f.config.train_data.transform.augment.flip = true;
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
        f.config.train_data.seed = seed;
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

static int rows_predicted;

/* Predicts other pictures with the executable of the validation. */
static void predict_now(void *user, const stk_train_standing *standing, stk_exec *exec) {
    const fold *f = user;
    double probs[TRAIN * PICTURE_CLASSES];
    bool have[TRAIN] = {false};
    stk_error err = {0};
    stk_predicted predicted;
    stk_prediction prediction = {.backend = f->backend,
                                 .state = f->state,
                                 .graph = f->graph,
                                 .compile = f->config.val_compile,
                                 .exec = exec,
                                 .data = f->config.train_data,
                                 .split = "test",
                                 .events = &f->events};
    (void)standing;
    prediction.data.transform.train = false;
    REQUIRE_OK(predict_into(&prediction, probs, have, &predicted, &err), &err);
    for (int i = 0; i < TRAIN; i++) {
        rows_predicted += have[i];
    }
}

/* Normalisation has running statistics, and validation has averaged weights. */
static void predicting_meanwhile_changes_no_weights(void) {
    uint64_t weights[2];
    double losses[2];
    rows_predicted = 0;
    for (int predicts = 0; predicts < 2; predicts++) {
        fold f;
        open_fold(&f, norm_graph(), 2, false);
        f.options.ema = 0.9;
        f.config.hooks.improved = predicts ? predict_now : NULL;
        CHECK_INT(run_fold(&f), STK_OK);
        weights[predicts] = hash_weights(&f);
        losses[predicts] = f.epoch[2].val_loss;
        close_fold(&f);
    }
    CHECK(rows_predicted >= TRAIN);
    CHECK(weights[0] == weights[1]);
    CHECK(losses[0] == losses[1]);
}

static const check_test tests[] = {
    TEST(learns),
    TEST(adamw_learns),
    TEST(accumulation_is_a_larger_batch),
    TEST(backbone_is_frozen_at_first),
    TEST(averages_are_validated),
    TEST(huge_rate_is_reported),
    TEST(same_weights_for_any_crew),
    TEST(seed_changes_the_weights),
    TEST(fold_without_memory),
    TEST(predicting_meanwhile_changes_no_weights),
};

CHECK_MAIN(tests)
