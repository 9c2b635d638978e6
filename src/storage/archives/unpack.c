/*
 * unpack.c - unpacks with libarchive, which reads the archive through the store.
 *
 * Formats and filters are named one by one: libarchive's complete set has some that run programs or
 * that read files which an archive names.
 */
#include "storage/archives/unpack.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/statvfs.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/numbers/checksum.h"
#include "base/str.h"
#include "storage/reading/store_state.h"
#include "storage/shards/kept_members.h"

#ifdef STK_HAVE_ARCHIVE
#include <archive.h>
#include <archive_entry.h>

#include "storage/tar/member_path.h"

#define PIECE_BYTES ((size_t)1024 * 1024)

/* Limits on what strangers' archives unpack to; bytes that stay free on the disk. */
#define MOST_RATIO 1000
#define MOST_MEMBERS 10000000
#define KEEP_FREE_BYTES ((uint64_t)256 << 20)

#define READ_BYTES ((uint64_t)4 * 1024 * 1024)

/* One archive being unpacked. */
typedef struct unpacking {
    stk_store *store;
    stk_archive *archive;
    const char *folder;
    struct archive *reader;
    stk_bytes input;  /* bytes of the archive, for libarchive */
    uint64_t at;      /* where libarchive reads next */
    stk_error failed; /* why the location brought no bytes, if it did not */
    stk_file_writer *output;
    uint8_t *piece; /* owned */
    uint64_t limit; /* bytes that may be written */
    uint64_t made;  /* bytes written */
    uint32_t shard; /* number of the output in `found` */
    stk_str path;   /* of the member */
    stk_error *err;
} unpacking;

/* ---- what libarchive reads ---- */

static la_ssize_t give_bytes(struct archive *reader, void *user, const void **bytes) {
    unpacking *u = user;
    if (u->at >= u->archive->size) {
        return 0;
    }
    if (stk_store_read_part(u->store, u->archive->name, u->at, READ_BYTES, &u->input, &u->failed) !=
        STK_OK) {
        archive_set_error(reader, EIO, "it cannot be read");
        return ARCHIVE_FATAL;
    }
    *bytes = u->input.data;
    u->at += u->input.size;
    return (la_ssize_t)u->input.size;
}

static la_int64_t seek_bytes(struct archive *reader, void *user, la_int64_t offset, int whence) {
    unpacking *u = user;
    int64_t from = whence == SEEK_SET   ? 0
                   : whence == SEEK_CUR ? (int64_t)u->at
                                        : (int64_t)u->archive->size;
    (void)reader;
    if (offset > INT64_MAX - from || offset < -from) {
        return ARCHIVE_FATAL;
    }
    u->at = (uint64_t)(from + offset);
    return from + offset;
}

static la_int64_t skip_bytes(struct archive *reader, void *user, la_int64_t count) {
    unpacking *u = user;
    uint64_t left = u->archive->size > u->at ? u->archive->size - u->at : 0;
    uint64_t skipped = (uint64_t)count < left ? (uint64_t)count : left;
    (void)reader;
    u->at += skipped;
    return (la_int64_t)skipped;
}

/* The functions give warnings where libarchive was built without a format; opening fails then. */
static void choose_formats(struct archive *reader) {
    archive_read_support_filter_gzip(reader);
    archive_read_support_filter_bzip2(reader);
    archive_read_support_filter_xz(reader);
    archive_read_support_filter_zstd(reader);
    archive_read_support_filter_lz4(reader);
    archive_read_support_format_7zip(reader);
    archive_read_support_format_tar(reader);
    archive_read_support_format_zip(reader);
    archive_read_support_format_rar(reader);
    archive_read_support_format_rar5(reader);
    archive_read_support_format_raw(reader);
}

/* ---- what is written ---- */

/* Fails for one of the reasons that libarchive gave, or for what stood behind it. */
static stk_status fail_reading(unpacking *u) {
    if (u->failed.status != STK_OK) {
        return stk_error_pass(&u->failed, u->err);
    }
    const char *why = archive_error_string(u->reader);
    return STK_FAIL(u->err, STK_ERR_DATA,
                    "cannot unpack %s/%s (%s): %.200s; copy it again, or unpack it by hand",
                    u->store->base, u->archive->name, u->archive->format,
                    why != NULL ? why : "it is damaged");
}

static stk_status fail_writing(unpacking *u, const stk_error *why) {
    return STK_FAIL(u->err, why->status == STK_ERR_MEMORY ? STK_ERR_MEMORY : STK_ERR_DATA,
                    "cannot unpack %s/%s into %s: %s; unpack it by hand, or name a folder on "
                    "another disk with --cache",
                    u->store->base, u->archive->name, u->folder, why->message);
}

/* Writes the current member's bytes behind those of the others. */
static stk_status write_member(unpacking *u, uint64_t *size) {
    stk_status status = STK_OK;
    *size = 0;
    while (status == STK_OK) {
        stk_error why = {0};
        la_ssize_t got = archive_read_data(u->reader, u->piece, PIECE_BYTES);
        if (got == 0) {
            break;
        }
        if (got < 0) {
            return fail_reading(u);
        }
        if ((uint64_t)got > u->limit - u->made) {
            return STK_FAIL(u->err, STK_ERR_DATA,
                            "cannot unpack %s/%s: it has more than %" PRIu64
                            " bytes when unpacked, which is more than the disk of %s has room for "
                            "or an honest archive would have; unpack it by hand",
                            u->store->base, u->archive->name, u->limit, u->folder);
        }
        if (stk_file_append(u->output, u->piece, (size_t)got, &why) != STK_OK) {
            return fail_writing(u, &why);
        }
        u->made += (uint64_t)got;
        *size += (uint64_t)got;
        status = stk_archive_check_end(u->store, u->archive, u->err);
    }
    return status;
}

/* Whether an entry is a file to be shown, with its path in u->path; counts it where it is not. */
static bool is_shown(unpacking *u, struct archive_entry *entry) {
    stk_archive *archive = u->archive;
    const char *raw = archive_entry_pathname_utf8(entry);
    raw = raw != NULL ? raw : archive_entry_pathname(entry);
    if (archive_format(u->reader) == ARCHIVE_FORMAT_RAW) {
        raw = archive->stem;
    }
    if (archive_entry_filetype(entry) == AE_IFDIR) {
        return false;
    }
    if (archive_entry_filetype(entry) != AE_IFREG || archive_entry_hardlink(entry) != NULL) {
        archive->links++;
        return false;
    }
    if (archive_entry_is_encrypted(entry) != 0) {
        archive->encrypted++;
        return false;
    }
    if (raw == NULL || raw[0] == '/' || !stk_member_path_clean(raw, &u->path)) {
        archive->outside++;
        return false;
    }
    return !stk_member_path_is_hidden(stk_str_text(&u->path));
}

static stk_status take_entry(unpacking *u, struct archive_entry *entry) {
    stk_index_member member = {.offset = u->made, .shard = u->shard};
    if (!is_shown(u, entry)) {
        return stk_str_ok(&u->path) ? STK_OK : STK_FAIL_MEMORY(u->err, u->archive->name);
    }
    if (u->archive->found.member_count >= MOST_MEMBERS) {
        return STK_FAIL(u->err, STK_ERR_DATA,
                        "cannot unpack %s/%s: it has more than %d members; unpack it by hand",
                        u->store->base, u->archive->name, MOST_MEMBERS);
    }
    stk_status status = write_member(u, &member.size);
    member.path = stk_str_text(&u->path);
    STK_THEN(status, stk_str_ok(&u->path) ? STK_OK : STK_FAIL_MEMORY(u->err, u->archive->name));
    STK_THEN(status, stk_shard_index_add(&u->archive->found, &member, u->err));
    return status;
}

static stk_status take_all(unpacking *u) {
    stk_status status = STK_OK;
    struct archive_entry *entry = NULL;
    int got = ARCHIVE_OK;
    while (status == STK_OK) {
        got = archive_read_next_header(u->reader, &entry);
        if (got == ARCHIVE_EOF) {
            break;
        }
        status = stk_archive_check_end(u->store, u->archive, u->err);
        if (status == STK_OK && got < ARCHIVE_WARN) {
            u->archive->encrypted += archive_read_has_encrypted_entries(u->reader) > 0;
            status = fail_reading(u);
        }
        STK_THEN(status, take_entry(u, entry));
    }
    return status;
}

/* How many bytes may be written. */
static stk_status find_limit(unpacking *u) {
    struct statvfs disk;
    stk_error why = {0};
    uint64_t size = u->archive->size;
    u->limit = size < UINT64_MAX / MOST_RATIO ? size * MOST_RATIO : UINT64_MAX;
    if (stk_dir_make(u->folder, &why) != STK_OK) {
        return fail_writing(u, &why);
    }
    if (statvfs(u->folder, &disk) == 0) {
        uint64_t free_bytes = (uint64_t)disk.f_bavail * disk.f_frsize;
        uint64_t room = free_bytes > KEEP_FREE_BYTES ? free_bytes - KEEP_FREE_BYTES : 0;
        u->limit = room < u->limit ? room : u->limit;
    }
    return STK_OK;
}

static stk_status open_reader(unpacking *u) {
    u->reader = archive_read_new();
    u->piece = stk_mem_raw(PIECE_BYTES, 1);
    if (u->reader == NULL || u->piece == NULL) {
        return STK_FAIL_MEMORY(u->err, u->archive->name);
    }
    choose_formats(u->reader);
    archive_read_set_read_callback(u->reader, give_bytes);
    archive_read_set_seek_callback(u->reader, seek_bytes);
    archive_read_set_skip_callback(u->reader, skip_bytes);
    archive_read_set_callback_data(u->reader, u);
    return archive_read_open1(u->reader) == ARCHIVE_OK ? STK_OK : fail_reading(u);
}
#endif

bool stk_archive_recall_unpacked(stk_store *store, const char *folder, stk_archive *archive) {
    stk_bytes end = {0};
    bool good =
        stk_kept_members_load(store, folder, archive->name, archive->version, &archive->found) &&
        archive->found.shard_count == 1;
    if (good) {
        stk_index_shard *shard = &archive->found.shards[0];
        char *path = stk_path_join(folder, shard->name);
        uint64_t last = shard->size > 0 ? shard->size - 1 : 0;
        shard->unpacked = true;
        good = path != NULL && stk_path_is_file(path) &&
               stk_file_read_part(path, last, 2, &end, NULL) == STK_OK &&
               last + end.size == shard->size;
        stk_mem_free(path);
    }
    stk_bytes_free(&end);
    if (!good) {
        stk_shard_index_free(&archive->found);
    }
    return good;
}

char *stk_archive_output_name(const stk_store *store, const stk_archive *archive,
                              const char *ending) {
    char *name = stk_store_real_name(store, archive->name);
    char *output = NULL;
    if (name != NULL) {
        output =
            stk_str_format("%016" PRIx64 "-%016" PRIx64 ".%s", stk_checksum(name, strlen(name)),
                           stk_checksum(archive->version, strlen(archive->version)), ending);
    }
    stk_mem_free(name);
    return output;
}

#ifdef STK_HAVE_ARCHIVE
/* Unpacks into the file `output` and completes it. */
static stk_status unpack_into(unpacking *u, const char *output, const char *path) {
    stk_error why = {0};
    stk_shard_index *found = &u->archive->found;
    stk_status status = stk_shard_index_add_shard(found, output, 0, &u->shard, u->err);
    STK_THEN(status, open_reader(u));
    if (status == STK_OK && stk_file_create(&u->output, path, &why) != STK_OK) {
        status = fail_writing(u, &why);
    }
    STK_THEN(status, take_all(u));
    if (status != STK_OK) {
        stk_file_discard(u->output);
        return status;
    }
    if (stk_file_commit(u->output, &why) != STK_OK) {
        return fail_writing(u, &why);
    }
    found->shards[u->shard].size = u->made;
    found->shards[u->shard].unpacked = true;
    stk_kept_members_save(u->store, u->folder, u->archive->name, u->archive->version, found);
    return STK_OK;
}
#endif

stk_status stk_archive_unpack(stk_store *store, const char *folder, stk_archive *archive,
                              stk_error *err) {
#ifdef STK_HAVE_ARCHIVE
    unpacking u = {.store = store, .archive = archive, .folder = folder, .err = err};
    if (folder == NULL) {
        return STK_FAIL(err, STK_ERR_DATA,
                        "cannot unpack %s/%s: there is no folder for it; name one with --cache, or "
                        "unpack it by hand",
                        store->base, archive->name);
    }
    stk_status status = find_limit(&u);
    char *output = stk_archive_output_name(store, archive, "members");
    char *path = output != NULL ? stk_path_join(folder, output) : NULL;
    STK_THEN(status,
             path != NULL ? unpack_into(&u, output, path) : STK_FAIL_MEMORY(err, archive->name));
    archive->listed = status == STK_OK;
    archive_read_free(u.reader);
    stk_bytes_free(&u.input);
    stk_str_free(&u.path);
    stk_mem_free(u.piece);
    stk_mem_free(path);
    stk_mem_free(output);
    return status;
#else
    (void)folder;
    return STK_FAIL(err, STK_ERR_DATA,
                    "cannot unpack %s/%s (%s): this build of Stoker has no libarchive; unpack it "
                    "by hand, or build Stoker where libarchive is installed (-DSTK_ARCHIVE=ON)",
                    store->base, archive->name, archive->format);
#endif
}
