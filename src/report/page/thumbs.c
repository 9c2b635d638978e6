/* thumbs.c - requests all pictures at once, and scales each down as soon as its bytes are there. */
#include "report/page/thumbs.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/threads/thread.h"
#include "image/image.h"
#include "storage/reading/reader.h"

#define QUALITY 80

/* Bytes of an encoded picture that a busy core decodes in a second. */
#define SLOW_DECODE 10e6

static const char no_time[] = "there was no time to read it";

typedef enum state {
    COMING, /* the read is in flight */
    HERE,   /* the read has ended, well or not */
    USED    /* its thumbnail was made, or has a reason why not */
} state;

typedef struct making {
    pthread_mutex_t lock;
    pthread_cond_t some; /* a read has ended */
    stk_read reads[STK_CONFUSION_WORST];
    state states[STK_CONFUSION_WORST]; /* under the lock */
    stk_image_scratch *scratch;
    int64_t end_ns;
} making;

/* Called on a thread of the reader. */
static void read_ended(void *user, stk_read *read) {
    making *m = user;
    pthread_mutex_lock(&m->lock);
    m->states[read - m->reads] = HERE;
    pthread_cond_signal(&m->some);
    pthread_mutex_unlock(&m->lock);
}

static void say_why(stk_thumb *thumb, const char *why) {
    snprintf(thumb->why, sizeof thumb->why, "%.*s", (int)sizeof thumb->why - 1, why);
}

static stk_status shrink(const making *m, const stk_read *read, stk_thumb *thumb, stk_error *err) {
    stk_image image = {0};
    stk_status status = stk_image_shrink(m->scratch, read->bytes.data, read->bytes.size,
                                         STK_THUMB_SIDE, &image, err);
    STK_THEN(status, stk_image_encode_jpeg(&image, QUALITY, &thumb->jpeg, &thumb->size, err));
    stk_image_free(&image);
    return status;
}

static void use(const making *m, const stk_read *read, stk_thumb *thumb) {
    stk_error why = {0};
    double left_s = (double)(m->end_ns - stk_clock_ns()) / STK_NS_PER_S;
    if (read->error.status != STK_OK) {
        say_why(thumb, read->error.status == STK_ERR_STOPPED ? no_time : read->error.message);
    } else if (left_s < (double)read->bytes.size / SLOW_DECODE) {
        say_why(thumb, "there was no time to decode it");
    } else if (shrink(m, read, thumb, &why) != STK_OK) {
        say_why(thumb, why.message);
    }
}

/* The index of a read that has ended; -1: all are used, or time is up. Called with the lock. */
static int wait_for_one(making *m, int count) {
    bool late = false;
    for (;;) {
        bool coming = false;
        for (int i = 0; i < count; i++) {
            if (m->states[i] == HERE) {
                return i;
            }
            coming = coming || m->states[i] == COMING;
        }
        if (!coming || late) {
            return -1;
        }
        late = !stk_cond_wait_until(&m->some, &m->lock, m->end_ns);
    }
}

static void use_all(making *m, stk_thumbs *thumbs) {
    pthread_mutex_lock(&m->lock);
    for (int i = wait_for_one(m, thumbs->count); i >= 0; i = wait_for_one(m, thumbs->count)) {
        m->states[i] = USED;
        pthread_mutex_unlock(&m->lock);
        use(m, &m->reads[i], &thumbs->items[i]);
        pthread_mutex_lock(&m->lock);
    }
    pthread_mutex_unlock(&m->lock);
}

static void say_of_all(stk_thumbs *thumbs, const char *why) {
    for (int i = 0; i < thumbs->count; i++) {
        say_why(&thumbs->items[i], why);
    }
}

static void begin_reads(making *m, const stk_confusion *confusion, stk_reader *reader,
                        stk_thumbs *thumbs) {
    for (int i = 0; i < thumbs->count; i++) {
        m->reads[i].path = confusion->worst[i].path;
        if (!stk_reader_submit(reader, &m->reads[i])) {
            pthread_mutex_lock(&m->lock);
            m->states[i] = USED;
            pthread_mutex_unlock(&m->lock);
            say_why(&thumbs->items[i], "there was no memory to read it");
        }
    }
}

void stk_thumbs_make(stk_thumbs *thumbs, const stk_confusion *confusion, stk_store *store,
                     int64_t end_ns) {
    making m = {.end_ns = end_ns};
    stk_reader_config config = {.store = store, .done = read_ended, .user = &m};
    stk_reader *reader = NULL;
    stk_error why = {0};
    *thumbs = (stk_thumbs){.count = confusion->worst_count};
    if (stk_clock_ns() >= end_ns) {
        say_of_all(thumbs, no_time);
        return;
    }
    pthread_mutex_init(&m.lock, NULL);
    stk_cond_init(&m.some);
    stk_status status = stk_image_scratch_new(&m.scratch, NULL, &why);
    if (status == STK_OK) {
        stk_image_scratch_limit(m.scratch, &(stk_image_limit){.deadline_ns = end_ns});
    }
    STK_THEN(status, stk_reader_open(&reader, &config, &why));
    if (status == STK_OK) {
        begin_reads(&m, confusion, reader, thumbs);
        use_all(&m, thumbs);
        stk_reader_close(reader);
    } else {
        say_of_all(thumbs, why.message);
    }
    for (int i = 0; i < thumbs->count; i++) {
        if (status == STK_OK && m.states[i] != USED) {
            say_why(&thumbs->items[i], no_time);
        }
        stk_bytes_free(&m.reads[i].bytes);
    }
    stk_image_scratch_free(m.scratch);
    pthread_cond_destroy(&m.some);
    pthread_mutex_destroy(&m.lock);
}

void stk_thumbs_make_from(stk_thumbs *thumbs, const stk_confusion *confusion, const char *data,
                          const stk_storage_options *storage, int64_t end_ns) {
    stk_storage_options how = *storage;
    stk_store *store = NULL;
    stk_error why = {0};
    how.cache = "off";
    how.deadline_ns = end_ns;
    how.outage_s = 0;
    how.events = NULL;
    if (stk_store_open(&store, data, &how, NULL, &why) == STK_OK) {
        stk_thumbs_make(thumbs, confusion, store, end_ns);
        stk_store_close(store);
        return;
    }
    *thumbs = (stk_thumbs){.count = confusion->worst_count};
    say_of_all(thumbs, why.message);
}

void stk_thumbs_free(stk_thumbs *thumbs) {
    for (int i = 0; i < thumbs->count; i++) {
        stk_mem_free(thumbs->items[i].jpeg);
    }
    memset(thumbs, 0, sizeof *thumbs);
}
