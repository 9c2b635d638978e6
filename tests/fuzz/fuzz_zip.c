/*
 * fuzz_zip.c - what the reader of zips tells lies inside the zip, in order and apart from each
 * other, with paths that lead nowhere else; and no member has more bytes than it was promised.
 */
#include "fuzz.h"

#include <stdbool.h>
#include <string.h>

#include "../unit/zip_files.h"
#include "base/error.h"
#include "storage/zip/zip_directory.h"
#include "storage/zip/zip_member.h"

#define SEEDS 4

static zip_writer zips[SEEDS];
static fuzz_seed seeds[SEEDS];

fuzz_plan fuzz_prepare(void) {
    static const char same[] =
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    zip_add_text(&zips[0], "a.jpg", "12345", 0);
    zip_add_text(&zips[0], "b/c.jpg", same, ZIP_DEFLATE);
    zip_add_text(&zips[1], "a.jpg", same, ZIP_DEFLATE | ZIP_WIDE | ZIP_DESCRIPTOR);
    zip_add_text(&zips[1], "../b.jpg", "1", ZIP_WIDE | ZIP_EXTRA);
    zip_add_text(&zips[2], "a\\b.jpg", "123", ZIP_DOS | ZIP_EXTRA);
    zip_add_text(&zips[2], "link", "a", ZIP_LINK);
    zip_add_text(&zips[2], "locked", "a", ZIP_LOCKED);
    for (size_t i = 0; i < SEEDS; i++) {
        zip_end(&zips[i], i == 1, i == 2 ? "comment" : "");
        seeds[i] = (fuzz_seed){.bytes = stk_str_text(&zips[i].body), .size = zips[i].body.length};
    }
    return (fuzz_plan){
        .seeds = seeds, .count = SEEDS, .prefixed = SEEDS, .mutations = 40000, .large = 10};
}

static void check_path(const char *path) {
    FUZZ_REQUIRE(path[0] != '\0' && path[0] != '/' && strstr(path, "//") == NULL);
    for (const char *part = path; *part != '\0'; part += strspn(part, "/")) {
        size_t length = strcspn(part, "/");
        FUZZ_REQUIRE(part[0] != '.');
        part += length;
        FUZZ_REQUIRE(part[0] != '/' || part[1] != '\0');
    }
}

static void check_members(const stk_zip_directory *directory, const stk_zip_place *place,
                          const uint8_t *data) {
    uint64_t end = 0;
    for (size_t i = 0; i < directory->count; i++) {
        const stk_zip_member *m = &directory->members[i];
        stk_zip_promise promise = {.size = m->size, .crc32 = m->crc32, .method = m->method};
        stk_bytes bytes = {0};
        bool no_memory;
        check_path(m->path);
        FUZZ_REQUIRE(m->offset >= end && m->span >= 30 && m->span <= place->offset - m->offset);
        end = m->offset + m->span;
        if (m->size > 1 << 20 || (m->method != STK_ZIP_STORED && m->method != STK_ZIP_DEFLATED)) {
            continue;
        }
        FUZZ_REQUIRE(stk_bytes_reserve(&bytes, (size_t)m->span));
        memcpy(bytes.data, data + m->offset, (size_t)m->span);
        bytes.size = (size_t)m->span;
        const char *why = stk_zip_member_unpack(&bytes, &promise, &no_memory);
        FUZZ_REQUIRE(why != NULL || bytes.size == m->size);
        stk_bytes_free(&bytes);
    }
}

static void try_zip(const uint8_t *data, size_t size) {
    stk_error err = {0};
    stk_zip_place place = {0};
    stk_zip_directory directory = {0};
    size_t tail = size < STK_ZIP_TAIL_BYTES ? size : STK_ZIP_TAIL_BYTES;
    stk_status status =
        stk_zip_find_directory("x.zip", data + size - tail, tail, size, &place, &err);
    if (status == STK_OK) {
        FUZZ_REQUIRE(place.size <= size && place.offset <= size - place.size &&
                     place.before <= place.offset);
        status = stk_zip_directory_read(&directory, "x.zip", &place, data + place.offset, &err);
    }
    FUZZ_REQUIRE(status == STK_OK || (status == STK_ERR_DATA && strstr(err.message, "x.zip")));
    if (status == STK_OK) {
        check_members(&directory, &place, data);
    }
    stk_zip_directory_free(&directory);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    try_zip(data, size);
    return 0;
}
