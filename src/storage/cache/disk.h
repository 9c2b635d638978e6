/*
 * disk.h - the cache on disk: its packs, and the thread that writes.
 *
 * disk.c opens and looks at the folder, writer.c is the queue and its thread. After
 * opening, the packs belong to that thread; others only read from their data_fd. For files of the
 * cache only.
 */
#ifndef STK_STORAGE_CACHE_DISK_H
#define STK_STORAGE_CACHE_DISK_H

#include "storage/cache/kind.h"
#include "storage/cache/pack.h"

/* An object that waits to be written; one block with its bytes. */
typedef struct stk_cache_item {
    struct stk_cache_item *next;
    stk_cache_key key;
    size_t size;
    uint8_t bytes[];
} stk_cache_item;

typedef struct stk_cache_disk {
    stk_cache cache;
    char *folder;             /* owned; for people */
    int folder_fd;            /* owned */
    uint64_t keep_free_bytes; /* of the file system */
    uint64_t queue_bytes;     /* most that may wait */

    /* Of the writer. */
    stk_pack *packs;       /* owned; most_packs of them, each at its number */
    size_t most_packs;     /* as many as descriptors allow */
    size_t pack_count;     /* numbers in use are below this */
    stk_pack *own;         /* the one that is appended to, or NULL */
    uint64_t unused_bytes; /* of packs with numbers from most_packs on: only counted */
    uint64_t pack_bytes;   /* a pack is left for the next when its data has reached this */
    uint64_t room_bytes;   /* that may still be written, by the last look */
    bool disk_is_short;    /* room_bytes is what keep_free_bytes leaves, not most_bytes */
    bool removed;          /* the folder or our files in it have been removed */
    uint64_t since_look;   /* bytes written since the last look */
    int64_t looked_ns;     /* when that was; lock */

    /* The queue. */
    pthread_t thread;
    pthread_cond_t work;   /* for the writer */
    pthread_cond_t done;   /* nothing waits any more, or the writer has ended */
    stk_cache_item *first; /* lock */
    stk_cache_item *last;  /* lock; only meaningful while first is not NULL */
    uint64_t queued_bytes; /* lock; waiting or being written, or being copied */
    bool busy;             /* lock; the writer is writing */
    int64_t waiting_ns;    /* lock; since when something waits */
    int hurrying;          /* lock; threads that wait until all is written */
    bool stuck;            /* lock; one of them gave up, and nothing was written since */
    bool look;             /* lock; the writer shall look what others have written */
    bool quit;             /* lock */
    int64_t quit_ns;       /* lock; when what waits is given up */
    bool ended;            /* lock; the writer is out of its loop */
} stk_cache_disk;

static inline stk_cache_disk *stk_cache_disk_of(stk_cache *cache) {
    return (stk_cache_disk *)(void *)cache;
}

/*
 * Looks at the folder: sizes of all packs, entries that others have added, the room that is left.
 * False without memory or when the folder cannot be listed (errno says why): what was known before
 * stays.
 */
STK_CHECKED bool stk_cache_folder_look(stk_cache_disk *disk);

/* Reads the entries of a pack that are not known yet; false without memory. */
STK_CHECKED bool stk_cache_folder_load(stk_cache_disk *disk, stk_pack *pack);

/* The queue and its thread. */
STK_CHECKED stk_status stk_cache_writer_start(stk_cache_disk *disk, stk_error *err);
void stk_cache_writer_put(stk_cache *cache, stk_cache_key key, const void *data, size_t size);
void stk_cache_writer_flush(stk_cache *cache);
void stk_cache_writer_missed(stk_cache *cache);

/* Writes what waits and ends the thread, or leaves it alone when it hangs in a write. */
void stk_cache_writer_close(stk_cache *cache);

#endif
