/* cache_objects.h - objects whose bytes follow from their number, for the tests of the cache. */
#ifndef STK_TESTS_CACHE_OBJECTS_H
#define STK_TESTS_CACHE_OBJECTS_H

#include "check.h"

#include <fcntl.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "base/numbers/rng.h"
#include "storage/cache/cache.h"

#define OBJECT_MOST_BYTES 20000
#define MANY_BYTES ((uint64_t)1 << 30) /* a limit that is not reached */

/* A path in a folder; the last ones stay. */
static inline const char *in(const char *folder, const char *name) {
    static char *paths[256];
    static unsigned next;
    char **path = &paths[next++ % 256];
    stk_mem_free(*path);
    *path = stk_path_join(folder, name);
    return *path;
}

/* A fresh folder, whose name stays while there are a few more of them. */
static inline const char *new_folder(void) {
    static char folders[16][256];
    static unsigned next;
    char *folder = folders[next++ % 16];
    snprintf(folder, sizeof folders[0], "%s", check_folder());
    return folder;
}

static inline stk_cache_key key_of(uint64_t number) {
    char path[32];
    snprintf(path, sizeof path, "class/%llu.jpg", (unsigned long long)number);
    return stk_cache_key_make((const char *const[]){"s3://bucket/set", path, "\"etag\""}, 3);
}

/* Most objects are some kilobytes; number 0 is empty. */
static inline size_t size_of(uint64_t number) {
    return (size_t)(number * 7919 % OBJECT_MOST_BYTES);
}

static inline const uint8_t *bytes_of(uint64_t number) {
    static _Thread_local uint64_t words[OBJECT_MOST_BYTES / 8 + 1];
    stk_rng rng = stk_rng_make(11, STK_RNG_TEST, 0, number);
    for (size_t i = 0; i <= size_of(number) / 8; i++) {
        words[i] = stk_rng_u64(&rng);
    }
    return (const uint8_t *)words;
}

static inline stk_cache *open_cache(const char *folder, uint64_t most_bytes) {
    stk_cache *cache = NULL;
    stk_error err = {0};
    stk_cache_config config = {.folder = folder, .most_bytes = most_bytes};
    if (stk_cache_open(&cache, &config, &err) != STK_OK) {
        CHECK_FAIL("cannot open: %s", err.message);
    }
    return cache;
}

static inline void put_object(stk_cache *cache, uint64_t number) {
    stk_cache_put(cache, key_of(number), bytes_of(number), size_of(number));
}

/* Puts objects from..to-1 and waits until they are written. */
static inline void put_objects(stk_cache *cache, uint64_t from, uint64_t to) {
    for (uint64_t i = from; i < to; i++) {
        put_object(cache, i);
    }
    stk_cache_flush(cache);
}

/* Whether an object is there; when it is, its bytes must be right. */
static inline bool read_object(stk_cache *cache, uint64_t number, stk_bytes *bytes) {
    bool there = stk_cache_read(cache, key_of(number), bytes);
    if (there && (bytes->size != size_of(number) || bytes->data[bytes->size] != '\0' ||
                  memcmp(bytes->data, bytes_of(number), bytes->size) != 0)) {
        CHECK_FAIL("object %llu has wrong bytes", (unsigned long long)number);
    }
    return there;
}

/* How many of the objects from..to-1 are there, all with right bytes. */
static inline int count_objects(stk_cache *cache, uint64_t from, uint64_t to) {
    stk_bytes bytes = {0};
    int count = 0;
    for (uint64_t i = from; i < to; i++) {
        count += read_object(cache, i, &bytes);
    }
    stk_bytes_free(&bytes);
    return count;
}

static inline stk_cache_counters stats_of(stk_cache *cache) {
    stk_cache_counters counters;
    stk_cache_stats(cache, &counters);
    return counters;
}

static inline uint64_t file_size(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 ? (uint64_t)info.st_size : 0;
}

/* What all files of a folder hold. */
static inline uint64_t folder_bytes(const char *folder) {
    stk_dir_list list;
    uint64_t bytes = 0;
    if (stk_dir_read(folder, &list, NULL) != STK_OK) {
        return 0;
    }
    for (size_t i = 0; i < list.count; i++) {
        bytes += file_size(in(folder, list.entries[i].name));
    }
    stk_dir_list_free(&list);
    return bytes;
}

/* Not by way of an atomic write, whose syncing would take the time of the whole test. */
static inline bool copy_file(const char *from, const char *to) {
    char *data = NULL;
    size_t size = 0;
    bool ok = stk_file_read(from, 0, &data, &size, NULL) == STK_OK;
    FILE *file = ok ? fopen(to, "wb") : NULL;
    ok = file != NULL && fwrite(data, 1, size, file) == size;
    ok = file != NULL && fclose(file) == 0 && ok;
    stk_mem_free(data);
    return ok;
}

/* Changes one byte of a file. */
static inline bool spoil(const char *path, uint64_t at) {
    uint8_t byte = 0;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    bool ok = fd >= 0 && pread(fd, &byte, 1, (off_t)at) == 1;
    byte ^= 0x10;
    ok = ok && pwrite(fd, &byte, 1, (off_t)at) == 1;
    if (fd >= 0) {
        close(fd);
    }
    return ok;
}

#endif
