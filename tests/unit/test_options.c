/*
 * test_options.c - option tables: values of every type from calls and flags, what is refused with
 * which words, and the texts that come out of the tables.
 */
#include "test_options.h"

#include "base/text/json.h"

/* ---- values ---- */

static void defaults_are_there(void) {
    stk_options *options = fresh();
    const demo *v = values(options);
    CHECK(v->data == NULL);
    CHECK(v->model == NULL);
    CHECK_INT(v->count, 3);
    CHECK(stk_is_auto_int(v->batch));
    CHECK(stk_is_auto_double(v->lr));
    CHECK_NEAR(v->momentum, 0.9, 0);
    CHECK(stk_is_auto_double(v->budget));
    CHECK(v->memory == STK_AUTO_BYTES);
    CHECK(v->compile);
    CHECK(!v->quiet);
    CHECK_INT(v->precision, AUTO);
    CHECK_STR(stk_options_get(options, "data"), "");
    CHECK_STR(stk_options_get(options, "model"), "auto");
    CHECK_STR(stk_options_get(options, "quiet"), "false");
    CHECK(stk_options_get(options, "nothing") == NULL);
    CHECK_INT(stk_options_source(options, "count"), STK_FROM_DEFAULT);
    CHECK_INT(stk_options_source(options, "nothing"), STK_FROM_DEFAULT);
    CHECK_INT(((const extra *)stk_options_values(options, &extra_table))->late, 1);
    stk_option_table other = {0};
    CHECK(stk_options_values(options, &other) == NULL);
    stk_options_free(options);
    stk_options_free(NULL);
}

static void every_type_is_set(void) {
    stk_options *options = fresh();
    const demo *v = values(options);
    stk_error err = {0};
    REQUIRE_OK(stk_options_set(options, "data", "/my data", &err), &err);
    REQUIRE_OK(stk_options_set(options, "count", "-5", &err), &err);
    REQUIRE_OK(stk_options_set(options, "batch-size", " 64 ", &err), &err);
    REQUIRE_OK(stk_options_set(options, "lr", "1e-3", &err), &err);
    REQUIRE_OK(stk_options_set(options, "momentum", "-2.5", &err), &err);
    REQUIRE_OK(stk_options_set(options, "budget", "2h30m", &err), &err);
    REQUIRE_OK(stk_options_set(options, "memory", "1.5G", &err), &err);
    REQUIRE_OK(stk_options_set(options, "compile", "off", &err), &err);
    REQUIRE_OK(stk_options_set(options, "quiet", "YES", &err), &err);
    REQUIRE_OK(stk_options_set(options, "precision", "bf16", &err), &err);
    CHECK_STR(v->data, "/my data");
    CHECK_INT(v->count, -5);
    CHECK_INT(v->batch, 64);
    CHECK_NEAR(v->lr, 1e-3, 0);
    CHECK_NEAR(v->momentum, -2.5, 0);
    CHECK_NEAR(v->budget, 9000, 0);
    CHECK(v->memory == 3ull << 29);
    CHECK(!v->compile);
    CHECK(v->quiet);
    CHECK_INT(v->precision, BF16);
    CHECK_INT(stk_options_source(options, "lr"), STK_FROM_FLAG);
    CHECK_STR(stk_options_get(options, "budget"), "2h30m");
    stk_options_free(options);
}

static void auto_can_be_asked_for_again(void) {
    stk_options *options = fresh();
    const demo *v = values(options);
    static const char *const names[] = {"model", "batch-size", "lr", "budget", "memory"};
    static const char *const given[] = {"resnet18", "1", "1", "1", "1"};
    stk_error err = {0};
    for (int i = 0; i < 5; i++) {
        REQUIRE_OK(stk_options_set(options, names[i], given[i], &err), &err);
    }
    CHECK_STR(v->model, "resnet18");
    CHECK(v->memory == 1 && v->batch == 1 && v->lr == 1 && v->budget == 1);
    for (int i = 0; i < 5; i++) {
        REQUIRE_OK(stk_options_set(options, names[i], i % 2 == 0 ? "auto" : "AUTO", &err), &err);
    }
    CHECK(v->model == NULL && stk_is_auto_int(v->batch) && stk_is_auto_double(v->lr));
    CHECK(stk_is_auto_double(v->budget) && v->memory == STK_AUTO_BYTES);
    stk_options_free(options);
    refuses("count", "auto", "a whole number from -5 to 10", "");
}

static void the_ends_of_a_range_are_inside(void) {
    stk_options *options = fresh();
    stk_error err = {0};
    static const char *const good[][2] = {
        {"count", "-5"}, {"count", "10"}, {"batch-size", "65536"}, {"lr", "0"},
        {"lr", "100"},   {"budget", "1"}, {"momentum", "-1e300"}};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        REQUIRE_OK(stk_options_set(options, good[i][0], good[i][1], &err), &err);
    }
    stk_options_free(options);
    refuses("count", "-6", "'-6'", "from -5 to 10");
    refuses("count", "11", "'11'", "from -5 to 10");
    refuses("batch-size", "0", "'0'", "auto or a whole number from 1 to 65536");
    refuses("lr", "100.1", "'100.1'", "auto or a number from 0 to 100");
    refuses("lr", "-0.1", "'-0.1'", "from 0 to 100");
    refuses("budget", "0", "'0'", "seconds");
    refuses("free-int", "-1", "'-1'", "a whole number of at least 0");
}

static void bad_values_are_refused(void) {
    static const char *const bad[][3] = {
        {"count", "", "a whole number"},
        {"count", "3.5", "a whole number"},
        {"count", "3x", "a whole number"},
        {"count", "0x3", "a whole number"},
        {"free-int", "99999999999999999999", "a whole number"},
        {"lr", "fast", "a number"},
        {"lr", "nan", "a number"},
        {"lr", "inf", "a number"},
        {"momentum", "1,5", "a number"},
        {"budget", "11x", "a time such as"},
        {"budget", "-5m", "a time such as"},
        {"memory", "-1", "a size such as"},
        {"memory", "5X", "a size such as"},
        {"compile", "maybe", "true or false"},
        {"compile", "", "true or false"},
        {"precision", "fp8", "one of auto, fp16, bf16, fp32, fp32-strict"},
        {"precision", "", "one of auto"},
        {"precision", "auto=true", "one of auto"},
        {"precision", "fp16 bf16", "one of auto"},
        {"precision", "fp", "one of auto"},
        {"subset-seed", "x", "a whole number"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        refuses(bad[i][0], bad[i][1], bad[i][2], "");
    }
}

static void a_refused_value_changes_nothing(void) {
    stk_options *options = fresh();
    stk_error err = {0};
    REQUIRE_OK(stk_options_set(options, "count", "7", &err), &err);
    CHECK_INT(stk_options_set(options, "count", "700", NULL), STK_ERR_USAGE);
    CHECK_INT(values(options)->count, 7);
    CHECK_STR(stk_options_get(options, "count"), "7");
    CHECK_INT(stk_options_set(options, "quiet", "hm", NULL), STK_ERR_USAGE);
    CHECK_INT(stk_options_source(options, "quiet"), STK_FROM_DEFAULT);
    stk_options_free(options);
}

static void choices_have_other_spellings(void) {
    static const struct {
        const char *text;
        int meant;
    } spellings[] = {{"auto", AUTO},          {"true", AUTO}, {"True", AUTO},      {"on", AUTO},
                     {"fp16", FP16},          {"16", FP16},   {"16-mixed", FP16},  {"FP16", FP16},
                     {"bf16-mixed", BF16},    {"32", FP32},   {"32-true", FP32},   {"false", FP32},
                     {"fp32-strict", STRICT}, {"no", FP32},   {"BF16-Mixed", BF16}};
    for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++) {
        stk_options *options = fresh();
        stk_error err = {0};
        CHECK_INT(stk_options_set(options, "amp", spellings[i].text, &err), STK_OK);
        if (values(options)->precision != spellings[i].meant) {
            CHECK_FAIL("%s is choice %d", spellings[i].text, values(options)->precision);
        }
        stk_options_free(options);
    }
}

static void aliases_and_dashes_are_the_same(void) {
    static const char *const names[] = {"batch-size", "batch_size", "batch", "bs"};
    stk_options *options = fresh();
    stk_error err = {0};
    char text[8];
    for (int i = 0; i < 4; i++) {
        snprintf(text, sizeof text, "%d", i + 1);
        REQUIRE_OK(stk_options_set(options, names[i], text, &err), &err);
        CHECK_INT(values(options)->batch, i + 1);
        CHECK_STR(stk_options_get(options, names[3 - i]), text);
    }
    REQUIRE_OK(stk_options_set(options, "learning-rate", "1", &err), &err);
    CHECK_NEAR(values(options)->lr, 1, 0);
    CHECK(stk_options_get(options, "batch-siz") == NULL);
    CHECK(stk_options_get(options, "batch-size-") == NULL);
    CHECK(stk_options_get(options, "Batch") == NULL);
    CHECK(stk_options_get(options, "") == NULL);
    CHECK(stk_options_get(options, "batch bs") == NULL);
    stk_options_free(options);
}

static void unknown_names_get_the_nearest(void) {
    refuses("batchsize", "1", "did you mean batch-size", "'train'");
    refuses("presicion", "1", "did you mean precision", "stoker train --help");
    refuses("learning_rat", "1", "did you mean learning-rate", "");
    refuses("tme_limit", "1", "did you mean time-limit", "");
    stk_options *options = fresh();
    stk_error err = {0};
    CHECK_INT(stk_options_set(options, "zzzzzz", "1", &err), STK_ERR_USAGE);
    CHECK(strstr(err.message, "did you mean") == NULL);
    char *large = malloc(5001);
    REQUIRE(large != NULL);
    memset(large, 'x', 5000);
    large[5000] = '\0';
    CHECK_INT(stk_options_set(options, large, "1", NULL), STK_ERR_USAGE);
    CHECK_INT(stk_options_set(options, "data", large, &err), STK_OK);
    CHECK_STR(values(options)->data, large);
    free(large);
    stk_options_free(options);
}

/* ---- command lines ---- */

static void flags_are_read(void) {
    parsed p =
        parse("one|--count=7|--lr|-0|--quiet|--no-compile|two|--data=a=b|--bs|5|--memory|1k");
    REQUIRE_OK(p.status, &p.err);
    const demo *v = values(p.options);
    CHECK_INT(v->count, 7);
    CHECK_NEAR(v->lr, 0, 0);
    CHECK(v->quiet && !v->compile);
    CHECK_STR(v->data, "a=b");
    CHECK_INT(v->batch, 5);
    CHECK_INT(v->memory, 1024);
    CHECK_INT(p.count, 2);
    CHECK_STR(p.words[0], "one");
    CHECK_STR(p.words[1], "two");
    CHECK(!p.help);
    stk_options_free(p.options);
}

static void nothing_is_a_fine_command_line(void) {
    parsed p = parse("");
    CHECK_INT(p.status, STK_OK);
    CHECK_INT(p.count, 0);
    stk_options_free(p.options);
}

static void truths_come_in_four_ways(void) {
    static const struct {
        const char *line;
        bool compile;
    } lines[] = {
        {"--compile", true},          {"--compile|true", true},   {"--compile|false", false},
        {"--compile=false", false},   {"--compile=1", true},      {"--no-compile", false},
        {"--no_compile", false},      {"--compile|False", false}, {"--compile_model=off", false},
        {"--no-compile-model", false}};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        parsed p = parse(lines[i].line);
        CHECK_INT(p.status, STK_OK);
        CHECK_INT(p.count, 0);
        if (values(p.options)->compile != lines[i].compile) {
            CHECK_FAIL("%s does not work", lines[i].line);
        }
        stk_options_free(p.options);
    }
    parsed p = parse("--compile|yes");
    CHECK_INT(p.count, 1); /* a word of its own: a folder may be called so */
    stk_options_free(p.options);
}

static void lines_that_are_refused(void) {
    refuses_line("--count", "--count needs a value", "a whole number from -5 to 10");
    refuses_line("--count|--lr", "--count needs a value", "");
    refuses_line("--amp", "--amp needs a value", "one of auto");
    refuses_line("--no-count", "--no-count", "no such option");
    refuses_line("--no-compile=true", "--no-compile takes no value", "--compile=false");
    refuses_line("--compile=", "--compile", "true or false");
    refuses_line("--cuont|3", "--cuont", "did you mean --count");
    refuses_line("--learning-rte|3", "--learning-rte", "did you mean --learning-rate");
    refuses_line("--count=99", "--count: '99'", "from -5 to 10");
    refuses_line("-q", "-q", "two dashes");
    refuses_line("-count|3", "-count", "two dashes");
    refuses_line("--=3", "no such option", "");
    refuses_line("--no-", "no such option", "");
    refuses_line("a|b|c", "'c' is one word too many", "stoker train --help");
    refuses_line("--|a|--count|c", "'c' is one word too many", "");
    refuses_line("--subset-seed|x", "--subset-seed", "a whole number");
}

static void two_dashes_end_the_options(void) {
    parsed p = parse("--count|4|--|--quiet|-x");
    CHECK_INT(p.status, STK_OK);
    CHECK_INT(p.count, 2);
    CHECK_STR(p.words[0], "--quiet");
    CHECK_STR(p.words[1], "-x");
    CHECK(!values(p.options)->quiet);
    stk_options_free(p.options);
    p = parse("-|--");
    CHECK_INT(p.status, STK_OK);
    CHECK_INT(p.count, 1);
    CHECK_STR(p.words[0], "-");
    stk_options_free(p.options);
}

static void help_ends_the_reading(void) {
    parsed p = parse("--count|4|--help|--nonsense");
    CHECK_INT(p.status, STK_OK);
    CHECK(p.help);
    stk_options_free(p.options);
    p = parse("-h");
    CHECK(p.help && p.status == STK_OK);
    stk_options_free(p.options);
    p = parse("--|--help");
    CHECK(!p.help && p.count == 1);
    stk_options_free(p.options);
}

static void a_later_flag_wins(void) {
    parsed p = parse("--count|1|--count|2|--quiet|--no-quiet");
    CHECK_INT(values(p.options)->count, 2);
    CHECK(!values(p.options)->quiet);
    stk_options_free(p.options);
}

static void a_list_takes_every_flag(void) {
    static const struct {
        const char *line, *list, *last;
    } cases[] = {
        {"", "", ""},
        {"--folder|a", "a", "a"},
        {"--folder|a|--count|4|--dir=b c|--folder|a", "a|b c|a", "a"},
        {"--folder=|--folder|a|--folder=", "a", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        parsed p = parse(cases[i].line);
        CHECK_INT(p.status, STK_OK);
        check_list(p.options, cases[i].list);
        CHECK_STR(stk_options_get(p.options, "folder"), cases[i].last);
        stk_str out = {0};
        stk_options_yaml(p.options, &out);
        stk_options_json(p.options, &out);
        CHECK(strstr(stk_str_text(&out), "folder") == NULL); /* of one call alone */
        stk_str_free(&out);
        stk_options_free(p.options);
    }
    refuses_line("--folder", "--folder needs a value", "text, once or more");
}

static void noted_options_are_told(void) {
    parsed p = parse("--no_wandb|--wandb_project|imagenet|--count|1");
    stk_str told = {0};
    REQUIRE_OK(p.status, &p.err);
    stk_options_noted(p.options, &told);
    CHECK_STR(stk_str_text(&told), "no-wandb, wandb-project");
    stk_str_clear(&told);
    stk_options_yaml(p.options, &told);
    CHECK(strstr(stk_str_text(&told), "wandb") == NULL);
    stk_str_free(&told);
    stk_options_free(p.options);
    p = parse("");
    stk_options_noted(p.options, &told);
    CHECK_STR(stk_str_text(&told), "");
    stk_options_free(p.options);
}

/* ---- texts ---- */

static void resolving_shows_and_keeps_the_field(void) {
    stk_options *options = fresh();
    stk_error err = {0};
    char buf[64];
    CHECK_STR(stk_options_show(options, "batch", buf, sizeof buf), "auto (default)");
    REQUIRE_OK(stk_options_resolve(options, "batch_size", "32", "auto", &err), &err);
    CHECK_STR(stk_options_show(options, "bs", buf, sizeof buf), "32 (auto)");
    CHECK_STR(stk_options_get(options, "batch"), "32");
    CHECK(stk_is_auto_int(values(options)->batch));
    REQUIRE_OK(stk_options_resolve(options, "batch", "16", "less memory", &err), &err);
    CHECK_STR(stk_options_show(options, "batch", buf, sizeof buf), "16 (less memory)");
    REQUIRE_OK(stk_options_set(options, "count", "5", &err), &err);
    CHECK_STR(stk_options_show(options, "count", buf, sizeof buf), "5");
    CHECK_STR(stk_options_show(options, "nothing", buf, sizeof buf), "?");
    CHECK_STR(stk_options_show(options, "batch", buf, 5), "16 (");
    CHECK_INT(stk_options_resolve(options, "nothing", "1", "x", &err), STK_ERR_INTERNAL);
    CHECK_CONTAINS(err.message, "nothing");
    /* What is set afterwards counts: the options may serve a second run. */
    memset(&err, 0, sizeof err);
    REQUIRE_OK(stk_options_set(options, "batch", "8", &err), &err);
    CHECK_STR(stk_options_get(options, "batch"), "8");
    CHECK_STR(stk_options_show(options, "batch", buf, sizeof buf), "8");
    stk_options_free(options);
}

static void yaml_looks_as_people_write_it(void) {
    stk_options *options = fresh();
    stk_error err = {0};
    stk_str out = {0};
    REQUIRE_OK(stk_options_set(options, "budget", "00:11:00", &err), &err);
    REQUIRE_OK(stk_options_set(options, "amp", "true", &err), &err);
    REQUIRE_OK(stk_options_resolve(options, "batch", "32", "auto", &err), &err);
    stk_options_yaml(options, &out);
    const char *text = stk_str_text(&out);
    CHECK(strncmp(text, "# Demo\ndata:\nmodel: auto\ncount: 3\nbatch_size: 32  # auto\n", 57) == 0);
    CHECK_CONTAINS(text, "\nbudget: \"00:11:00\"\n");
    CHECK_CONTAINS(text, "\nprecision: \"true\"\n");
    CHECK_CONTAINS(text, "\ncompile: true\n");
    CHECK_CONTAINS(text, "\n\n# More\nlate_stage_of_a_very_long_option: 1\n");
    CHECK(strstr(text, "config") == NULL);
    stk_str_free(&out);
    stk_options_free(options);
}

static void json_has_types(void) {
    stk_options *options = fresh();
    stk_error err = {0};
    stk_str out = {0};
    stk_json *root = NULL;
    uint64_t whole = 0;
    REQUIRE_OK(stk_options_set(options, "lr", "1e-3", &err), &err);
    REQUIRE_OK(stk_options_set(options, "compile", "no", &err), &err);
    REQUIRE_OK(stk_options_set(options, "model", "a \"b\"\n", &err), &err);
    REQUIRE_OK(stk_options_resolve(options, "batch", "32", "auto", &err), &err);
    stk_options_json(options, &out);
    REQUIRE_OK(stk_json_parse(out.text, out.length, &root, &err), &err);
    CHECK(stk_json_u64(stk_json_get(root, "count"), &whole) && whole == 3);
    CHECK(stk_json_u64(stk_json_get(root, "batch_size"), &whole) && whole == 32);
    CHECK_NEAR(stk_json_number(stk_json_get(root, "lr"), 0), 1e-3, 0);
    CHECK_INT(stk_json_kind_of(stk_json_get(root, "compile")), STK_JSON_BOOL);
    CHECK(!stk_json_bool(stk_json_get(root, "compile"), true));
    CHECK(stk_json_get(root, "data") != NULL);
    CHECK_INT(stk_json_kind_of(stk_json_get(root, "data")), STK_JSON_NULL);
    CHECK_STR(stk_json_string(stk_json_get(root, "budget")), "auto");
    CHECK_STR(stk_json_string(stk_json_get(root, "model")), "a \"b\"\n");
    CHECK(stk_json_get(root, "config") == NULL);
    CHECK(stk_json_get(root, "no_wandb") == NULL);
    CHECK(out.text[out.length - 1] == '\n');
    stk_json_free(root);
    stk_str_free(&out);
    stk_options_free(options);
}

static void help_fits_a_terminal(void) {
    stk_options *options = fresh();
    stk_str out = {0};
    stk_options_help(options, &out);
    const char *text = stk_str_text(&out);
    CHECK_CONTAINS(text, "\nDemo:\n");
    CHECK_CONTAINS(text, "\nMore:\n");
    CHECK_CONTAINS(text, "  --batch-size auto|N       images per step (auto)\n");
    CHECK_CONTAINS(text, "  --[no-]compile            fused kernels\n");
    CHECK_CONTAINS(text, "  --no-wandb                without effect\n");
    CHECK_CONTAINS(text, "  --precision auto|fp16|bf16|fp32|fp32-strict\n");
    CHECK_CONTAINS(text, "  --free-int VALUE ");
    CHECK(strstr(text, "16-mixed") == NULL);
    for (const char *line = text; *line != '\0'; line += strcspn(line, "\n") + 1) {
        size_t length = strcspn(line, "\n");
        if (length > 98 || (length > 0 && line[length - 1] == ' ')) {
            CHECK_FAIL("line of %zu: '%.*s'", length, (int)length, line);
        }
    }
    stk_str_free(&out);
    stk_options_free(options);
}

static void markdown_has_five_columns(void) {
    stk_options *options = fresh();
    stk_str out = {0};
    stk_options_markdown(options, &out);
    const char *text = stk_str_text(&out);
    CHECK_CONTAINS(text, "### Demo\n\n| flag | also |");
    CHECK_CONTAINS(text,
                   "| `--batch-size auto\\|N` | `batch`, `bs` | auto | images per step | auto "
                   "or a whole number from 1 to 65536 |\n");
    CHECK_CONTAINS(text, "| `--[no-]compile` | `compile_model` | true |");
    CHECK_CONTAINS(text, "| `--[no-]quiet` |  | false |");
    CHECK_CONTAINS(text, "`--model auto\\|A\\|B`");
    int rows = 0;
    for (const char *line = text; *line != '\0'; line += strcspn(line, "\n") + 1) {
        size_t length = strcspn(line, "\n");
        int bars = 0;
        for (size_t i = 0; i < length; i++) {
            bars += line[i] == '|' && (i == 0 || line[i - 1] != '\\');
        }
        if (line[0] == '|') {
            rows++;
            CHECK_INT(bars, 6);
        }
    }
    CHECK_INT(rows, demo_table.count + extra_table.count + 4);
    stk_str_free(&out);
    stk_options_free(options);
}

typedef struct seen {
    int flags;
    int negated;
    bool wandb;
} seen;

static void see(void *user, const char *flag, const stk_option *option) {
    seen *s = user;
    s->flags++;
    s->negated += strncmp(flag, "--no-", 5) == 0 && option->type == STK_OPTION_BOOL;
    s->wandb = s->wandb || strcmp(flag, "--no-wandb") == 0;
}

static void each_flag_is_visited(void) {
    stk_options *options = fresh();
    seen s = {0};
    stk_options_each_flag(options, see, &s);
    CHECK_INT(s.flags, demo_table.count + extra_table.count + 2);
    CHECK_INT(s.negated, 3);
    CHECK(s.wandb);
    stk_options_free(options);
}

/* ---- failures ---- */

static void a_table_with_a_wrong_default_is_told(void) {
    static const stk_option wrong[] = {
        {.name = "n", .type = STK_OPTION_INT, .fallback = "many", .help = "x"}};
    stk_option_table table = STK_OPTION_TABLE("Wrong", wrong, extra);
    const stk_option_table *list[] = {&table};
    stk_options *options = NULL;
    stk_error err = {0};
    CHECK(stk_options_new(&options, "train", list, 1, &err) != STK_OK);
    CHECK_CONTAINS(err.message, "many");
    CHECK(options == NULL);
}

/* Everything that allocates, in one go; the status of the first that fails. */
static stk_status do_all(const char *path, stk_str *out, stk_error *err) {
    stk_options *options = NULL;
    char line[] = "--count\0004\0--data=x\0word\0--dir=a";
    char *argv[] = {line, line + 8, line + 10, line + 19, line + 24};
    const char *words[2];
    size_t count;
    bool help;
    stk_status status = stk_options_new(&options, "train", tables, 2, err);
    if (status == STK_OK) {
        status = stk_options_parse(options, 5, argv, words, 2, &count, &help, err);
    }
#ifdef STK_HAVE_YAML
    if (status == STK_OK) {
        status = stk_options_load(options, path, err);
    }
#else
    (void)path;
#endif
    if (status == STK_OK) {
        status = stk_options_resolve(options, "batch", "32", "auto", err);
    }
    if (status == STK_OK) {
        stk_options_help(options, out);
        stk_options_markdown(options, out);
        stk_options_yaml(options, out);
        stk_options_json(options, out);
        stk_options_noted(options, out);
        status = stk_str_ok(out) ? STK_OK : STK_ERR_MEMORY;
    }
    stk_options_free(options);
    return status;
}

static void no_memory_is_told(void) {
    static const char text[] = "data: \"a b: c\"\nmodel: 'x\n\n  y'\nno_wandb: true\n";
    const char *path = config_of(text, strlen(text));
    for (int n = 0; n < 100000; n++) {
        stk_str out = {0};
        stk_error err = {0};
        stk_mem_fail_after(n);
        stk_status status = do_all(path, &out, &err);
        stk_mem_fail_after(-1);
        stk_str_free(&out);
        if (status == STK_OK) {
            CHECK(n > 20);
            return;
        }
        if (status != STK_ERR_MEMORY) {
            CHECK_FAIL("request %d: %s: %s", n, stk_status_name(status), err.message);
        }
    }
    CHECK_FAIL("it never succeeds");
}

static void a_refusal_without_memory_is_still_a_refusal(void) {
    stk_options *options = fresh();
    stk_error err = {0};
    stk_mem_fail_after(1);
    CHECK_INT(stk_options_set(options, "count", "99", &err), STK_ERR_USAGE);
    stk_mem_fail_after(0);
    CHECK_INT(stk_options_set(options, "cuont", "99", NULL), STK_ERR_USAGE);
    CHECK_INT(stk_options_set(options, "count", "1", NULL), STK_ERR_MEMORY);
    stk_mem_fail_after(-1);
    CHECK_CONTAINS(err.message, "'99'");
    CHECK_INT(values(options)->count, 3);
    stk_options_free(options);
}

static const check_test tests[] = {
    TEST(defaults_are_there),
    TEST(every_type_is_set),
    TEST(auto_can_be_asked_for_again),
    TEST(the_ends_of_a_range_are_inside),
    TEST(bad_values_are_refused),
    TEST(a_refused_value_changes_nothing),
    TEST(choices_have_other_spellings),
    TEST(aliases_and_dashes_are_the_same),
    TEST(unknown_names_get_the_nearest),
    TEST(flags_are_read),
    TEST(nothing_is_a_fine_command_line),
    TEST(truths_come_in_four_ways),
    TEST(lines_that_are_refused),
    TEST(two_dashes_end_the_options),
    TEST(help_ends_the_reading),
    TEST(a_later_flag_wins),
    TEST(a_list_takes_every_flag),
    TEST(noted_options_are_told),
    TEST(resolving_shows_and_keeps_the_field),
    TEST(yaml_looks_as_people_write_it),
    TEST(json_has_types),
    TEST(help_fits_a_terminal),
    TEST(markdown_has_five_columns),
    TEST(each_flag_is_visited),
    TEST(a_table_with_a_wrong_default_is_told),
    TEST(no_memory_is_told),
    TEST(a_refusal_without_memory_is_still_a_refusal),
};

CHECK_MAIN(tests)
