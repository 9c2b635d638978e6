/*
 * members.c - the lookup from a path to its member. To save memory, the tree alone holds the paths,
 * and equal labels share one text.
 */
#include "storage/tar/members.h"

#include <string.h>

#include "base/error.h"
#include "base/map.h"
#include "base/mem.h"

/* Only texts up to this length are shared: longer ones are no labels. */
#define SHARED_TEXT_BYTES 32

/* A member, without its path. */
typedef struct member {
    uint64_t offset;
    uint64_t checksum;
    const char *text; /* owned by the index; or NULL */
    uint64_t span;    /* as in stk_index_member */
    uint32_t crc32;
    uint32_t shard; /* number of its tar in the index */
    uint16_t method;
    bool has_checksum;
} member;

struct stk_shards {
    stk_tree tree;         /* the value of a path is the number of its member, or STK_NO_MEMBER */
    member *members;       /* owned */
    size_t count;          /* of them */
    stk_shard_index index; /* owned: names of tars and texts, but no members */
};

/* Copies a text, or returns the earlier copy of an equal label. */
static const char *share_text(stk_text_blocks *texts, stk_map *seen, const char *text) {
    size_t found;
    bool added = true;
    size_t length = strlen(text);
    bool is_short = length <= SHARED_TEXT_BYTES;
    if (is_short && stk_map_find(seen, text, &found)) {
        return (const char *)found;
    }
    const char *copy = stk_text_blocks_keep(texts, text, length);
    if (copy == NULL || (is_short && !stk_map_add(seen, copy, (size_t)copy, &added))) {
        return NULL;
    }
    return copy;
}

/* Copies members and texts, but not the paths, which the tree has already. */
static stk_status take_members(stk_shards *shards, const stk_shard_index *index, stk_error *err) {
    stk_map seen = {0};
    uint32_t number;
    uint32_t first = (uint32_t)shards->index.shard_count;
    size_t count = shards->count + index->member_count;
    member *members = stk_mem_resize(shards->members, count > 0 ? count : 1, sizeof *members);
    shards->members = members != NULL ? members : shards->members;
    stk_status status = members != NULL ? STK_OK : STK_FAIL_MEMORY(err, "the list of members");
    for (size_t i = 0; status == STK_OK && i < index->shard_count; i++) {
        const stk_index_shard *shard = &index->shards[i];
        status = stk_shard_index_add_shard(&shards->index, shard->name, shard->size, &number, err);
        if (status == STK_OK) {
            shards->index.shards[number].unpacked = shard->unpacked;
        }
    }
    for (size_t i = 0; status == STK_OK && i < index->member_count; i++) {
        const stk_index_member *m = &index->members[i];
        const char *text =
            m->text != NULL ? share_text(&shards->index.texts, &seen, m->text) : NULL;
        if (m->text != NULL && text == NULL) {
            status = STK_FAIL_MEMORY(err, "the list of members");
        }
        shards->members[shards->count++] = (member){.offset = m->offset,
                                                    .checksum = m->checksum,
                                                    .text = text,
                                                    .span = m->span,
                                                    .crc32 = m->crc32,
                                                    .shard = first + m->shard,
                                                    .method = m->method,
                                                    .has_checksum = m->has_checksum};
    }
    stk_map_free(&seen);
    return status;
}

stk_status stk_shards_new(stk_shards **out, stk_tree *tree, const stk_shard_index *index,
                          stk_error *err) {
    stk_shards *shards = stk_mem_new(1, sizeof *shards);
    if (shards == NULL) {
        stk_tree_free(tree);
        return STK_FAIL_MEMORY(err, "the shards");
    }
    shards->tree = *tree;
    memset(tree, 0, sizeof *tree);
    stk_status status = take_members(shards, index, err);
    if (status != STK_OK) {
        stk_shards_close(shards);
        return status;
    }
    *out = shards;
    return STK_OK;
}

stk_status stk_shards_extend(stk_shards *shards, const stk_shard_index *index, const char *version,
                             stk_error *err) {
    stk_status status = STK_OK;
    for (size_t i = 0; status == STK_OK && i < index->member_count; i++) {
        const stk_index_member *m = &index->members[i];
        status = stk_tree_add(&shards->tree, m->path, strlen(m->path), m->size, version,
                              shards->count + i, err);
    }
    STK_THEN(status, take_members(shards, index, err));
    STK_THEN(status, stk_tree_finish(&shards->tree, err));
    return status;
}

void stk_shards_close(stk_shards *shards) {
    if (shards != NULL) {
        stk_tree_free(&shards->tree);
        stk_mem_free(shards->members);
        stk_shard_index_free(&shards->index);
        stk_mem_free(shards);
    }
}

const stk_tree *stk_shards_tree(const stk_shards *shards) {
    return &shards->tree;
}

bool stk_shards_find(const stk_shards *shards, const char *path, stk_extent *extent) {
    const stk_tree_object *object = stk_tree_find(&shards->tree, path);
    if (object == NULL || object->value == STK_NO_MEMBER) {
        return false;
    }
    const member *m = &shards->members[object->value];
    *extent = (stk_extent){.object = shards->index.shards[m->shard].name,
                           .offset = m->offset,
                           .length = m->span > 0 ? m->span : object->size,
                           .has_checksum = m->has_checksum,
                           .unpacked = shards->index.shards[m->shard].unpacked,
                           .zipped = m->span > 0,
                           .checksum = m->checksum,
                           .size = object->size,
                           .crc32 = m->crc32,
                           .method = m->method};
    return true;
}

const char *stk_shards_text(const stk_shards *shards, const char *path) {
    const stk_tree_object *object = stk_tree_find(&shards->tree, path);
    return object != NULL && object->value != STK_NO_MEMBER ? shards->members[object->value].text
                                                            : NULL;
}
