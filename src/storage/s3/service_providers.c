/*
 * service_providers.c - credentials from the container's service and from the instance's service.
 *
 * Both are HTTP servers that the cloud runs next to a program. The container's service is asked
 * only when the environment names it, so no answer is an error. The instance's service is asked on
 * any machine: no answer, or a refusal, means that the machine has none. Requests block and use no
 * proxy, since both services are on this machine or one hop away.
 */
#include "storage/s3/providers.h"

#ifdef STK_HAVE_S3

#include <arpa/inet.h>
#include <curl/curl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "base/files/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "storage/http/transfer.h"

#define CONTAINER_HOST "http://169.254.170.2"
#define INSTANCE_HOST "http://169.254.169.254"
#define INSTANCE_HOST_6 "http://[fd00:ec2::254]"
#define ROLES "/latest/meta-data/iam/security-credentials/"

/* Times and attempts are small: on a machine without these services all of it is waiting. */
#define CONNECT_S 1.0
#define TOTAL_S 2.0
#define INSTANCE_ATTEMPTS 2
#define CONTAINER_ATTEMPTS 3
#define PAUSE_MS 300
#define ROLE_MAX 64 /* bytes of the longest role name that Amazon allows */

/*
 * Performs a request up to `attempts` times, until a response has a status other than 429 and 5xx.
 * The error is the last attempt's; a last response with 429 or 5xx is a success here.
 */
static stk_status ask(stk_http_transfer *transfer, const char *ca_bundle, int attempts,
                      stk_error *err) {
    const struct timespec pause = {.tv_nsec = PAUSE_MS * 1000L * 1000L};
    const stk_http_connect connect = {
        .ca_bundle = ca_bundle, .timeout_s = CONNECT_S, .no_proxy = true};
    stk_status status = STK_OK;
    transfer->timeout_s = TOTAL_S;
    transfer->max_bytes = STK_S3_ANSWER_MAX;
    for (int i = 0; i < attempts; i++) {
        stk_error_clear(err);
        status = stk_http_transfer_perform(transfer, &connect, err);
        int code = transfer->response.status;
        bool temporary = status == STK_OK ? code == 429 || code >= 500 : status == STK_ERR_STORAGE;
        if (!temporary) {
            break;
        }
        if (status == STK_OK && i + 1 < attempts) {
            nanosleep(&pause, NULL);
        }
    }
    return status;
}

/* Whether a host, as a number or a name, is this machine. */
static bool is_loopback(const char *host) {
    struct in_addr four;
    struct in6_addr six;
    if (inet_pton(AF_INET, host, &four) == 1) {
        return ntohl(four.s_addr) >> 24 == 127;
    }
    if (inet_pton(AF_INET6, host, &six) == 1) {
        return IN6_IS_ADDR_LOOPBACK(&six);
    }
    return strcmp(host, "localhost") == 0;
}

/*
 * Whether credentials may be fetched from a URL: by https from anywhere; by http only from this
 * machine and from the three addresses of Amazon's container services. libcurl splits the URL,
 * because libcurl will connect to it.
 */
static bool is_allowed(const char *url) {
    static const char *const hosts[] = {"169.254.170.2", "169.254.170.23", "fd00:ec2::23"};
    char *scheme = NULL;
    char *host = NULL;
    char *user = NULL;
    bool allowed = false;
    CURLU *parts = curl_url();
    if (parts != NULL && curl_url_set(parts, CURLUPART_URL, url, 0) == CURLUE_OK &&
        curl_url_get(parts, CURLUPART_SCHEME, &scheme, 0) == CURLUE_OK &&
        curl_url_get(parts, CURLUPART_HOST, &host, 0) == CURLUE_OK &&
        curl_url_get(parts, CURLUPART_USER, &user, 0) == CURLUE_NO_USER) {
        size_t length = strlen(host);
        char *bare = host;
        if (length > 2 && host[0] == '[' && host[length - 1] == ']') {
            host[length - 1] = '\0';
            bare = host + 1;
        }
        allowed = strcmp(scheme, "https") == 0;
        if (strcmp(scheme, "http") == 0) {
            allowed = is_loopback(bare);
            for (size_t i = 0; i < STK_COUNT(hosts); i++) {
                allowed = allowed || strcmp(bare, hosts[i]) == 0;
            }
        }
    }
    curl_free(scheme);
    curl_free(host);
    curl_free(user);
    curl_url_cleanup(parts);
    return allowed;
}

/* The URL that the environment names; NULL: it names none. The caller owns it. */
static stk_status container_url(char **url, stk_error *err) {
    const char *relative = stk_s3_environment("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
    const char *full = stk_s3_environment("AWS_CONTAINER_CREDENTIALS_FULL_URI");
    *url = NULL;
    if (relative == NULL && full == NULL) {
        return STK_OK;
    }
    if (relative != NULL && relative[0] != '/') {
        return STK_FAIL(err, STK_ERR_USAGE,
                        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI does not begin with a slash");
    }
    if (relative == NULL && !is_allowed(full)) {
        return STK_FAIL(err, STK_ERR_USAGE,
                        "AWS_CONTAINER_CREDENTIALS_FULL_URI names a place that keys are not taken "
                        "from: it must be an https address, or http on this machine, "
                        "169.254.170.2, 169.254.170.23 or [fd00:ec2::23]");
    }
    *url = relative != NULL ? stk_str_format(CONTAINER_HOST "%s", relative) : stk_mem_strdup(full);
    return *url != NULL ? STK_OK : STK_FAIL_MEMORY(err, "credentials");
}

/* The Authorization header that the environment asks for; NULL: none. The caller owns it. */
static stk_status container_token(char **header, stk_error *err) {
    const char *path = stk_s3_environment("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
    const char *token = stk_s3_environment("AWS_CONTAINER_AUTHORIZATION_TOKEN");
    char *text = NULL;
    size_t size = 0;
    stk_status status = STK_OK;
    *header = NULL;
    if (path != NULL) {
        status = stk_file_read(path, STK_S3_ANSWER_MAX, &text, &size, err);
        while (status == STK_OK && size > 0 && strchr(" \t\r\n", text[size - 1]) != NULL) {
            text[--size] = '\0';
        }
        token = text;
    }
    if (status == STK_OK && token != NULL) {
        if (strpbrk(token, "\r\n") != NULL) {
            status = STK_FAIL(err, STK_ERR_USAGE,
                              "the token for the container's credentials service holds a line "
                              "break (AWS_CONTAINER_AUTHORIZATION_TOKEN or its file)");
        } else {
            *header = stk_str_format("Authorization: %s", token);
            status = *header != NULL ? STK_OK : STK_FAIL_MEMORY(err, "credentials");
        }
    }
    stk_mem_free_secret(text);
    return status;
}

static stk_status ask_container(const char *url, const char *token, const char *ca_bundle,
                                stk_s3_credentials *credentials, stk_error *err) {
    static const char source[] = "the container's credentials service";
    const char *const headers[] = {"Accept: application/json", token};
    stk_http_transfer transfer = {
        .url = url, .headers = headers, .header_count = token != NULL ? 2 : 1};
    stk_error why = {0};
    stk_status status = ask(&transfer, ca_bundle, CONTAINER_ATTEMPTS, &why);
    if (status != STK_OK) {
        status = STK_FAIL(err, status, "cannot get credentials from %s: %s", source, why.message);
    } else if (transfer.response.status != 200) {
        status = STK_FAIL(err, STK_ERR_STORAGE,
                          "cannot get credentials from %s: it answered with status %d", source,
                          transfer.response.status);
    } else {
        status = stk_s3_credentials_parse((const char *)transfer.body.data, transfer.body.size,
                                          "Token", source, credentials, err);
    }
    stk_http_transfer_free(&transfer);
    return status;
}

stk_status stk_s3_from_container(const stk_s3_settings *settings, stk_s3_credentials *credentials,
                                 stk_error *err) {
    char *url = NULL;
    char *token = NULL;
    stk_status status = container_url(&url, err);
    if (status == STK_OK && url != NULL) {
        status = container_token(&token, err);
    }
    if (status == STK_OK && url != NULL) {
        status = ask_container(url, token, settings->ca_bundle, credentials, err);
    }
    stk_mem_free_secret(token);
    stk_mem_free(url);
    return status;
}

/* A session with the instance's service. */
typedef struct instance_service {
    char *base;  /* owned: "http://169.254.169.254", no slash at its end */
    char *token; /* owned: the header with the session's token; NULL: there is no such service */
} instance_service;

/* The service's URL: from the environment, the profile, or the usual address. */
static stk_status instance_base(const stk_s3_profile *profile, char **base, stk_error *err) {
    const char *found = stk_s3_environment("AWS_EC2_METADATA_SERVICE_ENDPOINT");
    const char *mode = stk_s3_environment("AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE");
    found = found != NULL ? found : stk_s3_profile_get(profile, "ec2_metadata_service_endpoint");
    mode = mode != NULL ? mode : stk_s3_profile_get(profile, "ec2_metadata_service_endpoint_mode");
    if (found == NULL) {
        found =
            mode != NULL && stk_str_equal_nocase(mode, "ipv6") ? INSTANCE_HOST_6 : INSTANCE_HOST;
    }
    if (strncmp(found, "http://", 7) != 0 && strncmp(found, "https://", 8) != 0) {
        return STK_FAIL(err, STK_ERR_USAGE,
                        "AWS_EC2_METADATA_SERVICE_ENDPOINT is no http:// address");
    }
    size_t length = strlen(found);
    while (found[length - 1] == '/') {
        length--;
    }
    *base = stk_mem_strndup(found, length);
    return *base != NULL ? STK_OK : STK_FAIL_MEMORY(err, "credentials");
}

/* One request to the service, with one header; the caller frees the transfer. */
static stk_status ask_instance(const instance_service *service, const char *path,
                               const char *header, stk_http_transfer *transfer, stk_error *err) {
    const char *const headers[] = {header, "Content-Type:"}; /* PUT would send a type otherwise */
    char *url = stk_str_format("%s%s", service->base, path);
    if (url == NULL) {
        return STK_FAIL_MEMORY(err, "credentials");
    }
    transfer->url = url;
    transfer->headers = headers;
    transfer->header_count = 2;
    stk_status status = ask(transfer, NULL, INSTANCE_ATTEMPTS, err);
    transfer->url = NULL;
    transfer->headers = NULL;
    stk_mem_free(url);
    return status;
}

/* The response's body as text; the transfer has put a NUL after it. */
static const char *body_text(const stk_http_transfer *transfer) {
    return (const char *)transfer->body.data;
}

static stk_status fail_status(int status, const char *to, stk_error *err) {
    return STK_FAIL(err, STK_ERR_STORAGE,
                    "cannot get credentials from the instance's service: it answered the question "
                    "for %s with status %d",
                    to, status);
}

/* Opens a session. No answer, or a refusal: there is no such service, and token stays NULL. */
static stk_status open_session(instance_service *service, stk_error *err) {
    stk_http_transfer transfer = {.method = "PUT"};
    stk_error why = {0};
    stk_status status = ask_instance(service, "/latest/api/token",
                                     "x-aws-ec2-metadata-token-ttl-seconds: 300", &transfer, &why);
    int code = transfer.response.status;
    if (status == STK_ERR_STORAGE) {
        status = STK_OK;
    } else if (status != STK_OK) {
        status = STK_FAIL(err, status, "%s", why.message);
    } else if (code >= 500) {
        status = fail_status(code, "a session", err);
    } else if (code == 200 && transfer.body.size > 0 &&
               strspn(body_text(&transfer),
                      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
                      "-_=+/.") == transfer.body.size) {
        service->token = stk_str_format("x-aws-ec2-metadata-token: %s", body_text(&transfer));
        status = service->token != NULL ? STK_OK : STK_FAIL_MEMORY(err, "credentials");
    }
    stk_http_transfer_free(&transfer);
    return status;
}

/* The name of the instance's role; "": it has none. An answer with other characters is an error. */
static stk_status find_role(const instance_service *service, char role[ROLE_MAX + 1],
                            stk_error *err) {
    stk_http_transfer transfer = {0};
    stk_error why = {0};
    stk_status status = ask_instance(service, ROLES, service->token, &transfer, &why);
    int code = transfer.response.status;
    role[0] = '\0';
    if (status != STK_OK) {
        status = STK_FAIL(err, status, "cannot get credentials from the instance's service: %s",
                          why.message);
    } else if (code != 200 && code != 404) {
        status = fail_status(code, "the role", err);
    } else if (code == 200) {
        const char *name = body_text(&transfer);
        size_t length = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                     "0123456789+=,.@_-");
        if (length <= ROLE_MAX && strspn(name + length, "\r\n") + length == transfer.body.size) {
            memcpy(role, name, length);
            role[length] = '\0';
        } else {
            status = STK_FAIL(err, STK_ERR_STORAGE,
                              "cannot get credentials from the instance's service: its answer for "
                              "the role is no name of a role");
        }
    }
    stk_http_transfer_free(&transfer);
    return status;
}

static stk_status role_credentials(const instance_service *service, const char *role,
                                   stk_s3_credentials *credentials, stk_error *err) {
    char path[sizeof ROLES + ROLE_MAX];
    char source[sizeof "the instance's service (role )" + ROLE_MAX];
    stk_http_transfer transfer = {0};
    stk_error why = {0};
    snprintf(path, sizeof path, ROLES "%s", role);
    snprintf(source, sizeof source, "the instance's service (role %s)", role);
    stk_status status = ask_instance(service, path, service->token, &transfer, &why);
    if (status != STK_OK) {
        status = STK_FAIL(err, status, "cannot get credentials from %s: %s", source, why.message);
    } else if (transfer.response.status != 200) {
        status = fail_status(transfer.response.status, "the role's credentials", err);
    } else {
        status = stk_s3_credentials_parse(body_text(&transfer), transfer.body.size, "Token", source,
                                          credentials, err);
    }
    stk_http_transfer_free(&transfer);
    return status;
}

stk_status stk_s3_from_instance(const stk_s3_profile *profile, stk_s3_credentials *credentials,
                                stk_error *err) {
    instance_service service = {0};
    char role[ROLE_MAX + 1] = "";
    if (stk_s3_environment_bool("AWS_EC2_METADATA_DISABLED")) {
        return STK_OK;
    }
    stk_status status = instance_base(profile, &service.base, err);
    STK_THEN(status, open_session(&service, err));
    if (status == STK_OK && service.token != NULL) {
        status = find_role(&service, role, err);
    }
    if (status == STK_OK && role[0] != '\0') {
        status = role_credentials(&service, role, credentials, err);
    }
    stk_mem_free(service.base);
    stk_mem_free_secret(service.token);
    return status;
}

#endif
