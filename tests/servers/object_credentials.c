/*
 * object_credentials.c - see the header.
 */
#include "object_credentials.h"

#include <string.h>
#include <time.h>

#define TOKEN_PATH "/latest/api/token"
#define ROLES_PATH "/latest/meta-data/iam/security-credentials/"
#define CONTAINER_PATH "/container-credentials"

/* What PUT of the token's path gives and all the other paths want. */
static const char metadata_token[] = "metadata-token-of-the-test-server";

bool os_credentials_owns(const char *path) {
    return strncmp(path, "/latest/", 8) == 0 || strcmp(path, CONTAINER_PATH) == 0;
}

static void answer_keys(const os_credentials *credentials, const os_request *request,
                        os_answer *answer) {
    char date[40];
    struct tm parts;
    time_t end = time(NULL) + (time_t)credentials->expires_s;
    if (gmtime_r(&end, &parts) == NULL || strftime(date, sizeof date, "%FT%TZ", &parts) == 0) {
        date[0] = '\0';
    }
    os_text_addf(&answer->body,
                 "{\n  \"Code\": \"Success\",\n  \"Type\": \"AWS-HMAC\",\n"
                 "  \"AccessKeyId\": \"%s\",\n  \"SecretAccessKey\": \"%s\",\n"
                 "  \"Token\": \"%s\",\n  \"Expiration\": \"%s\"\n}\n",
                 credentials->access_key, credentials->secret_key, credentials->session_token,
                 date);
    os_answer_text(answer, request, 200, "application/json");
}

static bool header_is(const os_request *request, const char *name, const char *wanted) {
    const char *value = os_header(request, name);
    return value != NULL && strcmp(value, wanted) == 0;
}

void os_answer_credentials(const os_credentials *credentials, const os_request *request,
                           os_answer *answer) {
    const char *path = request->path;
    bool is_get = strcmp(request->method, "GET") == 0;
    int status = 404;
    if (strcmp(path, CONTAINER_PATH) == 0) {
        if (credentials->container_token == NULL ||
            header_is(request, "authorization", credentials->container_token)) {
            answer_keys(credentials, request, answer);
            return;
        }
        status = 401;
    } else if (strcmp(path, TOKEN_PATH) == 0) {
        if (strcmp(request->method, "PUT") == 0 &&
            os_header(request, "x-aws-ec2-metadata-token-ttl-seconds") != NULL) {
            os_text_addf(&answer->body, "%s", metadata_token);
            os_answer_text(answer, request, 200, "text/plain");
            return;
        }
        status = strcmp(request->method, "PUT") == 0 ? 400 : 405;
    } else if (!is_get || !header_is(request, "x-aws-ec2-metadata-token", metadata_token)) {
        status = is_get ? 401 : 405;
    } else if (strncmp(path, ROLES_PATH, strlen(ROLES_PATH) - 1) == 0) {
        const char *role = path + strlen(ROLES_PATH) - 1;
        role += *role == '/';
        if (role[0] == '\0') {
            os_text_addf(&answer->body, "%s", credentials->role);
            os_answer_text(answer, request, 200, "text/plain");
            return;
        }
        if (strcmp(role, credentials->role) == 0) {
            answer_keys(credentials, request, answer);
            return;
        }
    }
    os_text_addf(&answer->body, "%d - %s\n", status, os_status_words(status));
    os_answer_text(answer, request, status, "text/plain");
}
