/* test_cuda_store.c - blobs on disk: they come back as they were, or not at all. */
#include "check.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "backend/cuda/driver/store.h"
#include "base/files/file.h"
#include "base/mem.h"

static const char machine[] = "a GPU, driver 13000";

static cuda_store *open_store(const char *folder, const char *name) {
    cuda_store *store = NULL;
    stk_error err = {0};
    return stk_cuda_store_open(&store, folder, name, &err) == STK_OK ? store : NULL;
}

/* Whether the store has exactly this under the key; NULL: nothing. */
static bool holds(cuda_store *store, const char *key, const void *expected, size_t expected_bytes) {
    void *blob = NULL;
    size_t bytes = 1;
    stk_cuda_store_get(store, key, &blob, &bytes);
    bool same = expected == NULL
                    ? blob == NULL && bytes == 0
                    : blob != NULL && bytes == expected_bytes && memcmp(blob, expected, bytes) == 0;
    stk_mem_free(blob);
    return same;
}

/* The path of the only file below a folder's only folder. */
static bool only_file(const char *folder, char path[1024]) {
    stk_dir_list places = {0};
    stk_dir_list files = {0};
    stk_error err = {0};
    char place[512];
    bool good = stk_dir_read(folder, &places, &err) == STK_OK && places.count == 1;
    if (good) {
        snprintf(place, sizeof place, "%s/%s", folder, places.entries[0].name);
        good = stk_dir_read(place, &files, &err) == STK_OK && files.count == 1;
    }
    if (good) {
        snprintf(path, 1024, "%s/%s", place, files.entries[0].name);
    }
    stk_dir_list_free(&places);
    stk_dir_list_free(&files);
    return good;
}

static void blobs_come_back(void) {
    char folder[512];
    snprintf(folder, sizeof folder, "%s/below/it", check_folder());
    static const unsigned char blob[] = {0, 1, 255, 0, 7};
    cuda_store *store = open_store(folder, machine);
    REQUIRE(store != NULL);
    CHECK(holds(store, "key", NULL, 0));
    stk_cuda_store_put(store, "key", blob, sizeof blob);
    stk_cuda_store_put(store, "empty", blob, 0);
    stk_cuda_store_put(store, "", blob, 1);
    CHECK(holds(store, "key", blob, sizeof blob));
    CHECK(holds(store, "empty", blob, 0));
    CHECK(holds(store, "", blob, 1));
    CHECK(holds(store, "ke", NULL, 0));
    stk_cuda_store_put(store, "key", blob, 2);
    CHECK(holds(store, "key", blob, 2));
    stk_cuda_store_close(store);

    store = open_store(folder, machine);
    REQUIRE(store != NULL);
    CHECK(holds(store, "key", blob, 2));
    stk_cuda_store_close(store);
    store = open_store(folder, "another GPU");
    REQUIRE(store != NULL);
    CHECK(holds(store, "key", NULL, 0));
    stk_cuda_store_close(store);
    stk_cuda_store_close(NULL);
}

static void damage_is_absence(void) {
    char folder[256];
    char path[1024];
    char *data = NULL;
    size_t size = 0;
    stk_error err = {0};
    snprintf(folder, sizeof folder, "%s", check_folder());
    cuda_store *store = open_store(folder, machine);
    REQUIRE(store != NULL);
    stk_cuda_store_put(store, "key", "twelve bytes", 12);
    REQUIRE(only_file(folder, path));
    REQUIRE_OK(stk_file_read(path, 0, &data, &size, &err), &err);
    for (size_t i = 0; i < size; i++) {
        data[i] ^= 0x20;
        REQUIRE_OK(stk_file_write(path, data, size, &err), &err);
        if (!holds(store, "key", NULL, 0)) {
            CHECK_FAIL("byte %zu of %zu changed, and nobody noticed", i, size);
        }
        data[i] ^= 0x20;
    }
    for (size_t i = 0; i < size; i++) {
        REQUIRE_OK(stk_file_write(path, data, i, &err), &err);
        CHECK(holds(store, "key", NULL, 0));
    }
    stk_cuda_store_put(store, "key", "anew", 4);
    CHECK(holds(store, "key", "anew", 4));
    stk_mem_free(data);
    stk_cuda_store_close(store);
}

static void nowhere_to_write_is_no_failure(void) {
    char path[512];
    stk_error err = {0};
    snprintf(path, sizeof path, "%s/file", check_folder());
    REQUIRE_OK(stk_file_write(path, "x", 1, &err), &err);
    strcat(path, "/below");
    cuda_store *store = open_store(path, machine);
    REQUIRE(store != NULL);
    stk_cuda_store_put(store, "key", "blob", 4);
    stk_cuda_store_put(store, "key", "blob", 4);
    CHECK(holds(store, "key", NULL, 0));
    stk_cuda_store_close(store);
}

static void without_a_folder_it_is_the_cache_of_the_user(void) {
    char folder[256];
    char path[512];
    snprintf(folder, sizeof folder, "%s", check_folder());
    char *old_home = stk_mem_strdup(getenv("HOME") != NULL ? getenv("HOME") : "/");
    unsetenv("XDG_CACHE_HOME");
    setenv("HOME", folder, 1);
    cuda_store *store = open_store(NULL, machine);
    REQUIRE(store != NULL);
    stk_cuda_store_put(store, "key", "blob", 4);
    stk_cuda_store_close(store);
    snprintf(path, sizeof path, "%s/.cache/stoker/cuda", folder);
    CHECK(stk_path_is_dir(path));

    setenv("XDG_CACHE_HOME", folder, 1);
    store = open_store(NULL, machine);
    REQUIRE(store != NULL);
    stk_cuda_store_put(store, "key", "blob", 4);
    stk_cuda_store_close(store);
    snprintf(path, sizeof path, "%s/stoker/cuda", folder);
    CHECK(stk_path_is_dir(path));

    unsetenv("XDG_CACHE_HOME");
    unsetenv("HOME");
    store = open_store(NULL, machine);
    REQUIRE(store != NULL);
    stk_cuda_store_put(store, "key", "blob", 4);
    CHECK(holds(store, "key", NULL, 0));
    stk_cuda_store_close(store);
    setenv("HOME", old_home, 1);
    stk_mem_free(old_home);
}

enum { WRITERS = 4, ROUNDS = 40, BLOB = 20000 };

/* One process of several that write different contents under the same keys; each content is one
 * byte many times, so that a mixture shows. */
static int write_and_read(const char *folder, int writer) {
    cuda_store *store = open_store(folder, machine);
    char *mine = stk_mem_raw(BLOB, 1);
    if (store == NULL || mine == NULL) {
        return 1;
    }
    memset(mine, 'a' + writer, BLOB);
    int bad = 0;
    for (int i = 0; i < ROUNDS; i++) {
        char key[16];
        void *blob = NULL;
        size_t bytes = 0;
        snprintf(key, sizeof key, "key %d", i % 3);
        stk_cuda_store_put(store, key, mine, (size_t)(BLOB - writer));
        stk_cuda_store_get(store, key, &blob, &bytes);
        const char *text = blob;
        bad += text == NULL || (size_t)(BLOB - (text[0] - 'a')) != bytes ||
               memcmp(text, text + 1, bytes - 1) != 0;
        stk_mem_free(blob);
    }
    stk_mem_free(mine);
    stk_cuda_store_close(store);
    return bad != 0;
}

static void several_processes_share_it(void) {
    char folder[256];
    pid_t pids[WRITERS];
    snprintf(folder, sizeof folder, "%s", check_folder());
    fflush(stdout);
    for (int i = 0; i < WRITERS; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            _exit(write_and_read(folder, i));
        }
    }
    for (int i = 0; i < WRITERS; i++) {
        int status = -1;
        REQUIRE(pids[i] > 0);
        CHECK(waitpid(pids[i], &status, 0) == pids[i]);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
}

static void what_was_used_longest_ago_goes_first(void) {
    char folder[256];
    char path[1024];
    stk_error err = {0};
    char *blob = stk_mem_new(1000, 1);
    snprintf(folder, sizeof folder, "%s", check_folder());
    REQUIRE(blob != NULL);
    /* One machine per blob: then the file of each is known. */
    for (int i = 0; i < 4; i++) {
        char name[16];
        snprintf(name, sizeof name, "gpu %d", i);
        cuda_store *store = open_store(folder, name);
        REQUIRE(store != NULL);
        stk_cuda_store_put(store, "key", blob, 1000);
        stk_cuda_store_close(store);
    }
    stk_dir_list places = {0};
    REQUIRE_OK(stk_dir_read(folder, &places, &err), &err);
    CHECK_INT(places.count, 4);
    time_t now = time(NULL);
    for (size_t i = 0; i < places.count; i++) {
        stk_dir_list files = {0};
        snprintf(path, sizeof path, "%s/%s", folder, places.entries[i].name);
        REQUIRE_OK(stk_dir_read(path, &files, &err), &err);
        CHECK_INT(files.count, 1);
        snprintf(path, sizeof path, "%s/%s/%s", folder, places.entries[i].name,
                 files.entries[0].name);
        /* The first in the listing is the newest. */
        struct timespec times[2] = {{.tv_sec = now}, {.tv_sec = now - 100000 * (time_t)(i + 1)}};
        CHECK(utimensat(AT_FDCWD, path, times, 0) == 0);
        stk_dir_list_free(&files);
    }
    /* Whoever is asked for is in use again: the oldest becomes the newest. */
    int used = -1;
    for (int i = 0; i < 4; i++) {
        struct stat info;
        char name[16];
        snprintf(name, sizeof name, "gpu %d", i);
        snprintf(path, sizeof path, "%s/%s", folder, places.entries[3].name);
        cuda_store *store = open_store(folder, name);
        REQUIRE(store != NULL);
        stk_dir_list files = {0};
        REQUIRE_OK(stk_dir_read(path, &files, &err), &err);
        snprintf(path, sizeof path, "%s/%s/%s", folder, places.entries[3].name,
                 files.entries[0].name);
        stk_dir_list_free(&files);
        if (used < 0) {
            CHECK(holds(store, "key", blob, 1000));
            used = stat(path, &info) == 0 && info.st_mtime >= now ? i : -1;
        }
        stk_cuda_store_close(store);
    }
    CHECK(used >= 0);
    stk_cuda_store_trim(folder, 2 * 1100);
    int left = 0;
    for (int i = 0; i < 4; i++) {
        char name[16];
        snprintf(name, sizeof name, "gpu %d", i);
        cuda_store *store = open_store(folder, name);
        REQUIRE(store != NULL);
        bool there = holds(store, "key", blob, 1000);
        left += there;
        CHECK(there || i != used);
        stk_cuda_store_close(store);
    }
    CHECK_INT(left, 2);
    stk_cuda_store_trim(folder, 0);
    stk_cuda_store_trim("/there/is/none", 0);
    stk_dir_list_free(&places);
    stk_mem_free(blob);
}

static const check_test tests[] = {
    TEST(blobs_come_back),
    TEST(damage_is_absence),
    TEST(nowhere_to_write_is_no_failure),
    TEST(without_a_folder_it_is_the_cache_of_the_user),
    TEST(several_processes_share_it),
    TEST(what_was_used_longest_ago_goes_first),
};

CHECK_MAIN(tests)
