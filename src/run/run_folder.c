/*
 * run_folder.c - finding, locking and writing a run folder.
 *
 * The lock is a file lock on state/lock. It ends with the process, so a killed run never blocks its
 * folder. The lock file's text names the process and is valid only while the file is locked.
 */
#include "run/run_folder.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/files/disk.h"
#include "base/files/file.h"
#include "base/files/file_lock.h"
#include "base/mem.h"
#include "base/threads/process.h"

#define MOST_NUMBERS 100000
#define DEFAULT_NAME "train"

/* A process that only asks whether a folder is locked holds its lock for an instant; these
 * attempts outlast it. */
#define LOCK_TRIES 20
#define LOCK_GAP_NS 1000000

static char *lock_path(const char *folder) {
    return stk_path_join(folder, STK_RUN_LOCK);
}

static bool is_link(const char *path) {
    struct stat info;
    return stk_disk_look_link(path, &info) == 0 && S_ISLNK(info.st_mode);
}

/* Fails where the path is a link: what a run writes must lie where it seems to lie. */
static stk_status check_link(const char *path, stk_error *err) {
    return is_link(path) ? STK_FAIL(err, STK_ERR_STORAGE,
                                    "cannot write to %s: it is a link, and Stoker follows no links "
                                    "inside a run folder; put the file or folder itself there",
                                    path)
                         : STK_OK;
}

/* Checks every entry of a subfolder: all of them belong to the run. */
static stk_status check_inside(const char *folder, stk_error *err) {
    stk_dir_list list = {0};
    stk_status status = stk_dir_read(folder, &list, err);
    for (size_t i = 0; i < list.count && status == STK_OK; i++) {
        char *path = stk_path_join(folder, list.entries[i].name);
        status = path != NULL ? check_link(path, err) : STK_FAIL_MEMORY(err, "a path");
        stk_mem_free(path);
    }
    stk_dir_list_free(&list);
    return status;
}

/*
 * Refuses links before anything is written: refusing the submission after hours of training would
 * be too late. Each writer checks once more.
 */
static stk_status check_links(const char *folder, stk_error *err) {
    static const char *const names[] = {
        "state",       "weights",        "tensorboard", "args.json",    "args.yaml",
        "results.csv", "bad_images.csv", "oof.csv",     "events.jsonl", "validation.csv",
        "results.png", "results.svg",    "report.html", "summary.json", "submission.csv",
        "lr.csv",      "lr.png",         "lr.svg",      "output.log",   "predictions.csv",
        "log.txt"};
    stk_status status = STK_OK;
    for (size_t i = 0; i < STK_COUNT(names) && status == STK_OK; i++) {
        char *path = stk_path_join(folder, names[i]);
        status = path != NULL ? check_link(path, err) : STK_FAIL_MEMORY(err, "a path");
        if (status == STK_OK && stk_path_is_dir(path)) {
            status = check_inside(path, err);
        }
        stk_mem_free(path);
    }
    return status;
}

static stk_status lock_folder(stk_run_folder *folder, bool *taken, stk_error *err) {
    char *state = stk_path_join(folder->path, "state");
    char *lock = lock_path(folder->path);
    *taken = false;
    stk_status status = state != NULL && lock != NULL ? check_links(folder->path, err)
                                                      : STK_FAIL_MEMORY(err, "a path");
    STK_THEN(status, stk_dir_make(state, err));
    for (int i = 0; i < LOCK_TRIES && status == STK_OK && !*taken; i++) {
        if (i > 0) {
            nanosleep(&(struct timespec){.tv_nsec = LOCK_GAP_NS}, NULL);
        }
        status = stk_file_lock(lock, &folder->lock_fd, taken, err);
    }
    stk_mem_free(state);
    stk_mem_free(lock);
    return status;
}

/*
 * Writes into the lock's file who holds it. It is written in place, since another file would be
 * another lock; a text that could not be written makes the owner unknown and nothing worse.
 */
static void sign_lock(const stk_run_folder *folder) {
    stk_run_owner self = {0};
    uint64_t born = 0;
    stk_str text = {0};
    bool known = stk_process_born(getpid(), &born);
    (void)gethostname(self.host, sizeof self.host - 1);
    stk_json_writer writer = stk_json_write_to(&text, 0);
    stk_json_begin_object(&writer);
    stk_json_key(&writer, "pid");
    stk_json_put_int(&writer, getpid());
    stk_json_key(&writer, "born");
    if (known) {
        stk_json_put_int(&writer, (int64_t)born);
    } else {
        stk_json_put_null(&writer);
    }
    stk_json_key(&writer, "since_ns");
    stk_json_put_int(&writer, stk_clock_wall_ns());
    stk_json_key(&writer, "host");
    stk_json_put_string(&writer, self.host);
    stk_json_end_object(&writer);
    stk_str_append(&text, "\n");
    bool written = stk_str_ok(&text) && stk_disk_cut(folder->lock_fd, folder->path, 0) == 0 &&
                   stk_disk_write_at(folder->lock_fd, folder->path, text.text, text.length, 0) ==
                       (ssize_t)text.length;
    (void)written;
    stk_str_free(&text);
}

/* Moves a finished run out of the way, to the first number that is free. */
static stk_status move_aside(stk_run_folder *folder, stk_error *err) {
    for (int i = 1; i < MOST_NUMBERS; i++) {
        char *aside = stk_str_format("%s.%d", folder->path, i);
        bool made = false;
        if (aside == NULL) {
            return STK_FAIL_MEMORY(err, "a path");
        }
        /* Claiming the name first keeps two runs from moving to the same place. */
        stk_status status = stk_dir_claim(aside, &made, err);
        if (status == STK_OK && made && stk_disk_rename(folder->path, aside) != 0) {
            status = STK_FAIL(err, STK_ERR_STORAGE, "cannot move the earlier run %s to %s: %s",
                              folder->path, aside, stk_disk_reason(errno));
            (void)stk_disk_remove_dir(aside);
        }
        if (status == STK_OK && !made) {
            stk_mem_free(aside);
            continue;
        }
        folder->moved = aside;
        return status;
    }
    return STK_FAIL(err, STK_ERR_STORAGE, "there are too many earlier runs beside %s",
                    folder->path);
}

/* Checks an existing folder of --out: an earlier run is moved away, anything else is refused. */
static stk_status clear_out(stk_run_folder *folder, stk_error *err) {
    stk_dir_list list;
    bool taken = false;
    stk_status status = stk_dir_read(folder->path, &list, err);
    if (status != STK_OK || list.count == 0) {
        return status;
    }
    /* A run that ended right after its birth has left its lock and nothing worth keeping. */
    bool only_lock = list.count == 1 && strcmp(list.entries[0].name, "state") == 0;
    /* A run that was killed before its options were written is known by its lock. */
    bool is_run = stk_path_has_file(folder->path, STK_RUN_LOCK);
    for (size_t i = 0; i < list.count; i++) {
        is_run = is_run || strcmp(list.entries[i].name, "args.json") == 0;
    }
    stk_dir_list_free(&list);
    if (!only_lock && !is_run) {
        return STK_FAIL(
            err, STK_ERR_USAGE,
            "--out %s: the folder is not empty and holds no run; give an empty or a new "
            "folder",
            folder->path);
    }
    status = lock_folder(folder, &taken, err);
    if (status == STK_OK && !taken) {
        return STK_FAIL(err, STK_ERR_USAGE,
                        "--out %s: another run is writing there right now; give another folder",
                        folder->path);
    }
    if (status == STK_OK && !only_lock) {
        status = move_aside(folder, err);
    }
    stk_file_unlock(folder->lock_fd, folder->path);
    folder->lock_fd = -1;
    return status;
}

/* runs/NAME, runs/NAME-2 ...: whoever makes the folder has it. */
static stk_status claim_name(stk_run_folder *folder, const char *name, stk_error *err) {
    if (name[0] == '\0' || strchr(name, '/') != NULL || name[0] == '.') {
        return STK_FAIL(err, STK_ERR_USAGE,
                        "--name %s: a name may not be empty, start with a point or hold a slash",
                        name);
    }
    stk_status status = stk_dir_make("runs", err);
    for (int i = 1; i < MOST_NUMBERS && status == STK_OK; i++) {
        bool made = false;
        stk_mem_free(folder->path);
        folder->path =
            i == 1 ? stk_str_format("runs/%s", name) : stk_str_format("runs/%s-%d", name, i);
        status = folder->path != NULL ? stk_dir_claim(folder->path, &made, err)
                                      : STK_FAIL_MEMORY(err, "a path");
        if (made) {
            return STK_OK;
        }
    }
    return status != STK_OK
               ? status
               : STK_FAIL(err, STK_ERR_STORAGE, "there are too many runs called %s", name);
}

stk_status stk_run_folder_open(stk_run_folder *folder, const char *out, const char *name,
                               stk_error *err) {
    memset(folder, 0, sizeof *folder);
    folder->lock_fd = -1;
    stk_status status = STK_OK;
    stk_disk_root(out != NULL ? out : "runs", false);
    if (out != NULL) {
        folder->path = stk_path_trim(out); /* so that numbers can be put after the name */
        status = folder->path != NULL ? STK_OK : STK_FAIL_MEMORY(err, "a path");
        if (status == STK_OK && stk_path_is_dir(folder->path)) {
            status = clear_out(folder, err);
        }
        STK_THEN(status, stk_dir_make(folder->path, err));
    } else {
        status = claim_name(folder, name != NULL ? name : DEFAULT_NAME, err);
    }
    bool taken = false;
    STK_THEN(status, lock_folder(folder, &taken, err));
    if (status == STK_OK && !taken) {
        status = STK_FAIL(err, STK_ERR_USAGE, "%s: another run has just begun to write there",
                          folder->path);
    }
    if (status != STK_OK) {
        stk_run_folder_close(folder);
    } else {
        stk_random_id_text(folder->id);
        sign_lock(folder);
    }
    return status;
}

#define FOLDER_DEPTH 3 /* the run folder, weights, weights/fold0 */

/* Removes temporary files below a folder; each may be as large as the model. */
static void sweep_below(const char *path, int depth) {
    DIR *dir = opendir(path);
    struct dirent *entry;
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        char *inside = stk_path_join(path, entry->d_name);
        bool hidden = entry->d_name[0] == '.';
        if (inside != NULL && hidden && stk_str_ends_with_nocase(entry->d_name, ".tmp")) {
            unlink(inside);
        } else if (inside != NULL && !hidden && depth > 1 && !is_link(inside) &&
                   stk_path_is_dir(inside)) {
            sweep_below(inside, depth - 1);
        }
        stk_mem_free(inside);
    }
    if (dir != NULL) {
        closedir(dir);
    }
}

/* Reads the id that the run got when it began. An unreadable file is reported by stk_resume_*. */
static void recall_id(stk_run_folder *folder) {
    stk_json *args = NULL;
    if (stk_json_read_in(folder->path, "args.json", &args, NULL) == STK_OK) {
        const char *id = stk_json_string(stk_json_get(args, "run_id"));
        snprintf(folder->id, sizeof folder->id, "%s", id != NULL ? id : "");
    }
    stk_json_free(args);
}

static void sweep_path(void *path) {
    sweep_below(path, FOLDER_DEPTH);
}

void stk_run_folder_sweep(const stk_run_folder *folder) {
    char *copy = stk_mem_strdup(folder->path);
    if (copy != NULL && stk_disk_run(folder->path, sweep_path, copy, stk_mem_free)) {
        stk_mem_free(copy);
    }
}

stk_status stk_run_folder_reopen(stk_run_folder *folder, const char *path, stk_error *err) {
    memset(folder, 0, sizeof *folder);
    folder->lock_fd = -1;
    bool taken = false;
    stk_disk_root(path, false);
    folder->path = stk_path_trim(path);
    stk_status status =
        folder->path != NULL ? lock_folder(folder, &taken, err) : STK_FAIL_MEMORY(err, "a path");
    if (status == STK_OK && !taken) {
        status =
            STK_FAIL(err, STK_ERR_USAGE, "--resume %s: the run is being written right now", path);
    }
    if (status != STK_OK) {
        stk_run_folder_close(folder);
    } else {
        recall_id(folder);
        sign_lock(folder);
        stk_run_folder_sweep(folder); /* a killed process may have left some */
    }
    return status;
}

void stk_run_folder_close(stk_run_folder *folder) {
    stk_file_unlock(folder->lock_fd, folder->path);
    stk_mem_free(folder->path);
    stk_mem_free(folder->moved);
    memset(folder, 0, sizeof *folder);
    folder->lock_fd = -1;
}

/* Reads from the lock file which process wrote it. What the file does not say stays unknown. */
static void read_signature(const char *folder, stk_run_owner *owner) {
    stk_json *signature = NULL;
    uint64_t number = 0;
    uint64_t born = 0;
    if (stk_json_read_in(folder, STK_RUN_LOCK, &signature, NULL) != STK_OK) {
        return;
    }
    if (stk_json_u64(stk_json_get(signature, "pid"), &number) && number <= INT32_MAX) {
        owner->pid = (pid_t)number;
    }
    if (stk_json_u64(stk_json_get(signature, "since_ns"), &number)) {
        owner->since_ns = (int64_t)number;
    }
    const char *host = stk_json_string(stk_json_get(signature, "host"));
    snprintf(owner->host, sizeof owner->host, "%s", host != NULL ? host : "");
    owner->here = owner->pid > 0 && stk_json_u64(stk_json_get(signature, "born"), &number) &&
                  stk_process_born(owner->pid, &born) && born == number;
    stk_json_free(signature);
}

stk_status stk_run_folder_owner(const char *path, stk_run_owner *owner, stk_error *err) {
    stk_lock_state state = STK_LOCK_FREE;
    char *lock = lock_path(path);
    *owner = (stk_run_owner){.pid = -1, .since_ns = -1};
    stk_status status =
        lock != NULL ? stk_file_lock_look(lock, &state, err) : STK_FAIL_MEMORY(err, "a path");
    stk_mem_free(lock);
    if (status != STK_OK || state == STK_LOCK_FREE) {
        return status;
    }
    read_signature(path, owner);
    /* A file system without locks: a process with that number and start time decides. */
    owner->running = state == STK_LOCK_HELD || owner->here;
    return STK_OK;
}

char *stk_run_folder_file(const stk_run_folder *folder, const char *name) {
    return stk_path_join(folder->path, name);
}

stk_status stk_run_folder_write(const stk_run_folder *folder, const char *name, stk_str *text,
                                stk_error *err) {
    char *path = stk_run_folder_file(folder, name);
    stk_status status = path != NULL && stk_str_ok(text)
                            ? stk_file_write(path, stk_str_text(text), text->length, err)
                            : STK_FAIL_MEMORY(err, name);
    stk_mem_free(path);
    stk_str_free(text);
    return status;
}

stk_status stk_run_folder_write_options(const stk_run_folder *folder, const stk_options *options,
                                        stk_error *err) {
    stk_str yaml = {0};
    stk_str json = {0};
    stk_str args = {0};
    stk_options_yaml(options, &yaml);
    stk_options_json(options, &args);
    if (!stk_str_ok(&args)) {
        json.failed = true; /* never write half of the options */
    } else if (folder->id[0] != '\0') {
        stk_str_appendf(&json, "{\n  \"run_id\": \"%s\",%s", folder->id, stk_str_text(&args) + 1);
    } else {
        stk_str_append(&json, stk_str_text(&args));
    }
    stk_str_free(&args);
    stk_status status = stk_run_folder_write(folder, "args.json", &json, err);
    STK_THEN(status, stk_run_folder_write(folder, "args.yaml", &yaml, err));
    stk_str_free(&yaml);
    return status;
}
