/* folder_writer.c - the files of the run behind a queue, and what became of them. */
#include "supervise/files/folder_writer.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/files/file.h"
#include "base/mem.h"
#include "base/text/locale.h"
#include "base/threads/task_queue.h"
#include "run/run_folder.h"
#include "report/observers/queued.h"
#include "report/runfiles.h"
#include "supervise/files/disk_call.h"

#define QUEUE_BYTES ((size_t)4 << 20) /* some thousand events */

/* What the thread works on; it outlives the writer where the disk hangs. */
typedef struct inside {
    char *out; /* owned, as all that follows */
    char *name;
    stk_str yaml;
    stk_str json;
    stk_run_folder folder;
    stk_runfiles *files;
    char *full_path;
    stk_status status; /* of the opening */
    stk_error why;     /* of it, and later of the first file that was put and failed */
    bool put_failed;   /* there was one */
} inside;

struct stk_folder_writer {
    inside *in; /* the thread's; its paths do not change and may be read */
    stk_task_queue *queue;
    stk_observer_aside *observer;
    uint64_t unput;    /* files that the queue did not take */
    bool unput_memory; /* some of them for lack of memory */
};

static void free_inside(void *state) {
    inside *in = state;
    stk_runfiles_free(in->files);
    stk_run_folder_close(&in->folder);
    stk_str_free(&in->yaml);
    stk_str_free(&in->json);
    stk_mem_free(in->full_path);
    stk_mem_free(in->name);
    stk_mem_free(in->out);
    stk_mem_free(in);
}

/* ---- opening ---- */

static stk_status write_private(const inside *in, const char *name, const stk_str *text,
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
    char *real = realpath(path, NULL);
    char *copy = stk_mem_strdup(real != NULL ? real : path);
    free(real);
    return copy;
}

static void open_folder(void *state) {
    inside *in = state;
    stk_error *err = &in->why;
    in->status = stk_run_folder_open(&in->folder, in->out, in->name, err);
    if (in->status == STK_OK) {
        /* By these a folder is known as a run's, whatever follows. */
        in->status = write_private(in, "args.json", &in->json, err);
    }
    if (in->status == STK_OK) {
        in->status = write_private(in, "args.yaml", &in->yaml, err);
    }
    if (in->status == STK_OK) {
        in->full_path = full_path_of(in->folder.path);
        in->status = in->full_path != NULL ? STK_OK : STK_FAIL_MEMORY(err, "a path");
    }
    if (in->status == STK_OK) {
        in->status = stk_runfiles_new_supervised(&in->files, in->folder.path, err);
    }
}

static inside *new_inside(const stk_folder_writer_config *config) {
    inside *in = stk_mem_new(1, sizeof *in);
    if (in == NULL) {
        return NULL;
    }
    in->folder.lock_fd = -1;
    in->out = config->out != NULL ? stk_mem_strdup(config->out) : NULL;
    in->name = stk_mem_strdup(config->name);
    stk_options_yaml(config->options, &in->yaml);
    stk_options_json(config->options, &in->json);
    if ((config->out != NULL && in->out == NULL) || in->name == NULL || !stk_str_ok(&in->yaml) ||
        !stk_str_ok(&in->json)) {
        free_inside(in);
        return NULL;
    }
    return in;
}

static void take_moment(void *user, int64_t moment_ns) {
    stk_runfiles_at(user, moment_ns);
}

stk_status stk_folder_writer_open(stk_folder_writer **writer,
                                  const stk_folder_writer_config *config, stk_error *err) {
    stk_folder_writer *w = stk_mem_new(1, sizeof *w);
    inside *in = w != NULL ? new_inside(config) : NULL;
    if (in == NULL) {
        stk_mem_free(w);
        return STK_FAIL_MEMORY(err, "the run folder");
    }
    if (!stk_disk_call(open_folder, in, free_inside, config->within_s)) {
        stk_mem_free(w);
        return STK_FAIL(err, STK_ERR_STORAGE,
                        "the disk of the run folder %s has not answered for %s: nothing was "
                        "started; give --out on another disk",
                        config->out != NULL ? config->out : "runs",
                        stk_format_span(config->within_s).text);
    }
    w->in = in;
    stk_status status =
        in->status == STK_OK ? STK_OK : STK_FAIL(err, in->status, "%s", in->why.message);
    if (status == STK_OK) {
        status = stk_task_queue_open(&w->queue, "writes the run folder", QUEUE_BYTES, err);
    }
    if (status == STK_OK) {
        stk_observer_told told = {
            .observer = stk_runfiles_observer(in->files), .at = take_moment, .user = in->files};
        status = stk_observer_aside_new(&w->observer, w->queue, &told, err);
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
    return stk_observer_aside_observer(writer->observer);
}

/* ---- files ---- */

typedef struct put_job {
    inside *in; /* borrowed */
    stk_str text;
    char name[]; /* of the file */
} put_job;

static void put_file(void *user) {
    put_job *job = user;
    stk_error why = {0};
    if (write_private(job->in, job->name, &job->text, &why) != STK_OK && !job->in->put_failed) {
        job->in->put_failed = true;
        job->in->why = why;
    }
    stk_str_free(&job->text);
    stk_mem_free(job);
}

void stk_folder_writer_put(stk_folder_writer *writer, const char *name, stk_str *text) {
    size_t length = strlen(name) + 1;
    put_job *job = stk_mem_new(1, sizeof *job + length);
    if (job != NULL) {
        job->in = writer->in;
        job->text = *text;
        memcpy(job->name, name, length);
    }
    stk_queue_task given = {.work = put_file, .user = job, .bytes = sizeof *job + text->length + 1};
    stk_status status = job != NULL ? stk_task_queue_put(writer->queue, &given, 0) : STK_ERR_MEMORY;
    if (status != STK_OK) {
        writer->unput++;
        writer->unput_memory = writer->unput_memory || status == STK_ERR_MEMORY;
        stk_str_free(text);
        stk_mem_free(job);
    }
    *text = (stk_str){0};
}

typedef struct finish_job {
    stk_runfiles *files; /* borrowed */
    double spare_s;
} finish_job;

static void finish_files(void *user) {
    finish_job *job = user;
    stk_locale locale = stk_locale_enter();
    stk_runfiles_finish(job->files, job->spare_s, NULL);
    stk_locale_leave(locale);
    stk_mem_free(job);
}

void stk_folder_writer_finish(stk_folder_writer *writer, double spare_s) {
    finish_job *job = stk_mem_new(1, sizeof *job);
    if (job != NULL) {
        *job = (finish_job){.files = writer->in->files, .spare_s = spare_s};
    }
    stk_queue_task given = {.work = finish_files, .user = job};
    if (job == NULL || stk_task_queue_put(writer->queue, &given, 0) != STK_OK) {
        stk_mem_free(job); /* the page stays as it is */
    }
}

/* ---- the end ---- */

bool stk_folder_writer_is_held(stk_folder_writer *writer, double for_s) {
    return stk_task_queue_busy_s(writer->queue) > for_s;
}

/* What the queue did not take, behind `before`; false: it took all. */
static bool tell_lost(const stk_folder_writer *w, const char *before, stk_str *text) {
    stk_observer_lost lost = stk_observer_aside_lost(w->observer);
    uint64_t lines = lost.events - lost.stop + w->unput;
    const char *summary = lost.stop ? lines > 0 ? "summary.json and " : "summary.json" : "";
    if (lines == 0 && !lost.stop) {
        return false;
    }
    stk_str_appendf(text, "%sof the run folder %s %s", before, w->in->folder.path, summary);
    if (lines > 0) {
        stk_str_appendf(text, "%" PRIu64 " lines of events.jsonl", lines);
    }
    stk_str_appendf(text, "%s missing: %s", lost.stop && lines == 0 ? " is" : " are",
                    lost.memory || w->unput_memory ? "there was no memory"
                                                   : "its disk did not answer in between");
    return true;
}

bool stk_folder_writer_flush(stk_folder_writer *writer, double within_s, stk_str *text) {
    const inside *in = writer->in;
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
    if (in->put_failed) {
        stk_str_appendf(text, "%s%s", whole ? "" : "; ", in->why.message);
        whole = false;
    }
    return !tell_lost(writer, whole ? "" : "; ", text) && whole;
}

void stk_folder_writer_close(stk_folder_writer *writer, double within_s) {
    stk_folder_writer *w = writer;
    if (w == NULL) {
        return;
    }
    /* Closing a file may wait for its disk too: it is the last job. */
    stk_queue_task last = {.work = free_inside, .user = w->in};
    if (w->queue == NULL) {
        free_inside(w->in);
    } else {
        stk_task_queue_put_last(w->queue, &last);
    }
    (void)stk_task_queue_close(w->queue, within_s);
    stk_observer_aside_free(w->observer);
    stk_mem_free(w);
}
