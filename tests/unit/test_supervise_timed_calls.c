/* test_supervise_timed_calls.c - calls that are waited for within a time, and settings changed by
 * them.
 */
#include "check.h"
#include "folder_texts.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/mem.h"
#include "base/threads/timed_call.h"
#include "supervise/settings/command_setting.h"

#define LONG_S 60.0

typedef struct wait {
    int ends[2];
    atomic_int ended;
    atomic_int dropped;
} wait;

static void await_byte(void *state) {
    wait *w = state;
    char byte;
    while (read(w->ends[0], &byte, 1) != 1) {
    }
    atomic_store(&w->ended, 1);
}

static void drop(void *state) {
    wait *w = state;
    atomic_store(&w->dropped, 1);
}

static void what_ends_in_time_is_the_callers(void) {
    wait w = {.ended = 0};
    REQUIRE(pipe2(w.ends, O_CLOEXEC) == 0);
    REQUIRE(write(w.ends[1], "x", 1) == 1);
    CHECK(stk_timed_call_within(await_byte, &w, drop, LONG_S));
    CHECK(atomic_load(&w.ended) == 1 && atomic_load(&w.dropped) == 0);
    close(w.ends[0]);
    close(w.ends[1]);
}

static void what_does_not_is_dropped_when_it_ends(void) {
    static wait w; /* it outlives the call */
    REQUIRE(pipe2(w.ends, O_CLOEXEC) == 0);
    CHECK(!stk_timed_call_within(await_byte, &w, drop, 0.02));
    CHECK(atomic_load(&w.ended) == 0);
    REQUIRE(write(w.ends[1], "x", 1) == 1);
    for (int i = 0; i < 10000 && atomic_load(&w.dropped) == 0; i++) {
        usleep(1000);
    }
    CHECK(atomic_load(&w.ended) == 1 && atomic_load(&w.dropped) == 1);
}

static mode_t mode_of(const char *path) {
    struct stat info = {0};
    CHECK(stat(path, &info) == 0);
    return info.st_mode & 0777;
}

/* A setting that is a key: read, set, set again and restored; only the owner may read the copies.
 */
static void a_file_is_changed_and_put_back(void) {
    const char *folder = check_folder();
    stk_error err = {0};
    stk_command_setting setting;
    bool mine = false;
    char *path = stk_path_join(folder, "c.json");
    REQUIRE_OK(stk_file_write(path, "{\"lr\": 1, \"batch\": 32}", 22, &err), &err);
    stk_setting_config config = {.what = "batch", .key = "batch", .file = path};
    REQUIRE_OK(stk_setting_open(&setting, &config, &err), &err);
    CHECK_INT(stk_setting_value_within(&setting, NULL, LONG_S), 32);
    for (int64_t batch = 64; batch <= 128; batch *= 2) {
        REQUIRE_OK(stk_setting_set_within(&setting, NULL, batch, folder, LONG_S, &err), &err);
        CHECK_INT(stk_setting_value_within(&setting, NULL, LONG_S), batch);
    }
    REQUIRE(setting.original != NULL && setting.changed != NULL);
    CHECK_INT(mode_of(setting.original), 0600);
    CHECK_INT(mode_of(setting.changed), 0600);
    CHECK_INT(stk_setting_value_within(&setting, NULL, 0), -1); /* no time, no answer */
    CHECK(stk_setting_set_within(&setting, NULL, 8, folder, 0, &err) == STK_ERR_STORAGE);
    CHECK_CONTAINS(err.message, "c.json, or of its copy in the run folder, has not answered for");
    err = (stk_error){0};
    CHECK(stk_setting_restore_within(&setting, &mine, 0, &err) == STK_ERR_STORAGE);
    CHECK_CONTAINS(err.message, "has not answered for");
    err = (stk_error){0};
    REQUIRE_OK(stk_setting_restore_within(&setting, &mine, LONG_S, &err), &err);
    CHECK(mine);
    char *text = get_file(folder, "c.json");
    CHECK_STR(text, "{\"lr\": 1, \"batch\": 32}");
    stk_mem_free(text);
    REQUIRE(unlink(path) == 0);
    CHECK_INT(stk_setting_value_within(&setting, NULL, LONG_S), -1);
    CHECK(stk_setting_set_within(&setting, NULL, 8, folder, LONG_S, &err) == STK_ERR_STORAGE);
    CHECK_CONTAINS(err.message, "c.json");
    stk_setting_close(&setting);
    stk_mem_free(path);
}

static const check_test tests[] = {
    TEST(what_ends_in_time_is_the_callers),
    TEST(what_does_not_is_dropped_when_it_ends),
    TEST(a_file_is_changed_and_put_back),
};

CHECK_MAIN(tests)
