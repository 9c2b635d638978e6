/*
 * renew.h - finds credentials again in the background while requests go on.
 *
 * Finding may take long (a service, a credential_process), so a detached thread does it, one at a
 * time, and nobody waits for it. When the renewal is closed meanwhile, the thread drops what it
 * finds and frees the renewal. Built with STK_HAVE_S3 only. Threads: safe.
 */
#ifndef STK_STORAGE_S3_RENEW_H
#define STK_STORAGE_S3_RENEW_H

#include <stdbool.h>

#include <stoker/status.h>

#include "storage/s3/credentials.h"

typedef struct stk_s3_renewal stk_s3_renewal;

/* Receives new credentials on the renewal's thread. What it leaves in *found is wiped and freed. */
typedef void stk_s3_renewed(void *user, stk_s3_credentials *found);

STK_CHECKED stk_status stk_s3_renewal_open(stk_s3_renewal **renewal, stk_s3_renewed *renewed,
                                           void *user, stk_error *err);

/* `renewed` is not called any more once this has returned. NULL is fine. */
void stk_s3_renewal_close(stk_s3_renewal *renewal);

/*
 * Starts a renewal unless one is running or has just ended: five seconds ago or less when `urgent`
 * (the store has refused the credentials), else a minute. True: a renewal is running, so that
 * waiting for it makes sense.
 */
bool stk_s3_renewal_begin(stk_s3_renewal *renewal, bool urgent);

#endif
