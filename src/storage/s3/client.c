/*
 * client.c - signed requests to one bucket.
 *
 * Three things can be wrong for all requests at once, and a response can tell the right value: the
 * region, the clock, and credentials that have expired. The client corrects region and clock once
 * each: if a request that was signed afterwards fails in the same way, the location is lost.
 * Credentials are renewed as often as they expire. The location is lost when a renewal found none
 * or the same ones, or when the store refuses new ones within five seconds (renew.h).
 */
#ifdef STK_HAVE_S3

#include "storage/s3/client.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

#include "base/error.h"
#include "base/machine.h"
#include "base/mem.h"
#include "base/str.h"
#include "storage/http/engine.h"
#include "storage/s3/classify.h"
#include "storage/s3/providers.h"
#include "storage/s3/renew.h"

/* Enough for any latency; a store that could serve more meets other limits first. */
#define MAX_CONNECTIONS 512

/*
 * Receiving, decrypting and hashing half a gigabyte a second takes one core. Where the machine has
 * cores to spare, two engines share the objects.
 */
#define MAX_ENGINES 2
#define CORES_PER_ENGINE 4

#define CONNECT_TIMEOUT_S 10.0

/* Bodies in flight take no more than this part of the memory, unless the caller sets a limit. */
#define MEMORY_SHARE 8

/* While credentials are being renewed, requests wait so long before the next try. */
#define RENEWAL_WAIT_S 0.5

struct stk_s3_client {
    stk_http_engine *engines[MAX_ENGINES];
    int engine_count;
    stk_http_memory memory;   /* shared by the engines */
    atomic_uint turn;         /* which engine takes the next object */
    stk_s3_settings settings; /* constant except `region` (lock) */
    char *configured_region;  /* owned: the region as the settings had it */

    pthread_mutex_t lock;
    stk_s3_address address;       /* lock */
    stk_s3_access access;         /* the credentials change: lock */
    uint64_t credentials_version; /* counts the renewals; lock */
    bool renewal_was_vain;        /* the last renewal brought the same credentials; lock */
    int64_t clock_offset_s;       /* the store's clock minus this machine's; lock */
    bool clock_corrected;         /* clock_offset_s was taken from a response; lock */
    stk_s3_renewal *renewal;      /* NULL: nothing to renew; has its own lock */
};

/* ---- credentials that expire ---- */

static bool same_text(const char *a, const char *b) {
    return a == NULL || b == NULL ? a == b : stk_str_equal(a, b);
}

/* Takes over renewed credentials; called on the renewal's thread. */
static void take_credentials(void *user, stk_s3_credentials *found) {
    stk_s3_client *c = user;
    pthread_mutex_lock(&c->lock);
    c->renewal_was_vain = same_text(c->access.credentials.key_id, found->key_id) &&
                          same_text(c->access.credentials.token, found->token);
    c->credentials_version++;
    if (found->key_id != NULL) { /* old credentials are better than none */
        stk_s3_credentials old = c->access.credentials;
        c->access.credentials = *found;
        *found = old;
    } else {
        c->renewal_was_vain = true;
    }
    pthread_mutex_unlock(&c->lock);
}

/* ---- making a request ---- */

/* Writes the encoded path, and the URL without a query. Under the lock. */
static bool make_url(stk_s3_client *c, stk_s3_request *request) {
    bool has_key = request->key.length > 0;
    stk_str_clear(&request->path);
    stk_str_append(&request->path, c->address.path);
    if (has_key || request->path.length == 0) {
        stk_str_append(&request->path, "/");
    }
    if (has_key) {
        char *encoded = stk_s3_encode_path(request->key.text);
        if (encoded == NULL) {
            return false;
        }
        stk_str_append(&request->path, encoded);
        stk_mem_free(encoded);
    }
    stk_str_clear(&request->url);
    stk_str_append(&request->url, c->address.origin);
    stk_str_append(&request->url, stk_str_text(&request->path));
    return stk_str_ok(&request->path) && stk_str_ok(&request->url);
}

/* Under the lock. */
static bool sign(stk_s3_client *c, stk_s3_request *request) {
    if (!make_url(c, request)) {
        return false;
    }
    stk_s3_unsigned to_sign = {
        .method = "GET",
        .host = c->address.host,
        .path = stk_str_text(&request->path),
        .query = request->query,
        .query_count = request->query_count,
    };
    stk_s3_signed_free(&request->signature);
    if (stk_s3_sign(&to_sign, &c->access.credentials, c->settings.region,
                    (int64_t)time(NULL) + c->clock_offset_s, &request->signature, NULL) != STK_OK) {
        return false;
    }
    request->credentials_version = c->credentials_version;
    request->clock_offset_s = c->clock_offset_s;
    snprintf(request->region, sizeof request->region, "%s", c->settings.region);
    return true;
}

/* Gives the signed request to its transfer. */
static bool fill_transfer(stk_s3_request *request) {
    stk_s3_signed *signature = &request->signature;
    stk_http_transfer *transfer = &request->transfer;
    if (signature->query[0] != '\0') {
        stk_str_append(&request->url, "?");
        stk_str_append(&request->url, signature->query);
    }
    if (request->length > 0) { /* S3 accepts a Range header that is not signed */
        char *range = stk_str_format("Range: bytes=%llu-%llu", (unsigned long long)request->offset,
                                     (unsigned long long)(request->offset + request->length - 1));
        if (range == NULL) {
            return false;
        }
        signature->headers[signature->header_count++] = range;
    }
    transfer->url = stk_str_text(&request->url);
    transfer->headers = (const char *const *)signature->headers;
    transfer->header_count = signature->header_count;
    transfer->part_bytes = request->length;
    return stk_str_ok(&request->url);
}

/* ---- recovery ---- */

/* Signs for another region from now on. Under the lock. */
static bool learn_region(stk_s3_client *c, const char *region) {
    char *copy = stk_mem_strdup(region);
    stk_s3_settings settings = c->settings;
    stk_s3_address address = {0};
    settings.region = copy;
    /* The region becomes part of the host's name: a response must not lead to another host. */
    if (copy == NULL || !stk_s3_is_region(copy) ||
        stk_s3_address_of(&settings, c->access.bucket, &address, NULL) != STK_OK) {
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
 * Corrects what the response complains about. True: another request may work. A correction that
 * another request caused since this one was signed counts as well. Under the lock.
 */
static bool recover(stk_s3_client *c, const stk_s3_request *request) {
    switch (request->recovery) {
    case STK_S3_RECOVERY_REGION:
        if (!stk_str_equal(request->region, c->settings.region)) {
            return true;
        }
        /* Only the first redirect is followed: two regions could name each other for ever. */
        return stk_str_equal(c->settings.region, c->configured_region) &&
               learn_region(c, request->right_region);
    case STK_S3_RECOVERY_CLOCK:
        if (!c->clock_corrected) {
            int64_t server_s = stk_http_response_date_s(&request->transfer.response);
            c->clock_offset_s = server_s != 0 ? server_s - (int64_t)time(NULL) : 0;
            c->clock_corrected = true;
            return server_s != 0;
        }
        return request->clock_offset_s != c->clock_offset_s;
    case STK_S3_RECOVERY_CREDENTIALS:
        return request->credentials_version != c->credentials_version && !c->renewal_was_vain;
    case STK_S3_RECOVERY_NONE:
        break;
    }
    return false;
}

void stk_s3_client_finish(stk_s3_request *request, stk_fetch_result *result) {
    stk_s3_client *c = request->client;
    int status = request->transfer.response.status;
    if (request->transfer.result == STK_HTTP_ANSWERED && (status == 200 || status == 206)) {
        result->verdict = STK_FETCH_OK; /* as stk_s3_classify() says, without the lock */
        result->wait_s = 0;
        return;
    }
    pthread_mutex_lock(&c->lock);
    stk_s3_classify(request, &c->access, result);
    bool recovered = recover(c, request);
    bool renew = !recovered && request->recovery == STK_S3_RECOVERY_CREDENTIALS &&
                 request->credentials_version == c->credentials_version && c->renewal != NULL;
    pthread_mutex_unlock(&c->lock);
    /* Without the lock: the renewal's thread takes it while it holds its own. */
    if (renew && stk_s3_renewal_begin(c->renewal, true)) {
        result->wait_s = RENEWAL_WAIT_S;
        recovered = true;
    }
    if (recovered) {
        result->verdict = STK_FETCH_AGAIN;
    }
}

/* ---- public ---- */

static stk_status open_engines(stk_s3_client *c, double timeout_s, stk_error *err) {
    double half_s = timeout_s / 2;
    int wanted = stk_machine_cores() / CORES_PER_ENGINE;
    wanted = wanted < 1 ? 1 : wanted > MAX_ENGINES ? MAX_ENGINES : wanted;
    stk_http_engine_config config = {
        .connect.ca_bundle = c->settings.ca_bundle,
        .connect.timeout_s = half_s > 0 && half_s < CONNECT_TIMEOUT_S ? half_s : CONNECT_TIMEOUT_S,
        .max_connections = MAX_CONNECTIONS / wanted,
        .engines = wanted,
        .memory = &c->memory,
    };
    stk_status status = STK_OK;
    stk_s3_client_limit_memory(c, stk_machine_memory() / MEMORY_SHARE);
    while (status == STK_OK && c->engine_count < wanted) {
        status = stk_http_engine_open(&c->engines[c->engine_count], &config, err);
        c->engine_count += status == STK_OK;
    }
    return status;
}

static stk_status open_parts(stk_s3_client *c, const stk_s3_client_config *config, stk_error *err) {
    stk_status status = stk_s3_settings_load(&c->settings, err);
    if (status == STK_OK) {
        c->access.endpoint = c->settings.endpoint;
        c->access.anonymous = config->anonymous || c->settings.anonymous;
        c->configured_region = stk_mem_strdup(c->settings.region);
        status = c->configured_region != NULL
                     ? stk_s3_address_of(&c->settings, c->access.bucket, &c->address, err)
                     : STK_FAIL_MEMORY(err, config->bucket);
    }
    if (status == STK_OK && !c->access.anonymous) {
        status = stk_s3_credentials_find(&c->settings, &c->access.credentials, err);
    }
    if (status == STK_OK && c->access.credentials.key_id != NULL) {
        status = stk_s3_renewal_open(&c->renewal, take_credentials, c, err);
    }
    return status == STK_OK ? open_engines(c, config->timeout_s, err) : status;
}

stk_status stk_s3_client_open(stk_s3_client **client, const stk_s3_client_config *config,
                              stk_error *err) {
    stk_s3_client *c = stk_mem_new(1, sizeof *c);
    if (c == NULL) {
        return STK_FAIL_MEMORY(err, config->bucket);
    }
    pthread_mutex_init(&c->lock, NULL);
    c->access.bucket = stk_mem_strdup(config->bucket);
    stk_status status = c->access.bucket != NULL ? open_parts(c, config, err)
                                                 : STK_FAIL_MEMORY(err, config->bucket);
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
        stk_http_engine_close(c->engines[i]);
    }
    stk_s3_credentials_free(&c->access.credentials);
    stk_s3_address_free(&c->address);
    stk_s3_settings_free(&c->settings);
    pthread_mutex_destroy(&c->lock);
    stk_mem_free(c->configured_region);
    stk_mem_free(c->access.bucket);
    stk_mem_free(c);
}

bool stk_s3_client_send(stk_s3_client *c, stk_s3_request *request) {
    request->client = c;
    pthread_mutex_lock(&c->lock);
    bool good = sign(c, request);
    bool stale = good && stk_s3_credentials_stale(&c->access.credentials, (int64_t)time(NULL));
    pthread_mutex_unlock(&c->lock);
    if (!good || !fill_transfer(request)) {
        return false;
    }
    if (stale && c->renewal != NULL) {
        (void)stk_s3_renewal_begin(c->renewal, false); /* the old credentials still work */
    }
    unsigned turn = request->key.length > 0 ? atomic_fetch_add(&c->turn, 1) : 0;
    stk_http_begin(c->engines[turn % (unsigned)c->engine_count], &request->transfer);
    return true;
}

void stk_s3_client_cancel(stk_s3_request *request) {
    stk_http_cancel(&request->transfer);
}

void stk_s3_request_free(stk_s3_request *request) {
    stk_http_transfer_free(&request->transfer);
    stk_s3_signed_free(&request->signature);
    stk_str_free(&request->key);
    stk_str_free(&request->url);
    stk_str_free(&request->path);
}

void stk_s3_client_limit_memory(stk_s3_client *c, uint64_t bytes) {
    atomic_store(&c->memory.limit, bytes);
}

int stk_s3_client_threads(const stk_s3_client *c) {
    return c->engine_count;
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

const char *stk_s3_client_configured_region(const stk_s3_client *c) {
    return c->configured_region;
}

#endif
