/*
 * client.c - signed requests to one bucket.
 *
 * Three things can be wrong with all requests at once and be put right by an answer: the region,
 * the clock and credentials that have expired. Each is put right at most once for one state of
 * things; when the next request says the same again, the place is lost.
 */
#include "storage/s3/client.h"

#ifdef STK_HAVE_S3

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/machine.h"
#include "base/mem.h"
#include "base/str.h"
#include "storage/http/response.h"
#include "storage/s3/renew.h"

/* Hundreds are enough for any latency; a store that serves more has other limits first. */
#define MOST_CONNECTIONS 512

/*
 * Receiving, decrypting and adding up the MD5 of half a gigabyte a second takes a core, so where
 * there are cores to spare two threads share the objects.
 */
#define MOST_ENGINES 2
#define CORES_PER_ENGINE 4

#define CONNECT_TIMEOUT_S 10.0

/* Answers in flight take no more than this part of the memory, unless somebody says how much. */
#define MEMORY_SHARE 8

/* While credentials are found again, others need not try more often. */
#define RENEWAL_WAIT_S 0.5

struct stk_s3_client {
    stk_http *engines[MOST_ENGINES];
    int engine_count;
    stk_http_room room; /* what the engines share */
    atomic_uint turn;   /* which engine takes the next object */
    char *bucket;
    char *place;
    stk_s3_settings settings; /* region aside, constant */
    char *told_region;        /* as the settings had it */
    bool anonymous;

    pthread_mutex_t lock;
    stk_s3_address address;         /* lock */
    stk_s3_credentials credentials; /* lock */
    uint64_t identity;              /* how often the credentials were found; lock */
    bool same_again;                /* the last time they were what they had been; lock */
    int64_t shift_s;                /* the store's clock less this machine's; lock */
    bool shifted;                   /* lock */
    stk_s3_renewal *renewal;        /* own lock */
};

/* ---- credentials that expire ---- */

static bool same_text(const char *a, const char *b) {
    return a == NULL || b == NULL ? a == b : stk_str_equal(a, b);
}

/* From the thread that found them: takes them over. */
static void take_credentials(void *user, stk_s3_credentials *found) {
    stk_s3_client *c = user;
    pthread_mutex_lock(&c->lock);
    c->same_again = same_text(c->credentials.key_id, found->key_id) &&
                    same_text(c->credentials.token, found->token);
    c->identity++;
    if (found->key_id != NULL) { /* none at all are not better than old ones */
        stk_s3_credentials old = c->credentials;
        c->credentials = *found;
        *found = old;
    } else {
        c->same_again = true;
    }
    pthread_mutex_unlock(&c->lock);
}

/* ---- making a request ---- */

/* The path and the address without a query. */
static bool make_address(stk_s3_client *c, stk_s3_call *call) {
    stk_str_clear(&call->path);
    stk_str_append(&call->path, c->address.path);
    if (call->key != NULL || call->path.length == 0) {
        stk_str_append(&call->path, "/");
    }
    if (call->key != NULL) {
        char *encoded = stk_s3_encode_path(call->key);
        if (encoded == NULL) {
            return false;
        }
        stk_str_append(&call->path, encoded);
        stk_mem_free(encoded);
    }
    stk_str_clear(&call->url);
    stk_str_append(&call->url, c->address.origin);
    stk_str_append(&call->url, stk_str_text(&call->path));
    return stk_str_ok(&call->path) && stk_str_ok(&call->url);
}

/* Under the lock. */
static bool sign(stk_s3_client *c, stk_s3_call *call) {
    if (!make_address(c, call)) {
        return false;
    }
    stk_s3_request request = {
        .method = "GET",
        .host = c->address.host,
        .path = stk_str_text(&call->path),
        .query = call->query,
        .query_count = call->query_count,
    };
    stk_s3_signed_free(&call->signature);
    stk_error ignored = {0};
    if (stk_s3_sign(&request, &c->credentials, c->settings.region, (int64_t)time(NULL) + c->shift_s,
                    &call->signature, &ignored) != STK_OK) {
        return false;
    }
    call->identity = c->identity;
    call->shift_s = c->shift_s;
    snprintf(call->region, sizeof call->region, "%s", c->settings.region);
    return true;
}

/* Where the parts of a request come together. */
static bool assemble(stk_s3_call *call) {
    size_t count = 0;
    if (call->signature.query[0] != '\0') {
        stk_str_append(&call->url, "?");
        stk_str_append(&call->url, call->signature.query);
    }
    for (size_t i = 0; i < call->signature.header_count; i++) {
        call->headers[count++] = call->signature.headers[i];
    }
    stk_str_clear(&call->range);
    if (call->length > 0) {
        stk_str_appendf(&call->range, "Range: bytes=%llu-%llu", (unsigned long long)call->offset,
                        (unsigned long long)(call->offset + call->length - 1));
        call->headers[count++] = stk_str_text(&call->range);
    }
    call->http.url = stk_str_text(&call->url);
    call->http.headers = call->headers;
    call->http.header_count = count;
    call->http.timeout_s = call->timeout_s;
    call->http.max_bytes = call->max_bytes;
    call->http.expected_bytes = (size_t)call->expected_bytes;
    call->http.bytes = call->bytes;
    call->http.started_ns = call->started_ns;
    return stk_str_ok(&call->url) && stk_str_ok(&call->range);
}

/* ---- what came ---- */

static stk_s3_call *call_of(stk_http_request *request) {
    return (stk_s3_call *)(void *)((char *)request - offsetof(stk_s3_call, http));
}

/* Under the lock. */
static bool learn_region(stk_s3_client *c, const char *region) {
    char *copy = stk_mem_strdup(region);
    stk_s3_settings settings = c->settings;
    stk_s3_address address = {0};
    settings.region = copy;
    /* It becomes a part of the host's name: an answer must not lead to another host. */
    if (copy == NULL || !stk_s3_is_region(copy) ||
        stk_s3_address_of(&settings, c->bucket, &address, NULL) != STK_OK) {
        stk_mem_free(copy);
        return false;
    }
    stk_mem_free(c->settings.region);
    c->settings.region = copy;
    stk_s3_address_free(&c->address);
    c->address = address;
    return true;
}

/*
 * Under the lock: puts right what the answer complains of. True: another request may work. What
 * others have put right since this request was made is right for it too.
 */
static bool cure(stk_s3_client *c, const stk_s3_call *call) {
    switch (call->judgement.cure) {
    case STK_S3_CURE_REGION:
        if (!stk_str_equal(call->region, c->settings.region)) {
            return true;
        }
        /* Answers that send from one region to the next and back would never end. */
        return stk_str_equal(c->settings.region, c->told_region) &&
               learn_region(c, call->judgement.region);
    case STK_S3_CURE_CLOCK:
        if (!c->shifted) {
            int64_t server_s = stk_http_head_date_s(&call->http.answer);
            c->shift_s = server_s != 0 ? server_s - (int64_t)time(NULL) : 0;
            c->shifted = true;
            return server_s != 0;
        }
        return call->shift_s != c->shift_s;
    case STK_S3_CURE_CREDENTIALS:
        return call->identity != c->identity && !c->same_again;
    case STK_S3_CURE_NONE:
        break;
    }
    return false;
}

static void ended(stk_http_request *request) {
    stk_s3_call *call = call_of(request);
    stk_s3_client *c = call->client;
    int status = request->answer.status;
    if (request->end == STK_HTTP_ANSWERED && (status == 200 || status == 206)) {
        memset(&call->judgement, 0, sizeof call->judgement);
        call->done(call);
        return;
    }
    pthread_mutex_lock(&c->lock);
    stk_s3_question question = {
        .bucket = c->bucket,
        .key = call->key,
        .place = c->place,
        .region = call->region,
        .endpoint = c->settings.endpoint,
        .credentials = &c->credentials,
        .anonymous = c->anonymous,
        .listed = call->listed,
    };
    stk_s3_judge(request, &question, &call->judgement);
    bool cured = cure(c, call);
    bool renew = !cured && call->judgement.cure == STK_S3_CURE_CREDENTIALS &&
                 call->identity == c->identity && c->renewal != NULL;
    pthread_mutex_unlock(&c->lock);
    /* Without the lock: the renewal's thread takes it while it has its own. */
    if (renew && stk_s3_renewal_begin(c->renewal, true)) {
        call->judgement.wait_s = RENEWAL_WAIT_S;
        cured = true;
    }
    if (cured) {
        call->judgement.verdict = STK_FETCH_AGAIN;
    }
    call->done(call);
}

static void received(stk_http_request *request, const uint8_t *piece, size_t size) {
    stk_s3_call *call = call_of(request);
    call->received(call, piece, size);
}

static size_t limit(stk_http_request *request) {
    const stk_s3_call *call = call_of(request);
    return call->limit(call);
}

/* ---- public ---- */

static stk_status open_parts(stk_s3_client *c, const stk_s3_client_config *config, stk_error *err) {
    stk_status status = stk_s3_settings_load(&c->settings, err);
    if (status == STK_OK) {
        c->anonymous = config->anonymous || c->settings.anonymous;
        c->told_region = stk_mem_strdup(c->settings.region);
        status = c->told_region != NULL
                     ? stk_s3_address_of(&c->settings, c->bucket, &c->address, err)
                     : STK_FAIL_MEMORY(err, c->place);
    }
    if (status == STK_OK && !c->anonymous) {
        status = stk_s3_credentials_find(&c->settings, &c->credentials, err);
    }
    if (status == STK_OK && c->credentials.key_id != NULL) {
        status = stk_s3_renewal_open(&c->renewal, take_credentials, c, err);
    }
    if (status == STK_OK) {
        double half_s = config->timeout_s / 2;
        stk_http_config http = {
            .ca_bundle = c->settings.ca_bundle,
            .connect_timeout_s =
                half_s > 0 && half_s < CONNECT_TIMEOUT_S ? half_s : CONNECT_TIMEOUT_S,
        };
        int wanted = stk_machine_cores() / CORES_PER_ENGINE;
        wanted = wanted < 1 ? 1 : wanted > MOST_ENGINES ? MOST_ENGINES : wanted;
        http.most_connections = MOST_CONNECTIONS / wanted;
        http.engines = wanted;
        http.room = &c->room;
        stk_s3_client_bound(c, stk_machine_memory() / MEMORY_SHARE);
        while (status == STK_OK && c->engine_count < wanted) {
            status = stk_http_open(&c->engines[c->engine_count], &http, err);
            c->engine_count += status == STK_OK;
        }
    }
    return status;
}

stk_status stk_s3_client_open(stk_s3_client **client, const stk_s3_client_config *config,
                              stk_error *err) {
    stk_s3_client *c = stk_mem_new(1, sizeof *c);
    if (c == NULL) {
        return STK_FAIL_MEMORY(err, config->place);
    }
    pthread_mutex_init(&c->lock, NULL);
    c->bucket = stk_mem_strdup(config->bucket);
    c->place = stk_mem_strdup(config->place);
    stk_status status = c->bucket != NULL && c->place != NULL ? open_parts(c, config, err)
                                                              : STK_FAIL_MEMORY(err, config->place);
    if (status != STK_OK) {
        stk_s3_client_close(c);
        return status;
    }
    *client = c;
    return STK_OK;
}

void stk_s3_client_close(stk_s3_client *c) {
    if (c == NULL) {
        return;
    }
    stk_s3_renewal_close(c->renewal);
    for (int i = 0; i < c->engine_count; i++) {
        stk_http_close(c->engines[i]);
    }
    stk_s3_credentials_free(&c->credentials);
    stk_s3_address_free(&c->address);
    stk_s3_settings_free(&c->settings);
    pthread_mutex_destroy(&c->lock);
    stk_mem_free(c->told_region);
    stk_mem_free(c->place);
    stk_mem_free(c->bucket);
    stk_mem_free(c);
}

bool stk_s3_client_send(stk_s3_client *c, stk_s3_call *call) {
    call->client = c;
    pthread_mutex_lock(&c->lock);
    bool good = sign(c, call);
    bool stale = good && stk_s3_credentials_stale(&c->credentials, (int64_t)time(NULL));
    pthread_mutex_unlock(&c->lock);
    if (!good || !assemble(call)) {
        return false;
    }
    if (stale && c->renewal != NULL) {
        (void)stk_s3_renewal_begin(c->renewal, false); /* the old ones do for now */
    }
    call->http.done = ended;
    call->http.received = call->received != NULL ? received : NULL;
    call->http.limit = call->limit != NULL ? limit : NULL;
    unsigned turn = call->received != NULL ? atomic_fetch_add(&c->turn, 1) : 0;
    call->engine = c->engines[turn % (unsigned)c->engine_count];
    stk_http_begin(call->engine, &call->http);
    return true;
}

void stk_s3_client_cancel(stk_s3_call *call) {
    stk_http_cancel(call->engine, &call->http);
}

void stk_s3_client_bound(stk_s3_client *c, uint64_t bytes) {
    atomic_store(&c->room.most, bytes);
}

int stk_s3_client_threads(const stk_s3_client *c) {
    return c->engine_count;
}

void stk_s3_call_free(stk_s3_call *call) {
    stk_s3_signed_free(&call->signature);
    stk_str_free(&call->url);
    stk_str_free(&call->path);
    stk_str_free(&call->range);
}

const char *stk_s3_client_endpoint(const stk_s3_client *c) {
    return c->settings.endpoint != NULL ? c->settings.endpoint : "aws";
}

void stk_s3_client_region(stk_s3_client *c, char region[static 40]) {
    pthread_mutex_lock(&c->lock);
    snprintf(region, 40, "%s", c->settings.region);
    pthread_mutex_unlock(&c->lock);
}

void stk_s3_client_set_region(stk_s3_client *c, const char *region) {
    pthread_mutex_lock(&c->lock);
    if (!stk_str_equal(region, c->settings.region)) {
        (void)learn_region(c, region);
    }
    pthread_mutex_unlock(&c->lock);
}

const char *stk_s3_client_told_region(const stk_s3_client *c) {
    return c->told_region;
}

#endif
