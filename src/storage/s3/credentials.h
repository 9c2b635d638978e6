/*
 * credentials.h - an access key id, its secret and a session token, checked before they are used.
 *
 * Secrets are in a stk_s3_credentials and nowhere else: not in errors, not in `source`. Where
 * credentials come from is the providers' business (providers.h). Built with STK_HAVE_S3 only.
 * Threads: credentials may be read by many threads.
 */
#ifndef STK_STORAGE_S3_CREDENTIALS_H
#define STK_STORAGE_S3_CREDENTIALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <stoker/status.h>

typedef struct stk_s3_credentials { /* starts zeroed; all text is owned */
    char *key_id;                   /* NULL: there are none, requests are not signed */
    char *secret;                   /* NULL exactly when key_id is */
    char *token;                    /* session token; NULL for long-term credentials */
    int64_t expires_s;              /* unix time; 0: never */
    char *source; /* part of a sentence: "the environment", "profile 'x' in ~/.aws/credentials" */
} stk_s3_credentials;

/*
 * True when five minutes or less are left: renew them before the next request. A provider may hand
 * out such credentials, so do not ask it again within a minute.
 */
bool stk_s3_credentials_stale(const stk_s3_credentials *credentials, int64_t now_s);

/* Wipes and frees the text. */
void stk_s3_credentials_free(stk_s3_credentials *credentials);

/* What a provider has found, not yet checked. All text is borrowed; NULL: there is none. */
typedef struct stk_s3_candidate {
    const char *key_id;
    const char *secret;
    const char *token;
    const char *expires;     /* "2026-11-15T12:34:56Z" */
    const char *key_id_name; /* what the provider calls the key id: "AWS_ACCESS_KEY_ID" */
    const char *secret_name; /* what the provider calls the secret */
    const char *source;      /* as in stk_s3_credentials */
    stk_status failure;      /* status of the error when it cannot be used: USAGE or STORAGE */
} stk_s3_candidate;

/*
 * Checks a candidate and copies it into zeroed credentials. A candidate without key id and secret
 * is a success that leaves them zeroed.
 */
STK_CHECKED stk_status stk_s3_credentials_accept(const stk_s3_candidate *candidate,
                                                 stk_s3_credentials *credentials, stk_error *err);

/*
 * The same for a JSON text with AccessKeyId, SecretAccessKey, Expiration and the token under
 * `token_name`. Here a text without credentials is an error.
 */
STK_CHECKED stk_status stk_s3_credentials_parse(const char *json, size_t size,
                                                const char *token_name, const char *source,
                                                stk_s3_credentials *credentials, stk_error *err);

/*
 * Unix time of an ISO 8601 time with a zone: 2026-11-15T12:34:56Z, also with a fraction of a second
 * and with +01:00 for Z. False when the text is not such a time.
 */
bool stk_s3_parse_time(const char *text, int64_t *unix_s);

#endif
