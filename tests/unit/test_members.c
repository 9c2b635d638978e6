/* test_members.c - which models of run folders form the ensemble, and in which order they know the
 * classes. */
#include "check.h"
#include "full_rows.h"

#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "backend/cpu/device.h"
#include "base/files/file.h"
#include "base/mem.h"
#include "job/members.h"

#define SIZE 8

static const char *const usual[] = {"ant", "bee", "cat"};
static const char *const turned[] = {"cat", "ant", "bee"};
static const char *const others[] = {"ant", "bee", "cow"};
static const char *const more[] = {"ant", "bee", "cat", "cow"};

typedef struct telling {
    stk_observer observer;
    stk_events events;
    int warnings;
    char last[400];
} telling;

static void on_warning(void *user, const char *text) {
    telling *t = user;
    t->warnings++;
    snprintf(t->last, sizeof t->last, "%s", text);
}

static void listen(telling *t) {
    memset(t, 0, sizeof *t);
    t->observer = (stk_observer){.user = t, .warning = on_warning};
    stk_events_add(&t->events, &t->observer);
}

static char folder[256];

/* The path of a run folder's file; the folders it lies in are made. */
static const char *file_of(const char *run, const char *name) {
    static char path[400];
    stk_error err = {0};
    snprintf(path, sizeof path, "%s/%s/%s", folder, run, name);
    char *slash = strrchr(path, '/');
    *slash = '\0';
    if (stk_dir_make(path, &err) != STK_OK) {
        CHECK_FAIL("%s", err.message);
    }
    *slash = '/';
    return path;
}

static void write_file(const char *run, const char *name, const char *text) {
    stk_error err = {0};
    if (stk_file_write(file_of(run, name), text, strlen(text), &err) != STK_OK) {
        CHECK_FAIL("%s", err.message);
    }
}

static stk_calibration saved; /* of the next models */
static stk_outputs meaning;

static void save_model(const char *run, const char *name, const char *const *classes, int count,
                       double acc1) {
    stk_error err = {0};
    stk_device *device = NULL;
    stk_graph *graph = NULL;
    stk_state *state = NULL;
    stk_checkpoint_info info = {.model = (char[]){"convnet_s"},
                                .classes = (char **)(uintptr_t)classes,
                                .class_count = count,
                                .img_size = SIZE,
                                .crop_fraction = 1,
                                .std = {1, 1, 1},
                                .calibration = saved,
                                .outputs = meaning,
                                .acc1 = acc1,
                                .epoch = 1};
    REQUIRE_OK(stk_graph_new(&graph, SIZE, count, &err), &err);
    int x = stk_graph_avg_pool(graph, stk_graph_input(graph));
    x = stk_graph_linear(graph, x, "fc", count);
    REQUIRE_OK(stk_graph_finish(graph, x, &err), &err);
    REQUIRE_OK(stk_cpu_backend.device_open(&device, &(stk_device_config){.threads = 1}, &err),
               &err);
    REQUIRE_OK(stk_cpu_backend.state_new(&state, device, graph, &(stk_state_config){0}, &err),
               &err);
    REQUIRE_OK(stk_checkpoint_save(file_of(run, name), &stk_cpu_backend, state, graph, &info, &err),
               &err);
    stk_cpu_backend.state_free(state);
    stk_cpu_backend.device_close(device);
    stk_graph_free(graph);
}

static void set_up(void) {
    if (folder[0] != '\0') {
        return;
    }
    snprintf(folder, sizeof folder, "%s", check_folder());
    write_file("one", "args.json", "{\"folds\": 1}");
    save_model("one", "weights/best.safetensors", usual, 3, 80);
    write_file("turned", "args.json", "{}");
    saved =
        (stk_calibration){.temperature = 0.5, .rule = {STK_LABEL_WEIGHTS, 3, (double[]){1, 2, 3}}};
    save_model("turned", "weights/best.safetensors", turned, 3, 60);
    saved.rule = (stk_label_rule){STK_LABEL_CUTS, 2, (double[]){0.4, 1.4}};
    write_file("graded", "args.json", "{}");
    save_model("graded", "weights/best.safetensors", turned, 3, 60);
    saved = (stk_calibration){0};
    write_file("others", "args.json", "{}");
    save_model("others", "weights/best.safetensors", others, 3, 60);
    write_file("more", "args.json", "{}");
    save_model("more", "weights/best.safetensors", more, 4, 60);
    stk_output_unit units[3] = {{0, 1, 0, 1}, {0, 1, 0, 1}, {0, 1, 0, 1}};
    meaning = (stk_outputs){.task = STK_TASK_MULTILABEL, .count = 3};
    write_file("labels", "args.json", "{}");
    save_model("labels", "weights/best.safetensors", usual, 3, 60);
    meaning = (stk_outputs){.task = STK_TASK_REGRESSION, .count = 3, .units = units};
    write_file("numbers", "args.json", "{}");
    save_model("numbers", "weights/best.safetensors", usual, 3, NAN);
    meaning = (stk_outputs){.task = STK_TASK_RANKING, .count = 3};
    write_file("ranked", "args.json", "{}");
    save_model("ranked", "weights/best.safetensors", usual, 3, 60);
    meaning = (stk_outputs){0};
    write_file("folds", "args.json", "{\"folds\": 5}");
    save_model("folds", "weights/fold1/best.safetensors", usual, 3, 50);
    save_model("folds", "weights/fold4/best.safetensors", usual, 3, NAN);
    write_file("empty", "args.json", "{\"folds\": 3}");
    write_file("broken", "args.json", "{\"folds\": 2}");
    write_file("broken", "weights/fold0/best.safetensors", "no weights");
    write_file("broken", "weights/fold1/best.safetensors", "");
    char link_path[300];
    snprintf(link_path, sizeof link_path, "%s/link", folder);
    CHECK_INT(symlink("one", link_path), 0);
    write_file("odd", "args.json", "{\"folds\": 99999999999}");
}

/* Looks through runs, whose names are divided by blanks. */
static stk_status find(stk_members *v, const char *names, stk_vote vote, telling *t,
                       stk_error *err) {
    static char paths[4][400];
    static const char *items[4];
    size_t count = 0;
    set_up();
    listen(t);
    while (*names != '\0') {
        size_t length = strcspn(names, " ");
        snprintf(paths[count], sizeof paths[0], "%s/%.*s", folder, (int)length, names);
        items[count] = paths[count];
        count++;
        names += length;
        names += strspn(names, " ");
    }
    stk_predict_options options = {.runs = {items, count}, .vote = (int)vote};
    memset(v, 0, sizeof *v);
    return stk_members_find(v, &options, &t->events, err);
}

static void whatever_there_is_votes(void) {
    static const struct {
        const char *runs;
        size_t count;
        int wanted, warnings;
        const char *last;
    } cases[] = {
        {"one", 1, 1, 0, ""},
        {"one turned", 2, 2, 0, ""},
        {"one one", 1, 1, 1, "one is the same run as "},
        {"one turned ./one/ turned", 2, 2, 2, "turned is the same run as "},
        {"one link", 1, 1, 1, "link is the same run as "},
        {"empty empty one", 1, 4, 2, "empty has no model that can be used"},
        {"folds", 2, 5, 1, "has the models of 2 of 5 folds"},
        {"one folds", 3, 6, 1, "2 of 5 folds"},
        {"empty", 0, 3, 0, ""},
        {"empty one", 1, 4, 1, "empty has no model that can be used"},
        {"broken one", 1, 3, 3, "broken has no model that can be used"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        stk_error err = {0};
        stk_members v;
        telling t;
        REQUIRE_OK(find(&v, cases[i].runs, STK_VOTE_EQUAL, &t, &err), &err);
        CHECK_INT(v.count, cases[i].count);
        CHECK_INT(v.wanted, cases[i].wanted);
        CHECK_INT(t.warnings, cases[i].warnings);
        CHECK_CONTAINS(t.last, cases[i].last);
        CHECK(v.options != NULL);
        for (size_t k = 0; k < v.count; k++) {
            CHECK_NEAR(v.items[k].weight, 1, 0);
        }
        stk_members_free(&v);
    }
}

static void what_cannot_vote_is_refused(void) {
    static const struct {
        const char *runs;
        stk_status status;
        const char *part, *another;
    } cases[] = {
        {"", STK_ERR_USAGE, "--run is missing", ""},
        {"nowhere", STK_ERR_USAGE, "nowhere", "no such folder"},
        {"one nowhere", STK_ERR_USAGE, "nowhere", "no such folder"},
        {"one one/weights", STK_ERR_USAGE, "one/weights", "is not a run folder"},
        {"one odd", STK_ERR_USAGE, "odd/args.json: ", "99999999999"},
        {"broken", STK_ERR_DATA, "fold0/best.safetensors", ""},
        {"one others", STK_ERR_DATA, "others do not know the same classes", "/one has 'cat'"},
        {"one more", STK_ERR_DATA, "(3 and 4; only ", "/more has 'cow')"},
        {"more one", STK_ERR_DATA, "(4 and 3; only ", "/more has 'cow')"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        stk_error err = {0};
        stk_members v;
        telling t;
        CHECK_INT(find(&v, cases[i].runs, STK_VOTE_EQUAL, &t, &err), cases[i].status);
        CHECK_CONTAINS(err.message, cases[i].part);
        CHECK_CONTAINS(err.message, cases[i].another);
        stk_members_free(&v);
    }
}

static void classes_are_arranged(void) {
    stk_error err = {0};
    stk_members v;
    telling t;
    double said[] = {0.5, 0.3, 0.2, 0.1, 0.7, 0.2}; /* of cat, ant, bee */
    static const double expected[] = {0.3, 0.2, 0.5, 0.7, 0.2, 0.1};
    REQUIRE_OK(find(&v, "one turned", STK_VOTE_EQUAL, &t, &err), &err);
    CHECK(v.items[0].order == NULL && v.items[1].order != NULL);
    stk_predictions rows = full_rows(said, 2, 3);
    REQUIRE_OK(stk_member_arrange(&v.items[1], &rows, &err), &err);
    CHECK(memcmp(said, expected, sizeof said) == 0);
    REQUIRE_OK(stk_member_arrange(&v.items[0], &rows, &err), &err);
    CHECK(memcmp(said, expected, sizeof said) == 0);
    stk_members_free(&v);
}

/* Weights of classes are arranged like these; cut points in another order are left out. */
static void rules_are_arranged(void) {
    stk_error err = {0};
    stk_members v;
    telling t;
    REQUIRE_OK(find(&v, "one turned graded", STK_VOTE_EQUAL, &t, &err), &err);
    const stk_calibration *weights = &v.items[1].info.calibration;
    const stk_calibration *cuts = &v.items[2].info.calibration;
    CHECK_NEAR(v.items[0].info.calibration.temperature, 0, 0);
    CHECK_NEAR(weights->temperature, 0.5, 0);
    REQUIRE(weights->rule.count == 3);
    CHECK(memcmp(weights->rule.numbers, (const double[]){2, 3, 1}, 3 * sizeof(double)) == 0);
    CHECK_NEAR(cuts->temperature, 0.5, 0);
    CHECK(cuts->rule.kind == STK_LABEL_LIKELIEST && cuts->rule.numbers == NULL);
    stk_members_free(&v);
    REQUIRE_OK(find(&v, "graded", STK_VOTE_EQUAL, &t, &err), &err);
    CHECK_INT(v.items[0].info.calibration.rule.kind, STK_LABEL_CUTS);
    stk_members_free(&v);
}

static void scores_weigh(void) {
    stk_error err = {0};
    stk_members v;
    telling t;
    double guess = 100.0 / 3;
    REQUIRE_OK(find(&v, "one folds turned", STK_VOTE_SCORE, &t, &err), &err);
    REQUIRE(v.count == 4);
    CHECK_NEAR(v.items[0].weight, 80 - guess, 1e-9);
    CHECK_NEAR(v.items[1].weight, 50 - guess, 1e-9);
    CHECK_NEAR(v.items[2].weight, (80.0 + 50 + 60) / 3 - guess, 1e-9); /* not known */
    CHECK_NEAR(v.items[3].weight, 60 - guess, 1e-9);
    stk_members_free(&v);
}

static void no_memory_is_told(void) {
    stk_status status = STK_ERR_MEMORY;
    set_up();
    for (int64_t n = 0; n < 5000 && status != STK_OK; n++) {
        stk_error err = {0};
        stk_members v;
        telling t;
        stk_mem_fail_after(n);
        status = find(&v, "one folds turned", STK_VOTE_SCORE, &t, &err);
        stk_mem_fail_after(-1);
        if (status != STK_OK && !strstr(err.message, "out of memory")) {
            CHECK_FAIL("request %d: %s", (int)n, err.message);
        }
        CHECK(status != STK_OK || v.count == 4);
        stk_members_free(&v);
    }
    CHECK_INT(status, STK_OK);
}

/* Classes, labels and numbers are no probabilities of the same thing, even with equal names. */
static void runs_of_other_tasks(void) {
    static const struct {
        const char *runs;
        const char *told;
    } cases[] = {{"one labels", "one predicts classes and "},
                 {"labels numbers", "labels predicts labels and "},
                 {"numbers ranked", "numbers predicts numbers and "}};
    telling t;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        stk_error err = {0};
        stk_members v = {0};
        CHECK_INT(find(&v, cases[i].runs, STK_VOTE_EQUAL, &t, &err), STK_ERR_DATA);
        CHECK_CONTAINS(err.message, cases[i].told);
        CHECK_CONTAINS(err.message, "cannot be averaged; predict with each alone");
        stk_members_free(&v);
    }
    stk_error err = {0};
    stk_members v = {0}; /* tasks of classes may be averaged */
    REQUIRE_OK(find(&v, "one ranked", STK_VOTE_EQUAL, &t, &err), &err);
    CHECK_INT(v.count, 2);
    stk_members_free(&v);
    /* Numbers have no accuracy: a vote by score counts all the same. */
    v = (stk_members){0};
    REQUIRE_OK(find(&v, "numbers", STK_VOTE_SCORE, &t, &err), &err);
    CHECK_NEAR(v.items[0].weight, 1, 1e-12);
    stk_members_free(&v);
}

static const check_test tests[] = {
    TEST(whatever_there_is_votes),
    TEST(what_cannot_vote_is_refused),
    TEST(classes_are_arranged),
    TEST(rules_are_arranged),
    TEST(scores_weigh),
    TEST(runs_of_other_tasks),
    TEST(no_memory_is_told),
};

CHECK_MAIN(tests)
