/* kept_members.c - loads and stores the members of one object. */
#include "storage/shards/kept_members.h"

#include <string.h>

#include "base/mem.h"
#include "base/numbers/checksum.h"
#include "base/str.h"

/* The headers of a near tar with fewer members are read as quickly as a stored list of them. */
#define WORTH_IT 20000

/* Path of the file that stores an object's members; NULL: no memory, or nothing is stored. */
static char *kept_file(const stk_store *store, const char *folder, const char *object) {
    if (folder == NULL) {
        return NULL;
    }
    char *name = stk_store_real_name(store, object);
    char *file = NULL;
    if (name != NULL) {
        file = stk_str_format("%s/%016llx.shards", folder,
                              (unsigned long long)stk_checksum(name, strlen(name)));
    }
    stk_mem_free(name);
    return file;
}

bool stk_kept_members_load(const stk_store *store, const char *folder, const char *object,
                           const char *version, stk_shard_index *index) {
    stk_bytes bytes = {0};
    char *file = kept_file(store, folder, object);
    bool good = file != NULL && stk_path_is_file(file) &&
                stk_file_read_into(file, 0, &bytes, NULL) == STK_OK &&
                stk_shard_index_load(index, file, &bytes, NULL) == STK_OK;
    if (good && !stk_str_equal(index->origin, version)) {
        stk_shard_index_free(index);
        good = false;
    }
    stk_bytes_free(&bytes);
    stk_mem_free(file);
    return good;
}

void stk_kept_members_save(const stk_store *store, const char *folder, const char *object,
                           const char *version, stk_shard_index *index) {
    char *file = kept_file(store, folder, object);
    if (file != NULL && stk_dir_make(folder, NULL) == STK_OK) {
        (void)(stk_shard_index_save(index, version, file, NULL) == STK_OK);
    }
    stk_mem_free(file);
}

bool stk_kept_members_is_worth_it(const stk_store *store, const stk_shard_index *index) {
    return stk_store_is_remote(store) || index->member_count >= WORTH_IT;
}
