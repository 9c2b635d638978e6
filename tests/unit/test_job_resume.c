/* test_job_resume.c - runs that are taken up again, with files that are damaged or changed. */
#include "check.h"
#include "job_runs.h"

#include "job/saved/fingerprints.h"
#include "job/training/job.h"

#include <unistd.h>

#define STATE "state/train.safetensors"
#define EPOCH "state/epoch.safetensors"
#define BEST "weights/best.safetensors"

static char dir[300];
static run_story story;
static double lowest_lr; /* of the steps that were heard */

static void hear_lr(void *user, const stk_event_step *event) {
    lowest_lr = fmin(lowest_lr, event->lr);
    hear_step(user, event);
}

static void put(const char *name, const char *data, size_t size) {
    stk_error err = {0};
    char path[600];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    must(stk_file_write(path, data, size, &err), &err);
}

/* Only the first bytes of a file stay. */
static void cut(const char *name, size_t size) {
    char *data = slurp(dir, name, NULL);
    put(name, data, size);
    stk_mem_free(data);
}

/* One bit of a file's last numbers is another. */
static void flip(const char *name) {
    size_t size = 0;
    char *data = slurp(dir, name, &size);
    data[size - 10] ^= 4;
    put(name, data, size);
    stk_mem_free(data);
}

static void discard(const char *name) {
    char path[600];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    CHECK_INT(unlink(path), 0);
}

/* The first of a text in a file becomes another. */
static void replace(const char *name, const char *from, const char *to) {
    size_t size = 0;
    char *data = slurp(dir, name, &size);
    stk_str text = {0};
    char *at = strstr(data, from);
    CHECK(at != NULL);
    stk_str_append_bytes(&text, data, (size_t)(at - data));
    stk_str_append(&text, to);
    stk_str_append(&text, at + strlen(from));
    put(name, text.text, text.length);
    stk_str_free(&text);
    stk_mem_free(data);
}

/*
 * A state that was changed on purpose: its checksum becomes a tensor that nobody knows, as if an
 * older version had written the file.
 */
static void put_state(char *data, size_t size) {
    char *at = memmem(data, size, "\"checksum\"", 10);
    if (at != NULL) {
        at[1] = '_';
    }
    put(STATE, data, size);
}

/* One note of the state gets another text; the header grows, and the numbers follow it. */
static void set_note(const char *key, const char *value) {
    size_t size = 0;
    char *data = slurp(dir, STATE, &size);
    size_t header = 0;
    for (int i = 0; i < 8; i++) {
        header |= (size_t)(unsigned char)data[i] << (8 * i);
    }
    char *text = stk_str_format("%.*s", (int)header, data + 8);
    char name[64];
    snprintf(name, sizeof name, "\"%s\": \"", key);
    char *at = strstr(text, name);
    CHECK(at != NULL);
    at += strlen(name);
    stk_str out = {0};
    stk_str_append_bytes(&out, text, (size_t)(at - text));
    stk_str_append(&out, value);
    const char *rest = at; /* a quote that is escaped does not end the old text */
    while (*rest != '"') {
        rest += *rest == '\\' ? 2 : 1;
    }
    stk_str_append(&out, rest);
    while (out.length % 8 != 0) {
        stk_str_append(&out, " ");
    }
    stk_str file = {0};
    for (int i = 0; i < 8; i++) {
        char byte = (char)(out.length >> (8 * i) & 0xFF);
        stk_str_append_bytes(&file, &byte, 1);
    }
    stk_str_append_bytes(&file, out.text, out.length);
    stk_str_append_bytes(&file, data + 8 + header, size - 8 - header);
    put_state(file.text, file.length);
    stk_str_free(&file);
    stk_str_free(&out);
    stk_mem_free(text);
    stk_mem_free(data);
}

/* Another name of the same length, which nobody knows. */
static void hide_note(const char *key) {
    size_t size = 0;
    char *data = slurp(dir, STATE, &size);
    char name[64];
    snprintf(name, sizeof name, "\"%s\": \"", key);
    char *at = memmem(data, size, name, strlen(name));
    REQUIRE(at != NULL);
    at[1] = '_';
    put_state(data, size);
    stk_mem_free(data);
}

/* A run in a folder of its own: all of its three epochs, or into the second one. */
static void begin(bool whole) {
    stk_stop stop = {0};
    snprintf(dir, sizeof dir, "%s/run", check_folder());
    memset(&story, 0, sizeof story);
    story.stop = &stop;
    story.stop_level = STK_STOP_SOON;
    story.stop_after_steps = whole ? 0 : 4;
    train(&story, shared_data(), dir, "", (stk_run){.stop = &stop});
    REQUIRE_OK(story.status, &story.err);
    CHECK(has_file(dir, STATE));
    CHECK_INT(has_file(dir, EPOCH), !whole);
}

static void resume(const char *settings) {
    stk_options *options = NULL;
    memset(&story, 0, sizeof story);
    lowest_lr = INFINITY;
    must(stk_options_for_train(&options, &story.err), &story.err);
    must(stk_options_set(options, "resume", dir, &story.err), &story.err);
    set_all(options, settings);
    stk_observer observer = observer_of(&story);
    observer.step = hear_lr;
    stk_run run = {.size = sizeof run, .observer = &observer};
    story.outcome.size = sizeof story.outcome;
    story.status = stk_train(options, &run, &story.outcome, &story.err);
    stk_options_free(options);
}

/* A refusal that leaves every file as it was. */
static void refused(const char *settings, const char *sentence) {
    static const char *const names[] = {"args.json",    "args.yaml",    "results.csv",
                                        "events.jsonl", "summary.json", STATE};
    enum { NAMES = sizeof names / sizeof *names };
    char *before[NAMES];
    size_t sizes[NAMES];
    for (int i = 0; i < NAMES; i++) {
        before[i] = slurp(dir, names[i], &sizes[i]);
    }
    resume(settings);
    CHECK_INT(story.status, STK_ERR_DATA);
    CHECK_CONTAINS(story.err.message, sentence);
    CHECK_INT(story.starts, 0);
    for (int i = 0; i < NAMES; i++) {
        size_t size = 0;
        char *after = slurp(dir, names[i], &size);
        CHECK(after != NULL && size == sizes[i] && memcmp(after, before[i], size) == 0);
        stk_mem_free(after);
        stk_mem_free(before[i]);
    }
}

/* The watch is made to see an explosion: the schedule must not be at its end after going back. */
static void setback_with_more_epochs_keeps_a_rate(void) {
    begin(true);
    set_note("loss_steps", "30");
    set_note("loss_floor", "0.01");
    set_note("loss_smooth", "0.009");
    set_note("loss_lowest", "0.001");
    resume("epochs=6");
    CHECK_CONTAINS(story.decisions, "back to epoch 3 with half the learning rate");
    CHECK_INT(story.status, STK_OK);
    CHECK(story.steps > 0);
    CHECK(lowest_lr > 1e-4);
}

static void fold_must_be_one_of_the_run(void) {
    begin(false);
    discard(EPOCH);
    set_note("fold", "1");
    set_note("folds_done", "1");
    refused("", "is of fold 2, the other says --folds 1");
}

static void lost_best_weights_are_made_up_for(void) {
    enum { GONE, CUT, CHANGED, WAYS };
    for (int way = 0; way < WAYS; way++) {
        begin(true);
        if (way == GONE) {
            discard(BEST);
        } else if (way == CUT) {
            cut(BEST, 1000);
        } else {
            flip(BEST);
        }
        resume("epochs=4");
        REQUIRE_OK(story.status, &story.err);
        CHECK_CONTAINS(story.warnings, "the best weights so far, of epoch ");
        CHECK_STR(story.outcome.status, "complete");
        CHECK(has_file(dir, BEST));
        CHECK_SUMMARY(dir, "epochs_done", "4");
    }
}

/* The process ended before it could take away what was kept for a fold before, of as many epochs.
 */
static void best_weights_of_another_fold_stay_away(void) {
    size_t size = 0;
    size_t other_size = 0;
    snprintf(dir, sizeof dir, "%s/run", check_folder());
    memset(&story, 0, sizeof story);
    train(&story, shared_data(), dir, "epochs=1 folds=2 class_means=no", (stk_run){0});
    REQUIRE_OK(story.status, &story.err);
    char *mine = slurp(dir, "weights/fold1/best.safetensors", &size);
    char *table = slurp(dir, "validation.csv", NULL);
    char *other = slurp(dir, "weights/fold0/best.safetensors", &other_size);
    put("state/best.safetensors", other, other_size);
    discard("summary.json");
    resume("");
    REQUIRE_OK(story.status, &story.err);
    CHECK_STR(story.outcome.status, "complete");
    CHECK(!has_file(dir, "state/best.safetensors"));
    char *after = slurp(dir, "weights/fold1/best.safetensors", &other_size);
    char *table_after = slurp(dir, "validation.csv", NULL);
    REQUIRE(after != NULL && table_after != NULL);
    CHECK(other_size == size && memcmp(mine, after, size) == 0);
    CHECK_STR(table_after, table);
    stk_mem_free(table_after);
    stk_mem_free(after);
    stk_mem_free(other);
    stk_mem_free(table);
    stk_mem_free(mine);
}

/* Class means joined the best weights after the last state was saved: a resume finds the weights
 * that the state knows, and lets the means join them again, once. */
static void class_means_join_again(void) {
    size_t size = 0;
    size_t size_after = 0;
    snprintf(dir, sizeof dir, "%s/run", check_folder());
    memset(&story, 0, sizeof story);
    train(&story, shared_data(), dir, "epochs=1 folds=2", (stk_run){0});
    REQUIRE_OK(story.status, &story.err);
    char *mine = slurp(dir, "weights/fold1/best.safetensors", &size);
    REQUIRE(mine != NULL && has_file(dir, "state/best.safetensors")); /* they joined */
    discard("summary.json");
    resume("");
    REQUIRE_OK(story.status, &story.err);
    CHECK_STR(story.outcome.status, "complete");
    char *after = slurp(dir, "weights/fold1/best.safetensors", &size_after);
    REQUIRE(after != NULL);
    CHECK(size_after == size && memcmp(mine, after, size) == 0);
    stk_mem_free(after);
    stk_mem_free(mine);
}

/* What the second fold's weights say of themselves after a run with these settings. */
static stk_calibration joined_with(const char *settings) {
    stk_calibration calibration = {0};
    int img_size = 0;
    char path[512];
    snprintf(dir, sizeof dir, "%s/run", check_folder());
    snprintf(path, sizeof path, "%s/weights/fold1/best.safetensors", dir);
    memset(&story, 0, sizeof story);
    train(&story, shared_data(), dir, settings, (stk_run){0});
    must(story.status, &story.err);
    must(stk_job_read_calibration(path, &calibration, &img_size, &story.err), &story.err);
    CHECK(calibration.means > 0); /* they joined */
    return calibration;
}

/* The calibration that is fitted to the joined head knows nothing of rows. */
static void class_means_leave_the_pool(void) {
    stk_calibration calibration = joined_with("epochs=1 folds=2 pool=max");
    CHECK_INT(calibration.pool, STK_POOL_MAX);
    stk_calibration_free(&calibration);
}

/* Without a calibration the file says that they joined, and nothing more. */
static void class_means_leave_answers_plain(void) {
    stk_calibration calibration = joined_with("epochs=1 folds=2 calibrate=no");
    CHECK_NEAR(calibration.temperature, 1, 0);
    CHECK_INT(calibration.rule.count, 0);
    CHECK_INT(calibration.pictures, 0);
    stk_calibration_free(&calibration);
}

static stk_stop stop_at_once;

static void stop_when_weights_are_in_place(void *user, const stk_event_checkpoint *event) {
    stk_stop_request(&stop_at_once, STK_STOP_SOON, 0);
    hear_checkpoint(user, event);
}

/* All steps of the second epoch were made, and its validation is done in the ten seconds that a
 * request to stop leaves: what is saved then is taken up again. */
static void stopped_before_a_plan_is_taken_up(void) {
    begin(false);
    set_note("step", "3");
    set_note("steps_done", "6");
    stk_options *options = NULL;
    must(stk_options_for_train(&options, &story.err), &story.err);
    must(stk_options_set(options, "resume", dir, &story.err), &story.err);
    stk_observer observer = observer_of(&story);
    observer.checkpoint = stop_when_weights_are_in_place;
    stk_run run = {.size = sizeof run, .observer = &observer, .stop = &stop_at_once};
    int epochs = story.epochs;
    story.outcome.size = sizeof story.outcome;
    story.status = stk_train(options, &run, &story.outcome, &story.err);
    stk_options_free(options);
    REQUIRE_OK(story.status, &story.err);
    CHECK_INT(story.epochs, epochs + 1);
    resume("");
    REQUIRE_OK(story.status, &story.err);
    CHECK_STR(story.outcome.status, "complete");
    CHECK_SUMMARY(dir, "epochs_done", "3");
}

static void impossible_numbers_are_refused(void) {
    static const char *const bad[][3] = {
        {"epoch", "2147483647", "3"},      {"steps_done", "9223372036854775807", "9"},
        {"steps_done", "13", "9"},         {"loss_steps", "9223372036854775807", "9"},
        {"used_s", "1e300", "1"},          {"used_s", "nan", "1"},
        {"loss_floor", "nan", "5"},        {"loss_smooth", "nan", "1"},
        {"loss_lowest", "nan", "1"},       {"images", "inf", "0"},
        {"correct", "nan", "0"},           {"setbacks", "2000000000", "0"},
        {"schedule", "nan", "1"},          {"steps_per_epoch", "9223372036854775807", "3"},
        {"since_best", "2147483647", "0"}, {"batch", "9223372036854775807", "8"},
        {"accumulate", "0", "1"},
    };
    begin(true);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        set_note(bad[i][0], bad[i][1]);
        refused("epochs=4", "contradict themselves");
        set_note(bad[i][0], bad[i][2]);
    }
    resume("epochs=4"); /* it was these numbers alone */
    REQUIRE_OK(story.status, &story.err);
}

static void options_must_be_those_of_the_state(void) {
    begin(true);
    set_note("seed", "5");
    refused("epochs=4", "was trained with --seed 5, the other says 0");
    set_note("seed", "0");
    set_note("steps_per_epoch", "6");
    refused("epochs=4", "has 6 steps an epoch, with the other it would be 3");
    set_note("steps_per_epoch", "3");
    replace("args.json", "\"optimizer\": \"sgd\"", "\"optimizer\": \"adamw\"");
    refused("epochs=4", "does not fit the model: 'second/");
    replace("args.json", "\"optimizer\": \"adamw\"", "\"optimizer\": \"sgd\"");
    set_note("given", "{x");
    refused("epochs=4", "train.safetensors is damaged: 'given' in its metadata is ");
}

/* What was written before batches could shrink says nothing of them. */
static void older_states_are_taken_up(void) {
    begin(false);
    hide_note("batch");
    hide_note("accumulate");
    resume("");
    REQUIRE_OK(story.status, &story.err);
    CHECK_STR(story.outcome.status, "complete");
    CHECK_SUMMARY(dir, "batch", "8");
}

/* The batch of the state counts, as far as it is one that the run can have come to. */
static void batch_is_that_of_the_state(void) {
    begin(true);
    set_note("batch", "4");
    refused("epochs=4", "has 3 steps an epoch, with the other it would be 6");
    set_note("accumulate", "2");
    set_note("steps_per_epoch", "6");
    set_note("steps_done", "18");
    resume("epochs=4");
    REQUIRE_OK(story.status, &story.err);
    CHECK_CONTAINS(story.decisions, "batch 4 x 2");
    CHECK_SUMMARY(dir, "batch", "4");
    CHECK_SUMMARY(dir, "epochs_done", "4");
    begin(true);
    set_note("batch", "16");
    refused("epochs=4", "has 3 steps an epoch, with the other it would be 1");
}

/* From the end of the epoch before, and to the same end. */
static void damaged_state_falls_back_to_the_last_epoch(void) {
    char whole[300];
    begin(true);
    snprintf(whole, sizeof whole, "%s", dir);
    begin(false);
    cut(STATE, 3000);
    resume("");
    REQUIRE_OK(story.status, &story.err);
    CHECK_CONTAINS(story.warnings, "the run goes on from the end of an epoch, ");
    CHECK_CONTAINS(story.decisions, "goes on at epoch 2, step 1");
    CHECK_STR(story.outcome.status, "complete");
    CHECK(same_file(dir, whole, BEST));
    CHECK(same_file(dir, whole, "weights/last.safetensors"));
    CHECK(same_file(dir, whole, "submission.csv"));
    begin(false);
    cut(STATE, 3000);
    cut(EPOCH, 3000);
    refused("", "there is nothing else to go on from: begin a new run");
}

/* The whole length, and one bit in the middle of the numbers. */
static void damaged_bytes_fall_back_to_the_last_epoch(void) {
    size_t size = 0;
    begin(false);
    char *data = slurp(dir, STATE, &size);
    data[size / 2] ^= 1;
    put(STATE, data, size);
    stk_mem_free(data);
    resume("");
    REQUIRE_OK(story.status, &story.err);
    CHECK_CONTAINS(story.warnings, "its bytes are not those that were written");
    CHECK_CONTAINS(story.decisions, "goes on at epoch 2, step 1");
    begin(true);
    data = slurp(dir, STATE, &size);
    data[size / 2] ^= 1;
    put(STATE, data, size);
    stk_mem_free(data);
    refused("epochs=4", "its bytes are not those that were written");
}

static void state_of_another_run_is_refused(void) {
    size_t size = 0;
    begin(true);
    char *data = slurp(dir, STATE, &size);
    begin(true);
    put(STATE, data, size);
    refused("epochs=4", "is the state of another run");
    stk_mem_free(data);
    begin(true); /* a run of an older version has no id, and neither has its state */
    hide_note("run");
    resume("epochs=4");
    REQUIRE_OK(story.status, &story.err);
}

/* The rows that two tables begin with in common, up to the speed: events round that in another way.
 */
static int same_rows(const char *a, const char *b) {
    enum { COMPARED = 8 };
    int rows = 0;
    while (*a != '\0') {
        size_t length = 0;
        for (int commas = 0; commas < COMPARED && a[length] != '\0'; length++) {
            commas += a[length] == ',';
        }
        if (strncmp(a, b, length) != 0) {
            return rows;
        }
        rows++;
        a += strcspn(a, "\n") + 1;
        b += strcspn(b, "\n") + 1;
    }
    return rows;
}

/* `left` is what there is of results.csv; NULL: nothing. */
static void resume_with_table(const char *left) {
    size_t size = 0;
    begin(true);
    char *before = slurp(dir, "results.csv", &size);
    if (left != NULL) {
        put("results.csv", left, strlen(left));
    } else {
        discard("results.csv");
    }
    resume("epochs=4");
    REQUIRE_OK(story.status, &story.err);
    CHECK_CONTAINS(story.warnings,
                   "results.csv is gone or lacks rows; 3 epochs of it were written");
    char *after = slurp(dir, "results.csv", NULL);
    REQUIRE(before != NULL && after != NULL);
    CHECK_INT(same_rows(before, after), 4);
    CHECK(strlen(after) > size);
    stk_mem_free(after);
    stk_mem_free(before);
}

static void lost_table_is_written_again(void) {
    resume_with_table(NULL);
}

static void damaged_table_is_written_again(void) {
    resume_with_table("");
    resume_with_table("fold,\"epoch\n");
    if (check_is_quick()) {
        return;
    }
    resume_with_table("nonsense\n");
    resume_with_table("fold,epoch,train/loss\n");
}

/* A run on pictures of its own, until it is complete. */
static const char *begin_on_own_pictures(const char *settings) {
    static char data[300];
    snprintf(data, sizeof data, "%s/data", check_folder());
    make_part(data, "train", 6, 0);
    make_part(data, "val", 2, 100);
    snprintf(dir, sizeof dir, "%s/run", check_folder());
    memset(&story, 0, sizeof story);
    train(&story, data, dir, settings, (stk_run){0});
    must(story.status, &story.err);
    return data;
}

static void replaced_pictures_are_noticed(void) {
    static const char *const names[] = {"train/c1/03.jpg", "val/c0/01.jpg"};
    for (int i = 0; i < 2; i++) {
        char path[600];
        const char *data = begin_on_own_pictures("");
        snprintf(path, sizeof path, "%s/%s", data, names[i]);
        write_picture(path, 1, 77);
        resume("epochs=4");
        CHECK_INT(story.status, STK_ERR_DATA);
        CHECK_CONTAINS(story.err.message, names[i]);
        CHECK_CONTAINS(story.err.message, "is not the picture that the run was begun with");
        CHECK(has_file(dir, BEST));
        write_picture(path, i == 0 ? 1 : 0, i == 0 ? 3 : 101); /* what it was */
        resume("epochs=4");
        REQUIRE_OK(story.status, &story.err);
    }
}

/* Without the file, or with one that is damaged, nothing is judged. */
static void lost_fingerprints_are_told(void) {
    size_t size = 0;
    char path[600];
    const char *data = begin_on_own_pictures("");
    char *prints = slurp(dir, STK_FINGERPRINTS_FILE, &size);
    REQUIRE(prints != NULL);
    prints[size - 1] ^= 1;
    put(STK_FINGERPRINTS_FILE, prints, size);
    stk_mem_free(prints);
    snprintf(path, sizeof path, "%s/train/c1/03.jpg", data);
    write_picture(path, 1, 77);
    resume("epochs=4");
    REQUIRE_OK(story.status, &story.err);
    CHECK_CONTAINS(story.warnings, "would not be noticed");
    CHECK_CONTAINS(story.warnings, "is damaged");
}

/* Weights to start from: those that this very model has after some epochs. */
static void replaced_pretrained_weights_are_noticed(void) {
    char weights[600];
    char settings[700];
    size_t size = 0;
    stk_error err = {0};
    stk_stop stop = {0};
    begin(true);
    char *data = slurp(dir, BEST, &size);
    snprintf(weights, sizeof weights, "%s/start.safetensors", check_folder());
    must(stk_file_write(weights, data, size, &err), &err);
    snprintf(settings, sizeof settings, "folds=2 pretrained=%s", weights);
    snprintf(dir, sizeof dir, "%s/run", check_folder());
    for (int last = 0; last < 2; last++) {
        memset(&story, 0, sizeof story);
        story.stop = &stop;
        story.stop_level = STK_STOP_SOON;
        story.stop_after_steps = last == 0 ? 2 : 4; /* a fold has three */
        stop = (stk_stop){0};
        train(&story, shared_data(), dir, settings, (stk_run){.stop = &stop});
        REQUIRE_OK(story.status, &story.err);
        data[size - 1] ^= 1;
        must(stk_file_write(weights, data, size, &err), &err);
        resume("");
        if (last == 0) {
            CHECK_INT(story.status, STK_ERR_DATA);
            CHECK_CONTAINS(story.err.message, "is not the file that the run was begun with");
        } else {
            CHECK_INT(story.status, STK_OK);
            CHECK_CONTAINS(story.decisions, "goes on in fold 2 at epoch ");
            CHECK_CONTAINS(story.warnings, "is not the file that the run was begun with");
        }
    }
    stk_mem_free(data);
}

/* A run that the time ended goes on when there is more of it, one that had its epochs does not. */
static void new_budget_is_more_time(void) {
    begin(true);
    resume("budget=60");
    REQUIRE_OK(story.status, &story.err);
    CHECK_CONTAINS(story.decisions, "nothing left to do");
    replace("summary.json", "\"stop_reason\": \"epochs\"", "\"stop_reason\": \"budget\"");
    resume("");
    CHECK_CONTAINS(story.decisions, "nothing left to do");
    resume("budget=60");
    REQUIRE_OK(story.status, &story.err);
    CHECK_INT(story.starts, 1);
    CHECK_CONTAINS(story.decisions, "goes on at epoch 4, step 1");
}

static const check_test tests[] = {
    TEST(setback_with_more_epochs_keeps_a_rate),
    TEST(fold_must_be_one_of_the_run),
    TEST(lost_best_weights_are_made_up_for),
    TEST(best_weights_of_another_fold_stay_away),
    TEST(class_means_join_again),
    TEST(class_means_leave_the_pool),
    TEST(class_means_leave_answers_plain),
    TEST(stopped_before_a_plan_is_taken_up),
    TEST(impossible_numbers_are_refused),
    TEST(options_must_be_those_of_the_state),
    TEST(damaged_state_falls_back_to_the_last_epoch),
    TEST(damaged_bytes_fall_back_to_the_last_epoch),
    TEST(state_of_another_run_is_refused),
    TEST(lost_table_is_written_again),
    TEST(damaged_table_is_written_again),
    TEST(replaced_pictures_are_noticed),
    TEST(lost_fingerprints_are_told),
    TEST(replaced_pretrained_weights_are_noticed),
    TEST(new_budget_is_more_time),
    TEST(older_states_are_taken_up),
    TEST(batch_is_that_of_the_state),
};

CHECK_MAIN(tests)
