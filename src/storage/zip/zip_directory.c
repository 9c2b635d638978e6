/*
 * zip_directory.c - parses the directory of a zip.
 *
 * The records, with the positions of the fields that are read:
 *
 *     end         0 magic  4 disks  10 entries  12 size  16 offset  20 comment's length  22 comment
 *     locator     0 magic  8 offset of the zip64 end  (right before the end, 20 bytes)
 *     zip64 end   0 magic  32 entries  40 size  48 offset  (56 bytes)
 *     entry       0 magic  4 made by  8 flags  10 method  16 crc32  20 packed  24 size  28 lengths
 * of name, extra fields and comment  38 attributes  42 offset  46 name
 *
 * A number of 32 bits that is all ones stands in the extra field 1 of the entry.
 */
#include "storage/zip/zip_directory.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"
#include "storage/tar/member_path.h"
#include "storage/zip/zip_bytes.h"

#define END_MAGIC 0x06054b50u
#define END_BYTES 22
#define LOCATOR_MAGIC 0x07064b50u
#define LOCATOR_BYTES 20
#define END64_MAGIC 0x06064b50u
#define END64_BYTES 56
#define ENTRY_MAGIC 0x02014b50u
#define ENTRY_BYTES 46

#define FLAG_ENCRYPTED 1u
#define EXTRA_ZIP64 1
#define MADE_ON_UNIX 3
#define MADE_ON_FAT 0

/* Attributes of Unix: the kind of a file, and that of a link. */
#define UNIX_KIND 0170000u
#define UNIX_LINK 0120000u

/* Deflate packs no more bytes than this into one. */
#define DEFLATE_RATIO 1032

void stk_zip_directory_free(stk_zip_directory *directory) {
    stk_text_blocks_free(&directory->texts);
    stk_mem_free(directory->members);
    memset(directory, 0, sizeof *directory);
}

/* ---- the place ---- */

/* Position of the record at the end in the tail; `size` when there is none. */
static size_t find_end(const uint8_t *tail, size_t size) {
    for (size_t at = size >= END_BYTES ? size - END_BYTES + 1 : 0; at-- > 0;) {
        if (stk_zip_number(tail + at, 4) == END_MAGIC &&
            at + END_BYTES + stk_zip_number(tail + at + 20, 2) == size) {
            return at;
        }
    }
    return size;
}

/*
 * Reads the zip64 record, if there is one. *at is the position of the end record in the tail and
 * becomes that of the zip64 record. False: there is a locator but no record where it points.
 */
static bool read_zip64(const uint8_t *tail, size_t *at, stk_zip_place *place) {
    if (*at < LOCATOR_BYTES || stk_zip_number(tail + *at - LOCATOR_BYTES, 4) != LOCATOR_MAGIC) {
        return true;
    }
    size_t locator = *at - LOCATOR_BYTES;
    if (locator < END64_BYTES || stk_zip_number(tail + locator - END64_BYTES, 4) != END64_MAGIC) {
        return false;
    }
    *at = locator - END64_BYTES;
    place->entries = stk_zip_number(tail + *at + 32, 8);
    place->size = stk_zip_number(tail + *at + 40, 8);
    place->offset = stk_zip_number(tail + *at + 48, 8);
    return true;
}

stk_status stk_zip_find_directory(const char *name, const uint8_t *tail, size_t size,
                                  uint64_t file_size, stk_zip_place *place, stk_error *err) {
    size_t at = find_end(tail, size);
    if (at == size) {
        return STK_FAIL(err, STK_ERR_DATA,
                        "cannot read the zip %s: it has no directory at its end, so it is cut off "
                        "or not copied to its end; copy it again",
                        name);
    }
    *place = (stk_zip_place){.entries = stk_zip_number(tail + at + 10, 2),
                             .size = stk_zip_number(tail + at + 12, 4),
                             .offset = stk_zip_number(tail + at + 16, 4)};
    if (stk_zip_number(tail + at + 4, 2) != 0) {
        return STK_FAIL(err, STK_ERR_DATA,
                        "cannot read the zip %s: it is one part of several; join the parts, or "
                        "unpack them by hand",
                        name);
    }
    bool good = read_zip64(tail, &at, place);
    uint64_t end = file_size - (size - at); /* where the directory must end */
    good = good && place->size <= end && place->offset <= end - place->size;
    if (!good || place->size > STK_ZIP_DIRECTORY_MAX) {
        return STK_FAIL(err, STK_ERR_DATA,
                        "cannot read the zip %s: its directory is not where the end of the zip "
                        "says; make or copy the zip again",
                        name);
    }
    place->before = end - place->size - place->offset;
    place->offset += place->before;
    place->entries &= 0xffff;
    return STK_OK;
}

/* ---- the entries ---- */

typedef struct parsing {
    stk_zip_directory *directory;
    const char *name;
    const stk_zip_place *place;
    const uint8_t *bytes;
    size_t at; /* of the entry that is being read */
    uint64_t entries;
    stk_str raw; /* a name as it is written */
    stk_str path;
    stk_error *err;
} parsing;

/* An entry, before it is known whether it is shown. */
typedef struct entry {
    uint64_t offset;
    uint64_t packed;
    uint64_t size;
    const uint8_t *fixed; /* the record */
    size_t name_bytes;
    size_t extra_bytes;
} entry;

static stk_status damaged(const parsing *p) {
    return STK_FAIL(p->err, STK_ERR_DATA,
                    "cannot read the zip %s: its directory is damaged at entry %llu; make or copy "
                    "the zip again",
                    p->name, (unsigned long long)p->entries + 1);
}

/* Takes one number of 64 bits from the zip64 field, if the short one says that it is there. */
static bool widen(uint64_t *value, const uint8_t *field, size_t size, size_t *at) {
    if (*value != UINT32_MAX) {
        return true;
    }
    if (size - *at < 8) {
        return false;
    }
    *value = stk_zip_number(field + *at, 8);
    *at += 8;
    return true;
}

/* Looks for the zip64 field among the extra fields; false: it is too short. */
static bool take_zip64(entry *e, const uint8_t *extra) {
    for (size_t at = 0; e->extra_bytes - at >= 4;) {
        size_t size = (size_t)stk_zip_number(extra + at + 2, 2);
        if (size > e->extra_bytes - at - 4) {
            return true; /* other programs pass over such fields, too */
        }
        if (stk_zip_number(extra + at, 2) == EXTRA_ZIP64) {
            size_t used = 0;
            const uint8_t *field = extra + at + 4;
            return widen(&e->size, field, size, &used) && widen(&e->packed, field, size, &used) &&
                   widen(&e->offset, field, size, &used);
        }
        at += 4 + size;
    }
    return true;
}

/* Reads the record at p->at and moves on; false: it is damaged. */
static bool read_entry(parsing *p, entry *e) {
    size_t left = (size_t)p->place->size - p->at;
    const uint8_t *fixed = p->bytes + p->at;
    if (left < ENTRY_BYTES || stk_zip_number(fixed, 4) != ENTRY_MAGIC) {
        return false;
    }
    *e = (entry){.packed = stk_zip_number(fixed + 20, 4),
                 .size = stk_zip_number(fixed + 24, 4),
                 .offset = stk_zip_number(fixed + 42, 4),
                 .fixed = fixed,
                 .name_bytes = (size_t)stk_zip_number(fixed + 28, 2),
                 .extra_bytes = (size_t)stk_zip_number(fixed + 30, 2)};
    size_t all =
        ENTRY_BYTES + e->name_bytes + e->extra_bytes + (size_t)stk_zip_number(fixed + 32, 2);
    if (all > left || !take_zip64(e, fixed + ENTRY_BYTES + e->name_bytes)) {
        return false;
    }
    p->at += all;
    uint64_t header = STK_ZIP_HEADER_BYTES + e->name_bytes;
    uint64_t room = p->place->offset - p->place->before; /* for members, by the zip's own count */
    return e->offset <= room && header <= room - e->offset &&
           e->packed <= room - e->offset - header;
}

/* Whether an entry's sizes can be: deflate has a limit, and what is stored has one size. */
static bool sizes_can_be(const entry *e, uint16_t method) {
    return method == STK_ZIP_STORED     ? e->size == e->packed
           : method == STK_ZIP_DEFLATED ? e->size / DEFLATE_RATIO <= e->packed
                                        : e->size <= INT64_MAX;
}

/* Writes the name to p->raw, with slashes; some programs of Windows write backslashes. */
static bool read_name(parsing *p, const entry *e) {
    const char *name = (const char *)e->fixed + ENTRY_BYTES;
    stk_str_clear(&p->raw);
    if (memchr(name, '\0', e->name_bytes) != NULL) {
        return true; /* an empty name: it leads nowhere */
    }
    stk_str_append_bytes(&p->raw, name, e->name_bytes);
    if (e->fixed[5] == MADE_ON_FAT && memchr(name, '/', e->name_bytes) == NULL &&
        stk_str_ok(&p->raw)) {
        for (size_t i = 0; i < p->raw.length; i++) {
            p->raw.text[i] = (char)(p->raw.text[i] == '\\' ? '/' : p->raw.text[i]);
        }
    }
    return stk_str_ok(&p->raw);
}

/* Whether the member is shown, with its path in p->path; counts it where it is not. */
static bool is_shown(parsing *p, const entry *e, uint16_t method) {
    stk_zip_directory *d = p->directory;
    const char *raw = stk_str_text(&p->raw);
    bool is_link =
        e->fixed[5] == MADE_ON_UNIX && (stk_zip_number(e->fixed + 40, 2) & UNIX_KIND) == UNIX_LINK;
    if (p->raw.length > 0 && raw[p->raw.length - 1] == '/') {
        return false;
    }
    if (raw[0] == '/' || !stk_member_path_clean(raw, &p->path)) {
        d->outside++;
        return false;
    }
    if (stk_member_path_is_hidden(stk_str_text(&p->path))) {
        return false;
    }
    bool locked = (stk_zip_number(e->fixed + 8, 2) & FLAG_ENCRYPTED) != 0;
    d->links += is_link;
    d->encrypted += !is_link && locked;
    d->foreign += !is_link && !locked && method != STK_ZIP_STORED && method != STK_ZIP_DEFLATED;
    return !is_link && !locked;
}

/* Adds an entry. What is not shown is added without a path: its place counts for its neighbours. */
static stk_status add_entry(parsing *p, const entry *e) {
    stk_zip_directory *d = p->directory;
    uint16_t method = (uint16_t)stk_zip_number(e->fixed + 10, 2);
    stk_zip_member member = {.offset = p->place->before + e->offset,
                             .span = STK_ZIP_HEADER_BYTES + e->name_bytes + e->packed,
                             .size = e->size,
                             .crc32 = (uint32_t)stk_zip_number(e->fixed + 16, 4),
                             .method = method};
    if (!read_name(p, e)) {
        return STK_FAIL_MEMORY(p->err, p->name);
    }
    if (is_shown(p, e, method)) {
        if (!sizes_can_be(e, method)) {
            return STK_FAIL(p->err, STK_ERR_DATA,
                            "cannot read the zip %s: the size of its member %.300s cannot be; make "
                            "or copy the zip again",
                            p->name, stk_str_text(&p->path));
        }
        member.path = stk_text_blocks_keep(&d->texts, stk_str_text(&p->path), p->path.length);
        if (member.path == NULL) {
            return STK_FAIL_MEMORY(p->err, p->name);
        }
    }
    if (!stk_str_ok(&p->path) || !STK_RESERVE(d->members, d->capacity, d->count + 1)) {
        return STK_FAIL_MEMORY(p->err, p->name);
    }
    d->members[d->count++] = member;
    return STK_OK;
}

static int compare_offsets(const void *a, const void *b) {
    uint64_t x = ((const stk_zip_member *)a)->offset;
    uint64_t y = ((const stk_zip_member *)b)->offset;
    return x < y ? -1 : x > y;
}

/*
 * Sorts by offset and extends each span by the room that the extra fields of a header may take.
 * Before, a span has what is known of a member, and no two of these may overlap: a small zip of
 * members that share their data would unpack to petabytes.
 */
static stk_status place_members(parsing *p) {
    stk_zip_directory *d = p->directory;
    size_t kept = 0;
    if (d->count > 1) {
        qsort(d->members, d->count, sizeof *d->members, compare_offsets);
    }
    for (size_t i = 0; i < d->count; i++) {
        stk_zip_member *m = &d->members[i];
        uint64_t next = i + 1 < d->count ? d->members[i + 1].offset : p->place->offset;
        uint64_t room = next - m->offset;
        if (m->span > room) {
            return STK_FAIL(p->err, STK_ERR_DATA,
                            "cannot read the zip %s: its member %.300s overlaps another one; make "
                            "or copy the zip again",
                            p->name, m->path != NULL ? m->path : "(not shown)");
        }
        m->span = room - m->span > STK_ZIP_EXTRA_MOST ? m->span + STK_ZIP_EXTRA_MOST : room;
        if (m->path != NULL) {
            d->members[kept++] = *m;
        }
    }
    d->count = kept;
    return STK_OK;
}

stk_status stk_zip_directory_read(stk_zip_directory *directory, const char *name,
                                  const stk_zip_place *place, const uint8_t *bytes,
                                  stk_error *err) {
    parsing p = {.directory = directory, .name = name, .place = place, .bytes = bytes, .err = err};
    stk_status status = STK_OK;
    while (status == STK_OK && p.at < place->size) {
        entry e;
        status = read_entry(&p, &e) ? add_entry(&p, &e) : damaged(&p);
        p.entries++;
    }
    if (status == STK_OK && (p.entries & 0xffff) != place->entries) {
        status = damaged(&p);
    }
    STK_THEN(status, place_members(&p));
    stk_str_free(&p.raw);
    stk_str_free(&p.path);
    return status;
}
