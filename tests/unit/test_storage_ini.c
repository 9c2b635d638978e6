/* test_storage_ini.c - files in the format of the AWS tools, well-formed and not. */
#include "check.h"

#include "base/files/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "storage/s3/ini.h"

static stk_ini *parsed(const char *text) {
    stk_ini *ini = NULL;
    stk_error err = {0};
    if (stk_ini_parse(&ini, text, strlen(text), "file", &err) != STK_OK) {
        CHECK_FAIL("not read: %s", err.message);
        exit(1);
    }
    return ini;
}

static void sections_and_values(void) {
    stk_ini *ini = parsed("[default]\n"
                          "region = eu-central-1\n"
                          "output=json\n"
                          "\n"
                          "[profile work]\n"
                          "region: us-west-2\n"
                          "empty =\n");
    CHECK(stk_ini_has(ini, "default") && stk_ini_has(ini, "profile work"));
    CHECK(!stk_ini_has(ini, "work") && !stk_ini_has(ini, "Default"));
    CHECK_STR(stk_ini_get(ini, "default", "region"), "eu-central-1");
    CHECK_STR(stk_ini_get(ini, "default", "output"), "json");
    CHECK_STR(stk_ini_get(ini, "profile work", "region"), "us-west-2");
    CHECK(stk_ini_get(ini, "profile work", "empty") == NULL);
    CHECK(stk_ini_get(ini, "profile work", "output") == NULL);
    CHECK(stk_ini_get(ini, "nowhere", "region") == NULL);
    stk_ini_free(ini);
    stk_ini_free(NULL);
}

static void blanks_case_and_line_ends(void) {
    stk_ini *ini = parsed("\xEF\xBB\xBF  [ default ] what follows\r\n"
                          "\tAWS_Access_Key_ID\t =   AKID  \r\n"
                          "\r\n"
                          "\taws_secret_access_key=a=b:c \r\n"
                          "[profile  \t x]\r\n"
                          "a = 1\r\n"
                          "[profile \"two  words\"]\r\n"
                          "a = 2\r\n"
                          "[profile 'y']\r\n"
                          "a:b=3");
    CHECK_STR(stk_ini_get(ini, "default", "aws_access_key_id"), "AKID");
    CHECK_STR(stk_ini_get(ini, "default", "AWS_SECRET_ACCESS_KEY"), "a=b:c");
    CHECK_STR(stk_ini_get(ini, "profile x", "a"), "1");
    CHECK_STR(stk_ini_get(ini, "profile two words", "a"), "2");
    CHECK_STR(stk_ini_get(ini, "profile y", "a"), "b=3");
    stk_ini_free(ini);
}

static void comments_are_whole_lines(void) {
    stk_ini *ini = parsed("# first\n"
                          "; second\n"
                          "[a] # third\n"
                          "   # fourth\n"
                          "x = 1 # stays\n"
                          "#x = 2\n"
                          ";x = 3\n"
                          "run = sh -c \"a ; b\"\n"
                          "  # not part of it\n"
                          "  -v\n");
    CHECK_STR(stk_ini_get(ini, "a", "x"), "1 # stays");
    CHECK_STR(stk_ini_get(ini, "a", "run"), "sh -c \"a ; b\"\n-v");
    CHECK(stk_ini_has(ini, "a") && !stk_ini_has(ini, "a] # third"));
    stk_ini_free(ini);
}

static void deeper_lines(void) {
    stk_ini *ini = parsed("[services s]\n"
                          "s3 =\n"
                          "  endpoint_url = http://h:1/a=b\n"
                          "\n"
                          "  # comment\n"
                          "    Addressing_Style=path\n"
                          "other = 1\n"
                          "  [two]\n"
                          "      three\n"
                          "  last = 1\n"
                          "[b]\n"
                          "  s3 = x\n"
                          "  endpoint_url = y\n"
                          "s3=z\n");
    CHECK_STR(stk_ini_get(ini, "services s", "s3.endpoint_url"), "http://h:1/a=b");
    CHECK_STR(stk_ini_get(ini, "services s", "S3.addressing_style"), "path");
    CHECK(stk_ini_get(ini, "services s", "endpoint_url") == NULL);
    CHECK(stk_ini_get(ini, "services s", "s3") == NULL);
    CHECK(stk_ini_get(ini, "services s", "s3.other") == NULL);
    CHECK_STR(stk_ini_get(ini, "services s", "other"), "1\n[two]\nthree\nlast = 1");
    CHECK_STR(stk_ini_get(ini, "b", "s3"), "z");
    CHECK_STR(stk_ini_get(ini, "b", "endpoint_url"), "y");
    CHECK(!stk_ini_has(ini, "two"));
    stk_ini_free(ini);
}

static void the_last_one_counts(void) {
    stk_ini *ini = parsed("[a]\nx=1\ny=1\n[b]\nx=2\n[a]\nx=3\nX=4\n[c]\n");
    CHECK_STR(stk_ini_get(ini, "a", "x"), "4");
    CHECK_STR(stk_ini_get(ini, "a", "y"), "1");
    CHECK_STR(stk_ini_get(ini, "b", "x"), "2");
    CHECK(stk_ini_has(ini, "c"));
    stk_ini_free(ini);
}

/* The sentence names file and line; what stands there may be a secret. */
static void malformed_files(void) {
    static const struct {
        const char *text;
        const char *part;
    } bad[] = {
        {"[a]\n\nsecret-stuff\n", "line 3 is neither"},
        {"secret-stuff = 1\n", "line 1 stands before the first"},
        {"[a]\n[secret-stuff\n", "line 2 begins a section that has no ]"},
        {"[  ]\n", "line 1 has a section without a name"},
        {"[\"\"]\n", "line 1 has a section without a name"},
        {"[a]\n= secret-stuff\n", "line 2 is neither"},
        {"[a]\ns3 =\n  secret-stuff\n", "line 3 is neither"},
        {"[a]\ns3 =\n  secret: stuff\n", "line 3 is neither"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        stk_ini *ini = NULL;
        stk_error err = {0};
        CHECK_INT(stk_ini_parse(&ini, bad[i].text, strlen(bad[i].text), "the/file", &err),
                  STK_ERR_USAGE);
        CHECK(ini == NULL);
        CHECK_CONTAINS(err.message, "the/file");
        CHECK_CONTAINS(err.message, bad[i].part);
        CHECK(strstr(err.message, "secret") == NULL);
    }
    stk_ini *ini = NULL;
    stk_error err = {0};
    CHECK_INT(stk_ini_parse(&ini, "[a]\0x", 5, "the/file", &err), STK_ERR_USAGE);
    CHECK_CONTAINS(err.message, "no text");
}

static void nothing_is_empty(void) {
    static const char *const texts[] = {"", "\n\n\r\n", "# only this", " \t"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        stk_ini *ini = parsed(texts[i]);
        CHECK(!stk_ini_has(ini, "default") && !stk_ini_has(ini, ""));
        CHECK(stk_ini_get(ini, "default", "region") == NULL);
        stk_ini_free(ini);
    }
}

static void files(void) {
    const char *folder = check_folder();
    char *path = stk_path_join(folder, "config");
    stk_ini *ini = NULL;
    stk_error err = {0};
    REQUIRE(path != NULL);
    REQUIRE_OK(stk_ini_read(&ini, path, &err), &err);
    CHECK(!stk_ini_has(ini, "a"));
    stk_ini_free(ini);
    REQUIRE_OK(stk_ini_read(&ini, folder, &err), &err);
    CHECK(!stk_ini_has(ini, "a"));
    stk_ini_free(ini);
    REQUIRE_OK(stk_ini_read(&ini, "/dev/null", &err), &err);
    stk_ini_free(ini);
    REQUIRE_OK(stk_file_write(path, "[a]\nx=1", 7, &err), &err);
    REQUIRE_OK(stk_ini_read(&ini, path, &err), &err);
    CHECK_STR(stk_ini_get(ini, "a", "x"), "1");
    stk_ini_free(ini);
    stk_mem_free(path);
}

/* As large as a file may be, in the shapes that cost the most, and one byte more. */
static void huge_files(void) {
    static const char *const shapes[] = {"[a]\n", "x=1\n", "  deeper\n", "x=\n  y=1\n"};
    char *path = stk_path_join(check_folder(), "huge");
    stk_error err = {0};
    REQUIRE(path != NULL);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        stk_str text = {0};
        stk_ini *ini = NULL;
        stk_str_append(&text, "[a]\nx = 0\n");
        while (text.length + 16 < STK_INI_MAX_BYTES) {
            stk_str_append(&text, shapes[i]);
        }
        while (text.length < STK_INI_MAX_BYTES) {
            stk_str_append(&text, "\n");
        }
        REQUIRE_OK(stk_file_write(path, text.text, text.length, &err), &err);
        REQUIRE_OK(stk_ini_read(&ini, path, &err), &err);
        CHECK(stk_ini_has(ini, "a"));
        stk_ini_free(ini);
        stk_str_append(&text, "\n");
        REQUIRE_OK(stk_file_write(path, text.text, text.length, &err), &err);
        stk_error large = {0};
        CHECK_INT(stk_ini_read(&ini, path, &large), STK_ERR_STORAGE);
        CHECK_CONTAINS(large.message, path);
        stk_str_free(&text);
    }
    stk_mem_free(path);
}

static void many_sections_are_found_again(void) {
    stk_str text = {0};
    for (int i = 0; i < 20000; i++) {
        stk_str_appendf(&text, "[s%d]\nv=%d\n", i % 10000, i);
    }
    REQUIRE(stk_str_ok(&text));
    stk_ini *ini = parsed(text.text);
    CHECK_STR(stk_ini_get(ini, "s0", "v"), "10000");
    CHECK_STR(stk_ini_get(ini, "s9999", "v"), "19999");
    CHECK(stk_ini_has(ini, "s9999") && !stk_ini_has(ini, "s10000"));
    stk_ini_free(ini);
    stk_str_free(&text);
}

static void lack_of_memory(void) {
    stk_status status = STK_ERR_MEMORY;
    stk_ini *ini = NULL;
    int64_t failures = 0;
    for (; status != STK_OK && failures < 100; failures++) {
        stk_error err = {0};
        stk_mem_fail_after(failures);
        status = stk_ini_parse(&ini, "[a]\nx=1\n[b]\ny=2\n", 16, "file", &err);
        stk_mem_fail_after(-1);
        CHECK(status == STK_OK || (status == STK_ERR_MEMORY && ini == NULL));
    }
    CHECK(failures > 4);
    CHECK(status == STK_OK && stk_ini_get(ini, "b", "y") != NULL);
    stk_ini_free(ini);
}

static const check_test tests[] = {
    TEST(sections_and_values),
    TEST(blanks_case_and_line_ends),
    TEST(comments_are_whole_lines),
    TEST(deeper_lines),
    TEST(the_last_one_counts),
    TEST(malformed_files),
    TEST(nothing_is_empty),
    TEST(files),
    TEST(huge_files),
    TEST(many_sections_are_found_again),
    TEST(lack_of_memory),
};
CHECK_MAIN(tests)
