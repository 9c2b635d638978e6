/* shards.c - shows the members of all shards as one tree. */
#include "storage/shards/shards.h"

#include <string.h>

#include "base/error.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "storage/tar/shard_index.h"
#include "storage/shards/find_members.h"
#include "storage/shards/shard_names.h"
#include "storage/reading/store_state.h"

/* How paths of members are shown. */
typedef struct showing {
    const stk_shard_members *found;
    size_t cut; /* bytes at the start of every path that are left out */
    const char *
        *splits;  /* owned: for each shard the folder that its members are shown in, or NULL */
    stk_str path; /* of the last member shown */
} showing;

/* Length of the folder that all members share, with its slash; 0: none, or it is a split's. */
static size_t common_folder(const stk_shard_members *found) {
    const stk_index_member *members = found->index.members;
    size_t count = found->index.member_count;
    if (count == 0 || found->staged > 0) {
        return 0;
    }
    const char *first = members[0].path;
    size_t length = strcspn(first, "/");
    if (first[length] == '\0' || stk_shard_is_split(first, length)) {
        return 0;
    }
    for (size_t i = 1; i < count; i++) {
        if (strncmp(members[i].path, first, length + 1) != 0) {
            return 0;
        }
    }
    return length + 1;
}

/* If the shards belong to several splits, chooses the folder of each shard's split. */
static stk_status choose_splits(showing *s, const char *only, stk_error *err) {
    const stk_shard_index *index = &s->found->index;
    const char *any = NULL;
    bool differ = false;
    s->splits = stk_mem_new(index->shard_count, sizeof *s->splits);
    if (s->splits == NULL) {
        return STK_FAIL_MEMORY(err, "the list of shards");
    }
    for (size_t i = 0; i < index->shard_count; i++) {
        const char *split = stk_shard_split(index->shards[i].name);
        s->splits[i] = split != NULL ? split : "train";
        differ = differ || (any != NULL && !stk_str_equal(any, s->splits[i]));
        any = s->splits[i];
    }
    for (size_t i = 0; i < index->shard_count && (!differ || only != NULL); i++) {
        s->splits[i] = NULL;
    }
    return STK_OK;
}

/* The path under which a member is shown; valid until the next call; NULL: no memory. */
static const char *show(showing *s, size_t number) {
    const stk_index_member *m = &s->found->index.members[number];
    if (number < s->found->staged) {
        return m->path;
    }
    const char *path = m->path + s->cut;
    const char *split = s->splits[m->shard];
    if (split == NULL || stk_shard_is_split(path, strcspn(path, "/"))) {
        return path;
    }
    stk_str_clear(&s->path);
    stk_str_append(&s->path, split);
    stk_str_append(&s->path, "/");
    stk_str_append(&s->path, path);
    return stk_str_ok(&s->path) ? stk_str_text(&s->path) : NULL;
}

/* Adds all members to a tree. */
static stk_status fill_tree(showing *s, stk_tree *tree, stk_error *err) {
    const stk_shard_members *found = s->found;
    stk_status status = STK_OK;
    for (size_t i = 0; status == STK_OK && i < found->index.member_count; i++) {
        const stk_index_member *m = &found->index.members[i];
        const char *path = show(s, i);
        const char *version = found->versions[m->shard];
        status = path != NULL ? stk_tree_add(tree, path, strlen(path), m->size,
                                             version != NULL ? version : "", i, err)
                              : STK_FAIL_MEMORY(err, "the list of members");
    }
    return status;
}

/* Of several members with one path, the last in a tar counts; two tars must not share a path. */
static stk_status check_twice(showing *s, const char *root, stk_error *err) {
    const stk_shard_index *index = &s->found->index;
    stk_tree all = {0};
    stk_map seen = {0};
    stk_status status = fill_tree(s, &all, err);
    for (size_t i = 0; status == STK_OK && i < all.count; i++) {
        bool added;
        size_t first;
        uint32_t shard = index->members[all.objects[i].value].shard;
        if (!stk_map_add(&seen, all.objects[i].path, shard, &added)) {
            status = STK_FAIL_MEMORY(err, "the list of members");
        } else if (!added && stk_map_find(&seen, all.objects[i].path, &first) && first != shard) {
            status = STK_FAIL(err, STK_ERR_DATA,
                              "two shards of %s have a member %s: %s and %s; remove one of the "
                              "shards, or name them by split (train-000.tar, val-000.tar)",
                              root, all.objects[i].path, index->shards[first].name,
                              index->shards[shard].name);
        }
    }
    stk_map_free(&seen);
    stk_tree_free(&all);
    return status;
}

/* Adds the objects beside the tars under their own paths. */
static stk_status add_others(stk_store *store, const stk_shard_files *files, stk_tree *tree,
                             stk_error *err) {
    stk_status status = STK_OK;
    for (size_t i = 0; status == STK_OK && i < files->others.count; i++) {
        char version[STK_STORE_VERSION_BYTES];
        const char *path = files->others.items[i];
        status = stk_store_version(store, path, version, sizeof version, err);
        STK_THEN(status, stk_tree_add(tree, path, strlen(path), stk_store_size(store, path),
                                      version, STK_NO_MEMBER, err));
    }
    return status;
}

/* Fills the tree with all members and the objects beside the tars. */
static stk_status show_all(stk_tree *tree, stk_store *store, const stk_shard_files *files,
                           const char *only, const stk_shard_members *found, stk_error *err) {
    showing s = {.found = found, .cut = common_folder(found)};
    stk_status status = choose_splits(&s, only, err);
    STK_THEN(status, fill_tree(&s, tree, err));
    size_t added = tree->count;
    STK_THEN(status, stk_tree_finish(tree, err));
    if (status == STK_OK && tree->count < added) {
        status = check_twice(&s, store->root, err);
    }
    if (status == STK_OK && files->others.count > 0) {
        status = add_others(store, files, tree, err);
        STK_THEN(status, stk_tree_finish(tree, err));
    }
    stk_mem_free(s.splits);
    stk_str_free(&s.path);
    return status;
}

stk_status stk_shards_open(stk_shards **shards, stk_store *store, const char *only,
                           const char *kept, bool refresh, const stk_events *events,
                           stk_error *err) {
    stk_shard_files files = {0};
    stk_shard_members found = {0};
    stk_tree tree = {0};
    stk_status status = stk_shard_files_list(store, only, &files, err);
    if (status == STK_OK && files.is_staging && !files.has_index) {
        status = STK_FAIL(err, STK_ERR_DATA,
                          "staging of %s is not finished: run the same `stoker stage` again to "
                          "finish it",
                          store->root);
    }
    STK_THEN(status,
             stk_shard_members_find(store, &files, only, kept, refresh, events, &found, err));
    STK_THEN(status, show_all(&tree, store, &files, only, &found, err));
    STK_THEN(status, stk_shards_new(shards, &tree, &found.index, err));
    stk_tree_free(&tree);
    stk_shard_members_free(&found);
    stk_shard_files_free(&files);
    return status;
}
