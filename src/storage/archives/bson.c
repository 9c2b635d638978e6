/* bson.c - of the two shards of what is found, one is the BSON file, the other one its table. */
#include "storage/archives/bson.h"

#include <string.h>

#include "base/error.h"
#include "base/files/disk.h"
#include "base/mem.h"
#include "base/str.h"
#include "storage/archives/unpack.h"
#include "storage/object_ranges.h"
#include "storage/reading/store_state.h"
#include "storage/shards/kept_members.h"
#include "storage/tar/bson_scan.h"

/* Parts of one file that are read at the same time. */
#define AT_A_TIME 4

bool stk_archive_recall_bson(stk_store *store, const stk_archive_folders *folders,
                             stk_archive *archive) {
    struct stat info;
    bool good = folders->unpacked != NULL &&
                stk_kept_members_load(store, folders->lists, archive->name, archive->version,
                                      &archive->found) &&
                archive->found.shard_count == 2;
    if (good) {
        stk_index_shard *shards = archive->found.shards; /* sorted by name */
        stk_index_shard *table = &shards[stk_str_equal(shards[0].name, archive->name)];
        char *path = stk_path_join(folders->unpacked, table->name);
        table->unpacked = true;
        good = path != NULL && stk_disk_look(path, &info) == 0 &&
               (uint64_t)info.st_size == table->size;
        stk_mem_free(path);
    }
    if (!good) {
        stk_shard_index_free(&archive->found);
    }
    return good;
}

/* A BSON file being read. */
typedef struct reading {
    const stk_store *store;
    const stk_archive *archive;
} reading;

static bool must_end(void *user, uint64_t at) {
    const reading *r = user;
    (void)at;
    return stk_archive_check_end(r->store, r->archive, NULL) != STK_OK;
}

static stk_status scan_file(stk_store *store, const stk_archive *archive, stk_bson_scan *scan,
                            stk_error *err) {
    reading r = {.store = store, .archive = archive};
    stk_bson_how how = {.at_a_time = AT_A_TIME, .enough = must_end, .user = &r};
    stk_object_ranges ranges = {0};
    stk_range_source source;
    stk_status status = stk_object_ranges_open(&ranges, store, archive->name, &source, err);
    if (status == STK_OK) {
        status = stk_bson_read(&source, &how, scan, err);
        stk_object_ranges_close(&ranges);
    }
    STK_THEN(status, scan->is_whole ? STK_OK : stk_archive_check_end(store, archive, err));
    return status;
}

/* Writes the table and adds it to the members. */
static stk_status keep_table(const stk_store *store, const char *folder, stk_archive *archive,
                             const stk_csv *csv, stk_error *err) {
    stk_shard_index *found = &archive->found;
    char *output = stk_archive_output_name(store, archive, "table");
    char *path = output != NULL ? stk_path_join(folder, output) : NULL;
    char *shown = stk_str_format("%s.csv", archive->name);
    stk_index_member member = {.path = shown};
    stk_str text = {0};
    stk_csv_format(csv, &text);
    stk_status status = path != NULL && shown != NULL && stk_str_ok(&text)
                            ? stk_dir_make(folder, err)
                            : STK_FAIL_MEMORY(err, archive->name);
    STK_THEN(status, stk_file_write(path, stk_str_text(&text), text.length, err));
    STK_THEN(status, stk_shard_index_add_shard(found, output, text.length, &member.shard, err));
    if (status == STK_OK) {
        found->shards[member.shard].unpacked = true;
        member.size = text.length;
        status = stk_shard_index_add(found, &member, err);
    }
    stk_str_free(&text);
    stk_mem_free(shown);
    stk_mem_free(path);
    stk_mem_free(output);
    return status;
}

stk_status stk_archive_list_bson(stk_store *store, const stk_archive_folders *folders,
                                 stk_archive *archive, stk_error *err) {
    stk_bson_scan scan = {0};
    if (folders->unpacked == NULL) {
        return STK_FAIL(err, STK_ERR_DATA,
                        "there is no folder for the table in %s/%s; name one with --cache",
                        store->base, archive->name);
    }
    stk_status status = scan_file(store, archive, &scan, err);
    STK_THEN(status, stk_bson_index(&scan, archive->name, archive->stem, &archive->found, err));
    STK_THEN(status, keep_table(store, folders->unpacked, archive, &scan.csv, err));
    if (status == STK_OK) {
        archive->listed = true;
        stk_kept_members_save(store, folders->lists, archive->name, archive->version,
                              &archive->found);
    }
    stk_bson_scan_free(&scan);
    return status;
}
