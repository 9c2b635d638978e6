/* test_fold_predict.c - how a job compiles the network that predicts, and views that it gives up.
 */
#include "check.h"
#include "small_pictures.h"

#include "backend/cpu/device.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/files/file.h"
#include "base/mem.h"
#include "base/text/json.h"
#include "job/training/fold_run.h"
#include "models/models.h"
#include "storage/store/store.h"

#define SIZE 12
#define PICTURES 7 /* three batches */

static stk_compile_config compiled;
static bool lacks_memory;             /* every inference fails */
static const stk_exec_cache *crowded; /* inferences fail as long as it keeps anything; or NULL */

static stk_status noting_compile(stk_exec **exec, stk_state *state,
                                 const stk_compile_config *config, stk_error *err) {
    compiled = *config;
    return stk_cpu_backend.compile(exec, state, config, err);
}

static stk_status some_infer(stk_exec *exec, const uint8_t *images, const float *features,
                             size_t count, float *logits, stk_error *err) {
    bool full = lacks_memory || (crowded != NULL && crowded->count > 0);
    return full ? STK_FAIL(err, STK_ERR_MEMORY, "no memory to infer")
                : stk_cpu_backend.infer(exec, images, features, count, logits, err);
}

/* A job with a network of two classes that predicts a test set. */
typedef struct predicting {
    stk_backend backend;
    stk_options *options;
    stk_dataset dataset;
    stk_job job;
    stk_observer observer;
    char warnings[512];
    char decisions[512];
    stk_event_submission submission; /* the last; its texts are gone */
} predicting;

static void on_warning(void *user, const char *text) {
    predicting *p = user;
    snprintf(p->warnings, sizeof p->warnings, "%s", text);
}

static void on_decision(void *user, const stk_event_decision *event) {
    predicting *p = user;
    snprintf(p->decisions, sizeof p->decisions, "%s: %s", event->what, event->why);
}

static void on_submission(void *user, const stk_event_submission *event) {
    predicting *p = user;
    p->submission = *event;
}

static void open_job(predicting *p, const char *compile, bool ema, stk_store *store,
                     stk_sample *samples, size_t count) {
    static const char *const classes[] = {"a", "b"};
    stk_error err = {0};
    memset(p, 0, sizeof *p);
    p->job = (stk_job){.verb = "train", .out = {.folder = {.lock_fd = -1}}};
    stk_job *job = &p->job;
    p->backend = stk_cpu_backend;
    p->backend.compile = noting_compile;
    p->backend.infer = some_infer;
    compiled = (stk_compile_config){0};
    lacks_memory = false;
    crowded = NULL;
    REQUIRE_OK(stk_options_for_train(&p->options, &err), &err);
    REQUIRE_OK(stk_options_set(p->options, "compile", compile, &err), &err);
    p->dataset = (stk_dataset){.store = store,
                               .classes = classes,
                               .class_count = 2,
                               .id_name = "id",
                               .label_name = "label",
                               .test = {.items = samples, .count = count}};
    stk_job_open(job, p->options, &(stk_run){0});
    p->observer = (stk_observer){
        .user = p, .warning = on_warning, .decision = on_decision, .submission = on_submission};
    stk_events_add(&job->events, &p->observer);
    job->time = stk_time_plan_begin(&job->recipe);
    job->dataset = &p->dataset;
    REQUIRE_OK(stk_model_find("convnet_s", &job->recipe.model, &err), &err);
    job->recipe.img_size = job->recipe.eval_size = SIZE;
    job->recipe.infer_batch = 3;
    job->recipe.views = job->time.views = 1;
    job->recipe.train.ema = ema ? 0.9 : 0;
    job->network.opened = (stk_opened_device){.backend = &p->backend, .name = "cpu"};
    REQUIRE_OK(p->backend.device_open(&job->network.opened.device,
                                      &(stk_device_config){.threads = 1}, &err),
               &err);
    job->network.host = (stk_host_memory){&p->backend, job->network.opened.device};
    REQUIRE_OK(stk_network_build(&job->network, &job->recipe, 2, &err), &err);
    REQUIRE_OK(stk_network_allocate(&job->network, &err), &err);
    REQUIRE_OK(stk_ensemble_open(&job->out.ensemble, count, 2, 0, &err), &err);
}

static void close_job(predicting *p) {
    p->job.dataset = NULL;
    stk_job_close(&p->job);
    stk_options_free(p->options);
}

/* What a job wants and what came of it. */
typedef struct views_case {
    int wanted, least, planned;
    char told[512];    /* the last warning about views */
    char resolved[16]; /* what the options say afterwards */
    char written[16];  /* and args.json; "": there is none */
    int views;         /* of the recipe afterwards */
    bool unpredicted;
} views_case;

/* Notes what is written after a prediction. */
static void note_views(const predicting *p, views_case *v) {
    stk_error err = {0};
    const char *folder = p->job.out.folder.path;
    char *args = stk_path_join(folder, "args.json");
    v->views = p->job.recipe.views;
    v->unpredicted = p->job.out.unpredicted;
    snprintf(v->told, sizeof v->told, "%s", strstr(p->warnings, "views") ? p->warnings : "");
    snprintf(v->resolved, sizeof v->resolved, "%s", stk_options_get(p->options, "tta"));
    if (stk_path_is_file(args)) {
        stk_json *root = NULL;
        REQUIRE_OK(stk_json_read_in(folder, "args.json", &root, &err), &err);
        snprintf(v->written, sizeof v->written, "%g",
                 stk_json_number(stk_json_get(root, "tta"), 0));
        stk_json_free(root);
    }
    stk_mem_free(args);
}

/* Predicts a test set of one picture, which is missing: so no submission is written. */
static void predict_views(const char *compile, bool ema, views_case *v) {
    static predicting p;
    static const stk_calibration none;
    stk_error err = {0};
    stk_store *store = NULL;
    stk_sample sample = {.path = "missing.png", .id = "missing"};
    bool whole = false;
    REQUIRE_OK(stk_store_open(&store, check_folder(), NULL, NULL, &err), &err);
    open_job(&p, compile, ema, store, &sample, 1);
    p.job.out.folder.path = stk_mem_strdup(check_folder());
    p.job.recipe.views = v->wanted;
    p.job.recipe.least_views = v->least;
    p.job.time.views = v->planned;
    REQUIRE_OK(stk_job_predict_test(&p.job, &none, &whole, &err), &err);
    CHECK_INT(p.job.out.ensemble.models, 0);
    CHECK_INT(compiled.batch, 3);
    CHECK(!compiled.train);
    CHECK_INT(p.job.time.views, v->planned);
    note_views(&p, v);
    close_job(&p);
    stk_store_close(store);
}

static void predict(const char *compile, bool ema) {
    predict_views(compile, ema, &(views_case){1, 1, 1, .told = ""});
}

/* Views that Stoker chose and had no time for are given up in silence, and for good: args.json has
 * what `stoker predict` needs to give the same. */
static void chosen_views_are_given_up_in_silence(void) {
    views_case v = {2, 1, 1, .told = ""};
    predict_views("true", false, &v);
    CHECK_INT(v.views, 1);
    CHECK_STR(v.resolved, "1");
    CHECK_STR(v.written, "1");
    CHECK_STR(v.told, "");
    CHECK(!v.unpredicted);
    v = (views_case){2, 1, 2, .told = ""};
    predict_views("true", false, &v);
    CHECK_INT(v.views, 2);
    CHECK_STR(v.written, "");
    CHECK(!v.unpredicted);
}

static void views_that_were_asked_for_are_missed(void) {
    views_case v = {2, 2, 1, .told = ""};
    predict_views("true", false, &v);
    CHECK_INT(v.views, 2);
    CHECK_STR(v.written, "");
    CHECK_STR(v.told, "there was time for 1 of the 2 views of each test image that --tta asks for");
    CHECK(v.unpredicted);
}

static void no_compile_reaches_predictions(void) {
    predict("true", false);
    CHECK(!compiled.plain);
    predict("false", false);
    CHECK(compiled.plain);
}

/* With the network that has validated: averages are what the best weights are read into, too. */
static void averages_validate_and_predict(void) {
    predict("true", true);
    CHECK(compiled.ema);
    predict("true", false);
    CHECK(!compiled.ema);
}

/* ---- early predictions ---- */

/* What goes wrong with the early prediction. */
typedef enum early_fault { FINE, NO_MEMORY, NO_TIME, NO_FOLDER } early_fault;

/* Predicts early, then at last, into the submission of `folder`; `fault` -1: not early. */
static void predict_twice(predicting *p, picture_set *pictures, const char *folder, int fault) {
    static const stk_calibration none;
    static const char *const warnings[] = {
        "",
        "the test images are not predicted early: no memory to infer",
        "",
        "the test images are not predicted early: ",
    };
    stk_error err = {0};
    stk_exec *exec = NULL;
    bool whole = false;
    char path[512];
    char early_path[512];
    snprintf(path, sizeof path, "%s/submission.csv", folder);
    snprintf(early_path, sizeof early_path, "%s%s/submission.csv", folder,
             fault == NO_FOLDER ? "/none" : "");
    open_job(p, "true", false, pictures->store, pictures->samples, PICTURES);
    stk_job *job = &p->job;
    job->recipe.models_asked = job->recipe.folds = job->tally.folds_done = job->time.folds = 1;
    REQUIRE_OK(stk_network_first_weights(&job->network, &job->recipe, 0, &job->clock, &err), &err);
    if (fault >= 0) {
        stk_compile_config how = stk_network_compile_config(&job->network, &job->recipe, false);
        how.graph = job->network.graph;
        REQUIRE_OK(stk_cpu_backend.compile(&exec, job->network.state, &how, &err), &err);
        job->out.submission = early_path;
        lacks_memory = fault == NO_MEMORY;
        stk_job_predict_early(job, exec, &none, 7, fault == NO_TIME ? -1 : 1000);
        lacks_memory = false;
        CHECK(job->out.early_tried);
        CHECK_INT(job->out.early_epoch, fault == FINE ? 7 : 0);
        CHECK_INT(job->out.models, fault == FINE);
        CHECK_INT(job->out.ensemble.models, 0);
        CHECK_INT(stk_path_is_file(path), fault == FINE);
        CHECK(strncmp(p->warnings, warnings[fault], strlen(warnings[fault])) == 0);
        CHECK_INT(p->warnings[0] != '\0', warnings[fault][0] != '\0');
        CHECK_INT(strstr(p->decisions, "7 of 7 test images predicted early") != NULL,
                  fault == FINE);
        CHECK_INT(p->submission.epoch, fault == FINE ? 7 : 0);
        stk_job_miss_test(job);
        CHECK_INT(strstr(p->warnings, "the weights of epoch 7 said") != NULL, fault == FINE);
        job->out.unpredicted = false;
        stk_cpu_backend.exec_free(exec);
    }
    CHECK_INT(job->recipe.infer_batch, 3);
    job->out.submission = path;
    REQUIRE_OK(stk_job_predict_test(job, &none, &whole, &err), &err);
    CHECK(whole);
    CHECK_INT(job->out.models, 1);
    CHECK_INT(job->out.ensemble.models, 1);
    CHECK_INT(p->submission.models, 1);
    CHECK_INT(p->submission.epoch, 0);
    job->out.submission = NULL;
    close_job(p);
}

/* Nothing that goes wrong early is an error, and the last predictions are as without early ones. */
static void early_predictions_change_nothing_later(void) {
    static predicting p;
    stk_error err = {0};
    char *wanted = NULL;
    size_t size = 0;
    char *text = NULL;
    picture_set pictures = make_pictures(check_folder(), PICTURES);
    for (int fault = -1; fault <= NO_FOLDER; fault++) {
        char folder[256];
        char path[512];
        snprintf(folder, sizeof folder, "%s", check_folder());
        predict_twice(&p, &pictures, folder, fault);
        snprintf(path, sizeof path, "%s/submission.csv", folder);
        REQUIRE_OK(stk_file_read(path, 0, fault < 0 ? &wanted : &text, &size, &err), &err);
        if (fault >= 0) {
            CHECK_STR(text, wanted);
            stk_mem_free(text);
        }
    }
    stk_mem_free(wanted);
    free_pictures(&pictures);
}

static void count_nothing(const stk_device *device, stk_device_counts *counts) {
    (void)device;
    *counts = (stk_device_counts){0};
}

/* Networks that are kept for later are given up before the batch is halved. */
static void memory_is_made_before_the_batch_is_halved(void) {
    static predicting p;
    static const stk_calibration none;
    stk_error err = {0};
    stk_exec *exec = NULL;
    bool whole = false;
    picture_set pictures = make_pictures(check_folder(), PICTURES);
    open_job(&p, "true", false, pictures.store, pictures.samples, PICTURES);
    stk_job *job = &p.job;
    char *path = stk_path_join(check_folder(), "submission.csv");
    job->out.submission = path;
    job->recipe.models_asked = job->recipe.folds = job->tally.folds_done = job->time.folds = 1;
    p.backend.counts = count_nothing; /* so that executables are kept */
    crowded = &job->network.execs;
    REQUIRE_OK(stk_network_first_weights(&job->network, &job->recipe, 0, &job->clock, &err), &err);
    const stk_compile_config other = {.batch = 2};
    REQUIRE_OK(stk_exec_cache_take(&job->network.execs, &other, &exec, &err), &err);
    stk_exec_cache_keep(&job->network.execs, &other, exec);
    REQUIRE_OK(stk_job_predict_test(job, &none, &whole, &err), &err);
    CHECK(whole);
    CHECK_INT(job->recipe.infer_batch, 3);
    CHECK_STR(p.decisions, "");
    crowded = NULL;
    job->out.submission = NULL;
    close_job(&p);
    stk_mem_free(path);
    free_pictures(&pictures);
}

/* A third more than predicting takes was kept, and the machine is busy: while the prediction itself
 * fits, the weights that were trained are validated. */
static void a_validation_may_take_from_the_care_of_the_plan(void) {
    static predicting p;
    picture_set pictures = make_pictures(check_folder(), PICTURES);
    open_job(&p, "true", false, pictures.store, pictures.samples, PICTURES);
    stk_job *job = &p.job;
    job->clock.budget_s = 100;
    job->time.views = 1;
    job->time.predict_s = 30;
    stk_running_fold fold = {.job = job, .split = {.val_count = 3}, .result = {.has_best = true}};
    stk_train_hooks hooks = stk_fold_hooks(&fold);
    for (int left_s = 24; left_s < 48; left_s += 12) {
        job->clock.looked_ns = stk_clock_ns(); /* how busy the machine is stays as it is */
        job->clock.margin.busy = 4;
        job->clock.start_ns = stk_clock_ns() - (100 - left_s) * (int64_t)1000000000;
        CHECK_INT(hooks.validation_must_end(hooks.user, 0, 0), left_s < 30);
    }
    close_job(&p);
    free_pictures(&pictures);
}

/* Half of 100 s are over, and no picture was read for anything but training. */
static void predict_early_unvalidated(picture_set *pictures, int model, bool wanted) {
    static predicting p;
    stk_error err = {0};
    stk_exec *exec = NULL;
    open_job(&p, "true", false, pictures->store, pictures->samples, PICTURES);
    stk_job *job = &p.job;
    char *path = stk_path_join(check_folder(), "submission.csv");
    job->out.submission = path;
    job->recipe.models_asked = job->recipe.folds = 1;
    job->recipe.refits = 1;
    job->tally.fold = model;
    job->clock.budget_s = 100;
    job->clock.start_ns = stk_clock_ns() - 50000000000;
    job->time.folds = 2;
    job->time.total_steps = 200;
    job->time.predict_s = 1;
    stk_running_fold fold = {.job = job, .pace = {.unread_s = NAN}};
    stk_train_standing standing = {.epoch = 1, .steps_done = 100, .step_s = 0.4, .val_s = NAN};
    REQUIRE_OK(stk_network_first_weights(&job->network, &job->recipe, 0, &job->clock, &err), &err);
    stk_compile_config how = stk_network_compile_config(&job->network, &job->recipe, false);
    REQUIRE_OK(stk_cpu_backend.compile(&exec, job->network.state, &how, &err), &err);
    stk_train_hooks hooks = stk_fold_hooks(&fold);
    hooks.improved(hooks.user, &standing, exec);
    CHECK_INT(job->out.early_tried, wanted);
    CHECK_STR(p.warnings, "");
    CHECK_INT(strstr(p.decisions, "7 of 7 test images predicted early") != NULL, wanted);
    stk_cpu_backend.exec_free(exec);
    job->out.submission = NULL;
    close_job(&p);
    stk_mem_free(path);
}

/* Weights of a refit count only if it comes to its end. */
static void without_a_validation_the_first_model_predicts_early(void) {
    picture_set pictures = make_pictures(check_folder(), PICTURES);
    predict_early_unvalidated(&pictures, 0, true);
    predict_early_unvalidated(&pictures, 1, false);
    free_pictures(&pictures);
}

static const check_test tests[] = {
    TEST(no_compile_reaches_predictions),
    TEST(averages_validate_and_predict),
    TEST(chosen_views_are_given_up_in_silence),
    TEST(views_that_were_asked_for_are_missed),
    TEST(memory_is_made_before_the_batch_is_halved),
    TEST(a_validation_may_take_from_the_care_of_the_plan),
    TEST(early_predictions_change_nothing_later),
    TEST(without_a_validation_the_first_model_predicts_early),
};

CHECK_MAIN(tests)
