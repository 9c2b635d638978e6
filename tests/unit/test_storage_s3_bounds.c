/*
 * test_storage_s3_bounds.c - a server that sends too much: bodies, header lines, errors, listings.
 * It must not decide how much memory is used, nor for how long.
 */
#include "check.h"

#ifdef STK_HAVE_S3

#include "object_server.h"
#include "s3_place.h"
#include "storage/s3/list.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define PICTURES 48
#define PICTURE_BYTES 4096
#define LARGE_BYTES 300000

static char root[300];
static object_server server;

static void put(const char *key, size_t size) {
    stk_error err = {0};
    char *path = stk_path_join(root, key);
    char *text = stk_mem_new(size + 1, 1);
    for (size_t i = 0; i < size; i++) {
        text[i] = (char)((size_t)key[i % strlen(key)] + i);
    }
    REQUIRE_OK(stk_file_write(path, text, size, &err), &err);
    stk_mem_free(text);
    stk_mem_free(path);
}

static void name_picture(char key[24], int number) {
    snprintf(key, 24, "p%02d.jpg", number);
}

static void start_server(void) {
    const char *const arguments[] = {"--root", root, NULL};
    stk_error err = {0};
    if (root[0] == '\0') {
        snprintf(root, sizeof root, "%s/bucket", check_folder());
        REQUIRE_OK(stk_dir_make(root, &err), &err);
        put("large.bin", LARGE_BYTES);
        for (int i = 0; i < PICTURES; i++) {
            char key[24];
            name_picture(key, i);
            put(key, PICTURE_BYTES);
        }
    }
    object_server_start(&server, arguments);
    s3_environment(server.port);
}

static void *open_place(void) {
    stk_error err = {0};
    void *place = NULL;
    start_server();
    if (s3_open(&place, "s3://bucket", (s3_opening){0}, NULL, &err) != STK_OK) {
        printf("%s\n", err.message);
        exit(1);
    }
    return place;
}

static void close_place(void *place) {
    stk_storage_s3.close(place);
    object_server_stop(&server);
}

/* ---- one answer ---- */

static void answers_without_an_end_are_cut(void) {
    static const struct {
        const char *fault;
        int verdict; /* a stk_fetch_verdict */
        const char *words[2];
    } cases[] = {
        {"endless_percent=100", STK_FETCH_NEVER, {"more bytes came where 4096", "--refresh"}},
        {"endless_percent=100&endless_length=900000000000",
         STK_FETCH_NEVER,
         {"900000000000 bytes were to come where 4096 were listed", "--refresh"}},
        {"endless_percent=100&endless_length=4097",
         STK_FETCH_NEVER,
         {"4097 bytes were to come where 4096 were listed", "was replaced since"}},
        {"endless_percent=100&endless_status=500", STK_FETCH_AGAIN, {"(500)", "does not serve"}},
        {"endless_percent=100&endless_status=404", STK_FETCH_NEVER, {"no object p00.jpg", "404"}},
        {"head_percent=100", STK_FETCH_DAMAGED, {"the head of the answer has more than 65536", ""}},
        {"head_percent=100&head_lines=1",
         STK_FETCH_DAMAGED,
         {"the head of the answer has more than 65536", "AWS_ENDPOINT_URL"}},
    };
    void *place = open_place();
    for (size_t i = 0; i < COUNT(cases); i++) {
        stk_fetch fetch = {0};
        object_server_set(&server, cases[i].fault);
        int verdict = (int)s3_fetch(place, &fetch, "p00.jpg");
        if (verdict != cases[i].verdict) {
            CHECK_FAIL("%s: verdict %d, %s", cases[i].fault, verdict, fetch.result.cause);
        }
        CHECK_CONTAINS(fetch.result.cause, cases[i].words[0]);
        CHECK_CONTAINS(fetch.result.cause, cases[i].words[1]);
        CHECK(strstr(fetch.result.cause, "memory") == NULL);
        CHECK(fetch.bytes.capacity <= (size_t)256 * 1024);
        object_server_set(&server, "reset=1");
        CHECK_INT(s3_fetch(place, &fetch, "p00.jpg"), STK_FETCH_OK);
        CHECK_INT(fetch.bytes.size, PICTURE_BYTES);
        stk_bytes_free(&fetch.bytes);
    }
    close_place(place);
}

static void parts_are_as_long_as_was_asked_for(void) {
    void *place = open_place();
    stk_fetch fetch = {.offset = 1000, .length = 500};
    CHECK_INT(s3_fetch(place, &fetch, "large.bin"), STK_FETCH_OK);
    CHECK_INT(fetch.bytes.size, 500);
    object_server_set(&server, "endless_percent=100&endless_status=206");
    CHECK_INT(s3_fetch(place, &fetch, "large.bin"), STK_FETCH_NEVER);
    CHECK(fetch.bytes.capacity <= (size_t)256 * 1024);
    object_server_set(&server, "reset=1&endless_percent=100"); /* all of it, and more */
    CHECK_INT(s3_fetch(place, &fetch, "large.bin"), STK_FETCH_NEVER);
    CHECK(fetch.bytes.capacity <= (size_t)2 * LARGE_BYTES);
    stk_bytes_free(&fetch.bytes);
    object_server_set(&server, "reset=1&empty_percent=100"); /* and nothing at all */
    CHECK_INT(s3_fetch(place, &fetch, "large.bin"), STK_FETCH_OK);
    CHECK_INT(fetch.bytes.size, 0);
    stk_bytes_free(&fetch.bytes);
    close_place(place);
}

/* ---- all of them ---- */

static void fetch_all(void *place, stk_fetch *fetches, char (*keys)[24]) {
    for (int i = 0; i < PICTURES; i++) {
        name_picture(keys[i], i);
        s3_begin(place, &fetches[i], keys[i]);
    }
    s3_wait(PICTURES);
}

static void free_all(stk_fetch *fetches) {
    for (int i = 0; i < PICTURES; i++) {
        stk_bytes_free(&fetches[i].bytes);
    }
}

static void many_endless_answers_take_little(void) {
    stk_fetch fetches[PICTURES] = {0};
    char keys[PICTURES][24];
    size_t bytes = 0;
    void *place = open_place();
    object_server_set(&server, "endless_percent=100");
    fetch_all(place, fetches, keys);
    for (int i = 0; i < PICTURES; i++) {
        CHECK_INT(fetches[i].result.verdict, STK_FETCH_NEVER);
        bytes += fetches[i].bytes.capacity;
    }
    CHECK(bytes <= (size_t)PICTURES * 4 * PICTURE_BYTES);
    free_all(fetches);
    close_place(place);
}

/* Sizes are known from the listing: no more requests are sent than fit into the memory. */
static void requests_wait_for_memory(void) {
    enum { AT_ONCE = 5 };
    stk_fetch fetches[PICTURES] = {0};
    stk_fetch large = {0};
    char keys[PICTURES][24];
    void *place = open_place();
    object_server_set(&server, "delay_ms=5&clear_stats=1");
    fetch_all(place, fetches, keys);
    CHECK(object_server_count(&server, "max_in_flight") > AT_ONCE); /* the limit is far away */
    stk_storage_s3.bound(place, (uint64_t)AT_ONCE * (PICTURE_BYTES + 1));
    object_server_set(&server, "clear_stats=1");
    fetch_all(place, fetches, keys);
    for (int i = 0; i < PICTURES; i++) {
        CHECK_INT(fetches[i].result.verdict, STK_FETCH_OK);
        CHECK_INT(fetches[i].bytes.size, PICTURE_BYTES);
    }
    CHECK(object_server_count(&server, "max_in_flight") <= AT_ONCE);
    CHECK(object_server_count(&server, "max_in_flight") > 1);
    CHECK_INT(s3_fetch(place, &large, "large.bin"), STK_FETCH_OK); /* one alone always may */
    CHECK_INT(large.bytes.size, LARGE_BYTES);
    stk_bytes_free(&large.bytes);
    free_all(fetches);
    close_place(place);
}

/* An object that was replaced by a larger one since is as large as its answer says. */
static void replaced_objects_take_memory_too(void) {
    stk_fetch fetch = {0};
    void *place = open_place();
    put("p01.jpg", LARGE_BYTES);
    CHECK_INT(s3_fetch(place, &fetch, "p01.jpg"), STK_FETCH_OK);
    CHECK_INT(fetch.bytes.size, LARGE_BYTES);
    stk_storage_s3.bound(place, 2 * (PICTURE_BYTES + 1));
    stk_fetch slow = {0};
    object_server_set(&server, "rate_kbps=8&only=p02");
    s3_begin(place, &slow, "p02.jpg");
    while (atomic_load(&slow.started_ns) == 0) {
        usleep(1000);
    }
    CHECK_INT(s3_fetch(place, &fetch, "p01.jpg"), STK_FETCH_NO_MEMORY); /* not beside another */
    CHECK_CONTAINS(fetch.result.cause, "--loader-memory");
    stk_storage_s3.cancel(place, &slow);
    s3_wait(1);
    CHECK_INT(s3_fetch(place, &fetch, "p01.jpg"), STK_FETCH_OK); /* alone again */
    stk_bytes_free(&fetch.bytes);
    stk_bytes_free(&slow.bytes);
    close_place(place);
    put("p01.jpg", PICTURE_BYTES);
}

/* ---- listings ---- */

static void listings_without_an_end_are_refused(void) {
    static const struct {
        const char *fault;
        const char *words;
    } cases[] = {
        {"empty_percent=100", "broken or cut off"},
        {"endless_percent=100", "larger than 17 MB"},
        {"head_percent=100", "the head of the answer has more than 65536 bytes"},
        {"head_percent=100&head_lines=1", "the head of the answer has more than 65536 bytes"},
    };
    start_server();
    for (size_t i = 0; i < COUNT(cases); i++) {
        stk_error err = {0};
        void *place = NULL;
        object_server_set(&server, "reset=1");
        object_server_set(&server, cases[i].fault);
        CHECK_INT(s3_open(&place, "s3://bucket", (s3_opening){0}, NULL, &err), STK_ERR_STORAGE);
        CHECK_CONTAINS(err.message, "cannot list s3://bucket: ");
        CHECK_CONTAINS(err.message, cases[i].words);
    }
    object_server_stop(&server);
}

static void names_take_no_more_memory_than_they_may(void) {
    stk_s3_client *client = NULL;
    stk_error err = {0};
    stk_tree tree = {0};
    stk_s3_client_config config = {.bucket = "bucket", .timeout_s = 20};
    start_server();
    REQUIRE_OK(stk_s3_client_open(&client, &config, &err), &err);
    stk_s3_listing listing = {.client = client,
                              .bucket = "bucket",
                              .prefix = "",
                              .location = "s3://bucket",
                              .timeout_s = 20,
                              .max_bytes = 1000};
    CHECK_INT(stk_s3_list(&listing, &tree, &err), STK_ERR_DATA);
    CHECK_CONTAINS(err.message, "take more than 1.0 kB of memory; name a folder further down");
    stk_tree_free(&tree);
    stk_error_clear(&err);
    listing.max_bytes = 1000000;
    REQUIRE_OK(stk_s3_list(&listing, &tree, &err), &err);
    CHECK_INT(tree.count, PICTURES + 1);
    stk_tree_free(&tree);
    stk_s3_client_close(client);
    object_server_stop(&server);
}

/* ---- requests that block ---- */

static void short_answers_are_bounded(void) {
    static const struct {
        const char *fault;
        const char *words;
    } cases[] = {
        {"endless_percent=100", "the answer has more than 1000 bytes"},
        {"endless_percent=100&endless_length=900000000", "the answer has more than 1000 bytes"},
        {"head_percent=100", "the head of the answer has more than 65536 bytes"},
        {"head_percent=100&head_lines=1", "the head of the answer has more than 65536 bytes"},
    };
    char url[100];
    start_server();
    snprintf(url, sizeof url, "%s/bucket/p00.jpg", server.url);
    for (size_t i = 0; i < COUNT(cases); i++) {
        stk_error err = {0};
        stk_http_transfer transfer = {.url = url, .timeout_s = 20, .max_bytes = 1000};
        const stk_http_connect connect = {.timeout_s = 20, .no_proxy = true};
        object_server_set(&server, "reset=1");
        object_server_set(&server, cases[i].fault);
        CHECK_INT(stk_http_transfer_perform(&transfer, &connect, &err), STK_ERR_STORAGE);
        CHECK_CONTAINS(err.message, cases[i].words);
        stk_http_transfer_free(&transfer);
    }
    object_server_stop(&server);
}

/* ---- the sum ---- */

static void memory_is_taken_and_given_back(void) {
    stk_http_memory memory = {.limit = 100};
    CHECK(stk_http_memory_take(&memory, 0, 60));
    CHECK(!stk_http_memory_take(&memory, 0, 41));
    CHECK(stk_http_memory_take(&memory, 0, 40));
    CHECK(!stk_http_memory_take(&memory, 60, 1)); /* another one is there */
    stk_http_memory_give(&memory, 40);
    CHECK(stk_http_memory_take(&memory, 60, 1000)); /* alone */
    CHECK(!stk_http_memory_take(&memory, 0, 0));
    stk_http_memory_give(&memory, 1060);
    CHECK_INT(atomic_load(&memory.used), 0);
    CHECK(stk_http_memory_take(&memory, 0, 5000));
    atomic_store(&memory.limit, 0); /* no limit */
    CHECK(stk_http_memory_take(&memory, 0, UINT64_MAX / 2));
}

static const check_test tests[] = {
    TEST(answers_without_an_end_are_cut),          TEST(parts_are_as_long_as_was_asked_for),
    TEST(many_endless_answers_take_little),        TEST(requests_wait_for_memory),
    TEST(replaced_objects_take_memory_too),        TEST(listings_without_an_end_are_refused),
    TEST(names_take_no_more_memory_than_they_may), TEST(short_answers_are_bounded),
    TEST(memory_is_taken_and_given_back),
};

#else

static void not_built(void) {
    CHECK_SKIP("built without S3");
}

static const check_test tests[] = {TEST(not_built)};

#endif

CHECK_MAIN(tests)
