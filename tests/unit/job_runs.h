/*
 * job_runs.h - small data sets and whole runs through the public interface, for the tests of the
 * job room.
 */
#ifndef STK_TESTS_JOB_RUNS_H
#define STK_TESTS_JOB_RUNS_H

#include "small_pictures.h"

#include <stoker/job.h>

#include "base/clock.h"
#include "base/str.h"
#include "base/text/json.h"

#define TEST_ROWS 10

/* Pictures of class folders: `each` per class below DIR/PART/c0 and so on. */
static inline void make_part(const char *dir, const char *part, int each, int first) {
    stk_error err = {0};
    for (int c = 0; c < PICTURE_CLASSES; c++) {
        char path[512];
        snprintf(path, sizeof path, "%s/%s/c%d", dir, part, c);
        must(stk_dir_make(path, &err), &err);
        for (int i = 0; i < each; i++) {
            snprintf(path, sizeof path, "%s/%s/c%d/%02d.jpg", dir, part, c, i);
            write_picture(path, c, first + i);
        }
    }
}

static inline void make_test_part(const char *dir) {
    stk_error err = {0};
    char path[512];
    snprintf(path, sizeof path, "%s/test", dir);
    must(stk_dir_make(path, &err), &err);
    for (int i = 0; i < TEST_ROWS; i++) {
        snprintf(path, sizeof path, "%s/test/%02d.jpg", dir, i);
        write_picture(path, i, 500 + i);
    }
}

/* 24 training, 8 validation and TEST_ROWS test pictures in a folder of their own. */
static inline const char *shared_data(void) {
    static char dir[256];
    if (dir[0] == '\0') {
        snprintf(dir, sizeof dir, "%s", check_folder());
        make_part(dir, "train", 6, 0);
        make_part(dir, "val", 2, 100);
        make_test_part(dir);
    }
    return dir;
}

/* The same without test pictures. */
static inline const char *shared_data_without_test(void) {
    static char dir[256];
    if (dir[0] == '\0') {
        snprintf(dir, sizeof dir, "%s", check_folder());
        make_part(dir, "train", 6, 0);
        make_part(dir, "val", 2, 100);
    }
    return dir;
}

/* What a run told, and what came of it. A story has a letter per event; see note(). */
typedef struct run_story {
    char text[4096];
    size_t size;
    char decisions[1024];
    char warnings[1024];
    char bad[2048];         /* "split path\n" each */
    char submissions[1024]; /* "status rows models\n" each */
    int starts;
    int epochs;
    stk_event_start start; /* its texts are gone */
    int fold_epochs[4];
    stk_stop *stop;            /* asked to stop after stop_after_steps; NULL: never */
    stk_stop_level stop_level; /* of that request */
    int stop_after_steps;      /* step events before the request; 0: there is none */
    int steps;
    void (*at_step)(void); /* called with each; NULL: nothing */
    stk_status status;
    stk_outcome outcome;
    stk_error err;
} run_story;

static inline void note(run_story *story, char letter) {
    if (story->size + 1 < sizeof story->text) {
        story->text[story->size++] = letter;
    }
}

static inline void add_line(char *out, size_t size, const char *text) {
    size_t length = strlen(out);
    snprintf(out + length, size - length, "%s\n", text);
}

static inline void hear_start(void *user, const stk_event_start *event) {
    run_story *story = user;
    note(story, 'b');
    story->starts++;
    story->start = *event;
}

static inline void hear_plan(void *user, const stk_event_plan *event) {
    (void)event;
    note(user, 'p');
}

static inline void hear_decision(void *user, const stk_event_decision *event) {
    run_story *story = user;
    note(story, 'd');
    add_line(story->decisions, sizeof story->decisions, event->what);
}

static inline void hear_step(void *user, const stk_event_step *event) {
    (void)event;
    run_story *story = user;
    note(story, 's');
    story->steps++;
    if (story->at_step != NULL) {
        story->at_step();
    }
    if (story->stop_after_steps > 0 && story->steps == story->stop_after_steps) {
        stk_stop_request(story->stop, story->stop_level, 0);
    }
}

static inline void hear_epoch(void *user, const stk_event_epoch *event) {
    run_story *story = user;
    note(story, 'e');
    story->epochs++;
    story->fold_epochs[event->fold % 4]++;
}

static inline void hear_checkpoint(void *user, const stk_event_checkpoint *event) {
    note(user, event->best && stk_path_is_file(event->path) ? 'c' : '?');
}

static inline void hear_bad(void *user, const stk_event_bad_image *event) {
    run_story *story = user;
    char line[512];
    snprintf(line, sizeof line, "%s %s", event->split, event->path);
    add_line(story->bad, sizeof story->bad, line);
}

static inline void hear_submission(void *user, const stk_event_submission *event) {
    run_story *story = user;
    char line[64];
    note(story, stk_path_is_file(event->path) ? 'u' : '?');
    snprintf(line, sizeof line, "%s %d %d", event->status, (int)event->rows, event->models);
    add_line(story->submissions, sizeof story->submissions, line);
}

static inline void hear_warning(void *user, const char *text) {
    run_story *story = user;
    note(story, 'w');
    add_line(story->warnings, sizeof story->warnings, text);
}

static inline void hear_stop(void *user, const stk_summary *summary) {
    (void)summary;
    note(user, 'x');
}

static inline stk_observer observer_of(run_story *story) {
    return (stk_observer){.size = sizeof(stk_observer),
                          .user = story,
                          .start = hear_start,
                          .plan = hear_plan,
                          .decision = hear_decision,
                          .step = hear_step,
                          .epoch = hear_epoch,
                          .checkpoint = hear_checkpoint,
                          .bad_image = hear_bad,
                          .submission = hear_submission,
                          .warning = hear_warning,
                          .stop = hear_stop};
}

/* "epochs=3 batch=8" on top of what every test wants. */
static inline void set_all(stk_options *options, const char *settings) {
    stk_error err = {0};
    char copy[1024];
    snprintf(copy, sizeof copy, "%s", settings);
    char *rest = NULL;
    for (char *p = strtok_r(copy, " ", &rest); p != NULL; p = strtok_r(NULL, " ", &rest)) {
        char *value = strchr(p, '=');
        *value++ = '\0';
        must(stk_options_set(options, p, value, &err), &err);
    }
}

/* Trains; everything that happened is in *story, whose stop fields may have been set before. */
static inline void train(run_story *story, const char *data, const char *out, const char *settings,
                         stk_run run) {
    stk_options *options = NULL;
    must(stk_options_for_train(&options, &story->err), &story->err);
    set_all(options, "img-size=16 batch=8 epochs=3 lr=0.05 workers=2");
    set_all(options, settings);
    must(stk_options_set(options, "out", out, &story->err), &story->err);
    must(stk_options_set(options, "data", data, &story->err), &story->err);
    stk_observer observer = observer_of(story);
    run.size = sizeof run;
    run.observer = &observer;
    story->outcome.size = sizeof story->outcome;
    story->status = stk_train(options, &run, &story->outcome, &story->err);
    stk_options_free(options);
}

static inline void predict(run_story *story, const char *run_dir, const char *settings) {
    stk_options *options = NULL;
    must(stk_options_for_predict(&options, &story->err), &story->err);
    must(stk_options_set(options, "run", run_dir, &story->err), &story->err);
    set_all(options, settings);
    stk_observer observer = observer_of(story);
    stk_run run = {.size = sizeof run, .observer = &observer, .stop = story->stop};
    story->outcome.size = sizeof story->outcome;
    story->status = stk_predict(options, &run, &story->outcome, &story->err);
    stk_options_free(options);
}

/* All of a file of a folder; NULL when it is not there. */
static inline char *slurp(const char *dir, const char *name, size_t *size) {
    char path[1300];
    char *data = NULL;
    size_t unused;
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return stk_file_read(path, 0, &data, size != NULL ? size : &unused, NULL) == STK_OK ? data
                                                                                        : NULL;
}

static inline bool has_file(const char *dir, const char *name) {
    char path[1300];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return stk_path_is_file(path);
}

static inline bool same_file(const char *dir_a, const char *dir_b, const char *name) {
    size_t size_a = 0;
    size_t size_b = 0;
    char *a = slurp(dir_a, name, &size_a);
    char *b = slurp(dir_b, name, &size_b);
    bool same = a != NULL && b != NULL && size_a == size_b && memcmp(a, b, size_a) == 0;
    stk_mem_free(a);
    stk_mem_free(b);
    return same;
}

static inline size_t count_lines(const char *dir, const char *name) {
    char *text = slurp(dir, name, NULL);
    size_t lines = 0;
    for (const char *p = text; p != NULL && *p != '\0'; p++) {
        lines += *p == '\n';
    }
    stk_mem_free(text);
    return lines;
}

/* A text of summary.json into buf; "null" when it is none. */
static inline const char *summary_text(const char *dir, const char *key, char *buf, size_t size) {
    size_t length = 0;
    char *text = slurp(dir, "summary.json", &length);
    stk_json *root = NULL;
    if (text != NULL && stk_json_parse(text, length, &root, NULL) != STK_OK) {
        root = NULL;
    }
    const stk_json *value = stk_json_get(root, key);
    if (stk_json_kind_of(value) == STK_JSON_NUMBER) {
        snprintf(buf, size, "%g", stk_json_number(value, 0));
    } else {
        const char *string = stk_json_string(value);
        snprintf(buf, size, "%s", value == NULL ? "absent" : string != NULL ? string : "null");
    }
    stk_json_free(root);
    stk_mem_free(text);
    return buf;
}

#define CHECK_SUMMARY(dir, key, expected)                                               \
    do {                                                                                \
        char check_text[128];                                                           \
        CHECK_STR(summary_text((dir), (key), check_text, sizeof check_text), expected); \
    } while (0)

/* A folder for the runs of one test. */
static inline const char *run_dir(char *buf, size_t size, const char *base, const char *name) {
    snprintf(buf, size, "%s/%s", base, name);
    return buf;
}

#endif
