/* Tests of zips: the directory, the bytes of members, and zips that lie. */
#include "check.h"

#include "base/error.h"
#include "base/mem.h"
#include "storage/zip/zip_directory.h"
#include "storage/zip/zip_member.h"
#include "zip_files.h"

static char text[3000]; /* compressible */
static stk_error err;

static void begin(void) {
    for (size_t i = 0; i < sizeof text; i++) {
        text[i] = (char)('a' + i / 7 % 20);
    }
    stk_error_clear(&err);
}

/* Reads the directory of the zip in w->body. */
static stk_status read_directory(const zip_writer *w, stk_zip_directory *directory) {
    const uint8_t *bytes = (const uint8_t *)stk_str_text(&w->body);
    size_t size = w->body.length;
    size_t tail = size < STK_ZIP_TAIL_BYTES ? size : STK_ZIP_TAIL_BYTES;
    stk_zip_place place = {0};
    memset(directory, 0, sizeof *directory);
    stk_error_clear(&err);
    stk_status status =
        stk_zip_find_directory("x.zip", bytes + size - tail, tail, size, &place, &err);
    STK_THEN(status,
             stk_zip_directory_read(directory, "x.zip", &place, bytes + place.offset, &err));
    return status;
}

static void drop(zip_writer *w, stk_zip_directory *directory) {
    stk_zip_directory_free(directory);
    stk_str_free(&w->body);
    stk_str_free(&w->directory);
    memset(w, 0, sizeof *w);
}

/* What the bytes of a member are, NULL; or why there are none. */
static const char *unpack(const zip_writer *w, const stk_zip_member *m, stk_bytes *bytes) {
    bool no_memory;
    stk_zip_promise promise = {.size = m->size, .crc32 = m->crc32, .method = m->method};
    bytes->size = 0;
    if (!stk_bytes_reserve(bytes, (size_t)m->span)) {
        return "no memory";
    }
    memcpy(bytes->data, stk_str_text(&w->body) + m->offset, (size_t)m->span);
    bytes->size = (size_t)m->span;
    return stk_zip_member_unpack(bytes, &promise, &no_memory);
}

static void check_member(const zip_writer *w, const stk_zip_member *m, const char *path,
                         const void *data, size_t size) {
    stk_bytes bytes = {0};
    const char *why = unpack(w, m, &bytes);
    CHECK_STR(m->path, path);
    CHECK_INT(m->size, size);
    if (why != NULL) {
        CHECK_FAIL("%s: %s", path, why);
    } else {
        CHECK(bytes.size == size && (size == 0 || memcmp(bytes.data, data, size) == 0));
    }
    stk_bytes_free(&bytes);
}

static void reads_members_of_every_kind(void) {
    begin();
    for (int wide = 0; wide < 2; wide++) {
        unsigned more = wide != 0 ? ZIP_WIDE : 0;
        zip_writer w = {0};
        stk_zip_directory d;
        zip_add(&w, "a/", "", 0, more);
        zip_add(&w, "a/stored.jpg", text, 100, more);
        zip_add(&w, "./a//deflated.jpg", text, sizeof text, more | ZIP_DEFLATE);
        zip_add(&w, "later.bin", text, 2000, more | ZIP_DEFLATE | ZIP_DESCRIPTOR | ZIP_EXTRA);
        zip_add(&w, "\xc3\xbc/\xe6\x97\xa5.png", text, 300, more | ZIP_EXTRA);
        zip_add(&w, "none", "", 0, more);
        zip_add(&w, "none.deflated", "", 0, more | ZIP_DEFLATE);
        zip_add(&w, "b\\c.jpg", "x", 1, more | ZIP_DOS);
        zip_end(&w, wide != 0, wide != 0 ? "a comment PK\x05\x06 with a magic" : "");
        REQUIRE_OK(read_directory(&w, &d), &err);
        REQUIRE(d.count == 7);
        check_member(&w, &d.members[0], "a/stored.jpg", text, 100);
        check_member(&w, &d.members[1], "a/deflated.jpg", text, sizeof text);
        check_member(&w, &d.members[2], "later.bin", text, 2000);
        check_member(&w, &d.members[3], "\xc3\xbc/\xe6\x97\xa5.png", text, 300);
        check_member(&w, &d.members[4], "none", "", 0);
        check_member(&w, &d.members[5], "none.deflated", "", 0);
        check_member(&w, &d.members[6], "b/c.jpg", "x", 1);
        CHECK_INT(d.links + d.outside + d.encrypted + d.foreign, 0);
        drop(&w, &d);
    }
}

static void counts_bytes_in_front(void) {
    zip_writer w = {0};
    zip_writer shifted = {0};
    stk_zip_directory d;
    begin();
    zip_add(&w, "a.jpg", text, 100, 0);
    zip_end(&w, false, "");
    stk_str_append(&shifted.body, "#!/bin/sh and so on\n");
    stk_str_append_bytes(&shifted.body, stk_str_text(&w.body), w.body.length);
    REQUIRE_OK(read_directory(&shifted, &d), &err);
    REQUIRE(d.count == 1);
    check_member(&shifted, &d.members[0], "a.jpg", text, 100);
    drop(&shifted, &d);
    drop(&w, &d);
}

static void leaves_out_what_is_no_file_inside(void) {
    zip_writer w = {0};
    stk_zip_directory d;
    begin();
    zip_add_text(&w, "/etc/passwd", "x", 0);
    zip_add_text(&w, "../up.jpg", "x", 0);
    zip_add_text(&w, "a/../../up.jpg", "x", 0);
    zip_add_text(&w, "..\\up.jpg", "x", ZIP_DOS);
    zip_add_text(&w, "link.jpg", "/etc/passwd", ZIP_LINK);
    zip_add_text(&w, "locked.jpg", "x", ZIP_LOCKED);
    zip_add_text(&w, ".DS_Store", "x", 0);
    zip_add_text(&w, "__MACOSX/._a.jpg", "x", 0);
    w.says_method = 12;
    zip_add_text(&w, "bzip2.jpg", "x", 0);
    zip_add_text(&w, "good.jpg", "x", 0);
    zip_end(&w, false, "");
    REQUIRE_OK(read_directory(&w, &d), &err);
    REQUIRE(d.count == 2);
    CHECK_STR(d.members[0].path, "bzip2.jpg");
    CHECK_STR(d.members[1].path, "good.jpg");
    CHECK_INT(d.outside, 4);
    CHECK_INT(d.links, 1);
    CHECK_INT(d.encrypted, 1);
    CHECK_INT(d.foreign, 1);
    drop(&w, &d);
}

/* Ends a zip and checks what its directory is refused with. */
static void check_refused(zip_writer *w, const char *part) {
    stk_zip_directory d;
    zip_end(w, false, "");
    CHECK_INT(read_directory(w, &d), STK_ERR_DATA);
    CHECK_CONTAINS(err.message, "x.zip");
    CHECK_CONTAINS(err.message, part);
    drop(w, &d);
}

static void refuses_lies(void) {
    zip_writer w = {0};
    begin();
    zip_add(&w, "a.jpg", text, 100, 0);
    w.says_offset = 10; /* within the first one */
    zip_add(&w, "b.jpg", text, 100, 0);
    check_refused(&w, "overlaps another");
    w.says_packed = 100000;
    zip_add(&w, "a.jpg", text, 100, ZIP_DEFLATE);
    check_refused(&w, "damaged at entry 1");
    w.says_offset = 1 << 20;
    zip_add(&w, "a.jpg", text, 100, 0);
    check_refused(&w, "damaged at entry 1");
    w.says_size = (uint64_t)1 << 40; /* more than deflate can pack */
    zip_add(&w, "a.jpg", text, 100, ZIP_DEFLATE | ZIP_WIDE);
    check_refused(&w, "the size of its member a.jpg cannot be");
    w.says_size = 99;
    zip_add(&w, "a.jpg", text, 100, 0);
    check_refused(&w, "the size of its member a.jpg cannot be");
    w.says_offset = UINT64_MAX - 5;
    zip_add(&w, "a.jpg", text, 100, ZIP_WIDE);
    check_refused(&w, "damaged at entry 1");
    zip_add(&w, "a.jpg", text, 100, 0);
    w.count = 3;
    check_refused(&w, "damaged at entry 2");
    zip_add(&w, "a.jpg", text, 100, 0);
    stk_str_append(&w.directory, "and so on");
    check_refused(&w, "damaged at entry 2");
}

static void refuses_what_is_cut_off(void) {
    zip_writer w = {0};
    stk_zip_directory d;
    begin();
    zip_add(&w, "a.jpg", text, 100, 0);
    zip_add(&w, "b.jpg", text, 100, 0);
    zip_end(&w, true, "");
    size_t whole = w.body.length;
    for (size_t size = 0; size < whole; size++) {
        w.body.length = size;
        CHECK_INT(read_directory(&w, &d), STK_ERR_DATA);
        CHECK_CONTAINS(err.message, "no directory at its end");
        stk_zip_directory_free(&d);
    }
    w.body.length = whole;
    CHECK_INT(read_directory(&w, &d), STK_OK);
    drop(&w, &d);
}

/* Unpacks the one member of a zip and checks the reason that it cannot be. */
static void check_damaged(zip_writer *w, size_t edit, const char *part) {
    stk_zip_directory d;
    stk_bytes bytes = {0};
    zip_end(w, false, "");
    if (edit > 0) {
        w->body.text[edit] ^= 0x55;
    }
    REQUIRE_OK(read_directory(w, &d), &err);
    REQUIRE(d.count == 1);
    CHECK_CONTAINS(unpack(w, &d.members[0], &bytes), part);
    stk_bytes_free(&bytes);
    drop(w, &d);
}

static void tells_damaged_members(void) {
    zip_writer w = {0};
    begin();
    zip_add(&w, "a.jpg", text, 100, 0);
    check_damaged(&w, 40, "another checksum");
    zip_add(&w, "a.jpg", text, 100, 0);
    check_damaged(&w, 1, "no member begins");
    zip_add(&w, "a.jpg", text, 100, 0);
    check_damaged(&w, 27, "cut off"); /* the name is said to be longer than all */
    zip_add(&w, "a.jpg", text, sizeof text, ZIP_DEFLATE);
    check_damaged(&w, 36, "");
    w.says_size = 2000;
    zip_add(&w, "a.jpg", text, sizeof text, ZIP_DEFLATE);
    check_damaged(&w, 0, "more bytes than the directory says");
    w.says_size = 4000;
    zip_add(&w, "a.jpg", text, sizeof text, ZIP_DEFLATE);
    check_damaged(&w, 0, "fewer bytes than the directory says");
    w.says_crc = 7;
    zip_add(&w, "a.jpg", "", 0, 0);
    check_damaged(&w, 0, "another checksum");
}

static void lacks_memory(void) {
    zip_writer w = {0};
    stk_zip_directory d;
    stk_bytes bytes = {0};
    bool no_memory = false;
    begin();
    zip_add(&w, "a.jpg", text, sizeof text, ZIP_DEFLATE);
    zip_add(&w, "b.jpg", text, sizeof text, 0);
    zip_end(&w, false, "");
    stk_status status = STK_ERR_MEMORY;
    for (int64_t n = 0; status != STK_OK && n < 100; n++) {
        stk_mem_fail_after(n);
        status = read_directory(&w, &d);
        stk_mem_fail_after(-1);
        CHECK(status == STK_OK || status == STK_ERR_MEMORY);
        if (status != STK_OK) {
            stk_zip_directory_free(&d);
        }
    }
    REQUIRE(status == STK_OK);
    const stk_zip_member *m = &d.members[0];
    stk_zip_promise promise = {.size = m->size, .crc32 = m->crc32, .method = m->method};
    int failures = 0;
    for (int64_t n = 0; n < 20; n++) {
        REQUIRE(stk_bytes_reserve(&bytes, (size_t)m->span));
        memcpy(bytes.data, stk_str_text(&w.body) + m->offset, (size_t)m->span);
        bytes.size = (size_t)m->span;
        stk_mem_fail_after(n);
        const char *why = stk_zip_member_unpack(&bytes, &promise, &no_memory);
        stk_mem_fail_after(-1);
        CHECK((why != NULL) == no_memory);
        if (why == NULL) {
            break;
        }
        failures++;
    }
    CHECK(failures > 0 && !no_memory);
    stk_bytes_free(&bytes);
    drop(&w, &d);
}

static const check_test tests[] = {TEST(reads_members_of_every_kind),
                                   TEST(counts_bytes_in_front),
                                   TEST(leaves_out_what_is_no_file_inside),
                                   TEST(refuses_lies),
                                   TEST(refuses_what_is_cut_off),
                                   TEST(tells_damaged_members),
                                   TEST(lacks_memory)};

CHECK_MAIN(tests)
