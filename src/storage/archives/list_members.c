/* list_members.c - finds the members of one archive. */
#include "storage/archives/archive.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"
#include "storage/archives/bson.h"
#include "storage/archives/unpack.h"
#include "storage/reading/store_state.h"
#include "storage/shards/find_members.h"
#include "storage/shards/kept_members.h"
#include "storage/zip/zip_directory.h"

/* Parts of one far tar that are read at the same time. */
#define AT_A_TIME 4

/* ---- zips ---- */

/* Reads so many bytes, however many; a single read may not bring that many. */
static stk_status read_range(stk_store *store, const char *object, uint64_t offset, uint64_t size,
                             stk_bytes *bytes, stk_error *err) {
    stk_bytes part = {0};
    stk_status status = stk_bytes_reserve(bytes, size > 0 ? (size_t)size : 1)
                            ? STK_OK
                            : STK_FAIL_MEMORY(err, object);
    bytes->size = 0;
    while (status == STK_OK && bytes->size < size) {
        uint64_t left = size - bytes->size;
        uint64_t want = left < STK_SCAN_PART_BYTES ? left : STK_SCAN_PART_BYTES;
        status = stk_store_read_part(store, object, offset + bytes->size, want, &part, err);
        if (status == STK_OK && part.size != want) {
            status = STK_FAIL(err, STK_ERR_DATA, "cannot read %s/%s: it became shorter meanwhile",
                              stk_store_root(store), object);
        }
        if (status == STK_OK) {
            memcpy(bytes->data + bytes->size, part.data, part.size);
            bytes->size += part.size;
        }
    }
    stk_bytes_free(&part);
    return status;
}

/* Whether Stoker's own code reads all members, one by one. */
static bool reads_in_place(const stk_zip_directory *directory) {
    for (size_t i = 0; i < directory->count; i++) {
        const stk_zip_member *m = &directory->members[i];
        if ((m->method != STK_ZIP_STORED && m->method != STK_ZIP_DEFLATED) ||
            (m->method == STK_ZIP_DEFLATED && m->size > STK_STORAGE_MAX_BYTES)) {
            return false;
        }
    }
    return true;
}

static stk_status take_zip(stk_archive *archive, const stk_zip_directory *directory,
                           stk_error *err) {
    uint32_t shard = 0;
    stk_status status =
        stk_shard_index_add_shard(&archive->found, archive->name, archive->size, &shard, err);
    for (size_t i = 0; status == STK_OK && i < directory->count; i++) {
        const stk_zip_member *m = &directory->members[i];
        stk_index_member member = {.path = m->path,
                                   .offset = m->offset,
                                   .size = m->size,
                                   .shard = shard,
                                   .span = m->span,
                                   .crc32 = m->crc32,
                                   .method = m->method};
        status = stk_shard_index_add(&archive->found, &member, err);
    }
    archive->links = directory->links;
    archive->outside = directory->outside;
    archive->encrypted = directory->encrypted;
    archive->listed = status == STK_OK;
    return status;
}

/* Reads a zip's directory. The kind changes, if its members have to be unpacked by libarchive. */
static stk_status list_zip(stk_store *store, stk_archive *archive, const char *name,
                           stk_error *err) {
    stk_bytes bytes = {0};
    stk_zip_place place = {0};
    stk_zip_directory directory = {0};
    uint64_t tail =
        archive->size < STK_ZIP_TAIL_BYTES ? archive->size : (uint64_t)STK_ZIP_TAIL_BYTES;
    stk_status status = read_range(store, archive->name, archive->size - tail, tail, &bytes, err);
    STK_THEN(status,
             stk_zip_find_directory(name, bytes.data, bytes.size, archive->size, &place, err));
    STK_THEN(status, read_range(store, archive->name, place.offset, place.size, &bytes, err));
    STK_THEN(status, stk_zip_directory_read(&directory, name, &place, bytes.data, err));
    stk_bytes_free(&bytes);
    if (status == STK_OK && !reads_in_place(&directory)) {
        archive->kind = STK_ARCHIVE_PACKED;
    } else if (status == STK_OK) {
        status = take_zip(archive, &directory, err);
    }
    stk_zip_directory_free(&directory);
    return status;
}

/* ---- tars ---- */

static stk_status list_tar(stk_store *store, const stk_archive_folders *folders,
                           stk_archive *archive, stk_error *err) {
    atomic_size_t no_texts = 0;
    stk_tar_counts counts = {0};
    stk_status status =
        stk_shard_scan(store, archive->name, AT_A_TIME, &no_texts, &archive->found, &counts, err);
    archive->links = counts.links;
    archive->outside = counts.unknown;
    archive->listed = status == STK_OK;
    if (status == STK_OK && stk_kept_members_is_worth_it(store, &archive->found)) {
        stk_kept_members_save(store, folders->lists, archive->name, archive->version,
                              &archive->found);
    }
    return status;
}

/* ---- all ---- */

/* Finds out the kind by the first bytes. */
static stk_status find_kind(stk_store *store, stk_archive *archive, stk_error *err) {
    stk_bytes head = {0};
    stk_status status = STK_OK;
    if (archive->size > 0) {
        status = stk_store_read_part(store, archive->name, 0, STK_ARCHIVE_HEAD_BYTES, &head, err);
    }
    if (status == STK_OK) {
        archive->kind = stk_archive_kind_of(head.data, head.size, &archive->format);
    }
    stk_bytes_free(&head);
    if (archive->kind == STK_ARCHIVE_NONE && stk_str_ends_with_nocase(archive->name, ".tar")) {
        archive->kind = STK_ARCHIVE_TAR; /* old tars have no magic; others are refused later */
        archive->format = "tar";
    }
    if (archive->kind == STK_ARCHIVE_NONE && stk_archive_is_bson(archive->name, NULL)) {
        archive->kind = STK_ARCHIVE_BSON; /* has no magic either */
        archive->format = "BSON";
    }
    if (status == STK_OK && archive->kind == STK_ARCHIVE_NONE) {
        status = STK_FAIL(err, STK_ERR_DATA,
                          "%s/%s is no archive that Stoker knows, by its first bytes; copy it "
                          "again, or unpack it by hand",
                          store->base, archive->name);
    }
    return status;
}

stk_status stk_archive_look(stk_store *store, const stk_archive_folders *folders,
                            stk_archive *archive, stk_error *err) {
    char *name = stk_path_join(store->base, archive->name);
    stk_status status = name != NULL
                            ? stk_store_measure(store, archive->name, archive->version,
                                                sizeof archive->version, &archive->size, err)
                            : STK_FAIL_MEMORY(err, archive->name);
    STK_THEN(status, find_kind(store, archive, err));
    if (status == STK_OK && archive->kind == STK_ARCHIVE_TAR && !store->options.refresh) {
        archive->listed = stk_kept_members_load(store, folders->lists, archive->name,
                                                archive->version, &archive->found);
    } else if (status == STK_OK && archive->kind == STK_ARCHIVE_BSON) {
        archive->listed =
            !store->options.refresh && stk_archive_recall_bson(store, folders, archive);
    } else if (status == STK_OK && archive->kind != STK_ARCHIVE_TAR) {
        archive->listed = stk_archive_recall_unpacked(store, folders->unpacked, archive);
    }
    if (status == STK_OK && archive->kind == STK_ARCHIVE_ZIP && !archive->listed) {
        status = list_zip(store, archive, name, err);
    }
    stk_mem_free(name);
    return status;
}

stk_status stk_archive_list(stk_store *store, const stk_archive_folders *folders,
                            stk_archive *archive, stk_error *err) {
    return archive->kind == STK_ARCHIVE_TAR ? list_tar(store, folders, archive, err)
           : archive->kind == STK_ARCHIVE_BSON
               ? stk_archive_list_bson(store, folders, archive, err)
               : stk_archive_unpack(store, folders->unpacked, archive, err);
}
