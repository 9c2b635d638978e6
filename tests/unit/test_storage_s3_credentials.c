/*
 * test_storage_s3_credentials.c - credentials from the environment, files, a process and the two
 * services, and every way in which they can be wrong. Each secret here has Hush in it, and
 * no sentence may have.
 */
#include "aws_home.h"

#ifdef STK_HAVE_S3

#include <inttypes.h>
#include <time.h>

#include "small_server.h"
#include "storage/http/transfer.h"
#include "storage/s3/providers.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define FUTURE "2100-01-02T03:04:05Z"
#define FUTURE_S 4102542245
#define PAST "2001-01-01T00:00:00Z"
#define KEYS "\"AccessKeyId\":\"AKIDJSON\",\"SecretAccessKey\":\"jsonHush\""

/* A home without anything, and no service of the machine that runs the tests. */
static void fresh(void) {
    aws_fresh_home();
    setenv("AWS_EC2_METADATA_DISABLED", "true", 1);
}

static stk_status find(stk_s3_credentials *credentials, stk_error *err) {
    stk_s3_settings settings = {0};
    stk_status status = stk_s3_settings_load(&settings, err);
    if (status == STK_OK) {
        status = stk_s3_credentials_find(&settings, credentials, err);
    }
    stk_s3_settings_free(&settings);
    return status;
}

/* Finds credentials and compares them; token NULL: there is none. */
static void check_found(const char *key_id, const char *secret, const char *token,
                        const char *source) {
    stk_s3_credentials found = {0};
    stk_error err = {0};
    REQUIRE_OK(find(&found, &err), &err);
    CHECK_STR(found.key_id, key_id);
    CHECK_STR(found.secret, secret);
    if (token != NULL) {
        CHECK_STR(found.token, token);
    } else {
        CHECK(found.token == NULL);
    }
    CHECK_CONTAINS(found.source, source);
    CHECK(strstr(found.source, "Hush") == NULL);
    stk_s3_credentials_free(&found);
    CHECK(found.key_id == NULL && found.secret == NULL && found.source == NULL);
}

static void check_none(void) {
    stk_s3_credentials found = {0};
    stk_error err = {0};
    REQUIRE_OK(find(&found, &err), &err);
    CHECK(found.key_id == NULL && found.secret == NULL && found.token == NULL);
    CHECK_INT(found.expires_s, 0);
    CHECK_CONTAINS(found.source, "no credentials");
    stk_s3_credentials_free(&found);
}

static void check_error(stk_status status, const char *part) {
    stk_s3_credentials found = {0};
    stk_error err = {0};
    CHECK_INT(find(&found, &err), status);
    CHECK_CONTAINS(err.message, part);
    CHECK(strstr(err.message, "Hush") == NULL);
    CHECK(found.key_id == NULL && found.source == NULL);
    stk_s3_credentials_free(&found);
}

static void nothing_anywhere(void) {
    fresh();
    check_none();
    aws_write("config", "[default]\nregion = eu-west-1\n");
    aws_write("credentials", "[other]\naws_access_key_id = a\naws_secret_access_key = b\n");
    check_none();
}

static void the_environment(void) {
    fresh();
    setenv("AWS_ACCESS_KEY_ID", "AKIDENV", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "envHush", 1);
    check_found("AKIDENV", "envHush", NULL, "the environment");
    setenv("AWS_SESSION_TOKEN", "tokenHush", 1);
    check_found("AKIDENV", "envHush", "tokenHush", "the environment");
    /* As with botocore, keys in the environment win over a profile that AWS_PROFILE names. */
    aws_write("credentials", "[x]\naws_access_key_id = AKIDX\naws_secret_access_key = xHush\n");
    setenv("AWS_PROFILE", "x", 1);
    check_found("AKIDENV", "envHush", "tokenHush", "the environment");
    setenv("AWS_NO_SIGN_REQUEST", "1", 1);
    check_none();
    unsetenv("AWS_NO_SIGN_REQUEST");
    setenv("AWS_ACCESS_KEY_ID", "", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "", 1);
    check_found("AKIDX", "xHush", NULL, "profile 'x' in ~/.aws/credentials");
}

static void halves_in_the_environment(void) {
    fresh();
    setenv("AWS_ACCESS_KEY_ID", "AKIDENV", 1);
    check_error(STK_ERR_USAGE, "AWS_ACCESS_KEY_ID is there, but AWS_SECRET_ACCESS_KEY is not");
    unsetenv("AWS_ACCESS_KEY_ID");
    setenv("AWS_SECRET_ACCESS_KEY", "envHush", 1);
    check_error(STK_ERR_USAGE, "AWS_SECRET_ACCESS_KEY is there, but AWS_ACCESS_KEY_ID is not");
    setenv("AWS_ACCESS_KEY_ID", "AKID ENV", 1);
    check_error(STK_ERR_USAGE, "the environment: one of them holds a blank");
    setenv("AWS_ACCESS_KEY_ID", "AKIDENV", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "envHush\r\nX-Evil: 1", 1);
    check_error(STK_ERR_USAGE, "holds a blank");
}

static void an_environment_that_expires(void) {
    fresh();
    setenv("AWS_ACCESS_KEY_ID", "AKIDENV", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "envHush", 1);
    setenv("AWS_CREDENTIAL_EXPIRATION", FUTURE, 1);
    stk_s3_credentials found = {0};
    stk_error err = {0};
    REQUIRE_OK(find(&found, &err), &err);
    CHECK_INT(found.expires_s, FUTURE_S);
    CHECK(!stk_s3_credentials_stale(&found, (int64_t)time(NULL)));
    CHECK(!stk_s3_credentials_stale(&found, FUTURE_S - 301));
    CHECK(stk_s3_credentials_stale(&found, FUTURE_S - 300));
    CHECK(stk_s3_credentials_stale(&found, FUTURE_S + 1));
    found.expires_s = 0;
    CHECK(!stk_s3_credentials_stale(&found, INT64_MAX));
    stk_s3_credentials_free(&found);
    setenv("AWS_CREDENTIAL_EXPIRATION", PAST, 1);
    check_error(STK_ERR_USAGE, "they expired at " PAST);
    setenv("AWS_CREDENTIAL_EXPIRATION", "tomorrow", 1);
    check_error(STK_ERR_USAGE, "the time at which they expire cannot be read");
}

static void profiles_in_files(void) {
    fresh();
    aws_write("credentials", "\xEF\xBB\xBF# mine\r\n"
                             "[default]\r\n"
                             "  aws_access_key_id =  AKIDDEFAULT \r\n"
                             "  aws_secret_access_key=def/Hush+=\r\n"
                             "[temporary]\r\n"
                             "aws_access_key_id = AKIDTEMP\r\n"
                             "aws_secret_access_key = tempHush\r\n"
                             "aws_session_token = tokenHush==\r\n"
                             "[profile odd]\r\n"
                             "aws_access_key_id = AKIDODD\r\n"
                             "aws_secret_access_key = oddHush\r\n"
                             "[half]\r\n"
                             "aws_access_key_id = AKIDHALF\r\n"
                             "[otherhalf]\r\n"
                             "aws_secret_access_key = halfHush\r\n"
                             "[comment]\r\n"
                             "aws_access_key_id = AKIDCOMMENT\r\n"
                             "aws_secret_access_key = commentHush # of mine\r\n");
    aws_write("config", "[default]\nregion = eu-west-1\n"
                        "aws_access_key_id = AKIDWRONG\naws_secret_access_key = wrongHush\n"
                        "[profile conf]\n"
                        "aws_access_key_id = AKIDCONF\naws_secret_access_key = confHush\n"
                        "aws_security_token = oldtokenHush\n"
                        "[plain]\n"
                        "aws_access_key_id = AKIDPLAIN\naws_secret_access_key = plainHush\n"
                        "[profile none]\n");
    check_found("AKIDDEFAULT", "def/Hush+=", NULL, "profile 'default' in ~/.aws/credentials");
    setenv("AWS_PROFILE", "temporary", 1);
    check_found("AKIDTEMP", "tempHush", "tokenHush==", "profile 'temporary'");
    setenv("AWS_PROFILE", "conf", 1);
    check_found("AKIDCONF", "confHush", "oldtokenHush", "profile 'conf' in ~/.aws/config");
    setenv("AWS_PROFILE", "none", 1);
    check_none();
    setenv("AWS_PROFILE", "half", 1);
    check_error(STK_ERR_USAGE, "profile 'half' in ~/.aws/credentials: aws_access_key_id is there");
    setenv("AWS_PROFILE", "otherhalf", 1);
    check_error(STK_ERR_USAGE, "aws_secret_access_key is there, but aws_access_key_id is not");
    setenv("AWS_PROFILE", "comment", 1);
    check_error(STK_ERR_USAGE, "perhaps a comment");
    setenv("AWS_PROFILE", "odd", 1);
    check_error(STK_ERR_USAGE, "the profile 'odd'");
    setenv("AWS_PROFILE", "plain", 1);
    check_error(STK_ERR_USAGE, "as [profile plain]");
}

static void files_that_cannot_be_read(void) {
    fresh();
    aws_write("credentials", "[default]\naws_secret_access_key theHush\n");
    check_error(STK_ERR_USAGE, "line 2");
    aws_write("credentials", "aws_secret_access_key = theHush\n");
    check_error(STK_ERR_USAGE, "line 1");
    char *huge = stk_mem_raw(STK_INI_MAX_BYTES + 2, 1);
    REQUIRE(huge != NULL);
    memset(huge, '#', STK_INI_MAX_BYTES + 1);
    huge[STK_INI_MAX_BYTES + 1] = '\0';
    aws_write("credentials", huge);
    check_error(STK_ERR_STORAGE, "credentials");
    stk_mem_free(huge);
    aws_write("credentials", "");
    check_none();
}

static void what_stoker_cannot_do_is_said(void) {
    static const struct {
        const char *config;
        const char *part;
    } profiles[] = {
        {"role_arn = arn:aws:iam::1:role/r\nsource_profile = other\n", "assumes a role (role_arn)"},
        {"role_arn = arn:aws:iam::1:role/r\nweb_identity_token_file = /x\n", "assumes a role"},
        {"sso_session = s\nsso_account_id = 1\nsso_role_name = r\n", "signs in by SSO"},
        {"sso_start_url = https://x\nsso_role_name = r\n", "signs in by SSO"},
        {"login_session = arn:aws:sts::1:x\n", "signs in by `aws login`"},
    };
    fresh();
    for (size_t i = 0; i < COUNT(profiles); i++) {
        char text[256];
        snprintf(text, sizeof text, "[default]\n%s", profiles[i].config);
        aws_write("config", text);
        check_error(STK_ERR_USAGE, profiles[i].part);
        check_error(STK_ERR_USAGE, "export-credentials");
    }
    setenv("AWS_ACCESS_KEY_ID", "AKIDENV", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "envHush", 1);
    check_found("AKIDENV", "envHush", NULL, "the environment");
    unsetenv("AWS_ACCESS_KEY_ID");
    unsetenv("AWS_SECRET_ACCESS_KEY");
    aws_write("config", "");
    setenv("AWS_ROLE_ARN", "arn:aws:iam::1:role/r", 1);
    check_none();
    setenv("AWS_WEB_IDENTITY_TOKEN_FILE", "/token", 1);
    check_error(STK_ERR_USAGE, "web identity");
}

/* Writes a script and a default profile whose credential_process it is. */
static void write_process(const char *script, const char *arguments) {
    char text[512];
    aws_write("run.sh", script);
    snprintf(text, sizeof text, "[default]\ncredential_process = sh \"%s/.aws/run.sh\" %s\n",
             getenv("HOME"), arguments);
    aws_write("config", text);
}

static void a_process(void) {
    fresh();
    write_process("echo '{\"Version\": 1, " KEYS ",'\n"
                  "echo \"\\\"SessionToken\\\": \\\"$#-$1-$2-${#3}-Hush\\\"}\"\n"
                  "echo 'a Hush aside' >&2\n",
                  "'$HOME' a\\;b \"c\\\\d\"'e'");
    check_found("AKIDJSON", "jsonHush", "3-$HOME-a;b-4-Hush",
                "credential_process of the AWS profile 'default'");
    /* Keys of the credentials file come before it, those of the config file after it. */
    aws_write("credentials", "[default]\naws_access_key_id = A\naws_secret_access_key = Hush\n");
    check_found("A", "Hush", NULL, "~/.aws/credentials");
    aws_write("credentials", "");
    aws_write("config", "[default]\naws_access_key_id = A\naws_secret_access_key = Hush\n"
                        "credential_process = echo {"
                        "\\\"AccessKeyId\\\":\\\"AKIDJSON\\\","
                        "\\\"SecretAccessKey\\\":\\\"jsonHush\\\","
                        "\\\"Expiration\\\":\\\"" FUTURE "\\\"}\n");
    stk_s3_credentials found = {0};
    stk_error err = {0};
    REQUIRE_OK(find(&found, &err), &err);
    CHECK_STR(found.key_id, "AKIDJSON");
    CHECK_INT(found.expires_s, FUTURE_S);
    stk_s3_credentials_free(&found);
}

static void processes_that_fail(void) {
    static const struct {
        const char *script;
        stk_status status;
        const char *part;
    } scripts[] = {
        {"echo a Hush >&2\nexit 3\n", STK_ERR_STORAGE, "failed with exit code 3"},
        {"kill -9 $$\n", STK_ERR_STORAGE, "signal 9"},
        {"", STK_ERR_STORAGE, "not the JSON object"},
        {"echo the Hush\n", STK_ERR_STORAGE, "not the JSON object"},
        {"echo '[\"Hush\"]'\n", STK_ERR_STORAGE, "not the JSON object"},
        {"echo '{\"Version\":1}'\n", STK_ERR_STORAGE, "not the JSON object"},
        {"echo '{\"Version\":2," KEYS "}'\n", STK_ERR_STORAGE, "version 1"},
        {"echo '{\"Version\":\"1\"," KEYS "}'\n", STK_ERR_STORAGE, "version 1"},
        {"echo '{\"AccessKeyId\":\"Hush\"}'\n", STK_ERR_STORAGE, "SecretAccessKey is not"},
        {"echo '{\"AccessKeyId\":\"a b\",\"SecretAccessKey\":\"Hush\"}'\n", STK_ERR_STORAGE,
         "holds a blank"},
        {"echo '{\"Version\":1," KEYS ",\"Expiration\":\"" PAST "\"}'\n", STK_ERR_STORAGE,
         "they expired at " PAST},
        {"echo '{\"Version\":1," KEYS ",\"Expiration\":\"Hush\"}'\n", STK_ERR_STORAGE,
         "the time at which they expire cannot be read"},
        {"while :; do echo HushHushHushHushHushHushHush; done\n", STK_ERR_STORAGE,
         "printed more than"},
    };
    fresh();
    for (size_t i = 0; i < COUNT(scripts); i++) {
        write_process(scripts[i].script, "");
        check_error(scripts[i].status, scripts[i].part);
    }
    aws_write("config", "[default]\ncredential_process = /nowhere/at-all --Hush\n");
    check_error(STK_ERR_USAGE, "/nowhere/at-all");
    aws_write("config", "[default]\ncredential_process = echo \"Hush\n");
    check_error(STK_ERR_USAGE, "a quote is not closed");
    aws_write("config", "[default]\ncredential_process = echo Hush\\\n");
    check_error(STK_ERR_USAGE, "a quote is not closed");
    char many[512] = "[default]\ncredential_process = echo";
    for (int i = 0; i < 70; i++) {
        strcat(many, " x");
    }
    aws_write("config", many);
    check_error(STK_ERR_USAGE, "more than 64 words");
}

/* What does not end is stopped, together with what it started, whether or not it is silent. */
static void processes_that_hang(void) {
    static const char *const commands[] = {
        "sleep 1000",
        "sh -c 'sleep 1000 & echo {}; wait'",
        "sh -c 'exec >&-; sleep 1000'",
    };
    for (size_t i = 0; i < COUNT(commands); i++) {
        stk_s3_credentials found = {0};
        stk_error err = {0};
        CHECK_INT(stk_s3_from_process(commands[i], "p", 1, &found, &err), STK_ERR_STORAGE);
        CHECK_CONTAINS(err.message, "did not end within 1 s");
        CHECK(found.key_id == NULL);
    }
}

/* Makes the variable an address on the server. */
static void set_address(const char *variable, const small_server *server, const char *path) {
    char url[128];
    snprintf(url, sizeof url, "http://127.0.0.1:%d%s", server->port, path);
    setenv(variable, url, 1);
}

static void the_container(void) {
    static const small_rule rules[] = {
        {"GET /creds?x=1 ", 503, "", 1},
        {"GET /creds?x=1 ", 0, "", 1},
        {"GET /creds?x=1 ", 200,
         "{" KEYS ",\"Token\":\"tokenHush\",\"Expiration\":\"" FUTURE "\",\"RoleArn\":\"x\"}", 0},
        {NULL, 0, NULL, 0}};
    static small_server server;
    fresh();
    setenv("http_proxy", "http://127.0.0.1:1", 1);
    small_server_start(&server, rules);
    set_address("AWS_CONTAINER_CREDENTIALS_FULL_URI", &server, "/creds?x=1");
    setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN", "Basic Hush", 1);
    check_found("AKIDJSON", "jsonHush", "tokenHush", "the container's credentials service");
    aws_write("token", "fileHush\n");
    setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "/nowhere/token", 1);
    check_error(STK_ERR_STORAGE, "/nowhere/token");
    char path[512];
    snprintf(path, sizeof path, "%s/.aws/token", getenv("HOME"));
    setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", path, 1);
    check_found("AKIDJSON", "jsonHush", "tokenHush", "the container's credentials service");
    aws_write("token", "fileHush\r\nX-Evil: 1");
    check_error(STK_ERR_USAGE, "line break");
    small_server_stop(&server);
    unsetenv("http_proxy");
    CHECK_INT(server.count, 4);
    CHECK_CONTAINS(server.requests[2], "\r\nAuthorization: Basic Hush\r\n");
    CHECK_CONTAINS(server.requests[2], "\r\nAccept: application/json\r\n");
    CHECK_CONTAINS(server.requests[3], "\r\nAuthorization: fileHush\r\n");
}

static void containers_that_fail(void) {
    static char long_text[STK_S3_ANSWER_MAX + 2];
    memset(long_text, ' ', sizeof long_text - 1);
    const small_rule rules[] = {{"GET /refused ", 403, "{\"message\":\"Hush\"}", 0},
                                {"GET /broken ", 200, "{" KEYS, 0},
                                {"GET /empty ", 200, "", 0},
                                {"GET /half ", 200, "{\"SecretAccessKey\":\"Hush\"}", 0},
                                {"GET /old ", 200, "{" KEYS ",\"Expiration\":\"" PAST "\"}", 0},
                                {"GET /long ", 200, long_text, 0},
                                {"GET /moved ", 302, "Hush", 0},
                                {"GET /trouble ", 500, "Hush", 0},
                                {"GET /silent ", 0, "", 0},
                                {NULL, 0, NULL, 0}};
    static const char *const parts[][2] = {
        {"/refused", "status 403"},        {"/broken", "not the JSON object"},
        {"/empty", "not the JSON object"}, {"/half", "AccessKeyId is not"},
        {"/old", "they expired"},          {"/long", "more than 65536 bytes"},
        {"/moved", "status 302"},          {"/trouble", "status 500"},
        {"/silent", "there was no answer"}};
    static small_server server;
    fresh();
    small_server_start(&server, rules);
    for (size_t i = 0; i < COUNT(parts); i++) {
        set_address("AWS_CONTAINER_CREDENTIALS_FULL_URI", &server, parts[i][0]);
        check_error(STK_ERR_STORAGE, parts[i][1]);
    }
    small_server_stop(&server);
    check_error(STK_ERR_STORAGE, "there was no answer");
}

/* Keys are fetched without encryption from this machine and the containers' own hosts only. */
static void containers_elsewhere(void) {
    static const char *const wrong[] = {"http://example.com/Hush",
                                        "http://127.0.0.1@example.com/",
                                        "http://user:Hush@127.0.0.1/",
                                        "http://127.0.0.1.example.com/",
                                        "http://localhost.example.com/",
                                        "http://169.254.169.254/",
                                        "http://169.254.170.3/",
                                        "http://[fd00:ec2::24]/",
                                        "http://[::2]/",
                                        "http://10.0.0.1/",
                                        "ftp://127.0.0.1/",
                                        "file:///etc/passwd",
                                        "127.0.0.1/creds",
                                        "nonsense"};
    fresh();
    for (size_t i = 0; i < COUNT(wrong); i++) {
        setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", wrong[i], 1);
        check_error(STK_ERR_USAGE, "a place that keys are not taken from");
    }
    setenv("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", ".example.com/", 1);
    check_error(STK_ERR_USAGE, "does not begin with a slash");
}

#define TOKEN_LINE "PUT /latest/api/token "
#define ROLE_LINE "GET /latest/meta-data/iam/security-credentials/ "
#define CREDENTIALS_LINE "GET /latest/meta-data/iam/security-credentials/my-role "

static void the_instance(void) {
    static const small_rule rules[] = {{TOKEN_LINE, 200, "sessionHush==", 0},
                                       {ROLE_LINE, 200, "my-role\n", 0},
                                       {CREDENTIALS_LINE, 200,
                                        "{\"Code\":\"Success\",\"Type\":\"AWS-HMAC\"," KEYS
                                        ",\"Token\":\"tokenHush\",\"Expiration\":\"" FUTURE "\"}",
                                        0},
                                       {NULL, 0, NULL, 0}};
    static small_server server;
    fresh();
    small_server_start(&server, rules);
    set_address("AWS_EC2_METADATA_SERVICE_ENDPOINT", &server, "//");
    check_none();
    unsetenv("AWS_EC2_METADATA_DISABLED");
    check_found("AKIDJSON", "jsonHush", "tokenHush", "the instance's service (role my-role)");
    small_server_stop(&server);
    REQUIRE(server.count == 3);
    CHECK_CONTAINS(server.requests[0], "\r\nx-aws-ec2-metadata-token-ttl-seconds: 300\r\n");
    CHECK_CONTAINS(server.requests[0], "\r\nContent-Length: 0\r\n");
    CHECK_CONTAINS(server.requests[1], "\r\nx-aws-ec2-metadata-token: sessionHush==\r\n");
    CHECK_CONTAINS(server.requests[2], "\r\nx-aws-ec2-metadata-token: sessionHush==\r\n");
}

/* Machines that are none of Amazon's, or have no role, have no credentials, and that is no error.
 */
static void instances_without(void) {
    static const small_rule none[][3] = {
        {{TOKEN_LINE, 404, "", 0}, {NULL, 0, NULL, 0}},
        {{TOKEN_LINE, 403, "Hush", 0}, {NULL, 0, NULL, 0}},
        {{TOKEN_LINE, 200, "", 0}, {NULL, 0, NULL, 0}},
        {{TOKEN_LINE, 200, "<html>a captive\r\nportal</html>", 0}, {NULL, 0, NULL, 0}},
        {{TOKEN_LINE, 0, "", 0}, {NULL, 0, NULL, 0}},
        {{TOKEN_LINE, 200, "t", 0}, {ROLE_LINE, 404, "none", 0}, {NULL, 0, NULL, 0}},
        {{TOKEN_LINE, 200, "t", 0}, {ROLE_LINE, 200, "", 0}, {NULL, 0, NULL, 0}},
    };
    static small_server server;
    fresh();
    unsetenv("AWS_EC2_METADATA_DISABLED");
    for (size_t i = 0; i < COUNT(none); i++) {
        small_server_start(&server, none[i]);
        set_address("AWS_EC2_METADATA_SERVICE_ENDPOINT", &server, "");
        check_none();
        small_server_stop(&server);
    }
    check_none(); /* nobody listens any more */
}

static void instances_that_fail(void) {
    static const struct {
        small_rule rules[4];
        const char *part;
    } bad[] = {
        {{{TOKEN_LINE, 503, "", 0}, {NULL, 0, NULL, 0}}, "a session with status 503"},
        {{{TOKEN_LINE, 200, "t", 0}, {ROLE_LINE, 500, "Hush", 0}, {NULL, 0, NULL, 0}},
         "the role with status 500"},
        {{{TOKEN_LINE, 200, "t", 0}, {ROLE_LINE, 0, "", 0}, {NULL, 0, NULL, 0}},
         "there was no answer"},
        {{{TOKEN_LINE, 200, "t", 0}, {ROLE_LINE, 200, "a/../b", 0}, {NULL, 0, NULL, 0}},
         "no name of a role"},
        {{{TOKEN_LINE, 200, "t", 0}, {ROLE_LINE, 200, "my-role", 0}, {NULL, 0, NULL, 0}},
         "credentials with status 404"},
        {{{TOKEN_LINE, 200, "t", 0},
          {ROLE_LINE, 200, "my-role", 0},
          {CREDENTIALS_LINE, 200, "{" KEYS "," KEYS "}", 0}},
         "(role my-role): the answer is not the JSON object"},
        {{{TOKEN_LINE, 200, "t", 0},
          {ROLE_LINE, 200, "my-role", 0},
          {CREDENTIALS_LINE, 200,
           "{\"Code\":\"AssumeRoleUnauthorizedAccess\",\"Message\":\"Hush\"}", 0}},
         "the reason is 'AssumeRoleUnauthorizedAccess'"},
        {{{TOKEN_LINE, 200, "t", 0},
          {ROLE_LINE, 200, "my-role", 0},
          {CREDENTIALS_LINE, 200, "{" KEYS ",\"Expiration\":\"" PAST "\"}", 0}},
         "they expired at " PAST},
    };
    static small_server server;
    fresh();
    unsetenv("AWS_EC2_METADATA_DISABLED");
    for (size_t i = 0; i < COUNT(bad); i++) {
        small_server_start(&server, bad[i].rules);
        set_address("AWS_EC2_METADATA_SERVICE_ENDPOINT", &server, "/");
        check_error(STK_ERR_STORAGE, bad[i].part);
        small_server_stop(&server);
    }
    setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", "nonsense", 1);
    check_error(STK_ERR_USAGE, "AWS_EC2_METADATA_SERVICE_ENDPOINT");
}

static void times(void) {
    static const struct {
        const char *text;
        int64_t unix_s;
    } good[] = {
        {"1970-01-01T00:00:00Z", 0},
        {"2026-11-15T12:34:56Z", 1794746096},
        {"2026-11-15 12:34:56z", 1794746096},
        {"2026-11-15T12:34:56.789Z", 1794746096},
        {"2026-11-15T12:34:56+00:00", 1794746096},
        {"2026-11-15T13:34:56+0100", 1794746096},
        {"2026-11-15T04:04:56.1-08:30", 1794746096},
        {"2024-02-29T23:59:59Z", 1709251199},
        {"9999-12-31T23:59:59Z", 253402300799},
    };
    static const char *const bad[] = {
        "",
        "2026",
        "2026-11-15",
        "2026-11-15T12:34:56",
        "2026-11-15T12:34:56 Z",
        "2026-11-15T12:34:56Zx",
        "2026-11-15T12:34:56.Z",
        "2026-13-15T12:34:56Z",
        "2026-00-15T12:34:56Z",
        "2026-11-32T12:34:56Z",
        "2026-11-15T24:34:56Z",
        "2026-11-15T12:60:56Z",
        "2026-11-15T12:34:61Z",
        "2026-11-15T12:34:56+24:00",
        "2026-11-15T12:34:56+1",
        "1969-11-15T12:34:56Z",
        "26-11-15T12:34:56Z",
        "-026-11-15T12:34:56Z",
    };
    for (size_t i = 0; i < COUNT(good); i++) {
        int64_t unix_s = -1;
        CHECK(stk_s3_parse_time(good[i].text, &unix_s));
        CHECK_INT(unix_s, good[i].unix_s);
    }
    for (size_t i = 0; i < COUNT(bad); i++) {
        int64_t unix_s = -1;
        if (stk_s3_parse_time(bad[i], &unix_s)) {
            CHECK_FAIL("%s was taken as %" PRId64, bad[i], unix_s);
        }
    }
}

static void lack_of_memory(void) {
    static const small_rule rules[] = {{"GET /creds ", 200, "{" KEYS "}", 0}, {NULL, 0, NULL, 0}};
    static small_server server;
    for (int round = 0; round < 3; round++) {
        stk_s3_settings settings = {0};
        stk_error err = {0};
        fresh();
        if (round == 0) {
            aws_write("credentials", "[default]\naws_access_key_id = A\naws_secret_access_key = S\n"
                                     "aws_session_token = T\n");
        } else if (round == 1) {
            write_process("echo '{" KEYS "}'", "");
        } else {
            small_server_start(&server, rules);
            set_address("AWS_CONTAINER_CREDENTIALS_FULL_URI", &server, "/creds");
        }
        REQUIRE_OK(stk_s3_settings_load(&settings, &err), &err);
        stk_status status = STK_ERR_MEMORY;
        int64_t failures = 0;
        for (; failures < 100 && status != STK_OK; failures++) {
            stk_s3_credentials found = {0};
            stk_error again = {0};
            stk_mem_fail_after(failures);
            status = stk_s3_credentials_find(&settings, &found, &again);
            stk_mem_fail_after(-1);
            CHECK(status == STK_ERR_MEMORY || (status == STK_OK && found.key_id != NULL));
            CHECK(status == STK_OK || (found.key_id == NULL && found.source == NULL));
            stk_s3_credentials_free(&found);
        }
        CHECK(status == STK_OK && failures > 5);
        stk_s3_settings_free(&settings);
    }
    small_server_stop(&server);
}

static const check_test tests[] = {
    TEST(nothing_anywhere),
    TEST(the_environment),
    TEST(halves_in_the_environment),
    TEST(an_environment_that_expires),
    TEST(profiles_in_files),
    TEST(files_that_cannot_be_read),
    TEST(what_stoker_cannot_do_is_said),
    TEST(a_process),
    TEST(processes_that_fail),
    TEST(processes_that_hang),
    TEST(the_container),
    TEST(containers_that_fail),
    TEST(containers_elsewhere),
    TEST(the_instance),
    TEST(instances_without),
    TEST(instances_that_fail),
    TEST(times),
    TEST(lack_of_memory),
};

#else

static void not_built(void) {
    CHECK_SKIP("built without S3");
}

static const check_test tests[] = {TEST(not_built)};

#endif

CHECK_MAIN(tests)
