/*
 * test_storage_http_memory.c - each request of libcurl's for memory fails once: the transfer that
 * needed it ends all the same, and the next one works.
 */
#include "check.h"

#ifdef STK_HAVE_S3

#include "object_server.h"

#include <curl/curl.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "base/files/file.h"
#include "base/mem.h"
#include "storage/http/engine.h"

#define LONG_S 60 /* no transfer here takes that long */

/* ---- memory of libcurl's ---- */

static atomic_long calls_left = -1; /* before the one that fails; negative: none does */
static atomic_bool struck;

static bool fails(void) {
    if (atomic_load(&calls_left) < 0 || atomic_fetch_sub(&calls_left, 1) != 0) {
        return false;
    }
    atomic_store(&struck, true);
    return true;
}

static void *take(size_t size) {
    return fails() ? NULL : malloc(size);
}

static void *take_zeros(size_t count, size_t size) {
    return fails() ? NULL : calloc(count, size);
}

static void *take_again(void *block, size_t size) {
    return fails() ? NULL : realloc(block, size);
}

static char *take_text(const char *text) {
    return fails() ? NULL : strdup(text);
}

/* ---- one transfer ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool ended; /* lock */

static void done(stk_http_transfer *transfer) {
    (void)transfer;
    pthread_mutex_lock(&lock);
    ended = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static bool wait_for_end(void) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += LONG_S;
    pthread_mutex_lock(&lock);
    int result = 0;
    while (!ended && result == 0) {
        result = pthread_cond_timedwait(&changed, &lock, &until);
    }
    bool has = ended;
    pthread_mutex_unlock(&lock);
    return has;
}

/* False: it did not end by itself. */
static bool get(stk_http_engine *engine, stk_http_transfer *transfer) {
    ended = false;
    stk_http_begin(engine, transfer);
    if (wait_for_end()) {
        return true;
    }
    stk_http_cancel(transfer);
    (void)wait_for_end();
    return false;
}

/* One engine whose nth request for memory fails. */
static void try_at(long n, const char *url) {
    static const stk_http_engine_config config = {.connect.timeout_s = 10, .max_connections = 4};
    stk_http_engine *engine = NULL;
    stk_http_transfer transfer = {.url = url, .max_bytes = 1 << 20, .done = done};
    stk_error err = {0};
    atomic_store(&struck, false);
    atomic_store(&calls_left, n);
    stk_status status = stk_http_engine_open(&engine, &config, &err);
    if (status != STK_OK) {
        atomic_store(&calls_left, -1);
        CHECK_INT(status, STK_ERR_MEMORY);
        return;
    }
    bool by_itself = get(engine, &transfer);
    atomic_store(&calls_left, -1);
    if (!by_itself) {
        CHECK_FAIL("request %ld for memory fails: the transfer does not end", n);
    } else if (transfer.result == STK_HTTP_ANSWERED) {
        CHECK_INT(transfer.response.status, 200);
    } else {
        CHECK(atomic_load(&struck) && transfer.reason[0] != '\0');
    }
    CHECK(get(engine, &transfer));
    CHECK_INT(transfer.result, STK_HTTP_ANSWERED);
    CHECK_INT(transfer.body.size, 5);
    stk_http_engine_close(engine);
    stk_http_transfer_free(&transfer);
}

static void a_transfer_ends_whatever_it_finds_no_memory_for(void) {
    char root[300];
    char url[128];
    object_server server;
    stk_error err = {0};
    snprintf(root, sizeof root, "%s/bucket", check_folder());
    REQUIRE_OK(stk_dir_make(root, &err), &err);
    char *path = stk_path_join(root, "a.txt");
    REQUIRE_OK(stk_file_write(path, "bytes", 5, &err), &err);
    stk_mem_free(path);
    const char *const arguments[] = {"--root", root, NULL};
    object_server_start(&server, arguments);
    snprintf(url, sizeof url, "http://127.0.0.1:%d/bucket/a.txt", server.port);
    setenv("no_proxy", "127.0.0.1", 1);
    REQUIRE(curl_global_init_mem(CURL_GLOBAL_DEFAULT, take, free, take_again, take_text,
                                 take_zeros) == CURLE_OK);
    long n = 0;
    do {
        try_at(n++, url);
    } while (atomic_load(&struck) && n < 2000);
    CHECK(n > 20 && n < 2000);
    object_server_stop(&server);
}

static const check_test tests[] = {
    TEST(a_transfer_ends_whatever_it_finds_no_memory_for),
};

#else

static void not_built(void) {
    CHECK_SKIP("built without S3");
}

static const check_test tests[] = {TEST(not_built)};

#endif

CHECK_MAIN(tests)
