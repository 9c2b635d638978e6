/*
 * cache_check.c - reads every file of a folder through a location and its cache, byte by byte.
 *
 *     cache_check LOCATION FOLDER CACHE SIZE
 *
 * LOCATION is where the same files are served from (s3://bucket), CACHE what --cache would be and
 * SIZE what --cache-size would be. Several threads read at a time, so that hits, misses and writes
 * mix. It prints how many objects came and where from; the exit code is 1 when one is missing or
 * differs.
 */
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/threads/pool.h"
#include "storage/storage.h"

#define THREADS 4

typedef struct check {
    stk_store *store;
    const char *folder;
    char **paths; /* owned, as are the texts; below the folder */
    size_t count;
    size_t capacity;
    atomic_int wrong;
} check;

static void die(const char *what, const char *why) {
    fprintf(stderr, "cache_check: %s: %s\n", what, why);
    exit(2);
}

static void add_path(check *c, char *path) {
    if (path == NULL || !STK_RESERVE(c->paths, c->capacity, c->count + 1)) {
        die("files", "out of memory");
    }
    c->paths[c->count++] = path;
}

/* All files below a folder; `below` is "" or ends with a slash. */
static void walk(check *c, const char *below) {
    stk_dir_list list = {0};
    stk_error err = {0};
    char *folder = stk_path_join(c->folder, below);
    if (folder == NULL || stk_dir_read(folder, &list, &err) != STK_OK) {
        die(below, err.message);
    }
    for (size_t i = 0; i < list.count; i++) {
        const stk_dir_entry *entry = &list.entries[i];
        char *path = stk_str_format("%s%s%s", below, entry->name, entry->is_dir ? "/" : "");
        if (path != NULL && entry->is_dir) {
            walk(c, path);
            stk_mem_free(path);
        } else {
            add_path(c, path);
        }
    }
    stk_dir_list_free(&list);
    stk_mem_free(folder);
}

static void compare(void *context, size_t task, int thread) {
    check *c = context;
    const char *path = c->paths[task];
    stk_bytes read = {0};
    stk_bytes wanted = {0};
    stk_error err = {0};
    (void)thread;
    char *file = stk_path_join(c->folder, path);
    if (file == NULL || stk_file_read_into(file, 0, &wanted, &err) != STK_OK ||
        stk_store_read(c->store, path, &read, &err) != STK_OK) {
        fprintf(stderr, "cache_check: %s: %s\n", path, err.message);
        atomic_fetch_add(&c->wrong, 1);
    } else if (read.size != wanted.size || memcmp(read.data, wanted.data, wanted.size) != 0) {
        fprintf(stderr, "cache_check: %s is not what it was\n", path);
        atomic_fetch_add(&c->wrong, 1);
    }
    stk_bytes_free(&read);
    stk_bytes_free(&wanted);
    stk_mem_free(file);
}

int main(int argc, char **argv) {
    check c = {.folder = argc == 5 ? argv[2] : NULL};
    stk_storage_options options = {.cache = argc == 5 ? argv[3] : NULL};
    stk_store_counters counters;
    stk_error err = {0};
    stk_pool *pool = NULL;
    if (argc != 5 || !stk_parse_bytes(argv[4], &options.cache_size)) {
        die("usage", "cache_check LOCATION FOLDER CACHE SIZE");
    }
    walk(&c, "");
    if (stk_store_open(&c.store, argv[1], &options, NULL, &err) != STK_OK ||
        stk_pool_new(&pool, THREADS, &err) != STK_OK) {
        die(argv[1], err.message);
    }
    stk_pool_run(pool, c.count, compare, &c);
    stk_pool_free(pool);
    stk_store_stats(c.store, &counters);
    stk_store_close(c.store);
    printf("%zu objects, %d wrong, %" PRIu64 " hits, %" PRIu64 " misses\n", c.count,
           atomic_load(&c.wrong), counters.cache_hits, counters.cache_misses);
    for (size_t i = 0; i < c.count; i++) {
        stk_mem_free(c.paths[i]);
    }
    stk_mem_free(c.paths);
    return atomic_load(&c.wrong) == 0 && c.count > 0 ? 0 : 1;
}
