/*
 * run_watch.c - runs seen from another process.
 *
 * The lock is looked at before the files are read. A run frees its lock after it has written its
 * last file, so a run without a lock either has its summary or was killed.
 */
#include "run/run_watch.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/files/disk.h"
#include "base/files/file.h"
#include "base/mem.h"
#include "run/run_folder.h"
#include "report/report_options.h"

#define LOOK_GAP_NS 20000000 /* interval between two checks whether the run has ended */

#define FIELD(name) offsetof(stk_watch_options, name)

static const stk_option watch_options[] = {
    STK_OPTION(TEXT, "run", run, .metavar = "RUN",
               .help = "run folder, which may also be given without the flag"),
};

const stk_option_table stk_watch_option_table =
    STK_OPTION_TABLE("Which run", watch_options, stk_watch_options);

#undef FIELD
#define FIELD(name) offsetof(stk_stop_options, name)

static const stk_option stop_options[] = {
    STK_OPTION(DURATION, "wait", wait_s, .fallback = "15s", STK_OPTION_RANGE(0, 1e6),
               .metavar = "T",
               .help = "longest wait for the end of the run; 0: only ask it to end"),
};

const stk_option_table stk_stop_option_table =
    STK_OPTION_TABLE("Stopping", stop_options, stk_stop_options);

#undef FIELD
#define FIELD(name) offsetof(stk_top_options, name)

static const stk_option top_options[] = {
    STK_OPTION(BOOL, "once", once, .fallback = "false",
               .help = "show one picture and end, as when the output is no terminal"),
};

const stk_option_table stk_top_option_table =
    STK_OPTION_TABLE("View", top_options, stk_top_options);

static const stk_option_table *const status_tables[] = {&stk_watch_option_table,
                                                        &stk_output_option_table};
static const stk_option_table *const stop_tables[] = {
    &stk_watch_option_table, &stk_stop_option_table, &stk_output_option_table};
static const stk_option_table *const top_tables[] = {&stk_watch_option_table, &stk_top_option_table,
                                                     &stk_output_option_table};

/* ---- which run ---- */

/* When the run of a folder began; -1: the folder holds no run. */
static int64_t begun_ns(const char *folder) {
    char *events = stk_path_join(folder, "events.jsonl");
    char *lock = stk_path_join(folder, STK_RUN_LOCK);
    struct stat info;
    int64_t begun = -1;
    if (events != NULL && lock != NULL && stk_path_is_file(events) &&
        (stk_disk_look(lock, &info) == 0 || stk_disk_look(events, &info) == 0)) {
        begun = (int64_t)info.st_mtim.tv_sec * 1000000000 + info.st_mtim.tv_nsec;
    }
    stk_mem_free(events);
    stk_mem_free(lock);
    return begun;
}

static bool is_running(const char *folder) {
    stk_run_owner owner;
    return stk_run_folder_owner(folder, &owner, NULL) == STK_OK && owner.running;
}

stk_status stk_watch_newest(bool running, char **folder, stk_error *err) {
    stk_dir_list list = {0};
    char *newest = NULL;
    int64_t newest_ns = -1;
    stk_status status = stk_path_is_dir("runs") ? stk_dir_read("runs", &list, err) : STK_OK;
    for (size_t i = 0; i < list.count && status == STK_OK; i++) {
        char *path = stk_path_join("runs", list.entries[i].name);
        int64_t begun = path != NULL && list.entries[i].is_dir ? begun_ns(path) : -1;
        if (path == NULL) {
            status = STK_FAIL_MEMORY(err, "a path");
        } else if (begun > newest_ns && (!running || is_running(path))) {
            stk_mem_free(newest);
            newest = path;
            newest_ns = begun;
            continue;
        }
        stk_mem_free(path);
    }
    stk_dir_list_free(&list);
    if (status == STK_OK && newest == NULL) {
        status = running ? STK_FAIL(err, STK_ERR_USAGE,
                                    "no run below runs/ is running; give the run folder that is "
                                    "meant")
                         : STK_FAIL(err, STK_ERR_USAGE,
                                    "there is no run below runs/; give the run folder that is "
                                    "meant");
    }
    if (status != STK_OK) {
        stk_mem_free(newest);
        newest = NULL;
    }
    *folder = newest;
    return status;
}

/* ---- how it stands ---- */

stk_status stk_watch_look(stk_run_status *status, stk_error *err) {
    stk_run_owner owner;
    stk_status result = stk_run_folder_owner(status->folder, &owner, err);
    if (result != STK_OK) {
        return result;
    }
    status->running = owner.running;
    status->pid = owner.pid;
    status->since_ns = owner.since_ns;
    snprintf(status->host, sizeof status->host, "%s", owner.here ? "" : owner.host);
    return stk_run_status_read(status, stk_clock_wall_ns(), err);
}

/* ---- its end ---- */

static stk_status ask(const char *folder, const stk_run_owner *owner, bool *gone, stk_error *err) {
    if (!owner->here && owner->pid > 0) {
        return STK_FAIL(err, STK_ERR_USAGE,
                        "%s is written by process %lld on %s, which cannot be reached from here; "
                        "stop it there",
                        folder, (long long)owner->pid,
                        owner->host[0] != '\0' ? owner->host : "another machine");
    }
    if (!owner->here) {
        return STK_FAIL(err, STK_ERR_USAGE,
                        "%s is being written, but its lock does not say by which process; end that "
                        "process with SIGTERM",
                        folder);
    }
    if (kill(owner->pid, SIGTERM) == 0) {
        return STK_OK;
    }
    *gone = errno == ESRCH; /* it ended by itself in the meantime */
    return *gone ? STK_OK
                 : STK_FAIL(err, STK_ERR_USAGE,
                            "%s: process %lld cannot be asked to stop: %s; it belongs to another "
                            "user",
                            folder, (long long)owner->pid, strerror(errno));
}

stk_status stk_watch_stop(const char *folder, double wait_s, const stk_stop *stop,
                          stk_stopped *stopped, stk_error *err) {
    stk_run_owner owner;
    *stopped = (stk_stopped){.pid = -1};
    stk_status status = stk_run_folder_owner(folder, &owner, err);
    if (status != STK_OK || !owner.running) {
        stopped->already = true;
        stopped->gone = true;
        return status;
    }
    status = ask(folder, &owner, &stopped->gone, err);
    if (status != STK_OK) {
        return status;
    }
    stopped->pid = owner.pid;
    int64_t start = stk_clock_ns();
    while (!stopped->gone && stk_clock_since_s(start) < wait_s &&
           stk_stop_asked(stop) == STK_STOP_NONE) {
        stk_run_owner now;
        nanosleep(&(struct timespec){.tv_nsec = LOOK_GAP_NS}, NULL);
        /* Another process may have resumed the run in the meantime. */
        stopped->gone = stk_run_folder_owner(folder, &now, NULL) == STK_OK &&
                        (!now.running || now.since_ns != owner.since_ns);
    }
    stopped->waited_s = stk_clock_since_s(start);
    return STK_OK;
}

/* ---- options ---- */

stk_status stk_options_for_status(stk_options **options, stk_error *err) {
    return stk_options_new(options, "status", status_tables, STK_COUNT(status_tables), err);
}

stk_status stk_options_for_stop(stk_options **options, stk_error *err) {
    return stk_options_new(options, "stop", stop_tables, STK_COUNT(stop_tables), err);
}

stk_status stk_options_for_top(stk_options **options, stk_error *err) {
    return stk_options_new(options, "top", top_tables, STK_COUNT(top_tables), err);
}
