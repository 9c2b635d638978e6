/*
 * classify.h - inside storage: what an answer of S3 means, in a verdict and in words.
 *
 * Words name the object, the cause and the remedy, and which credentials were used; they never hold
 * keys, tokens or signatures. Built with STK_HAVE_S3 only. Threads: safe.
 */
#ifndef STK_STORAGE_S3_CLASSIFY_H
#define STK_STORAGE_S3_CLASSIFY_H

#include "storage/http/engine.h"
#include "storage/s3/provider_chain.h"
#include "storage/s3/xml.h"
#include "storage/source.h"

/* A request as people know it, and what it was made with. */
typedef struct stk_s3_question {
    const char *bucket;
    const char *key;      /* NULL: the bucket was to be listed */
    const char *place;    /* "s3://bucket/prefix" */
    const char *region;   /* that was signed for */
    const char *endpoint; /* NULL: Amazon */
    const stk_s3_credentials *credentials;
    bool anonymous;         /* somebody asked not to sign */
    const uint64_t *listed; /* the object's bytes as they were listed; NULL: they were not */
} stk_s3_question;

/* What may help where the verdict is LOST. */
typedef enum stk_s3_cure {
    STK_S3_CURE_NONE,
    STK_S3_CURE_REGION,      /* sign for the region in *region */
    STK_S3_CURE_CLOCK,       /* sign by the server's clock */
    STK_S3_CURE_CREDENTIALS, /* find them again: they have expired */
} stk_s3_cure;

typedef struct stk_s3_judgement {
    stk_fetch_verdict verdict;
    stk_s3_cure cure;
    double wait_s;   /* the store asks not to be tried again before; 0: nothing said */
    char region[40]; /* with CURE_REGION */
    stk_error error; /* unless OK or CANCELLED */
} stk_s3_judgement;

/*
 * Judges an ended request whose body is at request->bytes. OK means that the status is 200 or 206,
 * or 416 (nothing is where something was asked for); what the body is worth is not looked at.
 */
void stk_s3_judge(const stk_http_request *request, const stk_s3_question *question,
                  stk_s3_judgement *judgement);

#endif
