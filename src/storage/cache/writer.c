/*
 * writer.c - the queue of a cache on disk and the thread that empties it.
 *
 * One thread writes, so that callers of stk_cache_put() never wait for a disk. It sleeps while
 * there is nothing to do. After a miss, at most once a second, it also looks for entries that other
 * processes have added.
 */
#include "storage/cache/disk.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <string.h>

#include "base/clock.h"
#include "base/files/disk.h"
#include "base/mem.h"
#include "base/numbers/checksum.h"
#include "base/str.h"
#include "base/threads/thread.h"

#define SECOND_NS ((int64_t)1000000000)
#define LOOK_NS SECOND_NS

/* Other processes write too: after this many bytes, or with this little room, we look at the
 * folder. */
#define LOOK_BYTES ((uint64_t)64 << 20)
#define LITTLE_ROOM_BYTES ((uint64_t)256 << 20)

/* Limits of one batch; the clock, the limits and the queue are checked between batches. */
#define BATCH_ITEMS 256
#define BATCH_BYTES ((size_t)8 << 20)
#define GATHER_NS (SECOND_NS / 10) /* how long an object waits for more to be written with it */

#define HEADS_BYTES ((uint64_t)2 * STK_PACK_HEAD_BYTES) /* heads of a pack's two files */

#define STACK_BYTES ((size_t)256 * 1024)

/* How long closing writes waiting objects, and then waits for a write that hangs. */
#define DRAIN_NS (5 * SECOND_NS)
#define HANG_NS (3 * SECOND_NS)

#define LEAST_NS (SECOND_NS / 10)

/* Longest wait of a flush: no run may hang because of the disk of its cache. */
#define FLUSH_NS (10 * SECOND_NS)

/* Objects that are written together. */
typedef struct cache_batch {
    stk_cache_entry entries[BATCH_ITEMS];
    struct iovec pieces[BATCH_ITEMS]; /* their bytes, owned by the items */
    size_t count;
    uint64_t bytes;
} cache_batch;

static uint64_t cost_of(size_t size) {
    return (uint64_t)size + sizeof(stk_cache_item);
}

static void end_full(stk_cache_disk *disk) {
    stk_cache *cache = &disk->cache;
    char size[32];
    pthread_mutex_lock(&cache->lock);
    cache->counters.full = true;
    if (disk->disk_is_short) {
        stk_format_bytes(size, sizeof size, disk->keep_free_bytes);
        stk_cache_note(cache,
                       "the cache in %.300s stops growing so that %s of its disk stay free: it "
                       "keeps what it has, and what is not in it is read anew each time",
                       disk->folder, size);
    } else {
        stk_format_bytes(size, sizeof size, cache->counters.most_bytes);
        stk_cache_note(cache,
                       "the cache in %.300s is full (%s): it keeps what it has, and what is not in "
                       "it is read anew each time; a larger --cache-size holds more",
                       disk->folder, size);
    }
    pthread_mutex_unlock(&cache->lock);
}

static void end_failed(stk_cache_disk *disk, const char *reason) {
    stk_cache *cache = &disk->cache;
    pthread_mutex_lock(&cache->lock);
    cache->counters.failed = true;
    stk_cache_note(cache,
                   "cannot write to the cache in %.300s: %s; the run goes on, and what is not in "
                   "the cache is read anew each time",
                   disk->folder, reason);
    pthread_mutex_unlock(&cache->lock);
}

static bool has_ended(stk_cache_disk *disk) {
    pthread_mutex_lock(&disk->cache.lock);
    bool ended = stk_cache_has_ended(&disk->cache);
    pthread_mutex_unlock(&disk->cache.lock);
    return ended;
}

static bool pack_has_room(const stk_cache_disk *disk, const stk_pack *pack) {
    return pack->data_bytes < disk->pack_bytes &&
           pack->index_bytes / STK_PACK_ENTRY_BYTES + BATCH_ITEMS < STK_PACK_MOST_ENTRIES;
}

/* Continues a pack whose writer has ended; first reads the entries added since the last look. */
static bool take_over(stk_cache_disk *disk) {
    for (size_t i = 0; i < disk->pack_count; i++) {
        stk_pack *pack = &disk->packs[i];
        if (pack->data_fd < 0 || !pack_has_room(disk, pack) ||
            stk_pack_take(pack, disk->folder_fd) != STK_PACK_OURS) {
            continue;
        }
        if (pack_has_room(disk, pack) && stk_cache_folder_load(disk, pack)) {
            disk->own = pack;
            return true;
        }
        stk_pack_release(pack);
    }
    return false;
}

static void use_room(stk_cache_disk *disk, uint64_t bytes) {
    disk->room_bytes -= bytes < disk->room_bytes ? bytes : disk->room_bytes;
    disk->since_look += bytes;
    pthread_mutex_lock(&disk->cache.lock);
    disk->cache.counters.bytes += bytes;
    pthread_mutex_unlock(&disk->cache.lock);
}

static bool make_new(stk_cache_disk *disk) {
    for (size_t i = 0; i < disk->most_packs; i++) {
        stk_pack *pack = &disk->packs[i];
        if (pack->data_fd >= 0 || pack->index_bytes >= STK_PACK_HEAD_BYTES) {
            continue;
        }
        stk_pack_result result = stk_pack_make(pack, disk->folder_fd);
        if (result == STK_PACK_FAILED) {
            return false;
        }
        if (result == STK_PACK_OURS) {
            disk->own = pack;
            disk->pack_count = i >= disk->pack_count ? i + 1 : disk->pack_count;
            use_room(disk, HEADS_BYTES);
            return true;
        }
    }
    errno = EMFILE;
    return false;
}

/* Looks at the folder if its size may have changed; false: caching has ended. */
static bool check_limits(stk_cache_disk *disk) {
    pthread_mutex_lock(&disk->cache.lock);
    int64_t looked_ns = disk->looked_ns;
    pthread_mutex_unlock(&disk->cache.lock);
    if (disk->since_look >= LOOK_BYTES || disk->room_bytes < LITTLE_ROOM_BYTES ||
        stk_clock_ns() - looked_ns >= LOOK_NS) {
        /* If the look fails for lack of memory or descriptors, the last numbers are used. */
        (void)(stk_cache_folder_look(disk) == true);
    }
    if (disk->removed) {
        end_failed(disk, "it has been removed");
    }
    return !disk->removed;
}

/* Whether an object must be written; *generation is the number for its entry. */
static bool is_wanted(stk_cache_disk *disk, const cache_batch *b, stk_cache_key key,
                      uint8_t *generation) {
    for (size_t i = 0; i < b->count; i++) {
        if (b->entries[i].key.high == key.high && b->entries[i].key.low == key.low) {
            return false;
        }
    }
    pthread_mutex_lock(&disk->cache.lock);
    const stk_cache_entry *known = stk_cache_table_find(&disk->cache.table, key);
    bool wanted = known == NULL || known->gone;
    *generation = 0;
    if (known != NULL) {
        *generation = (uint8_t)(known->generation + (known->generation < UINT8_MAX));
    }
    pthread_mutex_unlock(&disk->cache.lock);
    return wanted;
}

/* Whether an object fits; if not, caching ends. */
static bool fits(stk_cache_disk *disk, size_t size) {
    uint64_t need = (uint64_t)size + STK_PACK_ENTRY_BYTES;
    if (need + (disk->own == NULL ? HEADS_BYTES : 0) <= disk->room_bytes) {
        return true;
    }
    /* An object larger than the whole cache does not mean that the cache is full. */
    if (need + HEADS_BYTES > disk->cache.counters.most_bytes) {
        pthread_mutex_lock(&disk->cache.lock);
        disk->cache.counters.dropped++;
        pthread_mutex_unlock(&disk->cache.lock);
    } else {
        end_full(disk);
    }
    return false;
}

/* Adds one object to the batch; false: caching has ended. */
static bool add_item(stk_cache_disk *disk, cache_batch *b, stk_cache_item *item) {
    stk_cache_entry *entry = &b->entries[b->count];
    *entry = (stk_cache_entry){.key = item->key, .length = (uint32_t)item->size};
    if (!is_wanted(disk, b, item->key, &entry->generation)) {
        return true;
    }
    if (!fits(disk, item->size)) {
        return !has_ended(disk);
    }
    if (disk->own == NULL && !take_over(disk) && !make_new(disk)) {
        end_failed(disk, strerror(errno));
        return false;
    }
    entry->checksum = stk_checksum(item->bytes, item->size);
    entry->pack = (uint16_t)disk->own->number;
    entry->at = disk->own->data_bytes + b->bytes;
    b->pieces[b->count] = (struct iovec){item->bytes, item->size};
    b->count++;
    b->bytes += item->size;
    use_room(disk, (uint64_t)item->size + STK_PACK_ENTRY_BYTES);
    return true;
}

static uint64_t end_of(const stk_cache_entry *entry) {
    return entry->at + entry->length;
}

/* Writes the bytes, then the entries of all objects that were written, and adds them to the table.
 */
static void write_out(stk_cache_disk *disk, cache_batch *b) {
    stk_cache *cache = &disk->cache;
    stk_pack *pack = disk->own;
    uint64_t start = pack->data_bytes;
    size_t count = b->count;
    if (!stk_pack_append_bytes(pack, b->pieces, b->count)) {
        end_failed(disk, strerror(errno));
        while (count > 0 && end_of(&b->entries[count - 1]) > pack->data_bytes) {
            count--;
        }
    }
    if (count > 0 && !stk_pack_append_entries(pack, b->entries, count)) {
        end_failed(disk, strerror(errno));
        count = 0;
    }
    if (count < b->count) {
        stk_pack_cut(pack, count > 0 ? end_of(&b->entries[count - 1]) : start);
    }
    pthread_mutex_lock(&cache->lock);
    for (size_t i = 0; i < count; i++) {
        if (stk_cache_table_add(&cache->table, &b->entries[i])) {
            cache->counters.written++;
        } else {
            cache->counters.dropped++;
        }
    }
    pthread_mutex_unlock(&cache->lock);
}

static void leave_pack(stk_cache_disk *disk) {
    if (disk->own != NULL) {
        stk_pack_release(disk->own);
        disk->own = NULL;
    }
}

static void write_batch(stk_cache_disk *disk, stk_cache_item *items) {
    cache_batch b = {.count = 0};
    if (has_ended(disk) || !check_limits(disk)) {
        return;
    }
    /* A batch goes into one pack. */
    if (disk->own != NULL && !pack_has_room(disk, disk->own)) {
        leave_pack(disk);
    }
    for (stk_cache_item *item = items; item != NULL; item = item->next) {
        if (!add_item(disk, &b, item)) {
            break;
        }
    }
    if (b.count > 0) {
        write_out(disk, &b);
    }
    if (has_ended(disk)) {
        leave_pack(disk); /* another process may continue it */
    }
}

/* Under the lock: takes the first items off the queue; *bytes is their cost. */
static stk_cache_item *take_batch(stk_cache_disk *disk, uint64_t *bytes) {
    stk_cache_item *taken = disk->first;
    stk_cache_item *last = NULL;
    *bytes = 0;
    for (int i = 0; i < BATCH_ITEMS && disk->first != NULL && *bytes < BATCH_BYTES; i++) {
        last = disk->first;
        *bytes += cost_of(last->size);
        disk->first = last->next;
    }
    last->next = NULL;
    return taken;
}

/* Called under the lock; releases it while it writes. */
static void serve(stk_cache_disk *disk) {
    uint64_t bytes;
    stk_cache_item *items = take_batch(disk, &bytes);
    disk->busy = true;
    bool given_up = disk->quit && stk_clock_ns() >= disk->quit_ns;
    pthread_mutex_unlock(&disk->cache.lock);
    if (!given_up) {
        write_batch(disk, items);
    }
    while (items != NULL) {
        stk_cache_item *next = items->next;
        stk_mem_free(items);
        items = next;
    }
    pthread_mutex_lock(&disk->cache.lock);
    disk->queued_bytes -= bytes;
    disk->busy = false;
    disk->stuck = false;
    if (disk->first == NULL) {
        pthread_cond_broadcast(&disk->done);
    }
}

/* Under the lock: whether enough waits for a write. */
static bool is_enough(const stk_cache_disk *disk) {
    return disk->queued_bytes >= BATCH_BYTES || disk->queued_bytes >= disk->queue_bytes / 2;
}

/*
 * Under the lock: waits for more objects; false: there is no reason to. Few large writes lie in
 * large pieces in the system's page cache, from which later reads copy a quarter faster.
 */
static bool wait_for_more(stk_cache_disk *disk) {
    int64_t end_ns = disk->waiting_ns + GATHER_NS;
    if (disk->quit || disk->hurrying > 0 || is_enough(disk) || stk_clock_ns() >= end_ns) {
        return false;
    }
    (void)stk_cond_wait_until(&disk->work, &disk->cache.lock, end_ns);
    return true;
}

static void *work(void *argument) {
    stk_cache_disk *disk = argument;
    pthread_mutex_lock(&disk->cache.lock);
    for (;;) {
        if (disk->first != NULL && !wait_for_more(disk)) {
            serve(disk);
        } else if (disk->first == NULL && disk->quit) {
            break;
        } else if (disk->look) {
            pthread_mutex_unlock(&disk->cache.lock);
            (void)(stk_cache_folder_look(disk) == true);
            pthread_mutex_lock(&disk->cache.lock);
            disk->look = false;
        } else if (disk->first == NULL) {
            pthread_cond_wait(&disk->work, &disk->cache.lock);
        }
    }
    disk->ended = true;
    pthread_cond_broadcast(&disk->done);
    pthread_mutex_unlock(&disk->cache.lock);
    stk_cache_drop(&disk->cache);
    return NULL;
}

stk_status stk_cache_writer_start(stk_cache_disk *disk, stk_error *err) {
    const stk_thread_config config = {.what = "writes the cache", .stack_bytes = STACK_BYTES};
    sigset_t too_large;
    sigset_t before;
    sigemptyset(&too_large);
    sigaddset(&too_large, SIGXFSZ);
    /* Beyond a limit on file sizes a write shall fail; the signal would end the process. */
    pthread_sigmask(SIG_BLOCK, &too_large, &before);
    stk_cache_hold(&disk->cache);
    stk_status status = stk_thread_start(&disk->thread, &config, work, disk, err);
    if (status != STK_OK) {
        stk_cache_drop(&disk->cache);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return status;
}

void stk_cache_writer_put(stk_cache *cache, stk_cache_key key, const void *data, size_t size) {
    stk_cache_disk *disk = stk_cache_disk_of(cache);
    if (size > STK_CACHE_OBJECT_MOST_BYTES) {
        return;
    }
    uint64_t cost = cost_of(size);
    pthread_mutex_lock(&cache->lock);
    bool wanted = !stk_cache_has_ended(cache) && !stk_cache_knows(cache, key);
    bool fits_queue =
        disk->queued_bytes <= disk->queue_bytes && cost <= disk->queue_bytes - disk->queued_bytes;
    cache->counters.dropped += wanted && !fits_queue;
    disk->queued_bytes += wanted && fits_queue ? cost : 0;
    pthread_mutex_unlock(&cache->lock);
    if (!wanted || !fits_queue) {
        return;
    }
    stk_cache_item *item = stk_mem_raw(sizeof *item + size, 1);
    if (item != NULL) {
        *item = (stk_cache_item){.key = key, .size = size};
        if (size > 0) {
            memcpy(item->bytes, data, size);
        }
    }
    pthread_mutex_lock(&cache->lock);
    if (item == NULL) {
        disk->queued_bytes -= cost;
        cache->counters.dropped++;
    } else {
        bool first = disk->first == NULL;
        *(first ? &disk->first : &disk->last->next) = item;
        disk->last = item;
        disk->waiting_ns = first ? stk_clock_ns() : disk->waiting_ns;
        if (first || is_enough(disk)) {
            pthread_cond_signal(&disk->work);
        }
    }
    pthread_mutex_unlock(&cache->lock);
}

/* At most `ns`, less if the caller has less time left, but enough for a disk that works. */
static int64_t within(int64_t ns, double left_s) {
    const int64_t least_ns = LEAST_NS;
    return (int64_t)fmax(fmin((double)ns, left_s * SECOND_NS), (double)least_ns);
}

void stk_cache_writer_flush(stk_cache *cache) {
    stk_cache_disk *disk = stk_cache_disk_of(cache);
    int64_t end_ns = stk_clock_ns() + within(FLUSH_NS, stk_disk_left_s());
    pthread_mutex_lock(&cache->lock);
    disk->hurrying++;
    pthread_cond_signal(&disk->work);
    while ((disk->first != NULL || disk->busy) && !disk->stuck) {
        (void)stk_cond_wait_until(&disk->done, &cache->lock, end_ns);
        disk->stuck = stk_clock_ns() >= end_ns && (disk->first != NULL || disk->busy);
    }
    disk->hurrying--;
    pthread_mutex_unlock(&cache->lock);
}

void stk_cache_writer_missed(stk_cache *cache) {
    stk_cache_disk *disk = stk_cache_disk_of(cache);
    if (!disk->look && stk_clock_ns() - disk->looked_ns >= LOOK_NS) {
        disk->look = true;
        pthread_cond_signal(&disk->work);
    }
}

void stk_cache_writer_close(stk_cache *cache) {
    stk_cache_disk *disk = stk_cache_disk_of(cache);
    double left_s = stk_disk_left_s();
    pthread_mutex_lock(&cache->lock);
    disk->quit = true;
    disk->quit_ns = stk_clock_ns() + within(DRAIN_NS, left_s);
    int64_t end_ns = disk->quit_ns + within(HANG_NS, left_s - (double)DRAIN_NS / SECOND_NS);
    pthread_cond_signal(&disk->work);
    while (!disk->ended && stk_cond_wait_until(&disk->done, &cache->lock, end_ns)) {
    }
    bool ended = disk->ended;
    pthread_mutex_unlock(&cache->lock);
    /* A write that hangs with its disk must not hang the run: its thread is abandoned. */
    if (ended) {
        pthread_join(disk->thread, NULL);
    } else {
        pthread_detach(disk->thread);
    }
}
