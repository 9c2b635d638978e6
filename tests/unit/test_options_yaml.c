/*
 * test_options_yaml.c - options from YAML files: what is read, what is refused at which line, who
 * wins, and that the args.yaml of a run reads back as what it was made from.
 */
#include "test_options.h"

static void a_missing_file_is_told(void) {
    stk_options *options = fresh();
    stk_error err = {0};
    CHECK_INT(stk_options_load(options, "/no/such/file.yaml", &err), STK_ERR_USAGE);
    CHECK_CONTAINS(err.message, "/no/such/file.yaml");
    CHECK_CONTAINS(err.message, "--config");
    memset(&err, 0, sizeof err);
    CHECK_INT(stk_options_load(options, check_folder(), &err), STK_ERR_USAGE);
    CHECK_CONTAINS(err.message, "folder");
    stk_options_free(options);
    refuses_line("--config|/no/such", "/no/such", "");
    refuses_line("--config=", "--config", "");
    refuses_line("--config", "--config needs a value", "");
}

#ifndef STK_HAVE_YAML

static void a_build_without_yaml_says_so(void) {
    stk_options *options = fresh();
    stk_error err = {0};
    CHECK_INT(stk_options_load(options, config_of("count: 1\n", 9), &err), STK_ERR_USAGE);
    CHECK_CONTAINS(err.message, "c.yaml");
    CHECK_CONTAINS(err.message, "no YAML");
    CHECK_CONTAINS(err.message, "flags");
    CHECK_INT(values(options)->count, 3);
    stk_options_free(options);
}

#else

static void refuses_file_of(const char *text, size_t size, const char *part, const char *more) {
    stk_options *options = fresh();
    stk_error err = {0};
    if (stk_options_load(options, config_of(text, size), &err) != STK_ERR_USAGE) {
        CHECK_FAIL("accepted: %s", text);
    }
    CHECK_CONTAINS(err.message, config_path);
    CHECK_CONTAINS(err.message, part);
    CHECK_CONTAINS(err.message, more);
    stk_options_free(options);
}

static void refuses_file(const char *text, const char *part, const char *more) {
    refuses_file_of(text, strlen(text), part, more);
}

static void a_file_is_read(void) {
    static const char text[] = "# a comment\n"
                               "data_root: \"/my data\"\n"
                               "batch_size: 64   # more\n"
                               "learning-rate: 0.1\n"
                               "amp: true\n"
                               "compile_model: no\n"
                               "time_limit: 00:11:00\n"
                               "no_wandb: true\n"
                               "model_name: ~\n"
                               "memory: null\n"
                               "momentum:\n"
                               "count: '-5'\n";
    stk_options *options = fresh();
    stk_error err = {0};
    REQUIRE_OK(stk_options_load(options, config_of(text, strlen(text)), &err), &err);
    const demo *v = values(options);
    CHECK_STR(v->data, "/my data");
    CHECK_INT(v->batch, 64);
    CHECK_NEAR(v->lr, 0.1, 0);
    CHECK_INT(v->precision, AUTO);
    CHECK(!v->compile);
    CHECK_NEAR(v->budget, 660, 0);
    CHECK(v->model == NULL);
    CHECK(v->memory == STK_AUTO_BYTES);
    CHECK_NEAR(v->momentum, 0.9, 0);
    CHECK_INT(v->count, -5);
    CHECK_INT(stk_options_source(options, "batch"), STK_FROM_CONFIG);
    CHECK_INT(stk_options_source(options, "momentum"), STK_FROM_DEFAULT);
    stk_str told = {0};
    stk_options_noted(options, &told);
    CHECK_STR(stk_str_text(&told), "no-wandb");
    stk_str_free(&told);
    stk_options_free(options);
}

static void lists_are_read(void) {
    static const struct {
        const char *text, *list;
    } cases[] = {
        {"folder: a\n", "a"},
        {"folder:\n", ""},
        {"folder: []\ncount: 7\n", ""},
        {"folder: [a, 'b c']\ncount: 7\n", "a|b c"},
        {"dir:\n  - a\n  - ~\n  - b\nquiet: true\n", "a|b"},
        {"folder: a\ndir: [b]\n", "a|b"},
    };
    stk_error err = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        stk_options *options = fresh();
        const char *path = config_of(cases[i].text, strlen(cases[i].text));
        REQUIRE_OK(stk_options_load(options, path, &err), &err);
        check_list(options, cases[i].list);
        CHECK_INT(values(options)->count, strstr(cases[i].text, "count") != NULL ? 7 : 3);
        CHECK_INT(values(options)->quiet, strstr(cases[i].text, "quiet") != NULL);
        /* Flags do not add to the file's: they win, and also where they stand before it. */
        REQUIRE_OK(stk_options_set(options, "folder", "f", &err), &err);
        REQUIRE_OK(stk_options_set(options, "folder", "g", &err), &err);
        check_list(options, "f|g");
        REQUIRE_OK(stk_options_load(options, path, &err), &err);
        check_list(options, "f|g");
        stk_options_free(options);
    }
    refuses_file("folder: [a, [b]]\n", "line 1", "'folder' is a list");
    refuses_file("folder:\n  - a\n  - b: c\n", "line 3", "'folder' holds further keys");
    refuses_file("nofolder: [a]\n", "line 1", "'nofolder' is a list");
}

static void odd_but_good_files(void) {
    static const char *const texts[] = {"",
                                        "\n\n# only a comment\n",
                                        "---\ncount: 7\n...\n",
                                        "{count: 7, quiet: true}",
                                        "\357\273\277count: 7\r\nquiet: true\r\n",
                                        "? count\n: 7\n",
                                        "count: 7\ncount: 8\n"};
    static const int64_t counts[] = {3, 3, 7, 7, 7, 7, 8};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        stk_options *options = fresh();
        stk_error err = {0};
        REQUIRE_OK(stk_options_load(options, config_of(texts[i], strlen(texts[i])), &err), &err);
        CHECK_INT(values(options)->count, counts[i]);
        stk_options_free(options);
    }
}

static void bad_files_name_the_line(void) {
    refuses_file("count: 1\n\nbacth: 3\n", "line 3", "did you mean batch");
    refuses_file("count: 1\nlearning_rat: 3\n", "line 2", "did you mean learning-rate");
    refuses_file("bacth:\n", "line 1", "did you mean batch");
    refuses_file("quiet: true\ncount: 11\n", "line 2: count: '11'", "from -5 to 10");
    refuses_file("count: ''\n", "line 1: count: ''", "a whole number");
    refuses_file("model:\n  name: x\n", "line 2", "'model' holds further keys");
    refuses_file("count: [1, 2]\n", "line 1", "'count' is a list");
    refuses_file("quiet: true\ncount:\n  - 1\n", "line 3", "'count' is a list");
    refuses_file("- count\n", "line 1", "expected `name: value`");
    refuses_file("[]\n", "line 1", "expected `name: value`");
    refuses_file("count\n", "line 1", "expected `name: value`");
    refuses_file("data: a\n  quiet: true\n", "line 2", "not valid YAML");
    refuses_file("count: \"1\n", "line", "not valid YAML");
    refuses_file("\tcount: 1\n", "line 1", "not valid YAML");
    refuses_file("count: &a 1\nfree_int: *a\n", "line 2", "aliases");
    refuses_file("config: other.yaml\n", "line 1", "cannot name another");
    refuses_file("data: \"a\\0b\"\n", "line 1", "NUL");
    refuses_file_of("count: 1\n\0\n", 11, "line 2", "not valid YAML");
    refuses_file("count: 1\nquiet: true\ndata: \xFF\xFE\n", "line 3", "not valid YAML");
    refuses_file("{a: {b: {c: 1}}}", "line 1", "'a' holds further keys");
    refuses_file("? {a: 1}\n: 2\n", "line 1", "");
    refuses_file("null: 1\n", "line 1", "no such option");
    refuses_file("'': 1\n", "line 1", "no such option");
}

static void a_large_file_is_refused(void) {
    size_t size = ((size_t)1 << 20) + 10;
    char *text = malloc(size + 1);
    REQUIRE(text != NULL);
    memset(text, '#', size);
    text[size] = '\0';
    refuses_file(text, "larger", "");
    free(text);
}

static void flags_win_wherever_they_stand(void) {
    static const char text[] = "count: 9\nbatch_size: 64\nquiet: true\n";
    const char *path = config_of(text, strlen(text));
    static const char *const lines[] = {"--count|1|--config|%s|--no-quiet",
                                        "--config|%s|--count|1|--quiet=false",
                                        "--no-quiet|--count=1|--config=%s"};
    for (int i = 0; i < 3; i++) {
        char line[512];
        snprintf(line, sizeof line, lines[i], path);
        parsed p = parse(line);
        REQUIRE_OK(p.status, &p.err);
        CHECK_INT(values(p.options)->count, 1);
        CHECK_INT(values(p.options)->batch, 64);
        CHECK(!values(p.options)->quiet);
        CHECK_INT(stk_options_source(p.options, "count"), STK_FROM_FLAG);
        CHECK_INT(stk_options_source(p.options, "batch"), STK_FROM_CONFIG);
        stk_options_free(p.options);
    }
}

/* The order of --config and a flag must not decide whether a wrong file is noticed. */
static void a_bad_value_that_loses_is_still_bad(void) {
    const char *path = config_of("count: eleven\n", 14);
    static const char *const lines[] = {"--count|1|--config|%s", "--config|%s|--count|1"};
    for (int i = 0; i < 2; i++) {
        char line[512];
        snprintf(line, sizeof line, lines[i], path);
        refuses_line(line, "line 1: count: 'eleven'", "from -5 to 10");
    }
    stk_options *options = fresh();
    REQUIRE_OK(stk_options_set(options, "count", "1", NULL), &(stk_error){0});
    CHECK_INT(stk_options_load(options, path, NULL), STK_ERR_USAGE);
    CHECK_INT(values(options)->count, 1);
    stk_options_free(options);
}

static void a_second_file_wins_over_the_first(void) {
    char line[700];
    char first[300];
    snprintf(first, sizeof first, "%s", config_of("count: 4\nfree_int: 4\n", 21));
    snprintf(line, sizeof line, "--config|%s|--config|%s", first, config_of("count: 5\n", 9));
    parsed p = parse(line);
    REQUIRE_OK(p.status, &p.err);
    CHECK_INT(values(p.options)->count, 5);
    CHECK_INT(values(p.options)->free_int, 4);
    stk_options_free(p.options);
}

/* ---- args.yaml and back ---- */

/* Writes the values of `from` as YAML, loads them into new options and compares. */
static void comes_back(const stk_options *from, const char *what) {
    stk_str yaml = {0};
    stk_error err = {0};
    stk_options *to = fresh();
    stk_options_yaml(from, &yaml);
    CHECK(stk_str_ok(&yaml));
    if (stk_options_load(to, config_of(yaml.text, yaml.length), &err) != STK_OK) {
        CHECK_FAIL("%s: %s in\n%s", what, err.message, yaml.text);
    }
    for (size_t t = 0; t < 2; t++) {
        for (size_t i = 0; i < tables[t]->count; i++) {
            const stk_option *option = &tables[t]->options[i];
            if (!option->noted && strcmp(option->name, "config") != 0) {
                CHECK_STR(stk_options_get(to, option->name), stk_options_get(from, option->name));
            }
        }
    }
    const demo *a = values(from);
    const demo *b = values(to);
    CHECK((a->data == NULL) == (b->data == NULL));
    CHECK((a->model == NULL) == (b->model == NULL));
    CHECK(a->count == b->count && a->batch == b->batch && a->free_int == b->free_int);
    CHECK(memcmp(&a->lr, &b->lr, sizeof a->lr) == 0 || (isnan(a->lr) && isnan(b->lr)));
    CHECK(a->momentum == b->momentum && a->memory == b->memory);
    CHECK(a->budget == b->budget || (isnan(a->budget) && isnan(b->budget)));
    CHECK(a->compile == b->compile && a->quiet == b->quiet && a->precision == b->precision);
    stk_str_free(&yaml);
    stk_options_free(to);
}

static void values_come_back(void) {
    static const char *const sets[][2] = {
        {"count", "-5"},        {"count", " 7\t"},    {"count", "\n7"},      {"lr", "1e-05"},
        {"lr", "+.5"},          {"momentum", "-3"},   {"memory", "50 G"},    {"memory", "64MiB"},
        {"budget", "00:11:00"}, {"budget", "2h30m"},  {"budget", "660"},     {"budget", "1h 30m"},
        {"quiet", "yes"},       {"compile", "off"},   {"compile", " 0"},     {"precision", "true"},
        {"precision", "16"},    {"precision", "off"}, {"model", ""},         {"model", "resnet18"},
        {"batch", "auto"},      {"precision", "OFF"}, {"free-int", "123456"}};
    stk_options *options = fresh();
    comes_back(options, "defaults");
    stk_options_free(options);
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        options = fresh();
        stk_error err = {0};
        REQUIRE_OK(stk_options_set(options, sets[i][0], sets[i][1], &err), &err);
        comes_back(options, sets[i][1]);
        stk_options_free(options);
    }
}

static void hostile_texts_come_back(void) {
    static const char *const texts[] = {"a b",
                                        " leading",
                                        "trailing ",
                                        "\ttab",
                                        "a\tb",
                                        "two\nlines",
                                        "\nfirst",
                                        "last\n",
                                        "\n",
                                        "a\r\nb",
                                        "'single'",
                                        "\"double\"",
                                        "it's",
                                        "a: b",
                                        "a:b",
                                        ":",
                                        "#no comment",
                                        "a #b",
                                        "a#b",
                                        "- item",
                                        "-",
                                        "--",
                                        "---",
                                        "...",
                                        "? key",
                                        "!tag",
                                        "&anchor",
                                        "*alias",
                                        "%dir",
                                        "@at",
                                        "`tick`",
                                        "[1, 2]",
                                        "{a: b}",
                                        "|",
                                        ">",
                                        "null",
                                        "Null",
                                        "~",
                                        "true",
                                        "False",
                                        "yes",
                                        "NO",
                                        "on",
                                        "off",
                                        "123",
                                        "1e5",
                                        "0x1f",
                                        ".inf",
                                        "=",
                                        "<<",
                                        "a, b",
                                        "back\\slash",
                                        "\\n",
                                        "\\",
                                        "C:\\new\\x",
                                        "\x01\x02\x1b",
                                        "\x7f",
                                        "gr\xC3\xBC\xC3\x9F",
                                        "\xE6\x97\xA5\xE6\x9C\xAC",
                                        "\xF0\x9F\x94\xA5",
                                        "a\302\205b",
                                        "\xC2\x80",
                                        "\xC2\x9F",
                                        "\xC2\xA0",
                                        "a\342\200\250b\xE2\x80\xA9",
                                        "\357\273\277bom",
                                        "\xEF\xBF\xBE",
                                        "\xEF\xBF\xBF",
                                        "\xEF\xBF\xBD",
                                        "$HOME",
                                        "a\\u2028b",
                                        "data_root: x\ncount: 5",
                                        "x\n---\ncount: 5"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        stk_options *options = fresh();
        stk_error err = {0};
        REQUIRE_OK(stk_options_set(options, "data", texts[i], &err), &err);
        REQUIRE_OK(stk_options_set(options, "model", texts[i], &err), &err);
        comes_back(options, texts[i]);
        stk_options_free(options);
    }
}

static void resolved_values_come_back(void) {
    stk_options *options = fresh();
    stk_error err = {0};
    REQUIRE_OK(stk_options_resolve(options, "batch", "32", "auto:\ncount: 9", &err), &err);
    REQUIRE_OK(stk_options_resolve(options, "data", "/a b", "made absolute", &err), &err);
    stk_str yaml = {0};
    stk_options_yaml(options, &yaml);
    stk_options *to = fresh();
    REQUIRE_OK(stk_options_load(to, config_of(yaml.text, yaml.length), &err), &err);
    CHECK_INT(values(to)->batch, 32);
    CHECK_INT(values(to)->count, 3);
    CHECK_STR(values(to)->data, "/a b");
    stk_str_free(&yaml);
    stk_options_free(to);
    stk_options_free(options);
}

#endif

static const check_test tests[] = {
    TEST(a_missing_file_is_told),
#ifndef STK_HAVE_YAML
    TEST(a_build_without_yaml_says_so),
#else
    TEST(a_file_is_read),
    TEST(lists_are_read),
    TEST(odd_but_good_files),
    TEST(bad_files_name_the_line),
    TEST(a_large_file_is_refused),
    TEST(flags_win_wherever_they_stand),
    TEST(a_bad_value_that_loses_is_still_bad),
    TEST(a_second_file_wins_over_the_first),
    TEST(values_come_back),
    TEST(hostile_texts_come_back),
    TEST(resolved_values_come_back),
#endif
};

CHECK_MAIN(tests)
