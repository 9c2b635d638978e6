/* test_storage_s3_settings.c - region, endpoint and profile from the environment and ~/.aws. */
#include "aws_home.h"

#include "storage/s3/settings.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Loads the settings or ends the program: a test has nothing to say without them. */
static stk_s3_settings loaded(void) {
    stk_s3_settings settings = {0};
    stk_error err = {0};
    if (stk_s3_settings_load(&settings, &err) != STK_OK) {
        CHECK_FAIL("not loaded: %s", err.message);
        exit(1);
    }
    return settings;
}

static void nothing_is_set(void) {
    const char *home = aws_fresh_home();
    stk_s3_settings settings = loaded();
    CHECK_STR(settings.profile, "default");
    CHECK(!settings.profile_named && !settings.anonymous);
    CHECK_STR(settings.region, "us-east-1");
    CHECK(settings.endpoint == NULL && settings.ca_bundle == NULL);
    CHECK_INT(settings.style, STK_S3_STYLE_AUTO);
    CHECK(strncmp(settings.config_path, home, strlen(home)) == 0);
    CHECK_STR(settings.config_path + strlen(home), "/.aws/config");
    CHECK_STR(settings.credentials_path + strlen(home), "/.aws/credentials");
    stk_s3_settings_free(&settings);
    CHECK(settings.profile == NULL && settings.region == NULL);
    stk_s3_settings_free(&settings);
}

static void the_profile_speaks(void) {
    aws_fresh_home();
    aws_write("config", "[default]\n"
                        "region = eu-central-1\n"
                        "ca_bundle = /etc/ca.pem\n"
                        "[profile work]\n"
                        "region = us-west-2\n"
                        "endpoint_url = HTTP://Store.Example:80/\n"
                        "s3 =\n"
                        "  addressing_style = virtual\n"
                        "[other]\n"
                        "region = nowhere-1\n");
    aws_write("credentials", "[mixed]\nregion = ap-south-1\n");
    stk_s3_settings settings = loaded();
    CHECK_STR(settings.region, "eu-central-1");
    CHECK_STR(settings.ca_bundle, "/etc/ca.pem");
    CHECK(settings.endpoint == NULL);
    stk_s3_settings_free(&settings);
    setenv("AWS_DEFAULT_PROFILE", "work", 1);
    settings = loaded();
    CHECK_STR(settings.profile, "work");
    CHECK(settings.profile_named);
    CHECK_STR(settings.region, "us-west-2");
    CHECK_STR(settings.endpoint, "http://store.example");
    CHECK_INT(settings.style, STK_S3_STYLE_VIRTUAL);
    stk_s3_settings_free(&settings);
    setenv("AWS_PROFILE", "mixed", 1);
    settings = loaded();
    CHECK_STR(settings.region, "ap-south-1");
    stk_s3_settings_free(&settings);
}

static void the_default_profile_has_two_spellings(void) {
    aws_fresh_home();
    aws_write("config", "[default]\nregion = eu-west-1\n[profile default]\nregion = eu-west-2\n");
    stk_s3_settings settings = loaded();
    CHECK_STR(settings.region, "eu-west-2");
    stk_s3_settings_free(&settings);
    setenv("AWS_PROFILE", "default", 1);
    aws_write("config", "[default]\nregion = eu-west-1\n");
    settings = loaded();
    CHECK_STR(settings.region, "eu-west-1");
    stk_s3_settings_free(&settings);
}

static void the_environment_wins(void) {
    aws_fresh_home();
    aws_write("config", "[default]\n"
                        "region = eu-central-1\n"
                        "ca_bundle = /etc/ca.pem\n"
                        "endpoint_url = http://config:1\n"
                        "services = mine\n"
                        "[services mine]\n"
                        "dynamodb =\n"
                        "  endpoint_url = http://wrong\n"
                        "s3 =\n"
                        "  endpoint_url = http://service:2\n");
    setenv("AWS_CA_BUNDLE", "/my.pem", 1);
    setenv("AWS_DEFAULT_REGION", "eu-north-1", 1);
    setenv("AWS_NO_SIGN_REQUEST", "YES", 1);
    stk_s3_settings settings = loaded();
    CHECK_STR(settings.region, "eu-north-1");
    CHECK_STR(settings.ca_bundle, "/my.pem");
    CHECK_STR(settings.endpoint, "http://service:2");
    CHECK(settings.anonymous);
    stk_s3_settings_free(&settings);
    setenv("AWS_REGION", "eu-south-1", 1);
    setenv("AWS_ENDPOINT_URL", "https://global", 1);
    settings = loaded();
    CHECK_STR(settings.region, "eu-south-1");
    CHECK_STR(settings.endpoint, "https://global");
    stk_s3_settings_free(&settings);
    setenv("AWS_ENDPOINT_URL_S3", "https://s3only", 1);
    settings = loaded();
    CHECK_STR(settings.endpoint, "https://s3only");
    stk_s3_settings_free(&settings);
    setenv("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "true", 1);
    setenv("AWS_REGION", "", 1);
    settings = loaded();
    CHECK(settings.endpoint == NULL);
    CHECK_STR(settings.region, "eu-north-1");
    stk_s3_settings_free(&settings);
}

static void files_may_be_elsewhere(void) {
    const char *home = aws_fresh_home();
    aws_write("other", "[default]\nregion = eu-west-3\n");
    setenv("AWS_CONFIG_FILE", "~/.aws/other", 1);
    setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null", 1);
    stk_s3_settings settings = loaded();
    CHECK_STR(settings.region, "eu-west-3");
    CHECK_STR(settings.credentials_path, "/dev/null");
    CHECK_STR(settings.config_path + strlen(home), "/.aws/other");
    stk_s3_settings_free(&settings);
}

static void endpoints_are_written_in_one_way(void) {
    static const char *const known[][2] = {
        {"http://127.0.0.1:9000", "http://127.0.0.1:9000"},
        {"http://127.0.0.1:9000///", "http://127.0.0.1:9000"},
        {"HTTPS://MinIO.Example.ORG:443", "https://minio.example.org"},
        {"https://h:80", "https://h:80"},
        {"http://h:00080", "http://h"},
        {"http://[::1]:9000/", "http://[::1]:9000"},
        {"http://[FE80::1]", "http://[fe80::1]"},
        {"https://x.example/storage/v1/S3/", "https://x.example/storage/v1/S3"},
    };
    static const char *const wrong[] = {
        "localhost:9000",  "ftp://h",           "http://",
        "https:///a",      "http://h:0",        "http://h:65536",
        "http://h:x",      "http://u:secret@h", "http://h/?key=secret",
        "http://h/a b",    "http://h\nX: 1",    "http://[::1",
        "http://[::1]x:1", "http://:9000",      "http://h:99999999999999999999"};
    aws_fresh_home();
    for (size_t i = 0; i < COUNT(known); i++) {
        setenv("AWS_ENDPOINT_URL", known[i][0], 1);
        stk_s3_settings settings = loaded();
        CHECK_STR(settings.endpoint, known[i][1]);
        stk_s3_settings_free(&settings);
    }
    for (size_t i = 0; i < COUNT(wrong); i++) {
        stk_s3_settings settings = {0};
        stk_error err = {0};
        setenv("AWS_ENDPOINT_URL", wrong[i], 1);
        if (stk_s3_settings_load(&settings, &err) != STK_ERR_USAGE) {
            CHECK_FAIL("%s was taken as %s", wrong[i], settings.endpoint);
        }
        CHECK_CONTAINS(err.message, "AWS_ENDPOINT_URL");
        CHECK(strstr(err.message, "secret") == NULL);
        CHECK(settings.profile == NULL);
        stk_s3_settings_free(&settings);
    }
}

static void what_cannot_be_used_is_said(void) {
    static const struct {
        const char *profile;
        const char *config;
        const char *part;
    } bad[] = {
        {"gone", "[gone]\nregion = eu-west-1\n", "[profile gone]"},
        {NULL, "[default]\nregion = eu-west-1 # near\n", "eu-west-1 # near"},
        {NULL, "[default]\nregion = evil.example/x\n", "region"},
        {NULL, "[default]\nendpoint_url = nonsense\n", "endpoint_url of the AWS profile"},
        {NULL, "[default]\ns3 =\n  addressing_style = paths\n", "addressing_style 'paths'"},
        {NULL, "[default\n", "line 1"},
    };
    aws_fresh_home();
    for (size_t i = 0; i < COUNT(bad); i++) {
        stk_s3_settings settings = {0};
        stk_error err = {0};
        aws_write("config", bad[i].config);
        if (bad[i].profile != NULL) {
            setenv("AWS_PROFILE", bad[i].profile, 1);
        } else {
            unsetenv("AWS_PROFILE");
        }
        CHECK_INT(stk_s3_settings_load(&settings, &err), STK_ERR_USAGE);
        CHECK_CONTAINS(err.message, bad[i].part);
        CHECK(settings.profile == NULL && settings.region == NULL);
    }
}

/* Settings by hand, so that addresses are tested alone. */
static void check_address(const char *endpoint, const char *region, stk_s3_style style,
                          const char *bucket, const char *const expected[3]) {
    char endpoint_text[64] = "";
    char region_text[64];
    snprintf(region_text, sizeof region_text, "%s", region);
    snprintf(endpoint_text, sizeof endpoint_text, "%s", endpoint != NULL ? endpoint : "");
    stk_s3_settings settings = {
        .region = region_text, .endpoint = endpoint != NULL ? endpoint_text : NULL, .style = style};
    stk_s3_address address = {0};
    stk_error err = {0};
    REQUIRE_OK(stk_s3_address_of(&settings, bucket, &address, &err), &err);
    CHECK_STR(address.origin, expected[0]);
    CHECK_STR(address.host, expected[1]);
    CHECK_STR(address.path, expected[2]);
    stk_s3_address_free(&address);
    CHECK(address.origin == NULL);
}

static void addresses_of_buckets(void) {
    static const struct {
        const char *endpoint;
        const char *region;
        stk_s3_style style;
        const char *bucket;
        const char *expected[3];
    } known[] = {
        {NULL,
         "us-east-1",
         STK_S3_STYLE_AUTO,
         "pictures",
         {"https://pictures.s3.us-east-1.amazonaws.com", "pictures.s3.us-east-1.amazonaws.com",
          ""}},
        {NULL,
         "eu-west-1",
         STK_S3_STYLE_AUTO,
         "my.pictures",
         {"https://s3.eu-west-1.amazonaws.com", "s3.eu-west-1.amazonaws.com", "/my.pictures"}},
        {NULL,
         "eu-west-1",
         STK_S3_STYLE_AUTO,
         "Pictures_1",
         {"https://s3.eu-west-1.amazonaws.com", "s3.eu-west-1.amazonaws.com", "/Pictures_1"}},
        {NULL,
         "eu-west-1",
         STK_S3_STYLE_PATH,
         "pictures",
         {"https://s3.eu-west-1.amazonaws.com", "s3.eu-west-1.amazonaws.com", "/pictures"}},
        {NULL,
         "cn-north-1",
         STK_S3_STYLE_AUTO,
         "abc",
         {"https://abc.s3.cn-north-1.amazonaws.com.cn", "abc.s3.cn-north-1.amazonaws.com.cn", ""}},
        {NULL,
         "us-east-1",
         STK_S3_STYLE_AUTO,
         "ab",
         {"https://s3.us-east-1.amazonaws.com", "s3.us-east-1.amazonaws.com", "/ab"}},
        {NULL,
         "us-east-1",
         STK_S3_STYLE_VIRTUAL,
         "a.b.c",
         {"https://a.b.c.s3.us-east-1.amazonaws.com", "a.b.c.s3.us-east-1.amazonaws.com", ""}},
        {"http://127.0.0.1:9000",
         "us-east-1",
         STK_S3_STYLE_AUTO,
         "pictures",
         {"http://127.0.0.1:9000", "127.0.0.1:9000", "/pictures"}},
        {"http://127.0.0.1:9000",
         "us-east-1",
         STK_S3_STYLE_VIRTUAL,
         "pictures",
         {"http://127.0.0.1:9000", "127.0.0.1:9000", "/pictures"}},
        {"http://[::1]:9000",
         "us-east-1",
         STK_S3_STYLE_VIRTUAL,
         "pictures",
         {"http://[::1]:9000", "[::1]:9000", "/pictures"}},
        {"https://store.example",
         "auto",
         STK_S3_STYLE_VIRTUAL,
         "pictures",
         {"https://pictures.store.example", "pictures.store.example", ""}},
        {"https://x.example/storage/s3",
         "auto",
         STK_S3_STYLE_AUTO,
         "pictures",
         {"https://x.example", "x.example", "/storage/s3/pictures"}},
    };
    for (size_t i = 0; i < COUNT(known); i++) {
        check_address(known[i].endpoint, known[i].region, known[i].style, known[i].bucket,
                      known[i].expected);
    }
}

static void what_is_no_bucket(void) {
    static const char *const wrong[] = {
        "", "a/b", "..", ".", "a b", "a:b", "arn:aws:s3:::x", "a\nb", "\xc3\xbc", "a%62", "a@b"};
    char region[] = "us-east-1";
    const stk_s3_settings settings = {.region = region};
    for (size_t i = 0; i < COUNT(wrong); i++) {
        stk_s3_address address = {0};
        stk_error err = {0};
        CHECK_INT(stk_s3_address_of(&settings, wrong[i], &address, &err), STK_ERR_USAGE);
        CHECK_CONTAINS(err.message, "bucket");
    }
}

static void lack_of_memory(void) {
    stk_s3_settings settings = {0};
    stk_s3_address address = {0};
    stk_status status = STK_ERR_MEMORY;
    aws_fresh_home();
    aws_write("config", "[default]\nregion = eu-west-1\nca_bundle = /x\nendpoint_url = http://h\n");
    for (int64_t i = 0; i < 100 && status != STK_OK; i++) {
        stk_error err = {0};
        stk_mem_fail_after(i);
        status = stk_s3_settings_load(&settings, &err);
        stk_mem_fail_after(-1);
        CHECK(status == STK_OK || (status == STK_ERR_MEMORY && settings.profile == NULL));
    }
    CHECK_INT(status, STK_OK);
    status = STK_ERR_MEMORY;
    for (int64_t i = 0; i < 100 && status != STK_OK; i++) {
        stk_error err = {0};
        stk_mem_fail_after(i);
        status = stk_s3_address_of(&settings, "pictures", &address, &err);
        stk_mem_fail_after(-1);
        CHECK(status == STK_OK || (status == STK_ERR_MEMORY && address.host == NULL));
    }
    CHECK_INT(status, STK_OK);
    stk_s3_address_free(&address);
    stk_s3_settings_free(&settings);
}

static const check_test tests[] = {
    TEST(nothing_is_set),
    TEST(the_profile_speaks),
    TEST(the_default_profile_has_two_spellings),
    TEST(the_environment_wins),
    TEST(files_may_be_elsewhere),
    TEST(endpoints_are_written_in_one_way),
    TEST(what_cannot_be_used_is_said),
    TEST(addresses_of_buckets),
    TEST(what_is_no_bucket),
    TEST(lack_of_memory),
};
CHECK_MAIN(tests)
