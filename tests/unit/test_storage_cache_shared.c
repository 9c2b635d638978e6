/* test_storage_cache_shared.c - one cache for many threads and processes, some of which are killed.
 */
#include "cache_objects.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clock.h"
#include "base/numbers/checksum.h"
#include "storage/cache/pack.h"

#define KILL_OBJECTS 100000 /* more than can be written in the time */

static void sleep_ms(int64_t ms) {
    struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&time, NULL);
}

/* Waits until an object can be read that another cache has added: it looks about once a second. */
static bool wait_for(stk_cache *cache, uint64_t number) {
    for (int i = 0; i < 600; i++) {
        if (stk_cache_has(cache, key_of(number))) {
            return true;
        }
        sleep_ms(50);
    }
    return false;
}

static void two_caches_see_each_other(void) {
    const char *folder = new_folder();
    stk_cache *a = open_cache(folder, MANY_BYTES);
    stk_cache *b = open_cache(folder, MANY_BYTES);
    REQUIRE(a != NULL && b != NULL);
    /* The first pack is a's, the second b's, and both are needed. */
    put_objects(a, 1, 50);
    put_objects(b, 50, 100);
    CHECK(stk_path_is_file(in(folder, "pack-0001.data")));
    CHECK(wait_for(a, 99) && wait_for(b, 49));
    CHECK_INT(count_objects(a, 1, 100), 99);
    CHECK_INT(count_objects(b, 1, 100), 99);
    CHECK_INT(stats_of(a).bytes, folder_bytes(folder));
    /* What the other has is not written again. */
    uint64_t before = folder_bytes(folder);
    put_objects(a, 1, 100);
    put_objects(b, 1, 100);
    CHECK_INT(folder_bytes(folder), before);
    /* A pack whose writer has gone is taken over. */
    stk_cache_close(a);
    stk_cache *c = open_cache(folder, MANY_BYTES);
    REQUIRE(c != NULL);
    put_objects(c, 100, 120);
    put_objects(b, 120, 140);
    CHECK(!stk_path_is_file(in(folder, "pack-0002.data")));
    CHECK(wait_for(b, 119) && wait_for(c, 139));
    CHECK_INT(count_objects(b, 1, 140), 139);
    CHECK_INT(count_objects(c, 1, 140), 139);
    stk_cache_close(b);
    stk_cache_close(c);
}

/* A copy that one cache finds damaged and writes anew reaches the other one. */
static void repairs_are_shared(void) {
    const char *folder = new_folder();
    stk_bytes bytes = {0};
    stk_cache *a = open_cache(folder, MANY_BYTES);
    REQUIRE(a != NULL);
    put_objects(a, 1, 3);
    stk_cache *b = open_cache(folder, MANY_BYTES);
    REQUIRE(b != NULL);
    REQUIRE(spoil(in(folder, "pack-0000.data"), STK_PACK_HEAD_BYTES));
    CHECK(!read_object(a, 1, &bytes));
    put_objects(b, 3, 4); /* so that b has a pack of its own */
    CHECK(!read_object(b, 1, &bytes));
    put_objects(b, 1, 2);
    CHECK(read_object(b, 1, &bytes));
    CHECK(wait_for(a, 1));
    CHECK(read_object(a, 1, &bytes));
    stk_cache_close(a);
    stk_cache_close(b);
    a = open_cache(folder, MANY_BYTES);
    REQUIRE(a != NULL);
    CHECK_INT(count_objects(a, 1, 4), 3);
    CHECK_INT(stats_of(a).damaged, 0);
    stk_cache_close(a);
    stk_bytes_free(&bytes);
}

/* An entry at the end that is not whole yet is looked at again, once another process finished it.
 */
static void entries_may_be_half_written(void) {
    const char *folder = new_folder();
    stk_cache *cache = open_cache(folder, MANY_BYTES);
    REQUIRE(cache != NULL);
    put_objects(cache, 1, 4);
    stk_cache_close(cache);
    const char *index = in(folder, "pack-0000.index");
    uint64_t at = file_size(index) - 10;
    REQUIRE(spoil(index, at));
    cache = open_cache(folder, MANY_BYTES);
    REQUIRE(cache != NULL);
    CHECK_INT(count_objects(cache, 1, 4), 2);
    REQUIRE(spoil(index, at)); /* the same change again undoes it */
    CHECK(wait_for(cache, 3));
    CHECK_INT(count_objects(cache, 1, 4), 3);
    stk_cache_close(cache);
}

typedef struct fill {
    const char *folder;
    uint64_t most_bytes;
    uint64_t from, to; /* objects */
    bool backwards;
    int told_fd; /* gets a byte once something is written; -1: nobody waits for that */
} fill;

/* In a child: puts all objects, then checks them. */
static int run_fill(const fill *f) {
    stk_cache *cache = open_cache(f->folder, f->most_bytes);
    if (cache == NULL) {
        return 1;
    }
    for (uint64_t i = f->from; i < f->to; i++) {
        uint64_t number = f->backwards ? f->from + f->to - 1 - i : i;
        if (!stk_cache_has(cache, key_of(number))) {
            put_object(cache, number);
        }
        if ((i - f->from) % 50 == 0) {
            stk_cache_flush(cache);
        }
        if (i == f->from && f->told_fd >= 0 && write(f->told_fd, "x", 1) != 1) {
            return 1;
        }
    }
    stk_cache_flush(cache);
    int there = count_objects(cache, f->from, f->to);
    if (stats_of(cache).failed || stats_of(cache).damaged > 0 ||
        (!stats_of(cache).full && there != (int)(f->to - f->from))) {
        CHECK_FAIL("%d objects are there", there);
    }
    stk_cache_close(cache);
    return check_failures > 0;
}

static pid_t start_fill(const fill *f) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        int code = run_fill(f);
        fflush(stdout);
        _exit(code);
    }
    return child;
}

static int exit_code(pid_t child) {
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status)) {
        return -1;
    }
    return WEXITSTATUS(status);
}

static void processes_fill_together(void) {
    const char *folder = new_folder();
    pid_t children[3];
    /* Two of them want the same objects, from both ends, the third one others. */
    for (int i = 0; i < 3; i++) {
        fill f = {folder, MANY_BYTES, i < 2 ? 0 : 800, i < 2 ? 1000 : 1500, i == 1, -1};
        children[i] = start_fill(&f);
    }
    for (int i = 0; i < 3; i++) {
        CHECK_INT(exit_code(children[i]), 0);
    }
    stk_cache *cache = open_cache(folder, MANY_BYTES);
    REQUIRE(cache != NULL);
    CHECK_INT(stats_of(cache).entries, 1500);
    CHECK_INT(count_objects(cache, 0, 1500), 1500);
    CHECK_INT(stats_of(cache).damaged, 0);
    stk_cache_close(cache);
}

static void processes_share_one_limit(void) {
    const char *folder = new_folder();
    const uint64_t most = 3000000;
    pid_t children[2];
    for (int i = 0; i < 2; i++) {
        fill f = {folder, most, (uint64_t)i * 1000, (uint64_t)i * 1000 + 1000, false, -1};
        children[i] = start_fill(&f);
    }
    CHECK_INT(exit_code(children[0]), 0);
    CHECK_INT(exit_code(children[1]), 0);
    /* Each may have had one batch on its way while the other one looked. */
    uint64_t used = folder_bytes(folder);
    CHECK(used > most - 2 * OBJECT_MOST_BYTES && used < most + 64 * OBJECT_MOST_BYTES);
    stk_cache *cache = open_cache(folder, most);
    REQUIRE(cache != NULL);
    CHECK(count_objects(cache, 0, 2000) > 250);
    CHECK_INT(stats_of(cache).damaged, 0);
    stk_cache_close(cache);
}

/* Whatever moment a writer is killed at, what can be read later is right, and filling goes on. */
static void kills_cost_nothing_but_misses(void) {
    const char *folder = new_folder();
    stk_rng rng = stk_rng_make((uint64_t)stk_clock_ns(), STK_RNG_TEST, 0, 0);
    uint64_t entries = 0;
    int kills = check_is_quick() ? 8 : 20; /* of each kind two at least */
    int told[2];
    REQUIRE(pipe(told) == 0);
    for (int round = 0; round < kills; round++) {
        pid_t children[2] = {-1, -1};
        int writers = 1 + round % 2;
        bool waits = round % 4 < 2; /* until one has begun to write; else they may still open */
        for (int i = 0; i < writers; i++) {
            fill f = {folder, MANY_BYTES, 0, KILL_OBJECTS, i == 1, waits ? told[1] : -1};
            children[i] = start_fill(&f);
            REQUIRE(children[i] > 0);
        }
        char byte;
        REQUIRE(!waits || read(told[0], &byte, 1) == 1);
        sleep_ms((int64_t)stk_rng_below(&rng, 16));
        for (int i = 0; i < writers; i++) {
            kill(children[i], SIGKILL);
            REQUIRE(waitpid(children[i], NULL, 0) == children[i]);
        }
        stk_cache *cache = open_cache(folder, MANY_BYTES);
        REQUIRE(cache != NULL);
        CHECK(stats_of(cache).entries >= entries);
        entries = stats_of(cache).entries;
        uint64_t there = (uint64_t)count_objects(cache, 0, KILL_OBJECTS);
        CHECK_INT(there, entries);
        CHECK_INT(stats_of(cache).damaged, 0);
        stk_cache_close(cache);
    }
    close(told[0]);
    close(told[1]);
    printf("  %llu objects after %d kills\n", (unsigned long long)entries, kills);
    CHECK(entries > 0);
    stk_cache *cache = open_cache(folder, MANY_BYTES);
    REQUIRE(cache != NULL);
    put_objects(cache, KILL_OBJECTS, KILL_OBJECTS + 100);
    CHECK_INT(count_objects(cache, KILL_OBJECTS, KILL_OBJECTS + 100), 100);
    stk_cache_close(cache);
    cache = open_cache(folder, MANY_BYTES);
    REQUIRE(cache != NULL);
    CHECK_INT(count_objects(cache, 0, KILL_OBJECTS + 100), entries + 100);
    stk_cache_close(cache);
}

#define READERS 5
#define SHARED_OBJECTS 400

static stk_cache *shared;
static atomic_bool filled;
static atomic_int wrong;

static void *read_all(void *argument) {
    stk_rng rng = stk_rng_make(5, STK_RNG_TEST, 0, (uint64_t)(uintptr_t)argument);
    stk_bytes bytes = {0};
    int there = 0;
    bool last = false;
    while (there < SHARED_OBJECTS && !last) {
        last = atomic_load(&filled);
        there = 0;
        for (uint64_t i = 0; i < SHARED_OBJECTS; i++) {
            uint64_t number = last ? i : stk_rng_below(&rng, SHARED_OBJECTS);
            bool read = stk_cache_read(shared, key_of(number), &bytes);
            there += read;
            if (read && (bytes.size != size_of(number) ||
                         memcmp(bytes.data, bytes_of(number), bytes.size) != 0)) {
                atomic_fetch_add(&wrong, 1);
            }
        }
    }
    if (last && there < SHARED_OBJECTS) {
        atomic_fetch_add(&wrong, 1);
    }
    stk_bytes_free(&bytes);
    return NULL;
}

/* Two threads put the same objects; one damages some, which are then put again. */
static void *put_all(void *argument) {
    for (uint64_t i = 0; i < SHARED_OBJECTS; i++) {
        put_object(shared, i);
        if (i % 64 == 0 && argument != NULL) {
            char text[64];
            stk_cache_flush(shared);
            (void)spoil(in(argument, "pack-0000.data"), STK_PACK_HEAD_BYTES + i * 1000);
            (void)stk_cache_take_notice(shared, text, sizeof text);
            (void)stats_of(shared);
        }
    }
    return NULL;
}

static void check_threads(const char *folder) {
    pthread_t readers[READERS];
    pthread_t putters[2];
    atomic_store(&filled, false);
    atomic_store(&wrong, 0);
    shared = open_cache(folder, MANY_BYTES);
    REQUIRE(shared != NULL);
    for (uintptr_t i = 0; i < READERS; i++) {
        REQUIRE(pthread_create(&readers[i], NULL, read_all, (void *)(i + 1)) == 0);
    }
    char *spoiled = folder != NULL ? stk_mem_strdup(folder) : NULL;
    REQUIRE(pthread_create(&putters[0], NULL, put_all, NULL) == 0);
    REQUIRE(pthread_create(&putters[1], NULL, put_all, spoiled) == 0);
    pthread_join(putters[0], NULL);
    pthread_join(putters[1], NULL);
    /* Until every damaged object was found and put again. */
    int there = 0;
    for (int i = 0; i < 20 && there < SHARED_OBJECTS; i++) {
        there = count_objects(shared, 0, SHARED_OBJECTS);
        put_objects(shared, 0, SHARED_OBJECTS);
    }
    CHECK_INT(there, SHARED_OBJECTS);
    atomic_store(&filled, true);
    for (int i = 0; i < READERS; i++) {
        pthread_join(readers[i], NULL);
    }
    CHECK_INT(atomic_load(&wrong), 0);
    stk_cache_close(shared);
    stk_mem_free(spoiled);
}

static void threads_read_while_others_put(void) {
    check_threads(new_folder());
    check_threads(NULL);
}

#define LARGE_BYTES ((size_t)30 << 20)

static void *read_large(void *argument) {
    stk_bytes bytes = {0};
    bool read = stk_cache_read(argument, key_of(1), &bytes);
    if (!read || bytes.size != LARGE_BYTES || bytes.data[LARGE_BYTES - 1] != 7) {
        atomic_fetch_add(&wrong, 1);
    }
    stk_bytes_free(&bytes);
    return NULL;
}

/* A disk that hangs is not to be had for a test; a large object takes long enough. */
static void closing_does_not_disturb_a_read(void) {
    const char *folder = new_folder();
    pthread_t reader;
    uint8_t *large = stk_mem_new(LARGE_BYTES, 1);
    stk_cache *cache = open_cache(folder, MANY_BYTES);
    REQUIRE(large != NULL && cache != NULL);
    memset(large, 7, LARGE_BYTES);
    stk_cache_put(cache, key_of(1), large, LARGE_BYTES);
    stk_mem_free(large);
    stk_cache_close(cache);
    atomic_store(&wrong, 0);
    for (int i = 0; i < 5; i++) {
        cache = open_cache(folder, MANY_BYTES);
        REQUIRE(cache != NULL);
        REQUIRE(pthread_create(&reader, NULL, read_large, cache) == 0);
        while (stats_of(cache).hits == 0) {
            sched_yield();
        }
        stk_cache_close(cache);
        pthread_join(reader, NULL);
    }
    CHECK_INT(atomic_load(&wrong), 0);
}

static void put_number(uint8_t *bytes, uint64_t value) {
    for (int i = 0; i < 8; i++) {
        bytes[i] = (uint8_t)(value >> 8 * i);
    }
}

/* Appends entries that all point at the first object's bytes to an index. */
static bool append_entries(const char *path, int count) {
    uint8_t raw[2 * STK_PACK_ENTRY_BYTES] = {0}; /* the head, then the first object's entry */
    FILE *file = fopen(path, "r+b");
    bool ok = file != NULL && fread(raw, 1, sizeof raw, file) == sizeof raw &&
              fseek(file, 0, SEEK_END) == 0;
    uint8_t *entry = raw + STK_PACK_HEAD_BYTES;
    uint64_t id = 0;
    for (int i = 7; i >= 0; i--) {
        id = id << 8 | raw[16 + i];
    }
    for (int i = 1; i < count && ok; i++) {
        put_number(entry, key_of((uint64_t)i).high);
        put_number(entry + 8, key_of((uint64_t)i).low);
        put_number(entry + 56, stk_checksum_seeded(entry, 56, id));
        ok = fwrite(entry, 1, STK_PACK_ENTRY_BYTES, file) == STK_PACK_ENTRY_BYTES;
    }
    return file != NULL && fclose(file) == 0 && ok;
}

static void a_large_index_is_read_quickly(void) {
    const char *folder = new_folder();
    const int many = check_is_quick() ? 100000 : 1200000;
    stk_bytes bytes = {0};
    stk_cache *cache = open_cache(folder, MANY_BYTES);
    REQUIRE(cache != NULL);
    put_objects(cache, 0, 1);
    stk_cache_close(cache);
    REQUIRE(append_entries(in(folder, "pack-0000.index"), many));
    int64_t start = stk_clock_ns();
    cache = open_cache(folder, MANY_BYTES);
    REQUIRE(cache != NULL);
    printf("  %d entries loaded in %.0f ms\n", many, stk_clock_since_s(start) * 1000);
    CHECK_INT(stats_of(cache).entries, many);
    for (uint64_t i = 0; i < (uint64_t)many; i += 997) {
        CHECK(stk_cache_has(cache, key_of(i)));
        CHECK(stk_cache_read(cache, key_of(i), &bytes) && bytes.size == 0);
    }
    CHECK(!stk_cache_has(cache, key_of((uint64_t)many)));
    put_objects(cache, (uint64_t)many, (uint64_t)many + 1);
    CHECK(read_object(cache, (uint64_t)many, &bytes));
    stk_cache_close(cache);
    stk_bytes_free(&bytes);
}

static const check_test tests[] = {
    TEST(two_caches_see_each_other),     TEST(repairs_are_shared),
    TEST(entries_may_be_half_written),   TEST(processes_fill_together),
    TEST(processes_share_one_limit),     TEST(kills_cost_nothing_but_misses),
    TEST(threads_read_while_others_put), TEST(closing_does_not_disturb_a_read),
    TEST(a_large_index_is_read_quickly),
};

CHECK_MAIN(tests)
