/* reader_desk.h - a reader over a scripted place, and its reads as a test waits for them. */
#ifndef STK_TESTS_READER_DESK_H
#define STK_TESTS_READER_DESK_H

#include "check.h"

#include "scripted_place.h"
#include "storage/reading/reader.h"

#define READS 128
#define TIMEOUT_S 0.2

/* Reads, and those of them that have come back. */
typedef struct inbox {
    pthread_mutex_t lock;
    pthread_cond_t more;
    stk_read reads[READS];
    int told[READS]; /* how often each was done */
    int count;       /* in total */
    int used;        /* reads that were handed over; the test's own thread's */
} inbox;

static inline void note(void *user, stk_read *read) {
    inbox *in = user;
    pthread_mutex_lock(&in->lock);
    in->told[read - in->reads]++;
    in->count++;
    pthread_cond_broadcast(&in->more);
    pthread_mutex_unlock(&in->lock);
}

static inline void wait_for(inbox *in, int count) {
    pthread_mutex_lock(&in->lock);
    while (in->count < count) {
        pthread_cond_wait(&in->more, &in->lock);
    }
    pthread_mutex_unlock(&in->lock);
}

/* A store on a scripted place, with a reader. */
typedef struct desk {
    scripted_place *place;
    stk_store *store;
    stk_reader *reader;
    inbox in;
} desk;

static inline stk_reader *open_reader(desk *d, inbox *in) {
    stk_error err = {0};
    stk_reader *reader = NULL;
    stk_reader_config config = {.store = d->store, .done = note, .user = in};
    if (stk_reader_open(&reader, &config, &err) != STK_OK) {
        printf("%s\n", err.message);
        exit(1);
    }
    return reader;
}

static inline void open_inbox(inbox *in) {
    memset(in, 0, sizeof *in);
    pthread_mutex_init(&in->lock, NULL);
    pthread_cond_init(&in->more, NULL);
}

static inline void close_inbox(inbox *in) {
    for (int i = 0; i < in->used; i++) {
        CHECK_INT(in->told[i], 1);
        stk_bytes_free(&in->reads[i].bytes);
    }
    pthread_cond_destroy(&in->more);
    pthread_mutex_destroy(&in->lock);
}

/* A desk of a store that waits out silence of up to so many seconds. */
static inline void open_patient_desk(desk *d, double timeout_s, double outage_s) {
    stk_error err = {0};
    stk_storage_options options = {
        .cache = "off", .read_timeout_s = timeout_s, .outage_s = outage_s};
    open_inbox(&d->in);
    d->place = scripted_new();
    if (stk_store_open_on(&d->store, &scripted_source, d->place, &options, &err) != STK_OK) {
        printf("%s\n", err.message);
        exit(1);
    }
    d->reader = open_reader(d, &d->in);
}

static inline void open_desk(desk *d, double timeout_s) {
    open_patient_desk(d, timeout_s, 0);
}

static inline void close_desk(desk *d) {
    stk_reader_close(d->reader);
    close_inbox(&d->in);
    stk_store_close(d->store);
}

static inline stk_read *submit_to(stk_reader *reader, inbox *in, const char *path) {
    stk_read *read = &in->reads[in->used++];
    read->path = path;
    if (!stk_reader_submit(reader, read)) {
        CHECK_FAIL("%s could not be handed over", path);
        in->used--;
    }
    return read;
}

static inline stk_read *submit(desk *d, const char *path) {
    return submit_to(d->reader, &d->in, path);
}

static inline void wait_for_all(desk *d) {
    wait_for(&d->in, d->in.used);
}

/* Reads one and waits for it. */
static inline const stk_read *read_now(desk *d, const char *path) {
    const stk_read *read = submit(d, path);
    wait_for_all(d);
    return read;
}

static inline void wait_until_told(inbox *in, const stk_read *read) {
    pthread_mutex_lock(&in->lock);
    while (in->told[read - in->reads] == 0) {
        pthread_cond_wait(&in->more, &in->lock);
    }
    pthread_mutex_unlock(&in->lock);
}

static inline void wait_until_begun(desk *d, const char *path, int attempts) {
    pthread_mutex_lock(&d->place->lock);
    while (scripted_find(d->place, path)->attempts < attempts) {
        pthread_cond_wait(&d->place->changed, &d->place->lock);
    }
    pthread_mutex_unlock(&d->place->lock);
}

static inline void expect_bytes(const stk_read *read) {
    if (read->error.status != STK_OK) {
        CHECK_FAIL("%s failed: %s", read->path, read->error.message);
        return;
    }
    CHECK_INT(read->bytes.size, strcspn(read->path, "?"));
    CHECK(memcmp(read->bytes.data, read->path, read->bytes.size) == 0);
    CHECK(read->ns >= 0);
    CHECK(!read->lost);
}

static inline void expect_error(const stk_read *read, stk_status status, const char *part) {
    CHECK_INT(read->error.status, status);
    CHECK_CONTAINS(read->error.message, part);
    CHECK_INT(read->lost, 0);
}

static inline stk_store_counters stats(const desk *d) {
    stk_store_counters counters;
    stk_store_stats(d->store, &counters);
    return counters;
}

/* Good reads, so that there are peers to compare with; each can be read once only. */
static inline void read_peers(desk *d, int count) {
    static char paths[READS][24];
    for (int i = 0; i < count; i++) {
        snprintf(paths[i], sizeof paths[i], "p%d?o1,h", i);
        expect_bytes(read_now(d, paths[i]));
    }
}

static inline void expect_lost(const stk_read *read, const char *part) {
    CHECK_INT(read->error.status, STK_ERR_STORAGE);
    CHECK_CONTAINS(read->error.message, part);
    CHECK(read->lost);
}

#endif
