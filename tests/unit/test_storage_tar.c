/* Tests of reading and writing tars: every format, every cut, what is refused and how. */
#include "check.h"

#include <stdarg.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/files/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "storage/tar/tar_read.h"
#include "storage/tar/tar_write.h"

/* What a reader told, as one line per member: PATH OFFSET SIZE [TEXT]. */
typedef struct told {
    stk_str lines;
    stk_tar_counts counts;
    size_t members;
    size_t pieces; /* that were handed to the reader */
    stk_error error;
} told;

static bool is_text(const char *path) {
    return stk_str_ends_with_nocase(path, ".cls") || stk_str_ends_with_nocase(path, ".txt");
}

/* Reads a tar in pieces of so many bytes; with `hop` only from where the reader goes on. */
static stk_status read_pieces(told *t, const uint8_t *bytes, size_t size, size_t piece, bool hop) {
    stk_tar_reader *reader = NULL;
    *t = (told){0};
    stk_status status = stk_tar_reader_open(&reader, "x.tar", is_text, &t->error);
    size_t offset = 0;
    while (status == STK_OK && offset < size) {
        stk_tar_member member;
        stk_tar_found found;
        size_t length = size - offset < piece ? size - offset : piece;
        uint8_t *copy = stk_mem_raw(length, 1); /* so that a sanitizer sees a byte too many */
        memcpy(copy, bytes + offset, length);
        t->pieces++;
        do {
            status = stk_tar_reader_next(reader, offset, copy, length, &found, &member, &t->error);
            if (status == STK_OK && found == STK_TAR_MEMBER) {
                stk_str_appendf(&t->lines, "%s %llu %llu %s\n", member.path,
                                (unsigned long long)member.offset, (unsigned long long)member.size,
                                member.text != NULL ? member.text : "-");
                t->members++;
            }
        } while (status == STK_OK && found == STK_TAR_MEMBER);
        stk_mem_free(copy);
        uint64_t at = stk_tar_reader_at(reader);
        offset = !hop ? offset + length : at < size ? (size_t)at : size;
    }
    status = status == STK_OK ? stk_tar_reader_finish(reader, size, &t->error) : status;
    t->counts = reader != NULL ? stk_tar_reader_counts(reader) : t->counts;
    stk_tar_reader_close(reader);
    return status;
}

static void forget(told *t) {
    stk_str_free(&t->lines);
}

/* However it is cut into pieces, a tar tells the same. */
static void check_all_ways(const uint8_t *bytes, size_t size, const char *expected) {
    static const size_t pieces[] = {1, 7, 511, 512, 513, 4096, 1 << 20};
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        for (int hop = 0; hop < 2; hop++) {
            told t;
            REQUIRE_OK(read_pieces(&t, bytes, size, pieces[i], hop), &t.error);
            CHECK_STR(stk_str_text(&t.lines), expected);
            forget(&t);
        }
    }
}

/* One header of a tar that is being made by hand. */
typedef struct made {
    uint8_t bytes[64 * STK_TAR_BLOCK];
    size_t size;
} made;

static void set_sum(uint8_t *header) {
    unsigned sum = 0;
    memset(header + 148, ' ', 8);
    for (int i = 0; i < STK_TAR_BLOCK; i++) {
        sum += header[i];
    }
    snprintf((char *)header + 148, 8, "%06o", sum);
}

static uint8_t *add_header(made *m, const char *name, char kind, unsigned size) {
    uint8_t *header = m->bytes + m->size;
    memset(header, 0, STK_TAR_BLOCK);
    snprintf((char *)header, 100, "%s", name);
    snprintf((char *)header + 124, 12, "%011o", size);
    header[156] = (uint8_t)kind;
    memcpy(header + 257,
           "ustar\0"
           "00",
           8);
    set_sum(header);
    m->size += STK_TAR_BLOCK;
    return header;
}

static void add_body(made *m, const char *text, size_t size) {
    memset(m->bytes + m->size, 0, (size + 511) / 512 * 512);
    memcpy(m->bytes + m->size, text, size);
    m->size += (size + 511) / 512 * 512;
}

static void add_file(made *m, const char *name, const char *text) {
    add_header(m, name, '0', (unsigned)strlen(text));
    add_body(m, text, strlen(text));
}

/* Says what reading it fails with. */
static const char *failure(const made *m) {
    static stk_error error;
    told t;
    stk_status status = read_pieces(&t, m->bytes, m->size, 4096, true);
    error = t.error;
    CHECK_INT(status, STK_ERR_DATA);
    CHECK_INT(error.status, STK_ERR_DATA);
    forget(&t);
    return error.message;
}

static void reads_plain_headers(void) {
    made m = {0};
    add_header(&m, "./", '5', 0);
    add_file(&m, "./a/one.jpg", "12345");
    add_file(&m, "/b//./two.txt", "hello");
    add_file(&m, "empty.cls", "");
    add_header(&m, "folder/", '\0', 0);
    add_file(&m, "last", "x");
    memset(m.bytes + m.size, 0, 1024);
    m.size += 1024;
    check_all_ways(m.bytes, m.size,
                   "a/one.jpg 1024 5 -\nb/two.txt 2048 5 hello\nempty.cls 3072 0 \n"
                   "last 4096 1 -\n");
    /* Without the blocks of zeros, and without the rest of the last block. */
    check_all_ways(m.bytes, m.size - 1024,
                   "a/one.jpg 1024 5 -\nb/two.txt 2048 5 hello\nempty.cls 3072 0 \n"
                   "last 4096 1 -\n");
    check_all_ways(m.bytes, 4097,
                   "a/one.jpg 1024 5 -\nb/two.txt 2048 5 hello\nempty.cls 3072 0 \n"
                   "last 4096 1 -\n");
}

static void reads_joined_tars(void) {
    made m = {0};
    add_file(&m, "a", "1");
    memset(m.bytes + m.size, 0, 2048);
    m.size += 2048;
    add_file(&m, "b", "2");
    m.size += 512; /* one block of zeros */
    check_all_ways(m.bytes, m.size, "a 512 1 -\nb 3584 1 -\n");
}

static void passes_links_and_devices_over(void) {
    made m = {0};
    told t;
    add_header(&m, "hard", '1', 700); /* the size of what is meant: no bytes follow */
    add_header(&m, "soft", '2', 0);
    add_header(&m, "pipe", '6', 0);
    add_header(&m, "what", 'Q', 3);
    add_body(&m, "???", 3);
    add_file(&m, "../out", "x");
    add_file(&m, "a/../../out", "x");
    add_file(&m, ".", "x");
    add_file(&m, "file", "x");
    REQUIRE_OK(read_pieces(&t, m.bytes, m.size, 4096, true), &t.error);
    CHECK_CONTAINS(stk_str_text(&t.lines), "file ");
    CHECK_INT(t.members, 1);
    CHECK_INT(t.counts.links, 2);
    CHECK_INT(t.counts.unknown, 5);
    forget(&t);
}

static void reads_numbers_in_all_spellings(void) {
    static const struct {
        const char *field; /* 12 bytes */
        long long size;    /* -1: refused */
    } cases[] = {
        {"00000000005\0", 5},
        {"         5 \0", 5},
        {"5\0\0\0\0\0\0\0\0\0\0\0", 5},
        {"000000000005", 5},
        {"           5", 5},
        {"\0\0\0\0\0\0\0\0\0\0\0\0", 0},
        {"            ", 0},
        {"\x80\0\0\0\0\0\0\0\0\0\0\x05", 5},
        {"\x80\0\0\0\x80\0\0\0\0\0\0\x05", -1},
        {"\x80\0\0\x01\0\0\0\0\0\0\0\x05", -1},
        {"\x80\0\0\0\x7f\xff\xff\xff\xff\xff\xff\xff", -1},
        {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", -1},
        {"0000000000x\0", -1},
        {"-0000000005\0", -1},
        {"00000000008\0", -1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        made m = {0};
        told t;
        char expected[40];
        uint8_t *header = add_header(&m, "a", '0', 0);
        memcpy(header + 124, cases[i].field, 12);
        set_sum(header);
        add_body(&m, "12345", 5);
        stk_status status = read_pieces(&t, m.bytes, m.size, 512, true);
        if (cases[i].size < 0) {
            CHECK_INT(status, STK_ERR_DATA);
            CHECK_CONTAINS(t.error.message, "x.tar");
            CHECK_CONTAINS(t.error.message, "size");
        } else if (cases[i].size == 5) {
            snprintf(expected, sizeof expected, "a 512 %lld -\n", cases[i].size);
            CHECK_STR(stk_str_text(&t.lines), expected);
            CHECK_INT(status, STK_OK);
        } else { /* and the body is then no header */
            CHECK_CONTAINS(stk_str_text(&t.lines), "a 512 0 -\n");
            CHECK_INT(status, STK_ERR_DATA);
        }
        forget(&t);
    }
}

static void accepts_signed_sums(void) {
    made m = {0};
    uint8_t *header = add_header(&m, "caf\xc3\xa9", '0', 0);
    int sum = 0;
    memset(header + 148, ' ', 8);
    for (int i = 0; i < STK_TAR_BLOCK; i++) {
        sum += header[i] < 128 ? header[i] : header[i] - 256;
    }
    snprintf((char *)header + 148, 8, "%06o", (unsigned)sum);
    check_all_ways(m.bytes, m.size, "caf\xc3\xa9 512 0 -\n");
}

static void reads_pax_headers(void) {
    made m = {0};
    static const char path[] = "25 path=long/n\xc3\xa4me/a.jpg\n18 mtime=1.000000\n";
    add_header(&m, "pax_global_header", 'g', 22);
    add_body(&m, "22 comment=0123456789\n", 22);
    add_header(&m, "PaxHeaders/x", 'x', sizeof path - 1);
    add_body(&m, path, sizeof path - 1);
    add_file(&m, "short", "123");
    add_header(&m, "PaxHeaders/x", 'x', 9);
    add_body(&m, "9 size=5\n", 9);
    add_header(&m, "sized", '0', 0);
    add_body(&m, "12345", 5);
    add_header(&m, "PaxHeaders/x", 'x', 16);
    add_body(&m, "8 path=\n8 size=\n", 16);
    add_file(&m, "plain", "1");
    check_all_ways(m.bytes, m.size,
                   "long/n\xc3\xa4me/a.jpg 2560 3 -\nsized 4608 5 -\nplain 6656 1 -\n");
}

static void refuses_broken_pax_headers(void) {
    static const char *const lines[] = {"99 path=a\n",  "x path=a\n",    "10 path=ab",
                                        "10path=abc\n", "9 pathxa\n",    "0 path=a\n",
                                        "4 =\n4 x\n",   "12 size=1.5\n", "12 size=-15\n"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        made m = {0};
        add_file(&m, "before.jpg", "1");
        add_header(&m, "PaxHeaders/x", 'x', (unsigned)strlen(lines[i]));
        add_body(&m, lines[i], strlen(lines[i]));
        add_file(&m, "short", "123");
        const char *message = failure(&m);
        CHECK_CONTAINS(message, "x.tar");
        CHECK_CONTAINS(message, "byte 1024, after the member before.jpg,");
    }
    made m = {0};
    add_header(&m, "PaxHeaders/x", 'x', 10);
    add_body(&m, "10 path=\0\n", 10);
    CHECK_CONTAINS(failure(&m), "NUL");
}

static void says_what_is_wrong(void) {
    made m = {0};
    add_file(&m, "a.jpg", "1");
    add_file(&m, "b.jpg", "2");
    m.bytes[1024] ^= 1;
    CHECK_STR(failure(&m), "cannot read the tar x.tar: the header at byte 1024, after the member "
                           "a.jpg, is damaged (its checksum is wrong); make or copy the tar again");
    /* A page of zeros in the middle is not taken for the end. */
    memset(m.bytes + 1024, 0, 512);
    CHECK_CONTAINS(failure(&m), "the header at byte 1536, after the member a.jpg, is none");

    m.size = 0;
    add_header(&m, "holes", 'S', 5);
    add_body(&m, "12345", 5);
    CHECK_CONTAINS(failure(&m), "its member holes, with the header at byte 0, is a sparse file");
    m.size = 0;
    add_header(&m, "PaxHeaders/x", 'x', 22);
    add_body(&m, "22 GNU.sparse.major=1\n", 22);
    add_file(&m, "holes", "12345");
    CHECK_CONTAINS(failure(&m), "sparse");
    m.size = 0;
    add_header(&m, "part", 'M', 5);
    CHECK_CONTAINS(failure(&m), "volume");
    m.size = 0;
    add_header(&m, "////LongLink", 'L', 077777777);
    CHECK_CONTAINS(failure(&m), "longer than any");
}

static void refuses_what_is_no_tar(void) {
    static const struct {
        const char *magic;
        const char *word;
    } cases[] = {{"\x1f\x8b\x08", "gzip"}, {"\x28\xb5\x2f\xfd", "zstd"},
                 {"\xfd\x37zXZ", "xz"},    {"BZh9", "bzip2"},
                 {"PK\x03\x04", "zip"},    {"hello, this is no tar", "is no tar"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        made m = {.size = 2048};
        memcpy(m.bytes, cases[i].magic, strlen(cases[i].magic));
        CHECK_CONTAINS(failure(&m), cases[i].word);
        CHECK_CONTAINS(failure(&m), "x.tar");
        m.size = 30;
        CHECK_CONTAINS(failure(&m), cases[i].word);
    }
    made m = {0};
    CHECK_CONTAINS(failure(&m), "it is empty (0 bytes)");
    m.size = 1024; /* a tar without members is one */
    check_all_ways(m.bytes, m.size, "");
}

/* Every cut is found, but for those that take nothing away. */
static void finds_every_cut(void) {
    made m = {0};
    add_file(&m, "a.jpg", "12345");
    add_header(&m, "PaxHeaders/x", 'x', 9);
    add_body(&m, "9 size=5\n", 9);
    add_header(&m, "b.jpg", '0', 0);
    add_body(&m, "12345", 5);
    for (size_t cut = 0; cut < m.size; cut++) {
        told t;
        stk_status status = read_pieces(&t, m.bytes, cut, 512, true);
        bool whole = (cut >= 517 && cut <= 1024) || cut >= 2565;
        CHECK_INT(status, whole ? STK_OK : STK_ERR_DATA);
        if (!whole) {
            CHECK_CONTAINS(t.error.message, "x.tar");
        }
        forget(&t);
    }
    m.size = 515;
    CHECK_STR(failure(&m),
              "the tar x.tar is cut off inside the member a.jpg, whose header at byte 0 says that "
              "it ends at byte 517: the file ends before; copy it again");
    m.size = 1200;
    CHECK_STR(failure(&m), "the tar x.tar is cut off, after the member a.jpg, inside a header at "
                           "byte 1024; copy it again");
}

/* Runs a command quietly; false when it fails. */
static bool run(const char *format, ...) __attribute__((format(printf, 1, 2)));
static bool run(const char *format, ...) {
    char command[2000];
    va_list args;
    va_start(args, format);
    vsnprintf(command, sizeof command, format, args);
    va_end(args);
    return system(command) == 0;
}

/* Files with names of every length, in a folder; long ones only where a format can have them. */
static bool make_files(const char *folder, bool long_names) {
    bool ok = run("mkdir -p '%s/in/Faces' && cd '%s/in' && printf 12345 >Faces/image_0001.jpg && "
                  "printf 7 >Faces/image_0001.cls && : >empty.txt && head -c 70000 /dev/zero "
                  ">large.bin && ln -s large.bin soft && ln large.bin zhard",
                  folder, folder);
    /* 100 bytes of name, 101, 155 of folder, and more than any header has room for. */
    for (int n = 95; long_names && n <= 255 && ok; n += 5) {
        ok = run("cd '%s/in' && f=$(printf 'd%%0*d' $((%d / 2)) 0) && mkdir -p $f && printf %d "
                 ">$f/$(printf '%%0*d' $((%d - %d / 2 - 2)) 1).cls",
                 folder, n, n, n, n);
    }
    return ok &&
           (!long_names || run("cd '%s/in' && printf u >'Fac\xc3\xa9s \xe2\x82\xac.cls'", folder));
}

/* Compares what a tar's members hold with the files that went into it. */
static void check_against_files(const char *folder, const uint8_t *bytes, size_t size,
                                size_t least) {
    stk_tar_reader *reader = NULL;
    stk_tar_member member;
    stk_tar_found found = STK_TAR_MEMBER;
    stk_error err = {0};
    size_t members = 0;
    REQUIRE_OK(stk_tar_reader_open(&reader, "x.tar", is_text, &err), &err);
    while (found == STK_TAR_MEMBER &&
           stk_tar_reader_next(reader, 0, bytes, size, &found, &member, &err) == STK_OK) {
        if (found == STK_TAR_MEMBER) {
            stk_bytes file = {0};
            char *path = stk_str_format("%s/in/%s", folder, member.path);
            CHECK_INT(stk_file_read_into(path, 0, &file, &err), STK_OK);
            CHECK_INT(file.size, member.size);
            CHECK(member.offset + member.size <= size &&
                  memcmp(file.data, bytes + member.offset, file.size) == 0);
            CHECK(!is_text(member.path) || strcmp((char *)file.data, member.text) == 0);
            stk_bytes_free(&file);
            stk_mem_free(path);
            members++;
        }
    }
    CHECK_INT(err.status, STK_OK);
    CHECK(members >= least);
    if (members < least) {
        CHECK_FAIL("%zu members, expected %zu", members, least);
    }
    CHECK_INT(stk_tar_reader_counts(reader).links, 2);
    stk_tar_reader_close(reader);
}

static void check_made_tar(const char *folder, const char *name, size_t least) {
    stk_error err = {0};
    stk_bytes tar = {0};
    told whole;
    char *path = stk_path_join(folder, name);
    REQUIRE_OK(stk_file_read_into(path, 0, &tar, &err), &err);
    check_against_files(folder, tar.data, tar.size, least);
    if (read_pieces(&whole, tar.data, tar.size, tar.size, false) == STK_OK) {
        check_all_ways(tar.data, tar.size, stk_str_text(&whole.lines));
    } else {
        CHECK_FAIL("%s: %s", name, whole.error.message);
    }
    forget(&whole);
    stk_bytes_free(&tar);
    stk_mem_free(path);
}

static void reads_what_tar_writes(void) {
    static const char *const formats[] = {"v7", "oldgnu", "gnu", "ustar", "posix"};
    if (!run("tar --version >/dev/null 2>&1")) {
        CHECK_SKIP("there is no tar here");
    }
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        char folder[300];
        bool long_names = i != 0 && i != 3;
        snprintf(folder, sizeof folder, "%s", check_folder());
        REQUIRE(make_files(folder, long_names));
        if (!run("cd '%s' && tar --format=%s -cf x.tar -C in . 2>/dev/null", folder, formats[i])) {
            CHECK_SKIP("this tar knows no --format");
        }
        check_made_tar(folder, "x.tar", long_names ? 38 : 4);
    }
}

static void reads_what_python_writes(void) {
    static const char *const formats[] = {"USTAR", "GNU", "PAX"};
    if (!run("python3 -c 'import tarfile' >/dev/null 2>&1")) {
        CHECK_SKIP("there is no Python here");
    }
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        char folder[300];
        snprintf(folder, sizeof folder, "%s", check_folder());
        REQUIRE(make_files(folder, i != 0));
        REQUIRE(run("cd '%s' && python3 -c 'import tarfile; t = tarfile.open(\"x.tar\", \"w\", "
                    "format=tarfile.%s_FORMAT); t.add(\"in\", \".\"); t.close()'",
                    folder, formats[i]));
        check_made_tar(folder, "x.tar", i != 0 ? 38 : 4);
    }
}

static void refuses_sparse_tars(void) {
    char folder[300];
    stk_error err = {0};
    snprintf(folder, sizeof folder, "%s", check_folder());
    REQUIRE(run("cd '%s' && mkdir in && head -c 1000000 /dev/zero >in/zeros && truncate -s 9000000 "
                "in/zeros",
                folder));
    for (int i = 0; i < 2; i++) {
        stk_bytes tar = {0};
        told t;
        char *path = stk_path_join(folder, "x.tar");
        if (!run("cd '%s' && tar --format=%s --sparse -cf x.tar in 2>/dev/null", folder,
                 i == 0 ? "gnu" : "posix")) {
            stk_mem_free(path);
            CHECK_SKIP("there is no tar with --sparse here");
        }
        REQUIRE_OK(stk_file_read_into(path, 0, &tar, &err), &err);
        CHECK_INT(read_pieces(&t, tar.data, tar.size, 4096, true), STK_ERR_DATA);
        CHECK_CONTAINS(t.error.message, "sparse");
        forget(&t);
        stk_bytes_free(&tar);
        stk_mem_free(path);
    }
}

/* Paths at every limit of ustar, and some that it cannot have. */
static char *odd_path(int n) {
    static const char *const names[] = {"a.jpg", "train/Faces/image_0001.jpg",
                                        "with blanks and = signs/+%41.jpg", "caf\xc3\xa9/x.cls",
                                        "control\x01.jpg"};
    if (n < 5) {
        return stk_mem_strdup(names[n]);
    }
    /* Names of 95 to 105 bytes, then folders of 150 to 160 with a name, then long ones. */
    if (n < 16) {
        return stk_str_format("%0*d", 90 + n, n);
    }
    if (n < 27) {
        return stk_str_format("%0*d/%0*d", 134 + n, n, 100, 1);
    }
    stk_str path = {0};
    for (int i = 26; i < n; i++) {
        stk_str_appendf(&path, "%0200d/", i);
    }
    stk_str_appendf(&path, "%d", n);
    return stk_str_take(&path);
}

#define ODD_PATHS 32

static stk_status write_odd(const char *file, uint64_t *offsets, uint64_t *size, stk_error *err) {
    stk_tar_writer *writer = NULL;
    char data[3000];
    memset(data, 'x', sizeof data);
    stk_status status = stk_tar_writer_open(&writer, file, err);
    for (int i = 0; status == STK_OK && i < ODD_PATHS; i++) {
        char *path = odd_path(i);
        status = path == NULL
                     ? STK_FAIL_MEMORY(err, "a path")
                     : stk_tar_writer_add(writer, path, data, (size_t)i * 90, &offsets[i], err);
        stk_mem_free(path);
    }
    if (status != STK_OK) {
        stk_tar_writer_discard(writer);
        return status;
    }
    return stk_tar_writer_commit(writer, size, err);
}

static void writes_what_it_reads(void) {
    uint64_t offsets[ODD_PATHS];
    uint64_t size;
    stk_error err = {0};
    stk_bytes tar = {0};
    stk_str expected = {0};
    char *path = stk_path_join(check_folder(), "x.tar");
    REQUIRE_OK(write_odd(path, offsets, &size, &err), &err);
    REQUIRE_OK(stk_file_read_into(path, 0, &tar, &err), &err);
    CHECK_INT(tar.size, size);
    for (int i = 0; i < ODD_PATHS; i++) {
        char *name = odd_path(i);
        stk_str_appendf(&expected, "%s %llu %d %.*s\n", name, (unsigned long long)offsets[i],
                        i * 90, is_text(name) ? i * 90 : 1,
                        is_text(name) ? (const char *)tar.data + offsets[i] : "-");
        stk_mem_free(name);
    }
    check_all_ways(tar.data, tar.size, stk_str_text(&expected));
    stk_str_free(&expected);

    /* The same files give the same tar. */
    stk_bytes again = {0};
    REQUIRE_OK(write_odd(path, offsets, NULL, &err), &err);
    REQUIRE_OK(stk_file_read_into(path, 0, &again, &err), &err);
    CHECK(again.size == tar.size && memcmp(again.data, tar.data, tar.size) == 0);
    stk_bytes_free(&again);
    stk_bytes_free(&tar);
    stk_mem_free(path);
}

static void writes_what_others_read(void) {
    uint64_t offsets[ODD_PATHS];
    stk_error err = {0};
    char folder[300];
    snprintf(folder, sizeof folder, "%s", check_folder());
    char *path = stk_path_join(folder, "x.tar");
    REQUIRE_OK(write_odd(path, offsets, NULL, &err), &err);
    stk_mem_free(path);
    if (!run("tar --version >/dev/null 2>&1")) {
        CHECK_SKIP("there is no tar here");
    }
    REQUIRE(run("cd '%s' && tar -xf x.tar 2>err && test ! -s err", folder));
    for (int i = 0; i < ODD_PATHS; i++) {
        struct stat info;
        char *name = odd_path(i);
        char *whole = stk_path_join(folder, name);
        CHECK_INT(stat(whole, &info), 0);
        CHECK_INT(info.st_size, i * 90);
        CHECK_INT(info.st_mtime, 0);
        stk_mem_free(whole);
        stk_mem_free(name);
    }
}

static void leaves_nothing_half_done(void) {
    stk_error err = {0};
    stk_tar_writer *writer = NULL;
    stk_dir_list list;
    const char *folder = check_folder();
    char *path = stk_path_join(folder, "x.tar");
    REQUIRE_OK(stk_tar_writer_open(&writer, path, &err), &err);
    REQUIRE_OK(stk_tar_writer_add(writer, "a", "123", 3, NULL, &err), &err);
    stk_tar_writer_discard(writer);
    CHECK(!stk_path_is_file(path));
    stk_tar_writer_discard(NULL);
    REQUIRE_OK(stk_dir_read(folder, &list, &err), &err);
    CHECK_INT(list.count, 0);
    stk_dir_list_free(&list);
    stk_mem_free(path);

    path = stk_path_join(folder, "missing/x.tar");
    CHECK_INT(stk_tar_writer_open(&writer, path, &err), STK_ERR_STORAGE);
    CHECK_CONTAINS(err.message, "missing/x.tar");
    stk_mem_free(path);
}

/* Without memory there is an error and nothing else. */
static void survives_without_memory(void) {
    made m = {0};
    add_header(&m, "x", 'x', 13);
    add_body(&m, "13 path=name\n", 13);
    add_file(&m, "short", "1");
    add_header(&m, "x", 'L', 9);
    add_body(&m, "long.name", 9);
    add_file(&m, "short.cls", "1");
    stk_status status = STK_ERR_MEMORY;
    for (int64_t n = 0; status == STK_ERR_MEMORY && n < 100; n++) {
        stk_tar_reader *reader = NULL;
        stk_tar_member member;
        stk_tar_found found = STK_TAR_MEMBER;
        stk_error err = {0};
        stk_mem_fail_after(n);
        status = stk_tar_reader_open(&reader, "x.tar", is_text, &err);
        while (status == STK_OK && found == STK_TAR_MEMBER) {
            status = stk_tar_reader_next(reader, 0, m.bytes, m.size, &found, &member, &err);
        }
        stk_mem_fail_after(-1);
        stk_tar_reader_close(reader);
        CHECK(status == STK_OK || n < 99);
    }
    CHECK_INT(status, STK_OK);

    char *path = stk_path_join(check_folder(), "x.tar");
    status = STK_ERR_MEMORY;
    for (int64_t n = 0; status == STK_ERR_MEMORY && n < 500; n++) {
        uint64_t offsets[ODD_PATHS];
        stk_error err = {0};
        stk_mem_fail_after(n);
        status = write_odd(path, offsets, NULL, &err);
        stk_mem_fail_after(-1);
        CHECK(status == STK_OK || !stk_path_is_file(path));
    }
    CHECK_INT(status, STK_OK);
    stk_mem_free(path);
}

static const check_test tests[] = {
    TEST(reads_plain_headers),           TEST(reads_joined_tars),
    TEST(passes_links_and_devices_over), TEST(reads_numbers_in_all_spellings),
    TEST(accepts_signed_sums),           TEST(reads_pax_headers),
    TEST(refuses_broken_pax_headers),    TEST(says_what_is_wrong),
    TEST(refuses_what_is_no_tar),        TEST(finds_every_cut),
    TEST(reads_what_tar_writes),         TEST(reads_what_python_writes),
    TEST(refuses_sparse_tars),           TEST(writes_what_it_reads),
    TEST(writes_what_others_read),       TEST(leaves_nothing_half_done),
    TEST(survives_without_memory),
};
CHECK_MAIN(tests)
