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

stk_status stk_write_behind_begin(stk_write_behind *b, stk_file_writer **writer, const char *path,
                                  bool gather, stk_error *err) {
    b->begun_ns = stk_clock_ns();
    b->block.size = 0;
    stk_write_load *load = stk_mem_new(1, sizeof *load);
    char *copy = stk_mem_strdup(path);
    if (load == NULL || copy == NULL) {
        stk_mem_free(load);
        stk_mem_free(copy);
        return STK_FAIL_MEMORY(err, path);
    }
    load->path = copy;
    load->sync_s = b->sync_s;
    if (b->load != NULL) { /* its writer was discarded */
        free_load(b->load);
    }
    b->load = load;
    return gather ? stk_file_gather(writer, path, &b->block, err)
                  : stk_file_create(writer, path, err);
}

void stk_write_behind_remove(stk_write_behind *b, const char *path) {
    for (size_t i = 0; i < STK_WRITE_BEHIND_MOST; i++) {
        if (b->load->superfluous[i] == NULL) {
            b->load->superfluous[i] = stk_mem_strdup(path);
            return;
        }
    }
}

void stk_write_behind_start(stk_write_behind *b) {
    stk_write_load *load = b->load;
    b->pending = true;
    if (b->block.size == 0) { /* nothing was gathered: the writer has put the file in place */
        finish(load);
        return;
    }
    load->block = b->block;
    b->block = (stk_bytes){0};
    if (b->thread == NULL &&
        stk_timed_call_open(&b->thread, "writes in the background", NULL) != STK_OK) {
        put_to_disk(load);
        return;
    }
    b->running = true;
    stk_timed_call_begin(b->thread, put_to_disk, load, free_load);
}

bool stk_write_behind_is_pending(const stk_write_behind *b) {
    return b->pending;
}

bool stk_write_behind_is_done(const stk_write_behind *b) {
    return b->pending && (!b->running || stk_timed_call_has_ended(b->thread));
}

bool stk_write_behind_wait(stk_write_behind *b, int64_t until_ns) {
    return !b->pending || !b->running || stk_timed_call_wait(b->thread, until_ns);
}

stk_status stk_write_behind_finish(stk_write_behind *b, stk_error *err) {
    if (!b->pending) {
        return STK_OK;
    }
    (void)stk_write_behind_wait(b, INT64_MAX);
    stk_write_load *load = b->load;
    stk_status status =
        load->status == STK_OK ? STK_OK : STK_FAIL(err, load->status, "%s", load->failure.message);
    b->ended_ns = load->ended_ns;
    if (load->block.data != NULL) {
        b->block = load->block;
        load->block = (stk_bytes){0};
    }
    free_load(load);
    b->load = NULL;
    b->running = false;
    b->pending = false;
    return status;
}

stk_status stk_write_behind_give_up(stk_write_behind *b, stk_error *err) {
    if (stk_write_behind_wait(b, 0)) {
        return stk_write_behind_finish(b, err);
    }
    stk_status status = STK_FAIL(err, STK_ERR_STORAGE,
                                 "cannot write %s: its disk gave no answer within %.1f s; look "
                                 "whether it is mounted and alive",
                                 b->load->path, stk_write_behind_age(b));
    if (!stk_timed_call_close(b->thread)) { /* the call has just ended after all */
        free_load(b->load);
    }
    b->thread = NULL;
    b->load = NULL;
    b->running = false;
    b->pending = false;
    return status;
}

double stk_write_behind_seconds(const stk_write_behind *b) {
    return (double)(b->ended_ns - b->begun_ns) * 1e-9;
}

double stk_write_behind_age(const stk_write_behind *b) {
    return stk_clock_since_s(b->begun_ns);
}

void stk_write_behind_free(stk_write_behind *b) {
    stk_status status = stk_write_behind_finish(b, NULL);
    (void)status; /* nobody asks for it any more */
    if (b->load != NULL) {
        free_load(b->load);
    }
    (void)stk_timed_call_close(b->thread);
    stk_bytes_free(&b->block);
    b->load = NULL;
    b->thread = NULL;
}
