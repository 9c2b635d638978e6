/*
 * made_files.c - shows files that were made of an object of the location, beside its members of
 * archives. Each file becomes a shard with one member, since a member is a range of a shard.
 */
#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "base/files/disk.h"
#include "base/mem.h"
#include "base/numbers/checksum.h"
#include "base/str.h"
#include "storage/reading/store_state.h"

char *stk_store_made_folder(const stk_store *store, const char *object) {
    char *name = store->made != NULL ? stk_store_real_name(store, object) : NULL;
    char *folder = NULL;
    if (name != NULL) {
        folder = stk_str_format("%s/%016" PRIx64, store->made, stk_checksum(name, strlen(name)));
    }
    stk_mem_free(name);
    return folder;
}

static stk_status add_file(stk_shard_index *index, const char *folder, const char *below,
                           const char *name, const char *shown, stk_error *err) {
    struct stat info;
    stk_index_member member = {0};
    char *path = stk_path_join(folder, name);
    char *object = stk_path_join(below, name);
    char *member_path = stk_path_join(shown, name);
    stk_status status = path != NULL && object != NULL && member_path != NULL
                            ? STK_OK
                            : STK_FAIL_MEMORY(err, folder);
    if (status == STK_OK && stk_disk_look(path, &info) != 0) {
        status = STK_FAIL(err, STK_ERR_STORAGE,
                          "cannot look at %s; remove its folder and try again", path);
    }
    if (status == STK_OK) {
        member.path = member_path;
        member.size = (uint64_t)info.st_size;
        status = stk_shard_index_add_shard(index, object, member.size, &member.shard, err);
    }
    if (status == STK_OK) {
        index->shards[member.shard].unpacked = true;
        status = stk_shard_index_add(index, &member, err);
    }
    stk_mem_free(path);
    stk_mem_free(object);
    stk_mem_free(member_path);
    return status;
}

/* Gives the store a look-up of members and the folder that they lie in, if it has none. */
static stk_status open_mounts(stk_store *store, stk_error *err) {
    stk_tree no_tree = {0};
    stk_shard_index no_members = {0};
    stk_status status = STK_OK;
    if (store->unpacked == NULL) {
        status =
            stk_storage_local.open(&store->unpacked, store->made, &store->options, NULL, NULL, err);
    }
    if (status == STK_OK && store->mounts == NULL) {
        status = stk_shards_new(&store->mounts, &no_tree, &no_members, err);
    }
    return status;
}

stk_status stk_store_show(stk_store *store, const char *folder, const char *shown,
                          const char *version, stk_error *err) {
    stk_dir_list list = {0};
    stk_shard_index index = {0};
    size_t length = store->made != NULL ? strlen(store->made) : 0;
    if (length == 0 || strncmp(folder, store->made, length) != 0 || folder[length] != '/') {
        return STK_FAIL(err, STK_ERR_INTERNAL, "%s is no folder for files made of %s", folder,
                        store->base);
    }
    stk_status status = stk_dir_read(folder, &list, err);
    for (size_t i = 0; status == STK_OK && i < list.count; i++) {
        if (!list.entries[i].is_dir) {
            status =
                add_file(&index, folder, folder + length + 1, list.entries[i].name, shown, err);
        }
    }
    STK_THEN(status, open_mounts(store, err));
    STK_THEN(status, stk_shards_extend(store->mounts, &index, version, err));
    stk_shard_index_free(&index);
    stk_dir_list_free(&list);
    return status;
}
