/*
 * settings.h - region, endpoint and profile, from the environment and ~/.aws/config; a bucket's
 * URL.
 *
 * The names mean the same as for the AWS command line. An empty variable counts as unset. Secrets
 * are not read here (see providers.h). Threads: many threads may read settings; loading reads the
 * environment, which nobody may change meanwhile.
 */
#ifndef STK_STORAGE_S3_SETTINGS_H
#define STK_STORAGE_S3_SETTINGS_H

#include <stdbool.h>

#include <stoker/status.h>

typedef enum stk_s3_style {
    STK_S3_STYLE_AUTO,   /* path if an endpoint is given or the bucket cannot be a host name */
    STK_S3_STYLE_PATH,   /* https://host/bucket/key */
    STK_S3_STYLE_VIRTUAL /* https://bucket.host/key */
} stk_s3_style;

typedef struct stk_s3_settings { /* starts zeroed; all text is owned */
    char *profile;               /* AWS_PROFILE, AWS_DEFAULT_PROFILE, "default" */
    bool profile_named;          /* one of the two variables is set */
    char *config_path;           /* AWS_CONFIG_FILE, ~/.aws/config; NULL without a home */
    char *credentials_path;      /* AWS_SHARED_CREDENTIALS_FILE, ~/.aws/credentials; or NULL */
    char *region;                /* AWS_REGION, AWS_DEFAULT_REGION, the profile's, else us-east-1 */
    char *endpoint;              /* "http://127.0.0.1:9000", no slash at its end; NULL: Amazon */
    char *ca_bundle;             /* AWS_CA_BUNDLE or the profile's; NULL: the system's */
    stk_s3_style style;          /* the profile's s3.addressing_style */
    bool anonymous;              /* AWS_NO_SIGN_REQUEST: look for no credentials, sign nothing */
} stk_s3_settings;

/*
 * Fills in zeroed settings. Fails (STK_ERR_USAGE, STK_ERR_STORAGE) when a file cannot be read or
 * parsed, a named profile is in neither file, or the endpoint is not an http URL.
 */
STK_CHECKED stk_status stk_s3_settings_load(stk_s3_settings *settings, stk_error *err);

void stk_s3_settings_free(stk_s3_settings *settings);

/* Whether a text has only characters of region names, and so may be part of a URL as it is. */
bool stk_s3_is_region(const char *text);

/* A bucket's URL in parts: an object's URL is origin + path + "/" + the encoded key. */
typedef struct stk_s3_address { /* starts zeroed; all text is owned */
    char *origin; /* "https://bucket.s3.eu-west-1.amazonaws.com", no slash at its end */
    char *host;   /* the Host header; has a port only if it is not the default one */
    char *path;   /* "", "/bucket", "/base/bucket"; percent-encoded */
} stk_s3_address;

/* Fills in a zeroed address. Fails (STK_ERR_USAGE) when the bucket's name is not valid. */
STK_CHECKED stk_status stk_s3_address_of(const stk_s3_settings *settings, const char *bucket,
                                         stk_s3_address *address, stk_error *err);
void stk_s3_address_free(stk_s3_address *address);

#endif
