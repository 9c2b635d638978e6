/* test_supervise_command.c - commands that are changed and shown. */
#include "check.h"

#include "base/mem.h"
#include "supervise/process/command.h"

#define WORDS 10

static stk_command made(const char *const *words) {
    stk_command command;
    stk_error err = {0};
    size_t count = 0;
    while (words[count] != NULL) {
        count++;
    }
    if (stk_command_make(&command, words, count, NULL, &err) != STK_OK) {
        CHECK_FAIL("not made: %s", err.message);
        exit(1);
    }
    return command;
}

static void shows(const stk_command *command, const char *expected) {
    stk_str text = {0};
    stk_command_show(command, &text);
    CHECK_STR(stk_str_text(&text), expected);
    stk_str_free(&text);
}

static void arguments_are_replaced_in_their_own_form(void) {
    static const struct {
        const char *words[WORDS];
        const char *name;
        const char *before; /* NULL: it is not there */
        const char *after;
    } cases[] = {
        {{"t", "--batch-size", "32", "x"}, "--batch-size", "32", "t --batch-size 64 x"},
        {{"t", "--batch-size=32", "x"}, "--batch-size", "32", "t --batch-size=64 x"},
        {{"t", "-b", "32"}, "-b", "32", "t -b 64"},
        {{"t", "-b", "1", "-b=2", "-b", "3"}, "-b", "3", "t -b 1 -b=2 -b 64"},
        {{"t", "-b", "1", "-b=2"}, "-b", "2", "t -b 1 -b=64"},
        {{"t", "-b", ""}, "-b", "", "t -b 64"},
        {{"t", "--b="}, "--b", "", "t --b=64"},
        {{"t", "-b", "-b"}, "-b", "-b", "t -b 64"},
        {{"python", "train.py"}, "--bs", NULL, "python train.py --bs 64"},
        {{"python", "train.py"}, "bs", NULL, "python train.py bs=64"},
        {{"python", "train.py", "opt.bs=8"}, "opt.bs", "8", "python train.py opt.bs=64"},
        {{"t", "--batch_size", "32"}, "--batch-size", NULL, "t --batch_size 32 --batch-size 64"},
        {{"t", "--batch-size2", "3"}, "--batch-size", NULL, "t --batch-size2 3 --batch-size 64"},
        {{"t", "-b", "1", "--", "-b", "2"}, "-b", "1", "t -b 64 -- -b 2"},
        {{"uv", "run", "--", "t", "-b", "2"}, "-b", "2", "uv run -- t -b 64"},
        {{"-b", "1"}, "-b", NULL, "-b 1 -b 64"}, /* the program itself is called so */
        {{"bash", "-c", "t \"$@\"", "_", "-b", "2"}, "-b", "2", "bash -c 't \"$@\"' _ -b 64"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        stk_error err = {0};
        stk_command command = made(cases[i].words);
        const char *before = stk_command_arg(&command, cases[i].name);
        CHECK((before == NULL) == (cases[i].before == NULL));
        if (cases[i].before != NULL) {
            CHECK_STR(before, cases[i].before);
        }
        REQUIRE_OK(stk_command_set_arg(&command, cases[i].name, "64", &err), &err);
        CHECK_STR(stk_command_arg(&command, cases[i].name), "64");
        shows(&command, cases[i].after);
        stk_command_free(&command);
    }
}

static void arguments_are_taken_off(void) {
    stk_command command = made((const char *const[]){"t", "-b", "1", "-b=2", "x", NULL});
    stk_command_unset_arg(&command, "-c");
    stk_command_unset_arg(&command, "-b");
    shows(&command, "t -b 1 x");
    stk_command_unset_arg(&command, "-b");
    shows(&command, "t x");
    stk_command_free(&command);
}

static void arguments_that_cannot_be_told(void) {
    static const struct {
        const char *words[WORDS];
        const char *says;
    } cases[] = {
        {{"sh", "-c", "t -b 2"}, "--batch-env"},
        {{"/usr/bin/bash", "-lc", "t -b 2"}, "--batch-env"},
        {{"t", "-b"}, "no value"},
        {{"t", "--", "-b"}, "no value"},
        {{"uv", "run", "--", "t"}, "lone --"},
        {{"t", "-b", "--", "x"}, "lone --"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        stk_error err = {0};
        stk_str before = {0};
        stk_command command = made(cases[i].words);
        stk_command_show(&command, &before);
        CHECK_INT(stk_command_set_arg(&command, "-b", "64", &err), STK_ERR_USAGE);
        CHECK_CONTAINS(err.message, cases[i].says);
        CHECK(stk_command_arg(&command, "-b") == NULL);
        shows(&command, stk_str_text(&before));
        stk_str_free(&before);
        stk_command_free(&command);
    }
}

static void a_line_is_for_the_shell(void) {
    stk_command command;
    stk_error err = {0};
    REQUIRE_OK(stk_command_make(&command, NULL, 0, "python predict.py | tee 'a b'", &err), &err);
    CHECK_STR(command.argv[0], "/bin/sh");
    CHECK_STR(command.argv[1], "-c");
    CHECK_STR(command.argv[2], "python predict.py | tee 'a b'");
    CHECK(command.argv[3] == NULL);
    shows(&command, "python predict.py | tee 'a b'");
    CHECK_INT(stk_command_set_arg(&command, "--batch-size", "64", &err), STK_ERR_USAGE);
    stk_command_free(&command);
    stk_command_free(&command);
}

static void no_command(void) {
    static const char *const lines[] = {NULL, "", " \t\n"};
    for (size_t i = 0; i < 3; i++) {
        stk_command command;
        stk_error err = {0};
        CHECK_INT(stk_command_make(&command, NULL, 0, lines[i], &err), STK_ERR_USAGE);
        CHECK_CONTAINS(err.message, "no command");
        stk_command_free(&command);
    }
}

static void surroundings(void) {
    stk_error err = {0};
    setenv("STK_TEST_A", "1", 1);
    setenv("STK_TEST_AB", "2", 1);
    unsetenv("STK_TEST_C");
    stk_command command = made((const char *const[]){"t", NULL});
    CHECK_STR(stk_command_env(&command, "STK_TEST_A"), "1");
    CHECK(stk_command_env(&command, "STK_TEST_C") == NULL);
    REQUIRE_OK(stk_command_set_env(&command, "STK_TEST_A", "x y=z", false, &err), &err);
    REQUIRE_OK(stk_command_set_env(&command, "STK_TEST_AB", "3", true, &err), &err);
    REQUIRE_OK(stk_command_set_env(&command, "STK_TEST_C", "4", true, &err), &err);
    REQUIRE_OK(stk_command_set_env(&command, "STK_TEST_D", "", false, &err), &err);
    CHECK_STR(stk_command_env(&command, "STK_TEST_A"), "x y=z");
    CHECK_STR(stk_command_env(&command, "STK_TEST_AB"), "2");
    CHECK_STR(stk_command_env(&command, "STK_TEST_C"), "4");
    CHECK_STR(stk_command_env(&command, "STK_TEST_D"), "");
    stk_command_unset_env(&command, "STK_TEST_A");
    stk_command_unset_env(&command, "STK_TEST_A");
    CHECK(stk_command_env(&command, "STK_TEST_A") == NULL);
    CHECK_STR(stk_command_env(&command, "STK_TEST_D"), "");
    CHECK_STR(getenv("STK_TEST_A"), "1"); /* this process is left as it is */
    CHECK(getenv("STK_TEST_C") == NULL);
    stk_command_free(&command);
}

static void quotes(void) {
    static const char *const words[] = {"A=b", "", "a b", "it's", "$HOME", "~", "x=1", "*.c", NULL};
    stk_command command = made(words);
    shows(&command, "'A=b' '' 'a b' 'it'\\''s' '$HOME' '~' x=1 '*.c'");
    stk_command_free(&command);
}

static void without_memory(void) {
    static const char *const words[] = {"t", "-b", "1", NULL};
    stk_command command;
    stk_error err = {0};
    for (int64_t n = 0; n < 10000; n++) {
        memset(&err, 0, sizeof err);
        stk_mem_fail_after(n);
        stk_status status = stk_command_make(&command, words, 3, NULL, &err);
        status = status == STK_OK ? stk_command_set_arg(&command, "-c", "2", &err) : status;
        status = status == STK_OK ? stk_command_set_env(&command, "A", "2", false, &err) : status;
        stk_mem_fail_after(-1);
        stk_command_free(&command);
        if (status == STK_OK) {
            CHECK(n > 5);
            return;
        }
        CHECK_INT(status, STK_ERR_MEMORY);
    }
    CHECK_FAIL("it never has memory");
}

/* What is shown has no secrets in it; what runs has them. */
static void secrets_are_not_shown(void) {
    static const char *const words[] = {
        "t",       "--token", "abc def",    "--api-key=x", "*", "value-of-a-key",
        "URL=a*b", "-c",      "--password", "p w"};
    stk_command command = {0};
    stk_error err = {0};
    REQUIRE_OK(stk_command_make(&command, words, sizeof words / sizeof *words, NULL, &err), &err);
    REQUIRE_OK(stk_command_set_env(&command, "MY_SECRET", "value-of-a-key", false, &err), &err);
    shows(&command, "t --token *** --api-key=*** '*' *** 'URL=a*b' -c --password ***");
    CHECK_STR(command.argv[2], "abc def");
    CHECK_STR(command.argv[9], "p w");
    stk_command_free(&command);
    REQUIRE_OK(stk_command_make(&command, NULL, 0, "A_TOKEN=x run --pwd='a b' | tee y", &err),
               &err);
    shows(&command, "A_TOKEN=*** run --pwd='***' | tee y");
    stk_command_free(&command);
}

static const check_test tests[] = {
    TEST(arguments_are_replaced_in_their_own_form),
    TEST(arguments_are_taken_off),
    TEST(arguments_that_cannot_be_told),
    TEST(a_line_is_for_the_shell),
    TEST(no_command),
    TEST(surroundings),
    TEST(quotes),
    TEST(without_memory),
    TEST(secrets_are_not_shown),
};
CHECK_MAIN(tests)
