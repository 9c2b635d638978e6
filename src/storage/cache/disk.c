/*
 * disk.c - the cache on disk: opening its folder, reading objects, closing.
 *
 * A read costs one pread from an open descriptor and one checksum, without a lock. pack_folder.c
 * finds the packs of the folder, writer.c writes them.
 */
#include "storage/cache/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/machine.h"
#include "base/mem.h"
#include "base/numbers/checksum.h"
#include "base/threads/thread.h"

#define DEFAULT_QUEUE_BYTES ((uint64_t)64 << 20)

/* Size of a pack: small enough that one damaged file costs little. */
#define PACK_BYTES ((uint64_t)2 << 30)
/* A large cache has larger packs, so that it needs no more descriptors than this. */
#define PACKS_WANTED 64

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

/* Only the owner may use the folder; folders above it get the usual permissions. */
static stk_status make_folder(const char *path, stk_error *err) {
    if (stk_path_is_dir(path)) {
        return STK_OK;
    }
    char *copy = stk_path_trim(path);
    if (copy == NULL) {
        return STK_FAIL_MEMORY(err, "the cache");
    }
    char *slash = strrchr(copy, '/');
    stk_status status = STK_OK;
    if (slash != NULL && slash > copy) {
        *slash = '\0';
        status = stk_dir_make(copy, err);
        *slash = '/';
    }
    if (status == STK_OK && mkdir(copy, 0700) != 0 && errno != EEXIST) {
        status = STK_FAIL(err, STK_ERR_STORAGE, "cannot make the folder of the cache, %s: %s", path,
                          strerror(errno));
    }
    stk_mem_free(copy);
    return status;
}

/* Each pack keeps a file open, so packs may take only a part of the process's descriptors. */
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
    if (disk->folder_fd < 0 || !stk_cache_folder_look(disk)) {
        return STK_FAIL(err, errno == ENOMEM ? STK_ERR_MEMORY : STK_ERR_STORAGE,
                        "cannot open the cache in %s: %s", config->folder, strerror(errno));
    }
    return stk_cache_writer_start(disk, err);
}

static stk_status open_folder(stk_cache **cache, const stk_cache_config *config, stk_error *err) {
    stk_cache_disk *disk = stk_mem_new(1, sizeof *disk);
    if (disk == NULL) {
        return STK_FAIL_MEMORY(err, "the cache");
    }
    stk_cache_begin(&disk->cache, &stk_cache_on_disk, config->most_bytes);
    disk->folder_fd = -1;
    stk_cond_init(&disk->work);
    stk_cond_init(&disk->done);
    stk_status status = set_up(disk, config, err);
    if (status != STK_OK) {
        stk_cache_drop(&disk->cache);
        return status;
    }
    *cache = &disk->cache;
    return STK_OK;
}

static bool fetch(stk_cache *cache, const stk_cache_entry *entry, uint8_t *bytes) {
    const stk_pack *pack = &stk_cache_disk_of(cache)->packs[entry->pack];
    return stk_pack_read(pack, bytes, entry->length, entry->at) == entry->length &&
           stk_checksum(bytes, entry->length) == entry->checksum;
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
