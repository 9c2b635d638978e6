/*
 * disk.c - the folder of a cache: opening it, reading objects, looking what others have
 * added.
 *
 * A read costs one pread from a descriptor that is open anyway and one checksum; no lock is held
 * meanwhile. Looking at the folder costs two calls per pack and is done about once a second, by the
 * writer's thread.
 */
#include "storage/cache/disk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/machine.h"
#include "base/mem.h"
#include "base/numbers/checksum.h"

#define DEFAULT_QUEUE_BYTES ((uint64_t)64 << 20)

/* A pack is cut here, so that one damaged file costs little. */
#define PACK_BYTES ((uint64_t)2 << 30)
/* A large cache has larger packs, so that it holds no more descriptors than this. */
#define PACKS_WANTED 64

static bool load_entries(stk_cache_disk *disk, stk_pack *pack, int index_fd) {
    stk_cache_entry entries[STK_PACK_BATCH];
    size_t count;
    bool more = true;
    bool ok = true;
    while (more && ok) {
        uint64_t before = pack->known_bytes;
        more = stk_pack_read_entries(pack, index_fd, entries, &count);
        pthread_mutex_lock(&disk->cache.lock);
        for (size_t i = 0; i < count && ok; i++) {
            ok = stk_cache_table_add(&disk->cache.table, &entries[i]);
        }
        pthread_mutex_unlock(&disk->cache.lock);
        if (!ok) {
            pack->known_bytes = before;
        }
    }
    return ok;
}

bool stk_cache_disk_load(stk_cache_disk *disk, stk_pack *pack) {
    int index_fd = stk_pack_open_index(pack, disk->folder_fd);
    if (index_fd < 0) {
        return true;
    }
    bool ok = load_entries(disk, pack, index_fd);
    close(index_fd);
    return ok;
}

/* Whether the pack has an index that could hold more than we know. */
static bool has_news(const stk_pack *pack) {
    if (pack->index_fd >= 0 || pack->index_bytes < STK_PACK_HEAD_BYTES ||
        pack->index_bytes / STK_PACK_ENTRY_BYTES > STK_PACK_MOST_ENTRIES + 1) {
        return false;
    }
    return pack->data_fd >= 0 ? pack->index_bytes >= pack->known_bytes + STK_PACK_ENTRY_BYTES
                              : pack->index_bytes != pack->tried_bytes;
}

/* Opens packs that are new and makes room for all entries at once. */
static bool open_news(stk_cache_disk *disk) {
    size_t entries = 0;
    for (size_t i = 0; i < disk->pack_count; i++) {
        stk_pack *pack = &disk->packs[i];
        if (!has_news(pack)) {
            continue;
        }
        if (pack->data_fd < 0 && !stk_pack_open(pack, disk->folder_fd)) {
            pack->tried_bytes = pack->index_bytes;
            continue;
        }
        entries += (size_t)((pack->index_bytes - pack->known_bytes) / STK_PACK_ENTRY_BYTES);
    }
    if (entries == 0) {
        return true;
    }
    pthread_mutex_lock(&disk->cache.lock);
    bool ok = stk_cache_table_reserve(&disk->cache.table, entries);
    pthread_mutex_unlock(&disk->cache.lock);
    return ok;
}

/* One file of the folder: its size is noted where it belongs to a pack. */
static void note_file(stk_cache_disk *disk, int listed_fd, const char *name) {
    int number;
    bool is_index;
    struct stat info;
    if (!stk_pack_parse_name(name, &number, &is_index) ||
        fstatat(listed_fd, name, &info, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(info.st_mode)) {
        return;
    }
    if ((size_t)number >= disk->most_packs) {
        disk->unused_bytes += (uint64_t)info.st_size;
        return;
    }
    stk_pack *pack = &disk->packs[number];
    if ((size_t)number >= disk->pack_count) {
        disk->pack_count = (size_t)number + 1;
    }
    if (pack != disk->own) {
        *(is_index ? &pack->index_bytes : &pack->data_bytes) = (uint64_t)info.st_size;
    }
}

static bool note_files(stk_cache_disk *disk) {
    int fd = openat(disk->folder_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (dir == NULL) {
        int reason = errno;
        if (fd >= 0) {
            close(fd);
        }
        errno = reason;
        return false;
    }
    disk->unused_bytes = 0;
    for (size_t i = 0; i < disk->pack_count; i++) {
        if (&disk->packs[i] != disk->own) {
            disk->packs[i].index_bytes = disk->packs[i].data_bytes = 0;
        }
    }
    const struct dirent *entry;
    while ((entry = readdir(dir)) != NULL) {
        note_file(disk, fd, entry->d_name);
    }
    closedir(dir);
    return true;
}

static void find_room(stk_cache_disk *disk) {
    struct statvfs space;
    uint64_t most = disk->cache.counters.most_bytes;
    uint64_t used = disk->unused_bytes;
    for (size_t i = 0; i < disk->pack_count; i++) {
        used += disk->packs[i].index_bytes + disk->packs[i].data_bytes;
    }
    uint64_t room = used < most ? most - used : 0;
    disk->disk_is_short = false;
    if (disk->keep_free_bytes > 0 && fstatvfs(disk->folder_fd, &space) == 0) {
        uint64_t free_bytes = (uint64_t)space.f_bavail * space.f_frsize;
        uint64_t left = free_bytes > disk->keep_free_bytes ? free_bytes - disk->keep_free_bytes : 0;
        disk->disk_is_short = left < room;
        room = left < room ? left : room;
    }
    disk->room_bytes = room;
    disk->since_look = 0;
    pthread_mutex_lock(&disk->cache.lock);
    disk->cache.counters.bytes = used;
    disk->looked_ns = stk_clock_ns();
    pthread_mutex_unlock(&disk->cache.lock);
}

bool stk_cache_disk_look(stk_cache_disk *disk) {
    struct stat folder;
    disk->removed = (fstat(disk->folder_fd, &folder) == 0 && folder.st_nlink == 0) ||
                    (disk->own != NULL && stk_pack_is_removed(disk->own));
    bool listed = note_files(disk);
    int reason = errno;
    find_room(disk);
    errno = reason;
    if (!listed) {
        return false;
    }
    bool ok = open_news(disk);
    for (size_t i = 0; i < disk->pack_count && ok; i++) {
        if (disk->packs[i].data_fd >= 0 && has_news(&disk->packs[i])) {
            ok = stk_cache_disk_load(disk, &disk->packs[i]);
        }
    }
    errno = ok ? 0 : ENOMEM;
    return ok;
}

static void free_folder(stk_cache *cache) {
    stk_cache_disk *disk = stk_cache_disk_of(cache);
    for (size_t i = 0; i < disk->pack_count; i++) {
        stk_pack_close(&disk->packs[i]);
    }
    if (disk->folder_fd >= 0) {
        close(disk->folder_fd);
    }
    while (disk->first != NULL) {
        stk_cache_item *item = disk->first;
        disk->first = item->next;
        stk_mem_free(item);
    }
    pthread_cond_destroy(&disk->work);
    pthread_cond_destroy(&disk->done);
    stk_cache_end(cache);
    stk_mem_free(disk->packs);
    stk_mem_free(disk->folder);
    stk_mem_free(disk);
}

/* The folder for its owner only; its parents as folders usually are. */
static stk_status make_folder(const char *path, stk_error *err) {
    if (stk_path_is_dir(path)) {
        return STK_OK;
    }
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/') {
        length--;
    }
    size_t parent = length;
    while (parent > 0 && path[parent - 1] != '/') {
        parent--;
    }
    char *copy = stk_mem_strndup(path, length);
    if (copy == NULL) {
        return STK_FAIL_MEMORY(err, "the cache");
    }
    stk_status status = STK_OK;
    if (parent > 1) {
        copy[parent - 1] = '\0';
        status = stk_dir_make(copy, err);
        copy[parent - 1] = '/';
    }
    if (status == STK_OK && mkdir(copy, 0700) != 0 && errno != EEXIST) {
        status = STK_FAIL(err, STK_ERR_STORAGE, "cannot make the folder of the cache, %s: %s", path,
                          strerror(errno));
    }
    stk_mem_free(copy);
    return status;
}

/* Each pack keeps a file open: a part of the descriptors is for them, the others for others. */
static size_t limit_packs(void) {
    int most = stk_machine_files(STK_PACKS_MOST, STK_FILES_SHARE);
    return most > 2 ? (size_t)most : 2;
}

static stk_status set_up(stk_cache_disk *disk, const stk_cache_config *config, stk_error *err) {
    disk->folder = stk_mem_strdup(config->folder);
    disk->most_packs = limit_packs();
    disk->packs = stk_mem_new(disk->most_packs, sizeof *disk->packs);
    if (disk->folder == NULL || disk->packs == NULL) {
        return STK_FAIL_MEMORY(err, "the cache");
    }
    for (size_t i = 0; i < disk->most_packs; i++) {
        stk_pack_clear(&disk->packs[i], (int)i);
    }
    disk->keep_free_bytes = config->keep_free_bytes;
    disk->queue_bytes = config->queue_bytes > 0 ? config->queue_bytes : DEFAULT_QUEUE_BYTES;
    disk->pack_bytes = config->most_bytes / PACKS_WANTED > PACK_BYTES
                           ? config->most_bytes / PACKS_WANTED
                           : PACK_BYTES;
    stk_status status = make_folder(config->folder, err);
    if (status != STK_OK) {
        return status;
    }
    disk->folder_fd = open(config->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (disk->folder_fd < 0 || !stk_cache_disk_look(disk)) {
        return STK_FAIL(err, errno == ENOMEM ? STK_ERR_MEMORY : STK_ERR_STORAGE,
                        "cannot open the cache in %s: %s", config->folder, strerror(errno));
    }
    return stk_cache_writer_start(disk, err);
}

static stk_status open_folder(stk_cache **cache, const stk_cache_config *config, stk_error *err) {
    stk_cache_disk *disk = stk_mem_new(1, sizeof *disk);
    pthread_condattr_t monotonic;
    if (disk == NULL) {
        return STK_FAIL_MEMORY(err, "the cache");
    }
    stk_cache_init(&disk->cache, &stk_cache_on_disk, config->most_bytes);
    disk->folder_fd = -1;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&disk->work, &monotonic);
    pthread_cond_init(&disk->done, &monotonic);
    pthread_condattr_destroy(&monotonic);
    stk_status status = set_up(disk, config, err);
    if (status != STK_OK) {
        stk_cache_let_go(&disk->cache);
        return status;
    }
    *cache = &disk->cache;
    return STK_OK;
}

static bool fetch(stk_cache *cache, const stk_cache_entry *entry, uint8_t *bytes) {
    int fd = stk_cache_disk_of(cache)->packs[entry->pack].data_fd;
    size_t done = 0;
    while (done < entry->length) {
        ssize_t got = pread(fd, bytes + done, entry->length - done, (off_t)(entry->at + done));
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return false;
        }
        done += (size_t)got;
    }
    return stk_checksum(bytes, entry->length) == entry->checksum;
}

const stk_cache_kind stk_cache_on_disk = {
    .open = open_folder,
    .close = stk_cache_writer_close,
    .free = free_folder,
    .fetch = fetch,
    .put = stk_cache_writer_put,
    .flush = stk_cache_writer_flush,
    .missed = stk_cache_writer_missed,
};
