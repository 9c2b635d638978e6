/*
 * shard_index.c - the index of shards as a file.
 *
 *     8 bytes  "STOKERIX"        u32 version          u32 0
 *     origin                     a text
 *     u32 tars                   for each: u64 size, its name as a text
 *     u64 members                for each: u64 offset, u64 size, u64 checksum, u32 tar, u32 flags,
 *                                its path as a text and, if the flags say so, its contents
 *     u64 checksum               of all before it
 *
 * A text is a u32 with its length, its bytes, and a NUL, so that a loaded text can be used without
 * a copy. The checksum is computed piece by piece, each seeded with that of the pieces before, so a
 * writer need not hold the whole file in memory.
 */
#include "storage/tar/shard_index.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/numbers/checksum.h"

#define VERSION 1
#define PIECE_BYTES ((size_t)1024 * 1024)

#define FLAG_CHECKSUM 1u
#define FLAG_TEXT 2u

/* Least bytes of a member: its numbers and an empty path. */
#define LEAST_MEMBER_BYTES 37

static const char magic[8] = {'S', 'T', 'O', 'K', 'E', 'R', 'I', 'X'};

/* ---- in memory ---- */

void stk_shard_index_free(stk_shard_index *index) {
    stk_text_blocks_free(&index->texts);
    stk_mem_free(index->shards);
    stk_mem_free(index->members);
    memset(index, 0, sizeof *index);
}

stk_status stk_shard_index_add_shard(stk_shard_index *index, const char *name, uint64_t size,
                                     uint32_t *number, stk_error *err) {
    const char *copy = stk_text_blocks_keep(&index->texts, name, strlen(name));
    if (copy == NULL ||
        !STK_RESERVE(index->shards, index->shard_capacity, index->shard_count + 1)) {
        return STK_FAIL_MEMORY(err, "the index of the shards");
    }
    *number = (uint32_t)index->shard_count;
    index->shards[index->shard_count++] = (stk_index_shard){.name = copy, .size = size};
    return STK_OK;
}

stk_status stk_shard_index_add(stk_shard_index *index, const stk_index_member *member,
                               stk_error *err) {
    stk_index_member copy = *member;
    copy.path = stk_text_blocks_keep(&index->texts, member->path, strlen(member->path));
    copy.text = member->text != NULL
                    ? stk_text_blocks_keep(&index->texts, member->text, strlen(member->text))
                    : NULL;
    if (copy.path == NULL || (member->text != NULL && copy.text == NULL) ||
        !STK_RESERVE(index->members, index->member_capacity, index->member_count + 1)) {
        return STK_FAIL_MEMORY(err, "the index of the shards");
    }
    index->members[index->member_count++] = copy;
    return STK_OK;
}

stk_status stk_shard_index_merge(stk_shard_index *into, stk_shard_index *from, stk_error *err) {
    if (!STK_RESERVE(into->shards, into->shard_capacity, into->shard_count + from->shard_count) ||
        !STK_RESERVE(into->members, into->member_capacity,
                     into->member_count + from->member_count)) {
        return STK_FAIL_MEMORY(err, "the index of the shards");
    }
    for (size_t i = 0; i < from->member_count; i++) {
        stk_index_member *member = &into->members[into->member_count++];
        *member = from->members[i];
        member->shard += (uint32_t)into->shard_count;
    }
    for (size_t i = 0; i < from->shard_count; i++) {
        into->shards[into->shard_count++] = from->shards[i];
    }
    stk_text_blocks_merge(&into->texts, &from->texts);
    stk_shard_index_free(from);
    return STK_OK;
}

/* ---- writing ---- */

typedef struct output {
    stk_file_writer *file;
    uint8_t *piece; /* owned; PIECE_BYTES */
    size_t used;
    uint64_t checksum; /* of the pieces written so far */
    stk_status status; /* first failure; nothing is written after it */
    stk_error *err;
} output;

static void flush(output *out) {
    if (out->status == STK_OK && out->used > 0) {
        out->checksum = stk_checksum_seeded(out->piece, out->used, out->checksum);
        out->status = stk_file_append(out->file, out->piece, out->used, out->err);
    }
    out->used = 0;
}

static void put(output *out, const void *data, size_t size) {
    const uint8_t *bytes = data;
    while (size > 0) {
        size_t room = PIECE_BYTES - out->used;
        size_t part = size < room ? size : room;
        memcpy(out->piece + out->used, bytes, part);
        out->used += part;
        bytes += part;
        size -= part;
        if (out->used == PIECE_BYTES) {
            flush(out);
        }
    }
}

static void put_number(output *out, uint64_t value, size_t size) {
    uint8_t bytes[8];
    for (size_t i = 0; i < size; i++) {
        bytes[i] = (uint8_t)(value >> (8 * i));
    }
    put(out, bytes, size);
}

static void put_text(output *out, const char *text) {
    size_t length = strlen(text);
    put_number(out, length, 4);
    put(out, text, length + 1);
}

static void put_member(output *out, const stk_index_member *member, const uint32_t *numbers) {
    uint32_t flags =
        (member->has_checksum ? FLAG_CHECKSUM : 0) | (member->text != NULL ? FLAG_TEXT : 0);
    put_number(out, member->offset, 8);
    put_number(out, member->size, 8);
    put_number(out, member->has_checksum ? member->checksum : 0, 8);
    put_number(out, numbers[member->shard], 4);
    put_number(out, flags, 4);
    put_text(out, member->path);
    if (member->text != NULL) {
        put_text(out, member->text);
    }
}

/* A tar and its number before sorting. */
typedef struct numbered_shard {
    stk_index_shard shard;
    uint32_t number;
} numbered_shard;

static int compare_shards(const void *a, const void *b) {
    return strcmp(((const numbered_shard *)a)->shard.name, ((const numbered_shard *)b)->shard.name);
}

static int compare_members(const void *a, const void *b) {
    const stk_index_member *x = a;
    const stk_index_member *y = b;
    int order = strcmp(x->path, y->path);
    return order != 0 ? order : x->offset < y->offset ? -1 : x->offset > y->offset ? 1 : 0;
}

static void put_all(output *out, const char *origin, const stk_shard_index *index,
                    const numbered_shard *sorted, const uint32_t *numbers) {
    put(out, magic, sizeof magic);
    put_number(out, VERSION, 4);
    put_number(out, 0, 4);
    put_text(out, origin);
    put_number(out, index->shard_count, 4);
    for (size_t i = 0; i < index->shard_count; i++) {
        put_number(out, sorted[i].shard.size, 8);
        put_text(out, sorted[i].shard.name);
    }
    put_number(out, index->member_count, 8);
    for (size_t i = 0; i < index->member_count; i++) {
        put_member(out, &index->members[i], numbers);
    }
    flush(out);
    put_number(out, out->checksum, 8);
    flush(out);
}

stk_status stk_shard_index_save(stk_shard_index *index, const char *origin, const char *file,
                                stk_error *err) {
    size_t count = index->shard_count;
    output out = {.err = err, .piece = stk_mem_raw(PIECE_BYTES, 1)};
    numbered_shard *sorted = stk_mem_new(count, sizeof *sorted);
    uint32_t *numbers = stk_mem_new(count, sizeof *numbers);
    if (out.piece == NULL || sorted == NULL || numbers == NULL) {
        out.status = STK_FAIL_MEMORY(err, file);
        goto done;
    }
    for (size_t i = 0; i < count; i++) {
        sorted[i] = (numbered_shard){.shard = index->shards[i], .number = (uint32_t)i};
    }
    qsort(sorted, count, sizeof *sorted, compare_shards);
    for (size_t i = 0; i < count; i++) {
        numbers[sorted[i].number] = (uint32_t)i;
    }
    if (index->member_count > 1) {
        qsort(index->members, index->member_count, sizeof *index->members, compare_members);
    }
    out.status = stk_file_create(&out.file, file, err);
    if (out.status == STK_OK) {
        put_all(&out, origin, index, sorted, numbers);
    }
    if (out.status == STK_OK) {
        out.status = stk_file_commit(out.file, err);
    } else {
        stk_file_discard(out.file);
    }
done:
    stk_mem_free(out.piece);
    stk_mem_free(sorted);
    stk_mem_free(numbers);
    return out.status;
}

/* ---- reading ---- */

typedef struct input {
    const uint8_t *bytes;
    size_t size; /* without the checksum */
    size_t at;
    bool failed; /* the file ends before a value does */
} input;

static uint64_t take_number(input *in, size_t size) {
    uint64_t value = 0;
    if (in->failed || in->size - in->at < size) {
        in->failed = true;
        return 0;
    }
    for (size_t i = 0; i < size; i++) {
        value |= (uint64_t)in->bytes[in->at + i] << (8 * i);
    }
    in->at += size;
    return value;
}

static const char *take_text(input *in) {
    size_t length = (size_t)take_number(in, 4);
    const char *text = (const char *)in->bytes + in->at;
    if (in->failed || in->size - in->at <= length || text[length] != '\0' ||
        memchr(text, '\0', length) != NULL) {
        in->failed = true;
        return "";
    }
    in->at += length + 1;
    return text;
}

static bool sum_fits(const uint8_t *bytes, size_t size) {
    uint64_t sum = 0;
    input end = {.bytes = bytes, .size = size + 8, .at = size};
    for (size_t at = 0; at < size; at += PIECE_BYTES) {
        size_t part = size - at < PIECE_BYTES ? size - at : PIECE_BYTES;
        sum = stk_checksum_seeded(bytes + at, part, sum);
    }
    return take_number(&end, 8) == sum;
}

static void take_member(input *in, stk_index_member *member, size_t shards) {
    *member = (stk_index_member){.offset = take_number(in, 8), .size = take_number(in, 8)};
    member->checksum = take_number(in, 8);
    member->shard = (uint32_t)take_number(in, 4);
    uint64_t flags = take_number(in, 4);
    member->has_checksum = (flags & FLAG_CHECKSUM) != 0;
    member->path = take_text(in);
    member->text = (flags & FLAG_TEXT) != 0 ? take_text(in) : NULL;
    in->failed = in->failed || member->shard >= shards || member->path[0] == '\0' ||
                 member->size > INT64_MAX || member->offset > INT64_MAX - member->size;
}

/* Reads everything after the header; sets in->failed if something is invalid. */
static stk_status take_all(stk_shard_index *index, input *in, const char *name, stk_error *err) {
    index->origin = take_text(in);
    size_t shards = (size_t)take_number(in, 4);
    if (in->failed || shards > in->size / 13) {
        in->failed = true;
        return STK_OK;
    }
    if (!STK_RESERVE(index->shards, index->shard_capacity, shards)) {
        return STK_FAIL_MEMORY(err, name);
    }
    for (; index->shard_count < shards && !in->failed; index->shard_count++) {
        uint64_t size = take_number(in, 8);
        index->shards[index->shard_count] = (stk_index_shard){.name = take_text(in), .size = size};
    }
    uint64_t members = take_number(in, 8);
    if (in->failed || members > in->size / LEAST_MEMBER_BYTES) {
        in->failed = true;
        return STK_OK;
    }
    if (!STK_RESERVE(index->members, index->member_capacity, (size_t)members)) {
        return STK_FAIL_MEMORY(err, name);
    }
    for (; index->member_count < members && !in->failed; index->member_count++) {
        take_member(in, &index->members[index->member_count], shards);
    }
    in->failed = in->failed || in->at != in->size;
    return STK_OK;
}

static stk_status parse(stk_shard_index *index, const char *name, const stk_bytes *bytes,
                        stk_error *err) {
    input in = {.bytes = bytes->data, .size = bytes->size};
    if (bytes->size < sizeof magic + 16 || memcmp(bytes->data, magic, sizeof magic) != 0) {
        return STK_FAIL(err, STK_ERR_DATA, "%s is no index of shards", name);
    }
    in.size -= 8;
    in.at = sizeof magic;
    uint64_t version = take_number(&in, 4);
    if (version != VERSION) {
        return STK_FAIL(err, STK_ERR_DATA,
                        "the index %s was written by another version of Stoker (format %llu, this "
                        "one knows %d)",
                        name, (unsigned long long)version, VERSION);
    }
    in.failed = take_number(&in, 4) != 0 || !sum_fits(in.bytes, in.size);
    stk_status status = in.failed ? STK_OK : take_all(index, &in, name, err);
    if (in.failed) {
        status = STK_FAIL(err, STK_ERR_DATA, "the index %s is damaged", name);
    }
    return status;
}

stk_status stk_shard_index_load(stk_shard_index *index, const char *name, stk_bytes *bytes,
                                stk_error *err) {
    memset(index, 0, sizeof *index);
    stk_status status = parse(index, name, bytes, err);
    if (status == STK_OK && !stk_text_blocks_adopt(&index->texts, bytes->data)) {
        status = STK_FAIL_MEMORY(err, name);
    }
    if (status != STK_OK) {
        stk_shard_index_free(index);
        stk_bytes_free(bytes);
    }
    memset(bytes, 0, sizeof *bytes);
    return status;
}
