/* test_storage_cache.c - the cache of one process: what it keeps, what damages it, what ends it. */
#include "cache_objects.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/numbers/checksum.h"
#include "storage/cache/pack.h"

#define HEAD STK_PACK_HEAD_BYTES
#define ENTRY STK_PACK_ENTRY_BYTES
#define INDEX "pack-0000.index"
#define DATA "pack-0000.data"
#define CANNOT_TRY 77

#define PACK_BYTES ((uint64_t)2 << 30) /* where a pack of a small cache ends */

static bool same_key(stk_cache_key a, stk_cache_key b) {
    return a.high == b.high && a.low == b.low;
}

static void keys_tell_parts_apart(void) {
    static const char *const lists[][4] = {
        {NULL},
        {"", NULL},
        {"", "", NULL},
        {"abc", NULL},
        {"ab", "c", NULL},
        {"a", "bc", NULL},
        {"a", "b", "c"},
        {"abc", "", NULL},
        {"", "abc", NULL},
        {"c", "ab", NULL},
        {"abd", NULL},
        {"Abc", NULL},
        {"abc ", NULL},
    };
    const size_t count = sizeof lists / sizeof *lists;
    stk_cache_key keys[sizeof lists / sizeof *lists];
    for (size_t i = 0; i < count; i++) {
        size_t parts = 0;
        while (parts < 4 && lists[i][parts] != NULL) {
            parts++;
        }
        keys[i] = stk_cache_key_make(lists[i], parts);
        CHECK(same_key(keys[i], stk_cache_key_make(lists[i], parts)));
        CHECK(keys[i].high != keys[i].low);
        for (size_t j = 0; j < i; j++) {
            CHECK(keys[i].high != keys[j].high && keys[i].low != keys[j].low);
        }
    }
}

/* Keys lie on disks: were they to change, a cache would be lost without anybody noticing. */
static void keys_never_change(void) {
    stk_cache_key key = stk_cache_key_make((const char *const[]){"s3://b/p", "a/1.jpg", "v1"}, 3);
    CHECK(key.high == 0x62099E4270A2C5DBull);
    CHECK(key.low == 0x0C24EAF6607AEBFCull);
}

static void check_puts_and_reads(const char *folder) {
    stk_cache *cache = open_cache(folder, MANY_BYTES);
    stk_bytes bytes = {0};
    REQUIRE(cache != NULL);
    CHECK(!stk_cache_has(cache, key_of(1)));
    CHECK(!read_object(cache, 1, &bytes));
    put_objects(cache, 0, 40);
    put_objects(cache, 10, 50); /* some again, which changes nothing */
    CHECK_INT(count_objects(cache, 0, 50), 50);
    CHECK(stk_cache_has(cache, key_of(0)) && stk_cache_has(cache, key_of(49)));
    CHECK(!stk_cache_has(cache, key_of(50)));
    stk_cache_counters counters = stats_of(cache);
    CHECK_INT(counters.entries, 50);
    CHECK_INT(counters.written, 50);
    CHECK_INT(counters.hits, 50);
    CHECK_INT(counters.misses, 3);
    CHECK_INT(counters.damaged + counters.dropped, 0);
    CHECK(counters.most_bytes == MANY_BYTES && !counters.full && !counters.failed);
    char text[8];
    CHECK(!stk_cache_take_notice(cache, text, sizeof text));
    if (folder != NULL) {
        CHECK_INT(counters.bytes, folder_bytes(folder));
    }
    stk_cache_close(cache);
    stk_bytes_free(&bytes);
}

static void puts_and_reads(void) {
    check_puts_and_reads(in(new_folder(), "new/folder/"));
    check_puts_and_reads(NULL);
    stk_cache_close(NULL);
}

static void is_kept_for_its_owner(void) {
    const char *folder = in(new_folder(), "a/cache");
    struct stat info;
    stk_cache *cache = open_cache(folder, MANY_BYTES);
    REQUIRE(cache != NULL);
    put_objects(cache, 0, 30);
    stk_cache_close(cache);
    CHECK(stat(folder, &info) == 0 && (info.st_mode & 0777) == 0700);
    CHECK(stat(in(folder, INDEX), &info) == 0 && (info.st_mode & 0777) == 0600);
    CHECK(stat(in(folder, DATA), &info) == 0 && (info.st_mode & 0777) == 0600);
    CHECK_INT(file_size(in(folder, INDEX)), HEAD + 30 * ENTRY);
    /* The next run goes on in the same pack. */
    cache = open_cache(folder, MANY_BYTES);
    REQUIRE(cache != NULL);
    CHECK_INT(stats_of(cache).bytes, folder_bytes(folder));
    CHECK_INT(count_objects(cache, 0, 60), 30);
    put_objects(cache, 0, 60);
    CHECK_INT(stats_of(cache).written, 30);
    stk_cache_close(cache);
    CHECK_INT(file_size(in(folder, INDEX)), HEAD + 60 * ENTRY);
    CHECK(!stk_path_is_file(in(folder, "pack-0001.index")));
    cache = open_cache(folder, MANY_BYTES);
    REQUIRE(cache != NULL);
    CHECK_INT(count_objects(cache, 0, 60), 60);
    stk_cache_close(cache);
}

/* The data is made longer by nothing, which file systems do not store. */
static void a_long_pack_is_followed_by_the_next(void) {
    const char *folder = new_folder();
    for (int run = 0; run < 2; run++) {
        stk_cache *cache = open_cache(folder, 4 * PACK_BYTES);
        REQUIRE(cache != NULL);
        put_objects(cache, (uint64_t)run * 30, 30 + (uint64_t)run * 30);
        put_objects(cache, (uint64_t)run * 60, 30 + (uint64_t)run * 70);
        CHECK_INT(stats_of(cache).bytes, folder_bytes(folder));
        stk_cache_close(cache);
        if (run == 0) {
            REQUIRE(truncate(in(folder, DATA), (off_t)(PACK_BYTES - 1)) == 0);
        }
    }
    /* What is written at once was begun in the first pack, the rest went into the second. */
    uint64_t entries = file_size(in(folder, INDEX)) / ENTRY - 1;
    CHECK(entries > 30 && entries <= 60);
    CHECK_INT(file_size(in(folder, "pack-0001.index")), HEAD + (100 - entries) * ENTRY);
    CHECK(file_size(in(folder, DATA)) > PACK_BYTES);
    stk_cache *cache = open_cache(folder, 4 * PACK_BYTES);
    REQUIRE(cache != NULL);
    CHECK_INT(count_objects(cache, 0, 100), 100);
    put_objects(cache, 100, 110);
    stk_cache_close(cache);
    CHECK(!stk_path_is_file(in(folder, "pack-0002.index")));
    CHECK_INT(file_size(in(folder, INDEX)) / ENTRY - 1, entries);
}

/* Closing writes what waits; nobody has to flush. */
static void closing_writes_what_waits(void) {
    const char *folder = new_folder();
    stk_cache *cache = open_cache(folder, MANY_BYTES);
    REQUIRE(cache != NULL);
    for (uint64_t i = 0; i < 300; i++) {
        put_object(cache, i);
    }
    stk_cache_close(cache);
    cache = open_cache(folder, MANY_BYTES);
    REQUIRE(cache != NULL);
    CHECK_INT(count_objects(cache, 0, 300), 300);
    stk_cache_close(cache);
}

/* What does not fit into the queue is not cached this time, and the next time it is. */
static void the_queue_has_a_limit(void) {
    stk_cache *cache = NULL;
    stk_error err = {0};
    stk_cache_config config = {
        .folder = new_folder(), .most_bytes = MANY_BYTES, .queue_bytes = 30000};
    REQUIRE_OK(stk_cache_open(&cache, &config, &err), &err);
    char *big = stk_mem_new(30000, 1);
    REQUIRE(big != NULL);
    stk_cache_put(cache, key_of(1000), big, 30000);
    stk_cache_flush(cache);
    CHECK(!stk_cache_has(cache, key_of(1000)));
    CHECK_INT(stats_of(cache).dropped, 1);
    for (uint64_t i = 0; i < 100; i++) {
        put_object(cache, i);
    }
    stk_cache_flush(cache);
    stk_cache_counters counters = stats_of(cache);
    CHECK_INT(counters.dropped + counters.written, 101);
    for (uint64_t i = 0; i < 100; i++) {
        put_objects(cache, i, i + 1);
    }
    CHECK_INT(count_objects(cache, 0, 100), 100);
    stk_cache_close(cache);
    stk_mem_free(big);
}

static void a_damaged_object_is_put_again(void) {
    const char *folder = new_folder();
    stk_bytes bytes = {0};
    stk_cache *cache = open_cache(folder, MANY_BYTES);
    REQUIRE(cache != NULL);
    put_objects(cache, 1, 11);
    /* Object 1 begins behind the head; the last byte belongs to object 10. */
    REQUIRE(spoil(in(folder, DATA), HEAD));
    REQUIRE(spoil(in(folder, DATA), file_size(in(folder, DATA)) - 1));
    CHECK(stk_cache_has(cache, key_of(1)));
    CHECK(!read_object(cache, 1, &bytes));
    CHECK(!stk_cache_has(cache, key_of(1)) && !read_object(cache, 1, &bytes));
    CHECK_INT(stats_of(cache).damaged, 1);
    CHECK_INT(stats_of(cache).entries, 9);
    CHECK_INT(count_objects(cache, 1, 11), 8);
    CHECK_INT(stats_of(cache).damaged, 2);
    put_objects(cache, 1, 11);
    CHECK_INT(count_objects(cache, 1, 11), 10);
    CHECK_INT(stats_of(cache).written, 12);
    stk_cache_close(cache);
    /* Later runs know which copy is the good one, again and again. */
    for (int run = 0; run < 3; run++) {
        cache = open_cache(folder, MANY_BYTES);
        REQUIRE(cache != NULL);
        CHECK_INT(count_objects(cache, 1, 11), 10);
        CHECK_INT(stats_of(cache).damaged, 0);
        CHECK_INT(stats_of(cache).entries, 10);
        put_objects(cache, 1, 11);
        CHECK_INT(stats_of(cache).written, 0);
        stk_cache_close(cache);
    }
    stk_bytes_free(&bytes);
}

#define SMALL 6 /* objects of the folder that is damaged in every way */

/* A folder with some objects, to be copied from. */
static const char *small_folder(void) {
    static char folder[512];
    if (folder[0] == '\0') {
        snprintf(folder, sizeof folder, "%s", check_folder());
        stk_cache *cache = open_cache(folder, MANY_BYTES);
        if (cache != NULL) {
            put_objects(cache, 1, 1 + SMALL);
            stk_cache_close(cache);
        }
    }
    return folder;
}

static bool copy_small(const char *folder) {
    return copy_file(in(small_folder(), INDEX), in(folder, INDEX)) &&
           copy_file(in(small_folder(), DATA), in(folder, DATA));
}

/*
 * Opens a folder that was damaged: `expected` objects can still be read, the others can be put
 * again, and all are there the next time. Removes the packs.
 */
static void check_recovery(const char *folder, int expected) {
    for (int run = 0; run < 2; run++) {
        stk_cache *cache = open_cache(folder, MANY_BYTES);
        REQUIRE(cache != NULL);
        CHECK_INT(count_objects(cache, 1, 1 + SMALL), run == 0 ? expected : SMALL);
        put_objects(cache, 1, 1 + SMALL);
        CHECK_INT(count_objects(cache, 1, 1 + SMALL), SMALL);
        CHECK(!stats_of(cache).failed);
        stk_cache_close(cache);
    }
    for (int i = 0; i < 3; i++) {
        char name[32];
        snprintf(name, sizeof name, "pack-%04d.index", i);
        unlink(in(folder, name));
        snprintf(name, sizeof name, "pack-%04d.data", i);
        unlink(in(folder, name));
    }
    CHECK_INT(folder_bytes(folder), 0);
}

static void a_torn_index_loses_its_end_only(void) {
    const char *folder = new_folder();
    CHECK_SAME_THREADS();
    for (int size = 0; size <= HEAD + SMALL * ENTRY; size++) {
        REQUIRE(copy_small(folder));
        REQUIRE(truncate(in(folder, INDEX), size) == 0);
        check_recovery(folder, size < HEAD ? 0 : (size - HEAD) / ENTRY);
    }
}

static void a_damaged_index_loses_one_entry(void) {
    const char *folder = new_folder();
    CHECK_SAME_THREADS();
    for (int at = 0; at < HEAD + SMALL * ENTRY; at++) {
        REQUIRE(copy_small(folder));
        REQUIRE(spoil(in(folder, INDEX), (uint64_t)at));
        check_recovery(folder, at < HEAD ? 0 : SMALL - 1);
    }
}

static void torn_data_loses_its_end_only(void) {
    const char *folder = new_folder();
    uint64_t whole = file_size(in(small_folder(), DATA));
    CHECK_SAME_THREADS();
    REQUIRE(whole > HEAD + SMALL * 1000);
    for (uint64_t size = 0; size <= whole; size += size < 70 ? 1 : 997) {
        int expected = 0;
        uint64_t end = HEAD;
        for (uint64_t i = 1; i <= SMALL; i++) {
            end += size_of(i);
            expected += end <= size;
        }
        REQUIRE(copy_small(folder));
        REQUIRE(truncate(in(folder, DATA), (off_t)size) == 0);
        check_recovery(folder, expected);
    }
}

static void lost_files_are_only_misses(void) {
    const char *folder = new_folder();
    REQUIRE(copy_small(folder) && unlink(in(folder, DATA)) == 0);
    check_recovery(folder, 0);
    REQUIRE(copy_small(folder) && unlink(in(folder, INDEX)) == 0);
    check_recovery(folder, 0);
    /* An index beside the data of another pack: the ids in their heads differ. */
    REQUIRE(copy_small(folder) && spoil(in(folder, DATA), 16));
    check_recovery(folder, 0);
    /* A link and a pipe are not what the cache makes. */
    REQUIRE(symlink(in(small_folder(), INDEX), in(folder, INDEX)) == 0 &&
            mkfifo(in(folder, "pack-0001.index"), 0600) == 0);
    check_recovery(folder, 0);
}

/* An entry as a hostile or broken writer might leave it: whole, but pointing anywhere. */
static bool append_entry(const char *folder, uint64_t number, uint64_t at, uint32_t length) {
    uint8_t head[HEAD];
    uint8_t entry[ENTRY] = {0};
    uint64_t id = 0;
    uint64_t words[3] = {key_of(number).high, key_of(number).low, at};
    int fd = open(in(folder, INDEX), O_RDWR | O_APPEND | O_CLOEXEC);
    bool ok = fd >= 0 && pread(fd, head, sizeof head, 0) == HEAD;
    for (int i = 0; i < 8; i++) {
        id |= (uint64_t)head[16 + i] << 8 * i;
        for (int w = 0; w < 3; w++) {
            entry[w * 8 + i] = (uint8_t)(words[w] >> 8 * i);
        }
    }
    for (int i = 0; i < 4; i++) {
        entry[24 + i] = (uint8_t)(length >> 8 * i);
    }
    uint64_t sum = stk_checksum_seeded(entry, 56, id);
    for (int i = 0; i < 8; i++) {
        entry[56 + i] = (uint8_t)(sum >> 8 * i);
    }
    ok = ok && write(fd, entry, ENTRY) == ENTRY;
    if (fd >= 0) {
        close(fd);
    }
    return ok;
}

static void entries_are_not_trusted(void) {
    const char *folder = new_folder();
    uint64_t end = file_size(in(small_folder(), DATA));
    const struct {
        uint64_t at;
        uint32_t length;
    } cases[] = {
        {0, 10},
        {HEAD - 1, 1},
        {end, 1},
        {end - 10, 11},
        {HEAD, UINT32_MAX},
        {UINT64_MAX, 1},
        {UINT64_MAX - 5, 10},
        {(uint64_t)1 << 63, 0},
        {end + 1, 0},
        {UINT64_MAX, UINT32_MAX},
    };
    const size_t count = sizeof cases / sizeof *cases;
    REQUIRE(copy_small(folder));
    for (size_t i = 0; i < count; i++) {
        REQUIRE(append_entry(folder, 100 + i, cases[i].at, cases[i].length));
    }
    /* These lie inside the data, but their bytes are not what the entry says. */
    REQUIRE(append_entry(folder, 200, HEAD, 10) && append_entry(folder, 201, end, 0));
    stk_cache *cache = open_cache(folder, MANY_BYTES);
    REQUIRE(cache != NULL);
    CHECK_INT(stats_of(cache).entries, SMALL + 2);
    CHECK_INT(count_objects(cache, 1, 300), SMALL);
    CHECK_INT(stats_of(cache).damaged, 2);
    put_objects(cache, 1, 300);
    CHECK_INT(count_objects(cache, 1, 300), 299);
    stk_cache_close(cache);
    cache = open_cache(folder, MANY_BYTES);
    REQUIRE(cache != NULL);
    CHECK_INT(count_objects(cache, 1, 300), 299);
    stk_cache_close(cache);
}

static void other_versions_are_left_alone(void) {
    const char *folder = new_folder();
    char *before = NULL;
    char *after = NULL;
    size_t size = 0;
    size_t size_after = 0;
    stk_error err = {0};
    REQUIRE(copy_small(folder));
    /* Version 2 of the index, with a right checksum: only the version is unknown. */
    REQUIRE_OK(stk_file_read(in(folder, INDEX), 0, &before, &size, &err), &err);
    before[8] = 2;
    uint64_t sum = stk_checksum(before, 56);
    for (int i = 0; i < 8; i++) {
        before[56 + i] = (char)(sum >> 8 * i);
    }
    REQUIRE_OK(stk_file_write(in(folder, INDEX), before, size, &err), &err);
    REQUIRE_OK(stk_file_write(in(folder, "notes.txt"), "x", 1, &err), &err);
    REQUIRE_OK(stk_file_write(in(folder, "pack-1.index"), "x", 1, &err), &err);
    REQUIRE_OK(stk_file_write(in(folder, "pack-99999.index"), "x", 1, &err), &err);
    stk_cache *cache = open_cache(folder, MANY_BYTES);
    REQUIRE(cache != NULL);
    CHECK_INT(count_objects(cache, 1, 1 + SMALL), 0);
    CHECK_INT(stats_of(cache).bytes, size + file_size(in(folder, DATA)));
    put_objects(cache, 1, 20);
    CHECK_INT(count_objects(cache, 1, 20), 19);
    stk_cache_close(cache);
    CHECK_INT(file_size(in(folder, "pack-0001.index")), HEAD + 19 * ENTRY);
    REQUIRE_OK(stk_file_read(in(folder, INDEX), 0, &after, &size_after, &err), &err);
    CHECK(size == size_after && memcmp(before, after, size) == 0);
    CHECK_INT(file_size(in(folder, DATA)), file_size(in(small_folder(), DATA)));
    stk_mem_free(before);
    stk_mem_free(after);
}

static void check_limit(const char *folder) {
    const uint64_t most = 500000;
    char text[700];
    stk_cache *cache = open_cache(folder, most);
    REQUIRE(cache != NULL);
    /* One that could never fit does not end it. */
    char *big = stk_mem_new(most, 1);
    REQUIRE(big != NULL);
    stk_cache_put(cache, key_of(5000), big, most);
    stk_cache_flush(cache);
    stk_mem_free(big);
    CHECK(!stats_of(cache).full && !stk_cache_has(cache, key_of(5000)));
    put_objects(cache, 0, 200);
    stk_cache_counters counters = stats_of(cache);
    CHECK(counters.full && !counters.failed);
    CHECK(counters.bytes <= most && counters.bytes > most - OBJECT_MOST_BYTES - 200);
    CHECK(stk_cache_take_notice(cache, text, sizeof text));
    CHECK_CONTAINS(text, "is full (500 kB)");
    CHECK_CONTAINS(text, folder != NULL ? folder : "in memory");
    CHECK(!stk_cache_take_notice(cache, text, sizeof text));
    /* What is there stays. */
    int there = count_objects(cache, 0, 200);
    CHECK_INT(there, counters.entries);
    CHECK(there > 30);
    put_objects(cache, 200, 400);
    CHECK_INT(count_objects(cache, 0, 200), there);
    CHECK_INT(count_objects(cache, 200, 400), 0);
    stk_cache_close(cache);
    if (folder != NULL) {
        CHECK(folder_bytes(folder) <= most);
        cache = open_cache(folder, most);
        REQUIRE(cache != NULL);
        CHECK_INT(count_objects(cache, 0, 400), there);
        put_objects(cache, 300, 400);
        CHECK(stats_of(cache).full && folder_bytes(folder) <= most);
        stk_cache_close(cache);
    }
}

static void a_full_cache_keeps_what_it_has(void) {
    check_limit(new_folder());
    check_limit(NULL);
}

static void the_disk_is_left_some_room(void) {
    stk_cache *cache = NULL;
    stk_error err = {0};
    char text[700];
    stk_cache_config config = {
        .folder = new_folder(), .most_bytes = MANY_BYTES, .keep_free_bytes = (uint64_t)1 << 60};
    REQUIRE_OK(stk_cache_open(&cache, &config, &err), &err);
    put_objects(cache, 1, 20);
    CHECK(stats_of(cache).full && !stats_of(cache).failed);
    CHECK_INT(stats_of(cache).written, 0);
    CHECK_INT(folder_bytes(config.folder), 0);
    REQUIRE(stk_cache_take_notice(cache, text, sizeof text));
    CHECK_CONTAINS(text, "stay free");
    stk_cache_close(cache);
}

static void a_folder_that_cannot_be_is_an_error(void) {
    const char *folder = new_folder();
    stk_cache *cache = NULL;
    stk_error err = {0};
    REQUIRE_OK(stk_file_write(in(folder, "file"), "x", 1, &err), &err);
    stk_cache_config config = {.folder = in(folder, "file"), .most_bytes = MANY_BYTES};
    CHECK_INT(stk_cache_open(&cache, &config, &err), STK_ERR_STORAGE);
    CHECK_CONTAINS(err.message, config.folder);
    memset(&err, 0, sizeof err);
    config.folder = in(folder, "file/below");
    CHECK_INT(stk_cache_open(&cache, &config, &err), STK_ERR_STORAGE);
    CHECK_CONTAINS(err.message, "file");
    CHECK(cache == NULL);
}

/* Runs a function in a child, whose limits and rights are its own; -1: it crashed. */
static int in_child(int (*run)(const char *folder), const char *folder) {
    int status = 0;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        int code = run(folder);
        fflush(stdout);
        _exit(code != 0 ? code : check_failures > 0);
    }
    if (child < 0 || waitpid(child, &status, 0) != child) {
        return -1;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* After `before` objects writing must have ended with a notice; all that is there is still right.
 */
static void check_ended(stk_cache *cache, int before, const char *reason) {
    char text[700];
    CHECK(stats_of(cache).failed && !stats_of(cache).full);
    CHECK(stk_cache_take_notice(cache, text, sizeof text));
    CHECK_CONTAINS(text, "cannot write to the cache in");
    CHECK_CONTAINS(text, reason);
    CHECK(!stk_cache_take_notice(cache, text, sizeof text));
    int there = count_objects(cache, 1, 300);
    CHECK(there >= before && there < 299);
    CHECK_INT(there, stats_of(cache).entries);
    CHECK_INT(stats_of(cache).damaged, 0);
    put_objects(cache, 1, 300);
    CHECK_INT(count_objects(cache, 1, 300), there);
    CHECK(!stk_cache_take_notice(cache, text, sizeof text));
}

/* The signal that comes with such a limit must not end the process either. */
static int fill_over_size_limit(const char *folder) {
    struct rlimit limit = {300000, 300000};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) {
        return CANNOT_TRY;
    }
    stk_cache *cache = open_cache(folder, MANY_BYTES);
    if (cache == NULL) {
        return 1;
    }
    put_objects(cache, 1, 300);
    check_ended(cache, 25, "too large");
    stk_cache_close(cache);
    return 0;
}

static void a_failed_write_ends_caching_only(void) {
    const char *folder = new_folder();
    int code = in_child(fill_over_size_limit, folder);
    if (code == CANNOT_TRY) {
        CHECK_SKIP("file sizes cannot be limited here");
    }
    CHECK_INT(code, 0);
    /* The next run, with more room, goes on. */
    stk_cache *cache = open_cache(folder, MANY_BYTES);
    REQUIRE(cache != NULL);
    int there = count_objects(cache, 1, 300);
    CHECK(there >= 25 && there < 299);
    CHECK_INT(stats_of(cache).damaged, 0);
    put_objects(cache, 1, 300);
    CHECK_INT(count_objects(cache, 1, 300), 299);
    stk_cache_close(cache);
}

/* A disk of half a megabyte, where mounting one is allowed; it goes away with the child. */
static int fill_small_disk(const char *folder) {
    if ((unshare(CLONE_NEWNS) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) ||
        mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("none", folder, "tmpfs", 0, "size=512k") != 0) {
        return CANNOT_TRY;
    }
    stk_cache *cache = open_cache(folder, MANY_BYTES);
    if (cache == NULL) {
        return 1;
    }
    put_objects(cache, 1, 300);
    check_ended(cache, 25, "No space left");
    stk_cache_close(cache);
    /* Not even the heads of a pack fit: then there is no pack. */
    static char ballast[600000];
    int fd = open(in(folder, "ballast"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    unlink(in(folder, INDEX));
    unlink(in(folder, DATA));
    CHECK(fd >= 0 && write(fd, ballast, sizeof ballast) > 400000);
    cache = open_cache(folder, MANY_BYTES);
    if (cache == NULL) {
        return 1;
    }
    put_objects(cache, 1, 300);
    check_ended(cache, 0, "No space left");
    stk_cache_close(cache);
    CHECK(!stk_path_is_file(in(folder, INDEX)) && !stk_path_is_file(in(folder, DATA)));
    close(fd);
    return 0;
}

static void a_full_disk_ends_caching_only(void) {
    int code = in_child(fill_small_disk, new_folder());
    if (code == CANNOT_TRY) {
        CHECK_SKIP("no small disk can be mounted here");
    }
    CHECK_INT(code, 0);
}

/* Rights do not stop root, so that it becomes nobody; the folder is then reached from inside. */
static int fill_read_only(const char *folder) {
    if (chdir(folder) != 0 || chmod("pack-0000.index", 0444) != 0 ||
        chmod("pack-0000.data", 0444) != 0 || chmod(".", 0555) != 0 ||
        (geteuid() == 0 && setuid(65534) != 0)) {
        return CANNOT_TRY;
    }
    stk_cache *cache = open_cache(".", MANY_BYTES);
    if (cache == NULL) {
        return 1;
    }
    CHECK_INT(count_objects(cache, 1, 1 + SMALL), SMALL);
    put_objects(cache, 1, 1 + SMALL);
    CHECK(!stats_of(cache).failed);
    put_objects(cache, 1, 300);
    check_ended(cache, SMALL, "denied");
    stk_cache_close(cache);
    return 0;
}

static void a_read_only_folder_is_served(void) {
    const char *folder = new_folder();
    REQUIRE(copy_small(folder));
    int code = in_child(fill_read_only, folder);
    if (code == CANNOT_TRY) {
        CHECK_SKIP("rights cannot be given up here");
    }
    CHECK_INT(code, 0);
}

static void a_removed_folder_ends_caching_only(void) {
    for (int with_pack = 0; with_pack < 2; with_pack++) {
        const char *folder = in(new_folder(), "cache");
        char text[700];
        stk_cache *cache = open_cache(folder, MANY_BYTES / 8);
        REQUIRE(cache != NULL);
        if (with_pack) {
            put_objects(cache, 1, 20);
            REQUIRE(unlink(in(folder, INDEX)) == 0 && unlink(in(folder, DATA)) == 0);
        }
        REQUIRE(rmdir(folder) == 0);
        put_objects(cache, 1, 300);
        CHECK(stats_of(cache).failed);
        REQUIRE(stk_cache_take_notice(cache, text, sizeof text));
        CHECK_CONTAINS(text, "has been removed");
        CHECK_INT(count_objects(cache, 1, 300), with_pack ? 19 : 0);
        stk_cache_close(cache);
    }
}

/* Opens, puts and reads while the request for memory with this number and all later ones fail. */
static bool try_without_memory(const char *folder, int requests) {
    stk_cache *cache = NULL;
    stk_error err = {0};
    stk_cache_config config = {.folder = folder, .most_bytes = MANY_BYTES};
    stk_bytes bytes = {0};
    stk_mem_fail_after(requests);
    stk_status status = stk_cache_open(&cache, &config, &err);
    CHECK(status == STK_OK || status == STK_ERR_MEMORY);
    bool all = status == STK_OK;
    if (status == STK_OK) {
        put_objects(cache, 1, 6);
        for (uint64_t i = 1; i < 6; i++) {
            all = read_object(cache, i, &bytes) && all;
        }
        CHECK(!stats_of(cache).failed);
        CHECK_INT(stats_of(cache).damaged, 0);
        stk_cache_close(cache);
    } else {
        CHECK_CONTAINS(err.message, "emory");
    }
    stk_mem_fail_after(-1);
    stk_bytes_free(&bytes);
    return all;
}

static void lack_of_memory_is_a_miss(void) {
    for (int disk = 0; disk < 2; disk++) {
        bool all = false;
        for (int requests = 0; requests < 100 && !all; requests++) {
            /* Once in a new folder, once in one with entries to load. */
            const char *folder = disk ? in(new_folder(), "sub") : NULL;
            all = try_without_memory(folder, requests);
            if (disk) {
                stk_cache *cache = open_cache(folder, MANY_BYTES);
                REQUIRE(cache != NULL);
                put_objects(cache, 1, 6);
                CHECK_INT(count_objects(cache, 1, 6), 5);
                stk_cache_close(cache);
                all = try_without_memory(folder, requests) && all;
            }
        }
        CHECK(all);
    }
}

static const check_test tests[] = {
    TEST(keys_tell_parts_apart),
    TEST(keys_never_change),
    TEST(puts_and_reads),
    TEST(is_kept_for_its_owner),
    TEST(a_long_pack_is_followed_by_the_next),
    TEST(closing_writes_what_waits),
    TEST(the_queue_has_a_limit),
    TEST(a_damaged_object_is_put_again),
    TEST(a_torn_index_loses_its_end_only),
    TEST(a_damaged_index_loses_one_entry),
    TEST(torn_data_loses_its_end_only),
    TEST(lost_files_are_only_misses),
    TEST(entries_are_not_trusted),
    TEST(other_versions_are_left_alone),
    TEST(a_full_cache_keeps_what_it_has),
    TEST(the_disk_is_left_some_room),
    TEST(a_folder_that_cannot_be_is_an_error),
    TEST(a_failed_write_ends_caching_only),
    TEST(a_full_disk_ends_caching_only),
    TEST(a_read_only_folder_is_served),
    TEST(a_removed_folder_ends_caching_only),
    TEST(lack_of_memory_is_a_miss),
};

CHECK_MAIN(tests)
