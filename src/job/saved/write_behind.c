/*
 * write_behind.c - one thread that writes one file after the other.
 *
 * A stk_write_load holds copies of all that one file needs, so that it can be abandoned with its
 * thread when the disk does not answer. The block moves into the load and back.
 */
#include "job/saved/write_behind.h"

#include <math.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/files/disk.h"
#include "base/mem.h"

struct stk_write_load {
    stk_bytes block;
    char *path;
    char *superfluous[STK_WRITE_BEHIND_MOST];
    double sync_s;
    stk_status status;
    stk_error failure;
    int64_t ended_ns;
};

static void free_load(void *state) {
    stk_write_load *load = state;
    stk_bytes_free(&load->block);
    stk_mem_free(load->path);
    for (size_t i = 0; i < STK_WRITE_BEHIND_MOST; i++) {
        stk_mem_free(load->superfluous[i]);
    }
    stk_mem_free(load);
}

static void finish(stk_write_load *load) {
    for (size_t i = 0; i < STK_WRITE_BEHIND_MOST && load->status == STK_OK; i++) {
        if (load->superfluous[i] != NULL) {
            (void)stk_disk_remove(load->superfluous[i]);
        }
    }
    load->ended_ns = stk_clock_ns();
}

static double sync_seconds(void *state, double waited_s) {
    return fmax(((stk_write_load *)state)->sync_s - waited_s, 0);
}

static void put_to_disk(void *state) {
    stk_write_load *load = state;
    stk_disk *disk = load->sync_s > 0 ? stk_disk_enter(&(stk_disk_config){.look_s = STK_DISK_LOOK_S,
                                                                          .move_s = STK_DISK_MOVE_S,
                                                                          .sync_s = sync_seconds,
                                                                          .user = load})
                                      : NULL;
    load->status = stk_file_write(load->path, load->block.data, load->block.size, &load->failure);
    stk_disk_leave(disk);
    finish(load);
}

stk_status stk_write_behind_begin(stk_write_behind *writer, stk_file_writer **file,
                                  const char *path, bool gather, stk_error *err) {
    writer->begun_ns = stk_clock_ns();
    writer->block.size = 0;
    stk_write_load *load = stk_mem_new(1, sizeof *load);
    char *copy = stk_mem_strdup(path);
    if (load == NULL || copy == NULL) {
        stk_mem_free(load);
        stk_mem_free(copy);
        return STK_FAIL_MEMORY(err, path);
    }
    load->path = copy;
    load->sync_s = writer->sync_s;
    if (writer->load != NULL) { /* the caller discarded that file */
        free_load(writer->load);
    }
    writer->load = load;
    return gather ? stk_file_gather(file, path, &writer->block, err)
                  : stk_file_create(file, path, err);
}

void stk_write_behind_remove(stk_write_behind *writer, const char *path) {
    for (size_t i = 0; i < STK_WRITE_BEHIND_MOST; i++) {
        if (writer->load->superfluous[i] == NULL) {
            writer->load->superfluous[i] = stk_mem_strdup(path);
            return;
        }
    }
}

void stk_write_behind_start(stk_write_behind *writer) {
    stk_write_load *load = writer->load;
    writer->pending = true;
    if (writer->block.size ==
        0) { /* nothing was gathered: stk_file_commit() has replaced the file */
        finish(load);
        return;
    }
    load->block = writer->block;
    writer->block = (stk_bytes){0};
    if (writer->thread == NULL &&
        stk_timed_call_open(&writer->thread, "writes in the background", NULL) != STK_OK) {
        put_to_disk(load);
        return;
    }
    writer->running = true;
    stk_timed_call_begin(writer->thread, put_to_disk, load, free_load);
}

bool stk_write_behind_is_pending(const stk_write_behind *writer) {
    return writer->pending;
}

bool stk_write_behind_is_done(const stk_write_behind *writer) {
    return writer->pending && (!writer->running || stk_timed_call_has_ended(writer->thread));
}

bool stk_write_behind_wait(stk_write_behind *writer, int64_t until_ns) {
    return !writer->pending || !writer->running || stk_timed_call_wait(writer->thread, until_ns);
}

stk_status stk_write_behind_finish(stk_write_behind *writer, stk_error *err) {
    if (!writer->pending) {
        return STK_OK;
    }
    (void)stk_write_behind_wait(writer, INT64_MAX);
    stk_write_load *load = writer->load;
    stk_status status =
        load->status == STK_OK ? STK_OK : STK_FAIL(err, load->status, "%s", load->failure.message);
    writer->ended_ns = load->ended_ns;
    if (load->block.data != NULL) {
        writer->block = load->block;
        load->block = (stk_bytes){0};
    }
    free_load(load);
    writer->load = NULL;
    writer->running = false;
    writer->pending = false;
    return status;
}

stk_status stk_write_behind_give_up(stk_write_behind *writer, stk_error *err) {
    if (stk_write_behind_wait(writer, 0)) {
        return stk_write_behind_finish(writer, err);
    }
    stk_status status = STK_FAIL(err, STK_ERR_STORAGE,
                                 "cannot write %s: its disk gave no answer within %.1f s; look "
                                 "whether it is mounted and alive",
                                 writer->load->path, stk_write_behind_age(writer));
    if (!stk_timed_call_close(writer->thread)) { /* the call has just ended after all */
        free_load(writer->load);
    }
    writer->thread = NULL;
    writer->load = NULL;
    writer->running = false;
    writer->pending = false;
    return status;
}

double stk_write_behind_seconds(const stk_write_behind *writer) {
    return (double)(writer->ended_ns - writer->begun_ns) * 1e-9;
}

double stk_write_behind_age(const stk_write_behind *writer) {
    return stk_clock_since_s(writer->begun_ns);
}

void stk_write_behind_free(stk_write_behind *writer) {
    stk_status status = stk_write_behind_finish(writer, NULL);
    (void)status; /* nobody asks for it any more */
    if (writer->load != NULL) {
        free_load(writer->load);
    }
    (void)stk_timed_call_close(writer->thread);
    stk_bytes_free(&writer->block);
    writer->load = NULL;
    writer->thread = NULL;
}
