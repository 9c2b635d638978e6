/*
 * write_behind.c - one thread per file: it begins with the write and ends with it, so that nothing
 * has to be locked. What it fills in is read after it was waited for; `done` alone is looked at
 * before that.
 */
#include "base/write_behind.h"

#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"

static void finish(stk_write_behind *b) {
    if (b->status == STK_OK && b->in_place != NULL) {
        b->in_place(b->user);
    }
    b->ended_ns = stk_clock_ns();
    atomic_store(&b->done, true);
}

static void *put_to_disk(void *user) {
    stk_write_behind *b = user;
    b->status = stk_file_write(b->path, b->block.data, b->block.size, &b->failure);
    finish(b);
    return NULL;
}

stk_status stk_write_behind_begin(stk_write_behind *b, stk_file_writer **writer, const char *path,
                                  bool gather, stk_error *err) {
    b->begun_ns = stk_clock_ns();
    b->block.size = 0;
    stk_mem_free(b->path);
    b->path = stk_mem_strdup(path);
    if (b->path == NULL) {
        return STK_FAIL_MEMORY(err, path);
    }
    return gather ? stk_file_gather(writer, path, &b->block, err)
                  : stk_file_create(writer, path, err);
}

void stk_write_behind_go(stk_write_behind *b, void (*in_place)(void *user), void *user) {
    b->in_place = in_place;
    b->user = user;
    b->pending = true;
    b->status = STK_OK;
    b->failure = (stk_error){0};
    atomic_store(&b->done, false);
    if (b->block.size == 0) { /* it was written at once, and is in place */
        finish(b);
        return;
    }
    b->running = pthread_create(&b->thread, NULL, put_to_disk, b) == 0;
    if (!b->running) {
        (void)put_to_disk(b);
    }
}

bool stk_write_behind_is_pending(const stk_write_behind *b) {
    return b->pending;
}

bool stk_write_behind_is_done(const stk_write_behind *b) {
    return b->pending && atomic_load(&b->done);
}

static void await(stk_write_behind *b) {
    if (b->running) {
        pthread_join(b->thread, NULL);
    }
    b->running = false;
    b->pending = false;
}

stk_status stk_write_behind_settle(stk_write_behind *b, stk_error *err) {
    if (!b->pending) {
        return STK_OK;
    }
    await(b);
    return b->status == STK_OK ? STK_OK : STK_FAIL(err, b->status, "%s", b->failure.message);
}

double stk_write_behind_seconds(const stk_write_behind *b) {
    return (double)(b->ended_ns - b->begun_ns) * 1e-9;
}

double stk_write_behind_age(const stk_write_behind *b) {
    return stk_clock_since_s(b->begun_ns);
}

void stk_write_behind_free(stk_write_behind *b) {
    await(b);
    stk_bytes_free(&b->block);
    stk_mem_free(b->path);
    b->path = NULL;
}
