/* Tests of tar shards: which tars count, where members are, how they are shown, what is refused. */
#include "check.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/numbers/checksum.h"
#include "base/str.h"
#include "storage/tar/shard_index.h"
#include "storage/shards/shard_names.h"
#include "storage/shards/find_members.h"
#include "storage/reading/store_state.h"
#include "storage/shards/shards.h"
#include "storage/tar/tar_write.h"

static char folder[256]; /* of the running test */

static void begin(void) {
    snprintf(folder, sizeof folder, "%s", check_folder());
    /* What is remembered goes there and not into the home of whoever runs the tests. */
    char *kept = stk_path_join(folder, ".kept");
    setenv("XDG_CACHE_HOME", kept, 1);
    stk_mem_free(kept);
}

static char *in_folder(const char *name) {
    return stk_path_join(folder, name);
}

static void write_file(const char *name, const char *text) {
    char *path = in_folder(name);
    char *parent = stk_mem_strndup(path, (size_t)(stk_path_base(path) - path - 1));
    stk_error err = {0};
    CHECK_INT(stk_dir_make(parent, &err), STK_OK);
    CHECK_INT(stk_file_write(path, text, strlen(text), &err), STK_OK);
    stk_mem_free(parent);
    stk_mem_free(path);
}

/* Writes a tar of members that hold "in NAME of TAR", or what is behind a '=' in their names. */
static void write_tar(const char *name, const char *const *members) {
    stk_error err = {0};
    stk_tar_writer *tar = NULL;
    char *path = in_folder(name);
    char *parent = stk_mem_strndup(path, (size_t)(stk_path_base(path) - path - 1));
    CHECK_INT(stk_dir_make(parent, &err), STK_OK);
    CHECK_INT(stk_tar_writer_open(&tar, path, &err), STK_OK);
    for (; tar != NULL && *members != NULL; members++) {
        const char *equals = strchr(*members, '=');
        char *member = stk_mem_strndup(*members, equals != NULL ? (size_t)(equals - *members)
                                                                : strlen(*members));
        char *text = equals != NULL ? stk_mem_strdup(equals + 1)
                                    : stk_str_format("in %s of %s", member, name);
        CHECK_INT(stk_tar_writer_add(tar, member, text, strlen(text), NULL, &err), STK_OK);
        stk_mem_free(text);
        stk_mem_free(member);
    }
    CHECK_INT(stk_tar_writer_commit(tar, NULL, &err), STK_OK);
    stk_mem_free(parent);
    stk_mem_free(path);
}

#define WRITE_TAR(name, ...) write_tar(name, (const char *const[]){__VA_ARGS__, NULL})

/* Opens the folder, or something in it. */
static stk_status open_store(stk_store **store, const char *name, stk_error *err) {
    char *path = name != NULL ? in_folder(name) : stk_mem_strdup(folder);
    *store = NULL;
    stk_status status = stk_store_open(store, path, NULL, NULL, err);
    stk_mem_free(path);
    return status;
}

/* All that a store shows, folder by folder, each entry followed by a blank. */
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

/* Opens a place and compares what it shows. */
static void check_shown(const char *name, const char *expected) {
    stk_store *store;
    stk_error err = {0};
    stk_str shown = {0};
    REQUIRE_OK(open_store(&store, name, &err), &err);
    show(store, "", &shown);
    CHECK_STR(stk_str_text(&shown), expected);
    stk_str_free(&shown);
    stk_store_close(store);
}

/* What opening a place fails with. */
static const char *failure(const char *name) {
    static stk_error err;
    stk_store *store;
    stk_error_clear(&err);
    CHECK_INT(open_store(&store, name, &err), STK_ERR_DATA);
    stk_store_close(store);
    return err.message;
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

/* ---- the index ---- */

/* An index of two tars; the order of adding is turned round by `backwards`. */
static void fill_index(stk_shard_index *index, bool backwards) {
    uint32_t numbers[2] = {0};
    stk_error err = {0};
    for (int i = 0; i < 2; i++) {
        int tar = backwards ? 1 - i : i;
        CHECK_INT(stk_shard_index_add_shard(index, tar == 0 ? "a.tar" : "b.tar",
                                            tar == 0 ? 9216 : 0, &numbers[tar], &err),
                  STK_OK);
    }
    for (int i = 0; i < 6; i++) {
        int n = backwards ? 5 - i : i;
        char path[40];
        snprintf(path, sizeof path, "train/%d.%s", n, n % 3 == 0 ? "cls" : "jpg");
        stk_index_member member = {.path = path,
                                   .text = n == 0   ? "7\n"
                                           : n == 3 ? ""
                                                    : NULL,
                                   .offset = 512u * (unsigned)n,
                                   .size = (uint64_t)n << 33,
                                   .checksum = 0x8000000000000001u * (unsigned)n,
                                   .has_checksum = n > 2,
                                   .shard = numbers[n % 2]};
        CHECK_INT(stk_shard_index_add(index, &member, &err), STK_OK);
    }
}

/* Saves and reads the bytes back. */
static stk_status save_index(stk_shard_index *index, const char *origin, stk_bytes *bytes,
                             stk_error *err) {
    char *path = in_folder("x.index");
    stk_status status = stk_shard_index_save(index, origin, path, err);
    status = status == STK_OK ? stk_file_read_into(path, 0, bytes, err) : status;
    stk_mem_free(path);
    return status;
}

static void index_comes_back(void) {
    stk_shard_index index = {0};
    stk_bytes bytes = {0};
    stk_error err = {0};
    begin();
    fill_index(&index, true);
    REQUIRE_OK(save_index(&index, "12.5", &bytes, &err), &err);
    stk_shard_index_free(&index);
    REQUIRE_OK(stk_shard_index_load(&index, "x.index", &bytes, &err), &err);
    CHECK(bytes.data == NULL);
    CHECK_STR(index.origin, "12.5");
    REQUIRE(index.shard_count == 2 && index.member_count == 6);
    CHECK_STR(index.shards[0].name, "a.tar");
    CHECK_INT(index.shards[0].size, 9216);
    CHECK_STR(index.shards[1].name, "b.tar");
    for (unsigned i = 0; i < 6; i++) {
        const stk_index_member *m = &index.members[i];
        CHECK_INT(m->path[6], '0' + (int)i);
        CHECK_INT(m->offset, 512 * i);
        CHECK_INT(m->size, (uint64_t)i << 33);
        CHECK_INT(m->has_checksum, i > 2);
        CHECK(i <= 2 || m->checksum == 0x8000000000000001u * i);
        CHECK_INT(m->shard, i % 2);
        CHECK(i == 0 || i == 3 || m->text == NULL);
    }
    CHECK_STR(index.members[0].text, "7\n");
    CHECK_STR(index.members[3].text, "");
    stk_shard_index_free(&index);
}

static void index_is_the_same_in_any_order(void) {
    stk_bytes bytes[3] = {0};
    stk_error err = {0};
    begin();
    for (int i = 0; i < 3; i++) {
        stk_shard_index index = {0};
        stk_shard_index more = {0};
        if (i < 2) {
            fill_index(&index, i == 1);
        } else { /* put together from two halves */
            uint32_t number;
            fill_index(&more, true);
            CHECK_INT(stk_shard_index_merge(&index, &more, &err), STK_OK);
            CHECK_INT(more.member_count, 0);
            CHECK_INT(stk_shard_index_add_shard(&more, "c.tar", 1, &number, &err), STK_OK);
            stk_index_member last = {.path = "z", .shard = number, .size = 5};
            CHECK_INT(stk_shard_index_add(&more, &last, &err), STK_OK);
            CHECK_INT(stk_shard_index_merge(&index, &more, &err), STK_OK);
            CHECK_INT(index.members[6].shard, 2);
            CHECK_STR(index.shards[2].name, "c.tar");
            index.shard_count--;
            index.member_count--;
        }
        REQUIRE_OK(save_index(&index, "", &bytes[i], &err), &err);
        stk_shard_index_free(&index);
        CHECK(bytes[i].size == bytes[0].size &&
              memcmp(bytes[i].data, bytes[0].data, bytes[0].size) == 0);
    }
    for (int i = 0; i < 3; i++) {
        stk_bytes_free(&bytes[i]);
    }
}

static void index_notices_damage(void) {
    stk_shard_index index = {0};
    stk_bytes good = {0};
    stk_error err = {0};
    begin();
    fill_index(&index, false);
    REQUIRE_OK(save_index(&index, "", &good, &err), &err);
    stk_shard_index_free(&index);
    for (size_t i = 0; i < 2 * good.size; i++) {
        stk_bytes bad = {0};
        bool cut = i >= good.size;
        REQUIRE(stk_bytes_reserve(&bad, good.size + 1));
        memcpy(bad.data, good.data, good.size);
        bad.size = cut ? i - good.size : good.size;
        if (!cut) {
            bad.data[i] ^= 0x40;
        }
        stk_error_clear(&err);
        CHECK_INT(stk_shard_index_load(&index, "x.index", &bad, &err), STK_ERR_DATA);
        CHECK_CONTAINS(err.message, "x.index");
        CHECK(index.members == NULL && bad.data == NULL);
    }
    good.data[8] = 9;
    stk_error_clear(&err);
    CHECK_INT(stk_shard_index_load(&index, "x.index", &good, &err), STK_ERR_DATA);
    CHECK_CONTAINS(err.message, "another version of Stoker (format 9");
}

static void index_survives_without_memory(void) {
    stk_status status = STK_ERR_MEMORY;
    begin();
    for (int64_t n = 0; status == STK_ERR_MEMORY && n < 100; n++) {
        stk_shard_index index = {0};
        stk_bytes bytes = {0};
        stk_error err = {0};
        fill_index(&index, false);
        stk_mem_fail_after(n);
        status = save_index(&index, "", &bytes, &err);
        stk_shard_index_free(&index);
        status = status == STK_OK ? stk_shard_index_load(&index, "x", &bytes, &err) : status;
        stk_mem_fail_after(-1);
        stk_shard_index_free(&index);
        stk_bytes_free(&bytes);
    }
    CHECK_INT(status, STK_OK);
}

/* ---- names ---- */

static void names_tell_splits(void) {
    static const char *const names[][2] = {{"train-000.tar", "train"},
                                           {"imagenet-train-000146.tar", "train"},
                                           {"Train.tar", "train"},
                                           {"train_000.tar", "train"},
                                           {"val-0.tar", "val"},
                                           {"valid-0.tar", "val"},
                                           {"imagenet1k-validation-00.tar", "val"},
                                           {"test.tar", "test"},
                                           {"test-data-train-1.tar", "train"},
                                           {"val/000.tar", "val"},
                                           {"validation/train-000.tar", "val"},
                                           {"other/test-1.tar", "test"},
                                           {"000.tar", NULL},
                                           {"trainval.tar", NULL},
                                           {"contest-1.tar", NULL},
                                           {"caltech101-128.tar", NULL}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *split = stk_shard_split(names[i][0]);
        if (names[i][1] != NULL) {
            CHECK_STR(split, names[i][1]);
        } else {
            CHECK(split == NULL);
        }
    }
    CHECK(stk_shards_is_tar_name("a.tar") && stk_shards_is_tar_name("A.TAR"));
    CHECK(stk_shards_is_tar_name("a.tar.gz") && stk_shards_is_tar_name("a.tgz"));
    CHECK(!stk_shards_is_tar_name("a.tart") && !stk_shards_is_tar_name("a.zip"));
}

static void knows_a_place_of_shards(void) {
    static const struct {
        const char *files[4];
        bool wanted;
    } cases[] = {
        {{"a.tar"}, true},
        {{"a.tar", "classes.txt", "labels.csv"}, true},
        {{"a.tar.gz"}, true},
        {{"train/0.tar", "train/1.tar", "val/0.tar"}, true},
        {{"a.tar", "val/0.tar"}, true},
        {{"staging.json"}, true},
        {{"a.tar", "x.jpg"}, false},
        {{"a.tar", "photos/x.jpg"}, false},
        {{"a.tar", "cats/0.tar"}, false},
        {{"train.tar", "train/cat/x.jpg"}, false}, /* unpacked beside it */
        {{"train/0.tar", "train/cat/x.jpg"}, false},
        {{"train/0.tar", "val/x.png"}, false},
        {{"train/cat/x.jpg", "val/cat/x.jpg"}, false},
        {{"labels.csv", "train/x.jpg"}, false},
        {{"readme.txt"}, false},
        {{"a.tar", "runs/train/plot.png"}, true}, /* what Stoker wrote is no data */
        {{"a.tar", "mine/args.json", "mine/plot.png"}, true},
        {{"train/0.tar", "val/0.tar", "near/stage.json"}, true},
        {{"a.tar", "lost+found/x", "__MACOSX/a.tar"}, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        stk_store *store = NULL;
        stk_dir_list top;
        bool wanted = false;
        stk_skipped_folders passed = {0};
        stk_error err = {0};
        begin();
        write_file("empty/place.tex", ""); /* opened first, since the others fail to open */
        REQUIRE_OK(open_store(&store, "empty", &err), &err);
        for (size_t k = 0; k < 4 && cases[i].files[k] != NULL; k++) {
            char *name = stk_str_format("empty/%s", cases[i].files[k]);
            write_file(name, "");
            stk_mem_free(name);
        }
        REQUIRE_OK(stk_store_list(store, "", &top, &err), &err);
        REQUIRE_OK(stk_shards_wanted(store, &top, &passed, &wanted, &err), &err);
        if (wanted != cases[i].wanted) {
            CHECK_FAIL("case %zu (%s): wanted is %d", i, cases[i].files[0], wanted);
        }
        stk_skipped_folders_free(&passed);
        stk_dir_list_free(&top);
        stk_store_close(store);
    }
}

/* ---- places ---- */

static void shows_one_tar(void) {
    stk_store *store;
    stk_error err = {0};
    begin();
    WRITE_TAR("x.tar", "set/cat/2.jpg", "set/cat/1.jpg", "set/dog/1.jpg", "set/._dog",
              "set/.DS_Store/a");
    /* A folder that everything is in is left out; hidden members too. */
    check_shown("x.tar", "cat/1.jpg cat/2.jpg dog/1.jpg ");
    check_shown(NULL, "cat/1.jpg cat/2.jpg dog/1.jpg ");
    REQUIRE_OK(open_store(&store, "x.tar", &err), &err);
    check_read(store, "cat/1.jpg", "in set/cat/1.jpg of x.tar");
    check_read(store, "dog/1.jpg", "in set/dog/1.jpg of x.tar");
    CHECK_INT(stk_store_size(store, "cat/2.jpg"), strlen("in set/cat/2.jpg of x.tar"));
    stk_bytes bytes = {0};
    CHECK(stk_store_read(store, "cat/3.jpg", &bytes, &err) != STK_OK);
    CHECK_CONTAINS(err.message, "cat/3.jpg");
    stk_bytes_free(&bytes);
    stk_store_close(store);

    begin();
    WRITE_TAR("x.tar", "train/cat/1.jpg", "train/dog/2.jpg");
    check_shown(NULL, "train/cat/1.jpg train/dog/2.jpg "); /* it says what they are for */
    begin();
    WRITE_TAR("x.tar", "set/cat/1.jpg", "readme.txt");
    check_shown(NULL, "readme.txt set/cat/1.jpg ");
}

static void shows_splits_as_folders(void) {
    stk_store *store;
    stk_error err = {0};
    begin();
    WRITE_TAR("train-0.tar", "1.jpg", "1.cls=3");
    WRITE_TAR("train-1.tar", "2.jpg", "2.cls=4");
    WRITE_TAR("val-0.tar", "1.jpg", "1.cls=5");
    WRITE_TAR("extra.tar", "3.jpg");
    write_file("classes.txt", "a\nb\n");
    check_shown(NULL, "classes.txt train/1.cls train/1.jpg train/2.cls train/2.jpg train/3.jpg "
                      "val/1.cls val/1.jpg ");
    REQUIRE_OK(open_store(&store, NULL, &err), &err);
    check_read(store, "train/1.jpg", "in 1.jpg of train-0.tar");
    check_read(store, "val/1.jpg", "in 1.jpg of val-0.tar");
    check_read(store, "classes.txt", "a\nb\n");
    CHECK_STR(stk_store_text(store, "train/1.cls"), "3");
    CHECK_STR(stk_store_text(store, "val/1.cls"), "5");
    CHECK(stk_store_text(store, "val/1.jpg") == NULL);
    CHECK(stk_store_text(store, "classes.txt") == NULL);
    stk_store_close(store);
    /* One alone is shown as it is, and so are shards of one split only. */
    check_shown("val-0.tar", "1.cls 1.jpg ");
    begin();
    WRITE_TAR("train-0.tar", "1.jpg");
    WRITE_TAR("train-1.tar", "2.jpg");
    check_shown(NULL, "1.jpg 2.jpg ");
    /* Members that tell it themselves, and folders that tell it. */
    begin();
    WRITE_TAR("train/0.tar", "set/train/cat/1.jpg");
    WRITE_TAR("valid/0.tar", "set/cat/1.jpg");
    check_shown(NULL, "train/cat/1.jpg val/cat/1.jpg ");
}

static void refuses_members_twice(void) {
    stk_store *store;
    stk_error err = {0};
    begin();
    WRITE_TAR("a.tar", "cat/1.jpg", "dog/1.jpg");
    WRITE_TAR("b.tar", "cat/2.jpg", "dog/1.jpg");
    const char *message = failure(NULL);
    CHECK_CONTAINS(message, "dog/1.jpg");
    CHECK_CONTAINS(message, "a.tar and b.tar");
    /* In one tar the last counts, as when it is unpacked. */
    begin();
    WRITE_TAR("a.tar", "cat/1.jpg=old", "dog/1.jpg", "cat/1.jpg=new");
    check_shown(NULL, "cat/1.jpg dog/1.jpg ");
    REQUIRE_OK(open_store(&store, NULL, &err), &err);
    check_read(store, "cat/1.jpg", "new");
    stk_store_close(store);
}

static void keeps_only_the_texts_that_are_needed(void) {
    stk_store *store;
    stk_error err = {0};
    char large[5000];
    memset(large, 'x', sizeof large);
    snprintf(large, sizeof large, "b.txt=%04990d", 1);
    begin();
    WRITE_TAR("a.tar", "a.txt=some", "b.json={}", large, "empty.txt=", "c.jpg=1");
    REQUIRE_OK(open_store(&store, NULL, &err), &err);
    CHECK_STR(stk_store_text(store, "a.txt"), "some");
    CHECK_STR(stk_store_text(store, "b.json"), "{}");
    CHECK_STR(stk_store_text(store, "empty.txt"), "");
    CHECK(stk_store_text(store, "b.txt") == NULL);
    CHECK(stk_store_text(store, "c.jpg") == NULL);
    CHECK(stk_store_text(store, "missing.txt") == NULL);
    check_read(store, "empty.txt", "");
    stk_store_close(store);
    begin();
    WRITE_TAR("a.tar", "a.txt=some", "a.cls=1", "b.json={}", "b.cls=1");
    REQUIRE_OK(open_store(&store, NULL, &err), &err);
    CHECK_STR(stk_store_text(store, "a.cls"), "1");
    CHECK_STR(stk_store_text(store, "b.cls"), "1");
    CHECK(stk_store_text(store, "a.txt") == NULL && stk_store_text(store, "b.json") == NULL);
    check_read(store, "b.json", "{}");
    stk_store_close(store);
}

/* Writes `text` over a file at a place and keeps its time, as damage does. */
static void overwrite(const char *name, off_t at, const char *text, size_t size) {
    struct stat info;
    char *path = in_folder(name);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    CHECK(fd >= 0 && fstat(fd, &info) == 0);
    CHECK_INT(pwrite(fd, text, size, at), size);
    struct timespec times[2] = {info.st_atim, info.st_mtim};
    CHECK_INT(futimens(fd, times), 0);
    close(fd);
    stk_mem_free(path);
}

static void cut_file(const char *name, off_t size) {
    char *path = in_folder(name);
    CHECK_INT(truncate(path, size), 0);
    stk_mem_free(path);
}

static void refuses_damaged_tars(void) {
    begin();
    WRITE_TAR("a.tar", "cat/1.jpg", "dog/1.jpg");
    overwrite("a.tar", 1024, "x", 1);
    CHECK_CONTAINS(failure(NULL), "a.tar: the header at byte 1024, after the member cat/1.jpg,");
    CHECK_CONTAINS(failure("a.tar"), "a.tar");
    begin();
    WRITE_TAR("a.tar", "cat/1.jpg", "dog/1.jpg");
    cut_file("a.tar", 1540);
    CHECK_CONTAINS(failure(NULL), "a.tar is cut off inside the member dog/1.jpg");
    cut_file("a.tar", 1300);
    CHECK_CONTAINS(failure(NULL), "a.tar is cut off, after the member cat/1.jpg,");
    cut_file("a.tar", 0);
    CHECK_CONTAINS(failure(NULL), "a.tar: it is empty");
    begin();
    write_file("a.tar.gz", "\x1f\x8b\x08 and so on");
    CHECK_CONTAINS(failure(NULL), "gzip");
    CHECK_CONTAINS(failure("a.tar.gz"), "gzip");
    CHECK_CONTAINS(failure("b.tar"), "no such file: ");
}

/* ---- what stage writes ---- */

/* Two shards, whose index shows members otherwise than the tars do. */
static void write_staged(void) {
    stk_shard_index index = {0};
    stk_error err = {0};
    for (int tar = 0; tar < 2; tar++) {
        stk_tar_writer *writer = NULL;
        uint32_t number = 0;
        char *name = stk_str_format("part-%d.tar", tar);
        char *path = in_folder(name);
        CHECK_INT(stk_shard_index_add_shard(&index, name, 0, &number, &err), STK_OK);
        CHECK_INT(stk_tar_writer_open(&writer, path, &err), STK_OK);
        for (int i = 0; i < 2; i++) {
            char inner[40];
            char text[40];
            char shown[40];
            uint64_t offset = 0;
            snprintf(inner, sizeof inner, "%d-%d.jpg", tar, i);
            snprintf(text, sizeof text, "staged %d %d", tar, i);
            snprintf(shown, sizeof shown, "%s/cat/%d-%d.jpg", tar == 0 ? "train" : "val", tar, i);
            CHECK_INT(stk_tar_writer_add(writer, inner, text, strlen(text), &offset, &err), STK_OK);
            stk_index_member member = {.path = shown,
                                       .offset = offset,
                                       .size = strlen(text),
                                       .checksum = stk_checksum(text, strlen(text)),
                                       .has_checksum = true,
                                       .shard = number};
            CHECK_INT(stk_shard_index_add(&index, &member, &err), STK_OK);
        }
        CHECK_INT(stk_tar_writer_commit(writer, &index.shards[number].size, &err), STK_OK);
        stk_mem_free(path);
        stk_mem_free(name);
    }
    char *path = in_folder(STK_SHARD_INDEX_NAME);
    CHECK_INT(stk_shard_index_save(&index, "", path, &err), STK_OK);
    stk_mem_free(path);
    stk_shard_index_free(&index);
}

#define STAGED "train/cat/0-0.jpg train/cat/0-1.jpg val/cat/1-0.jpg val/cat/1-1.jpg "

static void shows_what_was_staged(void) {
    stk_store *store;
    stk_error err = {0};
    begin();
    write_staged();
    write_file("classes.txt", "cat\n");
    check_shown(NULL, "classes.txt " STAGED);
    check_shown("part-1.tar", "val/cat/1-0.jpg val/cat/1-1.jpg ");
    REQUIRE_OK(open_store(&store, NULL, &err), &err);
    check_read(store, "val/cat/1-0.jpg", "staged 1 0");
    check_read(store, "train/cat/0-1.jpg", "staged 0 1");
    stk_store_close(store);
    /* A tar that somebody put beside them counts too. */
    WRITE_TAR("more.tar", "dog/1.jpg");
    WRITE_TAR("val-more.tar", "dog/2.jpg");
    check_shown(NULL, "classes.txt train/cat/0-0.jpg train/cat/0-1.jpg train/dog/1.jpg "
                      "val/cat/1-0.jpg val/cat/1-1.jpg val/dog/2.jpg ");
}

static void verifies_what_was_staged(void) {
    stk_store *store;
    stk_error err = {0};
    stk_bytes bytes = {0};
    begin();
    write_staged();
    overwrite("part-1.tar", 512 + 3, "X", 1);
    REQUIRE_OK(open_store(&store, NULL, &err), &err);
    check_read(store, "val/cat/1-1.jpg", "staged 1 1");
    CHECK_INT(stk_store_read(store, "val/cat/1-0.jpg", &bytes, &err), STK_ERR_DATA);
    CHECK_CONTAINS(err.message, "val/cat/1-0.jpg");
    CHECK_CONTAINS(err.message, "part-1.tar");
    CHECK_CONTAINS(err.message, "with another checksum); stage the data set again");
    stk_bytes_free(&bytes);
    stk_store_close(store);

    cut_file("part-1.tar", 1500);
    CHECK_CONTAINS(failure(NULL), "part-1.tar");
    CHECK_CONTAINS(failure(NULL), "fewer than 3072 bytes");
    cut_file("part-1.tar", 4096);
    CHECK_CONTAINS(failure(NULL), "more than 3072 bytes");
    char *path = in_folder("part-1.tar");
    CHECK_INT(unlink(path), 0);
    stk_mem_free(path);
    CHECK_CONTAINS(failure(NULL), "part-1.tar, which stoker.index names, is not in ");
    write_staged();
    overwrite(STK_SHARD_INDEX_NAME, 60, "X", 1);
    CHECK_CONTAINS(failure(NULL), "stoker.index is damaged; run the same `stoker stage` again");
}

/* What an index says is not asked for when it could only use up the memory. */
static void refuses_members_that_are_too_large(void) {
    stk_shard_index index = {0};
    stk_store *store;
    stk_error err = {0};
    stk_bytes bytes = {0};
    uint32_t number = 0;
    static const char *const members[] = {"cat/1.jpg=one", NULL};
    stk_index_member member = {.path = "train/cat/1.jpg", .size = (uint64_t)1 << 45};
    begin();
    write_tar("part-0.tar", members);
    REQUIRE_OK(stk_shard_index_add_shard(&index, "part-0.tar", 0, &number, &err), &err);
    REQUIRE_OK(stk_shard_index_add(&index, &member, &err), &err);
    char *path = in_folder(STK_SHARD_INDEX_NAME);
    REQUIRE_OK(stk_shard_index_save(&index, "", path, &err), &err);
    REQUIRE_OK(open_store(&store, NULL, &err), &err);
    CHECK_INT(stk_store_read(store, "train/cat/1.jpg", &bytes, &err), STK_ERR_DATA);
    CHECK_CONTAINS(err.message, "train/cat/1.jpg: it has 35184372088832 bytes");
    stk_bytes_free(&bytes);
    stk_store_close(store);
    stk_mem_free(path);
    stk_shard_index_free(&index);
}

static void refuses_what_is_being_staged(void) {
    begin();
    write_file("staging.json", "{}");
    CHECK_CONTAINS(failure(NULL), "is not finished: run the same `stoker stage` again");
    WRITE_TAR("train-0.tar", "cat/1.jpg");
    CHECK_CONTAINS(failure(NULL), "is not finished: run the same `stoker stage` again");
    check_shown("train-0.tar", "1.jpg "); /* a tar has its name only once it is whole */
    write_staged();
    char *path = in_folder("train-0.tar");
    CHECK_INT(unlink(path), 0);
    stk_mem_free(path);
    check_shown(NULL, STAGED);
}

/* ---- far away ---- */

/* A local folder that is said to be far: no better is to be had here, and none is needed. */
static stk_storage_source far_source;

static stk_status open_far(stk_store **store, stk_shards **shards, bool refresh, stk_error *err) {
    char *place = in_folder("far");
    char *kept = in_folder(".kept/lists");
    write_file("far/empty", "");
    char *empty = in_folder("far/empty");
    unlink(empty);
    /* The store is opened on another folder, so that it does not look for shards itself. */
    char *blank = in_folder("blank");
    *shards = NULL;
    stk_status status = stk_dir_make(blank, err);
    status = status == STK_OK ? stk_store_open(store, blank, NULL, NULL, err) : status;
    stk_mem_free(blank);
    if (status == STK_OK) {
        stk_store *s = *store;
        far_source = stk_storage_local;
        far_source.remote = true;
        s->source->close(s->location);
        s->location = NULL;
        s->source = &far_source;
        stk_mem_free(s->base);
        stk_mem_free(s->name);
        s->base = stk_mem_strdup(place);
        s->name = stk_mem_strdup(place);
        status = s->source->open(&s->location, place, &s->options, NULL, NULL, err);
        status =
            status == STK_OK ? stk_shards_open(shards, s, NULL, kept, refresh, NULL, err) : status;
    }
    stk_mem_free(empty);
    stk_mem_free(place);
    stk_mem_free(kept);
    return status;
}

static void reads_far_tars_in_parts(void) {
    stk_error err = {0};
    stk_tar_writer *writer = NULL;
    stk_store *store = NULL;
    stk_shards *shards = NULL;
    uint64_t offsets[3000];
    size_t size = 2 * STK_SCAN_PART_BYTES + 12345;
    char *data = stk_mem_new(size, 1);
    begin();
    write_file("far/readme.txt", "r");
    char *path = in_folder("far/a.tar");
    REQUIRE_OK(stk_tar_writer_open(&writer, path, &err), &err);
    for (int i = 0; i < 3000; i++) {
        char name[40];
        snprintf(name, sizeof name, "%04d.%s", i, i % 10 == 0 ? "cls" : "jpg");
        snprintf(data, size, "%d", i);
        size_t bytes = i == 1000 ? size : i % 10 == 0 ? strlen(data) : (size_t)(i % 7) * 2000;
        REQUIRE_OK(stk_tar_writer_add(writer, name, data, bytes, &offsets[i], &err), &err);
    }
    REQUIRE_OK(stk_tar_writer_commit(writer, NULL, &err), &err);
    WRITE_TAR("far/b.tar", "x.jpg");
    REQUIRE_OK(open_far(&store, &shards, false, &err), &err);
    const stk_tree *tree = stk_shards_tree(shards);
    CHECK_INT(tree->count, 3002);
    for (int i = 0; i < 3000; i++) {
        char name[40];
        stk_extent extent = {0};
        snprintf(name, sizeof name, "%04d.%s", i, i % 10 == 0 ? "cls" : "jpg");
        CHECK(stk_shards_find(shards, name, &extent));
        CHECK_STR(extent.object, "a.tar");
        CHECK_INT(extent.offset, offsets[i]);
        if (i % 10 == 0 && i != 1000) {
            char number[12];
            snprintf(number, sizeof number, "%d", i);
            CHECK_STR(stk_shards_text(shards, name), number);
        }
    }
    stk_extent extent;
    CHECK(!stk_shards_find(shards, "readme.txt", &extent));
    stk_shards_close(shards);
    stk_store_close(store);
    /* Cut anywhere near the end of a part, it is noticed. */
    cut_file("far/a.tar", (off_t)STK_SCAN_PART_BYTES);
    CHECK_INT(open_far(&store, &shards, false, &err), STK_ERR_DATA);
    CHECK_CONTAINS(err.message, "far/a.tar is cut off");
    stk_store_close(store);
    stk_mem_free(data);
    stk_mem_free(path);
}

/* The number of objects that a far place shows, or -1. */
static long far_count(bool refresh, stk_error *err) {
    stk_store *store = NULL;
    stk_shards *shards = NULL;
    stk_error_clear(err);
    bool good = open_far(&store, &shards, refresh, err) == STK_OK;
    long count = good ? (long)stk_shards_tree(shards)->count : -1;
    stk_shards_close(shards);
    stk_store_close(store);
    return count;
}

static void remembers_far_tars(void) {
    stk_error err = {0};
    begin();
    WRITE_TAR("far/a.tar", "cat/1.jpg", "dog/1.jpg");
    CHECK_INT(far_count(false, &err), 2);
    /* The first header is now damaged, but nobody looks at it. */
    overwrite("far/a.tar", 0, "XX", 2);
    CHECK_INT(far_count(false, &err), 2);
    CHECK_INT(far_count(true, &err), -1);
    CHECK_CONTAINS(err.message, "is no tar");
    CHECK_INT(far_count(false, &err), 2);
    /* Another tar of that name is read. */
    WRITE_TAR("far/a.tar", "cat/1.jpg", "dog/1.jpg", "dog/2.jpg");
    CHECK_INT(far_count(false, &err), 3);
    overwrite("far/a.tar", 0, "XX", 2);
    CHECK_INT(far_count(false, &err), 3);

    /* What was remembered and is damaged is as if it were not there. */
    stk_dir_list list;
    char *kept = in_folder(".kept/lists");
    REQUIRE_OK(stk_dir_read(kept, &list, &err), &err);
    CHECK_INT(list.count, 1);
    char *file = stk_str_format(".kept/lists/%s", list.entries[0].name);
    overwrite(file, 50, "XX", 2);
    CHECK_INT(far_count(false, &err), -1);
    stk_mem_free(file);
    stk_mem_free(kept);
    stk_dir_list_free(&list);
}

/* Reads every member of a real tar and compares it with what unpacking gives, by its checksum. */
static void reads_a_real_tar(void) {
    const char *path = "../shared/data/caltech101-128.tar";
    stk_store *store = NULL;
    stk_dir_list top;
    stk_error err = {0};
    if (!stk_path_is_file(path)) {
        CHECK_SKIP("there is no ../shared/data/caltech101-128.tar");
    }
    begin();
    REQUIRE_OK(stk_store_open(&store, path, NULL, NULL, &err), &err);
    REQUIRE_OK(stk_store_list(store, "", &top, &err), &err);
    CHECK_INT(top.count, 101);
    stk_dir_list_free(&top);
    stk_bytes bytes = {0};
    REQUIRE_OK(stk_store_read(store, "Faces/image_0001.jpg", &bytes, &err), &err);
    CHECK(bytes.size > 1000 && bytes.data[0] == 0xff && bytes.data[1] == 0xd8 &&
          bytes.data[bytes.size - 2] == 0xff && bytes.data[bytes.size - 1] == 0xd9);
    stk_bytes_free(&bytes);
    stk_store_close(store);
}

static const check_test tests[] = {
    TEST(index_comes_back),
    TEST(index_is_the_same_in_any_order),
    TEST(index_notices_damage),
    TEST(index_survives_without_memory),
    TEST(names_tell_splits),
    TEST(knows_a_place_of_shards),
    TEST(shows_one_tar),
    TEST(shows_splits_as_folders),
    TEST(refuses_members_twice),
    TEST(keeps_only_the_texts_that_are_needed),
    TEST(refuses_damaged_tars),
    TEST(shows_what_was_staged),
    TEST(verifies_what_was_staged),
    TEST(refuses_members_that_are_too_large),
    TEST(refuses_what_is_being_staged),
    TEST(reads_far_tars_in_parts),
    TEST(remembers_far_tars),
    TEST(reads_a_real_tar),
};
CHECK_MAIN(tests)
