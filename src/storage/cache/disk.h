/*
 * disk.h - inside the cache: the cache on disk, its packs and its writer thread.
 *
 * disk.c opens the folder, pack_folder.c looks at it, writer.c has the queue and its thread. After
 * opening, the packs belong to the writer thread; other threads only read from their data_fd.
 * Fields marked `lock` are guarded by cache.lock.
 */
#ifndef STK_STORAGE_CACHE_DISK_H
#define STK_STORAGE_CACHE_DISK_H

#include "storage/cache/kind.h"
#include "storage/cache/pack.h"

/* An object that waits to be written, in one block with its bytes. */
typedef struct stk_cache_item {
    struct stk_cache_item *next;
    stk_cache_key key;
    size_t size;
    uint8_t bytes[];
} stk_cache_item;

typedef struct stk_cache_disk {
    stk_cache cache;
    char *folder;             /* owned; the path, for messages */
    int folder_fd;            /* owned */
    uint64_t keep_free_bytes; /* to leave free on the file system */
    uint64_t queue_bytes;     /* limit of queued_bytes */

    /* The writer thread's: */
    stk_pack *packs;       /* owned; most_packs elements, indexed by pack number */
    size_t most_packs;     /* highest number of packs that descriptors allow */
    size_t pack_count;     /* all known packs have numbers below this */
    stk_pack *own;         /* the pack that this process appends to, or NULL */
    uint64_t unused_bytes; /* bytes of packs with numbers from most_packs on, which are not read */
    uint64_t pack_bytes;   /* at this size of its data a pack is complete */
    uint64_t room_bytes;   /* bytes that may still be written, as of the last look at the folder */
    bool disk_is_short;    /* keep_free_bytes limits room_bytes, not most_bytes */
    bool removed;          /* somebody removed the folder or our files in it */
    uint64_t since_look;   /* bytes written since the last look at the folder */
    int64_t looked_ns;     /* lock; time of the last look at the folder */

    /* The queue. */
    pthread_t thread;
    pthread_cond_t work;   /* wakes the writer */
    pthread_cond_t done;   /* signalled when the queue is empty or the writer has ended */
    stk_cache_item *first; /* lock */
    stk_cache_item *last;  /* lock; only meaningful while first is not NULL */
    uint64_t queued_bytes; /* lock; of objects that wait, are being written or are being copied */
    bool busy;             /* lock; the writer is writing */
    int64_t waiting_ns;    /* lock; when the oldest object of the queue came */
    int hurrying;          /* lock; threads that wait in flush */
    bool stuck;            /* lock; a flush timed out, and nothing was written since */
    bool look;             /* lock; the writer shall look for entries of other processes */
    bool quit;             /* lock */
    int64_t quit_ns;       /* lock; when closing gives up the objects that still wait */
    bool ended;            /* lock; the writer has left its loop */
} stk_cache_disk;

static inline stk_cache_disk *stk_cache_disk_of(stk_cache *cache) {
    return (stk_cache_disk *)(void *)cache;
}

/*
 * Looks at the folder: sizes of all packs, entries that other processes added, room left. False: no
 * memory, or the folder cannot be listed (errno says why); everything known before stays.
 */
STK_CHECKED bool stk_cache_folder_look(stk_cache_disk *disk);

/* Reads the entries of a pack that are not known yet; false: no memory. */
STK_CHECKED bool stk_cache_folder_load(stk_cache_disk *disk, stk_pack *pack);

/* Creates the queue and starts its thread. */
STK_CHECKED stk_status stk_cache_writer_start(stk_cache_disk *disk, stk_error *err);
void stk_cache_writer_put(stk_cache *cache, stk_cache_key key, const void *data, size_t size);
void stk_cache_writer_flush(stk_cache *cache);
void stk_cache_writer_missed(stk_cache *cache);

/* Writes the waiting objects and ends the thread, or abandons it if it hangs in a write. */
void stk_cache_writer_close(stk_cache *cache);

#endif
