/*
 * fuzz_yaml.c - configuration files: whatever comes, each option has one of its values, and the
 * values that were taken, written as YAML and read again, are the same.
 */
#include "fuzz_folder.h"

#include "options/options.h"

typedef struct values {
    const char *name;
    int64_t count;
    double share;
    double wait;
    uint64_t bytes;
    bool tune;
    int mode;
    const char *config;
} values;

/* A larger file is refused, and a text may need more bytes when it is written. */
#define MOST_BYTES ((size_t)1 << 20)

static const stk_option list[] = {
    {.name = "name", .aliases = "title", .type = STK_OPTION_TEXT, .offset = offsetof(values, name)},
    {.name = "count",
     .aliases = "num-count n",
     .type = STK_OPTION_INT,
     .offset = offsetof(values, count),
     .fallback = "3",
     .may_be_auto = true,
     .min = 1,
     .max = 1000},
    {.name = "share",
     .type = STK_OPTION_DOUBLE,
     .offset = offsetof(values, share),
     .fallback = "0.5",
     .min = 0,
     .max = 1},
    {.name = "wait",
     .type = STK_OPTION_DURATION,
     .offset = offsetof(values, wait),
     .fallback = "5m"},
    {.name = "memory",
     .type = STK_OPTION_BYTES,
     .offset = offsetof(values, bytes),
     .fallback = "1G"},
    {.name = "tune", .type = STK_OPTION_BOOL, .offset = offsetof(values, tune), .fallback = "true"},
    {.name = "mode",
     .type = STK_OPTION_CHOICE,
     .offset = offsetof(values, mode),
     .fallback = "auto",
     .choices = "auto=true fast slow=32"},
    {.name = "config",
     .type = STK_OPTION_TEXT,
     .offset = offsetof(values, config),
     .momentary = true},
};
static const stk_option_table table = STK_OPTION_TABLE("Fuzzed", list, values);

static const fuzz_seed seeds[] = {
    FUZZ_SEED("name: a\ncount: 7\nshare: 0.25\nwait: 1h30m\nmemory: 2G\ntune: false\nmode: fast\n"),
    FUZZ_SEED("# nothing\n---\ntitle: 'it''s'\nnum_count: auto\n...\n"),
    FUZZ_SEED("%YAML 1.1\n--- {n: 5, mode: \"slow\", share: 1e-3, \"wait\": 00:11:00}\n"),
    FUZZ_SEED("name: >-\n  folded\n  text\n? count\n: 12\ntune: ~\nmemory: !!str 50M\n"),
    FUZZ_SEED("a: &x [1, 2]\nname: *x\n"),
};
FUZZ_PLAN_FILES(seeds)

static stk_status read_config(stk_options **options, stk_error *err) {
    static const stk_option_table *const tables[] = {&table};
    char flag[] = "--config";
    char path[1100];
    char *const argv[] = {flag, path, NULL};
    size_t words = 0;
    bool help = false;
    snprintf(path, sizeof path, "%s", fuzz_path("input.yaml"));
    FUZZ_REQUIRE(stk_options_new(options, "fuzz", tables, 1, err) == STK_OK);
    return stk_options_parse(*options, 2, argv, NULL, 0, &words, &help, err);
}

static void check_values(const stk_options *options) {
    const values *v = stk_options_values(options, &table);
    FUZZ_REQUIRE(stk_is_auto_int(v->count) || (v->count >= 1 && v->count <= 1000));
    FUZZ_REQUIRE(v->share >= 0 && v->share <= 1);
    FUZZ_REQUIRE(v->wait >= 0);
    FUZZ_REQUIRE(v->mode >= 0 && v->mode <= 2);
    FUZZ_REQUIRE(v->name == NULL || v->name[0] != '\0');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    stk_options *options = NULL;
    stk_options *again = NULL;
    stk_error err = {0};
    stk_str first = {0};
    stk_str second = {0};
    fuzz_put("input.yaml", (fuzz_seed){(const char *)data, size});
    stk_status status = read_config(&options, &err);
    FUZZ_REQUIRE(status == STK_OK || err.message[0] != '\0');
    check_values(options);
    if (status == STK_OK) {
        stk_options_yaml(options, &first);
        FUZZ_REQUIRE(stk_str_ok(&first));
    }
    if (status == STK_OK && first.length < MOST_BYTES) {
        fuzz_put("input.yaml", (fuzz_seed){first.text, first.length});
        FUZZ_REQUIRE(read_config(&again, &err) == STK_OK);
        stk_options_yaml(again, &second);
        FUZZ_REQUIRE(strcmp(stk_str_text(&first), stk_str_text(&second)) == 0);
        stk_options_free(again);
    }
    stk_str_free(&first);
    stk_str_free(&second);
    stk_options_free(options);
    return 0;
}
