/* test_run_folder.c - whose a run folder is, and that nothing of an earlier run is ever lost. */
#include "check.h"
#include "small_pictures.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "run/run_folder.h"

static char base[256]; /* of the running test */

/* A fresh folder, which is made the current one: names of runs are below it. */
static void enter_folder(void) {
    snprintf(base, sizeof base, "%s", check_folder());
    if (chdir(base) != 0) {
        perror("chdir");
        exit(1);
    }
}

static const char *in_base(const char *name) {
    static char path[600];
    snprintf(path, sizeof path, "%s/%s", base, name);
    return path;
}

static bool is_text(const char *name, const char *expected) {
    char *data = NULL;
    size_t size = 0;
    bool same = stk_file_read(in_base(name), 0, &data, &size, NULL) == STK_OK &&
                strcmp(data, expected) == 0;
    stk_mem_free(data);
    return same;
}

/* Opens, leaves an args.json with this text, closes. */
static void leave_run(const char *out, const char *text) {
    stk_error err = {0};
    stk_run_folder folder;
    must(stk_run_folder_open(&folder, out, NULL, &err), &err);
    stk_str args = {0};
    stk_str_append(&args, text);
    must(stk_run_folder_write(&folder, "args.json", &args, &err), &err);
    stk_run_folder_close(&folder);
}

static void refused(const char *out, const char *name, stk_status status, const char *words) {
    stk_error err = {0};
    stk_run_folder folder;
    CHECK_INT(stk_run_folder_open(&folder, out, name, &err), status);
    CHECK_CONTAINS(err.message, words);
    CHECK(folder.path == NULL && folder.moved == NULL && folder.lock_fd == -1);
    stk_run_folder_close(&folder); /* harmless */
}

static void new_folder(void) {
    static const char *const spellings[] = {"a", "b/", "c//", "d/e/f"};
    static const char *const paths[] = {"a", "b", "c", "d/e/f"};
    enter_folder();
    for (size_t i = 0; i < 4; i++) {
        stk_error err = {0};
        stk_run_folder folder;
        REQUIRE_OK(stk_run_folder_open(&folder, spellings[i], "unused", &err), &err);
        CHECK_STR(folder.path, paths[i]);
        CHECK(folder.moved == NULL && folder.lock_fd >= 0);
        CHECK(stk_path_is_dir(in_base(paths[i])));
        char *file = stk_run_folder_file(&folder, "results.csv");
        CHECK_STR(file + strlen(paths[i]), "/results.csv");
        stk_mem_free(file);
        stk_run_folder_close(&folder);
    }
    CHECK(!stk_path_is_dir(in_base("runs")));
}

static void empty_folder(void) {
    stk_error err = {0};
    stk_run_folder folder;
    enter_folder();
    must(stk_dir_make("out", &err), &err);
    REQUIRE_OK(stk_run_folder_open(&folder, "out", NULL, &err), &err);
    CHECK(folder.moved == NULL);
    stk_run_folder_close(&folder);
}

/* What a run leaves that ended before its first file: its lock. */
static void folder_with_a_lock_only(void) {
    enter_folder();
    for (int i = 0; i < 3; i++) {
        stk_error err = {0};
        stk_run_folder folder;
        REQUIRE_OK(stk_run_folder_open(&folder, "out", NULL, &err), &err);
        CHECK(folder.moved == NULL);
        refused("out", NULL, STK_ERR_USAGE, "another run is writing there");
        stk_run_folder_close(&folder);
    }
    CHECK(!stk_path_is_dir(in_base("out.1")));
}

/* Killed after its first files, before args.json. */
static void a_run_without_options_is_one(void) {
    enter_folder();
    stk_error err = {0};
    stk_run_folder folder;
    REQUIRE_OK(stk_run_folder_open(&folder, "out", NULL, &err), &err);
    write_text(base, "out/results.csv", "fold,epoch");
    stk_run_folder_close(&folder);
    REQUIRE_OK(stk_run_folder_open(&folder, "out", NULL, &err), &err);
    CHECK_STR(folder.moved, "out.1");
    stk_run_folder_close(&folder);
    CHECK(is_text("out.1/results.csv", "fold,epoch"));
}

static void earlier_runs_are_kept(void) {
    enter_folder();
    leave_run("out", "first");
    must(stk_dir_make("out/weights", NULL), &(stk_error){0});
    write_text(base, "out/weights/best.safetensors", "weights of the first");
    leave_run("out/", "second");
    leave_run("out", "third");
    CHECK(is_text("out.1/args.json", "first"));
    CHECK(is_text("out.1/weights/best.safetensors", "weights of the first"));
    CHECK(is_text("out.2/args.json", "second"));
    CHECK(is_text("out/args.json", "third"));
    CHECK(!stk_path_is_dir(in_base("out/weights")) && !stk_path_is_dir(in_base("out.3")));
    stk_error err = {0};
    stk_run_folder folder;
    REQUIRE_OK(stk_run_folder_open(&folder, "out", NULL, &err), &err);
    CHECK_STR(folder.moved, "out.3");
    stk_run_folder_close(&folder);
}

/* Something else that is called out.1 is passed over. */
static void numbers_that_are_taken(void) {
    enter_folder();
    leave_run("out", "first");
    write_text(base, "out.1", "a file of mine");
    must(stk_dir_make("out.2", NULL), &(stk_error){0});
    leave_run("out", "second");
    CHECK(is_text("out.1", "a file of mine"));
    CHECK(is_text("out.3/args.json", "first"));
}

static void other_peoples_folders_are_refused(void) {
    enter_folder();
    must(stk_dir_make("photos", NULL), &(stk_error){0});
    write_text(base, "photos/holiday.jpg", "x");
    refused("photos", NULL, STK_ERR_USAGE, "holds no run");
    CHECK(is_text("photos/holiday.jpg", "x"));
    CHECK(!stk_path_is_dir(in_base("photos/state")));
    write_text(base, "file", "x");
    refused("file", NULL, STK_ERR_STORAGE, "file");
    refused("file/below", NULL, STK_ERR_STORAGE, "file");
    CHECK(is_text("file", "x"));
}

static void folders_in_use_are_refused(void) {
    stk_error err = {0};
    stk_run_folder folder;
    stk_str args = {0};
    enter_folder();
    REQUIRE_OK(stk_run_folder_open(&folder, "out", NULL, &err), &err);
    stk_str_append(&args, "{}");
    REQUIRE_OK(stk_run_folder_write(&folder, "args.json", &args, &err), &err);
    CHECK(args.length == 0);
    refused("out", NULL, STK_ERR_USAGE, "another run is writing there");
    CHECK(is_text("out/args.json", "{}"));
    CHECK(!stk_path_is_dir(in_base("out.1")));
    stk_run_folder_close(&folder);
    leave_run("out", "next"); /* the lock ends with the run */
    CHECK(is_text("out.1/args.json", "{}"));
}

static void a_move_that_fails_leaves_nothing(void) {
    enter_folder();
    leave_run("out", "first");
    CHECK(chdir("out") == 0);
    refused(".", NULL, STK_ERR_STORAGE, "cannot move the earlier run");
    CHECK(is_text("out/args.json", "first"));
    CHECK(!stk_path_is_dir(in_base("out/..1")));
}

static void folders_that_cannot_be_written(void) {
    enter_folder();
    refused("/proc/nowhere/run", NULL, STK_ERR_STORAGE, "/proc/nowhere");
    write_text(base, "runs", "a file");
    refused(NULL, "name", STK_ERR_STORAGE, "runs");
    if (geteuid() == 0) {
        return; /* nothing is unwritable for root */
    }
    must(stk_dir_make("locked", NULL), &(stk_error){0});
    chmod("locked", 0500);
    refused("locked/run", NULL, STK_ERR_STORAGE, "locked/run");
    refused("locked", NULL, STK_ERR_STORAGE, "locked");
    chmod("locked", 0700);
}

static void names_are_numbered(void) {
    static const char *const names[] = {NULL, NULL, "mine", "mine", "mine", "train"};
    static const char *const paths[] = {"runs/train",  "runs/train-2", "runs/mine",
                                        "runs/mine-2", "runs/mine-3",  "runs/train-3"};
    enter_folder();
    for (size_t i = 0; i < 6; i++) {
        stk_error err = {0};
        stk_run_folder folder;
        REQUIRE_OK(stk_run_folder_open(&folder, NULL, names[i], &err), &err);
        CHECK_STR(folder.path, paths[i]);
        CHECK(folder.moved == NULL);
        stk_run_folder_close(&folder);
    }
}

static void bad_names(void) {
    static const char *const names[] = {"", ".", "..", ".hidden", "a/b", "/", "../up"};
    enter_folder();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        refused(NULL, names[i], STK_ERR_USAGE, "--name");
    }
    CHECK(!stk_path_is_dir(in_base("runs")));
    char lengthy[400];
    memset(lengthy, 'x', sizeof lengthy - 1);
    lengthy[sizeof lengthy - 1] = '\0';
    refused(NULL, lengthy, STK_ERR_STORAGE, "too long");
}

#define RIVALS 8

static void *claim(void *argument) {
    stk_error err = {0};
    must(stk_run_folder_open(argument, NULL, "rival", &err), &err);
    return NULL;
}

static void rivals_get_folders_of_their_own(void) {
    pthread_t threads[RIVALS];
    stk_run_folder folders[RIVALS];
    enter_folder();
    for (size_t i = 0; i < RIVALS; i++) {
        pthread_create(&threads[i], NULL, claim, &folders[i]);
    }
    for (size_t i = 0; i < RIVALS; i++) {
        pthread_join(threads[i], NULL);
    }
    for (size_t i = 0; i < RIVALS; i++) {
        for (size_t k = 0; k < i; k++) {
            CHECK(strcmp(folders[i].path, folders[k].path) != 0);
        }
    }
    for (size_t i = 0; i < RIVALS; i++) {
        stk_run_folder_close(&folders[i]);
    }
}

static void without_memory(void) {
    enter_folder();
    leave_run("out", "first");
    for (int64_t n = 0; n < 100; n++) {
        stk_error err = {0};
        stk_run_folder folder;
        stk_mem_fail_after(n);
        stk_status status = stk_run_folder_open(&folder, "out", NULL, &err);
        stk_mem_fail_after(-1);
        if (status == STK_OK) {
            CHECK(n > 5);
            stk_run_folder_close(&folder);
            break;
        }
        CHECK_INT(status, STK_ERR_MEMORY);
    }
    CHECK(is_text("out.1/args.json", "first"));
}

static stk_run_owner owner_of(const char *path) {
    stk_error err = {0};
    stk_run_owner owner;
    must(stk_run_folder_owner(path, &owner, &err), &err);
    return owner;
}

static void the_owner_is_known_while_it_writes(void) {
    stk_error err = {0};
    stk_run_folder folder;
    enter_folder();
    CHECK(!owner_of("out").running); /* there is no such folder */
    must(stk_dir_make("out", &err), &err);
    CHECK(!owner_of("out").running); /* it has no lock */
    for (int i = 0; i < 2; i++) {
        REQUIRE_OK(i == 0 ? stk_run_folder_open(&folder, "out", NULL, &err)
                          : stk_run_folder_reopen(&folder, "out", &err),
                   &err);
        stk_run_owner owner = owner_of("out");
        CHECK(owner.running && owner.here);
        CHECK_INT(owner.pid, getpid());
        CHECK(owner.since_ns > 0 && owner.host[0] != '\0');
        stk_run_folder_close(&folder);
        owner = owner_of("out");
        CHECK(!owner.running && !owner.here);
        CHECK_INT(owner.pid, -1);
    }
}

/* A process of the same number is not the same process, and a text that is none says nothing. */
static void owners_that_cannot_be_told(void) {
    stk_error err = {0};
    stk_run_folder folder;
    enter_folder();
    REQUIRE_OK(stk_run_folder_open(&folder, "out", NULL, &err), &err);
    static const char *const texts[] = {"{\"pid\": %d, \"born\": 1, \"since_ns\": 5}",
                                        "{\"pid\": %d, \"born\": null}", "{\"pid\": %d, \"bo", "",
                                        "{\"pid\": 99999999999}"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char text[100];
        int length = snprintf(text, sizeof text, texts[i], (int)getpid());
        CHECK(ftruncate(folder.lock_fd, 0) == 0);
        CHECK_INT(pwrite(folder.lock_fd, text, (size_t)length, 0), length);
        stk_run_owner owner = owner_of("out");
        CHECK(owner.running && !owner.here);
        CHECK_INT(owner.pid, i < 2 ? getpid() : -1);
        CHECK_INT(owner.since_ns, i == 0 ? 5 : -1);
    }
    stk_run_folder_close(&folder);
}

static void a_killed_owner_is_gone(void) {
    enter_folder();
    int ready[2];
    char byte = 0;
    CHECK(pipe(ready) == 0);
    pid_t child = fork();
    if (child == 0) {
        stk_error err = {0};
        stk_run_folder folder;
        must(stk_run_folder_open(&folder, "out", NULL, &err), &err);
        _exit(write(ready[1], "x", 1) == 1 && pause() == 0);
    }
    CHECK_INT(read(ready[0], &byte, 1), 1);
    stk_run_owner owner = owner_of("out");
    CHECK(owner.running && owner.here);
    CHECK_INT(owner.pid, child);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    CHECK(!owner_of("out").running);
    close(ready[0]);
    close(ready[1]);
}

/* Temporary files are hidden and end with .tmp. */
static void sweeping_removes_temporary_files_only(void) {
    static const char *const kept[] = {"out/.hidden", "out/a.tmp", "out/weights/best"};
    static const char *const swept[] = {"out/.a.1.tmp", "out/weights/.best.1.tmp"};
    stk_error err = {0};
    stk_run_folder folder;
    enter_folder();
    must(stk_run_folder_open(&folder, "out", NULL, &err), &err);
    must(stk_dir_make("out/weights", &err), &err);
    for (size_t i = 0; i < STK_COUNT(kept); i++) {
        must(stk_file_write(kept[i], "x", 1, &err), &err);
    }
    for (size_t i = 0; i < STK_COUNT(swept); i++) {
        must(stk_file_write(swept[i], "x", 1, &err), &err);
    }
    stk_run_folder_sweep(&folder);
    for (size_t i = 0; i < STK_COUNT(kept); i++) {
        CHECK(stk_path_is_file(kept[i]));
    }
    for (size_t i = 0; i < STK_COUNT(swept); i++) {
        CHECK(!stk_path_is_file(swept[i]));
    }
    stk_run_folder_close(&folder);
}

static atomic_bool asking;

static void *ask(void *argument) {
    while (atomic_load(&asking)) {
        (void)owner_of(argument);
    }
    return NULL;
}

/* Who asks all the time keeps nobody from beginning. */
static void asking_disturbs_nobody(void) {
    pthread_t thread;
    enter_folder();
    leave_run("out", "first");
    atomic_store(&asking, true);
    pthread_create(&thread, NULL, ask, (char[]){"out"});
    for (int i = 0; i < 200; i++) {
        stk_error err = {0};
        stk_run_folder folder;
        if (stk_run_folder_reopen(&folder, "out", &err) != STK_OK) {
            CHECK_FAIL("reopening failed: %s", err.message);
            break;
        }
        stk_run_folder_close(&folder);
    }
    atomic_store(&asking, false);
    pthread_join(thread, NULL);
}

static const check_test tests[] = {
    TEST(new_folder),
    TEST(empty_folder),
    TEST(folder_with_a_lock_only),
    TEST(a_run_without_options_is_one),
    TEST(earlier_runs_are_kept),
    TEST(numbers_that_are_taken),
    TEST(other_peoples_folders_are_refused),
    TEST(folders_in_use_are_refused),
    TEST(a_move_that_fails_leaves_nothing),
    TEST(folders_that_cannot_be_written),
    TEST(names_are_numbered),
    TEST(bad_names),
    TEST(rivals_get_folders_of_their_own),
    TEST(without_memory),
    TEST(the_owner_is_known_while_it_writes),
    TEST(owners_that_cannot_be_told),
    TEST(a_killed_owner_is_gone),
    TEST(sweeping_removes_temporary_files_only),
    TEST(asking_disturbs_nobody),
};

CHECK_MAIN(tests)
