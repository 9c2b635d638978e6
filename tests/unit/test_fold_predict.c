/* test_fold_predict.c - how a job compiles the network that predicts, and views that it gives up.
 */
#include "check.h"

#include "backend/cpu/device.h"
#include "base/error.h"
#include "base/files/file.h"
#include "base/mem.h"
#include "base/text/json.h"
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

/* What a job wants and what came of it. */
typedef struct views_case {
    int wanted, least, planned;
    char told[400];    /* the last warning about views */
    char resolved[16]; /* what the options say afterwards */
    char written[16];  /* and args.json; "": there is none */
    int views;         /* of the recipe afterwards */
    bool unpredicted;
} views_case;

static void hear_warning(void *user, const char *text) {
    views_case *v = user;
    if (strstr(text, "views") != NULL) {
        snprintf(v->told, sizeof v->told, "%s", text);
    }
}

/* Predicts a test set of one picture, which is missing: so no submission is written. */
static void predict_views(const char *compile, bool ema, bool weights_lost, views_case *v) {
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
    REQUIRE_OK(stk_options_set(options, "data", check_folder(), &err), &err);
    REQUIRE_OK(stk_store_open(&store, check_folder(), NULL, NULL, &err), &err);
    stk_dataset dataset = {.store = store, .test = {.items = &sample, .count = 1}};
    stk_observer observer = {.user = v, .warning = hear_warning};
    stk_job_open(&job, options, &(stk_run){.observer = &observer});
    job.out.folder.path = stk_mem_strdup(check_folder());
    job.time = stk_time_plan_begin(&job.recipe);
    job.dataset = &dataset;
    REQUIRE_OK(stk_model_find("convnet_s", &job.recipe.model, &err), &err);
    job.recipe.img_size = job.recipe.eval_size = SIZE;
    job.recipe.infer_batch = 3;
    job.recipe.views = v->wanted;
    job.recipe.least_views = v->least;
    job.time.views = v->planned;
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
    CHECK_INT(job.time.views, v->planned);
    v->views = job.recipe.views;
    v->unpredicted = job.out.unpredicted;
    snprintf(v->resolved, sizeof v->resolved, "%s", stk_options_get(options, "tta"));
    char *args = stk_path_join(job.out.folder.path, "args.json");
    if (stk_path_is_file(args)) {
        stk_json *root = NULL;
        REQUIRE_OK(stk_json_read_in(job.out.folder.path, "args.json", &root, &err), &err);
        snprintf(v->written, sizeof v->written, "%g",
                 stk_json_number(stk_json_get(root, "tta"), 0));
        stk_json_free(root);
    }
    stk_mem_free(args);
    job.dataset = NULL;
    stk_job_close(&job);
    stk_store_close(store);
    stk_options_free(options);
}

static void predict(const char *compile, bool ema, bool weights_lost) {
    predict_views(compile, ema, weights_lost, &(views_case){1, 1, 1, .told = ""});
}

/* Views that Stoker chose and had no time for are given up in silence, and for good: args.json has
 * what `stoker predict` needs to give the same. */
static void chosen_views_are_given_up_in_silence(void) {
    views_case v = {2, 1, 1, .told = ""};
    predict_views("true", false, false, &v);
    CHECK_INT(v.views, 1);
    CHECK_STR(v.resolved, "1");
    CHECK_STR(v.written, "1");
    CHECK_STR(v.told, "");
    CHECK(!v.unpredicted);
    v = (views_case){2, 1, 2, .told = ""};
    predict_views("true", false, false, &v);
    CHECK_INT(v.views, 2);
    CHECK_STR(v.written, "");
    CHECK(!v.unpredicted);
}

static void views_that_were_asked_for_are_missed(void) {
    views_case v = {2, 2, 1, .told = ""};
    predict_views("true", false, false, &v);
    CHECK_INT(v.views, 2);
    CHECK_STR(v.written, "");
    CHECK_STR(v.told, "there was time for 1 of the 2 views of each test image that --tta asks for");
    CHECK(v.unpredicted);
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
    TEST(chosen_views_are_given_up_in_silence),
    TEST(views_that_were_asked_for_are_missed),
};

CHECK_MAIN(tests)
