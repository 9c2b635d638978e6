/*
 * provider_chain.c - asks one credential provider after the other, in botocore's order.
 *
 * Keys in the environment come first, even before a profile that AWS_PROFILE names. What the AWS
 * tools can do and Stoker cannot (roles, single sign-on) is an error that names a workaround; it is
 * never skipped, since the next provider would sign with another user's keys.
 */
#include "storage/s3/providers.h"

#ifdef STK_HAVE_S3

#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"

#define PROCESS_LIMIT_S 60

/* The AWS command line supports every provider and can hand its keys to any program. */
#define WORKAROUND "eval \"$(aws configure export-credentials --format env)\""

/* The first of two values that is not NULL. */
static const char *either(const char *first, const char *second) {
    return first != NULL ? first : second;
}

static stk_status from_environment(stk_s3_credentials *credentials, stk_error *err) {
    const stk_s3_candidate candidate = {
        .key_id = stk_s3_environment("AWS_ACCESS_KEY_ID"),
        .secret = stk_s3_environment("AWS_SECRET_ACCESS_KEY"),
        .token = either(stk_s3_environment("AWS_SESSION_TOKEN"),
                        stk_s3_environment("AWS_SECURITY_TOKEN")),
        .expires = stk_s3_environment("AWS_CREDENTIAL_EXPIRATION"),
        .key_id_name = "AWS_ACCESS_KEY_ID",
        .secret_name = "AWS_SECRET_ACCESS_KEY",
        .source = "the environment",
        .failure = STK_ERR_USAGE,
    };
    return stk_s3_credentials_accept(&candidate, credentials, err);
}

/* Fails if the environment or the profile asks for something that Stoker cannot do. */
static stk_status refuse_unsupported(const stk_s3_profile *profile, stk_error *err) {
    static const struct {
        const char *name;
        const char *what;
    } unsupported[] = {
        {"role_arn", "assumes a role"},
        {"sso_account_id", "signs in by SSO"},
        {"sso_role_name", "signs in by SSO"},
    };
    if (stk_s3_environment("AWS_WEB_IDENTITY_TOKEN_FILE") != NULL &&
        stk_s3_environment("AWS_ROLE_ARN") != NULL) {
        return STK_FAIL(err, STK_ERR_USAGE,
                        "AWS_WEB_IDENTITY_TOKEN_FILE and AWS_ROLE_ARN ask for a role by web "
                        "identity, which Stoker cannot do; run %s first, or unset them",
                        WORKAROUND);
    }
    for (size_t i = 0; i < STK_COUNT(unsupported); i++) {
        if (stk_s3_profile_get(profile, unsupported[i].name) != NULL) {
            return STK_FAIL(err, STK_ERR_USAGE,
                            "the AWS profile '%s' %s (%s), which Stoker cannot do; run %s first, "
                            "or name another profile with AWS_PROFILE",
                            profile->name, unsupported[i].what, unsupported[i].name, WORKAROUND);
        }
    }
    return STK_OK;
}

/* A path with ~ for the home folder. */
static char *shown_path(const char *path) {
    const char *home = stk_s3_environment("HOME");
    size_t length = home != NULL ? strlen(home) : 0;
    bool below = length > 1 && strncmp(path, home, length) == 0 && path[length] == '/';
    return below ? stk_str_format("~%s", path + length) : stk_mem_strdup(path);
}

/* Keys in a section of one of the two files. */
static stk_status from_section(const stk_s3_profile *profile, const stk_ini *ini,
                               const char *section, const char *path,
                               stk_s3_credentials *credentials, stk_error *err) {
    if (path == NULL) {
        return STK_OK;
    }
    char *shown = shown_path(path);
    char *source =
        shown != NULL ? stk_str_format("profile '%s' in %s", profile->name, shown) : NULL;
    stk_mem_free(shown);
    if (source == NULL) {
        return STK_FAIL_MEMORY(err, "credentials");
    }
    const stk_s3_candidate candidate = {
        .key_id = stk_ini_get(ini, section, "aws_access_key_id"),
        .secret = stk_ini_get(ini, section, "aws_secret_access_key"),
        .token = either(stk_ini_get(ini, section, "aws_session_token"),
                        stk_ini_get(ini, section, "aws_security_token")),
        .key_id_name = "aws_access_key_id",
        .secret_name = "aws_secret_access_key",
        .source = source,
        .failure = STK_ERR_USAGE,
    };
    stk_status status = stk_s3_credentials_accept(&candidate, credentials, err);
    stk_mem_free(source);
    return status;
}

static stk_status from_profile(const stk_s3_settings *settings, const stk_s3_profile *profile,
                               stk_s3_credentials *credentials, stk_error *err) {
    stk_status status = refuse_unsupported(profile, err);
    STK_THEN(status, from_section(profile, profile->credentials, profile->name,
                                  settings->credentials_path, credentials, err));
    if (status == STK_OK && credentials->key_id == NULL) {
        const char *command = stk_s3_profile_get(profile, "credential_process");
        if (stk_s3_profile_get(profile, "login_session") != NULL) {
            status = STK_FAIL(err, STK_ERR_USAGE,
                              "the AWS profile '%s' signs in by `aws login` (login_session), which "
                              "Stoker cannot do; run %s first, or name another profile with "
                              "AWS_PROFILE",
                              profile->name, WORKAROUND);
        } else if (command != NULL) {
            status = stk_s3_from_process(command, profile->name, PROCESS_LIMIT_S, credentials, err);
        }
    }
    if (status == STK_OK && credentials->key_id == NULL) {
        status = from_section(profile, profile->config, profile->config_section,
                              settings->config_path, credentials, err);
    }
    return status;
}

/* All providers in turn, until one has credentials. */
static stk_status find(const stk_s3_settings *settings, const stk_s3_profile *profile,
                       stk_s3_credentials *credentials, stk_error *err) {
    stk_status status = from_environment(credentials, err);
    if (status == STK_OK && credentials->key_id == NULL) {
        status = from_profile(settings, profile, credentials, err);
    }
    if (status == STK_OK && credentials->key_id == NULL) {
        status = stk_s3_from_container(settings, credentials, err);
    }
    if (status == STK_OK && credentials->key_id == NULL) {
        status = stk_s3_from_instance(profile, credentials, err);
    }
    return status;
}

stk_status stk_s3_credentials_find(const stk_s3_settings *settings, stk_s3_credentials *credentials,
                                   stk_error *err) {
    stk_s3_profile profile = {0};
    const char *why = "no credentials, as AWS_NO_SIGN_REQUEST asks";
    stk_status status = STK_OK;
    if (!settings->anonymous) {
        status = stk_s3_profile_open(settings, &profile, err);
        if (status == STK_OK) {
            status = find(settings, &profile, credentials, err);
            stk_s3_profile_close(&profile);
        }
        why = "no credentials (neither the environment nor ~/.aws nor a service of this machine "
              "has any)";
    }
    if (status == STK_OK && credentials->key_id == NULL) {
        credentials->source = stk_mem_strdup(why);
        status = credentials->source != NULL ? STK_OK : STK_FAIL_MEMORY(err, "credentials");
    }
    if (status != STK_OK) {
        stk_s3_credentials_free(credentials);
    }
    return status;
}

#endif
