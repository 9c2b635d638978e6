/* test_fold_predict.c - how a job compiles the network that predicts. */
#include "check.h"

#include "backend/cpu/device.h"
#include "base/error.h"
#include "job/training/job.h"
#include "models/models.h"
#include "storage/store/store.h"

#define SIZE 12

static stk_compile_config compiled;

static stk_status noting_compile(stk_exec **exec, stk_state *state,
                                 const stk_compile_config *config, stk_error *err) {
    compiled = *config;
    return stk_cpu_backend.compile(exec, state, config, err);
}

/* Predicts a test set of one picture, which is missing: so nothing is written. */
static void predict(const char *compile, bool ema, bool weights_lost) {
    stk_error err = {0};
    stk_backend backend = stk_cpu_backend;
    stk_options *options = NULL;
    stk_store *store = NULL;
    stk_sample sample = {.path = "missing.png", .id = "missing"};
    stk_job job = {.verb = "train", .out = {.folder = {.lock_fd = -1}}};
    backend.compile = noting_compile;
    compiled = (stk_compile_config){0};
    REQUIRE_OK(stk_options_for_train(&options, &err), &err);
    REQUIRE_OK(stk_options_set(options, "compile", compile, &err), &err);
    REQUIRE_OK(stk_store_open(&store, check_folder(), NULL, NULL, &err), &err);
    stk_dataset dataset = {.store = store, .test = {.items = &sample, .count = 1}};
    stk_job_open(&job, options, &(stk_run){0});
    job.time = stk_time_plan_begin(&job.recipe);
    job.dataset = &dataset;
    REQUIRE_OK(stk_model_find("convnet_s", &job.recipe.model, &err), &err);
    job.recipe.img_size = job.recipe.eval_size = SIZE;
    job.recipe.infer_batch = 3;
    job.recipe.views = job.time.views = 1;
    job.recipe.train.ema = ema ? 0.9 : 0;
    job.tally.weights_lost = weights_lost;
    job.network.opened = (stk_opened_device){.backend = &backend, .name = "cpu"};
    REQUIRE_OK(
        backend.device_open(&job.network.opened.device, &(stk_device_config){.threads = 1}, &err),
        &err);
    job.network.host = (stk_host_memory){&backend, job.network.opened.device};
    REQUIRE_OK(stk_network_build(&job.network, &job.recipe, 2, &err), &err);
    REQUIRE_OK(stk_network_allocate(&job.network, &err), &err);
    REQUIRE_OK(stk_ensemble_open(&job.out.ensemble, 1, 2, &err), &err);
    bool whole = false;
    static const stk_calibration none;
    REQUIRE_OK(stk_job_predict_test(&job, &none, &whole, &err), &err);
    CHECK_INT(job.out.ensemble.models, 0);
    CHECK_INT(compiled.batch, 3);
    CHECK(!compiled.train);
    job.dataset = NULL;
    stk_job_close(&job);
    stk_store_close(store);
    stk_options_free(options);
}

static void no_compile_reaches_predictions(void) {
    predict("true", false, false);
    CHECK(!compiled.plain);
    predict("false", false, false);
    CHECK(compiled.plain);
}

/* The file of the best weights has the averaged ones; only weights that were not loaded from it
 * need the average of the state. */
static void averaged_weights_are_used_once(void) {
    predict("true", true, false);
    CHECK(!compiled.ema);
    predict("true", true, true);
    CHECK(compiled.ema);
}

static const check_test tests[] = {
    TEST(no_compile_reaches_predictions),
    TEST(averaged_weights_are_used_once),
};

CHECK_MAIN(tests)
