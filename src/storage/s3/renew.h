/*
 * renew.h - inside storage: credentials found again while requests go on.
 *
 * Finding them may take long (a service, a program of the user's), so it is done in a thread, one
 * at a time, which nobody waits for: when the renewal is closed meanwhile, the thread drops what it
 * brings. Built with STK_HAVE_S3 only. Threads: safe.
 */
#ifndef STK_STORAGE_S3_RENEW_H
#define STK_STORAGE_S3_RENEW_H

#include <stdbool.h>

#include <stoker/status.h>

#include "storage/s3/providers.h"

typedef struct stk_s3_renewal stk_s3_renewal;

/* Told of credentials, from the renewal's thread. What it leaves in *found is wiped and freed. */
typedef void stk_s3_renewed(void *user, stk_s3_credentials *found);

STK_CHECKED stk_status stk_s3_renewal_open(stk_s3_renewal **renewal, stk_s3_renewed *renewed,
                                           void *user, stk_error *err);

/* `renewed` is not called any more once this has returned. NULL is fine. */
void stk_s3_renewal_close(stk_s3_renewal *renewal);

/*
 * Begins to find credentials unless that is being done, or was done a moment ago: a minute where it
 * is not `urgent`. False: it is not being done, so that waiting is of no use.
 */
bool stk_s3_renewal_begin(stk_s3_renewal *renewal, bool urgent);

#endif
