/*
 * settings.c - loads the settings, and makes the URL of a bucket from them.
 *
 * Everything that becomes part of a URL or a signature is checked here once, so that no other file
 * has to: regions and buckets are plain names, endpoints have a scheme, a host and no secrets.
 */
#include "storage/s3/settings.h"

#include <ctype.h>
#include <pwd.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"
#include "storage/s3/profile.h"

#define BUCKET_MAX 255 /* bytes of the longest bucket name that Amazon has ever allowed */

/* The home folder, from the environment or the user database; NULL: none. */
static char *home_folder(void) {
    const char *home = stk_s3_environment("HOME");
    char buffer[4096];
    struct passwd user;
    struct passwd *found = NULL;
    if (home == NULL && getpwuid_r(getuid(), &user, buffer, sizeof buffer, &found) == 0 &&
        found != NULL && *found->pw_dir != '\0') {
        home = found->pw_dir;
    }
    return home != NULL ? stk_mem_strdup(home) : NULL;
}

/* The path that a variable names, else `name` in ~/.aws; *path stays NULL without a home. */
static bool find_file(const char *variable, const char *name, char **path) {
    const char *given = stk_s3_environment(variable);
    bool below_home = given == NULL || (given[0] == '~' && (given[1] == '/' || given[1] == '\0'));
    if (!below_home) {
        *path = stk_mem_strdup(given);
        return *path != NULL;
    }
    char *home = home_folder();
    if (home == NULL) {
        return true;
    }
    *path = given != NULL ? stk_str_format("%s%s", home, given + 1)
                          : stk_str_format("%s/.aws/%s", home, name);
    stk_mem_free(home);
    return *path != NULL;
}

static bool copy(char **to, const char *text) {
    *to = text != NULL ? stk_mem_strdup(text) : NULL;
    return text == NULL || *to != NULL;
}

/* ASCII letters and digits, in every locale. */
static bool is_plain(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* Whether a name may be part of a URL and a signature as it is; `also`: further characters. */
static bool is_plain_name(const char *text, const char *also) {
    for (const char *p = text; *p != '\0'; p++) {
        if (!is_plain(*p) && strchr(also, *p) == NULL) {
            return false;
        }
    }
    return *text != '\0';
}

bool stk_s3_is_region(const char *text) {
    return is_plain_name(text, "-_");
}

static stk_status find_region(const stk_s3_profile *profile, char **region, stk_error *err) {
    const char *found = stk_s3_environment("AWS_REGION");
    found = found != NULL ? found : stk_s3_environment("AWS_DEFAULT_REGION");
    found = found != NULL ? found : stk_s3_profile_get(profile, "region");
    found = found != NULL ? found : "us-east-1";
    if (!stk_s3_is_region(found)) {
        return STK_FAIL(err, STK_ERR_USAGE,
                        "the AWS region '%s' is no region: write one such as eu-central-1, with "
                        "nothing after it",
                        found);
    }
    return copy(region, found) ? STK_OK : STK_FAIL_MEMORY(err, "the settings of S3");
}

/* Cuts a port off a host: *length becomes the host's alone; *port 0: none. False: not valid. */
static bool split_port(const char *host, size_t *length, int64_t *port) {
    const char *end = host + *length;
    const char *colon = end;
    *port = 0;
    while (colon > host && isdigit((unsigned char)colon[-1])) {
        colon--;
    }
    if (colon == host || colon[-1] != ':' || (host[0] == '[' && colon[-2] != ']')) {
        return true;
    }
    for (const char *p = colon; p < end && *port <= UINT16_MAX; p++) {
        *port = *port * 10 + (*p - '0');
    }
    *length = (size_t)(colon - 1 - host);
    return *port > 0 && *port <= UINT16_MAX;
}

/* A host name, or an IPv6 address in brackets. '@' is refused: a password may stand before it. */
static bool is_host(const char *host, size_t length) {
    bool brackets = length > 2 && host[0] == '[' && host[length - 1] == ']';
    for (size_t i = brackets ? 1 : 0; i < length - (brackets ? 1 : 0); i++) {
        if (!is_plain(host[i]) && strchr(brackets ? ":." : "-._", host[i]) == NULL) {
            return false;
        }
    }
    return length > 0;
}

/* An endpoint's parts; the pointers point into its text. */
typedef struct endpoint_parts {
    bool secure; /* https */
    const char *host;
    size_t host_length;
    int64_t port; /* 0: the default one */
    const char *path;
    size_t path_length; /* without slashes at its end */
} endpoint_parts;

static bool parse_endpoint(const char *text, endpoint_parts *parts) {
    parts->secure = strncasecmp(text, "https://", 8) == 0;
    if (!parts->secure && strncasecmp(text, "http://", 7) != 0) {
        return false;
    }
    parts->host = text + (parts->secure ? 8 : 7);
    parts->host_length = strcspn(parts->host, "/");
    parts->path = parts->host + parts->host_length;
    parts->path_length = strlen(parts->path);
    if (!split_port(parts->host, &parts->host_length, &parts->port) ||
        !is_host(parts->host, parts->host_length) ||
        (parts->path_length > 0 && !is_plain_name(parts->path, "-._~%/"))) {
        return false;
    }
    parts->port = parts->port != (parts->secure ? 443 : 80) ? parts->port : 0;
    while (parts->path_length > 0 && parts->path[parts->path_length - 1] == '/') {
        parts->path_length--;
    }
    return true;
}

/* Appends host and port in the form of a Host header. */
static void append_host(stk_str *out, const endpoint_parts *parts) {
    for (size_t i = 0; i < parts->host_length; i++) {
        const char c = (char)tolower((unsigned char)parts->host[i]);
        stk_str_append_bytes(out, &c, 1);
    }
    if (parts->port != 0) {
        stk_str_appendf(out, ":%d", (int)parts->port);
    }
}

/* The endpoint as the user wrote it, and where; NULL: Amazon. */
static const char *written_endpoint(const stk_s3_profile *profile, const char **by) {
    static const char *const variables[] = {"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"};
    const char *ignore = stk_s3_profile_get(profile, "ignore_configured_endpoint_urls");
    bool ignored = false;
    if (stk_s3_environment_bool("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS") ||
        (ignore != NULL && stk_parse_bool(ignore, &ignored) && ignored)) {
        return NULL;
    }
    for (size_t i = 0; i < STK_COUNT(variables); i++) {
        const char *found = stk_s3_environment(variables[i]);
        if (found != NULL) {
            *by = variables[i];
            return found;
        }
    }
    *by = "endpoint_url of the AWS profile";
    const char *services = stk_s3_profile_get(profile, "services");
    char section[256];
    if (services != NULL &&
        (size_t)snprintf(section, sizeof section, "services %s", services) < sizeof section) {
        const char *found = stk_ini_get(profile->config, section, "s3.endpoint_url");
        if (found != NULL) {
            return found;
        }
    }
    return stk_s3_profile_get(profile, "endpoint_url");
}

/* Normalises the endpoint: lower case, no default port, no slash at its end. */
static stk_status find_endpoint(const stk_s3_profile *profile, char **normalised, stk_error *err) {
    const char *by = NULL;
    const char *written = written_endpoint(profile, &by);
    endpoint_parts parts = {0};
    if (written == NULL) {
        return STK_OK;
    }
    if (!parse_endpoint(written, &parts)) {
        return STK_FAIL(err, STK_ERR_USAGE,
                        "%s is no address of a store: write one such as https://host or "
                        "http://host:9000",
                        by);
    }
    stk_str out = {0};
    stk_str_append(&out, parts.secure ? "https://" : "http://");
    append_host(&out, &parts);
    stk_str_append_bytes(&out, parts.path, parts.path_length);
    *normalised = stk_str_take(&out);
    return *normalised != NULL ? STK_OK : STK_FAIL_MEMORY(err, "the settings of S3");
}

static stk_status find_style(const stk_s3_profile *profile, stk_s3_style *style, stk_error *err) {
    static const char *const names[] = {
        [STK_S3_STYLE_AUTO] = "auto",
        [STK_S3_STYLE_PATH] = "path",
        [STK_S3_STYLE_VIRTUAL] = "virtual",
    };
    const char *value = stk_s3_profile_get(profile, "s3.addressing_style");
    for (size_t i = 0; i < STK_COUNT(names); i++) {
        if (value == NULL || stk_str_equal_nocase(value, names[i])) {
            *style = (stk_s3_style)i;
            return STK_OK;
        }
    }
    return STK_FAIL(err, STK_ERR_USAGE,
                    "the AWS profile '%s' has the addressing_style '%s'; it can be auto, path or "
                    "virtual",
                    profile->name, value);
}

/* Finds the profile's name and the two files; only the environment decides these. */
static stk_status find_profile(stk_s3_settings *settings, stk_error *err) {
    const char *name = stk_s3_environment("AWS_PROFILE");
    name = name != NULL ? name : stk_s3_environment("AWS_DEFAULT_PROFILE");
    settings->profile_named = name != NULL;
    settings->anonymous = stk_s3_environment_bool("AWS_NO_SIGN_REQUEST");
    bool good =
        copy(&settings->profile, name != NULL ? name : "default") &&
        find_file("AWS_CONFIG_FILE", "config", &settings->config_path) &&
        find_file("AWS_SHARED_CREDENTIALS_FILE", "credentials", &settings->credentials_path);
    return good ? STK_OK : STK_FAIL_MEMORY(err, "the settings of S3");
}

stk_status stk_s3_settings_load(stk_s3_settings *settings, stk_error *err) {
    stk_s3_profile profile = {0};
    stk_status status = find_profile(settings, err);
    STK_THEN(status, stk_s3_profile_open(settings, &profile, err));
    if (status == STK_OK) {
        const char *bundle = stk_s3_environment("AWS_CA_BUNDLE");
        bundle = bundle != NULL ? bundle : stk_s3_profile_get(&profile, "ca_bundle");
        status = copy(&settings->ca_bundle, bundle) ? STK_OK
                                                    : STK_FAIL_MEMORY(err, "the settings of S3");
        STK_THEN(status, find_region(&profile, &settings->region, err));
        STK_THEN(status, find_endpoint(&profile, &settings->endpoint, err));
        STK_THEN(status, find_style(&profile, &settings->style, err));
        stk_s3_profile_close(&profile);
    }
    if (status != STK_OK) {
        stk_s3_settings_free(settings);
    }
    return status;
}

void stk_s3_settings_free(stk_s3_settings *settings) {
    stk_mem_free(settings->profile);
    stk_mem_free(settings->config_path);
    stk_mem_free(settings->credentials_path);
    stk_mem_free(settings->region);
    stk_mem_free(settings->endpoint);
    stk_mem_free(settings->ca_bundle);
    memset(settings, 0, sizeof *settings);
}

/* Amazon's domain for a region; some partitions have their own. */
static const char *amazon_domain(const char *region) {
    static const struct {
        const char *prefix;
        const char *domain;
    } domains[] = {
        {"cn-", "amazonaws.com.cn"},
        {"eusc-", "amazonaws.eu"},
        {"us-iso-", "c2s.ic.gov"},
        {"us-isob-", "sc2s.sgov.gov"},
    };
    for (size_t i = 0; i < STK_COUNT(domains); i++) {
        if (strncmp(region, domains[i].prefix, strlen(domains[i].prefix)) == 0) {
            return domains[i].domain;
        }
    }
    return "amazonaws.com";
}

/* Whether the host is an IP address: no bucket name can stand before it. */
static bool is_number(const endpoint_parts *parts) {
    return parts->host[0] == '[' || strspn(parts->host, "0123456789.") >= parts->host_length;
}

/*
 * Whether the bucket becomes part of the host name. Names with capitals or underscores cannot.
 * Names with dots do not match the wildcard of Amazon's certificates, so only an explicit style
 * puts them there.
 */
static bool is_virtual(const stk_s3_settings *settings, const endpoint_parts *parts,
                       const char *bucket) {
    size_t length = strlen(bucket);
    bool host_name = length >= 3 && length <= 63 && !is_number(parts) &&
                     strspn(bucket, "abcdefghijklmnopqrstuvwxyz0123456789-.") == length &&
                     is_plain(bucket[0]) && is_plain(bucket[length - 1]) &&
                     strstr(bucket, "..") == NULL;
    switch (settings->style) {
    case STK_S3_STYLE_PATH:
        return false;
    case STK_S3_STYLE_VIRTUAL:
        return host_name;
    default:
        return host_name && settings->endpoint == NULL && strchr(bucket, '.') == NULL;
    }
}

static bool write_address(const stk_s3_settings *settings, const endpoint_parts *parts,
                          const char *bucket, stk_s3_address *address) {
    bool in_host = is_virtual(settings, parts, bucket);
    stk_str host = {0};
    stk_str path = {0};
    if (in_host) {
        stk_str_appendf(&host, "%s.", bucket);
    }
    append_host(&host, parts);
    stk_str_append_bytes(&path, parts->path, parts->path_length);
    if (!in_host) {
        stk_str_appendf(&path, "/%s", bucket);
    }
    address->host = stk_str_take(&host);
    address->path = stk_str_take(&path);
    if (address->host != NULL) {
        address->origin =
            stk_str_format("%s%s", parts->secure ? "https://" : "http://", address->host);
    }
    return address->host != NULL && address->path != NULL && address->origin != NULL;
}

stk_status stk_s3_address_of(const stk_s3_settings *settings, const char *bucket,
                             stk_s3_address *address, stk_error *err) {
    endpoint_parts parts = {0};
    if (!is_plain_name(bucket, "-._") || strlen(bucket) > BUCKET_MAX ||
        strspn(bucket, ".") == strlen(bucket)) {
        return STK_FAIL(err, STK_ERR_USAGE,
                        "'%s' is no name of a bucket: such names have letters, digits, dots, "
                        "dashes and underscores only",
                        bucket);
    }
    char *url = settings->endpoint != NULL ? stk_mem_strdup(settings->endpoint)
                                           : stk_str_format("https://s3.%s.%s", settings->region,
                                                            amazon_domain(settings->region));
    bool parsed = url != NULL && parse_endpoint(url, &parts);
    bool good = parsed && write_address(settings, &parts, bucket, address);
    stk_status status = STK_OK;
    if (url != NULL && !parsed) {
        status = STK_FAIL(err, STK_ERR_USAGE, "%s is not a URL of a store", url);
    } else if (!good) {
        stk_s3_address_free(address);
        status = STK_FAIL_MEMORY(err, "the address of a bucket");
    }
    stk_mem_free(url);
    return status;
}

void stk_s3_address_free(stk_s3_address *address) {
    stk_mem_free(address->origin);
    stk_mem_free(address->host);
    stk_mem_free(address->path);
    memset(address, 0, sizeof *address);
}
