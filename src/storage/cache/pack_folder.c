/*
 * pack_folder.c - looks at the folder of a cache on disk: which packs exist, what other processes
 * have added to them, how much room is left.
 *
 * A look costs two calls per pack. The writer thread looks about once a second.
 */
#include "storage/cache/disk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/clock.h"

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

bool stk_cache_folder_load(stk_cache_disk *disk, stk_pack *pack) {
    int index_fd = stk_pack_open_index(pack, disk->folder_fd);
    if (index_fd < 0) {
        return true;
    }
    bool ok = load_entries(disk, pack, index_fd);
    close(index_fd);
    return ok;
}

/* Whether the pack's index has grown since it was last read. */
static bool has_news(const stk_pack *pack) {
    if (pack->index_fd >= 0 || pack->index_bytes < STK_PACK_HEAD_BYTES ||
        pack->index_bytes / STK_PACK_ENTRY_BYTES > STK_PACK_MOST_ENTRIES + 1) {
        return false;
    }
    return pack->data_fd >= 0 ? pack->index_bytes >= pack->known_bytes + STK_PACK_ENTRY_BYTES
                              : pack->index_bytes != pack->tried_bytes;
}

/* Opens new packs and makes room in the table for all new entries. */
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

/* Stores the size of a file of the folder if it belongs to a pack. */
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

bool stk_cache_folder_look(stk_cache_disk *disk) {
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
            ok = stk_cache_folder_load(disk, &disk->packs[i]);
        }
    }
    errno = ok ? 0 : ENOMEM;
    return ok;
}
