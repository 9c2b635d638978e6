/* test_storage_s3_source.c - the S3 source against a server that fails as it is told. */
#include "check.h"

#ifdef STK_HAVE_S3

#include <sys/resource.h>
#include <sys/stat.h>

#include <stoker/job.h>

#include "object_server.h"
#include "s3_place.h"
#include "small_server.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define PICTURES 60

static const char *const odd_keys[] = {
    "odd/a b.jpg",       "odd/a+b.jpg",          "odd/100%.jpg",
    "odd/%41.jpg",       "odd/a&b=c.jpg",        "odd/h#h.jpg",
    "odd/q?q=1.jpg",     "odd/quo\"te'.jpg",     "odd/\xC3\xBC.jpg",
    "odd/tab\tline.jpg", "odd/~;:@$,!*()[].jpg", "odd/\xE6\x97\xA5/\xE6\x9C\xAC.jpg",
};

static char root[300];
static object_server server;

static void put(const char *key, const char *text, size_t size) {
    stk_error err = {0};
    char *path = stk_path_join(root, key);
    char *folder = stk_mem_strndup(path, (size_t)(stk_path_base(path) - path));
    if (stk_dir_make(folder, &err) != STK_OK || stk_file_write(path, text, size, &err) != STK_OK) {
        printf("%s\n", err.message);
        exit(1);
    }
    stk_mem_free(folder);
    stk_mem_free(path);
}

/* The bytes of an object follow from its key: none is like another. */
static void put_picture(const char *key) {
    char text[4096];
    for (size_t i = 0; i < sizeof text; i++) {
        text[i] = (char)((size_t)key[i % strlen(key)] + i);
    }
    put(key, text, sizeof text);
}

static void make_files(void) {
    if (root[0] != '\0') {
        return;
    }
    snprintf(root, sizeof root, "%s/bucket", check_folder());
    for (size_t i = 0; i < COUNT(odd_keys); i++) {
        put_picture(odd_keys[i]);
    }
    for (int i = 0; i < PICTURES; i++) {
        char key[64];
        snprintf(key, sizeof key, "train/c%d/deep/%d/%03d.jpg", i % 3, i % 2, i);
        put_picture(key);
    }
    put("train/empty", "", 0);
    put("top.txt", "top", 3);
}

/* A server of all files with pages of seven keys, and an environment that leads to it. */
static void start_server(const char *more, const char *value) {
    const char *const arguments[] = {"--root",           root, "--page", "7",
                                     "--folder-markers", more, value,    NULL};
    make_files();
    object_server_start(&server, arguments);
    s3_environment(server.port);
}

static void check_bytes(const stk_fetch *fetch, const char *key) {
    char *path = stk_path_join(root, key);
    stk_bytes bytes = {0};
    stk_error err = {0};
    REQUIRE_OK(stk_file_read_into(path, 1 << 20, &bytes, &err), &err);
    CHECK_INT(fetch->bytes.size, bytes.size);
    CHECK(fetch->bytes.size == bytes.size &&
          memcmp(fetch->bytes.data, bytes.data, bytes.size) == 0);
    stk_bytes_free(&bytes);
    stk_mem_free(path);
}

static void all_objects_are_listed_and_read(void) {
    stk_error err = {0};
    void *place = NULL;
    start_server("--require-auth", NULL);
    REQUIRE_OK(s3_open(&place, "s3://bucket", (s3_opening){0}, NULL, &err), &err);
    const stk_tree *tree = stk_storage_s3.tree(place);
    CHECK_INT(tree->count, COUNT(odd_keys) + PICTURES + 2);
    for (size_t i = 0; i < COUNT(odd_keys); i++) {
        CHECK(stk_tree_find(tree, odd_keys[i]) != NULL);
    }
    stk_fetch *fetches = stk_mem_new(tree->count, sizeof *fetches);
    for (int round = 0; round < 3; round++) { /* blocks and connections are used again */
        for (size_t i = 0; i < tree->count; i++) {
            s3_begin(place, &fetches[i], tree->objects[i].path);
        }
        s3_wait((int)tree->count);
        for (size_t i = 0; i < tree->count; i++) {
            CHECK_INT(fetches[i].result.verdict, STK_FETCH_OK);
            CHECK(atomic_load(&fetches[i].started_ns) > 0);
            check_bytes(&fetches[i], tree->objects[i].path);
        }
    }
    for (size_t i = 0; i < tree->count; i++) {
        stk_bytes_free(&fetches[i].bytes);
    }
    stk_mem_free(fetches);
    CHECK(stk_storage_s3.threads(place) == 1 || stk_storage_s3.threads(place) == 2);
    stk_storage_s3.close(place);
    object_server_stop(&server);
}

/* A prefix is a folder, with or without a slash at its end, and not the start of a name. */
static void a_prefix_is_a_folder(void) {
    static const char *const roots[] = {"s3://bucket/train", "s3://bucket/train/",
                                        "S3://bucket//train//"};
    start_server(NULL, NULL);
    put("trainer/x.jpg", "x", 1);
    for (size_t i = 0; i < COUNT(roots); i++) {
        stk_error err = {0};
        void *place = NULL;
        stk_fetch fetch = {0};
        REQUIRE_OK(s3_open(&place, roots[i], (s3_opening){.anonymous = true}, NULL, &err), &err);
        CHECK_INT(stk_storage_s3.tree(place)->count, PICTURES + 1);
        CHECK(stk_tree_find(stk_storage_s3.tree(place), "c0/deep/0/000.jpg") != NULL);
        CHECK_INT(s3_fetch(place, &fetch, "c0/deep/0/000.jpg"), STK_FETCH_OK);
        check_bytes(&fetch, "train/c0/deep/0/000.jpg");
        stk_bytes_free(&fetch.bytes);
        stk_storage_s3.close(place);
    }
    object_server_stop(&server);
}

static void parts(void) {
    static const struct {
        uint64_t offset;
        uint64_t length;
        size_t bytes;
    } cases[] = {{0, 10, 10},  {4000, 96, 96}, {4000, 1000, 96},
                 {4095, 1, 1}, {4096, 5, 0},   {1u << 30, 5, 0}};
    stk_error err = {0};
    void *place = NULL;
    char *path;
    stk_bytes whole = {0};
    start_server(NULL, NULL);
    path = stk_path_join(root, "odd/a b.jpg");
    REQUIRE_OK(stk_file_read_into(path, 1 << 20, &whole, &err), &err);
    REQUIRE_OK(s3_open(&place, "s3://bucket/odd", (s3_opening){0}, NULL, &err), &err);
    for (size_t i = 0; i < COUNT(cases); i++) {
        stk_fetch fetch = {.offset = cases[i].offset, .length = cases[i].length};
        CHECK_INT(s3_fetch(place, &fetch, "a b.jpg"), STK_FETCH_OK);
        CHECK_INT(fetch.bytes.size, cases[i].bytes);
        CHECK(fetch.bytes.size == 0 ||
              memcmp(fetch.bytes.data, whole.data + cases[i].offset, cases[i].bytes) == 0);
        stk_bytes_free(&fetch.bytes);
    }
    stk_storage_s3.close(place);
    object_server_stop(&server);
    stk_bytes_free(&whole);
    stk_mem_free(path);
}

/* Where the parts of an object are was learnt from the one that was listed. */
static void parts_of_a_replaced_object_are_refused(void) {
    static const char *const texts[] = {"other bytes", "fewer", "more bytes than before"};
    stk_error err = {0};
    void *place = NULL;
    char words[300];
    start_server(NULL, NULL);
    put("replaced.tar", "first bytes", 11);
    REQUIRE_OK(s3_open(&place, "s3://bucket", (s3_opening){0}, NULL, &err), &err);
    stk_fetch fetch = {.offset = 8, .length = 2};
    CHECK_INT(s3_fetch(place, &fetch, "replaced.tar"), STK_FETCH_OK);
    for (size_t i = 0; i < COUNT(texts); i++) {
        put("replaced.tar", texts[i], strlen(texts[i]));
        CHECK_INT(s3_fetch(place, &fetch, "replaced.tar"), STK_FETCH_NEVER);
        CHECK_CONTAINS(fetch.result.cause, "it was replaced since");
        CHECK_CONTAINS(fetch.result.cause, "--refresh");
        CHECK_INT(fetch.bytes.size, 0);
    }
    CHECK(stk_storage_s3.notice(place, words, sizeof words));
    stk_bytes_free(&fetch.bytes);
    stk_storage_s3.close(place);
    object_server_stop(&server);
}

/* What comes slowly but steadily gives signs of life, so that the reader waits for it. */
static void slow_objects_give_signs_of_life(void) {
    static char text[200000];
    stk_error err = {0};
    stk_store *store = NULL;
    stk_bytes bytes = {0};
    stk_store_counters counters;
    stk_storage_options options = {.cache = "off", .read_timeout_s = 0.5};
    make_files();
    memset(text, 'x', sizeof text);
    put("slow.jpg", text, sizeof text);
    start_server(NULL, NULL);
    REQUIRE_OK(stk_store_open(&store, "s3://bucket", &options, NULL, &err), &err);
    object_server_set(&server, "rate_kbps=1000"); /* 1.6 s, of which none is silent for long */
    REQUIRE_OK(stk_store_read(store, "slow.jpg", &bytes, &err), &err);
    CHECK_INT(bytes.size, sizeof text);
    stk_store_stats(store, &counters);
    CHECK_INT(counters.timeouts, 0);
    stk_bytes_free(&bytes);
    stk_store_close(store);
    object_server_stop(&server);
}

static void faults_and_their_verdicts(void) {
    static const struct {
        const char *fault;
        int verdict; /* a stk_fetch_verdict */
        int or_verdict;
        const char *words;
    } cases[] = {
        {"corrupt_percent=100", STK_FETCH_DAMAGED, -1, "MD5"},
        {"truncate_percent=100", STK_FETCH_DAMAGED, -1, "length"},
        {"drop_percent=100", STK_FETCH_DAMAGED, STK_FETCH_AGAIN, ""},
        {"fail_percent=100&fail_status=503", STK_FETCH_AGAIN, -1, "503"},
        {"fail_percent=100&fail_status=500", STK_FETCH_AGAIN, -1, "500"},
        {"fail_percent=100&fail_status=429", STK_FETCH_AGAIN, -1, "429"},
        {"refuse=1", STK_FETCH_AGAIN, -1, "no answer"},
        {"missing=top", STK_FETCH_NEVER, -1, "no object top.txt in bucket bucket (404)"},
        {"deny=top", STK_FETCH_NEVER, -1, "with the credentials from the environment"},
        {"deny=top&deny_code=NoSuchBucket", STK_FETCH_LOST, -1, "no bucket bucket"},
        {"deny=top&deny_code=SignatureDoesNotMatch", STK_FETCH_LOST, -1, "secret key"},
        {"deny=top&deny_code=InvalidAccessKeyId", STK_FETCH_LOST, -1, "access key id"},
        {"close_percent=100", STK_FETCH_OK, -1, ""},
    };
    stk_error err = {0};
    void *place = NULL;
    start_server("--require-auth", NULL);
    REQUIRE_OK(s3_open(&place, "s3://bucket", (s3_opening){0}, NULL, &err), &err);
    for (size_t i = 0; i < COUNT(cases); i++) {
        stk_fetch fetch = {0};
        object_server_set(&server, cases[i].fault);
        int verdict = (int)s3_fetch(place, &fetch, "top.txt");
        if (verdict != cases[i].verdict && verdict != cases[i].or_verdict) {
            CHECK_FAIL("%s: verdict %d, %s", cases[i].fault, verdict, fetch.result.cause);
        }
        CHECK(verdict == STK_FETCH_OK || fetch.result.cause[0] != '\0');
        CHECK_CONTAINS(fetch.result.cause, cases[i].words);
        CHECK(strstr(fetch.result.cause, "Hush") == NULL);
        CHECK(verdict == STK_FETCH_OK || fetch.bytes.size == 0);
        object_server_set(&server, "reset=1");
        CHECK_INT(s3_fetch(place, &fetch, "top.txt"), STK_FETCH_OK);
        check_bytes(&fetch, "top.txt");
        stk_bytes_free(&fetch.bytes);
    }
    stk_storage_s3.close(place);
    object_server_stop(&server);
}

/* Attempts that wait for a connection, those that have one, and those that have ended. */
static void cancelled_attempts_end(void) {
    enum { MANY = 40 };
    stk_error err = {0};
    void *place = NULL;
    stk_fetch fetches[MANY] = {0};
    struct rlimit files;
    start_server(NULL, NULL);
    getrlimit(RLIMIT_NOFILE, &files);
    struct rlimit few = {.rlim_cur = 96, .rlim_max = files.rlim_max}; /* 24 connections */
    setrlimit(RLIMIT_NOFILE, &few);
    REQUIRE_OK(s3_open(&place, "s3://bucket", (s3_opening){0}, NULL, &err), &err);
    setrlimit(RLIMIT_NOFILE, &files);
    object_server_set(&server, "hang_percent=100");
    for (int i = 0; i < MANY; i++) {
        s3_begin(place, &fetches[i], "top.txt");
    }
    int started = 0;
    while (started < 24) { /* so many may, and all others wait */
        usleep(1000);
        started = 0;
        for (int i = 0; i < MANY; i++) {
            started += atomic_load(&fetches[i].started_ns) > 0;
        }
    }
    CHECK_INT(started, 24);
    for (int i = 0; i < MANY; i++) {
        stk_storage_s3.cancel(place, &fetches[i]);
        stk_storage_s3.cancel(place, &fetches[i]);
    }
    s3_wait(MANY);
    for (int i = 0; i < MANY; i++) {
        CHECK_INT(fetches[i].result.verdict, STK_FETCH_CANCELLED);
        stk_storage_s3.cancel(place, &fetches[i]); /* it has ended */
    }
    object_server_set(&server, "reset=1");
    for (int round = 0; round < 20; round++) { /* ends and cancels meet */
        for (int i = 0; i < MANY; i++) {
            s3_begin(place, &fetches[i], "top.txt");
        }
        for (int i = 0; i < MANY; i++) {
            stk_storage_s3.cancel(place, &fetches[i]);
        }
        s3_wait(MANY);
        for (int i = 0; i < MANY; i++) {
            CHECK(fetches[i].result.verdict == STK_FETCH_OK ||
                  fetches[i].result.verdict == STK_FETCH_CANCELLED);
        }
    }
    CHECK_INT(s3_fetch(place, &fetches[0], "top.txt"), STK_FETCH_OK);
    for (int i = 0; i < MANY; i++) {
        stk_bytes_free(&fetches[i].bytes);
    }
    stk_storage_s3.close(place);
    object_server_stop(&server);
}

/* Listing gives up by itself: nobody else looks at the clock while a place is opened. */
static void nobody_listens(void) {
    stk_error err = {0};
    void *place = NULL;
    start_server(NULL, NULL);
    object_server_stop(&server);
    CHECK_INT(s3_open(&place, "s3://bucket", (s3_opening){.timeout_s = 0.3}, NULL, &err),
              STK_ERR_STORAGE);
    CHECK_CONTAINS(err.message, "cannot list s3://bucket: no answer");
}

static void the_listing_is_kept(void) {
    stk_error err = {0};
    void *place = NULL;
    s3_told told;
    char kept[300];
    start_server(NULL, NULL);
    snprintf(kept, sizeof kept, "%s/lists", check_folder());
    REQUIRE_OK(s3_open(&place, "s3://bucket/train", (s3_opening){.kept = kept}, &told, &err), &err);
    CHECK_INT(told.decision_count, 0);
    stk_storage_s3.close(place);
    object_server_set(&server, "clear_stats=1");
    REQUIRE_OK(s3_open(&place, "s3://bucket/train/", (s3_opening){.kept = kept}, &told, &err),
               &err);
    CHECK_INT(object_server_count(&server, "lists"), 0);
    CHECK_INT(stk_storage_s3.tree(place)->count, PICTURES + 1);
    REQUIRE(told.decision_count == 1);
    CHECK_CONTAINS(told.decisions[0], "listing of s3://bucket/train from 20");
    CHECK_CONTAINS(told.decisions[0], "61 objects: --refresh lists again");
    stk_fetch fetch = {0};
    CHECK_INT(s3_fetch(place, &fetch, "c1/deep/1/001.jpg"), STK_FETCH_OK);
    stk_bytes_free(&fetch.bytes);
    stk_storage_s3.close(place);
    put_picture("train/c0/new.jpg");
    s3_opening again = {.kept = kept, .refresh = true};
    REQUIRE_OK(s3_open(&place, "s3://bucket/train", again, &told, &err), &err);
    CHECK_INT(stk_storage_s3.tree(place)->count, PICTURES + 2);
    stk_storage_s3.close(place);
    again.refresh = false;
    REQUIRE_OK(s3_open(&place, "s3://bucket/train", again, &told, &err), &err);
    CHECK_INT(stk_storage_s3.tree(place)->count, PICTURES + 2);
    stk_storage_s3.close(place);
    char *path = stk_path_join(root, "train/c0/new.jpg");
    CHECK_INT(unlink(path), 0);
    stk_mem_free(path);
    object_server_stop(&server);
}

static void a_damaged_listing_is_made_again(void) {
    stk_error err = {0};
    void *place = NULL;
    s3_told told;
    stk_dir_list list;
    const char *kept = check_folder();
    start_server(NULL, NULL);
    REQUIRE_OK(s3_open(&place, "s3://bucket/train", (s3_opening){.kept = kept}, NULL, &err), &err);
    stk_storage_s3.close(place);
    REQUIRE_OK(stk_dir_read(kept, &list, &err), &err);
    REQUIRE(list.count == 1);
    char *path = stk_path_join(kept, list.entries[0].name);
    REQUIRE(truncate(path, 500) == 0);
    REQUIRE_OK(s3_open(&place, "s3://bucket/train", (s3_opening){.kept = kept}, &told, &err), &err);
    CHECK_INT(told.decision_count, 0);
    CHECK_INT(stk_storage_s3.tree(place)->count, PICTURES + 1);
    stk_storage_s3.close(place);
    REQUIRE_OK(s3_open(&place, "s3://bucket/train", (s3_opening){.kept = kept}, &told, &err), &err);
    CHECK_INT(told.decision_count, 1); /* it was written again */
    stk_storage_s3.close(place);
    s3_opening nowhere = {.kept = "/proc/nowhere"};
    REQUIRE_OK(s3_open(&place, "s3://bucket/train", nowhere, &told, &err), &err);
    CHECK_INT(told.warning_count, 1);
    CHECK_CONTAINS(told.warnings[0], "/proc/nowhere");
    stk_storage_s3.close(place);
    stk_mem_free(path);
    stk_dir_list_free(&list);
    object_server_stop(&server);
}

static void changed_objects_are_noticed(void) {
    stk_error err = {0};
    void *place = NULL;
    stk_fetch fetch = {0};
    char words[300];
    start_server(NULL, NULL);
    put("changing.txt", "first", 5);
    put("other.txt", "first", 5);
    REQUIRE_OK(s3_open(&place, "s3://bucket", (s3_opening){0}, NULL, &err), &err);
    CHECK(!stk_storage_s3.notice(place, words, sizeof words));
    put("changing.txt", "second one", 10);
    for (int i = 0; i < 3; i++) { /* one object, however often */
        CHECK_INT(s3_fetch(place, &fetch, "changing.txt"), STK_FETCH_OK);
        CHECK_INT(fetch.bytes.size, 10);
    }
    CHECK_INT(s3_fetch(place, &fetch, "other.txt"), STK_FETCH_OK);
    CHECK(stk_storage_s3.notice(place, words, sizeof words));
    CHECK_CONTAINS(words,
                   "1 object of s3://bucket has changed since the bucket was listed; --refresh");
    CHECK(!stk_storage_s3.notice(place, words, sizeof words));
    put("other.txt", "third", 5);
    CHECK_INT(s3_fetch(place, &fetch, "other.txt"), STK_FETCH_OK);
    CHECK(stk_storage_s3.notice(place, words, sizeof words));
    CHECK_CONTAINS(words, "2 objects of s3://bucket have changed");
    stk_bytes_free(&fetch.bytes);
    stk_storage_s3.close(place);
    object_server_stop(&server);
}

static void nothing_there_is_explained(void) {
    static const struct {
        const char *root;
        stk_status status;
        const char *words;
    } cases[] = {
        {"s3://bucket/trian", STK_ERR_DATA, "did you mean s3://bucket/train?"},
        {"s3://bucket/train/C1", STK_ERR_DATA, "did you mean s3://bucket/train/c1?"},
        {"s3://bucket/trian/c1/x", STK_ERR_DATA, "did you mean s3://bucket/train?"},
        {"s3://bucket/nothing-like-it", STK_ERR_DATA, "s3://bucket/ has the folders odd"},
        {"s3://hollow", STK_ERR_DATA, "bucket hollow is there, but has none"},
        {"s3://hollow/x", STK_ERR_DATA, "has none with this prefix"},
        {"s3://nobody", STK_ERR_DATA, "no bucket nobody"},
        {"s3://", STK_ERR_USAGE, "s3://bucket/prefix"},
        {"s3:///x", STK_ERR_USAGE, "s3://bucket/prefix"},
        {"s3://me:secret@bucket/x", STK_ERR_USAGE, "cannot open s3://***: an address names a"},
        {"s3://me:sec/ret", STK_ERR_USAGE, "cannot open s3://***: an address names a"},
        {"s3://bu cket/x", STK_ERR_USAGE, "s3://bucket/prefix"},
    };
    char hollow[300];
    make_files();
    snprintf(hollow, sizeof hollow, "hollow=%s", check_folder());
    start_server("--bucket", hollow);
    for (size_t i = 0; i < COUNT(cases); i++) {
        stk_error err = {0};
        void *place = NULL;
        CHECK_INT(s3_open(&place, cases[i].root, (s3_opening){0}, NULL, &err), cases[i].status);
        CHECK_CONTAINS(err.message, cases[i].words);
    }
    object_server_stop(&server);
}

/* Folders that looked large at first and are too many to be asked for one by one. */
static void very_many_folders(void) {
    enum { FOLDERS = 4200 };
    stk_error err = {0};
    void *place = NULL;
    char wide[300];
    char path[400];
    snprintf(wide, sizeof wide, "%s", check_folder());
    for (int i = 0; i < FOLDERS + 100; i++) {
        snprintf(path, sizeof path, "%s/f%05d", wide, i < 100 ? 0 : i);
        REQUIRE(mkdir(path, 0777) == 0 || i < 100);
        snprintf(path, sizeof path, "%s/f%05d/%d", wide, i < 100 ? 0 : i, i);
        FILE *file = fopen(path, "w"); /* stk_file_write would wait for the disk each time */
        REQUIRE(file != NULL);
        fclose(file);
    }
    const char *const arguments[] = {"--root", wide, "--page", "100", NULL};
    object_server_start(&server, arguments);
    s3_environment(server.port);
    REQUIRE_OK(s3_open(&place, "s3://bucket", (s3_opening){0}, NULL, &err), &err);
    CHECK_INT(stk_storage_s3.tree(place)->count, FOLDERS + 100);
    CHECK(object_server_count(&server, "lists") < 200);
    stk_storage_s3.close(place);
    object_server_stop(&server);
}

/* A store that gives the same page for ever must not be listed for ever. */
static void a_listing_that_goes_round_is_refused(void) {
    static const small_rule rules[] = {
        {"GET /bucket?", 200,
         "<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>again"
         "</NextContinuationToken><Contents><Key>a/b</Key><Size>1</Size></Contents>"
         "</ListBucketResult>",
         0},
        {0}};
    static small_server round;
    stk_error err = {0};
    void *place = NULL;
    small_server_start(&round, rules);
    s3_environment(round.port);
    CHECK_INT(s3_open(&place, "s3://bucket", (s3_opening){0}, NULL, &err), STK_ERR_STORAGE);
    CHECK_CONTAINS(err.message, "a page that is to be followed by itself");
    small_server_stop(&round);
}

static void listing_gets_through_faults(void) {
    stk_error err = {0};
    void *place = NULL;
    start_server(NULL, NULL);
    object_server_set(&server, "fail_percent=20&fail_status=503&drop_percent=10&close_percent=10");
    REQUIRE_OK(s3_open(&place, "s3://bucket", (s3_opening){0}, NULL, &err), &err);
    CHECK(stk_storage_s3.tree(place)->count >= COUNT(odd_keys) + PICTURES + 2);
    CHECK(object_server_count(&server, "faults") > 0);
    stk_storage_s3.close(place);
    object_server_set(&server, "reset=1&hang_percent=100");
    CHECK_INT(s3_open(&place, "s3://bucket", (s3_opening){.timeout_s = 0.2}, NULL, &err),
              STK_ERR_STORAGE);
    CHECK_CONTAINS(err.message, "timed out");
    object_server_stop(&server);
}

/* Who asks to stop while the list is waited for need not wait for its end. */
static void listing_can_be_stopped(void) {
    stk_error err = {0};
    stk_store *store = NULL;
    stk_stop stop = {0};
    stk_storage_options options = {.cache = "off", .read_timeout_s = 20, .stop = &stop};
    start_server(NULL, NULL);
    object_server_set(&server, "delay_ms=1500"); /* several pages */
    stk_stop_request(&stop, STK_STOP_SOON, 0);
    CHECK_INT(stk_store_open(&store, "s3://bucket", &options, NULL, &err), STK_ERR_STOPPED);
    CHECK_CONTAINS(err.message, "stopped while s3://bucket was listed");
    object_server_set(&server, "reset=1"); /* what takes a moment only goes on */
    stk_error_clear(&err);
    REQUIRE_OK(stk_store_open(&store, "s3://bucket", &options, NULL, &err), &err);
    stk_store_close(store);
    object_server_stop(&server);
}

static void staging_stops_while_it_lists(void) {
    stk_error err = {0};
    stk_stop stop = {0};
    stk_run run = {.size = sizeof run, .stop = &stop};
    stk_options *options = NULL;
    REQUIRE_OK(stk_options_for_stage(&options, &err), &err);
    REQUIRE_OK(stk_options_set(options, "data", "s3://bucket", &err), &err);
    start_server(NULL, NULL);
    object_server_set(&server, "delay_ms=1500"); /* several pages */
    stk_stop_request(&stop, STK_STOP_SOON, 0);
    CHECK_INT(stk_stage(check_folder(), options, &run, NULL, &err), STK_ERR_STOPPED);
    CHECK_CONTAINS(err.message, "stopped while s3://bucket was listed");
    object_server_stop(&server);
    stk_options_free(options);
}

/* Credentials that are about to expire are found again beside the requests. */
static void credentials_are_renewed(void) {
    stk_error err = {0};
    void *place = NULL;
    stk_fetch fetch = {0};
    char url[128];
    make_files();
    const char *const arguments[] = {"--root",
                                     root,
                                     "--metadata",
                                     "--access-key",
                                     "AKIAFROMSERVER",
                                     "--secret-key",
                                     "xHush",
                                     "--session-token",
                                     "tHush",
                                     "--expires-s",
                                     "200",
                                     "--require-auth",
                                     NULL};
    object_server_start(&server, arguments);
    s3_environment(server.port);
    unsetenv("AWS_ACCESS_KEY_ID");
    unsetenv("AWS_SECRET_ACCESS_KEY");
    snprintf(url, sizeof url, "%s/container-credentials", server.url);
    setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", url, 1);
    REQUIRE_OK(s3_open(&place, "s3://bucket/odd", (s3_opening){0}, NULL, &err), &err);
    CHECK_INT(s3_fetch(place, &fetch, "a b.jpg"), STK_FETCH_OK);
    while (object_server_count(&server, "credentials") < 2) {
        usleep(5000);
    }
    /* When they have expired all the same they are found again once; then the place is lost. */
    object_server_set(&server, "deny=odd&deny_code=ExpiredToken");
    stk_fetch_verdict verdict = STK_FETCH_AGAIN;
    for (int i = 0; i < 1000 && verdict == STK_FETCH_AGAIN; i++) {
        verdict = s3_fetch(place, &fetch, "a b.jpg");
        usleep(5000);
    }
    CHECK_INT(verdict, STK_FETCH_LOST);
    CHECK_CONTAINS(fetch.result.cause, "they have expired");
    CHECK(strstr(fetch.result.cause, "Hush") == NULL);
    stk_bytes_free(&fetch.bytes);
    stk_storage_s3.close(place);
    object_server_stop(&server);
}

static const check_test tests[] = {
    TEST(all_objects_are_listed_and_read),
    TEST(a_prefix_is_a_folder),
    TEST(parts),
    TEST(parts_of_a_replaced_object_are_refused),
    TEST(slow_objects_give_signs_of_life),
    TEST(faults_and_their_verdicts),
    TEST(cancelled_attempts_end),
    TEST(nobody_listens),
    TEST(the_listing_is_kept),
    TEST(a_damaged_listing_is_made_again),
    TEST(changed_objects_are_noticed),
    TEST(nothing_there_is_explained),
    TEST(very_many_folders),
    TEST(a_listing_that_goes_round_is_refused),
    TEST(listing_gets_through_faults),
    TEST(listing_can_be_stopped),
    TEST(staging_stops_while_it_lists),
    TEST(credentials_are_renewed),
};

#else

static void not_built(void) {
    CHECK_SKIP("built without S3");
}

static const check_test tests[] = {TEST(not_built)};

#endif

CHECK_MAIN(tests)
