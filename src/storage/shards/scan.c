/* scan.c - reads the headers of one tar: hops between them, or reads from front to back. */
#include "storage/shards/find_members.h"

#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/threads/pool.h"
#include "storage/reading/store_state.h"
#include "storage/tar/member_path.h"

/* Bytes of one hop: a header, and some more of them where members are tiny. */
#define HOP_BYTES ((size_t)4096)
#define STRIDE_BYTES ((size_t)512 * 1024)

/*
 * Rate that a disk or a mount reaches when it is read from front to back. If reading everything
 * between two headers takes less time than another request, it is read.
 */
#define STREAM_BYTES_PER_NS 0.5

typedef struct scan {
    stk_store *store;
    const char *object;
    stk_tar_reader *reader;
    stk_shard_index *index;
    uint32_t shard;
    bool ended;                            /* the tar has no more bytes */
    uint64_t end;                          /* if ended: known size of the tar */
    char version[STK_STORE_VERSION_BYTES]; /* of a far tar; "": its bytes are not cached */
    bool has_labels; /* the tar has .cls members, so other texts are not needed */
    atomic_size_t *text_left;
} scan;

static bool is_text(const char *path) {
    return stk_str_ends_with_nocase(path, ".cls") || stk_str_ends_with_nocase(path, ".txt") ||
           stk_str_ends_with_nocase(path, ".json");
}

/* Whether a member's text is kept; if so, takes its bytes from text_left. */
static bool wants_text(scan *s, const stk_tar_member *member, bool is_label) {
    if (member->text == NULL || strlen(member->text) != member->size ||
        (s->has_labels && !is_label)) {
        return false;
    }
    size_t left = atomic_load(s->text_left);
    while (left > member->size) {
        if (atomic_compare_exchange_weak(s->text_left, &left, left - (size_t)member->size - 1)) {
            return true;
        }
    }
    return false;
}

static stk_status add_member(scan *s, const stk_tar_member *member, stk_error *err) {
    bool is_label = stk_str_ends_with_nocase(member->path, ".cls");
    stk_index_member entry = {
        .path = member->path, .offset = member->offset, .size = member->size, .shard = s->shard};
    s->has_labels = s->has_labels || is_label;
    entry.text = wants_text(s, member, is_label) ? member->text : NULL;
    return stk_shard_index_add(s->index, &entry, err);
}

/* Puts members of a far tar into the cache, since their bytes were fetched anyway. */
static void keep_bytes(const scan *s, const stk_tar_member *member, uint64_t offset,
                       const stk_bytes *bytes) {
    if (s->version[0] != '\0' && !is_text(member->path) && member->offset >= offset &&
        member->offset + member->size <= offset + bytes->size) {
        stk_store_put_member(s->store, s->object, s->version, member->offset,
                             bytes->data + (member->offset - offset), (size_t)member->size);
    }
}

/* Adds all members found in some bytes of the tar. */
static stk_status take(scan *s, uint64_t offset, const stk_bytes *bytes, stk_error *err) {
    stk_tar_found found = STK_TAR_MEMBER;
    stk_status status = STK_OK;
    while (status == STK_OK && found == STK_TAR_MEMBER) {
        stk_tar_member member;
        status =
            stk_tar_reader_next(s->reader, offset, bytes->data, bytes->size, &found, &member, err);
        if (status == STK_OK && found == STK_TAR_MEMBER &&
            !stk_member_path_is_hidden(member.path)) {
            status = add_member(s, &member, err);
            keep_bytes(s, &member, offset, bytes);
        }
    }
    return status;
}

/* ---- near ---- */

/* How much to read: one header, or a long stretch if that is faster than one request per header. */
static size_t choose_stride(const scan *s, double question_ns) {
    size_t members = s->index->member_count;
    if (members < 8) {
        return HOP_BYTES;
    }
    double span = (double)stk_tar_reader_at(s->reader) / (double)members;
    return span < question_ns * STREAM_BYTES_PER_NS ? STRIDE_BYTES : HOP_BYTES;
}

static stk_status scan_near(scan *s, stk_error *err) {
    stk_bytes bytes = {0};
    stk_status status = STK_OK;
    double question_ns = 0; /* recent mean time of a hop */
    while (status == STK_OK && !s->ended) {
        uint64_t at = stk_tar_reader_at(s->reader);
        size_t stride = choose_stride(s, question_ns);
        int64_t begun = stk_clock_ns();
        stk_store_hurry(s->store); /* other tars may be waiting for a thread */
        status = stk_store_read_part(s->store, s->object, at, stride, &bytes, err);
        double took = (double)(stk_clock_ns() - begun);
        if (stride == HOP_BYTES) {
            question_ns = question_ns > 0 ? 0.9 * question_ns + 0.1 * took : took;
        }
        if (status == STK_OK && bytes.size > 0) {
            status = take(s, at, &bytes, err);
        }
        s->ended = bytes.size < stride;
        s->end = at + bytes.size;
    }
    /* A hop beyond the end reads nothing, so the tar's last byte is read to check its size. */
    uint64_t needs = stk_tar_reader_needs(s->reader);
    if (status == STK_OK && bytes.size == 0 && needs > 0) {
        status = stk_store_read_part(s->store, s->object, needs - 1, 1, &bytes, err);
        s->end = bytes.size > 0 ? needs : needs - 1;
    }
    stk_bytes_free(&bytes);
    return status;
}

/* ---- far ---- */

/* One of several parts that are read together. */
typedef struct part {
    uint64_t offset;
    uint64_t length;
    stk_bytes bytes;
    stk_error error;
} part;

typedef struct parts {
    const scan *scan;
    part *items; /* owned */
    size_t most;
    size_t count;  /* parts that are being read */
    uint64_t size; /* of the tar; 0: unknown */
} parts;

/* Chooses the next parts; none beyond the end where it is known. */
static void choose_parts(parts *p, uint64_t at) {
    for (p->count = 0; p->count < p->most; p->count++) {
        uint64_t offset = at + p->count * STK_SCAN_PART_BYTES;
        uint64_t left = p->size > offset ? p->size - offset : 0;
        part *one = &p->items[p->count];
        if (p->size > 0 && left == 0) {
            break;
        }
        one->offset = offset;
        one->length =
            p->size > 0 && left < STK_SCAN_PART_BYTES ? left : (uint64_t)STK_SCAN_PART_BYTES;
    }
}

static void read_part(void *context, size_t task, int thread) {
    const parts *p = context;
    part *one = &p->items[task];
    (void)thread;
    stk_error_clear(&one->error);
    (void)(stk_store_read_part(p->scan->store, p->scan->object, one->offset, one->length,
                               &one->bytes, &one->error) == STK_OK);
}

static stk_status take_part(scan *s, const part *one, stk_error *err) {
    if (one->error.status != STK_OK) {
        return STK_FAIL(err, one->error.status, "%s", one->error.message);
    }
    s->end = one->offset + one->bytes.size;
    s->ended = one->bytes.size < one->length;
    stk_status status = take(s, one->offset, &one->bytes, err);
    stk_store_flush_cache(s->store);
    return status;
}

static stk_status scan_far(scan *s, int at_a_time, stk_error *err) {
    stk_pool *pool = NULL;
    stk_status status = stk_store_version(s->store, s->object, s->version, sizeof s->version, err);
    parts p = {.scan = s,
               .items = stk_mem_new((size_t)at_a_time, sizeof *p.items),
               .most = (size_t)at_a_time,
               .size = stk_store_size(s->store, s->object)};
    STK_THEN(status, p.items != NULL ? stk_pool_new(&pool, at_a_time, err)
                                     : STK_FAIL_MEMORY(err, s->object));
    while (status == STK_OK && !s->ended) {
        choose_parts(&p, stk_tar_reader_at(s->reader));
        stk_pool_run(pool, p.count, read_part, &p);
        for (size_t i = 0; status == STK_OK && i < p.count && !s->ended; i++) {
            status = take_part(s, &p.items[i], err);
        }
        if (p.count == 0) {
            s->ended = true;
            s->end = p.size;
        }
    }
    for (size_t i = 0; p.items != NULL && i < p.most; i++) {
        stk_bytes_free(&p.items[i].bytes);
    }
    stk_mem_free(p.items);
    stk_pool_free(pool);
    return status;
}

/* If .cls members have the labels, drops all other texts. */
static void drop_other_texts(scan *s) {
    for (size_t i = 0; s->has_labels && i < s->index->member_count; i++) {
        stk_index_member *member = &s->index->members[i];
        if (member->shard == s->shard && !stk_str_ends_with_nocase(member->path, ".cls")) {
            member->text = NULL;
        }
    }
}

stk_status stk_shard_scan(stk_store *store, const char *object, int at_a_time,
                          atomic_size_t *text_left, stk_shard_index *index, stk_tar_counts *counts,
                          stk_error *err) {
    scan s = {.store = store, .object = object, .index = index, .text_left = text_left};
    char *name = stk_path_join(store->base, object);
    stk_status status = name != NULL ? stk_tar_reader_open(&s.reader, name, is_text, err)
                                     : STK_FAIL_MEMORY(err, object);
    STK_THEN(status, stk_shard_index_add_shard(index, object, 0, &s.shard, err));
    STK_THEN(status,
             stk_store_is_remote(store) ? scan_far(&s, at_a_time, err) : scan_near(&s, err));
    STK_THEN(status, stk_tar_reader_finish(s.reader, s.end, err));
    if (status == STK_OK) {
        *counts = stk_tar_reader_counts(s.reader);
        drop_other_texts(&s);
    }
    stk_tar_reader_close(s.reader);
    stk_mem_free(name);
    return status;
}
