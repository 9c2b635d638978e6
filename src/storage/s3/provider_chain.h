/*
 * provider_chain.h - who asks: key, secret and token from where the AWS tools keep them.
 *
 * Looked for, as botocore does, in the environment, the profile in ~/.aws/credentials and
 * ~/.aws/config (with credential_process), the container's service and the instance's service. The
 * first of them that has something decides: if that is not usable, it is an error that says why,
 * and the others are not asked. Secrets are in these fields and nowhere else: not in errors, not in
 * `source`. Threads: finding reads the environment, which must not be changed meanwhile; what was
 * found may be read by many.
 */
#ifndef STK_STORAGE_S3_PROVIDER_CHAIN_H
#define STK_STORAGE_S3_PROVIDER_CHAIN_H

#include <stdbool.h>
#include <stdint.h>

#include <stoker/status.h>

#include "storage/s3/settings.h"

typedef struct stk_s3_credentials { /* starts zeroed; all text is owned */
    char *key_id;                   /* NULL: there are none, requests are not signed */
    char *secret;                   /* NULL exactly when key_id is */
    char *token;                    /* NULL for credentials that last */
    int64_t expires_s;              /* unix time; 0: never */
    char *source; /* part of a sentence: "the environment", "profile 'x' in ~/.aws/credentials" */
} stk_s3_credentials;

/*
 * Finds credentials; none at all is a success with key_id NULL. Blocks for as long as a service or
 * a credential_process takes: at most about a minute, and about two seconds where there is no
 * service. Built with STK_HAVE_S3 only.
 */
STK_CHECKED stk_status stk_s3_credentials_find(const stk_s3_settings *settings,
                                               stk_s3_credentials *credentials, stk_error *err);

/*
 * True when they should be found again before the next request: five minutes or less are left. A
 * service may hand out such ones, so that nobody should ask it again within a minute.
 */
bool stk_s3_credentials_stale(const stk_s3_credentials *credentials, int64_t now_s);

/* Wipes and frees the text. */
void stk_s3_credentials_free(stk_s3_credentials *credentials);

#endif
