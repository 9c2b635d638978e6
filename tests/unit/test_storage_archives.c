/* Tests of archives in a location: where their members are shown, how they are read, which are
 * refused. */
#include "check.h"

#include <sys/stat.h>

#include "base/error.h"
#include "base/mem.h"
#include "storage/archives/archive_names.h"
#include "storage/reading/store_state.h"
#include "storage/tar/tar_write.h"
#include "bson_files.h"
#include "zip_files.h"

#ifdef STK_HAVE_ARCHIVE
#include <archive.h>
#include <archive_entry.h>
#endif

static char folder[256]; /* of the running test */
static stk_str told;     /* decisions and warnings */

static void begin(void) {
    snprintf(folder, sizeof folder, "%s", check_folder());
    char *kept = stk_path_join(folder, ".kept");
    setenv("XDG_CACHE_HOME", kept, 1);
    stk_mem_free(kept);
    stk_str_clear(&told);
}

static void told_decision(void *user, const stk_event_decision *event) {
    (void)user;
    stk_str_appendf(&told, "%s (%s)\n", event->what, event->why);
}

static void told_warning(void *user, const char *text) {
    (void)user;
    stk_str_appendf(&told, "%s\n", text);
}

static const stk_observer observer = {
    .size = sizeof observer, .decision = told_decision, .warning = told_warning};

/* The path of a file of the test's folder, whose own folder is made. */
static const char *in_folder(const char *name) {
    static char path[600];
    stk_error err = {0};
    snprintf(path, sizeof path, "%s/%s", folder, name);
    char *parent = stk_mem_strndup(path, (size_t)(stk_path_base(path) - path - 1));
    CHECK_INT(stk_dir_make(parent, &err), STK_OK);
    stk_mem_free(parent);
    return path;
}

static void write_file(const char *name, const char *text) {
    stk_error err = {0};
    CHECK_INT(stk_file_write(in_folder(name), text, strlen(text), &err), STK_OK);
}

/* Writes an archive of members that hold "in NAME", stored and deflated in turn. */
static void write_zip(const char *name, const char *const *members) {
    zip_writer w = {0};
    stk_error err = {0};
    for (size_t i = 0; members[i] != NULL; i++) {
        char *text = stk_str_format("in %s", members[i]);
        zip_add_text(&w, members[i], text, i % 2 == 0 ? 0 : ZIP_DEFLATE | ZIP_DESCRIPTOR);
        stk_mem_free(text);
    }
    CHECK_INT(zip_save(&w, in_folder(name), &err), STK_OK);
}

static void write_tar(const char *name, const char *const *members) {
    stk_error err = {0};
    stk_tar_writer *tar = NULL;
    REQUIRE_OK(stk_tar_writer_open(&tar, in_folder(name), &err), &err);
    for (; *members != NULL; members++) {
        char *text = stk_str_format("in %s", *members);
        CHECK_INT(stk_tar_writer_add(tar, *members, text, strlen(text), NULL, &err), STK_OK);
        stk_mem_free(text);
    }
    CHECK_INT(stk_tar_writer_commit(tar, NULL, &err), STK_OK);
}

#define WRITE_ZIP(name, ...) write_zip(name, (const char *const[]){__VA_ARGS__, NULL})
#define WRITE_TAR(name, ...) write_tar(name, (const char *const[]){__VA_ARGS__, NULL})

static stk_status open_store(stk_store **store, stk_error *err) {
    stk_events events = {0};
    stk_storage_options options = {
        .cache = "off", .cache_size = STK_AUTO_BYTES, .read_timeout_s = 30};
    stk_events_add(&events, &observer);
    *store = NULL;
    return stk_store_open(store, folder, &options, &events, err);
}

/* All that a store shows, each path followed by a blank. */
static void show(stk_store *store, const char *at, stk_str *out) {
    stk_dir_list list;
    stk_error err = {0};
    CHECK_INT(stk_store_list(store, at, &list, &err), STK_OK);
    for (size_t i = 0; i < list.count; i++) {
        char *path = at[0] != '\0' ? stk_path_join(at, list.entries[i].name)
                                   : stk_mem_strdup(list.entries[i].name);
        if (list.entries[i].is_dir) {
            show(store, path, out);
        } else {
            stk_str_appendf(out, "%s ", path);
        }
        stk_mem_free(path);
    }
    stk_dir_list_free(&list);
}

static void check_read(stk_store *store, const char *path, const char *expected) {
    stk_bytes bytes = {0};
    stk_error err = {0};
    if (stk_store_read(store, path, &bytes, &err) != STK_OK) {
        CHECK_FAIL("%s: %s", path, err.message);
    } else if (bytes.size != strlen(expected) ||
               (bytes.size > 0 && memcmp(bytes.data, expected, bytes.size) != 0)) {
        CHECK_FAIL("%s holds '%.*s', expected '%s'", path, (int)bytes.size, (char *)bytes.data,
                   expected);
    }
    stk_bytes_free(&bytes);
}

/* Opens the folder and compares what it shows; what lies in archives holds "in NAME". */
static void check_shown(const char *expected) {
    stk_store *store;
    stk_error err = {0};
    stk_str shown = {0};
    stk_str_clear(&told);
    REQUIRE_OK(open_store(&store, &err), &err);
    show(store, "", &shown);
    CHECK_STR(stk_str_text(&shown), expected);
    stk_str_free(&shown);
    stk_store_close(store);
}

/* What is told when the folder is opened; it must open. */
static const char *words(void) {
    static stk_error err;
    stk_store *store = NULL;
    stk_error_clear(&err);
    stk_str_clear(&told);
    if (open_store(&store, &err) != STK_OK) {
        return err.message;
    }
    stk_store_close(store);
    return stk_str_text(&told);
}

/* ---- names ---- */

static void knows_names_and_magic(void) {
    static const struct {
        const char *name;
        size_t stem;
    } names[] = {{"train.zip", 5},      {"train.csv.zip", 9}, {"a.tar.gz", 1},   {"a.TGZ", 1},
                 {"train.json.7z", 10}, {"a.tar", 1},         {"a.csv.gz", 5},   {"a.jpg", 0},
                 {".zip", 0},           {"a.tfrec", 0},       {"a.tfrecord", 0}, {"", 0}};
    const char *format = NULL;
    for (size_t i = 0; i < STK_COUNT(names); i++) {
        CHECK_INT(stk_archive_stem(names[i].name), names[i].stem);
    }
    CHECK_INT(stk_archive_kind_of((const uint8_t *)"PK\x03\x04", 4, &format), STK_ARCHIVE_ZIP);
    CHECK_INT(stk_archive_kind_of((const uint8_t *)"PK\x03", 3, &format), STK_ARCHIVE_NONE);
    CHECK_INT(stk_archive_kind_of((const uint8_t *)"7z\xbc\xaf\x27\x1c", 6, &format),
              STK_ARCHIVE_PACKED);
    CHECK_STR(format, "7z");
    CHECK_INT(stk_archive_kind_of((const uint8_t *)"<html>", 6, &format), STK_ARCHIVE_NONE);
}

/* ---- where members are shown ---- */

static void shows_members_in_a_folder_of_the_stem(void) {
    begin();
    write_file("train.csv", "id,label");
    WRITE_ZIP("train.zip", "1.jpg", "2.jpg");
    WRITE_ZIP("test.zip", "test/1.jpg", "test/deep/2.jpg", "__MACOSX/test/1.jpg");
    WRITE_ZIP("classes.zip", "cat/1.jpg", "dog/1.jpg");
    WRITE_TAR("val2019.tar.gz", "Plants/1.jpg");
    check_shown("classes/cat/1.jpg classes/dog/1.jpg test/1.jpg test/deep/2.jpg train/1.jpg "
                "train/2.jpg train.csv val2019/Plants/1.jpg ");
    CHECK_STR(stk_str_text(&told), "");
}

static void shows_packed_tables_at_the_top(void) {
    begin();
    WRITE_ZIP("train.csv.zip", "train.csv");
    WRITE_ZIP("tables.zip", "test.csv", "map.json");
    WRITE_ZIP("train.zip", "1.jpg");
    WRITE_ZIP("images.zip", "images/1.jpg", "images.csv");
    WRITE_ZIP("more.zip", "more/1.jpg", "other/1.jpg", "more.csv");
    check_shown("images/1.jpg images.csv map.json more/more/1.jpg more/more.csv "
                "more/other/1.jpg test.csv train/1.jpg train.csv ");
}

static void shows_the_only_file_under_the_name_of_the_archive(void) {
    begin();
    write_file("sample.csv", "id");
    WRITE_ZIP("train.json.zip", "data/processed/train.json");
    WRITE_ZIP("test.json.zip", "data/processed/other.json");
    check_shown("sample.csv test.json/data/processed/other.json train.json ");
}

/* A sole archive holds the data set, perhaps in one folder, which has no name of a part. */
static void looks_through_the_folder_around_a_data_set(void) {
    begin();
    WRITE_ZIP("download.zip", "pets-1.0/train/1.jpg", "pets-1.0/train.csv");
    check_shown("train/1.jpg train.csv ");
    begin();
    WRITE_ZIP("pets.zip", "train/cat/1.jpg", "train/dog/1.jpg");
    check_shown("train/cat/1.jpg train/dog/1.jpg ");
}

static void bson_is_shown_as_pictures_and_a_table(void) {
    static const char *const pictures[] = {"one", "two", NULL};
    stk_store *store;
    stk_error err = {0};
    begin();
    stk_str_clear(&bson_file);
    for (int i = 0; i < 2; i++) {
        size_t at = open_document();
        put_int32("_id", 7 + i);
        put_string("name", "a, b");
        put_pictures(pictures + i);
        close_document(at);
    }
    write_file("notes.csv", "id");
    CHECK_INT(stk_file_write(in_folder("more.bson"), bson_file.text, bson_file.length, &err),
              STK_OK);
    for (int run = 0; run < 2; run++) {
        check_shown("more/7/0.jpg more/7/1.jpg more/8/0.jpg more.bson.csv notes.csv ");
        CHECK((strstr(stk_str_text(&told), "reading more.bson once") != NULL) == (run == 0));
        REQUIRE_OK(open_store(&store, &err), &err);
        check_read(store, "more/7/1.jpg", "two");
        check_read(store, "more.bson.csv", "_id,name\n7,\"a, b\"\n8,\"a, b\"\n");
        stk_store_close(store);
    }
    write_file("more.bson", "");
    check_shown("more.bson notes.csv ");
    write_file("more.bson", "\x20\x01");
    check_shown("more.bson notes.csv ");
    CHECK_CONTAINS(stk_str_text(&told), "more.bson is not used");
}

static void made_files_have_a_folder_of_their_own(void) {
    stk_store *store;
    stk_error err = {0};
    begin();
    write_file("a.json", "[]");
    REQUIRE_OK(open_store(&store, &err), &err);
    char *made = stk_store_made_folder(store, "a.json");
    char *other = stk_store_made_folder(store, "b.json");
    REQUIRE(made != NULL && other != NULL);
    CHECK(strcmp(made, other) != 0);
    CHECK_INT(stk_dir_make(made, &err), STK_OK);
    char *file = stk_path_join(made, "1.npy");
    CHECK_INT(stk_file_write(file, "numbers", 7, &err), STK_OK);
    REQUIRE_OK(stk_store_show(store, made, "a", "v1", &err), &err);
    REQUIRE_OK(stk_store_show(store, made, "b", "v1", &err), &err);
    check_read(store, "a/1.npy", "numbers");
    check_read(store, "b/1.npy", "numbers");
    stk_str shown = {0};
    show(store, "", &shown);
    CHECK_STR(stk_str_text(&shown), "a/1.npy a.json b/1.npy ");
    CHECK_INT(stk_store_size(store, "b/1.npy"), 7);
    CHECK_INT(stk_store_show(store, folder, "c", "v1", &err), STK_ERR_INTERNAL);
    stk_str_free(&shown);
    stk_mem_free(file);
    stk_mem_free(made);
    stk_mem_free(other);
    stk_store_close(store);
}

static void shows_a_single_archive_as_its_contents(void) {
    begin();
    write_file("description.md", "words");
    WRITE_ZIP("contest.zip", "train/1.jpg", "test/1.jpg", "train.csv");
    check_shown("description.md test/1.jpg train/1.jpg train.csv ");
    begin();
    WRITE_ZIP("contest.zip", "contest/train/1.jpg", "contest/test/1.jpg");
    check_shown("test/1.jpg train/1.jpg ");
    begin();
    WRITE_ZIP("pets.zip", "cat/1.jpg", "dog/1.jpg");
    check_shown("cat/1.jpg dog/1.jpg ");
    begin();
    WRITE_ZIP("train.zip", "train/cat/1.jpg", "train/dog/1.jpg");
    check_shown("train/cat/1.jpg train/dog/1.jpg ");
    begin(); /* the table was downloaded alone, too */
    write_file("sample_submission.csv", "id,label");
    WRITE_ZIP("contest.zip", "train/1.jpg", "test/1.jpg", "train.csv");
    check_shown("sample_submission.csv test/1.jpg train/1.jpg train.csv ");
}

static void leaves_alone_what_is_unpacked(void) {
    begin();
    write_file("train/1.jpg", "own");
    write_file("train.csv", "own");
    write_file("test/.hidden", "");
    WRITE_ZIP("train.zip", "1.jpg", "2.jpg");
    WRITE_ZIP("train.csv.zip", "train.csv");
    WRITE_ZIP("test.zip", "1.jpg");
    check_shown("test/1.jpg train/1.jpg train.csv train.csv.zip train.zip ");
    CHECK_CONTAINS(stk_str_text(&told), "train.zip is not used (the folder train has its files)\n");
    CHECK_CONTAINS(stk_str_text(&told),
                   "train.csv.zip is not used (the file train.csv is there)\n");
    begin(); /* what the folders of the classes came from */
    write_file("cat/1.jpg", "own");
    write_file("dog/1.jpg", "own");
    WRITE_ZIP("pets.zip", "cat/1.jpg", "dog/1.jpg");
    WRITE_ZIP("more.zip", "pets/cat/1.jpg", "pets/dog/1.jpg");
    check_shown("cat/1.jpg dog/1.jpg more.zip pets.zip ");
    CHECK_CONTAINS(stk_str_text(&told),
                   "pets.zip is not used (all that it holds is there already)");
    begin(); /* two archives of one folder */
    WRITE_ZIP("train.zip", "1.jpg");
    WRITE_TAR("train.tar", "2.jpg");
    write_file("x/1.jpg", "own");
    check_shown("train/2.jpg train.zip x/1.jpg ");
    CHECK_CONTAINS(stk_str_text(&told), "train.zip is not used (train comes from another archive)");
}

static void takes_plain_tars_with_other_names_for_archives(void) {
    begin();
    write_file("train2019.json", "{}");
    WRITE_TAR("train_val2019.tar.gz", "Plants/400/1.jpg", "Birds/2/1.jpg");
    WRITE_TAR("test2019.tar.gz", "1.jpg");
    check_shown("test2019/1.jpg train2019.json train_val2019/Birds/2/1.jpg "
                "train_val2019/Plants/400/1.jpg ");
}

static void leaves_shards_as_they_are(void) {
    begin();
    WRITE_TAR("train-000.tar", "a/1.jpg", "b/1.jpg");
    WRITE_TAR("val-000.tar", "a/2.jpg");
    write_file("labels.csv", "x");
    check_shown("labels.csv train/a/1.jpg train/b/1.jpg val/a/2.jpg ");
    WRITE_ZIP("classes.csv.zip", "classes.csv");
    check_shown("classes.csv labels.csv train/a/1.jpg train/b/1.jpg val/a/2.jpg ");
}

/* ---- reading ---- */

static void reads_members_and_parts_of_them(void) {
    stk_store *store;
    stk_error err = {0};
    stk_bytes bytes = {0};
    bool has = false;
    begin();
    write_file("own.txt", "own");
    write_file("lone/1.jpg", "own");
    WRITE_ZIP("train.zip", "1.jpg", "2.jpg");
    WRITE_TAR("test.tar", "1.jpg", "2.jpg");
    REQUIRE_OK(open_store(&store, &err), &err);
    CHECK(stk_store_has_archives(store) && !stk_store_has_shards(store));
    check_read(store, "train/1.jpg", "in 1.jpg");
    check_read(store, "train/2.jpg", "in 2.jpg");
    check_read(store, "test/2.jpg", "in 2.jpg");
    check_read(store, "lone/1.jpg", "own");
    CHECK_INT(stk_store_size(store, "train/2.jpg"), 8);
    CHECK_INT(stk_store_size(store, "test/2.jpg"), 8);
    static const char *const members[] = {"train/1.jpg", "train/2.jpg", "test/1.jpg"};
    for (size_t i = 0; i < STK_COUNT(members); i++) {
        CHECK_INT(stk_store_read_part(store, members[i], 3, 2, &bytes, &err), STK_OK);
        CHECK(bytes.size == 2 && memcmp(bytes.data, i == 1 ? "2." : "1.", 2) == 0);
        CHECK_INT(stk_store_read_part(store, members[i], 6, 100, &bytes, &err), STK_OK);
        CHECK(bytes.size == 2 && memcmp(bytes.data, "pg", 2) == 0);
        CHECK_INT(stk_store_read_part(store, members[i], 100, 5, &bytes, &err), STK_OK);
        CHECK_INT(bytes.size, 0);
        CHECK_INT(stk_store_read_part(store, members[i], 0, 0, &bytes, &err), STK_OK);
        CHECK_INT(bytes.size, 8);
    }
    CHECK_INT(stk_store_has(store, "train/1.jpg", &has, &err), STK_OK);
    CHECK(has);
    CHECK_INT(stk_store_has(store, "train/9.jpg", &has, &err), STK_OK);
    CHECK(!has);
    CHECK_INT(stk_store_has(store, "own.txt", &has, &err), STK_OK);
    CHECK(has);
    CHECK_INT(stk_store_read(store, "train/9.jpg", &bytes, &err), STK_ERR_STORAGE);
    stk_error_clear(&err);
    stk_store_identity identity;
    CHECK_INT(stk_store_identify(store, "train", &identity, &err), STK_OK);
    CHECK(identity.inode == 0);
    CHECK_INT(stk_store_identify(store, "lone", &identity, &err), STK_OK);
    CHECK(identity.inode != 0);
    stk_bytes_free(&bytes);
    stk_store_close(store);
}

static void tells_damage_of_a_member(void) {
    stk_store *store;
    stk_error err = {0};
    stk_bytes bytes = {0};
    zip_writer w = {0};
    begin();
    write_file("t.csv", "x");
    w.says_crc = 77;
    zip_add_text(&w, "1.jpg", "one", 0);
    CHECK_INT(zip_save(&w, in_folder("train.zip"), &err), STK_OK);
    REQUIRE_OK(open_store(&store, &err), &err);
    CHECK_INT(stk_store_read(store, "train/1.jpg", &bytes, &err), STK_ERR_DATA);
    CHECK_CONTAINS(err.message, "cannot read train/1.jpg: its bytes in the archive train.zip are "
                                "damaged: it has another checksum");
    stk_bytes_free(&bytes);
    stk_store_close(store);
}

/* ---- what is refused ---- */

static void warns_of_archives_that_cannot_be_used(void) {
    zip_writer w = {0};
    stk_error err = {0};
    begin();
    write_file("t.csv", "x");
    write_file("page.zip", "<html>not found</html>");
    CHECK_CONTAINS(words(), "page.zip is not used: ");
    CHECK_CONTAINS(words(), "is no archive that Stoker knows");
    write_file("page.zip", "");
    CHECK_CONTAINS(words(), "is no archive that Stoker knows");
    write_file("page.zip", "PK\x03\x04 and so on");
    CHECK_CONTAINS(words(), "it has no directory at its end");
    begin();
    write_file("t.csv", "x");
    zip_add_text(&w, "../../1.jpg", "evil", 0);
    zip_add_text(&w, "1.jpg", "good", 0);
    zip_add_text(&w, "2.jpg", "secret", ZIP_LOCKED);
    CHECK_INT(zip_save(&w, in_folder("train.zip"), &err), STK_OK);
    CHECK_CONTAINS(words(), "left out 1 member of train.zip that is no file inside of it");
    CHECK_CONTAINS(words(), "left out 1 member of train.zip that needs a password");
    check_shown("t.csv train/1.jpg ");
    begin();
    write_file("t.csv", "x");
    WRITE_TAR("train.tgz", "1.jpg");
    CHECK_INT(truncate(in_folder("train.tgz"), 515), 0);
    CHECK_CONTAINS(words(), "train.tgz is cut off");
    check_shown("t.csv train.tgz ");
}

static void lacks_memory(void) {
    stk_store *store = NULL;
    stk_error err = {0};
    stk_status status = STK_ERR_MEMORY;
    begin();
    write_file("t.csv", "x");
    WRITE_ZIP("train.zip", "1.jpg", "2.jpg");
    WRITE_ZIP("test.zip", "test/1.jpg");
    for (int64_t n = 0; status != STK_OK && n < 2000; n++) {
        stk_str_clear(&told);
        stk_error_clear(&err);
        stk_mem_fail_after(n);
        status = open_store(&store, &err);
        stk_mem_fail_after(-1);
        if (status != STK_OK && status != STK_ERR_MEMORY && status != STK_ERR_DEVICE) {
            CHECK_FAIL("request %lld: %s", (long long)n, err.message);
        }
    }
    CHECK_INT(status, STK_OK);
    stk_store_close(store);
}

/* ---- unpacking ---- */

#ifdef STK_HAVE_ARCHIVE
/* An archive of libarchive's: a format, a filter or 0, and entries as "path" or "link>target". */
static void write_packed(const char *name, int format, int filter, const char *const *members) {
    struct archive *a = archive_write_new();
    struct archive_entry *entry = archive_entry_new();
    CHECK_INT(archive_write_set_format(a, format), ARCHIVE_OK);
    if (filter != 0) {
        CHECK_INT(archive_write_add_filter(a, filter), ARCHIVE_OK);
    }
    CHECK_INT(archive_write_open_filename(a, in_folder(name)), ARCHIVE_OK);
    for (; *members != NULL; members++) {
        const char *arrow = strchr(*members, '>');
        char *text = stk_str_format("in %s", *members);
        char *path = stk_mem_strndup(*members,
                                     arrow != NULL ? (size_t)(arrow - *members) : strlen(*members));
        archive_entry_clear(entry);
        archive_entry_set_pathname(entry, path);
        archive_entry_set_perm(entry, 0644);
        archive_entry_set_filetype(entry, arrow != NULL ? AE_IFLNK : AE_IFREG);
        if (arrow != NULL) {
            archive_entry_set_symlink(entry, arrow + 1);
        } else {
            archive_entry_set_size(entry, (la_int64_t)strlen(text));
        }
        CHECK(archive_write_header(a, entry) >= ARCHIVE_WARN);
        if (arrow == NULL) {
            CHECK_INT(archive_write_data(a, text, strlen(text)), strlen(text));
        }
        stk_mem_free(path);
        stk_mem_free(text);
    }
    archive_entry_free(entry);
    CHECK_INT(archive_write_close(a), ARCHIVE_OK);
    archive_write_free(a);
}

#define WRITE_PACKED(name, format, filter, ...) \
    write_packed(name, format, filter, (const char *const[]){__VA_ARGS__, NULL})

static void unpacks_once_what_cannot_be_read_in_place(void) {
    stk_store *store;
    stk_error err = {0};
    begin();
    WRITE_PACKED("train.csv.7z", ARCHIVE_FORMAT_7ZIP, 0, "train.csv");
    WRITE_PACKED("train.tar.gz", ARCHIVE_FORMAT_TAR_USTAR, ARCHIVE_FILTER_GZIP, "a/1.jpg",
                 "\xc3\xbc/2.jpg", "a/link.jpg>/etc/passwd");
    WRITE_PACKED("test.json.xz", ARCHIVE_FORMAT_RAW, ARCHIVE_FILTER_XZ, "whatever");
    WRITE_ZIP("test.zip", "1.jpg");
    check_shown("test/1.jpg test.json train/a/1.jpg train/\xc3\xbc/2.jpg train.csv ");
    CHECK_CONTAINS(stk_str_text(&told), "unpacking train.csv.7z once: ");
    CHECK_CONTAINS(stk_str_text(&told), "unpacking train.tar.gz once: ");
    CHECK_CONTAINS(stk_str_text(&told), "left out 1 member of train.tar.gz");
    REQUIRE_OK(open_store(&store, &err), &err);
    check_read(store, "train.csv", "in train.csv");
    check_read(store, "test.json", "in whatever");
    check_read(store, "train/\xc3\xbc/2.jpg", "in \xc3\xbc/2.jpg");
    check_read(store, "test/1.jpg", "in 1.jpg");
    stk_store_close(store);
    CHECK(strstr(words(), "unpacking") == NULL);
}

static void unpacks_zips_of_other_methods(void) {
    zip_writer w = {0};
    stk_error err = {0};
    begin();
    write_file("t.csv", "x");
    w.says_method = 12; /* bzip2, which these bytes are not */
    zip_add_text(&w, "1.jpg", "one", 0);
    CHECK_INT(zip_save(&w, in_folder("train.zip"), &err), STK_OK);
    const char *text = words();
    CHECK_CONTAINS(text, "unpacking train.zip once");
    CHECK_CONTAINS(text, "train.zip is not used: cannot unpack ");
}

static void lacks_memory_while_unpacking(void) {
    stk_store *store = NULL;
    stk_error err = {0};
    stk_status status = STK_ERR_MEMORY;
    begin();
    write_file("t.csv", "x");
    WRITE_PACKED("train.7z", ARCHIVE_FORMAT_7ZIP, 0, "1.jpg", "2.jpg");
    for (int64_t n = 0; status != STK_OK && n < 2000; n++) {
        stk_str_clear(&told);
        stk_error_clear(&err);
        stk_mem_fail_after(n);
        status = open_store(&store, &err);
        stk_mem_fail_after(-1);
        if (status == STK_OK && !stk_store_has_archives(store)) {
            CHECK_FAIL("request %lld: %s", (long long)n, stk_str_text(&told));
        }
    }
    REQUIRE_OK(status, &err);
    check_read(store, "train/2.jpg", "in 2.jpg");
    stk_store_close(store);
}

static void unpacks_again_what_is_not_whole_or_has_changed(void) {
    stk_dir_list list;
    stk_error err = {0};
    begin();
    write_file("t.csv", "x");
    WRITE_PACKED("a.csv.7z", ARCHIVE_FORMAT_7ZIP, 0, "a.csv");
    check_shown("a.csv t.csv ");
    char kept[300];
    snprintf(kept, sizeof kept, "%s/.kept/stoker/unpacked", folder);
    REQUIRE_OK(stk_dir_read(kept, &list, &err), &err);
    CHECK_INT(list.count, 2);
    for (size_t i = 0; i < list.count; i++) {
        char *path = stk_path_join(kept, list.entries[i].name);
        CHECK_INT(truncate(path, 3), 0);
        CHECK_CONTAINS(words(), "unpacking a.csv.7z once");
        CHECK(strstr(words(), "unpacking") == NULL);
        stk_mem_free(path);
    }
    stk_dir_list_free(&list);
    WRITE_PACKED("a.csv.7z", ARCHIVE_FORMAT_7ZIP, 0, "b.csv", "c.csv");
    check_shown("b.csv c.csv t.csv ");
}

static void refuses_bombs_and_ruins(void) {
    static char same[1 << 20];
    stk_error err = {0};
    begin();
    write_file("t.csv", "x");
    memset(same, 'a', sizeof same); /* bzip2 packs them to less than a thousandth */
    struct archive *a = archive_write_new();
    struct archive_entry *entry = archive_entry_new();
    archive_write_set_format_raw(a);
    archive_write_add_filter_bzip2(a);
    CHECK_INT(archive_write_open_filename(a, in_folder("bomb.csv.bz2")), ARCHIVE_OK);
    archive_entry_set_filetype(entry, AE_IFREG);
    CHECK_INT(archive_write_header(a, entry), ARCHIVE_OK);
    for (int i = 0; i < 16; i++) {
        CHECK_INT(archive_write_data(a, same, sizeof same), sizeof same);
    }
    archive_entry_free(entry);
    archive_write_close(a);
    archive_write_free(a);
    CHECK_CONTAINS(words(), "an honest archive would have");
    check_shown("bomb.csv.bz2 t.csv ");
    begin();
    write_file("t.csv", "x");
    WRITE_PACKED("a.7z", ARCHIVE_FORMAT_7ZIP, 0, "a/1.jpg", "a/2.jpg");
    CHECK_INT(truncate(in_folder("a.7z"), 60), 0);
    CHECK_CONTAINS(words(), "a.7z is not used: cannot unpack ");
    CHECK_CONTAINS(words(), "(7z)");
    char kept[300];
    snprintf(kept, sizeof kept, "%s/.kept/stoker/unpacked", folder);
    stk_dir_list list;
    REQUIRE_OK(stk_dir_read(kept, &list, &err), &err);
    CHECK_INT(list.count, 0);
    stk_dir_list_free(&list);
}

static void stops_unpacking(void) {
    stk_stop stop = {0};
    stk_store *store = NULL;
    stk_error err = {0};
    stk_storage_options options = {
        .cache = "off", .cache_size = STK_AUTO_BYTES, .read_timeout_s = 30, .stop = &stop};
    begin();
    write_file("t.csv", "x");
    WRITE_PACKED("a.csv.7z", ARCHIVE_FORMAT_7ZIP, 0, "a.csv");
    stk_stop_request(&stop, STK_STOP_SOON, 0);
    CHECK_INT(stk_store_open(&store, folder, &options, NULL, &err), STK_ERR_STOPPED);
    CHECK_CONTAINS(err.message, "a.csv.7z was unpacked");
}
#else
static void says_that_libarchive_is_missing(void) {
    begin();
    write_file("t.csv", "x");
    write_file("a.csv.7z", "7z\xbc\xaf\x27\x1c and so on");
    CHECK_CONTAINS(words(), "a.csv.7z (7z): this build of Stoker has no libarchive; unpack it by "
                            "hand, or build Stoker where libarchive is installed");
}
#endif

static const check_test tests[] = {
    TEST(knows_names_and_magic),
    TEST(shows_members_in_a_folder_of_the_stem),
    TEST(shows_packed_tables_at_the_top),
    TEST(shows_the_only_file_under_the_name_of_the_archive),
    TEST(looks_through_the_folder_around_a_data_set),
    TEST(bson_is_shown_as_pictures_and_a_table),
    TEST(made_files_have_a_folder_of_their_own),
    TEST(shows_a_single_archive_as_its_contents),
    TEST(leaves_alone_what_is_unpacked),
    TEST(takes_plain_tars_with_other_names_for_archives),
    TEST(leaves_shards_as_they_are),
    TEST(reads_members_and_parts_of_them),
    TEST(tells_damage_of_a_member),
    TEST(warns_of_archives_that_cannot_be_used),
    TEST(lacks_memory),
#ifdef STK_HAVE_ARCHIVE
    TEST(unpacks_once_what_cannot_be_read_in_place),
    TEST(unpacks_zips_of_other_methods),
    TEST(lacks_memory_while_unpacking),
    TEST(unpacks_again_what_is_not_whole_or_has_changed),
    TEST(refuses_bombs_and_ruins),
    TEST(stops_unpacking),
#else
    TEST(says_that_libarchive_is_missing),
#endif
};

CHECK_MAIN(tests)
