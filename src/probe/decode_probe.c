/*
 * decode_probe.c - threads that decode files out of memory.
 *
 * Each thread takes the next file of the list, so that large and small pictures are spread evenly.
 * It counts its own time up to the end of its last picture, so the ends of a slice lose nothing.
 */
#include "probe/decode_probe.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/threads/pool.h"
#include "base/threads/thread.h"
#include "image/image.h"
#include "storage/reading/reader.h"

/* More files would give the same rate and take memory from the loader. The same limit holds for
 * re-encoded pictures. */
#define MAX_BYTES ((size_t)256 * 1024 * 1024)
#define MAX_PIXELS ((int64_t)32 * 1024 * 1024)

/* Files that are read at a time, and the wait after which the reader gets more threads. */
#define READS 32
#define PATIENCE_NS 20000000

typedef struct probe_file {
    stk_bytes bytes; /* owned */
    stk_bytes made;  /* owned: the re-encoded picture; empty: `bytes` is decoded */
    bool left_out;   /* there was no room for the re-encoded picture */
    atomic_bool bad; /* cannot be decoded: it is not tried again and does not count */
} probe_file;

/* The result of one task of a slice; read when all tasks are done. */
typedef struct thread_share {
    uint64_t images;
    int64_t ns;
    bool no_memory;
    stk_image_scratch *scratch; /* owned; NULL until a view or re-encoding needs it */
    uint8_t *out;               /* owned: (size, size, 3) of the view; NULL until a view is set */
} thread_share;

struct stk_decode_probe {
    probe_file *files; /* owned */
    size_t count;
    size_t capacity;
    thread_share *shares; /* owned; one per thread */
    int threads;
    stk_transform view; /* size 0: none */
    stk_pool *pool;
    atomic_size_t next;   /* file to take, modulo count */
    int64_t until_ns;     /* end of the slice */
    const stk_stop *stop; /* borrowed for the slice */
};

/* False when the picture cannot be used; then it is not tried again, unless memory was short. */
static bool decode_one(const stk_decode_probe *probe, probe_file *f, size_t number,
                       thread_share *mine) {
    const stk_bytes *bytes = f->made.size > 0 ? &f->made : &f->bytes;
    stk_image image = {0};
    stk_error why = {0};
    stk_status status;
    if (probe->view.size > 0) {
        status =
            stk_transform_apply(mine->scratch, &probe->view, bytes->data, bytes->size,
                                stk_rng_make(0, STK_RNG_AUGMENT, 0, number), mine->out, NULL, &why);
    } else {
        status = stk_image_decode(bytes->data, bytes->size, &image, &why);
    }
    stk_image_free(&image);
    mine->no_memory = status == STK_ERR_MEMORY;
    atomic_store(&f->bad, status != STK_OK && !mine->no_memory);
    return status == STK_OK;
}

static void decode_slice(void *context, size_t task, int thread) {
    stk_decode_probe *probe = context;
    thread_share mine = probe->shares[task];
    int64_t start = stk_clock_ns();
    int64_t now;
    size_t bad = 0; /* in a row */
    (void)thread;
    mine.images = 0;
    mine.no_memory = false;
    do {
        size_t number = atomic_fetch_add(&probe->next, 1);
        probe_file *f = &probe->files[number % probe->count];
        if (!f->left_out && !atomic_load(&f->bad) && decode_one(probe, f, number, &mine)) {
            mine.images++;
            bad = 0;
        } else {
            bad++;
        }
        now = stk_clock_ns();
    } while (now < probe->until_ns && bad < probe->count && !mine.no_memory &&
             stk_stop_asked(probe->stop) == STK_STOP_NONE);
    mine.ns = now - start;
    probe->shares[task] = mine;
}

/* Whole pictures beyond this would need too much memory on every thread. */
static bool is_usual(const stk_bytes *bytes, stk_error *why) {
    int width;
    int height;
    if (stk_image_size(bytes->data, bytes->size, &width, &height, why) != STK_OK) {
        return false;
    }
    if ((int64_t)width * height > MAX_PIXELS) {
        (void)STK_FAIL(why, STK_ERR_DATA, "its %d x %d pixels are too many to decode as a whole",
                       width, height);
        return false;
    }
    return true;
}

/* Files that are being read, many at a time since they may be far away. */
typedef struct file_gathering {
    stk_decode_probe *probe;
    pthread_mutex_t lock;
    pthread_cond_t done;
    size_t under_way; /* files being read; guarded by `lock` */
    size_t bytes;     /* bytes kept; guarded by `lock` */
    stk_error why;    /* of the last read that failed; guarded by `lock` */
    const stk_stop *stop;
} file_gathering;

static void keep_file(void *user, stk_read *read) {
    file_gathering *g = user;
    pthread_mutex_lock(&g->lock);
    if (read->error.status == STK_OK && is_usual(&read->bytes, &read->error)) {
        g->bytes += read->bytes.size;
        g->probe->files[g->probe->count++].bytes = read->bytes;
        memset(&read->bytes, 0, sizeof read->bytes);
    } else {
        g->why = read->error;
    }
    stk_bytes_free(&read->bytes);
    g->under_way--;
    pthread_cond_signal(&g->done);
    pthread_mutex_unlock(&g->lock);
}

/* Under the lock: waits until no more than `most` files are being read. */
static void wait_for_files(file_gathering *g, stk_reader *reader, size_t most) {
    while (g->under_way > most) {
        if (!stk_cond_wait_until(&g->done, &g->lock, stk_clock_ns() + PATIENCE_NS)) {
            stk_reader_hurry(reader);
        }
        if (stk_stop_asked(g->stop) != STK_STOP_NONE) {
            stk_reader_cancel(reader);
        }
    }
}

static void gather(file_gathering *g, stk_reader *reader, stk_read *reads, const char *const *paths,
                   size_t count) {
    pthread_mutex_lock(&g->lock);
    for (size_t i = 0;
         i < count && g->bytes < MAX_BYTES && stk_stop_asked(g->stop) == STK_STOP_NONE; i++) {
        wait_for_files(g, reader, READS - 1);
        reads[i].path = paths[i];
        if (!stk_reader_submit(reader, &reads[i])) {
            (void)STK_FAIL_MEMORY(&g->why, paths[i]);
            break;
        }
        g->under_way++;
    }
    wait_for_files(g, reader, 0);
    pthread_mutex_unlock(&g->lock);
}

static stk_status read_files(stk_decode_probe *probe, stk_store *store, const char *const *paths,
                             size_t count, const stk_stop *stop, stk_error *err) {
    file_gathering g = {.probe = probe, .stop = stop};
    stk_reader *reader = NULL;
    stk_reader_config config = {.store = store, .done = keep_file, .user = &g};
    stk_read *reads = stk_mem_new(count, sizeof *reads);
    pthread_mutex_init(&g.lock, NULL);
    stk_cond_init(&g.done);
    stk_status status = reads != NULL ? stk_reader_open(&reader, &config, err)
                                      : STK_FAIL_MEMORY(err, "pictures to decode");
    if (status == STK_OK) {
        gather(&g, reader, reads, paths, count);
    }
    stk_reader_close(reader);
    pthread_cond_destroy(&g.done);
    pthread_mutex_destroy(&g.lock);
    stk_mem_free(reads);
    if (status == STK_OK && stk_stop_asked(stop) != STK_STOP_NONE) {
        status = STK_FAIL(err, STK_ERR_STOPPED, "stopped before the measurement was complete");
    }
    if (status == STK_OK && g.why.status == STK_ERR_MEMORY) {
        status = STK_FAIL(err, g.why.status, "%s", g.why.message);
    }
    if (status == STK_OK && probe->count == 0) {
        status = STK_FAIL(err, STK_ERR_DATA,
                          "none of the pictures that the loader showed can be read again; the last "
                          "reason: %s",
                          g.why.message);
    }
    return status;
}

stk_status stk_decode_probe_open(stk_decode_probe **out, stk_store *store, const char *const *paths,
                                 size_t count, int threads, const stk_stop *stop, stk_error *err) {
    stk_decode_probe *probe = stk_mem_new(1, sizeof *probe);
    stk_status status = STK_OK;
    if (probe == NULL) {
        return STK_FAIL_MEMORY(err, "pictures to decode");
    }
    probe->files = stk_mem_new(count, sizeof *probe->files);
    probe->capacity = count;
    probe->threads = threads;
    probe->shares = stk_mem_new((size_t)threads, sizeof *probe->shares);
    if (probe->files == NULL || probe->shares == NULL) {
        status = STK_FAIL_MEMORY(err, "pictures to decode");
    }
    STK_THEN(status, read_files(probe, store, paths, count, stop, err));
    STK_THEN(status, stk_pool_new(&probe->pool, threads, err));
    if (status != STK_OK) {
        stk_decode_probe_close(probe);
        return status;
    }
    *out = probe;
    return STK_OK;
}

void stk_decode_probe_close(stk_decode_probe *probe) {
    if (probe == NULL) {
        return;
    }
    for (size_t i = 0; probe->files != NULL && i < probe->capacity; i++) {
        stk_bytes_free(&probe->files[i].bytes);
        stk_bytes_free(&probe->files[i].made);
    }
    for (int i = 0; probe->shares != NULL && i < probe->threads; i++) {
        stk_image_scratch_free(probe->shares[i].scratch);
        stk_mem_free(probe->shares[i].out);
    }
    stk_pool_free(probe->pool);
    stk_mem_free(probe->files);
    stk_mem_free(probe->shares);
    stk_mem_free(probe);
}

stk_decode_mean stk_decode_probe_mean(const stk_decode_probe *probe) {
    stk_decode_mean mean = {.count = probe->count};
    for (size_t i = 0; i < probe->count; i++) {
        const stk_bytes *bytes = &probe->files[i].bytes;
        stk_error ignored = {0};
        int width = 0;
        int height = 0;
        if (stk_image_size(bytes->data, bytes->size, &width, &height, &ignored) == STK_OK) {
            mean.pixels += (double)width * height / (double)probe->count;
        }
        mean.bytes += (double)bytes->size / (double)probe->count;
    }
    return mean;
}

/* Every thread has a scratch; re-encoding needs it, too. */
static stk_status take_benches(stk_decode_probe *probe, stk_error *err) {
    stk_status status = STK_OK;
    for (int i = 0; i < probe->threads && status == STK_OK; i++) {
        thread_share *mine = &probe->shares[i];
        status = mine->scratch == NULL ? stk_image_scratch_new(&mine->scratch, NULL, err) : STK_OK;
    }
    return status;
}

stk_status stk_decode_probe_view(stk_decode_probe *probe, const stk_transform *transform,
                                 stk_error *err) {
    probe->view = (stk_transform){0};
    if (transform == NULL) {
        return STK_OK;
    }
    stk_status status = take_benches(probe, err);
    for (int i = 0; i < probe->threads && status == STK_OK; i++) {
        thread_share *mine = &probe->shares[i];
        stk_mem_free(mine->out);
        mine->out = stk_mem_raw((size_t)transform->size * (size_t)transform->size,
                                (size_t)stk_transform_channels(transform));
        status = mine->out != NULL ? STK_OK : STK_FAIL_MEMORY(err, "a picture");
    }
    if (status == STK_OK) {
        probe->view = *transform;
    }
    return status;
}

/* Re-encoding: one picture a task. */
typedef struct remaking {
    stk_decode_probe *probe;
    stk_remake remake;
    void *user;
    const stk_stop *stop;
    atomic_size_t bytes; /* that were made */
    atomic_bool no_memory;
} remaking;

static void remake_one(void *context, size_t task, int thread) {
    remaking *r = context;
    probe_file *f = &r->probe->files[task];
    stk_error why = {0};
    if (atomic_load(&f->bad) || stk_stop_asked(r->stop) != STK_STOP_NONE) {
        return;
    }
    f->left_out = atomic_load(&r->bytes) >= MAX_BYTES;
    stk_status status = f->left_out ? STK_OK
                                    : r->remake(r->user, r->probe->shares[thread].scratch,
                                                &f->bytes, &f->made, &why);
    atomic_fetch_add(&r->bytes, f->made.size);
    if (status == STK_ERR_MEMORY) {
        atomic_store(&r->no_memory, true);
    } else if (status != STK_OK) {
        atomic_store(&f->bad, true);
    }
}

stk_status stk_decode_probe_remake(stk_decode_probe *probe, stk_remake remake, void *user,
                                   const stk_stop *stop, double *bytes, stk_error *err) {
    remaking r = {.probe = probe, .remake = remake, .user = user, .stop = stop};
    stk_status status = take_benches(probe, err);
    for (size_t i = 0; i < probe->count; i++) {
        stk_bytes_free(&probe->files[i].made);
        probe->files[i].left_out = false;
    }
    if (status == STK_OK && remake != NULL) {
        stk_pool_run(probe->pool, probe->count, remake_one, &r);
    }
    if (status == STK_OK && stk_stop_asked(stop) != STK_STOP_NONE) {
        status = STK_FAIL(err, STK_ERR_STOPPED, "stopped before the measurement was complete");
    }
    if (status == STK_OK && atomic_load(&r.no_memory)) {
        status = STK_FAIL_MEMORY(err, "pictures made anew");
    }
    double sum = 0;
    size_t count = 0;
    for (size_t i = 0; i < probe->count; i++) {
        const probe_file *f = &probe->files[i];
        sum += (double)(f->left_out ? 0 : f->made.size > 0 ? f->made.size : f->bytes.size);
        count += !f->left_out;
    }
    *bytes = sum / (double)count;
    return status;
}

stk_status stk_decode_probe_run(stk_decode_probe *probe, int threads, double seconds,
                                const stk_stop *stop, stk_decode_tally *tally, stk_error *err) {
    bool no_memory = false;
    probe->until_ns = stk_clock_in(seconds);
    probe->stop = stop;
    stk_pool_run(probe->pool, (size_t)threads, decode_slice, probe);
    for (int i = 0; i < threads; i++) {
        tally->images += probe->shares[i].images;
        tally->thread_seconds += (double)probe->shares[i].ns * 1e-9;
        no_memory = no_memory || probe->shares[i].no_memory;
    }
    return no_memory ? STK_FAIL_MEMORY(err, "decoding pictures") : STK_OK;
}
