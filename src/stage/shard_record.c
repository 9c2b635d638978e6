/* shard_record.c - writes and reads records of finished shards, and lists of bad pictures. */
#include "stage/shard_record.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/text/json.h"

stk_status stk_stage_bad_add(stk_stage_bad_list *list, size_t picture, const char *reason,
                             stk_error *err) {
    char *copy = stk_mem_strdup(reason);
    if (copy == NULL || !STK_RESERVE(list->items, list->capacity, list->count + 1)) {
        stk_mem_free(copy);
        return STK_FAIL_MEMORY(err, "the list of bad pictures");
    }
    list->items[list->count++] = (stk_stage_bad){.picture = picture, .reason = copy};
    return STK_OK;
}

void stk_stage_bad_cut(stk_stage_bad_list *list, size_t count) {
    while (list->count > count) {
        stk_mem_free(list->items[--list->count].reason);
    }
}

void stk_stage_bad_free(stk_stage_bad_list *list) {
    stk_stage_bad_cut(list, 0);
    stk_mem_free(list->items);
    memset(list, 0, sizeof *list);
}

/* Path of ".train-000000.record" in the folder; NULL: no memory. */
static char *record_path(const char *folder, const stk_stage_shard *shard) {
    char name[STK_STAGE_NAME_SIZE];
    stk_stage_shard_name(shard, name);
    return stk_str_format("%s/.%.*s.record", folder, (int)(strlen(name) - strlen(".tar")), name);
}

stk_status stk_stage_record_save(const char *folder, const stk_staging_list *list,
                                 const stk_stage_shard *shard, stk_shard_index *index,
                                 const stk_stage_bad *bad, size_t bad_count, stk_error *err) {
    stk_str origin = {0};
    stk_json_writer writer = stk_json_write_to(&origin, 0);
    stk_json_begin_object(&writer);
    stk_json_key(&writer, "plan");
    stk_json_put_string(&writer, list->checksum);
    stk_json_key(&writer, "bad");
    stk_json_begin_array(&writer);
    for (size_t i = 0; i < bad_count; i++) {
        stk_json_begin_object(&writer);
        stk_json_key(&writer, "picture");
        stk_json_put_int(&writer, (int64_t)bad[i].picture);
        stk_json_key(&writer, "reason");
        stk_json_put_string(&writer, bad[i].reason);
        stk_json_end_object(&writer);
    }
    stk_json_end_array(&writer);
    stk_json_end_object(&writer);
    char *path = record_path(folder, shard);
    stk_status status = path != NULL && stk_str_ok(&origin)
                            ? stk_shard_index_save(index, stk_str_text(&origin), path, err)
                            : STK_FAIL_MEMORY(err, "the record of a shard");
    stk_mem_free(path);
    stk_str_free(&origin);
    return status;
}

/* Whether the tar exists with the size in the record. */
static stk_status find_tar(const char *folder, const stk_stage_shard *shard,
                           const stk_shard_index *index, bool *there, stk_error *err) {
    char name[STK_STAGE_NAME_SIZE];
    struct stat info;
    char *path = stk_path_join(folder, stk_stage_shard_name(shard, name));
    if (path == NULL) {
        return STK_FAIL_MEMORY(err, name);
    }
    *there = index->shard_count == 1 && stk_str_equal(index->shards[0].name, name) &&
             stat(path, &info) == 0 && S_ISREG(info.st_mode) &&
             (uint64_t)info.st_size == index->shards[0].size;
    stk_mem_free(path);
    return STK_OK;
}

/* Reads the bad pictures of a record; *fits: the record is of this list and shard. */
static stk_status take_origin(const stk_staging_list *list, const stk_stage_shard *shard,
                              const stk_shard_index *index, stk_stage_bad_list *bad, bool *fits,
                              stk_error *err) {
    stk_json *origin = NULL;
    stk_error why = {0};
    stk_status status = stk_json_parse(index->origin, strlen(index->origin), &origin, &why);
    *fits = false;
    if (status != STK_OK) {
        return status == STK_ERR_MEMORY ? STK_FAIL(err, status, "%s", why.message) : STK_OK;
    }
    const char *checksum = stk_json_string(stk_json_get(origin, "plan"));
    const stk_json *pictures = stk_json_get(origin, "bad");
    *fits = checksum != NULL && stk_str_equal(checksum, list->checksum) &&
            index->member_count + stk_json_count(pictures) == shard->count;
    for (const stk_json *one = stk_json_at(pictures, 0); *fits && status == STK_OK && one != NULL;
         one = stk_json_next(pictures, one)) {
        const char *reason = stk_json_string(stk_json_get(one, "reason"));
        uint64_t picture = 0;
        *fits = reason != NULL && stk_json_u64(stk_json_get(one, "picture"), &picture) &&
                picture >= shard->first && picture - shard->first < shard->count;
        status = *fits ? stk_stage_bad_add(bad, (size_t)picture, reason, err) : STK_OK;
    }
    stk_json_free(origin);
    return status;
}

stk_status stk_stage_record_load(const char *folder, const stk_staging_list *list,
                                 const stk_stage_shard *shard, stk_shard_index *index,
                                 stk_stage_bad_list *bad, bool *finished, stk_error *err) {
    stk_bytes bytes = {0};
    stk_stage_bad_list found = {0};
    char *path = record_path(folder, shard);
    bool there = path != NULL && stk_path_is_file(path);
    stk_status status = path != NULL ? STK_OK : STK_FAIL_MEMORY(err, folder);
    memset(index, 0, sizeof *index);
    *finished = false;
    if (there) {
        status = stk_file_read_into(path, 0, &bytes, err);
    }
    /* A damaged record counts as missing. */
    if (status == STK_OK && there) {
        stk_error why = {0};
        status = stk_shard_index_load(index, path, &bytes, &why);
        there = status == STK_OK;
        status = status == STK_ERR_MEMORY ? STK_FAIL(err, status, "%s", why.message) : STK_OK;
    }
    if (status == STK_OK && there) {
        status = find_tar(folder, shard, index, &there, err);
    }
    if (status == STK_OK && there) {
        status = take_origin(list, shard, index, &found, finished, err);
    }
    for (size_t i = 0; status == STK_OK && *finished && i < found.count; i++) {
        status = stk_stage_bad_add(bad, found.items[i].picture, found.items[i].reason, err);
    }
    if (!*finished || status != STK_OK) {
        stk_shard_index_free(index);
    }
    stk_stage_bad_free(&found);
    stk_bytes_free(&bytes);
    stk_mem_free(path);
    return status;
}

stk_status stk_stage_record_drop(const char *folder, const stk_stage_shard *shard, stk_error *err) {
    char *path = record_path(folder, shard);
    stk_status status = path != NULL ? STK_OK : STK_FAIL_MEMORY(err, "the record of a shard");
    if (status == STK_OK && unlink(path) != 0 && errno != ENOENT) {
        status = STK_FAIL(err, STK_ERR_STORAGE, "cannot remove %s: %s", path, strerror(errno));
    }
    stk_mem_free(path);
    return status;
}
