/* store_cache.c - opens the cache of a store: where, how large, and what people are told. */
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "base/error.h"
#include "base/files/disk.h"
#include "base/machine.h"
#include "base/mem.h"
#include "base/str.h"
#include "storage/store/store.h"

/* Reads of the cache at a time. */
#define MOST_THREADS 64

/* Bytes that the cache leaves free on its disk; least size of a cache that nobody asked for. */
#define KEEP_FREE_BYTES ((uint64_t)1 << 30)
#define AUTO_LEAST_BYTES ((uint64_t)1 << 30)
#define AUTO_DISK_SHARE 2
#define AUTO_MEMORY_SHARE 4
#define QUEUE_BYTES ((uint64_t)16 << 20)

/* Half of the sum of the free bytes of the disk and the bytes that the cache holds already. */
static uint64_t auto_disk_bytes(const char *folder, uint64_t held, uint64_t keep_free) {
    struct statvfs info;
    if (statvfs(folder, &info) != 0) {
        return 0;
    }
    uint64_t free_bytes = (uint64_t)info.f_bavail * info.f_frsize;
    uint64_t room = free_bytes > keep_free ? free_bytes - keep_free : 0;
    return (room + held) / AUTO_DISK_SHARE;
}

static uint64_t held_bytes(const char *folder) {
    stk_dir_list list = {0};
    uint64_t sum = 0;
    if (stk_dir_read(folder, &list, NULL) == STK_OK) {
        for (size_t i = 0; i < list.count; i++) {
            char *path = stk_path_join(folder, list.entries[i].name);
            struct stat info;
            sum += path != NULL && stat(path, &info) == 0 ? (uint64_t)info.st_size : 0;
            stk_mem_free(path);
        }
    }
    stk_dir_list_free(&list);
    return sum;
}

static void tell_cache(const stk_store *s, const char *where, uint64_t most,
                       const stk_events *events) {
    char what[400];
    char why[200];
    char holds[32];
    char limit[32];
    stk_cache_counters c;
    stk_cache_stats(s->cache, &c);
    stk_format_bytes(holds, sizeof holds, c.bytes);
    stk_format_bytes(limit, sizeof limit, most);
    snprintf(what, sizeof what, "cache in %.300s", where);
    snprintf(why, sizeof why, "it may hold %s and holds %s", limit, holds);
    stk_events_decision(events, what, why);
}

uint64_t stk_storage_memory_room(void) {
    return stk_machine_memory() / AUTO_MEMORY_SHARE;
}

static stk_status open_ram_cache(stk_store *s, const stk_events *events, stk_error *err) {
    uint64_t most =
        s->options.cache_size != STK_AUTO_BYTES ? s->options.cache_size : stk_storage_memory_room();
    stk_cache_config config = {.most_bytes = most};
    stk_status status = stk_cache_open(&s->cache, &config, err);
    if (status == STK_OK && !s->cache_later) {
        s->cache_memory = most;
        tell_cache(s, "memory", most, events);
    }
    return status;
}

/* The state of opening a cache on a second thread, which may hang with its disk. */
typedef struct opening {
    char *kept;    /* owned: the folder that `folder` is in; NULL: there is none */
    char *folder;  /* owned; NULL: there is none */
    bool asked;    /* by --cache */
    uint64_t most; /* bytes that it may hold; STK_AUTO_BYTES: to be found out */
    stk_cache *cache;
    stk_status status;
    stk_error why;
} opening;

static void drop_opening(void *state) {
    opening *o = state;
    stk_cache_close(o->cache);
    stk_mem_free(o->kept);
    stk_mem_free(o->folder);
    stk_mem_free(o);
}

static void open_packs(void *state) {
    opening *o = state;
    uint64_t keep_free = o->asked ? KEEP_FREE_BYTES / 16 : KEEP_FREE_BYTES;
    o->status = o->kept != NULL && o->folder != NULL
                    ? stk_dir_make(o->kept, &o->why) /* stk_cache_open makes `folder` */
                    : STK_FAIL(&o->why, STK_ERR_STORAGE, "there is no home folder for a cache");
    if (o->status == STK_OK && o->most == STK_AUTO_BYTES) {
        /* `folder` may be a link to another disk, or a mount. */
        const char *on = stk_path_is_dir(o->folder) ? o->folder : o->kept;
        o->most = auto_disk_bytes(on, held_bytes(o->folder), keep_free);
        if (o->most < AUTO_LEAST_BYTES && !o->asked) {
            o->status =
                STK_FAIL(&o->why, STK_ERR_STORAGE, "there is no room on the disk of %s", o->folder);
        }
    }
    if (o->status == STK_OK) {
        stk_cache_config config = {.folder = o->folder,
                                   .most_bytes = o->most,
                                   .keep_free_bytes = keep_free,
                                   .queue_bytes = QUEUE_BYTES};
        o->status = stk_cache_open(&o->cache, &config, &o->why);
    }
}

/*
 * Only a cache that --cache asks for can be an error. A disk that does not answer, or a thread that
 * cannot start, is a warning even then: the user made no mistake.
 */
static stk_status judge_opening(stk_status status, bool asked, bool answered, const stk_error *why,
                                const stk_events *events, stk_error *err) {
    if (asked && answered && status != STK_ERR_DEVICE) {
        return STK_FAIL(err, status, "cannot use the cache that --cache names: %s", why->message);
    }
    stk_events_warning(events, "going on without a cache: %s%s", why->message,
                       asked ? "" : "; name a folder with --cache");
    return STK_OK;
}

static stk_status open_disk_cache(stk_store *s, const char *kept, bool asked,
                                  const stk_events *events, stk_error *err) {
    stk_error why = {0};
    opening *o = stk_mem_new(1, sizeof *o);
    if (o == NULL) {
        return STK_FAIL_MEMORY(err, "the cache");
    }
    o->asked = asked;
    o->most = s->options.cache_size;
    o->kept = kept != NULL ? stk_mem_strdup(kept) : NULL;
    o->folder = kept != NULL ? stk_path_join(kept, "packs") : NULL;
    struct stat info; /* a quick look whether the disk answers; reading indexes takes longer */
    if (kept != NULL && stk_disk_look(kept, &info) != 0 && errno == ETIMEDOUT) {
        drop_opening(o);
        o = NULL;
    }
    if (o == NULL || !stk_disk_run(kept != NULL ? kept : "", open_packs, o, drop_opening)) {
        (void)STK_FAIL(&why, STK_ERR_STORAGE, "cannot open %s: %s", kept, stk_disk_reason(errno));
        return judge_opening(STK_ERR_STORAGE, asked, false, &why, events, err);
    }
    stk_status status = o->status;
    if (status == STK_OK) {
        s->cache = o->cache;
        o->cache = NULL;
        tell_cache(s, kept, o->most, events);
    } else {
        status = judge_opening(status, asked, true, &o->why, events, err);
    }
    drop_opening(o);
    return status;
}

stk_status stk_store_open_cache(stk_store *s, const char *kept, const stk_events *events,
                                stk_error *err) {
    const char *wish = s->options.cache;
    stk_status status = STK_OK;
    s->caches_decoded = wish != NULL && stk_str_equal(wish, "decoded");
    if (wish == NULL) {
        status = s->source->remote ? open_disk_cache(s, kept, false, events, err) : STK_OK;
        s->cache_later = s->options.cache_later && s->cache == NULL;
        atomic_store(&s->cache_waits, s->cache_later);
        status = status == STK_OK && s->cache_later ? open_ram_cache(s, events, err) : status;
    } else if (s->caches_decoded || stk_str_equal(wish, "ram")) {
        status = open_ram_cache(s, events, err);
    } else if (!stk_str_equal(wish, "off")) {
        status = open_disk_cache(s, kept, true, events, err);
    }
    return status == STK_OK && s->cache != NULL
               ? stk_io_threads_open(&s->cache_io_threads, MOST_THREADS, err)
               : status;
}

bool stk_store_use_cache(stk_store *s, bool use) {
    if (!s->cache_later) {
        return false;
    }
    atomic_store(&s->cache_waits, !use);
    return true;
}

bool stk_store_cache_waits(const stk_store *s) {
    return s->cache_later && atomic_load(&s->cache_waits);
}

static void close_cache(void *cache) {
    stk_cache_close(cache);
}

void stk_store_close_cache(stk_store *s) {
    if (s->cache_io_threads != NULL) {
        stk_io_threads_close(s->cache_io_threads, close_cache, s->cache);
    } else {
        stk_cache_close(s->cache);
    }
    s->cache_io_threads = NULL;
    s->cache = NULL;
}
