/* test_supervise_setting.c - telling a command a number, above all in files that people wrote. */
#include "check.h"

#include <sys/stat.h>

#include "base/files/file.h"
#include "base/mem.h"
#include "supervise/settings/command_setting.h"

#define BATCH "batch_size"

/* A run folder with a configuration beside it. */
typedef struct place {
    char folder[256];
    char file[300];
} place;

static void put(const char *path, const char *text) {
    stk_error err = {0};
    if (stk_file_write(path, text, strlen(text), &err) != STK_OK) {
        CHECK_FAIL("not written: %s", err.message);
        exit(1);
    }
}

static place made(const char *name, const char *text) {
    place p;
    snprintf(p.folder, sizeof p.folder, "%s", check_folder());
    snprintf(p.file, sizeof p.file, "%.250s/%s", p.folder, name);
    put(p.file, text);
    return p;
}

static void has(const char *path, const char *expected) {
    stk_error err = {0};
    char *data = NULL;
    size_t size;
    REQUIRE_OK(stk_file_read(path, 0, &data, &size, &err), &err);
    CHECK_STR(data, expected);
    stk_mem_free(data);
}

static stk_status opened(stk_command_setting *setting, const place *p, const char *key,
                         stk_error *err) {
    stk_setting_config config = {.what = "batch", .key = key, .file = p->file};
    return stk_setting_open(setting, &config, err);
}

/* @ stands for the number, so that what is around it is seen to stay. */
static const char *filled(const char *pattern, const char *number) {
    static char texts[2][2000];
    static int which;
    char *text = texts[which++ % 2];
    const char *mark = strchr(pattern, '@');
    snprintf(text, sizeof texts[0], "%.*s%s%s", (int)(mark - pattern), pattern, number, mark + 1);
    return text;
}

#ifdef STK_HAVE_YAML
#define HAS_YAML true
#else
#define HAS_YAML false
#endif

static bool is_yaml(const char *name) {
    return strstr(name, ".y") != NULL;
}

static const struct {
    const char *name;
    const char *key;
    const char *text;
} found_cases[] = {
    {"c.json", BATCH, "{\"batch_size\":@}"},
    {"c.json", BATCH, "{\n  \"lr\": 0.1,\n  \"batch_size\": @,\n  \"x\": [1, 2]\n}\n"},
    {"c.json", BATCH, "{\"a\": \"batch_size: 1, \\\"batch_size\\\": 2\", \"batch_size\" :\t@ }"},
    {"c.JSON", BATCH, "{\"train\": {\"batch_size\": @}}"},
    {"c.json", BATCH, "{\"val\": {\"batch_size\": 7}, \"batch_size\": @}"},
    {"c.json", "train.batch_size",
     "{\"val\": {\"batch_size\": 7}, \"train\": {\"batch_size\": @}}"},
    {"c.json", "train.batch_size", "{\"train\":{\"batch_size\":7},\"train.batch_size\":@}"},
    {"c.json", "train.batch_size", "{\"train.batch_size\":@,\"train\":{\"batch_size\":7}}"},
    {"c.json", "train.batch_size", "{\"all\": {\"train\": {\"batch_size\": @}}}"},
    {"c.json", "stages.1.n", "{\"stages\": [{\"n\": 1}, {\"n\": @}]}"},
    {"c.json", "l.1", "{\"l\": [1, @, 3]}"},
    {"c.json", BATCH, "{\"my.batch_size.x\": 1, \"xbatch_size\": 2, \"batch_size\": @}\r\n"},
    {"c.yaml", BATCH, "batch_size: @"},
    {"c.yml", BATCH, "# the batch_size: 3\nlr: 0.1\nbatch_size:   @   # per GPU\n\nx: y\n"},
    {"c.yaml", BATCH, "lr: 1\r\nbatch_size: @\r\nepochs: 3\r\n"},
    {"c.yaml", BATCH,
     "\xEF\xBB\xBF"
     "batch_size: @\n"},
    {"c.yaml", BATCH, "%YAML 1.1\n--- # one\nbatch_size: @\n...\n# the end\n"},
    {"c.yaml", BATCH, "'batch_size': @\n"},
    {"c.yaml", BATCH, "\"batch_size\" : @ #1\n"},
    {"c.yaml", "train.batch_size", "val:\n  batch_size: 7\ntrain:\n  batch_size: @\n"},
    {"c.yaml", "train.batch_size", "train:\n    opt:\n        lr: 1\n\n    batch_size: @\nx: 1\n"},
    {"c.yaml", BATCH, "train:\n  - name: a\n    batch_size: @\n  - b\n"},
    {"c.yaml", "train.1.batch_size", "train:\n- batch_size: 7\n- batch_size: @\n- x\nval: 1\n"},
    {"c.yaml", "a.0.1", "a:\n- - 1\n  - @\n- - 3\n"},
    {"c.yaml", BATCH, "text: |\n  batch_size: 7\n\n   x\nbatch_size: @\n"},
    {"c.yaml", BATCH, "list:\n  - >-\n    batch_size: 7\n  - a\nbatch_size: @\n"},
    {"c.yaml", BATCH, "text: a\n  batch_size and so on\n  # no\nbatch_size: @\n"},
    {"c.yaml", BATCH, "text: \"a\n  batch_size: 7\"\nurl: http://a:1/#x\nbatch_size: @\n"},
    {"c.yaml", BATCH, "text: 'it''s: {'\nbatch_size: @\n"},
    {"c.yaml", BATCH, "opt: {lr: 0.1, batch_size: @}  # all\nx: 1\n"},
    {"c.yaml", BATCH, "opt: {lr: [1, 2,], # no batch_size: 3,\n  batch_size: @ }\nx: 1\n"},
    {"c.yaml", BATCH, "{batch_size: @, x: [a: b, c]}\n"},
    {"c.yaml", BATCH, "batch_size:\n  @\nx: 1\n"},
    {"c.yaml", BATCH, "empty:\nalso:\n\nbatch_size: @\nx:\n"},
    {"c.yaml", "a.b.c", "a:\n  b:\n    c: @\n  d: 1\n"},
    {"c.yaml", "a:b", "a:b: @\n"},
    {"c.yaml", BATCH, "--- {batch_size: @}\n"},
    {"c.yaml", BATCH, "? batch_size\n: @\n"},
    {"c.yaml", BATCH, "n\xC3\xA4me: \xE6\x96\x87 # \xF0\x9F\x98\x80\nbatch_size: @ # \xC3\xA9\n"},
    {"c.json", BATCH, "{\"n\\\"\xC3\xA4\": \"\\\\\", \"batch\\u005fsize\": @}"},
};

static void the_number_alone_is_replaced(void) {
    for (size_t i = 0; i < sizeof found_cases / sizeof *found_cases; i++) {
        stk_command_setting setting;
        stk_error err = {0};
        bool mine;
        place p = made(found_cases[i].name, filled(found_cases[i].text, "32"));
        if (is_yaml(found_cases[i].name) && !HAS_YAML) {
            CHECK_INT(opened(&setting, &p, found_cases[i].key, &err), STK_ERR_USAGE);
            CHECK_CONTAINS(err.message, "this build has no YAML");
            continue;
        }
        if (opened(&setting, &p, found_cases[i].key, &err) != STK_OK) {
            CHECK_FAIL("case %zu: %s", i, err.message);
            continue;
        }
        CHECK_INT(setting.kind, STK_SETTING_KEY);
        CHECK_INT(stk_setting_value(&setting, NULL), 32);
        REQUIRE_OK(stk_setting_set(&setting, NULL, 128, p.folder, &err), &err);
        has(p.file, filled(found_cases[i].text, "128"));
        CHECK_INT(stk_setting_value(&setting, NULL), 128);
        REQUIRE_OK(stk_setting_set(&setting, NULL, 8, p.folder, &err), &err);
        has(p.file, filled(found_cases[i].text, "8"));
        has(setting.changed, filled(found_cases[i].text, "8"));
        has(setting.original, filled(found_cases[i].text, "32"));
        REQUIRE_OK(stk_setting_restore(&setting, &mine, &err), &err);
        CHECK(mine);
        has(p.file, filled(found_cases[i].text, "32"));
        stk_setting_close(&setting);
    }
}

static void files_that_do_not_fit(void) {
    static const struct {
        const char *name;
        const char *key;
        const char *text;
        const char *says;
    } cases[] = {
        {"c.json", BATCH, "{\"batchsize\": 1}", "no key batch_size; is batchsize meant?"},
        {"c.json", BATCH, "{\"x\": {\"batch-size\": 1}}", "is batch-size meant?"},
        {"c.json", "train.batch_size", "{\"train\": {\"batch_sise\": 1}}",
         "train.batch_sise meant"},
        {"c.json", BATCH, "{\"lr\": 1}", "no key batch_size"},
        {"c.json", BATCH, "{\"batch_size\": 1,}", "not JSON"},
        {"c.json", BATCH, "{\"batch_size\": 1, \"batch_size\": 2}", "not JSON"},
        {"c.json", BATCH, "", "not JSON"},
        {"c.json", BATCH, "[1]", "no object"},
        {"c.json", BATCH, "{\"batch_size\": \"32\"}", "no whole number: \"32\""},
        {"c.json", BATCH, "{\"batch_size\": 32.5}", "no whole number: 32.5"},
        {"c.json", BATCH, "{\"batch_size\": -1}", "no whole number: -1"},
        {"c.json", BATCH, "{\"batch_size\": 99999999999999999999}", "no whole number"},
        {"c.json", BATCH, "{\"batch_size\": 9999999999999999999}", "no whole number"},
        {"c.json", BATCH, "{\"batch_size\": {\"a\": 1}}", "has no number"},
        {"c.json", BATCH, "{\"a\": {\"batch_size\": 1}, \"b\": {\"batch_size\": 1}}",
         "several keys batch_size (a.batch_size, b.batch_size)"},
        {"c.yaml", BATCH, "batch_size: 1\nx: 2\nbatch_size: 3\n", "batch_size twice"},
        {"c.yaml", BATCH, "batch_size:\n", "has no number"},
        {"c.yaml", BATCH, "batch_size:\n  a: 1\n", "has no number"},
        {"c.yaml", BATCH, "batch_size: auto # x\n", "no whole number: auto"},
        {"c.yaml", BATCH, "batch_size: 32\n  48\n", "no whole number: 32 ..."},
        {"c.yaml", BATCH, "batch_size: 32#1\n", "no whole number: 32#1"},
        {"c.yaml", BATCH, "batch_size: '32'\n", "no whole number"},
        {"c.yaml", BATCH, "batch_size: |\n  32\n", "no whole number"},
        {"c.yaml", BATCH, "batch_size: 1_000\n", "no whole number"},
        {"c.yaml", BATCH, "a: &x 1\nbatch_size: 2\n", "line 1: anchors"},
        {"c.yaml", BATCH, "a: 1\nbatch_size: *x\n", "line 2: anchors"},
        {"c.yaml", BATCH, "- &x 1\nbatch_size: 2\n", "anchors"},
        {"c.yaml", BATCH, "a: [*x]\nbatch_size: 2\n", "anchors"},
        {"c.yaml", BATCH, "batch_size: 1\n---\nbatch_size: 2\n", "line 2: a second document"},
        {"c.yaml", BATCH, "---\n---\nbatch_size: 2\n", "a second document"},
        {"c.yaml", BATCH, "batch_size: 1\n...\nx: 2\n", "line 3: not valid YAML"},
        {"c.yaml", BATCH, "a:\n\tbatch_size: 1\n", "line 2: not valid YAML"},
        {"c.yaml", BATCH, "a:\n    b: 1\n  batch_size: 1\n", "line 3: not valid YAML"},
        {"c.yaml", BATCH, "  a: 1\nbatch_size: 1\n", "line 2: not valid YAML"},
        {"c.yaml", BATCH, "a: {b: 1\n", "',' or '}'"},
        {"c.yaml", BATCH, "a: {b: 1]\n", "',' or '}'"},
        {"c.yaml", BATCH, "a: [1,,2]\n", "not valid YAML"},
        {"c.yaml", BATCH, "a: \"b\n", "end of stream"},
        {"c.yaml", BATCH, "a: \"b\" c\n", "line 1: not valid YAML"},
        {"c.yaml", BATCH, "? [a]\n: 1\n", "a list is used as a key"},
        {"c.yaml", BATCH, "a: \xFF\nbatch_size: 1\n", "line 1: not valid YAML"},
        {"c.yaml", BATCH, "just a text\n", "neither a key"},
        {"c.yaml", BATCH, "", "no key batch_size"},
        {"c.toml", BATCH, "batch_size = 1\n", ".json, .yaml or .yml"},
        {"c", BATCH, "batch_size: 1\n", ".json, .yaml or .yml"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        stk_command_setting setting;
        stk_error err = {0};
        place p = made(cases[i].name, cases[i].text);
        CHECK_INT(opened(&setting, &p, cases[i].key, &err), STK_ERR_USAGE);
        CHECK_CONTAINS(err.message,
                       is_yaml(cases[i].name) && !HAS_YAML ? "no YAML" : cases[i].says);
        CHECK_CONTAINS(err.message, p.file);
        CHECK_INT(stk_setting_value(&setting, NULL), -1);
        stk_setting_close(&setting);
    }
}

static void nesting_has_an_end(void) {
    stk_error err = {0};
    stk_command_setting setting;
    stk_str text = {0};
    for (int i = 0; i < 10000; i++) {
        stk_str_append(&text, "[");
    }
    place p = made("c.yaml", stk_str_text(&text));
    CHECK_INT(opened(&setting, &p, BATCH, &err), STK_ERR_USAGE);
    CHECK_CONTAINS(err.message, HAS_YAML ? "too deeply" : "no YAML");
    stk_str_clear(&text);
    for (int i = 0; i < 100; i++) {
        stk_str_appendf(&text, "%*sa:\n", i, "");
    }
    memset(&err, 0, sizeof err);
    p = made("d.yaml", stk_str_text(&text));
    CHECK_INT(opened(&setting, &p, BATCH, &err), STK_ERR_USAGE);
    CHECK_CONTAINS(err.message, HAS_YAML ? "too deeply" : "no YAML");
    stk_str_free(&text);
}

static void options_that_do_not_fit(void) {
    static const struct {
        stk_setting_config config;
        const char *says;
    } cases[] = {
        {{"batch", "B", "--b", NULL, NULL}, "--batch-env and --batch-arg"},
        {{"batch", "B", NULL, "b", "c.yaml"}, "--batch-env and --batch-key"},
        {{"workers", NULL, "-w", "w", NULL}, "--workers-arg and --workers-key"},
        {{"workers", NULL, NULL, "w", NULL}, "--workers-key w needs"},
        {{"workers", NULL, NULL, "w", NULL}, "--config-file"},
        {{"batch", "", NULL, NULL, NULL}, "--batch-env '' is no name"},
        {{"batch", "A=b", NULL, NULL, NULL}, "is no name"},
        {{"batch", NULL, "--b 3", NULL, NULL}, "--batch-arg '--b 3' is no name"},
        {{"batch", NULL, NULL, "", "c.yaml"}, "--batch-key '' is no name"},
        {{"batch", NULL, NULL, "b", "/nowhere/c.yaml"}, "there is no such file"},
        {{"batch", NULL, NULL, "b", "/"}, "there is no such file"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        stk_command_setting setting;
        stk_error err = {0};
        CHECK_INT(stk_setting_open(&setting, &cases[i].config, &err), STK_ERR_USAGE);
        CHECK_CONTAINS(err.message, cases[i].says);
        stk_setting_close(&setting);
    }
}

static void variables_and_arguments(void) {
    static const char *const words[] = {"t", "--bs", "32"};
    stk_setting_config configs[] = {
        {.what = "batch", .env = "STK_TEST_BATCH", .file = "for.others"},
        {.what = "batch", .arg = "--bs"}};
    stk_command command;
    stk_error err = {0};
    bool mine = false;
    setenv("STK_TEST_BATCH", "32", 1);
    REQUIRE_OK(stk_command_make(&command, words, 3, NULL, &err), &err);
    for (int i = 0; i < 2; i++) {
        stk_command_setting setting;
        REQUIRE_OK(stk_setting_open(&setting, &configs[i], &err), &err);
        CHECK_INT(setting.kind, i == 0 ? STK_SETTING_ENV : STK_SETTING_ARG);
        CHECK_INT(stk_setting_value(&setting, &command), 32);
        REQUIRE_OK(stk_setting_unset(&setting, &command, &err), &err); /* it was not set yet */
        REQUIRE_OK(stk_setting_set(&setting, &command, 48, NULL, &err), &err);
        REQUIRE_OK(stk_setting_set(&setting, &command, 64, NULL, &err), &err);
        CHECK_INT(stk_setting_value(&setting, &command), 64);
        REQUIRE_OK(stk_setting_unset(&setting, &command, &err), &err);
        CHECK_INT(stk_setting_value(&setting, &command), 32);
        REQUIRE_OK(stk_setting_set(&setting, &command, 64, NULL, &err), &err);
        REQUIRE_OK(stk_setting_restore(&setting, &mine, &err), &err);
        CHECK(mine);
        stk_setting_close(&setting);
    }
    CHECK_STR(stk_command_env(&command, "STK_TEST_BATCH"), "64");
    CHECK_STR(stk_command_arg(&command, "--bs"), "64");
    stk_command_free(&command);
}

static void values_that_are_not_known(void) {
    static const char *const words[] = {"t", "--bs", "auto"};
    stk_setting_config configs[] = {{.what = "batch", .env = "STK_TEST_NONE"},
                                    {.what = "batch", .arg = "--bs"},
                                    {.what = "batch", .arg = "--other"},
                                    {.what = "batch"}};
    stk_command command;
    stk_error err = {0};
    unsetenv("STK_TEST_NONE");
    REQUIRE_OK(stk_command_make(&command, words, 3, NULL, &err), &err);
    for (int i = 0; i < 4; i++) {
        stk_command_setting setting;
        REQUIRE_OK(stk_setting_open(&setting, &configs[i], &err), &err);
        CHECK_INT(stk_setting_value(&setting, &command), -1);
        REQUIRE_OK(stk_setting_check(&setting, &command, &err), &err);
        CHECK_INT(stk_setting_set(&setting, &command, 64, NULL, &err),
                  i < 3 ? STK_OK : STK_ERR_USAGE);
        CHECK_INT(stk_setting_value(&setting, &command), i < 3 ? 64 : -1);
        CHECK_INT(stk_setting_unset(&setting, &command, NULL), STK_OK);
        CHECK_INT(stk_setting_value(&setting, &command), -1);
        stk_setting_close(&setting);
    }
    CHECK_CONTAINS(err.message, "batch");
    CHECK(stk_command_env(&command, "STK_TEST_NONE") == NULL);
    CHECK_STR(stk_command_arg(&command, "--bs"), "auto");
    CHECK(command.argv[3] == NULL);
    stk_command_free(&command);
}

static void a_line_of_a_shell_takes_no_argument(void) {
    stk_setting_config config = {.what = "batch", .arg = "--bs"};
    stk_command_setting setting;
    stk_command command;
    stk_error err = {0};
    REQUIRE_OK(stk_command_make(&command, NULL, 0, "t --bs 3", &err), &err);
    REQUIRE_OK(stk_setting_open(&setting, &config, &err), &err);
    CHECK_INT(stk_setting_check(&setting, &command, &err), STK_ERR_USAGE);
    CHECK_INT(stk_setting_set(&setting, &command, 64, NULL, NULL), STK_ERR_USAGE);
    CHECK_STR(command.argv[2], "t --bs 3");
    stk_setting_close(&setting);
    stk_command_free(&command);
}

static void links_and_modes_stay(void) {
    stk_command_setting setting;
    stk_error err = {0};
    struct stat info;
    bool mine;
    place p = made("real.json", "{\"batch_size\": 32}\n");
    place linked = p;
    CHECK_INT(chmod(p.file, 0640), 0);
    snprintf(linked.file, sizeof linked.file, "%.250s/link.json", p.folder);
    CHECK_INT(symlink("real.json", linked.file), 0);
    REQUIRE_OK(opened(&setting, &linked, BATCH, &err), &err);
    REQUIRE_OK(stk_setting_set(&setting, NULL, 64, p.folder, &err), &err);
    has(p.file, "{\"batch_size\": 64}\n");
    CHECK(lstat(linked.file, &info) == 0 && S_ISLNK(info.st_mode));
    CHECK(stat(p.file, &info) == 0 && (info.st_mode & 0777) == 0640);
    REQUIRE_OK(stk_setting_restore(&setting, &mine, &err), &err);
    has(p.file, "{\"batch_size\": 32}\n");
    CHECK(lstat(linked.file, &info) == 0 && S_ISLNK(info.st_mode));
    CHECK(stat(p.file, &info) == 0 && (info.st_mode & 0777) == 0640);
    stk_setting_close(&setting);
}

static void what_somebody_else_wrote_is_left_alone(void) {
    stk_command_setting setting;
    stk_error err = {0};
    bool mine = true;
    place p = made("c.json", "{\"batch_size\": 32}\n");
    REQUIRE_OK(opened(&setting, &p, BATCH, &err), &err);
    REQUIRE_OK(stk_setting_set(&setting, NULL, 64, p.folder, &err), &err);
    put(p.file, "{\"batch_size\": 64, \"lr\": 1}\n");
    REQUIRE_OK(stk_setting_restore(&setting, &mine, &err), &err);
    CHECK(!mine);
    has(p.file, "{\"batch_size\": 64, \"lr\": 1}\n");
    /* A later trial changes the number in it; nothing is put back any more. */
    REQUIRE_OK(stk_setting_set(&setting, NULL, 128, p.folder, &err), &err);
    REQUIRE_OK(stk_setting_set(&setting, NULL, 256, p.folder, &err), &err);
    has(p.file, "{\"batch_size\": 256, \"lr\": 1}\n");
    REQUIRE_OK(stk_setting_restore(&setting, &mine, &err), &err);
    CHECK(!mine);
    has(p.file, "{\"batch_size\": 256, \"lr\": 1}\n");
    has(setting.original, "{\"batch_size\": 32}\n");
    CHECK_INT(unlink(p.file), 0);
    REQUIRE_OK(stk_setting_restore(&setting, &mine, &err), &err);
    CHECK(!mine && !stk_path_is_file(p.file));
    stk_setting_close(&setting);
}

static void two_settings_share_a_file(void) {
    for (int order = 0; order < 2; order++) {
        stk_error err = {0};
        stk_command_setting settings[2];
        bool mine[2] = {false, false};
        place p = made("c.json", "{\"b\": 32, \"w\": 2}\n");
        REQUIRE_OK(opened(&settings[0], &p, "b", &err), &err);
        REQUIRE_OK(opened(&settings[1], &p, "w", &err), &err);
        REQUIRE_OK(stk_setting_set(&settings[0], NULL, 64, p.folder, &err), &err);
        REQUIRE_OK(stk_setting_set(&settings[1], NULL, 4, p.folder, &err), &err);
        REQUIRE_OK(stk_setting_set(&settings[0], NULL, 128, p.folder, &err), &err);
        has(p.file, "{\"b\": 128, \"w\": 4}\n");
        for (int i = 0; i < 2; i++) {
            REQUIRE_OK(stk_setting_restore(&settings[i ^ order], &mine[i], &err), &err);
        }
        CHECK(mine[0] && mine[1]);
        has(p.file, "{\"b\": 32, \"w\": 2}\n");
        stk_setting_close(&settings[0]);
        stk_setting_close(&settings[1]);
    }
}

static void the_same_value_changes_nothing(void) {
    stk_command_setting setting;
    stk_error err = {0};
    place p = made("c.json", "{\"batch_size\":  32}\n");
    REQUIRE_OK(opened(&setting, &p, BATCH, &err), &err);
    CHECK_INT(stk_setting_value(&setting, NULL), 32);
    put(p.file, "{\"batch_size\": 32}\n");
    REQUIRE_OK(stk_setting_set(&setting, NULL, 32, p.folder, &err), &err);
    CHECK(setting.original == NULL && setting.changed == NULL);
    stk_setting_close(&setting);
}

static void a_folder_that_is_gone(void) {
    stk_command_setting setting;
    stk_error err = {0};
    bool mine = false;
    place p = made("c.json", "{\"batch_size\": 32}\n");
    REQUIRE_OK(opened(&setting, &p, BATCH, &err), &err);
    CHECK_INT(stk_setting_set(&setting, NULL, 64, "/nowhere/run", &err), STK_ERR_STORAGE);
    has(p.file, "{\"batch_size\": 32}\n");
    memset(&err, 0, sizeof err);
    REQUIRE_OK(stk_setting_restore(&setting, &mine, &err), &err);
    CHECK(mine);
    stk_setting_close(&setting);
}

static void without_memory(void) {
    place p = made("c.json", "{\"a\": {\"b\": [1, 2], \"batch_size\": 32}}");
    for (int64_t n = 0; n < 10000; n++) {
        stk_command_setting setting;
        stk_error err = {0};
        bool mine;
        stk_mem_fail_after(n);
        stk_status status = opened(&setting, &p, BATCH, &err);
        status = status == STK_OK ? stk_setting_set(&setting, NULL, 64, p.folder, &err) : status;
        stk_mem_fail_after(-1);
        if (status != STK_OK) {
            CHECK_INT(status, STK_ERR_MEMORY);
        }
        CHECK_INT(stk_setting_restore(&setting, &mine, NULL), STK_OK);
        CHECK(mine);
        has(p.file, "{\"a\": {\"b\": [1, 2], \"batch_size\": 32}}");
        stk_setting_close(&setting);
        if (status == STK_OK) {
            CHECK(n > 10);
            return;
        }
    }
    CHECK_FAIL("it never has memory");
}

static const check_test tests[] = {
    TEST(the_number_alone_is_replaced),
    TEST(files_that_do_not_fit),
    TEST(nesting_has_an_end),
    TEST(options_that_do_not_fit),
    TEST(variables_and_arguments),
    TEST(values_that_are_not_known),
    TEST(a_line_of_a_shell_takes_no_argument),
    TEST(links_and_modes_stay),
    TEST(what_somebody_else_wrote_is_left_alone),
    TEST(two_settings_share_a_file),
    TEST(the_same_value_changes_nothing),
    TEST(a_folder_that_is_gone),
    TEST(without_memory),
};
CHECK_MAIN(tests)
