/* test_options_recall.c - the options of an earlier call, taken up by a later one. */
#include "test_options.h"

typedef struct changes {
    int count;
    char text[512];
} changes;

static void on_change(void *user, const char *name, const char *now, const char *before) {
    changes *c = user;
    size_t used = strlen(c->text);
    c->count++;
    snprintf(c->text + used, sizeof c->text - used, "%s %s was %s;", name, now, before);
}

static stk_json *json_of(stk_str *text) {
    stk_json *root = NULL;
    stk_error err = {0};
    if (stk_json_parse(stk_str_text(text), text->length, &root, &err) != STK_OK) {
        CHECK_FAIL("%s", err.message);
    }
    stk_str_free(text);
    return root;
}

/* Begins with one command line, in which Stoker chose a batch of 32, and goes on with another. */
static parsed go_on(const char *first, const char *second, changes *changed, stk_str *given) {
    parsed a = parse(first);
    stk_error err = {0};
    stk_str text = {0};
    stk_str words = {0};
    if (stk_options_source(a.options, "batch") == STK_FROM_DEFAULT) {
        CHECK_INT(stk_options_resolve(a.options, "batch", "32", "auto", &err), STK_OK);
    }
    CHECK_INT(stk_options_resolve(a.options, "memory", "5M", "auto", &err), STK_OK);
    stk_options_json(a.options, &text);
    stk_options_given(a.options, NULL, &words);
    stk_json *args = json_of(&text);
    stk_json *before = json_of(&words);
    parsed b = parse(second);
    memset(changed, 0, sizeof *changed);
    b.status = stk_options_recall(b.options, args, before, on_change, changed, &b.err);
    if (given != NULL) {
        stk_options_given(b.options, before, given);
    }
    stk_json_free(args);
    stk_json_free(before);
    stk_options_free(a.options);
    return b;
}

/* A path may be any bytes. */
static void bytes_that_are_no_text_come_back(void) {
    changes changed;
    parsed p = go_on("--data|caf\xe9/\xff", "", &changed, NULL);
    CHECK_INT(p.status, STK_OK);
    CHECK_STR(values(p.options)->data, "caf\xe9/\xff");
    stk_options_free(p.options);
    p = go_on("--data|caf\xe9/\xff", "--data|caf\xe9/\xff", &changed, NULL);
    CHECK_INT(p.status, STK_OK);
    stk_options_free(p.options);
}

static void what_is_not_given_is_as_before(void) {
    changes changed;
    stk_str given = {0};
    parsed p = go_on("--data|here|--lr|0.1|--count|5|--no-compile|--precision|16|--budget|2m", "",
                     &changed, &given);
    const demo *v = values(p.options);
    CHECK_INT(p.status, STK_OK);
    CHECK_STR(v->data, "here");
    CHECK_NEAR(v->lr, 0.1, 0);
    CHECK_INT(v->count, 5);
    CHECK_INT(v->batch, 32); /* chosen then, and what was computed depends on it */
    CHECK(!v->compile);
    CHECK_INT(v->precision, FP16);
    CHECK_NEAR(v->budget, 120, 0);
    CHECK(v->memory == STK_AUTO_BYTES); /* chosen then, and free to be chosen anew */
    CHECK_INT(stk_options_source(p.options, "batch"), STK_FROM_RUN);
    CHECK_INT(stk_options_source(p.options, "quiet"), STK_FROM_DEFAULT);
    CHECK_INT(changed.count, 0);
    char shown[64];
    CHECK_STR(stk_options_show(p.options, "lr", shown, sizeof shown), "0.1 (run)");
    CHECK_CONTAINS(stk_str_text(&given), "\"lr\": \"0.1\"");
    CHECK(strstr(stk_str_text(&given), "batch") == NULL);
    stk_str_free(&given);
    stk_options_free(p.options);
}

/* However it is spelt, and also where Stoker made something else of it. */
static void the_same_may_be_given_again(void) {
    static const char *const lines[] = {"--lr|0.10|--batch|auto", "--learning-rate|1e-1",
                                        "--budget|120s|--count|5"};
    for (size_t i = 0; i < 3; i++) {
        changes changed;
        parsed p = go_on("--data|here|--lr|0.1|--count|5|--budget|2m", lines[i], &changed, NULL);
        CHECK_INT(p.status, STK_OK);
        CHECK_INT(changed.count, 0);
        CHECK_NEAR(values(p.options)->lr, 0.1, 0);
        CHECK_INT(values(p.options)->batch, 32);
        stk_options_free(p.options);
    }
}

static void some_options_may_change(void) {
    changes changed;
    stk_str given = {0};
    parsed p = go_on("--count|5", "--count|7|--memory|1G", &changed, &given);
    CHECK_INT(p.status, STK_OK);
    CHECK_INT(values(p.options)->count, 7);
    CHECK_INT(changed.count, 2);
    CHECK_CONTAINS(changed.text, "count 7 was 5;");
    CHECK_CONTAINS(changed.text, "memory 1G was 5M;");
    CHECK_CONTAINS(stk_str_text(&given), "\"count\": \"7\"");
    stk_str_free(&given);
    stk_options_free(p.options);
}

static void others_must_not(void) {
    static const struct {
        const char *first, *second, *words[3];
    } cases[] = {
        {"--lr|0.1", "--lr|0.2", {"--lr 0.2", "0.1", "leave it out"}},
        {"", "--batch|64", {"--batch-size 64", "32", "depends on it"}},
        {"--data|here", "--data|there", {"--data there", "here", ""}},
        {"--no-compile", "--compile", {"--compile", "false", ""}},
        {"", "--data|x", {"--data x", "none", ""}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        changes changed;
        parsed p = go_on(cases[i].first, cases[i].second, &changed, NULL);
        CHECK_INT(p.status, STK_ERR_USAGE);
        for (int w = 0; w < 3; w++) {
            CHECK_CONTAINS(p.err.message, cases[i].words[w]);
        }
        stk_options_free(p.options);
    }
}

/* What `auto` became stays, also where `auto` is given again; a number may be given instead. */
static void a_lasting_choice_is_made_once(void) {
    static const struct {
        const char *args, *given, *now;
        int64_t value;
        stk_option_source source;
        int changes;
    } cases[] = {
        {"{\"views\": 2}", "{}", NULL, 2, STK_FROM_RUN, 0},
        {"{\"views\": 2}", "{\"views\": \"auto\"}", NULL, 2, STK_FROM_RUN, 0},
        {"{\"views\": 2}", "{}", "auto", 2, STK_FROM_RUN, 0},
        {"{\"views\": 2}", "{}", "4", 4, STK_FROM_FLAG, 1},
        {"{\"views\": 4}", "{\"views\": \"4\"}", "auto", 4, STK_FROM_RUN, 0},
        {"{\"views\": \"auto\"}", "{}", NULL, STK_AUTO_INT, STK_FROM_DEFAULT, 0},
        {"{}", "{}", NULL, STK_AUTO_INT, STK_FROM_DEFAULT, 0},
    };
    static const stk_option option = {.name = "views",
                                      .type = STK_OPTION_INT,
                                      STK_OPTION_AUTO,
                                      STK_OPTION_RANGE(1, 8),
                                      .may_change = true,
                                      .lasting = true};
    static const stk_option_table table = {
        .group = "Views", .options = &option, .count = 1, .size = sizeof(int64_t)};
    static const stk_option_table *const views_alone[] = {&table};
    for (size_t i = 0; i < STK_COUNT(cases); i++) {
        changes changed = {0};
        stk_options *options = NULL;
        stk_json *args = NULL;
        stk_json *given = NULL;
        stk_error err = {0};
        REQUIRE_OK(stk_json_parse(cases[i].args, strlen(cases[i].args), &args, &err), &err);
        REQUIRE_OK(stk_json_parse(cases[i].given, strlen(cases[i].given), &given, &err), &err);
        REQUIRE_OK(stk_options_new(&options, "demo", views_alone, 1, &err), &err);
        if (cases[i].now != NULL) {
            REQUIRE_OK(stk_options_set(options, "views", cases[i].now, &err), &err);
        }
        REQUIRE_OK(stk_options_recall(options, args, given, on_change, &changed, &err), &err);
        const int64_t *value = stk_options_values(options, &table);
        if (*value != cases[i].value || stk_options_source(options, "views") != cases[i].source ||
            changed.count != cases[i].changes) {
            CHECK_FAIL("case %zu: %lld from source %d, %d changes", i, (long long)*value,
                       (int)stk_options_source(options, "views"), changed.count);
        }
        stk_json_free(args);
        stk_json_free(given);
        stk_options_free(options);
    }
}

/* A file of a version that had fewer options, or others. */
static void unknown_and_missing_values_are_passed_over(void) {
    static const char args[] = "{\"count\": 4, \"gone\": 3, \"lr\": 0.30000000000000004}";
    stk_json *root = NULL;
    stk_error err = {0};
    stk_options *options = fresh();
    REQUIRE_OK(stk_json_parse(args, sizeof args - 1, &root, &err), &err);
    CHECK_INT(stk_options_recall(options, root, NULL, NULL, NULL, &err), STK_OK);
    CHECK_INT(values(options)->count, 4);
    CHECK_NEAR(values(options)->lr, 0.30000000000000004, 0);
    CHECK_NEAR(values(options)->momentum, 0.9, 0);
    stk_json_free(root);
    stk_options_free(options);
}

static const check_test tests[] = {
    TEST(what_is_not_given_is_as_before),
    TEST(bytes_that_are_no_text_come_back),
    TEST(the_same_may_be_given_again),
    TEST(some_options_may_change),
    TEST(others_must_not),
    TEST(a_lasting_choice_is_made_once),
    TEST(unknown_and_missing_values_are_passed_over),
};

CHECK_MAIN(tests)
