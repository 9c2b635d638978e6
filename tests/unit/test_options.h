/*
 * test_options.h - one option of every kind, and short ways to set, parse and refuse, for the tests
 * of the options room.
 */
#ifndef STK_TESTS_TEST_OPTIONS_H
#define STK_TESTS_TEST_OPTIONS_H

#include "check.h"

#include <stdint.h>

#include "base/files/file.h"
#include "base/mem.h"
#include "options/options.h"

typedef struct demo {
    const char *data;
    const char *model;
    const char *config;
    int64_t count;
    int64_t batch;
    int64_t free_int;
    double lr;
    double momentum;
    double budget;
    uint64_t memory;
    bool compile;
    bool quiet;
    int precision;
} demo;

typedef struct extra {
    int64_t late;
    stk_option_list folders;
} extra;

enum { AUTO, FP16, BF16, FP32, STRICT };

#define FIELD(name) offsetof(demo, name)

static const stk_option demo_options[] = {
    {.name = "data",
     .aliases = "data_root",
     .type = STK_OPTION_TEXT,
     .offset = FIELD(data),
     .metavar = "PATH",
     .help = "where the pictures are"},
    {.name = "model",
     .aliases = "model_name",
     .type = STK_OPTION_TEXT,
     .offset = FIELD(model),
     .fallback = "auto",
     .may_be_auto = true,
     .metavar = "A|B",
     .help = "network"},
    {.name = "config",
     .momentary = true,
     .type = STK_OPTION_TEXT,
     .offset = FIELD(config),
     .metavar = "FILE",
     .help = "YAML file"},
    {.name = "count",
     .may_change = true,
     .type = STK_OPTION_INT,
     .offset = FIELD(count),
     .fallback = "3",
     .min = -5,
     .max = 10,
     .metavar = "N",
     .help = "how many"},
    {.name = "batch-size",
     .aliases = "batch bs",
     .type = STK_OPTION_INT,
     .offset = FIELD(batch),
     .fallback = "auto",
     .may_be_auto = true,
     .min = 1,
     .max = 65536,
     .metavar = "N",
     .help = "images per step"},
    {.name = "free-int",
     .type = STK_OPTION_INT,
     .offset = FIELD(free_int),
     .fallback = "0",
     .min = 0,
     .max = 1e18,
     .help = "any number"},
    {.name = "lr",
     .aliases = "learning_rate",
     .type = STK_OPTION_DOUBLE,
     .offset = FIELD(lr),
     .fallback = "auto",
     .may_be_auto = true,
     .min = 0,
     .max = 100,
     .metavar = "X",
     .help = "learning rate"},
    {.name = "momentum",
     .type = STK_OPTION_DOUBLE,
     .offset = FIELD(momentum),
     .fallback = "0.9",
     .help = "no range"},
    {.name = "budget",
     .aliases = "time_limit",
     .type = STK_OPTION_DURATION,
     .offset = FIELD(budget),
     .fallback = "auto",
     .may_be_auto = true,
     .min = 1,
     .max = 1e9,
     .metavar = "T",
     .help = "time"},
    {.name = "memory",
     .may_change = true,
     .type = STK_OPTION_BYTES,
     .offset = FIELD(memory),
     .fallback = "auto",
     .may_be_auto = true,
     .metavar = "SIZE",
     .help = "bytes"},
    {.name = "compile",
     .aliases = "compile_model",
     .type = STK_OPTION_BOOL,
     .offset = FIELD(compile),
     .fallback = "true",
     .help = "fused kernels"},
    {.name = "quiet", .type = STK_OPTION_BOOL, .offset = FIELD(quiet), .help = "say less"},
    {.name = "precision",
     .aliases = "amp",
     .type = STK_OPTION_CHOICE,
     .offset = FIELD(precision),
     .fallback = "auto",
     .choices = "auto=true=yes=on fp16=16=16-mixed bf16=bf16-mixed fp32=32=32-true=false=no=off "
                "fp32-strict",
     .help = "number format"},
    {.name = "no-wandb", .type = STK_OPTION_BOOL, .noted = true, .help = "without effect"},
    {.name = "wandb-project",
     .type = STK_OPTION_TEXT,
     .noted = true,
     .metavar = "NAME",
     .help = "without effect"},
    {.name = "subset-seed", .type = STK_OPTION_INT, .noted = true, .help = "without effect"},
};

static const stk_option_table demo_table = STK_OPTION_TABLE("Demo", demo_options, demo);

static const stk_option extra_options[] = {
    {.name = "late-stage-of-a-very-long-option",
     .type = STK_OPTION_INT,
     .offset = offsetof(extra, late),
     .fallback = "1",
     .metavar = "N",
     .help = "a help text that is so long that it must be broken into several lines, because no "
             "terminal is wide enough to show all of it in a single one of its rows"},
    {.name = "folder",
     .aliases = "dir",
     .type = STK_OPTION_LIST,
     .offset = offsetof(extra, folders),
     .metavar = "DIR",
     .help = "where to look"},
};

static const stk_option_table extra_table = STK_OPTION_TABLE("More", extra_options, extra);

static const stk_option_table *const tables[] = {&demo_table, &extra_table};

static inline stk_options *fresh(void) {
    stk_options *options = NULL;
    stk_error err = {0};
    if (stk_options_new(&options, "train", tables, 2, &err) != STK_OK) {
        CHECK_FAIL("no options: %s", err.message);
        exit(1);
    }
    return options;
}

static inline const demo *values(const stk_options *options) {
    return stk_options_values(options, &demo_table);
}

/* The values of the list are those of the text, divided by '|'. */
static inline void check_list(const stk_options *options, const char *expected) {
    const stk_option_list *list =
        &((const extra *)stk_options_values(options, &extra_table))->folders;
    char text[200] = "";
    for (size_t i = 0; i < list->count; i++) {
        size_t length = strlen(text);
        snprintf(text + length, sizeof text - length, "%s%s", i > 0 ? "|" : "", list->items[i]);
    }
    CHECK_STR(text, expected);
}

/* Sets an option, which must be refused with a sentence that holds every one of the parts. */
static inline void refuses(const char *name, const char *value, const char *part,
                           const char *more) {
    stk_options *options = fresh();
    stk_error err = {0};
    if (stk_options_set(options, name, value, &err) != STK_ERR_USAGE) {
        CHECK_FAIL("%s = '%s' is accepted", name, value);
    }
    CHECK_CONTAINS(err.message, name);
    CHECK_CONTAINS(err.message, part);
    CHECK_CONTAINS(err.message, more);
    stk_options_free(options);
}

/* ---- command lines ---- */

typedef struct parsed {
    stk_status status;
    stk_error err;
    stk_options *options;
    const char *words[2];
    size_t count;
    bool help;
} parsed;

/* Parses a command line whose words are divided by '|'. */
static inline parsed parse(const char *line) {
    static char text[2048];
    char *argv[32];
    int argc = 0;
    parsed p = {.options = fresh()};
    snprintf(text, sizeof text, "%s", line);
    for (char *rest = text; rest != NULL && line[0] != '\0';) {
        argv[argc++] = strsep(&rest, "|");
    }
    p.status = stk_options_parse(p.options, argc, argv, p.words, 2, &p.count, &p.help, &p.err);
    return p;
}

static inline void refuses_line(const char *line, const char *part, const char *more) {
    parsed p = parse(line);
    if (p.status != STK_ERR_USAGE) {
        CHECK_FAIL("'%s' is accepted", line);
    }
    CHECK_CONTAINS(p.err.message, part);
    CHECK_CONTAINS(p.err.message, more);
    stk_options_free(p.options);
}

static char config_path[300];

static inline const char *config_of(const char *text, size_t size) {
    snprintf(config_path, sizeof config_path, "%s/c.yaml", check_folder());
    stk_error err = {0};
    if (stk_file_write(config_path, text, size, &err) != STK_OK) {
        CHECK_FAIL("%s", err.message);
    }
    return config_path;
}

#endif
