/* folder_writer.c - writes the files of the run from a queue, and reports what is missing. */
#include "supervise/files/folder_writer.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "base/files/disk.h"
#include "base/files/file.h"
#include "base/mem.h"
#include "base/text/locale.h"
#include "base/threads/task_queue.h"
#include "run/run_folder.h"
#include "report/observers/queued.h"
#include "report/runfiles.h"

#define QUEUE_BYTES ((size_t)4 << 20) /* thousands of events */

/* State of the background thread; outlives the writer if the disk hangs. */
typedef struct folder_files {
    stk_run_folder folder; /* owned */
    stk_runfiles *files;   /* owned */
    char *full_path;       /* owned */
    stk_error why;         /* of the first file that could not be written */
} folder_files;

struct stk_folder_writer {
    folder_files *in; /* the thread's; here only its constant paths may be read */
    stk_task_queue *queue;
    stk_queued *observer;
    uint64_t refused;        /* files that the queue refused */
    bool refused_for_memory; /* some of them for lack of memory */
};

static void free_files(void *state) {
    folder_files *in = state;
    stk_runfiles_free(in->files);
    stk_run_folder_close(&in->folder);
    stk_mem_free(in->full_path);
    stk_mem_free(in);
}

/* ---- Opening ---- */

static stk_status write_private(const folder_files *in, const char *name, const stk_str *text,
                                stk_error *err) {
    static const stk_file_how how = {.owner_only = true};
    char *path = stk_run_folder_file(&in->folder, name);
    stk_status status = path != NULL && stk_str_ok(text)
                            ? stk_file_write_how(path, stk_str_text(text), text->length, &how, err)
                            : STK_FAIL_MEMORY(err, name);
    stk_mem_free(path);
    return status;
}

static char *full_path_of(const char *path) {
    char *full = stk_disk_resolve(path);
    return full != NULL || errno == ENOMEM ? full : stk_mem_strdup(path);
}

static stk_status open_folder(folder_files *in, const stk_folder_writer_config *config,
                              stk_error *err) {
    stk_str json = {0};
    stk_str yaml = {0};
    stk_options_json(config->options, &json);
    stk_options_yaml(config->options, &yaml);
    stk_status status = stk_str_ok(&json) && stk_str_ok(&yaml)
                            ? stk_run_folder_open(&in->folder, config->out, config->name, err)
                            : STK_FAIL_MEMORY(err, "the run folder");
    if (status == STK_OK) {
        /* These files mark the folder as a run's, even if the rest fails. */
        status = write_private(in, "args.json", &json, err);
    }
    STK_THEN(status, write_private(in, "args.yaml", &yaml, err));
    if (status == STK_OK) {
        in->full_path = full_path_of(in->folder.path);
        status = in->full_path != NULL ? STK_OK : STK_FAIL_MEMORY(err, "a path");
    }
    STK_THEN(status, stk_runfiles_new_supervised(&in->files, in->folder.path, err));
    stk_str_free(&json);
    stk_str_free(&yaml);
    return status;
}

static void take_moment(void *user, int64_t moment_ns) {
    stk_runfiles_set_moment_ns(user, moment_ns);
}

stk_status stk_folder_writer_open(stk_folder_writer **writer,
                                  const stk_folder_writer_config *config, stk_error *err) {
    stk_folder_writer *w = stk_mem_new(1, sizeof *w);
    folder_files *in = w != NULL ? stk_mem_new(1, sizeof *in) : NULL;
    if (in == NULL) {
        stk_mem_free(w);
        return STK_FAIL_MEMORY(err, "the run folder");
    }
    w->in = in;
    in->folder.lock_fd = -1;
    stk_disk *disk = stk_disk_enter_within(config->within_s);
    stk_status status = open_folder(in, config, err);
    if (status != STK_OK) {
        stk_folder_writer_close(w, 0); /* before the disk is left: closing a file may hang */
    }
    if (!stk_disk_leave(disk) && status != STK_OK) {
        stk_error_clear(err);
        return STK_FAIL(err, STK_ERR_STORAGE,
                        "the disk of the run folder %s has not answered for %s: nothing was "
                        "started; give --out on another disk",
                        config->out != NULL ? config->out : "runs",
                        stk_format_span(config->within_s).text);
    }
    if (status != STK_OK) {
        return status;
    }
    status = stk_task_queue_open(&w->queue, "writes the run folder", QUEUE_BYTES, err);
    if (status == STK_OK) {
        stk_queued_target told = {
            .observer = stk_runfiles_observer(in->files), .at = take_moment, .user = in->files};
        status = stk_queued_new(&w->observer, w->queue, &told, err);
    }
    if (status != STK_OK) {
        stk_folder_writer_close(w, 0);
        return status;
    }
    *writer = w;
    return STK_OK;
}

const char *stk_folder_writer_path(const stk_folder_writer *writer) {
    return writer->in->folder.path;
}

const char *stk_folder_writer_full_path(const stk_folder_writer *writer) {
    return writer->in->full_path;
}

const char *stk_folder_writer_moved(const stk_folder_writer *writer) {
    return writer->in->folder.moved;
}

const stk_observer *stk_folder_writer_observer(stk_folder_writer *writer) {
    return stk_queued_observer(writer->observer);
}

/* ---- Files ---- */

typedef struct put_task {
    folder_files *in; /* borrowed */
    stk_str text;
    char name[]; /* of the file */
} put_task;

static void put_file(void *user) {
    put_task *task = user;
    stk_status status = write_private(task->in, task->name, &task->text, &task->in->why);
    (void)status; /* `why` keeps the first error */
    stk_str_free(&task->text);
    stk_mem_free(task);
}

void stk_folder_writer_put(stk_folder_writer *writer, const char *name, stk_str *text) {
    size_t length = strlen(name) + 1;
    put_task *task = stk_mem_new(1, sizeof *task + length);
    if (task != NULL) {
        task->in = writer->in;
        task->text = *text;
        memcpy(task->name, name, length);
    }
    stk_queue_task given = {
        .work = put_file, .user = task, .bytes = sizeof *task + text->length + 1};
    stk_status status =
        task != NULL ? stk_task_queue_put(writer->queue, &given, 0) : STK_ERR_MEMORY;
    if (status != STK_OK) {
        writer->refused++;
        writer->refused_for_memory = writer->refused_for_memory || status == STK_ERR_MEMORY;
        stk_str_free(text);
        stk_mem_free(task);
    }
    *text = (stk_str){0};
}

typedef struct finish_task {
    stk_runfiles *files; /* borrowed */
    double spare_s;
} finish_task;

static void finish_files(void *user) {
    finish_task *task = user;
    stk_locale locale = stk_locale_enter();
    stk_runfiles_finish(task->files, task->spare_s, NULL);
    stk_locale_leave(locale);
    stk_mem_free(task);
}

void stk_folder_writer_finish(stk_folder_writer *writer, double spare_s) {
    finish_task *task = stk_mem_new(1, sizeof *task);
    if (task != NULL) {
        *task = (finish_task){.files = writer->in->files, .spare_s = spare_s};
    }
    stk_queue_task given = {.work = finish_files, .user = task};
    if (task == NULL || stk_task_queue_put(writer->queue, &given, 0) != STK_OK) {
        stk_mem_free(task); /* the page stays as it is */
    }
}

/* ---- The end ---- */

bool stk_folder_writer_is_held(stk_folder_writer *writer, double for_s) {
    return stk_task_queue_busy_s(writer->queue) > for_s;
}

/* Appends `before` and what the queue refused; false: it refused nothing. */
static bool say_lost(const stk_folder_writer *w, const char *before, stk_str *text) {
    stk_queued_lost lost = stk_queued_lost_of(w->observer);
    uint64_t lines = lost.events - lost.stop;
    uint64_t files = w->refused;
    int parts = lost.stop + (lines > 0) + (files > 0);
    if (parts == 0) {
        return false;
    }
    stk_str_appendf(text, "%sof the run folder %s %s", before, w->in->folder.path,
                    lost.stop ? "summary.json" : "");
    if (lines > 0) {
        stk_str_appendf(text, "%s%" PRIu64 " line%s of events.jsonl",
                        !lost.stop  ? ""
                        : files > 0 ? ", "
                                    : " and ",
                        lines, lines == 1 ? "" : "s");
    }
    if (files > 0) {
        stk_str_appendf(text, "%s%" PRIu64 "%s file%s", parts > 1 ? " and " : "", files,
                        parts > 1 ? " other" : "", files == 1 ? "" : "s");
    }
    stk_str_appendf(text, " %s missing: %s", parts == 1 && lines <= 1 && files <= 1 ? "is" : "are",
                    lost.memory || w->refused_for_memory ? "there was no memory"
                                                         : "its disk did not answer in between");
    return true;
}

bool stk_folder_writer_flush(stk_folder_writer *writer, double within_s, stk_str *text) {
    const folder_files *in = writer->in;
    if (!stk_task_queue_flush(writer->queue, within_s)) {
        stk_str_appendf(text,
                        "the run folder %s is not complete: its disk has not answered for %s, so "
                        "that summary.json, report.html and later lines of events.jsonl are "
                        "missing",
                        in->folder.path,
                        stk_format_span(stk_task_queue_busy_s(writer->queue)).text);
        return false;
    }
    bool whole = !stk_runfiles_lacking(in->files, text);
    if (in->why.status != STK_OK) {
        stk_str_appendf(text, "%s%s", whole ? "" : "; ", in->why.message);
        whole = false;
    }
    return !say_lost(writer, whole ? "" : "; ", text) && whole;
}

void stk_folder_writer_close(stk_folder_writer *writer, double within_s) {
    stk_folder_writer *w = writer;
    if (w == NULL) {
        return;
    }
    /* Closing a file may hang too, so it is the last task of the queue. */
    stk_queue_task last = {.work = free_files, .user = w->in};
    if (w->queue == NULL) {
        free_files(w->in);
    } else {
        stk_task_queue_put_last(w->queue, &last);
    }
    (void)stk_task_queue_close(w->queue, within_s);
    stk_queued_free(w->observer);
    stk_mem_free(w);
}
