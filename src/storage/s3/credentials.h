/*
 * credentials.h - what somebody offers as credentials, and those who offer them on request.
 *
 * For s3_credentials.c and the files beside it; built with STK_HAVE_S3 only. Threads: safe.
 */
#ifndef STK_STORAGE_S3_CREDENTIALS_H
#define STK_STORAGE_S3_CREDENTIALS_H

#include <stddef.h>

#include <stoker/status.h>

#include "storage/s3/provider_chain.h"
#include "storage/s3/profile.h"

/* The longest answer of a service or a process. */
#define STK_S3_ANSWER_MAX ((size_t)64 * 1024)

typedef struct stk_s3_offer { /* all text is borrowed; NULL: there is none */
    const char *key_id;
    const char *secret;
    const char *token;
    const char *expires;     /* "2026-11-15T12:34:56Z" */
    const char *key_id_name; /* what the two are called there, for errors: "AWS_ACCESS_KEY_ID" */
    const char *secret_name;
    const char *source; /* part of a sentence, as in stk_s3_credentials */
    stk_status blame;   /* of an offer that cannot be used: STK_ERR_USAGE, STK_ERR_STORAGE */
} stk_s3_offer;

/* Takes an offer as credentials, which are zeroed; an offer of nothing leaves them so. */
STK_CHECKED stk_status stk_s3_offer_take(const stk_s3_offer *offer, stk_s3_credentials *credentials,
                                         stk_error *err);

/*
 * The same for a JSON text with AccessKeyId, SecretAccessKey, Expiration and the token under
 * `token_name`. Here an offer of nothing is an error too.
 */
STK_CHECKED stk_status stk_s3_offer_json(const char *text, size_t size, const char *token_name,
                                         const char *source, stk_s3_credentials *credentials,
                                         stk_error *err);

/*
 * Seconds since 1970 of an ISO 8601 time with a zone: 2026-11-15T12:34:56Z, also with a fraction of
 * a second or +01:00 for Z. False when it is none.
 */
bool stk_s3_parse_time(const char *text, int64_t *unix_s);

/*
 * Those who offer. A success with key_id NULL means that this one has nothing to say; an error,
 * that it should have had.
 */
STK_CHECKED stk_status stk_s3_from_process(const char *command, const char *profile, int limit_s,
                                           stk_s3_credentials *credentials, stk_error *err);
STK_CHECKED stk_status stk_s3_from_container(const stk_s3_settings *settings,
                                             stk_s3_credentials *credentials, stk_error *err);
STK_CHECKED stk_status stk_s3_from_instance(const stk_s3_profile *profile,
                                            stk_s3_credentials *credentials, stk_error *err);

#endif
