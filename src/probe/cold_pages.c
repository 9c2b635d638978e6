/*
 * cold_pages.c - calls posix_fadvise for many files at a time, since each call may wait for a
 * mount.
 *
 * Dirty pages cannot be dropped, so each file is synced first.
 */
#include "probe/cold_pages.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files/file.h"
#include "base/mem.h"
#include "base/threads/pool.h"
#include "storage/archives/archive_names.h"

#define THREADS 16

/* Files that are dropped however late it is, one by each thread: fewer are too few to measure. */
#define LEAST_FILES THREADS

typedef struct dropping {
    const char *root;
    const char *const *paths;
    const stk_stop *stop;
    int64_t until_ns;
    atomic_size_t skipped; /* index of the first file that there was no time for */
} dropping;

static void drop_file(const char *path) {
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd >= 0) {
        (void)fdatasync(fd);
        (void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
        close(fd);
    }
}

static void drop_one(void *context, size_t task, int thread) {
    dropping *d = context;
    (void)thread;
    bool is_late = task >= LEAST_FILES && stk_clock_ns() >= d->until_ns;
    if (is_late || stk_stop_asked(d->stop) != STK_STOP_NONE) {
        size_t first = atomic_load(&d->skipped);
        while (task < first && !atomic_compare_exchange_weak(&d->skipped, &first, task)) {
        }
        return;
    }
    char *path = stk_path_join(d->root, d->paths[task]);
    if (path != NULL) {
        drop_file(path);
    }
    stk_mem_free(path);
}

/* Members of shards and archives: those at the top, or the location itself where it is one. */
static stk_status drop_shards(const char *root, stk_error *err) {
    stk_dir_list list = {0};
    if (stk_path_is_file(root)) {
        drop_file(root);
        return STK_OK;
    }
    stk_status status = stk_dir_read(root, &list, err);
    for (size_t i = 0; status == STK_OK && i < list.count; i++) {
        if (!list.entries[i].is_dir && stk_archive_stem(list.entries[i].name) > 0) {
            char *path = stk_path_join(root, list.entries[i].name);
            drop_file(path != NULL ? path : "");
            stk_mem_free(path);
        }
    }
    stk_dir_list_free(&list);
    return status;
}

stk_status stk_cold_pages_drop(stk_store *store, const char *const *paths, size_t *count,
                               double seconds, const stk_stop *stop, stk_error *err) {
    dropping d = {.root = stk_store_root(store),
                  .paths = paths,
                  .stop = stop,
                  .until_ns = stk_clock_in(seconds)};
    stk_pool *pool = NULL;
    if (stk_store_is_remote(store)) {
        return STK_OK;
    }
    if (stk_store_has_shards(store)) {
        return drop_shards(d.root, err);
    }
    if (stk_store_has_archives(store)) { /* and then the files beside the archives */
        stk_status dropped = drop_shards(d.root, err);
        if (dropped != STK_OK) {
            return dropped;
        }
    }
    atomic_store(&d.skipped, *count);
    stk_status status = stk_pool_new(&pool, THREADS, err);
    if (status == STK_OK) {
        stk_pool_run(pool, *count, drop_one, &d);
        *count = atomic_load(&d.skipped);
    }
    stk_pool_free(pool);
    return status;
}
