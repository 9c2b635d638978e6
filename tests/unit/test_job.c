/* test_job.c - whole training runs: events, files, repetition, folds, bad pictures, refusals. */
#include "check.h"
#include "job_runs.h"

#include <pthread.h>

static const stk_run plain = {0};
static char base[256];
static char a[300];
static char b[300];

static void enter(void) {
    snprintf(base, sizeof base, "%s", check_folder());
    run_dir(a, sizeof a, base, "a");
    run_dir(b, sizeof b, base, "b");
}

/* ---- one run ---- */

/* The story without plans and decisions, whose moments depend on time. */
static const char *story_without_plans(const run_story *story, char *buf) {
    size_t size = 0;
    for (size_t i = 0; i < story->size; i++) {
        if (story->text[i] != 'p' && story->text[i] != 'd') {
            buf[size++] = story->text[i];
        }
    }
    buf[size] = '\0';
    return buf;
}

static void events_and_outcome(void) {
    static run_story story;
    char text[4096];
    CHECK_SAME_THREADS();
    enter();
    train(&story, shared_data(), a, "", plain);
    REQUIRE_OK(story.status, &story.err);
    const char *told = story_without_plans(&story, text);
    /* The first thing is the start, then a submission that stands whatever happens. */
    CHECK(strncmp(told, "bu", 2) == 0);
    CHECK_CONTAINS(told, "usssec"); /* three steps, the epoch, its checkpoint: the first is best */
    CHECK(strcmp(told + strlen(told) - 2, "ux") == 0);
    CHECK_INT(story.starts, 1);
    CHECK_INT(story.steps, 9);
    CHECK_INT(story.epochs, 3);
    CHECK_STR(story.submissions, "prior 10 0\ncomplete 10 1\n");
    CHECK_STR(story.warnings, "");
    CHECK_INT(story.start.train_images, 24);
    CHECK_INT(story.start.val_images, 8);
    CHECK_INT(story.start.test_images, TEST_ROWS);
    CHECK_INT(story.start.classes, PICTURE_CLASSES);
    CHECK_INT(story.start.batch, 8);
    CHECK_INT(story.start.img_size, 16);
    CHECK_INT(story.start.workers, 2);
    CHECK(isnan(story.start.budget_s));
    CHECK_STR(story.outcome.status, "complete");
    CHECK_STR(story.outcome.run_dir, a);
    CHECK_CONTAINS(story.outcome.submission, "/a/submission.csv");
    CHECK_INT(story.outcome.models, 1);
    CHECK_INT(story.outcome.rows, TEST_ROWS);
    CHECK(story.outcome.best_acc1 >= 0 && story.outcome.best_acc1 <= 100);
}

static void files_of_a_run(void) {
    static run_story story;
    static const char *const files[] = {"args.yaml",
                                        "args.json",
                                        "results.csv",
                                        "events.jsonl",
                                        "summary.json",
                                        "submission.csv",
                                        "bad_images.csv",
                                        "weights/best.safetensors",
                                        "weights/last.safetensors"};
    static const char *const keys[] = {
        "status",        "stop_reason", "best_acc1",     "metric",     "best_metric",
        "epochs_done",   "folds_done",  "folds_planned", "batch",      "images_per_second",
        "wait_fraction", "budget_s",    "used_s",        "reserve_s",  "workers",
        "prefetch",      "device",      "precision",     "bad_images", "verdict",
        "submission"};
    CHECK_SAME_THREADS();
    enter();
    train(&story, shared_data(), a, "", plain);
    REQUIRE_OK(story.status, &story.err);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        if (!has_file(a, files[i])) {
            CHECK_FAIL("%s is missing", files[i]);
        }
    }
    CHECK(has_file(a, "results.png") || has_file(a, "results.svg"));
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        char value[128];
        if (strcmp(summary_text(a, keys[i], value, sizeof value), "absent") == 0) {
            CHECK_FAIL("summary.json lacks %s", keys[i]);
        }
    }
    CHECK_SUMMARY(a, "status", "complete");
    CHECK_SUMMARY(a, "stop_reason", "epochs");
    CHECK_SUMMARY(a, "epochs_done", "3");
    CHECK_SUMMARY(a, "folds_done", "1");
    CHECK_SUMMARY(a, "budget_s", "null");
    CHECK_SUMMARY(a, "bad_images", "0");
    CHECK_SUMMARY(a, "submission", "submission.csv");
    CHECK_SUMMARY(a, "metric", "acc1");
    CHECK_INT(count_lines(a, "results.csv"), 4);
    CHECK_INT(count_lines(a, "submission.csv"), 1 + TEST_ROWS);
    CHECK_INT(count_lines(a, "bad_images.csv"), 1);
    stk_dir_list list;
    char weights[320];
    REQUIRE_OK(stk_dir_read(run_dir(weights, sizeof weights, a, "weights"), &list, &story.err),
               &story.err);
    CHECK_INT(list.count, 2); /* nothing half-written */
    stk_dir_list_free(&list);
}

static void nothing_need_be_given(void) {
    stk_options *options = NULL;
    stk_error err = {0};
    enter();
    must(stk_options_for_train(&options, &err), &err);
    set_all(options, "img-size=16 epochs=1 batch=8");
    must(stk_options_set(options, "data", shared_data(), &err), &err);
    must(stk_options_set(options, "out", a, &err), &err);
    CHECK_INT(stk_train(options, NULL, NULL, NULL), STK_OK);
    stk_options_free(options);
    CHECK(has_file(a, "submission.csv"));
    must(stk_options_for_predict(&options, &err), &err);
    must(stk_options_set(options, "run", a, &err), &err);
    CHECK_INT(stk_predict(options, NULL, NULL, NULL), STK_OK);
    stk_options_free(options);
}

static void learns_the_pictures(void) {
    static run_story story;
    CHECK_LONG();
    enter();
    train(&story, shared_data(), a, "epochs=8", plain);
    REQUIRE_OK(story.status, &story.err);
    CHECK(story.outcome.best_acc1 > 70);
    char *text = slurp(a, "submission.csv", NULL);
    int right = 0;
    for (int i = 0; i < TEST_ROWS && text != NULL; i++) { /* test picture i is of class i mod 4 */
        char row[32];
        snprintf(row, sizeof row, "%02d,c%d,", i, i % PICTURE_CLASSES);
        right += strstr(text, row) != NULL;
    }
    CHECK(right >= 7);
    stk_mem_free(text);
}

/* ---- repetition ---- */

static void same_seed_same_bytes(void) {
    static run_story first;
    static run_story second;
    static run_story other;
    char c[300];
    CHECK_LONG();
    enter();
    train(&first, shared_data(), a, "seed=5 mixup=0.2", plain);
    train(&second, shared_data(), b, "seed=5 mixup=0.2 workers=5 prefetch=1", plain);
    train(&other, shared_data(), run_dir(c, sizeof c, base, "c"), "seed=6 mixup=0.2", plain);
    REQUIRE_OK(first.status, &first.err);
    REQUIRE_OK(second.status, &second.err);
    REQUIRE_OK(other.status, &other.err);
    CHECK(same_file(a, b, "submission.csv"));
    CHECK(same_file(a, b, "weights/best.safetensors"));
    CHECK(same_file(a, b, "weights/last.safetensors"));
    CHECK(!same_file(a, c, "submission.csv"));
    CHECK(!same_file(a, c, "weights/last.safetensors"));
}

typedef struct rival {
    run_story story;
    char out[300];
} rival;

static void *run_rival(void *argument) {
    rival *r = argument;
    train(&r->story, shared_data(), r->out, "seed=5 epochs=2", plain);
    return NULL;
}

static void two_jobs_at_a_time(void) {
    static rival rivals[2];
    static run_story alone;
    char c[300];
    pthread_t threads[2];
    enter();
    shared_data(); /* made before the threads begin */
    train(&alone, shared_data(), run_dir(c, sizeof c, base, "c"), "seed=5 epochs=2", plain);
    for (size_t i = 0; i < 2; i++) {
        snprintf(rivals[i].out, sizeof rivals[i].out, "%s", i == 0 ? a : b);
        pthread_create(&threads[i], NULL, run_rival, &rivals[i]);
    }
    for (size_t i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
        REQUIRE_OK(rivals[i].story.status, &rivals[i].story.err);
        CHECK(same_file(rivals[i].out, c, "submission.csv"));
        CHECK(same_file(rivals[i].out, c, "weights/best.safetensors"));
    }
}

/* ---- predicting again ---- */

static void predict_writes_the_same_again(void) {
    static run_story story;
    static run_story again;
    static run_story elsewhere;
    char settings[400];
    enter();
    train(&story, shared_data(), a, "epochs=2", plain);
    REQUIRE_OK(story.status, &story.err);
    snprintf(settings, sizeof settings, "out=%s/submission.csv", base);
    predict(&elsewhere, a, settings);
    REQUIRE_OK(elsewhere.status, &elsewhere.err);
    CHECK(same_file(a, base, "submission.csv"));
    char path[320];
    CHECK(remove(run_dir(path, sizeof path, a, "submission.csv")) == 0);
    predict(&again, a, "");
    REQUIRE_OK(again.status, &again.err);
    CHECK(same_file(a, base, "submission.csv"));
    CHECK_STR(again.outcome.status, "complete");
    CHECK_INT(again.outcome.models, 1);
    CHECK_INT(again.outcome.rows, TEST_ROWS);
    CHECK_NEAR(again.outcome.best_acc1, story.outcome.best_acc1, 1e-3);
    CHECK_STR(again.outcome.run_dir, a);
    CHECK_STR(again.submissions, "complete 10 1\n");
}

static void predict_other_pictures(void) {
    static run_story story;
    static run_story other;
    char settings[400];
    enter();
    train(&story, shared_data_without_test(), a, "epochs=1", plain);
    REQUIRE_OK(story.status, &story.err);
    CHECK_STR(story.outcome.submission, "");
    CHECK_INT(story.outcome.rows, 0);
    CHECK_STR(story.outcome.status, "complete");
    CHECK(!has_file(a, "submission.csv"));
    CHECK_SUMMARY(a, "submission", "null");
    snprintf(settings, sizeof settings, "data=%s/val", shared_data());
    predict(&other, a, settings);
    REQUIRE_OK(other.status, &other.err);
    CHECK_CONTAINS(other.outcome.submission, "/a/predictions.csv");
    CHECK_INT(count_lines(a, "predictions.csv"), 1 + 8);
}

static void predict_refuses(void) {
    static run_story story;
    static run_story none;
    static run_story empty;
    static run_story broken;
    static run_story stopped;
    stk_stop stop = {0};
    enter();
    predict(&none, a, "");
    CHECK_INT(none.status, STK_ERR_USAGE);
    CHECK_CONTAINS(none.err.message, "no such folder");
    predict(&empty, base, "");
    CHECK_INT(empty.status, STK_ERR_USAGE);
    CHECK_CONTAINS(empty.err.message, "not a run folder");
    train(&story, shared_data(), a, "epochs=1", plain);
    REQUIRE_OK(story.status, &story.err);
    stk_stop_request(&stop, STK_STOP_SOON, 0);
    stopped.stop = &stop;
    char *before = slurp(a, "submission.csv", NULL);
    predict(&stopped, a, "");
    CHECK_INT(stopped.status, STK_ERR_STOPPED);
    char *after = slurp(a, "submission.csv", NULL);
    CHECK_STR(after, before);
    stk_mem_free(before);
    stk_mem_free(after);
    write_text(a, "weights/best.safetensors", "no tensors");
    predict(&broken, a, "");
    CHECK_INT(broken.status, STK_ERR_DATA);
    CHECK_CONTAINS(broken.err.message, "best.safetensors");
    CHECK_STR(broken.outcome.submission, "");
}

/* ---- folds ---- */

static void folds(void) {
    static run_story story;
    static run_story again;
    CHECK_SAME_THREADS();
    enter();
    train(&story, shared_data(), a, "folds=3 epochs=2", plain);
    REQUIRE_OK(story.status, &story.err);
    CHECK(has_file(a, "weights/fold0/best.safetensors"));
    CHECK(has_file(a, "weights/fold1/last.safetensors"));
    CHECK(has_file(a, "weights/fold2/best.safetensors"));
    CHECK(has_file(a, "weights/best.safetensors")); /* the first fold's, under a second name */
    CHECK_STR(story.submissions, "prior 10 0\npartial 10 1\npartial 10 2\ncomplete 10 3\n");
    CHECK_INT(story.outcome.models, 3);
    CHECK_CONTAINS(story.warnings, "validation set");
    CHECK_INT(count_lines(a, "results.csv"), 7);
    CHECK_SUMMARY(a, "folds_done", "3");
    CHECK_SUMMARY(a, "folds_planned", "3");
    CHECK_SUMMARY(a, "epochs_done", "6");
    char settings[400];
    snprintf(settings, sizeof settings, "out=%s/submission.csv", base);
    predict(&again, a, settings);
    REQUIRE_OK(again.status, &again.err);
    CHECK_INT(again.outcome.models, 3);
    CHECK(same_file(a, base, "submission.csv"));
}

/* ---- bad pictures ---- */

static void bad_pictures_are_told_once(void) {
    static const char *const settings[] = {"epochs=3", "epochs=2 folds=2"};
    for (size_t i = 0; i < 2; i++) {
        static run_story story;
        static run_story again;
        memset(&story, 0, sizeof story);
        memset(&again, 0, sizeof again);
        enter();
        make_part(base, "train", 6, 0);
        make_part(base, "val", 2, 100);
        make_test_part(base);
        write_text(base, "train/c1/00.jpg", "no picture");
        write_text(base, "val/c2/01.jpg", "");
        write_text(base, "test/03.jpg", "no picture either");
        train(&story, base, a, settings[i], plain);
        REQUIRE_OK(story.status, &story.err);
        /* With folds the validation folder is not read. */
        CHECK_INT(count_lines(a, "bad_images.csv"), i == 0 ? 4 : 3);
        CHECK_SUMMARY(a, "bad_images", i == 0 ? "3" : "2");
        CHECK_CONTAINS(story.bad, "train/c1/00.jpg\n");
        CHECK_CONTAINS(story.bad, "test test/03.jpg\n");
        CHECK_INT(strstr(story.bad, "val val/c2/01.jpg\n") != NULL, i == 0);
        CHECK_INT(count_lines(a, "submission.csv"), 1 + TEST_ROWS); /* priors for that row */
        predict(&again, a, "");
        REQUIRE_OK(again.status, &again.err);
        CHECK_STR(again.bad, "test test/03.jpg\n");
    }
}

static void no_usable_picture(void) {
    static run_story story;
    enter();
    make_part(base, "train", 4, 0);
    make_test_part(base);
    for (int c = 0; c < PICTURE_CLASSES; c++) {
        for (int i = 0; i < 4; i++) {
            char name[64];
            snprintf(name, sizeof name, "train/c%d/%02d.jpg", c, i);
            write_text(base, name, "no picture");
        }
    }
    train(&story, base, a, "", plain);
    CHECK_INT(story.status, STK_ERR_DATA);
    CHECK_CONTAINS(story.err.message, "more than --max-bad");
    CHECK_STR(story.outcome.status, "failed");
    CHECK_SUMMARY(a, "status", "failed");
    CHECK_SUMMARY(a, "stop_reason", "error");
    CHECK_SUMMARY(a, "submission", "submission.csv"); /* the priors are there all the same */
}

/* ---- refusals and earlier runs ---- */

static void refusals_leave_nothing(void) {
    static const struct {
        const char *data;
        const char *settings;
        stk_status status;
        const char *words;
    } cases[] = {
        {"/no/such/folder", "", STK_ERR_DATA, "/no/such/folder"},
        {NULL, "model=resnet19", STK_ERR_USAGE, "resnet18"},
        {NULL, "device=cuda:99", STK_ERR_DEVICE, "cuda"},
        {NULL, "folds=50", STK_ERR_DATA, "50"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        static run_story story;
        memset(&story, 0, sizeof story);
        enter();
        train(&story, cases[i].data != NULL ? cases[i].data : shared_data(), a, cases[i].settings,
              plain);
        CHECK(story.status != STK_OK);
        CHECK_CONTAINS(story.err.message, cases[i].words);
        CHECK_STR(story.outcome.status, "failed");
        CHECK_STR(story.outcome.run_dir, "");
        CHECK_STR(story.outcome.submission, "");
        CHECK_INT(story.size, 0);
        CHECK(!stk_path_is_dir(a));
    }
}

static void a_second_run_moves_the_first(void) {
    static run_story first;
    static run_story second;
    char aside[310];
    CHECK_SAME_THREADS();
    enter();
    train(&first, shared_data(), a, "epochs=1 seed=1", plain);
    train(&second, shared_data(), a, "epochs=1 seed=2", plain);
    REQUIRE_OK(first.status, &first.err);
    REQUIRE_OK(second.status, &second.err);
    snprintf(aside, sizeof aside, "%s.1", a);
    CHECK_CONTAINS(second.decisions, "earlier run kept");
    CHECK(has_file(aside, "weights/best.safetensors") && has_file(aside, "submission.csv"));
    CHECK(!same_file(a, aside, "weights/best.safetensors"));
}

/* A rate and a decay that blow the weights up: the warning says what to do. */
static void divergence_is_told(void) {
    static run_story story;
    CHECK_SAME_THREADS();
    enter();
    train(&story, shared_data(), a, "lr=100 weight-decay=1 epochs=40 warmup=0", plain);
    REQUIRE_OK(story.status, &story.err);
    CHECK_CONTAINS(story.warnings, "lower --lr");
    CHECK_SUMMARY(a, "stop_reason", "error");
    CHECK(strcmp(story.outcome.status, "complete") != 0);
    CHECK(has_file(a, "submission.csv"));
    char *text = slurp(a, "submission.csv", NULL);
    CHECK(text != NULL && strstr(text, "nan") == NULL);
    stk_mem_free(text);
}

static void patience(void) {
    static run_story story;
    CHECK_SAME_THREADS();
    enter();
    train(&story, shared_data(), a, "lr=0 epochs=60 patience=1 warmup=0 momentum=0", plain);
    REQUIRE_OK(story.status, &story.err);
    CHECK(story.epochs < 60);
    CHECK_SUMMARY(a, "stop_reason", "patience");
    CHECK_SUMMARY(a, "status", "complete");
}

static const check_test tests[] = {
    TEST(events_and_outcome),
    TEST(files_of_a_run),
    TEST(nothing_need_be_given),
    TEST(learns_the_pictures),
    TEST(same_seed_same_bytes),
    TEST(two_jobs_at_a_time),
    TEST(predict_writes_the_same_again),
    TEST(predict_other_pictures),
    TEST(predict_refuses),
    TEST(folds),
    TEST(bad_pictures_are_told_once),
    TEST(no_usable_picture),
    TEST(refusals_leave_nothing),
    TEST(a_second_run_moves_the_first),
    TEST(divergence_is_told),
    TEST(patience),
};

CHECK_MAIN(tests)
